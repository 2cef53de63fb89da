"""Verdicts, comparisons and probes as jobs, against the library's own calls."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import pastwise as pw
from pastwise.workbench.comparisons import compared
from pastwise.workbench.types_drafts import (
    ComparisonResult,
    ProbeResult,
)
from pastwise.workbench.types_preview import (
    VerdictView,
)
from tests.helpers.services import slug_of
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT, InProcessBench

WARM: dict[str, Any] = {"prefer": {"warm": 1}}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBench]:
    with InProcessBench(tmp_path_factory.mktemp("bench")) as bench:
        yield bench


@pytest.fixture(scope="module")
def counts(bench: InProcessBench) -> str:
    return bench.counted(file=THERMOSTAT)


def finished(bench: InProcessBench, address: str, body: Any) -> dict[str, Any]:
    """The job that a request starts, when it has ended."""
    answer = bench.call("POST", address, body, headers={"Prefer": "wait=50"})
    assert answer.status_code == 200, answer.text
    job: dict[str, Any] = answer.json()
    return job


def learned(goal: Any, method: str = "TL") -> pw.TransferLearner:
    return pw.TransferLearner(goal, method=method).fit(THERMOSTAT, columns=COLUMNS)


def test_a_verdict_is_kept_with_its_draft(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    body = {"samples": 400, "importance": True}
    job = finished(bench, f"/v1/drafts/{draft['id']}/evaluations", body)
    assert job["state"] == "done", job["problem"]
    assert job["progress"] == {"done": 400, "of": 400}
    result = msgspec.convert(job["result"], VerdictView)
    assert msgspec.convert(job["partial"], VerdictView).samples == 40

    expected = learned(COMFORT).evaluate(samples=400)
    assert result.verdict == expected.verdict
    assert result.sentence == expected.sentence
    assert set(result.alternatives) == set(expected.alternatives)
    estimates = learned(COMFORT).estimates(THERMOSTAT, expected.horizon)
    assert {name: each.usable for name, each in result.estimates.items()} == {
        name: each.usable for name, each in estimates.items()
    }

    # It is among the verdicts of the draft, and in the list of logs.
    kept: list[dict[str, Any]] = []
    deadline = time.monotonic() + 20
    while not kept and time.monotonic() < deadline:
        kept = bench.call("GET", f"/v1/drafts/{draft['id']}").json()["verdicts"]
        time.sleep(0.01)
    assert kept[0]["job"] == job["id"]
    assert kept[0]["verdict"] == "better"
    low, high = kept[0]["difference"]
    deciding = expected.comparisons["logged"].deciding
    assert (low, high) == pytest.approx((deciding.low, deciding.high))
    assert kept[0]["level"] == deciding.level
    objections = [each.to_dict() for each in expected.objections]
    assert kept[0]["objections"] == objections
    project = bench.call("GET", "/v1/projects").json()["items"][0]
    assert project["verdict"] == "better"
    assert project["gain"] == [low, high]

    # The reports of the draft and of its version show the same verdict, with its second opinions.
    assert bench.call("PUT", "/v1/policies/room", {}).status_code == 201
    version = bench.call("POST", "/v1/policies/room/versions", {"draft": draft["id"]})
    assert version.status_code == 201
    for place in (f"drafts/{draft['id']}", "policies/room/versions/1"):
        page = bench.call("GET", f"/v1/{place}/report.html").text
        assert expected.sentence in unescape(page)
        assert "400 sampled models" in page
        assert "<h2>Second opinions</h2>" in page
    assert f"<h1>room, version 1: {draft['name']}</h1>" in page


def test_a_verdict_is_not_that_of_the_policy_that_a_draft_has_become(
    bench: InProcessBench, counts: str
) -> None:
    draft = bench.draft(counts)
    address = f"/v1/drafts/{draft['id']}"
    bench.call("POST", f"{address}/evaluations", {"samples": 400})
    assert len(bench.call("GET", address).json()["running"]) == 1
    headers = {"If-Match": bench.call("GET", address).headers["etag"]}
    body = {"method": "TL_foresight"}
    assert bench.call("PATCH", address, body, headers=headers).status_code == 200
    deadline = time.monotonic() + 50
    while bench.call("GET", address).json()["running"] and time.monotonic() < deadline:
        time.sleep(0.1)
    found = bench.call("GET", address).json()
    assert (found["running"], found["verdicts"]) == ([], [])


def test_another_goal_can_judge(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    body = {"judge": WARM, "samples": 40}
    job = finished(bench, f"/v1/drafts/{draft['id']}/evaluations", body)
    expected = learned(COMFORT).evaluate_goals({"warm": pw.Goal(**WARM)}, samples=40)["warm"]
    assert job["result"]["values"]["new"] == pytest.approx(expected.values["new"].to_dict())
    answer = bench.call(
        "POST", f"/v1/drafts/{draft['id']}/evaluations", {"judge": {"prefer": {"warm": -1}}}
    )
    assert slug_of(answer) == "impossible-goal"
    assert answer.json()["errors"][0]["pointer"] == "/judge/prefer"


def test_policies_are_compared_by_goals(bench: InProcessBench, counts: str) -> None:
    comfort = bench.draft(counts, name="comfort")
    warm = bench.draft(counts, WARM, name="warm")
    body = {"drafts": [comfort["id"], warm["id"]], "samples": 200}
    job = finished(bench, "/v1/comparisons", body)
    assert job["state"] == "done", job["problem"]
    result = msgspec.convert(job["result"], ComparisonResult)
    assert [each.goal for each in result.goals] == [COMFORT, WARM]
    for goal, judged_by in zip(result.goals, (COMFORT, WARM), strict=True):
        for draft, own in ((comfort, COMFORT), (warm, WARM)):
            evaluation = learned(own).evaluate_goals({"it": pw.Goal(**judged_by)}, samples=200)
            expected = evaluation["it"].values["new"]
            assert goal.values[draft["id"]].mean == pytest.approx(expected.mean)
            deciding = evaluation["it"].comparisons["logged"].deciding
            assert goal.differences[draft["id"]].low == pytest.approx(deciding.low)
            assert (draft["id"] in goal.alarms) == bool(evaluation["it"].alarm)
        assert {"logged", "random", "optimum"} <= set(goal.values)
        pair = goal.pairs[0]
        assert (pair.a, pair.b) == (comfort["id"], warm["id"])
        means = [goal.values[draft["id"]].mean for draft in (comfort, warm)]
        difference = float(means[0] or 0) - float(means[1] or 0)
        assert pair.mean == pytest.approx(difference, abs=1e-9)
    assert result.goals[1].pairs[0].verdict in ("worse", "cannot tell")


def test_a_stopped_comparison_keeps_what_was_judged() -> None:
    learners = {"comfort": learned(COMFORT), "warm": learned(WARM)}
    judged: list[int] = []
    result = compared(
        learners,
        [COMFORT, WARM],
        samples=40,
        on_step=lambda done, of: judged.append(done),
        should_stop=lambda: judged[-1:] == [1],
    )
    assert judged[-1] == 1
    assert [list(goal.differences) for goal in result.goals] == [["comfort"]]
    assert compared(learners, [WARM], samples=40, should_stop=lambda: True).goals == []


def test_what_cannot_be_compared_is_refused(bench: InProcessBench, counts: str) -> None:
    one = bench.draft(counts)
    other = bench.draft(bench.counted())
    body = {"drafts": [one["id"], other["id"]]}
    assert slug_of(bench.call("POST", "/v1/comparisons", body)) == "invalid-value"
    assert slug_of(bench.call("POST", "/v1/comparisons", {"drafts": ["dft_0"]})) == "not-found"
    assert slug_of(bench.call("POST", "/v1/comparisons", {"drafts": []})) == "invalid-value"
    body = {"drafts": [one["id"]], "goals": [WARM, {"prefer": {}}]}
    answer = bench.call("POST", "/v1/comparisons", body)
    assert answer.json()["errors"][0]["pointer"] == "/goals/1"


def test_a_probe_finds_what_turns_advice_around(bench: InProcessBench, tmp_path: Path) -> None:
    # Severe cases are treated, and do worse all the same: treatment helps within each group.
    rng = np.random.default_rng(0)
    path = tmp_path / "cases.csv"
    chance = {("mild", "treat"): 0.95, ("mild", "wait"): 0.85}
    chance |= {("severe", "treat"): 0.45, ("severe", "wait"): 0.3}
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["case", "visit", "health", "did", "severity", "coin"])
        for case in range(400):
            for visit in range(4):
                group = "severe" if rng.random() < 0.5 else "mild"
                is_treated = rng.random() < (0.9 if group == "severe" else 0.1)
                did = "treat" if is_treated else "wait"
                writer.writerow([case, 2 * visit, "ill", did, group, rng.integers(2)])
                health = "well" if rng.random() < chance[group, did] else "poor"
                writer.writerow([case, 2 * visit + 1, health, "wait", group, 0])
    columns = {"state": ["health"], "action": ["did"], "episode": "case", "time": "visit"}
    counts_id = bench.counted(columns, path, file=path)
    project = bench.call("GET", f"/v1/counts/{counts_id}").json()["project"]
    body = {
        "columns": ["severity", "coin", "nothing"],
        "goal": {"prefer": {"well": 1}},
        "method": "FPD_learn",
        "samples": 40,
    }
    job = finished(bench, f"/v1/projects/{project}/probes", body)
    assert job["state"] == "done", job["problem"]
    result = msgspec.convert(job["result"], ProbeResult)
    severity, coin, nothing = result.items
    assert 0 < severity.turned <= severity.compared
    assert severity.explains is not None
    assert severity.explains > 0.3
    turned = {each.state: (each.before, each.action) for each in severity.advice if each.turns}
    assert len(turned) == severity.turned
    assert turned['["ill", "mild"]'] == ("wait", "treat")
    assert severity.verdict is not None
    assert coin.explains is not None
    assert coin.explains < 0.05
    assert nothing.problem is not None
    assert "no column 'nothing'" in nothing.problem
    assert result.episode is not None
    assert result.episode.explains is not None


def test_a_job_can_be_stopped_and_keeps_what_it_has(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    body = {"samples": 20_000, "judge": WARM}
    answer = bench.call("POST", f"/v1/drafts/{draft['id']}/evaluations", body)
    assert answer.status_code == 202
    address = answer.headers["location"]

    # Whoever looks at the draft finds the job.
    (running,) = bench.call("GET", f"/v1/drafts/{draft['id']}").json()["running"]
    assert running == {"job": answer.json()["id"], "goal": WARM}
    deadline = time.monotonic() + 20
    while bench.call("GET", address).json()["partial"] is None and time.monotonic() < deadline:
        time.sleep(0.02)

    # So does whoever looks at the list of logs.
    def jobs() -> list[dict[str, Any]]:
        items = bench.call("GET", "/v1/projects").json()["items"]
        return [job for each in items if each["id"] == draft["project"] for job in each["jobs"]]

    (listed,) = jobs()
    assert (listed["id"], listed["kind"]) == (running["job"], "verdict")
    assert listed["done"] < listed["of"] == 20_000
    assert listed["so_far"] in ("better", "worse", "cannot tell")
    bench.call("DELETE", address)
    job = bench.call("GET", address, headers={"Prefer": "wait=20"}).json()
    assert job["state"] == "stopped"
    assert jobs() == []
    assert 40 <= job["result"]["samples"] < 20_000
    found = draft
    deadline = time.monotonic() + 20
    while not found["verdicts"] and time.monotonic() < deadline:
        found = bench.call("GET", f"/v1/drafts/{draft['id']}").json()
        time.sleep(0.01)
    assert found["running"] == []
    assert [each["goal"] for each in found["verdicts"]] == [WARM]


def test_a_job_needs_the_log_for_second_opinions(bench: InProcessBench) -> None:
    draft = bench.draft(bench.counted())
    body: dict[str, Any] = {"importance": True}
    answer = bench.call("POST", f"/v1/drafts/{draft['id']}/evaluations", body)
    assert slug_of(answer) == "nothing-to-learn"
    project = draft["project"]
    body = {"columns": ["hour"], "goal": COMFORT}
    answer = bench.call("POST", f"/v1/projects/{project}/probes", body)
    assert slug_of(answer) == "nothing-to-learn"
