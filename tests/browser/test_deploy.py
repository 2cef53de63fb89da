"""Deploy: going live asks for the verdict to be read, and can be undone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.helpers.browser import Bench, Visitor, visiting

GOOD = {"prefer": {"comfortable": 1, "warm": 0.5}}
HARMFUL = {"prefer": {"cold": 0.5, "warm": 0.5}}


@pytest.fixture(scope="module")
def deploy_bench(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench with a good policy and one that may do harm."""
    with Bench(tmp_path_factory.mktemp("deploy")) as running:
        project = running.open_log({"sample": "thermostat"})
        running.save(project, GOOD, "Comfort")
        running.save(project, HARMFUL, "Odd")
        yield running


@pytest.fixture
def engineer(browser: Browser, deploy_bench: Bench) -> Iterator[Visitor]:
    """A visitor who deploys."""
    yield from visiting(browser, deploy_bench)


def make_version(engineer: Visitor, page: Page, draft: str) -> None:
    """Make a version of a saved policy, after its verdict has arrived."""
    page.get_by_role("button", name="Make a version").first.click()
    dialog = page.get_by_role("dialog", name="Make a version")
    dialog.get_by_label("Saved policy").select_option(label=f"{draft}, similarity")
    engineer.settle(page)
    read = dialog.get_by_label("I have read this")
    make = dialog.get_by_role("button", name="Make the version")
    expect(read.or_(dialog.get_by_text("No findings, no alarm."))).to_be_visible()
    if read.count():
        read.check()
    make.click()
    expect(dialog).to_have_count(0)


def test_going_live_with_an_alarm_needs_a_reason_and_rollback_undoes_it(
    engineer: Visitor,
) -> None:
    page = engineer.open("#/thermostat/deploy")
    expect(page.get_by_role("heading", name="No version yet")).to_be_visible()
    make_version(engineer, page, "Comfort")
    engineer.settle(page)

    # A good version goes live after its verdict was read.
    page.get_by_role("radiogroup", name="Mode").get_by_text("Live").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Better")
    expect(dialog).to_contain_text("90 % interval")
    dialog.get_by_role("button", name="Go live", exact=True).click()
    expect(dialog).to_have_count(0)

    # One that may do harm needs a reason, which is stored.
    make_version(engineer, page, "Odd")
    engineer.settle(page)
    page.get_by_role("button", name="More about version 2").click()
    page.get_by_role("button", name="Use v2").click()
    dialog = page.get_by_role("dialog")
    go = dialog.get_by_role("button", name="Go live all the same")
    expect(go).to_be_disabled()
    dialog.get_by_label("Why all the same?").fill("The boss wants it.")
    go.click()
    expect(dialog).to_have_count(0)
    engineer.settle(page)

    bench = engineer.bench
    [policy] = bench.call("GET", "v1/policies")["items"]
    assert policy["settings"]["mode"] == "live"
    assert policy["settings"]["version"] == 2
    audit = bench.call("GET", "v1/audit")["items"]
    assert any("The boss wants it." in str(entry) for entry in audit)

    # Back to the version before.
    page.get_by_role("button", name="Roll back to v1").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Why?").fill("It did harm.")
    dialog.get_by_role("button", name="Roll back").click()
    expect(dialog).to_have_count(0)
    [policy] = bench.call("GET", "v1/policies")["items"]
    assert policy["settings"]["version"] == 1


def test_a_token_is_shown_once_and_the_code_on_the_page_runs_with_it(engineer: Visitor) -> None:
    page = engineer.open("#/thermostat/deploy")
    if page.get_by_role("heading", name="No version yet").count():
        make_version(engineer, page, "Comfort")
    page.get_by_role("region", name="Tokens").get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("boiler")
    dialog.get_by_role("button", name="Make the token").click()
    secret = page.locator("output").inner_text()
    assert len(secret) > 20
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_text(secret)).to_have_count(0)
    expect(page.get_by_text("boiler").first).to_be_visible()

    code = page.locator("pre").first.inner_text()
    program = [sys.executable, "-c", code]
    subprocess.run(program, env={**os.environ, "TOKEN": secret}, check=True)
    [policy] = engineer.bench.call("GET", "v1/policies")["items"]
    decisions = engineer.bench.call("GET", f"v1/policies/{policy['name']}/decisions")["items"]
    assert decisions[0]["outcome"] is not None


def test_a_setting_that_cannot_be_is_refused_in_words(engineer: Visitor) -> None:
    page = engineer.open("#/thermostat/deploy")
    if page.get_by_role("heading", name="No version yet").count():
        make_version(engineer, page, "Comfort")
    for name, wrong in (("Outcome due within", "-5"), ("Smallest probability", "")):
        field = page.get_by_label(name, exact=True)
        before = field.input_value()
        field.fill(wrong)
        field.press("Tab")
        expect(page.get_by_text("Not saved:")).to_be_visible()
        field.fill(before)
        field.press("Tab")
        expect(page.get_by_text("Not saved:")).to_have_count(0)
