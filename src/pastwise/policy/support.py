"""What the rule of each state rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pastwise._display import to_frame
from pastwise._numerics.arrays import IntArray
from pastwise.data.space import Label, Space, key_of
from pastwise.policy.rule import WEAK, _field_columns
from pastwise.theory.learning import StateSupport


@dataclass(frozen=True, eq=False)
class Support:
    """What the rule of each state rests on, by label.

    Attributes
    ----------
    terminal : [terminal states]
        Indices of the states in which an episode ends: nothing is decided there, so their rule may rest on nothing.
    """

    states: Space
    arrays: StateSupport
    backend: str | None = None
    terminal: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __getitem__(self, state: Label) -> dict[str, float]:
        index = self.states.index(state)
        return {name: values[0] for name, values in self._lists(slice(index, index + 1)).items()}

    def _lists(self, states: slice = slice(None)) -> dict[str, list[float]]:
        arrays = self.arrays
        return {
            "records": arrays.records[states].astype(np.int64).tolist(),
            "similarity": arrays.similarity[states].tolist(),
            "effective": arrays.effective[states].tolist(),
            "prior_share": arrays.prior_share[states].tolist(),
        }

    def to_dict(self, first: int | None = None) -> dict[str, dict[str, float]]:
        """By the key of each state, or of the first ones."""
        lists = self._lists(slice(first))
        rows = zip(self.states.labels[:first], *lists.values(), strict=True)
        return {key_of(state): dict(zip(lists, row, strict=True)) for state, *row in rows}

    def to_frame(self, backend: str | None = None) -> Any:
        """A row for each state."""
        lists = self._lists()
        return to_frame(
            {**_field_columns(self.states, "state", lists), **lists}, backend or self.backend
        )

    def warnings(self) -> list[str]:
        """States whose rule rests on too little, in words."""
        weak = np.setdiff1d(np.flatnonzero(self.arrays.similarity < WEAK), self.terminal)
        if not len(weak):
            return []
        names = ", ".join(key_of(self.states.labels[i]) for i in weak[:5]) + (
            ", ..." if len(weak) > 5 else ""
        )
        return [
            f"{len(weak)} of {len(self.states)} states rest on a total similarity below {WEAK:g}, "
            f"less than one record that serves the goal: {names}"
        ]
