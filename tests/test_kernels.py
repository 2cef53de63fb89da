"""Compiled loops, against NumPy."""

from __future__ import annotations

from math import log as ln
from subprocess import run
from sys import executable

import numpy as np

from pastwise import kernels


def test_softmax_survives_where_exp_does_not() -> None:
    rule = np.array([[[-1000.0, -1000.0], [1000.0, -np.inf], [-np.inf, -np.inf]]])
    peak = np.empty((1, 3))
    kernels.centre(rule, peak)
    np.exp(rule, out=rule)
    kernels.settle(rule, peak)
    np.testing.assert_allclose(peak, [[-1000 + ln(2), 1000, -np.inf]], rtol=1e-15)
    np.testing.assert_array_equal(rule, [[[0.5, 0.5], [1, 0], [0, 0]]])


def test_kernels_run_where_nothing_can_be_written() -> None:
    """Without a folder for machine code they are compiled anew."""
    code = (
        "import numba.core.caching as caching; caching.CacheImpl._locator_classes = []\n"
        "import numpy as np; from pastwise import kernels\n"
        "peak = np.empty((1, 1)); kernels.centre(np.array([[[1.0, 3.0]]]), peak); print(peak[0, 0])"
    )
    found = run([executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "3.0\n"
