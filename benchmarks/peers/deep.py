"""d3rlpy's DiscreteBC and DiscreteCQL as learners from counts.

Both learn from single transitions, so that counts hold all that they need of a log. The state is
one of S inputs and the reward is the score of the next state. Training stops once the greedy rule
has stayed the same for some rounds.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.sampling import count_tensor
from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility

ALGORITHMS = ("DiscreteBC", "DiscreteCQL")


def learn_deep(
    algorithm: str,
    seed: int,
    counts: TransitionCounts,
    ideal: IdealModel,
    *,
    round_steps: int = 200,
    same_rounds: int = 3,
    max_rounds: int = 15,
    batch_size: int = 32,
) -> FloatArray:
    """The greedy rule after training: [S, A].

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    seed : int
        Of the network and of the batches.
    round_steps : int
        Steps of a round, after which the rule is compared with that of the round before.
    same_rounds : int
        Training stops after so many rounds without a change.
    max_rounds : int
        Most rounds. A clone of random actions never settles, since its best action is chance.
    batch_size : int
        Transitions of a step.
    """
    import d3rlpy

    _set_up(seed)
    inputs = np.eye(len(counts.states), dtype=np.float32)
    data = _data_set(counts, ideal, inputs)
    learner = _configuration(algorithm, batch_size).create(device=False)
    rounds = learner.fitter(
        data,
        n_steps=round_steps * max_rounds,
        n_steps_per_epoch=round_steps,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
        show_progress=False,
    )

    actions = np.full(len(inputs), -1)
    num_same = 0
    for _ in rounds:
        previous = actions
        actions = learner.predict(inputs)
        is_same = np.array_equal(actions, previous)
        num_same = num_same + 1 if is_same else 0
        if num_same >= same_rounds:
            break
    return np.asarray(np.eye(len(counts.actions))[actions])


def _set_up(seed: int) -> None:
    """Quiet, on one thread, with seeded random numbers.

    Denormal numbers are flushed: rare inputs leave them in Adam's moments, where they slow
    training.
    """
    import d3rlpy
    import structlog
    import torch

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    d3rlpy.seed(seed)


def _configuration(algorithm: str, batch_size: int) -> Any:
    """Settings of an algorithm: d3rlpy's own, but for those that suit short training.

    DiscreteCQL would copy its target network once in 8,000 steps; here it does so every 20, which
    is an epoch of looking ahead each. Learning rate and alpha are those of the comparison on
    ICU-Sepsis.
    """
    import d3rlpy

    if algorithm == "DiscreteBC":
        return d3rlpy.algos.DiscreteBCConfig(batch_size=batch_size)
    return d3rlpy.algos.DiscreteCQLConfig(
        batch_size=batch_size, learning_rate=1e-3, target_update_interval=20, alpha=0.1
    )


def _data_set(counts: TransitionCounts, ideal: IdealModel, inputs: NDArray[np.float32]) -> Any:
    """Every record as an episode: its transition and, where the episode goes on, the next state.

    d3rlpy takes the next state from the following step, and ignores the last step of an episode
    that was cut.
    """
    import d3rlpy

    score = Utility.of(ideal, counts.terminal).next_state_part[0, 0]
    state, action, next_state = np.nonzero(count_tensor(counts))
    number = count_tensor(counts)[state, action, next_state].astype(np.int64)
    state = np.repeat(state, number)
    action = np.repeat(action, number)
    next_state = np.repeat(next_state, number)

    # Two steps for each record; the second is left out where the first ends the episode.
    is_end = np.isin(next_state, counts.terminal)
    nothing = np.zeros(len(state))
    is_kept = np.column_stack([np.ones(len(state), dtype=bool), ~is_end]).ravel()
    columns = {
        "observations": np.column_stack([state, next_state]),
        "actions": np.column_stack([action, nothing]),
        "rewards": np.column_stack([score[next_state], nothing]),
        "terminals": np.column_stack([is_end, nothing]),
        "timeouts": np.column_stack([nothing, ~is_end]),
    }
    kept = {name: column.ravel()[is_kept] for name, column in columns.items()}
    return d3rlpy.dataset.MDPDataset(
        observations=inputs[kept["observations"]],
        actions=kept["actions"].astype(np.int64),
        rewards=kept["rewards"].astype(np.float32),
        terminals=kept["terminals"].astype(np.float32),
        timeouts=kept["timeouts"].astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=len(counts.actions),
    )
