"""Where the service keeps what happened: SQLite in a folder, or PostgreSQL.

``open_store(place)`` opens either; `pastwise.service.store.base.Store` says what a store can do,
and `pastwise.service.store.rows` what it holds.
"""

from __future__ import annotations

from pathlib import Path

from pastwise.service.store.base import Store

SCHEMES = ("postgresql://", "postgres://")


def open_store(place: str | Path, *, create: bool = True, read_only: bool = False) -> Store:
    """Open the store in a folder, or the one of a PostgreSQL database.

    Parameters
    ----------
    place : path or str
        A folder, or an address such as ``postgresql://user@host/database``.
    create : bool
        Whether to make the store where there is none.
    read_only : bool
        Only look: next to a service that runs, for a backup, an export or a replay.

    Raises
    ------
    FileError
        If there is no store and ``create`` is False, if another process uses the folder, if the
        database is damaged, or if it was written by a newer version of pastwise.
    """
    if str(place).startswith(SCHEMES):
        from pastwise.service.store.postgres import PostgresStore

        return PostgresStore(str(place), create=create, read_only=read_only)
    from pastwise.service.store.sqlite import SqliteStore

    return SqliteStore(Path(place), create=create, read_only=read_only)
