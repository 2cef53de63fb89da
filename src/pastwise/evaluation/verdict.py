"""Verdict and alarm: what samples of paired differences say about a rule.

A *difference* is the value of the new rule minus that of another rule on the same sampled model.
The verdict against that rule is *better* or *worse* where a central interval of the differences
lies on one side of zero, and *cannot tell* where it contains zero. The alarm warns of negative
transfer: the new rule may do harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.interval import Interval, require_level
from pastwise.errors import ParameterError

Verdict = Literal["better", "worse", "cannot tell"]


@dataclass(frozen=True)
class Thresholds:
    """How much the samples must agree.

    The defaults of the levels and of the alarm were chosen on ``pastwise study calibration``, with
    other seeds than those of the published table.

    Attributes
    ----------
    level : float
        Level of the intervals that are reported, and of the one that decides against acting at
        random.
    level_against_logged : float
        Level of the interval that decides against what was done, and against any extra rule. It is
        higher because the new rule was chosen for what looked good in the same log.
    min_samples : int
        Fewer samples give no verdict. Below 40, no sample lies outside a 95 % interval.
    alarm_probability : float
        The alarm is raised where the new rule is worse than acting at random with a larger
        probability than this. With 0.3 it missed a tenth of the harmful cases at 200 records; with
        0.2 it was raised in a fifth of the harmless cases at 60 records.
    """

    level: float = 0.9
    level_against_logged: float = 0.95
    min_samples: int = 40
    alarm_probability: float = 0.25

    def __post_init__(self) -> None:
        require_level("level", self.level)
        require_level("level_against_logged", self.level_against_logged)
        require_level("alarm_probability", self.alarm_probability)
        if self.min_samples < 1:
            raise ParameterError(f"min_samples must be at least 1, not {self.min_samples}")

    def level_against(self, name: str) -> float:
        """Level of the interval that decides the verdict against a rule."""
        return self.level if name == "random" else self.level_against_logged


DEFAULT_THRESHOLDS = Thresholds()


def side_of_zero(difference: Interval) -> Verdict:
    """On which side of zero the whole interval of a difference lies."""
    if difference.low > 0:
        return "better"
    if difference.high < 0:
        return "worse"
    return "cannot tell"


def verdicts(
    differences: Mapping[str, FloatArray], thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> dict[str, Verdict]:
    """The verdict on the new rule against each other rule.

    Parameters
    ----------
    differences : name -> [samples]
        Value of the new rule minus that of the named one.
    """
    result: dict[str, Verdict] = {}
    for name, samples in differences.items():
        if len(samples) < thresholds.min_samples:
            result[name] = "cannot tell"
        else:
            interval = Interval.of_samples(samples, thresholds.level_against(name))
            result[name] = side_of_zero(interval)
    return result


def is_alarming(
    differences: Mapping[str, FloatArray], thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> bool:
    """Whether negative transfer is likely, by the differences to ``logged`` and ``random``."""
    probability_of_harm = (differences["random"] < 0).mean()
    if probability_of_harm > thresholds.alarm_probability:
        return True
    to_logged = Interval.of_samples(differences["logged"], thresholds.level)
    return side_of_zero(to_logged) == "worse"
