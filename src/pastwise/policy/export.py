"""Policies for places without pastwise: what to export, and as JSON.

Any state is a *region* of the raw columns (`data.regions`): a plain label is a point, a bin an
interval, a leaf of a partition several of these. So every format is written from the same few
things: the regions, the rule, and how many records it rests on.
`export_sql`, `export_python`, `export_xlsx` and `export_onnx` write them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

from pastwise import __version__
from pastwise._files import replacing
from pastwise.data.regions import Anything, Categories, Interval, Missing, Point, Region, Values
from pastwise.data.space import Label, key_of, labels_of_one_type, shortest_text, words_among
from pastwise.errors import ParameterError
from pastwise.logs.columns import Columns
from pastwise.policy.learner import TransferLearner
from pastwise.policy.rule import RULE_ENDINGS


@dataclass(frozen=True)
class ExportedState:
    """A state, what it means, and what to do there.

    Attributes
    ----------
    label : label
    region : Region
        The values of the raw columns in this state.
    probabilities : tuple of float
        Probability of each action.
    records : int
        Records of the log that leave the state.
    episodes : int, optional
        Episodes that they come from, where the log has any.
    """

    label: Label
    region: Region
    probabilities: tuple[float, ...]
    records: int
    episodes: int | None

    @property
    def key(self) -> str:
        """The label as text."""
        return key_of(self.label)

    @property
    def best(self) -> int:
        """Index of the most probable action, the first of several."""
        return self.probabilities.index(max(self.probabilities))


@dataclass(frozen=True)
class Export:
    """A policy as it is exported.

    Attributes
    ----------
    states : tuple of ExportedState
    actions : tuple
        Labels of one type: text, numbers or booleans; a product action is its key.
    columns : tuple of str
        The raw columns that the regions name.
    required : tuple of str
        Columns of which no value may be missing: a row without one has no state.
    numeric, boolean : frozenset of str
        Columns that are compared as numbers, and those that are true or false; the others are
        labels.
    dates : frozenset of str
        Those of the numeric columns that are dates, in seconds since 1970.
    words : mapping of mappings
        Of columns of text that say true and false: the text for each of these words.
    goal, method, version : str
        What the policy is for, how it was learned, and by which version.
    """

    states: tuple[ExportedState, ...]
    actions: tuple[Label, ...]
    columns: tuple[str, ...]
    required: tuple[str, ...]
    numeric: frozenset[str]
    boolean: frozenset[str]
    dates: frozenset[str]
    words: Mapping[str, Mapping[str, str]]
    goal: str
    method: str
    version: str = __version__

    @classmethod
    def of(cls, learner: TransferLearner) -> Export:
        """What a learner has learned, to export."""
        read_by = learner.columns_
        if read_by is not None and read_by.encoding is not None:
            raise ParameterError(
                "the states of this policy come from an encoder, which only Python runs; learn "
                "with features= alone for a policy that can be exported"
            )

        policy = learner.fitted_
        regions = learner.regions_
        kinds = _kinds_of_columns(policy.columns, regions)
        outcomes = set(policy.outcomes)
        all_labels = enumerate(policy.log.states.labels)
        labels = [label for index, label in all_labels if index not in outcomes]
        decisions = learner.decisions(labels)
        episodes = decisions.episodes
        states = []
        for index, label in enumerate(labels):
            state = ExportedState(
                label=label,
                region=_needed(regions[label], policy.columns, kinds.required),
                probabilities=tuple(decisions.probabilities[index].tolist()),
                records=int(decisions.records[index]),
                episodes=None if episodes is None else int(episodes[index]),
            )
            states.append(state)
        named = [name for state in states for name in state.region]
        columns = tuple(dict.fromkeys([*named, *kinds.required]))
        return cls(
            states=tuple(states),
            actions=tuple(labels_of_one_type(decisions.actions.labels)),
            columns=columns,
            required=kinds.required,
            numeric=frozenset(kinds.numeric),
            boolean=frozenset(kinds.boolean),
            dates=frozenset(kinds.dates),
            words=kinds.words,
            goal=repr(learner.goal),
            method=learner.method_.name,
        )

    @property
    def title(self) -> str:
        """One line that says what this is."""
        return f"A policy learned by pastwise {self.version} with {self.method}. {self.goal}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers are exact, and an open end of an interval is null."""
        names = [key_of(action) for action in self.actions]
        states = []
        for state in self.states:
            rule = dict(zip(names, state.probabilities, strict=True))
            where = {name: values_to_dict(values) for name, values in state.region.items()}
            content = {
                "state": state.key,
                "where": where,
                "action": names[state.best],
                "probabilities": rule,
                "records": state.records,
                "episodes": state.episodes,
            }
            states.append(content)
        return {
            "format": "pastwise policy 1",
            "version": self.version,
            "method": self.method,
            "goal": self.goal,
            "columns": list(self.columns),
            "required": list(self.required),
            "actions": list(self.actions),
            "states": states,
        }


class Kinds(NamedTuple):
    """How the columns of the regions are compared; see `Export`."""

    required: tuple[str, ...]
    numeric: set[str]
    boolean: set[str]
    dates: set[str]
    words: dict[str, Mapping[str, str]]


def _kinds_of_columns(columns: Columns | None, regions: Mapping[Label, Region]) -> Kinds:
    """The columns that must not be missing, are numbers, or say true and false."""
    numeric = set()
    labels: dict[str, dict[Label, None]] = {}
    for region in regions.values():
        for name, values in region.items():
            if isinstance(values, Interval):
                numeric.add(name)
            if isinstance(values, Point):
                labels.setdefault(name, {})[values.value] = None
    spelled = {name: words_among(found) for name, found in labels.items()}
    words: dict[str, Mapping[str, str]] = {name: each for name, each in spelled.items() if each}
    partition = None if columns is None else columns.partition
    if partition is None:
        return Kinds((), numeric, set(), set(), words)
    features = [partition.features[place] for place in partition.used]
    required = tuple(feature.name for feature in features if not feature.may_be_missing)
    numeric |= {feature.name for feature in features if feature.kind == "number"}
    boolean = {feature.name for feature in features if feature.kind == "boolean"}
    dates = {feature.name for feature in features if feature.is_date}
    words |= {feature.name: feature.words for feature in features if feature.words}
    return Kinds(required, numeric, boolean, dates, words)


def _needed(region: Region, columns: Columns | None, required: Sequence[str]) -> Region:
    """The part of a region that decides whether a row of raw columns lies in it.

    Columns that are not read for a row, such as an outcome's, are left out, and so are values that
    exclude nothing, or nothing but a missing value where a column is required.
    """
    needed = {}
    for name, values in region.items():
        is_read = columns is None or name in columns.row_columns
        may_be_missing = isinstance(values, (Interval, Categories)) and values.or_missing
        excludes_nothing = _is_anything(values) and (name in required or may_be_missing)
        if is_read and not excludes_nothing:
            needed[name] = values
    return needed


def _is_anything(values: Values) -> bool:
    """Whether a column may have any value that is not missing."""
    if isinstance(values, Interval):
        return values.low == -inf and values.high == inf
    if isinstance(values, Categories):
        return values.is_complement and not values.values
    return isinstance(values, Anything)


def values_to_dict(values: Values) -> dict[str, Any]:
    """What a column may hold, in plain values."""
    if isinstance(values, Point):
        return {"equals": values.value}
    if isinstance(values, Interval):
        content: dict[str, Any] = {
            "low": values.low if isfinite(values.low) else None,
            "high": values.high if isfinite(values.high) else None,
            "has_low": values.low_closed,
            "has_high": values.high_closed,
        }
        return {**content, "or_missing": True} if values.or_missing else content
    if isinstance(values, Categories):
        name = "not_in" if values.is_complement else "in"
        return {name: sorted(values.values, key=key_of), "or_missing": values.or_missing}
    return {"is_missing": True} if isinstance(values, Missing) else {}


def words_of(values: Values | None) -> str:
    """What a column may hold, in words.

    >>> words_of(Interval(0.0, 5.57)), words_of(Point("A")), words_of(Interval(low=2.0))
    ('>= 0, < 5.57', 'A', '>= 2')
    """
    text = "any"
    if isinstance(values, Point):
        text = key_of(values.value)
    elif isinstance(values, Interval):
        parts = []
        if isfinite(values.low):
            parts.append(f"{'>=' if values.low_closed else '>'} {shortest_text(values.low)}")
        if isfinite(values.high):
            parts.append(f"{'<=' if values.high_closed else '<'} {shortest_text(values.high)}")
        text = ", ".join(parts) or "any number"
    elif isinstance(values, Categories):
        names = ", ".join(sorted(key_of(value) for value in values.values))
        text = f"not {names}" if values.is_complement else names
        text = text if names else "any"
    elif isinstance(values, Missing):
        return "missing"
    has_missing = isinstance(values, (Interval, Categories)) and values.or_missing
    return f"{text} or missing" if has_missing else text


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


FORMATS = ("sql", "json", "xlsx", "onnx", "python")
"""Formats of `export_policy`."""

ENDINGS = {".sql": "sql", ".xlsx": "xlsx", ".onnx": "onnx", ".py": "python"}
"""Formats that the ending of a file's name stands for."""


def format_of(path: str | Path) -> str | None:
    """The format that the ending of a file's name stands for; None for the rule alone."""
    ending = Path(path).suffix.lower()
    if ending not in (*ENDINGS, *RULE_ENDINGS):
        raise ParameterError(
            f"{path}: a policy is exported as {', '.join(ENDINGS)}, and its rule alone as "
            ".parquet, .csv or .json; name such a file, or choose a format with --format"
        )
    return ENDINGS.get(ending)


def export_policy(
    learner: TransferLearner, path: str | Path, kind: str, *, table: str = "rows"
) -> None:
    """Write a policy so that it decides without pastwise.

    Parameters
    ----------
    kind : "sql", "json", "xlsx", "onnx" or "python"
    table : str
        For SQL: the table to select from; see `export_sql.to_sql`.
    """
    export = Export.of(learner)
    if kind == "json":
        content = json.dumps(export.to_dict(), ensure_ascii=False, indent=1, allow_nan=False)
        write_text(path, f"{content}\n")
    elif kind == "sql":
        from pastwise.policy.export_sql import to_sql

        write_text(path, to_sql(export, table))
    elif kind == "python":
        from pastwise.policy.export_python import to_python

        write_text(path, to_python(export))
    elif kind == "xlsx":
        from pastwise.policy.export_xlsx import write_xlsx

        write_xlsx(export, path)
    elif kind == "onnx":
        from pastwise.policy.export_onnx import write_onnx

        write_onnx(export, path)
    else:
        raise ParameterError(f"a policy is exported as {', '.join(FORMATS)}, not {kind!r}")
