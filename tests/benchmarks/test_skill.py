"""A skill of the past that trees predict, and a rule that knows the values of all states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.peers.planners import known_values
from benchmarks.peers.skill import LearnedSkill, learned_skill, statistics
from pastwise._numerics.arrays import FloatArray
from pastwise.goals.goal import Goal
from pastwise.methods.foresight import TLForesight
from pastwise.studies.planner_tasks import Place, counts_of, ideal_of
from pastwise.studies.planners import learner_of
from pastwise.studies.systems import toy_system

PLACE = Place("forest", 0, seed=1)


@dataclass(frozen=True)
class Constant:
    """A regressor that always predicts the same."""

    skill: float

    def predict(self, shown: FloatArray) -> FloatArray:
        return np.full(len(shown), self.skill)


def test_predicted_skill_takes_the_place_of_the_inferred_one() -> None:
    system = PLACE.system()
    counts = counts_of(PLACE.log(system, "opposed", 40), system)
    ideal = ideal_of(system)
    for predicted, given in ((0.5, 0.5), (3.0, 1.0), (-3.0, -1.0)):
        expected = learner_of(TLForesight(past_skill=given))(counts, ideal)
        np.testing.assert_array_equal(LearnedSkill(Constant(predicted))(counts, ideal), expected)


def test_trees_distinguish_an_expert_from_an_opponent_in_a_long_log() -> None:
    learned = learned_skill(systems=3, seed=3, families=("dirichlet", "queue"))
    system = PLACE.system()
    ideal = ideal_of(system)
    skills = []
    for past in ("opposed", "matched"):
        counts = counts_of(PLACE.log(system, past, 2500), system)
        skills.append(float(learned.regressor.predict(statistics(counts, ideal)[None])[0]))
    assert skills[0] < 0 < skills[1]


def test_known_values_need_no_more_than_where_actions_lead() -> None:
    """From many random records of the lake, the rule is as good as the best one."""
    lake = toy_system("FrozenLake-v1")
    counts = lake.log(lake.random, 20_000, np.random.default_rng(0))
    goal = Goal(prefer={int(state): 1.0 for state in np.flatnonzero(lake.success)})
    ideal = goal.on(counts.states, counts.actions)
    best = lake.success_within(lake.best, 200)
    assert lake.success_within(known_values(lake, 0.0, counts, ideal), 200) > 0.95 * best
