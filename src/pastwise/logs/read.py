"""From a table to transition counts.

One query runs in the engine that holds the table, and only distinct transitions leave it. A log
with episodes takes a second, small one for their lengths; see `summary`. Parquet files of text are
counted without an engine; see `parquet`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import pyarrow as pa
import pyarrow.compute as pc

from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label
from pastwise.errors import LogWarning
from pastwise.goals.goal import Goal
from pastwise.logs.columns import MAX_STATES, Columns, GivenBins, Name, Names, Span
from pastwise.logs.decode import Reading, decode, decode_tally
from pastwise.logs.encoded import encoded
from pastwise.logs.encoders import Encoder
from pastwise.logs.files import parquet_files
from pastwise.logs.growth import with_partition
from pastwise.logs.parquet import Tally, is_plain, tally
from pastwise.logs.query import grouped, prepare
from pastwise.logs.sources import categories_of, log_errors, open_table
from pastwise.logs.summary import with_episodes


def count_transitions(
    table: Any,
    state: Names | Encoder = (),
    action: Names = (),
    next_state: Names | None = None,
    *,
    features: Names = (),
    next_features: Names = (),
    max_states: int = MAX_STATES,
    episode: Name | None = None,
    time: Name | None = None,
    max_gap: Span | None = None,
    terminal: Label | Sequence[Label] = (),
    count: Name | None = None,
    weight: Name | None = None,
    task: Name | None = None,
    age: Name | None = None,
    half_life: Span | None = None,
    as_of: float | None = None,
    bins: GivenBins | None = None,
    text_labels: bool = True,
    reward: Name | None = None,
    outcome: Name | None = None,
) -> TransitionCounts:
    """Count the transitions of a log, wherever it is.

    Records that are left out, because a value is missing or out of range, raise a `LogWarning`
    with their number.

    Parameters
    ----------
    table
        A path to CSV, Parquet, JSON lines or Excel, a glob or a list of them, or ``"-"`` for CSV
        from standard input; a table of pandas, polars (eager or lazy), pyarrow, DuckDB, Ibis or
        PySpark; a mapping of columns, a list of rows as mappings, or an array of NumPy.
    state, action, next_state, episode, time, ...
        The columns; see `Columns`.
    as_of : float, optional
        With ``age``: the date that weights refer to, in the column's unit or, for dates, in
        seconds since 1970; the latest of the log by default.

    Examples
    --------
    >>> log = {
    ...     "room": ["cold", "mild", "cold"],
    ...     "did": ["heat", "wait", "heat"],
    ...     "then": ["mild", "mild", "cold"],
    ... }
    >>> counts = count_transitions(log, state="room", action="did", next_state="then")
    >>> counts.states.labels, counts.actions.labels, counts.records.tolist()
    (('cold', 'mild'), ('heat', 'wait'), [1, 1, 1])
    """
    columns = Columns.of(
        state,
        action,
        next_state,
        features=features,
        next_features=next_features,
        max_states=max_states,
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
        reward=reward,
        outcome=outcome,
    )
    found = read_log(table, columns, as_of=as_of, episodes=False)
    warn_of(found, stacklevel=3)
    return found.counts


def warn_of(found: Reading, stacklevel: int) -> None:
    """Warn of everything that was found when reading a log."""
    for finding in found.findings:
        warnings.warn(f"{finding.message}. {finding.fix}", LogWarning, stacklevel=stacklevel)


def read_log(
    table: Any,
    columns: Columns,
    *,
    as_of: float | None = None,
    more: bool = False,
    episodes: bool = True,
    goal: Goal | None = None,
) -> Reading:
    """Counts of a log, findings on the records that were left out, and a summary of its episodes.

    Parameters
    ----------
    more : bool
        The log continues one that is known, and need not have every terminal state.
    episodes : bool
        Summarise the episodes, where the log has an episode column. Counts alone take less time.
    goal : Goal, optional
        What is wanted. Where states are learned from features, its conditions are decided by them.
    """
    table, columns = encoded(table, columns)
    tallied = _tally(table, columns)
    if tallied is not None:
        return decode_tally(tallied, columns, more=more)

    with log_errors(table):
        frame = open_table(table, columns)
        columns = with_partition(frame, columns, goal)
        # Sorting by time alone is faster; where times repeat, sort by the labels too.
        prepared, known, decay = prepare(frame, columns, as_of, ties=False)
        groups = collect_groups(prepared, known, decay, episodes=episodes)
        if columns.is_chained and pc.sum(groups.column("ties")).as_py():
            prepared, known, decay = prepare(frame, columns, as_of, ties=True)
            groups = collect_groups(prepared, known, decay, episodes=episodes)
        categories = categories_of(table, columns)
        reading, split = decode(
            groups, known, decay, more=more, episodes=episodes, categories=categories
        )
        return with_episodes(reading, split, frame, prepared, decay, more=more)


def _tally(table: Any, columns: Columns) -> Tally | None:
    """The log counted by codes, where that is possible."""
    if not is_plain(columns):
        return None
    paths = parquet_files(table)
    return tally(paths, columns) if paths else None


def collect_groups(
    prepared: nw.LazyFrame[Any], columns: Columns, decay: Decay | None, *, episodes: bool = True
) -> pa.Table:
    """Group what `prepare` returned, in its engine."""
    query = grouped(prepared, columns, decay, episodes=episodes)
    return query.collect(backend="pyarrow").to_native()
