"""Transition models drawn from what a log tells of them.

Given the *unweighted* counts of a log, since the world does not depend on the goal, the rows of its transition model
have Dirichlet posteriors. Their prior is not known either: how much it weighs, and in large systems what it is
centred on (all next states alike, those often entered, or those often entered from the same state), is drawn from
what the log tells of it. The mass of the unseen next states is split at random, by the sticks of a Dirichlet process,
never evenly: that would understate the spread.
"""

from __future__ import annotations

from collections.abc import Sequence
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
"""Unseen next states of a row that get a share of their own in a draw; what is left is spread as the prior has it."""

GRID = 25
LEAST_MASS, MOST_MASS, MOST_BACKGROUND = 0.05, 50.0, 2.0
"""Range of the prior: least and most mass of a row, in records, and most of it for a single next state."""

FEW_STATES = 32
"""Up to so many states drawn models are dense."""


class Base:
    """Where transitions lead before any was seen: a distribution over next states for every state.

    Parameters
    ----------
    table : [1 or S, S]
    entries : [distinct]
        Probability of each distinct transition of the log; without its own records, where the table was made of them.
    """

    def __init__(self, table: FloatArray, entries: FloatArray) -> None:
        self.table, self.entries = table, entries
        self._cumulative = (np.cumsum(table, axis=-1) + np.arange(len(table))[:, None]).ravel()

    def draw(self, state: IntArray, rng: np.random.Generator, size: int) -> IntArray:
        """Next states: [rows] -> [rows, size]."""
        line = np.minimum(state, len(self.table) - 1)[:, None]
        place = np.searchsorted(self._cumulative, rng.random((len(state), size)) + line, side="right")
        states = self.table.shape[-1]
        return np.asarray(np.clip(place - line * states, 0, states - 1))


def bases_of(counts: TransitionCounts) -> list[Base]:
    """What a prior may be centred on.

    All next states alike; for many states also how often each was entered, in the whole log, or from the same state by
    other actions.
    """
    S, n, s, following = len(counts.states), counts.weight, counts.state, counts.next_state
    uniform = Base(np.full((1, S), 1 / S), np.full(len(n), 1 / S))
    if S <= FEW_STATES:
        return [uniform]
    entered = normalise(group_sum(following, n, S) + 1.0)
    pooled = group_sum(s * S + following, n, S * S).reshape(S, S)
    by_state_action = counts.by_state_action(n)
    others = by_state_action.sum(axis=-1)[s] - by_state_action[s, counts.action]
    without_own = (pooled[s, following] - n + entered[following]) / (others + 1.0)
    return [uniform, Base(entered[None], entered[following]), Base(normalise(pooled + entered), without_own)]


@dataclass(frozen=True, eq=False)
class PriorGrid:
    """Dirichlet priors of a row, each a mass in records and a base, and their probabilities given a log.

    Masses are log-uniform on a grid and the bases equally likely before the log is seen.

    Attributes
    ----------
    mass : [grid]
    bases : sequence of Base
    probability : [bases * grid]
        Base by base.
    """

    mass: FloatArray
    bases: Sequence[Base]
    probability: FloatArray

    @classmethod
    def of(cls, counts: TransitionCounts) -> PriorGrid:
        """The grid with its probabilities given the counts, by the likelihood of Dirichlet-multinomial rows."""
        S, n, bases = len(counts.states), counts.weight, bases_of(counts)
        mass = np.geomspace(LEAST_MASS, min(MOST_MASS, MOST_BACKGROUND * S), GRID)
        total = counts.by_state_action(n).ravel()
        rows = (gammaln(mass) - gammaln(total[total > 0][:, None] + mass)).sum(axis=0)
        background = [mass * base.entries[:, None] for base in bases]
        cells = [(gammaln(n[:, None] + each) - gammaln(each)).sum(axis=0) for each in background]
        log_likelihood = np.concatenate([each + rows for each in cells])
        return cls(mass, bases, normalise(np.exp(log_likelihood - log_likelihood.max())))

    @classmethod
    def fixed(cls, background: float, counts: TransitionCounts) -> PriorGrid:
        """A single prior: the same background count for every next state."""
        return cls(np.array([background * len(counts.states)]), bases_of(counts)[:1], np.ones(1))

    def draw(self, number: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
        """Masses and indices of bases: [number], [number]."""
        place = sample(np.broadcast_to(self.probability, (number, len(self.probability))), rng.random(number))
        return self.mass[place % len(self.mass)], place // len(self.mass)

    def mean(self) -> tuple[float, FloatArray]:
        """Mean mass, and the mean of the bases' tables: [1 or S, S]."""
        by_base = self.probability.reshape(len(self.bases), -1)
        table = sum(p * base.table for p, base in zip(by_base.sum(axis=1), self.bases, strict=True))
        return float(by_base.sum(axis=0) @ self.mass), np.asarray(table)


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
    """One drawn model as its entries; what is left of each row, ``rest [S * A]``, is spread as ``base [1 or S, S]``."""

    row: IntArray
    next_state: IntArray
    probability: FloatArray
    rest: FloatArray
    base: FloatArray
    shape: tuple[int, int]
    number: int = 1

    @cached_property
    def _matrix(self) -> csr_array:
        from scipy.sparse import csr_array

        return csr_array((self.probability, (self.row, self.next_state)), shape=(len(self.rest), self.shape[0]))

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [1, S] -> [1, S, A]."""
        sums = self._matrix @ values[0]
        spread = self.rest.reshape(self.shape) * (self.base @ values[0])[:, None]
        return np.asarray(sums.reshape(self.shape) + spread)[None]

    def closed_loops(self, rules: FloatArray) -> FloatArray:
        """p(next_state | state) under each rule: [P, S, A] -> [1, P, S, S]."""
        S, A = self.shape
        where = (self.row // A) * S + self.next_state
        loops = np.stack([group_sum(where, rule.ravel()[self.row] * self.probability, S * S) for rule in rules])
        left = (rules * self.rest.reshape(S, A)).sum(axis=-1)
        return np.asarray(loops.reshape(1, -1, S, S) + left[None, :, :, None] * self.base)


class TransitionPosterior:
    """The Dirichlet posterior of a transition model, to draw from.

    Parameters
    ----------
    counts : TransitionCounts
        The log, without leading axes.
    background : float, optional
        Prior count of every (state, action, next_state). If absent the prior is drawn anew for each model from what
        the log tells of it, see `PriorGrid`.
    """

    def __init__(self, counts: TransitionCounts, background: float | None = None) -> None:
        self.num_states, self.num_actions = len(counts.states), len(counts.actions)
        self._counts = counts
        self.prior = PriorGrid.of(counts) if background is None else PriorGrid.fixed(background, counts)

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

    @cached_property
    def _rows(self) -> IntArray:
        """Rows of the entries of a draw: those seen, then the sticks of each row."""
        return np.concatenate([self._counts.row, np.repeat(np.arange(self.num_states * self.num_actions), STICKS)])

    @cached_property
    def _tensor(self) -> FloatArray:
        S, A = self.num_states, self.num_actions
        return group_sum(self._counts.key, self._counts.weight, S * A * S).reshape(S, A, S)

    def _draw_dense(self, number: int, rng: np.random.Generator) -> DenseDraws:
        mass, _ = self.prior.draw(number, rng)
        background = mass / self.num_states  # of few states the base is uniform
        gamma = rng.standard_gamma(self._tensor + background[:, None, None, None])
        total = gamma.sum(axis=-1, keepdims=True)
        even = np.full(self.num_states, 1 / self.num_states)  # all underflowed: the background is that small
        transition = np.where(total > 0, gamma / np.where(total > 0, total, 1.0), even)
        for end in self._counts.terminal:
            transition[:, end] = np.eye(self.num_states)[end]
        return DenseDraws(transition)

    def mean_closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next_state | state) under a rule [S, A] and the mean background: [S, S]."""
        counts, S, A = self._counts, self.num_states, self.num_actions
        mass, base = self.prior.mean()
        total = counts.by_state_action(counts.weight).ravel() + mass
        seen = counts.weight / total[counts.row]
        mean = SparseDraw(counts.row, counts.next_state, seen, mass / total, base, (S, A))
        loop = mean.closed_loops(rule[None])[0, 0]
        loop[counts.terminal] = np.eye(S)[counts.terminal]
        return np.asarray(loop)

    def _draw_sparse(self, rng: np.random.Generator) -> SparseDraw:
        counts, rows = self._counts, self.num_states * self.num_actions
        (prior_mass,), (kind,) = self.prior.draw(1, rng)
        base = self.prior.bases[kind]
        background = prior_mass * base.entries
        unseen = np.maximum(prior_mass - group_sum(counts.row, background, rows), 0.0)
        seen, mass = rng.standard_gamma(counts.weight + background), rng.standard_gamma(unseen)
        total = group_sum(counts.row, seen, rows) + mass
        mass, total = np.where(total > 0, mass, 1.0), np.where(total > 0, total, 1.0)
        shares, rest = _sticks(unseen, rng)
        atoms = base.draw(np.arange(rows) // self.num_actions, rng, STICKS)
        row = self._rows
        next_state = np.concatenate([counts.next_state, atoms.ravel()])
        probability = np.concatenate([seen / total[counts.row], (shares * (mass / total)[:, None]).ravel()])
        rest = rest * mass / total
        if len(self._ends):
            kept = ~np.isin(row, self._ends)
            home = self._ends // self.num_actions
            row, next_state = np.concatenate([row[kept], self._ends]), np.concatenate([next_state[kept], home])
            probability = np.concatenate([probability[kept], np.ones(len(home))])
            rest[self._ends] = 0.0
        return SparseDraw(row, next_state, probability, rest, base.table, (self.num_states, self.num_actions))


def _sticks(mass: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Shares of the first atoms of a Dirichlet process of this mass, and what they leave: [rows, STICKS], [rows].

    Each stick breaks off Beta(1, mass) of what is left.
    """
    left = np.ones(len(mass))
    shares = np.empty((len(mass), STICKS))
    for k in range(STICKS):
        one = rng.standard_exponential(len(mass))
        broken = one / (one + rng.standard_gamma(mass))
        shares[:, k] = left * broken
        left = left * (1 - broken)
    return shares, left
