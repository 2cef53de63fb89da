"""The paper's Section IV from end to end: simulate, time, judge, and write tables, claims and figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pastwise.report.figures import REFERENCES, difference_boxplot, gain_boxplot, timing_plot
from pastwise.report.text import claims_page, write_csv
from pastwise.studies import paper, timing
from pastwise.studies.claims import EXPLANATION, Claim, judge
from pastwise.studies.runner import Runner
from pastwise.studies.summary import Row, summarise

OPTIONAL_FILES = ("timing.png", "timing.pdf")
"""Files that some studies write and others do not."""


@dataclass(frozen=True)
class Reproduction:
    """All results of a study."""

    study: paper.PaperStudy
    gains: paper.Gains
    timing: timing.Timing | None
    rows: list[Row]
    claims: list[Claim]

    def content(self) -> dict[str, Any]:
        """What ``summary.json`` holds: settings, rows and claims, unrounded."""
        return {
            "settings": self.study.settings(),
            "rows": [row.flat() for row in self.rows],
            "claims": [claim.flat() for claim in self.claims],
        }

    def write(self, directory: Path) -> None:
        """Write the tables, the claims and the figures into a folder."""
        write_csv(directory / "gains.csv", self._tidy())
        content = self.content()
        write_csv(directory / "summary.csv", content["rows"])
        (directory / "summary.json").write_text(
            json.dumps(content, indent=1, allow_nan=False) + "\n"
        )
        page = claims_page(content["claims"], self.study.runs, EXPLANATION)
        (directory / "claims.md").write_text(page, encoding="utf-8")
        self._draw(directory)

    def _tidy(self) -> Iterator[dict[str, Any]]:
        for (past, method), gains in self.gains.items():
            for number, gain in enumerate(gains.tolist()):
                yield {"past": past, "run": number, "method": method, "gain": gain}

    def _draw(self, directory: Path) -> None:
        by_past = {
            past: {m: g for (p, m), g in self.gains.items() if p == past} for past in paper.PASTS
        }
        most = max(int(gains.max()) for gains in self.gains.values())
        figures = {
            f"gains_{past}": gain_boxplot(methods, past, most) for past, methods in by_past.items()
        }
        figures["differences"] = difference_boxplot(
            {
                past: {
                    m: g - gains["Rand"] for m, g in gains.items() if m not in ("Rand", *REFERENCES)
                }
                for past, gains in by_past.items()
            }
        )
        if self.timing is not None:
            figures["timing"] = timing_plot(self.timing.sizes, self.timing.seconds)
        for name, figure in figures.items():
            for suffix in ("png", "pdf"):
                figure.savefig(directory / f"{name}.{suffix}")


def reproduce(study: paper.PaperStudy, with_timing: bool, runner: Runner) -> Reproduction:
    """Run the study; the timing is done by this process alone, after all else."""
    gains, times = paper.collect(study, runner), None
    if with_timing:
        with runner.progress("Timing", timing.NUM_STEPS) as advance:
            times = timing.measure(on_step=advance)
    return Reproduction(study, gains, times, summarise(gains), judge(gains, times))
