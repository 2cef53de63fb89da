"""PostgreSQL, where more than one machine must read, or a database administrator makes the backups.

One process leads a policy: it holds an advisory lock of the session that writes. The lock and the
right to commit end together with that session, so two processes never write for one policy. Should
the connection break while a transaction is committed, nobody knows whether it was; the writer then
reports an error, and whoever leads next reads from the database how far it came.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from pastwise.errors import FileError, MissingDependencyError, StoreError
from pastwise.service.store.database import DatabaseStore
from pastwise.service.store.rows import Write
from pastwise.service.store.schema import NEWEST, POSTGRES, migrate
from pastwise.service.store.statements import TABLES, statements

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.types.numeric import Int8Dumper
except ImportError:
    raise MissingDependencyError(
        "PostgreSQL needs psycopg; run: pip install 'pastwise[postgres]'"
    ) from None

Connection = psycopg.Connection[tuple[Any, ...]]

DEFAULTS: dict[str, Any] = {
    "application_name": "pastwise",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A server that does not answer counts as lost after about 20 s. The address may set others."""

SETTINGS = ("plan_cache_mode = force_custom_plan", "jit = off")
"""A plan that was made while a table was small would read all of it when it has grown, too. So each
statement is planned when it runs, which takes less time than it takes to run."""

WRITING = "synchronous_commit = on"
READING = "default_transaction_read_only = on"

LEAD = "select pg_try_advisory_lock(hashtextextended(current_schema() || '/' || %s, 0))"

LEADER = """
select a.application_name from pg_locks l join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.granted and l.database = (
    select oid from pg_database where datname = current_database()
) and (l.classid::bigint << 32 | l.objid::bigint)
    = hashtextextended(current_schema() || '/' || ?, 0)
"""
"""A process that has an address gives it as its name."""

ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtextextended(current_schema() || ' schema', 0))"


class PostgresStore(DatabaseStore):
    """A store in a PostgreSQL database; `Store` describes the methods.

    Parameters
    ----------
    url : str
        Address of the database, such as ``postgresql://user@host/database``.
    create : bool
        Whether to make the tables where there are none.
    read_only : bool
        Only look.
    """

    reads_are_quick = False

    def __init__(self, url: str, *, create: bool = True, read_only: bool = False) -> None:
        try:
            self._address = DEFAULTS | conninfo_to_dict(url)
        except psycopg.Error as error:
            raise FileError(f"the address of the database cannot be read: {error}") from None
        host = self._address.get("host", "localhost")
        self._name = f"the database {self._address.get('dbname', '')} on {host}"
        self._idle: deque[Connection] = deque()
        self._led: set[str] = set()
        self._is_closed = False
        try:
            self._connection = self._open(create=create, read_only=read_only)
        except psycopg.Error as error:
            raise self._error(error) from error
        super().__init__(read_only=read_only)

    # Opening

    def _connect(self, *, read_only: bool) -> Connection:
        connection = psycopg.connect(**self._address, autocommit=True, prepare_threshold=0)
        # One type for all integers, or there would be several plans of each statement.
        connection.adapters.register_dumper(int, Int8Dumper)
        for setting in (*SETTINGS, READING if read_only else WRITING):
            connection.execute(f"set {setting}")
        return connection

    def _open(self, *, create: bool, read_only: bool) -> Connection:
        """The writing connection to a database of today's schema."""
        connection = self._connect(read_only=read_only)
        try:
            with connection.transaction():
                self._bring_forward(connection, create=create, read_only=read_only)
        except BaseException:
            connection.close()
            raise
        return connection

    def _bring_forward(self, connection: Connection, *, create: bool, read_only: bool) -> None:
        if not read_only:
            connection.execute(ONE_AT_A_TIME)
        version = _schema_version(connection)
        if version > NEWEST:
            raise FileError(
                f"{self._name} was written by a newer version of pastwise (schema {version}, this"
                f" version knows {NEWEST}); update pastwise"
            )
        if version == 0 and (read_only or not create):
            raise FileError(f"{self._name} has no store of the service")
        if version == NEWEST:
            return
        if read_only:
            raise FileError(
                f"{self._name} has schema {version}; start the service once, which brings it"
                f" forward to {NEWEST}"
            )
        migrate(connection.execute, version, POSTGRES)
        connection.execute("create table if not exists schema_version (version bigint not null)")
        connection.execute("delete from schema_version")
        connection.execute("insert into schema_version values (%s)", (NEWEST,))

    # Reading and writing

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """All rows of a query as tuples; a connection that was lost is replaced once."""
        try:
            return self._rows(_with_marks(sql), parameters)
        except psycopg.OperationalError:
            pass
        except psycopg.Error as error:
            raise self._error(error) from error

        # The server was started anew: all connections are lost.
        self._close_idle()
        try:
            return self._rows(_with_marks(sql), parameters)
        except psycopg.Error as error:
            raise self._error(error) from error

    def _rows(self, query: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            connection = self._idle.pop()
        except IndexError:
            if self._is_closed:
                raise StoreError("the store is closed") from None
            connection = self._connect(read_only=True)
        try:
            return connection.execute(query, parameters, binary=True).fetchall()
        finally:
            if connection.closed or self._is_closed:
                connection.close()
            else:
                self._idle.append(connection)

    def _close_idle(self) -> None:
        while self._idle:
            with suppress(IndexError):  # another thread may have taken the last one
                self._idle.pop().close()

    def _commit(self, writes: list[Write]) -> None:
        connection = self._connection
        try:
            # All statements travel together; leaving the pipeline waits for the commit.
            with connection.pipeline(), connection.transaction(), connection.cursor() as cursor:
                for statement, parameters in statements(writes):
                    cursor.executemany(_with_marks(statement), parameters)
        except psycopg.Error as error:
            raise self._error(error) from error

    def _reconnect(self) -> None:
        self._led.clear()
        with suppress(psycopg.Error):
            self._connection.close()
        try:
            self._connection = self._connect(read_only=False)
            self._connection.execute("update schema_version set version = version")
        except psycopg.Error as error:
            raise self._error(error) from error

    def _error(self, error: psycopg.Error) -> StoreError:
        if isinstance(error, psycopg.errors.DiskFull):
            return StoreError(f"no space left on the disk of {self._name}", full=True)
        return StoreError(f"{self._name}: {str(error).strip()}")

    # Care

    def lead(self, policy: str) -> bool:
        """Whether this process alone may write for a policy, by a lock of its writing session."""
        if not self._threads:
            return False
        return self._writer.call(lambda: self._lead(policy)).result()

    def _lead(self, policy: str) -> bool:
        try:
            if policy in self._led:
                self._connection.execute("select 1")
                return True
            is_leader = bool(self._connection.execute(LEAD, (policy,)).fetchall()[0][0])
        except psycopg.Error as error:
            raise self._error(error) from error
        if is_leader:
            self._led.add(policy)
        return is_leader

    def leader(self, policy: str) -> str | None:
        """Address of the process that leads a policy: the name of the session with its lock."""
        for (name,) in self.rows(LEADER, policy):
            if "://" in name:
                return str(name)
        return None

    def backup(self, target: str | Path) -> None:
        """Refuse: PostgreSQL has its own tools."""
        raise FileError(
            f"{self._name} has its own tools for backups; run: pg_dump --format=custom"
            f" --file={target} {self._address.get('dbname', '')}"
        )

    def sizes(self) -> dict[str, int]:
        """Bytes of each table with its indexes."""
        tables = sorted(TABLES.values())
        sizes = ", ".join(f"pg_total_relation_size('{table}')" for table in tables)
        (row,) = self.rows(f"select {sizes}")
        return dict(zip(tables, row, strict=True))

    def close(self) -> None:
        """Commit what waits and close all connections."""
        super().close()
        self._is_closed = True
        self._close_idle()
        self._connection.close()


@lru_cache(maxsize=500)
def _with_marks(sql: str) -> str:
    """SQL with the marks of parameters that psycopg knows."""
    return sql.replace("?", "%s")


def _schema_version(connection: Connection) -> int:
    found = connection.execute("select to_regclass('schema_version')").fetchall()
    if found[0][0] is None:
        return 0
    rows = connection.execute("select version from schema_version").fetchall()
    return int(rows[0][0])
