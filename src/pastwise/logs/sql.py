"""SQL text and DuckDB: connections, names and texts in queries, and errors of one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from pastwise.errors import LogError


def connect() -> duckdb.DuckDBPyConnection:
    """A connection of our own. Without a progress bar, which would go to stdout."""
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false; set TimeZone = 'UTC'")
    return connection


def identifier(name: str) -> str:
    """The name of a column in SQL. Names come from files and must go through here."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def literal(text: str) -> str:
    """A text in SQL."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


@contextmanager
def engine_errors(source: str) -> Iterator[None]:
    """Turn an error of DuckDB into a `LogError` of one line that names the source."""
    try:
        yield
    except duckdb.Error as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        noise = ("*", "Possible", "LINE", "^", "Try setting")
        useful = [line for line in lines if not line.startswith(noise)]
        raise LogError(f"{source}: cannot be read: {'; '.join(useful[:4])}") from None
