"""Compiled loops, against NumPy."""

from __future__ import annotations

from math import log as ln
from subprocess import run
from sys import executable

import numpy as np
from mpmath import mp

from pastwise._numerics import kernels

NEAR_ZERO = [0.0, -5e-324, -1e-300, -1e-16, -0.3, -0.35, -1.0]
NEAR_UNDERFLOW = [-700.0, -708.4, -720.0, -744.4, -745.2, -746.0, -1e9, -np.inf]


def test_exponentials_and_logarithms_are_right_to_the_last_bits() -> None:
    """Down to the smallest number there is, and to zero below it, at any place of a vector."""
    values = np.r_[NEAR_ZERO, NEAR_UNDERFLOW, -np.random.default_rng(0).exponential(50.0, 2001)]
    rule = np.stack([np.zeros(len(values)), values], axis=-1).reshape(1, -1)
    log_gamma = np.empty((1, len(values)))
    assert kernels.softmax_rule(np.zeros_like(rule), rule, log_gamma, False, (0, len(values)))
    found = rule.reshape(-1, 2)[:, 1]
    exact = np.array([float(mp.exp(mp.mpf(x))) for x in values.tolist()])
    assert (np.abs(found - exact) <= np.spacing(exact)).all()
    logarithm = np.array([float(mp.log(mp.mpf(total))) for total in (1.0 + found).tolist()])
    assert (np.abs(log_gamma[0] - logarithm) <= 2 * np.spacing(logarithm)).all()


def test_softmax_survives_where_exp_does_not() -> None:
    rule = np.array([[-1000.0, -1000.0, 1000.0, -np.inf, -np.inf, -np.inf]])
    log_gamma = np.empty((1, 3))
    assert not kernels.softmax_rule(np.zeros((1, 6)), rule, log_gamma, True, (0, 3))
    np.testing.assert_allclose(log_gamma, [[-1000 + ln(2), 1000, -np.inf]], rtol=1e-15)
    np.testing.assert_array_equal(rule, [[0.5, 0.5, 1, 0, 0, 0]])


def test_kernels_run_where_nothing_can_be_written() -> None:
    """Without a folder for machine code they are compiled anew."""
    code = (
        "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []\n"
        "from pastwise._numerics import vector_math; print(vector_math.exp(0.0))"
    )
    found = run([executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "1.0\n"
