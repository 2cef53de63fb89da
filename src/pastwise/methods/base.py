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
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar

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

RECORDS = "records"
"""Name of the part of a plan that the records of the log carry."""


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
        of the log, in proportion to their similarity. False: the parts add up to an index,
        and the rule prefers actions of a larger index.
    """

    rule: FloatArray
    parts: Mapping[str, FloatArray] = field(default_factory=dict)
    adds_up: bool = False

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

    Two more attributes are optional: ``similarity``, if the method has a similarity of its own, by
    which a policy then measures its support; and ``live_rows(plan, ideal)``, which returns
    `LiveRows` that are quicker than the general ones.
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


class PlannedRows:
    """`LiveRows` of any method: its plan until the first record, then its rule.

    Starting on the log is put off until there is something to learn.
    """

    def __init__(
        self,
        method: AnyMethod,
        plan: Plan,
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

    def __getitem__(self, state: int) -> list[float]:
        """The rule of a state: [A]."""
        if self._memory is None:
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
