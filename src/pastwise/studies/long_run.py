r"""Exact values over a long run, and the best rule for it.

With P the closed loop of a rule, cut where an episode ends, and u the score of a state, the total
score of n epochs satisfies

.. math:: v_1 = P u, \qquad v_{m+n} = v_m + P^m v_n,

so that a run of any length takes few squarings of P. The value is v_n from the start; where
episodes do not end it is divided by n, the mean score of an epoch.

Unlike `System.value`, which looks at one episode of the log's own length, a long run does not
favour rules that know when it stops.
"""

from __future__ import annotations

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.studies.synthetic import System

LONG_RUN = 1024
"""Epochs of a long run: several times what the slowest families need to reach their goal."""


def long_run_values(system: System, rules: FloatArray, epochs: int = LONG_RUN) -> FloatArray:
    """Values of several rules [M, S, A] over a run: [M]."""
    closed_loop = np.einsum("msa,ksan->mksn", rules, system.model.transition, optimize=True)
    closed_loop[:, :, system.terminal] = 0.0

    # The total is put together from runs of 1, 2, 4, ... epochs: the binary digits of the number.
    step = closed_loop
    total_of_step = (closed_loop @ system.score)[..., None]
    total = np.zeros(total_of_step.shape)
    remaining = epochs
    while remaining:
        if remaining % 2:
            total = total_of_step + step @ total
        remaining //= 2
        if remaining:
            total_of_step = total_of_step + step @ total_of_step
            step = step @ step

    by_rule = (total[..., 0] @ system.initial) @ system.type_weights
    return np.asarray(by_rule if system.has_ends else by_rule / epochs)


def optimal_rule(system: System, epochs: int = LONG_RUN, most_rounds: int = 1000) -> FloatArray:
    """The best rule for a long run, for who knows no types: [S, A].

    Policy iteration with the discount 1 - 1 / epochs.

    Parameters
    ----------
    most_rounds : int
        Improvements of the rule after which to stop; ten are usual.
    """
    transition = system.mean_transition
    S = system.num_states
    discount = (1 - 1 / epochs) * system.goes_on
    now = transition @ system.score
    now[system.terminal] = 0.0
    transition = transition * discount

    actions = now.argmax(axis=-1)
    states = np.arange(S)
    for _ in range(most_rounds):
        loop = transition[states, actions] * system.goes_on[:, None]
        value = np.linalg.solve(np.eye(S) - loop, now[states, actions])
        action_values = now + transition @ value
        gain = action_values.max(axis=-1) - action_values[states, actions]
        is_better = gain > 1e-9  # less is rounding error, which could go in circles
        if not is_better.any():
            break
        actions = np.where(is_better, action_values.argmax(axis=-1), actions)
    return np.asarray(np.eye(system.num_actions)[actions])
