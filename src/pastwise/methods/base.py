"""The contract of a method, and the plan that every method can explain.

A *method* turns a log and a goal into decisions. It is a frozen dataclass whose fields are its
hyper-parameters; what it learns lives in a *memory*, the one mutable thing. It answers two
questions: how to act now while it goes on learning (`rule`, `observe`), and what it recommends
in every state after all that it has seen (`plan`).

All arrays may have leading axes: a batch of independent logs and runs.

To add a method, copy the smallest file of this package, `baselines.py`, or follow
``docs/how-to/add-a-method.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.theory.fpd import require_feasible

Memory = TypeVar("Memory")

States = slice | IntArray
"""Which states: all of them by ``slice(None)``, some by their indices."""

EVERY_STATE = slice(None)

EPOCHS = "epochs"
"""Name of the hyper-parameter that says how many epochs there are still to act in; 0 for acting
from a log alone."""

PAST_SKILL = "past_skill"
"""Name of the hyper-parameter that says how good the past was for the goal; None where a method is
to infer it."""

RECORDS = "records"
"""Name of the part of a plan that the records of the log carry."""

VALUE = "value"
"""Name of the part of a planner's plan that is the expected value of an action: taken now, with the
rule followed afterwards."""

DEVIATION = "deviation"
"""Name of the part that is the standard deviation of that value. A plan with both has its parts in
the goal's own unit, as `evaluation.criterion` measures it: a mean over epochs, such as the share of
time in preferred states, or a total until the end, such as the probability of ending well."""

EXAMPLE = "example"
"""Name of the part that the past's example adds to the value of an action, in the same unit."""

BORROWED = "borrowed"
"""Name of the part that says how much of what is expected of an action comes from other rows and
from the prior, from 0 to 1; the rest comes from the action's own records."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The rule of every state, and the named parts that it is made of.

    Attributes
    ----------
    rule : [..., S, A]
        Each row is a distribution over actions; all zeros where no action is feasible.
    parts : arrays broadcastable to [..., S, A], by name
        What speaks for each action. See ``adds_up`` for how the rule follows from them.
    adds_up : bool
        True: the rule is proportional to the sum of the parts, so a part's share of the sum is
        its share of the probability; the part `RECORDS` is carried by the single transitions
        of the log, in proportion to their similarity. False: the parts are numbers that the
        rule follows from; `VALUE`, `DEVIATION`, `EXAMPLE` and `BORROWED` are explained in words,
        any others by their names.
    """

    rule: FloatArray
    parts: Mapping[str, FloatArray] = field(default_factory=dict)
    adds_up: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether the parts are in the goal's own unit."""
        return VALUE in self.parts and DEVIATION in self.parts

    def at(self, states: States) -> Plan:
        """The plan of some states."""
        parts = {name: rows_of(part, states) for name, part in self.parts.items()}
        return Plan(self.rule[..., states, :], parts, self.adds_up)


def rows_of(table: FloatArray, states: States) -> FloatArray:
    """Rows of a table [..., 1 or S, A] at some states; a single row serves every state."""
    if table.shape[-2] == 1:
        return table
    return table[..., states, :]


class Method(Protocol[Memory]):
    """A decision maker.

    Attributes
    ----------
    name : str
        The name in the registry, which users and files refer to.
    exact_updates : bool
        Whether `observe` leaves the same memory, up to rounding, as `start` on a log with that
        record. If not, a learner starts afresh instead of observing.

    More attributes are optional: ``similarity``, if the method has a similarity of its own, by
    which a policy then measures its support; ``live_rows(plan, ideal)``, which returns
    `LiveRows` that are quicker than the general ones, or `StoredRows`, which a snapshot can hold;
    a hyper-parameter `EPOCHS`, if the method explores as long as there is time to profit from what
    it finds; and a hyper-parameter `PAST_SKILL`, if the skill of the past can be given to it.
    """

    name: ClassVar[str]
    exact_updates: ClassVar[bool]

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Memory:
        """Learn from a log.

        Parameters
        ----------
        counts : TransitionCounts
            The log, counted.
        ideal : IdealModel
            The goal.
        recent : Transitions, optional
            The last records of the log in their order, which counts forget.
        """
        ...

    def rule(self, memory: Memory, state: IntArray, rng: Random) -> FloatArray:
        """The rule to act by in the current states [...]: [..., A]."""
        ...

    def observe(
        self, memory: Memory, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run: arrays [...]."""
        ...

    def plan(self, memory: Memory, states: States = EVERY_STATE) -> Plan:
        """What the method recommends in every state, or in some, after all that it has seen."""
        ...


AnyMethod = Method[Any]
"""A method whose memory nobody looks into."""


def acting_for(method: AnyMethod, epochs: int) -> AnyMethod:
    """The method that knows how many epochs there are to act in, where it makes use of that."""
    if not hasattr(method, EPOCHS):
        return method
    acting: AnyMethod = replace(cast(Any, method), **{EPOCHS: epochs})
    return acting


def for_another_goal(method: AnyMethod) -> AnyMethod:
    """The method without the skill of the past, which is known for the former goal only."""
    if getattr(method, PAST_SKILL, None) is None:
        return method
    other: AnyMethod = replace(cast(Any, method), **{PAST_SKILL: None})
    return other


class LiveRows(Protocol):
    """The rules of single states in a running loop, as plain lists of numbers.

    ``rows[state]`` is a list [A] proportional to the rule of a state, given by index.
    """

    def __getitem__(self, state: int, /) -> list[float]:
        """Numbers proportional to the rule of a state: [A]."""
        ...

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Learn from one record."""
        ...


@runtime_checkable
class StoredRows(LiveRows, Protocol):
    """`LiveRows` that a snapshot can hold: they depend on nothing but the rows that changed."""

    def changed(self) -> tuple[IntArray, FloatArray]:
        """States [R] whose rows records have changed, in ascending order, and these rows [R, A]."""
        ...

    def restore(self, states: IntArray, rows: FloatArray) -> None:
        """Take over what `changed` returned."""
        ...


class FixedRows(dict[int, list[float]]):
    """`StoredRows` of a plan that stays as it is; no record changes them."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._rule = plan.rule

    def __missing__(self, state: int) -> list[float]:
        """The rule of a state that the loop visits for the first time: [A]."""
        rule = self._rule[state]
        require_feasible(rule, np.asarray(state))
        row: list[float] = rule.tolist()
        self[state] = row
        return row

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Learn nothing."""

    def changed(self) -> tuple[IntArray, FloatArray]:
        """No row has changed."""
        return np.empty(0, dtype=np.int64), np.empty((0, self._rule.shape[-1]))

    def restore(self, states: IntArray, rows: FloatArray) -> None:
        """Nothing is to be done."""


class PlannedRows:
    """`LiveRows` of any method: a known plan until the first record, then its rule.

    With a plan, starting on the log is put off until there is something to learn.
    """

    def __init__(
        self,
        method: AnyMethod,
        plan: Plan | None,
        counts: TransitionCounts,
        ideal: IdealModel,
        rng: Random,
    ) -> None:
        self._method = method
        self._plan = plan
        self._counts = counts
        self._ideal = ideal
        self._rng = rng
        self._memory: Any = None
        if plan is None:
            self._memory = method.start(counts, ideal)

    def __getitem__(self, state: int) -> list[float]:
        """The rule of a state: [A]."""
        if self._memory is None and self._plan is not None:
            row = self._plan.rule[state]
            require_feasible(row, np.asarray(state))
        else:
            row = self._method.rule(self._memory, np.asarray(state), self._rng)
        probabilities: list[float] = row.tolist()
        return probabilities

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Learn from one record."""
        if self._memory is None:
            self._memory = self._method.start(self._counts, self._ideal)
        index = (np.asarray(i) for i in (state, action, next_state))
        self._method.observe(self._memory, *index)
