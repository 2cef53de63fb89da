"""From a table to transition counts, by one query in the engine that holds it; only distinct transitions leave it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label
from pastwise.errors import LogWarning
from pastwise.logs.columns import Columns, Names, Span
from pastwise.logs.decode import Reading, decode, decode_tally
from pastwise.logs.parquet import is_plain, tally
from pastwise.logs.query import grouped, prepare
from pastwise.logs.sources import open_table, parquet_files, reading

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa


def count_transitions(
    table: Any,
    state: Names,
    action: Names,
    next_state: Names | None = None,
    *,
    episode: str | None = None,
    time: str | None = None,
    max_gap: Span | None = None,
    terminal: Label | Sequence[Label] = (),
    count: str | None = None,
    weight: str | None = None,
    task: str | None = None,
    age: str | None = None,
    half_life: Span | None = None,
    as_of: float | None = None,
    bins: Mapping[str, Sequence[float] | int] | None = None,
    text_labels: bool = True,
) -> TransitionCounts:
    """Count the transitions of a log, wherever it is.

    Parameters
    ----------
    table
        A path to CSV, Parquet or JSON lines, a glob or a list of them; a table of pandas, polars (eager or lazy),
        pyarrow, DuckDB, Ibis or PySpark; or a mapping of columns.
    state, action, next_state, episode, time, ...
        The columns; see `Columns`.
    as_of : float, optional
        With ``age``: the date that weights are as of, in the column's unit or, for dates, seconds since 1970; the
        latest of the log by default.

    Records that are left out, because a value is missing or out of range, raise a `LogWarning` that counts them.

    Examples
    --------
    >>> log = {"room": ["cold", "mild", "cold"], "did": ["heat", "wait", "heat"], "then": ["mild", "mild", "cold"]}
    >>> counts = count_transitions(log, state="room", action="did", next_state="then")
    >>> counts.states.labels, counts.actions.labels, counts.records.tolist()
    (('cold', 'mild'), ('heat', 'wait'), [1, 1, 1])
    """
    columns = Columns.of(
        state,
        action,
        next_state,
        episode=episode,
        time=time,
        max_gap=max_gap,
        terminal=terminal,
        count=count,
        weight=weight,
        task=task,
        age=age,
        half_life=half_life,
        bins=bins,
        text_labels=text_labels,
    )
    found = read_log(table, columns, as_of=as_of)
    warn_of(found, stacklevel=3)
    return found.counts


def warn_of(found: Reading, stacklevel: int) -> None:
    """Warn of everything that was found on reading a log."""
    for finding in found.findings:
        warnings.warn(f"{finding.message}. {finding.fix}", LogWarning, stacklevel=stacklevel)


def read_log(
    table: Any, columns: Columns, *, as_of: float | None = None, more: bool = False
) -> Reading:
    """Counts of a log, and how many of its records were left out, and why.

    With ``more`` the log is one more of a kind already known, and need not have every terminal state.
    """
    import pyarrow.compute as pc

    if is_plain(columns) and (paths := parquet_files(table)) and (tallied := tally(paths, columns)):
        return decode_tally(tallied, columns, more=more)
    with reading(table if isinstance(table, (str, Path)) else "the log"):
        frame, as_they_come = open_table(table, columns), not columns.next_state
        groups, known, decay = _groups(frame, columns, as_of, ties=not as_they_come)
        if as_they_come and pc.sum(groups.column("ties")).as_py():
            groups, known, decay = _groups(frame, columns, as_of, ties=True)
        return decode(groups, known, decay, more=more)


def _groups(
    frame: nw.LazyFrame[Any], columns: Columns, as_of: float | None, *, ties: bool
) -> tuple[pa.Table, Columns, Decay | None]:
    """Group the log where it is: all that leaves the engine, and the columns with all bins known."""
    prepared, known, decay = prepare(frame, columns, as_of, ties=ties)
    return collect_groups(prepared, known, decay), known, decay


def collect_groups(prepared: nw.LazyFrame[Any], columns: Columns, decay: Decay | None) -> pa.Table:
    """Group what `prepare` gave where it is."""
    return grouped(prepared, columns, decay).collect(backend="pyarrow").to_native()
