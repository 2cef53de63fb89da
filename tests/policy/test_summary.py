"""What is shown after learning or counting: typed results with one dictionary form."""

from __future__ import annotations

import pytest

from pastwise import Goal, TransferLearner
from pastwise.policy.summary import CountsSummary, PolicySummary, QuickVerdict, quick_verdict

LOG = {
    "room": ["cold", "cold", "cold", "mild"],
    "did": ["heat", "heat", "wait", "wait"],
    "then": ["mild", "mild", "cold", "mild"],
}


def learner(method: str = "TL", goal: str = "mild") -> TransferLearner:
    new = TransferLearner(Goal(prefer=goal), method=method)
    return new.fit(LOG, state="room", action="did", next_state="then")


def test_counts_are_summed_up_by_hand() -> None:
    summary = CountsSummary.of(learner().counts_)
    assert summary == CountsSummary(records=4, transitions=3, states=2, actions=2)
    expected = {"records": 4, "transitions": 3, "states": 2, "actions": 2}
    assert summary.to_dict() == expected


def test_policy_summary_has_rule_support_and_method() -> None:
    fitted = learner()
    content = PolicySummary.of(fitted).to_dict()
    assert content == {
        "states": ["cold", "mild"],
        "actions": ["heat", "wait"],
        "goal": fitted.goal.to_dict(),
        "policy": fitted.rule_.to_dict(),
        "support": fitted.support().to_dict(),
        "warnings": [],
        "method": "TL",
    }


@pytest.mark.parametrize(
    ("method", "rests_on_similarity"),
    [("TL", True), ("TL_explore", True), ("FPD_learn", False), ("clone", False)],
)
def test_weak_states_are_a_warning_where_similarity_carries_the_rule(
    method: str, rests_on_similarity: bool
) -> None:
    """No record of mild leads to cold, so its rule rests on almost no similarity."""
    fitted = learner(method, goal="cold")
    assert fitted.rests_on_similarity_ is rests_on_similarity
    assert len(PolicySummary.of(fitted).warnings) == int(rests_on_similarity)


def test_quick_verdict_is_that_of_evaluate() -> None:
    fitted = learner()
    result = fitted.evaluate(samples=100)
    verdict = quick_verdict(fitted, samples=100)
    assert verdict.to_dict() == {
        "sentence": result.sentence,
        "logged": result.verdict["logged"],
        "random": result.verdict["random"],
        "alarm": result.alarm.to_dict(),
        "margin": result.margin,
        "objections": [objection.to_dict() for objection in result.objections],
        "alternatives": {name: each.verdict for name, each in result.alternatives.items()},
        "alternatives_in_words": result.alternatives_in_words,
        "values": {name: value.mean for name, value in result.values.items()},
    }
    assert result.alternatives
    assert PolicySummary.of(fitted, verdict).to_dict()["verdict"] == verdict.to_dict()


def test_quick_verdict_takes_a_margin() -> None:
    fitted = learner()
    verdict = quick_verdict(fitted, samples=100, margin=0.2)
    assert verdict.margin == 0.2
    assert verdict.sentence == fitted.evaluate(samples=100, margin=0.2).sentence


def test_quick_verdict_says_why_there_is_none() -> None:
    verdict = quick_verdict(learner(), max_states=1)
    assert verdict.sentence.startswith("No verdict on so many states (2); run pastwise evaluate")
    assert verdict.to_dict() == {"sentence": verdict.sentence}
    assert verdict == QuickVerdict(verdict.sentence)
