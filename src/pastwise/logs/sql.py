"""SQL text and DuckDB: connections, names and texts in queries, and errors of one line.

Where a log comes from somebody else, as in a service, read it within `locked_down`: every
connection that is opened there reads the named files and nothing else, in bounded memory.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import duckdb
from narwhals.exceptions import NarwhalsError

from pastwise.errors import LogError


@dataclass(frozen=True)
class EngineLimits:
    """What DuckDB may use.

    Attributes
    ----------
    files : paths
        The only files that it may read. Network, other files and extensions are out of reach.
    memory_mb : int
        Memory in MiB. A log is read in a stream; what needs memory is the table of distinct
        transitions, of which 512 MiB hold a few millions.
    threads : int
        One leaves the other cores to whoever answers requests.
    spill_to : path, optional
        Folder for what does not fit into memory; without, such a query fails.
    spill_mb : int
        Disk space in MiB that may be used there.
    """

    files: tuple[str | Path, ...]
    memory_mb: int = 512
    threads: int = 1
    spill_to: str | Path | None = None
    spill_mb: int = 2048

    def statements(self) -> list[str]:
        """SQL that sets the limits, and at last makes them final."""
        # Readers escape paths, because DuckDB takes them for globs.
        allowed: dict[str, None] = {}
        for path in self.files:
            for form in (str(path), str(Path(path).absolute())):
                allowed[form] = None
                allowed[glob.escape(form)] = None
        files = ", ".join(literal(form) for form in allowed)
        folder = "" if self.spill_to is None else str(self.spill_to)
        return [
            f"set memory_limit = '{self.memory_mb}MiB'",
            f"set threads = {self.threads}",
            f"set temp_directory = {literal(folder)}",
            f"set max_temp_directory_size = '{self.spill_mb}MiB'",
            "set autoinstall_known_extensions = false",
            "set autoload_known_extensions = false",
            "set allow_community_extensions = false",
            "set allow_persistent_secrets = false",
            f"set allowed_paths = [{files}]",
            "set enable_external_access = false",
            "set lock_configuration = true",
        ]


_limits: ContextVar[EngineLimits | None] = ContextVar("limits of DuckDB", default=None)


@contextmanager
def locked_down(limits: EngineLimits) -> Iterator[None]:
    """Within this context DuckDB keeps to the limits, in this thread or task."""
    token = _limits.set(limits)
    try:
        yield
    finally:
        _limits.reset(token)


def connect() -> duckdb.DuckDBPyConnection:
    """A connection of our own. Without a progress bar, which would go to stdout."""
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false; set TimeZone = 'UTC'")
    limits = _limits.get()
    if limits is not None:
        for statement in limits.statements():
            connection.execute(statement)
    return connection


def identifier(name: str) -> str:
    """The name of a column in SQL. Names come from files and must go through here."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def literal(text: str) -> str:
    """A text in SQL."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


OPTIONAL_ENGINES = ("ibis", "pyspark", "py4j")
"""Packages of engines that need not be installed: their errors are known by their module."""


@contextmanager
def engine_errors(source: str) -> Iterator[None]:
    """Turn an error of an engine into a `LogError` of one line that names the source."""
    try:
        yield
    except Exception as error:
        if not _is_of_engine(error):
            raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        noise = ("*", "Possible", "LINE", "^", "==", "Try setting", "This error occurred", "col(")
        useful = [line for line in lines if not line.startswith(noise)]
        raise LogError(f"{source}: cannot be read: {'; '.join(useful[:4])}") from None


def _is_of_engine(error: Exception) -> bool:
    """Whether an error is one of DuckDB, narwhals, Ibis or Spark."""
    package = type(error).__module__.partition(".")[0]
    return isinstance(error, (duckdb.Error, NarwhalsError)) or package in OPTIONAL_ENGINES
