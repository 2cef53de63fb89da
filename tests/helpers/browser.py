"""A real browser on a real ``pastwise workbench``.

A `Bench` is the process that a person starts; a `Visitor` opens its pages in Chromium and notes
everything that went wrong on them: errors of the console, which violations of the content security
policy are among, exceptions that nobody caught, and requests to any other host.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn, Self
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    sync_playwright,
)

from pastwise.workbench.pages import Pages

ROOT = Path(__file__).parents[2]
AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"

REQUIRED = "PASTWISE_REQUIRE_BROWSER"
"""Environment variable that makes tests fail where something that they need is missing."""

CHROMIUM = "PASTWISE_CHROMIUM"
"""Environment variable that names another browser than the one that is installed."""

DEBIAN = "/usr/bin/chromium"

WIDE = (1440, 900)
NARROW = (420, 900)

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")


# What the tests need


def missing(reason: str) -> NoReturn:
    """Leave a test out, or fail where everything must be tested."""
    if os.environ.get(REQUIRED) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def find_chromium() -> str | None:
    """The browser."""
    named = os.environ.get(CHROMIUM)
    if named:
        return named
    return DEBIAN if Path(DEBIAN).exists() else shutil.which("chromium")


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    program = find_chromium()
    if program is None:
        missing("there is no Chromium: install the package chromium, or set PASTWISE_CHROMIUM")
    if not Pages().is_built:
        missing("the page is not built: run make frontend, which needs Node")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--font-render-hinting=none"]
        )
        yield browser
        browser.close()


# The process


class Bench:
    """A ``pastwise workbench`` that can be killed and started again on the same port.

    Parameters
    ----------
    folder : Path
        Root of the logs; the data are in a folder below it.
    log : Path, optional
        A log to open.
    patience : float
        Seconds within which it stops.
    """

    def __init__(self, folder: Path, log: Path | None = None, *, patience: float = 60.0) -> None:
        self.folder = folder
        self.port = 0
        self.address = ""
        self._log = log
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None
        self._client: httpx.Client | None = None
        self._counts: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._client is not None:
            self._client.close()
        if self._process is not None:
            self.stop()

    def start(self) -> None:
        """Start the process and wait for its address."""
        command = [sys.executable, "-m", "pastwise", "workbench"]
        if self._log is not None:
            command.append(str(self._log))
        command += ["--no-browser", f"--port={self.port}", f"--root={self.folder}"]
        command.append("--worker-niceness=0")
        with (self.folder / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("Workbench: http://127.0.0.1:"), (self.folder / "stderr").read_text()
        self.address = line.split()[1]
        self.port = urlsplit(self.address).port or 0

    @property
    def url(self) -> str:
        """Address of the page without the key."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def process(self) -> subprocess.Popen[str]:
        """The process, which must have been started."""
        assert self._process is not None
        return self._process

    def kill(self) -> None:
        """End the process without a warning."""
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        """End the process as Ctrl-C does; return its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self._ended()

    def _ended(self) -> int:
        with self.process as process:
            code = process.wait(self._patience)
        self._process = None
        return code

    # What tests prepare by calls of the service

    @property
    def client(self) -> httpx.Client:
        """A client with a session; it uses up the key of the address."""
        if self._client is None:
            self._client = httpx.Client(base_url=self.url, timeout=60.0)
            self.call("POST", "v1/session", {"key": self.address.partition("#key=")[2]})
        return self._client

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer of the service, which must be a good one."""
        answer = self.client.request(
            method, path, json={} if body is None and method == "POST" else body, headers=headers
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def open_log(self, source: dict[str, str], columns: dict[str, Any] | None = None) -> str:
        """Id of a log, which is read by columns or by the guess of the workbench."""
        project = self.call("POST", "v1/projects", source)
        if project["counts"] is None:
            if columns is None:
                columns = {
                    role: names
                    for role, names in project["guess"].items()
                    if role in ("state", "action", "next_state", "episode", "time")
                }
            self.call("POST", f"v1/projects/{project['id']}/mapping", columns)
        identity: str = project["id"]
        return identity

    def counts_of(self, project: str) -> str:
        """Id of the counts of a log."""
        if project not in self._counts:
            self._counts[project] = self.call("GET", f"v1/projects/{project}")["counts"]
        return self._counts[project]

    def save(self, project: str, goal: dict[str, Any], name: str, method: str = "TL") -> str:
        """Id of a new saved policy."""
        body = {"name": name, "goal": goal, "method": method}
        draft: str = self.call("POST", f"v1/counts/{self.counts_of(project)}/drafts", body)["id"]
        return draft


# The browser


class Visitor:
    """Opens pages in one context of a browser, with its own cookies and storage."""

    def __init__(self, browser: Browser, bench: Bench) -> None:
        self.bench = bench
        self.faults: list[str] = []
        self._expected: list[str] = []
        self._under_way: dict[Page, set[Request]] = {}
        self.context: BrowserContext = browser.new_context(reduced_motion="reduce")
        cookies = [
            {"name": cookie.name, "value": cookie.value or "", "url": bench.url}
            for cookie in bench.client.cookies.jar
        ]
        self.context.add_cookies(cookies)  # type: ignore[arg-type]

    def expect_fault(self, pattern: str) -> None:
        """Faults that match a pattern belong to this test."""
        self._expected.append(pattern)

    def check(self) -> None:
        """Fail if there was a fault that nobody expected."""
        unexpected = [
            fault
            for fault in self.faults
            if not any(re.search(pattern, fault) for pattern in self._expected)
        ]
        assert not unexpected, unexpected

    def new_page(self, size: tuple[int, int] = WIDE, theme: Theme = "light") -> Page:
        """An empty tab that is watched."""
        page = self.context.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=theme)
        page.set_default_timeout(10_000)
        under_way: set[Request] = set()
        self._under_way[page] = under_way

        def started(request: Request) -> None:
            host = urlsplit(request.url)
            is_ours = host.netloc == f"127.0.0.1:{self.bench.port}"
            if not is_ours and host.scheme not in ("data", "blob", "about"):
                self.faults.append(f"request to another host: {request.url}")
            # A stream never ends, and the heartbeat comes at any time.
            if not request.url.endswith(("/events", "/livez")):
                under_way.add(request)

        def ended(request: Request) -> None:
            under_way.discard(request)

        def failed(error: Exception) -> None:
            self.faults.append(f"exception: {error}")

        def said(message: ConsoleMessage) -> None:
            if message.type == "error":
                self.faults.append(f"console: {message.text}")

        page.on("request", started)
        page.on("requestfinished", ended)
        page.on("requestfailed", ended)
        page.on("pageerror", failed)
        page.on("console", said)
        return page

    def open(self, view: str, size: tuple[int, int] = WIDE, theme: Theme = "light") -> Page:
        """A new tab with a view, such as ``#/home``, after everything has arrived."""
        page = self.new_page(size, theme)
        page.goto(self.bench.url + view)
        self.settle(page)
        return page

    def settle(self, page: Page, quiet: int = 3, patience: float = 20.0) -> None:
        """Wait until nothing is under way in a number of looks, one after the other."""
        page.locator("h1").first.wait_for()
        until = time.monotonic() + patience
        looks = 0
        while looks < quiet:
            page.wait_for_timeout(25)
            under_way = self._under_way[page]
            looks = 0 if under_way else looks + 1
            if time.monotonic() > until:
                urls = [request.url for request in under_way]
                raise AssertionError(f"the page does not come to rest: {urls}")

    def close(self) -> None:
        """Close all tabs."""
        self.context.close()


def visiting(browser: Browser, bench: Bench) -> Iterator[Visitor]:
    """For fixtures: a visitor whose unexpected faults fail the test."""
    visitor = Visitor(browser, bench)
    yield visitor
    visitor.close()
    visitor.check()


# Accessibility


def require_axe() -> str:
    """The source of axe-core."""
    if not AXE.exists():
        missing("axe-core is missing: run make frontend, which needs Node")
    return AXE.read_text(encoding="utf-8")


def violations(page: Page, but: str | None = None) -> list[str]:
    """What axe finds on a page, with the elements that it is about; one rule may be left out."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(require_axe())
    rules = {} if but is None else {but: {"enabled": False}}
    options = {"resultTypes": ["violations"], "rules": rules}
    found = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


def overflow(page: Page) -> int:
    """Pixels by which a page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def too_wide(page: Page) -> list[str]:
    """Elements that reach beyond the window, for messages."""
    found: list[str] = page.evaluate(
        """[...document.querySelectorAll('body *')]
            .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
            .map((element) => element.outerHTML.slice(0, 100))
            .slice(0, 8)"""
    )
    return found


# What pages show


def rule_of(page: Page) -> dict[tuple[str, str], float]:
    """The probabilities of the grid, with all their digits, by state and action."""
    cells: list[tuple[str, str, float]] = page.evaluate(
        """() => {
            const grid = document.querySelector('[role=grid]');
            const heads = [...grid.querySelectorAll('[role=columnheader]')].slice(1);
            const actions = heads.map((head) => head.textContent.trim());
            const rows = [...grid.querySelectorAll('[role=row]')].slice(1);
            return rows.flatMap((row) => {
                const state = row.querySelector('[role=rowheader] span').textContent.trim();
                const cells = [...row.querySelectorAll('[data-probability]')];
                return cells.map((cell, column) =>
                    [state, actions[column], Number(cell.dataset.probability)]);
            });
        }"""
    )
    return {(state, action): probability for state, action, probability in cells}


def tab_to(page: Page, role: Any, name: str, most: int = 80) -> Locator:
    """Press the Tab key until something has the focus."""
    wanted = page.get_by_role(role, name=name).first
    wanted.wait_for()
    for _ in range(most):
        page.keyboard.press("Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            return wanted
    raise AssertionError(f"the Tab key does not lead to {role} {name!r}")
