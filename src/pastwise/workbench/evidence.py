"""Rows of the log behind an explanation.

The process that reads logs finds the rows of all transitions that leave a state at once. They do
not depend on a goal, so they are kept with the id of the counts: a log is not read again while
somebody moves a slider with the reasons of a state open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pastwise.service.problems import Problem
from pastwise.workbench.counts import Cache
from pastwise.workbench.projects import log_file
from pastwise.workbench.types_preview import EvidenceRow, ExplanationView

if TYPE_CHECKING:
    from pastwise.workbench.app import Workbench

RowsByTransition = dict[str, dict[str, list[EvidenceRow]]]
"""Rows by action and next state."""


class RowsBehind:
    """Finds rows, and keeps those of the last few states.

    Parameters
    ----------
    kept : int
        States whose rows are kept: those that somebody looks at in turn.
    """

    def __init__(self, kept: int = 64) -> None:
        self._found: Cache[RowsByTransition] = Cache(kept)

    async def add_to(
        self, view: ExplanationView, bench: Workbench, counts_id: str, rows: int, who: str
    ) -> None:
        """Add the first rows behind each piece of evidence, where the log is at hand as it was.

        Parameters
        ----------
        rows : int
            Rows of each piece.
        who : str
            Of the requests of one caller that wait for a log, the newest gets its turn.
        """
        project = bench.projects.of_counts(counts_id)
        is_at_hand = project.source.file and project.counts == counts_id
        if not is_at_hand or project.mapping is None or rows == 0:
            return
        key = f"{counts_id} {rows} {view.state}"

        async def read(file: str) -> None:
            # The request whose turn was before this one may have been for the same state.
            if self._found.find(key) is None:
                result = await bench.reader.ask(
                    "behind",
                    file=file,
                    counts=str(bench.projects.counts_file(counts_id)),
                    state=view.state,
                    limit=rows,
                )
                self._found.put(key, msgspec.convert(result, RowsByTransition))

        if self._found.find(key) is None:
            try:
                file = log_file(project)
            except Problem as problem:
                view.without_rows = problem.detail
                return
            await bench.turns.take(f"{who} rows", lambda: read(file))
        found = self._found.find(key) or {}
        actions = list(view.actions) if view.action is None else [view.action]
        for action in actions:
            by_next_state = found.get(action, {})
            for evidence in view.actions[action].evidence:
                evidence.rows = by_next_state.get(evidence.next_state, [])
