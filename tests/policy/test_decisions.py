"""Decisions for tables of raw rows: predict, predict_proba and decide."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pastwise as pw
from pastwise.errors import LabelError, ParameterError, UnknownLabelError
from pastwise.policy.export import Export

LOG = {
    "x": [0.5, 1.5, 0.2, 1.7, 0.9, 1.1],
    "ward": ["A", "A", "B", "B", "A", "B"],
    "did": ["up", "stay", "up", "down", "stay", "down"],
    "patient": [1, 1, 2, 2, 3, 3],
    "hour": [0, 1, 0, 1, 0, 1],
}
STATE = ["x", "ward"]
ROWS: dict[str, list[Any]] = {
    "x": [0.1, 1.9, 1.0],
    "ward": ["A", "B", "A"],
    "name": ["Ann", "Bob", "Cy"],
}
LABELS = [("< 1", "A"), (">= 1", "B"), (">= 1", "A")]


def learned(**options: Any) -> pw.TransferLearner:
    goal = pw.Goal(targets={"x": {">= 1": 1}})
    learner = pw.TransferLearner(goal, method="TL", **options)
    return learner.fit(
        pd.DataFrame(LOG),
        state=STATE,
        action="did",
        episode="patient",
        time="hour",
        bins={"x": [1]},
    )


def kinds_of_tables(folder: Path) -> list[Any]:
    frame = pd.DataFrame(ROWS)
    frame.to_csv(folder / "rows.csv", index=False)
    pq.write_table(pa.table(ROWS), folder / "rows.parquet")
    return [
        frame,
        pl.DataFrame(ROWS),
        pl.DataFrame(ROWS).lazy(),
        pa.table(ROWS),
        ROWS,
        {name: np.array(values) for name, values in ROWS.items()},
        frame.to_dict("records"),
        LABELS,
        list(zip(ROWS["x"], ROWS["ward"], strict=True)),
        str(folder / "rows.csv"),
        folder / "rows.parquet",
    ]


def test_any_kind_of_table_gets_the_rule_of_its_states(tmp_path: Path) -> None:
    learner = learned()
    expected = [list(learner.rule(label).values()) for label in LABELS]
    best = [max(learner.rule(label).items(), key=lambda item: item[1])[0] for label in LABELS]
    assert learner.classes_.tolist() == ["stay", "up"]
    for table in kinds_of_tables(tmp_path):
        assert learner.predict_proba(table).tolist() == expected
        assert learner.predict(table).tolist() == best


def test_decisions_come_in_the_callers_library() -> None:
    learner = learned()
    frame = pd.DataFrame(ROWS, index=[7, 8, 9])
    decided = learner.decide(frame)
    assert isinstance(decided, pd.DataFrame)
    assert decided.index.tolist() == [7, 8, 9]
    assert frame.join(decided).columns.tolist() == [
        *("x", "ward", "name"),
        *("action", "probability", "state", "records", "episodes", "is_extrapolation"),
    ]
    plain = decided.to_dict("list")
    assert plain["state"] == ['["< 1", "A"]', '[">= 1", "B"]', '[">= 1", "A"]']
    assert plain["records"] == [2, 0, 0], "the last records of episodes are not followed"
    assert plain["episodes"] == [2, 0, 0]
    assert plain["is_extrapolation"] == [False, True, True]
    assert isinstance(learner.decide(pl.DataFrame(ROWS)), pl.DataFrame)
    assert isinstance(learner.decide(pa.table(ROWS)), pa.Table)
    assert learner.decide(pl.DataFrame(ROWS)).to_dict(as_series=False) == plain
    assert learner.decide(ROWS) == plain
    rows = learner.decide(pd.DataFrame(ROWS).to_dict("records"))
    assert [row["action"] for row in rows] == plain["action"]
    assert learner.decide({"x": 0.1, "ward": "A"})["action"] == plain["action"][:1]


def test_a_row_that_no_state_matches_is_refused_or_marked() -> None:
    rows = {"x": [0.5, 1.5, None], "ward": ["A", "C", "A"]}
    with pytest.raises(UnknownLabelError, match=r"row 2: unknown.*2 of 3 rows match no state"):
        learned().predict(rows)
    with pytest.raises(UnknownLabelError, match=r"row 1, the column 'x'.*is missing"):
        learned().decide([{"x": None, "ward": "A"}])
    with pytest.warns(pw.UnseenStateWarning, match="2 of 3 rows") as caught:
        decided = learned(on_unseen="prior").decide(rows)
    assert [warning.filename for warning in caught] == [__file__]
    assert decided["is_extrapolation"] == [False, True, True]
    assert decided["state"] == ['["< 1", "A"]', None, None]
    assert decided["probability"][1:] == [0.5, 0.5]
    with pytest.warns(pw.UnseenStateWarning):
        assert len(learned().predict(rows, on_unseen="prior")) == 3
    with pytest.raises(ParameterError, match="'guess'"):
        learned().predict(rows, on_unseen="guess")  # type: ignore[arg-type]


def test_malformed_tables_are_refused() -> None:
    learner = learned()
    with pytest.raises(LabelError, match="no column 'ward'"):
        learner.predict({"x": [1.0]})
    with pytest.raises(ValueError, match="no column 'ward'"):
        learner.predict(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(ParameterError, match="differ in length"):
        learner.predict({"x": [1.0], "ward": ["A", "B"]})
    with pytest.raises(LabelError, match="row 1: the row has no column 'ward'"):
        learner.predict([{"x": 1.0}])
    counts = pw.TransferLearner(pw.Goal(prefer=0)).fit(
        pw.TransitionCounts.from_records([0], [0], [1], pw.Space.of_size(2), pw.Space.of_size(2))
    )
    assert counts.predict([0, 1]).shape == (2,)
    with pytest.raises(ParameterError, match="give a list of states"):
        counts.predict(pd.DataFrame({"s": [0]}))


def test_no_rows_get_no_decisions() -> None:
    assert learned().predict([]).tolist() == []
    assert learned().decide({"x": [], "ward": []})["action"] == []


def test_product_actions_are_tuples_and_columns() -> None:
    log = {"s": ["a", "b"], "drug": ["x", "y"], "dose": [1, 2], "n": ["b", "b"]}
    learner = pw.TransferLearner(pw.Goal(prefer="b"), method="TL")
    learner.fit(log, state="s", action=["drug", "dose"], next_state="n")
    assert learner.predict(["a", "b"]).tolist() == [("x", 1), ("y", 2)]
    decided = learner.decide({"s": ["a", "b"]})
    assert (decided["drug"], decided["dose"]) == (["x", "y"], [1, 2])
    assert json.loads(json.dumps(learner.decisions(["a"]).to_dict()))["decisions"][0] == {
        "row": 1,
        "action": '["x", 1]',
        "probability": learner.rule("a")["x", 1],
        "state": "a",
        "records": 1,
        "episodes": None,
        "is_extrapolation": False,
    }


def test_decisions_are_written_as_tables(tmp_path: Path) -> None:
    decisions = learned().decisions(ROWS)
    decisions.write(tmp_path / "out.csv")
    decisions.write(tmp_path / "out.parquet")
    assert pd.read_csv(tmp_path / "out.csv").to_dict("list") == decisions.columns()
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == decisions.columns()
    with pytest.raises(ParameterError, match=r"\.csv or \.parquet"):
        decisions.write(tmp_path / "out.txt")


def test_no_row_is_in_an_outcome() -> None:
    """An outcome is a state of the counts; a context of the same name is not that state."""
    log = {"ward": ["A", "B", "A"], "did": ["x", "y", "y"], "result": ["well", "ill", "well"]}
    learner = pw.TransferLearner(pw.Goal(prefer="well"), method="TL")
    learner.fit(log, state="ward", action="did", outcome="result")
    assert learner.decide({"ward": ["A"]})["records"] == [2]
    with pytest.raises(UnknownLabelError, match="an outcome, no state"):
        learner.predict({"ward": ["well"]})
    with pytest.raises(UnknownLabelError, match="an outcome, no state"):
        learner.live().decide({"ward": "well"})
    exported = Export.of(learner)
    assert [state.label for state in exported.states] == ["A", "B"]
    assert exported.columns == ("ward",)


def test_nothing_is_decided_at_an_outcome() -> None:
    """Neither by its label nor by a row with the same value; the rule still has its row."""
    log = {"x": ["a", "b", "a"], "did": ["p", "q", "q"], "result": ["yes", "no", "no"]}
    learner = pw.TransferLearner(pw.Goal(prefer="yes"), method="TL")
    learner.fit(log, state="x", action="did", outcome="result")
    tables: list[Any] = [["yes"], [{"x": "yes"}], {"x": ["a", "yes"]}]
    for table in tables:
        for call in (learner.predict, learner.predict_proba, learner.decide):
            with pytest.raises(UnknownLabelError, match="it is an outcome, no state"):
                call(table)
    live = learner.live(seed=0)
    live.observe("a", "p", "yes")
    states: list[Any] = ["yes", {"x": "yes"}]
    for state in states:
        for decide in (live.decide, live.choose, live.rule):
            with pytest.raises(UnknownLabelError, match="it is an outcome, no state"):
                decide(state)
    assert live.index("yes") == learner.counts_.states.index("yes")
    assert list(learner.rule_["yes"]) == ["p", "q"]


def test_a_category_that_the_tree_does_not_know_is_extrapolation() -> None:
    """Its row is in a state with records, but none of them is of that category."""
    rng = np.random.default_rng(0)
    size = 2000
    ward = rng.choice(["icu", "general"], size)
    did = rng.choice(["give", "wait"], size)
    is_good = (ward == "icu") == (did == "give")
    result = np.where(rng.random(size) < np.where(is_good, 0.9, 0.1), "well", "ill")
    log = {"ward": ward.tolist(), "did": did.tolist(), "result": result.tolist()}
    learner = pw.TransferLearner(pw.Goal(prefer="well"), method="TL")
    learner.fit(log, features=["ward"], action="did", outcome="result")
    wards = ["icu", "general", "surgery"]
    tables: list[Any] = [{"ward": wards}, [{"ward": each} for each in wards], wards]
    for table in tables:
        decisions = learner.decisions(table)
        assert (decisions.records > 0).all()
        assert decisions.is_extrapolation.tolist() == [False, False, True]
    leaves = [label for label in learner.counts_.states.labels if "ward" in str(label)]
    assert len(leaves) == 2
    assert not learner.decisions(leaves).is_extrapolation.any()


def test_a_tree_that_asks_about_nothing_decides_for_any_kind_of_table(tmp_path: Path) -> None:
    """Its rule is the same for all rows; how many there are, the table says."""
    log = {"x": [0.1, 0.2, 0.3], "did": ["up", "up", "stay"], "result": ["ill", "well", "well"]}
    learner = pw.TransferLearner(pw.Goal(prefer="well"), method="TL")
    learner.fit(log, features=["x"], action="did", outcome="result")
    assert learner.counts_.states.labels == ("any", "ill", "well")
    expected = [list(learner.rule("any").values())] * 3

    rows: dict[str, list[Any]] = {"x": [0.1, float("nan"), 9.0], "name": ["Ann", "Bob", "Cy"]}
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    tables = [rows, [{}, {}, {}], frame, pl.DataFrame(rows), pa.table(rows)]
    for table in [*tables, tmp_path / "rows.csv", tmp_path / "rows.parquet"]:
        assert learner.predict_proba(table).tolist() == expected
