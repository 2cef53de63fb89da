"""Learners that know the skill of the past, or a system and its mirror."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise.studies.families import FAMILIES
from pastwise.studies.known_past import (
    KNOWN_PAIR,
    KNOWN_SKILL,
    known_skill_scores,
    mirrored,
    mirrored_scores,
    skill_of,
)
from pastwise.studies.planner_tasks import Place
from pastwise.studies.synthetic import soft_optimal

PLACE = Place("near null walk", 1, seed=3)


def test_skill_of_a_past_is_that_of_its_rules() -> None:
    assert skill_of(PLACE, "random") == pytest.approx(0, abs=1e-9)
    assert 0.3 < skill_of(PLACE, "matched") < 1
    assert -1 <= skill_of(PLACE, "opposed") < -0.3


def test_mirror_turns_the_effects_of_actions_around() -> None:
    system = FAMILIES["near null walk"].system(3, 1)
    turned = mirrored(system).mean_transition
    original = system.mean_transition
    np.testing.assert_allclose(turned.sum(axis=-1), 1)
    np.testing.assert_allclose(turned.mean(axis=1), original.mean(axis=1))
    twice = np.broadcast_to(2 * original.mean(axis=1, keepdims=True), original.shape)
    np.testing.assert_allclose(turned + original, twice)
    again = mirrored(mirrored(system)).mean_transition
    np.testing.assert_allclose(again, original)


def test_expert_decides_as_the_opposed_past_does_in_the_mirror() -> None:
    """Up to how much the effects change the values of the states, which is little."""
    system = FAMILIES["near null walk"].system(3, 1)
    turned = mirrored(system)
    expert = soft_optimal(system, system.score, sharpness=1.0)
    opposed = soft_optimal(turned, -turned.score, sharpness=1.0)
    assert np.abs(expert - opposed).max() < 0.1
    assert np.abs(expert - 1 / system.num_actions).max() > 0.3


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


def test_few_records_do_not_show_which_of_two_mirrored_systems_it_is() -> None:
    """Nobody gains from 10 records, on average over both pasts; from 2,500 the pair is known."""
    scores = mirrored_scores(others=("clone",), records=(10, 2500), systems=6)
    assert abs(scores.mean(KNOWN_PAIR, records=10)) < 0.3
    assert scores.mean(KNOWN_PAIR, records=2500) > 0.9
    assert abs(scores.mean("clone", records=2500)) < 0.3
