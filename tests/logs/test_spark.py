"""PySpark: a handful of fixed tables, counted where they are, give the counts of the plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pastwise import Columns, LogWarning, Space, validate_log
from pastwise.errors import LogError
from pastwise.logs.episodes import read_episodes
from pastwise.logs.query import grouped, prepare
from pastwise.logs.read import read_log
from pastwise.logs.sources import open_table
from tests.helpers.java import QUICK_START, needs_java
from tests.helpers.tables import Log, Row, assert_counts, counted, slow_counts

pytestmark = needs_java


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small session for all."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    settings = {
        "spark.sql.shuffle.partitions": 2,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.log.level": "ERROR",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def frame(spark: SparkSession, log: Log) -> DataFrame:
    return spark.createDataFrame(log.table)


DEFAULTS: dict[str, Any] = {
    "state": ["s"],
    "action": ["a"],
    "next_state": None,
    "max_gap": None,
    "bins": {},
}
DEFAULTS |= {"terminal": [], "age": None, "half_life": None, "as_of": None}
CHAIN = {"episode": "episode", "time": "time"}


def rows(number: int, **columns: Any) -> list[Row]:
    """Rows of values sampled from those of each column."""
    rng = Random(number)
    return [{name: rng.choice(values) for name, values in columns.items()} for _ in range(number)]


LOGS = {
    "next state, with all numbers": Log(
        rows(
            40,
            s=["a", "ž", None],
            a=[1, 2],
            n=["a", "b, c"],
            count=[0, 1, 3],
            weight=[0.25, 3.0],
            task=["k", "l"],
        ),
        {"s": pa.string(), "a": pa.int64(), "n": pa.string()}
        | {"count": pa.int64(), "weight": pa.float64(), "task": pa.string()},
        DEFAULTS
        | {
            "next_state": ["n"],
            "count": "count",
            "weight": "weight",
            "task": "task",
            "terminal": ["b, c"],
        },
    ),
    "episodes, with gaps": Log(
        rows(
            60,
            s=[1.5, 2.5] * 3 + [None],
            a=[True, False],
            episode=["x", "y", None],
            time=[*range(40), None],
        ),
        {"s": pa.float64(), "a": pa.bool_(), "episode": pa.string(), "time": pa.int64()},
        DEFAULTS | CHAIN | {"max_gap": 3},
    ),
    "episodes in days, binned": Log(
        rows(
            30,
            s=[-1.0, 0.0, 0.25, 0.5, 1.0, 7.0],
            a=["x", "y"],
            episode=[1, 2],
            time=[date(2024, 2, d) for d in range(1, 30)],
        ),
        {"s": pa.float64(), "a": pa.string(), "episode": pa.int64(), "time": pa.date32()},
        DEFAULTS | CHAIN | {"max_gap": "3d", "bins": {"s": [0, 0.5, 1]}},
    ),
    "next state next to episodes": Log(
        rows(
            40,
            s=["a", "b"],
            a=["x", "y"],
            n=["a", "b", None],
            episode=[1, 2, None],
            time=[*range(9), None],
        ),
        {
            "s": pa.string(),
            "a": pa.string(),
            "n": pa.string(),
            "episode": pa.int64(),
            "time": pa.int64(),
        },
        DEFAULTS | CHAIN | {"next_state": ["n"]},
    ),
    "product states, aged by the second": Log(
        [
            row | {"age": datetime(2024, 2, 28 + i % 2, (7 * i) % 24, i, 59 - i, 250_000 * (i % 4))}
            for i, row in enumerate(
                rows(20, s=["a", "b"], r=[1, 2], a=["x"], n=["a", "b"], m=[1, 2])
            )
        ],
        {"s": pa.string(), "r": pa.int64(), "a": pa.string(), "n": pa.string(), "m": pa.int64()}
        | {"age": pa.timestamp("us")},
        DEFAULTS | {"state": ["s", "r"], "next_state": ["n", "m"], "age": "age", "half_life": "6h"},
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_table_gives_the_counts_of_a_plain_loop(spark: SparkSession, name: str) -> None:
    log = LOGS[name]
    expected, states, left_out = slow_counts(log)
    found, num_warnings = counted(frame(spark, log), log.options)
    assert_counts(found, expected, states, log)
    assert len(expected) > 3
    assert (num_warnings > 0) == (left_out > 0)


def test_quantiles(spark: SparkSession) -> None:
    table = pa.table({"s": [1.0, 2.0, 3.0, 4.0], "a": ["x"] * 4, "n": [2.0, 3.0, 4.0, 1.0]})
    counts, _ = counted(
        spark.createDataFrame(table),
        {"state": "s", "action": "a", "next_state": "n", "bins": {"s": 2}},
    )
    assert counts.states.labels == ("< 2.5", ">= 2.5")
    assert counts.records.tolist() == [1, 1, 1, 1]


def test_names_of_columns_may_be_odd(spark: SparkSession) -> None:
    table = pa.table({"the state": ["a", "b"], "čím": ["x", "x"], "select": ["b", "b"]})
    options = {"state": "the state", "action": "čím", "next_state": "select"}
    counts, _ = counted(spark.createDataFrame(table), options)
    assert counts.num_records == 2


@pytest.mark.parametrize("name", ["a.b", "a`b", "*"])
def test_names_that_spark_takes_for_something_else_are_refused(
    spark: SparkSession, name: str
) -> None:
    table = spark.createDataFrame(pa.table({name: ["a", "b"], "a": ["x", "x"], "n": ["b", "b"]}))
    with pytest.raises(LogError, match=r"rename it first, as in table\.withColumnRenamed"):
        counted(table, {"state": name, "action": "a", "next_state": "n"})


HALF_HOURS = [
    datetime(2024, 10, 27, minute // 60, minute % 60, tzinfo=UTC) for minute in range(0, 180, 30)
]
OLD = [
    datetime(1969, 12, 31, 23, 59, 58, tzinfo=UTC) + timedelta(seconds=quarter / 4)
    for quarter in range(6)
]


@pytest.mark.parametrize("times", [HALF_HOURS, OLD], ids=["clocks go back", "before 1970"])
def test_moments_differ_in_any_time_zone_of_the_session(
    spark: SparkSession, times: list[datetime]
) -> None:
    moments = pa.array(times, pa.timestamp("us", "UTC"))
    table = pa.table({"s": list("abcdef"), "a": ["x"] * 6, "e": [1] * 6, "t": moments})
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "Europe/Prague")
    options = {"state": "s", "action": "a", "episode": "e", "time": "t"}
    counts, num_warnings = counted(elsewhere.createDataFrame(table), options)
    assert counts.state.tolist() == [0, 1, 2, 3, 4]
    assert counts.next_state.tolist() == [1, 2, 3, 4, 5]
    assert num_warnings == 0


@pytest.mark.parametrize(
    "following", [{"next_state": "n"}, {"episode": "e", "time": "t"}], ids=["next state", "time"]
)
def test_query_needs_no_python_on_the_cluster(
    spark: SparkSession, following: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    times = pa.array(HALF_HOURS[:2], pa.timestamp("us", "UTC"))
    table = pa.table({"s": ["a", "b"], "a": ["x", "x"], "n": ["b", "b"], "e": [1, 1], "t": times})
    columns = Columns.of("s", "a", age="t", half_life="1d", **following)
    frame = open_table(spark.createDataFrame(table), columns)
    grouped(*prepare(frame, columns)).to_native().explain()
    plan = capsys.readouterr().out
    assert "HashAggregate" in plan
    assert "Python" not in plan
    assert ("Window" in plan) == ("time" in following)


@pytest.mark.parametrize(
    "order", [{"next_state": "n"}, {"episode": "e", "time": "t"}, {"time": "t"}, {}]
)
def test_rewards_and_outcomes_are_those_of_the_engine_in_this_process(
    spark: SparkSession, order: dict[str, Any]
) -> None:
    """With next states, episodes, a single series, and one-shot decisions."""
    values = rows(60, s=["a", "b"], a=["x", "y"], n=["a", "b"], e=[1, 2], r=[0.25, 1.0, None])
    for place, row in enumerate(values):
        row["t"] = place
    types = {"s": pa.string(), "a": pa.string(), "n": pa.string(), "e": pa.int64()}
    log = Log(values, {**types, "r": pa.float64(), "t": pa.int64()}, {})
    columns = Columns.of("s", "a", reward="r", **order)
    there = read_log(frame(spark, log), columns)
    here = read_log(log.table, columns)
    assert there.counts == here.counts
    assert there.findings == here.findings


def test_findings(spark: SparkSession) -> None:
    columns = {
        "s": ["a", None, "b", "a", "a"],
        "a": ["x"] * 5,
        "e": [1, 1, 1, 1, 2],
        "t": [1, 2, 3, 4, 1],
    }
    found = validate_log(
        spark.createDataFrame(pa.table(columns)), Columns.of("s", "a", episode="e", time="t")
    )
    assert {finding.code: finding.rows for finding in found.findings} == {
        "missing-state": 1,
        "missing-next-state": 1,
        "single-transition": 1,
        "single-record": 1,
        "dead-end": 1,
    }
    assert found.findings[0].examples == ({"s": None, "a": "x", "e": 1, "t": 2},)


def test_next_states_next_to_episodes(spark: SparkSession) -> None:
    columns = {
        "s": list("abba"),
        "a": ["x"] * 4,
        "n": list("bbab"),
        "e": [1, 1, 1, 2],
        "t": [1, 2, 2, 1],
    }
    table, said = (
        spark.createDataFrame(pa.table(columns)),
        Columns.of("s", "a", "n", episode="e", time="t"),
    )
    found = validate_log(table, said)
    assert {finding.code: finding.rows for finding in found.findings} == {"duplicate-time": 1}
    with pytest.warns(LogWarning, match="1 record in another state .* or of the same time"):
        episodes = read_episodes(table, said, Space("ab"), Space("x"))
    assert episodes.state.tolist() == [0, 1, 1, 0]
    assert episodes.episode.tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize(
    "following",
    [{}, {"max_gap": 3}, {"next_state": "n"}, {"next_state": "n", "weight": "w"}],
    ids=["next record", "gap", "next state", "weights"],
)
def test_episodes_are_those_of_the_engine_in_this_process(
    spark: SparkSession, following: dict[str, Any]
) -> None:
    made = rows(200, e=[*range(25), None], t=range(40), s="abc", a="xyz", n="abc", w=[1.0, 2.0])
    names = list(made[0])
    table = pa.table({name: [row[name] for row in made] for name in names})
    columns = Columns.of("s", "a", episode="e", time="t", **following)
    expected = read_log(table, columns).episodes
    found = read_log(spark.createDataFrame(table), columns).episodes
    assert expected is not None
    assert found is not None
    assert found.to_dict() == expected.to_dict()
    assert found.folds == expected.folds


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"state": "ss"}, "the log has no column 'ss'; did you mean 's'?"),
        (
            {"w": [1.0, -1.0]},
            {"weight": "w"},
            "the weight column 'w' has values that are not positive",
        ),
        ({"s": [None, None]}, {}, "no usable transition: 2 records without state"),
        ({"s": [["a"], ["b"]], "n": [["a"], ["b"]]}, {}, "a label is text, a number or a boolean"),
    ],
)
def test_bad_log_is_refused(
    spark: SparkSession, change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    types = {"s": pa.list_(pa.string()) if "n" in change else pa.string()}
    columns = {"s": ["a", "b"], "a": ["x", "x"], "n": ["b", "b"]} | change
    table = pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})
    with pytest.raises(LogError, match=r"\w") as error:
        counted(
            spark.createDataFrame(table),
            {"state": "s", "action": "a", "next_state": "n", **options},
        )
    assert message in str(error.value)


def test_error_of_a_task_is_one_line(spark: SparkSession) -> None:
    table = spark.createDataFrame(pa.table({"s": ["1", "x"], "a": ["u", "u"], "n": [1, 2]}))
    table = table.selectExpr("cast(s as bigint) as s", "a", "n")
    with pytest.raises(LogError, match=r"cannot be read: .*The value 'x'") as error:
        counted(table, {"state": "s", "action": "a", "next_state": "n"})
    assert "\n" not in str(error.value)


def test_learned_states_are_those_of_the_engine_in_this_process(spark: SparkSession) -> None:
    rng = Random(3)
    rows: list[Row] = []
    for episode in range(20):
        level = rng.uniform(0, 6)
        for time in range(8):
            action = rng.choice(["up", "down"])
            ward = rng.choice(["icu", "general", None])
            rows.append(
                {
                    "episode": episode,
                    "time": time,
                    "level": float("nan") if rng.random() < 0.1 else level,
                    "ward": ward,
                    "flag": rng.random() < 0.5,
                    "action": action,
                }
            )
            level += 1.0 if (action == "up") == (level < 3) else -0.5
    types = {
        "episode": pa.int64(),
        "time": pa.int64(),
        "level": pa.float64(),
        "ward": pa.string(),
        "flag": pa.bool_(),
        "action": pa.string(),
    }
    log = Log(rows, types, {})
    columns = Columns.of(
        features=["level", "ward", "flag"], action="action", episode="episode", time="time"
    )
    here = read_log(log.table, columns)
    there = read_log(frame(spark, log), columns)
    assert there.columns.partition == here.columns.partition
    assert there.counts.states == here.counts.states
    assert there.counts.key.tolist() == here.counts.key.tolist()
    assert there.counts.records.tolist() == here.counts.records.tolist()
