"""The key of the address, the cookie, and who may do what with it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from pastwise.workbench.app import Turns
from tests.helpers.services import slug_of
from tests.helpers.workbenches import InProcessBench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBench]:
    with InProcessBench(tmp_path_factory.mktemp("bench")) as bench:
        yield bench


def opened(bench: InProcessBench, key: str) -> httpx.Response:
    return bench.call("POST", "/v1/session", {"key": key}, token=None)


def cookie(bench: InProcessBench) -> str:
    answer = opened(bench, bench.bench.sessions.new_key())
    assert answer.status_code == 201, answer.text
    return answer.headers["set-cookie"].partition(";")[0]


def test_a_key_opens_one_session(bench: InProcessBench) -> None:
    key = bench.bench.sessions.new_key()
    first = opened(bench, key)
    assert first.status_code == 201
    assert first.json()["root"] == str(bench.root.resolve())
    attributes = first.headers["set-cookie"].split("; ")[1:]
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}

    second = opened(bench, key)
    assert slug_of(second) == "session-refused"
    assert "set-cookie" not in second.headers
    assert slug_of(opened(bench, "guess")) == "session-refused"


def test_a_cookie_opens_everything(bench: InProcessBench) -> None:
    headers = {"Cookie": cookie(bench)}
    assert bench.call("GET", "/v1/session", token=None, headers=headers).status_code == 200
    assert bench.call("GET", "/v1/projects", token=None, headers=headers).status_code == 200
    assert bench.call("GET", "/v1/tokens", token=None, headers=headers).status_code == 200


def test_one_request_has_what_a_screen_begins_with(tmp_path: Path) -> None:
    with InProcessBench(tmp_path) as bench:
        counts = bench.counted()
        (listed,) = bench.call("GET", "/v1/projects").json()["items"]
        address = f"/v1/session?log={listed['id']}"
        start = bench.call("GET", f"{address}&counts=true").json()
        assert start["projects"]["items"] == [listed]
        assert start["log"] == bench.call("GET", f"/v1/projects/{listed['id']}").json()
        assert start["counts"] == bench.call("GET", f"/v1/counts/{counts}").json()
        assert bench.call("GET", address).json()["counts"] is None

        # A log that is gone is missing, and everything else is there.
        start = bench.call("GET", "/v1/session?log=gone&counts=true").json()
        assert (start["log"], start["counts"]) == (None, None)
        assert start["projects"]["items"] == [listed]


def test_a_session_outlasts_the_process(tmp_path: Path) -> None:
    with InProcessBench(tmp_path) as bench:
        headers = {"Cookie": cookie(bench)}
        key = bench.bench.sessions.new_key()
    file = tmp_path / "data" / "sessions"
    assert file.stat().st_mode & 0o077 == 0
    assert headers["Cookie"].partition("=")[2] not in file.read_text()

    with InProcessBench(tmp_path) as bench:
        assert bench.call("GET", "/v1/projects", token=None, headers=headers).status_code == 200
        assert slug_of(opened(bench, key)) == "session-refused"

    # A file that somebody spoiled is no session, and no failure.
    file.write_text("spoiled\n")
    with InProcessBench(tmp_path) as bench:
        answer = bench.call("GET", "/v1/projects", token=None, headers=headers)
        assert slug_of(answer) == "token-missing"


def test_without_a_session_nothing_is_shown(bench: InProcessBench) -> None:
    assert slug_of(bench.call("GET", "/v1/projects", token=None)) == "token-missing"
    forged = {"Cookie": cookie(bench) + "x"}
    assert slug_of(bench.call("GET", "/v1/projects", token=None, headers=forged)) == "token-missing"
    broken = {"Cookie": "=;;=, x[="}
    assert slug_of(bench.call("GET", "/v1/projects", token=None, headers=broken)) == "token-missing"


def test_a_form_of_another_site_changes_nothing(bench: InProcessBench) -> None:
    body = b'{"sample": "thermostat"}'
    own = {"Cookie": cookie(bench)}
    form = {**own, "Content-Type": "text/plain"}
    answer = bench.call("POST", "/v1/projects", token=None, headers=form, content=body)
    assert slug_of(answer) == "unsupported-kind"
    foreign = {**own, "Content-Type": "application/json", "Origin": "http://evil.example"}
    answer = bench.call("POST", "/v1/projects", token=None, headers=foreign, content=body)
    assert slug_of(answer) == "origin-refused"
    assert bench.call("GET", "/v1/projects").json()["items"] == []


def test_tokens_work_as_in_the_service(bench: InProcessBench) -> None:
    reader = bench.token("read")
    assert bench.call("GET", "/v1/projects", token=reader).status_code == 200
    answer = bench.call("POST", "/v1/projects", {"sample": "thermostat"}, token=reader)
    assert slug_of(answer) == "role-missing"


def test_the_document_describes_every_route(bench: InProcessBench) -> None:
    document = bench.call("GET", "/v1/openapi.json", token=None).json()
    described = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    assert described == {(each.method, each.path) for each in bench.bench.operations}
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids))
    for name in ("VerdictView", "ComparisonResult", "ProbeResult"):
        assert name in document["components"]["schemas"]


def test_the_newest_of_those_that_wait_is_answered() -> None:
    """One at a time for each session; what a page no longer wants is not computed."""

    async def run() -> tuple[list[str], list[object]]:
        turns = Turns()
        computed: list[str] = []
        is_running = asyncio.Event()
        go_on = asyncio.Event()

        async def work(name: str) -> str:
            computed.append(name)
            is_running.set()
            await go_on.wait()
            return name

        first = asyncio.create_task(turns.take("me", lambda: work("first")))
        await is_running.wait()
        later = []
        for name in ("second", "third", "fourth"):
            later.append(asyncio.create_task(turns.take("me", partial(work, name))))
            await asyncio.sleep(0)
        other = asyncio.create_task(turns.take("you", lambda: work("other")))
        await asyncio.sleep(0)
        go_on.set()
        results = await asyncio.gather(first, *later, other, return_exceptions=True)
        return computed, list(results)

    computed, results = asyncio.run(run())
    assert computed == ["first", "other", "fourth"]
    assert results[0] == "first"
    assert [getattr(each, "slug", each) for each in results[1:]] == [
        "superseded",
        "superseded",
        "fourth",
        "other",
    ]
