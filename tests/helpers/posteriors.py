"""Literal oracles of Dirichlet posteriors: loops over rows and records, by ``math.lgamma``."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.models.hierarchy import DEFAULT_ASSUMPTIONS
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


def literal_neighbourhoods(pooled: FloatArray) -> FloatArray:
    """Where each state may lead, by those that lead to it, in a system without ends: [S, S].

    Half where these states lead, a quarter to them, a quarter nowhere.
    """
    num_states = len(pooled)
    entered = pooled.sum(axis=0) + 1 / num_states
    left = pooled.sum(axis=1) + 1 / num_states
    near = np.zeros((num_states, num_states))
    for s in range(num_states):
        weight = np.array([pooled[k, s] if k != s else 0.0 for k in range(num_states)])
        if weight.sum() == 0:
            weight = left
        for k, share in enumerate(weight / weight.sum()):
            leads = pooled[k] if pooled[k].sum() > 0 else entered
            near[s] += 0.5 * share * leads / leads.sum()
            near[s, k] += 0.25 * share
        near[s, s] += 0.25
    return near


@dataclass(frozen=True)
class LiteralPrior:
    """A prior of rows: mass, probability of related rows, and mean [S, S]."""

    mass: float
    related: float
    mean: FloatArray

    @classmethod
    def of(cls, table: FloatArray, prior_related: float = 0.01) -> LiteralPrior:
        """The prior that a table of counts [S, A, S] implies, hypothesis by hypothesis."""
        num_states, num_actions, _ = table.shape
        pooled = table.sum(axis=1)
        entered = (pooled.sum(axis=0) + 1 / num_states) / (pooled.sum() + 1)
        near = literal_neighbourhoods(pooled)
        base = 0.5 * near + 0.25 * entered + 0.25 / num_states
        pulls = DEFAULT_ASSUMPTIONS.pulls
        pull = exp(sum(log(p) for p in pulls) / len(pulls))

        # The prior's mean if rows are related, with and without the records of the row itself.
        chain = np.empty((num_states, num_states))
        without_own = np.empty(table.shape)
        for s in range(num_states):
            chain[s] = (pooled[s] + pull * base[s]) / (pooled[s].sum() + pull)
            for a in range(num_actions):
                others = pooled[s] - table[s, a]
                without_own[s, a] = (others + pull * base[s]) / (others.sum() + pull)

        # Every hypothesis and mass.
        start = 0.05
        end = min(30.0, 2.0 * num_states)
        masses = [start * (end / start) ** (k / 12) for k in range(13)]
        uniform = np.full(table.shape, 1 / num_states)
        weights = []
        for probability, mean in ((1 - prior_related, uniform), (prior_related, without_own)):
            for mass in masses:
                prior_weight = log(probability) + DEFAULT_ASSUMPTIONS.mass_power * log(mass)
                weights.append(prior_weight + literal_likelihood(table, mean, mass))
        largest = max(weights)
        weights = [exp(w - largest) for w in weights]
        related = sum(weights[13:]) / sum(weights)
        mean_log = sum(w * log(m) for w, m in zip(weights, 2 * masses, strict=True)) / sum(weights)
        return cls(exp(mean_log), related, related * chain + (1 - related) / num_states)
