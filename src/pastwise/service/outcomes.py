"""What happens to a decision after it was made: its outcome, another action, or nothing at all.

| what comes | status | learned |
|---|---|---|
| the first outcome, in time | learned, or waiting until the window closes | yes |
| the same, with learning off, in shadow, or of a version that is not in use | recorded | no |
| the same outcome again | as before | no |
| another outcome | as before; the conflict is kept as an event | no |
| an outcome after the window closed | late | no |
| no outcome when the window closes | missing | no |
| an outcome with a new label, where labels are open | new-label | no |
| an outcome in a state that the log lacks | new-label | no |

A missing outcome is never guessed. Each function changes the policy in memory and returns the
`Change` to commit, or raises a `Problem` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from pastwise.service.changes import (
    CANCELLED,
    LATE,
    LEARNED,
    MISSING,
    NEW_LABEL,
    RECORDED,
    Change,
    News,
    pointing_to,
)
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem, ProblemPart
from pastwise.service.store.rows import (
    OPEN,
    WAITING,
    CloseDecision,
    DecisionRow,
    Insert,
    OutcomeRow,
    Write,
)
from pastwise.service.types import DecisionDetail, OutcomeRequest, OutcomeView, TakenRequest
from pastwise.service.versions import ServedVersion
from pastwise.service.views import decision_detail, outcome_view, time_of, time_text


def report(
    policy: ServedPolicy,
    decision: DecisionRow,
    first: OutcomeRow | None,
    labels: ServedVersion,
    request: OutcomeRequest,
    token: str,
    now: int,
) -> Change[tuple[OutcomeView, bool] | Problem]:
    """Take in what followed a decision; the answer says whether it was known already.

    Parameters
    ----------
    first : OutcomeRow, optional
        The outcome that was reported before.
    labels : ServedVersion
        The version of the decision, in use or not, which knows its labels.
    """
    # What followed.
    if decision.status == CANCELLED:
        raise Problem("decision-cancelled", f"the decision {decision.id} was cancelled")
    next_state, is_known = _next_state(labels, request)
    reported_at = _reported_at(request.at)
    if first is not None:
        return _again(policy, first, next_state, request.reward, token, now)
    if not is_known and policy.settings.labels == "closed":
        with pointing_to("/next_state"):
            labels.require_known_next(request.next_state, request.reward)

    # Learn it, or keep it.
    action = done_action(decision)
    is_known = is_known and labels.has_state(decision.state) and labels.has_action(action)
    status = _status(policy, decision, is_known, now)
    if status == LEARNED:
        policy.learn(decision.state, action, next_state, request.reward)
    row = OutcomeRow(
        policy=policy.name,
        seq=policy.next_seq(),
        decision=decision.id,
        next_state=next_state,
        reward=request.reward,
        status=status,
        evidence=policy.evidence,
        token=token,
        at=now,
        reported_at=reported_at,
    )
    seen = policy.observed(decision, row, action)
    body = {
        "decision_id": decision.id,
        "seq": row.seq,
        "status": status,
        "next_state": next_state,
        "lag_s": (now - decision.at) / 1000,
    }
    close = CloseDecision(policy.name, decision.seq, status)
    writes = [Insert(row), close, *seen.writes, *policy.due_snapshot()]
    return Change(writes, (outcome_view(row), False), [News("outcome", body), *seen.news])


def done_action(decision: DecisionRow) -> str:
    """The action that was done: the one that was reported as taken, or the decision's."""
    return decision.action if decision.taken is None else decision.taken


def _next_state(labels: ServedVersion, request: OutcomeRequest) -> tuple[str, bool]:
    """The key of what followed, and whether the log has that state."""
    with pointing_to("/reward"):
        labels.require_reward(request.reward)
    with pointing_to("/next_state"):
        return labels.next_key(request.next_state, request.reward)


def _reported_at(text: str | None) -> int | None:
    """When it happened, by the caller's clock."""
    if text is None:
        return None
    try:
        return time_of(text)
    except (ValueError, OverflowError):
        detail = f"{text!r} is no time; write it as 2026-11-01T21:00:00Z"
        part = ProblemPart("/at", "invalid-value", detail)
        raise Problem("invalid-value", detail, errors=[part]) from None


def _status(policy: ServedPolicy, decision: DecisionRow, is_known: bool, now: int) -> str:
    """What becomes of the first outcome of a decision."""
    if decision.status == MISSING or now > decision.due:
        return LATE
    if not is_known:
        return NEW_LABEL
    if not policy.learns_from(decision):
        return RECORDED
    return WAITING if policy.settings.learn_delay == "window" else LEARNED


def _again(
    policy: ServedPolicy,
    first: OutcomeRow,
    next_state: str,
    reward: float | None,
    token: str,
    now: int,
) -> Change[tuple[OutcomeView, bool] | Problem]:
    """The same outcome again, or another one: then the first stays."""
    if (first.next_state, first.reward) == (next_state, reward):
        return Change([], (outcome_view(first), True))
    reported = {"next_state": next_state, "reward": reward, "token": token}
    event = policy.event("conflict", first.decision, reported, now)
    problem = Problem(
        "outcome-conflict",
        f"{first.next_state!r} was reported for the decision {first.decision} before",
        extra={
            "first": {
                "next_state": first.next_state,
                "reward": first.reward,
                "status": first.status,
                "at": time_text(first.at),
            }
        },
    )
    body = {"decision_id": first.decision, "seq": event.seq, "next_state": next_state}
    news = [News("conflict", body)]
    return Change([Insert(event), *policy.due_snapshot()], problem, news)


def take(
    policy: ServedPolicy,
    decision: DecisionRow,
    labels: ServedVersion,
    request: TakenRequest,
    who: str,
    now: int,
) -> Change[DecisionDetail]:
    """Somebody did something else than was decided; the outcome is a record of that action."""
    _require_open(decision)
    with pointing_to("/action"):
        is_open = policy.settings.labels == "open"
        action = labels.action_key(request.action, may_be_new=is_open)
    body = {"action": action, "by": request.by, "who": who}
    event = policy.event("taken", decision.id, body, now)
    mark = CloseDecision(policy.name, decision.seq, OPEN, action, request.by)
    after = decision._replace(taken=action, taken_by=request.by)
    return Change([Insert(event), mark, *policy.due_snapshot()], decision_detail(after, None))


def cancel(
    policy: ServedPolicy, decision: DecisionRow, who: str, now: int
) -> Change[DecisionDetail]:
    """Nothing was done, and no outcome is expected. A second time changes nothing."""
    if decision.status == CANCELLED:
        return Change([], decision_detail(decision, None))
    _require_open(decision)
    event = policy.event("cancel", decision.id, {"who": who}, now)
    close = CloseDecision(policy.name, decision.seq, CANCELLED)
    after = decision._replace(status=CANCELLED)
    return Change([Insert(event), close, *policy.due_snapshot()], decision_detail(after, None))


def _require_open(decision: DecisionRow) -> None:
    if decision.status == CANCELLED:
        raise Problem("decision-cancelled", f"the decision {decision.id} was cancelled")
    if decision.status != OPEN:
        detail = f"the outcome of the decision {decision.id} is {decision.status}"
        raise Problem("decision-closed", detail, extra={"decision_status": decision.status})


def close_due(
    policy: ServedPolicy, due: Iterable[tuple[DecisionRow, OutcomeRow | None]], now: int
) -> Change[int]:
    """Close decisions whose window has closed: missing, or learned where that had to wait.

    Parameters
    ----------
    due : pairs of a decision and its outcome
    """
    writes: list[Write] = []
    news = []
    number = 0
    for decision, outcome in due:
        if outcome is None:
            status = MISSING
            event = policy.event("missing", decision.id, {}, now)
        else:
            status = _learn_at_last(policy, decision, outcome)
            event = policy.event("learn", decision.id, {"status": status}, now)
        writes += [Insert(event), CloseDecision(policy.name, decision.seq, status)]
        body = {"decision_id": decision.id, "seq": event.seq, "status": status}
        news.append(News("outcome", body))
        number += 1
    return Change([*writes, *policy.due_snapshot()], number, news)


def _learn_at_last(policy: ServedPolicy, decision: DecisionRow, outcome: OutcomeRow) -> str:
    """Learn an outcome that waited for its window to close."""
    if outcome.next_state is None or not policy.learns_from(decision):
        return RECORDED
    action = done_action(decision)
    policy.learn(decision.state, action, outcome.next_state, outcome.reward)
    return LEARNED
