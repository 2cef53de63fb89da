"""Do the stated intervals hold? Thousands of random systems whose true values are known.

In each a log is left by an agent, TL learns from it, and `evaluation` states values, differences, a verdict and an
alarm from the log alone; then they are compared with the truth. Logs come from agents that do not know the system
(*unaware*: a random rule drawn without looking at it) and from the paper's agents, which do (FPD for a *matched*,
*overlapping* or *opposed* goal). What those avoid is bad for their goal, which their actions tell and transition
counts do not: there the intervals cannot be expected to hold, and the study shows how far and in which direction they
miss.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import rule_values, sample_values
from pastwise.evaluation.verdict import DEFAULT_THRESHOLDS, is_alarming, verdicts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.baselines import Scripted, behaviour_rule
from pastwise.methods.fpd import FPD
from pastwise.methods.tl import TL
from pastwise.models.dense import DenseModel
from pastwise.models.samples import DenseSamples, TransitionPosterior
from pastwise.report.figures import coverage_plot
from pastwise.report.text import write_csv
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.studies.paper import ROWS, RowDraw
from pastwise.studies.runner import Runner
from pastwise.theory.closed_loop import ideal_preferring

SIZES = ((3, 4), (5, 3), (10, 5))
RECORDS = (60, 200, 1000)
PASTS: Mapping[str, tuple[int, ...] | None] = {
    "unaware": None,
    "matched": (0,),
    "overlapping": (0, 1),
    "opposed": (-1,),
}
"""The states that the past goal preferred (today's prefers the first); None: the behaviour is blind to the system."""

WORSE_BY = 0.03
"""TL is truly worse than random by this share of time, 3 visits in 100: the alarm should sound."""


@dataclass(frozen=True)
class Cell:
    """One setting of the study."""

    past: str
    rows: str
    num_states: int
    num_actions: int
    num_records: int


@dataclass(frozen=True)
class Outcome:
    """What was stated of one system, against the truth."""

    cover_new: bool
    cover_logged: bool
    cover_random: bool
    cover_to_random: bool
    cover_to_logged: bool
    wrong_to_random: bool
    wrong_to_logged: bool
    decided_to_random: bool
    decided_to_logged: bool
    alarm: bool
    harmful: bool
    harmless: bool


def cells() -> list[Cell]:
    """All settings."""
    settings = product(PASTS, ROWS, SIZES, RECORDS)
    return [Cell(past, rows, *size, k) for past, rows, size, k in settings]


def _systems(draw: RowDraw, cell: Cell, number: int, streams: Streams) -> DenseModel:
    S, A = cell.num_states, cell.num_actions
    numbers = np.stack([streams.random((number,)) for _ in range(S * A * S)], axis=-1)
    return DenseModel(draw(numbers.reshape(number, S, A, S)))


def _teacher(
    cell: Cell, model: DenseModel, rng: np.random.Generator
) -> tuple[AnyMethod, IdealModel | None]:
    preferred = PASTS[cell.past]
    if preferred is None:
        rule = rng.dirichlet(np.ones(cell.num_actions), size=(*model.shape, cell.num_states))
        return Scripted(rule[:, None]), None
    states = tuple(state % cell.num_states for state in preferred)
    return FPD(model), ideal_preferring(states, cell.num_states, cell.num_actions)


def outcomes(cell: Cell, systems: int, draws: int, seed: int) -> Iterator[Outcome]:
    """The outcome of every system of a cell."""
    S, A = cell.num_states, cell.num_actions
    streams = Streams([np.random.SeedSequence(seed, spawn_key=(i,)) for i in range(systems)])
    drawing, past_rng = streams.spawn(2)
    model = _systems(ROWS[cell.rows], cell, systems, drawing)
    system = FiniteSystem(model)
    teacher, past_goal = _teacher(cell, model, np.random.default_rng(seed))
    log = run(system, teacher, cell.num_records, past_rng, ideal=past_goal).transitions
    goal, uniform = ideal_preferring((0,), S, A), np.full((S, A), 1 / A)
    tl = TL()
    criterion = Criterion(np.eye(S)[0], np.full(S, 1 / S))
    for i in range(systems):
        counts = TransitionCounts.from_transitions(
            Transitions(*(field[i] for field in log)), system.states, system.actions
        )
        new = tl.plan(tl.start(counts, goal)).rule
        rules = {"new": new, "logged": behaviour_rule(counts), "random": uniform}
        samples = sample_values(
            TransitionPosterior(counts), rules, criterion, draws, seed=i, threads=1
        )
        if len(samples.values) < draws:
            raise KeyboardInterrupt
        own_model = DenseSamples(model.transition[i : i + 1])
        truth = rule_values(own_model, np.stack(list(rules.values())), criterion)[0, :3]
        yield _outcome(samples.values[:, :3], truth)


def _outcome(values: FloatArray, truth: FloatArray) -> Outcome:
    """Stated values [draws, 3] of new, logged and random against the true ones [3]."""

    def covers(drawn: FloatArray, true: float) -> bool:
        return Interval.of_samples(drawn).covers(true)

    stated = {"logged": values[:, 0] - values[:, 1], "random": values[:, 0] - values[:, 2]}
    true_logged, true_random = truth[0] - truth[1], truth[0] - truth[2]
    said = verdicts(stated)
    wrong = {"better": -1, "worse": 1, "cannot tell": 0}
    return Outcome(
        cover_new=covers(values[:, 0], truth[0]),
        cover_logged=covers(values[:, 1], truth[1]),
        cover_random=covers(values[:, 2], truth[2]),
        cover_to_random=covers(stated["random"], true_random),
        cover_to_logged=covers(stated["logged"], true_logged),
        wrong_to_random=bool(wrong[said["random"]] * true_random > 0),
        wrong_to_logged=bool(wrong[said["logged"]] * true_logged > 0),
        decided_to_random=said["random"] != "cannot tell",
        decided_to_logged=said["logged"] != "cannot tell",
        alarm=is_alarming(stated),
        harmful=bool(true_random <= -WORSE_BY),
        harmless=bool(true_random >= 0),
    )


@dataclass(frozen=True)
class Calibration:
    """Rates by cell, in the order of the cells."""

    systems: int
    draws: int
    seed: int
    rows: list[dict[str, Any]]

    def content(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "settings": {"systems": self.systems, "draws": self.draws, "seed": self.seed},
            "rows": self.rows,
        }

    def write(self, directory: Path) -> None:
        """Write the table, the rates and the figure into a folder."""
        write_csv(directory / "calibration.csv", self.rows)
        (directory / "calibration.json").write_text(json.dumps(self.content(), indent=1) + "\n")
        (directory / "calibration.md").write_text(table(self), encoding="utf-8")
        quantities = {
            "value of TL": "cover_new",
            "TL minus random": "cover_to_random",
            "TL minus logged": "cover_to_logged",
        }
        coverage = {
            title: {past: [self.pooled(past, k)[name] for k in RECORDS] for past in PASTS}
            for title, name in quantities.items()
        }
        figure = coverage_plot(coverage, RECORDS, DEFAULT_THRESHOLDS.level)
        for suffix in ("png", "pdf"):
            figure.savefig(directory / f"calibration.{suffix}")

    def pooled(self, past: str, num_records: int) -> dict[str, float]:
        """Rates over all sizes and ways to draw rows, for a past and a number of records."""
        chosen = [r for r in self.rows if r["past"] == past and r["num_records"] == num_records]
        names = [f.name for f in fields(Outcome)]
        return {
            name: float(np.mean([row[name] for row in chosen])) for name in names
        } | _alarm_rates(chosen)


def _alarm_rates(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Share of the harmful cases that the alarm caught, and of the harmless ones in which it sounded."""
    harmful, harmless = (
        sum(row[name] * row["systems"] for row in rows) for name in ("harmful", "harmless")
    )
    caught, false = (sum(row[name] for row in rows) for name in ("caught", "false_alarms"))
    return {
        "alarm_caught": caught / harmful if harmful else float("nan"),
        "alarm_false": false / harmless if harmless else float("nan"),
    }


def calibrate(
    systems: int = 100, draws: int = 400, seed: int = 0, runner: Runner | None = None
) -> Calibration:
    """Run the study: ``systems`` random systems in each of the cells."""
    parts = [partial(_rates, cell, systems, draws, seed) for cell in cells()]
    settings = {"study": "calibration", "systems": systems, "draws": draws, "seed": seed}
    rows = (runner or Runner()).run("Simulating", parts, settings)
    return Calibration(systems, draws, seed, rows)


def _rates(cell: Cell, systems: int, draws: int, seed: int) -> dict[str, Any]:
    """A row of the study: the rates of a cell."""
    found = list(outcomes(cell, systems, draws, seed))
    rates = {f.name: float(np.mean([getattr(o, f.name) for o in found])) for f in fields(Outcome)}
    alarms = {
        "systems": systems,
        "caught": sum(o.alarm and o.harmful for o in found),
        "false_alarms": sum(o.alarm and o.harmless for o in found),
    }
    return {**asdict(cell), **rates, **alarms}


def table(result: Calibration) -> str:
    """The pooled rates as a page of Markdown."""
    names = {
        "cover_new": "value of TL",
        "cover_random": "value of random",
        "cover_to_random": "TL - random",
        "cover_to_logged": "TL - logged",
        "wrong_to_random": "wrong against random",
        "wrong_to_logged": "wrong against logged",
        "decided_to_random": "decided against random",
        "decided_to_logged": "decided against logged",
        "alarm_caught": "harm caught",
        "alarm_false": "false alarm",
    }
    lines = [
        f"{result.systems * len(result.rows):,} systems, {result.draws} draws each. Coverage of the stated 90 % "
        "intervals, then rates of verdicts and alarms.",
        "",
        f"| past | records | {' | '.join(names.values())} |",
        "|---|---|" + "---|" * len(names),
    ]
    for past, k in product(PASTS, RECORDS):
        rates = result.pooled(past, k)
        shown = ("" if np.isnan(rates[name]) else f"{100 * rates[name]:.0f} %" for name in names)
        lines.append(f"| {past} | {k} | {' | '.join(shown)} |")
    return "\n".join([*lines, ""])
