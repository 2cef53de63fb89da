"""From the spaces of gymnasium to states and actions, and back.

An observation or action consists of numbers, its *leaves*: `_leaf_spaces` finds what values each of
them may have. A `WholeAxis` or `CutAxis` turns the values of one leaf into codes 0, 1, ...; the
codes of all axes together are the index of a state or action. A `Coding` holds the axes of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import isinf, log10, prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pastwise._numerics.arrays import BoolArray, IntArray, where_first
from pastwise.data.bins import Bins
from pastwise.data.space import Label, Space, checked_label, intervals
from pastwise.errors import LabelError, LogError, MissingDependencyError, ParameterError

MAX_STATES = 1_000_000
"""The most states, or actions, that are enumerated."""

UNBOUNDED = 1e30
"""A continuous dimension at least this wide counts as unbounded."""

GOING_ON = "going on"
"""The field ``end`` of a state in which an episode has not ended, where ends have names."""

TABLE_COLUMNS = ("episode", "time", "reward", "terminated")
"""Columns of the table of a log, next to those of states and actions."""

WRAP = "wrap the environment (see gymnasium.wrappers, such as DiscretizeAction)"
"""What to do about spaces of an environment that are not supported."""

BoxBins = int | Sequence[int | Sequence[float]]
"""For each continuous dimension its edges or a number of bins; or one number for all of them."""

Ends = Mapping[str, Callable[[Label, float], bool]]
"""Names of ends, each with a condition on the last observation's label and the last reward.

The first condition that holds names the end.
"""


class Sampler(Protocol):
    """Samples an action in a state; a learned `Rule` does."""

    def sample(self, state: Label, rng: np.random.Generator, /) -> Label:
        """Sample an action."""
        ...


Policy = Callable[[Label, np.random.Generator], Label] | Sampler
"""A learned rule, or a function from a state's label and random numbers to an action's label."""

Leaf = range | tuple[float, float]
"""Values of one number: whole numbers of a range, or all between two bounds."""


@dataclass(frozen=True)
class WholeAxis:
    """A field of whole numbers."""

    name: str
    numbers: range

    @property
    def labels(self) -> Sequence[Label]:
        """The numbers."""
        return self.numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def codes(self, values: NDArray[Any]) -> IntArray:
        """Place of each number, in the shape of the values."""
        whole = values.astype(np.int64)
        codes = whole - self.numbers.start
        outside = (whole != values) | (codes < 0) | (codes >= len(self.numbers))
        _refuse(outside, values, self.name, "not in its space")
        return codes


@dataclass(frozen=True)
class CutAxis:
    """A continuous field cut into intervals ``[low, high)``; the last has its upper edge.

    Attributes
    ----------
    clip : bool
        Whether values beyond the outer edges belong to the outer intervals. They do where the edges
        are the rounded bounds of the space.
    """

    name: str
    edges: tuple[float, ...]
    clip: bool = False

    @property
    def labels(self) -> Sequence[Label]:
        """The intervals as text: as those of tables where they have no outer ends."""
        is_open = isinf(self.edges[0]) and isinf(self.edges[-1])
        if is_open and len(self.edges) > 2:
            return list(Bins.of(self.edges).labels)
        return intervals(self.edges)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def codes(self, values: NDArray[Any]) -> IntArray:
        """Interval of each value, in the shape of the values."""
        low = self.edges[0]
        high = self.edges[-1]
        numbers = values.astype(np.float64)
        if self.clip:
            numbers = np.clip(numbers, low, high)
        is_inside = (numbers >= low) & (numbers <= high)
        problem = (
            f"outside its bins, which run from {low:g} to {high:g}; widen them, with -inf and inf "
            "if necessary"
        )
        _refuse(~is_inside, values, self.name, problem)
        inner_edges = self.edges[1:-1]
        return np.asarray(np.searchsorted(inner_edges, numbers, side="right"), dtype=np.int64)


Axis = WholeAxis | CutAxis
"""A field of states or actions."""


def _refuse(bad: BoolArray, values: NDArray[Any], name: str, problem: str) -> None:
    if bad.any():
        raise ParameterError(f"{name} is {values[where_first(bad)]}: {problem}")


# Spaces of gymnasium.


def require_gymnasium() -> Any:
    """The package, if it is installed."""
    try:
        import gymnasium
    except ImportError:
        raise MissingDependencyError(
            "environments need gymnasium; install it: pip install gymnasium"
        ) from None
    return gymnasium


def _leaf_spaces(space: Any, role: str, advice: str) -> list[Leaf]:
    """What values each number of an element of a space may have."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return [range(start, start + int(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        starts = space.start.ravel().tolist()
        sizes = space.nvec.ravel().tolist()
        return [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    if isinstance(space, spaces.MultiBinary):
        return [range(2)] * prod(space.shape)
    if isinstance(space, spaces.Box):
        return list(zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True))
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in _leaf_spaces(part, role, advice)]
    raise ParameterError(
        f"{role}s of the space {type(space).__name__} are not supported, only Discrete, "
        f"MultiDiscrete, MultiBinary, Box and Tuples of these: {advice}"
    )


def _leaf_values(space: Any, values: Any) -> list[NDArray[Any]]:
    """The numbers of an element of a space, each [].

    Of a stack of elements, as Minari stores them, each is [number of elements].
    """
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        leaves = []
        for part, part_values in zip(space.spaces, values, strict=True):
            leaves += _leaf_values(part, part_values)
        return leaves
    array = np.asarray(values)
    if space.shape:
        stack_shape = array.shape[: array.ndim - len(space.shape)]
        flat = array.reshape(*stack_shape, -1)
    else:
        flat = array[..., None]
    return [flat[..., place] for place in range(flat.shape[-1])]


def _element(space: Any, numbers: Iterator[Any]) -> Any:
    """The element of a space that consists of the next of these numbers."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        return tuple(_element(part, numbers) for part in space.spaces)
    if isinstance(space, spaces.Discrete):
        return int(next(numbers))
    flat = [next(numbers) for _ in range(prod(space.shape))]
    return np.array(flat, dtype=space.dtype).reshape(space.shape)


# Fields of states and actions.


def _axes(leaves: list[Leaf], names: Sequence[str], bins: BoxBins | None) -> tuple[Axis, ...]:
    """The fields of a space, continuous ones cut by their bins."""
    num_continuous = sum(isinstance(leaf, tuple) for leaf in leaves)
    remaining = iter(_bins_of_each(bins, num_continuous))
    axes: list[Axis] = []
    for name, leaf in zip(names, leaves, strict=True):
        if isinstance(leaf, range):
            axes.append(WholeAxis(name, leaf))
        else:
            axes.append(_cut(name, next(remaining), leaf))
    return tuple(axes)


def _bins_of_each(bins: BoxBins | None, num_continuous: int) -> list[int | Sequence[float]]:
    """Edges or a number of bins for each continuous dimension."""
    if bins is None:
        if num_continuous:
            raise ParameterError(
                f"observations are continuous in {num_continuous} dimensions: say how to cut them, "
                "by bins= with edges or a number of bins for each"
            )
        return []
    if not num_continuous:
        raise ParameterError("bins are for continuous observations; these are discrete")
    if isinstance(bins, (int, np.integer)):
        return [int(bins)] * num_continuous
    each = list(bins) if isinstance(bins, Iterable) else [bins]
    if len(each) != num_continuous:
        raise ParameterError(
            f"bins: {num_continuous} continuous dimensions need as many entries, not {len(each)}"
        )
    for given in each:
        is_entry = isinstance(given, (int, np.integer, Sequence, np.ndarray))
        if isinstance(given, str) or not is_entry:
            raise ParameterError(
                f"bins: give edges or a number of bins for each continuous dimension, not {bins!r}"
            )
    return each


def _cut(name: str, given: int | Sequence[float], bounds: tuple[float, float]) -> CutAxis:
    """A continuous field with its edges, given or evenly spaced between its bounds."""
    is_number = isinstance(given, (int, np.integer))
    if isinstance(given, (int, np.integer)):
        low, high = bounds
        if given < 1:
            raise ParameterError(f"bins: {name} needs at least one bin, not {given}")
        if not high - low < UNBOUNDED:
            raise ParameterError(
                f"bins: {name} runs from {low:g} to {high:g}, which a number of bins cannot cut; "
                "give its edges, such as [-inf, -1, 0, 1, inf]"
            )
        even = np.linspace(low, high, int(given) + 1)
        edges = tuple(float(f"{edge:.6g}") for edge in even)
    else:
        try:
            edges = tuple(float(edge) for edge in given)
        except (TypeError, ValueError):
            raise ParameterError(f"bins: the edges of {name} are numbers, not {given!r}") from None
    ascending = all(low < high for low, high in pairwise(edges))
    if len(edges) < 2 or not ascending:
        raise ParameterError(
            f"bins: {name} needs at least two edges in ascending order, not {list(edges)}"
        )
    return CutAxis(name, edges, clip=is_number)


def _index(axes: tuple[Axis, ...], values: list[NDArray[Any]]) -> IntArray:
    """Index of combinations of the fields' values, in the order of `_product_space`."""
    codes = tuple(axis.codes(value) for axis, value in zip(axes, values, strict=True))
    sizes = tuple(len(axis) for axis in axes)
    return np.asarray(np.ravel_multi_index(codes, sizes), dtype=np.int64)


def _product_space(
    labels: Sequence[Sequence[Label]], names: tuple[str, ...], role: str, advice: str
) -> Space:
    """All combinations of the fields' labels; for a single field, its labels."""
    number = prod(len(field_labels) for field_labels in labels)
    if number > MAX_STATES:
        if number < 10**15:
            shown = f"{number:,}"
        else:
            shown = f"about 10^{round(number.bit_length() * log10(2))}"
        if role == "state":
            advice = f"give fewer bins, or {advice}"
        raise ParameterError(
            f"there are {shown} {role}s, and at most {MAX_STATES:,} are supported: {advice}"
        )
    if len(names) == 1:
        return Space(tuple(labels[0]), names)
    return Space(tuple(product(*labels)), names)


def _field_names(role: str, number: int) -> tuple[str, ...]:
    if number == 1:
        return (role,)
    return tuple(f"{role}_{place}" for place in range(number))


@dataclass(frozen=True, eq=False)
class Coding:
    """How observations and actions of an environment, or of a dataset, become states and actions.

    Attributes
    ----------
    observation_space, action_space
        Spaces of gymnasium.
    axes, action_axes : tuple of WholeAxis or CutAxis
        Fields of the observation and of the action.
    ends : mapping
        Names of ends, each with its condition.
    states, actions : Space
        All of them. Where ends have names, states have a last field: the end, or `GOING_ON`.
    """

    observation_space: Any
    action_space: Any
    axes: tuple[Axis, ...]
    action_axes: tuple[Axis, ...]
    ends: Ends
    states: Space
    actions: Space

    @classmethod
    def of(
        cls,
        observation_space: Any,
        action_space: Any,
        bins: BoxBins | None = None,
        fields: Sequence[str] | None = None,
        ends: Ends | None = None,
        advice: str = WRAP,
    ) -> Coding:
        """The coding of two spaces of gymnasium.

        Parameters
        ----------
        bins, fields, ends : optional
            See `GymSystem`.
        advice : str
            What the message on a space that is not supported says to do.
        """
        leaves = _leaf_spaces(observation_space, "observation", advice)
        action_leaves = _leaf_spaces(action_space, "action", advice)
        if any(isinstance(leaf, tuple) for leaf in action_leaves):
            raise ParameterError(
                f"actions are continuous (Box), and pastwise needs a finite set: {advice}"
            )

        # Fields of the observation.
        names = _field_names("state", len(leaves)) if fields is None else tuple(fields)
        if isinstance(fields, str) or len(names) != len(leaves):
            raise ParameterError(
                f"fields: an observation has {len(leaves)} fields, which need as many names, "
                f"not {fields!r}"
            )
        axes = _axes(leaves, names, bins)

        # Fields of the state: those of the observation and, where ends have names, the end.
        labels = [axis.labels for axis in axes]
        state_names = names
        if ends:
            if GOING_ON in ends:
                raise ParameterError(f"ends: {GOING_ON!r} is reserved for episodes that go on")
            labels.append([GOING_ON, *ends])
            state_names = (*names, "end")

        # Fields of the action, and no name twice in the table of a log.
        action_names = _field_names("action", len(action_leaves))
        next_names = [f"next_{name}" for name in state_names]
        columns = [*state_names, *next_names, *action_names, *TABLE_COLUMNS]
        repeated = [name for name in state_names if columns.count(name) > 1]
        if repeated:
            raise ParameterError(
                f"fields: {repeated[0]!r} is reserved or occurs twice; choose another name"
            )
        action_axes = _axes(action_leaves, action_names, None)
        action_labels = [axis.labels for axis in action_axes]
        return cls(
            observation_space=observation_space,
            action_space=action_space,
            axes=axes,
            action_axes=action_axes,
            ends=ends or {},
            actions=_product_space(action_labels, action_names, "action", advice),
            states=_product_space(labels, state_names, "state", advice),
        )

    def state(self, observations: Any) -> IntArray:
        """Index of the state of an observation, or of each of a stack; no episode has ended."""
        index = _index(self.axes, _leaf_values(self.observation_space, observations))
        return np.asarray(index * (1 + len(self.ends)))

    def end(self, state: int, reward: float) -> int:
        """Index of the state in which an episode ended, given that of its last observation."""
        if not self.ends:
            return state
        fields: Any = self.states.labels[state]
        label = fields[:-1] if len(fields) > 2 else fields[0]
        for place, holds in enumerate(self.ends.values(), start=1):
            if holds(label, reward):
                return state + place
        raise ParameterError(
            f"ends: none of {', '.join(self.ends)} holds for the end in {label!r} with reward "
            f"{reward:g}"
        )

    def action(self, actions: Any) -> IntArray:
        """Index of an action in the environment's own form, or of each of a stack of them."""
        return _index(self.action_axes, _leaf_values(self.action_space, actions))

    def act(self, action: int) -> Any:
        """An action in the environment's own form."""
        label = self.actions.labels[action]
        numbers = label if isinstance(label, tuple) else (label,)
        return _element(self.action_space, iter(numbers))

    def choose(self, policy: Policy, state: int, rng: np.random.Generator) -> int:
        """Index of the action that a policy chooses in a state."""
        sample: Any = getattr(policy, "sample", policy)
        if not callable(sample):
            raise ParameterError(
                "a policy is a function of state and random numbers, or a rule such as "
                f"learner.rule_; not {type(policy).__name__}"
            )
        chosen = sample(self.states.labels[state], rng)
        if isinstance(chosen, np.ndarray):
            label: Label = tuple(chosen.ravel().tolist())
        else:
            label = checked_label(chosen)
        try:
            return self.actions.index(label)
        except ValueError as error:
            raise LabelError(
                f"the policy chose an action that the environment does not have: {error}"
            ) from None

    def ended(self, state: IntArray, next_state: IntArray, terminated: BoolArray) -> IntArray:
        """Indices of the terminal states; one from which an episode went on is an error."""
        terminal = np.unique(next_state[terminated])
        is_left = np.isin(state, terminal)
        if is_left.any():
            label = self.states.labels[int(state[is_left][0])]
            raise LogError(
                f"episodes ended in the state {label!r} and also went on from it, "
                f"{int(is_left.sum())} times in such states: the observation does not show an end. "
                "Name the ends, with ends={'ended': lambda state, reward: True} or by outcome, so "
                "that they are states of their own; or cut continuous observations where episodes "
                "end"
            )
        return terminal
