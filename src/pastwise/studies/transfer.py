"""How well each method does with a log made for another goal, against the length of the log.

The systems are known, so the success of a rule is exact. A behaviour with another goal leaves a log
of so many episodes. Every method learns from that log alone, once; all it is given of the new goal
are the states that it prefers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.goals.goal import Goal
from pastwise.report.study_figures import Curve, Panel, transfer_plot
from pastwise.report.text import markdown_table, write_csv
from pastwise.studies.output import save_figure, save_json
from pastwise.studies.runner import Part, Runner
from pastwise.studies.systems import KnownSystem

# Settings.


@dataclass(frozen=True, eq=False)
class Setting:
    """A system, a new goal in it, and the behaviour that left the log.

    Attributes
    ----------
    name, past : str
        The system, and what its log was made for.
    system : KnownSystem
        Its success is the new goal.
    behaviour : [S, A]
        The rule that left the log.
    sizes : numbers of episodes
        Sizes of the logs.
    max_steps : int, optional
        Steps within which an episode must succeed; None: any number.
    world : KnownSystem, optional
        The system that the log comes from, if its episodes started or ended elsewhere.
    max_logged_steps : int
        Steps after which an episode of the log is cut.
    fields : numbers by name, optional
        Fields by which the log names a state, and how many values each has; None: its number.
    """

    name: str
    past: str
    system: KnownSystem
    behaviour: FloatArray
    sizes: tuple[int, ...]
    max_steps: int | None = 200
    world: KnownSystem | None = None
    max_logged_steps: int = 200
    fields: Mapping[str, int] | None = None

    @cached_property
    def states(self) -> Space:
        """The states as the log names them."""
        if self.fields is None:
            return Space.of_size(self.system.num_states)
        return Space([*np.ndindex(*self.fields.values())], tuple(self.fields))

    def success(self, rule: FloatArray) -> float:
        """Exact probability that a rule succeeds."""
        if self.max_steps is None:
            return self.system.success_and_length(rule)[0]
        return self.system.success_within(rule, self.max_steps)

    def references(self) -> References:
        """The success of the behaviour, of acting at random and of the best rule."""
        return References(
            system=self.name,
            past=self.past,
            logged=self.success(self.behaviour),
            random=self.success(self.system.random),
            optimum=self.success(self.system.best),
        )

    def goal(self) -> Goal:
        """The new goal: to end in the states that count as success."""
        wanted = np.flatnonzero(self.system.success).tolist()
        return Goal(prefer={self.states.labels[state]: 1.0 for state in wanted})

    def log(self, episodes: int, rng: np.random.Generator) -> TransitionCounts:
        """Counts of a log in which the ends of the new task are known."""
        world = self.world or self.system
        counts = world.log(self.behaviour, episodes, rng, self.max_logged_steps)
        return replace(counts, states=self.states).ending_in(self.system.terminal)

    def rules(self, counts: TransitionCounts) -> dict[str, FloatArray]:
        """The rule of every registered method after a log: [S, A] by name.

        Rand is left out: it is one of the references.
        """
        ideal = self.goal().on(counts.states, counts.actions)
        rules = {}
        for name in methods.names():
            if name != "Rand":
                method = methods.create(name)
                rules[name] = method.plan(method.start(counts, ideal)).rule
        return rules


# Results.


@dataclass(frozen=True)
class References:
    """Success of what the methods of a setting are compared with."""

    system: str
    past: str
    logged: float
    random: float
    optimum: float

    @property
    def levels(self) -> dict[str, float]:
        """The successes by name."""
        return {"logged": self.logged, "random": self.random, "optimum": self.optimum}


@dataclass(frozen=True)
class Success:
    """Success of a method after one log."""

    system: str
    past: str
    episodes: int
    seed: int
    method: str
    success: float


@dataclass(frozen=True)
class SuccessSummary:
    """Success of a method over the logs of one size: mean with a 95 % interval, and the least."""

    system: str
    past: str
    episodes: int
    method: str
    interval: Interval
    smallest: float
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """One level of names and plain values, for a table or JSON."""
        numbers = self.interval.to_dict()
        return {
            "system": self.system,
            "past": self.past,
            "episodes": self.episodes,
            "method": self.method,
            "mean": numbers["mean"],
            "low": numbers["low"],
            "high": numbers["high"],
            "smallest": self.smallest,
            "seeds": self.seeds,
        }


@dataclass(frozen=True)
class Transfer:
    """Successes of every method, log and seed, and the references of each setting.

    Attributes
    ----------
    name : str
        Name of the study, and of its files.
    """

    name: str
    successes: list[Success]
    references: list[References]

    def summaries(self) -> list[SuccessSummary]:
        """A summary for each setting, size of the log and method."""
        groups: dict[tuple[str, str, int, str], list[float]] = {}
        for row in self.successes:
            key = (row.system, row.past, row.episodes, row.method)
            groups.setdefault(key, []).append(row.success)
        found = []
        for (system, past, episodes, method), successes in groups.items():
            values = np.array(successes)
            found.append(
                SuccessSummary(
                    system=system,
                    past=past,
                    episodes=episodes,
                    method=method,
                    interval=_normal_interval(values),
                    smallest=float(values.min()),
                    seeds=len(values),
                )
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "references": [asdict(references) for references in self.references],
            "rows": [summary.to_dict() for summary in self.summaries()],
        }

    def write(self, folder: Path) -> None:
        """Write successes, summaries, page and figure into a folder."""
        write_csv(folder / f"{self.name}_runs.csv", [asdict(row) for row in self.successes])
        write_csv(folder / f"{self.name}.csv", [row.to_dict() for row in self.summaries()])
        save_json(folder / f"{self.name}.json", self.to_dict())
        (folder / f"{self.name}.md").write_text(self.page(), encoding="utf-8")
        save_figure(transfer_plot(self._panels()), folder, self.name)

    def page(self) -> str:
        """A table of Markdown for each setting: mean success by the size of the log."""
        lines = []
        for references in self.references:
            levels = [f"{name} {level:.4f}" for name, level in references.levels.items()]
            lines.append(
                f"**{references.system}**, logged for: {references.past} ({', '.join(levels)})"
            )
            lines.append("")

            by_method = self._by_method(references)
            sizes = [f"{summary.episodes:,}" for summary in next(iter(by_method.values()))]
            rows = []
            for method, summaries in by_method.items():
                rows.append([method, *[f"{row.interval.mean:.4f}" for row in summaries]])
            lines += markdown_table(["episodes", *sizes], rows)
            lines.append("")
        return "\n".join(lines)

    def _by_method(self, references: References) -> dict[str, list[SuccessSummary]]:
        """Summaries of one setting by method, in the order of the sizes."""
        setting = (references.system, references.past)
        found: dict[str, list[SuccessSummary]] = {}
        for summary in self.summaries():
            if (summary.system, summary.past) == setting:
                found.setdefault(summary.method, []).append(summary)
        return found

    def _panels(self) -> list[Panel]:
        """For the figure: the curves of each setting."""
        panels = []
        for references in self.references:
            curves = []
            for method, summaries in self._by_method(references).items():
                curves.append(_curve(method, summaries))
            title = f"{references.system}, logged for: {references.past}"
            panels.append(Panel(title, curves, references.levels))
        return panels


def _normal_interval(values: FloatArray) -> Interval:
    """Mean of values [n] with its 95 % interval by the normal approximation."""
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, -inf, inf, 0.95)
    half_width = float(1.96 * values.std(ddof=1) / np.sqrt(len(values)))
    return Interval(mean, mean - half_width, mean + half_width, 0.95)


def _curve(method: str, summaries: Sequence[SuccessSummary]) -> Curve:
    episodes = [row.episodes for row in summaries]
    means = [row.interval.mean for row in summaries]
    lows = [row.interval.low for row in summaries]
    highs = [row.interval.high for row in summaries]
    if not all(isfinite(low) for low in lows):
        return Curve(method, episodes, means)
    return Curve(method, episodes, means, lows, highs)


# The study.


def survey(
    name: str,
    settings: Sequence[Setting],
    seeds: int,
    seed: int = 0,
    runner: Runner | None = None,
) -> Transfer:
    """Every method on logs of every size, ``seeds`` logs each."""
    parts = survey_parts(settings, seeds, seed)
    identity = {"study": name, **survey_identity(settings, seeds, seed)}
    results = (runner or Runner()).run("Learning", parts, identity)
    return gather(name, settings, results)


def survey_identity(settings: Sequence[Setting], seeds: int, seed: int) -> dict[str, Any]:
    """What the results of a survey depend on, as plain values."""
    systems = [(setting.name, setting.past, setting.sizes) for setting in settings]
    return {"systems": systems, "seeds": seeds, "seed": seed}


def survey_parts(
    settings: Sequence[Setting], seeds: int, seed: int
) -> list[Part[dict[str, float]]]:
    """A part for every setting, size of a log and number of the log."""
    parts: list[Part[dict[str, float]]] = []
    for number, episodes, index in _logs(settings, seeds):
        own_seed = np.random.SeedSequence(seed, spawn_key=(number, episodes, index))
        parts.append(partial(_success_by_method, settings[number], episodes, own_seed))
    return parts


def _logs(settings: Sequence[Setting], seeds: int) -> list[tuple[int, int, int]]:
    """Setting, number of episodes and number of every log."""
    return [
        (number, episodes, index)
        for number, setting in enumerate(settings)
        for episodes in setting.sizes
        for index in range(seeds)
    ]


def _success_by_method(
    setting: Setting, episodes: int, seed: np.random.SeedSequence
) -> dict[str, float]:
    """The success of every method after one log."""
    counts = setting.log(episodes, np.random.default_rng(seed))
    return {method: setting.success(rule) for method, rule in setting.rules(counts).items()}


def gather(name: str, settings: Sequence[Setting], results: Sequence[dict[str, float]]) -> Transfer:
    """The results of all parts, with the references."""
    seeds = len(results) // sum(len(setting.sizes) for setting in settings)
    successes = []
    for (number, episodes, index), found in zip(_logs(settings, seeds), results, strict=True):
        setting = settings[number]
        for method, success in found.items():
            successes.append(Success(setting.name, setting.past, episodes, index, method, success))
    references = [setting.references() for setting in settings]
    return Transfer(name, successes, references)
