"""Look-ups, lists and sums in plain SQL, the same for both databases.

A subclass runs the SQL. Every method is one short statement, or a series of them, so no transaction
stays open: what a long replay reads does not hold up the clearing of the database's log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from operator import itemgetter
from typing import Any

from pastwise.errors import ParameterError, shown
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
)
from pastwise.service.store.statements import TABLES, columns

DAY = 24 * 60 * 60 * 1000
"""Milliseconds of a day."""

LARGEST = 2**63 - 1
"""The largest integer that a database holds."""

LAST_SEQ = """
select max(seq) from (
    select max(seq) as seq from decision where policy = ?
    union all select max(seq) from outcome where policy = ?
    union all select max(seq) from event where policy = ?
    union all select max(seq) from snapshot where policy = ?
    union all select max(seq) from removal where policy = ?
) as last
"""

DECISION_ITEMS = """
select seq, 'decision', id, version, evidence, state, action, propensity, allowed, floor, mode,
    status, null, null, null, at
from decision where policy = ? and seq > ? and seq <= ?
"""
OUTCOME_ITEMS = """
select o.seq, 'outcome', o.decision, d.version, o.evidence, d.state, coalesce(d.taken, d.action),
    null, null, null, d.mode, o.status, o.next_state, o.reward, null, o.at
from outcome o left join decision d on d.id = o.decision
where o.policy = ? and o.seq > ? and o.seq <= ?
"""
EVENT_ITEMS = """
select e.seq, e.kind, e.decision, d.version, null, d.state, coalesce(d.taken, d.action), null,
    null, null, d.mode, o.status, o.next_state, o.reward, e.body, e.at
from event e
left join decision d on d.id = e.decision left join outcome o on o.decision = e.decision
where e.policy = ? and e.seq > ? and e.seq <= ?
"""
HISTORY = (DECISION_ITEMS, OUTCOME_ITEMS, EVENT_ITEMS)
HISTORY_OF_VERSION = (
    f"{DECISION_ITEMS} and version = ?",
    f"{OUTCOME_ITEMS} and d.version = ?",
    f"{EVENT_ITEMS} and (e.decision is null or d.version = ?)",
)

NOT_CLOSED = "status in ('open', 'waiting')"
"""The condition of the index ``decision_due``, word for word."""

UNUSUAL = ("cancelled", "late", "missing", "new-label")
IS_UNUSUAL = f"status in {UNUSUAL}"
"""How few decisions end, and the condition of the index ``decision_unusual``, word for word."""

IN_TIME = "status in ('learned', 'recorded', 'new-label', 'waiting')"
HAS_CONFLICT = """exists (
    select 1 from event where event.decision = decision.id and event.kind = 'conflict'
)"""
SELECTIONS = {"in-time": IN_TIME, "conflict": HAS_CONFLICT}
"""Conditions of decisions that are no single status, by their names."""

DAILY = f"""
select (at / {DAY}) * {DAY} as day, action, count(*),
    count(*) filter (where {IN_TIME}),
    count(*) filter (where status = 'late'),
    count(*) filter (where status = 'missing'),
    count(*) filter (where status = 'cancelled'),
    count(*) filter (where status = 'open')
from decision where policy = ? and at >= ? and at < ?
group by day, action
"""
DAILY_STATES = f"""
select (d.at / {DAY}) * {DAY} as day, o.next_state, count(*)
from decision d join outcome o on o.decision = d.id
where d.policy = ? and d.at >= ? and d.at < ? and o.status <> 'late' and o.next_state is not null
group by day, o.next_state
"""


def _selection(row: type, condition: str) -> str:
    return f"select {columns(row)} from {TABLES[row]} {condition}"


DECISION = _selection(DecisionRow, "where id = ?")
DECISION_BY_KEY = _selection(DecisionRow, "where policy = ? and token = ? and key = ?")
DUE = _selection(
    DecisionRow, f"where policy = ? and {NOT_CLOSED} and due < ? order by due, seq limit ?"
)
OPEN_DECISIONS = f"select count(*) from decision where policy = ? and {NOT_CLOSED} and due >= 0"
"""Any time is after 0; the condition makes SQLite take the index ``decision_due``."""

CONFLICTS = _selection(EventRow, "where decision = ? and kind = 'conflict' order by seq")
OUTCOME_OF = _selection(OutcomeRow, "where decision = ?")
POLICIES = _selection(PolicyRow, "order by policy")
POLICY = _selection(PolicyRow, "where policy = ?")
VERSIONS = _selection(VersionRow, "where policy = ? order by version")
VERSION = _selection(VersionRow, "where policy = ? and version = ?")
SNAPSHOTS = _selection(SnapshotRow, "where policy = ? and version = ? order by seq")
NEWEST_SNAPSHOT = _selection(
    SnapshotRow, "where policy = ? and version = ? order by seq desc limit 1"
)
REMOVALS = _selection(RemovalRow, "where policy = ? order by seq")
TOKENS = _selection(TokenRow, "order by created, id")
TOKEN_BY_HASH = _selection(TokenRow, "where hash = ?")
AUDIT = _selection(AuditRow, "where number < ? order by number desc limit ?")


_as_item = partial(tuple.__new__, HistoryItem)
"""A row as an item, without the check of its length: a replay makes millions."""


class Reads(ABC):
    """The reading part of a store; `Store` describes the methods."""

    page = 20_000
    """Numbers of a policy's history that one query reads; larger pages are not quicker."""

    @abstractmethod
    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        """All rows of a query as tuples; question marks stand for the parameters."""

    def decision(self, decision_id: str) -> DecisionRow | None:
        """The decision with an id."""
        rows = self.rows(DECISION, decision_id)
        return DecisionRow._make(rows[0]) if rows else None

    def outcome_of(self, decision_id: str) -> OutcomeRow | None:
        """The outcome of a decision."""
        rows = self.rows(OUTCOME_OF, decision_id)
        return OutcomeRow._make(rows[0]) if rows else None

    def conflicts(self, decision_id: str) -> list[EventRow]:
        """Other outcomes that were reported for a decision, the oldest first."""
        return [EventRow._make(row) for row in self.rows(CONFLICTS, decision_id)]

    def decision_by_key(self, policy: str, token: str, key: str) -> DecisionRow | None:
        """The decision that was made for an idempotency key."""
        rows = self.rows(DECISION_BY_KEY, policy, token, key)
        return DecisionRow._make(rows[0]) if rows else None

    def due(self, policy: str, before: int, limit: int) -> list[DecisionRow]:
        """Open and waiting decisions whose window closed before a time, the earliest first."""
        return [DecisionRow._make(row) for row in self.rows(DUE, policy, before, limit)]

    def open_decisions(self, policy: str) -> int:
        """How many decisions are open or waiting."""
        return int(self.rows(OPEN_DECISIONS, policy)[0][0])

    def last_seq(self, policy: str) -> int:
        """The highest number of a decision, outcome or event; 0 if there is none."""
        return self.rows(LAST_SEQ, policy, policy, policy, policy, policy)[0][0] or 0

    def policies(self) -> list[PolicyRow]:
        """All policies by name."""
        return sorted(PolicyRow._make(row) for row in self.rows(POLICIES))

    def policy(self, name: str) -> PolicyRow | None:
        """The policy with a name."""
        rows = self.rows(POLICY, name)
        return PolicyRow._make(rows[0]) if rows else None

    def versions(self, policy: str) -> list[VersionRow]:
        """All versions of a policy, the oldest first."""
        return [VersionRow._make(row) for row in self.rows(VERSIONS, policy)]

    def version(self, policy: str, number: int) -> VersionRow | None:
        """One version of a policy."""
        rows = self.rows(VERSION, policy, number)
        return VersionRow._make(rows[0]) if rows else None

    def snapshots(self, policy: str, version: int) -> list[SnapshotRow]:
        """All snapshots of a version, the newest last."""
        return [SnapshotRow._make(row) for row in self.rows(SNAPSHOTS, policy, version)]

    def newest_snapshot(self, policy: str, version: int) -> SnapshotRow | None:
        """The newest snapshot of a version."""
        rows = self.rows(NEWEST_SNAPSHOT, policy, version)
        return SnapshotRow._make(rows[0]) if rows else None

    def token_by_hash(self, token_hash: bytes) -> TokenRow | None:
        """The token with a hash."""
        rows = self.rows(TOKEN_BY_HASH, token_hash)
        return TokenRow._make(rows[0]) if rows else None

    def tokens(self) -> list[TokenRow]:
        """All tokens, the oldest first."""
        return [TokenRow._make(row) for row in self.rows(TOKENS)]

    def removals(self, policy: str) -> list[RemovalRow]:
        """What retention removed, the newest last."""
        return [RemovalRow._make(row) for row in self.rows(REMOVALS, policy)]

    def history(
        self,
        policy: str,
        after_seq: int = 0,
        to_seq: int | None = None,
        version: int | None = None,
    ) -> Iterator[HistoryItem]:
        """Decisions, outcomes and events in the order of ``seq``, as a stream."""
        queries = HISTORY if version is None else HISTORY_OF_VERSION
        of_version = () if version is None else (version,)
        last = self.last_seq(policy)
        end = last if to_seq is None else min(to_seq, last)
        for start in range(after_seq, end, self.page):
            stop = min(start + self.page, end)
            items: list[Any] = []
            for query in queries:
                items.extend(self.rows(query, policy, start, stop, *of_version))
            items.sort(key=itemgetter(0))
            yield from map(_as_item, items)

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
        selection = SELECTIONS.get(status or "")
        conditions: dict[str, str | int | None] = {
            "policy = ?": policy,
            "status = ?": status if selection is None else None,
            "state = ?": state,
            "action = ?": action,
            "at >= ?": since,
            "at < ?": until,
            "seq < ?": _number(cursor),
        }
        given = {sql: value for sql, value in conditions.items() if value is not None}
        clauses = list(given)
        if selection is not None:
            clauses.append(selection)
        if status in UNUSUAL:
            clauses.append(IS_UNUSUAL)
        condition = f"where {' and '.join(clauses)} order by seq desc limit ?"
        rows = self.rows(_selection(DecisionRow, condition), *given.values(), limit + 1)
        items = [DecisionRow._make(row) for row in rows[:limit]]
        return Page(items, str(items[-1].seq) if len(rows) > limit else None)

    def audit(self, *, cursor: str | None = None, limit: int = 50) -> Page[AuditRow]:
        """The audit trail, the newest first."""
        before = _number(cursor)
        rows = self.rows(AUDIT, LARGEST if before is None else before, limit + 1)
        items = [AuditRow._make(row) for row in rows[:limit]]
        return Page(items, str(items[-1].number) if len(rows) > limit else None)

    def daily(self, policy: str, from_ms: int, to_ms: int) -> list[DayRow]:
        """Decisions by day and action, ``from_ms <= at < to_ms``."""
        return sorted(DayRow._make(row) for row in self.rows(DAILY, policy, from_ms, to_ms))

    def daily_states(self, policy: str, from_ms: int, to_ms: int) -> list[DayStateRow]:
        """Outcomes in time by day of the decision and next state."""
        rows = self.rows(DAILY_STATES, policy, from_ms, to_ms)
        return sorted(DayStateRow._make(row) for row in rows)


def _number(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and int(cursor) <= LARGEST):
        raise ParameterError(
            f"{shown(cursor)} is no cursor: pass on `next` of the answer before, unchanged"
        )
    return int(cursor)
