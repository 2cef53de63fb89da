"""One browser and one workbench for all tests here; each test has cookies and tabs of its own.

Playwright keeps an event loop for as long as its browser runs, and nothing else can start one in
that thread: the browser ends with the tests of this folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pastwise.workbench.sources import samples_at_hand
from tests.helpers.browser import ROOT, Bench, Visitor, chromium, visiting
from tests.helpers.browser_logs import (
    CHAIN,
    NASTY,
    NASTY_COLUMNS,
    write_chain,
    write_dirty,
    write_features,
    write_nasty,
)

expect.set_options(timeout=20_000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="package")
def bench(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench on the log of the thermostat, which has been read and has saved policies."""
    folder = tmp_path_factory.mktemp("bench")
    log = folder / "thermostat.csv"
    shutil.copy(ROOT / "examples" / "thermostat" / "log.csv", log)
    with Bench(folder, log) as running:
        project = running.open_log({"path": str(log)})
        running.save(project, {"prefer": {"comfortable": 1, "warm": 0.5}}, "Comfort")
        running.save(project, {"prefer": {"warm": 1}}, "Warm", "TL_foresight")
        running.save(project, {"prefer": {"cold": 0.5, "warm": 0.5}}, "Odd")
        yield running


@pytest.fixture(scope="package")
def library(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A workbench with many logs: odd, with numbers, with nasty labels, large and very large."""
    folder = tmp_path_factory.mktemp("library")
    with Bench(folder) as running:
        running.call("POST", "v1/projects", {"path": str(write_dirty(folder / "dirty.csv"))})
        running.call("POST", "v1/projects", {"path": str(write_features(folder / "tank.csv"))})
        running.call("POST", "v1/projects", {"sample": "thermostat"})
        if "migraine" in samples_at_hand():
            running.open_log({"sample": "migraine"})
        for states in (400, 1_000, 100_000):
            log = write_chain(folder / f"chain{states}.csv", states)
            running.open_log({"path": str(log)}, CHAIN)
        log = write_nasty(folder / f"<i>nasty & long {'n' * 120}.csv")
        nasty = running.open_log({"path": str(log)}, NASTY_COLUMNS)
        name = f"<u>{NASTY[2]}</u> " + "w" * 80
        running.save(nasty, {"prefer": {NASTY[0]: 1, NASTY[5]: 0.5}}, name)
        yield running


@pytest.fixture
def reader(browser: Browser, library: Bench) -> Iterator[Visitor]:
    """A visitor of the library."""
    yield from visiting(browser, library)


@pytest.fixture
def visitor(browser: Browser, bench: Bench) -> Iterator[Visitor]:
    """A visitor of the shared workbench; any fault on a page fails the test."""
    yield from visiting(browser, bench)


@pytest.fixture
def own_bench(browser: Browser, tmp_path: Path) -> Iterator[Bench]:
    """A workbench of this test alone, without a log."""
    with Bench(tmp_path) as running:
        yield running


@pytest.fixture
def own_visitor(browser: Browser, own_bench: Bench) -> Iterator[Visitor]:
    """A visitor of the workbench of this test."""
    yield from visiting(browser, own_bench)
