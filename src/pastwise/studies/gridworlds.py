"""Gridworlds of gymnasium with logs that were made for another target.

Each past agent knew its world and went for its own target, but for one action in three that it took at random. Its
episodes ended where the new task's do, or after 200 steps; in Taxi, where the passenger was brought to the old
destination.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.studies.systems import KnownSystem, toy_system
from pastwise.studies.transfer import Setting

RANDOM_SHARE = 1 / 3
"""Share of random actions in the past behaviour."""

SIZES = (10, 30, 100, 300, 1000)
QUICK_SIZES = (10, 100)


def gridworlds(sizes: tuple[int, ...] = SIZES) -> list[Setting]:
    """FrozenLake, CliffWalking and Taxi, each with a log for another target."""
    small, large = toy_system("FrozenLake-v1"), toy_system("FrozenLake-v1", map_name="8x8")
    cliff = toy_system("CliffWalking-v1")
    destination, other = taxi(target=1), taxi(target=0)
    return [
        Setting(
            "FrozenLake 4x4",
            "two cells left of the goal",
            small,
            mostly(aiming_at(small, 13)),
            sizes,
        ),
        Setting(
            "FrozenLake 8x8", "the lower left corner", large, mostly(aiming_at(large, 56)), sizes
        ),
        Setting(
            "CliffWalking", "the upper right corner", cliff, mostly(aiming_at(cliff, 11)), sizes
        ),
        Setting(
            "Taxi", "passengers to R instead of G", destination, mostly(other), sizes, world=other
        ),
    ]


def mostly(world: KnownSystem) -> FloatArray:
    """The best rule of a world, with a share of random actions: [S, A]."""
    return (1 - RANDOM_SHARE) * world.best + RANDOM_SHARE * world.random


def aiming_at(system: KnownSystem, target: int) -> KnownSystem:
    """The same world with another target, at which episodes end as well."""
    if target in system.terminal:
        raise ValueError("the other target must be a state that does not end an episode")
    transition = system.transition.copy()
    transition[target] = np.eye(system.num_states)[target]
    ends, success = np.union1d(system.terminal, target), np.eye(system.num_states)[target]
    return KnownSystem(transition, system.initial, ends, success, {})


def taxi(target: int) -> KnownSystem:
    """Taxi-v4 for one destination, without the destination in its state: row, column and where the passenger is.

    The world does not depend on the destination, so what is seen on the way to one serves another. An episode ends once
    the passenger is there, and starts with one anywhere else.
    """
    import gymnasium

    env: Any = gymnasium.make("Taxi-v4").unwrapped
    states = [(row, column, place) for row in range(5) for column in range(5) for place in range(5)]
    transition = np.zeros((len(states), int(env.action_space.n), len(states)))
    for s, (row, column, place) in enumerate(states):
        for a, outcomes in env.P[env.encode(row, column, place, target)].items():
            for probability, following, _, _ in outcomes:
                where = tuple(int(part) for part in env.decode(following))[:3]
                transition[s, a, states.index((where[0], where[1], where[2]))] += probability
    places = np.array([place for _, _, place in states])
    arrived, waiting = places == target, (places != target) & (places < 4)
    transition[arrived] = np.eye(len(states))[arrived][:, None]
    return KnownSystem(
        transition, waiting / waiting.sum(), np.flatnonzero(arrived), arrived.astype(np.float64), {}
    )
