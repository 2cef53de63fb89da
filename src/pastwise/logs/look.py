"""A first look at a table: its columns, what they probably hold, and its rows.

`look_at` reads a sample and guesses the role of each column (see `roles`). `rows_of` shows rows as
text and, once the columns are named, the next state of each as `read_log` would find it.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from pastwise._display import Table
from pastwise._numerics.arrays import FloatArray
from pastwise.errors import shortened
from pastwise.logs.roles import RoleGuess, guess_roles
from pastwise.logs.row_pages import Break, RowsLook, rows_of
from pastwise.logs.samples import sample_of
from pastwise.logs.values import Kind, Values, values_of

__all__ = [
    "Break",
    "ColumnLook",
    "Histogram",
    "RoleGuess",
    "RowsLook",
    "TableLook",
    "look_at",
    "rows_of",
]

LONGEST_VALUE = 200
"""Characters that a look shows of one value: about two lines."""


@dataclass(frozen=True)
class Histogram:
    """Numbers of values between neighbouring edges.

    Attributes
    ----------
    edges : tuple of float
        One more than there are counts. Each bin includes its lower edge, the last one both.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class ColumnLook:
    """What is in a column, by the rows that were looked at.

    Attributes
    ----------
    type : "text", "number", "time" or "boolean"
    distinct, missing : int
        Number of different values, and of rows without one.
    top : tuple of pairs
        The most frequent values, as text, with the number of rows that have them.
    histogram : Histogram, optional
        For numbers.
    min, max : number, or text of a date, optional
        For numbers and dates.
    """

    name: str
    type: Kind
    distinct: int
    missing: int
    top: tuple[tuple[str, int], ...]
    histogram: Histogram | None
    min: float | str | None
    max: float | str | None


@dataclass(frozen=True)
class TableLook:
    """The columns of a table, and what they probably hold.

    Attributes
    ----------
    rows : int
        Rows of the table.
    sampled : int
        Rows that were looked at; the numbers of the columns are theirs.
    sample : str
        Which rows these are, in words.
    """

    rows: int
    columns: tuple[ColumnLook, ...]
    guess: RoleGuess
    sampled: int
    sample: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)

    def options(self) -> list[str]:
        """Options of ``pastwise learn`` for the guessed roles."""
        guess = self.guess
        options = []
        for name in guess.state:
            options += ["--state", name]
        for name in guess.action:
            options += ["--action", name]
        for name in guess.next_state:
            options += ["--next-state", name]
        others = {"--episode": guess.episode, "--time": guess.time, "--outcome": guess.outcome}
        for option, named in others.items():
            if named is not None:
                options += [option, named]
        for name in guess.binned:
            options += ["--bins", f"{name}=auto"]
        return options

    def table(self) -> Table:
        """A line for each column."""
        lines = []
        roles = self.guess.roles()
        for column in self.columns:
            examples = ", ".join(shortened(value, 20) for value, _ in column.top[:3])
            line = (
                column.name,
                column.type,
                roles.get(column.name, ""),
                f"{column.distinct:,}",
                f"{column.missing:,}",
                examples,
            )
            lines.append(line)
        columns = ("column", "kind", "role", "different", "missing", "most frequent")
        return Table(columns, tuple(lines), labels=(0, 1, 2, 5))

    @property
    def sentence(self) -> str:
        """How large the table is, and what was looked at."""
        return f"{self.rows:,} rows, {len(self.columns):,} columns; looked at {self.sample}"

    def advice(self, log: str) -> str:
        """What was guessed and why, and the command to go on with."""
        lines = [f"Guess, with a confidence of {self.guess.confidence:.2f}: {self.guess.why}."]
        if self.guess.is_complete:
            command = shlex.join(["pastwise", "learn", log, *self.options()])
            lines.append(f"To learn from it, add a goal: {command} --prefer STATE")
        else:
            lines.append("Name the other columns yourself; see pastwise learn --help.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.table()}\n{self.advice('LOG')}"


def look_at(
    table: Any, *, sample: int = 100_000, num_top: int = 10, num_bins: int = 20
) -> TableLook:
    """Look at the columns of a table, and guess which hold what.

    Parameters
    ----------
    table
        Anything that `count_transitions` reads.
    sample : int
        Rows that are looked at, at most. The default is read in well under a second from a
        Parquet file of any size, and shows values that one record in ten thousand has.
    num_top : int
        How many of the most frequent values to list: a menu of them.
    num_bins : int
        Bins of a histogram; twenty fit next to the name of a column.

    Examples
    --------
    >>> log = {"day": [1, 1, 2, 2], "hour": [8, 9, 8, 9], "room": ["cold", "mild"] * 2,
    ...        "did": ["heat", "wait", "heat", "heat"]}
    >>> look = look_at(log)
    >>> look.guess.episode, look.guess.time, look.guess.state, look.guess.action
    ('day', 'hour', ('room',), ('did',))
    """
    sampled = sample_of(table, sample)
    columns = []
    for name in sampled.table.column_names:
        columns.append(values_of(name, sampled.table.column(name)))
    looks = tuple(_column_look(values, num_top, num_bins) for values in columns)
    with np.errstate(over="ignore", invalid="ignore"):  # steps between infinite or huge numbers
        guess = guess_roles(columns, sampled.blocks)
    return TableLook(
        rows=sampled.rows,
        columns=looks,
        guess=guess,
        sampled=sampled.table.num_rows,
        sample=sampled.sentence,
    )


def _column_look(values: Values, num_top: int, num_bins: int) -> ColumnLook:
    """What is in one column."""
    # The most frequent values; the first of those that are equally frequent.
    counts = np.bincount(values.codes[~values.is_missing], minlength=values.distinct)
    order = np.argsort(-counts, kind="stable")[:num_top]
    top = []
    for place in order.tolist():
        top.append((shortened(values.labels[place], LONGEST_VALUE), int(counts[place])))

    lowest: float | str | None = None
    highest: float | str | None = None
    histogram = None
    known = np.empty(0)
    if values.numbers is not None:
        known = values.numbers[np.isfinite(values.numbers)]
    if values.kind == "number" and len(known):
        lowest = _short(known.min())
        highest = _short(known.max())
        histogram = _histogram(known, values.is_whole, num_bins)
    elif values.kind == "time" and len(known):
        lowest = _date_text(known.min())
        highest = _date_text(known.max())
    return ColumnLook(
        name=values.name,
        type=values.kind,
        distinct=values.distinct,
        missing=int(values.is_missing.sum()),
        top=tuple(top),
        histogram=histogram,
        min=lowest,
        max=highest,
    )


def _histogram(known: FloatArray, is_whole: bool, num_bins: int) -> Histogram | None:
    """Bins of equal width; one for each of a few whole numbers."""
    lowest = float(known.min())
    highest = float(known.max())
    if not np.isfinite(highest - lowest):
        return None
    if is_whole and highest - lowest < num_bins:
        edges = np.arange(lowest - 0.5, highest + 1)
    else:
        edges = np.linspace(lowest, highest, num_bins + 1)
    if len(np.unique(edges)) < len(edges):
        edges = np.array([lowest, np.nextafter(highest, np.inf)])
    counts, _ = np.histogram(known, edges)
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))


def _short(number: float) -> float:
    """A number, whole where it is."""
    return int(number) if number % 1 == 0 and abs(number) < 2**53 else float(number)


def _date_text(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    text = moment.isoformat()
    return text.removesuffix("T00:00:00")
