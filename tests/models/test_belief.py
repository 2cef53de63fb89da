"""The posterior of the transitions: mass of the prior, mean and variance of the next state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, lgamma, log

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import dirichlet_multinomial

from pastwise import Space, TransitionCounts
from pastwise._numerics.arrays import FloatArray
from pastwise.data.records import Transitions
from pastwise.models.belief import Belief, DenseBelief, SparseBelief, belief_from
from pastwise.models.prior import DENSE_STATES, inferred_mass, prior_log_likelihood, prior_masses
from tests.helpers.oracles import (
    Record,
    counts_of,
    counts_of_list,
    log_of,
    random_log,
    random_rows,
    records,
)

S, A = 4, 3
MASS = np.array([0.5, 2.0, 7.25])


def table_of(counts: TransitionCounts) -> FloatArray:
    """Weights as a dense tensor [S, A, S], record by record."""
    table = np.zeros((len(counts.states), len(counts.actions), len(counts.states)))
    for s, a, n, w in zip(
        counts.state, counts.action, counts.next_state, counts.weight, strict=True
    ):
        table[s, a, n] += w
    return table


def weighted_counts(num_states: int, number: int = 60, seed: int = 3) -> TransitionCounts:
    """A log whose weights are not integers; many states and few records, so that most rows are empty."""
    rng = np.random.default_rng(seed)
    log = random_log(rng, num_states, A, number)
    spaces = Space.of_size(num_states), Space.of_size(A)
    return TransitionCounts.from_records(*log, *spaces, weight=rng.uniform(0.1, 3.0, number))


def literal_likelihood(table: FloatArray, base: FloatArray, mass: float) -> float:
    """Ln of the Dirichlet-multinomial probability of all rows, in a fixed order of the records; by `math.lgamma`."""
    total = 0.0
    for row, prior in zip(
        table.reshape(-1, table.shape[-1]), base.reshape(-1, base.shape[-1]), strict=True
    ):
        total += lgamma(mass) - lgamma(mass + row.sum())
        total += sum(
            lgamma(mass * b + n) - lgamma(mass * b)
            for n, b in zip(row, prior, strict=True)
            if n > 0
        )
    return total


def literal_mass(table: FloatArray, base: FloatArray) -> float:
    """Geometric mean of the grid, weighted by likelihood."""
    num_states = table.shape[-1]
    most = min(30.0, 2.0 * num_states)
    grid = [0.05 * (most / 0.05) ** (k / 24) for k in range(25)]
    likelihood = [literal_likelihood(table, base, mass) for mass in grid]
    weight = [exp(value - max(likelihood)) for value in likelihood]
    return exp(sum(w * log(m) for w, m in zip(weight, grid, strict=True)) / sum(weight))


def literal_moments(concentration: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of values [S, A, S] under the normalised rows, the variance around the mean."""
    rows = concentration / concentration.sum(axis=-1, keepdims=True)
    mean = (rows * values).sum(axis=-1)
    return mean, (rows * (values - mean[..., None]) ** 2).sum(axis=-1)


def dense_concentration(counts: TransitionCounts) -> FloatArray:
    table = table_of(counts)
    num_states = table.shape[-1]
    uniform = np.full(table.shape, 1 / num_states)
    return table + literal_mass(table, uniform) * uniform


def sparse_concentration(counts: TransitionCounts) -> FloatArray:
    """Counts + mass * (records of the state + where the log went) / (n + 1); the mass without a row's own records."""
    table = table_of(counts)
    entered = (table.sum(axis=(0, 1)) + 1) / (table.sum() + table.shape[-1])
    of_state = table.sum(axis=1, keepdims=True)
    others = of_state - table
    without_own = (others + entered) / (others.sum(axis=-1, keepdims=True) + 1)
    base = (of_state + entered) / (of_state.sum(axis=-1, keepdims=True) + 1)
    return np.asarray(table + literal_mass(table, without_own) * base)


# The likelihood of a prior


@given(records(S, A))
def test_likelihood_is_the_product_of_predictive_probabilities_record_by_record(
    log_: list[Record],
) -> None:
    """In exact fractions; the log is its records in any order."""
    counts = counts_of_list(log_, S, A)
    base = {
        (s, a, n): Fraction(1 + s + a + n, 20) for s in range(S) for a in range(A) for n in range(S)
    }
    keys = list(
        zip(counts.state.tolist(), counts.action.tolist(), counts.next_state.tolist(), strict=True)
    )
    ours = prior_log_likelihood(counts, MASS, np.array([float(base[key]) for key in keys]))
    for mass, value in zip(MASS, ours, strict=True):
        m, probability = Fraction(float(mass)), Fraction(1)
        seen: dict[tuple[int, ...], int] = {}
        for s, a, n in log_:
            pair, triple = (s, a), (s, a, n)
            probability *= (m * base[triple] + seen.get(triple, 0)) / (m + seen.get(pair, 0))
            seen[pair], seen[triple] = seen.get(pair, 0) + 1, seen.get(triple, 0) + 1
        assert value == pytest.approx(log(probability), rel=1e-10, abs=1e-10)


def test_likelihood_is_that_of_scipy_but_for_the_order_of_the_records() -> None:
    counts = counts_of(random_log(np.random.default_rng(0), S, A, 80), S, A)
    prior = random_rows(np.random.default_rng(1), S, A, S)
    ours = prior_log_likelihood(counts, MASS, prior[counts.state, counts.action, counts.next_state])
    for mass, value in zip(MASS, ours, strict=True):
        theirs = 0.0
        for row, base in zip(
            table_of(counts).reshape(-1, S).astype(int), prior.reshape(-1, S), strict=True
        ):
            orders = lgamma(row.sum() + 1) - sum(lgamma(n + 1) for n in row)
            theirs += float(dirichlet_multinomial.logpmf(row, mass * base, row.sum())) - orders
        assert value == pytest.approx(theirs, rel=1e-10)


def test_likelihood_takes_weights_that_are_not_integers() -> None:
    counts, prior = weighted_counts(S), random_rows(np.random.default_rng(1), S, A, S)
    ours = prior_log_likelihood(counts, MASS, prior[counts.state, counts.action, counts.next_state])
    theirs = [literal_likelihood(table_of(counts), prior, mass) for mass in MASS]
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
    likelihood = prior_log_likelihood(
        together, MASS, base[together.state, together.action, together.next_state]
    )
    mass = inferred_mass(together, np.full(len(together.key), 1 / S))
    assert likelihood.shape == (2, 3, len(MASS))
    assert mass.shape == (2, 3)
    for i in np.ndindex(2, 3):
        alone = counts_of(Transitions(*(field[i] for field in log_)), S, A)
        own = base[alone.state, alone.action, alone.next_state]
        np.testing.assert_allclose(
            likelihood[i], prior_log_likelihood(alone, MASS, own), rtol=1e-12
        )
        np.testing.assert_allclose(
            mass[i], inferred_mass(alone, np.full(len(alone.key), 1 / S)), rtol=1e-12
        )


# The mass of the prior


@pytest.mark.parametrize(
    ("num_states", "most"), [(1, 2.0), (3, 6.0), (15, 30.0), (16, 30.0), (1000, 30.0)]
)
def test_masses_grow_by_a_constant_factor_up_to_two_records_a_state_or_thirty(
    num_states: int, most: float
) -> None:
    mass = prior_masses(num_states, largest=30.0)
    assert (mass[0], mass[-1]) == (pytest.approx(0.05), pytest.approx(most))
    np.testing.assert_allclose(mass[1:] / mass[:-1], (most / 0.05) ** (1 / 24))


@pytest.mark.parametrize("number", [0, 1, 7, 200])
def test_mass_is_the_mean_over_the_grid_by_likelihood(number: int) -> None:
    counts = weighted_counts(S, number)
    uniform = np.full((S, A, S), 1 / S)
    expected = literal_mass(table_of(counts), uniform)
    assert inferred_mass(counts, np.full(len(counts.key), 1 / S)) == pytest.approx(
        expected, rel=1e-9
    )


def test_rows_like_the_base_ask_for_a_heavy_prior_and_certain_ones_for_a_light_one() -> None:
    even = [(s, a, n) for s in range(S) for a in range(A) for n in range(S)] * 5
    certain = [(s, a, (s + a) % S) for s in range(S) for a in range(A)] * 20
    heavy, nothing, light = (
        float(inferred_mass(counts, np.full(len(counts.key), 1 / S)))
        for counts in (counts_of_list(log_, S, A) for log_ in (even, [], certain))
    )
    assert light < 0.1 < nothing < 5 < heavy <= 2 * S


@pytest.mark.parametrize("true_mass", [0.8, 4.0])
def test_mass_that_rows_were_sampled_with_is_found(true_mass: float) -> None:
    """240 rows of 40 records: ln mass has a standard error below 0.11, an error above 0.5 a probability < 1e-4."""
    rng, (states, actions) = np.random.default_rng(7), (8, 30)
    rows = rng.dirichlet(np.full(states, true_mass / states), states * actions)
    drawn = np.stack([rng.multinomial(40, row) for row in rows]).reshape(states, actions, states)
    where = np.nonzero(drawn)
    log_ = Transitions(*(np.repeat(index, drawn[where]) for index in where))
    counts = counts_of(log_, states, actions)
    assert (
        abs(np.log(inferred_mass(counts, np.full(len(counts.key), 1 / states)) / true_mass)) < 0.5
    )


# Moments

KINDS: dict[
    str, tuple[Callable[[TransitionCounts], Belief], Callable[[TransitionCounts], FloatArray]]
] = {
    "dense": (DenseBelief, dense_concentration),
    "sparse": (SparseBelief, sparse_concentration),
}

LOGS = {
    "weighted": weighted_counts(6, 60),
    "sparse": weighted_counts(12, 15),
    "empty": TransitionCounts.empty(Space.of_size(5), Space.of_size(A)),
    "one state, one action": counts_of_list([(0, 0, 0)] * 3, 1, 1),
    "one state, nothing seen": counts_of_list([], 1, 2),
    "one record": counts_of_list([(1, 2, 0)], 3, 3, 0.3),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """How a belief is stored."""
    return str(request.param)


@pytest.fixture(params=LOGS)
def counts(request: pytest.FixtureRequest) -> TransitionCounts:
    """A log without leading axes."""
    return LOGS[request.param]


def belief_and_truth(kind: str, counts: TransitionCounts) -> tuple[Belief, FloatArray]:
    make, concentration = KINDS[kind]
    return make(counts), concentration(counts)


def check(belief: Belief, concentration: FloatArray) -> None:
    """Weight and moments, for values of every shape that is allowed."""
    num_states, num_actions, _ = concentration.shape
    rng = np.random.default_rng(11)
    np.testing.assert_allclose(belief.weight, concentration.sum(axis=-1), rtol=1e-9)
    values = np.asarray(rng.normal(size=num_states))
    for ours, theirs in zip(
        belief.moments(values), literal_moments(concentration, values[None, None]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)
    for lines in {1, num_states}:
        for columns in {1, num_actions}:
            table = rng.normal(size=(lines, columns, num_states))
            expected = literal_moments(concentration, table)
            for ours, theirs in zip(belief.moments_each(table), expected, strict=True):
                assert ours.shape == (num_states, num_actions)
                np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def test_moments_are_those_of_a_dense_tensor(kind: str, counts: TransitionCounts) -> None:
    check(*belief_and_truth(kind, counts))


def test_equal_values_have_no_variance(kind: str, counts: TransitionCounts) -> None:
    belief, _ = belief_and_truth(kind, counts)
    mean, variance = belief.moments(np.full(len(counts.states), 0.7))
    np.testing.assert_allclose(mean, 0.7)
    assert (variance >= 0).all()
    np.testing.assert_allclose(variance, 0, atol=1e-14)


def added(counts: TransitionCounts, log_: Sequence[Record]) -> TransitionCounts:
    return counts + TransitionCounts.from_records(*log_of(log_), counts.states, counts.actions)


NEW: list[Record] = [(5, 0, 3), (0, 2, 0), (0, 2, 0), (2, 1, 5)]


def test_sparse_belief_after_new_records_is_that_of_the_longer_log() -> None:
    """Whether or not it was asked in between; the prior is weighed anew."""
    counts = LOGS["weighted"]
    asked, not_asked = SparseBelief(counts), SparseBelief(counts)
    for number, (s, a, n) in enumerate(NEW, 1):
        for belief in (asked, not_asked):
            belief.observe(np.array(s), np.array(a), np.array(n))
        check(asked, sparse_concentration(added(counts, NEW[:number])))
    check(not_asked, sparse_concentration(added(counts, NEW)))
    np.testing.assert_array_equal(asked.weight, not_asked.weight)


@pytest.mark.parametrize("question", ["weight", "moments", "moments_each"])
def test_any_first_use_of_a_sparse_belief_counts_new_records(question: str) -> None:
    counts = LOGS["weighted"]
    belief = SparseBelief(counts)
    for s, a, n in NEW:
        belief.observe(np.array(s), np.array(a), np.array(n))
    concentration, values = sparse_concentration(added(counts, NEW)), np.arange(6.0)
    if question == "weight":
        np.testing.assert_allclose(belief.weight, concentration.sum(axis=-1))
        return
    ours = (
        belief.moments(values) if question == "moments" else belief.moments_each(values[None, None])
    )
    np.testing.assert_allclose(ours, literal_moments(concentration, values[None, None]), rtol=1e-8)


def test_dense_belief_after_new_records_has_them_added_to_its_concentrations() -> None:
    counts = LOGS["weighted"]
    belief, concentration = DenseBelief(counts), dense_concentration(counts)
    for s, a, n in NEW:
        belief.observe(np.array(s), np.array(a), np.array(n))
        concentration[s, a, n] += 1
        check(belief, concentration)


def test_beliefs_that_start_on_the_same_log_are_independent(kind: str) -> None:
    counts = LOGS["weighted"]
    make, concentration = KINDS[kind]
    one, other = make(counts), make(counts)
    for s, a, n in NEW:
        one.observe(np.array(s), np.array(a), np.array(n))
    check(other, concentration(counts))


def test_dense_belief_of_a_batch_is_that_of_each_log_alone() -> None:
    """Two leading axes, before and after each log got a record of its own; values of each system."""
    rng = np.random.default_rng(4)
    log_, new = random_log(rng, S, A, 2, 3, 20), random_log(rng, S, A, 2, 3)
    together = DenseBelief(counts_of(log_, S, A))
    values, table = rng.normal(size=(2, 3, S)), rng.normal(size=(S, A, S))
    for observed in (False, True):
        if observed:
            together.observe(*new)
        moments, each = together.moments(values), together.moments_each(table)
        for i in np.ndindex(2, 3):
            alone = DenseBelief(counts_of(Transitions(*(field[i] for field in log_)), S, A))
            if observed:
                alone.observe(*(field[i] for field in new))
            np.testing.assert_allclose(together.weight[i], alone.weight, rtol=1e-12)
            expected = (*alone.moments(values[i]), *alone.moments_each(table))
            for ours, theirs in zip((*moments, *each), expected, strict=True):
                np.testing.assert_allclose(ours[i], theirs, rtol=1e-10, atol=1e-13)


def test_untried_action_of_a_large_system_has_the_mean_of_what_followed_the_state() -> None:
    """100 records of state 0 all led to state 1: so will the other action, most likely; in a small system who knows."""
    counts = counts_of_list([(0, 0, 1)] * 100, 40, 2)
    value = np.eye(40)[1]
    sparse, _ = SparseBelief(counts).moments(value)
    dense, _ = DenseBelief(counts).moments(value)
    assert sparse[0, 1] > 0.98
    assert dense[0, 1] == pytest.approx(1 / 40)


def test_large_systems_are_sparse_and_small_ones_and_batches_dense() -> None:
    spaces = [(Space.of_size(n), Space.of_size(2)) for n in (DENSE_STATES, DENSE_STATES + 1)]
    assert isinstance(belief_from(TransitionCounts.empty(*spaces[0])), DenseBelief)
    assert isinstance(belief_from(TransitionCounts.empty(*spaces[1])), SparseBelief)
    assert isinstance(belief_from(TransitionCounts.empty(*spaces[1], (2,))), DenseBelief)


def test_large_system_needs_no_tensor() -> None:
    """20,000 states: a tensor would take 6.4 GB. A row without records has the state's own past as its mean."""
    log_ = random_log(np.random.default_rng(5), 20_000, 2, 30_000)
    belief = belief_from(counts_of(log_, 20_000, 2))
    mean, variance = belief.moments(np.linspace(0, 1, 20_000))
    assert mean.shape == variance.shape == (20_000, 2)
    assert ((mean > 0) & (mean < 1)).all()
