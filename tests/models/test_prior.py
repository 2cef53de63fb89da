"""The prior of the transitions: its likelihood, its mass, its base measure."""

from __future__ import annotations

from collections.abc import Callable
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
from pastwise.models.prior import (
    BaseMeasure,
    inferred_mass,
    prior_log_likelihood,
    prior_masses,
    same_state_base,
    uniform_base,
)
from tests.helpers.oracles import (
    Record,
    counts_of,
    counts_of_list,
    random_log,
    random_rows,
    records,
)
from tests.helpers.posteriors import literal_likelihood, literal_mass, table_of, weighted_counts

S, A = 4, 3
MASS = np.array([0.5, 2.0, 7.25])


def of_transition(table: FloatArray, counts: TransitionCounts) -> FloatArray:
    """Entries of a table [S, A, S] at the distinct transitions of a log."""
    return np.asarray(table[counts.state, counts.action, counts.next_state])


def uniform_mass(counts: TransitionCounts) -> FloatArray:
    """The inferred mass of a uniform prior."""
    return inferred_mass(counts, uniform_base(counts).of_transition)


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


def test_likelihood_of_an_empty_log_is_one_for_any_prior() -> None:
    empty = TransitionCounts.empty(Space.of_size(S), Space.of_size(A))
    np.testing.assert_allclose(prior_log_likelihood(empty, MASS, np.empty(0)), 0, atol=1e-12)


def test_likelihood_and_mass_of_a_batch_are_those_of_each_log_alone() -> None:
    """Two leading axes; one of the logs repeats a single record, so that they differ widely."""
    log_ = random_log(np.random.default_rng(2), S, A, 2, 3, 25)
    for field in log_:
        field[1, 1] = 0
    together = counts_of(log_, S, A)
    base = random_rows(np.random.default_rng(1), S, A, S)
    likelihood = prior_log_likelihood(together, MASS, of_transition(base, together))
    mass = uniform_mass(together)
    assert likelihood.shape == (2, 3, len(MASS))
    assert mass.shape == (2, 3)
    for i in np.ndindex(2, 3):
        alone = counts_of(Transitions(*(field[i] for field in log_)), S, A)
        expected = prior_log_likelihood(alone, MASS, of_transition(base, alone))
        np.testing.assert_allclose(likelihood[i], expected, rtol=1e-12)
        np.testing.assert_allclose(mass[i], uniform_mass(alone), rtol=1e-12)


# Mass


@pytest.mark.parametrize(
    ("num_states", "end"), [(1, 2.0), (3, 6.0), (15, 30.0), (16, 30.0), (1000, 30.0)]
)
def test_masses_grow_by_a_constant_factor_up_to_two_records_a_state_or_the_largest(
    num_states: int, end: float
) -> None:
    mass = prior_masses(num_states, largest=30.0)
    assert mass[0] == pytest.approx(0.05)
    assert mass[-1] == pytest.approx(end)
    np.testing.assert_allclose(mass[1:] / mass[:-1], (end / 0.05) ** (1 / 24))


@pytest.mark.parametrize("number", [0, 1, 7, 200])
def test_mass_is_the_mean_over_the_grid_by_likelihood(number: int) -> None:
    counts = weighted_counts(S, A, number)
    expected = literal_mass(table_of(counts), np.full((S, A, S), 1 / S))
    assert uniform_mass(counts) == pytest.approx(expected, rel=1e-9)


def test_the_largest_mass_is_an_argument() -> None:
    counts = weighted_counts(40, A, 300)
    base = uniform_base(counts)
    table = np.full((40, A, 40), 1 / 40)
    for largest in (10.0, 50.0):
        mass = inferred_mass(counts, base.of_transition, largest_mass=largest)
        expected = literal_mass(table_of(counts), table, largest)
        assert mass == pytest.approx(expected, rel=1e-9)


def test_rows_like_the_base_imply_a_heavy_prior_and_certain_ones_a_light_one() -> None:
    even = [(s, a, n) for s in range(S) for a in range(A) for n in range(S)] * 5
    certain = [(s, a, (s + a) % S) for s in range(S) for a in range(A)] * 20
    heavy = float(uniform_mass(counts_of_list(even, S, A)))
    unknown = float(uniform_mass(counts_of_list([], S, A)))
    light = float(uniform_mass(counts_of_list(certain, S, A)))
    assert light < 0.1 < unknown < 5 < heavy <= 2 * S


@pytest.mark.parametrize("true_mass", [0.8, 4.0])
def test_mass_that_rows_were_sampled_with_is_found(true_mass: float) -> None:
    """240 rows of 40 records: ln mass has a standard error below 0.11.

    An error above 0.5 has a probability < 1e-4.
    """
    rng = np.random.default_rng(7)
    states = 8
    actions = 30
    rows = rng.dirichlet(np.full(states, true_mass / states), states * actions)
    table = np.stack([rng.multinomial(40, row) for row in rows]).reshape(states, actions, states)
    place = np.nonzero(table)
    log_ = Transitions(*(np.repeat(index, table[place]) for index in place))
    mass = uniform_mass(counts_of(log_, states, actions))
    assert abs(np.log(mass / true_mass)) < 0.5


# Base measure

BASES: dict[str, Callable[[TransitionCounts], BaseMeasure]] = {
    "uniform": uniform_base,
    "same state": same_state_base,
}


@pytest.fixture(params=BASES)
def base(request: pytest.FixtureRequest) -> BaseMeasure:
    """Each base measure of a log with weights."""
    return BASES[request.param](weighted_counts(6, A))


def test_base_measures_are_distributions(base: BaseMeasure) -> None:
    assert base.table.shape == (base.num_lines, 6)
    np.testing.assert_allclose(base.table.sum(axis=-1), 1)


def test_means_of_a_base_measure_are_those_of_its_table(base: BaseMeasure) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, 2))
    np.testing.assert_allclose(base.mean(values), base.table @ values, rtol=1e-10)
    for lines in (1, 6):
        for columns in (1, A):
            each = rng.normal(size=(lines, columns, 6))
            expected = np.einsum("sn,san->sa", np.broadcast_to(base.table, (6, 6)), each)
            found = np.broadcast_to(base.mean_each(each, A), (6, A))
            np.testing.assert_allclose(found, np.broadcast_to(expected, (6, A)), rtol=1e-10)


def test_likelihood_of_a_row_uses_the_records_of_the_states_other_actions() -> None:
    """State 0 went to 1 twice by action 0 and once to 2 by action 1."""
    counts = counts_of_list([(0, 0, 1), (0, 0, 1), (0, 1, 2)], 3, 2)
    base = same_state_base(counts)
    entered = np.array([1, 3, 2]) / 6
    np.testing.assert_allclose(base.common, entered)
    expected = [(0 + entered[1]) / (1 + 1), (0 + entered[2]) / (2 + 1)]
    np.testing.assert_allclose(base.of_transition, expected)
    np.testing.assert_allclose(base.table[0], (np.array([0, 2, 1]) + entered) / 4)
    np.testing.assert_allclose(base.table[1], entered)
