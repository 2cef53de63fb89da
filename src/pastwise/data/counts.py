"""TransitionCounts: everything that a method needs to know about a log.

How similar a past transition is to a goal depends on nothing but the transition. So the number of
times that each distinct transition occurred is a sufficient statistic. Counts form a commutative
monoid under ``+``: shards of a log may be counted anywhere and in any order. Counts forget the
order of the records; `Transitions` carries the last few where order matters.

A transition is stored as one integer, its `key`: the flat index into
``[..., state, action, next_state]``. Leading axes are independent logs, so that a single
`TransitionCounts` can hold the logs of ten thousand simulated runs. Keys have 64 bits: spaces with
more possible transitions are refused, and so are sums of records or weights that no number holds.

A log may have a reward for each record. Then counts keep two more sums of each transition,
``sum w r`` and ``sum w r^2`` over its records of weight w and reward r: the mean reward of any
group of transitions, and its variance, follow from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, prod
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from pastwise._display import MAX_ROWS, Table, more_of, paragraph
from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    broadcast,
    frozen,
    group_sum,
    where_first,
)
from pastwise._numerics.checks import require_memory
from pastwise.data.records import Transitions
from pastwise.data.space import Space, key_of
from pastwise.errors import ParameterError

KEY_LIMIT = 2**63
"""Number of keys that 64-bit integers distinguish; also the limit of a number of records."""

SUM_ROUNDING = 1e-6
"""Relative rounding that sums of weights may have: far more than adding a billion numbers in any
order gives."""

REWARD_SUMS = ("reward", "reward_squared")
"""Names of the sums that counts have only where the log has rewards."""

UNDERFLOW = 1e-290
"""Sums of squares below this have lost digits to underflow; nothing is concluded from them."""


class RewardSums(TypedDict, total=False):
    """Sums of rewards by name, as arguments; empty where a log has no rewards."""

    reward: FloatArray
    reward_squared: FloatArray


@dataclass(frozen=True)
class Decay:
    """Exponential decay of weights with age.

    Attributes
    ----------
    as_of : float
        The date from which the ages are counted.
    half_life : float
        A weight halves whenever its record gets older by this much.
    """

    as_of: float
    half_life: float

    def __post_init__(self) -> None:
        are_numbers = isinstance(self.as_of, (int, float)) and isinstance(
            self.half_life, (int, float)
        )
        if not are_numbers or not isfinite(self.as_of) or not 0 < self.half_life < inf:
            raise ParameterError(
                "a decay needs a date and a positive half-life, "
                f"not {self.as_of!r} and {self.half_life!r}"
            )

    def factor(self, later: float) -> float:
        """Factor that takes a weight from the date ``as_of`` to a later one."""
        try:
            return float(0.5 ** ((later - self.as_of) / self.half_life))
        except OverflowError:
            raise ParameterError(
                f"the date {later} lies so far before {self.as_of} that weights become infinite"
            ) from None


@dataclass(frozen=True, eq=False, repr=False)
class TransitionCounts:
    """How often, and with what weight, each distinct transition occurred.

    Attributes
    ----------
    states, actions : Space
        The labels of the indices.
    key : [distinct]
        Flat index of each distinct transition into ``[*shape, state, action, next_state]``,
        ascending.
    records, weight, weight_squared : [distinct]
        Number of records, the sum of their weights, and the sum of the weights' squares.
    shape : tuple of int
        Leading axes: independent logs.
    tasks : Space, optional
        The labels of the leading axis, where a log holds several past tasks.
    terminal : [number]
        Indices of the states in which an episode ends, ascending.
    decay : Decay, optional
        How the weights decrease with age.
    reward, reward_squared : [distinct], optional
        Sums of weight times reward, and of weight times squared reward, where the log has rewards.

    Examples
    --------
    >>> states, actions = Space.of_size(2), Space.of_size(2)
    >>> counts = TransitionCounts.from_records([0, 0, 1], [1, 1, 0], [1, 1, 0], states, actions)
    >>> counts.records.tolist()
    [2, 1]
    >>> counts.state.tolist(), counts.action.tolist(), counts.next_state.tolist()
    ([0, 1], [1, 0], [1, 0])
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
    reward: FloatArray | None = None
    reward_squared: FloatArray | None = None

    def __post_init__(self) -> None:
        _require_key_range(prod(self.shape), len(self.states), len(self.actions))
        if (self.reward is None) != (self.reward_squared is None):
            raise ParameterError("sums of rewards and of squared rewards go together: give both")
        for name in ("key", "records", "weight", "weight_squared", "terminal", *REWARD_SUMS):
            values = getattr(self, name)
            if values is not None:
                object.__setattr__(self, name, frozen(values))

    # For a reader

    def __repr__(self) -> str:
        return (
            f"TransitionCounts({self.num_records:,} records, {len(self.key):,} transitions, "
            f"{len(self.states):,} states, {len(self.actions):,} actions)"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.table()}"

    def _repr_html_(self) -> str:
        return paragraph(repr(self)) + self.table().to_html()

    def table(self, max_rows: int | None = MAX_ROWS) -> Table:
        """The most frequent transitions.

        Parameters
        ----------
        max_rows : int, optional
            Number of transitions; None for all.
        """
        order = np.argsort(-self.records, kind="stable")[:max_rows]
        rows = []
        for i in order.tolist():
            rows.append(
                (
                    key_of(self.states.labels[self.state[i]]),
                    key_of(self.actions.labels[self.action[i]]),
                    key_of(self.states.labels[self.next_state[i]]),
                    f"{self.records[i]:,}",
                )
            )
        return Table(
            columns=("state", "action", "next state", "records"),
            rows=tuple(rows),
            labels=(0, 1, 2),
            note=more_of(len(self.key), len(rows), "transition"),
        )

    # Counting

    @classmethod
    def from_records(
        cls,
        state: ArrayLike,
        action: ArrayLike,
        next_state: ArrayLike,
        states: Space,
        actions: Space,
        weight: ArrayLike = 1.0,
        reward: ArrayLike | None = None,
    ) -> TransitionCounts:
        """Count records given by index.

        Parameters
        ----------
        state, action, next_state : [..., records]
            Indices; leading axes are independent logs.
        states, actions : Space
            The labels of the indices.
        weight : broadcastable to [..., records]
            Positive weights of the records.
        reward : broadcastable to [..., records], optional
            Reward of each record, finite.
        """
        # Indices.
        state_index = _checked_indices("state", state, len(states))
        action_index = _checked_indices("action", action, len(actions))
        next_state_index = _checked_indices("next_state", next_state, len(states))
        shapes = [state_index.shape, action_index.shape, next_state_index.shape]
        if len(set(shapes)) > 1 or state_index.ndim == 0:
            shown = ", ".join(str(shape) for shape in shapes)
            raise ParameterError(
                f"state, action and next_state differ in shape: {shown}; "
                "give arrays of one shape, with an axis of records"
            )

        # Weights.
        given_weight = np.atleast_1d(np.asarray(weight, dtype=np.float64))
        is_bad = ~(np.isfinite(given_weight) & (given_weight > 0))
        if state_index.size and is_bad.any():
            where = where_first(is_bad)
            raise ParameterError(
                f"weight{list(where)} is {given_weight[where]}; weights must be finite and positive"
            )
        each_weight = broadcast("weight", given_weight, state_index.shape)

        # Rewards.
        weighted = None
        weighted_square = None
        if reward is not None:
            given_reward = np.atleast_1d(np.asarray(reward, dtype=np.float64))
            is_finite = np.isfinite(given_reward)
            if not is_finite.all():
                where = where_first(~is_finite)
                raise ParameterError(
                    f"reward{list(where)} is {given_reward[where]}; rewards must be finite"
                )
            each_reward = broadcast("reward", given_reward, state_index.shape)
            weighted = (each_weight * each_reward).flatten()
            with np.errstate(over="ignore"):
                weighted_square = weighted * each_reward.ravel()

        # One entry for each record; those of one transition are then merged.
        shape = state_index.shape[:-1]
        _require_key_range(prod(shape), len(states), len(actions))
        batch = np.arange(prod(shape)).reshape(*shape, 1)
        key = flat_key(
            batch, state_index, action_index, next_state_index, len(states), len(actions)
        )
        counts = cls(
            states,
            actions,
            key=key.ravel(),
            records=np.ones(state_index.size, dtype=np.int64),
            weight=each_weight.flatten(),
            weight_squared=_squared(each_weight.ravel()),
            shape=shape,
            reward=weighted,
            reward_squared=weighted_square,
        )
        return counts._merge_repeated_keys()

    @classmethod
    def from_groups(
        cls,
        states: Space,
        actions: Space,
        index: tuple[IntArray, IntArray, IntArray, IntArray],
        sums: tuple[IntArray, FloatArray, FloatArray],
        tasks: Space | None = None,
        decay: Decay | None = None,
        shape: tuple[int, ...] = (),
        rewards: tuple[FloatArray, FloatArray] | None = None,
    ) -> TransitionCounts:
        """Counts that an engine has already summed.

        Parameters
        ----------
        states, actions : Space
            The labels of the indices.
        index : four arrays [groups]
            Task (or flat index into ``shape``), state, action and next state of each group.
        sums : three arrays [groups]
            Number of records, sum of weights and sum of squared weights of each group.
        tasks : Space, optional
            The labels of the tasks; without it every group belongs to a single log.
        decay : Decay, optional
            How the weights decrease with age.
        shape : tuple of int
            Leading axes of logs that are not tasks.
        rewards : two arrays [groups], optional
            Sum of weight times reward, and of weight times squared reward, of each group.
        """
        records, weight, weight_squared = sums
        if tasks is not None:
            shape = (len(tasks),)
        _require_key_range(prod(shape), len(states), len(actions))
        counts = cls(
            states,
            actions,
            key=flat_key(*index, len(states), len(actions)),
            records=records,
            weight=weight,
            weight_squared=weight_squared,
            shape=shape,
            tasks=tasks,
            decay=decay,
            reward=None if rewards is None else rewards[0],
            reward_squared=None if rewards is None else rewards[1],
        )
        return counts._merge_repeated_keys()

    @classmethod
    def from_transitions(cls, log: Transitions, states: Space, actions: Space) -> TransitionCounts:
        """Count a log of records by index."""
        return cls.from_records(*log, states=states, actions=actions)

    @classmethod
    def empty(cls, states: Space, actions: Space, shape: tuple[int, ...] = ()) -> TransitionCounts:
        """No record at all: the neutral element of ``+``."""
        none = np.empty((*shape, 0), dtype=np.int64)
        return cls.from_records(none, none, none, states, actions)

    def _merge_repeated_keys(self) -> TransitionCounts:
        """The same counts with each key once, in ascending order."""
        self._require_finite_sums()
        if (self.key[1:] > self.key[:-1]).all():
            return self

        order = np.argsort(self.key, kind="stable")
        counts = self.where(order)
        repeats_previous = counts.key[1:] == counts.key[:-1]
        if not repeats_previous.any():
            return counts

        is_first = np.append(True, ~repeats_previous)
        group = np.cumsum(is_first) - 1
        number = int(is_first.sum())
        return replace(
            counts,
            key=counts.key[is_first],
            records=np.add.reduceat(counts.records, np.flatnonzero(is_first)),
            weight=group_sum(group, counts.weight, number),
            weight_squared=group_sum(group, counts.weight_squared, number),
            **counts._rewards(lambda sums: group_sum(group, sums, number)),
        )

    def _require_finite_sums(self) -> None:
        """Refuse records and weights whose sums no number holds."""
        if float(self.records.sum(dtype=np.float64)) >= KEY_LIMIT:
            raise ParameterError(
                "a log of 2^63 records or more cannot be counted; use smaller counts, and a weight"
            )
        with np.errstate(over="ignore"):
            total = float(self.weight.sum() + self.weight_squared.sum())
        if not isfinite(total):
            raise ParameterError(
                "the sum of the weights, or of their squares, is too large for a number; "
                "divide all weights by the largest"
            )
        if self.reward_sums is None:
            return
        reward, reward_squared = self.reward_sums
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(np.abs(reward).sum() + reward_squared.sum())
        if not isfinite(total):
            raise ParameterError(
                "the sum of the rewards, or of their squares, is too large for a number; "
                "divide all rewards by the largest"
            )

    def _rewards(self, change: Callable[[FloatArray], FloatArray]) -> RewardSums:
        """Both sums of rewards after a change of each, by name; empty where there are none."""
        if self.reward_sums is None:
            return {}
        reward, reward_squared = self.reward_sums
        return {"reward": change(reward), "reward_squared": change(reward_squared)}

    def require_possible(self) -> None:
        """Refuse what no log can lead to: for counts that come from outside.

        Keys ascend within the possible transitions; each transition has at least one record and a
        positive weight (zero only where old weights have decayed to nothing); n weights of sum w
        have a sum of squares between w^2 / n and w^2; the squared mean of rewards is at most the
        mean of their squares; no record leaves a terminal state.
        """
        # Columns: of one length, finite, not negative.
        for name in ("key", "records", "weight", "weight_squared"):
            values = getattr(self, name)
            if values.ndim != 1 or values.shape != self.key.shape:
                raise ParameterError(f"{name} has the wrong shape {values.shape}")
            if not (np.isfinite(values).all() and (values >= 0).all()):
                raise ParameterError(f"{name} has negative or undefined values")

        # Keys.
        num_keys = prod(self.shape) * self.keys_per_log
        is_in_order = (self.key[1:] > self.key[:-1]).all()
        if not is_in_order or not (self.key < num_keys).all():
            raise ParameterError("the keys of the transitions are out of order or out of range")

        # Sums of each transition, and of all.
        self._require_finite_sums()
        if not (self.records > 0).all():
            raise ParameterError("a transition has no record")
        if self.decay is None and not (self.weight > 0).all():
            raise ParameterError("a transition has no weight")
        largest = _squared(self.weight) * (1 + SUM_ROUNDING) + UNDERFLOW
        smallest = self.weight / self.records * self.weight * (1 - SUM_ROUNDING) - UNDERFLOW
        squares_fit = (self.weight_squared <= largest) & (self.weight_squared >= smallest)
        if not squares_fit.all():
            raise ParameterError("a sum of squared weights does not fit the sum of the weights")
        self._require_possible_rewards()

        # Terminal states.
        terminal = self.terminal
        is_inside = terminal.ndim == 1 and ((terminal >= 0) & (terminal < len(self.states))).all()
        if not is_inside or not (terminal[1:] > terminal[:-1]).all():
            raise ParameterError("the terminal states are out of order or out of range")
        if np.isin(self.state, terminal).any():
            raise ParameterError("a record leaves a terminal state")

    def _require_possible_rewards(self) -> None:
        """Refuse sums of rewards that no records of these weights have."""
        if self.reward_sums is None:
            return
        reward, reward_squared = self.reward_sums
        for name, values in zip(REWARD_SUMS, self.reward_sums, strict=True):
            if values.shape != self.key.shape or not np.isfinite(values).all():
                raise ParameterError(f"{name} has the wrong shape or undefined values")
        if (reward_squared < 0).any():
            raise ParameterError("a sum of squared rewards is negative")
        # |sum w r| <= sqrt(sum w * sum w r^2), by Cauchy and Schwarz.
        largest = np.sqrt(self.weight) * np.sqrt(reward_squared)
        fits = np.abs(reward) <= largest * (1 + SUM_ROUNDING) + UNDERFLOW
        if not fits.all():
            raise ParameterError("a sum of squared rewards does not fit the sum of the rewards")

    # The distinct transitions

    @property
    def has_rewards(self) -> bool:
        """Whether the log has rewards."""
        return self.reward is not None

    @property
    def reward_sums(self) -> tuple[FloatArray, FloatArray] | None:
        """Sums of weighted rewards and of weighted squared rewards, where the log has rewards."""
        if self.reward is None or self.reward_squared is None:
            return None
        return self.reward, self.reward_squared

    @property
    def num_records(self) -> int:
        """Number of records counted."""
        return int(self.records.sum())

    @cached_property
    def row(self) -> IntArray:
        """Flat index of each transition's state and action into ``[*shape, state, action]``."""
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
    def _row_starts(self) -> IntArray:
        """Where the transitions of each state and action that occurs begin: [rows]."""
        return np.flatnonzero(np.diff(self.row, prepend=-1))

    @cached_property
    def _occurring_rows(self) -> IntArray:
        """The states and actions that occur, as in `row`, ascending: [rows]."""
        return self.row[self._row_starts]

    # Sums

    def by_state_action(self, values: FloatArray) -> FloatArray:
        """Sum of ``values [..., distinct]`` over next states: [..., *shape, S, A]."""
        lead = values.shape[:-1]
        shape = (*self.shape, len(self.states), len(self.actions))
        require_memory("a sum by state and action", (*lead, *shape), "join states into fewer")
        sums = np.zeros((prod(lead), prod(shape)))
        if len(self._row_starts):
            flat_values = values.reshape(prod(lead), -1)
            by_row = np.add.reduceat(flat_values, self._row_starts, axis=-1)
            sums[:, self._occurring_rows] = by_row
        return sums.reshape(*lead, *shape)

    def sum_by_system(self, values: ArrayLike) -> FloatArray:
        """Sum of ``values [distinct]`` over each of the independent logs: [*shape]."""
        return group_sum(self.batch, values, prod(self.shape)).reshape(self.shape)

    # Other weights

    def scale(self, factor: FloatArray | float) -> TransitionCounts:
        """The same records with weights multiplied by ``factor``, broadcastable to [distinct]."""
        return replace(
            self,
            weight=self.weight * factor,
            weight_squared=self.weight_squared * np.asarray(factor) ** 2,
            **self._rewards(lambda sums: sums * factor),
        )

    def rewards_at(self, weight: FloatArray) -> RewardSums:
        """Sums of rewards of the same records if their weights had other sums [distinct].

        Means of rewards and of their squares stay. As arguments, by name; empty without rewards.
        """
        factor = np.divide(weight, self.weight, out=np.zeros_like(weight), where=self.weight > 0)
        return self._rewards(lambda sums: sums * factor)

    def evenly_weighted(self) -> TransitionCounts:
        """The counts in units of a typical record.

        Each log's total weight becomes its effective number of records,
        ``(sum w)^2 / sum w^2``: with equal weights, the number of records. Weights that have
        decayed to next to nothing stay next to nothing.
        """
        total = self.sum_by_system(self.weight)
        total_squared = self.sum_by_system(self.weight_squared)
        is_lost = (total > 0) & (total_squared < np.finfo(float).tiny)
        if self.decay is None and is_lost.any():
            raise ParameterError(
                "the squares of the weights are too small for a number; "
                "divide all weights by the largest"
            )
        factor = total / np.where(total_squared > 0, total_squared, 1.0)
        return self.scale(factor.ravel()[self.batch])

    def as_of(self, date: float) -> TransitionCounts:
        """The same counts, with their weights as of a later date."""
        if self.decay is None:
            raise ParameterError(
                "the weights of these counts do not fall with age; "
                "count the log with an age and a half-life first"
            )
        later = self.scale(self.decay.factor(date))
        return replace(later, decay=replace(self.decay, as_of=date))

    # More records, or fewer

    def plus(self, added: Mapping[int, Sequence[float]]) -> TransitionCounts:
        """The same with further records.

        Parameters
        ----------
        added : mapping from key to five numbers
            Number of records, sum of weights, of squared weights, of weighted rewards and of
            weighted squared rewards of each transition. The last two have no effect where the
            counts have no rewards.
        """
        if not added:
            return self
        keys = np.array(list(added), dtype=np.int64)
        sums = np.array(list(added.values()))
        records = sums[:, 0].astype(np.int64)
        rewards = (sums[:, 3], sums[:, 4]) if self.has_rewards else None
        return self._append(keys, records, sums[:, 1], sums[:, 2], rewards)

    def with_keys(self, key: IntArray) -> TransitionCounts:
        """The same with further records of weight 1, by their keys [records].

        Their rewards are not known, so the result has none.
        """
        ones = np.ones(len(key))
        return self.without_rewards()._append(key, ones.astype(np.int64), ones, ones, None)

    def without_rewards(self) -> TransitionCounts:
        """The same records without their rewards."""
        return replace(self, reward=None, reward_squared=None) if self.has_rewards else self

    def _append(
        self,
        key: IntArray,
        records: IntArray,
        weight: FloatArray,
        weight_squared: FloatArray,
        rewards: tuple[FloatArray, FloatArray] | None,
    ) -> TransitionCounts:
        """The same with further entries, some of them perhaps of known transitions."""
        reward = None
        reward_squared = None
        if self.reward_sums is not None and rewards is not None:
            reward = np.concatenate([self.reward_sums[0], rewards[0]])
            reward_squared = np.concatenate([self.reward_sums[1], rewards[1]])
        longer = replace(
            self,
            key=np.concatenate([self.key, key]),
            records=np.concatenate([self.records, records]),
            weight=np.concatenate([self.weight, weight]),
            weight_squared=np.concatenate([self.weight_squared, weight_squared]),
            reward=reward,
            reward_squared=reward_squared,
        )
        return longer._merge_repeated_keys()

    def where(self, chosen: BoolArray | IntArray | slice) -> TransitionCounts:
        """The counts of some of the distinct transitions: a mask [distinct], or their positions."""
        return replace(
            self,
            key=self.key[chosen],
            records=self.records[chosen],
            weight=self.weight[chosen],
            weight_squared=self.weight_squared[chosen],
            **self._rewards(lambda sums: sums[chosen]),
        )

    def contains(self, other: TransitionCounts) -> bool:
        """Whether each transition of another log, over the same indices, is here as often."""
        return bool((self._records_of(other.key) >= other.records).all())

    def without(self, other: TransitionCounts) -> TransitionCounts:
        """The same with fewer records: those of another log over the same indices.

        Of each transition, as many records as it has are taken away, or all if there are fewer;
        where weights differ, each takes the mean weight. Rewards are taken away with the other
        log's mean and variance where it knows its rewards, and otherwise with the mean of all.

        >>> states, actions = Space.of_size(2), Space.of_size(1)
        >>> both = TransitionCounts.from_records([0, 0, 1], [0, 0, 0], [1, 1, 0], states, actions)
        >>> one = TransitionCounts.from_records([0, 1], [0, 0], [1, 0], states, actions)
        >>> both.without(one).records.tolist()
        [1]
        """
        records = np.maximum(self.records - other._records_of(self.key), 0)
        share = records / np.maximum(self.records, 1)
        fewer = replace(
            self,
            records=records,
            weight=self.weight * share,
            weight_squared=self.weight_squared * share,
            **self._rewards(lambda sums: sums * share),
        )
        if self.reward_sums is not None and other.has_rewards:
            rewards = self._rewards_without(other, fewer.weight, self.reward_sums)
            fewer = replace(fewer, reward=rewards[0], reward_squared=rewards[1])
        return fewer.where(records > 0)

    def _rewards_without(
        self, other: TransitionCounts, left: FloatArray, sums: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Sums of rewards after those of another log are taken away: [distinct] each.

        Parameters
        ----------
        left : [distinct]
            The weight that is left of each transition.
        sums : two arrays [distinct]
            See `reward_sums`.
        """
        # The other log's sums, at the weight that is taken away.
        weight = other._sums_of("weight", self.key)
        taken = np.divide(self.weight - left, weight, out=np.zeros_like(left), where=weight > 0)
        reward = sums[0] - taken * other._sums_of("reward", self.key)
        squared = sums[1] - taken * other._sums_of("reward_squared", self.key)

        # Rounding, or a log that is not part of this one, must not lead to a negative variance.
        least = np.divide(reward**2, left, out=np.zeros_like(left), where=left > 0)
        return reward, np.maximum(squared, least)

    def _sums_of(self, name: str, key: IntArray) -> FloatArray:
        """A sum of some transitions, by key; 0 for those that do not occur: [keys]."""
        if len(self.key) == 0:
            return np.zeros(len(key))
        place = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[place] == key, getattr(self, name)[place], 0)

    def _records_of(self, key: IntArray) -> IntArray:
        """Number of records of some transitions, by key."""
        return self._sums_of("records", key).astype(np.int64, copy=False)

    def ending_in(self, terminal: IntArray) -> TransitionCounts:
        """The counts with these terminal states, and without the records that leave one."""
        terminal = np.unique(terminal)
        remaining = self.where(~np.isin(self.state, terminal))
        return replace(remaining, terminal=terminal)

    # Several logs

    @property
    def keys_per_log(self) -> int:
        """Number of transitions that are possible in one log: S * A * S."""
        return len(self.states) * len(self.actions) * len(self.states)

    def total(self) -> TransitionCounts:
        """All logs taken as one: no leading axes, no tasks."""
        if not self.shape:
            return self
        pooled = replace(self, key=self.key % self.keys_per_log, shape=(), tasks=None)
        return pooled._merge_repeated_keys()

    def split(self) -> list[TransitionCounts]:
        """The counts of each element of a single leading axis, such as each task's."""
        first_keys = np.arange(self.shape[0] + 1) * self.keys_per_log
        bounds = np.searchsorted(self.key, first_keys).tolist()
        logs = []
        for first_key, (start, stop) in zip(first_keys, pairwise(bounds), strict=False):
            log = self.where(slice(start, stop))
            logs.append(replace(log, key=log.key - first_key, shape=(), tasks=None))
        return logs

    # Other labels

    def relabelled(
        self, states: Space, actions: Space, tasks: Space | None = None
    ) -> TransitionCounts:
        """The same counts over larger spaces, which must have every label of the present ones."""
        if tasks is None:
            tasks = self.tasks
        if (states, actions, tasks) == (self.states, self.actions, self.tasks):
            return self

        # Spaces that are too large are refused before an index of every label is made.
        shape = self.shape
        if tasks is not None and self.tasks is not None:
            shape = (len(tasks),)
        _require_key_range(prod(shape), len(states), len(actions))

        # New indices of the present labels.
        new_state = states.indices(self.states.labels)
        new_action = actions.indices(self.actions.labels)
        batch = self.batch
        if tasks is not None and self.tasks is not None:
            new_task = tasks.indices(self.tasks.labels)
            batch = new_task[self.batch]

        key = flat_key(
            batch,
            new_state[self.state],
            new_action[self.action],
            new_state[self.next_state],
            len(states),
            len(actions),
        )
        relabelled = replace(
            self,
            states=states,
            actions=actions,
            tasks=tasks,
            shape=shape,
            key=key,
            terminal=np.sort(new_state[self.terminal]),
        )
        return relabelled._merge_repeated_keys()

    def __add__(self, other: TransitionCounts) -> TransitionCounts:
        """Both logs together.

        Labels are united. Weights that decrease with age are taken as of the later date. A state
        that is terminal in one log is terminal in both together: records of the other log that
        leave it do not count.
        """
        self._require_same_kind(other)

        # The same labels for both.
        states = self.states.union(other.states)
        actions = self.actions.union(other.actions)
        tasks = None
        if self.tasks is not None and other.tasks is not None:
            tasks = self.tasks.union(other.tasks)
        one = self.relabelled(states, actions, tasks)
        two = other.relabelled(states, actions, tasks)

        # The same date for both.
        if one.decay and two.decay:
            later = max(one.decay.as_of, two.decay.as_of)
            one = one.as_of(later)
            two = two.as_of(later)

        # A log without records has no rewards that could be missing.
        none = np.zeros(0)
        if one.has_rewards and not two.has_rewards:
            two = replace(two, reward=none, reward_squared=none)
        if two.has_rewards and not one.has_rewards:
            one = replace(one, reward=none, reward_squared=none)

        terminal = np.union1d(one.terminal, two.terminal)
        both = one._append(two.key, two.records, two.weight, two.weight_squared, two.reward_sums)
        return both.ending_in(terminal) if len(terminal) else both

    def _require_same_kind(self, other: TransitionCounts) -> None:
        """Refuse to add counts of which one has tasks, leading axes or a decay unlike the other."""
        one_has_tasks = self.tasks is not None
        two_has_tasks = other.tasks is not None
        differ_in_shape = not one_has_tasks and self.shape != other.shape
        if one_has_tasks != two_has_tasks or differ_in_shape:
            raise ParameterError(
                "counts with different leading axes, or with tasks and without, cannot be added; "
                "take the total() of both first"
            )
        one_half_life = self.decay and self.decay.half_life
        two_half_life = other.decay and other.decay.half_life
        if one_half_life != two_half_life:
            raise ParameterError(
                "counts whose weights fall differently with age cannot be added; "
                "count both logs with the same half-life"
            )
        have_records = len(self.key) > 0 and len(other.key) > 0
        if have_records and self.has_rewards != other.has_rewards:
            raise ParameterError(
                "counts with rewards and counts without cannot be added; name the reward column "
                "of both logs, or take without_rewards() of the one that has them"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TransitionCounts):
            return NotImplemented
        if (self.states, self.actions, self.tasks) != (other.states, other.actions, other.tasks):
            return False
        if (self.shape, self.decay) != (other.shape, other.decay):
            return False
        return (
            np.array_equal(self.key, other.key)
            and np.array_equal(self.records, other.records)
            and np.array_equal(self.weight, other.weight)
            and np.array_equal(self.weight_squared, other.weight_squared)
            and np.array_equal(self.terminal, other.terminal)
            and _are_equal(self.reward, other.reward)
            and _are_equal(self.reward_squared, other.reward_squared)
        )

    __hash__ = None  # type: ignore[assignment]


def flat_key(
    batch: IntArray,
    state: IntArray,
    action: IntArray,
    next_state: IntArray,
    num_states: int,
    num_actions: int,
) -> IntArray:
    """Flat index of transitions into ``[*shape, state, action, next_state]``.

    The caller has made sure that there are no more than `KEY_LIMIT` of them.
    """
    return np.asarray(
        ((batch * num_states + state) * num_actions + action) * num_states + next_state
    )


def _require_key_range(num_logs: int, num_states: int, num_actions: int) -> None:
    """Refuse spaces whose transitions 64-bit keys cannot tell apart."""
    num_keys = num_logs * num_states * num_actions * num_states
    if num_keys >= KEY_LIMIT:
        raise ParameterError(
            f"{num_logs:,} logs or tasks with {num_states:,} states and {num_actions:,} actions "
            f"have {num_keys:.2g} possible transitions; the limit is 2^63, about 9.2e+18. "
            "Join states or actions into fewer, for instance with bins"
        )


def _are_equal(one: FloatArray | None, two: FloatArray | None) -> bool:
    """Whether both arrays are equal, or both absent."""
    if one is None or two is None:
        return one is two
    return np.array_equal(one, two)


def _squared(weight: FloatArray) -> FloatArray:
    """Squares of weights; those that overflow are refused where they are summed."""
    with np.errstate(over="ignore"):
        return np.asarray(weight**2)


def _checked_indices(name: str, values: ArrayLike, size: int) -> IntArray:
    """The values as integers, after checking that each is an index below ``size``."""
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise ParameterError(f"{name} must hold integer indices, not {array.dtype}")
    is_outside = (array < 0) | (array >= size)
    if is_outside.any():
        where = where_first(is_outside)
        raise ParameterError(
            f"{name}{list(where)} is {array[where]}; indices run from 0 to {size - 1}"
        )
    return array.astype(np.int64)
