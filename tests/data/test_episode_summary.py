"""Summaries of episodes: folds add up to the counts, sums are those of both logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pastwise import Space, TransitionCounts
from pastwise.data.counts import Decay
from pastwise.data.episodes import NUM_FOLDS, EpisodeSummary, EpisodeVisits, random_folds
from pastwise.errors import ParameterError

STATES = Space("abc")
ACTIONS = Space("xy")


def counts_of(seed: int, records: int, states: Space = STATES) -> TransitionCounts:
    """A random log of whole weights, whose sums are exact."""
    rng = np.random.default_rng(seed)
    return TransitionCounts.from_records(
        rng.integers(len(states), size=records),
        rng.integers(len(ACTIONS), size=records),
        rng.integers(len(states), size=records),
        states,
        ACTIONS,
        weight=rng.integers(1, 5, size=records),
    )


def summary_of(counts: TransitionCounts, **changes: object) -> EpisodeSummary:
    """A summary that has these counts, split at random, as its folds."""
    summary = EpisodeSummary.from_lengths(
        np.array([1, 4]),
        np.array([2, 3]),
        starts=np.array([1, 3, *[0] * (len(counts.states) - 2)]),
        varied=2,
        by_action=np.array([5, 1]),
        folds=random_folds(counts, seed=7),
        unit="who",
    )
    return replace(summary, **changes)  # type: ignore[arg-type]


def assert_split(folds: TransitionCounts, counts: TransitionCounts) -> None:
    """The folds have exactly the records of the counts, and their weights up to rounding."""
    total = folds.total()
    assert folds.shape == (NUM_FOLDS,)
    assert np.array_equal(total.key, counts.key)
    assert np.array_equal(total.records, counts.records)
    assert np.allclose(total.weight, counts.weight, rtol=1e-12)
    assert np.allclose(total.weight_squared, counts.weight_squared, rtol=1e-12)
    assert np.array_equal(folds.terminal, counts.terminal)
    assert folds.decay == counts.decay


@pytest.mark.parametrize("seed", range(5))
def test_random_folds_split_every_record(seed: int) -> None:
    counts = counts_of(seed, 300).ending_in(np.array([2]))
    folds = random_folds(counts, seed=seed)
    assert_split(folds, counts)
    assert (folds.sum_by_system(folds.records) > 0).all()
    assert random_folds(counts, seed=seed) == folds
    assert random_folds(counts, seed=seed + 1) != folds


def test_random_folds_are_equally_likely() -> None:
    counts = TransitionCounts.from_records([0] * 10**4, [0] * 10**4, [1] * 10**4, STATES, ACTIONS)
    records = random_folds(counts, 4).records
    assert records.sum() == 10**4
    assert (abs(records - 2500) < 5 * np.sqrt(10**4 * 0.25 * 0.75)).all()


@pytest.mark.parametrize("seed", range(5))
def test_later_records_are_added_to_the_known_folds(seed: int) -> None:
    """Over more labels, and without the records that leave a state that is now terminal."""
    log = counts_of(seed, 200)
    later = counts_of(seed + 50, 100, Space("abcd")).ending_in(np.array([1]))
    both = log + later
    summary = summary_of(log)
    folds = summary.folds_of(both, seed)
    assert_split(folds, both)

    # Each fold still has the records of its episodes.
    known = summary.folds.relabelled(both.states, both.actions).ending_in(both.terminal)
    place = np.searchsorted(folds.key, known.key)
    assert np.array_equal(folds.key[place], known.key)
    assert (folds.records[place] >= known.records).all()


def test_known_folds_come_back_without_later_records() -> None:
    log = counts_of(3, 200)
    summary = summary_of(log)
    assert summary.folds_of(log) == summary.folds


def test_folds_have_the_weights_of_a_later_date() -> None:
    log = replace(counts_of(4, 100), decay=Decay(as_of=10.0, half_life=3.0))
    later = replace(counts_of(5, 100), decay=Decay(as_of=16.0, half_life=3.0))
    assert_split(summary_of(log).folds_of(log + later), log + later)


def test_folds_follow_other_weights_of_the_same_records() -> None:
    """As when past tasks are weighed by their goals."""
    log = counts_of(6, 100)
    light = log.scale(0.25)
    assert_split(summary_of(log).folds_of(light), light)
    more = (log + counts_of(7, 50)).scale(0.25)
    assert_split(summary_of(log).folds_of(more), more)


def test_counts_without_the_episodes_are_refused() -> None:
    summary = summary_of(counts_of(8, 100))
    for other in (counts_of(9, 50), TransitionCounts.empty(STATES, ACTIONS)):
        with pytest.raises(ParameterError, match="lack records of the episodes"):
            summary.folds_of(other)
        with pytest.raises(ParameterError, match="lack records of the episodes"):
            summary.require_part_of(other)


def test_numbers_of_two_logs_add_up() -> None:
    one = summary_of(counts_of(10, 100))
    two = summary_of(counts_of(11, 100, Space("bd")), median=9, longest=9)
    both = one + two
    assert both.to_dict() == {
        "number": 10,
        "records": 28,
        "shortest": 1,
        "median": 6,  # of 4 and 9: 6.5, rounded to even
        "longest": 9,
        "starts": [1, 4, 0, 3],
        "varied": 4,
        "several": 6,
        "by_action": [10, 2],
        "unit": "who",
    }
    assert both.folds.states.labels == ("a", "b", "c", "d")
    assert_split(both.folds, counts_of(10, 100) + counts_of(11, 100, Space("bd")))
    assert (one + replace(two, unit="car")).unit is None


@pytest.mark.parametrize(
    ("lengths", "episodes", "median"),
    [([5], [1], 5), ([1, 4], [2, 2], 2), ([4, 1], [3, 2], 4), ([3, 2, 1], [1, 1, 1], 2)],
)
def test_median_is_that_of_all_lengths(
    lengths: list[int], episodes: list[int], median: int
) -> None:
    summary = EpisodeSummary.from_lengths(
        np.array(lengths),
        np.array(episodes),
        starts=np.zeros(3, dtype=np.int64),
        varied=0,
        by_action=np.zeros(2, dtype=np.int64),
        folds=random_folds(counts_of(1, 10)),
    )
    assert summary.median == median == round(float(np.median(np.repeat(lengths, episodes))))


@pytest.mark.parametrize(
    "changes",
    [
        {"starts": np.zeros(2, dtype=np.int64)},
        {"by_action": np.zeros(3, dtype=np.int64)},
        {"by_action": np.array([-1, 2])},
        {"by_action": np.array([9, 1])},
        {"shortest": 0},
        {"longest": 1},
        {"varied": 4},
        {"number": 999},
        {"records": 13},
        {"folds": random_folds(counts_of(1, 10), 3)},
    ],
)
def test_summaries_of_no_log_are_refused(changes: dict[str, object]) -> None:
    counts = counts_of(1, 14)
    number = counts.records.astype(np.float64)
    summary = summary_of(replace(counts, weight=number, weight_squared=number))
    summary.require_possible()
    with pytest.raises(ParameterError):
        replace(summary, **changes).require_possible()  # type: ignore[arg-type]


VISITS = EpisodeVisits(np.array([4, 2, 0]), np.array([0, 1, 3]), np.array([3, 4, 2]), 2)


def test_visits_move_to_larger_spaces_and_add_up() -> None:
    one = summary_of(counts_of(1, 50), visits=VISITS)
    larger = one.relabelled(Space("abcd"), Space("wxy"))
    assert larger.visits is not None
    assert larger.visits.by_state.tolist() == [4, 2, 0, 0]
    assert [larger.visits.of_state(state).tolist() for state in range(4)] == [
        [0, 3, 4],
        [0, 0, 2],
        [0, 0, 0],
        [0, 0, 0],
    ]
    both = one + one
    assert both.visits is not None
    assert both.visits.of_state(0).tolist() == [6, 8]
    assert (one + summary_of(counts_of(1, 50))).visits is None


@pytest.mark.parametrize(
    "changes",
    [
        {"by_state": np.array([4, 2])},
        {"by_state": np.array([6, 2, 0])},
        {"by_state": np.array([-4, 2, 0])},
        {"pair": np.array([1, 0, 3])},
        {"pair": np.array([0, 1, 6])},
        {"by_pair": np.array([3, 4])},
        {"by_pair": np.array([3, 5, 2])},
        {"by_pair": np.array([0, 4, 2])},
    ],
)
def test_visits_of_no_log_are_refused(changes: dict[str, object]) -> None:
    VISITS.require_possible(5, 3)
    with pytest.raises(ParameterError):
        replace(VISITS, **changes).require_possible(5, 3)  # type: ignore[arg-type]
