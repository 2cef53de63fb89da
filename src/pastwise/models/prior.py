r"""The prior of the rows of a transition model, in closed form: what a planner uses.

It is the hierarchy of `hierarchy` with single numbers in the place of samples. The row of each
state and action has the prior :math:`\mathrm{Dirichlet}(m\,b_s)`: a *mass* m, in records, and a
mean b. Two hypotheses about the mean are weighed:

- rows are *unrelated*: b is uniform;
- rows of a state are *related*: b is the chain of the state, where it leads after any action,

.. math::

    c_s = \frac{n_s + \kappa\, g_s}{\sum_k n_{sk} + \kappa},

with the records :math:`n_s` of the state by next state, a base measure :math:`g_s` and its pull
:math:`\kappa`. With counts :math:`n_k` of a row and :math:`n = \sum_k n_k`, the log has the
Dirichlet-multinomial likelihood

.. math::

    \prod_{\text{rows}} \frac{\Gamma(m)}{\Gamma(m + n)}
    \prod_k \frac{\Gamma(m b_k + n_k)}{\Gamma(m b_k)} ,

where the chain of a row is that of the other rows of its state: a prior made of the row's own
records would confirm itself. The likelihood weighs the masses of a grid and the two hypotheses.
The prior has the mean of b, and the geometric mean of m.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, prod

import numpy as np
from scipy.special import gammaln

from pastwise._numerics.arrays import FloatArray, IntArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.models.hierarchy import (
    DEFAULT_ASSUMPTIONS,
    Assumptions,
    base_measures,
    neighbourhoods,
)
from pastwise.models.rows import SparseRows

# Chains.


@dataclass(frozen=True, eq=False)
class Chains:
    """Where each state leads after any action: records, and a base measure with a pull.

    Leading axes of the log are flattened: there are N systems.

    Attributes
    ----------
    shape : tuple of int
        Leading axes.
    num_states : int
    state : [pairs]
        System and state of each distinct pair of state and next state: system * S + state.
    next_state : [pairs]
    records : [pairs]
    state_records : [N * S]
        Records of each state.
    base : [N, 1 or S, S]
        Base measures, of each state or common to all.
    pull : float
        Weight of the base measure, in records.
    """

    shape: tuple[int, ...]
    num_states: int
    state: IntArray
    next_state: IntArray
    records: FloatArray
    state_records: FloatArray
    base: FloatArray
    pull: float

    @classmethod
    def of(
        cls,
        counts: TransitionCounts,
        *,
        pull: float | None = None,
        neighbourhoods_up_to: int = 150,
        assumptions: Assumptions = DEFAULT_ASSUMPTIONS,
    ) -> Chains:
        """The chains of a log.

        Parameters
        ----------
        counts : TransitionCounts
            With leading axes, the logs of independent systems.
        pull : float, optional
            The geometric mean of ``assumptions.pulls`` by default.
        neighbourhoods_up_to : int
            Up to this many states, the base measure of a state is half its neighbourhood. Larger
            systems have a common base measure: a plan uses the base in every epoch, and a table of
            150 states costs it less than its records do.
        assumptions : Assumptions
        """
        num_states = len(counts.states)
        num_systems = prod(counts.shape)
        if pull is None:
            pull = float(np.exp(np.log(assumptions.pulls).mean()))

        # Records of each state and next state.
        system_and_state = counts.row // len(counts.actions)
        pair, place = np.unique(
            system_and_state * num_states + counts.next_state, return_inverse=True
        )
        records = group_sum(place, counts.weight, len(pair))
        state = pair // num_states
        next_state = pair % num_states

        # The most cautious base measure: a bit of everything.
        if num_states <= neighbourhoods_up_to:
            size = num_systems * num_states * num_states
            pooled = group_sum(pair, records, size).reshape(num_systems, num_states, num_states)
            near = neighbourhoods(pooled, counts.terminal)
            base = base_measures(pooled, near, assumptions)[-1]
        else:
            place_entered = (state // num_states) * num_states + next_state
            entered = group_sum(place_entered, records, num_systems * num_states)
            entered = entered.reshape(num_systems, 1, num_states)
            base = 0.5 * normalise(entered + 1 / num_states) + 0.5 / num_states
        state_records = group_sum(state, records, num_systems * num_states)
        return cls(counts.shape, num_states, state, next_state, records, state_records, base, pull)

    def _base_at(self, state: IntArray, next_state: IntArray) -> FloatArray:
        """The base measure at some pairs: [n]."""
        system, line = np.divmod(state, self.num_states)
        return np.asarray(self.base[system, np.minimum(line, self.base.shape[1] - 1), next_state])

    def without_own_row(self, counts: TransitionCounts) -> FloatArray:
        """Probability of each distinct transition by the other rows of its state: [distinct]."""
        state = counts.row // len(counts.actions)
        pair = np.searchsorted(
            self.state * self.num_states + self.next_state,
            state * self.num_states + counts.next_state,
        )
        row_records = counts.by_state_action(counts.weight).ravel()
        others = np.maximum(self.records[pair] - counts.weight, 0.0)
        others_total = np.maximum(self.state_records[state] - row_records[counts.row], 0.0)
        base = self._base_at(state, counts.next_state)
        return np.asarray((others + self.pull * base) / (others_total + self.pull))

    def table(self) -> FloatArray:
        """The chains in dense form: [..., S, S]."""
        S = self.num_states
        num_systems = prod(self.shape)
        pooled = group_sum(self.state * S + self.next_state, self.records, num_systems * S * S)
        total = self.state_records.reshape(num_systems, S, 1) + self.pull
        table = (pooled.reshape(num_systems, S, S) + self.pull * self.base) / total
        return np.asarray(table).reshape(*self.shape, S, S)

    @cached_property
    def _rows(self) -> SparseRows:
        """The records of a single system: [S, S]."""
        first = np.searchsorted(self.state, np.arange(self.num_states + 1))
        return SparseRows(first, self.next_state, self.records, self.num_states)

    def mean(self, values: FloatArray) -> FloatArray:
        """E[values(next_state)] of k functions in a single system: [S, k] -> [S, k]."""
        total = np.asarray(self._rows.matrix @ values)
        total += self.pull * (self.base[0] @ values)
        total /= (self.state_records + self.pull)[:, None]
        return total

    def mean_of_table(self, values: FloatArray) -> FloatArray:
        """E[values(state, next_state)] in a single system: [1 or S, S] -> [S]."""
        if len(values) == 1:
            return self.mean(values[0][:, None])[:, 0]
        recorded = self._rows.matrix.multiply(values).sum(axis=1, dtype=np.float64)
        base = np.einsum("sn,sn->s", np.broadcast_to(self.base[0], values.shape), values)
        return np.asarray((recorded + self.pull * base) / (self.state_records + self.pull))


# Mass and hypothesis.


def prior_masses(
    num_states: int,
    *,
    largest: float = 30.0,
    largest_background: float = 2.0,
    smallest: float = 0.05,
    number: int = 13,
) -> FloatArray:
    """The masses that a prior may have, in records, growing by a constant factor: [number].

    Parameters
    ----------
    num_states : int
    largest : float
        Largest mass of a row. A plan acts on one number for every row, so the grid ends earlier
        than that of `Assumptions`: with a mass of hundreds, what a row has seen would hardly move
        the plan, and nothing would be left to explore. Without this end TL_foresight lost three
        visits of 46 in the paper's study, after a past with another goal.
    largest_background : float
        Largest mass per next state: 2 is twice the uniform prior, which matters below 15 states.
    smallest : float
        Smallest mass: with 0.05 records a single observation outweighs the prior 20 times, so that
        still smaller masses make no difference.
    number : int
        Size of the grid. Neighbours differ by a factor of 1.7 at most; a log hardly distinguishes
        them, and the mean over the grid lies between them.
    """
    return np.geomspace(smallest, min(largest, largest_background * num_states), number)


def prior_log_likelihood(
    counts: TransitionCounts, mass: FloatArray, base: FloatArray | float
) -> FloatArray:
    """Log-likelihood of the log for each mass of the prior: [..., grid].

    Parameters
    ----------
    counts : TransitionCounts
        With leading axes, the logs of independent systems.
    mass : [grid]
    base : [distinct] or float
        Probability of each distinct transition under the prior's mean, or of all of them.
    """
    num_systems = prod(counts.shape)
    rows_per_system = len(counts.states) * len(counts.actions)

    # Gamma(m) / Gamma(m + n) of every row that has records.
    row_total = counts.by_state_action(counts.weight).ravel()
    row = np.flatnonzero(row_total)
    of_rows = _log_rising(mass, row_total[row], row // rows_per_system, num_systems)

    # Transitions seen once, most of a large log: Gamma(m b + 1) / Gamma(m b) is m b.
    system = counts.row // rows_per_system
    base_of_all = np.broadcast_to(base, counts.weight.shape)
    once = counts.weight == 1
    num_once = group_sum(system, once, num_systems)
    of_once = np.outer(num_once, np.log(mass))
    of_once += group_sum(system[once], np.log(base_of_all[once]), num_systems)[:, None]

    # The others: Gamma(m b + n_k) / Gamma(m b).
    weight = counts.weight[~once]
    if np.ndim(base) == 0:
        of_others = _log_rising(mass * base, weight, system[~once], num_systems)
    else:
        of_others = np.empty((num_systems, len(mass)))
        for place, m in enumerate(mass):
            start = m * base_of_all[~once]
            ratio = gammaln(start + weight) - gammaln(start)
            of_others[:, place] = group_sum(system[~once], ratio, num_systems)
    return np.asarray(of_once + of_others - of_rows).reshape(*counts.shape, -1)


def _log_rising(
    start: FloatArray, number: FloatArray, system: IntArray, num_systems: int
) -> FloatArray:
    """Sum of ln Gamma(start + number) / Gamma(start) over each system: [N, grid].

    Most numbers of records occur often: each is computed once.

    Parameters
    ----------
    start : [grid]
    number, system : [n]
    """
    distinct, place = np.unique(number, return_inverse=True)
    total = np.empty((num_systems, len(start)))
    for column, x in enumerate(start):
        ratio = gammaln(x + distinct) - gammaln(x)
        total[:, column] = group_sum(system, ratio[place], num_systems)
    return total


@dataclass(frozen=True, eq=False)
class RowPrior:
    """The prior of all rows, given a log.

    Attributes
    ----------
    mass : [...]
        Its mass, in records.
    related : [...]
        Probability that the rows of a state are related.
    chains : Chains
        The prior's mean if they are; otherwise it is uniform.
    """

    mass: FloatArray
    related: FloatArray
    chains: Chains

    @classmethod
    def of(
        cls,
        counts: TransitionCounts,
        *,
        prior_related: float = 0.01,
        assumptions: Assumptions = DEFAULT_ASSUMPTIONS,
    ) -> RowPrior:
        """Infer the prior from a log.

        Parameters
        ----------
        counts : TransitionCounts
            With leading axes, the logs of independent systems.
        prior_related : float
            Probability of related rows before the log is seen. Small, because a mistake is costly
            on this side only: if rows are wrongly related, an action that was never tried seems
            as bad as those that were. Chosen on the families of ``pastwise study calibration
            --group chosen`` and on the paper's study.
        assumptions : Assumptions
        """
        mass = prior_masses(len(counts.states))
        chains = Chains.of(counts, assumptions=assumptions)
        unrelated = 1 / len(counts.states)
        related = chains.without_own_row(counts)

        # Both hypotheses with every mass of the grid: [..., 2, grid].
        log_prior = assumptions.mass_power * np.log(mass)
        log_posterior = np.stack(
            [
                prior_log_likelihood(counts, mass, unrelated) + log(1 - prior_related),
                prior_log_likelihood(counts, mass, related) + log(prior_related),
            ],
            axis=-2,
        )
        log_posterior += log_prior
        largest = log_posterior.max(axis=(-2, -1), keepdims=True)
        posterior = np.exp(log_posterior - largest)
        posterior /= posterior.sum(axis=(-2, -1), keepdims=True)
        return cls(
            mass=np.exp(posterior.sum(axis=-2) @ np.log(mass)),
            related=posterior[..., 1, :].sum(axis=-1),
            chains=chains,
        )

    def table(self) -> FloatArray:
        """The prior's mean in dense form: [..., S, S]."""
        related = self.related[..., None, None]
        return np.asarray(related * self.chains.table() + (1 - related) / self.chains.num_states)

    def mean(self, values: FloatArray) -> FloatArray:
        """E[values(next_state)] of k functions in a single system: [S, k] -> [S, k]."""
        mean = self.chains.mean(values)
        if self.related < 1:
            mean *= self.related
            mean += (1 - self.related) * values.mean(axis=0)
        return mean

    def mean_each(self, values: FloatArray, num_actions: int) -> FloatArray:
        """E[values(state, action, next_state)] in a single system.

        [1 or S, 1 or A, S] -> [S, A].
        """
        columns = []
        for action in range(num_actions):
            table = values[:, min(action, values.shape[1] - 1)]
            uniform = table.mean(axis=-1)
            chain = self.chains.mean_of_table(table)
            columns.append(self.related * chain + (1 - self.related) * uniform)
        return np.stack(columns, axis=-1)
