"""Utility: what a goal wants of each transition, after an episode, and of a whole log."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.evaluation.criterion import Criterion
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from tests.helpers.oracles import counts_of, counts_of_list, random_ideal, random_log, random_rows

STATES = Space(("a", "b", "c"))
ACTIONS = Space(("left", "right"))


def terminal(*states: int) -> IntArray:
    return np.array(states, dtype=np.int64)


def utility_of(goal: Goal, *ends: int) -> Utility:
    return Utility.of(goal.on(STATES, ACTIONS), terminal(*ends))


# The scale


@pytest.mark.parametrize("floor", [None, 1e-5, 0.01, 0.2])
def test_preferred_state_has_utility_one_for_any_floor(floor: float | None) -> None:
    utility = utility_of(Goal(prefer="b", floor=floor))
    np.testing.assert_allclose(utility.next_state_part[0, 0], [0, 1, 0], atol=1e-15)
    np.testing.assert_array_equal(utility.action_part, [[0, 0]])


def test_graded_preference_is_graded_by_its_logarithm() -> None:
    utility = utility_of(Goal(table={"a": 0.6, "b": 0.3, "c": 0.1}))
    np.testing.assert_allclose(utility.next_state_part[0, 0], [1, log(3) / log(6), 0], atol=1e-15)


@pytest.mark.parametrize("floor", [None, 1e-5, 0.1])
def test_state_of_half_the_weight_has_half_the_utility(floor: float | None) -> None:
    utility = utility_of(Goal(prefer={"a": 3, "b": 1.5}, floor=floor))
    np.testing.assert_allclose(utility.next_state_part[0, 0], [1, 0.5, 0], atol=1e-15)
    ending = utility_of(Goal(prefer={"a": 3, "b": 1.5}, floor=floor), 0, 1)
    np.testing.assert_allclose(ending.next_state_part[0, 0], [1, 0.5, 0], atol=1e-15)


def test_preferred_actions_are_graded_by_their_weight() -> None:
    actions = Space(("left", "right", "up"))
    ideal = Goal(prefer_actions={"left": 2, "right": 1}).on(STATES, actions)
    utility = Utility.of(ideal, terminal())
    np.testing.assert_allclose(utility.action_part, [[0, -0.5, -1]], atol=1e-15)


@pytest.mark.parametrize(
    "goal",
    [
        Goal(prefer={"a": 2, "b": 1}),
        Goal(prefer={"a": 4, "b": 2, "c": 1}),
        Goal(prefer_actions="left"),
        Goal(reward={"a": -3, "b": 1, "c": 5}),
        Goal(reward={"a": {"left": 2.0, "right": -1.0}}),
        Goal(reward={"a": {"left": 2, "right": {"b": -2}}}),
    ],
)
def test_utility_in_the_goals_unit_is_what_rules_are_judged_by(goal: Goal) -> None:
    state, action, next_state = np.indices((3, 2, 3))
    score = np.broadcast_to(goal.score(STATES, ACTIONS), (3, 2, 3))
    utility = utility_of(goal)
    found = utility.of_transitions(state, action, next_state)
    np.testing.assert_allclose(utility.origin + utility.unit * found, score, atol=1e-12)


def test_totals_until_the_end_have_no_origin() -> None:
    utility = utility_of(Goal(reward={"a": -3, "b": 1, "c": 5}), 2)
    np.testing.assert_allclose(utility.unit * utility.next_state_part[0, 0], [-3, 1, 5])
    assert utility.origin == 0


GOALS = {
    "a state": Goal(prefer="a"),
    "the end": Goal(prefer="c"),
    "a state and the end": Goal(prefer={"a": 1, "c": 0.5}),
    "all states": Goal(prefer={"a": 1, "b": 0.5, "c": 0.2}),
    "actions": Goal(prefer_actions={"left": 1, "right": 0.9}),
    "a state and actions": Goal(prefer="a", prefer_actions="left"),
    "the end and actions": Goal(prefer="c", prefer_actions="left"),
    "a reward": Goal(reward={"a": -3, "b": 1, "c": 5}),
    "a reward of actions": Goal(reward={"a": {"left": 2.0, "right": -1.0}}),
    "the same reward for every step": Goal(reward={"a": -2, "b": -2, "c": -2}),
    "any action": Goal(prefer_actions={"left": 1, "right": 1}),
    "any state": Goal(prefer=["a", "b", "c"]),
    "a table": Goal(
        table={
            state: {
                "left": {"a": 0.6, "b": 0.1, "c": 0.3},
                "right": {"a": 0.1, "b": 0.1, "c": 0.8},
            }
            for state in "abc"
        }
    ),
}


@pytest.mark.parametrize("ends", [(), (2,)], ids=["no end", "an end"])
@pytest.mark.parametrize("name", GOALS)
def test_a_plan_adds_up_until_the_end_where_an_evaluation_does(
    name: str, ends: tuple[int, ...]
) -> None:
    log = counts_of_list([(0, 0, 1), (1, 1, 0), (0, 1, 2)], 3, 2)
    log = replace(log, states=STATES, actions=ACTIONS).ending_in(terminal(*ends))
    utility = utility_of(GOALS[name], *ends)
    assert utility.stops_at_end == (Criterion.of(GOALS[name], log).ends is not None)
    assert not (utility.stops_at_end and utility.after_end.any())

    # Where it is what an evaluation measures, it is so in the goal's own unit.
    assert utility.is_measure == (
        name not in ("a table", "a state and actions", "the end and actions")
    )
    if utility.is_measure:
        state, action, next_state = np.indices((3, 2, 3))
        found = utility.of_transitions(state, action, next_state)
        score = np.broadcast_to(GOALS[name].score(STATES, ACTIONS), (3, 2, 3))
        np.testing.assert_allclose(utility.origin + utility.unit * found, score, atol=1e-12)


def test_forbidden_state_lies_far_below_the_least_wanted() -> None:
    """A factor of 100,000 in probability, or any other that is given."""
    ideal = Goal(table={"a": 0.7, "b": 0.3}).on(STATES, ACTIONS)
    for ratio in (1e-5, 1e-2):
        utility = Utility.of(ideal, terminal(), forbidden_ratio=ratio)
        middle = 1 - log(7 / 3) / log(7 / 3 / ratio)
        np.testing.assert_allclose(utility.next_state_part[0, 0], [1, middle, 0], atol=1e-15)
    by_default = Utility.of(ideal, terminal())
    explicit = Utility.of(ideal, terminal(), forbidden_ratio=1e-5)
    np.testing.assert_array_equal(by_default.next_state_part, explicit.next_state_part)


def test_one_possible_state_has_all_the_utility() -> None:
    utility = utility_of(Goal(prefer="a", floor=0))
    np.testing.assert_allclose(utility.next_state_part[0, 0], [1, 0, 0], atol=1e-15)


@pytest.mark.parametrize("temperature", [0.01, 1.0, 300.0])
def test_utility_is_proportional_to_a_reward_in_any_unit_and_temperature(
    temperature: float,
) -> None:
    utility = utility_of(Goal(reward={"a": -3, "b": 1, "c": 5}, temperature=temperature))
    np.testing.assert_allclose(utility.next_state_part[0, 0], [0, 0.5, 1], atol=1e-12)
    np.testing.assert_array_equal(utility.action_part, [[0, 0]])


def test_reward_may_depend_on_state_and_action() -> None:
    utility = utility_of(Goal(reward={"a": {"left": 2, "right": {"b": -2}}}))
    table = np.zeros((3, 2, 3))
    table[0, 0] = 2
    table[0, 1, 1] = -2
    np.testing.assert_allclose(utility.next_state_part, (table + 2) / 4, atol=1e-12)


def test_preferred_actions_share_the_scale_with_preferred_states() -> None:
    """The worst action into the worst state has 0, the best into the best 1; between them lie
    shares of ln 4 and ln 9.
    """
    utility = Utility.of(IdealModel.of([0.8, 0.2], [0.9, 0.1]), terminal())
    np.testing.assert_allclose(utility.next_state_part[0, 0], [1, log(9) / log(36)])
    np.testing.assert_allclose(utility.action_part, [[0, -log(9) / log(36)]])
    assert utility.minimum == pytest.approx(0, abs=1e-15)


def test_goal_of_actions_alone_wants_every_state() -> None:
    utility = utility_of(Goal(prefer_actions="left"))
    np.testing.assert_allclose(utility.next_state_part, 1)
    np.testing.assert_allclose(utility.action_part, [[0, -1]])


def test_allowed_action_of_probability_zero_is_hardly_wanted() -> None:
    utility = Utility.of(IdealModel.of([0.5, 0.5], [0.6, 0.4, 0.0]), terminal())
    np.testing.assert_allclose(utility.action_part, [[0, -log(1.5) / log(1.5e5), -1]])


def test_action_that_is_not_allowed_does_not_stretch_the_scale() -> None:
    ideal = IdealModel.of([0.8, 0.2], [0.5, 0.49, 0.01], allowed=[True, True, False])
    utility = Utility.of(ideal, terminal())
    scale = log(4) + log(50 / 49)
    least = -log(50 / 49) / scale
    np.testing.assert_allclose(utility.next_state_part[0, 0], [1, 1 - log(4) / scale])
    np.testing.assert_allclose(utility.action_part, [[0, least, least]])


def test_goal_that_ranks_all_transitions_equal_has_no_utility() -> None:
    utility = Utility.of(IdealModel.of([0.5, 0.5], num_actions=2), terminal(1))
    np.testing.assert_array_equal(utility.next_state_part, [[[0, 0]]])
    np.testing.assert_array_equal(utility.action_part, [[0, 0]])
    np.testing.assert_array_equal(utility.after_end, [0])


def test_several_goals_at_once_are_refused() -> None:
    several = IdealModel.of(random_rows(np.random.default_rng(0), 2, 1, 1, 3), num_actions=2)
    with pytest.raises(ParameterError, match="one goal at a time"):
        Utility.of(several, terminal())


# Terminal states


def test_reward_keeps_its_zero_where_episodes_end() -> None:
    """Utility is reward / (largest - smallest), and nothing is collected after the end."""
    utility = utility_of(Goal(reward={"a": -3, "b": 1, "c": 5}), 2)
    np.testing.assert_allclose(utility.next_state_part[0, 0], np.array([-3, 1, 5]) / 8)
    np.testing.assert_array_equal(utility.after_end, [0])
    assert utility.stops_at_end


def test_goal_that_wants_only_the_end_collects_nothing_after_it() -> None:
    utility = utility_of(Goal(prefer="c"), 1, 2)
    np.testing.assert_allclose(utility.next_state_part[0, 0], [0, 0, 1], atol=1e-15)
    np.testing.assert_array_equal(utility.after_end, [0, 0])
    assert utility.stops_at_end


def test_terminal_state_counts_on_where_other_states_are_wanted_too() -> None:
    """Otherwise an episode that never ends would collect more than one that ends well."""
    utility = utility_of(Goal(prefer=["a", "c"]), 1, 2)
    np.testing.assert_allclose(utility.after_end, [0, 1], atol=1e-15)
    assert not utility.stops_at_end


def test_least_wanted_next_state_is_the_zero_where_episodes_end() -> None:
    """A preferred action then has no part in the zero."""
    ideal = IdealModel.of([0.8, 0.2], [0.9, 0.1])
    utility = Utility.of(ideal, terminal(0))
    np.testing.assert_allclose(utility.next_state_part[0, 0], [log(4) / log(36), 0], atol=1e-15)


def test_nothing_stops_without_terminal_states() -> None:
    assert not utility_of(Goal(prefer="a")).stops_at_end


def test_one_per_epoch_until_the_end() -> None:
    utility = Utility.one_per_epoch(3, terminal(1))
    np.testing.assert_array_equal(utility.of_transitions(0, 1, np.arange(3)), [1, 1, 1])
    np.testing.assert_array_equal(utility.after_end, [0])
    assert utility.concerns_next_states_only


# Transitions and logs

S = 3
A = 4
IDEALS = {
    "next states": lambda rng: IdealModel.of([0.5, 0.3, 0.2], num_actions=A),
    "states and next states": lambda rng: IdealModel.of(random_rows(rng, S, 1, S), num_actions=A),
    "everything": lambda rng: random_ideal(rng, S, A),
    "a rule for all states": lambda rng: IdealModel.of(
        random_rows(rng, S, A, S), random_rows(rng, A)
    ),
    "next states and a rule": lambda rng: IdealModel.of([0.5, 0.3, 0.2], random_rows(rng, S, A)),
}


def full_table(utility: Utility) -> FloatArray:
    """Utility of every transition: [S, A, S]."""
    of_next_state = np.broadcast_to(utility.next_state_part, (S, A, S))
    of_action = np.broadcast_to(utility.action_part, (S, A))
    return of_next_state + of_action[:, :, None]


@pytest.mark.parametrize("name", IDEALS)
def test_utility_of_transitions_is_an_entry_of_the_full_table(name: str) -> None:
    rng = np.random.default_rng(2)
    utility = Utility.of(IDEALS[name](rng), terminal())
    state, action, next_state = np.indices((S, A, S))
    found = utility.of_transitions(state, action, next_state)
    np.testing.assert_array_equal(found, full_table(utility))
    assert utility.minimum <= found.min()
    assert found.max() <= 1 + 1e-12


@pytest.mark.parametrize("name", IDEALS)
def test_mean_utility_of_a_log_is_that_of_its_records_one_by_one(name: str) -> None:
    """With half a record of utility 1 and half a record of utility 0 added."""
    rng = np.random.default_rng(1)
    utility = Utility.of(IDEALS[name](rng), terminal())
    log_ = random_log(rng, S, A, 2, 30)
    table = full_table(utility)
    found = utility.of_log(counts_of(log_, S, A))
    assert found.is_useful.all()
    np.testing.assert_array_equal(found.total_weight, [30, 30])
    for run in range(2):
        records = zip(log_.state[run], log_.action[run], log_.next_state[run], strict=True)
        one_by_one = [table[s, a, n] for s, a, n in records]
        assert found.mean[run] == pytest.approx((sum(one_by_one) + 0.5) / 31)


def test_weights_count_in_the_utility_of_a_log() -> None:
    utility = utility_of(Goal(prefer="b"))
    counts = counts_of_list([(0, 0, 1), (0, 1, 2)], 3, 2, weight=[3.0, 0.5])
    found = utility.of_log(counts)
    assert found.total_weight == 3.5
    assert found.mean == pytest.approx((3 + 0.5) / 4.5)


@pytest.mark.parametrize(("next_state", "useful"), [(0, False), (1, True)])
def test_log_is_useful_if_any_record_has_more_than_the_least_utility(
    next_state: int, useful: bool
) -> None:
    utility = utility_of(Goal(prefer="b"))
    counts = counts_of_list([(0, 0, 0), (1, 0, 2), (2, 1, next_state)], 3, 2)
    assert bool(utility.of_log(counts).is_useful) is useful


def test_empty_log_has_mean_one_half_and_is_not_useful() -> None:
    counts = TransitionCounts.empty(STATES, ACTIONS, (2,))
    found = utility_of(Goal(prefer="b")).of_log(counts)
    np.testing.assert_array_equal(found.mean, [0.5, 0.5])
    np.testing.assert_array_equal(found.total_weight, [0, 0])
    np.testing.assert_array_equal(found.is_useful, [False, False])
