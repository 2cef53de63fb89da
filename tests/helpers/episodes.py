"""A log of episodes that end, with and without a column of next states."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

DOOR_COLUMNS: dict[str, Any] = {
    "state": "s",
    "action": "a",
    "episode": "e",
    "time": "t",
    "terminal": ["win", "lose"],
}
"""What to say about the table of `door_episodes`."""


def door_episodes() -> dict[str, list[Any]]:
    """300 episodes from a door; one in ten gets into a room, stays long, and wins."""
    rng = np.random.default_rng(2)
    log: dict[str, list[Any]] = {"e": [], "t": [], "s": [], "a": []}
    for episode in range(300):
        gets_in = rng.random() < 0.1
        path = ["door", *["room"] * 8, "win"] if gets_in else ["door", "lose"]
        for time, state in enumerate(path):
            log["e"].append(episode)
            log["t"].append(time)
            log["s"].append(state)
            log["a"].append(rng.choice(["knock", "push"]))
    return log


def with_next_states(log: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The same episodes with the next state in a column ``n``; the end of an episode has no row."""
    rows = list(zip(*log.values(), strict=True))
    steps = [(*row, later[2]) for row, later in pairwise(rows) if row[0] == later[0]]
    columns = map(list, zip(*steps, strict=True))
    return dict(zip((*log, "n"), columns, strict=True))
