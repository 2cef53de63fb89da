"""The frame around every screen: palette, keys, theme, history and focus."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

import pastwise as pw
from tests.helpers.browser import NARROW, Visitor
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT


def theme_of(page: Page) -> str:
    """The scheme in which the page is painted."""
    ink: list[float] = page.evaluate(
        "getComputedStyle(document.body).color.match(/[\\d.]+/g).slice(0, 3).map(Number)"
    )
    return "dark" if sum(ink) > 384 else "light"


def test_the_palette_finds_a_log_and_goes_there(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find or do")
    expect(field).to_be_focused()
    field.fill("thermo")
    expect(page.get_by_role("option", selected=True)).to_contain_text("thermostat.csv")
    field.press("Enter")
    expect(page).to_have_url(re.compile("#/thermostat/"))
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_focus_returns_when_the_palette_closes(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    opener = page.get_by_role("button", name="Find or do")
    opener.focus()
    opener.press("Enter")
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()


def test_single_keys_act_and_can_be_turned_off(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    assert theme_of(page) == "light"
    page.keyboard.press("t")
    assert theme_of(page) == "dark"
    page.keyboard.press("?")
    page.get_by_label("Single keys act").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("t")
    assert theme_of(page) == "dark"


def test_keys_act_after_a_slider_was_moved(visitor: Visitor) -> None:
    page = visitor.open("#/thermostat/policy")
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    expect(page).to_have_url(re.compile("#/thermostat/trust"))


def test_keys_do_not_act_while_somebody_types(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    page.get_by_role("button", name="Name a file").first.click()
    page.get_by_label("Path").fill("")
    page.keyboard.type("t?1")
    expect(page.get_by_label("Path")).to_have_value("t?1")
    assert theme_of(page) == "light"


def test_the_system_chooses_the_theme_until_the_reader_does(visitor: Visitor) -> None:
    page = visitor.open("#/home", theme="dark")
    assert theme_of(page) == "dark"
    page.emulate_media(color_scheme="light")
    assert theme_of(page) == "light"
    page.get_by_role("button", name="Dark colours").click()
    assert theme_of(page) == "dark"
    page.reload()
    visitor.settle(page)
    assert theme_of(page) == "dark"


def test_the_skip_link_comes_first_and_leads_to_the_content(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


def test_back_returns_to_the_view_before(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    page.get_by_role("main").get_by_role("link", name="thermostat.csv").click()
    expect(page).to_have_url(re.compile("#/thermostat/"))
    page.go_back()
    expect(page).to_have_url(re.compile("#/home$"))
    expect(page.get_by_role("heading", level=1, name="Logs and policies")).to_be_visible()


def test_an_address_that_is_no_view_shows_one(visitor: Visitor) -> None:
    visitor.expect_fault("status of 404")
    page = visitor.open("#/%E0%A4%A/log")
    for view in ("#", "#nonsense", "#/home?x=%", "#/missing/log"):
        page.evaluate("view => { location.hash = view; }", view)
        visitor.settle(page)
        expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_steps_are_at_the_bottom_of_narrow_windows(visitor: Visitor) -> None:
    page = visitor.open("#/thermostat/policy", NARROW)
    tabs = page.get_by_role("navigation", name="Steps")
    current = tabs.get_by_role("link", name="Policy")
    expect(current).to_have_attribute("aria-current", "page")
    expect(current).to_be_in_viewport()
    tabs.get_by_role("link", name="Log").click()
    expect(page).to_have_url(re.compile("#/thermostat/log"))


def test_a_learner_opens_on_its_policy(browser: Browser) -> None:
    learner = pw.TransferLearner(COMFORT, method="TL").fit(THERMOSTAT, columns=COLUMNS)
    with learner.workbench(name="Rooms & halls", browser=False) as opened:
        page = browser.new_page()
        page.goto(opened.address)
        expect(page.get_by_role("heading", name="Goal & policy")).to_be_visible()
        expect(page.locator("header.top .chip")).to_have_text("Rooms & halls")
        expect(page.get_by_role("grid")).to_be_visible()
        page.close()
