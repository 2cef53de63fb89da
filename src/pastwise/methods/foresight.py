r"""TL_foresight: plan on the posterior, and follow the past as far as it was good.

The posterior of the transitions (`models.belief`) has a closed form, and is close to the hierarchy
that evaluation samples from: rows that were hardly seen borrow from the state, from the same move
elsewhere and from the whole log, as far as the log supports it. A plan on it has three steps.

1. *Value.* Policy iteration on the mean rows finds the best rule and its value (`theory.planning`),
   with a discount close to 1 and without a horizon: delayed pay-offs are seen. Each value has a
   *deviation*, the standard deviation that the posterior of its row leaves it.
2. *Example.* People decide for reasons that a log does not show, so what they did often may be
   better than its records, or worse. In units of the deviation, the *example* adds

       slope * preference,  preference = (ln behaviour(action | state) - its mean) / scale,

   with its mean over the behaviour and scale^2 = 2 + the mean square of these logarithms in the
   log: what a strict past did a hundred times as often is not a hundred times as good. The slope is
   inferred, by a regression of the values that the rows' own records show on the same preferences.
   Its prior mean is ``example`` times the *skill* of the past: the value of the logged
   behaviour on the scale from random actions (0) to the best rule (1). After a past that was worse
   than random the skill is negative, and the plan avoids what was done often. A short log hardly
   shows the skill of its past; give it as ``past_skill`` where you know it. The more records a row
   has, the smaller is its deviation, and the less the example matters.
3. *Rule.* Actions whose index, value plus example, is close to the best are taken as well:

       rule(action | state) ~ exp(-(best index - index) / (temperature / A * deviation)),

   with the deviation of the difference. A rule that commits itself where nothing is known may be
   caught for ever in a state that it cannot leave; with more records the rule becomes
   deterministic.

From a log alone (``epochs = 0``) nothing more is added. With ``epochs`` left to act and learn in,
uncertain actions are tried, as far as there is time to profit: ``optimism`` times the deviation
counts for an action, times the square root of the share of it that could still be resolved if the
epochs were spread over all rows, and the less the more skill the log shows. The temperature is 0
then: what the rule observes gets it out of a state that holds it. Where only the end of an episode
pays, optimism does not add up over epochs: the episode would never end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    batch_index,
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
from pastwise.theory.planning import MOST_ROUNDS, SMALLEST_DEVIATION, RowValues, Task

DIRECT_ROUNDS = 4
"""Rounds of rule and value before rules are averaged; most plans have settled by then."""

TIE = 1e-8
"""Indices that differ by much less than this, relative to the largest value, differ by rounding."""

LARGEST_DISCOUNT = 0.99999
"""Values grow with 1 / (1 - discount). With a larger one, which looks more than 100,000 epochs
ahead, differences of a thousandth of an epoch's utility would count as ties."""


@dataclass(frozen=True, eq=False)
class Past:
    """What is remembered of the past log; leading axes are flattened to N.

    Attributes
    ----------
    visits : [N, S]
        Share of the records that left each state.
    behaviour : [N, S, A]
        What the log did, with one record of random actions in each state added.
    preference : [N, S, A]
        Logarithms of the behaviour, less their mean over it, by how much they vary; 0 for actions
        that are not allowed.
    utility : LogUtility
        How well the records served the goal.
    """

    visits: FloatArray
    behaviour: FloatArray
    preference: FloatArray
    utility: LogUtility

    @classmethod
    def of(cls, counts: TransitionCounts, utility: Utility, uniform: FloatArray) -> Past:
        """The past in a log; ``uniform`` [S, A] is the random rule over the allowed actions."""
        taken = counts.by_state_action(counts.weight).reshape(-1, *uniform.shape)
        visits = taken.sum(axis=-1)
        has_records = visits.sum(axis=-1, keepdims=True) > 0
        visits = normalise(np.where(has_records, visits, 1.0))
        behaviour = normalise(np.where(uniform > 0, taken, 0.0) + uniform)

        # Preferences, by how much they vary. The 2 keeps those that vary by less than a nat small.
        logarithms = np.log(np.where(uniform > 0, behaviour, 1.0))
        logarithms -= (behaviour * logarithms).sum(axis=-1, keepdims=True)
        mean_square = (visits * (uniform * logarithms**2).sum(axis=-1)).sum(axis=-1)
        scale = np.sqrt(2 + mean_square)[:, None, None]
        return cls(
            visits=visits,
            behaviour=behaviour,
            preference=np.where(uniform > 0, logarithms / scale, 0.0),
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
    records : float
        Records that the plan in use rests on, with those of the log; of the run with the fewest.
    """

    shape: tuple[int, ...]
    belief: Belief
    past: Past
    utility: Utility
    uniform: FloatArray
    observed: int = 0
    plan: Plan | None = None
    planned_at: int = 0
    records: float = 0.0


@register(colour="#009E73")
@dataclass(frozen=True)
class TLForesight:
    """Plan on the posterior of the transitions; follow the past's example as far as it was good.

    Parameters
    ----------
    epochs : int
        Epochs that are left to act and learn in; 0 for a rule from the log alone.
    discount : float
        Utility one epoch later counts this much. The default was chosen so that pay-offs within
        about 1,000 epochs are seen; where episodes are as short as on the chosen families, 0.99 has
        0.01 more.
    example : float
        Weight of the example of a skilled past: deviations for each unit of its preference. On the
        chosen families half and twice as much are 0.002 to 0.003 below the default.
    past_skill : float, optional
        How good the past was for today's goal, where that is known: 1 for experts who had the same
        goal, 0 for random actions, -1 for the opposite goal. By default it is inferred. Exploring
        goes by what the log shows, not by what is given.
    credit : float
        Standard errors of the log's mean utility that the past is credited with, so that a short
        log is not judged unskilled by chance. On the chosen families twice as much is 0.005 below
        the default; half as much is 0.003 above it, but 0.01 below it after matched pasts.
    temperature : float
        Temperature of a rule from a log alone, in deviations; it is divided by the number of
        actions, so that many actions of nearly the best value do not add up to a random rule. On
        the chosen families twice as much is 0.02 below the default. Half as much is 0.007 above it,
        but the worst twentieth of the rules is worse, with -0.56 instead of -0.48 on average.
    optimism : float
        Deviations that speak for an uncertain action while there are epochs left to act and learn.
        On the paper's study with another seed, 1 instead of 2 costs 0.6 visits of 100 after p3 and
        gains 0.1 after p1, and 3 does about the opposite.
    replan : float
        While acting, plan anew after the records of the log and since then have grown by this
        share, and at the latest when as many epochs have passed since the last plan as before it.
        It trades time for freshness; `plan` is always current.

    The four numbers of the method, ``example``, ``credit``, ``temperature`` and ``optimism``, were
    chosen on the families of ``pastwise study planners --group chosen`` and on the paper's study
    with another seed. Differences on the families are shares of what there is to gain.
    """

    name: ClassVar[str] = "TL_foresight"
    exact_updates: ClassVar[bool] = False

    epochs: int = 0
    discount: float = 0.999
    example: float = 2.5
    past_skill: float | None = None
    credit: float = 0.25
    temperature: float = 0.4
    optimism: float = 2.0
    replan: float = 0.01

    def __post_init__(self) -> None:
        require_whole_number("epochs", self.epochs, 0, 2**62)
        require_number("discount", self.discount, 0, LARGEST_DISCOUNT)
        require_number("temperature", self.temperature, 1e-9, 1e9)
        if self.past_skill is not None:
            require_number("past_skill", self.past_skill, -1, 1)
        for name in ("example", "credit", "optimism", "replan"):
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
        share = self.replan * memory.records
        plan = self._plan_within(memory, max(1.0, min(share, memory.planned_at)))
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

    def plan_after(self, memory: Foresight, past_skill: float) -> Plan:
        """The plan if the past is known to have had this skill."""
        memory.belief.refresh()
        return replace(self, past_skill=past_skill)._make_plan(memory)

    def _plan_within(self, memory: Foresight, patience: float) -> Plan:
        """The plan in use, made anew once this many records were observed since it was made."""
        if memory.plan is None or memory.observed >= memory.planned_at + patience:
            memory.belief.refresh()
            memory.plan = self._make_plan(memory)
            memory.planned_at = memory.observed
            memory.records = float(memory.belief.records.sum(axis=(1, 2)).min())
        return memory.plan

    # The method.

    def _make_plan(self, memory: Foresight) -> Plan:
        """A plan on the posterior as it is."""
        past = memory.past
        task = Task(memory.belief, memory.utility, memory.uniform, self.discount)

        # The best rule, and what the past and the time left make of uncertain actions.
        value = task.best_value()
        standing = Standing.of(task, past, value, memory.observed)
        skill = self._skill_of(standing)
        deviations_added = self._optimism(task, standing.skill(), memory.observed)
        is_over = memory.observed >= self.epochs
        temperature = self.temperature / task.uniform.shape[-1] if is_over else 0.0
        rule = task.uniform
        for _ in range(2):
            rows = task.row_values(value)
            deviation = rows.deviation
            example = self._slope(task, past, skill, rows) * past.preference * deviation
            optimism = deviations_added * deviation
            value, rule = self._settle(task, value, example, optimism, deviation, temperature)

        parts = {
            VALUE: task.origin + task.unit * task.action_values(task.value_of(rule)),
            DEVIATION: task.unit * deviation,
            EXAMPLE: task.unit * example,
            BORROWED: task.belief.mass / task.belief.weight,
        }
        if self.epochs:
            parts["optimism"] = task.unit * optimism
        shape = (*memory.shape, *rule.shape[1:])
        parts = {name: np.broadcast_to(part, rule.shape) for name, part in parts.items()}
        return Plan(
            rule.reshape(shape), {name: part.reshape(shape) for name, part in parts.items()}
        )

    def _settle(
        self,
        task: Task,
        value: FloatArray,
        example: FloatArray,
        optimism: FloatArray,
        deviation: FloatArray,
        temperature: float,
    ) -> tuple[FloatArray, FloatArray]:
        """The rule that is chosen by its own value, and that value: [N, S] and [N, S, A].

        Each given the other, in turns. Where they go in circles, the rules of all turns are
        averaged: such a rule postpones what it shies away from, but not for ever. Systems that have
        settled keep their rule, so that no result depends on the others of a batch.
        """
        collected = 0.0 if task.only_the_end_pays else optimism
        rule = task.uniform
        is_settled = np.zeros(len(value), dtype=bool)
        for number in range(MOST_ROUNDS):
            index = task.action_values(value) + optimism + example
            chosen = _choose(index, deviation, temperature, task.is_allowed)
            share = 1 / max(1, number - DIRECT_ROUNDS + 2)
            following_rule = rule + share * (chosen - rule)
            following = task.value_of(following_rule, collected)

            change = np.abs(following - value).max(axis=-1)
            value = np.where(is_settled[:, None], value, following)
            rule = np.where(is_settled[:, None, None], rule, following_rule)
            is_settled = is_settled | (change < 1e-4 * (1 + np.ptp(value, axis=-1)))
            if is_settled.all():
                break
        return value, rule

    def skill(
        self, task: Task, past: Past, best_value: FloatArray, observed: int = 0
    ) -> FloatArray:
        """How good the past was for today's goal, with the credit of a short log: [N]."""
        return self._skill_of(Standing.of(task, past, best_value, observed))

    def _skill_of(self, standing: Standing) -> FloatArray:
        """The given skill of the past, or the one that its standing shows with the credit: [N]."""
        if self.past_skill is None:
            return standing.skill(self.credit)
        return np.full(len(standing.gain), float(self.past_skill))

    def _optimism(self, task: Task, skill: FloatArray, observed: int) -> FloatArray | float:
        """How many deviations to add to the value of each action: [N, S, A], or 0."""
        epochs_left = max(self.epochs - observed, 0)
        if not epochs_left:
            return 0.0
        records_to_come = epochs_left / task.uniform[0].size
        share = records_to_come / (task.belief.weight + records_to_come)
        unskilled = 1 - np.maximum(skill, 0.0)
        return np.asarray(self.optimism * unskilled[:, None, None] * np.sqrt(share))

    def _slope(self, task: Task, past: Past, skill: FloatArray, rows: RowValues) -> FloatArray:
        """Slope of the values on the preferences of the past, in deviations: [N, 1, 1].

        Bayesian regression within states. The value that a row's records show varies around that of
        its state by a deviation, which carries the example, and by chance. The deviation is that of
        the prior and how far the goal itself sets the actions of the state apart; without the
        latter, any preference for actions would be overwhelming evidence where next states hardly
        differ. The prior of the slope is normal with standard deviation 1; it does not fall below 0
        unless the past was worse than random.
        """
        deviation_squared = rows.prior_deviation**2 + rows.known_spread**2
        precision = np.where(
            task.is_allowed & (task.belief.records > 0) & task.is_open[:, None],
            1 / (rows.noise + deviation_squared),
            0.0,
        )
        x = past.preference * np.sqrt(deviation_squared)
        total = precision.sum(axis=-1, keepdims=True)
        weight = precision / np.where(total > 0, total, 1.0)
        x = x - (weight * x).sum(axis=-1, keepdims=True)
        y = rows.shown - (weight * rows.shown).sum(axis=-1, keepdims=True)

        prior_slope = self.example * skill
        slope = prior_slope + (precision * x * y).sum(axis=(1, 2))
        slope /= 1 + (precision * x * x).sum(axis=(1, 2))
        return np.asarray(np.maximum(slope, np.minimum(prior_slope, 0.0)))[:, None, None]


@dataclass(frozen=True, eq=False)
class Standing:
    """The past between random actions and the best rule, from the states that it visited.

    Attributes
    ----------
    gain, possible_gain : [N]
        What the logged behaviour and the best rule gain over random actions.
    error : [N]
        Standard error of what the log collects.
    has_records : [N]
    """

    gain: FloatArray
    possible_gain: FloatArray
    error: FloatArray
    has_records: BoolArray

    @classmethod
    def of(cls, task: Task, past: Past, best_value: FloatArray, observed: int) -> Standing:
        """The standing after so many records were observed since the past log."""

        def from_visits(value: FloatArray) -> FloatArray:
            return np.asarray((past.visits * value).sum(axis=-1))

        logged, length = task.value_and_length(past.behaviour)
        length = from_visits(length)
        number = past.utility.total_weight.ravel()

        # Of a share of good ends, by the number of episodes; or of a total over epochs.
        if task.only_the_end_pays:
            good_ends = np.clip(from_visits(logged), 0.0, 1.0)
            episodes = (number + observed) / np.maximum(length, 1.0)
            error = np.sqrt(good_ends * (1 - good_ends) / (episodes + 1))
        else:
            mean = past.utility.mean.ravel()
            variance = np.maximum(mean * (1 - mean), 0.0)  # a reward's mean may exceed [0, 1]
            error = np.sqrt(variance / (number + observed + 1)) * length
        return cls(
            gain=from_visits(logged - task.random_value),
            possible_gain=from_visits(best_value - task.random_value),
            error=error,
            has_records=number > 0,
        )

    def skill(self, credit: float = 0.0) -> FloatArray:
        """From 0 (random actions) to 1 (the best rule), not below -1: [N].

        Parameters
        ----------
        credit : float
            Standard errors that the past is credited with.
        """
        gain = self.gain + credit * self.error
        possible_gain = self.possible_gain + credit * self.error
        skill = gain / np.maximum(possible_gain, np.finfo(float).tiny)
        return np.where(self.has_records, np.clip(skill, -1.0, 1.0), 0.0)


def _choose(
    index: FloatArray, deviation: FloatArray, temperature: float, is_allowed: BoolArray
) -> FloatArray:
    """The rule of an index [N, S, A]; see the module."""
    index = np.where(is_allowed, index, -np.inf)
    best = index.argmax(axis=-1)[..., None]
    behind = np.take_along_axis(index, best, axis=-1) - index
    variance = deviation**2 + np.take_along_axis(deviation, best, axis=-1) ** 2
    rounding = TIE * np.abs(np.where(is_allowed, index, 0.0)).max(axis=(1, 2), keepdims=True)
    scale = temperature * np.sqrt(variance) + rounding + SMALLEST_DEVIATION
    return normalise(np.exp(-behind / scale))
