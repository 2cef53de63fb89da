"""Results for a reader: tables of text and HTML, and data frames of the user's library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from itertools import zip_longest
from textwrap import wrap
from typing import Any
from unicodedata import category

from pastwise.errors import shortened

MAX_ROWS = 20
"""Rows that a table shows unless more are requested: a screen of them."""

MAX_WIDTH = 40
"""Width of a column of plain text; two such columns fit into a line. Longer labels take several."""

CELL = "max-width:30em;overflow-wrap:break-word"
"""Style of a label in an HTML table: it takes several lines, also where it is one long word."""

MAX_LABEL = 6 * MAX_WIDTH
"""Characters of a label that a table of plain text shows."""

NOTHING = "–"
"""What a cell shows that has no value."""

BIDIRECTIONAL = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Characters that change the direction of text, so that it reads other than it is."""

HIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories of control characters, surrogates, and separators of lines and paragraphs."""


@dataclass(frozen=True)
class Table:
    """A small table for a reader, as plain text or HTML; `report.terminal` shows it in colour.

    Attributes
    ----------
    columns : tuple of str
    rows : tuple of tuples of str
        A cell for each column.
    labels : tuple of int
        The columns that hold labels, which are text; the others hold numbers.
    caption : str
        What the table shows; may be empty.
    note : str
        What it leaves out; may be empty.
    dimmed : tuple of bool
        Rows that rest on little; empty if none does.
    shades : column -> [rows]
        Probabilities by which the cells of a column are shaded.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: tuple[int, ...] = (0,)
    caption: str = ""
    note: str = ""
    dimmed: tuple[bool, ...] = ()
    shades: Mapping[int, Sequence[float]] = field(default_factory=dict)

    def is_dimmed(self, row: int) -> bool:
        """Whether a row rests on little."""
        return bool(self.dimmed) and self.dimmed[row]

    def __str__(self) -> str:
        """The table as plain text."""
        lines = [self.caption] if self.caption else []

        # The lines of each cell, and the width of each column.
        cells = [[_wrapped(cell) for cell in row] for row in (self.columns, *self.rows)]
        widths = []
        for i in range(len(self.columns)):
            widths.append(max(len(line) for row in cells for line in row[i]))

        # Labels to the left, numbers to the right.
        for row in cells:
            for parts in zip_longest(*row, fillvalue=""):
                aligned = []
                for i, (part, width) in enumerate(zip(parts, widths, strict=True)):
                    aligned.append(part.ljust(width) if i in self.labels else part.rjust(width))
                lines.append("  ".join(aligned).rstrip())
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    def to_html(self) -> str:
        """The table as a small piece of HTML without scripts, which suits light and dark pages."""
        body = []
        for number, row in enumerate(self.rows):
            opacity = ' style="opacity:0.5"' if self.is_dimmed(number) else ""
            cells = "".join(self._html_cell(number, i, cell) for i, cell in enumerate(row))
            body.append(f"<tr{opacity}>{cells}</tr>")
        names = []
        for i, name in enumerate(self.columns):
            names.append(f'<th style="text-align:{self._side(i)}">{escape(name)}</th>')
        head = f"<thead><tr>{''.join(names)}</tr></thead>"
        table = f"<table>{head}<tbody>{''.join(body)}</tbody></table>"
        above = paragraph(self.caption) if self.caption else ""
        below = paragraph(self.note) if self.note else ""
        return f"{above}{table}{below}"

    def _side(self, column: int) -> str:
        return "left" if column in self.labels else "right"

    def _html_cell(self, row: int, column: int, text: str) -> str:
        """A cell; a shaded one is blue, with white text where the shade is dark."""
        style = f"text-align:{self._side(column)}"
        if column in self.labels:
            style += f";{CELL}"
        if column in self.shades:
            shade = self.shades[column][row]
            style += f";background:rgba(0,114,178,{shade:.3f})"
            if shade > 0.6:
                style += ";color:white"
        return f'<td style="{style}">{escape(shortened(text, 200))}</td>'


def more_of(total: int, shown: int, noun: str) -> str:
    """What a table leaves out, in words; empty if nothing.

    >>> more_of(700, 20, "state"), more_of(21, 20, "state"), more_of(5, 20, "state")
    ('… and 680 more states', '… and 1 more state', '')
    """
    left_out = total - shown
    if left_out <= 0:
        return ""
    return f"… and {left_out:,} more {noun if left_out == 1 else noun + 's'}"


def _wrapped(cell: str) -> list[str]:
    """The lines of a cell of plain text."""
    return wrap(cut(printable(cell)), MAX_WIDTH, break_on_hyphens=False) or [""]


def cut(text: str, length: int = MAX_LABEL) -> str:
    """Text without its middle if it is too long.

    >>> cut("lactate >= 2.3 and map < 65", 16)
    'lactate …ap < 65'
    """
    if len(text) <= length:
        return text
    half = length // 2
    return f"{text[:half]}…{text[len(text) - (length - half - 1) :]}"


def printable(text: str, keep: str = "") -> str:
    r"""Text that does nothing to a terminal but appear on it.

    Labels come from data, and data may hold escape sequences that clear the screen, rename the
    window, or make a terminal type. Control characters become visible escapes.

    Parameters
    ----------
    text : str
    keep : str
        Control characters to leave as they are, such as a new line.

    Examples
    --------
    >>> printable("cold\x1b[2J")
    'cold\\x1b[2J'
    >>> printable("naïve 冷")
    'naïve 冷'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character, keep) for character in text)


def _visible(character: str, keep: str) -> str:
    is_hidden = category(character) in HIDDEN or character in BIDIRECTIONAL
    if not is_hidden or character in keep:
        return character
    return character.encode("unicode_escape").decode("ascii")


def number_table(rows: Mapping[str, Mapping[str, float | str]], caption: str) -> str:
    """Named rows of numbers, and of words, as an HTML table under a sentence."""
    columns = list(next(iter(rows.values())))
    body = []
    for name, row in rows.items():
        cells = "".join(f"<td>{_cell(value)}</td>" for value in row.values())
        body.append(f"<tr><th>{escape(name)}</th>{cells}</tr>")
    table = f"<table>{_head(columns)}<tbody>{''.join(body)}</tbody></table>"
    return f"{paragraph(caption)}{table}"


def _cell(value: float | str) -> str:
    return escape(value) if isinstance(value, str) else f"{value:.4g}"


def paragraph(text: str) -> str:
    """Text as an HTML paragraph that is no wider than its page, whatever labels it has."""
    return f'<p style="overflow-wrap:anywhere">{escape(text)}</p>'


def details(summary: str, content: str) -> str:
    """A piece of HTML that is folded away."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def _head(columns: Iterable[str]) -> str:
    """The head of an HTML table whose first column has no name."""
    names = "".join(f"<th>{escape(name)}</th>" for name in columns)
    return f"<thead><tr><th></th>{names}</tr></thead>"


def decimals(values: Iterable[float]) -> int:
    """Decimals that show three significant digits of the largest value; at least three.

    >>> decimals([0.5, 120.0]), decimals([0.00012, -0.00034]), decimals([0.0])
    (3, 6, 3)
    """
    largest = max(abs(value) for value in values)
    if largest == 0:
        return 3
    exponent = math.floor(math.log10(largest))
    return max(3, 2 - exponent)


def to_frame(columns: Mapping[str, Any], backend: str | None) -> Any:
    """A data frame of the named columns.

    Parameters
    ----------
    columns : names with values of one length
    backend : str, optional
        The library whose data frame to make; by default the first that is installed of pandas,
        polars and pyarrow.
    """
    import narwhals as nw

    library: Any = backend
    if library is None:
        library = next(name for name in ("pandas", "polars", "pyarrow") if find_spec(name))
    return nw.from_dict(dict(columns), backend=library).to_native()
