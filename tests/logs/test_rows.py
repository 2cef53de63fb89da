"""The state of a raw row is the one that the counting query gives it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pastwise import Columns, Space
from pastwise.data.bins import Bins
from pastwise.errors import LabelError, LogError, UnknownLabelError
from pastwise.logs.read import read_log
from pastwise.logs.rows import RowReader

numbers = st.one_of(
    st.floats(),
    st.floats(-3, 3),
    st.integers(-3, 3).map(float),
    st.sampled_from([-0.0, inf, -inf, nan, 5e-324, 1.7976931348623157e308]),
)
edges = st.lists(
    st.one_of(
        st.floats(allow_nan=False), st.integers(-3, 3).map(float), st.sampled_from([inf, -inf])
    ),
    min_size=2,
    max_size=6,
    unique_by=lambda edge: edge + 0.0,
).map(sorted)


def queried(table: pa.Table, columns: Columns) -> Any:
    """Label of the state of a table's first row by the query; None if it leaves the row out."""
    try:
        counts = read_log(table, columns).counts
    except LogError:
        return None
    return counts.states.labels[int(counts.state[0])]


@given(edges, st.booleans(), numbers, st.sampled_from([pa.float64(), pa.float32(), pa.int64()]))
def test_bins_are_those_of_the_query(
    cuts: list[float], is_open: bool, number: float, kind: pa.DataType
) -> None:
    if kind == pa.int64():
        number = float(np.clip(np.nan_to_num(number), -(2.0**62), 2.0**62) // 1)
    if kind == pa.float32():
        with np.errstate(over="ignore"):
            number = float(np.float32(number))
    inside = next((edge for edge in cuts if np.isfinite(edge)), 0.0)
    assume(not is_open or any(np.isfinite(cuts)))
    bins = Bins.of(cuts) if is_open else Bins(tuple(cuts), is_open=False)
    columns = Columns.of("x", "a", "n", bins={"x": bins})
    value = pa.array([int(number) if kind == pa.int64() else number], kind)
    log = pa.table({"x": value, "a": ["go"], "n": [inside]})
    expected = queried(log, columns)

    reader = RowReader(columns, Space(("none",)))
    row = {"x": value[0].as_py(), "a": None}
    if expected is None:
        with pytest.raises(UnknownLabelError):
            reader.label(row)
    else:
        assert reader.label(row) == expected
        assert reader.label(row["x"]) == expected


@settings(max_examples=30, deadline=None)
@given(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.booleans(),
        st.dates(),
        st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1)),
        st.decimals(-100, 100, places=2),
    )
)
def test_plain_values_are_the_labels_of_the_query(value: Any) -> None:
    columns = Columns.of("x", "a", "n")
    expected = queried(pa.table({"x": [value], "a": ["go"], "n": [value]}), columns)
    if expected is None:
        with pytest.raises(UnknownLabelError):
            RowReader(columns, Space(("none",))).label({"x": value})
    else:
        assert RowReader(columns, Space((expected,))).find({"x": value}) == 0


@pytest.mark.parametrize(
    "moment",
    [datetime(2024, 5, 1, 12, 30, 1, 250000), date(2024, 5, 1), datetime(1969, 12, 31, 23, 59)],
)
def test_binned_dates_are_seconds_since_1970(moment: Any) -> None:
    cuts = [-100.0, 1714521600.0, 1714566601.25, 2e9]
    columns = Columns.of("x", "a", "n", bins={"x": cuts})
    log = pa.table({"x": [moment], "a": ["go"], "n": [moment]})
    assert RowReader(columns, Space(("none",))).label({"x": moment}) == queried(log, columns)


def test_values_of_other_libraries_are_plain_values() -> None:
    binned = RowReader(Columns.of("x", "a", "n", bins={"x": [1, 2]}), Space(("< 1",)))
    series = pd.Series({"x": 0.5, "y": "other"})
    decimal = Decimal("0.5")
    values = (np.float64(0.5), np.int8(0), decimal, series, {"x": np.float32(0.25)})
    assert [binned.find(value) for value in values] == [0] * len(values)
    for missing in (None, nan, pd.NA, pd.NaT, np.datetime64("NaT")):
        with pytest.raises(UnknownLabelError, match=r"the column 'x'.*\(the value is missing"):
            binned.index({"x": missing})

    plain = RowReader(Columns.of("x", "a", "n"), Space(("2024-05-01", "2024-05-01T00:00:00")))
    assert plain.find(date(2024, 5, 1)) == 0
    assert plain.find({"x": np.datetime64("2024-05-01T00:00:00")}) == 1
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    assert RowReader(None, Space((moment.isoformat(),), ("x",))).find({"x": moment}) == 0


def test_what_no_state_matches_is_an_error_that_names_the_nearest() -> None:
    reader = RowReader(
        Columns.of(["x", "y"], "a", ["n", "m"], bins={"x": Bins((0, 1, 2), is_open=False)}),
        Space((("[0, 1)", "red"), ("[1, 2]", "red")), ("x", "y")),
    )
    assert reader.find({"x": 1, "y": "red"}) == 1
    assert reader.find((1.5, "red")) == 1
    assert reader.find({"x": 1, "y": "blue"}) is None
    with pytest.raises(UnknownLabelError, match=r"did you mean '\[\"\[0, 1\)\", \"red\"\]'"):
        reader.index({"x": 0.5, "y": "rod"})
    with pytest.raises(UnknownLabelError, match=r"'\[1, 2\]'\? \(its bins go from 0 to 2\)"):
        reader.index({"x": 3, "y": "red"})
    with pytest.raises(LabelError, match="the row has no column 'y'; it has x"):
        reader.index({"x": 1})
    with pytest.raises(LabelError, match="the column 'x' holds numbers; 'warm' is none"):
        reader.index({"x": "warm", "y": "red"})
    with pytest.raises(LabelError, match="True is none"):
        reader.index({"x": True, "y": "red"})
    with pytest.raises(LabelError, match="give the state as a label"):
        RowReader(None, Space(("cold",))).index({"x": 3})


def test_a_decision_loads_no_engine() -> None:
    code = (
        "import sys, pastwise.logs.rows; print({'duckdb', 'narwhals', 'pandas'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "set()\n"
