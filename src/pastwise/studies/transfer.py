"""Real applications: how well each method does with a log that was made for another goal, against its length.

The systems are known, so what a rule attains is exact. A log of so many episodes is left by a behaviour that wanted
something else; every method learns from it alone, once, and is told of the new goal by the states that it prefers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.goals.goal import Goal
from pastwise.report.figures import transfer_plot
from pastwise.report.text import write_csv
from pastwise.studies.runner import Part, Runner
from pastwise.studies.systems import KnownSystem

CLONE = "clone"
"""Doing what the log did."""

STEPS = 200
"""Steps within which an episode of a toy system must succeed."""


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
    sizes : episodes in a log
    steps : int, optional
        Steps within which to succeed; without a limit if absent.
    world : KnownSystem, optional
        The world of the log, where its episodes started and ended elsewhere.
    """

    name: str
    past: str
    system: KnownSystem
    behaviour: FloatArray
    sizes: tuple[int, ...]
    steps: int | None = STEPS
    world: KnownSystem | None = None

    def success(self, rule: FloatArray) -> float:
        """Exact probability that a rule succeeds."""
        if self.steps is None:
            return self.system.success_and_length(rule)[0]
        return self.system.success_within(rule, self.steps)

    def references(self) -> dict[str, float]:
        """What the behaviour, acting at random and the best rule attain."""
        rules = {
            "logged": self.behaviour,
            "random": self.system.random,
            "optimum": self.system.best,
        }
        return {name: self.success(rule) for name, rule in rules.items()}

    def log(self, episodes: int, rng: np.random.Generator) -> TransitionCounts:
        """Counts of a log, of which the new task's ends are known."""
        counts = (self.world or self.system).log(self.behaviour, episodes, rng, STEPS)
        return counts.ending_in(self.system.terminal)

    def rules(self, counts: TransitionCounts) -> Iterator[tuple[str, FloatArray]]:
        """The rule of every method after a log."""
        goal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(self.system.success)})
        ideal = goal.on(counts.states, counts.actions)
        for name in methods.names():
            if name == "Rand":
                continue
            method = methods.create(name)
            yield name, method.plan(method.start(counts, ideal)).rule


@dataclass(frozen=True)
class Transfer:
    """Successes of every method, log and seed, and of the references of each setting."""

    rows: list[dict[str, Any]]
    references: list[dict[str, Any]]

    def summary(self) -> list[dict[str, Any]]:
        """Mean, smallest and 95 % interval over the seeds (by the normal approximation), of each method and size."""
        found = []
        keys = dict.fromkeys(
            (r["system"], r["past"], r["episodes"], r["method"]) for r in self.rows
        )
        for system, past, episodes, method in keys:
            names = {"system": system, "past": past, "episodes": episodes, "method": method}
            values = np.array([r["success"] for r in self.rows if names.items() <= r.items()])
            half = (
                1.96 * values.std(ddof=1) / np.sqrt(len(values))
                if len(values) > 1
                else float("nan")
            )
            mean = values.mean()
            numbers = {
                "mean": mean,
                "low": mean - half,
                "high": mean + half,
                "smallest": values.min(),
            }
            found.append(
                {
                    **names,
                    **{name: float(number) for name, number in numbers.items()},
                    "seeds": len(values),
                }
            )
        return found

    def content(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"references": self.references, "rows": [_finite(row) for row in self.summary()]}

    def write(self, directory: Path, name: str, extra: Mapping[str, Any] | None = None) -> None:
        """Write rows, summary, page and figure into a folder."""
        write_csv(directory / f"{name}_runs.csv", self.rows)
        write_csv(directory / f"{name}.csv", self.summary())
        content = {**self.content(), **(extra or {})}
        (directory / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")
        (directory / f"{name}.md").write_text(self.page(), encoding="utf-8")
        figure = transfer_plot(self.summary(), self.references)
        for suffix in ("png", "pdf"):
            figure.savefig(directory / f"{name}.{suffix}")

    def page(self) -> str:
        """A table of Markdown for each setting: mean success over the seeds by size of the log."""
        lines, summary = [], self.summary()
        for reference in self.references:
            chosen = [
                r
                for r in summary
                if (r["system"], r["past"]) == (reference["system"], reference["past"])
            ]
            sizes = list(dict.fromkeys(r["episodes"] for r in chosen))
            values = ", ".join(
                f"{name} {reference[name]:.4f}" for name in ("logged", "random", "optimum")
            )
            lines += [f"**{reference['system']}**, logged for: {reference['past']} ({values})", ""]
            lines += [
                f"| episodes | {' | '.join(f'{n:,}' for n in sizes)} |",
                "|---|" + "---|" * len(sizes),
            ]
            for method in dict.fromkeys(r["method"] for r in chosen):
                cells = (f"{r['mean']:.4f}" for r in chosen if r["method"] == method)
                lines.append(f"| {method} | {' | '.join(cells)} |")
            lines.append("")
        return "\n".join(lines)


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}


def survey(
    settings: Sequence[Setting], seeds: int, seed: int = 0, runner: Runner | None = None
) -> Transfer:
    """Every method on logs of every size, ``seeds`` logs each."""
    parts = survey_parts(settings, seeds, seed)
    return gather(
        settings,
        (runner or Runner()).run("Learning", parts, survey_settings(settings, seeds, seed)),
    )


def survey_settings(settings: Sequence[Setting], seeds: int, seed: int) -> dict[str, Any]:
    """What a survey depends on, as plain values."""
    return {"systems": [(s.name, s.past, s.sizes) for s in settings], "seeds": seeds, "seed": seed}


def survey_parts(
    settings: Sequence[Setting], seeds: int, seed: int
) -> list[Part[list[dict[str, Any]]]]:
    """A part for every setting, size of a log and number of the log."""
    return [
        partial(
            _attained,
            setting,
            episodes,
            index,
            np.random.SeedSequence(seed, spawn_key=(number, episodes, index)),
        )
        for number, setting in enumerate(settings)
        for episodes in setting.sizes
        for index in range(seeds)
    ]


def _attained(
    setting: Setting, episodes: int, index: int, seed: np.random.SeedSequence
) -> list[dict[str, Any]]:
    """Rows of the survey: the success of every method after one log."""
    counts = setting.log(episodes, np.random.default_rng(seed))
    names = {"system": setting.name, "past": setting.past, "episodes": episodes, "seed": index}
    return [
        {**names, "method": method, "success": setting.success(rule)}
        for method, rule in setting.rules(counts)
    ]


def gather(settings: Sequence[Setting], parts: Sequence[list[dict[str, Any]]]) -> Transfer:
    """The results of all parts, and what the references attain."""
    references = [{"system": s.name, "past": s.past, **s.references()} for s in settings]
    return Transfer([row for rows in parts for row in rows], references)
