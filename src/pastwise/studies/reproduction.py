"""The paper's Section IV from end to end: simulate, time, judge, and write the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pastwise._numerics.arrays import IntArray
from pastwise.report.study_figures import difference_boxplot, gain_boxplot, timing_plot
from pastwise.report.text import write_csv
from pastwise.studies.claims import Claim, claims_page, judge
from pastwise.studies.output import save_figure, save_json
from pastwise.studies.paper import PASTS, REFERENCES, Gains, PaperStudy, collect
from pastwise.studies.runner import Runner
from pastwise.studies.summary import GainSummary, summarise
from pastwise.studies.timing import Timing, TimingSettings, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPTIONAL_FILES = ("timing.png", "timing.pdf")
"""Files that are written only if time was measured."""

PAST_SYMBOLS = {"p3": r"$^I\tilde{p}_3$", "p12": r"$^I\tilde{p}_{1,2}$", "p1": r"$^I\tilde{p}_1$"}
"""The paper's symbols of the past goals, for titles of figures."""


@dataclass(frozen=True)
class Reproduction:
    """All results of the study."""

    study: PaperStudy
    gains: Gains
    timing: Timing | None
    summaries: list[GainSummary]
    claims: list[Claim]

    def to_dict(self) -> dict[str, Any]:
        """Settings, summaries and claims as plain values, unrounded."""
        return {
            "settings": self.study.to_dict(),
            "rows": [summary.to_dict() for summary in self.summaries],
            "claims": [claim.to_dict() for claim in self.claims],
        }

    def table(self) -> list[list[str]]:
        """Mean gains with standard errors as text: a header, then a row for each method."""
        rows = [["method", *[f"past {past}" for past in PASTS]]]
        summaries = {(summary.past, summary.method): summary for summary in self.summaries}
        for method in self.study.methods:
            rows.append([method, *[str(summaries[past, method]) for past in PASTS]])
        return rows

    def write(self, folder: Path) -> None:
        """Write the tables, the claims and the figures into a folder."""
        write_csv(folder / "gains.csv", self._gain_rows())
        write_csv(folder / "summary.csv", [summary.to_dict() for summary in self.summaries])
        save_json(folder / "summary.json", self.to_dict())
        page = claims_page(self.claims, self.study.runs)
        (folder / "claims.md").write_text(page, encoding="utf-8")
        for name, figure in self._figures().items():
            save_figure(figure, folder, name)

    def _gain_rows(self) -> Iterator[dict[str, Any]]:
        for (past, method), gains in self.gains.items():
            for number, gain in enumerate(gains.tolist()):
                yield {"past": past, "run": number, "method": method, "gain": gain}

    def _figures(self) -> dict[str, Figure]:
        """The figures by the names of their files."""
        figures = {}
        maximum = max(int(gains.max()) for gains in self.gains.values())
        for past in PASTS:
            title = f"past goal {PAST_SYMBOLS[past]}; {self.study.runs} runs"
            gains = self._gains_after(past)
            figures[f"gains_{past}"] = gain_boxplot(gains, title, REFERENCES, maximum)

        differences = {}
        for past in PASTS:
            differences[f"past goal {PAST_SYMBOLS[past]}"] = self._minus_rand(past)
        figures["differences"] = difference_boxplot(differences)

        if self.timing is not None:
            figures["timing"] = timing_plot(self.timing.curves())
        return figures

    def _gains_after(self, past: str) -> dict[str, IntArray]:
        """Gains after one past: method -> [runs]."""
        return {method: self.gains[past, method] for method in self.study.methods}

    def _minus_rand(self, past: str) -> dict[str, IntArray]:
        """Gains minus those of Rand, without the references: method -> [runs]."""
        differences = {}
        for method, gains in self._gains_after(past).items():
            if method != "Rand" and method not in REFERENCES:
                differences[method] = gains - self.gains[past, "Rand"]
        return differences


def reproduce(study: PaperStudy, with_timing: bool, runner: Runner) -> Reproduction:
    """Run the study; time is measured at the end, by this process alone."""
    gains = collect(study, runner)
    timing = None
    if with_timing:
        settings = TimingSettings()
        with runner.progress("Timing", settings.num_steps) as advance:
            timing = measure(settings, advance)
    return Reproduction(study, gains, timing, summarise(gains), judge(gains, timing))
