"""Single records over the labels of a learner, and their date."""

from __future__ import annotations

from dataclasses import replace

from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label, Space
from pastwise.errors import ParameterError
from pastwise.logs.columns import Columns


def dated(decay: Decay | None, date: float | None) -> Decay | None:
    """The decay of a log with the date of new records, which it needs, if there is one."""
    if decay is None:
        if date is not None:
            raise ParameterError("the weights of this log do not fall with age; leave out the date")
        return None
    if date is None:
        raise ParameterError(
            "the weights of this log fall with age, so a new record needs its date=, in the unit "
            "of the age column or, for dates, in seconds since 1970"
        )
    return replace(decay, as_of=date)


def one_record(
    state: Label,
    action: Label,
    next_state: Label,
    counts: TransitionCounts,
    weight: float,
    reward: float | None = None,
    columns: Columns | None = None,
) -> TransitionCounts:
    """Counts of a single record of which some labels are new; the others keep their spelling.

    A new outcome of a one-shot decision is a terminal state.
    """
    state = _known_spelling(counts.states, state)
    action = _known_spelling(counts.actions, action)
    next_state = _known_spelling(counts.states, next_state)
    states = Space.sorted({state, next_state}, counts.states.fields)
    actions = Space((action,), counts.actions.fields)
    record = TransitionCounts.from_records(
        states.indices([state]), [0], states.indices([next_state]), states, actions, weight, reward
    )
    if columns is not None and columns.is_one_shot:
        return record.ending_in(states.indices([next_state]))
    return record


def _known_spelling(space: Space, label: Label) -> Label:
    """The label as the space has it, where it was given by its key."""
    return space.labels[space.index(label)] if space.has(label) else label
