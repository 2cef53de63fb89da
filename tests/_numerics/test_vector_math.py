"""Exponential and logarithm, against mpmath."""

from __future__ import annotations

import numpy as np
import pytest
from mpmath import mp

from pastwise._numerics import vector_math

SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)


@pytest.mark.parametrize(
    "x", [0.0, -5e-324, -1e-16, -0.35, -1.0, -700.0, -708.4, -745.1, -746.0, -1e9, -np.inf]
)
def test_exponential_is_right_to_the_last_bits(x: float) -> None:
    """Down to the smallest number there is, and zero below it."""
    exact = float(mp.exp(mp.mpf(x)))
    assert abs(vector_math.exp(x) - exact) <= np.spacing(exact)


@pytest.mark.parametrize("x", [SMALLEST_NORMAL, 1e-10, 0.5, 0.7071, 0.7072, 1.5, 3.0, 1e300])
def test_logarithm_is_right_to_the_last_bits(x: float) -> None:
    exact = float(mp.log(mp.mpf(x)))
    assert abs(vector_math.log(x) - exact) <= 2 * np.spacing(abs(exact))


def test_logarithm_of_one_is_zero() -> None:
    assert vector_math.log(1.0) == 0.0
