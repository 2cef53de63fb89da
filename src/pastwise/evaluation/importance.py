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

Both are the self-normalised sum of a *gain* under a *weight*, each [E, steps]; so is the plain
mean, whose weights are one. The intervals are percentiles of a bootstrap over episodes, which keeps
an estimated behaviour fixed; estimating it in every resample would make them narrower, if anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray, broadcast, group_sum, log
from pastwise._numerics.checks import checked_probabilities, require_memory
from pastwise._numerics.interval import require_level
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Episodes
from pastwise.errors import ParameterError
from pastwise.evaluation.result import Estimate
from pastwise.models.base import TransitionModel
from pastwise.models.learned import LearnedModel
from pastwise.theory.fpd import require_horizon


@dataclass(frozen=True)
class Bootstrap:
    """How the intervals are made.

    Attributes
    ----------
    resamples : int
        Number of bootstrap samples. 1,000 leave 50 in each tail of a 90 % interval.
    level : float
        Nominal probability of the interval; the default is that of all other intervals.
    min_effective_episodes : float
        Fewer have no spread to resample, so the interval is the whole line.
    """

    resamples: int = 1000
    level: float = 0.9
    min_effective_episodes: float = 2.0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ParameterError(f"at least one resample is needed, not {self.resamples}")
        require_level("level", self.level)


DEFAULT_BOOTSTRAP = Bootstrap()


def episode_estimates(
    rule: FloatArray, episodes: Episodes, log: TransitionCounts, utility: FloatArray, horizon: int
) -> dict[str, Estimate]:
    """Total utility of an episode up to the horizon: as logged, and of the rule by two estimators.

    Parameters
    ----------
    rule : [S, A]
    log : TransitionCounts
        Counts of the episodes, for the model of the doubly robust estimate.
    utility : [S], or broadcastable to [S, A, S]
    """
    # One pseudo-record in each row, spread over all next states.
    model = LearnedModel(log, 1 / len(log.states))
    return {
        "logged": logged_value(episodes, utility, horizon),
        "importance sampling": weighted_importance(episodes, rule, utility, horizon),
        "doubly robust": doubly_robust(episodes, rule, utility, horizon, model),
    }


# Estimators.


def weighted_importance(
    episodes: Episodes,
    rule: FloatArray,
    utility: FloatArray,
    horizon: int,
    *,
    rng: np.random.Generator | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Expected total utility of an episode under a rule, by weighted importance sampling.

    Parameters
    ----------
    rule : [S, A]
    utility : [S], or broadcastable to [S, A, S]
        Of arriving in each state, or of each transition.
    horizon : int
        Steps of an episode that count, at most.
    rng : numpy.random.Generator, optional
        For the bootstrap; one with a fixed seed by default, so that estimates share their
        resamples.
    """
    steps = _checked_steps(episodes, utility, horizon, rule)
    weight = episode_weights(episodes, rule, steps)
    gain = episodes.table(episodes.scores(utility), steps)
    overlap = unlogged_share(episodes, rule)
    assumption = f"Relies on this: {_weights_assumption(episodes)}."
    return _estimate(weight, gain, overlap, assumption, rng, bootstrap)


def doubly_robust(
    episodes: Episodes,
    rule: FloatArray,
    utility: FloatArray,
    horizon: int,
    model: TransitionModel,
    *,
    rng: np.random.Generator | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Expected total utility of an episode under a rule, weighted doubly robust.

    See `weighted_importance` for the parameters. The model need not know how episodes end: that is
    estimated from the log, see `ending_rate`. The interval takes the model as given.
    """
    steps = _checked_steps(episodes, utility, horizon, rule)
    model_shape = (*model.shape, model.num_states, model.num_actions)
    if rule.shape != model_shape:
        raise ParameterError(
            f"a rule of shape {rule.shape} does not fit a model of shape {model_shape}"
        )

    # Values of the rule on the model: Q [steps, S, A] and V [steps + 1, S].
    going_on = 1 - ending_rate(episodes, len(rule), steps)
    q = action_values(model, rule, utility, going_on, steps)
    v = np.concatenate([(rule * q).sum(axis=-1), np.zeros((1, len(rule)))])

    # What the model did not predict of each record; records after the last step get any value, the
    # table drops them.
    step = np.minimum(episodes.step, steps - 1)
    goes_on = episodes.step + 1 < episodes.length[episodes.episode]
    predicted = q[step, episodes.state, episodes.action]
    predicted_after = goes_on * v[step + 1, episodes.next_state]
    residual = episodes.table(episodes.scores(utility) - (predicted - predicted_after), steps)

    # The value of the start state has weight one.
    start_value = v[0, episodes.state[episodes.step == 0]]
    gain = np.column_stack([start_value, residual])
    weight = np.column_stack([np.ones(episodes.number), episode_weights(episodes, rule, steps)])

    overlap = unlogged_share(episodes, rule)
    assumption = (
        f"Relies on either of these: the model is right; or {_weights_assumption(episodes)}."
    )
    return _estimate(weight, gain, overlap, assumption, rng, bootstrap)


def logged_value(
    episodes: Episodes,
    utility: FloatArray,
    horizon: int,
    *,
    rng: np.random.Generator | None = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
) -> Estimate:
    """Mean total utility of the logged episodes; see `weighted_importance`."""
    steps = _checked_steps(episodes, utility, horizon)
    gain = episodes.table(episodes.scores(utility), steps)
    weight = np.ones(gain.shape)
    assumption = "Relies on this: the logged episodes are independent and identically distributed."
    return _estimate(weight, gain, 0.0, assumption, rng, bootstrap)


def _weights_assumption(episodes: Episodes) -> str:
    source = "estimated from the log" if episodes.propensity is None else "as logged"
    return (
        f"past decisions depended on the state alone, with probabilities {source}, and every "
        "action that the rule takes in a state was also taken there in the past (overlap)"
    )


# Their parts.


def behaviour(episodes: Episodes) -> FloatArray:
    """Probability with which each logged action was taken: [N].

    As logged where the log has it, otherwise count(state, action) / count(state).
    """
    if episodes.propensity is not None:
        return episodes.propensity
    state = episodes.state
    pair = state * (episodes.action.max() + 1) + episodes.action
    return np.asarray(np.bincount(pair)[pair] / np.bincount(state)[state])


def episode_weights(episodes: Episodes, rule: FloatArray, horizon: int) -> FloatArray:
    """Importance weights up to each step: [E, horizon].

    They are scaled so that the largest of each step is 1, unless all are 0.
    """
    ratio = rule[episodes.state, episodes.action] / behaviour(episodes)
    log_weight = np.cumsum(episodes.table(log(ratio), horizon), axis=1)
    largest = log_weight.max(axis=0)
    return np.exp(log_weight - np.where(np.isneginf(largest), 0.0, largest))


def unlogged_share(episodes: Episodes, rule: FloatArray) -> float:
    """Probability that the rule gives to actions never logged in a state, mean over the records."""
    logged = np.zeros(rule.shape, dtype=bool)
    logged[episodes.state, episodes.action] = True
    unlogged = np.where(logged, 0.0, rule).sum(axis=-1)
    return float(unlogged[episodes.state].mean())


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


# The self-normalised sum and its bootstrap.


def _estimate(
    weight: FloatArray,
    gain: FloatArray,
    without_overlap: float,
    assumption: str,
    rng: np.random.Generator | None,
    bootstrap: Bootstrap,
) -> Estimate:
    """The self-normalised sum of gains [E, steps] under weights [E, steps], with its interval."""
    sums = np.column_stack([weight * gain, weight])
    mean = float(_self_normalised(sums.sum(axis=0)))

    final = weight[:, -1]
    effective = float(final.sum() ** 2 / (final**2).sum()) if final.any() else 0.0

    low = -np.inf
    high = np.inf
    if effective >= bootstrap.min_effective_episodes:
        rng = rng or np.random.default_rng(0)
        resampled = _self_normalised(_resampled_sums(sums, bootstrap.resamples, rng))
        low, high = _percentiles(resampled, bootstrap.level)
    return Estimate(mean, low, high, bootstrap.level, effective, without_overlap, assumption)


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
