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

The mass m, the pull :math:`\kappa` of the pools and their shares w maximise

.. math::

    \frac{m}{(1 + m)^2} \prod_j w_j \Bigl(\frac{\kappa}{1 + \kappa}\Bigr)^{\tau}
    \prod_{\text{rows}} \frac{\Gamma(m)}{\Gamma(m + n)}
    \prod_k \frac{\Gamma(m b_k + n_k)}{\Gamma(m b_k)} ,

where chain and pools of a row are those of the other rows: a prior made of the row's own records
would confirm itself. The first three factors are weak priors: ln m is logistic, every pool led to
one table beforehand, and :math:`\tau` tables of states with one table each were led to by pools
rather than by chains. A past that had reasons for its decisions makes the third one necessary: the
rows that it took are those that lead where it wanted to go, so that actions that were never taken
would seem to lead there too. All three are largest where the search starts, so that the likelihood
of the log never ends below that of the start.

The mass is found by a line search in ln m. At each mass it tries, the tables are those of that
mass, the shares move along their EM step, whose weights are the expected tables (Minka, *Estimating
a Dirichlet distribution*, 2000), and the pull is the best of a small grid. A mass is kept only if
all of these together are better than what was best before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from scipy.special import gammaln, psi

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts

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
        rounds: int = 8,
        pulls: Sequence[float] = (1.0, 3.0, 10.0, 1e5),
        first_factor: float = 4.0,
        share_step: float = 3.0,
        pooled_before: float = 10.0,
        most_cells: int = 20_000,
    ) -> RowPrior:
        """Infer the prior from a log.

        Parameters
        ----------
        counts : TransitionCounts
            With leading axes, the logs of independent systems.
        rounds : int
            How many masses are tried. After eight the mass is known to about a fifth, which is less
            than other logs of the same length change it by.
        pulls : numbers
            Pulls to choose from: from chains that count almost alone to chains that do not count.
        first_factor : float
            The second mass is so many times the first. With eight rounds, any mass from a sixtieth
            of a record to ten thousand can be reached.
        share_step : float
            How many times as far as EM the shares are moved, in logarithms: EM is slow where pools
            are similar, and a step that is too long is not kept.
        pooled_before : float
            Tables that pools led to beforehand, see the module. It was chosen on the paper's study
            with another seed, where 4 and 10 are better than 0, and equal within the error.
        most_cells : int
            Of a log with more distinct transitions than this, a part of the rows is enough to infer
            five numbers.
        """
        num_systems = prod(counts.shape)
        start = cls(
            mass=np.ones(num_systems),
            pull=np.full(num_systems, max(pulls)),
            shares=np.full((num_systems, 3), 1 / 3),
        )
        sample = _Sample.of(Places(counts), most_cells)
        cells = _Cells.of(sample, start.mass)
        best = start
        best_score = cells.score(start, pooled_before)
        trial = start
        step = np.full(num_systems, np.log(first_factor))
        for number in range(rounds):
            # Better shares and the best pull for this mass.
            if number:
                cells = _Cells.of(sample, trial.mass)
            trial, score = cells.improve(trial, np.asarray(pulls), share_step, pooled_before)

            # Go on where it is better; otherwise go the other way, by half a step.
            is_better = score > best_score
            best = trial.where(is_better, best)
            best_score = np.where(is_better, score, best_score)
            step = np.where(is_better, step, -step / 2)
            trial = RowPrior(best.mass * np.exp(step), best.pull, best.shares)
        return best

    def where(self, is_chosen: BoolArray, other: RowPrior) -> RowPrior:
        """The prior itself for the chosen logs [N], and another one for the rest."""
        return RowPrior(
            mass=np.where(is_chosen, self.mass, other.mass),
            pull=np.where(is_chosen, self.pull, other.pull),
            shares=np.where(is_chosen[:, None], self.shares, other.shares),
        )


# Chains and pools.


class Places:
    """Where the distinct transitions of N logs belong: to which row, pair and move."""

    def __init__(self, counts: TransitionCounts) -> None:
        self.counts = counts
        self.num_systems = prod(counts.shape)
        self.num_states = len(counts.states)
        self.num_actions = len(counts.actions)
        self.records = counts.by_state_action(counts.weight).ravel()  # [N * S * A]

    @cached_property
    def state(self) -> IntArray:
        """The state of each cell, with its log, as one number: [cells]."""
        return self.counts.row // self.num_actions

    @cached_property
    def action(self) -> IntArray:
        """The action of each cell, with its log, as one number: [cells]."""
        return self.counts.batch * self.num_actions + self.counts.action

    @cached_property
    def entered(self) -> IntArray:
        """The next state of each cell, with its log, as one number: [cells]."""
        return self.counts.batch * self.num_states + self.counts.next_state

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Pairs of state and next state: their numbers, and the place of each cell among them."""
        number = self.state * self.num_states + self.counts.next_state
        pair, place = np.unique(number, return_inverse=True)
        return pair, place

    @cached_property
    def displacement(self) -> IntArray:
        """Place of each cell's displacement among all of them: [cells]."""
        return self.counts.next_state - self.counts.state + self.num_states - 1


class Tables:
    """The tables of N logs for a mass [N], by what their rows share.

    Attributes
    ----------
    of_cell : [cells]
        Tables of each distinct transition.
    of_row : [N * S * A]
        Tables of each row.
    """

    def __init__(self, places: Places, mass: FloatArray) -> None:
        self.places = places
        mass_of_row = np.repeat(mass, places.num_states * places.num_actions)
        share = mass_of_row / (places.records + mass_of_row)
        self.of_cell = places.counts.weight * share[places.counts.row]
        self.of_row = places.records * share

    @cached_property
    def of_state(self) -> FloatArray:
        """Tables of each state: [N * S]."""
        return np.asarray(self.of_row.reshape(-1, self.places.num_actions).sum(axis=1))

    @cached_property
    def of_pair(self) -> FloatArray:
        """Tables of each pair of state and next state: [pairs]."""
        pair, place = self.places.pairs
        return group_sum(place, self.of_cell, len(pair))

    @cached_property
    def entered(self) -> FloatArray:
        """Tables that lead to each state: [N, S]."""
        shape = (self.places.num_systems, self.places.num_states)
        return group_sum(self.places.entered, self.of_cell, prod(shape)).reshape(shape)

    @cached_property
    def moves(self) -> FloatArray:
        """Tables of each displacement from 1 - S to S - 1, by action: [N, A, 2 S - 1]."""
        places = self.places
        shape = (places.num_systems, places.num_actions, 2 * places.num_states - 1)
        number = places.action * shape[-1] + places.displacement
        return group_sum(number, self.of_cell, prod(shape)).reshape(shape)


def staying(moves: FloatArray) -> FloatArray:
    """What of each action's moves [N, A, 2 S - 1] would leave the range of states: [N, S, A]."""
    S = (moves.shape[-1] + 1) // 2
    up_to = np.zeros((*moves.shape[:-1], 2 * S))
    np.cumsum(moves, axis=-1, out=up_to[..., 1:])

    # From state s, displacements from -s to S - 1 - s stay in the range.
    first = S - 1 - np.arange(S)
    inside = up_to[..., first + S] - up_to[..., first]
    outside = up_to[..., -1:] - inside
    return np.swapaxes(np.maximum(outside, 0.0), -1, -2)


@dataclass(frozen=True, eq=False)
class _Sample:
    """The distinct transitions that the prior is inferred from: of all rows, or of a part of them.

    Attributes
    ----------
    places : Places
        Of all transitions.
    cell : [cells]
        Those of the sample, among all.
    system, row, state, action, pair, entered, displacement : [cells]
        Their log and their places.
    is_stay : [cells]
        Whether they lead nowhere else.
    records : [cells]
    row_system, row_records : [rows]
        Of every row of the sample that has records.
    """

    places: Places
    cell: IntArray
    system: IntArray
    row: IntArray
    state: IntArray
    action: IntArray
    pair: IntArray
    entered: IntArray
    displacement: IntArray
    is_stay: BoolArray
    records: FloatArray
    row_system: IntArray
    row_records: FloatArray

    @classmethod
    def of(cls, places: Places, most_cells: int) -> _Sample:
        """Every so many rows, where a log has more cells than the most."""
        counts = places.counts
        rows_per_system = places.num_states * places.num_actions
        cells = np.bincount(counts.batch, minlength=places.num_systems)
        stride = np.maximum(1, -(-cells // most_cells))
        cell = np.flatnonzero(counts.row % rows_per_system % stride[counts.batch] == 0)
        rows = np.flatnonzero(places.records)
        rows = rows[rows % rows_per_system % stride[rows // rows_per_system] == 0]
        return cls(
            places=places,
            cell=cell,
            system=counts.batch[cell],
            row=counts.row[cell],
            state=places.state[cell],
            action=places.action[cell],
            pair=places.pairs[1][cell],
            entered=places.entered[cell],
            displacement=places.displacement[cell],
            is_stay=(counts.next_state == counts.state)[cell],
            records=counts.weight[cell],
            row_system=rows // rows_per_system,
            row_records=places.records[rows],
        )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The transitions of a sample, each with what other rows say of it, for one mass of each log.

    Attributes
    ----------
    sample : _Sample
    chain : [cells]
        Probability by the other rows of the state.
    chain_tables : [cells]
        Tables of these rows.
    pools : [cells, 3]
        Probability by each pool without the row; 0 where the pool is empty.
    has_pool : [cells, 3]
    """

    sample: _Sample
    chain: FloatArray
    chain_tables: FloatArray
    pools: FloatArray
    has_pool: BoolArray

    @classmethod
    def of(cls, sample: _Sample, mass: FloatArray) -> _Cells:
        """The transitions of a sample, given the mass [N]."""
        tables = Tables(sample.places, mass)
        of_cell = tables.of_cell[sample.cell]
        own = tables.of_row[sample.row]

        # The chain.
        chain_tables = np.maximum(tables.of_state[sample.state] - own, 0.0)
        chain = _share(tables.of_pair[sample.pair] - of_cell, chain_tables)

        # Where records lead.
        entered_total = tables.entered.sum(axis=1)[sample.system] - own
        entered = _share(tables.entered.ravel()[sample.entered] - of_cell, entered_total)

        # The same move elsewhere.
        moves = tables.moves.reshape(-1, tables.moves.shape[-1])
        move_total = moves.sum(axis=1)[sample.action] - own
        same_move = moves[sample.action, sample.displacement] - of_cell
        same_move += np.where(sample.is_stay, staying(tables.moves).ravel()[sample.row], 0.0)
        move = _share(same_move, move_total)

        uniform = np.full(len(own), 1 / sample.places.num_states)
        has_pool = [uniform > 0, entered_total > NO_TABLES, move_total > NO_TABLES]
        return cls(
            sample=sample,
            chain=chain,
            chain_tables=chain_tables,
            pools=np.stack([uniform, entered, move], axis=1),
            has_pool=np.stack(has_pool, axis=1),
        )

    def improve(
        self, prior: RowPrior, pulls: FloatArray, share_step: float, pooled_before: float
    ) -> tuple[RowPrior, FloatArray]:
        """The prior with other shares and the best of some pulls [p], and its score: [N].

        The mass must be that of the cells.
        """
        system = self.sample.system
        records = self.sample.records
        num_systems = len(prior.mass)

        # Shares: which pool led to each table.
        chain_share = self._chain_share(prior.pull[system])
        of_pools = (1 - chain_share)[:, None] * self._weights(prior.shares) * self.pools
        mean = np.maximum(of_pools.sum(axis=1) + chain_share * self.chain, 1e-300)
        concentration = np.maximum(prior.mass[system] * mean, SMALLEST)
        tables = concentration * _digamma_difference(concentration, records)
        tables = np.minimum(tables, records)
        led = of_pools * (tables / mean)[:, None]
        columns = [group_sum(system, column, num_systems) for column in led.T]
        shares = normalise(np.stack(columns, axis=1) + 1.0)
        shares = normalise(prior.shares * (shares / prior.shares) ** share_step)

        # Pull.
        candidate = RowPrior(prior.mass, prior.pull, shares)
        each_pull = np.repeat(pulls[:, None], num_systems, axis=1)
        scores = self._scores(candidate, each_pull, pooled_before)
        best = scores.argmax(axis=0)
        return RowPrior(prior.mass, pulls[best], shares), scores.max(axis=0)

    def score(self, prior: RowPrior, pooled_before: float) -> FloatArray:
        """Ln of what is maximised, see the module: [N]. The mass must be that of the cells."""
        return np.asarray(self._scores(prior, prior.pull[None], pooled_before)[0])

    def _scores(self, prior: RowPrior, pulls: FloatArray, pooled_before: float) -> FloatArray:
        """The score with each of some pulls in the place of the prior's: [p, N] -> [p, N]."""
        system = self.sample.system
        num_systems = len(prior.mass)

        # Likelihood of the cells.
        pooled = (self._weights(prior.shares) * self.pools).sum(axis=1)
        chain_share = self._chain_share(pulls[:, system])
        mean = chain_share * self.chain + (1 - chain_share) * pooled
        concentration = np.maximum(prior.mass[system] * mean, SMALLEST)
        of_cell = _log_rising(concentration, self.sample.records)
        of_cells = np.stack([group_sum(system, line, num_systems) for line in of_cell])

        # The totals of the rows, and the priors.
        row_system = self.sample.row_system
        of_row = _log_rising(prior.mass[row_system], self.sample.row_records)
        beforehand = np.log(prior.mass) - 2 * np.log1p(prior.mass)
        beforehand += np.log(prior.shares).sum(axis=1)
        beforehand = beforehand + pooled_before * np.log(pulls / (1 + pulls))
        return np.asarray(of_cells - group_sum(row_system, of_row, num_systems) + beforehand)

    def _chain_share(self, pull: FloatArray) -> FloatArray:
        """How much of the mean is the chain, of each cell: [..., cells]."""
        return self.chain_tables / (self.chain_tables + pull)

    def _weights(self, shares: FloatArray) -> FloatArray:
        """Shares of the pools that are not empty, of each cell: [cells, 3]."""
        return normalise(shares[self.sample.system] * self.has_pool)


def _share(part: FloatArray, total: FloatArray) -> FloatArray:
    """Part of a total; 0 where the total is next to nothing."""
    is_known = total > NO_TABLES
    return np.where(is_known, np.maximum(part, 0.0) / np.where(is_known, total, 1.0), 0.0)


def _log_rising(start: FloatArray, steps: FloatArray) -> FloatArray:
    """Ln of Gamma(start + steps) / Gamma(start): [..., n] and [n] -> [..., n]."""
    rising = np.log(start)
    several = np.flatnonzero(steps != 1)
    of_several = start[..., several]
    rising[..., several] = gammaln(of_several + steps[several]) - gammaln(of_several)
    return rising


def _digamma_difference(start: FloatArray, steps: FloatArray) -> FloatArray:
    """psi(start + steps) - psi(start): the sum of 1 / (start + i) over i < steps."""
    difference = 1 / start
    several = steps != 1
    difference[several] = psi(start[several] + steps[several]) - psi(start[several])
    return difference
