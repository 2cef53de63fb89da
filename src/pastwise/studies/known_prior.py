"""The paper's study with methods that know how its systems are sampled.

TL_foresight infers the prior of a system's rows from the log. Next to it stands the same planner
with the prior that the rows were in fact sampled from: the difference is about what a better
inference of the prior could add.

    study = KnownPriorStudy(runs=300, methods=("TL_foresight", "known prior"))
    gains = collect(study)  # as any study of the paper

- ``known prior`` is TL_foresight on the posterior of that prior.
- ``posterior sampling`` samples a model from the same posterior every so many epochs and follows
  its best rule. It does not look at what the past did, only at what followed.

The prior is a Dirichlet distribution around the middle of the simplex with the variance of the
study's rows. For rows from Dirichlet(1, ..., 1) this is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
from scipy.special import gammaincinv

from pastwise._numerics.arrays import FloatArray, IntArray, batch_index, normalise
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import EVERY_STATE, AnyMethod, Plan, States, acting_for
from pastwise.methods.foresight import Foresight, TLForesight
from pastwise.models.belief import Belief
from pastwise.models.dense import DenseModel
from pastwise.models.prior import RowPrior
from pastwise.studies.paper import PaperStudy, RowSampler
from pastwise.theory.fpd import mdp_optimum

KNOWN_PRIOR = "known prior"
POSTERIOR_SAMPLING = "posterior sampling"


@dataclass(frozen=True)
class KnownPriorStudy(PaperStudy):
    """The paper's study; ``known prior`` and ``posterior sampling`` may be among its methods."""

    def method(self, name: str, model: DenseModel) -> AnyMethod:
        """A method by name; see `PaperStudy.method`."""
        if name == KNOWN_PRIOR:
            mass = mass_of_rows(self.sample_rows, self.num_states)
            return acting_for(KnownPrior(mass=mass), self.num_steps)
        if name == POSTERIOR_SAMPLING:
            mass = mass_of_rows(self.sample_rows, self.num_states)
            return PosteriorSampling(mass)
        return super().method(name, model)


def mass_of_rows(sample_rows: RowSampler, num_states: int, *, num_samples: int = 200_000) -> float:
    """Mass of the Dirichlet distribution with the variance of the rows that a study samples.

    Parameters
    ----------
    num_samples : int
        Rows that the variance is estimated from: enough for an error of about half a percent.
    """
    uniform = np.random.default_rng(0).random((num_samples, num_states))
    mean = 1 / num_states
    variance = np.mean((sample_rows(uniform) - mean) ** 2)
    return float(mean * (1 - mean) / variance - 1)


@dataclass(frozen=True)
class KnownPrior(TLForesight):
    """TL_foresight with a known prior: rows are independent, and uniform on average.

    Parameters
    ----------
    mass : float
        Mass of the prior, in records.
    """

    mass: float = 1.0

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Foresight:
        """Memory of the past log."""
        memory = super().start(counts, ideal, recent)
        num_systems = prod(counts.shape)
        prior = RowPrior(
            mass=np.full(num_systems, self.mass),
            pull=np.full(num_systems, np.inf),
            shares=np.tile([1.0, 0.0, 0.0], (num_systems, 1)),
        )
        memory.belief = Belief(counts, prior)
        return memory


@dataclass
class Sampled:
    """Memory of `PosteriorSampling`.

    Attributes
    ----------
    concentration : [..., S, A, S]
        Of the Dirichlet posterior of each row.
    reward : [S]
        Of each next state: 1 for the states that the goal prefers.
    rule : [..., S, A]
        The best rule of the model that was sampled last.
    observed : int
        Records observed since the start.
    """

    concentration: FloatArray
    reward: FloatArray
    rule: FloatArray
    observed: int = 0


@dataclass(frozen=True)
class PosteriorSampling:
    """Follow the best rule of a model that is sampled from the posterior, for a while.

    Parameters
    ----------
    mass : float
        Mass of the prior of each row, in records; its mean is uniform.
    every : int
        Epochs for which a sampled model serves.
    horizon : int
        Epochs that a rule plans for; the study's systems forget their state within a few.
    """

    name: ClassVar[str] = POSTERIOR_SAMPLING
    exact_updates: ClassVar[bool] = False

    mass: float
    every: int = 5
    horizon: int = 30

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Sampled:
        """Memory of the past log."""
        S = len(counts.states)
        A = len(counts.actions)
        records = np.zeros((prod(counts.shape), S, A, S))
        place = (counts.batch, counts.state, counts.action, counts.next_state)
        np.add.at(records, place, counts.weight)
        wanted = ideal.transition[0, 0]
        return Sampled(
            concentration=records.reshape(*counts.shape, S, A, S) + self.mass / S,
            reward=(wanted > 1 / S).astype(float),
            rule=np.full((*counts.shape, S, A), 1 / A),
        )

    def rule(self, memory: Sampled, state: IntArray, rng: Random) -> FloatArray:
        """The rule in use in the current states [...]: [..., A]."""
        batch = state.shape
        if memory.observed % self.every == 0:
            # A Dirichlet row is a row of Gamma variables, normalised.
            columns = [rng.random(batch) for _ in range(prod(memory.concentration.shape[-3:]))]
            uniform = np.stack(columns, axis=-1).reshape(memory.concentration.shape)
            gamma = np.maximum(gammaincinv(memory.concentration, uniform), 1e-300)
            model = DenseModel(normalise(gamma))
            memory.rule = mdp_optimum(model, memory.reward, self.horizon).policy[..., 0, :, :]
        return np.asarray(memory.rule[(*batch_index(batch), state)])

    def observe(
        self, memory: Sampled, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.concentration[(*batch_index(state.shape), state, action, next_state)] += 1
        memory.observed += 1

    def plan(self, memory: Sampled, states: States = EVERY_STATE) -> Plan:
        """The rule in use."""
        return Plan(memory.rule, {}).at(states)
