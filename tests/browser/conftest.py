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

from tests.helpers.browser import ROOT, Bench, Visitor, chromium, visiting

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
