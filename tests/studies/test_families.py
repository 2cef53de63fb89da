"""Families of systems: what every one of them promises."""

import numpy as np
import pytest

from pastwise.studies.families import FAMILIES, Family, of_group
from pastwise.studies.synthetic import System

SEEDS = range(4)


@pytest.fixture(params=list(FAMILIES))
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


def same_for_all_actions(system: System) -> bool:
    """Whether the next state does not depend on the action."""
    transition = system.model.transition
    return bool(np.abs(transition - transition[:, :, :1]).max() < 1e-12)


def test_a_family_makes_sound_systems(family: Family) -> None:
    for seed in SEEDS:
        system = family.system(seed)
        S = system.num_states
        assert 3 <= S <= 100
        assert system.num_actions >= 2
        np.testing.assert_allclose(system.model.transition.sum(axis=-1), 1)
        assert system.model.transition.min() >= 0
        assert system.score.min() == 0
        assert system.score.max() == 1
        assert system.initial.sum() == pytest.approx(1)
        assert system.type_weights.sum() == pytest.approx(1)

        # Episodes end in terminal states, do not start there, and only their ends have a score.
        ends = system.terminal
        assert not system.initial[ends].any()
        assert (system.model.transition[:, ends, :, ends] == 1).all()
        if system.has_ends:
            assert np.isin(np.flatnonzero(system.score), ends).all()


def test_actions_have_no_effect_in_null_families_only(family: Family) -> None:
    rng = np.random.default_rng(0)
    for seed in SEEDS:
        system = family.system(seed)
        assert same_for_all_actions(system) == family.is_null
        if family.is_null:
            rules = rng.dirichlet(np.ones(system.num_actions), size=(2, system.num_states))
            assert system.value(rules[0]) == pytest.approx(system.value(rules[1]), abs=1e-12)


def test_a_system_follows_from_its_seed(family: Family) -> None:
    one = family.system(7, 3)
    again = family.system(7, 3)
    np.testing.assert_array_equal(one.model.transition, again.model.transition)
    np.testing.assert_array_equal(one.score, again.score)
    for other in (family.system(8, 3), family.system(7, 4)):
        is_same_size = other.model.transition.shape == one.model.transition.shape
        assert not is_same_size or (other.model.transition != one.model.transition).any()


def test_the_first_line_describes_a_family(family: Family) -> None:
    assert family.summary.endswith(".")


@pytest.mark.parametrize("group", ["chosen", "reported"])
def test_each_group_has_every_kind_of_system(group: str) -> None:
    families = [FAMILIES[name] for name in of_group(group)]
    assert len(families) >= 8

    systems = [family.system(seed) for family in families for seed in SEEDS]
    assert any(system.has_ends for system in systems)
    assert any(not system.has_ends for system in systems)
    assert any(len(system.type_weights) > 1 for system in systems)
    assert min(system.num_states for system in systems) <= 5
    assert max(system.num_states for system in systems) >= 50

    # Actions have no effect: with every next state possible, and with few.
    densities = []
    for family in families:
        if family.is_null:
            transition = family.system(0).model.transition
            goes_on = family.system(0).goes_on
            densities.append((transition[:, goes_on] > 0).mean())
    assert max(densities) == 1
    assert min(densities) < 0.5


def test_the_groups_have_no_family_in_common() -> None:
    chosen = of_group("chosen")
    reported = of_group("reported")
    assert sorted(chosen + reported) == sorted(FAMILIES)


@pytest.mark.parametrize("group", ["chosen", "reported"])
def test_methods_are_compared_where_the_best_rule_is_one_of_states(group: str) -> None:
    names = of_group(group, "planners")
    systems = [FAMILIES[name].system(0) for name in names]
    assert all(len(system.type_weights) == 1 for system in systems)
    assert sum(not FAMILIES[name].is_null for name in names) >= 12
    assert any(FAMILIES[name].is_null for name in names)


def test_studies_choose_families_of_their_own() -> None:
    assert "maze" in of_group("reported", "planners")
    assert "maze" not in of_group("reported", "calibration")
    assert "moods" in of_group("reported", "calibration")
    assert set(of_group("reported", "calibration")) < set(of_group("reported"))


def test_the_exit_of_a_maze_can_be_reached() -> None:
    for seed in range(20):
        system = FAMILIES["maze"].system(seed)
        exit_state = int(np.flatnonzero(system.score)[0])
        reached = system.initial > 0
        for _ in range(system.num_states):
            reached = reached | (
                (reached & system.goes_on) @ system.mean_transition.sum(axis=1) > 0
            )
        assert reached[exit_state]
