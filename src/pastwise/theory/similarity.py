"""Similarity: how well a past transition serves the current goal.

A record (state, action, next_state) of the past is as useful as the current ideal finds it likely,

    similarity            = ideal(next_state, action | state)
    normalised similarity = ideal(next_state, action | state) / max ideal,

where the maximum is over all transitions, so that the most preferred one has similarity 1. The
similarity depends on nothing but the transition: a log of any length needs it once for each
distinct transition.

Where the goal behind a past log is known too, the log gets a weight per state that falls with the
divergence D of that goal from the current one,

    task weight(state) = exp(-D(past_ideal(. | state) || ideal(. | state))),

which multiplies the similarity of its records.

Paper: Definition 5 [def:similarity], Eq. (3) [eq:similarity]; Definition 6 [def:similarity_norm],
Eq. (4) [eq:similarity_norm]. Task weights elaborate the remark below Definition 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pastwise._numerics.arrays import FloatArray, Indices, where_first
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.errors import GoalError, ParameterError
from pastwise.goals.ideal import IdealModel

Similarity = Callable[[IdealModel, Indices, Indices, Indices], FloatArray]
"""From an ideal and transitions (state, action, next_state) of one shape to weights of it."""

Divergence = Callable[[IdealModel, IdealModel], FloatArray]
"""From a past ideal and the current one to a non-negative number per state, [1 or S]."""


def plain_similarity(
    ideal: IdealModel, state: Indices, action: Indices, next_state: Indices
) -> FloatArray:
    """Probability of the transition under the ideal.

    Paper: Definition 5 [def:similarity], Eq. (3) [eq:similarity].
    """
    return np.exp(ideal.log_joint(state, action, next_state))


def normalised_similarity(
    ideal: IdealModel, state: Indices, action: Indices, next_state: Indices
) -> FloatArray:
    """Probability of the transition under the ideal, relative to the most preferred transition.

    Paper: Definition 6 [def:similarity_norm], Eq. (4) [eq:similarity_norm].
    """
    log_joint = ideal.log_joint(state, action, next_state)
    goal_axes = ideal.log_peak.shape
    record_axes = log_joint.ndim - len(goal_axes)
    log_peak = ideal.log_peak.reshape(goal_axes + (1,) * record_axes)
    return np.exp(log_joint - log_peak)


def kl_divergence(past_ideal: IdealModel, ideal: IdealModel) -> FloatArray:
    """Kullback-Leibler divergence of two goals over actions and next states: [1 or S].

    ``D(past_ideal(. | state) || ideal(. | state))``; infinite where the past goal gives
    probability to what the current one rules out.
    """
    if not (past_ideal.normalised and ideal.normalised):
        raise GoalError(
            "the divergence of an ideal made from a reward is not defined: it is not a "
            "distribution; state both goals as probabilities, or leave out the past one"
        )
    past_sizes = (past_ideal.num_states, past_ideal.num_actions)
    sizes = (ideal.num_states, ideal.num_actions)
    if past_sizes != sizes:
        raise GoalError(
            f"goals over {past_sizes} and {sizes} states and actions cannot be compared; "
            "use the same states and actions for both"
        )
    shape = np.broadcast_shapes(past_ideal.log_transition.shape, ideal.log_transition.shape)
    require_memory("the divergence of these goals", shape, "compare goals over next states")

    # Chain rule: the divergence of the rules, plus the expected divergence of the next states.
    of_rules = _relative_entropy_terms(past_ideal.log_rule, ideal.log_rule)
    of_next_states = _relative_entropy_terms(past_ideal.log_transition, ideal.log_transition).sum(
        axis=-1
    )
    taken = past_ideal.rule > 0
    expected = np.where(taken, past_ideal.rule * np.where(taken, of_next_states, 0.0), 0.0)
    total = (of_rules + expected).sum(axis=-1)

    # A divergence is never negative; its rounding error may be.
    return np.asarray(np.maximum(total, 0.0))


def _relative_entropy_terms(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """``p ln (p / q)`` of each entry, with 0 ln 0 = 0."""
    positive = ~np.isneginf(log_p)
    log_ratio = np.where(positive, log_p, 0.0) - np.where(positive, log_q, 0.0)
    return np.where(positive, np.exp(log_p) * log_ratio, 0.0)


def task_weight(
    past_ideal: IdealModel, ideal: IdealModel, divergence: Divergence = kl_divergence
) -> FloatArray:
    """Weight of a past task whose goal is known: exp(-divergence), [S].

    It multiplies the similarity of the task's records: one for the same goal, smaller the further
    the goals lie apart.
    """
    distance = np.asarray(divergence(past_ideal, ideal), dtype=np.float64)
    distance = np.broadcast_to(distance, (ideal.num_states,))
    invalid = ~(distance >= 0)
    if invalid.any():
        state = where_first(invalid)[0]
        raise ParameterError(
            f"the divergence in state {state} is {distance[state]}; a divergence is never negative"
        )
    return np.exp(-distance)


def weigh_tasks(
    tasks: Iterable[tuple[TransitionCounts, IdealModel | None]],
    ideal: IdealModel,
    divergence: Divergence = kl_divergence,
) -> TransitionCounts:
    """Merge the counts of several past tasks, each weighted by `task_weight`.

    A task whose goal is unknown (None) keeps its weight.
    """
    given = list(tasks)
    if not given:
        raise ParameterError("no past task was given; pass at least one pair (counts, goal)")
    first, _ = given[0]
    weighted = []
    for counts, past_ideal in given:
        if (counts.states, counts.actions) != (first.states, first.actions):
            raise ParameterError(
                "the tasks' counts are over different labels; relabel them to common ones first"
            )
        if (len(counts.states), len(counts.actions)) != (ideal.num_states, ideal.num_actions):
            raise GoalError(
                f"the goal is over {ideal.num_states} states and {ideal.num_actions} actions, "
                "a task is not; use the same states and actions for all"
            )
        if past_ideal is None:
            weighted.append(counts)
        else:
            weight = task_weight(past_ideal, ideal, divergence)
            weighted.append(counts.scale(weight[counts.state]))
    return sum(weighted[1:], start=weighted[0])
