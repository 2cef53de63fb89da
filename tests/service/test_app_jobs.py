"""Jobs over HTTP: what they compute, how one waits for them, and who sees them."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pastwise as pw
from tests.helpers.services import ROOM, InProcess, slug_of

POLICY = f"/v1/policies/{ROOM}"
WAIT = {"Prefer": "wait=60"}
NEXT = {"cold": "mild", "mild": "warm", "warm": "mild"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("service")) as service:
        service.with_policy(floor=0.1)
        for number in range(30):
            state = ("cold", "mild", "warm")[number % 3]
            decision = service.decide(state, episode=f"=e{number // 10}")
            path = f"/v1/decisions/{decision['decision_id']}/outcome"
            service.call("POST", path, {"next_state": NEXT[state]})
        yield service


def result_of(answer: Any) -> dict[str, Any]:
    """Result of a job that was waited for."""
    view = answer.json()
    assert answer.status_code == 200, view
    assert view["state"] == "done", view
    assert answer.headers["preference-applied"] == "wait=60"
    result: dict[str, Any] = view["result"]
    return result


def test_replay_is_equal(service: InProcess) -> None:
    result = result_of(service.call("POST", f"{POLICY}/replay", {}, headers=WAIT))
    assert result["equal"] is True
    assert result["events"] == service.call("GET", POLICY).json()["seq"]


def test_decisions_are_a_log_to_learn_from(service: InProcess) -> None:
    answer = service.call("GET", f"{POLICY}/decisions.parquet")
    assert answer.status_code == 200
    table = pq.read_table(io.BytesIO(answer.content))
    assert table.num_rows == 30
    assert {"state", "action", "next_state", "episode", "time", "propensity"} <= set(
        table.column_names
    )
    learner = pw.TransferLearner(pw.Goal(prefer="mild"))
    learner.fit(table, state="state", action="action", next_state="next_state")
    assert learner.counts_.num_records == 30


def test_cells_of_a_table_are_no_formulas(service: InProcess) -> None:
    answer = service.call("GET", f"{POLICY}/decisions.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    assert "=e0" in answer.text
    assert ",=e0" not in answer.text


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_an_export_that_fails_is_no_file(
    service: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(service.service, "store_address", str(tmp_path / "nothing"))
    answer = service.call("GET", f"{POLICY}/decisions.{kind}")
    assert answer.status_code == 503
    assert slug_of(answer) == "store-unavailable"


def test_evaluation_on_own_decisions_and_on_a_log(service: InProcess) -> None:
    body = {"samples": 80, "horizon": 5}
    result = result_of(service.call("POST", f"{POLICY}/evaluations", body, headers=WAIT))
    assert "verdict" in result
    missing = service.call("POST", f"{POLICY}/evaluations", {"log": "up_none"})
    assert slug_of(missing) == "not-found"


def test_learning_makes_a_version_that_is_not_in_use(service: InProcess) -> None:
    answer = service.call("POST", f"{POLICY}/learn", {"note": "weekly"}, headers=WAIT)
    result = result_of(answer)
    assert result["new_records"] == 30
    until = time.monotonic() + 10
    while True:
        versions = service.call("GET", f"{POLICY}/versions").json()["items"]
        if len(versions) == 2 or time.monotonic() > until:
            break
        time.sleep(0.05)
    assert versions[-1]["sha256"] == result["sha256"]
    assert versions[-1]["note"].startswith("weekly (learned by job_")
    assert service.call("GET", POLICY).json()["settings"]["version"] == 1


def test_a_job_that_is_not_waited_for(service: InProcess) -> None:
    log = service.call("POST", "/v1/logs", content=b"room,did\ncold,heat\nmild,idle\n").json()
    answer = service.call("POST", f"/v1/logs/{log['id']}/summaries", {})
    assert answer.status_code == 202
    location = answer.headers["location"]
    assert answer.json()["state"] in ("queued", "running")
    events = service.call("GET", f"{location}/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    assert "event: done" in events.text
    view = service.call("GET", location).json()
    assert view["result"]["rows"] == 2
    assert slug_of(service.call("GET", f"{location}/file")) == "not-found"
    listed = service.call("GET", "/v1/jobs?limit=1").json()
    assert [item["id"] for item in listed["items"]] == [view["id"]]
    assert listed["next"] == view["id"]
    assert service.call("DELETE", location).json() == view

    # A token that is bound to a policy sees its own jobs only.
    bound = service.token("read", "edit", policies=[ROOM])
    assert service.call("GET", "/v1/jobs", token=bound).json()["items"] == []
    assert slug_of(service.call("GET", location, token=bound)) == "not-found"


def test_a_job_is_stopped(service: InProcess) -> None:
    body = {"samples": 20_000, "horizon": 1000}
    location = service.call("POST", f"{POLICY}/evaluations", body).headers["location"]
    service.call("DELETE", location)
    view = service.call("GET", location, headers=WAIT).json()
    assert view["state"] == "stopped"
    text = service.call("GET", "/metrics").text
    assert 'pastwise_jobs{state="stopped"} 1' in text
