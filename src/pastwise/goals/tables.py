"""A goal's labels with numbers, as arrays over the states and actions of a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, normalise
from pastwise._numerics.checks import require_memory
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import GoalError, GoalLabelError, UnknownLabelError
from pastwise.goals.parse import Forbidden, as_mapping, as_number

Weights = Mapping[Label, float]

BY_NEXT_STATE = "give numbers by next state alone, or a reward by state and action"
"""What to do instead of a goal that needs a table of all transitions."""


def shares(
    part: str,
    wanted: Weights,
    space: Space,
    floor: float | None,
    *,
    default_floor: float = 1e-5,
    others_share: float = 0.01,
) -> FloatArray:
    """Probabilities: others have exactly the floor, wanted labels share the rest: [len(space)].

    Parameters
    ----------
    part : str
        The part of the goal, for errors.
    wanted : labels with weights
        They share what the others leave, in proportion to their weights.
    space : Space
        All labels.
    floor : float, optional
        Probability of each of the others.
    default_floor : float
        The floor, if none is given; it is that of the paper's experiments.
    others_share : float
        The default floor is lowered where the others would have more than this in all, so that
        the wanted labels keep nearly all of the probability however many others there are.
    """
    chosen = indices_of(part, wanted, space)
    num_others = len(space) - len(chosen)
    if floor is None:
        floor = min(default_floor, others_share / num_others) if num_others else 0.0
    rest = 1 - floor * num_others
    if rest <= 0:
        raise GoalError(
            f"{part}: {num_others} others with a floor of {floor:g} leave nothing "
            "for the preferred; lower the floor",
            part,
        )
    weights = np.array(list(wanted.values()), dtype=np.float64)
    probabilities = np.full(len(space), float(floor))
    probabilities[chosen] = rest * normalise(weights)
    return probabilities


def relative_weights(part: str, wanted: Weights, space: Space) -> FloatArray:
    """Weights relative to the largest, 0 for labels that are not wanted: [len(space)]."""
    chosen = indices_of(part, wanted, space)
    weights = np.array(list(wanted.values()))
    relative = np.zeros(len(space))
    relative[chosen] = weights / max(wanted.values())
    return relative


def field_values(name: str, states: Space) -> tuple[Space, IntArray]:
    """The values of a field of the states, and the index of each state's value: [S]."""
    if name not in states.fields:
        known = ", ".join(states.fields) or "none"
        raise GoalError(
            f"targets: the states have no field {name!r}; their fields are {known}", "targets"
        )
    return states.field(name)


def numbers(part: str, table: Mapping[Label, object], states: Space, actions: Space) -> FloatArray:
    """Numbers of transitions; what is not named has 0.

    Returns
    -------
    [S] for numbers by next state, [S, A, 1] for numbers by state and action, [S, A, S] where any
    of them is by state, action and next state.
    """
    if not _has_inner_tables(table.values()):
        by_next_state = np.zeros(len(states))
        values = [as_number(part, value) for value in table.values()]
        by_next_state[indices_of(part, table, states)] = values
        return by_next_state

    # The shape: one level deeper if any state and action has numbers by next state.
    by_state = {}
    for state, by_action in table.items():
        by_state[state] = as_mapping(f"{part}.{key_of(state)}", by_action)
    is_full = any(_has_inner_tables(by_action.values()) for by_action in by_state.values())
    shape = (len(states), len(actions), len(states) if is_full else 1)
    require_memory(f"a {part} by state, action and next state", shape, BY_NEXT_STATE)

    # The numbers.
    full = np.zeros(shape)
    for s, by_action in zip(indices_of(part, by_state, states), by_state.values(), strict=True):
        chosen = indices_of(part, by_action, actions)
        for a, inner in zip(chosen, by_action.values(), strict=True):
            row = full[s, a]
            if isinstance(inner, Mapping):
                values = [as_number(part, value) for value in inner.values()]
                row[indices_of(part, inner, states)] = values
            else:
                row[:] = as_number(part, inner)
    return full


def _has_inner_tables(values: Iterable[object]) -> bool:
    return any(isinstance(value, Mapping) for value in values)


def allowed_actions(forbid: Sequence[Forbidden], states: Space, actions: Space) -> BoolArray:
    """Mask of the actions that may be taken: [1 or S, A]."""
    if not forbid:
        return np.ones((1, len(actions)), dtype=bool)
    allowed = np.ones((len(states), len(actions)), dtype=bool)
    for state, action in forbid:
        column = _index_of("forbid", action, actions)
        if state is None:
            allowed[:, column] = False
        else:
            allowed[_index_of("forbid", state, states), column] = False

    has_no_action = ~allowed.any(axis=-1)
    if has_no_action.any():
        state = states.labels[int(np.argmax(has_no_action))]
        raise GoalError(
            f"forbid leaves state {state!r} without any action; allow at least one there", "forbid"
        )
    return allowed


def indices_of(part: str, labels: Iterable[Label], space: Space) -> IntArray:
    """Indices of different labels, with the part of the goal in the error."""
    try:
        indices = space.indices(labels)
    except UnknownLabelError as error:
        raise GoalLabelError(part, error.label, error.suggest) from None
    if len(np.unique(indices)) < len(indices):
        raise GoalError(
            f"{part}: a label is named twice, as itself and by its key; name it once", part
        )
    return indices


def _index_of(part: str, label: Label, space: Space) -> int:
    """Index of a label, with the part of the goal in the error."""
    try:
        return space.index(label)
    except UnknownLabelError as error:
        raise GoalLabelError(part, error.label, error.suggest) from None
