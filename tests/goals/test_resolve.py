"""Goals with conditions: the states that they stand for, and how they read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from pastwise.data.conditions import parse_condition
from pastwise.data.regions import Categories, Interval, Point, Region, label_regions
from pastwise.data.space import Label, Space
from pastwise.errors import ConditionError, GoalError, GoalLabelError, StraddleError
from pastwise.goals.goal import Goal

WAGES = Space(("low", "middle", "high"))
REGIONS: Mapping[Label, Region] = {
    "low": {"wage": Interval(high=2)},
    "middle": {"wage": Interval(low=2, high=4)},
    "high": {"wage": Interval(low=4)},
}
ACTIONS = Space(("strike", "work"))


def resolved(goal: Goal, states: Space = WAGES) -> Goal:
    return goal.resolved(lambda: REGIONS, states)


def test_a_condition_stands_for_the_states_that_satisfy_it() -> None:
    goal = Goal(prefer="wage >= 2", forbid=[("wage < 2", "strike"), (None, "work")])
    in_labels = resolved(goal)
    assert in_labels.prefer == {"middle": 1, "high": 1}
    assert in_labels.forbid == (("low", "strike"), (None, "work"))


def test_a_goal_of_conditions_is_that_of_their_labels() -> None:
    goal = Goal(prefer={"wage >= 4": 2, "low": 1}, floor=0.01, forbid=[("wage < 4", "strike")])
    same = Goal(
        prefer={"high": 2, "low": 1},
        floor=0.01,
        forbid=[("low", "strike"), ("middle", "strike")],
    )
    one = resolved(goal).on(WAGES, ACTIONS)
    other = same.on(WAGES, ACTIONS)
    np.testing.assert_array_equal(one.log_transition, other.log_transition)
    np.testing.assert_array_equal(one.allowed, other.allowed)
    np.testing.assert_array_equal(resolved(goal).score(WAGES, ACTIONS), same.score(WAGES, ACTIONS))


def test_the_largest_weight_counts_and_rewards_add_up() -> None:
    weights = resolved(Goal(prefer={"wage >= 2": 1, "high": 3, "wage < 4": 2})).prefer
    assert weights == {"middle": 2, "high": 3, "low": 2}
    rewards = resolved(Goal(reward={"wage >= 2": 1, "wage >= 4": 2.5, "low": -1})).reward
    assert rewards == {"middle": 1, "high": 3.5, "low": -1}


def test_rewards_by_action_take_conditions_that_do_not_overlap() -> None:
    by_action = {"strike": 1.0}
    goal = Goal(reward={"wage < 2": by_action, "wage >= 4": {"work": 2.0}})
    assert resolved(goal).reward == {"low": by_action, "high": {"work": 2.0}}
    with pytest.raises(GoalError, match="two entries name the state 'low'"):
        resolved(Goal(reward={"wage < 2": by_action, "low": {"work": 2.0}}))


def test_a_label_is_a_label_even_if_it_reads_as_a_condition() -> None:
    states = Space(("wage < 2", "wage >= 2"))
    goal = Goal(prefer="wage < 2").resolved(dict, states)
    assert goal.prefer == {"wage < 2": 1}


def test_a_goal_without_conditions_needs_no_regions() -> None:
    goal = Goal(prefer={"low": 1}, forbid=[("high", "strike")])

    def no_regions() -> Mapping[Label, Region]:
        raise AssertionError("regions were computed for nothing")

    assert goal.resolved(no_regions, WAGES) is goal


def test_a_state_on_both_sides_is_named() -> None:
    with pytest.raises(StraddleError) as caught:
        resolved(Goal(prefer="wage >= 3 and wage < 9"))
    assert caught.value.state == "middle"
    assert caught.value.comparison == "wage >= 3"
    assert "learn with this goal" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("wage >> 2", ConditionError, "prefer: expected a number or text, found '>'"),
        ("salary >= 2", GoalError, "no column|nothing of a column 'salary'; they are made of wage"),
        ("wgae >= 2", GoalError, "did you mean 'wage'?"),
        ("wage is missing", GoalError, "no state of the log has wage is missing .wage is -inf to"),
        ("wage >= two", GoalError, "wage holds numbers or dates, and 'two' is neither"),
        ("wage == high or wage > 4", GoalError, "'high' is neither; write a number, or a date as"),
        ("medium", GoalLabelError, "unknown label 'medium'"),
    ],
)
def test_what_is_wrong_is_said(text: str, error: type[GoalError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        resolved(Goal(prefer=[text, "wage >= 2"])).on(WAGES, ACTIONS)
    assert caught.value.part == "prefer"


def test_a_slip_in_a_label_with_signs_is_a_slip() -> None:
    states = Space(("x=1 low", "x=2 low"))
    with pytest.raises(GoalLabelError, match="did you mean"):
        Goal(prefer="x=3 low").resolved(dict, states).on(states, ACTIONS)


def test_forbidding_what_never_happens_forbids_nothing() -> None:
    goal = resolved(Goal(prefer="high", forbid=[("wage is missing", "strike")]))
    assert goal.forbid == ()


def test_targets_take_conditions_on_their_field() -> None:
    states = Space([(room, wage) for room in "ab" for wage in (1, 2, 3)], ("room", "wage"))
    regions = label_regions(states, states.fields)
    for wanted in (">= 2", "wage >= 2"):
        goal = Goal(targets={"wage": {wanted: 1, "1": 0.5}, "room": "a"})
        in_labels = goal.resolved(lambda: regions, states)
        assert in_labels.targets == {"wage": {2: 1, 3: 1, 1: 0.5}, "room": {"a": 1}}
        assert goal.conditions() == (parse_condition("wage >= 2"),)
    with pytest.raises(GoalError, match="other fields than 'wage'"):
        Goal(targets={"wage": "room == a"}).resolved(lambda: regions, states)
    with pytest.raises(GoalError, match=r"no state of the log has wage > 3 .wage is 1, 2, 3"):
        Goal(targets={"wage": "> 3"}).resolved(lambda: regions, states)


def test_numeric_labels_are_compared_as_numbers() -> None:
    for labels in ((1, 2, 10), ("1", "2", "10"), (1.0, 2.0, 10.0)):
        states = Space(labels)
        regions = label_regions(states, ["wage"])
        goal = Goal(prefer="wage >= 2").resolved(partial(dict, regions), states)
        assert list(goal.prefer) == list(labels[1:])


@pytest.mark.parametrize(
    ("goal", "text"),
    [
        (Goal(prefer="wage >= 2"), "be where wage >= 2"),
        (Goal(prefer={"a": 1, "b": 1, "wage >= 2": 1}), "be in a or b or where wage >= 2"),
        (
            Goal(prefer={"wage >= 2": 3, "a": 1}),
            "be where wage >= 2 (weight 3) or in a (weight 1)",
        ),
        (
            Goal(prefer="a", forbid=[("wage >= 4", "strike")]),
            "be in a; never strike where wage >= 4",
        ),
        (Goal(targets={"wage": ">= 2"}), "have wage >= 2"),
        (Goal(targets={"wage": "wage >= 2"}), "have wage >= 2"),
    ],
)
def test_a_goal_with_conditions_reads_well(goal: Goal, text: str) -> None:
    assert goal.describe() == text


def test_a_resolved_goal_reads_as_it_was_stated() -> None:
    goal = Goal(prefer="wage >= 2")
    in_labels = resolved(goal)
    assert repr(in_labels) == repr(goal)
    assert in_labels.to_dict() == goal.to_dict()
    assert Goal.from_dict(in_labels.to_dict()) == goal
    assert in_labels.wanted_share == "share of time where wage >= 2"
    assert Goal(prefer={"wage >= 2": 1, "a": 1}).wanted_share == "share of time as wanted"


def test_a_goal_from_what_people_have(tmp_path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "goal.toml"
    file.write_text('[prefer]\n"wage >= 2" = 1.0\n', encoding="utf-8")
    goal = Goal(prefer="wage >= 2")
    assert Goal.of(goal) is goal
    assert Goal.of({"prefer": "wage >= 2"}) == goal
    assert Goal.of(file) == goal
    assert Goal.of(str(file)) == goal
    with pytest.raises(GoalError, match=r"such as Goal\(prefer=\['a', 'b'\]\)"):
        Goal.of(["a", "b"])
    with pytest.raises(GoalError, match="unknown key 'wage >= 2' in the goal"):
        Goal.of({"wage >= 2": 1})
    with pytest.raises(GoalError, match="the goal must be a Goal"):
        Goal.of(3)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (Categories(frozenset({""})), "ward is ''"),
        (Categories(frozenset({" ", "icu"})), "ward is ' ', icu"),
        (
            Categories(frozenset({"er", "icu"}), is_complement=True),
            "ward is anything but er and icu",
        ),
        (Point(""), "ward is ''"),
    ],
)
def test_what_the_states_have_is_always_visible(values: Any, shown: str) -> None:
    states = Space(("only",))
    goal = Goal(prefer="ward == 'er'")
    with pytest.raises(GoalError) as caught:
        goal.resolved(lambda: {"only": {"ward": values}}, states)
    assert str(caught.value).endswith(f"({shown})")
