"""Verdict and alarm from samples of differences."""

from typing import Any

import numpy as np
import pytest

from pastwise._numerics.interval import Interval
from pastwise.errors import ParameterError
from pastwise.evaluation.verdict import Thresholds, is_alarming, side_of_zero, verdicts


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.3, "better"), (-0.3, -0.1, "worse"), (-0.1, 0.1, "cannot tell")],
)
def test_verdict_is_on_which_side_the_interval_lies(low: float, high: float, verdict: str) -> None:
    assert side_of_zero(Interval.of_samples(np.linspace(low, high, 101))) == verdict


def test_no_difference_is_no_verdict() -> None:
    assert side_of_zero(Interval.of_samples(np.zeros(10))) == "cannot tell"


def test_alarm_is_raised_when_harm_is_likely() -> None:
    fine = np.linspace(-0.1, 0.9, 100)
    uncertain = np.linspace(-0.5, 0.5, 100)
    assert not is_alarming({"random": fine, "logged": fine})
    assert is_alarming({"random": uncertain, "logged": fine})
    assert is_alarming({"random": fine, "logged": fine - 1})
    assert not is_alarming({"random": fine, "logged": uncertain})


def test_few_samples_give_no_verdict() -> None:
    differences = {"random": np.ones(39), "logged": np.ones(40)}
    assert verdicts(differences) == {"random": "cannot tell", "logged": "better"}


def test_more_certainty_is_needed_against_what_was_done() -> None:
    """96 % of the samples favour the rule: enough against random, not against its own log."""
    mostly = np.concatenate([np.full(4, -1.0), np.full(96, 1.0)])
    differences = {"random": mostly, "logged": mostly, "extra": mostly}
    assert verdicts(differences) == {
        "random": "better",
        "logged": "cannot tell",
        "extra": "cannot tell",
    }


def test_thresholds_are_yours_to_choose() -> None:
    mostly = np.concatenate([np.full(4, -1.0), np.full(96, 1.0)])
    differences = {"random": mostly, "logged": mostly}
    lenient = Thresholds(level_against_logged=0.9)
    assert verdicts(differences, lenient)["logged"] == "better"
    strict = Thresholds(level=0.99, min_samples=1000, alarm_probability=0.03)
    assert verdicts(differences, strict)["random"] == "cannot tell"
    assert is_alarming(differences, strict)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 90}, "level must lie between 0 and 1, not 90"),
        ({"level_against_logged": 1.0}, "level_against_logged must lie between 0 and 1"),
        ({"alarm_probability": 0}, "alarm_probability must lie between 0 and 1"),
        ({"min_samples": 0}, "min_samples must be at least 1, not 0"),
    ],
)
def test_bad_thresholds_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Thresholds(**options)
