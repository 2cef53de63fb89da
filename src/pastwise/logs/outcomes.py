"""Labels of the outcomes of one-shot decisions."""

from __future__ import annotations

from dataclasses import replace

from pastwise.data.bins import Bins
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import LogError, ParameterError
from pastwise.logs.columns import Columns
from pastwise.logs.rows import Binned, Plain, Row

Counted = tuple[TransitionCounts, Columns]
"""Counts, and the columns that they were read by."""


def outcome_label(name: str, label: Label) -> str:
    """The label of an outcome that begins with the name of its column.

    >>> outcome_label("click", 1)
    'click 1'
    """
    return f"{name} {key_of(label)}"


def named_alike(one: Counted, two: Counted) -> tuple[Counted, Counted]:
    """Counts of one-shot decisions in parts, whose outcomes have labels of the same kind.

    Those of both parts begin with the name of their column if those of one part do, or if an
    outcome of one part is a state of the other.
    """
    parts = (one, two)
    is_needed = any(columns.prefixed_outcome for _, columns in parts)
    if is_needed or share_a_label(one[0], two[0]):
        return _with_prefix(*one), _with_prefix(*two)
    return parts


def share_a_label(one: TransitionCounts, two: TransitionCounts) -> bool:
    """Whether an outcome of one log of one-shot decisions is a state of the other."""
    for counts, other in ((one, two), (two, one)):
        for outcome in counts.terminal.tolist():
            place = other.states.find(counts.states.labels[outcome])
            if place is not None and place not in other.terminal:
                return True
    return False


def _with_prefix(counts: TransitionCounts, columns: Columns) -> Counted:
    """Counts of one-shot decisions in which the labels of outcomes begin with their column."""
    if columns.prefixed_outcome:
        return counts, columns
    labels = list(counts.states.labels)
    for outcome in counts.terminal.tolist():
        labels[outcome] = outcome_label(str(columns.outcome), labels[outcome])
    named = replace(counts, states=Space(labels, counts.states.fields))
    return named, replace(columns, prefixed_outcome=True)


def outcome_is_state(name: str) -> LogError:
    """The error for an outcome of a later log that is a state as well."""
    return LogError(
        f"a value of the outcome {name!r} is a state as well, which it was not in the log that "
        "was learned first; learn again from all records"
    )


def whole_numbers(labels: list[Label]) -> list[Label]:
    """Labels as whole numbers, if all are: a file may have read those of a reward otherwise."""
    whole: list[Label] = []
    for label in labels:
        if not isinstance(label, float) or not label.is_integer():
            return labels
        whole.append(int(label))
    return whole


def follows(
    columns: Columns | None, states: Space, next_state: Label | Row | None, reward: float | None
) -> Label | Row:
    """What a new record leads to: its next state or, of a one-shot decision, its outcome.

    Parameters
    ----------
    columns : Columns, optional
        How the log was read.
    states : Space
        Of the policy.
    next_state : label, raw value or row, optional
        May be absent where the reward is the outcome.
    reward : float, optional
        Reward of the record.
    """
    if columns is None or columns.outcome is None:
        if next_state is None:
            raise ParameterError("what did the action lead to? Give the next state")
        return next_state
    is_reward = columns.outcome == columns.reward
    given = reward if next_state is None and is_reward else next_state
    if given is None:
        needed = "reward" if is_reward else "outcome, as next_state"
        raise ParameterError(f"what did the action lead to? Give the {needed}")

    # A label that begins with the name of the column is one already.
    if isinstance(given, str) and states.has(given):
        begins_with_name = given.startswith(f"{columns.outcome} ")
        if begins_with_name or not columns.prefixed_outcome:
            return given
    bins = columns.bins.get(columns.outcome)
    if isinstance(bins, Bins):
        label = Binned(columns.outcome, bins).of_value(given)
    else:
        label = Plain(columns.outcome).of_value(given)
    if is_reward:
        (label,) = whole_numbers([label])
    return outcome_label(columns.outcome, label) if columns.prefixed_outcome else label
