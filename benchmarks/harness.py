"""How contenders are measured: in turns, each after an uncounted run, on the same job.

A job is a `Section` of the report. Its `compare` times the contenders, of which the first is ours,
and refuses to continue where their results differ. Its `summarise` puts a ratio or another number
into the summary at the top of the report.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

SHORTEST = 0.02
"""Seconds that a timing lasts at least: shorter runs are repeated within it."""

WARM_UP = 1.0
"""Seconds up to which every run follows an uncounted one, since the others have changed the caches.

A longer run has only its first run for that.
"""

MIB, GIB = 2.0**20, 2.0**30

DATA = Path(__file__).parent / ".data"
"""Where generated logs are kept between runs."""

T = TypeVar("T")


@dataclass(frozen=True)
class Scale:
    """How large the jobs are: ``quick`` only shows that they run, ``full`` adds large sizes."""

    name: str = "default"

    def pick(self, quick: T, default: T, full: T) -> T:
        """What belongs to this scale."""
        return {"quick": quick, "default": default, "full": full}[self.name]


@dataclass(frozen=True)
class Contender:
    """A way to do a job.

    Attributes
    ----------
    run : callable
        Does it, and returns its result.
    work : float
        How much of the job one run does; its time is divided by it.
    once : bool
        Too slow to repeat: its only run is what is measured. Not for what compiles itself on first
        use.
    """

    name: str
    run: Callable[[], Any]
    work: float = 1.0
    once: bool = False


@dataclass(frozen=True)
class Row:
    """One line of a job's table: the median of the timings, and the least and the most of them."""

    size: str
    contender: str
    seconds: float
    least: float
    most: float
    ratio: float
    """How many times as long as ours."""


@dataclass(frozen=True)
class Headline:
    """A number for the summary of the report."""

    quantity: str
    value: float
    unit: str


@dataclass(frozen=True)
class Curve:
    """How the seconds of one contender grow with a size."""

    contender: str
    sizes: Sequence[float]
    seconds: Sequence[float]

    @property
    def exponent(self) -> float:
        """Slope of the straight line that fits best in logarithms."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


@dataclass(frozen=True)
class Figure:
    """A plot of curves over one size."""

    name: str
    size: str
    curves: Sequence[Curve]


class Times(dict[str, float]):
    """Median seconds of each contender; the first is ours.

    Ratios are medians too, of the ratios within each round, so that a slow spell of the machine
    strikes both sides.
    """

    def __init__(self, rounds: Mapping[str, Sequence[float]]) -> None:
        super().__init__({name: median(each) for name, each in rounds.items()})
        self.rounds = rounds
        self.first = next(iter(rounds))

    @property
    def ours(self) -> float:
        """Our seconds."""
        return self[self.first]

    def ratio(self, one: str, other: str) -> float:
        """How many times as long as another a contender takes."""
        pair = self.rounds[one], self.rounds[other]
        if len(pair[0]) != len(pair[1]):  # one of them ran only once
            return self[one] / self[other]
        return median(a / b for a, b in zip(*pair, strict=True))

    def faster_than(self, *others: str) -> float:
        """How many times faster we are than the fastest of these."""
        return min(self.ratio(name, self.first) for name in others)

    def of(self, *others: str) -> float:
        """How many times as long as the fastest of these we take."""
        return 1 / self.faster_than(*others)


@dataclass
class Section:
    """One job of the report."""

    title: str
    text: str
    rows: list[Row] = field(default_factory=list)
    headlines: list[Headline] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def compare(
        self,
        size: str,
        contenders: Sequence[Contender],
        same: Callable[[Mapping[str, Any]], None],
        rounds: int = 5,
    ) -> Times:
        """Time the contenders, the first of which is ours, and add a line for each.

        Parameters
        ----------
        same : callable
            Gets the result of every contender by its name, and raises unless they are the same.
        """
        seconds: dict[str, list[float]] = {}
        results: dict[str, Any] = {}
        for contender in contenders:
            took, results[contender.name] = _timed(contender, 1)
            seconds[contender.name] = [took] if contender.once else []
        same(results)
        results.clear()
        for _ in range(rounds):
            for contender in (contender for contender in contenders if not contender.once):
                seconds[contender.name].append(_measured(contender))
        times = Times(seconds)
        self.rows += [
            Row(size, name, times[name], min(each), max(each), times.ratio(name, times.first))
            for name, each in seconds.items()
        ]
        return times

    def summarise(self, quantity: str, value: float, unit: str = "x") -> None:
        """Put a number into the summary of the report; a ratio has the unit ``x``."""
        self.headlines.append(Headline(quantity, value, unit))

    def plot(self, name: str, size: str, points: Mapping[float, Mapping[str, float]]) -> None:
        """Plot the seconds of contenders with at least two sizes: points[size][contender]."""
        names = dict.fromkeys(contender for times in points.values() for contender in times)
        curves = []
        for contender in names:
            sizes = [size for size, times in points.items() if contender in times]
            if len(sizes) > 1:
                curves.append(Curve(contender, sizes, [points[size][contender] for size in sizes]))
        if curves:
            self.figures.append(Figure(name, size, curves))


def _measured(contender: Contender) -> float:
    """Seconds for the whole job; a short run is repeated after one that does not count."""
    took, _ = _timed(contender, 1)
    once = took * contender.work
    return took if once > WARM_UP else _timed(contender, math.ceil(SHORTEST / once))[0]


def _timed(contender: Contender, loops: int) -> tuple[float, Any]:
    """Seconds for the whole job, the mean of some runs, and the result of the last."""
    begin = time.perf_counter()
    for _ in range(loops):
        result = contender.run()
    return (time.perf_counter() - begin) / loops / contender.work, result


def about(documentation: str | None) -> str:
    """What a module says of itself after its first line."""
    return (documentation or "").partition("\n\n")[2].strip()


def require_close(
    results: Mapping[str, Any], names: Sequence[str] | None = None, atol: float = 1e-9
) -> None:
    """Refuse results, arrays, that differ by more than rounding."""
    chosen = list(results) if names is None else list(names)
    for name in chosen[1:]:
        np.testing.assert_allclose(
            results[name],
            results[chosen[0]],
            rtol=1e-7,
            atol=atol,
            err_msg=f"{name} differs from {chosen[0]}",
        )


def in_fresh_process(function: Callable[..., T], *arguments: Any) -> T:
    """What a function of a module returns in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def peak_memory(function: Callable[..., Any], *arguments: Any) -> float:
    """Peak bytes of a fresh process that calls a function, interpreter and imports included."""
    return in_fresh_process(_peak_of, function, arguments)


def _peak_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    function(*arguments)
    return peak()


def peak() -> float:
    """Most bytes that this process has held.

    Linux keeps a high-water mark of this program alone, which is read where it exists. What
    `getrusage` gives there begins with what the parent held when it started the child.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return float(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * 1024
