"""Results of an evaluation: their sentence and their plain form."""

import json
from dataclasses import replace
from math import inf, nan

import pytest

from pastwise._numerics.interval import Interval
from pastwise.evaluation.estimate import Estimate
from pastwise.evaluation.objections import Objection
from pastwise.evaluation.result import unit_of
from pastwise.evaluation.verdict import Alarm, Thresholds, Verdict
from tests.helpers.evaluations import EVALUATION, comparison

CONSTANT = Objection("action-constant", "each of the 12 episodes has one action")
LITTLE = Objection("little-support", "only 25 % of the decisions were seen")
OVERRULED = replace(
    EVALUATION,
    comparisons={
        name: replace(each, verdict="cannot tell") for name, each in EVALUATION.comparisons.items()
    },
    objections=(CONSTANT, LITTLE),
)


def test_the_sentence_states_values_deciding_intervals_and_unit() -> None:
    assert EVALUATION.sentence == (
        "The new rule (share of time as wanted 0.464) is better than what was done "
        "(0.411; 95 %: +0.041 to +0.066) and better than acting at random "
        "(0.300; 95 %: +0.100 to +0.200). This rests on 12 episodes, 440 records, over 100 epochs."
    )


@pytest.mark.parametrize(
    ("low", "high", "verdict", "phrase"),
    [
        (0.02, 0.05, "better", "better than"),
        (-0.05, -0.02, "worse", "worse than"),
        (-0.05, 0.05, "cannot tell", "not distinguishable from"),
        (-0.005, 0.008, "cannot tell", "within 0.01 of"),
        (0.004, 0.009, "cannot tell", "within 0.01 of"),
        (0.004, 0.05, "cannot tell", "better, but not certainly by more than 0.01, than"),
        (-0.05, -0.004, "cannot tell", "worse, but not certainly by more than 0.01, than"),
    ],
)
def test_the_sentence_never_contradicts_the_interval_that_it_shows(
    low: float, high: float, verdict: Verdict, phrase: str
) -> None:
    against = comparison("logged", (low + high) / 2, low, high, verdict)
    found = replace(EVALUATION, comparisons={**EVALUATION.comparisons, "logged": against})
    interval = f"95 %: {low:+.3f} to {high:+.3f}"
    assert f"is {phrase} what was done (0.411; {interval}) and better than" in found.sentence


def test_the_sentence_says_that_nothing_is_known() -> None:
    unknown = replace(
        EVALUATION,
        comparisons={
            "logged": comparison("logged", 0.0, -0.1, 0.1, "cannot tell"),
            "random": comparison("random", -0.1, -0.2, -0.05, "cannot tell"),
        },
        alarm=Alarm(-0.1, 0.003, 0.34, 0.03, worse_than_logged=False),
        samples=30,
    )
    assert unknown.sentence == (
        "The new rule (share of time as wanted 0.464) is not distinguishable from what was done "
        "(0.411; 95 %: -0.100 to +0.100) and not distinguishable from acting at random "
        "(0.300; 95 %: -0.200 to -0.050). This rests on 12 episodes, 440 records, over 100 epochs. "
        "Warning: it is expected to be worse than acting at random; the chance that it is by more "
        "than 0.03 is 34 %. "
        "Only 30 of 400 samples were taken. "
        "Fewer than 40 samples give no verdict."
    )


def test_being_worse_than_what_was_done_is_a_warning_of_its_own() -> None:
    worse = replace(EVALUATION, alarm=Alarm(0.15, 0.003, 0.01, 0.03, worse_than_logged=True))
    assert "Warning: it may do worse than what was done." in worse.sentence
    assert worse.alarm_in_words == (
        "Alarm raised: by the log the rule is worse than what was done, and the expected "
        "difference to acting at random is +0.150 (limit -0.003); the chance of losing more than "
        "0.03 is 1.0 %."
    )


def test_objections_overrule_the_sentence() -> None:
    assert OVERRULED.sentence == (
        "The new rule (share of time as wanted 0.464) is better by the log than what was done "
        "(0.411; 95 %: +0.041 to +0.066) and better by the log than acting at random "
        "(0.300; 95 %: +0.100 to +0.200), but this is not a fair comparison: "
        "each of the 12 episodes has one action; only 25 % of the decisions were seen. "
        "This rests on 12 episodes, 440 records, over 100 epochs."
    )
    assert EVALUATION.is_better
    assert not OVERRULED.is_better
    assert EVALUATION.verdict_in_words("logged") == "better"
    assert OVERRULED.verdict_in_words("logged") == "cannot tell (by the log: better)"


def test_verdict_and_differences_are_views_of_the_comparisons() -> None:
    assert EVALUATION.verdict == {"logged": "better", "random": "better"}
    assert OVERRULED.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    assert list(EVALUATION.differences) == ["to_logged", "to_random"]
    for name, each in EVALUATION.comparisons.items():
        assert EVALUATION.differences[f"to_{name}"] is each.difference


def test_margin_and_alarm_are_put_into_words() -> None:
    assert EVALUATION.margin_in_words == (
        "Differences of at most 0.01 do not count (margin: 1 % of the range of the utility)."
    )
    requested = replace(EVALUATION, margin=0.2, thresholds=Thresholds(margin=0.2))
    assert requested.margin_in_words.endswith("at most 0.2 do not count (margin: as requested).")
    assert EVALUATION.alarm_in_words == (
        "Alarm not raised: the expected difference to acting at random is +0.150 (limit -0.003); "
        "the chance of losing more than 0.03 is 3.0 %."
    )


def test_the_unit_is_counted() -> None:
    assert unit_of(3862, 133) == "133 episodes, 3,862 records"
    assert unit_of(250, None) == "250 records"
    assert unit_of(1, 1) == "1 episode, 1 record"


def test_the_plain_form_is_json_even_where_estimates_are_undefined() -> None:
    estimate = Estimate(
        nan,
        -inf,
        inf,
        0.9,
        effective_episodes=0.0,
        smallest_effective_episodes=0.0,
        without_overlap=1.0,
        possible_low=0.0,
        possible_high=12.0,
        assumption="Relies on nothing.",
        folds=5,
        in_sample=nan,
        difference=Interval(nan, -inf, inf, 0.9),
        why_not="no logged episode could have been the rule's",
    )
    evaluation = replace(
        OVERRULED,
        estimates={"importance sampling": estimate},
        in_sample={"new": Interval(0.5, 0.4, 0.6, 0.9)},
        visits={"new": {"hot": 0.25, "cold": 0.75}},
    )
    content = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert content["sentence"] == evaluation.sentence
    assert content["values"]["new"] == {"mean": 0.464, "low": 0.45, "high": 0.48, "level": 0.9}
    against_logged = content["comparisons"]["logged"]
    assert against_logged["deciding"] == {"mean": 0.053, "low": 0.041, "high": 0.066, "level": 0.95}
    assert against_logged["by_the_log"] == "better"
    assert against_logged["verdict"] == "cannot tell"
    assert content["differences"]["to_logged"] == against_logged["difference"]
    assert content["verdict"] == {"logged": "cannot tell", "random": "cannot tell"}
    assert content["alarm"] == {
        "raised": False,
        "expected_difference": 0.15,
        "limit": 0.003,
        "chance_of_harm": 0.03,
        "harm": 0.03,
        "worse_than_logged": False,
    }
    assert content["objections"] == [CONSTANT.to_dict(), LITTLE.to_dict()]
    assert CONSTANT.to_dict() == {"code": "action-constant", "message": CONSTANT.message}
    assert content["margin"] == 0.01
    assert content["margin_choice"] == "1 % of the range of the utility"
    assert content["unit"] == "12 episodes, 440 records"
    assert content["in_sample"]["new"]["mean"] == 0.5
    assert content["visits"] == {"new": {"hot": 0.25, "cold": 0.75}}
    assert content["support"] == {
        "records": 440,
        "similarity": 179.0,
        "effective": 208.1,
        "visits_well_seen": 0.99,
        "well_seen": 5,
        "states_by_extrapolation": ["hot"],
        "episodes": 12,
    }
    assert content["thresholds"] == {
        "level": 0.9,
        "deciding_level": 0.9,
        "margin_share": 0.01,
        "margin": None,
        "min_samples": 40,
        "harm_margins": 3.0,
        "alarm_margins": 0.3,
    }
    assert content["estimates"]["importance sampling"] == {
        "mean": None,
        "low": None,
        "high": None,
        "level": 0.9,
        "usable": False,
        "why_not": "no logged episode could have been the rule's",
        "difference": {"mean": None, "low": None, "high": None, "level": 0.9},
        "in_sample": None,
        "folds": 5,
        "effective_episodes": 0.0,
        "smallest_effective_episodes": 0.0,
        "without_overlap": 1.0,
        "possible_low": 0.0,
        "possible_high": 12.0,
        "assumption": "Relies on nothing.",
    }


def test_a_notebook_shows_all_of_it() -> None:
    shown = replace(OVERRULED, in_sample={"new": Interval(0.5, 0.4, 0.6, 0.9)})._repr_html_()
    assert "not a fair comparison: each of the 12 episodes has one action" in shown
    assert "This rests on 12 episodes, 440 records, over 100 epochs." in shown
    assert "<tr><th>new</th><td>0.464</td><td>0.45</td><td>0.48</td></tr>" in shown
    assert "<th>95 % low</th><th>95 % high</th>" in shown
    assert (
        "<tr><th>new - logged</th><td>0.053</td><td>0.041</td><td>0.066</td><td>0.99</td>"
        "<td>cannot tell (by the log: better)</td></tr>"
    ) in shown
    assert "<tr><th>new, in sample</th><td>0.5</td>" in shown
    assert "Differences of at most 0.01 do not count" in shown
    assert "Alarm not raised" in shown
