"""FPD_learn: fully probabilistic design on a learned model."""

from __future__ import annotations

from dataclasses import dataclass

from pastwise._numerics.arrays import FloatArray, IntArray, batch_index
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import Script
from pastwise.methods.fpd import _planned
from pastwise.models.learned import LearnedModel
from pastwise.theory.fpd import require_feasible, require_horizon
from pastwise.theory.learning import (
    default_prior_count,
    prior_concentration,
    require_same_sizes,
)


@dataclass
class Planning:
    """Memory of FPD_learn: the model learned so far, and the script in use where rules are replayed."""

    model: LearnedModel
    script: Script | None = None


@dataclass(frozen=True)
class FPDLearn:
    """Fully probabilistic design on a model learned from the log and from what follows.

    Parameters
    ----------
    ideal : IdealModel
    horizon : int
    prior_count : float, optional
        Prior count of every (state, action, next_state) in the learned transition model; by default the same nu_0
        that TL starts from, so small that a single record outweighs it.
    replay : bool
        False: plan anew at every epoch. True: follow the rules of one horizon in turn, then plan anew.
    """

    ideal: IdealModel
    horizon: int = 10
    prior_count: float | None = None
    replay: bool = False

    def __post_init__(self) -> None:
        require_horizon(self.horizon)
        if self.prior_count is not None:
            prior_concentration(self.ideal, self.prior_count)  # a bad one is an error now

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Planning:
        """Memory of the past log: the model learned from it."""
        require_same_sizes(counts, self.ideal)
        prior = default_prior_count(self.ideal) if self.prior_count is None else self.prior_count
        return Planning(LearnedModel(counts, prior))

    def rule(self, memory: Planning, state: IntArray, rng: Random) -> FloatArray:
        """The designed rule in the current states [...]: [..., A]."""
        script = memory.script
        if script is None or script.epoch >= script.policy.shape[-3]:
            policy = _planned(memory.model, self.ideal, self.horizon, self.replay)
            script = memory.script = Script(policy, batch_index(memory.model.shape))
        row = script.row(state)
        require_feasible(row, state)
        return row

    def observe(
        self, memory: Planning, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.model.observe(state, action, next_state)
        if memory.script is not None:
            memory.script.epoch += 1
