"""PostgreSQL: one leader per policy, and a server that goes away."""

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from pastwise.errors import FileError, StoreError
from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from pastwise.service.store.rows import Insert
from tests.helpers.postgres import PostgresServer
from tests.helpers.service_rows import POLICY, decision, decision_id


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url)
    yield opened
    opened.close()


def seqs(store: Store) -> list[int]:
    return [item.seq for item in store.history(POLICY)]


def test_one_process_leads_a_policy(store: Store, url: str) -> None:
    second = open_store(url)
    assert store.lead(POLICY)
    assert store.lead(POLICY)
    assert not second.lead(POLICY)
    assert second.lead("other")
    assert not store.lead("other")

    # The server frees the lock when it notices that the session has ended.
    second.close()
    while not store.lead("other"):
        time.sleep(0.01)


def test_another_schema_is_another_store(store: Store, postgres: PostgresServer) -> None:
    second = open_store(postgres.url())
    assert store.lead(POLICY)
    assert second.lead(POLICY)
    store.submit([Insert(decision(1))]).result()
    assert seqs(second) == []
    second.close()


def test_a_leader_that_lost_its_session_can_write_no_more(store: Store, url: str) -> None:
    second = open_store(url)
    assert store.lead(POLICY)
    store.submit([Insert(decision(1))]).result()

    # The server ends the session that holds the lock.
    with psycopg.connect(url) as administrator:
        administrator.execute(
            "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory'"
            " and pid <> pg_backend_pid()"
        )
    assert second.lead(POLICY)
    with pytest.raises(StoreError):
        store.submit([Insert(decision(2))]).result()

    # The first one may come back, but it does not lead.
    store.resume()
    assert not store.lead(POLICY)
    second.submit([Insert(decision(2))]).result()
    assert seqs(store) == [1, 2]
    second.close()


def test_a_killed_server_loses_nothing_that_was_acknowledged(
    store: Store, postgres: PostgresServer
) -> None:
    # One thread writes without a break, until the server is gone.
    assert store.lead(POLICY)
    acknowledged = 0

    def write() -> None:
        nonlocal acknowledged
        while True:
            futures = [store.submit([Insert(decision(acknowledged + k))]) for k in (1, 2, 3)]
            try:
                for future in futures:
                    future.result()
                    acknowledged += 1
            except StoreError:
                return

    writer = Thread(target=write)
    writer.start()
    while acknowledged < 50:
        time.sleep(0.001)
    postgres.kill()
    writer.join(timeout=30)
    assert not writer.is_alive()

    # Without a server nothing works, and it says so.
    with pytest.raises(StoreError):
        store.resume()
    with pytest.raises(StoreError):
        store.decision(decision_id(1))

    # With the server everything does.
    postgres.start()
    store.resume()
    assert store.lead(POLICY)
    stored = seqs(store)
    assert stored == list(range(1, len(stored) + 1))
    assert acknowledged <= len(stored) <= acknowledged + 3
    store.submit([Insert(decision(len(stored) + 1))]).result()
    assert len(seqs(store)) == len(stored) + 1


FILL_THE_DISK = """
create function fill() returns trigger language plpgsql as $$
begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$;
create trigger fill before insert on decision execute function fill()
"""


def test_a_full_disk_of_the_server_is_said_to_be_full(store: Store, url: str) -> None:
    with psycopg.connect(url) as administrator:
        administrator.execute(FILL_THE_DISK)
    with pytest.raises(StoreError) as caught:
        store.submit([Insert(decision(1))]).result()
    assert caught.value.full
    with psycopg.connect(url) as administrator:
        administrator.execute("drop trigger fill on decision")
    store.resume()
    store.submit([Insert(decision(1))]).result()


def test_a_reader_does_not_change_an_older_schema(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pastwise.service.store.postgres.NEWEST", 99)
    with pytest.raises(FileError, match="start the service once"):
        open_store(url, read_only=True)


def test_readers_find_a_server_that_was_started_anew(
    store: Store, postgres: PostgresServer
) -> None:
    store.submit([Insert(decision(1))]).result()
    assert seqs(store) == [1]
    postgres.stop()
    postgres.start()
    assert seqs(store) == [1]


def test_text_that_postgres_cannot_hold_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="NUL"):
        store.submit([Insert(decision(1, state="\x00"))]).result()
    store.resume()
    store.submit([Insert(decision(1))]).result()


def test_a_backup_is_left_to_the_tools_of_postgres(store: Store, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"pg_dump .*copy\.dump"):
        store.backup(tmp_path / "copy.dump")


def test_a_newer_schema_is_refused(store: Store, url: str) -> None:
    with psycopg.connect(url) as administrator:
        administrator.execute("update schema_version set version = 99")
    with pytest.raises(FileError, match="newer version of pastwise"):
        open_store(url)


def test_a_server_that_is_not_there_is_named_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the database shop on") as caught:
        open_store(f"postgresql://me:secret@/shop?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_an_address_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(FileError, match="address of the database"):
        open_store("postgresql://host/base?colour=green")
