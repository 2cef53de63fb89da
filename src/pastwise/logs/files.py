"""Log files: CSV, JSON lines and Parquet become relations of DuckDB with the needed columns.

A type holds for every value of a column, in every file, or the log is refused: no value is rounded,
cut short or moved to fit the type of the values before it.
"""

from __future__ import annotations

import atexit
import csv
import glob
import gzip
import io
import re
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import BadZipFile

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pastwise._files import require_regular_file
from pastwise.errors import FileError, LogError, MissingDependencyError, shown
from pastwise.logs.columns import Columns, require_columns
from pastwise.logs.sql import connect, engine_errors, identifier, literal

FILE_KINDS = {
    "csv": (".csv", ".tsv", ".txt"),
    "parquet": (".parquet", ".pq"),
    "json": (".jsonl", ".ndjson", ".json"),
    "xlsx": (".xlsx",),
}
"""Kinds of files, by the endings of their names; each may be followed by ``.gz``."""

SAMPLE_ROWS = 1000
"""Rows of a file from which the type of a column of numbers or dates is inferred. Values of another
type further down are refused."""

EXACT = 2**53
"""Up to here floating-point numbers hold every whole number."""

STDIN = "-"
"""In place of a path: standard input, as CSV."""

Paths = str | Path | Sequence[str | Path]
"""A path, a glob, or a list of them."""


def is_files(table: Any) -> bool:
    """Whether a log is given by paths."""
    if isinstance(table, (str, Path)):
        return True
    return isinstance(table, Sequence) and bool(table) and isinstance(table[0], (str, Path))


def parquet_files(table: Any) -> list[str]:
    """The Parquet files that a log consists of; none if it is anything else."""
    if not is_files(table):
        return []
    paths, kind = _paths_and_kind(table)
    return paths if kind == "parquet" else []


def open_files(given: Paths, columns: Columns) -> duckdb.DuckDBPyRelation:
    """The needed columns of a log in files."""
    paths, kind = _paths_and_kind(given)
    for path in paths:
        if path.lower().endswith(".gz"):
            _require_whole(path)
    with engine_errors(paths[0]):
        if kind == "csv":
            return _open_csv(paths, columns)
        if kind == "json":
            return _open_json(paths, columns)
        if kind == "xlsx":
            return _open_xlsx(paths, columns)
        return _open_parquet(paths, columns)


def open_every_column(given: Paths) -> duckdb.DuckDBPyRelation:
    """All columns of a log in files: those of CSV and JSON as text, the others as they are."""
    paths, kind = _paths_and_kind(given)
    for path in paths:
        if path.lower().endswith(".gz"):
            _require_whole(path)
    connection = connect()
    with engine_errors(paths[0]):
        if kind == "csv":
            header = _common_header(paths)
            options = {"paths": _exact(paths), "delimiter": header.delimiter}
            types = dict.fromkeys(header.names, "VARCHAR")
            return connection.sql(f"from {CSV_READER}", params={**options, "types": types})
        if kind == "json":
            return _json_as_text(connection, paths)
        if kind == "xlsx":
            return connection.from_arrow(_sheets_as_text(paths))
        query = "from read_parquet($paths, hive_partitioning=false, union_by_name=true)"
        return connection.sql(query, params={"paths": _exact(paths)})


# Paths.


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
    if pattern == STDIN:
        return [file_of_stdin()]
    if not pattern:
        raise FileError("the path is empty; name a file")
    try:
        is_folder = Path(pattern).is_dir()
        exists = Path(pattern).exists()
    except OSError as error:
        raise FileError(f"{pattern} cannot be read: {error.strerror}") from None
    if is_folder:
        raise FileError(
            f"{pattern} is a folder; name its files, as in {pattern.rstrip('/')}/*.parquet"
        )
    if exists:
        require_regular_file(pattern)
        return [pattern]
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207
    paths = sorted(path for path in found if not Path(path).is_dir())
    if not paths:
        raise FileError(f"no such file: {pattern}")
    for path in paths:
        require_regular_file(path)
    return paths


def kind_by_name(path: str) -> str | None:
    """The kind of file that the ending of a name says; None if it says none."""
    name = path.lower().removesuffix(".gz")
    for kind, endings in FILE_KINDS.items():
        if name.endswith(endings):
            return kind
    return None


def _kind_of_file(path: str) -> str:
    kind = kind_by_name(path)
    if kind is None:
        raise LogError(
            f"{path}: unknown kind of file; known are .csv, .tsv, .txt, .parquet, .pq, .jsonl, "
            ".ndjson, .json and .xlsx, and - for CSV from standard input"
        )
    return kind


@cache
def file_of_stdin() -> str:
    """A temporary file with what standard input has, since a log is read more than once."""
    folder = TemporaryDirectory(prefix="pastwise-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "stdin.csv"
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except (OSError, AttributeError) as error:
        raise FileError(f"standard input cannot be read: {error}") from None
    return str(path)


def _exact(paths: Sequence[str]) -> list[str]:
    """The paths for DuckDB, which would take them for globs."""
    return [glob.escape(path) for path in paths]


def _require_whole(path: str) -> None:
    """Refuse a damaged compressed file. DuckDB does not compare the checksum at its end."""
    try:
        with gzip.open(path) as file:
            while file.read(2**20):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise LogError(f"{path} is damaged: {error}. Get or compress it again") from None


# Moments in text.

DATE = r"\d{4,}-\d{1,2}-\d{1,2}"
CLOCK = r"[ T]\d{1,2}:\d{2}(:\d{2}(\.\d{0,6}0*)?)?"
FINE_CLOCK = r"[ T]\d{1,2}:\d{2}(:\d{2}(\.\d*)?)?"
OFFSET = r" ?(Z|z|UTC|[+-]\d{1,2}(:?\d{2}){0,2})"

MOMENTS = {
    "DATE": DATE,
    "TIMESTAMP": f"{DATE}({CLOCK})?",
    "TIMESTAMP_NS": f"{DATE}({FINE_CLOCK})?",
    "TIMESTAMPTZ": f"{DATE}{CLOCK}{OFFSET}",
    "TIMESTAMPTZ_NS": f"{DATE}{FINE_CLOCK}{OFFSET}",
}
"""SQL types of dates and moments, and the texts that each holds without loss. A moment without an
offset from UTC has another type than one with it, because it may mean any time zone."""


def moment_type(values: list[str]) -> str | None:
    """The narrowest type of moments that holds all of these texts; None if none does."""
    if not all(_parses(value, datetime.fromisoformat) for value in values):
        return None
    for kind, pattern in MOMENTS.items():
        if all(re.fullmatch(pattern, value.strip()) for value in values):
            return kind
    if any(re.search(f"({CLOCK}|{FINE_CLOCK}){OFFSET}$", value.strip()) for value in values):
        return "TIMESTAMPTZ"
    return "TIMESTAMP"


def _as_moment(name: str, kind: str, is_label: bool) -> str:
    """SQL for a column of text as moments; a text that the type does not hold is an error."""
    if kind == "DATE" and not is_label:
        kind = "TIMESTAMP"  # dates may be followed by moments
    column = identifier(name)
    problem = (
        f"the column {name!r} begins with values of type {kind}, which does not hold all others; "
        "write all of them in one form, with an offset from UTC or without: "
    )
    return (
        f"case when {column} is null then null "
        f"when regexp_full_match(trim({column}), {literal(MOMENTS[kind])}) "
        f"then cast({column} as {kind}) "
        f"else error({literal(problem)} || left({column}, 50)) end as {column}"
    )


def with_moments(relation: duckdb.DuckDBPyRelation, columns: Columns) -> duckdb.DuckDBPyRelation:
    """A relation whose columns of time and age are moments where they hold such texts."""
    kinds = dict(zip(relation.columns, relation.types, strict=True))
    names = dict.fromkeys(name for name in (columns.time, columns.age) if name)
    texts = [name for name in names if str(kinds.get(name)) == "VARCHAR"]
    replaced = []
    for name, values in (_first_values(relation, texts) if texts else {}).items():
        kind = moment_type(values) if values else None
        if kind is not None:
            replaced.append(_as_moment(name, kind, is_label=False))
    return relation.project(f"* replace ({', '.join(replaced)})") if replaced else relation


def _first_values(relation: duckdb.DuckDBPyRelation, names: Sequence[str]) -> dict[str, list[str]]:
    """The values of some columns in the first rows, without missing ones."""
    selected = ", ".join(identifier(name) for name in names)
    rows = relation.limit(SAMPLE_ROWS).project(selected).fetchall()
    values = {}
    for place, name in enumerate(names):
        values[name] = [row[place] for row in rows if row[place] is not None]
    return values


# CSV files.


class Header(NamedTuple):
    """The first line of a CSV file."""

    delimiter: str
    names: list[str]


CSV_READER = (
    "read_csv($paths, columns=$types, header=true, auto_detect=false, delim=$delimiter, "
    "quote='\"', escape='\"', nullstr='', hive_partitioning=false)"
)
"""How CSV files are read: the header gives their dialect, so no row is ever skipped."""


def _common_header(paths: list[str]) -> Header:
    """The header that all files share."""
    header = _read_header(paths[0])
    for path in paths[1:]:
        if _read_header(path) != header:
            raise LogError(f"{path}: its header differs from that of {paths[0]}")
    return header


def _open_csv(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """CSV files that share one header. The header gives the dialect, so no row is ever skipped."""
    header = _common_header(paths)
    require_columns(columns, header.names)
    needed = list(dict.fromkeys(columns.all))

    # First every column is text.
    connection = connect()
    types = dict.fromkeys(header.names, "VARCHAR")
    options = {"paths": _exact(paths), "delimiter": header.delimiter}
    selected = {name: identifier(name) for name in needed}
    all_needed = f"select {', '.join(selected.values())} from {CSV_READER}"
    text = connection.sql(all_needed, params={**options, "types": types})

    # Then the columns that are not labels get the type that their first values look like.
    typed = [name for name in needed if name not in columns.text]
    if typed:
        first_file = {**options, "paths": _exact(paths[:1]), "types": types}
        sample = _first_values(connection.sql(all_needed, params=first_file), typed)
        for name, values in sample.items():
            _refuse_words_for_missing(name, values)
            is_label = name in columns.labels
            if all(_parses(value, float) for value in values):
                types[name], selected[name] = _number(text, name, values, columns)
            elif _have_decimal_commas(name, values):
                selected[name] = _with_decimal_point(name)
            elif (kind := moment_type(values)) is not None:
                selected[name] = _as_moment(name, kind, is_label)
    query = f"select {', '.join(selected.values())} from {CSV_READER}"
    return connection.sql(query, params={**options, "types": types})


MISSING_WORDS = ("NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaT", "\\N", "-", ".", "?")
"""What programs write in CSV files for a missing value."""


def _refuse_words_for_missing(name: str, values: list[str]) -> None:
    """Refuse numbers or moments with a word for a missing value among them.

    They would be read as text, and a feature's numbers then as so many categories.
    """
    words = [value for value in values if value.strip() in MISSING_WORDS]
    others = [value for value in values if value.strip() not in MISSING_WORDS]
    if not words or not others:
        return
    if all(_parses(value, float) for value in others) or moment_type(others) is not None:
        raise LogError(
            f"the column {name!r} holds {shown(words[0])} among values such as "
            f"{shown(others[0])}; leave the fields of missing values empty"
        )


def _number(
    text: duckdb.DuckDBPyRelation, name: str, values: list[str], columns: Columns
) -> tuple[str, str]:
    """SQL type and SQL of a column of numbers; whole ones are exact where that matters."""
    column = identifier(name)
    is_whole = all(_parses(value, int) for value in values)
    is_large = is_whole and any(abs(int(value)) > EXACT for value in values)
    must_be_exact = name in columns.labels or (name == columns.time and is_large)
    if is_whole and must_be_exact and _holds_whole_numbers(text, name):
        return "BIGINT", column
    if not is_whole or name != columns.time:
        return "DOUBLE", column
    problem = (
        f"the column {name!r} holds numbers above 2^53 after fractions or smaller numbers; "
        "floating point would round them: write it to Parquet as whole numbers"
    )
    checked = f"case when abs({column}) > {EXACT} then error({literal(problem)}) else {column} end"
    return "DOUBLE", f"{checked} as {column}"


DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+(,\d+)?(e[+-]?\d+)?\s*", re.IGNORECASE)
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")


def _have_decimal_commas(name: str, values: list[str]) -> bool:
    """Whether texts are numbers with decimal commas; those that may be thousands are refused."""
    with_comma = [value for value in values if "," in value]
    if not with_comma:
        return False
    if all(THOUSANDS.fullmatch(value) for value in with_comma):
        raise LogError(
            f"the column {name!r} holds {shown(with_comma[0])}: is the comma a decimal comma, or "
            "does it separate thousands? Write decimal points, and no separators"
        )
    return all(DECIMAL_COMMA.fullmatch(value) for value in values)


def _with_decimal_point(name: str) -> str:
    """SQL for a column of text with decimal commas as numbers."""
    column = identifier(name)
    return f"cast(replace({column}, ',', '.') as double) as {column}"


def _holds_whole_numbers(relation: duckdb.DuckDBPyRelation, name: str) -> bool:
    """Whether every text of a column is a whole number, or missing."""
    column = identifier(name)
    condition = f"regexp_full_match(trim({column}), '[+-]?[0-9]+')"
    found = relation.aggregate(f"bool_and({column} is null or {condition})").fetchall()
    return bool(found[0][0])


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
        except (UnicodeDecodeError, OSError, EOFError, zlib.error) as error:
            raise LogError(f"{path} is not a CSV file in UTF-8: {error}") from None
    header = _parse_header(path, line)
    name, number = Counter(header.names).most_common(1)[0]
    if number > 1:
        raise LogError(f"{path}: the column {name!r} occurs twice")
    return header


def _parse_header(path: str, line: str) -> Header:
    """The names of a header by the delimiter that finds most of them.

    Spreadsheets and R leave columns without a name; they are called by their place.
    """
    headers = []
    problem = ""
    for mark in ",;\t|":
        try:
            headers.append(Header(mark, next(csv.reader([line], delimiter=mark))))
        except csv.Error as error:
            problem = str(error)  # a very long header is one field to a delimiter it does not have
    if not headers:
        raise LogError(f"{path} is not a CSV file in UTF-8: {problem}")
    delimiter, names = max(headers, key=lambda candidate: len(candidate.names))
    return Header(delimiter, [name or f"column {place}" for place, name in enumerate(names, 1)])


def _parses(value: str, parse: Callable[[str], object]) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


# JSON lines.


def _open_json(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """JSON lines. The types are those of all values, because a later one may be a fraction."""
    path = paths[0]
    if Path(path).stat().st_size == 0:
        raise LogError(f"{path} is empty")
    connection = connect()
    files = {"paths": _exact(paths)}

    # The types of all values of the needed columns.
    needed = list(dict.fromkeys(columns.all))
    query = "from read_json($paths, columns=$types, hive_partitioning=false)"
    unparsed = connection.sql(query, params={**files, "types": dict.fromkeys(needed, "JSON")})
    each = [f"list(distinct {_json_kind(name)})" for name in needed]
    found = unparsed.aggregate(", ".join(each)).fetchall()[0]
    kinds = {}
    for name, names_of_types in zip(needed, found, strict=True):
        kinds[name] = set(names_of_types or ()) - {None, "NULL"}
    if not all(kinds.values()):
        keys = "select distinct unnest(json_keys(json)) from read_json_objects($paths)"
        require_columns(columns, [row[0] for row in connection.sql(keys, params=files).fetchall()])
    types = {name: _json_type(path, name, kinds[name], columns) for name in needed}

    # Texts of columns that are not labels may be moments.
    relation = connection.sql(query, params={**files, "types": types})
    texts = [name for name in needed if types[name] == "VARCHAR" and name not in columns.text]
    selected = {name: identifier(name) for name in needed}
    for name, values in (_first_values(relation, texts) if texts else {}).items():
        kind = moment_type(values) if values else None
        if kind is not None:
            selected[name] = _as_moment(name, kind, name in columns.labels)
    return relation.project(", ".join(selected.values()))


def _json_as_text(
    connection: duckdb.DuckDBPyConnection, paths: list[str]
) -> duckdb.DuckDBPyRelation:
    """Every column of JSON lines, in the order in which they first occur."""
    files = {"paths": _exact(paths)}
    keys = "select unnest(json_keys(json)) as key from read_json_objects($paths)"
    names = connection.sql(
        f"select key from (select key, row_number() over () as place from ({keys})) "
        "group by key order by min(place)",
        params=files,
    ).fetchall()
    if not names:
        raise LogError(f"{paths[0]} is empty")
    types = {name: "JSON" for (name,) in names}
    columns = [f"{identifier(name)} ->> '$' as {identifier(name)}" for name in types]
    query = f"select {', '.join(columns)} from read_json($paths, columns=$types)"
    return connection.sql(query, params={**files, "types": types})


def _json_kind(name: str) -> str:
    """SQL for the type of each value of a column of JSON, and whether a whole number is large.

    DuckDB's own types of JSON take a whole number of 2^64 for a fraction.
    """
    kind = f"json_type({identifier(name)})"
    text = f"cast({identifier(name)} as varchar)"
    number = f"try_cast({text} as bigint)"
    is_whole = (
        f"{kind} in ('BIGINT', 'UBIGINT') "
        f"or ({kind} = 'DOUBLE' and regexp_full_match({text}, '-?\\d+'))"
    )
    return (
        f"case when {is_whole} then "
        f"case when {number} between -{EXACT} and {EXACT} then 'BIGINT' "
        f"when {number} is not null then 'LARGE' "
        f"when {text} is not null then 'HUGE' end "
        f"else {kind} end"
    )


def _json_type(path: str, name: str, kinds: set[str], columns: Columns) -> str:
    """The SQL type of values of these types of JSON."""
    if kinds & {"OBJECT", "ARRAY"}:
        raise LogError(
            f"{path}: the column {name!r} holds {' and '.join(sorted(kinds)).lower()} values; "
            "a label is text, a number or a boolean"
        )
    if kinds <= {"VARCHAR"}:
        return "VARCHAR"
    if kinds == {"BOOLEAN"}:
        return "BOOLEAN"
    if kinds <= {"BIGINT", "LARGE"}:
        return "BIGINT"
    if kinds <= {"BIGINT", "LARGE", "HUGE"} and name == columns.episode:
        return "VARCHAR"
    if kinds <= {"BIGINT", "LARGE", "HUGE", "DOUBLE"}:
        is_rounded = bool(kinds & {"LARGE", "HUGE"})
        if is_rounded and name in (*columns.compared, columns.time):
            raise LogError(
                f"{path}: the column {name!r} holds whole numbers beyond 2^63, or beyond 2^53 "
                "next to fractions, which would be rounded; write labels and episodes as text, "
                "and times as dates or smaller numbers"
            )
        return "DOUBLE"
    raise LogError(f"{path}: the column {name!r} holds values of different types")


# Columns of Python values.


@contextmanager
def arrow_errors(column: str) -> Iterator[None]:
    """Turn an error of Arrow about the values of a column into a `LogError` that names it."""
    try:
        yield
    except OverflowError:
        raise LogError(f"{column} holds whole numbers beyond 2^63; write them as text") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = "; ".join(str(each) for each in error.args)
        raise LogError(f"{column} holds values of different types: {reason}") from None


# Excel.


def _open_xlsx(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """The first sheet of Excel files, one below the other. The first row names the columns."""
    values: dict[str, list[Any]] = {name: [] for name in columns.all}
    for path in paths:
        names, rows = _read_sheet(path)
        require_columns(columns, names)
        places = {name: names.index(name) for name in values}
        for row in rows:
            for name, place in places.items():
                values[name].append(row[place] if place < len(row) else None)
    arrays = {}
    for name in values:
        with arrow_errors(f"{paths[0]}: the column {name!r}"):
            arrays[name] = pa.array(values[name])
    return with_moments(connect().from_arrow(pa.table(arrays)), columns)


def _sheets_as_text(paths: list[str]) -> pa.Table:
    """Every column of Excel files, one below the other."""
    values: dict[str, list[str | None]] = {}
    for path in paths:
        names, rows = _read_sheet(path)
        known = {name: place for place, name in enumerate(names) if name}
        if values and list(known) != list(values):
            raise LogError(f"{path}: its header differs from that of {paths[0]}")
        for name, place in known.items():
            texts = values.setdefault(name, [])
            for row in rows:
                value = row[place] if place < len(row) else None
                texts.append(None if value is None else str(value))
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in values.items()})


def _read_sheet(path: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names of the columns of the first sheet, and its rows without blank ones."""
    try:
        import openpyxl
    except ImportError:
        raise MissingDependencyError(
            f"{path}: Excel files need openpyxl: pip install 'pastwise[excel]', or save it as CSV"
        ) from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise LogError(f"{path} is not an Excel file: {error}") from None
    try:
        rows = list(book.worksheets[0].iter_rows(values_only=True))
    finally:
        book.close()
    if not rows:
        raise LogError(f"{path}: the first sheet is empty; its first row names the columns")
    names = ["" if name is None else str(name) for name in rows[0]]
    known = [name for name in names if name]
    name, number = Counter(known).most_common(1)[0] if known else ("", 0)
    if number > 1:
        raise LogError(f"{path}: the column {name!r} occurs twice")
    return names, [row for row in rows[1:] if any(value is not None for value in row)]


# Parquet files.


class Group(NamedTuple):
    """Parquet files one after the other whose columns have the same types."""

    types: tuple[pa.DataType, ...]
    paths: list[str]


def _open_parquet(paths: list[str], columns: Columns) -> duckdb.DuckDBPyRelation:
    """Parquet files. Types that differ between files are widened where nothing is lost by it."""
    connection = connect()
    needed = list(dict.fromkeys(columns.all))
    groups = list(_groups(paths, needed))
    if len(groups) == 1:
        return _select_parquet(connection, paths, [identifier(name) for name in needed], columns)

    # One type for each column.
    wide = []
    for place, name in enumerate(needed):
        is_moment = name in (columns.time, columns.age)
        wide.append(_common_type(name, [group.types[place] for group in groups], is_moment))

    # Each group of files in these types, one after the other.
    relations = []
    for place, group in enumerate(groups):
        selected = []
        for name, dtype, kind in zip(needed, group.types, wide, strict=True):
            selected.append(_widened(name, dtype, kind))
        # Relations that are united need parameters of different names.
        relations.append(
            _select_parquet(connection, group.paths, selected, columns, f"paths_{place}")
        )
    union = relations[0]
    for relation in relations[1:]:
        union = union.union(relation)
    return union


def _select_parquet(
    connection: duckdb.DuckDBPyConnection,
    paths: list[str],
    selected: list[str],
    columns: Columns,
    parameter: str = "paths",
) -> duckdb.DuckDBPyRelation:
    """Some columns of Parquet files. The others are not even named, as there may be very many."""
    query = f"select {', '.join(selected)} from read_parquet(${parameter}, hive_partitioning=false)"
    needed = list(dict.fromkeys(columns.all))
    try:
        relation = connection.sql(query, params={parameter: _exact(paths)})
    except duckdb.BinderException:
        require_columns(columns, pq.read_schema(paths[0]).names)
        raise
    if relation.columns != needed:  # to DuckDB, names in upper and lower case are the same
        require_columns(columns, pq.read_schema(paths[0]).names)
    return relation


def _groups(paths: list[str], names: list[str]) -> Iterator[Group]:
    """The files in their order, neighbours of the same types together."""
    if len(paths) == 1:
        yield Group((), paths)
        return
    typed = [(_types_of(path, names), path) for path in paths]
    for types, members in groupby(typed, key=lambda member: member[0]):
        yield Group(types, [path for _, path in members])


def _types_of(path: str, names: list[str]) -> tuple[pa.DataType, ...]:
    """Types of the columns of a file; those that hold the same values are the same."""
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise LogError(f"{path}: cannot be read: {reason}") from None
    types = []
    for name in names:
        place = schema.get_field_index(name)
        if place < 0:
            raise LogError(f"{path}: it has no column {name!r}, or more than one")
        types.append(_plain_type(schema.field(place).type))
    return tuple(types)


def _plain_type(dtype: pa.DataType) -> pa.DataType:
    """A type without what does not change the values: dictionaries, large texts, time zones."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_timestamp(dtype) and dtype.tz is not None:
        return pa.timestamp(dtype.unit, "UTC")
    return dtype


def _common_type(name: str, types: list[pa.DataType], is_moment: bool) -> str | None:
    """The SQL type that holds the values of all types; None if there is only one type."""
    known = {dtype for dtype in types if not pa.types.is_null(dtype)}
    if len(known) < 2:
        return None
    is_number = all(pa.types.is_integer(dtype) or pa.types.is_floating(dtype) for dtype in known)
    if is_number and any(pa.types.is_floating(dtype) for dtype in known):
        return "DOUBLE"
    if is_number:
        return "HUGEINT" if pa.uint64() in known else "BIGINT"

    # Moments of several units; dates only where they mean moments.
    moments = {dtype for dtype in known if pa.types.is_timestamp(dtype)}
    dates = {dtype for dtype in known if pa.types.is_date(dtype)}
    zones = {dtype.tz for dtype in moments}
    if moments and moments | dates == known and len(zones) == 1:
        is_zoned = zones == {"UTC"}
        if not dates or (is_moment and not is_zoned):
            fine = "_NS" if any(dtype.unit == "ns" for dtype in moments) else ""
            return ("TIMESTAMPTZ" if is_zoned else "TIMESTAMP") + fine
    shown = " and ".join(sorted(str(dtype) for dtype in known))
    raise LogError(
        f"the column {name!r} has different types in different files: {shown}; "
        "write all files with one type"
    )


def _widened(name: str, dtype: pa.DataType, kind: str | None) -> str:
    """SQL for a column in a wider type; a value that this would change is an error."""
    column = identifier(name)
    if kind is None:
        return column
    cast = f"cast({column} as {kind})"
    if kind == "DOUBLE" and pa.types.is_integer(dtype):
        problem = (
            f"the column {name!r} holds fractions in one file and whole numbers above 2^53 in "
            "another; write all files with one type"
        )
        is_rounded = f"{column} not between -{EXACT} and {EXACT}"
        cast = f"case when {is_rounded} then error({literal(problem)}) else {cast} end"
    return f"{cast} as {column}"
