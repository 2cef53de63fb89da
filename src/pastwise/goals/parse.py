"""What people write in a goal, as plain values; and back.

Goals come from Python, from TOML files and from saved policies (JSON). JSON and TOML know no tuples
and no keys but text, so:

- a list that stands for a label is a tuple, such as ``["north", 1]`` for a state of two fields;
- a list of pairs stands for a mapping, such as ``[["mild", 2], ["warm", 1]]``; `to_plain` writes
  mappings this way, so that labels of any type keep it.
"""

from __future__ import annotations

import difflib
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from pastwise._files import require_regular_file
from pastwise.data.space import Label, checked_label, key_of, sort_key
from pastwise.errors import FileError, GoalError, LabelError

Forbidden = tuple[Label | None, Label]
"""A state, or None for every state, and the action that must not be taken there."""


def read_toml(path: str | Path) -> dict[str, Any]:
    """The content of a TOML file."""
    require_regular_file(path)
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GoalError(f"{path} is not a TOML file: {error}") from None


def require_known_keys(content: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that no part of a goal has."""
    for name in content:
        if name in known:
            continue
        nearest = difflib.get_close_matches(name, known, n=1)
        hint = f"known are {', '.join(known)}"
        if nearest:
            hint = f"did you mean {nearest[0]!r}?"
        raise GoalError(f"unknown key {name!r} in the goal; {hint}", part=name)


def as_label(value: object) -> Label:
    """A label, given as itself or as a list that stands for a tuple."""
    if isinstance(value, list):
        return tuple(as_label(part) for part in value)
    if not isinstance(value, Label):
        raise LabelError(f"{value!r} is no label: a label is text, a number or a tuple of these")
    return value


def as_mapping(part: str, value: object) -> Mapping[Label, object]:
    """Labels with values, given as a mapping or as a list of pairs."""
    mapping = _from_pairs(part, value)
    if not isinstance(mapping, Mapping):
        raise GoalError(f"{part} must be a table of labels with values, not {value!r}", part)
    return mapping


def _from_pairs(part: str, value: object) -> object:
    """Lists of pairs as mappings, at every level; anything else as it is."""
    if not isinstance(value, list):
        return value
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return value
    mapping = {}
    for label, inner in value:
        mapping[_named_label(part, label)] = _from_pairs(part, inner)
    return mapping


def _named_label(part: str, value: object) -> Label:
    """`as_label`, with the part of the goal in the error."""
    try:
        return as_label(value)
    except LabelError as error:
        raise GoalError(f"{part}: {error}", part) from None


def as_weights(part: str, value: object) -> dict[Label, float]:
    """Labels with positive weights; a label alone, or in a list, has weight 1."""
    value = _from_pairs(part, value)
    if isinstance(value, Mapping):
        weights = dict(value)
    elif isinstance(value, (list, set, frozenset)):
        labels = [_checked_label(part, label) for label in value]
        if not isinstance(value, list):
            labels.sort(key=sort_key)
        weights = dict.fromkeys(labels, 1.0)
    else:
        weights = {_checked_label(part, value): 1.0}

    for label, weight in weights.items():
        where = f"{part}: {key_of(label)}"
        if not is_finite_number(weight):
            raise GoalError(f"{where}: {weight!r} is not a finite number", part)
        if weight <= 0:
            raise GoalError(f"{where}: a weight must be positive, not {weight}", part)
    return weights


def _checked_label(part: str, value: object) -> Label:
    """`checked_label` of a label or list, with the part of the goal in the error."""
    try:
        return checked_label(as_label(value))
    except LabelError as error:
        raise GoalError(f"{part}: {error}", part) from None


def as_number(part: str, value: object) -> float:
    """A finite number."""
    if not is_finite_number(value):
        raise GoalError(f"{part}: {value!r} is not a finite number", part)
    return float(value)


def is_finite_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number; booleans are none."""
    if isinstance(value, bool):
        return False
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max


def as_forbidden(value: object) -> tuple[Forbidden, ...]:
    """Pairs of a state and an action, each given as a pair or as a mapping with these names."""
    if not isinstance(value, (list, tuple)):
        raise _not_a_pair(value)
    return tuple(_forbidden_pair(pair) for pair in value)


def _forbidden_pair(pair: object) -> Forbidden:
    if isinstance(pair, Mapping):
        if "action" not in pair or not set(pair) <= {"state", "action"}:
            raise _not_a_pair(pair)
        state = pair.get("state")
        action = pair["action"]
    elif isinstance(pair, (list, tuple)) and len(pair) == 2:
        state, action = pair
    else:
        raise _not_a_pair(pair)
    return _named_label("forbid", state), _named_label("forbid", action)


def _not_a_pair(value: object) -> GoalError:
    return GoalError(f"forbid takes pairs of a state and an action, not {value!r}", "forbid")


def to_plain(value: object) -> object:
    """A part of a goal in the types that JSON knows; mappings become lists of pairs."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return [[to_plain(label), to_plain(inner)] for label, inner in value.items()]
    if isinstance(value, tuple):
        return [to_plain(part) for part in value]
    return value
