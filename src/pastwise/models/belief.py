"""Dirichlet posterior of the transitions: mean and variance of any function of the next state.

Each row of the transition model has a Dirichlet posterior, made of its counts and of a prior whose
mass and mean are inferred from the log (`prior`): the hierarchy that evaluation samples from, in
closed form. The posterior of a small system is a tensor of concentrations; that of a large one
stays sparse.
"""

from __future__ import annotations

from math import prod
from typing import Protocol

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, batch_index, entries, group_sum
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.data.live_counts import LiveCounts
from pastwise.models.hierarchy import DENSE_STATES
from pastwise.models.prior import RowPrior
from pastwise.models.rows import SparseRows


class Belief(Protocol):
    """Dirichlet posterior of the row of every state and action.

    Leading axes are independent systems.
    """

    @property
    def weight(self) -> FloatArray:
        """Total concentration of each row, its records and the prior's mass: [..., S, A]."""
        ...

    def moments(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(next_state) under the mean row.

        [..., S] -> [..., S, A] twice.
        """
        ...

    def moments_each(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(state, action, next_state) under the mean row.

        [1 or S, 1 or A, S] -> [..., S, A] twice.
        """
        ...

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [...]."""
        ...


def belief_from(counts: TransitionCounts, *, dense_up_to: int = DENSE_STATES) -> Belief:
    """The posterior after a log.

    Parameters
    ----------
    counts : TransitionCounts
    dense_up_to : int
        Up to this many states, and for several logs, the posterior is dense; see
        `hierarchy.DENSE_STATES`.
    """
    if len(counts.states) <= dense_up_to or counts.shape:
        return DenseBelief(counts)
    return SparseBelief(counts)


class DenseBelief:
    """A posterior as a tensor of concentrations [..., S, A, S].

    New records add to the concentrations; the prior stays that of the log at the start.
    """

    def __init__(self, counts: TransitionCounts) -> None:
        num_states = len(counts.states)
        shape = (*counts.shape, num_states, len(counts.actions), num_states)
        require_memory(
            "a belief of each of several logs", shape, "take the logs one by one, or their total()"
        )
        prior = RowPrior.of(counts)
        background = prior.mass[..., None, None] * prior.table()
        records = group_sum(counts.key, counts.weight, prod(shape)).reshape(shape)
        self._concentration = records + background[..., None, :]
        self._batch_index = batch_index(counts.shape)
        self.weight = self._concentration.sum(axis=-1)

    def moments(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(next_state): [..., S] -> [..., S, A] twice."""
        return self.moments_each(values[..., None, None, :])

    def moments_each(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(state, action, next_state).

        [..., 1 or S, 1 or A, S] -> [..., S, A] twice.
        """
        mean = self._mean(values)
        mean_square = self._mean(values**2)
        return mean, np.maximum(mean_square - mean**2, 0.0)

    def _mean(self, values: FloatArray) -> FloatArray:
        """Mean of values [..., 1 or S, 1 or A, S]: [..., S, A]."""
        total = np.einsum("...san,...san->...sa", self._concentration, values)
        return np.asarray(total / self.weight)

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [...]."""
        self._concentration[(*self._batch_index, state, action, next_state)] += 1.0
        self.weight[(*self._batch_index, state, action)] += 1.0


class SparseBelief:
    """A posterior as sparse counts.

    The mean row is (count + mass * prior mean) / (records + mass). New records are kept apart; they
    are counted, and the prior is inferred anew, when the posterior is next used.
    """

    def __init__(self, counts: TransitionCounts) -> None:
        self._count(counts)

    def _count(self, counts: TransitionCounts) -> None:
        """Compute the posterior of a log."""
        self._counts = counts
        self._live = LiveCounts(counts)
        self._is_stale = False

        # The counts as a matrix [S * A, S].
        num_states = len(counts.states)
        num_rows = num_states * len(counts.actions)
        first = np.searchsorted(counts.row, np.arange(num_rows + 1))
        self._rows = SparseRows(first, counts.next_state, counts.weight, num_states)

        # The prior.
        self._prior = RowPrior.of(counts)
        self._mass = float(self._prior.mass)
        self._weight = counts.by_state_action(counts.weight) + self._mass

    def _refresh(self) -> None:
        """Count the new records, if there are any."""
        if self._is_stale:
            self._count(self._live.counts())

    @property
    def weight(self) -> FloatArray:
        """Total concentration of each row: [S, A]."""
        self._refresh()
        return self._weight

    def moments(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(next_state): [S] -> [S, A] twice."""
        self._refresh()
        powers = np.stack([values, values**2], axis=-1)
        total = (self._rows.matrix @ powers).reshape(*self._weight.shape, 2)
        total += self._mass * self._prior.mean(powers)[:, None]
        means = total / self._weight[..., None]
        mean = means[..., 0]
        mean_square = means[..., 1]
        return mean, np.maximum(mean_square - mean**2, 0.0)

    def moments_each(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(state, action, next_state).

        [1 or S, 1 or A, S] -> [S, A] twice.
        """
        self._refresh()
        mean = self._mean_each(values)
        mean_square = self._mean_each(values**2)
        return mean, np.maximum(mean_square - mean**2, 0.0)

    def _mean_each(self, values: FloatArray) -> FloatArray:
        """Mean of values [1 or S, 1 or A, S]: [S, A]."""
        counts = self._counts
        seen = entries(values, counts.state, counts.action, counts.next_state)
        total = counts.by_state_action(counts.weight * seen)
        prior_mean = self._prior.mean_each(values, len(counts.actions))
        return np.asarray((total + self._mass * prior_mean) / self._weight)

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record."""
        self._live.add(int(state), int(action), int(next_state), 1.0)
        self._is_stale = True
