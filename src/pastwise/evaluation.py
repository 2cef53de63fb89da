"""Is the policy better than what was done? Values of policies, exact for a known model and uncertain from a log.

For a known model the value of a policy is a recursion over the horizon or, until absorption, a linear system. From a
log alone the model is uncertain: models are drawn from its posterior, every policy is evaluated on the same draws,
and the spread of the differences is the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pastwise.design import alpha
from pastwise.draws import DrawnModels, TransitionPosterior
from pastwise.ideal import IdealModel
from pastwise.models import TransitionModel
from pastwise.numerics import FloatArray, IntArray, fold

# Known models.


def policy_value(model: TransitionModel, rule: FloatArray, reward: FloatArray, horizon: int) -> FloatArray:
    """Expected total reward over ``horizon`` epochs from each state: [..., S].

    Parameters
    ----------
    rule : [..., S, A]
        Leading axes are policies, all evaluated at once.
    reward : broadcastable to [..., S, A]
        Expected reward of an action in a state; ``model.expect(score)`` for a score of next states.
    """
    if horizon < 1:
        raise ValueError(f"the horizon must be at least 1, not {horizon}")
    now = (rule * reward).sum(axis=-1)
    value = np.zeros(now.shape)
    for _ in range(horizon):
        value = now + (rule * model.expect(value)).sum(axis=-1)
    return value


def divergence_cost(model: TransitionModel, ideal: IdealModel, rule: FloatArray) -> FloatArray:
    """Minus the reward whose total is the divergence of the closed loop from the ideal: [..., S, A].

    Paper: Eq. (2) [eq:closed-loop_factoris], expected over the next state.
    """
    taken = rule > 0
    ratio = np.where(taken, np.log(np.where(taken, rule, 1.0)) - ideal.log_rule, 0.0)
    return alpha(model, ideal) + ratio


def value_until_absorption(closed_loop: FloatArray, reward: FloatArray, absorbing: IntArray) -> FloatArray:
    """Expected total reward until an absorbing state is reached: [..., S]; zero in absorbing states.

    Parameters
    ----------
    closed_loop : [S, S] dense or scipy sparse
        p(next_state | state) under a policy.
    reward : [..., S]
        Expected reward of the step from each state.
    """
    from scipy.sparse import csr_array, diags_array, eye_array
    from scipy.sparse.linalg import splu

    S = closed_loop.shape[0]
    stay = np.ones(S)
    stay[absorbing] = 0.0
    mask = diags_array(stay)
    transient = mask @ csr_array(closed_loop) @ mask
    solver = splu((eye_array(S, format="csc") - transient).tocsc())
    return np.asarray(solver.solve(np.ascontiguousarray((reward * stay).reshape(-1, S).T)).T.reshape(reward.shape))


# From a log.


@dataclass(frozen=True, eq=False)
class Samples:
    """Values of policies on the same drawn models: ``values [draws, P]`` by name; wanted were ``asked`` draws."""

    names: tuple[str, ...]
    values: FloatArray
    asked: int

    def __getitem__(self, name: str) -> FloatArray:
        """Values of a policy: [draws]."""
        return np.asarray(self.values[:, self.names.index(name)])


OPTIMUM = "optimum"
"""Name of the best policy of each drawn model."""


def sample_values(
    posterior: TransitionPosterior,
    rules: Mapping[str, FloatArray],
    task: Task,
    draws: int,
    seed: int = 0,
    on_step: Callable[[int], None] = lambda done: None,
) -> Samples:
    """Values of rules [S, A], and of each draw's own optimum, on models drawn from the posterior.

    Ctrl-C ends the drawing and keeps what was drawn. The draws do not depend on the rules.
    """
    if draws < 1:
        raise ValueError(f"at least one draw is needed, not {draws}")
    together, size = np.stack(list(rules.values())), posterior.draws_at_once

    def batch(index: int) -> FloatArray:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
        return task.values(posterior.draw(size, rng), together)[: draws - index * size]

    parts: list[FloatArray] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        try:
            for values in threads.map(batch, range(-(-draws // size))):
                parts.append(values)
                on_step(len(values))
        except KeyboardInterrupt:
            if not parts:
                raise
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
    return Samples((*rules, OPTIMUM), np.concatenate(parts), draws)


@dataclass(frozen=True, eq=False)
class Task:
    """What a policy is judged by.

    Attributes
    ----------
    score : [S]
        Worth of arriving in each state, such as 1 in the preferred ones.
    initial : [S]
        Distribution of the start state.
    horizon : int
        Number of epochs.
    at_end : bool
        False: the mean score over the horizon, such as the share of time in the preferred states. True: the score at
        its end, such as the probability of having ended well.
    """

    score: FloatArray
    initial: FloatArray
    horizon: int = 100
    at_end: bool = False

    def __post_init__(self) -> None:
        if self.horizon < 1:
            raise ValueError(f"the horizon must be at least 1, not {self.horizon}")

    def values(self, models: DrawnModels, rules: FloatArray) -> FloatArray:
        """Value of each rule on each model, then of the model's own best policy: [P, S, A] -> [n, P + 1]."""
        weight = np.moveaxis(rules, 0, -1)
        score = np.broadcast_to(self.score[:, None], (models.number, len(self.score), len(rules) + 1))
        worth = score if self.at_end else np.zeros(score.shape)
        step = np.full(score.shape, np.inf)
        for epoch in range(self.horizon):
            after = models.expect(worth if self.at_end else score + worth)
            following = np.empty(score.shape)
            np.einsum("sap,nsap->nsp", weight, after[..., :-1], out=following[..., :-1])
            following[..., -1] = fold(np.maximum, after[..., -1])
            previous, step, worth = step, following - worth, following
            moved, left = step if self.at_end else step - previous, self.horizon - epoch - 1
            if left and np.abs(moved).max() * left < SETTLED * (1 if self.at_end else self.horizon):
                worth = worth + left * step
                break
        mean = np.einsum("s,nsp->np", self.initial, worth)
        return np.asarray(mean if self.at_end else mean / self.horizon)


SETTLED = 1e-5
"""A recursion that will move a value by less than this over what is left of the horizon has settled."""


# What the values say.

LEVEL = 0.9
"""Probability of the stated intervals."""

DECIDES = {"logged": 0.95, "random": LEVEL}
"""Probability of the interval of a difference that decides a verdict.

More is asked against what was done: the rule was chosen for what looked good in the same log.
"""

ALARM = 0.3
"""A larger chance than this of being worse than acting at random raises the alarm."""

Verdict = Literal["better", "worse", "cannot tell"]


@dataclass(frozen=True)
class Credible:
    """Mean and central interval of a quantity over the draws."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray, level: float = LEVEL) -> Credible:
        """From values [draws]."""
        low, high = np.quantile(values, ((1 - level) / 2, (1 + level) / 2))
        return cls(float(values.mean()), float(low), float(high))

    @property
    def verdict(self) -> Verdict:
        """Of a difference: on which side of zero the whole interval lies."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "cannot tell"


def verdict(differences: Mapping[str, FloatArray]) -> dict[str, Verdict]:
    """Of the differences [draws] to what was done (``logged``) and to acting at ``random``."""
    return {name: Credible.of(values, DECIDES[name]).verdict for name, values in differences.items()}


def is_alarming(differences: Mapping[str, FloatArray]) -> bool:
    """Whether the differences [draws] to what was done and to acting at random warn of negative transfer."""
    return bool((differences["random"] < 0).mean() > ALARM or Credible.of(differences["logged"]).verdict == "worse")


def occupancy(posterior: TransitionPosterior, rule: FloatArray, task: Task) -> FloatArray:
    """Expected share of epochs in each state and action under the mean of the posterior: [S, A]."""
    loop = posterior.mean_closed_loop(rule)
    state, total = task.initial, np.zeros(len(task.initial))
    for _ in range(task.horizon):
        total = total + state
        state = state @ loop
    return np.asarray((total / task.horizon)[:, None] * rule)
