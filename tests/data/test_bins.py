"""Bins: every number has one, labels are short, different, and in order."""

from __future__ import annotations

from itertools import pairwise
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise.data.bins import Bins, short_texts
from pastwise.data.space import Space
from pastwise.errors import ParameterError

numbers = st.floats(allow_nan=False, allow_infinity=False)
edges = st.lists(numbers, min_size=1, max_size=6, unique=True).map(sorted)


@given(edges, numbers | st.sampled_from([inf, -inf]))
def test_every_number_has_the_bin_whose_limits_hold_it(cuts: list[float], number: float) -> None:
    bins = Bins.of(cuts)
    place = bins.place(number)
    assert place == sum(number >= cut for cut in cuts)
    low, high, low_closed, high_closed = bins.limits[place]
    assert low < number < high or (low_closed and number == low) or number in (inf, -inf)
    assert low_closed
    assert not high_closed
    assert bins.label(number) == bins.labels[place]


@given(edges)
def test_labels_differ_and_sort_by_their_edges(cuts: list[float]) -> None:
    labels = Bins.of(cuts).labels
    assert Space.sorted(reversed(labels)).labels == labels


@given(edges)
def test_exact_edges_survive_json(cuts: list[float]) -> None:
    bins = Bins.of(cuts)
    assert Bins.from_dict(bins.to_dict()) == bins


@given(edges)
def test_short_texts_are_ascending(cuts: list[float]) -> None:
    texts = short_texts(cuts)
    assert all(float(low) < float(high) for low, high in pairwise(texts))


@pytest.mark.parametrize(
    ("cuts", "labels"),
    [
        ([10], ("< 10", ">= 10")),
        ([-inf, 10, 20, inf], ("< 10", "[10, 20)", ">= 20")),
        ([1 / 3, 2 / 3], ("< 0.3333", "[0.3333, 0.6667)", ">= 0.6667")),
        ([36.65, 12345.5], ("< 36.65", "[36.65, 12345.5)", ">= 12345.5")),
        ([12345.678, 123456.78], ("< 12346", "[12346, 123457)", ">= 123457")),
        ([1_000_000, 1_000_001], ("< 1e+06", "[1e+06, 1000001)", ">= 1000001")),
        ([0.12341, 0.12342], ("< 0.12341", "[0.12341, 0.12342)", ">= 0.12342")),
        ([1.2344, 1.23440001], ("< 1.2344", "[1.2344, 1.23440001)", ">= 1.23440001")),
        ([-0.0, 1], ("< 0", "[0, 1)", ">= 1")),
    ],
)
def test_labels_are_short(cuts: list[float], labels: tuple[str, ...]) -> None:
    assert Bins.of(cuts).labels == labels


def test_bins_may_be_cut_further() -> None:
    assert Bins((10.0,)).cut_at([20.0, 10.0, inf]) == Bins((10.0, 20.0))
    closed = Bins((0.0, 10.0), is_open=False)
    assert closed.cut_at([5.0, 20.0]) == Bins((0.0, 5.0, 10.0), is_open=False)


def test_closed_bins_have_both_outer_edges_and_nothing_beyond() -> None:
    closed = Bins.from_dict([0.0, 10.0, 20.0])
    assert closed.labels == ("[0, 10)", "[10, 20]")
    values = [-1.0, 0.0, 10.0, 20.0, 20.1, nan]
    assert [closed.place(value) for value in values] == [None, 0, 1, 1, None, None]
    assert closed.limits[-1] == (10.0, 20.0, True, True)
    assert Bins.from_dict(closed.to_dict()) == closed


@pytest.mark.parametrize("cuts", [[], [inf], [1, 1], [2, 1], [nan], [0, nan], [0, inf, inf]])
def test_edges_that_make_no_sense_are_refused(cuts: list[float]) -> None:
    with pytest.raises(ParameterError, match="edge"):
        Bins.of(cuts)
