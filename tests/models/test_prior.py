"""The prior of the transitions: its chains and pools, and how a log implies its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.models.prior import MOVE, Places, RowPrior, Tables, staying
from tests.helpers.oracles import Record, counts_of, counts_of_list, random_log
from tests.helpers.posteriors import (
    batch_of,
    literal_likelihood,
    literal_prior_mean,
    table_of,
    weighted_counts,
)

S, A = 4, 3

START = RowPrior(mass=np.ones(1), pull=np.full(1, 1e5), shares=np.full((1, 3), 1 / 3))
"""Where inference starts."""

POOLED_BEFORE = 10.0
"""Tables that pools led to beforehand."""


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
    moves = np.zeros((1, 2, 5))
    moves[0, 0, 3] = 1.0
    moves[0, 1, 2] = 0.5
    np.testing.assert_allclose(tables.moves, moves)
    np.testing.assert_allclose(staying(tables.moves), [[[0, 0], [0, 0], [1, 0]]])


# Inference.

LOGS = {
    "weighted": weighted_counts(S, A),
    "mostly empty": weighted_counts(9, 2, 6),
    "repeated": counts_of_list([(0, 0, 1), (0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 2, 2)] * 4, S, A),
    "one record": counts_of_list([(1, 2, 0)], S, A),
    "one state": counts_of_list([(0, 0, 0)] * 3, 1, 2),
    "one action": counts_of(random_log(np.random.default_rng(0), 6, 1, 50), 6, 1),
    "equal rows": sampled_rows(np.full((6, 3, 6), 1 / 6), 200.0),
    "certain rows": sampled_rows(np.full((6, 3, 6), 1 / 6), 0.05),
}


def score(counts: TransitionCounts, prior: RowPrior) -> float:
    """Ln of what the inferred prior maximises: the likelihood with its three weak priors."""
    mass = float(prior.mass[0])
    pull = float(prior.pull[0])
    of_shares = float(np.log(prior.shares[0]).sum())
    of_pull = POOLED_BEFORE * log(pull / (1 + pull))
    return likelihood(counts, prior) + log(mass / (1 + mass) ** 2) + of_shares + of_pull


@pytest.mark.parametrize("name", LOGS)
def test_inferred_prior_is_no_worse_than_the_start(name: str) -> None:
    """With and without the weak priors, by loops over rows."""
    counts = LOGS[name]
    prior = RowPrior.of(counts)
    assert score(counts, prior) >= score(counts, START) - 1e-9
    assert likelihood(counts, prior) >= likelihood(counts, START) - 1e-9


@pytest.mark.parametrize("name", ["weighted", "equal rows", "certain rows", "one action"])
def test_inferred_prior_is_about_as_good_as_the_best_of_a_grid(name: str) -> None:
    """Of all numbers at once, by brute force; two nats are a Bayes factor of 7."""
    counts = LOGS[name]
    shares = ([1 / 3] * 3, [0.6, 0.3, 0.1], [0.3, 0.6, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1])
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
