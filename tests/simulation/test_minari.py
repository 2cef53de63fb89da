"""Datasets of Minari: written from logs and counted again, they say the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import minari
import numpy as np
import pytest
from gymnasium import spaces
from minari.data_collector.episode_buffer import EpisodeBuffer

from pastwise import Goal, TransferLearner, count_transitions
from pastwise.data.space import Label
from pastwise.errors import FileError, MissingDependencyError
from pastwise.simulation.gymnasium import GymSystem, collect
from pastwise.simulation.minari import counts_of, to_minari

pytestmark = pytest.mark.usefixtures("datasets")

EDGES: list[list[float]] = [
    [-3, 0, 3],
    [-np.inf, -0.5, 0, 0.5, np.inf],
    [-0.5, 0, 0.5],
    [-np.inf, 0, np.inf],
]

BLACKJACK: Any = {"well": lambda state, reward: reward > 0, "badly": lambda state, reward: True}

DETAILS = {
    "author": "ann",
    "author_email": "ann@example.org",
    "code_permalink": "https://example.org",
    "algorithm_name": "random",
    "description": "a walk",
}


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where datasets are kept while a test runs."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def random_choice(number: int) -> Callable[[Label, np.random.Generator], Label]:
    return lambda state, rng: int(rng.integers(number))


def written(
    observations: Any, actions: Any, terminations: Any, observation_space: Any, action_space: Any
) -> Any:
    """A dataset of one episode, made without pastwise."""
    number = len(terminations)
    episode = EpisodeBuffer(
        observations=observations,
        actions=actions,
        rewards=[1.0] * number,
        terminations=terminations,
        truncations=[False] * number,
    )
    return minari.create_dataset_from_buffers(
        "made-v0",
        [episode],
        env="FrozenLake-v1",
        eval_env="FrozenLake-v1",
        observation_space=observation_space,
        action_space=action_space,
        **DETAILS,
    )


def test_the_lake_and_back() -> None:
    log = collect("FrozenLake-v1", random_choice(4), 100, np.random.default_rng(0))
    dataset = to_minari(log, "lake/random-v0")
    assert counts_of("lake/random-v0") == counts_of(dataset) == log.counts
    assert len(log.counts.terminal) > 0
    assert dataset.total_episodes == 100
    assert dataset.total_steps == len(log.state)
    assert [sum(episode.rewards) for episode in dataset] == log.returns.tolist()
    assert dataset.recover_environment().observation_space == spaces.Discrete(16)


def test_what_was_cut_off_is_truncated_and_not_terminal() -> None:
    log = collect("CliffWalking-v1", lambda state, rng: 0, 2, np.random.default_rng(0), max_steps=5)
    dataset = to_minari(log, "cliff-v0", **DETAILS)
    for episode in dataset:
        assert episode.truncations.tolist() == [False] * 4 + [True]
        assert not episode.terminations.any()
    counts = counts_of(dataset)
    assert counts == log.counts
    assert counts.terminal.tolist() == []
    assert dataset.storage.metadata["author"] == {"ann"}


def test_several_fields_and_named_ends_and_back() -> None:
    names: Any = {"fields": ("mine", "dealer", "ace"), "ends": BLACKJACK}
    system = GymSystem("Blackjack-v1", **names)
    log = collect(system, random_choice(2), 200, np.random.default_rng(0))
    to_minari(log, "blackjack-v0")
    assert counts_of("blackjack-v0", **names) == log.counts
    with pytest.raises(ValueError, match=r"the observation does not show an end\. Name the ends"):
        counts_of("blackjack-v0")


def test_continuous_observations_are_kept_and_cut_again() -> None:
    names: Any = {"bins": EDGES, "ends": {"fell": lambda state, reward: True}}
    system = GymSystem("CartPole-v1", **names)
    log = collect(system, random_choice(2), 50, np.random.default_rng(0))
    dataset = to_minari(log, "pole-v0")
    assert np.array_equal(dataset[3].observations, np.stack(log.observations[3]))
    assert counts_of(dataset, **names) == log.counts
    finer = counts_of(dataset, [4, *EDGES[1:]], ends=names["ends"])
    assert finer.num_records == log.counts.num_records


def test_actions_of_several_fields_and_back() -> None:
    """An environment that is registered nowhere and cannot be made again."""

    class Lamps(gymnasium.Env[Any, Any]):
        observation_space: Any = spaces.MultiBinary(2)
        action_space: Any = spaces.Tuple([spaces.Discrete(2, start=1), spaces.MultiDiscrete([2])])

        def reset(
            self, *, seed: int | None = None, options: Any = None
        ) -> tuple[Any, dict[str, Any]]:
            self.lamps = np.zeros(2, dtype=np.int8)
            return self.lamps, {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            which, (value,) = action
            self.lamps[which - 1] = value
            return self.lamps, 0.0, bool(self.lamps.all()), False, {}

    choices = [(which, value) for which in (1, 2) for value in (0, 1)]
    log = collect(
        Lamps(), lambda state, rng: choices[rng.integers(4)], 20, np.random.default_rng(0)
    )
    counts = counts_of(to_minari(log, "lamps-v0"))
    assert counts == log.counts
    assert [counts.states.labels[i] for i in counts.terminal] == [(1, 1)]
    assert counts.actions.labels == tuple(choices)


def test_a_dataset_made_elsewhere_is_counted_and_learned_from() -> None:
    dataset = written(
        [5, 6, 5, 7],
        [0, 1, 1],
        [False, False, True],
        spaces.Discrete(3, start=5),
        spaces.Discrete(2),
    )
    counts = counts_of(dataset)
    found = zip(
        counts.state.tolist(), counts.action.tolist(), counts.next_state.tolist(), strict=True
    )
    labels = counts.states.labels
    assert [(labels[s], a, labels[n]) for s, a, n in found] == [(5, 0, 6), (5, 1, 7), (6, 1, 5)]
    assert [labels[i] for i in counts.terminal] == [7]
    learner = TransferLearner(Goal(prefer={7: 1})).fit(counts)
    assert learner.rule_[5][1] > 0.99


def test_a_part_of_a_dataset_is_counted() -> None:
    log = collect("FrozenLake-v1", random_choice(4), 30, np.random.default_rng(1))
    dataset = to_minari(log, "lake-v0")
    short = dataset.filter_episodes(lambda episode: len(episode.rewards) < 5)
    lengths = np.bincount(log.episode)
    assert counts_of(short).num_records == lengths[lengths < 5].sum()


def test_spaces_that_do_not_fit_are_errors_that_say_what_to_do() -> None:
    box = spaces.Box(-1, 1, (1,))
    dataset = written(np.zeros((3, 1), np.float32), [0, 1], [False, False], box, spaces.Discrete(2))
    with pytest.raises(
        ValueError,
        match="observations are continuous in 1 dimensions: say how to cut them, by bins=",
    ):
        counts_of(dataset)
    assert counts_of(dataset, 2).num_records == 2


def test_continuous_actions_are_an_error_whose_advice_can_be_followed() -> None:
    """There is no environment to wrap, but a table can be made."""
    forces, box = np.array([[-0.5], [0.25], [0.75]], np.float32), spaces.Box(-1, 1, (1,))
    dataset = written([0, 1, 0, 0], forces, [False, False, False], spaces.Discrete(2), box)
    with pytest.raises(
        ValueError,
        match=r"actions are continuous \(Box\).*a table .* count_transitions, whose bins=",
    ):
        counts_of(dataset)
    (episode,) = dataset.iterate_episodes()
    seen, force = episode.observations, episode.actions[:, 0]
    table = {"state": seen[:-1], "force": force, "next_state": seen[1:]}
    counts = count_transitions(table, "state", "force", "next_state", bins={"force": [-1, 0, 1]})
    assert counts.actions.labels == ("[-1, 0)", "[0, 1)")
    assert counts.num_records == 3


def test_a_dataset_that_lacks_something_is_named() -> None:
    dataset = written(
        [0, 1, 0], [0, 1, 1], [False, False, True], spaces.Discrete(2), spaces.Discrete(2)
    )
    with pytest.raises(
        ValueError,
        match="episode 0 of the dataset has 3 observations, 3 actions and 3 terminations",
    ):
        counts_of(dataset)
    with pytest.raises(ValueError, match="'made-v0' has no episodes"):
        counts_of(dataset.filter_episodes(lambda episode: False))


def test_an_unknown_id_is_an_error_that_names_the_known() -> None:
    with pytest.raises(
        FileError, match=r"no dataset 'lake-v1' on this machine \(there are: none\)"
    ):
        counts_of("lake-v1")
    log = collect("FrozenLake-v1", random_choice(4), 2, np.random.default_rng(0))
    to_minari(log, "lake-v0")
    with pytest.raises(
        FileError, match=r"\(there are: lake-v0\); download it first: minari download lake-v1"
    ):
        counts_of("lake-v1")
    with pytest.raises(
        ValueError, match="give a dataset of Minari, or the id of one, not EpisodeLog"
    ):
        counts_of(log)


def test_a_dataset_is_not_overwritten_and_a_failure_leaves_nothing(datasets: Path) -> None:
    log = collect("FrozenLake-v1", random_choice(4), 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="'lake' is not the id of a dataset, such as name-v0"):
        to_minari(log, "lake")
    with pytest.raises(ValueError, match="eval_env"):
        to_minari(log, "lake-v0", eval_env=3)
    assert list(datasets.iterdir()) == []
    to_minari(log, "lake-v0")
    with pytest.raises(FileError, match=r"the dataset 'lake-v0' exists already in"):
        to_minari(log, "lake-v0")
    assert counts_of("lake-v0") == log.counts


@pytest.mark.parametrize("name", ["minari", "h5py"])
def test_without_minari_the_error_says_what_to_install(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'minari\[hdf5\]' pillow"):
        counts_of("lake-v0")
