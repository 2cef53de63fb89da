"""Logs for the tests of the workbench: nasty labels, numbers to bin, and many states."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import numpy as np

NASTY = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script>",
    "حالة من اليمين إلى اليسار",
    "🙂👩‍👩‍👧‍👦 emoji",
    "=cmd|'/c calc'!A1",
    "x" * 1000,
    '("a", 1)',
    "1.50",
    "quote \" and \\ and '",
    "line\nbreak",
    "constructor",
]
"""Labels that pages have tripped over."""

NASTY_COLUMNS = {
    "state": ["state “of” things"],
    "action": ["__proto__"],
    "episode": "<b>episode</b>",
    "time": "time",
}
CHAIN = {"state": ["state"], "action": ["action"], "next_state": ["next"]}


def write_rows(path: Path, header: list[str], rows: list[list[object]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def write_nasty(path: Path, rows: int = 600) -> Path:
    """A log whose labels and names of columns are hard to show."""
    rng = random.Random(1)
    table: list[list[object]] = []
    for row in range(rows):
        action = rng.choice(NASTY[:4])
        table.append([row // 20, row % 20, rng.choice(NASTY), action])
    header = ["<b>episode</b>", "time", "state “of” things", "__proto__"]
    return write_rows(path, header, table)


def write_features(path: Path, rows: int = 1200) -> Path:
    """A log of a tank: two numbers that need bins, an action, and a pump that may fail."""
    rng = np.random.default_rng(2)
    table: list[list[object]] = []
    level = 5.0
    for row in range(rows):
        if row % 40 == 0:
            level = float(rng.uniform(1, 9))
        warmth = 15 + 6 * float(np.sin(row / 40)) + float(rng.normal(0, 1))
        valve = str(rng.choice(["closed", "half", "open"]))
        table.append([row // 40, row % 40, round(level, 2), round(warmth, 1), valve])
        inflow = {"closed": 0.0, "half": 0.5, "open": 1.0}[valve]
        level = float(np.clip(level + inflow - 0.5 + rng.normal(0, 0.2), 0, 10))
    return write_rows(path, ["run", "minute", "level", "warmth", "valve"], table)


def write_chain(path: Path, states: int, actions: int = 3) -> Path:
    """A log of many states: each leads to a near one."""
    rng = np.random.default_rng(3)
    state = np.repeat(np.arange(states), 2 * actions)
    action = np.tile(np.arange(actions), 2 * states)
    following = (state + action - 1 + rng.integers(-1, 2, len(state))) % states
    table = [
        [f"s{here:06d}", f"a{done}", f"s{there:06d}"]
        for here, done, there in zip(state, action, following, strict=True)
    ]
    return write_rows(path, ["state", "action", "next"], [list(row) for row in table])


def write_dirty(path: Path) -> Path:
    """A log with much that is odd: gaps, duplicates, missing values, a dead end, short episodes."""
    rng = random.Random(5)
    table: list[list[object]] = []
    for episode in range(30):
        time = 0
        for _ in range(12):
            state = rng.choice(["low", "middle", "high"])
            table.append([episode, time, state, rng.choice(["up", "down"])])
            time += 9 if rng.random() < 0.05 else 1
    table[5][2] = ""
    table[17][3] = ""
    table[29][0] = ""
    table[40][1] = ""
    table.append([2, 3, "low", "up"])
    table.append([3, 50, "broken", "up"])
    table.append([99, 0, "low", "down"])
    return write_rows(path, ["case", "step", "level", "move"], table)
