"""Environments of gymnasium: systems to act on, and logs of the episodes that a policy lives through in them.

Observations become states and actions become actions by a `Coding`: discrete spaces by their numbers, several numbers
as a product space, continuous observations cut into intervals. `GymSystem` is an environment that `run` can drive,
`collect` writes down what a policy does in one, and `policy_of` turns a learned rule back into something that takes an
observation and gives an action.

An episode's end is the one thing that `run` has no notion of. Where the environment *terminates*, the world has come to
an end: the state it did so in is terminal, and `GymSystem` stays in it, as every model of pastwise does. Where it
*truncates*, somebody stopped watching: the state is an ordinary one, and to step on is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pastwise.adapters.columns import Columns
from pastwise.counts import TransitionCounts
from pastwise.importance import Episodes
from pastwise.numerics import BoolArray, FloatArray, IntArray, Random, frozen, group_sum, where_first
from pastwise.spaces import Label, Space, checked_label

MAX_STATES = 1_000_000
"""The most states, or actions, that are enumerated."""

UNBOUNDED = 1e30
"""A continuous dimension as wide as this has no bounds worth the name."""

GOING_ON = "going on"
"""The field ``end`` of a state in which an episode has not ended, where ends have names."""

TABLE = ("episode", "time", "reward", "terminated")
"""Columns of a log's table beside those of states and actions."""

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
        shown = [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in self.edges]
        return [*(f"[{low}, {high})" for low, high in pairwise(shown[:-1])), f"[{shown[-2]}, {shown[-1]}]"]

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


def _gymnasium() -> Any:
    """The package, if it is installed."""
    try:
        import gymnasium
    except ImportError:
        raise ValueError("environments need gymnasium: pip install 'pastwise[gym]'") from None
    return gymnasium


def _leaves(space: Any, what: str) -> list[Leaf]:
    """The numbers that an element of a space of gymnasium consists of."""
    spaces = _gymnasium().spaces
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
        return [leaf for part in space.spaces for leaf in _leaves(part, what)]
    raise ValueError(
        f"{what}s of the space {type(space).__name__} are not supported: wrap the environment so that they are "
        "Discrete, MultiDiscrete, MultiBinary, Box or a Tuple of these"
    )


def _parts(space: Any, values: Any) -> list[NDArray[Any]]:
    """The numbers of an element of a space, each []; or of a stack of elements, as Minari keeps them, each [number]."""
    spaces = _gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        return [part for each, value in zip(space.spaces, values, strict=True) for part in _parts(each, value)]
    array = np.asarray(values)
    flat = array.reshape(*array.shape[: array.ndim - len(space.shape)], -1) if space.shape else array[..., None]
    return [flat[..., place] for place in range(flat.shape[-1])]


def _element(space: Any, numbers: Iterator[Any]) -> Any:
    """The element of a space that consists of these numbers."""
    spaces = _gymnasium().spaces
    if isinstance(space, spaces.Tuple):
        return tuple(_element(each, numbers) for each in space.spaces)
    if isinstance(space, spaces.Discrete):
        return int(next(numbers))
    return np.array([next(numbers) for _ in range(prod(space.shape))], dtype=space.dtype).reshape(space.shape)


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
        raise ValueError(f"bins: {continuous} continuous dimensions need as many entries, not {len(each)}")
    if any(isinstance(given, str) or not isinstance(given, (int, np.integer, Sequence, np.ndarray)) for given in each):
        raise ValueError(f"bins: edges or a number of bins for each continuous dimension, not {bins!r}")
    cuts = iter(each)
    return tuple(
        Whole(name, leaf) if isinstance(leaf, range) else _edges(name, next(cuts), leaf)
        for name, leaf in zip(names, leaves, strict=True)
    )


def _index(axes: tuple[Whole | Cut, ...], parts: list[NDArray[Any]]) -> IntArray:
    """Index of combinations of the fields' values, in the order that `_space` has."""
    codes = tuple(axis.codes(part) for axis, part in zip(axes, parts, strict=True))
    return np.asarray(np.ravel_multi_index(codes, tuple(map(len, axes))), dtype=np.int64)


def _space(labels: Sequence[Sequence[Label]], names: tuple[str, ...], what: str) -> Space:
    """All combinations of the fields' labels; of a single field, its labels."""
    number = prod(map(len, labels))
    if number > MAX_STATES:
        advice = "give fewer bins, or wrap the environment" if what == "state" else "wrap the environment"
        raise ValueError(
            f"there are {number:,} {what}s, and more than {MAX_STATES:,} are not enumerated; {advice} so that "
            "fewer are told apart"
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
    ) -> Coding:
        """The coding of two spaces of gymnasium; for the other parameters see `GymSystem`."""
        leaves, acts = _leaves(observation_space, "observation"), _leaves(action_space, "action")
        if any(isinstance(leaf, tuple) for leaf in acts):
            raise ValueError(
                "actions are continuous (Box); pastwise chooses among finitely many: wrap the environment in "
                "gymnasium.wrappers.DiscretizeAction"
            )
        names = _names("state", len(leaves)) if fields is None else tuple(fields)
        if isinstance(fields, str) or len(names) != len(leaves):
            raise ValueError(f"fields: an observation has {len(leaves)} fields, which need as many names: {fields!r}")
        axes = _axes(leaves, names, bins)
        labels, all_names = [axis.labels for axis in axes], names
        if ends:
            if GOING_ON in ends:
                raise ValueError(f"ends: {GOING_ON!r} is what an episode is called that has not ended")
            labels, all_names = [*labels, [GOING_ON, *ends]], (*names, "end")
        did = _names("action", len(acts))
        columns = [*all_names, *(f"next_{name}" for name in all_names), *did, *TABLE]
        repeated = [name for name in all_names if columns.count(name) > 1]
        if repeated:
            raise ValueError(f"fields: {repeated[0]!r} is taken, or named twice; choose another name")
        action_axes = _axes(acts, did, None)
        actions = _space([axis.labels for axis in action_axes], did, "action")
        states = _space(labels, all_names, "state")
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
        raise ValueError(f"ends: none of {', '.join(self.ends)} holds for the end in {label!r} with reward {reward:g}")

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
        label = tuple(given.ravel().tolist()) if isinstance(given, np.ndarray) else checked_label(given)
        try:
            return self.actions.index(label)
        except ValueError as error:
            raise ValueError(f"the policy gave an action that the environment does not have: {error}") from None

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


class GymSystem:
    """An environment of gymnasium as a system that agents act on.

    The environment draws its random numbers itself; `reset` seeds it from those that it is given. Its state cannot be
    set, so `step` goes on from where the environment is, and refuses any other state.

    After the environment terminated, `step` stays in the terminal state: so `run`, which knows no ends, may go on, and
    what it observes is what a model with terminal states says. After a truncation `step` is an error, for nobody knows
    what would have followed.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, or the id of one.
    bins : int, or for each continuous dimension of the observation edges or a number of bins, optional
        How to cut Box observations. A number of bins cuts evenly between the bounds of the space. Edges may be -inf and
        inf; an observation outside of them is an error.
    fields : names, optional
        What the numbers of an observation tell; by default ``state``, or ``state_0``, ``state_1`` and so on.
    ends : names of ends with functions of observation label and last reward, optional
        Where an observation does not tell whether the episode has ended, or how: states get a last field ``end``, which
        is "going on" or the first name whose function holds. By default an end goes by its observation alone.

    Attributes
    ----------
    terminated, truncated : bool
        Whether the present episode has ended, and whether it was cut off.
    reward : float
        What the last step brought.

    Examples
    --------
    >>> system = GymSystem("FrozenLake-v1")
    >>> len(system.states), len(system.actions), int(system.reset(np.random.default_rng(0)))
    (16, 4, 0)
    >>> GymSystem("MountainCar-v0", bins=[3, [-0.07, 0, 0.07]], fields=("place", "speed")).states.labels[0]
    ('[-1.2, -0.6)', '[-0.07, 0)')
    """

    def __init__(
        self, env: Any, bins: Bins | None = None, *, fields: Sequence[str] | None = None, ends: Ends | None = None
    ) -> None:
        self.env = _environment(env)
        self.coding = Coding.of(self.env.observation_space, self.env.action_space, bins, fields, ends)
        self.states, self.actions = self.coding.states, self.coding.actions
        self.shape: tuple[int, ...] = ()
        self.terminated = self.truncated = False
        self.reward = 0.0
        self.observation: Any = None
        self._state: int | None = None
        self._terminal: set[int] = set()

    @property
    def ended(self) -> bool:
        """Whether the present episode is over, terminated or truncated; `reset` begins another."""
        return self.terminated or self.truncated

    @property
    def terminal(self) -> IntArray:
        """Indices of the states in which the environment terminated so far, ascending."""
        return np.array(sorted(self._terminal), dtype=np.int64)

    def reset(self, rng: Random) -> IntArray:
        """Begin an episode, seeded from ``rng``: its initial state []."""
        self.observation, _ = self.env.reset(seed=int(rng.random(()) * 2**31))
        self.terminated = self.truncated = False
        self.reward, self._state = 0.0, int(self.coding.state(self.observation))
        return np.asarray(self._state, dtype=np.int64)

    def step(self, state: IntArray, action: IntArray, rng: Random) -> IntArray:
        """Next state []; ``state`` must be the present one, and ``rng`` is not used."""
        if self._state is None:
            raise ValueError("no episode has begun; call reset first")
        if int(state) != self._state:
            here, there = self.states.labels[self._state], self.states.labels[int(state)]
            raise ValueError(f"the environment is in the state {here!r} and cannot be set to {there!r}")
        if self.truncated and not self.terminated:
            raise ValueError(
                "the episode was cut off (truncated) and what follows is not known; call reset, or make the "
                "environment with a larger max_episode_steps"
            )
        self.reward = 0.0
        if not self.terminated:
            self._advance(int(action))
        return np.asarray(self._state, dtype=np.int64)

    def _advance(self, action: int) -> None:
        self.observation, reward, terminated, truncated, _ = self.env.step(self.coding.act(action))
        self.reward, self.terminated, self.truncated = float(reward), bool(terminated), bool(truncated)
        self._state = int(self.coding.state(self.observation))
        if self.terminated:
            self._state = self.coding.end(self._state, self.reward)
            self._terminal.add(self._state)


def _environment(env: Any) -> Any:
    """An environment, made if an id is given."""
    gymnasium = _gymnasium()
    if isinstance(env, str):
        try:
            return gymnasium.make(env)
        except gymnasium.error.Error as error:
            raise ValueError(f"{env!r} cannot be made: {error}") from None
    if not isinstance(env, gymnasium.Env):
        raise ValueError(f"an environment of gymnasium is needed, or the id of one, not {type(env).__name__}")
    return env


def _system(env: Any, bins: Bins | None) -> GymSystem:
    if not isinstance(env, GymSystem):
        return GymSystem(env, bins)
    if bins is not None:
        raise ValueError("a GymSystem has its bins already; give none")
    return env


# Logs.


def _well(state: Label, reward: float) -> bool:
    return reward > 0


@dataclass(frozen=True, eq=False)
class EpisodeLog:
    """Episodes in an environment, record by record in their order: each array is [N].

    Attributes
    ----------
    coding : Coding
        What the indices stand for.
    state, action, next_state
        Indices.
    reward
        What each step brought.
    terminated
        Whether the environment ended with this record. An episode whose last record did not terminate was cut off.
    episode, time
        0, ..., E - 1, ascending; 0, 1, ... in each episode.
    observations : [E] lists
        What the environment showed, in its own form: one more than records, in each episode.
    spec : optional
        What gymnasium makes the environment of.
    """

    coding: Coding
    state: IntArray
    action: IntArray
    next_state: IntArray
    reward: FloatArray
    terminated: BoolArray
    episode: IntArray
    time: IntArray
    observations: Sequence[Sequence[Any]] = field(repr=False)
    spec: Any = None

    def __post_init__(self) -> None:
        for name in ("state", "action", "next_state", "reward", "terminated", "episode", "time"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __repr__(self) -> str:
        return f"EpisodeLog({self.num_episodes} episodes, {len(self.state)} records)"

    @property
    def num_episodes(self) -> int:
        """E."""
        return len(self.observations)

    @property
    def states(self) -> Space:
        """All states."""
        return self.coding.states

    @property
    def actions(self) -> Space:
        """All actions."""
        return self.coding.actions

    @cached_property
    def terminal(self) -> IntArray:
        """Indices of the states in which the environment terminated, ascending.

        A state that episodes also went on from is an error: name the ends then, see `GymSystem`.
        """
        return frozen(self.coding.ended(self.state, self.next_state, self.terminated))

    @cached_property
    def counts(self) -> TransitionCounts:
        """How often each transition occurred, over all states of the environment, with its terminal states."""
        records = (self.state, self.action, self.next_state)
        return TransitionCounts.from_records(*records, self.states, self.actions).ending_in(self.terminal)

    @cached_property
    def episodes(self) -> Episodes:
        """The records in their order, for importance sampling."""
        return Episodes(self.state, self.action, self.next_state, self.episode, self.time)

    @property
    def columns(self) -> Columns:
        """Which columns of `table` hold what: ``learner.fit(log.table, columns=log.columns)``."""
        fields = self.states.fields
        ends = [self.states.labels[index] for index in self.terminal.tolist()]
        return Columns.of(fields, self.actions.fields, [f"next_{name}" for name in fields], terminal=ends)

    @property
    def table(self) -> dict[str, list[Any]]:
        """A row for each record: episode, time, fields of state, action and next state, reward and terminated."""
        next_fields = tuple(f"next_{name}" for name in self.states.fields)
        return {
            "episode": self.episode.tolist(),
            "time": self.time.tolist(),
            **_label_columns(self.states, self.states.fields, self.state),
            **_label_columns(self.actions, self.actions.fields, self.action),
            **_label_columns(self.states, next_fields, self.next_state),
            "reward": self.reward.tolist(),
            "terminated": self.terminated.tolist(),
        }

    @cached_property
    def returns(self) -> FloatArray:
        """Sum of the rewards of each episode: [E]."""
        return frozen(group_sum(self.episode, self.reward, self.num_episodes))

    @property
    def mean_return(self) -> float:
        """Mean of the returns."""
        return float(self.returns.mean())

    def success(self, holds: Callable[[Label, float], bool] = _well) -> float:
        """Share of the episodes that terminated well.

        Parameters
        ----------
        holds : function of the last state's label and the last reward
            What ending well is. By default that the last reward is positive, as in FrozenLake, Taxi and Blackjack;
            where every end is good, as in MountainCar, give ``lambda state, reward: True``. An episode that was cut off
            is no success.
        """
        last = np.flatnonzero(self.terminated)
        labels = (self.states.labels[index] for index in self.next_state[last].tolist())
        good = sum(bool(holds(label, reward)) for label, reward in zip(labels, self.reward[last].tolist(), strict=True))
        return good / self.num_episodes


def _label_columns(space: Space, names: tuple[str, ...], index: IntArray) -> dict[str, list[Any]]:
    labels: list[Any] = [space.labels[i] for i in index.tolist()]
    parts = zip(*labels, strict=True) if space.is_product else [labels]
    return {name: list(part) for name, part in zip(names, parts, strict=True)}


def collect(
    env: Any,
    policy: Policy,
    episodes: int,
    rng: np.random.Generator,
    bins: Bins | None = None,
    max_steps: int = 10_000,
) -> EpisodeLog:
    """Let a policy live through episodes of an environment, and write them down.

    Parameters
    ----------
    env : gymnasium.Env, str or GymSystem
        An environment, the id of one, or a system made of one, where fields and ends have names.
    policy : function or Rule
        Gives an action's label for a state's label and random numbers; or a learned rule.
    episodes : int
        How many.
    rng : numpy.random.Generator
        The environment and the choice of actions draw from two children of it.
    bins : optional
        How to cut continuous observations; see `GymSystem`.
    max_steps : int
        An episode that has not ended after so many steps is cut off.

    Examples
    --------
    >>> log = collect("FrozenLake-v1", lambda state, rng: rng.integers(4), 200, np.random.default_rng(0))
    >>> log.num_episodes, bool((log.returns <= 1).all()), log.success() == log.mean_return
    (200, True, True)
    >>> 15 in [log.states.labels[index] for index in log.counts.terminal]
    True
    """
    for name, number in (("episodes", episodes), ("max_steps", max_steps)):
        if number < 1:
            raise ValueError(f"{name} must be at least 1, not {number}")
    system = _system(env, bins)
    world, choice = rng.spawn(2)
    records: list[tuple[int, int, int, float, bool, int, int]] = []
    observations: list[list[Any]] = []
    for episode in range(episodes):
        state = system.reset(world)
        observations.append([deepcopy(system.observation)])
        for time in range(max_steps):
            action = system.coding.choose(policy, int(state), choice)
            next_state = system.step(state, np.asarray(action), world)
            records.append((int(state), action, int(next_state), system.reward, system.terminated, episode, time))
            observations[-1].append(deepcopy(system.observation))
            state = next_state
            if system.ended:
                break
    s, a, n, r, ended, e, t = (np.array(column) for column in zip(*records, strict=True))
    return EpisodeLog(system.coding, s, a, n, r, ended, e, t, observations, system.env.spec)


def policy_of(rule: Policy, env: Any, rng: np.random.Generator, bins: Bins | None = None) -> Callable[[Any], Any]:
    """A learned rule as a function that takes an observation and gives an action, both in the environment's own form.

    Parameters
    ----------
    rule : Rule or function
        See `collect`.
    env : gymnasium.Env, str or GymSystem
        The environment; only its spaces are used.
    rng : numpy.random.Generator
        What actions are drawn with.
    bins : optional
        How continuous observations were cut when the rule was learned.
    """
    coding = _system(env, bins).coding

    def act(observation: Any) -> Any:
        return coding.act(coding.choose(rule, int(coding.state(observation)), rng))

    return act
