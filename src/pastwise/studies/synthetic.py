"""Systems whose truth is known, the behaviours of their past, and the logs that these leave.

A system moves from state s under action a to s' with probability p_k(s' | s, a), where k is a type
that is sampled anew for every episode and never seen. Most systems have one type. Where there are
several, the records of an episode depend on each other beyond the state.

The value of a rule is exact. With u(s') the score of a state, H the horizon and w_k the weight of a
type,

    value = sum_k w_k E[u(s_1) + ... + u(s_T) | type k],

divided by H where episodes do not end. T is H or, where they end, the first time in a terminal
state if that comes earlier. `Criterion` defines the same quantity for what is inferred from a log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, normalise, sample
from pastwise.data.space import Space
from pastwise.models.dense import DenseModel

# Systems.


@dataclass(frozen=True, eq=False)
class System:
    """A system with its true dynamics and a goal.

    Attributes
    ----------
    model : DenseModel
        Transition probabilities [K, S, A, S] of each type; terminal states lead to themselves.
    score : [S]
        How good it is to arrive in each state, from 0 to 1. Where there are terminal states, only
        these have a positive score.
    initial : [S]
        Distribution of the start state; terminal states have probability 0.
    lengths : (int, int)
        Shortest and longest number of records after which an episode is cut. Their range is typical
        of the system; the longest is the horizon of values.
    terminal : [number]
        States in which an episode ends.
    type_weights : [K]
        Probability of each type.
    habit : [A]
        How readily people take each action. The rules of the past are multiplied by it.
    coordinates : sequence of tuples, optional
        The fields of each state, such as its row and column; absent where its number says it all.
    """

    model: DenseModel
    score: FloatArray
    initial: FloatArray
    lengths: tuple[int, int]
    terminal: IntArray
    type_weights: FloatArray
    habit: FloatArray
    coordinates: Sequence[tuple[int, ...]] | None = None

    @classmethod
    def of(
        cls,
        transition: FloatArray,
        score: FloatArray,
        *,
        initial: FloatArray | None = None,
        lengths: tuple[int, int] = (20, 50),
        terminal: tuple[int, ...] = (),
        type_weights: FloatArray | None = None,
        habit: FloatArray | None = None,
        coordinates: Sequence[tuple[int, ...]] | None = None,
    ) -> System:
        """A system from [S, A, S] or, with types, [K, S, A, S]; starts are uniform by default."""
        if transition.ndim == 3:
            transition = transition[None]
        num_types, num_states, num_actions = transition.shape[:3]

        # Terminal states are never left.
        ends = np.array(terminal, dtype=np.int64)
        transition = transition.copy()
        transition[:, ends] = np.eye(num_states)[ends][:, None, :]

        if initial is None:
            initial = np.ones(num_states)
            initial[ends] = 0.0
        if type_weights is None:
            type_weights = np.ones(num_types)
        if habit is None:
            habit = np.ones(num_actions)
        return cls(
            model=DenseModel(normalise(transition)),
            score=score,
            initial=normalise(initial),
            lengths=lengths,
            terminal=ends,
            type_weights=normalise(type_weights),
            habit=habit,
            coordinates=coordinates,
        )

    @property
    def states(self) -> Space:
        """The states as a log names them: by their fields, or by their number."""
        if self.coordinates is None:
            return Space.of_size(self.num_states)
        fields = tuple(f"field {number}" for number in range(len(self.coordinates[0])))
        return Space(self.coordinates, fields)

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.model.num_states)

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.model.num_actions)

    @property
    def horizon(self) -> int:
        """Number of epochs of a value, at most."""
        return self.lengths[1]

    @property
    def has_ends(self) -> bool:
        """Whether there are terminal states."""
        return len(self.terminal) > 0

    @property
    def goes_on(self) -> BoolArray:
        """Whether an episode goes on after arriving in each state: [S]."""
        return ~np.isin(np.arange(self.num_states), self.terminal)

    @property
    def mean_transition(self) -> FloatArray:
        """Transition probabilities averaged over types: [S, A, S]."""
        return np.asarray(np.einsum("k,ksan->san", self.type_weights, self.model.transition))

    def value(self, rules: FloatArray) -> float:
        """Exact value of a rule [S, A], or of following one of several [M, S, A] in each episode.

        Each of several rules is followed in an equal share of the episodes.
        """
        rules = rules.reshape(-1, self.num_states, self.num_actions)
        closed_loop = np.einsum("msa,ksan->mksn", rules, self.model.transition, optimize=True)
        now = closed_loop @ self.score

        # Value of each state under each rule and type: [M, K, S].
        value = np.zeros(now.shape)
        for _ in range(self.horizon):
            following = value * self.goes_on
            value = now + (closed_loop @ following[..., None])[..., 0]

        by_rule = (value @ self.initial) @ self.type_weights
        mean = float(by_rule.mean())
        return mean if self.has_ends else mean / self.horizon

    def share_of_time(self, rules: FloatArray, states: IntArray) -> float:
        """Share of the horizon that rules spend in some states; an ended episode stays there."""
        indicator = np.isin(np.arange(self.num_states), states).astype(np.float64)
        without_ends = np.empty(0, dtype=np.int64)
        return replace(self, score=indicator, terminal=without_ends).value(rules)

    def optimal_action_values(self, score: FloatArray) -> FloatArray:
        """Total score of each action, followed by the best ones, for who knows no types: [S, A]."""
        transition = self.mean_transition
        value = np.zeros(self.num_states)
        for _ in range(self.horizon):
            action_values = transition @ (score + self.goes_on * value)
            value = action_values.max(axis=-1)
        return np.asarray(action_values)

    def judged_on(self, states: IntArray) -> System:
        """The system with a score that names the given states only.

        A goal cannot name a state that the log does not have. The largest score becomes 1 again, as
        the weights of a goal count relative to the largest.
        """
        is_named = np.isin(np.arange(self.num_states), states)
        score = np.where(is_named, self.score, 0.0)
        return replace(self, score=score / score.max())

    def starting_in(self, states: IntArray) -> System:
        """The system with starts in the given states only."""
        is_named = np.isin(np.arange(self.num_states), states)
        return replace(self, initial=normalise(np.where(is_named, self.initial, 0.0)))


# Behaviours.


def _random(system: System, rng: np.random.Generator) -> FloatArray:
    """Every action with the same probability."""
    return np.ones((system.num_states, system.num_actions))


def _unaware(system: System, rng: np.random.Generator) -> FloatArray:
    """A rule that was sampled without looking at the system."""
    return rng.dirichlet(np.ones(system.num_actions), size=system.num_states)


def _expert(system: System, rng: np.random.Generator) -> FloatArray:
    """Mostly the best actions for the goal."""
    return soft_optimal(system, system.score)


def _opposed(system: System, rng: np.random.Generator) -> FloatArray:
    """Mostly the worst actions for the goal."""
    return soft_optimal(system, -system.score)


def _other_goal(system: System, rng: np.random.Generator) -> FloatArray:
    """Mostly the best actions for another goal: the same scores, of other states."""
    return soft_optimal(system, rng.permutation(system.score))


BEHAVIOURS: Mapping[str, Callable[[System, np.random.Generator], FloatArray]] = {
    "random": _random,
    "unaware": _unaware,
    "expert": _expert,
    "opposed": _opposed,
    "other goal": _other_goal,
}
"""Rules of the past by name: from a system to non-negative numbers [S, A]."""

MIXED = "mixed"
"""The past in which each episode follows one of the others, by chance."""

OWN = "own"
"""The past that was made by the very rule under evaluation: the log of a policy in use."""

PASTS = (*BEHAVIOURS, MIXED, OWN)
"""All kinds of past."""


def soft_optimal(system: System, score: FloatArray, *, sharpness: float = 1.5) -> FloatArray:
    """A rule that prefers actions of a large value under a score [S]: [S, A].

    Parameters
    ----------
    sharpness : float
        Increase of an action's log-odds with a standard deviation of the advantages of all actions
        in all states. With 1.5 the best of three actions is taken in about three of four cases:
        people decide well, and every action is seen now and then.
    """
    values = system.optimal_action_values(score)[system.goes_on]
    advantage = values - values.mean(axis=-1, keepdims=True)
    rule = np.ones((system.num_states, system.num_actions))
    spread = advantage.std()
    if spread > 1e-9:  # otherwise actions have no effect
        rule[system.goes_on] = np.exp(sharpness * advantage / spread)
    return normalise(rule)


def past_rules(system: System, past: str, rng: np.random.Generator) -> FloatArray:
    """The rules that the episodes of a past follow: [M, S, A], with M = 1 unless it is mixed."""
    names = list(BEHAVIOURS) if past == MIXED else [past]
    rules = [BEHAVIOURS[name](system, rng) for name in names]
    return normalise(np.stack(rules) * system.habit)


# Logs.


@dataclass(frozen=True, eq=False)
class Log:
    """Records of episodes, as columns [records].

    Attributes
    ----------
    episode, time : [records]
        Number of the episode, and place in it.
    state, action, next_state : [records]
    """

    episode: IntArray
    time: IntArray
    state: IntArray
    action: IntArray
    next_state: IntArray

    def __len__(self) -> int:
        return len(self.state)

    @property
    def states(self) -> IntArray:
        """The states that occur, ascending."""
        return np.union1d(self.state, self.next_state)

    @property
    def actions(self) -> IntArray:
        """The actions that occur, ascending."""
        return np.unique(self.action)

    def table(self) -> dict[str, Any]:
        """The columns by name, as `TransferLearner.fit` takes them."""
        return {
            "episode": self.episode,
            "time": self.time,
            "state": self.state,
            "action": self.action,
            "next_state": self.next_state,
        }

    def within(self, states: IntArray) -> Log:
        """The episodes that stay within some states."""
        is_outside = ~(np.isin(self.state, states) & np.isin(self.next_state, states))
        stays = ~np.isin(self.episode, self.episode[is_outside])
        return self._chosen(stays)

    def first_episodes(self, num_records: int) -> Log:
        """The first episodes that have so many records together, each of them whole."""
        last = self.episode[min(num_records, len(self)) - 1]
        return self._chosen(self.episode <= last)

    def _chosen(self, is_chosen: BoolArray) -> Log:
        return Log(**{name: column[is_chosen] for name, column in self.table().items()})


def simulate(system: System, rules: FloatArray, num_records: int, rng: np.random.Generator) -> Log:
    """A log of whole episodes with at least so many records.

    Parameters
    ----------
    rules : [M, S, A]
        Each episode follows one of them, by chance.
    """
    num_episodes = num_records // system.lengths[0] + 1
    log = _episodes(system, rules, num_episodes, rng)
    while len(log) < num_records:
        more = _episodes(system, rules, num_episodes, rng)
        columns = more.table()
        columns["episode"] = columns["episode"] + log.episode[-1] + 1
        joined = {name: np.append(column, columns[name]) for name, column in log.table().items()}
        log = Log(**joined)
    return log.first_episodes(num_records)


def _episodes(
    system: System, rules: FloatArray, num_episodes: int, rng: np.random.Generator
) -> Log:
    """A log of so many episodes."""
    # What each episode has: a rule, a type, a length and a start.
    transition = system.model.transition
    shortest, longest = system.lengths
    rule_of = rng.integers(len(rules), size=num_episodes)
    type_of = rng.choice(len(transition), num_episodes, p=system.type_weights)
    length = rng.integers(shortest, longest + 1, size=num_episodes)
    state = rng.choice(system.num_states, num_episodes, p=system.initial)

    # All episodes take a step at a time; those that ended drop out.
    episode = np.arange(num_episodes)
    steps = []
    for epoch in range(longest):
        action = sample(rules[rule_of[episode], state], rng.random(len(episode)))
        rows = transition[type_of[episode], state, action]
        next_state = sample(rows, rng.random(len(episode)))
        time = np.full(len(episode), epoch)
        steps.append(np.stack([episode, time, state, action, next_state]))

        remains = system.goes_on[next_state] & (epoch + 1 < length[episode])
        episode = episode[remains]
        state = next_state[remains]
        if not len(episode):
            break

    # Episode by episode, in the order of time.
    columns = np.concatenate(steps, axis=1)
    order = np.lexsort((columns[1], columns[0]))
    return Log(*columns[:, order])
