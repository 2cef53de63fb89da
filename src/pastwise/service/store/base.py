"""What the service requires of a store, whichever database is behind it.

Writes are submitted from any thread, in order; one writer thread commits everything that waits in
one transaction and then completes the futures. Reads go through connections of their own and see
what was committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from pastwise.service.store.retention import Retained
from pastwise.service.store.rows import (
    AuditRow,
    DayRow,
    DayStateRow,
    DecisionRow,
    EventRow,
    HistoryItem,
    OutcomeRow,
    Page,
    PolicyRow,
    RemovalRow,
    SnapshotRow,
    TokenRow,
    VersionRow,
    Write,
)


class Store(Protocol):
    """The truth of the service. All methods may be called from any thread.

    Attributes
    ----------
    reads_are_quick : bool
        Whether a look-up takes microseconds, so that an event loop may wait for it.
    on_commit : callable or None
        Called by the writer thread after each commit with the number of writes and the seconds it
        took; it must not raise.
    """

    reads_are_quick: bool
    on_commit: Callable[[int, float], None] | None

    # Writing

    def submit(self, writes: Sequence[Write]) -> Future[None]:
        """Commit writes, all or none, after everything that was submitted before.

        The future fails with a `StoreError` if the transaction failed. From then on every write
        fails, until `resume`: what is stored is a prefix of what was submitted.
        """
        ...

    def resume(self) -> None:
        """Take writes again after an error. The caller reloads its state from the store.

        Raises
        ------
        StoreError
            If the database still cannot be written.
        """
        ...

    def lead(self, policy: str) -> bool:
        """Whether this process alone may write for a policy; it stays so until `close`.

        After `resume` the leadership of every policy must be requested again.
        """
        ...

    def leader(self, policy: str) -> str | None:
        """Address of the process that leads a policy, if that has one that others may know."""
        ...

    # Looking up

    def decision(self, decision_id: str) -> DecisionRow | None:
        """The decision with an id."""
        ...

    def outcome_of(self, decision_id: str) -> OutcomeRow | None:
        """The outcome of a decision."""
        ...

    def conflicts(self, decision_id: str) -> list[EventRow]:
        """Other outcomes that were reported for a decision, the oldest first."""
        ...

    def decision_by_key(self, policy: str, token: str, key: str) -> DecisionRow | None:
        """The decision that was made for an idempotency key."""
        ...

    def due(self, policy: str, before: int, limit: int) -> list[DecisionRow]:
        """Open and waiting decisions whose window closed before a time, the earliest first."""
        ...

    def open_decisions(self, policy: str) -> int:
        """How many decisions are open or waiting."""
        ...

    def last_seq(self, policy: str) -> int:
        """The highest number of a decision, outcome or event; 0 if there is none."""
        ...

    def policies(self) -> list[PolicyRow]:
        """All policies by name."""
        ...

    def policy(self, name: str) -> PolicyRow | None:
        """The policy with a name."""
        ...

    def versions(self, policy: str) -> list[VersionRow]:
        """All versions of a policy, the oldest first."""
        ...

    def version(self, policy: str, number: int) -> VersionRow | None:
        """One version of a policy."""
        ...

    def snapshots(self, policy: str, version: int) -> list[SnapshotRow]:
        """All snapshots of a version, the newest last."""
        ...

    def newest_snapshot(self, policy: str, version: int) -> SnapshotRow | None:
        """The newest snapshot of a version."""
        ...

    def token_by_hash(self, token_hash: bytes) -> TokenRow | None:
        """The token with a hash."""
        ...

    def tokens(self) -> list[TokenRow]:
        """All tokens, the oldest first."""
        ...

    # Listing and summing up

    def history(
        self,
        policy: str,
        after_seq: int = 0,
        to_seq: int | None = None,
        version: int | None = None,
    ) -> Iterator[HistoryItem]:
        """Decisions, outcomes and events in the order of ``seq``, as a stream.

        With ``version``: what concerns its decisions, and events that concern none.
        """
        ...

    def decisions(
        self,
        policy: str,
        *,
        status: str | None = None,
        state: str | None = None,
        action: str | None = None,
        since: int | None = None,
        until: int | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Page[DecisionRow]:
        """Decisions of a policy, the newest first; ``since <= at < until``."""
        ...

    def audit(self, *, cursor: str | None = None, limit: int = 50) -> Page[AuditRow]:
        """The audit trail, the newest first."""
        ...

    def daily(self, policy: str, from_ms: int, to_ms: int) -> list[DayRow]:
        """Decisions by day and action, ``from_ms <= at < to_ms``."""
        ...

    def daily_states(self, policy: str, from_ms: int, to_ms: int) -> list[DayStateRow]:
        """Outcomes in time by day of the decision and next state."""
        ...

    def removals(self, policy: str) -> list[RemovalRow]:
        """What retention removed, the newest last.

        A replay of a version then starts from its oldest snapshot that is left, not from the
        artefact. A decision that is not found and was made before the ``before`` of a removal is
        gone.
        """
        ...

    # Care

    def export_parquet(
        self,
        policy: str,
        path: str | Path,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> int:
        """Write the decisions of a policy as a log; returns the number of records."""
        ...

    def retain(
        self,
        policy: str,
        folder: Path,
        *,
        now: int,
        retention_days: float = 400.0,
        context_days: float = 30.0,
    ) -> Retained:
        """Remove what is too old; decisions are in a file of ``folder`` first.

        Only what is closed and part of a snapshot of its version goes, in small transactions.
        """
        ...

    def backup(self, target: str | Path) -> None:
        """Write a consistent copy while the service runs.

        Raises
        ------
        FileError
            If the target exists or cannot be written, or if the database has tools of its own.
        """
        ...

    def sizes(self) -> dict[str, int]:
        """Bytes by file or table."""
        ...

    def waiting(self) -> int:
        """How many writes wait for their commit."""
        ...

    def last_commit(self) -> float:
        """When a commit last began or ended, on the monotonic clock in seconds."""
        ...

    def close(self) -> None:
        """Commit what waits and close all connections."""
        ...
