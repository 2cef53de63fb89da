"""How much a rule depends on who left the log.

TL_foresight follows the past's example as far as the past was good for today's goal. A short log,
or one in which people hardly ever did anything else, does not show how good that was, but somebody
may know. `PastDependence` says how much of the rule depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.foresight import TLForesight

MOST_STATES = 1000
"""Two more plans take about a second at this size, and much longer above it."""

SHARE_THAT_MATTERS = 0.3
"""Knowing the skill of the past hardly adds anything where it changes a smaller share of decisions.
It was chosen on the families of ``pastwise study planners --group chosen``; see
`studies.known_past`."""


@dataclass(frozen=True)
class PastDependence:
    """How many decisions would be others if it were known how good the past was.

    States count as often as the log visited them.

    Attributes
    ----------
    skilled, opposed : float
        Share of decisions that are others after people who had today's goal, and after people who
        had the opposite one.
    """

    skilled: float
    opposed: float

    @classmethod
    def of(
        cls, method: AnyMethod, counts: TransitionCounts, ideal: IdealModel, rule: FloatArray
    ) -> PastDependence | None:
        """The dependence of the rule [S, A] that a method learned from a single log for a goal.

        None where the method infers no skill, and above `MOST_STATES`.
        """
        if not isinstance(method, TLForesight) or method.past_skill is not None:
            return None
        if len(counts.states) > MOST_STATES:
            return None

        memory = method.start(counts, ideal)
        visits = counts.by_state_action(counts.weight).sum(axis=-1)
        return cls(
            skilled=_share_of_others(rule, method.plan_after(memory, 1.0).rule, visits),
            opposed=_share_of_others(rule, method.plan_after(memory, -1.0).rule, visits),
        )

    @property
    def share(self) -> float:
        """Share of decisions that depend on the past at most."""
        return max(self.skilled, self.opposed)

    @property
    def matters(self) -> bool:
        """Whether to find out who left the log."""
        return self.share > SHARE_THAT_MATTERS

    @property
    def sentence(self) -> str:
        """What to find out, and what it changes."""
        skilled = f"{100 * self.skilled:.0f} %"
        opposed = f"{100 * self.opposed:.0f} %"
        return (
            "the rule depends on how good the past was for this goal, which the log hardly shows: "
            f"after people who had this goal {skilled} of the decisions would be others, after "
            f"people who had the opposite one {opposed}; if you know, learn or retarget with "
            "--param past_skill=1, 0 or -1 (TLForesight(past_skill=1))"
        )


def _share_of_others(rule: FloatArray, other_rule: FloatArray, visits: FloatArray) -> float:
    """Share of decisions in which two rules [S, A] differ, in states visited so often: [S]."""
    differ = np.abs(rule - other_rule).sum(axis=-1) / 2
    return float(differ @ normalise(visits)) if visits.any() else 0.0
