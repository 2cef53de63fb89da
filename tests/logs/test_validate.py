"""Validation: every kind of finding, with its number of rows and its examples."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import ibis
import polars as pl
import pyarrow as pa
import pytest

from pastwise import Columns, validate_log
from pastwise.data.bins import Bins
from pastwise.errors import FileError, LogError
from pastwise.logs.findings import Finding

PLAIN: dict[str, list[Any]] = {
    "s": ["a", "b", "a", "b"],
    "a": ["x", "x", "y", "y"],
    "n": ["b", "a", "a", "b"],
}
EPISODES: dict[str, list[Any]] = {
    "who": ["ann", "ann", "ann", "bob", "bob"],
    "day": [1, 2, 3, 1, 2],
    "s": ["a", "b", "a", "b", "a"],
    "a": ["x", "x", "y", "x", "y"],
}


def findings(log: Any, **options: Any) -> dict[str, Finding]:
    """What was found in a log, by code; each code once, with a message and a way to mend it."""
    said = {
        "state": "s",
        "action": "a",
        **({"episode": "who", "time": "day"} if "who" in log else {"next_state": "n"}),
    }
    found = validate_log(log, Columns.of(**(said | options))).findings
    assert all(finding.message and finding.fix and finding.rows > 0 for finding in found)
    assert len({finding.code for finding in found}) == len(found)
    return {finding.code: finding for finding in found}


def only(log: Any, code: str, **options: Any) -> Finding:
    """The one finding about a log."""
    found = findings(log, **options)
    assert found.keys() == {code}
    return found[code]


def changed(log: dict[str, list[Any]], **cells: dict[int, Any]) -> dict[str, list[Any]]:
    """The log with some cells changed, by column and row."""
    return {
        name: [cells.get(name, {}).get(i, v) for i, v in enumerate(values)]
        for name, values in log.items()
    }


# Clean logs


def test_clean_log_has_its_sizes_and_no_finding() -> None:
    found = validate_log(PLAIN, Columns.of("s", "a", "n"))
    assert (found.rows, found.transitions, found.states, found.actions, found.findings) == (
        4,
        4,
        2,
        2,
        (),
    )
    chained = validate_log(EPISODES, Columns.of("s", "a", episode="who", time="day"))
    assert (
        chained.rows,
        chained.transitions,
        chained.states,
        chained.actions,
        chained.findings,
    ) == (5, 2, 2, 1, ())


def test_result_is_plain_json() -> None:
    log = changed(PLAIN, s={1: None}) | {"at": [date(2024, 1, 1)] * 4}
    found = validate_log(log, Columns.of("s", "a", "n", age="at", half_life="1d"))
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == {
        "rows": 4,
        "transitions": 3,
        "states": 2,
        "actions": 2,
        "findings": [
            {
                "code": "missing-state",
                "message": found.findings[0].message,
                "rows": 1,
                "fix": found.findings[0].fix,
                "examples": [{"row": 2, "s": None, "a": "x", "n": "a", "at": "2024-01-01"}],
                "severity": "warn",
                "remedies": [],
            }
        ],
    }


# Values that are no label


@pytest.mark.parametrize(("column", "part"), [("s", "state"), ("a", "action"), ("n", "next-state")])
def test_missing_values(column: str, part: str) -> None:
    finding = only(changed(PLAIN, **{column: {1: None, 2: None}}), f"missing-{part}")
    assert finding.rows == 2
    assert [example["row"] for example in finding.examples] == [2, 3]
    assert all(example[column] is None for example in finding.examples)
    assert set(finding.examples[0]) == {"row", "s", "a", "n"}


@pytest.mark.parametrize(("column", "part"), [("s", "state"), ("n", "next-state")])
@pytest.mark.parametrize("bad", ["nan", "inf", "-inf"])
def test_values_that_are_not_finite(column: str, part: str, bad: str) -> None:
    log: dict[str, list[Any]] = {
        "s": [1.0, 2.0, 1.0, 2.0],
        "a": ["x"] * 4,
        "n": [2.0, 1.0, 1.0, 2.0],
    }
    finding = only(changed(log, **{column: {3: float(bad)}}), f"not-finite-{part}")
    assert finding.rows == 1
    assert [(example["row"], example[column]) for example in finding.examples] == [(4, bad)]


def test_actions_that_are_not_finite() -> None:
    log = {"s": ["a", "a", "b"], "a": [0.5, float("nan"), 0.5], "n": ["b", "a", "a"]}
    assert only(log, "not-finite-action").rows == 1


@pytest.mark.parametrize(("column", "part"), [("s", "state"), ("a", "action"), ("n", "next-state")])
def test_values_out_of_range(column: str, part: str) -> None:
    log = {"s": [1, 6, 1, 6], "a": [1, 6, 1, 6], "n": [6, 1, 1, 6]}
    closed = Bins((0.0, 5.0, 10.0), is_open=False)
    bins = {"s": closed, "a": closed}
    assert findings(log, bins=bins) == {}
    finding = only(changed(log, **{column: {0: -1, 1: 11}}), f"out-of-range-{part}", bins=bins)
    assert finding.rows == 2
    assert [(example["row"], example[column]) for example in finding.examples] == [(1, -1), (2, 11)]


def test_missing_values_of_bins_are_missing_and_infinite_ones_out_of_range() -> None:
    log = {
        "s": [1.0, None, float("nan"), float("inf"), 6.0],
        "a": ["x"] * 5,
        "n": [6.0, 6.0, 6.0, 6.0, 1.0],
    }
    found = findings(log, bins={"s": Bins((0.0, 5.0, 10.0), is_open=False)})
    assert {code: finding.rows for code, finding in found.items()} == {
        "missing-state": 2,
        "out-of-range-state": 1,
    }
    assert [example["row"] for example in found["missing-state"].examples] == [2, 3]
    assert [example["row"] for example in found["out-of-range-state"].examples] == [4]


def test_any_field_of_a_product_state_may_be_bad() -> None:
    log = {
        "s": ["a", None, "a", "b"],
        "r": [1, 1, None, 30],
        "a": ["x"] * 4,
        "n": ["b", "b", "a", "a"],
        "m": [1] * 4,
    }
    options: dict[str, Any] = {
        "state": ["s", "r"],
        "next_state": ["n", "m"],
        "bins": {"r": Bins((0.0, 10.0), is_open=False)},
    }
    found = findings(log, **options)
    assert {code: finding.rows for code, finding in found.items()} == {
        "missing-state": 2,
        "out-of-range-state": 1,
        "single-transition": 1,
        "dead-end": 1,
    }
    assert [example["row"] for example in found["missing-state"].examples] == [2, 3]
    assert [example["row"] for example in found["out-of-range-state"].examples] == [4]


def test_three_examples_are_enough() -> None:
    log = {name: values * 3 for name, values in PLAIN.items()}
    finding = only(log | {"s": ["a", None] * 5 + ["b", "b"]}, "missing-state")
    assert finding.rows == 5
    assert [example["row"] for example in finding.examples] == [2, 4, 6]


# Chains


def test_gaps() -> None:
    log = changed(EPISODES, day={2: 9})
    finding = only(log, "gap", max_gap=5)
    assert finding.rows == 1
    assert finding.examples == ({"row": 2, "s": "b", "a": "x", "who": "ann", "day": 2},)


def test_records_of_the_same_time() -> None:
    log = {name: [*values, values[1]] for name, values in EPISODES.items()}
    finding = only(log, "duplicate-time")
    assert finding.rows == 1
    assert finding.examples[0] in [
        {"row": row, "s": "b", "a": "x", "who": "ann", "day": 2} for row in (2, 6)
    ]


@pytest.mark.parametrize(("column", "code"), [("who", "missing-episode"), ("day", "missing-time")])
def test_records_without_a_place(column: str, code: str) -> None:
    log = {name: [*values, values[-1]] for name, values in EPISODES.items()}
    finding = only(changed(log, **{column: {5: None}}), code)
    assert finding.rows == 1
    assert [(example["row"], example[column]) for example in finding.examples] == [(6, None)]


@pytest.mark.parametrize("log", [PLAIN, EPISODES], ids=["next state", "episodes"])
def test_records_without_an_age(log: dict[str, list[Any]]) -> None:
    dated = log | {"at": [3, None, *range(len(log["s"]) - 2)]}
    finding = findings(dated, age="at", half_life=1)["missing-age"]
    assert finding.rows == 1
    assert [(example["row"], example["at"]) for example in finding.examples] == [(2, None)]


def test_missing_state_in_a_chain_is_missing_before_and_after() -> None:
    log = {name: [*values, values[0]] for name, values in EPISODES.items()} | {
        "day": [1, 2, 3, 1, 2, 4]
    }
    found = findings(changed(log, s={1: None}))
    assert [e["row"] for e in found["missing-state"].examples] == [2]
    assert [e["row"] for e in found["missing-next-state"].examples] == [1]


def test_episodes_of_one_record() -> None:
    log = {name: [*values, values[0]] for name, values in EPISODES.items()}
    finding = only(changed(log, who={5: "eve"}), "single-record")
    assert finding.rows == 1
    assert finding.examples == ({"row": 6, "s": "a", "a": "x", "who": "eve", "day": 1},)


# Next states next to episodes

BOTH: dict[str, list[Any]] = EPISODES | {"n": ["b", "a", "b", "a", "b"]}
SAID: dict[str, Any] = {"next_state": "n"}


def test_clean_log_with_next_states_and_episodes_has_no_finding() -> None:
    """The last record of an episode has its next state, even if it is the only one."""
    lone = {name: [*values, values[0]] for name, values in BOTH.items()} | {
        "who": [*BOTH["who"], "eve"]
    }
    for log in (BOTH, lone):
        found = validate_log(log, Columns.of("s", "a", "n", episode="who", time="day"))
        assert (found.rows, found.findings) == (len(log["s"]), ())


def test_next_states_that_are_not_those_of_the_next_record() -> None:
    """In any order of rows; the last record of an episode is never one of them."""
    log = changed(BOTH, n={0: "a", 3: "b", 4: "a"})
    finding = only(log, "broken-chain", **SAID)
    assert finding.rows == 2
    first = {"row": 1, "s": "a", "a": "x", "n": "a", "who": "ann", "day": 1, "following s": "b"}
    second = {"row": 4, "s": "b", "a": "x", "n": "b", "who": "bob", "day": 1, "following s": "a"}
    assert finding.examples == (first, second)
    turned = only({name: values[::-1] for name, values in log.items()}, "broken-chain", **SAID)
    assert [{**example, "row": 6 - example["row"]} for example in turned.examples] == [
        second,
        first,
    ]


def test_next_states_are_compared_by_their_bins_and_in_all_fields() -> None:
    log = {"who": [1, 1, 1], "day": [1, 2, 3], "s": [1, 7, 2], "r": list("uuv"), "a": ["x"] * 3}
    log |= {"n": [9.0, 1.0, 6.0], "m": ["u", "u", "v"]}
    options: dict[str, Any] = {
        "state": ["s", "r"],
        "next_state": ["n", "m"],
        "bins": {"s": [0, 5, 10]},
    }
    finding = findings(log, **options)["broken-chain"]
    assert [
        (example["row"], example["following s"], example["following r"])
        for example in finding.examples
    ] == [(2, 2, "v")]
    assert "broken-chain" not in findings(log | {"m": ["u", "v", "v"]}, **options)


def test_missing_next_state_or_state_is_no_broken_chain() -> None:
    assert findings(changed(BOTH, n={0: None}), **SAID).keys() == {"missing-next-state"}
    assert findings(changed(BOTH, s={1: None}), **SAID).keys() == {"missing-state"}


def test_records_with_a_next_state_but_no_place_of_their_own() -> None:
    log = {name: [*values, *values[1:4]] for name, values in BOTH.items()}
    log = changed(log, who={6: None}, day={7: None})
    found = findings(log, **SAID)
    assert {code: finding.rows for code, finding in found.items()} == {
        "missing-episode": 1,
        "missing-time": 1,
        "duplicate-time": 1,
    }
    assert [example["row"] for example in found["missing-episode"].examples] == [7]
    assert found["missing-time"].examples == (
        {"row": 8, "s": "b", "a": "x", "n": "a", "who": "bob", "day": None},
    )
    assert found["duplicate-time"].examples[0]["row"] in (2, 6)
    assert validate_log(log, Columns.of("s", "a", "n", episode="who", time="day")).rows == 8


ENGINES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas, categories": lambda table: table.to_pandas().astype(
        {"s": "category", "n": "category"}
    ),
    "polars, categories": lambda table: pl.DataFrame(table).with_columns(
        pl.col("s", "n").cast(pl.Categorical)
    ),
    "polars, lazy": pl.LazyFrame,
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "ibis": ibis.memtable,
}


@pytest.mark.parametrize("kind", ENGINES)
def test_every_engine_finds_the_broken_chain(kind: str) -> None:
    table = ENGINES[kind](pa.table(changed(BOTH, n={1: "b"})))
    found = validate_log(table, Columns.of("s", "a", "n", episode="who", time="day")).findings
    assert [(finding.code, finding.rows) for finding in found] == [("broken-chain", 1)]
    assert {"s": "b", "n": "b", "day": 2, "following s": "a"}.items() <= found[0].examples[
        0
    ].items()


def test_episode_without_time_next_to_a_next_state_finds_nothing() -> None:
    broken = changed(BOTH, n={0: "a"}, who={1: None})
    assert findings(broken, **SAID, time=None) == findings(broken, **SAID, episode=None) == {}


# States


def test_records_that_leave_a_terminal_state() -> None:
    log = {"s": ["a", "end", "a", "end"], "a": ["x"] * 4, "n": ["end", "a", "a", "end"]}
    finding = only(log, "after-terminal", terminal="end")
    assert finding.rows == 2
    assert [example["row"] for example in finding.examples] == [2, 4]


def test_states_that_are_entered_and_never_left() -> None:
    log = {"s": ["a", "a", "a", "a"], "a": ["x", "x", "y", "y"], "n": ["won", "won", "lost", "a"]}
    finding = only(log, "dead-end")
    assert finding.rows == 3
    assert finding.examples == ({"state": "lost"}, {"state": "won"})
    assert "2 states entered and never left: lost, won" in finding.message
    assert only(log, "dead-end", terminal="won").examples == ({"state": "lost"},)
    assert findings(log, terminal=["won", "lost"]) == {}


def test_many_dead_ends_are_not_all_named() -> None:
    log = {"s": ["a"] * 8, "a": ["x"] * 8, "n": list("abcdefgh")}
    finding = only(log, "dead-end")
    assert "7 states entered and never left: b, c, d, e, f, ..." in finding.message
    assert finding.rows == 7
    assert len(finding.examples) == 3


def test_dead_ends_of_product_states_are_named_by_their_key() -> None:
    log = {
        "s": ["a", "a"],
        "r": [False, False],
        "a": ["x", "y"],
        "n": ["b", "a"],
        "m": [True, False],
    }
    finding = only(log, "dead-end", state=["s", "r"], next_state=["n", "m"])
    assert finding.examples == ({"state": '["b", true]'},)


def test_single_transition() -> None:
    finding = only({"s": ["a"], "a": ["x"], "n": ["a"]}, "single-transition")
    assert finding.rows == 1


# Every kind of table


MESSY = changed(PLAIN, s={1: None}, n={2: None})
KINDS: dict[str, Callable[[Path], Any]] = {
    "columns": lambda _: MESSY,
    "pandas": lambda _: pa.table(MESSY).to_pandas(),
    "polars": lambda _: pl.DataFrame(MESSY),
    "polars, lazy": lambda _: pl.LazyFrame(MESSY),
    "pyarrow": lambda _: pa.table(MESSY),
    "csv": lambda folder: (
        pl.DataFrame(MESSY).write_csv(folder / "log.csv") or str(folder / "log.csv")
    ),
    "parquet": lambda folder: (
        pl.DataFrame(MESSY).write_parquet(folder / "log.parquet") or folder / "log.parquet"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_has_the_same_findings(kind: str, tmp_path: Path) -> None:
    """Rows are numbered where the source has an order."""
    found = validate_log(KINDS[kind](tmp_path), Columns.of("s", "a", "n"))
    expected = {
        "missing-state": {"s": None, "a": "x", "n": "a"},
        "missing-next-state": {"s": "a", "a": "y", "n": None},
    }
    number = (
        {}
        if kind == "polars, lazy"
        else {"missing-state": {"row": 2}, "missing-next-state": {"row": 3}}
    )
    assert {f.code: dict(f.examples[0]) for f in found.findings} == {
        code: number.get(code, {}) | example for code, example in expected.items()
    }
    assert found.rows == 4


@pytest.mark.parametrize("kind", [dict, pl.DataFrame, pl.LazyFrame, pa.table])
def test_log_may_have_a_column_named_row(kind: Callable[[Any], Any]) -> None:
    log = {"row": ["a", None, "b", "b"], "a": ["x"] * 4, "n": ["b", "a", "a", "b"]}
    found = validate_log(kind(log), Columns.of("row", "a", "n"))
    assert [(finding.code, finding.rows) for finding in found.findings] == [("missing-state", 1)]


def test_log_that_nothing_can_be_learned_from_is_refused() -> None:
    with pytest.raises(LogError, match="no usable transition"):
        validate_log(PLAIN | {"s": [None] * 4}, Columns.of("s", "a", "n"))
    with pytest.raises(LogError, match=r"the log has no column 'state'; it has s, a, n$"):
        validate_log(PLAIN, Columns.of("state", "a", "n"))
    with pytest.raises(FileError, match="no such file"):
        validate_log("none.csv", Columns.of("s", "a", "n"))
