"""Tables of rows to decide for: a list of rows or labels, a mapping of columns, a file or a frame.

What an engine must read (files, frames of any library) is opened as a log would be, so that its
values have the same types; plain Python stays plain and loads no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, IntArray
from pastwise.data.space import Space
from pastwise.errors import LabelError, ParameterError, UnknownLabelError
from pastwise.logs.columns import Columns, require_columns
from pastwise.logs.rows import RowReader

UNKNOWN = -1
"""Index of a row that no state matches."""


class RowColumns(Columns):
    """The columns of rows to decide for: those of the state alone."""

    @classmethod
    def within(cls, columns: Columns) -> RowColumns:
        """The state's columns of a log."""
        return cls(**{each.name: getattr(columns, each.name) for each in fields(columns)})

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns whose values are labels."""
        return self.state

    @property
    def text(self) -> tuple[str, ...]:
        """Columns of a CSV file that are read as text."""
        return tuple(name for name in super().text if name in self.all)

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read.

        A tree that asks about nothing needs none; its first feature then says how many rows there
        are.
        """
        return self.row_columns or self.features[:1]


class FoundStates(NamedTuple):
    """The states of the rows of a table.

    Attributes
    ----------
    indices : [rows]
        Index of the state of each row; `UNKNOWN` where no state matches.
    is_new : [rows]
        Whether the row has a category that the tree of states does not know.
    problem : UnknownLabelError, optional
        Why no state matches the first of these rows.
    """

    indices: IntArray
    is_new: BoolArray
    problem: UnknownLabelError | None


def find_states(table: Any, columns: Columns | None, reader: RowReader) -> FoundStates:
    """Find the state of each row.

    Parameters
    ----------
    table
        A list or array of rows, of labels or of raw values; one row; a mapping of columns; a path;
        or a frame of any library.
    columns : Columns, optional
        How the log was read. Without, only lists of labels, rows by the names of the states'
        fields, and mappings of columns are known.
    reader : RowReader
        Finds the state of a row.
    """
    index: list[int] = []
    is_new: list[bool] = []
    problem: UnknownLabelError | None = None
    for number, row in enumerate(rows_of(table, columns, reader.states), start=1):
        try:
            index.append(reader.deciding_index(row))
            is_new.append(reader.has_new_category(row))
        except UnknownLabelError as error:
            index.append(UNKNOWN)
            is_new.append(True)
            if problem is None:
                error.where = f"row {number}, {error.where}" if error.where else f"row {number}"
                problem = error
        except LabelError as error:
            raise LabelError(f"row {number}: {error}") from None
    indices = np.array(index, dtype=np.int64)
    return FoundStates(indices, np.array(is_new, dtype=bool), problem)


def rows_of(table: Any, columns: Columns | None, states: Space) -> Iterable[object]:
    """The rows of a table, each a row of named values, a tuple of raw values, or a label."""
    if isinstance(table, (list, tuple)):
        return table
    if isinstance(table, np.ndarray):
        return map(tuple, table.tolist()) if table.ndim == 2 else table.tolist()
    if isinstance(table, Mapping):
        if not any(_is_column(value) for value in table.values()):
            return [table]
        names = RowColumns.within(columns).all if columns is not None else states.fields
        return _rows_of_columns(table, names)
    if _is_series(table):
        values: list[object] = table.to_list()
        return values
    if columns is None:
        raise ParameterError(
            "this policy was learned from counts, so it does not know the columns of a table; "
            "give a list of states"
        )
    needed = RowColumns.within(columns)
    return _rows_of_columns(_collected(table, needed), needed.all)


def _is_column(value: object) -> bool:
    """Whether a value of a mapping is a column, not a single value."""
    return isinstance(value, (list, tuple, np.ndarray)) or _is_series(value)


def _is_series(table: object) -> bool:
    """Whether this is a series of pandas or polars, or an array of Arrow: a single column."""
    has_list = hasattr(table, "to_list") or hasattr(table, "to_pylist")
    return has_list and not hasattr(table, "columns")


def _rows_of_columns(table: Mapping[str, Any], names: tuple[str, ...]) -> Iterable[object]:
    """The rows of a mapping of columns."""
    missing = [name for name in names if name not in table]
    if missing:
        raise LabelError(f"the rows have no column {missing[0]!r}")
    lists = [list(table[name]) for name in names]
    if len({len(values) for values in lists}) > 1:
        raise ParameterError("the columns of the rows differ in length")
    return (dict(zip(names, values, strict=True)) for values in zip(*lists, strict=True))


def _collected(table: Any, needed: RowColumns) -> dict[str, list[object]]:
    """The state's columns of a file or frame, in its order."""
    from pastwise.logs.sources import log_errors, open_table

    with log_errors(table):
        frame = open_table(table, needed)
        require_columns(needed, list(frame.collect_schema()))
        arrow = frame.select(*needed.all).collect(backend="pyarrow").to_native()
    return {name: arrow.column(name).to_pylist() for name in needed.all}
