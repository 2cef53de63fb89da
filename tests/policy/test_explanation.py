"""Why an action has its probability: shares that add up, or parts of an index."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pastwise import Columns, Goal, Space, TransferLearner, TransitionCounts
from pastwise.data.space import Label
from pastwise.evaluation.actions import ActionValue
from pastwise.methods import Rand
from pastwise.methods.base import BORROWED, DEVIATION, EVERY_STATE, EXAMPLE, RECORDS, VALUE, Plan
from pastwise.policy.explanation import Explanation, Reason, TransitionEvidence, reason_of

SHARES = Explanation(
    ("cold", 1),
    "TL",
    {
        "wait": Reason(
            probability=0.25,
            is_allowed=True,
            parts={RECORDS: 0.2, "prior": 0.05},
            adds_up=True,
            evidence=(TransitionEvidence(("cold", 1), 1, 0.1, 0.2),),
        ),
        "heat": Reason(
            probability=0.75,
            is_allowed=True,
            parts={RECORDS: 0.7, "prior": 0.05},
            adds_up=True,
            evidence=(
                TransitionEvidence(("warm", 1), 3, 1.5, 0.5),
                TransitionEvidence(("cold", 1), 1, 0.6, 0.2),
            ),
        ),
    },
)

INDEX = Explanation(
    "cold",
    "TL_foresight",
    {
        "heat": Reason(
            probability=1.0,
            is_allowed=True,
            parts={"value": 2.5, "uncertainty": -0.25},
            adds_up=False,
            evidence=(TransitionEvidence("warm", 3, 1.5, 0.75),),
        ),
        "wait": Reason(0.0, True, {"value": -np.inf, "uncertainty": 0.5}, False, ()),
        "open": Reason(0.0, False, {}, False, ()),
    },
)


def test_an_explanation_as_plain_values() -> None:
    cold = {"next_state": '["cold", 1]', "records": 1}
    warm = {"next_state": '["warm", 1]', "records": 3}
    assert SHARES.to_dict() == {
        "state": '["cold", 1]',
        "method": "TL",
        "measure": None,
        "horizon": None,
        "actions": {
            "wait": {
                "probability": 0.25,
                "is_allowed": True,
                "parts": {"records": 0.2, "prior": 0.05},
                "adds_up": True,
                "evidence": [{**cold, "similarity": 0.1, "share": 0.2}],
                "value": None,
            },
            "heat": {
                "probability": 0.75,
                "is_allowed": True,
                "parts": {"records": 0.7, "prior": 0.05},
                "adds_up": True,
                "evidence": [
                    {**warm, "similarity": 1.5, "share": 0.5},
                    {**cold, "similarity": 0.6, "share": 0.2},
                ],
                "value": None,
            },
        },
    }


def test_json_has_no_infinite_numbers() -> None:
    content = json.loads(json.dumps(INDEX.to_dict(), allow_nan=False))
    assert content["actions"]["wait"]["parts"] == {"value": None, "uncertainty": 0.5}
    assert content["actions"]["open"]["parts"] == {}


def test_shares_as_sentences_have_the_likeliest_action_first() -> None:
    lines = [line.split() for line in str(SHARES).splitlines()]
    first_words = [line[0] for line in lines]
    assert first_words == ["In", "heat", "0.5", "0.2", "0.05", "wait", "0.2", "0.05"]
    assert '3 records that led to ["warm", 1], similarity 1.5' in str(SHARES)
    assert "1 record " in str(SHARES)
    assert "0.05 from the prior" in str(SHARES)


def test_a_single_record_and_a_single_state_are_no_plural() -> None:
    evidence = tuple(TransitionEvidence(f"state {i}", 1, 0.1, 0.1) for i in range(7))
    shares = Reason(0.7, True, {RECORDS: 0.7}, True, evidence)
    assert list(shares.lines())[-1] == "0.1 from 1 record that led to 1 other state"
    assert shares.targets().endswith("1 to 1 other state")
    index = Reason(0.7, True, {"index": 0.7}, False, evidence)
    assert list(index.lines())[-1] == "rests on records that led to 1 other state"


def test_an_index_as_sentences() -> None:
    assert str(INDEX).splitlines() == [
        "In cold, by TL_foresight:",
        "  heat  1",
        "    value +2.5, uncertainty -0.25",
        "    rests on 3 records that led to warm, similarity 1.5 (75 % of the action's records)",
        "  wait  0",
        "    value -inf, uncertainty +0.5",
        "    rests on no record",
        "  open  0",
        "    not allowed by the goal",
        "    rests on no record",
    ]


def test_values_in_the_goals_unit_as_sentences() -> None:
    evidence = (TransitionEvidence("warm", 3, 1.5, 0.75), TransitionEvidence("cold", 1, 0, 0.25))
    heat = {VALUE: 0.5512, DEVIATION: 0.0123, EXAMPLE: 0.002, BORROWED: 0.0831}
    actions: dict[Label, Reason] = {
        "heat": Reason(0.9, True, heat, False, evidence),
        "wait": Reason(0.1, True, {VALUE: 12.5, DEVIATION: 2.0, "habit": -0.25}, False, ()),
        "open": Reason(0.0, False, {}, False, ()),
    }
    measure = "share of time as wanted"
    explanation = Explanation("cold", "TL_foresight", actions, measure)
    assert str(explanation).splitlines() == [
        "In cold, by TL_foresight (value: share of time as wanted in the long run):",
        "  heat  0.9",
        "    value 0.551, standard deviation 0.012; the past's example adds +0.002",
        "    4 records that led: 3 to warm, 1 to cold; 8.31 % of the value rests on other rows",
        "  wait  0.1",
        "    value 12.500, standard deviation 2.000; habit adds -0.250",
        "    0 records",
        "  open  0",
        "    not allowed by the goal",
        "    rests on no record",
    ]
    content = explanation.to_dict()
    assert content["horizon"] is None
    assert content["measure"] == "share of time as wanted"
    assert content["actions"]["heat"]["parts"] == heat


@pytest.mark.parametrize(
    ("deviation", "shown"),
    [
        (0.00012, "value 0.58294, standard deviation 0.00012"),
        (0.3, "value 0.583, standard deviation 0.300"),
        (1e-12, "value 0.58294130, standard deviation 0.00000000"),
        (0.0, "value 0.583, standard deviation 0.000"),
    ],
)
def test_values_have_the_digits_of_their_deviation(deviation: float, shown: str) -> None:
    parts = {VALUE: 0.5829413, DEVIATION: deviation}
    explanation = Explanation("cold", "x", {"heat": Reason(1.0, True, parts, False, ())})
    assert shown in str(explanation)


@dataclass(frozen=True)
class Measured(Rand):
    """A method whose plan is in the goal's unit, with a value that is the number of the action."""

    def plan(self, memory: Any, states: Any = EVERY_STATE) -> Plan:
        rule = super().plan(memory).rule
        value = np.broadcast_to(np.arange(rule.shape[-1], dtype=np.float64), rule.shape)
        return Plan(rule, {VALUE: value, DEVIATION: np.asarray(0.5 * value)}).at(states)


@pytest.mark.parametrize(
    ("goal", "terminal", "measure"),
    [
        (Goal(prefer="warm"), None, "share of time as wanted"),
        (Goal(prefer="warm"), "warm", "chance of ending well"),
        (Goal(reward={"warm": 2.0}), None, "mean reward"),
        (Goal(reward={"warm": 2.0}), "warm", "total reward of an episode"),
    ],
)
def test_the_unit_is_that_of_an_evaluation(goal: Goal, terminal: str, measure: str) -> None:
    log = {"s": ["cold", "cold"], "a": ["heat", "wait"], "n": ["warm", "cold"]}
    columns = Columns.of("s", "a", "n", terminal=[terminal] if terminal else [])
    learner = TransferLearner(goal, method=Measured()).fit(log, columns)
    explanation = learner.explain("cold")
    evaluation = learner.evaluate(samples=50)
    assert explanation.measure == measure == evaluation.measure
    assert explanation.horizon == evaluation.horizon
    large = learner.explain("cold", max_states=1)
    assert (large.measure, large.horizon) == (measure, None)
    assert large.actions["wait"].value is None
    assert explanation.actions["wait"].parts == {VALUE: 1.0, DEVIATION: 0.5}
    assert learner.retarget(goal, "TL").explain("cold").measure is None


def test_a_plan_for_something_else_than_an_evaluation_measures_says_so() -> None:
    log = {"s": ["cold", "cold"], "a": ["heat", "wait"], "n": ["warm", "cold"]}
    goal = Goal(prefer="warm", prefer_actions="wait")
    learner = TransferLearner(goal).fit(log, Columns.of("s", "a", "n"))
    assert learner.explain("cold").measure == "share of time as wanted"
    assert "value: planned utility in the long run" in str(learner.explain("cold", max_states=1))


def test_a_share_of_time_is_a_share_where_another_state_ends_episodes() -> None:
    log = {
        "s": ["low", "low", "high", "high"] * 20,
        "a": ["x", "y", "x", "y"] * 20,
        "n": ["high", "low", "high", "gone"] * 20,
    }
    columns = Columns.of("s", "a", "n", terminal=["gone"])
    learner = TransferLearner(Goal(prefer="high")).fit(log, columns)
    large = learner.explain("low", max_states=1)
    assert large.measure == "share of time as wanted"
    assert 0 <= large.actions["x"].parts[VALUE] <= 1


def test_values_of_actions_are_those_of_an_evaluation() -> None:
    """The rule with one action always taken in a state, evaluated as a rule of its own."""
    table = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
    learner = TransferLearner(Goal(prefer={"comfortable": 1, "warm": 0.5}), method=Measured())
    learner.fit(table, state="room", action="did", episode="day", time="hour")
    explanation = learner.explain("cool")
    rules = {}
    for action in ("heat", "idle", "vent"):
        rules[action] = learner.rule_.probabilities.copy()
        rules[action][2] = np.eye(3)[learner.rule_.actions.index(action)]
    evaluation = learner.evaluate(samples=200, rules=rules, learned_from_log=False)
    for name in rules:
        value = explanation.actions[name].value
        assert value is not None
        assert value.mean == pytest.approx(evaluation.values[name].mean, abs=1e-4)
        difference = -evaluation.differences[f"to_{name}"].mean
        assert value.difference == pytest.approx(difference, abs=1e-4)
        assert 0 < value.difference_deviation < value.deviation
    words = str(explanation)
    assert "(value ± standard deviation: share of time as wanted, over 11 epochs)" in words
    best = explanation.actions["heat"].value
    assert best is not None
    line = f"value {best.mean:.3f} ± {best.deviation:.3f}, compared with the rule"
    assert f"{line} {best.difference:+.3f} ± {best.difference_deviation:.3f}" in words


def test_actions_that_are_not_allowed_have_no_value() -> None:
    log = {"s": ["cold", "cold"], "a": ["heat", "wait"], "n": ["warm", "cold"]}
    goal = Goal(prefer="warm", forbid=[("cold", "wait")])
    learner = TransferLearner(goal, method=Measured()).fit(log, Columns.of("s", "a", "n"))
    actions = learner.explain("cold").actions
    assert actions["wait"].value is None
    assert actions["heat"].value is not None


# From a plan.

STATES = Space(("cold", "mild", "warm"))
ACTIONS = Space(("heat", "wait"))


def heated() -> TransitionCounts:
    """Heating in the cold: once to mild, three times to warm, with half the weight."""
    state = [0] * 4
    action = [0] * 4
    next_state = [1, 2, 2, 2]
    weight = [1.0, 0.5, 0.5, 0.5]
    return TransitionCounts.from_records(state, action, next_state, STATES, ACTIONS, weight)


def test_parts_that_add_up_become_shares() -> None:
    """Evidence 1 + 3/4 of 4 in all; the prior is one row for all states."""
    plan = Plan(
        rule=np.array([[0.5, 0.5]]),
        parts={RECORDS: np.array([[1.75, 1.75]]), "prior": np.array([[0.25, 0.25]])},
        adds_up=True,
    )
    reason = reason_of(plan, 0, heated(), np.array([1.0, 0.5]), is_allowed=True)
    assert reason.parts == pytest.approx({RECORDS: 1.75 / 4, "prior": 0.25 / 4})
    assert [each.next_state for each in reason.evidence] == ["mild", "warm"]
    assert [each.records for each in reason.evidence] == [1, 3]
    assert [each.similarity for each in reason.evidence] == pytest.approx([1.0, 0.75])
    assert [each.share for each in reason.evidence] == pytest.approx([1 / 4, 0.75 / 4])


def test_parts_of_an_index_stay_and_records_have_shares_of_the_action() -> None:
    plan = Plan(np.array([[0.5, 0.5]]), {"value": np.array([[3.0, 2.0]])})
    reason = reason_of(plan, 0, heated(), np.array([1.0, 0.5]), is_allowed=True)
    assert reason.parts == {"value": 3.0}
    assert [each.next_state for each in reason.evidence] == ["warm", "mild"]
    assert [each.share for each in reason.evidence] == pytest.approx([0.6, 0.4])
    forbidden = reason_of(plan, 0, heated(), np.array([0.0, 0.0]), is_allowed=False)
    assert forbidden.parts == {}


def test_a_fixed_policy_rests_on_no_records() -> None:
    rule = np.array([[0.25, 0.75]])
    reason = reason_of(Plan(rule, {"random rule": rule}, True), 1, heated(), np.ones(2), True)
    assert reason.parts == {"random rule": 0.75}
    assert reason.evidence == ()


def test_a_state_without_a_feasible_action_is_explained_by_zeros() -> None:
    rule = np.zeros((1, 2))
    reason = reason_of(Plan(rule, {"given policy": rule}, True), 0, heated(), np.ones(2), True)
    assert reason.probability == 0
    assert reason.parts == {"given policy": 0}


def test_what_is_added_to_a_judged_value_is_in_its_deviations() -> None:
    parts = {VALUE: 0.5, DEVIATION: 0.1, EXAMPLE: -0.0001, "optimism": 0.05, BORROWED: 0.5}
    value = ActionValue(0.5, 0.1, 0.0, 0.0)
    heat = Reason(1.0, True, parts, False, (), value)
    line = next(heat.lines())
    assert line.endswith("the past's example adds +0.00 deviations; optimism adds +0.50 deviations")


@pytest.mark.filterwarnings("error")
def test_a_huge_reward_has_a_finite_deviation() -> None:
    log = {"s": ["x", "x", "y", "y"], "a": ["a", "b"] * 2, "n": ["x", "y", "y", "x"]}
    explanations = []
    for scale in (1.0, 1e300):
        learner = TransferLearner(Goal(reward={"y": scale}))
        learner.fit(log, state="s", action="a", next_state="n")
        explanations.append(learner.explain("x").actions["b"].value)
    small, huge = explanations
    assert small is not None
    assert huge is not None
    assert small.deviation > 0
    assert huge.deviation / 1e300 == pytest.approx(small.deviation, rel=1e-6)
    assert huge.mean / 1e300 == pytest.approx(small.mean, rel=1e-6)
