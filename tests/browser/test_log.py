"""Log: roles, what follows from them, findings with their examples and remedies."""

from __future__ import annotations

import json
import re
import shutil
from urllib.parse import quote

from playwright.sync_api import Page, expect

from tests.helpers.browser import ROOT, Bench, Visitor


def role(page: Page, column: str) -> str:
    """The role of a column as it is shown."""
    chosen = page.get_by_label(f"Role of {column}", exact=True)
    text: str = chosen.evaluate("select => select.selectedOptions[0].textContent")
    return text


def test_roles_are_guessed_and_what_follows_is_derived(reader: Visitor) -> None:
    page = reader.open("#/thermostat/log")
    roles = {column: role(page, column) for column in ("day", "hour", "room", "did")}
    assert roles == {"day": "Episode", "hour": "Time", "room": "State", "did": "Action"}
    then = page.locator("tbody tr td.then")
    expect(then.nth(0)).to_have_text("hot")
    expect(then.nth(2)).to_have_text("comfortable")
    expect(then.nth(11)).to_have_text("end of episode")
    expect(page.get_by_text("440 used as transitions")).to_be_visible()
    expect(page.get_by_text("Nothing odd was found.")).to_be_visible()


def test_another_role_changes_what_follows_and_what_is_usable(reader: Visitor) -> None:
    page = reader.open("#/thermostat/log")
    page.get_by_label("Role of day").select_option("")
    expect(page.get_by_text("end of episode")).to_have_count(0)
    expect(page.get_by_text("Nothing odd was found.")).to_have_count(0)
    expect(page.get_by_text("440 used as transitions")).to_have_count(0)

    # Without a state nothing can be read; the table stays, and Back returns.
    page.get_by_label("Role of room").select_option("")
    expect(page.get_by_text("no column holds the state")).to_be_visible()
    expect(page.get_by_role("button", name="Use this log")).to_be_disabled()
    expect(page.locator("tbody tr").first).to_contain_text("vent")
    page.go_back()
    page.go_back()
    expect(page.get_by_text("440 used as transitions")).to_be_visible()
    assert role(page, "day") == "Episode"


def test_a_wrong_column_shows_the_hint_as_a_button_and_keeps_the_table(reader: Visitor) -> None:
    reader.expect_fault("status of 422")
    mapping = '{"state":["roam"],"action":["did"],"episode":"day","time":"hour"}'
    page = reader.open(f"#/thermostat/log?c={mapping}")
    expect(page.get_by_role("alert")).to_contain_text("roam")
    expect(page.locator("tbody tr").first).to_contain_text("vent")
    page.get_by_role("button", name="Use room").click()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.get_by_text("440 used as transitions")).to_be_visible()


def test_every_finding_has_a_title_and_an_example_that_leads_to_its_row(reader: Visitor) -> None:
    page = reader.open("#/dirty/log")
    expect(page.get_by_role("heading", name="9 findings")).to_be_visible()
    heads = page.get_by_role("region", name="9 findings").locator("button[aria-expanded]")
    for place in range(9):
        head = heads.nth(place)
        assert re.search(r"[a-z]+-[a-z]+-?[a-z]*$", head.inner_text().split("\n")[0]) is None
        if head.get_attribute("aria-expanded") == "false":
            head.click()
        expect(head).to_have_attribute("aria-expanded", "true")
        example = page.get_by_role("list", name="Examples").get_by_role("button").first
        number = re.sub(r"\D", "", example.inner_text())
        example.click()
        marked = page.locator("tr[aria-current=true]")
        expect(marked).to_have_attribute("data-row", number)
        expect(marked).to_be_in_viewport()


def test_a_remedy_does_what_it_says(reader: Visitor) -> None:
    page = reader.open("#/dirty/log")
    page.get_by_role("button", name=re.compile("never left")).click()
    page.get_by_role("button", name="Declare broken terminal").click()
    expect(page.get_by_role("heading", name="8 findings")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("never left"))).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("heading", name="9 findings")).to_be_visible()


def test_edges_of_bins_are_moved_by_the_keyboard(reader: Visitor) -> None:
    page = reader.open("#/tank/log")
    edge = page.get_by_role("slider").first
    before = edge.get_attribute("aria-valuenow")
    edge.focus()
    edge.press("ArrowRight")
    expect(edge).not_to_have_attribute("aria-valuenow", before or "")
    reader.settle(page)
    expect(page).to_have_url(re.compile("bins"))
    expect(page.get_by_role("button", name="Use this log")).to_be_enabled()


def test_the_order_of_states_is_kept_for_all_screens(reader: Visitor) -> None:
    reader.bench.open_log({"sample": "thermostat"})
    page = reader.open("#/thermostat/log")
    states = page.get_by_role("region", name="States")
    up = states.get_by_role("button", name=re.compile("hot.*(up|before)", re.IGNORECASE))
    up.first.click()
    reader.settle(page)
    goal = '{"prefer":{"comfortable":1}}'
    page = reader.open(f"#/thermostat/policy?g={goal}")
    names = page.get_by_role("rowheader").all_inner_texts()
    assert names == ["cold", "comfortable", "hot", "cool", "warm"]


def test_a_log_that_changed_on_disk_says_so_and_is_opened_again(
    own_bench: Bench, own_visitor: Visitor
) -> None:
    own_visitor.expect_fault("status of 4(22|04)")
    log = own_bench.folder / "room.csv"
    shutil.copy(ROOT / "examples" / "thermostat" / "log.csv", log)
    project = own_bench.open_log({"path": str(log)})
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:301]))

    # Neither the reasons of a policy nor the log show rows of the other file.
    goal = quote(json.dumps({"prefer": {"warm": 1}}))
    page = own_visitor.open(f"#/{project}/policy?g={goal}&s=cool&a=heat")
    reasons = page.get_by_text("room.csv has changed since it was read")
    expect(reasons).to_be_visible()
    expect(page.get_by_role("link", name="row 62")).to_have_count(0)
    page.get_by_role("link", name="See the log.").click()
    expect(page.get_by_role("alert")).to_contain_text("has changed since it was read")
    expect(page.locator("[data-row]")).to_have_count(0)
    expect(page.locator(".skeleton")).to_have_count(0)

    # One that is gone as well.
    log.rename(own_bench.folder / "away.csv")
    page.get_by_role("button", name="Open it again").click()
    expect(page.get_by_text("There is no file").first).to_be_visible()
    (own_bench.folder / "away.csv").rename(log)

    # Opened again it is a log of 300 rows that is not in use yet.
    page.get_by_role("button", name="Open it again").click()
    expect(page.locator("[data-row]").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("header.top")).to_contain_text("300 rows")
    expect(page.get_by_text("The log is in use")).to_have_count(0)
    page.get_by_role("button", name="Use this log").click()
    expect(page.get_by_role("heading", name="Goal & policy")).to_be_visible()
    assert own_bench.call("GET", f"v1/projects/{project}")["validation"]["rows"] == 300
