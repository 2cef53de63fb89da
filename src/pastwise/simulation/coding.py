"""From the spaces of gymnasium to states and actions, and back: how observations and actions are coded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import log10, prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pastwise._numerics.arrays import BoolArray, IntArray, where_first
from pastwise.data.space import Label, Space, checked_label, intervals

MAX_STATES = 1_000_000
"""The most states, or actions, that are enumerated."""

UNBOUNDED = 1e30
"""A continuous dimension as wide as this has no bounds worth the name."""

GOING_ON = "going on"
"""The field ``end`` of a state in which an episode has not ended, where ends have names."""

TABLE = ("episode", "time", "reward", "terminated")
"""Columns of a log's table beside those of states and actions."""

WRAP = "wrap the environment (see gymnasium.wrappers, such as DiscretizeAction)"
"""What to do about spaces of an environment that are not taken."""

Bins = int | Sequence[int | Sequence[float]]
"""For each dimension of continuous observations its edges or a number of bins; a single number serves all of them."""

Ends = Mapping[str, Callable[[Label, float], bool]]
"""Names of ends, and for which last observation and reward each holds; the first that holds names the end."""


class Sampler(Protocol):
    """What draws an action in a state; a learned `Rule` does."""

    def sample(self, state: Label, rng: np.random.Generator, /) -> Label:
        """Draw an action."""
        ...


Policy = Callable[[Label, np.random.Generator], Label] | Sampler
"""A function of state and random numbers that gives an action, by label; or a learned rule."""


# From spaces of gymnasium to spaces of pastwise.


@dataclass(frozen=True)
class Whole:
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
        codes = values.astype(np.int64) - self.numbers.start
        _refuse((codes < 0) | (codes >= len(self.numbers)), values, self.name, "not in its space")
        return codes


@dataclass(frozen=True)
class Cut:
    """A continuous field, cut into intervals: ``[low, high)``, and the last with its upper edge.

    Attributes
    ----------
    clip : bool
        Whether values beyond the outer edges belong to the outer intervals: where the edges are the bounds of the
        space, rounded.
    """

    name: str
    edges: tuple[float, ...]
    clip: bool = False

    @property
    def labels(self) -> Sequence[Label]:
        """The intervals as text."""
        return intervals(self.edges)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def codes(self, values: NDArray[Any]) -> IntArray:
        """Interval of each value, in the shape of the values."""
        numbers, (low, high) = values.astype(np.float64), (self.edges[0], self.edges[-1])
        if self.clip:
            numbers = np.clip(numbers, low, high)
        advice = f"outside of its bins, which run from {low:g} to {high:g}; widen them, with -inf and inf if need be"
        _refuse(~((numbers >= low) & (numbers <= high)), values, self.name, advice)
        return np.asarray(np.searchsorted(self.edges[1:-1], numbers, side="right"), dtype=np.int64)


def _refuse(bad: BoolArray, values: NDArray[Any], name: str, why: str) -> None:
    if bad.any():
        raise ValueError(f"{name} is {values[where_first(bad)]}: {why}")


Leaf = range | tuple[float, float]
"""One number of an observation or action: whole, from a range, or continuous, with its bounds."""


def require_gymnasium() -> Any:
    """The package, if it is installed."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError("environments need gymnasium: pip install 'pastwise[gym]'") from None
    return gymnasium


def _leaves(space: Any, what: str, instead: str) -> list[Leaf]:
    """The numbers that an element of a space of gymnasium consists of."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Discrete):
        return [range(int(space.start), int(space.start) + int(space.n))]
    if isinstance(space, spaces.MultiDiscrete):
        pairs = zip(space.start.ravel().tolist(), space.nvec.ravel().tolist(), strict=True)
        return [range(start, start + size) for start, size in pairs]
    if isinstance(space, spaces.MultiBinary):
        return [range(2)] * prod(space.shape)
    if isinstance(space, spaces.Box):
        return list(zip(space.low.ravel().tolist(), space.high.ravel().tolist(), strict=True))
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in _leaves(part, what, instead)]
    raise ValueError(
        f"{what}s of the space {type(space).__name__} are not supported, only Discrete, MultiDiscrete, MultiBinary, "
        f"Box and Tuples of these: {instead}"
    )


def _parts(space: Any, values: Any) -> list[NDArray[Any]]:
    """The numbers of an element of a space, each []; or of a stack of elements, as Minari keeps them, each [number]."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        return [
            part
            for each, value in zip(space.spaces, values, strict=True)
            for part in _parts(each, value)
        ]
    array = np.asarray(values)
    flat = (
        array.reshape(*array.shape[: array.ndim - len(space.shape)], -1)
        if space.shape
        else array[..., None]
    )
    return [flat[..., place] for place in range(flat.shape[-1])]


def _element(space: Any, numbers: Iterator[Any]) -> Any:
    """The element of a space that consists of these numbers."""
    spaces = require_gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        return tuple(_element(each, numbers) for each in space.spaces)
    if isinstance(space, spaces.Discrete):
        return int(next(numbers))
    return np.array([next(numbers) for _ in range(prod(space.shape))], dtype=space.dtype).reshape(
        space.shape
    )


def _edges(name: str, given: int | Sequence[float], bounds: tuple[float, float]) -> Cut:
    """A continuous field with its edges, given or evenly spaced between its bounds."""
    if isinstance(given, (int, np.integer)):
        low, high = bounds
        if given < 1:
            raise ValueError(f"bins: {name} needs at least one bin, not {given}")
        if not high - low < UNBOUNDED:
            raise ValueError(
                f"bins: {name} runs from {low:g} to {high:g}, which a number of bins cannot cut; "
                "give its edges, such as [-inf, -1, 0, 1, inf]"
            )
        edges = tuple(float(f"{edge:.6g}") for edge in np.linspace(low, high, int(given) + 1))
    else:
        edges = tuple(float(edge) for edge in given)
    if len(edges) < 2 or not all(low < high for low, high in pairwise(edges)):
        raise ValueError(f"bins: {name} needs at least two edges that ascend, not {list(edges)}")
    return Cut(name, edges, clip=isinstance(given, (int, np.integer)))


def _axes(leaves: list[Leaf], names: Sequence[str], bins: Bins | None) -> tuple[Whole | Cut, ...]:
    """The fields of a space, continuous ones cut."""
    continuous = sum(isinstance(leaf, tuple) for leaf in leaves)
    if continuous and bins is None:
        raise ValueError(
            f"observations are continuous in {continuous} dimensions; say how to cut them: bins=, with the edges or a "
            "number of bins for each"
        )
    if bins is not None and not continuous:
        raise ValueError("bins are for continuous observations; these are discrete")
    each = [bins] * continuous if isinstance(bins, (int, np.integer)) else list(bins or ())
    if len(each) != continuous:
        raise ValueError(
            f"bins: {continuous} continuous dimensions need as many entries, not {len(each)}"
        )
    if any(
        isinstance(given, str) or not isinstance(given, (int, np.integer, Sequence, np.ndarray))
        for given in each
    ):
        raise ValueError(
            f"bins: edges or a number of bins for each continuous dimension, not {bins!r}"
        )
    cuts = iter(each)
    return tuple(
        Whole(name, leaf) if isinstance(leaf, range) else _edges(name, next(cuts), leaf)
        for name, leaf in zip(names, leaves, strict=True)
    )


def _index(axes: tuple[Whole | Cut, ...], parts: list[NDArray[Any]]) -> IntArray:
    """Index of combinations of the fields' values, in the order that `_space` has."""
    codes = tuple(axis.codes(part) for axis, part in zip(axes, parts, strict=True))
    return np.asarray(np.ravel_multi_index(codes, tuple(map(len, axes))), dtype=np.int64)


def _space(
    labels: Sequence[Sequence[Label]], names: tuple[str, ...], what: str, instead: str
) -> Space:
    """All combinations of the fields' labels; of a single field, its labels."""
    number = prod(map(len, labels))
    if number > MAX_STATES:
        advice = f"give fewer bins, or {instead}" if what == "state" else instead
        many = (
            f"{number:,}"
            if number < 10**15
            else f"about 10^{round(number.bit_length() * log10(2))}"
        )
        raise ValueError(
            f"there are {many} {what}s, and more than {MAX_STATES:,} are not enumerated: {advice}"
        )
    return Space(tuple(product(*labels)) if len(names) > 1 else tuple(labels[0]), names)


def _names(what: str, number: int) -> tuple[str, ...]:
    return (what,) if number == 1 else tuple(f"{what}_{place}" for place in range(number))


@dataclass(frozen=True, eq=False)
class Coding:
    """How observations and actions of an environment, or of a dataset, become states and actions.

    Attributes
    ----------
    observation_space, action_space
        Of gymnasium.
    axes, action_axes : fields of the observation and of the action
    ends : names of ends, each with what it holds for
    states, actions : Space
        All of them; of the states one for each end as well, with the end's name in a last field, where ends have names.
    """

    observation_space: Any
    action_space: Any
    axes: tuple[Whole | Cut, ...]
    action_axes: tuple[Whole | Cut, ...]
    ends: Ends
    states: Space
    actions: Space

    @classmethod
    def of(
        cls,
        observation_space: Any,
        action_space: Any,
        bins: Bins | None = None,
        fields: Sequence[str] | None = None,
        ends: Ends | None = None,
        instead: str = WRAP,
    ) -> Coding:
        """The coding of two spaces of gymnasium; for the other parameters see `GymSystem`.

        Spaces that are not taken are an error that says what to do ``instead``.
        """
        leaves, acts = (
            _leaves(observation_space, "observation", instead),
            _leaves(action_space, "action", instead),
        )
        if any(isinstance(leaf, tuple) for leaf in acts):
            raise ValueError(
                f"actions are continuous (Box), and pastwise chooses among finitely many: {instead}"
            )
        names = _names("state", len(leaves)) if fields is None else tuple(fields)
        if isinstance(fields, str) or len(names) != len(leaves):
            raise ValueError(
                f"fields: an observation has {len(leaves)} fields, which need as many names: {fields!r}"
            )
        axes = _axes(leaves, names, bins)
        labels, all_names = [axis.labels for axis in axes], names
        if ends:
            if GOING_ON in ends:
                raise ValueError(
                    f"ends: {GOING_ON!r} is what an episode is called that has not ended"
                )
            labels, all_names = [*labels, [GOING_ON, *ends]], (*names, "end")
        did = _names("action", len(acts))
        columns = [*all_names, *(f"next_{name}" for name in all_names), *did, *TABLE]
        repeated = [name for name in all_names if columns.count(name) > 1]
        if repeated:
            raise ValueError(
                f"fields: {repeated[0]!r} is taken, or named twice; choose another name"
            )
        action_axes = _axes(acts, did, None)
        actions = _space([axis.labels for axis in action_axes], did, "action", instead)
        states = _space(labels, all_names, "state", instead)
        return cls(observation_space, action_space, axes, action_axes, ends or {}, states, actions)

    def state(self, observations: Any) -> IntArray:
        """Index of the state of an observation, or of each of a stack of them: that of an episode that goes on."""
        index = _index(self.axes, _parts(self.observation_space, observations))
        return np.asarray(index * (1 + len(self.ends)))

    def end(self, state: int, reward: float) -> int:
        """Index of the state that an episode ended in, given that of its last observation."""
        if not self.ends:
            return state
        whole: Any = self.states.labels[state]
        label = whole[:-1] if len(whole) > 2 else whole[0]
        for place, holds in enumerate(self.ends.values(), start=1):
            if holds(label, reward):
                return state + place
        raise ValueError(
            f"ends: none of {', '.join(self.ends)} holds for the end in {label!r} with reward {reward:g}"
        )

    def action(self, actions: Any) -> IntArray:
        """Index of an action in the environment's own form, or of each of a stack of them."""
        return _index(self.action_axes, _parts(self.action_space, actions))

    def act(self, action: int) -> Any:
        """An action in the environment's own form."""
        label = self.actions.labels[action]
        return _element(self.action_space, iter(label if isinstance(label, tuple) else (label,)))

    def choose(self, policy: Policy, state: int, rng: np.random.Generator) -> int:
        """Index of the action that a policy gives in a state."""
        draw: Any = getattr(policy, "sample", policy)
        if not callable(draw):
            raise ValueError(
                "a policy is a function of state and random numbers, or a rule such as learner.rule_; "
                f"not {type(policy).__name__}"
            )
        given = draw(self.states.labels[state], rng)
        label = (
            tuple(given.ravel().tolist()) if isinstance(given, np.ndarray) else checked_label(given)
        )
        try:
            return self.actions.index(label)
        except ValueError as error:
            raise ValueError(
                f"the policy gave an action that the environment does not have: {error}"
            ) from None

    def ended(self, state: IntArray, next_state: IntArray, terminated: BoolArray) -> IntArray:
        """Indices of the terminal states; one that episodes also go on from is an error."""
        terminal = np.unique(next_state[terminated])
        left = np.isin(state, terminal)
        if left.any():
            label = self.states.labels[int(state[left][0])]
            raise ValueError(
                f"episodes ended in the state {label!r} and also went on from it, {int(left.sum())} times in such "
                "states: the observation does not tell an end. Name the ends, with "
                "ends={'ended': lambda state, reward: True} or by outcome, so that they are states of their own; "
                "or cut continuous observations where episodes end"
            )
        return terminal


# Environments as systems.
