"""LiveCounts: counts that grow by one record at a time.

`TransitionCounts` is frozen, and adding a record to it copies all of it. `LiveCounts` keeps the
added records apart, by state and action, so that adding one takes the same time for a log of any
length, and so does reading the counts of a single state and action.
"""

from __future__ import annotations

from math import isfinite
from numbers import Real

import numpy as np

from pastwise.data.counts import TransitionCounts
from pastwise.errors import ParameterError, shown

MAX_REWARD = 1e140
"""Largest reward of a new record: the squares of 2^63 such rewards can still be added up."""

Sums = list[float]
"""Number of records, sums of weights, of squared weights, of weighted rewards and of weighted
squared rewards of a transition."""


class LiveCounts:
    """Counts of a single log that takes in further records.

    Examples
    --------
    >>> from pastwise.data.space import Space
    >>> live = LiveCounts(TransitionCounts.empty(Space(("cold", "warm")), Space(("heat", "wait"))))
    >>> live.add(state=0, action=0, next_state=1, weight=1.0)
    >>> live.counts().num_records
    1
    """

    def __init__(self, counts: TransitionCounts) -> None:
        self._base = counts
        self._num_states = len(counts.states)
        self._num_actions = len(counts.actions)
        self._total_weight = float(counts.weight.sum() + counts.weight_squared.sum())
        self._total_reward = 0.0
        if counts.reward is not None and counts.reward_squared is not None:
            self._total_reward = float(np.abs(counts.reward).sum() + counts.reward_squared.sum())
        self._added: dict[int, dict[int, Sums]] = {}  # row -> key -> sums

    def add(
        self,
        state: int,
        action: int,
        next_state: int,
        weight: float,
        reward: float | None = None,
    ) -> None:
        """Take in one record, given by index; what makes sums overflow is refused.

        The record has a reward if the log has rewards, and only then.
        """
        require_reward(reward, self._base.has_rewards)
        total_weight = self._total_weight + weight + weight * weight
        if not isfinite(total_weight):
            raise ParameterError(
                f"with the weight {weight} the sum of the weights, or of their squares, "
                "is too large for a number; use smaller weights"
            )
        earned = 0.0 if reward is None else weight * reward
        earned_squared = 0.0 if reward is None else earned * reward
        total_reward = self._total_reward + abs(earned) + earned_squared
        if not isfinite(total_reward):
            raise ParameterError(
                f"with the reward {reward} the sum of the rewards, or of their squares, "
                "is too large for a number; use smaller rewards"
            )
        self._total_weight = total_weight
        self._total_reward = total_reward

        row = self._row_of(state, action)
        key = row * self._num_states + next_state
        sums = self._added.setdefault(row, {}).setdefault(key, [0, 0.0, 0.0, 0.0, 0.0])
        sums[0] += 1
        sums[1] += weight
        sums[2] += weight * weight
        sums[3] += earned
        sums[4] += earned_squared

    def row(self, state: int, action: int) -> TransitionCounts:
        """The counts of one state and action alone."""
        row = self._row_of(state, action)
        first_key = row * self._num_states
        bounds = (first_key, first_key + self._num_states)
        start, stop = np.searchsorted(self._base.key, bounds)
        base = self._base.where(slice(start, stop))
        return base.plus(self._added.get(row, {}))

    def counts(self) -> TransitionCounts:
        """All counts, frozen."""
        added: dict[int, Sums] = {}
        for by_key in self._added.values():
            added.update(by_key)
        return self._base.plus(added)

    def _row_of(self, state: int, action: int) -> int:
        """Flat index of a state and action, as in `TransitionCounts.row`."""
        return state * self._num_actions + action


def require_reward(reward: float | None, has_rewards: bool) -> None:
    """Refuse a record without a reward of a log that has rewards, and the other way round."""
    if reward is None:
        if has_rewards:
            raise ParameterError("the log has rewards, so a new record needs its reward")
        return
    if not has_rewards:
        raise ParameterError(
            "the log has no rewards, so a new record cannot have one; leave out reward, or name "
            "the reward column when learning"
        )
    if not isinstance(reward, Real) or not abs(reward) <= MAX_REWARD:
        raise ParameterError(
            f"a reward must be a finite number from {-MAX_REWARD:g} to {MAX_REWARD:g}, "
            f"not {shown(reward)}"
        )
