"""Decision makers with one contract: they start on a past log, give a rule, and observe what followed.

`Rand` acts at random. `TL` learns its rule from the log by similarity and goes on learning while it acts; `TLExplore`
also explores while the gate is open, by any of the ways in `explore`. `FPDLearn` learns a transition model and designs
on it; `FPD` knows the model. `Scripted` and `Clone` are what they are compared with: any given policy, and the log's
own behaviour. `foresight` adds one more.

An agent is a value; its memory is the one mutable thing. All arrays may have leading axes, for a batch of independent
runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.theory.fpd import require_feasible


class Agent(Protocol):
    """A decision maker."""

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Any:
        """Memory after the past log: its counts and, for those who need their order, its last records."""
        ...

    def rule(self, memory: Any, state: IntArray, rng: Random) -> FloatArray:
        """The rule in the current states [...]: [..., A]."""
        ...

    def observe(self, memory: Any, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Take in one transition of each run: arrays [...]."""
        ...


@dataclass
class Script:
    """A policy [..., H, S, A] and how far it has been followed: memory of those who learn nothing while they act."""

    policy: FloatArray
    here: tuple[IntArray, ...]
    epoch: int = 0

    def row(self, state: IntArray) -> FloatArray:
        """The rule of this epoch in the current states: [..., A]; after the last epoch comes the first."""
        epochs, S, A = self.policy.shape[-3:]
        now = self.policy[..., self.epoch % epochs, :, :]
        if now.shape[:-2] != np.shape(state):
            now = np.broadcast_to(now, (*np.shape(state), S, A))
        return np.asarray(now[(*self.here, state)])


class _Follower:
    """Rule and observation of the agents that follow a script fixed at the start."""

    def rule(self, memory: Script, state: IntArray, rng: Random) -> FloatArray:
        """The script's rule in the current states [...]: [..., A]."""
        row = memory.row(state)
        require_feasible(row, state)
        return row

    def observe(
        self, memory: Script, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Move on to the next epoch."""
        memory.epoch += 1
