"""Systems with known truth: exact values, behaviours and logs, against enumeration and counting."""

from itertools import product

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.studies.synthetic import (
    BEHAVIOURS,
    Log,
    System,
    past_rules,
    simulate,
    soft_optimal,
)


def small_system(*, ends: bool, horizon: int = 4) -> System:
    """Three states, two actions, two hidden types."""
    rng = np.random.default_rng(5)
    return System.of(
        rng.dirichlet(np.ones(3), size=(2, 3, 2)),
        np.array([0.0, 0.0, 1.0]) if ends else np.array([0.2, 0.0, 1.0]),
        initial=np.array([0.7, 0.3, 0.0]),
        lengths=(2, horizon),
        terminal=(2,) if ends else (),
        type_weights=np.array([0.6, 0.4]),
    )


def enumerated_value(system: System, rule: FloatArray) -> float:
    """Value of a rule by all sequences of states and actions, one by one."""

    def total(k: int, state: int, epochs_left: int) -> float:
        """Expected sum of scores from a state on, for an episode of type k."""
        if epochs_left == 0 or state in system.terminal:
            return 0.0
        found = 0.0
        for action, following in product(range(system.num_actions), range(system.num_states)):
            probability = rule[state, action] * system.model.transition[k, state, action, following]
            later = total(k, following, epochs_left - 1)
            found += float(probability) * (float(system.score[following]) + later)
        return found

    value = 0.0
    for k, state in product(range(len(system.type_weights)), range(system.num_states)):
        weight = float(system.type_weights[k] * system.initial[state])
        value += weight * total(k, state, system.horizon)
    return value if system.has_ends else value / system.horizon


@pytest.mark.parametrize("ends", [False, True])
def test_a_value_is_the_sum_over_all_ways(ends: bool) -> None:
    system = small_system(ends=ends)
    rules = np.random.default_rng(1).dirichlet(np.ones(2), size=(2, 3))
    values = [enumerated_value(system, rule) for rule in rules]
    assert system.value(rules[0]) == pytest.approx(values[0], abs=1e-12)
    assert system.value(rules) == pytest.approx(np.mean(values), abs=1e-12)


def test_the_value_of_what_was_done_is_the_rate_of_a_long_log() -> None:
    """Episodes of one length, hidden types, mixed rules; within 5 standard errors of the mean."""
    rng = np.random.default_rng(0)
    system = System.of(
        rng.dirichlet(np.ones(4), size=(2, 4, 3)),
        np.array([0.0, 0.3, 1.0, 0.0]),
        lengths=(10, 10),
        type_weights=np.array([0.3, 0.7]),
    )
    rules = past_rules(system, "mixed", rng)
    assert len(rules) == len(BEHAVIOURS)
    log = simulate(system, rules, 100_000, rng)
    by_episode = system.score[log.next_state].reshape(-1, 10).mean(axis=1)
    error = by_episode.std() / np.sqrt(len(by_episode))
    assert system.value(rules) == pytest.approx(by_episode.mean(), abs=5 * error)


def test_a_log_follows_the_rule_and_the_system() -> None:
    system = small_system(ends=True)
    single = System.of(
        system.model.transition[0], system.score, initial=system.initial, terminal=(2,)
    )
    rng = np.random.default_rng(2)
    rules = past_rules(single, "unaware", rng)
    log = simulate(single, rules, 50_000, rng)
    for s in (0, 1):
        here = log.state == s
        for a in (0, 1):
            share = (log.action[here] == a).mean()
            assert share == pytest.approx(rules[0, s, a], abs=0.02)
            arrived = np.bincount(log.next_state[here & (log.action == a)], minlength=3)
            shares = arrived / arrived.sum()
            np.testing.assert_allclose(shares, single.model.transition[0, s, a], atol=0.02)


@pytest.mark.parametrize("ends", [False, True])
def test_a_log_is_made_of_whole_episodes(ends: bool) -> None:
    system = small_system(ends=ends, horizon=7)
    rules = past_rules(system, "random", np.random.default_rng(0))
    log = simulate(system, rules, 300, np.random.default_rng(1))
    assert 300 <= len(log) < 300 + 7
    for episode in range(log.episode.max() + 1):
        own = log.episode == episode
        assert log.time[own].tolist() == list(range(own.sum()))
        assert log.state[own][1:].tolist() == log.next_state[own][:-1].tolist()
        ended = np.isin(log.next_state[own], system.terminal)
        assert not ended[:-1].any()
        assert ended[-1] or 2 <= own.sum() <= 7
    assert system.initial[log.state[log.time == 0]].all()
    assert not np.isin(log.state, system.terminal).any()


def test_episodes_within_some_states() -> None:
    log = Log(*np.array([[0, 0, 1, 2], [0, 1, 0, 0], [0, 1, 0, 1], [0] * 4, [1, 0, 2, 1]]))
    assert log.within(np.array([0, 1])).episode.tolist() == [0, 0, 2]
    assert log.first_episodes(1).episode.tolist() == [0, 0]
    assert log.states.tolist() == [0, 1, 2]


@pytest.mark.parametrize("ends", [False, True])
def test_experts_do_better_than_chance_and_opponents_worse(ends: bool) -> None:
    system = small_system(ends=ends)
    rng = np.random.default_rng(0)
    value = {name: system.value(past_rules(system, name, rng)) for name in BEHAVIOURS}
    assert value["expert"] > value["random"] > value["opposed"]


def test_experts_act_at_random_where_nothing_can_be_chosen() -> None:
    chain = np.random.default_rng(0).dirichlet(np.ones(4), size=4)
    system = System.of(np.repeat(chain[:, None], 3, axis=1), np.array([1.0, 0, 0, 0]))
    np.testing.assert_array_equal(soft_optimal(system, system.score), np.full((4, 3), 1 / 3))


def test_a_habit_makes_an_action_rare() -> None:
    transition = np.full((2, 2, 2), 0.5)
    system = System.of(transition, np.array([1.0, 0.0]), habit=np.array([1.0, 0.25]))
    rules = past_rules(system, "random", np.random.default_rng(0))
    np.testing.assert_allclose(rules[0], [[0.8, 0.2]] * 2)


def test_a_goal_names_only_the_states_of_the_log() -> None:
    system = System.of(
        np.full((3, 1, 3), 1 / 3),
        np.array([1.0, 0.5, 0.0]),
        initial=np.array([0.5, 0.25, 0.25]),
    )
    named = np.array([1, 2])
    judged = system.judged_on(named)
    assert judged.score.tolist() == [0, 1, 0]
    assert judged.value(np.ones((3, 1))) == pytest.approx(1 / 3)
    assert system.starting_in(named).initial.tolist() == [0, 0.5, 0.5]


def test_the_share_of_time_counts_states() -> None:
    """Two steps: from 0 to 1 or to the end 2 with equal chances, from 1 always to the end."""
    transition = np.zeros((3, 1, 3))
    transition[0, 0] = [0, 0.5, 0.5]
    transition[1, 0, 2] = 1.0
    system = System.of(
        transition,
        np.array([0.0, 0.0, 1.0]),
        initial=np.array([1.0, 0.0, 0.0]),
        lengths=(2, 2),
        terminal=(2,),
    )
    rule = np.ones((3, 1))
    assert system.share_of_time(rule, np.array([1])) == pytest.approx(0.25)
    assert system.share_of_time(rule, np.array([2])) == pytest.approx(0.75)
