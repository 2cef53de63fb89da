"""The goal as arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.checks import checked_probabilities
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from tests.helpers.oracles import joint, random_rows

S = 3
A = 2

FULL = np.indices((S, A, S))
TRANSITION_SHAPES = [(S,), (1, A, S), (A, S), (S, 1, S), (S, A, S)]
RULE_SHAPES = [(A,), (1, A), (S, A)]


def with_zeros(rng: np.random.Generator, *shape: int) -> FloatArray:
    """Distributions whose least entry is zero, where there is more than one."""
    rows = random_rows(rng, *shape)
    rows[rows == rows.min(axis=-1, keepdims=True)] = 0
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("rule_shape", RULE_SHAPES)
@pytest.mark.parametrize("transition_shape", TRANSITION_SHAPES)
def test_joint_is_the_product_of_its_factors_in_any_shape(
    transition_shape: tuple[int, ...], rule_shape: tuple[int, ...], zeros: bool
) -> None:
    """Its extremes are those of the full table, although none is built.

    Paper: Definition 3 [def:ideal_closed-loop_beh].
    """
    rng = np.random.default_rng(3)
    rows = with_zeros if zeros else random_rows
    transition = rows(rng, *transition_shape)
    rule = rows(rng, *rule_shape)
    ideal = IdealModel.of(transition, rule)
    table = joint(np.broadcast_to(transition, (S, A, S)), np.broadcast_to(rule, (S, A)))
    found = np.exp(ideal.log_joint(*FULL))
    np.testing.assert_allclose(found, table, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(np.exp(ideal.log_peak), table.max())
    np.testing.assert_allclose(np.exp(ideal.log_floor), table[table > 0].min())
    assert (ideal.num_states, ideal.num_actions) == (S, A)
    assert ideal.concerns_next_states_only == (transition_shape == (S,))
    np.testing.assert_allclose(
        np.broadcast_to(ideal.transition, (S, A, S)), np.broadcast_to(transition, (S, A, S))
    )


@pytest.mark.parametrize(
    "given",
    [
        {"num_actions": 4},
        {"rule": [0.25] * 4},
        {"allowed": [True] * 4},
        {"transition": np.full((1, 4, 2), 0.5)},
    ],
)
def test_number_of_actions_is_known_from_any_argument_that_shows_it(given: dict[str, Any]) -> None:
    ideal = IdealModel.of(**({"transition": [0.5, 0.5]} | given))
    np.testing.assert_allclose(ideal.rule, [[0.25] * 4])
    np.testing.assert_array_equal(ideal.allowed, [[True] * 4])


def test_single_action_must_be_stated() -> None:
    assert IdealModel.of([0.5, 0.5], num_actions=1).num_actions == 1
    with pytest.raises(
        ParameterError, match="number of actions is not known: give num_actions or rule"
    ):
        IdealModel.of([0.5, 0.5])


def test_mask_stands_next_to_the_ideal_and_changes_nothing_in_it() -> None:
    best_is_forbidden = [[True, True], [False, True], [True, True]]
    free = IdealModel.of([0.7, 0.2, 0.1], [0.9, 0.1])
    masked = IdealModel.of([0.7, 0.2, 0.1], [0.9, 0.1], allowed=best_is_forbidden)
    np.testing.assert_array_equal(masked.log_joint(*FULL), free.log_joint(*FULL))
    assert masked.log_peak == free.log_peak
    assert masked.log_floor == free.log_floor
    np.testing.assert_allclose(np.exp(masked.log_rule_allowed), [[0.9, 0.1], [0, 0.1], [0.9, 0.1]])


def test_several_goals_are_kept_together() -> None:
    rng = np.random.default_rng(4)
    transition = random_rows(rng, 5, 1, 1, S)
    rule = random_rows(rng, S, A)
    goals = IdealModel.of(transition, rule)
    for i in range(5):
        alone = IdealModel.of(transition[i], rule)
        np.testing.assert_array_equal(goals.log_joint(*FULL)[i], alone.log_joint(*FULL))
        assert goals.log_peak[i] == alone.log_peak
        assert goals.log_floor[i] == alone.log_floor


def test_ideal_of_a_reward_is_its_unnormalised_exponential() -> None:
    """One where the reward is best, and exp(loss / temperature) elsewhere.

    Paper: Eq. (2) [eq:closed-loop_factoris].
    """
    reward = np.random.default_rng(5).normal(size=(S, A, S))
    ideal = IdealModel.from_reward(reward, temperature=0.3)
    np.testing.assert_allclose(
        np.exp(ideal.log_joint(*FULL)), np.exp((reward - reward.max()) / 0.3)
    )
    assert ideal.log_peak == 0
    assert not ideal.normalised


def test_reward_of_next_states_needs_the_number_of_actions() -> None:
    assert IdealModel.from_reward([0.0, 1.0], 1.0, num_actions=4).num_actions == 4
    assert IdealModel.from_reward([0.0, 1.0], 1.0, allowed=[True] * 4).num_actions == 4
    with pytest.raises(ParameterError, match="number of actions is not known"):
        IdealModel.from_reward([0.0, 1.0], 1.0)


@pytest.mark.parametrize("name", ["log_transition", "log_rule", "allowed"])
def test_arrays_are_read_only(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(IdealModel.of([0.5, 0.5], num_actions=2), name)[0] = 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transition": [0.5, 0.4]}, r"transition sums to 0.9"),
        ({"transition": [1.5, -0.5]}, r"transition\[1\] is -0.5"),
        ({"transition": [np.nan, 1.0]}, r"transition\[0\] is nan"),
        (
            {"transition": np.full((3, 2, 2), 0.5)},
            r"transition of shape \(3, 2, 2\) does not fit \(2, 2, 2\)",
        ),
        ({"rule": [[0.5, 0.5], [0.9, 0.2]]}, r"rule\[1\] sums to 1.1"),
        ({"rule": [1.5, -0.5]}, r"rule\[1\] is -0.5"),
        ({"rule": np.full((3, 2), 0.5)}, r"rule of shape \(3, 2\) does not fit \(2, 2\)"),
        ({"allowed": [[True, True]] * 3}, r"allowed of shape \(3, 2\) does not fit \(2, 2\)"),
        ({"allowed": [1, 0]}, "allowed must be a table of booleans, not of int64"),
        ({"allowed": [[True, True], [False, False]]}, "state 1 has no allowed action"),
        ({"allowed": [False, False]}, "no allowed action"),
    ],
)
def test_bad_ideal_is_refused_and_located(arguments: dict[str, Any], message: str) -> None:
    known = {} if "rule" in arguments else {"num_actions": 2}
    with pytest.raises(ParameterError, match=message):
        IdealModel.of(**({"transition": [0.5, 0.5]} | known | arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"rule": [0.2, 0.3, 0.5], "num_actions": 2},
        {"rule": [0.2, 0.3, 0.5], "num_actions": 4},
        {"transition": np.full((1, 4, 2), 0.5), "num_actions": 2},
        {"transition": np.full((2, 3, 2), 0.5), "rule": [0.5, 0.5]},
        {"allowed": [True, True, True], "num_actions": 2},
        {"num_actions": 0},
        {"num_actions": -1},
    ],
)
def test_number_of_actions_that_cannot_be_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="actions"):
        IdealModel.of(**({"transition": [0.5, 0.5]} | arguments))


@pytest.mark.parametrize(
    ("reward", "temperature", "message"),
    [
        ([0.0, np.nan], 1.0, r"reward\[0, 0, 1\] is not finite"),
        ([[[0.0, 1.0]], [[-np.inf, 1.0]]], 1.0, r"reward\[1, 0, 0\] is not finite"),
        ([0.0, 1.0], 0.0, "the temperature must be positive, not 0.0"),
        ([0.0, 1.0], -1.0, "the temperature must be positive, not -1.0"),
        ([0.0, 1.0], np.nan, "the temperature must be positive, not nan"),
        (np.zeros((3, 2, 2)), 1.0, r"of shape \(3, 2, 2\) does not fit \(2, 2, 2\)"),
    ],
)
def test_bad_reward_is_refused_and_located(reward: Any, temperature: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        IdealModel.from_reward(reward, temperature, num_actions=2)


def test_reward_of_state_and_action_counts_for_every_next_state() -> None:
    reward = np.arange(6.0).reshape(2, 3, 1)
    ideal = IdealModel.from_reward(reward, 2.0)
    joint = ideal.log_joint(*np.indices((2, 3, 2)))
    np.testing.assert_allclose(joint, np.broadcast_to((reward - 5) / 2, (2, 3, 2)))


def test_temperature_too_low_for_the_rewards_is_refused() -> None:
    with pytest.raises(ParameterError, match="too low"):
        IdealModel.from_reward([0.0, 1.0], 1e-320, num_actions=2)


def test_indices_of_a_joint_broadcast() -> None:
    ideal = IdealModel.of([0.25, 0.75], [0.5, 0.5])
    found = ideal.log_joint(np.arange(2)[:, None], np.arange(2), 0)
    np.testing.assert_allclose(found, np.full((2, 2), np.log(0.125)))


def test_logarithms_are_those_of_the_c_library() -> None:
    """Those of numpy depend on the processor, in about one of 300 numbers."""
    given = np.random.default_rng(0).dirichlet(np.ones(2000))
    given[0] = 0.0
    probabilities = checked_probabilities("transition", given / given.sum())
    ideal = IdealModel.of(probabilities, num_actions=2)
    assert ideal.log_transition.shape == (1, 1, 2000)
    logarithms = ideal.log_transition[0, 0].tolist()
    assert logarithms[0] == -math.inf
    assert logarithms[1:] == [math.log(each) for each in probabilities[1:].tolist()]
