"""What the gains of a study say: per past and method the spread, and paired differences with intervals."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.studies.paper import Gains

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and its two-sided 95 % interval by Student's t; without bounds where one value is all there is."""

    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: FloatArray | IntArray) -> Interval:
        """The interval of the mean of independent values [n]."""
        mean, n = float(np.mean(values)), len(values)
        if n < 2:
            return cls(mean, None, None)
        half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * standard_error(values))
        return cls(mean, mean - half, mean + half)


def standard_error(values: FloatArray | IntArray) -> float:
    """Standard error of the mean of values [n], n > 1."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


@dataclass(frozen=True)
class Row:
    """Gains of one method after one past; differences are paired, run by run."""

    past: str
    method: str
    runs: int
    mean: float
    se: float | None
    q25: float
    median: float
    q75: float
    minus_rand: Interval
    minus_fpd: Interval

    def flat(self) -> dict[str, Any]:
        """One level of names and plain values, for a table or JSON."""
        columns = asdict(self)
        for name in ("minus_rand", "minus_fpd"):
            interval = columns.pop(name)
            columns |= {
                name: interval["mean"],
                f"{name}_low": interval["low"],
                f"{name}_high": interval["high"],
            }
        return columns


def summarise(gains: Gains) -> list[Row]:
    """A row for every past and method, in the order of the gains."""
    return [_row(gains, past, method) for past, method in gains]


def _row(gains: Gains, past: str, method: str) -> Row:
    own = gains[past, method]
    q25, median, q75 = (float(q) for q in np.quantile(own, (0.25, 0.5, 0.75)))
    return Row(
        past,
        method,
        len(own),
        float(own.mean()),
        standard_error(own) if len(own) > 1 else None,
        q25,
        median,
        q75,
        Interval.of(own - gains[past, "Rand"]),
        Interval.of(own - gains[past, "FPD"]),
    )
