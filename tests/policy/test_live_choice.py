"""Choices of a live policy: propensities, outside random numbers, possible actions, a floor."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pastwise as pw
from pastwise.errors import InfeasibleError, LabelError, ParameterError, UnknownLabelError
from pastwise.policy.choice import Choice, conditioned
from tests.helpers.loops import ACTIONS, COLUMNS, GOALS, LOG, STATES, Record, learned, records

uniforms = st.floats(0.0, 1.0, exclude_max=True)
some_actions = st.none() | st.lists(st.sampled_from(ACTIONS), min_size=1, unique=True)
floors = st.floats(0.0, 0.3)

LEARNER = learned()
LOOPS = [learned(goal).live(seed=0) for goal in GOALS]


# Propensities.


@given(st.sampled_from(LOOPS), st.sampled_from(STATES), uniforms, some_actions, floors)
def test_the_propensity_is_the_probability_that_the_rule_shows(
    live: pw.LivePolicy, state: str, uniform: float, allowed: Any, floor: float
) -> None:
    """To the last bit, and zero for no choice."""
    try:
        rule = live.rule(state, allowed=allowed, floor=floor)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            live.choose(state, uniform=uniform, allowed=allowed, floor=floor)
        return
    choice = live.choose(state, uniform=uniform, allowed=allowed, floor=floor)
    assert choice.propensity == rule[choice.action] > 0
    assert sum(rule.values()) == pytest.approx(1, abs=1e-15)
    again = live.decide(state, uniform=uniform, allowed=allowed, floor=floor)
    assert again == choice.action


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=5), st.data())
def test_possible_actions_and_floor_follow_the_formula(weights: list[float], data: Any) -> None:
    """Computed in exact fractions."""
    indices = list(range(len(weights)))
    possible = data.draw(st.lists(st.sampled_from(indices), min_size=1, unique=True))
    number = len(possible)
    floor = data.draw(st.floats(0, 1 / number).filter(lambda each: number * each <= 1))
    rule = conditioned(weights, possible, floor)

    total = sum(Fraction(weights[action]) for action in possible)
    for action in indices:
        expected = Fraction(0)
        if action in possible:
            share = Fraction(weights[action]) / total if total else Fraction(1, number)
            expected = Fraction(floor) + (1 - number * Fraction(floor)) * share
            assert rule[action] >= floor
        assert rule[action] == pytest.approx(float(expected), rel=1e-14, abs=1e-300)


def test_a_uniform_number_samples_by_the_inverse_of_the_distribution() -> None:
    live = learned(pw.Goal(prefer=["mild", "hot"], floor=0.2)).live()
    rule = live.rule("mild")
    below = 0.0
    for action, probability in rule.items():
        for share in (0.001, 0.5, 0.999):
            uniform = below + share * probability
            assert live.choose("mild", uniform=uniform) == Choice(action, probability)
        below += probability


def test_choices_follow_their_propensities() -> None:
    """4,000 choices, within 5 standard errors."""
    live = learned(GOALS[2]).live(seed=0)
    chosen = Counter(live.choose("mild", floor=0.1).action for _ in range(4000))
    for action, probability in live.rule("mild", floor=0.1).items():
        error = 5 * (probability * (1 - probability) / 4000) ** 0.5
        assert chosen[action] / 4000 == pytest.approx(probability, abs=error)


def test_choose_and_decide_share_the_numbers_of_the_seed() -> None:
    learner = learned(pw.Goal(prefer=["mild", "hot"], floor=0.2))
    one = learner.live(seed=3)
    two = learner.live(seed=3)
    assert [one.decide("mild") for _ in range(50)] == [two.choose("mild")[0] for _ in range(50)]


@given(records, st.lists(uniforms, max_size=10))
def test_outside_numbers_reproduce_every_choice(stream: list[Record], numbers: list[float]) -> None:
    """Whatever the seeds of the loops are, and however often somebody looked at the rule."""
    one = LEARNER.live(seed=1)
    two = LEARNER.live()
    for record in stream:
        one.observe(*record)
        two.observe(*record)
        two.rule(record[0])
        two.decide(record[2])
    choices = [one.choose(state, uniform=u) for u in numbers for state in STATES]
    assert choices == [two.choose(state, uniform=u) for u in numbers for state in STATES]


# What is possible.


def test_actions_that_are_not_allowed_now_are_not_chosen() -> None:
    live = learned().live(seed=0)
    rule = live.rule("cold")
    two = live.rule("cold", allowed=["wait", "open"])
    assert two["heat"] == 0
    assert two["wait"] / two["open"] == pytest.approx(rule["wait"] / rule["open"])
    assert live.rule("cold", allowed=["wait"]) == {"heat": 0.0, "open": 0.0, "wait": 1.0}
    assert live.rule("cold", allowed=iter(ACTIONS)) == pytest.approx(rule)


def test_actions_without_probability_are_equally_probable_if_only_they_are_allowed() -> None:
    """The log never did "open" or "wait" in the hot room, so a clone of it would not."""
    live = learned(method="clone").live(fixed=True)
    assert live.rule("hot") == {"heat": 0.0, "open": 1.0, "wait": 0.0}
    assert live.rule("hot", allowed=["heat", "wait"]) == {"heat": 0.5, "open": 0.0, "wait": 0.5}
    forbidding = learned(pw.Goal(prefer="mild", forbid=[("hot", "heat")]), method="clone")
    only_wait = {"heat": 0.0, "open": 0.0, "wait": 1.0}
    assert forbidding.live(fixed=True).rule("hot", allowed=["heat", "wait"]) == only_wait


def test_forbidden_actions_get_no_floor() -> None:
    live = learned(GOALS[1]).live(seed=0)
    rule = live.rule("cold", floor=0.4)
    assert rule["open"] == 0
    assert min(rule["heat"], rule["wait"]) >= 0.4
    assert live.rule("hot", floor=1.0) == {"heat": 0.0, "open": 0.0, "wait": 1.0}
    with pytest.raises(InfeasibleError, match="forbids every action that is allowed now"):
        live.choose("hot", allowed=["heat", "open"])


def test_a_state_that_is_not_known_has_the_actions_that_are_permitted_anywhere() -> None:
    live = learned(GOALS[1], on_unseen="prior").live(seed=0)
    with pytest.warns(pw.UnseenStateWarning, match="no state 'freezing'") as chosen:
        live.choose("freezing")
    with pytest.warns(pw.UnseenStateWarning, match="no state 'freezing'") as decided:
        live.decide("freezing", floor=0.1)
    with pytest.warns(pw.UnseenStateWarning, match="no state 'freezing'") as looked:
        rule = live.rule("freezing", allowed=["heat", "open"])
    assert rule == {"heat": 1.0, "open": 0.0, "wait": 0.0}
    for caught in (chosen, decided, looked):
        assert [warning.filename for warning in caught] == [__file__]


def test_what_cannot_be_is_refused() -> None:
    live = learned().live()
    for uniform in (1.0, -0.1, float("nan")):
        with pytest.raises(ParameterError, match=r"uniform must be a number from \[0, 1\)"):
            live.choose("cold", uniform=uniform)
    for floor in (-0.1, 1.5, float("nan")):
        with pytest.raises(ParameterError, match="floor must be a probability"):
            live.decide("cold", floor=floor)
    with pytest.raises(ParameterError, match=r"0\.4 is too large for 3 possible actions; .* 0\.33"):
        live.rule("cold", floor=0.4)
    assert live.rule("cold", floor=1 / 3) == pytest.approx(dict.fromkeys(ACTIONS, 1 / 3))
    with pytest.raises(ParameterError, match="allowed names no action"):
        live.choose("cold", allowed=[])
    with pytest.raises(ParameterError, match=r"list of actions, such as \['heat'\]"):
        live.choose("cold", allowed="heat")
    with pytest.raises(UnknownLabelError, match="unknown label 'haet'; did you mean 'heat'"):
        live.choose("cold", allowed=["haet"])
    with pytest.raises(UnknownLabelError, match="unknown label 'clod'; did you mean 'cold'"):
        live.choose("clod", uniform=0.5)
    with pytest.raises(LabelError, match="is no label"):
        live.choose("cold", allowed=[["heat"]])  # type: ignore[list-item]


def test_keys_stand_for_labels() -> None:
    log = {"s": [1, 2, 1], "a": [True, False, False], "n": [2, 2, 1]}
    live = pw.TransferLearner(pw.Goal(prefer=2), method="TL").fit(log, **COLUMNS).live()
    by_key = live.rule("1", allowed=["true"])
    assert by_key == live.rule(1, allowed=[True]) == {False: 0.0, True: 1.0}


# Looking up.


def test_states_are_found_by_label_and_by_index() -> None:
    live = learned().live()
    for index, label in enumerate(STATES):
        assert live.index(label) == live.index({"s": label}) == index
        assert live.label(index) == label
    assert live.index("freezing") is None
    assert live.states.labels == STATES
    assert live.actions.labels == ACTIONS
    live.observe("freezing", "fly", "cold")
    position = live.index("freezing")
    assert position is not None
    assert live.label(position) == "freezing"
    assert "fly" in live.actions.labels
    with pytest.raises(LabelError, match="is no label"):
        live.index(["cold"])  # type: ignore[arg-type]


# A fixed policy.


@pytest.mark.parametrize("method", pw.methods.names())
def test_every_method_can_be_served_as_it_is(method: str) -> None:
    learner = learned(GOALS[1], method=method)
    live = learner.live(seed=0, fixed=True)
    assert not live.learns
    for _ in range(3):
        for state in STATES:
            assert live.rule(state) == pytest.approx(learner.rule(state), abs=1e-15)
            choice = live.choose(state)
            live.observe(state, choice.action, "mild")
    assert live.revision == 9
    assert live.take().num_records == 9


def test_a_fixed_policy_keeps_records_with_new_labels_for_the_learner() -> None:
    learner = learned(method="FPD_learn")
    live = learner.live(fixed=True)
    before = live.rule("cold")
    live.observe("freezing", "fly", "cold")
    live.observe("cold", "heat", "mild")
    assert live.rule("cold") == before
    assert live.index("freezing") is None
    assert live.revision == 2
    learner.merge(live.take())
    again = learned(method="FPD_learn")
    again.observe("freezing", "fly", "cold")
    again.observe("cold", "heat", "mild")
    assert learner.counts_ == again.counts_
    assert live.take().num_records == 0


def test_a_fixed_policy_with_time_to_explore_acts_by_the_plan_for_that_time() -> None:
    learner = learned(method="TL_foresight")
    live = learner.live(fixed=True, epochs=1000)
    exploring = learner.live(epochs=1000)
    for state in STATES:
        assert live.rule(state) == pytest.approx(exploring.rule(state), abs=1e-12)


def test_only_rows_of_a_methods_own_learn_at_once() -> None:
    learns = {name: learned(method=name).live().learns for name in pw.methods.names()}
    assert learns == {name: name == "TL" for name in pw.methods.names()}


def test_the_revision_is_the_number_of_records() -> None:
    live = learned().live()
    for number, record in enumerate(zip(*LOG.values(), strict=True), 1):
        live.observe(*record)
        assert live.revision == number
    live.take()
    live.decide("cold")
    assert live.revision == len(LOG["s"])
