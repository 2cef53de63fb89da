"""From a log to the counts of its distinct transitions: Parquet, CSV, and windows over episodes.

Every contender starts from the path of a file and ends with a table of distinct transitions and
their numbers, in memory. Labels are text. The logs are drawn once, from a fixed seed, and kept in
`harness.DATA`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import pastwise as pw
from benchmarks.harness import DATA, GIB, Contender, Scale, Section, Times, about, peak_memory
from benchmarks.report import number, table
from pastwise._files import staged
from pastwise._numerics.arrays import IntArray

PARTS = ["state", "action", "next_state"]
CHUNK = 1_000_000
EPISODE = 100
"""Records of an episode."""


# Logs.


def log_file(rows: int, states: int, actions: int) -> Path:
    """A Parquet file of records sampled uniformly from all transitions, with text labels."""
    import pyarrow as pa

    rng = np.random.default_rng(rows)
    labels = [_labels("s", states), _labels("a", actions), _labels("s", states)]

    def chunk(start: int, size: int) -> Any:
        columns = [each.take(pa.array(rng.integers(len(each), size=size))) for each in labels]
        return pa.table(columns, names=PARTS)

    return parquet_file(f"log-{rows}-{states}-{actions}", rows, chunk)


def episode_file(rows: int, states: int, actions: int) -> Path:
    """A Parquet file of episodes that go on side by side: episode, time, state, action."""
    import pyarrow as pa

    rng, episodes = np.random.default_rng(rows), rows // EPISODE
    labels = [_labels("s", states), _labels("a", actions)]

    def chunk(start: int, size: int) -> Any:
        row = np.arange(start, start + size)
        columns = [each.take(pa.array(rng.integers(len(each), size=size))) for each in labels]
        return pa.table(
            [row % episodes, row // episodes, *columns],
            names=["episode", "time", "state", "action"],
        )

    return parquet_file(f"episodes-{rows}-{states}-{actions}", rows, chunk)


def csv_file(source: Path) -> Path:
    """The same log as a CSV file."""
    import duckdb

    path = source.with_suffix(".csv")
    if not path.exists():
        with staged(DATA) as stage:
            duckdb.read_parquet(str(source)).write_csv(str(stage / path.name), header=True)
    return path


def _labels(letter: str, size: int) -> Any:
    import pyarrow as pa

    return pa.array([f"{letter}{i:05d}" for i in range(size)])


def parquet_file(name: str, rows: int, chunk: Callable[[int, int], Any]) -> Path:
    """The file of this name, written in chunks unless it is there already."""
    import pyarrow.parquet as pq

    path = DATA / f"{name}.parquet"
    if not path.exists():
        with (
            staged(DATA) as stage,
            pq.ParquetWriter(stage / path.name, chunk(0, 1).schema) as writer,
        ):
            for start in range(0, rows, CHUNK):
                writer.write_table(chunk(start, min(CHUNK, rows - start)))
    return path


# Contenders: each takes the path of a log.

GROUP = "select state, action, next_state, count(*) as n from {} group by all"
WINDOW = (
    "(select state, action, "
    "lead(state) over (partition by episode order by time) as next_state from {}) "
    "where next_state is not null"
)


def ours(path: Path) -> pw.TransitionCounts:
    return pw.count_transitions(path, *PARTS)


def ours_window(path: Path) -> pw.TransitionCounts:
    return pw.count_transitions(path, "state", "action", episode="episode", time="time")


def by_duckdb(path: Path, source: str = "{}") -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set enable_progress_bar = false")  # it would be drawn into the report
    return connection.sql(GROUP.format(source.format(f"'{path}'"))).to_arrow_table()


def by_polars(path: Path) -> Any:
    import polars as pl

    scan = pl.scan_csv if path.suffix == ".csv" else pl.scan_parquet
    return scan(path).group_by(PARTS).agg(n=pl.len()).collect()


def by_polars_window(path: Path) -> Any:
    import polars as pl

    frame = pl.scan_parquet(path).sort("episode", "time")
    frame = frame.with_columns(next_state=pl.col("state").shift(-1).over("episode")).drop_nulls(
        "next_state"
    )
    return frame.group_by(PARTS).agg(n=pl.len()).collect()


def by_pandas(path: Path) -> Any:
    import pandas as pd

    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame.groupby(PARTS, sort=False).size().reset_index(name="n")


def by_pandas_categories(path: Path) -> Any:
    """For those who know that pyarrow can hand over text as codes."""
    import pandas as pd

    frame = pd.read_parquet(path, read_dictionary=PARTS)
    return frame.groupby(PARTS, sort=False, observed=True).size().reset_index(name="n")


def by_pandas_window(path: Path) -> Any:
    import pandas as pd

    frame = pd.read_parquet(path).sort_values(["episode", "time"])
    frame["next_state"] = frame.groupby("episode", sort=False)["state"].shift(-1)
    return frame.dropna(subset="next_state").groupby(PARTS, sort=False).size().reset_index(name="n")


# The comparison.


def require_same_counts(results: Mapping[str, Any]) -> None:
    """Refuse tables of counts that differ."""
    expected: tuple[IntArray, IntArray] | None = None
    for name, result in results.items():
        key, count = _tally(result)
        expected = expected or (key, count)
        if not (np.array_equal(key, expected[0]) and np.array_equal(count, expected[1])):
            raise AssertionError(f"{name} counted otherwise than {next(iter(results))}")


def _tally(result: Any) -> tuple[IntArray, IntArray]:
    """Code of each distinct transition, ascending, and its number of records."""
    import polars as pl

    if isinstance(result, pw.TransitionCounts):
        states, actions = (np.array(space.labels) for space in (result.states, result.actions))
        labels = (states[result.state], actions[result.action], states[result.next_state])
        frame = pl.DataFrame({**dict(zip(PARTS, labels, strict=True)), "n": result.records})
    else:
        frame = pl.DataFrame(result)
    codes = frame.select(
        pl.col(PARTS).cast(pl.String).str.slice(1).cast(pl.Int64), pl.col("n").cast(pl.Int64)
    )
    state, action, next_state, count = (codes[name].to_numpy() for name in codes.columns)
    key = (state << 40) + (action << 20) + next_state
    order = np.argsort(key)
    return key[order], count[order]


def compare(
    section: Section, size: str, path: Path, ways: Mapping[str, Callable[[Path], Any]], rounds: int
) -> Times:
    """Time the ways to count a log."""
    contenders = [Contender(name, partial(way, path)) for name, way in ways.items()]
    return section.compare(size, contenders, require_same_counts, rounds)


def measure(scale: Scale) -> list[Section]:
    """The counting jobs of the suite."""
    return [few_distinct(scale), many_distinct(scale), other_sources(scale)]


PARQUET_WAYS = {
    "pastwise": ours,
    "DuckDB": by_duckdb,
    "polars": by_polars,
    "pandas": by_pandas,
    "pandas, categories": by_pandas_categories,
}


def few_distinct(scale: Scale) -> Section:
    """Parquet with 8 x 10^4 distinct transitions."""
    section = Section("Counting a log, 8 x 10^4 distinct transitions", about(__doc__))
    points, memory = {}, {}
    for rows in scale.pick([10**5], [10**6, 10**7], [10**6, 10**7, 10**8]):
        path, size = log_file(rows, 100, 8), f"{rows:,} records"
        times = points[float(rows)] = compare(
            section, size, path, PARQUET_WAYS, 5 if rows < 10**8 else 3
        )
        memory[size] = peaks(path)
        if rows >= 10**7:
            section.summarise(f"{size}: time relative to bare DuckDB", times.of("DuckDB"))
            section.summarise(f"{size}: faster than pandas", times.faster_than("pandas"))
        section.summarise(f"{size}: peak memory", memory[size]["pastwise"] / GIB, "GiB")
    section.notes.append(memory_table(memory))
    section.plot("counting-few-distinct", "records", points)
    return section


def many_distinct(scale: Scale) -> Section:
    """Parquet with 10^7 possible transitions."""
    section = Section(
        "Counting a log, 10^7 distinct transitions",
        "1,000 states and 10 actions as text: of the 10^7 transitions that can occur, 10^7 records "
        "show 6.3 x 10^6, and 10^8 records nearly all.",
    )
    points, memory = {}, {}
    others = [name for name in PARQUET_WAYS if name != "pastwise"]
    for rows in scale.pick([10**5], [10**7], [10**7, 10**8]):
        path, size = log_file(rows, 1000, 10), f"{rows:,} records"
        times = points[float(rows)] = compare(section, size, path, PARQUET_WAYS, 3)
        memory[size] = peaks(path)
        section.summarise(f"{size}: faster than the fastest", times.faster_than(*others))
        section.summarise(f"{size}: faster than DuckDB", times.faster_than("DuckDB"))
        section.summarise(f"{size}: peak memory", memory[size]["pastwise"] / GIB, "GiB")
    section.notes.append(memory_table(memory))
    section.plot("counting-many-distinct", "records", points)
    return section


def other_sources(scale: Scale) -> Section:
    """CSV files, and next states from episodes and times."""
    section = Section(
        "Counting from CSV, and with windows over episodes",
        "8 x 10^4 distinct transitions. With windows the next state is that of the next record of "
        f"the episode; episodes of {EPISODE} records are interleaved in a Parquet file.",
    )
    rows = scale.pick(10**5, 10**7, 10**7)
    ways = {"pastwise": ours, "DuckDB": by_duckdb, "polars": by_polars, "pandas": by_pandas}
    times = compare(section, f"CSV, {rows:,} records", csv_file(log_file(rows, 100, 8)), ways, 3)
    section.summarise("CSV: time relative to hand-written SQL", times.of("DuckDB"))
    rows = scale.pick(10**5, 2 * 10**6, 10**7)
    windows: dict[str, Callable[[Path], Any]] = {
        "pastwise": ours_window,
        "DuckDB": partial(by_duckdb, source=WINDOW),
        "polars": by_polars_window,
        "pandas": by_pandas_window,
    }
    times = compare(section, f"windows, {rows:,} records", episode_file(rows, 100, 8), windows, 3)
    section.summarise("windows: time relative to hand-written SQL", times.of("DuckDB"))
    return section


def peaks(path: Path) -> dict[str, float]:
    """Peak memory of every way to count a Parquet log, each in a process of its own."""
    return {name: peak_memory(way, path) for name, way in PARQUET_WAYS.items()}


def memory_table(memory: Mapping[str, Mapping[str, float]]) -> str:
    """Peak memory by size and contender."""
    rows = [
        [size, *(number(peak / GIB) for peak in peaks.values())] for size, peaks in memory.items()
    ]
    return "Peak memory of a fresh process, in GiB:\n\n" + table(["size", *PARQUET_WAYS], rows)
