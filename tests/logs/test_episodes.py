"""Episodes from tables equal those of a plain loop, and have the records that are counted."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pastwise import Columns, LogWarning, Space, TransitionCounts, count_transitions
from pastwise.data.records import Episodes
from pastwise.errors import LogError, PastwiseError
from pastwise.logs.episodes import read_episodes

STATES, ACTIONS = Space("abc"), Space("xy")
COLUMNS = Columns.of("room", "did", episode="who", time="t")

Row = tuple[int | None, int | None, str | None, str | None, float | None]
"""Who, when, state, action, propensity."""

TYPES = {
    "who": pa.int64(),
    "t": pa.int64(),
    "room": pa.string(),
    "did": pa.string(),
    "chance": pa.float64(),
}


def table_of(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(
        {name: pa.array(column, TYPES[name]) for name, column in zip(TYPES, columns, strict=True)}
    )


def pieces(episodes: Episodes) -> list[list[tuple[str, str, str]]]:
    """Labels of the records of each episode."""
    found: list[list[tuple[str, str, str]]] = [[] for _ in range(episodes.number)]
    for s, a, n, e in zip(
        episodes.state, episodes.action, episodes.next_state, episodes.episode, strict=True
    ):
        found[e].append((str(STATES.labels[s]), str(ACTIONS.labels[a]), str(STATES.labels[n])))
    return found


def literal_pieces(rows: list[Row], max_gap: float) -> list[list[tuple[str, str, str]]]:
    """Row by row: a record goes on with its piece if the record before it was usable."""
    found: list[list[tuple[str, str, str]]] = []
    for who in sorted({row[0] for row in rows if row[0] is not None}):
        timed = [row for row in rows if row[0] == who and row[1] is not None]
        mine = sorted(
            timed, key=lambda row: (row[1], row[2] is not None, row[2], row[3] is not None, row[3])
        )
        open_piece = False
        for (_, t, s, a, _), (_, later, n, _, _) in pairwise(mine):
            assert t is not None
            assert later is not None
            usable = s is not None and a is not None and n is not None and 0 < later - t <= max_gap
            if usable and not open_piece:
                found.append([])
            if usable:
                found[-1].append((str(s), str(a), str(n)))
            open_piece = usable
    return found


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Missing once in ten times."""
    return st.integers(0, 9).flatmap(lambda number: values if number < 9 else st.none())


ROW = st.tuples(
    maybe(st.integers(1, 2)),
    maybe(st.integers(0, 9)),
    maybe(st.sampled_from("abc")),
    maybe(st.sampled_from("xy")),
    st.just(0.5),
)
ROWS = st.lists(ROW, min_size=8, max_size=30)


@given(ROWS)
def test_pieces_are_those_of_a_plain_loop(rows: list[Row]) -> None:
    """Rows in any order, with values missing anywhere and several records of one time."""
    columns, expected = replace(COLUMNS, max_gap=2), literal_pieces(rows, 2)
    for table in (table_of(rows), pl.DataFrame(table_of(rows)).lazy()):
        if expected:
            assert pieces(read_episodes(table, columns, STATES, ACTIONS)) == expected
        else:
            with pytest.raises(LogError, match="no usable transition"):
                read_episodes(table, columns, STATES, ACTIONS)


@given(ROWS)
def test_the_records_are_those_that_are_counted(rows: list[Row]) -> None:
    table = table_of(rows)
    if not literal_pieces(rows, 10):
        return
    episodes = read_episodes(table, COLUMNS, STATES, ACTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogWarning)
        counted = count_transitions(table, "room", "did", episode="who", time="t")
    spaces = Space("abc", ("room",)), Space("xy", ("did",))
    records = episodes.state, episodes.action, episodes.next_state
    assert TransitionCounts.from_records(*records, *spaces) == counted.relabelled(*spaces)


# Next states next to episodes and times


NEXT = replace(COLUMNS, next_state=("then",))

RowWithNext = tuple[Row, str | None]
"""A row and its next state."""


def table_with_next(with_next: list[RowWithNext]) -> pa.Table:
    return table_of([row for row, _ in with_next]).append_column(
        "then", pa.array([n for _, n in with_next], pa.string())
    )


def literal_chains(with_next: list[RowWithNext]) -> tuple[list[list[tuple[str, str, str]]], int]:
    """Pieces, and how many records do not go on with the piece before, found row by row."""
    placed: list[Any] = [
        (who, t, (s or "", a or "", n or ""))
        for (who, t, s, a, _), n in with_next
        if None not in (who, t)
    ]
    found: list[list[tuple[str, str, str]]] = []
    broken, last = 0, (None, 0, ("", "", ""))
    for who, t, labels in sorted(placed):
        goes_on = last[0] == who and last[1] < t and last[2][2] == labels[0]
        if all(labels):
            broken += last[0] == who and not goes_on
            found += [] if goes_on else [[]]
            found[-1].append(labels)
        last = (who if all(labels) else None, t, labels)
    return found, broken


@given(st.lists(st.tuples(ROW, maybe(st.sampled_from("abc"))), min_size=1, max_size=30))
def test_next_states_that_lead_elsewhere_break_the_chain(with_next: list[RowWithNext]) -> None:
    """All that is counted and has a place is in some episode, in any order of rows."""
    expected, broken = literal_chains(with_next)
    for table in (
        table_with_next(with_next),
        table_with_next(with_next[::-1]),
        pl.DataFrame(table_with_next(with_next)).lazy(),
    ):
        if not expected:
            with pytest.raises(LogError, match="no usable transition"):
                read_episodes(table, NEXT, STATES, ACTIONS)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert pieces(read_episodes(table, NEXT, STATES, ACTIONS)) == expected
        assert [str(warning.message).split(" record")[0] for warning in caught] == [str(broken)] * (
            broken > 0
        )


@given(ROWS)
@example([(1, 0, "a", "x", 0.5), (2, 0, "a", "x", 0.5), (2, 1, "a", "x", 0.5)])
def test_next_states_that_say_what_the_next_record_says_change_nothing(rows: list[Row]) -> None:
    """In a complete log: no value is missing, and no time occurs twice in an episode."""
    complete = sorted({row[:2]: row for row in rows if None not in row}.values())
    with_next = [(row, later[2]) for row, later in pairwise(complete) if row[0] == later[0]]
    if not with_next:
        return
    plain = read_episodes(table_of(complete), COLUMNS, STATES, ACTIONS, "chance")
    other = read_episodes(table_with_next(with_next), NEXT, STATES, ACTIONS, "chance")
    # An episode of one record is a unit, too, but has no transition.
    assert np.array_equal(plain.unit_of_episode, other.unit_of_episode)
    columns, same = (vars(replace(each, unit=None)) for each in (plain, other))
    assert all(np.array_equal(columns[name], same[name]) for name in columns)


def test_the_pieces_of_an_episode_are_one_unit() -> None:
    """The second episode has a gap: three pieces of two units."""
    log = {
        "who": [1, 1, 2, 2, 2, 2, 2],
        "t": [0, 1, 0, 1, 2, 3, 4],
        "room": ["a", "b", "a", "b", None, "b", "a"],
        "did": list("xyxyxyx"),
    }
    columns = Columns.of("room", "did", episode="who", time="t")
    episodes = read_episodes(log, columns, STATES, ACTIONS)
    assert episodes.number == 3
    assert episodes.unit_of_episode.tolist() == [0, 1, 1]


def test_the_last_record_of_an_episode_has_its_next_state() -> None:
    with_next: list[RowWithNext] = list(zip(WALK, "abcab", strict=True))
    episodes = read_episodes(table_with_next(with_next), NEXT, STATES, ACTIONS)
    assert pieces(episodes) == [
        [("b", "x", "a")],
        [("a", "x", "b"), ("b", "y", "c"), ("c", "x", "a")],
    ]


WALK: list[Row] = [
    (7, 2, "c", "x", 0.25),
    (7, 0, "a", "x", 0.5),
    (7, 1, "b", "y", 1.0),
    (3, 0, "b", "x", 0.125),
    (3, 5, "a", None, None),
]


def test_propensities_go_along_and_those_of_unusable_records_do_not_matter() -> None:
    episodes = read_episodes(table_of(WALK), COLUMNS, STATES, ACTIONS, "chance")
    assert episodes.propensity is not None
    assert episodes.propensity.tolist() == [0.125, 0.5, 1.0]
    assert pieces(episodes) == [[("b", "x", "a")], [("a", "x", "b"), ("b", "y", "c")]]
    assert read_episodes(table_of(WALK), COLUMNS, STATES, ACTIONS).propensity is None


@pytest.mark.parametrize("value", [0.0, 1.5, -1.0, float("nan"), None])
def test_a_bad_propensity_is_named(value: float | None) -> None:
    rows = [*WALK[:2], (7, 1, "b", "y", value), *WALK[3:]]
    with pytest.raises(
        LogError, match=r"'chance' is .* in episode 7 at 1; it must lie in \(0, 1\]"
    ):
        read_episodes(table_of(rows), COLUMNS, STATES, ACTIONS, "chance")


def test_a_terminal_state_ends_an_episode() -> None:
    rows: list[Row] = [(1, t, room, "x", None) for t, room in enumerate("abcab")]
    columns = replace(COLUMNS, terminal=("c",))
    found = pieces(read_episodes(table_of(rows), columns, STATES, ACTIONS))
    assert found == [[("a", "x", "b"), ("b", "x", "c")], [("a", "x", "b")]]


def test_several_fields_bins_dates_and_files(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "who,day,room,heat,did,chance\nann,2020-01-02,b,25,x,1\nann,2020-01-01,a,5,y,0.5\n"
    )
    columns = Columns.of(
        ["room", "heat"],
        "did",
        episode="who",
        time="day",
        bins={"heat": [10]},
        max_gap="36h",
    )
    states = Space([("a", "< 10"), ("b", ">= 10")], ("room", "heat"))
    episodes = read_episodes(str(path), columns, states, ACTIONS, "chance")
    assert (episodes.state.tolist(), episodes.action.tolist(), episodes.next_state.tolist()) == (
        [0],
        [1],
        [1],
    )
    assert episodes.propensity is not None
    assert episodes.propensity.tolist() == [0.5]


def test_categories_and_dates_may_name_episodes() -> None:
    log = {"t": [0, 1, 0, 1], "room": list("abca"), "did": list("xyxy")}
    expected = [[("a", "x", "b")], [("c", "x", "a")]]
    categories = pl.DataFrame(log | {"who": ["u", "u", "v", "v"]}).with_columns(
        pl.col("who").cast(pl.Categorical)
    )
    dates = log | {"who": [date(2020, 1, 1)] * 2 + [date(2020, 1, 2)] * 2}
    for table in (categories, dates):
        assert pieces(read_episodes(table, COLUMNS, STATES, ACTIONS)) == expected


def test_weights_ages_and_tasks_do_not_matter() -> None:
    table = table_of(WALK)
    columns = replace(COLUMNS, weight="chance", age="chance", half_life=1.0, task="who")
    plain, other = (read_episodes(table, each, STATES, ACTIONS) for each in (COLUMNS, columns))
    assert pieces(plain) == pieces(other)


@pytest.mark.parametrize(
    ("columns", "spaces", "propensity", "message"),
    [
        (
            Columns.of("room", "did", "then"),
            (STATES, ACTIONS),
            None,
            "importance sampling needs .* episode and time",
        ),
        (
            Columns.of("room", "did", "then", episode="who"),
            (STATES, ACTIONS),
            None,
            "next to that of the next state",
        ),
        (
            Columns.of("room", "did", "then", time="t"),
            (STATES, ACTIONS),
            None,
            "name the columns of episode and time",
        ),
        (replace(COLUMNS, count="t"), (STATES, ACTIONS), None, "a row for each record"),
        (replace(COLUMNS, time="T"), (STATES, ACTIONS), None, "no column 'T'"),
        (
            COLUMNS,
            (STATES, ACTIONS),
            "chanse",
            "the log has no column 'chanse'; it has who, t, room, did, chance",
        ),
        (
            COLUMNS,
            (STATES, ACTIONS),
            "did",
            "propensity column 'did' must hold numbers, not String",
        ),
        (
            COLUMNS,
            (Space(["a", "bb", "c"]), ACTIONS),
            None,
            "state: unknown label 'b'; did you mean 'bb'?",
        ),
        (COLUMNS, (Space("ab"), ACTIONS), None, "next state: unknown label 'c'"),
        (COLUMNS, (STATES, Space("xz")), None, "action: unknown label 'y'"),
        (replace(COLUMNS, terminal=("d",)), (STATES, ACTIONS), None, "terminal: unknown label 'd'"),
    ],
)
def test_what_does_not_fit_is_named(
    columns: Columns, spaces: tuple[Space, Space], propensity: str | None, message: str
) -> None:
    with pytest.raises(PastwiseError, match=message):
        read_episodes(table_of(WALK), columns, *spaces, propensity)


def test_a_long_log_is_read_in_order() -> None:
    """A thousand episodes of ten records, shuffled."""
    rng = np.random.default_rng(0)
    who, t = np.divmod(np.arange(10_000), 10)
    room, did = rng.integers(3, size=10_000), rng.integers(2, size=10_000)
    order = rng.permutation(10_000)
    table = {
        name: column[order]
        for name, column in {"who": who, "t": t, "room": room, "did": did}.items()
    }
    episodes = read_episodes(table, COLUMNS, Space.of_size(3), Space.of_size(2))
    followed = t < 9
    assert np.array_equal(episodes.state, room[followed])
    assert np.array_equal(episodes.action, did[followed])
    assert np.array_equal(episodes.episode, who[followed])
    assert np.array_equal(episodes.step, t[followed])
