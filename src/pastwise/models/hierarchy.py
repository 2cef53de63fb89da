r"""The posterior of a transition model after a log, hierarchical, for systems of any size.

From the whole to the single row:

.. math::

    \begin{aligned}
    c_s &\sim \mathrm{Dirichlet}(\kappa\, g_s) &&\text{where state s leads, after any action (its
    \emph{chain})}\\
    d_a &\sim \mathrm{Dirichlet}(\lambda\, h) &&\text{by how much action a moves the index of any
    state (its \emph{move})}\\
    p_{sa} &\sim \mathrm{Dirichlet}(m_s\, q_{sa}) &&\text{where action a leads from s (a
    \emph{row})}\\
    q_{sa}(n) &= (1 - w_{sa})\, c_{sa}(n) + w_{sa}\, d_a(n - s) &&\text{the mean of the row}\\
    c_{sa}(n) &\propto c_s(n) \exp(\beta\, x_{sa}\, z_s(n)) &&\text{the chain, \emph{leaning}}
    \end{aligned}

- The *mass* :math:`m_s`, in records, says how similar the rows of a state are. It is on a grid
  whose weights are inferred from all states: where rows look the same, masses become large, rows
  collapse onto their chain and differences between rules shrink to zero. Small masses are favoured
  a priori by a power of the mass, since otherwise "actions hardly matter" would be the answer to
  every short log. Half of the sampled models have smaller masses than those inferred, since rows
  may differ more in what matters than in the rest.
- The *base* :math:`g_s` is one of: uniform; where the log's records lead; the neighbourhood of s in
  the log; mixtures of them; where the records of other states displace s. The base and its *pull*
  :math:`\kappa` are inferred. A sampled base varies as much as it is uncertain how often each state
  is entered.
- The *move* :math:`d_a` carries what was seen of an action in one state over to others: steps on a
  line or a grid, orders, treatments that lower a severity. It is a distribution of the displacement
  n - s of the state's index, pooled over all states; what would leave the range of the states stays
  in s. The *share of the move* :math:`w_{sa}` is on a grid from 0 to 1 whose weights are inferred
  from all rows: where the order of the states means nothing, shares become 0. The base h of the
  moves is the displacement of all records, after any action.
- An action that was *hardly ever taken* in a state, if at all, may lead elsewhere than the others:
  there the chain is mixed with its base, with a share from 0 to 1, more often large than small. Nor
  need it move as in other states, since a wall or a border may be there: in half of the models the
  share of its move is multiplied by a uniform number. Both numbers are sampled once for each model.
  Numbers of each row would average out, and rules that try such actions would seem certain.
- The *lean* :math:`\beta`: actions that were rarely taken may lead to good or to bad states
  together, as experts avoid bad actions. :math:`x_{sa}` is ln(1 + records of the row), less its
  mean over the state's records; :math:`z_s` is the value of arriving in a state, in standard
  deviations under the chain.

`gibbs` samples all of them given the log. A record counts a little less than one, and still less
where records of one episode depend on each other; see `Assumptions.record_share`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, group_sum, normalise
from pastwise._numerics.checks import require_memory, require_number
from pastwise._numerics.threads import map_in_threads
from pastwise.data.counts import TransitionCounts
from pastwise.errors import ParameterError
from pastwise.models.samples import DenseSamples, SampledModels, SparseSamples

if TYPE_CHECKING:
    from pastwise.models import gibbs

DENSE_STATES = 32
"""Up to this many states a sampled model is a dense tensor, which is faster than sparse rows."""

ENTRIES_PER_BATCH = 400_000
"""Entries of the models that are sampled together: few enough for a cache."""

MODELS_PER_BATCH = 200
"""Most models that are sampled together. Batches have random streams of their own: another size
would give other samples."""

LISTED_SHARE = 0.98
"""Share of a move that sparse rows list; the rest is left to its atoms."""

MOST_STEPS = 12
"""Most displacements that they list."""

NEGLIGIBLE_SHARE = 0.01
"""Moves of a smaller share, on average, are left out of sparse rows."""

CHAINS_OF_SAMPLER = 2
"""Independent runs of the Gibbs sampler, in threads of their own."""


def _grid(low: float, high: float, number: int) -> tuple[float, ...]:
    return tuple(np.geomspace(low, high, number).tolist())


@dataclass(frozen=True)
class Assumptions:
    """The numbers of the model that somebody chose.

    All defaults were chosen on the families of ``pastwise study calibration --group chosen``, and
    are reported on others.

    Attributes
    ----------
    record_share : float
        How much of a record counts. Below one, since no log is as independent, and no state as
        complete, as the model assumes.
    masses : grid
        From rows that have nothing in common to rows that are the same.
    mass_power : float
        Prior weight of a mass is its power with this exponent.
    mass_concentration : float
        How many states it takes to overrule the prior weights of the masses.
    smallest_mass_factor : float
        One mass for all next states of a state is too simple: rows may differ more in what matters
        than in the rest. Half of the models have smaller masses, down to this share.
    pulls : grid
        Pull of the base measure, in records. A few at most: what the log says about a state shall
        count more than what it says about its neighbours.
    lean_mean, lean_deviation : float
        Prior mean and standard deviation of the lean; both 0 for none. The mean is positive, since
        more logs are of people who avoided what is bad than of people who sought it.
    largest_rarity : float
        Rarity is cut off here: actions that were taken a thousand times less often than others
        lean as those that were taken seven times less often.
    rare_up_to : int
        An action that was taken in a state at most this often may lead elsewhere than others did.
        In systems of more than ``list_all_up_to`` states, where nearly all rows have so few
        records, this concerns only actions that were never taken.
    strangeness : float
        How often it does: its chain is mixed with its base by a uniform number to the power of
        1 / (1 + strangeness). The larger systems are as without any strangeness, 1 / 2 on average.
    unseen_lean_deviation : float
        What was seen need not hold for actions that were never taken: their lean is a uniform share
        of the others', with this standard deviation.
    far_share : float
        Share of all states in the neighbourhood of a state.
    neighbours : int
        Most neighbours that a chain lists besides the next states that were seen, in systems of
        more than ``list_all_up_to`` states. Others share one entry, *elsewhere*.
    list_all_up_to : int
        Up to this many states, chains list every state, and actions have moves.
    shares : grid
        Share of the move in the mean of a row, from 0 to 1; a single 0 for no moves. With three of
        them a row follows its chain, the move, or both.
    share_weights : numbers
        Prior weights of these shares; most for none, since states need not have any order.
    share_concentration : float
        How many rows it takes to overrule these weights.
    move_pull : float
        Pull of the base of the moves, in records.
    move_spread : float
        Share of that base that is spread over all displacements, seen or not.
    stretch : float
        Factor by which values on sampled models are moved away from their mean: no system is as
        the model says, and on the chosen families intervals had to be this much wider to hold.
    """

    record_share: float = 0.9
    masses: Sequence[float] = _grid(0.3, 3000, 16)
    mass_power: float = -0.4
    mass_concentration: float = 8.0
    smallest_mass_factor: float = 0.1
    pulls: Sequence[float] = (0.25, 0.5, 1.0, 2.0)
    lean_mean: float = 0.1
    lean_deviation: float = 0.7
    largest_rarity: float = 2.0
    rare_up_to: int = 2
    strangeness: float = 1.0
    unseen_lean_deviation: float = 0.1
    far_share: float = 0.1
    neighbours: int = 64
    list_all_up_to: int = 150
    shares: Sequence[float] = (0.0, 0.5, 1.0)
    share_weights: Sequence[float] = (0.6, 0.2, 0.2)
    share_concentration: float = 4.0
    move_pull: float = 2.0
    move_spread: float = 0.2
    stretch: float = 1.2

    def __post_init__(self) -> None:
        if not 0 < self.record_share <= 1:
            raise ParameterError(
                f"record_share must be above 0 and at most 1, not {self.record_share!r}"
            )
        for name in ("masses", "pulls", "share_weights"):
            grid = np.asarray(getattr(self, name), dtype=np.float64)
            if not grid.size or not (np.isfinite(grid) & (grid > 0)).all():
                raise ParameterError(f"{name} must be positive numbers, at least one")
        shares = np.asarray(self.shares, dtype=np.float64)
        if not shares.size or not ((shares >= 0) & (shares <= 1)).all():
            raise ParameterError("shares must be numbers from 0 to 1, at least one")
        if len(self.shares) > 1 and len(self.shares) != len(self.share_weights):
            raise ParameterError(
                f"{len(self.share_weights)} share_weights for {len(self.shares)} shares; "
                "give one for each"
            )
        require_number("move_pull", self.move_pull, 1e-6, 1e6)
        require_number("move_spread", self.move_spread, 1e-6, 1)
        require_number("lean_deviation", self.lean_deviation, 0, 100)
        require_number("far_share", self.far_share, 0, 1)
        require_number("smallest_mass_factor", self.smallest_mass_factor, 1e-6, 1)
        for name in ("largest_rarity", "unseen_lean_deviation", "rare_up_to", "strangeness"):
            require_number(name, getattr(self, name), 0, 100)
        require_number("stretch", self.stretch, 0, 100)

    def has_moves(self, num_states: int) -> bool:
        """Whether the actions of a system of so many states have moves."""
        return len(self.shares) > 1 and num_states <= self.list_all_up_to

    @property
    def leans(self) -> FloatArray:
        """Grid of the lean, finer near zero: a long log may fix it to a hundredth."""
        if self.lean_deviation == 0:
            return np.zeros(1)
        steps = np.sinh(np.linspace(-4.0, 4.0, 25)) / np.sinh(4.0)
        return np.asarray(2.5 * self.lean_deviation * steps)


DEFAULT_ASSUMPTIONS = Assumptions()


# Chains and their base measures.


@dataclass(frozen=True, eq=False)
class ChainSupport:
    """The next states that the chain of each state lists, with base measures over them.

    Attributes
    ----------
    first : [S + 1]
        First entry of each state.
    column : [entries]
        Next state of each entry, ascending; S stands for *elsewhere*, all states not listed.
    bases : [B, entries]
        Base measures; each sums to one over the entries of a state.
    common : [S]
        Where the records of the log lead: the distribution of *elsewhere*.
    """

    first: IntArray
    column: IntArray
    bases: FloatArray
    common: FloatArray

    @cached_property
    def state(self) -> IntArray:
        """State of each entry: [entries]."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @cached_property
    def cumulative(self) -> FloatArray:
        """Sums of the base measures up to each entry of a state: [B, entries]."""
        total = np.cumsum(self.bases, axis=1)
        before = (total - self.bases)[:, self.first[:-1]]
        return np.asarray(total - before[:, self.state])

    def sum_by_state(self, values: FloatArray) -> FloatArray:
        """Sum of one number per entry over each state: [entries] -> [S]."""
        return np.add.reduceat(values, self.first[:-1])

    @classmethod
    def of(cls, counts: TransitionCounts, assumptions: Assumptions) -> ChainSupport:
        """The support and the base measures that a log suggests."""
        S = len(counts.states)
        require_memory("the neighbourhoods of all states", (S, S), "join states into fewer")
        pair = counts.state * S + counts.next_state
        pooled = group_sum(pair, counts.weight, S * S).reshape(S, S)
        entered = _entered(pooled)[0]
        near = neighbourhoods(pooled, counts.terminal)

        # What each chain lists: all states; or what was seen, and the nearest neighbours.
        listed = np.ones((S, S), dtype=bool)
        if assumptions.list_all_up_to < S:
            listed = pooled > 0
            nearest = np.argpartition(near, -assumptions.neighbours, axis=1)
            np.put_along_axis(listed, nearest[:, -assumptions.neighbours :], True, axis=1)
        row, column = np.nonzero(listed)
        first = np.searchsorted(row, np.arange(S + 1))

        # Base measures.
        tables = base_measures(pooled, near, assumptions)
        if assumptions.has_moves(S):
            by_others = displaced_as_others(pooled)
            far = assumptions.far_share
            tables = (*tables, (1 - far) * by_others + far * tables[1])
        bases = np.stack([table[row, column] for table in tables])
        if listed.all():
            return cls(first, column, bases, entered)
        return cls(*_with_elsewhere(first, column, bases), entered)


def base_measures(
    pooled: FloatArray, near: FloatArray, assumptions: Assumptions
) -> tuple[FloatArray, ...]:
    """The base measures that chains may have, one of which is inferred.

    Uniform; half where all records lead; the neighbourhood; half the neighbourhood, a quarter each
    of the others. [..., S, S] -> [..., S, S] each.

    Parameters
    ----------
    pooled : [..., S, S]
        Records from state to state, after any action; leading axes are independent systems.
    near : [..., S, S]
        Their `neighbourhoods`.
    assumptions : Assumptions
    """
    S = pooled.shape[-1]
    uniform = np.full(pooled.shape, 1 / S)
    entered = _entered(pooled)
    return (
        uniform,
        0.5 * entered + 0.5 * uniform,
        (1 - assumptions.far_share) * near + assumptions.far_share * entered,
        0.5 * near + 0.25 * entered + 0.25 * uniform,
    )


def _entered(pooled: FloatArray) -> FloatArray:
    """Where the records of each system lead: [..., S, S] -> [..., 1, S]."""
    return np.asarray(normalise(pooled.sum(axis=-2, keepdims=True) + 1 / pooled.shape[-1]))


def neighbourhoods(pooled: FloatArray, terminal: IntArray) -> FloatArray:
    """Where each state may lead, by the records of its neighbours: [..., S, S] -> [..., S, S].

    The neighbours of a state are those that lead to it. It may lead where they lead, or to them, or
    stay; it ends episodes as often as they do. Its own records do not count: a base measure made of
    them would confirm itself.

    Parameters
    ----------
    pooled : [..., S, S]
        Records from state to state, after any action.
    terminal : [number]
        They are entered and never left.
    """
    S = pooled.shape[-1]
    leads = _normalise_or(pooled, _entered(pooled))

    # Neighbours, by how often they lead to the state.
    anybody = normalise(pooled.sum(axis=-1) + 1 / S)[..., None, :]
    leads_here = np.swapaxes(pooled, -1, -2) * (1 - np.eye(S))
    leads_here[..., terminal, :] = 0.0
    neighbour = _normalise_or(leads_here, anybody)

    # Where they lead; and to them, or nowhere, unless the episode ends.
    like_them = neighbour @ leads
    to_them = 0.5 * neighbour + 0.5 * np.eye(S)
    goes_on = 1 - like_them[..., terminal].sum(axis=-1, keepdims=True)
    to_them = goes_on * to_them
    to_them[..., terminal] = like_them[..., terminal]
    return np.asarray(0.5 * like_them + 0.5 * normalise(to_them))


def _normalise_or(rows: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Rows as distributions; ``otherwise`` where a row is empty."""
    total = rows.sum(axis=-1, keepdims=True)
    return np.where(total > 0, rows / np.where(total > 0, total, 1.0), otherwise)


def _with_elsewhere(
    first: IntArray, column: IntArray, bases: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """The same with one more entry for each state, for the states that it does not list."""
    S = len(first) - 1
    listed = np.add.reduceat(bases, first[:-1], axis=1)
    rest = np.maximum(1 - listed, 1e-12)
    return (
        first + np.arange(S + 1),
        np.insert(column, first[1:], S),
        np.insert(bases, first[1:], rest, axis=1),
    )


# Moves.


def moved(moves: FloatArray) -> FloatArray:
    """Where moves lead from each state: [..., 2 S - 1] -> [..., S, S].

    What would leave the range of the states stays.

    Parameters
    ----------
    moves : [..., 2 S - 1]
        Distributions of the displacement.
    """
    S = (moves.shape[-1] + 1) // 2
    state, next_state = np.indices((S, S))
    rows = moves[..., next_state - state + S - 1]
    here = np.arange(S)
    rows[..., here, here] += np.maximum(1 - rows.sum(axis=-1), 0.0)
    return np.asarray(rows)


def displaced_as_others(pooled: FloatArray) -> FloatArray:
    """Where states lead if records of the others displace them: [S, S] -> [S, S].

    What would leave the range of the states stays. As in `neighbourhoods`, the records of the state
    itself do not count.
    """
    S = len(pooled)
    state, next_state = np.indices((S, S))
    step = next_state - state + S - 1
    by_step = group_sum(step.ravel(), pooled.ravel(), 2 * S - 1)
    of_others = by_step[step] - pooled
    total = pooled.sum() - pooled.sum(axis=-1, keepdims=True)
    rows = of_others / np.maximum(total, 1e-300)
    here = np.arange(S)
    rows[here, here] += np.maximum(1 - rows.sum(axis=-1), 0.0)
    return np.asarray(np.where(total > 0, rows, np.eye(S)))


# The posterior.


class TransitionPosterior:
    """The posterior of a transition model, to sample from.

    Parameters
    ----------
    counts : TransitionCounts
        The log, without leading axes.
    value : [S], optional
        Value of arriving in each state, for the lean; without it, or if it is constant, chains do
        not lean.
    seed : int
    design_effect : float
        How many dependent records carry as much information as one independent record.
    assumptions : Assumptions
    kept : int, optional
        Number of states of the sampler that models are sampled from; by default 200, fewer for
        large logs, whose hyper-parameters are certain.
    burn_in : int
        Sweeps before that. Differences of the results from those of 300 sweeps are below the
        digits that are shown.
    """

    def __init__(
        self,
        counts: TransitionCounts,
        value: FloatArray | None = None,
        *,
        seed: int = 0,
        design_effect: float = 1.0,
        assumptions: Assumptions = DEFAULT_ASSUMPTIONS,
        kept: int | None = None,
        burn_in: int = 30,
        dense_up_to: int = DENSE_STATES,
    ) -> None:
        from pastwise.models import gibbs

        self.num_states = len(counts.states)
        self.num_actions = len(counts.actions)
        self._counts = counts
        self._is_dense = self.num_states <= dense_up_to
        self._largest_rarity = assumptions.largest_rarity
        self._smallest_mass_factor = assumptions.smallest_mass_factor
        self._unseen_deviation = assumptions.unseen_lean_deviation
        self._rare_up_to = 0
        self._strangeness_power = 1.0
        if self.num_states <= assumptions.list_all_up_to:
            self._rare_up_to = assumptions.rare_up_to
            self._strangeness_power = 1 / (1 + assumptions.strangeness)
        self._design_effect = design_effect
        self._record_share = assumptions.record_share / design_effect
        self._records = counts.weight * self._record_share
        self._support = ChainSupport.of(counts, assumptions)
        self._has_moves = assumptions.has_moves(self.num_states)
        self._log = self._compiled_log()
        self._prior = self._compiled_prior(value, assumptions)

        # Independent runs of the sampler, each keeping its part of the states.
        if kept is None:
            kept = int(np.clip(3 * 10**5 // (len(counts.key) + 1), 40, 200))
        kept_by_run = -(-kept // CHAINS_OF_SAMPLER)
        entries = len(self._support.column)
        rows_with_moves = (self.num_states, self.num_actions) if self._has_moves else (0, 0)

        def run(index: int) -> gibbs.Kept:
            state = gibbs.Kept(
                tables=np.empty((kept_by_run, entries)),
                pull=np.empty(kept_by_run, np.int64),
                base=np.empty(kept_by_run, np.int64),
                lean=np.empty(kept_by_run, np.int64),
                mass=np.empty((kept_by_run, self.num_states), np.int64),
                share=np.empty((kept_by_run, *rows_with_moves), np.int64),
                move_tables=np.empty((kept_by_run, *self._shape_of_moves)),
            )
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index, 1)))
            gibbs.gibbs(self._log, self._prior, burn_in, state, rng)
            return state

        runs = map_in_threads(run, range(CHAINS_OF_SAMPLER))
        self._kept = gibbs.Kept(*(np.concatenate(parts) for parts in zip(*runs, strict=True)))

    def _compiled_log(self) -> gibbs.Log:
        """The log as the compiled sweeps take it."""
        from pastwise.models import gibbs

        counts = self._counts
        support = self._support
        shape = (self.num_states, self.num_actions)

        # The entry of each transition: entries ascend by state, then by next state.
        width = self.num_states + 1
        key_of_entry = support.state * width + support.column
        place = np.searchsorted(key_of_entry, counts.state * width + counts.next_state)

        # Likelihoods are of whole records, to the power of how much of them counts.
        records = np.maximum(np.rint(counts.weight), 1.0)
        row_records = group_sum(counts.row, records, shape[0] * shape[1])
        return gibbs.Log(
            first=np.searchsorted(counts.state, np.arange(self.num_states + 1)),
            action=counts.action,
            place=place,
            step=counts.next_state - counts.state,
            records=records.astype(np.int64),
            share=self._record_share * (counts.weight / records),
            row_records=row_records.astype(np.int64).reshape(shape),
            row_share=self._record_share,
        )

    def _compiled_prior(self, value: FloatArray | None, assumptions: Assumptions) -> gibbs.Prior:
        """The prior as the compiled sweeps take it."""
        from pastwise.models import gibbs

        support = self._support
        masses = np.asarray(assumptions.masses, dtype=np.float64)
        shares = np.zeros(1)
        share_weights = np.ones(1)
        if self._has_moves:
            shares = np.asarray(assumptions.shares, dtype=np.float64)
            share_weights = normalise(np.asarray(assumptions.share_weights, dtype=np.float64))
        move_base = self._move_base(assumptions.move_spread)
        is_open = np.ones(self.num_states, dtype=bool)
        is_open[self._counts.terminal] = False

        # Without different values there is nothing to lean to.
        leans = assumptions.leans
        if value is None or np.ptp(value) == 0:
            value = np.zeros(self.num_states)
            leans = np.zeros(1)
        else:
            value = (value - value.mean()) / np.ptp(value)  # the unit does not matter

        # The normal density of the lean, times the distance of its grid.
        lean_log_weight = np.zeros(len(leans))
        if len(leans) > 1:
            z = (leans - assumptions.lean_mean) / assumptions.lean_deviation
            lean_log_weight = np.log(np.gradient(leans)) - 0.5 * z**2
        value_of_column = np.append(value, support.common @ value)
        return gibbs.Prior(
            first=support.first,
            bases=support.bases,
            cumulative=support.cumulative,
            pull=np.asarray(assumptions.pulls, dtype=np.float64),
            mass=masses,
            mass_weight=assumptions.mass_concentration * normalise(masses**assumptions.mass_power),
            lean=leans,
            lean_log_weight=lean_log_weight,
            value=value_of_column[support.column],
            rarity=self._rarity,
            is_open=is_open,
            share=shares,
            share_weight=assumptions.share_concentration * share_weights,
            move_base=move_base,
            move_cumulative=np.cumsum(move_base),
            move_pull=assumptions.move_pull,
        )

    @property
    def _shape_of_moves(self) -> tuple[int, int]:
        """[A, 2 S - 1], or of no action if there are no moves."""
        return (self.num_actions if self._has_moves else 0, 2 * self.num_states - 1)

    def _move_base(self, spread: float) -> FloatArray:
        """Base measure of the moves: [2 S - 1].

        The displacements of all records, and a share of those between any two states.
        """
        S = self.num_states
        counts = self._counts
        by_step = group_sum(counts.next_state - counts.state + S - 1, counts.weight, 2 * S - 1)
        of_any = normalise(S - np.abs(np.arange(1 - S, S)).astype(np.float64))
        return np.asarray((1 - spread) * normalise(by_step + of_any) + spread * of_any)

    @cached_property
    def _row_records(self) -> FloatArray:
        """Records of each row, as counted: [S, A]."""
        return self._counts.by_state_action(self._counts.weight)

    @cached_property
    def _entered(self) -> FloatArray:
        """How many records that count enter each state, at least one: [S]."""
        entered = group_sum(self._counts.next_state, self._records, self.num_states)
        return np.maximum(entered, 1.0)

    @cached_property
    def _mean_rarity(self) -> FloatArray:
        """Mean of ln(1 + records of the row) over the records of each state: [S, 1]."""
        records = self._row_records
        total = records.sum(axis=-1, keepdims=True)
        of_rows = np.log1p(records)
        mean = (records * of_rows).sum(axis=-1, keepdims=True) / np.maximum(total, 1e-300)
        return np.asarray(np.where(total > 0, mean, of_rows.mean()))

    @cached_property
    def _rarity(self) -> FloatArray:
        """How much more often than usual each row was taken, in logarithms: [S, A]."""
        rarity = np.log1p(self._row_records) - self._mean_rarity
        return np.clip(rarity, -self._largest_rarity, self._largest_rarity)

    # Sampling.

    @property
    def batch_size(self) -> int:
        """How many models are sampled together: many small ones, or a single large one."""
        num_rows = self.num_states * self.num_actions
        if self._is_dense:
            entries = num_rows * self.num_states
        else:
            entries = len(self._counts.row) + self._entries_of_mean * num_rows
            entries += 2 * len(self._support.column)
        return int(np.clip(ENTRIES_PER_BATCH // entries, 1, MODELS_PER_BATCH))

    def sample(self, number: int, rng: np.random.Generator) -> SampledModels:
        """``number`` models, at most `batch_size`."""
        chosen = rng.integers(len(self._kept.pull), size=number)
        if self._is_dense:
            return self._sample_dense(chosen, rng)
        return self._sample_sparse(chosen, rng)

    def sample_behaviour(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Rules that the log's decisions may have followed: [number, S, A].

        Dirichlet given how often each action was taken; uniform where nothing was.
        """
        records = self._row_records / self._design_effect
        never_left = records.sum(axis=-1, keepdims=True) == 0
        concentration = np.where(never_left, 1.0, np.maximum(records, 1e-3))
        gamma = rng.standard_gamma(concentration, size=(number, *records.shape))
        return np.asarray(normalise(np.maximum(gamma, 1e-300)), dtype=np.float64)

    def _sample_dense(self, chosen: IntArray, rng: np.random.Generator) -> DenseSamples:
        kept = self._kept
        prior = self._prior
        S = self.num_states
        num_models = len(chosen)

        # Chains: [n, S, S], dense because every state is listed.
        factor = rng.standard_gamma(self._entered, size=(num_models, S)) / self._entered
        base = prior.bases[kept.base[chosen]].reshape(num_models, S, S) * factor[:, None]
        base = normalise(np.maximum(base, 1e-12))
        tables = kept.tables[chosen].reshape(num_models, S, S)
        pull = prior.pull[kept.pull[chosen]][:, None, None]
        chain = _dirichlet(pull * base + tables, rng)

        # Values of next states in standard deviations of the chain, and the leaning chains.
        value = prior.value.reshape(S, S)
        mean = (chain * value).sum(axis=-1, keepdims=True)
        variance = (chain * (value - mean) ** 2).sum(axis=-1, keepdims=True)
        z = np.clip((value - mean) / np.sqrt(np.maximum(variance, 1e-18)), -4.0, 4.0)
        lean = prior.lean[kept.lean[chosen]][:, None, None]
        unseen_lean = lean * rng.random(lean.shape)
        unseen_lean += self._unseen_deviation * rng.standard_normal(lean.shape)
        tilt = np.where(self._row_records == 0, unseen_lean, lean) * self._rarity
        start = self._start_of_rows(chain, base, rng)
        mean = normalise(start * np.exp(tilt[..., None] * z[:, :, None]))

        # Means of rows: the leaning chains, and the moves.
        if self._has_moves:
            concentration = prior.move_pull * prior.move_base + kept.move_tables[chosen]
            moves = moved(_dirichlet(concentration, rng)).swapaxes(1, 2)
            share = prior.share[kept.share[chosen]]
            carried_over = self._carried_over(num_models, rng)[:, None, None]
            share = np.where(self._is_rare, carried_over * share, share)[..., None]
            mean = mean + share * (moves - mean)

        # Rows.
        mass = self._mass_factor(num_models, rng)[:, None] * prior.mass[kept.mass[chosen]]
        transition = _dirichlet(self._tensor + mass[..., None, None] * mean, rng)

        # Terminal states are never left.
        for end in self._counts.terminal:
            transition[:, end] = np.eye(S)[end]
        return DenseSamples(transition)

    def _mass_factor(self, number: int, rng: np.random.Generator) -> FloatArray:
        """What the masses of each model are multiplied by: [number].

        One for half of the models; for the others down to ``smallest_mass_factor``, log-uniform.
        """
        exponent = rng.random(number)
        exponent[rng.random(number) < 0.5] = 0.0
        return np.asarray(self._smallest_mass_factor**exponent)

    def _carried_over(self, number: int, rng: np.random.Generator) -> FloatArray:
        """How much of a move holds where its action was hardly ever taken: [number].

        All of it in half of the models; a uniform share of it in the others.
        """
        share = rng.random(number)
        share[rng.random(number) < 0.5] = 1.0
        return np.asarray(share)

    def _start_of_rows(
        self, chain: FloatArray, base: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The distribution that each row varies around, before it leans: [n, S, S] -> [n, S, A, S].

        The state's chain; mixed with its base for actions that were hardly ever taken there.
        """
        strangeness = rng.random((len(chain), 1, 1)) ** self._strangeness_power
        of_rare = (1 - strangeness) * chain + strangeness * base
        return np.where(self._is_rare[..., None], of_rare[:, :, None], chain[:, :, None])

    @cached_property
    def _is_rare(self) -> BoolArray:
        """Whether each action was hardly ever taken in the state: [S, A]."""
        return np.asarray(self._row_records <= self._rare_up_to)

    @cached_property
    def _tensor(self) -> FloatArray:
        """The records that count: [S, A, S]."""
        shape = (self.num_states, self.num_actions, self.num_states)
        return group_sum(self._counts.key, self._records, int(np.prod(shape))).reshape(shape)

    @cached_property
    def _usual_steps(self) -> IntArray:
        """The displacements that a sparse row lists, for each action: [A, K].

        As many as hold `LISTED_SHARE` of every move, at most `MOST_STEPS`; none where moves have
        hardly any share.
        """
        if not self._has_moves or self.mean_share.mean() < NEGLIGIBLE_SHARE:
            return np.zeros((self.num_actions, 0), np.int64)
        order = np.argsort(-self.mean_moves, axis=-1, kind="stable")
        passed = np.cumsum(np.take_along_axis(self.mean_moves, order, axis=-1), axis=-1)
        enough = int((passed < LISTED_SHARE).sum(axis=-1).max()) + 1
        number = min(enough, MOST_STEPS, order.shape[-1])
        return np.asarray(order[:, :number] - (self.num_states - 1))

    @property
    def _entries_of_mean(self) -> int:
        """Entries of a sparse row besides the transitions that were seen.

        An atom of the chain and its line; with moves, an atom of the move and its usual steps.
        """
        num_steps = self._usual_steps.shape[1]
        return 2 + (num_steps + 1 if num_steps else 0)

    def _sample_sparse(self, chosen: IntArray, rng: np.random.Generator) -> SparseSamples:
        from pastwise.models import sparse_models

        counts = self._counts
        support = self._support
        num_rows = self.num_states * self.num_actions
        row_first = np.searchsorted(counts.row, np.arange(num_rows + 1))
        log = sparse_models.RowLog(
            first=row_first,
            next_state=counts.next_state,
            records=self._records,
            unseen_rarity=np.maximum(-self._mean_rarity[:, 0], -self._largest_rarity),
            is_rare=self._is_rare,
            strangeness_power=self._strangeness_power,
            entered=self._entered,
            unseen_deviation=self._unseen_deviation,
            usual_steps=self._usual_steps,
        )
        number = len(chosen)
        size = len(counts.row) + self._entries_of_mean * num_rows
        column = np.empty((number, size), np.int64)
        probability = np.empty(column.shape)
        line_first = np.empty((number, 2 * self.num_states + 1), np.int64)
        line_column = np.empty((number, 2 * len(support.column)), np.int64)
        lines = np.empty(line_column.shape)
        sparse_models.sample_models(
            self._prior,
            self._kept,
            chosen,
            self._mass_factor(number, rng),
            self._carried_over(number, rng),
            log,
            support.column,
            column,
            probability,
            line_first,
            line_column,
            lines,
            rng,
        )
        first = row_first + self._entries_of_mean * np.arange(num_rows + 1)
        return SparseSamples(
            first, column, probability, line_first, line_column, lines, support.common
        )

    # The mean.

    @cached_property
    def mean_chain(self) -> FloatArray:
        """Posterior mean of each chain: [S, S]."""
        kept = self._kept
        prior = self._prior
        S = self.num_states
        total = np.zeros(len(self._support.column))
        for h in range(len(kept.pull)):
            concentration = prior.pull[kept.pull[h]] * prior.bases[kept.base[h]] + kept.tables[h]
            total += concentration / self._support.sum_by_state(concentration)[self._support.state]
        mean = np.zeros((S, S + 1))
        mean[self._support.state, self._support.column] = total / len(kept.pull)
        return np.asarray(mean[:, :S] + mean[:, S:] * self._support.common)

    @cached_property
    def mean_mass(self) -> FloatArray:
        """Geometric mean of each state's mass: [S]."""
        return np.asarray(np.exp(np.log(self._prior.mass[self._kept.mass]).mean(axis=0)))

    @cached_property
    def mean_share(self) -> FloatArray:
        """Posterior mean of the share of the move in each row: [S, A]."""
        if not self._has_moves:
            return np.zeros((self.num_states, self.num_actions))
        return np.asarray(self._prior.share[self._kept.share].mean(axis=0))

    @cached_property
    def mean_moves(self) -> FloatArray:
        """Posterior mean of each move, the distribution of the displacement: [A, 2 S - 1]."""
        if not self._has_moves:
            return np.tile(self._prior.move_base, (self.num_actions, 1))
        of_base = self._prior.move_pull * self._prior.move_base
        return np.asarray(normalise(of_base + self._kept.move_tables).mean(axis=0))

    def mean_closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next_state | state) of the mean model under a rule [S, A]: [S, S].

        The mean model is (records + mass * mean of the row) / total; it does not lean.
        """
        counts = self._counts
        S = self.num_states
        mass = self.mean_mass[:, None]
        rule_by_total = rule / (counts.by_state_action(self._records) + mass)
        pair = counts.state * S + counts.next_state
        seen = group_sum(pair, rule_by_total.ravel()[counts.row] * self._records, S * S)
        loop = seen.reshape(S, S)

        # What the records leave open follows the chain or the move.
        left = mass * rule_by_total
        by_chain = left * (1 - self.mean_share)
        loop = loop + by_chain.sum(axis=-1, keepdims=True) * self.mean_chain
        if self._has_moves:
            by_move = left * self.mean_share
            for a in range(self.num_actions):
                loop += by_move[:, a, None] * moved(self.mean_moves[a])
        loop[counts.terminal] = np.eye(S)[counts.terminal]
        return np.asarray(loop)


def _dirichlet(concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Samples of Dirichlet distributions along the last axis.

    Where all of a small concentration underflows, the sample is the mean.
    """
    gamma = rng.standard_gamma(concentration)
    total = gamma.sum(axis=-1, keepdims=True)
    if total.all():
        return np.asarray(gamma / total)
    return np.where(total > 0, gamma / np.where(total > 0, total, 1.0), normalise(concentration))
