"""Partitions: the leaf of a row, labels, regions, JSON, and conditions that leaves decide."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise.data.conditions import parse_condition
from pastwise.data.partition import NO_LEAF, Feature, Partition, Split
from pastwise.data.regions import contains
from pastwise.errors import LabelError, ParameterError
from tests.helpers.partitions import ROWS, partitions, slow_leaf

Row = dict[str, Any]


def _leaf(partition: Partition, row: Row) -> int | None:
    leaf = partition.leaf_of(row)
    return None if leaf == NO_LEAF else leaf


@given(partitions(), st.lists(ROWS, min_size=1, max_size=20))
def test_leaves_of_rows_are_those_of_the_tree_as_stated(
    partition: Partition, rows: list[Row]
) -> None:
    expected = [slow_leaf(partition, row) for row in rows]
    assert [_leaf(partition, row) for row in rows] == expected
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    leaves = [None if leaf == NO_LEAF else leaf for leaf in partition.leaves_of(columns).tolist()]
    assert leaves == expected


@given(partitions())
def test_a_partition_survives_json(partition: Partition) -> None:
    again = Partition.from_dict(json.loads(json.dumps(partition.to_dict(), allow_nan=False)))
    assert again == partition
    assert again.labels == partition.labels


@given(partitions(), ROWS)
def test_a_row_lies_in_the_region_of_its_leaf(partition: Partition, row: Row) -> None:
    leaf = slow_leaf(partition, row)
    if leaf is not None:
        # A path that no row can take has no region.
        region = {}
        for place, known in partition.restrictions[leaf].items():
            region[partition.features[place].name] = known.values
        assert contains(region, row)


CONDITIONS = (
    "x < 2.5 and n >= 3",
    "x <= 2.5 or flag == true",
    "ward == icu",
    "not (ward in (icu, general) and x > 0)",
    "x is missing or n == 7",
    "ward != unheard_of",
)


@given(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3), ROWS, st.booleans())
def test_leaves_decide_conditions_as_rows_do(
    texts: list[str], row: Row, may_be_missing: bool
) -> None:
    features = (
        Feature("x", "number", may_be_missing=may_be_missing),
        Feature("n", "number", may_be_missing=may_be_missing),
        Feature("flag", "boolean", may_be_missing=may_be_missing),
        Feature("ward", "category", ("icu", "general", "unheard_of"), may_be_missing),
    )
    conditions = [parse_condition(text) for text in texts]
    partition = Partition(features).cut_for(conditions)
    leaf = slow_leaf(partition, row)
    is_strange = not may_be_missing and any(row[each.name] is None for each in features)
    if leaf is None or is_strange or row["x"] != row["x"]:
        return
    region = partition.regions()[partition.labels[leaf]]
    for condition in conditions:
        assert condition.decide(region) is condition.holds(row)


def test_labels_are_short_and_read_as_conditions() -> None:
    features = (Feature("lactate", "number"), Feature("mean pressure", "number"))
    splits = (
        Split(0, 1, 2, below=2.3000000001),
        Split(1, -1, -2, below=65.0),
        Split(0, -3, -4, below=nextafter(4.0, inf)),
    )
    partition = Partition(features, splits)
    assert partition.labels == (
        "lactate < 2.3 and `mean pressure` < 65",
        "lactate < 2.3 and `mean pressure` >= 65",
        "2.3 <= lactate <= 4",
        "lactate > 4",
    )
    row = {"lactate": 3.0, "mean pressure": 80}
    holding = [label for label in partition.labels if parse_condition(label).holds(row)]
    assert holding == [partition.labels[partition.leaf_of(row)]]


def test_labels_show_dates_and_times_that_conditions_read() -> None:
    day = 86_400.0
    splits = (
        Split(0, 1, 2, below=-day),
        Split(0, -1, -2, below=-1e300),
        Split(0, -3, 3, below=nextafter(day + 3600.0, inf)),
        Split(0, -4, -5, below=2 * day + 0.5),
    )
    partition = Partition((Feature("d", "number", is_date=True),), splits)
    assert partition.labels == (
        "d < -1.0000000000000001e+300",
        "-1.0000000000000001e+300 <= d < '1969-12-31'",
        "'1969-12-31' <= d <= '1970-01-02T01:00'",
        "'1970-01-02T01:00' < d < '1970-01-03T00:00:00.500000'",
        "d >= '1970-01-03T00:00:00.500000'",
    )
    for leaf, moment in ((2, datetime(1970, 1, 2, 1)), (3, "1970-01-03"), (4, date(1970, 1, 4))):
        assert partition.leaf_of({"d": moment}) == leaf
    for leaf, seconds in ((0, -inf), (1, -2 * day), (2, day + 3600), (3, 2 * day), (4, 3 * day)):
        holding = [parse_condition(label).holds({"d": seconds}) for label in partition.labels]
        assert holding == [place == leaf for place in range(5)]
    again = Partition.from_dict(json.loads(json.dumps(partition.to_dict())))
    assert again == partition


def test_thresholds_that_differ_little_keep_their_labels_apart() -> None:
    splits = (Split(0, -1, 1, below=1.00001), Split(0, -2, -3, below=1.00002))
    labels = Partition((Feature("x", "number"),), splits).labels
    assert labels == ("x < 1.00001", "1.00001 <= x < 1.00002", "x >= 1.00002")


def test_labels_say_where_missing_values_go() -> None:
    partition = Partition(
        (Feature("x", "number", may_be_missing=True),), (Split(0, -1, -2, below=1.0),)
    )
    assert partition.labels == ("x < 1", "(x >= 1 or x is missing)")


@pytest.mark.parametrize("value", [1, 1.0, True, np.float32(1), Decimal(1), "1", np.int8(1)])
def test_numbers_of_any_kind_are_numbers(value: object) -> None:
    partition = Partition((Feature("x", "number"),), (Split(0, -1, -2, below=1.5),))
    assert partition.leaf_of({"x": value}) == 0


def test_numbers_too_large_for_floating_point_are_infinite() -> None:
    partition = Partition((Feature("x", "number"),), (Split(0, -1, -2, below=1e308),))
    assert partition.leaf_of({"x": 10**400}) == 1
    assert partition.leaf_of({"x": -(10**400)}) == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [({"y": 1}, "no column 'x'"), ({"x": "high"}, "'x' is 'high', which is no number")],
)
def test_rows_without_a_number_are_refused(row: Row, message: str) -> None:
    partition = Partition((Feature("x", "number"),), (Split(0, -1, -2, below=1.5),))
    with pytest.raises(LabelError, match=message):
        partition.leaf_of(row)


X = {"name": "x", "kind": "number", "may_be_missing": False}


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"features": [X], "splits": [{"feature": "y", "below": 1, "yes": -1, "no": -2}]},
        {"features": [X], "splits": [{"feature": "x", "below": 1, "yes": -1, "no": -3}]},
        {"features": [X], "splits": [{"feature": "x", "below": 1, "yes": -1, "no": 0}]},
        {"features": [X], "splits": [{"feature": "x", "below": 1, "yes": -1, "no": 5}]},
        {"features": [X], "splits": [{"feature": "x", "yes": -1, "no": -2}]},
        {"features": [X], "splits": [{"feature": "x", "among": ["a"], "yes": -1, "no": -2}]},
        {"features": [X], "splits": [{"feature": "x", "below": "nan", "yes": -1, "no": -2}]},
        {"features": [X, X], "splits": []},
        {"features": [{**X, "kind": "colour"}], "splits": []},
        {"features": [{**X, "kind": "category", "categories": [1]}], "splits": []},
    ],
)
def test_anything_but_a_tree_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r"\w"):
        Partition.from_dict(content)


def test_a_missing_value_that_never_was_missing_has_no_leaf() -> None:
    partition = Partition((Feature("x", "number"),), (Split(0, -1, -2, below=1.5),))
    assert partition.leaf_of({"x": None}) == NO_LEAF
    assert partition.leaf_of({"x": nan}) == NO_LEAF
    assert partition.absent_in({"x": nan}) == "x"
