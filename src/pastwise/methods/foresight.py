r"""TL_foresight: plan on the posterior, and follow the past as far as it was good.

The posterior of the transitions (`models.belief`) is the hierarchy that evaluation samples from, in
closed form: rows that were hardly seen borrow from the state, from the same move elsewhere and from
the whole log, as far as the log supports it. A plan on it has three steps.

1. *Value.* Policy iteration on the mean rows finds the best rule and its value, with a discount
   close to 1 and without a horizon: delayed pay-offs are seen. Each value has a *deviation*, the
   standard deviation that the posterior of its row leaves it.
2. *Example.* People decide for reasons that a log does not show, so what they did often may be
   better than its records, or worse. In units of the deviation, the *example* adds

       slope * (ln behaviour(action | state) - its mean over the behaviour).

   The slope is inferred, by a regression of the values that the rows' own records show on the same
   logarithms. Its prior mean is ``example`` times the *skill* of the past: the value of the logged
   behaviour on the scale from random actions (0) to the best rule (1). After a past that was worse
   than random the skill is negative, and the plan avoids what was done often. The more records a
   row has, the smaller is its deviation, and the less the example matters.
3. *Rule.* Actions whose value, example included, comes close to the best are taken as well:

       rule proportional to exp(-(best - value) / (temperature * deviation of the difference)).

   A rule that commits itself where nothing is known may be caught for ever in a state that it
   cannot leave; where records are plenty the rule becomes deterministic.

From a log alone (``epochs = 0``) nothing more is added. With ``epochs`` left to act and learn in,
uncertain actions are tried, as far as there is time to profit: each deviation counts for the action
with the square root of the share of it that could still be resolved if the epochs were spread over
all rows, less the more skill the past had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    batch_index,
    fold,
    normalise,
)
from pastwise._numerics.checks import require_number, require_whole_number
from pastwise._numerics.streams import Random
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import LogUtility, Utility
from pastwise.methods.base import BORROWED, DEVIATION, EVERY_STATE, EXAMPLE, VALUE, Plan, States
from pastwise.methods.registry import register
from pastwise.models.belief import Belief
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.learning import require_same_sizes

SMALLEST_DEVIATION = 1e-9
"""A smaller deviation is rounding error: it must not scale the temperature."""

MOST_ROUNDS = 30
"""Improvements of a rule after which to stop; about five are usual."""

LARGEST_EXAMPLE = 4.0
"""The example's logarithms are cut off here: exp(-4) is an action in fifty."""


@dataclass(frozen=True, eq=False)
class Past:
    """What is remembered of the past log; leading axes are flattened to N.

    Attributes
    ----------
    visits : [N, S]
        Share of the records that left each state.
    behaviour : [N, S, A]
        What the log did, with one record of random actions in each state added.
    logarithms : [N, S, A]
        Of the behaviour, less their mean over it; 0 for actions that are not allowed.
    utility : LogUtility
        How well the records served the goal.
    """

    visits: FloatArray
    behaviour: FloatArray
    logarithms: FloatArray
    utility: LogUtility

    @classmethod
    def of(cls, counts: TransitionCounts, utility: Utility, uniform: FloatArray) -> Past:
        """The past in a log; ``uniform`` [S, A] is the random rule over the allowed actions."""
        taken = counts.by_state_action(counts.weight).reshape(-1, *uniform.shape)
        visits = taken.sum(axis=-1)
        has_records = visits.sum(axis=-1, keepdims=True) > 0
        behaviour = normalise(np.where(uniform > 0, taken, 0.0) + uniform)
        logarithms = np.log(np.where(uniform > 0, behaviour, 1.0))
        logarithms -= (behaviour * logarithms).sum(axis=-1, keepdims=True)
        logarithms = np.clip(logarithms, -LARGEST_EXAMPLE, LARGEST_EXAMPLE)
        return cls(
            visits=normalise(np.where(has_records, visits, 1.0)),
            behaviour=behaviour,
            logarithms=np.where(uniform > 0, logarithms, 0.0),
            utility=utility.of_log(counts),
        )


@dataclass
class Foresight:
    """Memory: the posterior, the past, and the plan in use.

    Attributes
    ----------
    shape : tuple of int
        Leading axes of the log.
    observed : int
        Records observed since the start.
    planned_at : int
        How many of them the plan in use knows.
    """

    shape: tuple[int, ...]
    belief: Belief
    past: Past
    utility: Utility
    uniform: FloatArray
    observed: int = 0
    plan: Plan | None = None
    planned_at: int = 0


@register(colour="#009E73")
@dataclass(frozen=True)
class TLForesight:
    """Plan on the posterior of the transitions; follow the past's example as far as it was good.

    Parameters
    ----------
    epochs : int
        Epochs that are left to act and learn in; 0 for a rule from the log alone.
    discount : float
        Utility one epoch later counts this much: pay-offs within about 1,000 epochs are seen.
    example : float
        Weight of the example of a skilled past, in deviations for each nat.
    credit : float
        Standard errors of the log's mean utility that the past is credited with, so that a short
        log is not judged unskilled by chance.
    temperature : float
        Temperature of the rule, in deviations.
    replan : float
        While acting, plan anew after the observed records have grown by this share. It trades time
        for freshness; `plan` is always current.

    Results hardly depend on the numbers: half and twice the weight, the credit or the temperature
    change the mean over the families of ``pastwise study planners --group chosen``, on which they
    were chosen, by less than 0.03 of the range from random actions to the optimum.
    """

    name: ClassVar[str] = "TL_foresight"
    exact_updates: ClassVar[bool] = False

    epochs: int = 0
    discount: float = 0.999
    example: float = 1.5
    credit: float = 0.25
    temperature: float = 0.4
    replan: float = 0.01

    def __post_init__(self) -> None:
        require_whole_number("epochs", self.epochs, 0, 2**62)
        require_number("discount", self.discount, 0, 1 - 1e-9)
        require_number("temperature", self.temperature, 1e-9, 1e9)
        for name in ("example", "credit", "replan"):
            require_number(name, getattr(self, name), 0, 1e9)

    # The contract.

    def start(
        self, counts: TransitionCounts, ideal: IdealModel, recent: Transitions | None = None
    ) -> Foresight:
        """Memory of the past log."""
        require_same_sizes(counts, ideal)
        counts = counts.evenly_weighted()
        utility = Utility.of(ideal, counts.terminal)
        uniform = np.broadcast_to(uniform_rule(ideal), (ideal.num_states, ideal.num_actions))
        return Foresight(
            shape=counts.shape,
            belief=Belief(counts),
            past=Past.of(counts, utility, uniform),
            utility=utility,
            uniform=uniform,
        )

    def rule(self, memory: Foresight, state: IntArray, rng: Random) -> FloatArray:
        """The planned rule in the current states [...]: [..., A]; see ``replan``."""
        plan = self._plan_within(memory, max(1.0, self.replan * memory.planned_at))
        return np.asarray(plan.rule[(*batch_index(memory.shape), state)])

    def observe(
        self, memory: Foresight, state: IntArray, action: IntArray, next_state: IntArray
    ) -> None:
        """Learn from one transition of each run."""
        memory.belief.observe(state, action, next_state)
        memory.observed += 1

    def plan(self, memory: Foresight, states: States = EVERY_STATE) -> Plan:
        """The rule, with the value, its deviation and the example's part in it."""
        return self._plan_within(memory, patience=1.0).at(states)

    def _plan_within(self, memory: Foresight, patience: float) -> Plan:
        """The plan in use, made anew once this many records were observed since it was made."""
        if memory.plan is None or memory.observed >= memory.planned_at + patience:
            memory.belief.refresh()
            memory.plan = self._make_plan(memory)
            memory.planned_at = memory.observed
        return memory.plan

    # The method.

    def _make_plan(self, memory: Foresight) -> Plan:
        """A plan on the posterior as it is."""
        past = memory.past
        task = Task(memory.belief, memory.utility, memory.uniform, self.discount)

        # The best rule, the skill of the past, and what they make of uncertain actions.
        value = task.best_value()
        skill = self.skill(task, past, value, memory.observed)
        bonus = self._optimism(task, skill, memory.observed)
        rule = task.uniform
        for _ in range(2):
            deviation = task.deviation(value)
            extra = bonus * deviation
            example = self._slope(task, past, skill, value) * past.logarithms * deviation

            # The rule and its value, each given the other.
            is_settled = np.zeros(len(value), dtype=bool)
            for _ in range(MOST_ROUNDS):
                index = task.action_values(value) + extra + example
                rule = self._choose(index, deviation, task.is_allowed)
                following = task.value_of(rule, extra)
                change = np.abs(following - value).max(axis=-1)
                value = np.where(is_settled[:, None], value, following)
                is_settled |= change < 1e-4 * (1 + np.ptp(value, axis=-1))
                if is_settled.all():
                    break

        action_values = task.action_values(value)
        rule = self._choose(action_values + extra + example, deviation, task.is_allowed)
        parts = {
            VALUE: task.unit * action_values,
            DEVIATION: task.unit * deviation,
            EXAMPLE: task.unit * example,
            BORROWED: task.belief.mass / task.belief.weight,
        }
        shape = (*memory.shape, *rule.shape[1:])
        return Plan(rule.reshape(shape), {name: part.reshape(shape) for name, part in parts.items()})

    def skill(self, task: Task, past: Past, best_value: FloatArray, observed: int = 0) -> FloatArray:
        """How good the past was for today's goal: [N].

        The value of its behaviour between that of random actions (0) and the best rule (1), plus a
        credit that fades with the records; not below -1.
        """
        logged, length = task.value_and_length(past.behaviour)
        random = task.value_of(task.uniform)

        def from_visits(value: FloatArray) -> FloatArray:
            return np.asarray((past.visits * value).sum(axis=-1))

        # Standard error of what the log collects.
        mean = past.utility.mean.ravel()
        number = past.utility.total_weight.ravel()
        variance = np.maximum(mean * (1 - mean), 0.0)  # a reward's mean may lie outside [0, 1]
        error = np.sqrt(variance / (number + observed + 1)) * from_visits(length)

        gain = from_visits(logged - random) + self.credit * error
        possible_gain = from_visits(best_value - random) + self.credit * error
        skill = gain / np.maximum(possible_gain, np.finfo(float).tiny)
        return np.where(number > 0, np.clip(skill, -1.0, 1.0), 0.0)

    def _optimism(self, task: Task, skill: FloatArray, observed: int) -> FloatArray:
        """How many deviations to add to the value of each action: [N, S, A]."""
        epochs_left = max(self.epochs - observed, 0)
        records_to_come = epochs_left / task.uniform.size * len(task.uniform)
        share = records_to_come / (task.belief.weight + records_to_come)
        return np.asarray(np.sqrt(share) * (1 - np.maximum(skill, 0.0))[:, None, None])

    def _slope(
        self, task: Task, past: Past, skill: FloatArray, value: FloatArray
    ) -> FloatArray:
        """Slope of the values on the logarithms of the behaviour, in deviations: [N, 1, 1].

        Bayesian regression within states. The value that a row's records show varies around that of
        its state by the deviation of the prior, which carries the example, and by chance. The prior
        of the slope is normal with standard deviation 1; it does not fall below 0 unless the past
        was worse than random.
        """
        belief = task.belief
        shown, noise, prior_deviation = task.shown_by_records(value)
        precision = np.where(
            task.is_allowed & (belief.records > 0) & task.is_open[:, None],
            1 / (noise + prior_deviation**2),
            0.0,
        )
        x = past.logarithms * prior_deviation
        total = precision.sum(axis=-1, keepdims=True)
        weight = precision / np.where(total > 0, total, 1.0)
        x = x - (weight * x).sum(axis=-1, keepdims=True)
        y = shown - (weight * shown).sum(axis=-1, keepdims=True)

        prior_slope = self.example * skill
        slope = prior_slope + (precision * x * y).sum(axis=(1, 2))
        slope /= 1 + (precision * x * x).sum(axis=(1, 2))
        return np.asarray(np.maximum(slope, np.minimum(prior_slope, 0.0)))[:, None, None]

    def _choose(
        self, index: FloatArray, deviation: FloatArray, is_allowed: BoolArray
    ) -> FloatArray:
        """The rule of an index [N, S, A]."""
        index = np.where(is_allowed, index, -np.inf)
        best = index.argmax(axis=-1)[..., None]
        behind = np.take_along_axis(index, best, axis=-1) - index
        variance = deviation**2 + np.take_along_axis(deviation, best, axis=-1) ** 2
        scale = self.temperature / index.shape[-1] * np.sqrt(variance) + SMALLEST_DEVIATION
        return normalise(np.exp(-behind / scale))


class Task:
    """A goal on a posterior: values of rules and actions, discounted.

    Parameters
    ----------
    belief : Belief
    utility : Utility
    uniform : [S, A]
        The random rule over the allowed actions.
    discount : float
    """

    def __init__(
        self, belief: Belief, utility: Utility, uniform: FloatArray, discount: float
    ) -> None:
        self.belief = belief
        self.is_allowed = uniform > 0
        self.is_open = belief.is_open
        self.discount = discount
        shape = (belief.num_systems, belief.num_states)
        self.uniform = np.broadcast_to(uniform, belief.weight.shape)

        # What a transition collects, and every epoch after the end of an episode.
        if utility.concerns_next_states_only:
            self._collected = np.broadcast_to(utility.next_state_part[0, 0], shape)
        else:
            full = (*belief.weight.shape, belief.num_states)
            self._collected = np.broadcast_to(utility.next_state_part, full)
        self._action_part = utility.action_part
        self._now = belief.mean(self._collected) + utility.action_part
        self._at_end = np.zeros(shape)
        self._at_end[:, utility.terminal] = utility.after_end / (1 - discount)

        # A discounted total as a mean over epochs, unless episodes are what is counted.
        self.unit = 1.0 if utility.stops_at_end else 1 - discount

    def _target(self, value: FloatArray) -> FloatArray:
        """What a transition leads to: its utility and the discounted value of the next state."""
        if self._collected.ndim == 2:
            return np.asarray(self._collected + self.discount * value)
        return np.asarray(self._collected + self.discount * value[:, None, None])

    def action_values(self, value: FloatArray) -> FloatArray:
        """Value of each action, given that of the next state: [N, S] -> [N, S, A]."""
        return np.asarray(self._now + self.discount * self.belief.mean(value))

    def value_of(self, rule: FloatArray, extra: FloatArray | float = 0.0) -> FloatArray:
        """Value of each state under a rule [N, S, A]: [N, S].

        Parameters
        ----------
        extra : [N, S, A]
            Collected by each action besides its utility.
        """
        return self._solve(rule, (rule * (self._now + extra)).sum(axis=-1)[..., None])[..., 0]

    def value_and_length(self, rule: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value of each state under a rule, and its discounted number of epochs: [N, S] each."""
        now = (rule * self._now).sum(axis=-1)
        both = self._solve(rule, np.stack([now, np.ones(now.shape)], axis=-1))
        return both[..., 0], np.where(self.is_open, both[..., 1], 0.0)

    def _solve(self, rule: FloatArray, collected: FloatArray) -> FloatArray:
        """Values of what a rule collects in each state: [N, S, k] -> [N, S, k]."""
        loop = self.belief.closed_loop(rule)
        loop *= -self.discount
        loop[:, ~self.is_open] = 0.0
        states = np.arange(loop.shape[-1])
        loop[:, states, states] += 1.0
        collected = np.where(self.is_open[:, None], collected, self._at_end[..., None])
        return np.asarray(np.linalg.solve(loop, collected))

    def best_value(self) -> FloatArray:
        """Value of the best rule, by policy iteration: [N, S]."""
        value = self.value_of(self.uniform)
        actions = None
        for _ in range(MOST_ROUNDS):
            action_values = np.where(self.is_allowed, self.action_values(value), -np.inf)
            best = action_values.argmax(axis=-1)
            if actions is not None:
                # Less than this is rounding error, which could go in circles.
                gain = fold(np.maximum, action_values)
                gain = gain - np.take_along_axis(action_values, actions[..., None], axis=-1)[..., 0]
                best = np.where(gain > 1e-9 * (1 + np.abs(value)), best, actions)
                if (best == actions).all():
                    break
            actions = best
            value = self.value_of(np.eye(self.uniform.shape[-1])[actions])
        return value

    def deviation(self, value: FloatArray) -> FloatArray:
        """Standard deviation of the value of each action under the posterior: [N, S, A]."""
        target = self._target(value)
        mean = self.belief.mean(target)
        variance = np.maximum(self.belief.mean(target**2) - mean**2, 0.0)
        return np.sqrt(variance / (self.belief.weight + 1))

    def shown_by_records(self, value: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What the records of each row alone say of its value: [N, S, A] each.

        Its mean, the variance of that mean, and the standard deviation of the value under the prior.
        """
        belief = self.belief
        target = self._target(value)
        number = np.maximum(belief.records, 1e-9)
        shown = belief.of_records(target) / number + self._action_part
        mean = belief.mean(target)
        variance = np.maximum(belief.mean(target**2) - mean**2, SMALLEST_DEVIATION**2)
        prior_mean = belief.of_prior(target)
        prior_variance = np.maximum(
            belief.of_prior(target**2) - prior_mean**2, SMALLEST_DEVIATION**2
        )
        return shown, variance / number, np.sqrt(prior_variance / (belief.mass + 1))
