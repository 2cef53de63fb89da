"""Tables counted by a plain loop, the oracle for every reader of logs."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from pastwise import Columns, LogWarning, TransitionCounts, count_transitions

Row = dict[str, Any]


Key = tuple[Any, Any, Any, Any]


Sums = list[float]


@dataclass(frozen=True)
class Log:
    """A table by rows, the types of its columns, and the arguments of `count_transitions`."""

    rows: list[Row]
    types: dict[str, Any]
    options: dict[str, Any]

    @property
    def table(self) -> Any:
        return pa.table(
            {
                name: pa.array([row[name] for row in self.rows], kind)
                for name, kind in self.types.items()
            }
        )

    @property
    def as_text(self) -> Log:
        """The same with labels that are text, as in a CSV file."""
        said = Columns.of(
            **{name: value for name, value in self.options.items() if name != "as_of"}
        )
        text = {name: pa.string() for name in said.text}
        rows = [
            {name: _text(v) if name in text else v for name, v in row.items()} for row in self.rows
        ]
        log = Log(rows, self.types | text, self.options | {"terminal": []})
        states = slow_counts(log)[
            1
        ]  # text sorts in another way, and so may records of the same time
        terminal = [label for label in map(_text, self.options["terminal"]) if label in states]
        return replace(log, options=log.options | {"terminal": terminal})


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_text(part) for part in value)
    return None if value is None else str(value)


@dataclass(frozen=True)
class Record:
    """A row, its labels (or the numbers of their intervals), and what follows it, if any."""

    row: Row
    state: tuple[Any, ...]
    action: tuple[Any, ...]
    next_state: tuple[Any, ...] = (None,)
    is_last: bool = False


def slow_counts(log: Log) -> tuple[dict[Key, Sums], set[Hashable], int]:
    """Sums by task, state, action and next state; the states; how many records were left out.

    The sums are of records, weights and squared weights.
    """
    said, found, states, left_out = log.options, dict[Key, Sums](), set[Hashable](), 0
    as_of = said["as_of"] or max(
        (_moment(row["age"]) for row in log.rows if row.get("age") is not None), default=0.0
    )
    for record in _records(log):
        row = record.row
        state = _label(record.state, said["state"], said["bins"])
        action = _label(record.action, said["action"], said["bins"])
        next_state = _label(record.next_state, said["state"], said["bins"])
        ageless = "age" in row and row["age"] is None
        if ageless or (not record.is_last and None in (state, action, next_state)):
            left_out += 1
        elif not record.is_last and row.get("count") != 0:
            states |= {state, next_state}
            if state in said["terminal"]:
                left_out += 1
                continue
            fallen = (
                0.5 ** ((as_of - _moment(row["age"])) / _seconds(said["half_life"]))
                if "age" in row
                else 1.0
            )
            number, weight = row.get("count", 1), row.get("weight", 1.0) * fallen
            sums = found.setdefault((row.get("task"), state, action, next_state), [0, 0.0, 0.0])
            for place, value in enumerate((number, number * weight, number * weight**2)):
                sums[place] += value
    return found, states, left_out


def _records(log: Log) -> Iterator[Record]:
    """The records and what follows them."""
    said = log.options

    def coded(row: Row, columns: list[str], like: list[str]) -> tuple[Any, ...]:
        edges = [said["bins"].get(name) for name in like]
        return tuple(
            _interval(row[c], e) if e else row[c] for c, e in zip(columns, edges, strict=True)
        )

    s, a = said["state"], said["action"]
    records = [Record(row, coded(row, s, s), coded(row, a, a)) for row in log.rows]
    if said["next_state"]:
        yield from (replace(r, next_state=coded(r.row, said["next_state"], s)) for r in records)
        return
    yield from (r for r in records if None in (r.row["episode"], r.row["time"]))
    chain = [r for r in records if None not in (r.row["episode"], r.row["time"])]
    chain.sort(
        key=lambda r: (
            r.row["episode"],
            r.row["time"],
            _nulls_first(r.state),
            _nulls_first(r.action),
        )
    )
    for record, following in zip_longest(chain, chain[1:]):
        if following is None or following.row["episode"] != record.row["episode"]:
            yield replace(record, is_last=True)
            continue
        gap = _moment(following.row["time"]) - _moment(record.row["time"])
        follows = gap > 0 and (said["max_gap"] is None or gap <= _seconds(said["max_gap"]))
        yield replace(record, next_state=following.state) if follows else record


def _nulls_first(labels: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(label is not None, label) for label in labels]


def _interval(value: float | None, edges: list[float]) -> int | None:
    """Number of edges that a value has reached."""
    return None if value is None else sum(value >= edge for edge in edges)


def _label(
    codes: tuple[Any, ...], columns: list[str], bins: dict[str, list[float]]
) -> Hashable | None:
    """A label, or nothing where a part is missing."""
    parts = []
    for code, name in zip(codes, columns, strict=False):
        edges = bins.get(name)
        if code is None:
            return None
        if not edges:
            parts.append(code)
        elif code == 0:
            parts.append(f"< {edges[0]:g}")
        elif code == len(edges):
            parts.append(f">= {edges[-1]:g}")
        else:
            parts.append(f"[{edges[code - 1]:g}, {edges[code]:g})")
    return tuple(parts) if len(columns) > 1 else parts[0]


def _moment(value: Any) -> float:
    if isinstance(value, datetime):
        return (value - datetime(1970, 1, 1)) / timedelta(seconds=1)
    return (value - date(1970, 1, 1)).days * 86400.0 if isinstance(value, date) else float(value)


def _seconds(span: Any) -> float:
    units = {"d": 86400.0, "h": 3600.0}
    return float(span[:-1]) * units[span[-1]] if isinstance(span, str) else float(span)


def labelled(counts: TransitionCounts) -> dict[Key, Sums]:
    """What was counted, by label."""
    tasks = [None] if counts.tasks is None else counts.tasks.labels
    columns = (counts.batch, counts.state, counts.action, counts.next_state)
    sums = (counts.records, counts.weight, counts.weight_squared)
    return {
        (
            tasks[t],
            counts.states.labels[s],
            counts.actions.labels[a],
            counts.states.labels[n],
        ): list(values)
        for t, s, a, n, *values in zip(
            *(column.tolist() for column in (*columns, *sums)), strict=True
        )
    }


def assert_counts(
    found: TransitionCounts, expected: dict[Key, Sums], states: set[Hashable], log: Log
) -> None:
    counted = labelled(found)
    assert counted.keys() == expected.keys()
    assert [counted[key][0] for key in expected] == [sums[0] for sums in expected.values()]
    np.testing.assert_allclose(
        [counted[key] for key in expected],
        list(expected.values()) or np.empty((0,)),
        rtol=1e-9,
        atol=1e-300,
    )
    assert set(found.states.labels) == states
    assert {found.states.labels[i] for i in found.terminal} == set(log.options["terminal"])


def counted(table: Any, options: dict[str, Any]) -> tuple[TransitionCounts, int]:
    """The counts, and the number of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", LogWarning)
        counts = count_transitions(table, **options)
    return counts, len(caught)
