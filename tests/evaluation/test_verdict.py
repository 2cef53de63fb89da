"""Verdict and alarm from samples of differences."""

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from pastwise._numerics.interval import Interval
from pastwise.errors import ParameterError
from pastwise.evaluation.verdict import (
    DEFAULT_THRESHOLDS,
    Alarm,
    Comparison,
    Thresholds,
    compare,
    decide,
)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.1, 0.3, "better"),
        (0.06, 0.3, "better"),
        (0.05, 0.3, "cannot tell"),
        (0.01, 0.03, "cannot tell"),
        (-0.1, 0.1, "cannot tell"),
        (0.0, 0.0, "cannot tell"),
        (-0.3, -0.05, "cannot tell"),
        (-0.3, -0.06, "worse"),
    ],
)
def test_the_whole_interval_must_lie_beyond_the_margin(
    low: float, high: float, verdict: str
) -> None:
    assert decide(Interval((low + high) / 2, low, high, 0.95), margin=0.05) == verdict


def test_no_difference_is_no_verdict_without_a_margin_either() -> None:
    assert decide(Interval(0.0, 0.0, 0.0, 0.95), margin=0.0) == "cannot tell"


def test_a_comparison_states_both_intervals_and_the_chance() -> None:
    """Samples 0, 1, ..., 400 shifted down by 39.5: forty of them lie below zero."""
    samples = np.arange(401.0) - 39.5
    careful = Thresholds(deciding_level=0.95)
    found = Comparison.of_samples("logged", samples, 0.0, careful)
    assert found.reference == "logged"
    assert found.chance_better == 361 / 401
    assert found.by_the_log == found.verdict == "cannot tell"
    assert found.to_dict() == {
        "reference": "logged",
        "difference": pytest.approx({"mean": 160.5, "low": -19.5, "high": 340.5, "level": 0.9}),
        "deciding": pytest.approx({"mean": 160.5, "low": -29.5, "high": 350.5, "level": 0.95}),
        "by_the_log": "cannot tell",
        "verdict": "cannot tell",
        "chance_better": 361 / 401,
    }


def test_every_reference_is_decided_at_the_same_level() -> None:
    """96 % of the samples favour the rule: a 90 % interval would decide, a 95 % one does not."""
    mostly = np.concatenate([np.full(4, -1.0), np.full(96, 1.0)])
    names = ("logged", "random", "extra")
    differences = dict.fromkeys(names, mostly)
    careful = compare(differences, 0.0, Thresholds(deciding_level=0.95))
    assert {name: careful[name].verdict for name in names} == dict.fromkeys(names, "cannot tell")
    lenient = compare(differences, margin=0.0)
    assert {name: lenient[name].verdict for name in names} == dict.fromkeys(names, "better")


def test_the_verdict_is_that_of_the_deciding_interval() -> None:
    rng = np.random.default_rng(5)
    for shift in np.linspace(-3, 3, 25):
        found = Comparison.of_samples("logged", rng.normal(shift, 1, 500), margin=0.5)
        assert (found.verdict == "better") == (found.deciding.low > 0.5)
        assert (found.verdict == "worse") == (found.deciding.high < -0.5)


def test_objections_overrule_the_log() -> None:
    found = Comparison.of_samples("logged", np.ones(100), margin=0.01, is_fair=False)
    assert found.by_the_log == "better"
    assert found.verdict == "cannot tell"


def test_few_samples_give_no_verdict() -> None:
    found = compare({"random": np.ones(39), "logged": np.ones(40)}, margin=0.0)
    assert found["random"].by_the_log == "cannot tell"
    assert found["logged"].by_the_log == "better"
    strict = compare({"logged": np.ones(40)}, 0.0, Thresholds(min_samples=1000))
    assert strict["logged"].verdict == "cannot tell"


# The margin.


def test_the_margin_is_a_share_of_the_range_unless_it_is_given() -> None:
    assert DEFAULT_THRESHOLDS.margin_for(12.0) == pytest.approx(0.12)
    assert DEFAULT_THRESHOLDS.margin_choice == "1 % of the range of the utility"
    assert Thresholds(margin_share=0.05).margin_for(2.0) == pytest.approx(0.1)
    assert Thresholds(margin=0.3).margin_for(12.0) == 0.3
    assert Thresholds(margin=0.0).margin_for(12.0) == 0.0
    assert Thresholds(margin=0.3).margin_choice == "as requested"


def test_a_larger_margin_decides_less() -> None:
    samples = np.linspace(0.02, 0.04, 100)
    assert Comparison.of_samples("logged", samples, margin=0.01).verdict == "better"
    assert Comparison.of_samples("logged", samples, margin=0.03).verdict == "cannot tell"


# The alarm.


def alarm(to_random: Any, to_logged: Any, margin: float = 0.0) -> Alarm:
    against_logged = Comparison.of_samples("logged", np.asarray(to_logged), margin)
    return Alarm.of_samples(np.asarray(to_random), against_logged, margin)


def test_alarm_is_raised_when_harm_is_expected() -> None:
    fine = np.linspace(-0.4, 0.6, 100)
    bad = np.linspace(-0.6, 0.4, 100)
    assert not alarm(fine, fine)
    assert alarm(bad, fine)
    assert alarm(fine, fine - 1)
    assert not alarm(fine, bad)
    assert not alarm(np.zeros(100), fine), "acting at random is not worse than itself"


def test_a_small_chance_of_a_large_loss_is_alarming() -> None:
    """A tenth of the samples loses 1, the others gain 0.1."""
    samples = np.concatenate([np.full(10, -1.0), np.full(90, 0.1)])
    assert alarm(samples, samples)
    assert not alarm(np.maximum(samples, -0.5), samples)


def test_alarm_states_what_is_expected_and_the_chance_of_harm() -> None:
    """40 of 100 samples lie below zero, 20 of them below -0.1."""
    samples = np.concatenate([np.full(20, -0.2), np.full(20, -0.1), np.full(60, 0.05)])
    raised = alarm(samples, samples)
    assert raised.to_dict() == {
        "raised": True,
        "expected_difference": pytest.approx(-0.03),
        "limit": 0.0,
        "chance_of_harm": 0.4,
        "harm": 0.0,
        "worse_than_logged": False,
    }

    # Harm is worse than acting at random by three margins; less than a third of one is expected.
    of_margin = alarm(samples, samples, margin=0.05)
    assert of_margin.harm == pytest.approx(0.15)
    assert of_margin.chance_of_harm == 0.2
    assert of_margin.raised
    assert not alarm(samples, samples, margin=0.11).raised


def test_being_worse_than_what_was_done_is_alarming_despite_objections() -> None:
    against_logged = Comparison.of_samples("logged", -np.ones(50), margin=0.0, is_fair=False)
    raised = Alarm.of_samples(np.ones(50), against_logged, margin=0.0)
    assert raised.worse_than_logged
    assert raised.chance_of_harm == 0.0
    assert raised.raised


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 90}, "level must lie between 0 and 1, not 90"),
        ({"deciding_level": 1.0}, "deciding_level must lie between 0 and 1"),
        ({"alarm_margins": -1.0}, "alarm_margins must be a finite number that is not negative"),
        ({"min_samples": 0}, "min_samples must be at least 1, not 0"),
        ({"margin": -0.1}, "margin must be a finite number that is not negative, not -0.1"),
        ({"margin": nan}, "margin must be a finite number that is not negative, not nan"),
        ({"margin": "x"}, "margin must be a finite number that is not negative, not 'x'"),
        ({"margin": True}, "margin must be a finite number that is not negative, not True"),
        ({"margin_share": inf}, "margin_share must be a finite number that is not negative"),
    ],
)
def test_bad_thresholds_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Thresholds(**options)
