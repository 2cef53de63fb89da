"""ICU-Sepsis: policies for survival from logs of the expert and of chance, and agents that go on learning.

The goal is to survive, and nothing else is told. Survival is exact, from the published dynamics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, sample
from pastwise.data.counts import TransitionCounts
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.foresight import Optimism, Pessimism, TLForesight
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl import TL
from pastwise.studies.runner import Part, Runner
from pastwise.studies.systems import KnownSystem, icu_sepsis
from pastwise.studies.transfer import Setting, Transfer, gather, survey_parts, survey_settings

SIZES = (1000, 10_000, 100_000)
QUICK_SIZES = (200, 1000)

ONLINE_LOG = 1000
"""Expert episodes that the agents which go on learning start from."""

ONLINE_METHODS: Mapping[str, AnyMethod] = {
    "TL": TL(),
    "FPD_learn": FPDLearn(replay=True),
    "TL_foresight": TLForesight(attitude=Optimism(), replan=0.05),
    "TL_foresight, pessimistic": TLForesight(attitude=Pessimism(), replan=0.05),
}
"""Methods that act and learn; FPD_learn plans every ten epochs, TL_foresight once the records grew by 5 %."""


def icu_settings(sizes: tuple[int, ...] = SIZES) -> list[Setting]:
    """Logs of the published expert and of the random policy."""
    icu = icu_sepsis()
    behaviours = {"the clinicians' own ends": icu.rules["expert"], "nothing (random)": icu.random}
    return [
        Setting("ICU-Sepsis", past, icu, rule, sizes, steps=None)
        for past, rule in behaviours.items()
    ]


def treat(
    system: KnownSystem,
    method: AnyMethod,
    ideal: IdealModel,
    log: TransitionCounts,
    patients: int,
    rng: np.random.Generator,
) -> BoolArray:
    """Let a method treat patients one after the other, learning from each: who survived, [patients]."""
    memory, ends, survived = (
        method.start(log, ideal),
        set(system.terminal.tolist()),
        np.zeros(patients, dtype=bool),
    )
    for patient in range(patients):
        state = int(sample(system.initial, np.asarray(rng.random())))
        while state not in ends:
            here = np.asarray(state)
            action = sample(method.rule(memory, here, rng), np.asarray(rng.random()))
            following = sample(system.transition[state, action], np.asarray(rng.random()))
            method.observe(memory, here, action, following)
            state = int(following)
        survived[patient] = system.success[state] > 0
    return survived


def _treated_online(name: str, patients: int, seed: int) -> list[float]:
    """Share of survivors in each tenth of the patients of a method."""
    icu = icu_sepsis()
    log = icu.log(icu.rules["expert"], ONLINE_LOG, np.random.default_rng(seed))
    ideal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(icu.success)}).on(
        log.states, log.actions
    )
    survived = treat(
        icu, ONLINE_METHODS[name], ideal, log, patients, np.random.default_rng(seed + 1)
    )
    return [float(part.mean()) for part in np.array_split(survived, 10)]


def icu_study(
    settings: Sequence[Setting],
    seeds: int,
    patients: int,
    seed: int = 0,
    runner: Runner | None = None,
) -> tuple[Transfer, dict[str, list[float]]]:
    """What every method attains from logs; and, for every method, the survivors in each tenth of its patients."""
    from_logs = survey_parts(settings, seeds, seed)
    online = [partial(_treated_online, name, patients, seed) for name in ONLINE_METHODS]
    chosen = {"study": "icu-sepsis", "patients": patients, **survey_settings(settings, seeds, seed)}
    parts: list[Part[Any]] = [*from_logs, *online]
    results = (runner or Runner()).run("Learning", parts, chosen)

    transfer = gather(settings, results[: len(from_logs)])
    survival = dict(zip(ONLINE_METHODS, results[len(from_logs) :], strict=True))
    return transfer, survival
