"""Closed loops: the probability of a trajectory, the ideals and the random rule of the paper."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from pastwise.data.records import Trajectory
from pastwise.goals.ideal import IdealModel
from pastwise.models.dense import DenseModel
from pastwise.theory.closed_loop import ideal_preferring, log_probability, uniform_rule
from tests.helpers.oracles import random_ideal, random_rows, small_loop, trajectories

S = 2
A = 3
H = 3
TRAJECTORY = Trajectory(np.array([0, 1, 1, 0]), np.arange(H))


# Probability of trajectories


def test_probability_of_a_trajectory_is_the_product_of_its_factors() -> None:
    """Over all trajectories these products sum to one.

    Paper: Definition 1 [MDP], Definition 2 [def:closed_loop_descr], Eq. (1) [eq:closed-loop_beh].
    """
    transition, initial, policy = small_loop(S, A, H, seed=0)
    model = DenseModel(transition)
    total = 0.0
    for start in range(S):
        for s, a in zip(*trajectories(S, A, H, start), strict=True):
            factors = [transition[s[t], a[t], s[t + 1]] * policy[t, s[t], a[t]] for t in range(H)]
            found = np.exp(log_probability(model, initial, policy, Trajectory(s, a)))
            assert float(found) == pytest.approx(initial[start] * prod(factors))
            total += float(found)
    assert total == pytest.approx(1)


def test_ideal_closed_loop_factors_as_a_closed_loop_does() -> None:
    """Ln of the ideal's joint, summed over epochs, is `log_probability` of its two factors.

    Paper: Definition 3 [def:ideal_closed-loop_beh], Eq. (1) [eq:closed-loop_beh].
    """
    ideal = random_ideal(np.random.default_rng(1), S, A)
    initial = np.array([0.25, 0.75])
    found = log_probability(DenseModel(ideal.transition), initial, ideal.rule[None], TRAJECTORY)
    log_joint = ideal.log_joint(*TRAJECTORY.transitions)
    assert float(found) == pytest.approx(np.log(0.25) + log_joint.sum())


def test_one_rule_serves_every_epoch() -> None:
    transition, initial, policy = small_loop(S, A, H, seed=1)
    model = DenseModel(transition)
    repeated = log_probability(model, initial, policy[[0, 0, 0]], TRAJECTORY)
    assert log_probability(model, initial, policy[:1], TRAJECTORY) == repeated


@pytest.mark.parametrize("shared", [False, True])
def test_probabilities_of_a_batch_are_those_of_each_run_alone(shared: bool) -> None:
    """With a policy for each system, or one that all share."""
    rng = np.random.default_rng(2)
    transition = random_rows(rng, 4, S, A, S)
    initial = random_rows(rng, 4, S)
    policy = random_rows(rng, 4, H, S, A)
    states = rng.integers(S, size=(4, H + 1))
    actions = rng.integers(A, size=(4, H))
    together = log_probability(
        DenseModel(transition),
        initial,
        policy[0] if shared else policy,
        Trajectory(states, actions),
    )
    for run in range(4):
        alone = log_probability(
            DenseModel(transition[run]),
            initial[run],
            policy[0 if shared else run],
            Trajectory(states[run], actions[run]),
        )
        assert together[run] == pytest.approx(alone)


def test_policy_of_another_length_is_refused() -> None:
    transition, initial, policy = small_loop(S, A, H, seed=3)
    with pytest.raises(ValueError, match="a policy of 2 rules does not fit a trajectory of 3"):
        log_probability(DenseModel(transition), initial, policy[:2], TRAJECTORY)


def test_rule_in_place_of_a_policy_is_refused() -> None:
    transition, initial, policy = small_loop(S, A, H, seed=3)
    with pytest.raises(ValueError, match=r"a policy has the axes .* got shape \(2, 3\)"):
        log_probability(DenseModel(transition), initial, policy[0], TRAJECTORY)


# The paper's experiments


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [
        ((0,), [0.99998, 1e-5, 1e-5]),
        ((0, 1), [0.499995, 0.499995, 1e-5]),
        ((2,), [1e-5, 1e-5, 0.99998]),
    ],
)
def test_goals_of_the_experiments(preferred: tuple[int, ...], expected: list[float]) -> None:
    """The first is both a past goal and the current one; none prefers an action.

    Paper: Eqs. (11) [eq:past_model_1], (12) [eq:past_model_12], (13) [eq:past_model_3],
    (14) [eq:current_ideal_model_1].
    """
    ideal = ideal_preferring(preferred, num_states=3, num_actions=4)
    np.testing.assert_allclose(ideal.transition, [[expected]], rtol=1e-14)
    np.testing.assert_allclose(ideal.rule, [[0.25] * 4])


def test_random_rule_gives_every_allowed_action_the_same_probability() -> None:
    """Paper: Eq. (15) [eq:random_strategy]."""
    free = IdealModel.of([0.5, 0.5], num_actions=4)
    np.testing.assert_array_equal(uniform_rule(free), [[0.25] * 4])
    allowed = [[True, False, True], [False, True, False]]
    masked = IdealModel.of([0.5, 0.5], num_actions=3, allowed=allowed)
    np.testing.assert_array_equal(uniform_rule(masked), [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
