"""Transition models drawn from what a log tells of them.

Given the *unweighted* counts of a log, since the world does not depend on the goal, the rows of its transition model
have Dirichlet posteriors. Their prior is not known either: how much it weighs, and in large systems what it is
centred on (all next states alike, those often entered, or those often entered from the same state), is drawn from
what the log tells of it. The mass of the unseen next states is split at random, never evenly: that would understate
the spread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    fold,
    group_sum,
    normalise,
    sample,
)
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts
from pastwise.models.prior import FEW_STATES, prior_log_likelihood, prior_masses

MOST_MASS = 50.0
"""Most mass of a row of the prior, in records."""

TOGETHER = 100_000
"""Models are drawn together up to so many entries."""


class Sparse(NamedTuple):
    """A sparse matrix by rows: where each begins [rows + 1], then columns and values of the entries."""

    first: IntArray
    column: IntArray
    value: FloatArray


class Base:
    """Where transitions lead before any was seen: a distribution over next states, alike for all states or for each.

    Parameters
    ----------
    common : [S]
        The distribution; where a state has records of its own, it weighs as much as one of them.
    entries : [distinct]
        Probability of each distinct transition of the log; without its own records, where the base is made of them.
    own : [S, S], optional
        Records of each state.
    """

    def __init__(
        self, common: FloatArray, entries: FloatArray, own: FloatArray | None = None
    ) -> None:
        self.common, self.entries, self.own = common, entries, own
        self.table = common[None] if own is None else normalise(own + common)
        self.lines = len(self.table)
        self._cumulative = (np.cumsum(self.table, axis=-1) + np.arange(self.lines)[:, None]).ravel()

    @cached_property
    def parts(self) -> Sparse:
        """Lines by what they are made of: [lines, S + 1], the states and then what is common."""
        S = len(self.common)
        own = np.zeros((1, S)) if self.own is None else self.own
        table = np.column_stack([own, np.ones(self.lines)])
        row, column = np.nonzero(table)
        return Sparse(
            np.searchsorted(row, np.arange(self.lines + 1)), column, normalise(table)[row, column]
        )

    def line(self, state: IntArray) -> IntArray:
        """Line of the table that is a state's: [...] -> [...]."""
        return np.minimum(state, self.lines - 1)

    def draw(self, state: IntArray, rng: np.random.Generator) -> IntArray:
        """A next state for each state: [...] -> [...]."""
        line = self.line(state)
        place = np.searchsorted(self._cumulative, rng.random(state.shape) + line, side="right")
        states = self.table.shape[-1]
        return np.asarray(np.clip(place - line * states, 0, states - 1))


def bases_of(counts: TransitionCounts) -> list[Base]:
    """What a prior may be centred on.

    All next states alike; for many states also how often each was entered, in the whole log, or from the same state by
    other actions.
    """
    S, n, s, following = len(counts.states), counts.weight, counts.state, counts.next_state
    uniform = Base(np.full(S, 1 / S), np.full(len(n), 1 / S))
    if S <= FEW_STATES:
        return [uniform]
    require_memory("a prior for drawn models", (S, S), "join states into fewer")
    entered = normalise(group_sum(following, n, S) + 1.0)
    pooled = group_sum(s * S + following, n, S * S).reshape(S, S)
    by_state_action = counts.by_state_action(n)
    others = by_state_action.sum(axis=-1)[s] - by_state_action[s, counts.action]
    without_own = (pooled[s, following] - n + entered[following]) / (others + 1.0)
    return [uniform, Base(entered, entered[following]), Base(entered, without_own, pooled)]


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
        mass, bases = prior_masses(len(counts.states), MOST_MASS), bases_of(counts)
        log_likelihood = np.concatenate(
            [prior_log_likelihood(counts, mass, base.entries) for base in bases]
        )
        return cls(mass, bases, normalise(np.exp(log_likelihood - log_likelihood.max())))

    @classmethod
    def fixed(cls, background: float, counts: TransitionCounts) -> PriorGrid:
        """A single prior: the same background count for every next state."""
        return cls(np.array([background * len(counts.states)]), bases_of(counts)[:1], np.ones(1))

    def draw(self, number: int, rng: np.random.Generator) -> tuple[FloatArray, Base]:
        """Masses [number], and a base for all of them."""
        by_base = self.probability.reshape(len(self.bases), -1)
        base = int(sample(by_base.sum(axis=1), np.asarray(rng.random())))
        mass = normalise(by_base[base])
        return self.mass[
            sample(np.broadcast_to(mass, (number, len(mass))), rng.random(number))
        ], self.bases[base]

    def mean(self) -> tuple[float, FloatArray]:
        """Mean mass, and the mean of the bases' tables: [1 or S, S]."""
        by_base = self.probability.reshape(len(self.bases), -1)
        table = sum(p * base.table for p, base in zip(by_base.sum(axis=1), self.bases, strict=True))
        return float(by_base.sum(axis=0) @ self.mass), np.asarray(table)


Backup = Callable[[FloatArray], FloatArray]
"""One epoch: worth after it [n, S, P + 1] -> worth before it, of P rules and then of the best action."""


class DrawnModels(Protocol):
    """Some transition models drawn from a posterior."""

    @property
    def number(self) -> int:
        """N."""
        ...

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action] of a function of the next state, or of the transition: -> [n, S, A].

        Its shape is [S], or broadcastable to [S, A, S].
        """
        ...

    def backup(self, now: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of rules [P, S, A], and of the best allowed action, where a decision earns ``now`` [n, S, A]."""
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
        """E[values | state, action] of a function [S] of the next state, or of the transition: -> [n, S, A]."""
        return np.asarray((self.transition * values).sum(axis=-1))

    def backup(self, now: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of rules [P, S, A], and of the best allowed action, where a decision earns ``now`` [n, S, A]."""
        n, S, A, _ = self.transition.shape
        rows, weight = self.transition.reshape(n, S * A, S), np.moveaxis(rules, 0, -1)
        everywhere = bool(allowed.all())

        def epoch(worth: FloatArray) -> FloatArray:
            after = now[..., None] + (rows @ worth).reshape(n, S, A, -1)
            before = np.empty(worth.shape)
            np.einsum("sap,nsap->nsp", weight, after[..., :-1], out=before[..., :-1])
            best = after[..., -1] if everywhere else np.where(allowed, after[..., -1], -np.inf)
            before[..., -1] = fold(np.maximum, best)
            return before

        return epoch


@dataclass(frozen=True, eq=False)
class SparseDraws:
    """Drawn models as sparse matrices of one pattern of rows.

    Attributes
    ----------
    first : [S * A + 1]
        Where each row begins.
    column, probability : [n, entries]
        Columns are the next states, what is common to the lines of the base, and the lines: [S + 1 + B].
    base : Base of B lines
    """

    first: IntArray
    column: IntArray
    probability: FloatArray
    base: Base

    @property
    def number(self) -> int:
        """N."""
        return len(self.probability)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action] of a function [S] of the next state, or of the transition: -> [n, S, A]."""
        S = len(self.base.common)
        if values.ndim == 1:
            return self._expect_state(values).reshape(self.number, S, -1)
        A = (len(self.first) - 1) // S
        table = np.broadcast_to(values, (S, A, S))
        based = np.einsum("san,sn->sa", table, np.broadcast_to(self.base.table, (S, S)))
        row = np.repeat(np.arange(S * A), np.diff(self.first))
        where = (row // A, row % A)
        seen = table[(*where, np.minimum(self.column, S - 1))]
        entries = self.probability * np.where(self.column < S, seen, based[where])
        return np.add.reduceat(entries, self.first[:-1], axis=-1).reshape(-1, S, A)

    def _expect_state(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [S] -> [n, S * A]."""
        from pastwise._numerics import kernels

        lanes = np.broadcast_to(values[:, None], (self.number, len(values), kernels.LANES))
        rows = np.empty((self.number, len(self.first) - 1, kernels.LANES))
        kernels.expect_rows(self.first, self.column, self.probability, self._after(lanes), rows)
        return np.asarray(rows[..., 0])

    def _after(self, values: FloatArray) -> FloatArray:
        """Values of next states, of what is common to the lines, and of the lines: [n, S, 5] -> [n, S + 1 + B, 5]."""
        from pastwise._numerics import kernels

        n, S, lanes = values.shape
        after = np.empty((n, S + 1 + self.base.lines, lanes))
        after[:, :S], after[:, S] = values, self.base.common @ values
        first, *entries = self.base.parts
        shared = (np.broadcast_to(each, (n, len(each))) for each in entries)
        kernels.expect_rows(first, *shared, after, after[:, S + 1 :])
        return after

    def backup(self, now: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of rules [P, S, A], and of the best allowed action, where a decision earns ``now`` [n, S, A]."""
        from pastwise._numerics import kernels

        P, S, A = rules.shape
        if P >= kernels.LANES:
            raise ValueError(f"at most {kernels.LANES - 1} rules at once, not {P}")
        weight, barred = np.zeros((S, A, kernels.LANES - 1)), np.zeros((S, A))
        weight[..., :P], barred[~np.broadcast_to(allowed, (S, A))] = (
            np.moveaxis(rules, 0, -1),
            -np.inf,
        )

        def epoch(worth: FloatArray) -> FloatArray:
            lanes = np.zeros((self.number, S, kernels.LANES))
            lanes[..., :P], lanes[..., -1] = worth[..., :-1], worth[..., -1]
            model, before = (self.first, self.column, self.probability), np.empty(lanes.shape)
            kernels.backup(*model, now, weight, barred, self._after(lanes), before)
            return np.concatenate([before[..., :P], before[..., -1:]], axis=-1)

        return epoch


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
        self.prior = (
            PriorGrid.of(counts) if background is None else PriorGrid.fixed(background, counts)
        )

    @property
    def draws_at_once(self) -> int:
        """How many models are drawn together: many small ones, or a single large one."""
        dense = self.num_states <= FEW_STATES
        rows = self.num_states * self.num_actions
        size = rows * self.num_states if dense else len(self._counts.row) + 2 * rows
        return int(np.clip(TOGETHER // size, 1, 200))

    def draw(self, number: int, rng: np.random.Generator) -> DrawnModels:
        """``number`` models, at most `draws_at_once`."""
        return (
            self._draw_dense(number, rng)
            if self.num_states <= FEW_STATES
            else self._draw_sparse(number, rng)
        )

    @cached_property
    def _tensor(self) -> FloatArray:
        S, A = self.num_states, self.num_actions
        return group_sum(self._counts.key, self._counts.weight, S * A * S).reshape(S, A, S)

    def _draw_dense(self, number: int, rng: np.random.Generator) -> DenseDraws:
        mass, _ = self.prior.draw(number, rng)  # of few states the base is uniform
        background = mass / self.num_states
        gamma = rng.standard_gamma(self._tensor + background[:, None, None, None])
        total = gamma.sum(axis=-1, keepdims=True)
        even = np.full(
            self.num_states, 1 / self.num_states
        )  # all underflowed: the background is that small
        transition = np.where(total > 0, gamma / np.where(total > 0, total, 1.0), even)
        for end in self._counts.terminal:
            transition[:, end] = np.eye(self.num_states)[end]
        return DenseDraws(transition)

    def mean_closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next_state | state) under a rule [S, A] and the mean background: [S, S]."""
        counts, S = self._counts, self.num_states
        mass, base = self.prior.mean()
        total = counts.by_state_action(counts.weight) + mass
        chosen = rule / total
        cells = counts.state * S + counts.next_state
        seen = group_sum(cells, chosen.ravel()[counts.row] * counts.weight, S * S).reshape(S, S)
        loop = seen + mass * chosen.sum(axis=-1, keepdims=True) * base
        loop[counts.terminal] = np.eye(S)[counts.terminal]
        return np.asarray(loop)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """Layout of a drawn model's entries, row by row: those seen, an atom of the unseen, the rest of the unseen.

        First entry of every row [rows + 1]; places of the seen entries [distinct] and of the atoms [rows].
        """
        counts, rows = self._counts, self.num_states * self.num_actions
        first = np.append(0, np.cumsum(np.bincount(counts.row, minlength=rows) + 2))
        return first, np.arange(len(counts.row)) + 2 * counts.row, first[1:] - 2

    def _draw_sparse(self, number: int, rng: np.random.Generator) -> SparseDraws:
        counts, S, A = self._counts, self.num_states, self.num_actions
        mass, base = self.prior.draw(number, rng)
        state = np.broadcast_to(np.arange(S * A) // A, (number, S * A))
        unseen = mass[:, None] * np.maximum(1 - group_sum(counts.row, base.entries, S * A), 0.0)
        seen_gamma = rng.standard_gamma(counts.weight + mass[:, None] * base.entries)
        gamma = rng.standard_gamma(unseen)
        rows = counts.row + S * A * np.arange(number)[:, None]
        total = group_sum(rows.ravel(), seen_gamma.ravel(), gamma.size).reshape(gamma.shape) + gamma
        gamma, total = np.where(total > 0, gamma, 1.0), np.where(total > 0, total, 1.0)
        left, share = gamma / total, one_atom(unseen)

        first, seen, atom = self._entries
        probability = np.empty((number, first[-1]))
        column = np.empty(probability.shape, np.int64)
        probability[:, seen], column[:, seen] = seen_gamma / np.take(total, rows), counts.next_state
        probability[:, atom], column[:, atom] = share * left, base.draw(state, rng)
        probability[:, atom + 1], column[:, atom + 1] = (1 - share) * left, S + 1 + base.line(state)
        for end in counts.terminal:
            probability[:, first[end * A] : first[(end + 1) * A]] = 0.0
            own = atom[end * A : (end + 1) * A]
            probability[:, own], column[:, own] = 1.0, end
        return SparseDraws(first, column, probability, base)


def one_atom(mass: FloatArray) -> FloatArray:
    """Share of one random atom, the rest spread as the base, that splits like a Dirichlet process of this mass.

    The mean of any function of the next state then has the mean and the variance that it has under the Dirichlet
    process: Var[base] / (1 + mass).
    """
    return np.asarray(1 / np.sqrt(1 + mass))
