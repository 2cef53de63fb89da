"""Dirichlet posteriors: what the weighted log says of the closed loop, and so of the decision rule.

The unknown closed loop p(next_state, action | state, theta) = theta[state, action, next_state] has, for each state, a
Dirichlet prior with counts nu_0. Under the weighted Bayes rule a record of weight w multiplies the density by
theta^w, so the posterior is Dirichlet again with

    concentration V = nu_0 + sum of the weights of the records of that transition.

Its mean is the predictive closed loop, V / sum V; summed over next states it is the learned decision rule, for which
evidence[state, action], the total weight of the records with that state and action, is all that needs to be kept.

Paper: Section III-B, Eqs. (5)-(10).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln, xlogy

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    broadcast,
    group_sum,
    normalise,
    where_first,
)
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel, entries
from pastwise.theory.similarity import Similarity, normalised_similarity

REWARD_PRIOR = 0.01
"""Prior weight of a state, in records that serve the goal perfectly, where the ideal comes from a reward."""


def default_prior_count(ideal: IdealModel) -> float:
    """Prior count nu_0 of every (state, action, next_state): min ideal(next_state, action | state) / S.

    Where the ideal has zeros, its smallest positive value takes the minimum's place. The values of an unnormalised
    ideal (one made from a reward) have no such scale: there the prior of a state weighs a hundredth of one record
    that serves the goal perfectly.

    Paper: the choice of nu_0 in Section IV.
    """
    if not ideal.normalised:
        return REWARD_PRIOR / (ideal.num_states * ideal.num_actions)
    count = float(np.exp(ideal.log_floor.min()) / ideal.num_states)
    if count == 0:
        raise ValueError(
            "the smallest probability of the goal is too small for a prior count; give prior_count"
        )
    return count


def prior_concentration(ideal: IdealModel, prior_count: ArrayLike | None = None) -> FloatArray:
    """Prior concentration of (state, action), summed over next states: [1 or S, A], zero where not allowed.

    Parameters
    ----------
    prior_count : scalar, or a table broadcastable to [S, A, S], optional
        nu_0; `default_prior_count` if absent.

    Paper: Eq. (7) [eq:dirichlet_prior], summed as Eq. (10) needs it.
    """
    nu = np.asarray(
        default_prior_count(ideal) if prior_count is None else prior_count, dtype=np.float64
    )
    bad = ~(np.isfinite(nu) & (nu > 0))
    if bad.any():
        where = list(where_first(bad))
        raise ValueError(
            f"prior_count{where or ''} is {nu[tuple(where)]}; prior counts must be finite and positive"
        )
    S, A = ideal.num_states, ideal.num_actions
    if nu.ndim == 0:
        table = np.full((1, A), nu * S)
    else:
        states = nu.shape[-3] if nu.ndim > 2 else 1
        full = broadcast("prior_count", nu, (S if states > 1 else 1, A, S))
        table = full[..., 0] * S if nu.shape[-1] == 1 else full.sum(axis=-1)
    return np.where(ideal.allowed, table, 0.0)


def require_same_sizes(counts: TransitionCounts, ideal: IdealModel) -> None:
    """Refuse a goal over other numbers of states and actions than the log's."""
    sizes = (len(counts.states), len(counts.actions))
    if sizes != (ideal.num_states, ideal.num_actions):
        raise ValueError(
            f"the goal is over {ideal.num_states} states and {ideal.num_actions} actions, "
            f"the log over {sizes[0]} states and {sizes[1]} actions"
        )


def similarity_of(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> FloatArray:
    """Similarity of each distinct transition, zero where its action is not allowed: [..., distinct]."""
    require_same_sizes(counts, ideal)
    each = similarity(ideal, counts.state, counts.action, counts.next_state)
    return (
        each if ideal.allowed.all() else each * entries(ideal.allowed, counts.state, counts.action)
    )


def transition_weight(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> FloatArray:
    """Total weight of the records of each distinct transition: [..., distinct]."""
    return counts.weight * similarity_of(counts, ideal, similarity)


def gather_evidence(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> FloatArray:
    """Total weight of the past records of each state and action: [..., S, A].

    Paper: the sums over records in Eq. (10) [eq:estimated_dec_rule].
    """
    return counts.by_state_action(transition_weight(counts, ideal, similarity))


def row_evidence(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> float:
    """Total weight of the records of a single state and action, added up as `gather_evidence` does."""
    weight = transition_weight(counts, ideal, similarity)
    return float(np.add.reduceat(weight, [0])[0]) if len(weight) else 0.0


def learned_rule(evidence: FloatArray, prior: FloatArray) -> FloatArray:
    """Decision rule expected under the similarity-weighted Dirichlet posterior.

    Parameters
    ----------
    evidence : [..., state, action]
        Total similarity of the past records with that state and action.
    prior : broadcastable to [state, action]
        Prior concentration, summed over next states; zero where an action is forbidden.

    Returns
    -------
    [..., state, action], each row a distribution. A state without records gets the prior's rule.

    Paper: Eq. (9) [eq:estimated_opt_dec_rule_theory] in the form of Eq. (10) [eq:estimated_dec_rule].
    """
    return normalise(evidence + prior)


def concentration(
    counts: TransitionCounts, weight: FloatArray, prior_count: ArrayLike
) -> FloatArray:
    """Posterior concentration V from all records at once: [..., S, A, S].

    Parameters
    ----------
    weight : [distinct]
        Total weight of each distinct transition, as `transition_weight` gives it.
    prior_count : broadcastable to [S, A, S]

    Paper: Eq. (8) [eq:posterior], by the weighted Bayes rule, Eq. (6) [eq:weighted_bayes].
    """
    shape = (*counts.shape, len(counts.states), len(counts.actions), len(counts.states))
    require_memory(
        "the whole posterior", shape, "gather_evidence gives all that the learned rule needs"
    )
    return group_sum(counts.key, weight, prod(shape)).reshape(shape) + np.asarray(
        prior_count, dtype=np.float64
    )


def updated_concentration(
    previous: FloatArray, state: IntArray, action: IntArray, next_state: IntArray, weight: float
) -> FloatArray:
    """Posterior concentration after one more record: the recursion V_tau = weight at the record + V_(tau-1).

    Paper: Eq. (8) [eq:posterior], its recursive form.
    """
    V = previous.copy()
    V[..., state, action, next_state] += weight
    return V


def log_density(theta: FloatArray, concentration: FloatArray) -> FloatArray:
    """Ln of the product over states of Dirichlet densities: theta, concentration [..., S, A, S] -> [...].

    Paper: Eq. (7) [eq:dirichlet_prior] with the prior counts, Eq. (8) [eq:posterior] with the posterior ones.
    """
    per_state = (*concentration.shape[:-2], -1)
    V, points = concentration.reshape(per_state), theta.reshape(per_state)
    constant = gammaln(V.sum(axis=-1)) - gammaln(V).sum(axis=-1)
    return np.asarray((constant + xlogy(V - 1, points).sum(axis=-1)).sum(axis=-1))


def predictive(concentration: FloatArray) -> FloatArray:
    """The closed loop expected under the posterior, p(next_state, action | state, log): [..., S, A, S].

    Paper: Eq. (5) [eq:closed-loop_beh_data].
    """
    return np.asarray(concentration / concentration.sum(axis=(-2, -1), keepdims=True))


@dataclass(frozen=True, eq=False)
class StateSupport:
    """What the rule of each state rests on: arrays [..., S].

    Attributes
    ----------
    records : number of records
    similarity : their total similarity, the weight that they carry
    effective : the number of equally similar records that would tell as much, (sum w)^2 / sum w^2; 0 without records
    prior_share : the part of the rule that is the prior's
    """

    records: FloatArray
    similarity: FloatArray
    effective: FloatArray
    prior_share: FloatArray


def state_support(
    counts: TransitionCounts,
    ideal: IdealModel,
    prior: FloatArray,
    similarity: Similarity = normalised_similarity,
) -> StateSupport:
    """What the learned rule of each state rests on.

    Twenty useless records have an effective number of 20 and a total similarity of next to nothing: trust goes by the
    latter.
    """
    each = similarity_of(counts, ideal, similarity)
    records, total, squares = (
        counts.by_state_action(values).sum(axis=-1)
        for values in (
            counts.records.astype(np.float64),
            counts.weight * each,
            counts.weight_squared * each**2,
        )
    )
    effective = np.where(squares > 0, total**2 / np.where(squares > 0, squares, 1.0), 0.0)
    prior_total = np.broadcast_to(prior.sum(axis=-1), total.shape)
    return StateSupport(records, total, effective, prior_total / (total + prior_total))


def rule_interval(
    evidence: FloatArray, prior: FloatArray, level: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Central interval of each probability of the rule under the similarity-weighted posterior: low, high [..., S, A].

    The marginal of a Dirichlet distribution is a Beta distribution. It is not a calibrated interval of anything
    physical: its weights say how well records serve a goal, not how often something happens. It tells how much the
    rule would move with other records of the same total similarity.
    """
    V = evidence + prior
    rest = V.sum(axis=-1, keepdims=True) - V
    low, high = ((1 - level) / 2, (1 + level) / 2)
    possible, certain = V > 0, rest <= 0
    a, b = np.where(possible, V, 1.0), np.where(certain, 1.0, rest)
    bounds = (
        np.where(certain, 1.0, np.where(possible, betaincinv(a, b, q), 0.0)) for q in (low, high)
    )
    return next(bounds), next(bounds)
