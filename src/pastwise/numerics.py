"""Log-domain arithmetic, normalising and sampling: the numerical floor of the house.

Two conventions hold everywhere and live here alone: ``0 * ln 0 = 0`` and ``0 * (-inf) = 0``. Nothing is
clipped and nothing gets a small constant added. Leading axes, where there are any, are independent batches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from itertools import pairwise
from math import prod
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Indices = IntArray | np.int64 | int

Scalar = TypeVar("Scalar", bound=np.generic)
Item = TypeVar("Item")
Result = TypeVar("Result")

ROW_SUM_TOLERANCE = 1e-9
"""How far one entry of a distribution may push its sum from 1; a row of n entries may be n times as far."""


SINGLE_ROUNDING = 1e-6
"""How far rounding to single precision may push the sum of a distribution from 1."""


LARGEST_TABLE = 4 * 2**30
"""Bytes of the largest table that is built; a few of its size are in memory at a time."""


def require_memory(what: str, shape: Sequence[int], instead: str) -> None:
    """Refuse what needs a table of numbers too large for memory, before it is built, and say what to do instead.

    >>> require_memory("an example", (1_000_000, 1_000_000), "use fewer states")
    Traceback (most recent call last):
    ValueError: an example needs a table of 1,000,000 x 1,000,000 = 1e+12 numbers (8,000 GB); use fewer states
    """
    number = prod(map(int, shape))
    if 8 * number > LARGEST_TABLE:
        sizes = " x ".join(f"{size:,}" for size in shape)
        size = f"{8 * number / 1e9:,.0f} GB"
        raise ValueError(f"{what} needs a table of {sizes} = {number:.3g} numbers ({size}); {instead}")


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
    if columns > FEW_COLUMNS or (values.ndim == 1 and columns < 8):  # below eight, reductions go from left to right
        return np.asarray(ufunc.reduce(values, axis=-1))
    if values.ndim == 1:
        return np.asarray(ufunc.accumulate(values)[-1])
    total = values[..., 0]
    for column in range(1, columns):
        total = ufunc(total, values[..., column])
    return np.asarray(total)


CORES = os.cpu_count() or 1
"""Threads that can run at a time."""


def _serve(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()


@cache
def _tasks() -> SimpleQueue[Callable[[], None]]:
    """What there is to do for some threads, which end with the program: nobody waits for them, even after Ctrl-C."""
    tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
    for _ in range(CORES):
        Thread(target=_serve, args=(tasks,), daemon=True).start()
    return tasks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tasks.cache_clear)  # threads are not forked


def side_by_side(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Results of a function, which must not do the same, for each item: in threads where there are several."""
    if len(items) == 1:
        return [function(items[0])]
    done: SimpleQueue[Exception | None] = SimpleQueue()
    results: dict[int, Result] = {}

    def do(place: int) -> None:
        try:
            results[place] = function(items[place])
            done.put(None)
        except Exception as error:
            done.put(error)

    for place in range(len(items)):
        _tasks().put(partial(do, place))
    for _ in items:
        if (error := done.get()) is not None:
            raise error
    return [results[place] for place in range(len(items))]


def normalise(values: FloatArray) -> FloatArray:
    """Scale the last axis to sum to one."""
    return np.asarray(values / fold(np.add, values)[..., None])


def group_sum(group: IntArray, values: ArrayLike, size: int) -> FloatArray:
    """Sum of the values of each group 0, ..., size - 1: [size]."""
    return np.bincount(group, np.asarray(values, dtype=np.float64), size).astype(np.float64, copy=False)


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


def checked_probabilities(name: str, values: ArrayLike, *, sum_to_one: bool = True) -> FloatArray:
    """The values as floats, after checking that each row (last axis) is a distribution; single precision is kept."""
    array = np.asarray(values)
    if array.dtype != np.float32:
        array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one entry in its last axis; its shape is {array.shape}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        where = where_first(bad)
        raise ValueError(f"{name}{list(where)} is {array[where]}; probabilities must be finite and not negative")
    if sum_to_one:
        rounding = SINGLE_ROUNDING if array.dtype == np.float32 else 0.0
        check_sums(name, array.sum(axis=-1, dtype=np.float64), array.shape[-1], rounding)
    return array


def check_sums(name: str, sums: FloatArray, length: int, rounding: float = 0.0) -> None:
    """Refuse sums of ``length`` probabilities that are not one."""
    off = np.abs(sums - 1) > ROW_SUM_TOLERANCE * length + rounding
    if off.any():
        where = where_first(off)
        raise ValueError(
            f"{name}{list(where)} sums to {sums[where]}, not to 1; divide each row by its sum if that is meant"
        )


class Random(Protocol):
    """What the loop asks of a source of random numbers; ``numpy.random.Generator`` and `Streams` have it."""

    def random(self, size: Any, /) -> Any:
        """Uniform numbers from [0, 1) in the given shape."""

    def spawn(self, n_children: int, /) -> Sequence[Any]:
        """Independent sources."""


class _Tape:
    """The numbers that a batch of streams draws, drawn when they are first read and kept."""

    BLOCK = 128

    def __init__(self, seeds: Sequence[np.random.SeedSequence]) -> None:
        self.seeds = seeds
        self.children: list[_Tape] = []
        self._blocks: list[FloatArray] = []

    @cached_property
    def _generators(self) -> list[np.random.Generator]:
        return [np.random.default_rng(seed) for seed in self.seeds]

    def read(self, position: int) -> FloatArray:
        """Number ``position`` of every stream: [runs]."""
        block, row = divmod(position, self.BLOCK)
        while block >= len(self._blocks):
            columns = [generator.random(self.BLOCK) for generator in self._generators]
            self._blocks.append(np.stack(columns, axis=1))
        return np.asarray(self._blocks[block][row])

    def child(self, index: int) -> _Tape:
        """The tape of child ``index`` of every stream."""
        for new in range(len(self.children), index + 1):
            spawned = [np.random.SeedSequence(s.entropy, spawn_key=(*s.spawn_key, new)) for s in self.seeds]
            self.children.append(_Tape(spawned))
        return self.children[index]


class Streams:
    """One random stream for each run of a batch, read in step.

    Run *i* draws the same numbers whatever the number of runs beside it. ``spawn`` returns the same children, from
    their beginning, each time it is called: loops that are given the same ``Streams`` share their random numbers,
    so that differences between them are paired.

    Examples
    --------
    >>> seeds = np.random.SeedSequence(10).spawn(3)
    >>> three, two = Streams(seeds), Streams(seeds[:2])
    >>> bool((three.random((3,))[:2] == two.random((2,))).all())
    True
    """

    def __init__(self, seeds: Sequence[np.random.SeedSequence]) -> None:
        self._tape = _Tape(seeds)
        self._position = 0

    def __len__(self) -> int:
        return len(self._tape.seeds)

    def random(self, size: tuple[int, ...], /) -> FloatArray:
        """The next number of every stream: [runs]."""
        if size != (len(self),):
            raise ValueError(f"these are {len(self)} streams; a batch of shape {size} was asked for")
        numbers = self._tape.read(self._position)
        self._position += 1
        return numbers

    def spawn(self, n_children: int, /) -> list[Streams]:
        """Children number 0 to n - 1 of every stream, from their beginning."""
        return [self._reader(self._tape.child(index)) for index in range(n_children)]

    @staticmethod
    def _reader(tape: _Tape) -> Streams:
        streams = Streams.__new__(Streams)
        streams._tape, streams._position = tape, 0
        return streams
