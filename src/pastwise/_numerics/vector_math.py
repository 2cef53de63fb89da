r"""Exponential and logarithm made of plain arithmetic, so that loops of them become vector code.

numba's own ``exp`` and ``log`` are library calls, one number at a time. These are accurate to the
last bit or the one before it, on the range that softmax needs.

The exponential splits off a power of two: with :math:`k = \lfloor x / \ln 2 + 1/2 \rfloor` and
:math:`r = x - k \ln 2`, so that :math:`|r| \le \ln(2) / 2`,

.. math:: e^x = 2^k e^r, \qquad e^r = \sum_{n=0}^{13} r^n / n! .

The logarithm splits off the exponent of the floating-point number: :math:`x = 2^k m` with
:math:`m \in [\sqrt{1/2}, \sqrt{2})`, and with :math:`s = (m - 1) / (m + 1)`

.. math:: \ln x = k \ln 2 + 2 \left(s + s^3 / 3 + s^5 / 5 + \dots + s^{21} / 21\right) .
"""

from __future__ import annotations

import math

import numpy as np

from pastwise._numerics.compilation import compiled

LN_2 = math.log(2.0)

LN_2_HIGH = 0.6931471803691238
"""The leading bits of ln 2: a whole number up to 2^20 times it is exact."""

LN_2_LOW = 1.9082149292705877e-10
"""What is missing from `LN_2_HIGH`."""

INVERSE_FACTORIALS = tuple(1 / math.factorial(n) for n in range(14))

BITS_OF_ROOT_HALF = 0x3FE6A09E667F3BCD
"""The floating-point number sqrt(1/2), read as an integer."""

UNDERFLOW = -746.0
"""exp is zero from here down."""


@compiled
def _power_of_two(k: int) -> float:
    """2^k of a normal number, by writing its exponent."""
    return float(np.int64((k + 1023) << 52).view(np.float64))


@compiled
def exp(x: float) -> float:
    """exp(x) for x <= 0."""
    # exp(x) = 2^k exp(r)
    x = max(x, UNDERFLOW)
    k = np.floor(x * (1 / LN_2) + 0.5)
    r = (x - k * LN_2_HIGH) - k * LN_2_LOW

    # Taylor's series, from its smallest term on.
    series = 0.0
    for n in range(13, 1, -1):
        series = series * r + INVERSE_FACTORIALS[n]
    exp_r = series * r * r + r + 1.0

    # 2^k may be too small for a normal number; the product of its halves rounds well.
    half = np.int64(k) >> 1
    return float(exp_r * _power_of_two(half) * _power_of_two(np.int64(k) - half))


@compiled
def log(x: float) -> float:
    """Ln x for a positive normal number."""
    # x = 2^k m
    bits = np.float64(x).view(np.int64)
    k = (bits - BITS_OF_ROOT_HALF) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)

    # ln m by the series of the inverse hyperbolic tangent, from its smallest term on.
    s = (m - 1.0) / (m + 1.0)
    series = 0.0
    for n in range(21, 1, -2):
        series = series * s * s + 1 / n
    return float(k * LN_2 + 2.0 * (s + s * s * s * series))
