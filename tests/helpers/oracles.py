"""Small random worlds, and slow literal oracles to compare the library with.

The oracles are written from the paper's formulas, on raw arrays and plain lists; they call nothing
of the library's numerical code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.goals.ideal import IdealModel
from pastwise.models.dense import DenseModel
from pastwise.simulation.loop import FiniteSystem

Record = tuple[int, int, int]

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, 4)


def records(num_states: int, num_actions: int) -> st.SearchStrategy[list[Record]]:
    """Logs of up to twenty records (state, action, next_state)."""
    state, action = st.integers(0, num_states - 1), st.integers(0, num_actions - 1)
    return st.lists(st.tuples(state, action, state), max_size=20)


def random_rows(rng: np.random.Generator, *shape: int) -> FloatArray:
    """Distributions along the last axis."""
    return rng.dirichlet(np.ones(shape[-1]), shape[:-1])


def random_ideal(rng: np.random.Generator, num_states: int, num_actions: int) -> IdealModel:
    """A goal that depends on everything it may depend on."""
    S, A = num_states, num_actions
    return IdealModel.of(random_rows(rng, S, A, S), random_rows(rng, S, A))


def small_loop(
    num_states: int, num_actions: int, horizon: int, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Transition model, initial distribution and a policy of rules, with a few zeros in them."""
    rng = np.random.default_rng(seed)
    transition = random_rows(rng, num_states, num_actions, num_states)
    initial = random_rows(rng, num_states)
    policy = random_rows(rng, horizon, num_states, num_actions)
    transition[0, 1] = np.eye(num_states)[-1]
    policy[1, 1, 0] = 0.0
    policy[1, 1] /= policy[1, 1].sum()
    return transition, initial, policy


def random_log(
    rng: np.random.Generator, num_states: int, num_actions: int, *shape: int
) -> Transitions:
    """Records [*shape] drawn at random; the last axis is that of the records."""
    state, next_state = rng.integers(num_states, size=(2, *shape))
    return Transitions(state, rng.integers(num_actions, size=shape), next_state)


def counts_of(log: Transitions, num_states: int, num_actions: int) -> TransitionCounts:
    return TransitionCounts.from_transitions(
        log, Space.of_size(num_states), Space.of_size(num_actions)
    )


def posterior_mean(counts: TransitionCounts, background: float) -> FloatArray:
    """(count + background) / total, as a dense tensor [*shape, S, A, S]."""
    table = np.full(
        (*counts.shape, len(counts.states), len(counts.actions), len(counts.states)), background
    )
    table.reshape(-1)[counts.key] += counts.weight
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def simulated_counts(
    transition: FloatArray, number: int, rng: np.random.Generator
) -> TransitionCounts:
    """Counts of transitions [S, A, S] from uniformly random states and actions."""
    num_states, num_actions, _ = transition.shape
    s = rng.integers(num_states, size=number)
    a = rng.integers(num_actions, size=number)
    n = (transition[s, a].cumsum(axis=-1) < rng.random(number)[:, None]).sum(axis=-1)
    return counts_of(Transitions(s, a, n), num_states, num_actions)


def log_of(log: Sequence[Record]) -> Transitions:
    """A list of records as arrays."""
    return Transitions(*np.array(log, dtype=np.int64).reshape(-1, 3).T)


def counts_of_list(
    log: Sequence[Record], num_states: int, num_actions: int, weight: Sequence[float] | float = 1.0
) -> TransitionCounts:
    spaces = Space.of_size(num_states), Space.of_size(num_actions)
    return TransitionCounts.from_records(*log_of(log), *spaces, weight=weight)


def joint(transition: FloatArray, rule: FloatArray) -> FloatArray:
    """p(next_state, action | state): [S, A, S]."""
    return transition * rule[..., None]


def renamed(table: FloatArray, *names: Sequence[int]) -> FloatArray:
    """The table after index i of axis k has got the name ``names[k][i]``."""
    new = np.empty_like(table)
    new[np.ix_(*names)] = table
    return new


def silent_log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def trajectories(
    num_states: int, num_actions: int, horizon: int, start: int
) -> tuple[IntArray, IntArray]:
    """Every trajectory from a state: states [n, H + 1] and actions [n, H]."""
    paths = product(
        product(range(num_states), repeat=horizon), product(range(num_actions), repeat=horizon)
    )
    states, actions = zip(
        *(((start, *following), chosen) for following, chosen in paths), strict=True
    )
    return np.array(states), np.array(actions)


def log_chain(
    states: IntArray, actions: IntArray, transition: FloatArray, rules: FloatArray
) -> FloatArray:
    """Ln of the product of transition and rule factors along each trajectory; rules [H, S, A]."""
    before, after, epoch = states[:, :-1], states[:, 1:], np.arange(actions.shape[1])
    factors = silent_log(transition[before, actions, after]) + silent_log(
        rules[epoch, before, actions]
    )
    return np.asarray(factors.sum(axis=1))


def divergence(
    transition: FloatArray,
    policy: FloatArray,
    ideal_transition: FloatArray,
    ideal_rules: FloatArray,
    start: int,
) -> float:
    """D(closed loop || ideal) from a state, term by term over all trajectories.

    Policy and ideal rules are [H, S, A].
    """
    paths = trajectories(transition.shape[0], transition.shape[1], len(policy), start)
    log_p = log_chain(*paths, transition, policy)
    log_q = log_chain(*paths, ideal_transition, ideal_rules)
    possible = log_p > -np.inf
    return float((np.exp(log_p[possible]) * (log_p[possible] - log_q[possible])).sum())


def policy_value(transition: FloatArray, reward: FloatArray, policy: FloatArray) -> FloatArray:
    """Expected total reward of a policy [H, S, A] from each state; reward [S, A, S]."""
    S, A, _ = transition.shape
    value = [0.0] * S
    for rule in policy[::-1]:
        value = [
            sum(
                rule[s, a] * transition[s, a, n] * (reward[s, a, n] + value[n])
                for a in range(A)
                for n in range(S)
            )
            for s in range(S)
        ]
    return np.array(value)


def value_iteration(transition: FloatArray, reward: FloatArray, horizon: int) -> list[list[float]]:
    """Optimal expected reward to go, [H + 1][S], the first epoch first; reward [S, A, S]."""
    S, A, _ = transition.shape
    values = [[0.0] * S]
    for _ in range(horizon):
        value = values[0]
        gains = [
            [
                sum(transition[s, a, n] * (reward[s, a, n] + value[n]) for n in range(S))
                for a in range(A)
            ]
            for s in range(S)
        ]
        values.insert(0, [max(gain) for gain in gains])
    return values


@dataclass(frozen=True)
class World:
    """Three random systems, a goal that forbids some actions, and past logs that took them."""

    transition: FloatArray
    ideal: IdealModel
    log: Transitions

    @classmethod
    def random(cls, seed: int = 0, runs: int = 3) -> World:
        rng = np.random.default_rng(seed)
        allowed = np.array(
            [[True, True, True, False], [False, True, True, True], [True, True, False, True]]
        )
        goal = IdealModel.of([0.9, 0.07, 0.03], random_rows(rng, 3, 4), allowed=allowed)
        return cls(random_rows(rng, runs, 3, 4, 3), goal, random_log(rng, 3, 4, runs, 30))

    def alone(self, run: int) -> World:
        """One of the runs, without leading axes."""
        return World(
            self.transition[run], self.ideal, Transitions(*(field[run] for field in self.log))
        )

    @property
    def model(self) -> DenseModel:
        return DenseModel(self.transition)

    @property
    def system(self) -> FiniteSystem:
        return FiniteSystem(self.model)

    @property
    def counts(self) -> TransitionCounts:
        return counts_of(self.log, self.ideal.num_states, self.ideal.num_actions)
