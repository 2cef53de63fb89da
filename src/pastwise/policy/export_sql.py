"""A policy as SQL: one ``CASE`` expression for the state, and one for the most probable action.

Numbers are written with an exponent, so that engines read them as floating point and not as
decimals, which they would round. Not-a-number counts as missing. It is found by its text, because
engines disagree on how it compares with numbers and on the name of infinity: to SQLite, that of the
SQL standard is 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import inf
from typing import Literal

from pastwise.data.regions import Categories, Interval, Missing, Point, Values
from pastwise.data.space import Label, key_of
from pastwise.logs.files import kind_by_name
from pastwise.logs.sql import identifier, literal
from pastwise.policy.export import Export, ExportedState

MOMENT = re.compile(r"(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?([+-]\d\d:\d\d)?")
"""The label of a moment."""

NAME = r'(?:"(?:[^"]|"")+"|[^".]+)'
QUALIFIED_NAME = re.compile(rf"{NAME}(\.{NAME})*")
"""A table with its schema and database, where dots separate them; a name may be in quotes."""


def to_sql(export: Export, table: str = "rows") -> str:
    """A query that adds the columns ``policy_state`` and ``policy_action`` to a table.

    Both are null where a row has no state.

    Parameters
    ----------
    table : str
        The table; a dot comes after its schema, as in ``main.rows``, unless it is in quotes, as in
        ``"my.rows"``, or part of the name of a file, as in ``rows.parquet``.
    """
    state = case_of(export, lambda each: literal(each.key))
    action = case_of(export, lambda each: value_literal(export.actions[each.best]))
    return (
        f"-- {_one_line(export.title)}\n"
        "SELECT\n"
        "  *,\n"
        f"  {state} AS policy_state,\n"
        f"  {action} AS policy_action\n"
        f"FROM {table_name(table)}\n"
    )


def case_of(export: Export, result: Callable[[ExportedState], str]) -> str:
    """A ``CASE`` expression with a result for each state.

    Parameters
    ----------
    result : callable
        The SQL of a state's result.
    """
    lines = ["CASE"]
    for name in export.required:
        lines.append(f"    WHEN {_is_missing(name, name in export.numeric)} THEN NULL")
    for state in export.states:
        parts = []
        for name, values in state.region.items():
            words = export.words.get(name, {})
            parts.append(condition(name, values, name in export.numeric, words))
        where = " AND ".join(parts) or "TRUE"
        lines.append(f"    WHEN {where} THEN {result(state)}")
    lines.append("  END")
    return "\n".join(lines)


def condition(
    name: str, values: Values, is_numeric: bool, words: Mapping[str, str] | None = None
) -> str:
    """SQL that holds where a column has one of these values.

    Parameters
    ----------
    words : mapping, optional
        See `Export`.
    """
    column = identifier(name)
    text = _text(column, words or {})
    if isinstance(values, Point):
        return _equals(column, text, values.value)
    if isinstance(values, Interval):
        inside = _between(column, values)
        return _or_missing(name, inside, is_numeric) if values.or_missing else inside
    if isinstance(values, Categories):
        inside = _among(column, text, values)
        return _or_missing(name, inside, is_numeric) if values.or_missing else inside
    if isinstance(values, Missing):
        return _is_missing(name, is_numeric)
    return "TRUE"


def _text(column: str, words: Mapping[str, str]) -> str:
    """A column as text; of true and false, in upper or lower case, the text that the log has."""
    text = f"CAST({column} AS VARCHAR)"
    if not words:
        return text
    cases = [f"WHEN {literal(word)} THEN {literal(label)}" for word, label in words.items()]
    return f"CASE LOWER({text}) {' '.join(cases)} ELSE {text} END"


def _equals(column: str, text: str, value: Label) -> str:
    """Text is compared as text, so that a column of numbers may hold labels that were text."""
    if not isinstance(value, str):
        return f"{column} = {value_literal(value)}"
    moment = MOMENT.fullmatch(value)
    if moment is None:
        return f"{text} = {literal(value)}"
    return f"{text} IN ({literal(_moment_of_engines(moment))}, {literal(value)})"


def _moment_of_engines(label: re.Match[str]) -> str:
    """The text that engines make of a moment, in UTC if it has a time zone."""
    day, clock, fraction, offset = label.groups(default="")
    return f"{day} {clock}{fraction.rstrip('0')}{offset.removesuffix(':00')}"


def _between(column: str, values: Interval) -> str:
    parts = []
    if values.low > -inf:
        mark = ">=" if values.low_closed else ">"
        parts.append(f"{column} {mark} {number_literal(values.low)}")
    if values.high < inf:
        mark = "<=" if values.high_closed else "<"
        parts.append(f"{column} {mark} {number_literal(values.high)}")
    else:
        parts.append(_is_nan(column, "NOT IN"))
    return " AND ".join(parts)


def _is_nan(column: str, mark: Literal["IN", "NOT IN"] = "IN") -> str:
    """Whether a number is not-a-number, or is none: by its text in every engine."""
    return f"LOWER(CAST({column} AS VARCHAR)) {mark} ('nan', '-nan')"


def _among(column: str, text: str, values: Categories) -> str:
    listed = sorted(values.values, key=key_of)
    if not listed:
        return f"{column} IS NOT NULL"
    compared = column
    if any(isinstance(value, str) for value in listed):
        compared = text
    found = ", ".join(value_literal(value) for value in listed)
    if values.is_complement:
        return f"{column} IS NOT NULL AND {compared} NOT IN ({found})"
    return f"{compared} IN ({found})"


def _or_missing(name: str, inside: str, is_numeric: bool) -> str:
    return f"({inside} OR {_is_missing(name, is_numeric)})"


def _is_missing(name: str, is_numeric: bool) -> str:
    column = identifier(name)
    if not is_numeric:
        return f"{column} IS NULL"
    return f"({column} IS NULL OR {_is_nan(column)})"


def value_literal(value: Label) -> str:
    """A label in SQL; anything but text, numbers and booleans is its key."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_literal(value)
    return literal(value if isinstance(value, str) else key_of(value))


def number_literal(number: float) -> str:
    """A floating-point number, exactly.

    >>> number_literal(0.1), number_literal(1e-07), number_literal(3.0)
    ('0.1e0', '1e-07', '3.0e0')
    """
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


def table_name(table: str) -> str:
    """The name of a table, part by part; see `to_sql`.

    >>> table_name("main.rows"), table_name('main."my.rows"'), table_name("rows.csv.gz")
    ('"main"."rows"', '"main"."my.rows"', '"rows.csv.gz"')
    """
    is_file = kind_by_name(table) is not None
    if is_file or not QUALIFIED_NAME.fullmatch(table):
        return identifier(table)
    parts = re.findall(NAME, table)
    return ".".join(part if part.startswith('"') else identifier(part) for part in parts)


def _one_line(text: str) -> str:
    """A text for a comment: nothing after a new line may run."""
    return " ".join(text.split())
