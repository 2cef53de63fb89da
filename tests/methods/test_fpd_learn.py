"""FPD_learn: design on the model learned so far."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.errors import InfeasibleError, ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import FPD, FPDLearn
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.theory.fpd import design
from tests.helpers.methods import rules_everywhere
from tests.helpers.oracles import World, counts_of_list

HORIZON = 4
ALONE = World.random().alone(0)


@pytest.mark.parametrize("prior_count", [None, 0.5])
@pytest.mark.parametrize("replay", [False, True])
def test_designs_on_the_model_learned_so_far(replay: bool, prior_count: float | None) -> None:
    """At every epoch, or each time that a horizon was followed to its end; nu_0 is TL's by default.

    Paper: FPD_learn in Section IV, Theorem 1 [th:solution_FPD].
    """
    method = FPDLearn(HORIZON, prior_count, replay)
    background = float(np.exp(ALONE.ideal.log_floor)) / 3 if prior_count is None else prior_count
    memory = method.start(ALONE.counts, ALONE.ideal)
    more = World.random(seed=9).alone(1).log

    def policy_after(number: int) -> FloatArray:
        """The designed policy on the log with so many more records."""
        seen = Transitions(*(field[:number] for field in more))
        counts = TransitionCounts.from_transitions(seen, Space.of_size(3), Space.of_size(4))
        model = LearnedModel(ALONE.counts + counts, background)
        return design(model, ALONE.ideal, HORIZON).policy

    for t in range(2 * HORIZON + 2):
        known = t - t % HORIZON if replay else t
        expected = policy_after(known)[t % HORIZON if replay else 0]
        np.testing.assert_allclose(rules_everywhere(method, memory), expected, rtol=1e-9)
        np.testing.assert_allclose(method.plan(memory).rule, policy_after(t)[0], rtol=1e-9)
        method.observe(memory, more.state[t], more.action[t], more.next_state[t])


def rule_from(parts: dict[str, FloatArray]) -> FloatArray:
    """exp of the sum of the parts, normalised."""
    table = np.exp(sum(parts.values()))
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def test_value_and_preference_make_the_rule() -> None:
    """The best action of each state has the value 0, the preferred one the preference 0."""
    method = FPDLearn(HORIZON)
    plan = method.plan(method.start(ALONE.counts, ALONE.ideal))
    parts = dict(plan.parts)
    assert list(parts) == ["value", "preference"]
    np.testing.assert_allclose(rule_from(parts), plan.rule, rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(parts["value"].max(axis=-1), 0)
    for state in range(3):
        row = ALONE.ideal.rule[state]
        allowed = ALONE.ideal.allowed[state]
        expected = np.log(row / row[allowed].max())[allowed]
        np.testing.assert_allclose(parts["preference"][state, allowed], expected, atol=1e-12)


@pytest.mark.parametrize(
    "ideal",
    [
        IdealModel.of([0.9, 0.07, 0.03], num_actions=4, allowed=[True, True, False, True]),
        IdealModel.from_reward([1.0, 0.0, 0.0], 0.1, num_actions=4),
        IdealModel.from_reward(np.arange(12.0).reshape(3, 4, 1), 2.0),
    ],
)
def test_value_alone_makes_the_rule_where_no_action_is_preferred(ideal: IdealModel) -> None:
    """A reward of actions belongs to the value."""
    method = FPDLearn(HORIZON)
    plan = method.plan(method.start(ALONE.counts, ideal))
    assert list(plan.parts) == ["value"]
    np.testing.assert_allclose(rule_from(dict(plan.parts)), plan.rule, rtol=1e-9, atol=1e-15)


def test_action_that_the_goal_rules_out_has_no_value() -> None:
    """It is allowed, but its ideal probability is zero."""
    ideal = IdealModel.of([0.5, 0.5], [[0.5, 0.5], [1.0, 0.0]])
    method = FPDLearn(1)
    plan = method.plan(method.start(counts_of_list([(0, 0, 1)], 2, 2), ideal))
    np.testing.assert_array_equal(plan.rule[1], [1, 0])
    assert plan.parts["value"][1].tolist() == [0, -np.inf]
    assert not any(np.isnan(part).any() for part in plan.parts.values())


def test_plan_is_made_once_for_all_questions() -> None:
    method = FPDLearn(HORIZON)
    memory = method.start(ALONE.counts, ALONE.ideal)
    method.plan(memory, slice(0, 1))
    known = memory.plan
    method.plan(memory, slice(1, 2))
    assert memory.plan is known
    method.observe(memory, np.array(0), np.array(0), np.array(0))
    assert memory.plan is None


def test_state_whose_allowed_actions_the_goal_rules_out_is_named() -> None:
    rule = [[0.5, 0.5], [1.0, 0.0]]
    ideal = IdealModel.of([0.5, 0.5], rule, allowed=[[True, True], [False, True]])
    method = FPDLearn(horizon=1)
    memory = method.start(counts_of_list([], 2, 2), ideal)
    rng = np.random.default_rng(5)
    np.testing.assert_allclose(method.rule(memory, np.array(0), rng), [0.5, 0.5])
    with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
        method.rule(memory, np.array(1), rng)
    with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
        method.plan(memory)


def test_goal_that_rules_out_next_states_is_refused() -> None:
    method = FPDLearn()
    memory = method.start(counts_of_list([], 2, 2), IdealModel.of([1.0, 0.0], num_actions=2))
    with pytest.raises(ValueError, match="give them a floor"):
        method.rule(memory, np.array(0), np.random.default_rng(5))


@pytest.mark.parametrize("replay", [False, True])
def test_horizon_of_zero_is_refused(replay: bool) -> None:
    with pytest.raises(ParameterError, match="from 1 to 1,000,000"):
        FPDLearn(0, replay=replay)


@pytest.mark.parametrize("prior_count", [0.0, -1.0, np.nan])
def test_prior_that_is_not_positive_is_refused(prior_count: float) -> None:
    message = f"prior_count is {prior_count}; prior counts must be positive"
    with pytest.raises(ParameterError, match=message):
        FPDLearn(prior_count=prior_count)


@pytest.mark.parametrize("prior_count", [np.ones((2, 2, 2)), [1, 2, 3], [0.5]])
def test_prior_that_is_a_table_is_refused(prior_count: Any) -> None:
    message = r"prior_count of FPD_learn must be one number, not a table of shape \("
    with pytest.raises(ParameterError, match=message):
        FPDLearn(prior_count=prior_count)


@pytest.mark.parametrize("replay", [1, 0, 5, "no", None])
def test_replay_that_is_neither_true_nor_false_is_refused(replay: Any) -> None:
    """A file could not be read again."""
    with pytest.raises(ParameterError, match=f"replay must be true or false, not {replay!r}"):
        FPDLearn(replay=replay)
    with pytest.raises(ParameterError, match=f"replay must be true or false, not {replay!r}"):
        FPD(DenseModel(np.full((2, 2, 2), 0.5)), replay=replay)
