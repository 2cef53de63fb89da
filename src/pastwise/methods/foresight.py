"""TL_foresight: plan on the posterior, and follow the past as far as it was good.

For every action three numbers are added to an index:

    index(state, action) = value + attitude * deviation
                           + example_weight * share * typical deviation * ln example(action | state)

- *value*: the utility expected over many epochs, under the posterior mean of the transitions;
- *deviation*: the standard deviation of that value under the posterior. The *attitude* counts it
  against the action (`Pessimism`, for acting from a log alone) or for it (`Optimism`, for acting
  and learning at the same time);
- *example*: what TL learns from the log. The share of it that is followed grows with the *skill* of
  the past: 0 if the logged behaviour is no better for today's goal than random actions, 1 if
  nothing better is known.

The rule is nearly greedy: proportional to exp(index / temperature), where the temperature, like
the weight of the example, is in units of the deviation. So the attitude, the example and the
randomness all fade as records accumulate.

The method is fully probabilistic design (`theory.fpd`) with an ideal that leaves the transitions
as the posterior expects them, except for the goal, and takes the rule of TL, tempered, as its
ideal rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    batch_index,
    fold,
    normalise,
)
from pastwise._numerics.checks import require_number
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import LogUtility, Utility
from pastwise.methods.base import EVERY_STATE, Plan, States
from pastwise.methods.baselines import behaviour_rule
from pastwise.methods.registry import register
from pastwise.methods.tl import TL
from pastwise.models.belief import Belief, belief_from
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.fpd import require_horizon
from pastwise.theory.learning import learned_rule, require_same_sizes

SMALLEST_DEVIATION = 1e-12
"""A smaller deviation is rounding error: it must not scale the temperature."""


class Attitude(Protocol):
    """What the uncertainty of a value, and the past's example, mean for an action."""

    def deviations(self, skill: FloatArray) -> FloatArray:
        """Standard deviations to add to a value, given the skill of the past: [...] -> [...]."""
        ...

    def example_share(self, skill: FloatArray) -> FloatArray:
        """Share of the example to follow, from 0 to 1: [...] -> [...]."""
        ...


@dataclass(frozen=True)
class Optimism:
    """Uncertainty speaks for an action: trying it teaches. For acting and learning.

    The less skill the past had, the more there is to find.

    Parameters
    ----------
    deviations_added : float
        Standard deviations to add to a value where the past had no skill. Chosen, like the other
        defaults of TL_foresight, on random systems of other seeds than the reported ones.
    """

    deviations_added: float = 1.5

    def __post_init__(self) -> None:
        require_number("deviations_added", self.deviations_added, 0, 1e12)

    def deviations(self, skill: FloatArray) -> FloatArray:
        """Standard deviations to add to a value: [...]."""
        return self.deviations_added * (1 - skill)

    def example_share(self, skill: FloatArray) -> FloatArray:
        """Share of the example to follow: [...]."""
        return skill


@dataclass(frozen=True)
class Pessimism:
    """Uncertainty speaks against an action: for acting from a log alone.

    This already favours what the past did often, so its example counts only if the past had skill.

    Parameters
    ----------
    deviations_subtracted : float
        Standard deviations to subtract from a value.
    """

    deviations_subtracted: float = 1.0

    def __post_init__(self) -> None:
        require_number("deviations_subtracted", self.deviations_subtracted, 0, 1e12)

    def deviations(self, skill: FloatArray) -> FloatArray:
        """Standard deviations to add to a value: [...]."""
        return np.full(np.shape(skill), -self.deviations_subtracted)

    def example_share(self, skill: FloatArray) -> FloatArray:
        """Share of the example to follow: [...]."""
        return skill**2


@dataclass(frozen=True, eq=False)
class Past:
    """What is remembered of the past log.

    Attributes
    ----------
    visits : [..., S]
        Share of the records that left each state.
    behaviour : [..., S, A]
        What the log did.
    example : [..., S, A]
        What TL learns from the log.
    utility : LogUtility
        How well the records served the goal.
    """

    visits: FloatArray
    behaviour: FloatArray
    example: FloatArray
    utility: LogUtility

    @classmethod
    def of(cls, counts: TransitionCounts, ideal: IdealModel, utility: Utility) -> Past:
        """The past in a log."""
        visits = counts.by_state_action(counts.weight).sum(axis=-1)
        has_records = visits.sum(axis=-1, keepdims=True) > 0
        learned = TL().start(counts, ideal)
        return cls(
            visits=normalise(np.where(has_records, visits, 1.0)),
            behaviour=behaviour_rule(counts, ideal.allowed),
            example=learned_rule(learned.evidence, learned.prior),
            utility=utility.of_log(counts),
        )


@dataclass
class Foresight:
    """Memory: the posterior, the past, and the plan in use.

    Attributes
    ----------
    observed : int
        Records observed since the start.
    planned_at : int
        How many of them the plan in use knows.
    """

    belief: Belief
    past: Past
    utility: Utility
    uniform: FloatArray
    batch: tuple[IntArray, ...]
    observed: int = 0
    plan: Plan | None = None
    planned_at: int = 0


Choice = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From the mean and variance of the values of actions to a rule and the values that it counts with.

All arrays are [..., S, A].
"""


@register(colour="#009E73")
@dataclass(frozen=True)
class TLForesight:
    """Plan on the posterior of the transitions; follow the past's example as far as it was good.

    Parameters
    ----------
    attitude : Attitude
        `Pessimism` for acting from a log alone, `Optimism` for acting and learning.
    horizon : int
        Most epochs to look ahead; the recursion stops earlier once nothing changes.
    replan : float
        While acting, plan anew after the records have grown by this share (a batch goes by its
        shortest log). It trades time for freshness; `plan` is always current.
    example_weight : float
        Weight of the example, in deviations for each nat.
    temperature : float
        Temperature of the rule, in deviations: nearly greedy, random only among near equals.
    past_error : float
        Share of the example that is uniform: the past may be wrong.
    skill_horizon : int
        Epochs over which the skill of the past is judged.
    skill_credit : float
        Standard errors of the log's mean utility that the past is credited with, so that a short
        log is not judged unskilled by chance.
    discount : float
        Where episodes end, utility one epoch later counts this much: of equally good ways the
        shorter is taken.
    settled : float
        Where episodes end, the recursion stops once no value changes by more than this.
    steady : float
        Where nothing ends, values grow with every epoch. The recursion stops once the growth
        would change by less than this over the rest of the horizon; an action that pays off only
        after hundreds of epochs may then be overlooked.

    The numbers from ``example_weight`` to ``skill_credit`` were chosen together on random systems
    with other seeds than those of the reported studies.
    """

    name: ClassVar[str] = "TL_foresight"
    exact_updates: ClassVar[bool] = False

    attitude: Attitude = field(default_factory=Pessimism)
    horizon: int = 100
    replan: float = 0.01
    example_weight: float = 1.2
    temperature: float = 0.005
    past_error: float = 0.05
    skill_horizon: int = 20
    skill_credit: float = 0.5
    discount: float = 1 - 1e-4
    settled: float = 1e-5
    steady: float = 0.01

    def __post_init__(self) -> None:
        is_attitude = hasattr(self.attitude, "deviations") and hasattr(
            self.attitude, "example_share"
        )
        if not is_attitude or isinstance(self.attitude, type):
            raise ParameterError(
                f"attitude must be Pessimism() or Optimism(), not {self.attitude!r}"
            )
        require_horizon(self.horizon)
        require_horizon(self.skill_horizon, "skill_horizon")
        require_number("replan", self.replan, 0, 1e12)
        for name in ("temperature", "settled", "steady"):
            require_number(name, getattr(self, name), 1e-12, 1e12)
        for name in ("example_weight", "skill_credit"):
            require_number(name, getattr(self, name), 0, 1e12)
        for name in ("past_error", "discount"):
            require_number(name, getattr(self, name), 1e-12, 1)

    # The contract.

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Foresight:
        """Memory of the past log."""
        require_same_sizes(counts, ideal)
        counts = counts.evenly_weighted()
        utility = Utility.of(ideal, counts.terminal)
        return Foresight(
            belief=belief_from(counts),
            past=Past.of(counts, ideal, utility),
            utility=utility,
            uniform=uniform_rule(ideal),
            batch=batch_index(counts.shape),
        )

    def rule(self, memory: Foresight, state: IntArray, rng: Random) -> FloatArray:
        """The planned rule in the current states [...]: [..., A]; see ``replan``."""
        records = memory.past.utility.total_weight.min() + memory.planned_at
        patience = max(1.0, self.replan * records)
        plan = self._plan_within(memory, patience)
        return np.asarray(plan.rule[(*memory.batch, state)])

    def observe(
        self, memory: Foresight, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.belief.observe(state, action, next_state)
        memory.observed += 1

    def plan(self, memory: Foresight, states: States = EVERY_STATE) -> Plan:
        """The rule of the index, with the value, the uncertainty and the example in it."""
        return self._plan_within(memory, patience=1.0).at(states)

    # The method.

    def _plan_within(self, memory: Foresight, patience: float) -> Plan:
        """The plan in use, made anew once this many records were observed since it was made."""
        if memory.plan is None or memory.observed >= memory.planned_at + patience:
            memory.plan = self.plan_on(
                memory.belief, memory.past, memory.utility, memory.uniform, memory.observed
            )
            memory.planned_at = memory.observed
        return memory.plan

    def plan_on(
        self,
        belief: Belief,
        past: Past,
        utility: Utility,
        uniform: FloatArray,
        observed: int = 0,
    ) -> Plan:
        """The rule of the index, looking ahead over the horizon.

        Where no record served the goal, nothing good is known: uncertainty then speaks for an
        action, with any attitude.

        Parameters
        ----------
        uniform : [1 or S, A]
            The random rule over the allowed actions.
        observed : int
            Records observed since the past log.
        """
        is_allowed = uniform > 0
        skill = self.skill(belief, past, utility, uniform, observed)

        # Deviations added to every value.
        deviations = np.where(
            past.utility.is_useful,
            self.attitude.deviations(skill),
            Optimism().deviations(skill),
        )[..., None, None]

        # The pull of the example, in typical deviations.
        example = (1 - self.past_error) * past.example + self.past_error * uniform
        example = np.where(is_allowed, example, 1.0)
        share = self.attitude.example_share(skill)[..., None, None]
        pull = self.example_weight * share * np.log(example)

        # An action that was never tried must not make the typical deviation of the others large.
        record_share = normalise(np.where(is_allowed, belief.weight, 0.0))

        def deviation_of(variance: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Standard deviation of each value, and its typical size in each state."""
            deviation = np.sqrt(variance / (belief.weight + 1))
            typical = (deviation * record_share).sum(axis=-1, keepdims=True)
            return deviation, np.maximum(typical, SMALLEST_DEVIATION)

        def choose(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
            deviation, typical = deviation_of(variance)
            value = mean + deviations * deviation
            index = np.where(is_allowed, value + typical * pull, -np.inf)
            best = fold(np.maximum, index)[..., None]
            rule = np.exp((index - best) / (self.temperature * typical))
            return normalise(rule), value

        value = self._look_ahead(belief, utility, self.horizon - 1, choose)
        mean, variance = moments(utility, belief, value)
        rule, _ = choose(mean, variance)
        deviation, typical = deviation_of(variance)
        parts = {
            "value": mean,
            "uncertainty": deviations * deviation,
            "example": typical * pull,
        }
        return Plan(rule, parts)

    def skill(
        self,
        belief: Belief,
        past: Past,
        utility: Utility,
        uniform: FloatArray,
        observed: int = 0,
    ) -> FloatArray:
        """How good the past was for today's goal, from 0 to 1: [...].

        The value of its behaviour between that of random actions (0) and the best (1), over
        ``skill_horizon`` epochs, plus a credit that fades with the records.
        """

        def value_of(choose: Choice, collected: Utility = utility) -> FloatArray:
            """Value from the states that the log visited: [...]."""
            value = self._look_ahead(belief, collected, self.skill_horizon, choose)
            return np.asarray((past.visits * value).sum(axis=-1))

        def follow(rule: FloatArray) -> Choice:
            return lambda mean, variance: (rule, mean)

        def greedy(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
            allowed_mean = np.where(uniform > 0, mean, -np.inf)
            is_best = allowed_mean == fold(np.maximum, allowed_mean)[..., None]
            return normalise(is_best.astype(np.float64)), mean

        best = value_of(greedy)
        logged = value_of(follow(past.behaviour))
        random = value_of(follow(uniform))

        # Standard error of what the log collects in an episode of this length.
        one_per_epoch = Utility.one_per_epoch(belief.weight.shape[-2], utility.terminal)
        length = value_of(follow(past.behaviour), one_per_epoch)
        mean = past.utility.mean
        variance = np.maximum(mean * (1 - mean), 0.0)  # a reward's mean may lie outside [0, 1]
        number = past.utility.total_weight + observed + 1
        credit = self.skill_credit * (np.sqrt(variance / number) * length)

        gain = logged - random + credit
        possible_gain = np.maximum(best - random + credit, np.finfo(float).tiny)
        has_records = past.utility.total_weight > 0
        return np.where(has_records, np.clip(gain / possible_gain, 0.0, 1.0), 0.0)

    def _look_ahead(
        self, belief: Belief, utility: Utility, horizon: int, choose: Choice
    ) -> FloatArray:
        """Value of each state over some epochs, for a way to choose: [..., S].

        A system of a batch whose values have settled, or grow evenly, is finished early, so that
        its result does not depend on the others of the batch.
        """
        terminal = utility.terminal
        discount = self.discount if utility.stops_at_end else 1.0
        shape = belief.weight.shape[:-1]
        value = np.zeros(shape)
        change = np.full(shape, np.inf)
        is_done = np.zeros(shape[:-1], dtype=bool)

        for epochs_left in reversed(range(horizon)):
            # One step back; systems that are done keep their value.
            rule, counted = choose(*moments(utility, belief, value))
            earlier = (rule * counted).sum(axis=-1) * discount
            earlier[..., terminal] = value[..., terminal] + utility.after_end
            earlier = np.where(is_done[..., None], value, earlier)
            previous_change = change
            change = earlier - value
            value = earlier

            # Which systems need no further step.
            if utility.stops_at_end:
                is_done = is_done | (np.abs(change).max(axis=-1) < self.settled)
            elif epochs_left:
                drift = np.abs(change - previous_change).max(axis=-1) * epochs_left
                is_even = ~is_done & (drift < self.steady)
                value = np.where(is_even[..., None], value + epochs_left * change, value)
                is_done = is_done | is_even
            if is_done.all():
                break
        return value


def moments(utility: Utility, belief: Belief, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of utility + value of the next state: [..., S] -> [..., S, A]."""
    if utility.concerns_next_states_only:
        mean, variance = belief.moments(utility.next_state_part[0, 0] + value)
    else:
        mean, variance = belief.moments_each(utility.next_state_part + value[..., None, None, :])
    return mean + utility.action_part, variance
