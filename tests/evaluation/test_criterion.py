"""What a rule is judged by: starts, horizon, range, and states that the log does not have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pastwise as pw
from pastwise import Goal, TransferLearner
from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.evaluation.criterion import Criterion, UnseenStates, log_starts
from tests.helpers.evaluations import episode_summary
from tests.helpers.oracles import counts_of_list

LOOP = counts_of_list([(0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 0, 1)], 2, 2)
"""A log that goes on for ever."""

ENDING = counts_of_list([(0, 0, 1), (1, 0, 2), (0, 1, 1), (1, 1, 3), (1, 0, 3)], 4, 2).ending_in(
    np.array([2, 3])
)
"""Three episodes, two from state 0 and one from state 1, that end in 2 or 3."""


# Starts and horizon.


def test_episodes_start_where_the_log_says() -> None:
    episodes = replace(episode_summary(LOOP, [3, 4]), starts=np.array([1, 6]))
    np.testing.assert_array_equal(log_starts(LOOP, episodes), [1, 6])


def test_without_episodes_they_start_where_more_departs_than_arrives() -> None:
    np.testing.assert_array_equal(log_starts(ENDING), [2, 1, 0, 0])


def test_a_log_without_ends_is_one_trajectory() -> None:
    np.testing.assert_array_equal(log_starts(LOOP), [2, 2])


def test_where_episodes_start_is_uncertain() -> None:
    """Of 7 episodes, 6 start in state 1: a Dirichlet of those numbers; 4,000 samples."""
    episodes = replace(episode_summary(LOOP, [3, 4]), starts=np.array([1, 6]))
    criterion = Criterion.of(pw.Goal(prefer={1: 1}), LOOP, episodes=episodes)
    sampled = criterion.sample_initial(4000, np.random.default_rng(0))
    np.testing.assert_allclose(sampled.sum(axis=-1), 1)
    assert sampled[:, 1].mean() == pytest.approx(6 / 7, abs=0.02)
    assert sampled[:, 1].std() == pytest.approx(np.sqrt(6 / 49 / 8), rel=0.1)


def test_a_given_start_is_certain() -> None:
    initial = np.array([0.25, 0.75])
    criterion = Criterion.of(pw.Goal(prefer={1: 1}), LOOP, initial=initial)
    sampled = criterion.sample_initial(10, np.random.default_rng(0))
    np.testing.assert_array_equal(np.broadcast_to(sampled, (10, 2)), np.tile(initial, (10, 1)))


def test_the_horizon_is_that_of_the_episodes() -> None:
    goal = pw.Goal(prefer={1: 1})
    episodes = replace(episode_summary(LOOP, [3, 4]), median=12)
    assert Criterion.of(goal, LOOP, episodes=episodes).horizon == 12
    assert Criterion.of(goal, LOOP, episodes=episodes, horizon=5).horizon == 5
    assert Criterion.of(goal, LOOP).horizon == 100


def test_episodes_that_end_are_followed_beyond_the_longest() -> None:
    goal = pw.Goal(prefer={2: 1})
    episodes = replace(episode_summary(ENDING, [3, 2]), median=2, longest=700)
    criterion = Criterion.of(goal, ENDING, episodes=episodes)
    assert criterion.measure == "chance of ending well"
    assert criterion.horizon == 700


# What is possible.


@pytest.mark.parametrize(
    ("goal", "counts", "possible"),
    [
        (pw.Goal(prefer={1: 1}), LOOP, (0.0, 1.0)),
        (pw.Goal(reward={0: -2.0, 1: 3.0}), LOOP, (-2.0, 3.0)),
        (pw.Goal(prefer={2: 1}), ENDING, (0.0, 1.0)),
        (pw.Goal(reward={2: 5.0, 3: 2.0}), ENDING, (0.0, 5.0)),
        (pw.Goal(reward={1: -1.0, 2: 5.0}), ENDING, (-np.inf, np.inf)),
        (pw.Goal(prefer_actions={0: 1}), ENDING, (-np.inf, np.inf)),
        (pw.Goal(reward={0: {1: 1.0}}), ENDING, (-np.inf, np.inf)),
    ],
)
def test_means_and_single_rewards_are_bounded_and_totals_are_not(
    goal: pw.Goal, counts: TransitionCounts, possible: tuple[float, float]
) -> None:
    assert Criterion.of(goal, counts).possible_range == possible


@pytest.mark.parametrize("end", ["aground", "port"])
def test_a_total_of_actions_may_exceed_that_of_one_step(end: str) -> None:
    """Every episode has four steps; the end comes first or last among the labels."""
    log: dict[str, list[str]] = {"s": ["open sea"] * 400, "a": ["sail", "row"] * 200}
    log["n"] = ["open sea", "open sea", "open sea", end] * 100
    learner = pw.TransferLearner(pw.Goal(prefer_actions={"sail": 1}))
    learner.fit(log, state="s", action="a", next_state="n", terminal=end)
    result = learner.evaluate(samples=100)
    assert result.measure == "total utility of an episode"
    assert result.values["logged"].mean == pytest.approx(2, abs=0.5)


# States that the log does not have.


def test_states_left_once_count() -> None:
    unseen = UnseenStates.of(counts_of_list([(0, 0, 1), (0, 1, 2), (1, 0, 0), (3, 0, 0)], 5, 2))
    assert (unseen.once, unseen.records) == (2, 4)


def ending_log(ends: list[str]) -> pw.TransferLearner:
    """A learner after episodes of one step each that ended so, towards "good" and "fair" ends."""
    log = {"s": ["start"] * len(ends), "a": ["x", "y"] * (len(ends) // 2), "n": ends}
    goal = pw.Goal(prefer={"good": 1.0, "fair": 0.5})
    learner = pw.TransferLearner(goal)
    return learner.fit(log, state="s", action="a", next_state="n", terminal=sorted(set(ends)))


def test_ends_entered_once_count() -> None:
    """Eight episodes, two of which ended as no other did."""
    log = ending_log(["good"] * 4 + ["fair"] * 2 + ["bad", "worse"]).counts_
    unseen = UnseenStates.ends_of(log)
    assert (unseen.once, unseen.records) == (2, 8)
    assert UnseenStates.ends_of(log, min_ends=5).once == 0


def test_nothing_good_is_assumed_of_unseen_ends() -> None:
    """Many ends seen once: the next episode may end in a way that the goal cannot name."""
    often = ["good"] * 20 + ["fair"] * 10
    many_ends = [f"other {i}" for i in range(10)]
    seen_once = ending_log(often + many_ends).evaluate(samples=400).values["logged"]
    seen_often = ending_log(often + ["other"] * 10).evaluate(samples=400).values["logged"]
    assert seen_often.mean == pytest.approx(25 / 40, abs=0.08)
    assert seen_once.mean < seen_often.mean - 0.05
    assert seen_once.low < 25 / 40 * 30 / 40


def shares(once: int, records: int) -> FloatArray:
    return UnseenStates(once, records).sample_share(5000, np.random.default_rng(1))


def test_the_share_of_unseen_states_is_that_of_good_and_turing() -> None:
    assert shares(5, 200).mean() == pytest.approx(5 / 201, rel=0.1)
    assert not shares(0, 200).any()
    assert (shares(3, 3) <= 1).all()


def follow_up(visits: int, seed: int = 0) -> dict[str, list[object]]:
    """Patients who recover or not, followed up for a number of visits."""
    rng = np.random.default_rng(seed)
    log: dict[str, list[object]] = {"who": [], "t": [], "s": [], "a": []}
    for patient in range(300):
        state = "ill"
        for visit in range(visits + 1):
            log["who"].append(patient)
            log["t"].append(visit)
            log["s"].append(state)
            log["a"].append(str(rng.choice(["drug", "wait"])))
            if state != "ill":
                break
            chance = 0.3 if log["a"][-1] == "drug" else 0.05
            state = "well" if rng.random() < chance else state
    return log


@pytest.mark.parametrize(("visits", "horizon"), [(3, 3), (60, 100)])
def test_the_value_of_what_was_done_is_the_rate_of_the_log(visits: int, horizon: int) -> None:
    learner = TransferLearner(Goal(prefer="well"))
    log = follow_up(visits)
    learner.fit(log, state="s", action="a", episode="who", time="t", terminal="well")
    evaluation = learner.evaluate(samples=200)
    share = log["s"].count("well") / 300
    assert evaluation.value_in_log == pytest.approx(share)
    assert evaluation.matches_log
    assert evaluation.horizon == horizon
    assert f"in the log {share:.3f}" in evaluation.sentence


def test_a_horizon_that_the_log_does_not_have_is_remarked() -> None:
    learner = TransferLearner(Goal(prefer="well"))
    log = follow_up(visits=3)
    learner.fit(log, state="s", action="a", episode="who", time="t", terminal="well")
    evaluation = learner.evaluate(samples=200, horizon=50)
    assert not evaluation.matches_log
    assert "horizon or starts do not match" in evaluation.sentence
    assert evaluation.to_dict()["matches_log"] is False


def test_the_value_of_a_log_without_end_is_the_mean_of_its_records() -> None:
    log = {"s": list("aabb"), "a": list("xyxy"), "n": list("abab")}
    learner = TransferLearner(Goal(prefer="b"))
    learner.fit(log, state="s", action="a", next_state="n")
    assert learner.evaluate(samples=100).value_in_log == 0.5
    by_action = TransferLearner(Goal(prefer={"b": 1}, prefer_actions={"x": 1}))
    by_action.fit(log, state="s", action="a", next_state="n")
    value = by_action.evaluate(samples=100).value_in_log
    assert value is not None


@pytest.mark.parametrize("terminal", [[], ["b"]])
def test_the_reward_of_a_log_is_that_of_its_records(terminal: list[str]) -> None:
    """Not what is inferred of its mean, which few records leave open."""
    reward = [1.0, 4.0, 2.0, 9.5]
    log = {"s": list("aaaa"), "a": list("xyxy"), "n": list("abab"), "r": reward}
    learner = TransferLearner(Goal(maximise="reward"))
    learner.fit(log, state="s", action="a", next_state="n", reward="r", terminal=terminal)
    number = 2 if terminal else 4  # episodes, or records
    value = learner.evaluate(samples=100).value_in_log
    assert value == pytest.approx(sum(reward) / number)
