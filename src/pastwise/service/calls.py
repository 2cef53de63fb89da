"""One request on its way through the service: how it is read, and how it is answered.

An `Operation` states what an address does: its handler, the role and the rate that it needs, and
the types of its body, query and answer. The gate enforces these, and the OpenAPI document is made
from them.
"""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope

from pastwise.service.problems import Problem, ProblemPart
from pastwise.service.tokens import Holder
from pastwise.service.types import Request

if TYPE_CHECKING:
    from pastwise.service.app import Service

JSON = b"application/json"
PROBLEM = b"application/problem+json"
OCTETS = "application/octet-stream"

POLICY = "/v1/policies/{policy}"
DECISION = "/v1/decisions/{id}"
"""Addresses of a policy and of a decision."""

RateKind = Literal["decide", "outcome", "write", "read"]
Headers = tuple[tuple[bytes, bytes], ...]
Query = TypeVar("Query", bound=Request)


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class Answer(NamedTuple):
    """An answer: a struct that is sent as JSON, or bytes as they are."""

    content: object
    status: int = 200
    headers: Headers = ()
    media_type: bytes = JSON


class Operation(NamedTuple):
    """What a method does at an address.

    Attributes
    ----------
    role : str, optional
        The role that the token needs; None where no token is needed.
    rate : str, optional
        The kind of request for rate limits.
    body : type or str, optional
        The type of a JSON body, or ``"upload"`` for a body that the handler reads as a stream.
    or_json : type, optional
        With an upload: the type of a JSON body that the handler takes instead.
    query : type, optional
        The type of the query's parameters.
    answer : type or str
        The type of the JSON answer, or the media type of another one.
    later : type, optional
        The type of the answer 202 where the usual one takes too long.
    is_policy_bound : bool
        Whether a token that is bound to policies may use it: the address names a policy, or the
        handler checks by itself.
    """

    method: str
    path: str
    handler: Callable[..., Awaitable[Answer | Response]]
    summary: str
    role: str | None = "read"
    rate: RateKind | None = "read"
    body: type | Literal["upload"] | None = None
    query: type[Request] | None = None
    answer: Any = None
    status: int = 200
    is_policy_bound: bool = True
    problems: tuple[str, ...] = ()
    or_json: type | None = None
    later: type | None = None


class Call:
    """A request: what the gate found out about it, and what handlers add for the journal."""

    __slots__ = (
        "decision_id",
        "headers",
        "holder",
        "params",
        "policy",
        "rate_headers",
        "receive",
        "request_id",
        "scope",
        "service",
        "version",
    )

    def __init__(self, scope: Scope, receive: Receive, service: Service) -> None:
        self.scope = scope
        self.receive = receive
        self.service = service
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.params: dict[str, str] = {}
        self.holder: Holder = NOBODY
        self.request_id = ""
        self.rate_headers: Headers = ()
        self.policy: str | None = None
        self.version: int | None = None
        self.decision_id: str | None = None

    @property
    def who(self) -> str:
        """Who calls, for the audit trail."""
        holder = self.holder
        return holder.id if holder.id == holder.name else f"{holder.name} ({holder.id})"

    def header(self, name: bytes) -> str | None:
        """A header of the request as text."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def query(self, kind: type[Query]) -> Query:
        """The parameters of the query."""
        text = self.scope["query_string"].decode("latin-1")
        if "%00" in text:
            raise Problem("malformed", "Text with the character NUL (%00) cannot be stored.")
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=50)
            return msgspec.convert(dict(pairs), kind, strict=False)
        except msgspec.ValidationError as error:
            raise validation_problem(error, kind, in_query=True) from None
        except ValueError as error:
            raise Problem("malformed", f"The query cannot be read: {error}") from None

    async def while_admitted(self, frames: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """Frames of a stream, until the token of the request is deleted or expires."""
        async with aclosing(frames):
            async for frame in frames:
                try:
                    self.service.holder(self)
                except Problem:
                    return
                yield frame

    def idempotency_key(self) -> str | None:
        """The header Idempotency-Key; required where the token says so."""
        key = self.headers.get(b"idempotency-key")
        if key is None:
            if self.holder.needs_key:
                raise Problem(
                    "idempotency-key-missing", "Send a header Idempotency-Key with each decision."
                )
            return None
        if not _KEY.fullmatch(key):
            raise Problem("malformed", "Idempotency-Key must be 1 to 200 visible ASCII characters.")
        return key.decode("ascii")

    def if_match(self, etag: str) -> str:
        """The ETag of If-Match; of several ones the current one, if it is among them."""
        header = self.header(b"if-match")
        if header is None:
            raise Problem(
                "precondition-required", "Send If-Match with the ETag that you have read."
            )
        tags = [tag.strip().strip('"') for tag in header.split(",")]
        return etag if etag in tags or "*" in tags else tags[0]

    def refuse_encoding(self) -> None:
        """Refuse compressed bodies: a small one can become a huge one."""
        encoding = self.headers.get(b"content-encoding")
        if encoding is not None and encoding.lower() != b"identity":
            raise Problem("unsupported-kind", "Send the body without Content-Encoding.")

    def content_length(self) -> int | None:
        """The length that the request states; None if it does not."""
        text = self.headers.get(b"content-length")
        if text is None:
            return None
        if not text.isdigit() or len(text) > 18:
            raise Problem("malformed", "Content-Length is no number.")
        return int(text)

    def refuse_length(self, limit: int, option: str) -> None:
        """Refuse a body whose length is stated to be above a limit, before it is read."""
        length = self.content_length()
        if length is not None and length > limit:
            raise too_large(limit, option)

    async def chunks(self, limit: int, option: str) -> AsyncIterator[bytes]:
        """The body as it arrives. What is counted is what arrives, not what was stated."""
        self.refuse_encoding()
        self.refuse_length(limit, option)
        size = 0
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(chunk)
            if size > limit:
                raise too_large(limit, option)
            if chunk:
                yield chunk

    async def read(self, limit: int, option: str) -> bytes:
        """The whole body."""
        return b"".join([chunk async for chunk in self.chunks(limit, option)])

    async def read_json(self, limit: int, seconds: float) -> bytes:
        """A body of JSON, within a time."""
        self.refuse_encoding()
        self.refuse_length(limit, BODY_LIMIT)
        kind = self.headers.get(b"content-type")
        if kind is not None and kind != JSON and not _JSON_KIND.match(kind):
            raise Problem("unsupported-kind", "Send JSON, with Content-Type: application/json.")

        try:
            async with asyncio.timeout(seconds):
                return await self.read(limit, BODY_LIMIT)
        except TimeoutError:
            raise Problem("too-slow", f"The body did not arrive in {seconds:g} s.") from None


NOBODY = Holder("", "", frozenset())

BODY_LIMIT = "a limit of JSON bodies"

_KEY = re.compile(rb"[\x21-\x7e]{1,200}")
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_JSON_KIND = re.compile(rb"application/json\s*(;|$)", re.IGNORECASE)


def too_large(limit: int, option: str) -> Problem:
    """A body above a limit; the connection is closed, since the rest of the body is not read."""
    detail = f"At most {limit:,} bytes ({option})."
    return Problem("too-large", detail, extra={"limit": limit}, headers={"Connection": "close"})


# Errors of msgspec as problems.

_PLACE = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_FIELD = re.compile(r"^Object (?:contains unknown|missing required) field `(.*?)`")


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """A body as a struct."""
    if b"\\u0000" in body and _NUL.search(body):
        raise Problem("malformed", "Text with the character NUL (\\u0000) cannot be stored.")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise validation_problem(error, decoder.type) from None
    except RecursionError:
        raise Problem("malformed", "The body is nested too deeply.") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise Problem("malformed", f"The body is not JSON in UTF-8: {error}") from None


def validation_problem(
    error: msgspec.ValidationError, kind: type, in_query: bool = False
) -> Problem:
    """What msgspec says about a member, with a pointer to it."""
    text = str(error)
    place = _PLACE.search(text)
    message = text if place is None else text[: place.start()]
    steps = [] if place is None else [a or b for a, b in _STEP.findall(place[1]) if a or b]

    # A field that is unknown or missing is named in the message.
    field = _FIELD.match(message)
    if field is not None:
        steps.append(field[1])
    pointer = "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)
    if in_query:
        pointer = "?" + "".join(steps)

    is_unknown = field is not None and "unknown" in message
    slug = "unknown-member" if is_unknown else "invalid-value"
    near = _near(field[1], kind) if field is not None and is_unknown else ()
    part = ProblemPart(pointer, slug, message, near)
    return Problem(slug, f"{message} ({pointer})" if pointer else message, errors=[part])


def _near(name: str, kind: type) -> tuple[str, ...]:
    """Members of a struct with a similar name."""
    names = getattr(kind, "__struct_encode_fields__", ())
    return tuple(difflib.get_close_matches(name, names, n=2))
