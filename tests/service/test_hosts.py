"""Hosts and origins: who the service listens to, and what it lets browsers do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.services import ROOM, InProcess, slug_of

POLICY = f"/v1/policies/{ROOM}"
PAGE = "https://pages.example"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("service")
    with InProcess(folder, host_names=("Decide.example",)) as service:
        yield service.with_policy()


@pytest.fixture(scope="module")
def open_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    folder = tmp_path_factory.mktemp("service")
    with InProcess(folder, allow_origins=(PAGE,)) as service:
        yield service.with_policy()


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8765",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]",
        "[::1]:8765",
        "decide.example",
        "decide.example:443",
    ],
)
def test_known_hosts(service: InProcess, host: str) -> None:
    answer = service.call("GET", "/v1/policies", headers={"Host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "127.0.0.1:8765:9",
        "127.0.0.1:port",
        "user@127.0.0.1",
        "[::2]",
        "[::1",
        "::1",
        "2130706433",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/v1/policies", "/livez", "/problems/stale"])
def test_other_hosts_are_refused_everywhere(service: InProcess, host: str, path: str) -> None:
    answer = service.call("GET", path, headers={"Host": host})
    assert slug_of(answer) == "host-refused"
    assert "--host-name" in answer.json()["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": PAGE},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://127.0.0.1:8765", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_pages_of_other_origins_change_nothing(service: InProcess, headers: dict[str, str]) -> None:
    answer = service.call("POST", f"{POLICY}/decide", {"state": "cold"}, headers=headers)
    assert slug_of(answer) == "origin-refused"
    assert not any(name.startswith("access-control") for name in answer.headers)
    read = service.call("GET", POLICY, headers=headers)
    assert read.status_code == 200
    assert not any(name.startswith("access-control") for name in read.headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:8765"},
        {"Origin": "https://127.0.0.1:8765", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_own_pages_and_address_bars_may(service: InProcess, headers: dict[str, str]) -> None:
    answer = service.call("POST", f"{POLICY}/decide", {"state": "cold"}, headers=headers)
    assert answer.status_code == 201


def test_an_allowed_origin_may_call_with_a_token(open_service: InProcess) -> None:
    headers = {"Origin": PAGE, "Sec-Fetch-Site": "cross-site"}
    answer = open_service.call("POST", f"{POLICY}/decide", {"state": "cold"}, headers=headers)
    assert answer.status_code == 201
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["vary"] == "origin"

    asked = {**headers, "Access-Control-Request-Method": "POST"}
    preflight = open_service.call("OPTIONS", f"{POLICY}/decide", token=None, headers=asked)
    assert preflight.status_code == 204
    assert "authorization" in preflight.headers["access-control-allow-headers"]

    other = open_service.call(
        "POST", f"{POLICY}/decide", {"state": "cold"}, headers={"Origin": "https://evil.example"}
    )
    assert slug_of(other) == "origin-refused"


def test_without_allowed_origins_there_is_no_preflight(service: InProcess) -> None:
    answer = service.call("OPTIONS", f"{POLICY}/decide", token=None, headers={"Origin": PAGE})
    assert slug_of(answer) == "method-not-allowed"
    assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("path", ["/v1/policies", "/livez", "/nowhere", "/problems/stale"])
def test_security_headers_on_every_answer(service: InProcess, path: str) -> None:
    headers = service.call("GET", path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-request-id"]


def test_request_ids_are_taken_over_if_they_are_harmless(service: InProcess) -> None:
    good = service.call("GET", "/v1/policies", headers={"X-Request-Id": "trace-7/a=b"})
    assert good.headers["x-request-id"] == "trace-7/a=b"
    for bad in ("a b", "x" * 200, "<script>"):
        answer = service.call("GET", "/nowhere", headers={"X-Request-Id": bad})
        assert answer.headers["x-request-id"] != bad
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert '"request_id": "trace-7/a=b"' in service.journal.getvalue()


def test_labels_stay_out_of_the_journal(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        service.with_policy()
        service.call("POST", f"{POLICY}/decide", {"state": "private-state"})
        service.decide("cold", context={"name": "private-name"})
        journal = service.journal.getvalue()
    assert "/v1/policies/{policy}/decide" in journal
    assert "private" not in journal
    assert "cold" not in journal


def test_labels_are_in_the_journal_on_request(tmp_path: Path) -> None:
    with InProcess(tmp_path, log_data=True) as service:
        service.with_policy()
        decision = service.decide("cold")
        path = f"/v1/decisions/{decision['decision_id']}/outcome"
        service.call("POST", path, {"next_state": "mild"})
        lines = [json.loads(line) for line in service.journal.getvalue().splitlines()]
    [made] = [line for line in lines if line["event"] == "decision"]
    assert made["state"] == "cold"
    assert made["action"] == decision["action"]
    [came] = [line for line in lines if line["event"] == "outcome"]
    assert came["next_state"] == "mild"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_the_address_that_it_listens_on_is_a_name_unless_it_is_all(
    tmp_path: Path, host: str
) -> None:
    with InProcess(tmp_path, host=host) as service:
        shown = service.service.settings.host_in_url
        answer = service.call("GET", "/livez", headers={"Host": f"{shown}:8765"})
    assert answer.status_code == (200 if host == "192.0.2.7" else 403)
