"""The peers on the systems of the study of planners."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.peers.planners import NUMPY_PEERS, OURS, page
from benchmarks.peers.sampling import PosteriorSampling, count_tensor
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.goals.ideal import IdealModel
from pastwise.studies.planners import offline_scores, registered_learners


def test_count_tensor_holds_every_record_of_every_log() -> None:
    state = np.array([[0, 0, 1], [1, 1, 1]])
    action = np.array([[0, 0, 1], [0, 0, 0]])
    next_state = np.array([[1, 1, 0], [0, 1, 1]])
    counts = TransitionCounts.from_records(
        state, action, next_state, Space.of_size(2), Space.of_size(2)
    )
    expected = np.zeros((2, 2, 2, 2))
    for log in range(2):
        for record in range(3):
            expected[log, state[log, record], action[log, record], next_state[log, record]] += 1
    np.testing.assert_array_equal(count_tensor(counts), expected)


@pytest.mark.parametrize("name", NUMPY_PEERS)
def test_peers_come_close_to_the_optimum_with_many_random_records(name: str) -> None:
    scores = offline_scores(
        {name: NUMPY_PEERS[name]}, ["forest"], pasts=["random"], records=[20_000], systems=2
    )
    assert scores.mean(name) > 0.9


def test_page_compares_with_every_peer() -> None:
    learners = {**registered_learners([OURS, "TL"]), **NUMPY_PEERS}
    scores = offline_scores(learners, ["forest"], ["random", "mixed"], records=[40], systems=2)
    lines = page(scores, list(NUMPY_PEERS), ["past"])
    assert lines[0] == "| past | TL_foresight | TL | " + " | ".join(NUMPY_PEERS) + " |"
    assert [line.split(" | ")[0] for line in lines[2:5]] == ["| random", "| mixed", "| all"]


def test_posterior_sampling_learns_which_action_leads_to_the_goal() -> None:
    # The second action leads to the wanted state, the first away from it, in two runs at once.
    states, actions = Space.of_size(2), Space.of_size(2)
    ideal = IdealModel.of([0.001, 0.999], num_actions=2)
    method = PosteriorSampling(period=5, discount=0.9)
    memory = method.start(TransitionCounts.empty(states, actions, (2,)), ideal)
    streams = Streams([np.random.SeedSequence(seed) for seed in range(2)])
    state = np.zeros(2, dtype=np.int64)
    for _ in range(60):
        rule = method.rule(memory, state, streams)
        action = rule.argmax(axis=-1)
        method.observe(memory, state, action, action)
        state = action
    assert memory.counts.sum() == 120
    np.testing.assert_allclose(method.rule(memory, state, streams)[:, 1], 1.0)
