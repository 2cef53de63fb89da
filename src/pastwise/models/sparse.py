"""A transition model as its non-zeros."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    frozen,
    linear_expectation,
    xlogx,
)
from pastwise._numerics.checks import check_sums, checked_probabilities
from pastwise.models.rows import Entries


class SparseModel:
    """A transition model kept as its non-zeros.

    Parameters
    ----------
    matrix : scipy sparse [S * A, S]
        Row ``state * A + action`` is the distribution of the next state.
    num_actions : int
        A.
    """

    shape: tuple[int, ...] = ()

    def __init__(self, matrix: Any, num_actions: int) -> None:
        from scipy.sparse import csr_array

        csr = csr_array(matrix, dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        self.num_states, self.num_actions = csr.shape[1], num_actions
        if csr.shape[0] != self.num_states * num_actions:
            raise ValueError(
                f"a sparse model is [S * A, S]; shape {csr.shape} does not fit A = {num_actions}"
            )
        checked_probabilities("entries", csr.data, sum_to_one=False)
        check_sums("row", np.asarray(csr.sum(axis=1)), self.num_states)
        first, next_state = csr.indptr.astype(np.int64), csr.indices.astype(np.int32)
        self._entries = Entries(first, next_state, csr.data, (), self.num_states, num_actions)

    @cached_property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [S, A]."""
        sums = self._entries.per_row(xlogx(self._entries.data))
        return frozen(sums.reshape(self.num_states, self.num_actions))

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules of the first epochs, and ln gamma, from the end on."""
        self._entries.plan(None, None, now, policy, log_gamma)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        return self._entries.expect(None, None, values)

    def expect_each(self, values: FloatArray) -> FloatArray:
        """Expectation of values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        return linear_expectation(self._entries.times_each, values)

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action): [S]."""
        return np.asarray(
            self._entries.spread(np.array([int(state) * self.num_actions + int(action)]))[0]
        )
