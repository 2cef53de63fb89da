"""What both stores have in common: one writer thread, and refusal to write where only looking."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from pastwise.errors import StoreError
from pastwise.service.store.export import export_parquet
from pastwise.service.store.reading import Reads
from pastwise.service.store.retention import Retained, retain
from pastwise.service.store.rows import Write
from pastwise.service.store.writer import Writer


class DatabaseStore(Reads):
    """A store in a database; `Store` describes the methods.

    Parameters
    ----------
    read_only : bool
        Whether to refuse all writes.
    """

    def __init__(self, *, read_only: bool) -> None:
        self._threads = [] if read_only else [Writer(self._commit)]

    @abstractmethod
    def _commit(self, writes: list[Write]) -> None:
        """Commit writes in one transaction; runs on the writer thread."""

    @abstractmethod
    def _reconnect(self) -> None:
        """Prepare for writing after an error, and try it; runs on the writer thread."""

    @property
    def _writer(self) -> Writer:
        if not self._threads:
            raise StoreError("the store was opened for reading only")
        return self._threads[0]

    @property
    def on_commit(self) -> Callable[[int, float], None] | None:
        """Called after each commit with the number of writes and the seconds it took."""
        return self._writer.on_commit

    @on_commit.setter
    def on_commit(self, called: Callable[[int, float], None] | None) -> None:
        self._writer.on_commit = called

    def submit(self, writes: Sequence[Write]) -> Future[None]:
        """Commit writes, all or none, after everything that was submitted before."""
        return self._writer.submit(writes)

    def resume(self) -> None:
        """Take writes again after an error."""
        self._writer.call(self._reconnect, resumes=True).result()

    def waiting(self) -> int:
        """How many submissions wait for their commit."""
        return self._writer.waiting()

    def last_commit(self) -> float:
        """When a commit last began or ended, on the monotonic clock in seconds."""
        return self._writer.last_commit

    def export_parquet(
        self,
        policy: str,
        path: str | Path,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> int:
        """Write the decisions of a policy as a log; returns the number of records."""
        return export_parquet(self, policy, path, since=since, until=until)

    def retain(
        self,
        policy: str,
        folder: Path,
        *,
        now: int,
        retention_days: float = 400.0,
        context_days: float = 30.0,
    ) -> Retained:
        """Remove what is too old; decisions are in a file of ``folder`` first."""
        return retain(
            self,
            policy,
            folder,
            now=now,
            retention_days=retention_days,
            context_days=context_days,
        )

    def close(self) -> None:
        """Commit what waits and end the writer thread."""
        for thread in self._threads:
            thread.close()
