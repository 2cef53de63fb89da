"""Handlers of policies and their versions."""

from __future__ import annotations

import asyncio
import re

import msgspec
from starlette.responses import Response, StreamingResponse

from pastwise.service.calls import (
    OCTETS,
    POLICY,
    Answer,
    Call,
    Operation,
)
from pastwise.service.handlers_decisions import parsed_time
from pastwise.service.monitor import MonitorView
from pastwise.service.problems import Problem
from pastwise.service.queries import (
    MonitorQuery,
    PageQuery,
    StateQuery,
    VersionQuery,
)
from pastwise.service.store.rows import VersionRow
from pastwise.service.types import (
    NAME,
    Page,
    PolicySettings,
    PolicyView,
    RollbackRequest,
    RuleView,
    SettingsPatch,
    StateValue,
    Value,
    VersionView,
)
from pastwise.service.views import version_view

EVENT_STREAM = "text/event-stream"

_ROW = msgspec.json.Decoder(dict[str, Value | None])


def _policy_answer(view: PolicyView, status: int = 200) -> Answer:
    """A policy with its ETag."""
    return Answer(view, status, ((b"etag", f'"{view.etag}"'.encode()),))


async def policies(call: Call) -> Answer:
    """The policies that the token is for, by name."""
    query = call.query(PageQuery)
    views = sorted(call.service.engine.policies(), key=lambda view: view.name)
    after = query.cursor or ""
    found = [view for view in views if call.holder.may_use(view.name) and view.name > after]
    items = found[: query.limit]
    has_more = len(found) > len(items)
    return Answer(Page(items, items[-1].name if has_more else None))


async def policy(call: Call) -> Answer:
    """A policy as it is served now."""
    return _policy_answer(call.service.engine.policy(call.params["policy"]))


async def create_policy(call: Call, body: PolicySettings) -> Answer:
    """Create a policy, which has no version yet."""
    name = call.params["policy"]
    if not re.fullmatch(NAME, name):
        raise Problem(
            "invalid-value",
            f"{name[:200]!r} is no name of a policy: it has 1 to 100 letters, digits, '.', '_' and "
            "'-', and begins with a letter or a digit.",
        )
    view = await call.service.engine.create_policy(name, body, call.who)
    location = (b"location", f"/v1/policies/{name}".encode())
    answer = _policy_answer(view, 201)
    return answer._replace(headers=(*answer.headers, location))


async def change_policy(call: Call, body: SettingsPatch) -> Answer:
    """Change settings of a policy."""
    engine = call.service.engine
    name = call.params["policy"]
    if_match = call.if_match(engine.policy(name).etag)
    return _policy_answer(await engine.change_settings(name, body, call.who, if_match))


async def rollback(call: Call, body: RollbackRequest) -> Answer:
    """Serve an older version again."""
    engine = call.service.engine
    name = call.params["policy"]
    return _policy_answer(await engine.rollback(name, body.to, call.who, body.reason))


async def rule(call: Call) -> Answer:
    """What the policy would do in a state."""
    state = _state(call.query(StateQuery).state)
    return Answer(await call.service.engine.rule(call.params["policy"], state))


def _state(text: str) -> StateValue:
    """A state in a query: a label, or a row as a JSON object."""
    if not text.startswith("{"):
        return text
    try:
        return _ROW.decode(text)
    except msgspec.ValidationError as error:
        raise Problem("invalid-value", f"The row is not valid: {error}") from error
    except msgspec.DecodeError:
        return text


async def monitor(call: Call) -> Answer:
    """How the policy does: counts, share as wanted, and whether the world has changed."""
    query = call.query(MonitorQuery)
    from_ms = parsed_time(query.from_, "?from")
    to_ms = parsed_time(query.to, "?to")
    name = call.params["policy"]
    engine = call.service.engine
    view = await engine.monitor(name, from_ms, to_ms, query.rows)
    view.answer_time = engine.answer_time()
    return Answer(view)


async def events(call: Call) -> Response:
    """What happens to the policy, as it happens."""
    name = call.service.engine.policy(call.params["policy"]).name
    frames = call.service.stream.events(name, call.header(b"last-event-id"))
    return StreamingResponse(call.while_admitted(frames), media_type=EVENT_STREAM)


# Versions


async def add_version(call: Call) -> Answer:
    """Add a policy file as the next version."""
    query = call.query(VersionQuery)
    name = call.service.engine.policy(call.params["policy"]).name
    artefact = await call.read(call.service.settings.limits.policy_file, "--max-policy-file")
    if not artefact:
        raise Problem("malformed", "The body must be a policy file; it is empty.")
    seed = None if query.seed is None else bytes.fromhex(query.seed)
    despite = tuple(part.strip() for part in query.despite.split(",") if part.strip())
    view = await call.service.engine.add_version(
        name, artefact, seed, query.note, call.who, despite
    )
    call.version = view.version
    location = f"/v1/policies/{name}/versions/{view.version}".encode()
    return Answer(view, 201, ((b"location", location),))


async def versions(call: Call) -> Answer:
    """The versions of a policy, the oldest first."""
    query = call.query(PageQuery)
    after = _version_number(query.cursor or "0")
    name = call.service.engine.policy(call.params["policy"]).name
    rows = await asyncio.to_thread(call.service.store.versions, name)
    found = [version_view(row) for row in rows if row.version > after]
    items = found[: query.limit]
    has_more = len(found) > len(items)
    page: Page[VersionView] = Page(items, str(items[-1].version) if has_more else None)
    return Answer(page)


async def version(call: Call) -> Answer:
    """One version, which never changes."""
    row = await version_row(call)
    return Answer(version_view(row), 200, _version_etag(row))


async def artefact(call: Call) -> Answer:
    """The policy file of a version, as it was uploaded."""
    row = await version_row(call)
    disposition = f'attachment; filename="{row.policy}-{row.version}.safetensors"'
    headers = (*_version_etag(row), (b"content-disposition", disposition.encode()))
    return Answer(row.artefact, 200, headers, OCTETS.encode())


def _version_etag(row: VersionRow) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"etag", f'"{row.sha256}"'.encode()),)


async def version_row(call: Call) -> VersionRow:
    """The version that the address names."""
    name = call.service.engine.policy(call.params["policy"]).name
    number = _version_number(call.params["version"])
    row = await asyncio.to_thread(call.service.store.version, name, number)
    if row is None:
        raise Problem("not-found", f"The policy {name!r} has no version {number}.")
    return row


def _version_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise Problem("not-found", f"{text[:50]!r} is no number of a version.")
    return int(text)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/policies",
        policies,
        "List the policies that the token is for.",
        query=PageQuery,
        answer=Page[PolicyView],
    ),
    Operation("GET", POLICY, policy, "Look up a policy.", answer=PolicyView),
    Operation(
        "PUT",
        POLICY,
        create_policy,
        "Create a policy.",
        role="deploy",
        rate="write",
        body=PolicySettings,
        answer=PolicyView,
        status=201,
        problems=("name-taken", "no-version", "disk-full"),
    ),
    Operation(
        "PATCH",
        POLICY,
        change_policy,
        "Change settings of a policy.",
        role="deploy",
        rate="write",
        body=SettingsPatch,
        answer=PolicyView,
        problems=("stale", "precondition-required", "unknown-label", "disk-full"),
    ),
    Operation(
        "POST",
        f"{POLICY}/rollback",
        rollback,
        "Serve an older version again, with what it had learned.",
        role="deploy",
        rate="write",
        body=RollbackRequest,
        answer=PolicyView,
    ),
    Operation(
        "POST",
        f"{POLICY}/versions",
        add_version,
        "Add a policy file as the next version.",
        role="deploy",
        rate="write",
        body="upload",
        query=VersionQuery,
        answer=VersionView,
        status=201,
        problems=("policy-file-refused", "too-large", "disk-full"),
    ),
    Operation(
        "GET",
        f"{POLICY}/versions",
        versions,
        "List versions, the oldest first.",
        query=PageQuery,
        answer=Page[VersionView],
    ),
    Operation(
        "GET",
        f"{POLICY}/versions/{{version}}",
        version,
        "Look up a version.",
        answer=VersionView,
    ),
    Operation(
        "GET",
        f"{POLICY}/versions/{{version}}/artefact",
        artefact,
        "Download the policy file of a version.",
        answer=OCTETS,
    ),
    Operation(
        "GET",
        f"{POLICY}/rule",
        rule,
        "Look up what the policy would do in a state; no decision is made.",
        query=StateQuery,
        answer=RuleView,
        problems=("unknown-label", "invalid-label", "after-terminal", "no-version"),
    ),
    Operation(
        "GET",
        f"{POLICY}/monitor",
        monitor,
        "Look up how the policy does, and whether the world has changed.",
        query=MonitorQuery,
        answer=MonitorView,
        problems=("no-version",),
    ),
    Operation(
        "GET",
        f"{POLICY}/events",
        events,
        "Follow what happens, as Server-Sent Events.",
        answer=EVENT_STREAM,
    ),
)
