"""Where a log may come from: files, data frames, relations, queries. All become one lazy frame.

DuckDB, in this process, reads files and tables in memory. A table that already has an engine
(polars, DuckDB, Ibis, Spark) stays in it. Nothing is read before the result of a query is
collected, and only that result leaves the engine.

Frames are those of ``narwhals.stable.v2``, whose behaviour does not change with new versions of
narwhals. With the plain ``narwhals`` API some programs end with a list of objects that DuckDB's
binding calls leaked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from pastwise.data.space import Label, shortest_text
from pastwise.errors import LogError, listed, shown
from pastwise.logs.columns import Columns
from pastwise.logs.files import (
    EXACT,
    STDIN,
    arrow_errors,
    file_of_stdin,
    is_files,
    open_files,
    with_moments,
)
from pastwise.logs.sql import connect, engine_errors, identifier

ROW = "pastwise row"
"""Name of the column that numbers records."""

STANDARD_INPUT = "standard input"
"""What an error message calls standard input, which is read from a temporary file."""


def open_table(table: Any, columns: Columns, *, numbered: bool = False) -> nw.LazyFrame[Any]:
    """A lazy frame of any log.

    Parameters
    ----------
    table : path, glob, list of paths, mapping of columns, list of rows, array of NumPy, or a frame
        of any library of narwhals
    columns : Columns
        The columns that are needed; the others may hold anything. They also say which columns of a
        CSV file are text; the others get the type that their values look like.
    numbered : bool
        Add a column `ROW` with the number of the record, from 1 on, where the source has an order.
    """
    return _in_64_bits(_opened(table, columns, numbered), columns)


def _opened(table: Any, columns: Columns, numbered: bool) -> nw.LazyFrame[Any]:
    """A lazy frame of any log, with its columns as they are."""
    if is_files(table):
        return _frame_of(open_files(table, columns), numbered)
    table = named_columns(table)
    if isinstance(table, Mapping):
        arrow = _arrow_table(dict(table), columns)
        return _frame_of(with_moments(_in_duckdb(arrow), columns), numbered)
    frame = narwhals_frame(table)
    if isinstance(frame, nw.LazyFrame):
        return _in_utc(frame, columns)
    if frame.implementation.is_polars() and not _has_text_times(frame, columns):
        if numbered:
            frame = frame.with_row_index(ROW).with_columns(nw.col(ROW) + 1)
        lazy: nw.LazyFrame[Any] = frame.lazy()
        return lazy
    native = frame.to_native()
    if frame.implementation.is_pyarrow():
        native = _needed_columns(native, columns)
    elif frame.implementation.is_polars():
        native = _needed_columns(frame.to_arrow(), columns)
    else:
        native = _arrow_table(_with_text_intervals(native, columns), columns)
    return _frame_of(with_moments(_in_duckdb(native), columns), numbered)


@contextmanager
def log_errors(table: Any) -> Iterator[None]:
    """Turn an error of an engine into a `LogError` of one line that names the log.

    Errors about standard input name it in place of the file that it was written to.
    """
    name = _name_of(table)
    try:
        with engine_errors(name):
            yield
    except LogError as error:
        if name == STANDARD_INPUT:
            message = str(error).replace(file_of_stdin(), name)
            error.args = (message, *error.args[1:])
        raise


def _name_of(table: Any) -> str:
    """What an error message calls a log."""
    if not isinstance(table, (str, Path)):
        return "the log"
    return STANDARD_INPUT if str(table) == STDIN else str(table)


def library_of(table: Any) -> str | None:
    """The library of a data frame in memory, if results can be returned in it."""
    try:
        name = str(nw.from_native(table).implementation)
    except TypeError:
        return None
    return name if name in ("pandas", "polars", "pyarrow") else None


# Tables in memory and in engines.


def named_columns(table: Any) -> Any:
    """A list of rows or an array of NumPy as a mapping of columns, and any names as text.

    The columns of a plain array are named by their numbers, from 0 on.
    """
    if isinstance(table, np.ndarray):
        return _columns_of_array(table)
    if isinstance(table, (list, tuple)):
        return _columns_of_rows(table)
    is_pandas = _is_pandas(table)
    if not is_pandas and not isinstance(table, Mapping):
        return table
    if not any(isinstance(name, (int, np.integer)) for name in table):
        return table
    if is_pandas:
        return table.rename(columns=str)
    return {str(name): values for name, values in table.items()}


def _is_pandas(table: Any) -> bool:
    """Whether a table is a data frame with the interface of pandas."""
    return hasattr(table, "iloc") and hasattr(table, "dtypes")


def _columns_of_array(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """The columns of a structured array, or of one with two dimensions."""
    if array.dtype.names is not None and array.ndim == 1:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim != 2:
        raise LogError(
            "an array is a log if it has two dimensions, records and columns, or named fields; "
            f"got the shape {array.shape}"
        )
    return {str(i): _column_of_array(array[:, i]) for i in range(array.shape[1])}


def _column_of_array(values: np.ndarray[Any, Any]) -> Any:
    """A column of an array. All have one type, so whole numbers may be there as fractions."""
    if values.dtype.kind == "O":
        return values.tolist()
    if values.dtype.kind != "f":
        return values
    is_known = ~np.isnan(values)
    known = values[is_known]
    is_whole = bool(np.all(np.isfinite(known) & (np.abs(known) < EXACT) & (known % 1 == 0)))
    if not is_whole:
        return values
    whole = np.where(is_known, values, 0).astype(np.int64)
    return pa.array(whole, mask=~is_known)


def _columns_of_rows(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The columns of rows that are mappings; a value that a row lacks is missing."""
    if not rows:
        raise LogError("the log has no records: the list is empty")
    names: dict[str, None] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise LogError(
                "a list is a log if it holds paths, or rows as mappings such as "
                f'{{"state": "cold", "action": "heat"}}; item {place} is {shown(row)}'
            )
        names.update(dict.fromkeys(row))
    return {str(name): [row.get(name) for row in rows] for name in names}


def categories_of(table: Any, columns: Columns) -> dict[str, tuple[Label, ...]]:
    """The values of columns that have an order of their own, in that order.

    These are the enumerations of polars and DuckDB, ordered dictionaries of pyarrow, and categories
    of pandas, unless they have no order and are sorted as text, which is pandas' default.
    """
    if is_files(table):
        return {}
    table = named_columns(table)
    found = {}
    outcome = (columns.outcome,) if columns.outcome else ()
    for name in (*columns.state, *columns.action, *outcome):
        if name not in columns.bins:
            found[name] = _categories(table, name)
    for name, next_name in zip(columns.state, columns.next_state, strict=False):
        if not found.get(name) and name not in columns.bins:
            found[name] = _categories(table, next_name)
    return {name: categories for name, categories in found.items() if categories}


def _categories(table: Any, name: str) -> tuple[Label, ...]:
    """The values of a column in their own order; nothing if they have none."""
    if isinstance(table, Mapping):
        column = table[name]
        dtype = getattr(column, "dtype", getattr(column, "type", None))
    elif isinstance(table, pa.Table):
        column = table.column(name)
        dtype = column.type
    elif _is_pandas(table):
        column = table[name]
        dtype = column.dtype
    else:
        kind = narwhals_frame(table).collect_schema()[name]
        return tuple(kind.categories) if isinstance(kind, nw.Enum) else ()

    if isinstance(dtype, pa.DictionaryType):
        return _arrow_categories(column) if dtype.ordered else ()
    categories = getattr(dtype, "categories", None)
    if categories is None:
        return ()
    labels = tuple(_as_label(category) for category in categories)
    is_ordered = getattr(dtype, "ordered", True)
    is_default = not is_ordered and list(labels) == sorted(labels, key=str)
    return () if is_default else labels


def _arrow_categories(column: pa.Array | pa.ChunkedArray) -> tuple[Label, ...]:
    """The values of a dictionary, in its order."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    chunks = column.unify_dictionaries().chunks
    return tuple(chunks[0].dictionary.to_pylist()) if chunks else ()


def _as_label(category: Any) -> Label:
    """A category of pandas as the label that it becomes."""
    if isinstance(category, np.generic):
        category = category.item()
    if isinstance(category, (str, int, float)):
        return category
    if hasattr(category, "closed_left"):
        return _interval_text(category)
    return str(category.isoformat()) if hasattr(category, "isoformat") else str(category)


def _with_text_intervals(table: Any, columns: Columns) -> Any:
    """A frame of pandas with intervals, such as those of ``pd.cut``, as text: ``(0, 10]``."""
    replaced = {}
    for name in dict.fromkeys(columns.labels):
        if name not in table:
            continue
        dtype = getattr(table[name], "dtype", None)
        categories = getattr(getattr(dtype, "categories", None), "dtype", None)
        if str(categories).startswith("interval"):
            texts = [_interval_text(each) for each in dtype.categories]  # type: ignore[union-attr]
            replaced[name] = table[name].cat.rename_categories(texts)
        elif str(dtype).startswith("interval"):
            texts = table[name].map(_interval_text, na_action="ignore")
            replaced[name] = texts.astype(object)
    return table.assign(**replaced) if replaced else table


def _interval_text(interval: Any) -> str:
    """An interval of pandas as text; 10 and 10.0 are the same end."""
    ends = []
    for end in (interval.left, interval.right):
        is_number = isinstance(end, (int, float, np.number))
        ends.append(shortest_text(float(end)) if is_number else str(end))
    opening = "[" if interval.closed_left else "("
    closing = "]" if interval.closed_right else ")"
    return f"{opening}{ends[0]}, {ends[1]}{closing}"


def _has_text_times(frame: nw.DataFrame[Any], columns: Columns) -> bool:
    """Whether times are text, which DuckDB can read."""
    return any(frame.schema.get(name) == nw.String for name in (columns.time, columns.age) if name)


def narwhals_frame(table: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """A table of any library of narwhals; anything else is a `LogError`."""
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(table)
    except nw.exceptions.NarwhalsError as error:
        raise LogError(" ".join(str(error).split())) from None
    except TypeError:
        raise LogError(
            "a log is a path, a mapping of columns, a list of rows, an array of NumPy, or a table "
            f"of pandas, polars, pyarrow, DuckDB, Ibis or PySpark; not {type(table).__name__}"
        ) from None
    return frame


def _in_utc(frame: nw.LazyFrame[Any], columns: Columns) -> nw.LazyFrame[Any]:
    """The frame with moments in UTC.

    DuckDB and Spark show moments by the clock of the session, which repeats an hour when clocks go
    back.
    """
    engine = frame.implementation
    is_spark = engine.is_pyspark() or engine.is_pyspark_connect()
    if is_spark:
        _refuse_names_of_spark(columns)
    elif engine.is_duckdb():
        frame = nw.from_native(_known_to_narwhals(frame.to_native()))
    else:
        return frame

    # Columns of moments that have a time zone.
    schema = frame.collect_schema()
    zoned = []
    for name in dict.fromkeys((columns.time, columns.age)):
        dtype = schema.get(name) if name else None
        if name and isinstance(dtype, nw.Datetime) and dtype.time_zone:
            zoned.append(name)
    if not zoned:
        return frame

    native = frame.to_native()
    if is_spark:
        from pyspark.sql.functions import expr

        since = "timestampadd(microsecond, unix_micros(`{}`), timestamp_ntz'1970-01-01')"
        in_utc = native.withColumns({name: expr(since.format(name)) for name in zoned})
    else:
        quoted = [identifier(name) for name in zoned]
        moments = ", ".join(f"timezone('UTC', {name}) as {name}" for name in quoted)
        in_utc = native.project(f"* replace ({moments})")
    moved: nw.LazyFrame[Any] = nw.from_native(in_utc)
    return moved


def _in_64_bits(frame: nw.LazyFrame[Any], columns: Columns) -> nw.LazyFrame[Any]:
    """The frame without labels and episodes of 128 bits, which the results of engines cannot hold.

    Labels that do not fit are an error of the engine. Episodes are only compared, so text will do.
    """
    schema = frame.collect_schema()
    narrow = {}
    for name in columns.compared:
        if schema.get(name) in (nw.Int128, nw.UInt128):
            kind = nw.String if name == columns.episode else nw.Int64
            narrow[name] = nw.col(name).cast(kind)
    return frame.with_columns(**narrow) if narrow else frame


def _refuse_names_of_spark(columns: Columns) -> None:
    """Refuse names that Spark does not read as names of columns."""
    special = ".`*"
    for name in columns.all:
        if any(letter in special for letter in name):
            plain = "".join("_" if letter in special else letter for letter in name)
            raise LogError(
                f"Spark cannot use the column name {name!r} because of its dot, backtick or star: "
                f"rename it first, as in table.withColumnRenamed({name!r}, {plain!r})"
            )


def _arrow_table(table: Any, columns: Columns) -> pa.Table:
    """An Arrow table of a mapping of columns or of a frame like those of pandas."""
    needed = list(dict.fromkeys(columns.all))
    names = needed if set(needed) <= set(table) else list(table)
    arrays = {}
    for name in names:
        with arrow_errors(f"the column {name!r}"):
            if isinstance(table, dict):
                column = pa.table({str(name): table[name]})
            else:
                column = pa.Table.from_pandas(table[[name]], preserve_index=False)
            arrays[str(name)] = column.column(0)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown_lengths = [f"{name!r} has {length:,} values" for name, length in lengths.items()]
        raise LogError(f"the columns of the log differ in length: {listed(shown_lengths)}")
    return pa.table(arrays)


def _needed_columns(table: pa.Table, columns: Columns) -> pa.Table:
    """The columns of an Arrow table that are needed, where each occurs once."""
    needed = list(dict.fromkeys(columns.all))
    places = [table.schema.get_field_index(name) for name in needed]
    return table if min(places) < 0 else table.select(places)


# DuckDB.


def _in_duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    return connect().from_arrow(table)


def _frame_of(relation: duckdb.DuckDBPyRelation, numbered: bool) -> nw.LazyFrame[Any]:
    """A relation as a lazy frame."""
    relation = _known_to_narwhals(relation)
    if numbered:
        relation = relation.project(f"*, row_number() over () as {identifier(ROW)}")
    frame: nw.LazyFrame[Any] = nw.from_native(relation)
    return frame


def _known_to_narwhals(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A relation without moments in nanoseconds with a time zone, of which narwhals has no type.

    Without a time zone, in UTC, it has.
    """
    in_utc = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if "TZ_NS" in str(kind):
            in_utc.append(f"timezone('UTC', {identifier(name)}) as {identifier(name)}")
    return relation.project(f"* replace ({', '.join(in_utc)})") if in_utc else relation
