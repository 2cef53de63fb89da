"""Pictures of every screen of the workbench, in both themes, for the documentation.

    python -m tests.helpers.pictures

writes them to ``docs/_static/workbench``. They are also what a test compares the screens with: with
a tolerance, since times, ports and random decisions differ from run to run.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import numpy as np
from PIL import Image
from playwright.sync_api import Page

from tests.helpers.browser import ROOT, THEMES, WIDE, Bench, Theme, Visitor, chromium

FOLDER = ROOT / "docs" / "_static" / "workbench"
LOG = ROOT / "examples" / "thermostat" / "log.csv"
GOAL = {"prefer": {"comfortable": 1, "warm": 0.5}, "forbid": [["hot", "heat"]]}
QUALITY = 50
"""Of the pictures: text is sharp, and each takes less than 60 kB."""

SMALL = (144, 90)
"""Size at which pictures are compared: text is a shade of grey, boxes and colours remain."""

_WISH = "g=" + quote(json.dumps(GOAL, separators=(",", ":")))
SCREENS = {
    "home": "#/home",
    "log": "#/thermostat/log",
    "policy": f"#/thermostat/policy?{_WISH}&s=cool&a=heat",
    "trust": f"#/thermostat/trust?{_WISH}",
    "compare": "#/thermostat/compare?p={Comfort},{Warm}",
    "deploy": "#/thermostat/deploy",
    "watch": "#/thermostat/watch",
}

READY = {
    "home": "480 rows",
    "log": "440 used as transitions",
    "policy": "Records behind it",
    "trust": "2,000 of 2,000 samples",
    "compare": "Show paired differences",
    "deploy": "Take it away",
    "watch": "Up to date",
}
"""Words of each screen that come with its answers."""


@contextmanager
def pictured_bench() -> Iterator[Bench]:
    """A workbench on the thermostat with saved policies, one of which decides."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "thermostat.csv"
        shutil.copy(LOG, log)
        with Bench(folder, log) as bench:
            project = bench.open_log({"path": str(log)})
            states = ["cold", "cool", "comfortable", "warm", "hot"]
            order = {"states": states, "actions": ["heat", "idle", "vent"]}
            bench.call("PUT", f"v1/projects/{project}/order", order)
            bench.save(project, {"prefer": {"warm": 1}}, "Warm", "TL_foresight")
            draft = bench.save(project, GOAL, "Comfort")
            deploy(bench, draft)
            yield bench


def deploy(bench: Bench, draft: str, decisions: int = 120) -> None:
    """Let a policy decide in a building that behaves as its log did."""
    policy = "v1/policies/thermostat"
    bench.call("PUT", policy, {})
    version = bench.call("POST", f"{policy}/versions", {"draft": draft, "note": "First"})
    etag = bench.client.get(policy).headers["etag"]
    change = {"version": version["version"], "mode": "live"}
    bench.call("PATCH", policy, change, **{"If-Match": etag})

    # What followed each state and action in the log.
    followed: dict[tuple[str, str], list[str]] = defaultdict(list)
    rows = [line.split(",") for line in LOG.read_text(encoding="utf-8").split()[1:]]
    for (day, _, state, action), (next_day, _, following, _) in pairwise(rows):
        if day == next_day:
            followed[state, action].append(following)

    rng = random.Random(6)
    state = "cool"
    for _ in range(decisions):
        decision = bench.call("POST", f"{policy}/decide", {"state": state})
        state = rng.choice(followed[state, decision["action"]] or ["comfortable"])
        outcome = {"next_state": state}
        bench.call("POST", f"v1/decisions/{decision['decision_id']}/outcome", outcome)


def take(visitor: Visitor, page: Page, screen: str, theme: Theme) -> Image.Image:
    """A picture of a screen, without the port."""
    page.emulate_media(color_scheme=theme)
    page.goto("about:blank")
    view = SCREENS[screen]
    if screen == "compare":
        drafts = visitor.bench.call("GET", "v1/projects/thermostat")["drafts"]
        view = view.format(**{draft["name"]: draft["id"] for draft in drafts})
    page.goto(visitor.bench.url + view)
    visitor.settle(page)
    page.get_by_text(READY[screen]).first.wait_for(timeout=60_000)
    page.get_by_text("…", exact=True).first.wait_for(state="detached", timeout=60_000)
    page.get_by_text("Stop, keep").wait_for(state="detached", timeout=60_000)
    visitor.settle(page)
    page.locator(".host").evaluate("host => { host.textContent = '127.0.0.1:8765'; }")
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def distance(one: Image.Image, other: Image.Image) -> float:
    """Mean difference of two pictures, from 0 to 1, at a size at which letters do not matter."""
    small = [np.asarray(each.resize(SMALL), dtype=float) for each in (one, other)]
    return float(np.abs(small[0] - small[1]).mean() / 255)


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with chromium() as browser, pictured_bench() as bench:
        visitor = Visitor(browser, bench)
        page = visitor.new_page(WIDE)
        for screen in SCREENS:
            for theme in THEMES:
                picture = take(visitor, page, screen, theme)
                file = FOLDER / f"{screen}-{theme}.webp"
                picture.save(file, quality=QUALITY, method=6)
                print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")
        visitor.close()
        visitor.check()


if __name__ == "__main__":
    main()
