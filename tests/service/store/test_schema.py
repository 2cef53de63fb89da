"""Stores of every older schema become stores of today's."""

import sqlite3
from pathlib import Path

import pytest

from pastwise.errors import FileError
from pastwise.service.store import open_store
from pastwise.service.store.rows import CloseDecision, Insert
from pastwise.service.store.schema import MIGRATIONS, NEWEST, POSTGRES, SQLITE, migrate
from pastwise.service.store.sqlite import APPLICATION
from tests.helpers.service_rows import POLICY, decision, decision_id

DUMPS = Path(__file__).parent / "schemas"


def restore(version: int, folder: Path) -> None:
    """Make the database of a stored dump."""
    folder.mkdir()
    database = sqlite3.connect(folder / "service.sqlite")
    database.executescript((DUMPS / f"{version}.sql").read_text())
    database.execute(f"pragma application_id = {APPLICATION}")
    database.execute(f"pragma user_version = {version}")
    database.commit()
    database.close()


def shape(path: Path) -> list[tuple[str, str]]:
    """Names and columns of all tables and indexes."""
    database = sqlite3.connect(path)
    entries = database.execute("select name, type from sqlite_schema order by name").fetchall()
    result = []
    for name, kind in entries:
        columns = database.execute(f"pragma {kind}_xinfo('{name}')").fetchall()
        result.append((name, str(columns)))
    database.close()
    return result


@pytest.mark.parametrize("version", range(1, NEWEST + 1))
def test_a_stored_schema_is_brought_forward(version: int, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    restore(version, folder)
    store = open_store(folder)

    # What was in it is still there.
    assert [row.policy for row in store.policies()] == [POLICY]
    assert [item.kind for item in store.history(POLICY)] == ["version", "decision", "outcome"]
    closed = store.decision(decision_id(2))
    assert closed is not None
    assert (closed.state, closed.propensity, closed.status) == ("cool", 0.1 + 0.2, "learned")

    # It can be written.
    store.submit([Insert(decision(4)), CloseDecision(POLICY, 4, "missing")]).result()
    assert store.last_seq(POLICY) == 4
    store.close()

    # It looks as if it were new.
    open_store(tmp_path / "new").close()
    assert shape(folder / "service.sqlite") == shape(tmp_path / "new" / "service.sqlite")


def test_every_schema_has_a_dump() -> None:
    assert sorted(path.name for path in DUMPS.iterdir()) == [
        f"{version}.sql" for version in range(1, len(MIGRATIONS) + 1)
    ]


def test_a_reader_does_not_change_an_older_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "old"
    restore(1, folder)
    monkeypatch.setattr("pastwise.service.store.sqlite.NEWEST", NEWEST + 1)
    with pytest.raises(FileError, match="start the service once"):
        open_store(folder, read_only=True)


def test_only_migrations_that_are_missing_run() -> None:
    migrations = ("create table a (x {integer}); create table b (x text);", "drop table a;")
    statements: list[str] = []
    migrate(statements.append, 1, SQLITE, migrations)
    assert statements == ["drop table a"]
    migrate(statements.append, 0, POSTGRES, migrations[:1])
    assert statements[1:] == ["create table a (x bigint)", " create table b (x text)"]
