"""Inputs as people have them: each is read as it is meant, or refused with what to do."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pastwise import Goal, TransferLearner, TransitionCounts, count_transitions, load, validate_log
from pastwise.errors import (
    LogError,
    MissingDependencyError,
    ParameterError,
    UnknownColumnError,
)
from pastwise.logs import files

COLUMNS: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}
ROWS: list[dict[str, Any]] = [
    {"s": "cold", "a": "heat", "n": "mild"},
    {"s": "mild", "a": "wait", "n": "mild"},
    {"s": "cold", "a": "heat", "n": "mild"},
]
TABLE = {name: [row[name] for row in ROWS] for name in ("s", "a", "n")}


def expected() -> TransitionCounts:
    return count_transitions(TABLE, **COLUMNS)


# Rows and arrays.


def test_list_of_dicts() -> None:
    assert count_transitions(ROWS, **COLUMNS) == expected()
    assert validate_log(ROWS, COLUMNS).rows == 3


def test_keys_that_some_rows_lack_are_missing_values() -> None:
    rows = [{"note": 1}, *ROWS, {"s": "cold", "a": "heat"}]
    with pytest.warns(UserWarning, match="without"):
        assert count_transitions(rows, **COLUMNS) == expected()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "the list is empty"),
        ([("cold", "heat", "mild")], "rows as mappings.*item 0 is"),
        ([ROWS[0], 5], "item 1 is 5"),
        (np.zeros(3), "got the shape \\(3,\\)"),
        (np.zeros((2, 2, 2)), "got the shape \\(2, 2, 2\\)"),
        (5, "a list of rows, an array of NumPy"),
    ],
)
def test_what_is_no_log_is_refused(table: Any, message: str) -> None:
    with pytest.raises(LogError, match=message):
        count_transitions(table, **COLUMNS)


@pytest.mark.parametrize("kind", [int, float, object])
def test_array_with_columns_by_number(kind: type) -> None:
    """Whole numbers stay whole in an array of fractions."""
    array: Any = np.array([[0, 1, 2], [2, 0, 0], [0, 1, 2]], dtype=kind)
    counts = count_transitions(array, state=0, action=1, next_state=2)
    assert counts.states.labels == (0, 2)
    assert counts.actions.labels == range(2)
    assert all(type(label) is int for label in counts.states.labels)
    assert counts.records.tolist() == [2, 1]


def test_array_with_missing_values_and_fractions() -> None:
    array = np.array([[0.5, 1, 0], [np.nan, 1, 0], [0.5, np.nan, 0], [0, 1, 0]])
    with pytest.warns(UserWarning, match="1 record without"):
        counts = count_transitions(array, state=[0], action=1, next_state=[2])
    assert counts.states.labels == (0, 0.5)
    assert counts.actions.labels == (1,)


def test_structured_array() -> None:
    array = np.array([tuple(row.values()) for row in ROWS], dtype="U4,U4,U4")
    array.dtype.names = ("s", "a", "n")
    assert count_transitions(array, **COLUMNS) == expected()


def test_whole_numbers_as_names_of_columns() -> None:
    names = {"s": 0, "a": 1, "n": 2, "day": 3}
    frame = pd.DataFrame(TABLE).assign(day=[1, 2, 3]).rename(columns=names)
    assert list(frame.columns) == [0, 1, 2, 3]
    counts = count_transitions(frame, state=0, action=1, next_state=2, episode=0, time=3)
    assert counts == count_transitions({str(i): [*frame[i]] for i in frame}, "0", "1", "2")
    assert count_transitions({i: [*frame[i]] for i in frame}, 0, 1, 2) == counts
    pairs = pd.DataFrame({("s", 1): [1], ("a", 1): [2], ("n", 1): [3]})
    with pytest.raises(UnknownColumnError, match="the log has no column 's'"):
        count_transitions(pairs, "s", "a", "n")
    cut = count_transitions(np.array([[1.5, 0, 2.5]] * 3), 0, 1, 2, bins={0: [2]})
    assert cut.states.labels == ("< 2", ">= 2")


# Names of columns.


def test_names_with_a_comma_between_are_explained() -> None:
    with pytest.raises(LogError, match=r"did you mean the columns \['s', 'a'\]\? Give them as a"):
        count_transitions(TABLE, state="s, a", action="a", next_state="n")
    with pytest.raises(LogError, match="the log has no column 's,b'"):
        count_transitions(TABLE, state="s,b", action="a", next_state="n")
    comma = {"s,a": TABLE["s"], **TABLE}
    assert count_transitions(comma, "s,a", "a", "n").num_records == 3


@pytest.mark.parametrize("state", [{"s": "a"}, 1.5, [None], True])
def test_names_that_are_none_are_refused(state: Any) -> None:
    with pytest.raises(ParameterError, match="column"):
        count_transitions(TABLE, state=state, action="a", next_state="n")


def test_dict_in_place_of_columns() -> None:
    learner = TransferLearner(Goal(prefer={"mild": 1}))
    assert learner.fit(TABLE, COLUMNS).counts_ == expected()
    assert learner.fit(TABLE, columns=COLUMNS).counts_ == expected()


# Order of categories.

LEVELS = ["low", "mid", "high"]
LOG = {"s": ["high", "low", "mid", "low"], "a": list("xyxy"), "n": ["low", "mid", "high", "low"]}


def pandas_categories(ordered: bool) -> pd.DataFrame:
    kind = pd.CategoricalDtype(LEVELS, ordered)
    return pd.DataFrame(LOG).astype({"s": kind, "n": kind})


def duckdb_enums() -> Any:
    connection = duckdb.connect()
    connection.execute("create type level as enum ('low', 'mid', 'high')")
    text = connection.from_arrow(pa.table(LOG))
    return text.project("s::level as s, a, n::level as n")


def arrow_dictionaries() -> pa.Table:
    def encoded(values: list[str]) -> pa.Array:
        codes = pa.array([LEVELS.index(value) for value in values], pa.int8())
        return pa.DictionaryArray.from_arrays(codes, pa.array(LEVELS), ordered=True)

    return pa.table({"s": encoded(LOG["s"]), "a": LOG["a"], "n": encoded(LOG["n"])})


def polars_enums() -> pl.DataFrame:
    return pl.DataFrame(LOG).cast({"s": pl.Enum(LEVELS), "n": pl.Enum(LEVELS)})


ORDERED: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pandas_categories(True),
    "pandas, not ordered": lambda: pandas_categories(False),
    "polars": polars_enums,
    "polars, lazy": lambda: polars_enums().lazy(),
    "pyarrow": arrow_dictionaries,
    "duckdb": duckdb_enums,
    "columns": lambda: {**LOG, "s": pd.Categorical(LOG["s"], LEVELS)},
}


@pytest.mark.parametrize("kind", ORDERED)
def test_order_of_categories_is_kept(kind: str, tmp_path: Path) -> None:
    """In spaces, in products, after merging with text, and in a file."""
    counts = count_transitions(ORDERED[kind](), **COLUMNS)
    assert counts.states.labels == ("low", "mid", "high")
    text = count_transitions(
        {"s": ["lower", "mid"], "a": ["x", "x"], "n": ["mid", "mid"]}, **COLUMNS
    )
    assert (counts + text).states.labels == ("low", "mid", "high", "lower")
    assert (text + counts) == (counts + text)

    names: dict[str, Any] = {"state": ["a", "s"], "action": "n", "next_state": ["b", "m"]}
    table = ORDERED[kind]()
    product = {**LOG, "b": LOG["a"], "m": LOG["s"]}
    if kind == "columns":
        product = {**product, "s": table["s"]}
    elif isinstance(table, pd.DataFrame):
        product = table.assign(b=table["a"], m=table["s"])
    else:
        return
    found = count_transitions(product, **names).states
    assert found.labels == (("x", "mid"), ("x", "high"), ("y", "low"))
    assert found.field("s")[0].labels == ("low", "mid", "high")

    path = tmp_path / "policy.safetensors"
    TransferLearner(Goal(prefer_actions={"low": 1})).fit(product, **names).save(path)
    assert load(path).counts_.states.field("s")[0].labels == ("low", "mid", "high")


def test_default_order_of_pandas_is_no_order() -> None:
    log = {"s": ["[10, 20)", "< 10", "[9, 10)"], "a": ["x"] * 3, "n": ["[10, 20)"] * 3}
    frame = pd.DataFrame(log).astype({"s": "category"})
    assert count_transitions(frame, **COLUMNS).states.labels == ("< 10", "[9, 10)", "[10, 20)")


def test_orders_that_contradict_each_other_are_dropped() -> None:
    one = count_transitions({**LOG, "s": pd.Categorical(LOG["s"], LEVELS)}, **COLUMNS)
    two = count_transitions({**LOG, "s": pd.Categorical(LOG["s"], LEVELS[::-1])}, **COLUMNS)
    assert (one + two).states.labels == (two + one).states.labels == ("high", "low", "mid")


def test_intervals_of_pandas_are_text_in_their_order() -> None:
    values = pd.Series([-5.0, 15.0, 2.0, np.nan])
    cut = pd.cut(values, [-10, 0, 10, 20])
    log = pd.DataFrame({"s": cut, "a": list("xyxy"), "n": cut.iloc[[1, 0, 1, 0]].array})
    with pytest.warns(UserWarning, match="1 record"):
        counts = count_transitions(log.iloc[1:], **COLUMNS)
    assert counts.states.labels == ("(-10, 0]", "(0, 10]", "(10, 20]")
    plain = log.assign(s=pd.arrays.IntervalArray(cut), n=pd.arrays.IntervalArray(log["n"]))
    with pytest.warns(UserWarning, match="1 record"):
        assert count_transitions(plain.iloc[1:], **COLUMNS) == counts


# Files.


def sheet(path: Path, *rows: tuple[Any, ...]) -> str:
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(row)
    book.save(path)
    return str(path)


def test_excel_file(tmp_path: Path) -> None:
    lines = [tuple(row.values()) for row in ROWS]
    path = sheet(tmp_path / "log.xlsx", ("s", "a", "n"), *lines, (None, None, None))
    assert count_transitions(path, **COLUMNS) == expected()
    assert count_transitions([path, path], **COLUMNS) == expected() + expected()


def test_excel_file_with_dates_numbers_and_gaps(tmp_path: Path) -> None:
    rows = [(1, pd.Timestamp(2024, 5, day).to_pydatetime(), day / 2, "x") for day in (3, 1, 2)]
    path = sheet(tmp_path / "log.xlsx", ("who", "day", "heat", "did"), *rows)
    options: dict[str, Any] = {"state": "heat", "action": "did", "episode": "who", "time": "day"}
    assert count_transitions(path, **options, max_gap="1d").states.labels == (0.5, 1, 1.5)


def test_excel_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.xlsx").write_text("s,a,n")
    with pytest.raises(LogError, match=r"bad\.xlsx is not an Excel file"):
        count_transitions(tmp_path / "bad.xlsx", **COLUMNS)
    with pytest.raises(LogError, match="the first sheet is empty"):
        count_transitions(sheet(tmp_path / "no.xlsx"), **COLUMNS)
    with pytest.raises(LogError, match="the column 's' occurs twice"):
        count_transitions(sheet(tmp_path / "two.xlsx", ("s", "s", "a", "n")), **COLUMNS)
    mixed = sheet(tmp_path / "mixed.xlsx", ("s", "a", "n"), (1, "x", "b"), ("a", "x", "b"))
    with pytest.raises(LogError, match=r"mixed\.xlsx: the column 's' .* different types: .*'a'"):
        count_transitions(mixed, **COLUMNS)
    good = sheet(tmp_path / "log.xlsx", ("s", "a", "m"), ("a", "x", "b"))
    with pytest.raises(LogError, match="the log has no column 'n'"):
        count_transitions(good, **COLUMNS)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'pastwise\[excel\]'"):
        count_transitions(good, **COLUMNS)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read once, whatever reads the log again."""
    text = "s;a;n\n" + "".join(f"{row['s']};{row['a']};{row['n']}\n" for row in ROWS)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    files.file_of_stdin.cache_clear()
    try:
        assert count_transitions("-", **COLUMNS) == expected()
        assert count_transitions("-", **COLUMNS) == expected()
    finally:
        files.file_of_stdin.cache_clear()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "standard input is empty"),
        ("s,s,n\n", "standard input: the column 's' occurs twice"),
        ("s,a,n\n" + "a,x,b\n" * 1100 + "a\n", "standard input: .* Line: 1102"),
    ],
    ids=["empty", "twice", "short"],
)
def test_errors_call_standard_input_by_its_name(
    text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    files.file_of_stdin.cache_clear()
    try:
        with pytest.raises(LogError, match=problem) as error:
            count_transitions("-", **COLUMNS)
        assert "stdin.csv" not in str(error.value)
    finally:
        files.file_of_stdin.cache_clear()


def csv_file(folder: Path, *lines: str) -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_decimal_commas(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "s;a;n;w", "1,5;x;-2,25;0,5", "3;x;1,5e1;2")
    counts = count_transitions(path, **COLUMNS, bins={"s": [2]}, weight="w")
    assert counts.states.labels == ("< 2", ">= 2")
    assert counts.weight.tolist() == [0.5, 2.0]
    quoted = csv_file(tmp_path, "s,a,n", '"1,5",x,"2,5"', '"2,5",x,"2,5"')
    assert count_transitions(quoted, **COLUMNS, bins={"s": [2]}).num_records == 2


@pytest.mark.parametrize("values", [["1.5", "NA", "2"], ["?", "3"], ["2024-05-31", "NULL"]])
@pytest.mark.parametrize("role", ["features", "reward", "time", "age"])
def test_words_for_missing_values_are_refused_among_numbers_and_dates(
    tmp_path: Path, values: list[str], role: str
) -> None:
    """As text, the numbers of a feature would be so many categories."""
    lines = [f"a,u,b,{value}" for value in values]
    (tmp_path / "log.csv").write_text("\n".join(["s,a,n,v", *lines]))
    columns: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n", role: "v"}
    if role == "features":
        columns = {"features": "v", "action": "a", "outcome": "n"}
    elif role == "age":
        columns["half_life"] = 3
    with pytest.raises(LogError, match=r"'v' holds '(NA|\?|NULL)' among values such as .*empty"):
        count_transitions(tmp_path / "log.csv", **columns)


def test_words_among_labels_are_labels(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("s,a,n\n1,u,NA\nNA,u,1\n")
    assert count_transitions(tmp_path / "log.csv", "s", "a", "n").states.labels == ("1", "NA")
    (tmp_path / "doses.csv").write_text("d,a,o\n" + "none,u,y\n5,v,n\n5,u,y\n" * 20)
    counts = count_transitions(tmp_path / "doses.csv", features="d", action="a", outcome="o")
    assert counts.num_records == 60


def test_commas_that_may_separate_thousands_are_refused(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "s;a;n", "1,500;x;2,000", "3;x;2")
    with pytest.raises(LogError, match=r"'1,500': is the comma a decimal comma.*decimal points"):
        count_transitions(path, **COLUMNS, bins={"s": [2]})


# Times as text.

TIMES = {
    "who": [1, 1, 1],
    "at": ["2024-05-01T10:00", "2024-05-01T12:00", "2024-05-01T11:00"],
    "s": ["a", "c", "b"],
    "a": ["x", "x", "x"],
}
IN_TIME: dict[str, Any] = {"state": "s", "action": "a", "episode": "who", "time": "at"}


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_times_as_text_in_tables_in_memory(kind: Callable[[Any], Any]) -> None:
    counts = count_transitions(kind(TIMES), **IN_TIME, max_gap="1h")
    assert [counts.states.labels[i] for i in counts.next_state] == ["b", "c"]


@pytest.mark.parametrize(
    "table",
    [
        {**TIMES, "at": ["1/5/2024", "2/5/2024", "3/5/2024"]},
        pl.LazyFrame(TIMES),
    ],
)
def test_other_times_as_text_are_refused_with_what_to_do(table: Any) -> None:
    message = "'at' must hold numbers or dates, not String: write dates as 2024-05-31 .*to_datetime"
    with pytest.raises(LogError, match=message):
        count_transitions(table, **IN_TIME)


# Whole numbers of more than 64 bits.

HUGE = 10**30


def polars_128(values: list[int]) -> pl.DataFrame:
    columns = {"s": values, "a": ["x"] * 3, "n": values[::-1], "e": [HUGE, HUGE, HUGE + 1]}
    kinds = {"s": pl.Int128, "a": pl.String, "n": pl.Int128, "e": pl.Int128}
    return pl.DataFrame(columns, kinds).with_columns(t=pl.int_range(3).cast(pl.Int128))


def duckdb_128(values: list[int]) -> Any:
    rows = ", ".join(
        f"({value}::hugeint, 'x', {other}::hugeint, {HUGE}::hugeint + {place // 2}, {place})"
        for place, (value, other) in enumerate(zip(values, values[::-1], strict=True))
    )
    return duckdb.connect().sql(f"from (values {rows}) as log(s, a, n, e, t)")


@pytest.mark.parametrize("make", [polars_128, duckdb_128, lambda values: polars_128(values).lazy()])
def test_columns_of_128_bits_are_exact(make: Callable[[list[int]], Any]) -> None:
    counts = count_transitions(make([1, 2**62 + 1, 2**62 + 2]), **COLUMNS)
    assert counts.states.labels == (1, 2**62 + 1, 2**62 + 2)
    chained: dict[str, Any] = {"state": "s", "action": "a", "episode": "e", "time": "t"}
    with pytest.warns(UserWarning, match="single transition"):
        assert count_transitions(make([1, 2, 3]), **chained).num_records == 1
    with pytest.raises(LogError, match=r"column '?s'?") as error:
        count_transitions(make([1, HUGE, HUGE + 1]), **COLUMNS)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, lambda log: pd.DataFrame(log).to_dict("list")]
)
def test_python_numbers_that_no_column_holds_are_refused(make: Callable[[Any], Any]) -> None:
    log = make({"s": [HUGE, 1, 2], "a": ["x"] * 3, "n": [1, 2, HUGE]})
    with pytest.raises(LogError, match=r"column 's' holds whole numbers beyond 2\^63; .* as text"):
        count_transitions(log, **COLUMNS)


# Types that mean neither numbers nor dates.


@pytest.mark.parametrize(
    ("roles", "problem"),
    [
        ({"weight": "u"}, "the weight column 'u' must hold numbers"),
        ({"count": "u"}, "the count column 'u' must hold numbers"),
        ({"state": "u", "next_state": "v", "bins": {"u": [1]}}, "binned column 'u' must hold"),
        ({"episode": "n", "next_state": None, "time": "u"}, "'u' must hold numbers or dates"),
        ({"state": (), "next_state": None, "features": "u", "next_features": "v"}, "feature 'u'"),
    ],
)
def test_a_column_of_uuids_is_no_number_and_no_date(roles: dict[str, Any], problem: str) -> None:
    log = duckdb.sql(
        "select i % 2 as s, 'x' as a, 1 - i % 2 as n, uuid() as u, uuid() as v "
        "from range(9) as log(i)"
    )
    with pytest.raises(LogError, match=problem):
        count_transitions(log, **COLUMNS | roles)


def test_moments_in_nanoseconds_with_a_time_zone_are_dates() -> None:
    log = duckdb.sql(
        "select i % 2 as s, 'x' as a, 1 - i % 2 as n, 1 as e, "
        "('2024-01-01 00:00:00.00000000' || i || '+01')::timestamptz_ns as t "
        "from range(9) as log(i)"
    )
    chained: dict[str, Any] = {"state": "s", "action": "a", "episode": "e", "time": "t"}
    assert count_transitions(log, **chained).num_records == 8
    aged = count_transitions(log, **COLUMNS, age="t", half_life="1d")
    assert aged.weight.sum() == pytest.approx(9)
