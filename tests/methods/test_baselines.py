"""What methods are compared with: random actions, the log's own behaviour, a given policy."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import InfeasibleError, ParameterError
from pastwise.methods import Clone, Rand, Scripted
from pastwise.methods.baselines import behaviour_rule
from tests.helpers.methods import rules_everywhere
from tests.helpers.oracles import World, counts_of_list, random_rows

ALONE = World.random().alone(0)


def test_rand_gives_every_allowed_action_the_same_probability() -> None:
    memory = Rand().start(ALONE.counts, ALONE.ideal)
    np.testing.assert_array_equal(rules_everywhere(Rand(), memory), ALONE.ideal.allowed / 3)


LOG = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 2), (0, 2, 0), (0, 3, 0), (1, 0, 1)]
"""State 0: three of five allowed records; state 1: a forbidden one only; state 2: none."""


def test_clone_does_what_the_log_did() -> None:
    memory = Clone().start(counts_of_list(LOG, 3, 4), ALONE.ideal)
    expected = [[0.6, 0.2, 0.2, 0], [0, 1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 0, 1 / 3]]
    np.testing.assert_allclose(rules_everywhere(Clone(), memory), expected)
    np.testing.assert_allclose(Clone().plan(memory).rule, expected)


def test_behaviour_goes_by_weight_and_knows_what_is_allowed() -> None:
    counts = counts_of_list([(0, 0, 0), (0, 1, 0), (0, 1, 1)], 2, 2, weight=[1.0, 2.0, 3.0])
    np.testing.assert_allclose(behaviour_rule(counts), [[1 / 6, 5 / 6], [1 / 2, 1 / 2]])
    only_first = np.array([[True, False]])
    np.testing.assert_allclose(behaviour_rule(counts, only_first), [[1, 0], [1, 0]])


def script() -> FloatArray:
    return random_rows(np.random.default_rng(1), 5, 3, 4)


def test_script_is_followed_in_turn_and_begun_again() -> None:
    method = Scripted(script())
    memory = method.start(ALONE.counts, ALONE.ideal)
    for t in range(12):
        np.testing.assert_array_equal(rules_everywhere(method, memory), method.policy[t % 5])
        np.testing.assert_array_equal(method.plan(memory).rule, method.policy[t % 5])
        method.observe(memory, np.array(0), np.array(0), np.array(0))


def test_script_does_not_change_with_the_array_it_was_given() -> None:
    policy = script()
    method = Scripted(policy)
    expected = policy.copy()
    policy[:] = 0.25
    np.testing.assert_array_equal(method.policy, expected)


def test_row_of_zeros_is_a_state_in_which_nobody_acts() -> None:
    policy = script()
    policy[0, 1] = 0.0
    method = Scripted(policy)
    memory = method.start(ALONE.counts, ALONE.ideal)
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(method.rule(memory, np.array(0), rng), policy[0, 0])
    with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
        method.rule(memory, np.array(1), rng)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((1, 3, 4), -1.0), r"policy\[0, 0, 0\] is -1.0"),
        (np.full((1, 3, 4), 0.3), r"policy\[0, 0\] sums to 1.2"),
        (np.full((3, 4), 0.25), r"policy.*shape"),
    ],
)
def test_script_that_is_no_policy_is_refused(policy: FloatArray, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Scripted(policy)


def test_script_of_another_size_than_the_system_is_refused() -> None:
    message = "the policy is over 4 states and 4 actions, the system has 3 states and 4 actions"
    with pytest.raises(ParameterError, match=message):
        Scripted(np.full((1, 4, 4), 0.25)).start(ALONE.counts, ALONE.ideal)
