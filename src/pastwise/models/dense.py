"""A transition model as a tensor."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    batch_index,
    frozen,
    linear_expectation,
    xlogx,
)
from pastwise._numerics.checks import checked_probabilities
from pastwise.models.rows import Entries, ranges

LARGE_BLOCK = 2**24
"""Bytes of a dense tensor that are multiplied at a time, where it is larger: enough for BLAS to use its threads."""


BLAS_PAYS = 32
"""From so many states on BLAS is called; up to them a call takes longer than what it does."""


class DenseModel:
    """A transition model kept as the tensor ``transition [..., S, A, S]``, which is not copied.

    In single precision (float32) it takes half the memory and half the time. An expectation is then off by some 1e-7
    of the range of the values, so ln gamma over H epochs by some H * 1e-7 of its own range.

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
            raise ValueError(
                f"a transition tensor is [..., state, action, next_state]; got shape {shape}"
            )
        self.shape = shape[:-3]
        self.num_states, self.num_actions = shape[-1], shape[-2]
        self._blocks = ranges(shape[-3] * shape[-2], self.transition.nbytes // LARGE_BLOCK)

    @cached_property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(xlogx(self.transition).sum(axis=-1, dtype=np.float64))

    @property
    def _rows(self) -> Any:
        """The tensor as matrices [*shape, S * A, S]."""
        return self.transition.reshape(
            *self.shape, self.num_states * self.num_actions, self.num_states
        )

    @cached_property
    def _entries(self) -> Entries:
        key, exact = np.flatnonzero(self.transition), self.transition.astype(np.float64, copy=False)
        if exact is not self.transition:
            exact = exact / exact.sum(
                axis=-1, keepdims=True
            )  # of rounded ones, else, the sum would tell in each epoch
        data = exact.ravel()[key]
        return Entries.by_key(key, data, self.shape, self.num_states, self.num_actions)

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules of the first epochs, and ln gamma, from the end on."""
        from pastwise._numerics import kernels

        if self.num_states < BLAS_PAYS:
            self._entries.plan(None, None, now, policy, log_gamma)
            return
        horizon, feasible = len(log_gamma) - 1, True
        for epoch in reversed(range(horizon)):
            rule = policy[min(epoch, len(policy) - 1)]
            if epoch + 1 == horizon:
                rule[...] = 0.0  # ln gamma at the end
            else:
                self._expect_into(rule, log_gamma[epoch + 1], feasible)
            also, gamma = now[min(epoch, len(now) - 1)], log_gamma[epoch]
            feasible = kernels.softmax_rule(also, rule, gamma, epoch < len(policy), (0, gamma.size))

    def _expect_into(self, out: FloatArray, values: FloatArray, finite: bool) -> None:
        """`expect` of a batch: [batch, S] -> [batch, S * A]."""
        if not finite or self.shape or self.transition.dtype != np.float64:
            by_system = values.reshape(-1, *self.shape, self.num_states)
            out[...] = (self._apply if finite else self.expect)(by_system).reshape(out.shape)
        elif len(values) == 1:
            self._to_and_fro(values[0], out[0])
        else:
            np.matmul(values, self._rows.T, out=out)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        values = np.asarray(values, dtype=np.float64)
        if values.shape[-1] != self.num_states:
            values = np.broadcast_to(values, (*values.shape[:-1], self.num_states))
        return linear_expectation(
            self._apply, values, lambda mask: self._product(mask.astype(self.transition.dtype))
        )

    def _apply(self, values: FloatArray) -> FloatArray:
        if self.transition.dtype == np.float32:
            middle = ((values.max(axis=-1) + values.min(axis=-1)) / 2)[
                ..., None
            ]  # what is left rounds finely
            rest = self._product((values - middle).astype(np.float32))
            return np.asarray(rest + middle[..., None], dtype=np.float64)
        return self._product(values)

    def _product(self, values: Any) -> FloatArray:
        S, A, lead = self.num_states, self.num_actions, values.shape[:-1]
        if self.shape:
            product = (self._rows @ values[..., None])[..., 0]
            lead = product.shape[:-1]
        elif prod(lead) == 1:
            product = np.empty(S * A, dtype=self.transition.dtype)
            self._to_and_fro(values.ravel(), product)
        else:
            product = values @ self._rows.T
        return np.asarray(product.reshape(*lead, S, A))

    def _to_and_fro(self, values: Any, out: Any) -> None:
        """One product, [S] -> [S * A], beginning at the end that was read last, some of which is still in the cache."""
        self._blocks = self._blocks[::-1]
        for start, stop in self._blocks:
            np.dot(self._rows[start:stop], values, out=out[start:stop])

    def expect_each(self, values: FloatArray) -> FloatArray:
        """Expectation of values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        return linear_expectation(lambda v: np.einsum("...n,...n->...", self.transition, v), values)

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        return np.asarray(self.transition[(*batch_index(self.shape), state, action)])
