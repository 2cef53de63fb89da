"""Transition models sampled from a posterior, and expectations under them.

Small systems are sampled as dense tensors. In large ones a sample keeps, for each row,

- the transitions that were seen,
- one *atom*: a next state sampled from the chain of the state, with a share of the rest,
- the remainder, spread as the chain.

Spreading all of the rest evenly would understate the variance; see `atom_share`. `hierarchy`
samples them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, fold

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
        rules : [1 or n, P, S, A]
            The same for all models, or for each its own.
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
        probability = np.moveaxis(rules, 1, -1)
        all_allowed = bool(allowed.all())

        def epoch(value: FloatArray) -> FloatArray:
            # Value of each action, if each rule is followed from the next epoch on.
            q = reward[..., None] + (rows @ value).reshape(n, S, A, -1)
            q_best = q[..., -1]
            if not all_allowed:
                q_best = np.where(allowed, q_best, -np.inf)

            # Mean over the actions of each rule; maximum for the best.
            before = np.empty(value.shape)
            (probability * q[..., :-1]).sum(axis=2, out=before[..., :-1])
            before[..., -1] = fold(np.maximum, q_best)
            return before

        return epoch


@dataclass(frozen=True, eq=False)
class SparseSamples:
    """Sampled models as sparse matrices of one pattern of rows.

    A row has the transitions that were seen, an atom of the rest of its probability, and a line on
    which the remainder is spread. The columns of the matrices are the S next states; *elsewhere*,
    the states that no chain lists; and two lines for each state, its chain for actions that were
    taken there and its leaning chain for the others: S + 1 + 2 S columns. A value of the columns
    from S on is thus an expectation.

    Attributes
    ----------
    first : [S * A + 1]
        Where each row begins.
    column, probability : [n, entries]
    line_first : [n, 2 * S + 1]
        Where each line begins: the chains, then the leaning chains.
    line_column, lines : [n, c]
        Their next states, or elsewhere, and probabilities.
    common : [S]
        Distribution of elsewhere.
    """

    first: IntArray
    column: IntArray
    probability: FloatArray
    line_first: IntArray
    line_column: IntArray
    lines: FloatArray
    common: FloatArray

    @property
    def number(self) -> int:
        """Number of models, n."""
        return len(self.probability)

    @property
    def _shape(self) -> tuple[int, int, int]:
        """n, S, A."""
        S = len(self.common)
        return self.number, S, (len(self.first) - 1) // S

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action]: [S] or broadcastable to [S, A, S] -> [n, S, A]."""
        from pastwise._numerics import kernels
        from pastwise.models import gibbs

        n, S, A = self._shape
        if values.ndim == 1:
            lanes = np.broadcast_to(values[:, None], (n, S, kernels.LANES))
            means = np.empty((n, S * A, kernels.LANES))
            by_column = self._by_column(lanes)
            kernels.expect_rows(self.first, self.column, self.probability, by_column, means)
            return means[..., 0].reshape(n, S, A)

        table = np.ascontiguousarray(np.broadcast_to(values, (S, A, S)))
        out = np.empty((n, S, A))
        gibbs.expect_table(
            self.first,
            self.column,
            self.probability,
            self.line_first,
            self.line_column,
            self.lines,
            table @ self.common,
            table,
            out,
        )
        return out

    def _by_column(self, values: FloatArray) -> FloatArray:
        """Values of every column, from those of next states: [n, S, k] -> [n, S + 1 + 2 S, k]."""
        from pastwise.models import gibbs

        n, S, num_values = values.shape
        by_column = np.empty((n, S + 1 + 2 * S, num_values))
        gibbs.expect_lines(
            self.line_first, self.line_column, self.lines, self.common, values, by_column
        )
        return by_column

    def backup(self, reward: FloatArray, rules: FloatArray, allowed: BoolArray) -> Backup:
        """One epoch of several rules and of the best action; see `SampledModels.backup`.

        The compiled loop takes four rules and the best action at a time.
        """
        from pastwise._numerics import kernels

        num_sets, P, S, A = rules.shape
        penalty = np.zeros((S, A))
        penalty[~np.broadcast_to(allowed, (S, A))] = -np.inf

        # Groups of rules, the last one filled up with zeros.
        rules_per_group = kernels.LANES - 1
        groups = []
        for start in range(0, max(P, 1), rules_per_group):
            members = slice(start, min(start + rules_per_group, P))
            of_group = rules[:, members]
            size = of_group.shape[1]
            probability = np.zeros((num_sets, S, A, rules_per_group))
            probability[..., :size] = np.moveaxis(of_group, 1, -1)
            groups.append((members, size, probability))

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


def atom_share(mass: FloatArray) -> FloatArray:
    """Share of the atom that gives the unseen mass the variance of a Dirichlet process.

    Under a Dirichlet process of mass m and base b, the mean of any function f of the next state has
    the expectation E_b[f] and the variance Var_b[f] / (1 + m). One atom sampled from b, with the
    share 1 / sqrt(1 + m), and the rest spread as b give the same two moments.
    """
    return np.asarray(1 / np.sqrt(1 + mass))
