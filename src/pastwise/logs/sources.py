"""Where a log may come from: files, data frames, relations, queries. All become one lazy frame.

DuckDB, in this process, reads files and tables in memory. A table that already has an engine
(polars, DuckDB, Ibis, Spark) stays in it. Nothing is read before the result of a query is
collected, and only that result leaves the engine.

Frames are those of ``narwhals.stable.v2``, whose behaviour does not change with new versions of
narwhals. With the plain ``narwhals`` API some programs end with a list of objects that DuckDB's
binding calls leaked.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import narwhals.stable.v2 as nw
import pyarrow as pa

from pastwise.errors import FileError, LogError
from pastwise.logs.columns import Columns

FILE_KINDS = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "json": (".jsonl", ".ndjson", ".json"),
}
"""Kinds of files, by the endings of their names; each may be followed by ``.gz``."""

ROW = "pastwise row"
"""Name of the column that numbers records."""

SAMPLE_ROWS = 1000
"""Rows of a CSV file from which the type of a column of numbers or dates is inferred."""

Paths = str | Path | Sequence[str | Path]
"""A path, a glob, or a list of them."""


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
    if _is_files(table):
        return _frame_of(_open_files(table, columns), numbered)
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
    if not frame.implementation.is_pyarrow():
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


def parquet_files(table: Any) -> list[str]:
    """The Parquet files that a log consists of; none if it is anything else."""
    if not _is_files(table):
        return []
    paths, kind = _paths_and_kind(table)
    return paths if kind == "parquet" else []


@contextmanager
def engine_errors(source: str) -> Iterator[None]:
    """Turn an error of DuckDB into a `LogError` of one line that names the source."""
    try:
        yield
    except duckdb.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        noise = ("*", "Possible", "LINE", "^")
        useful = [line for line in lines if not line.startswith(noise)]
        raise LogError(f"{source}: cannot be read: {'; '.join(useful[:4])}") from None


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
        quoted = [_quoted(name) for name in zoned]
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


# DuckDB.


def _connection() -> duckdb.DuckDBPyConnection:
    """A connection of our own. Without a progress bar, which would go to stdout."""
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false; set TimeZone = 'UTC'")
    return connection


def _in_duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    return _connection().from_arrow(table)


def _frame_of(relation: duckdb.DuckDBPyRelation, numbered: bool) -> nw.LazyFrame[Any]:
    """A relation as a lazy frame."""
    # narwhals cannot cast moments in nanoseconds with a time zone; microseconds will do.
    coarser = []
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if "TZ_NS" in str(kind):
            coarser.append(f"cast({_quoted(name)} as timestamptz) as {_quoted(name)}")
    if coarser:
        relation = relation.project(f"* replace ({', '.join(coarser)})")
    if numbered:
        relation = relation.project(f"*, row_number() over () as {_quoted(ROW)}")
    frame: nw.LazyFrame[Any] = nw.from_native(relation)
    return frame


def _quoted(name: str) -> str:
    """The name of a column in SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


# Files.


def _is_files(table: Any) -> bool:
    if isinstance(table, (str, Path)):
        return True
    return isinstance(table, Sequence) and bool(table) and isinstance(table[0], (str, Path))


def _paths_and_kind(given: Paths) -> tuple[list[str], str]:
    """The files that are meant, and their kind."""
    patterns = [given] if isinstance(given, (str, Path)) else list(given)
    paths = [path for pattern in patterns for path in _matching(str(pattern))]
    kinds = sorted({_kind_of_file(path) for path in paths})
    if len(kinds) > 1:
        raise LogError(f"files of several kinds cannot be one log: {', '.join(kinds)}")
    return paths, kinds[0]


def _matching(pattern: str) -> list[str]:
    """The files that a path or glob stands for, in order."""
    if Path(pattern).is_dir():
        raise FileError(
            f"{pattern} is a folder; name its files, as in {pattern.rstrip('/')}/*.parquet"
        )
    if Path(pattern).exists():
        return [pattern]
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207
    paths = sorted(path for path in found if Path(path).is_file())
    if not paths:
        raise FileError(f"no such file: {pattern}")
    return paths


def _kind_of_file(path: str) -> str:
    name = path.lower().removesuffix(".gz")
    for kind, endings in FILE_KINDS.items():
        if name.endswith(endings):
            return kind
    raise LogError(
        f"{path}: unknown kind of file; known are .csv, .tsv, .txt, .parquet, .pq, .jsonl, .ndjson "
        "and .json"
    )


def _open_files(given: Paths, columns: Columns) -> duckdb.DuckDBPyRelation:
    paths, kind = _paths_and_kind(given)
    with engine_errors(paths[0]):
        if kind == "csv":
            return _open_csv(paths, columns)
        if kind == "json":
            return _open_json(paths, columns)
        query = "from read_parquet($paths, hive_partitioning=false)"
        return _connection().sql(query, params={"paths": _exact(paths)})


def _exact(paths: list[str]) -> list[str]:
    """The paths for DuckDB, which would take them for globs."""
    return [glob.escape(path) for path in paths]


def _open_json(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """JSON lines, with the types that DuckDB infers, corrected for the use of each column."""
    path = paths[0]
    if Path(path).stat().st_size == 0:
        raise LogError(f"{path} is empty")
    connection = _connection()
    files = {"paths": _exact(paths)}
    inferred = connection.sql("from read_json($paths, hive_partitioning=false)", params=files)
    types = {name: str(kind) for name, kind in zip(inferred.columns, inferred.types, strict=True)}
    text = set(columns.text)
    needed = [name for name in types if name in columns.all]
    for name in needed:
        kind = types[name]
        if kind == "JSON":
            raise LogError(f"{path}: the column {name!r} holds values of different types")
        if kind == "HUGEINT":
            types[name] = "BIGINT"
        if name in text and kind.startswith(("TIMESTAMP", "DATE", "TIME", "UUID")):
            types[name] = "VARCHAR"  # a label that looks like a date is text
        if name not in text and kind == "VARCHAR" and _holds_moments(inferred, name):
            types[name] = "TIMESTAMP"
    query = "from read_json($paths, columns=$types, hive_partitioning=false)"
    return connection.sql(query, params={**files, "types": types})


def _holds_moments(relation: duckdb.DuckDBPyRelation, name: str) -> bool:
    """Whether every text of a column is a date with or without a time."""
    column = _quoted(name)
    return _holds_for_all(relation, f"try_cast({column} as timestamp) is not null", column)


def _holds_whole_numbers(relation: duckdb.DuckDBPyRelation, name: str) -> bool:
    """Whether every text of a column is a whole number."""
    column = _quoted(name)
    return _holds_for_all(relation, f"regexp_full_match(trim({column}), '[+-]?[0-9]+')", column)


def _holds_for_all(relation: duckdb.DuckDBPyRelation, condition: str, column: str) -> bool:
    """Whether a condition holds for every value of a column that is not missing."""
    found = relation.aggregate(f"bool_and({column} is null or {condition})").fetchall()
    return bool(found[0][0])


# CSV files.


class Header(NamedTuple):
    """The first line of a CSV file."""

    delimiter: str
    names: list[str]


def _open_csv(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """CSV files that share one header. The header gives the dialect, so no row is ever skipped."""
    header = _read_header(paths[0])
    for path in paths[1:]:
        if _read_header(path) != header:
            raise LogError(f"{path}: its header differs from that of {paths[0]}")

    # First every column is text.
    connection = _connection()
    query = (
        "from read_csv($paths, columns=$types, header=true, auto_detect=false, delim=$delimiter, "
        "quote='\"', escape='\"', nullstr='', hive_partitioning=false)"
    )
    types = dict.fromkeys(header.names, "VARCHAR")
    options = {"paths": _exact(paths), "delimiter": header.delimiter}
    text = connection.sql(query, params={**options, "types": types})

    # Then the columns that are not labels get the type that their first values look like.
    typed = [name for name in header.names if name in columns.all and name not in columns.text]
    if not typed:
        return text
    first_file = {**options, "paths": _exact(paths[:1]), "types": types}
    sample = connection.sql(query, params=first_file).limit(SAMPLE_ROWS)
    rows = sample.project(", ".join(_quoted(name) for name in typed)).fetchall()
    for place, name in enumerate(typed):
        types[name] = _type_of([row[place] for row in rows if row[place] is not None])
        is_label = name in columns.labels
        if types[name] == "BIGINT" and not (is_label and _holds_whole_numbers(text, name)):
            types[name] = "DOUBLE"
    return connection.sql(query, params={**options, "types": types})


def _read_header(path: str) -> Header:
    """Delimiter and names of the columns of a CSV file."""
    is_compressed = path.lower().endswith(".gz")
    with gzip.open(path) if is_compressed else Path(path).open("rb") as binary:
        text = io.TextIOWrapper(binary, encoding="utf-8-sig", newline="")
        try:
            line = text.readline()
            if not line.strip():
                raise LogError(f"{path} is empty: the first line of a CSV file names its columns")
            if "\0" in line:
                raise LogError(f"{path} is not a text file")
            headers = [Header(mark, next(csv.reader([line], delimiter=mark))) for mark in ",;\t|"]
        except (UnicodeDecodeError, csv.Error, OSError, EOFError, zlib.error) as error:
            raise LogError(f"{path} is not a CSV file in UTF-8: {error}") from None
    header = max(headers, key=lambda candidate: len(candidate.names))
    if len(set(header.names)) < len(header.names):
        repeated = next(name for name in header.names if header.names.count(name) > 1)
        raise LogError(f"{path}: the column {repeated!r} occurs twice")
    return header


def _type_of(values: list[str]) -> str:
    """The narrowest SQL type that every value fits: whole number, number, date, time, text."""
    parsers: dict[str, Callable[[str], object]] = {
        "BIGINT": int,
        "DOUBLE": float,
        "DATE": lambda value: datetime.strptime(value, "%Y-%m-%d"),
        "TIMESTAMP": _parse_local,
        "TIMESTAMPTZ": datetime.fromisoformat,
    }
    for kind, parse in parsers.items():
        if all(_parses(value, parse) for value in values):
            return kind
    return "VARCHAR"


def _parses(value: str, parse: Callable[[str], object]) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def _parse_local(value: str) -> datetime:
    """A moment without an offset from UTC."""
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is not None:
        raise ValueError(value)
    return moment
