"""Results of an evaluation: their sentence and their plain form."""

import json
from dataclasses import replace
from math import inf, nan

from pastwise._numerics.interval import Interval
from pastwise.evaluation.result import Estimate, Evaluation, EvaluationSupport

EVALUATION = Evaluation(
    values={
        "new": Interval(0.464, 0.45, 0.48, 0.9),
        "logged": Interval(0.411, 0.4, 0.42, 0.9),
        "random": Interval(0.3, 0.28, 0.32, 0.9),
        "optimum": Interval(0.6, 0.5, 0.7, 0.9),
    },
    differences={
        "to_logged": Interval(0.053, 0.041, 0.066, 0.9),
        "to_random": Interval(0.164, 0.1, 0.2, 0.9),
    },
    verdict={"logged": "better", "random": "better"},
    alarm=False,
    support=EvaluationSupport(440, 179.0, 208.1, 0.99, 5, ("hot",)),
    measure="share of time as wanted",
    samples=400,
    samples_requested=400,
)


def test_the_sentence_states_values_and_differences() -> None:
    assert EVALUATION.sentence == (
        "The new rule (share of time as wanted 0.464) is better than what was done "
        "(0.411; +0.053 [+0.041, +0.066]) and better than acting at random "
        "(0.300; +0.164 [+0.100, +0.200])."
    )


def test_the_sentence_is_careful_where_the_verdict_needs_more_than_the_interval() -> None:
    careful = replace(EVALUATION, verdict={"logged": "cannot tell", "random": "better"})
    assert "is probably, but not certainly, better than what was done (" in careful.sentence


def test_the_sentence_says_that_nothing_is_known() -> None:
    unknown = replace(
        EVALUATION,
        differences={
            "to_logged": Interval(0.0, -0.1, 0.1, 0.9),
            "to_random": Interval(-0.1, -0.2, -0.05, 0.9),
        },
        verdict={"logged": "cannot tell", "random": "worse"},
        alarm=True,
        samples=30,
    )
    assert unknown.sentence == (
        "The new rule (share of time as wanted 0.464) is not distinguishable from what was done "
        "(0.411; +0.000 [-0.100, +0.100]) and worse than acting at random "
        "(0.300; -0.100 [-0.200, -0.050]). "
        "Warning: it may do worse than acting at random or what was done. "
        "Only 30 of 400 samples were taken. "
        "Fewer than 40 samples give no verdict."
    )


def test_the_plain_form_is_json_even_where_estimates_are_undefined() -> None:
    estimate = Estimate(nan, -inf, inf, 0.9, 0.0, 1.0, "Relies on nothing.")
    evaluation = replace(EVALUATION, estimates={"importance sampling": estimate})
    content = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert content["values"]["new"] == {"mean": 0.464, "low": 0.45, "high": 0.48, "level": 0.9}
    assert content["differences"]["to_logged"]["low"] == 0.041
    assert content["verdict"] == {"logged": "better", "random": "better"}
    assert content["support"] == {
        "records": 440,
        "similarity": 179.0,
        "effective": 208.1,
        "visits_well_seen": 0.99,
        "well_seen": 5,
        "states_by_extrapolation": ["hot"],
    }
    assert content["thresholds"] == {
        "level": 0.9,
        "level_against_logged": 0.95,
        "min_samples": 40,
        "alarm_probability": 0.25,
    }
    assert content["estimates"]["importance sampling"] == {
        "mean": None,
        "low": None,
        "high": None,
        "level": 0.9,
        "effective_episodes": 0.0,
        "without_overlap": 1.0,
        "assumption": "Relies on nothing.",
    }
