"""Do the stated intervals hold? Thousands of random systems whose true values are known.

In each system a decision maker leaves a log, TL learns from it, and `evaluation` states values,
differences, a verdict and an alarm from the log alone. Then the study compares them with the truth.

Some logs come from decision makers that do not know the system (*unaware*: a random rule, sampled
without looking at it). Others come from FPD, which does, for a *matched*, *overlapping* or
*opposed* goal. FPD avoids what is bad for its goal; its actions reveal that, transition counts do
not. There the intervals cannot be expected to hold, and the study shows by how much they miss.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import rule_values, sample_values
from pastwise.evaluation.verdict import DEFAULT_THRESHOLDS, Alarm, Verdict, compare
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.baselines import Scripted, behaviour_rule
from pastwise.methods.fpd import FPD
from pastwise.methods.tl import TL
from pastwise.models.dense import DenseModel
from pastwise.models.samples import DenseSamples, TransitionPosterior
from pastwise.report.study_figures import Curve, coverage_plot
from pastwise.report.text import markdown_table, write_csv
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.studies.output import save_figure, save_json
from pastwise.studies.paper import ROW_SAMPLERS, random_models
from pastwise.studies.runner import Runner
from pastwise.theory.closed_loop import ideal_preferring

# Settings.

SIZES = ((3, 4), (5, 3), (10, 5))
"""Numbers of states and of actions."""

RECORDS = (60, 200, 1000)
"""Lengths of the logs."""

PASTS: Mapping[str, tuple[int, ...] | None] = {
    "unaware": None,
    "matched": (0,),
    "overlapping": (0, 1),
    "opposed": (-1,),
}
"""The states that the past goal preferred; None: the behaviour does not depend on the system.

Today's goal prefers the first state.
"""

UTILITY_RANGE = 1.0
"""The utility is 1 in the preferred state and 0 elsewhere."""

HARMFUL_DIFFERENCE = 0.03
"""TL is harmful if it is worse than random by this share of time, 3 visits in 100."""


@dataclass(frozen=True)
class Cell:
    """One combination of settings."""

    past: str
    rows: str
    num_states: int
    num_actions: int
    num_records: int


def cells() -> list[Cell]:
    """All combinations."""
    combinations = product(PASTS, ROW_SAMPLERS, SIZES, RECORDS)
    return [Cell(past, rows, *size, records) for past, rows, size, records in combinations]


# One system.


@dataclass(frozen=True)
class Outcome:
    """What was stated about one system, compared with the truth.

    Attributes
    ----------
    cover_* : bool
        Whether the stated interval of a value, or of a difference of values, contains the truth.
    wrong_to_*, decided_to_* : bool
        Whether the verdict says the opposite of the truth; whether it decides at all.
    alarm : bool
        Whether the alarm of negative transfer was raised.
    harmful, harmless : bool
        Whether TL is truly worse than random by `HARMFUL_DIFFERENCE`; whether it is not worse.
    """

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


OUTCOME_NAMES = tuple(field.name for field in fields(Outcome))


def outcomes(cell: Cell, num_systems: int, num_samples: int, seed: int) -> Iterator[Outcome]:
    """The outcome of every system of a cell."""
    S = cell.num_states
    A = cell.num_actions

    # Random systems, and the logs that the past left in them.
    seeds = [np.random.SeedSequence(seed, spawn_key=(i,)) for i in range(num_systems)]
    system_stream, past_stream = Streams(seeds).spawn(2)
    model = random_models(ROW_SAMPLERS[cell.rows], S, A, system_stream)
    system = FiniteSystem(model)
    teacher, past_ideal = _teacher(cell, model, np.random.default_rng(seed))
    log = run(system, teacher, cell.num_records, past_stream, ideal=past_ideal).transitions

    # Statements from each log alone, and the truth.
    method = TL()
    ideal = ideal_preferring((0,), S, A)
    criterion = Criterion(np.eye(S)[0], np.full(S, 1 / S))
    for i in range(num_systems):
        own_log = Transitions(*[field[i] for field in log])
        counts = TransitionCounts.from_transitions(own_log, system.states, system.actions)
        rules = {
            "new": method.plan(method.start(counts, ideal)).rule,
            "logged": behaviour_rule(counts),
            "random": np.full((S, A), 1 / A),
        }
        posterior = TransitionPosterior(counts)
        samples = sample_values(posterior, rules, criterion, num_samples, seed=i, threads=1)
        if samples.number < num_samples:
            raise KeyboardInterrupt  # it cut the sampling short
        true_model = DenseSamples(model.transition[i : i + 1])
        truth = rule_values(true_model, np.stack(list(rules.values())), criterion)
        yield _outcome(samples.values[:, :3], truth[0, :3])


def _teacher(
    cell: Cell, model: DenseModel, rng: np.random.Generator
) -> tuple[AnyMethod, IdealModel | None]:
    """The decision maker that leaves the log, and its goal if it has one."""
    preferred = PASTS[cell.past]
    if preferred is None:
        rule = rng.dirichlet(np.ones(cell.num_actions), size=(*model.shape, cell.num_states))
        return Scripted(rule[:, None]), None
    states = tuple(state % cell.num_states for state in preferred)
    return FPD(model), ideal_preferring(states, cell.num_states, cell.num_actions)


def _outcome(values: FloatArray, truth: FloatArray) -> Outcome:
    """Sampled values [samples, 3] of new, logged and random compared with the true ones [3]."""
    new, logged, random = values.T
    true_new, true_logged, true_random = truth.tolist()
    differences = {"logged": new - logged, "random": new - random}
    true_to_logged = true_new - true_logged
    true_to_random = true_new - true_random
    margin = DEFAULT_THRESHOLDS.margin_for(UTILITY_RANGE)
    comparisons = compare(differences, margin)
    to_logged = comparisons["logged"].verdict
    to_random = comparisons["random"].verdict
    return Outcome(
        cover_new=_covers(new, true_new),
        cover_logged=_covers(logged, true_logged),
        cover_random=_covers(random, true_random),
        cover_to_random=_covers(differences["random"], true_to_random),
        cover_to_logged=_covers(differences["logged"], true_to_logged),
        wrong_to_random=_is_wrong(to_random, true_to_random),
        wrong_to_logged=_is_wrong(to_logged, true_to_logged),
        decided_to_random=to_random != "cannot tell",
        decided_to_logged=to_logged != "cannot tell",
        alarm=Alarm.of_samples(differences["random"], comparisons["logged"], margin).raised,
        harmful=true_to_random <= -HARMFUL_DIFFERENCE,
        harmless=true_to_random >= 0,
    )


def _covers(samples: FloatArray, truth: float) -> bool:
    return Interval.of_samples(samples).covers(truth)


def _is_wrong(verdict: Verdict, true_difference: float) -> bool:
    if verdict == "better":
        return true_difference < 0
    if verdict == "worse":
        return true_difference > 0
    return False


# All systems.


class CellRates(TypedDict):
    """Plain values of a part of the study: rates by the names of `Outcome`, and two counts."""

    rates: dict[str, float]
    caught: int
    false_alarms: int


@dataclass(frozen=True)
class CellResult:
    """Rates over the systems of a cell.

    Attributes
    ----------
    rates : by the names of `Outcome`
    systems : int
    caught : int
        Harmful cases in which the alarm was raised.
    false_alarms : int
        Harmless cases in which it was.
    """

    cell: Cell
    rates: Mapping[str, float]
    systems: int
    caught: int
    false_alarms: int

    def to_dict(self) -> dict[str, Any]:
        """One level of names and plain values, for a table or JSON."""
        return {
            **asdict(self.cell),
            **self.rates,
            "systems": self.systems,
            "caught": self.caught,
            "false_alarms": self.false_alarms,
        }


@dataclass(frozen=True)
class Calibration:
    """Results of the study, in the order of the cells."""

    systems: int
    samples: int
    seed: int
    results: list[CellResult]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "settings": {"systems": self.systems, "samples": self.samples, "seed": self.seed},
            "rows": [result.to_dict() for result in self.results],
        }

    def write(self, folder: Path) -> None:
        """Write the table, the rates and the figure into a folder."""
        write_csv(folder / "calibration.csv", [result.to_dict() for result in self.results])
        save_json(folder / "calibration.json", self.to_dict())
        (folder / "calibration.md").write_text(self.page(), encoding="utf-8")
        figure = coverage_plot(self._coverage(), DEFAULT_THRESHOLDS.level)
        save_figure(figure, folder, "calibration")

    def _coverage(self) -> dict[str, list[Curve]]:
        """For the figure: a curve per past of each quantity."""
        quantities = {
            "value of TL": "cover_new",
            "TL minus random": "cover_to_random",
            "TL minus logged": "cover_to_logged",
        }
        panels = {}
        for title, name in quantities.items():
            curves = []
            for past in PASTS:
                rates = [self.pooled(past, records)[name] for records in RECORDS]
                curves.append(Curve(past, RECORDS, rates))
            panels[title] = curves
        return panels

    def pooled(self, past: str, num_records: int) -> dict[str, float]:
        """Rates over all sizes and row samplers, for a past and a number of records."""
        chosen = [
            result
            for result in self.results
            if result.cell.past == past and result.cell.num_records == num_records
        ]
        rates = {}
        for name in OUTCOME_NAMES:
            rates[name] = float(np.mean([result.rates[name] for result in chosen]))

        # Of the harmful cases the share that the alarm caught, of the harmless ones false alarms.
        harmful = sum(result.rates["harmful"] * result.systems for result in chosen)
        harmless = sum(result.rates["harmless"] * result.systems for result in chosen)
        caught = sum(result.caught for result in chosen)
        false_alarms = sum(result.false_alarms for result in chosen)
        rates["alarm_caught"] = caught / harmful if harmful else float("nan")
        rates["alarm_false"] = false_alarms / harmless if harmless else float("nan")
        return rates

    def page(self) -> str:
        """The pooled rates as a page of Markdown."""
        columns = {
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
        rows = []
        for past, records in product(PASTS, RECORDS):
            rates = self.pooled(past, records)
            cells = [_percent(rates[name]) for name in columns]
            rows.append([past, str(records), *cells])
        lines = [
            f"{self.systems * len(self.results):,} systems, {self.samples} samples each. Coverage "
            "of the stated 90 % intervals, then rates of verdicts and alarms.",
            "",
            *markdown_table(["past", "records", *columns.values()], rows),
            "",
        ]
        return "\n".join(lines)


def _percent(rate: float) -> str:
    return "" if np.isnan(rate) else f"{100 * rate:.0f} %"


def calibrate(
    systems: int = 100, samples: int = 400, seed: int = 0, runner: Runner | None = None
) -> Calibration:
    """Run the study: ``systems`` random systems in each of the cells."""
    all_cells = cells()
    parts = [partial(_cell_rates, cell, systems, samples, seed) for cell in all_cells]
    settings = {"study": "calibration", "systems": systems, "samples": samples, "seed": seed}
    found = (runner or Runner()).run("Simulating", parts, settings)
    results = []
    for cell, rates in zip(all_cells, found, strict=True):
        results.append(
            CellResult(cell, rates["rates"], systems, rates["caught"], rates["false_alarms"])
        )
    return Calibration(systems, samples, seed, results)


def _cell_rates(cell: Cell, systems: int, samples: int, seed: int) -> CellRates:
    """Rates over the systems of a cell."""
    found: Sequence[Outcome] = list(outcomes(cell, systems, samples, seed))
    rates = {}
    for name in OUTCOME_NAMES:
        rates[name] = float(np.mean([getattr(outcome, name) for outcome in found]))
    return {
        "rates": rates,
        "caught": sum(outcome.alarm and outcome.harmful for outcome in found),
        "false_alarms": sum(outcome.alarm and outcome.harmless for outcome in found),
    }
