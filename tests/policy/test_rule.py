"""A rule by labels: look-up, tables and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow.parquet as pq
import pytest

from pastwise import Rule, Space, UnseenStateWarning
from pastwise._display import to_frame
from pastwise.errors import FileError, LabelError
from pastwise.logs.rows import RowReader
from pastwise.policy.rule import known_index

P = np.array([[0.25, 0.75], [1.0, 0.0], [1 / 3, 2 / 3]])
RULE = Rule(Space(("cold", "mild", "warm")), Space(("heat", "wait")), P, np.array([2.0, 0.5, 1.0]))
LENIENT = Rule(RULE.states, RULE.actions, P, RULE.similarity, np.array([0.5, 0.5]))
PRODUCT = Rule(
    Space((("cold", 1), ("cold", 2)), ("room", "hour")),
    Space((("heat", True), ("wait", False)), ("did", "window")),
    P[:2],
    np.array([2.0, 0.0]),
)


def test_a_rule_is_a_mapping_of_states() -> None:
    assert RULE["cold"] == {"heat": 0.25, "wait": 0.75}
    assert list(RULE) == ["cold", "mild", "warm"]
    assert len(RULE) == 3
    assert dict(RULE)["mild"] == {"heat": 1.0, "wait": 0.0}
    assert dict(PRODUCT)["cold", 2] == {("heat", True): 1.0, ("wait", False): 0.0}


@pytest.mark.parametrize("rule", [RULE, LENIENT])
def test_only_known_states_are_in_a_rule(rule: Rule) -> None:
    """As of any mapping; to look does not warn."""
    assert "cold" in rule
    assert "hot" not in rule
    assert rule.get("hot") is None
    assert rule.get("hot", {}) == {}
    assert rule.get("cold") == rule["cold"]
    assert object() not in rule


def test_a_state_may_be_asked_for_by_its_key() -> None:
    assert PRODUCT['["cold", 1]'] == PRODUCT["cold", 1]
    assert PRODUCT[("cold", 1)][("heat", True)] == 0.25


def test_an_unknown_state_is_an_error_or_the_fallbacks() -> None:
    with pytest.raises(ValueError, match="did you mean 'cold'"):
        RULE["colt"]
    with pytest.warns(UnseenStateWarning, match="'colt'"):
        assert LENIENT["colt"] == {"heat": 0.5, "wait": 0.5}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: LENIENT["colt"],
        lambda: LENIENT.row("colt"),
        lambda: LENIENT.sample("colt", np.random.default_rng(0)),
        lambda: (
            lambda: known_index(RowReader(None, LENIENT.states).index, "colt", refuse=False)
        )(),  # as a method of a learner asks
    ],
)
def test_the_warning_points_at_the_line_that_asked(ask: Any) -> None:
    with pytest.warns(UnseenStateWarning) as caught:
        ask()
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, ask.__code__.co_firstlineno)]


def test_keys_of_a_rule_are_text() -> None:
    assert PRODUCT.to_dict() == {
        '["cold", 1]': {'["heat", true]': 0.25, '["wait", false]': 0.75},
        '["cold", 2]': {'["heat", true]': 1.0, '["wait", false]': 0.0},
    }


def test_columns_have_a_row_for_each_state_and_action() -> None:
    assert RULE.columns() == {
        "state": ["cold", "cold", "mild", "mild", "warm", "warm"],
        "action": ["heat", "wait"] * 3,
        "probability": [0.25, 0.75, 1.0, 0.0, 1 / 3, 2 / 3],
        "similarity": [2.0, 2.0, 0.5, 0.5, 1.0, 1.0],
    }
    assert PRODUCT.columns() == {
        "room": ["cold"] * 4,
        "hour": [1, 1, 2, 2],
        "did": ["heat", "wait"] * 2,
        "window": [True, False] * 2,
        "probability": [0.25, 0.75, 1.0, 0.0],
        "similarity": [2.0, 2.0, 0.0, 0.0],
    }


@pytest.mark.parametrize("name", ["action", "probability", "similarity"])
def test_no_field_hides_a_column(name: str) -> None:
    """A field of the states that has the name of another column is still there."""
    rule = Rule(Space((("red", 1), ("blue", 2)), (name, "hour")), RULE.actions, P[:2], np.ones(2))
    columns = rule.columns()
    assert len(columns) == 5
    assert [list(values) for values in columns.values() if "red" in values] == [
        ["red", "red", "blue", "blue"]
    ]


def test_names_that_are_taken_twice_hide_nothing() -> None:
    states = Space((("a", "b", "c"), ("d", "e", "f")), ("similarity", "state similarity", "did"))
    columns = Rule(
        states, Space((("x", 1), ("y", 2)), ("did", "state")), P[:2], np.ones(2)
    ).columns()
    assert [values[:2] for values in columns.values()] == [
        *(["a", "a"], ["b", "b"], ["c", "c"]),
        *(["x", "y"], [1, 2], [0.25, 0.75], [1.0, 1.0]),
    ]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_the_named_library(library: str) -> None:
    named = Rule(RULE.states, RULE.actions, P, RULE.similarity, backend=library)
    for frame in (RULE.to_frame(library), named.to_frame()):
        assert type(frame).__module__.partition(".")[0] == library
        assert frame["probability"].to_numpy().tolist() == P.ravel().tolist()


def test_without_a_library_some_frame_comes() -> None:
    assert to_frame({"a": [1, 2]}, None)["a"].tolist() == [1, 2]


def test_export_to_parquet(tmp_path: Path) -> None:
    PRODUCT.export(tmp_path / "rule.PARQUET")
    assert pq.read_table(tmp_path / "rule.PARQUET").to_pydict() == PRODUCT.columns()


def test_export_to_csv(tmp_path: Path) -> None:
    RULE.export(tmp_path / "rule.csv")
    with (tmp_path / "rule.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = RULE.columns()
    assert {name: [row[name] for row in rows] for name in columns} == {
        n: [*map(str, v)] for n, v in columns.items()
    }


def test_export_to_json(tmp_path: Path) -> None:
    PRODUCT.export(str(tmp_path / "rule.json"))
    assert json.loads((tmp_path / "rule.json").read_text(encoding="utf-8")) == PRODUCT.to_dict()


def test_export_refuses_what_it_cannot_write(tmp_path: Path) -> None:
    for name in ("rule.xlsx", "rule"):
        with pytest.raises(ValueError, match=r"\.parquet, \.csv or \.json"):
            RULE.export(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FileError, match="is a folder"):
        RULE.export(tmp_path / "folder.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.csv"]


def test_a_failed_export_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the writer fails")

    (tmp_path / "rule.parquet").write_text("old")
    monkeypatch.setattr("pyarrow.parquet.write_table", fail)
    with pytest.raises(RuntimeError, match="the writer fails"):
        RULE.export(tmp_path / "rule.parquet")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("rule.parquet", "old")
    ]


@pytest.mark.parametrize(
    ("labels", "written"),
    [
        (("a", 1), ["a", "1"]),
        ((True, 2), ["true", "2"]),
        ((1, 0.5), [1.0, 0.5]),
        ((2**63, 1), ["9223372036854775808", "1"]),
        ((2**53 + 1, 0.5), ["9007199254740993", "0.5"]),
        ((-(2**63), 2**63 - 1), [-(2**63), 2**63 - 1]),
    ],
)
def test_labels_of_several_types_are_exported_as_text(
    tmp_path: Path, labels: tuple[Any, ...], written: list[Any]
) -> None:
    mixed = Rule(Space(labels), Space(("x",)), np.ones((2, 1)), np.ones(2))
    mixed.export(tmp_path / "rule.parquet")
    assert pq.read_table(tmp_path / "rule.parquet").column("state").to_pylist() == written
    for backend in ("pandas", "polars", "pyarrow"):
        assert list(nw.from_native(mixed.to_frame(backend))["state"]) == written


def test_exported_text_is_no_formula(tmp_path: Path) -> None:
    rule = Rule(Space(("=1+1", "-5")), Space(("@x",)), np.ones((2, 1)), np.ones(2))
    rule.export(tmp_path / "rule.csv")
    lines = (tmp_path / "rule.csv").read_text().splitlines()
    assert lines[1:] == ["'=1+1,'@x,1.0,1.0", "-5,'@x,1.0,1.0"]


def test_what_is_no_label_is_refused_even_where_the_prior_answers() -> None:
    with pytest.raises(LabelError, match="is no label"):
        LENIENT[["a"]]  # type: ignore[index]
    assert ["a"] not in LENIENT  # type: ignore[comparison-overlap]
    assert LENIENT.get(["a"]) is None  # type: ignore[arg-type]


def test_a_notebook_shows_labels_as_text_and_dims_what_rests_on_little() -> None:
    rule = Rule(
        Space(("<b>cold</b>", "a & b")), Space(("<script>", "wait")), P[:2], np.array([0.99, 1.0])
    )
    shown = rule._repr_html_()
    assert "<b>" not in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    dimmed, clear = shown.split("<tr")[2:]
    assert "opacity" in dimmed
    assert "&lt;b&gt;cold&lt;/b&gt;" in dimmed
    assert "opacity" not in clear
    assert "a &amp; b" in clear
