"""Descriptions of uploaded tables, before anybody has said what their columns mean."""

from __future__ import annotations

from pathlib import Path

from pastwise.errors import LogError
from pastwise.logs.sql import connect, engine_errors

READERS = {".parquet": "read_parquet", ".csv": "read_csv", ".jsonl": "read_json"}
"""Functions of DuckDB, by the endings that uploads get."""


def described(path: str, *, most: int = 1000) -> dict[str, object]:
    """The columns of a table: types, smallest and largest values, distinct and missing ones.

    Parameters
    ----------
    most : int
        Columns that are looked at; the statistics of each take memory, and nobody reads more.
    """
    reader = READERS.get(Path(path).suffix)
    if reader is None:
        raise LogError(f"{path} is no log: CSV, JSON lines and Parquet are")
    if Path(path).suffix == ".csv":
        _require_few_columns(path, most)
    with engine_errors("the log"):
        connection = connect()
        names = connection.sql(f"from {reader}($path)", params={"path": path}).columns
        if len(names) > most:
            raise _too_many_columns(len(names), most)
        summary = connection.execute(f"summarize from {reader}($path)", {"path": path}).fetchall()
    columns = []
    rows = 0
    for name, kind, smallest, largest, distinct, *_, count, missing in summary:
        rows = count
        columns.append(
            {
                "name": name,
                "type": kind,
                "min": _shown(smallest),
                "max": _shown(largest),
                "distinct": distinct,
                "missing": None if missing is None else float(missing) / 100,
            }
        )
    return {"rows": rows, "columns": columns}


def _require_few_columns(path: str, most: int, *, longest: int = 2**20) -> None:
    """Refuse a CSV file whose first line is too long to be a header of so few columns.

    Parameters
    ----------
    longest : int
        Bytes of the line that are looked at; a thousand columns with names of a thousand
        characters fit.
    """
    with Path(path).open("rb") as file:
        line = file.readline(longest)
    number = 1 + max(line.count(mark) for mark in (b",", b";", b"\t", b"|"))
    if number > most or len(line) == longest:
        raise _too_many_columns(number, most)


def _too_many_columns(number: int, most: int) -> LogError:
    return LogError(
        f"the log has {number:,} columns or more, and at most {most:,} are described; "
        "send the columns that are needed"
    )


def _shown(value: object, *, longest: int = 200) -> str | None:
    """A value of the table as text of bounded length."""
    return None if value is None else str(value)[:longest]
