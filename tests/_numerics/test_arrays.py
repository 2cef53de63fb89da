"""The numerical floor: conventions about zero, sampling, checks of distributions, streams of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log as ln

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from pastwise import Streams
from pastwise._numerics import arrays as nx
from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.checks import checked_probabilities
from pastwise._numerics.threads import side_by_side


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


# Sampling


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
def test_sample_never_draws_a_zero_even_at_the_ends(
    probabilities: list[float], uniform: float
) -> None:
    assert probabilities[int(nx.sample(np.array(probabilities), np.array(uniform)))] > 0


def test_sample_draws_each_index_in_proportion() -> None:
    uniform = (np.arange(1000) + 0.5) / 1000
    drawn = nx.sample(np.broadcast_to([0.2, 0.5, 0.3], (1000, 3)), uniform)
    assert np.bincount(drawn).tolist() == [200, 500, 300]


# Checks


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
        ([[0.5, 0.5], [0.5, 0.4]], r"p\[1\] sums to 0.9, not to 1; divide each row by its sum"),
        ([0.5, 0.4], r"p\[\] sums to 0.9"),
    ],
)
def test_a_bad_distribution_is_refused_and_located(values: ArrayLike, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked_probabilities("p", values)


def test_tolerance_of_row_sums_grows_with_their_length() -> None:
    off = 5e-8
    long = np.full(100, (1 + off) / 100)
    np.testing.assert_array_equal(checked_probabilities("p", long), long)
    with pytest.raises(ValueError, match="sums to"):
        checked_probabilities("p", [0.5, 0.5 + off])


def test_sums_are_not_checked_where_rows_are_not_distributions() -> None:
    np.testing.assert_array_equal(
        checked_probabilities("p", [2.0, 3.0], sum_to_one=False), [2.0, 3.0]
    )


# Streams


def _draw(streams: Streams, number: int) -> FloatArray:
    """The next numbers of every stream: [number, runs]."""
    return np.stack([streams.random((len(streams),)) for _ in range(number)])


def test_stream_of_a_run_is_that_of_its_own_generator() -> None:
    """Also beyond the block of numbers that is drawn at a time."""
    seeds = np.random.SeedSequence(10).spawn(3)
    alone = [np.random.default_rng(seed).random(300) for seed in seeds]
    np.testing.assert_array_equal(_draw(Streams(seeds), 300), np.stack(alone, axis=1))


def test_run_draws_the_same_whatever_the_number_of_runs_beside_it() -> None:
    seeds = np.random.SeedSequence(10).spawn(5)
    five, two = Streams(seeds), Streams(seeds[3:])
    np.testing.assert_array_equal(_draw(five, 200)[:, 3:], _draw(two, 200))
    np.testing.assert_array_equal(_draw(five.spawn(2)[1], 9)[:, 3:], _draw(two.spawn(2)[1], 9))


def test_children_are_those_that_a_generator_spawns() -> None:
    children = Streams(np.random.SeedSequence(10).spawn(2)).spawn(3)
    for run, seed in enumerate(np.random.SeedSequence(10).spawn(2)):
        for child, generator in zip(children, np.random.default_rng(seed).spawn(3), strict=True):
            np.testing.assert_array_equal(
                _draw(child.spawn(1)[0], 4)[:, run], generator.spawn(1)[0].random(4)
            )


def test_spawn_replays_and_reading_one_child_moves_no_other() -> None:
    streams = Streams(np.random.SeedSequence(10).spawn(2))
    first = [_draw(child, 5) for child in streams.spawn(3)]
    _draw(streams, 7)
    again = [_draw(child, 5) for child in streams.spawn(4)]
    np.testing.assert_array_equal(again[:3], first)
    assert len(np.unique(np.stack(again))) == 4 * 5 * 2, "children are independent streams"


@pytest.mark.parametrize("size", [(), (3,), (2, 1)])
def test_streams_refuse_another_number_of_runs(size: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="these are 2 streams; a batch of shape"):
        Streams(np.random.SeedSequence(10).spawn(2)).random(size)


def test_threads_give_results_in_order_and_pass_on_errors() -> None:
    assert side_by_side(lambda x: x**2, range(20)) == [x**2 for x in range(20)]
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda x: 1 // x, [1, 0, 2])
    assert side_by_side(lambda x: x + 1, [1]) == [2]
