"""Transition models sampled from a posterior, and expectations under them.

Small systems are sampled as dense tensors. In large ones a sample keeps, for each row,

- the transitions that were seen,
- one *atom*: a next state sampled from the chain of the state, with a share of the rest,
- the remainder, spread as the chain.

Spreading all of the rest evenly would understate the variance; see `sparse_models.atom_share`.
`hierarchy` samples them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from pastwise.models import recursion


class Epochs(NamedTuple):
    """Which epochs count, and how exactly.

    Attributes
    ----------
    number : int
        The horizon.
    goes_on : [S]
        0 for states in which an episode has ended, so that nothing is added from there on; 1 for
        others.
    max_error : float
        Largest error of the values: recursions stop early where they may.
    """

    number: int
    goes_on: FloatArray
    max_error: float = 0.0


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

    def expect_own(self, values: FloatArray) -> FloatArray:
        """The same of a function of the next state that each model has for itself: [n, S]."""
        ...

    def rule_values(self, reward: FloatArray, rules: FloatArray, epochs: Epochs) -> FloatArray:
        """Total reward of several rules over all epochs, from each state: [n, S, P].

        Parameters
        ----------
        reward : [n, S, A]
            Expected reward of each decision.
        rules : [1 or n, P, S, A]
            The same for all models, or for each its own.
        """
        ...

    def best_values(self, reward: FloatArray, allowed: BoolArray, epochs: Epochs) -> FloatArray:
        """Largest total reward of allowed actions over all epochs, from each state: [n, S].

        Parameters
        ----------
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

    def expect_own(self, values: FloatArray) -> FloatArray:
        """E[values | state, action] of each model's own values: [n, S] -> [n, S, A]."""
        return np.asarray((self.transition * values[:, None, None, :]).sum(axis=-1))

    def rule_values(self, reward: FloatArray, rules: FloatArray, epochs: Epochs) -> FloatArray:
        """Total reward of several rules; see `SampledModels.rule_values`."""
        return self.as_sparse().rule_values(reward, rules, epochs)

    def best_values(self, reward: FloatArray, allowed: BoolArray, epochs: Epochs) -> FloatArray:
        """Largest total reward; see `SampledModels.best_values`."""
        return self.as_sparse().best_values(reward, allowed, epochs)

    def as_sparse(self) -> SparseSamples:
        """The same models with every next state in every row, and nothing else."""
        n, S, A, _ = self.transition.shape
        no_lines = np.zeros((n, 0))
        return SparseSamples(
            first=S * np.arange(S * A + 1),
            column=np.tile(np.arange(S), (n, S * A)),
            probability=np.ascontiguousarray(self.transition.reshape(n, -1)),
            line_first=np.zeros((n, 2 * S + 1), np.int64),
            line_column=no_lines.astype(np.int64),
            lines=no_lines,
            common=np.full(S, 1 / S),
        )


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

    def _compiled(self) -> recursion.Models:
        """The same for compiled loops."""
        from pastwise.models import recursion

        return recursion.Models(
            self.first,
            self.column,
            self.probability,
            self.line_first,
            self.line_column,
            self.lines,
            self.common,
        )

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values | state, action]: [S] or broadcastable to [S, A, S] -> [n, S, A]."""
        from pastwise.models import sparse_models

        n, S, A = self._shape
        if values.ndim == 1:
            return self.expect_own(values[None])

        table = np.ascontiguousarray(np.broadcast_to(values, (S, A, S)))
        out = np.empty((n, S, A))
        sparse_models.expect_table(
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

    def expect_own(self, values: FloatArray) -> FloatArray:
        """E[values | state, action] of each model's own values: [1 or n, S] -> [n, S, A]."""
        from pastwise.models import recursion

        n, S, A = self._shape
        means = np.empty((n, S * A))
        recursion.expect(self._compiled(), np.ascontiguousarray(values, np.float64), means)
        return means.reshape(n, S, A)

    def rule_values(self, reward: FloatArray, rules: FloatArray, epochs: Epochs) -> FloatArray:
        """Total reward of several rules; see `SampledModels.rule_values`.

        The compiled loop takes four rules at a time.
        """
        from pastwise.models import recursion

        n, S, A = self._shape
        num_sets, P, _, _ = rules.shape
        result = np.empty((n, S, P))
        for start in range(0, P, recursion.LANES):
            of_group = rules[:, start : start + recursion.LANES]
            size = of_group.shape[1]
            lanes = np.zeros((num_sets, S, A, recursion.LANES))
            lanes[..., :size] = np.moveaxis(of_group, 1, -1)
            values = np.empty((n, S, recursion.LANES))
            recursion.rule_values(self._compiled(), lanes, reward, epochs, values)
            result[..., start : start + size] = values[..., :size]
        return result

    def best_values(self, reward: FloatArray, allowed: BoolArray, epochs: Epochs) -> FloatArray:
        """Largest total reward; see `SampledModels.best_values`."""
        from pastwise.models import recursion

        n, S, A = self._shape
        penalty = np.zeros((S, A))
        penalty[~np.broadcast_to(allowed, (S, A))] = -np.inf
        values = np.empty((n, S))
        recursion.best_values(self._compiled(), reward, penalty, epochs, values)
        return values
