"""Problems: every kind can come up, is explained, and points to what is wrong."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from pastwise import errors
from pastwise.service.problems import PROBLEMS, Problem, problem_of
from tests.helpers.services import ROOM, InProcess, slug_of

DECIDE = f"/v1/policies/{ROOM}/decide"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with InProcess(tmp_path_factory.mktemp("service")) as service:
        yield service.with_policy()


@pytest.mark.parametrize("slug", PROBLEMS)
def test_every_problem_has_a_page(service: InProcess, slug: str) -> None:
    answer = service.call("GET", f"/problems/{slug}", token=None)
    assert answer.headers["content-type"].startswith("text/html")
    assert f"<h1>{slug} ({PROBLEMS[slug].status})</h1>" in answer.text


def test_unknown_problems_have_none(service: InProcess) -> None:
    assert slug_of(service.call("GET", "/problems/<script>")) == "not-found"


@pytest.mark.parametrize(
    ("body", "slug", "pointer", "near"),
    [
        ({"state": "colt"}, "unknown-label", "/state", ["cold"]),
        ({"state": "cold", "allowed": ["heat", "went"]}, "unknown-label", "/allowed/1", ["vent"]),
        ({"stat": "cold"}, "unknown-member", "/stat", ["state"]),
        ({"state": ["cold"]}, "invalid-value", "/state", None),
        ({"state": {"room": ["cold"]}}, "invalid-value", "/state", None),
        ({}, "invalid-value", "/state", None),
        ({"state": "cold", "allowed": []}, "invalid-value", "/allowed", None),
        ({"state": "cold", "dry_run": 1}, "invalid-value", "/dry_run", None),
        ({"state": "off"}, "after-terminal", "/state", None),
    ],
)
def test_pointers_and_suggestions(
    service: InProcess, body: object, slug: str, pointer: str, near: list[str] | None
) -> None:
    answer = service.call("POST", DECIDE, body)
    assert slug_of(answer) == slug
    [part] = answer.json()["errors"]
    assert part["pointer"] == pointer
    assert part["code"] == slug
    if near is not None:
        assert part["near"][0] == near[0]


def test_pointers_into_lists(service: InProcess) -> None:
    items = {"items": [{"state": "cold"}, {"state": "mild", "color": 1}]}
    answer = service.call("POST", f"{DECIDE}-many", items)
    assert answer.json()["errors"][0]["pointer"] == "/items/1/color"


def test_members_of_a_problem(service: InProcess) -> None:
    body = service.call("GET", "/v1/policies/none").json()
    assert body["type"] == "/problems/not-found"
    assert body["title"] == PROBLEMS["not-found"].title
    assert body["instance"] == "/v1/policies/none"
    assert body["request_id"]


def test_unknown_addresses_and_methods(service: InProcess) -> None:
    assert slug_of(service.call("GET", "/v2/policies")) == "not-found"
    assert slug_of(service.call("GET", "/v1/policies/")) == "not-found"
    answer = service.call("DELETE", f"/v1/policies/{ROOM}")
    assert slug_of(answer) == "method-not-allowed"
    assert answer.headers["allow"] == "GET, HEAD, PATCH, PUT"


@pytest.mark.parametrize("name", ["two words", "-a", "a" * 101, "%00", "é", "a%0Ab", "%0A"])
def test_names_of_policies(service: InProcess, name: str) -> None:
    assert slug_of(service.call("PUT", f"/v1/policies/{name}", {})) == "invalid-value"


def test_conflicts_of_policies(service: InProcess) -> None:
    assert slug_of(service.call("PUT", f"/v1/policies/{ROOM}", {})) == "name-taken"
    assert service.call("PUT", "/v1/policies/empty", {}).status_code == 201
    answer = service.call("POST", "/v1/policies/empty/decide", {"state": "cold"})
    assert slug_of(answer) == "no-version"
    paused = service.call(
        "PATCH", f"/v1/policies/{ROOM}", {"mode": "paused"}, headers={"If-Match": "*"}
    )
    assert paused.status_code == 200
    assert slug_of(service.call("POST", DECIDE, {"state": "cold"})) == "paused"
    service.call("PATCH", f"/v1/policies/{ROOM}", {"mode": "live"}, headers={"If-Match": "*"})


def test_a_bug_keeps_its_text_to_itself(
    service: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "-".join(["secret", "detail"])

    def broken(name: str) -> None:
        raise KeyError(text)

    monkeypatch.setattr(service.service.engine, "policy", broken)
    answer = service.call("GET", f"/v1/policies/{ROOM}")
    assert slug_of(answer) == "bug"
    assert "secret-detail" not in answer.text
    journal = service.journal.getvalue()
    assert answer.json()["request_id"] in journal
    assert "KeyError" in journal
    assert "secret-detail" not in journal


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (errors.LabelError("x"), "invalid-label"),
        (errors.InfeasibleError("x"), "impossible-goal"),
        (errors.GoalError("x"), "impossible-goal"),
        (errors.LogError("x"), "nothing-to-learn"),
        (errors.PolicyFileError("x"), "policy-file-refused"),
        (errors.ParameterError("x"), "invalid-value"),
        (errors.MissingDependencyError("x"), "missing-library"),
        (errors.StoreError("x"), "store-unavailable"),
        (errors.StoreError("x", full=True), "disk-full"),
        (errors.FileError(errno.ENOSPC, "no space"), "disk-full"),
        (Problem("stale"), "stale"),
        (ZeroDivisionError("x"), "bug"),
    ],
)
def test_errors_of_the_library(error: Exception, slug: str) -> None:
    problem = problem_of(error, "/goal")
    assert problem.slug == slug
    assert problem.status == PROBLEMS[slug].status
