r"""A system, a method, and the loop that they close.

The probability of a trajectory factors into the distribution of the initial state, the decision
rules and the transition model:

.. math:: p(s_0, a_1, s_1, \ldots, s_N) = p(s_0) \prod_t p_t(a_t | s_{t-1}) p(s_t | a_t, s_{t-1}).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import IntArray, broadcast, frozen, sample
from pastwise._numerics.checks import checked_probabilities
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Trajectory, Transitions
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.models.base import TransitionModel


class System(Protocol):
    """What a method acts on; leading axes are independent copies."""

    @property
    def states(self) -> Space:
        """The states."""
        ...

    @property
    def actions(self) -> Space:
        """The actions."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Leading axes."""
        ...

    def reset(self, rng: Random) -> IntArray:
        """Initial states: [*shape]."""
        ...

    def step(self, state: IntArray, action: IntArray, rng: Random) -> IntArray:
        """Next states: [*shape]."""
        ...


class FiniteSystem:
    """A system given by its transition model and the distribution of its initial state.

    Parameters
    ----------
    model : TransitionModel
    initial : broadcastable to [*shape, S], optional
        p(s_0); uniform by default.
    """

    def __init__(self, model: TransitionModel, initial: ArrayLike | None = None) -> None:
        self.model = model
        self.shape = model.shape
        self.states = Space.of_size(model.num_states)
        self.actions = Space.of_size(model.num_actions)
        if initial is None:
            initial = np.full(model.num_states, 1 / model.num_states)
        checked = checked_probabilities("initial", initial)
        self.initial = frozen(broadcast("initial", checked, (*self.shape, model.num_states)))

    def reset(self, rng: Random) -> IntArray:
        """Initial states, sampled from p(s_0): [*shape]."""
        return sample(self.initial, rng.random(self.shape))

    def step(self, state: IntArray, action: IntArray, rng: Random) -> IntArray:
        """Next states, sampled from the transition model: [*shape]."""
        return sample(self.model.row(state, action), rng.random(self.shape))


def run(
    system: System,
    method: AnyMethod,
    num_steps: int,
    rng: Random,
    *,
    ideal: IdealModel | None = None,
    counts: TransitionCounts | None = None,
    recent: Transitions | None = None,
) -> Trajectory:
    """Let a method act on a system for ``num_steps`` epochs.

    The system, the choice of actions and the method's own random numbers come from three children
    of ``rng``, so that methods compared on the same numbers meet the same world.

    Parameters
    ----------
    rng : numpy.random.Generator or Streams
        `Streams` gives each of a batch of runs its own generator.
    ideal : IdealModel, optional
        The goal; by default one that is indifferent, for methods that do not look at it.
    counts, recent : optional
        The past log: its counts and its last records; empty by default.
    """
    if num_steps < 1:
        raise ParameterError(f"num_steps must be at least 1, not {num_steps}")
    world_rng, choice_rng, method_rng = rng.spawn(3)

    # Learn from the past log, if there is one.
    if counts is None:
        counts = TransitionCounts.empty(system.states, system.actions, system.shape)
    if ideal is None:
        num_states = len(system.states)
        ideal = IdealModel.of(np.full(num_states, 1 / num_states), num_actions=len(system.actions))
    memory = method.start(counts, ideal, recent)

    # Act, and learn from what follows.
    states = np.empty((num_steps + 1, *system.shape), dtype=np.int64)
    actions = np.empty((num_steps, *system.shape), dtype=np.int64)
    states[0] = system.reset(world_rng)
    for t in range(num_steps):
        rule = method.rule(memory, states[t], method_rng)
        actions[t] = sample(rule, choice_rng.random(system.shape))
        states[t + 1] = system.step(states[t], actions[t], world_rng)
        method.observe(memory, states[t], actions[t], states[t + 1])
    return Trajectory(frozen(np.moveaxis(states, 0, -1)), frozen(np.moveaxis(actions, 0, -1)))
