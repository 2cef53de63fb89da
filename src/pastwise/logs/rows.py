"""The state of a raw row, without an engine.

A log is counted by a query (`logs.query`); a single decision must not wait for one. `RowReader`
gives the same answer in about a microsecond: the columns of a row become the parts of a label, by
value or by the bin that a value lies in, and the label is looked up among the states.

A value that no state matches is an `UnknownLabelError`. What to do then is for the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from math import inf, isfinite, isnan, nan
from numbers import Real
from typing import Any, Protocol, cast

import numpy as np

from pastwise.data.bins import Bins
from pastwise.data.partition import NO_LEAF, Partition
from pastwise.data.space import Label, Space, checked_label, nearest_key
from pastwise.errors import LabelError, UnknownLabelError, listed, shown
from pastwise.logs.columns import Columns
from pastwise.logs.encoders import Encoding

Row = Mapping[str, object]
"""Values by the name of their column."""


class Field(Protocol):
    """How one part of a label follows from a row."""

    def of_row(self, row: Row) -> Label:
        """The part of a row's label."""
        ...

    def of_value(self, value: object) -> Label:
        """The part of the label that a single value has: itself, or that of a raw value."""
        ...


class RowReader:
    """Finds the state of raw rows, of raw values and of labels.

    Parameters
    ----------
    columns : Columns, optional
        How the log was read, with all edges of bins known. Without, the fields of the states are
        the columns.
    states : Space
    outcomes : indices of states
        Outcomes of one-shot decisions, which no row is in, even if a label is the same.

    Examples
    --------
    >>> columns = Columns.of("x", "a", "n", bins={"x": [1, 2]})
    >>> reader = RowReader(columns, Space(("< 1", "[1, 2)")))
    >>> reader.find({"x": 1.5}), reader.find(0.5), reader.find("[1, 2)"), reader.find(7)
    (1, 0, 1, None)
    """

    def __init__(
        self, columns: Columns | None, states: Space, outcomes: Collection[int] = ()
    ) -> None:
        self.states = states
        self._outcomes = frozenset(outcomes)
        self.fields = fields_of(columns, states)
        self._only_field = self.fields[0] if len(self.fields) == 1 else None
        self._tree = None if columns is None else columns.partition

    def find(self, row: object) -> int | None:
        """Index of the state of a row, of a raw value or of a label; None if no state matches.

        Raises
        ------
        LabelError
            If a column of the row is missing, or a value cannot be that of any state.
        """
        try:
            return self.index(row)
        except UnknownLabelError:
            return None

    def index(self, row: object) -> int:
        """The same; an `UnknownLabelError` if no state matches."""
        if is_row(row):
            return self._no_outcome(self.states.index(self._label_of_row(cast(Row, row))))
        known = self.states.find(row)
        return self.states.index(self.label(row)) if known is None else known

    def deciding_index(self, row: object) -> int:
        """The same for a decision; the label of an outcome is then unknown as well."""
        return self._no_outcome(self.index(row))

    def _no_outcome(self, index: int) -> int:
        """Refuse the outcome of a one-shot decision: nothing is decided there."""
        if index in self._outcomes:
            label = self.states.labels[index]
            raise UnknownLabelError(label, lambda: None, advice="it is an outcome, no state")
        return index

    def has_new_category(self, row: object) -> bool:
        """Whether a row has a category that the tree of states does not know.

        It is in a state all the same: that of the categories which the tree does not name.
        """
        if self._tree is None:
            return False
        if is_row(row):
            return self._tree.has_new_category(cast(Row, row))

        # A label, or the value of a single feature.
        features = self._tree.features
        if self._only_field is None or len(features) > 1 or self.states.has(row):
            return False
        return self._tree.has_new_category({features[0].name: row})

    def label(self, row: object) -> Label:
        """The label of a row, of a raw value or of a label, whether or not it is a state.

        Raises
        ------
        UnknownLabelError
            If a value is missing, or lies in no bin.
        """
        if is_row(row):
            return self._label_of_row(cast(Row, row))

        # A label, or the raw values of one.
        label = row
        index = self.states.find(label)
        if index is not None:
            return self.states.labels[index]
        if self._only_field is not None:
            return self._only_field.of_value(label)
        if self.fields and isinstance(label, tuple) and len(label) == len(self.fields):
            parts = zip(self.fields, label, strict=True)
            return tuple([field.of_value(part) for field, part in parts])
        if self.fields:
            raise UnknownLabelError(label, partial(nearest_key, label, self.states.labels))
        return checked_label(label)

    def _label_of_row(self, row: Row) -> Label:
        if self._only_field is not None:
            return self._only_field.of_row(row)
        if self.fields:
            return tuple([field.of_row(row) for field in self.fields])
        raise LabelError(
            "this policy was learned from counts that do not name their columns; "
            "give the state as a label"
        )


def is_row(row: object) -> bool:
    """Whether this is a row of named values: a mapping, or a series of pandas."""
    return type(row) is dict or isinstance(row, Mapping) or hasattr(row, "keys")


def fields_of(columns: Columns | None, states: Space) -> tuple[Field, ...]:
    """How each part of a label follows from a row."""
    if columns is None:
        return tuple(Plain(name) for name in states.fields)
    if columns.encoding is not None:
        return (Encoded(columns.encoding),)
    fields: list[Field] = []
    for name in columns.state:
        bins = columns.bins.get(name)
        if isinstance(bins, Bins):
            fields.append(Binned(name, bins))
        else:
            fields.append(Plain(name))
    if columns.partition is not None:
        fields.append(Leaf(columns.partition))
    return tuple(fields)


class Plain:
    """A column whose values are labels."""

    def __init__(self, column: str) -> None:
        self.column = column

    def of_row(self, row: Row) -> Label:
        """The value of the column."""
        return self.of_value(_value(row, self.column))

    def of_value(self, value: object) -> Label:
        """The value as a label."""
        if type(value) is str or type(value) is int:
            return value
        label = _plain_value(value)
        if isinstance(label, (date, time)):
            return label.isoformat()
        if isinstance(label, Decimal):
            label = float(label)
        is_number = isinstance(label, float)
        if label is None or (is_number and not isfinite(label)):
            raise _missing(self.column, value)
        return checked_label(label)


class Encoded:
    """Raw columns whose state is what an encoder says."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding

    def of_row(self, row: Row) -> Label:
        """The label that the encoder gives to the row."""
        for name in self.encoding.features:
            _value(row, name)
        return self.encoding.label_of(row)

    def of_value(self, value: object) -> Label:
        """The value as a label."""
        return checked_label(value)


class Leaf:
    """Raw columns whose state is a leaf of a partition."""

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._labels = partition.labels
        self._known = frozenset(self._labels)

    def of_row(self, row: Row) -> Label:
        """The label of the leaf that the row lies in."""
        leaf = self.partition.leaf_of(row)
        if leaf == NO_LEAF:
            name = self.partition.absent_in(row)
            raise _missing(name, row[name])
        return self._labels[leaf]

    def of_value(self, value: object) -> Label:
        """The label of a leaf; the value itself if the partition has a single feature."""
        if value in self._known:
            return value
        features = self.partition.features
        if len(features) == 1:
            return self.of_row({features[0].name: value})
        raise UnknownLabelError(value, partial(nearest_key, value, self._labels))


class Binned:
    """A numeric column that is cut into intervals."""

    def __init__(self, column: str, bins: Bins) -> None:
        self.column = column
        self.bins = bins
        self.labels = bins.labels
        self._known = frozenset(self.labels)

    def of_row(self, row: Row) -> Label:
        """The label of the interval that the value of the column lies in."""
        return self.of_value(_value(row, self.column))

    def of_value(self, value: object) -> Label:
        """The label of the interval that a value lies in; the label of an interval is its own."""
        number = value
        if type(value) is not float:
            if isinstance(value, str) and value in self._known:
                return value
            number = number_of(value, self.column)
        place = self.bins.place(cast(float, number))
        if place is None:
            raise self._outside(value, cast(float, number))
        return self.labels[place]

    def _outside(self, value: object, number: float) -> UnknownLabelError:
        """The error for a value in no interval."""
        if isnan(number):
            return _missing(self.column, value)
        first, *_, last = self.bins.edges
        nearest = self.labels[0] if number < first else self.labels[-1]
        return UnknownLabelError(
            value,
            lambda: nearest,
            where=f"the column {self.column!r}",
            advice=f"its bins go from {first:g} to {last:g}",
        )


def number_of(value: object, column: str) -> float:
    """A raw value as the counting query sees it; not-a-number where it is missing.

    Dates become seconds since 1970. Text that reads as a number is one.
    """
    value = _plain_value(value)
    if value is None:
        return nan
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        return float(since.days * 86400 + since.seconds) + since.microseconds / 1e6
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days * 86400)
    is_number = isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
    try:
        if is_number or isinstance(value, str):
            return float(value)  # type: ignore[arg-type]
    except OverflowError:
        return inf if cast(int, value) > 0 else -inf
    except ValueError:
        pass
    raise LabelError(
        f"the column {column!r} holds numbers; {shown(value)} is none, nor the label of a bin"
    )


def _value(row: Row, column: str) -> object:
    """The value of a column of a row."""
    try:
        return row[column]
    except KeyError:
        names = listed([str(name) for name in row.keys()])  # noqa: SIM118, a series has keys
        raise LabelError(f"the row has no column {column!r}; it has {names}") from None


def _plain_value(value: object) -> Any:
    """A value without its library: numpy's, pandas' and decimal numbers, dates; None if missing."""
    if isinstance(value, np.datetime64):
        value = None if np.isnat(value) else value.astype("datetime64[us]").item()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value


def _missing(column: str, value: object) -> UnknownLabelError:
    return UnknownLabelError(
        value,
        lambda: None,
        where=f"the column {column!r}",
        advice="the value is missing, and no state has a missing value",
    )
