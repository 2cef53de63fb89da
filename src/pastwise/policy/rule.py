"""What a learner answers with, in the user's labels: the rule, what it rests on, and why."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._display import MAX_ROWS, rule_table, to_frame
from pastwise._files import replacing
from pastwise._numerics.arrays import FloatArray, sample
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import UnseenStateWarning

WEAK = 1.0
"""A rule that rests on less total similarity than this, one perfectly similar record, is shown dimmed and warned of."""


@dataclass(frozen=True, eq=False)
class Rule(Mapping[Label, dict[Label, float]]):
    """A decision rule by labels: ``rule[state][action]`` is a probability.

    Attributes
    ----------
    states, actions : Space
    probabilities : [S, A]
    similarity : [S]
        Total similarity that the rule of each state rests on.
    fallback : [A], optional
        Rule for a state that the log does not have; without it such a state is an error.
    """

    states: Space
    actions: Space
    probabilities: FloatArray
    similarity: FloatArray
    fallback: FloatArray | None = None
    backend: str | None = None

    def row(self, state: Label) -> FloatArray:
        """Probabilities of the actions: [A]."""
        return self._row(state)

    def _row(self, state: Label) -> FloatArray:
        """For the public methods: each calls it directly, so that a warning points at the line of their caller."""
        index = known_index(self.states, state, refuse=self.fallback is None, stacklevel=4)
        return np.asarray(self.fallback if index is None else self.probabilities[index])

    def __getitem__(self, state: Label) -> dict[Label, float]:
        return dict(zip(self.actions.labels, self._row(state).tolist(), strict=True))

    def __contains__(self, state: object) -> bool:
        """Whether the log has the state; to look does not warn."""
        try:
            self.states.index(state)
        except (ValueError, TypeError):
            return False
        return True

    def get(self, state: Label, default: Any = None) -> Any:
        """The rule of a state that the log has, otherwise the default."""
        if state not in self:
            return default
        return self[state]

    def __iter__(self) -> Iterator[Label]:
        return iter(self.states.labels)

    def __len__(self) -> int:
        return len(self.states)

    def sample(self, state: Label, rng: np.random.Generator) -> Label:
        """Draw an action."""
        return self.actions.labels[int(sample(self._row(state), np.asarray(rng.random())))]

    def to_dict(self, first: int | None = None) -> dict[str, dict[str, float]]:
        """Probabilities by the keys of states, or of the first ones, and of actions."""
        names = [key_of(action) for action in self.actions.labels]
        rows = zip(self.states.labels[:first], self.probabilities[:first].tolist(), strict=True)
        return {key_of(state): dict(zip(names, row, strict=True)) for state, row in rows}

    def columns(self) -> dict[str, list[Any]]:
        """A row for each state and action: its fields, the probability, and the similarity behind the state's rule."""
        S, A = len(self.states), len(self.actions)
        numbers = {
            "probability": self.probabilities.ravel().tolist(),
            "similarity": np.repeat(self.similarity, A).tolist(),
        }
        states = _field_columns(self.states, "state", {"action", *numbers}, A, 1)
        actions = _field_columns(self.actions, "action", {*states, *numbers}, 1, S)
        return {**states, **actions, **numbers}

    def to_frame(self, backend: str | None = None) -> Any:
        """The rule as a data frame of the library that the log came in, or of the one that is named."""
        return to_frame(self.columns(), backend or self.backend)

    def export(self, path: str | Path) -> None:
        """Write the rule as a table, .parquet or .csv, or by keys, .json."""
        from pastwise._files import write_columns

        suffix = Path(path).suffix.lower()
        if suffix not in (".parquet", ".csv", ".json"):
            raise ValueError(f"{path}: a rule is exported as .parquet, .csv or .json")
        with replacing(path) as beside:
            if suffix == ".parquet":
                import pyarrow as pa
                import pyarrow.parquet as pq

                pq.write_table(pa.table(self.columns()), beside)
            elif suffix == ".csv":
                write_columns(beside, self.columns())
            else:
                self._write_json(beside)

    def _write_json(self, path: Path) -> None:
        """Probabilities by keys, a line for each state."""
        names = [key_of(action) for action in self.actions.labels]
        rows = zip(self.states.labels, self.probabilities, strict=True)
        with path.open("w", encoding="utf-8") as file:
            for mark, (state, row) in zip(chain("{", repeat(",")), rows, strict=False):
                content = json.dumps(
                    {key_of(state): dict(zip(names, row.tolist(), strict=True))}, ensure_ascii=False
                )
                file.write(f"{mark}\n{content[1:-1]}")
            file.write("\n}\n")

    def _repr_html_(self) -> str:
        return rule_table(
            self.to_dict(MAX_ROWS), (self.similarity[:MAX_ROWS] < WEAK).tolist(), len(self)
        )


def known_index(states: Space, state: Label, *, refuse: bool, stacklevel: int = 3) -> int | None:
    """Index of a state; for one that the log does not have None with a warning, or an error.

    The warning points at the caller of the function that calls this one, or by ``stacklevel`` further up.
    """
    try:
        return states.index(state)
    except ValueError:
        if refuse:
            raise
    message = f"the log has no state {state!r}: the prior answers for it"
    warnings.warn(message, UnseenStateWarning, stacklevel=stacklevel)
    return None


def _field_columns(
    space: Space, name: str, taken: Collection[str], repeat: int = 1, tile: int = 1
) -> dict[str, list[Any]]:
    """Labels of a space as columns, one for each field; each label ``repeat`` times, all of it ``tile`` times.

    A field whose name is taken has the space's name before its own.
    """
    names = space.fields if space.is_product else (name,)
    parts = list(zip(*space.labels, strict=True)) if space.is_product else [space.labels]
    columns: dict[str, list[Any]] = {}
    for column, part in zip(names, parts, strict=True):
        while column in taken or column in columns:
            column = f"{name} {column}"
        columns[column] = [x for label in part for x in [label] * repeat] * tile
    return columns
