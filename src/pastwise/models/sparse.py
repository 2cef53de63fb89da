"""A transition model as its non-zeros."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, frozen, linear_expectation, xlogx
from pastwise._numerics.checks import check_sums, checked_probabilities
from pastwise.errors import ParameterError
from pastwise.models.rows import TransitionRows


class SparseModel:
    """A transition model kept as its non-zeros.

    Parameters
    ----------
    matrix : SciPy sparse [S * A, S]
        Row ``state * A + action`` is the distribution of the next state. Any format will do; they
        have no common type.
    num_actions : int
        A.
    """

    shape: tuple[int, ...] = ()

    def __init__(self, matrix: Any, num_actions: int) -> None:
        from scipy.sparse import csr_array

        csr = csr_array(matrix, dtype=np.float64, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        self.num_states = csr.shape[1]
        self.num_actions = num_actions
        if csr.shape[0] != self.num_states * num_actions:
            raise ParameterError(
                f"a sparse model is [S * A, S]; shape {csr.shape} does not fit A = {num_actions}"
            )
        checked_probabilities("entries", csr.data, sum_to_one=False)
        check_sums("row", np.asarray(csr.sum(axis=1)), self.num_states)
        first = csr.indptr.astype(np.int64)
        next_state = csr.indices.astype(np.int32)
        self._rows = TransitionRows(
            first, next_state, csr.data, self.num_states, self.shape, num_actions
        )

    @cached_property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [S, A]."""
        sums = self._rows.sum_by_row(xlogx(self._rows.value))
        return frozen(sums.reshape(self.num_states, self.num_actions))

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Run the backward recursion; see `TransitionModel.plan`."""
        self._rows.plan(now, policy, log_gamma)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        return self._rows.expect(values)

    def expect_each(self, values: FloatArray) -> FloatArray:
        """E[values(state, action, next_state)]: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        return linear_expectation(self._rows.expect_each, values)

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action): [S]."""
        row = int(state) * self.num_actions + int(action)
        return np.asarray(self._rows.dense(np.array([row]))[0])
