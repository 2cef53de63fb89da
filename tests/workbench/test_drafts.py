"""Saved policies: changes, reasons, files, and versions made of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pastwise as pw
from tests.helpers.services import slug_of
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT, InProcessBench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBench]:
    with InProcessBench(tmp_path_factory.mktemp("bench")) as bench:
        yield bench


@pytest.fixture(scope="module")
def counts(bench: InProcessBench) -> str:
    return bench.counted()


def learned(goal: dict[str, Any], method: str = "TL") -> pw.TransferLearner:
    return pw.TransferLearner(goal, method=method).fit(THERMOSTAT, columns=COLUMNS)


def test_a_draft_is_found_again(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts, note="for winter")
    answer = bench.call("GET", f"/v1/drafts/{draft['id']}")
    assert answer.json() == draft
    assert answer.headers["etag"] == f'"{draft["etag"]}"'
    assert draft["sentence"] == "be in comfortable (weight 1) or warm (weight 0.5)"
    assert draft["goal"] == COMFORT
    project = bench.call("GET", f"/v1/projects/{draft['project']}").json()
    assert draft["id"] in [each["id"] for each in project["drafts"]]


def test_a_change_needs_what_was_read_last(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    address = f"/v1/drafts/{draft['id']}"
    assert slug_of(bench.call("PATCH", address, {"name": "warm"})) == "precondition-required"
    headers = {"If-Match": f'"{draft["etag"]}"'}
    changed = bench.call("PATCH", address, {"name": "warm"}, headers=headers)
    assert changed.status_code == 200
    assert changed.json()["name"] == "warm"
    assert changed.json()["goal"] == COMFORT
    assert slug_of(bench.call("PATCH", address, {"name": "hot"}, headers=headers)) == "stale"
    assert slug_of(bench.call("DELETE", address, headers=headers)) == "stale"
    headers = {"If-Match": changed.headers["etag"]}
    assert bench.call("DELETE", address, headers=headers).status_code == 204
    assert slug_of(bench.call("GET", address)) == "not-found"


def test_what_is_known_of_the_past_is_known_of_one_goal(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts, method="TL_foresight(past_skill=1, discount=0.9)")
    assert draft["method"] == "TL_foresight(discount=0.9, past_skill=1)"

    def changed(body: dict[str, Any]) -> Any:
        found = bench.call("GET", f"/v1/drafts/{draft['id']}")
        headers = {"If-Match": found.headers["etag"]}
        return bench.call("PATCH", f"/v1/drafts/{draft['id']}", body, headers=headers).json()

    assert changed({"goal": COMFORT})["method"] == "TL_foresight(discount=0.9, past_skill=1)"
    other = {"prefer": {"cold": 1}}
    assert changed({"goal": other})["method"] == "TL_foresight(discount=0.9)"
    known = "TL_foresight(past_skill=-1)"
    assert changed({"goal": COMFORT, "method": known})["method"] == known


def test_an_impossible_goal_is_not_saved(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    body = {"goal": {"prefer": {"cosy": 1}}}
    headers = {"If-Match": f'"{draft["etag"]}"'}
    answer = bench.call("PATCH", f"/v1/drafts/{draft['id']}", body, headers=headers)
    assert slug_of(answer) == "unknown-label"
    assert answer.json()["errors"][0]["pointer"] == "/goal/prefer"
    assert bench.call("GET", f"/v1/drafts/{draft['id']}").json() == draft
    answer = bench.call("POST", f"/v1/counts/{counts}/drafts", {"name": "x", **body})
    assert slug_of(answer) == "unknown-label"


def test_reasons_are_those_of_the_command_line(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    answer = bench.call("GET", f"/v1/drafts/{draft['id']}/explain?state=cool&action=heat")
    expected = learned(COMFORT).explain("cool").to_dict()["actions"]["heat"]
    found = answer.json()["actions"]["heat"]
    assert found["evidence"] == [{**each, "rows": []} for each in expected["evidence"]]
    assert found["parts"] == pytest.approx(expected["parts"])
    answer = bench.call("GET", f"/v1/drafts/{draft['id']}/explain?state=cosy")
    assert slug_of(answer) == "unknown-label"
    answer = bench.call("GET", f"/v1/drafts/{draft['id']}/explain?state=cool&action=fly")
    assert slug_of(answer) == "unknown-label"


def test_the_file_is_the_policy(bench: InProcessBench, counts: str, tmp_path: Path) -> None:
    draft = bench.draft(counts, method="TL_foresight", name='a "name"/..')
    answer = bench.call("GET", f"/v1/drafts/{draft['id']}/artefact")
    assert answer.headers["content-disposition"] == (
        'attachment; filename="a--name----.safetensors"'
    )
    path = tmp_path / "policy.safetensors"
    path.write_bytes(answer.content)
    rule = pw.load(path).rule_.probabilities
    np.testing.assert_allclose(rule, learned(COMFORT, "TL_foresight").rule_.probabilities)


def test_the_report_is_one_page(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts, name="<b>comfort</b>")
    answer = bench.call("GET", f"/v1/drafts/{draft['id']}/report.html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "&lt;b&gt;comfort&lt;/b&gt;" in answer.text
    assert "better" in answer.text
    policy = answer.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert "sha256-" in policy[0]
    assert "unsafe" not in policy[0]


def test_files_say_what_the_screens_say(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    assert bench.call("PUT", "/v1/policies/signed", {}).status_code == 201
    made = bench.call("POST", "/v1/policies/signed/versions", {"draft": draft["id"]})
    assert made.status_code == 201
    want = {"verdict": {"samples": 2000}}
    body = {"goal": draft["goal"], "method": draft["method"], "want": want}
    shown = bench.call("POST", f"/v1/counts/{counts}/preview", body).json()["verdict"]
    version = "/v1/policies/signed/versions/1"
    for place in (f"/v1/drafts/{draft['id']}/report.html", f"{version}/report.html"):
        assert shown["sentence"] in bench.call("GET", place).text
    card = bench.call("GET", f"{version}/card.md").text
    assert shown["sentence"] in card


def test_a_draft_becomes_a_version(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    assert bench.call("PUT", "/v1/policies/rooms", {"mode": "live"}).status_code == 201
    body = {"draft": draft["id"], "note": "first", "despite": ["alarm"]}
    answer = bench.call("POST", "/v1/policies/rooms/versions", body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["note"] == "first"
    assert answer.json()["despite"] == ["alarm"]
    rule = bench.call("GET", "/v1/policies/rooms/rule?state=cool").json()["rule"]
    assert rule == pytest.approx(learned(COMFORT).rule_["cool"])
    found = bench.call("GET", f"/v1/drafts/{draft['id']}").json()
    assert found["deployed"] == ["rooms@1"]
    projects = bench.call("GET", "/v1/projects").json()["items"]
    mine = next(each for each in projects if each["id"] == draft["project"])
    assert mine["deployed"] == {"policy": "rooms", "mode": "live", "alarm": False, "version": 1}

    # A policy file is taken as before.
    artefact = bench.call("GET", f"/v1/drafts/{draft['id']}/artefact").content
    answer = bench.call("POST", "/v1/policies/rooms/versions?note=file", content=artefact)
    assert answer.status_code == 201
    assert answer.json()["version"] == 2
    answer = bench.call("POST", "/v1/policies/rooms/versions", {"draft": "dft_0"})
    assert slug_of(answer) == "not-found"
    answer = bench.call("POST", "/v1/policies/rooms/versions", {"drafts": "dft_0"})
    assert slug_of(answer) == "unknown-member"


def test_a_changed_draft_is_not_what_was_deployed(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    address = f"/v1/drafts/{draft['id']}"
    assert bench.call("PUT", "/v1/policies/changing", {}).status_code == 201
    made = bench.call("POST", "/v1/policies/changing/versions", {"draft": draft["id"]})
    assert made.status_code == 201

    def changed(**members: Any) -> dict[str, Any]:
        headers = {"If-Match": bench.call("GET", address).headers["etag"]}
        answer: dict[str, Any] = bench.call("PATCH", address, members, headers=headers).json()
        return answer

    # Another name, or the same policy again, changes nothing of it.
    assert changed(name="winter")["deployed"] == ["changing@1"]
    assert changed(goal=COMFORT, method="TL()")["deployed"] == ["changing@1"]

    # Another policy was never deployed.
    assert changed(method="TL_foresight")["deployed"] == []
    goal = bench.call("GET", "/v1/policies/changing/versions/1/goal.json").json()
    assert learned(goal).rule_ == learned(COMFORT).rule_


def test_a_log_knows_its_policies_and_their_files(bench: InProcessBench, counts: str) -> None:
    draft = bench.draft(counts)
    assert bench.call("PUT", "/v1/policies/files", {}).status_code == 201
    for _ in range(2):
        body = {"draft": draft["id"], "note": "<i>first</i>"}
        assert bench.call("POST", "/v1/policies/files/versions", body).status_code == 201
    project = bench.call("GET", f"/v1/projects/{draft['project']}").json()
    assert project["policies"].count("files") == 1
    summary = next(each for each in project["drafts"] if each["id"] == draft["id"])
    assert summary["deployed"] == ["files@1", "files@2"]

    # They say what the version is, also without the draft.
    etag = bench.call("GET", f"/v1/drafts/{draft['id']}").headers["etag"]
    headers = {"If-Match": etag}
    assert bench.call("DELETE", f"/v1/drafts/{draft['id']}", headers=headers).status_code == 204
    place = "/v1/policies/files/versions/1"
    goal = bench.call("GET", f"{place}/goal.json")
    assert learned(goal.json()).rule_ == learned(COMFORT).rule_
    card = bench.call("GET", f"{place}/card.md")
    assert card.headers["content-type"].startswith("text/markdown")
    assert "comfortable" in card.text
    report = bench.call("GET", f"{place}/report.html")
    assert "&lt;i&gt;first&lt;/i&gt;" in report.text
    assert "sha256-" in report.headers["content-security-policy"]
    assert slug_of(bench.call("GET", "/v1/policies/files/versions/3/goal.json")) == "not-found"


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with InProcessBench(tmp_path) as bench:
        counts = bench.counted()
        draft = bench.draft(counts)
        project = bench.call("GET", f"/v1/projects/{draft['project']}").json()
    broken = tmp_path / "data" / "projects" / "broken"
    broken.mkdir()
    (broken / "project.json").write_text("{")
    with InProcessBench(tmp_path) as bench:
        assert bench.call("GET", f"/v1/drafts/{draft['id']}").json() == draft
        assert bench.call("GET", f"/v1/projects/{draft['project']}").json() == project
        assert bench.call("GET", f"/v1/counts/{counts}").status_code == 200
        assert [each["id"] for each in bench.call("GET", "/v1/projects").json()["items"]] == [
            draft["project"]
        ]

        # A project that is removed takes everything with it.
        address = f"/v1/projects/{draft['project']}"
        assert bench.call("DELETE", address).status_code == 204
        assert slug_of(bench.call("GET", f"/v1/drafts/{draft['id']}")) == "not-found"
        assert slug_of(bench.call("GET", f"/v1/counts/{counts}")) == "not-found"
        assert slug_of(bench.call("DELETE", address)) == "not-found"
