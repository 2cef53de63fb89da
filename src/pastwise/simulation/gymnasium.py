"""Environments of gymnasium: systems to act on, and logs of the episodes of a policy in them.

A `Coding` turns observations into states and actions into actions: discrete spaces by their
numbers, several numbers as a product space, continuous observations cut into intervals. `run` can
drive a `GymSystem`, `collect` logs what a policy does in an environment, and `policy_of` turns a
learned rule into a function from observations to actions.

`run` has no notion of the end of an episode. Where an environment *terminates*, its world has
ended: the last state is terminal, and `GymSystem` stays in it, as every model of pastwise does.
Where it *truncates*, only the observation of it ended: the last state is an ordinary one, and
another step is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, frozen, group_sum
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Episodes
from pastwise.data.space import Label, Space
from pastwise.errors import LogError, ParameterError
from pastwise.logs.columns import Columns
from pastwise.simulation.coding import BoxBins, Coding, Ends, Policy, require_gymnasium


class GymSystem:
    """An environment of gymnasium as a system that methods act on.

    The environment samples its own random numbers; `reset` seeds it from those that it is given.
    Its state cannot be set, so `step` continues from where the environment is, and refuses any
    other state.

    After the environment terminated, `step` stays in the terminal state. So `run` may go on, and
    what it observes agrees with a model that has terminal states. After a truncation `step` is an
    error, because what would have followed is not known.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment, or the id of one.
    bins : int, or edges or a number of bins for each continuous dimension, optional
        How to cut Box observations. A number of bins cuts evenly between the bounds of the space.
        Edges may be -inf and inf; an observation outside them is an error.
    fields : names, optional
        Names of the numbers of an observation; by default ``state``, or ``state_0``, ``state_1``
        and so on.
    ends : mapping from names to functions of the observation's label and the last reward, optional
        For observations that do not show whether, or how, the episode has ended. States get a last
        field ``end``: "going on", or the first name whose function returns True.

    Attributes
    ----------
    terminated, truncated : bool
        Whether the current episode has ended, and whether it was cut off.
    reward : float
        The reward of the last step.

    Examples
    --------
    >>> system = GymSystem("FrozenLake-v1")
    >>> len(system.states), len(system.actions), int(system.reset(np.random.default_rng(0)))
    (16, 4, 0)
    >>> bins = [3, [-0.07, 0, 0.07]]
    >>> GymSystem("MountainCar-v0", bins, fields=("place", "speed")).states.labels[0]
    ('[-1.2, -0.6)', '[-0.07, 0)')
    """

    def __init__(
        self,
        env: Any,
        bins: BoxBins | None = None,
        *,
        fields: Sequence[str] | None = None,
        ends: Ends | None = None,
    ) -> None:
        self.env = _environment(env)
        self.coding = Coding.of(
            self.env.observation_space, self.env.action_space, bins, fields, ends
        )
        self.states = self.coding.states
        self.actions = self.coding.actions
        self.shape: tuple[int, ...] = ()
        self.terminated = False
        self.truncated = False
        self.reward = 0.0
        self.observation: Any = None
        self._state: int | None = None
        self._terminal: set[int] = set()

    @property
    def ended(self) -> bool:
        """Whether the current episode is over, terminated or truncated; `reset` begins another."""
        return self.terminated or self.truncated

    @property
    def terminal(self) -> IntArray:
        """Indices of the states in which the environment terminated so far, ascending."""
        return np.array(sorted(self._terminal), dtype=np.int64)

    def reset(self, rng: Random) -> IntArray:
        """Begin an episode, seeded from ``rng``: its initial state []."""
        self.observation, _ = self.env.reset(seed=int(rng.random(()) * 2**31))
        self.terminated = False
        self.truncated = False
        self.reward = 0.0
        self._state = int(self.coding.state(self.observation))
        return np.asarray(self._state, dtype=np.int64)

    def step(self, state: IntArray, action: IntArray, rng: Random) -> IntArray:
        """Next state []; ``state`` must be the current one, and ``rng`` is not used."""
        if self._state is None:
            raise ParameterError("no episode has begun; call reset first")
        if int(state) != self._state:
            current = self.states.labels[self._state]
            requested = self.states.labels[int(state)]
            raise ParameterError(
                f"the environment is in the state {current!r} and cannot be set to {requested!r}"
            )
        if self.truncated and not self.terminated:
            raise ParameterError(
                "the episode was cut off (truncated) and what follows is not known; call reset, or "
                "make the environment with a larger max_episode_steps"
            )
        self.reward = 0.0
        if not self.terminated:
            self._advance(int(action))
        return np.asarray(self._state, dtype=np.int64)

    def _advance(self, action: int) -> None:
        """One step of the environment."""
        self.observation, reward, terminated, truncated, _ = self.env.step(self.coding.act(action))
        self.reward = float(reward)
        self.terminated = bool(terminated)
        self.truncated = bool(truncated)
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
            raise ParameterError(f"{env!r} cannot be made: {error}") from None
    if not isinstance(env, gymnasium.Env):
        raise ParameterError(
            f"give an environment of gymnasium, or the id of one, not {type(env).__name__}"
        )
    return env


def _system(env: Any, bins: BoxBins | None) -> GymSystem:
    if not isinstance(env, GymSystem):
        return GymSystem(env, bins)
    if bins is not None:
        raise ParameterError("a GymSystem has its bins already; give none")
    return env


# Logs.


def _has_reward(state: Label, reward: float) -> bool:
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
        The reward of each step.
    terminated
        Whether the environment terminated with this record. An episode whose last record did not
        terminate was cut off.
    episode, time
        0, ..., E - 1, ascending; 0, 1, ... in each episode.
    observations : [E] lists
        Observations in the environment's own form: in each episode one more than records.
    spec : optional
        From which gymnasium makes the environment.
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

        A state from which an episode went on is an error: name the ends, see `GymSystem`.
        """
        return frozen(self.coding.ended(self.state, self.next_state, self.terminated))

    @cached_property
    def counts(self) -> TransitionCounts:
        """Counts of the transitions, over all states of the environment, with terminal states."""
        counts = TransitionCounts.from_records(
            self.state, self.action, self.next_state, self.states, self.actions
        )
        return counts.ending_in(self.terminal)

    @cached_property
    def episodes(self) -> Episodes:
        """The records in their order, for importance sampling."""
        return Episodes(self.state, self.action, self.next_state, self.episode, self.time)

    @property
    def columns(self) -> Columns:
        """Which columns of `table` hold what: ``learner.fit(log.table, log.columns)``."""
        return Columns.of(
            state=self.states.fields,
            action=self.actions.fields,
            next_state=[f"next_{name}" for name in self.states.fields],
            episode="episode",
            time="time",
            terminal=[self.states.labels[index] for index in self.terminal.tolist()],
        )

    @property
    def table(self) -> dict[str, list[Any]]:
        """The records as columns.

        Episode, time, fields of state, action and next state, reward, terminated.
        """
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

    def success(self, holds: Callable[[Label, float], bool] = _has_reward) -> float:
        """Share of the episodes that ended in success.

        Parameters
        ----------
        holds : function of the last state's label and the last reward
            Whether an end is a success. By default the last reward must be positive, as in
            FrozenLake, Taxi and Blackjack. Where every end is good, as in MountainCar, use
            ``lambda state, reward: True``. An episode that was cut off is not a success.
        """
        last = np.flatnonzero(self.terminated)
        num_good = 0
        for index, reward in zip(
            self.next_state[last].tolist(), self.reward[last].tolist(), strict=True
        ):
            num_good += bool(holds(self.states.labels[index], reward))
        return num_good / self.num_episodes


def _label_columns(space: Space, names: tuple[str, ...], index: IntArray) -> dict[str, list[Any]]:
    """The fields of labels, as columns."""
    labels: list[Any] = [space.labels[i] for i in index.tolist()]
    if not space.is_product:
        return {names[0]: labels}
    return {name: [label[place] for label in labels] for place, name in enumerate(names)}


class _Record(NamedTuple):
    """One step of an episode."""

    state: int
    action: int
    next_state: int
    reward: float
    terminated: bool
    episode: int
    time: int


def collect(
    env: Any,
    policy: Policy,
    episodes: int,
    rng: np.random.Generator,
    bins: BoxBins | None = None,
    max_steps: int = 10_000,
) -> EpisodeLog:
    """Run a policy through episodes of an environment, and log them.

    Parameters
    ----------
    env : gymnasium.Env, str or GymSystem
        An environment, the id of one, or a system made from one, where fields and ends have names.
    policy : function or Rule
        A function from a state's label and random numbers to an action's label, or a learned rule.
    episodes : int
        How many episodes.
    rng : numpy.random.Generator
        The environment and the choice of actions use two children of it.
    bins : optional
        How to cut continuous observations; see `GymSystem`.
    max_steps : int
        An episode that has not ended after this many steps is cut off. The default is far beyond
        the limits that gymnasium sets for its environments.

    Examples
    --------
    >>> def wander(state, rng):
    ...     return rng.integers(4)
    >>> log = collect("FrozenLake-v1", wander, 200, np.random.default_rng(0))
    >>> log.num_episodes, bool((log.returns <= 1).all()), log.success() == log.mean_return
    (200, True, True)
    >>> 15 in [log.states.labels[index] for index in log.counts.terminal]
    True
    """
    if episodes < 1:
        raise ParameterError(f"episodes must be at least 1, not {episodes}")
    if max_steps < 1:
        raise ParameterError(f"max_steps must be at least 1, not {max_steps}")
    system = _system(env, bins)
    world_rng, choice_rng = rng.spawn(2)

    records: list[_Record] = []
    observations: list[list[Any]] = []
    for episode in range(episodes):
        state = system.reset(world_rng)
        observations.append([deepcopy(system.observation)])
        for time in range(max_steps):
            action = system.coding.choose(policy, int(state), choice_rng)
            next_state = _step(system, state, action, world_rng, is_first=time == 0)
            records.append(
                _Record(
                    state=int(state),
                    action=action,
                    next_state=int(next_state),
                    reward=system.reward,
                    terminated=system.terminated,
                    episode=episode,
                    time=time,
                )
            )
            observations[-1].append(deepcopy(system.observation))
            state = next_state
            if system.ended:
                break

    return EpisodeLog(
        coding=system.coding,
        state=np.array([record.state for record in records]),
        action=np.array([record.action for record in records]),
        next_state=np.array([record.next_state for record in records]),
        reward=np.array([record.reward for record in records]),
        terminated=np.array([record.terminated for record in records]),
        episode=np.array([record.episode for record in records]),
        time=np.array([record.time for record in records]),
        observations=observations,
        spec=system.env.spec,
    )


def _step(
    system: GymSystem, state: IntArray, action: int, rng: Random, *, is_first: bool
) -> IntArray:
    """A step of the system. An error of the environment in the first says that reset failed."""
    try:
        return system.step(state, np.asarray(action), rng)
    except ValueError:
        raise  # it says what is wrong
    except Exception as error:
        if not is_first:
            raise
        raise LogError(f"the environment fails in the first step after reset: {error}") from error


def policy_of(
    rule: Policy, env: Any, rng: np.random.Generator, bins: BoxBins | None = None
) -> Callable[[Any], Any]:
    """A learned rule as a function from observations to actions in the environment's own form.

    Parameters
    ----------
    rule : Rule or function
        See `collect`.
    env : gymnasium.Env, str or GymSystem
        The environment; only its spaces are used.
    rng : numpy.random.Generator
        Samples the actions.
    bins : optional
        How continuous observations were cut when the rule was learned.
    """
    coding = _system(env, bins).coding

    def act(observation: Any) -> Any:
        state = int(coding.state(observation))
        return coding.act(coding.choose(rule, state, rng))

    return act
