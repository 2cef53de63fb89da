"""Rows of a log behind a transition: where somebody can look up what an explanation rests on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import narwhals.stable.v2 as nw

from pastwise.data.space import Label, key_of
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Part, parts_of, states_of
from pastwise.logs.encoded import encoded
from pastwise.logs.growth import with_partition
from pastwise.logs.query import Status, next_names, prepare
from pastwise.logs.sources import ROW, log_errors, open_table


@dataclass(frozen=True)
class RowBehind:
    """A row of a log that is the record of a transition.

    Attributes
    ----------
    action, next_state : str
        Keys of the labels.
    row : int
        Its number, from 1.
    episode, time : str, optional
        As the log has them.
    """

    action: str
    next_state: str
    row: int
    episode: str | None = None
    time: str | None = None


def rows_behind(
    table: Any, columns: Columns, state: str, *, limit: int = 4
) -> tuple[RowBehind, ...]:
    """The first rows of each transition that leaves a state, by row.

    Parameters
    ----------
    columns : Columns
        As `read_log` returned them, with all edges of bins known.
    state : str
        Key of the state.
    limit : int
        Rows of each action and next state.

    Returns
    -------
    tuple of RowBehind
        Empty where the source has no order of rows.
    """
    table, columns = encoded(table, columns)
    with log_errors(table):
        frame = open_table(table, columns, numbered=True)
        if ROW not in frame.collect_schema().names():
            return ()
        columns = with_partition(frame, columns)
        named = [name for name in (columns.episode, columns.time) if name is not None]
        prepared, columns, _ = prepare(frame, columns, raw=(ROW, *named))
        followed = prepared.filter(Status.FOLLOWED.holds)

        # The state as the query has it.
        names = [f"state {i}" for i in range(len(columns.state_fields))]
        distinct = followed.select(*names).unique().collect(backend="pyarrow").to_native()
        if not distinct.num_rows:
            return ()
        (part,) = parts_of(distinct, ("state",), columns.state_fields, columns.state_codes)
        places = [i for i, key in enumerate(_keys_of(part)) if key == state]
        if not places:
            return ()
        values = distinct.slice(places[0], 1).to_pylist()[0]
        is_state = reduce(and_, [nw.col(name) == value for name, value in values.items()])

        # The first rows of each action and next state.
        actions = [f"action {i}" for i in range(len(columns.action))]
        parts = [*actions, *next_names(columns)]
        row = nw.col(f"raw {ROW}")
        place = row.cum_count().over(*parts, order_by=f"raw {ROW}")
        ranked = followed.filter(is_state).with_columns(place=place)
        first = ranked.filter(nw.col("place") <= limit).sort(f"raw {ROW}")
        records = first.collect(backend="pyarrow").to_native()
    if not records.num_rows:
        return ()
    _, next_state = states_of(records, columns)
    (action,) = parts_of(records, ("action",), columns.action, columns.bins)

    def texts(name: str | None) -> list[str | None]:
        if name is None:
            return [None] * records.num_rows
        return [_text(value) for value in records.column(f"raw {name}").to_pylist()]

    found = zip(
        _keys_of(action),
        _keys_of(next_state),
        records.column(f"raw {ROW}").to_pylist(),
        texts(columns.episode),
        texts(columns.time),
        strict=True,
    )
    return tuple(RowBehind(*each) for each in found)


def _text(value: object) -> str | None:
    """A value of the log as text; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return None if value is None else str(value)


def _keys_of(part: Part) -> list[str]:
    """Keys of the labels, one for each record; empty where a field has none."""
    keys = []
    is_bad = (part.bad < 0).tolist()
    for bad, codes in zip(is_bad, part.codes.tolist(), strict=True):
        if bad:
            keys.append("")
            continue
        fields = [labels[code] for labels, code in zip(part.labels, codes, strict=True)]
        label: Label = fields[0] if len(fields) == 1 else tuple(fields)
        keys.append(key_of(label))
    return keys
