"""Watch: decisions made by programs appear, and what became of them is said as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.browser import Bench, Visitor, visiting

POLICY = "v1/policies/rooms"


@pytest.fixture(scope="module")
def watch_bench(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench with a live policy."""
    with Bench(tmp_path_factory.mktemp("watch")) as running:
        project = running.open_log({"sample": "thermostat"})
        draft = running.save(project, {"prefer": {"comfortable": 1, "warm": 0.5}}, "Comfort")
        running.call("PUT", POLICY, {})
        version = running.call("POST", f"{POLICY}/versions", {"draft": draft, "note": "first"})
        etag = running.client.get(POLICY).headers["etag"]
        change = {"version": version["version"], "mode": "live", "outcome_due_s": 1}
        running.call("PATCH", POLICY, change, **{"If-Match": etag})
        yield running


@pytest.fixture
def watcher(browser: Browser, watch_bench: Bench) -> Iterator[Visitor]:
    """A visitor who watches."""
    yield from visiting(browser, watch_bench)


def decide(bench: Bench, state: str) -> str:
    """Id of a decision made by a program."""
    decision: str = bench.call("POST", f"{POLICY}/decide", {"state": state})["decision_id"]
    return decision


def test_a_decision_appears_by_itself_and_says_what_became_of_it(watcher: Visitor) -> None:
    bench = watcher.bench
    page = watcher.open("#/thermostat/watch")
    table = page.get_by_role("region", name="Decisions, the newest first")

    # In time.
    decision = decide(bench, "cool")
    bench.call("POST", f"v1/decisions/{decision}/outcome", {"next_state": "comfortable"})
    row = table.get_by_role("row").filter(has_text="cool").first
    expect(row).to_contain_text("comfortable", timeout=5_000)

    # Another outcome for the same decision is a conflict; the first one stays.
    conflict = bench.client.post(f"v1/decisions/{decision}/outcome", json={"next_state": "hot"})
    assert conflict.status_code == 409
    expect(row).to_contain_text("conflict", timeout=5_000)
    expect(row).to_contain_text("comfortable")

    # Late, and never.
    late = decide(bench, "warm")
    decide(bench, "cold")
    page.wait_for_timeout(1_200)
    bench.call("POST", f"v1/decisions/{late}/outcome", {"next_state": "warm"})
    expect(table.get_by_role("row").filter(has_text="warm").first).to_contain_text("late")
    expect(table.get_by_role("row").filter(has_text="cold").first).to_contain_text("missing")


def test_a_decision_shows_the_rule_as_it_was(watcher: Visitor) -> None:
    earlier = decide(watcher.bench, "hot")
    outcome = {"next_state": "warm"}
    watcher.bench.call("POST", f"v1/decisions/{earlier}/outcome", outcome)
    decision = decide(watcher.bench, "hot")
    page = watcher.open(f"#/thermostat/watch?i={decision}")
    sheet = page.get_by_role("dialog")
    expect(sheet.get_by_role("heading", name="The rule as it was then")).to_be_visible()
    expect(sheet).to_contain_text("hot")
    expect(sheet).to_contain_text("80 records of the log and on what it learned here since.")
    page.keyboard.press("Escape")
    expect(sheet).to_have_count(0)


def test_a_gap_in_the_stream_is_said_and_heals(watcher: Visitor) -> None:
    watcher.expect_fault("ERR_INTERNET_DISCONNECTED|ERR_NETWORK")
    page = watcher.open("#/thermostat/watch")
    expect(page.get_by_text("Up to date")).to_be_visible()
    page.clock.install()
    watcher.context.set_offline(True)
    page.clock.run_for(60_000)
    expect(page.get_by_text("Last heard of")).to_be_visible()
    watcher.context.set_offline(False)
    page.clock.run_for(20_000)
    expect(page.get_by_text("Up to date")).to_be_visible()


def test_a_version_is_what_was_deployed_whatever_became_of_its_draft(watcher: Visitor) -> None:
    bench = watcher.bench
    draft = bench.save("thermostat", {"prefer": {"warm": 1}}, "Winter", "TL_foresight")
    version = bench.call("POST", f"{POLICY}/versions", {"draft": draft})["version"]
    view = "#/thermostat/deploy?n=rooms"
    expect(watcher.open(view).get_by_text("Planning, made today")).to_be_visible()

    # The draft becomes another policy; the version stays what it is.
    place = f"v1/drafts/{draft}"
    change = {"goal": {"prefer": {"cold": 1}}, "method": "TL"}
    bench.call("PATCH", place, change, **{"If-Match": bench.client.get(place).headers["etag"]})
    page = watcher.open(view)
    page.get_by_role("button", name=f"More about version {version}").click()
    versions = page.get_by_role("region", name="Versions")
    expect(versions).to_contain_text("Be in warm")
    expect(versions).not_to_contain_text("cold")
    page.get_by_role("button", name=f"Use v{version}").click()
    dialog = page.get_by_role("dialog", name=f"Go live with v{version}, Winter?")
    expect(dialog).to_contain_text("No saved policy is the same, so Trust cannot judge it")
    expect(dialog).not_to_contain_text("learned from decisions")
    expect(dialog.get_by_role("link", name="report")).to_be_visible()
