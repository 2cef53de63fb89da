"""Families of systems with known truth, on which statements from logs are checked.

A family samples systems of one kind: from a random generator to a ``System``, of a size that varies
within the family. Two groups are kept apart. Constants of the library may be chosen on families of
the group *chosen*; published tables are of the group *reported*, which nothing is tuned on. Both
have systems in which actions have no effect, or hardly any; systems whose episodes end and
others that go on; and episodes with a hidden type.

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
    """

    name: str
    group: Group
    build: Build
    is_null: bool

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


def family(group: Group, *, is_null: bool = False) -> Callable[[Build], Build]:
    """Enter a function into `FAMILIES`, under its name with spaces."""

    def enter(build: Build) -> Build:
        name = build.__name__.replace("_", " ")
        FAMILIES[name] = Family(name, group, build, is_null)
        return build

    return enter


def of_group(group: str) -> tuple[str, ...]:
    """Names of the families of a group."""
    return tuple(name for name, entry in FAMILIES.items() if entry.group == group)


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
    cells = [(int(row), int(column)) for row, column in np.argwhere(free)]
    number = {cell: index for index, cell in enumerate(cells)}
    S = len(cells)
    transition = np.zeros((S, len(MOVES), S))
    for cell, s in number.items():
        for direction, (down, right) in enumerate(MOVES):
            arrived = number.get((cell[0] + down, cell[1] + right), s)
            probability = np.full(len(MOVES), slip / 3)
            probability[direction] = 1.0 - slip
            transition[s, :, arrived] += probability
    return transition


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
    )


@family("chosen")
def open_gridworld(rng: np.random.Generator) -> System:
    """A square grid without ends; some cells are wanted, starts are anywhere."""
    n = _size(rng, 3, 10)
    return System.of(_grid(np.ones((n, n)), slip=rng.uniform(0.1, 0.4)), _preferred(rng, n * n))


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


@family("chosen")
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


@family("reported")
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
