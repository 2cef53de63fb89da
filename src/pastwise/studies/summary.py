"""Summary of the gains of a study: their spread, and paired differences with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.interval import Interval
from pastwise.studies.paper import Gains


def mean_interval(values: FloatArray | IntArray, confidence: float = 0.95) -> Interval:
    """Mean of independent values [n] with its interval by Student's t; unbounded if n is 1."""
    mean = float(np.mean(values))
    error = standard_error(values)
    if error is None:
        return Interval(mean, -inf, inf, confidence)
    half_width = float(stdtrit(len(values) - 1, (1 + confidence) / 2) * error)
    return Interval(mean, mean - half_width, mean + half_width, confidence)


def standard_error(values: FloatArray | IntArray) -> float | None:
    """Standard error of the mean of values [n]; None if there is a single one."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def share_interval(number: int, total: int, confidence: float = 0.95) -> Interval:
    """A share of independent cases with its interval by Wilson's formula.

    >>> share = share_interval(9, 10)
    >>> round(share.low, 2), round(share.high, 2)
    (0.6, 0.98)
    """
    z = float(ndtri((1 + confidence) / 2))
    share = number / total
    centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    variance = share * (1 - share) / total + z**2 / (4 * total**2)
    half_width = z * sqrt(variance) / (1 + z**2 / total)
    return Interval(share, max(centre - half_width, 0.0), min(centre + half_width, 1.0), confidence)


@dataclass(frozen=True)
class GainSummary:
    """Gains of one method after one past; differences are paired, run by run."""

    past: str
    method: str
    runs: int
    mean: float
    standard_error: float | None
    q25: float
    median: float
    q75: float
    minus_rand: Interval
    minus_fpd: Interval

    def to_dict(self) -> dict[str, Any]:
        """One level of names and plain values, for a table or JSON."""
        return {
            "past": self.past,
            "method": self.method,
            "runs": self.runs,
            "mean": self.mean,
            "se": self.standard_error,
            "q25": self.q25,
            "median": self.median,
            "q75": self.q75,
            **_interval_columns("minus_rand", self.minus_rand),
            **_interval_columns("minus_fpd", self.minus_fpd),
        }

    def __str__(self) -> str:
        if self.standard_error is None:
            return f"{self.mean:.1f}"
        return f"{self.mean:.1f} ± {self.standard_error:.1f}"


def _interval_columns(name: str, interval: Interval) -> dict[str, float | None]:
    numbers = interval.to_dict()
    return {
        name: numbers["mean"],
        f"{name}_low": numbers["low"],
        f"{name}_high": numbers["high"],
    }


def summarise(gains: Gains) -> list[GainSummary]:
    """A summary for every past and method, in the order of the gains."""
    return [_summary(gains, past, method) for past, method in gains]


def _summary(gains: Gains, past: str, method: str) -> GainSummary:
    own = gains[past, method]
    q25, median, q75 = np.quantile(own, (0.25, 0.5, 0.75)).tolist()
    return GainSummary(
        past=past,
        method=method,
        runs=len(own),
        mean=float(own.mean()),
        standard_error=standard_error(own),
        q25=q25,
        median=median,
        q75=q75,
        minus_rand=mean_interval(own - gains[past, "Rand"]),
        minus_fpd=mean_interval(own - gains[past, "FPD"]),
    )
