"""Is a learned rule better than what was done? One answer out of values, support and alarm, in labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray, group_sum, normalise
from pastwise._numerics.checks import checked_probabilities
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Episodes
from pastwise.data.space import key_of
from pastwise.evaluation.importance import doubly_robust, logged_value, weighted_importance
from pastwise.evaluation.result import Evaluation
from pastwise.evaluation.values import Credible, Task, is_alarming, sample_values, verdict
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.methods.baselines import behaviour_rule
from pastwise.models.learned import LearnedModel
from pastwise.models.samples import TransitionPosterior
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.fpd import first_rule
from pastwise.theory.learning import StateSupport, default_prior_count

MAX_STATES = 3000
"""Larger systems are not evaluated: the prior is a table of all pairs of states."""

HORIZON = 10
"""Horizon of the FPD_learn that an evaluation compares with."""

OFTEN, RARELY = 5, 1e-3
"""Records that make a (state, action) well seen; share of epochs below which a state counts as not visited."""


def require_few(states: int) -> None:
    """Refuse to evaluate on too many states."""
    if states > MAX_STATES:
        raise ValueError(
            f"{states:,} states are too many to evaluate; up to {MAX_STATES:,} are not: each drawn model rests on a "
            "table of all pairs of states"
        )


def evaluate_rule(
    rule: FloatArray,
    support: StateSupport,
    goal: Goal,
    log: TransitionCounts,
    initial: FloatArray | None = None,
    *,
    horizon: int = 100,
    draws: int = 2000,
    background: float | None = None,
    seed: int = 0,
    on_step: Callable[[int], None] = lambda done: None,
    backend: str | None = None,
) -> Evaluation:
    """Evaluate a rule against what was done, acting at random, FPD_learn and the optimum, on the same drawn models.

    Parameters
    ----------
    log : TransitionCounts
        Without leading axes, over the rule's labels.
    initial : [S], optional
        Distribution of the start state; by default that of the log, see `starts_of`.
    horizon, draws : int
        Number of epochs; number of models drawn from the posterior.
    background : float, optional
        Prior count of every transition; by default drawn from what the log tells of it.
    """
    require_few(len(log.states))
    if background is not None and not (np.isfinite(background) and background > 0):
        raise ValueError(f"the background count must be positive, not {background}")
    log = log.evenly_weighted()
    ideal = goal.on(log.states, log.actions)
    start = starts_of(log) if initial is None else checked_probabilities("initial", initial)
    task, measure = task_of(goal, ideal, log, start, horizon)
    posterior = TransitionPosterior(log, background)
    samples = sample_values(posterior, _contenders(rule, ideal, log), task, draws, seed, on_step)
    differences = {name: samples["new"] - samples[name] for name in ("logged", "random")}
    return Evaluation(
        {name: Credible.of(samples[name]) for name in samples.names},
        {f"to_{name}": Credible.of(difference) for name, difference in differences.items()},
        verdict(differences),
        is_alarming(differences),
        _support(rule, support, log, posterior, task),
        measure,
        len(samples.values),
        draws,
        backend=backend,
    )


def starts_of(log: TransitionCounts) -> FloatArray:
    """Where the log starts: [S].

    Of a log that knows ends, the states that were left more often than entered, by as much: what starts and does not
    end there. Of any other, as often as it was in each state.
    """
    left = log.by_state_action(log.weight).sum(axis=-1)
    surplus = np.maximum(left - group_sum(log.next_state, log.weight, len(left)), 0.0)
    return normalise(surplus if len(log.terminal) and surplus.any() else left)


def task_of(
    goal: Goal, ideal: IdealModel, log: TransitionCounts, initial: FloatArray, horizon: int
) -> tuple[Task, str]:
    """What a rule is judged by, and its name in words.

    The share of time in the preferred states, weighted by preference; where those are all terminal, how well it ends.
    The mean reward, or worth of a transition; in a log that knows ends, the total of an episode.
    """
    score = goal.score(log.states, log.actions)
    ends_matter = (
        bool(goal.reward) or score.ndim > 1 or np.isin(np.flatnonzero(score), log.terminal).all()
    )
    ends = log.terminal if len(log.terminal) and ends_matter else None
    if score.ndim > 1 and not goal.reward:
        measures = ("mean worth of a step", "worth of an episode")
    elif goal.reward:
        measures = ("mean reward", "total reward of an episode")
    else:
        whole = np.isin(score, (0.0, 1.0)).all()
        measures = (
            "share of time as wanted",
            "chance of ending well" if whole else "worth of the end",
        )
    return Task(score, initial, horizon, ends, ideal.allowed), measures[ends is not None]


def episode_estimates(
    rule: FloatArray, episodes: Episodes, log: TransitionCounts, score: FloatArray, horizon: int
) -> dict[str, dict[str, Any]]:
    """Total score of an episode, up to the horizon: as logged, and of the rule by two estimators that draw no models.

    What is not defined, for want of overlap, is None.
    """
    model = LearnedModel(log, 1 / len(log.states))
    found = {
        "logged": logged_value(episodes, score, horizon),
        "importance sampling": weighted_importance(episodes, rule, score, horizon),
        "doubly robust": doubly_robust(episodes, rule, score, horizon, model),
    }
    return {
        name: {key: _finite(value) for key, value in vars(each).items()}
        for name, each in found.items()
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _contenders(
    rule: FloatArray, ideal: IdealModel, log: TransitionCounts
) -> dict[str, FloatArray]:
    """The rules to compare, [S, A] by name; no FPD_learn for a goal with hard zeros: no learned model can keep them."""
    random = np.broadcast_to(uniform_rule(ideal), rule.shape)
    rules = {"new": rule, "logged": behaviour_rule(log), "random": random}
    if not np.isneginf(ideal.log_transition).any():
        rules["FPD_learn"] = first_rule(
            LearnedModel(log, default_prior_count(ideal)), ideal, HORIZON
        )
    return rules


def _support(
    rule: FloatArray,
    support: StateSupport,
    log: TransitionCounts,
    posterior: TransitionPosterior,
    task: Task,
) -> dict[str, Any]:
    """What the rule and its evaluation rest on."""
    visits = task.occupancy(posterior.mean_closed_loop(rule))[:, None] * rule
    seen = log.by_state_action(log.records.astype(np.float64))
    strange = np.flatnonzero((visits.sum(axis=-1) > RARELY) & (seen.sum(axis=-1) == 0))
    known = support.effective > 0
    squares = (support.similarity[known] ** 2 / support.effective[known]).sum()
    total = support.similarity.sum()
    return {
        "records": log.num_records,
        "similarity": float(total),
        "effective": float(total**2 / squares) if squares > 0 else 0.0,
        f"visits_seen_{OFTEN}_times": float(visits[seen >= OFTEN].sum()),
        "states_by_extrapolation": [
            key_of(log.states.labels[i]) for i in np.setdiff1d(strange, log.terminal).tolist()
        ],
    }
