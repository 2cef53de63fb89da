"""TransitionCounts: all that the method needs to know of a log.

How well a past transition serves a goal depends on nothing but the transition, so the number of times that each
distinct transition occurred is a sufficient statistic. Counts form a commutative monoid under ``+``: shards of a log
may be counted anywhere and in any order. Order itself is forgotten; `Transitions` carries the last few records where
it matters.

A transition is kept as one integer, its `key`: the flat index into ``[..., state, action, next_state]``. Leading axes
are independent logs, so one set of counts may hold those of ten thousand simulated runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pastwise.numerics import FloatArray, IntArray, frozen, group_sum, where_first
from pastwise.spaces import Space


class Transitions(NamedTuple):
    """Records in their order; each field is [..., records], the leading axes being independent logs."""

    state: IntArray
    action: IntArray
    next_state: IntArray

    def last(self, number: int) -> Transitions:
        """The last ``number`` records, or all where there are fewer."""
        start = max(0, self.state.shape[-1] - number)
        return Transitions(*(field[..., start:] for field in self))


@dataclass(frozen=True)
class TransitionCounts:
    """How often, and with what weight, each distinct transition occurred.

    Attributes
    ----------
    states, actions : Space
        What the indices stand for.
    key : [distinct]
        Flat index of each distinct transition into ``[*shape, state, action, next_state]``, ascending.
    records, weight, weight_squared : [distinct]
        Number of records, the sum of their weights, and the sum of the weights' squares.
    shape : tuple of int
        Leading axes: independent logs.

    Examples
    --------
    >>> counts = TransitionCounts.from_records([0, 0, 1], [1, 1, 0], [1, 1, 0], Space.of_size(2), Space.of_size(2))
    >>> counts.records.tolist(), counts.state.tolist(), counts.action.tolist(), counts.next_state.tolist()
    ([2, 1], [0, 1], [1, 0], [1, 0])
    >>> (counts + counts).records.tolist()
    [4, 2]
    """

    states: Space
    actions: Space
    key: IntArray
    records: IntArray
    weight: FloatArray
    weight_squared: FloatArray
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("key", "records", "weight", "weight_squared"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @classmethod
    def from_records(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        next_state: ArrayLike,
        states: Space,
        actions: Space,
        weight: ArrayLike = 1.0,
    ) -> TransitionCounts:
        """Count records given by index: arrays [..., records]; ``weight`` is broadcast to them."""
        s, a, n = (
            _checked_indices(name, values, len(space))
            for name, values, space in (
                ("state", state, states),
                ("action", action, actions),
                ("next_state", next_state, states),
            )
        )
        if not s.shape == a.shape == n.shape or s.ndim == 0:
            raise ValueError(f"state, action and next_state differ in shape: {s.shape}, {a.shape}, {n.shape}")
        w = np.broadcast_to(np.asarray(weight, dtype=np.float64), s.shape)
        bad = ~(np.isfinite(w) & (w > 0))
        if bad.any():
            where = where_first(bad)
            raise ValueError(f"weight{list(where)} is {w[where]}; weights must be finite and positive")
        shape = s.shape[:-1]
        batch = np.arange(prod(shape)).reshape(*shape, 1)
        key = ((batch * len(states) + s) * len(actions) + a) * len(states) + n
        return cls._grouped(states, actions, shape, key.ravel(), np.ones(s.size, np.int64), w.ravel(), w.ravel() ** 2)

    @classmethod
    def from_transitions(cls, log: Transitions, states: Space, actions: Space) -> TransitionCounts:
        """Count a log of records by index."""
        return cls.from_records(*log, states=states, actions=actions)

    @classmethod
    def empty(cls, states: Space, actions: Space, shape: tuple[int, ...] = ()) -> TransitionCounts:
        """No record at all: the neutral element of ``+``."""
        none = np.empty((*shape, 0), dtype=np.int64)
        return cls.from_records(none, none, none, states, actions)

    @classmethod
    def _grouped(
        cls,
        states: Space,
        actions: Space,
        shape: tuple[int, ...],
        key: IntArray,
        records: IntArray,
        weight: FloatArray,
        weight_squared: FloatArray,
    ) -> TransitionCounts:
        distinct, group = np.unique(key, return_inverse=True)
        size = len(distinct)
        return cls(
            states,
            actions,
            distinct,
            group_sum(group, records, size).astype(np.int64),
            group_sum(group, weight, size),
            group_sum(group, weight_squared, size),
            shape,
        )

    @property
    def num_records(self) -> int:
        """Number of records counted."""
        return int(self.records.sum())

    @cached_property
    def row(self) -> IntArray:
        """Flat index of (state, action) of each distinct transition into ``[*shape, state, action]``."""
        return frozen(self.key // len(self.states))

    @cached_property
    def next_state(self) -> IntArray:
        """Next state of each distinct transition."""
        return frozen(self.key % len(self.states))

    @cached_property
    def action(self) -> IntArray:
        """Action of each distinct transition."""
        return frozen(self.row % len(self.actions))

    @cached_property
    def state(self) -> IntArray:
        """State of each distinct transition."""
        return frozen(self.row // len(self.actions) % len(self.states))

    def by_state_action(self, values: FloatArray) -> FloatArray:
        """Sum of ``values [distinct]`` over next states: [..., S, A]."""
        shape = (*self.shape, len(self.states), len(self.actions))
        return group_sum(self.row, values, prod(shape)).reshape(shape)

    def scale(self, factor: FloatArray) -> TransitionCounts:
        """The same records with their weights multiplied by ``factor``, broadcastable to [distinct]."""
        return replace(self, weight=self.weight * factor, weight_squared=self.weight_squared * np.asarray(factor) ** 2)

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        if (self.states, self.actions, self.shape) != (other.states, other.actions, other.shape):
            raise ValueError("only counts over the same states, actions and leading axes can be added")
        columns = (
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("key", "records", "weight", "weight_squared")
        )
        return self._grouped(self.states, self.actions, self.shape, *columns)


def _checked_indices(name: str, values: ArrayLike, size: int) -> IntArray:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must hold integer indices, not {array.dtype}")
    outside = (array < 0) | (array >= size)
    if outside.any():
        where = where_first(outside)
        raise ValueError(f"{name}{list(where)} is {array[where]}; indices run from 0 to {size - 1}")
    return array.astype(np.int64)
