"""Ibis: the query of a log is one that each of its engines can be asked.

It is compiled for engines that do not run here, and read again by a parser of their dialect.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import ibis
import narwhals as nw
import pytest
import sqlglot

from pastwise import Columns, count_transitions
from pastwise.errors import LogError
from pastwise.logs.query import grouped, prepare

TYPES = {
    "who": "string",
    "at": "timestamp",
    "state": "string",
    "warmth": "float64",
    "did": "string",
}
TYPES |= {
    "then": "string",
    "warmth then": "float64",
    "times": "int64",
    "heavy": "float64",
    "job": "string",
}
BOTH = {"state": ["state", "warmth"], "action": "did", "bins": {"warmth": [0, 10, 20]}}
LOGS: dict[str, dict[str, Any]] = {
    "episode and time": {**BOTH, "episode": "who", "time": "at", "max_gap": "2h"},
    "next state, with all numbers": {
        **BOTH,
        "next_state": ["then", "warmth then"],
        **{"count": "times", "weight": "heavy", "task": "job", "age": "at", "half_life": "30d"},
    },
}


@pytest.mark.parametrize(
    "dialect", ["bigquery", "clickhouse", "snowflake", "trino", "duckdb", "postgres"]
)
@pytest.mark.parametrize("log", LOGS)
def test_query_compiles(log: str, dialect: str) -> None:
    frame = nw.from_native(ibis.table(TYPES, name="log"))
    query = str(
        ibis.to_sql(
            grouped(*prepare(frame, Columns.of(**LOGS[log]), as_of=0.0)).to_native(),
            dialect=dialect,
        )
    )
    assert len(sqlglot.parse(query, dialect=dialect)) == 1
    looks_ahead = "lead" in query.lower()
    assert looks_ahead == ("time" in LOGS[log])
    assert "lag" not in query.lower()


def test_engine_that_cannot_be_asked_is_an_error_of_one_line(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table log (warmth real, did text, later real)")
        connection.execute("insert into log values (1.5, 'heat', 12.5)")
        connection.commit()
    table = ibis.sqlite.connect(path).table("log")
    columns: dict[str, Any] = {"state": "warmth", "action": "did", "next_state": "later"}
    with pytest.raises(LogError, match=r"the log: cannot be read: Compilation rule for .*IsNan"):
        count_transitions(table, **columns, bins={"warmth": [0, 10, 20]})


def test_shifts_of_the_table_itself_are_left_alone() -> None:
    rows = {"who": [1] * 5, "at": [1, 2, 3, 4, 5], "state": list("abcde"), "did": ["x"] * 5}
    table = ibis.memtable(rows).mutate(
        before=ibis._.state.lag(2).over(order_by="at").fill_null("none")
    )
    counts = count_transitions(table, "before", "did", episode="who", time="at")
    assert counts.states.labels == ("a", "b", "c", "none")
    assert (counts.state.tolist(), counts.next_state.tolist()) == ([0, 1, 3, 3], [1, 2, 0, 3])
