"""Partitions and rows for Hypothesis, and a plain reading of a partition as an oracle."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isnan, nan
from typing import Any

from hypothesis import strategies as st

from pastwise.data.partition import Feature, Partition, Split

WORDS = ("icu", "general", "it's", 'a "b"', "Ž")

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, inf, -inf, 1.0, 2.5, 2.0**53, -(2.0**63), 1e308, 5e-324]),
    st.floats(allow_nan=False),
)


@st.composite
def partitions(draw: st.DrawFn) -> Partition:
    """Any tree over a number, a whole number, a boolean and a category."""
    features = (
        Feature("x", "number", may_be_missing=draw(st.booleans())),
        Feature("n", "number", may_be_missing=draw(st.booleans())),
        Feature("flag", "boolean", may_be_missing=draw(st.booleans())),
        Feature("ward", "category", WORDS[:4], may_be_missing=draw(st.booleans())),
    )
    number = draw(st.integers(0, 12))
    splits: list[Split] = []
    open_slots: list[tuple[int, str]] = []
    for index in range(number):
        if index:
            slot = draw(st.integers(0, len(open_slots) - 1))
            parent, side = open_slots.pop(slot)
            object.__setattr__(splits[parent], side, index)
        splits.append(draw(_splits(features)))
        open_slots += [(index, "yes"), (index, "no")]
    for leaf, (parent, side) in enumerate(open_slots):
        object.__setattr__(splits[parent], side, -1 - leaf)
    return Partition(features, tuple(splits))


@st.composite
def _splits(draw: st.DrawFn, features: tuple[Feature, ...]) -> Split:
    place = draw(st.integers(0, len(features) - 1))
    feature = features[place]
    if draw(st.integers(0, 4)) == 0:
        return Split(place, 0, 0, is_missing=True)
    if feature.kind == "number":
        return Split(place, 0, 0, below=draw(NUMBERS))
    among = draw(st.lists(st.sampled_from(feature.categories), min_size=1, unique=True))
    return Split(place, 0, 0, among=tuple(among))


ROWS = st.fixed_dictionaries(
    {
        "x": st.one_of(st.none(), st.just(nan), NUMBERS),
        "n": st.one_of(
            st.none(),
            st.integers(-(2**63), 2**63 - 1),
            st.sampled_from([2**53 + 1, -(2**53) - 1, 2**63 - 1, 0]),
        ),
        "flag": st.one_of(st.none(), st.booleans()),
        "ward": st.one_of(st.none(), st.sampled_from([*WORDS, "new"])),
    }
)


def slow_leaf(partition: Partition, row: Mapping[str, Any]) -> int | None:
    """The leaf of a row, by walking the tree as its documentation states it."""
    values = []
    for feature in partition.features:
        value = row[feature.name]
        is_missing = value is None or (isinstance(value, float) and isnan(value))
        values.append(None if is_missing else value)
    for split in partition.splits:
        is_required = not partition.features[split.feature].may_be_missing
        if is_required and values[split.feature] is None:
            return None
    node = 0 if partition.splits else -1
    while node >= 0:
        split = partition.splits[node]
        value = values[split.feature]
        if split.is_missing:
            answer = value is None
        elif value is None:
            answer = False
        elif split.below is not None:
            answer = float(value) < split.below
        else:
            answer = split.among is not None and value in split.among
        node = split.yes if answer else split.no
    return -1 - node
