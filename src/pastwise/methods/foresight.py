"""TL_foresight: the sixth agent, which plans where it knows, and follows the past where that was good.

It designs on what the log lets one believe of the world. Three things go into the worth of an action: the value that
the belief foresees, over many epochs; how doubtful that value is, which an *attitude* counts against the action
(`Pessimism`, for acting from a log alone) or for it (`Optimism`, for acting and learning); and the past's example.

    index(state, action) = value + attitude * doubt + EXAMPLE * share * typical doubt * ln example(action | state)
    rule(action | state)  proportional to  exp(index / temperature)

This is fully probabilistic design whose ideal leaves the world as it is believed to be, but for the goal
(ideal transition = belief * exp(utility / temperature)), and has the learned rule of TL, tempered, as its action factor.
The share of the example that is followed goes by what the past was *worth* for today's goal under the belief: 0 where
it did no better than acting at random, 1 where nothing better is known; a young log gets the benefit of the doubt. Both
example and attitude are in units of doubt, so both fade as the records grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, batch_index, fold, normalise
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from pastwise.methods.baselines import behaviour_rule
from pastwise.methods.tl import TL
from pastwise.models.belief import Belief, belief_from
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.fpd import require_horizon
from pastwise.theory.learning import learned_rule, require_same_sizes

EXAMPLE = 1.2
"""Weight of the past's example, in doubts for each nat."""

TEMPERATURE = 0.005
"""Temperature of the rule, in doubts: it is nearly greedy, and stochastic where actions are as good as equal."""

ERROR = 0.05
"""Share of the example that is uniform: the past may be wrong."""

SKILL_EPOCHS = 20
"""Epochs over which the past's worth is judged."""

BENEFIT = 0.5
"""Standard errors of the log's mean utility that the past is credited with."""

DOUBTLESS = 1e-12
"""Doubt below which there is none: equal values share a rule, others decide it."""


class Attitude(Protocol):
    """What doubt, and the past's example, mean for an action, given what the past was worth."""

    def doubt(self, worth: FloatArray) -> FloatArray:
        """Doubts to add to a value: [...] -> [...]."""
        ...

    def example(self, worth: FloatArray) -> FloatArray:
        """How much of the example to follow, from 0 to 1: [...] -> [...]."""
        ...


def _require_deviations(number: float) -> None:
    if not 0 <= number < np.inf:
        raise ValueError(f"the deviations must be a number of doubts, at least 0, not {number}")


@dataclass(frozen=True)
class Optimism:
    """Doubt speaks for an action, the more the less the past was worth: trying it teaches.

    For acting and learning at the same time.
    """

    deviations: float = 1.5

    def __post_init__(self) -> None:
        _require_deviations(self.deviations)

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

    def __post_init__(self) -> None:
        _require_deviations(self.deviations)

    def doubt(self, worth: FloatArray) -> FloatArray:
        """Doubts to add to a value: [...]."""
        return np.full(np.shape(worth), -self.deviations)

    def example(self, worth: FloatArray) -> FloatArray:
        """How much of the example to follow: [...]."""
        return worth**2


@dataclass(frozen=True, eq=False)
class Plan:
    """A rule, and what it weighs.

    Attributes
    ----------
    rule : [..., S, A]
    value : [..., S, A]
        Utility foreseen over the horizon, from 0 to 1 an epoch.
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
    mean_utility, number, served : [...]
        Mean utility of its records, half a record added either way; their number; whether any served the goal at all.
    """

    visits: FloatArray
    behaviour: FloatArray
    example: FloatArray
    mean_utility: FloatArray
    number: FloatArray
    served: BoolArray


Choice = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From value and variance [..., S, A] to a rule [..., S, A] and what it is worth, [..., S, A]."""


def moments(utility: Utility, belief: Belief, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of utility + value of what follows: [..., S] -> [..., S, A] twice."""
    if utility.concerns_next_states_only:
        mean, variance = belief.moments(utility.next_state_part[0, 0] + value)
    else:
        mean, variance = belief.moments_each(utility.next_state_part + value[..., None, None, :])
    return mean + utility.action_part, variance


def _look_ahead(belief: Belief, utility: Utility, horizon: int, choose: Choice) -> FloatArray:
    """Worth of being in each state for a way to choose, over so many epochs: [..., S].

    A system whose worth has settled, or grows evenly, is looked at no further, whatever the others of a batch do.
    """
    until_end = not utility.after_end.any()
    shape, ends = belief.weight.shape[:-1], utility.terminal
    value, step, done = np.zeros(shape), np.full(shape, np.inf), np.zeros(shape[:-1], dtype=bool)
    patience = PATIENCE if len(ends) and until_end else 1.0
    for left in reversed(range(horizon)):
        rule, worth = choose(*moments(utility, belief, value))
        following = (rule * worth).sum(axis=-1) * patience
        following[..., ends] = value[..., ends] + utility.after_end
        following = np.where(done[..., None], value, following)
        previous, step, value = step, following - value, following
        if len(ends) and until_end:
            done = done | (np.abs(step).max(axis=-1) < SETTLED)
        elif left:
            even = ~done & (np.abs(step - previous).max(axis=-1) * left < STEADY)
            value = np.where(even[..., None], value + left * step, value)
            done = done | even
        if done.all():
            break
    return value


SETTLED = 1e-5
"""Where episodes end, a value that moves by less than this in an epoch has settled."""

STEADY = 0.01
"""Where nothing ends, a value grows with every epoch. Once its growth would move by less than this over what is left of
the horizon, it is taken to go on so; an action that pays off only after hundreds of epochs may then be overlooked."""

PATIENCE = 1 - 1e-4
"""Where episodes end, what comes an epoch later is worth so much: of equally good ways the shorter is taken."""


def worth_of(
    belief: Belief, past: Past, utility: Utility, uniform: FloatArray, since: int = 0
) -> FloatArray:
    """What the past was worth for today's goal: its behaviour's value between acting at random and the best: [...].

    The benefit of the doubt fades with its records and with those observed ``since``.
    """

    def value(rule: FloatArray) -> FloatArray:
        ahead = _look_ahead(belief, utility, SKILL_EPOCHS, lambda mean, variance: (rule, mean))
        return np.asarray((past.visits * ahead).sum(axis=-1))

    def greedy(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        best = np.where(uniform > 0, mean, -np.inf)
        return normalise((best == fold(np.maximum, best)[..., None]).astype(np.float64)), mean

    best = (past.visits * _look_ahead(belief, utility, SKILL_EPOCHS, greedy)).sum(axis=-1)
    done, random = value(past.behaviour), value(uniform)
    always = Utility.one_per_epoch(belief.weight.shape[-2], utility.terminal)
    length = _look_ahead(
        belief, always, SKILL_EPOCHS, lambda mean, variance: (past.behaviour, mean)
    )
    spread = np.maximum(
        past.mean_utility * (1 - past.mean_utility), 0.0
    )  # a reward may have a mean outside [0, 1]
    error = np.sqrt(spread / (past.number + since + 1)) * (past.visits * length).sum(axis=-1)
    credit = BENEFIT * error
    worth = (done - random + credit) / np.maximum(best - random + credit, np.finfo(float).tiny)
    return np.where(past.number > 0, np.clip(worth, 0.0, 1.0), 0.0)


def plan(
    belief: Belief,
    past: Past,
    utility: Utility,
    uniform: FloatArray,
    attitude: Attitude,
    horizon: int,
    since: int = 0,
) -> Plan:
    """The rule of the index, looking ahead over the horizon.

    Where no record ever served the goal nothing good is known, and doubt speaks for an action whatever the attitude.

    Parameters
    ----------
    uniform : [1 or S, A]
        Every allowed action alike.
    since : int
        Records observed since the past log.
    """
    worth = worth_of(belief, past, utility, uniform, since)
    allowed = uniform > 0
    spread = np.where(past.served, attitude.doubt(worth), Optimism().doubt(worth))[..., None, None]
    known = normalise(
        np.where(allowed, belief.weight, 0.0)
    )  # what was never tried does not make the rest doubtful
    example = np.where(allowed, (1 - ERROR) * past.example + ERROR * uniform, 1.0)
    leaning = EXAMPLE * attitude.example(worth)[..., None, None] * np.log(example)

    def doubts(variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        doubt = np.sqrt(variance / (belief.weight + 1))
        return doubt, np.maximum((doubt * known).sum(axis=-1, keepdims=True), DOUBTLESS)

    def choose(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        doubt, typical = doubts(variance)
        index = np.where(allowed, mean + spread * doubt + typical * leaning, -np.inf)
        rule = np.exp((index - fold(np.maximum, index)[..., None]) / (TEMPERATURE * typical))
        return normalise(rule), mean + spread * doubt

    value = _look_ahead(belief, utility, horizon - 1, choose)
    mean, variance = moments(utility, belief, value)
    doubt, typical = doubts(variance)
    return Plan(choose(mean, variance)[0], mean, doubt, spread * doubt, typical * leaning, worth)


@dataclass
class Foresight:
    """Memory of TL_foresight: belief and past, the plan in use, and how many records came since the past, and then."""

    belief: Belief
    past: Past
    utility: Utility
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
        Plan anew after the records have grown by this share (and after at least one); a batch goes by its shortest log.
    """

    ideal: IdealModel
    attitude: Attitude = field(default_factory=Optimism)
    horizon: int = 100
    replan: float = 0.01

    def __post_init__(self) -> None:
        require_horizon(self.horizon)
        if not 0 <= self.replan < np.inf:
            raise ValueError(
                f"replan must be a share of the records, at least 0, not {self.replan}"
            )

    def start(self, counts: TransitionCounts, recent: Transitions | None = None) -> Foresight:
        """Memory of the past log."""
        require_same_sizes(counts, self.ideal)
        counts, example = counts.evenly_weighted(), TL(self.ideal)
        visits = counts.by_state_action(counts.weight).sum(axis=-1)
        seen = visits.sum(axis=-1, keepdims=True) > 0
        utility = Utility.of(self.ideal, counts.terminal)
        log_utility = utility.of_log(counts)
        past = Past(
            normalise(np.where(seen, visits, 1.0)),
            behaviour_rule(counts, self.ideal.allowed),
            learned_rule(example.start(counts).evidence, example.prior),
            log_utility.mean,
            log_utility.total_weight,
            log_utility.is_useful,
        )
        return Foresight(belief_from(counts), past, utility, batch_index(counts.shape))

    def plan(self, memory: Foresight) -> Plan:
        """The plan in use; made anew where the records have grown enough."""
        due = memory.planned + max(1.0, self.replan * (memory.past.number.min() + memory.planned))
        if memory.plan is None or memory.since >= due:
            given = (
                memory.belief,
                memory.past,
                memory.utility,
                uniform_rule(self.ideal),
                self.attitude,
                self.horizon,
            )
            memory.plan = plan(*given, memory.since)
            memory.planned = memory.since
        return memory.plan

    def rule(self, memory: Foresight, state: IntArray, rng: Random) -> FloatArray:
        """The planned rule in the current states [...]: [..., A]."""
        return np.asarray(self.plan(memory).rule[(*memory.here, state)])

    def observe(
        self, memory: Foresight, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.belief.observe(state, action, next_state)
        memory.since += 1
