"""How much does it matter who left the log? TL_foresight with the true skill of the past.

A short log hardly shows whether its past was an expert for today's goal or for the opposite one.
*Known skill* is TL_foresight that is given what the log does not show: the value of the past's rule
between random actions (0) and the best rule (1). The difference between the two is what a better
inference of the skill could add, and what a user adds who knows the past.

    scores = known_skill_scores(systems=20, seed=2035, jobs=2)
    print(scores.page(KNOWN_SKILL))

`policy.past.PastDependence` says how many decisions depend on it. Whether that shows where the
skill is missing, and where a rule may harm, is the second question:

    print(dependence_page(known_skill_gains(systems=20, seed=2035, jobs=2)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from pastwise.data.records import Transitions
from pastwise.methods.foresight import TLForesight
from pastwise.policy.past import SHARE_THAT_MATTERS, PastDependence
from pastwise.report.text import markdown_table
from pastwise.studies.families import of_group
from pastwise.studies.long_run import long_run_values
from pastwise.studies.planner_tables import SMALLEST_RANGE, Scores
from pastwise.studies.planner_tasks import (
    PASTS,
    RECORDS,
    Place,
    counts_of,
    ideal_of,
    places,
    reference_values,
)
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


# Where it matters.

LEVELS = (0.0, 0.1, SHARE_THAT_MATTERS, 0.5)
"""Lower ends of the ranges of dependence in the table."""


@dataclass(frozen=True)
class KnownSkillGain:
    """What the true skill of a past adds, and how much the rule depends on it.

    Attributes
    ----------
    records : int
        Length of the log.
    dependence : float
        Largest share of decisions that a known skill may change; see `PastDependence`.
    share : float
        Value of the rule without it, as a share of what there is to gain.
    gain : float
        What the true skill adds to it.
    """

    records: int
    dependence: float
    share: float
    gain: float


def known_skill_gains(
    families: Sequence[str] | None = None,
    *,
    pasts: Sequence[str] = PASTS,
    records: Sequence[int] = RECORDS,
    systems: int = 10,
    seed: int = 0,
    jobs: int = 1,
) -> list[KnownSkillGain]:
    """One for each log in systems where there is something to gain.

    Parameters are those of `known_skill_scores`.
    """
    chosen = of_group("reported", "planners") if families is None else families
    parts: list[Part[list[dict[str, Any]]]] = []
    for place in places(chosen, pasts, systems, seed):
        parts += [partial(_gains_part, place, past, records) for past in pasts]
    rows = [row for part in Runner(jobs).run("Learning", parts, {}) for row in part]
    return [KnownSkillGain(**row) for row in rows]


def _gains_part(place: Place, past: str, records: Sequence[int]) -> list[dict[str, Any]]:
    """The gains of one system after one past, as plain values."""
    system = place.system()
    ideal = ideal_of(system)
    random, optimum = reference_values(system)
    if optimum - random < SMALLEST_RANGE:
        return []

    log = place.log(system, past, max(records))
    informed = TLForesight(past_skill=skill_of(place, past))
    rows = []
    for number in records:
        counts = counts_of(Transitions(*(column[:number] for column in log)), system)
        rules = [learner_of(method)(counts, ideal) for method in (TLForesight(), informed)]
        shares = (long_run_values(system, np.stack(rules)) - random) / (optimum - random)
        dependence = PastDependence.of(TLForesight(), counts, ideal, rules[0])
        assert dependence is not None  # TL_foresight infers the skill of such small systems
        gain = KnownSkillGain(
            records=number,
            dependence=dependence.share,
            share=float(shares[0]),
            gain=float(shares[1] - shares[0]),
        )
        rows.append(asdict(gain))
    return rows


def dependence_page(gains: Sequence[KnownSkillGain]) -> str:
    """How often rules depend on their past, what knowing it adds, and how often rules harm."""
    rows = []
    for low, high in pairwise((*LEVELS, inf)):
        chosen = [x for x in gains if low <= x.dependence < high]
        if chosen:
            of_logs = len(chosen) / len(gains)
            mean_gain = np.mean([x.gain for x in chosen])
            harmful = float(np.mean([x.share < 0 for x in chosen]))
            level = f"{100 * low:.0f} to {100 * min(high, 1.0):.0f} %"
            rows.append([level, _percent(of_logs), f"{mean_gain:+.3f}", _percent(harmful)])
    header = ["decisions that depend on the past", "logs", "known skill adds", "below random"]
    return "\n".join(markdown_table(header, rows)) + "\n"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
