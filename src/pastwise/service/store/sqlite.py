"""SQLite: one file in a folder, for one process at a time.

The write-ahead log is on disk before a commit returns (``synchronous=FULL``), so what was answered
survives a power cut. A log whose end is damaged is read up to there: what is stored is always a
prefix of what was committed. A damaged database is refused when it is opened.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from pastwise._files import replacing
from pastwise.errors import FileError, StoreError
from pastwise.service.store.database import DatabaseStore
from pastwise.service.store.locking import FolderLock
from pastwise.service.store.rows import Write
from pastwise.service.store.schema import NEWEST, SQLITE, migrate
from pastwise.service.store.statements import statements

FILE = "service.sqlite"

APPLICATION = 0x70737477
"""Marks the file as one of the service ("pstw")."""

MEBIBYTE = 2**20

WRITING = (
    "journal_mode = wal",
    "synchronous = full",
    "wal_autocheckpoint = 4000",
    f"journal_size_limit = {64 * MEBIBYTE}",
    "secure_delete = fast",
)
"""The log is taken over into the database whenever it has 4000 pages (16 MiB): less often than by
default, because pages that many commits change are then written once."""

READING = ("query_only = on",)


class SqliteStore(DatabaseStore):
    """A store in a folder; `Store` describes the methods.

    Parameters
    ----------
    folder : path
        Where the database is.
    create : bool
        Whether to make folder and database where there are none.
    read_only : bool
        Only look, next to a process that writes.
    checked_bytes : int
        Databases up to this size are checked whenever they are opened, larger ones only after a
        stop that was not clean. The default takes about half a second.
    """

    reads_are_quick = True

    def __init__(
        self,
        folder: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        checked_bytes: int = 256 * MEBIBYTE,
    ) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._idle: deque[sqlite3.Connection] = deque()
        self._is_closed = False
        self._locks: list[FolderLock] = []
        self._prepare_folder(create=create and not read_only)
        if not read_only:
            self._locks.append(FolderLock(folder))
        try:
            self._connection = self._open(checked_bytes, read_only=read_only)
        except sqlite3.Error as error:
            self._release()
            raise self._cannot_open(error) from error
        except FileError:
            self._release()
            raise
        super().__init__(read_only=read_only)

    # Opening

    def _prepare_folder(self, *, create: bool) -> None:
        if create:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise FileError(f"{self.folder} cannot be made: {error.strerror}") from None
        elif not self.path.is_file():
            raise FileError(f"{self.folder} has no store of the service ({FILE} is missing)")

    def _open(self, checked_bytes: int, *, read_only: bool) -> sqlite3.Connection:
        """The writing connection to a database that is sound and of today's schema."""
        # SQLite removes its log at a clean stop.
        log = self._log()
        was_clean = not (log.exists() and log.stat().st_size > 0)
        is_small = not self.path.exists() or self.path.stat().st_size <= checked_bytes
        connection = self._connect(read_only=read_only)
        try:
            if not read_only and (is_small or not was_clean):
                self._check(connection)
            self._bring_forward(connection, read_only=read_only)
            if not read_only:
                # Damage of the log can then only concern what is written from now on.
                connection.execute("pragma wal_checkpoint(truncate)")
        except BaseException:
            connection.close()
            raise
        return connection

    def _cannot_open(self, error: sqlite3.Error) -> StoreError | FileError:
        problem = self._error(error)
        if problem.full:
            return problem
        return FileError(f"{self.path} cannot be opened ({error}); is it damaged? Restore a backup")

    def _check(self, connection: sqlite3.Connection) -> None:
        (finding,) = connection.execute("pragma quick_check(1)").fetchone()
        if finding != "ok":
            detail = " ".join(finding.split())
            raise FileError(f"{self.path} is damaged ({detail}); restore a backup")

    def _bring_forward(self, connection: sqlite3.Connection, *, read_only: bool) -> None:
        (application,) = connection.execute("pragma application_id").fetchone()
        (version,) = connection.execute("pragma user_version").fetchone()
        (tables,) = connection.execute("select count(*) from sqlite_schema").fetchone()
        if application != APPLICATION and tables > 0:
            raise FileError(f"{self.path} is a database of another program")
        if version > NEWEST:
            raise FileError(
                f"{self.path} was written by a newer version of pastwise (schema {version}, this"
                f" version knows {NEWEST}); update pastwise"
            )
        if version == NEWEST:
            return
        if read_only:
            raise FileError(
                f"{self.path} has schema {version}; start the service once, which brings it"
                f" forward to {NEWEST}"
            )
        connection.execute("begin immediate")
        migrate(connection.execute, version, SQLITE)
        connection.execute(f"pragma application_id = {APPLICATION}")
        connection.execute(f"pragma user_version = {NEWEST}")
        connection.execute("commit")

    def _connect(self, *, read_only: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=10.0, isolation_level=None, check_same_thread=False
        )
        try:
            for pragma in READING if read_only else WRITING:
                connection.execute(f"pragma {pragma}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    # Reading and writing

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """All rows of a query as tuples."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect_reader()
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._error(error) from error
        finally:
            if self._is_closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _connect_reader(self) -> sqlite3.Connection:
        if self._is_closed:
            raise StoreError("the store is closed")
        try:
            return self._connect(read_only=True)
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _commit(self, writes: list[Write]) -> None:
        connection = self._connection
        try:
            connection.execute("begin immediate")
            for statement, parameters in statements(writes):
                connection.executemany(statement, parameters)
            connection.execute("commit")
        except BaseException as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            if isinstance(error, sqlite3.Error):
                raise self._error(error) from error
            raise

    def _reconnect(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()
        try:
            self._connection = self._connect(read_only=False)
            self._connection.execute("begin immediate")
            self._connection.execute(f"pragma user_version = {NEWEST}")
            self._connection.execute("commit")
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> StoreError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        full = code == sqlite3.SQLITE_FULL
        if code == sqlite3.SQLITE_IOERR:
            full = shutil.disk_usage(self.folder).free < MEBIBYTE
        if full:
            return StoreError(f"no space left on the disk of {self.folder}", full=True)
        return StoreError(f"{self.path}: {error}")

    # Care

    def lead(self, policy: str) -> bool:
        """Whether this process alone may write: it has locked the folder."""
        return bool(self._locks)

    def leader(self, policy: str) -> str | None:
        """Nobody else: the folder is locked."""
        return None

    def backup(self, target: str | Path) -> None:
        """Write a consistent copy while the service runs."""
        path = Path(target)
        if path.exists():
            raise FileError(f"{path} exists; name a new file for the backup")
        with replacing(path) as unfinished:
            source = self._connect(read_only=True)
            copy = sqlite3.connect(unfinished, isolation_level=None)
            try:
                source.backup(copy)
                copy.execute("pragma journal_mode = delete")
                self._check(copy)
            except sqlite3.Error as error:
                raise FileError(f"the backup {path} cannot be written: {error}") from error
            finally:
                copy.close()
                source.close()

    def sizes(self) -> dict[str, int]:
        """Bytes of the database and of its log."""
        files = (self.path, self._log())
        return {file.name: file.stat().st_size for file in files if file.exists()}

    def close(self) -> None:
        """Commit what waits, take the log over into the database and close it."""
        super().close()
        self._is_closed = True
        while self._idle:
            with suppress(IndexError):  # another thread may have taken the last one
                self._idle.pop().close()

        # Somebody who makes a backup does not hold up the end of the service.
        with suppress(sqlite3.Error):
            self._connection.execute("pragma busy_timeout = 1000")
            self._connection.execute("pragma wal_checkpoint(truncate)")
        self._connection.close()
        self._release()

    def _release(self) -> None:
        while self._locks:
            self._locks.pop().release()

    def _log(self) -> Path:
        return self.path.with_name(f"{FILE}-wal")
