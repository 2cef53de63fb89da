"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Protocol

import click

from pastwise._display import printable
from pastwise.errors import FileError
from pastwise.report.terminal import shortened

if TYPE_CHECKING:
    from rich.table import Table


MAX_WIDTH = 100_000
"""Characters of the longest line of a table: more columns than anybody scrolls through."""


class Result(Protocol):
    """A typed result."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        ...


def print_json(result: Result) -> None:
    """Print a result as one line of JSON."""
    content = result.to_dict()
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(content, allow_nan=False)
    print_styled(text)


def print_text(text: str) -> None:
    """Print text to stdout; control characters other than new lines become visible."""
    print_styled(printable(text, keep="\n"))


def print_styled(text: str) -> None:
    """Print text to stdout as it is, such as text with colours that holds no data."""
    with _stdout_errors():
        click.echo(text)


def print_table(table: Table, *, wide: bool = False) -> None:
    """Print a table of rich to stdout.

    Parameters
    ----------
    table : Table
    wide : bool
        Never break a line, however narrow the terminal is; for ``less -S`` and for files.
    """
    from rich.console import Console

    console = Console(highlight=False)
    if wide:
        table.min_width = None
        needed = console.measure(table, options=console.options.update(width=MAX_WIDTH)).maximum
        console = Console(highlight=False, width=max(console.width, needed))
    with _stdout_errors():
        console.print(table)


def print_note(text: str) -> None:
    """Print text to stderr; control characters other than new lines become visible."""
    click.echo(printable(text, keep="\n"), err=True)


def print_warning(text: str) -> None:
    """Print a warning to stderr, in one line."""
    print_note(f"warning: {one_line(text)}")


def one_line(text: str) -> str:
    """A message of bounded length, in one line."""
    return shortened(printable(" ".join(text.split("\n"))))


def escape_what_cannot_be_shown() -> None:
    """From now on, print escapes for characters that stdout or stderr has no code for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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
