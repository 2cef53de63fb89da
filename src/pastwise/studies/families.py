"""Families of systems with known truth, on which statements from logs are checked.

A family samples systems of one kind: from a random generator to a ``System``, of a size that varies
within the family. Two groups are kept apart. Constants of the library may be chosen on families of
the group *chosen*; published tables are of the group *reported*, which nothing is tuned on. Both
have systems in which actions have no effect, or hardly any; systems whose episodes end and
others that go on; and episodes with a hidden type. A family says which studies use it: the best
rule of a system with hidden types is not a rule of its states, so methods are not compared there.

To add a family, write a function and decorate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Literal
from zlib import crc32

import numpy as np

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise.studies.synthetic import System

Group = Literal["chosen", "reported"]

Study = Literal["calibration", "planners"]

BOTH: tuple[Study, ...] = ("calibration", "planners")

Build = Callable[[np.random.Generator], System]


@dataclass(frozen=True)
class Family:
    """Systems of one kind.

    Attributes
    ----------
    name : str
    group : "chosen" or "reported"
        Whether constants may be chosen on it, or tables are of it.
    build : function of a random generator
        Samples a system.
    is_null : bool
        Whether actions have no effect.
    studies : names of studies
        Those that use the family by default.
    """

    name: str
    group: Group
    build: Build
    is_null: bool
    studies: tuple[Study, ...] = BOTH

    def seeds(self, seed: int, index: int) -> np.random.SeedSequence:
        """Random numbers of one system of the family and of all that happens in it."""
        return np.random.SeedSequence([seed, crc32(self.name.encode())], spawn_key=(index,))

    def system(self, seed: int, index: int = 0) -> System:
        """A system of the family."""
        return self.build(np.random.default_rng(self.seeds(seed, index)))

    @property
    def summary(self) -> str:
        """The first line of the description."""
        return (self.build.__doc__ or self.name).splitlines()[0]


FAMILIES: dict[str, Family] = {}
"""All families, by name."""


def family(
    group: Group, *, is_null: bool = False, studies: tuple[Study, ...] = BOTH
) -> Callable[[Build], Build]:
    """Enter a function into `FAMILIES`, under its name with spaces."""

    def enter(build: Build) -> Build:
        name = build.__name__.replace("_", " ")
        FAMILIES[name] = Family(name, group, build, is_null, studies)
        return build

    return enter


def of_group(group: str, study: Study | None = None) -> tuple[str, ...]:
    """Names of the families of a group; those that a study uses by default, if it is given."""
    chosen = []
    for name, entry in FAMILIES.items():
        if entry.group == group and (study is None or study in entry.studies):
            chosen.append(name)
    return tuple(chosen)


# Building blocks.


def _size(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number from low to high; small ones are as frequent as large ones by the factor."""
    return int(np.exp(rng.uniform(np.log(low), np.log(high + 1))))


def _preferred(rng: np.random.Generator, S: int, share: float = 0.2) -> FloatArray:
    """Score 1 in a share of the states, at least in one: [S]."""
    number = max(1, round(share * S))
    score = np.zeros(S)
    score[rng.choice(S, number, replace=False)] = 1.0
    return score


def _at(S: int, *states: int) -> FloatArray:
    """1 in some states, 0 in the others: [S]."""
    indicator = np.zeros(S)
    indicator[list(states)] = 1.0
    return indicator


def _same_for_all_actions(chain: FloatArray, A: int) -> FloatArray:
    """From [S, S] to [S, A, S]: actions have no effect."""
    return np.repeat(chain[:, None, :], A, axis=1)


def _sparse_rows(
    rng: np.random.Generator, S: int, A: int, branching: int, *, same_support: bool
) -> FloatArray:
    """Dirichlet(1) rows over a few random next states: [S, A, S].

    With ``same_support`` all actions of a state lead to the same next states, by other
    probabilities.
    """
    branching = min(branching, S)
    transition = np.zeros((S, A, S))
    for s in range(S):
        support = rng.choice(S, branching, replace=False)
        for a in range(A):
            if not same_support:
                support = rng.choice(S, branching, replace=False)
            transition[s, a, support] = rng.dirichlet(np.ones(branching))
    return transition


def _line(up: FloatArray, down: FloatArray) -> FloatArray:
    """Steps up and down a line, by probabilities [S, A]; the ends of the line hold: [S, A, S]."""
    S, A = up.shape
    transition = np.zeros((S, A, S))
    for s in range(S):
        transition[s, :, min(s + 1, S - 1)] += up[s]
        transition[s, :, max(s - 1, 0)] += down[s]
        transition[s, :, s] += 1.0 - up[s] - down[s]
    return transition


MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Right, down, left and up, as steps of row and column."""


def _grid(free: FloatArray, slip: float) -> FloatArray:
    """Moves on a grid with walls: [S, 4, S] over the free cells, row by row.

    Parameters
    ----------
    free : [rows, columns]
        1 where a cell is free, 0 where there is a wall.
    slip : float
        Probability of a move in one of the other directions.
    """
    number = {cell: index for index, cell in enumerate(_free_cells(free))}
    S = len(number)
    transition = np.zeros((S, len(MOVES), S))
    for cell, s in number.items():
        for direction, (down, right) in enumerate(MOVES):
            arrived = number.get((cell[0] + down, cell[1] + right), s)
            probability = np.full(len(MOVES), slip / 3)
            probability[direction] = 1.0 - slip
            transition[s, :, arrived] += probability
    return transition


def _free_cells(free: FloatArray) -> list[tuple[int, int]]:
    """Row and column of each free cell of a grid [rows, columns], row by row."""
    return [(int(row), int(column)) for row, column in np.argwhere(free)]


def _distances(free: FloatArray, start: tuple[int, int]) -> dict[tuple[int, int], int]:
    """Number of moves from a cell to each cell that can be reached, the nearest first.

    Parameters
    ----------
    free : [rows, columns]
        1 where a cell is free, 0 where there is a wall.
    start : (row, column)
    """
    rows, columns = free.shape
    distance = {start: 0}
    waiting = [start]
    for cell in waiting:
        for down, right in MOVES:
            row = cell[0] + down
            column = cell[1] + right
            is_inside = 0 <= row < rows and 0 <= column < columns
            if is_inside and free[row, column] and (row, column) not in distance:
                distance[row, column] = distance[cell] + 1
                waiting.append((row, column))
    return distance


def _on_path(distance: dict[tuple[int, int], int], end: tuple[int, int]) -> list[tuple[int, int]]:
    """The cells of one shortest path to a cell, by the distances from where it starts."""
    path = [end]
    while distance[path[-1]]:
        row, column = path[-1]
        before = [(row - down, column - right) for down, right in MOVES]
        path.append(min(before, key=lambda cell: distance.get(cell, len(distance))))
    return path


def _binomial(n: int, p: float) -> FloatArray:
    """Probabilities of 0, ..., n successes: [n + 1]."""
    return np.array([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


# Families to choose constants on.


@family("chosen")
def dense(rng: np.random.Generator) -> System:
    """Uniform numbers, normalised: every next state is possible, actions differ little."""
    S = _size(rng, 3, 30)
    A = _size(rng, 2, 5)
    return System.of(normalise(rng.random((S, A, S))), _preferred(rng, S))


@family("chosen")
def dirichlet(rng: np.random.Generator) -> System:
    """Dirichlet(1) rows: every next state is possible, rows are unrelated."""
    S = _size(rng, 3, 30)
    A = _size(rng, 2, 5)
    return System.of(rng.dirichlet(np.ones(S), size=(S, A)), _preferred(rng, S))


@family("chosen", is_null=True)
def null(rng: np.random.Generator) -> System:
    """Actions have no effect; every next state is possible."""
    S = _size(rng, 3, 30)
    A = _size(rng, 2, 6)
    chain = rng.dirichlet(np.ones(S), size=S)
    return System.of(_same_for_all_actions(chain, A), _preferred(rng, S))


@family("chosen")
def near_null(rng: np.random.Generator) -> System:
    """Actions hardly matter: Dirichlet rows of 60 pseudo-records around those of the state."""
    S = _size(rng, 3, 30)
    A = _size(rng, 2, 6)
    chain = rng.dirichlet(np.ones(S), size=S)
    rows = [rng.dirichlet(60.0 * chain[s] + 1e-3, size=A) for s in range(S)]
    return System.of(np.stack(rows), _preferred(rng, S))


@family("chosen", is_null=True)
def sparse_null(rng: np.random.Generator) -> System:
    """Actions have no effect; three next states of each state."""
    S = _size(rng, 10, 100)
    A = _size(rng, 2, 6)
    chain = _sparse_rows(rng, S, 1, 3, same_support=True)[:, 0]
    return System.of(_same_for_all_actions(chain, A), _preferred(rng, S))


@family("chosen")
def garnet(rng: np.random.Generator) -> System:
    """Three random next states of each state and action."""
    S = _size(rng, 10, 100)
    A = _size(rng, 2, 5)
    return System.of(_sparse_rows(rng, S, A, 3, same_support=False), _preferred(rng, S))


@family("chosen")
def graph(rng: np.random.Generator) -> System:
    """Four neighbours of each state, between which actions choose."""
    S = _size(rng, 8, 60)
    A = _size(rng, 2, 5)
    return System.of(_sparse_rows(rng, S, A, 4, same_support=True), _preferred(rng, S))


@family("chosen")
def queue(rng: np.random.Generator) -> System:
    """A queue that is served at one of several speeds; short queues are wanted."""
    S = _size(rng, 5, 30)
    A = _size(rng, 2, 4)
    arrival = rng.uniform(0.2, 0.6)
    service = np.arange(1, A + 1) / (A + 1) * rng.uniform(0.7, 1.0, size=(S, A))
    transition = _line(up=arrival * (1 - service), down=service * (1 - arrival))
    return System.of(transition, np.linspace(1, 0, S), initial=_at(S, 0))


@family("chosen")
def replacement(rng: np.random.Generator) -> System:
    """A machine that wears out, gently or fast, until the last action replaces it."""
    S = _size(rng, 4, 15)
    A = _size(rng, 2, 4)
    wear = rng.uniform(0.1, 0.4) * (1 + 0.5 * np.arange(A))
    up = np.broadcast_to(np.minimum(wear, 0.95), (S, A))
    transition = _line(up, np.zeros((S, A)))
    transition[:, -1] = 0.1 * np.eye(S) + 0.9 * _at(S, 0)
    return System.of(transition, np.linspace(1, 0, S) ** 2)


@family("chosen")
def gridworld(rng: np.random.Generator) -> System:
    """A square grid with a goal in the corner and a trap, which end an episode."""
    n = _size(rng, 3, 6)
    S = n * n
    trap = int(rng.integers(1, S - 1))
    return System.of(
        _grid(np.ones((n, n)), slip=rng.uniform(0.1, 0.4)),
        _at(S, S - 1),
        initial=_at(S, 0),
        lengths=(60, 100),
        terminal=(trap, S - 1),
        coordinates=_free_cells(np.ones((n, n))),
    )


@family("chosen")
def open_gridworld(rng: np.random.Generator) -> System:
    """A square grid without ends; some cells are wanted, starts are anywhere."""
    n = _size(rng, 3, 10)
    free = np.ones((n, n))
    transition = _grid(free, slip=rng.uniform(0.1, 0.4))
    return System.of(transition, _preferred(rng, n * n), coordinates=_free_cells(free))


@family("chosen")
def treatment(rng: np.random.Generator) -> System:
    """Severities between death and recovery; treatments differ little, a rare one harms."""
    S = _size(rng, 5, 12)
    A = _size(rng, 3, 6)
    effect = rng.normal(0, 0.08, size=A) + rng.normal(0, 0.03, size=(S, A))
    effect[:, -1] -= 0.2
    up = np.clip(0.35 + effect, 0.05, 0.7)
    down = np.clip(0.3 - effect, 0.05, 0.95 - up)
    habit = np.ones(A)
    habit[-1] = 0.1
    return System.of(
        _line(up, down),
        _at(S, S - 1),
        lengths=(40, 80),
        terminal=(0, S - 1),
        habit=habit,
    )


@family("chosen", studies=("calibration",))
def hidden_type(rng: np.random.Generator) -> System:
    """Each episode has a hidden type that favours some next states over others."""
    S = _size(rng, 3, 12)
    A = _size(rng, 2, 4)
    K = int(rng.integers(2, 4))
    rows = rng.dirichlet(np.ones(S), size=(S, A))
    favour = np.exp(rng.normal(0, 1, size=(K, 1, 1, S)))
    return System.of(
        normalise(rows * favour),
        _preferred(rng, S),
        lengths=(10, 30),
        type_weights=rng.dirichlet(np.full(K, 4.0)),
    )


@family("chosen", studies=("planners",))
def ladder(rng: np.random.Generator) -> System:
    """Each rung has one action that climbs, others slide down; only the top and the ground pay."""
    S = _size(rng, 4, 16)
    A = _size(rng, 2, 4)
    climbs = np.eye(A)[rng.integers(A, size=S)]
    up = climbs * rng.uniform(0.6, 0.95)
    down = (1 - climbs) * rng.uniform(0.3, 0.9)
    score = _at(S, S - 1)
    score[0] = rng.uniform(0, 0.1)
    return System.of(_line(up, down), score, initial=_at(S, 0))


@family("chosen", studies=("planners",))
def corridor(rng: np.random.Generator) -> System:
    """A corridor with a small reward near the start and a large one at the far end."""
    S = _size(rng, 5, 20)
    A = _size(rng, 2, 10)
    drive = rng.uniform(-0.4, 0.4, size=A)
    drive[int(rng.integers(A))] = 0.45
    up = np.broadcast_to(0.45 + drive, (S, A)).copy()
    down = np.broadcast_to(0.45 - drive, (S, A)).copy()
    score = _at(S, S - 1)
    score[0] = rng.uniform(0.1, 0.3)
    return System.of(_line(up, down), score, initial=_at(S, 1))


@family("chosen", studies=("planners",))
def thermostat(rng: np.random.Generator) -> System:
    """A temperature that falls to that of the outside; heating at some level keeps it in a band."""
    S = _size(rng, 6, 40)
    A = _size(rng, 2, 8)
    heat = np.linspace(0, rng.uniform(0.6, 0.9), A)
    loss = np.linspace(0.05, rng.uniform(0.4, 0.7), S)
    up = np.clip(heat * (1 - loss[:, None]), 0.02, 0.95)
    down = np.clip(loss[:, None] * (1 - heat), 0.02, 0.95)
    middle = int(rng.integers(S // 3, S - 1))
    width = max(1, S // 8)
    band = range(max(middle - width, 0), min(middle + width, S - 1))
    return System.of(_line(up, down), _at(S, *band), initial=_at(S, 0))


@family("chosen")
def reservoir(rng: np.random.Generator) -> System:
    """A reservoir with random inflow, from which more or less is released; half full is wanted."""
    capacity = _size(rng, 6, 40)
    A = _size(rng, 3, 6)
    inflow = _binomial(max(2, capacity // 3), rng.uniform(0.2, 0.6))
    transition = np.zeros((capacity + 1, A, capacity + 1))
    for level in range(capacity + 1):
        for a in range(A):
            kept = max(level - a * max(1, capacity // (2 * A)), 0)
            for added, probability in enumerate(inflow):
                transition[level, a, min(kept + added, capacity)] += probability
    wanted = rng.uniform(0.4, 0.8) * capacity
    distance = np.abs(np.arange(capacity + 1) - round(wanted))
    return System.of(transition, 1 - distance / distance.max())


@family("chosen", studies=("planners",))
def four_rooms(rng: np.random.Generator) -> System:
    """Four rooms with doors; an episode ends in the far corner or, badly, in a room on the way."""
    n = int(rng.integers(5, 9))
    wall = n // 2
    free = np.ones((n, n))
    free[wall] = 0.0
    free[:, wall] = 0.0
    for low, high in ((0, wall), (wall + 1, n)):
        free[wall, int(rng.integers(low, high))] = 1.0
        free[int(rng.integers(low, high)), wall] = 1.0
    transition = _grid(free, slip=rng.uniform(0.05, 0.4))
    S = len(transition)
    trap = n - 2 if rng.random() < 0.5 else S - n
    return System.of(
        transition,
        _at(S, S - 1),
        initial=_at(S, 0),
        lengths=(60, 100),
        terminal=(trap, S - 1),
        coordinates=_free_cells(free),
    )


@family("chosen")
def pillars(rng: np.random.Generator) -> System:
    """A grid with pillars and without ends; few cells are wanted, starts are anywhere."""
    n = int(rng.integers(5, 9))
    free = np.ones((n, n))
    free[1::2, 1::2] = 0.0
    transition = _grid(free, slip=rng.uniform(0.05, 0.4))
    S = len(transition)
    return System.of(transition, _preferred(rng, S, share=0.06), coordinates=_free_cells(free))


@family("chosen", is_null=True, studies=("calibration",))
def null_steps(rng: np.random.Generator) -> System:
    """Actions have no effect on steps of up to two along a line, in each state by other chances."""
    S = _size(rng, 5, 60)
    A = _size(rng, 2, 6)
    chances = rng.dirichlet(np.ones(5), size=S)
    chain = np.zeros((S, S))
    for s in range(S):
        for step, chance in zip(range(-2, 3), chances[s], strict=True):
            chain[s, min(max(s + step, 0), S - 1)] += chance
    return System.of(_same_for_all_actions(chain, A), np.linspace(0, 1, S) ** 2)


@family("chosen", studies=("calibration",))
def siege(rng: np.random.Generator) -> System:
    """Two sides lose people to each other by tactics, until one of them has nobody left."""
    longest = int(rng.integers(4, 9))
    A = _size(rng, 2, 4)
    own_losses = rng.uniform(0.05, 0.4, size=A)
    other_losses = own_losses * rng.uniform(0.6, 1.4, size=A)
    size = longest + 1
    transition = np.zeros((size, size, A, size, size))
    for own, other, a in np.ndindex(size, size, A):
        # The more there are of the other side, the more are lost.
        lost = _binomial(own, own_losses[a] * (0.5 + 0.5 * other / longest))
        beaten = _binomial(other, other_losses[a] * (0.5 + 0.5 * own / longest))
        transition[own, other, a, : own + 1, : other + 1] = np.outer(lost[::-1], beaten[::-1])

    # The more people are left at the end, the better.
    S = size * size
    number = np.arange(S).reshape(size, size)
    ends = np.union1d(number[0], number[:, 0])
    score = np.zeros(S)
    score[number[:, 0]] = np.arange(size) / longest
    return System.of(
        transition.reshape(S, A, S),
        score,
        initial=_at(S, number[-1, -1]),
        lengths=(60, 100),
        terminal=tuple(ends.tolist()),
        coordinates=[*np.ndindex(size, size)],
    )


@family("chosen", studies=("calibration",))
def rounds(rng: np.random.Generator) -> System:
    """A game of some rounds, in each of which a stake is won or lost; what is left counts."""
    num_rounds = int(rng.integers(3, 9))
    most = int(rng.integers(4, 9))
    A = _size(rng, 2, 4)
    chance = rng.uniform(0.35, 0.65, size=A)
    levels = most + 1
    transition = np.zeros((num_rounds + 1, levels, A, num_rounds + 1, levels))
    for past, level, a in np.ndindex(num_rounds, levels, A):
        stake = min(a, level)
        transition[past, level, a, past + 1, min(level + stake, most)] += chance[a]
        transition[past, level, a, past + 1, level - stake] += 1 - chance[a]
    S = (num_rounds + 1) * levels
    first_end = num_rounds * levels
    score = np.zeros(S)
    score[first_end:] = np.arange(levels) / most
    return System.of(
        transition.reshape(S, A, S),
        score,
        initial=_at(S, *range(levels // 2, levels - 1)),
        lengths=(20, 40),
        terminal=tuple(range(first_end, S)),
        coordinates=[*np.ndindex(num_rounds + 1, levels)],
    )


# Families to report on.


@family("reported")
def blended(rng: np.random.Generator) -> System:
    """Each row blends three distributions that all states and actions share."""
    S = _size(rng, 4, 40)
    A = _size(rng, 2, 5)
    shared = rng.dirichlet(np.full(S, 0.5), size=3)
    shares = rng.dirichlet(np.full(3, 0.7), size=(S, A))
    return System.of(normalise(shares @ shared), _preferred(rng, S))


@family("reported", is_null=True)
def lottery(rng: np.random.Generator) -> System:
    """Actions have no effect; an episode wanders until it ends well or badly."""
    S = _size(rng, 4, 12)
    A = _size(rng, 2, 6)
    chain = rng.dirichlet(np.ones(S), size=S)
    ends = _at(S, 0, S - 1) * rng.uniform(0.05, 0.95, size=S)
    chain = 0.85 * chain + 0.15 * normalise(ends)
    return System.of(
        _same_for_all_actions(chain, A),
        _at(S, S - 1),
        lengths=(30, 60),
        terminal=(0, S - 1),
    )


@family("reported", is_null=True)
def null_walk(rng: np.random.Generator) -> System:
    """Actions have no effect on a random walk with drift along a line."""
    S = _size(rng, 5, 60)
    A = _size(rng, 2, 6)
    up = np.repeat(rng.uniform(0.1, 0.5, size=(S, 1)), A, axis=1)
    down = np.repeat(rng.uniform(0.1, 0.5, size=(S, 1)), A, axis=1)
    return System.of(_line(up, down), np.linspace(0, 1, S))


@family("reported")
def near_null_walk(rng: np.random.Generator) -> System:
    """A random walk along a line, whose drift depends on the action by a few percent."""
    S = _size(rng, 5, 40)
    A = _size(rng, 2, 6)
    up = rng.uniform(0.15, 0.45, size=(S, 1)) + rng.normal(0, 0.02, size=(S, A))
    down = np.repeat(rng.uniform(0.15, 0.45, size=(S, 1)), A, axis=1)
    return System.of(_line(np.clip(up, 0.05, 0.5), down), np.linspace(0, 1, S))


@family("reported")
def inventory(rng: np.random.Generator) -> System:
    """A store that orders up to a few items a day; a stock in the middle is wanted."""
    capacity = _size(rng, 4, 20)
    A = _size(rng, 3, 5)
    demand = _binomial(capacity, rng.uniform(0.1, 0.4))
    order_size = max(1, capacity // A)
    transition = np.zeros((capacity + 1, A, capacity + 1))
    for stock in range(capacity + 1):
        for a in range(A):
            supplied = min(stock + a * order_size, capacity)
            for sold, probability in enumerate(demand):
                transition[stock, a, max(supplied - sold, 0)] += probability
    distance = np.abs(np.arange(capacity + 1) - capacity // 2)
    return System.of(transition, 1 - distance / distance.max())


@family("reported")
def forest(rng: np.random.Generator) -> System:
    """A forest grows by age classes; it burns, is cut, or is thinned, which prevents fire."""
    S = _size(rng, 3, 12)
    fire = rng.uniform(0.05, 0.25)
    set_back = rng.uniform(0.1, 0.4)
    age = np.arange(S)
    transition = np.zeros((S, 3, S))
    older = np.minimum(age + 1, S - 1)
    younger = np.maximum(age - 1, 0)

    # Wait: older, unless it burns. Thin: half the risk, with a chance of a set-back. Cut: young.
    transition[age, 0, older] += 1 - fire
    transition[age, 0, 0] += fire
    transition[age, 1, older] += 1 - fire / 2 - set_back
    transition[age, 1, younger] += set_back
    transition[age, 1, 0] += fire / 2
    transition[age, 2, 0] += 1.0
    return System.of(transition, np.linspace(0, 1, S), initial=_at(S, 0))


@family("reported")
def epidemic(rng: np.random.Generator) -> System:
    """Susceptible and infected people under measures; it ends when nobody is infected."""
    population = int(rng.integers(5, 11))
    A = _size(rng, 2, 4)
    infection = np.sort(rng.uniform(0.05, 0.4, size=A))
    recovery = rng.uniform(0.3, 0.6)
    people = [(s, i) for s in range(population) for i in range(population + 1 - s)]
    number = {pair: index for index, pair in enumerate(people)}
    S = len(people)

    transition = np.zeros((S, A, S))
    for (susceptible, infected), here in number.items():
        recovered = _binomial(infected, recovery)
        for a in range(A):
            caught = _binomial(susceptible, 1 - (1 - infection[a]) ** infected)
            for new, p_new in enumerate(caught):
                for gone, p_gone in enumerate(recovered):
                    following = (susceptible - new, infected + new - gone)
                    transition[here, a, number[following]] += p_new * p_gone

    # The more people were spared at the end, the better.
    ends = [index for (_, infected), index in number.items() if infected == 0]
    score = np.zeros(S)
    for susceptible in range(population):
        score[number[susceptible, 0]] = susceptible / (population - 1)
    return System.of(
        transition,
        score,
        initial=_at(S, number[population - 1, 1], number[population - 2, 2]),
        lengths=(40, 80),
        terminal=tuple(ends),
        coordinates=people,
    )


@family("reported")
def river_swim(rng: np.random.Generator) -> System:
    """Swim against the current to a large reward, or drift to a small one."""
    S = _size(rng, 4, 12)
    up = np.zeros((S, 3))
    down = np.zeros((S, 3))
    down[:, 0] = 1.0  # drift
    down[:, 1] = rng.uniform(0.3, 0.6)  # float
    up[:, 2] = rng.uniform(0.3, 0.6)  # swim
    down[:, 2] = rng.uniform(0.05, 0.2)
    score = _at(S, S - 1)
    score[0] = 0.2
    return System.of(_line(up, down), score, initial=_at(S, 1))


@family("reported")
def two_rooms(rng: np.random.Generator) -> System:
    """Two rooms with a door between them, a poor exit in the first and a good one in the other."""
    n = _size(rng, 2, 4)
    free = np.ones((n, 2 * n + 1))
    free[:, n] = 0.0
    free[int(rng.integers(n)), n] = 1.0
    transition = _grid(free, slip=rng.uniform(0.05, 0.3))
    S = len(transition)
    poor_exit = n - 1
    good_exit = S - 1
    score = _at(S, good_exit)
    score[poor_exit] = 0.3
    return System.of(
        transition,
        score,
        initial=_at(S, 0),
        lengths=(50, 100),
        terminal=(poor_exit, good_exit),
        coordinates=_free_cells(free),
    )


@family("reported")
def single_lever(rng: np.random.Generator) -> System:
    """Only one of many actions has an effect, on a quantity that falls by itself."""
    S = _size(rng, 4, 20)
    A = _size(rng, 4, 8)
    up = np.full((S, A), rng.uniform(0.1, 0.3))
    down = np.full((S, A), rng.uniform(0.3, 0.5))
    lever = int(rng.integers(A))
    up[:, lever] = rng.uniform(0.4, 0.7)
    down[:, lever] = 0.2
    return System.of(_line(up, down), np.linspace(0, 1, S))


@family("reported", studies=("calibration",))
def moods(rng: np.random.Generator) -> System:
    """Customers in a hidden mood, which decides how offers work, until they buy or leave."""
    S = _size(rng, 4, 10)
    A = _size(rng, 2, 4)
    K = int(rng.integers(2, 4))
    offer = rng.normal(0, 0.06, size=(S, A))
    mood = rng.normal(0, 0.1, size=K)
    walks = []
    for k in range(K):
        up = np.clip(0.35 + mood[k] + offer, 0.05, 0.65)
        down = np.clip(0.3 - mood[k] - offer, 0.05, 0.95 - up)
        walks.append(_line(up, down))
    return System.of(
        np.stack(walks),
        _at(S, S - 1),
        lengths=(30, 60),
        terminal=(0, S - 1),
        type_weights=rng.dirichlet(np.full(K, 4.0)),
    )


@family("reported")
def ring(rng: np.random.Generator) -> System:
    """A ring on which actions step ahead or back, with noise; an arc of it is wanted."""
    S = _size(rng, 6, 100)
    steps = (-1, 1, 2)
    noise = rng.uniform(0.1, 0.4)
    transition = np.zeros((S, len(steps), S))
    position = np.arange(S)
    for a, step in enumerate(steps):
        transition[position, a, (position + step) % S] += 1 - noise
        for slip in (-1, 0, 1):
            transition[position, a, (position + slip) % S] += noise / 3
    arc = max(1, S // 5)
    return System.of(transition, _at(S, *range(arc)))


@family("reported", studies=("planners",))
def combination_lock(rng: np.random.Generator) -> System:
    """Only the right sequence of actions opens a lock; a wrong action goes back to the start."""
    S = _size(rng, 4, 12)
    A = _size(rng, 2, 6)
    right = rng.integers(A, size=S)
    slip = rng.uniform(0.0, 0.15)
    transition = np.zeros((S, A, S))
    transition[:, :, 0] = 1.0
    for s in range(S - 1):
        transition[s, right[s]] = (1 - slip) * _at(S, s + 1) + slip * _at(S, s)
    return System.of(transition, _at(S, S - 1), initial=_at(S, 0))


@family("reported", studies=("planners",))
def maze(rng: np.random.Generator) -> System:
    """A grid with random walls and traps; the cell farthest from the start is a good end."""
    n = int(rng.integers(5, 9))
    reached: dict[tuple[int, int], int] = {}
    while len(reached) < n * n / 2:
        free = (rng.random((n, n)) > rng.uniform(0.15, 0.35)).astype(np.float64)
        free[0, 0] = 1.0
        reached = _distances(free, (0, 0))
    exit_cell = max(reached, key=lambda cell: reached[cell])

    # Walls around what can be reached, traps off the way.
    free = np.zeros((n, n))
    for cell in reached:
        free[cell] = 1.0
    number = {cell: index for index, cell in enumerate(sorted(reached))}
    off_the_way = sorted(set(reached) - set(_on_path(reached, exit_cell)))
    rng.shuffle(off_the_way)
    traps = [number[cell] for cell in off_the_way[: int(rng.integers(1, 4))]]
    S = len(number)
    return System.of(
        _grid(free, slip=rng.uniform(0.05, 0.3)),
        _at(S, number[exit_cell]),
        initial=_at(S, 0),
        lengths=(60, 100),
        terminal=(*traps, number[exit_cell]),
        coordinates=_free_cells(free),
    )


@family("reported", studies=("planners",))
def warehouse(rng: np.random.Generator) -> System:
    """Aisles between shelves with gaps, without ends; a few places are wanted."""
    rows = 2 * int(rng.integers(2, 5)) - 1
    columns = int(rng.integers(5, 9))
    free = np.ones((rows, columns))
    for shelf in range(1, rows, 2):
        gaps = rng.choice(columns, int(rng.integers(1, 3)), replace=False)
        free[shelf] = 0.0
        free[shelf, gaps] = 1.0
    transition = _grid(free, slip=rng.uniform(0.05, 0.3))
    S = len(transition)
    score = _preferred(rng, S, share=0.08)
    start = _at(S, int(rng.integers(S)))
    return System.of(transition, score, initial=start, coordinates=_free_cells(free))


@family("reported", studies=("planners",))
def clinic(rng: np.random.Generator) -> System:
    """Doses cure and burden patients of some severity, until they recover or die."""
    num_severities = _size(rng, 3, 12)
    num_burdens = int(rng.integers(2, 5))
    A = _size(rng, 2, 10)
    strength = np.linspace(0, 1, A) * rng.uniform(0.7, 1.0)
    cure = rng.uniform(0.2, 0.5)
    toxicity = rng.uniform(0.3, 0.8)
    S = num_severities * num_burdens + 2
    recovered = S - 2
    dead = S - 1

    transition = np.zeros((S, A, S))
    for severity in range(num_severities):
        for burden in range(num_burdens):
            here = severity * num_burdens + burden
            strain = 0.3 * burden / (num_burdens - 1)
            improves = np.clip(0.1 + cure * strength - strain / 2, 0.02, 0.9)
            worsens = np.minimum(0.15 + strain, 0.98 - improves)
            heavier = toxicity * strength**2
            lighter = 0.4 * (1 - strength)
            for step, p_step in ((-1, improves), (1, worsens), (0, 1 - improves - worsens)):
                for load, p_load in ((1, heavier), (-1, lighter), (0, 1 - heavier - lighter)):
                    new_severity = severity + step
                    new_burden = min(max(burden + load, 0), num_burdens - 1)
                    following = new_severity * num_burdens + new_burden
                    if new_severity < 0:
                        following = recovered
                    if new_severity == num_severities:
                        following = dead
                    transition[here, :, following] += p_step * p_load
    middle = num_severities // 2 * num_burdens
    patients = [*np.ndindex(num_severities, num_burdens)]
    return System.of(
        transition,
        _at(S, recovered),
        initial=_at(S, middle),
        lengths=(40, 80),
        terminal=(recovered, dead),
        coordinates=[*patients, (-1, 0), (num_severities, 0)],
    )


@family("reported", studies=("planners",))
def two_queues(rng: np.random.Generator) -> System:
    """Two queues that share a server: each action is a way to divide its time."""
    longest = int(rng.integers(2, 7))
    A = _size(rng, 2, 6)
    share = np.linspace(0, 1, A)
    arrival = rng.uniform(0.1, 0.5, size=2)
    service = rng.uniform(0.5, 1.0, size=2)
    first = _line(
        up=np.outer(np.ones(longest + 1), arrival[0] * (1 - service[0] * share)),
        down=np.outer(np.ones(longest + 1), (1 - arrival[0]) * service[0] * share),
    )
    second = _line(
        up=np.outer(np.ones(longest + 1), arrival[1] * (1 - service[1] * (1 - share))),
        down=np.outer(np.ones(longest + 1), (1 - arrival[1]) * service[1] * (1 - share)),
    )
    S = (longest + 1) ** 2
    transition = np.einsum("sam,tan->stamn", first, second).reshape(S, A, S)
    length = np.arange(longest + 1)
    waiting = rng.uniform(0.3, 1.0) * length[:, None] + length
    return System.of(
        transition,
        1 - waiting.ravel() / waiting.max(),
        initial=_at(S, 0),
        coordinates=[*np.ndindex(longest + 1, longest + 1)],
    )


@family("reported", studies=("planners",))
def maintenance(rng: np.random.Generator) -> System:
    """Two parts wear out; one can be serviced on the run, or both while the machine is down."""
    worst = int(rng.integers(2, 7))
    levels = worst + 1
    wear = rng.uniform(0.1, 0.4, size=2)
    success = rng.uniform(0.5, 0.9)
    repaired = rng.uniform(0.3, 0.8)
    down = levels**2
    S = down + 1

    run = np.zeros((2, levels, levels))
    serviced = np.zeros((2, levels, levels))
    for part in range(2):
        for level in range(levels):
            run[part, level, min(level + 1, worst)] += wear[part]
            run[part, level, level] += 1 - wear[part]
            serviced[part, level, max(level - 2, 0)] += success
            serviced[part, level, level] += 1 - success

    # Run on; service the first part, or the second; stop and overhaul.
    transition = np.zeros((S, 4, S))
    for a, (one, two) in enumerate(
        ((run[0], run[1]), (serviced[0], run[1]), (run[0], serviced[1]))
    ):
        transition[:down, a, :down] = np.einsum("im,jn->ijmn", one, two).reshape(down, down)
    transition[:down, 3, down] = 1.0
    transition[down] = repaired * _at(S, 0) + (1 - repaired) * _at(S, down)

    worn = np.arange(levels)
    worse_part = np.maximum(worn[:, None], worn).ravel()
    score = np.append(1 - worse_part / worst, 0.0)
    parts = [*np.ndindex(levels, levels)]
    return System.of(transition, score, initial=_at(S, 0), coordinates=[*parts, (levels, levels)])


@family("reported", studies=("planners",))
def small_world(rng: np.random.Generator) -> System:
    """A network of near neighbours and a few shortcuts; each action aims at one link of a node."""
    S = _size(rng, 8, 80)
    A = _size(rng, 2, 8)
    noise = rng.uniform(0.05, 0.4)
    near = np.array([step for step in range(-A, A + 1) if step])
    transition = np.zeros((S, A, S))
    for s in range(S):
        links = (s + rng.choice(near, A, replace=False)) % S
        is_shortcut = rng.random(A) < 0.15
        links = np.where(is_shortcut, rng.integers(S, size=A), links)
        for a in range(A):
            transition[s, a, links[a]] += 1 - noise
            for link in links:
                transition[s, a, link] += noise / A
    return System.of(transition, _preferred(rng, S, share=0.1))


@family("reported", studies=("planners",))
def clustered_garnet(rng: np.random.Generator) -> System:
    """Two to six next states of each state and action, mostly in the cluster of the state."""
    S = _size(rng, 9, 100)
    A = _size(rng, 2, 10)
    branching = int(rng.integers(2, 7))
    cluster = rng.integers(max(2, S // 8), size=S)
    transition = np.zeros((S, A, S))
    for s in range(S):
        nearness = np.where(cluster == cluster[s], 1.0, rng.uniform(0.01, 0.1))
        for a in range(A):
            support = rng.choice(S, branching, replace=False, p=normalise(nearness))
            transition[s, a, support] = rng.dirichlet(np.full(branching, 0.5))
    return System.of(normalise(transition), _preferred(rng, S, share=0.15))
