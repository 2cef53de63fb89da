"""Is the policy better than what was done? Values of policies, exact for a known model and uncertain from a log.

For a known model the value of a policy is a recursion over the horizon or, until absorption, a linear system. From a
log alone the model is uncertain: models are drawn from its posterior, every policy is evaluated on the same draws,
and the spread of the differences is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, normalise
from pastwise._numerics.threads import CORES
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.samples import DrawnModels, TransitionPosterior
from pastwise.theory.fpd import alpha, require_horizon

# Known models.


def policy_value(
    model: TransitionModel, rule: FloatArray, reward: FloatArray, horizon: int
) -> FloatArray:
    """Expected total reward over ``horizon`` epochs from each state: [..., S].

    Parameters
    ----------
    rule : [..., S, A]
        Leading axes are policies, all evaluated at once.
    reward : broadcastable to [..., S, A]
        Expected reward of an action in a state; ``model.expect(score)`` for a score of next states.
    """
    require_horizon(horizon)
    now = (rule * reward).sum(axis=-1)
    value = np.zeros(now.shape)
    for _ in range(horizon):
        value = now + (rule * model.expect(value)).sum(axis=-1)
    return value


def divergence_cost(model: TransitionModel, ideal: IdealModel, rule: FloatArray) -> FloatArray:
    """Expected cost of each decision whose total is the divergence from the ideal: [..., S, A].

    Minus `theory.fpd.implied_reward`, expected over the next state.
    """
    taken = rule > 0
    ratio = np.where(taken, np.log(np.where(taken, rule, 1.0)) - ideal.log_rule, 0.0)
    return alpha(model, ideal) + ratio


def value_until_absorption(
    closed_loop: FloatArray, reward: FloatArray, absorbing: IntArray
) -> FloatArray:
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
    try:
        solver = splu((eye_array(S, format="csc") - transient).tocsc())
    except RuntimeError:
        raise ValueError(
            "some state never leads to an absorbing one, so its value has no end"
        ) from None
    return np.asarray(
        solver.solve(np.ascontiguousarray((reward * stay).reshape(-1, S).T)).T.reshape(reward.shape)
    )


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
    threads: int | None = None,
) -> Samples:
    """Values of rules [S, A], and of each draw's own optimum, on models drawn from the posterior.

    Ctrl-C ends the drawing and keeps what was drawn. The draws depend neither on the rules nor on the number of
    ``threads``, which is that of the processor's cores by default.
    """
    from concurrent.futures import ThreadPoolExecutor

    if not isinstance(draws, (int, np.integer)) or not 1 <= draws <= MOST_EPOCHS:
        raise ValueError(
            f"the number of draws must be a whole number from 1 to {MOST_EPOCHS:,}, not {draws}"
        )
    together, size = np.stack(list(rules.values())), posterior.draws_at_once

    def batch(index: int) -> FloatArray:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
        return task.values(posterior.draw(size, rng), together)[: draws - index * size]

    parts: list[FloatArray] = []
    with ThreadPoolExecutor(threads or CORES) as pool:
        try:
            for values in pool.map(batch, range(-(-draws // size))):
                parts.append(values)
                on_step(len(values))
        except KeyboardInterrupt:
            if not parts:
                raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return Samples((*rules, OPTIMUM), np.concatenate(parts), draws)


@dataclass(frozen=True, eq=False)
class Task:
    """What a policy is judged by.

    Attributes
    ----------
    score : [S], or broadcastable to [S, A, S]
        Worth of arriving in each state, such as 1 in the preferred ones; or of each transition.
    initial : [S]
        Distribution of the start state.
    horizon : int
        Number of epochs, at most.
    ends : [number], optional
        Absent: the value is the mean score over the horizon, such as the share of time in the preferred states. Given:
        it is the total score until one of these states is entered, such as the probability of ending well.
    allowed : [1 or S, A], optional
        The actions that the best policy may take; all by default.
    """

    score: FloatArray
    initial: FloatArray
    horizon: int = 100
    ends: IntArray | None = None
    allowed: BoolArray | None = None

    def __post_init__(self) -> None:
        require_horizon(self.horizon)
        if self.horizon > MOST_EPOCHS:
            raise ValueError(f"the horizon can be at most {MOST_EPOCHS:,}, not {self.horizon:,}")

    def values(self, models: DrawnModels, rules: FloatArray) -> FloatArray:
        """Value of each rule on each model, then of the model's own best policy: [P, S, A] -> [n, P + 1].

        What one more epoch adds to the worth of a state, ``step``, settles. Of a rule each change of it is an
        expectation of the one before; of the best policy, which may turn to another way at any time, later steps lie
        between the least and the most of any state. Once all that is left cannot matter, the last step stands for the
        others.
        """
        n, (P, S, A) = models.number, rules.shape
        allowed = np.ones((1, A), dtype=bool) if self.allowed is None else self.allowed
        backup = models.backup(models.expect(self.score), rules, allowed)
        worth, step = np.zeros((n, S, P + 1)), np.full((n, S, P + 1), np.inf)
        error = SETTLED * np.ptp(self.score) * (self.horizon if self.ends is None else 1)
        for epoch in range(self.horizon):
            before = backup(worth)
            if self.ends is not None:
                before[:, self.ends] = 0.0
            previous, step, worth = step, before - worth, before
            left = self.horizon - epoch - 1
            if left and self._unsettled(step, previous, left) <= error:
                worth = worth + left * step
                break
        total = np.einsum("s,nsp->np", self.initial, worth)
        return np.asarray(total / self.horizon if self.ends is None else total)

    def _unsettled(self, step: FloatArray, previous: FloatArray, left: int) -> float:
        """Most that the epochs that are left may add beyond repeating the last step [n, S, P + 1]."""
        rules = np.abs(step - previous)[..., :-1].max(initial=0.0) * left * (left + 1) / 2
        best = step[..., -1]
        low, high = (best.min(axis=-1), best.max(axis=-1))
        if self.ends is not None:  # after the end nothing is added
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        return float(max(rules, (high - low).max() * left))

    def occupancy(self, closed_loop: FloatArray) -> FloatArray:
        """Share of epochs in each state, of those before the end, where p(next_state | state) is [S, S]: [S]."""
        goes_on = np.ones(len(self.initial))
        goes_on[[] if self.ends is None else self.ends] = 0.0
        state, total = self.initial * goes_on, np.zeros(len(self.initial))
        for epoch in range(self.horizon):
            total = total + state
            following = (state @ closed_loop) * goes_on
            left, moved = self.horizon - epoch - 1, np.abs(following - state).sum()
            state = following
            if left and moved * left**2 < SETTLED:
                total = total + left * state
                break
        return normalise(total) if total.any() else total


SETTLED = 1e-5
"""Error that is accepted for an early end of a recursion, relative to the range of the scores."""

MOST_EPOCHS = 1_000_000
"""Longest horizon, and most draws."""


# What the values say.

LEVEL = 0.9
"""Probability of the stated intervals."""

DECIDES = {"logged": 0.95, "random": LEVEL}
"""Probability of the interval of a difference that decides a verdict.

More is asked against what was done: the rule was chosen for what looked good in the same log.
"""

LEAST_DRAWS = 40
"""Fewer draws than this give no verdict: none of them would lie outside the interval."""

ALARM = 0.25
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
    """Of the differences [draws] to what was done (``logged``) and to acting at ``random``; few draws cannot tell."""
    return {
        name: Credible.of(values, DECIDES[name]).verdict
        if len(values) >= LEAST_DRAWS
        else "cannot tell"
        for name, values in differences.items()
    }


def is_alarming(differences: Mapping[str, FloatArray]) -> bool:
    """Whether the differences [draws] to what was done and to acting at random warn of negative transfer."""
    return bool(
        (differences["random"] < 0).mean() > ALARM
        or Credible.of(differences["logged"]).verdict == "worse"
    )
