"""Sparse rows, and the sparse rows of a transition model with the expectations of a design.

Sparse, learned and small dense models consist of `TransitionRows`. The loops are compiled
(`_numerics.kernels`); here the work is divided into blocks and among threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pastwise._numerics.arrays import FloatArray, IntArray, group_sum
from pastwise._numerics.threads import CORES, map_in_threads
from pastwise.errors import ParameterError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ENTRIES_PER_BLOCK = 500_000
"""Entries of a block of a large model: its intermediate results stay in a core's cache."""

WORK_PER_THREAD = 100_000
"""Numbers to compute that justify the start of a thread."""

WORK_PER_CALL = 50_000_000
"""Numbers computed between two chances to interrupt: about a tenth of a second."""


def require_systems_last(shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    """Refuse a batch whose last axes are not those of the systems: goals go before them."""
    if shape and batch[-len(shape) :] != shape:
        raise ParameterError(
            f"systems of shape {shape} with goals or values give a batch of shape {batch}: put the "
            "axes of goals before those of systems, as in goals [g, 1] for systems [n]"
        )


def split_range(length: int, number: int) -> list[tuple[int, int]]:
    """About ``number`` ranges that together are ``range(length)``: at least one, none empty."""
    if number <= 1:
        return [(0, length)]
    bounds = np.linspace(0, length, min(number, length) + 1).astype(int)
    return list(pairwise(bounds.tolist()))


@dataclass(eq=False)
class SparseRows:
    """A sparse matrix by rows.

    Attributes
    ----------
    first : [rows + 1]
        Row r has the entries ``first[r]``, ..., ``first[r + 1] - 1``.
    column : [entries]
        Column of each entry, ascending within a row.
    value : [entries]
    num_columns : int
    """

    first: IntArray
    column: NDArray[np.int32] | IntArray
    value: FloatArray
    num_columns: int

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.first) - 1

    @property
    def arrays(self) -> tuple[IntArray, NDArray[np.int32] | IntArray, FloatArray]:
        """``first``, ``column`` and ``value``, as kernels take them."""
        return self.first, self.column, self.value

    @property
    def row(self) -> IntArray:
        """Row of each entry: [entries]."""
        return np.repeat(np.arange(self.num_rows), np.diff(self.first))

    def sum_by_row(self, values: FloatArray) -> FloatArray:
        """Sum of one number per entry over each row: [entries] -> [rows]."""
        return group_sum(self.row, values, self.num_rows)

    def dense(self, rows: IntArray) -> FloatArray:
        """Some of the rows in dense form: [n] -> [n, columns]."""
        from pastwise._numerics import kernels

        return kernels.spread(*self.arrays, rows, self.num_columns)

    @cached_property
    def matrix(self) -> csr_array[np.float64, tuple[int, int]]:
        """The same as a SciPy matrix, for products."""
        from scipy.sparse import csr_array

        shape = (self.num_rows, self.num_columns)
        return csr_array((self.value, self.column, self.first), shape=shape)


@dataclass(eq=False)
class TransitionRows(SparseRows):
    """Sparse entries of a tensor [*shape, S, A, S]: one row per (system, state, action).

    The columns are the next states. Two optional arrays [rows] turn weights into probabilities,
    (value + background) / total: a ``background`` weight of every next state in addition to the
    entries, and the ``total`` of all weights. Without them the entries are the probabilities.

    Attributes
    ----------
    shape : tuple of int
        Leading axes: independent systems.
    num_actions : int
    """

    shape: tuple[int, ...]
    num_actions: int

    @classmethod
    def from_keys(
        cls,
        key: IntArray,
        value: FloatArray,
        shape: tuple[int, ...],
        num_states: int,
        num_actions: int,
    ) -> TransitionRows:
        """Entries at ascending places of the flat tensor."""
        row = key // num_states
        next_state = (key - row * num_states).astype(np.int32)
        num_rows = prod(shape) * num_states * num_actions
        first = np.zeros(num_rows + 1, dtype=np.int64)
        np.cumsum(np.bincount(row, minlength=num_rows), out=first[1:])
        return cls(first, next_state, value, num_states, shape, num_actions)

    @property
    def num_states(self) -> int:
        """S."""
        return self.num_columns

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        """Ranges of states of about `ENTRIES_PER_BLOCK` each; one for several systems."""
        number = 1 if self.shape else len(self.value) // ENTRIES_PER_BLOCK
        return split_range(self.num_states, number)

    def expect(
        self,
        values: FloatArray,
        background: FloatArray | None = None,
        total: FloatArray | None = None,
    ) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        from pastwise._numerics import kernels

        # Values for every system and next state.
        full = (*self.shape, self.num_states)
        if values.shape != full:
            values = np.broadcast_to(values, np.broadcast_shapes(values.shape, full))
            require_systems_last(self.shape, values.shape[:-1])

        # Blocks of states in parallel.
        out = np.empty((*values.shape, self.num_actions))
        flat_values = values.reshape(-1, self.num_states)
        flat_out = out.reshape(-1, self.num_states * self.num_actions)
        model = (*self.arrays, background, total)
        batch = (0, len(flat_values))
        map_in_threads(
            lambda states: kernels.expect(*model, flat_values, flat_out, batch, states),
            self._blocks,
        )
        return out

    def plan(
        self,
        now: FloatArray,
        policy: FloatArray,
        log_gamma: FloatArray,
        background: FloatArray | None = None,
        total: FloatArray | None = None,
    ) -> bool:
        """`TransitionModel.plan`; returns whether gamma is positive everywhere."""
        from pastwise._numerics import kernels

        horizon = len(log_gamma) - 1
        batch = log_gamma.shape[1]
        work_per_epoch = batch * (len(self.value) + self.num_rows) // max(1, prod(self.shape))
        if len(self._blocks) > 1:
            # An epoch needs all states of the one after it: blocks of states, epoch by epoch.
            epochs_per_call = 1
            parts = [((0, batch), states) for states in self._blocks]
        else:
            # Elements of the batch are independent: as many epochs at a time as is sensible.
            epochs_per_call = min(horizon, max(1, WORK_PER_CALL // max(1, work_per_epoch)))
            threads = min(epochs_per_call * work_per_epoch // WORK_PER_THREAD, CORES)
            parts = [(elements, self._blocks[0]) for elements in split_range(batch, threads)]

        # From the end on.
        model = (*self.arrays, background, total)
        feasible = True
        for stop in range(horizon, 0, -epochs_per_call):
            epochs = (max(0, stop - epochs_per_call), stop)
            plan_part = partial(kernels.plan, *model, now, policy, log_gamma, epochs)
            feasible &= all(map_in_threads(plan_part, parts))
        return feasible

    def expect_each(self, values: FloatArray) -> FloatArray:
        """Sum of entry * values(state, action, next_state) over each row.

        [..., 1 or S, 1 or A, S] -> [..., S, A].
        """
        full = (*self.shape, self.num_states, self.num_actions, self.num_states)
        values = np.broadcast_to(values, np.broadcast_shapes(values.shape, full))
        goals = values.shape[: values.ndim - len(full)]
        place = np.unravel_index(self.row * self.num_states + self.column, full)
        tables = values.reshape(prod(goals), *full)
        sums = [self.sum_by_row(self.value * table[place]) for table in tables]
        return np.array(sums).reshape(*goals, *full[:-1])
