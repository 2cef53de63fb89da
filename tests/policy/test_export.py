"""Exports decide as the policy does: SQL, JSON, Python, Excel and ONNX."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from datetime import date
from functools import cache
from math import inf, nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import onnxruntime
import openpyxl
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pastwise as pw
from pastwise import Columns
from pastwise.data.partition import Feature, Partition, Split
from pastwise.data.regions import contains, is_missing
from pastwise.data.space import key_of
from pastwise.errors import ParameterError
from pastwise.logs.read import read_log
from pastwise.policy.export import Export, export_policy
from pastwise.policy.export_onnx import to_onnx
from pastwise.policy.export_python import to_python
from pastwise.policy.export_sql import to_sql

EDGES = [-1.5, 0.1, 0.30000000000000004, 2.0]
OPEN_EDGES = [-inf, 0.0, inf]
WARDS = ["A", "it's", "=1+1", 'a "b"', "Ä\\n", "https://x.org", "\a"]


def log_of(size: int = 60) -> dict[str, list[Any]]:
    rng = np.random.default_rng(0)
    log: dict[str, list[Any]] = {
        "x": rng.uniform(-1.5, 2.0, size).tolist(),
        "y y": rng.normal(0.0, 1.0, size).tolist(),
        "ward": rng.choice(WARDS, size).tolist(),
        "beds": rng.integers(0, 3, size).tolist(),
        "act": rng.choice(["up", "d'own"], size).tolist(),
    }
    return log


KINDS: dict[str, dict[str, Any]] = {
    "leaves": {},
    "leaves and labels": {},
    "labels": {"state": "ward"},
    "numbers": {"state": "beds"},
    "bins": {"state": "x", "bins": {"x": EDGES}},
    "product": {"state": ["x", "y y", "ward", "beds"], "bins": {"x": EDGES, "y y": OPEN_EDGES}},
}


PARTITION = Partition(
    features=(
        Feature("x", "number", may_be_missing=True),
        Feature("y y", "number"),
        Feature("ward", "category", tuple(WARDS), may_be_missing=True),
        Feature("flag", "boolean"),
        Feature("never read", "number"),
    ),
    splits=(
        Split(0, 1, 2, below=0.30000000000000004),
        Split(1, -1, -2, below=0.1),
        Split(0, -3, 3, is_missing=True),
        Split(2, 4, 5, among=("A", "it's")),
        Split(3, -4, -5, among=(True,)),
        Split(2, -6, 6, is_missing=True),
        Split(2, -7, -8, among=("=1+1",)),
    ),
)
"""A tree with questions of all kinds, about values that may be missing and others that may not."""


@cache
def learned(kind: str) -> pw.TransferLearner:
    if kind in ("leaves", "leaves and labels"):
        return learned_on_leaves(("beds",) if kind == "leaves and labels" else ())
    options = KINDS[kind]
    names = [options["state"]] if isinstance(options["state"], str) else options["state"]
    log = log_of()
    nexts = {f"next {name}": log[name] for name in names}
    learner = pw.TransferLearner(pw.Goal(prefer_actions="up"), method="TL")
    return learner.fit({**log, **nexts}, action="act", next_state=list(nexts), **options)


def learned_on_leaves(state: tuple[str, ...]) -> pw.TransferLearner:
    """A policy over the leaves of the tree, or over their product with a column."""
    columns = Columns(
        state=state,
        action=("act",),
        features=("x", "y y", "ward", "flag", "never read"),
        partition=PARTITION,
        next_state=tuple(f"next {name}" for name in state),
        next_features=("nx", "ny", "nward", "nflag", "next never"),
    )
    log = log_of(200)
    rng = np.random.default_rng(1)
    log["x"] = [None if rng.random() < 0.2 else value for value in log["x"]]
    log["ward"] = [None if rng.random() < 0.2 else value for value in log["ward"]]
    log["flag"] = (rng.random(200) < 0.5).tolist()
    log |= {"nx": log["x"], "ny": log["y y"], "nward": log["ward"], "nflag": log["flag"]}
    log["next beds"] = log["beds"]
    log["never read"] = log["next never"] = log["y y"]
    counts = read_log(log, columns).counts
    return pw.TransferLearner(pw.Goal(prefer_actions="up"), method="TL").fit_counts(counts, columns)


SPECIAL = [0.0, -0.0, inf, -inf, nan, -nan]
numbers = st.one_of(st.none(), st.floats(-2, 3), st.floats(), st.sampled_from([*EDGES, *SPECIAL]))
rows = st.fixed_dictionaries(
    {
        "x": numbers,
        "y y": numbers,
        "ward": st.one_of(st.none(), st.sampled_from([*WARDS, "unknown", "a"])),
        "beds": st.one_of(st.none(), st.integers(-1, 4)),
        "flag": st.one_of(st.none(), st.booleans()),
    }
)
TYPES = {
    "x": pa.float64(),
    "y y": pa.float64(),
    "ward": pa.string(),
    "beds": pa.int64(),
    "flag": pa.bool_(),
}


def expected(learner: pw.TransferLearner, row: dict[str, Any]) -> tuple[str | None, str | None]:
    """State and most probable action of a row, as the library decides."""
    try:
        decision = learner.decisions([row]).to_dict()["decisions"][0]
    except pw.errors.UnknownLabelError:
        return None, None
    return decision["state"], decision["action"]


def table_of(given_rows: list[dict[str, Any]]) -> pa.Table:
    columns = {}
    for name, kind in TYPES.items():
        columns[name] = pa.array([row[name] for row in given_rows], kind)
    return pa.table(columns)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(st.lists(rows, min_size=1, max_size=20))
def test_sql_decides_as_the_policy_does(kind: str, given_rows: list[dict[str, Any]]) -> None:
    learner = learned(kind)
    connection = duckdb.connect()
    connection.register("my rows", table_of(given_rows))
    query = to_sql(Export.of(learner), "my rows")
    found = connection.sql(query).project("policy_state, policy_action").fetchall()
    assert found == [expected(learner, row) for row in given_rows]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(st.lists(rows, min_size=1, max_size=20))
def test_sqlite_decides_as_the_policy_does(kind: str, given_rows: list[dict[str, Any]]) -> None:
    """SQLite has no name for infinity, and makes 0 of the one that the SQL standard has."""
    learner = learned(kind)
    values = [tuple(row[name] for name in TYPES) for row in given_rows]
    with sqlite3.connect(":memory:") as connection:
        connection.execute(
            "create table rows (x real, 'y y' real, ward text, beds integer, flag boolean)"
        )
        connection.executemany("insert into rows values (?, ?, ?, ?, ?)", values)
        found = [row[-2:] for row in connection.execute(to_sql(Export.of(learner)))]
    assert found == [expected(learner, row) for row in given_rows]


MOMENTS = ["2024-01-01 00:00:00", "2024-01-02 10:30:00", "2024-01-03 10:30:00.25"]


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "timestamp_ns", "date"])
@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_sql_decides_by_moments_in_columns_of_every_type(tmp_path: Path, kind: str) -> None:
    connection = duckdb.connect()
    connection.sql("set timezone = 'UTC'")
    connection.sql(
        f"create table log as select unnest({MOMENTS})::{kind} as d, "
        "unnest(['p', 'q', 'p']) as a, unnest(['y', 'y', 'n']) as o from range(20)"
    )
    path = tmp_path / "log.parquet"
    connection.sql(f"copy log to '{path}'")
    learner = pw.TransferLearner(pw.Goal(prefer="y")).fit(path, state="d", action="a", outcome="o")
    query = to_sql(Export.of(learner), str(path))
    found = connection.sql(query).project("policy_state, policy_action").fetchall()
    decisions = learner.decisions(path).to_dict()["decisions"]
    assert found == [(decision["state"], decision["action"]) for decision in decisions]


def test_sql_decides_by_moments_that_are_text() -> None:
    log = {"d": ["2024-01-01T00:00:00", "2024-01-01 00:00:00"] * 5, "a": ["p", "q"] * 5}
    learner = pw.TransferLearner(pw.Goal(prefer="y"))
    learner.fit({**log, "o": ["y"] * 10}, state="d", action="a", outcome="o")
    query = to_sql(Export.of(learner))
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table rows (d text)")
        connection.executemany("insert into rows values (?)", [(day,) for day in log["d"]])
        found = [row[1] for row in connection.execute(query)]
    assert found == log["d"]


@pytest.mark.parametrize(
    "table", ["main.rows", "memory.main.rows", '"main"."rows"', '"my.rows"', 'main."my.rows"']
)
def test_sql_selects_from_a_table_of_a_schema(table: str) -> None:
    connection = duckdb.connect()
    for name in ("rows", '"my.rows"'):
        connection.sql(f"create table {name} as select 'A' as ward")
    query = to_sql(Export.of(learned("labels")), table)
    assert connection.sql(query).project("policy_state").fetchall() == [("A",)]


@cache
def module_of(kind: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "policy"}
    exec(compile(to_python(Export.of(learned(kind))), "policy.py", "exec"), namespace)
    return namespace


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(rows)
def test_python_decides_as_the_policy_does(kind: str, row: dict[str, Any]) -> None:
    module = module_of(kind)
    state, action = expected(learned(kind), row)
    if state is None:
        with pytest.raises(ValueError, match="no state matches"):
            module["decide"](row)
    else:
        assert (module["state"](row), module["decide"](row)) == (state, action)
        assert module["probabilities"](row) == pytest.approx(learned(kind).rule(row))


def smokers(role: str, written: tuple[Any, Any]) -> pw.TransferLearner:
    """A policy that gives one drug to smokers and the other one to all others."""
    log = {
        "smoker": [*written] * 40,
        "drug": ["a", "a", "b", "b"] * 20,
        "result": ["good", "bad", "bad", "good"] * 20,
    }
    learner = pw.TransferLearner(pw.Goal(prefer="good"))
    return learner.fit(log, {role: "smoker", "action": "drug", "outcome": "result"})


@pytest.mark.parametrize("role", ["features", "state"])
@pytest.mark.parametrize("written", [("True", "False"), ("true", "false"), ("TRUE", "FALSE")])
def test_sql_takes_booleans_for_their_words(role: str, written: tuple[Any, Any]) -> None:
    query = to_sql(Export.of(smokers(role, written)))
    connection = duckdb.connect()
    for smoker in ([True, False, None], ["True", "FALSE", None], ["TRUE", "false", None]):
        kind = pa.bool_() if smoker[0] is True else pa.string()
        connection.register("rows", pa.table({"smoker": pa.array(smoker, kind)}))
        found = connection.sql(query).project("policy_action").fetchall()
        assert found == [("a",), ("b",), (None,)]


@pytest.mark.parametrize("role", ["features", "state"])
@pytest.mark.parametrize("written", [("True", "False"), ("true", "false"), (True, False)])
def test_onnx_takes_words_for_booleans_in_any_case(role: str, written: tuple[Any, Any]) -> None:
    learner = smokers(role, written)
    session = onnxruntime.InferenceSession(to_onnx(Export.of(learner)).SerializeToString())
    smoker = np.array(["true", "FALSE", "True", "False", "TRUE", ""])
    (action,) = session.run(["action"], {"smoker": smoker})
    assert action.tolist() == ["a", "b", "a", "b", "a", ""]


@pytest.mark.parametrize("role", ["features", "state"])
@pytest.mark.parametrize("written", [(True, False), ("True", "False"), ("true", "false")])
def test_python_takes_booleans_for_their_words(role: str, written: tuple[Any, Any]) -> None:
    learner = smokers(role, written)
    namespace: dict[str, Any] = {}
    exec(compile(to_python(Export.of(learner)), "policy.py", "exec"), namespace)
    for value in (True, False, "True", "FALSE", "true"):
        row = {"smoker": value}
        assert namespace["decide"](row) == learner.predict([row])[0]


@pytest.mark.parametrize("value", [0, 1, 1.0, np.True_, 2, 0.5, "yes", "", date(2024, 5, 1)])
def test_python_takes_and_refuses_the_booleans_that_the_policy_does(value: object) -> None:
    learner = smokers("features", (True, False))
    namespace: dict[str, Any] = {}
    exec(compile(to_python(Export.of(learner)), "policy.py", "exec"), namespace)
    row = {"smoker": value}
    try:
        action = learner.predict([row])[0]
    except pw.errors.LabelError:
        with pytest.raises(ValueError, match="neither true nor false"):
            namespace["decide"](row)
    else:
        assert namespace["decide"](row) == action


@pytest.mark.parametrize("missing", [None, nan, pd.NA, pd.NaT, np.datetime64("NaT")])
@pytest.mark.parametrize("kind", ["leaves", "labels", "numbers", "bins"])
def test_python_knows_every_missing_value(kind: str, missing: object) -> None:
    row = {"x": missing, "y y": 0.0, "ward": missing, "beds": missing, "flag": True}
    state, _ = expected(learned(kind), row)
    if state is None:
        with pytest.raises(ValueError, match="no state matches"):
            module_of(kind)["state"](row)
    else:
        assert module_of(kind)["state"](row) == state


def test_python_takes_dates_as_text() -> None:
    days = [date(2024, 5, 1 + day) for day in range(20)]
    log = {"day": days, "did": ["start", "wait"] * 10, "result": ["good", "bad", "bad", "good"] * 5}
    goal = pw.Goal(prefer="good", forbid=[("day < '2024-05-11'", "start")])
    learner = pw.TransferLearner(goal)
    learner.fit(log, features="day", action="did", outcome="result")
    namespace: dict[str, Any] = {}
    exec(compile(to_python(Export.of(learner)), "policy.py", "exec"), namespace)
    for day in (days[3], "2024-05-04", "20240515", "2024-05-15T09:30:00", "2024-05-15 09:30"):
        row = {"day": day}
        assert namespace["state"](row) == expected(learner, row)[0]
    with pytest.raises(ValueError, match="soon"):
        namespace["decide"]({"day": "soon"})


def test_the_module_needs_nothing_but_python(tmp_path: Path) -> None:
    learner = learned("product")
    export_policy(learner, tmp_path / "policy.py", "python")
    row = {"x": 0.5, "y y": 1.0, "ward": "it's", "beds": 2}
    code = f"import policy; print(policy.decide({row!r}), policy.state({row!r}))"
    command = [sys.executable, "-S", "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env={}, capture_output=True, text=True, check=True, timeout=60
    )
    state, action = expected(learner, row)
    assert done.stdout == f"{action} {state}\n"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(st.lists(rows, min_size=1, max_size=20))
def test_onnx_decides_as_the_policy_does(kind: str, given_rows: list[dict[str, Any]]) -> None:
    learner = learned(kind)
    session = session_of(kind)
    inputs = {}
    for each in session.get_inputs():
        values = [row[each.name] for row in given_rows]
        if each.type == "tensor(double)":
            inputs[each.name] = np.array(values, dtype=np.float64)
        else:
            texts = ["" if value is None else key_of(value) for value in values]
            inputs[each.name] = np.array(texts, dtype=object)
    states, actions, probabilities = session.run(None, inputs)
    for index, row in enumerate(given_rows):
        state, action = expected(learner, row)
        assert (states[index], actions[index]) == (state or "", action or "")
        if state is None:
            assert np.isnan(probabilities[index]).all()
        else:
            assert probabilities[index].tolist() == list(learner.rule(row).values())


def test_onnx_needs_a_column_that_the_policy_looks_at(tmp_path: Path) -> None:
    """A partition without a split has one state, whatever the features are."""
    log = {"x": [1.0] * 40, "did": ["p", "q"] * 20, "result": ["yes", "no", "no", "yes"] * 10}
    learner = pw.TransferLearner(pw.Goal(prefer="yes"), method="TL")
    learner.fit(log, features=["x"], action="did", outcome="result")
    with pytest.raises(ParameterError, match="looks at none: it has a single state"):
        export_policy(learner, tmp_path / "policy.onnx", "onnx")
    assert list(tmp_path.iterdir()) == []
    export_policy(learner, tmp_path / "policy.py", "python")


@cache
def session_of(kind: str) -> Any:
    model = to_onnx(Export.of(learned(kind))).SerializeToString()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(rows)
def test_regions_are_where_the_states_are(kind: str, row: dict[str, Any]) -> None:
    """What all formats are written from: a row lies in the region of its state and in no other."""
    export = Export.of(learned(kind))
    inside = [state.key for state in export.states if contains(state.region, row)]
    if any(is_missing(row[name]) for name in export.required):
        inside = []
    state, _ = expected(learned(kind), row)
    assert inside == ([] if state is None else [state])


def test_json_has_exact_edges(tmp_path: Path) -> None:
    learner = learned("product")
    export_policy(learner, tmp_path / "policy.json", "json")
    content = json.loads((tmp_path / "policy.json").read_text(encoding="utf-8"))
    assert content["columns"] == ["x", "y y", "ward", "beds"]
    lows = {state["where"]["x"]["low"] for state in content["states"]}
    assert lows <= set(EDGES)
    assert 0.30000000000000004 in lows
    first = content["states"][0]
    assert first["where"]["y y"]["low"] is None
    assert first["probabilities"] == learner.rule_.to_dict()[first["state"]]


def test_a_sheet_has_values_and_no_formulas(tmp_path: Path) -> None:
    learner = learned("labels")
    export_policy(learner, tmp_path / "policy.xlsx", "xlsx")
    book = openpyxl.load_workbook(tmp_path / "policy.xlsx")
    header, *rows_of_sheet = book["Policy"].iter_rows(values_only=True)
    table = {row[0]: dict(zip(header, row, strict=True)) for row in rows_of_sheet}
    shown = {state.replace("\a", "\ufffd"): state for state in map(str, learner.rule_)}
    assert set(table) == set(shown)
    for name, row in table.items():
        state = shown[str(name)]
        decision = learner.decisions([state]).to_dict()["decisions"][0]
        assert (row["action"], row["records"]) == (decision["action"], decision["records"])
        assert row["probability"] == pytest.approx(decision["probability"])
    kinds = {cell.data_type for cells in book["Policy"].iter_rows() for cell in cells}
    assert "f" not in kinds
    assert book["About"]["B2"].value == "TL"


def test_a_policy_of_counts_has_a_state_column(tmp_path: Path) -> None:
    counts = learned("labels").counts_.relabelled(
        pw.Space(learned("labels").counts_.states.labels), learned("labels").counts_.actions
    )
    learner = pw.TransferLearner(pw.Goal(prefer="A")).fit(counts)
    assert Export.of(learner).columns == ("state",)


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="not 'pickle'"):
        export_policy(learned("labels"), tmp_path / "policy.pickle", "pickle")
    assert not list(tmp_path.iterdir())
