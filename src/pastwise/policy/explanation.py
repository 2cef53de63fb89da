"""Why an action has its probability: the parts of a plan, and the transitions behind them.

Nothing here knows any method: a `Plan` names its parts and says whether they add up to the
probability (TL) or are what the rule follows from (planners). Those of a planner that are in the
goal's own unit are shown as values, with the name that an evaluation gives to that unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from pastwise._display import NOTHING, Table, decimals, more_of
from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import counted_episodes, episode_noun
from pastwise.data.space import Label, key_of
from pastwise.evaluation.actions import ActionValue
from pastwise.logs.findings import counted
from pastwise.methods.base import BORROWED, DEVIATION, EXAMPLE, RECORDS, VALUE, Plan
from pastwise.policy.pictures import explanation_html

MAX_TARGETS = 6
"""Next states that the explanation of one action names; the others are counted."""

MAX_ACTIONS = 8
"""Actions that an explanation shows unless all are requested: half a screen of them."""


@dataclass(frozen=True)
class TransitionEvidence:
    """Past transitions from one state and action to one next state.

    Attributes
    ----------
    next_state : label
    records : int
        How often the transition was recorded.
    similarity : float
        Total similarity of these records to the goal.
    share : float
        Where parts add up: the part of the probability that these records carry. Otherwise:
        their share of the action's records.
    """

    next_state: Label
    records: int
    similarity: float
    share: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the label by its key."""
        return {
            "next_state": key_of(self.next_state),
            "records": self.records,
            "similarity": self.similarity,
            "share": self.share,
        }

    def __str__(self) -> str:
        plural = "" if self.records == 1 else "s"
        target = key_of(self.next_state)
        return (
            f"{self.records} record{plural} that led to {target}, similarity {self.similarity:.4g}"
        )


@dataclass(frozen=True)
class Reason:
    """Why an action has its probability.

    Attributes
    ----------
    probability : float
    is_allowed : bool
        Whether the goal allows the action.
    parts : numbers by name
        The named parts of the method's plan; see ``adds_up``.
    adds_up : bool
        Whether the parts add up to the probability; otherwise it follows from them.
    evidence : tuple of TransitionEvidence
        The transitions behind the part `RECORDS`, or behind the value; largest share first. Empty
        where the parts add up without records.
    value : ActionValue, optional
        What an evaluation says of the rule with this action always taken in the state.
    episodes : int, optional
        Number of episodes in which the action was taken in the state; None where the log has none.
    unit : str, optional
        Name of the episode column.
    """

    probability: float
    is_allowed: bool
    parts: Mapping[str, float]
    adds_up: bool
    evidence: tuple[TransitionEvidence, ...]
    value: ActionValue | None = None
    episodes: int | None = None
    unit: str | None = None

    @property
    def records(self) -> int:
        """Number of records behind the action in the state."""
        return sum(each.records for each in self.evidence)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; None for a part that rules the action out.

        The number of ``episodes`` is there only where the log has any.
        """
        parts = {
            name: number if np.isfinite(number) else None for name, number in self.parts.items()
        }
        content = {
            "probability": self.probability,
            "is_allowed": self.is_allowed,
            "parts": parts,
            "adds_up": self.adds_up,
            "evidence": [each.to_dict() for each in self.evidence],
            "value": None if self.value is None else self.value.to_dict(),
        }
        if self.episodes is not None:
            content["episodes"] = self.episodes
        return content

    def lines(self, digits: int = 3) -> Iterator[str]:
        """The reason in sentences.

        Parameters
        ----------
        digits : int
            Decimals of a value in the goal's unit.
        """
        if not self.is_allowed:
            yield "not allowed by the goal"
        if self.adds_up:
            yield from self._lines_of_shares()
        elif self.value is not None:
            yield self._judged_line(self.value)
            yield self._records_line()
        elif VALUE in self.parts and DEVIATION in self.parts:
            yield self._value_line(digits)
            yield self._records_line()
        else:
            yield from self._lines_of_index()

    def _lines_of_shares(self) -> Iterator[str]:
        for each in self.evidence[:MAX_TARGETS]:
            yield f"{each.share:.4g} from {each}"
        left_out = self.evidence[MAX_TARGETS:]
        if left_out:
            share = sum(each.share for each in left_out)
            records = counted(sum(each.records for each in left_out), "record")
            others = counted(len(left_out), "other state")
            yield f"{share:.4g} from {records} that led to {others}"
        for name, share in self.parts.items():
            if name != RECORDS:
                yield f"{share:.4g} from the {name}"

    def _judged_line(self, value: ActionValue) -> str:
        """Such as: value 0.551 ± 0.041, compared with the rule -0.022 ± 0.012; the past's ..."""
        digits = decimals([value.mean])
        line = (
            f"value {value.mean:.{digits}f} ± {value.deviation:.{digits}f}, compared with the rule "
            f"{value.difference:+.{digits}f} ± {value.difference_deviation:.{digits}f}"
        )
        deviation = self.parts.get(DEVIATION, 0.0)
        if deviation > 0:
            for cause, number in self._added():
                in_deviations = round(number / deviation, 2) + 0.0  # never -0.00
                line += f"; {cause} adds {in_deviations:+.2f} deviations"
        return line

    def _added(self) -> Iterator[tuple[str, float]]:
        """What is added to the value of the action, by its name in sentences."""
        for name, number in self.parts.items():
            if name not in (VALUE, DEVIATION, BORROWED):
                yield ("the past's example" if name == EXAMPLE else name), number

    def _value_line(self, digits: int) -> str:
        """Such as: value 0.551, standard deviation 0.012; the past's example adds +0.002."""
        value = f"{self.parts[VALUE]:.{digits}f}"
        line = f"value {value}, standard deviation {self.parts[DEVIATION]:.{digits}f}"
        for cause, number in self._added():
            line += f"; {cause} adds {number:+.{digits}f}"
        return line

    def _records_line(self) -> str:
        """Such as: 32 records of 20 days that led: 15 to comfortable, 17 to cool; 8 % of ..."""
        number = self.records
        line = f"{number:,} {'record' if number == 1 else 'records'}"
        if self.evidence and self.episodes:
            line += f" of {counted_episodes(self.episodes, self.unit)}"
        if self.evidence:
            line += f" that led: {self.targets()}"
        if BORROWED in self.parts:
            line += f"; {100 * self.parts[BORROWED]:.3g} % of the value rests on other rows"
        return line

    def targets(self) -> str:
        """Such as: 15 to comfortable, 10 to warm, 7 to cool."""
        targets = [
            f"{each.records:,} to {key_of(each.next_state)}" for each in self.evidence[:MAX_TARGETS]
        ]
        left_out = self.evidence[MAX_TARGETS:]
        if left_out:
            records = sum(each.records for each in left_out)
            targets.append(f"{records:,} to {counted(len(left_out), 'other state')}")
        return ", ".join(targets)

    def _lines_of_index(self) -> Iterator[str]:
        if self.is_allowed:
            yield ", ".join(f"{name} {number:+.4g}" for name, number in self.parts.items())
        for each in self.evidence[:MAX_TARGETS]:
            yield f"rests on {each} ({100 * each.share:.3g} % of the action's records)"
        if len(self.evidence) > MAX_TARGETS:
            left_out = len(self.evidence) - MAX_TARGETS
            yield f"rests on records that led to {counted(left_out, 'other state')}"
        if not self.evidence:
            yield "rests on no record"


def reason_of(
    plan: Plan, action: int, row: TransitionCounts, similarity: FloatArray, is_allowed: bool
) -> Reason:
    """The reason behind one action in one state.

    Parameters
    ----------
    plan : Plan
        Of that state alone: arrays [1, A].
    row : TransitionCounts
        The records of that state and action.
    similarity : [distinct]
        Similarity of each distinct transition of the row.
    """
    total_similarity = row.weight * similarity
    parts = {
        name: float(np.broadcast_to(part, plan.rule.shape)[0, action])
        for name, part in plan.parts.items()
    }

    # Shares: of the probability where the parts add up, of the action's records otherwise.
    if plan.adds_up:
        total = sum(float(np.broadcast_to(p, plan.rule.shape).sum()) for p in plan.parts.values())
        total = total or 1.0  # nothing is feasible: all parts are 0
        parts = {name: number / total for name, number in parts.items()}
        shares = total_similarity / total
        distinct = range(len(row.weight)) if RECORDS in parts else range(0)
    else:
        shares = row.weight / max(row.weight.sum(), np.finfo(float).tiny)
        distinct = range(len(row.weight))

    evidence = [
        TransitionEvidence(
            next_state=row.states.labels[row.next_state[i]],
            records=int(row.records[i]),
            similarity=float(total_similarity[i]),
            share=float(shares[i]),
        )
        for i in distinct
    ]
    return Reason(
        probability=float(plan.rule[0, action]),
        is_allowed=is_allowed,
        parts=parts if is_allowed or plan.adds_up else {},
        adds_up=plan.adds_up,
        evidence=tuple(sorted(evidence, key=lambda each: -each.share)),
    )


@dataclass(frozen=True)
class Explanation:
    """Why the rule of a state is what it is.

    Attributes
    ----------
    state : label
    method : str
        Name of the method.
    actions : reasons by action
    measure : str, optional
        What the values measure, as in an evaluation; None where no part has a unit.
    horizon : int, optional
        Number of epochs that the values are about, at most; absent for the values of the plan
        itself, which looks at the long run.
    """

    state: Label
    method: str
    actions: Mapping[Label, Reason]
    measure: str | None = None
    horizon: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; labels by their keys."""
        reasons = {key_of(action): reason.to_dict() for action, reason in self.actions.items()}
        return {
            "state": key_of(self.state),
            "method": self.method,
            "measure": self.measure,
            "horizon": self.horizon,
            "actions": reasons,
        }

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, max_actions: int | None = MAX_ACTIONS) -> str:
        """The explanation in sentences, the most probable actions first.

        Parameters
        ----------
        max_actions : int, optional
            Number of actions; None for all.
        """
        lines = [f"{self.title}:"]
        digits = self._digits()
        shown = self.by_probability()[:max_actions]
        for action, reason in shown:
            lines.append(f"  {key_of(action)}  {round(reason.probability, 4):.4g}")
            lines.extend(f"    {line}" for line in reason.lines(digits))
        left_out = more_of(len(self.actions), len(shown), "action")
        if left_out:
            lines.append(f"  {left_out}")
        return "\n".join(lines)

    @property
    def title(self) -> str:
        """Such as: In cool, by TL_foresight (value: share of time as wanted in the long run)."""
        unit = ""
        if self.measure is not None and self.horizon is None:
            unit = f" (value: {self.measure} in the long run)"
        elif self.measure is not None:
            epochs = "1 epoch" if self.horizon == 1 else f"{self.horizon:,} epochs"
            unit = f" (value ± standard deviation: {self.measure}, over {epochs})"
        return f"In {key_of(self.state)}, by {self.method}{unit}"

    def by_probability(self) -> list[tuple[Label, Reason]]:
        """The actions, the most probable first; of equals, the one with more records."""
        return sorted(
            self.actions.items(), key=lambda item: (-item[1].probability, -item[1].records)
        )

    def table(self, max_actions: int | None = MAX_ACTIONS) -> Table:
        """A row for each of the most probable actions, with its value where there is one."""
        shown = self.by_probability()[:max_actions]
        has_values = any(reason.value is not None for _, reason in shown)
        has_episodes = any(reason.episodes is not None for _, reason in shown)
        columns = ["action", "that led", "probability"]
        if has_values:
            columns += ["value", "compared with the rule"]
        columns.append("records")
        if has_episodes:
            columns.append(episode_noun(shown[0][1].unit))
        rows = []
        for action, reason in shown:
            cells = [key_of(action), reason.targets() or NOTHING, f"{reason.probability:.3f}"]
            if has_values:
                cells += _value_cells(reason.value)
            cells.append(f"{reason.records:,}")
            if has_episodes:
                cells.append(f"{reason.episodes or 0:,}")
            rows.append(tuple(cells))
        return Table(
            columns=tuple(columns),
            rows=tuple(rows),
            labels=(0, 1),
            note=more_of(len(self.actions), len(shown), "action"),
            shades={2: [reason.probability for _, reason in shown]},
        )

    def _repr_html_(self) -> str:
        return explanation_html(self, MAX_ACTIONS)

    def _digits(self, most: int = 8) -> int:
        """Decimals that show two digits of the smallest deviation of a value; at least three.

        Parameters
        ----------
        most : int
            No more than these; smaller deviations are shown as 0.
        """
        deviations = [reason.parts.get(DEVIATION, 0.0) for reason in self.actions.values()]
        positive = [number for number in deviations if 0 < number < np.inf]
        if not positive:
            return 3
        needed = 1 - floor(log10(min(positive)))
        return min(max(3, needed), most)


def _value_cells(value: ActionValue | None) -> list[str]:
    """Value and difference with their standard deviations."""
    if value is None:
        return [NOTHING, NOTHING]
    digits = decimals([value.mean])
    return [
        f"{value.mean:.{digits}f} ± {value.deviation:.{digits}f}",
        f"{value.difference:+.{digits}f} ± {value.difference_deviation:.{digits}f}",
    ]
