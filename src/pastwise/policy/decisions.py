"""Decisions of a policy for many rows: the most probable action, and what it rests on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pastwise._display import to_frame
from pastwise._files import replacing, write_columns
from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.data.space import Label, Space, key_of, labels_of_one_type
from pastwise.errors import ParameterError, UnseenStateWarning
from pastwise.logs.row_tables import UNKNOWN, find_states
from pastwise.policy.rule import PRIOR_ADVICE, label_columns
from pastwise.policy.state import OnUnseen, PolicyState
from pastwise.theory.fpd import require_feasible


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a policy recommends for each row of a table.

    Attributes
    ----------
    states, actions : Space
    state : [rows]
        Index of each row's state; -1 where no state matches and the prior answers.
    probabilities : [rows, A]
        Probability of each action.
    records : [rows]
        Records of the log that leave the row's state.
    is_new : [rows]
        Whether the row has a category that the tree of states does not know.
    episodes : [rows], optional
        Episodes that they come from, where the log has any.
    """

    states: Space
    actions: Space
    state: IntArray
    probabilities: FloatArray
    records: IntArray
    is_new: BoolArray
    episodes: IntArray | None = None

    def __len__(self) -> int:
        return len(self.state)

    @property
    def action(self) -> IntArray:
        """Index of the most probable action of each row, the first of several: [rows]."""
        return np.asarray(self.probabilities.argmax(axis=-1))

    @property
    def is_extrapolation(self) -> BoolArray:
        """Whether the log has no record in the row's state, or none with its category: [rows]."""
        return np.asarray((self.records == 0) | self.is_new)

    def labels(self) -> NDArray[Any]:
        """The most probable action of each row, by label: [rows]."""
        return label_array(self.actions)[self.action]

    def columns(self) -> dict[str, list[Any]]:
        """A table: action, probability, state, records, episodes and whether it extrapolates.

        A product action has a column for each of its fields. A product state is its key, and a
        row without a state has none.
        """
        probability = self.probabilities.max(axis=-1)
        others: dict[str, list[Any]] = {"probability": probability.tolist()}
        others["state"] = self._state_column()
        others["records"] = self.records.tolist()
        if self.episodes is not None:
            others["episodes"] = self.episodes.tolist()
        others["is_extrapolation"] = self.is_extrapolation.tolist()
        columns: dict[str, list[Any]] = {}
        place = self.action.tolist()
        for name, labels in label_columns(self.actions, "action", others).items():
            columns[name] = [labels[index] for index in place]
        return {**columns, **others}

    def _state_column(self) -> list[Any]:
        labels = list(labels_of_one_type(self.states.labels))
        labels.append(None)  # which -1 refers to
        return [labels[index] for index in self.state.tolist()]

    def to_frame(self, backend: str | None = None) -> Any:
        """A data frame with a row for each decision."""
        return to_frame(self.columns(), backend)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; labels by their keys."""
        keys: list[str | None] = [key_of(label) for label in self.states.labels]
        keys.append(None)
        names = [key_of(label) for label in self.actions.labels]
        probability = self.probabilities.max(axis=-1).tolist()
        is_extrapolation = self.is_extrapolation.tolist()
        decisions = []
        for row, (state, action) in enumerate(
            zip(self.state.tolist(), self.action.tolist(), strict=True)
        ):
            decision = {
                "row": row + 1,
                "action": names[action],
                "probability": probability[row],
                "state": keys[state],
                "records": int(self.records[row]),
                "episodes": None if self.episodes is None else int(self.episodes[row]),
                "is_extrapolation": is_extrapolation[row],
            }
            decisions.append(decision)
        return {"decisions": decisions}

    def write(self, path: str | Path) -> None:
        """Write the decisions as a table: .csv or .parquet; see `Rule.export` for the cells."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet"):
            raise ParameterError(f"{path}: decisions are written as .csv or .parquet")
        with replacing(path) as temporary:
            if suffix == ".csv":
                write_columns(temporary, self.columns())
                return
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(self.columns()), temporary)


def label_array(space: Space) -> NDArray[Any]:
    """The labels of a space as an array; product labels are tuples."""
    labels: list[Label] = list(space.labels)
    if space.is_product or len({type(label) for label in labels}) > 1:
        array = np.empty(len(labels), dtype=object)
        array[:] = labels
        return array
    return np.array(labels)


def decisions_for(
    policy: PolicyState, table: Any, on_unseen: OnUnseen | None = None, *, stacklevel: int = 3
) -> Decisions:
    """What a policy recommends for each row of a table.

    Parameters
    ----------
    table
        See `logs.row_tables.find_states`.
    on_unseen : "refuse" or "prior", optional
        What to do with a row that no state matches: an error, or the prior with a warning. By
        default as given to the learner.
    stacklevel : int
        Where the warning points; by default at the caller of the function that calls this one.
    """
    on_unseen = policy.settings.on_unseen if on_unseen is None else on_unseen
    if on_unseen not in ("prior", "refuse"):
        raise ParameterError(f"on_unseen is 'prior' or 'refuse', not {on_unseen!r}")
    counts, plan = policy.counts_and_plan()
    state, is_new, problem = find_states(table, policy.columns, policy.reader)

    # Rows that no state matches.
    if problem is not None:
        unknown = int((state == UNKNOWN).sum())
        share = f"{unknown:,} of {len(state):,} rows match no state"
        if on_unseen == "refuse":
            reason = f"{problem.advice}; " if problem.advice else ""
            problem.advice = f"{reason}{share}; {PRIOR_ADVICE}"
            raise problem
        message = f"{share}: the prior answers for them"
        warnings.warn(message, UnseenStateWarning, stacklevel=stacklevel)

    # The rule of every state, and at the end that of an unknown one.
    rule = np.vstack([plan.rule, policy.fallback_rule])
    require_feasible(rule[state], state)
    records_of_state = np.bincount(
        counts.state, weights=counts.records, minlength=len(counts.states) + 1
    ).astype(np.int64)
    episodes = None
    if policy.episodes is not None and policy.episodes.visits is not None:
        episodes = np.append(policy.episodes.visits.by_state, 0)[state]
    return Decisions(
        states=counts.states,
        actions=counts.actions,
        state=state,
        probabilities=rule[state],
        records=records_of_state[state],
        is_new=is_new,
        episodes=episodes,
    )


def in_library_of(table: Any, decisions: Decisions) -> Any:
    """The decisions as the caller's kind of table.

    A frame of pandas, polars or pyarrow for one, with the index of pandas; a list of dicts for a
    list, and a mapping of columns for a mapping. Anything else gives a frame of the first library
    that is installed.
    """
    columns = decisions.columns()
    if isinstance(table, dict):
        return columns
    if isinstance(table, (list, tuple)):
        names = list(columns)
        return [
            dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)
        ]
    from pastwise.logs.sources import library_of

    library = library_of(table)
    frame = to_frame(columns, library)
    if library == "pandas":
        frame.index = table.index
    return frame
