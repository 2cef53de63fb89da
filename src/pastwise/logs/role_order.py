"""Which records follow which: columns of the next state, of the episode and of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import BoolArray, IntArray
from pastwise.logs.role_words import WORDS_OF_ROLE, name_score, words_of
from pastwise.logs.values import Values

MOST_CANDIDATES = 8
"""Columns that are compared in pairs for a role: those with the best scores of their own."""


@dataclass(frozen=True)
class Order:
    """Columns of episode and time, and which rows follow each other by them.

    Attributes
    ----------
    score : float
    before, after : [pairs]
        Rows that follow each other within an episode.
    margin : float
        How far the score is ahead of that of the next best columns.
    """

    episode: Values | None
    time: Values | None
    score: float
    before: IntArray
    after: IntArray
    margin: float


def neighbours_of(blocks: Sequence[int]) -> IntArray:
    """Rows whose next row belongs to the same block."""
    rows = np.arange(sum(blocks))
    ends = np.cumsum(blocks) - 1
    return np.setdiff1d(rows, ends)


# The next state.


@dataclass(frozen=True)
class NextState:
    """A column and the one that holds its next values."""

    state: Values
    next_state: Values
    score: float
    reason: str


def find_next_state(columns: Sequence[Values], neighbours: IntArray) -> NextState | None:
    """The pair of columns that are most likely a state and the next one."""
    found = []
    for candidate in columns:
        if candidate.kind == "time" or candidate.distinct < 2:
            continue
        mark = name_score(candidate.name, "next") > 0 or candidate.name.endswith(("'", "_"))
        for column in columns:
            if column is candidate or column.kind != candidate.kind or column.distinct < 2:
                continue
            if is_counter(column, neighbours):
                continue
            scored = _score_next(column, candidate, mark, neighbours)
            if scored is not None:
                found.append(scored)
    return max(found, key=lambda each: each.score, default=None)


def _score_next(
    column: Values, candidate: Values, is_marked: bool, neighbours: IntArray
) -> NextState | None:
    """How likely a column holds the next values of another; None if it is not."""
    shared = _shared_values(column, candidate)
    if shared < 0.5:
        return None
    names = set(words_of(column.name))
    rest = [word for word in words_of(candidate.name) if word not in WORDS_OF_ROLE["next"]]
    has_same_name = is_marked and bool(names) and set(rest) == names
    followed = _followed_share(column, candidate, neighbours)
    chance = _chance_share(column)
    is_followed = followed > 0.5 + 0.5 * chance and column.distinct > 1
    changes = float(np.mean(_texts_differ(column, candidate)))
    if changes == 0:
        return None
    score = shared + 2.0 * has_same_name + 0.5 * is_marked + 1.5 * is_followed
    if not (has_same_name or (is_marked and shared > 0.8) or (is_followed and shared > 0.8)):
        return None
    if is_followed and not is_marked and name_score(candidate.name, "state") > 0:
        score -= 1.0
    reason = f"{candidate.name} has the values of {column.name}"
    if is_followed:
        reason += " in the next row"
    return NextState(column, candidate, score, reason)


def _shared_values(first: Values, second: Values) -> float:
    """Share of the different values of the column with fewer that both have."""
    one = set(first.labels)
    other = set(second.labels)
    return len(one & other) / max(min(len(one), len(other)), 1)


def _common_codes(first: Values, second: Values) -> tuple[IntArray, IntArray]:
    """Codes of two columns by which equal texts are equal; -1 and -2 for missing values."""
    places = {label: place for place, label in enumerate(first.labels)}
    mapped = [places.get(label, len(places) + i) for i, label in enumerate(second.labels)]
    second_codes = np.array([*mapped, -2], dtype=np.int64)[second.codes]
    return first.codes, second_codes


def _texts_differ(first: Values, second: Values) -> BoolArray:
    one, other = _common_codes(first, second)
    return np.asarray(one != other)


def _followed_share(column: Values, candidate: Values, neighbours: IntArray) -> float:
    """Share of rows in which the candidate has the column's value of the next row."""
    if not len(neighbours):
        return 0.0
    one, other = _common_codes(column, candidate)
    return float(np.mean(one[neighbours + 1] == other[neighbours]))


def _chance_share(column: Values) -> float:
    """Probability that two rows have the same value."""
    known = column.codes[column.codes >= 0]
    if not len(known):
        return 1.0
    shares = np.bincount(known) / len(known)
    return float(np.sum(shares**2))


# Episode and time.


def find_order(columns: Sequence[Values], neighbours: IntArray, blocks: Sequence[int]) -> Order:
    """The columns of episode and time, of all pairs the best."""
    num_rows = sum(blocks)
    episodes = best_of(columns, lambda each: _episode_score(each, num_rows, neighbours))
    times = best_of(columns, lambda each: _time_score(each, num_rows, neighbours))
    scored: list[tuple[float, Values | None, Values]] = []
    for time, own_time in times:
        alone = _series_score(time, neighbours)
        if alone is not None:
            scored.append((alone + own_time, None, time))
        for episode, own_episode in episodes:
            if episode.name == time.name:
                continue
            together = _pair_score(episode, time)
            if together is not None:
                scored.append((together + own_episode + own_time, episode, time))
    scored.sort(key=lambda each: -each[0])
    none = np.empty(0, dtype=np.int64)
    if not scored or scored[0][0] < 2.0:
        return Order(None, None, 0.0, none, none, 0.0)
    score, episode_column, time_column = scored[0]
    runner_up = scored[1][0] if len(scored) > 1 else 0.0
    before, after = _following(episode_column, time_column)
    return Order(episode_column, time_column, score, before, after, score - runner_up)


def best_of(
    columns: Sequence[Values], score: Callable[[Values], float | None]
) -> list[tuple[Values, float]]:
    """The columns with the best scores; those without one are left out."""
    scored = [(column, score(column)) for column in columns]
    known = [(column, number) for column, number in scored if number is not None]
    known.sort(key=lambda each: -each[1])
    return known[:MOST_CANDIDATES]


def _episode_score(column: Values, num_rows: int, neighbours: IntArray) -> float | None:
    """How much a column looks like an episode by itself; None if it cannot be one."""
    has_fractions = column.kind == "number" and not column.is_whole
    is_repeated = 1 < column.distinct <= 0.7 * num_rows
    if has_fractions or column.kind == "boolean" or not is_repeated:
        return None
    # Rows of an episode are often neighbours: no more changes than there are episodes.
    same = np.mean(column.codes[neighbours] == column.codes[neighbours + 1])
    most = 1 - column.distinct / num_rows
    runs = float(same) / most
    score = name_score(column.name, "episode") + min(runs, 1.0)
    is_id = column.distinct >= 10 and (column.is_whole or column.kind == "text")
    score += 0.3 * is_id
    score -= name_score(column.name, "none")
    score -= name_score(column.name, "action") / 2
    if np.mean(column.is_missing) > 0.1:
        score -= 1.0
    return score


def _time_score(column: Values, num_rows: int, neighbours: IntArray) -> float | None:
    """How much a column looks like a time by itself; None if it cannot be one."""
    if column.numbers is None or column.kind == "boolean" or column.distinct < 2:
        return None
    score = name_score(column.name, "time") + 1.0 * (column.kind == "time")
    score -= name_score(column.name, "none")
    if column.kind == "number" and not column.is_whole:
        score -= 0.5
    if np.mean(column.is_missing) > 0.1:
        score -= 1.0
    return score


def is_counter(column: Values, neighbours: IntArray) -> bool:
    """Whether a column numbers the rows."""
    if column.numbers is None or not len(neighbours):
        return False
    steps = column.numbers[neighbours + 1] - column.numbers[neighbours]
    return bool(column.distinct > 0.99 * len(column.codes) and np.mean(steps == 1) > 0.95)


def _series_score(time: Values, neighbours: IntArray) -> float | None:
    """How much a time looks like that of a single series; None if it repeats."""
    if time.distinct < 0.99 * len(time.codes) or time.numbers is None:
        return None
    steps = time.numbers[neighbours + 1] - time.numbers[neighbours]
    return float(np.mean(steps > 0)) if len(steps) else 0.0


def _pair_score(episode: Values, time: Values) -> float | None:
    """How much two columns look like episode and time; None if times repeat in episodes."""
    assert time.numbers is not None
    known = (episode.codes >= 0) & (time.codes >= 0)
    if np.mean(known) < 0.5:
        return None
    keys = episode.codes[known] * np.int64(time.distinct + 1) + time.codes[known]
    unique = len(np.unique(keys)) / len(keys)
    if unique < 0.95:
        return None

    # Within episodes, in the order of rows: does the time increase, and by equal steps?
    order = np.argsort(episode.codes[known], kind="stable")
    codes = episode.codes[known][order]
    numbers = time.numbers[known][order]
    is_same = codes[1:] == codes[:-1]
    steps = (numbers[1:] - numbers[:-1])[is_same]
    if len(steps) < 0.2 * len(codes):
        return None
    is_sorted = float(np.mean(steps > 0))
    most_common = np.unique(steps, return_counts=True)[1].max() / len(steps)
    is_regular = float(most_common) if is_sorted > 0.9 else 0.0
    return 20 * (unique - 0.95) + is_sorted + 0.5 * is_regular


def _following(episode: Values | None, time: Values | None) -> tuple[IntArray, IntArray]:
    """Rows that follow each other within an episode in the order of time."""
    assert time is not None
    assert time.numbers is not None
    codes = np.zeros(len(time.codes), dtype=np.int64) if episode is None else episode.codes
    order = np.lexsort((time.numbers, codes))
    order = order[(codes[order] >= 0) & np.isfinite(time.numbers[order])]
    is_same = codes[order][1:] == codes[order][:-1]
    return order[:-1][is_same], order[1:][is_same]
