"""Systems that others published, with everything about them known: to check what is estimated from logs of them.

ICU-Sepsis (package ``icu-sepsis``) is a model of sepsis treatment derived from real intensive-care data: 716 states,
25 actions; its policies end in death or survival. The toy systems are gymnasium's own tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, normalise, sample
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.evaluation.values import value_until_absorption
from pastwise.models.sparse import SparseModel


@dataclass(frozen=True, eq=False)
class KnownSystem:
    """A system that ends, with the truth about it.

    Attributes
    ----------
    transition : [S, A, S]
        Terminal states lead to themselves.
    initial : [S]
    terminal : [number]
    success : [S]
        1 in the terminal states that are wanted.
    rules : by name, [S, A]
        Policies that came with the system.
    """

    transition: FloatArray
    initial: FloatArray
    terminal: IntArray
    success: FloatArray
    rules: Mapping[str, FloatArray]

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.transition.shape[0])

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.transition.shape[1])

    @cached_property
    def model(self) -> SparseModel:
        """The transition model."""
        from scipy.sparse import csr_array

        return SparseModel(
            csr_array(self.transition.reshape(-1, self.num_states)), self.num_actions
        )

    def closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next_state | state) under a rule: [S, S]."""
        return np.asarray(np.einsum("sa,san->sn", rule, self.transition, optimize=True))

    def success_and_length(self, rule: FloatArray) -> tuple[float, float]:
        """Probability of ending well, and mean number of steps, exactly."""
        loop = self.closed_loop(rule)
        rewards = np.stack([loop @ self.success, np.ones(self.num_states)])
        success, length = value_until_absorption(loop, rewards, self.terminal) @ self.initial
        return float(success), float(length)

    def success_within(self, rule: FloatArray, steps: int) -> float:
        """Probability of ending well within so many steps; for rules that may never end."""
        loop, value = self.closed_loop(rule), self.success
        for _ in range(steps):
            value = loop @ value
        return float(self.initial @ value)

    @property
    def random(self) -> FloatArray:
        """Every action alike: [S, A]."""
        return np.full((self.num_states, self.num_actions), 1 / self.num_actions)

    @cached_property
    def best(self) -> FloatArray:
        """The rule of the largest probability of ending well, by value iteration: [S, A]."""
        value = self.success.copy()
        for _ in range(100_000):
            better = self.model.expect(value) * PATIENCE
            new = np.where(
                np.isin(np.arange(self.num_states), self.terminal),
                self.success,
                better.max(axis=-1),
            )
            if np.abs(new - value).max() < CONVERGED:
                break
            value = new
        return np.asarray(np.eye(self.num_actions)[better.argmax(axis=-1)])

    def log(
        self, rule: FloatArray, episodes: int, rng: np.random.Generator, max_steps: int = 1000
    ) -> TransitionCounts:
        """Counts of the transitions of episodes under a rule."""
        states, actions = Space.of_size(self.num_states), Space.of_size(self.num_actions)
        state = sample(
            np.broadcast_to(self.initial, (episodes, self.num_states)), rng.random(episodes)
        )
        parts: list[tuple[IntArray, IntArray, IntArray]] = []
        for _ in range(max_steps):
            state = state[~np.isin(state, self.terminal)]
            if not len(state):
                break
            action = sample(rule[state], rng.random(len(state)))
            following = sample(self.transition[state, action], rng.random(len(state)))
            parts.append((state, action, following))
            state = following
        s, a, n = (np.concatenate(column) for column in zip(*parts, strict=True))
        counts = TransitionCounts.from_records(s, a, n, states, actions)
        return counts.ending_in(self.terminal)


CONVERGED = 1e-10
PATIENCE = 1 - 1e-7
"""Discount of a step: of equally good ways the shorter is taken."""


def icu_sepsis() -> KnownSystem:
    """ICU-Sepsis, read from its package's file without importing it (that would pull in an old gym).

    States 713 and 714 are death and survival, made absorbing; the sink behind them is left out. The published expert's
    mass on actions that are not admissible is kept: the dynamics say what those do.
    """
    spec = find_spec("icu_sepsis")
    if spec is None or spec.origin is None:
        raise ValueError("ICU-Sepsis is not installed: pip install 'pastwise[study]'")
    data = np.load(Path(spec.origin).parent / "envs" / "assets" / "dynamics.npz")
    death, survival, sink = 713, 714, 715
    transition, expert = data["tx_mat"][:sink, :, :sink].copy(), data["expert_policy"][:sink].copy()
    for end in (death, survival):
        transition[end] = np.eye(sink)[end]
        expert[end] = 1 / expert.shape[1]
    ends, success = np.array([death, survival]), np.eye(sink)[survival]
    initial = normalise(data["d_0"][:sink])
    return KnownSystem(normalise(transition), initial, ends, success, {"expert": normalise(expert)})


def toy_system(name: str, **options: Any) -> KnownSystem:
    """A toy-text environment of gymnasium, from its own table ``P``; success is an ending with the best reward."""
    import gymnasium

    env: Any = gymnasium.make(name, **options).unwrapped
    table, start = env.P, np.asarray(env.initial_state_distrib, dtype=np.float64)
    S, A = len(table), len(table[0])
    transition, reached, ends = np.zeros((S, A, S)), np.full(S, -np.inf), np.zeros(S, dtype=bool)
    for s, actions in table.items():
        for a, outcomes in actions.items():
            for probability, n, reward, done in outcomes:
                transition[s, a, n] += probability
                ends[n] |= bool(done)
                reached[n] = max(reached[n], reward) if done else reached[n]
    transition[ends] = np.eye(S)[ends][:, None, :]
    success = (ends & (reached == reached[ends].max())).astype(np.float64)
    return KnownSystem(transition, normalise(start), np.flatnonzero(ends), success, {})
