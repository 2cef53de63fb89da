"""TL_foresight: its plan, the skill of the past, and acting by the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import dirichlet

import pastwise as pw
from pastwise import Goal, Space, TransitionCounts
from pastwise._numerics.arrays import FloatArray
from pastwise._numerics.streams import Streams
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import Plan
from pastwise.methods.foresight import (
    Attitude,
    Foresight,
    Optimism,
    Pessimism,
    TLForesight,
)
from pastwise.models.belief import belief_from
from pastwise.models.dense import DenseModel
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.studies.paper import PaperStudy, collect
from pastwise.theory.fpd import mdp_optimum
from tests.helpers.oracles import (
    Record,
    World,
    counts_of,
    counts_of_list,
    policy_value,
    random_ideal,
    random_log,
    random_rows,
    renamed,
    value_iteration,
)
from tests.helpers.posteriors import LiteralPrior, table_of

ATTITUDES = (Optimism(), Pessimism())


@dataclass(frozen=True)
class Foreseen:
    """A plan of TL_foresight, its parts by name, and the skill of the past behind it.

    ``deviations`` is what the attitude makes of the skill; the uncertainty is that number of
    standard deviations of the value.
    """

    rule: FloatArray
    value: FloatArray
    uncertainty: FloatArray
    example: FloatArray
    skill: FloatArray
    deviations: FloatArray

    @property
    def deviation(self) -> FloatArray:
        """Standard deviation of each value, where the attitude counts it at all."""
        return np.asarray(self.uncertainty / self.deviations[..., None, None])


def plan_of(
    ideal: IdealModel,
    counts: TransitionCounts,
    attitude: Attitude | None = None,
    horizon: int = 100,
) -> Foreseen:
    attitude = attitude or Optimism()
    method = TLForesight(attitude, horizon)
    memory = method.start(counts, ideal)
    plan = method.plan(memory)
    assert list(plan.parts) == ["value", "uncertainty", "example"]
    skill = skill_of(method, memory)
    return Foreseen(
        rule=plan.rule,
        value=plan.parts["value"],
        uncertainty=plan.parts["uncertainty"],
        example=plan.parts["example"],
        skill=skill,
        deviations=attitude.deviations(skill),
    )


def skill_of(method: TLForesight, memory: Foresight, observed: int = 0) -> FloatArray:
    """The skill of the past, after some records that were observed later."""
    return method.skill(memory.belief, memory.past, memory.utility, memory.uniform, observed)


def many_records(
    transition: FloatArray,
    number: int = 10**8,
    ends: Sequence[int] = (),
    behaviour: FloatArray | None = None,
) -> TransitionCounts:
    """So many records of each state that nothing is uncertain; none leaves a terminal state.

    Every action is equally frequent, or has its share of a behaviour [S, A].
    """
    S, A, _ = transition.shape
    share = np.full((S, A), 1 / A) if behaviour is None else behaviour
    table = np.rint(number * share[..., None] * transition)
    state, action, next_state = (index.astype(np.int64) for index in np.nonzero(table))
    weight = table[state, action, next_state]
    groups = (np.zeros_like(state), state, action, next_state)
    sums = (weight.astype(np.int64), weight, weight)
    counts = TransitionCounts.from_groups(Space.of_size(S), Space.of_size(A), groups, sums)
    return counts.ending_in(np.array(ends, dtype=np.int64))


def scrambled(
    counts: TransitionCounts, states: Sequence[int], actions: Sequence[int]
) -> TransitionCounts:
    """The log after states and actions got other numbers."""
    new_states, new_actions = np.array(states), np.array(actions)
    groups = (
        np.zeros_like(counts.key),
        new_states[counts.state],
        new_actions[counts.action],
        new_states[counts.next_state],
    )
    sums = (counts.records, counts.weight, counts.weight_squared)
    return TransitionCounts.from_groups(counts.states, counts.actions, groups, sums)


def test_several_goals_at_once_are_refused() -> None:
    several = IdealModel.of(random_rows(np.random.default_rng(0), 2, 1, 1, 3), num_actions=2)
    with pytest.raises(ValueError, match="one goal at a time"):
        TLForesight().start(counts_of_list([], 3, 2), several)


# The optimum, once nothing is uncertain.


def loss(
    transition: FloatArray, reward: FloatArray, rule: FloatArray, ends: Sequence[int] = ()
) -> float:
    """Largest loss of a rule's first step against the best, 300 epochs ahead, by plain loops."""
    S, A, _ = transition.shape
    table = np.array(np.broadcast_to(reward, (S, A, S)))
    closed = transition.copy()
    for end in ends:
        table[end] = 0
        closed[end] = np.eye(S)[end]
    value = np.array(value_iteration(closed, table, 300)[1])
    gain = (closed * (table + value)).sum(axis=-1)
    return float((gain.max(axis=-1) - (rule * gain).sum(axis=-1)).max())


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("seed", range(4))
def test_plan_is_the_optimum_of_a_task_that_goes_on(seed: int, attitude: Attitude) -> None:
    """Rewards of arriving; what other rules give away is far more."""
    rng = np.random.default_rng(seed)
    transition = random_rows(rng, 4, 3, 4)
    reward = rng.normal(size=4)
    ideal = IdealModel.from_reward(reward, 0.3, num_actions=3)
    rule = plan_of(ideal, many_records(transition), attitude).rule
    assert loss(transition, reward, rule) < 0.003
    assert loss(transition, reward, np.full((4, 3), 1 / 3)) > 0.1


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("seed", range(3))
def test_plan_is_the_optimum_for_rewards_of_state_and_action(seed: int, attitude: Attitude) -> None:
    rng = np.random.default_rng(10 + seed)
    transition = random_rows(rng, 4, 3, 4)
    reward = rng.normal(size=(4, 3, 4))
    rule = plan_of(IdealModel.from_reward(reward, 1.0), many_records(transition), attitude).rule
    assert loss(transition, reward, rule) < 0.003
    assert loss(transition, reward, np.full((4, 3), 1 / 3)) > 0.1


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("seed", range(4))
def test_plan_is_the_optimum_of_a_task_that_ends(seed: int, attitude: Attitude) -> None:
    """Rewards and costs until one of two states is reached; arriving there is rewarded too."""
    rng = np.random.default_rng(20 + seed)
    transition = random_rows(rng, 5, 3, 5)
    reward = rng.normal(size=5)
    ends = (1, 4)
    ideal = IdealModel.from_reward(reward, 1.0, num_actions=3)
    rule = plan_of(ideal, many_records(transition, ends=ends), attitude).rule
    assert loss(transition, reward, rule, ends) < 0.003
    assert loss(transition, reward, np.full((5, 3), 1 / 3), ends) > 0.04


def test_steps_that_cost_are_not_taken_for_steps_that_pay() -> None:
    """A step costs 1, the goal earns 10: the way there is taken, not one that puts off the end."""
    transition = np.zeros((3, 2, 3))
    transition[0] = [[0.1, 0.9, 0], [0.98, 0, 0.02]]
    transition[1:] = np.eye(3)[1:][:, None]
    ideal = IdealModel.from_reward([-1.0, 10.0, -5.0], 1.0, num_actions=2)
    np.testing.assert_allclose(
        plan_of(ideal, many_records(transition, ends=(1, 2))).rule[0], [1, 0], atol=1e-9
    )


def test_a_wanted_end_among_other_wanted_states_is_stayed_in() -> None:
    """State 2 is wanted most and ends the episode; state 1 is wanted a little and can be kept."""
    transition = np.zeros((3, 2, 3))
    transition[:2] = [[0, 0, 1], [0, 1, 0]]
    transition[2] = np.eye(3)[2]
    ideal = Goal(prefer={2: 10, 1: 1}).on(Space.of_size(3), Space.of_size(2))
    rule = plan_of(ideal, many_records(transition, ends=(2,))).rule
    np.testing.assert_allclose(rule[:2], [[1, 0], [1, 0]], atol=1e-9)


def test_a_horizon_of_one_is_short_sighted() -> None:
    transition = np.zeros((4, 2, 4))
    for state, action, next_state in ((0, 0, 2), (0, 1, 1)):
        transition[state, action, next_state] = 1
    for state, next_state in ((1, 3), (2, 0), (3, 0)):
        transition[state, :, next_state] = 1
    ideal = IdealModel.from_reward([0, 0, 0.4, 1], 1.0, num_actions=2)
    assert plan_of(ideal, many_records(transition), horizon=1).rule[0, 0] > 0.99
    assert plan_of(ideal, many_records(transition), horizon=2).rule[0, 1] > 0.99


@pytest.mark.parametrize(
    ("ideal", "states"),
    [(IdealModel.of([1.0], [0.9, 0.1]), 1), (IdealModel.of([0.5, 0.5], [0.9, 0.1]), 2)],
)
def test_without_any_uncertainty_the_preferred_action_is_taken(
    ideal: IdealModel, states: int
) -> None:
    plan = plan_of(ideal, counts_of_list([], states, 2))
    np.testing.assert_allclose(plan.rule, [[1, 0]] * states, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_batch_of_runs_is_each_run_alone(seed: int) -> None:
    world = World.random(seed)
    method = TLForesight(Optimism())
    streams = Streams(np.random.SeedSequence(3).spawn(3))
    together = run(world.system, method, 40, streams, ideal=world.ideal, counts=world.counts)
    for i, child in enumerate(np.random.SeedSequence(3).spawn(3)):
        single = world.alone(i)
        rng = np.random.default_rng(child)
        alone = run(single.system, method, 40, rng, ideal=single.ideal, counts=single.counts)
        np.testing.assert_array_equal(together.states[i], alone.states)


def test_plan_of_a_task_that_ends_seeks_the_wanted_end_and_avoids_the_other() -> None:
    """A corridor 0 .. 4, bad end 0, good end 4; both actions slip one time in ten.

    The probability of ruin is the gambler's.
    """
    transition = np.zeros((5, 2, 5))
    for s in (1, 2, 3):
        for a, way in enumerate((-1, 1)):
            transition[s, a, s + way] = 0.9
            transition[s, a, s - way] = 0.1
    transition[[0, 4], :, [0, 4]] = 1
    ideal = IdealModel.of([0.01, 0.01, 0.01, 0.01, 0.96], num_actions=2)
    for attitude in ATTITUDES:
        plan = plan_of(ideal, many_records(transition, ends=(0, 4)), attitude)
        np.testing.assert_allclose(plan.rule[1:4], [[0, 1]] * 3, atol=1e-9)
    ruin = np.array([1 - (1 - (1 / 9) ** s) / (1 - (1 / 9) ** 4) for s in (1, 2, 3)])
    np.testing.assert_allclose(plan.value[1:4, 1], 1 - ruin, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_plan_is_the_optimum_of_a_large_system(seed: int) -> None:
    """40 states, of which each action may lead to three: the posterior is sparse."""
    rng = np.random.default_rng(30 + seed)
    S, A = 40, 3
    transition = np.zeros((S, A, S))
    for row in transition.reshape(-1, S):
        row[rng.choice(S, 3, replace=False)] = rng.dirichlet(np.ones(3))
    reward = rng.random(S)
    ideal = IdealModel.from_reward(reward, 0.5, num_actions=A)
    rule = plan_of(ideal, many_records(transition)).rule
    value = mdp_optimum(DenseModel(transition), reward, 300).value[1]
    gain = transition @ (reward + value)
    given_away = gain.max(axis=-1) - (rule * gain).sum(axis=-1)
    assert given_away.max() < 0.01
    assert (gain.max(axis=-1) - gain.mean(axis=-1)).mean() > 0.1


def test_foreseen_value_is_that_of_the_optimum_from_zero_to_one_an_epoch() -> None:
    """Its growth with the horizon is the long-run mean reward, its differences the optimum's."""
    rng = np.random.default_rng(5)
    transition = random_rows(rng, 3, 2, 3)
    ideal = IdealModel.from_reward([0.0, 0.5, 1.0], 1.0, num_actions=2)
    counts = many_records(transition)
    short = plan_of(ideal, counts, horizon=100).value
    long = plan_of(ideal, counts, horizon=300).value
    optimum = mdp_optimum(DenseModel(transition), [0.0, 0.5, 1.0], 400).value
    np.testing.assert_allclose(long - short, optimum[0, 0] - optimum[200, 0], atol=0.05)
    best = long.max(axis=-1)
    np.testing.assert_allclose(best - best[0], optimum[0] - optimum[0, 0], atol=0.005)


# Uncertainty.


def test_uncertainty_is_the_standard_deviation_of_the_value_under_the_posterior() -> None:
    """One epoch ahead, where the value of an action is the utility of what follows.

    The mean of values v under Dirichlet rows has the variance v' covariance v, by scipy.
    """
    log_ = random_log(np.random.default_rng(6), 3, 2, 40)
    counts = counts_of(log_, 3, 2)
    ideal = IdealModel.of([0.6, 0.3, 0.1], num_actions=2)
    plan = plan_of(ideal, counts, Pessimism(2.0), horizon=1)
    table = table_of(counts)
    prior = LiteralPrior.of(table)
    utility = np.array([1, log(3) / log(6), 0])
    for s, a in np.ndindex(3, 2):
        covariance = dirichlet.cov(table[s, a] + prior.mass * prior.mean[s])
        deviation = sqrt(utility @ covariance @ utility)
        assert plan.uncertainty[s, a] == pytest.approx(-2 * deviation, rel=1e-6)


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("seed", range(5))
def test_rule_follows_from_the_parts(seed: int, attitude: Attitude) -> None:
    """They add up to an index; the temperature is in typical deviations."""
    world = World.random(seed)
    plan = plan_of(world.ideal, world.counts, attitude)
    method = TLForesight(attitude)
    allowed = world.ideal.allowed

    # Deviations by the records of each action.
    known = np.where(allowed, belief_from(world.counts).weight, 0.0)
    record_share = known / known.sum(axis=-1, keepdims=True)
    typical = (record_share * plan.deviation).sum(axis=-1, keepdims=True)

    # The rule of the index.
    index = (plan.value + plan.uncertainty + plan.example) / (method.temperature * typical)
    best = np.where(allowed, index, -np.inf).max(axis=-1, keepdims=True)
    expected = np.where(allowed, np.exp(index - best), 0)
    expected = expected / expected.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(plan.rule, expected, rtol=1e-6, atol=1e-12)

    # What the attitude makes of the skill.
    skill = plan.skill[:, None, None]
    assert (skill < 1).all()
    is_optimist = isinstance(attitude, Optimism)
    deviations = 1.5 * (1 - plan.skill) if is_optimist else np.full(3, -1.0)
    np.testing.assert_allclose(plan.deviations, deviations)
    assert (plan.example <= 0).all()
    share = skill if is_optimist else skill**2
    least = method.example_weight * share * typical * log(method.past_error / 3)
    assert (plan.example >= least - 1e-12).all()


def two_ways(untried: int) -> TransitionCounts:
    """From state 0 to state 1: one action led there 11 times in 20, the other was never tried.

    In state 2 the past mostly did what it knew to be bad, so that it had no skill.
    """
    log_: list[Record] = [(0, 1 - untried, 1)] * 11 + [(0, 1 - untried, 2)] * 9
    log_ += [(2, 0, 2)] * 90 + [(2, 1, 1)] * 10 + [(1, 0, 0)] * 10 + [(1, 1, 0)] * 10
    return counts_of_list(log_, 3, 2)


@pytest.mark.parametrize("untried", [0, 1])
def test_untried_action_is_tried_by_an_optimist_and_avoided_by_a_pessimist(untried: int) -> None:
    ideal = IdealModel.of([0.01, 0.98, 0.01], num_actions=2)
    optimist, pessimist = (plan_of(ideal, two_ways(untried), attitude) for attitude in ATTITUDES)
    assert optimist.skill == pessimist.skill == 0
    assert optimist.deviation[0, untried] > 2 * optimist.deviation[0, 1 - untried]
    assert optimist.rule[0, untried] > 0.999
    assert pessimist.rule[0, untried] < 0.001


@pytest.mark.parametrize("attitude", [Optimism(0.0), Pessimism(0.0)])
def test_without_regard_to_uncertainty_the_better_mean_is_chosen(attitude: Attitude) -> None:
    ideal = IdealModel.of([0.01, 0.98, 0.01], num_actions=2)
    plan = plan_of(ideal, two_ways(1), attitude)
    np.testing.assert_array_equal(plan.uncertainty, 0)
    np.testing.assert_array_equal(
        plan.rule.argmax(axis=-1)[[0, 2]], plan.value.argmax(axis=-1)[[0, 2]]
    )


def test_attitudes_by_the_skill_of_the_past() -> None:
    skill = np.array([0.0, 0.25, 1.0])
    np.testing.assert_allclose(Optimism(2.0).deviations(skill), [2, 1.5, 0])
    np.testing.assert_allclose(Optimism(2.0).example_share(skill), skill)
    np.testing.assert_allclose(Pessimism(2.0).deviations(skill), [-2, -2, -2])
    np.testing.assert_allclose(Pessimism(2.0).example_share(skill), [0, 0.0625, 1])


def test_pessimist_is_an_optimist_where_no_record_served_the_goal() -> None:
    """State 0 was never reached: nothing good is known, so the untried action is tried."""
    counts = counts_of_list([(1, 0, 2), (2, 0, 1)] * 20, 3, 2)
    optimist, pessimist = (plan_of(GOOD, counts, attitude) for attitude in ATTITUDES)
    assert (pessimist.uncertainty > 0).all()
    np.testing.assert_allclose(pessimist.uncertainty, optimist.uncertainty)
    np.testing.assert_allclose(pessimist.rule[1:], [[0, 1], [0, 1]], atol=1e-6)


# The skill of the past.


GOOD = IdealModel.of([0.98, 0.01, 0.01], num_actions=2)


def of_a_past_that_did(behaviour: Sequence[float], number: int = 10**8) -> FloatArray:
    """Skill of a past where action 0 mostly leads to the wanted state, action 1 elsewhere."""
    transition = np.array([[[0.8, 0.1, 0.1], [0.1, 0.45, 0.45]]] * 3)
    counts = many_records(transition, number, behaviour=np.array([behaviour] * 3))
    return plan_of(GOOD, counts).skill


def test_past_that_acted_at_random_had_no_skill() -> None:
    assert 0 <= of_a_past_that_did([0.5, 0.5]) < 0.001


def test_past_that_did_worse_than_random_had_no_skill() -> None:
    assert of_a_past_that_did([0.1, 0.9]) == 0


def test_past_that_did_the_best_had_full_skill() -> None:
    assert of_a_past_that_did([1 - 1e-4, 1e-4]) == pytest.approx(1, abs=0.001)
    assert of_a_past_that_did([1, 0]) == pytest.approx(1, abs=1e-9)


def test_skill_grows_in_proportion_to_what_was_done_right() -> None:
    skill = [float(of_a_past_that_did([p, 1 - p])) for p in (0.6, 0.75, 0.9)]
    np.testing.assert_allclose(skill, [0.2, 0.5, 0.8], atol=0.002)


def test_empty_past_had_no_skill() -> None:
    counts = TransitionCounts.empty(Space.of_size(3), Space.of_size(2), (2,))
    np.testing.assert_array_equal(plan_of(GOOD, counts).skill, [0, 0])


def test_short_log_is_credited_with_skill_and_loses_the_credit() -> None:
    """With the length of the log, and with what is observed after it."""
    few, some, many = (float(of_a_past_that_did([0.5, 0.5], n)) for n in (40, 4000, 400_000))
    assert 0.5 > few > 2 * some > 4 * many > 0
    method = TLForesight()
    counts = many_records(np.array([[[0.8, 0.1, 0.1], [0.1, 0.45, 0.45]]] * 3), 40)
    memory = method.start(counts, GOOD)
    early = skill_of(method, memory, 0)
    late = skill_of(method, memory, 10_000)
    assert early > 5 * late > 0


def test_credit_is_a_number_of_standard_errors() -> None:
    """None leaves a random past without skill; more of them raise its skill."""
    counts = many_records(np.array([[[0.8, 0.1, 0.1], [0.1, 0.45, 0.45]]] * 3), 40)
    skills = []
    for credit in (0.0, 0.5, 1.0):
        method = TLForesight(skill_credit=credit)
        skills.append(float(skill_of(method, method.start(counts, GOOD))))
    assert skills[0] == pytest.approx(0, abs=1e-9)
    assert skills[0] < skills[1] < skills[2] < 1


@pytest.mark.parametrize("ends", [(), (2,)])
@pytest.mark.parametrize("seed", range(4))
def test_skill_is_where_the_past_lies_between_random_and_best_over_twenty_epochs(
    seed: int, ends: tuple[int, ...]
) -> None:
    """By plain loops on the posterior mean, from where the past was.

    Half a standard error of the records' mean utility is credited for each epoch before the end.
    """
    rng = np.random.default_rng(seed)
    S, A, number = 3, 2, 50
    state = rng.choice([s for s in range(S) if s not in ends], number)
    action = (rng.random(number) < 0.7).astype(np.int64)
    next_state = rng.integers(S, size=number)
    log_ = Transitions(state, action, next_state)
    counts = counts_of(log_, S, A).ending_in(np.array(ends, dtype=np.int64))

    # The expected system, with utilities; nothing follows an end.
    utility = np.array([1, log(2.5) / log(5), 0])
    mean = np.stack([belief_from(counts).moments(row)[0] for row in np.eye(S)], axis=-1)
    reward = np.tile(utility, (S, A, 1))
    one_per_epoch = np.ones((S, A, S))
    for end in ends:
        mean[end] = np.eye(S)[end]
        reward[end] = 0
        one_per_epoch[end] = 0

    # What the past did, and where.
    visits = np.bincount(state, minlength=S) / number
    behaviour = np.full((S, A), 1 / A)
    for s in set(state.tolist()):
        chosen = action[state == s]
        behaviour[s] = np.bincount(chosen, minlength=A) / len(chosen)

    # Values over twenty epochs.
    past_policy = np.tile(behaviour, (20, 1, 1))
    past = visits @ policy_value(mean, reward, past_policy)
    random = visits @ policy_value(mean, reward, np.full((20, S, A), 1 / A))
    best = visits @ np.array(value_iteration(mean, reward, 20)[0])
    length = visits @ policy_value(mean, one_per_epoch, past_policy)

    mean_utility = (utility[next_state].sum() + 0.5) / (number + 1)
    credit = 0.5 * sqrt(mean_utility * (1 - mean_utility) / (number + 1)) * length
    expected = min(1.0, max(0.0, (past - random + credit) / (best - random + credit)))
    ideal = IdealModel.of(np.array([0.5, 0.25, 0.1]) / 0.85, num_actions=A)
    assert plan_of(ideal, counts).skill == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("attitude", ATTITUDES)
def test_example_of_a_good_past_is_followed_where_little_is_known(attitude: Attitude) -> None:
    """In state 2 the past took action 1 twice, with success; elsewhere it did well for long."""
    counts = counts_of_list([(0, 0, 0)] * 40 + [(1, 0, 0)] * 20 + [(2, 1, 0)] * 2, 3, 2)
    plan = plan_of(GOOD, counts, attitude)
    assert plan.skill > 0.95
    np.testing.assert_allclose(plan.rule, [[1, 0], [1, 0], [0, 1]], atol=1e-6)
    assert (plan.example[[0, 1, 2], [1, 1, 0]] < plan.example[[0, 1, 2], [0, 0, 1]]).all()


# Invariants of a plan.


@pytest.mark.parametrize("num_states", [4, 40])
@pytest.mark.parametrize("attitude", ATTITUDES)
def test_forbidden_actions_get_no_probability_though_the_past_took_them(
    num_states: int, attitude: Attitude
) -> None:
    """They are the only ones that lead to what is wanted."""
    log_ = [(s, 0, 0) for s in range(num_states)] * 9 + [
        (s, a, 1) for s in range(num_states) for a in (1, 2)
    ]
    allowed = np.ones((num_states, 3), dtype=bool)
    allowed[1:, 0] = False
    ideal = IdealModel.of(
        np.eye(num_states)[0] * 0.9 + 0.1 / num_states, num_actions=3, allowed=allowed
    )
    rule = plan_of(ideal, counts_of_list(log_, num_states, 3), attitude).rule
    np.testing.assert_array_equal(rule[1:, 0], 0)
    assert rule[0, 0] > 0.99
    np.testing.assert_allclose(rule.sum(axis=-1), 1)


@pytest.mark.parametrize("num_states", [3, 40])
@pytest.mark.parametrize("unit", [2.0**-7, 1.0, 1000.0])
def test_unit_of_the_weights_does_not_matter(num_states: int, unit: float) -> None:
    rng = np.random.default_rng(2)
    log_ = random_log(rng, num_states, 3, 70)
    weight = rng.uniform(0.5, 2, 70)
    spaces = (Space.of_size(num_states), Space.of_size(3))
    ideal = random_ideal(rng, num_states, 3)
    one, other = (
        plan_of(ideal, TransitionCounts.from_records(*log_, *spaces, weight=w))
        for w in (weight, unit * weight)
    )
    for name in ("rule", "value", "uncertainty", "example", "skill"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-6)


def test_equal_weights_count_each_record_once() -> None:
    log_ = [(0, 0, 0), (0, 1, 1), (1, 0, 2), (2, 1, 0), (0, 0, 1)] * 3
    one, other = (plan_of(GOOD, counts_of_list(log_, 3, 2, weight)) for weight in (1.0, 0.125))
    np.testing.assert_allclose(one.rule, other.rule, atol=1e-9)
    np.testing.assert_allclose(one.uncertainty, other.uncertainty)


@pytest.mark.parametrize("seed", range(5))
def test_names_of_states_and_actions_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = counts_of(random_log(rng, 4, 3, 50), 4, 3)
    transition, rule = random_rows(rng, 4, 3, 4), random_rows(rng, 4, 3)
    states, actions = rng.permutation(4).tolist(), rng.permutation(3).tolist()
    plan = plan_of(IdealModel.of(transition, rule), counts)
    goal = IdealModel.of(
        renamed(transition, states, actions, states), renamed(rule, states, actions)
    )
    other = plan_of(goal, scrambled(counts, states, actions))
    np.testing.assert_allclose(other.rule, renamed(plan.rule, states, actions), atol=1e-6)
    np.testing.assert_allclose(other.value, renamed(plan.value, states, actions), rtol=1e-9)


def test_equal_actions_have_equal_probabilities() -> None:
    log_ = [(s, a, n) for s in range(3) for a in range(2) for n in (0, 1, 2, 0)]
    np.testing.assert_allclose(plan_of(GOOD, counts_of_list(log_, 3, 2)).rule, 0.5, atol=1e-6)


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_plan_on_an_empty_log_is_indifferent(shape: tuple[int, ...], attitude: Attitude) -> None:
    counts = TransitionCounts.empty(Space.of_size(3), Space.of_size(2), shape)
    plan = plan_of(GOOD, counts, attitude)
    assert plan.rule.shape == (*shape, 3, 2)
    np.testing.assert_allclose(plan.rule, 0.5)


def test_empty_log_of_a_large_system() -> None:
    counts = TransitionCounts.empty(Space.of_size(50), Space.of_size(4))
    ideal = IdealModel.of(np.full(50, 0.02), num_actions=4, allowed=[True, False, True, True])
    np.testing.assert_allclose(plan_of(ideal, counts).rule, [[1 / 3, 0, 1 / 3, 1 / 3]] * 50)


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("horizon", [1, 100])
def test_a_single_state_and_a_single_action(horizon: int, attitude: Attitude) -> None:
    one = IdealModel.of([1.0], num_actions=1)
    np.testing.assert_array_equal(
        plan_of(one, counts_of_list([(0, 0, 0)] * 5, 1, 1), attitude, horizon).rule, [[1]]
    )
    single = IdealModel.of([0.9, 0.1], num_actions=1)
    np.testing.assert_array_equal(
        plan_of(single, counts_of_list([(0, 0, 1)], 2, 1), attitude, horizon).rule, [[1], [1]]
    )
    idle = plan_of(IdealModel.of([1.0], num_actions=3), counts_of_list([], 1, 3), attitude, horizon)
    np.testing.assert_allclose(idle.rule, [[1 / 3] * 3])


def test_every_state_terminal_leaves_only_the_way_there() -> None:
    """Nothing follows an end, so the value of an action is the utility of the next state."""
    counts = counts_of_list([], 3, 2).ending_in(np.arange(3))
    plan = plan_of(GOOD, counts)
    np.testing.assert_allclose(plan.value, 1 / 3)


# Acting by the plan.


@pytest.mark.parametrize(
    ("hyper_parameters", "message"),
    [
        ({"horizon": 0}, "from 1 to 1,000,000"),
        ({"horizon": -1}, "from 1 to 1,000,000"),
        ({"horizon": 2.5}, "horizon must be a whole number from 1 to 1,000,000, not 2.5"),
        ({"skill_horizon": 0}, "from 1 to 1,000,000"),
        ({"replan": -0.01}, "replan must be a number"),
        ({"replan": float("nan")}, "replan must be a number"),
        ({"temperature": 0.0}, "temperature must be a number from 1e-12"),
        ({"settled": -1.0}, "settled must be a number from 1e-12"),
        ({"steady": float("inf")}, "steady must be a number from 1e-12"),
        ({"example_weight": -0.1}, "example_weight must be a number from 0"),
        ({"skill_credit": float("nan")}, "skill_credit must be a number from 0"),
        ({"past_error": 0.0}, r"past_error must be a number from 1e-12 to 1, not 0.0"),
        ({"discount": 1.1}, r"discount must be a number from 1e-12 to 1, not 1.1"),
        ({"attitude": "brave"}, r"attitude must be Pessimism\(\) or Optimism\(\), not 'brave'"),
        ({"attitude": Optimism}, "attitude must be Pessimism"),
    ],
)
def test_bad_hyper_parameters_are_refused(hyper_parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        TLForesight(**hyper_parameters)


@pytest.mark.parametrize("number", [-1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("attitude", [Optimism, Pessimism])
def test_number_of_deviations_out_of_range_is_refused(attitude: Any, number: float) -> None:
    with pytest.raises(ParameterError, match="must be a number from 0"):
        attitude(number)


def test_goal_over_other_states_is_refused() -> None:
    with pytest.raises(ValueError, match="the goal is over 3 states and 2 actions"):
        TLForesight().start(counts_of_list([], 3, 3), GOOD)


def plans_along_the_way(
    method: TLForesight, counts: TransitionCounts, records: int
) -> list[Plan | None]:
    """The plan that `rule` goes by, at the start and after each of some records."""
    rng = np.random.default_rng(0)
    memory = method.start(counts, GOOD)
    method.rule(memory, np.array(0), rng)
    plans = [memory.plan]
    for _ in range(records):
        method.observe(memory, *(np.array(rng.integers(n)) for n in (3, 2, 3)))
        method.rule(memory, np.array(0), rng)
        plans.append(memory.plan)
    return plans


def changes(plans: list[Plan | None]) -> list[int]:
    return [i for i in range(1, len(plans)) if plans[i] is not plans[i - 1]]


def test_acting_plans_anew_after_the_records_grew_by_the_share() -> None:
    """40 records and a share of a tenth: after 4 more, then 4.4, 4.9, 5.4, ... more, rounded up."""
    log_ = random_log(np.random.default_rng(1), 3, 2, 40)
    plans = plans_along_the_way(TLForesight(replan=0.1), counts_of(log_, 3, 2), 25)
    assert changes(plans) == [4, 9, 14, 20]


def test_acting_plans_anew_after_each_record_where_the_share_is_zero() -> None:
    log_ = random_log(np.random.default_rng(1), 3, 2, 500)
    plans = plans_along_the_way(TLForesight(replan=0.0), counts_of(log_, 3, 2), 6)
    assert changes(plans) == [1, 2, 3, 4, 5, 6]


def test_plan_is_current_whatever_the_share() -> None:
    """Acting may lag behind the records, a plan does not; it is made once for all questions."""
    log_ = random_log(np.random.default_rng(1), 3, 2, 500)
    lazy = TLForesight(replan=0.5)
    eager = TLForesight(replan=0.0)
    one = lazy.start(counts_of(log_, 3, 2), GOOD)
    other = eager.start(counts_of(log_, 3, 2), GOOD)
    for _ in range(5):
        lazy.plan(one)
        for method, memory in ((lazy, one), (eager, other)):
            method.observe(memory, np.array(0), np.array(1), np.array(2))
    np.testing.assert_array_equal(lazy.plan(one).rule, eager.plan(other).rule)
    planned = one.plan
    lazy.plan(one, slice(0, 1))
    assert one.plan is planned


@pytest.mark.parametrize("num_states", [3, 40])
def test_plan_made_anew_is_that_of_a_memory_that_has_not_planned_before(num_states: int) -> None:
    rng = np.random.default_rng(3)
    ideal = random_ideal(rng, num_states, 2)
    counts = counts_of(random_log(rng, num_states, 2, 60), num_states, 2)
    method = TLForesight(Optimism(), replan=0.0)
    asked = method.start(counts, ideal)
    silent = method.start(counts, ideal)
    for s, a, n in zip(*random_log(rng, num_states, 2, 8), strict=True):
        method.observe(asked, s, a, n)
        method.observe(silent, s, a, n)
        method.plan(asked)
    np.testing.assert_allclose(method.plan(asked).rule, method.plan(silent).rule, atol=1e-9)


def test_rule_is_the_plans_in_the_states_of_each_run() -> None:
    world = World.random(1)
    method = TLForesight()
    memory = method.start(world.counts, world.ideal)
    state = np.array([2, 0, 1])
    expected = method.plan(memory).rule[np.arange(3), state]
    rule = method.rule(memory, state, np.random.default_rng(0))
    np.testing.assert_array_equal(rule, expected)


@pytest.mark.parametrize("attitude", ATTITUDES)
@pytest.mark.parametrize("seed", range(3))
def test_batch_of_runs_that_start_from_nothing_is_each_run_alone(
    seed: int, attitude: Attitude
) -> None:
    """Each learns a world of its own, looking a few epochs ahead."""
    world = World.random(seed)
    method = TLForesight(attitude, horizon=2)
    streams = Streams(np.random.SeedSequence(3).spawn(3))
    together = run(world.system, method, 60, streams, ideal=world.ideal)
    for i, child in enumerate(np.random.SeedSequence(3).spawn(3)):
        rng = np.random.default_rng(child)
        alone = run(world.alone(i).system, method, 60, rng, ideal=world.ideal)
        np.testing.assert_array_equal(together.states[i], alone.states)
        np.testing.assert_array_equal(together.actions[i], alone.actions)


@pytest.mark.parametrize("seed", range(10))
def test_skill_value_and_deviation_of_a_batch_are_nearly_those_of_each_log_alone(seed: int) -> None:
    """To a hundredth of an epoch's utility."""
    rng = np.random.default_rng(seed)
    log_ = random_log(rng, 3, 2, 2, 3, 40)
    ideal = random_ideal(rng, 3, 2)
    together = plan_of(ideal, counts_of(log_, 3, 2), Pessimism())
    for i in np.ndindex(2, 3):
        single = Transitions(*(field[i] for field in log_))
        alone = plan_of(ideal, counts_of(single, 3, 2), Pessimism())
        for name in ("value", "uncertainty", "skill"):
            np.testing.assert_allclose(getattr(together, name)[i], getattr(alone, name), atol=0.01)


def test_foresight_does_not_wait_for_ever_where_the_past_did() -> None:
    """A corridor 1, 2, 3 to the goal 4, in which the past mostly waited; once it jumped to 0."""
    log_: dict[str, list[Any]] = {"s": [1], "a": ["jump"], "n": [0]}
    for cell in (1, 2, 3):
        log_["s"] += [cell] * 1000
        log_["a"] += ["wait"] * 800 + ["right"] * 200
        log_["n"] += [cell] * 800 + [cell + 1] * 200
    learner = pw.TransferLearner(Goal(prefer={4: 1}), method="TL_foresight")
    learner.fit(log_, state="s", action="a", next_state="n", terminal=[0, 4])
    assert all(learner.rule(cell)["right"] > 0.99 for cell in (1, 2, 3))


def test_preferred_actions_do_not_put_off_the_end() -> None:
    """To go right leads to the goal and is preferred; to stay earns nothing."""
    rng = np.random.default_rng(0)
    cell = rng.integers(1, 6, size=2000)
    way = rng.integers(3, size=2000)
    log_ = {
        "s": cell.tolist(),
        "a": np.array(["left", "right", "stay"])[way].tolist(),
        "n": (cell + np.array([-1, 1, 0])[way]).tolist(),
    }
    goal = Goal(prefer={6: 1}, prefer_actions={"right": 1.0, "stay": 0.5})
    learner = pw.TransferLearner(goal, method="TL_foresight")
    learner.fit(log_, state="s", action="a", next_state="n", terminal=[0, 6])
    assert all(learner.rule(c)["right"] > 0.99 for c in range(1, 6))


def test_live_loop_plans_rarely_and_the_learner_always() -> None:
    """3 new records of 400 are less than 1 %; the learner's own rule is always current."""
    log_ = {
        "room": ["cold", "cold", "mild", "mild", "hot", "hot", "cold", "mild"] * 50,
        "did": ["heat", "wait", "wait", "heat", "cool", "wait", "heat", "wait"] * 50,
        "then": ["mild", "cold", "mild", "hot", "mild", "hot", "cold", "mild"] * 50,
    }
    learner = pw.TransferLearner(Goal(prefer={"mild": 1}), method="TL_foresight")
    learner.fit(log_, state="room", action="did", next_state="then")
    live = learner.live(seed=0)
    live.observe("cold", "cool", "mild")
    before = live.rule("cold")
    assert before["cool"] > 0.99
    for _ in range(3):
        live.observe("cold", "cool", "cold")
        learner.observe("cold", "cool", "cold")
        assert live.rule("cold") == before
        assert learner.rule("cold") == learner.rule_["cold"]
    for _ in range(60):
        live.observe("cold", "cool", "cold")
    assert live.rule("cold")["cool"] < 0.01


def visits_to_the_first_state(
    method: TLForesight, ideal: IdealModel, num_states: int, steps: int
) -> int:
    """Of a run from nothing, where one action of each state mostly leads to the first state."""
    rng = np.random.default_rng(1)
    transition = np.full((num_states, 2, num_states), 0.1 / num_states)
    for s in range(num_states):
        good = int(rng.integers(2))
        transition[s, good, 0] += 0.9
        transition[s, 1 - good, (s + 1) % num_states] += 0.9
    system = FiniteSystem(DenseModel(transition))
    path = run(system, method, steps, np.random.default_rng(2), ideal=ideal)
    return int(np.count_nonzero(path.states[1:] == 0))


@pytest.mark.parametrize("num_states", [4, 40])
def test_run_that_starts_from_nothing_learns_to_reach_its_goal(num_states: int) -> None:
    """The best has 0.9 visits an epoch, acting at random 0.5.

    Acting at random has more than 0.65 in 400 epochs with probability < 1e-7.
    """
    transition = np.eye(num_states)[0] * 0.9 + 0.1 / num_states
    ideal = IdealModel.of(transition, num_actions=2)
    method = TLForesight(Optimism())
    assert visits_to_the_first_state(method, ideal, num_states, 400) > 0.65 * 400


def test_in_the_papers_study_it_gains_more_than_the_other_methods() -> None:
    """150 runs, paired differences of visits in 100 epochs.

    With another seed, in 600 runs, the mean differences after p3 were 15.8 from TL and 1.8 from
    FPD_learn, and after p1 3.7 from FPD_learn; their standard errors in 150 runs are 1.1, 0.6 and
    0.3. So a mean that is not above 0 has a probability of about 1e-3 for FPD_learn after p3, and
    below 1e-20 for the others.
    """
    names = ("TL", "TL_explore", "FPD_learn", "TL_foresight")
    gains = collect(PaperStudy(runs=150, seed=5, methods=names))
    for past, other in (
        ("p3", "TL"),
        ("p3", "TL_explore"),
        ("p3", "FPD_learn"),
        ("p1", "FPD_learn"),
    ):
        assert gains[past, "TL_foresight"].mean() > gains[past, other].mean(), (past, other)
