"""Labels that pages have tripped over: shown as text, on every screen, without running over."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import NARROW, WIDE, Visitor, overflow
from tests.helpers.browser_logs import NASTY


@pytest.mark.parametrize("step", ["home", "log", "policy", "trust", "compare", "deploy"])
def test_labels_are_text_and_stay_within_the_page(reader: Visitor, step: str) -> None:
    projects = reader.bench.call("GET", "v1/projects")["items"]
    [project] = [each for each in projects if "nasty" in each["name"]]
    goal = quote(json.dumps({"prefer": {NASTY[0]: 1, NASTY[5]: 0.5}}))
    cell = f"&s={quote(NASTY[5])}&a={quote(NASTY[0])}" if step == "policy" else ""
    view = "#/home" if step == "home" else f"#/{project['id']}/{step}?g={goal}{cell}"
    page = reader.open(view)
    page.on("dialog", lambda dialog: pytest.fail(f"a label ran: {dialog.message}"))
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        reader.settle(page)
        assert overflow(page) <= 0, width
    assert page.locator("main img, main script, main u, main i > *[onerror]").count() == 0
    if step == "log":
        expect(page.get_by_text(NASTY[0]).first).to_be_visible()
        expect(page.get_by_text(NASTY[2]).first).to_be_visible()
    if step == "policy":
        expect(page.get_by_role("rowheader", name=NASTY[0])).to_be_visible()
        expect(page.get_by_role("gridcell")).not_to_have_count(0)
