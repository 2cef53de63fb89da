"""The study of the test of change: systems that change, policies in a loop, and the tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pastwise.errors import ParameterError
from pastwise.methods.base import FixedRows, Plan
from pastwise.studies.change import (
    EFFECT,
    HIDDEN,
    KINDS,
    NO_EFFECT,
    QUIET,
    RUN_LENGTHS,
    Case,
    ChangeResult,
    ChangeStudy,
    Loop,
    changed,
    run_case,
    size_of_change,
    study_change,
)
from pastwise.studies.families import FAMILIES
from pastwise.studies.planner_tasks import Place
from pastwise.studies.synthetic import System

TRANSITION = np.array(
    [
        [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]],
        [[0.5, 0.4, 0.1], [0.1, 0.8, 0.1]],
        [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]],
    ]
)


def small_system() -> System:
    """Two states, and one in which episodes end."""
    return System.of(TRANSITION, np.array([0.0, 0.0, 1.0]), lengths=(5, 9), terminal=(2,))


def test_loop_follows_the_rule_and_the_system() -> None:
    """Frequencies of 20,000 outcomes, each within four standard deviations."""
    system = small_system()
    rule = np.array([[0.75, 0.25], [1.0, 0.0], [0.5, 0.5]])
    loop = Loop(system, FixedRows(Plan(rule, {})), 0.1, np.random.default_rng(0))
    rows = np.zeros((3, 2, 3))
    for _ in range(20_000):
        rows[loop.step()] += 1
    assert rows[2].sum() == 0
    visits = rows.sum(axis=2)
    expected = 0.1 + 0.8 * rule[:2]
    tolerance = 4 * np.sqrt(0.25 / visits[:2].sum(axis=1, keepdims=True))
    assert (np.abs(visits[:2] / visits[:2].sum(axis=1, keepdims=True) - expected) < tolerance).all()
    tolerance = 4 * np.sqrt(0.25 / visits[:2, :, None])
    assert (np.abs(rows[:2] / visits[:2, :, None] - TRANSITION[:2]) < tolerance).all()


def test_changes_move_what_they_name() -> None:
    system = small_system()
    visits = Counter({(0, 1): 30, (1, 0): 20, (1, 1): 10})
    rng = np.random.default_rng(1)

    everything = changed(system, "everything", 1.0, visits, rng).model.transition[0]
    np.testing.assert_allclose(everything[2], TRANSITION[2])
    np.testing.assert_allclose(everything.sum(axis=-1), 1.0)

    action = changed(system, "an action", 0.5, visits, rng).model.transition[0]
    np.testing.assert_allclose(action[:, 0], TRANSITION[:, 0])
    np.testing.assert_allclose(action[:2, 1], TRANSITION[:2].mean(axis=1))

    one_row = changed(system, "a row", 1.0, visits, rng).model.transition[0]
    is_changed = (one_row != TRANSITION).any(axis=-1)
    assert not is_changed[[0, 1, 1, 2, 2], [0, 0, 1, 0, 1]].any()

    nothing = changed(system, QUIET, 1.0, visits, rng).model.transition[0]
    np.testing.assert_allclose(nothing, TRANSITION)


def test_size_is_the_share_of_outcomes_that_differ() -> None:
    system = small_system()
    visits = Counter({(0, 1): 30, (0, 0): 10})
    after = changed(system, "an action", 1.0, visits, np.random.default_rng(0))
    # Action 1 in state 0 gets the row of action 0: 0.7 of its outcomes differ.
    assert size_of_change(system, after, visits) == pytest.approx(0.7 * 30 / 40)


def test_actions_without_effect_can_be_exchanged() -> None:
    study = ChangeStudy(before=100, outcomes=100)
    place = Place("null walk", 0, 1)
    case = run_case(study, place, 40, "an action")
    assert FAMILIES["null walk"].is_null
    assert case.group == NO_EFFECT
    assert case.size == pytest.approx(0.0)


def test_same_seed_same_cases() -> None:
    study = ChangeStudy(families=["ring"], systems=1, records=(40,), before=100, outcomes=200)
    assert study_change(study).cases == study_change(study).cases
    assert study_change(study).cases != study_change(replace(study, seed=1)).cases


def test_large_changes_are_found_after_a_long_log() -> None:
    study = ChangeStudy(before=200, outcomes=1000, shares=(1.0, 1.0))
    for index in range(2):
        case = run_case(study, Place("ring", index, 0), 4000, "everything")
        assert case.size > 0.3
        assert case.early == [False] * len(RUN_LENGTHS)
        delays = [delay for delay in case.delays if delay is not None]
        assert len(delays) == len(RUN_LENGTHS)
        assert delays == sorted(delays)
        assert case.watched == delays[-1]


def case(**values: object) -> Case:
    usual: dict[str, object] = {
        "family": "ring",
        "index": 0,
        "past": "random",
        "records": 40,
        "group": EFFECT,
        "kind": QUIET,
        "size": 0.0,
        "watched": 1000,
        "early": [False] * 5,
        "delays": [None] * 5,
    }
    return Case(**{**usual, **values})  # type: ignore[arg-type]


def test_tables() -> None:
    result = ChangeResult(
        {},
        [
            case(),
            case(delays=[200, None, None, None, None]),
            case(kind="a row", size=0.2, delays=[5, 10, 20, 30, 40]),
            case(kind="a row", size=0.2, delays=[5, 10, 20, 30, None]),
            case(kind="a row", size=0.2, early=[True] * 5),
            case(kind="a row", size=0.2, group=HIDDEN),
        ],
    )
    assert result.quiet_table()[1:] == [
        [EFFECT, "2,000", "1,200", *["none in 2,000"] * 4],
    ]
    cells = {(row[0], row[1]): row[2] for row in result.delay_table(1e6)[1:]}
    assert cells["a row", "0.1 to 0.3"] == "1 of 2: 40"
    assert cells["a row", "0.3 to 1"] == ""
    assert {row[0] for row in result.delay_table(1e4)[1:]} == set(KINDS[1:])
    assert "| 1,200 |" in result.page()


def test_mistakes_are_refused() -> None:
    with pytest.raises(ParameterError, match="unknown family"):
        study_change(ChangeStudy(families=["no such"]))
    with pytest.raises(ParameterError, match="at least one system"):
        study_change(ChangeStudy(systems=0))
