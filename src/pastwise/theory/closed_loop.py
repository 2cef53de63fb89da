"""The closed loop of a system and a policy.

Paper: Definitions 1 [MDP] and 2 [def:closed_loop_descr], Eq. (1) [eq:closed-loop_beh].
"""

from __future__ import annotations

import numpy as np

from pastwise._numerics.arrays import FloatArray, batch_index, log
from pastwise.data.records import Trajectory
from pastwise.models.base import TransitionModel


def log_probability(
    model: TransitionModel, initial: FloatArray, policy: FloatArray, trajectory: Trajectory
) -> FloatArray:
    """Ln p(trajectory) of the closed loop of a system and a policy: [...].

    Parameters
    ----------
    policy : [..., N or 1, S, A]
        The rule of each epoch; one rule for all where that axis is 1.

    Paper: Eq. (1) [eq:closed-loop_beh].
    """
    if policy.ndim < 3:
        raise ValueError(f"a policy is [..., epoch, state, action]; got shape {policy.shape}")
    state, action, next_state = trajectory.transitions
    here, epochs, num_steps = batch_index(model.shape), policy.shape[-3], action.shape[-1]
    if epochs not in (1, num_steps):
        raise ValueError(
            f"a policy of {epochs} rules does not fit a trajectory of {num_steps} epochs"
        )
    full = np.broadcast_to(policy, (*model.shape, *policy.shape[-3:]))
    total = log(initial[(*here, trajectory.states[..., 0])])
    for t in range(num_steps):
        s, a, n = state[..., t], action[..., t], next_state[..., t]
        total = total + log(model.row(s, a)[(*here, n)]) + log(full[(*here, t % epochs, s, a)])
    return np.asarray(total)
