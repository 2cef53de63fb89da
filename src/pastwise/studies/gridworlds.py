"""Gridworlds of gymnasium, with logs made for another target.

Each past decision maker knew its world and went for its own target, except for one action in three
that it took at random. Its episodes ended where those of the new task do, or after 200 steps; in
Taxi, once the passenger was at the old destination.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import ParameterError
from pastwise.simulation.coding import require_gymnasium
from pastwise.studies.systems import KnownSystem, toy_system
from pastwise.studies.transfer import Setting

SIZES = (10, 30, 100, 300, 1000)
QUICK_SIZES = (10, 100)
"""Episodes of the logs, in full and in a version that takes seconds."""


def gridworlds(sizes: tuple[int, ...] = SIZES, *, numbered: bool = False) -> list[Setting]:
    """FrozenLake, CliffWalking and Taxi, each with a log for another target.

    Parameters
    ----------
    sizes : numbers of episodes
    numbered : bool
        Whether the log names a state by its number alone, not by its row and column.
    """
    small_lake = toy_system("FrozenLake-v1")
    large_lake = toy_system("FrozenLake-v1", map_name="8x8")
    cliff = toy_system("CliffWalking-v1")
    new_taxi = taxi(target=1)
    old_taxi = taxi(target=0)
    settings = [
        Setting(
            name="FrozenLake 4x4",
            past="two cells left of the goal",
            system=small_lake,
            behaviour=mostly_best(aiming_at(small_lake, 13)),
            sizes=sizes,
            fields={"row": 4, "column": 4},
        ),
        Setting(
            name="FrozenLake 8x8",
            past="the lower left corner",
            system=large_lake,
            behaviour=mostly_best(aiming_at(large_lake, 56)),
            sizes=sizes,
            fields={"row": 8, "column": 8},
        ),
        Setting(
            name="CliffWalking",
            past="the upper right corner",
            system=cliff,
            behaviour=mostly_best(aiming_at(cliff, 11)),
            sizes=sizes,
            fields={"row": 4, "column": 12},
        ),
        Setting(
            name="Taxi",
            past="passengers to R instead of G",
            system=new_taxi,
            behaviour=mostly_best(old_taxi),
            sizes=sizes,
            world=old_taxi,
            fields={"row": 5, "column": 5, "passenger": 5},
        ),
    ]
    return [replace(setting, fields=None) for setting in settings] if numbered else settings


def mostly_best(world: KnownSystem, random_share: float = 1 / 3) -> FloatArray:
    """The best rule of a world with a share of random actions: [S, A]."""
    return (1 - random_share) * world.best + random_share * world.random


def aiming_at(system: KnownSystem, target: int) -> KnownSystem:
    """The same world with another target, which ends an episode as well."""
    if target in system.terminal:
        raise ParameterError(
            f"state {target} ends an episode already; choose a target that does not end an episode"
        )
    transition = system.transition.copy()
    transition[target] = np.eye(system.num_states)[target]
    return KnownSystem(
        transition=transition,
        initial=system.initial,
        terminal=np.union1d(system.terminal, target),
        success=np.eye(system.num_states)[target],
        rules={},
    )


def taxi(target: int) -> KnownSystem:
    """Taxi-v4 for one destination, which is not part of the state: row, column, passenger's place.

    Driving does not depend on the destination, so a log made for one serves another. An episode
    starts with a passenger anywhere else and ends when the passenger is there.
    """
    env: Any = require_gymnasium().make("Taxi-v4").unwrapped
    states = list(product(range(5), range(5), range(5)))
    index_of = {state: index for index, state in enumerate(states)}
    transition = np.zeros((len(states), int(env.action_space.n), len(states)))
    for (row, column, place), index in index_of.items():
        for action, outcomes in env.P[env.encode(row, column, place, target)].items():
            for probability, outcome, _, _ in outcomes:
                next_row, next_column, next_place, _ = env.decode(outcome)
                next_state = (int(next_row), int(next_column), int(next_place))
                transition[index, action, index_of[next_state]] += probability

    # Places 0 to 3 are the stands; 4 is inside the taxi.
    places = np.array([place for _, _, place in states])
    has_arrived = places == target
    is_waiting = ~has_arrived & (places < 4)
    transition[has_arrived] = np.eye(len(states))[has_arrived][:, None]
    return KnownSystem(
        transition=transition,
        initial=is_waiting / is_waiting.sum(),
        terminal=np.flatnonzero(has_arrived),
        success=has_arrived.astype(np.float64),
        rules={},
    )
