"""Labels and their indices."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from pastwise import Space

WEATHER = Space(["cold", "warm", "hot"])


def test_index_is_the_position_of_a_label() -> None:
    assert [WEATHER.index(label) for label in WEATHER.labels] == [0, 1, 2]
    assert len(WEATHER) == 3


def test_indices_of_many_labels() -> None:
    found = WEATHER.indices(["hot", "cold", "hot"])
    np.testing.assert_array_equal(found, [2, 0, 2])
    assert found.dtype == np.int64
    assert WEATHER.indices([]).shape == (0,)


def test_labels_may_be_anything_hashable() -> None:
    space = Space([("north", 1), None, 2.5])
    assert space.index(None) == 1
    assert space.index(("north", 1)) == 0


def test_space_of_a_size_labels_each_index_by_itself() -> None:
    space = Space.of_size(4)
    np.testing.assert_array_equal(space.indices(range(4)), range(4))


def test_spaces_of_the_same_labels_in_the_same_order_are_equal() -> None:
    assert Space(["a", "b"]) == Space(("a", "b"))
    assert Space(["a", "b"]) != Space(["b", "a"])


@pytest.mark.parametrize(
    ("space", "label", "message"),
    [
        (WEATHER, "wrm", "unknown label 'wrm'; did you mean 'warm'?"),
        (WEATHER, "snowstorm", "unknown label 'snowstorm'"),
        (Space.of_size(3), 3, "unknown label 3"),
        (Space.of_size(30), "29 ", "unknown label '29 '; did you mean '29'?"),
    ],
)
def test_unknown_label_names_the_nearest(space: Space, label: Hashable, message: str) -> None:
    with pytest.raises(ValueError, match="unknown label") as error:
        space.index(label)
    assert str(error.value) == message


@pytest.mark.parametrize("labels", [[], range(0)])
def test_space_without_labels_is_refused(labels: list[str] | range) -> None:
    with pytest.raises(ValueError, match="at least one label"):
        Space(labels)


def test_repeated_label_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match="label 'b' occurs twice"):
        Space(["a", "b", "c", "b"])
