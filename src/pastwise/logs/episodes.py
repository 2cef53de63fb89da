"""From a table to episodes: the ordered transitions that importance sampling needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.data.records import Episodes
from pastwise.data.space import Label, Space
from pastwise.errors import LabelError, LogError, LogWarning, ParameterError, listed, shown
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Part, as_numpy, numbers_of, parts_of, states_of
from pastwise.logs.encoded import encoded
from pastwise.logs.findings import counted
from pastwise.logs.outcomes import outcome_label
from pastwise.logs.query import Status, label_names, prepare
from pastwise.logs.sources import log_errors, open_table


def read_episodes(
    table: Any, columns: Columns, states: Space, actions: Space, propensity: str | None = None
) -> Episodes:
    """The episodes of a log, as indices into the given spaces.

    A record that is not usable ends its episode; the record after it begins a new one. It is not
    usable if its next state is missing, too late or at the same time, if a value is missing or
    outside its bins, or if it leaves a terminal state. A record also begins a new episode if the
    next-state column of the one before differs from its state, or if both have the same time; a
    `LogWarning` counts those. The episodes made out of one episode of the log are one unit. A
    one-shot decision is an episode of its own.

    Parameters
    ----------
    table
        Any log that `count_transitions` reads.
    columns : Columns
        With episode and time, and with or without the next state; or with an outcome. Weights,
        ages and tasks are ignored.
    propensity : str, optional
        Column of the probability with which the logged action was taken.

    Examples
    --------
    >>> log = {
    ...     "who": [1, 1, 1, 2, 2],
    ...     "t": [0, 1, 2, 0, 1],
    ...     "room": list("abaab"),
    ...     "did": list("xyxyx"),
    ... }
    >>> columns = Columns.of("room", "did", episode="who", time="t")
    >>> episodes = read_episodes(log, columns, Space("ab"), Space("xy"))
    >>> episodes.state.tolist(), episodes.next_state.tolist()
    ([0, 1, 0], [1, 0, 1])
    >>> episodes.episode.tolist(), episodes.step.tolist()
    ([0, 0, 1], [0, 1, 0])
    """
    if not columns.is_one_shot and not (columns.episode and columns.time):
        raise ParameterError(
            "importance sampling needs the order of decisions: name the columns of episode and "
            "time when learning, next to that of the next state if there is one"
        )
    if columns.count:
        raise ParameterError(
            "importance sampling needs a row for each record, not a column of counts"
        )
    columns = replace(columns, weight=None, task=None, age=None, half_life=None)
    table, columns = encoded(table, columns)
    with log_errors(table):
        rows, columns = _sorted_rows(table, columns, propensity)
    if not len(rows):
        raise LogError("the log has no usable transition: no record has an episode and a time")

    # Labels, and which records are usable.
    state, next_state = states_of(rows, columns)
    (action,) = parts_of(rows, ("action",), columns.action, columns.bins)
    is_followed = numbers_of(rows, "status") == Status.FOLLOWED
    has_labels = (state.bad == 0) & (action.bad == 0) & (next_state.bad == 0)
    usable = is_followed & has_labels
    terminal = _known(states, columns.terminal, "terminal")
    usable[usable] = ~np.isin(indices_of(state, usable, states, "state"), terminal)
    if not usable.any():
        raise LogError("the log has no usable transition")

    # Where each episode begins.
    if columns.is_one_shot:
        episode = np.arange(int(usable.sum()))
        step = np.zeros_like(episode)
        unit = None
    else:
        leads_on = (state.codes[1:] == next_state.codes[:-1]).all(axis=-1)
        episode, step, unit = _pieces(rows, usable, leads_on)
    return Episodes(
        state=indices_of(state, usable, states, "state"),
        action=indices_of(action, usable, actions, "action"),
        next_state=indices_of(_named_outcome(next_state, columns), usable, states, "next state"),
        episode=episode,
        step=step,
        propensity=None if propensity is None else _propensities(rows, usable, propensity),
        unit=unit,
        reward=_rewards(rows, usable, columns.reward) if columns.reward else None,
    )


def _named_outcome(part: Part, columns: Columns) -> Part:
    """The next state, with the labels of outcomes as the states have them."""
    if not columns.outcome or not columns.prefixed_outcome:
        return part
    (labels,) = part.labels
    named: list[Label] = [outcome_label(columns.outcome, label) for label in labels]
    return Part(part.codes, [named])


def _rewards(rows: pa.Table, usable: BoolArray, name: str) -> FloatArray:
    """Reward of each usable record."""
    values = numbers_of(rows, "reward")[usable]
    if not np.isfinite(values).all():
        raise LogError(f"the reward column {name!r} has infinite values; correct them")
    return values


def _sorted_rows(table: Any, columns: Columns, propensity: str | None) -> tuple[pa.Table, Columns]:
    """Records by episode and time, and the columns with all edges of bins known.

    Several records may have the same time. Where the next state is taken from the next record, only
    the last of them has one; it has the lowest status and must stay last, hence the descending
    order of ``status``. Labels decide the order of the others.
    """
    frame = open_table(table, replace(columns, propensity=propensity))
    raw: tuple[str, ...] = ()
    if propensity is not None:
        _require_numbers(frame, propensity)
        raw = (propensity,)
    prepared, columns, _ = prepare(frame, columns, raw=raw)
    order = [*label_names(columns), *(f"raw {name}" for name in raw)]
    if columns.reward:
        order.append("reward")
    if columns.is_one_shot:
        return prepared.sort(order).collect(backend="pyarrow").to_native(), columns
    has_place = ~nw.col("episode").is_null() & ~nw.col("instant").is_null()
    order = ["episode", "instant", "status", *order]
    descending = [name == "status" for name in order]
    rows = prepared.filter(has_place).sort(order, descending=descending)
    return rows.collect(backend="pyarrow").to_native(), columns


def _require_numbers(frame: nw.LazyFrame[Any], propensity: str) -> None:
    """Refuse a propensity column that is not there or does not hold numbers."""
    schema = frame.collect_schema()
    if propensity not in schema:
        raise LogError(f"the log has no column {propensity!r}; it has {listed(list(schema))}")
    dtype = schema[propensity]
    if not dtype.is_numeric():
        raise LogError(f"the propensity column {propensity!r} must hold numbers, not {dtype}")


def indices_of(part: Part, usable: BoolArray, space: Space, name: str) -> IntArray:
    """Index of the label of each usable record; an unknown label is an error."""
    codes, inverse = np.unique(part.codes[usable], axis=0, return_inverse=True)
    labels: list[Label] = []
    for row in codes:
        fields = [values[code] for values, code in zip(part.labels, row, strict=True)]
        labels.append(tuple(fields) if len(fields) > 1 else fields[0])
    return _known(space, labels, name)[inverse.ravel()]


def _known(space: Space, labels: Sequence[Label], name: str) -> IntArray:
    """Indices of labels; the error on an unknown one begins with ``name``."""
    try:
        return space.indices(labels)
    except ValueError as error:
        raise LabelError(f"{name}: {error}") from None


def _pieces(
    rows: pa.Table, usable: BoolArray, leads_on: BoolArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Piece, step in it, and episode of the log, of each usable record.

    A record that is not usable breaks the chain.

    Parameters
    ----------
    usable : [N]
    leads_on : [N - 1]
        Whether the next state of each record is the state of the one after it.
    """
    same_episode = _compare_neighbours(rows.column("episode"), pc.equal)
    is_later = _compare_neighbours(rows.column("instant"), pc.greater)
    goes_on = same_episode & leads_on & is_later
    num_broken = int((usable[:-1] & usable[1:] & same_episode & ~goes_on).sum())
    if num_broken:
        warnings.warn(
            f"{counted(num_broken, 'record')} in another state than the one before in the episode "
            "led to, or of the same time. Each begins an episode of its own; validate the log to "
            "see them",
            LogWarning,
            stacklevel=4,
        )

    # A usable record begins a piece unless the one before is usable and goes on with it.
    continues = usable[:-1] & goes_on
    begins = np.append(True, ~continues)[usable]
    episode = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    step = np.arange(len(begins)) - first[episode]
    unit = np.cumsum(np.append(False, ~same_episode))[usable]
    return episode, step, unit


def _compare_neighbours(column: pa.ChunkedArray, compare: Callable[..., Any]) -> BoolArray:
    """Each value of a column, from the second on, compared with the one before: [N - 1]."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    holds = compare(column.slice(1), column.slice(0, len(column) - 1))
    return np.asarray(as_numpy(holds.cast(pa.int8())) > 0)


def _propensities(rows: pa.Table, usable: BoolArray, name: str) -> FloatArray:
    """Propensity of each usable record."""
    values = numbers_of(rows, f"raw {name}")
    bad = usable & ~((values > 0) & (values <= 1))
    if bad.any():
        row = int(bad.argmax())
        if "episode" not in rows.column_names:
            raise LogError(
                f"the propensity column {name!r} is {values[row]:g} in a record; "
                "it must lie in (0, 1]"
            )
        episode = rows.column("episode")[row].as_py()
        moment = rows.column("instant")[row]
        raise LogError(
            f"the propensity column {name!r} is {values[row]:g} in episode {shown(episode)} at "
            f"{moment}; it must lie in (0, 1]"
        )
    return values[usable]
