"""Log-domain arithmetic, normalising and sampling: the numerical floor of the house.

Two conventions hold everywhere and live here alone: ``0 * ln 0 = 0`` and ``0 * (-inf) = 0``. Nothing is
clipped and nothing gets a small constant added. Leading axes, where there are any, are independent batches.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


IntArray = NDArray[np.int64]


BoolArray = NDArray[np.bool_]


Indices = IntArray | np.int64 | int


Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """A read-only view of the array."""
    view = array.view()
    view.flags.writeable = False
    return view


def log(values: ArrayLike) -> FloatArray:
    """Natural logarithm with ln 0 = -inf, silently."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values), dtype=np.float64)


def xlogx(values: FloatArray) -> FloatArray:
    """``x ln x`` with 0 ln 0 = 0."""
    positive = values > 0
    return np.where(positive, values * np.log(np.where(positive, values, 1.0)), 0.0)


def linear_expectation(
    apply: Callable[[FloatArray], FloatArray],
    values: FloatArray,
    reach: Callable[[FloatArray], FloatArray] | None = None,
) -> FloatArray:
    """Expectation ``apply(values)`` that owns 0 * (-inf) = 0.

    ``apply`` is any linear map with non-negative coefficients. Where a coefficient of a ``-inf`` value is positive
    the expectation is ``-inf``; where it is zero the value does not count. ``reach`` is the same map, where ``apply``
    rounds too coarsely to tell zero from little.
    """
    if values.size == 0 or values.min() > -np.inf:
        return apply(values)
    impossible = np.isneginf(values)
    reached = (reach or apply)(impossible.astype(np.float64)) > 0
    return np.where(reached, -np.inf, apply(np.where(impossible, 0.0, values)))


FEW_COLUMNS = 32
"""Axes up to this long are folded column by column: NumPy's reductions are slow there."""


def fold(ufunc: np.ufunc, values: FloatArray) -> FloatArray:
    """``ufunc`` over the last axis; where that is short, from left to right, so that a batch equals its elements."""
    columns = values.shape[-1]
    if columns > FEW_COLUMNS or (
        values.ndim == 1 and columns < 8
    ):  # below eight, reductions go from left to right
        return np.asarray(ufunc.reduce(values, axis=-1))
    if values.ndim == 1:
        return np.asarray(ufunc.accumulate(values)[-1])
    total = values[..., 0]
    for column in range(1, columns):
        total = ufunc(total, values[..., column])
    return np.asarray(total)


def normalise(values: FloatArray) -> FloatArray:
    """Scale the last axis to sum to one."""
    return np.asarray(values / fold(np.add, values)[..., None])


def group_sum(group: IntArray, values: ArrayLike, size: int) -> FloatArray:
    """Sum of the values of each group 0, ..., size - 1: [size]."""
    return np.bincount(group, np.asarray(values, dtype=np.float64), size).astype(
        np.float64, copy=False
    )


def distinct(values: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The values of 0, ..., size - 1 that occur, ascending, and the place of each value among them."""
    if size > 8 * len(values) + 1000:
        return np.unique(values, return_inverse=True)
    occurs = np.zeros(size, dtype=bool)
    occurs[values] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def sample(probabilities: FloatArray, uniform: FloatArray) -> IntArray:
    """Draw an index from each row by the inverse of its distribution function.

    Parameters
    ----------
    probabilities : [..., n]
        Non-negative, not all zero; an entry of zero is never drawn.
    uniform : [...]
        Numbers from [0, 1), one for each row.
    """
    cumulative = np.array(np.moveaxis(probabilities, -1, 0), order="C")
    if cumulative.ndim > 1 and len(cumulative) <= FEW_COLUMNS:
        for before, here in pairwise(cumulative):
            here += before
    else:
        np.add.accumulate(cumulative, axis=0, out=cumulative)
    total = cumulative[-1]
    target = np.minimum(uniform * total, np.nextafter(total, 0.0))
    return np.asarray(np.count_nonzero(cumulative <= target, axis=0), dtype=np.int64)


def batch_index(shape: tuple[int, ...]) -> tuple[IntArray, ...]:
    """Index of every batch element: ``array[(*batch_index(shape), state)]`` picks one state in each."""
    return tuple(np.indices(shape, sparse=True)) if shape else ()


def broadcast(name: str, values: NDArray[Scalar], shape: tuple[int, ...]) -> NDArray[Scalar]:
    """The values in a larger shape, without copying; a shape that does not fit is an error with the array's name."""
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(f"{name} of shape {values.shape} does not fit {shape}") from None


def where_first(mask: BoolArray | np.bool_) -> tuple[int, ...]:
    """Index of the first True, as plain integers, for error messages."""
    return tuple(int(i) for i in np.argwhere(mask)[0])
