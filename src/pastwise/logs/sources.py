"""Where a log may come from: files, data frames, relations, queries. All become one lazy frame.

Files and tables in memory are read by DuckDB, in this process; what already has an engine (polars, DuckDB, Ibis,
Spark) stays in it. Nothing is read before the result of a query is collected, and only that leaves the engine.
"""

from __future__ import annotations

import atexit
import csv
import gc
import glob
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pastwise.logs.columns import Columns

if TYPE_CHECKING:
    import duckdb
    import narwhals as nw

CSV, PARQUET, JSON = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".jsonl", ".ndjson", ".json")
ROW = "pastwise row"
"""Name of the column that numbers records."""

SAMPLE_ROWS = 1000
"""Rows of a CSV file from which the type of a column that must be a number or a date is told."""


def open_table(table: Any, columns: Columns, *, numbered: bool = False) -> nw.LazyFrame[Any]:
    """A lazy frame of any log.

    Parameters
    ----------
    table : path, glob, list of paths, mapping of columns, or a frame of any library that narwhals knows
    columns : Columns
        Those that are asked for; what the others hold does not matter. They also tell which columns of a CSV file are
        text whatever they look like; the others get the type that they look like.
    numbered : bool
        Add a column `ROW` with the number of the record, from 1 on, where the source has an order.
    """
    import narwhals as nw

    if _is_files(table):
        return _numbered(_files(table, columns), numbered)
    if isinstance(table, Mapping):
        return _numbered(_arrow(_arrow_table(dict(table), columns)), numbered)
    try:
        frame = nw.from_native(table)
    except nw.exceptions.NarwhalsError as error:
        raise ValueError(" ".join(str(error).split())) from None
    except TypeError:
        raise ValueError(
            "a log is a path, a mapping of columns, or a table of pandas, polars, pyarrow, DuckDB, Ibis or PySpark; "
            f"not {type(table).__name__}"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        return _in_utc(frame, columns)
    if frame.implementation.is_polars():
        eager = frame.with_row_index(ROW).with_columns(nw.col(ROW) + 1) if numbered else frame
        lazy: nw.LazyFrame[Any] = eager.lazy()
        return lazy
    native = frame.to_native()
    return _numbered(
        _arrow(native if frame.implementation.is_pyarrow() else _arrow_table(native, columns)),
        numbered,
    )


def _in_utc(frame: nw.LazyFrame[Any], columns: Columns) -> nw.LazyFrame[Any]:
    """The frame, its moments in UTC where the engine would tell them by the clock of its session, changes and all."""
    import narwhals as nw

    native, kind = frame.to_native(), frame.implementation
    if kind.is_pyspark() or kind.is_pyspark_connect():
        _refuse_odd_names(columns)
    elif not kind.is_duckdb():
        return frame
    schema = frame.collect_schema()
    moments = {name: schema.get(name) for name in (columns.time, columns.age) if name}
    zoned = [
        name
        for name, dtype in moments.items()
        if isinstance(dtype, nw.Datetime) and dtype.time_zone
    ]
    if not zoned:
        return frame
    if kind.is_duckdb():
        quoted = ['"{}"'.format(name.replace('"', '""')) for name in zoned]
        moved = ", ".join(f"timezone('UTC', {name}) as {name}" for name in quoted)
        utc = native.project(f"* replace ({moved})")
    else:
        from pyspark.sql.functions import expr

        since = "timestampadd(microsecond, unix_micros(`{}`), timestamp_ntz'1970-01-01')"
        utc = native.withColumns({name: expr(since.format(name)) for name in zoned})
    told: nw.LazyFrame[Any] = nw.from_native(utc)
    return told


def _refuse_odd_names(columns: Columns) -> None:
    """Refuse names that Spark takes for something else than a column."""
    for name in columns.all:
        if set(name) & set(".`*"):
            plain = "".join("_" if letter in ".`*" else letter for letter in name)
            raise ValueError(
                f"Spark takes the column name {name!r} for something else, because of its dot, backtick or star: "
                f"rename it first, as in table.withColumnRenamed({name!r}, {plain!r})"
            )


def library_of(table: Any) -> str | None:
    """Name of the data frame library that a table in memory is of, if it is of one that can hold results."""
    import narwhals as nw

    try:
        name = str(nw.from_native(table).implementation)
    except TypeError:
        return None
    return name if name in ("pandas", "polars", "pyarrow") else None


def _numbered(relation: duckdb.DuckDBPyRelation, numbered: bool) -> nw.LazyFrame[Any]:
    import narwhals as nw

    _tidy_at_exit()
    kinds = zip(relation.columns, relation.types, strict=True)
    coarser = ", ".join(
        f'cast("{name}" as timestamptz) as "{name}"' for name, kind in kinds if "TZ_NS" in str(kind)
    )
    if coarser:  # narwhals cannot cast the finest moments
        relation = relation.project(f"* replace ({coarser})")
    frame: nw.LazyFrame[Any] = nw.from_native(
        relation.project(f'*, row_number() over () as "{ROW}"') if numbered else relation
    )
    return frame


@cache
def _tidy_at_exit() -> None:
    """Let go of DuckDB's types before the interpreter ends, or its binding lists each of them on stderr as leaked."""

    def tidy() -> None:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] == "narwhals":
                vars(module).clear()
        gc.collect()

    atexit.register(tidy)


def _connection() -> duckdb.DuckDBPyConnection:
    """A connection of our own; its progress bar would go to stdout."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false; set TimeZone = 'UTC'")
    return connection


def _arrow(table: Any) -> duckdb.DuckDBPyRelation:
    return _connection().from_arrow(table)


def _arrow_table(table: Any, columns: Columns) -> Any:
    """An Arrow table of a mapping of columns or of a pandas-like frame; a column of mixed types is an error."""
    import pyarrow as pa

    asked = list(dict.fromkeys(columns.all))
    if set(asked) <= set(table):
        table = {name: table[name] for name in asked} if isinstance(table, dict) else table[asked]
    try:
        if isinstance(table, dict):
            return pa.table(table)
        return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ValueError(
            f"a column holds values of different types: {error.args[-1] if error.args else error}"
        ) from None


def _is_files(table: Any) -> bool:
    several = isinstance(table, Sequence) and bool(table) and isinstance(table[0], (str, Path))
    return isinstance(table, (str, Path)) or several


def _named(given: str | Path | Sequence[str | Path]) -> tuple[list[str], str]:
    """The files that are meant, and their kind."""
    patterns = [given] if isinstance(given, (str, Path)) else list(given)
    paths = [path for pattern in patterns for path in _matching(str(pattern))]
    kinds = {_kind(path) for path in paths}
    if len(kinds) > 1:
        raise ValueError(f"files of several kinds cannot be one log: {', '.join(sorted(kinds))}")
    return paths, kinds.pop()


def parquet_files(table: Any) -> list[str]:
    """The Parquet files that a log is, or none."""
    paths, kind = _named(table) if _is_files(table) else ([], "")
    return paths if kind == "parquet" else []


def _files(given: str | Path | Sequence[str | Path], columns: Columns) -> duckdb.DuckDBPyRelation:
    paths, kind = _named(given)
    with reading(paths[0]):
        if kind == "csv":
            return _csv(paths, columns)
        exact = {"paths": [glob.escape(path) for path in paths]}
        if kind == "json":
            return _json(exact, paths[0], columns)
        return _connection().sql("from read_parquet($paths, hive_partitioning=false)", params=exact)


def _json(exact: dict[str, Any], path: str, columns: Columns) -> duckdb.DuckDBPyRelation:
    """JSON lines. What DuckDB takes for dates in a column of labels is text; elsewhere text that is a moment is one."""
    if Path(path).stat().st_size == 0:
        raise ValueError(f"{path} is empty")
    connection = _connection()
    relation = connection.sql("from read_json($paths, hive_partitioning=false)", params=exact)
    types = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
    labels = set(columns.text)
    for name, kind in types.items():
        if name not in columns.all:
            continue
        if kind == "JSON":
            raise ValueError(f"{path}: the column {name!r} holds values of different types")
        if name in labels and kind.startswith(("TIMESTAMP", "DATE", "TIME", "UUID")):
            types[name] = "VARCHAR"
        if kind == "HUGEINT":
            types[name] = "BIGINT"
        if name not in labels and kind == "VARCHAR":
            moments = f'bool_and(try_cast("{name}" as timestamp) is not null or "{name}" is null)'
            types[name] = "TIMESTAMP" if relation.aggregate(moments).fetchall()[0][0] else kind
    query = "from read_json($paths, columns=$types, hive_partitioning=false)"
    return connection.sql(query, params={**exact, "types": types})


def _matching(pattern: str) -> list[str]:
    """The files that a path or glob stands for, in order."""
    if Path(pattern).is_dir():
        raise ValueError(
            f"{pattern} is a folder; name its files, as in {pattern.rstrip('/')}/*.parquet"
        )
    if Path(pattern).exists():
        return [pattern]
    paths = sorted(path for path in glob.glob(pattern, recursive=True) if Path(path).is_file())  # noqa: PTH207
    if not paths:
        raise ValueError(f"no such file: {pattern}")
    return paths


def _kind(path: str) -> str:
    name = path.lower().removesuffix(".gz")
    for kind, endings in (("csv", CSV), ("parquet", PARQUET), ("json", JSON)):
        if name.endswith(endings):
            return kind
    raise ValueError(
        f"{path}: what kind of file is this? Known are .csv, .tsv, .parquet, .jsonl, .ndjson and .json"
    )


@contextmanager
def reading(source: Any) -> Iterator[None]:
    """Turn an engine's error into one line of ours that names the source."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        useful = [line for line in lines if not line.startswith(("*", "Possible", "LINE", "^"))][:4]
        raise ValueError(f"{source}: cannot be read: {'; '.join(useful)}") from None


def _csv(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """CSV files that share one header. The dialect is told from the header, so that no row is ever skipped."""
    heads = [_head(path) for path in paths]
    delimiter, names, sample = heads[0]
    for path, head in zip(paths, heads, strict=True):
        if head[:2] != (delimiter, names):
            raise ValueError(f"{path}: its header differs from that of {paths[0]}")
    exact = {"paths": [glob.escape(path) for path in paths], "delimiter": delimiter}
    query = (
        "from read_csv($paths, columns=$types, header=true, auto_detect=false, delim=$delimiter, quote='\"', "
        "escape='\"', nullstr='', hive_partitioning=false)"
    )
    connection, types = _connection(), dict.fromkeys(names, "VARCHAR")
    text = connection.sql(query, params={**exact, "types": types})
    for i, name in enumerate(names):
        if name in columns.all and name not in columns.text:
            types[name] = _type_of([row[i] for row in sample if i < len(row)])
            if types[name] == "BIGINT" and not (name in columns.labels and _all_whole(text, name)):
                types[name] = "DOUBLE"
    return connection.sql(query, params={**exact, "types": types})


def _all_whole(text: duckdb.DuckDBPyRelation, name: str) -> bool:
    """Whether every value of a column is a whole number, not the first ones alone."""
    pattern = f'bool_and("{name}" is null or regexp_full_match(trim("{name}"), \'[+-]?[0-9]+\'))'
    return bool(text.aggregate(pattern).fetchall()[0][0])


def _head(path: str) -> tuple[str, list[str], list[list[str]]]:
    """Delimiter, names and first rows of a CSV file."""
    csv.field_size_limit(2**31 - 1)  # columns that are not asked for may hold anything
    with gzip.open(path) if path.lower().endswith(".gz") else Path(path).open("rb") as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
        try:
            first = text.readline()
            if not first.strip():
                raise ValueError(f"{path} is empty: the first line of a CSV file names its columns")
            if "\0" in first:
                raise ValueError(f"{path} is not a text file")
            headers = {mark: next(csv.reader([first], delimiter=mark)) for mark in ",;\t|"}
            delimiter = max(headers, key=lambda mark: len(headers[mark]))
            names, sample = (
                headers[delimiter],
                list(islice(csv.reader(text, delimiter=delimiter), SAMPLE_ROWS)),
            )
        except (UnicodeDecodeError, csv.Error, OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a CSV file in UTF-8: {error}") from None
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path}: the column {repeated!r} occurs twice")
    return delimiter, names, sample


def _local(value: str) -> None:
    """Accept a moment without an offset."""
    if datetime.fromisoformat(value).tzinfo is not None:
        raise ValueError(value)


def _type_of(values: list[str]) -> str:
    """The narrowest SQL type that every value fits: whole number, number, date, time, text."""
    present = [value for value in values if value]
    kinds: list[tuple[str, Any]] = [
        ("BIGINT", int),
        ("DOUBLE", float),
        ("DATE", lambda v: datetime.strptime(v, "%Y-%m-%d")),
        ("TIMESTAMP", _local),
        ("TIMESTAMPTZ", datetime.fromisoformat),
    ]
    for kind, parse in kinds:
        try:
            for value in present:
                parse(value)
        except ValueError:
            continue
        return kind
    return "VARCHAR"
