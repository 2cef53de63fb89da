r"""Mean rewards of a log: estimates that are shrunk where records are few, and samples of them.

A reward is the mean of its *cell* plus noise. There are two kinds of cells, and the simpler one
that fits the log is taken:

- the next state, if the mean reward of a transition depends on nothing else;
- otherwise the state and action. That is all a decision maker needs: the value of a rule depends
  on rewards only through their mean in each state after each action.

The means of cells vary about the mean of their *group* (the state, or the log), and those of
groups about the mean of all,

.. math::

    \bar r_c \sim N(\theta_c, v_c), \qquad
    \theta_c \sim N(\mu_{g(c)}, \tau^2), \qquad
    \mu_g \sim N(\mu, \omega^2),

with :math:`v_c`, the variance of the noise divided by the number of records. The posterior is
normal. Its variances are estimated from the log by moments; :math:`\tau^2` is at least the usual
:math:`v_c`, so that the mean of a usual cell is moved by half of its distance at most. A log
without records tells no two cells apart: all means are 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.errors import ParameterError

NO_REWARDS = "the log has no rewards; name the column that holds them with reward="

ROUNDING = 1e-9
"""Relative rounding error of a mean: that of a plain sum over a hundred million records."""


@dataclass(frozen=True, eq=False)
class RewardPosterior:
    """What a log says about mean rewards, by next state or by state and action.

    Attributes
    ----------
    by_next_state : bool
        Whether cells are next states [S]; otherwise they are states and actions [S, A].
    cell_mean, cell_variance : [S] or [S, A]
        Mean reward of the records of each cell, and its variance; infinite without records.
    group_mean, group_variance : [1] or [S, 1]
        Posterior mean and variance of each group's mean.
    spread : float
        Variance of the means of cells about that of their group.

    Examples
    --------
    >>> from pastwise.data.space import Space
    >>> states, actions = Space(("a", "b")), Space(("x", "y"))
    >>> counts = TransitionCounts.from_records(
    ...     [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1], states, actions, reward=[0, 1, 0, 1]
    ... )
    >>> RewardPosterior.of(counts).mean.tolist()
    [0.0, 1.0]
    """

    by_next_state: bool
    cell_mean: FloatArray
    cell_variance: FloatArray
    group_mean: FloatArray
    group_variance: FloatArray
    spread: float

    @classmethod
    def of(
        cls,
        counts: TransitionCounts,
        *,
        design_effect: float = 1.0,
        by_next_state: bool | None = None,
    ) -> RewardPosterior:
        """The posterior of a single log.

        Parameters
        ----------
        counts : TransitionCounts
            With rewards, without leading axes.
        design_effect : float
            How many records of the log carry as much as one independent record.
        by_next_state : bool, optional
            The kind of cells; by default the simpler one that fits the log.
        """
        if not counts.has_rewards:
            raise ParameterError(NO_REWARDS)
        log = counts.evenly_weighted()
        if by_next_state is None:
            by_next_state = _depends_on_next_state_only(log, design_effect)
        num_states = len(log.states)
        if by_next_state:
            cells = _Cells.of(log, log.next_state, num_states)
            shape: tuple[int, ...] = (1, num_states)
        else:
            shape = (num_states, len(log.actions))
            cells = _Cells.of(log, log.row, shape[0] * shape[1])

        # Means of the cells, by group: [G, C].
        mean = cells.mean.reshape(shape)
        variance = (cells.variance_of_mean() * design_effect).reshape(shape)
        spread = _spread_within(mean, variance)

        # Means of the groups.
        group_mean, group_variance = _shrunk_groups(mean, variance + spread)
        return cls(
            by_next_state,
            mean[0] if by_next_state else mean,
            variance[0] if by_next_state else variance,
            group_mean[0] if by_next_state else group_mean,
            group_variance[0] if by_next_state else group_variance,
            spread,
        )

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of each cell's reward: [S] or [S, A].

        Means that differ by rounding are equal: a goal follows the smallest differences, since its
        unit is their range.
        """
        mean = self._given(self.group_mean)
        is_constant = np.ptp(mean) <= ROUNDING * np.abs(mean).max()
        return np.full_like(mean, mean.flat[0]) if is_constant else mean

    @property
    def table(self) -> FloatArray:
        """The same as a reward of transitions: [S], or [S, A, 1]."""
        return self.mean if self.by_next_state else self.mean[..., None]

    def sample(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Mean rewards sampled from the posterior: [number, S] or [number, S, A]."""
        group_noise = rng.standard_normal((number, *self.group_mean.shape))
        group_mean = self.group_mean + np.sqrt(self.group_variance) * group_noise
        noise = rng.standard_normal((number, *self.cell_mean.shape))
        variance = self._share_of_group * self.spread
        return np.asarray(self._given(group_mean) + np.sqrt(variance) * noise)

    @property
    def _share_of_group(self) -> FloatArray:
        """Weight of the group's mean in that of each cell, v / (v + tau^2): [S] or [S, A]."""
        is_known = np.isfinite(self.cell_variance)
        variance = np.where(is_known, self.cell_variance, 1.0)
        total = variance + self.spread
        share = np.divide(variance, total, out=np.zeros_like(total), where=total > 0)
        return np.where(is_known, share, 1.0)

    def _given(self, group_mean: FloatArray) -> FloatArray:
        """Mean of each cell, given the means of groups: [..., S] or [..., S, A]."""
        share = self._share_of_group
        return np.asarray((1 - share) * self.cell_mean + share * group_mean)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Sums over the records of each cell: [C] each."""

    weight: FloatArray
    reward: FloatArray
    reward_squared: FloatArray

    @classmethod
    def of(cls, log: TransitionCounts, cell: IntArray, number: int) -> _Cells:
        sums = log.reward_sums
        if sums is None:
            raise ParameterError(NO_REWARDS)
        return cls(
            group_sum(cell, log.weight, number),
            group_sum(cell, sums[0], number),
            group_sum(cell, sums[1], number),
        )

    @property
    def mean(self) -> FloatArray:
        """Mean reward of each cell; 0 without records."""
        return np.divide(
            self.reward, self.weight, out=np.zeros_like(self.weight), where=self.weight > 0
        )

    @property
    def squares(self) -> FloatArray:
        """Sum of squared differences to the mean; what rounding leaves of equal rewards is 0."""
        squares = self.reward_squared - self.reward * self.mean
        is_rounding = squares <= 1e-12 * self.reward_squared
        return np.where(is_rounding, 0.0, squares)

    @property
    def total_variance(self) -> float:
        """Variance of the rewards of all cells together."""
        weight = float(self.weight.sum())
        if weight == 0:
            return 0.0
        mean = float(self.reward.sum()) / weight
        variance = float(self.reward_squared.sum()) / weight - mean**2
        return max(variance, 0.0)

    def variance_of_mean(self, *, prior_records: float = 5.0) -> FloatArray:
        """Variance of each cell's mean; infinite without records: [C].

        Parameters
        ----------
        prior_records : float
            Records with the variance of all cells that are added to those of each cell, when the
            variance of its noise is estimated. With five, a few records that happen to be equal do
            not seem certain, and a hundred say what they say.
        """
        # The variance of noise within cells; that of all rewards, if cells have one record each.
        freedom = float(np.maximum(self.weight - 1, 0).sum())
        pooled = self.total_variance
        if freedom >= 1:
            pooled = min(float(self.squares.sum()) / freedom, pooled * 2)
        degrees = np.maximum(self.weight - 1, 0) + prior_records
        noise = (self.squares + prior_records * pooled) / degrees
        infinite = np.full(len(self.weight), np.inf)
        return np.asarray(np.divide(noise, self.weight, out=infinite, where=self.weight > 0))


def _depends_on_next_state_only(log: TransitionCounts, design_effect: float) -> bool:
    """Whether the next state explains the mean rewards of transitions, as far as the log shows.

    An F test of the means by transition against those by next state. A value of three standard
    deviations above its expectation is taken as evidence: chance exceeds that in about one log of
    fifty.
    """
    by_next_state = _Cells.of(log, log.next_state, len(log.states))
    by_transition = _Cells.of(log, np.arange(len(log.key)), len(log.key))
    left = float(by_next_state.squares.sum())
    if left == 0:
        return True
    num_next_states = int((by_next_state.weight > 0).sum())
    explained_by = len(log.key) - num_next_states
    if explained_by == 0:
        return True
    left_by_transition = float(by_transition.squares.sum())
    freedom = float(log.weight.sum()) - len(log.key)
    if freedom < 1 or left_by_transition == 0:
        return False
    explained = (left - left_by_transition) / explained_by
    ratio = explained / (left_by_transition / freedom) / design_effect
    deviation = float(np.sqrt(2 / explained_by + 2 / freedom))
    return ratio <= 1 + 3 * deviation


def _spread_within(mean: FloatArray, variance: FloatArray) -> float:
    """Variance of the means of cells within groups, beyond their own variances.

    Parameters
    ----------
    mean, variance : [G, C]
        The variance is infinite for cells without records.
    """
    is_known = np.isfinite(variance)
    if not is_known.any():
        return 0.0
    usual = float(np.median(variance[is_known]))
    number = is_known.sum(axis=-1)
    several = number >= 2
    if not several.any():
        # One cell in each group: how far cells of other groups lie apart is all that is known.
        return max(usual, float(mean[is_known].var()))

    # Squared differences to the group's mean have the expectation (C - 1) (tau^2 + mean v).
    own = np.where(is_known, mean, 0.0).sum(axis=-1) / np.maximum(number, 1)
    squares = np.where(is_known, (mean - own[:, None]) ** 2, 0.0).sum(axis=-1)
    noise = np.where(is_known, variance, 0.0).sum(axis=-1) * (1 - 1 / np.maximum(number, 1))
    freedom = float((number - 1)[several].sum())
    found = float((squares - noise)[several].sum()) / freedom
    return max(usual, found)


def _shrunk_groups(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of each group's mean: [G, 1] each.

    Parameters
    ----------
    mean, variance : [G, C]
        Of the cells about the mean of their group; the variance is infinite without records.
    """
    # Precise cells count more; those without any variance are given a common one.
    positive = variance[np.isfinite(variance) & (variance > 0)]
    least = float(positive.min()) if len(positive) else 1.0
    precision = np.where(np.isfinite(variance), 1 / np.maximum(variance, least), 0.0)
    total = precision.sum(axis=-1)
    is_seen = total > 0
    own_variance = np.divide(1.0, total, out=np.zeros_like(total), where=is_seen)
    own_mean = (precision * mean).sum(axis=-1) * own_variance
    if not len(positive):
        own_variance = np.zeros_like(own_variance)

    # The mean of all groups, and their variance about it.
    number = int(is_seen.sum())
    if number == 0:
        return own_mean[:, None], own_variance[:, None]
    overall = float(own_mean[is_seen].mean())
    between = 0.0
    if number >= 2:
        found = float(own_mean[is_seen].var(ddof=1) - own_variance[is_seen].mean())
        between = max(found, float(own_variance[is_seen].mean()))
    overall_variance = (between + float(own_variance[is_seen].mean())) / number
    if number == 1:
        group_mean = np.where(is_seen, own_mean, overall)
        group_variance = np.full(len(own_mean), overall_variance)
        return group_mean[:, None], group_variance[:, None]

    # Groups between their own mean and that of all.
    spread = own_variance + between
    share = np.divide(own_variance, spread, out=np.zeros_like(spread), where=spread > 0)
    share = np.where(is_seen, share, 1.0)
    group_mean = (1 - share) * own_mean + share * overall
    group_variance = share * between + share**2 * overall_variance
    return group_mean[:, None], group_variance[:, None]
