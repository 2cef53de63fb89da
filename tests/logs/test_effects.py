"""Findings on what actions do and on what labels are, with a permutation test as oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pastwise import Columns, Goal, LogWarning, TransferLearner, validate_log
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.logs.effects import effect_test

COLUMNS: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}


def codes(log: dict[str, Any], **more: Any) -> list[str]:
    found = validate_log(log, Columns.of(**COLUMNS, **more)).findings
    return [finding.code for finding in found]


def two_actions(effect: float, number: int = 1000, seed: int = 0) -> dict[str, Any]:
    """A log of two actions, of which one changes the chance of going up."""
    rng = np.random.default_rng(seed)
    state = rng.choice(["down", "up"], size=number)
    action = rng.choice(["push", "wait"], size=number)
    chance = np.where(state == "up", 0.7, 0.3) + np.where(action == "push", effect, 0.0)
    return {"s": state, "a": action, "n": np.where(rng.random(number) < chance, "up", "down")}


def test_an_effect_that_cannot_be_distinguished_from_none_is_found() -> None:
    columns = Columns.of(**COLUMNS)
    (finding,) = validate_log(two_actions(effect=0.0), columns).findings
    assert finding.code == "no-effect"
    message = "2 actions cannot be distinguished from none (test at 5 %): push, wait"
    assert message in finding.message
    assert codes(two_actions(effect=0.25)) == []
    assert codes(two_actions(effect=0.0, number=150)) == []  # too few records to say so


def test_a_log_without_a_choice_between_actions_is_found() -> None:
    log = two_actions(effect=0.25)
    always = log | {"a": np.full(1000, "push")}
    by_state = log | {"a": np.where(log["s"] == "up", "push", "wait")}
    for each in (always, by_state):
        assert "one-action" in codes(each)
    by_state["a"][7] = "push" if by_state["a"][7] == "wait" else "wait"
    assert "one-action" not in codes(by_state)
    assert codes({name: values[:20] for name, values in always.items()}) == []  # may be chance


def test_learning_warns_of_actions_without_effect() -> None:
    with pytest.warns(LogWarning, match="cannot be distinguished from none"):
        TransferLearner(Goal(prefer="up")).fit(two_actions(effect=0.0), **COLUMNS)


@pytest.mark.parametrize("seed", range(3))
def test_the_test_agrees_with_permutations_within_states(seed: int) -> None:
    rng = np.random.default_rng(seed)
    number = 400
    state = rng.integers(3, size=number)
    action = rng.integers(3, size=number)
    follows = np.where((action == 2) & (rng.random(number) < 0.2), 0, rng.integers(4, size=number))

    def p_values(action: Any) -> Any:
        counts = TransitionCounts.from_records(
            state, action, follows, Space.of_size(4), Space.of_size(3)
        )
        return effect_test(counts)[0]

    found = p_values(action)
    at_least = np.zeros(3)
    repetitions = 1000
    for _ in range(repetitions):
        shuffled = action.copy()
        for each in range(3):
            inside = np.flatnonzero(state == each)
            shuffled[inside] = action[rng.permutation(inside)]
        at_least += p_values(shuffled) <= found
    # Standard deviation of a share of 1,000 permutations: at most 0.016.
    assert np.abs(at_least / repetitions - found).max() < 0.06


def test_an_action_that_is_the_outcome_is_found() -> None:
    rng = np.random.default_rng(1)
    activity = rng.choice(["register", "check", "pay"], size=300)
    before = np.roll(activity, 1)
    log = {"s": before, "a": activity, "n": activity.copy()}
    assert "action-is-outcome" in codes(log)
    log["n"][:3] = "register"  # a few records that were typed in wrongly
    assert "action-is-outcome" in codes(log)
    log["n"] = np.where(rng.random(300) < 0.3, "register", activity)
    assert "action-is-outcome" not in codes(log)


def test_a_column_of_measurements_without_bins_is_found() -> None:
    rng = np.random.default_rng(2)
    lactate = rng.gamma(2.0, size=400).round(3)
    log = {
        "s": lactate,
        "a": rng.choice(["x", "y"], size=400),
        "n": np.roll(lactate, -1),
    }
    found = validate_log(log, Columns.of(**COLUMNS)).findings
    (finding,) = [each for each in found if each.code == "continuous-column"]
    assert finding.message.startswith("the column s has ")
    assert "400 records" in finding.message
    assert "continuous-column" not in codes(log, bins={"s": 4})
    assert "continuous-column" not in codes({**log, "s": lactate.round(0), "n": lactate.round(0)})
    as_text = {**log, "s": lactate.astype(str), "n": np.roll(lactate, -1).astype(str)}
    assert "continuous-column" in codes(as_text)
    rooms = {**log, "s": [f"room {x}" for x in lactate], "n": [f"room {x}" for x in log["n"]]}
    assert "continuous-column" not in codes(rooms)
