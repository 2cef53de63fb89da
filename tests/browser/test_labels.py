"""Labels that pages have tripped over: shown as text, on every screen, without running over."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, expect

import pastwise as pw
from pastwise._pictures import (
    BarRow,
    IntervalRow,
    RuleRow,
    bar_picture,
    interval_picture,
    rule_picture,
)
from pastwise.policy.card import PolicyCard
from pastwise.report.card import card_html
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


LONG = [*NASTY, "W" * 40, "m" * 40, "INCREASE THE DOSE SLOWLY", "i" * 200, "冷" * 30, "Щ" * 30]
"""Labels in letters of every width."""


def long_pictures() -> list[str]:
    """Pictures of long labels and long numbers."""
    rows = [RuleRow(label, [0.125] * 8, [0.125] * 8) for label in LONG]
    wide = [RuleRow(label, [1.0] + [0.0] * 9) for label in LONG]
    bars = [BarRow(label, 0.5, 1.0, "1,234,567 of 9,999,999 records") for label in LONG]
    details = [BarRow(label, 0.5, 1.0, "1", is_detail=True) for label in LONG]
    intervals = [IntervalRow(label, -123456.789, -200000.123, -100000.123) for label in LONG]
    return [
        rule_picture(LONG[:8], rows),
        rule_picture(LONG[8:16], rows),
        rule_picture(LONG[:10], wide),
        bar_picture(bars + details, "Bars"),
        interval_picture(intervals, label="Intervals"),
    ]


@pytest.mark.parametrize("font", ["system-ui", "serif", "monospace"])
def test_labels_of_pictures_do_not_touch(browser: Browser, font: str) -> None:
    page = browser.new_page()
    page.set_content("".join(long_pictures()).replace("system-ui", font))
    touching = page.evaluate(
        """() => [...document.querySelectorAll('svg')].flatMap((svg) => {
            const texts = [...svg.querySelectorAll('text')].filter((text) => text.textContent);
            const boxes = texts.map((text) => [text.firstChild.data, text.getBBox()]);
            const { width } = svg.viewBox.baseVal;
            const isCut = ([, box]) => box.x < -1 || box.x + box.width > width;
            const areTouching = ([, one], [, other]) =>
                Math.abs(one.y - other.y) < 4
                && one.x < other.x + other.width && other.x < one.x + one.width;
            const pairs = boxes.flatMap((one, place) =>
                boxes.slice(place + 1).filter((other) => areTouching(one, other))
                    .map((other) => `${one[0]} | ${other[0]}`));
            return [...boxes.filter(isCut).map(([text]) => text), ...pairs];
        })"""
    )
    page.close()
    assert touching == []


def test_results_of_a_notebook_are_as_wide_as_its_page(browser: Browser) -> None:
    states = ["W" * 200, "cold", "warm"]
    actions = ["i" * 200, "heat", "wait"]
    log = {"state": states * 3, "action": [*actions, *actions[1:], *actions, "heat"]}
    log["next"] = states[1:] * 4 + states[:1]
    goal = pw.Goal(prefer={states[0]: 1}, forbid=[(states[1], actions[0])])
    learner = pw.TransferLearner(goal).fit(log, state="state", action="action", next_state="next")
    results: list[Any] = [learner, learner.rule_, learner.counts_, learner.explain(states[0])]
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.set_content("".join(result._repr_html_() for result in results))
    page.locator("details").evaluate_all("folded => folded.forEach((each) => (each.open = true))")
    assert overflow(page) <= 0
    short = page.get_by_role("cell", name="heat", exact=True).first
    assert short.evaluate("cell => cell.clientWidth") > 20
    page.close()


def test_headers_of_a_report_are_whole_words(browser: Browser) -> None:
    log = {"state": LONG, "action": LONG[::-1], "next": LONG}
    learner = pw.TransferLearner(pw.Goal(prefer={LONG[0]: 1}))
    learner.fit(log, state="state", action="action", next_state="next")
    page = browser.new_page()
    page.set_content(card_html(PolicyCard.of(learner, None)))
    for width in (1440, 320):
        page.set_viewport_size({"width": width, "height": 900})
        lines = page.locator("thead th").evaluate_all(
            """heads => heads.map((head) => {
                const range = document.createRange();
                range.selectNodeContents(head);
                return range.getClientRects().length;
            })"""
        )
        assert set(lines) == {1}, width
        assert overflow(page) <= 0, width
    page.close()
