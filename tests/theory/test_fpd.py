"""Fully Probabilistic Design by hand and by brute force, and Markov decision processes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import FloatArray
from pastwise.data.records import Trajectory
from pastwise.errors import InfeasibleError
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.theory.closed_loop import log_probability
from pastwise.theory.fpd import alpha, design, first_rule, implied_reward, mdp_optimum
from tests.helpers.oracles import (
    counts_of,
    divergence,
    policy_value,
    random_ideal,
    random_log,
    random_rows,
    renamed,
    seeds,
    sizes,
    trajectories,
    value_iteration,
)

H = 3


def repeated(rule: FloatArray, horizon: int = H) -> FloatArray:
    """One rule at every epoch: [H, S, A]."""
    return np.broadcast_to(rule, (horizon, *rule.shape))


# The design by hand, and what holds of every design


def test_divergence_attained_by_the_library_own_closed_loop() -> None:
    """The same sum, with the probability of each trajectory as `log_probability` gives it.

    Paper: Definition 2 [def:closed_loop_descr], Eq. (1) [eq:closed-loop_beh],
    Theorem 1 [th:solution_FPD].
    """
    rng = np.random.default_rng(8)
    S = 2
    A = 2
    start = 1
    transition = random_rows(rng, S, A, S)
    wanted = random_rows(rng, S, A, S)
    wanted_rule = random_rows(rng, S, A)
    plan = design(DenseModel(transition), IdealModel.of(wanted, wanted_rule), H)
    initial = np.eye(S)[start]
    total = 0.0
    for states, actions in zip(*trajectories(S, A, H, start), strict=True):
        trajectory = Trajectory(states, actions)
        log_p = log_probability(DenseModel(transition), initial, plan.policy, trajectory)
        log_q = log_probability(DenseModel(wanted), initial, wanted_rule[None], trajectory)
        total += float(np.exp(log_p) * (log_p - log_q))
    assert total == pytest.approx(-plan.log_gamma[0, start])


def test_alpha_and_the_last_epoch_by_hand() -> None:
    """At the last epoch beta is zero, and gamma needs alpha alone.

    Paper: Theorem 1 [th:solution_FPD].
    """
    model = DenseModel([[[0.5, 0.5], [0.0, 1.0]]] * 2)
    ideal = IdealModel.of([0.25, 0.75], [0.6, 0.4])
    by_hand = [0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75), np.log(1 / 0.75)]
    np.testing.assert_allclose(alpha(model, ideal), [by_hand] * 2)
    gamma = 0.6 * np.exp(-by_hand[0]) + 0.4 * 0.75
    plan = design(model, ideal, 1)
    np.testing.assert_allclose(plan.log_gamma, [[np.log(gamma)] * 2, [0, 0]])
    np.testing.assert_allclose(plan.rule(0), [1 - 0.3 / gamma, 0.3 / gamma])


def test_ideal_that_the_system_can_follow_is_followed_at_no_divergence() -> None:
    rng = np.random.default_rng(10)
    transition = random_rows(rng, 3, 2, 3)
    rule = random_rows(rng, 3, 2)
    plan = design(DenseModel(transition), IdealModel.of(transition, rule), 5)
    np.testing.assert_allclose(plan.policy, repeated(rule, 5))
    np.testing.assert_allclose(plan.log_gamma, 0, atol=1e-14)


@given(seeds, sizes, sizes)
def test_rules_are_distributions_and_divergence_grows_with_the_horizon(
    seed: int, S: int, A: int
) -> None:
    rng = np.random.default_rng(seed)
    plan = design(DenseModel(random_rows(rng, S, A, S)), random_ideal(rng, S, A), 5)
    assert (plan.policy >= 0).all()
    np.testing.assert_allclose(plan.policy.sum(axis=-1), 1)
    assert plan.log_gamma.max() < 1e-12, "a divergence is never negative"
    assert (np.diff(plan.log_gamma, axis=0) > -1e-12).all(), (
        "and that of a longer run is never smaller"
    )


@given(seeds, st.permutations(range(3)), st.permutations(range(2)))
def test_new_names_of_states_and_actions_only_rename_the_policy(
    seed: int, state: list[int], action: list[int]
) -> None:
    """States s are renamed state[s], actions a are renamed action[a]."""
    rng = np.random.default_rng(seed)
    transition = random_rows(rng, 3, 2, 3)
    wanted = random_rows(rng, 3, 2, 3)
    rule = random_rows(rng, 3, 2)
    new_transition = renamed(transition, state, action, state)
    new_wanted = renamed(wanted, state, action, state)
    plan = design(DenseModel(transition), IdealModel.of(wanted, rule), H)
    new = design(
        DenseModel(new_transition), IdealModel.of(new_wanted, renamed(rule, state, action)), H
    )
    np.testing.assert_allclose(new.policy, renamed(plan.policy, range(H), state, action), rtol=1e-9)
    np.testing.assert_allclose(
        new.log_gamma, renamed(plan.log_gamma, range(H + 1), state), atol=1e-12
    )


def test_first_rule_is_that_of_the_whole_design() -> None:
    rng = np.random.default_rng(11)
    model = DenseModel(random_rows(rng, 4, 3, 2, 3))
    ideal = random_ideal(rng, 3, 2)
    np.testing.assert_array_equal(first_rule(model, ideal, 5), design(model, ideal, 5).policy[:, 0])


def test_time_dependent_rules_are_broadcast() -> None:
    rng = np.random.default_rng(12)
    model = DenseModel(random_rows(rng, 3, 2, 3))
    ideal = random_ideal(rng, 3, 2)
    rule = random_rows(rng, H, 1, 2)
    full = design(model, ideal, H, rules=np.broadcast_to(rule, (H, 3, 2)))
    np.testing.assert_array_equal(design(model, ideal, H, rules=rule).policy, full.policy)
    same = design(model, ideal, H, rules=ideal.rule)
    np.testing.assert_allclose(same.policy, design(model, ideal, H).policy)


# What the goal forbids


TRAP = np.array(
    [
        [[0.5, 0.5, 0.0, 0.0], [0.4, 0.0, 0.6, 0.0], [0.9, 0.0, 0.0, 0.1]],
        [[0.0, 0.2, 0.8, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.9, 0.1], [0.0, 0.0, 0.0, 1.0], [0.5, 0.0, 0.0, 0.5]],
        [[1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]],
    ]
)
"""From state 2 every action may lead to the trap, state 3; from 0 and 1, some to 2 or 3."""

NO_TRAP = np.array([0.5, 0.25, 0.25, 0.0])


def test_actions_that_may_lead_to_a_forbidden_state_get_exactly_nothing() -> None:
    """Nor do those that may lead to where none is left; at the last epoch these are free again.

    Paper: Theorem 1 [th:solution_FPD], with 0 ln 0 = 0.
    """
    plan = design(DenseModel(TRAP), IdealModel.of(NO_TRAP, num_actions=3), H)
    early = [[True, False, False], [False, True, True], [False] * 3, [True] * 3]
    last = [[True, True, False], [True, True, True], [False] * 3, [True] * 3]
    np.testing.assert_array_equal(plan.policy > 0, [early, early, last])
    np.testing.assert_array_equal(
        plan.log_gamma > -np.inf, [[True, True, False, True]] * H + [[True] * 4]
    )
    wanted = np.broadcast_to(NO_TRAP, TRAP.shape)
    rng = np.random.default_rng(13)
    for start in (0, 1, 3):
        least = -plan.log_gamma[0, start]
        rules = np.full((H, 4, 3), 1 / 3)
        assert divergence(TRAP, plan.policy, wanted, rules, start) == pytest.approx(least)
        safe = plan.policy * rng.uniform(0.5, 2, plan.policy.shape)
        safe[:, 2] = 1
        assert (
            divergence(TRAP, safe / safe.sum(axis=-1, keepdims=True), wanted, rules, start) > least
        )


def test_state_without_a_feasible_action_is_an_error_only_when_its_rule_is_requested() -> None:
    plan = design(DenseModel(TRAP), IdealModel.of(NO_TRAP, num_actions=3), H)
    np.testing.assert_allclose(plan.rule(0), [1, 0, 0])
    with pytest.raises(InfeasibleError, match="state 2 has no feasible action"):
        plan.rule(2)
    with pytest.raises(InfeasibleError, match="state 2 has no feasible action"):
        plan.rule(2, epoch=H - 1)


def test_hard_zeros_that_depend_on_state_and_action() -> None:
    """Zeros in the ideal transition and in the ideal rule; brute force agrees with what is left."""
    rng = np.random.default_rng(14)
    S = 3
    A = 3
    transition = random_rows(rng, S, A, S)
    wanted = random_rows(rng, S, A, S)
    rule = random_rows(rng, S, A)
    wanted[0, 1] = [0.0, 0.5, 0.5]
    rule[1] = [0.0, 0.4, 0.6]
    transition[2, 0] = [0.5, 0.5, 0.0]
    wanted[2, 0] = [0.3, 0.7, 0.0]
    plan = design(DenseModel(transition), IdealModel.of(wanted, rule), H)
    zeros = np.zeros((S, A), dtype=bool)
    zeros[0, 1] = zeros[1, 0] = True
    np.testing.assert_array_equal(plan.policy == 0, repeated(zeros))
    for start in range(S):
        found = divergence(transition, plan.policy, wanted, repeated(rule), start)
        assert found == pytest.approx(-plan.log_gamma[0, start])


@pytest.mark.parametrize("timed", [False, True])
def test_mask_of_allowed_actions_gives_exact_zeros_and_the_best_of_what_is_left(
    timed: bool,
) -> None:
    rng = np.random.default_rng(15)
    S = 2
    A = 3
    transition = random_rows(rng, S, A, S)
    wanted = random_rows(rng, S)
    rules = random_rows(rng, H, S, A)
    rules = rules if timed else repeated(rules[0])
    allowed = np.array([[True, False, True], [False, True, True]])
    ideal = IdealModel.of(wanted, rules[0], allowed=allowed)
    plan = design(DenseModel(transition), ideal, H, rules=rules if timed else None)
    np.testing.assert_array_equal(plan.policy > 0, repeated(allowed))
    full = np.broadcast_to(wanted, (S, A, S))
    for start in range(S):
        least = -plan.log_gamma[0, start]
        assert divergence(transition, plan.policy, full, rules, start) == pytest.approx(least)
        for _ in range(20):
            other = random_rows(rng, H, S, A) * allowed
            assert (
                divergence(
                    transition, other / other.sum(axis=-1, keepdims=True), full, rules, start
                )
                > least
            )


# Leading axes


def make_dense(rng: np.random.Generator) -> tuple[TransitionModel, list[TransitionModel]]:
    tensors = random_rows(rng, 4, 3, 2, 3)
    return DenseModel(tensors), [DenseModel(tensor) for tensor in tensors]


def make_learned(rng: np.random.Generator) -> tuple[TransitionModel, list[TransitionModel]]:
    log = random_log(rng, 3, 2, 4, 25)
    alone = [counts_of(type(log)(*(field[run] for field in log)), 3, 2) for run in range(4)]
    return LearnedModel(counts_of(log, 3, 2), 0.1), [LearnedModel(counts, 0.1) for counts in alone]


@pytest.mark.parametrize("make", [make_dense, make_learned])
def test_batch_of_models_with_several_goals_is_each_pair_alone(
    make: Callable[[np.random.Generator], tuple[TransitionModel, list[TransitionModel]]],
) -> None:
    """Four models, then five goals, then each of the five goals for each of the four models."""
    rng = np.random.default_rng(16)
    together, models = make(rng)
    for wanted in (random_rows(rng, 5, 1, 1, 3), random_rows(rng, 5, 3, 2, 3)):
        rules = random_rows(rng, 5, 3, 2)
        goals = [IdealModel.of(*pair) for pair in zip(wanted, rules, strict=True)]
        alone = [[design(model, goal, H) for model in models] for goal in goals]
        policy = np.array([[plan.policy for plan in row] for row in alone])
        log_gamma = np.array([[plan.log_gamma for plan in row] for row in alone])

        by_model = design(together, goals[0], H)
        np.testing.assert_allclose(by_model.policy, policy[0], rtol=1e-11)
        np.testing.assert_allclose(by_model.log_gamma, log_gamma[0], rtol=1e-11)
        by_goal = design(models[0], IdealModel.of(wanted, rules), H)
        np.testing.assert_allclose(by_goal.policy, policy[:, 0], rtol=1e-11)
        by_both = design(together, IdealModel.of(wanted[:, None], rules[:, None]), H)
        np.testing.assert_allclose(by_both.policy, policy, rtol=1e-11)
        np.testing.assert_allclose(by_both.log_gamma, log_gamma, rtol=1e-11)


def test_goals_that_differ_in_their_rules_alone() -> None:
    rng = np.random.default_rng(17)
    model = DenseModel(random_rows(rng, 3, 2, 3))
    wanted = random_rows(rng, 3)
    rules = random_rows(rng, 5, 3, 2)
    alone = [design(model, IdealModel.of(wanted, rule), H) for rule in rules]
    together = design(model, IdealModel.of(wanted, rules), H)
    np.testing.assert_allclose(together.policy, [plan.policy for plan in alone])
    np.testing.assert_allclose(together.log_gamma, [plan.log_gamma for plan in alone])
    np.testing.assert_allclose(together.rule(1), [plan.rule(1) for plan in alone])


def test_infeasible_state_of_one_among_several_goals_is_named() -> None:
    goals = IdealModel.of(np.array([[0.25] * 4, NO_TRAP])[:, None, None], num_actions=3)
    plan = design(DenseModel(TRAP), goals, H)
    assert plan.rule(0).shape == (2, 3)
    with pytest.raises(InfeasibleError, match="state 2 has no feasible action"):
        plan.rule(2)


# Bad input


@pytest.mark.parametrize(
    ("ideal", "horizon", "rules", "message"),
    [
        (
            IdealModel.of([0.5, 0.5], num_actions=2),
            0,
            None,
            "from 1 to 1,000,000",
        ),
        (
            IdealModel.of([0.5, 0.5], num_actions=2),
            -3,
            None,
            "from 1 to 1,000,000",
        ),
        (
            IdealModel.of([0.5, 0.5], num_actions=3),
            1,
            None,
            "ideal has 2 states and 3 actions, the model 2 and 2",
        ),
        (
            IdealModel.of([0.5, 0.3, 0.2], num_actions=2),
            1,
            None,
            "ideal has 3 states and 2 actions, the model 2 and 2",
        ),
        (
            IdealModel.of([0.5, 0.5], num_actions=2),
            1,
            [[[0.5, 0.5], [0.5, 0.4]]],
            r"rules\[0, 1\] sums to 0.9",
        ),
        (IdealModel.of([0.5, 0.5], num_actions=2), 3, np.full((2, 2, 2), 0.5), "shape"),
    ],
)
def test_bad_task_is_refused(
    ideal: IdealModel, horizon: int, rules: ArrayLike | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        design(DenseModel(np.full((2, 2, 2), 0.5)), ideal, horizon, rules)


# Markov decision processes


def test_divergence_is_the_expected_total_of_an_implied_reward() -> None:
    """With its sign turned; also where the closed loop and the ideal have zeros.

    Paper: Eq. (2) [eq:closed-loop_factoris].
    """
    rng = np.random.default_rng(18)
    S = 3
    A = 2
    transition = random_rows(rng, S, A, S)
    wanted = random_rows(rng, S, A, S)
    rule = random_rows(rng, S, A)
    wanted_rule = random_rows(rng, S, A)
    transition[0, 0] = [0.5, 0.0, 0.5]
    wanted[0, 0] = [0.3, 0.0, 0.7]
    rule[1] = [0.0, 1.0]
    reward = implied_reward(IdealModel.of(wanted, wanted_rule), transition, rule)
    total = policy_value(transition, reward, repeated(rule))
    found = [
        divergence(transition, repeated(rule), wanted, repeated(wanted_rule), start)
        for start in range(S)
    ]
    np.testing.assert_allclose(total, np.negative(found))


def test_implied_reward_of_what_the_goal_rules_out_is_infinitely_bad() -> None:
    reward = implied_reward(
        IdealModel.of([1.0, 0.0], num_actions=1), np.full((2, 1, 2), 0.5), np.ones((2, 1))
    )
    np.testing.assert_allclose(reward, [[[np.log(2), -np.inf]]] * 2)


def test_implied_reward_of_the_designed_policy_adds_up_to_log_gamma_at_every_epoch() -> None:
    """Each epoch has its own rule, and so its own reward.

    Paper: Eq. (2) [eq:closed-loop_factoris], Theorem 1 [th:solution_FPD].
    """
    rng = np.random.default_rng(19)
    transition = random_rows(rng, 3, 2, 3)
    ideal = random_ideal(rng, 3, 2)
    plan = design(DenseModel(transition), ideal, H)
    value = np.zeros(3)
    for rule, log_gamma in zip(plan.policy[::-1], plan.log_gamma[-2::-1], strict=True):
        reward = implied_reward(ideal, transition, rule)
        value = (rule[..., None] * transition * (reward + value)).sum(axis=(1, 2))
        np.testing.assert_allclose(value, log_gamma)


def random_mdp(seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    return random_rows(rng, 4, 3, 4), rng.normal(size=(4, 3, 4))


def frozen_lake() -> tuple[FloatArray, FloatArray]:
    """Transition model and reward of gymnasium's lake, from its own table."""
    lake: Any = gymnasium.make("FrozenLake-v1").unwrapped
    transition = np.zeros((16, 4, 16))
    reward = np.zeros((16, 4, 16))
    for s, a in product(range(16), range(4)):
        for probability, n, gain, _ in lake.P[s][a]:
            transition[s, a, n] += probability
            reward[s, a, n] = gain
    return transition, reward


MDPS: list[Callable[[], tuple[FloatArray, FloatArray]]] = [
    lambda: random_mdp(0),
    lambda: random_mdp(1),
    frozen_lake,
]


@pytest.mark.parametrize("make", MDPS, ids=["random", "another", "frozen lake"])
def test_goal_made_from_a_reward_attains_the_optimum_as_its_temperature_falls(
    make: Callable[[], tuple[FloatArray, FloatArray]],
) -> None:
    """At temperature T the design loses at most T * H * ln (S A) of the optimum.

    It maximises E[reward] / T plus entropies, each at most ln (S A) per epoch.

    Paper: Definition 1 [MDP], Eq. (2) [eq:closed-loop_factoris].
    """
    transition, reward = make()
    S = transition.shape[0]
    A = transition.shape[1]
    horizon = 12
    best = np.array(value_iteration(transition, reward, horizon)[0])
    for temperature in (1e-1, 1e-3, 1e-6):
        plan = design(DenseModel(transition), IdealModel.from_reward(reward, temperature), horizon)
        loss = best - policy_value(transition, reward, plan.policy)
        assert loss.max() <= temperature * horizon * np.log(S * A) + 1e-12
        assert loss.min() >= -1e-12, "nothing beats the optimum"


@pytest.mark.parametrize("make", MDPS, ids=["random", "another", "frozen lake"])
def test_optimum_of_a_decision_process_is_that_of_plain_value_iteration(
    make: Callable[[], tuple[FloatArray, FloatArray]],
) -> None:
    """Paper: Definition 1 [MDP]."""
    transition, reward = make()
    optimum = mdp_optimum(DenseModel(transition), reward, 12)
    np.testing.assert_allclose(optimum.value, value_iteration(transition, reward, 12), atol=1e-13)
    np.testing.assert_allclose(
        policy_value(transition, reward, optimum.policy), optimum.value[0], atol=1e-13
    )
    assert np.isin(optimum.policy, [0, 1]).all()
    np.testing.assert_array_equal(optimum.policy.sum(axis=-1), 1)


def test_optimum_beats_every_deterministic_stationary_policy() -> None:
    transition, reward = random_mdp(2)
    best = mdp_optimum(DenseModel(transition), reward, 5).value[0]
    for actions in product(range(3), repeat=4):
        policy = repeated(np.eye(3)[list(actions)], 5)
        assert (policy_value(transition, reward, policy) <= best + 1e-12).all()


@pytest.mark.parametrize(
    "shape", [(4,), (1, 1, 4), (3, 4), (4, 1, 4), (1, 3, 4), (4, 3, 1), (4, 3, 4)]
)
@pytest.mark.parametrize("stored", ["dense", "learned"])
def test_reward_is_broadcast(shape: tuple[int, ...], stored: str) -> None:
    """A reward of state and action alone, [S, A, 1], is the commonest of all."""
    rng = np.random.default_rng(20)
    learned = LearnedModel(counts_of(random_log(rng, 4, 3, 60), 4, 3), 0.5)
    tensor = np.array([[learned.row(np.array(s), np.array(a)) for a in range(3)] for s in range(4)])
    model: TransitionModel = learned if stored == "learned" else DenseModel(tensor)
    reward = rng.normal(size=shape)
    expected = value_iteration(tensor, np.broadcast_to(reward, (4, 3, 4)), 5)
    np.testing.assert_allclose(mdp_optimum(model, reward, 5).value, expected, atol=1e-12)


def test_optima_of_a_batch_are_those_of_each_alone() -> None:
    rng = np.random.default_rng(21)
    tensors = random_rows(rng, 5, 4, 3, 4)
    reward = rng.normal(size=(4, 3, 4))
    together = mdp_optimum(DenseModel(tensors), reward, 5)
    alone = [mdp_optimum(DenseModel(tensor), reward, 5) for tensor in tensors]
    np.testing.assert_allclose(together.value, [optimum.value for optimum in alone])
    np.testing.assert_array_equal(together.policy, [optimum.policy for optimum in alone])


@pytest.mark.parametrize("horizon", [0, -1])
def test_decision_process_without_epochs_is_refused(horizon: int) -> None:
    with pytest.raises(ValueError, match="from 1 to 1,000,000"):
        mdp_optimum(DenseModel(random_mdp(0)[0]), random_mdp(0)[1], horizon)


def test_normalising_the_ideal_of_a_reward_misses_the_optimum() -> None:
    """A normaliser of state and action enters gamma, so `IdealModel.from_reward` has none.

    Only the first action in the first state is rewarded, with any next state; normalised per
    (state, action), the reward is gone.

    Paper: Eq. (2) [eq:closed-loop_factoris].
    """
    model = DenseModel(np.full((2, 2, 2), 0.5))
    reward = np.array([[[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]])
    plain = IdealModel.from_reward(reward, 0.01)
    rows = np.exp(plain.log_transition - plain.log_transition.max(axis=-1, keepdims=True))
    normalised = IdealModel.of(rows / rows.sum(axis=-1, keepdims=True))
    assert mdp_optimum(model, reward, 1).policy[0, 0, 0] == 1
    assert first_rule(model, plain, 1)[0, 0] > 0.99
    assert first_rule(model, normalised, 1)[0, 0] == pytest.approx(0.5)
