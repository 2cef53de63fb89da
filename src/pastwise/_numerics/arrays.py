"""Log-domain arithmetic, normalising and sampling: the numerical foundation of the library.

Two conventions are defined here, and only here: ``0 * ln 0 = 0`` and ``0 * (-inf) = 0``. Nothing is
clipped and nothing gets a small constant added. Leading axes, if there are any, are independent
batches.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pastwise.errors import ParameterError

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
    """Natural logarithm with ln 0 = -inf, without a warning."""
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
    """Expectation ``apply(values)`` with 0 * (-inf) = 0.

    Parameters
    ----------
    apply : callable
        A linear map with non-negative coefficients. Where the coefficient of a ``-inf`` value is
        positive the expectation is ``-inf``; where it is zero the value does not count.
    values : [...]
    reach : callable, optional
        The same map, if ``apply`` rounds too coarsely to distinguish small coefficients from zero.
    """
    if values.size == 0 or values.min() > -np.inf:
        return apply(values)
    impossible = np.isneginf(values)
    reached = (reach or apply)(impossible.astype(np.float64)) > 0
    return np.where(reached, -np.inf, apply(np.where(impossible, 0.0, values)))


FEW_COLUMNS = 32
"""Axes up to this length are folded column by column: NumPy's reductions are slow there."""

SEQUENTIAL_LENGTH = 8
"""NumPy reduces vectors shorter than this from left to right."""


def fold(ufunc: np.ufunc, values: FloatArray) -> FloatArray:
    """``ufunc`` reduced over the last axis: [..., n] -> [...].

    A short axis is reduced from left to right, so that a batch gives the same bits as its elements.
    """
    columns = values.shape[-1]
    is_vector = values.ndim == 1
    if columns > FEW_COLUMNS or (is_vector and columns < SEQUENTIAL_LENGTH):
        return np.asarray(ufunc.reduce(values, axis=-1))
    if is_vector:
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
    sums = np.bincount(group, np.asarray(values, dtype=np.float64), size)
    return sums.astype(np.float64, copy=False)


def group_sums(group: IntArray, values: FloatArray, size: int) -> FloatArray:
    """`group_sum` of each line of values, in one call: [k, n] -> [k, size]."""
    place = group + size * np.arange(len(values))[:, None]
    return group_sum(place.ravel(), values.ravel(), size * len(values)).reshape(-1, size)


def distinct(values: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """The values of 0, ..., size - 1 that occur, ascending, and each value's place among them."""
    # Few values of a large range are sorted; otherwise a table of the range is faster.
    if size > 8 * len(values) + 1000:
        return np.unique(values, return_inverse=True)
    occurs = np.zeros(size, dtype=bool)
    occurs[values] = True
    place = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), place[values]


def sample(probabilities: FloatArray, uniform: FloatArray) -> IntArray:
    """Sample an index from each row by the inverse of its distribution function.

    Parameters
    ----------
    probabilities : [..., n]
        Non-negative, not all zero; an entry of zero is never sampled.
    uniform : [...]
        Numbers from [0, 1), one for each row.

    Returns
    -------
    [...]
    """
    # Distribution functions, with the axis of the entries first.
    cumulative = np.array(np.moveaxis(probabilities, -1, 0), order="C")
    if cumulative.ndim > 1 and len(cumulative) <= FEW_COLUMNS:
        for before, here in pairwise(cumulative):
            here += before
    else:
        np.add.accumulate(cumulative, axis=0, out=cumulative)

    # Rows need not sum to one exactly; the target stays below their sum.
    total = cumulative[-1]
    target = np.minimum(uniform * total, np.nextafter(total, 0.0))
    return np.asarray(np.count_nonzero(cumulative <= target, axis=0), dtype=np.int64)


def batch_index(shape: tuple[int, ...]) -> tuple[IntArray, ...]:
    """Index of every element of a batch.

    ``array[(*batch_index(shape), state)]`` picks one state in each element.
    """
    return tuple(np.indices(shape, sparse=True)) if shape else ()


def broadcast(name: str, values: NDArray[Scalar], shape: tuple[int, ...]) -> NDArray[Scalar]:
    """The values in a larger shape, without copying; the error of a misfit has the array's name."""
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ParameterError(f"{name} of shape {values.shape} does not fit {shape}") from None


def entries(table: NDArray[Scalar], *indices: Indices) -> NDArray[Scalar]:
    """Entries at the given indices of a table's last axes: [..., 1 or n, ...] -> [..., records].

    An axis of length 1 stands for every index.

    >>> by_column = np.array([[10, 20, 30]])
    >>> entries(by_column, np.array([0, 5, 7]), np.array([2, 2, 0])).tolist()
    [30, 30, 10]
    """
    num_lead = table.ndim - len(indices)
    lead = table.shape[:num_lead]
    if len({np.shape(index) for index in indices}) > 1:
        indices = np.broadcast_arrays(*indices)
    shape = np.shape(indices[0])

    positions: list[Indices] = []
    for index, size in zip(indices, table.shape[num_lead:], strict=True):
        positions.append(index if size > 1 else 0)
    found = table[(..., *positions)]
    if found.shape[num_lead:] == shape:
        return found

    # Every axis has length 1: one entry serves all indices.
    ones = (1,) * len(shape)
    return np.broadcast_to(found.reshape(*lead, *ones), (*lead, *shape))


def where_first(mask: BoolArray | np.bool_) -> tuple[int, ...]:
    """Index of the first True, as plain integers, for error messages."""
    return tuple(int(i) for i in np.argwhere(mask)[0])
