"""Rows of the decision service's store, as a thermostat makes them."""

from typing import Any

from pastwise.service.store.rows import DecisionRow, EventRow, OutcomeRow

START = 1_790_000_000_000
"""Milliseconds since 1970 at which the thermostat begins."""

POLICY = "thermostat"


def decision_id(seq: int, policy: str = POLICY) -> str:
    return f"{policy}-{seq:012x}"


def decision(seq: int, policy: str = POLICY, **changes: Any) -> DecisionRow:
    """An open decision, made ``seq`` seconds after the start and due an hour later."""
    at = START + 1000 * seq
    row = DecisionRow(
        policy=policy,
        seq=seq,
        id=decision_id(seq, policy),
        version=1,
        evidence=0,
        state="cool",
        features=None,
        action="heat",
        propensity=0.1 + 0.2,
        allowed=None,
        floor=0.0,
        mode="live",
        episode=None,
        context=None,
        token="t1",
        key=None,
        digest=None,
        at=at,
        due=at + 3_600_000,
        status="open",
        taken=None,
        taken_by=None,
    )
    return row._replace(**changes)


def outcome(seq: int, of_seq: int, policy: str = POLICY, **changes: Any) -> OutcomeRow:
    """The outcome of the decision ``of_seq``."""
    row = OutcomeRow(
        policy=policy,
        seq=seq,
        decision=decision_id(of_seq, policy),
        next_state="comfortable",
        reward=None,
        status="learned",
        token="t1",
        at=START + 1000 * seq,
        reported_at=None,
        evidence=1,
    )
    return row._replace(**changes)


def event(seq: int, kind: str, of_seq: int | None = None, **changes: Any) -> EventRow:
    """An event, of the decision ``of_seq`` if there is one."""
    about = None if of_seq is None else decision_id(of_seq)
    row = EventRow(POLICY, seq, kind, about, "{}", START + 1000 * seq)
    return row._replace(**changes)
