"""A goal's labels with numbers, as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise.data.space import Label, Space
from pastwise.errors import GoalError, GoalLabelError
from pastwise.goals.tables import allowed_actions, numbers, relative_weights, shares

STATES = Space(("a", "b", "c"))
ACTIONS = Space(("x", "y"))


def test_default_floor_and_share_of_the_others_are_arguments() -> None:
    low = shares("prefer", {"a": 1}, STATES, None, default_floor=0.001)
    np.testing.assert_allclose(low, [0.998, 0.001, 0.001])
    shared = shares("prefer", {"a": 1}, STATES, None, default_floor=0.4, others_share=0.1)
    np.testing.assert_allclose(shared, [0.9, 0.05, 0.05])


def test_weights_relative_to_the_largest() -> None:
    assert relative_weights("prefer", {"c": 4, "a": 1}, STATES).tolist() == [0.25, 0, 1]


@pytest.mark.parametrize(
    ("table", "shape"),
    [
        ({"a": 1}, (3,)),
        ({"a": {"x": 1}}, (3, 2, 1)),
        ({"a": {"x": 1}, "b": {"y": {"c": 2}}}, (3, 2, 3)),
    ],
)
def test_numbers_take_the_smallest_shape(
    table: dict[Label, object], shape: tuple[int, ...]
) -> None:
    assert numbers("reward", table, STATES, ACTIONS).shape == shape


def test_nothing_forbidden_needs_one_row() -> None:
    assert allowed_actions((), STATES, ACTIONS).tolist() == [[True, True]]


def test_action_forbidden_everywhere_and_in_one_state() -> None:
    allowed = allowed_actions(((None, "x"),), STATES, ACTIONS)
    assert allowed.tolist() == [[False, True]] * 3
    allowed = allowed_actions((("b", "y"),), STATES, ACTIONS)
    assert np.argwhere(~allowed).tolist() == [[1, 1]]


def test_errors_name_the_part() -> None:
    with pytest.raises(GoalLabelError, match="anything: unknown label 'd'") as error:
        relative_weights("anything", {"d": 1}, STATES)
    assert error.value.part == "anything"
    with pytest.raises(GoalError, match="anything: a label is named twice") as twice:
        shares("anything", {5: 1, "5": 1}, Space((5, 6)), None)
    assert twice.value.part == "anything"


@pytest.mark.parametrize(
    "table",
    [
        {5: 1, "5": 2},
        {5: {5: 1}, "5": {6: 2}},
        {6: {5: 1, "5": 2}},
        {6: {5: {6: 1, "6": 2}}},
    ],
)
def test_a_number_given_twice_is_refused(table: dict[Label, object]) -> None:
    """None of the two is silently left out."""
    numbered = Space((5, 6))
    with pytest.raises(GoalError, match="reward: a label is named twice"):
        numbers("reward", table, numbered, numbered)
