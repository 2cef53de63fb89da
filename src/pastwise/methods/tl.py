"""TL: transfer learning by similarity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, batch_index, frozen
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.theory.learning import (
    gather_evidence,
    learned_rule,
    prior_concentration,
)
from pastwise.theory.similarity import Similarity, normalised_similarity


@dataclass
class Evidence:
    """All that TL remembers: total similarity of each state and action, [..., S, A]; never the log."""

    evidence: FloatArray
    here: tuple[IntArray, ...]


@dataclass(frozen=True)
class TL:
    """Transfer learning by similarity, without exploration: O(A) for a rule, O(1) for an observation.

    Parameters
    ----------
    ideal : IdealModel
        Today's goal.
    prior_count : scalar or broadcastable to [S, A, S], optional
        nu_0; by default the smallest joint value of the ideal, divided by S.
    similarity : Similarity
        How well a transition serves the goal.
    """

    ideal: IdealModel
    prior_count: ArrayLike | None = None
    similarity: Similarity = normalised_similarity

    def __post_init__(self) -> None:
        _ = self.prior  # a bad prior count is an error now, not at the first decision

    @cached_property
    def prior(self) -> FloatArray:
        """Prior concentration of each state and action: [S, A]."""
        concentration = prior_concentration(self.ideal, self.prior_count)
        return frozen(
            np.broadcast_to(concentration, (self.ideal.num_states, self.ideal.num_actions))
        )

    @cached_property
    def allowed(self) -> BoolArray:
        """Which actions may be taken: [S, A]."""
        return np.broadcast_to(self.ideal.allowed, (self.ideal.num_states, self.ideal.num_actions))

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Evidence:
        """Memory of the past log."""
        return Evidence(
            gather_evidence(counts, self.ideal, self.similarity), batch_index(counts.shape)
        )

    def rule(self, memory: Evidence, state: IntArray, rng: Random) -> FloatArray:
        """The learned rule in the current states [...]: [..., A]."""
        return learned_rule(memory.evidence[(*memory.here, state)], self.prior[state])

    def observe(
        self, memory: Evidence, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        self.add(memory, state, action, self.similarity(self.ideal, state, action, next_state))

    def add(self, memory: Evidence, state: IntArray, action: IntArray, weight: FloatArray) -> None:
        """Add one record's weight to the evidence; that of an action that is not allowed counts for nothing."""
        memory.evidence[(*memory.here, state, action)] += weight * self.allowed[state, action]
