"""What is too old goes into a file first, and a replay still has all it needs."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pastwise.errors import LogWarning
from pastwise.logs import count_transitions
from pastwise.service.store.base import Store
from pastwise.service.store.database import DatabaseStore
from pastwise.service.store.retention import Retained, retain
from pastwise.service.store.rows import Insert, Row, SnapshotRow
from tests.helpers.service_rows import POLICY, START, decision, decision_id, event, outcome

DAY = 86_400_000


def at_day(day: int) -> int:
    return START + day * DAY


def retained(store: Store, folder: Path, day: int) -> Retained:
    return store.retain(POLICY, folder, now=at_day(day), retention_days=400, context_days=30)


def seqs(store: Store) -> list[int]:
    return [item.seq for item in store.history(POLICY)]


def fill(store: Store) -> None:
    """Two versions; a snapshot of each, after the number 9 and 20."""
    rows: list[Row] = [
        event(1, "version"),
        decision(2, at=at_day(0), status="learned", context="c"),
        outcome(3, of_seq=2),
        decision(4, at=at_day(1), status="missing", context="c"),
        event(5, "missing", of_seq=4),
        decision(6, at=at_day(2), status="late"),
        decision(7, at=at_day(2), status="learned"),
        outcome(8, of_seq=7),
        decision(9, at=at_day(2), status="open"),
        outcome(10, of_seq=6, status="late"),
        decision(11, at=at_day(3), status="learned", version=2),
        outcome(12, of_seq=11),
        decision(20, at=at_day(300), status="learned", version=2, context="c"),
        outcome(21, of_seq=20),
    ]
    snapshots = [
        SnapshotRow(POLICY, 1, 3, b"h", b"x"),
        SnapshotRow(POLICY, 1, 9, b"h", b"x"),
        SnapshotRow(POLICY, 2, 12, b"h", b"x"),
        SnapshotRow(POLICY, 2, 20, b"h", b"x"),
    ]
    store.submit([*map(Insert, rows), *map(Insert, snapshots)]).result()


def test_nothing_goes_before_its_time(store: Store, tmp_path: Path) -> None:
    fill(store)
    before = list(store.history(POLICY))
    assert retained(store, tmp_path, 20) == Retained(0, 0, ())
    assert list(store.history(POLICY)) == before
    assert store.removals(POLICY) == []


def test_context_goes_first(store: Store, tmp_path: Path) -> None:
    fill(store)
    assert retained(store, tmp_path, 32) == Retained(0, 2, ())
    contexts = [row.context for row in store.decisions(POLICY).items]
    assert contexts == ["c", None, None, None, None, None, None]


def test_old_decisions_that_snapshots_cover_go_into_a_file(store: Store, tmp_path: Path) -> None:
    fill(store)
    expected = {seq: store.decision(decision_id(seq)) for seq in (2, 4, 7, 11)}
    result = retained(store, tmp_path / "archive", 500)

    # The open one stays, and the one whose outcome came after the snapshot.
    assert result.decisions == 4
    assert seqs(store) == [1, 6, 9, 10, 20, 21]
    assert store.outcome_of(decision_id(7)) is None

    # The file has all of them.
    (file,) = result.files
    table = pq.read_table(file)
    assert table["seq"].to_pylist() == [2, 4, 7, 11]
    assert table["next_state"].to_pylist() == ["comfortable", None, "comfortable", "comfortable"]
    assert table["version"].to_pylist() == [1, 1, 1, 2]
    assert table["decided_propensity"].to_pylist() == [
        row.propensity for row in expected.values() if row is not None
    ]

    # The store knows what is gone, and keeps counting.
    (removal,) = store.removals(POLICY)
    assert (removal.seq, removal.before, removal.rows) == (12, at_day(100), 4)
    assert removal.file == file.name
    assert store.last_seq(POLICY) == 21
    assert [row.seq for row in store.snapshots(POLICY, 1)] == [9]
    assert [row.seq for row in store.snapshots(POLICY, 2)] == [12, 20]


def test_numbers_are_not_used_again_after_everything_is_gone(store: Store, tmp_path: Path) -> None:
    rows: list[Row] = [decision(7, status="learned"), outcome(8, of_seq=7)]
    store.submit([*map(Insert, rows), Insert(SnapshotRow(POLICY, 1, 8, b"h", b"x"))]).result()
    assert retained(store, tmp_path, 500).decisions == 1
    assert seqs(store) == []
    assert store.last_seq(POLICY) == 8


def test_a_pass_that_was_interrupted_is_taken_up_again(store: Store, tmp_path: Path) -> None:
    fill(store)
    first = retained(store, tmp_path, 500)
    assert retained(store, tmp_path, 501) == Retained(0, 0, ())
    store.submit([Insert(decision(2, at=at_day(0), status="learned"))]).result()
    second = retained(store, tmp_path, 502)
    assert second.decisions == 1
    assert first.files != second.files
    assert len(list(tmp_path.glob("*.parquet"))) == 2


def test_many_decisions_go_into_several_files(store: Store, tmp_path: Path) -> None:
    rows = [decision(seq, status="missing", context="c") for seq in range(1, 8)]
    store.submit([*map(Insert, rows), Insert(SnapshotRow(POLICY, 1, 7, b"h", b"x"))]).result()
    assert isinstance(store, DatabaseStore)
    result = retain(store, POLICY, tmp_path, now=at_day(500), batch=2, most=3)
    assert (result.decisions, result.contexts) == (7, 7)
    archived = [pq.read_table(file)["seq"].to_pylist() for file in result.files]
    assert archived == [[1, 2, 3], [4, 5, 6], [7]]
    assert [row.seq for row in store.removals(POLICY)] == [3, 6, 7]


def test_an_archive_is_a_log_of_what_was_done(store: Store, tmp_path: Path) -> None:
    rows: list[Row] = [
        decision(1, status="learned"),
        outcome(2, of_seq=1),
        decision(3, status="recorded", mode="shadow", action="vent"),
        outcome(4, of_seq=3, status="recorded"),
        decision(5, status="missing"),
        SnapshotRow(POLICY, 1, 5, b"h", b"x"),
    ]
    store.submit([Insert(row) for row in rows]).result()
    (file,) = retained(store, tmp_path, 500).files
    table = pq.read_table(file)
    assert table["action"].to_pylist() == ["heat", None, "heat"]
    assert table["propensity"].to_pylist() == [0.1 + 0.2, None, 0.1 + 0.2]
    assert table["decided_action"].to_pylist() == ["heat", "vent", "heat"]
    with pytest.warns(LogWarning):
        counts = count_transitions(file, "state", "action", next_state="next_state")
    assert counts.num_records == 1
    assert counts.actions.labels == ("heat",)
