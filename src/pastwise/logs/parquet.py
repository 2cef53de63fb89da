"""Counting by codes: text in Parquet files is numbered already, so a log may be counted without looking at its labels.

A file keeps the distinct texts of a column once and numbers in their place. These numbers, made the same for all
batches, are the indices of an array of all transitions, [state, action, next state], in which records are counted as
they are read. Where such an array would be too large, or a log needs more than that (windows, bins, weights), an
engine groups it instead; see `query`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pastwise._numerics.arrays import IntArray
from pastwise.logs.columns import Columns

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CELLS = 2**25
"""Cells of the largest array of counts: 128 MiB, or twice as much for a very long log."""

MOST_RECORDS = 2**31 - 1
"""Up to so many records counts have 32 bits."""

BATCH = 2**17
"""Records that are read at a time."""


class Codes:
    """Numbers of texts in the order in which they come, from 1 on; 0 is a missing one."""

    def __init__(self) -> None:
        self.numbers: dict[str | None, int] = {None: 0}
        self._last: tuple[Any, IntArray] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, dictionary: pa.Array) -> IntArray:
        """Numbers of the texts of a batch, and then of a missing one: [texts + 1]."""
        if self._last is None or not self._last[0].equals(dictionary):
            numbers = [
                self.numbers.setdefault(text, len(self.numbers)) for text in dictionary.to_pylist()
            ]
            self._last = dictionary, np.array([*numbers, 0], dtype=np.int64)
        return self._last[1]


class Tally:
    """Counts of all transitions between coded labels, in an array that grows with the labels.

    Attributes
    ----------
    states, actions : Codes
    counts : [states, actions, states], each with some room
    """

    def __init__(self) -> None:
        self.states, self.actions = Codes(), Codes()
        self.counts: Any = np.zeros((16, 16, 16), dtype=np.int32)
        self._records = 0
        self._key, self._part = np.empty(
            (2, BATCH), dtype=np.int64
        )  # new ones for each batch take longer to get

    def add(self, state: pa.Array, action: pa.Array, next_state: pa.Array) -> bool:
        """Count a batch of records, given by dictionary; False if the array would be too large."""
        columns = (state, action, next_state)
        kinds = (self.states, self.actions, self.states)
        numbers = [kind.of(column.dictionary) for kind, column in zip(kinds, columns, strict=True)]
        if not self._grow():
            return False
        self._records += len(state)
        if self._records > MOST_RECORDS:
            self.counts = self.counts.astype(np.int64, copy=False)
        _, A, S = self.counts.shape
        key, part = self._key[: len(state)], self._part[: len(state)]
        key[:] = 0
        for each, column, step in zip(numbers, columns, (A * S, S, 1), strict=True):
            key += _take(each * step, column.indices, out=part)
        np.add.at(self.counts.reshape(-1), key, self.counts.dtype.type(1))
        return True

    def _grow(self) -> bool:
        """Make room for all labels."""
        S, A = (1 << max(4, (len(kind) - 1).bit_length()) for kind in (self.states, self.actions))
        if S * A * S > MOST_CELLS:
            return False
        if self.counts.shape != (S, A, S):
            before, self.counts = self.counts, np.zeros((S, A, S), dtype=self.counts.dtype)
            s, a, n = before.shape
            self.counts[:s, :a, :n] = before
        return True


def _take(numbers: IntArray, indices: pa.Array, out: IntArray) -> IntArray:
    """The number of each record; a missing index takes the last one."""
    filled = indices.fill_null(len(numbers) - 1) if indices.null_count else indices
    places: IntArray = np.from_dlpack(filled)  # type: ignore[assignment]
    return numbers.take(
        places, out=out, mode="clip"
    )  # they all are in range; to make sure would take longer


def is_plain(columns: Columns) -> bool:
    """Whether a log is nothing but state, action and next state, each a single column."""
    single = len(columns.state) == len(columns.action) == len(columns.next_state) == 1
    more = (
        columns.count,
        columns.weight,
        columns.task,
        columns.age,
        columns.episode,
        columns.time,
        columns.bins,
    )
    return single and not any(more)


def tally(paths: Sequence[str], columns: Columns) -> Tally | None:
    """Count Parquet files by codes; None where that cannot be done, and an engine has to."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [columns.state[0], columns.action[0], columns.next_state[0]]
    found = Tally()
    try:
        for path in paths:
            if not _is_text(pq.read_schema(path), names):
                return None
            with pq.ParquetFile(
                path, read_dictionary=names, pre_buffer=False
            ) as file:  # else all of it is in memory
                for batch in _ahead(file.iter_batches(BATCH, columns=names)):
                    if not found.add(*(batch.column(name) for name in names)):
                        return None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None  # the engine says what is wrong
    return found


def _is_text(schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether each column is there once and holds text; a name with a dot would be taken for a path."""
    import pyarrow as pa

    if any("." in name or len(schema.get_all_field_indices(name)) != 1 for name in names):
        return False
    return all(pa.types.is_string(schema.field(name).type) for name in names)


def _ahead(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches, each read while the one before is worked on."""
    from concurrent.futures import ThreadPoolExecutor

    source = iter(batches)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, source, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield batch
