"""The learners that pastwise is compared with, next to brute force on tiny systems."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

from benchmarks.peers.offline import (
    certainty_equivalence,
    estimated_behaviour,
    estimated_transition,
    fitted_q_iteration,
    posterior_sampling,
    soft_spibb,
    spibb,
)
from pastwise._numerics.arrays import FloatArray, IntArray

DISCOUNT = 0.9
SCORE = np.array([0.0, 0.3, 1.0])
ENDS = [np.array([], dtype=np.int64), np.array([2])]


def small_log(seed: int) -> FloatArray:
    """Counts of three states and two actions; some rows have no record: [3, 2, 3]."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, size=(3, 2, 3)).astype(np.float64)
    counts[rng.integers(3), rng.integers(2)] = 0.0
    return counts


def value(rule: FloatArray, counts: FloatArray, terminal: IntArray) -> FloatArray:
    """Discounted score of every state in the estimated model, summed epoch by epoch: [3]."""
    loop = np.einsum("sa,san->sn", rule, estimated_transition(counts))
    going_on = np.ones(3)
    going_on[terminal] = 0.0
    total = np.zeros(3)
    arrivals = loop
    for epoch in range(400):
        total += DISCOUNT**epoch * arrivals @ SCORE
        arrivals = (arrivals * going_on) @ loop
    return np.asarray(total)


def best_value(rules: Iterable[FloatArray], counts: FloatArray, terminal: IntArray) -> FloatArray:
    """The largest value of every state that one of the rules has: [3]."""
    return np.asarray(np.max([value(rule, counts, terminal) for rule in rules], axis=0))


def deterministic_rules() -> list[FloatArray]:
    return [np.eye(2)[list(actions)] for actions in product(range(2), repeat=3)]


@pytest.mark.parametrize("terminal", ENDS, ids=["goes on", "ends"])
@pytest.mark.parametrize("seed", range(5))
def test_certainty_equivalence_is_the_best_of_all_rules(seed: int, terminal: IntArray) -> None:
    counts = small_log(seed)
    rule = certainty_equivalence(counts, SCORE, terminal, DISCOUNT)
    best = best_value(deterministic_rules(), counts, terminal)
    np.testing.assert_allclose(value(rule, counts, terminal), best, atol=1e-7)


@pytest.mark.parametrize("terminal", ENDS, ids=["goes on", "ends"])
@pytest.mark.parametrize("seed", range(5))
def test_spibb_is_the_best_rule_that_keeps_rare_actions(seed: int, terminal: IntArray) -> None:
    counts = small_log(seed)
    records = counts.sum(axis=-1)
    behaviour = estimated_behaviour(counts)

    # All ways to put the probability that is free on one action with enough records.
    allowed = []
    for actions in product(range(2), repeat=3):
        rule = behaviour.copy()
        for state, action in enumerate(actions):
            is_trusted = records[state] >= 8
            if is_trusted[action]:
                free = behaviour[state, is_trusted].sum()
                rule[state, is_trusted] = 0.0
                rule[state, action] = free
        allowed.append(rule)

    rule = spibb(counts, SCORE, terminal, DISCOUNT, min_records=8)
    is_rare = records < 8
    np.testing.assert_allclose(rule[is_rare], behaviour[is_rare])
    best = best_value(allowed, counts, terminal)
    np.testing.assert_allclose(value(rule, counts, terminal), best, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_soft_spibb_stays_within_its_budget_and_does_not_lose(seed: int) -> None:
    counts = small_log(seed)
    terminal = ENDS[0]
    records = counts.sum(axis=-1)
    behaviour = estimated_behaviour(counts)
    rule = soft_spibb(counts, SCORE, terminal, DISCOUNT, budget=0.2)
    change = np.abs(rule - behaviour)
    spent = (change / np.sqrt(np.maximum(records, 1e-12))).sum(axis=-1)
    assert (spent <= 0.2 + 1e-9).all()
    gain = value(rule, counts, terminal) - value(behaviour, counts, terminal)
    assert gain.min() >= -1e-9


def test_soft_spibb_reaches_from_the_past_to_certainty_equivalence() -> None:
    counts = small_log(0) + 1.0
    none = soft_spibb(counts, SCORE, ENDS[0], DISCOUNT, budget=0.0)
    plenty = soft_spibb(counts, SCORE, ENDS[0], DISCOUNT, budget=100.0)
    np.testing.assert_allclose(none, estimated_behaviour(counts))
    best = certainty_equivalence(counts, SCORE, ENDS[0], DISCOUNT)
    np.testing.assert_allclose(plenty, best, atol=1e-9)


def test_posterior_sampling_takes_an_action_as_often_as_it_is_the_better_one() -> None:
    # One decision, which ends well or badly; with a prior of 3 records the posteriors of the
    # share of success among the two ends are Beta distributions, after marginalising the start.
    counts = np.zeros((3, 2, 3))
    counts[0, 0] = [0, 2, 1]
    counts[0, 1] = [0, 0, 4]
    rng = np.random.default_rng(0)
    score = np.array([0.0, 1.0, 0.0])
    ends = np.array([1, 2])
    rules = [posterior_sampling(counts, score, ends, 0.0, rng, 3.0) for _ in range(4000)]
    share = np.mean(rules, axis=0)[0, 0]

    # The probability of success has the marginal Beta(1 + successes, 2 + other records).
    first = beta(1 + 2, 2 + 1)
    second = beta(1 + 0, 2 + 4)
    exact = quad(lambda x: first.pdf(x) * second.cdf(x), 0, 1)[0]
    assert share == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4000))


def test_fitted_q_iteration_with_all_rows_seen_is_certainty_equivalence() -> None:
    pytest.importorskip("sklearn")
    counts = small_log(1) + 1.0
    rule = fitted_q_iteration(counts, SCORE, ENDS[0], DISCOUNT, np.random.default_rng(0))
    np.testing.assert_allclose(rule, certainty_equivalence(counts, SCORE, ENDS[0], DISCOUNT))


def test_fitted_q_iteration_takes_an_unseen_row_from_its_neighbours() -> None:
    pytest.importorskip("sklearn")
    # On a line of nine states the second action goes up; in the middle it was never seen.
    counts = np.zeros((9, 2, 9))
    for state in range(9):
        counts[state, 0, max(state - 1, 0)] = 5
        counts[state, 1, min(state + 1, 8)] = 5
    counts[4, 1] = 0
    rule = fitted_q_iteration(
        counts, np.linspace(0, 1, 9), ENDS[0], DISCOUNT, np.random.default_rng(0)
    )
    assert rule[4, 1] == 1.0
