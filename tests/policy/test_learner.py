"""The learner as a facade: the same rule whichever way a log comes in, and its explanation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pastwise as pw
from pastwise import (
    Goal,
    LogWarning,
    Space,
    TransferLearner,
    TransitionCounts,
    UnseenStateWarning,
    count_transitions,
)
from pastwise.data.bins import Bins
from pastwise.data.space import Label
from pastwise.errors import ParameterError, PastwiseError
from pastwise.methods import TL, FPDLearn, TLExplore, TLForesight
from pastwise.policy.advice import WEAK
from pastwise.policy.support import SupportOfState
from pastwise.theory.similarity import kl_divergence, plain_similarity

Triple = tuple[Any, Any, Any]
Table = dict[str, list[Any]]

LOG = [
    ("cold", "heat", "mild"),
    ("cold", "heat", "warm"),
    ("cold", "wait", "cold"),
    ("cold", "wait", "cold"),
    ("mild", "wait", "mild"),
    ("mild", "heat", "warm"),
    ("warm", "wait", "mild"),
]
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "next_state": "then"}
MILD = Goal(prefer={"mild": 1})
SAFE = Goal(prefer={"mild": 2, "warm": 1}, floor=1e-3, forbid=(("cold", "wait"), ("warm", "heat")))


def table_of(log: Sequence[Triple], **more: list[Any]) -> Table:
    room, did, then = (list(column) for column in zip(*log, strict=True))
    return {"room": room, "did": did, "then": then, **more}


def counts_of(log: Sequence[Triple], weight: Sequence[float] | float = 1.0) -> TransitionCounts:
    """Counts of a log by labels, by the library's plainest way in."""
    s, a, n = zip(*log, strict=True)
    states, actions = Space.sorted({*s, *n}), Space.sorted(a)
    index = states.indices(s), actions.indices(a), states.indices(n)
    return TransitionCounts.from_records(*index, states, actions, weight)


def fitted(log: Sequence[Triple] = LOG, goal: Goal = MILD, **params: Any) -> TransferLearner:
    return TransferLearner(goal, **{"method": "TL", **params}).fit(counts_of(log))


def product_learner() -> TransferLearner:
    """States of two fields: room and window."""
    log = {
        "room": ["cold", "cold", "warm"],
        "window": [True, False, False],
        "did": ["shut", "heat", "heat"],
        "room2": ["cold", "warm", "warm"],
        "window2": [False, False, False],
    }
    goal = Goal(targets={"room": {"warm": 1}, "window": {False: 1}})
    columns: dict[str, Any] = {
        "state": ["room", "window"],
        "action": "did",
        "next_state": ["room2", "window2"],
    }
    return TransferLearner(goal, method="TL").fit(log, **columns)


def tasks_learner() -> TransferLearner:
    """Two past tasks, the goal of one of them known."""
    log = table_of(LOG, task=["a", "b", "a", "b", "a", "b", "a"])
    past: dict[Label, Goal] = {"a": Goal(prefer={"warm": 1}, floor=0.1)}
    learner = TransferLearner(Goal(prefer={"mild": 1}, floor=0.1), method="TL", past_goals=past)
    return learner.fit(log, **COLUMNS, task="task")


def weighted_learner() -> TransferLearner:
    log = table_of(LOG, weight=[0.5, 1.0, 2.0, 0.1, 3.0, 1.0, 0.7])
    learner = TransferLearner(SAFE, method=TL(prior_count=0.01))
    return learner.fit(log, **COLUMNS, weight="weight")


def faded_learner() -> TransferLearner:
    log = table_of(LOG, age=list(range(7)))
    return TransferLearner(MILD, method="TL").fit(log, **COLUMNS, age="age", half_life=2)


def updated_learner() -> TransferLearner:
    """One that has seen records of known and of new labels since."""
    learner = fitted(goal=SAFE, method=TL(prior_count=0.1))
    return (
        learner.observe("cold", "heat", "mild")
        .observe("hot", "air", "mild")
        .observe("hot", "air", "cold")
    )


def same(one: TransferLearner, other: TransferLearner) -> bool:
    """Equal to the last bit: counts, rule and what it rests on."""
    return (
        one.counts_ == other.counts_
        and np.array_equal(one.rule_.probabilities, other.rule_.probabilities)
        and np.array_equal(one.rule_.similarity, other.rule_.similarity)
        and one.support().to_dict() == other.support().to_dict()
    )


def same_up_to_rounding(one: TransferLearner, other: TransferLearner) -> bool:
    """Equal counts and support; rules that differ by rounding only."""
    rules = (one.rule_.probabilities, other.rule_.probabilities)
    similarities = (one.rule_.similarity, other.rule_.similarity)
    return (
        one.counts_ == other.counts_
        and np.allclose(*rules, rtol=1e-12, atol=0)
        and np.allclose(*similarities, rtol=1e-12, atol=1e-15)
        and one.support().to_dict() == other.support().to_dict()
    )


labels = st.sampled_from("abcd")
triples = st.tuples(labels, st.sampled_from("xyz"), labels)
logs = st.lists(triples, min_size=1, max_size=15)


@st.composite
def goals(draw: st.DrawFn, log: Sequence[Triple]) -> Goal:
    """Goals of every kind that remain possible when labels join the log."""
    state, action, next_state = draw(st.sampled_from(log))
    return draw(
        st.sampled_from(
            [
                Goal(prefer={next_state: 1}),
                Goal(prefer={state: 3, next_state: 1}, floor=0.01),
                Goal(prefer_actions={action: 1}, prefer={next_state: 2}),
                Goal(reward={next_state: 1}, temperature=0.5),
                Goal(reward={state: {action: {next_state: -2}}}),
            ]
        )
    )


# Learning.


@pytest.mark.filterwarnings("ignore:the log has a single transition")
@given(st.data())
@settings(max_examples=30)
@pytest.mark.filterwarnings("ignore:no record leads to anything that the goal wants")
def test_a_table_and_its_counts_teach_the_same(data: st.DataObject) -> None:
    log = data.draw(logs)
    goal, table = data.draw(goals(log)), table_of(log)
    by_table = TransferLearner(goal).fit(table, **COLUMNS)
    by_counts = TransferLearner(goal).fit(count_transitions(table, **COLUMNS))
    assert same(by_table, by_counts)
    assert by_table.rule_ == TransferLearner(goal).fit(counts_of(log)).rule_


@given(st.data())
def test_observing_one_by_one_is_refitting(data: st.DataObject) -> None:
    """With known labels and new ones, whether or not somebody looked in between."""
    log = data.draw(st.lists(triples, min_size=2, max_size=15))
    looks = data.draw(st.booleans())
    place = data.draw(st.integers(1, len(log)))
    goal = data.draw(goals(log[:place]))
    learner = fitted(log[:place], goal)
    for seen in range(place, len(log)):
        assert learner.observe(*log[seen]) is learner
        if looks:
            assert same_up_to_rounding(learner, fitted(log[: seen + 1], goal))
    assert same_up_to_rounding(learner, fitted(log, goal))


@given(st.lists(st.tuples(triples, st.integers(1, 64)), min_size=2, max_size=12), st.data())
def test_observing_with_weights_is_refitting(
    log: list[tuple[Triple, int]], data: st.DataObject
) -> None:
    """Weights of so many 64ths, whose sums are exact in any order."""
    records = [record for record, _ in log]
    weights = [weight / 64 for _, weight in log]
    goal = data.draw(goals(records[:1]))
    place = data.draw(st.integers(1, len(log)))
    learner = TransferLearner(goal, method="TL")
    learner.fit(counts_of(records[:place], weights[:place]))
    for record, weight in zip(records[place:], weights[place:], strict=True):
        learner.observe(*record, weight=weight)
    again = TransferLearner(goal, method="TL").fit(counts_of(records, weights))
    assert same_up_to_rounding(learner, again)


@given(logs, logs, st.data())
def test_merging_is_fitting_both(one: list[Triple], two: list[Triple], data: st.DataObject) -> None:
    goal = data.draw(goals(one))
    assert same(fitted(one, goal).merge(counts_of(two)), fitted([*one, *two], goal))


@given(logs, st.data())
def test_retargeting_is_fitting_with_the_new_goal(log: list[Triple], data: st.DataObject) -> None:
    old, new = data.draw(goals(log)), data.draw(goals(log))
    method = TL(prior_count=0.5)
    learner = fitted(log, old, method=method, on_unseen="refuse")
    other = learner.retarget(new)
    assert same(other, fitted(log, new, method=method))
    assert other.get_params() == {**learner.get_params(), "goal": new}
    assert same(learner, fitted(log, old, method=method))


def test_retargeting_may_change_the_method() -> None:
    cold = Goal(prefer={"cold": 1})
    other = fitted().retarget(cold, method="FPD_learn")
    assert same(other, fitted(goal=cold, method=FPDLearn()))
    assert other.retarget(MILD).method_ == FPDLearn()


def test_retargeting_leaves_out_the_skill_that_the_past_had_for_the_former_goal() -> None:
    cold = Goal(prefer={"cold": 1})
    learner = fitted(method=TLForesight(past_skill=1.0, example=2.0))
    assert learner.retarget(cold).method_ == TLForesight(example=2.0)
    kept = TLForesight(past_skill=0.5)
    assert learner.retarget(cold, method=kept).method_ == kept


def test_retargeting_does_not_forget_observations() -> None:
    cold = Goal(prefer={"cold": 1})
    assert same(
        fitted().observe("warm", "wait", "cold").retarget(cold),
        fitted([*LOG, ("warm", "wait", "cold")], cold),
    )


def test_an_update_is_learning_from_both_logs(tmp_path: Path) -> None:
    """The second log needs neither columns nor bins: quantiles are those of the first."""
    first: Table = {
        "temp": [1.0, 2.0, 3.0, 4.0],
        "did": ["a", "b", "a", "b"],
        "then": [2.0, 4.0, 1.0, 3.0],
    }
    second: Table = {"temp": [3.5, 1.5], "did": ["a", "c"], "then": [1.0, 2.2]}
    columns: dict[str, Any] = {"state": "temp", "action": "did", "next_state": "then"}
    learner = TransferLearner(Goal(prefer={"< 2.5": 1})).fit(first, **columns, bins={"temp": 2})
    learner.update(second)
    both = {name: first[name] + second[name] for name in first}
    assert same(learner, TransferLearner(learner.goal).fit(both, **columns, bins={"temp": [2.5]}))


def test_a_further_log_may_be_counted_only() -> None:
    learner = TransferLearner(MILD).fit(table_of(LOG), **COLUMNS)
    assert learner.count(table_of(LOG[:2])) == count_transitions(table_of(LOG[:2]), **COLUMNS)
    assert learner.counts_.num_records == len(LOG)


def test_what_a_further_log_leaves_out_is_warned_of() -> None:
    columns: dict[str, Any] = {"state": "temp", "action": "did", "next_state": "then"}
    first = {"temp": [1, 9], "did": ["a", "b"], "then": [9, 1]}
    learner = TransferLearner(Goal(prefer={"[0, 5)": 1})).fit(
        first, **columns, bins={"temp": Bins((0.0, 5.0, 10.0), is_open=False)}
    )
    with pytest.warns(LogWarning, match="outside the bins"):
        learner.update({"temp": [1, 99], "did": ["a", "b"], "then": [9, 1]})
    assert [(finding.code, finding.rows) for finding in learner.findings_] == [
        ("out-of-range-state", 1)
    ]


def test_a_further_log_may_lack_the_terminal_state() -> None:
    first = table_of([("cold", "heat", "mild"), ("mild", "wait", "done")])
    learner = TransferLearner(MILD).fit(first, **COLUMNS, terminal="done")
    learner.update(table_of([("cold", "heat", "mild")]))
    assert learner.counts_.records.tolist() == [2, 1]
    assert [learner.counts_.states.labels[i] for i in learner.counts_.terminal] == ["done"]


def test_a_record_that_leaves_a_terminal_state_is_left_out_of_fit_and_of_observe() -> None:
    log = [("cold", "heat", "mild"), ("mild", "wait", "done")]
    learner = TransferLearner(MILD).fit(table_of(log), **COLUMNS, terminal="done")
    with pytest.warns(LogWarning, match="terminal"):
        whole = TransferLearner(MILD).fit(
            table_of([*log, ("done", "wait", "cold")]), **COLUMNS, terminal="done"
        )
    with pytest.warns(LogWarning, match="terminal"):
        learner.observe("done", "wait", "cold")
    assert same(learner, whole)


def test_a_label_may_be_given_by_its_key() -> None:
    """Integer labels, which a file or the command line names by their text."""
    log = [(1, "a", 2), (2, "b", 1)]
    assert same_up_to_rounding(
        fitted(log, Goal(prefer={1: 1})).observe("1", "b", "2"),
        fitted([*log, (1, "b", 2)], Goal(prefer={1: 1})),
    )


@pytest.mark.parametrize("label", [None, math.nan, math.inf])
def test_a_new_label_must_be_one(label: Any) -> None:
    learner = fitted()
    with pytest.raises(ValueError, match=re.escape(repr(label)) + "|missing|finite"):
        learner.observe(label, "heat", "mild")
    assert same(learner, fitted())


@pytest.mark.parametrize("weight", [0, -1, math.nan, math.inf])
def test_a_weight_is_finite_and_positive(weight: float) -> None:
    learner = fitted()
    with pytest.raises(ValueError, match="finite and positive"):
        learner.observe("cold", "heat", "mild", weight=weight)
    assert same(learner, fitted())


def test_what_fails_changes_nothing() -> None:
    """With this floor a fourth state would leave nothing for the preferred one."""
    goal = Goal(prefer={"mild": 1}, floor=0.4)
    attempts: list[Callable[[TransferLearner], Any]] = [
        lambda learner: learner.observe("cold", "heat", "hot"),
        lambda learner: learner.merge(counts_of([("cold", "heat", "hot")])),
        lambda learner: learner.fit(counts_of([*LOG, ("hot", "air", "mild")])),
        lambda learner: learner.retarget(Goal(prefer={"hot": 1})),
    ]
    for attempt in attempts:
        learner = fitted(goal=goal)
        with pytest.raises(ValueError, match=r"floor|unknown label"):
            attempt(learner)
        assert same(learner, fitted(goal=goal))
        assert learner.explain("cold") == fitted(goal=goal).explain("cold")


@pytest.mark.filterwarnings("ignore:the log has a single transition")
def test_a_log_of_tasks_is_extended_by_merging() -> None:
    learner = tasks_learner()
    with pytest.raises(ValueError, match="merging"):
        learner.observe("cold", "heat", "mild")
    more = count_transitions(
        table_of([("cold", "heat", "mild")], task=["c"]), **COLUMNS, task="task"
    )
    learner.merge(more)
    assert learner.counts_.tasks is not None
    assert list(learner.counts_.tasks.labels) == ["a", "b", "c"]
    assert learner.counts_.num_records == 8


def test_independent_logs_are_not_one() -> None:
    """Counts of simulated runs have leading axes that no task names."""
    runs = TransitionCounts.from_records(
        [[0], [1]], [[0], [1]], [[1], [0]], states=Space.of_size(2), actions=Space.of_size(2)
    )
    with pytest.raises(ValueError, match=r"total|axes|logs"):
        TransferLearner(Goal(prefer={0: 1})).fit(runs)
    assert TransferLearner(Goal(prefer={0: 1})).fit(runs.total()).counts_.num_records == 2


# The rule.


def test_rule_is_the_ratio_of_sums() -> None:
    """In fractions, with the normalised similarity and a prior count of 1/8."""
    goal = Goal(prefer={"mild": 2, "warm": 1}, floor=1 / 16)
    ideal = {"cold": Fraction(1, 16), "mild": Fraction(10, 16), "warm": Fraction(5, 16)}
    similarity = {state: share / max(ideal.values()) for state, share in ideal.items()}
    rule = fitted(goal=goal, method=TL(prior_count=1 / 8)).rule_
    for state in ideal:
        mass = {
            action: 3 * Fraction(1, 8)
            + sum(similarity[n] for s, a, n in LOG if (s, a) == (state, action))
            for action in ("heat", "wait")
        }
        assert rule[state] == pytest.approx(
            {action: float(m / sum(mass.values())) for action, m in mass.items()}
        )


def test_default_prior_is_the_smallest_probability_over_the_number_of_states() -> None:
    """The smallest share is 1/4; there are two actions and three states.

    In cold, heat led to mild (similarity 1) and warm (1/2), wait twice to cold (1/2 each).
    """
    learner = fitted(goal=Goal(prefer={"mild": 1}, floor=1 / 4))
    prior_count = Fraction(1, 4) / 2 / 3
    heat = Fraction(3, 2) + 3 * prior_count
    wait = 1 + 3 * prior_count
    assert learner.rule("cold") == pytest.approx(
        {"heat": float(heat / (heat + wait)), "wait": float(wait / (heat + wait))}
    )


@given(logs, st.data())
def test_the_rule_of_one_state_is_a_row_of_all(log: list[Triple], data: st.DataObject) -> None:
    learner = fitted(log, data.draw(goals(log)))
    rule = learner.rule_
    assert {state: learner.rule(state) for state in rule} == dict(rule)


def test_the_rule_of_one_state_is_a_row_of_all_for_many_actions() -> None:
    log = [("a", str(i), "b") for i in range(20)] + [("b", "3", "a")]
    forbidden = Goal(prefer={"b": 1}, forbid=(("a", "7"), (None, "9")))
    for goal in (Goal(prefer={"b": 1}), forbidden):
        learner = fitted(log, goal)
        assert {state: learner.rule(state) for state in learner.rule_} == dict(learner.rule_)


def test_an_unseen_state_is_answered_by_the_prior_and_flagged() -> None:
    """The warning points at the line that asked."""
    learner = fitted(on_unseen="prior")
    rule = learner.rule_
    rng = np.random.default_rng(0)
    with pytest.warns(UnseenStateWarning, match="'hot'") as caught:
        answers = (
            rule["hot"],
            learner.rule("hot"),
            rule.row("hot").tolist(),
            rule.sample("hot", rng) in rule.actions,
        )
    assert answers == ({"heat": 0.5, "wait": 0.5}, {"heat": 0.5, "wait": 0.5}, [0.5, 0.5], True)
    assert [warning.filename for warning in caught] == [__file__] * 4


@pytest.mark.parametrize(
    ("forbidden", "row"),
    [((None, "heat"), [1 / 2, 0, 1 / 2]), (("cold", "heat"), [1 / 3, 1 / 3, 1 / 3])],
)
def test_the_prior_is_uniform_over_what_is_allowed(forbidden: Any, row: list[float]) -> None:
    """An action that is forbidden in one state is open in those that nobody has seen."""
    goal = Goal(prefer={"mild": 1}, forbid=(forbidden,))
    learner = fitted([*LOG, ("mild", "air", "cold")], goal, on_unseen="prior")
    with pytest.warns(UnseenStateWarning):
        assert list(learner.rule("hot").values()) == pytest.approx(row)


def test_an_unseen_state_is_refused_unless_the_prior_is_requested() -> None:
    learner = fitted()
    with pytest.raises(ValueError, match=r"'midl'; did you mean 'mild'\?"):
        learner.rule("midl")
    with pytest.raises(ValueError, match=r"'midl'; did you mean 'mild'\?"):
        learner.rule_["midl"]


def test_forbidden_actions_have_no_probability_at_all() -> None:
    rule = fitted(goal=SAFE).rule_
    assert (rule["cold"]["wait"], rule["cold"]["heat"]) == (0.0, 1.0)
    assert (rule["warm"]["heat"], rule["warm"]["wait"]) == (0.0, 1.0)
    assert 0 < rule["mild"]["heat"] < 1


def test_actions_are_sampled_with_their_probabilities() -> None:
    """10,000 samples: five standard deviations are 0.025, exceeded once in two million seeds."""
    learner = fitted([("a", "x", "a")], Goal(prefer={"a": 1}), method=TL(prior_count=0.1))
    rule = learner.observe("a", "y", "a", weight=1.2).rule_
    assert rule["a"]["x"] == pytest.approx(1.1 / 2.4)
    rng = np.random.default_rng(0)
    sampled = [rule.sample("a", rng) for _ in range(10_000)]
    assert set(sampled) == {"x", "y"}
    assert sampled.count("x") / 10_000 == pytest.approx(1.1 / 2.4, abs=0.025)


def test_a_forbidden_action_is_never_sampled() -> None:
    rule = fitted(goal=SAFE).rule_
    rng = np.random.default_rng(1)
    assert {rule.sample("cold", rng) for _ in range(200)} == {"heat"}


@pytest.mark.parametrize(
    ("library", "give"),
    [
        ("pandas", pa.Table.to_pandas),
        ("polars", pl.from_arrow),
        ("polars", lambda table: pl.LazyFrame(table)),
        ("pyarrow", pa.table),
    ],
)
def test_frames_are_of_the_callers_library(library: str, give: Callable[[Any], Any]) -> None:
    learner = TransferLearner(MILD).fit(give(pa.table(table_of(LOG))), **COLUMNS)
    for answer in (
        learner.rule_.to_frame(),
        learner.support().to_frame(),
        learner.retarget(MILD).rule_.to_frame(),
    ):
        assert type(answer).__module__.partition(".")[0] == library


def test_some_frame_comes_of_a_file(tmp_path: Path) -> None:
    pl.DataFrame(table_of(LOG)).write_csv(tmp_path / "log.csv")
    learner = TransferLearner(MILD, method="TL")
    frame = learner.fit(tmp_path / "log.csv", **COLUMNS).rule_.to_frame()
    assert list(frame["state"]) == ["cold", "cold", "mild", "mild", "warm", "warm"]
    assert list(frame["action"]) == ["heat", "wait"] * 3
    assert list(frame["probability"]) == fitted().rule_.probabilities.ravel().tolist()


def test_product_states_have_a_column_for_each_field() -> None:
    learner = product_learner()
    columns = learner.rule_.columns()
    assert list(columns) == ["room", "window", "action", "probability", "similarity"]
    assert list(zip(columns["room"], columns["window"], strict=True))[::2] == list(learner.rule_)
    assert learner.rule(("cold", True))["shut"] > 0.99
    assert list(learner.support().to_frame().columns)[:2] == ["room", "window"]


# Why.


LEARNERS = [
    fitted,
    product_learner,
    tasks_learner,
    weighted_learner,
    faded_learner,
    updated_learner,
]


@pytest.mark.parametrize("make", LEARNERS)
def test_every_probability_is_the_sum_of_its_shares(make: Callable[[], TransferLearner]) -> None:
    learner = make()
    for state, row in learner.rule_.items():
        explanation = learner.explain(state)
        assert explanation.state == state
        found = {action: reason.probability for action, reason in explanation.actions.items()}
        assert found == pytest.approx(row)
        for action, reason in explanation.actions.items():
            assert reason.adds_up
            assert list(reason.parts) == ["records", "prior"]
            shares = [evidence.share for evidence in reason.evidence]
            assert math.fsum(shares) == pytest.approx(reason.parts["records"], rel=1e-12)
            total = math.fsum([reason.parts["prior"], *shares])
            assert total == pytest.approx(reason.probability, rel=1e-12)
            assert learner.explain(state, action).actions == {action: reason}


@pytest.mark.parametrize("make", LEARNERS)
def test_evidence_is_what_the_support_counts(make: Callable[[], TransferLearner]) -> None:
    learner = make()
    for state in learner.rule_:
        reasons = learner.explain(state).actions.values()
        evidence = [each for reason in reasons for each in reason.evidence]
        support = learner.support()[state]
        assert sum(each.records for each in evidence) == support.records
        similarity = math.fsum(each.similarity for each in evidence)
        assert similarity == pytest.approx(support.similarity)
        priors = math.fsum(reason.parts["prior"] for reason in reasons)
        assert priors == pytest.approx(support.prior_share)


def test_evidence_by_hand() -> None:
    """Similarities 1, 1/2 and 1/2 of mild, cold and warm; the prior weighs 3/8 for each action."""
    goal = Goal(prefer={"mild": 1}, floor=1 / 4)
    learner = fitted(goal=goal, method=TL(prior_count=1 / 8))
    heat, wait = learner.explain("cold").actions.values()
    total = 3 / 2 + 1 + 6 / 8
    assert [(e.next_state, e.records) for e in heat.evidence] == [("mild", 1), ("warm", 1)]
    assert [e.similarity for e in heat.evidence] == pytest.approx([1, 1 / 2])
    assert [e.share for e in heat.evidence] == pytest.approx([1 / total, 1 / 2 / total])
    assert [(e.next_state, e.records) for e in wait.evidence] == [("cold", 2)]
    assert [e.share for e in wait.evidence] == pytest.approx([1 / total])
    assert heat.parts == pytest.approx({"records": 3 / 2 / total, "prior": 3 / 8 / total})
    assert heat.probability == pytest.approx(15 / 8 / total)


def test_forbidden_actions_are_explained_by_exact_zeros() -> None:
    reason = fitted(goal=SAFE).explain("cold", "wait").actions["wait"]
    assert not reason.is_allowed
    assert reason.probability == 0.0
    assert reason.parts == {"records": 0.0, "prior": 0.0}
    assert [(e.records, e.similarity, e.share) for e in reason.evidence] == [(2, 0.0, 0.0)]


def test_explaining_an_unknown_label_is_an_error() -> None:
    with pytest.raises(ValueError, match="did you mean 'cold'"):
        fitted().explain("cool")
    with pytest.raises(ValueError, match="did you mean 'heat'"):
        fitted().explain("cold", "heaat")


def test_known_past_goals_weigh_their_tasks() -> None:
    """Task a wanted warm, today's goal is mild: D = 0.7 ln 8, so its records weigh 8^-0.7."""
    reason = tasks_learner().explain("cold", "heat").actions["heat"]
    assert {e.next_state: e.similarity for e in reason.evidence} == pytest.approx(
        {"mild": 8**-0.7, "warm": 1 / 8}
    )
    both = tasks_learner().explain("cold", "wait").actions["wait"].evidence
    assert [(e.next_state, e.records) for e in both] == [("cold", 2)]
    assert both[0].similarity == pytest.approx((8**-0.7 + 1) / 8)


def test_tasks_of_unknown_goals_count_in_full() -> None:
    log = table_of(LOG, task=["a", "b"] * 3 + ["a"])
    by_task = TransferLearner(MILD, method="TL").fit(log, **COLUMNS, task="task")
    assert np.array_equal(by_task.rule_.probabilities, fitted().rule_.probabilities)


def test_a_reward_goes_with_tasks_of_unknown_goals() -> None:
    log = table_of(LOG, task=["a", "b"] * 3 + ["a"])
    goal = Goal(reward={"mild": 1})
    by_task = TransferLearner(goal, method="TL").fit(log, **COLUMNS, task="task")
    assert np.array_equal(by_task.rule_.probabilities, fitted(goal=goal).rule_.probabilities)


def test_tasks_may_be_named_by_their_keys() -> None:
    log = table_of(LOG, task=[1, 2, 1, 2, 1, 2, 1])
    past = Goal(prefer={"warm": 1})
    one, other = (
        TransferLearner(MILD, past_goals={task: past}).fit(log, **COLUMNS, task="task")
        for task in (1, "1")
    )
    assert same(one, other)


def test_past_goals_need_their_tasks() -> None:
    with pytest.raises(ValueError, match="no task column"):
        fitted(past_goals={"a": MILD})
    log = table_of(LOG, task=["a"] * 7)
    with pytest.raises(ValueError, match="no task 'b'"):
        TransferLearner(MILD, past_goals={"b": MILD}).fit(log, **COLUMNS, task="task")


def test_support_by_hand() -> None:
    """In cold the weights 1/2, 1 and 2 with similarities 1 (mild), 1/2 (warm) and 1/2 (cold)."""
    log = table_of(LOG[:3] + LOG[4:5], weight=[0.5, 1.0, 2.0, 3.0])
    goal = Goal(prefer={"mild": 1}, floor=1 / 4)
    learner = TransferLearner(goal, method=TL(prior_count=1 / 6))
    support = learner.fit(log, **COLUMNS, weight="weight").support()
    w = [1 / 2, 1 / 2, 1]
    assert support["cold"].to_dict() == pytest.approx(
        {
            "records": 3,
            "similarity": sum(w),
            "effective": sum(w) ** 2 / sum(x**2 for x in w),
            "prior_share": 1 / (1 + sum(w)),
        }
    )
    assert support["mild"].to_dict() == pytest.approx(
        {"records": 1, "similarity": 3, "effective": 1, "prior_share": 1 / 4}
    )
    assert support["warm"] == SupportOfState(0, 0, 0, 1)


def test_twenty_useless_records_are_many_and_support_nothing() -> None:
    log = [("cold", "wait", "cold")] * 20 + [("mild", "wait", "mild")]
    learner = fitted(log, Goal(prefer={"mild": 1}, floor=1e-5))
    support = learner.support()
    assert support["cold"].records == 20
    assert support["cold"].effective == pytest.approx(20)
    assert support["cold"].similarity == pytest.approx(2e-4, rel=1e-4)
    (warning,) = support.warnings()
    assert "1 of 2 states" in warning
    assert "cold" in warning
    assert "mild" not in warning
    assert (learner.rule_.similarity < WEAK).tolist() == [True, False]


# Conventions.


def test_a_planner_learns_where_no_method_is_named() -> None:
    learner = TransferLearner(MILD).fit(counts_of(LOG))
    assert learner.method_.name == pw.methods.DEFAULT == "TL_foresight"
    assert repr(learner) == f"TransferLearner({MILD!r})"
    assert repr(fitted()) == f"TransferLearner({MILD!r}, method='TL')"


def test_parameters_are_kept_as_given() -> None:
    past: dict[Label, Goal] = {"a": MILD}
    method = TL(prior_count=0.5, similarity=plain_similarity)
    learner = TransferLearner(SAFE, method=method, past_goals=past)
    assert learner.get_params() == {
        "goal": SAFE,
        "method": method,
        "past_goals": past,
        "divergence": kl_divergence,
        "on_unseen": "refuse",
    }
    assert learner.past_goals is past
    assert TransferLearner(**learner.get_params()).get_params() == learner.get_params()
    assert learner.set_params(method="FPD_learn") is learner
    assert learner.method == "FPD_learn"
    with pytest.raises(ValueError, match="'prior'; choose one of goal, method, past_goals"):
        learner.set_params(prior=1)
    assert repr(learner) == f"TransferLearner({SAFE!r}, method='FPD_learn')"


@pytest.mark.parametrize(
    "params",
    [
        {"goal": Goal(prefer={"cold": 1})},
        {"method": TL(similarity=plain_similarity)},
        {"method": TL(prior_count=1.0)},
        {"method": "FPD_learn"},
        {"on_unseen": "prior"},
    ],
)
def test_what_was_fitted_stays_until_the_next_fit(params: dict[str, Any], tmp_path: Path) -> None:
    learner = fitted().set_params(**params)
    before = fitted()
    assert np.array_equal(learner.rule_.probabilities, before.rule_.probabilities)
    assert learner.support().to_dict() == before.support().to_dict()
    assert learner.explain("cold") == before.explain("cold")
    learner.save(tmp_path / "policy.safetensors")
    loaded = pw.load(tmp_path / "policy.safetensors")
    assert np.array_equal(loaded.rule_.probabilities, before.rule_.probabilities)
    again = TransferLearner(**learner.get_params()).fit(counts_of(LOG))
    assert same(learner.fit(counts_of(LOG)), again)


@pytest.mark.parametrize("params", [{"goal": Goal(prefer={"cold": 1})}, {"method": "FPD_learn"}])
def test_what_is_observed_is_learned_by_what_was_fitted(params: dict[str, Any]) -> None:
    """Parameters that were set since wait for the next fit."""
    learner = fitted().set_params(**params)
    before = fitted()
    assert same(learner.observe("cold", "heat", "cold"), before.observe("cold", "heat", "cold"))


@pytest.mark.parametrize("kind", [TL, TLExplore, FPDLearn])
def test_hyper_parameters_of_the_method_are_used(kind: Any) -> None:
    by_default = fitted(method=kind())
    other = fitted(method=kind(prior_count=5.0))
    assert by_default.method_ == kind()
    assert other.method_ == kind(prior_count=5.0)
    assert not np.allclose(other.rule_.probabilities, by_default.rule_.probabilities)


def test_a_method_may_be_named() -> None:
    for name in pw.methods.names():
        by_name = fitted(method=name)
        assert by_name.method == name
        assert by_name.method_ == pw.methods.create(name)
        assert same(by_name, fitted(method=pw.methods.create(name)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda learner: learner.rule_,
        lambda learner: learner.counts_,
        lambda learner: learner.rule("cold"),
        lambda learner: learner.support(),
        lambda learner: learner.explain("cold"),
        lambda learner: learner.observe("cold", "heat", "mild"),
        lambda learner: learner.merge(counts_of(LOG)),
        lambda learner: learner.retarget(MILD),
        lambda learner: learner.update(table_of(LOG)),
        lambda learner: learner.save("nowhere"),
    ],
)
def test_nothing_is_known_before_learning(ask: Callable[[TransferLearner], Any]) -> None:
    with pytest.raises(ValueError, match="call fit first"):
        ask(TransferLearner(MILD))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"on_unseen": "guess"}, "'prior' or 'refuse', not 'guess'"),
        ({"method": "SARSA"}, "unknown method 'SARSA'; choose one of TL, TL_explore"),
        ({"method": TL(prior_count=[1, 2])}, "prior_count"),
        ({"goal": Goal(prefer={"midl": 1})}, "'midl'; did you mean 'mild'"),
        (
            {"goal": Goal(prefer_actions={"wait": 1}, forbid=(("cold", "heat"), (None, "wait")))},
            "'cold' without any",
        ),
    ],
)
def test_bad_parameters_are_refused_when_fitting(params: dict[str, Any], message: str) -> None:
    learner = TransferLearner(**{"goal": MILD, **params})
    with pytest.raises(ValueError, match=message):
        learner.fit(counts_of(LOG))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"method": TL}, r"method=TL is a class; write TL\(\)"),
        ({"method": 3}, "method must be a name or a Method, not 3"),
        ({"goal": "mild"}, "the goal must be a Goal"),
    ],
)
def test_slips_are_named(params: dict[str, Any], message: str) -> None:
    with pytest.raises(PastwiseError, match=message):
        TransferLearner(**{"goal": MILD, **params}).fit(counts_of(LOG))


def test_arguments_without_effect_are_refused() -> None:
    columns = pw.Columns.of(**COLUMNS)
    with pytest.raises(ParameterError, match="not both: state"):
        TransferLearner(MILD).fit(table_of(LOG), columns, state="room")
    with pytest.raises(ParameterError, match="as_of has no effect without age"):
        TransferLearner(MILD).fit(table_of(LOG), columns, as_of=3)
    with pytest.raises(ParameterError, match="merge takes TransitionCounts, not str"):
        fitted().merge("counts.safetensors")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="the seed must be a whole number"):
        fitted().live(seed=-1)


def test_fit_takes_a_log_and_its_columns() -> None:
    with pytest.raises(ValueError, match="columns already"):
        TransferLearner(MILD).fit(counts_of(LOG), **COLUMNS)
    with pytest.raises(ValueError, match="not int"):
        TransferLearner(MILD).fit(5, **COLUMNS)
    by_value = TransferLearner(MILD).fit(table_of(LOG), columns=pw.Columns.of(**COLUMNS))
    assert same(by_value, TransferLearner(MILD).fit(table_of(LOG), **COLUMNS))
    assert by_value.columns_ == pw.Columns(("room",), ("did",), ("then",))


@pytest.mark.filterwarnings("ignore:the log has a single transition")
def test_fit_takes_the_date_that_weights_are_as_of() -> None:
    log = table_of(LOG[:1], age=[0])
    learner = TransferLearner(MILD).fit(log, **COLUMNS, age="age", half_life=10, as_of=20)
    assert learner.counts_.weight.tolist() == pytest.approx([1 / 4])


def test_a_learner_of_counts_knows_no_columns() -> None:
    with pytest.raises(ValueError, match="merge counts"):
        fitted().update(table_of(LOG))


def test_what_was_left_out_is_warned_of_and_kept() -> None:
    log = table_of([*LOG, (None, "heat", "mild"), ("cold", None, "mild")])
    with pytest.warns(LogWarning) as caught:
        learner = TransferLearner(MILD).fit(log, **COLUMNS)
    assert {warning.filename for warning in caught} == {__file__}
    assert {(finding.code, finding.rows) for finding in learner.findings_} == {
        ("missing-state", 1),
        ("missing-action", 1),
    }
    assert learner.counts_.records.tolist() == fitted().counts_.records.tolist()


def test_a_log_without_records_teaches_the_prior() -> None:
    learner = TransferLearner(Goal(prefer={0: 1})).fit(
        TransitionCounts.empty(Space.of_size(2), Space.of_size(2))
    )
    assert dict(learner.rule_) == {0: {0: 0.5, 1: 0.5}, 1: {0: 0.5, 1: 0.5}}
    assert learner.support()[1] == SupportOfState(0, 0, 0, 1)
    assert learner.observe(1, 0, 0).rule(1)[0] > 0.99


@pytest.mark.parametrize("wanted", [["x"], ["x", "y"]])
@pytest.mark.filterwarnings("error")
def test_a_goal_that_wants_every_state_is_served_by_any_record(wanted: list[str]) -> None:
    log = {"state": wanted * 2, "action": ["a", "b"] * len(wanted), "next": wanted[::-1] * 2}
    learner = TransferLearner(Goal(prefer=wanted))
    learner.fit(log, state="state", action="action", next_state="next")
    assert learner.serves_goal_


def test_a_log_that_never_leads_where_the_goal_wants_does_not_serve_it() -> None:
    log = {"state": ["x", "y", "z"], "action": ["a", "b", "a"], "next": ["y", "x", "x"]}
    learner = TransferLearner(Goal(prefer="z"))
    with pytest.warns(pw.LogWarning, match="no record leads to anything that the goal wants"):
        learner.fit(log, state="state", action="action", next_state="next")
    assert not learner.serves_goal_
