"""TL_explore: transfer learning by similarity that explores while recent records serve badly.

While the mean similarity of the last records is below a threshold, the gate is open and an
explorer chooses; otherwise TL does (Algorithm 1, `theory.exploration`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import FloatArray, IntArray, entries
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError, shown
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import EVERY_STATE, Plan, States
from pastwise.methods.registry import register
from pastwise.methods.tl import TL, Evidence
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.exploration import (
    UCB,  # noqa: F401 (a policy file may name it)
    EpsilonGreedy,
    Explorer,
    Gate,
    Here,
    PosteriorSampling,  # noqa: F401 (a policy file may name it)
    Window,
)
from pastwise.theory.similarity import (
    Similarity,
    normalised_similarity,
    plain_similarity,  # noqa: F401 (a policy file may name it)
)


@dataclass
class Exploration:
    """Memory: the evidence of TL, the number of records, and the window of the gate.

    Attributes
    ----------
    records : [..., S, A]
    uniform : [S, A]
        The random rule.
    """

    learned: Evidence
    records: FloatArray
    uniform: FloatArray
    window: Window


@register(colour="#56B4E9")
@dataclass(frozen=True)
class TLExplore:
    """TL that explores while recent records serve the goal badly (the paper's Algorithm 1).

    Parameters
    ----------
    prior_count, similarity
        As TL has them.
    threshold : float
        The gate is open while the mean similarity of the last records is below it; 0.4 in the
        paper.
    window : int
        Number of last records that the gate looks at; 10 in the paper.
    explore : Explorer
        How to act while the gate is open; with probability 0.3 at random in the paper.
    """

    name: ClassVar[str] = "TL_explore"
    exact_updates: ClassVar[bool] = False

    prior_count: ArrayLike | None = None
    similarity: Similarity = normalised_similarity
    threshold: float = 0.4
    window: int = 10
    explore: Explorer = field(default_factory=EpsilonGreedy)

    def __post_init__(self) -> None:
        _ = self._tl, self._gate  # hyper-parameters out of range are errors now
        is_explorer = callable(self.explore) and hasattr(self.explore, "expected_rule")
        if not is_explorer or isinstance(self.explore, type):
            raise ParameterError(
                "explore must be an Explorer, such as EpsilonGreedy(0.3), "
                f"not {shown(self.explore)}"
            )

    @cached_property
    def _tl(self) -> TL:
        return TL(self.prior_count, self.similarity)

    @cached_property
    def _gate(self) -> Gate:
        return Gate(self.threshold, self.window)

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Exploration:
        """Memory of the past log.

        The gate starts on the last records. Where their order is not known, the whole log counts
        as one record of its mean similarity; without a log the gate is open.
        """
        learned = self._tl.start(counts, ideal)
        if recent is not None:
            similarity = self._similarity_of(ideal, *recent.last(self.window))
        else:
            similarity = _mean_similarity(learned.evidence, counts)
        sizes = (ideal.num_states, ideal.num_actions)
        return Exploration(
            learned=learned,
            records=counts.by_state_action(counts.records.astype(np.float64)),
            uniform=np.broadcast_to(uniform_rule(ideal), sizes),
            window=self._gate.start(similarity),
        )

    def rule(self, memory: Exploration, state: IntArray, rng: Random) -> FloatArray:
        """The learned rule or, while the gate is open, the explorer's: [..., A]."""
        learned = memory.learned
        here = Here(
            learned=self._tl.rule(learned, state, rng),
            uniform=memory.uniform[state],
            evidence=learned.evidence[(*learned.batch, state)] + learned.prior_at(state),
            records=memory.records[(*learned.batch, state)],
        )
        exploring = self.explore(here, rng)
        is_open = self._gate.is_open(memory.window)
        return np.where(is_open[..., None], exploring, here.learned)

    def observe(
        self, memory: Exploration, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run, and move the window on."""
        learned = memory.learned
        similarity = self._similarity_of(learned.ideal, state, action, next_state)
        self._tl.add(learned, state, action, similarity)
        memory.records[(*learned.batch, state, action)] += 1.0
        memory.window.push(similarity)

    def _similarity_of(
        self, ideal: IdealModel, state: IntArray, action: IntArray, next_state: IntArray
    ) -> FloatArray:
        """Similarity of records [...]; zero for actions not allowed."""
        similarity = self.similarity(ideal, state, action, next_state)
        return np.asarray(similarity * entries(ideal.allowed, state, action))

    def plan(self, memory: Exploration, states: States = EVERY_STATE) -> Plan:
        """The rule expected of the explorer while the gate is open, of TL otherwise."""
        learned = self._tl.plan(memory.learned, states)
        is_open = self._gate.is_open(memory.window)
        if not is_open.any():
            return learned

        # What the explorer is expected to do, given the evidence with the prior's.
        total = sum(learned.parts.values())
        here = Here(
            learned=learned.rule,
            uniform=memory.uniform[states],
            evidence=np.broadcast_to(total, learned.rule.shape),
            records=memory.records[..., states, :],
        )
        expected = self.explore.expected_rule(here)
        rule = np.where(is_open[..., None, None], expected, learned.rule)

        # Exploration adds to some actions what it takes from others.
        change = (rule - learned.rule) * here.evidence.sum(axis=-1, keepdims=True)
        return Plan(rule, {**learned.parts, "exploration": change}, adds_up=True)


def _mean_similarity(evidence: FloatArray, counts: TransitionCounts) -> FloatArray:
    """Mean similarity of the records of each log, as a window of one: [..., 0 or 1]."""
    weight = counts.by_state_action(counts.weight).sum(axis=(-2, -1))
    if not weight.any():
        return np.empty((*counts.shape, 0))
    similarity = evidence.sum(axis=(-2, -1))
    return np.asarray(similarity / np.where(weight > 0, weight, 1.0))[..., None]
