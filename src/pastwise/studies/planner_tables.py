"""Tables of a study of methods: means, and paired differences to the best of the others.

A *cell* is a family with a past. Its systems are independent, while the logs of one system are not:
intervals are over the means of the systems. The best of the others is the one with the best mean in
the cell, which is known only afterwards: the comparison favours the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, sqrt
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval
from pastwise.report.text import markdown_table, write_csv
from pastwise.studies.output import save_json
from pastwise.studies.summary import mean_interval, standard_error

SMALLEST_RANGE = 0.02
"""Where the optimum exceeds random actions by less, in shares of the score's range, a share of it
would be mostly noise."""

OTHERS = ("TL", "TL_explore", "FPD_learn", "clone", "Rand")
"""The methods that a new one is compared with."""

MARGIN = 0.01
"""A difference that is clearly below minus this is a fault."""


@dataclass(frozen=True)
class Outcome:
    """What each method achieved after one log.

    Attributes
    ----------
    family, index : str, int
        The system.
    past : str
        Who left the log.
    records : int
        Length of the log.
    num_states, num_actions : int
        Size of the system.
    random, optimum : float
        Values of random actions and of the best rule.
    values : by method
    epochs : int, optional
        Epochs that the methods acted for; absent where they learned from the log alone.
    """

    family: str
    index: int
    past: str
    records: int
    num_states: int
    num_actions: int
    random: float
    optimum: float
    values: Mapping[str, float]
    epochs: int | None = None

    @property
    def is_flat(self) -> bool:
        """Whether there is hardly anything to gain."""
        return self.optimum - self.random < SMALLEST_RANGE

    def share(self, method: str) -> float:
        """Gain over random actions as a share of what there is to gain.

        Where there is hardly anything, it is the gain itself.
        """
        gain = self.values[method] - self.random
        return gain if self.is_flat else gain / (self.optimum - self.random)


@dataclass(frozen=True)
class Cell:
    """A family and a past.

    Attributes
    ----------
    family, past : str
    systems : int
    means : by method
        Mean share.
    best_other : str
        The best of the other methods, by the mean.
    difference : Interval
        Mean paired difference of the method in question to the best of the others.
    """

    family: str
    past: str
    systems: int
    means: Mapping[str, float]
    best_other: str
    difference: Interval

    @property
    def is_fault(self) -> bool:
        """Whether the method is clearly below the best of the others by more than the margin."""
        return self.difference.high < -MARGIN

    def to_dict(self) -> dict[str, Any]:
        """One level of names and plain values, for a table or JSON."""
        numbers = self.difference.to_dict()
        return {
            "family": self.family,
            "past": self.past,
            "systems": self.systems,
            **{f"mean_{name}": mean for name, mean in self.means.items()},
            "best_other": self.best_other,
            "difference": numbers["mean"],
            "low": numbers["low"],
            "high": numbers["high"],
            "fault": self.is_fault,
        }


FLAT = "nothing to gain"
"""Name of the cells of all systems in which there is hardly anything to gain."""


@dataclass(frozen=True)
class Scores:
    """Results of a study of methods.

    Attributes
    ----------
    methods : names
    outcomes : sequence of Outcome
    """

    methods: tuple[str, ...]
    outcomes: Sequence[Outcome]

    @classmethod
    def of_parts(
        cls, methods: tuple[str, ...], parts: Iterable[Iterable[Mapping[str, Any]]]
    ) -> Scores:
        """The scores in the parts of a study, which are plain values."""
        return cls(methods, [Outcome(**row) for rows in parts for row in rows])

    def where(self, **levels: Any) -> Scores:
        """The scores of some outcomes, such as those with ``past="random", records=40``."""
        chosen = []
        for outcome in self.outcomes:
            if all(getattr(outcome, name) == level for name, level in levels.items()):
                chosen.append(outcome)
        return Scores(self.methods, chosen)

    @property
    def to_gain(self) -> list[Outcome]:
        """Outcomes in systems where there is something to gain."""
        return [outcome for outcome in self.outcomes if not outcome.is_flat]

    @property
    def flat(self) -> list[Outcome]:
        """Outcomes in the other systems."""
        return [outcome for outcome in self.outcomes if outcome.is_flat]

    def mean(self, method: str, **levels: Any) -> float:
        """Mean share of a method where there is something to gain.

        Every cell counts the same. ``levels`` chooses outcomes, such as ``past="random"``.
        """
        by_cell: dict[tuple[str, str], list[float]] = {}
        for outcome in self.where(**levels).to_gain:
            key = (outcome.family, outcome.past)
            by_cell.setdefault(key, []).append(outcome.share(method))
        return float(np.mean([np.mean(shares) for shares in by_cell.values()]))

    def cells(self, method: str, others: Sequence[str] | None = None) -> list[Cell]:
        """Every family with every past; at the end the systems with nothing to gain, by past."""
        others = self._others(method, others)
        cells = []
        for family, past in _distinct(self.to_gain, lambda x: (x.family, x.past)):
            chosen = [x for x in self.to_gain if (x.family, x.past) == (family, past)]
            cells.append(self._cell(method, others, family, past, chosen))
        for past in _distinct(self.flat, lambda x: x.past):
            chosen = [x for x in self.flat if x.past == past]
            cells.append(self._cell(method, others, FLAT, past, chosen))
        return cells

    def _others(self, method: str, others: Sequence[str] | None) -> list[str]:
        """The given methods or, of the usual ones, those that took part."""
        chosen = OTHERS if others is None else others
        return [name for name in chosen if name in self.methods and name != method]

    def _cell(
        self, method: str, others: Sequence[str], family: str, past: str, chosen: list[Outcome]
    ) -> Cell:
        by_system = {name: _system_means(chosen, name) for name in self.methods}
        means = {name: float(shares.mean()) for name, shares in by_system.items()}
        best_other = max(others, key=lambda name: means[name])
        return Cell(
            family=family,
            past=past,
            systems=len(by_system[method]),
            means=means,
            best_other=best_other,
            difference=mean_interval(by_system[method] - by_system[best_other]),
        )

    def overall(self, method: str, others: Sequence[str] | None = None) -> Interval:
        """Mean difference to the best of the others in each cell, where every cell counts the same.

        The families are strata: the interval is over the systems of each.
        """
        best = {}
        for cell in self.cells(method, others):
            best[cell.family, cell.past] = cell.best_other
        means = []
        squared_errors = []
        for family in _distinct(self.to_gain, lambda x: x.family):
            chosen = [x for x in self.to_gain if x.family == family]
            differences = _mean_by_system(
                chosen, lambda x: x.share(method) - x.share(best[x.family, x.past])
            )
            error = standard_error(differences)
            means.append(differences.mean())
            squared_errors.append(inf if error is None else error**2)
        mean = float(np.mean(means))
        half_width = 1.96 * sqrt(sum(squared_errors)) / len(means)
        return Interval(mean, mean - half_width, mean + half_width, 0.95)

    def rows(self) -> list[dict[str, Any]]:
        """Every outcome with its shares, as rows of a table."""
        rows = []
        for outcome in self.outcomes:
            row = asdict(outcome)
            del row["values"]
            row["nothing_to_gain"] = outcome.is_flat
            for name in self.methods:
                row[name] = outcome.share(name)
            rows.append(row)
        return rows

    def page(self, method: str, others: Sequence[str] | None = None) -> str:
        """The results as Markdown: means by what varies, then the cells, then the faults."""
        if not self.to_gain:
            return "No system in which there is anything to gain.\n"
        overall = self.overall(method, others)
        lines = [
            f"{len(self.outcomes):,} logs, {len(self.flat):,} of them with nothing to gain. "
            f"{method} - best other, mean of all cells: {_shown(overall)}.",
            "",
        ]

        # Means.
        for by in ("family", "past", "records", "epochs"):
            levels = _distinct(self.to_gain, attrgetter(by))
            if levels == [None]:
                continue
            rows = []
            for level in levels:
                means = [f"{self.mean(name, **{by: level}):.3f}" for name in self.methods]
                rows.append([str(level), *means])
            rows.append(["all", *[f"{self.mean(name):.3f}" for name in self.methods]])
            lines += [*markdown_table([by, *self.methods], rows), ""]

        # Cells.
        cells = self.cells(method, others)
        rows = []
        for cell in cells:
            means = [f"{cell.means[name]:.2f}" for name in self.methods]
            rows.append([cell.family, cell.past, *means, cell.best_other, _shown(cell.difference)])
        header = ["family", "past", *self.methods, "best other", f"{method} - best other"]
        lines += [*markdown_table(header, rows), ""]

        # Faults.
        faults = [cell for cell in cells if cell.is_fault]
        lines.append(
            f"Clearly below the best other by more than {MARGIN:g}: "
            f"{len(faults)} of {len(cells)} cells."
        )
        for cell in faults:
            lines.append(f"- {cell.family}, {cell.past}: {_shown(cell.difference)}")
        lines.append("")
        return "\n".join(lines)


@dataclass(frozen=True)
class Comparison:
    """A method compared with others, offline and online.

    Attributes
    ----------
    candidate : str
        The method in question.
    offline, online : Scores
        Without outcomes where a part of the study was left out.
    settings : plain values
    """

    candidate: str
    offline: Scores
    online: Scores
    settings: Mapping[str, Any]

    @property
    def parts(self) -> dict[str, Scores]:
        """The parts that are there, by name."""
        parts = {"offline": self.offline, "online": self.online}
        return {name: scores for name, scores in parts.items() if scores.outcomes}

    def rows(self) -> list[dict[str, Any]]:
        """The cells of all parts, as rows of a table."""
        rows = []
        for name, scores in self.parts.items():
            for cell in scores.cells(self.candidate):
                rows.append({"part": name, **cell.to_dict()})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        overall = {}
        for name, scores in self.parts.items():
            if scores.to_gain:
                overall[name] = scores.overall(self.candidate).to_dict()
        return {"settings": dict(self.settings), "overall": overall, "cells": self.rows()}

    def write(self, folder: Path) -> None:
        """Write tables and the page into a folder."""
        write_csv(folder / "planners.csv", self.rows())
        for name, scores in self.parts.items():
            write_csv(folder / f"{name}.csv", scores.rows())
        save_json(folder / "planners.json", self.to_dict())
        (folder / "planners.md").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """The results as a page of Markdown."""
        titles = {"offline": "From logs alone", "online": "Acting and learning"}
        sections = []
        for name, scores in self.parts.items():
            sections.append(f"## {titles[name]}\n\n{scores.page(self.candidate)}")
        return "\n".join(sections)


def _distinct(outcomes: Sequence[Outcome], key: Callable[[Outcome], Any]) -> list[Any]:
    """The values of a key that occur, in their order."""
    return list(dict.fromkeys(key(outcome) for outcome in outcomes))


def _mean_by_system(
    outcomes: Sequence[Outcome], quantity: Callable[[Outcome], float]
) -> FloatArray:
    """The mean of a quantity over the logs of each system: [systems]."""
    by_system: dict[tuple[str, int], list[float]] = {}
    for outcome in outcomes:
        by_system.setdefault((outcome.family, outcome.index), []).append(quantity(outcome))
    return np.array([np.mean(values) for values in by_system.values()])


def _system_means(outcomes: Sequence[Outcome], method: str) -> FloatArray:
    return _mean_by_system(outcomes, lambda outcome: outcome.share(method))


def _shown(interval: Interval) -> str:
    return f"{interval.mean:+.3f} ({interval.low:+.3f} to {interval.high:+.3f})"
