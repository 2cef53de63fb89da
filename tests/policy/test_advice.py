"""Tables show the best action of each state, and what it rests on, in records and episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pastwise import Goal, TransferLearner, validate_log
from pastwise.data.space import Space
from pastwise.logs.columns import Columns
from pastwise.logs.read import read_log
from pastwise.policy.advice import Advice
from pastwise.policy.rule import Rule

INFANTS = {
    "infant": ["Ann"] * 4 + ["Ben"] * 3 + ["Cy"] * 3,
    "t": [0, 1, 2, 3, 0, 1, 2, 0, 1, 2],
    "s": ["low", "low", "high", "low", "low", "high", "low", "low", "low", "high"],
    "a": ["rest", "feed", "rest", "feed", "feed", "rest", "rest", "rest", "feed", "rest"],
}
COLUMNS: dict[str, Any] = {"state": "s", "action": "a", "episode": "infant", "time": "t"}


@pytest.fixture(scope="module")
def learner() -> TransferLearner:
    return TransferLearner(Goal(prefer="high")).fit(INFANTS, **COLUMNS)


def test_advice_counts_records_and_episodes(learner: TransferLearner) -> None:
    low, high = learner.rule_.advice()
    assert (low.state, low.action) == ("low", "feed")
    assert (low.records, low.records_with_action) == (5, 3)
    assert (low.episodes, low.episodes_with_action) == (3, 3)
    assert (high.state, high.records, high.episodes) == ("high", 2, 2)
    assert low.to_dict()["action"] == "feed"
    assert learner.rule_.advice(first=1) == [low]


def test_the_most_visited_states_come_first() -> None:
    log = {"s": list("abbbcc"), "a": list("xyxyxy"), "n": list("bcabca")}
    learner = TransferLearner(Goal(prefer="a")).fit(log, state="s", action="a", next_state="n")
    assert [each.state for each in learner.rule_.advice()] == ["b", "c", "a"]
    assert [each.records for each in learner.rule_.advice()] == [3, 2, 1]
    assert all(each.episodes is None for each in learner.rule_.advice())


def one_row(*probabilities: float) -> Advice:
    actions = Space(tuple(f"a{i}" for i in range(len(probabilities))))
    (advice,) = Rule(Space(("s",)), actions, np.array([probabilities]), np.ones(1)).advice()
    return advice


def test_the_runner_up_is_the_second_most_probable_action() -> None:
    assert one_row(0.2, 0.5, 0.3).runner_up == "a2"
    assert one_row(0.2, 0.5, 0.3).runner_up_probability == 0.3
    assert one_row(1.0, 0.0).runner_up is None
    assert one_row(0.25, 0.25, 0.25, 0.25).num_best == 4


def test_a_planner_says_which_action_of_probability_zero_comes_second() -> None:
    rng = np.random.default_rng(0)
    success = {"best": 0.9, "good": 0.7, "bad": 0.1}
    action = rng.choice(list(success), size=600)
    follows = np.where(rng.random(600) < [success[a] for a in action], "up", "down")
    log = {"s": rng.choice(["up", "down"], size=600), "a": action, "n": follows}
    learner = TransferLearner(Goal(prefer="up")).fit(log, state="s", action="a", next_state="n")
    for each in learner.rule_.advice():
        assert (each.action, each.runner_up) == ("best", "good")


def test_nothing_is_advised_where_episodes_end() -> None:
    log = {"s": ["a", "a"], "a": ["x", "y"], "n": ["a", "end"]}
    learner = TransferLearner(Goal(prefer="end"))
    learner.fit(log, state="s", action="a", next_state="n", terminal="end")
    *_, end = learner.rule_.advice()
    assert (end.state, end.is_end, end.is_weak) == ("end", True, False)
    assert "(the end)" in str(learner.rule_)


def test_support_and_explanations_count_episodes(learner: TransferLearner) -> None:
    support = learner.support()
    assert support["low"].episodes == 3
    assert support.to_dict()["high"]["episodes"] == 2
    assert list(support.to_frame("pyarrow").column_names)[-1] == "episodes"
    reason = learner.explain("low", "rest").actions["rest"]
    assert (reason.records, reason.episodes) == (2, 2)
    assert "2 records of 2 infants that led" in str(learner.explain("low", "rest"))


RESULTS: dict[str, Callable[[TransferLearner], Any]] = {
    "learner": lambda learner: learner,
    "rule": lambda learner: learner.rule_,
    "support": lambda learner: learner.support(),
    "explanation": lambda learner: learner.explain("low"),
    "counts": lambda learner: learner.counts_,
    "evaluation": lambda learner: learner.evaluate(samples=100),
    "validation": lambda learner: validate_log(INFANTS, Columns.of(**COLUMNS)),
    "reading": lambda learner: read_log(INFANTS, Columns.of(**COLUMNS)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_a_text_and_a_page(name: str, learner: TransferLearner) -> None:
    result = RESULTS[name](learner)
    text = str(result)
    page = result._repr_html_()
    assert "array(" not in text
    assert max(len(line) for line in text.splitlines()) < 1000
    assert "<table>" in page or "<p style" in page
    assert "<script" not in page
    if name in ("learner", "rule", "support", "explanation"):
        assert "infants" in text
        assert "infants" in page


def test_a_learner_that_has_not_learned_says_so() -> None:
    learner = TransferLearner(Goal(prefer="high"))
    assert str(learner).endswith("not fitted")
    assert "not fitted" in learner._repr_html_()


def test_explanations_show_the_most_probable_of_many_actions() -> None:
    rng = np.random.default_rng(3)
    number = 2000
    log = {
        "s": rng.integers(30, size=number),
        "a": [f"a{i}" for i in rng.integers(40, size=number)],
        "n": rng.integers(30, size=number),
    }
    learner = TransferLearner(Goal(prefer={3: 1}), method="TL")
    learner.fit(log, state="s", action="a", next_state="n")
    explanation = learner.explain(3)
    assert "… and 32 more actions" in str(explanation)
    assert len(str(explanation).splitlines()) < 80
    assert "more actions" not in explanation.to_text(max_actions=None)
    assert "… and 32 more actions" in explanation._repr_html_()
