"""The result of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pastwise._display import decimals, number_table, to_frame
from pastwise.evaluation.values import LEAST_DRAWS, Credible, Verdict

POLICIES = {"new": "the new rule", "logged": "what was done", "random": "acting at random"}


@dataclass(frozen=True)
class Evaluation:
    """Is the rule better than what was done? Values from the log alone, with intervals, and a verdict.

    Attributes
    ----------
    values : by policy, mean and 90 % interval of the measure
        ``new``, ``logged``, ``random``, ``FPD_learn`` and ``optimum``, the best of each drawn model.
    differences : of the new rule ``to_logged`` and ``to_random``, paired on the same drawn models
    verdict : ``better``, ``worse`` or ``cannot tell`` against ``logged`` and ``random``
    alarm : whether negative transfer is likely
    support : what the rule and its evaluation rest on
    measure : what the values are, in words
    draws, asked : drawn models, and how many were asked for
    """

    values: Mapping[str, Credible]
    differences: Mapping[str, Credible]
    verdict: Mapping[str, Verdict]
    alarm: bool
    support: Mapping[str, Any]
    measure: str
    draws: int
    asked: int
    estimates: Mapping[str, Any] = field(default_factory=dict)
    backend: str | None = None

    @property
    def sentence(self) -> str:
        """The verdict in one plain sentence."""
        words = {
            "better": "better than",
            "worse": "worse than",
            "cannot tell": "not told apart from",
        }
        parts, digits = [], decimals(v.mean for v in self.values.values())
        for name in ("logged", "random"):
            d, other, said = (
                self.differences[f"to_{name}"],
                self.values[name].mean,
                words[self.verdict[name]],
            )
            if self.verdict[name] == "cannot tell" != d.verdict:
                said = f"perhaps, but not surely, {words[d.verdict]}"
            figures = f"({other:.{digits}f}; {d.mean:+.{digits}f} [{d.low:+.{digits}f}, {d.high:+.{digits}f}])"
            parts.append(f"{said} {POLICIES[name]} {figures}")
        alarm = (
            " Beware: it may well do worse than acting at random, or than what was done."
            if self.alarm
            else ""
        )
        cut = (
            f" Only {self.draws} of {self.asked} draws were made."
            if self.draws < self.asked
            else ""
        )
        few = (
            f" Fewer than {LEAST_DRAWS} draws give no verdict." if self.draws < LEAST_DRAWS else ""
        )
        new = f"The new rule ({self.measure} {self.values['new'].mean:.{digits}f})"
        return f"{new} is {' and '.join(parts)}.{alarm}{cut}{few}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "values": {name: vars(value) for name, value in self.values.items()},
            "differences": {name: vars(value) for name, value in self.differences.items()},
            "verdict": dict(self.verdict),
            "alarm": self.alarm,
            "support": dict(self.support),
            "measure": self.measure,
            "draws": self.draws,
            "asked": self.asked,
            "estimates": dict(self.estimates),
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """A row for each policy's value, each difference and each estimate from episodes: mean, low, high."""
        content, numbers = self.to_dict(), ("mean", "low", "high")
        kinds = {"value": "values", "difference": "differences", "estimate": "estimates"}
        rows = [
            (kind, name, each) for kind, key in kinds.items() for name, each in content[key].items()
        ]
        columns: dict[str, list[Any]] = {
            "quantity": [kind for kind, _, _ in rows],
            "of": [name for _, name, _ in rows],
        }
        columns |= {number: [each[number] for _, _, each in rows] for number in numbers}
        return to_frame(columns, backend or self.backend)

    def _repr_html_(self) -> str:
        rows = {
            name: {"mean": v.mean, "low": v.low, "high": v.high} for name, v in self.values.items()
        }
        return number_table(rows, self.sentence)
