"""Transition models: what the design needs to know of a system, however it is stored.

Three models stand behind one protocol. A *dense* one is the tensor p(next_state | state, action). A *sparse* one
keeps its non-zeros. A *learned* one is the mean of a Dirichlet posterior, (count + background) / total: sparse counts
plus a constant, so the dense tensor is never needed. ``-inf`` is a legal value everywhere; ``0 * (-inf)`` counts as
0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pastwise.counts import TransitionCounts, flat_key
from pastwise.numerics import (
    FloatArray,
    IntArray,
    batch_index,
    check_sums,
    checked_probabilities,
    fold,
    frozen,
    group_sum,
    linear_expectation,
    side_by_side,
    xlogx,
)

ALL = slice(None)
"""Every state."""

MANY_ENTRIES = 500_000
"""A block of a sparse model has about so many entries: what is worked out for it stays in a core's cache."""

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

    @property
    def blocks(self) -> Sequence[slice]:
        """Ranges of states that are best worked on one by one, or side by side; together all states."""
        ...

    def prefer(
        self, now: FloatArray, values: FloatArray, rule: FloatArray, peak: FloatArray, states: slice = ALL
    ) -> None:
        """Write now + E[values(next_state) | state, action], less its peak in each state, into ``rule``.

        For a block of states: now, rule [batch, states, A]; peak [batch, states]. The values [batch, S] are of as many
        goals, or of each system, or of systems within goals. Where all actions are -inf the peak is 0.
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


def require_last(shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    """Refuse a batch whose last axes are not the systems' own: its goals go before them."""
    if shape and batch[-len(shape) :] != shape:
        raise ValueError(
            f"systems of shape {shape} with goals or values give a batch of shape {batch}: put the axes of goals "
            "before those of systems, as in goals [g, 1] for systems [n]"
        )


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

    @cached_property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(xlogx(self.transition).sum(axis=-1, dtype=np.float64))

    @property
    def blocks(self) -> Sequence[slice]:
        """All states: BLAS has its own threads."""
        return (ALL,)

    def prefer(
        self, now: FloatArray, values: FloatArray, rule: FloatArray, peak: FloatArray, states: slice = ALL
    ) -> None:
        """Write now + E[values(next_state) | state, action], less its peak in each state, into ``rule``."""
        from pastwise import kernels

        by_system = values.reshape(-1, *self.shape, self.num_states)
        np.add(now, self.expect(by_system).reshape(now.shape), out=rule)
        kernels.centre(rule, peak)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        return linear_expectation(self._apply, values, lambda mask: self._product(mask.astype(self.transition.dtype)))

    def _apply(self, values: FloatArray) -> FloatArray:
        if self.transition.dtype == np.float32:
            middle = ((values.max(axis=-1) + values.min(axis=-1)) / 2)[..., None]  # what is left rounds finely
            rest = self._product((values - middle).astype(np.float32))
            return np.asarray(rest + middle[..., None], dtype=np.float64)
        return self._product(values)

    def _product(self, values: Any) -> FloatArray:
        S, A = self.num_states, self.num_actions
        rows, lead = self.transition.reshape(*self.shape, S * A, S), values.shape[:-1]
        if self.shape:
            product = (rows @ values[..., None])[..., 0]
            lead = product.shape[:-1]
        else:
            product = rows @ values.ravel() if prod(lead) == 1 else values @ rows.T
        return np.asarray(product.reshape(*lead, S, A))

    def expect_each(self, values: FloatArray) -> FloatArray:
        """Expectation of values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        return linear_expectation(lambda v: np.einsum("...n,...n->...", self.transition, v), values)

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        return np.asarray(self.transition[(*batch_index(self.shape), state, action)])


class _Entries:
    """Non-zero entries of a tensor [*shape, S, A, S], by ascending flat key, and sums over them."""

    def __init__(
        self, key: IntArray, data: FloatArray, shape: tuple[int, ...], num_states: int, num_actions: int
    ) -> None:
        self.key, self.data, self.shape = key, data, shape
        self.num_states, self.num_actions = num_states, num_actions
        self.num_rows = prod(shape) * num_states * num_actions

    @cached_property
    def row(self) -> IntArray:
        """Flat (state, action) of each entry."""
        return self.key // self.num_states

    @cached_property
    def first(self) -> IntArray:
        """Place of the first entry of each row, and the number of entries: [rows + 1]."""
        return np.searchsorted(self.row, np.arange(self.num_rows + 1))

    @cached_property
    def next_state(self) -> Any:
        """Next state of each entry, in 32 bits."""
        return (self.key % self.num_states).astype(np.int32)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """Ranges of states of about `MANY_ENTRIES` each; a batch is one."""
        number = 1 if self.shape else max(1, len(self.key) // MANY_ENTRIES)
        edges = np.linspace(0, self.num_states, min(number, self.num_states) + 1).astype(int).tolist()
        return tuple(slice(*pair) for pair in pairwise(edges))

    def per_row(self, values: FloatArray) -> FloatArray:
        """Sum of one number per entry over each row: [rows]."""
        return group_sum(self.row, values, self.num_rows)

    def times(self, values: FloatArray) -> FloatArray:
        """Sum of entry * values(next_state) over each row: [..., S] -> [..., S, A]."""
        values = np.broadcast_to(values, np.broadcast_shapes(values.shape, (*self.shape, self.num_states)))
        require_last(self.shape, values.shape[:-1])
        out = np.empty((*values.shape, self.num_actions))
        sums = out.reshape(-1, self.num_states, self.num_actions)
        with side_by_side(self.blocks) as each_block:
            each_block(partial(self._sum, values.reshape(-1, self.num_states), sums))
        return out

    def _sum(self, values: FloatArray, out: FloatArray, states: slice) -> None:
        from pastwise import kernels

        systems = prod(self.shape)
        kernels.times(self.first, self.next_state, self.data, systems, values, out[:, states], states.start)

    def prefer(
        self,
        unseen: FloatArray,
        total: FloatArray,
        now: FloatArray,
        values: FloatArray,
        rule: FloatArray,
        peak: FloatArray,
        states: slice,
    ) -> bool:
        """`TransitionModel.prefer` of the entries, with a weight of every next state beside them, out of a total.

        False where that weight falls on a value of -inf.
        """
        from pastwise import kernels

        model = (self.first, self.next_state, self.data, unseen, total)
        return kernels.prefer(*model, now, values, rule, peak, states.start or 0)

    def times_each(self, values: FloatArray) -> FloatArray:
        """Sum of entry * values(state, action, next_state) over each row: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        full = (*self.shape, self.num_states, self.num_actions, self.num_states)
        values = np.broadcast_to(values, np.broadcast_shapes(values.shape, full))
        goals = values.shape[: values.ndim - len(full)]
        where = np.unravel_index(self.key, full)
        sums = [self.per_row(self.data * table[where]) for table in values.reshape(prod(goals), *full)]
        return np.stack(sums).reshape(*goals, *full[:-1])


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
        row = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
        key = row * self.num_states + csr.indices.astype(np.int64)
        self._entries = _Entries(key, csr.data, (), self.num_states, num_actions)

    @cached_property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [S, A]."""
        sums = self._entries.per_row(xlogx(self._entries.data))
        return frozen(sums.reshape(self.num_states, self.num_actions))

    @property
    def blocks(self) -> Sequence[slice]:
        """Ranges of states that are best worked on one by one, or side by side."""
        return self._entries.blocks

    def prefer(
        self, now: FloatArray, values: FloatArray, rule: FloatArray, peak: FloatArray, states: slice = ALL
    ) -> None:
        """Write now + E[values(next_state) | state, action], less its peak in each state, into ``rule``."""
        rows = (1, self.num_states, self.num_actions)
        self._entries.prefer(np.broadcast_to(0.0, rows), np.broadcast_to(1.0, rows), now, values, rule, peak, states)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        return linear_expectation(self._entries.times, values)

    def expect_each(self, values: FloatArray) -> FloatArray:
        """Expectation of values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        return linear_expectation(self._entries.times_each, values)

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action): [S]."""
        entries, row = self._entries, int(state) * self.num_actions + int(action)
        here = slice(entries.first[row], entries.first[row + 1])
        dense = np.zeros(self.num_states)
        dense[entries.next_state[here]] = entries.data[here]
        return dense


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
        key, data = counts.key.copy(), counts.weight.copy()
        if self.num_states <= FEW_STATES:
            size = prod(self.shape) * self.num_states * self.num_actions * self.num_states
            key, data = np.arange(size), group_sum(key, data, size)
        self._entries = self._with(key, data)
        absent = self.num_states - self._entries.per_row(np.ones(len(key)))
        self._total = self._entries.per_row(data) + self.num_states * self._background
        seen = self._entries.per_row(xlogx(data + self._background[self._entries.row]))
        self._xlogx = seen + absent * xlogx(self._background)
        self._negentropy = self._xlogx / self._total - np.log(self._total)

    def _with(self, key: IntArray, data: FloatArray) -> _Entries:
        return _Entries(key, data, self.shape, self.num_states, self.num_actions)

    @property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(self._by_state_action(self._negentropy))

    def _by_state_action(self, rows: FloatArray) -> FloatArray:
        return rows.reshape(*self.shape, self.num_states, self.num_actions)

    @property
    def blocks(self) -> Sequence[slice]:
        """Ranges of states that are best worked on one by one, or side by side."""
        return self._entries.blocks

    def prefer(
        self, now: FloatArray, values: FloatArray, rule: FloatArray, peak: FloatArray, states: slice = ALL
    ) -> None:
        """Write now + E[values(next_state) | state, action], less its peak in each state, into ``rule``."""
        rows = (-1, self.num_states, self.num_actions)
        unseen, total = self._background.reshape(rows), self._total.reshape(rows)
        if not self._entries.prefer(unseen, total, now, values, rule, peak, states):
            self._refuse_impossible(values)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        self._refuse_impossible(values)
        unseen = self._by_state_action(self._background) * fold(np.add, values)[..., None, None]
        return np.asarray((self._entries.times(values) + unseen) / self._by_state_action(self._total))

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
        first = self._row(state, action)[..., None] * self.num_states
        position, known = self._find(first + np.arange(self.num_states))
        seen = np.where(known, self._entries.data[np.where(known, position, 0)] if known.any() else 0.0, 0.0)
        row = self._row(state, action)
        return np.asarray((seen + self._background[row][..., None]) / self._total[row][..., None])

    def _row(self, state: IntArray, action: IntArray) -> IntArray:
        return np.asarray((self._here * self.num_states + state) * self.num_actions + action)

    def _find(self, key: IntArray) -> tuple[IntArray, Any]:
        """Position of each key among the entries, or where it would go, and whether it is there."""
        keys = self._entries.key
        if len(keys) == self._entries.num_rows * self.num_states:  # every transition has its entry
            return key, np.ones(key.shape, dtype=bool)
        position = np.searchsorted(keys, key)
        known = position < len(keys)
        known[known] = keys[position[known]] == key[known]
        return position, known

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [*shape]."""
        row = self._row(state, action).ravel()
        key = row * self.num_states + np.ravel(next_state)
        left = self._background[row] > 0  # a terminal state is never left
        row, key = row[left], key[left]
        position, known = self._find(key)
        if not known.all():
            entries, new = self._entries, ~known
            self._entries = self._with(
                np.insert(entries.key, position[new], key[new]), np.insert(entries.data, position[new], 0.0)
            )
            position, _ = self._find(key)
        before = self._entries.data[position] + self._background[row]
        self._entries.data[position] += 1
        self._total[row] += 1
        self._xlogx[row] += xlogx(before + 1) - xlogx(before)
        self._negentropy[row] = self._xlogx[row] / self._total[row] - np.log(self._total[row])
