"""No value of a file is rounded, cut short or moved, wherever in the log it comes."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pastwise import LogWarning, Space, TransitionCounts, count_transitions
from pastwise.errors import FileError, LabelError, LogError
from pastwise.logs.columns import Columns
from pastwise.logs.episodes import read_episodes
from pastwise.logs.sources import open_table
from pastwise.logs.validate import validate_log

pytestmark = pytest.mark.filterwarnings("ignore:the log has a single transition")

MANY = 20_480
"""Records that DuckDB looks at to infer the types of JSON."""

NAMES: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}
CHAIN: dict[str, Any] = {"state": "s", "action": "a", "episode": "e", "time": "t"}


def transitions(counts: TransitionCounts) -> dict[tuple[Any, Any], int]:
    """Number of records from each state to each next state."""
    labels = counts.states.labels
    found: dict[tuple[Any, Any], int] = {}
    for state, following, number in zip(
        counts.state, counts.next_state, counts.records, strict=True
    ):
        found[labels[state], labels[following]] = int(number)
    return found


# JSON lines


def json_file(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_fraction_after_many_whole_labels_of_json_is_not_rounded(tmp_path: Path) -> None:
    whole = {"s": 1, "a": "x", "n": 2}
    log = json_file(tmp_path / "log.jsonl", [*[whole] * (MANY + 10), {"s": 1.5, "a": "x", "n": 2}])
    assert transitions(count_transitions(log, **NAMES)) == {(1, 2): MANY + 10, (1.5, 2): 1}


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_fraction_after_many_whole_weights_of_json_is_not_rounded(tmp_path: Path) -> None:
    record = {"s": "a", "a": "x", "n": "b", "w": 1}
    log = json_file(tmp_path / "log.jsonl", [*[record] * (MANY + 10), {**record, "w": 1.4}])
    assert count_transitions(log, **NAMES, weight="w").weight.tolist() == [MANY + 10 + 1.4]


def test_fractions_of_time_after_many_whole_times_of_json_are_no_ties(tmp_path: Path) -> None:
    records = [{"e": i, "t": 1, "s": "a", "a": "x"} for i in range(MANY + 10)]
    records += [{"e": -1, "t": 1.1, "s": "a", "a": "x"}, {"e": -1, "t": 1.2, "s": "b", "a": "x"}]
    log = json_file(tmp_path / "log.jsonl", records)
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 1}


def test_text_after_many_whole_labels_of_json_is_refused(tmp_path: Path) -> None:
    whole = {"s": 1, "a": "x", "n": 2}
    log = json_file(tmp_path / "log.jsonl", [*[whole] * (MANY + 10), {"s": "b", "a": "x", "n": 2}])
    with pytest.raises(LogError, match="column 's' holds values of different types"):
        count_transitions(log, **NAMES)


@pytest.mark.parametrize("first", [2**63, 10**19, 2**64, 10**20, 10**40, -(10**20)])
def test_episodes_of_json_with_large_numbers_are_not_one(tmp_path: Path, first: int) -> None:
    records = [
        {"e": first + i, "t": t, "s": state, "a": "x"}
        for i in range(6)
        for t, state in enumerate("aba")
    ]
    log = json_file(tmp_path / "log.jsonl", records)
    counted = transitions(count_transitions(log, **CHAIN))
    assert counted == {("a", "b"): 6, ("b", "a"): 6}


@pytest.mark.parametrize("values", [[10**30, 10**30 + 1], [2**63, 1], [2**60 + 1, 0.5]])
@pytest.mark.parametrize("name", ["s", "a", "t"])
def test_numbers_of_json_that_would_be_rounded_are_refused(
    tmp_path: Path, name: str, values: Sequence[float]
) -> None:
    records = [{"e": 1, "t": i, "s": "a", "a": "x", name: value} for i, value in enumerate(values)]
    log = json_file(tmp_path / "log.jsonl", records)
    with pytest.raises(LogError, match=f"column '{name}' holds whole numbers beyond .* as text"):
        count_transitions(log, **CHAIN)


def test_large_numbers_of_json_that_are_cut_or_weigh_are_read_as_fractions(tmp_path: Path) -> None:
    records = [{"s": 10**30, "a": "x", "n": 1, "w": 10**20}, {"s": 1, "a": "x", "n": 1, "w": 1}]
    log = json_file(tmp_path / "log.jsonl", records)
    counts = count_transitions(log, **NAMES, bins={"s": [0, 5, 1e31]}, weight="w")
    assert sorted(counts.weight.tolist()) == [1.0, 1e20]


def test_largest_whole_numbers_of_json_are_exact(tmp_path: Path) -> None:
    low, high = -(2**63), 2**63 - 1
    log = json_file(tmp_path / "log.jsonl", [{"s": high, "a": "x", "n": high - 1}])
    assert transitions(count_transitions(log, **NAMES)) == {(high, high - 1): 1}
    log = json_file(tmp_path / "log.jsonl", [{"s": low, "a": "x", "n": low + 1}])
    assert transitions(count_transitions(log, **NAMES)) == {(low, low + 1): 1}


def test_key_that_json_records_have_late_is_a_column(tmp_path: Path) -> None:
    record = {"s": "a", "a": "x", "n": "b"}
    log = json_file(tmp_path / "log.jsonl", [*[record] * (MANY + 10), {**record, "w": 2}])
    with pytest.raises(LogError, match="weight column 'w' has missing values"):
        count_transitions(log, **NAMES, weight="w")


# Parquet files of several types


def parts(folder: Path, name: str, *values: pa.Array) -> str:
    """One file for each array of two values in a column; the others are the same."""
    for i, array in enumerate(values):
        others = {"s": ["a", "b"], "a": ["x", "x"], "n": ["b", "b"], "e": [i, i], "t": [0, 1]}
        table = pa.table(others)
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, array) if place >= 0 else table
        if place < 0:
            table = table.append_column(name, array)
        pq.write_table(table, folder / f"{i}.parquet")
    return str(folder / "*.parquet")


def test_fractions_of_a_later_file_are_not_rounded(tmp_path: Path) -> None:
    log = parts(tmp_path, "w", pa.array([1, 1]), pa.array([1.5, 0.25]))
    assert count_transitions(log, **NAMES, weight="w").weight.tolist() == [2.5, 1.25]
    labels = parts(tmp_path, "s", pa.array([1, 2]), pa.array([1.5, 2.5]))
    counts = count_transitions(labels, **CHAIN)
    assert transitions(counts) == {(1, 2): 1, (1.5, 2.5): 1}


def test_whole_numbers_of_different_widths_are_united(tmp_path: Path) -> None:
    narrow = pa.array([1, 2], pa.int8())
    wide = pa.array([2**40, 2**64 - 1], pa.uint64())
    log = parts(tmp_path, "t", narrow, pa.array([2**40, 2**50]), wide)
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 3}


def test_dates_and_moments_of_different_files_keep_their_hours(tmp_path: Path) -> None:
    days = pa.array([date(2024, 1, 1), date(2024, 1, 2)])
    moments = pa.array([datetime(2024, 1, 1, 9), datetime(2024, 1, 1, 10)])
    fine = pa.array([1, 2], pa.timestamp("ns"))
    log = parts(tmp_path, "t", days, moments, fine)
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 3}


@pytest.mark.parametrize(
    "other",
    [
        pa.array(["1", "2"]),
        pa.array([True, False]),
        pa.array([date(2024, 1, 1), date(2024, 1, 2)]),
        pa.array([Decimal("1.25"), Decimal("2.50")]),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_files_of_types_that_no_type_holds_are_refused(
    tmp_path: Path, other: pa.Array, is_first: bool
) -> None:
    numbers = pa.array([1, 2])
    arrays = (numbers, other) if is_first else (other, numbers)
    log = parts(tmp_path, "s", *arrays)
    with pytest.raises(LogError, match=r"column 's' has different types in different files: .*int"):
        count_transitions(log, **CHAIN)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([Decimal("1.5"), Decimal("2.5")]), pa.array([Decimal("1.25"), Decimal("1.35")])),
        (pa.array([date(2024, 1, 1)] * 2), pa.array([datetime(2024, 1, 1, 9)] * 2)),
        (pa.array([0, 1], pa.timestamp("us")), pa.array([0, 1], pa.timestamp("us", "UTC"))),
    ],
)
def test_labels_that_would_change_with_the_type_are_refused(
    tmp_path: Path, first: pa.Array, second: pa.Array
) -> None:
    with pytest.raises(LogError, match="column 's' has different types in different files"):
        count_transitions(parts(tmp_path, "s", first, second), **CHAIN)


def test_large_numbers_and_fractions_of_different_files_are_refused(tmp_path: Path) -> None:
    log = parts(tmp_path, "t", pa.array([2**60, 2**60 + 1]), pa.array([0.5, 1.5]))
    with pytest.raises(LogError, match=r"whole numbers above 2\^53"):
        count_transitions(log, **CHAIN)


# Times


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "polars"])
def test_large_whole_times_are_no_ties(tmp_path: Path, suffix: str) -> None:
    """In floating point the times of a and b, and those of c and d, are the same."""
    first = 2**60
    times = [first, first + 1, first + 256, first + 257]
    table = {"e": ["1"] * 4, "t": times, "s": list("abcd"), "a": ["x"] * 4}
    log: Any = tmp_path / f"log.{suffix}"
    if suffix == "csv":
        log.write_text(
            "e,t,s,a\n" + "".join(f"1,{t},{s},x\n" for t, s in zip(times, "abcd", strict=True))
        )
    elif suffix == "jsonl":
        json_file(log, pa.table(table).to_pylist())
    elif suffix == "parquet":
        pq.write_table(pa.table(table), log)
    else:
        log = pl.DataFrame(table)
    every = {("a", "b"): 1, ("b", "c"): 1, ("c", "d"): 1}
    assert transitions(count_transitions(log, **CHAIN)) == every
    with pytest.warns(LogWarning, match="1 record followed too late"):
        near = transitions(count_transitions(log, **CHAIN, max_gap=1))
    assert near == {("a", "b"): 1, ("c", "d"): 1}
    columns = Columns.of(**CHAIN)
    episodes = read_episodes(log, columns, Space("abcd"), Space("x"))
    assert episodes.step.tolist() == [0, 1, 2]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("library", ["parquet", "arrow", "polars", "pandas"])
def test_nanoseconds_are_no_ties(tmp_path: Path, zone: str | None, library: str) -> None:
    times = pa.array([10**18, 10**18 + 1, 10**18 + 2], pa.timestamp("ns", zone))
    table = pa.table({"e": [1] * 3, "t": times, "s": list("abc"), "a": ["x"] * 3})
    log: Any = table
    if library == "parquet":
        log = tmp_path / "log.parquet"
        pq.write_table(table, log)
    elif library == "polars":
        log = pl.from_arrow(table)
    elif library == "pandas":
        log = table.to_pandas()
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 1, ("b", "c"): 1}
    episodes = read_episodes(log, Columns.of(**CHAIN), Space("abc"), Space("x"))
    assert episodes.step.tolist() == [0, 1]


def test_gap_of_exactly_the_largest_is_not_too_late() -> None:
    """In seconds since 1970, in floating point, the difference is larger."""
    times = [datetime(2024, 1, 1, 0, 0, 0, 1_000), datetime(2024, 1, 1, 0, 0, 0, 101_000)]
    log = {"e": [1, 1], "t": times, "s": ["a", "b"], "a": ["x", "x"]}
    assert transitions(count_transitions(log, **CHAIN, max_gap="0.1s")) == {("a", "b"): 1}


def test_times_as_far_apart_as_can_be_are_in_order() -> None:
    times = [-(2**63), 2**63 - 1]
    log = pl.DataFrame({"e": [1, 1], "t": times, "s": ["a", "b"], "a": ["x", "x"]})
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 1}
    for table in (log, log.to_arrow()):
        with pytest.raises(LogError, match="followed too late"):
            count_transitions(table, **CHAIN, max_gap=5)


def test_whole_times_above_the_exact_ones_after_small_ones_are_refused(tmp_path: Path) -> None:
    log = chain_file(tmp_path / "log.csv", [str(2**60), str(2**60 + 1)], "1")
    with pytest.raises(LogError, match=r"column 't' holds numbers above 2\^53"):
        count_transitions(log, **CHAIN)


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
def test_counts_above_the_largest_are_refused(number: int) -> None:
    many = pa.array([number], pa.uint64())
    log = pa.table({"s": ["a"], "a": ["x"], "n": ["b"], "many": many})
    with pytest.raises(LogError, match=r"sum to 2\^63 or more"):
        count_transitions(log, **NAMES, count="many")


# Moments in CSV files


def chain_file(path: Path, late: Sequence[str], usual: str) -> Path:
    """Episodes of one record, and then one with the states a, b, ... at the given times."""
    lines = ["e,t,s,a\n"]
    lines += [f"{i},{usual},a,x\n" for i in range(1100)]
    lines += [f"late,{moment},{state},x\n" for moment, state in zip(late, "abcd", strict=False)]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_offsets_that_first_appear_late_are_refused(tmp_path: Path, suffix: str) -> None:
    late = ["2024-01-01T10:00:00+05:00", "2024-01-01T06:00:00+00:00"]
    log = chain_file(tmp_path / "log.csv", late, "2024-01-01T00:00:00")
    if suffix == "jsonl":
        names, *rows = [line.split(",") for line in log.read_text().split()]
        records = [dict(zip(names, row, strict=True)) for row in rows]
        log = json_file(tmp_path / "log.jsonl", records)
    with pytest.raises(LogError, match=r"column 't' .* offset from UTC .*\+05:00"):
        count_transitions(log, **CHAIN)


def test_moments_without_an_offset_after_moments_with_one_are_refused(tmp_path: Path) -> None:
    late = ["2024-01-01T10:00:00", "2024-01-01T11:00:00"]
    log = chain_file(tmp_path / "log.csv", late, "2024-01-01T00:00:00Z")
    with pytest.raises(LogError, match=r"column 't' .* offset from UTC"):
        count_transitions(log, **CHAIN)


def test_different_offsets_are_one_time(tmp_path: Path) -> None:
    late = ["2024-01-01T10:00:00+05:00", "2024-01-01T06:00:00+00:00"]
    log = chain_file(tmp_path / "log.csv", late, "2024-01-01T00:00:00Z")
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 1}


def test_moments_after_many_dates_keep_their_hours(tmp_path: Path) -> None:
    late = ["2024-01-01", "2024-01-01 09:00:00", "2024-01-01T10:00:00.5"]
    log = chain_file(tmp_path / "log.csv", late, "2024-01-01")
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 1, ("b", "c"): 1}


def test_nanoseconds_of_a_csv_file_are_kept_or_refused(tmp_path: Path) -> None:
    late = ["2024-01-01 00:00:00.000000001", "2024-01-01 00:00:00.000000002"]
    log = chain_file(tmp_path / "log.csv", late, "2024-01-01 00:00:00.000000001")
    assert transitions(count_transitions(log, **CHAIN)) == {("a", "b"): 1}
    log = chain_file(tmp_path / "log.csv", late, "2024-01-01 00:00:00")
    with pytest.raises(LogError, match="column 't'"):
        count_transitions(log, **CHAIN)


# Names of columns


@pytest.mark.parametrize(
    "name",
    [
        "t\" || (select error(content) from read_text('{}')) || \"",
        "t', (select error(content) from read_text('{}')), '",
        "(select error(content) from read_text('{}'))",
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_names_of_columns_are_never_run(tmp_path: Path, name: str, suffix: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not show")
    column = name.format(secret)
    rows = [("2024-01-01T00:00:00", "a"), ("2024-01-02T00:00:00", "b")]
    records = [{column: moment, "e": "1", "s": state, "a": "x"} for moment, state in rows]
    log = tmp_path / f"log.{suffix}"
    if suffix == "jsonl":
        json_file(log, records)
    elif suffix == "parquet":
        zoned = pa.array([0, 1], pa.timestamp("ns", "UTC"))
        table = pa.Table.from_pylist(records)
        pq.write_table(table.set_column(0, column, zoned), log)
    else:
        quoted = column.replace('"', '""')
        lines = [f"{moment},1,{state},x\n" for moment, state in rows]
        log.write_text(f'"{quoted}",e,s,a\n' + "".join(lines))
    chain = {**CHAIN, "time": column}
    assert transitions(count_transitions(log, **chain)) == {("a", "b"): 1}
    assert validate_log(log, Columns.of(**chain)).rows == 2


def test_column_named_like_all_columns_is_refused() -> None:
    log = {"a": ["x", "x"], "*": ["p", "q"], "n": ["q", "p"]}
    with pytest.raises(LogError, match="rename it"):
        count_transitions(log, state="*", action="a", next_state="n")


# Files that are no logs


def test_pipe_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "log.csv"
    os.mkfifo(pipe)
    for log in (pipe, str(tmp_path / "*.csv")):
        with pytest.raises(FileError, match="is a pipe"):
            count_transitions(log, **NAMES)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_compressed_file_with_a_wrong_checksum_is_refused(tmp_path: Path, suffix: str) -> None:
    content = "s,a,n\na,x,b\n" if suffix == "csv" else '{"s": "a", "a": "x", "n": "b"}\n'
    compressed = bytearray(gzip.compress(content.encode()))
    compressed[-8] ^= 1
    log = tmp_path / f"log.{suffix}.gz"
    log.write_bytes(compressed)
    with pytest.raises(LogError, match="is damaged: CRC check failed"):
        count_transitions(log, **NAMES)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_only_needed_columns_are_opened(tmp_path: Path, kind: str) -> None:
    names = ["s", "a", "n", *(f"other {i}" for i in range(50))]
    table = pa.table({name: ["a"] for name in names})
    log: Any = tmp_path / f"log.{kind}"
    if kind == "csv":
        log.write_text(",".join(names) + "\n" + ",".join("a" for _ in names) + "\n")
    elif kind == "jsonl":
        json_file(log, [dict.fromkeys(names, "a")])
    elif kind == "parquet":
        pq.write_table(table, log)
    else:
        log = table
    frame = open_table(log, Columns.of("s", "a", "n"))
    assert frame.collect_schema().names() == ["s", "a", "n"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_very_many_columns_are_no_obstacle(tmp_path: Path, kind: str) -> None:
    names = ["s", "a", "n", *(f"other column {i}" for i in range(10_000))]
    log = tmp_path / f"log.{kind}"
    if kind == "csv":
        row = ",".join("a" for _ in names)
        log.write_text(f"{','.join(names)}\n{row}\n{row}\n")
    else:
        json_file(log, [dict.fromkeys(names, "a")] * 2)
    assert transitions(count_transitions(log, **NAMES)) == {("a", "a"): 2}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_names_of_columns_differ_in_upper_and_lower_case(tmp_path: Path, suffix: str) -> None:
    log = tmp_path / f"log.{suffix}"
    if suffix == "csv":
        log.write_text("S,a,n\na,x,b\n")
    elif suffix == "jsonl":
        json_file(log, [{"S": "a", "a": "x", "n": "b"}])
    else:
        pq.write_table(pa.table({"S": ["a"], "a": ["x"], "n": ["b"], "k": ["t"]}), log)
    with pytest.raises(LogError, match="the log has no column 's'"):
        count_transitions(log, **NAMES)
    with pytest.raises(LogError, match="the log has no column 's'"):
        count_transitions(log, **NAMES, task="a2")


# Messages


@pytest.mark.parametrize("name", ["x" * 10**6, "s"])
def test_messages_on_columns_are_bounded(name: str) -> None:
    log = {f"column {i} " + "y" * 100: [1] for i in range(10_000)}
    with pytest.raises(LogError, match="the log has no column") as error:
        count_transitions(log, **{**NAMES, "state": name})
    assert len(str(error.value)) < 4000


def test_messages_on_labels_are_bounded() -> None:
    log = {"s": ["z" * 10**6], "a": ["x"], "n": ["b"]}
    counts = count_transitions(log, **NAMES)
    with pytest.raises(LabelError, match="unknown label") as error:
        counts.states.index("q" * 10**6)
    assert len(str(error.value)) < 4000
    validation = validate_log({**log, "n": ["b" * 10**6]}, Columns.of(**NAMES))
    assert all(len(finding.message) < 4000 for finding in validation.findings)
