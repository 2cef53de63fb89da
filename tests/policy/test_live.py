"""A learned policy in a running loop."""

from __future__ import annotations

import pickle
from collections import Counter
from copy import copy, deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pastwise as pw
from pastwise.data.bins import Bins
from pastwise.errors import GoalError, InfeasibleError, LabelError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import FPD, TL, Rand, TLExplore
from pastwise.methods.base import EVERY_STATE, Plan
from pastwise.models.dense import DenseModel
from pastwise.policy.live import LivePolicy
from pastwise.policy.state import PolicyState, Settings
from pastwise.theory.exploration import EpsilonGreedy
from pastwise.theory.similarity import kl_divergence, normalised_similarity, plain_similarity
from tests.helpers.loops import ACTIONS, COLUMNS, GOALS, LOG, STATES, learned, records

# Learning.


@given(
    st.sampled_from(GOALS),
    st.sampled_from([normalised_similarity, plain_similarity]),
    records,
)
def test_it_learns_what_the_learner_learns(
    goal: pw.Goal, similarity: Any, stream: list[tuple[str, str, str]]
) -> None:
    method = TL(similarity=similarity)
    learner = learned(goal, method=method)
    live = learner.live()
    again = learned(goal, method=method)
    for record in stream:
        live.observe(*record)
        again.observe(*record)
    learner.merge(live.take())
    assert learner.counts_ == again.counts_
    for state in STATES:
        assert live.rule(state) == pytest.approx(again.rule(state), abs=1e-12)
        assert learner.rule(state) == pytest.approx(again.rule(state), abs=1e-12)


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda live: pickle.loads(pickle.dumps(live))])
@pytest.mark.parametrize("method", ["TL", "TL_foresight", TLExplore(window=3)])
def test_a_copy_goes_on_by_itself(copied: Any, method: Any) -> None:
    """It decides as the original would, and what it learns is its own."""
    live = learned(method=method).live(seed=4)
    for _ in range(5):
        live.observe("cold", live.decide("cold"), "mild")
    other = copied(live)
    assert [other.decide("cold") for _ in range(2000)] == [live.decide("cold") for _ in range(2000)]
    before = live.rule("mild")
    for _ in range(50):
        other.observe("mild", "heat", "hot")
    assert live.rule("mild") == before
    assert (live.revision, other.revision) == (5, 55)


def test_a_copy_of_a_learner_learns_by_itself() -> None:
    learner = learned()
    other = copy(learner)
    other.observe("mild", "heat", "hot")
    assert other.counts_.num_records == learner.counts_.num_records + 1
    assert learner.rule("mild") == learned().rule("mild")
    assert other.rule("mild") == learned().observe("mild", "heat", "hot").rule("mild")


@pytest.mark.parametrize("method", ["FPD_learn", TLExplore(window=3), "Rand", "clone"])
def test_other_methods_learn_by_their_contract(method: Any) -> None:
    """The rule of a loop is that of the method's own memory after the same records."""
    learner = learned(method=method)
    live = learner.live(seed=4)
    counts = learner.counts_
    memory = learner.method_.start(counts, learner.ideal_)
    stream = [("cold", "heat", "mild"), ("mild", "heat", "hot"), ("hot", "wait", "hot")] * 4
    for record in stream:
        live.observe(*record)
        state, action, next_state = record
        learner.method_.observe(
            memory,
            np.asarray(counts.states.index(state)),
            np.asarray(counts.actions.index(action)),
            np.asarray(counts.states.index(next_state)),
        )
        plan = learner.method_.plan(memory)
        for i, label in enumerate(STATES):
            coins = np.random.default_rng(4).spawn(2)[1]
            expected = learner.method_.rule(memory, np.asarray(i), coins)
            assert list(live.rule(label).values()) == pytest.approx(expected.tolist())
            assert plan.rule.shape == (3, 3)


def test_a_loop_hands_over_every_record_once() -> None:
    """As an application does it: decide, observe, and merge from time to time."""
    learner = learned()
    again = learned()
    live = learner.live(seed=0)
    world = np.random.default_rng(1)
    state: Any = "cold"
    for day in range(5):
        for _ in range(10):
            action = live.decide(state)
            next_state = STATES[world.integers(3)]
            live.observe(state, action, next_state)
            again.observe(state, action, next_state)
            state = next_state
        learner.merge(live.take())
        assert learner.counts_.num_records == len(LOG["s"]) + 10 * (day + 1)
        assert learner.counts_ == again.counts_
        for each in STATES:
            assert learner.rule(each) == pytest.approx(again.rule(each), abs=1e-12)
            assert live.rule(each) == pytest.approx(again.rule(each), abs=1e-12)
    assert live.take().num_records == 0
    assert learner.merge(live.take()).counts_ == again.counts_


def test_what_was_observed_is_merged_into_a_log_that_ages() -> None:
    log = {**LOG, "day": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    one, two = (
        pw.TransferLearner(GOALS[0]).fit(log, **COLUMNS, age="day", half_life=2.0) for _ in range(2)
    )
    live = one.live()
    live.observe("cold", "heat", "mild")
    one.merge(live.take(date=6.0))
    two.observe("cold", "heat", "mild", date=6.0)
    assert one.rule("cold") == pytest.approx(two.rule("cold"))


def test_what_the_learner_learns_later_is_not_the_policys() -> None:
    for method in pw.methods.names():
        learner = learned(method=method)
        before = learner.rule("cold")
        live = learner.live()
        learner.observe("cold", "wait", "mild")
        learner.observe("cold", "open", "mild")
        assert live.rule("cold") == pytest.approx(before, rel=1e-12, abs=1e-15)


def test_what_the_policy_learns_is_not_the_learners() -> None:
    for method in pw.methods.names():
        learner = learned(method=method)
        before = dict(learner.rule_)
        live = learner.live()
        for _ in range(5):
            live.observe("cold", "open", "mild")
            live.rule("cold")
        assert dict(learner.rule_) == before
        assert learner.counts_.num_records == len(LOG["s"])


def test_a_terminal_state_is_not_left() -> None:
    learner = pw.TransferLearner(GOALS[0]).fit(LOG | {"n": ["mild"] * 6}, **COLUMNS)
    ending = pw.TransferLearner(GOALS[0]).fit(learner.counts_.ending_in(np.array([2])))
    live = ending.live()
    before = live.rule("mild")
    for _ in range(2):
        with pytest.warns(pw.LogWarning, match="leaves the terminal state 'mild'"):
            live.observe("mild", "wait", "mild")
    assert live.rule("mild") == before
    assert live.take().num_records == 0


def test_a_log_of_several_tasks_is_refused() -> None:
    tasks = pw.TransferLearner(GOALS[0]).fit(LOG | {"k": list("xxyyxy")}, **COLUMNS, task="k")
    with pytest.raises(ValueError, match="several tasks"):
        tasks.live()


@pytest.mark.parametrize("method", pw.methods.names())
def test_a_loop_is_resumed_from_a_file(method: str, tmp_path: Path) -> None:
    """What was observed before the file was written counts as if it had been in the log."""
    stream = [("cold", "heat", "mild"), ("mild", "heat", "hot"), ("hot", "open", "mild")]
    learner = learned(method=method)
    live = learner.live(seed=1)
    for record in stream:
        live.observe(*record)
    learner.merge(live.take()).save(tmp_path / "policy.safetensors")
    resumed = pw.load(tmp_path / "policy.safetensors")
    whole = {name: LOG[name] + [record[i] for record in stream] for i, name in enumerate(LOG)}
    again = pw.TransferLearner(GOALS[0], method=method).fit(whole, **COLUMNS)
    one = resumed.live(seed=2)
    two = again.live(seed=2)
    for _ in range(2):
        for state in STATES:
            assert one.rule(state) == pytest.approx(two.rule(state), abs=1e-9)
        assert [one.decide("cold") for _ in range(5)] == [two.decide("cold") for _ in range(5)]
        for each in (one, two):
            each.observe("cold", "wait", "cold")


@dataclass(frozen=True)
class Impatient(Rand):
    """Explores for as long as it has time: at random, or else by the first action."""

    epochs: int = 0

    def rule(self, memory: Any, state: Any, rng: Any) -> Any:
        return self.plan(memory).rule[state]

    def plan(self, memory: Any, states: Any = EVERY_STATE) -> Plan:
        rule = super().plan(memory).rule
        first = np.eye(rule.shape[-1])[np.zeros(len(rule), dtype=int)]
        return Plan(rule if self.epochs else first).at(states)


def test_a_method_that_explores_learns_how_much_time_there_is() -> None:
    learner = learned(method=Impatient())
    uniform = dict.fromkeys(ACTIONS, pytest.approx(1 / 3))
    assert learner.live().rule("cold") == {"heat": 1.0, "open": 0.0, "wait": 0.0}
    live = learner.live(epochs=10)
    assert live.rule("cold") == uniform
    live.observe("cold", "heat", "mild")
    assert live.rule("cold") == uniform
    assert learner.rule("cold")["heat"] == 1.0, "the learner acts from the log alone"
    assert learned().live(epochs=10).rule("cold") == learned().live().rule("cold")
    with pytest.raises(pw.errors.ParameterError, match="epochs must be a whole number from 0"):
        learner.live(epochs=-1)


# Deciding.


@pytest.mark.parametrize(
    "method",
    [TL(prior_count=0.1), TLExplore(prior_count=0.1, threshold=1.0, explore=EpsilonGreedy(0.5))],
)
def test_decisions_follow_the_rule(method: Any) -> None:
    """4,000 decisions, within 5 standard errors: of the rule or, if it explores, of the plan."""
    learner = learned(method=method)
    live = learner.live(seed=0)
    live.observe("cold", "heat", "mild")
    learner.merge(live.take())
    decided = Counter(live.decide("cold") for _ in range(4000))
    for action, probability in learner.rule("cold").items():
        error = 5 * np.sqrt(probability * (1 - probability) / 4000)
        assert decided[action] / 4000 == pytest.approx(probability, abs=error)


def test_the_seed_repeats_decisions() -> None:
    learner = learned(pw.Goal(prefer=["mild", "hot"], floor=0.2))
    one = learner.live(seed=3)
    two = learner.live(seed=3)
    decisions = [one.decide("mild") for _ in range(50)]
    assert decisions == [two.decide("mild") for _ in range(50)]
    assert len(set(decisions)) > 1


def test_the_rule_is_that_of_the_next_decision() -> None:
    """An explorer tosses a coin for each decision; to look at the rule does not use it up."""
    method = TLExplore(threshold=1.0, explore=EpsilonGreedy(0.5))
    learner = learned(method=method)
    asked = learner.live(seed=3)
    silent = learner.live(seed=3)
    for live in (asked, silent):
        live.observe("cold", "heat", "mild")
    uniform = pytest.approx(dict.fromkeys(ACTIONS, 1 / 3))
    kinds = set()
    for _ in range(50):
        rule = asked.rule("cold")
        assert asked.rule("cold") == rule
        kinds.add(rule == uniform)
        assert asked.decide("cold") == silent.decide("cold")
    assert kinds == {True, False}


def test_forbidden_actions_are_never_chosen() -> None:
    live = learned(GOALS[1]).live(seed=0)
    assert "open" not in {live.decide(state) for state in STATES for _ in range(300)}


def test_a_state_without_a_feasible_action_is_an_error_when_it_is_reached() -> None:
    """Before the first record and after it."""
    spaces = pw.Space.of_size(2), pw.Space.of_size(1)
    counts = pw.TransitionCounts.from_records([0, 1], [0, 0], [0, 1], *spaces)
    method = FPD(DenseModel([[[1.0, 0.0]], [[0.0, 1.0]]]))
    settings = Settings(pw.Goal(prefer={0: 1}), method, None, kl_divergence, "prior")
    policy = PolicyState(settings, counts)
    policy.ideal = IdealModel.of([1.0, 0.0], num_actions=1)
    live = LivePolicy(policy, seed=0)
    for _ in range(2):
        assert live.decide(0) == 0
        with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
            live.decide(1)
        live.observe(0, 0, 0)


# Labels.


def test_labels_by_their_key_are_the_same() -> None:
    log = {"s": [1, 2, 1], "a": ["x", "y", "y"], "n": [2, 2, 1]}
    live = pw.TransferLearner(pw.Goal(prefer=2)).fit(log, **COLUMNS).live()
    assert live.rule("1") == live.rule(1)
    live.observe("1", "y", "2")
    assert live.rule("1") == live.rule(1)
    live.observe(1, "y", 2)
    assert live.take().records.tolist() == [2]


def test_a_state_that_the_log_does_not_have_is_refused_or_answered_by_the_prior() -> None:
    with pytest.raises(ValueError, match="unknown label 'freezing'"):
        learned().live().decide("freezing")
    live = learned(on_unseen="prior").live(seed=0)
    with pytest.warns(pw.UnseenStateWarning, match="no state 'freezing'") as caught:
        assert live.decide("freezing") in ACTIONS
    assert [warning.filename for warning in caught] == [__file__]
    assert live.take().num_records == 0


@pytest.mark.parametrize("method", pw.methods.names())
def test_a_loop_survives_its_first_new_state(method: str) -> None:
    """What it has learned afterwards is what a learner learns from the same records."""
    learner = learned(method=method, on_unseen="prior")
    live = learner.live(seed=0)
    live.observe("cold", "heat", "mild")
    first = live.take()
    live.observe("mild", "heat", "hot")
    with pytest.warns(pw.UnseenStateWarning):
        action = live.decide("freezing")
    stream = [("freezing", action, "cold"), ("cold", "fly", "mild"), ("hot", "open", "icy")]
    for record in stream:
        live.observe(*record)
    assert live.decide("freezing") in (*ACTIONS, "fly")

    again = learned(method=method)
    for record in [("cold", "heat", "mild"), ("mild", "heat", "hot"), *stream]:
        again.observe(*record)
    if method != "TL_explore":  # which remembers how well its last records served
        for state in (*STATES, "freezing", "icy"):
            assert live.rule(state) == pytest.approx(again.rule(state), abs=1e-9)
    learner.merge(first).merge(live.take())
    assert learner.counts_ == again.counts_
    assert live.take().num_records == 0


def test_a_new_state_that_the_goal_has_no_room_for_changes_nothing() -> None:
    goal = pw.Goal(prefer="mild", floor=0.4)
    live = learned(goal).live(seed=1)
    live.observe("cold", "heat", "mild")
    before = live.state_hash()
    with pytest.raises(GoalError, match="lower the floor"):
        live.observe("cold", "heat", "frost")
    assert live.revision == 1
    assert live.state_hash() == before
    assert live.take().num_records == 1


def test_new_labels_keep_the_weights_of_a_log_that_ages() -> None:
    log = {**LOG, "day": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}
    one = pw.TransferLearner(GOALS[0], method="TL").fit(log, **COLUMNS, age="day", half_life=2.0)
    live = one.live()
    live.observe("freezing", "heat", "mild")
    one.observe("freezing", "heat", "mild", date=6.0)
    for state in (*STATES, "freezing"):
        assert live.rule(state) == pytest.approx(one.rule(state))


@pytest.mark.parametrize("columns", [{"state": ["user", "page"]}, {"features": ["user", "page"]}])
def test_a_new_outcome_is_learned_whatever_states_consist_of(columns: dict[str, Any]) -> None:
    log = {
        "user": ["young", "old", "young", "new"] * 50,
        "page": ["home", "shop"] * 100,
        "shown": ["a", "b", "b", "a", "b"] * 40,
        "mood": ["good", "bad", "bad", "good", "good", "bad", "good", "good"] * 25,
    }
    learner = pw.TransferLearner(pw.Goal(prefer="good"), method="TL")
    learner.fit(log, action="shown", outcome="mood", **columns)
    row = {"user": "old", "page": "shop"}
    live = learner.live()
    live.observe(row, "a", "ugly")
    assert live.revision == 1
    observed = live.take()
    assert observed.num_records == 1
    updated = learner.retarget(learner.goal).update(
        {"user": ["old"], "page": ["shop"], "shown": ["a"], "mood": ["ugly"]}
    )
    assert learner.observe(row, "a", "ugly").counts_ == updated.counts_
    assert learner.counts_.states.labels[learner.counts_.terminal[-1]] == "ugly"


def test_raw_values_and_rows_stand_for_their_bin() -> None:
    log = {
        "x": [0.5, 1.5, 1.7, 0.2],
        "ward": ["A", "B", "A", "B"],
        "a": ["up", "up", "down", "down"],
        "nx": [1.5, 1.9, 0.5, 0.1],
        "nw": ["A", "B", "A", "B"],
    }
    binned: dict[str, Any] = {"bins": {"x": Bins((0, 1, 2), is_open=False)}, "action": "a"}
    one = pw.TransferLearner(pw.Goal(prefer={"[1, 2]": 1}), method="TL")
    one.fit(log, state="x", next_state="nx", **binned)
    live = one.live(seed=0)
    raw_values: list[Any] = [1.5, "1.5", np.float32(1.5), {"x": 1.5, "other": None}, "[1, 2]"]
    for raw in raw_values:
        assert live.rule(raw) == one.rule("[1, 2]") == one.rule_[raw] == one.rule(raw)
        assert live.decide(raw) in ("up", "down")
        assert raw in one.rule_
    live.observe(0.5, "up", {"x": 1.0})
    one.observe({"x": 0.9}, "up", 2)
    assert live.rule(0) == pytest.approx(one.rule("[0, 1)"))
    with pytest.warns(pw.LogWarning, match="left out: the column 'x': unknown label 2.5"):
        live.observe(0.5, "up", 2.5)
    with pytest.warns(pw.LogWarning, match="missing"):
        live.observe({"x": None}, "up", 1.5)
    assert live.take().num_records == 1

    two = pw.TransferLearner(pw.Goal(targets={"x": {"[1, 2]": 1}}), method="TL")
    two.fit(log, state=["x", "ward"], next_state=["nx", "nw"], **binned)
    live = two.live()
    assert live.rule({"x": 0.5, "ward": "A"}) == two.rule(("[0, 1)", "A")) == live.rule((0.5, "A"))
    live.observe({"x": 0.5, "ward": "A"}, "up", {"x": 0.5, "ward": "C"})
    assert live.take().states.has(("[0, 1)", "C"))


@pytest.mark.parametrize("on_unseen", ["prior", "refuse"])
def test_what_is_no_label_is_refused(on_unseen: Any) -> None:
    live = learned(on_unseen=on_unseen).live()
    with pytest.raises(LabelError, match="is no label"):
        live.decide(["cold"])  # type: ignore[arg-type]
    with pytest.raises(LabelError, match="the row has no column 's'; it has cold"):
        live.rule({"cold": 1})
    with pytest.raises(LabelError, match="is no label"):
        live.observe(["cold"], "heat", "cold")  # type: ignore[arg-type]
    with pytest.raises(LabelError, match="is no label"):
        live.observe("cold", ["heat"], "cold")  # type: ignore[arg-type]
    assert live.take().num_records == 0


def test_rows_of_raw_columns_are_decided_by_their_leaf() -> None:
    rng = np.random.default_rng(0)
    size = 600
    log = {
        "lactate": rng.gamma(2.0, 1.2, size).tolist(),
        "ward": rng.choice(["icu", "general"], size).tolist(),
        "a": rng.choice(["give", "wait"], size).tolist(),
        "patient": np.repeat(np.arange(size // 10), 10).tolist(),
        "hour": np.tile(np.arange(10), size // 10).tolist(),
    }
    learner = pw.TransferLearner(pw.Goal(prefer={"lactate < 2": 1}), method="TL")
    columns: dict[str, Any] = {"features": ["lactate", "ward"], "action": "a"}
    learner.fit(log, **columns, episode="patient", time="hour")
    live = learner.live(seed=0)
    low = {"lactate": 1.2, "ward": "icu"}
    high = {"lactate": 4.0, "ward": "general"}
    for _ in range(3):
        live.observe(high, "give", low)
        learner.observe(high, "give", low)
    assert live.decide(high) in ("give", "wait")
    for row in (low, high):
        assert live.rule(row) == pytest.approx(learner.rule(row))
        assert learner.rule(row) == learner.rule_[row]
    assert live.take().num_records == 3
    with pytest.raises(LabelError, match="'lactate'"):
        live.decide({"ward": "icu"})
    with pytest.raises(LabelError, match="missing"):
        live.decide({"lactate": None, "ward": "icu"})
