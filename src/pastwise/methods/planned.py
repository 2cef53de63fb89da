"""The ways from a log to a rule that a user may name, and what each can say of its reasons.

TL is the paper's; its rule adds up from single records, so it can be updated at once and taken apart into them. The
other methods look at the whole log, and answer with a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.methods.foresight import Pessimism, TLForesight
from pastwise.models.learned import LearnedModel
from pastwise.theory.closed_loop import uniform_rule
from pastwise.theory.exploration import EpsilonGreedy, Gate
from pastwise.theory.fpd import first_rule, require_feasible
from pastwise.theory.learning import (
    default_prior_count,
    gather_evidence,
    learned_rule,
    prior_concentration,
)
from pastwise.theory.similarity import Similarity

HORIZON = 10
"""Epochs that FPD_learn designs for, as in the paper."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A rule, and what its actions were weighed by; without parts where that is similarity alone.

    Attributes
    ----------
    rule : [S, A]
    value, attitude, example : [S, A], optional
        What is foreseen of each action; what the doubt of it, and the past's example, add to that.
    exploring : float
        Share of the uniform rule in it, for the sake of exploration.
    """

    rule: FloatArray
    value: FloatArray | None = None
    attitude: FloatArray | None = None
    example: FloatArray | None = None
    exploring: float = 0.0


def _tl(
    counts: TransitionCounts, ideal: IdealModel, prior_count: float | None, similarity: Similarity
) -> Planned:
    evidence = gather_evidence(counts, ideal, similarity)
    return Planned(learned_rule(evidence, prior_concentration(ideal, prior_count)))


def _tl_explore(
    counts: TransitionCounts, ideal: IdealModel, prior_count: float | None, similarity: Similarity
) -> Planned:
    """The gate is judged by the whole log: counts forget which records came last."""
    evidence = gather_evidence(counts, ideal, similarity)
    rule, total = (
        learned_rule(evidence, prior_concentration(ideal, prior_count)),
        counts.weight.sum(),
    )
    if total and evidence.sum() / total >= Gate().threshold:
        return Planned(rule)
    epsilon = EpsilonGreedy().epsilon
    return Planned((1 - epsilon) * rule + epsilon * uniform_rule(ideal), exploring=epsilon)


def _fpd_learn(
    counts: TransitionCounts, ideal: IdealModel, prior_count: float | None, similarity: Similarity
) -> Planned:
    background = default_prior_count(ideal) if prior_count is None else prior_count
    rule = first_rule(LearnedModel(counts, background), ideal, HORIZON)
    require_feasible(rule, np.arange(len(rule)))
    with np.errstate(divide="ignore"):
        wished = np.where(
            ideal.allowed & ideal.normalised, ideal.log_rule, 0.0
        )  # a reward is part of the value
        preference = np.log(rule) - wished
    zeros = np.zeros(rule.shape)
    return Planned(rule, preference - preference.max(axis=-1, keepdims=True), zeros, zeros)


def _tl_foresight(
    counts: TransitionCounts, ideal: IdealModel, prior_count: float | None, similarity: Similarity
) -> Planned:
    agent = TLForesight(ideal, Pessimism())
    plan = agent.plan(agent.start(counts))
    return Planned(plan.rule, plan.value, plan.attitude, plan.example)


Way = Callable[[TransitionCounts, IdealModel, float | None, Similarity], Planned]

METHODS: dict[str, Way] = {
    "TL": _tl,
    "TL_explore": _tl_explore,
    "FPD_learn": _fpd_learn,
    "TL_foresight": _tl_foresight,
}
"""Ways to a rule, by the name that a user gives."""


def plan_rule(
    method: str,
    counts: TransitionCounts,
    ideal: IdealModel,
    similarity: Similarity,
    prior_count: float | None = None,
) -> Planned:
    """The rule that a method learns from counts without leading axes."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known are {', '.join(METHODS)}")
    return METHODS[method](counts, ideal, prior_count, similarity)
