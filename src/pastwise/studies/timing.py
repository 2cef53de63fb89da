"""How long the first rule takes after k records, as the number of states grows.

The paper compares TL with exploration to learning FPD on a dense transition tensor. The third contender is learning
FPD on the same model kept as sparse counts plus a constant: the same rule, without the tensor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.dense import DenseModel
from pastwise.theory.closed_loop import ideal_preferring
from pastwise.theory.fpd import first_rule
from pastwise.theory.learning import concentration, default_prior_count

NUM_ACTIONS = 4
NUM_RECORDS = 30
HORIZON = 10
SIZES = (3, 10, 30, 100, 300, 1000)
REPEATS = 15
NUM_STEPS = len(SIZES) * (REPEATS + 1)

FirstRule = Callable[[IdealModel, Transitions, Space, Space], FloatArray]
"""From a goal, a log and its spaces to the rule [A] in the log's last state."""


def _first_rule(
    method: AnyMethod, ideal: IdealModel, log: Transitions, states: Space, actions: Space
) -> FloatArray:
    counts = TransitionCounts.from_transitions(log, states, actions)
    memory = method.start(counts, ideal, log)
    return method.rule(memory, log.next_state[-1], np.random.default_rng(0))


def tl_explore(ideal: IdealModel, log: Transitions, states: Space, actions: Space) -> FloatArray:
    """Transfer learning with exploration, Algorithm 1."""
    return _first_rule(TLExplore(), ideal, log, states, actions)


def fpd_learn_sparse(
    ideal: IdealModel, log: Transitions, states: Space, actions: Space
) -> FloatArray:
    """Learning FPD on sparse counts plus a background."""
    return _first_rule(FPDLearn(HORIZON), ideal, log, states, actions)


def fpd_learn_dense(
    ideal: IdealModel, log: Transitions, states: Space, actions: Space
) -> FloatArray:
    """Learning FPD on the dense tensor, as the paper has it."""
    counts = TransitionCounts.from_transitions(log, states, actions)
    V = concentration(counts, counts.weight, default_prior_count(ideal))
    model = DenseModel(V / V.sum(axis=-1, keepdims=True))
    return np.asarray(first_rule(model, ideal, HORIZON)[log.next_state[-1]])


CONTENDERS: dict[str, FirstRule] = {
    "TL_explore": tl_explore,
    "FPD_learn (dense)": fpd_learn_dense,
    "FPD_learn (sparse)": fpd_learn_sparse,
}


@dataclass(frozen=True)
class Timing:
    """Seconds of every repetition, by contender: [sizes, repeats]."""

    sizes: tuple[int, ...]
    seconds: dict[str, FloatArray]

    def median(self, contender: str) -> FloatArray:
        """Median over the repetitions: [sizes]."""
        return np.median(self.seconds[contender], axis=-1)

    def growth(self, contender: str, start: int = 100) -> FloatArray:
        """Exponent b of time ~ S^b, fitted to the sizes from ``start`` on, for every repetition: [repeats]."""
        large = [i for i, size in enumerate(self.sizes) if size >= start]
        x = np.log([self.sizes[i] for i in large])
        return np.asarray(np.polyfit(x, np.log(self.seconds[contender][large]), 1)[0])


def measure(
    sizes: tuple[int, ...] = SIZES,
    repeats: int = REPEATS,
    seed: int = 10,
    on_step: Callable[[int], None] = lambda steps: None,
) -> Timing:
    """Time every contender on the same logs, interleaved, after one call that is not counted."""
    rng = np.random.default_rng(seed)
    seconds = {name: np.empty((len(sizes), repeats)) for name in CONTENDERS}
    for row, size in enumerate(sizes):
        states, actions, ideal = (
            Space.of_size(size),
            Space.of_size(NUM_ACTIONS),
            ideal_preferring((0,), size, NUM_ACTIONS),
        )
        path = rng.integers(size, size=NUM_RECORDS + 1)
        log = Transitions(path[:-1], rng.integers(NUM_ACTIONS, size=NUM_RECORDS), path[1:])
        for repeat in range(-1, repeats):
            for name, first in CONTENDERS.items():
                begin = time.perf_counter()
                first(ideal, log, states, actions)
                if repeat >= 0:
                    seconds[name][row, repeat] = time.perf_counter() - begin
            on_step(1)
    return Timing(sizes, seconds)
