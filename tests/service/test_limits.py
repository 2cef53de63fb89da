"""Limits of requests: sizes, depth, speed, rates, and bodies that lie about themselves."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from pastwise.service.rates import Rate
from pastwise.service.settings import Limits
from tests.helpers.engines import room_file
from tests.helpers.services import QUICK, ROOM, InProcess, slug_of

DECIDE = f"/v1/policies/{ROOM}/decide"
LIMITS = Limits(body=20_000, policy_file=50_000, upload=100_000, body_seconds=0.2)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("service"), limits=LIMITS) as service:
        yield service.with_policy()


def send(
    service: InProcess, path: str, messages: list[dict[str, Any]], headers: dict[str, str]
) -> tuple[int, dict[str, Any]]:
    """Send a request as these messages of ASGI; then the client waits. Status and body."""
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    raw += [(b"host", b"localhost"), (b"authorization", f"Bearer {service.admin}".encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": raw,
        "root_path": "",
    }
    waiting = iter(messages)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        for message in waiting:
            return {"type": "http.request", **message}
        await asyncio.sleep(60)
        raise AssertionError("nobody waits that long")

    async def collect(message: Any) -> None:
        sent.append(message)

    service.run(service.app(scope, receive, collect))
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_large_body_is_refused_before_it_is_read(service: InProcess) -> None:
    status, problem = send(service, DECIDE, [], {"Content-Length": "20001"})
    assert status == 413
    assert problem["limit"] == LIMITS.body


def test_a_body_without_a_length_is_counted_while_it_arrives(service: InProcess) -> None:
    chunk = {"body": b" " * 6000, "more_body": True}
    status, problem = send(service, DECIDE, [chunk] * 4, {})
    assert status == 413
    assert problem["type"] == "/problems/too-large"


def test_a_body_that_is_longer_than_it_says(service: InProcess) -> None:
    chunks = [{"body": b" " * 6000, "more_body": True}] * 4
    status, problem = send(service, DECIDE, chunks, {"Content-Length": "10"})
    assert status == 413
    assert problem["type"] == "/problems/too-large"


def test_a_body_that_does_not_arrive(service: InProcess) -> None:
    part = {"body": b'{"state": ', "more_body": True}
    for messages in ([], [part]):
        status, problem = send(service, DECIDE, messages, {"Content-Length": "100"})
        assert status == 408
        assert problem["type"] == "/problems/too-slow"


def test_a_client_that_goes_away_gets_no_answer(service: InProcess) -> None:
    gone: dict[str, Any] = {"type": "http.disconnect"}
    for messages in ([gone], [{"body": b'{"state": ', "more_body": True}, gone]):
        with pytest.raises(IndexError):  # nothing was sent
            send(service, DECIDE, messages, {})


def test_lengths_that_are_no_numbers(service: InProcess) -> None:
    for length in ("-1", "1e3", "9" * 30):
        status, problem = send(service, DECIDE, [], {"Content-Length": length})
        assert (status, problem["type"]) == (400, "/problems/malformed")


def test_web_sockets_are_closed(service: InProcess) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def collect(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "headers": []}
    service.run(service.app(scope, receive, collect))
    assert [message["type"] for message in sent] == ["websocket.close"]


def test_compressed_bodies_are_refused_unread(service: InProcess) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    assert len(bomb) < LIMITS.body
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    for path in (DECIDE, f"/v1/policies/{ROOM}/versions", "/v1/logs"):
        answer = service.call("POST", path, headers=headers, content=bomb)
        assert slug_of(answer) == "unsupported-kind"
    plain = {"Content-Encoding": "identity", "Content-Type": "application/json"}
    body = b'{"state": "cold"}'
    assert service.call("POST", DECIDE, headers=plain, content=body).status_code == 201


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/json5"])
def test_bodies_must_be_json(service: InProcess, kind: str) -> None:
    body = b'{"state": "cold"}'
    answer = service.call("POST", DECIDE, headers={"Content-Type": kind}, content=body)
    assert slug_of(answer) == "unsupported-kind"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"state=cold",
        b'{"state": "\xff"}',
        b'{"state": NaN}',
        b'{"state": "cold", "context": {"a": ' + b"[" * 1500 + b"]" * 1500 + b"}}",
    ],
)
def test_what_is_no_json(service: InProcess, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = service.call("POST", DECIDE, headers=headers, content=body)
    assert slug_of(answer) == "malformed"


@pytest.mark.parametrize("body", [b'"\\u0000"', b'"\\\\\\u0000"', b'{"room": "a\\u0000"}'])
def test_text_that_a_database_cannot_hold(service: InProcess, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    content = b'{"state": "cold", "episode": %b}' % body
    answer = service.call("POST", DECIDE, headers=headers, content=content)
    assert slug_of(answer) == "malformed"
    assert "NUL" in answer.json()["detail"]
    listing = f"/v1/policies/{ROOM}/decisions?state=%00"
    assert slug_of(service.call("GET", listing)) == "malformed"


def test_a_backslash_before_u0000_is_text_as_any_other(service: InProcess) -> None:
    headers = {"Content-Type": "application/json"}
    content = b'{"state": "cold", "episode": "\\\\u0000"}'
    assert service.call("POST", DECIDE, headers=headers, content=content).status_code == 201


def nested(levels: int) -> Any:
    """Arrays in arrays."""
    return [] if levels == 1 else [nested(levels - 1)]


def test_depth_and_size_of_a_context(service: InProcess) -> None:
    assert service.decide(context={"a": nested(LIMITS.depth - 1)})
    deep = service.call("POST", DECIDE, {"state": "cold", "context": {"a": nested(LIMITS.depth)}})
    assert slug_of(deep) == "malformed"
    assert deep.json()["errors"][0]["pointer"] == "/context"
    assert service.decide(context={"a": "x" * 4000})
    large = service.call("POST", DECIDE, {"state": "cold", "context": {"a": "x" * 4096}})
    assert slug_of(large) == "too-large"
    many = {"items": [{"state": "cold"}, {"state": "cold", "context": {"a": "x" * 4096}}]}
    answer = service.call("POST", f"{DECIDE}-many", many)
    assert answer.json()["errors"][0]["pointer"] == "/items/1/context"


def test_lengths_of_labels_and_lists(service: InProcess) -> None:
    long = service.call("POST", DECIDE, {"state": "x" * 1025})
    assert slug_of(long) == "invalid-value"
    many = service.call("POST", f"{DECIDE}-many", {"items": [{"state": "cold"}] * 1001})
    assert slug_of(many) in ("invalid-value", "too-large")


def test_policy_files_and_uploads_have_limits_of_their_own(service: InProcess) -> None:
    path = f"/v1/policies/{ROOM}/versions"
    large = service.call("POST", path, content=b"x" * 50_001)
    assert slug_of(large) == "too-large"
    assert "--max-policy-file" in large.json()["detail"]
    assert slug_of(service.call("POST", path, content=b"")) == "malformed"
    assert slug_of(service.call("POST", path, content=b"x" * 100)) == "policy-file-refused"
    log = service.call("POST", "/v1/logs", content=b"a,b\n" + b"1,2\n" * 30_000)
    assert slug_of(log) == "too-large"
    assert "--max-upload" in log.json()["detail"]


def test_logs_are_kept_as_they_were_sent(service: InProcess) -> None:
    content = b"room,did\ncold,heat\nmild,idle\n"
    answer = service.call("POST", "/v1/logs?name=rooms.csv", content=content)
    assert answer.status_code == 201
    view = answer.json()
    assert view["name"] == "rooms.csv"
    assert view["kind"] == "csv"
    assert view["bytes"] == len(content)
    assert service.call("GET", answer.headers["location"]).json() == view
    assert service.call("GET", "/v1/logs").json()["items"] == [view]
    assert service.call("DELETE", answer.headers["location"]).status_code == 204
    assert slug_of(service.call("GET", answer.headers["location"])) == "not-found"
    assert slug_of(service.call("GET", "/v1/logs/..%2Fadmin")) == "not-found"
    policy = service.call("POST", "/v1/logs", content=room_file())
    assert slug_of(policy) == "unsupported-kind"
    assert service.call("GET", "/v1/logs").json()["items"] == []


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "?limit"),
        ("limit=501", "?limit"),
        ("limit=many", "?limit"),
        ("status=lost", "?status"),
        ("since=yesterday", "?since"),
        ("colour=red", "?colour"),
    ],
)
def test_queries_are_checked(service: InProcess, query: str, pointer: str) -> None:
    answer = service.call("GET", f"/v1/policies/{ROOM}/decisions?{query}")
    assert slug_of(answer) in ("invalid-value", "unknown-member")
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_a_state_in_a_query_that_is_nested_too_deeply(service: InProcess) -> None:
    state = '{"room":' + "[" * 1010
    answer = service.call("GET", f"/v1/policies/{ROOM}/rule?{urlencode({'state': state})}")
    assert slug_of(answer) == "invalid-value"


def test_a_time_after_the_last_year(service: InProcess) -> None:
    expires = "9999-12-31T23:59:59-12:00"
    token = {"name": "eternal", "roles": ["read"], "expires": expires}
    answer = service.call("POST", "/v1/tokens", token)
    assert slug_of(answer) == "invalid-value"
    assert answer.json()["errors"][0]["pointer"] == "/expires"


def test_a_query_of_too_many_parameters(service: InProcess) -> None:
    query = "&".join(f"a{number}=1" for number in range(60))
    answer = service.call("GET", f"/v1/policies/{ROOM}/decisions?{query}")
    assert slug_of(answer) == "malformed"


def test_rates_by_token(tmp_path: Path) -> None:
    rates = {**QUICK, "decide": Rate(0.01, 3), "read": Rate(0.01, 2)}
    with InProcess(tmp_path, rates=rates) as service:
        service.with_policy()
        token = service.token("decide", "read")
        answers = [service.call("POST", DECIDE, {"state": "cold"}, token=token) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [201, 201, 201, 429]
        assert answers[0].headers["ratelimit"] == '"decide";r=2'
        assert answers[0].headers["ratelimit-policy"] == '"decide";q=3;w=300'
        assert slug_of(answers[3]) == "rate-limited"
        assert int(answers[3].headers["retry-after"]) > 0

        # Reading and other tokens have their own.
        assert service.call("GET", f"/v1/policies/{ROOM}", token=token).status_code == 200
        assert service.decide()

        # More decisions than the burst need a full bucket, and leave it empty for longer.
        other = service.token("decide")
        more = {"items": [{"state": "cold"}] * 5}
        many = service.call("POST", f"{DECIDE}-many", more, token=other)
        assert many.status_code == 200
        assert many.headers["ratelimit"] == '"decide";r=0'
        refused = service.call("POST", f"{DECIDE}-many", more, token=other)
        assert int(refused.headers["retry-after"]) > 200

        # Many decisions at once count one by one.
        items = {"items": [{"state": "cold"}] * 3}
        many = service.call("POST", f"{DECIDE}-many", items)
        assert slug_of(many) == "rate-limited"
