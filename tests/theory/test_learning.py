"""The posterior of the closed loop, and the decision rule learned from it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.goals.ideal import IdealModel
from pastwise.models.learned import LearnedModel
from pastwise.theory.learning import (
    concentration,
    default_prior_count,
    gather_evidence,
    learned_rule,
    log_density,
    predictive,
    prior_concentration,
    transition_weight,
    updated_concentration,
)
from pastwise.theory.similarity import Similarity, normalised_similarity, plain_similarity
from tests.helpers.oracles import (
    Record,
    counts_of,
    counts_of_list,
    joint,
    log_of,
    random_ideal,
    random_log,
    random_rows,
    records,
    renamed,
    seeds,
    sizes,
)

S = 3
A = 2
LOG = [(0, 0, 1), (0, 0, 1), (0, 1, 0), (1, 1, 2), (1, 0, 0), (0, 1, 0), (1, 1, 2), (0, 0, 2)]
MASK = [[True, True], [False, True], [True, True]]


def rule_from(
    log: list[Record],
    ideal: IdealModel,
    weight: list[float] | float = 1.0,
    similarity: Similarity | None = None,
) -> FloatArray:
    """The learned rule [S, A] of a log, by the library."""
    counts = counts_of_list(log, ideal.num_states, ideal.num_actions, weight)
    evidence = gather_evidence(counts, ideal, similarity or normalised_similarity)
    return learned_rule(evidence, prior_concentration(ideal))


# The learned rule, Eq. (10)


@pytest.mark.parametrize("normalised", [True, False])
def test_learned_rule_in_exact_fractions(normalised: bool) -> None:
    """From the raw list of records, in fractions; nu_0 is the least ideal probability over S.

    Paper: Eq. (10) [eq:estimated_dec_rule].
    """
    wanted = [Fraction(5, 8), Fraction(1, 4), Fraction(1, 8)]
    wanted_rule = [
        [Fraction(1, 4), Fraction(3, 4)],
        [Fraction(1, 2), Fraction(1, 2)],
        [Fraction(2, 3), Fraction(1, 3)],
    ]
    table = {
        (s, a, n): wanted[n] * wanted_rule[s][a]
        for s in range(S)
        for a in range(A)
        for n in range(S)
    }
    peak = max(table.values()) if normalised else 1
    nu = min(table.values()) / S
    omega = [table[record] / peak for record in LOG]

    def formula(action: int, state: int) -> Fraction:
        mine = sum(w for w, (s, a, _) in zip(omega, LOG, strict=True) if (a, s) == (action, state))
        all_of_state = sum(w for w, (s, _, _) in zip(omega, LOG, strict=True) if s == state)
        return (mine + S * nu) / (all_of_state + S * A * nu)

    ideal = IdealModel.of(
        [float(p) for p in wanted], [[float(p) for p in row] for row in wanted_rule]
    )
    found = rule_from(
        LOG, ideal, similarity=normalised_similarity if normalised else plain_similarity
    )
    expected = [[float(formula(a, s)) for a in range(A)] for s in range(S)]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert formula(0, 2) == Fraction(1, 2), "state 2 was never seen: the prior answers"


def test_records_may_weigh_by_themselves() -> None:
    """Two equally similar records of state 0, one three times as heavy, and nu_0 = 1/4."""
    ideal = IdealModel.of([0.5, 0.5], num_actions=2)
    counts = counts_of_list([(0, 0, 1), (0, 1, 0)], 2, 2, [1.0, 3.0])
    evidence = gather_evidence(counts, ideal)
    np.testing.assert_allclose(evidence, [[1, 3], [0, 0]])
    rule = learned_rule(evidence, prior_concentration(ideal, 0.25))
    np.testing.assert_allclose(rule, [[1.5 / 5, 3.5 / 5], [0.5, 0.5]])


@given(records(S, A), seeds)
def test_learned_rule_is_a_distribution(log: list[Record], seed: int) -> None:
    rule = rule_from(log, random_ideal(np.random.default_rng(seed), S, A))
    assert (rule > 0).all()
    np.testing.assert_allclose(rule.sum(axis=-1), 1, rtol=1e-14)


@given(records(S, A), seeds, st.randoms(use_true_random=False))
def test_order_of_the_log_does_not_matter(log: list[Record], seed: int, random: Any) -> None:
    ideal = random_ideal(np.random.default_rng(seed), S, A)
    shuffled = random.sample(log, len(log))
    np.testing.assert_array_equal(rule_from(log, ideal), rule_from(shuffled, ideal))


@given(records(S, A).filter(bool), seeds)
def test_record_given_twice_is_a_record_of_weight_two(log: list[Record], seed: int) -> None:
    ideal = random_ideal(np.random.default_rng(seed), S, A)
    twice = rule_from([*log, log[0]], ideal)
    heavy = rule_from(log, ideal, [2.0] + [1.0] * (len(log) - 1))
    np.testing.assert_allclose(twice, heavy, rtol=1e-14)


@given(records(S, A), seeds, st.permutations(range(S)), st.permutations(range(A)))
def test_new_names_of_states_and_actions_only_rename_the_rule(
    log: list[Record], seed: int, state: list[int], action: list[int]
) -> None:
    """States s are renamed state[s], actions a are renamed action[a]."""
    rng = np.random.default_rng(seed)
    wanted = random_rows(rng, S, A, S)
    wanted_rule = random_rows(rng, S, A)
    rule = rule_from(log, IdealModel.of(wanted, wanted_rule))
    new_ideal = IdealModel.of(
        renamed(wanted, state, action, state), renamed(wanted_rule, state, action)
    )
    new_log = [(state[s], action[a], state[n]) for s, a, n in log]
    np.testing.assert_allclose(
        rule_from(new_log, new_ideal), renamed(rule, state, action), rtol=1e-12
    )


def test_forbidden_action_gets_exactly_nothing_and_the_others_keep_their_weight() -> None:
    """The mask does not enter the similarity, so the odds of the other actions stay the same."""
    wanted = [0.2, 0.3, 0.5]
    wanted_rule = [0.7, 0.3]
    free = rule_from(LOG, IdealModel.of(wanted, wanted_rule))
    masked = rule_from(LOG, IdealModel.of(wanted, wanted_rule, allowed=MASK))
    np.testing.assert_array_equal(masked, [free[0], [0.0, 1.0], free[2]])


def test_weight_of_each_distinct_transition() -> None:
    counts = counts_of_list(LOG, S, A)
    ideal = IdealModel.of([0.5, 0.3, 0.2], [0.6, 0.4], allowed=MASK)
    table = joint(np.array([[[0.5, 0.3, 0.2]]]), np.array([[0.6, 0.4]]))[0] / 0.3
    expected = [
        LOG.count((s, a, n)) * table[a, n] * MASK[s][a]
        for s, a, n in zip(counts.state, counts.action, counts.next_state, strict=True)
    ]
    np.testing.assert_allclose(transition_weight(counts, ideal), expected)


@given(seeds, sizes, sizes)
def test_much_data_leads_to_behaviour_weighted_by_expected_similarity(
    seed: int, S: int, A: int
) -> None:
    """The counts are those expected of 1e9 records, so only the prior's error remains."""
    rng = np.random.default_rng(seed)
    transition = random_rows(rng, S, A, S)
    behaviour = random_rows(rng, S, A)
    visited = random_rows(rng, S)
    wanted = random_rows(rng, S, A, S)
    wanted_rule = random_rows(rng, S, A)
    ideal = IdealModel.of(wanted, wanted_rule)
    spaces = (Space.of_size(S), Space.of_size(A))
    expected_count = 1e9 * visited[:, None, None] * joint(transition, behaviour)
    s, a, n = np.nonzero(expected_count)
    counts = TransitionCounts.from_records(s, a, n, *spaces, weight=expected_count[s, a, n])

    preferred = behaviour * (transition * joint(wanted, wanted_rule)).sum(axis=-1)
    limit = preferred / preferred.sum(axis=-1, keepdims=True)
    evidence = gather_evidence(counts, ideal)
    prior = prior_concentration(ideal)
    bound = A * prior.max() / evidence.sum(axis=-1, keepdims=True)
    assert (np.abs(learned_rule(evidence, prior) - limit) <= bound + 1e-12).all()
    assert bound.max() < 1e-3, "the bound says something"


# Leading axes


@pytest.mark.parametrize("allowed", [None, MASK])
def test_batch_of_logs_is_each_log_alone(allowed: list[list[bool]] | None) -> None:
    rng = np.random.default_rng(0)
    log = random_log(rng, S, A, 2, 3, 20)
    ideal = IdealModel.of(random_rows(rng, S), random_rows(rng, S, A), allowed=allowed)
    prior = prior_concentration(ideal)
    together = learned_rule(gather_evidence(counts_of(log, S, A), ideal), prior)
    for run in np.ndindex(2, 3):
        counts = counts_of(Transitions(*(field[run] for field in log)), S, A)
        np.testing.assert_allclose(
            together[run], learned_rule(gather_evidence(counts, ideal), prior), rtol=1e-14
        )


def test_evidence_for_several_goals_is_that_for_each_alone() -> None:
    rng = np.random.default_rng(1)
    wanted = random_rows(rng, 4, 1, 1, S)
    rule = random_rows(rng, S, A)
    counts = counts_of_list(LOG, S, A)
    together = gather_evidence(counts, IdealModel.of(wanted, rule))
    alone = [gather_evidence(counts, IdealModel.of(goal, rule)) for goal in wanted]
    np.testing.assert_allclose(together, alone)


@pytest.mark.parametrize(
    ("num_states", "num_actions"), [(S + 1, A), (S - 1, A), (S, A + 1), (S, A - 1)]
)
def test_goal_over_other_states_or_actions_than_those_of_the_log_is_refused(
    num_states: int, num_actions: int
) -> None:
    ideal = random_ideal(np.random.default_rng(2), num_states, num_actions)
    with pytest.raises(ValueError, match=r"states|actions"):
        gather_evidence(counts_of_list([(0, 0, 0)], S, A), ideal)


# Prior


def test_default_prior_count_is_the_least_ideal_probability_over_the_number_of_states() -> None:
    """Paper: the choice of nu_0 in Section IV."""
    assert default_prior_count(IdealModel.of([0.5, 0.3, 0.2], [0.9, 0.1])) == pytest.approx(
        0.2 * 0.1 / 3
    )
    transition = [[[0.5, 0.5], [0.9, 0.1]], [[0.5, 0.5], [0.5, 0.5]]]
    mixed = IdealModel.of(transition, [[0.3, 0.7], [0.9, 0.1]])
    assert default_prior_count(mixed) == pytest.approx(min(0.1 * 0.7, 0.5 * 0.1) / 2)


def test_zeros_of_the_ideal_do_not_make_the_prior_vanish() -> None:
    assert default_prior_count(IdealModel.of([0.8, 0.2, 0.0], [0.0, 1.0])) == pytest.approx(0.2 / 3)


def test_default_prior_of_a_reward_weighs_a_hundredth_of_a_perfect_record() -> None:
    """At any scale of the reward; `reward_prior` sets another weight."""
    for temperature in (1e-3, 1.0, 1e3):
        ideal = IdealModel.from_reward(np.arange(12.0).reshape(2, 3, 2), temperature)
        assert default_prior_count(ideal) == pytest.approx(0.01 / 6)
        assert default_prior_count(ideal, reward_prior=0.5) == pytest.approx(0.5 / 6)
        np.testing.assert_allclose(prior_concentration(ideal), [[0.01 / 3] * 3])


@pytest.mark.parametrize("shape", [(), (S,), (1, 1), (A, S), (S, 1, 1), (S, A, 1), (S, A, S)])
def test_prior_counts_are_summed_over_next_states(shape: tuple[int, ...]) -> None:
    """Paper: Eq. (7) [eq:dirichlet_prior], in the sums of Eq. (10) [eq:estimated_dec_rule]."""
    nu = np.random.default_rng(3).uniform(0.1, 1, shape)
    expected = np.broadcast_to(nu, (S, A, S)).sum(axis=-1)
    free = IdealModel.of([0.5, 0.3, 0.2], num_actions=A)
    masked = IdealModel.of([0.5, 0.3, 0.2], num_actions=A, allowed=MASK)
    np.testing.assert_allclose(np.broadcast_to(prior_concentration(free, nu), (S, A)), expected)
    np.testing.assert_allclose(prior_concentration(masked, nu), np.where(MASK, expected, 0))


@pytest.mark.parametrize("nu", [0.0, -1.0, np.nan, np.inf, [0.1, 0.1, 0.0]])
def test_bad_prior_count_is_refused(nu: float | list[float]) -> None:
    with pytest.raises(ValueError, match="prior counts must be positive"):
        prior_concentration(IdealModel.of([0.5, 0.3, 0.2], num_actions=A), nu)


# The posterior, Eqs. (5) to (9)


@given(records(S, A), seeds)
def test_recursion_record_by_record_is_the_closed_form(log: list[Record], seed: int) -> None:
    """Paper: Eq. (8) [eq:posterior] and the recursion below it."""
    rng = np.random.default_rng(seed)
    ideal = random_ideal(rng, S, A)
    nu = rng.uniform(0.1, 1, (S, A, S))
    V = nu
    for s, a, n in log:
        omega = float(normalised_similarity(ideal, s, a, n))
        V = updated_concentration(V, np.array(s), np.array(a), np.array(n), omega)
    counts = counts_of_list(log, S, A)
    np.testing.assert_allclose(
        V, concentration(counts, transition_weight(counts, ideal), nu), rtol=1e-13
    )


def test_recursion_leaves_the_previous_concentration_alone() -> None:
    before = np.ones((S, A, S))
    updated_concentration(before, np.array(0), np.array(1), np.array(2), 0.5)
    np.testing.assert_array_equal(before, 1)


@given(records(S, A), seeds)
def test_posterior_is_the_prior_times_the_weighted_likelihood(log: list[Record], seed: int) -> None:
    """Their logarithms differ by the normaliser alone, which does not depend on theta.

    Paper: Eq. (6) [eq:weighted_bayes], Eq. (7) [eq:dirichlet_prior], Eq. (8) [eq:posterior].
    """
    rng = np.random.default_rng(seed)
    nu = rng.uniform(0.5, 3, (S, A, S))
    omega = rng.uniform(0, 1, len(log)).tolist()
    counts = counts_of_list(log, S, A, omega) if log else counts_of_list([], S, A)
    V = concentration(counts, counts.weight, nu)
    thetas = random_rows(rng, 5, S, A * S).reshape(5, S, A, S)
    normalisers = [
        log_density(theta, V)
        - log_density(theta, nu)
        - sum(w * np.log(theta[record]) for w, record in zip(omega, log, strict=True))
        for theta in thetas
    ]
    np.testing.assert_allclose(normalisers, normalisers[0], rtol=1e-10, atol=1e-10)


def test_density_of_two_outcomes_is_that_of_the_beta_distribution() -> None:
    """Two actions: Beta(2, 3) at 1/4 is 12 * (1/4) * (3/4)^2 = 27/16; it integrates to one.

    Paper: Eq. (7) [eq:dirichlet_prior].
    """

    def density(x: float) -> float:
        return float(np.exp(log_density(np.array([[[x], [1 - x]]]), np.array([[[2.0], [3.0]]]))))

    assert density(0.25) == pytest.approx(27 / 16)
    assert quad(density, 0, 1)[0] == pytest.approx(1)


def test_density_of_a_batch_is_each_density_alone() -> None:
    rng = np.random.default_rng(4)
    V = rng.uniform(0.5, 3, (5, S, A, S))
    theta = random_rows(rng, 5, S, A * S).reshape(5, S, A, S)
    alone = [log_density(theta[i], V[i]) for i in range(5)]
    np.testing.assert_allclose(log_density(theta, V), alone)


def test_predictive_solves_the_integrals_of_bayes_rule() -> None:
    """One state, two actions: theta is a number, and both integrals are taken by quadrature.

    Paper: Eq. (5) [eq:closed-loop_beh_data] and Eq. (9) [eq:estimated_opt_dec_rule_theory] with
    the posterior of Eq. (6) [eq:weighted_bayes].
    """
    log = [(0, 0, 0), (0, 1, 0), (0, 0, 0)]
    omega = [0.7, 0.4, 0.25]
    nu = [1.5, 2.0]

    def unnormalised(theta: float) -> float:
        """Prior times the records' likelihoods, each to the power of its weight."""
        prior = theta ** (nu[0] - 1) * (1 - theta) ** (nu[1] - 1)
        factors = [
            (theta if a == 0 else 1 - theta) ** w for w, (_, a, _) in zip(omega, log, strict=True)
        ]
        return float(prior * np.prod(factors))

    mean = quad(lambda theta: theta * unnormalised(theta), 0, 1)[0] / quad(unnormalised, 0, 1)[0]
    counts = counts_of_list(log, 1, 2, omega)
    V = concentration(counts, counts.weight, np.array(nu)[:, None])
    np.testing.assert_allclose(predictive(V)[0, :, 0], [mean, 1 - mean], rtol=1e-9)


@given(records(S, A), seeds)
def test_predictive_is_a_closed_loop_whose_rule_is_the_learned_one(
    log: list[Record], seed: int
) -> None:
    """Summed over next states it is the learned rule.

    Paper: Eq. (5) [eq:closed-loop_beh_data], Eq. (9) [eq:estimated_opt_dec_rule_theory] and
    Eq. (10) [eq:estimated_dec_rule].
    """
    rng = np.random.default_rng(seed)
    ideal = random_ideal(rng, S, A)
    nu = rng.uniform(0.1, 1, (S, A, S))
    counts = counts_of_list(log, S, A)
    loop = predictive(concentration(counts, transition_weight(counts, ideal), nu))
    rule = learned_rule(gather_evidence(counts, ideal), prior_concentration(ideal, nu))
    np.testing.assert_allclose(loop.sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(loop.sum(axis=2), rule, rtol=1e-13)


def test_predictive_is_the_mean_of_samples_from_the_posterior() -> None:
    """Monte Carlo over theta.

    By Hoeffding's inequality and the union over the 18 + 6 means, a correct predictive fails with
    probability below 1e-9; the seed is fixed.

    Paper: Eq. (5) [eq:closed-loop_beh_data] and Eq. (9) [eq:estimated_opt_dec_rule_theory].
    """
    rng = np.random.default_rng(5)
    num_samples = 200_000
    counts = counts_of_list(LOG, S, A)
    weight = transition_weight(counts, random_ideal(rng, S, A))
    V = concentration(counts, weight, 0.3)
    theta = np.stack([rng.dirichlet(V[s].ravel(), num_samples) for s in range(S)], axis=1).reshape(
        num_samples, S, A, S
    )
    tolerance = np.sqrt(np.log(2 * 24 / 1e-9) / (2 * num_samples))
    np.testing.assert_allclose(theta.mean(axis=0), predictive(V), rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        theta.sum(axis=-1).mean(axis=0), predictive(V).sum(axis=-1), rtol=0, atol=tolerance
    )
    assert tolerance < 0.01


def test_unweighted_predictive_holds_the_learned_transition_model() -> None:
    """Given the action, the predictive of plain counts is the model that FPD_learn learns."""
    counts = counts_of(log_of(LOG), S, A)
    loop = predictive(concentration(counts, counts.weight, 0.3))
    model = LearnedModel(counts, 0.3)
    rows = [[model.row(np.array(s), np.array(a)) for a in range(A)] for s in range(S)]
    np.testing.assert_allclose(loop / loop.sum(axis=-1, keepdims=True), rows)


def test_prior_that_is_no_prior_is_refused_and_located() -> None:
    ideal = IdealModel.of([0.5, 0.5], num_actions=2)
    table = np.ones((2, 2, 2))
    table[1, 0, 1] = -1.0
    with pytest.raises(ValueError, match=r"prior_count\[1, 0, 1\] is -1.0"):
        prior_concentration(ideal, table)
    with pytest.raises(ValueError, match=r"prior_count of shape \(3, 2, 2\) does not fit"):
        prior_concentration(ideal, np.ones((3, 2, 2)))


def test_goal_too_extreme_for_a_default_prior_is_refused() -> None:
    ideal = IdealModel.of([1 - 1e-300, 1e-300], rule=[1 - 1e-30, 1e-30])
    with pytest.raises(ValueError, match="give prior_count"):
        default_prior_count(ideal)
