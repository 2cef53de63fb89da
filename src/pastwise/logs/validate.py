"""What there is in a log, before anything is learned from it: what is usable, what is odd, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import key_of
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Finding, decode, so_many, unfollowed
from pastwise.logs.query import (
    FAR,
    FOLLOWED,
    NO_AGE,
    NO_EPISODE,
    NO_TIME,
    SAME_TIME,
    followed,
    labels,
    prepare,
)
from pastwise.logs.read import collect_groups
from pastwise.logs.sources import ROW, open_table, reading

if TYPE_CHECKING:
    import narwhals as nw

NUM_EXAMPLES = 3


@dataclass(frozen=True)
class Validation:
    """What was found in a log."""

    rows: int
    transitions: int
    states: int
    actions: int
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def validate_log(table: Any, columns: Columns) -> Validation:
    """Read a log as `count_transitions` would, and tell what was found, with examples.

    A log that nothing can be learned from is an error.
    """
    with reading(table if isinstance(table, str) else "the log"):
        frame = open_table(table, columns, numbered=True)
        has_row = ROW in frame.collect_schema().names()
        raw = (*((ROW,) if has_row else ()), *columns.all)
        prepared, columns, decay = prepare(frame, columns, raw=raw)
        found = decode(collect_groups(prepared, columns, decay), columns, decay)
        conditions = dict(_conditions(columns, prepared.collect_schema())) | _leaving(
            columns, found.counts
        )
        findings = [
            replace(finding, examples=_examples(prepared.filter(conditions[finding.code]), raw))
            if finding.code in conditions
            else finding
            for finding in found.findings
        ]
        findings += (
            _out_of_order(prepared, columns, raw)
            if columns.next_state
            else _single_records(prepared, raw)
        )
    findings += _dead_ends(found.counts)
    counts = found.counts
    return Validation(
        found.rows, len(counts.key), len(counts.states), len(counts.actions), tuple(findings)
    )


def _conditions(columns: Columns, schema: Any) -> Iterator[tuple[str, nw.Expr]]:
    """For each code of a finding about records, which records it is about."""
    import narwhals as nw

    reasons = {
        "gap": FAR,
        "duplicate-time": SAME_TIME,
        "missing-episode": NO_EPISODE,
        "missing-time": NO_TIME,
    }
    for code, status in {**reasons, "missing-age": NO_AGE}.items():
        yield code, nw.col("status") == status
    followed = nw.col("status") == FOLLOWED
    parts = {
        "state": ("state", columns.state),
        "action": ("action", columns.action),
        "next-state": ("next", columns.state),
    }
    for part, (prefix, names) in parts.items():
        fields = {f"{prefix} {i}": columns.bins.get(name) for i, name in enumerate(names)}
        yield (
            f"missing-{part}",
            followed & reduce(or_, (nw.col(field).is_null() for field in fields)),
        )
        outside = [
            (nw.col(field) == 0) | (nw.col(field) == len(edges))
            for field, edges in fields.items()
            if isinstance(edges, tuple)
        ]
        if outside:
            yield f"out-of-range-{part}", followed & reduce(or_, outside)
        floats = [~nw.col(field).is_finite() for field in fields if schema[field].is_float()]
        if floats:
            yield f"not-finite-{part}", followed & reduce(or_, floats)


def _leaving(columns: Columns, counts: TransitionCounts) -> dict[str, nw.Expr]:
    """Which records leave a terminal state; not told apart where states are binned."""
    import narwhals as nw

    if not len(counts.terminal) or any(name in columns.bins for name in columns.state):
        return {}
    labels = [counts.states.labels[i] for i in counts.terminal.tolist()]
    rows = [label if counts.states.is_product else (label,) for label in labels]
    same = [
        reduce(and_, (nw.col(f"state {i}") == part for i, part in enumerate(row))) for row in rows
    ]
    return {"after-terminal": (nw.col("status") == FOLLOWED) & reduce(or_, same)}


def _examples(frame: nw.LazyFrame[Any], raw: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    """The first records, by row where the source has an order, as plain values."""
    import narwhals as nw

    frame = frame.select(**{name: nw.col(f"raw {name}") for name in raw})
    frame = frame.sort(ROW).head(NUM_EXAMPLES) if ROW in raw else frame.head(NUM_EXAMPLES)
    rows = frame.collect(backend="pyarrow").to_native().to_pylist()
    return tuple(
        {"row" if name == ROW else name: _plain(value) for name, value in row.items()}
        for row in rows
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _out_of_order(
    prepared: nw.LazyFrame[Any], columns: Columns, raw: tuple[str, ...]
) -> list[Finding]:
    """Records with a next state of their own that have no place in an episode, or lead elsewhere than the episode goes.

    They are counted all the same; it is the order of decisions that they leave in doubt.
    """
    import narwhals as nw

    if not (columns.episode and columns.time):
        return []
    then = {f"then {i}": f"state {i}" for i in range(len(columns.state))}
    shown = {f"raw following {name}": f"raw {name}" for name in columns.state}
    ordered, place = followed(prepared, {**then, **shown}, labels(columns))
    ordered = ordered.with_columns(place=place)
    differs = reduce(
        or_, (nw.col(f"next {i}") != nw.col(f"then {i}") for i in range(len(columns.state)))
    )
    conditions = {reason: nw.col("place") == reason for reason in (NO_EPISODE, NO_TIME, SAME_TIME)}
    conditions[FOLLOWED] = (nw.col("place") == FOLLOWED) & differs
    sums = {f"{reason}": holds.cast(nw.Int64).sum() for reason, holds in conditions.items()}
    numbers = ordered.select(**sums).collect(backend="pyarrow").to_native().to_pylist()[0]
    findings = []
    for reason, holds in conditions.items():
        if number := int(numbers[f"{reason}"] or 0):
            broken = reason == FOLLOWED
            names = (*raw, *(f"following {name}" for name in columns.state)) if broken else raw
            finding = _broken_chain(number) if broken else unfollowed(reason, number)
            findings.append(replace(finding, examples=_examples(ordered.filter(holds), names)))
    return findings


def _broken_chain(number: int) -> Finding:
    message = (
        f"{so_many(number)} whose next state is not the state of the next record of the episode"
    )
    fix = (
        "Are records missing, or out of order? The next-state column is what counts; to importance sampling the next "
        "record begins an episode of its own"
    )
    return Finding("broken-chain", message, number, fix)


def _single_records(prepared: nw.LazyFrame[Any], raw: tuple[str, ...]) -> list[Finding]:
    """Episodes of one record, which tell of no transition."""
    import narwhals as nw

    known = prepared.filter(~nw.col("episode").is_null())
    sized = known.with_columns(size=nw.col("status").count().over("episode")).filter(
        nw.col("size") == 1
    )
    number = (
        sized.select(number=nw.len())
        .collect(backend="pyarrow")
        .to_native()
        .column("number")
        .to_pylist()[0]
    )
    if not number:
        return []
    message, fix = (
        f"{number} episodes have a single record, and so no transition",
        "Is the episode column right?",
    )
    return [Finding("single-record", message, number, fix, _examples(sized, raw))]


def _dead_ends(counts: TransitionCounts) -> list[Finding]:
    """States that are entered and never left, and are not said to be terminal."""
    entered = np.setdiff1d(np.setdiff1d(counts.next_state, counts.state), counts.terminal)
    if not len(entered):
        return []
    labels = [counts.states.labels[i] for i in entered.tolist()]
    rows = int(counts.records[np.isin(counts.next_state, entered)].sum())
    names = ", ".join(key_of(label) for label in labels[:5]) + (", ..." if len(labels) > 5 else "")
    message = f"{len(labels)} states are entered and never left: {names}"
    fix = "If an episode ends there, name them terminal; otherwise nothing can be learned of what to do there"
    examples = tuple({"state": key_of(label)} for label in labels[:NUM_EXAMPLES])
    return [Finding("dead-end", message, rows, fix, examples)]
