"""TL: transfer learning by similarity, the paper's method.

The rule of a state is the similarity-weighted share of its actions, with a small prior
(Eq. 10, `theory.learning.learned_rule`). All that is remembered of a log is the evidence: the
total similarity of the records of each state and action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, batch_index
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError, shown
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import EVERY_STATE, RECORDS, LiveRows, Plan, States, rows_of
from pastwise.methods.registry import register
from pastwise.theory.learning import (
    checked_prior_count,
    gather_evidence,
    learned_rule,
    prior_concentration,
)
from pastwise.theory.similarity import (
    Similarity,
    normalised_similarity,
    plain_similarity,
)


@dataclass
class Evidence:
    """Memory: all that TL remembers of a log.

    Attributes
    ----------
    evidence : [..., S, A]
        Total similarity of the records of each state and action.
    prior : [1 or S, A]
        Prior concentration; zero where an action is not allowed.
    allowed : [S, A]
    batch : tuple of index arrays
        Index of every batch element.
    """

    ideal: IdealModel
    evidence: FloatArray
    prior: FloatArray
    allowed: BoolArray
    batch: tuple[IntArray, ...]

    def prior_at(self, state: IntArray) -> FloatArray:
        """Prior concentration in the current states [...]: [..., A]."""
        return self.prior[state] if len(self.prior) > 1 else self.prior[0]


@register(colour="#0072B2")
@dataclass(frozen=True)
class TL:
    """Transfer learning by similarity: prefer what led to today's goal (the paper's method).

    A rule takes O(A), an observation O(1), however long the log.

    Parameters
    ----------
    prior_count : scalar or broadcastable to [S, A, S], optional
        Prior count of every (state, action, next_state), the paper's nu_0; by default the goal's
        smallest probability divided by the number of states.
    similarity : Similarity
        How well a transition serves the goal.
    """

    name: ClassVar[str] = "TL"
    exact_updates: ClassVar[bool] = True

    prior_count: ArrayLike | None = None
    similarity: Similarity = normalised_similarity

    def __post_init__(self) -> None:
        if self.prior_count is not None:
            checked_prior_count(self.prior_count)
        if not callable(self.similarity):
            raise ParameterError(
                "similarity must be a function of (ideal, state, action, next_state), "
                f"not {shown(self.similarity)}"
            )

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Evidence:
        """Memory of the past log."""
        sizes = (ideal.num_states, ideal.num_actions)
        return Evidence(
            ideal=ideal,
            evidence=gather_evidence(counts, ideal, self.similarity),
            prior=prior_concentration(ideal, self.prior_count),
            allowed=np.broadcast_to(ideal.allowed, sizes),
            batch=batch_index(counts.shape),
        )

    def rule(self, memory: Evidence, state: IntArray, rng: Random) -> FloatArray:
        """The learned rule in the current states [...]: [..., A]."""
        return learned_rule(memory.evidence[(*memory.batch, state)], memory.prior_at(state))

    def observe(
        self, memory: Evidence, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        similarity = self.similarity(memory.ideal, state, action, next_state)
        self.add(memory, state, action, similarity)

    def add(
        self, memory: Evidence, state: IntArray, action: IntArray, similarity: FloatArray
    ) -> None:
        """Add the similarity of one record to the evidence, unless its action is forbidden."""
        counted = similarity * memory.allowed[state, action]
        memory.evidence[(*memory.batch, state, action)] += counted

    def plan(self, memory: Evidence, states: States = EVERY_STATE) -> Plan:
        """The learned rule; it is the sum of what the records and the prior carry."""
        evidence = memory.evidence[..., states, :].copy()  # memory goes on learning
        prior = rows_of(memory.prior, states)
        return Plan(
            learned_rule(evidence, prior), {RECORDS: evidence, "prior": prior}, adds_up=True
        )

    def live_rows(self, plan: Plan, ideal: IdealModel) -> LiveRows:
        """The plan in a running loop, learning on at a fraction of a microsecond a record."""
        return LiveEvidence(plan, ideal, self.similarity)


class LiveEvidence(dict[int, list[float]]):
    """Evidence and prior of the states that a loop visits, as plain lists: see `StoredRows`.

    Where the goal concerns next states only, the similarity of a record is a factor of its next
    state times a factor of its decision, so an observation is one product and one sum. Factors
    come from ``math.exp``: ``numpy.exp`` rounds in another way on another kind of processor, and a
    stored stream of records must lead to the same numbers everywhere.
    """

    def __init__(self, plan: Plan, ideal: IdealModel, similarity: Similarity) -> None:
        super().__init__()
        self._records = plan.parts[RECORDS]
        self._prior = plan.parts["prior"]
        self._ideal = ideal
        self._similarity = similarity
        self._decision_factors: dict[int, list[float]] = {}
        self._arrival_factor: list[float] = []

        # Logarithm of the number that a similarity of the library divides the ideal by.
        self._log_divisor: float | None = None
        if similarity is normalised_similarity:
            self._log_divisor = float(ideal.log_peak)
        elif similarity is plain_similarity:
            self._log_divisor = 0.0

        # The similarity factorises: ln ideal = ln of the next state + ln of the decision.
        is_normalised = similarity is normalised_similarity
        self._factorises = ideal.concerns_next_states_only and is_normalised
        self._any_state = len(ideal.log_rule) == len(ideal.allowed) == 1
        if self._factorises:
            log_arrival = ideal.log_transition[0, 0]
            log_factor = log_arrival - log_arrival.max()
            self._arrival_factor = [math.exp(each) for each in log_factor.tolist()]
            self._best_arrival = int(log_arrival.argmax())

    def __missing__(self, state: int) -> list[float]:
        """Evidence and prior of a state that the loop visits for the first time: [A]."""
        row: list[float] = self._start_of(np.asarray(state)).tolist()
        self[state] = row
        return row

    def _start_of(self, states: IntArray) -> FloatArray:
        """Evidence and prior before the first record: [..., A]."""
        prior = self._prior[states] if len(self._prior) > 1 else self._prior[0]
        return np.asarray(self._records[states] + prior)

    def observe(self, state: int, action: int, next_state: int) -> None:
        """Add the similarity of one record."""
        if self._factorises:
            factor = self._decision_factors.get(state) or self._decision_factor(state)
            similarity = factor[action] * self._arrival_factor[next_state]
        else:
            similarity = self._similarity_of(state, action, next_state)
        self[state][action] += similarity

    def _decision_factor(self, state: int) -> list[float]:
        """Similarity of each action in a state when the best next state follows: [A]."""
        source = 0 if self._any_state else state
        if source not in self._decision_factors:
            following = self._best_arrival
            actions = range(self._ideal.num_actions)
            factors = [self._similarity_of(source, action, following) for action in actions]
            self._decision_factors[source] = factors
        self._decision_factors[state] = self._decision_factors[source]
        return self._decision_factors[state]

    def _similarity_of(self, state: int, action: int, next_state: int) -> float:
        """Similarity of one record; zero if the action is forbidden."""
        if not self._ideal.allowed_in(state)[action]:
            return 0.0
        if self._log_divisor is None:
            return float(self._similarity(self._ideal, state, action, next_state))
        log_joint = float(self._ideal.log_joint(state, action, next_state))
        return math.exp(log_joint - self._log_divisor)

    def changed(self) -> tuple[IntArray, FloatArray]:
        """States [R] whose rows records have changed, in ascending order, and these rows [R, A]."""
        states = np.array(sorted(self), dtype=np.int64)
        rows = np.array([self[state] for state in states.tolist()], dtype=np.float64)
        rows = rows.reshape(len(states), self._records.shape[-1])
        is_changed = (rows != self._start_of(states)).any(axis=-1)
        return states[is_changed], rows[is_changed]

    def restore(self, states: IntArray, rows: FloatArray) -> None:
        """Take over what `changed` returned."""
        self.clear()
        self.update(zip(states.tolist(), rows.tolist(), strict=True))
