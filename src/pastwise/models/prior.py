r"""The prior of the rows of a transition model, in closed form: what a planner uses.

It is the hierarchy of `hierarchy` with single numbers in the place of samples. The row of each
state and action has the prior :math:`\mathrm{Dirichlet}(m\,b_{sa})`: a *mass* m, in records, and a
mean that backs off from the state to the whole log,

.. math::

    b_{sa} = \lambda_s\, c_s + (1 - \lambda_s) \sum_j w_j\, g^{(j)}_{sa} ,
    \qquad \lambda_s = \frac{t_s}{t_s + \kappa} .

- :math:`c_s` is the *chain* of the state: where it leads, after any action.
- The *pools* :math:`g^{(j)}` are: uniform; where the log's records lead; and *the same move
  elsewhere*: the displacement of the state's index under the action, from all states. What would
  leave the range of states stays. Where the order of states means nothing, the log gives the move
  no share.
- :math:`t_s` are the *tables* of the state (a term of the Chinese restaurant franchise): how many
  of its records the prior led to, not the row's earlier records. A row of n records has n m / (n +
  m) of them, so that a row that was seen often does not drown the others.

The mass m, the pull :math:`\kappa` of the pools and their shares w maximise the likelihood of the
log,

.. math::

    \prod_{\text{rows}} \frac{\Gamma(m)}{\Gamma(m + n)}
    \prod_k \frac{\Gamma(m b_k + n_k)}{\Gamma(m b_k)} ,

where chain and pools of a row are those of the other rows: a prior made of the row's own records
would confirm itself. Shares and mass have the expected tables as their EM step (Minka, *Estimating
a Dirichlet distribution*, 2000); the pull is the best of a small grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.special import gammaln, psi

from pastwise._numerics.arrays import FloatArray, IntArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts

PULLS = (1.0, 3.0, 10.0, 1e5)
"""Pulls of the pools, in tables: from chains that count almost alone to chains that do not count.
"""

UNIFORM, ENTERED, MOVE = range(3)
"""Places of the pools."""

SMALLEST = 1e-12
"""Smallest concentration; what underflows below it counts as this."""

NO_TABLES = 1e-9
"""Fewer tables than this are none."""


@dataclass(frozen=True, eq=False)
class RowPrior:
    """The numbers of the prior that are inferred from a log; N logs are independent.

    Attributes
    ----------
    mass : [N]
        Mass of the prior, in records.
    pull : [N]
        Pull of the pools on a chain, in tables.
    shares : [N, 3]
        Shares of the pools.
    """

    mass: FloatArray
    pull: FloatArray
    shares: FloatArray

    @classmethod
    def of(
        cls,
        counts: TransitionCounts,
        *,
        rounds: int = 3,
        steps: int = 3,
        most_cells: int = 20_000,
        start: RowPrior | None = None,
    ) -> RowPrior:
        """Infer the prior from a log.

        Parameters
        ----------
        counts : TransitionCounts
            With leading axes, the logs of independent systems.
        rounds, steps : int
            Rounds of the pull, and steps of mass and shares in each of them. More steps change
            decisions by less than other logs do.
        most_cells : int
            Of a log with more distinct transitions than this, a part of the rows is enough to infer
            five numbers.
        start : RowPrior, optional
            Where to start, for example the prior of a shorter log.
        """
        num_systems = prod(counts.shape)
        if start is None:
            start = cls(
                mass=np.ones(num_systems),
                pull=np.full(num_systems, 3.0),
                shares=np.full((num_systems, 3), 1 / 3),
            )
        prior = start
        for _ in range(rounds):
            prior = _Cells.of(counts, prior.mass, most_cells).improve(prior, steps)
        return prior


# Chains and pools.


@dataclass(frozen=True, eq=False)
class Tables:
    """The tables of N logs, by what their rows share.

    Attributes
    ----------
    counts : TransitionCounts
    of_cell : [cells]
        Tables of each distinct transition.
    of_row : [N * S * A]
        Tables of each row.
    """

    counts: TransitionCounts
    of_cell: FloatArray
    of_row: FloatArray

    @classmethod
    def of(cls, counts: TransitionCounts, mass: FloatArray) -> Tables:
        """The tables for a mass [N]."""
        rows_per_system = len(counts.states) * len(counts.actions)
        records = counts.by_state_action(counts.weight).ravel()
        mass_of_row = np.repeat(mass, rows_per_system)
        share = mass_of_row / (records + mass_of_row)
        return cls(counts, counts.weight * share[counts.row], records * share)

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.counts.states)

    @property
    def num_actions(self) -> int:
        """A."""
        return len(self.counts.actions)

    @property
    def num_systems(self) -> int:
        """N."""
        return prod(self.counts.shape)

    @cached_property
    def state(self) -> IntArray:
        """The state of each cell, with its log, as one number: [cells]."""
        return self.counts.row // self.num_actions

    @cached_property
    def of_state(self) -> FloatArray:
        """Tables of each state: [N * S]."""
        return np.asarray(self.of_row.reshape(-1, self.num_actions).sum(axis=1))

    @cached_property
    def pair(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of state and next state: their numbers, the pair of each cell, and their tables."""
        number = self.state * self.num_states + self.counts.next_state
        pair, place = np.unique(number, return_inverse=True)
        return pair, place, group_sum(place, self.of_cell, len(pair))

    @cached_property
    def entered(self) -> FloatArray:
        """Tables that lead to each state: [N, S]."""
        number = self.counts.batch * self.num_states + self.counts.next_state
        total = group_sum(number, self.of_cell, self.num_systems * self.num_states)
        return total.reshape(self.num_systems, self.num_states)

    @cached_property
    def moves(self) -> FloatArray:
        """Tables of each displacement from 1 - S to S - 1, by action: [N, A, 2 S - 1]."""
        width = 2 * self.num_states - 1
        actions = self.num_systems * self.num_actions
        number = self.action_of_cell * width + self.displacement
        total = group_sum(number, self.of_cell, actions * width)
        return total.reshape(self.num_systems, self.num_actions, width)

    @cached_property
    def action_of_cell(self) -> IntArray:
        """The action of each cell, with its log, as one number: [cells]."""
        return self.counts.batch * self.num_actions + self.counts.action

    @cached_property
    def displacement(self) -> IntArray:
        """Place of each cell's displacement among all of them: [cells]."""
        return self.counts.next_state - self.counts.state + self.num_states - 1

    def staying(self, moves: FloatArray) -> FloatArray:
        """What of each action's moves [N, A, 2 S - 1] would leave the range: [N, S, A]."""
        S = self.num_states
        up_to = np.zeros((*moves.shape[:-1], 2 * S))
        np.cumsum(moves, axis=-1, out=up_to[..., 1:])

        # From state s, displacements from -s to S - 1 - s stay in the range.
        first = S - 1 - np.arange(S)
        inside = up_to[..., first + S] - up_to[..., first]
        outside = up_to[..., -1:] - inside
        return np.swapaxes(np.maximum(outside, 0.0), -1, -2)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The distinct transitions that the prior is inferred from, each with what others say of it.

    Attributes
    ----------
    system : [cells]
    records : [cells]
    chain : [cells]
        Probability by the other rows of the state.
    chain_tables : [cells]
        Tables of these rows.
    pools : [cells, 3]
        Probability by each pool without the row; 0 where the pool is empty.
    has_pool : [cells, 3]
    row_system, row_records : [rows]
        Of every row with records.
    """

    system: IntArray
    records: FloatArray
    chain: FloatArray
    chain_tables: FloatArray
    pools: FloatArray
    has_pool: FloatArray
    row_system: IntArray
    row_records: FloatArray

    @classmethod
    def of(cls, counts: TransitionCounts, mass: FloatArray, most_cells: int) -> _Cells:
        """The transitions of a log, given the mass."""
        tables = Tables.of(counts, mass)
        own = tables.of_row[counts.row]
        next_state = counts.next_state

        # The chain.
        _, place, of_pair = tables.pair
        chain_tables = np.maximum(tables.of_state[tables.state] - own, 0.0)
        chain = _share(of_pair[place] - tables.of_cell, chain_tables)

        # Where records lead.
        entered_total = tables.entered.sum(axis=1)[counts.batch] - own
        entered = _share(tables.entered[counts.batch, next_state] - tables.of_cell, entered_total)

        # The same move elsewhere.
        flat_moves = tables.moves.reshape(-1, tables.moves.shape[-1])
        move_total = flat_moves.sum(axis=1)[tables.action_of_cell] - own
        same_move = flat_moves[tables.action_of_cell, tables.displacement] - tables.of_cell
        stays = tables.staying(tables.moves).ravel()[counts.row]
        is_stay = next_state == counts.state
        move = _share(same_move + np.where(is_stay, stays, 0.0), move_total)

        # A part of the rows, where a log has many cells.
        rows_per_system = tables.num_states * tables.num_actions
        cells = np.bincount(counts.batch, minlength=tables.num_systems)
        stride = np.maximum(1, -(-cells // most_cells))
        chosen = counts.row % rows_per_system % stride[counts.batch] == 0
        row_records = counts.by_state_action(counts.weight).ravel()
        rows = np.flatnonzero(row_records)
        rows = rows[rows % rows_per_system % stride[rows // rows_per_system] == 0]
        uniform = np.full(len(counts.row), 1 / tables.num_states)
        has_pool = [uniform > 0, entered_total > NO_TABLES, move_total > NO_TABLES]
        return cls(
            system=counts.batch[chosen],
            records=counts.weight[chosen],
            chain=chain[chosen],
            chain_tables=chain_tables[chosen],
            pools=np.stack([uniform, entered, move], axis=1)[chosen],
            has_pool=np.stack(has_pool, axis=1)[chosen].astype(np.float64),
            row_system=rows // rows_per_system,
            row_records=row_records[rows],
        )

    def improve(
        self,
        prior: RowPrior,
        steps: int,
        *,
        smallest_mass: float = 0.02,
        largest_mass: float = 1000.0,
    ) -> RowPrior:
        """A prior of larger likelihood: some steps of mass and shares, then the pull.

        Parameters
        ----------
        smallest_mass, largest_mass : float
            Bounds of the mass, in records: a single record outweighs the one; the other makes rows
            equal that have hundreds of records. Logs rarely come near either.
        """
        num_systems = len(prior.mass)
        mass = prior.mass
        shares = prior.shares
        pull = prior.pull[self.system]
        chain_share = self.chain_tables / (self.chain_tables + pull)
        of_chain = chain_share * self.chain

        for _ in range(steps):
            # Which part of the mean led to each record.
            of_pools = (1 - chain_share)[:, None] * self._weights(shares) * self.pools
            mean = np.maximum(of_pools.sum(axis=1) + of_chain, 1e-300)
            concentration = np.maximum(mass[self.system] * mean, SMALLEST)
            tables = concentration * _digamma_difference(concentration, self.records)
            tables = np.minimum(tables, self.records)

            # Shares, with one table of each pool beforehand.
            led = of_pools * (tables / mean)[:, None]
            columns = [group_sum(self.system, column, num_systems) for column in led.T]
            shares = normalise(np.stack(columns, axis=1) + 1.0)

            # Mass.
            expected = _digamma_difference(mass[self.row_system], self.row_records)
            expected_total = group_sum(self.row_system, expected, num_systems)
            tables_total = group_sum(self.system, tables, num_systems)
            mass = (tables_total + 0.5) / (expected_total + 0.5)
            mass = np.clip(mass, smallest_mass, largest_mass)

        # Pull.
        pooled = (self._weights(shares) * self.pools).sum(axis=1)
        scores = []
        for candidate in PULLS:
            chain_share = self.chain_tables / (self.chain_tables + candidate)
            mean = chain_share * self.chain + (1 - chain_share) * pooled
            start = np.maximum(mass[self.system] * mean, SMALLEST)
            score = gammaln(start + self.records) - gammaln(start)
            scores.append(group_sum(self.system, score, num_systems))
        best = np.argmax(np.stack(scores), axis=0)
        return RowPrior(mass, np.asarray(PULLS)[best], shares)

    def _weights(self, shares: FloatArray) -> FloatArray:
        """Shares of the pools that are not empty, of each cell: [cells, 3]."""
        return normalise(shares[self.system] * self.has_pool)


def _share(part: FloatArray, total: FloatArray) -> FloatArray:
    """Part of a total; 0 where the total is next to nothing."""
    is_known = total > NO_TABLES
    return np.where(is_known, np.maximum(part, 0.0) / np.where(is_known, total, 1.0), 0.0)


def _digamma_difference(start: FloatArray, steps: FloatArray) -> FloatArray:
    """psi(start + steps) - psi(start): the sum of 1 / (start + i) over i < steps."""
    difference = 1 / start
    several = steps != 1
    difference[several] = psi(start[several] + steps[several]) - psi(start[several])
    return difference
