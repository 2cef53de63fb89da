"""The page of a policy, for the person who signs it off."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np

import pastwise as pw
from pastwise._pictures import probability_text
from pastwise.evaluation.objections import Objection
from pastwise.logs.findings import Finding
from pastwise.policy.card import PolicyCard
from pastwise.policy.summary import quick_verdict, stored_verdict
from pastwise.report.card import card_html
from tests.helpers.markup import Markup, require_static
from tests.helpers.workbenches import COLUMNS, THERMOSTAT

EVIL = "<img src=x onerror=alert(1)>"
GOAL = pw.Goal(prefer={"comfortable": 1, "warm": 0.5}, forbid=[("hot", "heat")])


@cache
def learner() -> pw.TransferLearner:
    return pw.TransferLearner(GOAL, method="TL").fit(THERMOSTAT, columns=COLUMNS)


@cache
def evaluation() -> pw.Evaluation:
    return learner().evaluate(samples=100)


def page_of(verdict: pw.Evaluation | None, title: str = "Comfort first") -> Markup:
    stored = None if verdict is None else stored_verdict(json.loads(json.dumps(verdict.to_dict())))
    return require_static(card_html(PolicyCard.of(learner(), stored, title=title)))


def test_a_page_shows_the_verdict_with_its_numbers() -> None:
    markup = page_of(evaluation())
    assert "Better than what was done" in markup.text
    assert evaluation().sentence in markup.text
    for value in evaluation().values.values():
        assert f"{value.mean:.3f}, {value.low:.3f} to {value.high:.3f}" in markup.text
    deciding = evaluation().comparisons["logged"].difference
    assert f"+{deciding.mean:.3f}, +{deciding.low:.3f} to +{deciding.high:.3f}" in markup.text


def test_a_page_shows_goal_rule_and_how_it_was_made() -> None:
    markup = page_of(None)
    text = " ".join(markup.text)
    assert "Be in comfortable (weight 1) or warm (weight 0.5); never heat in hot." in markup.text
    for state, row in learner().rule_.items():
        for action, probability in row.items():
            if (state, action) != ("hot", "heat"):
                assert probability_text(probability) in markup.text
    assert markup.text.count("⊘ never") == 1
    assert "440 records of 40 days" in markup.text
    assert "None is recorded with the policy; pastwise validate checks a log." in markup.text
    assert f"Similarity (TL), pastwise {pw.__version__}" in text
    assert json.dumps(GOAL.to_dict()) in markup.text
    assert {"Name", "Date", "Signature"} <= set(markup.text)
    assert "Not judged." in markup.text


def test_findings_are_shown_with_what_to_do() -> None:
    finding = Finding("gap", f"3 gaps in {EVIL}", 3, "Allow them", severity="blocks-verdict")
    markup = require_static(card_html(PolicyCard.of(learner(), findings=[finding])))
    assert "Overrules the verdict." in markup.text
    assert f"3 gaps in {EVIL}. Allow them." in markup.text
    markup = require_static(card_html(PolicyCard.of(learner(), findings=[])))
    assert "Nothing odd was found in the log." in markup.text


def test_the_goal_of_a_page_makes_the_same_policy() -> None:
    made = PolicyCard.of(learner()).making
    goal = pw.Goal.from_dict(json.loads(made["Goal"]))
    again = pw.TransferLearner(goal, method="TL").fit(
        THERMOSTAT, columns=json.loads(made["Columns"])
    )
    np.testing.assert_array_equal(again.rule_.probabilities, learner().rule_.probabilities)


def test_objections_and_alarms_are_in_the_headline() -> None:
    objection = Objection("action-constant", "each episode has one action")
    comparisons = {
        name: replace(each, verdict="cannot tell")
        for name, each in evaluation().comparisons.items()
    }
    alarm = replace(evaluation().alarm, worse_than_logged=True)
    changed = replace(evaluation(), objections=(objection,), comparisons=comparisons, alarm=alarm)
    markup = page_of(changed)
    assert "Better by the log, but not a fair comparison" in markup.text
    assert "⚠ Alarm: negative transfer is likely." in markup.text
    assert "Each episode has one action." in markup.text


def test_second_opinions_say_why_they_cannot_be_used() -> None:
    estimates = learner().estimates(THERMOSTAT, evaluation().horizon)
    judged = replace(evaluation(), estimates=estimates)
    markup = page_of(judged)
    assert "Second opinions" in markup.text
    assert "Totals over an episode, up to 11 decisions." in markup.text
    text = " ".join(markup.text)
    for name, estimate in judged.estimates.items():
        if name == "logged":
            assert "What was done." in markup.text
            assert f"The reference: {estimate.mean:.3f}, the mean of the log's episodes." in text
            continue
        assert f"{name}." in markup.text
        if estimate.usable:
            assert f"{estimate.mean:.3f}, {estimate.low:.3f} to {estimate.high:.3f}" in text
        else:
            assert f"Cannot be used: {estimate.why_not}." in markup.text


def test_what_was_done_is_the_reference_however_few_its_episodes() -> None:
    estimates = learner().estimates(THERMOSTAT, evaluation().horizon)
    few = {
        name: replace(each, why_not="it rests on 5.0 effective episodes")
        for name, each in estimates.items()
    }
    markup = page_of(replace(evaluation(), estimates=few))
    unusable = [text for text in markup.text if text.startswith("Cannot be used")]
    assert len(unusable) == len(few) - 1


def test_very_many_states_are_counted_and_markup_is_text() -> None:
    rng = np.random.default_rng(0)
    state = rng.integers(300, size=3000)
    log = {
        "s": [f"{EVIL} {label}" for label in state],
        "a": rng.choice(["a", EVIL], 3000),
        "n": [f"{EVIL} {label}" for label in (state + 1) % 300],
    }
    made = pw.TransferLearner(pw.Goal(prefer={f"{EVIL} 3": 1}), method="TL")
    made.fit(log, state="s", action="a", next_state="n")
    card = PolicyCard.of(made, quick_verdict(made, max_states=10), title=EVIL)
    page = card_html(card, max_states=50)
    markup = require_static(page)
    assert markup.text.count(EVIL) > 2
    assert "… and 260 more states" in page
    assert "The 50 most visited of 300 states" in page
    assert "No verdict on so many states" in page
    assert len(page) < 400_000
