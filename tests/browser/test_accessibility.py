"""Every screen for every reader: axe, narrow windows, zoom, motion, forced colours."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import NARROW, THEMES, WIDE, Visitor, overflow, too_wide, violations

GOAL = "g=%7B%22prefer%22%3A%7B%22comfortable%22%3A1%2C%22warm%22%3A0.5%7D%7D"
VIEWS = [
    "#/home",
    "#/thermostat/log",
    f"#/thermostat/policy?{GOAL}&s=cool&a=heat",
    f"#/thermostat/trust?{GOAL}",
    "#/thermostat/compare",
    "#/thermostat/deploy",
    "#/thermostat/watch",
]
NAMES = ["home", "log", "policy", "trust", "compare", "deploy", "watch"]

every_screen = pytest.mark.parametrize("view", VIEWS, ids=NAMES)


@every_screen
def test_axe_finds_nothing_in_any_theme_or_width(visitor: Visitor, view: str) -> None:
    page = visitor.open(view)
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            visitor.settle(page)
            assert violations(page) == [], (width, theme)


@every_screen
def test_small_windows_no_motion_and_forced_colours(visitor: Visitor, view: str) -> None:
    """At a zoom of 200 % a window of 1280 pixels has 640, at one of 400 % it has 320."""
    page = visitor.open(view)

    # Readers who want no motion get none.
    moving = page.evaluate(
        """[...document.querySelectorAll('*')].filter((element) => {
            const style = getComputedStyle(element);
            const seconds = (text) => Math.max(...text.split(',').map(parseFloat));
            const longest = seconds(`${style.transitionDuration},${style.animationDuration}`);
            return longest > 0.01;
        }).map((element) => element.outerHTML.slice(0, 80))"""
    )
    assert moving == []

    # Small windows and large letters scroll one way.
    for width in (640, 320):
        page.set_viewport_size({"width": width, "height": 640})
        visitor.settle(page)
        assert overflow(page) <= 0, (width, too_wide(page))

    # The content stays where the system chooses the colours.
    page.emulate_media(forced_colors="active", color_scheme="dark")
    visitor.settle(page)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert violations(page, but="color-contrast") == []


@every_screen
def test_every_stop_of_the_tab_key_is_seen_and_named(visitor: Visitor, view: str) -> None:
    """Focus goes once around the page without a trap; each stop has an outline and a name."""
    page = visitor.open(view)
    stops: list[tuple[str, bool, bool]] = []
    for _ in range(200):
        page.keyboard.press("Tab")
        stop = page.evaluate(
            """() => {
                const element = document.activeElement;
                if (element === document.body) return null;
                const style = getComputedStyle(element);
                const isOutlined = style.outlineStyle !== 'none' && style.outlineWidth !== '0px';
                const isShadowed = style.boxShadow !== 'none';
                const isSlider = element.type === 'range';  // its thumb has the outline
                const box = element.getBoundingClientRect();
                const isInside = box.bottom > 0 && box.top < innerHeight && box.width > 0;
                const isSeen = isOutlined || isShadowed || isSlider;
                return [element.outerHTML.slice(0, 120), isSeen, isInside];
            }"""
        )
        if stop is None or (stops and stop[0] == stops[0][0]):
            break
        stops.append(stop)
    else:
        pytest.fail("the Tab key does not come around")
    assert len(stops) > 3
    assert [html for html, is_outlined, _ in stops if not is_outlined] == []
    assert [html for html, _, is_inside in stops if not is_inside] == []


@pytest.mark.parametrize("step", ["trust", "compare"])
def test_trust_and_compare_are_printed_on_one_page(visitor: Visitor, step: str) -> None:
    page = visitor.open(f"#/thermostat/{step}?{GOAL}")
    expect(page.get_by_text("…", exact=True)).to_have_count(0)
    printed = page.pdf(format="A4")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1

    # Paper is light, and has neither steps nor buttons.
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("navigation")).to_have_count(0)
    ink = page.evaluate("getComputedStyle(document.body).color.match(/[\\d.]+/g).map(Number)")
    assert sum(ink[:3]) < 384
