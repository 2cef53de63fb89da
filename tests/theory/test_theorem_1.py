"""The compiled designs equal Theorem 1 as it is written in plain NumPy.

`theorem_1` itself is compared with sums over all trajectories, with fifty digits, and with a
numerical minimiser.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax

from pastwise._numerics.arrays import FloatArray
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.models.sparse import SparseModel
from pastwise.theory.fpd import design, divergence, first_rule, theorem_1
from tests.helpers import oracles
from tests.helpers.oracles import (
    counts_of,
    log_chain,
    random_log,
    random_rows,
    seeds,
    sizes,
    trajectories,
)

H = 4
A = 3


def sparse_rows(rng: np.random.Generator, S: int, A: int) -> FloatArray:
    """A transition tensor in which each decision may lead to a few states only."""
    tensor = random_rows(rng, S, A, S)
    tensor[rng.random(tensor.shape) < 0.6] = 0.0
    tensor[np.arange(S), :, np.arange(S)] += 0.1
    return np.asarray(tensor / tensor.sum(axis=-1, keepdims=True))


def tensor_of(model: TransitionModel) -> FloatArray:
    """The transition tensor [S, A, S] of a model of one system."""
    tensor = np.empty((model.num_states, model.num_actions, model.num_states))
    for s in range(model.num_states):
        for a in range(model.num_actions):
            tensor[s, a] = model.row(np.array(s), np.array(a))
    return tensor


def tables(ideal: IdealModel) -> tuple[FloatArray, FloatArray]:
    """The ideal's factors as `theorem_1` takes them, with zeros for forbidden actions."""
    return ideal.transition, np.where(ideal.allowed, ideal.rule, 0.0)


# Every way to store a model. Dense ones are multiplied by BLAS from 32 states on.


def dense(rng: np.random.Generator) -> TransitionModel:
    return DenseModel(sparse_rows(rng, 5, A))


def large_dense(rng: np.random.Generator) -> TransitionModel:
    return DenseModel(sparse_rows(rng, 40, A))


def sparse(rng: np.random.Generator) -> TransitionModel:
    return SparseModel(csr_array(sparse_rows(rng, 20, A).reshape(20 * A, 20)), A)


def learned(rng: np.random.Generator) -> TransitionModel:
    return LearnedModel(counts_of(random_log(rng, 12, A, 80), 12, A), background=0.01)


def learned_with_ends(rng: np.random.Generator) -> TransitionModel:
    counts = counts_of(random_log(rng, 12, A, 80), 12, A).ending_in(np.array([3, 7]))
    return LearnedModel(counts, background=0.01)


EVERY_MODEL = [dense, large_dense, sparse, learned, learned_with_ends]
WITH_ZEROS = [dense, large_dense, sparse]
"""A learned model gives every next state some probability: zeros of next states are refused."""

MakeModel = Callable[[np.random.Generator], TransitionModel]
MakeIdeal = Callable[[np.random.Generator, int], IdealModel]


# Every kind of ideal.


def over_next_states(rng: np.random.Generator, S: int) -> IdealModel:
    return IdealModel.of(random_rows(rng, S), num_actions=A)


def over_everything(rng: np.random.Generator, S: int) -> IdealModel:
    return IdealModel.of(random_rows(rng, S, A, S), random_rows(rng, S, A))


def with_forbidden_actions(rng: np.random.Generator, S: int) -> IdealModel:
    allowed = rng.random((S, A)) < 0.5
    allowed[np.arange(S), rng.integers(A, size=S)] = True
    return IdealModel.of(random_rows(rng, S), random_rows(rng, S, A), allowed=allowed)


def with_zeros_in_the_rule(rng: np.random.Generator, S: int) -> IdealModel:
    rule = random_rows(rng, S, A)
    rule[::2] = np.eye(A)[rng.integers(A, size=len(rule[::2]))]
    return IdealModel.of(random_rows(rng, S), rule)


def from_reward(rng: np.random.Generator, S: int) -> IdealModel:
    return IdealModel.from_reward(rng.normal(size=(S, A, S)), temperature=0.5)


def with_forbidden_states(rng: np.random.Generator, S: int) -> IdealModel:
    wanted = random_rows(rng, S)
    wanted[rng.integers(S)] = 0.0
    return IdealModel.of(wanted / wanted.sum(), num_actions=A)


def with_zeros_everywhere(rng: np.random.Generator, S: int) -> IdealModel:
    wanted = random_rows(rng, S, A, S)
    wanted[rng.random(wanted.shape) < 0.15] = 0.0
    return IdealModel.of(wanted / wanted.sum(axis=-1, keepdims=True), random_rows(rng, S, A))


POSITIVE_IDEALS = [
    over_next_states,
    over_everything,
    with_forbidden_actions,
    with_zeros_in_the_rule,
    from_reward,
]


def assert_equals_theorem_1(model: TransitionModel, ideal: IdealModel) -> FloatArray:
    """The design, and the first rule alone, are those of the specification; its ln gamma."""
    policy, log_gamma = theorem_1(tensor_of(model), *tables(ideal), H)
    plan = design(model, ideal, H)
    np.testing.assert_array_equal(plan.policy > 0, policy > 0)
    np.testing.assert_allclose(plan.policy, policy, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(plan.log_gamma, log_gamma, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(first_rule(model, ideal, H), policy[0], rtol=1e-10, atol=1e-300)
    return log_gamma


@pytest.mark.parametrize("make_ideal", POSITIVE_IDEALS)
@pytest.mark.parametrize("make_model", EVERY_MODEL)
def test_design_equals_theorem_1(make_model: MakeModel, make_ideal: MakeIdeal) -> None:
    """Paper: Theorem 1 [th:solution_FPD]."""
    rng = np.random.default_rng(0)
    model = make_model(rng)
    log_gamma = assert_equals_theorem_1(model, make_ideal(rng, model.num_states))
    assert np.isfinite(log_gamma).all()


@pytest.mark.parametrize("make_ideal", [with_forbidden_states, with_zeros_everywhere])
@pytest.mark.parametrize("make_model", WITH_ZEROS)
def test_design_equals_theorem_1_where_the_goal_forbids(
    make_model: MakeModel, make_ideal: MakeIdeal
) -> None:
    """Zeros of the model meet zeros of the ideal: 0 * (-inf) = 0, and some states are infeasible.

    Paper: Theorem 1 [th:solution_FPD].
    """
    seen = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = make_model(rng)
        log_gamma = assert_equals_theorem_1(model, make_ideal(rng, model.num_states))
        seen |= set(np.isfinite(log_gamma[:-1]).ravel().tolist())
    assert seen == {True, False}, "both feasible and infeasible states occur"


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("make_model", EVERY_MODEL)
def test_time_dependent_rules_equal_theorem_1(make_model: MakeModel, masked: bool) -> None:
    """Paper: Theorem 1 [th:solution_FPD], with an ideal rule for each epoch."""
    rng = np.random.default_rng(1)
    model = make_model(rng)
    make_ideal = with_forbidden_actions if masked else over_everything
    ideal = make_ideal(rng, model.num_states)
    rules = random_rows(rng, H, model.num_states, A)
    plan = design(model, ideal, H, rules=rules)
    policy, log_gamma = theorem_1(
        tensor_of(model), ideal.transition, np.where(ideal.allowed, rules, 0.0), H
    )
    np.testing.assert_allclose(plan.policy, policy, rtol=1e-10)
    np.testing.assert_allclose(plan.log_gamma, log_gamma, rtol=1e-12)


@pytest.mark.parametrize("S", [3, 33])
def test_batch_of_systems_and_goals_equals_theorem_1_pair_by_pair(S: int) -> None:
    """Paper: Theorem 1 [th:solution_FPD]."""
    rng = np.random.default_rng(2)
    tensors = np.stack([sparse_rows(rng, S, A) for _ in range(4)])
    wanted = random_rows(rng, 5, S)
    wanted[0, 0] = 0.0
    wanted /= wanted.sum(axis=-1, keepdims=True)
    rules = random_rows(rng, 5, S, A)
    goals = IdealModel.of(wanted[:, None, None, None], rules[:, None])
    plan = design(DenseModel(tensors), goals, H)
    assert plan.policy.shape == (5, 4, H, S, A)
    for goal in range(5):
        for system in range(4):
            policy, log_gamma = theorem_1(tensors[system], wanted[goal], rules[goal], H)
            np.testing.assert_allclose(plan.policy[goal, system], policy, rtol=1e-10)
            np.testing.assert_allclose(plan.log_gamma[goal, system], log_gamma, rtol=1e-12)


def test_batch_of_learned_models_equals_theorem_1_one_by_one() -> None:
    """Paper: Theorem 1 [th:solution_FPD]."""
    rng = np.random.default_rng(3)
    log = random_log(rng, 4, A, 3, 30)
    together = LearnedModel(counts_of(log, 4, A), background=0.1)
    ideal = over_everything(rng, 4)
    plan = design(together, ideal, H)
    for system in range(3):
        alone = type(log)(*(field[system] for field in log))
        model = LearnedModel(counts_of(alone, 4, A), background=0.1)
        policy, log_gamma = theorem_1(tensor_of(model), *tables(ideal), H)
        np.testing.assert_allclose(plan.policy[system], policy, rtol=1e-10)
        np.testing.assert_allclose(plan.log_gamma[system], log_gamma, rtol=1e-12)


# The specification itself


@given(seeds, sizes, sizes)
def test_divergence_is_the_sum_over_all_trajectories(seed: int, S: int, num_actions: int) -> None:
    """Paper: Definition 4 [def:FPD_opt_dec]."""
    rng = np.random.default_rng(seed)
    transition = random_rows(rng, S, num_actions, S)
    wanted = random_rows(rng, S, num_actions, S)
    wanted_rules = random_rows(rng, 2, S, num_actions)
    policy = random_rows(rng, 2, S, num_actions)
    found = divergence(transition, policy, wanted, wanted_rules)
    for start in range(S):
        expected = oracles.divergence(transition, policy, wanted, wanted_rules, start)
        assert found[start] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_divergence_is_infinite_only_where_the_loop_may_do_what_is_ruled_out() -> None:
    """Paper: Definition 4 [def:FPD_opt_dec]."""
    transition = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    wanted = np.array([1.0, 0.0])
    stay = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    np.testing.assert_allclose(divergence(transition, stay, wanted, 0.5), [np.log(2), np.inf])
    leave = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    np.testing.assert_allclose(divergence(transition, leave, wanted, 0.5), [np.inf, np.inf])


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(("S", "num_actions"), [(2, 2), (3, 2), (2, 3)])
def test_theorem_1_attains_the_divergence_it_promises_and_no_other_policy_attains_less(
    S: int, num_actions: int, timed: bool
) -> None:
    """The divergence is summed over all trajectories.

    Paper: Definition 4 [def:FPD_opt_dec], Theorem 1 [th:solution_FPD].
    """
    rng = np.random.default_rng(100 * S + num_actions)
    transition = random_rows(rng, S, num_actions, S)
    wanted = random_rows(rng, S, num_actions, S)
    wanted_rules = random_rows(rng, 3, S, num_actions)
    if not timed:
        wanted_rules[:] = wanted_rules[0]
    policy, log_gamma = theorem_1(transition, wanted, wanted_rules, 3)
    np.testing.assert_allclose(policy.sum(axis=-1), 1)

    for start in range(S):

        def of_policy(policy: FloatArray, start: int = start) -> float:
            return oracles.divergence(transition, policy, wanted, wanted_rules, start)

        least = -log_gamma[0, start]
        assert of_policy(policy) == pytest.approx(least, rel=1e-12)
        assert all(of_policy(random_rows(rng, 3, S, num_actions)) > least for _ in range(20))
        for size in (0.3, 0.01):
            nearby = policy * np.exp(size * rng.normal(size=policy.shape))
            assert of_policy(nearby / nearby.sum(axis=-1, keepdims=True)) >= least - 1e-13


@pytest.mark.parametrize("start", [0, 1])
def test_numerical_minimisation_finds_the_same_policy(start: int) -> None:
    """A general optimiser that knows nothing but the sum over all trajectories.

    Paper: Definition 4 [def:FPD_opt_dec], Theorem 1 [th:solution_FPD].
    """
    rng = np.random.default_rng(7)
    shape = (3, 2, 2)
    transition = random_rows(rng, 2, 2, 2)
    wanted = random_rows(rng, 2, 2, 2)
    wanted_rule = random_rows(rng, 2, 2)
    states, actions = trajectories(2, 2, 3, start)
    log_world = log_chain(states, actions, transition, np.ones(shape))
    log_ideal = log_chain(states, actions, wanted, np.broadcast_to(wanted_rule, shape))

    def objective(parameters: FloatArray) -> float:
        log_policy = log_softmax(parameters.reshape(shape), axis=-1)
        log_p = log_world + log_policy[np.arange(3), states[:, :-1], actions].sum(axis=1)
        return float((np.exp(log_p) * (log_p - log_ideal)).sum())

    found = minimize(objective, np.zeros(shape).ravel(), tol=1e-10)
    rules = np.exp(log_softmax(found.x.reshape(shape), axis=-1))
    policy, log_gamma = theorem_1(transition, wanted, wanted_rule, 3)
    assert found.fun == pytest.approx(-log_gamma[0, start], rel=1e-8)
    np.testing.assert_allclose(rules[0, start], policy[0, start], atol=1e-4)
    np.testing.assert_allclose(rules[1:], policy[1:], atol=1e-4)


@pytest.mark.parametrize("compiled", [False, True])
def test_recursion_in_fifty_digits(compiled: bool) -> None:
    """An ideal with probabilities of 1e-300, by mpmath.

    Paper: Theorem 1 [th:solution_FPD].
    """
    rng = np.random.default_rng(9)
    horizon = 6
    transition = random_rows(rng, 3, 2, 3)
    wanted = np.array([1.0, 1e-300, 1e-200])
    wanted_rule = np.array([[0.5, 0.5], [1 - 1e-300, 1e-300], [0.3, 0.7]])
    if compiled:
        plan = design(DenseModel(transition), IdealModel.of(wanted, wanted_rule), horizon)
        policy = plan.policy
        log_gamma = plan.log_gamma
    else:
        policy, log_gamma = theorem_1(transition, wanted, wanted_rule, horizon)

    with mpmath.workdps(50):
        exact = np.vectorize(mpmath.mpf)
        log = np.vectorize(mpmath.log)
        exp = np.vectorize(mpmath.exp)
        p = exact(transition)
        alpha = (p * (log(p) - log(exact(wanted)))).sum(axis=-1)
        gamma = exact(np.ones(3))
        for t in reversed(range(horizon)):
            beta = -(p * log(gamma)).sum(axis=-1)
            preference = exact(wanted_rule) * exp(-alpha - beta)
            gamma = preference.sum(axis=-1)
            rule = (preference / gamma[:, None]).astype(float)
            np.testing.assert_allclose(policy[t], rule, rtol=1e-11)
            np.testing.assert_allclose(log_gamma[t], log(gamma).astype(float), rtol=1e-13)
