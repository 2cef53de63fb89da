"""The prior of the transitions: its chains and pools, and how a log implies its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.models.prior import ENTERED, FACTORS, MOVE, Places, RowPrior, Tables
from tests.helpers.oracles import Record, counts_of, counts_of_list, log_of, random_log
from tests.helpers.posteriors import (
    batch_of,
    literal_likelihood,
    literal_prior_mean,
    table_of,
    weighted_counts,
)

S, A = 4, 3

POOLED_BEFORE = 10.0
"""Tables that pools led to beforehand."""

LED_BEFORE = np.array([1.0, 0.1, 1.0])
"""Tables that each pool led to beforehand."""

START = RowPrior(mass=np.ones(1), pull=np.full(1, 1e5), shares=LED_BEFORE[None] / 2.1)
"""Where inference starts."""


def likelihood(counts: TransitionCounts, prior: RowPrior) -> float:
    """Ln of the likelihood of a log, where the prior of each row is that of the other rows."""
    table = table_of(counts)
    numbers = (float(prior.mass[0]), float(prior.pull[0]), prior.shares[0].tolist())
    return literal_likelihood(table, literal_prior_mean(table, *numbers, True), numbers[0])


def sampled_rows(means: FloatArray, mass: float, records: int = 40) -> TransitionCounts:
    """Records of rows that are sampled around means [S, A, S]."""
    rng = np.random.default_rng(7)
    num_states, num_actions, _ = means.shape
    table = np.empty(means.shape, dtype=int)
    for s, a in np.ndindex(num_states, num_actions):
        table[s, a] = rng.multinomial(records, rng.dirichlet(mass * means[s, a] + 1e-9))
    place = np.nonzero(table)
    log_ = Transitions(*(np.repeat(index, table[place]) for index in place))
    return counts_of(log_, num_states, num_actions)


# Tables, chains and pools.


def test_a_row_has_fewer_tables_than_records_and_never_more_than_the_mass() -> None:
    """n m / (n + m), in exact fractions."""
    counts = counts_of_list([(0, 0, 1)] * 3 + [(0, 0, 2)] + [(2, 1, 2)] * 50, 3, 2)
    tables = Tables(Places(counts), np.array([2.5]))
    expected = np.zeros((3, 2))
    expected[0, 0] = Fraction(4 * 5, 13)
    expected[2, 1] = Fraction(50 * 5, 105)
    np.testing.assert_allclose(tables.of_row, expected.ravel())
    np.testing.assert_allclose(tables.of_cell, [3 * 5 / 13, 1 * 5 / 13, 50 * 5 / 105])
    assert (tables.of_row < 2.5).all()


def test_entered_states_and_moves_are_sums_of_tables() -> None:
    """Records 0 -> 1 and 1 -> 2 by action 0 are the same move; 2 -> 2 by action 1 is another."""
    counts = counts_of_list([(0, 0, 1), (1, 0, 2), (2, 1, 2)], 3, 2)
    tables = Tables(Places(counts), np.ones(1))
    np.testing.assert_allclose(tables.entered, [[0, 0.5, 1.0]])
    np.testing.assert_allclose(tables.moves, [[[0, 1.0], [0.5, 0]]])
    np.testing.assert_allclose(tables.any_move, [[0.5, 1.0]])
    assert tables.places.arrival.tolist() == [[0, 1], [1, 2], [2, 2]]


CELLS = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)]
"""A square room with a pillar in the middle."""


def room_log(moves: Sequence[tuple[tuple[int, int], tuple[int, int]]]) -> TransitionCounts:
    """Moves of one action between cells of the room, as a log of states with two fields."""
    states = Space(CELLS, ("row", "column"))
    pairs = [(CELLS.index(before), 0, CELLS.index(after)) for before, after in moves]
    return TransitionCounts.from_records(*log_of(pairs), states, Space.of_size(1))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ((0, 0), (1, 0)),
        ((2, 1), (2, 1)),  # the end of the room
        ((0, 1), (0, 1)),  # the pillar
    ],
)
def test_a_step_is_the_same_in_every_field(start: tuple[int, int], end: tuple[int, int]) -> None:
    """A step down was seen on the right side of the room."""
    places = Places(room_log([((0, 2), (1, 2))]))
    step = int(places.step[0])
    assert CELLS[places.arrival[CELLS.index(start), step]] == end


def test_a_step_stops_at_the_end_of_a_field_and_goes_on_in_the_others() -> None:
    places = Places(room_log([((0, 0), (2, 2))]))
    step = int(places.step[0])
    assert CELLS[places.arrival[CELLS.index((1, 0)), step]] == (2, 2)
    assert CELLS[places.arrival[CELLS.index((2, 0)), step]] == (2, 2)


def test_steps_of_too_many_fields_are_those_of_the_index() -> None:
    """Thirty fields of two to four values each have more displacements than can be numbered."""
    labels = [tuple([n % 4] * 30) for n in range(4)]
    states = Space(labels, tuple(f"field {number}" for number in range(30)))
    counts = TransitionCounts.from_records(*log_of([(0, 0, 1)]), states, Space.of_size(1))
    assert Places(counts).coordinates.tolist() == [[0], [1], [2], [3]]


# Inference.


def room(size: int, records: int) -> list[Record]:
    """Records of every certain move right, down, left and up in a square room with walls."""
    log_ = []
    for row, column in np.ndindex(size, size):
        for action, (down, right) in enumerate(((0, 1), (1, 0), (0, -1), (-1, 0))):
            next_row = min(max(row + down, 0), size - 1)
            next_column = min(max(column + right, 0), size - 1)
            log_ += [(row * size + column, action, next_row * size + next_column)] * records
    return log_


LOGS = {
    "weighted": weighted_counts(S, A),
    "mostly empty": weighted_counts(9, 2, 6),
    "repeated": counts_of_list([(0, 0, 1), (0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 2, 2)] * 4, S, A),
    "one record": counts_of_list([(1, 2, 0)], S, A),
    "one state": counts_of_list([(0, 0, 0)] * 3, 1, 2),
    "one action": counts_of(random_log(np.random.default_rng(0), 6, 1, 50), 6, 1),
    "equal rows": sampled_rows(np.full((6, 3, 6), 1 / 6), 200.0),
    "certain rows": sampled_rows(np.full((6, 3, 6), 1 / 6), 0.05),
    "certain moves": counts_of_list(room(4, 10), 16, 4),
}


def score(counts: TransitionCounts, prior: RowPrior) -> float:
    """Ln of what the inferred prior maximises: the likelihood with its three weak priors."""
    mass = float(prior.mass[0])
    pull = float(prior.pull[0])
    of_shares = float(LED_BEFORE @ np.log(prior.shares[0]))
    of_pull = POOLED_BEFORE * log(pull / (1 + pull))
    return likelihood(counts, prior) + log(mass / (1 + mass) ** 2) + of_shares + of_pull


@pytest.mark.parametrize("name", LOGS)
def test_inferred_prior_is_no_worse_than_the_start(name: str) -> None:
    """With and without the weak priors, by loops over rows."""
    counts = LOGS[name]
    prior = RowPrior.of(counts)
    assert score(counts, prior) >= score(counts, START) - 1e-9
    assert likelihood(counts, prior) >= likelihood(counts, START) - 1e-9


@pytest.mark.parametrize(
    "name", ["weighted", "equal rows", "certain rows", "certain moves", "one action"]
)
def test_inferred_prior_is_about_as_good_as_the_best_of_a_grid(name: str) -> None:
    """Of all numbers at once, by brute force; two nats are a Bayes factor of 7."""
    counts = LOGS[name]
    shares = [[1 / 3] * 3, [0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    shares += [[0.1, 0.1, 0.8], [0.02, 0.02, 0.96]]
    best = -np.inf
    for mass, pull, share in product(np.geomspace(0.05, 400, 10), (1.0, 10.0, 1e5), shares):
        prior = RowPrior(np.array([mass]), np.array([pull]), np.array([share]))
        best = max(best, score(counts, prior))
    assert score(counts, RowPrior.of(counts)) > best - 2


def test_rows_like_the_mean_imply_a_heavy_prior_and_certain_ones_a_light_one() -> None:
    even = [(s, a, n) for s in range(S) for a in range(A) for n in range(S)] * 5
    rng = np.random.default_rng(0)
    certain = [(s, a, int(rng.integers(12))) for s in range(12) for a in range(A)]
    heavy = float(RowPrior.of(counts_of_list(even, S, A)).mass[0])
    light = float(RowPrior.of(counts_of_list(certain * 20, 12, A)).mass[0])
    assert light < 0.2
    assert heavy > 10


@pytest.mark.parametrize("true_mass", [0.8, 4.0, 20.0])
def test_mass_that_rows_were_sampled_with_is_found(true_mass: float) -> None:
    """240 rows of 40 records: ln mass has a standard error of about 0.1."""
    prior = RowPrior.of(sampled_rows(np.full((8, 30, 8), 1 / 8), true_mass))
    assert abs(np.log(prior.mass[0] / true_mass)) < 0.5


def test_rows_sampled_around_chains_are_pulled_to_them() -> None:
    chains = np.random.default_rng(8).dirichlet(np.full(8, 0.3), 8)
    related = RowPrior.of(sampled_rows(np.repeat(chains[:, None], 5, axis=1), 10.0))
    unrelated = RowPrior.of(sampled_rows(np.full((8, 5, 8), 1 / 8), 0.5))
    assert related.pull[0] <= 3
    assert unrelated.pull[0] > related.pull[0]


def walk(order: Sequence[int], is_ring: bool) -> list[Record]:
    """Three records of a step down or up in each state of a line or ring, by action.

    States have other numbers if the order is not that of the line.
    """
    size = len(order)
    log_ = []
    for place in range(size):
        for action, step in enumerate((-1, 1)):
            target = place + step
            target = target % size if is_ring else min(max(target, 0), size - 1)
            log_ += [(order[place], action, order[target])] * 3
    return log_


@pytest.mark.parametrize("is_ring", [False, True])
def test_moves_count_where_states_are_in_order_and_not_where_they_are_shuffled(
    is_ring: bool,
) -> None:
    in_order = RowPrior.of(counts_of_list(walk(range(20), is_ring), 20, 2))
    shuffled = np.random.default_rng(1).permutation(20).tolist()
    out_of_order = RowPrior.of(counts_of_list(walk(shuffled, is_ring), 20, 2))
    assert in_order.shares[0, MOVE] > 0.7
    assert out_of_order.shares[0, MOVE] < 0.35
    assert in_order.shares[0, MOVE] > 2 * out_of_order.shares[0, MOVE]


@pytest.mark.parametrize("records", [5, 20])
def test_rows_borrow_from_where_records_lead_only_if_they_lead_to_the_same_states(
    records: int,
) -> None:
    """The same distribution in all rows, which prefers some states or none."""
    skewed = np.random.default_rng(3).dirichlet(np.full(12, 0.3))
    for distribution, low, high in ((skewed, 0.8, 1.0), (np.full(12, 1 / 12), 0.0, 0.2)):
        rows = np.broadcast_to(distribution, (12, 3, 12))
        prior = RowPrior.of(sampled_rows(rows, 1e6, records))
        assert low < prior.shares[0, ENTERED] < high


@pytest.mark.parametrize("name", [*LOGS, "empty"])
def test_numbers_are_in_their_ranges(name: str) -> None:
    empty = TransitionCounts.empty(Space.of_size(S), Space.of_size(A))
    prior = RowPrior.of({**LOGS, "empty": empty}[name])
    assert prior.mass.shape == prior.pull.shape == (1,)
    assert (prior.mass > 0).all()
    assert (prior.pull > 0).all()
    assert (prior.shares > 0).all()
    np.testing.assert_allclose(prior.shares.sum(axis=-1), 1)


def test_prior_of_a_batch_is_that_of_each_log_alone() -> None:
    """Logs of different lengths: one is empty, one is long, and one repeats a single record."""
    rng = np.random.default_rng(2)
    logs: list[list[Record]] = [
        list(zip(*(field.tolist() for field in random_log(rng, S, A, n)), strict=True))
        for n in (25, 0, 400, 3)
    ]
    logs.append([(0, 0, 0)] * 60)
    together = RowPrior.of(batch_of(logs, S, A))
    for i, log_ in enumerate(logs):
        alone = RowPrior.of(counts_of_list(log_, S, A))
        np.testing.assert_allclose(together.mass[i], alone.mass[0], rtol=1e-9)
        np.testing.assert_allclose(together.pull[i], alone.pull[0], rtol=1e-9)
        np.testing.assert_allclose(together.shares[i], alone.shares[0], rtol=1e-9)


def test_leading_axes_are_flattened() -> None:
    log_ = random_log(np.random.default_rng(2), S, A, 2, 3, 25)
    together = RowPrior.of(counts_of(log_, S, A))
    assert together.mass.shape == (6,)
    single = Transitions(*(field[1, 0] for field in log_))
    np.testing.assert_allclose(together.mass[3], RowPrior.of(counts_of(single, S, A)).mass[0])


@pytest.mark.parametrize("name", LOGS)
def test_more_rounds_are_never_worse(name: str) -> None:
    counts = LOGS[name]
    scores = [score(counts, START)]
    for rounds in (1, 2, 4, 8, 16):
        scores.append(score(counts, RowPrior.of(counts, rounds=rounds)))
    assert (np.diff(scores) > -1e-9).all()


def test_a_part_of_the_rows_is_enough() -> None:
    """A fifth of 240 rows: ln mass has a standard error of about 0.2."""
    counts = sampled_rows(np.full((8, 30, 8), 1 / 8), 4.0)
    whole = RowPrior.of(counts)
    part = RowPrior.of(counts, most_cells=len(counts.key) // 5)
    assert (part.shares != whole.shares).any()
    assert abs(np.log(part.mass[0] / whole.mass[0])) < 0.8


# Masses of single rows.


def test_rows_that_follow_their_state_have_a_larger_mass_than_rows_that_do_not() -> None:
    """Half of the actions do as their state does on average; each of the others as it likes."""
    rng = np.random.default_rng(5)
    means = rng.dirichlet(np.ones(6), size=30)
    table = np.empty((30, 12, 6), dtype=int)
    for s, a in np.ndindex(30, 12):
        row = means[s] if a < 6 else rng.dirichlet(2 * means[s])
        table[s, a] = rng.multinomial(60, row)
    place = np.nonzero(table)
    log_ = Transitions(*(np.repeat(index, table[place]) for index in place))
    counts = counts_of(log_, 30, 12)
    mass = RowPrior.of(counts).mass_of_rows(Places(counts))[0]
    assert np.median(mass[:, :6]) > 5 * np.median(mass[:, 6:])


def test_a_row_without_records_has_the_mass_of_all_rows() -> None:
    counts = weighted_counts(12, A, 15)
    places = Places(counts)
    prior = RowPrior.of(counts)
    mass = prior.mass_of_rows(places).ravel()
    is_empty = places.records == 0
    np.testing.assert_array_equal(mass[is_empty], prior.mass[0])
    assert (mass[~is_empty] != prior.mass[0]).any()


@pytest.mark.parametrize("states", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_row_whose_records_have_no_weight_has_the_mass_of_all_rows(
    states: tuple[int, int, int],
) -> None:
    """As after a long decay; in any place among the rows."""
    first, second, faded = states
    records = log_of([(first, 0, second), (second, 1, first), (faded, 1, second)])
    spaces = (Space.of_size(3), Space.of_size(2))
    counts = TransitionCounts.from_records(*records, *spaces, weight=[1.0, 1.0, 1e-310])
    counts = replace(counts, weight=np.where(counts.weight < 1e-300, 0.0, counts.weight))
    prior = RowPrior.of(counts)
    mass = prior.mass_of_rows(Places(counts))[0]
    assert mass[faded, 1] == prior.mass[0]
    assert np.isfinite(mass).all()


def test_masses_of_rows_with_very_many_records_are_exact() -> None:
    """The mass of a row lies between the smallest and the largest factor, whatever its weight."""
    records = log_of([(0, 0, 1), (1, 0, 0), (1, 0, 1), (2, 0, 0)])
    spaces = (Space.of_size(3), Space.of_size(1))
    counts = TransitionCounts.from_records(*records, *spaces, weight=[1e17, 2e17, 1e17, 5.0])
    prior = RowPrior.of(counts)
    ratio = prior.mass_of_rows(Places(counts))[0] / prior.mass[0]
    assert (ratio >= FACTORS[0]).all()
    assert (ratio <= FACTORS[-1]).all()
