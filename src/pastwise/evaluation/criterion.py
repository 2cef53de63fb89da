"""What a rule is judged by.

A goal gives each transition a *utility*: the reward, or how much the next state (or the action) is
preferred relative to the best one. The value of a rule is its mean utility over the horizon, such
as the share of time in the preferred states. Where episodes end and their end is what matters, it
is the total utility until then, such as the probability of ending well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.goals.goal import Goal
from pastwise.theory.fpd import require_horizon


@dataclass(frozen=True, eq=False)
class Criterion:
    """What a rule is judged by.

    Attributes
    ----------
    utility : [S], or broadcastable to [S, A, S]
        Of arriving in each state, such as 1 in the preferred ones; or of each transition.
    initial : [S]
        Distribution of the start state.
    horizon : int
        Number of epochs, at most.
    ends : [number], optional
        Absent: the value is the mean utility over the horizon. Given: it is the total utility until
        one of these states is entered.
    allowed : [1 or S, A], optional
        The actions that the optimal policy may take; all by default.
    measure : str
        Name of the value, for tables and sentences.
    """

    utility: FloatArray
    initial: FloatArray
    horizon: int = 100
    ends: IntArray | None = None
    allowed: BoolArray | None = None
    measure: str = "value"

    def __post_init__(self) -> None:
        require_horizon(self.horizon)

    @classmethod
    def of(
        cls,
        goal: Goal,
        log: TransitionCounts,
        initial: FloatArray,
        horizon: int = 100,
        allowed: BoolArray | None = None,
    ) -> Criterion:
        """The criterion that a goal implies for rules over a log's labels."""
        utility = goal.score(log.states, log.actions)

        # The end of an episode matters for rewards and for utilities of transitions, which add up;
        # for preferred states only if all of them are terminal.
        if goal.reward or utility.ndim > 1:
            end_matters = True
        else:
            preferred = np.flatnonzero(utility)
            end_matters = bool(np.isin(preferred, log.terminal).all())
        until_end = end_matters and len(log.terminal) > 0

        return cls(
            utility,
            initial,
            horizon,
            ends=log.terminal if until_end else None,
            allowed=allowed,
            measure=_measure(goal, utility, until_end),
        )


def _measure(goal: Goal, utility: FloatArray, until_end: bool) -> str:
    """Name of the value: mean over the horizon, or total until the end."""
    if goal.reward:
        return "total reward of an episode" if until_end else "mean reward"
    if utility.ndim > 1:
        return "total utility of an episode" if until_end else "mean utility of a step"
    if not until_end:
        return "share of time as wanted"
    all_or_nothing = np.isin(utility, (0.0, 1.0)).all()
    return "chance of ending well" if all_or_nothing else "utility of the end"


def initial_distribution(log: TransitionCounts) -> FloatArray:
    """Distribution of the start state, from a log: [S].

    In a log with terminal states an episode starts where it does not arrive, so the surplus of
    departures over arrivals counts the starts. Any other log is taken as one long trajectory, with
    its visits to each state as the distribution.
    """
    departures = log.by_state_action(log.weight).sum(axis=-1)
    arrivals = group_sum(log.next_state, log.weight, len(departures))
    surplus = np.maximum(departures - arrivals, 0.0)
    if len(log.terminal) and surplus.any():
        return normalise(surplus)
    return normalise(departures)
