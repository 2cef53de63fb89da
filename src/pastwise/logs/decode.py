"""From the groups that an engine returns to transition counts, and to findings about what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, distinct
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label, Space, intervals, sort_key
from pastwise.logs.columns import Columns, Edges
from pastwise.logs.parquet import Tally
from pastwise.logs.query import FAR, FOLLOWED, NO_AGE, NO_EPISODE, NO_TIME, SAME_TIME

if TYPE_CHECKING:
    import pyarrow as pa

MAX_LABELS = 3_000_000
"""More distinct labels than this in a column are taken for free text or an identifier."""

MISSING, NOT_FINITE, OUT_OF_RANGE = -1, -2, -3
"""Codes of values that are no label."""


@dataclass(frozen=True)
class Finding:
    """Something in a log that its owner should know of."""

    code: str
    message: str
    rows: int
    fix: str
    examples: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Reading:
    """What was read of a log: its counts, and what was found on the way."""

    counts: TransitionCounts
    columns: Columns
    rows: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Part:
    """Codes of one part of the transitions, [groups, fields], and the labels that each field's codes stand for."""

    codes: IntArray
    labels: list[list[Label]]

    @property
    def bad(self) -> IntArray:
        """Zero where every field has a label, otherwise the code that tells why not: [groups]."""
        return np.asarray(np.minimum(self.codes.min(axis=-1), 0))


def decode(
    grouped: pa.Table, columns: Columns, decay: Decay | None, *, more: bool = False
) -> Reading:
    """Labels to indices, bad values to findings, the rest to counts.

    With ``more`` the log is one more of a kind already known, and need not have every terminal state.
    """
    rows, status = (numbers_of(grouped, name).astype(np.int64) for name in ("rows", "status"))
    if rows.sum() == 0:
        raise ValueError("the log has no records")
    records, weight, squared = _checked_sums(grouped, columns, rows)
    state, follows = parts_of(grouped, ("state", "next"), columns.state, columns.bins)
    (action,) = parts_of(grouped, ("action",), columns.action, columns.bins)
    findings = _left_out(
        rows, status, {"state": state.bad, "action": action.bad, "next state": follows.bad}
    )
    usable = (
        (status == FOLLOWED)
        & (state.bad == 0)
        & (action.bad == 0)
        & (follows.bad == 0)
        & (records > 0)
    )
    if not usable.any():
        raise _no_transition(findings)
    kept = slice(None) if usable.all() else usable  # a slice copies nothing
    both = np.concatenate([state.codes[kept], follows.codes[kept]])
    states, (s, n) = _space(both, state.labels, columns.state, 2)
    actions, (a,) = _space(action.codes[kept], action.labels, columns.action)
    del both
    tasks, batch = None, np.zeros(len(s), dtype=np.int64)
    if columns.task:
        (task,) = parts_of(grouped, ("task",), (columns.task,), {})
        if (task.bad[kept] < 0).any():
            raise ValueError(f"the task column {columns.task!r} has missing values")
        tasks, (batch,) = _space(task.codes[kept], task.labels, (columns.task,))
    counts = TransitionCounts.from_groups(
        states,
        actions,
        (batch, s, a, n),
        (records[kept], weight[kept], squared[kept]),
        tasks,
        decay,
    )
    return _reading(counts, columns, int(rows.sum()), findings, more)


def decode_tally(tally: Tally, columns: Columns, *, more: bool = False) -> Reading:
    """The same of a log that was counted by codes."""
    counts = tally.counts
    rows = int(counts.sum())
    if rows == 0:
        raise ValueError("the log has no records")
    missing = {
        "state": counts[0].sum(),
        "action": counts[:, 0].sum(),
        "next state": counts[:, :, 0].sum(),
    }
    findings = [_bad(part, MISSING, int(number)) for part, number in missing.items() if number]
    usable = counts[1:, 1:, 1:]
    if not usable.any():
        raise _no_transition(findings)
    left, taken, entered = (np.asarray(usable.any(axis=axes)) for axes in ((1, 2), (0, 2), (0, 1)))
    states, s = _ordered(tally.states.numbers, left | entered, columns.state)
    actions, a = _ordered(tally.actions.numbers, taken, columns.action)
    table = usable[np.ix_(s, a, s)].ravel()
    key = np.flatnonzero(table != 0)
    records = table[key].astype(np.int64)
    weight = records.astype(np.float64)
    return _reading(
        TransitionCounts(states, actions, key, records, weight, weight),
        columns,
        rows,
        findings,
        more,
    )


def _ordered(
    numbers: Mapping[str | None, int], occurs: BoolArray, names: tuple[str, ...]
) -> tuple[Space, IntArray]:
    """The space of the labels that occur, and the number of each, less one for the missing label."""
    _require_labels(len(numbers) - 1, names[0])
    places = {
        label: number - 1
        for label, number in numbers.items()
        if label is not None and occurs[number - 1]
    }
    labels: list[Label] = sorted(places, key=sort_key)
    return Space(labels, names), np.array([places[str(label)] for label in labels], dtype=np.int64)


def _reading(
    counts: TransitionCounts, columns: Columns, rows: int, findings: list[Finding], more: bool
) -> Reading:
    """The reading of a log with these counts, its terminal states made ends."""
    counts, ended = _ended(counts, columns.terminal, more)
    if counts.num_records == 1 and not more:
        findings = [
            *findings,
            Finding(
                "single-transition", "the log has a single transition", 1, "Is that all there is?"
            ),
        ]
    return Reading(counts, columns, rows, (*findings, *ended))


def _no_transition(findings: list[Finding]) -> ValueError:
    reasons = (
        "; ".join(finding.message for finding in findings) or "no record is followed by another"
    )
    return ValueError(f"the log has no usable transition: {reasons}")


def numbers_of(grouped: pa.Table, name: str) -> FloatArray:
    """A column of numbers; a missing one is not-a-number."""
    import pyarrow as pa

    return np.asarray(as_numpy(grouped.column(name).cast(pa.float64()).fill_null(float("nan"))))


def as_numpy(column: pa.ChunkedArray) -> Any:
    """The numbers of a column without missing ones (by DLPack: pyarrow's own way would import pandas)."""
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(chunks) if chunks else np.empty(0)


def _checked_sums(
    grouped: pa.Table, columns: Columns, rows: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Records, weights and squared weights of each group; bad counts and weights are errors."""

    def refuse(bad: BoolArray, what: str) -> None:
        if bad.any():
            raise ValueError(
                f"{what} (in {int(rows[bad].sum())} of the rows grouped with such a one)"
            )

    records = rows
    if columns.count:
        refuse(
            numbers_of(grouped, "no count") > 0,
            f"the count column {columns.count!r} has missing values",
        )
        refuse(
            numbers_of(grouped, "least count") < 0,
            f"the count column {columns.count!r} has negative values",
        )
        refuse(
            numbers_of(grouped, "odd count") > 0,
            f"the count column {columns.count!r} has values that are not whole",
        )
        refuse(
            ~np.isfinite(numbers_of(grouped, "records")),
            f"the count column {columns.count!r} has infinite values",
        )
        records = numbers_of(grouped, "records").astype(np.int64)
    if columns.weight:
        missing = f"the weight column {columns.weight!r} has missing values or values that are not numbers"
        refuse(numbers_of(grouped, "no weight") > 0, missing)
        least = numbers_of(grouped, "least weight")
        refuse(
            least <= 0,
            f"the weight column {columns.weight!r} has values that are not positive; leave those rows out",
        )
    if not (columns.weight or columns.age):
        weight = records.astype(np.float64)
        return records, weight, weight
    weight, squared = numbers_of(grouped, "sum of weights"), numbers_of(grouped, "sum of squares")
    cause = (
        f"the weight column {columns.weight!r} has"
        if columns.weight
        else "as_of lies too far back: there are"
    )
    refuse(np.isinf(weight), f"{cause} infinite values")
    return records, np.nan_to_num(weight), np.nan_to_num(squared)


def parts_of(
    grouped: pa.Table,
    parts: tuple[str, ...],
    names: tuple[str, ...],
    bins: Mapping[str, Edges | int],
) -> list[Part]:
    """Codes of parts that share their labels, such as state and next state, field by field."""
    codes: list[list[IntArray]] = [[] for _ in parts]
    labels: list[list[Label]] = []
    for i, name in enumerate(names):
        fields = [grouped.column(f"{part} {i}" if part != "task" else part) for part in parts]
        edges = bins.get(name)
        found, values = (
            _intervals(fields, edges) if isinstance(edges, tuple) else _encoded(fields, name)
        )
        labels.append(values)
        for each, column in zip(codes, found, strict=True):
            each.append(column)
    return [Part(np.stack(each, axis=-1), labels) for each in codes]


def _intervals(fields: list[pa.ChunkedArray], edges: Edges) -> tuple[list[IntArray], list[Label]]:
    import pyarrow as pa

    numbers = [as_numpy(column.cast(pa.int64()).fill_null(-1)) for column in fields]
    inside = [(number > 0) & (number < len(edges)) for number in numbers]
    bad = [np.where(number < 0, MISSING, OUT_OF_RANGE) for number in numbers]
    return [np.where(i, n - 1, b) for i, n, b in zip(inside, numbers, bad, strict=True)], [
        *intervals(edges)
    ]


def _encoded(fields: list[pa.ChunkedArray], name: str) -> tuple[list[IntArray], list[Label]]:
    """Codes of columns that share their labels, and the labels; a value that is no label has a negative code."""
    import pyarrow as pa

    plain = [f.cast(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in fields]
    plain = [
        f.cast(pa.float64() if f.type.scale else pa.int64()) if pa.types.is_decimal(f.type) else f
        for f in plain
    ]
    if all(pa.types.is_null(column.type) for column in plain):
        return [np.full(len(column), MISSING, dtype=np.int64) for column in plain], []
    if any(pa.types.is_nested(column.type) for column in plain):
        raise ValueError(
            f"the column {name!r} holds {plain[0].type}; a label is text, a number or a boolean"
        )
    kinds = {_kind(column.type) for column in plain} - {"null"}
    if len(kinds) > 1:
        types = " and ".join(str(column.type) for column in plain)
        raise ValueError(f"the state {name!r} and its next state are of different types: {types}")
    chunks = [chunk for column in _alike(plain, kinds) for chunk in column.chunks]
    encoded = pa.chunked_array(chunks, chunks[0].type).combine_chunks()
    encoded = (encoded if isinstance(encoded, pa.Array) else encoded.chunk(0)).dictionary_encode()
    _require_labels(len(encoded.dictionary), name)
    labels = [_label(value, name) for value in encoded.dictionary.to_pylist()]
    codes = np.array(np.from_dlpack(encoded.indices.fill_null(MISSING)), dtype=np.int64)
    if kinds == {"number"} and labels:
        finite = np.isfinite(np.array(labels, dtype=np.float64))
        first = {
            label: code for code, label in reversed(list(enumerate(labels)))
        }  # 0.0 and -0.0 are one label
        same = np.where(finite, [first[label] for label in labels], NOT_FINITE)
        codes = np.where(codes >= 0, same[codes], codes)
    return np.split(codes, len(fields)), labels


def _require_labels(number: int, name: str) -> None:
    """Refuse a column with too many different values to be labels."""
    if number > MAX_LABELS:
        raise ValueError(
            f"the column {name!r} has {number:,} different values: is it free text or an identifier? "
            "Group its values first, or give bins"
        )


def _alike(columns: list[pa.ChunkedArray], kinds: set[str]) -> list[pa.ChunkedArray]:
    """Columns of one type: whole numbers if all are whole, whatever their columns' types."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = {column.type for column in columns if not pa.types.is_null(column.type)}
    if len(types) == 1:
        return [column.cast(next(iter(types))) for column in columns]
    if kinds == {"text"}:
        return [column.cast(pa.large_string()) for column in columns]
    finite = [
        pc.if_else(pc.is_finite(column), column, None)
        if pa.types.is_floating(column.type)
        else column
        for column in columns
    ]
    fractions = [column for column in finite if pa.types.is_floating(column.type)]
    whole = all(
        pc.all(pc.equal(column, pc.trunc(column))).as_py() is not False for column in fractions
    )
    return [column.cast(pa.int64() if whole else pa.float64(), safe=whole) for column in finite]


def _kind(kind: pa.DataType) -> str:
    """What labels of an Arrow type are alike: text, numbers, or something of their own."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(kind):
        return "null"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return "number" if types.is_integer(kind) or types.is_floating(kind) else str(kind)


def _label(value: Any, name: str) -> Label:
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    raise ValueError(
        f"the column {name!r} holds {type(value).__name__}; a label is text, a number or a boolean"
    )


def _space(
    codes: IntArray, labels: list[list[Label]], names: tuple[str, ...], parts: int = 1
) -> tuple[Space, list[IntArray]]:
    """The space of the combinations that occur, and the indices of each part: codes [parts * groups, fields]."""
    combinations: list[tuple[Label, ...]] = [()]
    index = np.zeros(len(codes), dtype=np.int64)
    for code, each in zip(codes.T, labels, strict=True):
        occurring, index = distinct(index * len(each) + code, len(combinations) * len(each))
        pairs = zip(*np.divmod(occurring, len(each)), strict=True)
        combinations = [(*combinations[before], each[label]) for before, label in pairs]
    found: list[Label] = [labels[0] if len(names) == 1 else labels for labels in combinations]
    order = sorted(range(len(found)), key=lambda place: sort_key(found[place]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Space([found[place] for place in order], names), np.split(rank[index], parts)


REASONS: dict[int, tuple[str, str, str]] = {
    MISSING: ("missing", "without", "Fill the gaps, or leave those records out"),
    NOT_FINITE: ("not-finite", "with an infinite or undefined", "Mend or leave out those records"),
    OUT_OF_RANGE: (
        "out-of-range",
        "outside the bins of their",
        "Widen the bins, or leave those records out",
    ),
}
UNFOLLOWED: dict[int, tuple[str, str, str]] = {
    FAR: (
        "gap",
        "followed too late, by more than max_gap",
        "That breaks the chain; raise max_gap if it should not",
    ),
    SAME_TIME: (
        "duplicate-time",
        "with the episode and time of another",
        "Keep one of each, or give a finer time",
    ),
    NO_EPISODE: ("missing-episode", "without an episode left out of the chain", "Fill the gaps"),
    NO_TIME: ("missing-time", "without a time left out of the chain", "Fill the gaps"),
    NO_AGE: ("missing-age", "without an age left out", "Fill the gaps"),
}


def unfollowed(reason: int, number: int) -> Finding:
    """That some records have no next record, because of this."""
    code, message, fix = UNFOLLOWED[reason]
    return Finding(code, f"{so_many(number)} {message}", number, fix)


def so_many(number: int) -> str:
    """So many records, in words."""
    return f"{number:,} record{'s' if number != 1 else ''}"


def _left_out(rows: IntArray, status: IntArray, bad: Mapping[str, IntArray]) -> list[Finding]:
    numbers = {reason: int(rows[status == reason].sum()) for reason in UNFOLLOWED}
    findings = [unfollowed(reason, number) for reason, number in numbers.items() if number]
    for part, codes in bad.items():
        for reason in REASONS:
            number = int(rows[(status == FOLLOWED) & (codes == reason)].sum())
            if number:
                findings.append(_bad(part, reason, number))
    return findings


def _bad(part: str, reason: int, number: int) -> Finding:
    """That so many records have no label in a part, because of this."""
    code, how, fix = REASONS[reason]
    message = f"{so_many(number)} {how} {part} left out"
    return Finding(f"{code}-{part.replace(' ', '-')}", message, number, fix)


def _ended(
    counts: TransitionCounts, terminal: tuple[Label, ...], more: bool
) -> tuple[TransitionCounts, list[Finding]]:
    """The counts with their terminal states, and without the records that leave one."""
    if not terminal:
        return counts, []
    if more:
        terminal = tuple(label for label in terminal if counts.states.has(label))
    try:
        ends = counts.states.indices(terminal)
    except ValueError as error:
        raise ValueError(f"terminal: {error}") from None
    kept = counts.ending_in(ends)
    left = counts.num_records - kept.num_records
    message, fix = (
        f"{so_many(left)} that leave a terminal state left out",
        "Is the state really terminal?",
    )
    return kept, [Finding("after-terminal", message, left, fix)] if left else []
