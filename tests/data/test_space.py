"""Labels and their indices."""

from __future__ import annotations

import json
import pickle
from collections.abc import Hashable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import Space
from pastwise.data.space import checked_label, key_of, nearest_key
from pastwise.errors import LabelError, ParameterError, UnknownLabelError

WEATHER = Space(["cold", "warm", "hot"])


def test_index_is_the_position_of_a_label() -> None:
    assert [WEATHER.index(label) for label in WEATHER.labels] == [0, 1, 2]
    assert len(WEATHER) == 3


def test_indices_of_many_labels() -> None:
    found = WEATHER.indices(["hot", "cold", "hot"])
    np.testing.assert_array_equal(found, [2, 0, 2])
    assert found.dtype == np.int64
    assert WEATHER.indices([]).shape == (0,)


def test_indices_of_a_range_of_numbers() -> None:
    np.testing.assert_array_equal(Space.of_size(5).indices(range(3)), [0, 1, 2])
    np.testing.assert_array_equal(Space.of_size(5).indices(range(1, 3)), [1, 2])
    np.testing.assert_array_equal(Space([2, 0, 1]).indices(range(3)), [1, 2, 0])
    assert Space.of_size(5).indices(range(3)).dtype == np.int64
    with pytest.raises(UnknownLabelError, match="unknown label 5"):
        Space.of_size(5).indices(range(6))


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
    with pytest.raises(UnknownLabelError, match="unknown label") as error:
        space.index(label)
    assert str(error.value) == message
    assert error.value.label == label


def test_message_says_where_the_label_is_and_what_to_do() -> None:
    with pytest.raises(UnknownLabelError) as error:
        WEATHER.index("wrm")
    error.value.where = "prefer"
    error.value.advice = "see the log"
    assert str(error.value) == "prefer: unknown label 'wrm'; did you mean 'warm'? (see the log)"
    copied = pickle.loads(pickle.dumps(error.value))
    assert str(copied) == str(error.value)


@pytest.mark.parametrize("space", [WEATHER, Space.of_size(3)])
def test_nearest_label_is_looked_for_only_when_the_message_is_shown(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = []

    def search(label: str, known: list[str], n: int) -> list[str]:
        searches.append(label)
        return []

    monkeypatch.setattr("difflib.get_close_matches", search)
    assert "wrm" not in space
    assert not space.has("wrm")
    assert space.find("wrm") is None
    with pytest.raises(UnknownLabelError) as error:
        space.index("wrm")
    assert searches == []
    assert str(error.value) == "unknown label 'wrm'"
    assert searches == ["wrm"]


def test_search_for_the_nearest_label_is_bounded() -> None:
    labels = range(10**12)
    assert nearest_key("99999", labels, most_compared=10) is None
    assert nearest_key("9 ", labels, most_compared=10) == "9"


@pytest.mark.parametrize("number", [1, 1.0, np.int64(1), np.float64(1), True, Fraction(1)])
@pytest.mark.parametrize("labels", [range(3), [1, 0, 2]])
def test_equal_numbers_are_one_label(number: Hashable, labels: list[int]) -> None:
    space = Space(labels)
    assert number in space
    assert space.find(number) == space.index(number) == list(labels).index(1)


@pytest.mark.parametrize("label", [-1, 3, 0.5, np.nan, np.inf, "one", b"1", None, ("a", 1)])
def test_what_equals_no_number_is_unknown(label: Hashable) -> None:
    assert label not in Space.of_size(3)
    assert Space.of_size(3).find(label) is None


def test_looking_among_very_many_numbers_compares_with_none_of_them() -> None:
    space = Space.of_size(10**12)
    assert "one" not in space
    assert space.find(np.int64(7)) == 7
    assert space.find("7") == 7
    assert space.find("07") is None
    assert space.find("9" * 5000) is None


@pytest.mark.parametrize("labels", [[], range(0)])
def test_space_without_labels_is_refused(labels: list[str] | range) -> None:
    with pytest.raises(ParameterError, match="at least one label"):
        Space(labels)


def test_repeated_label_is_refused_and_named() -> None:
    with pytest.raises(LabelError, match="label 'b' occurs twice"):
        Space(["a", "b", "c", "b"])


# Keys


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("cold", "cold"),
        ('say "hi", ža', 'say "hi", ža'),
        (5, "5"),
        (2.5, "2.5"),
        (True, "true"),
        (("cold", 5, False), '["cold", 5, false]'),
        (("ž", "a b"), '["ž", "a b"]'),
    ],
)
def test_key_is_the_text_itself_and_json_of_anything_else(label: Hashable, key: str) -> None:
    assert key_of(label) == key
    assert Space([label, "another"]).index(key) == 0


plain = (
    st.text(max_size=3)
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)


@given(st.tuples(plain, plain))
def test_key_of_a_product_label_tells_its_parts(label: tuple[Hashable, Hashable]) -> None:
    parts = tuple(json.loads(key_of(label)))
    assert parts == label
    assert [type(part) for part in parts] == [type(part) for part in label]


def test_label_goes_before_the_key_of_another() -> None:
    space = Space([5, "5"])
    assert (space.index(5), space.index("5")) == (0, 1)


def test_key_of_a_numpy_number_is_that_of_the_number() -> None:
    assert key_of(np.int64(5)) == "5"
    assert key_of(np.bool_(True)) == "true"
    with pytest.raises(ValueError, match="unknown label"):
        Space([5, 6]).index(np.int64(7))


@pytest.mark.parametrize("labels", [[5, 6, "7"], [0, 1, 2, 3, 4, 5, 6]])
def test_space_has_its_labels_and_their_keys(labels: list[Hashable]) -> None:
    space = Space(labels)
    assert 5 in space
    assert "5" not in space
    assert space.has(5)
    assert space.has("5")
    assert not space.has(8)
    assert not space.has("five")


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("a", "a"),
        (5, 5),
        (True, True),
        (0.5, 0.5),
        (np.int64(5), 5),
        (np.True_, True),
        (np.str_("a"), "a"),
    ],
)
def test_label_is_a_plain_value(label: Hashable, expected: Hashable) -> None:
    assert checked_label(label) == expected
    assert type(checked_label(label)) is type(expected)
    assert checked_label((label, "b")) == (expected, "b")


@pytest.mark.parametrize("label", [None, np.nan, np.inf, b"a", frozenset("a"), ("a", None)])
def test_what_is_no_label_is_refused(label: Hashable) -> None:
    with pytest.raises(
        LabelError, match="is no label: a label is text, a finite number, a boolean, or a tuple"
    ):
        checked_label(label)


def test_nearest_label_of_a_product_space_is_named_by_its_key() -> None:
    rooms = Space([("north", 1), ("south", 2)], ("room", "floor"))
    with pytest.raises(ValueError, match="unknown label") as error:
        rooms.index(("nort", 1))
    message = """unknown label ('nort', 1); did you mean '["north", 1]' or '["south", 2]'?"""
    assert str(error.value) == message


# Order


ORDERED: list[list[Hashable]] = [
    ["10", "9", "Z", "a", "ž"],
    [-3, 2, 2.5, 10],
    [False, True],
    ["[-inf, -2.5)", "[-2.5, -1)", "[-1, 0.5)", "[0.5, 10)", "[10, 1e+06)", "[1e+06, inf]"],
    ["[-1e-05, 2)", "[2, 10)", "[10, 20]", "[odd, one)", "text"],
    [("a", 2), ("a", 10), ("b", -1)],
    [("[2, 10)", True), ("[10, 20]", False), ("[10, 20]", True)],
    [False, True, 0.5, 7, "seven"],
]


@pytest.mark.parametrize("labels", ORDERED)
def test_labels_are_sorted_by_what_they_mean(labels: list[Hashable]) -> None:
    """Numbers by value, intervals by lower end, text by its letters, tuples field by field."""
    assert list(Space.sorted([*reversed(labels), *labels]).labels) == labels


def test_order_of_the_labels_given_does_not_matter() -> None:
    spaces = {
        Space.sorted(labels).labels for labels in permutations(["b", "[10, 20]", "[9, 10)", "a"])
    }
    assert spaces == {("[9, 10)", "[10, 20]", "a", "b")}


def test_whole_numbers_from_zero_are_their_own_indices() -> None:
    assert Space.sorted([2, 0, 1]) == Space.of_size(3)
    assert Space([0, 2]) != Space.of_size(2)
    assert Space([False, True]).labels == (False, True)


# Product spaces


PLACES = Space.sorted([("b", 2), ("a", 10), ("a", 2), ("b", 2)], ("room", "floor"))


def test_product_space_holds_the_combinations_that_occur() -> None:
    assert PLACES.is_product
    assert PLACES.labels == (("a", 2), ("a", 10), ("b", 2))
    assert ("b", 2) in PLACES
    assert ("b", 10) not in PLACES
    assert not WEATHER.is_product
    assert not Space(["a"], ("room",)).is_product


@pytest.mark.parametrize(
    ("name", "values", "index"), [("room", ("a", "b"), [0, 0, 1]), ("floor", (2, 10), [0, 1, 0])]
)
def test_field_of_a_product_space(
    name: str, values: tuple[Hashable, ...], index: list[int]
) -> None:
    space, of_label = PLACES.field(name)
    assert space.labels == values
    np.testing.assert_array_equal(of_label, index)


def test_unknown_field_is_named() -> None:
    with pytest.raises(ParameterError, match="no field 'size'; its fields are room, floor"):
        PLACES.field("size")
    with pytest.raises(ParameterError, match="its fields are none"):
        WEATHER.field("size")


def test_only_field_of_a_space_is_the_space() -> None:
    space, of_label = Space(["b", "a"], ("room",)).field("room")
    assert space.labels == ("a", "b")
    np.testing.assert_array_equal(of_label, [1, 0])


@pytest.mark.parametrize("label", [("a",), ("a", 1, 2), "ab", 5])
def test_label_without_a_part_for_every_field_is_refused(label: Hashable) -> None:
    with pytest.raises(LabelError, match=r"one part for each of the fields room, floor"):
        Space([("a", 1), label], ("room", "floor"))


# Union


def test_union_of_a_space_and_a_part_of_it_is_the_larger_one_in_its_order() -> None:
    part = Space(["hot", "cold"])
    assert WEATHER.union(part) is WEATHER
    assert part.union(WEATHER) is WEATHER


def test_union_of_spaces_of_numbers_is_the_larger_one() -> None:
    assert Space.of_size(3).union(Space.of_size(5)) == Space.of_size(5)
    assert Space.of_size(5).union(Space.of_size(3)) == Space.of_size(5)


def test_union_of_overlapping_spaces_is_sorted() -> None:
    assert Space(["d", "b"]).union(Space(["c", "b"])).labels == ("b", "c", "d")
    assert Space.of_size(3).union(Space([2, 3])) == Space.of_size(4)


def test_union_keeps_the_fields() -> None:
    other = Space([("c", 1)], ("room", "floor"))
    assert PLACES.union(other) == Space([*PLACES.labels, ("c", 1)], ("room", "floor"))


def test_spaces_of_different_fields_cannot_be_united() -> None:
    with pytest.raises(ParameterError, match="cannot be united"):
        PLACES.union(Space([("c", 1)], ("room", "size")))


@pytest.mark.parametrize(("text", "typed"), [("1", 1), ("0.5", 0.5), ("true", True)])
def test_text_and_a_value_of_the_same_key_are_one_label(text: str, typed: Hashable) -> None:
    texts = Space([text, "x"])
    assert texts.union(Space([typed])) is texts
    assert Space([typed]).union(texts) is texts
    assert set(texts.union(Space([typed, "y"])).labels) == {text, "x", "y"}


def test_numbers_without_a_twin_stay_numbers() -> None:
    assert set(Space(["1", "x"]).union(Space([1, 2])).labels) == {"1", "x", 2}
    assert set(Space.of_size(3).union(Space(["1"])).labels) == {0, "1", 2}


def test_union_of_labels_of_several_types_does_not_depend_on_the_order() -> None:
    one, two, three = Space(["1", "x"]), Space([1, 2]), Space([2, "2", 3.5])
    expected = one.union(two).union(three).labels
    assert one.union(two.union(three)).labels == expected
    assert three.union(two).union(one).labels == expected
    keys = [key_of(label) for label in expected]
    assert len(set(keys)) == len(keys)


def test_parts_of_product_labels_are_united_by_key() -> None:
    fields = ("room", "floor")
    texts = Space([("a", "1"), ("a", "2")], fields)
    typed = Space([("a", 1)], fields)
    assert texts.union(typed) is texts
    assert texts.index(("a", 2)) == 1
    crossed = Space([("1", 2)], fields).union(Space([(1, "2")], fields))
    assert crossed.labels == (("1", "2"),)


# Spellings

SPELLINGS = [
    ("true", "True"),
    (False, "FALSE"),
    ("2024-01-02", "2024-01-02T00:00:00"),
    ("2024-01-02T09:30:00", "2024-01-02 09:30:00"),
    ("2024-01-02T09:30:00.5", "2024-01-02 09:30:00.500000"),
    ("2024-01-02T00:00:00+02:00", "2024-01-02 00:00:00+02:00"),
    ("-3", -3.0),
    (4.0, "4"),
    ("cured 1", "cured 1.0"),
]


@pytest.mark.parametrize(("one", "two"), SPELLINGS)
def test_a_label_is_found_by_another_spelling(one: Hashable, two: Hashable) -> None:
    for label, other in ((one, two), (two, one)):
        assert Space(["x", label]).index(other) == 1
        assert Space([("x", label)]).index(("x", other)) == 0
        assert Space([("x", label)], ("a", "b")).index(("x", other)) == 0


@pytest.mark.parametrize(("one", "two"), SPELLINGS)
def test_union_has_one_label_for_each_spelling(one: Hashable, two: Hashable) -> None:
    for label, other in ((one, two), (two, one)):
        assert len(Space(["x", label]).union(Space([other]))) == 2
        assert len(Space([("x", label), "y"]).union(Space([("x", other)]))) == 2


def test_a_space_that_tells_spellings_apart_keeps_them() -> None:
    both = Space(["True", "true", "x"])
    assert set(both.union(Space([True])).labels) == {"True", "true", "x"}
    assert set(Space([True]).union(both).labels) == {"True", "true", "x"}
    assert both.index(True) == 1
    assert not both.has("TRUE")
    assert len(both.union(Space(["TRUE"]))) == 4
    versions = Space(["1", "1.0"])
    assert (versions.index(1), versions.index(1.0)) == (0, 1)
    assert set(versions.union(Space([1.0, 2.0])).labels) == {"1", "1.0", 2.0}


def test_union_of_spellings_does_not_depend_on_the_order() -> None:
    spaces = [Space([True, "x"]), Space(["True"]), Space(["TRUE", "y"]), Space(["true"])]
    for one, two, three, four in permutations(spaces):
        united = one.union(two).union(three).union(four)
        assert set(united.labels) == {"true", "x", "y"}


@pytest.mark.parametrize(
    ("label", "other"),
    [
        ("truth", "Truth"),
        ("2024-1-2 00:00:00", "2024-1-2"),
        ("9:30:00.50", "9:30:00.5"),
        ("1.1.0", "1.1"),
        ("1.50", "1.5"),
        ("01", "1.0"),
    ],
)
def test_other_texts_have_no_other_spelling(label: str, other: str) -> None:
    assert not Space([label]).has(other)
    assert len(Space([label]).union(Space([other]))) == 2


def test_parts_of_labels_without_fields_are_united_by_key() -> None:
    typed = Space([("a", 1), ("a", 2), "yes"])
    texts = Space([("a", "1"), "no"])
    united = typed.union(texts)
    assert set(united.labels) == {("a", "1"), ("a", 2), "yes", "no"}
    assert typed.index(("a", "2")) == 1
