"""The paper's study: three past goals, five methods, two references, many random systems.

Every run samples a system. A decision maker that knows it and has a past goal leaves a log of k
records. Then each method, given the log and today's goal, acts for h epochs; its *gain* is the
number of visits to the first state. All pasts and methods of a run share the system, the start
state and the random numbers, so differences between them are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from pastwise import methods
from pastwise._numerics.arrays import FloatArray, IntArray, normalise
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod, acting_for
from pastwise.methods.baselines import Scripted
from pastwise.methods.fpd import FPD
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.dense import DenseModel
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.studies.runner import Runner
from pastwise.theory.closed_loop import ideal_preferring
from pastwise.theory.exploration import EpsilonGreedy
from pastwise.theory.fpd import mdp_optimum

# Random systems.

RowSampler = Callable[[FloatArray], FloatArray]
"""From uniform numbers [..., S] to rows of a transition model [..., S]."""


def uniform_rows(uniform: FloatArray) -> FloatArray:
    """Uniform numbers, normalised: rows near the middle of the simplex."""
    return normalise(uniform)


def dirichlet_rows(uniform: FloatArray) -> FloatArray:
    """Rows from Dirichlet(1, ..., 1), uniform on the simplex: exponential numbers, normalised."""
    return normalise(-np.log1p(-uniform))


ROW_SAMPLERS: Mapping[str, RowSampler] = {"uniform": uniform_rows, "dirichlet": dirichlet_rows}
"""Ways to sample a row, by name."""


def random_models(
    sample_rows: RowSampler, num_states: int, num_actions: int, streams: Streams
) -> DenseModel:
    """A random transition model for each of the streams: [runs, S, A, S]."""
    num_entries = num_states * num_actions * num_states
    numbers = [streams.random((len(streams),)) for _ in range(num_entries)]
    shape = (len(streams), num_states, num_actions, num_states)
    uniform = np.stack(numbers, axis=-1).reshape(shape)
    return DenseModel(sample_rows(uniform))


# Settings.

PASTS: Mapping[str, tuple[int, ...]] = {"p3": (2,), "p12": (0, 1), "p1": (0,)}
"""The states that each past goal prefers, by the paper's name. Today's goal is that of p1."""

PAPER_METHODS = ("Rand", "TL", "TL_explore", "FPD_learn", "FPD")
"""The paper's methods, in its order."""

REFERENCES = ("clone", "optimum")
"""Not in the paper: repeating what the log did, and the most visits that are possible."""

IGNORING_LOG = ("Rand", "FPD", "optimum")
"""Methods that do not read the log: their gains are the same after every past."""


def all_methods() -> tuple[str, ...]:
    """The paper's methods, every other registered method, then the references."""
    known = (*PAPER_METHODS, *REFERENCES)
    others = [name for name in methods.names() if name not in known]
    return (*PAPER_METHODS, *others, *REFERENCES)


@dataclass(frozen=True)
class PaperStudy:
    """Settings of the study; the defaults are the paper's.

    Parameters
    ----------
    runs, seed : int
        Number of runs, and the seed of their random numbers.
    num_states, num_actions : int
        Size of a system.
    num_records : int
        k, the records of a log.
    num_steps : int
        h, the epochs that a method acts for.
    horizon : int
        Epochs that FPD and FPD_learn plan for.
    epsilon, threshold, window : float, float, int
        Exploration of TL_explore.
    sample_rows : RowSampler
        How to sample the rows of a transition model; the paper leaves it open.
    model_prior : float, optional
        Prior count of the model that FPD_learn learns; TL's nu_0 by default.
    replay : bool
        How a horizon of rules serves more epochs than it has. False: plan anew at every epoch.
        True: follow the rules in turn, then plan anew.
    initial : probabilities, optional
        Distribution of the start state, which is sampled anew for today's task; uniform by default.
    methods : names of methods
        Registered methods, ``FPD`` (which knows the true model), and ``optimum``.
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
    sample_rows: RowSampler = uniform_rows
    model_prior: float | None = None
    replay: bool = False
    initial: tuple[float, ...] | None = None
    methods: Sequence[str] = (*PAPER_METHODS, *REFERENCES)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain values, for JSON."""
        settings = {}
        for field in fields(self):
            if field.name not in ("sample_rows", "methods"):
                settings[field.name] = getattr(self, field.name)
        names = {sampler: name for name, sampler in ROW_SAMPLERS.items()}
        settings["transitions"] = names.get(self.sample_rows, "other")
        settings["methods"] = list(self.methods)
        return settings

    def goal(self, preferred: tuple[int, ...] = (0,)) -> IdealModel:
        """The ideal of a goal that prefers some states; today's by default."""
        return ideal_preferring(preferred, self.num_states, self.num_actions)

    def method(self, name: str, model: DenseModel) -> AnyMethod:
        """A method by name, with the study's settings; others with their defaults.

        Parameters
        ----------
        name : str
        model : DenseModel
            The true transitions of the runs, which FPD and the optimum know.
        """
        if name == "TL_explore":
            explore = EpsilonGreedy(self.epsilon)
            return TLExplore(threshold=self.threshold, window=self.window, explore=explore)
        if name == "FPD_learn":
            return FPDLearn(self.horizon, self.model_prior, self.replay)
        if name == "FPD":
            return FPD(model, self.horizon, self.replay)
        if name == "optimum":
            return self._optimum(model)
        return acting_for(methods.create(name), self.num_steps)

    def _optimum(self, model: DenseModel) -> Scripted:
        """The policy with the most visits to the first state; FPD minimises a divergence."""
        reward = np.zeros(self.num_states)
        reward[0] = 1.0
        return Scripted(mdp_optimum(model, reward, self.num_steps).policy)


# Simulation.

BLOCK_SIZE = 1000
"""Runs simulated at once: few enough for their arrays to stay in the processor's cache."""

Gains = dict[tuple[str, str], IntArray]
"""Gain of every run, [runs], by past and method."""


def collect(study: PaperStudy, runner: Runner | None = None) -> Gains:
    """Gains of all runs."""
    # Blocks of runs are the parts of the study.
    blocks = []
    for start in range(0, study.runs, BLOCK_SIZE):
        stop = min(start + BLOCK_SIZE, study.runs)
        blocks.append(partial(_block_gains, study, range(start, stop)))
    settings = {"study": "paper", "block": BLOCK_SIZE, **study.to_dict()}
    parts = (runner or Runner()).run("Simulating", blocks, settings)

    gains: Gains = {}
    for past in PASTS:
        for method in study.methods:
            gains[past, method] = np.concatenate([part[past][method] for part in parts])
    return gains


def _block_gains(study: PaperStudy, runs: range) -> dict[str, dict[str, list[int]]]:
    """Gains of the given runs as plain values: past -> method -> [runs]."""
    # Every run has its own random numbers: for its system, for the past, and for today.
    streams = Streams([np.random.SeedSequence(study.seed, spawn_key=(i,)) for i in runs])
    system_stream, past_stream, current_stream = streams.spawn(3)
    model = random_models(study.sample_rows, study.num_states, study.num_actions, system_stream)
    system = FiniteSystem(model, study.initial)
    compared = {name: study.method(name, model) for name in study.methods}

    gains: dict[str, dict[str, list[int]]] = {}
    for past, preferred in PASTS.items():
        # The log of a decision maker with the past goal.
        teacher = FPD(model, study.horizon, study.replay)
        past_goal = study.goal(preferred)
        log = run(system, teacher, study.num_records, past_stream, ideal=past_goal).transitions
        counts = TransitionCounts.from_transitions(log, system.states, system.actions)
        recent = log.last(study.window)

        # Each method's visits to the first state.
        gains[past] = {}
        for name, method in compared.items():
            earlier = next(iter(gains.values()))
            if name in IGNORING_LOG and name in earlier:
                gains[past][name] = earlier[name]
                continue
            trajectory = run(
                system,
                method,
                study.num_steps,
                current_stream,
                ideal=study.goal(),
                counts=counts,
                recent=recent,
            )
            visits = np.count_nonzero(trajectory.states[..., 1:] == 0, axis=-1)
            gains[past][name] = np.asarray(visits).tolist()
    return gains
