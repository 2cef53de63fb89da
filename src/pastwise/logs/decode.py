"""From the groups that an engine returns to transition counts, and to findings on what is left out.

A column of labels becomes codes: the place of each label in a list of labels, or a `BadLabel`. The
combinations of codes that occur become a `Space`, and the groups become `TransitionCounts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, distinct
from pastwise.data.bins import Bins
from pastwise.data.counts import KEY_LIMIT, Decay, TransitionCounts, flat_key
from pastwise.data.episodes import NUM_FOLDS, EpisodeSummary
from pastwise.data.partition import Partition
from pastwise.data.space import Label, Space, sort_key, sort_key_of
from pastwise.errors import LabelError, LogError
from pastwise.logs.columns import Columns
from pastwise.logs.effects import findings_on_counts
from pastwise.logs.findings import (
    Finding,
    counted,
    finding_of,
    findings_html,
    findings_text,
)
from pastwise.logs.outcomes import outcome_is_state, outcome_label, whole_numbers
from pastwise.logs.parquet import Codes, Tally
from pastwise.logs.query import Status

MAX_LABELS = 3_000_000
"""A column with more distinct labels than this is free text or an identifier."""


class BadLabel(IntEnum):
    """Codes of values that cannot be labels."""

    MISSING = -1
    NOT_FINITE = -2
    OUT_OF_RANGE = -3


STATUS_CODES = {
    Status.TOO_LATE: "gap",
    Status.SAME_TIME: "duplicate-time",
    Status.NO_EPISODE: "missing-episode",
    Status.NO_TIME: "missing-time",
    Status.NO_AGE: "missing-age",
    Status.NO_REWARD: "missing-reward",
}
"""Codes of findings on records that have no next state. The last record of an episode is none."""

BAD_LABEL_CODES = {
    BadLabel.MISSING: "missing",
    BadLabel.NOT_FINITE: "not-finite",
    BadLabel.OUT_OF_RANGE: "out-of-range",
}
"""How the codes of findings on bad labels begin; the part of the transition follows."""


@dataclass(frozen=True)
class Reading:
    """What was read of a log: its counts, and what was found on the way.

    Attributes
    ----------
    columns : Columns
        The columns, with all edges of bins known.
    rows : int
        Rows of the log, with those that were left out.
    episodes : EpisodeSummary, optional
        What the counts forget about episodes; None where the log has no episode column.
    """

    counts: TransitionCounts
    columns: Columns
    rows: int
    findings: tuple[Finding, ...]
    episodes: EpisodeSummary | None = None

    def __str__(self) -> str:
        return f"{self.counts}\n{findings_text(self.findings)}"

    def _repr_html_(self) -> str:
        return self.counts._repr_html_() + findings_html(self.findings)


@dataclass(frozen=True)
class Split:
    """What the groups of a log show about its episodes.

    Attributes
    ----------
    folds : TransitionCounts of shape (10,)
        The log split by episode.
    starts : [S]
        Number of episodes whose first record leaves each state.
    is_whole_chain : bool
        Whether every record counts but the last of each episode, one row each.
    """

    folds: TransitionCounts
    starts: IntArray
    is_whole_chain: bool


@dataclass(frozen=True)
class Part:
    """One part of the transitions, such as their states.

    Attributes
    ----------
    codes : [groups, fields]
        For each field the place of its label, or a `BadLabel`.
    labels : list of lists
        For each field its labels.
    """

    codes: IntArray
    labels: list[list[Label]]

    @property
    def bad(self) -> IntArray:
        """Zero where every field has a label, otherwise the lowest `BadLabel`: [groups]."""
        return np.asarray(np.minimum(self.codes.min(axis=-1), 0))


class Sums(NamedTuple):
    """Sums of each group: [groups] each.

    Attributes
    ----------
    records, weight, squared
        Number of records, sum of weights and sum of squared weights.
    rewards : two arrays, optional
        Sums of weighted rewards and of weighted squared rewards, where the log has rewards.
    """

    records: IntArray
    weight: FloatArray
    squared: FloatArray
    rewards: tuple[FloatArray, FloatArray] | None = None


def decode(
    grouped: pa.Table,
    columns: Columns,
    decay: Decay | None,
    *,
    more: bool = False,
    episodes: bool = True,
    categories: Mapping[str, tuple[Label, ...]] | None = None,
) -> tuple[Reading, Split | None]:
    """The reading of a log that an engine has grouped, and its split by episode if it has any.

    With ``more`` the log continues one that is known, and need not have every terminal state.
    Without ``episodes`` it was not grouped by episode. ``categories`` are the values of columns
    that have an order of their own, in that order.
    """
    categories = categories or {}
    rows = numbers_of(grouped, "rows").astype(np.int64)
    status = numbers_of(grouped, "status").astype(np.int64)
    if rows.sum() == 0:
        raise LogError("the log has no records")
    sums = _checked_sums(grouped, columns, rows)
    if columns.reward:
        sums = sums._replace(rewards=_checked_rewards(grouped, columns.reward, rows, status))

    # Labels, and which groups have all of them.
    state, next_state = states_of(grouped, columns)
    (action,) = parts_of(grouped, ("action",), columns.action, columns.bins)
    what_follows = "outcome" if columns.outcome else "next-state"
    parts = {"state": state, "action": action, what_follows: next_state}
    findings = _left_out(rows, status, parts)
    is_followed = status == Status.FOLLOWED
    has_labels = (state.bad == 0) & (action.bad == 0) & (next_state.bad == 0)
    usable = is_followed & has_labels & (sums.records > 0)
    if not usable.any():
        raise _no_transition(findings)
    kept = slice(None) if usable.all() else usable  # a slice copies nothing

    # Spaces of the labels that occur, and the index of each group into them.
    if columns.outcome:
        outcomes = Outcomes.of(state, next_state, kept, columns, categories)
        columns = outcomes.columns
        states = outcomes.states
        from_state = outcomes.context
        to_state = outcomes.outcome
    else:
        both = np.concatenate([state.codes[kept], next_state.codes[kept]])
        states, state_index = _space_of(both, state.labels, columns.state_fields, categories)
        from_state, to_state = np.split(state_index, 2)
    actions, action_index = _space_of(action.codes[kept], action.labels, columns.action, categories)
    tasks, task_index = _tasks(grouped, columns, kept, len(from_state))

    counts = TransitionCounts.from_groups(
        states,
        actions,
        (task_index, from_state, action_index, to_state),
        (sums.records[kept], sums.weight[kept], sums.squared[kept]),
        tasks,
        decay,
        rewards=_kept_rewards(sums, kept),
    )
    if columns.outcome:
        counts = counts.ending_in(np.unique(to_state))
    if columns.is_series and not more:
        findings.append(finding_of("one-episode", int(rows.sum())))
    reading = _reading_of(counts, columns, int(rows.sum()), findings, more)
    if not columns.episode or not episodes:
        return reading, None

    # The same groups, split by episode.
    folds = _folds(
        grouped, columns, decay, kept, reading.counts, (from_state, action_index, to_state)
    )
    starts = np.zeros(len(states), dtype=np.int64)
    if columns.time:
        np.add.at(starts, from_state, numbers_of(grouped, "starts")[kept].astype(np.int64))
        starts[reading.counts.terminal] = 0
    is_counted = usable | (status == Status.LAST)
    is_whole_chain = bool(
        columns.is_chained
        and not columns.count
        and is_counted.all()
        and reading.counts.num_records == counts.num_records
    )
    return reading, Split(folds, starts, is_whole_chain)


def _folds(
    grouped: pa.Table,
    columns: Columns,
    decay: Decay | None,
    kept: slice | BoolArray,
    counts: TransitionCounts,
    index: tuple[IntArray, IntArray, IntArray],
) -> TransitionCounts:
    """The kept groups split by episode, over the labels and terminal states of their counts.

    Parameters
    ----------
    index : three arrays [kept]
        State, action and next state of each kept group.
    """
    # Groups in the order of their keys: then those of all folds are in order, too.
    state, action, next_state = index
    one_log = np.zeros_like(state)
    key = flat_key(one_log, state, action, next_state, len(counts.states), len(counts.actions))
    order = np.argsort(key)

    def of_folds(name: str) -> FloatArray:
        """A sum by fold and kept group: [folds, kept]."""
        sums = []
        for fold in range(NUM_FOLDS):
            sums.append(numbers_of(grouped, f"{name} of {fold}")[kept][order])
        return np.nan_to_num(np.stack(sums))

    all_records = of_folds("records")
    fold, place = np.nonzero(all_records)
    records = all_records[fold, place]
    weight = records
    squared = records
    if columns.weight or columns.age:
        weight = of_folds("weights")[fold, place]
        squared = of_folds("squares")[fold, place]
    rewards = None
    if columns.reward:
        rewards = (of_folds("rewards")[fold, place], of_folds("squared rewards")[fold, place])
    group = order[place]
    folds = TransitionCounts.from_groups(
        counts.states,
        counts.actions,
        (fold, state[group], action[group], next_state[group]),
        (records.astype(np.int64), weight, squared),
        decay=decay,
        shape=(NUM_FOLDS,),
        rewards=rewards,
    )
    return folds.ending_in(counts.terminal) if len(counts.terminal) else folds


def decode_tally(tally: Tally, columns: Columns, *, more: bool = False) -> Reading:
    """The reading of a log that was counted by codes; see `decode`."""
    counts = tally.counts
    rows = int(counts.sum())
    if rows == 0:
        raise LogError("the log has no records")

    # Code 0 is a missing label.
    missing = {
        "state": int(counts[0].sum()),
        "action": int(counts[:, 0].sum()),
        "next-state": int(counts[:, :, 0].sum()),
    }
    findings = []
    for part, number in missing.items():
        if number:
            findings.append(finding_of(f"missing-{part}", number))
    usable = counts[1:, 1:, 1:]
    if not usable.any():
        raise _no_transition(findings)

    # The labels that occur, in their order.
    is_left = np.asarray(usable.any(axis=(1, 2)))
    is_taken = np.asarray(usable.any(axis=(0, 2)))
    is_entered = np.asarray(usable.any(axis=(0, 1)))
    states, state_codes = _sorted_space(tally.states, is_left | is_entered, columns.state)
    actions, action_codes = _sorted_space(tally.actions, is_taken, columns.action)

    table = usable[np.ix_(state_codes, action_codes, state_codes)].ravel()
    key = np.flatnonzero(table != 0)
    records = table[key].astype(np.int64)
    weight = records.astype(np.float64)
    result = TransitionCounts(states, actions, key, records, weight, weight)
    return _reading_of(result, columns, rows, findings, more)


def _sorted_space(
    codes: Codes, occurs: BoolArray, names: tuple[str, ...]
) -> tuple[Space, IntArray]:
    """The space of the labels that occur, and the code of each, less one: [labels].

    Parameters
    ----------
    occurs : [codes - 1]
        Whether each label occurs in a usable transition; the missing label has no place here.
    """
    _require_few_labels(len(codes) - 1, names[0])
    places = {}
    for text, number in codes.numbers.items():
        if text is not None and occurs[number - 1]:
            places[text] = number - 1
    texts = sorted(places, key=sort_key)
    labels: list[Label] = [*texts]
    return Space(labels, names), np.array([places[text] for text in texts], dtype=np.int64)


def _tasks(
    grouped: pa.Table, columns: Columns, kept: slice | BoolArray, number: int
) -> tuple[Space | None, IntArray]:
    """The tasks of a log, and the task of each kept group: [number]."""
    if not columns.task:
        return None, np.zeros(number, dtype=np.int64)
    (task,) = parts_of(grouped, ("task",), (columns.task,), {})
    if (task.bad[kept] < 0).any():
        raise LogError(f"the task column {columns.task!r} has missing values; fill them")
    return _space_of(task.codes[kept], task.labels, (columns.task,), {})


def _reading_of(
    counts: TransitionCounts, columns: Columns, rows: int, findings: list[Finding], more: bool
) -> Reading:
    """The reading of a log with these counts, its terminal states declared."""
    all_findings = [*findings]
    ending = _with_terminal(counts, columns, more)
    if ending.num_records == 1 and not more:
        all_findings.append(finding_of("single-transition", 1))
    left_out = counts.num_records - ending.num_records
    if left_out:
        all_findings.append(finding_of("after-terminal", left_out))
    if not more:
        all_findings += findings_on_counts(ending, columns)
    return Reading(ending, columns, rows, tuple(all_findings))


def _with_terminal(counts: TransitionCounts, columns: Columns, more: bool) -> TransitionCounts:
    """The counts with their terminal states, and without the records that leave one."""
    terminal = columns.terminal
    if not terminal:
        return counts
    if more or columns.partition is not None:  # not every leaf need occur
        terminal = tuple(label for label in terminal if counts.states.has(label))
    try:
        indices = counts.states.indices(terminal)
    except ValueError as error:
        raise LabelError(f"terminal: {error}") from None
    return counts.ending_in(indices)


# Numbers.


def numbers_of(grouped: pa.Table, name: str) -> FloatArray:
    """A column of numbers; a missing one is not-a-number."""
    column = grouped.column(name).cast(pa.float64()).fill_null(float("nan"))
    return np.asarray(as_numpy(column))


def as_numpy(column: pa.ChunkedArray) -> Any:
    """The numbers of a column without missing ones.

    By DLPack, because pyarrow's ``to_numpy`` would import pandas.
    """
    chunks = [np.from_dlpack(chunk) for chunk in column.chunks if len(chunk)]
    return np.concatenate(chunks) if chunks else np.empty(0)


def _checked_sums(grouped: pa.Table, columns: Columns, rows: IntArray) -> Sums:
    """Records, weights and squared weights of each group; bad counts and weights are errors."""

    def refuse(bad: BoolArray, problem: str) -> None:
        if bad.any():
            number = int(rows[bad].sum())
            raise LogError(f"{problem} (among {counted(number, 'row')})")

    records = rows
    if columns.count:
        column = f"the count column {columns.count!r}"
        refuse(numbers_of(grouped, "no count") > 0, f"{column} has missing values")
        refuse(numbers_of(grouped, "least count") < 0, f"{column} has negative values")
        refuse(numbers_of(grouped, "odd count") > 0, f"{column} has values that are not whole")
        total = numbers_of(grouped, "records")
        refuse(~np.isfinite(total), f"{column} has infinite values")
        refuse(total >= KEY_LIMIT, f"{column} has values that sum to 2^63 or more")
        records = total.astype(np.int64)

    if columns.weight:
        column = f"the weight column {columns.weight!r}"
        refuse(
            numbers_of(grouped, "no weight") > 0,
            f"{column} has missing values or values that are not numbers",
        )
        refuse(
            numbers_of(grouped, "least weight") <= 0,
            f"{column} has values that are not positive; give small ones to what hardly counts",
        )
    if not columns.weight and not columns.age:
        weight = records.astype(np.float64)
        return Sums(records, weight, weight)

    weight = numbers_of(grouped, "sum of weights")
    squared = numbers_of(grouped, "sum of squares")
    if columns.weight:
        problem = f"the weight column {columns.weight!r} has infinite values"
    else:
        problem = "as_of lies too far in the past: weights are infinite"
    refuse(np.isinf(weight), problem)
    return Sums(records, np.nan_to_num(weight), np.nan_to_num(squared))


def _checked_rewards(
    grouped: pa.Table, name: str, rows: IntArray, status: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Sums of weighted rewards and of their squares of each group; infinite ones are errors."""
    reward = numbers_of(grouped, "sum of rewards")
    squared = numbers_of(grouped, "sum of squared rewards")
    is_infinite = ~(np.isfinite(reward) & np.isfinite(squared)) & (status == Status.FOLLOWED)
    if is_infinite.any():
        number = int(rows[is_infinite].sum())
        raise LogError(
            f"the reward column {name!r} has infinite values, or values whose squares are too "
            f"large for a number (among {counted(number, 'row')}); correct or rescale them"
        )
    return np.nan_to_num(reward), np.nan_to_num(squared)


def _kept_rewards(sums: Sums, kept: slice | BoolArray) -> tuple[FloatArray, FloatArray] | None:
    """The sums of rewards of the kept groups, where there are any."""
    if sums.rewards is None:
        return None
    reward, squared = sums.rewards
    return reward[kept], squared[kept]


# Labels.


@dataclass(frozen=True)
class Outcomes:
    """Contexts and outcomes of one-shot decisions as states of one space.

    Attributes
    ----------
    states : Space
        The contexts, then the outcomes; without names of fields, because outcomes have other ones.
    context, outcome : [kept]
        Index of each kept group's context and outcome.
    columns : Columns
        The columns, which now know whether labels of outcomes begin with the column's name.
    """

    states: Space
    context: IntArray
    outcome: IntArray
    columns: Columns

    @classmethod
    def of(
        cls,
        state: Part,
        outcome: Part,
        kept: slice | BoolArray,
        columns: Columns,
        categories: Mapping[str, tuple[Label, ...]],
    ) -> Outcomes:
        """The states of the kept groups."""
        name = str(columns.outcome)
        contexts, context_index = _space_of(
            state.codes[kept], state.labels, columns.state_fields, categories
        )
        outcomes, outcome_index = _space_of(
            outcome.codes[kept], outcome.labels, (name,), categories
        )

        # An outcome must not be taken for a context with the same key.
        collides = any(contexts.has(label) for label in outcomes.labels)
        prefixed = columns.prefixed_outcome
        if prefixed is None:
            prefixed = collides
        elif collides and not prefixed:
            raise outcome_is_state(name)
        labels: list[Label] = list(outcomes.labels)
        if prefixed:
            labels = [outcome_label(name, label) for label in labels]
        return cls(
            states=Space([*contexts.labels, *labels]),
            context=context_index,
            outcome=outcome_index + len(contexts),
            columns=replace(columns, prefixed_outcome=prefixed),
        )


def states_of(grouped: pa.Table, columns: Columns) -> list[Part]:
    """State and next state, which share their labels; or state and outcome, which do not."""
    if not columns.outcome:
        return parts_of(grouped, ("state", "next"), columns.state_fields, columns.state_codes)
    (state,) = parts_of(grouped, ("state",), columns.state_fields, columns.state_codes)
    (outcome,) = parts_of(grouped, ("next",), (columns.outcome,), columns.bins)
    if columns.outcome == columns.reward:
        outcome = Part(outcome.codes, [whole_numbers(labels) for labels in outcome.labels])
    return [state, outcome]


def parts_of(
    grouped: pa.Table,
    parts: tuple[str, ...],
    names: tuple[str, ...],
    bins: Mapping[str, Bins | int | str | Partition],
) -> list[Part]:
    """Parts that share their labels, such as state and next state."""
    codes: list[list[IntArray]] = [[] for _ in parts]
    labels: list[list[Label]] = []
    for i, name in enumerate(names):
        fields = [grouped.column("task" if part == "task" else f"{part} {i}") for part in parts]
        cut = bins.get(name)
        if isinstance(cut, (Bins, Partition)):
            field_codes = [_interval_codes(field, len(cut)) for field in fields]
            field_labels: list[Label] = [*cut.labels]
        else:
            field_codes, field_labels = _encode(fields, name)
        labels.append(field_labels)
        for part_codes, column in zip(codes, field_codes, strict=True):
            part_codes.append(column)
    return [Part(np.stack(part_codes, axis=-1), labels) for part_codes in codes]


def _interval_codes(field: pa.ChunkedArray, num_intervals: int) -> IntArray:
    """Codes of bins, which a query numbers from 1 on: [groups]."""
    missing = -1
    numbers = as_numpy(field.cast(pa.int64()).fill_null(missing))
    is_inside = (numbers > 0) & (numbers <= num_intervals)
    bad = np.where(numbers == missing, BadLabel.MISSING, BadLabel.OUT_OF_RANGE)
    return np.where(is_inside, numbers - 1, bad)


def _encode(fields: list[pa.ChunkedArray], name: str) -> tuple[list[IntArray], list[Label]]:
    """Codes of columns that share their labels, each [groups], and the labels."""
    columns = [_plain_column(field) for field in fields]
    if all(pa.types.is_null(column.type) for column in columns):
        missing = [np.full(len(column), BadLabel.MISSING, dtype=np.int64) for column in columns]
        return missing, []

    # One type for all columns.
    kinds = {_kind_of(column.type, name) for column in columns if not pa.types.is_null(column.type)}
    if len(kinds) > 1:
        types = " and ".join(str(column.type) for column in columns)
        raise LogError(f"the state {name!r} and its next state have different types: {types}")
    kind = kinds.pop()
    columns = _of_one_type(columns, kind)

    # One dictionary for all columns.
    chunks = [chunk for column in columns for chunk in column.chunks]
    values = pa.chunked_array(chunks, chunks[0].type).combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0)
    encoded = values.dictionary_encode()
    _require_few_labels(len(encoded.dictionary), name)
    labels = [_label_of(value, name) for value in encoded.dictionary.to_pylist()]
    indices = encoded.indices.fill_null(BadLabel.MISSING.value)
    codes = np.array(np.from_dlpack(indices), dtype=np.int64)
    if kind == "number" and labels:
        codes = _merge_numbers(codes, labels)
    return np.split(codes, len(columns)), labels


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without dictionaries and decimals."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        # By way of text: Arrow's own conversion makes 0.41000000000000003 of 0.41.
        if column.type.scale == 0:
            return column.cast(pa.int64())
        return column.cast(pa.string()).cast(pa.float64())
    return column


def _kind_of(dtype: pa.DataType, name: str) -> str:
    """Which labels of an Arrow type can equal those of another: text, numbers, or its own."""
    types = pa.types
    if types.is_nested(dtype):
        raise LogError(f"the column {name!r} holds {dtype}; a label is text, a number or a boolean")
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    if types.is_integer(dtype) or types.is_floating(dtype):
        return "number"
    return str(dtype)


def _of_one_type(columns: list[pa.ChunkedArray], kind: str) -> list[pa.ChunkedArray]:
    """Columns of one type; numbers are whole if all values are, even in columns of fractions."""
    types = {column.type for column in columns if not pa.types.is_null(column.type)}
    if len(types) == 1:
        (only,) = types
        return [column.cast(only) for column in columns]
    if kind == "text":
        return [column.cast(pa.large_string()) for column in columns]

    finite = [_finite(column) for column in columns]
    is_whole = all(_is_whole(column) for column in finite)
    if is_whole:
        return [column.cast(pa.int64()) for column in finite]
    return [column.cast(pa.float64(), safe=False) for column in finite]


def _finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column with infinite and undefined values missing."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, None)


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether all values of a column of numbers are whole."""
    if not pa.types.is_floating(column.type):
        return True
    all_whole = pc.all(pc.equal(column, pc.trunc(column))).as_py()
    return all_whole is not False  # None: there are no values


def _merge_numbers(codes: IntArray, labels: list[Label]) -> IntArray:
    """Codes in which equal numbers (0.0 and -0.0) share one, and which mark what is not finite."""
    first: dict[Label, int] = {}
    for code, label in enumerate(labels):
        first.setdefault(label, code)
    is_finite = np.isfinite(np.array(labels, dtype=np.float64))
    merged = np.where(is_finite, [first[label] for label in labels], BadLabel.NOT_FINITE)
    return np.where(codes >= 0, merged[codes], codes)


def _require_few_labels(number: int, name: str) -> None:
    """Refuse a column with too many different values to be labels."""
    if number > MAX_LABELS:
        raise LogError(
            f"the column {name!r} has {number:,} different values: it looks like free text or an "
            "identifier. Group its values first, or give bins"
        )


def _label_of(value: Any, name: str) -> Label:
    """A value of a column as a label."""
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    kind = type(value).__name__
    raise LogError(f"the column {name!r} holds {kind}; a label is text, a number or a boolean")


def _space_of(
    codes: IntArray,
    labels: list[list[Label]],
    names: tuple[str, ...],
    categories: Mapping[str, tuple[Label, ...]],
) -> tuple[Space, IntArray]:
    """The space of the combinations that occur, and the index of each row into it: [rows].

    Parameters
    ----------
    codes : [rows, fields]
        None of them bad.
    labels : list of lists
        For each field its labels.
    """
    # Field by field, the combinations that occur so far and the place of each row among them.
    combinations: list[tuple[Label, ...]] = [()]
    place = np.zeros(len(codes), dtype=np.int64)
    for field_codes, field_labels in zip(codes.T, labels, strict=True):
        size = len(field_labels)
        occurring, place = distinct(place * size + field_codes, len(combinations) * size)
        before, last = np.divmod(occurring, size)
        combinations = [
            (*combinations[i], field_labels[j])
            for i, j in zip(before.tolist(), last.tolist(), strict=True)
        ]

    # Sort the combinations as labels.
    found: list[Label] = [*combinations]
    if len(names) == 1:
        found = [combination[0] for combination in combinations]
    orders = tuple(categories.get(name, ()) for name in names)
    key = sort_key_of(orders)
    order = sorted(range(len(found)), key=lambda i: key(found[i]))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    ordered = [found[i] for i in order]
    return Space(ordered, names, orders if any(orders) else ()), rank[place]


# Findings.


def _left_out(rows: IntArray, status: IntArray, parts: Mapping[str, Part]) -> list[Finding]:
    """Findings on records that have no next state, or a part without a label."""
    findings = []
    for reason, code in STATUS_CODES.items():
        number = int(rows[status == reason].sum())
        if number:
            findings.append(finding_of(code, number))
    is_followed = status == Status.FOLLOWED
    for name, part in parts.items():
        bad = part.bad
        for bad_label, begin in BAD_LABEL_CODES.items():
            number = int(rows[is_followed & (bad == bad_label)].sum())
            if number:
                findings.append(finding_of(f"{begin}-{name}", number))
    return findings


def _no_transition(findings: list[Finding]) -> LogError:
    reasons = "; ".join(finding.message for finding in findings)
    return LogError(
        f"the log has no usable transition: {reasons or 'no record is followed by another'}"
    )
