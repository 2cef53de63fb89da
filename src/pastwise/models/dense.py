"""A transition model as a tensor."""

from __future__ import annotations

from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    batch_index,
    frozen,
    linear_expectation,
    xlogx,
)
from pastwise._numerics.checks import checked_probabilities
from pastwise.errors import ParameterError
from pastwise.models.rows import TransitionRows, split_range

Floats = NDArray[np.float32] | NDArray[np.float64]

BLOCK_BYTES = 2**24
"""Bytes of a large tensor that are multiplied at a time: enough for BLAS to use its threads."""

BLAS_STATES = 32
"""From this many states on BLAS multiplies; below, a call to it takes longer than its work."""


class DenseModel:
    """A transition model kept as the tensor ``transition [..., S, A, S]``, which is not copied.

    In single precision (float32) it takes half the memory and half the time. An expectation is then
    off by some 1e-7 of the range of the values, so ln gamma over H epochs by some H * 1e-7 of its
    own range.

    Examples
    --------
    >>> model = DenseModel([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]])
    >>> model.expect(np.array([-np.inf, 4.0])).tolist()
    [[-inf, 4.0], [-inf, -inf]]
    """

    def __init__(self, transition: ArrayLike) -> None:
        self.transition = frozen(checked_probabilities("transition", transition))
        shape = self.transition.shape
        if len(shape) < 3 or shape[-3] != shape[-1] or shape[-2] == 0:
            raise ParameterError(
                f"a transition tensor is [..., state, action, next_state]; got shape {shape}"
            )
        self.shape = shape[:-3]
        self.num_states = shape[-1]
        self.num_actions = shape[-2]
        num_rows = self.num_states * self.num_actions
        self._blocks = split_range(num_rows, self.transition.nbytes // BLOCK_BYTES)

    @cached_property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(xlogx(self.transition).sum(axis=-1, dtype=np.float64))

    @property
    def _matrix(self) -> FloatArray:
        """The tensor as matrices [*shape, S * A, S]."""
        num_rows = self.num_states * self.num_actions
        return self.transition.reshape(*self.shape, num_rows, self.num_states)

    @cached_property
    def _rows(self) -> TransitionRows:
        """The non-zeros, in double precision; for the compiled loops of small models."""
        key = np.flatnonzero(self.transition)
        exact = self.transition.astype(np.float64, copy=False)
        if exact is not self.transition:
            # Rounded rows do not sum to one; the error would grow from epoch to epoch.
            exact = exact / exact.sum(axis=-1, keepdims=True)
        value = exact.ravel()[key]
        return TransitionRows.from_keys(key, value, self.shape, self.num_states, self.num_actions)

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Run the backward recursion; see `TransitionModel.plan`."""
        from pastwise._numerics import kernels

        if self.num_states < BLAS_STATES:
            self._rows.plan(now, policy, log_gamma)
            return
        horizon = len(log_gamma) - 1
        kept = len(policy)
        feasible = True
        for epoch in reversed(range(horizon)):
            # E[ln gamma(next state)], which is zero at the end.
            rule = policy[min(epoch, kept - 1)]
            if epoch + 1 == horizon:
                rule[...] = 0.0
            else:
                self._expect_into(rule, log_gamma[epoch + 1], feasible)

            # The rule and ln gamma of the epoch.
            now_here = now[min(epoch, len(now) - 1)]
            gamma = log_gamma[epoch]
            feasible = kernels.softmax_rule(now_here, rule, gamma, epoch < kept, (0, gamma.size))

    def _expect_into(self, out: FloatArray, values: FloatArray, finite: bool) -> None:
        """`expect` of a batch: [batch, S] -> out [batch, S * A]; faster for finite values."""
        if not finite or self.shape or self.transition.dtype != np.float64:
            by_system = values.reshape(-1, *self.shape, self.num_states)
            means = self._apply(by_system) if finite else self.expect(by_system)
            out[...] = means.reshape(out.shape)
        elif len(values) == 1:
            self._product_by_blocks(values[0], out[0])
        else:
            np.matmul(values, self._matrix.T, out=out)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        values = np.asarray(values, dtype=np.float64)
        if values.shape[-1] != self.num_states:
            values = np.broadcast_to(values, (*values.shape[:-1], self.num_states))
        return linear_expectation(self._apply, values, self._reach)

    def _reach(self, mask: FloatArray) -> FloatArray:
        """Probability of a set of next states, given by ones; not rounded away."""
        return self._product(mask.astype(self.transition.dtype))

    def _apply(self, values: FloatArray) -> FloatArray:
        """`expect` of finite values."""
        if self.transition.dtype != np.float32:
            return self._product(values)
        # In single precision: the distance from the middle of the range rounds finely.
        middle = (values.max(axis=-1) + values.min(axis=-1)) / 2
        distance = (values - middle[..., None]).astype(np.float32)
        means = self._product(distance) + middle[..., None, None]
        return np.asarray(means, dtype=np.float64)

    def _product(self, values: Floats) -> FloatArray:
        """The tensor times values of its own precision: [..., S] -> [..., S, A]."""
        lead = values.shape[:-1]
        if self.shape:
            product = (self._matrix @ values[..., None])[..., 0]
            lead = product.shape[:-1]
        elif prod(lead) == 1:
            product = np.empty(self.num_states * self.num_actions, dtype=self.transition.dtype)
            self._product_by_blocks(values.ravel(), product)
        else:
            product = values @ self._matrix.T
        return np.asarray(product.reshape(*lead, self.num_states, self.num_actions))

    def _product_by_blocks(self, values: Floats, out: Floats) -> None:
        """One product, [S] -> out [S * A].

        It begins at the end that was read last, some of which is still in the cache.
        """
        self._blocks = self._blocks[::-1]
        for start, stop in self._blocks:
            np.dot(self._matrix[start:stop], values, out=out[start:stop])

    def expect_each(self, values: FloatArray) -> FloatArray:
        """E[values(state, action, next_state)]: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        return linear_expectation(
            lambda finite: np.einsum("...n,...n->...", self.transition, finite), values
        )

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        return np.asarray(self.transition[(*batch_index(self.shape), state, action)])
