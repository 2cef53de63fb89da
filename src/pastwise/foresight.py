"""TL_foresight: the sixth agent, which plans where it knows, and follows the past where that was good.

It designs on what the log lets one believe of the world. Three things go into the worth of an action: the value that
the belief foresees, over many epochs; how doubtful that value is, which an *attitude* counts against the action
(`Pessimism`, for acting from a log alone) or for it (`Optimism`, for acting and learning); and the past's example.

    index(state, action) = value + attitude * doubt + EXAMPLE * share * typical doubt * ln example(action | state)
    rule(action | state)  proportional to  exp(index / temperature)

This is fully probabilistic design whose ideal leaves the world as it is believed to be, but for the goal
(ideal transition = belief * exp(desire / temperature)), and has the learned rule of TL, tempered, as its action factor.
The share of the example that is followed goes by what the past was *worth* for today's goal under the belief: 0 where
it did no better than acting at random, 1 where nothing better is known; a young log gets the benefit of the doubt. Both
example and attitude are in units of doubt, so both fade as the records grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pastwise.agents import TL, behaviour_rule, uniform_rule
from pastwise.beliefs import Belief, believe
from pastwise.counts import TransitionCounts, Transitions
from pastwise.design import require_horizon
from pastwise.ideal import IdealModel
from pastwise.numerics import BoolArray, FloatArray, IntArray, Random, batch_index, fold, group_sum, normalise
from pastwise.posterior import learned_rule, require_same_sizes

EXAMPLE = 1.2
"""Weight of the past's example, in doubts for each nat."""

TEMPERATURE = 0.005
"""Temperature of the rule, in doubts: it is nearly greedy, and stochastic where actions are as good as equal."""

ERROR = 0.05
"""Share of the example that is uniform: the past may be wrong."""

SKILL_EPOCHS = 20
"""Epochs over which the past's worth is judged."""

BENEFIT = 0.5
"""Standard errors of the log's mean desire that the past is credited with."""

FORBIDDEN = float(np.log(1e-5))
"""How far below the least wanted next state a forbidden one lies, as ln ideal."""


class Attitude(Protocol):
    """What doubt, and the past's example, mean for an action, given what the past was worth."""

    def doubt(self, worth: FloatArray) -> FloatArray:
        """Doubts to add to a value: [...] -> [...]."""
        ...

    def example(self, worth: FloatArray) -> FloatArray:
        """How much of the example to follow, from 0 to 1: [...] -> [...]."""
        ...


@dataclass(frozen=True)
class Optimism:
    """Doubt speaks for an action, the more the less the past was worth: trying it teaches.

    For acting and learning at the same time.
    """

    deviations: float = 1.5

    def doubt(self, worth: FloatArray) -> FloatArray:
        """Doubts to add to a value: [...]."""
        return self.deviations * (1 - worth)

    def example(self, worth: FloatArray) -> FloatArray:
        """How much of the example to follow: [...]."""
        return worth


@dataclass(frozen=True)
class Pessimism:
    """Doubt speaks against an action: for acting from a log alone, where nothing more is learned.

    That already favours what the past did often, so its example must be worth more to add to it.
    """

    deviations: float = 1.0

    def doubt(self, worth: FloatArray) -> FloatArray:
        """Doubts to add to a value: [...]."""
        return np.full(np.shape(worth), -self.deviations)

    def example(self, worth: FloatArray) -> FloatArray:
        """How much of the example to follow: [...]."""
        return worth**2


@dataclass(frozen=True, eq=False)
class Desire:
    """How much a transition is wanted: ln ideal, scaled to [0, 1], as a part of the next state and one of the action.

    Attributes
    ----------
    following : [1 or S, 1 or A, S]
    doing : [1 or S, A]
    """

    following: FloatArray
    doing: FloatArray

    @classmethod
    def of(cls, ideal: IdealModel) -> Desire:
        """From an ideal without leading axes."""
        if ideal.log_transition.ndim > 3 or ideal.log_rule.ndim > 2:
            raise ValueError("TL_foresight takes one goal at a time")
        following, doing = _from_best(ideal.log_transition), _from_best(ideal.log_rule_allowed, ideal.allowed)
        scale = -(following.min() + doing.min())
        if scale == 0:
            return cls(np.zeros(following.shape), np.zeros(doing.shape))
        return cls(1 + following / scale, doing / scale)

    def mean_of(self, counts: TransitionCounts) -> tuple[FloatArray, FloatArray]:
        """Mean desire of the records, half a record added either way, and their number: [...], [...]."""
        s, a = (np.minimum(i, n - 1) for i, n in zip((counts.state, counts.action), self.following.shape, strict=False))
        wanted = self.following[s, a, counts.next_state] + self.doing[np.minimum(s, len(self.doing) - 1), counts.action]
        systems = int(np.prod(counts.shape))
        total, number = (group_sum(counts.batch, v, systems) for v in (counts.weight * wanted, counts.weight))
        return ((total + 0.5) / (number + 1)).reshape(counts.shape), number.reshape(counts.shape)

    def moments(self, belief: Belief, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of desire + value of what follows: [..., S] -> [..., S, A] twice."""
        if self.following.shape[:2] == (1, 1):
            mean, variance = belief.moments(self.following[0, 0] + value)
        else:
            mean, variance = belief.moments_each(self.following + value[..., None, None, :])
        return mean + self.doing, variance


def _from_best(log_values: FloatArray, allowed: BoolArray | bool = True) -> FloatArray:
    """Logarithms less the largest; what is forbidden lies `FORBIDDEN` below the least; 0 where it does not matter."""
    possible = ~np.isneginf(log_values)
    below = log_values - log_values.max()
    least = below[possible].min()
    return np.where(allowed, np.where(possible, below, least + FORBIDDEN), 0.0)


@dataclass(frozen=True, eq=False)
class Plan:
    """A rule, and what it weighs.

    Attributes
    ----------
    rule : [..., S, A]
    value : [..., S, A]
        Desire foreseen over the horizon, from 0 to 1 an epoch.
    doubt : [..., S, A]
        Standard deviation of the value under the belief.
    attitude : [..., S, A]
        What the doubt adds to the value.
    example : [..., S, A]
        What the past's example adds.
    worth : [...]
        What the past was worth for today's goal, from 0 to 1.
    """

    rule: FloatArray
    value: FloatArray
    doubt: FloatArray
    attitude: FloatArray
    example: FloatArray
    worth: FloatArray


@dataclass(frozen=True, eq=False)
class Past:
    """What is remembered of the past log: where it was, what it did, what TL learns from it, how it served the goal.

    Attributes
    ----------
    visits : [..., S]
    behaviour, example : [..., S, A]
    desire, number : [...]
        Mean desire of its records, half a record added either way, and their number.
    """

    visits: FloatArray
    behaviour: FloatArray
    example: FloatArray
    desire: FloatArray
    number: FloatArray

    @property
    def served(self) -> BoolArray:
        """Whether any record served the goal at all: [...]."""
        return np.asarray(self.desire * (self.number + 1) > 0.5)


Choice = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From value and variance [..., S, A] to a rule [..., S, A] and what it is worth, [..., S, A]."""


def _look_ahead(belief: Belief, desire: Desire, ends: IntArray, horizon: int, choose: Choice) -> FloatArray:
    """Worth of being in each state, for a way to choose: [..., S]."""
    value, step, patience = np.zeros(belief.weight.shape[:-1]), np.inf, PATIENCE if len(ends) else 1.0
    for epoch in range(horizon):
        rule, worth = choose(*desire.moments(belief, value))
        following = (rule * worth).sum(axis=-1) * patience
        following[..., ends] = 0.0
        previous, step, value = step, following - value, following
        if len(ends) and np.abs(step).max() < SETTLED:
            break
        if not len(ends) and np.abs(step - previous).max() < STEADY:
            return np.asarray(value + (horizon - epoch - 1) * step)
    return value


SETTLED = 1e-5
"""Where episodes end, a value that moves by less than this in an epoch has settled."""

STEADY = 1e-4
"""Where nothing ends, a value grows with every epoch; once its growth moves by less than this, it goes on like that."""

PATIENCE = 1 - 1e-4
"""Where episodes end, what comes an epoch later is worth so much: of equally good ways the shorter is taken."""


def worth_of(
    belief: Belief, past: Past, desire: Desire, ends: IntArray, uniform: FloatArray, since: int = 0
) -> FloatArray:
    """What the past was worth for today's goal: its behaviour's value between acting at random and the best: [...].

    The benefit of the doubt fades with its records and with those observed ``since``.
    """

    def value(rule: FloatArray) -> FloatArray:
        ahead = _look_ahead(belief, desire, ends, SKILL_EPOCHS, lambda mean, variance: (rule, mean))
        return np.asarray((past.visits * ahead).sum(axis=-1))

    def greedy(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        best = np.where(uniform > 0, mean, -np.inf)
        return normalise((best == fold(np.maximum, best)[..., None]).astype(np.float64)), mean

    best = (past.visits * _look_ahead(belief, desire, ends, SKILL_EPOCHS, greedy)).sum(axis=-1)
    done, random = value(past.behaviour), value(uniform)
    always = Desire(np.ones((1, 1, belief.weight.shape[-2])), np.zeros((1, 1)))
    length = _look_ahead(belief, always, ends, SKILL_EPOCHS, lambda mean, variance: (past.behaviour, mean))
    error = np.sqrt(past.desire * (1 - past.desire) / (past.number + since + 1)) * (past.visits * length).sum(axis=-1)
    credit = BENEFIT * error
    worth = (done - random + credit) / np.maximum(best - random + credit, np.finfo(float).tiny)
    return np.where(past.number > 0, np.clip(worth, 0.0, 1.0), 0.0)


def plan(
    belief: Belief,
    past: Past,
    desire: Desire,
    ends: IntArray,
    uniform: FloatArray,
    attitude: Attitude,
    horizon: int,
    since: int = 0,
) -> Plan:
    """The rule of the index, looking ahead over the horizon.

    Where no record ever served the goal nothing good is known, and doubt speaks for an action whatever the attitude.

    Parameters
    ----------
    ends : [number]
        Terminal states.
    uniform : [1 or S, A]
        Every allowed action alike.
    since : int
        Records observed since the past log.
    """
    worth = worth_of(belief, past, desire, ends, uniform, since)
    allowed = uniform > 0
    spread = np.where(past.served, attitude.doubt(worth), Optimism().doubt(worth))[..., None, None]
    example = np.where(allowed, (1 - ERROR) * past.example + ERROR * uniform, 1.0)
    leaning = EXAMPLE * attitude.example(worth)[..., None, None] * np.log(example)

    def choose(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        doubt = np.sqrt(variance / (belief.weight + 1))
        typical = np.maximum((doubt * uniform).sum(axis=-1, keepdims=True), np.finfo(float).tiny)
        index = np.where(allowed, mean + spread * doubt + typical * leaning, -np.inf)
        rule = np.exp((index - fold(np.maximum, index)[..., None]) / (TEMPERATURE * typical))
        return normalise(rule), mean + spread * doubt

    value = _look_ahead(belief, desire, ends, horizon, choose)
    mean, variance = desire.moments(belief, value)
    doubt = np.sqrt(variance / (belief.weight + 1))
    typical = (doubt * uniform).sum(axis=-1, keepdims=True)
    return Plan(choose(mean, variance)[0], mean, doubt, spread * doubt, typical * leaning, worth)


@dataclass
class Foresight:
    """Memory of TL_foresight: belief and past, the plan in use, and how many records came since the past, and then."""

    belief: Belief
    past: Past
    ends: IntArray
    here: tuple[IntArray, ...]
    plan: Plan | None = None
    since: int = 0
    planned: int = 0


@dataclass(frozen=True)
class TLForesight:
    """Plans on what the log lets one believe, and follows the past's example for as much as it was worth.

    Parameters
    ----------
    ideal : IdealModel
        Today's goal.
    attitude : Attitude
        `Optimism`, for acting and learning, by default; `Pessimism` for acting from a log alone.
    horizon : int
        Most epochs to look ahead; it ends earlier once nothing changes any more.
    replan : float
        Plan anew after the records have grown by this share (and after at least one).

    Paper: goes beyond it, within Theorem 1 [th:solution_FPD] and Eq. (10) [eq:estimated_dec_rule].
    """

    ideal: IdealModel
    attitude: Attitude = field(default_factory=Optimism)
    horizon: int = 300
    replan: float = 0.01

    def __post_init__(self) -> None:
        require_horizon(self.horizon)
        if not self.replan >= 0:
            raise ValueError(f"replan must be a share of the records, at least 0, not {self.replan}")

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Foresight:
        """Memory of the past log."""
        require_same_sizes(counts, self.ideal)
        counts, example = counts.evenly_weighted(), TL(self.ideal)
        visits = counts.by_state_action(counts.weight).sum(axis=-1)
        seen = visits.sum(axis=-1, keepdims=True) > 0
        past = Past(
            normalise(np.where(seen, visits, 1.0)),
            behaviour_rule(counts, self.ideal.allowed),
            learned_rule(example.start(counts).evidence, example.prior),
            *Desire.of(self.ideal).mean_of(counts),
        )
        return Foresight(believe(counts), past, counts.terminal, batch_index(counts.shape))

    def plan(self, memory: Foresight) -> Plan:
        """The plan in use; made anew where the records have grown enough."""
        due = memory.planned + max(1.0, self.replan * (memory.past.number.mean() + memory.planned))
        if memory.plan is None or memory.since >= due:
            uniform, desire = uniform_rule(self.ideal), Desire.of(self.ideal)
            given = (memory.belief, memory.past, desire, memory.ends, uniform, self.attitude, self.horizon)
            memory.plan = plan(*given, memory.since)
            memory.planned = memory.since
        return memory.plan

    def rule(self, memory: Foresight, state: IntArray, rng: Random) -> FloatArray:
        """The planned rule in the current states [...]: [..., A]."""
        return np.asarray(self.plan(memory).rule[(*memory.here, state)])

    def observe(self, memory: Foresight, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Learn from one transition of each run."""
        memory.belief.observe(state, action, next_state)
        memory.since += 1
