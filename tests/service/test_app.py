"""The service through its gate: the life of a policy and of its decisions."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from pastwise.errors import ParameterError, StoreError
from tests.helpers.engines import room_file
from tests.helpers.services import ROOM, InProcess, slug_of

POLICY = f"/v1/policies/{ROOM}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("service")) as service:
        yield service.with_policy()


def test_decision_and_outcome(service: InProcess) -> None:
    answer = service.call("POST", f"{POLICY}/decide", {"state": "cold", "episode": "e1"})
    assert answer.status_code == 201
    decision = answer.json()
    assert decision["action"] in ("heat", "idle", "vent")
    assert 0 < decision["propensity"] <= 1
    assert decision["policy"] == ROOM
    assert decision["policy_version"] == 1
    assert decision["mode"] == "live"
    assert answer.headers["location"] == f"/v1/decisions/{decision['decision_id']}"

    path = answer.headers["location"]
    first = service.call("POST", f"{path}/outcome", {"next_state": "mild"})
    assert first.json() == {"status": "learned", "evidence": decision["evidence"] + 1}
    assert "idempotency-replayed" not in first.headers
    again = service.call("POST", f"{path}/outcome", {"next_state": "mild"})
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    other = service.call("POST", f"{path}/outcome", {"next_state": "warm"})
    assert slug_of(other) == "outcome-conflict"
    assert other.json()["first"]["next_state"] == "mild"

    stored = service.call("GET", path).json()
    assert stored["episode"] == "e1"
    assert stored["outcome"]["next_state"] == "mild"
    assert stored["propensity"] == decision["propensity"]


def test_idempotency_key_gives_the_same_decision(service: InProcess) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = service.call("POST", f"{POLICY}/decide", {"state": "warm"}, headers=headers)
    again = service.call("POST", f"{POLICY}/decide", {"state": "warm"}, headers=headers)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    other = service.call("POST", f"{POLICY}/decide", {"state": "cold"}, headers=headers)
    assert slug_of(other) == "idempotency-key-reused"
    odd = service.call(
        "POST", f"{POLICY}/decide", {"state": "cold"}, headers={"Idempotency-Key": "a b"}
    )
    assert slug_of(odd) == "malformed"


def test_dry_run_stores_nothing(service: InProcess) -> None:
    before = service.call("GET", POLICY).json()["seq"]
    answer = service.call("POST", f"{POLICY}/decide", {"state": "cold", "dry_run": True})
    assert answer.status_code == 200
    assert answer.json()["decision_id"] == ""
    assert service.call("GET", POLICY).json()["seq"] == before


def test_decide_many_answers_item_by_item(service: InProcess) -> None:
    items = [{"state": "cold"}, {"state": "nowhere"}, {"state": "mild", "allowed": ["vent"]}]
    answer = service.call("POST", f"{POLICY}/decide-many", {"items": items})
    assert answer.status_code == 200
    first, second, third = answer.json()["items"]
    assert first["problem"] is None
    assert second["problem"]["type"] == "/problems/unknown-label"
    assert third["decision"]["action"] == "vent"
    assert third["decision"]["propensity"] == 1.0


def test_decide_many_says_that_it_was_made_before(service: InProcess) -> None:
    body = {"items": [{"state": "cold"}, {"state": "nowhere"}]}
    headers = {"Idempotency-Key": "batch"}
    first = service.call("POST", f"{POLICY}/decide-many", body, headers=headers)
    again = service.call("POST", f"{POLICY}/decide-many", body, headers=headers)
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()


def test_decide_many_is_refused_as_a_whole_if_nothing_is_decided(service: InProcess) -> None:
    body = {"items": [{"state": "cold"}]}
    service.call("PATCH", POLICY, {"mode": "paused"}, headers={"If-Match": "*"})
    answer = service.call("POST", f"{POLICY}/decide-many", body)
    service.call("PATCH", POLICY, {"mode": "live"}, headers={"If-Match": "*"})
    assert (answer.status_code, slug_of(answer)) == (503, "paused")


def test_jobs_need_a_version_that_there_is(service: InProcess) -> None:
    for path in ("evaluations", "learn"):
        answer = service.call("POST", f"{POLICY}/{path}", {"version": 77})
        assert slug_of(answer) == "not-found"


@pytest.mark.parametrize("number", [0, -1, 2**31, 10**30])
def test_impossible_numbers_of_versions_are_refused(service: InProcess, number: int) -> None:
    anything = {"If-Match": "*"}
    change = service.call("PATCH", POLICY, {"version": number}, headers=anything)
    assert slug_of(change) == "invalid-value"
    for path, body in (
        ("rollback", {"to": number}),
        ("evaluations", {"version": number}),
        ("learn", {"version": number}),
        ("replay", {"to_seq": 10**30}),
    ):
        assert slug_of(service.call("POST", f"{POLICY}/{path}", body)) == "invalid-value"


def test_a_line_break_at_the_end_belongs_to_a_text(service: InProcess) -> None:
    """An `on_unseen` that is almost "refuse" must not answer by the prior."""
    change = service.call("PATCH", POLICY, {"on_unseen": "refuse\n"}, headers={"If-Match": "*"})
    assert slug_of(change) == "invalid-value"
    token = {"name": "x", "roles": ["read"], "policies": [f"{ROOM}\n"]}
    assert slug_of(service.call("POST", "/v1/tokens", token)) == "invalid-value"
    seed = f"{POLICY}/versions?seed={'0' * 32}%0A"
    assert slug_of(service.call("POST", seed, content=room_file())) == "invalid-value"


def test_taken_and_cancelled(service: InProcess) -> None:
    path = f"/v1/decisions/{service.decide()['decision_id']}"
    taken = service.call("POST", f"{path}/taken", {"action": "vent", "by": "operator"})
    assert taken.json()["taken"] == "vent"
    path = f"/v1/decisions/{service.decide()['decision_id']}"
    assert service.call("POST", f"{path}/cancel").json()["status"] == "cancelled"
    late = service.call("POST", f"{path}/outcome", {"next_state": "mild"})
    assert slug_of(late) == "decision-cancelled"


def test_rule_is_what_decisions_are_sampled_from(service: InProcess) -> None:
    rule = service.call("GET", f"{POLICY}/rule?state=cold").json()
    assert sum(rule["rule"].values()) == pytest.approx(1.0)
    decision = service.decide("cold")
    assert decision["propensity"] == rule["rule"][decision["action"]]


def test_a_rule_for_raw_values(service: InProcess) -> None:
    by_label = service.call("GET", f"{POLICY}/rule?state=cold").json()
    row = quote('{"room": "cold"}')
    assert service.call("GET", f"{POLICY}/rule?state={row}").json() == by_label
    nested = quote('{"room": ["cold"]}')
    assert slug_of(service.call("GET", f"{POLICY}/rule?state={nested}")) == "invalid-value"
    for text in ('{"room": ', '{"room": "\\ud800"}', '{"room": NaN}'):
        path = f"{POLICY}/rule?state={quote(text)}"
        assert slug_of(service.call("GET", path)) == "unknown-label"


def test_pages_of_decisions(service: InProcess) -> None:
    for _ in range(3):
        service.decide("warm")
    found = []
    cursor = ""
    while True:
        answer = service.call("GET", f"{POLICY}/decisions?state=warm&limit=2{cursor}").json()
        found += [item["seq"] for item in answer["items"]]
        if answer["next"] is None:
            break
        cursor = f"&cursor={answer['next']}"
    assert len(found) >= 3
    assert found == sorted(set(found), reverse=True)


def test_settings_change_only_from_the_state_that_was_read(service: InProcess) -> None:
    answer = service.call("GET", POLICY)
    etag = answer.headers["etag"]
    assert slug_of(service.call("PATCH", POLICY, {"floor": 0.1})) == "precondition-required"
    stale = service.call("PATCH", POLICY, {"floor": 0.1}, headers={"If-Match": '"nothing"'})
    assert slug_of(stale) == "stale"
    changed = service.call("PATCH", POLICY, {"floor": 0.1}, headers={"If-Match": etag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != etag
    assert min(service.call("GET", f"{POLICY}/rule?state=cold").json()["rule"].values()) >= 0.1
    back = service.call("PATCH", POLICY, {"floor": 0.0}, headers={"If-Match": "*"})
    assert back.json()["settings"]["floor"] == 0.0


def test_versions_are_what_was_uploaded(service: InProcess) -> None:
    content = room_file(seed=1)
    seed = "00112233445566778899aabbccddeeff"
    path = f"{POLICY}/versions?note=second&despite=alarm&seed={seed}"
    answer = service.call("POST", path, content=content)
    assert answer.status_code == 201, answer.text
    view = answer.json()
    assert view["sha256"] == hashlib.sha256(content).hexdigest()
    assert view["note"] == "second"
    assert view["despite"] == ["alarm"]

    location = answer.headers["location"]
    assert service.call("GET", location).json() == view
    assert service.call("GET", f"{location}/artefact").content == content
    listed = service.call("GET", f"{POLICY}/versions").json()["items"]
    assert listed[-1] == view

    # Serve it, and go back.
    number = view["version"]
    used = service.call("PATCH", POLICY, {"version": number}, headers={"If-Match": "*"})
    assert used.json()["settings"]["version"] == number
    back = service.call("POST", f"{POLICY}/rollback", {"to": 1, "reason": "worse"})
    assert back.json()["settings"]["version"] == 1


def test_monitor_counts_what_happened(service: InProcess) -> None:
    before = service.call("GET", f"{POLICY}/monitor").json()
    decision = service.decide("cold")
    path = f"/v1/decisions/{decision['decision_id']}/outcome"
    service.call("POST", path, {"next_state": "mild"})
    view = service.call("GET", f"{POLICY}/monitor").json()
    assert view["decisions"] == before["decisions"] + 1
    assert view["change"]["outcomes"] == before["change"]["outcomes"] + 1
    assert view["change"]["alarm"] is False
    counts = {each["action"]: each["in_time"] for each in view["days"][-1]["actions"]}
    assert counts[decision["action"]] >= 1
    empty = service.call(
        "GET", f"{POLICY}/monitor?from=2020-01-01T00:00:00Z&to=2019-01-01T00:00:00Z"
    )
    assert slug_of(empty) == "invalid-value"
    odd = service.call("GET", f"{POLICY}/monitor?from=now")
    assert odd.json()["errors"][0]["pointer"] == "?from"


def test_audit_trail_names_who_and_what(service: InProcess) -> None:
    items = service.call("GET", "/v1/audit?limit=500").json()["items"]
    assert {item["subject"] for item in items} >= {ROOM}
    assert all(item["who"].startswith("admin-") for item in items)


def test_health_and_metrics(service: InProcess) -> None:
    service.decide()
    assert service.call("GET", "/livez", token=None).json()["status"] == "ok"
    ready = service.call("GET", "/readyz", token=None)
    assert ready.status_code == 200
    assert all(ready.json()["checks"].values())
    text = service.call("GET", "/metrics").text
    assert 'pastwise_http_requests_total{route="/v1/policies/{policy}/decide",status="201"}' in text
    assert 'pastwise_store_bytes{file="service.sqlite"}' in text


def test_decisions_and_outcomes_are_counted(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        service.with_policy()
        key = {"Idempotency-Key": "k"}
        for _ in range(3):
            service.call("POST", f"{POLICY}/decide", {"state": "cold"}, headers=key)
        path = f"/v1/decisions/{service.decide()['decision_id']}/outcome"
        service.clock.pass_seconds(30)
        service.call("POST", path, {"next_state": "mild"})
        service.call("POST", f"{POLICY}/decide", {"state": "nowhere"})
        service.clock.pass_seconds(3600)
        service.run(service.service.engine.sweep())
        found = service.call("GET", "/metrics").text.splitlines()
    assert f'pastwise_decisions_total{{policy="{ROOM}",version="1",mode="live"}} 2' in found
    assert "pastwise_decision_seconds_count 2" in found
    assert f'pastwise_idempotent_replays_total{{policy="{ROOM}"}} 2' in found
    assert f'pastwise_outcomes_total{{policy="{ROOM}",status="learned"}} 1' in found
    assert f'pastwise_outcomes_total{{policy="{ROOM}",status="missing"}} 1' in found
    assert f'pastwise_unknown_states_total{{policy="{ROOM}"}} 1' in found
    assert f'pastwise_outcomes_open{{policy="{ROOM}"}} 0' in found
    assert "pastwise_outcome_lag_seconds_sum 30" in found
    assert any(line.startswith("pastwise_commit_seconds_count") for line in found)


def test_old_decisions_move_to_a_file(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        service.with_policy(retention_days=10)
        decision = service.decide()
        path = f"/v1/decisions/{decision['decision_id']}"
        service.call("POST", f"{path}/outcome", {"next_state": "mild"})
    with InProcess(tmp_path) as service:  # the stop before has made a snapshot
        service.clock.pass_seconds(11 * 86_400)
        service.run(service.service.retain())
        assert slug_of(service.call("GET", path)) == "gone"
        assert slug_of(service.call("POST", f"{path}/outcome", {"next_state": "mild"})) == "gone"
        assert '"event": "retention"' in service.journal.getvalue()
    [file] = (tmp_path / "archive").glob("*.parquet")
    table = pq.read_table(file)
    assert decision["decision_id"] in table.column("decision_id").to_pylist()


def test_a_service_that_stops_refuses(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        service.service.begin_to_stop()
        answer = service.call("GET", "/v1/policies")
        assert slug_of(answer) == "stopping"
        assert answer.headers["retry-after"] == "1"
        assert service.call("GET", "/readyz").json()["status"] == "stopping"
        assert service.call("GET", "/livez").status_code == 200


@pytest.mark.parametrize(("mode", "is_shared"), [(0o600, False), (0o644, True)])
def test_a_token_file_that_others_can_read_is_pointed_out(
    tmp_path: Path, mode: int, is_shared: bool
) -> None:
    file = tmp_path / "admin.token"
    file.write_text("pw_" + "x" * 43)
    file.chmod(mode)
    with InProcess(tmp_path) as service:
        journal = service.journal.getvalue()
    assert ("chmod 600" in journal) is is_shared
    assert "xxxx" not in journal


def test_a_start_that_fails_leaves_the_folder_free(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("short\n")
    with (
        pytest.raises(ParameterError, match="shorter than 20"),
        InProcess(tmp_path / "data", token_file=tokens),
    ):
        pass
    with InProcess(tmp_path / "data") as service:
        assert service.call("GET", "/readyz", token=None).status_code == 200


def test_a_sweep_that_fails_is_written_down(tmp_path: Path) -> None:
    async def fail() -> None:
        raise StoreError("the store is away")

    with InProcess(tmp_path) as service:
        service.service.engine.sweep = fail  # type: ignore[method-assign, assignment]
        until = time.monotonic() + 10
        while "sweep-failed" not in service.journal.getvalue():
            assert time.monotonic() < until
            time.sleep(0.05)
        assert service.call("GET", "/readyz", token=None).json()["checks"]["sweep"] is False
        service.run(in_background(service, fail()))
        assert '"event": "background"' in service.journal.getvalue()


async def in_background(service: InProcess, work: Coroutine[None, None, None]) -> None:
    """Let the service do something that no request waits for, and wait for it."""
    service.service.in_background(work)
    await asyncio.sleep(0.05)


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    with InProcess(tmp_path) as service:
        service.with_policy()
        decision = service.decide()
        path = f"/v1/decisions/{decision['decision_id']}"
        service.call("POST", f"{path}/outcome", {"next_state": "mild"})
        token = service.token("read")
        rule = service.call("GET", f"{POLICY}/rule?state=cold").json()
    with InProcess(tmp_path) as service:
        assert service.call("GET", path, token=token).json()["propensity"] == decision["propensity"]
        assert service.call("GET", f"{POLICY}/rule?state=cold").json() == rule
