"""Where a log may come from: files, data frames, relations, queries. All become one lazy frame.

DuckDB, in this process, reads files and tables in memory. A table that already has an engine
(polars, DuckDB, Ibis, Spark) stays in it. Nothing is read before the result of a query is
collected, and only that result leaves the engine.

Frames are those of ``narwhals.stable.v2``, whose behaviour does not change with new versions of
narwhals. With the plain ``narwhals`` API some programs end with a list of objects that DuckDB's
binding calls leaked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import pyarrow as pa

from pastwise.errors import LogError
from pastwise.logs.columns import Columns
from pastwise.logs.files import is_files, open_files
from pastwise.logs.sql import connect, identifier

ROW = "pastwise row"
"""Name of the column that numbers records."""


def open_table(table: Any, columns: Columns, *, numbered: bool = False) -> nw.LazyFrame[Any]:
    """A lazy frame of any log.

    Parameters
    ----------
    table : path, glob, list of paths, mapping of columns, or a frame of any library of narwhals
    columns : Columns
        The columns that are needed; the others may hold anything. They also say which columns of a
        CSV file are text; the others get the type that their values look like.
    numbered : bool
        Add a column `ROW` with the number of the record, from 1 on, where the source has an order.
    """
    if is_files(table):
        return _frame_of(open_files(table, columns), numbered)
    if isinstance(table, Mapping):
        return _frame_of(_in_duckdb(_arrow_table(dict(table), columns)), numbered)
    frame = _narwhals_frame(table)
    if isinstance(frame, nw.LazyFrame):
        return _in_utc(frame, columns)
    if frame.implementation.is_polars():
        if numbered:
            frame = frame.with_row_index(ROW).with_columns(nw.col(ROW) + 1)
        lazy: nw.LazyFrame[Any] = frame.lazy()
        return lazy
    native = frame.to_native()
    if frame.implementation.is_pyarrow():
        native = _needed_columns(native, columns)
    else:
        native = _arrow_table(native, columns)
    return _frame_of(_in_duckdb(native), numbered)


def name_of(table: Any) -> str:
    """What an error message calls a log."""
    return str(table) if isinstance(table, (str, Path)) else "the log"


def library_of(table: Any) -> str | None:
    """The library of a data frame in memory, if results can be returned in it."""
    try:
        name = str(nw.from_native(table).implementation)
    except TypeError:
        return None
    return name if name in ("pandas", "polars", "pyarrow") else None


# Tables in memory and in engines.


def _narwhals_frame(table: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(table)
    except nw.exceptions.NarwhalsError as error:
        raise LogError(" ".join(str(error).split())) from None
    except TypeError:
        raise LogError(
            "a log is a path, a mapping of columns, or a table of pandas, polars, pyarrow, DuckDB, "
            f"Ibis or PySpark; not {type(table).__name__}"
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
    elif not engine.is_duckdb():
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
    has_all = set(needed) <= set(table)
    try:
        if isinstance(table, dict):
            return pa.table({name: table[name] for name in needed} if has_all else table)
        return pa.Table.from_pandas(table[needed] if has_all else table, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = error.args[-1] if error.args else error
        raise LogError(f"a column holds values of different types: {reason}") from None


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
    # narwhals does not know moments in nanoseconds with a time zone; without one, in UTC, it does.
    in_utc = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if "TZ_NS" in str(kind):
            in_utc.append(f"timezone('UTC', {identifier(name)}) as {identifier(name)}")
    if in_utc:
        relation = relation.project(f"* replace ({', '.join(in_utc)})")
    if numbered:
        relation = relation.project(f"*, row_number() over () as {identifier(ROW)}")
    frame: nw.LazyFrame[Any] = nw.from_native(relation)
    return frame
