"""TL_foresight that knows the skill of the past."""

from __future__ import annotations

import pytest

from pastwise.studies.known_past import (
    KNOWN_SKILL,
    KnownSkillGain,
    dependence_page,
    known_skill_gains,
    known_skill_scores,
    skill_of,
)
from pastwise.studies.planner_tasks import Place

PLACE = Place("near null walk", 1, seed=3)


def test_skill_of_a_past_is_that_of_its_rules() -> None:
    assert skill_of(PLACE, "random") == pytest.approx(0, abs=1e-9)
    assert 0.3 < skill_of(PLACE, "matched") < 1
    assert -1 <= skill_of(PLACE, "opposed") < -0.3


def test_who_knows_the_skill_gains_more_than_who_does_not() -> None:
    """Actions hardly differ, so that much depends on who left the log."""
    scores = known_skill_scores(
        ["near null walk"],
        others=("clone", "TL_foresight"),
        pasts=("matched", "opposed"),
        records=(160,),
        systems=4,
    )
    assert scores.mean(KNOWN_SKILL) > scores.mean("TL_foresight") + 0.2
    assert scores.mean(KNOWN_SKILL, past="matched") > scores.mean("clone", past="matched") - 0.2


def test_a_known_skill_adds_most_where_decisions_depend_on_the_past() -> None:
    gains = known_skill_gains(["forest", "queue"], records=(10, 2500), systems=4, seed=3)
    dependent = [x.gain for x in gains if x.dependence > 0.3]
    others = [x.gain for x in gains if x.dependence <= 0.3]
    assert len(dependent) + len(others) == len(gains) == 80
    assert sum(dependent) / len(dependent) > sum(others) / len(others) + 0.02
    by_length = {n: [x.dependence for x in gains if x.records == n] for n in (10, 2500)}
    assert sum(by_length[10]) > 2 * sum(by_length[2500])


def test_the_table_of_dependence_has_means_of_each_range() -> None:
    gains = [
        KnownSkillGain(records=10, dependence=0.05, share=0.5, gain=0.0),
        KnownSkillGain(records=10, dependence=0.9, share=-0.1, gain=0.3),
        KnownSkillGain(records=10, dependence=1.0, share=0.2, gain=0.1),
        KnownSkillGain(records=10, dependence=0.5, share=0.2, gain=0.2),
    ]
    rows = dependence_page(gains).splitlines()[2:]
    assert rows == ["| 0 to 10 % | 25 % | +0.000 | 0 % |", "| 50 to 100 % | 75 % | +0.200 | 33 % |"]
