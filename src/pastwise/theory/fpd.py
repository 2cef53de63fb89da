"""Fully Probabilistic Design: the policy whose closed loop is nearest to the ideal one.

The problem. Over a horizon of H epochs, choose the rules that minimise the Kullback-Leibler
divergence of the closed loop from the ideal,

    D(p || ideal) = E[sum over epochs of ln (transition * rule / (ideal.transition * ideal.rule))].

The solution. From gamma = 1 after the last epoch, backward over the epochs,

    alpha(state, action) = sum over next states of transition * ln (transition / ideal.transition)
    beta(state, action)  = -sum over next states of transition * ln gamma(next_state)
    gamma(state)         = sum over actions of ideal.rule * exp(-alpha - beta)
    rule(action | state) = ideal.rule * exp(-alpha - beta) / gamma(state),

and -ln gamma(state) of the first epoch is the smallest divergence attainable from that state.

`theorem_1` is this recursion in plain NumPy, for one system and one goal. It is the specification;
tests compare everything else with it. `design` computes the same for any `TransitionModel`, for
batches of systems and goals, in compiled code:

    design, first_rule    compute ln ideal.rule - alpha and allocate the results;
    TransitionModel.plan  runs the recursion: one compiled loop over the entries of sparse rows
                          (`kernels.plan`), or one BLAS product per epoch for large dense models;
    kernels.softmax_rule  finishes an epoch: from E[ln gamma(next_state)] to the rule and ln gamma.

Zeros. A zero in the ideal forbids: an action that may lead to it gets probability exactly 0. A
state without a feasible action has ln gamma = -inf and a rule of zeros; that is an error only when
its rule is requested.

Rewards. Minus the divergence is the expected total of a reward, as in a Markov decision process:

    reward(state, action, next_state) = -ln (transition * rule / (ideal.transition * ideal.rule)).

Paper: Definition 4 [def:FPD_opt_dec], Theorem 1 [th:solution_FPD],
Eq. (2) [eq:closed-loop_factoris].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    broadcast,
    fold,
    frozen,
    linear_expectation,
    log,
    where_first,
    xlogx,
)
from pastwise._numerics.checks import checked_probabilities, require_memory, require_whole_number
from pastwise.errors import InfeasibleError, ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.rows import require_systems_last


def theorem_1(
    transition: FloatArray, ideal_transition: ArrayLike, ideal_rule: ArrayLike, horizon: int
) -> tuple[FloatArray, FloatArray]:
    """Optimal policy [H, S, A] and ln gamma [H + 1, S] of one system and one goal.

    Paper: Theorem 1 [th:solution_FPD].

    Parameters
    ----------
    transition : [S, A, S]
    ideal_transition : broadcastable to [S, A, S]
    ideal_rule : broadcastable to [H, S, A]
        A zero forbids an action; rows need not sum to one.
    """
    S, A, _ = transition.shape
    log_ideal_transition = log(np.broadcast_to(ideal_transition, (S, A, S)))
    log_ideal_rule = log(np.broadcast_to(ideal_rule, (horizon, S, A)))

    def expect(values: FloatArray) -> FloatArray:
        """E[values | state, action], with 0 * (-inf) = 0: [S] or [S, A, S] -> [S, A]."""
        return linear_expectation(lambda finite: (transition * finite).sum(axis=-1), values)

    policy = np.empty((horizon, S, A))
    log_gamma = np.zeros((horizon + 1, S))  # gamma is 1 after the last epoch
    alpha = xlogx(transition).sum(axis=-1) - expect(log_ideal_transition)
    for t in reversed(range(horizon)):
        beta = -expect(log_gamma[t + 1])
        log_preference = log_ideal_rule[t] - alpha - beta
        log_gamma[t] = logsumexp(log_preference, axis=-1)
        feasible = log_gamma[t] > -np.inf
        policy[t] = np.exp(log_preference - np.where(feasible, log_gamma[t], 0.0)[:, None])
    return policy, log_gamma


def divergence(
    transition: FloatArray,
    policy: FloatArray,
    ideal_transition: ArrayLike,
    ideal_rule: ArrayLike,
) -> FloatArray:
    """Divergence of the closed loop from the ideal, by state at the start: [S].

    This is what `theorem_1` minimises. It is infinite where the closed loop may do what the ideal
    rules out.

    Paper: Definition 4 [def:FPD_opt_dec].

    Parameters
    ----------
    transition : [S, A, S]
    policy : [H, S, A]
    ideal_transition : broadcastable to [S, A, S]
    ideal_rule : broadcastable to [H, S, A]
    """
    log_ideal_rule = log(np.broadcast_to(ideal_rule, policy.shape))
    log_ideal_transition = log(np.broadcast_to(ideal_transition, transition.shape))
    remaining = np.zeros(len(transition))
    for rule, log_wanted_rule in zip(policy[::-1], log_ideal_rule[::-1], strict=True):
        # p ln (p / ideal) of every action and next state, and what the later epochs add.
        loop = transition * rule[..., None]
        log_ideal = log_ideal_transition + log_wanted_rule[..., None]
        possible = loop > 0
        log_ratio = np.where(possible, log(loop), 0.0) - np.where(possible, log_ideal, 0.0)
        later = np.where(possible, remaining, 0.0)
        remaining = (loop * (log_ratio + later)).sum(axis=(1, 2))
    return remaining


@dataclass(frozen=True, eq=False)
class Design:
    """An optimal policy and the divergence that it attains.

    Attributes
    ----------
    policy : [..., H, S, A]
        The rule of each epoch; a row of zeros where no action is feasible.
    log_gamma : [..., H + 1, S]
        ``-log_gamma[..., 0, s]`` is the smallest divergence from the ideal attainable from state s.
    """

    policy: FloatArray
    log_gamma: FloatArray

    def rule(self, state: int, epoch: int = 0) -> FloatArray:
        """p(action | state) at an epoch: [..., A]; `InfeasibleError` where there is none."""
        row = self.policy[..., epoch, state, :]
        require_feasible(row, np.asarray(state))
        return row


def design(
    model: TransitionModel, ideal: IdealModel, horizon: int, rules: ArrayLike | None = None
) -> Design:
    """Optimal policy over ``horizon`` epochs: `theorem_1` for any model, in compiled code.

    Paper: Theorem 1 [th:solution_FPD].

    Parameters
    ----------
    model : TransitionModel
        Leading axes, of the model or of the ideal, are solved together.
    rules : broadcastable to [H, S, A], optional
        Ideal decision rules that depend on time, in place of ``ideal.rule``.

    Examples
    --------
    >>> from pastwise.models.dense import DenseModel
    >>> model = DenseModel([[[0.9, 0.1], [0.1, 0.9]]] * 2)
    >>> plan = design(model, IdealModel.of([0.01, 0.99], num_actions=2), horizon=10)
    >>> plan.policy.shape, plan.log_gamma.shape, plan.rule(0).round(3).tolist()
    ((10, 2, 2), (11, 2), [0.025, 0.975])
    """
    policy, log_gamma = _solve(model, ideal, horizon, rules, num_kept=horizon)
    return Design(frozen(policy), frozen(log_gamma))


def first_rule(model: TransitionModel, ideal: IdealModel, horizon: int) -> FloatArray:
    """Rule of the first epoch of a new horizon: [..., S, A]; planning again needs no more.

    Paper: Theorem 1 [th:solution_FPD].
    """
    policy, _ = _solve(model, ideal, horizon, rules=None, num_kept=1)
    return np.asarray(policy[..., 0, :, :])


def alpha(model: TransitionModel, ideal: IdealModel) -> FloatArray:
    """Divergence of the model's next state from the ideal's: [..., S, A].

    Paper: alpha in Theorem 1 [th:solution_FPD].
    """
    if ideal.concerns_next_states_only:
        expected_log_ideal = model.expect(ideal.log_transition[..., 0, 0, :])
    else:
        expected_log_ideal = model.expect_each(ideal.log_transition)
    return np.asarray(model.negentropy - expected_log_ideal)


def _solve(
    model: TransitionModel,
    ideal: IdealModel,
    horizon: int,
    rules: ArrayLike | None,
    num_kept: int,
) -> tuple[FloatArray, FloatArray]:
    """Rules of the first epochs [..., num_kept, S, A], and ln gamma [..., H + 1, S]."""
    S = model.num_states
    A = model.num_actions
    if (ideal.num_states, ideal.num_actions) != (S, A):
        raise ParameterError(
            f"the ideal has {ideal.num_states} states and {ideal.num_actions} actions, "
            f"the model {S} and {A}"
        )
    require_horizon(horizon)

    # What does not depend on the later epochs, ln ideal.rule - alpha: [1 or H, ..., S, A].
    minus_alpha = -alpha(model, ideal)
    if rules is None:
        now = (ideal.log_rule_allowed + minus_alpha)[None]
    else:
        given = broadcast("rules", checked_probabilities("rules", rules), (horizon, S, A))
        log_rules = np.where(ideal.allowed, log(given), -np.inf)
        now = np.stack([log_rule + minus_alpha for log_rule in log_rules])

    # Systems and goals form one batch.
    batch = now.shape[1:-2]
    require_systems_last(model.shape, batch)
    size = prod(batch)
    require_memory(
        "the rules of all epochs", (size, num_kept, S, A), "first_rule gives the first alone"
    )
    now = np.ascontiguousarray(now.reshape(len(now), size, S * A))
    policy = np.empty((num_kept, size, S * A))
    log_gamma = np.zeros((horizon + 1, size, S))  # gamma is 1 after the last epoch
    if size:
        model.plan(now, policy, log_gamma)

    # The batch becomes the leading axes again.
    rules_kept = policy.swapaxes(0, 1).reshape(*batch, num_kept, S, A)
    return rules_kept, log_gamma.swapaxes(0, 1).reshape(*batch, horizon + 1, S)


def require_horizon(horizon: int, name: str = "the horizon", *, longest: int = 1_000_000) -> None:
    """Refuse a horizon that is not a whole number from 1 to a million, which no recursion needs."""
    require_whole_number(name, horizon, 1, longest)


def require_feasible(row: FloatArray, state: IntArray) -> None:
    """Refuse rows of a rule [..., A] that hold no probability, naming the state."""
    if np.count_nonzero(row) == row.size:
        return
    infeasible = fold(np.maximum, row) == 0
    if infeasible.any():
        where = np.broadcast_to(state, infeasible.shape)[where_first(infeasible)]
        raise InfeasibleError(
            f"state {int(where)} has no feasible action: each may lead to what the goal forbids; "
            "allow more actions, or give the goal a small floor instead of zeros"
        )


def implied_reward(ideal: IdealModel, transition: ArrayLike, rule: ArrayLike) -> FloatArray:
    """Reward whose expected total is minus the divergence from the ideal: [S, A, S].

    reward = -ln (transition * rule / ideal). Where the closed loop never goes, it is 0 and has no
    effect.

    Paper: Eq. (2) [eq:closed-loop_factoris].

    Parameters
    ----------
    transition : [S, A, S]
    rule : [S, A]
    """
    log_loop = log(transition) + log(rule)[..., None]
    log_ideal = ideal.log_transition + ideal.log_rule[..., None]
    possible = ~np.isneginf(log_loop)
    return np.where(possible, log_ideal - np.where(possible, log_loop, 0.0), 0.0)


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal policy of a Markov decision process and its values.

    Attributes
    ----------
    policy : [..., H, S, A]
        Deterministic: one for the best action (the first of equals), zero elsewhere.
    value : [..., H + 1, S]
        Expected reward from each epoch to the end.
    """

    policy: FloatArray
    value: FloatArray


def mdp_optimum(model: TransitionModel, reward: ArrayLike, horizon: int) -> Optimum:
    """Maximise the expected total reward over ``horizon`` epochs by backward induction.

    This is the problem that Fully Probabilistic Design generalises.

    Paper: Definition 1 [MDP].

    Parameters
    ----------
    reward : broadcastable to [S, A, S]
    """
    require_horizon(horizon)
    S = model.num_states
    A = model.num_actions
    table = np.asarray(reward, dtype=np.float64)
    _require_reward(table, (S, A, S))
    require_memory("the rules of all epochs", (*model.shape, horizon, S, A), "shorten the horizon")

    # Expected reward of each decision.
    expected = model.expect(table) if table.ndim == 1 else model.expect_each(table)
    expected = np.broadcast_to(expected, (*expected.shape[:-2], S, A))

    # Backward induction; the first epoch comes last.
    deterministic = np.eye(A)
    values = [np.zeros(expected.shape[:-1])]
    rules: list[FloatArray] = []
    for _ in range(horizon):
        action_value = expected + model.expect(values[-1])
        values.append(action_value.max(axis=-1))
        rules.append(deterministic[action_value.argmax(axis=-1)])
    policy = np.stack(rules[::-1], axis=-3)
    value = np.stack(values[::-1], axis=-2)
    return Optimum(frozen(policy), frozen(value))


def _require_reward(reward: FloatArray, shape: tuple[int, int, int]) -> None:
    """Refuse a reward that is not finite or does not broadcast to [S, A, S]; more axes may lead."""
    infinite = ~np.isfinite(reward)
    if infinite.any():
        raise ParameterError(f"reward{list(where_first(infinite))} is not finite")
    trailing = list(zip(reward.shape[::-1], shape[::-1], strict=False))
    if reward.ndim == 0 or any(length not in (1, full) for length, full in trailing):
        raise ParameterError(f"reward of shape {reward.shape} does not fit {shape}")
