"""Handlers of decisions: decide, report what followed, look up."""

from __future__ import annotations

import asyncio

import msgspec

from pastwise.service.calls import (
    DECISION,
    POLICY,
    Answer,
    Call,
    Operation,
)
from pastwise.service.problems import Problem, ProblemPart
from pastwise.service.queries import (
    DecisionsQuery,
)
from pastwise.service.settings import Limits
from pastwise.service.types import (
    DecideManyRequest,
    DecideRequest,
    DecisionDetail,
    DecisionView,
    ItemAnswer,
    ManyDecisions,
    OutcomeRequest,
    OutcomeView,
    Page,
    RuleView,
    TakenRequest,
)
from pastwise.service.views import decision_detail, time_of

REPLAYED = ((b"idempotency-replayed", b"true"),)


async def decide(call: Call, body: DecideRequest) -> Answer:
    """Decide; the answer is sent after the decision is stored."""
    if body.context is not None:
        check_context(body.context, call.service.settings.limits, "/context")
    key = None if body.dry_run else call.idempotency_key()
    policy = call.params["policy"]
    view, is_replayed = await call.service.engine.decide(policy, body, call.holder.id, key)

    call.version = view.policy_version
    call.decision_id = view.decision_id
    if body.dry_run:
        return Answer(view)
    if is_replayed:
        return Answer(view, 200, REPLAYED)
    location = b"/v1/decisions/" + view.decision_id.encode()
    return Answer(view, 201, ((b"location", location),))


async def decide_many(call: Call, body: DecideManyRequest) -> Answer:
    """Decide several times in one transaction; each item has an answer of its own."""
    service = call.service
    for index, item in enumerate(body.items):
        if item.context is not None:
            check_context(item.context, service.settings.limits, f"/items/{index}/context")
    key = call.idempotency_key()
    if len(body.items) > 1:
        others = len(body.items) - 1
        call.rate_headers = service.rates.take(call.holder.id, "decide", others, taken=1)

    policy = call.params["policy"]
    engine = service.engine
    answers, is_replayed = await engine.decide_many(policy, body.items, call.holder.id, key)
    items = []
    for answer in answers:
        if isinstance(answer, Problem):
            items.append(ItemAnswer(problem=answer.to_dict()))
        else:
            items.append(ItemAnswer(decision=answer))
    return Answer(ManyDecisions(items), 200, REPLAYED if is_replayed else ())


async def outcome(call: Call, body: OutcomeRequest) -> Answer:
    """Report what followed a decision."""
    decision_id = call.params["id"]
    call.decision_id = decision_id
    await _require_bound(call, decision_id)
    view, is_replayed = await call.service.engine.outcome(decision_id, body, call.holder.id)
    return Answer(view, 200, REPLAYED if is_replayed else ())


async def taken(call: Call, body: TakenRequest) -> Answer:
    """Report that somebody did something else."""
    decision_id = call.params["id"]
    call.decision_id = decision_id
    await _require_bound(call, decision_id)
    return Answer(await call.service.engine.taken(decision_id, body, call.who))


async def cancel(call: Call) -> Answer:
    """Report that nothing was done."""
    decision_id = call.params["id"]
    call.decision_id = decision_id
    await _require_bound(call, decision_id)
    return Answer(await call.service.engine.cancel(decision_id, call.who))


async def _require_bound(call: Call, decision_id: str) -> None:
    """Refuse decisions of policies that the token is not for."""
    if call.holder.policies is None:
        return
    row = await call.service.read(call.service.store.decision, decision_id)
    if row is not None and not call.holder.may_use(row.policy):
        # In the words of the engine: the answer does not say whether others have the decision.
        raise Problem("not-found", f"there is no decision {decision_id}")


# Looking up


async def decision(call: Call) -> Answer:
    """All that is stored of a decision."""
    decision_id = call.params["id"]
    await _require_bound(call, decision_id)
    return Answer(await call.service.engine.decision(decision_id))


async def rule_of_decision(call: Call) -> Answer:
    """The rule that a decision was sampled from, as it was then."""
    decision_id = call.params["id"]
    await _require_bound(call, decision_id)
    return Answer(await call.service.engine.rule_of_decision(decision_id))


async def decisions(call: Call) -> Answer:
    """Decisions of a policy, the newest first."""
    query = call.query(DecisionsQuery)
    store = call.service.store
    policy = call.service.engine.policy(call.params["policy"]).name
    since = parsed_time(query.since, "?since")
    until = parsed_time(query.until, "?until")

    def look_up() -> Page[DecisionDetail]:
        page = store.decisions(
            policy,
            status=query.status,
            state=query.state,
            action=query.action,
            since=since,
            until=until,
            cursor=query.cursor,
            limit=query.limit,
        )
        details = [
            decision_detail(row, store.outcome_of(row.id), store.conflicts(row.id))
            for row in page.items
        ]
        return Page(details, page.next)

    return Answer(await asyncio.to_thread(look_up))


def parsed_time(text: str | None, pointer: str) -> int | None:
    """Milliseconds since 1970 of a time in a request."""
    if text is None:
        return None
    try:
        return time_of(text)
    except (ValueError, OverflowError):
        detail = f"{text!r} is no time; write it as 2026-11-01T21:00:00Z"
        part = ProblemPart(pointer, "invalid-value", detail)
        raise Problem("invalid-value", detail, errors=[part]) from None


def check_context(context: dict[str, object], limits: Limits, pointer: str) -> None:
    """Refuse a context that is too large or too deep."""
    size = len(msgspec.json.encode(context))
    if size > limits.context:
        detail = f"A context has at most {limits.context:,} bytes of JSON; this one has {size:,}."
        part = ProblemPart(pointer, "too-large", detail)
        raise Problem("too-large", detail, errors=[part], extra={"limit": limits.context})
    if is_deeper(context, limits.depth):
        detail = f"A context has at most {limits.depth} levels of arrays and objects."
        part = ProblemPart(pointer, "malformed", detail)
        raise Problem("malformed", detail, errors=[part])


def is_deeper(value: object, levels: int) -> bool:
    """Whether arrays and objects are nested in more than so many levels."""
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list):
        parts = value
    else:
        return False
    return levels == 0 or any(is_deeper(part, levels - 1) for part in parts)


OPERATIONS = (
    Operation(
        "POST",
        f"{POLICY}/decide",
        decide,
        "Decide; the answer is sent after the decision is stored.",
        role="decide",
        rate="decide",
        body=DecideRequest,
        answer=DecisionView,
        status=201,
        problems=(
            "unknown-label",
            "invalid-label",
            "after-terminal",
            "idempotency-key-reused",
            "no-version",
            "not-leader",
            "paused",
            "disk-full",
        ),
    ),
    Operation(
        "POST",
        f"{DECISION}/outcome",
        outcome,
        "Report what followed a decision.",
        role="outcome",
        rate="outcome",
        body=OutcomeRequest,
        answer=OutcomeView,
        problems=(
            "outcome-conflict",
            "decision-cancelled",
            "gone",
            "unknown-label",
            "invalid-label",
            "not-leader",
            "disk-full",
        ),
    ),
    Operation(
        "POST",
        f"{POLICY}/decide-many",
        decide_many,
        "Decide several times in one transaction; each item has an answer of its own.",
        role="decide",
        rate="decide",
        body=DecideManyRequest,
        answer=ManyDecisions,
        problems=("idempotency-key-reused", "no-version", "not-leader", "paused", "disk-full"),
    ),
    Operation(
        "POST",
        f"{DECISION}/taken",
        taken,
        "Report that somebody did something else.",
        role="outcome",
        rate="outcome",
        body=TakenRequest,
        answer=DecisionDetail,
        problems=("decision-closed", "decision-cancelled", "unknown-label", "gone", "disk-full"),
    ),
    Operation(
        "POST",
        f"{DECISION}/cancel",
        cancel,
        "Report that nothing was done; no outcome is expected.",
        role="outcome",
        rate="outcome",
        answer=DecisionDetail,
        problems=("decision-closed", "gone", "disk-full"),
    ),
    Operation("GET", DECISION, decision, "Look up a decision.", answer=DecisionDetail),
    Operation(
        "GET",
        f"{DECISION}/rule",
        rule_of_decision,
        "Look up the rule that a decision was sampled from, as it was then.",
        answer=RuleView,
    ),
    Operation(
        "GET",
        f"{POLICY}/decisions",
        decisions,
        "List decisions, the newest first.",
        query=DecisionsQuery,
        answer=Page[DecisionDetail],
    ),
)
