"""What there is in a log, before anything is learned from it: what is usable, and what is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from pastwise._display import paragraph
from pastwise._numerics.arrays import IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import key_of
from pastwise.errors import shortened
from pastwise.logs.columns import Columns, as_columns
from pastwise.logs.decode import STATUS_CODES, Reading, decode
from pastwise.logs.encoded import encoded
from pastwise.logs.findings import (
    Example,
    Finding,
    counted,
    finding_of,
    findings_html,
    findings_text,
)
from pastwise.logs.growth import with_partition
from pastwise.logs.query import (
    Schema,
    Status,
    bad_labels,
    label_names,
    leaves_terminal,
    prepare,
    with_following,
)
from pastwise.logs.read import collect_groups
from pastwise.logs.sources import ROW, log_errors, open_table
from pastwise.logs.summary import with_episodes

NUM_EXAMPLES = 3
"""Records that a finding shows; enough to recognise a pattern, few enough for a screen."""

NUM_NAMED_STATES = 5
"""States that the message on dead ends names."""

LONGEST_VALUE = 200
"""Characters that a message or example shows of one value: about two lines."""


@dataclass(frozen=True)
class Validation:
    """What is in a log.

    Attributes
    ----------
    rows : int
        Rows of the log.
    transitions, states, actions : int
        Distinct transitions, states and actions of the usable records.
    findings : tuple of Finding
        What its owner should know; none for a clean log.
    """

    rows: int
    transitions: int
    states: int
    actions: int
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        return {
            "rows": self.rows,
            "transitions": self.transitions,
            "states": self.states,
            "actions": self.actions,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    @property
    def sentence(self) -> str:
        """How much there is in the log."""
        return (
            f"{self.rows:,} rows, {self.transitions:,} distinct transitions, "
            f"{self.states:,} states, {self.actions:,} actions"
        )

    def __str__(self) -> str:
        return f"{self.sentence}\n{findings_text(self.findings)}"

    def _repr_html_(self) -> str:
        return paragraph(self.sentence) + findings_html(self.findings)


@dataclass(frozen=True)
class Inspection:
    """A log that was read with examples, and what was found on the way.

    Attributes
    ----------
    reading : Reading
        The counts, with the findings of reading alone.
    findings : tuple of Finding
        All findings, with examples.
    groups : pyarrow.Table
        The records by their labels and status, as the engine grouped them.
    prepared : lazy frame
        The parts of each record; see `logs.query.prepare`.
    schema : mapping
        Types of the columns of the table.
    """

    reading: Reading
    findings: tuple[Finding, ...]
    groups: pa.Table
    prepared: nw.LazyFrame[Any]
    schema: Schema


def validate_log(table: Any, columns: Columns | Mapping[str, Any]) -> Validation:
    """Read a log as `count_transitions` would, and report what was found, with examples.

    A log that nothing can be learned from is a `LogError`. ``columns`` may be a dict of what
    `Columns.of` takes.
    """
    found = inspect_log(table, columns)
    counts = found.reading.counts
    return Validation(
        rows=found.reading.rows,
        transitions=len(counts.key),
        states=len(counts.states),
        actions=len(counts.actions),
        findings=found.findings,
    )


def inspect_log(table: Any, columns: Columns | Mapping[str, Any]) -> Inspection:
    """Read a log, and find examples for everything that is odd about it."""
    table, columns = encoded(table, as_columns(columns))
    with log_errors(table):
        # Keep the columns as they are, to show examples.
        frame = open_table(table, columns, numbered=True)
        schema = frame.collect_schema()
        has_row = ROW in schema.names()
        columns = with_partition(frame, columns)
        raw = (ROW, *columns.all) if has_row else columns.all
        prepared, columns, decay = prepare(frame, columns, raw=raw)

        groups = collect_groups(prepared, columns, decay)
        counted_log, split = decode(groups, columns, decay)
        found = with_episodes(counted_log, split, frame, prepared, decay)
        conditions = _conditions(columns, prepared.collect_schema())
        if len(found.counts.terminal) and not columns.is_one_shot:
            leaves = leaves_terminal(columns, found.counts)
            conditions["after-terminal"] = Status.FOLLOWED.holds & leaves
        findings = []
        for finding in found.findings:
            if finding.code in conditions:
                concerned = prepared.filter(conditions[finding.code])
                finding = replace(finding, examples=examples_of(concerned, raw))
            findings.append(finding)
        if columns.has_next:
            findings += _out_of_order(prepared, columns, raw)
        elif columns.episode:
            findings += _single_records(prepared, raw)
    findings += _dead_ends(found.counts)
    return Inspection(found, tuple(findings), groups, prepared, schema)


# Which records a finding concerns.


def _conditions(columns: Columns, schema: Schema) -> dict[str, nw.Expr]:
    """For each code of a finding on left-out records, the condition for these records."""
    conditions = {code: status.holds for status, code in STATUS_CODES.items()}
    for code, are_bad in bad_labels(columns, schema).items():
        conditions[code] = Status.FOLLOWED.holds & _any_of(are_bad)
    return conditions


def _any_of(conditions: Sequence[nw.Expr]) -> nw.Expr:
    return reduce(or_, conditions)


def examples_of(frame: nw.LazyFrame[Any], raw: Sequence[str]) -> tuple[Example, ...]:
    """The first records, by row where the source has an order, as plain values."""
    frame = frame.select(**{name: nw.col(f"raw {name}") for name in raw})
    if ROW in raw:
        frame = frame.sort(ROW)
    rows = frame.head(NUM_EXAMPLES).collect(backend="pyarrow").to_native().to_pylist()
    examples = []
    for row in rows:
        named = {"row" if name == ROW else name: _plain(value) for name, value in row.items()}
        examples.append(named)
    return tuple(examples)


def _plain(value: Any) -> str | int | float | bool | None:
    """A value that JSON can hold, text of bounded length."""
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (int, float, bool)):
        return value
    return shortened(str(value), LONGEST_VALUE)


# Findings that need a query of their own.


def _out_of_order(
    prepared: nw.LazyFrame[Any], columns: Columns, raw: tuple[str, ...]
) -> list[Finding]:
    """Records with a next state that have no place in an episode, or do not lead to the next one.

    They are counted; what they leave open is the order of decisions.
    """
    if not (columns.episode and columns.time):
        return []

    # The state of the next record of the episode, and its columns for examples.
    places = range(len(columns.state_fields))
    names_of_state = (*columns.state, *columns.features)
    then = {f"then {i}": f"state {i}" for i in places}
    shown = {f"raw following {name}": f"raw {name}" for name in names_of_state}
    ordered, place = with_following(prepared, {**then, **shown}, label_names(columns))
    ordered = ordered.with_columns(place=place)

    # Count the records of each kind in one query.
    differs = [nw.col(f"next {i}") != nw.col(f"then {i}") for i in places]
    conditions = {}
    for status in (Status.NO_EPISODE, Status.NO_TIME, Status.SAME_TIME):
        conditions[STATUS_CODES[status]] = nw.col("place") == status.value
    is_followed = nw.col("place") == Status.FOLLOWED.value
    conditions["broken-chain"] = is_followed & _any_of(differs)
    sums = {code: holds.cast(nw.Int64).sum() for code, holds in conditions.items()}
    numbers = ordered.select(**sums).collect(backend="pyarrow").to_native().to_pylist()[0]

    findings = []
    for code, holds in conditions.items():
        number = int(numbers[code] or 0)
        if number == 0:
            continue
        names = list(raw)
        if code == "broken-chain":
            names += [f"following {name}" for name in names_of_state]
        findings.append(finding_of(code, number, examples_of(ordered.filter(holds), names)))
    return findings


def _single_records(prepared: nw.LazyFrame[Any], raw: tuple[str, ...]) -> list[Finding]:
    """Episodes of one record, which have no transition."""
    known = prepared.filter(~nw.col("episode").is_null())
    sized = known.with_columns(size=nw.col("status").count().over("episode"))
    single = sized.filter(nw.col("size") == 1)
    counted_rows = single.select(number=nw.len()).collect(backend="pyarrow").to_native()
    number = counted_rows.column("number").to_pylist()[0]
    if not number:
        return []
    episodes = counted(number, "episode")
    return [finding_of("single-record", number, examples_of(single, raw), episodes=episodes)]


def dead_ends_of(counts: TransitionCounts) -> IntArray:
    """Indices of states that are entered and never left, and not declared terminal."""
    never_left = np.setdiff1d(counts.next_state, counts.state)
    return np.setdiff1d(never_left, counts.terminal)


def _dead_ends(counts: TransitionCounts) -> list[Finding]:
    """States that are entered and never left, and not declared terminal."""
    dead_ends = dead_ends_of(counts)
    if not len(dead_ends):
        return []
    keys = [key_of(counts.states.labels[index]) for index in dead_ends.tolist()]
    rows = int(counts.records[np.isin(counts.next_state, dead_ends)].sum())
    names = ", ".join(shortened(key, LONGEST_VALUE) for key in keys[:NUM_NAMED_STATES])
    if len(keys) > NUM_NAMED_STATES:
        names += ", ..."
    examples = tuple({"state": _plain(key)} for key in keys[:NUM_EXAMPLES])
    states = counted(len(keys), "state")
    return [finding_of("dead-end", rows, examples, states=states, names=names)]
