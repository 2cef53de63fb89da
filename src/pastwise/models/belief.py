"""Dirichlet posterior of the transitions: expectations and closed loops, for systems of any size.

The row of a state and an action has a Dirichlet posterior, made of its records and of a prior whose
mass m and mean are inferred from the log (`prior`). The mean row is

    (records + m * prior mean) / (number of records + m).

Nothing is stored per row but its records: the prior's mean is put together from the chain of each
state, the moves of each action and a distribution that all rows share. So one implementation serves
single logs and batches, small and large systems.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, group_sum, normalise
from pastwise._numerics.checks import require_memory
from pastwise.data.counts import TransitionCounts, flat_key
from pastwise.models.prior import (
    ENTERED,
    MOVE,
    NO_TABLES,
    UNIFORM,
    Places,
    RowPrior,
    Tables,
)

REFIT_GROWTH = 1.3
"""The prior's numbers are inferred anew after the number of observed records has grown by this
factor, and by five records; chains and pools always count all records."""


class PriorRow(NamedTuple):
    """Mean of the prior of one row, without the zeros.

    The probability of a next state n is ``anywhere + entered * belief.entered[0, n]``, and what
    the chain of the state and the moves of the action add to it.

    Attributes
    ----------
    anywhere : float
        Probability of each state under the uniform pool.
    entered : float
        Factor of the pool of where records lead.
    next_state, probability : [n]
        What chain and moves add; a next state may occur more than once. Where the row's own
        records are taken out of the pool, it is negative.
    """

    anywhere: float
    entered: float
    next_state: IntArray
    probability: FloatArray


class Belief:
    """Dirichlet posterior of the row of every state and action.

    Leading axes of the log are flattened to N independent systems.

    Parameters
    ----------
    counts : TransitionCounts
    prior : RowPrior, optional
        A prior that is known beforehand; by default it is inferred from the log.

    Attributes
    ----------
    num_systems, num_states, num_actions : int
        N, S and A.
    records : [N, S, A]
        Records of each row.
    mass : [N, S, A]
        Mass of the prior of each row, in records.
    weight : [N, S, A]
        Total concentration of each row: its records and the mass.
    entered : [N, S]
        Where the log's records lead: the pool that all rows share.
    """

    def __init__(self, counts: TransitionCounts, prior: RowPrior | None = None) -> None:
        self.num_systems = prod(counts.shape)
        self.num_states = len(counts.states)
        self.num_actions = len(counts.actions)
        self._observed: list[IntArray] = []
        self._num_observed = 0
        self._refitted_at = 0
        self._infers_prior = prior is None
        self._count(counts, prior)

    def _count(self, counts: TransitionCounts, prior: RowPrior | None) -> None:
        """Compute the posterior of a log under a prior or, with None, under the one inferred."""
        places = Places(counts)
        if prior is None:
            prior = RowPrior.of(counts, places=places)
        self._counts = counts
        self._prior = prior
        shape = (self.num_systems, self.num_states, self.num_actions)
        self.records = counts.by_state_action(counts.weight).reshape(shape)
        self.mass = prior.mass_of_rows(places)
        self.weight = self.records + self.mass

        # The chain of each state, and how much of the prior's mean it is.
        tables = Tables(places, prior.mass)
        self._tables = tables
        pair, _ = places.pairs
        self._pair_state = pair // self.num_states
        self._pair_next = pair % self.num_states
        self._pair_share = tables.of_pair / np.maximum(tables.of_state[self._pair_state], NO_TABLES)
        of_state = tables.of_state.reshape(shape[:2])
        self._chain_share = (of_state / (of_state + prior.pull[:, None]))[..., None]

        # Shares of the pools. An action that was never taken moves as any action does.
        is_taken = tables.moves.sum(axis=-1, keepdims=True) > NO_TABLES
        moves = np.where(is_taken, tables.moves, tables.any_move[:, None])
        total_moves = moves.sum(axis=-1, keepdims=True)
        has_moves = total_moves[..., 0] > NO_TABLES
        shares = np.repeat(prior.shares[:, None], self.num_actions, axis=1)
        shares[..., MOVE] *= has_moves
        shares = normalise(shares)[:, None] * (1 - self._chain_share)[..., None]

        # What all rows share: where records lead, and anywhere.
        entered = tables.entered + np.where(tables.entered.any(axis=1), 0.0, 1.0)[:, None]
        self.entered = normalise(entered)
        self._entered_share = shares[..., ENTERED]
        self._uniform_share = shares[..., UNIFORM]

        # The moves.
        self._move_share = shares[..., MOVE]
        moves = moves * has_moves[..., None] / np.maximum(total_moves, NO_TABLES)
        self._move_row, self._move_next, self._move = self._moves_of_rows(moves, places.arrival)

    def _moves_of_rows(
        self, moves: FloatArray, arrival: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """The moves [N, A, D] of each row: row, next state and probability, [moves]."""
        system, action, step = np.nonzero(moves)
        state = np.arange(self.num_states)[:, None]
        row = (system * self.num_states + state) * self.num_actions + action
        probability = np.broadcast_to(moves[system, action, step], row.shape)
        return row.ravel(), arrival[:, step].ravel(), probability.ravel()

    # New records.

    def observe(self, state: IntArray, action: IntArray, next_state: IntArray) -> None:
        """Add one record to each system: arrays [...]."""
        system = np.arange(self.num_systems).reshape(self._counts.shape)
        key = flat_key(system, state, action, next_state, self.num_states, self.num_actions)
        self._observed.append(key.ravel())
        self._num_observed += 1

    def refresh(self) -> None:
        """Count the records that were observed since the last time."""
        if not self._observed:
            return
        key = np.concatenate(self._observed)
        self._observed.clear()
        counts = self._counts.with_keys(key)
        is_due = self._num_observed >= REFIT_GROWTH * self._refitted_at + 5
        if self._infers_prior and is_due:
            self._refitted_at = self._num_observed
            self._count(counts, None)
        else:
            self._count(counts, self._prior)

    # Expectations.

    def _per_row(self, row: IntArray, values: FloatArray) -> FloatArray:
        """Sum of values over the rows: [n] -> [N, S, A]."""
        return group_sum(row, values, self.weight.size).reshape(self.weight.shape)

    def _at(self, values: FloatArray, row: IntArray, next_state: IntArray) -> FloatArray:
        """Values [N, S] or [N, S, A, S] at the transitions of some rows: [n]."""
        if values.ndim == 2:
            return values[row // (self.num_states * self.num_actions), next_state]
        return values.reshape(-1, self.num_states)[row, next_state]

    def of_records(self, values: FloatArray) -> FloatArray:
        """Sum of values over the records of each row: [N, S] or [N, S, A, S] -> [N, S, A]."""
        counts = self._counts
        at_cells = self._at(values, counts.row, counts.next_state)
        return self._per_row(counts.row, counts.weight * at_cells)

    def of_prior(self, values: FloatArray) -> FloatArray:
        """Mean of values under the prior of each row: [N, S] or [N, S, A, S] -> [N, S, A]."""
        mean = self._of_chains(values) * self._chain_share

        # Pools that all rows share.
        of_entered = np.einsum("n...s,ns->n...", values, self.entered)
        of_uniform = values.mean(axis=-1)
        if values.ndim == 2:
            of_entered = of_entered[:, None, None]
            of_uniform = of_uniform[:, None, None]
        mean = mean + self._entered_share * of_entered + self._uniform_share * of_uniform

        # Moves.
        at_moves = self._at(values, self._move_row, self._move_next)
        moved = self._per_row(self._move_row, self._move * at_moves)
        return np.asarray(mean + self._move_share * moved)

    def _of_chains(self, values: FloatArray) -> FloatArray:
        """Mean of values under each state's chain: [N, S] or [N, S, A, S] -> [N, S, 1 or A]."""
        size = self.num_systems * self.num_states
        if values.ndim == 2:
            system = self._pair_state // self.num_states
            seen = self._pair_share * values[system, self._pair_next]
            return group_sum(self._pair_state, seen, size).reshape(-1, self.num_states, 1)
        by_state = values.reshape(size, self.num_actions, self.num_states)
        columns = []
        for action in range(self.num_actions):
            seen = self._pair_share * by_state[self._pair_state, action, self._pair_next]
            columns.append(group_sum(self._pair_state, seen, size))
        return np.stack(columns, axis=-1).reshape(-1, self.num_states, self.num_actions)

    def mean(self, values: FloatArray) -> FloatArray:
        """Mean of values under the mean row: [N, S] or [N, S, A, S] -> [N, S, A]."""
        total = self.of_records(values) + self.mass * self.of_prior(values)
        return np.asarray(total / self.weight)

    def prior_row(self, state: int, action: int) -> PriorRow:
        """Mean of the prior of one row of a single system, given the records of all other rows.

        The row's own records would confirm themselves: they count once, as records.
        """
        S = self.num_states
        tables = self._tables

        # Tables of the row itself.
        row = state * self.num_actions + action
        first, last = self._counts.row.searchsorted([row, row + 1])
        own_next = self._counts.next_state[first:last]
        own = tables.of_cell[first:last]
        own_total = own.sum()

        # The chain of the state.
        first, last = np.searchsorted(self._pair_state, [state, state + 1])
        chain_next = self._pair_next[first:last]
        chain = tables.of_pair[first:last].copy()
        chain[np.searchsorted(chain_next, own_next)] -= own
        chain_total = max(tables.of_state[state] - own_total, 0.0)
        chain_share = chain_total / (chain_total + self._prior.pull[0])

        # Moves: of the action in other states or, if it was taken in this one only, of any action.
        moves = tables.moves[0, action]
        if moves.sum() - own_total <= NO_TABLES:
            moves = tables.any_move[0]
        moved = group_sum(tables.places.arrival[state], moves, self.num_states)
        moved[own_next] -= own
        move_total = moves.sum() - own_total

        # Shares of the pools.
        entered_total = tables.entered[0].sum() - own_total
        shares = self._prior.shares[0].copy()
        shares[ENTERED] *= entered_total > NO_TABLES
        shares[MOVE] *= move_total > NO_TABLES
        shares *= (1 - chain_share) / shares.sum()
        by_entered = shares[ENTERED] / max(entered_total, NO_TABLES)

        reached = np.flatnonzero(moved > 0) if shares[MOVE] else own_next[:0]
        probability = [
            chain_share * np.maximum(chain, 0.0) / max(chain_total, NO_TABLES),
            shares[MOVE] * moved[reached] / max(move_total, NO_TABLES),
            -by_entered * own,
        ]
        return PriorRow(
            anywhere=float(shares[UNIFORM] / S),
            entered=float(by_entered * tables.entered[0].sum()),
            next_state=np.concatenate([chain_next, reached, own_next]),
            probability=np.concatenate(probability),
        )

    def staying(self) -> FloatArray:
        """Concentration of staying in the state, of each row: [N, S, A]."""
        counts = self._counts
        S = self.num_states
        is_stay = counts.next_state == counts.row // self.num_actions % S
        own = self._per_row(counts.row[is_stay], counts.weight[is_stay])

        is_stay = self._pair_next == self._pair_state % S
        chain = group_sum(self._pair_state[is_stay], self._pair_share[is_stay], own[..., 0].size)
        prior = self._chain_share * chain.reshape(-1, S, 1)
        prior = prior + self._entered_share * self.entered[:, :, None] + self._uniform_share / S
        is_stay = self._move_next == self._move_row // self.num_actions % S
        moves = self._per_row(self._move_row[is_stay], self._move[is_stay])
        prior = prior + self._move_share * moves
        return np.asarray(own + self.mass * prior)

    def closed_loop(self, rule: FloatArray) -> FloatArray:
        """p(next state | state) of the mean rows under a rule: [N, S, A] -> [N, S, S]."""
        S = self.num_states
        shape = (self.num_systems, S, S)
        require_memory("a plan", shape, "join states into fewer")
        by_weight = rule / self.weight
        by_prior = self.mass * by_weight

        # Records and moves.
        counts = self._counts
        pair = counts.row // self.num_actions * S + counts.next_state
        loop = group_sum(pair, counts.weight * by_weight.ravel()[counts.row], prod(shape))
        by_move = by_prior * self._move_share
        if len(self._move):
            pair = self._move_row // self.num_actions * S + self._move_next
            loop += group_sum(pair, self._move * by_move.ravel()[self._move_row], prod(shape))

        # Chains.
        by_chain = (by_prior * self._chain_share).sum(axis=-1).ravel()
        pair = self._pair_state * S + self._pair_next
        loop[pair] += self._pair_share * by_chain[self._pair_state]

        # Pools that all rows share.
        loop = loop.reshape(shape)
        loop += (by_prior * self._uniform_share).sum(axis=-1)[..., None] / S
        by_entered = (by_prior * self._entered_share).sum(axis=-1)
        loop += by_entered[..., None] * self.entered[:, None]
        return np.asarray(loop)

    @cached_property
    def is_open(self) -> BoolArray:
        """Whether an episode goes on in each state: [S]."""
        is_open = np.ones(self.num_states, dtype=bool)
        is_open[self._counts.terminal] = False
        return is_open


def of_own_state(values: FloatArray) -> FloatArray:
    """Values of staying in each state: [N, S] or [N, S, A, S] -> [N, S, 1 or A]."""
    return values[:, :, None] if values.ndim == 2 else np.einsum("nsas->nsa", values)
