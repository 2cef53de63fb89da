"""Labels of the outcomes of one-shot decisions."""

from __future__ import annotations

from pastwise.data.bins import Bins
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import ParameterError
from pastwise.logs.columns import Columns
from pastwise.logs.rows import Binned, Plain, Row


def outcome_label(name: str, label: Label) -> str:
    """The label of an outcome that begins with the name of its column.

    >>> outcome_label("click", 1)
    'click 1'
    """
    return f"{name} {key_of(label)}"


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
