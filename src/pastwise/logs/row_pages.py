"""Rows of a log as text, each with the next state that `read_log` finds for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypedDict

import narwhals.stable.v2 as nw
import pyarrow as pa

from pastwise.data.space import Label, key_of
from pastwise.errors import ParameterError, shortened
from pastwise.logs.columns import UNITS, Columns, as_columns
from pastwise.logs.decode import BAD_LABEL_CODES, STATUS_CODES, BadLabel, Part, parts_of, states_of
from pastwise.logs.encoded import encoded
from pastwise.logs.growth import with_partition
from pastwise.logs.query import Schema, Status, prepare, time_to_next
from pastwise.logs.samples import block_of
from pastwise.logs.sources import ROW, log_errors, narwhals_frame, open_table
from pastwise.logs.values import values_of

LONGEST_TEXT = 1000
"""Characters of one value that a page gets; more fill a screen."""

Break = TypedDict("Break", {"break": str, "by": float | str | None})
"""Why a record has no next state: the code of a finding, and how long a gap is."""


@dataclass(frozen=True)
class RowsLook:
    """Some rows of a log.

    Attributes
    ----------
    columns : tuple of str
        All columns of the table.
    rows : tuple of tuples
        Values as text, None where they are missing.
    then : tuple
        The key of the next state of each row; None for the last record of an episode, and a `Break`
        where it is not known. Empty without columns.
    of : int
        Rows of the whole log.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    then: tuple[str | Break | None, ...]
    of: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)


def rows_of(
    table: Any, columns: Columns | Mapping[str, Any] | None, offset: int = 0, limit: int = 100
) -> RowsLook:
    """Rows of a log in its order, each with its next state.

    Parameters
    ----------
    table
        Anything that `count_transitions` reads. Rows of engines without an order of their own
        are sorted by episode and time.
    columns : Columns, or a dict of what `Columns.of` takes, optional
        Without, rows have no next state.
    offset, limit : int
        How many rows to skip, and how many to return.
    """
    if offset < 0 or limit < 0:
        raise ParameterError(f"offset and limit cannot be negative, got {offset} and {limit}")
    if columns is not None:
        columns = as_columns(columns)
    with log_errors(table):
        block = block_of(table, offset, limit)
        if block is None:
            return _rows_of_engine(table, columns, offset, limit)
        page, rows = block
        then: tuple[str | Break | None, ...] = ()
        if columns is not None:
            then = _next_states(table, columns, offset, limit)
    return RowsLook(tuple(page.column_names), _texts(page), then, rows)


def _texts(page: pa.Table) -> tuple[tuple[str | None, ...], ...]:
    """The rows of a table as text."""
    columns = []
    for name in page.column_names:
        values = values_of(name, page.column(name))
        labels = [shortened(label, LONGEST_TEXT) for label in values.labels]
        columns.append([None if code < 0 else labels[code] for code in values.codes.tolist()])
    return tuple(zip(*columns, strict=True))


# Next states.


def _next_states(
    table: Any, columns: Columns, offset: int, limit: int
) -> tuple[str | Break | None, ...]:
    """The next states of rows of a source that has an order."""
    table, columns = encoded(table, columns)
    frame = open_table(table, columns, numbered=True)
    columns = with_partition(frame, columns)
    _, columns, _ = prepare(frame, columns)

    # A record is followed by one of its episode, so the others are not needed.
    is_on_page = (nw.col(ROW) > offset) & (nw.col(ROW) <= offset + limit)
    if not columns.is_chained:
        frame = frame.filter(is_on_page)
    elif columns.episode:
        of_page = frame.filter(is_on_page).select(columns.episode).unique()
        episodes = of_page.collect(backend="pyarrow").to_native().column(0).to_pylist()
        frame = frame.filter(nw.col(columns.episode).is_in(episodes) | is_on_page)

    schema = frame.collect_schema()
    prepared, columns, _ = prepare(frame, columns, raw=(ROW,))
    prepared = _with_gap(prepared, columns, schema)
    row = nw.col(f"raw {ROW}")
    prepared = prepared.filter((row > offset) & (row <= offset + limit)).sort(f"raw {ROW}")
    return _then(prepared.collect(backend="pyarrow").to_native(), columns)


def _rows_of_engine(table: Any, columns: Columns | None, offset: int, limit: int) -> RowsLook:
    """Rows of an engine without an order of its own: by episode and time, if these are known."""
    frame = narwhals_frame(table)
    assert isinstance(frame, nw.LazyFrame)
    names = frame.collect_schema().names()
    counted = frame.select(rows=nw.len()).collect(backend="pyarrow").to_native()
    rows = int(counted.column("rows").to_pylist()[0])
    if columns is None:
        page = frame.head(offset + limit).collect(backend="pyarrow").to_native().slice(offset)
        return RowsLook(tuple(names), _texts(page), (), rows)

    if columns.encoding is not None:
        raise ParameterError("rows of an engine have no next state with an encoder; collect them")
    frame = open_table(table, columns)
    columns = with_partition(frame, columns)
    schema = frame.collect_schema()
    prepared, columns, _ = prepare(frame, columns, raw=names)
    prepared = _with_gap(prepared, columns, schema)
    order = [name for name in ("episode", "instant") if name in prepared.collect_schema().names()]
    if order:
        prepared = prepared.sort(*order)
    first = prepared.head(offset + limit).collect(backend="pyarrow").to_native().slice(offset)
    page = first.select([f"raw {name}" for name in names]).rename_columns(names)
    return RowsLook(tuple(names), _texts(page), _then(first, columns), rows)


def _with_gap(prepared: nw.LazyFrame[Any], columns: Columns, schema: Schema) -> nw.LazyFrame[Any]:
    """The records with the time to the next one, where that decides whether it follows."""
    if columns.max_gap is None or columns.time is None:
        return prepared
    return prepared.with_columns(gap=time_to_next(schema[columns.time]))


def _then(records: pa.Table, columns: Columns) -> tuple[str | Break | None, ...]:
    """Next states, or why there is none, of records with all their parts."""
    if not records.num_rows:
        return ()
    state, next_state = states_of(records, columns)
    (action,) = parts_of(records, ("action",), columns.action, columns.bins)
    what_follows = "outcome" if columns.outcome else "next-state"
    parts = {"state": state, "action": action, what_follows: next_state}
    states = keys_of(state)
    following = keys_of(next_state)
    terminal = {key_of(label) for label in columns.terminal}
    status = records.column("status").to_pylist()
    gaps = records.column("gap").to_pylist() if "gap" in records.column_names else []
    in_seconds = isinstance(columns.max_gap, str)

    then: list[str | Break | None] = []
    for place, number in enumerate(status):
        if number == Status.LAST:
            then.append(None)
            continue
        code = STATUS_CODES.get(Status(number)) or _bad_label(parts, place)
        if code is None and states[place] in terminal:
            code = "after-terminal"
        if code is None:
            then.append(following[place])
        elif code == "gap":
            gap = gaps[place]
            then.append({"break": code, "by": span_text(gap) if in_seconds else _short(gap)})
        else:
            then.append({"break": code, "by": None})
    return tuple(then)


def _bad_label(parts: Mapping[str, Part], place: int) -> str | None:
    """The code of the first part of a record that has no label."""
    for name, part in parts.items():
        bad = int(part.bad[place])
        if bad < 0:
            return f"{BAD_LABEL_CODES[BadLabel(bad)]}-{name}"
    return None


def keys_of(part: Part) -> list[str]:
    """The keys of labels, one for each record; of bad ones, any."""
    keys = []
    for codes in part.codes.tolist():
        fields = [labels[code] for labels, code in zip(part.labels, codes, strict=True) if labels]
        label: Label = fields[0] if len(fields) == 1 else tuple(fields)
        keys.append(key_of(label))
    return keys


def span_text(seconds: float) -> str:
    """A span with a unit, in the largest one that has no long fraction.

    >>> span_text(97200.0), span_text(172800.0), span_text(90.0)
    ('27h', '2d', '1.5min')
    """
    for unit in ("d", "h", "min"):
        length = seconds / UNITS[unit]
        if length >= 1 and round(length * 10) == length * 10:
            return f"{length:g}{unit}"
    return f"{seconds:.10g}s"


def _short(number: float) -> float:
    return int(number) if number % 1 == 0 else number
