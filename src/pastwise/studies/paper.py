"""The paper's study: three past goals, five methods and two references, many random systems.

In every run a system is drawn. An agent that knows it and has a past goal leaves a log of k records; then each
method, given the log and today's goal, acts for h epochs. Its gain is the number of visits to the first state. All
pasts and methods of a run share the system, the start state and the random numbers, so that differences between them
are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray, IntArray, normalise
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.baselines import Scripted
from pastwise.methods.foresight import Optimism, TLForesight
from pastwise.methods.fpd import FPD
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.dense import DenseModel
from pastwise.report.figures import REFERENCES
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.studies.runner import Runner
from pastwise.theory.closed_loop import ideal_preferring
from pastwise.theory.exploration import EpsilonGreedy
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


NEVER_READ_LOG = ("Rand", "FPD", "optimum")
"""Their gains are the same after every past."""

PAPER_METHODS = ("Rand", "TL", "TL_explore", "FPD_learn", "FPD", *REFERENCES)
"""The paper's five methods in its order, then two references: cloning the log, and the optimum."""


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
    methods: tuple[str, ...] = PAPER_METHODS

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


def all_methods() -> tuple[str, ...]:
    """The paper's methods, every other registered one that learns from a log, the references."""
    others = [name for name in methods.names() if name not in PAPER_METHODS]
    return (*PAPER_METHODS[:5], *others, *REFERENCES)


def method_of(name: str, study: PaperStudy, model: DenseModel) -> AnyMethod:
    """A method of the study by its name, with the study's settings; others by their defaults.

    Parameters
    ----------
    model : DenseModel
        The true systems, which FPD and the optimum know.
    """
    if name == "TL_explore":
        explore = EpsilonGreedy(study.epsilon)
        return TLExplore(threshold=study.threshold, window=study.window, explore=explore)
    if name == "FPD_learn":
        return FPDLearn(study.horizon, study.model_prior, study.replay)
    if name == "FPD":
        return FPD(model, study.horizon, study.replay)
    if name == "TL_foresight":
        return TLForesight(attitude=Optimism())  # it acts and learns
    if name == "optimum":
        # Most visits to the first state; FPD minimises a divergence instead.
        reward = np.zeros(study.num_states)
        reward[0] = 1.0
        return Scripted(mdp_optimum(model, reward, study.num_steps).policy)
    return methods.create(name)


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
    compared = {name: method_of(name, study, model) for name in study.methods}
    same: dict[str, IntArray] = {}  # gains of the methods that do not read the log
    for past, preferred in PASTS.items():
        teacher = FPD(model, study.horizon, study.replay)
        past_goal = study.goal(preferred)
        past_run = run(system, teacher, study.num_records, past_rng, ideal=past_goal)
        log = past_run.transitions
        counts = TransitionCounts.from_transitions(log, system.states, system.actions)
        recent = log.last(study.window)
        for name, method in compared.items():
            gains = same.get(name)
            if gains is None:
                current_run = run(
                    system,
                    method,
                    study.num_steps,
                    current_rng,
                    ideal=study.goal(),
                    counts=counts,
                    recent=recent,
                )
                states = current_run.states
                gains = np.asarray(np.count_nonzero(states[..., 1:] == 0, axis=-1))
            if name in NEVER_READ_LOG:
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
