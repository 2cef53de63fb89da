"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from pastwise.errors import FileError

if TYPE_CHECKING:
    from rich.table import Table


class Result(Protocol):
    """A typed result."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ...


def print_json(result: Result) -> None:
    """Print a result as one line of JSON."""
    print_text(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False))


def print_text(text: str) -> None:
    """Print text to stdout."""
    with _stdout_errors():
        click.echo(text)


def print_table(table: Table) -> None:
    """Print a table of rich to stdout."""
    from rich.console import Console

    with _stdout_errors():
        Console(highlight=False).print(table)


def print_note(text: str) -> None:
    """Print a line to stderr."""
    click.echo(text, err=True)


def print_warning(text: str) -> None:
    """Print a warning to stderr."""
    print_note(f"warning: {text}")


@contextmanager
def _stdout_errors() -> Iterator[None]:
    """Turn errors of stdout, such as a full disk, into a `FileError`.

    A closed pipe is left to click, which ends the program quietly.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(f"the output cannot be written: {reason}") from None
