"""ICU-Sepsis: policies for survival from logs of the expert and of chance, and agents that go on learning.

The goal is to survive, and nothing else is told. Survival is exact, from the published dynamics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pastwise.agents import TL, Agent, FPDLearn
from pastwise.counts import TransitionCounts
from pastwise.experiments.known import KnownSystem, icu_sepsis
from pastwise.experiments.transfer import Setting
from pastwise.foresight import Pessimism, TLForesight
from pastwise.goal import Goal
from pastwise.ideal import IdealModel
from pastwise.numerics import BoolArray, sample

SIZES = (1000, 10_000, 100_000)
QUICK_SIZES = (200, 1000)

ONLINE_LOG = 1000
"""Expert episodes that the agents which go on learning start from."""

AGENTS: Mapping[str, Callable[[IdealModel], Agent]] = {
    "TL": TL,
    "FPD_learn": lambda ideal: FPDLearn(ideal, replay=True),
    "TL_foresight": lambda ideal: TLForesight(ideal, replan=0.05),
    "TL_foresight, pessimistic": lambda ideal: TLForesight(ideal, Pessimism(), replan=0.05),
}
"""Agents that act and learn; FPD_learn plans every ten epochs, TL_foresight once the records grew by 5 %."""


def icu_settings(sizes: tuple[int, ...] = SIZES) -> list[Setting]:
    """Logs of the published expert and of the random policy."""
    icu = icu_sepsis()
    behaviours = {"the clinicians' own ends": icu.rules["expert"], "nothing (random)": icu.random}
    return [Setting("ICU-Sepsis", past, icu, rule, sizes, steps=None) for past, rule in behaviours.items()]


def treat(
    system: KnownSystem, agent: Agent, log: TransitionCounts, patients: int, rng: np.random.Generator
) -> BoolArray:
    """Let an agent treat patients one after the other, learning from each: who survived, [patients]."""
    memory, ends, survived = agent.start(log), set(system.terminal.tolist()), np.zeros(patients, dtype=bool)
    for patient in range(patients):
        state = int(sample(system.initial, np.asarray(rng.random())))
        while state not in ends:
            here = np.asarray(state)
            action = sample(agent.rule(memory, here, rng), np.asarray(rng.random()))
            following = sample(system.transition[state, action], np.asarray(rng.random()))
            agent.observe(memory, here, action, following)
            state = int(following)
        survived[patient] = system.success[state] > 0
    return survived


def treat_online(
    patients: int, seed: int = 0, on_step: Callable[[int], None] = lambda done: None
) -> dict[str, list[float]]:
    """Share of survivors in each tenth of the patients, for every agent."""
    icu = icu_sepsis()
    log = icu.log(icu.rules["expert"], ONLINE_LOG, np.random.default_rng(seed))
    ideal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(icu.success)}).on(log.states, log.actions)
    found: dict[str, Any] = {}
    for name, make in AGENTS.items():
        survived = treat(icu, make(ideal), log, patients, np.random.default_rng(seed + 1))
        found[name] = [float(part.mean()) for part in np.array_split(survived, 10)]
        on_step(1)
    return found
