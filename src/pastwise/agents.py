"""Decision makers with one contract: they start on a past log, give a rule, and observe what followed.

`Rand` acts at random. `TL` learns its rule from the log by similarity and goes on learning while it acts; `TLExplore`
also explores while the gate is open, by any of the ways in `explore`. `FPDLearn` learns a transition model and designs
on it; `FPD` knows the model. `Scripted` and `Clone` are what they are compared with: any given policy, and the log's
own behaviour. `foresight` adds one more.

An agent is a value; its memory is the one mutable thing. All arrays may have leading axes, for a batch of independent
runs.

Paper: Section IV, the methods compared; Algorithm 1 [alg:alg_exploration].
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from pastwise.counts import TransitionCounts, Transitions
from pastwise.design import design, first_rule, require_feasible, require_horizon
from pastwise.explore import EpsilonGreedy, Explorer, Gate, Here, Window
from pastwise.ideal import IdealModel
from pastwise.models import LearnedModel, TransitionModel
from pastwise.numerics import (
    BoolArray,
    FloatArray,
    IntArray,
    Random,
    batch_index,
    check_sums,
    checked_probabilities,
    frozen,
    normalise,
)
from pastwise.posterior import (
    default_prior_count,
    gather_evidence,
    learned_rule,
    prior_concentration,
    require_same_sizes,
)
from pastwise.similarity import Similarity, normalised_similarity


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


def uniform_rule(ideal: IdealModel) -> FloatArray:
    """Every allowed action alike: [1 or S, A].

    Paper: Eq. (15) [eq:random_strategy].
    """
    return normalise(ideal.allowed.astype(np.float64))


def behaviour_rule(counts: TransitionCounts, allowed: BoolArray | bool = True) -> FloatArray:
    """What the log did: each allowed action's share of a state's records, uniform in unseen states: [..., S, A]."""
    done = np.where(allowed, counts.by_state_action(counts.weight), 0.0)
    seen = done.sum(axis=-1, keepdims=True) > 0
    return normalise(np.where(seen, done, allowed))


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

    def observe(self, memory: Script, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Move on to the next epoch."""
        memory.epoch += 1


@dataclass(frozen=True)
class Scripted(_Follower):
    """Follows a given policy [..., H, S, A], epoch by epoch, and begins it again after its end."""

    policy: FloatArray

    def __post_init__(self) -> None:
        policy = checked_probabilities("policy", self.policy, sum_to_one=False)
        if policy.ndim < 3:
            raise ValueError(f"a policy is [..., epoch, state, action]; got shape {policy.shape}")
        sums = policy.sum(axis=-1)
        check_sums("policy", np.where(sums == 0, 1.0, sums), policy.shape[-1])  # zeros: no action is feasible
        object.__setattr__(self, "policy", frozen(policy))

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory at the first epoch; of the log only its shape is used."""
        sizes = (len(counts.states), len(counts.actions))
        if self.policy.shape[-2:] != sizes:
            raise ValueError(f"the policy is over {self.policy.shape[-2:]} states and actions, the system has {sizes}")
        return Script(self.policy, batch_index(counts.shape))


@dataclass(frozen=True)
class Rand(_Follower):
    """Every allowed action alike, always.

    Paper: Rand in Section IV, Eq. (15) [eq:random_strategy].
    """

    ideal: IdealModel

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory; the log is not used."""
        require_same_sizes(counts, self.ideal)
        policy = np.broadcast_to(uniform_rule(self.ideal), (1, self.ideal.num_states, self.ideal.num_actions))
        return Script(policy, batch_index(counts.shape))


@dataclass(frozen=True)
class Clone(_Follower):
    """Does what the log did: the share of each action among the records of a state, uniform in unseen states."""

    ideal: IdealModel

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory that holds the log's own behaviour."""
        require_same_sizes(counts, self.ideal)
        rule = behaviour_rule(counts, self.ideal.allowed)
        return Script(rule[..., None, :, :], batch_index(counts.shape))


def _planned(model: TransitionModel, ideal: IdealModel, horizon: int, replay: bool) -> FloatArray:
    """The rules of a horizon, or the first of them: [..., 1 or horizon, S, A]."""
    if replay:
        return design(model, ideal, horizon).policy
    return first_rule(model, ideal, horizon)[..., None, :, :]


@dataclass(frozen=True)
class FPD(_Follower):
    """Fully probabilistic design on a known model.

    Parameters
    ----------
    model : TransitionModel
    ideal : IdealModel
    horizon : int
        Number of epochs designed for at a time.
    replay : bool
        False, re-planning: at every epoch act by the first rule of a fresh horizon. True: follow the rules of
        one horizon in turn, then begin them again.

    Paper: FPD in Section IV, Theorem 1 [th:solution_FPD].
    """

    model: TransitionModel
    ideal: IdealModel
    horizon: int = 10
    replay: bool = False

    def __post_init__(self) -> None:
        require_horizon(self.horizon)

    @cached_property
    def policy(self) -> FloatArray:
        """The rules that are followed in turn: [..., 1 or horizon, S, A]."""
        return _planned(self.model, self.ideal, self.horizon, self.replay)

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Script:
        """Memory at the first epoch; of the log only its shape is used."""
        sizes = (len(counts.states), len(counts.actions))
        if self.policy.shape[-2:] != sizes:
            raise ValueError(f"the policy is over {self.policy.shape[-2:]} states and actions, the system has {sizes}")
        return Script(self.policy, batch_index(counts.shape))


@dataclass
class Evidence:
    """All that TL remembers: total similarity of each state and action, [..., S, A]; never the log."""

    evidence: FloatArray
    here: tuple[IntArray, ...]


@dataclass(frozen=True)
class TL:
    """Transfer learning by similarity, without exploration: O(A) for a rule, O(1) for an observation.

    Parameters
    ----------
    ideal : IdealModel
        Today's goal.
    prior_count : scalar or broadcastable to [S, A, S], optional
        nu_0; by default the smallest joint value of the ideal, divided by S.
    similarity : Similarity
        How well a transition serves the goal.

    Paper: TL in Section IV, by Eq. (10) [eq:estimated_dec_rule].
    """

    ideal: IdealModel
    prior_count: ArrayLike | None = None
    similarity: Similarity = normalised_similarity

    def __post_init__(self) -> None:
        _ = self.prior  # a bad prior count is an error now, not at the first decision

    @cached_property
    def prior(self) -> FloatArray:
        """Prior concentration of each state and action: [S, A]."""
        concentration = prior_concentration(self.ideal, self.prior_count)
        return frozen(np.broadcast_to(concentration, (self.ideal.num_states, self.ideal.num_actions)))

    @cached_property
    def allowed(self) -> BoolArray:
        """Which actions may be taken: [S, A]."""
        return np.broadcast_to(self.ideal.allowed, (self.ideal.num_states, self.ideal.num_actions))

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Evidence:
        """Memory of the past log."""
        return Evidence(gather_evidence(counts, self.ideal, self.similarity), batch_index(counts.shape))

    def rule(self, memory: Evidence, state: IntArray, rng: Random) -> FloatArray:
        """The learned rule in the current states [...]: [..., A]."""
        return learned_rule(memory.evidence[(*memory.here, state)], self.prior[state])

    def observe(self, memory: Evidence, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Learn from one transition of each run."""
        self.add(memory, state, action, self.similarity(self.ideal, state, action, next_state))

    def add(self, memory: Evidence, state: IntArray, action: IntArray, weight: FloatArray) -> None:
        """Add one record's weight to the evidence; that of an action that is not allowed counts for nothing."""
        memory.evidence[(*memory.here, state, action)] += weight * self.allowed[state, action]


@dataclass
class Exploration:
    """Memory of TL_explore: evidence, records of each state and action [..., S, A], and the window of the gate."""

    learned: Evidence
    records: FloatArray
    window: Window


@dataclass(frozen=True)
class TLExplore:
    """Transfer learning by similarity that explores while recent records serve the goal badly.

    Paper: TL_explore in Section IV, Algorithm 1 [alg:alg_exploration].
    """

    learner: TL
    gate: Gate = field(default_factory=Gate)
    explore: Explorer = field(default_factory=EpsilonGreedy)

    @cached_property
    def uniform(self) -> FloatArray:
        """The rule to explore by: [S, A]."""
        ideal = self.learner.ideal
        return np.broadcast_to(uniform_rule(ideal), (ideal.num_states, ideal.num_actions))

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Exploration:
        """Memory of the past log; the gate starts on its last records, and is open if none are given."""
        similarity = np.empty((*counts.shape, 0))
        if recent is not None:
            similarity = self.learner.similarity(self.learner.ideal, *recent.last(self.gate.window))
        records = counts.by_state_action(counts.records.astype(np.float64))
        return Exploration(self.learner.start(counts), records, self.gate.start(similarity))

    def rule(self, memory: Exploration, state: IntArray, rng: Random) -> FloatArray:
        """The learned rule or, while the gate is open, the one to explore by: [..., A]."""
        learned, place = self.learner.rule(memory.learned, state, rng), (*memory.learned.here, state)
        evidence = memory.learned.evidence[place] + self.learner.prior[state]
        exploring = self.explore(Here(learned, self.uniform[state], evidence, memory.records[place]), rng)
        return np.where(self.gate.is_open(memory.window)[..., None], exploring, learned)

    def observe(self, memory: Exploration, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Learn from one transition of each run, and note its similarity."""
        weight = self.learner.similarity(self.learner.ideal, state, action, next_state)
        self.learner.add(memory.learned, state, action, weight)
        memory.records[(*memory.learned.here, state, action)] += 1.0
        memory.window.push(weight)


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

    Paper: FPD_learn in Section IV, Theorem 1 [th:solution_FPD] on the learned model.
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

    def observe(self, memory: Planning, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Learn from one transition of each run."""
        memory.model.observe(state, action, next_state)
        if memory.script is not None:
            memory.script.epoch += 1
