"""The gate: everything that happens to a request before and after its handler.

Host, origin, address, token, role, rate and body are checked in this order, and the first that does
not fit is answered as a problem. Every answer gets the security headers and a request id, is
counted, and is written to the journal.

This is one plain ASGI application: a request of the hot path (decide, outcome) passes a few
look-ups in dictionaries and no other layer.
"""

from __future__ import annotations

import itertools
import os
import re
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Message, Receive, Scope, Send

from pastwise.errors import StoreError
from pastwise.service.calls import (
    PROBLEM,
    Answer,
    Call,
    ClientGone,
    Headers,
    Operation,
    decoded,
)
from pastwise.service.problems import Problem, problem_of

if TYPE_CHECKING:
    from pastwise.service.app import Service
    from pastwise.service.metrics import Metrics, Number

SECURITY: Headers = (
    (
        b"content-security-policy",
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer. Answers are data: nothing in them may run or be framed."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
EVERYWHERE = frozenset({"0.0.0.0", "[::]"})
"""Addresses to listen on that are no names: browsers let any page call 0.0.0.0."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]@/\s]+)(?::\d{1,5})?")


class Endpoint:
    """An operation with what is made once for it: its route, its decoder and its metrics."""

    def __init__(self, operation: Operation, metrics: Metrics) -> None:
        self.operation = operation
        self.route = Route(operation.path, operation.handler, methods=[operation.method])
        self.decoder: msgspec.json.Decoder[Any] | None = None
        if isinstance(operation.body, type):
            self.decoder = msgspec.json.Decoder(operation.body)
        self._requests = metrics.http_requests
        self._seconds = metrics.http_seconds.child(route=operation.path)
        self._statuses: dict[int, Number] = {}

    def count(self, status: int, seconds: float) -> None:
        """Count an answer."""
        number = self._statuses.get(status)
        if number is None:
            number = self._requests.child(route=self.operation.path, status=status)
            self._statuses[status] = number
        number.add()
        self._seconds.observe(seconds)


class Gate:
    """The service as an ASGI application.

    Parameters
    ----------
    service : Service
    operations : sequence of Operation
        Tried in this order, so those that are called most come first.
    """

    def __init__(self, service: Service, operations: Sequence[Operation]) -> None:
        self.service = service
        self.operations = list(operations)
        self._endpoints = [Endpoint(operation, service.metrics) for operation in operations]
        self._elsewhere = Endpoint(_NOWHERE, service.metrics)
        self._preflight = Endpoint(_PREFLIGHT, service.metrics)
        self._encoder = msgspec.json.Encoder()
        self._start = os.urandom(6).hex()
        self._numbers = itertools.count(1)

        settings = service.settings
        names = {*LOCAL_NAMES, settings.host_in_url, *settings.host_names} - EVERYWHERE
        self._hosts = frozenset(name.lower() for name in names)
        self._origins = frozenset(origin.lower() for origin in settings.allow_origins)
        self._known_hosts: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await _refuse_protocol(scope, receive, send)
            return

        started = time.perf_counter()
        call = Call(scope, receive, self.service)
        endpoint = self._elsewhere
        try:
            self._identify(call)
            self._check_host(call)
            self._check_origin(call)
            endpoint = self._find(call)
            answer = await self._handled(call, endpoint)
        except ClientGone:
            return
        except Exception as error:
            answer = await self._problem(call, error)

        # Send it, count it, and write it down.
        if isinstance(answer, Answer):
            status = answer.status
            await self._send(call, answer, send)
        else:
            status = answer.status_code
            await self._stream(call, answer, send)
        seconds = time.perf_counter() - started
        endpoint.count(status, seconds)
        self.service.journal.request(
            call.request_id,
            scope["method"],
            endpoint.operation.path,
            status,
            seconds,
            call.policy,
            call.version,
            call.decision_id,
        )

    # Checks

    def _identify(self, call: Call) -> None:
        """Take over the client's request id, or make one."""
        sent = call.headers.get(b"x-request-id")
        if sent is not None and _REQUEST_ID.fullmatch(sent):
            call.request_id = sent.decode("ascii")
        else:
            call.request_id = f"{self._start}-{next(self._numbers):x}"

    def _check_host(self, call: Call) -> None:
        """Refuse other names: a page whose name resolves to this machine must not get through."""
        host = call.headers.get(b"host", b"")
        if len(call.headers) < len(call.scope["headers"]):
            self._refuse_doubles(call)
        if host in self._known_hosts:
            return
        text = host.decode("latin-1").lower()
        parts = _HOST.fullmatch(text)
        if parts is None or parts[1] not in self._hosts:
            raise Problem(
                "host-refused",
                f"The service does not answer to the host {text[:200]!r}; start it with "
                "--host-name to add a name.",
            )
        if len(self._known_hosts) < 1000:
            self._known_hosts.add(host)

    def _refuse_doubles(self, call: Call) -> None:
        """Refuse several headers Host or Authorization: a proxy may have looked at another one."""
        names = [name for name, _ in call.scope["headers"]]
        for name in (b"host", b"authorization"):
            if names.count(name) > 1:
                raise Problem("malformed", f"The header {name.decode().title()} is there twice.")

    def _check_origin(self, call: Call) -> None:
        """Refuse what pages of other sites send."""
        headers = call.headers
        origin = headers.get(b"origin")
        site = headers.get(b"sec-fetch-site")
        if origin is None and site is None:
            return
        if call.scope["method"] in SAFE or self._is_allowed_origin(origin):
            return
        is_same_site = site in (None, b"same-origin", b"none")
        is_same_origin = origin is None or origin.partition(b"://")[2] == headers.get(b"host")
        if not (is_same_site and is_same_origin):
            raise Problem(
                "origin-refused",
                "A page of another origin sent this request; start the service with "
                "--allow-origin to let it.",
            )

    def _is_allowed_origin(self, origin: bytes | None) -> bool:
        return origin is not None and origin.decode("latin-1").lower() in self._origins

    def _find(self, call: Call) -> Endpoint:
        """The endpoint of an address."""
        scope = call.scope
        methods: set[str] = set()
        for endpoint in self._endpoints:
            match, found = endpoint.route.matches(scope)
            if match is Match.FULL:
                call.params = found["path_params"]
                call.policy = call.params.get("policy")
                return endpoint
            if match is Match.PARTIAL:
                methods |= endpoint.route.methods or set()

        if methods and scope["method"] == "OPTIONS" and self._origins:
            return self._preflight
        if methods:
            allow = ", ".join(sorted(methods))
            raise Problem("method-not-allowed", f"Allowed: {allow}.", headers={"Allow": allow})
        raise Problem("not-found", "Nothing has this address; /v1/openapi.json lists all.")

    async def _handled(self, call: Call, endpoint: Endpoint) -> Answer | Response:
        """Check who calls, read the body, and call the handler."""
        operation = endpoint.operation
        if operation.role is not None:
            self._admit(call, operation, operation.role)
        if endpoint.decoder is None:
            return await operation.handler(call)
        limits = self.service.settings.limits
        body = await call.read_json(limits.body, limits.body_seconds)
        return await operation.handler(call, decoded(endpoint.decoder, body))

    def _admit(self, call: Call, operation: Operation, role: str) -> None:
        """Check token, role and rate."""
        service = self.service
        service.require_ready()
        holder = service.holder(call)
        call.holder = holder
        holder.require(role, call.policy)
        if holder.policies is not None and not operation.is_policy_bound:
            raise Problem(
                "role-missing",
                "The token is bound to policies, and this is about all of them.",
                extra={"role": role},
            )
        if operation.rate is not None:
            call.rate_headers = service.rates.take(holder.id, operation.rate)

    # Answers

    async def _problem(self, call: Call, error: Exception) -> Answer:
        """An error as an answer."""
        problem = problem_of(error)
        if problem.slug == "not-leader":
            policy = str(problem.extra["policy"])
            with suppress(StoreError):
                store = self.service.store
                problem.extra["leader"] = await self.service.read(store.leader, policy)
        if problem.slug == "bug":
            self.service.journal.event(
                "error",
                "bug",
                request_id=call.request_id,
                error=type(error).__name__,
                detail=str(error),
                trace="".join(traceback.format_tb(error.__traceback__)),
            )
        body = problem.to_dict(call.scope["path"], call.request_id)
        headers = [
            (name.lower().encode("latin-1"), value.encode("latin-1", "replace"))
            for name, value in problem.headers.items()
        ]
        return Answer(body, problem.status, tuple(headers), PROBLEM)

    async def _send(self, call: Call, answer: Answer, send: Send) -> None:
        """Send an answer that is complete."""
        content = answer.content
        body = content if isinstance(content, bytes) else self._encoder.encode(content)
        headers = _together(answer.headers, self._common(call))
        if answer.status != 204:
            headers.append((b"content-type", answer.media_type))
            headers.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, call: Call, response: Response, send: Send) -> None:
        """Send an answer that is made as it goes."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = _together(message["headers"], self._common(call))
            await send(message)

        await response(call.scope, call.receive, send_with_headers)

    def _common(self, call: Call) -> Headers:
        """Headers that every answer has."""
        request_id = (b"x-request-id", call.request_id.encode("ascii"))
        headers = (request_id, *SECURITY, *call.rate_headers)
        if self._origins and self._is_allowed_origin(call.headers.get(b"origin")):
            return (*headers, *_cross_origin(call.headers[b"origin"]))
        return headers


def _together(own: Iterable[tuple[bytes, bytes]], common: Headers) -> list[tuple[bytes, bytes]]:
    """Headers of an answer, and the common ones that it does not set itself."""
    headers = list(own)
    if not headers:
        return list(common)
    names = {name for name, _ in headers}
    return headers + [header for header in common if header[0] not in names]


async def _preflight(call: Call) -> Answer:
    """Answer a browser that asks whether a page may call; only allowed origins get the headers."""
    return Answer(b"", 204)


async def _nowhere(call: Call) -> Answer:
    """Answer nothing; stands for addresses that are unknown, in the metrics."""
    raise Problem("not-found")


_NOWHERE = Operation("GET", "/", _nowhere, "Any unknown address.", role=None, rate=None)


_PREFLIGHT = Operation("OPTIONS", "/", _preflight, "Any address.", role=None, rate=None)


def _cross_origin(origin: bytes) -> Headers:
    """Headers that let a page of another origin call with a token; never with credentials."""
    return (
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE"),
        (
            b"access-control-allow-headers",
            b"authorization, content-type, idempotency-key, if-match, prefer, x-request-id",
        ),
        (
            b"access-control-expose-headers",
            b"etag, location, idempotency-replayed, retry-after, ratelimit, x-request-id",
        ),
        (b"access-control-max-age", b"600"),
        (b"vary", b"origin"),
    )


async def _refuse_protocol(scope: Scope, receive: Receive, send: Send) -> None:
    """Web sockets are closed at once; there is no life span, since the server starts the engine."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1003})
