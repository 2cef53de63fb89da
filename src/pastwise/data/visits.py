"""The states of a log, the most visited first: their labels, with records and episodes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pastwise._display import MAX_ROWS, Table, more_of
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.data.space import key_of


@dataclass(frozen=True)
class StateVisit:
    """How often a state was visited.

    Attributes
    ----------
    state : str
        The state's key: how goals, files and commands name it.
    records : int
        Records that leave the state: decisions that were made in it.
    entered : int
        Records that lead to it.
    episodes : int, optional
        Episodes with a decision in it, if the log has episodes.
    terminal : bool
        Whether an episode ends in it.
    """

    state: str
    records: int
    entered: int
    episodes: int | None
    terminal: bool


@dataclass(frozen=True)
class StateVisits:
    """All states of a log, the most visited first.

    Examples
    --------
    >>> log = {"room": ["cold", "cold", "mild"], "did": ["heat", "wait", "wait"],
    ...        "then": ["mild", "cold", "mild"]}
    >>> from pastwise import count_transitions
    >>> counts = count_transitions(log, state="room", action="did", next_state="then")
    >>> print(StateVisits.of(counts))
    state  records  entered
    cold         2        1
    mild         1        2
    """

    states: tuple[StateVisit, ...]
    fields: tuple[str, ...] = ()

    @classmethod
    def of(cls, counts: TransitionCounts, episodes: EpisodeSummary | None = None) -> StateVisits:
        """The states of counts, with what is known of their episodes."""
        size = len(counts.states)
        records = np.zeros(size, dtype=np.int64)
        entered = np.zeros(size, dtype=np.int64)
        np.add.at(records, counts.state, counts.records)
        np.add.at(entered, counts.next_state, counts.records)
        is_terminal = np.zeros(size, dtype=bool)
        is_terminal[counts.terminal] = True
        visits = None if episodes is None else episodes.visits

        # States that were visited equally often stay in the order of their labels.
        order = np.argsort(-np.maximum(records, entered), kind="stable")
        states = []
        for i in order.tolist():
            visit = StateVisit(
                state=key_of(counts.states.labels[i]),
                records=int(records[i]),
                entered=int(entered[i]),
                episodes=None if visits is None else int(visits.by_state[i]),
                terminal=bool(is_terminal[i]),
            )
            states.append(visit)
        return cls(tuple(states), counts.states.fields)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"fields": list(self.fields), "states": [asdict(visit) for visit in self.states]}

    def table(self, max_rows: int | None = MAX_ROWS) -> Table:
        """The states as a table; all of them if ``max_rows`` is None."""
        has_episodes = any(visit.episodes is not None for visit in self.states)
        names = ["state", "records", "entered"]
        if has_episodes:
            names.append("episodes")
        rows = []
        for visit in self.states[:max_rows]:
            cells = [visit.state, f"{visit.records:,}", f"{visit.entered:,}"]
            if has_episodes:
                cells.append(f"{visit.episodes:,}")
            rows.append(tuple(cells))
        note = more_of(len(self.states), len(rows), "state")
        return Table(tuple(names), tuple(rows), note=note)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().to_html()
