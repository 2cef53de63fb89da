"""What a log lets one believe of the world: mean and doubt of whatever follows an action.

The rows of the transition model have Dirichlet posteriors, of the counts and of a prior with a *mass*, in records, and
a *base*. How much the prior weighs is read from the log itself: rows that are alike ask for a heavy one, rows that
differ for a light one. In a small system the base is uniform and the belief a tensor; in a large one it is what
follows the same state after any action, and the belief stays sparse.
"""

from __future__ import annotations

from math import prod
from typing import Protocol

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, batch_index, group_sum, normalise
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.data.live_counts import LiveCounts
from pastwise.models.prior import FEW_STATES, believed_mass


class Belief(Protocol):
    """What is believed of the row of every state and action; leading axes are independent systems."""

    @property
    def weight(self) -> FloatArray:
        """Records of each row, with the prior's: [..., S, A]."""
        ...

    def moments(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(next_state) under the mean row: [..., S] -> [..., S, A] twice."""
        ...

    def moments_each(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for values that depend on state and action too: [1 or S, 1 or A, S] -> [..., S, A] twice."""
        ...

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [...]."""
        ...


def believe(counts: TransitionCounts) -> Belief:
    """The belief after a log."""
    few = len(counts.states) <= FEW_STATES or counts.shape
    return DenseBelief(counts) if few else SparseBelief(counts)


class DenseBelief:
    """A belief as a tensor of concentrations [..., S, A, S], with a uniform base."""

    def __init__(self, counts: TransitionCounts) -> None:
        S, A = len(counts.states), len(counts.actions)
        shape = (*counts.shape, S, A, S)
        require_memory(
            "a belief of each of several logs", shape, "take the logs one by one, or their total()"
        )
        mass = believed_mass(counts, np.full(len(counts.weight), 1 / S))
        records = group_sum(counts.key, counts.weight, prod(shape)).reshape(shape)
        self._concentration = records + (mass / S)[..., None, None, None]
        self._here = batch_index(counts.shape)
        self.weight = self._concentration.sum(axis=-1)

    def moments(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(next_state) under the mean row: [..., S] -> [..., S, A] twice."""
        return self.moments_each(values[..., None, None, :])

    def moments_each(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A] twice."""
        mean = np.einsum("...san,...san->...sa", self._concentration, values) / self.weight
        square = np.einsum("...san,...san->...sa", self._concentration, values**2) / self.weight
        return mean, np.maximum(square - mean**2, 0.0)

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [...]."""
        self._concentration[(*self._here, state, action, next_state)] += 1.0
        self.weight[(*self._here, state, action)] += 1.0


class SparseBelief:
    """A belief as sparse counts, and a prior centred on what followed the same state after any action.

    New records are kept aside, and are counted when the belief is next asked for.
    """

    def __init__(self, counts: TransitionCounts) -> None:
        self._live, self._stale = LiveCounts(counts), False
        self._count(counts)

    def _count(self, counts: TransitionCounts) -> None:
        from scipy.sparse import csr_array

        S, A = len(counts.states), len(counts.actions)
        n, s, following = counts.weight, counts.state, counts.next_state
        of_pair = counts.by_state_action(n)
        of_state = of_pair.sum(axis=-1)
        pair, group = np.unique(s * S + following, return_inverse=True)
        pooled = group_sum(group, n, len(pair))
        self._entered = normalise(group_sum(following, n, S) + 1.0)
        others = np.maximum(pooled[group] - n, 0.0) + self._entered[following]
        base = others / (
            of_state[s] - of_pair[s, counts.action] + 1.0
        )  # without the row's own records
        self._mass = float(believed_mass(counts, base))
        starts = np.searchsorted(pair, np.arange(S + 1) * S)
        self._pooled = csr_array((pooled, pair % S, starts), shape=(S, S))
        self._counts, self._of_state = counts, of_state
        self._matrix = csr_array(
            (n, following, np.searchsorted(counts.row, np.arange(S * A + 1))), shape=(S * A, S)
        )
        self._weight = of_pair + self._mass

    @property
    def weight(self) -> FloatArray:
        """Records of each row, with the prior's: [S, A]."""
        if self._stale:
            counts = self._live.counts()
            self._live, self._stale = LiveCounts(counts), False
            self._count(counts)
        return self._weight

    def moments(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of values(next_state) under the mean row: [S] -> [S, A] twice."""
        weight, both = self.weight[..., None], np.stack([values, values**2], axis=-1)
        base = (self._pooled @ both + self._entered @ both) / (self._of_state + 1.0)[:, None]
        means = (
            (self._matrix @ both).reshape(*weight.shape[:2], 2) + self._mass * base[:, None]
        ) / weight
        return means[..., 0], np.maximum(means[..., 1] - means[..., 0] ** 2, 0.0)

    def moments_each(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for values that depend on state and action too: [1 or S, 1 or A, S] -> [S, A] twice."""
        mean, square = self._mean_each(values), self._mean_each(values**2)
        return mean, np.maximum(square - mean**2, 0.0)

    def _mean_each(self, values: FloatArray) -> FloatArray:
        (S, A), counts = self.weight.shape, self._counts
        lines, columns = (
            np.minimum(counts.state, values.shape[0] - 1),
            np.minimum(counts.action, values.shape[1] - 1),
        )
        seen = counts.by_state_action(counts.weight * values[lines, columns, counts.next_state])
        base = np.empty((S, A))
        for a in range(A):
            table = values[:, min(a, values.shape[1] - 1)]
            own = (
                self._pooled @ table[0]
                if len(table) == 1
                else np.asarray(self._pooled.multiply(table).sum(axis=1))
            )
            base[:, a] = (own + table @ self._entered) / (self._of_state + 1.0)
        return (seen + self._mass * base) / self._weight

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record."""
        self._live.add(int(state), int(action), int(next_state), 1.0)
        self._stale = True
