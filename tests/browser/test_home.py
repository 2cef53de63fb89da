"""Home: opening a log by each way there is, and what the list of logs says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.helpers.browser import ROOT, Bench, Visitor, visiting

LOG = ROOT / "examples" / "thermostat" / "log.csv"


@pytest.fixture(scope="module")
def new_bench(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench that was started without a log."""
    with Bench(tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def newcomer(browser: Browser, new_bench: Bench) -> Iterator[Visitor]:
    """A visitor of a workbench that has no logs."""
    for project in new_bench.call("GET", "v1/projects")["items"]:
        new_bench.call("DELETE", f"v1/projects/{project['id']}")
    yield from visiting(browser, new_bench)


def test_an_empty_workbench_offers_samples_and_opens_one(newcomer: Visitor) -> None:
    page = newcomer.open("#/home")
    expect(page.get_by_role("heading", name="Drop a log here")).to_be_visible()
    page.get_by_role("button", name="Thermostat").click()
    expect(page).to_have_url(re.compile("#/thermostat/log"))


def test_files_are_taken_over_by_choice_and_by_drop(newcomer: Visitor) -> None:
    page = newcomer.open("#/home")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a file").click()
    chooser.value.set_files(LOG)
    expect(page).to_have_url(re.compile("#/log-csv/log"))

    page = newcomer.open("#/home")
    page.evaluate(
        """text => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "dropped.csv"));
            window.dispatchEvent(new DragEvent("drop", { dataTransfer: transfer }));
        }""",
        LOG.read_text(encoding="utf-8"),
    )
    expect(page).to_have_url(re.compile("#/dropped-csv/log"))


def test_a_path_that_leads_nowhere_is_said_where_it_was_typed(newcomer: Visitor) -> None:
    newcomer.expect_fault("status of 4")
    shutil.copy(LOG, newcomer.bench.folder / "rooms.csv")
    page = newcomer.open("#/home")
    page.get_by_role("button", name="Name a file on this machine").click()
    dialog = page.get_by_role("dialog")
    path = dialog.get_by_label("Path")
    expect(path).to_be_focused()

    path.fill("room.csv")
    path.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("room.csv")
    expect(path).to_have_value("room.csv")

    path.fill("../elsewhere.csv")
    path.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("--root")

    path.fill("rooms.csv")
    path.press("Enter")
    expect(page).to_have_url(re.compile("#/rooms/log"))


def test_files_that_are_no_logs_are_refused_in_words(newcomer: Visitor) -> None:
    newcomer.expect_fault("status of 4")
    words = {"empty": "empty", "binary": "no text"}
    contents = {"empty": b"", "binary": bytes(range(256)) * 40}
    page = newcomer.open("#/home")
    for name, content in contents.items():
        file = newcomer.bench.folder / f"{name}.csv"
        file.write_bytes(content)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="Choose a file").click()
        chooser.value.set_files(file)
        expect(page.get_by_role("alert")).to_contain_text(words[name])
        expect(page).to_have_url(re.compile("#/home"))


def test_logs_are_listed_with_their_goals(visitor: Visitor) -> None:
    page = visitor.open("#/home")
    row = page.get_by_role("row").filter(has_text="thermostat.csv")
    expect(row).to_contain_text("480 rows, 5 states, 3 actions")
    expect(row).to_contain_text("Be in")
    expect(row).to_contain_text("Not deployed")
    row.get_by_role("link").click()
    expect(page).to_have_url(re.compile("#/thermostat/"))
