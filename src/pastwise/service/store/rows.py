"""What the store keeps: one type per table, and the writes that change them.

The order of the fields is the order of the columns. Times are integer milliseconds since 1970,
UTC. Decisions, outcomes and events of a policy share one numbering, ``seq`` = 1, 2, ...: the order
in which they happened and were committed.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

OPEN = "open"
WAITING = "waiting"
"""Statuses of a decision that is not closed: nothing was reported, or an outcome was, which is
learned when the window closes."""


class PolicyRow(NamedTuple):
    """A policy: its settings as JSON, and their revision."""

    policy: str
    settings: str
    etag: int
    created: int


class VersionRow(NamedTuple):
    """A version of a policy; it never changes."""

    policy: str
    version: int
    sha256: str
    artefact: bytes
    seed: bytes
    note: str
    despite: str
    who: str
    at: int


class DecisionRow(NamedTuple):
    """A decision, as it was made; only the last three fields change."""

    policy: str
    seq: int
    id: str
    version: int
    evidence: int
    state: str
    features: str | None
    action: str
    propensity: float
    allowed: str | None
    floor: float
    mode: str
    episode: str | None
    context: str | None
    token: str
    key: str | None
    digest: bytes | None
    at: int
    due: int
    status: str
    taken: str | None
    taken_by: str | None


class OutcomeRow(NamedTuple):
    """What followed a decision; ``evidence`` is the revision that was answered."""

    policy: str
    seq: int
    decision: str
    next_state: str | None
    reward: float | None
    status: str
    evidence: int
    token: str
    at: int
    reported_at: int | None


class EventRow(NamedTuple):
    """Anything else that happened to a policy; ``body`` is JSON."""

    policy: str
    seq: int
    kind: str
    decision: str | None
    body: str
    at: int


class SnapshotRow(NamedTuple):
    """Evidence of a version after the event ``seq``."""

    policy: str
    version: int
    seq: int
    hash: bytes
    artefact: bytes


class TokenRow(NamedTuple):
    """A token of the service: only its hash is kept. ``roles`` and ``policies`` are JSON."""

    id: str
    hash: bytes
    name: str
    roles: str
    policies: str | None
    created: int
    used: int | None
    expires: int | None
    needs_key: int


class AuditRow(NamedTuple):
    """Who changed what. The store numbers the rows: insert them with ``number=0``."""

    number: int
    at: int
    who: str
    what: str
    subject: str
    before: str | None
    after: str | None


class RemovalRow(NamedTuple):
    """Retention removed decisions that were made before ``before``; ``file`` holds them.

    ``seq`` is the highest number of what was removed.
    """

    policy: str
    seq: int
    before: int
    rows: int
    file: str
    at: int


Row = (
    PolicyRow
    | VersionRow
    | DecisionRow
    | OutcomeRow
    | EventRow
    | SnapshotRow
    | TokenRow
    | AuditRow
    | RemovalRow
)


class HistoryItem(NamedTuple):
    """One step of a policy's history, complete in itself: a replay needs no look-up.

    ``kind`` is ``"decision"``, ``"outcome"`` or the kind of an event. Outcomes, and events that are
    about a decision, come with its ``version``, ``state`` and ``action`` (the one that was taken,
    where another was reported), and events with its ``next_state`` and ``reward``, where an outcome
    was reported. What does not apply is None. ``evidence`` and ``status`` are those of the decision
    or outcome itself; the status of a decision is the present one.
    """

    seq: int
    kind: str
    decision: str | None
    version: int | None
    evidence: int | None
    state: str | None
    action: str | None
    propensity: float | None
    allowed: str | None
    floor: float | None
    mode: str | None
    status: str | None
    next_state: str | None
    reward: float | None
    body: str | None
    at: int


class DayRow(NamedTuple):
    """Decisions of one day (UTC) and action by how they ended. ``day`` is its first millisecond."""

    day: int
    action: str
    decisions: int
    in_time: int
    late: int
    missing: int
    cancelled: int
    open: int


class DayStateRow(NamedTuple):
    """How many outcomes of the decisions of one day (UTC) led to a state, in time."""

    day: int
    next_state: str
    outcomes: int


Item = TypeVar("Item")


class Page(NamedTuple, Generic[Item]):
    """A part of a list, and the cursor of the next part; None at the end."""

    items: list[Item]
    next: str | None


class Insert(NamedTuple):
    """Add a row; its type says to which table. A key that exists already is a `StoreError`."""

    row: Row


class Replace(NamedTuple):
    """Add a row, or replace the one with its key."""

    row: PolicyRow | TokenRow | SnapshotRow | RemovalRow


class CloseDecision(NamedTuple):
    """Change the status of a decision; ``taken`` and ``taken_by`` stay as they are where None."""

    policy: str
    seq: int
    status: str
    taken: str | None = None
    taken_by: str | None = None


class UseToken(NamedTuple):
    """Note when a token was used last; nothing happens if it was removed in between."""

    used: int
    id: str


class DeleteToken(NamedTuple):
    """Remove a token."""

    id: str


class DeleteSnapshots(NamedTuple):
    """Remove the snapshots of a version that are older than ``before_seq``."""

    policy: str
    version: int
    before_seq: int


class ForgetContext(NamedTuple):
    """Remove the context of a decision."""

    policy: str
    seq: int


class RemoveDecision(NamedTuple):
    """Remove a decision with its outcome and events; see `retention`."""

    policy: str
    seq: int
    id: str


Write = (
    Insert
    | Replace
    | CloseDecision
    | UseToken
    | DeleteToken
    | DeleteSnapshots
    | ForgetContext
    | RemoveDecision
)
