"""A server that stops and comes back, and answers that come late."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.helpers.browser import Visitor


def test_a_stopped_workbench_is_said_and_the_page_goes_on_when_it_is_back(
    own_visitor: Visitor,
) -> None:
    own_visitor.expect_fault("ERR_CONNECTION_REFUSED|ERR_SOCKET|ERR_EMPTY|ERR_CONNECTION_RESET")
    bench = own_visitor.bench
    bench.open_log({"sample": "thermostat"})
    page = own_visitor.open("#/home")
    page.get_by_role("button", name="Name a file").first.click()
    page.get_by_label("Path").fill("half a na")

    # The last answer stays, and so does what was typed.
    bench.kill()
    page.keyboard.press("Enter")
    stopped = page.get_by_text("The workbench has stopped.")
    expect(stopped).to_be_visible(timeout=20_000)
    expect(page.get_by_role("row").filter(has_text="thermostat")).to_have_count(1)

    # The same session goes on.
    bench.start()
    expect(stopped).to_have_count(0, timeout=20_000)
    expect(page.get_by_label("Path")).to_have_value("half a na")
    page.keyboard.press("Escape")
    expect(page.get_by_text("This page has no session")).to_have_count(0)
    expect(page.get_by_role("row").filter(has_text="thermostat")).to_have_count(1)
