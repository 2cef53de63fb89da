"""Literal oracles of Dirichlet posteriors: loops over rows and records, by ``math.lgamma``."""

from __future__ import annotations

from math import exp, lgamma, log

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from tests.helpers.oracles import random_log


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


def literal_likelihood(table: FloatArray, base: FloatArray, mass: float) -> float:
    """Ln of the Dirichlet-multinomial probability of all rows, for one order of the records.

    Parameters
    ----------
    table, base : [S, A, S]
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


def literal_mass(table: FloatArray, base: FloatArray, largest: float = 30.0) -> float:
    """Geometric mean of the grid of masses, weighted by likelihood."""
    num_states = table.shape[-1]
    end = min(largest, 2.0 * num_states)
    grid = [0.05 * (end / 0.05) ** (k / 24) for k in range(25)]
    likelihood = [literal_likelihood(table, base, mass) for mass in grid]
    weight = [exp(value - max(likelihood)) for value in likelihood]
    mean_log = sum(w * log(m) for w, m in zip(weight, grid, strict=True)) / sum(weight)
    return exp(mean_log)
