r"""The Dirichlet prior of the rows of a transition model, inferred from the log itself.

The row of each state and action has the prior :math:`\mathrm{Dirichlet}(m\,b)`: a *mass* m, in
records, and a *base measure* b, a distribution over next states. With counts :math:`n_k` of a row
and :math:`n = \sum_k n_k`, the log has the Dirichlet-multinomial likelihood

.. math::

    \prod_{\text{rows}} \frac{\Gamma(m)}{\Gamma(m + n)}
    \prod_k \frac{\Gamma(m b_k + n_k)}{\Gamma(m b_k)} .

Rows that resemble the base make a large mass likely, rows that differ from it a small one. The mass
is log-uniform on a grid. A posterior mean (`belief`) uses its geometric mean, `inferred_mass`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.special import gammaln

from pastwise._numerics.arrays import FloatArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.models.rows import SparseRows

DENSE_STATES = 32
"""Up to this many states a posterior or a sampled model is a dense tensor, and the base measure is
uniform: so small a tensor is faster than sparse rows, and rows so short need no better guess."""


# The base measure


@dataclass(frozen=True, eq=False)
class BaseMeasure:
    """The prior's mean: a distribution over next states, common to all states or of each state.

    The distribution of a state is its records, plus the common distribution with the weight of one
    record: (state_records[state] + common) / (state_weight[state] + 1).

    Attributes
    ----------
    common : [S]
        The common distribution.
    of_transition : [distinct]
        Probability of each distinct transition of the log, for the likelihood. Where the base is
        made of records, those of the transition's own row are left out.
    state_records : SparseRows [S, S], optional
        Records of each state, of all actions, by next state.
    state_weight : [S], optional
        Their sums.
    """

    common: FloatArray
    of_transition: FloatArray
    state_records: SparseRows | None = None
    state_weight: FloatArray | None = None

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.common)

    @property
    def num_lines(self) -> int:
        """Number of distributions: 1 or S."""
        return 1 if self.state_records is None else self.num_states

    @cached_property
    def _dense_records(self) -> FloatArray:
        """Records of each line: [lines, S]."""
        if self.state_records is None:
            return np.zeros((1, self.num_states))
        return self.state_records.dense(np.arange(self.num_states))

    @cached_property
    def table(self) -> FloatArray:
        """The distributions in dense form: [lines, S]."""
        if self.state_records is None:
            return self.common[None]
        return normalise(self._dense_records + self.common)

    def mean(self, values: FloatArray) -> FloatArray:
        """E[values(next_state)] of k functions, without dense tables: [S, k] -> [lines, k]."""
        if self.state_records is None or self.state_weight is None:
            return np.asarray(self.common @ values)[None]
        recorded = self.state_records.matrix @ values
        return np.asarray((recorded + self.common @ values) / (self.state_weight + 1.0)[:, None])

    def mean_each(self, values: FloatArray, num_actions: int) -> FloatArray:
        """E[values(state, action, next_state)]: [1 or S, 1 or A, S] -> [1 or S, A]."""
        columns = []
        for action in range(num_actions):
            table = values[:, min(action, values.shape[1] - 1)]
            columns.append(self._mean_of_states(table))
        return np.stack(columns, axis=-1)

    def _mean_of_states(self, values: FloatArray) -> FloatArray:
        """E[values(state, next_state)]: [1 or S, S] -> [1 or S]."""
        common = values @ self.common
        if self.state_records is None or self.state_weight is None:
            return np.asarray(common)
        if len(values) == 1:
            recorded = self.state_records.matrix @ values[0]
        else:
            products = self.state_records.matrix.multiply(values)
            recorded = products.sum(axis=1, dtype=np.float64)
        return np.asarray((recorded + common) / (self.state_weight + 1.0))


def uniform_base(counts: TransitionCounts) -> BaseMeasure:
    """All next states equally likely."""
    probability = 1 / len(counts.states)
    common = np.full(len(counts.states), probability)
    return BaseMeasure(common, np.full(len(counts.weight), probability))


def _entered(counts: TransitionCounts) -> FloatArray:
    """How often each state was entered in the whole log, plus one, as a distribution: [S]."""
    return normalise(group_sum(counts.next_state, counts.weight, len(counts.states)) + 1.0)


def same_state_base(counts: TransitionCounts) -> BaseMeasure:
    """Next states as likely as they followed the same state, after any action."""
    num_states = len(counts.states)
    state = counts.state
    next_state = counts.next_state
    common = _entered(counts)

    # Records of each state and next state.
    pair, place = np.unique(state * num_states + next_state, return_inverse=True)
    pair_weight = group_sum(place, counts.weight, len(pair))
    first = np.searchsorted(pair, np.arange(num_states + 1) * num_states)
    state_records = SparseRows(first, pair % num_states, pair_weight, num_states)

    # For the likelihood of a row, the records of the state's other actions only.
    row_weight = counts.by_state_action(counts.weight)
    state_weight = row_weight.sum(axis=-1)
    others = pair_weight[place] - counts.weight + common[next_state]
    others_weight = state_weight[state] - row_weight[state, counts.action] + 1.0
    return BaseMeasure(common, others / others_weight, state_records, state_weight)


# The mass


def prior_masses(
    num_states: int,
    *,
    largest: float,
    largest_background: float = 2.0,
    smallest: float = 0.05,
    number: int = 25,
) -> FloatArray:
    """The masses that a prior may have, in records, growing by a constant factor: [number].

    Parameters
    ----------
    num_states : int
    largest : float
        Largest mass of a row. Each user of the grid states its own.
    largest_background : float
        Largest mass per next state: 2 is twice the uniform prior, which matters below 15 states.
    smallest : float
        Smallest mass: with 0.05 records a single observation outweighs the prior 20 times, so that
        still smaller masses make no difference.
    number : int
        Size of the grid. Neighbours differ by a factor of 1.3, less than a log can distinguish.
    """
    return np.geomspace(smallest, min(largest, largest_background * num_states), number)


def prior_log_likelihood(
    counts: TransitionCounts, mass: FloatArray, base: FloatArray
) -> FloatArray:
    """Log-likelihood of the log for each mass of the prior: [..., grid].

    Parameters
    ----------
    counts : TransitionCounts
        With leading axes, the logs of independent systems.
    mass : [grid]
    base : [distinct]
        Probability of each distinct transition under the base measure.
    """
    num_systems = prod(counts.shape)
    rows_per_system = len(counts.states) * len(counts.actions)
    system = counts.row // rows_per_system

    # Gamma(m) / Gamma(m + n) of every row.
    row_total = counts.by_state_action(counts.weight).reshape(num_systems, rows_per_system)
    of_rows = [(gammaln(m) - gammaln(row_total + m)).sum(axis=-1) for m in mass]

    # Transitions seen once, most of a large log: Gamma(m b + 1) / Gamma(m b) is m b.
    once = counts.weight == 1
    num_once = group_sum(system, once, num_systems)
    of_once = np.outer(num_once, np.log(mass))
    of_once += group_sum(system[once], np.log(base[once]), num_systems)[:, None]

    # The others: Gamma(m b + n_k) / Gamma(m b).
    weight = counts.weight[~once]
    base_of_others = base[~once]
    system_of_others = system[~once]
    of_others = []
    for m in mass:
        ratio = gammaln(weight + m * base_of_others) - gammaln(m * base_of_others)
        of_others.append(group_sum(system_of_others, ratio, num_systems))

    log_likelihood = np.stack(of_rows, axis=-1) + of_once + np.stack(of_others, axis=-1)
    return np.asarray(log_likelihood).reshape(*counts.shape, -1)


def inferred_mass(
    counts: TransitionCounts, base: FloatArray, *, largest_mass: float = 30.0
) -> FloatArray:
    """Geometric mean of the prior's mass given the log: [...].

    Parameters
    ----------
    counts : TransitionCounts
    base : [distinct]
        Probability of each distinct transition under the base measure.
    largest_mass : float
        End of the grid. A plan acts on this one number for every row: beyond 30 records of prior,
        what a row has seen hardly moves the plan.
    """
    mass = prior_masses(len(counts.states), largest=largest_mass)
    log_likelihood = prior_log_likelihood(counts, mass, base)
    largest = log_likelihood.max(axis=-1, keepdims=True)
    probability = normalise(np.exp(log_likelihood - largest))
    return np.asarray(np.exp(probability @ np.log(mass)))
