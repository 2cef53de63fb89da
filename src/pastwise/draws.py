"""Transition models drawn from what a log tells of them.

Given the *unweighted* counts of a log, since the world does not depend on the goal, the rows of its transition model
have Dirichlet posteriors. Their background count is not known either: it is drawn from what the log tells of it. Rows
that look alike ask for a large one, rows of few successors among many states for a small one. The mass of the unseen
next states is split at random, by the size-biased sticks of a symmetric Dirichlet distribution, never evenly: that
would understate the spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy.special import gammaln

from pastwise.counts import TransitionCounts
from pastwise.numerics import FloatArray, IntArray, group_sum, normalise, sample

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STICKS = 5
"""Unseen next states of a row that get a share of their own in a draw; what is left after them is spread evenly."""

GRID = 25
LEAST_MASS, MOST_MASS, MOST_BACKGROUND = 0.05, 50.0, 2.0
"""Range of the background: least and most prior mass of a row, in records, and most background."""

FEW_STATES = 32
"""Up to so many states drawn models are dense."""


def background_posterior(counts: TransitionCounts) -> tuple[FloatArray, FloatArray]:
    """Background counts on a grid and their probabilities given the log: [grid], [grid].

    The counts of a row are Dirichlet-multinomial with a symmetric prior; its background is log-uniform on the grid.
    """
    S, n = len(counts.states), counts.weight
    total = counts.by_state_action(n).ravel()
    nu = np.geomspace(LEAST_MASS / S, min(MOST_MASS / S, MOST_BACKGROUND), GRID)
    cells = (gammaln(n[:, None] + nu) - gammaln(nu)).sum(axis=0)
    rows = (gammaln(S * nu) - gammaln(total[total > 0][:, None] + S * nu)).sum(axis=0)
    log_likelihood = cells + rows
    return nu, normalise(np.exp(log_likelihood - log_likelihood.max()))


class DrawnModels(Protocol):
    """Some transition models drawn from a posterior."""

    @property
    def number(self) -> int:
        """N."""
        ...

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [n, S] -> [n, S, A]."""
        ...

    def closed_loops(self, rules: FloatArray) -> FloatArray:
        """p(next_state | state) under each rule: [P, S, A] -> [n, P, S, S]."""
        ...


@dataclass(frozen=True, eq=False)
class DenseDraws:
    """Drawn models as a tensor [n, S, A, S]; for few states."""

    transition: FloatArray

    @property
    def number(self) -> int:
        """N."""
        return len(self.transition)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [n, S] -> [n, S, A]."""
        return np.asarray(np.einsum("dsan,dn->dsa", self.transition, values))

    def closed_loops(self, rules: FloatArray) -> FloatArray:
        """p(next_state | state) under each rule: [P, S, A] -> [n, P, S, S]."""
        return np.asarray(np.einsum("psa,dsan->dpsn", rules, self.transition, optimize=True))


@dataclass(frozen=True, eq=False)
class SparseDraw:
    """One drawn model as its entries; what is left of each row ``rest [S * A]`` is spread evenly."""

    row: IntArray
    next_state: IntArray
    probability: FloatArray
    rest: FloatArray
    shape: tuple[int, int]
    number: int = 1

    @cached_property
    def _matrix(self) -> csr_array:
        from scipy.sparse import csr_array

        return csr_array((self.probability, (self.row, self.next_state)), shape=(len(self.rest), self.shape[0]))

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [1, S] -> [1, S, A]."""
        sums = self._matrix @ values[0]
        return np.asarray((sums + self.rest * values.mean()).reshape(1, *self.shape))

    def closed_loops(self, rules: FloatArray) -> FloatArray:
        """p(next_state | state) under each rule: [P, S, A] -> [1, P, S, S]."""
        S, A = self.shape
        where = (self.row // A) * S + self.next_state
        loops = np.stack([group_sum(where, rule.ravel()[self.row] * self.probability, S * S) for rule in rules])
        even = (rules * self.rest.reshape(S, A)).sum(axis=-1) / S
        return np.asarray(loops.reshape(1, -1, S, S) + even[None, :, :, None])


class TransitionPosterior:
    """The Dirichlet posterior of a transition model, to draw from.

    Parameters
    ----------
    counts : TransitionCounts
        The log, without leading axes.
    background : float, optional
        Prior count of every (state, action, next_state). If absent it is drawn anew for each model from what the log
        tells of it, see `background_posterior`.
    """

    def __init__(self, counts: TransitionCounts, background: float | None = None) -> None:
        self.num_states, self.num_actions = len(counts.states), len(counts.actions)
        self._counts = counts
        if background is None:
            self._backgrounds = background_posterior(counts)
        else:
            self._backgrounds = np.array([background]), np.ones(1)

    @property
    def draws_at_once(self) -> int:
        """How many models are drawn together: many small ones, or a single large one."""
        if self.num_states > FEW_STATES:
            return 1
        return int(np.clip(100_000 // (self.num_states**2 * self.num_actions), 1, 200))

    def draw(self, number: int, rng: np.random.Generator) -> DrawnModels:
        """``number`` models, at most `draws_at_once`."""
        return self._draw_dense(number, rng) if self.num_states <= FEW_STATES else self._draw_sparse(rng)

    @cached_property
    def _ends(self) -> IntArray:
        """Rows of the terminal states: [ends * A]."""
        return np.asarray((self._counts.terminal[:, None] * self.num_actions + np.arange(self.num_actions)).ravel())

    def _draw_background(self, number: int, rng: np.random.Generator) -> FloatArray:
        values, probabilities = self._backgrounds
        return values[sample(np.broadcast_to(probabilities, (number, len(values))), rng.random(number))]

    @cached_property
    def _tensor(self) -> FloatArray:
        S, A = self.num_states, self.num_actions
        return group_sum(self._counts.key, self._counts.weight, S * A * S).reshape(S, A, S)

    def _draw_dense(self, number: int, rng: np.random.Generator) -> DenseDraws:
        background = self._draw_background(number, rng)[:, None, None, None]
        gamma = rng.standard_gamma(self._tensor + background)
        total = gamma.sum(axis=-1, keepdims=True)
        even = np.full(self.num_states, 1 / self.num_states)  # all underflowed: the background is that small
        transition = np.where(total > 0, gamma / np.where(total > 0, total, 1.0), even)
        for end in self._counts.terminal:
            transition[:, end] = np.eye(self.num_states)[end]
        return DenseDraws(transition)

    def mean_closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next_state | state) under a rule [S, A] and the mean background: [S, S]."""
        counts, S, A = self._counts, self.num_states, self.num_actions
        nu = float(self._backgrounds[0] @ self._backgrounds[1])
        total = counts.by_state_action(counts.weight).ravel() + S * nu
        rest = S * nu / total
        mean = SparseDraw(counts.row, counts.next_state, counts.weight / total[counts.row], rest, (S, A))
        loop = mean.closed_loops(rule[None])[0, 0]
        loop[counts.terminal] = np.eye(S)[counts.terminal]
        return np.asarray(loop)

    @cached_property
    def _unseen(self) -> IntArray:
        """Number of next states that each row was never seen to lead to: [S * A]."""
        rows = self.num_states * self.num_actions
        return self.num_states - np.bincount(self._counts.row, minlength=rows)

    def _draw_sparse(self, rng: np.random.Generator) -> SparseDraw:
        counts, unseen, nu = self._counts, self._unseen, float(self._draw_background(1, rng)[0])
        rows = len(unseen)
        seen = rng.standard_gamma(counts.weight + nu)
        mass = rng.standard_gamma(nu * unseen)
        total = group_sum(counts.row, seen, rows) + mass
        mass = np.where(total > 0, mass, 1.0)
        total = np.where(total > 0, total, 1.0)
        shares, rest = _sticks(unseen, nu, rng)
        atoms = self._unseen_states(rng.integers(np.maximum(unseen, 1)[:, None], size=shares.shape))
        row = np.concatenate([counts.row, np.repeat(np.arange(rows), STICKS)])
        next_state = np.concatenate([counts.next_state, atoms.ravel()])
        probability = np.concatenate([seen / total[counts.row], (shares * (mass / total)[:, None]).ravel()])
        rest = rest * mass / total
        if len(self._ends):
            kept = ~np.isin(row, self._ends)
            home = self._ends // self.num_actions
            row, next_state = np.concatenate([row[kept], self._ends]), np.concatenate([next_state[kept], home])
            probability = np.concatenate([probability[kept], np.ones(len(home))])
            rest[self._ends] = 0.0
        return SparseDraw(row, next_state, probability, rest, (self.num_states, self.num_actions))

    def _unseen_states(self, rank: IntArray) -> IntArray:
        """The state that comes ``rank``-th among those that a row was never seen to lead to: [rows, n] -> [rows, n]."""
        S, row = self.num_states, self._counts.row
        start = np.searchsorted(row, np.arange(len(rank)))
        before = self._counts.next_state - (np.arange(len(row)) - start[row])  # unseen states below each seen one
        place = np.searchsorted(row * S + before, np.arange(len(rank))[:, None] * S + rank, side="right")
        return np.asarray(np.minimum(rank + place - start[:, None], S - 1))


def _sticks(unseen: IntArray, nu: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Shares of the largest parts of a symmetric Dirichlet distribution, in size-biased order, and what they leave.

    The k-th stick breaks off Beta(1 + nu, nu * (unseen - k)) of what is left: [rows, STICKS], [rows].
    """
    left = np.ones(len(unseen))
    shares = np.empty((len(unseen), STICKS))
    for k in range(STICKS):
        others = nu * np.maximum(unseen - k - 1, 0)
        one, rest = rng.standard_gamma(1 + nu, size=len(unseen)), rng.standard_gamma(others)
        broken = one / (one + rest)
        shares[:, k] = left * broken
        left = left * (1 - broken)
    return shares, left
