"""Goals that maximise the log's own reward meet the log that has it.

A goal about states or actions needs no more than their labels. A goal with ``maximise`` needs the
mean rewards of a log as well, see `models.rewards`.
"""

from __future__ import annotations

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.errors import GoalError
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.models.rewards import RewardPosterior


def mean_rewards(goal: Goal, log: TransitionCounts) -> FloatArray | None:
    """Mean rewards of a log, [S] or [S, A, 1], where a goal maximises them; otherwise None."""
    if not goal.maximise:
        return None
    return reward_posterior(log).table


def reward_posterior(
    log: TransitionCounts, *, design_effect: float = 1.0, by_next_state: bool | None = None
) -> RewardPosterior:
    """What a log says about its mean rewards; see `RewardPosterior.of`."""
    if not log.has_rewards:
        raise GoalError(
            "the goal maximises the reward, but the log has none; name the column that holds it, "
            "reward= or --reward",
            "maximise",
        )
    pooled = log.total()
    return RewardPosterior.of(pooled, design_effect=design_effect, by_next_state=by_next_state)


def ideal_on(goal: Goal, log: TransitionCounts) -> IdealModel:
    """A goal as an ideal over the states and actions of a log, and for its rewards."""
    return goal.on(log.states, log.actions, mean_rewards(goal, log))
