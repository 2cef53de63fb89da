"""Transition models sampled from their posterior given a log.

Given the *unweighted* counts of a log, since the world does not depend on the goal, the rows of its
transition model have Dirichlet posteriors. Their prior is uncertain as well: each sample has a mass
and, in large systems, a base measure sampled from `prior.PriorGrid`.

Small systems are sampled as dense tensors. In large ones a sample keeps, for each row,

- the transitions that were seen,
- one *atom*: a next state sampled from the base measure, with a share of the unseen mass,
- the *rest* of the unseen mass, spread as the base measure.

Spreading all of the unseen mass evenly would understate the variance; see `atom_share`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, fold, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.models.prior import DENSE_STATES, BaseMeasure, PriorGrid

ENTRIES_PER_BATCH = 100_000
"""Entries of the models that are sampled together: few enough for a cache."""

MODELS_PER_BATCH = 200
"""Most models that are sampled together. Batches have random streams of their own: another size
would give other samples."""

Backup = Callable[[FloatArray], FloatArray]
"""One epoch: values after it [n, S, P + 1] -> values before it; of P rules, then of the best."""


class SampledModels(Protocol):
    """Some transition models sampled from a posterior."""

    @property
    def number(self) -> int:
        """Number of models, n."""
        ...

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action] in each model: [n, S, A].

        ``values`` is a function of the next state [S], or broadcastable to [S, A, S].
        """
        ...

    def backup(self, reward: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of several rules and of the best allowed action.

        Parameters
        ----------
        reward : [n, S, A]
            Expected immediate reward.
        rules : [P, S, A]
        allowed : broadcastable to [S, A]
        """
        ...


@dataclass(frozen=True, eq=False)
class DenseSamples:
    """Sampled models as a tensor ``transition [n, S, A, S]``; for few states."""

    transition: FloatArray

    @property
    def number(self) -> int:
        """Number of models, n."""
        return len(self.transition)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action]: [S] or broadcastable to [S, A, S] -> [n, S, A]."""
        return np.asarray((self.transition * values).sum(axis=-1))

    def backup(self, reward: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of several rules and of the best action; see `SampledModels.backup`."""
        n, S, A, _ = self.transition.shape
        rows = self.transition.reshape(n, S * A, S)
        probability = np.moveaxis(rules, 0, -1)
        all_allowed = bool(allowed.all())

        def epoch(value: FloatArray) -> FloatArray:
            # Value of each action, if each rule is followed from the next epoch on.
            q = reward[..., None] + (rows @ value).reshape(n, S, A, -1)
            q_best = q[..., -1]
            if not all_allowed:
                q_best = np.where(allowed, q_best, -np.inf)

            # Mean over the actions of each rule; maximum for the best.
            before = np.empty(value.shape)
            np.einsum("sap,nsap->nsp", probability, q[..., :-1], out=before[..., :-1])
            before[..., -1] = fold(np.maximum, q_best)
            return before

        return epoch


@dataclass(frozen=True, eq=False)
class SparseSamples:
    """Sampled models as sparse matrices of one pattern of rows.

    The columns of the matrices are the S next states, the base's common distribution, and the
    base's B lines: S + 1 + B columns. A value of a column S or S + 1 + l is thus an expectation.

    Attributes
    ----------
    first : [S * A + 1]
        Where each row begins.
    column, probability : [n, entries]
    base : BaseMeasure of B lines
    """

    first: IntArray
    column: IntArray
    probability: FloatArray
    base: BaseMeasure

    @property
    def number(self) -> int:
        """Number of models, n."""
        return len(self.probability)

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action]: [S] or broadcastable to [S, A, S] -> [n, S, A]."""
        S = self.base.num_states
        A = (len(self.first) - 1) // S
        if values.ndim == 1:
            return self._expect_next_state(values).reshape(self.number, S, A)

        # Values of the entries: of a next state, or the mean over the base.
        table = np.broadcast_to(values, (S, A, S))
        base_table = np.broadcast_to(self.base.table, (S, S))
        base_mean = np.einsum("san,sn->sa", table, base_table)
        row = np.repeat(np.arange(S * A), np.diff(self.first))
        state = row // A
        action = row % A
        is_next_state = self.column < S
        of_next_state = table[state, action, np.minimum(self.column, S - 1)]
        of_entry = np.where(is_next_state, of_next_state, base_mean[state, action])

        # Their means over each row.
        weighted = self.probability * of_entry
        return np.add.reduceat(weighted, self.first[:-1], axis=-1).reshape(-1, S, A)

    def _expect_next_state(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [S] -> [n, S * A]."""
        from pastwise._numerics import kernels

        lanes = np.broadcast_to(values[:, None], (self.number, len(values), kernels.LANES))
        means = np.empty((self.number, len(self.first) - 1, kernels.LANES))
        by_column = self._by_column(lanes)
        kernels.expect_rows(self.first, self.column, self.probability, by_column, means)
        return np.asarray(means[..., 0])

    def _by_column(self, values: FloatArray) -> FloatArray:
        """Values of every column, from those of next states: [n, S, 5] -> [n, S + 1 + B, 5]."""
        from pastwise._numerics import kernels

        n, S, lanes = values.shape
        by_column = np.empty((n, S + 1 + self.base.num_lines, lanes))
        by_column[:, :S] = values
        by_column[:, S] = self.base.common @ values

        # Each line of the base is a mixture of the columns before.
        mixture = self.base.mixture
        column = np.broadcast_to(mixture.column, (n, len(mixture.column)))
        weight = np.broadcast_to(mixture.value, (n, len(mixture.value)))
        kernels.expect_rows(mixture.first, column, weight, by_column, by_column[:, S + 1 :])
        return by_column

    def backup(self, reward: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of several rules and of the best action; see `SampledModels.backup`.

        The compiled loop takes four rules and the best action at a time.
        """
        from pastwise._numerics import kernels

        P, S, A = rules.shape
        penalty = np.zeros((S, A))
        penalty[~np.broadcast_to(allowed, (S, A))] = -np.inf

        # Groups of rules, the last one filled up with zeros.
        rules_per_group = kernels.LANES - 1
        groups = []
        for start in range(0, max(P, 1), rules_per_group):
            members = slice(start, min(start + rules_per_group, P))
            of_group = rules[members]
            probability = np.zeros((S, A, rules_per_group))
            probability[..., : len(of_group)] = np.moveaxis(of_group, 0, -1)
            groups.append((members, len(of_group), probability))

        def epoch(value: FloatArray) -> FloatArray:
            before = np.empty((self.number, S, P + 1))
            for members, size, probability in groups:
                lanes = np.zeros((self.number, S, kernels.LANES))
                lanes[..., :size] = value[..., members]
                lanes[..., -1] = value[..., -1]
                lanes_before = np.empty(lanes.shape)
                kernels.backup(
                    self.first,
                    self.column,
                    self.probability,
                    reward,
                    probability,
                    penalty,
                    self._by_column(lanes),
                    lanes_before,
                )
                before[..., members] = lanes_before[..., :size]
                before[..., -1] = lanes_before[..., -1]
            return before

        return epoch


class _Layout(NamedTuple):
    """Where the entries of a sparse sample are: in each row those seen, the atom, the rest."""

    first: IntArray
    """First entry of every row: [S * A + 1]."""
    seen: IntArray
    """Entries of the distinct transitions of the log: [distinct]."""
    atom: IntArray
    """Entry of each row's atom: [S * A]."""
    rest: IntArray
    """Entry of the rest of each row's unseen mass: [S * A]."""


class TransitionPosterior:
    """The Dirichlet posterior of a transition model, to sample from.

    Parameters
    ----------
    counts : TransitionCounts
        The log, without leading axes.
    background : float, optional
        Prior count of every (state, action, next_state). By default the prior of each model is
        sampled given the log; see `PriorGrid`.
    dense_up_to : int
        Up to this many states samples are dense; see `prior.DENSE_STATES`.
    """

    def __init__(
        self,
        counts: TransitionCounts,
        background: float | None = None,
        *,
        dense_up_to: int = DENSE_STATES,
    ) -> None:
        self.num_states = len(counts.states)
        self.num_actions = len(counts.actions)
        self._counts = counts
        self._is_dense = self.num_states <= dense_up_to
        if background is None:
            self.prior = PriorGrid.of(counts, dense_up_to=dense_up_to)
        else:
            self.prior = PriorGrid.fixed(background, counts)

    @property
    def batch_size(self) -> int:
        """How many models are sampled together: many small ones, or a single large one."""
        num_rows = self.num_states * self.num_actions
        if self._is_dense:
            entries = num_rows * self.num_states
        else:
            entries = len(self._counts.row) + 2 * num_rows
        return int(np.clip(ENTRIES_PER_BATCH // entries, 1, MODELS_PER_BATCH))

    def sample(self, number: int, rng: np.random.Generator) -> SampledModels:
        """``number`` models, at most `batch_size`."""
        if self._is_dense:
            return self._sample_dense(number, rng)
        return self._sample_sparse(number, rng)

    def mean_closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next_state | state) of the mean model under a rule [S, A]: [S, S]."""
        counts = self._counts
        S = self.num_states
        mass, base = self.prior.mean()

        # The mean model is (count + mass * base) / total.
        total = counts.by_state_action(counts.weight) + mass
        rule_by_total = rule / total
        pair = counts.state * S + counts.next_state
        seen = group_sum(pair, rule_by_total.ravel()[counts.row] * counts.weight, S * S)
        unseen = mass * rule_by_total.sum(axis=-1, keepdims=True) * base
        loop = seen.reshape(S, S) + unseen

        # Terminal states are never left.
        loop[counts.terminal] = np.eye(S)[counts.terminal]
        return np.asarray(loop)

    @cached_property
    def _tensor(self) -> FloatArray:
        """The counts: [S, A, S]."""
        shape = (self.num_states, self.num_actions, self.num_states)
        size = self.num_states * self.num_actions * self.num_states
        return group_sum(self._counts.key, self._counts.weight, size).reshape(shape)

    def _sample_dense(self, number: int, rng: np.random.Generator) -> DenseSamples:
        # A Dirichlet sample is a vector of gamma samples, divided by their sum.
        mass, _ = self.prior.sample(number, rng)  # the base of a small system is uniform
        background = mass / self.num_states
        gamma = rng.standard_gamma(self._tensor + background[:, None, None, None])
        total = gamma.sum(axis=-1, keepdims=True)

        # With a very small background all of them may underflow: such a row is uniform.
        uniform = np.full(self.num_states, 1 / self.num_states)
        transition = np.where(total > 0, gamma / np.where(total > 0, total, 1.0), uniform)

        # Terminal states are never left.
        for end in self._counts.terminal:
            transition[:, end] = np.eye(self.num_states)[end]
        return DenseSamples(transition)

    @cached_property
    def _layout(self) -> _Layout:
        counts = self._counts
        num_rows = self.num_states * self.num_actions
        entries_per_row = np.bincount(counts.row, minlength=num_rows) + 2
        first = np.append(0, np.cumsum(entries_per_row))
        seen = np.arange(len(counts.row)) + 2 * counts.row
        return _Layout(first, seen, atom=first[1:] - 2, rest=first[1:] - 1)

    def _sample_sparse(self, number: int, rng: np.random.Generator) -> SparseSamples:
        counts = self._counts
        S = self.num_states
        A = self.num_actions
        num_rows = S * A
        state = np.broadcast_to(np.arange(num_rows) // A, (number, num_rows))

        # The prior, and its mass on the unseen next states of each row.
        mass, base = self.prior.sample(number, rng)
        seen_by_base = group_sum(counts.row, base.of_transition, num_rows)
        unseen_mass = mass[:, None] * np.maximum(1 - seen_by_base, 0.0)

        # A Dirichlet sample is a vector of gamma samples, divided by their sum over the row.
        seen_gamma = rng.standard_gamma(counts.weight + mass[:, None] * base.of_transition)
        unseen_gamma = rng.standard_gamma(unseen_mass)
        row = counts.row + num_rows * np.arange(number)[:, None]
        seen_total = group_sum(row.ravel(), seen_gamma.ravel(), unseen_gamma.size)
        total = seen_total.reshape(unseen_gamma.shape) + unseen_gamma

        # Where all of them underflowed, the row is unseen.
        unseen_gamma = np.where(total > 0, unseen_gamma, 1.0)
        total = np.where(total > 0, total, 1.0)
        unseen = unseen_gamma / total

        # Entries: transitions that were seen, an atom of the unseen mass, and the rest of it.
        layout = self._layout
        probability = np.empty((number, layout.first[-1]))
        column = np.empty(probability.shape, np.int64)
        share = atom_share(unseen_mass)
        probability[:, layout.seen] = seen_gamma / np.take(total, row)
        column[:, layout.seen] = counts.next_state
        probability[:, layout.atom] = share * unseen
        column[:, layout.atom] = base.sample(state, rng)
        probability[:, layout.rest] = (1 - share) * unseen
        column[:, layout.rest] = S + 1 + base.line(state)

        # Terminal states are never left: all the probability of their rows is at the atom.
        for end in counts.terminal:
            of_end = slice(end * A, (end + 1) * A)
            probability[:, layout.first[end * A] : layout.first[(end + 1) * A]] = 0.0
            probability[:, layout.atom[of_end]] = 1.0
            column[:, layout.atom[of_end]] = end
        return SparseSamples(layout.first, column, probability, base)


def atom_share(mass: FloatArray) -> FloatArray:
    """Share of the atom that gives the unseen mass the variance of a Dirichlet process.

    Under a Dirichlet process of mass m and base b, the mean of any function f of the next state has
    the expectation E_b[f] and the variance Var_b[f] / (1 + m). One atom sampled from b, with the
    share 1 / sqrt(1 + m), and the rest spread as b give the same two moments.
    """
    return np.asarray(1 / np.sqrt(1 + mass))
