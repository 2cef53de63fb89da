"""TL_foresight that knows the skill of the past."""

from __future__ import annotations

import pytest

from pastwise.studies.known_past import KNOWN_SKILL, known_skill_scores, skill_of
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
