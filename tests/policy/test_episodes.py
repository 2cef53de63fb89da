"""A policy knows the episodes of its log: after learning more, for another goal, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pastwise import Goal, TransferLearner, load
from pastwise.data.episodes import EpisodeSummary
from pastwise.errors import PolicyFileError
from tests.helpers.episodes import DOOR_COLUMNS, door_episodes
from tests.helpers.policy_files import forge, parts

GOAL = Goal(prefer="win")


def fitted(**more: Any) -> TransferLearner:
    return TransferLearner(GOAL).fit(door_episodes(), **DOOR_COLUMNS, **more)


def episodes_of(learner: TransferLearner) -> EpisodeSummary:
    episodes = learner._fitted.episodes
    assert episodes is not None
    return episodes


def assert_same(one: EpisodeSummary, two: EpisodeSummary) -> None:
    assert one.to_dict() == two.to_dict()
    assert one.folds == two.folds
    assert one.visits is not None
    assert two.visits is not None
    for name in ("by_state", "pair", "by_pair"):
        assert np.array_equal(getattr(one.visits, name), getattr(two.visits, name))


def assert_split(learner: TransferLearner) -> None:
    """The folds have exactly the records of the learner's counts."""
    counts = learner.counts_
    total = episodes_of(learner).folds_of(counts).total()
    assert np.array_equal(total.key, counts.key)
    assert np.array_equal(total.records, counts.records)


def test_learning_keeps_the_episodes() -> None:
    learner = fitted()
    episodes = episodes_of(learner)
    door = learner.counts_.states.index("door")
    assert episodes.number == episodes.starts[door] == episodes.starts.sum() == 300
    assert (episodes.shortest, episodes.median, episodes.longest) == (1, 1, 9)
    assert episodes.unit == "e"
    assert episodes.folds.total() == learner.counts_
    assert_same(episodes_of(learner.retarget(Goal(prefer="lose"))), episodes)


def test_counts_know_no_episodes() -> None:
    learner = TransferLearner(GOAL).fit(fitted().counts_)
    assert learner._fitted.episodes is None


def test_a_further_log_adds_its_episodes() -> None:
    learner = fitted()
    before = episodes_of(learner)
    learner.update(door_episodes())
    after = episodes_of(learner)
    assert_same(after, before + before)
    assert after.number == 600
    assert_split(learner)


def test_records_observed_and_merged_belong_to_no_episode() -> None:
    learner = fitted()
    before = episodes_of(learner)
    learner.observe("room", "push", "win")
    assert_same(episodes_of(learner), before)
    assert_split(learner)
    learner.merge(fitted().counts_)
    assert_same(episodes_of(learner), before)
    assert_split(learner)

    # A new label: the summary is over the larger spaces.
    learner.observe("room", "shout", "hall")
    assert episodes_of(learner).to_dict() == {
        **before.to_dict(),
        "starts": before.relabelled(
            learner.counts_.states, learner.counts_.actions
        ).starts.tolist(),
        "by_action": [*before.by_action.tolist(), 0],
    }
    assert_split(learner)


def test_a_state_that_becomes_terminal_leaves_the_folds() -> None:
    learner = fitted()
    ends = fitted().counts_
    room = ends.states.index("room")
    with pytest.warns(UserWarning, match="leaving a terminal state"):
        learner.merge(ends.ending_in(np.append(ends.terminal, room)))
    assert_split(learner)
    assert room not in episodes_of(learner).folds.state


@pytest.mark.parametrize("more", [{}, {"age": "t", "half_life": 3}, {"weight": "t1"}])
def test_a_file_keeps_the_episodes(tmp_path: Path, more: dict[str, Any]) -> None:
    log = door_episodes()
    log["t1"] = [1 + time / 4 for time in log["t"]]
    learner = TransferLearner(GOAL).fit(log, **DOOR_COLUMNS, **more)
    learner.observe("door", "push", "room", **({"date": 20} if "age" in more else {}))
    learner.save(tmp_path / "policy.safetensors")
    again = load(tmp_path / "policy.safetensors")
    assert_same(episodes_of(again), episodes_of(learner))
    assert_split(again)


@pytest.mark.parametrize(
    "name",
    [
        "starts",
        "by_action",
        "fold:key",
        "fold:records",
        "fold:weight",
        "visits:by_state",
        "visits:pair",
        "visits:by_pair",
    ],
)
def test_damaged_episodes_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "policy.safetensors"
    fitted().save(path)
    tensors, content = parts(path)
    forge(path, tensors | {name: -tensors[name] - 1}, content)
    with pytest.raises(PolicyFileError, match="damaged"):
        load(path)
    del tensors[name]
    forge(path, tensors, content)
    with pytest.raises(PolicyFileError, match=f"{name} is missing"):
        load(path)


@pytest.mark.parametrize(
    "change", [{"number": 0}, {"median": 1.5}, {"unit": 3}, {"varied": -1}, {"several": True}]
)
def test_impossible_numbers_of_episodes_are_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "policy.safetensors"
    fitted().save(path)
    tensors, content = parts(path)
    content["episodes"] |= change
    forge(path, tensors, content)
    with pytest.raises(PolicyFileError, match="damaged"):
        load(path)


def test_episodes_with_more_records_than_the_log_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    fitted().save(path)
    tensors, content = parts(path)
    doubled = {name: tensors[name] * 2 for name in ("fold:records", "fold:weight")}
    doubled["fold:weight_squared"] = tensors["fold:weight_squared"] * 2
    content["episodes"]["records"] *= 2
    forge(path, tensors | doubled, content)
    with pytest.raises(PolicyFileError, match="lack records of the episodes"):
        load(path)
