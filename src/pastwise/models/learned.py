"""A transition model learned from counts."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    broadcast,
    fold,
    frozen,
    group_sum,
)
from pastwise.data.counts import TransitionCounts, flat_key
from pastwise.models.rows import Entries

FEW_STATES = 8
"""Up to so many states a learned model keeps an entry for every transition, seen or not: none is ever inserted."""


def _absorbing(counts: TransitionCounts) -> TransitionCounts:
    """The counts with every terminal state leading to itself, once, and nowhere else."""
    S, A, ends = len(counts.states), len(counts.actions), counts.terminal
    kept = ~np.isin(counts.state, ends)
    batch, end, action = (
        index.ravel() for index in np.meshgrid(np.arange(prod(counts.shape)), ends, np.arange(A))
    )
    key = np.concatenate([counts.key[kept], flat_key(batch, end, action, end, S, A)])
    weight = np.concatenate([counts.weight[kept], np.ones(len(end))])
    order = np.argsort(key)
    return replace(counts, key=key[order], weight=weight[order])


class LearnedModel:
    """The mean of the Dirichlet posterior of a transition model: (count + background) / total.

    Every next state that was never seen shares one constant, so the dense tensor is never built. The model goes on
    learning: `observe` adds a record to each system in place and recomputes what depends on its row, and that alone.

    The counts are those of the log itself, not weighted by similarity: the world does not depend on the goal.

    Parameters
    ----------
    counts : TransitionCounts
        What was seen; its weights are the counts.
    background : float
        Prior count of every (state, action, next_state). Terminal states have none: they lead to themselves.

    Examples
    --------
    >>> from pastwise.data.space import Space
    >>> model = LearnedModel(TransitionCounts.empty(Space.of_size(2), Space.of_size(1)), background=1.0)
    >>> model.observe(np.array(0), np.array(0), np.array(1))
    >>> model.row(np.array(0), np.array(0)).round(3).tolist()
    [0.333, 0.667]
    """

    def __init__(self, counts: TransitionCounts, background: float) -> None:
        from pastwise._numerics import kernels

        if not (np.isfinite(background) and background > 0):
            raise ValueError(f"the background count must be positive, not {background}")
        self.shape, self.num_states, self.num_actions = (
            counts.shape,
            len(counts.states),
            len(counts.actions),
        )
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
        kernels.tally(
            first, data, self._background, self.num_states, rows, self._total, self._negentropy
        )

    @property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]."""
        return frozen(self._by_state_action(self._negentropy))

    def _by_state_action(self, rows: FloatArray) -> FloatArray:
        return rows.reshape(*self.shape, self.num_states, self.num_actions)

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules of the first epochs, and ln gamma, from the end on."""
        if (
            not self._entries.plan(self._background, self._total, now, policy, log_gamma)
            and self._background.any()
        ):
            for values in log_gamma[
                :0:-1
            ]:  # the first that was impossible; what was made of it is not looked at
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
        return np.asarray(
            (self._entries.times_each(values) + unseen) / self._by_state_action(self._total)
        )

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
        from pastwise._numerics import kernels

        row, following = self._row(state, action), np.asarray(next_state)
        if row.shape != self.shape or following.shape != self.shape:
            row, following = (
                broadcast("a record", index, self.shape) for index in (row, following)
            )
        if row.dtype.kind + following.dtype.kind not in ("ii", "iu"):
            raise IndexError(
                f"states and actions go by whole numbers, not {row.dtype} and {following.dtype}"
            )
        entries, learned = self._entries, (self._total, self._negentropy)
        entries.first, entries.next_state, entries.data = kernels.observe(
            *entries.rows,
            self._background,
            self.num_states,
            row.ravel(),
            following.ravel().astype(np.int64, copy=False),
            *learned,
        )
