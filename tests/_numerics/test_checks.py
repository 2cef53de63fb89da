"""Checks of distributions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from pastwise._numerics.checks import (
    checked_probabilities,
    require_number,
    require_truth_value,
    require_whole_number,
)
from pastwise.errors import ParameterError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (0.5, r"p must have at least one entry in its last axis; its shape is \(\)"),
        (np.empty((2, 0)), r"its shape is \(2, 0\)"),
        (
            [[0.5, 0.5], [1.5, -0.5]],
            r"p\[1, 1\] is -0.5; probabilities must be finite and not negative",
        ),
        ([[0.5, np.nan]], r"p\[0, 1\] is nan"),
        ([np.inf, 0.0], r"p\[0\] is inf"),
        ([[0.5, 0.5], [0.5, 0.4]], r"p\[1\] sums to 0.9, not to 1; divide it by its sum"),
        ([0.5, 0.4], r"p sums to 0.9"),
    ],
)
def test_a_bad_distribution_is_refused_and_located(values: ArrayLike, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        checked_probabilities("p", values)


def test_tolerance_of_row_sums_grows_with_their_length() -> None:
    off = 5e-8
    long = np.full(100, (1 + off) / 100)
    np.testing.assert_array_equal(checked_probabilities("p", long), long)
    with pytest.raises(ParameterError, match="sums to"):
        checked_probabilities("p", [0.5, 0.5 + off])


def test_sums_are_not_checked_where_rows_are_not_distributions() -> None:
    np.testing.assert_array_equal(
        checked_probabilities("p", [2.0, 3.0], sum_to_one=False), [2.0, 3.0]
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2, "2"),
        (np.nan, "nan"),
        (True, "True"),
        ("1", "'1'"),
        (10**400, "1000"),
        (-(10**400), "-1000"),
        (10**5000, "a number of thousands of digits"),
        ([10**5000], "a number of thousands of digits"),
    ],
    ids=["large", "nan", "truth", "text", "huge", "negative", "unwritable", "list"],
)
def test_what_is_no_number_of_the_range_is_refused(value: object, shown: str) -> None:
    """Also numbers that no float holds, and numbers that Python does not write out."""
    with pytest.raises(ParameterError, match=f"epsilon must be a number from 0 to 1, not {shown}"):
        require_number("epsilon", value, 0, 1)
    with pytest.raises(ParameterError, match=f"epochs must be a .* from 0 to 1, not {shown}"):
        require_whole_number("epochs", value, 0, 1)


def test_only_true_and_false_are_truth_values() -> None:
    require_truth_value("replay", True)
    require_truth_value("replay", np.False_)
    for value in (0, 1.0, None, "no"):
        with pytest.raises(ParameterError, match=f"replay must be true or false, not {value!r}"):
            require_truth_value("replay", value)
