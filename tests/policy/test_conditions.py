"""Policies whose goals have conditions: learning, judging, retargeting, files, commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pastwise as pw
from pastwise.data.bins import Bins
from pastwise.errors import GoalError, LabelError, LogWarning, StraddleError
from pastwise.policy.learner import TransferLearner, load


@pytest.fixture(scope="module")
def jobs() -> pd.DataFrame:
    """Wages that rise after training and fall after strikes."""
    random = np.random.default_rng(5)
    rows = []
    for person in range(40):
        wage = random.uniform(0.5, 4)
        for year in range(8):
            action = random.choice(["train", "strike"])
            rows.append((person, year, round(wage, 3), action))
            step = 0.6 if action == "train" else -0.6
            wage = float(np.clip(wage + step + random.normal(0, 0.2), 0.1, 5.9))
    return pd.DataFrame(rows, columns=["person", "year", "wage", "did"])


COLUMNS: dict[str, Any] = {"state": "wage", "action": "did", "episode": "person", "time": "year"}


def fitted(goal: pw.Goal, log: pd.DataFrame, edges: list[float]) -> TransferLearner:
    return TransferLearner(goal).fit(log, **COLUMNS, bins={"wage": edges})


def same_policy(one: TransferLearner, other: TransferLearner) -> None:
    assert one.counts_.states.labels == other.counts_.states.labels
    for state in one.counts_.states.labels:
        assert one.rule_[state] == pytest.approx(other.rule_[state])


def test_learning_with_a_condition_cuts_the_bins(jobs: pd.DataFrame) -> None:
    learner = fitted(pw.Goal(prefer="wage >= 2"), jobs, [1, 3])
    by_hand = fitted(pw.Goal(prefer=["[2, 3)", ">= 3"]), jobs, [1, 2, 3])
    same_policy(learner, by_hand)
    assert learner.serves_goal_
    assert learner.rule_[learner.counts_.states.labels[1]]["train"] > 0.5


@pytest.mark.parametrize("method", ["TL", "TL_foresight"])
@pytest.mark.parametrize("columns", [{"features": ["load", "day"]}, {"state": "day"}])
def test_what_is_forbidden_before_a_date_is_never_done_before_it(
    columns: dict[str, Any], method: str
) -> None:
    random = np.random.default_rng(5)
    days = pd.Timestamp("2024-03-01") + pd.to_timedelta(random.integers(0, 120, 600), unit="D")
    log = {
        "load": random.uniform(0, 100, 600),
        "day": days,
        "did": random.choice(["start", "wait"], 600),
        "result": random.choice(["good", "bad"], 600),
    }
    goal = pw.Goal(prefer="good", forbid=[("day < '2024-05-01' or day >= '2024-06-01'", "start")])
    bins = {} if "features" in columns else {"bins": {"day": 5}}
    learner = TransferLearner(goal, method=method).fit(
        pd.DataFrame(log), action="did", outcome="result", **columns, **bins
    )
    start = learner.classes_.tolist().index("start")
    probability = learner.predict_proba(pd.DataFrame(log))[:, start]
    is_forbidden = (days < "2024-05-01") | (days >= "2024-06-01")
    assert probability[is_forbidden].max() == 0
    assert probability[~is_forbidden].min() > 0


@pytest.mark.parametrize(
    ("condition", "problem"),
    [
        ("day >= '2024'", "day holds dates, and '2024' is none; write a date as '2024-05-31'"),
        ("day >= soon", "day holds dates, and 'soon' is none"),
        ("load >= '2024-05-01'", "load holds numbers, and '2024-05-01' is none"),
    ],
)
def test_dates_and_numbers_are_not_taken_for_each_other(condition: str, problem: str) -> None:
    log = {"day": pd.date_range("2024-03-01", periods=40), "load": range(40)}
    log |= {"did": ["start", "wait"] * 20, "result": ["good", "bad"] * 20}
    learner = TransferLearner(pw.Goal(prefer="good", forbid=[(condition, "start")]))
    with pytest.raises(GoalError, match=problem):
        learner.fit(pd.DataFrame(log), features=["day", "load"], action="did", outcome="result")


def test_dates_as_text_are_rows_of_a_policy_with_dates() -> None:
    days = pd.date_range("2024-03-01", periods=120)
    log = {"day": days, "did": ["start", "wait"] * 60, "result": ["good"] * 120}
    goal = pw.Goal(prefer="good", forbid=[("day < '2024-05-01'", "start")])
    learner = TransferLearner(goal, method="TL")
    learner.fit(pd.DataFrame(log), features=["day"], action="did", outcome="result")
    assert list(learner.counts_.states.labels)[:2] == ["day < '2024-05-01'", "day >= '2024-05-01'"]
    early, late = learner.predict_proba([{"day": "2024-04-30"}, {"day": "2024-05-01T08:00"}])
    assert early.min() == 0
    assert late.min() > 0
    (first,) = learner.predict_proba([{"day": "20240430"}])
    assert first.tolist() == early.tolist()
    with pytest.raises(LabelError, match="'day' is 'soon', which is neither a date nor a number"):
        learner.predict([{"day": "soon"}])


def test_bins_by_number_are_cut_as_well(jobs: pd.DataFrame) -> None:
    learner = TransferLearner(pw.Goal(prefer="wage >= 2")).fit(jobs, **COLUMNS, bins={"wage": 3})
    assert learner.columns_ is not None
    bins = learner.columns_.bins["wage"]
    assert isinstance(bins, Bins)
    assert 2.0 in bins.edges


def test_judging_by_conditions(jobs: pd.DataFrame) -> None:
    edges = [1.0, 2, 3]
    learner = fitted(pw.Goal(prefer="wage >= 2"), jobs, edges)
    by_hand = fitted(pw.Goal(prefer=["[2, 3)", ">= 3"]), jobs, edges)
    result = learner.evaluate(samples=20, seed=1)
    other = by_hand.evaluate(samples=20, seed=1)
    assert result.measure == "share of time where wage >= 2"
    assert result.values["new"].mean == other.values["new"].mean
    assert "share of time where wage >= 2" in str(learner.explain(by_hand.counts_.states.labels[0]))

    by_goal = learner.evaluate_goals({"rich": pw.Goal(prefer="wage >= 3")}, samples=20, seed=1)
    assert by_goal["rich"].measure == "share of time where wage >= 3"
    straddles = r"goal 'odd': prefer: the state .* both sides of wage >= 5"
    with pytest.raises(GoalError, match=straddles):
        learner.evaluate_goals({"odd": pw.Goal(prefer="wage >= 5")}, samples=20)


def test_retargeting_to_a_condition(jobs: pd.DataFrame) -> None:
    learner = fitted(pw.Goal(prefer="wage >= 2"), jobs, [0, 2, 4, 6])
    low = learner.retarget({"prefer": "wage < 2"})
    same_policy(low, fitted(pw.Goal(prefer="wage < 2"), jobs, [0, 2, 4, 6]))

    # A condition within a state needs the log.
    with pytest.raises(StraddleError, match="retarget with the log") as caught:
        learner.retarget(pw.Goal(prefer="wage >= 3"))
    assert caught.value.comparison == "wage >= 3"
    high = learner.retarget(pw.Goal(prefer="wage >= 3"), log=jobs)
    same_policy(high, fitted(pw.Goal(prefer="wage >= 3"), jobs, [0, 2, 3, 4, 6]))


def test_retargeting_with_another_log_says_so(jobs: pd.DataFrame) -> None:
    learner = fitted(pw.Goal(prefer="wage >= 2"), jobs, [0, 2, 4, 6])
    with pytest.warns(LogWarning, match="it was learned from another log"):
        learner.retarget(pw.Goal(prefer="wage >= 3"), log=jobs[jobs.person < 20])


def test_past_goals_with_conditions(jobs: pd.DataFrame) -> None:
    log = jobs.assign(team=np.where(jobs.person < 20, "a", "b"))
    columns: dict[str, Any] = {**COLUMNS, "task": "team", "bins": {"wage": [2, 4]}}
    goal = pw.Goal(prefer="wage >= 2")
    learner = TransferLearner(goal, past_goals={"a": pw.Goal(prefer="wage < 2")})
    by_label = TransferLearner(goal, past_goals={"a": pw.Goal(prefer="< 2")})
    same_policy(learner.fit(log, **columns), by_label.fit(log, **columns))


def test_conditions_on_labels_and_products() -> None:
    log = {
        "room": ["cold", "cold", "mild", "mild"],
        "guests": [0, 1, 2, 3],
        "did": ["heat", "wait", "heat", "wait"],
        "day": [1, 1, 1, 1],
        "hour": [1, 2, 3, 4],
    }
    goal = pw.Goal(prefer="room == mild and guests >= 2", forbid=[("room != cold", "heat")])
    learner = TransferLearner(goal)
    learner.fit(log, state=["room", "guests"], action="did", episode="day", time="hour")
    assert learner.rule_[("mild", 2)]["heat"] == 0
    score = learner.ideal_.score
    assert score is not None
    wanted = [label for label, s in zip(learner.counts_.states.labels, score, strict=True) if s]
    assert wanted == [("mild", 2), ("mild", 3)]


def test_counts_alone_have_a_column_named_state() -> None:
    counts = pw.TransitionCounts.from_records(
        [0, 1, 2], [0, 1, 0], [1, 2, 0], pw.Space((1, 2, 3)), pw.Space(("x", "y"))
    )
    learner = TransferLearner(pw.Goal(prefer="state >= 2")).fit_counts(counts)
    same = TransferLearner(pw.Goal(prefer=[2, 3])).fit_counts(counts)
    same_policy(learner, same)


def test_a_saved_policy_keeps_its_condition(jobs: pd.DataFrame, tmp_path: Path) -> None:
    learner = fitted(pw.Goal(prefer="wage >= 2"), jobs, [0, 2, 4, 6])
    learner.save(tmp_path / "policy.safetensors")
    loaded = load(tmp_path / "policy.safetensors")
    assert loaded.goal == pw.Goal(prefer="wage >= 2")
    same_policy(loaded, learner)


def test_a_new_state_meets_the_condition_too() -> None:
    log = {"wage": ["1", "2"], "did": ["train", "train"], "then": ["2", "2"]}
    learner = TransferLearner(pw.Goal(prefer="wage >= 2"))
    learner.fit(log, state="wage", action="did", next_state="then")
    learner.observe("2", "strike", "3")
    score = learner.ideal_.score
    assert score is not None
    assert score.tolist() == [0, 1, 1]


def test_a_goal_as_a_mapping() -> None:
    log = {"room": ["cold", "mild"], "did": ["heat", "wait"], "then": ["mild", "mild"]}
    learner = TransferLearner({"prefer": "mild"})
    learner.fit(log, state="room", action="did", next_state="then")
    assert json.loads(json.dumps(learner.goal.to_dict())) == {"prefer": [["mild", 1.0]]}


def learned_from_ordered_sizes(condition: str) -> TransferLearner:
    sizes = pd.Categorical(
        ["small", "large", "mid", "small", "large"], ["small", "mid", "large"], ordered=True
    )
    table = pd.DataFrame({"size": sizes, "did": list("xyxyx"), "who": [1] * 5, "t": range(5)})
    learner = TransferLearner(pw.Goal(prefer=condition))
    return learner.fit(table, state="size", action="did", episode="who", time="t")


@pytest.mark.parametrize(
    ("condition", "preferred"), [("size <= mid", ["small", "mid"]), ("size > mid", ["large"])]
)
def test_ordered_categories_are_compared_by_their_order(
    condition: str, preferred: list[str]
) -> None:
    learner = learned_from_ordered_sizes(condition)
    wanted = learner.ideal_.transition[0, 0] > 0.1
    labels = learner.counts_.states.labels
    assert [labels[i] for i in np.flatnonzero(wanted).tolist()] == preferred


@pytest.mark.parametrize("condition", ["size <= medium", "not size > 'Mid'"])
def test_text_without_a_place_in_an_order_is_not_compared_with_it(condition: str) -> None:
    """Alphabetically, only large comes before medium."""
    with pytest.raises(GoalError, match=r"has the order small, mid, large, in which .* no place"):
        learned_from_ordered_sizes(condition)
