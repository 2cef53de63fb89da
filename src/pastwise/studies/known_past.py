"""How much does it matter who left the log? Learners that know the past.

A short log hardly shows whether its past was an expert for today's goal or for the opposite one.
Two studies say what that costs.

`known_skill_scores` compares TL_foresight with itself, given the true skill of the past: the value
of its rule between random actions (0) and the best rule (1). The difference is what a better
inference of the skill could add.

`mirrored_scores` is a bound for systems whose actions hardly differ. The *mirror* of a system turns
the effects of its actions around,

    mirror(next state | state, action) = 2 mean over actions - p(next state | state, action).

An expert in a system decides as the opposed past does in its mirror, so that only the next states
say which of the two it is. In *near null walk*, whose effects are sampled from a normal
distribution, a system and its mirror are equally probable. *Known pair* knows both, and chooses the
rule of the largest expected share of what there is to gain (`known_family`). No method can have
more on average over matched and opposed pasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pastwise.methods.foresight import TLForesight
from pastwise.models.dense import DenseModel
from pastwise.studies.families import of_group
from pastwise.studies.known_family import KnownFamily, Population
from pastwise.studies.long_run import long_run_values, optimal_rule
from pastwise.studies.planner_tables import Scores
from pastwise.studies.planner_tasks import PASTS, RECORDS, Place, places, random_rule
from pastwise.studies.planners import Learner, learner_of, offline_part, registered_learners
from pastwise.studies.runner import Part, Runner
from pastwise.studies.synthetic import System

KNOWN_SKILL = "known skill"
KNOWN_PAIR = "known pair"

MIRRORED_PASTS = ("matched", "opposed")
"""Pasts that a system and its mirror exchange."""


def known_skill_scores(
    families: Sequence[str] | None = None,
    *,
    others: Sequence[str] = ("TL", "TL_explore", "FPD_learn", "clone", "Rand", "TL_foresight"),
    pasts: Sequence[str] = PASTS,
    records: Sequence[int] = RECORDS,
    systems: int = 10,
    seed: int = 0,
    jobs: int = 1,
) -> Scores:
    """Methods next to TL_foresight with the true skill of the past.

    Parameters
    ----------
    families : names, optional
        By default the reported ones.
    others : names of methods
    pasts, records, systems, seed, jobs
        As `planners.offline_scores` has them.
    """
    chosen = of_group("reported", "planners") if families is None else families
    parts: list[Part[list[dict[str, Any]]]] = []
    for place in places(chosen, pasts, systems, seed):
        parts += [partial(_known_skill_part, place, past, others, records) for past in pasts]
    return Scores.of_parts((KNOWN_SKILL, *others), Runner(jobs).run("Learning", parts, {}))


def _known_skill_part(
    place: Place, past: str, others: Sequence[str], records: Sequence[int]
) -> list[dict[str, Any]]:
    """Outcomes of one system after one past."""
    skill = skill_of(place, past)
    learners: dict[str, Learner] = {
        KNOWN_SKILL: learner_of(TLForesight(past_skill=skill)),
        **registered_learners(others),
    }
    return offline_part(learners, place, (past,), records)


def skill_of(place: Place, past: str) -> float:
    """Value of a past's rules between random actions (0) and the best rule (1), not below -1."""
    system = place.system()
    references = np.stack([random_rule(system), optimal_rule(system)])
    random, optimum = long_run_values(system, references).tolist()
    logged = float(long_run_values(system, place.rules(system, past)).mean())
    to_gain = max(optimum - random, np.finfo(float).tiny)
    return float(np.clip((logged - random) / to_gain, -1.0, 1.0))


def mirrored(system: System) -> System:
    """The system with the effects of its actions turned around.

    Where that would make a probability negative, it is 0.
    """
    transition = system.model.transition
    turned = 2 * transition.mean(axis=2, keepdims=True) - transition
    turned = np.maximum(turned, 0.0)
    return replace(system, model=DenseModel(turned / turned.sum(axis=-1, keepdims=True)))


def mirrored_scores(
    family: str = "near null walk",
    *,
    others: Sequence[str] = ("TL", "FPD_learn", "clone", "Rand", "TL_foresight"),
    records: Sequence[int] = RECORDS,
    systems: int = 30,
    seed: int = 0,
    jobs: int = 1,
) -> Scores:
    """Methods next to who knows the system and its mirror, but not which of the two it is.

    Parameters
    ----------
    family : str
        It must sample a system and its mirror with the same probability.
    others, records, systems, seed, jobs
        As `known_skill_scores` has them.
    """
    parts = [
        partial(_mirrored_part, place, others, records)
        for place in places([family], MIRRORED_PASTS, systems, seed)
    ]
    return Scores.of_parts((KNOWN_PAIR, *others), Runner(jobs).run("Learning", parts, {}))


def _mirrored_part(
    place: Place, others: Sequence[str], records: Sequence[int]
) -> list[dict[str, Any]]:
    """Outcomes of one system."""
    system = place.system()
    pair = Population.of([system, mirrored(system)])
    learners: dict[str, Learner] = {
        KNOWN_PAIR: KnownFamily(pair, MIRRORED_PASTS),
        **registered_learners(others),
    }
    return offline_part(learners, place, MIRRORED_PASTS, records)
