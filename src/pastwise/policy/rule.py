"""A decision rule in the user's labels."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._display import MAX_ROWS, NOTHING, Table, more_of, to_frame
from pastwise._files import replacing, write_columns
from pastwise._numerics.arrays import FloatArray, sample
from pastwise.data.episodes import episode_noun
from pastwise.data.space import Label, Space, key_of, labels_of_one_type
from pastwise.errors import (
    LabelError,
    ParameterError,
    UnknownLabelError,
    UnseenStateWarning,
    shown,
)
from pastwise.logs.findings import counted
from pastwise.logs.rows import Row, RowReader
from pastwise.policy.advice import Advice, Basis, advice_at, most_visited
from pastwise.policy.pictures import rule_html

RULE_ENDINGS = (".parquet", ".csv", ".json")
"""Endings of files that a rule alone is written to."""

PRIOR_ADVICE = 'on_unseen="prior" answers with the prior'
"""What to do about a state that the log does not have, in Python."""


@dataclass(frozen=True, eq=False, repr=False)
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
    backend : str, optional
        Library whose data frames `to_frame` makes by default.
    reader : RowReader, optional
        With it, a state may be given by raw values as well: ``rule[1.5]`` where the state is a bin,
        ``rule[{"lactate": 1.5, "ward": "A"}]`` for any columns.
    basis : Basis, optional
        What the rule was learned from; `advice` and tables then show records and episodes.
    """

    states: Space
    actions: Space
    probabilities: FloatArray
    similarity: FloatArray
    fallback: FloatArray | None = None
    backend: str | None = None
    reader: RowReader | None = None
    basis: Basis | None = None

    @cached_property
    def _reader(self) -> RowReader:
        return self.reader or RowReader(None, self.states)

    def row(self, state: Label | Row) -> FloatArray:
        """Probabilities of the actions: [A]."""
        return self._row(state)

    def _row(self, state: Label | Row) -> FloatArray:
        """For the public methods: each calls it directly, so a warning points at their caller."""
        index = known_index(self._reader.index, state, refuse=self.fallback is None, stacklevel=4)
        return np.asarray(self.fallback if index is None else self.probabilities[index])

    def __getitem__(self, state: Label | Row) -> dict[Label, float]:
        return dict(zip(self.actions.labels, self._row(state).tolist(), strict=True))

    def __contains__(self, state: object) -> bool:
        """Whether the log has the state; looking does not warn."""
        try:
            return self._reader.find(state) is not None
        except LabelError:
            return False

    def get(self, state: Label | Row, default: Any = None) -> Any:
        """The rule of a state that the log has, otherwise the default."""
        if state not in self:
            return default
        return self[state]

    def __iter__(self) -> Iterator[Label]:
        return iter(self.states.labels)

    def __len__(self) -> int:
        return len(self.states)

    def sample(self, state: Label | Row, rng: np.random.Generator) -> Label:
        """Sample an action."""
        index = sample(self._row(state), np.asarray(rng.random()))
        return self.actions.labels[int(index)]

    def to_dict(self, first: int | None = None) -> dict[str, dict[str, float]]:
        """Probabilities by the keys of states, or of the first ones, and of actions."""
        names = [key_of(action) for action in self.actions.labels]
        rows = zip(self.states.labels[:first], self.probabilities[:first].tolist(), strict=True)
        return {key_of(state): dict(zip(names, row, strict=True)) for state, row in rows}

    def columns(self) -> dict[str, list[Any]]:
        """The rule as a table with a row for each state and action.

        The columns are the fields of both, the probability, and the similarity behind the rule.
        """
        num_states = len(self.states)
        num_actions = len(self.actions)
        numbers = {
            "probability": self.probabilities.ravel().tolist(),
            "similarity": np.repeat(self.similarity, num_actions).tolist(),
        }
        states = label_columns(self.states, "state", {"action", *numbers}, repeat=num_actions)
        actions = label_columns(self.actions, "action", {*states, *numbers}, tile=num_states)
        return {**states, **actions, **numbers}

    def to_frame(self, backend: str | None = None) -> Any:
        """The rule as a data frame of the library that the log came in, or of the named one."""
        return to_frame(self.columns(), backend or self.backend)

    def export(self, path: str | Path) -> None:
        """Write the rule as a table (.parquet, .csv) or by keys (.json).

        In a table a column has one type: labels of several types become text, their keys. In a
        CSV file, text that a spreadsheet would run as a formula gets an apostrophe in front;
        see `_files.safe_cell`.
        """
        suffix = Path(path).suffix.lower()
        if suffix not in RULE_ENDINGS:
            raise ParameterError(f"{path}: a rule is exported as .parquet, .csv or .json")
        with replacing(path) as temporary:
            if suffix == ".parquet":
                self._write_parquet(temporary)
            elif suffix == ".csv":
                write_columns(temporary, self.columns())
            else:
                self._write_json(temporary)

    def _write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(self.columns()), path)

    def _write_json(self, path: Path) -> None:
        """Probabilities by keys, one line for each state."""
        names = [key_of(action) for action in self.actions.labels]
        separator = "{"
        with path.open("w", encoding="utf-8") as file:
            for state, row in zip(self.states.labels, self.probabilities, strict=True):
                rule = dict(zip(names, row.tolist(), strict=True))
                entry = json.dumps({key_of(state): rule}, ensure_ascii=False)
                file.write(f"{separator}\n{entry[1:-1]}")
                separator = ","
            file.write("\n}\n")

    # For a reader.

    def advice(self, first: int | None = None) -> list[Advice]:
        """The best action of each state with what it rests on, the most visited states first.

        Parameters
        ----------
        first : int, optional
            Number of states; all by default.
        """
        found = []
        for index in most_visited(len(self), self.basis, first):
            row = self.probabilities[index]
            similarity = float(self.similarity[index])
            found.append(advice_at(index, self.states, self.actions, row, similarity, self.basis))
        return found

    def table(self, max_rows: int | None = MAX_ROWS) -> Table:
        """Best action, runner-up and support of the most visited states.

        Parameters
        ----------
        max_rows : int, optional
            Number of states; None for all.
        """
        found = self.advice(max_rows)
        columns = ["state", "best action", "prob.", "runner-up"]
        support = self._support_columns()
        rows = []
        for each in found:
            cells = _advice_cells(each)
            cells += [cell for name, cell in _support_cells(each).items() if name in support]
            rows.append(tuple(cells))
        return Table(
            columns=(*columns, *support.values()),
            rows=tuple(rows),
            labels=(0, 1, 3),
            note=more_of(len(self), len(found), "state"),
            dimmed=tuple(each.is_weak for each in found),
            shades={2: [0.0 if each.is_end else each.probability for each in found]},
        )

    def wide_table(self) -> Table:
        """The probability of every action in every state, with its support."""
        order = most_visited(len(self), self.basis)
        found = self.advice()
        support = self._support_columns(with_action=False)
        rows = []
        for index, each in zip(order, found, strict=True):
            cells = [key_of(each.state), *(f"{p:.3f}" for p in self.probabilities[index])]
            cells += [cell for name, cell in _support_cells(each).items() if name in support]
            rows.append(tuple(cells))
        shades = {1 + a: self.probabilities[order, a].tolist() for a in range(len(self.actions))}
        actions = [key_of(action) for action in self.actions.labels]
        return Table(
            columns=("state", *actions, *support.values()),
            rows=tuple(rows),
            dimmed=tuple(each.is_weak for each in found),
            shades=shades,
        )

    def _support_columns(self, with_action: bool = True) -> dict[str, str]:
        """The columns on support that are known, and their titles."""
        if self.basis is None:
            return {"similarity": "similarity"}
        name = "records with it" if with_action else "records"
        columns = {name: name}
        episodes = self.basis.episodes
        if episodes is not None and episodes.visits is not None:
            noun = episode_noun(episodes.unit)
            kind = "episodes with it" if with_action else "episodes"
            columns[kind] = f"{noun} with it" if with_action else noun
        if self.basis.by_similarity:
            columns["similarity"] = "similarity"
        return columns

    def __repr__(self) -> str:
        return f"Rule({counted(len(self), 'state')}, {counted(len(self.actions), 'action')})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.table()}"

    def _repr_html_(self) -> str:
        return rule_html(self, MAX_ROWS)


def _advice_cells(advice: Advice) -> list[str]:
    """State, best action, its probability, and the runner-up."""
    state = key_of(advice.state)
    if advice.is_end:
        return [state, "(the end)", NOTHING, NOTHING]
    best = key_of(advice.action)
    runner_up = NOTHING
    if advice.num_best > 2:
        best = f"any of {advice.num_best:,}"
    elif advice.runner_up is not None:
        runner_up = key_of(advice.runner_up)
        if advice.runner_up_probability >= 0.0005:
            runner_up += f" {advice.runner_up_probability:.3f}"
    return [state, best, f"{advice.probability:.3f}", runner_up]


def _support_cells(advice: Advice) -> dict[str, str]:
    """What the advice rests on, by the names of `Rule._support_columns`."""
    is_one_action = advice.num_best <= 2 and not advice.is_end
    records = advice.records_with_action if is_one_action else None
    episodes = advice.episodes_with_action if is_one_action else None
    return {
        "records with it": _part(records, advice.records),
        "records": _part(None, advice.records),
        "episodes with it": _part(episodes, advice.episodes),
        "episodes": _part(None, advice.episodes),
        "similarity": f"{advice.similarity:.3g}",
    }


def _part(part: int | None, whole: int | None) -> str:
    """Such as: 32 of 110; or only the whole."""
    if whole is None:
        return NOTHING
    return f"{whole:,}" if part is None else f"{part:,} of {whole:,}"


def known_index(
    find: Callable[[object], int], state: object, *, refuse: bool, stacklevel: int = 3
) -> int | None:
    """Index of a state; None with a warning, or an error, for one that the log does not have.

    Parameters
    ----------
    find : callable
        Index of a state, or an `UnknownLabelError`; see `RowReader`.
    state
        A label, a raw value or a row.
    stacklevel : int
        The warning points at the caller of the function that calls this one, or further up.
    """
    try:
        return find(state)
    except UnknownLabelError as error:
        if refuse:
            error.advice = error.advice or PRIOR_ADVICE
            raise
    message = f"the log has no state {shown(state)}: the prior answers for it"
    warnings.warn(message, UnseenStateWarning, stacklevel=stacklevel)
    return None


def label_columns(
    space: Space, name: str, taken: Collection[str], *, repeat: int = 1, tile: int = 1
) -> dict[str, list[Any]]:
    """Labels of a space as columns, one for each field; see `labels_of_one_type`.

    Parameters
    ----------
    name : str
        Name of the column, where labels have a single field.
    taken : names
        A field with one of these names gets ``name`` in front of its own.
    repeat, tile : int
        Each label comes ``repeat`` times in a row, and all of that ``tile`` times.
    """
    names = space.fields if space.is_product else (name,)
    parts = list(zip(*space.labels, strict=True)) if space.is_product else [space.labels]
    columns: dict[str, list[Any]] = {}
    for column, labels in zip(names, parts, strict=True):
        while column in taken or column in columns:
            column = f"{name} {column}"
        plain = labels_of_one_type(labels)
        repeated = [label for label in plain for _ in range(repeat)]
        columns[column] = repeated * tile
    return columns
