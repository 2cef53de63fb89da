"""Planning on a posterior: values of rules and actions without a horizon, and the best rule.

With g the discount, u the utility of a transition and P the closed loop of a rule on the mean rows
of a posterior, the value of the rule solves

    value = utility expected now + g P value.

Systems of up to 2,000 states are solved directly, larger ones by GMRES. `Task.best_value` improves
a rule until no action is better (policy iteration), which takes a handful of solutions.

Where episodes end and only their end pays, being held up for ever is the worst that can happen, and
a mean row hides it: if a row either stays always or never, each with probability 1/2, the mean stay
is two epochs, not for ever. There, a row's chance of staying is replaced by one that lasts as long
as the posterior expects. With p ~ Beta(a, b) the discounted number of epochs is

    E[1 / (1 - g p)] = 2F1(1, a; a + b; g).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray, fold
from pastwise.goals.utility import Utility
from pastwise.models.belief import Belief, of_own_state

SMALLEST_DEVIATION = 1e-9
"""A smaller deviation of a value is rounding error."""

MOST_ROUNDS = 30
"""Improvements of a rule after which to stop; about five are usual."""

QUICK_ROUNDS = 10
"""Improvements of a rule after which steps of value iteration speed up the others."""

SWEEPS = 100
"""These steps in each improvement: pay-offs are seen from 2,000 states away."""

SOLVE_DIRECTLY_UP_TO = 2000
"""Up to this many states a direct solution is faster than an iterative one."""


class Task:
    """A goal on a posterior: values of rules and actions, discounted.

    Parameters
    ----------
    belief : Belief
    utility : Utility
    uniform : [S, A]
        The random rule over the allowed actions.
    discount : float
    """

    def __init__(
        self, belief: Belief, utility: Utility, uniform: FloatArray, discount: float
    ) -> None:
        self.belief = belief
        self.is_allowed = uniform > 0
        self.is_open = belief.is_open
        self.discount = discount
        shape = (belief.num_systems, belief.num_states)
        self.uniform = np.broadcast_to(uniform, belief.weight.shape)

        # What a transition collects, and every epoch after the end of an episode.
        if utility.concerns_next_states_only:
            self._collected = np.broadcast_to(utility.next_state_part[0, 0], shape)
        else:
            full = (*belief.weight.shape, belief.num_states)
            self._collected = np.broadcast_to(utility.next_state_part, full)
        self._action_part = utility.action_part
        pays_on_the_way = bool((utility.next_state_part[..., self.is_open] > 0).any())
        self.only_the_end_pays = utility.stops_at_end and not pays_on_the_way
        self._stays = _Stays.of(belief, discount) if self.only_the_end_pays else None
        self._now = self._mean(self._collected) + utility.action_part
        self._last_value: FloatArray | None = None  # where an iterative solution starts
        self._at_end = np.zeros(shape)
        self._at_end[:, utility.terminal] = utility.after_end / (1 - discount)

        # The goal's own unit: a mean over epochs, or a total where it stops at the end.
        self.unit = utility.unit
        self.origin = 0.0
        if not utility.stops_at_end:
            self.unit *= 1 - discount
            self.origin = utility.origin

    def _target(self, value: FloatArray) -> FloatArray:
        """What a transition leads to: its utility and the discounted value of the next state."""
        if self._collected.ndim == 2:
            return np.asarray(self._collected + self.discount * value)
        return np.asarray(self._collected + self.discount * value[:, None, None])

    def action_values(self, value: FloatArray) -> FloatArray:
        """Value of each action, given that of the next state: [N, S] -> [N, S, A]."""
        return np.asarray(self._now + self.discount * self._mean(value))

    def _mean(self, values: FloatArray) -> FloatArray:
        """Mean of values: [N, S] or [N, S, A, S] -> [N, S, A]."""
        mean = self.belief.mean(values)
        if self._stays is None:
            return mean
        return np.asarray(self._stays.leaving * mean + self._stays.more * of_own_state(values))

    def value_of(self, rule: FloatArray, extra: FloatArray | float = 0.0) -> FloatArray:
        """Value of each state under a rule [N, S, A]: [N, S].

        Parameters
        ----------
        extra : [N, S, A]
            Collected by each action besides its utility.
        """
        return self._solve(rule, (rule * (self._now + extra)).sum(axis=-1)[..., None])[..., 0]

    @cached_property
    def random_value(self) -> FloatArray:
        """Value of each state under random actions: [N, S]."""
        return self.value_of(self.uniform)

    def value_and_length(self, rule: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value of each state under a rule, and its discounted number of epochs: [N, S] each."""
        now = (rule * self._now).sum(axis=-1)
        both = self._solve(rule, np.stack([now, np.ones(now.shape)], axis=-1))
        return both[..., 0], np.where(self.is_open, both[..., 1], 0.0)

    def _solve(self, rule: FloatArray, collected: FloatArray) -> FloatArray:
        """Values of what a rule collects in each state: [N, S, k] -> [N, S, k]."""
        collected = np.where(self.is_open[:, None], collected, self._at_end[..., None])
        if self.belief.num_states > SOLVE_DIRECTLY_UP_TO:
            columns = [self._iterate(rule, column) for column in np.moveaxis(collected, -1, 0)]
            return np.stack(columns, axis=-1)

        # The closed loop, without what follows the end of an episode.
        states = np.arange(self.belief.num_states)
        if self._stays is None:
            loop = self.belief.closed_loop(rule)
        else:
            loop = self.belief.closed_loop(rule * self._stays.leaving)
            loop[:, states, states] += (rule * self._stays.more).sum(axis=-1)
        loop[:, ~self.is_open] = 0.0

        # One solution for all quantities.
        system = -self.discount * loop
        system[:, states, states] += 1.0
        return np.asarray(np.linalg.solve(system, collected))

    def _iterate(self, rule: FloatArray, collected: FloatArray) -> FloatArray:
        """The same for one quantity [N, S] of a large system, whose closed loop is not stored."""
        from scipy.sparse.linalg import LinearOperator, gmres

        def apply(flat_value: FloatArray) -> FloatArray:
            value = flat_value.reshape(collected.shape)
            following = (rule * self._mean(value)).sum(axis=-1)
            return np.ravel(value - self.discount * np.where(self.is_open, following, 0.0))

        operator = LinearOperator((collected.size, collected.size), matvec=apply, dtype=np.float64)
        value, _ = gmres(
            operator, collected.ravel(), x0=self._last_value, rtol=1e-6, restart=50, maxiter=20
        )
        self._last_value = np.asarray(value)
        return self._last_value.reshape(collected.shape)

    def best_value(self) -> FloatArray:
        """Value of the best rule, by policy iteration: [N, S]."""
        value = self.random_value
        actions = None
        for number in range(MOST_ROUNDS):
            action_values = self._of_allowed(value)
            best = action_values.argmax(axis=-1)
            if actions is not None:
                # Less than this is rounding error, which could go in circles.
                gain = fold(np.maximum, action_values)
                gain = gain - np.take_along_axis(action_values, actions[..., None], axis=-1)[..., 0]
                best = np.where(gain > 1e-9 * (1 + np.abs(value)), best, actions)
                if (best == actions).all():
                    break

                # Where it takes long, a pay-off is seen from one state further away in each round.
                if number >= QUICK_ROUNDS:
                    is_unsettled = (best != actions).any(axis=-1, keepdims=True)
                    best = np.where(is_unsettled, self._sweep(value), actions)
            actions = best
            value = self.value_of(np.eye(self.uniform.shape[-1])[actions])
        return value

    def _of_allowed(self, value: FloatArray) -> FloatArray:
        """Value of each allowed action, and -inf of the others: [N, S] -> [N, S, A]."""
        return np.where(self.is_allowed, self.action_values(value), -np.inf)

    def _sweep(self, value: FloatArray) -> IntArray:
        """The best actions after some steps of value iteration: [N, S] -> [N, S]."""
        for _ in range(SWEEPS):
            value = np.where(self.is_open, fold(np.maximum, self._of_allowed(value)), value)
        return np.asarray(self._of_allowed(value).argmax(axis=-1))

    @cached_property
    def _known_spread(self) -> FloatArray:
        """How far actions of a state differ by what the goal gives for them: [N, S, 1]."""
        known = self._action_part
        if self._collected.ndim > 2:
            known = known + self.belief.of_prior(self._collected)
        mean = (self.uniform * known).sum(axis=-1, keepdims=True)
        variance = (self.uniform * (known - mean) ** 2).sum(axis=-1, keepdims=True)
        return np.asarray(np.sqrt(variance))

    def row_values(self, value: FloatArray) -> RowValues:
        """What is known of the value of each action, given that of the next state: [N, S]."""
        belief = self.belief
        target = self._target(value)
        squared = target**2

        # Both moments, by the records of each row and by its prior.
        recorded = belief.of_records(target)
        by_prior = belief.of_prior(target)
        recorded_squared = belief.of_records(squared)
        by_prior_squared = belief.of_prior(squared)

        # The variance under the mean row, and under the prior's.
        mean = (recorded + belief.mass * by_prior) / belief.weight
        mean_squared = (recorded_squared + belief.mass * by_prior_squared) / belief.weight
        variance = np.maximum(mean_squared - mean**2, 0.0)
        prior_variance = np.maximum(by_prior_squared - by_prior**2, SMALLEST_DEVIATION**2)
        number = np.maximum(belief.records, 1e-9)
        return RowValues(
            deviation=np.sqrt(variance / (belief.weight + 1)),
            prior_deviation=np.sqrt(prior_variance / (belief.mass + 1)),
            known_spread=self._known_spread,
            shown=recorded / number + self._action_part,
            noise=np.maximum(variance, SMALLEST_DEVIATION**2) / number,
        )


@dataclass(frozen=True, eq=False)
class RowValues:
    """What is known of the value of each action; every field is [N, S, A].

    Attributes
    ----------
    deviation, prior_deviation
        Standard deviation of the value under the posterior, and under the prior.
    known_spread
        Standard deviation, over the actions of the state, of what the goal itself gives for them.
    shown
        Mean of the value over the records of the row alone.
    noise
        Variance of that mean.
    """

    deviation: FloatArray
    prior_deviation: FloatArray
    known_spread: FloatArray
    shown: FloatArray
    noise: FloatArray


class _Stays:
    """How staying in a state is counted by how long it lasts; see the module.

    The chance of leaving shrinks by a factor for every next state, and the rest is staying.

    Attributes
    ----------
    leaving : [N, S, A]
        Factor of the mean row.
    more : [N, S, A]
        Probability of staying to add to it.
    """

    def __init__(self, leaving: FloatArray, more: FloatArray) -> None:
        self.leaving = leaving
        self.more = more

    @classmethod
    def of(cls, belief: Belief, discount: float) -> _Stays:
        """The stays of a posterior."""
        concentration = np.maximum(belief.staying(), 1e-12)
        mean = np.minimum(concentration / belief.weight, 1.0)
        lasting = np.clip(_lasting_stay(concentration, belief.weight, discount), mean, 1.0)

        leaving = (1 - lasting) / np.maximum(1 - mean, 1e-12)
        return cls(leaving, lasting - leaving * mean)


def _lasting_stay(
    stays: FloatArray, total: FloatArray, discount: float, *, rows_at_once: int = 1000
) -> FloatArray:
    """The chance of staying that lasts as long as that of Beta(stays, total - stays): [...].

    Parameters
    ----------
    rows_at_once : int
        So that the levels of these rows, about a hundred each, stay in the cache.
    """
    stays, total = np.broadcast_arrays(stays, total)
    lasting = np.empty(stays.size)
    for first in range(0, stays.size, rows_at_once):
        rows = slice(first, first + rows_at_once)
        a = stays.ravel()[rows]
        c = total.ravel()[rows]
        lasting[rows] = a / c / _fraction(a, c, discount)
    return lasting.reshape(stays.shape)


def _fraction(
    a: FloatArray, c: FloatArray, discount: float, *, most_levels: int = 1000
) -> FloatArray:
    """Gauss's continued fraction of 2F1(1, a; c; g) = 1 / (1 - g a / c / fraction): [n] -> [n].

    It serves rows of any number of records; general routines for 2F1 fail where c is large or c - a
    is a whole number.

    Parameters
    ----------
    most_levels : int
        Levels grow with the time that the discount looks ahead: 158 of them for 0.999 give eight
        digits. Above 0.999975 they are fewer than that, to limit the time.
    """
    levels = min(round(5 / np.sqrt(1 - discount)), most_levels)
    level = np.arange(levels, 0, -1)[:, None]
    stay = (a + level) * (c + level - 1) / ((c + 2 * level - 1) * (c + 2 * level))
    leave = level * (c - a + level - 1) / ((c + 2 * level - 2) * (c + 2 * level - 1))
    stay *= discount
    leave *= discount

    # From the limit of far levels, where both are g / 4.
    fraction = np.full(len(a), (1 + np.sqrt(1 - discount)) / 2)
    for stay_now, leave_now in zip(stay, leave, strict=True):
        fraction = 1 - leave_now / (1 - stay_now / fraction)
    return fraction
