"""Literal oracles of Dirichlet posteriors: loops over rows and records, by ``math.lgamma``."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.models.prior import FACTORS, RowPrior
from tests.helpers.oracles import Record, log_of, random_log


def weighted_counts(
    num_states: int, num_actions: int, number: int = 60, seed: int = 3
) -> TransitionCounts:
    """A random log whose weights are not integers; with few records most rows are empty."""
    rng = np.random.default_rng(seed)
    log_ = random_log(rng, num_states, num_actions, number)
    weight = rng.uniform(0.1, 3.0, number)
    states = Space.of_size(num_states)
    actions = Space.of_size(num_actions)
    return TransitionCounts.from_records(*log_, states, actions, weight=weight)


def table_of(counts: TransitionCounts) -> FloatArray:
    """Weights as a dense tensor [S, A, S], record by record."""
    table = np.zeros((len(counts.states), len(counts.actions), len(counts.states)))
    columns = (counts.state, counts.action, counts.next_state, counts.weight)
    for s, a, n, weight in zip(*columns, strict=True):
        table[s, a, n] += weight
    return table


def batch_of(
    logs: Sequence[Sequence[Record]], num_states: int, num_actions: int
) -> TransitionCounts:
    """Logs of any lengths as one batch, with one leading axis."""
    records = log_of([record for log in logs for record in log])
    system = np.repeat(np.arange(len(logs)), [len(log) for log in logs])
    ones = np.ones(len(system))
    return TransitionCounts.from_groups(
        Space.of_size(num_states),
        Space.of_size(num_actions),
        (system, records.state, records.action, records.next_state),
        (ones.astype(np.int64), ones, ones),
        shape=(len(logs),),
    )


def literal_likelihood(table: FloatArray, base: FloatArray, mass: float) -> float:
    """Ln of the Dirichlet-multinomial probability of all rows, for one order of the records.

    Parameters
    ----------
    table, base : [..., S]
        Counts, and the prior's mean.
    """
    num_states = table.shape[-1]
    rows = table.reshape(-1, num_states)
    priors = base.reshape(-1, num_states)
    total = 0.0
    for row, prior in zip(rows, priors, strict=True):
        total += lgamma(mass) - lgamma(mass + row.sum())
        for n, b in zip(row, prior, strict=True):
            if n > 0:
                total += lgamma(mass * b + n) - lgamma(mass * b)
    return total


def literal_masses(
    table: FloatArray, base: FloatArray, mass: float, factors: Sequence[float]
) -> FloatArray:
    """Mass [S, A] of each row, given its records, by loops; see `pastwise.models.prior`.

    Parameters
    ----------
    table, base : [S, A, S]
        Counts, and the prior's mean by the other rows.
    mass, factors
        Mass of all rows, and the probability of each factor of it.
    """
    masses = np.full(table.shape[:2], mass)
    for row in np.ndindex(*masses.shape):
        number = table[row].sum()
        if number:
            scores = []
            for factor, probability in zip(FACTORS, factors, strict=True):
                likelihood = literal_likelihood(table[row], base[row], factor * mass)
                scores.append(likelihood + log(probability))
            weights = [exp(score - max(scores)) for score in scores]
            own_share = 0.0
            for factor, weight in zip(FACTORS, weights, strict=True):
                own_share += weight / sum(weights) / (number + factor * mass)
            masses[row] = 1 / own_share - number
    return masses


def literal_arrival(
    coordinates: Sequence[tuple[int, ...]], start: int, before: int, after: int
) -> int:
    """Where the move from one state to another leads from a third, ``start``.

    None of several fields leaves its range. Where there is no state, the move stays.
    """
    target = []
    for field in range(len(coordinates[0])):
        values = [place[field] for place in coordinates]
        value = values[start] + values[after] - values[before]
        if len(coordinates[0]) > 1:
            value = min(max(value, min(values)), max(values))
        target.append(value)
    is_state = tuple(target) in coordinates
    return list(coordinates).index(tuple(target)) if is_state else start


def literal_prior_mean(
    table: FloatArray,
    mass: float,
    pull: float,
    shares: Sequence[float],
    without_own_row: bool = False,
    coordinates: Sequence[tuple[int, ...]] | None = None,
) -> FloatArray:
    """Mean [S, A, S] of the prior of each row, by loops; see `pastwise.models.prior`.

    Parameters
    ----------
    table : [S, A, S]
        Counts.
    mass, pull, shares
        The numbers of the prior; the pools are uniform, entered and moved.
    without_own_row : bool
        Whether the records of a row are left out of its own prior.
    coordinates : sequence of tuples
        Where each state lies; by default on a line, in the order of the states.
    """
    num_states, num_actions, _ = table.shape
    coordinates = coordinates or [(s,) for s in range(num_states)]
    uniform = np.full(num_states, 1 / num_states)
    of_rows = np.empty(table.shape)
    for row in np.ndindex(num_states, num_actions):
        of_rows[row] = table[row] * mass / (table[row].sum() + mass)

    mean = np.empty(table.shape)
    for s, a in np.ndindex(num_states, num_actions):
        tables = of_rows.copy()
        if without_own_row:
            tables[s, a] = 0.0

        # Pools. An action without records elsewhere moves as any action does.
        entered = tables.sum(axis=(0, 1))
        moving = tables[:, a] if tables[:, a].any() else tables.sum(axis=1)
        moved = np.zeros(num_states)
        for other, n in np.ndindex(num_states, num_states):
            moved[literal_arrival(coordinates, s, other, n)] += moving[other, n]
        pools = [uniform, entered, moved]
        weights = [w if pool.any() else 0.0 for w, pool in zip(shares, pools, strict=True)]
        pooled = np.zeros(num_states)
        for weight, pool in zip(weights, pools, strict=True):
            if weight:
                pooled += weight / sum(weights) * pool / pool.sum()

        # The chain.
        chain = tables[s].sum(axis=0)
        mean[s, a] = (chain + pull * pooled) / (chain.sum() + pull)
    return mean


def literal_concentration(
    counts: TransitionCounts, prior: RowPrior, without_own_row: bool = False
) -> FloatArray:
    """Counts + mass * mean of the prior, [S, A, S], by loops; a row's mass is its own."""
    table = table_of(counts)
    mass = float(prior.mass[0])
    numbers = (mass, float(prior.pull[0]), prior.shares[0].tolist())
    coordinates = [tuple(place) for place in counts.states.coordinates.tolist()]
    by_others = literal_prior_mean(table, *numbers, True, coordinates)
    mean = literal_prior_mean(table, *numbers, without_own_row, coordinates)
    masses = np.full(table.shape[:2], mass)
    if prior.factors is not None:
        masses = literal_masses(table, by_others, mass, prior.factors[0].tolist())
    return np.asarray(table + masses[..., None] * mean)
