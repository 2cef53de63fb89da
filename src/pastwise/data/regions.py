"""Regions: what a state's label means in terms of the raw columns of a log.

A label such as ``"cold"`` stands for one value of a column, the label of a bin for an interval, and
a leaf of a partition for an interval or a set of categories in each of several columns. A *region*
says so: it maps columns to the values that they have in the state. A column that it does not name
may have any value there.

Numbers are compared as 64-bit floating-point numbers, so an open end of an interval has a last
member: the number just before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import inf, isnan, nextafter

import numpy as np

from pastwise.data.bins import Bins
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import ParameterError

MISSING_TYPES = ("NAType", "NaTType")
"""Names of the types of pandas' missing values, which are neither None nor a number."""


@dataclass(frozen=True)
class Point:
    """A single value."""

    value: Label

    def contains(self, value: object) -> bool:
        """Whether a column may have this value here."""
        return not is_missing(value) and _is_same(plain(value), self.value)


@dataclass(frozen=True)
class Interval:
    """The numbers between two ends.

    Attributes
    ----------
    low, high : float
        An infinite end is no bound, and infinity itself is inside.
    low_closed, high_closed : bool
        Whether the interval has its end.
    or_missing : bool
        Whether the value may be missing as well.
    is_date : bool, optional
        Whether the numbers are dates, in seconds since 1970; None where that is not known.
    """

    low: float = -inf
    high: float = inf
    low_closed: bool = True
    high_closed: bool = False
    or_missing: bool = False
    is_date: bool | None = None

    def __post_init__(self) -> None:
        if isnan(self.low) or isnan(self.high) or not self.lowest <= self.highest:
            raise ParameterError(f"an interval from {self.low} to {self.high} has no member")

    @property
    def lowest(self) -> float:
        """The smallest member."""
        is_member = self.low_closed or self.low == -inf
        return self.low if is_member else nextafter(self.low, inf)

    @property
    def highest(self) -> float:
        """The largest member."""
        is_member = self.high_closed or self.high == inf
        return self.high if is_member else nextafter(self.high, -inf)

    def number_of(self, literal: object) -> float | None:
        """A number, or a date in quotes, as the numbers here are; None if it is neither."""
        if self.is_date and isinstance(literal, str):
            return seconds_of(literal)
        is_text = isinstance(literal, str)
        return number_of(literal) if is_text and self.is_date is False else number_or_date(literal)

    def contains(self, value: object) -> bool:
        """Whether a column may have this value here."""
        if is_missing(value):
            return self.or_missing
        label = plain(value)
        if isinstance(label, (bool, str, tuple)):
            return False
        number = number_of(label)
        return number is not None and self.lowest <= number <= self.highest


@dataclass(frozen=True)
class Categories:
    """Some values, or all values but these.

    Attributes
    ----------
    values : frozenset of labels
    is_complement : bool
        Whether the column may have any value but these.
    or_missing : bool
        Whether the value may be missing as well.
    """

    values: frozenset[Label]
    is_complement: bool = False
    or_missing: bool = False

    def __post_init__(self) -> None:
        if not self.values and not self.is_complement:
            raise ParameterError("a set of categories needs at least one of them")

    def contains(self, value: object) -> bool:
        """Whether a column may have this value here."""
        if is_missing(value):
            return self.or_missing
        label = plain(value)
        if self.is_complement:
            return all(key_of(label) != key_of(other) for other in self.values)
        return any(_is_same(label, other) for other in self.values)


@dataclass(frozen=True)
class Missing:
    """No value."""

    def contains(self, value: object) -> bool:
        """Whether a column may have this value here."""
        return is_missing(value)


@dataclass(frozen=True)
class Anything:
    """Any value, or none."""

    def contains(self, value: object) -> bool:
        """Whether a column may have this value here: always."""
        return True


Values = Point | Interval | Categories | Missing | Anything
"""What one column may hold."""

Region = Mapping[str, Values]
"""What each column may hold; a column that is not named may hold anything."""


def contains(region: Region, row: Mapping[str, object]) -> bool:
    """Whether a row lies in a region; a column that the row does not have is missing.

    >>> contains({"wage": Interval(low=2), "union": Point("yes")}, {"wage": 2.5, "union": "yes"})
    True
    """
    return all(values.contains(row.get(column)) for column, values in region.items())


def label_regions(
    states: Space,
    names: Sequence[str],
    bins: Mapping[str, Bins] | None = None,
) -> dict[Label, Region]:
    """The region of each state, by the columns that its label was made of.

    Parameters
    ----------
    names : columns
        One for each field of a product space; otherwise one.
    bins : mapping
        The bins of columns that were cut.

    Examples
    --------
    >>> label_regions(Space(("cold", "warm")), ["room"])["cold"]
    {'room': Point(value='cold')}
    """
    # What the label of each bin stands for.
    intervals: dict[str, dict[Label, Interval]] = {}
    for name, cut in (bins or {}).items():
        between = [Interval(*limits) for limits in cut.limits]
        intervals[name] = dict(zip(cut.labels, between, strict=True))

    regions: dict[Label, Region] = {}
    for label in states.labels:
        parts = label if states.is_product and isinstance(label, tuple) else (label,)
        region: dict[str, Values] = {}
        for name, part in zip(names, parts, strict=False):
            region[name] = intervals.get(name, {}).get(part, Point(part))
        regions[label] = region
    return regions


def is_missing(value: object) -> bool:
    """Whether a value is none: None, not a number, or a missing value of pandas."""
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return type(value).__name__ in MISSING_TYPES


def plain(value: object) -> Label:
    """A value of a row as a plain number, boolean, text or tuple.

    Anything else, such as a date, becomes its text.
    """
    if isinstance(value, np.datetime64):
        return str(value).replace("T", " ")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str, tuple)):
        return value
    number = number_of(value)
    return str(value) if number is None else number


def number_of(value: object) -> float | None:
    """A value as a number; None if it is none.

    Text counts as the number that it spells, and booleans are 0 and 1.

    >>> number_of("2.50"), number_of(True), number_of("2 kg")
    (2.5, 1.0, None)
    """
    if isinstance(value, str):
        return _spelled_number(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return inf if value > 0 else -inf  # type: ignore[operator]
    except (TypeError, ValueError):
        return None
    return None if isnan(number) else number


def number_or_date(value: object) -> float | None:
    """A value as a number, or a date as seconds since 1970; None if it is neither.

    Text counts as the number or the date that it spells. Without a time zone it is UTC.

    >>> number_or_date("2.50"), number_or_date("1970-01-02"), number_or_date("2 kg")
    (2.5, 86400.0, None)
    """
    number = number_of(value)
    return seconds_of(value) if number is None else number


def seconds_of(value: object) -> float | None:
    """A date, or a text that spells one, as seconds since 1970; None if it is none."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days * 86400)
    return None


def _spelled_number(text: str) -> float | None:
    """The number that a text spells in digits; words such as "inf" are none."""
    has_digits = text.isascii() and any(character.isdigit() for character in text)
    if not has_digits or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _is_same(one: Label, other: Label) -> bool:
    """Whether two values are equal, where text equals nothing but text."""
    return isinstance(one, str) == isinstance(other, str) and one == other
