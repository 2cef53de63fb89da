"""How long the first rule takes after a log, as the number of states grows.

The paper compares TL with exploration to FPD_learn on a dense transition tensor. The third
contender is FPD_learn on the same model kept as sparse counts plus a constant: the same rule,
without the tensor.
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
from pastwise.report.study_figures import Curve
from pastwise.theory.closed_loop import ideal_preferring
from pastwise.theory.fpd import first_rule
from pastwise.theory.learning import concentration, default_prior_count


@dataclass(frozen=True)
class TimingSettings:
    """What is timed; the numbers of actions and records and the horizon are the paper's.

    Parameters
    ----------
    sizes : numbers of states
    repeats : int
        Repetitions of every size; the median of 15 is stable to a few percent.
    """

    sizes: tuple[int, ...] = (3, 10, 30, 100, 300, 1000)
    repeats: int = 15
    num_actions: int = 4
    num_records: int = 30
    horizon: int = 10
    seed: int = 10

    @property
    def num_steps(self) -> int:
        """Steps of progress: every size has one call that is not counted."""
        return len(self.sizes) * (self.repeats + 1)


@dataclass(frozen=True)
class Problem:
    """A goal and a log; wanted is the rule in the log's last state."""

    ideal: IdealModel
    log: Transitions
    states: Space
    actions: Space
    horizon: int

    @classmethod
    def random(cls, num_states: int, settings: TimingSettings, rng: np.random.Generator) -> Problem:
        """A log of random states and actions; the goal prefers the first state."""
        path = rng.integers(num_states, size=settings.num_records + 1)
        actions = rng.integers(settings.num_actions, size=settings.num_records)
        return cls(
            ideal=ideal_preferring((0,), num_states, settings.num_actions),
            log=Transitions(path[:-1], actions, path[1:]),
            states=Space.of_size(num_states),
            actions=Space.of_size(settings.num_actions),
            horizon=settings.horizon,
        )

    def counts(self) -> TransitionCounts:
        """The log, counted."""
        return TransitionCounts.from_transitions(self.log, self.states, self.actions)

    def first_rule_of(self, method: AnyMethod) -> FloatArray:
        """The first rule of a method: [A]."""
        memory = method.start(self.counts(), self.ideal, self.log)
        return method.rule(memory, self.log.next_state[-1], np.random.default_rng(0))


def tl_explore(problem: Problem) -> FloatArray:
    """Transfer learning with exploration."""
    return problem.first_rule_of(TLExplore())


def fpd_learn_sparse(problem: Problem) -> FloatArray:
    """FPD_learn on sparse counts plus a constant."""
    return problem.first_rule_of(FPDLearn(problem.horizon))


def fpd_learn_dense(problem: Problem) -> FloatArray:
    """FPD_learn on the dense tensor, as in the paper."""
    counts = problem.counts()
    V = concentration(counts, counts.weight, default_prior_count(problem.ideal))
    model = DenseModel(V / V.sum(axis=-1, keepdims=True))
    rule = first_rule(model, problem.ideal, problem.horizon)
    return np.asarray(rule[problem.log.next_state[-1]])


CONTENDERS: dict[str, Callable[[Problem], FloatArray]] = {
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

    def growth(self, contender: str, smallest: int = 100) -> FloatArray:
        """Exponent b of time ~ S^b of every repetition: [repeats].

        Fitted to the sizes from ``smallest`` on: below, calls take longer than the work.
        """
        large = np.asarray(self.sizes) >= smallest
        log_size = np.log(np.asarray(self.sizes)[large])
        log_seconds = np.log(self.seconds[contender][large])
        slope, _ = np.polyfit(log_size, log_seconds, 1)
        return np.asarray(slope)

    def curves(self) -> list[Curve]:
        """Median and quartiles against the number of states, in milliseconds."""
        curves = []
        for name, seconds in self.seconds.items():
            low, median, high = np.quantile(seconds, (0.25, 0.5, 0.75), axis=-1) * 1e3
            curves.append(Curve(name, self.sizes, median.tolist(), low.tolist(), high.tolist()))
        return curves


def measure(
    settings: TimingSettings | None = None,
    on_step: Callable[[int], None] = lambda steps: None,
) -> Timing:
    """Time every contender on the same logs, interleaved, after one call that is not counted."""
    settings = settings or TimingSettings()
    rng = np.random.default_rng(settings.seed)
    shape = (len(settings.sizes), settings.repeats)
    seconds = {name: np.empty(shape) for name in CONTENDERS}
    for row, size in enumerate(settings.sizes):
        problem = Problem.random(size, settings, rng)
        for repeat in range(-1, settings.repeats):
            for name, first_rule_of in CONTENDERS.items():
                begin = time.perf_counter()
                first_rule_of(problem)
                if repeat >= 0:
                    seconds[name][row, repeat] = time.perf_counter() - begin
            on_step(1)
    return Timing(settings.sizes, seconds)
