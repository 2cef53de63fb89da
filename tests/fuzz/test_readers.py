"""Files of logs with hostile values, types and headers: counted as by a plain loop, or refused."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import LogWarning, count_transitions
from pastwise.errors import PastwiseError
from tests.helpers.tables import Log, labelled, slow_counts

NAMES = ("s", "a", "n")
OPTIONS: dict[str, Any] = {
    "state": ["s"],
    "action": ["a"],
    "next_state": ["n"],
    "bins": {},
    "terminal": [],
    "as_of": None,
}

HOSTILE = [
    "",
    "0",
    "00",
    "1e5",
    "nan",
    "NULL",
    "true",
    "\\N",
    '"',
    "'",
    ",",
    ";",
    "\t",
    "a\nb",
    "\x1b[2J",
]
TEXTS = st.sampled_from(HOSTILE) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=4
)
WHOLE = st.integers(-(2**63), 2**63 - 1)
NUMBERS = st.sampled_from([0, -0.0, 1.5, 1e308, 5e-324, 2**53 + 1, float("inf"), float("nan")])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logs")


def tables(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a state, an action and a next state."""
    row = st.fixed_dictionaries(dict.fromkeys(NAMES, values))
    return st.lists(row, min_size=1, max_size=6)


def require_right(path: Path, rows: list[dict[str, Any]] | None, **more: Any) -> None:
    """Read a log: the counts of a plain loop, where there are rows for it, or an error of ours."""
    names = {name: OPTIONS[name] for name in ("state", "action", "next_state")}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)
            counts = count_transitions(str(path), **names, **more)
    except PastwiseError:
        return
    if rows is not None:
        expected = slow_counts(Log(rows, {}, OPTIONS))[0]
        assert labelled(counts) == expected


@given(rows=tables(TEXTS))
def test_csv_files_of_any_text(folder: Path, rows: list[dict[str, str]]) -> None:
    path = folder / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, NAMES, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    missing = [{name: value or None for name, value in row.items()} for row in rows]
    require_right(path, missing)


@given(
    content=st.binary(max_size=60),
    header=st.booleans(),
    suffix=st.sampled_from(["csv", "jsonl", "parquet"]),
)
def test_files_of_any_bytes(folder: Path, content: bytes, header: bool, suffix: str) -> None:
    start = {"csv": b"s,a,n\n", "jsonl": b'{"s": 1, "a": 2, "n": 3}\n', "parquet": b"PAR1"}[suffix]
    path = folder / f"bytes.{suffix}"
    path.write_bytes(start + content if header else content)
    require_right(path, None)


@given(header=st.lists(TEXTS, min_size=1, max_size=4), data=st.data())
def test_csv_files_of_any_header(folder: Path, header: list[str], data: st.DataObject) -> None:
    path = folder / "header.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(header)
        writer.writerow(["x"] * len(header))
    state, action, next_state = (data.draw(st.sampled_from(header)) for _ in NAMES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LogWarning)
            count_transitions(str(path), state=state, action=action, next_state=next_state)
    except PastwiseError:
        return
    assert len({state, action, next_state}) == 3
    assert {state, action, next_state} <= set(header)


@given(rows=st.one_of(tables(TEXTS), tables(WHOLE), tables(st.booleans())))
def test_json_files_of_one_type(folder: Path, rows: list[dict[str, Any]]) -> None:
    path = folder / "log.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    require_right(path, rows)


NESTED = st.recursive(
    st.none() | st.booleans() | WHOLE | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=3,
)


@given(rows=tables(NESTED))
def test_json_files_of_any_values(folder: Path, rows: list[dict[str, Any]]) -> None:
    path = folder / "mixed.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    require_right(path, None)


# Types whose values are labels as they are, and others: times become text, lists are refused.
TYPES: dict[Any, st.SearchStrategy[Any]] = {
    pa.string(): TEXTS,
    pa.int64(): WHOLE,
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.bool_(): st.booleans(),
}
OTHER_TYPES: dict[Any, st.SearchStrategy[Any]] = {
    pa.date32(): st.dates(),
    pa.float64(): NUMBERS.map(float),
    pa.binary(): st.binary(max_size=3),
    pa.decimal128(38, 5): st.decimals(-1000, 1000, places=5),
    pa.list_(pa.int64()): st.lists(WHOLE, max_size=2),
    pa.null(): st.none(),
    pa.duration("ns"): WHOLE.map(lambda number: number % 10**15),
    pa.timestamp("ns"): WHOLE.map(lambda number: number % 10**18),
    pa.time64("ns"): st.integers(0, 86_399_999_999_999),
    pa.struct([("x", pa.int64())]): st.fixed_dictionaries({"x": WHOLE}),
}


@given(kind=st.sampled_from(list(TYPES | OTHER_TYPES)), data=st.data())
def test_parquet_files_of_any_type(folder: Path, kind: Any, data: st.DataObject) -> None:
    values = (TYPES | OTHER_TYPES)[kind]
    rows = data.draw(tables(values | st.none()))
    path = folder / "log.parquet"
    columns = {name: pa.array([row[name] for row in rows], kind) for name in NAMES}
    pq.write_table(pa.table(columns), path)
    require_right(path, rows if kind in TYPES else None)


@given(
    kind=st.sampled_from(list(TYPES | OTHER_TYPES)),
    role=st.sampled_from(["weight", "count", "task", "age", "episode"]),
    data=st.data(),
)
def test_other_columns_of_any_type(folder: Path, kind: Any, role: str, data: st.DataObject) -> None:
    values = data.draw(st.lists((TYPES | OTHER_TYPES)[kind] | st.none(), min_size=1, max_size=5))
    columns = {name: pa.array(["x"] * len(values)) for name in NAMES}
    columns["other"] = pa.array(values, kind)
    path = folder / "other.parquet"
    pq.write_table(pa.table(columns), path)
    more: dict[str, Any] = {role: "other"}
    if role == "age":
        more["half_life"] = data.draw(st.sampled_from([1.0, "30d"]))
    if role == "episode":
        more["time"] = "other"
    require_right(path, None, **more)
