"""The client against servers that misbehave, and every call of it against a real one."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from pastwise.errors import FileError, ParameterError, ServiceError, UnreachableError
from pastwise.service.client import Client
from tests.helpers.server import POLICY, Server, write_policy

DECISION = {
    "decision_id": "019a2f3e-7c1b-7d0a-9f55-3b1c0e4a7d21",
    "action": "heat",
    "propensity": 0.60605,
    "policy": "thermostat",
    "policy_version": 3,
    "evidence": 3840,
    "mode": "live",
    "support": {"records": 87, "similarity": 33.0, "weak": False},
    "outcome_due": "2026-11-01T21:00:00Z",
    "a_member_of_a_later_version": 1,
}


@dataclass
class Answer:
    """What the server does with one request; without a status it drops the connection."""

    status: int | None = None
    body: dict[str, object] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return json.dumps(self.body).encode()


def refusal(status: int, slug: str, **headers: str) -> Answer:
    """A problem as the service answers it."""
    body = {"type": f"/problems/{slug}", "title": slug, "status": status, "detail": "not now"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, body, {"Content-Type": "application/problem+json", **names})


DROP = Answer()
DECIDED = Answer(201, DECISION)


@dataclass
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    key: str | None
    token: str | None
    body: object


class Misbehaving(ThreadingHTTPServer):
    """Answers as scripted, one request after the other, and remembers what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script: list[Answer] = []
        self.seen: list[Seen] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One connection of the server."""

    protocol_version = "HTTP/1.1"
    server: Misbehaving

    def answer(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(content) if content else None
        key = self.headers.get("Idempotency-Key")
        token = self.headers.get("Authorization")
        self.server.seen.append(Seen(self.command, self.path, key, token, body))
        answer = self.server.script.pop(0)
        if answer.status is None:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = answer  # noqa: N815
    do_POST = answer  # noqa: N815

    def log_message(self, *args: object) -> None:
        """Nothing: the test prints what matters."""


@pytest.fixture
def server() -> Iterator[Misbehaving]:
    with Misbehaving() as running:
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def client(server: Misbehaving) -> Iterator[Client]:
    with Client(server.url, "pw_secret\n", first_wait=0.001) as made:
        yield made


def test_a_decision_is_returned_with_its_types(server: Misbehaving, client: Client) -> None:
    server.script = [DECIDED]
    decision = client.decide("thermostat", "cool", allowed=["heat", "idle"])
    assert decision.action == "heat"
    assert decision.propensity == 0.60605
    assert decision.support.records == 87
    (seen,) = server.seen
    assert (seen.method, seen.path) == ("POST", "/v1/policies/thermostat/decide")
    assert seen.token == "Bearer pw_secret"
    assert isinstance(seen.body, dict)
    assert seen.body["state"] == "cool"
    assert seen.body["allowed"] == ["heat", "idle"]


@pytest.mark.parametrize(
    "trouble",
    [
        DROP,
        refusal(429, "rate-limited", Retry_After="0"),
        Answer(502),
        refusal(503, "starting"),
        refusal(503, "store-unavailable"),
        refusal(503, "not-leader"),
        Answer(504),
        refusal(507, "disk-full"),
    ],
    ids=lambda answer: str(answer.status),
)
def test_a_passing_trouble_is_repeated_with_the_same_key(
    server: Misbehaving, client: Client, trouble: Answer
) -> None:
    server.script = [trouble, trouble, DECIDED]
    client.decide("thermostat", {"room": 17.5})
    first, *others = server.seen
    assert first.key
    assert others == [first, first]


def test_a_change_whose_answer_was_lost_is_not_repeated(
    server: Misbehaving, client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "policy.safetensors"
    file.write_bytes(b"{}")
    server.script = [refusal(503, "starting"), DROP]
    with pytest.raises(UnreachableError):
        client.add_version("thermostat", file)
    assert [seen.path for seen in server.seen] == ["/v1/policies/thermostat/versions?note="] * 2


def test_every_decision_has_a_key_of_its_own_unless_one_is_given(
    server: Misbehaving, client: Client
) -> None:
    server.script = [DECIDED, DECIDED, DECIDED]
    client.decide("thermostat", "cool")
    client.decide("thermostat", "cool")
    client.decide("thermostat", "cool", key="job-17")
    first, second, third = (seen.key for seen in server.seen)
    assert first != second
    assert third == "job-17"


def test_the_service_is_waited_for_as_it_requests(
    server: Misbehaving, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    server.script = [refusal(429, "rate-limited", Retry_After="7"), DECIDED]
    client.decide("thermostat", "cool")
    assert waits == [7.0]


def test_a_date_to_wait_for_is_not_read(server: Misbehaving, client: Client) -> None:
    date = "Fri, 31 Dec 2027 23:59:59 GMT"
    server.script = [refusal(503, "stopping", Retry_After=date), DECIDED]
    assert client.decide("thermostat", "cool").action == "heat"


def test_what_json_cannot_hold_is_not_sent(server: Misbehaving, client: Client) -> None:
    row: dict[str, Any] = {"room": {1, 2}, "door": object()}
    with pytest.raises(TypeError, match="object cannot be sent"):
        client.decide("thermostat", row)
    assert server.seen == []


def test_a_wait_that_is_too_long_is_not_begun(server: Misbehaving, client: Client) -> None:
    server.script = [refusal(503, "stopping", Retry_After="3600")]
    with pytest.raises(ServiceError) as error:
        client.decide("thermostat", "cool")
    assert error.value.retry_after == 3600
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("status", "slug"),
    [(401, "token-invalid"), (409, "outcome-conflict"), (500, "bug"), (503, "paused")],
)
def test_what_repeating_cannot_mend_is_raised_at_once(
    server: Misbehaving, client: Client, status: int, slug: str
) -> None:
    server.script = [refusal(status, slug)]
    with pytest.raises(ServiceError, match=f"{slug}: not now") as error:
        client.outcome("019a", "comfortable")
    assert (error.value.status, error.value.slug) == (status, slug)
    assert len(server.seen) == 1


def test_a_problem_keeps_its_pointers(server: Misbehaving, client: Client) -> None:
    answer = refusal(422, "unknown-label")
    parts = [{"pointer": "/state", "code": "unknown-label", "detail": "", "near": ["cool"]}]
    answer.body["errors"] = parts
    server.script = [answer]
    with pytest.raises(ServiceError) as error:
        client.decide("thermostat", "kool")
    assert error.value.members["errors"] == parts


def test_the_client_gives_up_after_its_retries(server: Misbehaving) -> None:
    server.script = [DROP] * 4
    with (
        Client(server.url, "pw_secret", retries=3, first_wait=0.001) as client,
        pytest.raises(UnreachableError, match="is the service running"),
    ):
        client.decide("thermostat", "cool")
    assert len(server.seen) == 4


def test_nobody_listens(server: Misbehaving) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with (
            Client(url, "pw_secret", retries=1, first_wait=0.001) as client,
            pytest.raises(ConnectionError, match=url),
        ):
            client.policy("thermostat")


@pytest.mark.parametrize("key", ["", "ü", "with space", "line\n", "k" * 201, 17])
def test_a_key_that_cannot_be_sent_is_refused(
    server: Misbehaving, client: Client, key: Any
) -> None:
    with pytest.raises(ParameterError, match="key must be 1 to 200 visible ASCII characters"):
        client.decide("thermostat", "cool", key=key)
    assert server.seen == []


@pytest.mark.parametrize("token", ["", " ", "pw_one\npw_two", "pw_\u00fc"])
def test_a_token_that_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(ParameterError, match="token must be one token"):
        Client("http://127.0.0.1:8765", token)


def test_a_policy_file_that_cannot_be_read_is_named(
    server: Misbehaving, client: Client, tmp_path: Path
) -> None:
    with pytest.raises(FileError, match=r"nothing\.safetensors: No such file"):
        client.add_version("thermostat", tmp_path / "nothing.safetensors")
    assert server.seen == []


def test_names_and_values_travel_as_they_are(server: Misbehaving, client: Client) -> None:
    server.script = [DECIDED, Answer(200, {"status": "learned", "evidence": 1})]
    row: dict[str, Any] = {"room": np.float64(17.5), "floor": np.int64(3), "name": None}
    client.decide("a/b ?", row)
    client.outcome("x/y", 18.0, reward=0.5)
    decide, outcome = server.seen
    assert decide.path == "/v1/policies/a%2Fb%20%3F/decide"
    assert isinstance(decide.body, dict)
    assert decide.body["state"] == {"room": 17.5, "floor": 3, "name": None}
    assert outcome.path == "/v1/decisions/x%2Fy/outcome"
    assert isinstance(outcome.body, dict)
    assert outcome.body["next_state"] == 18.0
    assert outcome.body["reward"] == 0.5


def test_every_call_works_on_a_real_service(tmp_path: Path) -> None:
    file = write_policy(tmp_path / "policy.safetensors")
    with Server(tmp_path / "data") as running, running.client(retries=0) as client:
        # A policy with two versions.
        assert client.create(POLICY).settings.mode == "shadow"
        assert client.add_version(POLICY, file, note="first & best").note == "first & best"
        assert client.add_version(POLICY, file).version == 2
        assert client.change(POLICY, version=2, mode="live").settings.version == 2

        # Decisions, and what became of them.
        decision = client.decide(POLICY, "cool", allowed=["heat", "idle"], episode="day 1")
        assert decision.action in ("heat", "idle")
        assert client.outcome(decision.decision_id, "comfortable").status == "learned"
        stored = client.decision(decision.decision_id)
        assert (stored.episode, stored.allowed) == ("day 1", ["heat", "idle"])
        assert stored.outcome is not None
        assert stored.outcome.next_state == "comfortable"
        other = client.decide(POLICY, "cool", context={"room": 3})
        assert client.taken(other.decision_id, "vent", by="operator").taken == "vent"
        assert client.cancel(other.decision_id).status == "cancelled"
        assert client.cancel(other.decision_id).status == "cancelled"
        assert client.decide(POLICY, "cool", dry_run=True).decision_id == ""

        # Looking at it.
        rule = client.rule(POLICY, "cool").rule
        assert sum(rule.values()) == pytest.approx(1.0)
        assert client.policy(POLICY).evidence == 1
        job = client.finished(client.replay(POLICY).id)
        assert job.result is not None, job.problem
        assert job.result["equal"] is True
        assert client.rollback(POLICY, 1, reason="a test").settings.version == 1
        with pytest.raises(ServiceError, match=r"^unknown label 'comfortabel'; did you mean"):
            client.decide(POLICY, "comfortabel")


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(ParameterError, match="http"):
        Client("localhost:8765", "pw_secret")
