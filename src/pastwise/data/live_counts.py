"""Counts that records are added to, one at a time."""

from __future__ import annotations

import numpy as np

from pastwise.data.counts import TransitionCounts


class LiveCounts:
    """Counts of a single log that records are added to, one at a time, without looking at the rest of it."""

    def __init__(self, counts: TransitionCounts) -> None:
        self._base = counts
        self._added: dict[
            int, dict[int, list[float]]
        ] = {}  # row -> key -> records, weight, squared weight

    def add(self, state: int, action: int, next_state: int, weight: float) -> None:
        """Take in one record, given by index."""
        S, A = len(self._base.states), len(self._base.actions)
        row = state * A + action
        sums = self._added.setdefault(row, {}).setdefault(row * S + next_state, [0, 0.0, 0.0])
        for place, value in enumerate((1, weight, weight**2)):
            sums[place] += value

    def row(self, state: int, action: int) -> TransitionCounts:
        """The counts of one state and action alone."""
        S, row = len(self._base.states), state * len(self._base.actions) + action
        start, stop = np.searchsorted(self._base.key, (row * S, (row + 1) * S))
        base = self._base.where(slice(start, stop))
        return base.plus(self._added.get(row, {}))

    def counts(self) -> TransitionCounts:
        """All counts, frozen."""
        added = {key: sums for row in self._added.values() for key, sums in row.items()}
        return self._base.plus(added)
