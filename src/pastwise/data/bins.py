r"""Bins: the intervals that a numeric column is cut into, with exact edges and short labels.

The edges :math:`e_1 < \ldots < e_n` cut the numbers into :math:`n + 1` bins: below :math:`e_1`,
from each edge up to the next, and from :math:`e_n` on. The outermost bins have no outer end, so
every number has a bin. Labels show edges with few digits; the edges themselves stay exact.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite, isnan
from typing import Any, NamedTuple

from pastwise.data.space import intervals
from pastwise.errors import ParameterError

MOST_DIGITS = 17
"""With so many significant digits, different floating-point numbers have different texts."""


class Limits(NamedTuple):
    """The ends of a bin, and whether they belong to it; an infinite end is no bound."""

    low: float
    high: float
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True)
class Bins:
    """Intervals that a numeric column is cut into.

    Parameters
    ----------
    edges : tuple of float
        Ascending. The lower edge of a bin belongs to it.
    is_open : bool
        Whether the outermost bins go on beyond the first and the last edge, as those of all new
        policies do. Bins of older policy files are closed: they lie between the first and the last
        edge, which belongs to the last bin, and values outside have no bin.

    Examples
    --------
    >>> temperature = Bins((10.0, 20.0))
    >>> temperature.labels
    ('< 10', '[10, 20)', '>= 20')
    >>> temperature.place(20.0)
    2
    """

    edges: tuple[float, ...]
    is_open: bool = True

    def __post_init__(self) -> None:
        is_ascending = all(low < high for low, high in pairwise(self.edges))
        if any(isnan(edge) for edge in self.edges) or not is_ascending:
            raise ParameterError(f"edges must be in ascending order, not {list(self.edges)}")
        if self.is_open and (not self.edges or not all(map(isfinite, self.edges))):
            raise ParameterError(f"give at least one finite edge, not {list(self.edges)}")
        if not self.is_open and len(self.edges) < 2:
            raise ParameterError(f"closed bins need at least two edges, not {list(self.edges)}")

    @classmethod
    def of(cls, edges: Sequence[float]) -> Bins:
        """Bins from edges as people or engines give them.

        Infinite ones at either end change nothing, and -0 is 0.
        """
        numbers = tuple(float(edge) + 0.0 for edge in edges)
        if numbers and numbers[0] == -inf:
            numbers = numbers[1:]
        if numbers and numbers[-1] == inf:
            numbers = numbers[:-1]
        return cls(numbers)

    def __len__(self) -> int:
        return len(self.limits)

    @cached_property
    def limits(self) -> tuple[Limits, ...]:
        """The ends of each bin."""
        if self.is_open:
            ends = (-inf, *self.edges, inf)
            return tuple(Limits(low, high, True, False) for low, high in pairwise(ends))
        closed = [Limits(low, high, True, False) for low, high in pairwise(self.edges)]
        closed[-1] = closed[-1]._replace(high_closed=True)
        return tuple(closed)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each bin, in ascending order."""
        if not self.is_open:
            return tuple(intervals(self.edges))
        shown = short_texts(self.edges)
        between = [f"[{low}, {high})" for low, high in pairwise(shown)]
        return (f"< {shown[0]}", *between, f">= {shown[-1]}")

    def place(self, value: float) -> int | None:
        """Place of the bin that a number belongs to; None if it has none."""
        if isnan(value):
            return None
        reached = bisect_right(self.edges, value)
        if self.is_open:
            return reached
        if value == self.edges[-1]:
            return len(self.edges) - 2
        return reached - 1 if 0 < reached < len(self.edges) else None

    def label(self, value: float) -> str | None:
        """Label of the bin that a number belongs to; None if it has none."""
        place = self.place(value)
        return None if place is None else self.labels[place]

    def cut_at(self, cuts: Iterable[float]) -> Bins:
        """The bins, cut further; a cut that no bin has inside changes nothing."""
        first, *_, last = (-inf, *self.edges, inf) if self.is_open else self.edges
        inside = [cut for cut in cuts if first < cut < last]
        return replace(self, edges=tuple(sorted({*self.edges, *inside})))

    def to_dict(self) -> dict[str, Any]:
        """Plain values. Infinite edges become text, because JSON has no infinity."""
        edges = [edge if isfinite(edge) else str(edge) for edge in self.edges]
        return {"edges": edges, "open": self.is_open}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any] | Sequence[float | str]) -> Bins:
        """The bins that `to_dict` described.

        Older files have a plain list of edges, which means closed bins.
        """
        if isinstance(content, Mapping):
            return cls(_numbers(content["edges"]), bool(content["open"]))
        return cls(_numbers(content), is_open=False)


def short_texts(numbers: Sequence[float], digits: int = 4) -> list[str]:
    """Ascending numbers as short texts, which are ascending numbers as well.

    A number that six digits show exactly is shown so. Others get ``digits`` significant digits, but
    at least their whole part up to a million, and all of them more where two would look the same or
    come in another order.

    Parameters
    ----------
    digits : int
        Four tell 36.65 from 36.7, and keep a label of two edges within 16 characters.

    >>> short_texts([0.5, 2.3333333333, 1234567.25])
    ['0.5', '2.333', '1.235e+06']
    """
    for number_of_digits in range(digits, MOST_DIGITS):
        texts = [_short_text(number, number_of_digits) for number in numbers]
        if all(float(low) < float(high) for low, high in pairwise(texts)):
            return texts
    return [repr(number) for number in numbers]


def _short_text(number: float, digits: int) -> str:
    """A number with so many digits, or exactly if six are enough."""
    exact = f"{number:g}"
    if float(exact) == number:
        return exact
    if 10 ** (digits - 1) <= abs(number) < 1e6:
        digits = max(digits, len(str(int(abs(number)))))
    return f"{number:.{digits}g}"


def _numbers(edges: Sequence[float | str]) -> tuple[float, ...]:
    return tuple(float(edge) for edge in edges)
