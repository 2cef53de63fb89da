"""Rewards, outcomes and single series: exact sums in every engine, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from pastwise import Columns, Goal, LogWarning, Space, TransferLearner, count_transitions
from pastwise.data.space import key_of
from pastwise.errors import LogError, ParameterError
from pastwise.logs.episodes import read_episodes
from pastwise.logs.read import read_log
from pastwise.logs.validate import validate_log

Sums = dict[tuple[str, str, str], tuple[int, Fraction, Fraction, Fraction]]
"""Records, weight, weighted reward and weighted squared reward by keys of the transition."""

ENGINES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "mapping": lambda table: table.to_pydict(),
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: pl.from_arrow(table),
    "lazy polars": lambda table: pl.DataFrame(table).lazy(),
    "duckdb": lambda table: duckdb.from_arrow(table),
    "ibis": lambda table: ibis.memtable(table),
}


def log(number: int = 60) -> dict[str, list[Any]]:
    """A log in five episodes, with weights in quarters and rewards in eighths."""
    rng = Random(1)
    return {
        "room": [rng.choice("ab") for _ in range(number)],
        "did": [rng.choice("xy") for _ in range(number)],
        "then": [rng.choice("ab") for _ in range(number)],
        "who": [i % 5 for i in range(number)],
        "t": list(range(number)),
        "times": [rng.choice([1, 2]) for _ in range(number)],
        "weight": [rng.choice([0.25, 1.0, 2.5]) for _ in range(number)],
        "gain": [rng.choice([-1.125, 0.0, 0.25, 3.0]) for _ in range(number)],
    }


def exact(columns: dict[str, list[Any]], follows: list[Any], weighted: bool = True) -> Sums:
    """The sums by a plain loop over fractions; records that nothing follows do not count."""
    sums: Sums = {}
    for i, next_state in enumerate(follows):
        if next_state is None or columns["gain"][i] is None:
            continue
        times = columns["times"][i] if weighted else 1
        weight = times * Fraction(columns["weight"][i]) if weighted else Fraction(1)
        reward = Fraction(columns["gain"][i])
        key = (columns["room"][i], columns["did"][i], key_of(next_state))
        records, total, rewards, squares = sums.get(key, (0, Fraction(0), Fraction(0), Fraction(0)))
        sums[key] = (
            records + times,
            total + weight,
            rewards + weight * reward,
            squares + weight * reward**2,
        )
    return sums


def sums_of(counts: Any) -> Sums:
    found: Sums = {}
    for i in range(len(counts.key)):
        key = (
            key_of(counts.states.labels[counts.state[i]]),
            key_of(counts.actions.labels[counts.action[i]]),
            key_of(counts.states.labels[counts.next_state[i]]),
        )
        sums = [
            Fraction(float(each[i]))
            for each in (counts.weight, counts.reward, counts.reward_squared)
        ]
        found[key] = (int(counts.records[i]), sums[0], sums[1], sums[2])
    return found


WEIGHTED: dict[str, Any] = {
    "state": "room",
    "action": "did",
    "reward": "gain",
    "count": "times",
    "weight": "weight",
}
PLAIN: dict[str, Any] = {"state": "room", "action": "did", "reward": "gain"}


@pytest.mark.parametrize("engine", ENGINES)
def test_rewards_of_transitions(engine: str) -> None:
    columns = log()
    table = ENGINES[engine](pa.table(columns))
    counts = count_transitions(table, next_state="then", **WEIGHTED)
    assert sums_of(counts) == exact(columns, columns["then"])


@pytest.mark.parametrize("engine", ENGINES)
def test_rewards_of_chained_records_and_of_their_folds(engine: str) -> None:
    """The reward of a record is that of its own action; the last of an episode is no transition."""
    columns = log()
    columns["gain"][-1] = None  # of a last record, which need not have one
    follows: list[Any] = [*columns["room"][5:], *[None] * 5]
    table = ENGINES[engine](pa.table(columns))
    reading = read_log(table, Columns.of(**PLAIN, episode="who", time="t"))
    assert sums_of(reading.counts) == exact(columns, follows, weighted=False)
    assert not reading.findings
    assert reading.episodes is not None

    # The folds are the episodes here.
    for who, part in enumerate(reading.episodes.folds.split()[:5]):
        own = [each if i % 5 == who else None for i, each in enumerate(follows)]
        assert sums_of(part) == exact(columns, own, weighted=False)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_shot_decisions_with_the_reward_as_outcome(engine: str) -> None:
    columns = log()
    table = ENGINES[engine](pa.table(columns))
    counts = count_transitions(table, **WEIGHTED)
    assert counts.states.labels == ("a", "b", -1.125, 0.0, 0.25, 3.0)
    assert counts.terminal.tolist() == [2, 3, 4, 5]
    assert sums_of(counts) == exact(columns, columns["gain"])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files(suffix: str, tmp_path: Path) -> None:
    columns = log()
    columns["gain"] = [int(gain > 0) for gain in columns["gain"]]
    path = tmp_path / f"log.{suffix}"
    write = csv.write_csv if suffix == "csv" else parquet.write_table
    write(pa.table(columns), path)
    counts = count_transitions(str(path), **PLAIN)
    assert counts.states.labels == ("a", "b", 0, 1)
    assert sums_of(counts) == exact(columns, columns["gain"], weighted=False)
    with_next = count_transitions(str(path), next_state="then", **PLAIN)
    assert sums_of(with_next) == exact(columns, columns["then"], weighted=False)


def test_a_reward_of_many_values_has_deciles_as_outcomes() -> None:
    rewards = np.random.default_rng(0).normal(size=500)
    table = {"room": ["a"] * 500, "did": ["x", "y"] * 250, "gain": rewards.tolist()}
    counts = count_transitions(table, **PLAIN)
    assert len(counts.terminal) == 10
    assert counts.records.sum() == 500
    assert counts.reward is not None
    assert counts.reward.sum() == pytest.approx(rewards.sum())


def test_booleans_are_rewards() -> None:
    table = {"room": ["a", "a"], "did": ["x", "y"], "gain": [True, False]}
    counts = count_transitions(table, **PLAIN)
    assert counts.reward is not None
    assert counts.reward.tolist() == [1, 0]


def test_labels_of_outcomes_begin_with_their_column_only_where_they_must() -> None:
    table: dict[str, Any] = {
        "room": [0, 1, 1],
        "did": ["x", "y", "x"],
        "well": [1, 0, 1],
        "then": ["u", "v", "u"],
    }
    apart = read_log(table, Columns.of("room", "did", outcome="then"))
    assert apart.counts.states.labels == (0, 1, "u", "v")
    assert apart.counts.terminal.tolist() == [2, 3]
    reading = read_log(table, Columns.of("room", "did", outcome="well"))
    assert reading.counts.states.labels == (0, 1, "well 0", "well 1")
    assert reading.counts.num_records == 3

    # More of the log is read in the same way.
    more = {name: values[1:2] for name, values in table.items()}
    again = read_log(more, reading.columns, more=True)
    assert again.counts.states.labels == (1, "well 0")
    clash = {**more, "then": [1]}
    with pytest.raises(LogError, match="learn again"):
        read_log(clash, apart.columns, more=True)


def test_contexts_of_several_columns() -> None:
    table = {"room": ["a", "b"], "ward": [1, 2], "did": ["x", "y"], "well": [1, 0]}
    counts = count_transitions(table, ["room", "ward"], "did", outcome="well")
    assert counts.states == Space((("a", 1), ("b", 2), 0, 1))
    other = {"room": ["c", "c"], "ward": [1, 1], "did": ["x", "y"], "well": [2, 1]}
    both = counts + count_transitions(other, ["room", "ward"], "did", outcome="well")
    assert both.num_records == 4
    assert [both.states.labels[i] for i in both.terminal] == [0, 1, 2]


# Records that are left out.


def test_records_without_a_reward_are_left_out_with_a_finding() -> None:
    columns = log()
    columns["gain"][3] = None
    columns["gain"][7] = float("nan")
    with pytest.warns(LogWarning, match="2 records without a reward left out"):
        counts = count_transitions(columns, next_state="then", **PLAIN)
    columns["gain"][7] = None
    assert sums_of(counts) == exact(columns, columns["then"], weighted=False)
    found = validate_log(columns, Columns.of(**PLAIN)).findings
    assert [(finding.code, finding.rows) for finding in found] == [("missing-reward", 2)]
    assert [example["row"] for example in found[0].examples] == [4, 8]


def test_records_without_an_outcome_are_left_out_with_a_finding() -> None:
    table = {"room": ["a", "a"], "did": ["x", "y"], "well": ["yes", None]}
    reading = read_log(table, Columns.of("room", "did", outcome="well"))
    assert reading.findings[0].code == "missing-outcome"
    assert reading.counts.num_records == 1


# A single series.


def test_a_log_with_a_time_alone_is_one_episode() -> None:
    columns = log()
    follows = [*columns["room"][1:], None]
    reading = read_log(columns, Columns.of(**PLAIN, time="t"))
    assert sums_of(reading.counts) == exact(columns, follows, weighted=False)
    assert [finding.code for finding in reading.findings] == ["one-episode"]
    assert reading.episodes is None
    found = validate_log(columns, Columns.of(**PLAIN, time="t")).findings
    assert [finding.code for finding in found] == ["one-episode"]


# Records in their order.


def test_one_shot_decisions_are_episodes_of_one_step() -> None:
    table = {
        "room": [0, 1, 1],
        "did": ["x", "y", "x"],
        "click": [1, 0, 1],
        "p": [0.5, 0.25, 1.0],
    }
    reading = read_log(table, Columns.of("room", "did", reward="click", propensity="p"))
    states = reading.counts.states
    episodes = read_episodes(table, reading.columns, states, reading.counts.actions, "p")
    assert episodes.number == 3
    assert episodes.propensity is not None
    assert episodes.reward is not None
    found = zip(
        [states.labels[i] for i in episodes.state],
        [states.labels[i] for i in episodes.next_state],
        episodes.propensity.tolist(),
        episodes.reward.tolist(),
        strict=True,
    )
    assert sorted(found) == [(0, "click 1", 0.5, 1), (1, "click 0", 0.25, 0), (1, "click 1", 1, 1)]


def test_episodes_have_the_rewards_of_their_records() -> None:
    columns = log(20)
    states = Space("ab")
    actions = Space("xy")
    named = Columns.of(**PLAIN, episode="who", time="t")
    episodes = read_episodes(columns, named, states, actions)
    assert episodes.reward is not None
    expected = [columns["gain"][i] for who in range(5) for i in range(who, 15, 5)]
    assert episodes.reward.tolist() == expected


# New records.


def test_observing_is_refitting() -> None:
    table: dict[str, Any] = {
        "room": [0, 1, 1, 0],
        "did": ["x", "y", "x", "y"],
        "click": [1, 0, 1, 0],
    }
    named: dict[str, Any] = {"state": "room", "action": "did", "reward": "click"}
    goal = Goal(prefer="click 1")
    first = {name: values[:3] for name, values in table.items()}
    whole = TransferLearner(goal, method="TL").fit(table, **named)

    learner = TransferLearner(goal, method="TL").fit(first, **named)
    live = learner.live(seed=0)
    live.observe(0, "y", reward=0)
    learner.observe(0, "y", reward=0)
    assert learner.counts_ == whole.counts_

    other = TransferLearner(goal, method="TL").fit(first, **named)
    assert other.merge(live.take()).counts_ == whole.counts_


def test_a_new_outcome_ends_its_episode() -> None:
    table = {"room": ["a", "b"], "did": ["x", "y"], "click": [1, 0]}
    named: dict[str, Any] = {"state": "room", "action": "did", "reward": "click"}
    learner = TransferLearner(Goal(prefer="1"), method="TL").fit(table, **named)
    live = learner.live(seed=0)
    live.observe("a", "y", reward=2)
    learner.observe("a", "y", reward=2)
    for counts in (learner.counts_, live.take()):
        assert counts.states.has(2)
        assert counts.states.index(2) in counts.terminal


def test_new_records_need_what_the_log_has() -> None:
    table: dict[str, Any] = {
        "room": ["a", "b"],
        "did": ["x", "y"],
        "then": ["b", "a"],
        "gain": [1.0, 2.0],
    }
    with_reward = TransferLearner(Goal(prefer="a"), method="TL").fit(
        table, next_state="then", **PLAIN
    )
    without = TransferLearner(Goal(prefer="a"), method="TL").fit(
        table, state="room", action="did", next_state="then"
    )
    for each in (with_reward, with_reward.live()):
        with pytest.raises(ParameterError, match="needs its reward"):
            each.observe("a", "x", "b")
        with pytest.raises(ParameterError, match="finite number"):
            each.observe("a", "x", "b", reward=float("inf"))
        with pytest.raises(ParameterError, match="next state"):
            each.observe("a", "x", reward=1.0)
    for each in (without, without.live()):
        with pytest.raises(ParameterError, match="no rewards"):
            each.observe("a", "x", "b", reward=1.0)


# Bad input.


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"outcome": "then", "next_state": "room"}, "no next_state"),
        ({"outcome": "then", "episode": "who"}, "no episode"),
        ({"outcome": "then", "time": "t"}, "no time"),
        ({"outcome": "then", "terminal": "a"}, "no terminal"),
        ({"reward": ""}, "empty name"),
        ({"episode": "who"}, "name the next_state column"),
        ({}, "the outcome or of the reward"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ParameterError, match=problem):
        Columns.of("room", "did", **options)


def test_a_reward_column_must_hold_finite_numbers() -> None:
    columns = log()
    with pytest.raises(LogError, match="'did' must hold numbers, not String"):
        count_transitions(columns, "room", "then", reward="did")
    columns["gain"][3] = float("inf")
    with pytest.raises(LogError, match="infinite values"):
        count_transitions(columns, next_state="then", **PLAIN)
    with pytest.raises(LogError, match="no column 'gains'"):
        count_transitions(columns, "room", "did", "then", reward="gains")
