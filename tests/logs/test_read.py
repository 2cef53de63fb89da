"""Counting: any table, in any of the accepted kinds, gives the counts of a plain loop."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Hashable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import ibis
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pastwise import Columns, LogWarning, TransitionCounts, count_transitions
from pastwise.data.bins import Bins
from pastwise.data.counts import Decay
from pastwise.errors import LabelError, LogError, ParameterError, PastwiseError
from pastwise.logs import decode
from pastwise.logs.columns import seconds
from pastwise.logs.read import read_log
from tests.helpers.tables import Log, assert_counts, counted, labelled, slow_counts


def _csv_file(log: Log, folder: Path) -> Path:
    path = folder / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(log.types), lineterminator="\n")
        writer.writeheader()
        writer.writerows(log.rows)
    return path


def _json_file(log: Log, folder: Path) -> Path:
    path = folder / "log.jsonl"
    lines = (
        json.dumps(row, default=lambda value: value.isoformat(), ensure_ascii=False)
        for row in log.rows
    )
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def _parquet_file(log: Log, folder: Path) -> Path:
    pq.write_table(log.table, folder / "log.parquet")
    return folder / "log.parquet"


KINDS: dict[str, Callable[[Log, Path], Any]] = {
    "columns": lambda log, _: {name: [row[name] for row in log.rows] for name in log.types},
    "pandas": lambda log, _: log.table.to_pandas(),
    "pandas, nullable": lambda log, _: log.table.to_pandas().convert_dtypes(),
    "polars": lambda log, _: pl.from_arrow(log.table),
    "polars, lazy": lambda log, _: pl.LazyFrame(log.table),
    "pyarrow": lambda log, _: log.table,
    "duckdb": lambda log, _: duckdb.connect().from_arrow(log.table),
    "ibis": lambda log, _: ibis.memtable(log.table),
    "csv": _csv_file,
    "parquet": _parquet_file,
    "json": _json_file,
}


Sample = Callable[[Random], Any]
"""One value of a column."""


DAY = datetime(2024, 2, 27)


SPECIAL = ",;|\t\n\"' \\[]ž€"


texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from(SPECIAL),
    min_size=1,
    max_size=4,
)


few_texts = st.lists(texts, min_size=3, max_size=3, unique=True)


def quarter(rng: Random) -> float:
    return rng.randint(-8, 8) / 4


def day(rng: Random) -> date:
    return (DAY + timedelta(days=rng.randint(0, 4))).date()


def moment(rng: Random) -> datetime:
    return DAY + timedelta(seconds=rng.randint(0, 3 * 86400 * 4) / 4)


def one_of(*values: Any) -> Sample:
    return lambda rng: rng.choice(values)


TIMES: list[tuple[Any, Sample, list[Any]]] = [
    (pa.int64(), lambda rng: rng.randint(0, 6), [1, 2]),
    (pa.float64(), quarter, [0.5]),
    (pa.date32(), day, ["2d", "24h"]),
    (pa.timestamp("us"), moment, ["1d", "12.5h"]),
]


AGES: list[tuple[Any, Sample, list[Any], float]] = [
    (pa.int64(), lambda rng: rng.randint(0, 20), [1, 7.5], 24.0),
    (pa.float64(), quarter, [0.5], 3.0),
    (pa.date32(), day, ["36h", "900d"], 1709424000.0),
    (pa.timestamp("us"), moment, ["6h", "2d"], 1709424000.5),
]


EPISODES = [(pa.string(), one_of("a", "é")), (pa.int64(), one_of(3, 4))]


OTHERS: dict[str, tuple[Any, Sample]] = {
    "count": (pa.int64(), lambda rng: rng.randint(0, 5)),
    "weight": (pa.float64(), one_of(0.25, 1.0, 3.0)),
    "task": (pa.string(), one_of("old", "new, too")),
}


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Tables of all that a log may have, with values missing here and there."""
    rng = draw(st.randoms(use_true_random=True))
    words, whole = (
        one_of(*draw(few_texts)),
        one_of(*(rng.randint(-(2**40), 2**40) for _ in range(3))),
    )
    labels = [
        (pa.string(), words),
        (pa.int64(), whole),
        (pa.bool_(), one_of(False, True)),
        (pa.float64(), quarter),
    ]
    said: dict[str, Any] = {"next_state": None, "max_gap": None, "bins": {}, "age": None}
    said |= {"half_life": None, "as_of": None, "terminal": []}
    said |= {"state": ["the state", "and where"][: rng.choice([1, 1, 2])]}
    said |= {"action": ["what was done", "how"][: rng.choice([1, 1, 2])]}
    columns: dict[str, tuple[Any, Sample]] = {}
    for name in (*said["state"], *said["action"]):
        columns[name] = rng.choice(labels)
        if rng.random() < 0.25:
            columns[name] = pa.float64(), quarter
            said["bins"][name] = rng.choice([[-1, 0.5, 1.5], [-2.0, 2.0], [0, 0.25, 0.5, 2]])
    chained, ordered = rng.choice([(True, True), (False, True), (False, False)])
    if ordered:
        kind, times, gaps = rng.choice(TIMES)
        columns |= {"time": (kind, times), "episode": rng.choice(EPISODES)}
        said |= {
            "episode": "episode",
            "time": "time",
            "max_gap": rng.choice([None, *gaps]) if chained else None,
        }
    if not chained:
        said["next_state"] = [f"then {name}" for name in said["state"]]
        columns |= {f"then {name}": columns[name] for name in said["state"]}
    if rng.random() < 0.4:
        kind, ages, spans, as_of = rng.choice(AGES)
        columns["age"] = kind, ages
        said |= {"age": "age", "half_life": rng.choice(spans), "as_of": rng.choice([None, as_of])}
    gappy = {name: rng.choice([0.0, 0.0, 0.1]) for name in columns}
    for name in rng.sample(sorted(OTHERS), rng.choice([0, 0, 1, 2, 3])):
        said[name], columns[name] = name, OTHERS[name]
    rows = [
        {
            name: None if rng.random() < gappy.get(name, 0) else value(rng)
            for name, (_, value) in columns.items()
        }
        for _ in range(rng.choice([1, 6, 12, 20]))
    ]
    binned = {*said["bins"], *(f"then {name}" for name in said["bins"])}
    for name in {"time", "age", *binned} & columns.keys():  # a column without any value has no type
        rows[0][name] = columns[name][1](rng)
    if chained and {"age", *OTHERS} & columns.keys():  # which of two equal ones is the later?
        plain = [
            name
            for name in ("episode", "time", *said["state"], *said["action"])
            if name not in said["bins"]
        ]
        rows = list({tuple(row[name] for name in plain): row for row in rows}.values())
    log = Log(rows, {name: kind for name, (kind, _) in columns.items()}, said)
    states = sorted(slow_counts(log)[1], key=str)
    said["terminal"] = rng.sample(states, min(len(states), rng.choice([0, 0, 1, 2])))
    return log


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the generated files go."""
    return tmp_path_factory.mktemp("logs")


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(log=logs())
def test_any_table_gives_the_counts_of_a_plain_loop(kind: str, folder: Path, log: Log) -> None:
    log = log.as_text if kind == "csv" else log
    table = KINDS[kind](log, folder)
    expected, states, left_out = slow_counts(log)
    if states:
        found, num_warnings = counted(table, log.options)
        assert_counts(found, expected, states, log)
        assert (num_warnings > 0) == (left_out > 0 or found.num_records == 1)
        return
    with pytest.raises(LogError, match=r"no usable transition|has no value"):
        counted(table, log.options)


def transitions(table: Any, **options: Any) -> dict[tuple[Any, ...], float]:
    """Weight by state, action and next state, with any warnings."""
    said = {"state": "state", "action": "action", **options}
    return {key[1:]: sums[1] for key, sums in labelled(counted(table, said)[0]).items()}


EPISODE: dict[str, list[Any]] = {
    "who": ["ann", "ann", "ann", "ann", "bob", "bob"],
    "day": [1, 2, 3, 6, 1, 2],
    "state": ["a", "b", "c", "d", "e", "f"],
    "action": ["x", "x", "y", "y", "x", "x"],
}


CHAIN: dict[str, Any] = {"episode": "who", "time": "day"}


def test_next_state_is_that_of_the_next_record_of_the_episode() -> None:
    """Never that of another episode, however the rows are shuffled."""
    expected = {("a", "x", "b"): 1, ("b", "x", "c"): 1, ("c", "y", "d"): 1, ("e", "x", "f"): 1}
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 4, 2, 0]):
        shuffled = {name: [values[i] for i in order] for name, values in EPISODE.items()}
        assert transitions(shuffled, **CHAIN) == expected


@pytest.mark.parametrize(("max_gap", "is_followed"), [(2.99, False), (3, True), (None, True)])
def test_gap_breaks_the_chain(max_gap: float | None, is_followed: bool) -> None:
    assert (("c", "y", "d") in transitions(EPISODE, **CHAIN, max_gap=max_gap)) == is_followed


@pytest.mark.parametrize("column", ["state", "action", "day", "who"])
def test_missing_value_breaks_the_chain_instead_of_bridging_it(column: str) -> None:
    """Without its state nothing leads to the second record or from it.

    Without its action nothing leads from it.

    Without its time or episode it has no place, and the first is followed by the third.
    """
    gappy = {
        name: [None if (name, i) == (column, 1) else v for i, v in enumerate(c)]
        for name, c in EPISODE.items()
    }
    expected = {
        "state": set(),
        "action": {("a", "x", "b")},
        "day": {("a", "x", "c")},
        "who": {("a", "x", "c")},
    }
    assert transitions(gappy, **CHAIN).keys() == expected[column] | {
        ("c", "y", "d"),
        ("e", "x", "f"),
    }


@pytest.mark.parametrize("kind", ["columns", "pandas", "polars", "pyarrow"])
def test_episode_that_is_no_number_is_missing(kind: str, tmp_path: Path) -> None:
    rows = [
        {"who": who, "day": day, "state": f"{day}", "action": "x"}
        for day, who in enumerate([1.0, 1.0, np.nan, np.nan])
    ]
    types = {"who": pa.float64(), "day": pa.int64(), "state": pa.string(), "action": pa.string()}
    assert transitions(KINDS[kind](Log(rows, types, {}), tmp_path), **CHAIN) == {("0", "x", "1"): 1}


def test_records_of_the_same_time_do_not_follow_each_other() -> None:
    """The last of them by its labels goes on; the order of rows does not matter."""
    twice: dict[str, list[Any]] = {
        "who": [1, 1, 1, 1],
        "day": [1, 2, 2, 3],
        "state": ["a", "c", "b", "d"],
        "action": ["x"] * 4,
    }
    turned = {name: column[::-1] for name, column in twice.items()}
    assert (
        transitions(twice, **CHAIN)
        == transitions(turned, **CHAIN)
        == {("a", "x", "b"): 1, ("c", "x", "d"): 1}
    )


@pytest.mark.parametrize("kind", ["columns", "polars"])
def test_order_of_rows_does_not_matter_for_the_weight_of_records_of_the_same_time(
    kind: str, tmp_path: Path
) -> None:
    rows = [
        {"who": 1, "day": day, "state": s, "action": "x", "w": w}
        for day, s, w in ((1, "a", 1.0), (1, "a", 3.0))
    ]
    rows.append({"who": 1, "day": 2, "state": "b", "action": "x", "w": 5.0})
    types = {
        "who": pa.int64(),
        "day": pa.int64(),
        "state": pa.string(),
        "action": pa.string(),
        "w": pa.float64(),
    }
    one, other = (KINDS[kind](Log(order, types, {}), tmp_path) for order in (rows, rows[::-1]))
    assert transitions(one, **CHAIN, weight="w") == transitions(other, **CHAIN, weight="w")


THEN: dict[str, list[Any]] = EPISODE | {"then": ["b", "c", "d", "a", "f", None]}


@pytest.mark.parametrize("order", [CHAIN, {"episode": "who"}, {"time": "day"}])
def test_next_state_is_that_of_its_column_whichever_episode_it_has(order: dict[str, Any]) -> None:
    """So does the last record of an episode; episode and time may be missing."""
    given = {"state": "state", "action": "action", "next_state": "then"}
    placeless = THEN | {
        "who": ["ann", None, "ann", "ann", "bob", "bob"],
        "day": [1, 1, 1, None, 1, 2],
    }
    for log in (THEN, placeless):
        assert counted(log, given | order)[0] == counted(log, given)[0]
    assert transitions(placeless, next_state="then", **order)["d", "y", "a"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"day": ["early", "late"] * 3},
            "the time column 'day' must hold numbers or dates, not String",
        ),
        ({"who": None}, "the log has no column 'who'"),
    ],
)
def test_order_that_cannot_be_read_is_refused_with_a_next_state_too(
    change: dict[str, Any], message: str
) -> None:
    log = {name: values for name, values in (THEN | change).items() if values is not None}
    with pytest.raises(LogError, match=message):
        count_transitions(log, "state", "action", "then", **CHAIN)


NOON = datetime(2024, 2, 29, 12)


TYPES = {"state": pa.string(), "action": pa.string(), "then": pa.string(), "at": pa.timestamp("us")}


def dated(*moments: Any, kind: Any = None) -> Log:
    """Records that differ in their next state and date."""
    rows = [{"state": "s", "action": "x", "then": f"{i}", "at": at} for i, at in enumerate(moments)]
    return Log(rows, TYPES | ({} if kind is None else {"at": kind}), {})


def aged(table: Any, half_life: Any, **options: Any) -> TransitionCounts:
    return count_transitions(
        table, "state", "action", "then", age="at", half_life=half_life, **options
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("half_life", "before", "latest"),
    [
        ("1s", timedelta(seconds=1), datetime(1969, 7, 20, 20, 17, 40)),
        ("1min", timedelta(minutes=3), NOON),
        ("1h", timedelta(hours=2), NOON + timedelta(hours=11, minutes=59, seconds=58)),
        ("0.5d", timedelta(days=1), NOON + timedelta(hours=11, minutes=59, seconds=58)),
        ("0.5d", timedelta(days=1), datetime(1969, 7, 20, 20, 17, 40)),
        (timedelta(weeks=2), timedelta(weeks=2), NOON),
    ],
)
def test_weight_halves_with_every_half_life(
    kind: str, half_life: Any, before: timedelta, latest: datetime, tmp_path: Path
) -> None:
    """At any hour of the day."""
    counts = aged(KINDS[kind](dated(latest, latest - before), tmp_path), half_life)
    span = seconds(half_life) if isinstance(half_life, str) else half_life.total_seconds()
    np.testing.assert_allclose(
        counts.weight, [1, 0.5 ** (before.total_seconds() / span)], rtol=1e-9
    )
    assert counts.decay == Decay((latest - datetime(1970, 1, 1)).total_seconds(), span)


@pytest.mark.parametrize("kind", KINDS)
def test_fractions_of_a_second_count(kind: str, tmp_path: Path) -> None:
    table = KINDS[kind](dated(NOON, NOON - timedelta(microseconds=250_000)), tmp_path)
    np.testing.assert_allclose(aged(table, "1s").weight, [1, 0.5**0.25], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_dates_across_leap_days_and_centuries(kind: str, tmp_path: Path) -> None:
    days = [
        date(2000, 3, 1),
        date(2000, 2, 28),
        date(1999, 12, 31),
        date(1900, 3, 1),
        date(1900, 2, 28),
    ]
    table = KINDS[kind](dated(*days, kind=pa.date32()), tmp_path)
    found = np.log2(aged(table, "100d").weight)
    np.testing.assert_allclose(found, [-(days[0] - day).days / 100 for day in days], atol=1e-9)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Prague"])
@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars", "parquet"])
def test_moments_of_any_resolution_and_time_zone(
    kind: str, zone: str | None, unit: str, tmp_path: Path
) -> None:
    """What is stored with a time zone is a moment in universal time."""
    table = KINDS[kind](
        dated(NOON, NOON - timedelta(hours=3), kind=pa.timestamp(unit, zone)), tmp_path
    )
    counts = aged(table, "1h")
    assert counts.weight.tolist() == pytest.approx([1, 0.125])
    assert counts.decay == Decay((NOON - datetime(1970, 1, 1)).total_seconds(), 3600)


def test_moments_do_not_depend_on_the_time_zone_of_the_machine() -> None:
    program = (
        "import pyarrow as pa; from pastwise import count_transitions;"
        "at = pa.array([10**9], pa.timestamp('s', 'UTC'));"
        "log = pa.table({'s': ['a'], 'a': ['x'], 'n': ['b'], 'at': at});"
        "print(count_transitions(log, 's', 'a', 'n', age='at', half_life='1h').decay.as_of)"
    )
    environment = {**os.environ, "TZ": "America/New_York"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == 1e9


def test_offsets_in_a_file_count(tmp_path: Path) -> None:
    """An hour passes between 2:30 of the summer and 2:30 of the winter."""
    rows = [
        "who,at,state,action",
        "1,2024-10-27T02:30:00+02:00,a,x",
        "1,2024-10-27T02:30:00+01:00,b,x",
    ]
    (tmp_path / "log.csv").write_text("\n".join([*rows, "1,2024-10-27T03:30:00+01:00,c,x\n"]))
    found = transitions(tmp_path / "log.csv", episode="who", time="at", max_gap="1h")
    assert found == {("a", "x", "b"): 1, ("b", "x", "c"): 1}


def test_weights_as_of_a_later_date() -> None:
    log = {"state": ["a", "a"], "action": ["x", "x"], "then": ["b", "c"], "at": [10, 8]}
    counts = aged(log, 2, as_of=14.0)
    assert counts.decay == Decay(14.0, 2.0)
    np.testing.assert_allclose(counts.weight, [0.25, 0.125])
    np.testing.assert_allclose(counts.weight_squared, [1 / 16, 1 / 64])


@pytest.mark.parametrize("kind", KINDS)
def test_seconds_since_1970_do_not_overflow(kind: str, tmp_path: Path) -> None:
    """Seen from 1970 the weights would be 2 ** 20000; the oldest is 2 ** -20000, so zero."""
    now = 20_000 * 86400
    table = KINDS[kind](dated(now, now - 86400, 0, kind=pa.int64()), tmp_path)
    assert aged(table, 86400).weight.tolist() == pytest.approx([1, 0.5, 0])


@pytest.mark.filterwarnings("ignore:the log has a single transition")
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 30)), min_size=2
    ),
    st.data(),
)
def test_sum_of_shards_is_the_count_of_all_as_of_the_latest_date(
    records: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(1, len(records) - 1))

    def shard(some: list[tuple[str, str, int]]) -> pl.DataFrame:
        state, action, at = zip(*some, strict=True)
        return pl.DataFrame({"state": state, "action": action, "then": state, "at": at})

    whole, one, other = (
        aged(shard(some), 3) for some in (records, records[:place], records[place:])
    )
    both = one + other
    assert both.decay == whole.decay
    assert labelled(both).keys() == labelled(whole).keys()
    for name in ("records", "weight", "weight_squared"):
        np.testing.assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-12)


def test_shards_of_different_half_lives_cannot_be_added() -> None:
    log = dated(3, 4, kind=pa.int64()).table
    with pytest.raises(ValueError, match="fall differently with age"):
        aged(log, 1) + aged(log, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_lower_edges_are_included_and_the_outermost_bins_are_open(
    kind: str, tmp_path: Path
) -> None:
    values = [-1e9, 9.75, 10.0, 10.5, 20.0]
    types = {"state": pa.float64(), "action": pa.int64(), "then": pa.float64()}
    rows = [{"state": value, "action": i, "then": 0.0} for i, value in enumerate(values)]
    options = {"next_state": "then", "bins": {"state": [10, 20], "action": [1.5]}}
    cold, mild, hot = "< 10", "[10, 20)", ">= 20"
    assert transitions(KINDS[kind](Log(rows, types, {}), tmp_path), **options) == {
        (cold, "< 1.5", cold): 2,
        (mild, ">= 1.5", cold): 2,
        (hot, ">= 1.5", cold): 1,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_closed_bins_of_older_policies_have_their_last_edge_and_nothing_outside(
    kind: str, tmp_path: Path
) -> None:
    values = [-1.0, 0.0, 9.75, 10.0, 20.0, 20.5]
    types = {"state": pa.float64(), "action": pa.string(), "then": pa.float64()}
    rows = [{"state": value, "action": "x", "then": 0.0} for value in values]
    closed = {"state": Bins((0.0, 10.0, 20.0), is_open=False)}
    found = transitions(KINDS[kind](Log(rows, types, {}), tmp_path), next_state="then", bins=closed)
    assert found == {("[0, 10)", "x", "[0, 10)"): 2, ("[10, 20]", "x", "[0, 10)"): 2}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5)
@given(
    values=st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=2, max_size=9, unique=True)
)
def test_quantiles_have_equal_shares(kind: str, folder: Path, values: list[float]) -> None:
    """The edges are those of NumPy; the next states do not count."""
    rows = [{"state": value, "action": "x", "then": values[0]} for value in values]
    rows.append({"state": None, "action": "x", "then": 99.0})
    log = Log(rows, {"state": pa.float64(), "action": pa.string(), "then": pa.float64()}, {})
    columns = Columns.of("state", "action", "then", bins={"state": 4})
    found = read_log(KINDS[kind](log, folder), columns)
    bins = found.columns.bins["state"]
    assert isinstance(bins, Bins)
    np.testing.assert_allclose(bins.edges, np.quantile(values, [0.25, 0.5, 0.75]), rtol=1e-12)
    assert found.counts.num_records == len(values)


def automatic(log: dict[str, Any], bins: Any, **options: Any) -> dict[str, int]:
    """How many bins each column got."""
    found = read_log(log, Columns.of(**{"action": "action", "bins": bins, **options})).columns
    return {name: len(each) for name, each in found.bins.items() if isinstance(each, Bins)}


@pytest.mark.parametrize(("records", "number"), [(4, 2), (99, 2), (150, 3), (499, 9), (9999, 10)])
@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_automatic_bins_suit_the_records(records: int, number: int) -> None:
    """At least 50 records a bin, on average, but no fewer than two bins and no more than ten."""
    values = [float(i) for i in range(records)]
    log = {"state": values, "action": ["x"] * records, "then": values}
    options: dict[str, Any] = {"state": "state", "next_state": "then"}
    assert automatic(log, {"state": "auto"}, **options) == {"state": number}
    counts = count_transitions(log, action="action", bins={"state": "auto"}, **options)
    shares = counts.records / records
    assert shares.max() - shares.min() < 2 / number / 10 + 2 / records


@pytest.mark.parametrize("kind", KINDS)
def test_automatic_bins_of_all_columns_that_hold_many_numbers(kind: str, tmp_path: Path) -> None:
    """Two columns with 9 * 50 rows get three bins each; few numbers, text and actions none."""
    rows = []
    for i in range(450):
        row = {"heat": float(i), "wind": -i, "few": i % 4, "text": "ab"[i % 2], "action": i}
        rows.append({**row, "who": i // 10, "day": i})
    types = {"heat": pa.float64(), "text": pa.string()}
    types |= dict.fromkeys(["wind", "few", "action", "who", "day"], pa.int64())
    options = {"state": ["heat", "wind", "few", "text"], "episode": "who", "time": "day"}
    table = KINDS[kind](Log(rows, types, {}), tmp_path)
    assert automatic(table, "auto", **options) == {"heat": 3, "wind": 3}


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_automatic_bins_tell_a_rare_value_from_a_frequent_one() -> None:
    log = {"state": [0.0] * 97 + [3.0, 5.0, 9.0], "action": ["x"] * 100, "then": [0.0] * 100}
    for bins in ("auto", 4):
        counts = count_transitions(log, "state", "action", "then", bins={"state": bins})
        assert counts.states.labels == ("< 3", ">= 3")
        assert counts.records.tolist() == [97, 3]


def test_the_order_of_rows_does_not_choose_between_zero_and_its_negative() -> None:
    """Rounding makes -0 of small numbers; whichever comes first may be a quantile."""
    values = [-1.0, -0.0, 0.0, 0.0, -0.0, 1.0, 2.0]
    for state in (values, values[::-1], sorted(values, key=str)):
        log = {"state": state, "action": ["x"] * 7, "then": state}
        counts = count_transitions(log, "state", "action", "then", bins={"state": 2})
        assert counts.states.labels == ("< 0", ">= 0")


def test_automatic_bins_of_no_numeric_column_change_nothing() -> None:
    log = {"state": ["a", "b"], "action": ["x", "y"], "then": ["b", "a"]}
    plain = count_transitions(log, "state", "action", "then")
    assert count_transitions(log, "state", "action", "then", bins="auto") == plain


def test_edges_may_be_infinite() -> None:
    log = {"state": [-1e9, 0.0, 7.0], "action": ["x"] * 3, "then": [7.0, 7.0, -5.0]}
    counts = count_transitions(log, "state", "action", "then", bins={"state": [-np.inf, 0, np.inf]})
    assert counts.states.labels == ("< 0", ">= 0")
    assert counts.records.tolist() == [1, 1, 1]


def test_intervals_are_ordered_by_their_lower_end() -> None:
    log = {"state": [-15, -2, 2, 150], "action": ["x"] * 4, "then": [-15, -2, 2, 150]}
    counts = count_transitions(
        log, "state", "action", "then", bins={"state": [-20, -10, 0, 10, 200]}
    )
    assert counts.states.labels == ("[-20, -10)", "[-10, 0)", "[0, 10)", "[10, 200)")


@pytest.mark.parametrize(
    ("values", "bins", "message"),
    [
        ([1.5, 1.5], 3, "bins: 'state' has too few different values for quantiles"),
        ([None, None], 3, "bins: 'state' has too few different values for quantiles"),
        (["a", "b"], 3, "the binned column 'state' must hold numbers or dates, not String"),
        (["a", "b"], [0, 1], "the binned column 'state' must hold numbers or dates, not String"),
    ],
)
def test_column_that_cannot_be_cut_is_refused(values: list[Any], bins: Any, message: str) -> None:
    kind = pa.string() if "a" in values else pa.float64()
    log = pa.table(
        {"state": pa.array(values, kind), "action": ["x", "x"], "then": pa.array(values, kind)}
    )
    with pytest.raises(LogError, match="state") as error:
        count_transitions(log, "state", "action", "then", bins={"state": bins})
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["b", "a", 'say "hi"'], ("a", "b", 'say "hi"')),
        ([10, 9, -1], (-1, 9, 10)),
        ([2, 0, 1], (0, 1, 2)),
        ([0.5, -1.5, 3.0], (-1.5, 0.5, 3.0)),
        ([True, False, True], (False, True)),
        ([date(2024, 1, 2), date(2024, 1, 1), date(2024, 1, 1)], ("2024-01-01", "2024-01-02")),
        (
            [datetime(2024, 1, 1, 5), datetime(2024, 1, 1)] * 2,
            ("2024-01-01T00:00:00", "2024-01-01T05:00:00"),
        ),
        ([time(5), time(4, 30)], ("04:30:00", "05:00:00")),
        ([Decimal("1.50"), Decimal("-2.25")], (-2.25, 1.5)),
    ],
)
def test_labels_are_sorted_and_of_the_type_that_they_had(
    values: list[Any], labels: tuple[Hashable, ...]
) -> None:
    counts = count_transitions({"s": values, "a": values, "n": values}, "s", "a", "n")
    for space in (counts.states, counts.actions):
        assert tuple(space.labels) == labels
        assert [type(label) for label in space.labels] == [type(label) for label in labels]


def test_product_spaces_hold_the_combinations_that_occur() -> None:
    log = {
        "room": ["n", "s"],
        "warm": [True, False],
        "did": ["x", "y"],
        "much": [2, 10],
        "r": ["n"] * 2,
        "w": [True] * 2,
    }
    counts = count_transitions(log, ["room", "warm"], ["did", "much"], ["r", "w"])
    assert counts.states.labels == (("n", True), ("s", False))
    assert counts.states.fields == ("room", "warm")
    assert counts.actions.labels == (("x", 2), ("y", 10))
    assert counts.actions.fields == ("did", "much")


def test_labels_that_are_categories_are_what_they_say() -> None:
    values = {"s": ["b", "a", None], "a": ["y", "x", "x"], "n": ["a", "c", "c"]}
    kinds = {name: pa.dictionary(pa.int8(), pa.string()) for name in values}
    arrow = pa.table({name: pa.array(column).cast(kinds[name]) for name, column in values.items()})
    enum = pl.Enum(["c", "b", "a"])
    for table in (
        arrow,
        arrow.to_pandas(),
        pl.DataFrame(values, {"s": enum, "a": pl.Categorical, "n": enum}),
    ):
        found = transitions(table, state="s", action="a", next_state="n")
        assert found == {("b", "y", "a"): 1, ("a", "x", "c"): 1}


@pytest.mark.parametrize("kind", ["columns", "polars", "csv"])
def test_zero_is_one_label_whatever_its_sign(kind: str, tmp_path: Path) -> None:
    rows = [{"state": 0.0, "action": "x", "then": -0.0}, {"state": 1.5, "action": "x", "then": 0.0}]
    log = Log(
        rows,
        {"state": pa.float64(), "action": pa.string(), "then": pa.float64()},
        {"text_labels": False},
    )
    found = transitions(KINDS[kind](log, tmp_path), next_state="then", text_labels=False)
    assert found == {(0.0, "x", 0.0): 1, (1.5, "x", 0.0): 1}


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("csv", "json", "pandas, nullable")]
)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_state_that_is_no_number_is_left_out(kind: str, bad: float, tmp_path: Path) -> None:
    rows = [
        {"state": s, "action": "x", "then": n}
        for s, n in ((1.0, 2.0), (bad, 2.0), (2.0, bad), (2.0, 1.0))
    ]
    log = Log(rows, {"state": pa.float64(), "action": pa.string(), "then": pa.float64()}, {})
    with pytest.warns(LogWarning) as caught:
        counts = count_transitions(KINDS[kind](log, tmp_path), "state", "action", "then")
    assert labelled(counts).keys() == {(None, 1.0, "x", 2.0), (None, 2.0, "x", 1.0)}
    assert len(caught) == 2


def test_whole_states_may_have_next_states_with_gaps() -> None:
    """A column of whole numbers with a gap is one of fractions in many libraries."""
    for gap in (None, np.nan, np.inf):
        found = transitions(
            {"state": [1, 2], "action": ["x", "x"], "then": [2.0, gap]}, next_state="then"
        )
        assert found == {(1, "x", 2): 1}


def test_text_is_text_however_it_is_stored() -> None:
    kinds = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    for kind, other in permutations(kinds, 2):
        log = pa.table(
            {
                "state": pa.array(["a", "b"], kind),
                "action": ["x", "x"],
                "then": pa.array(["b", "c"], other),
            }
        )
        assert transitions(log, next_state="then") == {("a", "x", "b"): 1, ("b", "x", "c"): 1}


@pytest.mark.parametrize("narrow", [pa.int32(), pa.uint64()])
def test_long_numbers_are_told_apart_whatever_the_type_of_the_next_state(narrow: Any) -> None:
    """Two that are the same in floating point."""
    one, other = 2**60, 2**60 + 1
    log = pa.table({"state": [one, other], "action": ["x", "x"], "then": pa.array([7, 8], narrow)})
    assert transitions(log, next_state="then") == {(one, "x", 7): 1, (other, "x", 8): 1}


@pytest.mark.parametrize(
    ("states", "next_states"),
    [
        ([1, 2], ["a", "b"]),
        ([date(2024, 1, 1)], [5]),
        ([True], [date(2024, 1, 1)]),
    ],
)
def test_states_and_next_states_of_different_types_are_refused(
    states: list[Any], next_states: list[Any]
) -> None:
    log = {"state": states, "action": ["x"] * len(states), "then": next_states}
    with pytest.raises(LogError, match="the state 'state' and its next state have different types"):
        count_transitions(log, "state", "action", "then")


@pytest.mark.parametrize("value", [["a"], {"a": 1}, b"a", timedelta(1)])
@pytest.mark.parametrize("column", ["state", "action"])
def test_column_of_what_is_no_label_is_refused(value: Any, column: str) -> None:
    log = {"state": ["a"], "action": ["x"], "then": ["a"]} | {column: [value]}
    with pytest.raises(
        LogError, match=r"a label is text, a number or a boolean|of different types"
    ) as error:
        count_transitions(
            log | ({"then": [value]} if column == "state" else {}), "state", "action", "then"
        )
    assert f"'{column}'" in str(error.value)


def test_free_text_is_refused_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    log = {"note": [f"note {i}" for i in range(12)], "did": ["x"] * 12, "then": ["note 1"] * 12}
    assert len(count_transitions(log, "note", "did", "then").states) == 12
    monkeypatch.setattr(decode, "MAX_LABELS", 11)
    with pytest.raises(
        LogError,
        match="the column 'note' has 12 different values: it looks like free text or an identifier",
    ):
        count_transitions(log, "note", "did", "then")


def test_clean_log_gives_no_warning() -> None:
    """Warnings are errors here. The last record of an episode is no finding."""
    assert count_transitions(EPISODE, "state", "action", episode="who", time="day").num_records == 4


def test_one_row_is_a_log() -> None:
    with pytest.warns(LogWarning, match="the log has a single transition"):
        counts = count_transitions({"s": ["a"], "a": ["x"], "n": ["b"]}, "s", "a", "n")
    assert labelled(counts) == {(None, "a", "x", "b"): [1, 1.0, 1.0]}


def test_what_is_left_out_is_counted_in_a_warning_where_it_was_asked_for() -> None:
    log = {
        "s": ["a", None, None, "b", "b"],
        "a": ["x", "x", "y", None, "x"],
        "n": ["a", "a", "b", "b", "a"],
    }
    with pytest.warns(LogWarning) as caught:
        counts = count_transitions(log, "s", "a", "n")
    assert counts.num_records == 2
    assert sorted(str(w.message).split(" left out")[0] for w in caught) == [
        "1 record without action",
        "2 records without state",
    ]
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"s": [None, None]}, "2 records without state"),
        ({"n": [None, None]}, "2 records without next state"),
        ({"a": [None, None]}, "2 records without action"),
    ],
)
@pytest.mark.parametrize("kind", ["columns", "pandas", "polars", "pyarrow"])
def test_log_without_any_transition_is_refused_with_the_reason(
    kind: str, change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    columns = {"s": ["a", "b"], "a": ["x", "x"], "n": ["b", "b"]} | change
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    log = Log(rows, {name: pa.null() if name in change else pa.string() for name in columns}, {})
    with pytest.raises(LogError, match=f"no usable transition: {reason}"):
        count_transitions(KINDS[kind](log, tmp_path), "s", "a", "n")


def test_episodes_of_one_record_have_no_transition() -> None:
    log = {"who": [1, 2], "day": [1, 1], "state": ["a", "b"], "action": ["x", "x"]}
    with pytest.raises(LogError, match="no usable transition: no record is followed by another"):
        count_transitions(log, "state", "action", **CHAIN)


@pytest.mark.parametrize("kind", ["columns", "pandas", "polars", "pyarrow", "csv", "json"])
def test_table_without_rows_is_refused(kind: str, tmp_path: Path) -> None:
    log = Log([], dict.fromkeys(("s", "a", "n"), pa.string()), {})
    with pytest.raises(LogError, match=r"no records|is empty"):
        count_transitions(KINDS[kind](log, tmp_path), "s", "a", "n")


def test_records_that_leave_a_terminal_state_are_left_out() -> None:
    log = {"s": ["a", "a", "won", "a"], "a": ["x", "x", "x", "y"], "n": ["won", "won", "a", "lost"]}
    with pytest.warns(LogWarning, match="1 record .* terminal state"):
        counts = count_transitions(log, "s", "a", "n", terminal=["won", "lost"])
    assert labelled(counts).keys() == {(None, "a", "x", "won"), (None, "a", "y", "lost")}
    assert [counts.states.labels[i] for i in counts.terminal] == ["lost", "won"]
    assert counts.num_records == 3


@pytest.mark.parametrize(
    ("terminal", "labels"),
    [("won", ["won"]), (["won", "a"], ["a", "won"]), ({"won"}, ["won"]), ((), []), ([], [])],
)
def test_ways_to_name_terminal_states(terminal: Any, labels: list[str]) -> None:
    log = {"s": ["b", "b"], "a": ["x", "x"], "n": ["won", "a"]}
    counts = count_transitions(log, "s", "a", "n", terminal=terminal)
    assert [counts.states.labels[i] for i in counts.terminal] == labels


@pytest.mark.filterwarnings("ignore:the log has a single transition")
def test_terminal_state_of_several_fields_is_a_tuple_or_its_key() -> None:
    log = {"room": ["n"], "day": [1], "a": ["x"], "r": ["s"], "d": [2]}
    for terminal in (("s", 2), [("s", 2)], '["s", 2]'):
        counts = count_transitions(log, ["room", "day"], "a", ["r", "d"], terminal=terminal)
        assert counts.terminal.tolist() == [1]


def test_one_more_log_need_not_have_every_terminal_state() -> None:
    columns = Columns.of("s", "a", "n", terminal=["won", "lost"])
    found = read_log({"s": ["a"], "a": ["x"], "n": ["won"]}, columns, more=True)
    assert [found.counts.states.labels[i] for i in found.counts.terminal] == ["won"]
    assert found.findings == ()


def test_unknown_terminal_state_is_refused() -> None:
    with pytest.raises(LabelError, match="terminal: unknown label 'wonn'; did you mean 'won'"):
        count_transitions({"s": ["a"], "a": ["x"], "n": ["won"]}, "s", "a", "n", terminal="wonn")


GOOD = {"s": ["a", "a", "b"], "a": ["x", "x", "y"], "n": ["b", "b", "a"]}


@pytest.mark.parametrize("kind", ["columns", "pandas", "polars", "pyarrow", "csv"])
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("count", -1, "the count column 'c' has negative values"),
        ("count", 1.5, "the count column 'c' has values that are not whole"),
        ("count", None, "the count column 'c' has missing values"),
        ("count", np.nan, "the count column 'c' has missing values"),
        ("count", np.inf, "the count column 'c' has"),
        ("count", 2.0**63, r"the count column 'c' has values that sum to 2\^63 or more"),
        ("weight", 0.0, "the weight column 'c' has values that are not positive"),
        ("weight", -1.0, "the weight column 'c' has values that are not positive"),
        ("weight", -np.inf, "the weight column 'c' has values that are not positive"),
        ("weight", np.inf, "the weight column 'c' has infinite values"),
        (
            "weight",
            np.nan,
            "the weight column 'c' has missing values or values that are not numbers",
        ),
        ("weight", None, "the weight column 'c' has missing values or values that are not numbers"),
    ],
)
def test_bad_counts_and_weights_are_refused(
    kind: str, column: str, value: float | None, message: str, tmp_path: Path
) -> None:
    columns: dict[str, list[Any]] = GOOD | {"c": [1.0, value, 2.0]}
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    log = Log(rows, {name: pa.float64() if name == "c" else pa.string() for name in columns}, {})
    said: dict[str, Any] = {column: "c"}
    with pytest.raises(LogError, match=message):
        count_transitions(KINDS[kind](log, tmp_path), "s", "a", "n", **said)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            {"c": ["1", "2", "3"]},
            {"count": "c"},
            "the count column 'c' must hold numbers, not String",
        ),
        (
            {"c": ["1", "2", "3"]},
            {"weight": "c"},
            "the weight column 'c' must hold numbers, not String",
        ),
        (
            {"c": [date(2024, 1, 1)] * 3},
            {"count": "c"},
            "the count column 'c' must hold numbers, not Date",
        ),
        (
            {"c": [datetime(2024, 1, 1)] * 3},
            {"weight": "c"},
            "the weight column 'c' must hold numbers, not Datetime",
        ),
        (
            {"c": ["1", "2", "3"]},
            {"age": "c", "half_life": 1},
            "the age column 'c' must hold numbers or dates",
        ),
        (
            {"c": ["1", "2", "3"]},
            {"age": "c", "half_life": "1d"},
            "the age column 'c' must hold numbers or dates",
        ),
        (
            {"c": [1, 2, 3]},
            {"age": "c", "half_life": "1d"},
            "holds numbers, not dates: give the span '1d' as a number",
        ),
        (
            {"c": [date(2024, 1, 1)] * 3},
            {"age": "c", "half_life": 3},
            "needs a unit, as in 36h or 30d",
        ),
        ({"c": [None] * 3}, {"age": "c", "half_life": 3}, "'c'"),
        (
            {"c": pa.nulls(3, pa.int64())},
            {"age": "c", "half_life": 3},
            "the age column 'c' has no value",
        ),
        ({"c": [1.0, np.inf, 3.0]}, {"age": "c", "half_life": 3}, "the age column 'c'"),
        ({"c": [1.0, 2e6, 3.0]}, {"age": "c", "half_life": 3, "as_of": 0.0}, "as_of"),
        (
            {"c": [1, 2, 3]},
            {"age": "c", "half_life": 3, "as_of": np.inf},
            "as_of must be finite, not inf",
        ),
        ({"c": ["k", None, "l"]}, {"task": "c"}, "the task column 'c' has missing values"),
    ],
)
def test_columns_that_cannot_be_what_they_are_said_to_be(
    change: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PastwiseError, match=r"\w") as error:
        count_transitions(GOOD | change, "s", "a", "n", **options)
    assert message in str(error.value)


@pytest.mark.parametrize("kind", ["columns", "polars"])
@pytest.mark.parametrize("value", [timedelta(hours=1), time(5)])
def test_length_of_time_is_no_date(kind: str, value: Any, tmp_path: Path) -> None:
    rows = [{"who": 1, "at": value, "state": "a", "action": "x"}] * 2
    types = {"who": pa.int64(), "at": None, "state": pa.string(), "action": pa.string()}
    with pytest.raises(LogError, match="at") as error:
        count_transitions(
            KINDS[kind](Log(rows, types, {}), tmp_path), "state", "action", episode="who", time="at"
        )
    assert "\n" not in str(error.value)


def test_rows_of_no_record_are_no_record() -> None:
    counts = count_transitions(GOOD | {"c": [0, 3, 0]}, "s", "a", "n", count="c")
    assert labelled(counts) == {(None, "a", "x", "b"): [3, 3.0, 3.0]}
    with pytest.raises(LogError, match="no usable transition"):
        count_transitions(GOOD | {"c": [0, 0, 0]}, "s", "a", "n", count="c")


def test_task_of_a_record_that_is_left_out_may_be_missing() -> None:
    with pytest.warns(LogWarning, match="without state"):
        counts = count_transitions(
            GOOD | {"s": [None, "a", "b"], "t": [None, "k", "l"]}, "s", "a", "n", task="t"
        )
    assert labelled(counts).keys() == {("k", "a", "x", "b"), ("l", "b", "y", "a")}


def test_columns_from_what_people_write() -> None:
    columns = Columns.of(
        "s",
        ["a", "b"],
        episode="e",
        time="t",
        max_gap=timedelta(hours=36),
        terminal="won",
        bins={"a": [0, 1], "b": 4},
    )
    assert columns.state == ("s",)
    assert columns.action == ("a", "b")
    assert columns.next_state == ()
    assert seconds(str(columns.max_gap)) == 36 * 3600
    assert columns.terminal == ("won",)
    assert columns.bins == {"a": Bins((0.0, 1.0)), "b": 4}
    assert columns.labels == ("s", "a", "b")
    assert columns.all == ("s", "a", "b", "e", "t")


def test_labels_of_a_file_are_text_but_for_the_binned() -> None:
    given: dict[str, Any] = {"bins": {"s": [0, 1]}, "task": "k", "count": "c", "weight": "w"}
    columns = Columns.of(["s", "r"], "a", ["n", "m"], **given)
    assert columns.text == ("r", "a", "m", "k")
    assert columns.all == ("s", "r", "a", "n", "m", "k", "c", "w")
    assert Columns.of(["s", "r"], "a", ["n", "m"], **given, text_labels=False).text == ()
    assert Columns.of("s", "a", "n", episode="e", time="t").text == ("s", "a", "n", "e")


@pytest.mark.parametrize(
    "columns",
    [
        Columns.of("s", "a", "n"),
        Columns.of(
            ["s", "r"],
            ["a"],
            ["n", "m"],
            terminal=[("x", 1), ("y", True)],
            task="k",
            text_labels=False,
        ),
        Columns.of(
            "s", "a", episode="e", time="t", max_gap="36h", bins={"s": [0, 2.5, 10], "a": "auto"}
        ),
        Columns.of("s", "a", "n", bins={"s": [-np.inf, 0, np.inf], "a": 3}),
        Columns.of("s", "a", "n", bins={"s": Bins((-np.inf, 0.0, 9.0), is_open=False)}),
        Columns.of("s", "a", "n", bins="auto"),
        Columns.of("s", "a", "n", episode="e", time="t"),
        Columns.of(
            "s", "a", "n", age="d", half_life=2, count="c", weight="w", terminal=[5, "five", False]
        ),
    ],
)
def test_columns_survive_json(columns: Columns) -> None:
    back = Columns.from_dict(json.loads(json.dumps(columns.to_dict(), allow_nan=False)))
    assert back == columns
    assert [type(label) for label in back.terminal] == [type(label) for label in columns.terminal]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"state": []}, "a log needs a state column, or columns of features, and an action"),
        ({"action": []}, "a log needs a state column, or columns of features, and an action"),
        ({"next_state": None}, "name the next_state column, or episode and time"),
        ({"next_state": None, "episode": "e"}, "name the next_state column, or episode and time"),
        ({"next_state": ["n", "m"]}, "next_state needs as many columns as state: 1, not 2"),
        ({"max_gap": 3}, "max_gap has no effect with next_state; drop one of them"),
        (
            {"episode": "e", "time": "t", "max_gap": 3},
            "max_gap has no effect with next_state; drop one of them",
        ),
        ({"next_state": None, "max_gap": 3}, "name the next_state column, or episode and time"),
        ({"age": "d"}, "age and half_life go together"),
        ({"half_life": 3}, "age and half_life go together"),
        ({"bins": {"n": [0, 1]}}, "bins: 'n' is not a state or action column"),
        ({"bins": {"s": 1}}, "bins: 's' needs at least two bins, not 1"),
        ({"bins": {"s": []}}, "bins: 's': give at least one finite edge, not []"),
        ({"bins": {"s": [np.inf]}}, "bins: 's': give at least one finite edge, not []"),
        ({"bins": {"s": [1, 1]}}, "bins: 's': edges must be in ascending order, not [1.0, 1.0]"),
        (
            {"bins": {"s": [1, np.nan]}},
            "bins: 's': edges must be in ascending order, not [1.0, nan]",
        ),
        ({"bins": 4}, "bins takes a mapping from columns to edges, a number of bins or 'auto'"),
        ({"bins": {"s": ["low", "high"]}}, "bins"),
        ({"action": "s"}, "the column 's' is named twice"),
        ({"state": ["s", "s"], "next_state": ["n", "m"]}, "the column 's' is named twice"),
        ({"task": "a"}, "the column 'a' is named twice"),
        ({"age": "d", "half_life": 0}, "half_life must be positive and finite, not 0"),
        ({"age": "d", "half_life": -1}, "half_life must be positive and finite, not -1"),
        ({"age": "d", "half_life": np.inf}, "half_life must be positive and finite, not inf"),
        ({"age": "d", "half_life": "0d"}, "must be positive, not 0d"),
        ({"age": "d", "half_life": timedelta(0)}, "must be positive"),
        ({"age": "d", "half_life": timedelta(days=-1)}, "must be positive"),
        (
            {"age": "d", "half_life": "a week"},
            "needs a unit, as in 36h or 30d (s, min, h, d, w); got 'a week'",
        ),
        ({"age": "d", "half_life": "3 years"}, "needs a unit, as in 36h or 30d"),
        ({"age": "d", "half_life": "1.2.3d"}, "1.2.3d"),
        (
            {"next_state": None, "episode": "e", "time": "t", "max_gap": 0},
            "max_gap must be positive and finite, not 0",
        ),
    ],
)
def test_columns_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=r"\w") as error:
        Columns.of(**({"state": "s", "action": "a", "next_state": "n"} | given))
    assert message in str(error.value)


@pytest.mark.parametrize("bins", [[0, 1], (0, "high"), (0, True), "many"])
def test_columns_know_their_bins_exactly(bins: Any) -> None:
    with pytest.raises(ParameterError, match="bins: 's' takes edges, a number of bins or 'auto'"):
        Columns(("s",), ("a",), ("n",), bins={"s": bins})


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("10s", 10),
        ("1.5min", 90),
        ("36h", 129_600),
        ("2d", 172_800),
        (" 1 w ", 604_800),
        (".5h", 1800),
    ],
)
def test_spans_in_seconds(span: str, expected: float) -> None:
    assert seconds(span) == expected


@pytest.mark.parametrize("span", [3.0, "3", "d", "3 months", "-3d", "3d 4h", ""])
def test_span_without_a_known_unit_is_refused(span: Any) -> None:
    with pytest.raises(ParameterError, match="needs a unit"):
        seconds(span)


@pytest.mark.parametrize(
    "span", [timedelta(microseconds=1), timedelta(days=10_000), timedelta(seconds=1.5)]
)
def test_any_length_of_time_is_a_span(span: timedelta) -> None:
    columns = Columns.of("s", "a", "n", age="d", half_life=span)
    assert seconds(str(columns.half_life)) == pytest.approx(span.total_seconds())


def test_log_of_a_single_transition_works_and_is_warned_of() -> None:
    with pytest.warns(LogWarning, match="the log has a single transition"):
        counts = count_transitions({"s": ["a"], "a": ["x"], "n": ["b"]}, "s", "a", "n")
    assert counts.records.tolist() == [1]


def test_ties_are_seen_whatever_else_is_missing() -> None:
    """Labels order records of the same time, not rows, even where an age is missing."""
    rows = [("A", 1.0, 0.0), ("B", 2.0, 0.0), ("C", 2.0, None), ("D", 3.0, 0.0)]
    found = set()
    for order in permutations(rows):
        state, moment, age = (list(column) for column in zip(*order, strict=True))
        log = {"s": state, "a": ["x"] * 4, "e": [1] * 4, "t": moment, "age": age}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            counts = count_transitions(
                log, "s", "a", episode="e", time="t", age="age", half_life=1.0
            )
        labels = counts.states.labels
        found.add(
            tuple(
                (labels[s], labels[n]) for s, n in zip(counts.state, counts.next_state, strict=True)
            )
        )
    assert len(found) == 1
