"""Records in their order: transitions, episodes, trajectories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pastwise.data.records import Episodes, Trajectory, Transitions
from pastwise.errors import LogError, ParameterError


@pytest.mark.parametrize(
    ("number", "expected"), [(2, [7, 8]), (3, [6, 7, 8]), (9, [6, 7, 8]), (0, [])]
)
def test_last_records_of_a_log(number: int, expected: list[int]) -> None:
    log = Transitions(np.array([[6, 7, 8]]), np.array([[16, 17, 18]]), np.array([[26, 27, 28]]))
    state, action, next_state = log.last(number)
    np.testing.assert_array_equal(state, [expected])
    np.testing.assert_array_equal(action - 10, [expected])
    np.testing.assert_array_equal(next_state - 20, [expected])


def test_trajectory_as_transitions() -> None:
    trajectory = Trajectory(np.array([[3, 4, 5], [6, 7, 8]]), np.array([[0, 1], [2, 3]]))
    state, action, next_state = trajectory.transitions
    np.testing.assert_array_equal(state, [[3, 4], [6, 7]])
    np.testing.assert_array_equal(action, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(next_state, [[4, 5], [7, 8]])


# Episodes

EPISODES = Episodes(
    state=np.array([0, 1, 2, 2]),
    action=np.array([0, 1, 0, 1]),
    next_state=np.array([1, 2, 0, 2]),
    episode=np.array([0, 0, 0, 1]),
    step=np.array([0, 1, 2, 0]),
    propensity=np.array([0.5, 1.0, 0.1, 0.2]),
)


def test_number_and_length_of_episodes() -> None:
    assert EPISODES.number == 2
    assert EPISODES.length.tolist() == [3, 1]


def test_score_by_next_state() -> None:
    assert EPISODES.scores(np.array([10.0, 20.0, 30.0])).tolist() == [20, 30, 10, 30]


@pytest.mark.parametrize("shape", [(3, 2, 3), (3, 2, 1), (1, 2, 1), (1, 1, 3), (1, 1, 1)])
def test_score_by_transition(shape: tuple[int, ...]) -> None:
    score = np.arange(float(np.prod(shape))).reshape(shape)
    full = np.broadcast_to(score, (3, 2, 3))
    expected = full[EPISODES.state, EPISODES.action, EPISODES.next_state]
    np.testing.assert_array_equal(EPISODES.scores(score), expected)


@pytest.mark.parametrize(
    ("horizon", "expected"),
    [(2, [[1, 2], [4, 0]]), (4, [[1, 2, 3, 0], [4, 0, 0, 0]])],
)
def test_table_by_step_has_zeros_after_the_end(horizon: int, expected: list[list[int]]) -> None:
    table = EPISODES.table(np.array([1.0, 2.0, 3.0, 4.0]), horizon)
    np.testing.assert_array_equal(table, expected)


def test_arrays_of_episodes_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        EPISODES.state[0] = 1


def test_record_that_breaks_an_episode_is_named() -> None:
    with pytest.raises(LogError, match=r"record 2 \(episode 0, step 2\) does not start where"):
        replace(EPISODES, state=np.array([0, 1, 1, 2]))
    with pytest.raises(LogError, match=r"record 3 .* out of order: sort by episode and step"):
        replace(EPISODES, step=np.array([0, 1, 2, 3]))
    with pytest.raises(LogError, match=r"record 1 .* negative action"):
        replace(EPISODES, action=np.array([0, -1, 0, 1]))
    with pytest.raises(LogError, match=r"record 0 .* propensity 0.0; .* lies in \(0, 1\]"):
        replace(EPISODES, propensity=np.array([0.0, 1.0, 0.1, 0.2]))


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"of one length: .*action \(2,\)"):
        replace(EPISODES, action=np.array([0, 1]))


def test_episodes_need_a_record() -> None:
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(LogError, match="there are no episodes"):
        Episodes(none, none, none, none, none)


def test_some_episodes_are_numbered_anew() -> None:
    episodes = replace(EPISODES, unit=np.array([7, 7, 7, 4]))
    assert episodes.unit_of_episode.tolist() == [1, 0]
    last = episodes.where(np.array([False, True]))
    assert last.state.tolist() == [2]
    assert last.episode.tolist() == [0]
    assert last.propensity is not None
    assert last.propensity.tolist() == [0.2]
    assert last.unit is not None
    assert last.unit.tolist() == [4]


def test_every_episode_is_a_unit_unless_said_otherwise() -> None:
    assert EPISODES.unit_of_episode.tolist() == [0, 1]


def test_an_episode_of_two_units_is_refused() -> None:
    with pytest.raises(LogError, match=r"record 2 .* is of another unit than the record before"):
        replace(EPISODES, unit=np.array([0, 0, 1, 1]))
