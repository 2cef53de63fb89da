"""TransitionCounts: all that the method needs to know of a log.

How well a past transition serves a goal depends on nothing but the transition, so the number of times that each
distinct transition occurred is a sufficient statistic. Counts form a commutative monoid under ``+``: shards of a log
may be counted anywhere and in any order. Order itself is forgotten; `Transitions` carries the last few records where
it matters.

A transition is kept as one integer, its `key`: the flat index into ``[..., state, action, next_state]``. Leading axes
are independent logs, so one set of counts may hold those of ten thousand simulated runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    frozen,
    group_sum,
    where_first,
)
from pastwise.data.records import Transitions
from pastwise.data.space import Space


@dataclass(frozen=True)
class Decay:
    """Older records weigh less: a weight halves with every ``half_life``, seen from ``as_of``."""

    as_of: float
    half_life: float

    def __post_init__(self) -> None:
        numbers = isinstance(self.as_of, (int, float)) and isinstance(self.half_life, (int, float))
        if not numbers or not isfinite(self.as_of) or not 0 < self.half_life < inf:
            raise ValueError(
                f"a decay needs a date and a positive half-life, not {self.as_of!r} and {self.half_life!r}"
            )

    def factor(self, later: float) -> float:
        """What a weight as of this date is multiplied by to be as of a later one."""
        return float(0.5 ** ((later - self.as_of) / self.half_life))


@dataclass(frozen=True, eq=False)
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
    tasks : Space, optional
        What the leading axis stands for, where a log holds several past tasks.
    terminal : [number]
        Indices of the states in which an episode ends, ascending.
    decay : Decay, optional
        How weights fell with age.

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
    tasks: Space | None = None
    terminal: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    decay: Decay | None = None

    def __post_init__(self) -> None:
        for name in (*COLUMNS, "terminal"):
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
            raise ValueError(
                f"state, action and next_state differ in shape: {s.shape}, {a.shape}, {n.shape}"
            )
        each = np.atleast_1d(np.asarray(weight, dtype=np.float64))
        bad = ~(np.isfinite(each) & (each > 0))
        if s.size and bad.any():
            where = where_first(bad)
            raise ValueError(
                f"weight{list(where)} is {each[where]}; weights must be finite and positive"
            )
        w = np.broadcast_to(each, s.shape)
        shape = s.shape[:-1]
        batch = np.arange(prod(shape)).reshape(*shape, 1)
        key = flat_key(batch, s, a, n, len(states), len(actions))
        ones = np.ones(s.size, dtype=np.int64)
        return cls(
            states, actions, *_grouped(key.ravel(), ones, w.flatten(), w.ravel() ** 2), shape
        )

    @classmethod
    def from_groups(
        cls,
        states: Space,
        actions: Space,
        index: tuple[IntArray, IntArray, IntArray, IntArray],
        sums: tuple[IntArray, FloatArray, FloatArray],
        tasks: Space | None = None,
        decay: Decay | None = None,
    ) -> TransitionCounts:
        """Counts that an engine has already summed.

        Parameters
        ----------
        index : task, state, action and next state of each group, [groups]
        sums : records, weights and squared weights of each group, [groups]
        """
        key = flat_key(*index, len(states), len(actions))
        shape = () if tasks is None else (len(tasks),)
        return cls(states, actions, *_grouped(key, *sums), shape, tasks, decay=decay)

    @classmethod
    def from_transitions(cls, log: Transitions, states: Space, actions: Space) -> TransitionCounts:
        """Count a log of records by index."""
        return cls.from_records(*log, states=states, actions=actions)

    @classmethod
    def empty(cls, states: Space, actions: Space, shape: tuple[int, ...] = ()) -> TransitionCounts:
        """No record at all: the neutral element of ``+``."""
        none = np.empty((*shape, 0), dtype=np.int64)
        return cls.from_records(none, none, none, states, actions)

    def _grouped(self) -> TransitionCounts:
        """The same with each key once, ascending."""
        key, records, weight, squared = _grouped(
            self.key, self.records, self.weight, self.weight_squared
        )
        if key is self.key:
            return self
        return replace(self, key=key, records=records, weight=weight, weight_squared=squared)

    def evenly_weighted(self) -> TransitionCounts:
        """The counts in units of a typical record.

        Weights all alike count each record once, others as many as they are worth: their total, in each of the logs, is
        the effective number of records, (sum w)^2 / sum w^2.
        """
        total, squared = (
            group_sum(self.batch, w, prod(self.shape)) for w in (self.weight, self.weight_squared)
        )
        return self.scale((total / np.where(squared > 0, squared, 1.0))[self.batch])

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

    @cached_property
    def batch(self) -> IntArray:
        """Flat index of the log of each distinct transition into ``[*shape]``."""
        return frozen(self.row // (len(self.actions) * len(self.states)))

    @cached_property
    def _rows(self) -> tuple[IntArray, IntArray]:
        """The states and actions that occur, as in `row`, ascending, and where each begins."""
        starts = np.flatnonzero(np.diff(self.row, prepend=-1))
        return self.row[starts], starts

    def by_state_action(self, values: FloatArray) -> FloatArray:
        """Sum of ``values [..., distinct]`` over next states: [..., *shape, S, A]."""
        lead, (rows, starts) = values.shape[:-1], self._rows
        shape = (*lead, *self.shape, len(self.states), len(self.actions))
        sums = np.zeros((prod(lead), prod(shape[len(lead) :])))
        if len(rows):
            sums[:, rows] = np.add.reduceat(values.reshape(prod(lead), -1), starts, axis=-1)
        return sums.reshape(shape)

    def sum_by_system(self, values: ArrayLike) -> FloatArray:
        """Sum of ``values [distinct]`` over each of the independent logs: [*shape]."""
        return group_sum(self.batch, values, prod(self.shape)).reshape(self.shape)

    def scale(self, factor: FloatArray | float) -> TransitionCounts:
        """The same records with their weights multiplied by ``factor``, broadcastable to [distinct]."""
        squared = np.asarray(factor) ** 2
        return replace(
            self, weight=self.weight * factor, weight_squared=self.weight_squared * squared
        )

    def plus(self, added: Mapping[int, Sequence[float]]) -> TransitionCounts:
        """The same with further records: key -> number, weight and squared weight."""
        if not added:
            return self
        rows = np.array(list(added.values()))
        extra = (
            np.array(list(added), dtype=np.int64),
            rows[:, 0].astype(np.int64),
            rows[:, 1],
            rows[:, 2],
        )
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), more])
            for name, more in zip(COLUMNS, extra, strict=True)
        }
        return replace(self, **columns)._grouped()

    def where(self, mask: BoolArray | IntArray | slice) -> TransitionCounts:
        """The counts of some of the distinct transitions: mask [distinct], or their places."""
        kept: dict[str, Any] = {name: getattr(self, name)[mask] for name in COLUMNS}
        return replace(self, **kept)

    def ending_in(self, terminal: IntArray) -> TransitionCounts:
        """The counts with these terminal states, and without the records that leave one."""
        ends = np.unique(terminal)
        return replace(self.where(~np.isin(self.state, ends)), terminal=ends)

    def total(self) -> TransitionCounts:
        """All logs taken as one: no leading axes, no tasks."""
        if not self.shape:
            return self
        size = len(self.states) * len(self.actions) * len(self.states)
        return replace(self, key=self.key % size, shape=(), tasks=None)._grouped()

    def split(self) -> list[TransitionCounts]:
        """The counts of each element of a single leading axis, such as each task's."""
        size = len(self.states) * len(self.actions) * len(self.states)
        bounds = np.searchsorted(self.key, np.arange(self.shape[0] + 1) * size)
        parts = [slice(*pair) for pair in pairwise(bounds.tolist())]
        columns = ({name: getattr(self, name)[part] for name in COLUMNS} for part in parts)
        return [
            replace(self, **{**c, "key": c["key"] - i * size}, shape=(), tasks=None)
            for i, c in enumerate(columns)
        ]

    def relabelled(
        self, states: Space, actions: Space, tasks: Space | None = None
    ) -> TransitionCounts:
        """The same counts over larger spaces, which must hold every label of the present ones."""
        if (states, actions, tasks or self.tasks) == (self.states, self.actions, self.tasks):
            return self
        to_state, to_action = (
            states.indices(self.states.labels),
            actions.indices(self.actions.labels),
        )
        batch, shape = self.batch, self.shape
        tasks = self.tasks if tasks is None else tasks
        if tasks is not None and self.tasks is not None:
            batch, shape = tasks.indices(self.tasks.labels)[batch], (len(tasks),)
        s, a, n = to_state[self.state], to_action[self.action], to_state[self.next_state]
        key = flat_key(batch, s, a, n, len(states), len(actions))
        terminal = np.sort(to_state[self.terminal])
        return replace(
            self,
            states=states,
            actions=actions,
            tasks=tasks,
            shape=shape,
            key=key,
            terminal=terminal,
        )._grouped()

    def as_of(self, date: float) -> TransitionCounts:
        """The same counts, their weights as seen from a later date."""
        if self.decay is None:
            raise ValueError("these counts do not fall with age")
        return replace(self.scale(self.decay.factor(date)), decay=replace(self.decay, as_of=date))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name))
            if f.name in (*COLUMNS, "terminal")
            else getattr(self, f.name) == getattr(other, f.name)
            for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        """Both logs together: labels are united, and weights that fall with age are taken as of the later date."""
        if (self.tasks is None) != (other.tasks is None) or (
            self.tasks is None and self.shape != other.shape
        ):
            raise ValueError(
                "counts with different leading axes, or with tasks and without, cannot be added"
            )
        if (self.decay and self.decay.half_life) != (other.decay and other.decay.half_life):
            raise ValueError("counts whose weights fall differently with age cannot be added")
        tasks = self.tasks.union(other.tasks) if self.tasks and other.tasks else None
        spaces = (self.states.union(other.states), self.actions.union(other.actions), tasks)
        one, two = self.relabelled(*spaces), other.relabelled(*spaces)
        if one.decay and two.decay:
            later = max(one.decay.as_of, two.decay.as_of)
            one, two = one.as_of(later), two.as_of(later)
        columns: dict[str, Any] = {
            n: np.concatenate([getattr(one, n), getattr(two, n)]) for n in COLUMNS
        }
        return replace(one, **columns, terminal=np.union1d(one.terminal, two.terminal))._grouped()


COLUMNS = ("key", "records", "weight", "weight_squared")


def _grouped(
    key: IntArray, records: IntArray, weight: FloatArray, squared: FloatArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """The sums of each key once, ascending."""
    if (key[1:] > key[:-1]).all():
        return key, records, weight, squared
    order = np.argsort(key, kind="stable")
    key, records, weight, squared = key[order], records[order], weight[order], squared[order]
    again = key[1:] == key[:-1]
    if not again.any():
        return key, records, weight, squared
    new = np.append(True, ~again)
    group, number = np.cumsum(new) - 1, int(new.sum())
    sums = [group_sum(group, column, number) for column in (records, weight, squared)]
    return key[new], sums[0].astype(np.int64), sums[1], sums[2]


def flat_key(
    batch: IntArray,
    state: IntArray,
    action: IntArray,
    next_state: IntArray,
    num_states: int,
    num_actions: int,
) -> IntArray:
    """Flat index of transitions into ``[*shape, state, action, next_state]``."""
    return np.asarray(
        ((batch * num_states + state) * num_actions + action) * num_states + next_state
    )


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
