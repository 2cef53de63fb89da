"""A mean with its interval: the one form in which an uncertain number is reported."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import ParameterError


@dataclass(frozen=True)
class Interval:
    """A mean with a central interval around it.

    Attributes
    ----------
    mean : float
        Not a number where the estimate is undefined.
    low, high : float
        Bounds of the interval; infinite where nothing bounds it.
    level : float
        Nominal probability of the interval, such as 0.9.
    """

    mean: float
    low: float
    high: float
    level: float

    @classmethod
    def of_samples(cls, samples: FloatArray, level: float = 0.9) -> Interval:
        """Mean and central quantiles of samples [n] of a posterior.

        >>> Interval.of_samples(np.arange(9.0), level=0.5)
        Interval(mean=4.0, low=2.0, high=6.0, level=0.5)
        """
        low, high = np.quantile(samples, ((1 - level) / 2, (1 + level) / 2))
        return cls(float(samples.mean()), float(low), float(high), level)

    def covers(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return self.low <= value <= self.high

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, for JSON; a number that is undefined or infinite is None."""
        return {
            "mean": finite_or_none(self.mean),
            "low": finite_or_none(self.low),
            "high": finite_or_none(self.high),
            "level": self.level,
        }


def require_level(name: str, level: float) -> None:
    """Refuse a level that is no probability of an interval."""
    if not 0 < level < 1:
        raise ParameterError(f"{name} must lie between 0 and 1, not {level}")


def finite_or_none(value: float) -> float | None:
    """The value, or None where JSON has no number for it."""
    return value if isfinite(value) else None
