"""Summaries of episodes equal those of a plain loop, on every engine."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import Any

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from pastwise import Columns, LogWarning, TransferLearner, count_transitions, validate_log
from pastwise.data.episodes import EpisodeSummary
from pastwise.goals.goal import Goal
from pastwise.logs.read import read_log

Row = dict[str, Any]

TYPES = {
    "who": pa.string(),
    "t": pa.int64(),
    "s": pa.string(),
    "a": pa.string(),
    "n": pa.string(),
    "times": pa.int64(),
    "heavy": pa.float64(),
    "job": pa.string(),
}

ENGINES: dict[str, Any] = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.DataFrame,
    "polars, lazy": lambda table: pl.DataFrame(table).lazy(),
    "DuckDB": lambda table: duckdb.connect().from_arrow(table),
    "Ibis": ibis.memtable,
}


def random_rows(seed: int, dirty: bool) -> list[Row]:
    """Episodes of some people; in a dirty log values are missing and times repeat."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(int(rng.integers(3, 30))):
        for moment in range(int(rng.integers(1, 7))):
            row: Row = {
                "who": f"p{person}",
                "t": moment * int(rng.integers(1, 4)) if dirty else moment,
                "s": str(rng.choice(list("abcz"))),
                "a": str(rng.choice(list("xyv"), p=[0.6, 0.35, 0.05])),
                "n": str(rng.choice(list("abcz"))),
                "times": int(rng.integers(0, 4)),
                "heavy": float(rng.integers(1, 5)),
                "job": str(rng.choice(["j", "k"])),
            }
            for name in ("who", "t", "s", "a", "n"):
                if dirty and rng.random() < 0.05:
                    row[name] = None
            rows.append(row)
    order = rng.permutation(len(rows))
    return [rows[i] for i in order]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in TYPES.items()}
    )


def literal_steps(rows: list[Row], columns: Columns) -> dict[str, list[Row]]:
    """The counted records of each episode in the order of time; ``first`` marks its first."""
    steps: dict[str, list[Row]] = {}
    for who in sorted({row["who"] for row in rows if row["who"] is not None}):
        mine = [row for row in rows if row["who"] == who]
        timed = [row for row in mine if row["t"] is not None]
        earliest = min((row["t"] for row in timed), default=None)
        if columns.next_state:
            found = [
                {**row, "first": row["t"] is not None and row["t"] == earliest} for row in mine
            ]
        else:
            timed.sort(key=lambda row: (row["t"], row["s"] is not None, row["s"], row["a"] or ""))
            found = []
            for row, later in pairwise(timed):
                gap = later["t"] - row["t"]
                if 0 < gap <= float(columns.max_gap or 1e9):
                    found.append({**row, "n": later["s"], "first": row["t"] == earliest})
        steps[who] = []
        for row in found:
            is_whole = None not in (row["s"], row["a"], row["n"])
            times = row["times"] if columns.count else 1
            if is_whole and row["s"] not in columns.terminal and times > 0:
                steps[who].append({**row, "times": times})
    return steps


def literal_episodes(rows: list[Row]) -> list[str]:
    """Episodes with a transition."""
    return [who for who, steps in literal_steps(rows, CHAINED).items() if steps]


def assert_same_as_loop(found: EpisodeSummary | None, rows: list[Row], columns: Columns) -> None:
    every = literal_steps(rows, columns)
    steps = {who: mine for who, mine in every.items() if mine}
    if not steps:
        assert found is None
        return
    assert found is not None

    # Numbers.
    lengths = [sum(row["times"] for row in mine) for mine in steps.values()]
    several = [mine for mine, length in zip(steps.values(), lengths, strict=True) if length > 1]
    assert found.number == len(steps)
    assert found.records == sum(lengths)
    assert (found.shortest, found.longest) == (min(lengths), max(lengths))
    assert found.median == round(median(lengths))
    assert found.several == len(several)
    assert found.varied == sum(len({row["a"] for row in mine}) > 1 for mine in several)
    assert found.unit == "who"
    by_action = Counter(a for mine in steps.values() for a in {row["a"] for row in mine})
    in_episodes = dict(zip(found.folds.actions.labels, found.by_action.tolist(), strict=True))
    assert {action: number for action, number in in_episodes.items() if number} == by_action

    # Visits.
    visits = found.visits
    assert visits is not None
    states = found.folds.states.labels
    by_state = Counter(s for mine in steps.values() for s in {row["s"] for row in mine})
    assert dict(zip(states, visits.by_state.tolist(), strict=True)) == {
        state: by_state[state] for state in states
    }
    by_pair = Counter(
        pair for mine in steps.values() for pair in {(row["s"], row["a"]) for row in mine}
    )
    in_pairs: dict[tuple[object, object], int] = {}
    for index, state in enumerate(states):
        of_actions = zip(found.folds.actions.labels, visits.of_state(index).tolist(), strict=True)
        in_pairs |= {(state, action): number for action, number in of_actions if number}
    assert in_pairs == by_pair

    # Starts.
    starts: Counter[str] = Counter()
    for mine in steps.values():
        if columns.time:
            starts.update(row["s"] for row in mine if row["first"])
        else:
            balance: Counter[str] = Counter()
            for row in mine:
                balance[row["s"]] += row["times"]
                balance[row["n"]] -= row["times"]
            starts.update(state for state, number in balance.items() if number > 0)
    counted = dict(zip(found.folds.states.labels, found.starts.tolist(), strict=True))
    assert {state: number for state, number in counted.items() if number} == starts

    # Folds: by the rank of the episode among all.
    expected: Counter[tuple[Any, ...]] = Counter()
    weights: Counter[tuple[Any, ...]] = Counter()
    for rank, mine in enumerate(every.values()):
        for row in mine:
            key = (rank % 10, row["s"], row["a"], row["n"])
            expected[key] += row["times"]
            weights[key] += row["times"] * (row["heavy"] if columns.weight else 1)
    folds = found.folds
    keys = [
        (fold, folds.states.labels[s], folds.actions.labels[a], folds.states.labels[n])
        for fold, s, a, n in zip(
            folds.batch.tolist(), folds.state, folds.action, folds.next_state, strict=True
        )
    ]
    assert dict(zip(keys, folds.records.tolist(), strict=True)) == expected
    assert dict(zip(keys, folds.weight.tolist(), strict=True)) == weights


CHAINED = Columns.of("s", "a", episode="who", time="t")
WAYS = {
    "next record": CHAINED,
    "gap": Columns.of("s", "a", episode="who", time="t", max_gap=2),
    "next record, terminal": Columns.of("s", "a", episode="who", time="t", terminal="z"),
    "next state": Columns.of("s", "a", "n", episode="who", time="t"),
    "next state, terminal": Columns.of("s", "a", "n", episode="who", time="t", terminal="z"),
    "next state, no time": Columns.of("s", "a", "n", episode="who", terminal="z"),
    "next state, no time, counts": Columns.of("s", "a", "n", episode="who", count="times"),
    "counts, weights, tasks": Columns.of(
        "s", "a", "n", episode="who", time="t", count="times", weight="heavy", task="job"
    ),
    "next record, counts": Columns.of("s", "a", episode="who", time="t", count="times"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dirty", [False, True])
def test_summary_is_that_of_a_plain_loop(engine: str, way: str, dirty: bool) -> None:
    """Three logs by one engine, one by each of the others."""
    columns = WAYS[way]
    for seed in range(3) if engine == "pyarrow" else (3,):
        rows = random_rows(seed, dirty)
        found = read_log(ENGINES[engine](table_of(rows)), columns)
        assert_same_as_loop(found.episodes, rows, columns)
        assert found.episodes is not None
        has_place = columns.next_state == () or not dirty
        if has_place:
            assert found.episodes.folds.total() == found.counts.total()
        folds = found.episodes.folds_of(found.counts).total()
        assert np.array_equal(folds.key, found.counts.total().key)
        assert np.array_equal(folds.records, found.counts.total().records)


def test_a_log_without_an_episode_column_has_no_summary() -> None:
    table = table_of(random_rows(1, dirty=False))
    assert read_log(table, Columns.of("s", "a", "n")).episodes is None
    nameless = table.set_column(0, "who", pa.nulls(len(table), pa.string()))
    assert read_log(nameless, Columns.of("s", "a", "n", episode="who")).episodes is None


def test_episodes_of_any_type() -> None:
    """Whole numbers, fractions and dates; an undefined number is no episode."""
    rows = random_rows(5, dirty=False)
    numbers = [int(row["who"][1:]) for row in rows]
    expected = read_log(table_of(rows), CHAINED).episodes
    assert expected is not None
    for kind in (pa.int64(), pa.float64(), pa.date32()):
        who = pa.array(numbers, pa.int32()).cast(kind)
        found = read_log(table_of(rows).set_column(0, "who", who), CHAINED).episodes
        assert found is not None
        assert found.to_dict() == expected.to_dict()

    # The last person becomes not-a-number: those records are left out.
    last = max(numbers)
    undefined = [np.nan if number == last else float(number) for number in numbers]
    table = table_of(rows).set_column(0, "who", pa.array(undefined, from_pandas=False))
    found = read_log(table, CHAINED).episodes
    assert found is not None
    named = {row["who"] for row in rows if row["who"] != f"p{last}"}
    assert found.number == len(named & set(literal_episodes(rows)))


# Findings.


def panel(actions: list[str]) -> dict[str, list[Any]]:
    """A log of people with three days each; every letter is an action of a day."""
    log: dict[str, list[Any]] = {"who": [], "t": [], "s": [], "a": [], "n": []}
    for person, taken in enumerate(actions):
        for day, action in enumerate(taken):
            log["who"].append(person)
            log["t"].append(day)
            log["s"].append("a" if day % 2 else "b")
            log["a"].append(action)
            log["n"].append("b" if day % 2 else "a")
    return log


NEXT: dict[str, Any] = {
    "state": "s",
    "action": "a",
    "next_state": "n",
    "episode": "who",
    "time": "t",
}


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["xxx", "yyy", "xxx", "y"], ["action-constant"]),
        (["xxx", "yyy", "xyx"], []),
        (["x", "y", "x"], []),
        (["xxx", "xxx"], []),
        (["xyx"] * 5 + ["xzx"], ["few-episodes"]),
        (["xyx"] * 5 + ["xzx"] * 3, []),
        (["xyx"] * 2 + ["xzx"], []),
        (["xxx"] * 5 + ["yyy"], ["action-constant", "few-episodes"]),
    ],
)
def test_findings_on_episodes(actions: list[str], expected: list[str]) -> None:
    log = panel(actions)
    columns = Columns.of(**NEXT)
    assert [finding.code for finding in read_log(log, columns).findings] == expected
    validated = [finding.code for finding in validate_log(log, columns).findings]
    assert [code for code in validated if code != "dead-end"] == expected
    assert read_log(log, columns, more=True).findings == ()


def test_findings_name_what_they_concern() -> None:
    found = validate_log(panel(["xxx"] * 5 + ["yyy"]), Columns.of(**NEXT)).findings
    constant, few = found
    assert constant.message == "the action never varies within any of 6 episodes"
    assert few.message == "1 action known from one or two episodes only: y rests on 1 episode"
    assert (constant.rows, few.rows) == (6, 1)


def test_learning_warns_of_actions_that_never_vary() -> None:
    log = panel(["xxx", "yyy", "xxx"])
    with pytest.warns(LogWarning, match="never varies within any of 3 episodes"):
        TransferLearner(Goal(prefer="a")).fit(log, **NEXT)


def test_counts_alone_are_the_same() -> None:
    table = table_of(random_rows(6, dirty=False))
    reading = read_log(table, CHAINED, episodes=False)
    assert reading.episodes is None
    assert reading.counts == read_log(table, CHAINED).counts
    assert reading.counts == count_transitions(table, "s", "a", episode="who", time="t")
