"""TL_explore: transfer learning by similarity that explores while the gate is open."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.methods.tl import TL, Evidence
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.exploration import EpsilonGreedy, Explorer, Gate, Here, Window


@dataclass
class Exploration:
    """Memory of TL_explore: evidence, records of each state and action [..., S, A], and the window of the gate."""

    learned: Evidence
    records: FloatArray
    window: Window


@dataclass(frozen=True)
class TLExplore:
    """Transfer learning by similarity that explores while recent records serve the goal badly."""

    learner: TL
    gate: Gate = field(default_factory=Gate)
    explore: Explorer = field(default_factory=EpsilonGreedy)

    @cached_property
    def uniform(self) -> FloatArray:
        """The rule to explore by: [S, A]."""
        ideal = self.learner.ideal
        return np.broadcast_to(uniform_rule(ideal), (ideal.num_states, ideal.num_actions))

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Exploration:
        """Memory of the past log; the gate starts on its last records, and is open if none are given."""
        similarity = np.empty((*counts.shape, 0))
        if recent is not None:
            similarity = self.learner.similarity(self.learner.ideal, *recent.last(self.gate.window))
        records = counts.by_state_action(counts.records.astype(np.float64))
        return Exploration(self.learner.start(counts), records, self.gate.start(similarity))

    def rule(self, memory: Exploration, state: IntArray, rng: Random) -> FloatArray:
        """The learned rule or, while the gate is open, the one to explore by: [..., A]."""
        learned, place = (
            self.learner.rule(memory.learned, state, rng),
            (*memory.learned.here, state),
        )
        evidence = memory.learned.evidence[place] + self.learner.prior[state]
        exploring = self.explore(
            Here(learned, self.uniform[state], evidence, memory.records[place]), rng
        )
        return np.where(self.gate.is_open(memory.window)[..., None], exploring, learned)

    def observe(
        self, memory: Exploration, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run, and note its similarity."""
        weight = self.learner.similarity(self.learner.ideal, state, action, next_state)
        self.learner.add(memory.learned, state, action, weight)
        memory.records[(*memory.learned.here, state, action)] += 1.0
        memory.window.push(weight)
