"""Streams of random numbers: one for each run of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.streams import Streams
from pastwise.errors import ParameterError


def _numbers(streams: Streams, number: int) -> FloatArray:
    """The next numbers of every stream: [number, runs]."""
    return np.stack([streams.random((len(streams),)) for _ in range(number)])


def test_stream_of_a_run_is_that_of_its_own_generator() -> None:
    """Also beyond the block of numbers that is generated at a time."""
    seeds = np.random.SeedSequence(10).spawn(3)
    alone = [np.random.default_rng(seed).random(300) for seed in seeds]
    np.testing.assert_array_equal(_numbers(Streams(seeds), 300), np.stack(alone, axis=1))


def test_a_run_gets_the_same_numbers_for_any_number_of_other_runs() -> None:
    seeds = np.random.SeedSequence(10).spawn(5)
    five, two = Streams(seeds), Streams(seeds[3:])
    np.testing.assert_array_equal(_numbers(five, 200)[:, 3:], _numbers(two, 200))
    np.testing.assert_array_equal(
        _numbers(five.spawn(2)[1], 9)[:, 3:], _numbers(two.spawn(2)[1], 9)
    )


def test_children_are_those_that_a_generator_spawns() -> None:
    children = Streams(np.random.SeedSequence(10).spawn(2)).spawn(3)
    for run, seed in enumerate(np.random.SeedSequence(10).spawn(2)):
        for child, generator in zip(children, np.random.default_rng(seed).spawn(3), strict=True):
            np.testing.assert_array_equal(
                _numbers(child.spawn(1)[0], 4)[:, run], generator.spawn(1)[0].random(4)
            )


def test_spawn_replays_and_reading_one_child_moves_no_other() -> None:
    streams = Streams(np.random.SeedSequence(10).spawn(2))
    first = [_numbers(child, 5) for child in streams.spawn(3)]
    _numbers(streams, 7)
    again = [_numbers(child, 5) for child in streams.spawn(4)]
    np.testing.assert_array_equal(again[:3], first)
    assert len(np.unique(np.stack(again))) == 4 * 5 * 2, "children are independent streams"


@pytest.mark.parametrize("size", [(), (3,), (2, 1)])
def test_streams_refuse_another_number_of_runs(size: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="these are 2 streams; a batch of shape"):
        Streams(np.random.SeedSequence(10).spawn(2)).random(size)
