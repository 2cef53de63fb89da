"""FPD on a known model: planning anew at every epoch, or following one horizon."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise.errors import InfeasibleError, ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import FPD, create
from pastwise.models.dense import DenseModel
from pastwise.theory.fpd import design
from tests.helpers.methods import rules_everywhere
from tests.helpers.oracles import World, counts_of_list

HORIZON = 4
ALONE = World.random().alone(0)


@pytest.mark.parametrize("replay", [False, True])
def test_plans_anew_at_every_epoch_or_follows_its_horizon(replay: bool) -> None:
    """Paper: Theorem 1 [th:solution_FPD]."""
    solution = design(ALONE.model, ALONE.ideal, HORIZON)
    method = FPD(ALONE.model, HORIZON, replay)
    memory = method.start(ALONE.counts, ALONE.ideal)
    for t in range(2 * HORIZON + 1):
        expected = solution.policy[t % HORIZON if replay else 0]
        np.testing.assert_allclose(rules_everywhere(method, memory), expected)
        np.testing.assert_allclose(method.plan(memory).rule, expected)
        method.observe(memory, np.array(0), np.array(0), np.array(0))


def test_state_without_a_feasible_action_is_an_error_when_its_rule_is_requested() -> None:
    model = DenseModel([[[1.0, 0.0]], [[0.0, 1.0]]])
    method = FPD(model)
    memory = method.start(counts_of_list([], 2, 1), IdealModel.of([1.0, 0.0], num_actions=1))
    rng = np.random.default_rng(5)
    np.testing.assert_array_equal(method.rule(memory, np.array(0), rng), [1.0])
    np.testing.assert_array_equal(method.plan(memory).rule, [[1.0], [0.0]])
    with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
        method.rule(memory, np.array(1), rng)


def test_only_a_known_system_makes_a_zero_of_the_goal_forbid_an_action() -> None:
    """Action 0 usually leads to the preferred state 1, and at times to the impossible state 2."""
    log = [(2, 0, 0), (2, 1, 0)]
    for state in (0, 1):
        log += [(state, 0, 1)] * 45 + [(state, 0, 2)] * 5 + [(state, 1, 0)] * 50
    counts = counts_of_list(log, 3, 2)
    risky = [0.0, 0.9, 0.1]
    safe = [1.0, 0.0, 0.0]
    known = FPD(DenseModel([[risky, safe], [safe, safe], [safe, safe]]))
    learned = [create(name) for name in ("TL", "TL_explore", "TL_foresight")]

    ideal = IdealModel.of([0.1, 0.9, 0.0], num_actions=2)
    np.testing.assert_array_equal(known.plan(known.start(counts, ideal)).rule[0], [0, 1])
    for method in learned:
        assert method.plan(method.start(counts, ideal)).rule[0, 0] > 0.5

    forbidding = IdealModel.of([0.1, 0.9, 0.0], num_actions=2, allowed=[False, True])
    for method in learned:
        assert method.plan(method.start(counts, forbidding)).rule[0, 0] == 0


@pytest.mark.parametrize("replay", [False, True])
def test_horizon_of_zero_is_refused(replay: bool) -> None:
    with pytest.raises(ParameterError, match="from 1 to 1,000,000"):
        FPD(ALONE.model, 0, replay)


def test_model_of_another_size_than_the_log_is_refused() -> None:
    larger = IdealModel.of(np.full(4, 0.25), num_actions=4)
    message = "the policy is over 4 states and 4 actions, the system has 3 states and 4 actions"
    with pytest.raises(ParameterError, match=message):
        FPD(DenseModel(np.full((4, 4, 4), 0.25))).start(ALONE.counts, larger)
