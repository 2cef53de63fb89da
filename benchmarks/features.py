"""Counting a log of raw columns: a learned partition next to a hand-written SQL ``CASE``.

Records have six numeric features and their next values, in a Parquet file. Both contenders start
from its path and from the same tree, and end with a table of distinct transitions in memory. The
tree is learned once, from a sample; its time is reported apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.counting import parquet_file
from benchmarks.harness import GIB, Contender, Scale, Section, about, peak_memory
from pastwise import Columns, TransitionCounts
from pastwise.data.partition import Partition
from pastwise.logs.read import read_log

FEATURES = tuple(f"x{i}" for i in range(6))
NEXT = tuple(f"next_{name}" for name in FEATURES)
ACTIONS = 4


def log_file(rows: int) -> Path:
    """A Parquet file of records: six features drift, one of them as the action says."""
    import pyarrow as pa

    rng = np.random.default_rng(rows)

    def chunk(start: int, size: int) -> Any:
        values = rng.standard_normal((len(FEATURES), size))
        action = rng.integers(ACTIONS, size=size)
        change = 0.3 * rng.standard_normal((len(FEATURES), size))
        change[0] += np.where(values[1] > 0, 0.4, -0.4) * (action - 1.5)
        change[2] += 0.5 * np.sign(values[3]) * (action == 2)
        following = 0.9 * values + change
        return pa.table([*values, *following, action], names=[*FEATURES, *NEXT, "action"])

    return parquet_file(f"features-{rows}", rows, chunk)


def columns_of(partition: Partition | None = None, max_states: int = 200) -> Columns:
    """The columns of the log."""
    return Columns(
        state=(),
        action=("action",),
        features=FEATURES,
        next_features=NEXT,
        max_states=max_states,
        partition=partition,
    )


def learned(path: Path) -> Partition:
    """The partition that is learned from a log, which is counted on the way."""
    partition = read_log(path, columns_of(), episodes=False).columns.partition
    assert partition is not None
    return partition


def ours(path: Path, content: dict[str, Any]) -> TransitionCounts:
    """Count by the compiled partition."""
    columns = columns_of(Partition.from_dict(content))
    return read_log(path, columns, episodes=False).counts


def by_sql(path: Path, content: dict[str, Any]) -> Any:
    """Count by the ``CASE`` that a person would write for the same tree."""
    import duckdb

    partition = Partition.from_dict(content)
    state = case_of(partition, FEATURES, 0)
    following = case_of(partition, NEXT, 0)
    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")
    query = (
        f"select {state} as state, action, {following} as next_state, count(*) as n "
        f"from '{path}' group by all"
    )
    return connection.sql(query).to_arrow_table()


def case_of(partition: Partition, names: tuple[str, ...], node: int) -> str:
    """The leaf below a node in SQL, numbered from 0."""
    if node < 0 or not partition.splits:
        return str(-1 - node if node < 0 else 0)
    split = partition.splits[node]
    yes = case_of(partition, names, split.yes)
    no = case_of(partition, names, split.no)
    return f"case when {names[split.feature]} < {split.below!r} then {yes} else {no} end"


def require_same_counts(results: Mapping[str, Any]) -> None:
    """Refuse counts that differ."""
    counts: TransitionCounts = results["pastwise"]
    table = results["SQL"]
    ours_sorted = np.sort(counts.records)
    theirs_sorted = np.sort(np.asarray(table.column("n").to_pylist()))
    if not np.array_equal(ours_sorted, theirs_sorted):
        raise AssertionError("pastwise counted otherwise than the SQL")


def measure(scale: Scale) -> list[Section]:
    """Counting with trees of two sizes, and the memory of growing and counting."""
    section = Section("Counting raw columns by a learned partition", about(__doc__))
    rows = scale.pick(10**5, 10**7, 10**7)
    path = log_file(rows)
    partition = learned(path)
    content = partition.to_dict()
    size = f"{rows:,} records, {len(partition)} states"
    contenders = [
        Contender("pastwise", partial(ours, path, content)),
        Contender("SQL", partial(by_sql, path, content)),
    ]
    times = section.compare(size, contenders, require_same_counts, 3)
    section.summarise(f"{size}: time relative to hand-written SQL", times.of("SQL"))
    peak = peak_memory(learned, path)
    section.summarise(f"{size}: peak memory of learning and counting", peak / GIB, "GiB")
    return [section]
