"""Single records over the labels of a learner, their counts and their date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

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


def counts_of(
    records: Mapping[int, int],
    rewards: Mapping[int, tuple[float, float]],
    log: TransitionCounts,
) -> TransitionCounts:
    """Counts of records over the labels of a log.

    Parameters
    ----------
    records : mapping
        Number of records by flat index of the transition, [S, A, S].
    rewards : mapping
        The sums of their rewards and of the squares of these, in the same order, if the log has
        rewards.
    log : TransitionCounts
    """
    num_states = len(log.states)
    num_actions = len(log.actions)
    key = np.array(list(records), dtype=np.int64)
    number = np.array(list(records.values()), dtype=np.int64)
    weight = number.astype(np.float64)
    row = key // num_states
    index = (np.zeros_like(key), row // num_actions, row % num_actions, key % num_states)
    reward_sums = None
    if log.has_rewards:
        earned = np.array(list(rewards.values())).reshape(-1, 2)
        reward_sums = (earned[:, 0], earned[:, 1])
    return TransitionCounts.from_groups(
        log.states,
        log.actions,
        index,
        (number, weight, weight),
        decay=log.decay,
        rewards=reward_sums,
    )
