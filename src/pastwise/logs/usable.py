"""How much of a log is usable by some columns, what is left out and why, and what would help.

`usable` reads a log as `validate_log` does. Every row is used, the last of its episode, or left out
for the first reason that applies, so the numbers add up to the rows of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from pastwise._numerics.arrays import IntArray
from pastwise.data.bins import Bins
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Label, key_of
from pastwise.errors import shortened
from pastwise.logs.columns import Columns, as_columns
from pastwise.logs.concerned import with_examples
from pastwise.logs.decode import (
    BAD_LABEL_CODES,
    STATUS_CODES,
    Part,
    numbers_of,
    parts_of,
    states_of,
)
from pastwise.logs.effects import continuous_columns
from pastwise.logs.findings import CATALOGUE, Finding, Remedy, RemedyKind, findings_text
from pastwise.logs.query import Status, time_to_next
from pastwise.logs.row_pages import keys_of, span_text
from pastwise.logs.sql import engine_errors
from pastwise.logs.validate import Inspection, dead_ends_of, inspect_log


@dataclass(frozen=True)
class LeftOut:
    """Rows that are not used for one reason, the code of a finding."""

    code: str
    rows: int


@dataclass(frozen=True)
class StateRecords:
    """A state, the number of records that leave it, and their share of all."""

    key: str
    records: int
    share: float
    terminal: bool


@dataclass(frozen=True)
class ActionRecords:
    """An action, and the number of records with it."""

    key: str
    records: int


@dataclass(frozen=True)
class Usable:
    """How much of a log is usable.

    Attributes
    ----------
    rows : int
        Rows of the log: those used, the ends of episodes, and those left out.
    used : int
        Rows that are transitions.
    ends : int
        Rows that are the last of their episode, and have no next state.
    left_out : tuple of LeftOut
        The others, by the first reason that applies to each; the most frequent first.
    transitions : int
        Distinct transitions.
    states, actions : tuples
        In the order of the learner.
    findings : tuple of Finding
        With severity, remedies and rows that they concern.
    bins : mapping
        Edges by column, also of bins whose number was given, or chosen by the log.
    """

    rows: int
    used: int
    ends: int
    left_out: tuple[LeftOut, ...]
    transitions: int
    states: tuple[StateRecords, ...]
    actions: tuple[ActionRecords, ...]
    findings: tuple[Finding, ...]
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return asdict(self)

    @property
    def sentence(self) -> str:
        """How much is usable, in words."""
        parts = [f"{self.used:,} of {self.rows:,} rows used"]
        if self.ends:
            parts.append(f"{self.ends:,} last of an episode")
        parts += [f"{each.rows:,} left out ({each.code})" for each in self.left_out]
        return ", ".join(parts)

    def __str__(self) -> str:
        return f"{self.sentence}\n{findings_text(self.findings)}"


def usable(table: Any, columns: Columns | Mapping[str, Any]) -> Usable:
    """Read a log by some columns; say what is usable, what is not, and what would help.

    A log that nothing can be learned from is a `LogError`. ``columns`` may be a dict of what
    `Columns.of` takes.

    Examples
    --------
    >>> log = {"day": [1, 1, 1, 2, 2], "hour": [8, 9, 10, 8, 9],
    ...        "room": ["cold", "mild", None, "cold", "mild"], "did": ["heat"] * 5}
    >>> found = usable(log, {"state": "room", "action": "did", "episode": "day", "time": "hour"})
    >>> found.sentence
    '2 of 5 rows used, 2 last of an episode, 1 left out (missing-next-state)'
    """
    columns = as_columns(columns)
    found = inspect_log(table, columns)
    reading = found.reading
    ends, left_out = _left_out(found)
    with engine_errors("the log"):
        findings = _with_remedies(found, columns)
    return Usable(
        rows=reading.rows,
        used=reading.rows - ends - sum(each.rows for each in left_out),
        ends=ends,
        left_out=left_out,
        transitions=len(reading.counts.key),
        states=_states(reading.counts),
        actions=_actions(reading.counts),
        findings=findings,
        bins=_edges(reading.columns),
    )


# Rows.


def _left_out(found: Inspection) -> tuple[int, tuple[LeftOut, ...]]:
    """Rows that are the last of an episode, and those that are left out by reason."""
    groups = found.groups
    columns = found.reading.columns
    rows = numbers_of(groups, "rows").astype(np.int64)
    status = numbers_of(groups, "status").astype(np.int64)
    by_code: dict[str, int] = {}
    for reason, code in STATUS_CODES.items():
        by_code[code] = int(rows[status == reason].sum())

    # Of the records that are followed: parts without a label, each row for one of them.
    is_open = status == Status.FOLLOWED
    state, next_state = states_of(groups, columns)
    (action,) = parts_of(groups, ("action",), columns.action, columns.bins)
    what_follows = "outcome" if columns.outcome else "next-state"
    for name, part in {"state": state, "action": action, what_follows: next_state}.items():
        for bad_label, begin in BAD_LABEL_CODES.items():
            is_bad = is_open & (part.bad == bad_label)
            by_code[f"{begin}-{name}"] = int(rows[is_bad].sum())
            is_open = is_open & ~is_bad
    if len(found.reading.counts.terminal) and not columns.is_one_shot:
        by_code["after-terminal"] = _after_terminal(found.reading.counts, state, rows * is_open)
    ends = int(rows[status == Status.LAST].sum())
    reasons = [LeftOut(code, number) for code, number in by_code.items() if number]
    return ends, tuple(sorted(reasons, key=lambda each: -each.rows))


def _after_terminal(counts: TransitionCounts, state: Part, rows: IntArray) -> int:
    """Rows that leave a terminal state."""
    terminal = {key_of(counts.states.labels[index]) for index in counts.terminal.tolist()}
    is_terminal = np.array([key in terminal for key in keys_of(state)])
    return int(rows[is_terminal].sum())


def _states(counts: TransitionCounts) -> tuple[StateRecords, ...]:
    total = counts.total()
    records = np.bincount(total.state, weights=total.records, minlength=len(counts.states))
    number = max(records.sum(), 1)
    terminal = set(counts.terminal.tolist())
    states = []
    for index, label in enumerate(counts.states.labels):
        share = float(records[index] / number)
        states.append(StateRecords(key_of(label), int(records[index]), share, index in terminal))
    return tuple(states)


def _actions(counts: TransitionCounts) -> tuple[ActionRecords, ...]:
    total = counts.total()
    records = np.bincount(total.action, weights=total.records, minlength=len(counts.actions))
    labels = counts.actions.labels
    return tuple(
        ActionRecords(key_of(label), int(number))
        for label, number in zip(labels, records, strict=True)
    )


def _edges(columns: Columns) -> dict[str, tuple[float, ...]]:
    """Edges of the bins of each column that has them."""
    return {name: each.edges for name, each in columns.bins.items() if isinstance(each, Bins)}


# Remedies.


def _with_remedies(found: Inspection, columns: Columns) -> tuple[Finding, ...]:
    """The findings with other ways to read the log that would help."""
    counts = found.reading.counts
    known = found.reading.columns
    continuous = [
        *continuous_columns(counts.states, known.state_fields, known, counts.num_records),
        *continuous_columns(counts.actions, known.action, known, counts.num_records),
    ]
    findings = []
    for finding in with_examples(found):
        kinds = CATALOGUE[finding.code].remedies
        remedies: list[Remedy] = []
        for kind in kinds:
            if kind.removes:
                remedies += _removal(kind, columns)
            elif finding.code == "gap":
                remedies.append(_longer_gap(kind, found))
            elif finding.code == "dead-end":
                remedies += _more_terminal(kind, columns, counts)
            elif finding.code == "continuous-column":
                remedies += _bins(kind, columns, continuous.pop(0))
        findings.append(replace(finding, remedies=tuple(remedies)))
    return tuple(findings)


def _removal(kind: RemedyKind, columns: Columns) -> list[Remedy]:
    """Leave a parameter out, if the log can be read without it."""
    if kind.parameter == "next_state" and (columns.time is None or columns.features):
        return []
    nothing: list[str] | None = None if kind.parameter == "max_gap" else []
    return [kind.of(nothing)]


def _longer_gap(kind: RemedyKind, found: Inspection) -> Remedy:
    """Allow the most common of the gaps that are too long."""
    columns = found.reading.columns
    assert columns.time is not None
    gap = time_to_next(found.schema[columns.time])
    late = found.prepared.filter(Status.TOO_LATE.holds).select(gap=gap)
    numbers = late.group_by("gap").agg(rows=nw.len()).collect(backend="pyarrow").to_native()
    most_common = min(numbers.to_pylist(), key=lambda each: (-each["rows"], each["gap"]))["gap"]
    if isinstance(columns.max_gap, str):
        span = span_text(most_common)
        return kind.of(span, span)
    number = int(most_common) if most_common % 1 == 0 else most_common
    return kind.of(number, f"{number:g}")


def _more_terminal(
    kind: RemedyKind, columns: Columns, counts: TransitionCounts, *, most: int = 20
) -> list[Remedy]:
    """Declare the states that are never left terminal, unless there are very many.

    A log with more than ``most`` of them has rare states rather than ends.
    """
    labels = [counts.states.labels[index] for index in dead_ends_of(counts).tolist()]
    if len(labels) > most:
        return []
    return [kind.of([*columns.terminal, *labels], _named(labels))]


def _named(labels: Sequence[Label], *, most: int = 3) -> str:
    """The first labels in words."""
    names = [shortened(key_of(label), 40) for label in labels[:most]]
    if len(labels) > most:
        names.append(f"{len(labels) - most} more")
    return ", ".join(names)


def _bins(kind: RemedyKind, columns: Columns, name: str) -> list[Remedy]:
    """Cut one more column."""
    if name not in (*columns.state, *columns.action):
        return []
    bins: dict[str, Any] = {}
    for column, given in columns.bins.items():
        bins[column] = list(given.edges) if isinstance(given, Bins) else given
    return [kind.of({**bins, name: "auto"}, name)]
