"""Rows of the store as answers of the service."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from pastwise.service.store.rows import DecisionRow, EventRow, OutcomeRow, VersionRow
from pastwise.service.types import (
    ConflictView,
    DecisionDetail,
    DecisionView,
    OutcomeDetail,
    OutcomeView,
    PolicySettings,
    SupportView,
    VersionView,
)


def time_text(milliseconds: int) -> str:
    """A time as text in RFC 3339, in UTC.

    >>> time_text(1_700_000_000_123)
    '2023-11-14T22:13:20.123Z'
    """
    seconds, rest = divmod(milliseconds, 1000)
    return f"{_second_text(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """A second as text. Times of decisions and of their outcomes share a few seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def time_of(text: str) -> int:
    """Milliseconds since 1970 of a time in RFC 3339; without an offset it is UTC.

    >>> time_of("2023-11-14T23:13:20.123+01:00")
    1700000000123

    Raises
    ------
    ValueError
        If the text is no time.
    OverflowError
        If it is before the year 1 or after the year 9999 in UTC, and cannot be shown.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = moment.astimezone(UTC).replace(microsecond=0).timestamp()
    return round(seconds) * 1000 + moment.microsecond // 1000


def settings_text(settings: PolicySettings) -> str:
    """Settings as the store keeps them."""
    return msgspec.json.encode(settings).decode()


def settings_of(text: str) -> PolicySettings:
    """The settings that `settings_text` wrote."""
    return msgspec.json.decode(text, type=PolicySettings)


def decision_view(row: DecisionRow, support: SupportView) -> DecisionView:
    """The answer to a request for a decision."""
    return DecisionView(
        decision_id=row.id,
        action=row.action,
        propensity=row.propensity,
        policy=row.policy,
        policy_version=row.version,
        evidence=row.evidence,
        mode=row.mode,  # type: ignore[arg-type]  # the store keeps text
        support=support,
        outcome_due=time_text(row.due),
    )


def decision_detail(
    row: DecisionRow, outcome: OutcomeRow | None, conflicts: Sequence[EventRow] = ()
) -> DecisionDetail:
    """All that is stored of a decision."""
    return DecisionDetail(
        decision_id=row.id,
        policy=row.policy,
        policy_version=row.version,
        seq=row.seq,
        evidence=row.evidence,
        state=row.state,
        features=_json(row.features),
        action=row.action,
        propensity=row.propensity,
        allowed=_json(row.allowed),
        floor=row.floor,
        mode=row.mode,  # type: ignore[arg-type]
        episode=row.episode,
        context=_json(row.context),
        at=time_text(row.at),
        outcome_due=time_text(row.due),
        status=row.status,  # type: ignore[arg-type]
        taken=row.taken,
        taken_by=row.taken_by,
        key=row.key,
        outcome=None if outcome is None else _outcome_detail(outcome),
        conflicts=[_conflict_view(event) for event in conflicts],
    )


def _conflict_view(event: EventRow) -> ConflictView:
    reported = json.loads(event.body)
    return ConflictView(reported["next_state"], reported["reward"], time_text(event.at))


def _outcome_detail(row: OutcomeRow) -> OutcomeDetail:
    reported_at = None if row.reported_at is None else time_text(row.reported_at)
    return OutcomeDetail(
        next_state=row.next_state,
        reward=row.reward,
        status=row.status,  # type: ignore[arg-type]
        at=time_text(row.at),
        reported_at=reported_at,
    )


def outcome_view(row: OutcomeRow) -> OutcomeView:
    """The answer to an outcome."""
    return OutcomeView(status=row.status, evidence=row.evidence)  # type: ignore[arg-type]


def version_view(row: VersionRow) -> VersionView:
    """A version without its artefact."""
    return VersionView(
        policy=row.policy,
        version=row.version,
        sha256=row.sha256,
        bytes=len(row.artefact),
        note=row.note,
        despite=json.loads(row.despite),
        who=row.who,
        at=time_text(row.at),
    )


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
