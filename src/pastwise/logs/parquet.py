"""Counting by codes: Parquet numbers the texts of a column, so labels need not be looked at.

A file stores the distinct texts of a column once, in a *dictionary*, and for each record the place
of its text there. `Codes` turns these places into numbers that agree between batches and files.
The numbers are the indices of an array of all transitions, [state, action, next state], in which a
`Tally` counts records as they are read. An engine groups the log instead (see `query`) where that
array would be too large, or where a log needs more: windows, bins, weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pastwise._numerics.arrays import IntArray
from pastwise.logs.columns import Columns

MOST_CELLS = 2**25
"""Cells of the largest array of counts: 128 MiB, or twice as much for a very long log."""

MOST_RECORDS = 2**31 - 1
"""Up to this many records a count fits 32 bits."""

BATCH = 2**17
"""Records read at a time."""

LEAST_SIZE = 16
"""Smallest axis of the array of counts; axes grow by powers of two."""


class Codes:
    """Numbers of texts in the order in which they first appear, from 1 on; 0 is a missing text."""

    def __init__(self) -> None:
        self.numbers: dict[str | None, int] = {None: 0}
        self._last: tuple[pa.Array, IntArray] | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, dictionary: pa.Array) -> IntArray:
        """Numbers of the texts of a dictionary and, at the end, of a missing text: [texts + 1]."""
        if self._last is not None and self._last[0].equals(dictionary):
            return self._last[1]
        numbers = []
        for text in dictionary.to_pylist():
            numbers.append(self.numbers.setdefault(text, len(self.numbers)))
        codes = np.array([*numbers, 0], dtype=np.int64)
        self._last = (dictionary, codes)
        return codes


class Tally:
    """Counts of all transitions between coded labels, in an array that grows with the labels.

    Attributes
    ----------
    states, actions : Codes
    counts : [states, actions, states], each axis with some room
    """

    def __init__(self) -> None:
        self.states = Codes()
        self.actions = Codes()
        self.counts: Any = np.zeros((LEAST_SIZE, LEAST_SIZE, LEAST_SIZE), dtype=np.int32)
        self._num_records = 0
        # Buffers for a batch; allocating them for each batch takes longer.
        self._key = np.empty(BATCH, dtype=np.int64)
        self._part = np.empty(BATCH, dtype=np.int64)

    def add(self, state: pa.Array, action: pa.Array, next_state: pa.Array) -> bool:
        """Count a batch of dictionary-encoded records; False if the array would be too large."""
        # New labels, and room for them.
        state_codes = self.states.of(state.dictionary)
        action_codes = self.actions.of(action.dictionary)
        next_codes = self.states.of(next_state.dictionary)
        if not self._grow():
            return False
        self._num_records += len(state)
        if self._num_records > MOST_RECORDS:
            self.counts = self.counts.astype(np.int64, copy=False)

        # Flat index of each record into the counts.
        _, A, S = self.counts.shape
        key = self._key[: len(state)]
        part = self._part[: len(state)]
        key[:] = 0
        key += _take(state_codes * (A * S), state.indices, out=part)
        key += _take(action_codes * S, action.indices, out=part)
        key += _take(next_codes, next_state.indices, out=part)

        np.add.at(self.counts.reshape(-1), key, self.counts.dtype.type(1))
        return True

    def _grow(self) -> bool:
        """Make room for all labels; False if that takes too much memory."""
        S = _axis_size(len(self.states))
        A = _axis_size(len(self.actions))
        if S * A * S > MOST_CELLS:
            return False
        if self.counts.shape != (S, A, S):
            before = self.counts
            s, a, n = before.shape
            self.counts = np.zeros((S, A, S), dtype=before.dtype)
            self.counts[:s, :a, :n] = before
        return True


def _axis_size(number: int) -> int:
    """The power of two that has room for a number of labels."""
    return max(LEAST_SIZE, 1 << (number - 1).bit_length())


def _take(numbers: IntArray, indices: pa.Array, out: IntArray) -> IntArray:
    """The number of each record; a missing index takes the last one."""
    filled = indices.fill_null(len(numbers) - 1) if indices.null_count else indices
    places: IntArray = np.from_dlpack(filled)  # type: ignore[assignment]
    # All places are in range; "clip" saves the time of a check.
    return numbers.take(places, out=out, mode="clip")


def is_plain(columns: Columns) -> bool:
    """Whether a log is only state, action and next state, each a single column."""
    if columns.features:
        return False
    is_single = len(columns.state) == len(columns.action) == len(columns.next_state) == 1
    others = (
        columns.count,
        columns.weight,
        columns.task,
        columns.age,
        columns.episode,
        columns.time,
        columns.bins,
        columns.reward,
    )
    return is_single and not any(others)


def tally(paths: Sequence[str], columns: Columns) -> Tally | None:
    """Count Parquet files by codes; None where an engine has to count them instead."""
    names = [columns.state[0], columns.action[0], columns.next_state[0]]
    found = Tally()
    try:
        for path in paths:
            # With pre_buffer the whole file would be in memory.
            with pq.ParquetFile(path, read_dictionary=names, pre_buffer=False) as file:
                if not _is_text(file.schema_arrow, names):
                    return None
                for batch in _read_ahead(file.iter_batches(BATCH, columns=names)):
                    state, action, next_state = (batch.column(name) for name in names)
                    if not found.add(state, action, next_state):
                        return None
    except (pa.ArrowException, OSError, UnicodeDecodeError, KeyError):
        return None  # the engine says what is wrong
    return found


def _is_text(schema: pa.Schema, names: Sequence[str]) -> bool:
    """Whether each column occurs once and holds text, read as dictionaries.

    A name with a dot would mean a path.
    """
    for name in names:
        if "." in name or len(schema.get_all_field_indices(name)) != 1:
            return False
        dtype = schema.field(name).type
        if not pa.types.is_dictionary(dtype) or not pa.types.is_string(dtype.value_type):
            return False
    return True


def _read_ahead(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches, each read while the one before is counted."""
    source = iter(batches)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, source, None)
        while (batch := coming.result()) is not None:
            coming = reader.submit(next, source, None)
            yield batch
