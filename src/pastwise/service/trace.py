"""The course of a policy's outcomes in a few dozen points, however many outcomes there are.

Outcomes are collected in batches of equal size. When there are too many batches, neighbours are
joined and the size doubles, so the trace covers all outcomes and stays small.
"""

from __future__ import annotations

import msgspec

FIRST_SIZE = 20
"""Outcomes of a batch at first: a mean of fewer says little."""

MOST = 60
"""Batches before neighbours are joined: more than a picture of a line needs."""


class Batch(msgspec.Struct, array_like=True):
    """Outcomes that came one after another.

    Attributes
    ----------
    since, until : int
        When the first and the last of them came, in milliseconds since 1970.
    outcomes : int
    observed : float
        Sum of the utilities of those in ``rows``.
    evidence : float
        Evidence of a change after the last of them.
    rows : dict
        Number of outcomes by row of the log, of those that have a utility.
    """

    since: int
    until: int
    outcomes: int = 0
    observed: float = 0.0
    evidence: float = 0.0
    rows: dict[int, int] = {}

    def joined(self, later: Batch) -> Batch:
        """One batch of two neighbours."""
        rows = dict(self.rows)
        for row, number in later.rows.items():
            rows[row] = rows.get(row, 0) + number
        return Batch(
            since=self.since,
            until=later.until,
            outcomes=self.outcomes + later.outcomes,
            observed=self.observed + later.observed,
            evidence=later.evidence,
            rows=rows,
        )


class Trace(msgspec.Struct, array_like=True):
    """Batches of outcomes, the oldest first; only the last one may be incomplete."""

    size: int = FIRST_SIZE
    batches: list[Batch] = []

    def add(self, row: int, utility: float | None, at: int) -> bool:
        """Take in an outcome.

        Parameters
        ----------
        row : int
            Row of the log.
        utility : float, optional
            None where the goal cannot judge it.
        at : int
            When it came, in milliseconds since 1970.

        Returns
        -------
        bool
            Whether a batch is complete; `close` it then.
        """
        if not self.batches or self.batches[-1].outcomes >= self.size:
            self.batches.append(Batch(at, at))
        batch = self.batches[-1]
        batch.until = at
        batch.outcomes += 1
        if utility is not None:
            batch.observed += utility
            batch.rows[row] = batch.rows.get(row, 0) + 1
        return batch.outcomes >= self.size

    def close(self, evidence: float) -> None:
        """Note the evidence after the last batch, and join batches if there are too many."""
        self.batches[-1].evidence = evidence
        if len(self.batches) < MOST:
            return
        pairs = zip(self.batches[::2], self.batches[1::2], strict=True)
        self.batches = [first.joined(second) for first, second in pairs]
        self.size *= 2
