"""Similarity: how well a past transition serves today's goal.

The similarity of a record is the probability that the current ideal gives to it. Where the goals behind past logs are
known as well, each log also gets a weight per state that falls with the divergence of its goal from today's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pastwise._numerics.arrays import FloatArray, Indices, where_first
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel

Similarity = Callable[[IdealModel, Indices, Indices, Indices], FloatArray]
"""From an ideal and transitions (state, action, next_state) of one shape to weights of that shape."""

Divergence = Callable[[IdealModel, IdealModel], FloatArray]
"""From a past ideal and the current one to a number per state, [S] or broadcastable; never negative."""


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
    """Probability of the transition under the ideal, relative to that of the most desired transition.

    Paper: Definition 6 [def:similarity_norm], Eq. (4) [eq:similarity_norm].
    """
    log_joint = ideal.log_joint(state, action, next_state)
    peak = ideal.log_peak.reshape(
        ideal.log_peak.shape + (1,) * (log_joint.ndim - ideal.log_peak.ndim)
    )
    return np.exp(log_joint - peak)


def kl_divergence(past_ideal: IdealModel, ideal: IdealModel) -> FloatArray:
    """Kullback-Leibler divergence D(past_ideal(. | s) || ideal(. | s)) over actions and next states: [1 or S].

    Infinite where the past wanted something that today's goal rules out.
    """
    if not (past_ideal.normalised and ideal.normalised):
        raise ValueError(
            "the divergence of an ideal made from a reward is not defined: it is not a distribution"
        )
    sizes = [(goal.num_states, goal.num_actions) for goal in (past_ideal, ideal)]
    if sizes[0] != sizes[1]:
        raise ValueError(
            f"goals over {sizes[0]} and {sizes[1]} states and actions cannot be compared"
        )
    shape = np.broadcast_shapes(past_ideal.log_transition.shape, ideal.log_transition.shape)
    require_memory("the divergence of these goals", shape, "compare goals over next states")
    over_next = _relative(past_ideal.log_transition, ideal.log_transition).sum(axis=-1)
    over_actions = _relative(past_ideal.log_rule, ideal.log_rule)
    wanted = past_ideal.rule > 0
    expected = np.where(wanted, past_ideal.rule * np.where(wanted, over_next, 0.0), 0.0)
    rounded = (over_actions + expected).sum(axis=-1)
    return np.asarray(
        np.maximum(rounded, 0.0)
    )  # of distributions it is never negative; its rounding may be


def _relative(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """``p ln (p / q)``, with 0 ln 0 = 0."""
    present = ~np.isneginf(log_p)
    ratio = np.where(present, log_p, 0.0) - np.where(present, log_q, 0.0)
    return np.where(present, np.exp(log_p) * ratio, 0.0)


def task_weight(
    past_ideal: IdealModel, ideal: IdealModel, divergence: Divergence = kl_divergence
) -> FloatArray:
    """Weight of a past task whose goal is known: exp(-D(past_ideal(. | s) || ideal(. | s))), [S].

    It is multiplied into the similarity of the task's records. One for the same goal, smaller the further the goals
    lie apart.
    """
    distance = np.broadcast_to(
        np.asarray(divergence(past_ideal, ideal), dtype=np.float64), (ideal.num_states,)
    )
    wrong = ~(distance >= 0)
    if wrong.any():
        state = where_first(wrong)[0]
        raise ValueError(
            f"the divergence in state {state} is {distance[state]}; a divergence is never negative"
        )
    return np.exp(-distance)


def weigh_tasks(
    tasks: Iterable[tuple[TransitionCounts, IdealModel | None]],
    ideal: IdealModel,
    divergence: Divergence = kl_divergence,
) -> TransitionCounts:
    """One set of counts out of several past tasks, each weighted by how near its goal was to today's.

    A task whose goal is not known (None) keeps its weight.
    """
    given = list(tasks)
    if not given:
        raise ValueError("no past task was given")
    first = given[0][0]
    for counts, _ in given:
        if (counts.states, counts.actions) != (first.states, first.actions):
            raise ValueError(
                "the tasks' counts are over different labels; relabel them to common ones first"
            )
        if (len(counts.states), len(counts.actions)) != (ideal.num_states, ideal.num_actions):
            raise ValueError(
                f"the goal is over {ideal.num_states} states and {ideal.num_actions} actions, a task is not"
            )
    weighted = [
        counts if past is None else counts.scale(task_weight(past, ideal, divergence)[counts.state])
        for counts, past in given
    ]
    return sum(weighted[1:], start=weighted[0])
