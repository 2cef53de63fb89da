"""ICU-Sepsis: policies for survival, from logs and while treating patients.

The goal is to survive. Logs come from the published expert and from acting at random; survival is
exact, from the published dynamics. *Online*, methods start on a log of the expert and go on
learning from every patient they treat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, sample
from pastwise.data.counts import TransitionCounts
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.foresight import TLForesight
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl import TL
from pastwise.report.study_figures import Curve, online_plot
from pastwise.report.text import markdown_table
from pastwise.studies.output import save_figure, save_json
from pastwise.studies.runner import Part, Runner
from pastwise.studies.systems import KnownSystem, icu_sepsis
from pastwise.studies.transfer import Setting, Transfer, gather, survey_identity, survey_parts

SIZES = (1000, 10_000, 100_000)
QUICK_SIZES = (200, 1000)
"""Episodes of the logs, in full and in a version that takes seconds."""

ONLINE_LOG = 1000
"""Expert episodes that the methods start from online."""

ONLINE_METHODS: Mapping[str, AnyMethod] = {
    "TL": TL(),
    "FPD_learn": FPDLearn(replay=True),
    "TL_foresight": TLForesight(epochs=50_000, replan=0.05),
    "TL_foresight, not exploring": TLForesight(replan=0.05),
}
"""Methods that go on learning.

To keep the study affordable FPD_learn plans every ten epochs, and TL_foresight whenever its records
have grown by 5 %. Its number of epochs is that of 5,000 patients.
"""


def icu_settings(sizes: tuple[int, ...] = SIZES) -> list[Setting]:
    """Logs of the published expert and of the random policy."""
    icu = icu_sepsis()
    behaviours = {"the clinicians' own ends": icu.rules["expert"], "nothing (random)": icu.random}
    settings = []
    for past, rule in behaviours.items():
        settings.append(Setting("ICU-Sepsis", past, icu, rule, sizes, max_steps=None))
    return settings


@dataclass(frozen=True)
class IcuResult:
    """Results of the study.

    Attributes
    ----------
    transfer : Transfer
        Survival under the rules that methods learn from logs.
    patients : int
        Patients that each method treated online.
    survival : method -> [10]
        Share of survivors in each tenth of its patients.
    """

    transfer: Transfer
    patients: int
    survival: Mapping[str, Sequence[float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        online = {"patients": self.patients, "survival": dict(self.survival)}
        return {**self.transfer.to_dict(), "online": online}

    def write(self, folder: Path) -> None:
        """Write tables, pages and figures into a folder."""
        self.transfer.write(folder)
        save_json(folder / f"{self.transfer.name}.json", self.to_dict())
        save_figure(online_plot(self._curves()), folder, "online")

    def _curves(self) -> list[Curve]:
        """Survival against the number of patients, at the middle of each tenth."""
        curves = []
        for method, shares in self.survival.items():
            middles = (np.arange(len(shares)) + 0.5) * self.patients / len(shares)
            curves.append(Curve(method, middles.tolist(), shares))
        return curves

    def page(self) -> str:
        """Tables of Markdown: from logs, then online."""
        rows = []
        for method, shares in self.survival.items():
            mean = sum(shares) / len(shares)
            rows.append([method, f"{mean:.4f}", f"{shares[0]:.4f}", f"{shares[-1]:.4f}"])
        lines = [
            f"Survival of {self.patients:,} patients while the method learns: "
            "all, first tenth, last tenth",
            "",
            *markdown_table(["method", "all", "first", "last"], rows),
            "",
        ]
        return self.transfer.page() + "\n".join(lines)


def icu_study(
    settings: Sequence[Setting],
    seeds: int,
    patients: int,
    seed: int = 0,
    runner: Runner | None = None,
) -> IcuResult:
    """Run the study: ``seeds`` logs of each size, and ``patients`` for each method online."""
    from_logs = survey_parts(settings, seeds, seed)
    online = [partial(survival_online, name, patients, seed) for name in ONLINE_METHODS]
    parts: list[Part[Any]] = [*from_logs, *online]
    identity = {
        "study": "icu-sepsis",
        "patients": patients,
        **survey_identity(settings, seeds, seed),
    }
    results = (runner or Runner()).run("Learning", parts, identity)

    transfer = gather("icu-sepsis", settings, results[: len(from_logs)])
    survival = dict(zip(ONLINE_METHODS, results[len(from_logs) :], strict=True))
    return IcuResult(transfer, patients, survival)


def survival_online(name: str, patients: int, seed: int) -> list[float]:
    """Share of survivors in each tenth of a method's patients."""
    icu = icu_sepsis()
    log = icu.log(icu.rules["expert"], ONLINE_LOG, np.random.default_rng(seed))
    goal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(icu.success)})
    ideal = goal.on(log.states, log.actions)
    rng = np.random.default_rng(seed + 1)
    survived = treat(icu, ONLINE_METHODS[name], ideal, log, patients, rng)
    return [float(tenth.mean()) for tenth in np.array_split(survived, 10)]


def treat(
    system: KnownSystem,
    method: AnyMethod,
    ideal: IdealModel,
    log: TransitionCounts,
    patients: int,
    rng: np.random.Generator,
) -> BoolArray:
    """Treat patients one after the other, learning from each: who survived, [patients]."""
    memory = method.start(log, ideal)
    terminal = set(system.terminal.tolist())
    survived = np.zeros(patients, dtype=bool)
    for patient in range(patients):
        state = np.asarray(sample(system.initial, np.asarray(rng.random())))
        while int(state) not in terminal:
            rule = method.rule(memory, state, rng)
            action = sample(rule, np.asarray(rng.random()))
            next_state = sample(system.transition[state, action], np.asarray(rng.random()))
            method.observe(memory, state, action, next_state)
            state = np.asarray(next_state)
        survived[patient] = system.success[int(state)] > 0
    return survived
