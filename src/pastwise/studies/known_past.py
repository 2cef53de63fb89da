"""How much does it matter who left the log? TL_foresight with the true skill of the past.

A short log hardly shows whether its past was an expert for today's goal or for the opposite one.
*Known skill* is TL_foresight that is given what the log does not show: the value of the past's rule
between random actions (0) and the best rule (1). The difference between the two is what a better
inference of the skill could add, and what a user adds who knows the past.

    scores = known_skill_scores(systems=20, seed=2035, jobs=2)
    print(scores.page(KNOWN_SKILL))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pastwise.methods.foresight import TLForesight
from pastwise.studies.families import of_group
from pastwise.studies.long_run import long_run_values
from pastwise.studies.planner_tables import Scores
from pastwise.studies.planner_tasks import PASTS, RECORDS, Place, places, reference_values
from pastwise.studies.planners import Learner, learner_of, offline_part, registered_learners
from pastwise.studies.runner import Part, Runner

KNOWN_SKILL = "known skill"


def known_skill_scores(
    families: Sequence[str] | None = None,
    *,
    others: Sequence[str] = ("TL", "TL_explore", "FPD_learn", "TL_foresight", "Rand", "clone"),
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
    return Scores.of_parts((*others, KNOWN_SKILL), Runner(jobs).run("Learning", parts, {}))


def _known_skill_part(
    place: Place, past: str, others: Sequence[str], records: Sequence[int]
) -> list[dict[str, Any]]:
    """Outcomes of one system after one past."""
    learners: dict[str, Learner] = {
        **registered_learners(others),
        KNOWN_SKILL: learner_of(TLForesight(past_skill=skill_of(place, past))),
    }
    return offline_part(learners, place, (past,), records)


def skill_of(place: Place, past: str) -> float:
    """Value of a past's rules between random actions (0) and the best rule (1), not below -1."""
    system = place.system()
    random, optimum = reference_values(system)
    logged = float(long_run_values(system, place.rules(system, past)).mean())
    to_gain = max(optimum - random, np.finfo(float).tiny)
    return float(np.clip((logged - random) / to_gain, -1.0, 1.0))
