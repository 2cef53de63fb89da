"""The paper's study: three past goals, five methods and two references, many random systems.

In every run a system is drawn. An agent that knows it and has a past goal leaves a log of k records; then each
method, given the log and today's goal, acts for h epochs. Its gain is the number of visits to the first state. All
pasts and methods of a run share the system, the start state and the random numbers, so that differences between them
are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, normalise
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import Agent
from pastwise.methods.baselines import Clone, Rand, Scripted
from pastwise.methods.foresight import TLForesight
from pastwise.methods.fpd import FPD
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl import TL
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.dense import DenseModel
from pastwise.report.figures import REFERENCES
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.studies.runner import Runner
from pastwise.theory.closed_loop import ideal_preferring
from pastwise.theory.exploration import EpsilonGreedy, Gate
from pastwise.theory.fpd import mdp_optimum

RowDraw = Callable[[FloatArray], FloatArray]
"""From uniform numbers [..., S] to rows of a transition model [..., S]."""

CHUNK = 1000
"""Runs simulated at once, a part of a study: few enough for their arrays to stay in the processor's cache."""


def uniform_rows(uniform: FloatArray) -> FloatArray:
    """Uniform numbers, normalised: rows near the middle of the simplex."""
    return normalise(uniform)


def dirichlet_rows(uniform: FloatArray) -> FloatArray:
    """Rows from Dirichlet(1, ..., 1), uniform on the simplex: exponential numbers, normalised."""
    return normalise(-np.log1p(-uniform))


ROWS: Mapping[str, RowDraw] = {"uniform": uniform_rows, "dirichlet": dirichlet_rows}
"""Ways to draw a row, by name."""


PASTS: Mapping[str, tuple[int, ...]] = {"p3": (2,), "p12": (0, 1), "p1": (0,)}
"""The states that each past goal prefers, by the paper's name for it. Today's goal is that of p1."""


@dataclass(frozen=True)
class PaperStudy:
    """Settings of the study; the defaults are the paper's.

    What the paper leaves open is an argument: how the rows of a transition model are drawn (``draw_rows``), the prior
    count of the model that FPD_learn learns (``model_prior``; nu_0 by default, as TL has it), how a horizon of rules
    serves more epochs than it has (``replay``), and the distribution of the start state (``initial``; uniform by
    default), which is drawn anew for the current task.
    """

    runs: int = 100
    seed: int = 10
    num_states: int = 3
    num_actions: int = 4
    num_records: int = 60
    num_steps: int = 100
    horizon: int = 10
    epsilon: float = 0.3
    threshold: float = 0.4
    window: int = 10
    draw_rows: RowDraw = uniform_rows
    model_prior: float | None = None
    replay: bool = False
    initial: tuple[float, ...] | None = None
    methods: Mapping[str, Method] = field(default_factory=lambda: PAPER_METHODS)

    def settings(self) -> dict[str, Any]:
        """The settings by name, as plain values."""
        plain = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("draw_rows", "methods")
        }
        names = {draw: name for name, draw in ROWS.items()}
        return plain | {
            "transitions": names.get(self.draw_rows, "other"),
            "methods": list(self.methods),
        }

    def goal(self, preferred: tuple[int, ...] = (0,)) -> IdealModel:
        """The ideal of a goal; today's by default."""
        return ideal_preferring(preferred, self.num_states, self.num_actions)


class Method(NamedTuple):
    """How the agent behind a method's name is made, and whether it looks at the log."""

    make: Callable[[PaperStudy, DenseModel], Agent]
    """From the settings and the true models of the runs to the agent."""
    reads_log: bool = True
    """If not, its gains are the same after every past."""


# Functions with a name, so that a study can be sent to another process.


def _rand(study: PaperStudy, model: DenseModel) -> Rand:
    return Rand(study.goal())


def _tl(study: PaperStudy, model: DenseModel) -> TL:
    return TL(study.goal())


def _tl_explore(study: PaperStudy, model: DenseModel) -> TLExplore:
    return TLExplore(
        _tl(study, model), Gate(study.threshold, study.window), EpsilonGreedy(study.epsilon)
    )


def _tl_foresight(study: PaperStudy, model: DenseModel) -> TLForesight:
    return TLForesight(study.goal())


def _fpd_learn(study: PaperStudy, model: DenseModel) -> FPDLearn:
    return FPDLearn(study.goal(), study.horizon, study.model_prior, study.replay)


def _fpd(study: PaperStudy, model: DenseModel) -> FPD:
    return FPD(model, study.goal(), study.horizon, study.replay)


def _clone(study: PaperStudy, model: DenseModel) -> Clone:
    return Clone(study.goal())


def _optimum(study: PaperStudy, model: DenseModel) -> Scripted:
    """Most visits to the first state that can be had: FPD minimises a divergence instead."""
    reward = np.zeros(study.num_states)
    reward[0] = 1.0
    return Scripted(mdp_optimum(model, reward, study.num_steps).policy)


PAPER_METHODS: Mapping[str, Method] = {
    "Rand": Method(_rand, reads_log=False),
    "TL": Method(_tl),
    "TL_explore": Method(_tl_explore),
    "FPD_learn": Method(_fpd_learn),
    "FPD": Method(_fpd, reads_log=False),
    "clone": Method(_clone),
    "optimum": Method(_optimum, reads_log=False),
}
"""The paper's five methods in its order, then two references: cloning the log, and the most visits that can be had."""

ALL_METHODS: Mapping[str, Method] = {
    **{name: method for name, method in PAPER_METHODS.items() if name not in REFERENCES},
    "TL_foresight": Method(_tl_foresight),
    **{name: PAPER_METHODS[name] for name in REFERENCES},
}
"""The paper's methods, ours, and the references."""

Gains = dict[tuple[str, str], IntArray]
"""Gain of every run, [runs], by past and method."""


def simulate(study: PaperStudy, runs: range) -> Iterator[tuple[str, str, IntArray]]:
    """Past, method and the gains of the given runs, as they are done."""
    streams = Streams([np.random.SeedSequence(study.seed, spawn_key=(i,)) for i in runs])
    drawing, past_rng, current_rng = streams.spawn(3)
    shape = (len(runs), study.num_states, study.num_actions, study.num_states)
    numbers = np.stack(
        [drawing.random((len(runs),)) for _ in range(int(np.prod(shape[1:])))], axis=-1
    )
    model = DenseModel(study.draw_rows(numbers.reshape(shape)))
    system = FiniteSystem(model, study.initial)
    agents = {name: method.make(study, model) for name, method in study.methods.items()}
    same: dict[str, IntArray] = {}  # gains of the methods that do not read the log
    for past, preferred in PASTS.items():
        teacher = FPD(model, study.goal(preferred), study.horizon, study.replay)
        log = run(system, teacher, study.num_records, past_rng).transitions
        counts = TransitionCounts.from_transitions(log, system.states, system.actions)
        recent = log.last(study.window)
        for name, agent in agents.items():
            gains = same.get(name)
            if gains is None:
                states = run(system, agent, study.num_steps, current_rng, counts, recent).states
                gains = np.asarray(np.count_nonzero(states[..., 1:] == 0, axis=-1))
            if not study.methods[name].reads_log:
                same[name] = gains
            yield past, name, gains


def collect(study: PaperStudy, runner: Runner | None = None) -> Gains:
    """Gains of all runs."""
    starts = range(0, study.runs, CHUNK)
    blocks = [partial(_block, study, range(i, min(i + CHUNK, study.runs))) for i in starts]
    parts = (runner or Runner()).run(
        "Simulating", blocks, {"study": "paper", "block": CHUNK, **study.settings()}
    )
    return {
        (past, method): np.concatenate([part[past][method] for part in parts])
        for past, methods in parts[0].items()
        for method in methods
    }


def _block(study: PaperStudy, runs: range) -> dict[str, dict[str, list[int]]]:
    """Gains of the given runs as plain values, by past and method."""
    found: dict[str, dict[str, list[int]]] = {past: {} for past in PASTS}
    for past, method, gains in simulate(study, runs):
        found[past][method] = gains.tolist()
    return found
