"""Goal: from a person's words to the arrays of an ideal, exactly."""

from __future__ import annotations

import json
import pickle
from collections.abc import Hashable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import Goal, Space
from pastwise.errors import FileError, GoalError, GoalLabelError
from pastwise.goals.ideal import IdealModel

STATES = Space(["cold", "hot", "mild", "warm"])
ACTIONS = Space(["heat", "open", "wait"])
S = len(STATES)
A = len(ACTIONS)
PLACES = Space.sorted([("a", 1), ("a", 2), ("b", 1)], ("room", "floor"))


def wish(**parameters: Any) -> Goal:
    """A goal of what people write, of any type."""
    return Goal(**parameters)


def next_states(goal: Goal, states: Space = STATES) -> list[float]:
    """The ideal probabilities of a goal that speaks of next states alone."""
    ideal = goal.on(states, ACTIONS)
    assert ideal.concerns_next_states_only
    return [float(p) for p in ideal.transition[0, 0]]


def by_label(goal: Goal, states: Space) -> dict[Hashable, float]:
    return dict(zip(states.labels, next_states(goal, states), strict=True))


# Preferences and the floor


@given(
    st.integers(2, 6),
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.sampled_from([0, 1e-5, 0.01, 0.125]),
)
def test_others_have_exactly_the_floor_and_the_preferred_share_the_rest(
    size: int, weights: list[int], floor: float
) -> None:
    wanted = dict(enumerate(weights[:size]))
    found = next_states(wish(prefer=wanted, floor=floor), Space.of_size(size))
    rest = 1 - Fraction(floor) * (size - len(wanted))
    for state, probability in enumerate(found):
        exact = (
            rest * Fraction(wanted[state], sum(wanted.values()))
            if state in wanted
            else Fraction(floor)
        )
        assert probability == pytest.approx(float(exact), rel=1e-14, abs=0)
    assert sum(found) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("size", "floor"),
    [(2, 1e-5), (1001, 1e-5), (1002, 0.01 / 1001), (100_001, 1e-7), (1_000_001, 1e-8)],
)
def test_default_floor(size: int, floor: float) -> None:
    """1e-5, or a hundredth shared by all the others where that is smaller."""
    found = next_states(wish(prefer=[0]), Space.of_size(size))
    np.testing.assert_allclose(found[1:], floor, rtol=1e-12)
    np.testing.assert_allclose(found[0], 1 - (size - 1) * floor, rtol=1e-12)


def test_floor_of_no_others_is_of_no_account() -> None:
    assert next_states(wish(prefer={"a": 3, "b": 1}, floor=0.4), Space("ab")) == [0.75, 0.25]
    assert next_states(wish(prefer={"a": 3, "b": 1}), Space("ab")) == [0.75, 0.25]


def test_floor_of_zero_forbids_the_others() -> None:
    assert next_states(wish(prefer="mild", floor=0)) == [0, 0, 1, 0]
    assert next_states(wish(prefer=["mild", "warm"], floor=0)) == [0, 0, 0.5, 0.5]


@pytest.mark.parametrize("prefer", ["mild", ["mild"], {"mild": 7}, {"mild"}, [["mild", 2]]])
def test_ways_to_name_one_state(prefer: Any) -> None:
    assert next_states(wish(prefer=prefer)) == pytest.approx([1e-5, 1e-5, 1 - 3e-5, 1e-5])


@pytest.mark.parametrize(
    "prefer",
    [
        ("b", 1),
        [("b", 1)],
        {("b", 1): 2},
        '["b", 1]',
        ['["b", 1]'],
        {'["b", 1]': 2},
        [[["b", 1], 2]],
    ],
)
def test_ways_to_name_a_state_of_several_fields(prefer: Any) -> None:
    assert next_states(wish(prefer=prefer), PLACES) == pytest.approx([1e-5, 1e-5, 1 - 2e-5])


@pytest.mark.parametrize(
    ("labels", "key"),
    [([4, 5], "5"), ([False, True], "true"), ([0.5, 2.5], "2.5"), (["4", "5"], "5")],
)
def test_state_is_known_by_its_key_as_well(labels: list[Hashable], key: str) -> None:
    assert next_states(wish(prefer=key), Space(labels)) == next_states(
        wish(prefer=[labels[1]]), Space(labels)
    )
    assert next_states(wish(prefer=key, floor=0), Space(labels)) == [0, 1]


def test_labels_may_be_numpy_numbers() -> None:
    assert next_states(wish(prefer=np.int64(5), floor=0), Space([4, 5])) == [0, 1]


def test_state_named_twice_is_refused() -> None:
    with pytest.raises(GoalError, match="prefer"):
        wish(prefer={5: 1, "5": 2}).on(Space([5, 6]), ACTIONS)


def test_too_high_a_floor_leaves_nothing() -> None:
    with pytest.raises(
        GoalError, match=r"prefer: 3 others with a floor of 0.5 leave nothing for the preferred"
    ):
        wish(prefer="mild", floor=0.5).on(STATES, ACTIONS)


# Targets per field


def test_targets_of_fields_multiply_over_the_combinations_that_occur() -> None:
    """Room a: 9/10, b: 1/10; floor 1: 3/4, 2: 1/4.

    The combination (b, 2) does not occur: 39/40 remain.
    """
    goal = wish(targets={"room": "a", "floor": {1: 3, 2: 1}}, floor=0.1)
    assert by_label(goal, PLACES) == pytest.approx(
        {("a", 1): 27 / 39, ("a", 2): 9 / 39, ("b", 1): 3 / 39}
    )


def test_targets_have_the_default_floor_per_field() -> None:
    found = by_label(wish(targets={"room": ["b"]}), PLACES)
    assert found[("a", 1)] == found[("a", 2)]
    assert found[("a", 1)] / found[("b", 1)] == pytest.approx(1e-5 / (1 - 1e-5))


def test_target_of_a_single_field() -> None:
    rooms = Space(["a", "b"], ("room",))
    assert next_states(wish(targets={"room": "b"}), rooms) == next_states(wish(prefer="b"), rooms)


@pytest.mark.parametrize(
    ("targets", "states", "message"),
    [
        ({"rom": "a"}, PLACES, "no field 'rom'; their fields are room, floor"),
        ({"room": "a"}, STATES, "no field 'room'; their fields are none"),
        ({"room": "aa"}, PLACES, "targets.room: unknown label 'aa'; did you mean 'a'?"),
        ({"floor": 3}, PLACES, "targets.floor: unknown label 3"),
    ],
)
def test_targets_must_be_of_the_states(
    targets: dict[str, Any], states: Space, message: str
) -> None:
    with pytest.raises(GoalError, match="targets") as error:
        wish(targets=targets).on(states, ACTIONS)
    assert message in str(error.value)


# Rewards


def assert_ideal_of_reward(ideal: IdealModel, reward: Any, temperature: float = 1.0) -> None:
    expected = IdealModel.from_reward(reward, temperature, num_actions=A)
    full = (S, A, S)
    np.testing.assert_allclose(
        np.broadcast_to(ideal.log_transition, full), np.broadcast_to(expected.log_transition, full)
    )
    np.testing.assert_array_equal(ideal.log_rule, expected.log_rule)
    assert not ideal.normalised


def test_reward_of_arriving_in_a_state() -> None:
    goal = wish(reward={"mild": 2, "hot": -1.5}, temperature=0.5)
    assert_ideal_of_reward(goal.on(STATES, ACTIONS), [0, -1.5, 2, 0], 0.5)
    assert goal.on(STATES, ACTIONS).log_transition[0, 0].tolist() == [-4, -7, 0, -4]


def test_reward_by_state_and_action() -> None:
    reward = np.zeros((S, A, 1))
    reward[0, 2] = 5
    reward[3, 0] = -2
    assert_ideal_of_reward(
        wish(reward={"cold": {"wait": 5}, "warm": {"heat": -2}}).on(STATES, ACTIONS), reward
    )


def test_reward_by_state_action_and_next_state() -> None:
    reward = np.zeros((S, A, S))
    reward[0, 2, 1] = 5
    reward[0, 2, 3] = 1
    reward[1, 0] = 3
    goal = wish(reward={"cold": {"wait": {"hot": 5, "warm": 1}}, "hot": {"heat": 3}})
    assert_ideal_of_reward(goal.on(STATES, ACTIONS), reward)


def test_reward_may_say_nothing_of_a_state() -> None:
    assert_ideal_of_reward(
        wish(reward={"cold": {}, "hot": {"heat": {}}}).on(STATES, ACTIONS), 0 * np.ones((S, A, S))
    )


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ({"cld": 1}, "reward: unknown label 'cld'; did you mean 'cold'?"),
        ({"cold": {"heet": 1}}, "reward: unknown label 'heet'; did you mean 'heat'?"),
        ({"cold": {"heat": {"mld": 1}}}, "reward: unknown label 'mld'; did you mean 'mild'?"),
        (
            {"cold": 1, "hot": {"heat": 1}},
            "reward.cold must be a table of labels with values, not 1",
        ),
        ({"cold": "high"}, "reward: 'high' is not a finite number"),
        ({"cold": np.inf}, "reward: inf is not a finite number"),
        ({"cold": {"heat": True}}, "reward: True is not a finite number"),
        ({"cold": {"heat": {"hot": None}}}, "reward: None is not a finite number"),
    ],
)
def test_bad_reward_is_refused(reward: dict[str, Any], message: str) -> None:
    with pytest.raises(GoalError, match="reward") as error:
        wish(reward=reward).on(STATES, ACTIONS)
    assert message in str(error.value)


# Tables


def test_table_of_next_states() -> None:
    assert next_states(wish(table={"mild": 0.75, "warm": 0.25})) == [0, 0, 0.75, 0.25]


def test_table_by_state_and_action() -> None:
    table = {
        s: {a: {s: 0.75, "mild": 0.25} if s != "mild" else {s: 1} for a in ACTIONS.labels}
        for s in STATES.labels
    }
    expected = 0.75 * np.eye(S)
    expected[:, 2] += 0.25
    found = wish(table=table).on(STATES, ACTIONS).transition
    np.testing.assert_allclose(found, np.broadcast_to(expected[:, None], (S, A, S)), rtol=1e-15)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"mild": 0.5, "warm": 0.25}, "sums to 0.75, not to 1"),
        ({"cold": {"heat": {"mild": 1}}}, "sums to 0.0, not to 1"),
        ({"mild": 1.5, "warm": -0.5}, "is -0.5; probabilities must be finite and not negative"),
        ({"milt": 1}, "table: unknown label 'milt'; did you mean 'mild'?"),
        ({"mild": "all"}, "table: 'all' is not a finite number"),
    ],
)
def test_bad_table_is_refused(table: dict[str, Any], message: str) -> None:
    with pytest.raises(GoalError, match="table") as error:
        wish(table=table).on(STATES, ACTIONS)
    assert message in str(error.value)


# Actions


@pytest.mark.parametrize(
    ("goal", "rule"),
    [
        (wish(prefer_actions="wait"), [1e-5, 1e-5, 1 - 2e-5]),
        (wish(prefer_actions={"wait": 3, "open": 1}, action_floor=0.2), [0.2, 0.2, 0.6]),
        (wish(prefer_actions=["heat", "wait"], action_floor=0), [0.5, 0, 0.5]),
        (wish(prefer="mild"), [1 / 3, 1 / 3, 1 / 3]),
    ],
)
def test_preferred_actions(goal: Goal, rule: list[float]) -> None:
    np.testing.assert_allclose(goal.on(STATES, ACTIONS).rule, [rule], rtol=1e-14)


def test_goal_of_actions_alone_has_all_states_equal() -> None:
    assert next_states(wish(prefer_actions="wait")) == pytest.approx([1 / S] * S)


def test_preferred_actions_go_with_preferred_states() -> None:
    ideal = wish(prefer="mild", prefer_actions="wait", floor=0.1, action_floor=0.25).on(
        STATES, ACTIONS
    )
    np.testing.assert_allclose(ideal.rule, [[0.25, 0.25, 0.5]])
    np.testing.assert_allclose(ideal.transition, [[[0.1, 0.1, 0.7, 0.1]]])


def test_forbidden_actions_are_a_mask_and_leave_the_ideal_alone() -> None:
    preferred = {"prefer": "mild", "prefer_actions": "heat"}
    free = wish(**preferred).on(STATES, ACTIONS)
    bound = wish(**preferred, forbid=[("hot", "heat"), (None, "open")]).on(STATES, ACTIONS)
    assert free.allowed.all()
    expected = [[1, 0, 1], [0, 0, 1], [1, 0, 1], [1, 0, 1]]
    np.testing.assert_array_equal(bound.allowed, np.array(expected, dtype=bool))
    np.testing.assert_array_equal(bound.log_rule, free.log_rule)
    np.testing.assert_array_equal(bound.log_transition, free.log_transition)


def test_forbidden_actions_of_a_reward() -> None:
    ideal = wish(reward={"mild": 1}, forbid=[("hot", "heat")]).on(STATES, ACTIONS)
    np.testing.assert_array_equal(np.argwhere(~ideal.allowed), [[1, 0]])


@pytest.mark.parametrize(
    "pair",
    [
        (("b", 1), "heat"),
        ['["b", 1]', "heat"],
        [["b", 1], "heat"],
        {"state": ["b", 1], "action": "heat"},
    ],
)
def test_ways_to_forbid(pair: Any) -> None:
    ideal = wish(prefer=("a", 1), forbid=[pair]).on(PLACES, ACTIONS)
    np.testing.assert_array_equal(np.argwhere(~ideal.allowed), [[2, 0]])


@pytest.mark.parametrize(
    ("forbid", "message"),
    [
        (
            [(None, "heat"), ("hot", "open"), ("hot", "wait")],
            "forbid leaves state 'hot' without any action; allow at least one there",
        ),
        (
            [(None, a) for a in ACTIONS.labels],
            "forbid leaves state 'cold' without any action; allow at least one there",
        ),
        ([("hott", "heat")], "forbid: unknown label 'hott'; did you mean 'hot'?"),
        ([("hot", "hat")], "forbid: unknown label 'hat'; did you mean 'heat'?"),
    ],
)
def test_forbidding_too_much_or_the_unknown_is_refused(forbid: Any, message: str) -> None:
    with pytest.raises(GoalError, match="forbid") as error:
        wish(prefer="mild", forbid=forbid).on(STATES, ACTIONS)
    assert str(error.value) == message
    assert error.value.part == "forbid"


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (wish(prefer=["mild", "wam"]), "prefer: unknown label 'wam'; did you mean 'warm'?"),
        (wish(prefer="tepid"), "prefer: unknown label 'tepid'"),
        (wish(prefer_actions="wit"), "prefer_actions: unknown label 'wit'; did you mean 'wait'?"),
    ],
)
def test_labels_that_the_log_does_not_have_are_refused(goal: Goal, message: str) -> None:
    with pytest.raises(GoalLabelError, match="unknown label") as error:
        goal.on(STATES, ACTIONS)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("goal", "part", "label"),
    [
        (wish(prefer="mld"), "prefer", "mld"),
        (wish(prefer="mild", forbid=[("hot", "het")]), "forbid", "het"),
        (wish(prefer="mild", forbid=[("ht", "heat")]), "forbid", "ht"),
        (wish(prefer_actions="het"), "prefer_actions", "het"),
        (wish(reward={"cold": {"het": 1}}), "reward", "het"),
    ],
)
def test_error_of_an_unknown_label_knows_the_part_and_the_label(
    goal: Goal, part: str, label: str
) -> None:
    with pytest.raises(GoalLabelError) as error:
        goal.on(STATES, ACTIONS)
    assert error.value.part == part
    assert error.value.label == label
    copied = pickle.loads(pickle.dumps(error.value))
    assert (copied.part, copied.label, str(copied)) == (part, label, str(error.value))


def test_error_of_a_wrong_part_knows_the_part() -> None:
    with pytest.raises(GoalError) as error:
        wish(prefer="mild", floor=2)
    assert error.value.part == "floor"
    copied = pickle.loads(pickle.dumps(error.value))
    assert (copied.part, str(copied)) == ("floor", str(error.value))


def test_set_of_labels_has_one_order() -> None:
    assert list(wish(prefer={"b", "a", "c"}).prefer) == ["a", "b", "c"]


# Scores


@pytest.mark.parametrize(
    ("goal", "states", "score"),
    [
        (wish(prefer="mild"), STATES, [0, 0, 1, 0]),
        (wish(prefer={"mild": 2, "warm": 1}, floor=0.1), STATES, [0, 0, 1, 0.5]),
        (wish(reward={"mild": 2, "hot": -1}, temperature=3), STATES, [0, -1, 2, 0]),
        (wish(table={"mild": 0.75, "warm": 0.25}), STATES, [0, 0, 1, 1 / 3]),
        (wish(targets={"room": "a", "floor": {1: 4, 2: 1}}), PLACES, [1, 0.25, 0]),
    ],
)
def test_score_of_being_in_a_state(goal: Goal, states: Space, score: list[float]) -> None:
    assert goal.score(states, ACTIONS).tolist() == pytest.approx(score)


def test_score_of_a_transition() -> None:
    reward = wish(reward={"cold": {"heat": {"mild": 2}, "wait": -1}}).score(STATES, ACTIONS)
    assert reward.shape == (4, 3, 4)
    assert reward[0].tolist() == [[0, 0, 2, 0], [0] * 4, [-1] * 4]
    assert not reward[1:].any()
    table = {
        state: {action: {"mild": 0.75, "warm": 0.25} for action in ACTIONS.labels}
        for state in STATES.labels
    }
    assert wish(table=table).score(STATES, ACTIONS)[2, 1].tolist() == pytest.approx(
        [0, 0, 1, 1 / 3]
    )
    assert wish(prefer_actions={"heat": 2, "wait": 1}).score(STATES, ACTIONS).tolist() == [
        [[1], [0], [0.5]]
    ]


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        (wish(reward={"cold": {"het": 1}}), "reward: unknown label 'het'"),
        (wish(prefer_actions="het"), "unknown label 'het'"),
        (wish(prefer="mld"), "unknown label 'mld'; did you mean 'mild'?"),
        (wish(table={"mld": 1}), "table: unknown label 'mld'"),
        (wish(targets={"room": "a"}), "targets: the states have no field 'room'"),
    ],
)
def test_goal_without_a_score(goal: Goal, message: str) -> None:
    with pytest.raises(GoalError, match=r"\w") as error:
        goal.score(STATES, ACTIONS)
    assert message in str(error.value)


# As a sentence


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        (wish(prefer="mild"), "be in mild"),
        (
            wish(prefer=["mild", "warm"], floor=1e-3),
            "be in mild or warm; any other state has probability 0.001",
        ),
        (
            wish(prefer={"mild": 2, ("b", True): 0.5}),
            'be in mild (weight 2) or ["b", true] (weight 0.5)',
        ),
        (
            wish(targets={"room": "a", "floor": {1: 3, 2: 1}}),
            "have room a; have floor 1 (weight 3) or 2 (weight 1)",
        ),
        (wish(reward={"mild": 2}, temperature=0.25), "collect the reward (temperature 0.25)"),
        (wish(table={"mild": 1}), "follow the given table of probabilities"),
        (
            wish(prefer="mild", prefer_actions="wait", forbid=[("hot", "heat"), (None, 5)]),
            "be in mild; preferably do wait; never heat in hot; never 5",
        ),
    ],
)
def test_goal_as_a_sentence(goal: Goal, words: str) -> None:
    assert goal.describe() == words
    assert repr(goal) == f"Goal: {words}"


# What a goal refuses


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "an empty goal: give prefer, targets, reward, table, maximise or prefer_actions"),
        ({"floor": 0.1, "forbid": [("a", "b")]}, "an empty goal"),
        ({"prefer": []}, "an empty goal"),
        (
            {"prefer": "a", "reward": {"a": 1}},
            "a goal says what is wanted in one way; this one has prefer and reward",
        ),
        ({"targets": {"a": "b"}, "table": {"a": 1}}, "this one has targets and table"),
        ({"prefer": {"a": 0}}, "prefer: a: a weight must be positive, not 0"),
        ({"prefer": {"a": -1}}, "prefer: a: a weight must be positive, not -1"),
        ({"prefer": {"a": np.nan}}, "prefer: a: nan is not a finite number"),
        ({"prefer": {"a": True}}, "prefer: a: True is not a finite number"),
        ({"prefer": {"a": 10**400}}, "is not a finite number"),
        ({"prefer": [[{"a": 1}, 2]]}, "prefer: {'a': 1} is no label"),
        ({"prefer": "a", "forbid": [["a", {"b": 1}]]}, "forbid: {'b': 1} is no label"),
        ({"prefer": {("a", 1): "x"}}, """prefer: ["a", 1]: 'x' is not a finite number"""),
        ({"prefer_actions": {"a": np.inf}}, "prefer_actions: a: inf is not a finite number"),
        ({"targets": {"room": {"a": 0}}}, "targets.room: a: a weight must be positive, not 0"),
        ({"targets": {"room": []}}, "targets.room"),
        ({"targets": "mild"}, "targets must be a table of labels with values, not 'mild'"),
        ({"reward": ["mild"]}, "reward must be a table of labels with values, not ['mild']"),
        ({"table": 5}, "table must be a table of labels with values, not 5"),
        ({"prefer": "a", "floor": 1}, "floor must lie in [0, 1), not 1"),
        ({"prefer": "a", "floor": -0.1}, "floor must lie in [0, 1), not -0.1"),
        ({"prefer": "a", "floor": np.nan}, "floor must lie in [0, 1), not nan"),
        ({"prefer": "a", "floor": "low"}, "floor"),
        ({"prefer_actions": "a", "action_floor": 2}, "action_floor must lie in [0, 1), not 2"),
        ({"reward": {"a": 1}, "temperature": 0}, "the temperature must be positive, not 0"),
        ({"reward": {"a": 1}, "temperature": np.inf}, "the temperature must be positive, not inf"),
        ({"reward": {"a": 1}, "temperature": "cold"}, "temperature"),
        (
            {"reward": {"a": 1}, "prefer_actions": "b"},
            "a reward and prefer_actions do not go together",
        ),
        (
            {"prefer": "a", "forbid": [("a", "b", "c")]},
            "forbid takes pairs of a state and an action",
        ),
        (
            {"prefer": "a", "forbid": ["heat"]},
            "forbid takes pairs of a state and an action, not 'heat'",
        ),
        (
            {"prefer": "a", "forbid": [{"state": "hot"}]},
            "forbid takes pairs of a state and an action",
        ),
        (
            {"prefer": "a", "forbid": [{"action": "heat", "when": 1}]},
            "forbid takes pairs of a state and an action",
        ),
        ({"prefer": "a", "forbid": 5}, "forbid"),
    ],
)
def test_goal_that_makes_no_sense_is_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(GoalError, match=r"\w") as error:
        Goal.from_dict(parameters)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("prefers", "; did you mean 'prefer'?"),
        ("forbit", "; did you mean 'forbid'?"),
        (
            "colour",
            "; known are prefer, floor, targets, reward, temperature, table, prefer_actions",
        ),
    ],
)
def test_unknown_key_names_the_nearest(key: str, hint: str) -> None:
    with pytest.raises(GoalError, match=f"unknown key '{key}' in the goal") as error:
        Goal.from_dict({"prefer": "mild", key: 1})
    assert hint in str(error.value)


# To plain values and back


GOALS = [
    wish(prefer="mild"),
    wish(prefer={"mild": 2.0, "a = b: c": 1.0}, floor=1e-3),
    wish(prefer={5: 1, True: 2}),
    wish(prefer=[("b", 1), ("b", False)], forbid=[(("b", 1), ("x", 2)), (None, 5), (3, "heat")]),
    wish(prefer=[("a", "b")]),
    wish(targets={"room": "a", "floor": {1: 3, 2: 1}}, floor=0.1),
    wish(targets={"room": [("a", 1)]}),
    wish(reward={"mild": 2, ("a", 1): -1.0}, temperature=0.5),
    wish(reward={"cold": {"wait": 5, "heat": {"hot": 1}}}),
    wish(table={5: 0.25, 6: 0.75}),
    wish(table={True: {"x": {True: 1.0}}}),
    wish(prefer_actions={("a", 1): 1, "b": 2}, action_floor=0.1),
    wish(prefer={'["a", 1]': 1}),
]


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_goal_survives_json(goal: Goal) -> None:
    back = Goal.from_dict(json.loads(json.dumps(goal.to_dict(), allow_nan=False)))
    assert back == goal
    assert repr(back) == repr(goal)
    assert [type(label) for label in back.prefer] == [type(label) for label in goal.prefer]


def test_numpy_numbers_of_a_goal_survive_json() -> None:
    goal = wish(
        prefer={np.int64(5): np.float64(2), "mild": np.float32(0.5)}, floor=np.float64(0.125)
    )
    assert Goal.from_dict(json.loads(json.dumps(goal.to_dict()))) == goal


def test_what_is_at_its_default_is_left_out() -> None:
    assert wish(prefer="mild").to_dict() == {"prefer": [["mild", 1.0]]}
    assert wish(reward={"mild": 2}, temperature=0.5).to_dict() == {
        "reward": [["mild", 2]],
        "temperature": 0.5,
    }


# TOML


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "goal.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ('prefer = "mild"', wish(prefer="mild")),
        ('prefer = ["mild", "warm"]\nfloor = 1e-4', wish(prefer=["mild", "warm"], floor=1e-4)),
        ('[prefer]\nmild = 2\n"a = b: c" = 0.5', wish(prefer={"mild": 2, "a = b: c": 0.5})),
        (
            '[targets]\nroom = "a"\nfloor = {1 = 3, 2 = 1}',
            wish(targets={"room": "a", "floor": {"1": 3, "2": 1}}),
        ),
        (
            "temperature = 0.5\n[reward]\nmild = 2\nhot = -1",
            wish(reward={"mild": 2, "hot": -1}, temperature=0.5),
        ),
        (
            "[reward.cold]\nheat = 1\nwait = {hot = 2}",
            wish(reward={"cold": {"heat": 1, "wait": {"hot": 2}}}),
        ),
        ("table = {mild = 0.75, hot = 0.25}", wish(table={"mild": 0.75, "hot": 0.25})),
        (
            'prefer_actions = "wait"\naction_floor = 0.1',
            wish(prefer_actions="wait", action_floor=0.1),
        ),
        (
            'prefer = "mild"\n'
            'forbid = [["hot", "heat"], {action = "open"}, {state = "cold", action = "wait"}]',
            wish(prefer="mild", forbid=[("hot", "heat"), (None, "open"), ("cold", "wait")]),
        ),
        ("prefer = '[\"b\", 1]'", wish(prefer='["b", 1]')),
        ("prefer = 5", wish(prefer=5)),
        ('prefer = "žhavo, „ano“"', wish(prefer="žhavo, „ano“")),
    ],
)
def test_goal_from_a_file(tmp_path: Path, text: str, goal: Goal) -> None:
    assert Goal.from_toml(written(tmp_path, text)) == goal
    assert Goal.from_toml(str(tmp_path / "goal.toml")) == goal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('prefre = "mild"', "unknown key 'prefre' in the goal; did you mean 'prefer'?"),
        ('prefer = "mild', "is not a TOML file"),
        ("prefer = mild", "is not a TOML file"),
        (b'prefer = "\xff"', "is not a TOML file"),
        ("", "an empty goal"),
        ("prefer = {mild = 'a lot'}", "prefer: mild: 'a lot' is not a finite number"),
        ("prefer = {mild = true}", "prefer: mild: True is not a finite number"),
        ("prefer = 'mild'\nfloor = 'low'", "floor"),
        ("prefer = 'mild'\nfloor = [1]", "floor"),
        ("reward = {mild = 1}\ntemperature = 'low'", "temperature"),
        ("targets = 'mild'", "targets must be a table of labels with values, not 'mild'"),
        ("prefer = 'mild'\nforbid = 'heat'", "forbid takes pairs of a state and an action"),
        ("prefer = 'mild'\nforbid = true", "forbid"),
        ("prefer = [{mild = 1}]", "prefer"),
        ("prefer = 2020-01-01", "prefer"),
    ],
)
def test_bad_file_is_refused_by_name_in_one_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(GoalError, match=r"goal\.toml") as error:
        Goal.from_toml(written(tmp_path, text))
    assert message in str(error.value).replace(str(tmp_path), "")
    assert "\n" not in str(error.value)


def test_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no such file: .*nowhere\.toml"):
        Goal.from_toml(tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prefer = 'mld'", "prefer: unknown label 'mld'; did you mean 'mild'?"),
        ("table = {mild = 0.75}", "sums to 0.75, not to 1"),
    ],
)
def test_file_that_does_not_fit_the_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    goal = Goal.from_toml(written(tmp_path, text))
    with pytest.raises(GoalError, match=r"\w") as error:
        goal.on(STATES, ACTIONS)
    assert message in str(error.value)
