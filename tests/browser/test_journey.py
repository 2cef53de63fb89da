"""From a command to a saved policy, without the mouse."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.helpers.browser import ROOT, Bench, tab_to


def test_from_the_command_to_a_saved_policy_by_the_keyboard(
    browser: Browser, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    shutil.copy(ROOT / "examples" / "thermostat" / "log.csv", log)
    with Bench(tmp_path, log) as bench:
        context = browser.new_context()
        page = context.new_page()
        page.goto(bench.address)

        # Another browser with the same address sees nothing.
        other = browser.new_context().new_page()
        other.goto(bench.address)
        expect(other.get_by_role("alert")).to_contain_text("This page has no session")
        expect(other.get_by_text("log.csv")).to_have_count(0)
        other.context.close()

        # The roles were guessed.
        expect(page.get_by_text("440 used as transitions")).to_be_visible()
        tab_to(page, "button", "Use this log").press("Enter")
        expect(page).to_have_url(re.compile("#/log/policy"))

        # Sliders are native; Shift makes large steps.
        tab_to(page, "slider", "comfortable").press("End")
        warm = tab_to(page, "slider", "warm")
        warm.press("Shift+ArrowRight")
        warm.press("Shift+ArrowRight")
        expect(page.get_by_role("region", name="Verdict")).to_contain_text("Better")

        # The grid, a reason, and what must never be done.
        tab_to(page, "gridcell", "cold, heat")
        page.keyboard.press("]")
        page.keyboard.press("]")
        expect(page.get_by_role("gridcell", name="cool, heat")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Why heat in cool?")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("f")
        expect(page.get_by_role("gridcell", name="hot, heat: never")).to_be_visible()

        # Save it, and find it again.
        tab_to(page, "button", "Save policy").press("Enter")
        expect(page.get_by_label("Name")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.type("Comfort")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("d=dft_"))
        [draft] = context.request.get(f"{bench.url}v1/projects/log").json()["drafts"]
        context.close()

    assert draft["name"] == "Comfort"
    assert draft["goal"]["prefer"] == {"comfortable": 1, "warm": 0.5}
    assert draft["goal"]["forbid"] == [["hot", "heat"]]
