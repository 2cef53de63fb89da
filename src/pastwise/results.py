"""What a learner answers with, in the user's labels: the rule, what it rests on, and why."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from pastwise.adapters.artefact import replacing
from pastwise.evaluation import LEAST_DRAWS, Credible, Verdict
from pastwise.numerics import FloatArray, IntArray, sample
from pastwise.posterior import StateSupport
from pastwise.report.html import MAX_ROWS, number_table, rule_table
from pastwise.report.text import decimals
from pastwise.spaces import Label, Space, key_of

WEAK = 1.0
"""A rule that rests on less total similarity than this, one perfectly similar record, is shown dimmed and warned of."""


class UnseenStateWarning(UserWarning):
    """A rule was asked for in a state that the log does not have; the prior answered."""


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
        from pastwise.report.text import write_columns

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
                content = json.dumps({key_of(state): dict(zip(names, row.tolist(), strict=True))}, ensure_ascii=False)
                file.write(f"{mark}\n{content[1:-1]}")
            file.write("\n}\n")

    def _repr_html_(self) -> str:
        return rule_table(self.to_dict(MAX_ROWS), (self.similarity[:MAX_ROWS] < WEAK).tolist(), len(self))


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


def to_frame(columns: Mapping[str, Any], backend: str | None) -> Any:
    """A data frame of the named library; of pandas or polars, where they are installed, if none is named."""
    from importlib.util import find_spec

    import narwhals as nw

    chosen: Any = backend or next(name for name in ("pandas", "polars", "pyarrow") if find_spec(name))
    return nw.from_dict(dict(columns), backend=chosen).to_native()


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
        return to_frame({**_field_columns(self.states, "state", lists), **lists}, backend or self.backend)

    def warnings(self) -> list[str]:
        """States whose rule rests on too little, in words."""
        weak = np.setdiff1d(np.flatnonzero(self.arrays.similarity < WEAK), self.terminal)
        if not len(weak):
            return []
        names = ", ".join(key_of(self.states.labels[i]) for i in weak[:5]) + (", ..." if len(weak) > 5 else "")
        return [
            f"{len(weak)} of {len(self.states)} states rest on a total similarity below {WEAK:g}, "
            f"less than one record that serves the goal: {names}"
        ]


@dataclass(frozen=True)
class Evidence:
    """Past transitions of one kind and the part of a probability that they carry."""

    next_state: Label
    records: int
    similarity: float
    share: float


@dataclass(frozen=True)
class Reason:
    """Why an action has its probability: the parts of the prior and of past transitions, which add up to it."""

    probability: float
    prior: float
    evidence: tuple[Evidence, ...]

    def lines(self) -> Iterator[str]:
        """In words."""
        for e in sorted(self.evidence, key=lambda e: -e.share):
            yield f"{e.share:.4g} from {_records(e)}, similarity {e.similarity:.4g}"
        yield f"{self.prior:.4g} from the prior"


@dataclass(frozen=True)
class Foreseen:
    """Past transitions of one kind, the share of the action's records that they are, and what they are wanted for.

    ``similarity`` is how well one of them serves the goal by itself.
    """

    next_state: Label
    records: int
    similarity: float
    share: float


@dataclass(frozen=True)
class PlannedReason:
    """Why a planner gives an action its probability.

    Attributes
    ----------
    value : what is foreseen of the action; None where the goal does not allow it
    doubt : what the doubt of that value adds to it
    example : what the past's example adds
    evidence : the transitions that the value rests on
    """

    probability: float
    value: float | None
    doubt: float
    example: float
    evidence: tuple[Foreseen, ...]

    def lines(self) -> Iterator[str]:
        """In words."""
        if self.value is None:
            yield "not allowed by the goal"
        else:
            yield f"value {self.value:.4g}, doubt {self.doubt:+.4g}, the past's example {self.example:+.4g}"
        for e in self.evidence:
            yield f"rests on {_records(e)} ({100 * e.share:.3g} %), similarity {e.similarity:.4g}"
        if not self.evidence:
            yield "rests on no record"


def _records(evidence: Evidence | Foreseen) -> str:
    plural = "s" if evidence.records != 1 else ""
    return f"{evidence.records} record{plural} that led to {key_of(evidence.next_state)}"


@dataclass(frozen=True)
class Explanation:
    """Why the rule of a state is what it is; the reasons are of TL's kind or a planner's."""

    state: Label
    actions: Mapping[Label, Reason | PlannedReason]
    method: str = "TL"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, labels by their keys."""
        return {
            "state": key_of(self.state),
            "actions": {
                key_of(action): {
                    **vars(reason),
                    "evidence": [{**vars(e), "next_state": key_of(e.next_state)} for e in reason.evidence],
                }
                for action, reason in self.actions.items()
            },
            "method": self.method,
        }

    def __str__(self) -> str:
        lines = [f"In {key_of(self.state)}{'' if self.method == 'TL' else f', by {self.method}'}:"]
        for action, reason in sorted(self.actions.items(), key=lambda item: -item[1].probability):
            lines += [f"  {key_of(action)}  {reason.probability:.4g}", *(f"    {line}" for line in reason.lines())]
            if self.method == "TL_explore":
                lines[-1] += " and for exploring"
        return "\n".join(lines)


POLICIES = {"new": "the new rule", "logged": "what was done", "random": "acting at random"}


@dataclass(frozen=True)
class Evaluation:
    """Is the rule better than what was done? Values from the log alone, with intervals, and a verdict.

    Attributes
    ----------
    values : by policy, mean and 90 % interval of the measure
        ``new``, ``logged``, ``random``, ``FPD_learn`` and ``optimum``, the best of each drawn model.
    differences : of the new rule ``to_logged`` and ``to_random``, paired on the same drawn models
    verdict : ``better``, ``worse`` or ``cannot tell`` against ``logged`` and ``random``
    alarm : whether negative transfer is likely
    support : what the rule and its evaluation rest on
    measure : what the values are, in words
    draws, asked : drawn models, and how many were asked for
    """

    values: Mapping[str, Credible]
    differences: Mapping[str, Credible]
    verdict: Mapping[str, Verdict]
    alarm: bool
    support: Mapping[str, Any]
    measure: str
    draws: int
    asked: int
    estimates: Mapping[str, Any] = field(default_factory=dict)
    backend: str | None = None

    @property
    def sentence(self) -> str:
        """The verdict in one plain sentence."""
        words = {"better": "better than", "worse": "worse than", "cannot tell": "not told apart from"}
        parts, digits = [], decimals(v.mean for v in self.values.values())
        for name in ("logged", "random"):
            d, other, said = self.differences[f"to_{name}"], self.values[name].mean, words[self.verdict[name]]
            if self.verdict[name] == "cannot tell" != d.verdict:
                said = f"perhaps, but not surely, {words[d.verdict]}"
            figures = f"({other:.{digits}f}; {d.mean:+.{digits}f} [{d.low:+.{digits}f}, {d.high:+.{digits}f}])"
            parts.append(f"{said} {POLICIES[name]} {figures}")
        alarm = " Beware: it may well do worse than acting at random, or than what was done." if self.alarm else ""
        cut = f" Only {self.draws} of {self.asked} draws were made." if self.draws < self.asked else ""
        few = f" Fewer than {LEAST_DRAWS} draws give no verdict." if self.draws < LEAST_DRAWS else ""
        new = f"The new rule ({self.measure} {self.values['new'].mean:.{digits}f})"
        return f"{new} is {' and '.join(parts)}.{alarm}{cut}{few}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "values": {name: vars(value) for name, value in self.values.items()},
            "differences": {name: vars(value) for name, value in self.differences.items()},
            "verdict": dict(self.verdict),
            "alarm": self.alarm,
            "support": dict(self.support),
            "measure": self.measure,
            "draws": self.draws,
            "asked": self.asked,
            "estimates": dict(self.estimates),
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """A row for each policy's value, each difference and each estimate from episodes: mean, low, high."""
        content, numbers = self.to_dict(), ("mean", "low", "high")
        kinds = {"value": "values", "difference": "differences", "estimate": "estimates"}
        rows = [(kind, name, each) for kind, key in kinds.items() for name, each in content[key].items()]
        columns: dict[str, list[Any]] = {"quantity": [kind for kind, _, _ in rows], "of": [name for _, name, _ in rows]}
        columns |= {number: [each[number] for _, _, each in rows] for number in numbers}
        return to_frame(columns, backend or self.backend)

    def plot(self) -> Any:
        """A figure of the values and their intervals."""
        from pastwise.report.figures import value_plot

        return value_plot({name: (v.mean, v.low, v.high) for name, v in self.values.items()}, self.measure)

    def _repr_html_(self) -> str:
        rows = {name: {"mean": v.mean, "low": v.low, "high": v.high} for name, v in self.values.items()}
        return number_table(rows, self.sentence)
