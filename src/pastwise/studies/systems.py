"""Published systems whose dynamics are known: what is estimated from their logs can be checked.

ICU-Sepsis (package ``icu-sepsis``) is a model of sepsis treatment derived from real intensive-care
data, with 716 states and 25 actions; its policies end in death or survival. The toy systems are
gymnasium's own tables.
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
from pastwise.errors import MissingDependencyError
from pastwise.evaluation.values import value_until_absorption
from pastwise.models.sparse import SparseModel
from pastwise.simulation.coding import require_gymnasium


@dataclass(frozen=True, eq=False)
class KnownSystem:
    """A system of episodes that end, with its true dynamics.

    Attributes
    ----------
    transition : [S, A, S]
        Terminal states lead to themselves.
    initial : [S]
        Distribution of the start state.
    terminal : [number]
        States in which an episode ends.
    success : [S]
        1 in the terminal states that count as success.
    rules : [S, A] by name
        Policies published with the system.
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
        """Exact probability of ending well, and mean number of steps."""
        loop = self.closed_loop(rule)
        rewards = np.stack([loop @ self.success, np.ones(self.num_states)])
        values = value_until_absorption(loop, rewards, self.terminal)
        success, length = values @ self.initial
        return float(success), float(length)

    def success_within(self, rule: FloatArray, max_steps: int) -> float:
        """Probability of ending well within some steps; for rules that may never end."""
        loop = self.closed_loop(rule)
        value = self.success
        for _ in range(max_steps):
            value = loop @ value
        return min(float(self.initial @ value), 1.0)  # rounding errors add up

    @property
    def random(self) -> FloatArray:
        """The rule that takes every action with equal probability: [S, A]."""
        return np.full((self.num_states, self.num_actions), 1 / self.num_actions)

    @cached_property
    def best(self) -> FloatArray:
        """The rule of the largest probability of ending well: [S, A]."""
        return self.optimal_rule()

    def optimal_rule(
        self, discount: float = 1 - 1e-7, tolerance: float = 1e-10, max_sweeps: int = 100_000
    ) -> FloatArray:
        """Value iteration for the largest probability of ending well: [S, A].

        Parameters
        ----------
        discount : float
            So close to 1 that it only decides between equally good ways: the shorter one wins.
        tolerance : float
            Stop when no value changes by more.
        max_sweeps : int
            Stop after so many sweeps.
        """
        is_terminal = np.isin(np.arange(self.num_states), self.terminal)
        value = self.success.copy()
        for _ in range(max_sweeps):
            action_values = self.model.expect(value) * discount
            new_value = np.where(is_terminal, self.success, action_values.max(axis=-1))
            if np.abs(new_value - value).max() < tolerance:
                break
            value = new_value
        return np.asarray(np.eye(self.num_actions)[action_values.argmax(axis=-1)])

    def log(
        self, rule: FloatArray, episodes: int, rng: np.random.Generator, max_steps: int = 1000
    ) -> TransitionCounts:
        """Counts of the transitions of episodes under a rule."""
        starts = np.broadcast_to(self.initial, (episodes, self.num_states))
        state = sample(starts, rng.random(episodes))

        # All episodes take a step at a time; those that ended drop out.
        steps: list[tuple[IntArray, IntArray, IntArray]] = []
        for _ in range(max_steps):
            state = state[~np.isin(state, self.terminal)]
            if not len(state):
                break
            action = sample(rule[state], rng.random(len(state)))
            next_state = sample(self.transition[state, action], rng.random(len(state)))
            steps.append((state, action, next_state))
            state = next_state

        counts = TransitionCounts.from_records(
            state=np.concatenate([step[0] for step in steps]),
            action=np.concatenate([step[1] for step in steps]),
            next_state=np.concatenate([step[2] for step in steps]),
            states=Space.of_size(self.num_states),
            actions=Space.of_size(self.num_actions),
        )
        return counts.ending_in(self.terminal)


def icu_sepsis() -> KnownSystem:
    """ICU-Sepsis, read from its package's file; importing the package would pull in an old gym.

    States 713 and 714 are death and survival, made absorbing; the sink behind them is left out. The
    published expert puts some probability on actions that are not admissible; it is kept, since the
    dynamics define what those do.
    """
    spec = find_spec("icu_sepsis")
    if spec is None or spec.origin is None:
        raise MissingDependencyError("ICU-Sepsis is not installed; run: pip install icu-sepsis")
    data = np.load(Path(spec.origin).parent / "envs" / "assets" / "dynamics.npz")

    death, survival, sink = 713, 714, 715
    transition = data["tx_mat"][:sink, :, :sink].copy()
    expert = data["expert_policy"][:sink].copy()
    for end in (death, survival):
        transition[end] = np.eye(sink)[end]
        expert[end] = 1 / expert.shape[1]
    return KnownSystem(
        transition=normalise(transition),
        initial=normalise(data["d_0"][:sink]),
        terminal=np.array([death, survival]),
        success=np.eye(sink)[survival],
        rules={"expert": normalise(expert)},
    )


def toy_system(name: str, **options: Any) -> KnownSystem:
    """A toy-text environment of gymnasium, from its own table ``P``.

    Success is an ending with the best reward.
    """
    env: Any = require_gymnasium().make(name, **options).unwrapped
    num_states = len(env.P)
    num_actions = len(env.P[0])
    transition = np.zeros((num_states, num_actions, num_states))
    final_reward = np.full(num_states, -np.inf)
    is_terminal = np.zeros(num_states, dtype=bool)
    for state, actions in env.P.items():
        for action, outcomes in actions.items():
            for probability, next_state, reward, done in outcomes:
                transition[state, action, next_state] += probability
                if done:
                    is_terminal[next_state] = True
                    final_reward[next_state] = max(final_reward[next_state], reward)

    transition[is_terminal] = np.eye(num_states)[is_terminal][:, None, :]
    is_success = is_terminal & (final_reward == final_reward[is_terminal].max())
    return KnownSystem(
        transition=transition,
        initial=normalise(np.asarray(env.initial_state_distrib, dtype=np.float64)),
        terminal=np.flatnonzero(is_terminal),
        success=is_success.astype(np.float64),
        rules={},
    )
