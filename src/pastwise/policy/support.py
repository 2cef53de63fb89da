"""What the rule of each state rests on, in the user's labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from pastwise._display import MAX_ROWS, Table, more_of, to_frame
from pastwise._numerics.arrays import IntArray
from pastwise.data.episodes import episode_noun
from pastwise.data.space import Label, Space, key_of
from pastwise.logs.findings import counted
from pastwise.policy.advice import WEAK
from pastwise.policy.pictures import support_html
from pastwise.policy.rule import label_columns
from pastwise.theory.learning import StateSupport

MAX_NAMED = 5
"""Weak states that a warning names."""


@dataclass(frozen=True)
class SupportOfState:
    """What the rule of one state rests on.

    Attributes
    ----------
    records : int
        Number of records.
    similarity : float
        Their total similarity, the weight that they carry.
    effective : float
        The number of equally similar records that would be as informative.
    prior_share : float
        The part of the rule that comes from the prior.
    episodes : int, optional
        Number of episodes that the records come from; None where the log has none.
    """

    records: int
    similarity: float
    effective: float
    prior_share: float
    episodes: int | None = None

    def to_dict(self) -> dict[str, float]:
        """Plain values; ``episodes`` only where the log has any."""
        return {name: number for name, number in asdict(self).items() if number is not None}


@dataclass(frozen=True, eq=False, repr=False)
class Support(Mapping[Label, SupportOfState]):
    """What the rule of each state rests on, by label.

    Attributes
    ----------
    states : Space
    arrays : StateSupport
    backend : str, optional
        Library whose data frames `to_frame` makes by default.
    terminal : [number]
        Indices of the states in which an episode ends. Nothing is decided there, so their rule
        may rest on nothing.
    episodes : [S], optional
        Number of episodes that leave each state, where the log has any.
    unit : str, optional
        Name of the episode column.
    """

    states: Space
    arrays: StateSupport
    backend: str | None = None
    terminal: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    episodes: IntArray | None = None
    unit: str | None = None

    def __getitem__(self, state: Label) -> SupportOfState:
        return self._at(self.states.index(state))

    def __iter__(self) -> Iterator[Label]:
        return iter(self.states.labels)

    def __len__(self) -> int:
        return len(self.states)

    def _at(self, index: int) -> SupportOfState:
        arrays = self.arrays
        return SupportOfState(
            records=int(arrays.records[index]),
            similarity=float(arrays.similarity[index]),
            effective=float(arrays.effective[index]),
            prior_share=float(arrays.prior_share[index]),
            episodes=None if self.episodes is None else int(self.episodes[index]),
        )

    @property
    def noun(self) -> str:
        """What several episodes are called."""
        return episode_noun(self.unit)

    def to_dict(self, first: int | None = None) -> dict[str, dict[str, float]]:
        """Plain values by the key of each state, or of the first ones."""
        labels = self.states.labels[:first]
        return {key_of(label): self._at(index).to_dict() for index, label in enumerate(labels)}

    def to_frame(self, backend: str | None = None) -> Any:
        """A data frame with a row for each state."""
        arrays = self.arrays
        numbers: dict[str, list[Any]] = {
            "records": arrays.records.astype(np.int64).tolist(),
            "similarity": arrays.similarity.tolist(),
            "effective": arrays.effective.tolist(),
            "prior_share": arrays.prior_share.tolist(),
        }
        if self.episodes is not None:
            numbers["episodes"] = self.episodes.tolist()
        states = label_columns(self.states, "state", numbers)
        return to_frame({**states, **numbers}, backend or self.backend)

    def table(self, max_rows: int | None = MAX_ROWS) -> Table:
        """What the rule of the most visited states rests on.

        Parameters
        ----------
        max_rows : int, optional
            Number of states; None for all.
        """
        order = np.argsort(-self.arrays.records, kind="stable")[:max_rows].tolist()
        columns = ["state", "records"]
        if self.episodes is not None:
            columns.append(self.noun)
        columns += ["similarity", "effective records", "share of the prior"]
        rows = []
        for index in order:
            each = self._at(index)
            cells = [key_of(self.states.labels[index]), f"{each.records:,}"]
            if each.episodes is not None:
                cells.append(f"{each.episodes:,}")
            cells += [f"{each.similarity:.3g}", f"{each.effective:.3g}", f"{each.prior_share:.3g}"]
            rows.append(tuple(cells))
        return Table(tuple(columns), tuple(rows), note=more_of(len(self), len(rows), "state"))

    def __repr__(self) -> str:
        return f"Support({counted(len(self), 'state')})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.table()}"

    def _repr_html_(self) -> str:
        return support_html(self, MAX_ROWS)

    def warnings(self, by_similarity: bool = True) -> list[str]:
        """Sentences about states whose rule rests on too little.

        Parameters
        ----------
        by_similarity : bool
            Whether the similarity of records carries the rule, as with TL. If not, any record
            counts.
        """
        is_weak = self.arrays.similarity < WEAK if by_similarity else self.arrays.records == 0
        weak = np.setdiff1d(np.flatnonzero(is_weak), self.terminal)
        if not len(weak):
            return []
        names = [key_of(self.states.labels[index]) for index in weak[:MAX_NAMED]]
        if len(weak) > MAX_NAMED:
            names.append("...")
        share = f"{len(weak):,} of {len(self.states):,} states"
        if by_similarity:
            lack = (
                f"rest on a total similarity below {WEAK:g}, less than one record that serves "
                "the goal"
            )
        else:
            lack = "have no record of a decision, so their rule rests on other states"
        return [f"{share} {lack}: {', '.join(names)}"]
