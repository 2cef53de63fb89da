"""The workbench in a browser, next to dashboards that people know.

Each page is loaded by Chromium with an empty cache, in turns: the workbench on a policy for the
thermostat, optuna-dashboard on a study of a hundred trials, MLflow's UI on a hundred runs. They
show different things; what they have in common is a person who waits. Script and style are what a
first load fetches, compressed by gzip. A page is there when its data are on the screen. Memory is
that of the server with all of its processes, after the page was shown.

While a slider moves, the page computes TL by itself: *slider to paint* is the time from the event
to the end of the frame that shows the new policy. A preview is answered by the service; its log is
random, with 715 states and 25 actions, as ICU-Sepsis has. All servers, the browser and the
measurement share the machine.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, Response

from benchmarks.harness import DATA, MIB, Scale, Section, about
from benchmarks.load.dashboards import Dashboard, dashboards
from benchmarks.load.usage import children, resident
from benchmarks.report import table
from tests.helpers.browser import Bench, Visitor, chromium

OURS = "pastwise"
COMFORT = {"prefer": {"comfortable": 1, "warm": 0.5}}


def measure(scale: Scale) -> list[Section]:
    """The job of the suite."""
    section = Section("Workbench", about(__doc__))
    turns = scale.pick(1, 5, 9)
    moves = scale.pick(20, 200, 400)
    rows = scale.pick(100_000, 10_000_000, 10_000_000)
    with tempfile.TemporaryDirectory() as name, chromium() as browser:
        folder = Path(name)
        with Bench(folder) as bench:
            first_loads(section, browser, bench, turns)
            dragging(section, browser, bench, folder, moves)
            previews(section, bench, folder, moves)
            long_log(section, bench, folder, rows)
    return [section]


# First loads.


@dataclass(frozen=True)
class Load:
    """One load of a page.

    Attributes
    ----------
    seconds : float
        From the request to the data on the screen.
    requests : int
    script_kib : float
        Script and style, compressed.
    """

    seconds: float
    requests: int
    script_kib: float


def first_loads(section: Section, browser: Browser, bench: Bench, turns: int) -> None:
    """Load all pages in turns; add a table, and how they compare."""
    project = bench.open_log({"sample": "thermostat"})
    ours = policy_page(bench, project, COMFORT, "Where the time goes")
    with dashboards() as peers:
        pages = {OURS: ours, **peers}
        loads: dict[str, list[Load]] = {name: [] for name in pages}
        for _ in range(turns):
            for name, page in pages.items():
                loads[name].append(load(browser, bench, page))
        memory = {name: memory_of(page.process) for name, page in pages.items()}
    medians = {name: summary(each) for name, each in loads.items()}

    lines = []
    for name, each in medians.items():
        lines.append(
            [
                name,
                f"{each.script_kib:.0f}",
                str(each.requests),
                f"{each.seconds:.2f}",
                f"{memory[name] / MIB:.0f}",
            ]
        )
    head = ("page", "script and style, KiB", "requests", "data shown, s", "memory, MiB")
    section.notes.append(table(head, lines))
    add_ratios(section, medians, memory)


def add_ratios(section: Section, loads: Mapping[str, Load], memory: Mapping[str, float]) -> None:
    """Our numbers, and how many times as much the others take."""
    ours = loads[OURS]
    section.summarise("first load: script and style", ours.script_kib, "KiB")
    section.summarise("first load: requests", ours.requests, "")
    section.summarise("first load: data shown", ours.seconds, "s")
    section.summarise("memory of the server", memory[OURS] / MIB, "MiB")
    for name, other in loads.items():
        if name != OURS:
            ratios = {
                "script and style": other.script_kib / ours.script_kib,
                "requests": other.requests / ours.requests,
                "data shown": other.seconds / ours.seconds,
                "memory": memory[name] / memory[OURS],
            }
            for quantity, ratio in ratios.items():
                section.summarise(f"{name}'s {quantity} relative to ours", ratio)


def policy_page(bench: Bench, project: str, goal: dict[str, Any], text: str) -> Dashboard:
    """The page of a goal and its policy."""
    address = f"{bench.url}#/{project}/policy?g={quote(json.dumps(goal))}"
    return Dashboard(address, text, bench.process.pid)


def load(browser: Browser, bench: Bench, page: Dashboard) -> Load:
    """Load a page with an empty cache."""
    visitor = Visitor(browser, bench)
    opened = visitor.context.new_page()
    answers: list[Response] = []
    opened.on("response", lambda answer: answers.append(answer))
    begin = time.perf_counter()
    opened.goto(page.address)
    opened.get_by_text(page.text).first.wait_for(timeout=180_000)
    seconds = time.perf_counter() - begin

    # What is requested within a second belongs to the first load as well.
    opened.wait_for_timeout(1000)
    sent = [answer for answer in answers if answer.url.startswith("http://127.0.0.1")]
    code = [each for each in sent if each.request.resource_type in ("script", "stylesheet")]
    size = sum(len(gzip.compress(each.body(), 9)) for each in code)
    visitor.context.close()
    return Load(seconds, len(sent), size / 1024)


def summary(loads: list[Load]) -> Load:
    """Medians over the turns."""
    return Load(
        median(each.seconds for each in loads),
        int(median(each.requests for each in loads)),
        median(each.script_kib for each in loads),
    )


def memory_of(process: int) -> float:
    """Bytes of a process and of all that it has started."""
    return sum(resident(each) for each in (process, *children(process)))


# Dragging.

DRAG = """
async (moves) => {
  const tasks = [];
  new PerformanceObserver((list) => {
    tasks.push(...list.getEntries().map((entry) => entry.duration));
  }).observe({ type: "longtask" });
  const slider = document.querySelector("main input[type=range]");
  const painted = () => new Promise((resolve) => {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = resolve;
      channel.port2.postMessage(null);
    });
  });
  const frames = [];
  for (let move = 0; move < moves; move++) {
    await painted();
    const begin = performance.now();
    slider.value = String(((7 * move) % 20) / 20);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await painted();
    frames.push(performance.now() - begin);
  }
  slider.dispatchEvent(new Event("change", { bubbles: true }));
  await new Promise((resolve) => setTimeout(resolve, 500));
  return { frames, longest: Math.max(0, ...tasks) };
}
"""
"""Moves the first slider of a page; a task is long from 50 ms on."""


def dragging(
    section: Section, browser: Browser, bench: Bench, folder: Path, moves: int, states: int = 100
) -> None:
    """From the event of a slider to the paint of the policy, and the longest task meanwhile."""
    path = folder / "hundred.parquet"
    pq.write_table(random_log(states, 5, 5_000), path)
    project = bench.open_log({"path": path.name}, COLUMNS)
    goal = {"prefer": {"s1": 1, "s2": 0.5}}
    page = policy_page(bench, project, goal, "s1")
    visitor = Visitor(browser, bench)
    opened = visitor.context.new_page()
    opened.set_viewport_size({"width": 1440, "height": 900})
    opened.goto(page.address)
    opened.locator("main input[type=range]").first.wait_for()
    opened.wait_for_timeout(1000)
    found = opened.evaluate(DRAG, moves)
    visitor.context.close()
    title = f"slider to paint at {states} states"
    section.summarise(f"{title}: median", median(found["frames"]), "ms")
    section.summarise(f"{title}: 99 %", float(np.quantile(found["frames"], 0.99)), "ms")
    section.summarise("longest task above 50 ms while dragging", found["longest"], "ms")


# The service behind the page.

COLUMNS = {"state": ["state"], "action": ["action"], "episode": "episode", "time": "time"}
STEPS = 20


def random_log(states: int, actions: int, episodes: int, seed: int = 0) -> pa.Table:
    """Episodes of twenty steps, in which each action leads to one of eight states."""
    rng = np.random.default_rng(seed)
    following = rng.integers(0, states, (states, actions, 8))
    state = rng.integers(0, states, episodes)
    visited = []
    taken = []
    for _ in range(STEPS):
        action = np.minimum(rng.geometric(0.3, episodes) - 1, actions - 1)
        visited.append(state)
        taken.append(action)
        state = following[state, action, rng.integers(0, 8, episodes)]
    names = pa.array([f"s{i}" for i in range(states)])
    choices = pa.array([f"a{i}" for i in range(actions)])
    return pa.table(
        {
            "episode": np.repeat(np.arange(episodes), STEPS),
            "time": np.tile(np.arange(STEPS), episodes),
            "state": pa.DictionaryArray.from_arrays(np.stack(visited, 1).ravel(), names),
            "action": pa.DictionaryArray.from_arrays(np.stack(taken, 1).ravel(), choices),
        }
    )


def previews(section: Section, bench: Bench, folder: Path, moves: int) -> None:
    """Milliseconds of the service for one position of a slider."""
    path = folder / "icu.parquet"
    pq.write_table(random_log(715, 25, 10_000), path)
    project = bench.open_log({"path": path.name}, COLUMNS)
    address = f"v1/counts/{bench.counts_of(project)}/preview"
    for title, want in {"with support": {}, "with support and visits": {"visits": True}}.items():
        inside = []
        outside = []
        for move in range(moves):
            goal = {"prefer": {"s0": 1, "s1": (move + 1) / (moves + 1)}}
            begin = time.perf_counter()
            answer = bench.call("POST", address, {"goal": goal, "want": want})
            outside.append(1000 * (time.perf_counter() - begin))
            inside.append(sum(answer["ms"].values()))
        what = f"preview at 715 x 25, {title}"
        section.summarise(f"{what}: in the service", median(inside), "ms")
        section.summarise(f"{what}: with HTTP and JSON", median(outside), "ms")


def long_log(section: Section, bench: Bench, folder: Path, rows: int) -> None:
    """From the name of a long log to its columns and first rows."""
    kept = DATA / f"workbench-{rows}.parquet"
    if not kept.exists():
        DATA.mkdir(exist_ok=True)
        pq.write_table(random_log(50, 5, rows // STEPS), kept, row_group_size=1_000_000)
    path = folder / "long.parquet"
    shutil.copyfile(kept, path)
    begin = time.perf_counter()
    project = bench.call("POST", "v1/projects", {"path": path.name})
    page = bench.call("GET", f"v1/projects/{project['id']}/rows?limit=100")
    seconds = time.perf_counter() - begin
    assert (project["rows"], len(page["rows"])) == (rows, 100)
    section.summarise(f"first preview of {rows:,} rows", seconds, "s")

    begin = time.perf_counter()
    bench.call("POST", f"v1/projects/{project['id']}/mapping?dry_run=true", COLUMNS)
    section.summarise("trying out columns on it", time.perf_counter() - begin, "s")
