"""Fully Probabilistic Design: the decision policy that brings the closed loop nearest to the ideal one.

Over a horizon of H epochs the policy that minimises the Kullback-Leibler divergence of the closed loop from the ideal
is, backward from gamma = 1 at the end,

    rule(action | state) = ideal.rule(action | state) * exp(-alpha - beta) / gamma(state)
    alpha(state, action) = sum over next states of p ln (p / ideal.transition)
                         = negentropy - expect(ln ideal.transition)
    beta(state, action)  = -expect(ln gamma)
    gamma(state)         = sum over actions of ideal.rule * exp(-alpha - beta),

and -ln gamma at the first epoch is the divergence attained. Only the expectation depends on how the model is stored;
rule and gamma are worked out by `kernels.settle`.

A zero in the ideal forbids: an action that may lead to it gets probability exactly 0, and a state without a feasible
action has ln gamma = -inf; only asking for its rule is an error.

Paper: Section II, Definition 4 [def:FPD_opt_dec], Theorem 1 [th:solution_FPD].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
    broadcast,
    fold,
    frozen,
    log,
    where_first,
)
from pastwise._numerics.checks import checked_probabilities, require_memory
from pastwise.errors import InfeasibleError
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.rows import require_last


@dataclass(frozen=True, eq=False)
class Design:
    """An optimal policy and what it attains.

    Attributes
    ----------
    policy : [..., H, S, A]
        The rule of each epoch; a row of zeros where no action is feasible.
    log_gamma : [..., H + 1, S]
        ``-log_gamma[..., 0, s]`` is the smallest divergence from the ideal that can be had from state s.
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
    """Optimal policy over ``horizon`` epochs.

    Parameters
    ----------
    model : TransitionModel
        Leading axes, of the model or of the ideal, are designed for at once.
    rules : broadcastable to [H, S, A], optional
        Ideal decision rules that depend on time, in place of ``ideal.rule``.

    Paper: Definition 4 [def:FPD_opt_dec], solved by Theorem 1 [th:solution_FPD].

    Examples
    --------
    >>> from pastwise.models.dense import DenseModel
    >>> model = DenseModel([[[0.9, 0.1], [0.1, 0.9]]] * 2)
    >>> plan = design(model, IdealModel.of([0.01, 0.99], num_actions=2), horizon=10)
    >>> plan.policy.shape, plan.log_gamma.shape, plan.rule(0).round(3).tolist()
    ((10, 2, 2), (11, 2), [0.025, 0.975])
    """
    policy, log_gamma = _backward(model, ideal, horizon, rules, kept=horizon)
    return Design(frozen(policy), frozen(log_gamma))


def first_rule(model: TransitionModel, ideal: IdealModel, horizon: int) -> FloatArray:
    """The rule of the first epoch of a fresh horizon alone: [..., S, A]; re-planning needs no more.

    Paper: Theorem 1 [th:solution_FPD].
    """
    policy, _ = _backward(model, ideal, horizon, None, kept=1)
    return np.asarray(policy[..., 0, :, :])


def alpha(model: TransitionModel, ideal: IdealModel) -> FloatArray:
    """Divergence of the model's next state from the ideal's: [..., S, A].

    Paper: alpha in Theorem 1 [th:solution_FPD].
    """
    return np.asarray(model.negentropy - _expected_log_ideal(model, ideal))


def _expected_log_ideal(model: TransitionModel, ideal: IdealModel) -> FloatArray:
    if ideal.concerns_next_states_only:
        return model.expect(ideal.log_transition[..., 0, 0, :])
    return model.expect_each(ideal.log_transition)


def _backward(
    model: TransitionModel, ideal: IdealModel, horizon: int, rules: ArrayLike | None, kept: int
) -> tuple[FloatArray, FloatArray]:
    """Rules of the first ``kept`` epochs [..., kept, S, A] and ln gamma [..., H + 1, S], from the last epoch on."""
    S, A = model.num_states, model.num_actions
    if (ideal.num_states, ideal.num_actions) != (S, A):
        raise ValueError(
            f"the ideal has {ideal.num_states} states and {ideal.num_actions} actions, the model {S} and {A}"
        )
    require_horizon(horizon)
    minus_alpha = _expected_log_ideal(model, ideal) - model.negentropy
    if rules is None:
        now = (ideal.log_rule_allowed + minus_alpha)[None]
    else:
        table = broadcast("rules", checked_probabilities("rules", rules), (horizon, S, A))
        now = np.stack(
            [np.where(ideal.allowed, log(rule), -np.inf) + minus_alpha for rule in table]
        )
    batch = now.shape[1:-2]
    require_last(model.shape, batch)
    number = prod(batch)
    require_memory(
        "the rules of all epochs", (number, kept, S, A), "first_rule gives the first alone"
    )
    policy, log_gamma = (
        np.empty((kept, number, S * A)),
        np.zeros((horizon + 1, number, S)),
    )  # gamma is 1 at the end
    if number:
        model.plan(np.ascontiguousarray(now.reshape(len(now), number, S * A)), policy, log_gamma)
    policy = policy.reshape(kept, number, S, A).swapaxes(0, 1).reshape(*batch, kept, S, A)
    return policy, log_gamma.swapaxes(0, 1).reshape(*batch, horizon + 1, S)


def require_horizon(horizon: int) -> None:
    """Refuse a horizon without epochs."""
    if not isinstance(horizon, (int, np.integer)):
        raise ValueError(f"the horizon must be a whole number, not {horizon!r}")
    if horizon < 1:
        raise ValueError(f"the horizon must be at least 1, not {horizon}")


def require_feasible(row: FloatArray, state: IntArray) -> None:
    """Refuse rows of a rule [..., A] that hold no probability, naming the state."""
    if np.count_nonzero(row) == row.size:
        return
    helpless = fold(np.maximum, row) == 0
    if helpless.any():
        where = np.broadcast_to(state, helpless.shape)[where_first(helpless)]
        raise InfeasibleError(
            f"state {int(where)} has no feasible action: each may lead to what the goal forbids; "
            "allow more, or give the goal a floor instead of zeros"
        )


def implied_reward(ideal: IdealModel, transition: ArrayLike, rule: ArrayLike) -> FloatArray:
    """The reward for which the closed loop's expected total is minus its divergence from the ideal: [S, A, S].

    reward = -ln (transition * rule / ideal). Where the closed loop never goes it is 0, and does not matter.

    Parameters
    ----------
    transition : [S, A, S]
    rule : [S, A]

    Paper: Eq. (2) [eq:closed-loop_factoris].
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

    Parameters
    ----------
    reward : broadcastable to [S, A, S]

    Paper: Definition 1 [MDP], the problem that FPD generalises.
    """
    require_horizon(horizon)
    table = np.asarray(reward, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ValueError(f"reward{list(where_first(~np.isfinite(table)))} is not finite")
    S, A = model.num_states, model.num_actions
    if table.ndim == 0 or any(
        n not in (1, m) for n, m in zip(table.shape[::-1], (S, A, S), strict=False)
    ):
        raise ValueError(f"reward of shape {table.shape} does not fit {(S, A, S)}")
    require_memory("the rules of all epochs", (*model.shape, horizon, S, A), "shorten the horizon")
    expected = model.expect(table) if table.ndim == 1 else model.expect_each(table)
    expected = np.broadcast_to(expected, (*expected.shape[:-2], S, A))
    value = [np.zeros(expected.shape[:-1])]
    policy: list[FloatArray] = []
    for _ in range(horizon):
        gain = expected + model.expect(value[0])
        value.insert(0, gain.max(axis=-1))
        policy.insert(0, np.eye(A)[gain.argmax(axis=-1)])
    return Optimum(frozen(np.stack(policy, axis=-3)), frozen(np.stack(value, axis=-2)))
