"""The prior of a transition model, and what a log tells of it."""

from __future__ import annotations

from math import prod

import numpy as np
from scipy.special import gammaln

from pastwise._numerics.arrays import FloatArray, group_sum, normalise
from pastwise.data.counts import TransitionCounts

FEW_STATES = 32
"""Up to so many states a belief, or a drawn model, is dense."""


GRID = 25


LEAST_MASS, MOST_MASS, MOST_BACKGROUND = 0.05, 30.0, 2.0
"""Range of the prior: least and most mass of a row, in records, and most of it for a single next state."""


def prior_masses(num_states: int, most: float = MOST_MASS) -> FloatArray:
    """The masses that a prior may have, in records: [grid]."""
    return np.geomspace(LEAST_MASS, min(most, MOST_BACKGROUND * num_states), GRID)


def prior_log_likelihood(
    counts: TransitionCounts, mass: FloatArray, base: FloatArray
) -> FloatArray:
    """Log-likelihood of the log for each mass of the prior, by Dirichlet-multinomial rows: [..., grid].

    Parameters
    ----------
    mass : [grid]
    base : [distinct]
        Probability of each distinct transition under the prior's base.
    """
    systems, per_system = prod(counts.shape), len(counts.states) * len(counts.actions)
    total = counts.by_state_action(counts.weight).reshape(systems, per_system)
    rows = np.stack([(gammaln(m) - gammaln(total + m)).sum(axis=-1) for m in mass], axis=-1)
    system, once = (
        counts.row // per_system,
        counts.weight == 1,
    )  # most of a large log; Gamma(1 + x) / Gamma(x) is x
    single = np.outer(group_sum(system, once, systems), np.log(mass))
    single += group_sum(system[once], np.log(base[once]), systems)[:, None]
    of, weight, base = system[~once], counts.weight[~once], base[~once]
    cells = (gammaln(weight + m * base) - gammaln(m * base) for m in mass)
    sums = np.stack([group_sum(of, cell, systems) for cell in cells], axis=-1)
    return np.asarray(rows + single + sums).reshape(*counts.shape, -1)


def believed_mass(counts: TransitionCounts, base: FloatArray) -> FloatArray:
    """Mass of the prior that the log speaks for, a geometric mean over the grid: [...]."""
    mass = prior_masses(len(counts.states))
    log_likelihood = prior_log_likelihood(counts, mass, base)
    weight = normalise(np.exp(log_likelihood - log_likelihood.max(axis=-1, keepdims=True)))
    return np.asarray(np.exp(weight @ np.log(mass)))
