"""Do the stated intervals hold on ICU-Sepsis? Survival of every rule is known there exactly.

From logs of the published expert, methods learn rules to survive, and `evaluate` states survival
with intervals: of the learned rule, of what was done, of the expert's own rule, of acting at random
and of the differences. The study compares them with the truth.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.interval import Interval
from pastwise.goals.goal import Goal
from pastwise.policy.learner import TransferLearner
from pastwise.report.text import markdown_table, write_csv
from pastwise.studies.output import save_json
from pastwise.studies.runner import Runner
from pastwise.studies.systems import icu_sepsis

SIZES = (200, 2000, 20_000)
"""Episodes of the logs."""

METHODS = ("TL", "TL_foresight")
"""Methods whose rules are judged."""

QUANTITIES = ("rule", "what was done", "expert", "random", "rule - done", "rule - random")
"""What is stated."""


@dataclass(frozen=True)
class Statement:
    """An interval that was stated, next to the truth.

    Attributes
    ----------
    episodes, log, method
        The size of the log, its number, and who learned from it.
    quantity : str
        One of `QUANTITIES`.
    """

    episodes: int
    log: int
    method: str
    quantity: str
    mean: float
    low: float
    high: float
    truth: float

    @property
    def holds(self) -> bool:
        """Whether the interval contains the truth."""
        return self.low <= self.truth <= self.high


@dataclass(frozen=True)
class IcuCalibration:
    """Results of the study: statements in the order of logs, methods and quantities."""

    logs: int
    samples: int
    seed: int
    statements: list[Statement]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "settings": {"logs": self.logs, "samples": self.samples, "seed": self.seed},
            "rows": [asdict(statement) for statement in self.statements],
        }

    def write(self, folder: Path) -> None:
        """Write the table and the statements into a folder."""
        save_json(folder / "icu-calibration.json", self.to_dict())
        write_csv(folder / "icu-calibration.csv", self.to_dict()["rows"])
        (folder / "icu-calibration.md").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """Coverage, mean error and mean width of each quantity, as a page of Markdown."""
        sizes = sorted({statement.episodes for statement in self.statements})
        methods = dict.fromkeys(statement.method for statement in self.statements)
        rows = []
        for episodes, method in product(sizes, methods):
            cells = [self._cell(episodes, method, quantity) for quantity in QUANTITIES]
            rows.append([f"{episodes:,}", method, *cells])
        lines = [
            f"Coverage of 90 % intervals (mean error, mean width) over {self.logs} logs of each "
            f"size, {self.samples} samples each.",
            "",
            *markdown_table(["episodes", "method", *QUANTITIES], rows),
            "",
        ]
        return "\n".join(lines)

    def _cell(self, episodes: int, method: str, quantity: str) -> str:
        """Such as: 90 % (+0.004, 0.031)."""
        key = (episodes, method, quantity)
        chosen = [each for each in self.statements if key == _key(each)]
        held = sum(each.holds for each in chosen)
        error = np.mean([each.mean - each.truth for each in chosen])
        width = np.mean([each.high - each.low for each in chosen])
        return f"{100 * held / len(chosen):.0f} % ({error:+.3f}, {width:.3f})"


def _key(statement: Statement) -> tuple[int, str, str]:
    return statement.episodes, statement.method, statement.quantity


def icu_calibration(
    sizes: tuple[int, ...] = SIZES,
    logs: int = 10,
    samples: int = 200,
    seed: int = 0,
    runner: Runner | None = None,
    methods: tuple[str, ...] = METHODS,
) -> IcuCalibration:
    """Run the study: ``logs`` logs of each size, from which each method learns."""
    parts = [
        partial(_statements, episodes, log, method, samples, seed)
        for episodes, log, method in product(sizes, range(logs), methods)
    ]
    settings = {
        "study": "icu-calibration",
        "sizes": sizes,
        "logs": logs,
        "samples": samples,
        "seed": seed,
        "methods": methods,
    }
    found = (runner or Runner()).run("Evaluating", parts, settings)
    statements = [Statement(**row) for rows in found for row in rows]
    return IcuCalibration(logs, samples, seed, statements)


def _statements(
    episodes: int, log: int, method: str, samples: int, seed: int
) -> list[dict[str, Any]]:
    """What is stated from one log about the rule of one method, as plain values."""
    icu = icu_sepsis()
    expert = icu.rules["expert"]
    rng = np.random.default_rng([seed, episodes, log])
    counts = icu.log(expert, episodes, rng)
    goal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(icu.success)})
    learner = TransferLearner(goal, method=method).fit(counts)
    result = learner.evaluate(samples=samples, rules={"expert": expert})

    # The truth.
    survival = {
        "rule": icu.success_and_length(learner.rule_.probabilities)[0],
        "done": icu.success_and_length(expert)[0],
        "random": icu.success_and_length(icu.random)[0],
    }
    stated: dict[str, tuple[Interval, float]] = {
        "rule": (result.values["new"], survival["rule"]),
        "what was done": (result.values["logged"], survival["done"]),
        "expert": (result.values["expert"], survival["done"]),
        "random": (result.values["random"], survival["random"]),
        "rule - done": (result.differences["to_logged"], survival["rule"] - survival["done"]),
        "rule - random": (result.differences["to_random"], survival["rule"] - survival["random"]),
    }
    rows = []
    for quantity, (interval, truth) in stated.items():
        statement = Statement(
            episodes, log, method, quantity, interval.mean, interval.low, interval.high, truth
        )
        rows.append(asdict(statement))
    return rows
