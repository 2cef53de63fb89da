"""The prior of the transitions: its likelihood, its mass, its chains."""

from __future__ import annotations

from fractions import Fraction
from math import lgamma, log

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import dirichlet_multinomial

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.models.prior import Chains, RowPrior, prior_log_likelihood, prior_masses
from tests.helpers.oracles import (
    Record,
    counts_of,
    counts_of_list,
    random_log,
    random_rows,
    records,
)
from tests.helpers.posteriors import LiteralPrior, literal_likelihood, table_of, weighted_counts

S, A = 4, 3
MASS = np.array([0.5, 2.0, 7.25])


def of_transition(table: FloatArray, counts: TransitionCounts) -> FloatArray:
    """Entries of a table [S, A, S] at the distinct transitions of a log."""
    return np.asarray(table[counts.state, counts.action, counts.next_state])


# Likelihood


@given(records(S, A))
def test_likelihood_is_the_product_of_predictive_probabilities_record_by_record(
    log_: list[Record],
) -> None:
    """In exact fractions; the records may come in any order."""
    counts = counts_of_list(log_, S, A)
    base = {}
    for s, a, n in np.ndindex(S, A, S):
        base[s, a, n] = Fraction(1 + s + a + n, 20)
    table = np.array([float(p) for p in base.values()]).reshape(S, A, S)
    ours = prior_log_likelihood(counts, MASS, of_transition(table, counts))
    for mass, value in zip(MASS, ours, strict=True):
        m = Fraction(float(mass))
        probability = Fraction(1)
        seen: dict[tuple[int, ...], int] = {}
        for s, a, n in log_:
            of_pair = seen.get((s, a), 0)
            of_record = seen.get((s, a, n), 0)
            probability *= (m * base[s, a, n] + of_record) / (m + of_pair)
            seen[s, a] = of_pair + 1
            seen[s, a, n] = of_record + 1
        assert value == pytest.approx(log(probability), rel=1e-10, abs=1e-10)


def test_likelihood_is_that_of_scipy_but_for_the_order_of_the_records() -> None:
    counts = counts_of(random_log(np.random.default_rng(0), S, A, 80), S, A)
    base = random_rows(np.random.default_rng(1), S, A, S)
    ours = prior_log_likelihood(counts, MASS, of_transition(base, counts))
    table = table_of(counts).astype(int)
    for mass, value in zip(MASS, ours, strict=True):
        theirs = 0.0
        for s, a in np.ndindex(S, A):
            row = table[s, a]
            orders = lgamma(row.sum() + 1) - sum(lgamma(n + 1) for n in row)
            in_any_order = dirichlet_multinomial.logpmf(row, mass * base[s, a], row.sum())
            theirs += float(in_any_order) - orders
        assert value == pytest.approx(theirs, rel=1e-10)


def test_likelihood_takes_weights_that_are_not_integers() -> None:
    counts = weighted_counts(S, A)
    base = random_rows(np.random.default_rng(1), S, A, S)
    ours = prior_log_likelihood(counts, MASS, of_transition(base, counts))
    theirs = [literal_likelihood(table_of(counts), base, mass) for mass in MASS]
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_likelihood_of_a_common_probability_is_that_of_a_uniform_table() -> None:
    counts = weighted_counts(S, A) + counts_of_list([(0, 0, 1), (2, 1, 3)], S, A)
    uniform = np.full(len(counts.weight), 1 / S)
    ours = prior_log_likelihood(counts, MASS, 1 / S)
    np.testing.assert_allclose(ours, prior_log_likelihood(counts, MASS, uniform), rtol=1e-12)


def test_likelihood_of_an_empty_log_is_one_for_any_prior() -> None:
    empty = TransitionCounts.empty(Space.of_size(S), Space.of_size(A))
    np.testing.assert_allclose(prior_log_likelihood(empty, MASS, np.empty(0)), 0, atol=1e-12)


def test_likelihood_and_prior_of_a_batch_are_those_of_each_log_alone() -> None:
    """Two leading axes; one of the logs repeats a single record, so that they differ widely."""
    log_ = random_log(np.random.default_rng(2), S, A, 2, 3, 25)
    for field in log_:
        field[1, 1] = 0
    together = counts_of(log_, S, A)
    base = random_rows(np.random.default_rng(1), S, A, S)
    likelihood = prior_log_likelihood(together, MASS, of_transition(base, together))
    prior = RowPrior.of(together)
    assert likelihood.shape == (2, 3, len(MASS))
    assert prior.mass.shape == prior.related.shape == (2, 3)
    for i in np.ndindex(2, 3):
        alone = counts_of(Transitions(*(field[i] for field in log_)), S, A)
        expected = prior_log_likelihood(alone, MASS, of_transition(base, alone))
        np.testing.assert_allclose(likelihood[i], expected, rtol=1e-12)
        prior_alone = RowPrior.of(alone)
        np.testing.assert_allclose(prior.mass[i], prior_alone.mass, rtol=1e-12)
        np.testing.assert_allclose(prior.related[i], prior_alone.related, rtol=1e-10)
        np.testing.assert_allclose(prior.table()[i], prior_alone.table(), rtol=1e-10)


# Mass


@pytest.mark.parametrize(
    ("num_states", "end"), [(1, 2.0), (3, 6.0), (15, 30.0), (16, 30.0), (1000, 30.0)]
)
def test_masses_grow_by_a_constant_factor_up_to_two_records_a_state_or_the_largest(
    num_states: int, end: float
) -> None:
    mass = prior_masses(num_states, smallest=0.05)
    assert mass[0] == pytest.approx(0.05)
    assert mass[-1] == pytest.approx(end)
    np.testing.assert_allclose(mass[1:] / mass[:-1], (end / 0.05) ** (1 / 12))


LOGS = {
    "weighted": weighted_counts(S, A),
    "mostly empty": weighted_counts(9, 2, 6),
    "repeated": counts_of_list([(0, 0, 1), (0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 2, 2)] * 4, S, A),
    "empty": counts_of_list([], S, A),
    "one state": counts_of_list([(0, 0, 0)] * 3, 1, 2),
}


@pytest.mark.parametrize("name", LOGS)
def test_prior_is_that_of_loops_over_rows_hypotheses_and_masses(name: str) -> None:
    counts = LOGS[name]
    ours = RowPrior.of(counts)
    theirs = LiteralPrior.of(table_of(counts))
    assert float(ours.mass) == pytest.approx(theirs.mass, rel=1e-9)
    assert float(ours.related) == pytest.approx(theirs.related, rel=1e-9)
    np.testing.assert_allclose(ours.table(), theirs.mean, rtol=1e-9)


def test_rows_like_the_mean_imply_a_heavy_prior_and_certain_ones_a_light_one() -> None:
    even = [(s, a, n) for s in range(S) for a in range(A) for n in range(S)] * 5
    certain = [(s, a, (s + a) % S) for s in range(S) for a in range(A)] * 20
    heavy = float(RowPrior.of(counts_of_list(even, S, A)).mass)
    unknown = float(RowPrior.of(counts_of_list([], S, A)).mass)
    light = float(RowPrior.of(counts_of_list(certain, S, A)).mass)
    assert light < 0.2 < unknown < 5 < heavy <= 2 * S


@pytest.mark.parametrize("true_mass", [0.8, 4.0])
def test_mass_that_rows_were_sampled_with_is_found(true_mass: float) -> None:
    """240 rows of 40 records: ln mass has a standard error below 0.11.

    An error above 0.5 has a probability < 1e-4.
    """
    prior = RowPrior.of(sampled_rows(np.full((8, 8), 1 / 8), true_mass, 30))
    assert abs(np.log(prior.mass / true_mass)) < 0.5
    assert prior.related < 0.01


def test_rows_sampled_around_chains_are_found_to_be_related() -> None:
    chains = np.random.default_rng(8).dirichlet(np.full(8, 0.5), 8)
    prior = RowPrior.of(sampled_rows(chains, 10.0, 5))
    assert prior.related > 0.99


def sampled_rows(chains: FloatArray, mass: float, num_actions: int) -> TransitionCounts:
    """40 records of each of some rows that are sampled around chains [S, S]."""
    rng = np.random.default_rng(7)
    num_states = len(chains)
    table = np.empty((num_states, num_actions, num_states), dtype=int)
    for s, a in np.ndindex(num_states, num_actions):
        table[s, a] = rng.multinomial(40, rng.dirichlet(mass * chains[s] + 1e-9))
    place = np.nonzero(table)
    log_ = Transitions(*(np.repeat(index, table[place]) for index in place))
    return counts_of(log_, num_states, num_actions)


# Chains


def test_chain_of_a_row_has_the_records_of_the_states_other_actions() -> None:
    """State 0 went to 1 twice by action 0 and once to 2 by action 1."""
    counts = counts_of_list([(0, 0, 1), (0, 0, 1), (0, 1, 2)], 3, 2)
    chains = Chains.of(counts, pull=2.0)
    base = chains.base[0]
    expected = [2 * base[0, 1] / (1 + 2), 2 * base[0, 2] / (2 + 2)]
    np.testing.assert_allclose(chains.without_own_row(counts), expected)
    np.testing.assert_allclose(chains.table()[0], (np.array([0, 2, 1]) + 2 * base[0]) / 5)
    np.testing.assert_allclose(chains.table()[1], base[1])


@pytest.mark.parametrize("neighbourhoods_up_to", [0, 150])
def test_chains_are_distributions_with_the_means_of_their_table(neighbourhoods_up_to: int) -> None:
    chains = Chains.of(weighted_counts(6, A), neighbourhoods_up_to=neighbourhoods_up_to)
    table = chains.table()
    np.testing.assert_allclose(table.sum(axis=-1), 1)
    assert (table > 0).all()
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 2))
    np.testing.assert_allclose(chains.mean(values), table @ values, rtol=1e-10)
    for lines in (1, 6):
        each = rng.normal(size=(lines, 6))
        expected = (table * each).sum(axis=-1)
        np.testing.assert_allclose(chains.mean_of_table(each), expected, rtol=1e-10)


def test_common_base_of_a_large_system_is_half_where_records_lead() -> None:
    counts = counts_of_list([(0, 0, 1), (0, 1, 1), (2, 1, 0)], 3, 2)
    base = Chains.of(counts, neighbourhoods_up_to=2).base
    np.testing.assert_allclose(base, [[(np.array([1, 2, 0]) + 1 / 3) / 4 / 2 + 1 / 6]])
