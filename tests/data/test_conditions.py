"""Conditions: reading and writing them, rows, regions, and what errors say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise.data.conditions import And, Comparison, Condition, Not, Or, parse_condition
from pastwise.data.regions import (
    Anything,
    Categories,
    Interval,
    Missing,
    Point,
    Region,
    Values,
    contains,
)
from pastwise.errors import ConditionError, GoalError, ParameterError

DAYS = ((-np.inf, 86_400.0), (86_400.0, np.inf))
"""Before the second day of 1970, and from then on."""

COLUMNS = ("wage", "ward", "not", "a `b`", "größe", "2nd")
WORDS = ("A", "B 1", "true", "and", "2", "2.0", "it's", "", "-1", "Infinity", "é")

numbers = st.floats(-3, 3, allow_subnormal=False) | st.integers(-3, 3).map(float)
literals = st.booleans() | numbers | st.sampled_from(WORDS)
columns = st.sampled_from(COLUMNS)

comparisons = (
    st.builds(Comparison, columns, st.sampled_from(["==", "!="]), literals)
    | st.builds(
        Comparison,
        columns,
        st.sampled_from(["<", "<=", ">", ">="]),
        numbers | st.sampled_from(WORDS),
    )
    | st.builds(
        Comparison,
        columns,
        st.sampled_from(["in", "not in"]),
        st.lists(literals, min_size=1, max_size=3).map(tuple),
    )
    | st.builds(Comparison, columns, st.just("is missing"))
)


def _with_more(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(Not, inner) | st.builds(And, several) | st.builds(Or, several)


conditions = st.recursive(comparisons, _with_more, max_leaves=6)

present = st.booleans() | numbers | st.integers(-3, 3) | st.sampled_from(WORDS)
missing = st.sampled_from([None, float("nan")])


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    """Intervals that have a member; ends may be infinite."""
    low, high = sorted([draw(numbers), draw(numbers)])
    low = draw(st.sampled_from([low, -np.inf]))
    high = draw(st.sampled_from([high, np.inf]))
    is_point = low == high
    low_closed = is_point or draw(st.booleans())
    high_closed = is_point or draw(st.booleans())
    if np.nextafter(low, np.inf) >= high:
        low_closed = high_closed = True
    return Interval(low, high, low_closed, high_closed, draw(st.booleans()))


values = (
    st.builds(Point, present)
    | intervals()
    | st.builds(Categories, st.frozensets(present, min_size=1), st.booleans(), st.booleans())
    | st.just(Missing())
    | st.just(Anything())
)


@st.composite
def regions_with_rows(draw: st.DrawFn) -> tuple[Region, list[Mapping[str, object]]]:
    """A region, and rows that lie in it."""
    region: dict[str, Values] = draw(st.dictionaries(columns, values))
    ends: list[object] = []
    for given_values in region.values():
        if isinstance(given_values, Interval):
            ends += [given_values.lowest, given_values.highest]
        if isinstance(given_values, Point):
            ends.append(given_values.value)
        if isinstance(given_values, Categories):
            ends += given_values.values
    value = present | missing
    if ends:
        value = value | st.sampled_from(ends)
    rows = draw(st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, value)), max_size=8))
    inside: list[Mapping[str, object]] = [row for row in rows if contains(region, row)]
    return region, inside


@given(conditions)
def test_the_text_of_a_condition_states_it(condition: Condition) -> None:
    assert parse_condition(str(condition)) == condition


@given(conditions, regions_with_rows())
def test_a_region_decides_for_each_of_its_rows(
    condition: Condition, case: tuple[Region, list[Mapping[str, object]]]
) -> None:
    region, rows = case
    answer = condition.decide(region)
    assert (condition.undecided(region) == ()) == (answer is not None)
    if answer is not None:
        assert all(condition.holds(row) == answer for row in rows)


@given(conditions, st.fixed_dictionaries(dict.fromkeys(COLUMNS, present | missing)))
def test_a_region_of_points_decides_everything(
    condition: Condition, row: dict[str, object]
) -> None:
    region: dict[str, Values] = {}
    for name, value in row.items():
        is_missing = value is None or value != value
        region[name] = Missing() if is_missing else Point(value)
    assert condition.decide(region) == condition.holds(row)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2 <= wage < 4", "wage >= 2 and wage < 4"),
        ("2 < wage", "wage > 2"),
        ("a==1 OR b==2 AND c==3", "a == 1 or (b == 2 and c == 3)"),
        ("not a == 1 and b == 2", "(not a == 1) and b == 2"),
        ("a is not missing", "not (a is missing)"),
        ('ward == "B 1"', "ward == 'B 1'"),
        ("`ward`==A", "ward == A"),
        ("x > -1.5e0", "x > -1.5"),
    ],
)
def test_two_ways_to_write_one_condition(text: str, same: str) -> None:
    one = parse_condition(text)
    other = parse_condition(same)
    for wage in (1, 2, 3, 4):
        row = {"wage": wage, "a": wage - 1, "b": 2, "c": wage, "ward": "B 1"}
        assert one.holds(row) == other.holds(row)
    assert one.columns == other.columns


@pytest.mark.parametrize(
    ("text", "row", "answer"),
    [
        ("wage >= 2", {"wage": 2}, True),
        ("wage >= 2", {"wage": "10"}, True),
        ("wage >= 2", {"wage": "high"}, False),
        ("wage < 2", {"wage": "high"}, False),
        ("wage >= 2", {}, False),
        ("not wage >= 2", {"wage": None}, True),
        ("wage != 2", {"wage": float("nan")}, False),
        ("wage not in (1, 2)", {"wage": pd.NA}, False),
        ("wage is missing", {"wage": pd.NaT}, True),
        ("wage is missing", {"wage": np.datetime64("NaT")}, True),
        ("day >= '2024-02-01'", {"day": date(2024, 3, 1)}, True),
        ("day >= '2024-02-01'", {"day": np.datetime64("2024-01-31T10:00:00", "ns")}, False),
        ("room == 5", {"room": "5"}, True),
        ("room == '5'", {"room": 5}, True),
        ("day < '1970-01-02'", {"day": 86_399}, True),
        ("day < '1970-01-02T00:00+01:00'", {"day": 86_399.0}, False),
        ("wage < '10'", {"wage": 9}, True),
        ("wage < '10'", {"wage": "9"}, False),
        ("wage < high", {"wage": 9}, False),
        ("wage == '2.50'", {"wage": 2.5}, True),
        ("key == '9007199254740993'", {"key": 9007199254740993}, True),
        ("flag == true", {"flag": "True"}, True),
        ("flag == true", {"flag": np.True_}, True),
        ("flag == false", {"flag": 0}, True),
        ("ward in (A, B)", {"ward": "B"}, True),
        ("n == 1", {"n": np.int64(1)}, True),
        ("n > 1", {"n": 10**400}, True),
    ],
)
def test_values_of_any_type(text: str, row: dict[str, object], answer: bool) -> None:
    assert parse_condition(text).holds(row) == answer


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "expected a column, found the end"),
        ("wage", 4, "after 'wage', found the end"),
        ("wage = 2", 5, "write == to compare"),
        ("wage >= ", 8, "expected a number or text, found the end"),
        ("wage >= and", 8, "goes in 'quotes'"),
        ("wage >= 2 and", 13, "expected a column, found the end"),
        ("wage >= 2 wage < 4", 10, "expected 'and', 'or' or the end, found 'wage'"),
        ("(wage >= 2", 10, "to close the parenthesis"),
        ("wage in 2", 8, "expected '('"),
        ("wage in (2", 10, "expected ')'"),
        ("wage is big", 8, "expected 'missing'"),
        ("in == 2", 0, "backquotes"),
        ("flag > true", 7, "by =="),
        ("ward == 'A", 8, "no closing '"),
        ("map < 65%", 8, "unexpected '%'"),
        ("x == 1e999", 5, "too large"),
        ("3 == 4", 5, "expected a column"),
        ("(" * 1000, 100, "within each other"),
    ],
)
def test_an_error_says_where_reading_stopped(text: str, position: int, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_condition(text)
    assert caught.value.position == position
    assert message in str(caught.value)
    assert isinstance(caught.value, GoalError)

    # The mark stands below the character.
    excerpt, mark = str(caught.value).splitlines()[-2:]
    assert mark.strip() == "^"
    below = excerpt[len(mark) - 1 : len(mark)]
    assert below == text[position : position + 1]


@given(st.text("ab<>=!()',`\" 1.andortis", max_size=20))
def test_any_text_is_a_condition_or_an_error_with_a_place(text: str) -> None:
    try:
        condition = parse_condition(text)
    except ConditionError as error:
        is_fine = 0 <= error.position <= len(text)
    else:
        is_fine = parse_condition(str(condition)) == condition
    assert is_fine


def test_what_a_condition_still_depends_on() -> None:
    condition = parse_condition("lactate < 2 and (map >= 65 or ward == A)")
    assert condition.columns == ("lactate", "map", "ward")
    assert [str(atom) for atom in condition.atoms()] == ["lactate < 2", "map >= 65", "ward == A"]
    assert condition.undecided({"lactate": Interval(low=2)}) == ()
    low = {"lactate": Interval(high=2), "map": Interval(high=65)}
    assert [str(atom) for atom in condition.undecided(low)] == ["ward == A"]


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("day < '1970-01-02'", [True, False]),
        ("day >= '1970-01-02 00:00'", [False, True]),
        ("day <= '1970-01-02'", [True, None]),
        ("day < '86400'", [True, False]),
        ("day == '1970-01-03'", [False, None]),
        ("day != '1969-12-31'", [None, True]),
    ],
)
def test_dates_in_quotes_decide_intervals_of_seconds(text: str, answers: list[bool | None]) -> None:
    condition = parse_condition(text)
    assert [condition.decide({"day": Interval(*ends)}) for ends in DAYS] == answers


def test_an_open_end_has_a_last_number() -> None:
    after_two = float(np.nextafter(2, 3))
    assert parse_condition("x <= 2").decide({"x": Interval(high=after_two)}) is True
    assert parse_condition("x <= 2").decide({"x": Interval(low=after_two)}) is False
    assert parse_condition("x >= 2").decide({"x": Interval(low=2, or_missing=True)}) is None


@pytest.mark.parametrize(
    ("operator", "value"),
    [("=", 1.0), ("in", 1.0), ("==", (1.0,)), ("in", ()), ("==", None), ("<", True), ("<", np.inf)],
)
def test_a_comparison_that_makes_no_sense(operator: str, value: object) -> None:
    with pytest.raises(ParameterError):
        Comparison("x", operator, value)  # type: ignore[arg-type]


def test_an_interval_has_a_member() -> None:
    with pytest.raises(ParameterError, match="no member"):
        Interval(2, 2, low_closed=True, high_closed=False)
    with pytest.raises(ParameterError, match="at least one"):
        Categories(frozenset())
