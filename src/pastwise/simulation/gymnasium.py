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

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, frozen, group_sum
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Episodes
from pastwise.data.space import Label, Space
from pastwise.logs.columns import Columns
from pastwise.simulation.coding import Bins, Coding, Ends, Policy, require_gymnasium


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
        self,
        env: Any,
        bins: Bins | None = None,
        *,
        fields: Sequence[str] | None = None,
        ends: Ends | None = None,
    ) -> None:
        self.env = _environment(env)
        self.coding = Coding.of(
            self.env.observation_space, self.env.action_space, bins, fields, ends
        )
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
            raise ValueError(
                f"the environment is in the state {here!r} and cannot be set to {there!r}"
            )
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
        self.reward, self.terminated, self.truncated = (
            float(reward),
            bool(terminated),
            bool(truncated),
        )
        self._state = int(self.coding.state(self.observation))
        if self.terminated:
            self._state = self.coding.end(self._state, self.reward)
            self._terminal.add(self._state)


def _environment(env: Any) -> Any:
    """An environment, made if an id is given."""
    gymnasium = require_gymnasium()
    if isinstance(env, str):
        try:
            return gymnasium.make(env)
        except gymnasium.error.Error as error:
            raise ValueError(f"{env!r} cannot be made: {error}") from None
    if not isinstance(env, gymnasium.Env):
        raise ValueError(
            f"an environment of gymnasium is needed, or the id of one, not {type(env).__name__}"
        )
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
        return TransitionCounts.from_records(*records, self.states, self.actions).ending_in(
            self.terminal
        )

    @cached_property
    def episodes(self) -> Episodes:
        """The records in their order, for importance sampling."""
        return Episodes(self.state, self.action, self.next_state, self.episode, self.time)

    @property
    def columns(self) -> Columns:
        """Which columns of `table` hold what: ``learner.fit(log.table, columns=log.columns)``."""
        fields = self.states.fields
        ends = [self.states.labels[index] for index in self.terminal.tolist()]
        nexts = [f"next_{name}" for name in fields]
        return Columns.of(
            fields, self.actions.fields, nexts, episode="episode", time="time", terminal=ends
        )

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
        good = sum(
            bool(holds(label, reward))
            for label, reward in zip(labels, self.reward[last].tolist(), strict=True)
        )
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
            try:
                next_state = system.step(state, np.asarray(action), world)
            except Exception as error:
                if time > 0 or isinstance(error, ValueError):
                    raise
                raise ValueError(
                    f"the environment does not take a first step after reset: {error}"
                ) from error
            records.append(
                (
                    int(state),
                    action,
                    int(next_state),
                    system.reward,
                    system.terminated,
                    episode,
                    time,
                )
            )
            observations[-1].append(deepcopy(system.observation))
            state = next_state
            if system.ended:
                break
    s, a, n, r, ended, e, t = (np.array(column) for column in zip(*records, strict=True))
    return EpisodeLog(system.coding, s, a, n, r, ended, e, t, observations, system.env.spec)


def policy_of(
    rule: Policy, env: Any, rng: np.random.Generator, bins: Bins | None = None
) -> Callable[[Any], Any]:
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
