"""Checks of arrays at the boundary: distributions, and tables too large for memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import FloatArray, where_first
from pastwise.errors import ParameterError, shown

ROW_SUM_TOLERANCE = 1e-9
"""How far each entry of a distribution may move its sum from 1: n entries may move it n times as
far. Rounding is far smaller; probabilities printed with nine digits pass."""

SINGLE_ROUNDING = 1e-6
"""How far rounding to single precision may move the sum of a distribution from 1."""

LARGEST_TABLE = 4 * 2**30
"""Bytes of the largest table that is built; a few of its size are in memory at a time."""


def require_memory(what: str, shape: Sequence[int], instead: str) -> None:
    """Refuse a table of numbers that is too large for memory, before it is built.

    Parameters
    ----------
    what : str
        What needs the table.
    shape : sequence of int
    instead : str
        What the user can do instead.

    Examples
    --------
    >>> require_memory("an example", (1_000_000, 1_000_000), "use fewer states")
    Traceback (most recent call last):
    pastwise.errors.ParameterError: an example needs a table of 1,000,000 x 1,000,000 = 1e+12 \
numbers (8,000 GB); use fewer states
    """
    number = prod(int(size) for size in shape)
    if 8 * number <= LARGEST_TABLE:
        return
    sizes = " x ".join(f"{size:,}" for size in shape)
    memory = f"{8 * number / 1e9:,.0f} GB"
    raise ParameterError(
        f"{what} needs a table of {sizes} = {number:.3g} numbers ({memory}); {instead}"
    )


def checked_probabilities(name: str, values: ArrayLike, *, sum_to_one: bool = True) -> FloatArray:
    """The values as floats, after checking that each row (last axis) is a distribution.

    Single precision is kept.
    """
    try:
        array = np.asarray(values)
        if array.dtype != np.float32:
            array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise ParameterError(f"{name} must be an array of numbers, not {kind}") from None
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ParameterError(
            f"{name} must have at least one entry in its last axis; its shape is {array.shape}"
        )
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        where = where_first(bad)
        raise ParameterError(
            f"{name}{list(where)} is {array[where]}; probabilities must be finite and not negative"
        )
    if sum_to_one:
        rounding = SINGLE_ROUNDING if array.dtype == np.float32 else 0.0
        check_sums(name, array.sum(axis=-1, dtype=np.float64), array.shape[-1], rounding)
    return array


def require_number(name: str, value: object, lowest: float, highest: float) -> None:
    """Refuse anything but a number of a range; true and false are no numbers.

    >>> require_number("epsilon", 1.5, 0, 1)
    Traceback (most recent call last):
    pastwise.errors.ParameterError: epsilon must be a number from 0 to 1, not 1.5
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not is_number or not lowest <= _as_float(value) <= highest:  # type: ignore[arg-type]
        raise ParameterError(
            f"{name} must be a number from {lowest:g} to {highest:.9g}, not {shown(value)}"
        )


def _as_float(number: Real) -> float:
    """A number as a float; infinite if it is too large, negative or not."""
    try:
        return float(number)
    except OverflowError:
        return inf


def require_whole_number(name: str, value: object, lowest: int, highest: int) -> None:
    """Refuse anything but a whole number of a range; true and false are no numbers."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not is_whole or not lowest <= int(value) <= highest:  # type: ignore[call-overload]
        raise ParameterError(
            f"{name} must be a whole number from {lowest:,} to {highest:,}, not {shown(value)}"
        )


def require_truth_value(name: str, value: object) -> None:
    """Refuse anything but true and false."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(f"{name} must be true or false, not {shown(value)}")


def check_sums(name: str, sums: FloatArray, length: int, rounding: float = 0.0) -> None:
    """Refuse sums of ``length`` probabilities that are not one."""
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE * length + rounding
    if off.any():
        where = where_first(off)
        place = list(where) if where else ""
        raise ParameterError(f"{name}{place} sums to {sums[where]}, not to 1; divide it by its sum")
