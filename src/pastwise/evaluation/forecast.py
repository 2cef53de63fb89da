"""What a log predicts for the outcomes of single decisions: utility with its standard deviation.

The *utility* of an outcome is how good it is by the goal: 1 in the preferred states, their relative
weight, or the reward (`criterion`). The row of a state and an action has a Dirichlet posterior of
concentration W (`models.belief`). With v the variance of the utility under the mean row,

    utility of an outcome:   mean mu, variance v
    mean of the row itself:  mean mu, variance v / (W + 1).

The mean utility of N outcomes, n_r of them of row r, then has

    mean      sum_r n_r mu_r / N
    variance  (sum_r n_r v_r + n_r (n_r - 1) v_r / (W_r + 1)) / N^2,

since the outcomes of one row share its unknown mean.
"""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.evaluation.rewards import mean_rewards
from pastwise.goals.goal import Goal
from pastwise.models.belief import Belief


class RowForecast(NamedTuple):
    """Utility of an outcome of a row.

    Attributes
    ----------
    mean : float
    variance : float
        Of a single outcome.
    shared : float
        Of the row's mean, which all its outcomes share.
    """

    mean: float
    variance: float
    shared: float


class OutcomeForecast:
    """Utilities of outcomes, and what a log predicts for them.

    Rows are computed when they are first needed, and remembered.

    Parameters
    ----------
    goal : Goal
        In labels of the log.
    counts : TransitionCounts
        The log: of one task.
    belief : Belief, optional
        The posterior of the same log, where it is known already.

    Attributes
    ----------
    measure : str
        Name of the mean utility.

    Examples
    --------
    >>> from pastwise.data.space import Space
    >>> states, actions = Space(("low", "high")), Space(("up",))
    >>> log = TransitionCounts.from_records([0] * 99, [0] * 99, [1] * 99, states, actions)
    >>> forecast = OutcomeForecast(Goal(prefer="high"), log)
    >>> forecast.utility(0, 0, 1)
    1.0
    >>> round(forecast.row(0, 0).mean, 3)
    0.999
    """

    def __init__(self, goal: Goal, counts: TransitionCounts, belief: Belief | None = None) -> None:
        self._log = counts.evenly_weighted()
        self._belief = Belief(self._log.without_rewards()) if belief is None else belief
        self._utility = goal.score(counts.states, counts.actions, mean_rewards(goal, counts))
        self._is_reward = bool(goal.maximise)
        self._noise = self._variance_of_rewards() if self._is_reward else 0.0
        self._rows: dict[tuple[int, int], RowForecast] = {}
        self.measure = goal.wanted_share
        if goal.is_reward:
            self.measure = "mean reward"
        elif self._utility.ndim > 1:
            self.measure = "mean utility"

    @property
    def bounds(self) -> tuple[float, float]:
        """Smallest and largest possible utility; infinite for rewards of the log."""
        if self._is_reward:
            return -np.inf, np.inf
        return float(self._utility.min()), float(self._utility.max())

    def _variance_of_rewards(self) -> float:
        """Variance of a reward of the log, which is more than that about the mean of its row."""
        sums = self._log.reward_sums
        total = float(self._log.weight.sum())
        if sums is None or total == 0:
            return 0.0
        mean = float(sums[0].sum()) / total
        return max(0.0, float(sums[1].sum()) / total - mean * mean)

    def utility(
        self, state: int, action: int, next_state: int, reward: float | None = None
    ) -> float | None:
        """Utility of an outcome; None where it is the reward, and none was reported."""
        if self._is_reward:
            return reward
        if self._utility.ndim == 1:
            return float(self._utility[next_state])
        return float(self._of_row(state, action)[next_state])

    def _of_row(self, state: int, action: int) -> FloatArray:
        """Utility of each next state of a row: [S]."""
        if self._utility.ndim == 1:
            return self._utility
        S = len(self._log.states)
        full = np.broadcast_to(self._utility, (S, len(self._log.actions), S))
        return np.asarray(full[state, action])

    def row(self, state: int, action: int) -> RowForecast:
        """What the log predicts for an outcome of a row."""
        found = self._rows.get((state, action))
        if found is None:
            found = self._computed(state, action)
            self._rows[state, action] = found
        return found

    def _computed(self, state: int, action: int) -> RowForecast:
        utility = self._of_row(state, action)
        squared = utility**2
        place = (0, state, action)

        # Records of the row, and the mean of its prior.
        key = state * len(self._log.actions) + action
        first, last = self._log.row.searchsorted([key, key + 1])
        next_state = self._log.next_state[first:last]
        weight = self._log.weight[first:last]
        prior = self._belief.prior_row(state, action)
        entered = self._belief.entered[0]
        mass = float(self._belief.mass[place])
        total = float(self._belief.weight[place])

        def expected(values: FloatArray) -> float:
            parts = [
                float(weight @ values[next_state]),
                mass * prior.anywhere * float(values.sum()),
                mass * prior.entered * float(entered @ values),
                mass * float(prior.probability @ values[prior.next_state]),
            ]
            return fsum(parts) / total

        mean = expected(utility)
        variance = max(0.0, expected(squared) - mean * mean)
        return RowForecast(mean, variance + self._noise, (variance + self._noise) / (total + 1))
