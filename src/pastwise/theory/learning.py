"""Bayesian learning of a decision rule from records weighted by their similarity.

Model. The unknown closed loop is p(next_state, action | state, theta) =
theta[state, action, next_state]. For each state, theta has a Dirichlet prior with counts nu_0 > 0,

    p(theta) = product over states of Dirichlet(theta[state]; nu_0[state]).

Weighted Bayes rule. A record with weight w, its similarity, multiplies the density by theta^w,

    p(theta | log) is proportional to p(theta) * product over records of
                                      theta[state, action, next_state]^w,

so the posterior is Dirichlet again, with the concentration

    V[state, action, next_state] = nu_0 + sum of the weights of the records of that transition,

which can be updated record by record, starting from V = nu_0.

Prediction. The closed loop expected under the posterior is its mean,

    p(next_state, action | state, log) = V[state, action, next_state] / sum of V[state].

The learned rule is the sum of this over next states,

    rule(action | state) = (evidence[state, action] + prior[state, action]) / sum over actions,

where evidence[state, action] is the total weight of the records of that state and action, and
prior[state, action] the sum of nu_0 over next states. Evidence, [S, A], is all that TL keeps.

Paper: Eqs. (5) [eq:closed-loop_beh_data], (6) [eq:weighted_bayes], (7) [eq:dirichlet_prior],
(8) [eq:posterior], (9) [eq:estimated_opt_dec_rule_theory], (10) [eq:estimated_dec_rule].
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
    entries,
    group_sum,
    normalise,
    where_first,
)
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.errors import GoalError, ParameterError, shown
from pastwise.goals.ideal import IdealModel
from pastwise.theory.similarity import Similarity, normalised_similarity

# The prior: Eq. (7)


def default_prior_count(ideal: IdealModel, *, reward_prior: float = 0.01) -> float:
    """Prior count nu_0 of every transition: min ideal(next_state, action | state) / S.

    Where the ideal has zeros, its smallest positive value replaces the minimum.

    Paper: the choice of nu_0 for Eq. (7) [eq:dirichlet_prior], in Section IV.

    Parameters
    ----------
    reward_prior : float
        Total prior count of a state where the ideal comes from a reward: such an ideal is not
        normalised, so its values have no scale. The default lets one record of full similarity
        outweigh the prior a hundred times.
    """
    if not ideal.normalised:
        return reward_prior / (ideal.num_states * ideal.num_actions)
    count = float(np.exp(ideal.log_floor.min()) / ideal.num_states)
    if count == 0:
        raise GoalError(
            "the smallest probability of the goal is too small for a prior count; give prior_count"
        )
    return count


def prior_concentration(ideal: IdealModel, prior_count: ArrayLike | None = None) -> FloatArray:
    """Prior concentration of (state, action), summed over next states: [1 or S, A].

    It is zero where an action is not allowed.

    Paper: Eq. (7) [eq:dirichlet_prior], in the sums that Eq. (10) [eq:estimated_dec_rule] needs.

    Parameters
    ----------
    prior_count : scalar, or a table broadcastable to [S, A, S], optional
        nu_0; `default_prior_count` if absent.
    """
    nu = checked_prior_count(default_prior_count(ideal) if prior_count is None else prior_count)
    S = ideal.num_states
    A = ideal.num_actions
    if nu.ndim == 0:
        table = np.full((1, A), nu * S)
    else:
        depends_on_state = nu.ndim > 2 and nu.shape[-3] > 1
        full = broadcast("prior_count", nu, (S if depends_on_state else 1, A, S))
        depends_on_next_state = nu.shape[-1] > 1
        table = full.sum(axis=-1) if depends_on_next_state else full[..., 0] * S
    return np.where(ideal.allowed, table, 0.0)


def checked_prior_count(prior_count: ArrayLike, *, largest: float = 1e12) -> FloatArray:
    """Prior counts as an array, after checking that they are positive.

    The largest is more than the records of any log; sums of such counts stay finite.
    """
    given = np.asarray(prior_count)
    if given.dtype.kind not in "iuf":
        raise ParameterError(
            f"prior_count must be a number up to {largest:g}, not {shown(prior_count)}"
        )
    nu = given.astype(np.float64)
    invalid = ~((nu > 0) & (nu <= largest))
    if invalid.any():
        where = where_first(invalid)
        place = str(list(where)) if where else ""
        raise ParameterError(
            f"prior_count{place} is {nu[where]}; "
            f"prior counts must be positive and at most {largest:g}"
        )
    return nu


# Weights of the records


def require_same_sizes(counts: TransitionCounts, ideal: IdealModel) -> None:
    """Refuse a goal whose numbers of states and actions are not those of the log."""
    num_states = len(counts.states)
    num_actions = len(counts.actions)
    if (num_states, num_actions) != (ideal.num_states, ideal.num_actions):
        raise GoalError(
            f"the goal is over {ideal.num_states} states and {ideal.num_actions} actions, "
            f"the log over {num_states} states and {num_actions} actions; make them equal"
        )


def similarity_of(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> FloatArray:
    """Similarity of each distinct transition: [..., distinct]; zero for actions not allowed."""
    require_same_sizes(counts, ideal)
    each = similarity(ideal, counts.state, counts.action, counts.next_state)
    lowest, highest = np.min(each, initial=0.0), np.max(each, initial=0.0)
    if not (lowest >= 0 and highest < np.inf):
        wrong = highest if lowest >= 0 else lowest
        raise ParameterError(f"a similarity must be finite and not negative, not {wrong:g}")
    if ideal.allowed.all():
        return each
    return each * entries(ideal.allowed, counts.state, counts.action)


def transition_weight(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> FloatArray:
    """Total weight of the records of each distinct transition: [..., distinct]."""
    return counts.weight * similarity_of(counts, ideal, similarity)


# The posterior: Eqs. (6) and (8)


def concentration(
    counts: TransitionCounts, weight: FloatArray, prior_count: ArrayLike
) -> FloatArray:
    """Posterior concentration V from all records at once: [..., S, A, S].

    Paper: Eq. (8) [eq:posterior], by the weighted Bayes rule, Eq. (6) [eq:weighted_bayes].

    Parameters
    ----------
    weight : [distinct]
        Total weight of each distinct transition, as `transition_weight` returns it.
    prior_count : broadcastable to [S, A, S]
    """
    S = len(counts.states)
    A = len(counts.actions)
    shape = (*counts.shape, S, A, S)
    require_memory(
        "the whole posterior", shape, "gather_evidence is all that the learned rule needs"
    )
    total_weight = group_sum(counts.key, weight, prod(shape)).reshape(shape)
    return total_weight + np.asarray(prior_count, dtype=np.float64)


def updated_concentration(
    previous: FloatArray, state: IntArray, action: IntArray, next_state: IntArray, weight: float
) -> FloatArray:
    """Posterior concentration V after one more record: [..., S, A, S].

    Paper: the recursion for V below Eq. (8) [eq:posterior].
    """
    updated = previous.copy()
    updated[..., state, action, next_state] += weight
    return updated


def log_density(theta: FloatArray, concentration: FloatArray) -> FloatArray:
    """Ln of the Dirichlet density, over all states: theta, concentration [..., S, A, S] -> [...].

    Paper: Eq. (7) [eq:dirichlet_prior] with the prior counts, Eq. (8) [eq:posterior] with the
    posterior concentration.
    """
    by_state = (*concentration.shape[:-2], -1)
    V = concentration.reshape(by_state)
    point = theta.reshape(by_state)
    log_normaliser = gammaln(V.sum(axis=-1)) - gammaln(V).sum(axis=-1)
    log_kernel = xlogy(V - 1, point).sum(axis=-1)
    return np.asarray((log_normaliser + log_kernel).sum(axis=-1))


# The closed loop and the rule expected under it: Eqs. (5), (9) and (10)


def predictive(concentration: FloatArray) -> FloatArray:
    """Closed loop expected under the posterior, p(next_state, action | state, log): [..., S, A, S].

    Paper: Eq. (5) [eq:closed-loop_beh_data].
    """
    return np.asarray(concentration / concentration.sum(axis=(-2, -1), keepdims=True))


def gather_evidence(
    counts: TransitionCounts, ideal: IdealModel, similarity: Similarity = normalised_similarity
) -> FloatArray:
    """Total weight of the past records of each state and action: [..., S, A].

    Paper: the sums over records in Eq. (10) [eq:estimated_dec_rule].
    """
    return counts.by_state_action(transition_weight(counts, ideal, similarity))


def learned_rule(evidence: FloatArray, prior: FloatArray) -> FloatArray:
    """Decision rule expected under the similarity-weighted Dirichlet posterior: [..., S, A].

    Each row is a distribution. A state without records gets the rule of the prior.

    Paper: Eq. (9) [eq:estimated_opt_dec_rule_theory], in the form of
    Eq. (10) [eq:estimated_dec_rule].

    Parameters
    ----------
    evidence : [..., S, A]
        Total similarity of the past records with that state and action.
    prior : broadcastable to [S, A]
        Prior concentration, summed over next states; zero where an action is forbidden.
    """
    return normalise(evidence + prior)


# How much data supports the rule


@dataclass(frozen=True, eq=False)
class StateSupport:
    """The data behind the rule of each state: arrays [..., S].

    Attributes
    ----------
    records : number of records
    similarity : their total similarity, the weight that they carry
    effective : number of equally similar records with the same variance, (sum w)^2 / sum w^2;
        0 without records
    prior_share : the part of the rule that comes from the prior
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
    """The data behind the learned rule of each state.

    Twenty useless records have an effective number of 20 and a total similarity near 0: judge the
    rule by the latter.
    """
    # Sums over the records of each state.
    each = similarity_of(counts, ideal, similarity)
    records = counts.by_state_action(counts.records.astype(np.float64)).sum(axis=-1)
    total = counts.by_state_action(counts.weight * each).sum(axis=-1)
    squares = counts.by_state_action(counts.weight_squared * each**2).sum(axis=-1)

    # Effective number of records, and the share of the prior.
    positive = squares > 0
    effective = np.where(positive, total**2 / np.where(positive, squares, 1.0), 0.0)
    prior_total = np.broadcast_to(prior.sum(axis=-1), total.shape)
    prior_share = prior_total / (total + prior_total)
    return StateSupport(records, total, effective, prior_share)


def rule_interval(
    evidence: FloatArray, prior: FloatArray, level: float = 0.9
) -> tuple[FloatArray, FloatArray]:
    """Central interval of each probability of the rule: low and high, [..., S, A].

    The marginals of the similarity-weighted Dirichlet posterior are Beta distributions. The
    interval shows how far the rule would move with other records of the same total similarity. It
    is not a calibrated interval of a physical quantity: its weights express how well records serve
    a goal, not how often something happens.
    """
    V = evidence + prior
    others = V.sum(axis=-1, keepdims=True) - V
    possible = V > 0
    certain = others <= 0

    # Beta(V, others), with valid stand-ins where the probability is exactly 0 or 1.
    a = np.where(possible, V, 1.0)
    b = np.where(certain, 1.0, others)

    def quantile(share: float) -> FloatArray:
        inside = np.where(possible, betaincinv(a, b, share), 0.0)
        return np.where(certain, 1.0, inside)

    low = quantile((1 - level) / 2)
    high = quantile((1 + level) / 2)
    return low, high
