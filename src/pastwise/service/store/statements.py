"""Writes as SQL.

All writes of a transaction become a few statements, each with many sets of parameters. Within one
transaction rows are added first, then changed, then removed, so the order between statements does
not matter otherwise; within a statement it is the order of the writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pastwise.service.store.rows import (
    AuditRow,
    CloseDecision,
    DecisionRow,
    DeleteSnapshots,
    DeleteToken,
    EventRow,
    ForgetContext,
    Insert,
    OutcomeRow,
    PolicyRow,
    RemovalRow,
    RemoveDecision,
    Replace,
    SnapshotRow,
    TokenRow,
    UseToken,
    VersionRow,
    Write,
)

Parameters = tuple[Any, ...]

TABLES: dict[type, str] = {
    PolicyRow: "policy",
    VersionRow: "version",
    DecisionRow: "decision",
    OutcomeRow: "outcome",
    EventRow: "event",
    SnapshotRow: "snapshot",
    RemovalRow: "removal",
    TokenRow: "token",
    AuditRow: "audit",
}

KEYS: dict[type, tuple[str, ...]] = {
    PolicyRow: ("policy",),
    TokenRow: ("id",),
    SnapshotRow: ("policy", "version", "seq"),
    RemovalRow: ("policy", "seq"),
}
"""Keys of the rows that can be replaced."""


def columns(row: type) -> str:
    """The columns of a table, in the order of the fields of its rows."""
    fields: tuple[str, ...] = row._fields  # type: ignore[attr-defined]
    return ", ".join(fields)


def _insertion(row: type) -> str:
    names = columns(row)
    if row is AuditRow:
        names = names.removeprefix("number, ")  # the database numbers them
    marks = ", ".join("?" for _ in names.split(","))
    return f"insert into {TABLES[row]} ({names}) values ({marks})"


def _replacement(row: type) -> str:
    changes = [f"{name} = excluded.{name}" for name in columns(row).split(", ")]
    keys = ", ".join(KEYS[row])
    return f"{_insertion(row)} on conflict ({keys}) do update set {', '.join(changes)}"


INSERTIONS = {row: _insertion(row) for row in TABLES}
REPLACEMENTS = {row: _replacement(row) for row in KEYS}

CLOSE = (
    "update decision set status = ?, taken = coalesce(?, taken), taken_by = coalesce(?, taken_by)"
    " where policy = ? and seq = ?"
)
FORGET_CONTEXT = "update decision set context = null where policy = ? and seq = ?"
REMOVE_EVENTS = "delete from event where decision = ?"
REMOVE_OUTCOME = "delete from outcome where decision = ?"
REMOVE_DECISION = "delete from decision where policy = ? and seq = ?"
DELETE_TOKEN = "delete from token where id = ?"
USE_TOKEN = "update token set used = ? where id = ?"
DELETE_SNAPSHOTS = "delete from snapshot where policy = ? and version = ? and seq < ?"

SIMPLE: dict[type, str] = {
    ForgetContext: FORGET_CONTEXT,
    UseToken: USE_TOKEN,
    DeleteToken: DELETE_TOKEN,
    DeleteSnapshots: DELETE_SNAPSHOTS,
}
"""Statements whose parameters are the fields of the write."""

ORDER = (
    *INSERTIONS.values(),
    *REPLACEMENTS.values(),
    CLOSE,
    FORGET_CONTEXT,
    USE_TOKEN,
    REMOVE_EVENTS,
    REMOVE_OUTCOME,
    REMOVE_DECISION,
    DELETE_TOKEN,
    DELETE_SNAPSHOTS,
)


def statements(writes: Iterable[Write]) -> list[tuple[str, list[Parameters]]]:
    """Statements of one transaction, in the order in which they run, with their parameters."""
    parameters: dict[str, list[Parameters]] = {}

    def add(statement: str, values: Parameters) -> None:
        parameters.setdefault(statement, []).append(values)

    for write in writes:
        match write:
            case Insert(AuditRow() as row):
                add(INSERTIONS[AuditRow], row[1:])
            case Insert(row):
                add(INSERTIONS[type(row)], row)
            case CloseDecision(policy, seq, status, taken, taken_by):
                add(CLOSE, (status, taken, taken_by, policy, seq))
            case Replace(row):
                add(REPLACEMENTS[type(row)], row)
            case RemoveDecision(policy, seq, decision_id):
                add(REMOVE_EVENTS, (decision_id,))
                add(REMOVE_OUTCOME, (decision_id,))
                add(REMOVE_DECISION, (policy, seq))
            case ForgetContext() | UseToken() | DeleteToken() | DeleteSnapshots():
                add(SIMPLE[type(write)], write)
    return [(statement, parameters[statement]) for statement in ORDER if statement in parameters]
