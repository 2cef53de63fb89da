"""Arrays: conventions about zero, folding, grouping, sampling."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log as ln

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise._numerics import arrays as nx


def test_frozen_array_cannot_be_written() -> None:
    array = np.arange(3)
    with pytest.raises(ValueError, match="read-only"):
        nx.frozen(array)[0] = 7


def test_log_of_zero_is_minus_infinity() -> None:
    np.testing.assert_array_equal(nx.log([0.0, 1.0]), [-np.inf, 0.0])


def test_x_log_x_of_zero_is_zero() -> None:
    np.testing.assert_allclose(
        nx.xlogx(np.array([0.0, 1.0, 0.5, 2.0])), [0.0, 0.0, -ln(2) / 2, 2 * ln(2)]
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0, 5.0], [4.0, 3.0, 5.0]),
        ([-np.inf, 5.0], [-np.inf, -np.inf, 5.0]),
        ([-np.inf, -np.inf], [-np.inf, -np.inf, -np.inf]),
    ],
)
def test_expectation_lets_impossible_values_count_only_where_they_may_be_met(
    values: Sequence[float], expected: Sequence[float]
) -> None:
    probabilities = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    found = nx.linear_expectation(lambda v: probabilities @ v, np.array(values))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("columns", [1, 2, 7, 8, 9, 32, 33, 100])
@pytest.mark.parametrize("ufunc", [np.add, np.maximum])
def test_fold_of_a_batch_is_that_of_each_row_to_the_last_bit(ufunc: np.ufunc, columns: int) -> None:
    rows = np.random.default_rng(0).normal(size=(3, 5, columns))
    found = nx.fold(ufunc, rows)
    np.testing.assert_array_equal(
        found, [[nx.fold(ufunc, row) for row in matrix] for matrix in rows]
    )
    np.testing.assert_allclose(found, ufunc.reduce(rows, axis=-1), rtol=1e-13)


def test_normalise_scales_each_row() -> None:
    np.testing.assert_array_equal(
        nx.normalise(np.array([[1.0, 3.0], [2.0, 0.0]])), [[0.25, 0.75], [1.0, 0.0]]
    )


def test_group_sum_of_groups_some_of_them_empty() -> None:
    np.testing.assert_array_equal(
        nx.group_sum(np.array([2, 0, 2]), [1.0, 10.0, 100.0], 4), [10.0, 0.0, 101.0, 0.0]
    )


def test_batch_index_picks_one_state_in_each_element() -> None:
    table = np.arange(24).reshape(2, 3, 4)
    state = np.array([[0, 1, 2], [3, 0, 1]])
    expected = [[table[i, j, state[i, j]] for j in range(3)] for i in range(2)]
    np.testing.assert_array_equal(table[(*nx.batch_index((2, 3)), state)], expected)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any), st.integers(0, 1023))
def test_sample_inverts_the_distribution_function_exactly(weights: list[int], number: int) -> None:
    """The same index as exact fractions give; the odd numerator keeps clear of the steps."""
    uniform = Fraction(2 * number + 1, 2048)
    steps = [Fraction(sum(weights[: i + 1]), sum(weights)) for i in range(len(weights))]
    expected = next(i for i, step in enumerate(steps) if uniform < step)
    assert nx.sample(np.array(weights, dtype=np.float64), np.array(float(uniform))) == expected


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2.0**-53])
@pytest.mark.parametrize(
    "probabilities",
    [[0, 0.3, 0, 0.7, 0], [0, 1, 0], [0, 1e-300, 0], [0, 5e-324, 0], [0.1] * 10 + [0]],
)
def test_sample_never_returns_a_zero_even_at_the_ends(
    probabilities: list[float], uniform: float
) -> None:
    assert probabilities[int(nx.sample(np.array(probabilities), np.array(uniform)))] > 0


def test_sample_returns_each_index_in_proportion() -> None:
    uniform = (np.arange(1000) + 0.5) / 1000
    sampled = nx.sample(np.broadcast_to([0.2, 0.5, 0.3], (1000, 3)), uniform)
    assert np.bincount(sampled).tolist() == [200, 500, 300]


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (3, 1), (1, 1), (4, 3, 2), (4, 1, 2), (4, 1, 1)])
def test_entries_are_those_of_the_full_table(shape: tuple[int, ...]) -> None:
    table = np.arange(float(np.prod(shape))).reshape(shape)
    full = np.broadcast_to(table, (*shape[:-2], 3, 2))
    row = np.array([2, 0, 0, 1])
    column = np.array([1, 1, 0, 0])
    np.testing.assert_array_equal(nx.entries(table, row, column), full[..., row, column])
    np.testing.assert_array_equal(nx.entries(table, row, 1), full[..., row, 1])
    np.testing.assert_array_equal(nx.entries(table, 2, 1), full[..., 2, 1])
