r"""What others learn from the same counts: plain NumPy, a few lines each.

Every learner is a function from a log to a rule [S, A]. The log is a tensor of counts [S, A, S];
the goal is a score [S], collected on arrival; an episode ends in a terminal state. With the
estimate :math:`\hat p` of the transitions by shares of the records, uniform in rows without any,
the learners maximise

.. math::

    Q(s, a) = \sum_{s'} \hat p(s' \mid s, a) \, [u(s') + \gamma \, (s' \text{ goes on}) V(s')]

and differ in which rules they allow:

`certainty_equivalence`
    All. The rule that is best if the estimate were the truth.
`spibb`
    Those that keep the past's probability of every action with few records (Laroche, Trichelair and
    Tachet des Combes 2019, Pi_b-SPIBB).
`soft_spibb`
    Those that move probability away from the past's only as far as a budget of estimation errors
    allows (Nadjahi, Laroche and Tachet des Combes 2019, Approx-Soft-SPIBB).
`posterior_sampling`
    All, in a model that is sampled from the Dirichlet posterior instead of the estimate (Strens
    2000; Osband, Russo and Van Roy 2013).
`fitted_q_iteration`
    All, with Q as a forest of extra trees on the index of the state and the action (Ernst, Geurts
    and Wehenkel 2005): a row without records takes its value from similar ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, group_sum, normalise

Improve = Callable[[FloatArray], FloatArray]
"""From action values [S, A] to the best rule [S, A] of those that a learner allows."""

DISCOUNT = 0.999
"""Of a score one epoch later, for runs of about a thousand epochs."""

TIE = 1e-9
"""Action values that differ by less are equal."""


# Shared steps.


def estimated_transition(counts: FloatArray) -> FloatArray:
    """Shares of the records, uniform in rows without any: [S, A, S]."""
    is_seen = counts.sum(axis=-1, keepdims=True) > 0
    return normalise(np.where(is_seen, counts, 1.0))


def estimated_behaviour(counts: FloatArray) -> FloatArray:
    """The past's rule by shares of the records, uniform in states without any: [S, A]."""
    records = counts.sum(axis=-1)
    is_seen = records.sum(axis=-1, keepdims=True) > 0
    return normalise(np.where(is_seen, records, 1.0))


def greedy(action_values: FloatArray) -> FloatArray:
    """The best action of every state; equally good ones share its probability: [S, A]."""
    best = action_values.max(axis=-1, keepdims=True)
    return normalise((action_values >= best - TIE).astype(np.float64))


def action_values_of(
    rule: FloatArray, transition: FloatArray, score: FloatArray, terminal: IntArray, discount: float
) -> FloatArray:
    """Exact discounted value of each action, followed by a rule: [S, A]."""
    num_states = len(score)
    goes_on = ~np.isin(np.arange(num_states), terminal)
    closed_loop = np.einsum("sa,san->sn", rule, transition, optimize=True)
    equations = np.eye(num_states) - discount * closed_loop * goes_on
    value = np.linalg.solve(equations, closed_loop @ score)
    return np.asarray(transition @ (score + discount * goes_on * value))


def policy_iteration(
    transition: FloatArray,
    score: FloatArray,
    terminal: IntArray,
    discount: float,
    improve: Improve = greedy,
    max_rounds: int = 100,
) -> FloatArray:
    """Improve a rule until it stays the same: [S, A].

    Parameters
    ----------
    max_rounds : int
        Enough for every log of the benchmark; a guard against rules that alternate.
    """
    rule = improve(np.zeros(transition.shape[:2]))
    for _ in range(max_rounds):
        action_values = action_values_of(rule, transition, score, terminal, discount)
        improved = improve(action_values)
        if np.allclose(improved, rule, rtol=0.0, atol=1e-9):
            break
        rule = improved
    return rule


# The learners.


def certainty_equivalence(
    counts: FloatArray, score: FloatArray, terminal: IntArray, discount: float
) -> FloatArray:
    """The best rule of the estimated model: [S, A]."""
    return policy_iteration(estimated_transition(counts), score, terminal, discount)


def spibb(
    counts: FloatArray,
    score: FloatArray,
    terminal: IntArray,
    discount: float,
    min_records: float = 2.0,
) -> FloatArray:
    """The best rule that keeps the past's probabilities where there are few records: [S, A].

    Parameters
    ----------
    min_records : float
        An action with fewer records keeps its probability. Of 2, 5 and 20, the best one on the
        families to choose on.
    """
    behaviour = estimated_behaviour(counts)
    is_trusted = counts.sum(axis=-1) >= min_records
    kept = np.where(is_trusted, 0.0, behaviour)
    free = 1.0 - kept.sum(axis=-1, keepdims=True)

    def improve(action_values: FloatArray) -> FloatArray:
        among_trusted = np.where(is_trusted, action_values, -np.inf)
        has_trusted = is_trusted.any(axis=-1, keepdims=True)
        best = greedy(np.where(has_trusted, among_trusted, action_values))
        return np.where(has_trusted, kept + free * best, behaviour)

    return policy_iteration(estimated_transition(counts), score, terminal, discount, improve)


def soft_spibb(
    counts: FloatArray,
    score: FloatArray,
    terminal: IntArray,
    discount: float,
    budget: float = 2.0,
) -> FloatArray:
    """The best rule whose distance from the past's, weighted by errors, has a bound: [S, A].

    Parameters
    ----------
    budget : float
        Bound of the sum of error(s, a) times the change of probability, in every state; the error
        is 1 / sqrt(records). Of 0.5, 1, 2 and 4, which hardly differ, one of the best on the
        families to choose on.
    """
    behaviour = estimated_behaviour(counts)
    error = 1.0 / np.sqrt(np.maximum(counts.sum(axis=-1), 1e-12))
    state = np.arange(len(counts))

    def improve(action_values: FloatArray) -> FloatArray:
        rule = behaviour.copy()
        left = np.full(len(state), budget)

        # Probability goes from the worst actions to where it gains most for its error.
        for worst in np.argsort(action_values, axis=-1).T:
            gain = action_values - action_values[state, worst][:, None]
            best = (gain / error).argmax(axis=-1)
            price = error[state, worst] + error[state, best]
            moved = np.minimum(rule[state, worst], left / price)
            moved = np.where(gain[state, best] > 0, moved, 0.0)
            rule[state, worst] -= moved
            rule[state, best] += moved
            left = np.maximum(left - moved * price, 0.0)
        return rule

    return policy_iteration(estimated_transition(counts), score, terminal, discount, improve)


def posterior_sampling(
    counts: FloatArray,
    score: FloatArray,
    terminal: IntArray,
    discount: float,
    rng: np.random.Generator,
    prior_records: float = 1.0,
) -> FloatArray:
    """The best rule of a model that is sampled from the posterior: [S, A].

    Parameters
    ----------
    prior_records : float
        Records that the prior of a row amounts to, spread over all next states. Of 1, 2 and the
        number of states, the best one on the families to choose on.
    """
    num_states = counts.shape[-1]
    weight = rng.standard_gamma(counts + prior_records / num_states)
    return policy_iteration(normalise(weight), score, terminal, discount)


def fitted_q_iteration(
    counts: FloatArray,
    score: FloatArray,
    terminal: IntArray,
    discount: float,
    rng: np.random.Generator,
    growths: int = 10,
    trees: int = 20,
    tolerance: float = 1e-6,
    max_sweeps: int = 2000,
) -> FloatArray:
    """The greedy rule of a forest that is fitted to its own targets, again and again: [S, A].

    The records of a state and action enter as one example with their mean target and their number
    as its weight, which fits the same trees as single records do.

    Parameters
    ----------
    growths : int
        Times that the forest is grown anew. Then the trees stay and only their leaves change, so
        that the values settle, as the authors advise.
    trees : int
        Trees of the forest; more are slower and change little.
    tolerance, max_sweeps : float, int
        The values have settled when none changes by more, or after so many sweeps.
    """
    from sklearn.ensemble import ExtraTreesRegressor

    num_states, num_actions = counts.shape[:2]
    transition = estimated_transition(counts)
    goes_on = ~np.isin(np.arange(num_states), terminal)
    records = counts.sum(axis=-1).ravel()
    is_seen = records > 0
    if not is_seen.any():
        return estimated_behaviour(counts)

    def target_of(action_values: FloatArray) -> FloatArray:
        value = action_values.reshape(num_states, num_actions).max(axis=-1)
        target = transition @ (score + discount * goes_on * value)
        return np.asarray(target.ravel()[is_seen])

    # The state as its index, the action as one of A inputs.
    state = np.repeat(np.arange(num_states), num_actions)
    action = np.tile(np.eye(num_actions), (num_states, 1))
    inputs = np.column_stack([state, action])

    # Grow the forest on the targets of the one before.
    action_values = np.zeros(len(inputs))
    for _ in range(growths):
        forest = ExtraTreesRegressor(trees, random_state=int(rng.integers(2**31)))
        forest.fit(inputs[is_seen], target_of(action_values), sample_weight=records[is_seen])
        action_values = forest.predict(inputs)

    # The leaf of every input in every tree, and the mean target of every leaf.
    leaf = forest.apply(inputs)
    num_leaves = int(leaf.max()) + 1
    leaf = leaf + num_leaves * np.arange(trees)
    weight = np.repeat(records[is_seen], trees)
    seen_leaf = leaf[is_seen].ravel()
    leaf_weight = np.maximum(group_sum(seen_leaf, weight, num_leaves * trees), 1.0)
    for _ in range(max_sweeps):
        target = np.repeat(target_of(action_values), trees)
        leaf_mean = group_sum(seen_leaf, weight * target, num_leaves * trees) / leaf_weight
        settled = leaf_mean[leaf].mean(axis=-1)
        change = np.abs(settled - action_values).max()
        action_values = settled
        if change < tolerance:
            break
    return greedy(action_values.reshape(num_states, num_actions))
