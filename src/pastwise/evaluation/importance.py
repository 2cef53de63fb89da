"""Off-policy estimates from trajectories: what a rule would have scored, told by the episodes that others went through.

An episode that took the logged actions with probability ``behaviour`` would have come about under a rule with
``weight_t = prod_{k <= t} rule(action_k | state_k) / behaviour(action_k | state_k)`` times its probability. An episode
that ended keeps its last weight and scores no more, so that short and long episodes are weighed alike.

*Per-decision weighted importance sampling* weighs the score of step t by ``weight_t``, normalised over the episodes:

    sum_t  sum_i weight_t score(next_state_t) / sum_i weight_t.

The *weighted doubly robust* estimate weighs only what a model did not foresee: with Q_t and V_t, the values of the rule
on the model from step t on, and ``weight_{-1} = 1``,

    mean_i V_0(state_0) + sum_t  sum_i weight_t (score(next_state_t) - Q_t + V_{t+1}(next_state_t)) / sum_i weight_t.

Both are the self-normalised sum of a *gain* under a *weight*, [E, steps]; so is the plain mean, whose weights are one.
The intervals are percentiles of a bootstrap over episodes. It keeps an estimated behaviour as it is; estimating it anew
in every resample would make them narrower, if anything.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray, broadcast, group_sum, log
from pastwise._numerics.checks import checked_probabilities, require_memory
from pastwise.data.records import Episodes
from pastwise.models.base import TransitionModel

COVERAGE = 0.9


RESAMPLES = 1000


LEAST_EFFECTIVE = 2.0
"""Fewer effective episodes than this have no spread to resample: their interval is the whole line."""


CELLS_AT_ONCE = 4_000_000
"""Resamples times episodes that are in memory together."""


@dataclass(frozen=True)
class Estimate:
    """What a rule would have scored in an episode, on average.

    Attributes
    ----------
    mean, low, high
        The estimate and its 90 % bootstrap interval. No episode that the rule could have gone through: not a number,
        and the whole line.
    effective_episodes
        (sum w)^2 / sum w^2 of the weights at the end: how many episodes the estimate rests on.
    without_overlap
        Share of the rule's decisions in the logged states that falls on actions never logged there. The estimate says
        nothing of those.
    assumption
        What the estimate relies on.
    """

    mean: float
    low: float
    high: float
    effective_episodes: float
    without_overlap: float
    assumption: str


def behaviour(episodes: Episodes) -> FloatArray:
    """Probability with which each logged action was taken: as logged, otherwise count(s, a) / count(s): [N]."""
    if episodes.propensity is not None:
        return episodes.propensity
    state, pair = episodes.state, episodes.state * (episodes.action.max() + 1) + episodes.action
    return np.asarray(np.bincount(pair)[pair] / np.bincount(state)[state])


def episode_weights(episodes: Episodes, rule: FloatArray, horizon: int) -> FloatArray:
    """Importance weights up to each step: [E, horizon]; the largest of each step is 1, unless all are 0."""
    ratio = rule[episodes.state, episodes.action] / behaviour(episodes)
    log_weight = np.cumsum(episodes.table(log(ratio), horizon), axis=1)
    peak = log_weight.max(axis=0)
    return np.exp(log_weight - np.where(np.isneginf(peak), 0.0, peak))


def unlogged_share(episodes: Episodes, rule: FloatArray) -> float:
    """Probability that the rule gives to actions never logged in a state, averaged over the records."""
    logged = np.zeros(rule.shape, dtype=bool)
    logged[episodes.state, episodes.action] = True
    return float(np.where(logged, 0.0, rule).sum(axis=-1)[episodes.state].mean())


def ending(episodes: Episodes, num_states: int, horizon: int) -> FloatArray:
    """How often an episode ended on arriving in each state, before the horizon did: [S]; 0 where none arrived."""
    early = episodes.step < horizon - 1
    last = episodes.step + 1 == episodes.length[episodes.episode]
    arrived = episodes.next_state[early]
    ended = group_sum(arrived, last[early], num_states)
    return ended / np.maximum(np.bincount(arrived, minlength=num_states), 1)


def action_values(
    model: TransitionModel, rule: FloatArray, score: FloatArray, going_on: FloatArray, horizon: int
) -> FloatArray:
    """Expected score from each step on, Q_t(state, action) = E[score + going_on * V_{t+1}]: [horizon, S, A].

    Parameters
    ----------
    score : [S], or broadcastable to [S, A, S]
        Worth of arriving in a state, or of a transition.
    going_on : [S]
        Probability that the episode goes on after arriving in a state.
    """
    require_memory("the value of every step", (horizon, *rule.shape), "shorten the horizon")
    values = np.empty((horizon, *rule.shape))
    following = np.zeros(len(rule))
    now = model.expect(score) if score.ndim == 1 else model.expect_each(score)
    for step in reversed(range(horizon)):
        values[step] = now + model.expect(going_on * following)
        following = (rule * values[step]).sum(axis=-1)
    return values


def weighted_importance(
    episodes: Episodes,
    rule: FloatArray,
    score: FloatArray,
    horizon: int,
    *,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Expected total score of an episode under a rule, by per-decision weighted importance sampling.

    Parameters
    ----------
    rule : [S, A]
    score : [S], or broadcastable to [S, A, S]
        Worth of arriving in each state, or of each transition.
    horizon : int
        Steps of an episode that count, at most.
    rng : numpy.random.Generator, optional
        For the bootstrap; one with a fixed seed by default, so that estimates share their resamples.
    """
    steps = _checked(episodes, score, horizon, rule)
    weight = episode_weights(episodes, rule, steps)
    gain = episodes.table(episodes.scores(score), steps)
    assumption = f"Relies on this: {_weights_assumption(episodes)}."
    return _estimate(weight, gain, unlogged_share(episodes, rule), assumption, rng, resamples)


def doubly_robust(
    episodes: Episodes,
    rule: FloatArray,
    score: FloatArray,
    horizon: int,
    model: TransitionModel,
    *,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Expected total score of an episode under a rule, weighted doubly robust; see `weighted_importance`.

    The model need not know how episodes end: that is told from the log, see `ending`. The interval takes the model as
    given.
    """
    steps = _checked(episodes, score, horizon, rule)
    if rule.shape != (shape := (*model.shape, model.num_states, model.num_actions)):
        raise ValueError(f"a rule of shape {rule.shape} does not fit a model of shape {shape}")
    q = action_values(model, rule, score, 1 - ending(episodes, len(rule), steps), steps)
    v = np.concatenate([(rule * q).sum(axis=-1), np.zeros((1, len(rule)))])
    kept = np.minimum(episodes.step, steps - 1)  # what lies beyond is dropped by the table
    goes_on = episodes.step + 1 < episodes.length[episodes.episode]
    foreseen = q[kept, episodes.state, episodes.action] - goes_on * v[kept + 1, episodes.next_state]
    surprise = episodes.table(episodes.scores(score) - foreseen, steps)
    start = v[0, episodes.state[episodes.step == 0]]
    weight = np.column_stack([np.ones(episodes.number), episode_weights(episodes, rule, steps)])
    gain = np.column_stack([start, surprise])
    assumption = (
        f"Relies on either of these: the model is right; or {_weights_assumption(episodes)}."
    )
    return _estimate(weight, gain, unlogged_share(episodes, rule), assumption, rng, resamples)


def logged_value(
    episodes: Episodes,
    score: FloatArray,
    horizon: int,
    *,
    rng: np.random.Generator | None = None,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Mean total score of the logged episodes; see `weighted_importance`."""
    gain = episodes.table(episodes.scores(score), _checked(episodes, score, horizon))
    assumption = "Relies on this: the logged episodes are independent of each other, and alike."
    return _estimate(np.ones(gain.shape), gain, 0.0, assumption, rng, resamples)


def _weights_assumption(episodes: Episodes) -> str:
    source = "estimated from the log" if episodes.propensity is None else "as logged"
    return (
        f"past decisions depended on the state alone, with probabilities {source}, and whatever the rule does in a "
        "state was also done there in the past (overlap)"
    )


def _checked(
    episodes: Episodes, score: FloatArray, horizon: int, rule: FloatArray | None = None
) -> int:
    """The number of steps that count, after checking that what is given fits together."""
    if horizon < 1:
        raise ValueError(f"the horizon must be at least 1, not {horizon}")
    if score.ndim not in (1, 3) or not np.isfinite(score).all():
        raise ValueError(
            "the score must hold one finite number for each state, or for each transition"
        )
    num_states = int(max(episodes.state.max(), episodes.next_state.max())) + 1
    known = len(score) if score.ndim == 1 else max(score.shape[::2])
    if num_states > known and (score.ndim == 1 or known > 1):
        raise ValueError(f"the episodes have state {num_states - 1}; the score has {known} states")
    if rule is not None:
        checked_probabilities("rule", rule)
        if rule.ndim != 2 or len(rule) < num_states or episodes.action.max() >= rule.shape[1]:
            raise ValueError(
                f"a rule of shape {rule.shape} does not fit {num_states} states and action {episodes.action.max()}"
            )
        broadcast("score", score, (*rule.shape, len(rule)))
    return min(horizon, int(episodes.length.max()))


def _estimate(
    weight: FloatArray,
    gain: FloatArray,
    without_overlap: float,
    assumption: str,
    rng: np.random.Generator | None,
    resamples: int,
) -> Estimate:
    """The self-normalised sum of the gains, with its bootstrap interval: weight, gain [E, steps]."""
    if resamples < 1:
        raise ValueError(f"at least one resample is needed, not {resamples}")
    sums = np.column_stack([weight * gain, weight])
    mean = float(_self_normalised(sums.sum(axis=0)))
    final = weight[:, -1]
    effective = float(final.sum() ** 2 / (final**2).sum()) if final.any() else 0.0
    low, high = -np.inf, np.inf
    if effective >= LEAST_EFFECTIVE:
        drawn = _self_normalised(_resampled_sums(sums, resamples, rng or np.random.default_rng(0)))
        low, high = _interval(drawn)
    return Estimate(mean, low, high, effective, without_overlap, assumption)


def _self_normalised(sums: FloatArray) -> FloatArray:
    """Weighted means, summed over steps: [..., 2 * steps] -> [...]; not a number where all weights of a step are 0."""
    gain, weight = np.split(sums, 2, axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray((gain / weight).sum(axis=-1))


def _resampled_sums(table: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Column sums of resampled rows: [E, columns] -> [resamples, columns]."""
    E = len(table)
    size = max(1, CELLS_AT_ONCE // E)
    parts = []
    for start in range(0, resamples, size):
        number = min(size, resamples - start)
        drawn = rng.integers(E, size=(number, E)) + E * np.arange(number)[:, None]
        times = np.bincount(drawn.ravel(), minlength=number * E).reshape(number, E)
        parts.append(times.astype(np.float64) @ table)
    return np.concatenate(parts)


def _interval(drawn: FloatArray) -> tuple[float, float]:
    """Percentiles; a resample that tells nothing counts against either end."""
    tail, unknown = (1 - COVERAGE) / 2, np.isnan(drawn)
    low = np.quantile(np.where(unknown, -np.inf, drawn), tail, method="inverted_cdf")
    high = np.quantile(np.where(unknown, np.inf, drawn), 1 - tail, method="inverted_cdf")
    return float(low), float(high)
