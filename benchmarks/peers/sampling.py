"""Posterior sampling that acts and learns, as a method of pastwise.

A model is sampled from the Dirichlet posterior, its best rule is followed for a while, and then the
next model is sampled from what is known by then. Nothing ends in some systems, so that the time to
sample again is every few epochs rather than the end of an episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from benchmarks.peers.offline import DISCOUNT, posterior_sampling
from pastwise._numerics.arrays import FloatArray, IntArray, batch_index
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from pastwise.methods.base import EVERY_STATE, Plan, States


@dataclass
class SampledModels:
    """Memory: what is known of each run of a batch, and the rule of its sampled model.

    Attributes
    ----------
    counts : [..., S, A, S]
    rule : [..., S, A]
    age : int
        Epochs for which the rule was followed.
    """

    counts: FloatArray
    score: FloatArray
    terminal: IntArray
    batch: tuple[IntArray, ...]
    rule: FloatArray | None = None
    age: int = 0


@dataclass(frozen=True)
class PosteriorSampling:
    """Follow the best rule of a sampled model, and sample another one every few epochs.

    Parameters
    ----------
    period : int
        Epochs until the next model. Of 1, 3, 10 and 50 on families to choose on, 1 and 3 hardly
        differ, and longer ones are worse.
    discount : float
        Of a score one epoch later.
    prior_records : float
        See `posterior_sampling`.
    """

    name: ClassVar[str] = "posterior sampling"
    exact_updates: ClassVar[bool] = False

    period: int = 3
    discount: float = DISCOUNT
    prior_records: float = 1.0

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> SampledModels:
        """What the log shows."""
        return SampledModels(
            counts=count_tensor(counts),
            score=Utility.of(ideal, counts.terminal).next_state_part[0, 0],
            terminal=counts.terminal,
            batch=batch_index(counts.shape),
        )

    def rule(self, memory: SampledModels, state: IntArray, rng: Random) -> FloatArray:
        """The rule of the sampled model in the current states [...]: [..., A]."""
        if memory.rule is None or memory.age >= self.period:
            memory.rule = self._sampled_rules(memory, rng)
            memory.age = 0
        memory.age += 1
        return np.asarray(memory.rule[(*memory.batch, state)])

    def observe(
        self, memory: SampledModels, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.counts[(*memory.batch, state, action, next_state)] += 1.0

    def plan(self, memory: SampledModels, states: States = EVERY_STATE) -> Plan:
        """The rule of one more sampled model."""
        return Plan(self._sampled_rules(memory, np.random.default_rng(0))).at(states)

    def _sampled_rules(self, memory: SampledModels, rng: Random) -> FloatArray:
        """The best rule of a model of each run: [..., S, A]."""
        shape = memory.counts.shape[:-3]
        seeds = (rng.random(shape).reshape(-1) * 2**53).astype(np.int64)
        by_run = memory.counts.reshape(-1, *memory.counts.shape[-3:])
        rules = []
        for seed, counts in zip(seeds.tolist(), by_run, strict=True):
            rules.append(
                posterior_sampling(
                    counts,
                    memory.score,
                    memory.terminal,
                    self.discount,
                    np.random.default_rng(seed),
                    self.prior_records,
                )
            )
        return np.stack(rules).reshape(memory.counts.shape[:-1])


def count_tensor(counts: TransitionCounts) -> FloatArray:
    """The numbers of records as a table: [..., S, A, S]."""
    num_states = len(counts.states)
    table = np.zeros(prod(counts.shape) * counts.keys_per_log)
    table[counts.key] = counts.records
    return table.reshape(*counts.shape, num_states, len(counts.actions), num_states)
