"""A learned rule in a running loop."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pastwise as pw
from pastwise.methods.tl import TL
from pastwise.theory.similarity import normalised_similarity, plain_similarity

LOG = {
    "s": ["cold", "cold", "mild", "hot", "mild", "cold"],
    "a": ["heat", "wait", "wait", "open", "heat", "heat"],
    "n": ["mild", "cold", "mild", "mild", "hot", "cold"],
}
STATES, ACTIONS = ("cold", "hot", "mild"), ("heat", "open", "wait")
GOALS = [
    pw.Goal(prefer="mild"),
    pw.Goal(
        prefer={"mild": 2, "hot": 1},
        prefer_actions="wait",
        forbid=[("hot", "heat"), (None, "open")],
    ),
    pw.Goal(reward={"mild": 1.0, "hot": -2.0}),
    pw.Goal(reward={"cold": {"heat": {"mild": 2.0}, "wait": -1.0}}),
]


def learned(goal: pw.Goal = GOALS[0], **options: Any) -> pw.TransferLearner:
    return pw.TransferLearner(goal, **options).fit(LOG, state="s", action="a", next_state="n")


records = st.lists(
    st.tuples(st.sampled_from(STATES), st.sampled_from(ACTIONS), st.sampled_from(STATES)),
    max_size=20,
)


@given(
    st.sampled_from(GOALS),
    st.sampled_from([normalised_similarity, plain_similarity]),
    records,
)
def test_it_learns_what_the_learner_learns(
    goal: pw.Goal, similarity: Any, stream: list[tuple[str, str, str]]
) -> None:
    learner = learned(goal, method=TL(similarity=similarity))
    live = learner.live()
    for record in stream:
        live.observe(*record)
    learner.merge(live.take())
    again = learned(goal, method=TL(similarity=similarity))
    for record in stream:
        again.observe(*record)
    assert learner.counts_ == again.counts_
    for state in STATES:
        assert live.rule(state) == pytest.approx(again.rule(state), abs=1e-12)


def test_decisions_follow_the_rule() -> None:
    live = (
        pw.TransferLearner(GOALS[0], method=TL(prior_count=0.1))
        .fit(LOG, state="s", action="a", next_state="n")
        .live(seed=0)
    )
    drawn = Counter(live.decide("cold") for _ in range(4000))
    for action, probability in live.rule("cold").items():
        error = 4 * np.sqrt(probability * (1 - probability) / 4000)
        assert drawn[action] / 4000 == pytest.approx(probability, abs=error)


def test_the_seed_repeats_decisions() -> None:
    learner = learned(pw.Goal(prefer=["mild", "hot"], floor=0.2))
    one, two = (learner.live(seed=3) for _ in range(2))
    assert [one.decide("mild") for _ in range(50)] == [two.decide("mild") for _ in range(50)]


def test_forbidden_actions_are_never_drawn() -> None:
    live = learned(GOALS[1]).live(seed=0)
    assert "open" not in {live.decide(state) for state in STATES for _ in range(300)}


def test_labels_by_their_key_are_the_same() -> None:
    log = {"s": [1, 2, 1], "a": ["x", "y", "y"], "n": [2, 2, 1]}
    live = (
        pw.TransferLearner(pw.Goal(prefer=2)).fit(log, state="s", action="a", next_state="n").live()
    )
    assert live.rule("1") == live.rule(1)
    live.observe("1", "y", "2")
    assert live.rule("1") == live.rule(1)
    live.observe(1, "y", 2)
    assert live.take().records.tolist() == [2]


def test_states_that_the_log_does_not_have() -> None:
    live = learned().live(seed=0)
    with pytest.warns(pw.UnseenStateWarning, match="no state 'freezing'"):
        assert live.decide("freezing") in ACTIONS
    with pytest.raises(
        ValueError, match=r"unknown label 'freezing'.*TransferLearner\.observe learns new labels"
    ):
        live.observe("freezing", "heat", "cold")
    with pytest.raises(ValueError, match="unknown label 'fly'"):
        live.observe("cold", "fly", "cold")
    with pytest.raises(ValueError, match="unknown label 'frozen'"):
        live.observe("cold", "heat", "frozen")
    with pytest.raises(ValueError, match="unknown label 'freezing'"):
        learned(on_unseen="refuse").live().decide("freezing")
    assert live.take().num_records == 0


def test_a_terminal_state_is_not_left() -> None:
    learner = pw.TransferLearner(GOALS[0]).fit(
        LOG | {"n": ["mild"] * 6}, state="s", action="a", next_state="n"
    )
    ending = pw.TransferLearner(GOALS[0]).fit(learner.counts_.ending_in(np.array([2])))
    live = ending.live()
    before = live.rule("mild")
    with pytest.warns(pw.LogWarning, match="leaves the terminal state 'mild'"):
        live.observe("mild", "wait", "mild")
    assert live.rule("mild") == before
    assert live.take().num_records == 0


@pytest.mark.parametrize("method", pw.methods.names())
def test_taking_drains_what_was_observed(method: str) -> None:
    """The lines of the README in a loop: every observation is counted once."""
    learner = learned(method=method)
    before = learner.counts_.num_records
    live = learner.live(seed=1)
    for number in range(1, 6):
        action = live.decide("cold")
        live.observe("cold", action, "mild")
        learner.merge(live.take())
        assert learner.counts_.num_records == before + number
    assert live.take().num_records == 0


@pytest.mark.parametrize("method", pw.methods.names())
def test_it_starts_on_the_rule_of_the_learner(method: str) -> None:
    learner = learned(method=method)
    for state in STATES:
        assert learner.live().rule(state) == pytest.approx(learner.rule(state), abs=1e-12)


def test_a_log_of_tasks_is_refused() -> None:
    tasks = pw.TransferLearner(GOALS[0]).fit(
        LOG | {"k": list("xxyyxy")}, state="s", action="a", next_state="n", task="k"
    )
    with pytest.raises(ValueError, match="several tasks"):
        tasks.live()


def test_what_the_learner_learns_later_is_not_the_policys() -> None:
    learner = learned()
    asked, live = learner.rule("cold"), learner.live()
    learner.observe("cold", "wait", "mild")
    assert live.rule("cold") == pytest.approx(asked, rel=1e-12)


def test_what_was_observed_is_merged_into_a_log_that_ages() -> None:
    log = {**LOG, "day": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    columns: dict[str, Any] = {
        "state": "s",
        "action": "a",
        "next_state": "n",
        "age": "day",
        "half_life": 2.0,
    }
    one, two = (pw.TransferLearner(GOALS[0]).fit(log, **columns) for _ in range(2))
    live = one.live()
    live.observe("cold", "heat", "mild")
    one.merge(live.take(date=6.0))
    two.observe("cold", "heat", "mild", date=6.0)
    assert one.rule("cold") == pytest.approx(two.rule("cold"))
