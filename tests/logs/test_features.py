"""States learned from raw columns: the same in every engine, for any order of rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pastwise import Columns, Goal, LogWarning, TransferLearner, count_transitions, load
from pastwise.data.partition import Partition
from pastwise.data.regions import Interval
from pastwise.errors import ConditionError, LabelError, LogError, ParameterError
from pastwise.logs import growth
from pastwise.logs.encoders import KMeans
from pastwise.logs.read import read_log
from pastwise.policy.export import export_policy
from tests.helpers.partitions import ROWS, partitions, slow_leaf

Row = dict[str, Any]

TYPES = {
    "x": pa.float64(),
    "n": pa.int64(),
    "flag": pa.bool_(),
    "ward": pa.string(),
    "next_x": pa.float64(),
    "next_n": pa.int64(),
    "next_flag": pa.bool_(),
    "next_ward": pa.string(),
    "action": pa.int64(),
}
FEATURES = ("x", "n", "flag", "ward")

ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "polars": lambda table: pl.DataFrame(table),
    "polars, lazy": lambda table: pl.LazyFrame(table),
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "ibis": lambda table: ibis.memtable(table),
}


def _table(rows: list[Row]) -> pa.Table:
    """Each row followed by itself, with its number as the action."""
    columns: dict[str, Any] = {}
    for name in FEATURES:
        values = [row[name] for row in rows]
        columns[name] = pa.array(values, TYPES[name])
        columns[f"next_{name}"] = pa.array(values, TYPES[name])
    columns["action"] = pa.array(range(len(rows)), pa.int64())
    return pa.table(columns)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=25, deadline=None)
@given(partition=partitions(), rows=st.lists(ROWS, min_size=1, max_size=12))
def test_every_engine_finds_the_leaf_of_the_tree(
    engine: str, partition: Partition, rows: list[Row]
) -> None:
    expected = {}
    for number, row in enumerate(rows):
        leaf = slow_leaf(partition, row)
        if leaf is not None:
            expected[number] = partition.labels[leaf]
    columns = Columns(
        state=(),
        action=("action",),
        features=FEATURES,
        next_features=tuple(f"next_{name}" for name in FEATURES),
        partition=partition,
    )
    table = ENGINES[engine](_table(rows))
    if not expected:
        with pytest.raises(LogError, match="no usable transition"):
            read_log(table, columns)
        return
    counts = read_log(table, columns).counts
    found = {}
    for state, action in zip(counts.state.tolist(), counts.action.tolist(), strict=True):
        found[counts.actions.labels[action]] = counts.states.labels[state]
    assert found == expected


def _clinic(num_episodes: int = 60, seed: int = 0) -> dict[str, Any]:
    """A drug helps the weak, whose lactate is high, and harms the others."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(num_episodes):
        lactate = rng.uniform(0, 6)
        ward = str(rng.choice(["icu", "general"]))
        for time in range(10):
            drug = bool(rng.integers(2))
            age = None if rng.random() < 0.1 else float(rng.integers(20, 90))
            rows.append((episode, time, float(lactate), age, ward, "drug" if drug else "wait"))
            change = -1.0 if drug == (lactate >= 3) else 0.7
            lactate = float(np.clip(lactate + change + rng.normal(0, 0.2), 0, 6))
    names = ("episode", "time", "lactate", "age", "ward", "action")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


CLINIC: dict[str, Any] = {
    "features": ["lactate", "age", "ward"],
    "action": "action",
    "episode": "episode",
    "time": "time",
}


def test_a_policy_for_a_condition_is_learned_from_raw_columns(tmp_path: Path) -> None:
    learner = TransferLearner(Goal(prefer=["lactate < 2"])).fit(_clinic(), **CLINIC)
    assert learner.columns_ is not None
    partition = learner.columns_.partition
    assert partition is not None
    low = {"lactate": 2.4, "age": None, "ward": "icu"}
    high = {"lactate": 4.5, "age": 40.0, "ward": "general"}
    best = {}
    for name, row in (("low", low), ("high", high)):
        rule = learner.rule(partition.labels[partition.leaf_of(row)])
        best[name] = max(rule, key=rule.__getitem__)
    assert best == {"low": "wait", "high": "drug"}

    # What was learned is in the file, and further logs are read with it.
    learner.save(tmp_path / "policy.safetensors")
    again = load(tmp_path / "policy.safetensors")
    assert again.columns_ == learner.columns_
    more = _clinic(seed=1)
    assert again.count(more).key.tolist() == learner.count(more).key.tolist()
    before = again.counts_.num_records
    again.update(more)
    assert again.counts_.num_records == before + learner.count(more).num_records


def test_no_leaf_straddles_the_condition_of_the_goal() -> None:
    learner = TransferLearner(Goal(prefer=["lactate < 2 and ward == icu"]))
    learner.fit(_clinic(), **CLINIC)
    goal = learner.retarget(Goal(prefer=["lactate < 2"])).goal
    assert goal == Goal(prefer=["lactate < 2"])


@settings(max_examples=5, deadline=None)
@given(st.randoms(use_true_random=False))
def test_learned_states_do_not_depend_on_the_order_of_rows(random: Any) -> None:
    log = _clinic(30)
    order = list(range(len(log["time"])))
    random.shuffle(order)
    shuffled = {name: [values[i] for i in order] for name, values in log.items()}
    assert _partition(shuffled) == _partition(log)


@pytest.mark.parametrize("zeros", [(-0.0, 0.0), (0.0, -0.0)])
def test_a_threshold_is_never_negative_zero(zeros: tuple[float, float]) -> None:
    """Which of the equal zeros comes first must not decide what the states are called."""
    log = {
        "x": [-1.0, -1.0, *zeros] * 100,
        "did": ["a", "b"] * 200,
        "result": ["good", "bad", "bad", "good"] * 100,
    }
    columns = Columns.of(features="x", action="did", outcome="result")
    labels = read_log(log, columns).counts.states.labels
    assert labels[:2] == ("x < 0", "x >= 0")


@pytest.mark.parametrize("engine", ENGINES)
def test_learned_states_do_not_depend_on_the_engine(engine: str) -> None:
    log = _clinic(30)
    assert _partition(ENGINES[engine](pa.table(log))) == _partition(log)


def _partition(log: Any) -> Partition | None:
    return read_log(log, Columns.of(**CLINIC)).columns.partition


def test_state_columns_and_features_make_product_states() -> None:
    log = _clinic()
    counts = count_transitions(
        log, "ward", "action", features="lactate", episode="episode", time="time"
    )
    assert counts.states.fields == ("ward", "features")
    assert counts.states.field("ward")[0].labels == ("general", "icu")


def test_max_states_bounds_the_number_of_leaves() -> None:
    partition = read_log(_clinic(), Columns.of(**CLINIC, max_states=3)).columns.partition
    assert partition is not None
    assert len(partition) <= 3


@pytest.mark.parametrize(
    ("given_columns", "message"),
    [
        ({"features": ["lactate", "lactate"]}, "named twice"),
        ({"features": ["action"]}, "named twice"),
        ({"max_states": 1}, "at least 2"),
        ({"max_states": 2.5}, "whole number"),
        ({"next_features": ["age"]}, "next_features needs as many columns as features: 3, not 1"),
    ],
)
def test_features_that_make_no_sense_are_refused(
    given_columns: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        Columns.of(**(CLINIC | given_columns))


def test_a_partition_of_other_features_is_refused() -> None:
    columns = read_log(_clinic(), Columns.of(**CLINIC)).columns
    with pytest.raises(ParameterError, match="the partition is one of"):
        replace(columns, features=("lactate",))


def test_one_shot_decisions_have_states_by_what_came_of_them() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 400)
    action = rng.choice(["left", "right"], 400)
    is_good = (action == "left") == (x < 4)
    log = {"x": x, "action": action, "result": np.where(is_good, "good", "bad")}
    by_outcome = read_log(log, Columns.of(features="x", action="action", outcome="result"))
    by_reward = read_log(
        log | {"reward": is_good.astype(float)},
        Columns.of(features="x", action="action", reward="reward"),
    )
    for reading in (by_outcome, by_reward):
        partition = reading.columns.partition
        assert partition is not None
        thresholds = [split.below for split in partition.splits if split.below is not None]
        assert min(abs(threshold - 4) for threshold in thresholds) < 0.3


def test_states_in_which_an_episode_ends_may_be_a_condition() -> None:
    learner = TransferLearner(Goal(prefer=["lactate < 1"]))
    with pytest.warns(LogWarning, match="that leave a terminal state"):
        learner.fit(_clinic(), **CLINIC, terminal=["lactate < 1"])
    counts = learner.counts_
    ended = {counts.states.labels[index] for index in counts.terminal.tolist()}
    assert ended
    assert all(str(label).startswith("lactate < ") for label in ended)


def test_a_large_log_is_sampled_by_episodes_or_by_records(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _clinic(400)
    learn = partial(growth.learn_partition, sample_rows=2000)
    monkeypatch.setattr(growth, "learn_partition", learn)
    sampled = _partition(log)
    assert sampled is not None
    assert sampled.num_records is not None
    assert 1000 < sampled.num_records < 3000
    assert _partition(pl.LazyFrame(log)) == sampled
    reversed_log = {name: values[::-1] for name, values in log.items()}
    assert _partition(reversed_log) == sampled

    # Few episodes are too few to sample from.
    few = _clinic(400) | {"episode": [each % 4 for each in log["episode"]]}
    few["time"] = list(range(len(log["time"])))
    by_records = _partition(few)
    assert by_records is not None
    assert by_records.num_records is not None
    assert 1000 < by_records.num_records < 3000


def test_states_tell_apart_what_decides_rather_than_what_happens_anyway() -> None:
    rng = np.random.default_rng(4)
    rows: dict[str, list[object]] = {
        name: [] for name in ("who", "t", "season", "dose", "ill", "did")
    }
    for who in range(150):
        season = rng.normal()
        ill = rng.uniform(-1, 1)
        for t in range(10):
            dose = rng.uniform(-1, 1)
            did = rng.choice(["give", "wait"])
            for name, value in zip(rows, (who, t, season, dose, ill, did), strict=True):
                rows[name].append(value)
            season = 0.99 * season + rng.normal(scale=0.05)
            helps = (did == "give") == (dose < 0.25)
            ill = float(np.clip(0.5 * ill + (-0.3 if helps else 0.3) + season, -3, 3))
    columns = Columns.of(
        features=["season", "dose", "ill"], action="did", episode="who", time="t", max_states=6
    )
    partition = read_log(rows, columns, goal=Goal(prefer="ill < 0")).columns.partition
    assert partition is not None
    cuts = [split.below for split in partition.splits if split.feature == 1]
    assert any(0.15 < cut < 0.35 for cut in cuts if cut is not None)


@pytest.fixture(scope="module")
def wards() -> dict[str, list[Any]]:
    """Episodes in which a level rises or falls by what is done."""
    rng = np.random.default_rng(5)
    rows: dict[str, list[Any]] = {name: [] for name in ("who", "t", "level", "did")}
    for who in range(30):
        level = rng.uniform(0, 6)
        for t in range(6):
            did = str(rng.choice(["down", "up"]))
            for name, value in zip(rows, (who, t, level, did), strict=True):
                rows[name].append(value)
            level = float(np.clip(level + (1 if did == "up" else -1), 0, 6))
    return rows


ORDER: dict[str, Any] = {"action": "did", "episode": "who", "time": "t"}


@pytest.mark.parametrize(
    ("terminal", "message"),
    [
        ("level << 2", "expected a number or text, found '<'"),
        ("low", "after 'low', found the end"),
        ("level > high", "level > high: level holds numbers, and 'high' is none"),
        ("height > 3", "'height' is none of the features, which are level"),
    ],
)
def test_terminal_states_that_no_leaf_can_be_are_refused(
    terminal: str, message: str, wards: dict[str, list[Any]]
) -> None:
    learner = TransferLearner(Goal(prefer="level < 2"))
    with pytest.raises(ParameterError, match=re.escape(message)):
        learner.fit(wards, features=["level"], terminal=terminal, **ORDER)


def test_an_unfinished_condition_is_shown_with_the_place(wards: dict[str, list[Any]]) -> None:
    learner = TransferLearner(Goal(prefer="level <"))
    with pytest.raises(ConditionError, match="character 8"):
        learner.fit(wards, features=["level"], **ORDER)


def test_a_log_without_rows_is_refused() -> None:
    rows: dict[str, list[Any]] = {"who": [], "t": [], "level": [], "did": []}
    table = pd.DataFrame(rows).astype({"level": float, "did": str})
    with pytest.raises(LogError, match="no usable transition"):
        TransferLearner(Goal(prefer="level < 2")).fit(table, features=["level"], **ORDER)


def test_actions_of_one_shot_decisions_are_forbidden_by_features() -> None:
    rng = np.random.default_rng(6)
    level = rng.uniform(0, 10, size=400)
    did = rng.choice(["blue", "red"], size=400)
    is_good = rng.random(400) < np.where((level > 5) == (did == "red"), 0.8, 0.2)
    log = {"level": level, "did": did, "result": np.where(is_good, "won", "lost")}
    goal = Goal(prefer="won", forbid=[("level > 7", "red")])
    learner = TransferLearner(goal).fit(log, features=["level"], action="did", outcome="result")
    assert learner.rule({"level": 8.0})["red"] == 0
    assert learner.rule({"level": 6.0})["red"] > 0.9


def test_states_of_an_encoder_are_not_exported(wards: dict[str, list[Any]], tmp_path: Path) -> None:
    learner = TransferLearner(Goal(prefer=[0]))
    learner.fit(wards, state=KMeans(3), features=["level"], **ORDER)
    with pytest.raises(ParameterError, match="come from an encoder"):
        export_policy(learner, tmp_path / "policy.sql", "sql")


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_a_thousand_bins_are_counted() -> None:
    values = np.arange(2000.0).tolist()
    log = {"x": values, "a": ["go"] * 2000, "then": values}
    counts = count_transitions(log, "x", "a", "then", bins={"x": 1000})
    assert len(counts.states) == 1000
    assert set(counts.records.tolist()) == {2}


def test_a_goal_may_join_labels_and_features(wards: dict[str, list[Any]]) -> None:
    table = {**wards, "ward": ["a" if who % 2 else "b" for who in wards["who"]]}
    learner = TransferLearner(Goal(prefer="ward == a and level < 2.345"))
    learner.fit(table, state="ward", features=["level"], **ORDER)
    wanted = learner.ideal_.transition[0, 0] > 1e-4
    regions = learner.regions_
    for is_wanted, label in zip(wanted.tolist(), learner.counts_.states.labels, strict=True):
        level = regions[label]["level"]
        assert isinstance(level, Interval)
        assert level.high <= 2.345 or level.low >= 2.345
        assert is_wanted == (regions[label]["ward"].contains("a") and level.high <= 2.345)


def _smokers(written: dict[bool, Any], num_rows: int = 200, seed: int = 0) -> pa.Table:
    """One-shot decisions of which one suits smokers; every tenth smoker is not known."""
    rng = np.random.default_rng(seed)
    smoker = rng.random(num_rows) < 0.5
    drug = rng.random(num_rows) < 0.5
    values = [None if i % 10 == 0 else written[bool(each)] for i, each in enumerate(smoker)]
    columns = {
        "smoker": pa.array(values),
        "action": ["drug" if each else "wait" for each in drug],
        "result": ["good" if s == d else "bad" for s, d in zip(smoker, drug, strict=True)],
    }
    return pa.table(columns)


BOOLEANS: dict[str, dict[bool, Any]] = {
    "booleans": {True: True, False: False},
    "text of pandas": {True: "True", False: "False"},
    "text of JSON": {True: "true", False: "false"},
}
ONE_SHOT: dict[str, Any] = {"features": "smoker", "action": "action", "outcome": "result"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("first", BOOLEANS)
@pytest.mark.parametrize("second", BOOLEANS)
def test_booleans_and_their_text_are_one_feature(engine: str, first: str, second: str) -> None:
    learned = _smokers(BOOLEANS[first])
    goal = Goal(prefer="good", forbid=[("smoker == true", "wait")])
    learner = TransferLearner(goal).fit(learned, **ONE_SHOT)

    # Other tables with the same values are the same log, and its decisions are the same.
    table = _smokers(BOOLEANS[second])
    assert learner.count(ENGINES[engine](table)) == learner.counts_
    expected = learner.predict(learned).tolist()
    assert learner.predict(table).tolist() == expected
    rows = [{"smoker": BOOLEANS[second][each]} for each in (True, False)]
    assert learner.predict(rows).tolist() == ["drug", "wait"]


def test_other_words_than_true_and_false_are_no_booleans() -> None:
    learner = TransferLearner(Goal(prefer="good")).fit(_smokers(BOOLEANS["booleans"]), **ONE_SHOT)
    others = _smokers({True: "yes", False: "false"})
    with pytest.raises(LogError, match="'smoker' must hold true and false, not 'yes'"):
        learner.update(others)


def test_a_log_that_tells_words_apart_keeps_them_as_categories() -> None:
    learner = TransferLearner(Goal(prefer="good")).fit(
        pa.concat_tables(
            [_smokers(BOOLEANS["text of pandas"]), _smokers(BOOLEANS["text of JSON"])]
        ),
        **ONE_SHOT,
    )
    partition = learner.columns_.partition if learner.columns_ else None
    assert partition is not None
    assert partition.features[0].categories == ("False", "True", "false", "true")
    assert partition.features[0].value_of("True") == "True"
    assert partition.features[0].value_of(True) == "true"


def test_codes_that_look_like_numbers_stay_categories(tmp_path: Path) -> None:
    """Whatever other codes a file of further rows has, even none with a letter."""
    codes = ["1", "2", "A", "B"] * 100
    did = (["give"] * 4 + ["wait"] * 4) * 50
    result = ["good", "bad", "good", "bad", "bad", "good", "bad", "good"] * 50
    log = {"code": codes, "did": did, "result": result}
    learner = TransferLearner(Goal(prefer="good"), method="TL")
    learner.fit(log, features="code", action="did", outcome="result")

    (tmp_path / "rows.csv").write_text("code\n1\n2\n")
    assert learner.predict(tmp_path / "rows.csv").tolist() == ["give", "wait"]
    assert not learner.decisions(tmp_path / "rows.csv").is_extrapolation.any()
    (tmp_path / "more.csv").write_text("code,did,result\n1,give,good\n2,wait,good\n")
    before = learner.counts_.num_records
    assert learner.update(tmp_path / "more.csv").counts_.num_records == before + 2
    for number in (1.0, date(2024, 1, 1)):
        with pytest.raises(LabelError, match=r"row 1: 'code' is .*, which is not text"):
            learner.predict([{"code": number}])
