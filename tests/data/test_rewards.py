"""Sums of rewards in counts: exact sums, the monoid, folds, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import Space, TransitionCounts
from pastwise.data.counts import Decay
from pastwise.data.episodes import random_folds
from pastwise.data.live_counts import LiveCounts
from pastwise.errors import ParameterError

STATES = Space.of_size(2)
ACTIONS = Space.of_size(2)

Rewarded = tuple[int, int, int, int, int]
"""State, action, next state, weight in quarters and reward in eighths: sums are exact."""

Sums = dict[tuple[int, int, int], tuple[Fraction | int, Fraction | int]]
"""Sum of w r and of w r^2 by state, action and next state."""

index = st.integers(0, 1)
rewarded_logs = st.lists(
    st.tuples(index, index, index, st.integers(1, 8), st.integers(-40, 40)), max_size=12
)


def counts_of(log: Sequence[Rewarded]) -> TransitionCounts:
    """The counts of records with weights and rewards."""
    state, action, next_state, weight, reward = np.array(log, dtype=np.int64).reshape(-1, 5).T
    return TransitionCounts.from_records(
        state, action, next_state, STATES, ACTIONS, weight=weight / 4, reward=reward / 8
    )


def exact_sums(log: Sequence[Rewarded]) -> Sums:
    """Sum of w r and of w r^2 of each distinct transition."""
    sums: Sums = {}
    for state, action, next_state, quarters, eighths in log:
        weight = Fraction(quarters, 4)
        reward = Fraction(eighths, 8)
        first, second = sums.get((state, action, next_state), (Fraction(0), Fraction(0)))
        transition = (state, action, next_state)
        sums[transition] = (first + weight * reward, second + weight * reward**2)
    return sums


def sums_of(counts: TransitionCounts) -> Sums:
    assert counts.reward_sums is not None
    found: Sums = {}
    for i in range(len(counts.key)):
        place = (int(counts.state[i]), int(counts.action[i]), int(counts.next_state[i]))
        reward, squared = (Fraction(float(sums[i])) for sums in counts.reward_sums)
        found[place] = (reward, squared)
    return found


@given(rewarded_logs)
def test_sums_of_rewards_are_exact(log: list[Rewarded]) -> None:
    counts = counts_of(log)
    counts.require_possible()
    assert sums_of(counts) == exact_sums(log)


@given(rewarded_logs, rewarded_logs)
def test_counts_with_rewards_add_up(one: list[Rewarded], two: list[Rewarded]) -> None:
    assert counts_of(one) + counts_of(two) == counts_of([*one, *two])
    assert counts_of(two) + counts_of(one) == counts_of([*one, *two])


def test_empty_counts_are_neutral_with_rewards_as_well() -> None:
    counts = counts_of([(0, 1, 1, 4, 8)])
    empty = TransitionCounts.empty(STATES, ACTIONS)
    assert empty + counts == counts
    assert counts + empty == counts


def test_counts_with_and_without_rewards_are_not_added() -> None:
    counts = counts_of([(0, 1, 1, 4, 8)])
    with pytest.raises(ParameterError, match="with rewards and counts without"):
        counts + counts.without_rewards()


@given(rewarded_logs, rewarded_logs)
def test_taking_away_what_was_added_gives_the_rewards_back(
    one: list[Rewarded], two: list[Rewarded]
) -> None:
    """With weights of 1, of which all parts know the same, this is exact."""
    kept = [(*record[:3], 4, record[4]) for record in one]
    taken = [(*record[:3], 4, record[4]) for record in two]
    left = (counts_of(kept) + counts_of(taken)).without(counts_of(taken))
    left.require_possible()
    assert left.key.tolist() == counts_of(kept).key.tolist()
    for transition, (reward, squared) in exact_sums(kept).items():
        assert float(sums_of(left)[transition][0]) == pytest.approx(float(reward), abs=1e-9)
        assert float(sums_of(left)[transition][1]) == pytest.approx(float(squared), abs=1e-9)


def test_taking_away_records_without_rewards_takes_their_mean() -> None:
    counts = counts_of([(0, 0, 1, 4, 8), (0, 0, 1, 4, 24)])
    one = counts_of([(0, 0, 1, 4, 8)]).without_rewards()
    assert sums_of(counts.without(one)) == {(0, 0, 1): (Fraction(2), Fraction(5))}


def test_rewards_follow_labels_tasks_and_age() -> None:
    log = [(0, 1, 1, 4, 8), (1, 0, 0, 8, 16)]
    counts = counts_of(log)

    larger = counts.relabelled(Space((5, 1, 0)), Space((1, 0)))
    assert sums_of(larger) == {(2, 0, 1): (1, 1), (1, 1, 2): (4, 8)}

    dated = TransitionCounts.from_groups(
        STATES,
        ACTIONS,
        (np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), np.array([1, 1])),
        (np.array([1, 1]), np.array([1.0, 2.0]), np.array([1.0, 4.0])),
        tasks=Space(("a", "b")),
        decay=Decay(0.0, 1.0),
        rewards=(np.array([3.0, 8.0]), np.array([9.0, 32.0])),
    )
    assert sums_of(dated.total()) == {(0, 1, 1): (11, 41)}
    assert sums_of(dated.as_of(1.0).total()) == {(0, 1, 1): (Fraction(11, 2), Fraction(41, 2))}
    assert [sums_of(part) for part in dated.split()] == [{(0, 1, 1): (3, 9)}, {(0, 1, 1): (8, 32)}]


def test_a_record_added_live_has_its_reward() -> None:
    log: list[Rewarded] = [(0, 1, 1, 4, 8), (1, 0, 0, 8, 16)]
    live = LiveCounts(counts_of(log[:1]))
    live.add(1, 0, 0, weight=2.0, reward=2.0)
    assert live.counts() == counts_of(log)


@pytest.mark.parametrize("reward", [None, float("inf"), float("nan"), "1"])
def test_a_live_record_without_a_proper_reward_is_refused(reward: float | None) -> None:
    live = LiveCounts(counts_of([(0, 1, 1, 4, 8)]))
    with pytest.raises(ParameterError, match="reward"):
        live.add(0, 1, 1, weight=1.0, reward=reward)


def test_a_live_reward_of_a_log_without_rewards_is_refused() -> None:
    live = LiveCounts(counts_of([(0, 1, 1, 4, 8)]).without_rewards())
    with pytest.raises(ParameterError, match="no rewards"):
        live.add(0, 1, 1, weight=1.0, reward=1.0)


@given(rewarded_logs, st.integers(0, 5))
def test_random_folds_keep_all_rewards(log: list[Rewarded], seed: int) -> None:
    counts = counts_of([(*record[:3], 4, record[4]) for record in log])
    folds = random_folds(counts, number=4, seed=seed)
    folds.require_possible()
    total = folds.total()
    assert total.key.tolist() == counts.key.tolist()
    assert counts.reward_sums is not None
    assert total.reward_sums is not None
    for found, expected in zip(total.reward_sums, counts.reward_sums, strict=True):
        assert found == pytest.approx(expected, abs=1e-9)


def test_mean_rewards_of_random_folds_vary_as_those_of_random_parts() -> None:
    """Half of 40 records with variance s^2: variance of the mean s^2 / 20 * (1 - 20 / 40)."""
    rewards = np.linspace(-1, 1, 40)
    zeros = np.zeros(40, dtype=np.int64)
    counts = TransitionCounts.from_records(zeros, zeros, zeros, STATES, ACTIONS, reward=rewards)
    differences = []
    for seed in range(2000):
        part = random_folds(counts, number=2, seed=seed).split()[0]
        assert part.reward is not None
        size = int(part.records[0])
        variance = rewards.var(ddof=1) / size * (1 - size / 40)
        differences.append(float(part.reward[0] / part.weight[0]) / variance**0.5)
    assert np.mean(differences) == pytest.approx(0, abs=0.1)  # 4 standard errors
    assert np.var(differences) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize(
    ("reward", "squared", "problem"),
    [
        ([2.0], [1.0], "does not fit"),
        ([0.0], [-1.0], "negative"),
        ([np.inf], [1.0], "too large"),
        ([1.0, 2.0], [1.0, 4.0], "shape"),
    ],
)
def test_impossible_sums_of_rewards_are_refused(
    reward: list[float], squared: list[float], problem: str
) -> None:
    one = np.ones(1)
    counts = TransitionCounts(
        STATES,
        ACTIONS,
        key=np.array([0]),
        records=np.array([1]),
        weight=one,
        weight_squared=one,
        reward=np.array(reward),
        reward_squared=np.array(squared),
    )
    with pytest.raises(ParameterError, match=problem):
        counts.require_possible()


@pytest.mark.parametrize("reward", [np.inf, np.nan])
def test_a_reward_that_is_not_finite_is_refused(reward: float) -> None:
    with pytest.raises(ParameterError, match="finite"):
        TransitionCounts.from_records([0], [0], [0], STATES, ACTIONS, reward=[reward])


def test_rewards_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(ParameterError, match="too large"):
        TransitionCounts.from_records([0], [0], [0], STATES, ACTIONS, reward=[1e200])
