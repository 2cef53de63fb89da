r"""The prior of the rows of a transition model, in closed form: what a planner uses.

It is a simpler form of the hierarchy of `hierarchy`, with single numbers in the place of samples,
without a neighbourhood and without a lean of rarely taken actions; moves are those of every column
of the states, for systems of any size. The row of each state and action has the prior
:math:`\mathrm{Dirichlet}(m\,b_{sa})`: a *mass* m, in records, and a mean that backs off from the
state to the whole log,

.. math::

    b_{sa} = \lambda_s\, c_s + (1 - \lambda_s) \sum_j w_j\, g^{(j)}_{sa} ,
    \qquad \lambda_s = \frac{t_s}{t_s + \kappa} .

- :math:`c_s` is the *chain* of the state: where it leads, after any action.
- The *pools* :math:`g^{(j)}` are: uniform; where the log's records lead; and *the same move
  elsewhere*: by how much the action displaces any state (`Places`). An action that was never taken
  moves as any action does. Where the order of states means nothing, the log gives the move no
  share.
- :math:`t_s` are the *tables* of the state (a term of the Chinese restaurant franchise): how many
  of its records the prior led to, not the row's earlier records. A row of n records has n m / (n +
  m) of them, so that a row that was seen often does not drown the others.

The mass m, the pull :math:`\kappa` of the pools and their shares w maximise

.. math::

    \frac{m}{(1 + m)^2} \prod_j w_j^{\ell_j} \Bigl(\frac{\kappa}{1 + \kappa}\Bigr)^{\tau}
    \prod_{\text{rows}} \frac{\Gamma(m)}{\Gamma(m + n)}
    \prod_k \frac{\Gamma(m b_k + n_k)}{\Gamma(m b_k)} ,

where chain and pools of a row are those of the other rows: a prior made of the row's own records
would confirm itself. The first three factors are weak priors: ln m is logistic, pool j led to
:math:`\ell_j` tables beforehand (`LED_BEFORE`), and :math:`\tau` tables of states with one table
each were led to by pools rather than by chains. A past that had reasons for its decisions makes the
third one necessary: the rows that it took are those that lead where it wanted to go, so that
actions that were never taken would seem to lead there too. All three are largest where the search
starts, so that the likelihood of the log never ends below that of the start.

The mass is found by a line search in ln m. At each mass it tries, the tables are those of that
mass, the shares take a few steps of EM, whose weights are the expected tables (Minka, *Estimating a
Dirichlet distribution*, 2000), and the pull is the best of a small grid. A mass is kept only if all
of these together are better than what was best before.

Some rows follow their state and others do not. So the mass of a row that has records is
:math:`f m`, with a factor f of a few (`FACTORS`), whose probabilities are inferred from all rows by
EM. Given its records, the mean of a row is that of the factors' posterior. It has the same form as
with one mass m',

.. math::

    \frac{n_k + m' b_k}{n + m'} , \qquad
    \frac{1}{n + m'} = \sum_f \frac{p(f \mid \text{records})}{n + f m} ,

so that every row has a mass of its own, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from scipy.special import gammaln, psi

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    group_sum,
    group_sums,
    normalise,
)
from pastwise.data.counts import TransitionCounts

UNIFORM, ENTERED, MOVE = range(3)
"""Places of the pools."""

LED_BEFORE = np.array([1.0, 0.1, 1.0])
"""Tables that each pool led to before a log is seen. Where records lead shows above all where the
past wanted to go, so this pool counts once the log supports it. It was chosen on the families of
``pastwise study planners --group chosen``, where 0.01 and 0.3 are equal within the error."""

SMALLEST = 1e-12
"""Smallest concentration; what underflows below it counts as this."""

NO_TABLES = 1e-9
"""Fewer tables than this are none."""

MOST_MOVES = 1_000_000
"""Most transitions that the moves of all states of a system may have together. Logs with more, such
as those of hundreds of states in no particular order, leave moves out, which would take seconds."""

LARGEST_DISPLACEMENT = 2**62
"""Displacements of all fields together are numbered up to here. Where fields have more values,
states are displaced by their index."""

PAIRS_AT_ONCE = 5_000_000
"""Pairs of transition and step that are compared together, for the memory."""

FACTORS = 4.0 ** np.arange(-2, 4)
"""By how much the mass of a row may differ from that of all rows."""

FACTORS_BEFORE = normalise(np.exp(-0.5 * np.log2(FACTORS) ** 2))
"""Probability of each factor before a log is seen: a factor of two is one standard deviation."""


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
    factors : [N, K], optional
        Probability of each factor of a row's mass; by default all rows have the same mass.
    """

    mass: FloatArray
    pull: FloatArray
    shares: FloatArray
    factors: FloatArray | None = None

    @classmethod
    def of(
        cls,
        counts: TransitionCounts,
        *,
        places: Places | None = None,
        rounds: int = 8,
        pulls: Sequence[float] = (1.0, 3.0, 10.0, 1e5),
        first_factor: float = 4.0,
        share_steps: int = 5,
        pooled_before: float = 10.0,
        most_cells: int = 20_000,
    ) -> RowPrior:
        """Infer the prior from a log.

        Parameters
        ----------
        counts : TransitionCounts
            With leading axes, the logs of independent systems.
        places : Places, optional
            Those of the log, where they are known already.
        rounds : int
            How many masses are tried. After eight the mass is known to about a fifth, which is less
            than other logs of the same length change it by.
        pulls : numbers
            Pulls to choose from: from chains that count almost alone to chains that do not count.
        first_factor : float
            The second mass is so many times the first. With eight rounds, any mass from a sixtieth
            of a record to ten thousand can be reached.
        share_steps : int
            Steps of EM for each mass. Shares go on from the best mass so far, so that there are
            more of them in all than for one mass.
        pooled_before : float
            Tables that pools led to beforehand, see the module. It was chosen on the paper's study
            with another seed, where 4 and 10 are better than 0, and equal within the error.
        most_cells : int
            Of a log with more distinct transitions than this, a part of the rows is enough to infer
            a few numbers.
        """
        num_systems = prod(counts.shape)
        start = cls(
            mass=np.ones(num_systems),
            pull=np.full(num_systems, max(pulls)),
            shares=np.tile(normalise(LED_BEFORE), (num_systems, 1)),
        )
        sample = _Sample.of(places or Places(counts), most_cells)
        cells = _Cells.of(sample, start.mass)
        best = start
        best_score = cells.score(start, pooled_before)
        trial = start
        step = np.full(num_systems, np.log(first_factor))
        for number in range(rounds):
            # Better shares and the best pull for this mass.
            if number:
                cells = _Cells.of(sample, trial.mass)
            trial, score = cells.improve(trial, np.asarray(pulls), share_steps, pooled_before)

            # Go on where it is better; otherwise go the other way, by half a step.
            is_better = score > best_score
            best = trial.where(is_better, best)
            best_score = np.where(is_better, score, best_score)
            step = np.where(is_better, step, -step / 2)
            trial = RowPrior(best.mass * np.exp(step), best.pull, best.shares)

        # How much the masses of single rows differ from it.
        of_factors = _Cells.of(sample, best.mass).of_factors(best)
        factors = _infer_factors(of_factors, sample.row_system, num_systems)
        return replace(best, factors=factors)

    def mass_of_rows(self, places: Places) -> FloatArray:
        """Mass of each row of N logs, given its records: [N, S, A].

        A row without records has the mass of all rows.
        """
        shape = (places.num_systems, places.num_states, places.num_actions)
        mass = np.repeat(self.mass, places.num_states * places.num_actions)
        if self.factors is None:
            return mass.reshape(shape)

        # The factor of each row that has records.
        sample = _Sample.of(places)
        of_factors = _Cells.of(sample, self.mass).of_factors(self)
        factor = _posterior(of_factors, self.factors.T[:, sample.row_system])

        # The mass with the same mean row, in a form that does not cancel where records are many.
        masses = FACTORS[:, None] * self.mass[sample.row_system]
        share = factor / (sample.row_records + masses)
        mass[sample.rows] = (share * masses).sum(axis=0) / share.sum(axis=0)
        return mass.reshape(shape)

    def where(self, is_chosen: BoolArray, other: RowPrior) -> RowPrior:
        """The prior itself for the chosen logs [N], and another one for the rest."""
        return RowPrior(
            mass=np.where(is_chosen, self.mass, other.mass),
            pull=np.where(is_chosen, self.pull, other.pull),
            shares=np.where(is_chosen[:, None], self.shares, other.shares),
        )


# Chains and pools.


class Places:
    """Where the distinct transitions of N logs belong: to which row, pair and step.

    A *step* is a displacement that occurs in the logs, in every field of the states or, where they
    have none, of their index. Of several fields, one that would leave its range stops at the end of
    it while the others go on. Where there is no such state, as in a wall, the state stays.
    """

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
    def coordinates(self) -> IntArray:
        """Place of each state in each field, from 0 on: [S, F]."""
        coordinates = self.counts.states.coordinates
        num_displacements = prod((2 * coordinates.max(axis=0) + 1).tolist())
        return coordinates if num_displacements < LARGEST_DISPLACEMENT else self._indices

    @property
    def _indices(self) -> IntArray:
        """The states without their fields: [S, 1]."""
        return np.arange(self.num_states)[:, None]

    @cached_property
    def _factors(self) -> IntArray:
        """Factors by which coordinates, and displacements in each field, become one number: [F]."""
        num_displacements = 2 * self.coordinates.max(axis=0) + 1
        return np.append(np.cumprod(num_displacements[:0:-1])[::-1], 1)

    @cached_property
    def _displacement(self) -> IntArray:
        """By how much each cell displaces its state, as one number: [cells]."""
        number = self.coordinates @ self._factors
        return np.asarray(number[self.counts.next_state] - number[self.counts.state])

    @cached_property
    def has_moves(self) -> BoolArray:
        """Whether the moves of each log are few enough to be listed: [N]."""
        displacements, place = np.unique(self._displacement, return_inverse=True)
        number = max(len(displacements), 1)

        # Actions that were taken have steps of their own, others all steps of the log.
        own = np.unique(self.action * number + place) // (number * self.num_actions)
        of_any = np.unique(self.counts.batch * number + place) // number
        taken = np.unique(self.action) // self.num_actions
        num_own, num_any, num_taken = (
            np.bincount(system, minlength=self.num_systems) for system in (own, of_any, taken)
        )
        num_moves = num_own + (self.num_actions - num_taken) * num_any
        return np.asarray(num_moves * self.num_states <= MOST_MOVES)

    @cached_property
    def _listed(self) -> IntArray:
        """The displacement of each cell; 0 where the log has no moves: [cells]."""
        return np.where(self.has_moves[self.counts.batch], self._displacement, 0)

    @cached_property
    def _steps(self) -> IntArray:
        """The distinct displacements of logs that have moves, and 0, ascending: [D]."""
        return np.union1d(self._listed, [0])

    @cached_property
    def step(self) -> IntArray:
        """Which step each cell is; of a log without moves, any: [cells]."""
        return np.searchsorted(self._steps, self._listed)

    @cached_property
    def arrival(self) -> IntArray:
        """The state to which each step leads from each state: [S, D]."""
        has_several = len(self._factors) > 1
        target = np.zeros((self.num_states, len(self._steps)), dtype=np.int64)
        rest = self._steps
        for field in range(len(self._factors)):
            # The displacement in this field, which is the nearest multiple of its factor.
            factor = self._factors[field]
            displacement = (rest + factor // 2) // factor
            rest = rest - displacement * factor
            values = self.coordinates[:, field]
            value = values[:, None] + displacement
            target += factor * (np.clip(value, 0, values.max()) if has_several else value)

        # The state in that place.
        number = self.coordinates @ self._factors
        order = np.argsort(number)
        rank = np.searchsorted(number, target, sorter=order)
        state = order[np.minimum(rank, self.num_states - 1)]
        return np.where(number[state] == target, state, np.arange(self.num_states)[:, None])


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
        """Tables of each step, by action; none of a log without moves: [N, A, D]."""
        places = self.places
        num_steps = places.arrival.shape[1]
        shape = (places.num_systems, places.num_actions, num_steps)
        of_cell = np.where(places.has_moves[places.counts.batch], self.of_cell, 0.0)
        return group_sum(places.action * num_steps + places.step, of_cell, prod(shape)).reshape(
            shape
        )

    @cached_property
    def any_move(self) -> FloatArray:
        """Tables of each step after any action: [N, D]."""
        return np.asarray(self.moves.sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Sample:
    """The distinct transitions that the prior is inferred from: of all rows, or of a part of them.

    Attributes
    ----------
    places : Places
        Of all transitions.
    cell : [cells]
        Those of the sample, among all.
    system, row, state, action, pair, entered : [cells]
        Their log and their places.
    records : [cells]
    led, step : [pairs]
        Every step that leads where a transition of the sample leads, and which one that is.
    rows, row_system, row_records : [rows]
        Every row of the sample that has records, its log and their number.
    """

    places: Places
    cell: IntArray
    system: IntArray
    row: IntArray
    state: IntArray
    action: IntArray
    pair: IntArray
    entered: IntArray
    records: FloatArray
    led: IntArray
    step: IntArray
    rows: IntArray
    row_system: IntArray
    row_records: FloatArray

    @classmethod
    def of(cls, places: Places, most_cells: int | None = None) -> _Sample:
        """Every so many rows, where a log has more cells than the most; otherwise all rows.

        Rows whose records have no weight, as after a long decay, are left out.
        """
        counts = places.counts
        rows_per_system = places.num_states * places.num_actions
        cells = np.bincount(counts.batch, minlength=places.num_systems)
        stride = np.ones_like(cells) if most_cells is None else -(-cells // most_cells)
        stride = np.maximum(1, stride)
        is_chosen = counts.row % rows_per_system % stride[counts.batch] == 0
        cell = np.flatnonzero(is_chosen & (places.records[counts.row] > 0))
        rows = np.flatnonzero(places.records)
        rows = rows[rows % rows_per_system % stride[rows // rows_per_system] == 0]
        led, step = _leading_steps(places.arrival, counts.state[cell], counts.next_state[cell])
        return cls(
            places=places,
            cell=cell,
            system=counts.batch[cell],
            row=counts.row[cell],
            state=places.state[cell],
            action=places.action[cell],
            pair=places.pairs[1][cell],
            entered=places.entered[cell],
            records=counts.weight[cell],
            led=led,
            step=step,
            rows=rows,
            row_system=rows // rows_per_system,
            row_records=places.records[rows],
        )


def _leading_steps(
    arrival: IntArray, state: IntArray, next_state: IntArray
) -> tuple[IntArray, IntArray]:
    """Which steps lead from each state to the next one: places in [n], and steps, [pairs] each."""
    at_once = max(1, PAIRS_AT_ONCE // arrival.shape[1])
    led = []
    step = []
    for first in range(0, len(state), at_once):
        part = slice(first, first + at_once)
        place, leading = np.nonzero(arrival[state[part]] == next_state[part, None])
        led.append(first + place)
        step.append(leading)
    nothing = np.zeros(0, dtype=np.int64)
    return np.concatenate([nothing, *led]), np.concatenate([nothing, *step])


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

        # The same move elsewhere or, of an action that was taken in this state only, any move.
        own_move, own_move_total = _elsewhere(tables.moves, sample.action, sample, tables)
        any_move, any_move_total = _elsewhere(tables.any_move, sample.system, sample, tables)
        has_own_move = own_move_total > NO_TABLES
        move_total = np.where(has_own_move, own_move_total, any_move_total)
        move = _share(np.where(has_own_move, own_move, any_move), move_total)

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
        self, prior: RowPrior, pulls: FloatArray, share_steps: int, pooled_before: float
    ) -> tuple[RowPrior, FloatArray]:
        """The prior with better shares and the best of some pulls [p], and its score: [N].

        The mass must be that of the cells.
        """
        for _ in range(share_steps):
            prior = RowPrior(prior.mass, prior.pull, self._better_shares(prior))
        each_pull = np.repeat(pulls[:, None], len(prior.mass), axis=1)
        scores = self._scores(prior, each_pull, pooled_before)
        best = scores.argmax(axis=0)
        return RowPrior(prior.mass, pulls[best], prior.shares), scores.max(axis=0)

    def _better_shares(self, prior: RowPrior) -> FloatArray:
        """The shares after one step of EM: [N, 3]."""
        system = self.sample.system
        records = self.sample.records
        num_systems = len(prior.mass)

        # Which pool led to each table.
        chain_share = self._chain_share(prior.pull[system])
        of_pools = (1 - chain_share)[:, None] * self._weights(prior.shares) * self.pools
        mean = np.maximum(of_pools.sum(axis=1) + chain_share * self.chain, 1e-300)
        concentration = np.maximum(prior.mass[system] * mean, SMALLEST)
        tables = concentration * _digamma_difference(concentration, records)
        tables = np.minimum(tables, records)
        led = of_pools * (tables / mean)[:, None]
        return normalise(group_sums(system, led.T, num_systems).T + LED_BEFORE)

    def score(self, prior: RowPrior, pooled_before: float) -> FloatArray:
        """Ln of what is maximised, see the module: [N]. The mass must be that of the cells."""
        return np.asarray(self._scores(prior, prior.pull[None], pooled_before)[0])

    def _scores(self, prior: RowPrior, pulls: FloatArray, pooled_before: float) -> FloatArray:
        """The score with each of some pulls in the place of the prior's: [p, N] -> [p, N]."""
        system = self.sample.system
        num_systems = len(prior.mass)

        # Likelihood of the cells.
        mean = self._mean(prior.shares, pulls[:, system])
        concentration = np.maximum(prior.mass[system] * mean, SMALLEST)
        of_cell = _log_rising(concentration, self.sample.records)
        of_cells = group_sums(system, of_cell, num_systems)

        # The totals of the rows, and the priors.
        row_system = self.sample.row_system
        of_row = _log_rising(prior.mass[row_system], self.sample.row_records)
        beforehand = np.log(prior.mass) - 2 * np.log1p(prior.mass)
        beforehand += np.log(prior.shares) @ LED_BEFORE
        beforehand = beforehand + pooled_before * np.log(pulls / (1 + pulls))
        return np.asarray(of_cells - group_sum(row_system, of_row, num_systems) + beforehand)

    def of_factors(self, prior: RowPrior) -> FloatArray:
        """Ln of the likelihood of each row for each factor of its mass: [K, rows]."""
        sample = self.sample
        mean = self._mean(prior.shares, prior.pull[sample.system])
        row_of_cell = np.searchsorted(sample.rows, sample.row)
        likelihoods = []
        for factor in FACTORS:
            mass = factor * prior.mass
            concentration = np.maximum(mass[sample.system] * mean, SMALLEST)
            of_cell = _log_rising(concentration, sample.records)
            of_row = group_sum(row_of_cell, of_cell, len(sample.rows))
            likelihoods.append(of_row - _log_rising(mass[sample.row_system], sample.row_records))
        return np.stack(likelihoods)

    def _mean(self, shares: FloatArray, pull: FloatArray) -> FloatArray:
        """Probability of each cell under the prior, for pulls [..., cells]: [..., cells]."""
        pooled = (self._weights(shares) * self.pools).sum(axis=1)
        chain_share = self._chain_share(pull)
        return np.asarray(chain_share * self.chain + (1 - chain_share) * pooled)

    def _chain_share(self, pull: FloatArray) -> FloatArray:
        """How much of the mean is the chain, of each cell: [..., cells]."""
        return self.chain_tables / (self.chain_tables + pull)

    def _weights(self, shares: FloatArray) -> FloatArray:
        """Shares of the pools that are not empty, of each cell: [cells, 3]."""
        return normalise(shares[self.sample.system] * self.has_pool)


def _elsewhere(
    moves: FloatArray, group: IntArray, sample: _Sample, tables: Tables
) -> tuple[FloatArray, FloatArray]:
    """Tables of other rows whose move leads where each cell leads, and of all their moves.

    Parameters
    ----------
    moves : [..., D]
        Tables of each step, of groups of rows.
    group : [cells]
        The group of each cell, by its place among all groups.

    Returns
    -------
    same, total : [cells]
    """
    moves = moves.reshape(-1, moves.shape[-1])
    same = group_sum(sample.led, moves[group[sample.led], sample.step], len(group))
    total = moves.sum(axis=1)[group]
    return same - tables.of_cell[sample.cell], total - tables.of_row[sample.row]


def _infer_factors(
    of_factors: FloatArray,
    row_system: IntArray,
    num_systems: int,
    *,
    steps: int = 15,
    rows_before: float = 10.0,
) -> FloatArray:
    """Probability of each factor of the mass in each log, by EM: [K, rows] -> [N, K].

    Parameters
    ----------
    of_factors : [K, rows]
        Ln of the likelihood of each row for each factor.
    steps : int
        Steps of EM; more of them change no probability by more than a few percent.
    rows_before : float
        Rows that `FACTORS_BEFORE` stands for: a log of fewer rows hardly changes it.
    """
    beforehand = np.repeat(FACTORS_BEFORE[:, None], num_systems, axis=1)
    probability = beforehand
    for _ in range(steps):
        factor = _posterior(of_factors, probability[:, row_system])
        number = group_sums(row_system, factor, num_systems)
        probability = normalise((number + rows_before * beforehand).T).T
    return probability.T


def _posterior(log_likelihood: FloatArray, prior: FloatArray) -> FloatArray:
    """Probability of each factor of each row, given its records: [K, rows] -> [K, rows]."""
    score = log_likelihood + np.log(prior)
    return normalise(np.exp(score - score.max(axis=0, initial=-np.inf)).T).T


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
