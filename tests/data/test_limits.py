"""Counts and labels that no number, key or file can hold are refused, and never computed with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Space, checked_label
from pastwise.errors import LabelError, ParameterError

TWO = Space.of_size(2)

# Keys


def records(number: int, states: Space, actions: Space) -> TransitionCounts:
    """One record in each of a number of logs."""
    first = np.zeros((number, 1), dtype=np.int64)
    return TransitionCounts.from_records(first, first, first, states, actions)


def test_spaces_with_more_transitions_than_keys_are_refused() -> None:
    many = Space.of_size(2**31)
    assert records(1, many, Space.of_size(1)).key.tolist() == [0]
    problem = r"2,147,483,648 states and 2 actions .* limit is 2\^63"
    with pytest.raises(ParameterError, match=problem):
        records(1, many, TWO)
    with pytest.raises(ParameterError, match="2 logs or tasks"):
        records(2, many, Space.of_size(1))


def test_last_key_within_the_limit_is_exact() -> None:
    states = Space.of_size(2**31)
    last = np.array([2**31 - 1])
    counts = TransitionCounts.from_records(last, [0], last, states, Space.of_size(1))
    assert counts.state.tolist() == counts.next_state.tolist() == [2**31 - 1]


def test_groups_labels_and_sums_beyond_the_keys_are_refused() -> None:
    zero = np.zeros(1, dtype=np.int64)
    one = np.ones(1)
    sums = (np.ones(1, dtype=np.int64), one, one)
    index = (zero, zero, zero, zero)
    with pytest.raises(ParameterError, match="possible transitions"):
        TransitionCounts.from_groups(
            Space.of_size(2**31), Space.of_size(1), index, sums, Space.of_size(2)
        )
    small = TransitionCounts.from_groups(Space.of_size(1), Space.of_size(1), index, sums)
    with pytest.raises(ParameterError, match="possible transitions"):
        small.relabelled(Space.of_size(2**32), Space.of_size(1))
    one_action = records(1, Space.of_size(2**31), Space.of_size(1)).total()
    two_actions = records(1, Space.of_size(1), TWO).total()
    with pytest.raises(ParameterError, match="possible transitions"):
        _ = one_action + two_actions
    with pytest.raises(ParameterError, match="possible transitions"):
        replace(small, states=Space.of_size(2**32))


# Sums


@pytest.mark.parametrize("weight", [1e200, [1e154, 1e154], 1.7e308])
def test_weights_that_overflow_are_refused(weight: Any) -> None:
    with pytest.raises(ParameterError, match="too large for a number; divide all weights"):
        TransitionCounts.from_records([0, 1], [0, 0], [1, 1], TWO, TWO, weight)


@pytest.mark.parametrize("weight", [1e-155, [1e-170, 1e-160], 1e-300])
def test_weights_whose_squares_underflow_cannot_be_evened(weight: Any) -> None:
    counts = TransitionCounts.from_records([0, 1], [0, 0], [1, 1], TWO, TWO, weight)
    with pytest.raises(ParameterError, match="too small for a number; divide all weights"):
        counts.evenly_weighted()


def test_small_weights_are_evened_like_others() -> None:
    counts = TransitionCounts.from_records([0, 1], [0, 0], [1, 1], TWO, TWO, 1e-150)
    assert counts.evenly_weighted().weight.tolist() == pytest.approx([1, 1])


def test_weights_that_overflow_when_logs_are_added_are_refused() -> None:
    heavy = TransitionCounts.from_records([0], [0], [1], TWO, TWO, 1e154)
    with pytest.raises(ParameterError, match="too large for a number"):
        _ = heavy + heavy


def with_records(number: int) -> TransitionCounts:
    weight = np.array([float(number)])
    key = np.array([0])
    return TransitionCounts(TWO, TWO, key, np.array([number]), weight, weight)


def test_large_numbers_of_records_add_exactly_or_are_refused() -> None:
    total = with_records(2**60 + 1) + with_records(2)
    assert total.records.tolist() == [2**60 + 3]
    with pytest.raises(ParameterError, match=r"2\^63 records"):
        _ = with_records(2**62) + with_records(2**62)


# Counts from outside


POSSIBLE = TransitionCounts.from_records(
    [0, 0, 1], [0, 0, 1], [1, 1, 0], Space(("a", "b", "c")), TWO, [1.0, 2.0, 0.5]
)


def test_counts_of_any_log_are_possible() -> None:
    POSSIBLE.require_possible()
    replace(POSSIBLE, terminal=np.array([2])).require_possible()
    TransitionCounts.empty(TWO, TWO).require_possible()
    for weight in (1e-200, 0.1, 1e150):
        many = np.zeros(1000, dtype=np.int64)
        TransitionCounts.from_records(many, many, many, TWO, TWO, weight).require_possible()
    faded = replace(POSSIBLE, decay=Decay(0.0, 1.0)).as_of(5000.0)
    assert faded.weight.tolist() == [0, 0]
    faded.require_possible()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"records": np.array([0, 1])}, "no record"),
        ({"records": np.array([-1, 1])}, "negative"),
        ({"records": np.array([2, 1, 1])}, "shape"),
        ({"records": np.array([2**62, 2**62])}, r"2\^63 records"),
        ({"weight": np.array([0.0, 0.5]), "weight_squared": np.array([0, 0.25])}, "no weight"),
        ({"weight": np.array([np.nan, 0.5])}, "undefined"),
        ({"weight_squared": np.array([4.49, 0.25])}, "does not fit"),
        ({"weight_squared": np.array([9.01, 0.25])}, "does not fit"),
        ({"weight_squared": np.array([5.0, 0.26])}, "does not fit"),
        ({"key": np.array([1, 1])}, "out of order"),
        ({"key": np.array([1, 18])}, "out of range"),
        ({"key": np.array([-1, 3])}, "negative"),
        ({"terminal": np.array([1])}, "leaves a terminal state"),
        ({"terminal": np.array([3])}, "terminal states are out of"),
        ({"terminal": np.array([2, 2])}, "terminal states are out of"),
    ],
)
def test_counts_of_no_log_are_refused(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ParameterError, match=problem):
        replace(POSSIBLE, **change).require_possible()


def test_sum_of_logs_has_no_record_that_leaves_a_terminal_state() -> None:
    ended = replace(POSSIBLE.where(POSSIBLE.state == 0), terminal=np.array([1]))
    both = POSSIBLE + ended
    both.require_possible()
    assert both.num_records == 4
    assert both == ended + POSSIBLE


# Labels


@pytest.mark.parametrize("label", [["a"], {"a": 1}, {1}, ("a", ["b"])])
def test_label_that_cannot_be_looked_up_is_refused(label: Any) -> None:
    with pytest.raises(LabelError, match="is no label"):
        Space((label, "b"))
    with pytest.raises(LabelError, match="is no label"):
        Space.sorted([label, "b"])
    with pytest.raises(LabelError):
        Space(("a", "b")).index(label)
    with pytest.raises(LabelError):
        Space.of_size(3).index(label)


@pytest.mark.parametrize("label", ["\ud800", "a\udfff", ("b", "\udc80")])
def test_half_a_surrogate_pair_is_no_label(label: Any) -> None:
    with pytest.raises(LabelError, match="half of a surrogate pair"):
        checked_label(label)
    assert checked_label("🦊") == "🦊"
