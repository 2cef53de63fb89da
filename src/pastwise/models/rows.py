"""Sparse rows: the next states of every (system, state, action) with their weights, and what designs ask of them.

Sparse, learned and small dense models are made of these; see `models`.
"""

from __future__ import annotations

from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, group_sum
from pastwise._numerics.threads import CORES, map_in_threads

MANY_ENTRIES = 500_000
"""A block of a sparse model has about so many entries: what is worked out for it stays in a core's cache."""

MUCH_WORK = 100_000
"""Numbers to be worked out that are worth a thread."""

LONG_WORK = 50_000_000
"""Numbers that are worked out before an interrupt is heeded: a tenth of a second."""


def require_last(shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    """Refuse a batch whose last axes are not the systems' own: its goals go before them."""
    if shape and batch[-len(shape) :] != shape:
        raise ValueError(
            f"systems of shape {shape} with goals or values give a batch of shape {batch}: put the axes of goals "
            "before those of systems, as in goals [g, 1] for systems [n]"
        )


def ranges(length: int, number: int) -> list[tuple[int, int]]:
    """About so many ranges that together are ``range(length)``: at least one, none empty."""
    if number <= 1:
        return [(0, length)]
    return list(pairwise(np.linspace(0, length, min(number, length) + 1).astype(int).tolist()))


class Entries:
    """Entries of a tensor [*shape, S, A, S], row by row of (system, state, action), and sums over them.

    Row r has the next states ``next_state[first[r] : first[r + 1]]``, ascending and in 32 bits, and their ``data``.
    """

    def __init__(
        self,
        first: IntArray,
        next_state: Any,
        data: FloatArray,
        shape: tuple[int, ...],
        num_states: int,
        num_actions: int,
    ) -> None:
        self.first, self.next_state, self.data, self.shape = first, next_state, data, shape
        self.num_states, self.num_actions, self.num_rows = num_states, num_actions, len(first) - 1

    @staticmethod
    def by_key(
        key: IntArray, data: FloatArray, shape: tuple[int, ...], num_states: int, num_actions: int
    ) -> Entries:
        """The entries at these places, ascending, of the flat tensor."""
        row = key // num_states
        first = np.zeros(prod(shape) * num_states * num_actions + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=len(first) - 1), out=first[1:])
        return Entries(
            first, (key - row * num_states).astype(np.int32), data, shape, num_states, num_actions
        )

    @property
    def rows(self) -> tuple[IntArray, Any, FloatArray]:
        """All of them, as kernels take them."""
        return self.first, self.next_state, self.data

    @property
    def row(self) -> IntArray:
        """Flat (system, state, action) of each entry."""
        return np.repeat(np.arange(self.num_rows), np.diff(self.first))

    def spread(self, rows: IntArray) -> FloatArray:
        """The rows as tables: [n] -> [n, S]."""
        from pastwise._numerics import kernels

        return kernels.spread(*self.rows, rows, self.num_states)

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of states of about `MANY_ENTRIES` each; all states where there are several systems."""
        return ranges(self.num_states, 1 if self.shape else len(self.data) // MANY_ENTRIES)

    def per_row(self, values: FloatArray) -> FloatArray:
        """Sum of one number per entry over each row: [rows]."""
        return group_sum(self.row, values, self.num_rows)

    def expect(
        self, unseen: FloatArray | None, total: FloatArray | None, values: FloatArray
    ) -> FloatArray:
        """E[values(next_state) | state, action], [..., S] -> [..., S, A], of the entries and a weight beside them.

        That weight, of every next state, and the total of all are [rows]; without them, 0 and 1.
        """
        from pastwise._numerics import kernels

        if values.shape != (*self.shape, self.num_states):
            values = np.broadcast_to(
                values, np.broadcast_shapes(values.shape, (*self.shape, self.num_states))
            )
            require_last(self.shape, values.shape[:-1])
        out = np.empty((*values.shape, self.num_actions))
        rows = (*self.rows, unseen, total)
        table, means = (
            values.reshape(-1, self.num_states),
            out.reshape(-1, self.num_states * self.num_actions),
        )
        map_in_threads(
            lambda states: kernels.expect(*rows, table, means, (0, len(table)), states), self.blocks
        )
        return out

    def plan(
        self,
        unseen: FloatArray | None,
        total: FloatArray | None,
        now: FloatArray,
        policy: FloatArray,
        log_gamma: FloatArray,
    ) -> bool:
        """`TransitionModel.plan` of the entries and a weight beside them, as in `expect`; if gamma has no zero."""
        from pastwise._numerics import kernels

        rows = (*self.rows, unseen, total)
        horizon, batch = len(log_gamma) - 1, log_gamma.shape[1]
        work = batch * (len(self.data) + self.num_rows) // max(1, prod(self.shape))
        if len(self.blocks) > 1:  # an epoch needs all states of the one after it
            step, parts = 1, [((0, batch), states) for states in self.blocks]
        else:
            step = min(horizon, max(1, LONG_WORK // max(1, work)))
            some = ranges(batch, min(step * work // MUCH_WORK, CORES))
            parts = [(each, self.blocks[0]) for each in some]
        feasible = True
        for stop in range(horizon, 0, -step):
            epochs = (max(0, stop - step), stop)
            feasible &= all(
                map_in_threads(partial(kernels.plan, *rows, now, policy, log_gamma, epochs), parts)
            )
        return feasible

    def times_each(self, values: FloatArray) -> FloatArray:
        """Sum of entry * values(state, action, next_state) over each row: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        full = (*self.shape, self.num_states, self.num_actions, self.num_states)
        values = np.broadcast_to(values, np.broadcast_shapes(values.shape, full))
        goals = values.shape[: values.ndim - len(full)]
        where = np.unravel_index(self.row * self.num_states + self.next_state, full)
        sums = [
            self.per_row(self.data * table[where]) for table in values.reshape(prod(goals), *full)
        ]
        return np.array(sums).reshape(*goals, *full[:-1])
