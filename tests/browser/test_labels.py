"""Labels that pages have tripped over: shown as text, on every screen, without running over."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.browser import NARROW, WIDE, Bench, Visitor, overflow, visiting
from tests.helpers.browser_logs import NASTY, write_nasty


@pytest.fixture(scope="module")
def nasty_bench(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench on a log of nasty labels."""
    folder = tmp_path_factory.mktemp("nasty")
    columns = {
        "state": ["state “of” things"],
        "action": ["__proto__"],
        "episode": "<b>episode</b>",
        "time": "time",
    }
    with Bench(folder) as running:
        log = write_nasty(folder / f"<i>nasty & long {'n' * 120}.csv")
        project = running.open_log({"path": str(log)}, columns)
        name = f"<u>{NASTY[2]}</u> " + "w" * 80
        running.save(project, {"prefer": {NASTY[0]: 1, NASTY[5]: 0.5}}, name)
        yield running


@pytest.fixture
def trickster(browser: Browser, nasty_bench: Bench) -> Iterator[Visitor]:
    """A visitor of that log."""
    yield from visiting(browser, nasty_bench)


@pytest.mark.parametrize("step", ["home", "log", "policy", "trust", "compare", "deploy"])
def test_labels_are_text_and_stay_within_the_page(trickster: Visitor, step: str) -> None:
    [project] = trickster.bench.call("GET", "v1/projects")["items"]
    goal = quote(json.dumps({"prefer": {NASTY[0]: 1, NASTY[5]: 0.5}}))
    cell = f"&s={quote(NASTY[5])}&a={quote(NASTY[0])}" if step == "policy" else ""
    view = "#/home" if step == "home" else f"#/{project['id']}/{step}?g={goal}{cell}"
    page = trickster.open(view)
    page.on("dialog", lambda dialog: pytest.fail(f"a label ran: {dialog.message}"))
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        trickster.settle(page)
        assert overflow(page) <= 0, width
    assert page.locator("main img, main script, main u, main i > *[onerror]").count() == 0
    if step == "log":
        expect(page.get_by_text(NASTY[0]).first).to_be_visible()
        expect(page.get_by_text(NASTY[2]).first).to_be_visible()
    if step == "policy":
        expect(page.get_by_role("rowheader", name=NASTY[0])).to_be_visible()
        expect(page.get_by_role("gridcell")).not_to_have_count(0)
