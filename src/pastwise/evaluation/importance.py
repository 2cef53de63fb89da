"""Off-policy estimates from trajectories: what a rule would have scored in the logged episodes.

An episode that took its actions with probability ``behaviour`` would have come about under a rule
with ``weight_t = prod_{k <= t} rule(action_k | state_k) / behaviour(action_k | state_k)`` times its
probability. An episode that ended keeps its last weight and scores no more, so that short and long
episodes are weighted equally. With ``u_t``, the utility of step t:

*Per-decision weighted importance sampling* weights the utility of each step, normalised over the
episodes i:

    sum_t  sum_i weight_t u_t / sum_i weight_t.

The *weighted doubly robust* estimate weights only what a model did not predict. With Q_t and V_t,
the values of the rule on the model from step t on,

    mean_i V_0(state_0)
    + sum_t  sum_i weight_t (u_t - Q_t + V_{t+1}(next_state_t)) / sum_i weight_t.

*Cross-fitting.* A rule that is judged by the records that it was learned from looks better than it
is. The episodes are split into folds. For the episodes of each fold, the rule (if it was learned
from this log), the behaviour (unless propensities were logged) and the model are learned without
them. The weights and residuals of all folds are then pooled in one sum. It estimates the mean value
of the rules of the folds, each of which has seen a little less than the rule of the whole log.

*Interval.* Both estimates are the self-normalised sum of a *gain* under a *weight*, each
[E, columns]; so is the plain mean, whose weights are one. The intervals are percentiles of a
bootstrap over units (the log's episodes) that keeps fixed what was learned. All estimates share
their resamples, so differences to the logged value are paired.

*Rewards.* Where episodes have rewards, ``u_t`` is the reward of the record itself. The model then
predicts the mean rewards of the records that it is learned from, see `models.rewards`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, broadcast, group_sum, log
from pastwise._numerics.checks import checked_probabilities, require_memory
from pastwise._numerics.interval import Interval
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Episodes
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.evaluation.estimate import (
    DEFAULT_OPTIONS,
    Estimate,
    EstimateOptions,
    why_not,
)
from pastwise.models.base import TransitionModel
from pastwise.models.learned import LearnedModel
from pastwise.models.rewards import RewardPosterior
from pastwise.theory.fpd import require_horizon

LOGGED = "logged"
IMPORTANCE = "importance sampling"
DOUBLY_ROBUST = "doubly robust"

NEEDED_FOR_SPREAD = 2.0 - 1e-9
"""Fewer effective episodes than two, up to rounding, have no spread to resample: their interval is
the whole line."""


@dataclass(frozen=True, eq=False)
class FixedRule:
    """A rule that was not learned from the episodes that judge it: [S, A]."""

    probabilities: FloatArray


@dataclass(frozen=True, eq=False)
class LearnedRule:
    """A rule that was learned from the episodes that judge it, perhaps among others.

    Attributes
    ----------
    probabilities : [S, A]
        As learned from all of them.
    learn_without : function
        Takes the counts of some of the episodes (one for each record, without labels) and returns
        the rule [S, A] that is learned from everything else.
    """

    probabilities: FloatArray
    learn_without: Callable[[TransitionCounts], FloatArray]


def episode_estimates(
    episodes: Episodes,
    rule: FixedRule | LearnedRule,
    utility: FloatArray,
    horizon: int,
    *,
    terminal: IntArray | None = None,
    model: TransitionModel | None = None,
    options: EstimateOptions = DEFAULT_OPTIONS,
) -> dict[str, Estimate]:
    """Total utility of an episode up to the horizon: as logged, and of the rule by two estimators.

    Parameters
    ----------
    episodes : Episodes
        With or without propensities; those are used where there are any.
    rule : FixedRule or LearnedRule
        Whether the rule was learned from these episodes; if so, it is cross-fitted.
    utility : [S], or broadcastable to [S, A, S]
        Of arriving in each state, or of each transition. Where episodes have rewards, these count
        instead.
    horizon : int
        Steps of an episode that count, at most.
    terminal : [number], optional
        States in which episodes end. How often they end elsewhere is estimated from the episodes.
    model : TransitionModel, optional
        Model of the doubly robust estimate; by default it is learned, and cross-fitted.
    """
    steps = _checked_steps(episodes, utility, horizon, rule.probabilities)
    if terminal is None:
        terminal = np.empty(0, dtype=np.int64)
    question = _Question(
        episodes, utility, steps, rule.probabilities.shape, terminal, model, options
    )

    # Learn everything that the estimates need, from all episodes and from those of other folds.
    in_sample = question.parts(episodes, episodes, rule.probabilities)
    num_units = int(episodes.unit_of_episode.max()) + 1
    num_folds = min(options.folds, num_units)
    parts = in_sample
    if num_folds > 1:
        parts = _cross_fitted(episodes, rule, question, num_folds)

    # Self-normalised sums: of all episodes, and of resampled units.
    sums = _weighted_sums(episodes, parts, utility, steps)
    values = {name: float(_self_normalised(table.sum(axis=0))) for name, table in sums.items()}
    resampled = _resampled_values(sums, options)
    in_sample_sums = _weighted_sums(episodes, in_sample, utility, steps)

    # What each estimate rests on.
    without_overlap = float(parts.unlogged.mean())
    possible = _possible_range(episodes, utility, steps)
    estimates = {}
    for name, table in sums.items():
        learned = _learned_parts(name, rule, episodes, model)
        effective = _kish(table[:, table.shape[1] // 2 :])
        has_spread = effective[-1] >= NEEDED_FOR_SPREAD
        value = _interval(values[name], resampled[name], has_spread, options.level)
        difference = None
        in_sample_value = None
        if name != LOGGED:
            difference = _interval(
                values[name] - values[LOGGED],
                resampled[name] - resampled[LOGGED],
                has_spread,
                options.level,
            )
        if learned:
            in_sample_value = float(_self_normalised(in_sample_sums[name].sum(axis=0)))
        estimate = Estimate(
            value.mean,
            value.low,
            value.high,
            value.level,
            effective_episodes=float(effective[-1]),
            smallest_effective_episodes=float(effective.min()),
            without_overlap=0.0 if name == LOGGED else without_overlap,
            possible_low=possible[0],
            possible_high=possible[1],
            assumption=_assumption(name, episodes, learned, num_folds),
            folds=num_folds if learned else 1,
            in_sample=in_sample_value,
            difference=difference,
        )
        estimates[name] = replace(estimate, why_not=why_not(estimate, learned, options))
    return estimates


# What is learned: from all episodes, or fold by fold.


@dataclass(frozen=True, eq=False)
class _Parts:
    """What the estimates need to know of N records of E episodes.

    Attributes
    ----------
    ratio : [N]
        Probability of the logged action under the rule, divided by that under the behaviour.
    unlogged : [N]
        Probability that the rule gives, in the record's state, to actions never logged there.
    residual : [N]
        What the model did not predict: u - Q(state, action) + V(next_state).
    start_value : [E]
        V of the first state of each episode.
    """

    ratio: FloatArray
    unlogged: FloatArray
    residual: FloatArray
    start_value: FloatArray


@dataclass(frozen=True, eq=False)
class _Question:
    """What is estimated, and how; see `episode_estimates`."""

    logged: Episodes
    utility: FloatArray
    steps: int
    shape: tuple[int, ...]
    terminal: IntArray
    model: TransitionModel | None
    options: EstimateOptions

    def __post_init__(self) -> None:
        if self.model is None:
            return
        model_shape = (*self.model.shape, self.model.num_states, self.model.num_actions)
        if self.shape != model_shape:
            raise ParameterError(
                f"a rule of shape {self.shape} does not fit a model of shape {model_shape}"
            )

    def parts(self, judged: Episodes, training: Episodes, rule: FloatArray) -> _Parts:
        """What the training episodes say about the records of the judged ones."""
        num_states, num_actions = self.shape

        # Weights.
        probability = behaviour(judged, training, num_actions, self.options.behaviour_prior)
        ratio = rule[judged.state, judged.action] / probability

        # Values of the rule on the model: Q [steps, S, A] and V [steps + 1, S].
        model = self.model
        utility = self.utility
        counts = counts_of(training, self.shape, self.terminal)
        if model is None:
            model = LearnedModel(counts, self.options.model_prior / num_states)
        if counts.has_rewards:
            utility = RewardPosterior.of(counts).table
        going_on = 1 - ending_rate(training, num_states, self.steps)
        going_on[self.terminal] = 0.0
        q = action_values(model, rule, utility, going_on, self.steps)
        v = np.concatenate([(rule * q).sum(axis=-1), np.zeros((1, num_states))])

        # What the model did not predict; records after the last step get any value, the table
        # drops them.
        step = np.minimum(judged.step, self.steps - 1)
        goes_on = judged.step + 1 < judged.length[judged.episode]
        predicted = q[step, judged.state, judged.action]
        predicted_after = goes_on * v[step + 1, judged.next_state]
        residual = judged.gains(self.utility) - (predicted - predicted_after)

        return _Parts(
            ratio,
            unlogged_probability(judged, self.logged, rule),
            residual,
            start_value=v[0, judged.state[judged.step == 0]],
        )


def _cross_fitted(
    episodes: Episodes, rule: FixedRule | LearnedRule, question: _Question, num_folds: int
) -> _Parts:
    """For every episode, what the episodes of the other folds say about it."""
    fold = fold_of_episode(episodes, num_folds, question.options.seed)
    num_records = len(episodes.state)
    parts = _Parts(
        ratio=np.empty(num_records),
        unlogged=np.empty(num_records),
        residual=np.empty(num_records),
        start_value=np.empty(episodes.number),
    )
    for number in range(num_folds):
        is_judged = fold == number
        judged = episodes.where(is_judged)
        training = episodes.where(~is_judged)
        probabilities = rule.probabilities
        if isinstance(rule, LearnedRule):
            left_out = counts_of(judged, question.shape, question.terminal)
            probabilities = checked_probabilities("rule of a fold", rule.learn_without(left_out))
        found = question.parts(judged, training, probabilities)
        record_is_judged = is_judged[episodes.episode]
        parts.ratio[record_is_judged] = found.ratio
        parts.residual[record_is_judged] = found.residual
        parts.unlogged[record_is_judged] = found.unlogged
        parts.start_value[is_judged] = found.start_value
    return parts


def fold_of_episode(episodes: Episodes, num_folds: int, seed: int = 0) -> IntArray:
    """A fold for each episode, at random: [E].

    Episodes of one unit share their fold. The numbers of units of any two folds differ by at most
    one.
    """
    unit = episodes.unit_of_episode
    shuffled = np.random.default_rng(seed).permutation(int(unit.max()) + 1)
    return np.asarray(shuffled[unit] % num_folds)


def counts_of(
    episodes: Episodes, shape: tuple[int, ...], terminal: IntArray | None = None
) -> TransitionCounts:
    """The records of episodes, counted over S states and A actions without labels."""
    num_states, num_actions = shape
    counts = TransitionCounts.from_records(
        episodes.state,
        episodes.action,
        episodes.next_state,
        Space.of_size(num_states),
        Space.of_size(num_actions),
        reward=episodes.reward,
    )
    return counts if terminal is None else counts.ending_in(terminal)


def behaviour(
    judged: Episodes, training: Episodes, num_actions: int, prior: float = 1.0
) -> FloatArray:
    """Probability with which each action of the judged episodes was taken: [N].

    As logged where the log has it. Otherwise (count(state, action) + prior / A) / (count(state) +
    prior), counted in the training episodes.
    """
    if judged.propensity is not None:
        return judged.propensity
    num_states = int(max(judged.state.max(), training.state.max())) + 1
    pair = training.state * num_actions + training.action
    of_pair = np.bincount(pair, minlength=num_states * num_actions)
    of_state = np.bincount(training.state, minlength=num_states)
    taken = of_pair[judged.state * num_actions + judged.action] + prior / num_actions
    return np.asarray(taken / (of_state[judged.state] + prior))


def episode_weights(episodes: Episodes, ratio: FloatArray, horizon: int) -> FloatArray:
    """Importance weights up to each step, from the ratio of each record [N]: [E, horizon].

    They are scaled so that the largest of each step is 1, unless all are 0.
    """
    log_weight = np.cumsum(episodes.table(log(ratio), horizon), axis=1)
    largest = log_weight.max(axis=0)
    return np.exp(log_weight - np.where(np.isneginf(largest), 0.0, largest))


def unlogged_probability(judged: Episodes, logged: Episodes, rule: FloatArray) -> FloatArray:
    """Probability, in the state of each judged record, of actions never logged there: [N]."""
    is_logged = np.zeros(rule.shape, dtype=bool)
    is_logged[logged.state, logged.action] = True
    unlogged = np.where(is_logged, 0.0, rule).sum(axis=-1)
    return np.asarray(unlogged[judged.state])


def ending_rate(episodes: Episodes, num_states: int, horizon: int) -> FloatArray:
    """How often an episode ended on arriving in each state, before the horizon did: [S].

    It is 0 where no episode arrived.
    """
    before_horizon = episodes.step < horizon - 1
    is_last = episodes.step + 1 == episodes.length[episodes.episode]
    arrived = episodes.next_state[before_horizon]
    num_ended = group_sum(arrived, is_last[before_horizon], num_states)
    num_arrived = np.bincount(arrived, minlength=num_states)
    return num_ended / np.maximum(num_arrived, 1)


def action_values(
    model: TransitionModel,
    rule: FloatArray,
    utility: FloatArray,
    going_on: FloatArray,
    horizon: int,
) -> FloatArray:
    """Expected utility from each step on, Q_t(s, a) = E[u + going_on(s') V_{t+1}(s')].

    Returns an array [horizon, S, A].

    Parameters
    ----------
    utility : [S], or broadcastable to [S, A, S]
        Of arriving in a state, or of a transition.
    going_on : [S]
        Probability that the episode goes on after arriving in a state.
    """
    require_memory("the value of every step", (horizon, *rule.shape), "shorten the horizon")
    values = np.empty((horizon, *rule.shape))
    next_value = np.zeros(len(rule))
    now = model.expect(utility) if utility.ndim == 1 else model.expect_each(utility)
    for step in reversed(range(horizon)):
        values[step] = now + model.expect(going_on * next_value)
        next_value = (rule * values[step]).sum(axis=-1)
    return values


def _checked_steps(
    episodes: Episodes, utility: FloatArray, horizon: int, rule: FloatArray | None = None
) -> int:
    """The number of steps that count, after checking that the arguments fit together."""
    require_horizon(horizon)
    if utility.ndim not in (1, 3) or not np.isfinite(utility).all():
        raise ParameterError(
            "the utility must hold one finite number for each state, or for each transition"
        )

    # Every state of the episodes needs a utility; an axis of length 1 serves all states.
    num_states = int(max(episodes.state.max(), episodes.next_state.max())) + 1
    if utility.ndim == 1:
        known_states = len(utility)
        serves_all = False
    else:
        known_states = max(utility.shape[0], utility.shape[2])
        serves_all = known_states == 1
    if num_states > known_states and not serves_all:
        raise ParameterError(
            f"the episodes have state {num_states - 1}; the utility has {known_states} states"
        )

    if rule is not None:
        checked_probabilities("rule", rule)
        last_action = episodes.action.max()
        if rule.ndim != 2 or len(rule) < num_states or last_action >= rule.shape[1]:
            raise ParameterError(
                f"a rule of shape {rule.shape} does not fit {num_states} states "
                f"and action {last_action}"
            )
        broadcast("utility", utility, (*rule.shape, len(rule)))
    return min(horizon, int(episodes.length.max()))


# Self-normalised sums and their bootstrap.


def _weighted_sums(
    episodes: Episodes, parts: _Parts, utility: FloatArray, steps: int
) -> dict[str, FloatArray]:
    """Of each estimator and each unit: weight times gain, then weight: [units, 2 * columns]."""
    gain = episodes.table(episodes.gains(utility), steps)
    residual = episodes.table(parts.residual, steps)
    weight = episode_weights(episodes, parts.ratio, steps)
    one = np.ones((episodes.number, 1))

    # The model's value of the start has weight one.
    robust_weight = np.column_stack([one, weight])
    robust_gain = np.column_stack([parts.start_value, residual])
    return {
        LOGGED: _sum_by_unit(episodes, one, gain.sum(axis=1, keepdims=True)),
        IMPORTANCE: _sum_by_unit(episodes, weight, gain),
        DOUBLY_ROBUST: _sum_by_unit(episodes, robust_weight, robust_gain),
    }


def _sum_by_unit(episodes: Episodes, weight: FloatArray, gain: FloatArray) -> FloatArray:
    """Weight times gain, and weight, summed over the episodes of each unit."""
    table = np.column_stack([weight * gain, weight])
    unit = episodes.unit_of_episode
    num_units = int(unit.max()) + 1
    if num_units == episodes.number:
        return table
    sums = np.zeros((num_units, table.shape[1]))
    np.add.at(sums, unit, table)
    return sums


def _resampled_values(
    sums: dict[str, FloatArray], options: EstimateOptions
) -> dict[str, FloatArray]:
    """Values of each estimator on the same resamples: [resamples] each."""
    rng = np.random.default_rng(options.seed)
    widths = [table.shape[1] for table in sums.values()]
    pooled = _resampled_sums(np.concatenate(list(sums.values()), axis=1), options.resamples, rng)
    tables = np.split(pooled, np.cumsum(widths)[:-1], axis=1)
    return {name: _self_normalised(table) for name, table in zip(sums, tables, strict=True)}


def _kish(weight: FloatArray) -> FloatArray:
    """Effective number of units behind each column of weights: [units, columns] -> [columns]."""
    squared = (weight**2).sum(axis=0)
    return np.asarray(weight.sum(axis=0) ** 2 / np.where(squared > 0, squared, 1.0))


def _interval(mean: float, resampled: FloatArray, has_spread: bool, level: float) -> Interval:
    """The percentile interval, or the whole line where there is no spread to resample."""
    if not has_spread:
        return Interval(mean, -np.inf, np.inf, level)
    low, high = _percentiles(resampled, level)
    return Interval(mean, low, high, level)


def _self_normalised(sums: FloatArray) -> FloatArray:
    """Weighted means summed over steps: [..., 2 * steps] -> [...].

    Not a number where all weights of a step are 0.
    """
    gain, weight = np.split(sums, 2, axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray((gain / weight).sum(axis=-1))


def _resampled_sums(
    table: FloatArray, resamples: int, rng: np.random.Generator, max_cells: int = 4_000_000
) -> FloatArray:
    """Column sums of resampled rows: [E, columns] -> [resamples, columns].

    At most ``max_cells`` numbers (resamples times episodes) are in memory at a time: 32 MB.
    """
    E = len(table)
    chunk = max(1, max_cells // E)
    parts = []
    for start in range(0, resamples, chunk):
        # How often each resample holds each row: [number, E].
        number = min(chunk, resamples - start)
        chosen = rng.integers(E, size=(number, E)) + E * np.arange(number)[:, None]
        times = np.bincount(chosen.ravel(), minlength=number * E).reshape(number, E)
        parts.append(times.astype(np.float64) @ table)
    return np.concatenate(parts)


def _percentiles(resampled: FloatArray, level: float) -> tuple[float, float]:
    """Bounds of the central interval; an undefined resample counts against either bound."""
    tail = (1 - level) / 2
    undefined = np.isnan(resampled)
    pessimistic = np.where(undefined, -np.inf, resampled)
    optimistic = np.where(undefined, np.inf, resampled)
    low = np.quantile(pessimistic, tail, method="inverted_cdf")
    high = np.quantile(optimistic, 1 - tail, method="inverted_cdf")
    return float(low), float(high)


# What an estimate says about itself.


def _learned_parts(
    name: str, rule: FixedRule | LearnedRule, episodes: Episodes, model: TransitionModel | None
) -> list[str]:
    """What was learned from the log for an estimate."""
    if name == LOGGED:
        return []
    learned = []
    if isinstance(rule, LearnedRule):
        learned.append("rule")
    if episodes.propensity is None:
        learned.append("behaviour")
    if name == DOUBLY_ROBUST and model is None:
        learned.append("model")
    return learned


def _assumption(name: str, episodes: Episodes, learned: list[str], num_folds: int) -> str:
    if name == LOGGED:
        return "Relies on this: the logged episodes are independent and identically distributed."
    source = "estimated from the log" if episodes.propensity is None else "as logged"
    weights = (
        f"past decisions depended on the state alone, with probabilities {source}, and every "
        "action that the rule takes in a state was also taken there in the past (overlap)"
    )
    if name == IMPORTANCE:
        relies_on = f"Relies on this: {weights}."
    else:
        relies_on = f"Relies on either of these: the model is right; or {weights}."
    if not learned:
        return relies_on
    what = " and ".join(learned)
    if num_folds == 1:
        return f"{relies_on} Learned from the episodes that it judges: {what}."
    return f"{relies_on} Learned from other episodes than it judges, in {num_folds} folds: {what}."


def _possible_range(episodes: Episodes, utility: FloatArray, steps: int) -> tuple[float, float]:
    """Least and largest total utility of an episode.

    Every step up to the length of the shortest logged episode scores; later ones may not.
    """
    certain = min(int(episodes.length.min()), steps)
    if episodes.reward is not None:
        utility = episodes.reward
    least = float(utility.min())
    largest = float(utility.max())
    low = certain * least + (steps - certain) * min(least, 0.0)
    high = certain * largest + (steps - certain) * max(largest, 0.0)
    return low, high
