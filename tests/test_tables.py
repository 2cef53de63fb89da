"""Counting: any table, in any of the accepted kinds, gives the counts of a plain loop."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import ibis  # type: ignore[import-untyped]
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pastwise import Columns, LogWarning, TransitionCounts, count_transitions
from pastwise.adapters import decode
from pastwise.adapters.columns import seconds
from pastwise.adapters.tables import read_log
from pastwise.counts import Decay

Row = dict[str, Any]
Key = tuple[Any, Any, Any, Any]
Sums = list[float]


@dataclass(frozen=True)
class Log:
    """A table, row by row, the types of its columns, and what is said of it to `count_transitions`."""

    rows: list[Row]
    types: dict[str, Any]
    options: dict[str, Any]

    @property
    def table(self) -> Any:
        return pa.table({name: pa.array([row[name] for row in self.rows], kind) for name, kind in self.types.items()})

    @property
    def as_text(self) -> Log:
        """The same with labels that are text, as in a CSV file."""
        said = Columns.of(**{name: value for name, value in self.options.items() if name != "as_of"})
        text = {name: pa.string() for name in said.text}
        rows = [{name: _text(v) if name in text else v for name, v in row.items()} for row in self.rows]
        log = Log(rows, self.types | text, self.options | {"terminal": []})
        states = slow_counts(log)[1]  # text sorts in another way, and so may records of the same time
        terminal = [label for label in map(_text, self.options["terminal"]) if label in states]
        return replace(log, options=log.options | {"terminal": terminal})


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_text(part) for part in value)
    return None if value is None else str(value)


# The plain loop


@dataclass(frozen=True)
class Record:
    """A row, its labels (or the numbers of their intervals), and what follows it, if anything does."""

    row: Row
    state: tuple[Any, ...]
    action: tuple[Any, ...]
    next_state: tuple[Any, ...] = (None,)
    is_last: bool = False


def slow_counts(log: Log) -> tuple[dict[Key, Sums], set[Hashable], int]:
    """Records, weight and squared weight by task, state, action and next state; the states; how many were left out."""
    said, found, states, left_out = log.options, dict[Key, Sums](), set[Hashable](), 0
    as_of = said["as_of"] or max((_moment(row["age"]) for row in log.rows if row.get("age") is not None), default=0.0)
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
            fallen = 0.5 ** ((as_of - _moment(row["age"])) / _seconds(said["half_life"])) if "age" in row else 1.0
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
        return tuple(_interval(row[c], e) if e else row[c] for c, e in zip(columns, edges, strict=True))

    s, a = said["state"], said["action"]
    records = [Record(row, coded(row, s, s), coded(row, a, a)) for row in log.rows]
    if said["next_state"]:
        yield from (replace(r, next_state=coded(r.row, said["next_state"], s)) for r in records)
        return
    yield from (r for r in records if None in (r.row["episode"], r.row["time"]))
    chain = [r for r in records if None not in (r.row["episode"], r.row["time"])]
    chain.sort(key=lambda r: (r.row["episode"], r.row["time"], _nulls_first(r.state), _nulls_first(r.action)))
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
    """0 below the first edge, one too many above the last."""
    return None if value is None else sum(value >= edge for edge in edges[:-1]) + (value > edges[-1])


def _label(codes: tuple[Any, ...], columns: list[str], bins: dict[str, list[float]]) -> Hashable | None:
    """A label, or nothing where a part is missing or out of range."""
    parts = []
    for code, name in zip(codes, columns, strict=False):
        edges = bins.get(name)
        if code is None or (edges and not 0 < code < len(edges)):
            return None
        last = edges and code == len(edges) - 1
        parts.append(f"[{edges[code - 1]:g}, {edges[code]:g}{']' if last else ')'}" if edges else code)
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
        (tasks[t], counts.states.labels[s], counts.actions.labels[a], counts.states.labels[n]): list(values)
        for t, s, a, n, *values in zip(*(column.tolist() for column in (*columns, *sums)), strict=True)
    }


def assert_counts(found: TransitionCounts, expected: dict[Key, Sums], states: set[Hashable], log: Log) -> None:
    counted = labelled(found)
    assert counted.keys() == expected.keys()
    assert [counted[key][0] for key in expected] == [sums[0] for sums in expected.values()]
    np.testing.assert_allclose(
        [counted[key] for key in expected], list(expected.values()) or np.empty((0,)), rtol=1e-9, atol=1e-300
    )
    assert set(found.states.labels) == states
    assert {found.states.labels[i] for i in found.terminal} == set(log.options["terminal"])


# The kinds of table


def _csv_file(log: Log, folder: Path) -> Path:
    path = folder / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(log.types), lineterminator="\n")
        writer.writeheader()
        writer.writerows(log.rows)
    return path


def _json_file(log: Log, folder: Path) -> Path:
    path = folder / "log.jsonl"
    lines = (json.dumps(row, default=lambda value: value.isoformat(), ensure_ascii=False) for row in log.rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _parquet_file(log: Log, folder: Path) -> Path:
    pq.write_table(log.table, folder / "log.parquet")
    return folder / "log.parquet"


KINDS: dict[str, Callable[[Log, Path], Any]] = {
    "columns": lambda log, _: {name: [row[name] for row in log.rows] for name in log.types},
    "pandas": lambda log, _: log.table.to_pandas(),
    "pandas, nullable": lambda log, _: log.table.to_pandas().convert_dtypes(),
    "polars": lambda log, _: pl.from_arrow(log.table),
    "polars, lazy": lambda log, _: pl.LazyFrame(log.table),
    "pyarrow": lambda log, _: log.table,
    "duckdb": lambda log, _: duckdb.connect().from_arrow(log.table),
    "ibis": lambda log, _: ibis.memtable(log.table),
    "csv": _csv_file,
    "parquet": _parquet_file,
    "json": _json_file,
}


# Any table


Draw = Callable[[Random], Any]
"""One value of a column."""

DAY = datetime(2024, 2, 27)
SPECIAL = ",;|\t\n\"' \\[]ž€"

texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(SPECIAL), min_size=1, max_size=4)
few_texts = st.lists(texts, min_size=3, max_size=3, unique=True)


def quarter(rng: Random) -> float:
    return rng.randint(-8, 8) / 4


def day(rng: Random) -> date:
    return (DAY + timedelta(days=rng.randint(0, 4))).date()


def moment(rng: Random) -> datetime:
    return DAY + timedelta(seconds=rng.randint(0, 3 * 86400 * 4) / 4)


def one_of(*values: Any) -> Draw:
    return lambda rng: rng.choice(values)


TIMES: list[tuple[Any, Draw, list[Any]]] = [
    (pa.int64(), lambda rng: rng.randint(0, 6), [1, 2]),
    (pa.float64(), quarter, [0.5]),
    (pa.date32(), day, ["2d", "24h"]),
    (pa.timestamp("us"), moment, ["1d", "12.5h"]),
]
AGES: list[tuple[Any, Draw, list[Any], float]] = [
    (pa.int64(), lambda rng: rng.randint(0, 20), [1, 7.5], 24.0),
    (pa.float64(), quarter, [0.5], 3.0),
    (pa.date32(), day, ["36h", "900d"], 1709424000.0),
    (pa.timestamp("us"), moment, ["6h", "2d"], 1709424000.5),
]
EPISODES = [(pa.string(), one_of("a", "é")), (pa.int64(), one_of(3, 4))]
OTHERS: dict[str, tuple[Any, Draw]] = {
    "count": (pa.int64(), lambda rng: rng.randint(0, 5)),
    "weight": (pa.float64(), one_of(0.25, 1.0, 3.0)),
    "task": (pa.string(), one_of("old", "new, too")),
}


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Tables of all that a log may have, with values missing here and there."""
    rng = draw(st.randoms(use_true_random=True))
    words, whole = one_of(*draw(few_texts)), one_of(*(rng.randint(-(2**40), 2**40) for _ in range(3)))
    labels = [(pa.string(), words), (pa.int64(), whole), (pa.bool_(), one_of(False, True)), (pa.float64(), quarter)]
    said: dict[str, Any] = {"next_state": None, "max_gap": None, "bins": {}, "age": None}
    said |= {"half_life": None, "as_of": None, "terminal": []}
    said |= {"state": ["the state", "and where"][: rng.choice([1, 1, 2])]}
    said |= {"action": ["what was done", "how"][: rng.choice([1, 1, 2])]}
    columns: dict[str, tuple[Any, Draw]] = {}
    for name in (*said["state"], *said["action"]):
        columns[name] = rng.choice(labels)
        if rng.random() < 0.25:
            columns[name] = pa.float64(), quarter
            said["bins"][name] = rng.choice([[-1, 0.5, 1.5], [-2.0, 2.0], [0, 0.25, 0.5, 2]])
    if chained := rng.random() < 0.5:
        kind, times, gaps = rng.choice(TIMES)
        columns |= {"time": (kind, times), "episode": rng.choice(EPISODES)}
        said |= {"episode": "episode", "time": "time", "max_gap": rng.choice([None, *gaps])}
    else:
        said["next_state"] = [f"then {name}" for name in said["state"]]
        columns |= {f"then {name}": columns[name] for name in said["state"]}
    if rng.random() < 0.4:
        kind, ages, spans, as_of = rng.choice(AGES)
        columns["age"] = kind, ages
        said |= {"age": "age", "half_life": rng.choice(spans), "as_of": rng.choice([None, as_of])}
    gappy = {name: rng.choice([0.0, 0.0, 0.1]) for name in columns}
    for name in rng.sample(sorted(OTHERS), rng.choice([0, 0, 1, 2, 3])):
        said[name], columns[name] = name, OTHERS[name]
    rows = [
        {name: None if rng.random() < gappy.get(name, 0) else value(rng) for name, (_, value) in columns.items()}
        for _ in range(rng.choice([1, 6, 12, 20]))
    ]
    for name in {"time", "age", *said["bins"]} & columns.keys():  # a column without any value has no type
        rows[0][name] = columns[name][1](rng)
    if chained and {"age", *OTHERS} & columns.keys():  # which of two that are alike is the later one?
        plain = [name for name in ("episode", "time", *said["state"], *said["action"]) if name not in said["bins"]]
        rows = list({tuple(row[name] for name in plain): row for row in rows}.values())
    log = Log(rows, {name: kind for name, (kind, _) in columns.items()}, said)
    states = sorted(slow_counts(log)[1], key=str)
    said["terminal"] = rng.sample(states, min(len(states), rng.choice([0, 0, 1, 2])))
    return log


def counted(table: Any, options: dict[str, Any]) -> tuple[TransitionCounts, int]:
    """The counts, and the number of warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", LogWarning)
        counts = count_transitions(table, **options)
    return counts, len(caught)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the drawn files go."""
    return tmp_path_factory.mktemp("logs")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(log=logs())
def test_any_table_gives_the_counts_of_a_plain_loop(kind: str, folder: Path, log: Log) -> None:
    log = log.as_text if kind == "csv" else log
    table = KINDS[kind](log, folder)
    expected, states, left_out = slow_counts(log)
    if states:
        found, num_warnings = counted(table, log.options)
        assert_counts(found, expected, states, log)
        assert (num_warnings > 0) == (left_out > 0)
        return
    with pytest.raises(ValueError, match=r"no usable transition|has no value"):
        counted(table, log.options)
