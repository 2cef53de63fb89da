"""A policy as a Python module that needs nothing but Python."""

from __future__ import annotations

from math import isfinite

from pastwise.data.regions import Categories, Interval, Missing, Point, Values
from pastwise.data.space import key_of
from pastwise.policy.export import Export, ExportedState

MODULE = '''\
"""{title}

decide(row) is the most probable action, probabilities(row) the rule that it comes from, and
state(row) the state of a row: a mapping with the columns {columns}.
A row that no state matches is a ValueError.
"""

import json
from datetime import date, datetime, time, timezone
from decimal import Decimal

ACTIONS = {actions}

RULE = {{
{rule}
}}


def decide(row):
    """The most probable action."""
    rule = RULE[state(row)]
    return ACTIONS[rule.index(max(rule))]


def probabilities(row):
    """The probability of each action."""
    return dict(zip(ACTIONS, RULE[state(row)]))


def state(row):
    """The state of a row."""
{reading}
{required}{branches}
    raise ValueError(f"no state matches the row {{row!r}}")


def _plain(value):
    """A value without its library; None if it is missing."""
    if hasattr(value, "item"):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    return None if value != value else value


def _number(value):
    """A value as a number; dates are seconds since 1970."""
    value = _plain(value)
    if value is None:
        return None
    if isinstance(value, bool):
        raise ValueError(f"{{value!r}} is no number")
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return float(since.days * 86400 + since.seconds) + since.microseconds / 1e6
    if isinstance(value, date):
        return float((value - date(1970, 1, 1)).days * 86400)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    return None if number != number else number


def _moment(value):
    """A date, which may be text, as seconds since 1970."""
    value = _plain(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            pass
    return _number(value)


def _label(value):
    """A value as a label."""
    value = _plain(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return value


def _word(value, words):
    """A value as a label; of true and false, the text that the log has for it."""
    value = _label(value)
    return None if value is None else words.get(_key(value).lower(), value)


def _truth(value):
    """A value as true or false: also 0 and 1, and the words."""
    value = _plain(value)
    if value is None:
        return None
    if isinstance(value, str):
        value = {{"true": True, "false": False}}.get(value.lower(), value)
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    raise ValueError(f"{{value!r}} is neither true nor false")


def _key(value):
    """A label as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is(value, label):
    """Whether a value is a label."""
    return value is not None and (value == label or _key(value) == _key(label))
'''


def to_python(export: Export) -> str:
    """The source of a module with ``decide``, ``probabilities`` and ``state``."""
    names = {column: f"value_{place}" for place, column in enumerate(export.columns)}
    reading = []
    for column, name in names.items():
        given = f"row[{column!r}]"
        if column in export.dates:
            value = f"_moment({given})"
        elif column in export.numeric:
            value = f"_number({given})"
        elif column in export.boolean:
            value = f"_truth({given})"
        elif column in export.words:
            value = f"_word({given}, {export.words[column]!r})"
        else:
            value = f"_label({given})"
        reading.append(f"    {name} = {value}")
    required = []
    for column in export.required:
        problem = f"no state matches the row: {column} is missing"
        required.append(f"    if {names[column]} is None:\n        raise ValueError({problem!r})\n")
    return MODULE.format(
        title=_docstring(export.title),
        columns=_docstring(", ".join(export.columns)),
        actions=repr(list(export.actions)),
        rule="\n".join(_rule_line(state) for state in export.states),
        reading="\n".join(reading),
        required="".join(required),
        branches="\n".join(_branch(state, names) for state in export.states),
    )


def _rule_line(state: ExportedState) -> str:
    return f"    {state.key!r}: {list(state.probabilities)!r},"


def _branch(state: ExportedState, names: dict[str, str]) -> str:
    """An ``if`` for one state."""
    parts = [condition(names[column], values) for column, values in state.region.items()]
    where = " and ".join(parts) or "True"
    return f"    if {where}:\n        return {state.key!r}"


def condition(name: str, values: Values) -> str:
    """Python that holds where a variable has one of these values."""
    if isinstance(values, Point):
        return f"_is({name}, {values.value!r})"
    if isinstance(values, Interval):
        inside = f"{name} is not None{_bounds(name, values)}"
        return f"({name} is None or {inside})" if values.or_missing else inside
    if isinstance(values, Categories):
        keys = sorted(key_of(value) for value in values.values)
        mark = "not in" if values.is_complement else "in"
        inside = f"{name} is not None and _key({name}) {mark} {keys!r}"
        return f"({name} is None or {inside})" if values.or_missing else inside
    return f"{name} is None" if isinstance(values, Missing) else "True"


def _bounds(name: str, values: Interval) -> str:
    """Comparisons with the finite ends of an interval."""
    text = ""
    if isfinite(values.low):
        text += f" and {name} {'>=' if values.low_closed else '>'} {values.low!r}"
    if isfinite(values.high):
        text += f" and {name} {'<=' if values.high_closed else '<'} {values.high!r}"
    return text


def _docstring(text: str) -> str:
    """Text that is safe within a docstring: one line, without backslashes and double quotes."""
    plain = " ".join(text.split()).replace("\\", "/").replace('"', "'")
    return "".join(character for character in plain if character.isprintable())
