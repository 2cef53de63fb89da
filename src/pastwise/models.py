"""Transition models: what the design needs to know of a system, however it is stored.

Three models stand behind one protocol. A *dense* one is the tensor p(next_state | state, action). A *sparse* one
keeps its non-zeros. A *learned* one is the mean of a Dirichlet posterior, (count + background) / total: sparse counts
plus a constant, so the dense tensor is never needed. ``-inf`` is a legal value everywhere; ``0 * (-inf)`` counts as
0.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pastwise.counts import TransitionCounts, flat_key
from pastwise.entries import Entries, ranges
from pastwise.numerics import (
    FloatArray,
    IntArray,
    batch_index,
    broadcast,
    check_sums,
    checked_probabilities,
    fold,
    frozen,
    group_sum,
    linear_expectation,
    xlogx,
)

LARGE_BLOCK = 2**24
"""Bytes of a dense tensor that are multiplied at a time, where it is larger: enough for BLAS to use its threads."""

BLAS_PAYS = 32
"""From so many states on BLAS is called; up to them a call takes longer than what it does."""

FEW_STATES = 8
"""Up to so many states a learned model keeps an entry for every transition, seen or not: none is ever inserted."""


class TransitionModel(Protocol):
    """What the design needs to know of a system, however it is stored."""

    @property
    def num_states(self) -> int:
        """S."""
        ...

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Leading axes: independent systems."""
        ...

    @property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]; the same for every goal."""
        ...

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules [kept, batch, S * A] of the first epochs, and ln gamma [H + 1, batch, S], from the end on.

        Theorem 1, given ``now``, ln ideal.rule - alpha: [1 or H, batch, S * A]. The batch is of as many goals, or of
        each system, or of systems within goals.
        """
        ...

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        ...

    def expect_each(self, values: FloatArray) -> FloatArray:
        """The same for values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        ...

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        ...


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
            raise ValueError(f"a transition tensor is [..., state, action, next_state]; got shape {shape}")
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
        return self.transition.reshape(*self.shape, self.num_states * self.num_actions, self.num_states)

    @cached_property
    def _entries(self) -> Entries:
        key, exact = np.flatnonzero(self.transition), self.transition.astype(np.float64, copy=False)
        if exact is not self.transition:
            exact = exact / exact.sum(axis=-1, keepdims=True)  # of rounded ones, else, the sum would tell in each epoch
        data = exact.ravel()[key]
        return Entries.by_key(key, data, self.shape, self.num_states, self.num_actions)

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules of the first epochs, and ln gamma, from the end on."""
        from pastwise import kernels

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
            feasible = kernels.settle(also, rule, gamma, epoch < len(policy), (0, gamma.size))

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
        return linear_expectation(self._apply, values, lambda mask: self._product(mask.astype(self.transition.dtype)))

    def _apply(self, values: FloatArray) -> FloatArray:
        if self.transition.dtype == np.float32:
            middle = ((values.max(axis=-1) + values.min(axis=-1)) / 2)[..., None]  # what is left rounds finely
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
            raise ValueError(f"a sparse model is [S * A, S]; shape {csr.shape} does not fit A = {num_actions}")
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
        return np.asarray(self._entries.spread(np.array([int(state) * self.num_actions + int(action)]))[0])


def _absorbing(counts: TransitionCounts) -> TransitionCounts:
    """The counts with every terminal state leading to itself, once, and nowhere else."""
    S, A, ends = len(counts.states), len(counts.actions), counts.terminal
    kept = ~np.isin(counts.state, ends)
    batch, end, action = (index.ravel() for index in np.meshgrid(np.arange(prod(counts.shape)), ends, np.arange(A)))
    key = np.concatenate([counts.key[kept], flat_key(batch, end, action, end, S, A)])
    weight = np.concatenate([counts.weight[kept], np.ones(len(end))])
    order = np.argsort(key)
    return replace(counts, key=key[order], weight=weight[order])


class LearnedModel:
    """The mean of the Dirichlet posterior of a transition model: (count + background) / total.

    Every next state that was never seen shares one constant, so the dense tensor is never built. The model goes on
    learning: `observe` adds a record to each system in place and recomputes what depends on its row, and that alone.

    The counts are those of the log itself, not weighted by similarity: the world does not depend on the goal.

    Paper: the model that FPD_learn learns, Section IV-A.

    Parameters
    ----------
    counts : TransitionCounts
        What was seen; its weights are the counts.
    background : float
        Prior count of every (state, action, next_state). Terminal states have none: they lead to themselves.

    Examples
    --------
    >>> from pastwise.spaces import Space
    >>> model = LearnedModel(TransitionCounts.empty(Space.of_size(2), Space.of_size(1)), background=1.0)
    >>> model.observe(np.array(0), np.array(0), np.array(1))
    >>> model.row(np.array(0), np.array(0)).round(3).tolist()
    [0.333, 0.667]
    """

    def __init__(self, counts: TransitionCounts, background: float) -> None:
        from pastwise import kernels

        if not (np.isfinite(background) and background > 0):
            raise ValueError(f"the background count must be positive, not {background}")
        self.shape, self.num_states, self.num_actions = counts.shape, len(counts.states), len(counts.actions)
        self.background = background
        self._here = np.arange(prod(self.shape)).reshape(self.shape)
        row_background = np.full((*self.shape, self.num_states, self.num_actions), background)
        if len(counts.terminal):
            counts = _absorbing(counts)
            row_background[..., counts.terminal, :] = 0.0
        self._background = row_background.ravel()
        key, data = counts.key, counts.weight.copy()
        if self.num_states <= FEW_STATES and row_background.any():
            size = prod(self.shape) * self.num_states * self.num_actions * self.num_states
            key, data = np.arange(size), group_sum(key, data, size)
        self._entries = Entries.by_key(key, data, self.shape, self.num_states, self.num_actions)
        self._total, self._negentropy = np.empty((2, self._entries.num_rows))
        first, rows = self._entries.first, np.arange(self._entries.num_rows)
        kernels.tally(first, data, self._background, self.num_states, rows, self._total, self._negentropy)

    @property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(self._by_state_action(self._negentropy))

    def _by_state_action(self, rows: FloatArray) -> FloatArray:
        return rows.reshape(*self.shape, self.num_states, self.num_actions)

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules of the first epochs, and ln gamma, from the end on."""
        if not self._entries.plan(self._background, self._total, now, policy, log_gamma) and self._background.any():
            for values in log_gamma[:0:-1]:  # the first that was impossible; what was made of it is not looked at
                self._refuse_impossible(values)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        self._refuse_impossible(values)
        return self._entries.expect(self._background, self._total, values)

    def expect_each(self, values: FloatArray) -> FloatArray:
        """Expectation of values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        self._refuse_impossible(values)
        each = self.num_states // values.shape[-1]  # a single value stands for all next states
        unseen = self._by_state_action(self._background) * fold(np.add, values) * each
        return np.asarray((self._entries.times_each(values) + unseen) / self._by_state_action(self._total))

    def _refuse_impossible(self, values: FloatArray) -> None:
        if values.size and values.min() == -np.inf:
            impossible = np.isneginf(values)
            states = np.unique(np.nonzero(impossible)[-1])[:5].tolist()
            raise ValueError(
                f"the goal rules out next states {states} (or every action in them), and a learned model gives every "
                "next state some probability, so no decision is feasible; give them a floor instead, such as 1e-5"
            )

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        row = self._row(state, action)
        weight = self._entries.spread(row.ravel()).reshape(*row.shape, self.num_states)
        return np.asarray((weight + self._background[row][..., None]) / self._total[row][..., None])

    def _row(self, state: IntArray, action: IntArray) -> IntArray:
        row = (self._here * self.num_states + state) * self.num_actions + action
        return np.asarray(row, dtype=np.int64) if row.dtype.kind in "iu" else row

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [*shape]."""
        from pastwise import kernels

        row, following = self._row(state, action), np.asarray(next_state)
        if row.shape != self.shape or following.shape != self.shape:
            row, following = (broadcast("a record", index, self.shape) for index in (row, following))
        if row.dtype.kind + following.dtype.kind not in ("ii", "iu"):
            raise IndexError(f"states and actions go by whole numbers, not {row.dtype} and {following.dtype}")
        entries, learned = self._entries, (self._total, self._negentropy)
        entries.first, entries.next_state, entries.data = kernels.observe(
            *entries.rows,
            self._background,
            self.num_states,
            row.ravel(),
            following.ravel().astype(np.int64, copy=False),
            *learned,
        )
