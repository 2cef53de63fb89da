"""Why an action has its probability."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pastwise.data.space import Label, key_of


@dataclass(frozen=True)
class Evidence:
    """Past transitions of one kind and the part of a probability that they carry."""

    next_state: Label
    records: int
    similarity: float
    share: float


@dataclass(frozen=True)
class Reason:
    """Why an action has its probability: the parts of the prior and of past transitions, which add up to it."""

    probability: float
    prior: float
    evidence: tuple[Evidence, ...]

    def lines(self) -> Iterator[str]:
        """In words."""
        for e in sorted(self.evidence, key=lambda e: -e.share):
            yield f"{e.share:.4g} from {_records(e)}, similarity {e.similarity:.4g}"
        yield f"{self.prior:.4g} from the prior"


@dataclass(frozen=True)
class Foreseen:
    """Past transitions of one kind, the share of the action's records that they are, and what they are wanted for.

    ``similarity`` is how well one of them serves the goal by itself.
    """

    next_state: Label
    records: int
    similarity: float
    share: float


@dataclass(frozen=True)
class PlannedReason:
    """Why a planner gives an action its probability.

    Attributes
    ----------
    value : what is foreseen of the action; None where the goal does not allow it
    doubt : what the doubt of that value adds to it
    example : what the past's example adds
    evidence : the transitions that the value rests on
    """

    probability: float
    value: float | None
    doubt: float
    example: float
    evidence: tuple[Foreseen, ...]

    def lines(self) -> Iterator[str]:
        """In words."""
        if self.value is None:
            yield "not allowed by the goal"
        else:
            yield f"value {self.value:.4g}, doubt {self.doubt:+.4g}, the past's example {self.example:+.4g}"
        for e in self.evidence:
            yield f"rests on {_records(e)} ({100 * e.share:.3g} %), similarity {e.similarity:.4g}"
        if not self.evidence:
            yield "rests on no record"


def _records(evidence: Evidence | Foreseen) -> str:
    plural = "s" if evidence.records != 1 else ""
    return f"{evidence.records} record{plural} that led to {key_of(evidence.next_state)}"


@dataclass(frozen=True)
class Explanation:
    """Why the rule of a state is what it is; the reasons are of TL's kind or a planner's."""

    state: Label
    actions: Mapping[Label, Reason | PlannedReason]
    method: str = "TL"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, labels by their keys."""
        return {
            "state": key_of(self.state),
            "actions": {
                key_of(action): {
                    **vars(reason),
                    "evidence": [
                        {**vars(e), "next_state": key_of(e.next_state)} for e in reason.evidence
                    ],
                }
                for action, reason in self.actions.items()
            },
            "method": self.method,
        }

    def __str__(self) -> str:
        lines = [f"In {key_of(self.state)}{'' if self.method == 'TL' else f', by {self.method}'}:"]
        for action, reason in sorted(self.actions.items(), key=lambda item: -item[1].probability):
            lines += [
                f"  {key_of(action)}  {reason.probability:.4g}",
                *(f"    {line}" for line in reason.lines()),
            ]
            if self.method == "TL_explore":
                lines[-1] += " and for exploring"
        return "\n".join(lines)
