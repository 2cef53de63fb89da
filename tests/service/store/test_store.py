"""What is written can be looked up, listed and summed up, in either database."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex

import pytest

from pastwise.errors import FileError, ParameterError, StoreError
from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from pastwise.service.store.rows import (
    AuditRow,
    CloseDecision,
    DayRow,
    DayStateRow,
    DeleteSnapshots,
    DeleteToken,
    Insert,
    PolicyRow,
    Replace,
    SnapshotRow,
    TokenRow,
    UseToken,
    VersionRow,
    Write,
)
from tests.helpers.service_rows import POLICY, START, decision, decision_id, event, outcome

DAY = 86_400_000
AWKWARD = "žluťoučký\n'; drop table decision; -- 😀 % ? %s {} \\"


def write(store: Store, *writes: Write) -> None:
    store.submit(writes).result(timeout=30)


def inserts(rows: Sequence[object]) -> list[Write]:
    return [Insert(row) for row in rows]  # type: ignore[arg-type]


def test_a_decision_comes_back_as_it_was_to_the_last_bit(store: Store) -> None:
    row = decision(
        1,
        state=AWKWARD,
        features='{"t": 1}',
        allowed='["a"]',
        propensity=math.nextafter(0.1, 1),
        floor=5e-324,
        episode=AWKWARD,
        context="{}",
        key="k",
        digest=bytes(range(256)),
        at=2**53 + 1,
        taken=AWKWARD,
        taken_by="operator",
    )
    write(store, Insert(row))
    assert store.decision(row.id) == row
    assert store.decision("unknown") is None


def test_an_outcome_is_found_by_its_decision(store: Store) -> None:
    row = outcome(2, of_seq=1, reward=-1e-300, next_state=AWKWARD, reported_at=START)
    write(store, Insert(decision(1)), Insert(row))
    assert store.outcome_of(decision_id(1)) == row
    assert store.outcome_of("unknown") is None


def test_an_idempotency_key_belongs_to_a_policy_and_a_token(store: Store) -> None:
    rows = [
        decision(1, key="k", token="t1"),
        decision(2, key="k", token="t2"),
        decision(1, policy="other", key="k", token="t1"),
        decision(3),
        decision(4),
    ]
    write(store, *inserts(rows))
    assert store.decision_by_key(POLICY, "t1", "k") == rows[0]
    assert store.decision_by_key(POLICY, "t2", "k") == rows[1]
    assert store.decision_by_key("other", "t1", "k") == rows[2]
    assert store.decision_by_key("other", "t2", "k") is None


def test_a_closed_decision_keeps_who_took_another_action(store: Store) -> None:
    write(store, Insert(decision(1)), Insert(decision(2)))
    write(store, CloseDecision(POLICY, 1, "open", "idle", "operator"))
    write(store, Insert(outcome(3, of_seq=1)), CloseDecision(POLICY, 1, "learned"))
    expected = decision(1, status="learned", taken="idle", taken_by="operator")
    assert store.decision(decision_id(1)) == expected
    assert store.decision(decision_id(2)) == decision(2)


def test_a_decision_may_be_made_and_closed_in_one_transaction(store: Store) -> None:
    write(store, CloseDecision(POLICY, 1, "missing"), Insert(decision(1)))
    closed = store.decision(decision_id(1))
    assert closed is not None
    assert closed.status == "missing"


def test_due_are_those_not_closed_whose_window_has_closed(store: Store) -> None:
    rows = [
        decision(1, due=START + 5),
        decision(2, due=START + 3, status="waiting"),
        decision(3, due=START + 1, status="learned"),
        decision(4, due=START + 1, status="missing"),
        decision(5, due=START + 10),
        decision(6, due=START + 4, policy="other"),
    ]
    write(store, *inserts(rows))
    assert store.due(POLICY, START + 10, 10) == [rows[1], rows[0]]
    assert store.due(POLICY, START + 10, 1) == [rows[1]]
    assert store.open_decisions(POLICY) == 3


def test_history_goes_by_number_not_by_the_clock(store: Store) -> None:
    write(
        store,
        Insert(event(1, "version")),
        Insert(decision(2, at=START + 9)),
        Insert(decision(3, at=START - 9, version=2)),
        Insert(outcome(5, of_seq=2, at=START - 99)),
        Insert(event(4, "taken", of_seq=3)),
        CloseDecision(POLICY, 3, "open", "idle", "operator"),
        Insert(outcome(6, of_seq=3, reward=0.5)),
        Insert(event(7, "learn", of_seq=3)),
        Insert(decision(8, policy="other")),
    )
    items = list(store.history(POLICY))
    assert [item.seq for item in items] == [1, 2, 3, 4, 5, 6, 7]
    kinds = ["version", "decision", "decision", "taken", "outcome", "outcome", "learn"]
    assert [item.kind for item in items] == kinds
    assert [item.version for item in items] == [None, 1, 2, 2, 1, 2, 2]

    # Outcomes and events come with what a replay needs.
    assert items[1].propensity == 0.1 + 0.2
    assert (items[4].state, items[4].action, items[4].next_state) == ("cool", "heat", "comfortable")
    assert (items[5].action, items[5].reward) == ("idle", 0.5)
    assert (items[6].action, items[6].next_state, items[6].status) == (
        "idle",
        "comfortable",
        "learned",
    )
    assert (items[0].state, items[0].decision, items[0].body) == (None, None, "{}")

    # Parts of it.
    assert [item.seq for item in store.history(POLICY, 2, 5)] == [3, 4, 5]
    assert [item.seq for item in store.history(POLICY, version=1)] == [1, 2, 5]
    assert [item.seq for item in store.history(POLICY, version=2)] == [1, 3, 4, 6, 7]
    assert [item.seq for item in store.history("other")] == [8]
    assert list(store.history("unknown")) == []


def test_history_reads_pages_without_gaps(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(store), "page", 3)
    seqs = [1, 2, 3, 4, 9, 10, 20, 21]
    write(store, *inserts([decision(seq) for seq in seqs]))
    assert [item.seq for item in store.history(POLICY)] == seqs
    assert [item.seq for item in store.history(POLICY, 2, 20)] == [3, 4, 9, 10, 20]


def test_last_seq_counts_everything(store: Store) -> None:
    assert store.last_seq(POLICY) == 0
    write(store, Insert(decision(1)))
    assert store.last_seq(POLICY) == 1
    write(store, Insert(outcome(2, of_seq=1)))
    assert store.last_seq(POLICY) == 2
    write(store, Insert(event(3, "alarm")))
    assert store.last_seq(POLICY) == 3
    assert store.last_seq("other") == 0


def test_policies_and_versions(store: Store) -> None:
    zebra = PolicyRow("zebra", "{}", 1, START)
    ant = PolicyRow("Ant", "{}", 1, START)
    one = VersionRow("zebra", 1, "00ff", b"\x00artefact", b"seed", "note", "[]", "me", START)
    two = one._replace(version=2)
    write(store, Insert(zebra), Insert(ant), Insert(two), Insert(one))
    assert store.policies() == [ant, zebra]
    assert store.versions("zebra") == [one, two]
    assert store.version("zebra", 2) == two
    assert store.version("zebra", 3) is None

    changed = zebra._replace(settings='{"mode": "live"}', etag=2)
    write(store, Replace(changed))
    assert store.policy("zebra") == changed
    assert store.policy("bee") is None


def test_snapshots_of_a_version(store: Store) -> None:
    rows = [
        SnapshotRow(POLICY, version, seq, b"h", b"x") for version, seq in ((1, 5), (1, 9), (2, 9))
    ]
    write(store, *inserts(rows))
    assert store.snapshots(POLICY, 1) == rows[:2]
    assert store.newest_snapshot(POLICY, 1) == rows[1]
    assert store.newest_snapshot(POLICY, 3) is None
    write(store, DeleteSnapshots(POLICY, 1, 9), Replace(rows[2]._replace(artefact=b"y")))
    assert store.snapshots(POLICY, 1) == rows[1:2]
    assert store.snapshots(POLICY, 2) == [rows[2]._replace(artefact=b"y")]


def test_tokens(store: Store) -> None:
    one = TokenRow("a", b"\x00" * 32, "loop", '["decide"]', None, START, None, None, 0)
    two = TokenRow("b", b"\x01" * 32, "desk", '["read"]', '["zebra"]', START + 1, None, START, 1)
    write(store, Insert(two), Insert(one))
    assert store.tokens() == [one, two]
    write(store, Replace(one._replace(used=START)))
    assert store.token_by_hash(b"\x00" * 32) == one._replace(used=START)
    write(store, UseToken(77, "a"))
    assert store.tokens()[0].used == 77
    write(store, DeleteToken("a"))
    write(store, UseToken(78, "a"))
    assert store.token_by_hash(b"\x00" * 32) is None


def test_audit_is_numbered_and_read_from_the_newest(store: Store) -> None:
    rows = [AuditRow(0, START, "me", "mode", f"policy {k}", None, "live") for k in range(5)]
    write(store, *inserts(rows))
    first = store.audit(limit=3)
    assert [row.subject for row in first.items] == ["policy 4", "policy 3", "policy 2"]
    rest = store.audit(limit=3, cursor=first.next)
    assert [row.subject for row in rest.items] == ["policy 1", "policy 0"]
    assert rest.next is None


def test_decisions_are_listed_by_pages_and_conditions(store: Store) -> None:
    rows = [
        decision(1, status="missing"),
        decision(2, status="learned", state="hot", action="vent"),
        decision(3, status="missing", state="hot"),
        decision(4, policy="other"),
        decision(5, status="recorded"),
        decision(6, status="missing"),
    ]
    write(store, *inserts(rows))

    def listed(**conditions: object) -> list[int]:
        found: list[int] = []
        cursor = None
        while True:
            page = store.decisions(POLICY, cursor=cursor, limit=2, **conditions)  # type: ignore[arg-type]
            found.extend(row.seq for row in page.items)
            cursor = page.next
            if cursor is None:
                return found

    assert listed() == [6, 5, 3, 2, 1]
    assert listed(status="missing") == [6, 3, 1]
    assert listed(status="learned") == [2]
    assert listed(state="hot") == [3, 2]
    assert listed(action="vent") == [2]
    assert listed(since=START + 2000, until=START + 5000) == [3, 2]
    assert listed(state="hot", status="missing") == [3]
    assert store.decisions(POLICY, limit=1).items == [rows[5]]


@pytest.mark.parametrize("cursor", ["x", "-1", "9" * 30, ""])
def test_a_cursor_of_ones_own_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ParameterError, match="cursor"):
        store.decisions(POLICY, cursor=cursor)


def test_days_count_decisions_by_how_they_ended(store: Store) -> None:
    midnight = START // DAY * DAY
    statuses = [
        "learned",
        "recorded",
        "late",
        "missing",
        "cancelled",
        "open",
        "waiting",
        "new-label",
    ]
    rows = [
        decision(k + 1, at=midnight + DAY - 1, status=status) for k, status in enumerate(statuses)
    ]
    rows.append(decision(20, at=midnight + DAY, action="idle", status="learned"))
    write(store, *inserts(rows))
    write(
        store,
        Insert(outcome(21, of_seq=1, next_state="hot")),
        Insert(outcome(22, of_seq=2, next_state="hot", status="recorded")),
        Insert(outcome(23, of_seq=3, next_state="hot", status="late")),
        Insert(outcome(24, of_seq=20, next_state="cold")),
        Insert(outcome(25, of_seq=7, next_state=None, reward=1.0)),
    )
    assert store.daily(POLICY, 0, midnight + 2 * DAY) == [
        DayRow(midnight, "heat", 8, in_time=4, late=1, missing=1, cancelled=1, open=1),
        DayRow(midnight + DAY, "idle", 1, in_time=1, late=0, missing=0, cancelled=0, open=0),
    ]
    assert store.daily_states(POLICY, 0, midnight + 2 * DAY) == [
        DayStateRow(midnight, "hot", 2),
        DayStateRow(midnight + DAY, "cold", 1),
    ]
    assert store.daily(POLICY, 0, midnight + DAY - 1) == []


@pytest.mark.parametrize(
    "second",
    [
        decision(1, id="another"),
        decision(9, id=decision_id(1)),
        decision(9, key="k"),
    ],
    ids=["number", "id", "idempotency key"],
)
def test_what_must_be_unique_is(store: Store, second: object) -> None:
    write(store, Insert(decision(1, key="k")))
    with pytest.raises(StoreError):
        write(store, *inserts([second]))
    store.resume()
    assert [item.seq for item in store.history(POLICY)] == [1]


def test_a_failed_transaction_leaves_nothing_and_stops_later_writes(store: Store) -> None:
    write(store, Insert(decision(1)))
    with pytest.raises(StoreError):
        write(store, Insert(decision(2)), Insert(decision(1)))
    with pytest.raises(StoreError):
        write(store, Insert(decision(3)))
    assert [item.seq for item in store.history(POLICY)] == [1]

    store.resume()
    assert store.lead(POLICY)
    write(store, Insert(decision(2)))
    assert [item.seq for item in store.history(POLICY)] == [1, 2]


def test_a_value_that_is_no_text_stops_writing_until_it_is_resumed(store: Store) -> None:
    with pytest.raises(StoreError, match="surrogates"):
        write(store, Insert(decision(1, state="\ud800")))
    store.resume()
    write(store, Insert(decision(1)))


def test_writes_of_many_threads_are_all_stored(store: Store) -> None:
    def write_some(thread: int) -> None:
        futures = [store.submit([Insert(decision(100 * thread + k))]) for k in range(1, 51)]
        for future in futures:
            future.result(timeout=30)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write_some, range(4)))
    expected = [100 * thread + k for thread in range(4) for k in range(1, 51)]
    assert [item.seq for item in store.history(POLICY)] == expected
    assert store.waiting() == 0


def test_commits_are_reported_with_their_size(store: Store) -> None:
    commits: list[tuple[int, float]] = []
    store.on_commit = lambda writes, seconds: commits.append((writes, seconds))
    before = store.last_commit()
    write(store, Insert(decision(1)), Insert(decision(2)))
    assert [writes for writes, _ in commits] == [2]
    assert store.last_commit() >= before + commits[0][1]


def test_what_was_written_is_there_after_opening_again(place: str) -> None:
    first = open_store(place)
    pending = [first.submit([Insert(decision(seq))]) for seq in range(1, 200)]
    first.close()
    assert all(future.result() is None for future in pending)
    with pytest.raises(StoreError, match="closed"):
        first.submit([Insert(decision(200))]).result()
    with pytest.raises(StoreError, match="closed"):
        first.decision(decision_id(1))

    second = open_store(place, create=False)
    assert [item.seq for item in second.history(POLICY)] == list(range(1, 200))
    second.close()


def test_a_reader_looks_while_another_writes(store: Store, place: str) -> None:
    reader = open_store(place, read_only=True)
    write(store, Insert(decision(1)))
    assert reader.decision(decision_id(1)) == decision(1)
    assert not reader.lead(POLICY)
    with pytest.raises(StoreError, match="reading only"):
        reader.submit([Insert(decision(2))])
    reader.close()
    write(store, Insert(decision(2)))


def test_no_store_is_made_where_none_is_wanted(place: str) -> None:
    with pytest.raises(FileError, match="has no store of the service"):
        open_store(place, create=False)


def test_sizes_grow(store: Store) -> None:
    before = sum(store.sizes().values())
    contexts = [token_hex(2000) for _ in range(300)]
    write(store, *inserts([decision(k + 1, context=text) for k, text in enumerate(contexts)]))
    assert sum(store.sizes().values()) >= before + 500_000
