"""Mean rewards of a log: which form they have, how they are shrunk, and how they are sampled."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise import Space, TransitionCounts
from pastwise.errors import ParameterError
from pastwise.models.rewards import RewardPosterior

STATES = Space.of_size(3)
ACTIONS = Space.of_size(2)


def random_records(
    number: int, seed: int = 0
) -> tuple[np.random.Generator, tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(seed)
    indices = tuple(rng.integers(size, size=number) for size in (3, 2, 3))
    return rng, indices


def test_a_reward_of_the_next_state_is_found_and_exact() -> None:
    _, (state, action, next_state) = random_records(200)
    reward = np.array([-1.0, 0.5, 4.0])[next_state]
    counts = TransitionCounts.from_records(
        state, action, next_state, STATES, ACTIONS, reward=reward
    )
    posterior = RewardPosterior.of(counts)
    assert posterior.by_next_state
    assert posterior.table == pytest.approx([-1, 0.5, 4])
    samples = posterior.sample(5, np.random.default_rng(0))
    assert samples == pytest.approx(np.tile([-1, 0.5, 4], (5, 1)), abs=1e-6)


@pytest.mark.parametrize("of_next_state", [0.0, 1.0])
def test_a_reward_of_state_and_action_is_found(of_next_state: float) -> None:
    """Also where the next state has a part in it: its mean by state and action is what counts."""
    rng, (state, action, next_state) = random_records(4000)
    truth = np.array([[0.0, 1.0], [2.0, -1.0], [0.5, 0.5]])
    noise = rng.normal(size=4000)
    reward = truth[state, action] + of_next_state * next_state + noise
    counts = TransitionCounts.from_records(
        state, action, next_state, STATES, ACTIONS, reward=reward
    )
    posterior = RewardPosterior.of(counts)
    assert posterior.table.shape == (3, 2, 1)
    # 660 records in each cell, of standard deviation 1.3 at most: 5 standard errors.
    assert posterior.mean == pytest.approx(truth + of_next_state, abs=0.25)


def test_noise_about_a_reward_of_the_next_state_does_not_hide_it() -> None:
    """By chance the other form is taken in about one log of fifty."""
    found = []
    for seed in range(40):
        rng, (state, action, next_state) = random_records(500, seed)
        reward = next_state + rng.normal(size=500)
        counts = TransitionCounts.from_records(
            state, action, next_state, STATES, ACTIONS, reward=reward
        )
        found.append(RewardPosterior.of(counts).by_next_state)
    assert sum(found) >= 35


def test_few_records_are_shrunk_and_many_are_not() -> None:
    rng = np.random.default_rng(3)
    state = np.zeros(303, dtype=np.int64)
    action = np.array([0] * 300 + [1] * 3)
    reward = np.where(action == 0, 0.0, 2.0) + rng.normal(size=303)
    counts = TransitionCounts.from_records(state, action, state, STATES, ACTIONS, reward=reward)
    posterior = RewardPosterior.of(counts, by_next_state=False)
    many = reward[:300].mean()
    few = reward[300:].mean()
    assert posterior.mean[0, 0] == pytest.approx(many, abs=0.02)
    assert many < posterior.mean[0, 1] < few

    # Nothing is known of other states but what is usual.
    assert posterior.mean[1] == pytest.approx(posterior.group_mean[1].repeat(2))
    deviation = posterior.sample(2000, rng).std(axis=0)
    assert deviation[0, 0] < deviation[0, 1] < deviation[1, 0]


def test_samples_have_the_posterior_mean() -> None:
    rng, (state, action, next_state) = random_records(60)
    counts = TransitionCounts.from_records(
        state, action, next_state, STATES, ACTIONS, reward=rng.normal(size=60)
    )
    posterior = RewardPosterior.of(counts, by_next_state=False)
    samples = posterior.sample(20_000, rng)
    error = samples.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(samples.mean(axis=0) - posterior.mean) < 5 * error).all()


def test_intervals_cover_the_mean_rewards() -> None:
    """Cells of 12 records on average: about 90 % of the central 90 % intervals hold the truth."""
    covered = []
    for seed in range(100):
        rng, (state, action, next_state) = random_records(72, seed)
        truth = rng.normal(size=(3, 2))
        reward = truth[state, action] + rng.normal(size=72)
        counts = TransitionCounts.from_records(
            state, action, next_state, STATES, ACTIONS, reward=reward
        )
        samples = RewardPosterior.of(counts, by_next_state=False).sample(400, rng)
        low, high = np.quantile(samples, [0.05, 0.95], axis=0)
        covered.append((low <= truth) & (truth <= high))
    assert 0.85 < np.mean(covered) < 0.96


def test_dependent_records_leave_more_open() -> None:
    rng, (state, action, next_state) = random_records(300)
    counts = TransitionCounts.from_records(
        state, action, next_state, STATES, ACTIONS, reward=rng.normal(size=300)
    )
    widths = []
    for effect in (1.0, 4.0):
        posterior = RewardPosterior.of(counts, design_effect=effect, by_next_state=False)
        widths.append(posterior.sample(4000, np.random.default_rng(0)).std(axis=0).mean())
    assert widths[1] > 1.5 * widths[0]


@pytest.mark.parametrize("reward", [0.0, 7.0, 0.1])
def test_a_constant_reward_is_known(reward: float) -> None:
    """Also one whose sums round."""
    _, (state, action, next_state) = random_records(20)
    counts = TransitionCounts.from_records(
        state, action, next_state, STATES, ACTIONS, reward=reward
    )
    posterior = RewardPosterior.of(counts)
    assert posterior.table == pytest.approx(reward)
    assert np.ptp(posterior.table) == 0
    assert posterior.sample(3, np.random.default_rng(0)) == pytest.approx(reward)


def test_a_single_record_is_enough() -> None:
    counts = TransitionCounts.from_records([0], [0], [1], STATES, ACTIONS, reward=3.0)
    for by_next_state in (True, False):
        posterior = RewardPosterior.of(counts, by_next_state=by_next_state)
        assert posterior.table == pytest.approx(3.0)


def test_a_log_without_records_tells_no_cells_apart() -> None:
    counts = TransitionCounts.from_records([], [], [], STATES, ACTIONS, reward=[])
    posterior = RewardPosterior.of(counts)
    assert not posterior.mean.any()
    samples = posterior.sample(5, np.random.default_rng(0))
    assert not samples.any()


def test_counts_without_rewards_are_refused() -> None:
    counts = TransitionCounts.from_records([0], [0], [1], STATES, ACTIONS)
    with pytest.raises(ParameterError, match="no rewards"):
        RewardPosterior.of(counts)
