"""Handlers of the service itself: health, metrics, problems, tokens, the audit trail."""

from __future__ import annotations

import asyncio
import html
import json

from pastwise.service import metrics as metrics_module
from pastwise.service.calls import (
    Answer,
    Call,
    Operation,
)
from pastwise.service.handlers_decisions import parsed_time
from pastwise.service.problems import PROBLEMS, Problem, ProblemPart
from pastwise.service.queries import (
    PageQuery,
)
from pastwise.service.randomness import uuid7
from pastwise.service.store.rows import AuditRow, DeleteToken, Insert, TokenRow
from pastwise.service.tokens import hash_of, new_secret, view_of
from pastwise.service.types import (
    AuditView,
    HealthView,
    NewToken,
    Page,
    TokenRequest,
    TokenView,
)
from pastwise.service.views import time_text


async def livez(call: Call) -> Answer:
    """Answer; a process that does not is stuck."""
    return Answer(HealthView("ok"))


async def readyz(call: Call) -> Answer:
    """Whether decisions can be made, with the checks that say so."""
    view = call.service.health()
    return Answer(view, 200 if view.status == "ok" else 503)


async def metrics(call: Call) -> Answer:
    """Metrics in Prometheus' text format."""
    text = await call.service.rendered_metrics()
    return Answer(text.encode(), media_type=metrics_module.CONTENT_TYPE.encode())


async def openapi(call: Call) -> Answer:
    """Describe all operations."""
    return Answer(call.service.openapi)


async def problem(call: Call) -> Answer:
    """Explain a kind of problem."""
    slug = call.params["slug"]
    kind = PROBLEMS.get(slug)
    if kind is None:
        raise Problem("not-found", "There is no such problem.")
    title = html.escape(f"{slug} ({kind.status})")
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body><h1>{title}</h1><p><strong>{html.escape(kind.title)}</strong></p>"
        f"<p>{html.escape(kind.explanation)}</p></body></html>\n"
    )
    return Answer(page.encode(), media_type=b"text/html; charset=utf-8")


# Tokens


async def tokens(call: Call) -> Answer:
    """All tokens of the store; those of the token file are not listed."""
    query = call.query(PageQuery)
    rows = await asyncio.to_thread(call.service.store.tokens)
    after = query.cursor or ""
    found = sorted((row for row in rows if row.id > after), key=lambda row: row.id)
    items = [view_of(row) for row in found[: query.limit]]
    has_more = len(found) > len(items)
    return Answer(Page(items, items[-1].id if has_more else None))


async def create_token(call: Call, body: TokenRequest) -> Answer:
    """Make a token; its secret is in this answer only."""
    service = call.service
    now = service.clock()
    expires = parsed_time(body.expires, "/expires")
    if expires is not None and expires <= now:
        part = ProblemPart("/expires", "invalid-value", "The time has passed.")
        raise Problem("invalid-value", "The token would have expired already.", errors=[part])

    secret = new_secret()
    row = TokenRow(
        id=uuid7(now),
        hash=hash_of(secret),
        name=body.name,
        roles=json.dumps(sorted(set(body.roles))),
        policies=None if body.policies is None else json.dumps(sorted(set(body.policies))),
        created=now,
        used=None,
        expires=expires,
        needs_key=int(body.needs_key),
    )
    view = view_of(row)
    after = json.dumps({"name": view.name, "roles": view.roles, "policies": view.policies})
    audit = AuditRow(0, now, call.who, "token-made", row.id, None, after)
    await service.engine.write([Insert(row), Insert(audit)])
    await service.refresh_tokens()

    members = {name: getattr(view, name) for name in view.__struct_fields__}
    location = (b"location", f"/v1/tokens/{row.id}".encode())
    return Answer(NewToken(**members, token=secret), 201, (location,))


async def delete_token(call: Call) -> Answer:
    """Make a token invalid at once."""
    service = call.service
    token_id = call.params["id"]
    rows = await asyncio.to_thread(service.store.tokens)
    row = next((row for row in rows if row.id == token_id), None)
    if row is None:
        raise Problem("not-found", f"There is no token {token_id[:50]!r}.")
    before = json.dumps({"name": row.name, "roles": json.loads(row.roles)})
    audit = AuditRow(0, service.clock(), call.who, "token-deleted", row.id, before, None)
    await service.engine.write([DeleteToken(row.id), Insert(audit)])
    await service.refresh_tokens()
    return Answer(b"", 204)


async def audit(call: Call) -> Answer:
    """Who changed what, the newest first."""
    query = call.query(PageQuery)

    def look_up() -> Page[AuditView]:
        page = call.service.store.audit(cursor=query.cursor, limit=query.limit)
        return Page([_audit_view(row) for row in page.items], page.next)

    return Answer(await asyncio.to_thread(look_up))


def _audit_view(row: AuditRow) -> AuditView:
    return AuditView(
        number=row.number,
        at=time_text(row.at),
        who=row.who,
        what=row.what,
        subject=row.subject,
        before=row.before,
        after=row.after,
    )


OPERATIONS = (
    Operation(
        "POST",
        "/v1/tokens",
        create_token,
        "Make a token; its secret is in this answer only.",
        role="admin",
        rate="write",
        body=TokenRequest,
        answer=NewToken,
        status=201,
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        "/v1/tokens",
        tokens,
        "List tokens.",
        role="admin",
        query=PageQuery,
        answer=Page[TokenView],
        is_policy_bound=False,
    ),
    Operation(
        "DELETE",
        "/v1/tokens/{id}",
        delete_token,
        "Make a token invalid at once.",
        role="admin",
        rate="write",
        status=204,
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        "/v1/audit",
        audit,
        "List changes, the newest first: who changed what.",
        role="admin",
        query=PageQuery,
        answer=Page[AuditView],
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        "/metrics",
        metrics,
        "Read metrics in Prometheus' text format.",
        answer="text/plain",
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        "/livez",
        livez,
        "Check that the process answers.",
        role=None,
        rate=None,
        answer=HealthView,
    ),
    Operation(
        "GET",
        "/readyz",
        readyz,
        "Check that decisions can be made.",
        role=None,
        rate=None,
        answer=HealthView,
    ),
    Operation(
        "GET",
        "/v1/openapi.json",
        openapi,
        "Read the description of all operations.",
        role=None,
        rate=None,
        answer=object,
    ),
    Operation(
        "GET",
        "/problems/{slug}",
        problem,
        "Read about a kind of problem.",
        role=None,
        rate=None,
        answer="text/html",
    ),
)
