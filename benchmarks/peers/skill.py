"""Could the skill of a past be inferred better? TL_foresight with a skill that trees predict.

TL_foresight infers from a log how good its past was for today's goal, by a formula. Here gradient
boosted trees take the place of the formula. They are trained on logs of the families to choose on,
whose pasts are known, and see what the formula sees: where the log stands between random actions
and the best rule, with which error, and how long and how varied it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.foresight import Standing, TLForesight
from pastwise.studies.families import of_group
from pastwise.studies.known_past import skill_of
from pastwise.studies.planner_tasks import PASTS, RECORDS, counts_of, ideal_of, places
from pastwise.theory.planning import Task


def statistics(counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
    """What a log shows of the skill of its past: [8]."""
    method = TLForesight()
    memory = method.start(counts, ideal)
    task = Task(memory.belief, memory.utility, memory.uniform, method.discount)
    standing = Standing.of(task, memory.past, task.best_value(), observed=0)

    # How much better the states are that the log leads to than all states.
    score = memory.utility.next_state_part[0, 0]
    reached = np.average(score[counts.next_state], weights=counts.weight)
    level = (reached - score.mean()) / max(float(score.std()), 1e-3)

    standing_in_errors = float(standing.gain[0] / max(float(standing.error[0]), 1e-9))
    return np.array(
        [
            standing.skill()[0],
            standing.skill(method.credit)[0],
            np.clip(standing_in_errors, -50.0, 50.0),
            level,
            np.log(counts.num_records),
            np.log(memory.uniform.size),
            (memory.past.preference**2).mean(),
            task.only_the_end_pays,
        ]
    )


@dataclass(frozen=True, eq=False)
class LearnedSkill:
    """A learner: TL_foresight with the skill that a fitted regressor of `statistics` predicts."""

    regressor: Any

    def __call__(self, counts: TransitionCounts, ideal: IdealModel) -> FloatArray:
        """The rule: [S, A]."""
        predicted = float(self.regressor.predict(statistics(counts, ideal)[None])[0])
        method = TLForesight(past_skill=min(max(predicted, -1.0), 1.0))
        return method.plan(method.start(counts, ideal)).rule


def learned_skill(
    systems: int, seed: int, families: Sequence[str] = of_group("chosen", "planners")
) -> LearnedSkill:
    """Trees that were fitted to logs of some families, by default those to choose on."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    shown = []
    skills = []
    for place in places(families, PASTS, systems, seed):
        system = place.system()
        ideal = ideal_of(system)
        for past in PASTS:
            log = place.log(system, past, max(RECORDS))
            skill = skill_of(place, past)
            for number in RECORDS:
                first = Transitions(*(column[:number] for column in log))
                shown.append(statistics(counts_of(first, system), ideal))
                skills.append(skill)
    regressor = HistGradientBoostingRegressor(
        max_iter=150, learning_rate=0.05, max_leaf_nodes=10, min_samples_leaf=40, random_state=0
    )
    return LearnedSkill(regressor.fit(np.stack(shown), skills))
