"""From a table to episodes: the ordered transitions that importance sampling needs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.data.records import Episodes
from pastwise.data.space import Label, Space
from pastwise.errors import LogWarning
from pastwise.logs.columns import Columns
from pastwise.logs.decode import Part, as_numpy, numbers_of, parts_of, so_many
from pastwise.logs.query import FOLLOWED, labels, prepare
from pastwise.logs.sources import open_table, reading

if TYPE_CHECKING:
    import pyarrow as pa


def read_episodes(
    table: Any, columns: Columns, states: Space, actions: Space, propensity: str | None = None
) -> Episodes:
    """The episodes of a log, by the indices of the given spaces.

    A record that is not usable (its next state is missing, too late or at the same time, a value is missing or outside
    its bins, it leaves a terminal state) ends its episode; what follows it is an episode of its own. So is what follows
    a record whose next-state column says that it led elsewhere, or one of the same time; a `LogWarning` counts those.

    Parameters
    ----------
    table
        Any log that `count_transitions` reads.
    columns : Columns
        With episode and time, beside the next state or without it. Weights, ages and tasks do not matter here.
    propensity : str, optional
        Column of the probability with which the logged action was taken.

    Examples
    --------
    >>> log = {"who": [1, 1, 1, 2, 2], "t": [0, 1, 2, 0, 1], "room": list("abaab"), "did": list("xyxyx")}
    >>> columns = Columns.of("room", "did", episode="who", time="t")
    >>> episodes = read_episodes(log, columns, Space("ab"), Space("xy"))
    >>> episodes.state.tolist(), episodes.next_state.tolist(), episodes.episode.tolist(), episodes.step.tolist()
    ([0, 1, 0], [1, 0, 1], [0, 0, 1], [0, 1, 0])
    """
    if not (columns.episode and columns.time):
        raise ValueError(
            "importance sampling needs the order of decisions: when learning, name the columns of episode and time, "
            "beside that of the next state if there is one"
        )
    if columns.count:
        raise ValueError("importance sampling needs a row for each record, not a column of counts")
    columns = replace(columns, weight=None, task=None, age=None, half_life=None)
    with reading(table if isinstance(table, str) else "the log"):
        rows, columns = _sorted_rows(table, columns, propensity)
    if not len(rows):
        raise ValueError(
            "the log has no usable transition: no record has both an episode and a time"
        )
    state, follows = parts_of(rows, ("state", "next"), columns.state, columns.bins)
    (action,) = parts_of(rows, ("action",), columns.action, columns.bins)
    usable = (
        (numbers_of(rows, "status") == FOLLOWED)
        & (state.bad == 0)
        & (action.bad == 0)
        & (follows.bad == 0)
    )
    ends = _known(states, columns.terminal, "terminal")
    usable[usable] = ~np.isin(_indices(state, usable, states, "state"), ends)
    if not usable.any():
        raise ValueError("the log has no usable transition")
    episode, step = _pieces(rows, usable, (state.codes[1:] == follows.codes[:-1]).all(axis=-1))
    return Episodes(
        _indices(state, usable, states, "state"),
        _indices(action, usable, actions, "action"),
        _indices(follows, usable, states, "next state"),
        episode,
        step,
        None if propensity is None else _propensities(rows, usable, propensity),
    )


def _sorted_rows(table: Any, columns: Columns, propensity: str | None) -> tuple[pa.Table, Columns]:
    """Records with an episode and a time, in that order, and the columns with all bins known.

    Where the next state is that of the next record, of the records of one time only the last has one, and the lowest
    status: it comes last. Otherwise they are taken in the order of their labels.
    """
    import narwhals as nw

    frame = open_table(table, replace(columns, propensity=propensity))
    if propensity is not None:
        schema = frame.collect_schema()
        if propensity not in schema:
            raise ValueError(f"the log has no column {propensity!r}; it has {', '.join(schema)}")
        if not schema[propensity].is_numeric():
            raise ValueError(
                f"the propensity column {propensity!r} must hold numbers, not {schema[propensity]}"
            )
    raw = () if propensity is None else (propensity,)
    prepared, columns, _ = prepare(frame, columns, raw=raw)
    placed = prepared.filter(~nw.col("episode").is_null() & ~nw.col("moment").is_null())
    order = ["episode", "moment", "status", *labels(columns), *(f"raw {name}" for name in raw)]
    rows = placed.sort(order, descending=[name == "status" for name in order]).collect(
        backend="pyarrow"
    )
    return rows.to_native(), columns


def _indices(part: Part, usable: BoolArray, space: Space, name: str) -> IntArray:
    """Index of the label of each usable record; an unknown label is an error that names the nearest."""
    codes, inverse = np.unique(part.codes[usable], axis=0, return_inverse=True)
    combinations = [
        tuple(values[code] for values, code in zip(part.labels, row, strict=True)) for row in codes
    ]
    index = _known(space, [label if len(label) > 1 else label[0] for label in combinations], name)
    return index[inverse.ravel()]


def _known(space: Space, labels: Sequence[Label], name: str) -> IntArray:
    try:
        return space.indices(labels)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _pieces(rows: pa.Table, usable: BoolArray, leads: BoolArray) -> tuple[IntArray, IntArray]:
    """Episode and step of each usable record; an unusable one breaks the chain.

    So does one that does not lead to the state of the next, [N - 1], or is of the same time.
    """
    same = _same_episode(rows.column("episode"))
    goes_on = same & leads & (np.diff(numbers_of(rows, "moment")) > 0)
    broken = int((usable[:-1] & usable[1:] & same & ~goes_on).sum())
    if broken:
        message = f"{so_many(broken)} in another state than the one before in the episode led to, or of the same time"
        advice = "Each begins an episode of its own; validating the log shows them"
        warnings.warn(f"{message}. {advice}", LogWarning, stacklevel=4)
    first = np.append(True, ~(usable[:-1] & goes_on))[usable]
    number = np.cumsum(first) - 1
    return number, np.arange(len(first)) - np.flatnonzero(first)[number]


def _same_episode(episode: pa.ChunkedArray) -> BoolArray:
    """Whether each record and the next are of one episode: [N - 1]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = (
        episode.cast(episode.type.value_type) if pa.types.is_dictionary(episode.type) else episode
    )
    same = pc.equal(plain.slice(1), plain.slice(0, len(plain) - 1))
    return np.asarray(as_numpy(same.cast(pa.int8())) > 0)


def _propensities(rows: pa.Table, usable: BoolArray, name: str) -> FloatArray:
    values = numbers_of(rows, f"raw {name}")
    bad = usable & ~((values > 0) & (values <= 1))
    if bad.any():
        row = int(bad.argmax())
        where = f"in episode {rows.column('episode')[row].as_py()!r} at {rows.column('moment')[row].as_py():g}"
        raise ValueError(
            f"the propensity column {name!r} is {values[row]:g} {where}; it must lie in (0, 1]"
        )
    return values[usable]
