"""Values of rules: exact on known models, and on models sampled from the posterior of a log."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import ParameterError
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import (
    occupancy,
    policy_value,
    rule_values,
    sample_values,
    value_until_absorption,
)
from pastwise.goals.ideal import IdealModel
from pastwise.methods.baselines import behaviour_rule
from pastwise.models.dense import DenseModel
from pastwise.models.hierarchy import TransitionPosterior
from pastwise.models.samples import DenseSamples
from pastwise.theory.fpd import design, implied_reward, mdp_optimum
from tests.helpers.oracles import random_rows, simulated_counts

S, A = 3, 2


def world(seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A transition tensor, a rule and a utility of next states."""
    rng = np.random.default_rng(seed)
    return random_rows(rng, S, A, S), random_rows(rng, S, A), rng.random(S)


# Known models.


def enumerated_value(
    transition: FloatArray, rule: FloatArray, utility: FloatArray, start: int, horizon: int
) -> float:
    """Expected total utility by listing every trajectory."""
    total = 0.0
    for path in product(range(A), range(S), repeat=horizon):
        state = start
        probability = 1.0
        gained = 0.0
        for action, following in zip(path[::2], path[1::2], strict=True):
            probability *= rule[state, action] * transition[state, action, following]
            gained += utility[following]
            state = following
        total += probability * gained
    return total


def test_value_of_a_policy_is_that_of_all_its_trajectories() -> None:
    transition, rule, utility = world()
    model = DenseModel(transition)
    value = policy_value(model, rule, model.expect(utility), 3)
    expected = [enumerated_value(transition, rule, utility, s, 3) for s in range(S)]
    np.testing.assert_allclose(value, expected)


def test_policies_are_evaluated_together_as_alone() -> None:
    transition, _, utility = world()
    model = DenseModel(transition)
    rules = random_rows(np.random.default_rng(1), 4, S, A)
    together = policy_value(model, rules, model.expect(utility), 5)
    alone = [policy_value(model, rule, model.expect(utility), 5) for rule in rules]
    np.testing.assert_allclose(together, alone)


def test_the_divergence_of_the_optimal_policy_is_what_design_promises() -> None:
    """Paper: Eq. (2) [eq:closed-loop_factoris] and Theorem 1 [th:solution_FPD]."""
    transition, _, _ = world()
    model = DenseModel(transition)
    ideal = IdealModel.of([0.7, 0.2, 0.1], rule=[0.4, 0.6])
    plan = design(model, ideal, 1)
    rule = plan.policy[0]
    reward = (transition * implied_reward(ideal, transition, rule)).sum(axis=-1)
    np.testing.assert_allclose(policy_value(model, rule, reward, 1), plan.log_gamma[0])


def test_value_until_absorption_of_the_gamblers_ruin() -> None:
    """With stakes 0..4 and a fair coin.

    The chance to end at 4 is stake / 4, the length stake * (4 - stake).
    """
    loop = np.zeros((5, 5))
    loop[0, 0] = 1
    loop[4, 4] = 1
    for stake in (1, 2, 3):
        loop[stake, [stake - 1, stake + 1]] = 0.5
    rewards = np.stack([loop @ np.eye(5)[4], np.ones(5)])
    wins, length = value_until_absorption(loop, rewards, np.array([0, 4]))
    np.testing.assert_allclose(wins, [0, 0.25, 0.5, 0.75, 0])
    np.testing.assert_allclose(length, [0, 3, 4, 3, 0])
    with pytest.raises(ParameterError, match="no absorbing state is ever reached"):
        value_until_absorption(np.eye(5), rewards, np.array([0]))


# Given models, many at once.


def values_on(transition: FloatArray, rules: FloatArray, criterion: Criterion) -> FloatArray:
    """Values of rules [P, S, A] and of the optimum on one model: [P + 1]."""
    return np.asarray(rule_values(DenseSamples(transition[None]), rules, criterion)[0])


@pytest.mark.parametrize("horizon", [1, 7, 100])
def test_values_on_sampled_models_are_those_of_the_recursion(horizon: int) -> None:
    transition, _, utility = world()
    model = DenseModel(transition)
    rules = random_rows(np.random.default_rng(1), 4, S, A)
    initial = np.array([0.2, 0.3, 0.5])
    exact = policy_value(model, rules, model.expect(utility), horizon) @ initial / horizon
    best = mdp_optimum(model, utility, horizon).value[0] @ initial / horizon
    values = values_on(transition, rules, Criterion(utility, initial, horizon))
    np.testing.assert_allclose(values, [*exact, best], atol=2e-5)


@pytest.mark.parametrize("shape", [(S, A, S), (S, A, 1), (1, A, 1)])
def test_a_utility_may_depend_on_the_whole_transition(shape: tuple[int, ...]) -> None:
    transition, _, _ = world()
    rng = np.random.default_rng(2)
    utility = rng.random(shape)
    rules = random_rows(rng, 4, S, A)
    initial = np.array([0.2, 0.3, 0.5])
    model = DenseModel(transition)
    reward = (transition * utility).sum(axis=-1)
    exact = policy_value(model, rules, reward, 50) @ initial / 50
    best = mdp_optimum(model, np.broadcast_to(utility, (S, A, S)), 50).value[0] @ initial / 50
    values = values_on(transition, rules, Criterion(utility, initial, 50))
    np.testing.assert_allclose(values, [*exact, best], atol=2e-5)


def test_an_episode_scores_until_it_ends() -> None:
    """What is earned on arriving at an end counts once; a negative utility too."""
    transition, rule, positive = world()
    utility = positive - 0.4
    ends = np.array([2])
    transition = transition.copy()
    transition[2] = np.eye(S)[2]
    loop = np.einsum("sa,san->sn", rule, transition)
    expected = np.zeros(S)
    for _ in range(4):
        expected = loop @ (utility + expected)
        expected[ends] = 0.0
    criterion = Criterion(utility, np.eye(S)[1], 4, ends)
    value, best = values_on(transition, rule[None], criterion)
    assert value == pytest.approx(expected[1])
    assert best >= value


def test_values_scale_with_the_unit_of_the_utility() -> None:
    transition, rule, utility = world()
    small = values_on(transition, rule[None], Criterion(utility * 1e-6, np.eye(S)[1], 300))
    large = values_on(transition, rule[None], Criterion(utility * 1e6, np.eye(S)[1], 300))
    np.testing.assert_allclose(small * 1e12, large)


def test_slow_systems_are_followed_far_enough() -> None:
    """Change rates of 1e-6: over 10,000 epochs a mean that still grows is not taken for settled."""
    slow = np.array([[[1 - 1e-6, 1e-6]], [[2e-6, 1 - 2e-6]]])
    criterion = Criterion(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 10_000)
    value = values_on(slow, np.ones((1, 2, 1)), criterion)[0]
    epochs = np.arange(1, 10_001)
    assert value == pytest.approx(((1 - (1 - 3e-6) ** epochs) / 3).mean(), abs=2e-5)


def test_a_smaller_tolerance_follows_further() -> None:
    slow = np.array([[[0.99, 0.01]], [[0.02, 0.98]]])
    criterion = Criterion(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 10_000)
    rules = np.ones((1, 2, 1))
    exact = rule_values(DenseSamples(slow[None]), rules, criterion, tolerance=0.0)[0, 0]
    rough = rule_values(DenseSamples(slow[None]), rules, criterion, tolerance=0.1)[0, 0]
    default = rule_values(DenseSamples(slow[None]), rules, criterion)[0, 0]
    assert abs(default - exact) <= 1e-5
    assert 1e-5 < abs(rough - exact) <= 0.1


def test_the_optimum_takes_allowed_actions_only() -> None:
    transition, _, utility = world()
    only = np.eye(A, dtype=bool)[:1]
    criterion = Criterion(utility, np.eye(S)[1], 50, allowed=only)
    rule = np.broadcast_to(only.astype(float), (1, S, A))
    value, best = values_on(transition, rule, criterion)
    assert best == pytest.approx(value, abs=2e-5)


def test_a_periodic_loop_never_settles_and_is_followed_to_the_end() -> None:
    swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    criterion = Criterion(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 100)
    assert values_on(swap, np.ones((1, 2, 1)), criterion)[0] == pytest.approx(0.5)


def test_the_optimal_policy_may_turn_to_a_slower_way_late() -> None:
    """Staying earns 0.9 at once and for ever, going earns 1 after five steps.

    The steps settle long before going pays off.
    """
    S = 6
    transition = np.zeros((S, 2, S))
    transition[0, 0, 0] = 1
    transition[np.arange(S - 1), 1, np.arange(1, S)] = 1
    transition[np.arange(1, S - 1), 0, np.arange(2, S)] = 1
    transition[S - 1, :, S - 1] = 1
    utility = np.array([0.9, 0.0, 0.0, 0.0, 0.0, 1.0])
    stay = np.broadcast_to(np.eye(2)[0], (S, 2))
    value, best = values_on(transition, stay[None], Criterion(utility, np.eye(S)[0], 100))
    exact = mdp_optimum(DenseModel(transition), utility, 100).value[0, 0] / 100
    assert value == pytest.approx(0.9)
    assert best == pytest.approx(exact)
    assert best > 0.95


# Models sampled from a log.


def sampled_world() -> tuple[TransitionPosterior, dict[str, FloatArray], Criterion]:
    """The posterior of a small log, two rules and a criterion."""
    counts = simulated_counts(world()[0], 50, np.random.default_rng(8))
    rules = {"one": np.full((S, A), 0.5), "two": behaviour_rule(counts)}
    return TransitionPosterior(counts), rules, Criterion(np.eye(S)[0], np.full(S, 1 / S), 10)


def test_samples_depend_on_the_seed_and_not_on_the_rules() -> None:
    posterior, rules, criterion = sampled_world()
    both = sample_values(posterior, rules, criterion, 300)
    alone = sample_values(posterior, {"two": rules["two"]}, criterion, 300)
    np.testing.assert_allclose(both["two"], alone["two"], rtol=1e-12)
    np.testing.assert_array_equal(both["optimum"], alone["optimum"])
    number = len(both["optimum"])
    assert (both["optimum"] >= both["two"][:number] - 2e-5).all()

    other_seed = sample_values(posterior, rules, criterion, 300, seed=1)
    assert (other_seed["one"] != both["one"]).any()
    fewer = sample_values(posterior, rules, criterion, 100)
    np.testing.assert_array_equal(fewer["one"], both["one"][:100])
    for threads in (1, 3):
        again = sample_values(posterior, rules, criterion, 300, threads=threads)
        np.testing.assert_array_equal(again.values, both.values)


def test_any_number_of_rules_is_evaluated_together() -> None:
    """Seven rules on 40 states, where sampled models are sparse: each gets the value it has alone.

    A recursion may stop earlier alone than with others, within the tolerance of 1e-5.
    """
    num_states = 40
    rng = np.random.default_rng(12)
    counts = simulated_counts(random_rows(rng, num_states, A, num_states), 500, rng)
    posterior = TransitionPosterior(counts)
    rules = {f"rule {i}": random_rows(rng, num_states, A) for i in range(7)}
    initial = np.full(num_states, 1 / num_states)
    criterion = Criterion(np.eye(num_states)[0], initial, 50)
    together = sample_values(posterior, rules, criterion, 20)
    assert together.names == (*rules, "logged", "optimum")
    assert together.values.shape == (20, 9)
    for name, rule in rules.items():
        alone = sample_values(posterior, {name: rule}, criterion, 20)
        np.testing.assert_allclose(together[name], alone[name], atol=2e-5)
        np.testing.assert_allclose(together["optimum"], alone["optimum"], atol=2e-5)


def test_ctrl_c_keeps_what_was_sampled() -> None:
    posterior, rules, criterion = sampled_world()
    steps: list[int] = []

    def impatient(done: int) -> None:
        steps.append(done)
        if len(steps) == 2:
            raise KeyboardInterrupt

    samples = sample_values(posterior, rules, criterion, 1000, on_step=impatient)
    assert (samples.number, samples.requested) == (400, 1000)


def test_bad_horizon_and_number_of_samples_are_refused() -> None:
    posterior, _, criterion = sampled_world()
    uniform = np.full(S, 1 / S)
    with pytest.raises(ParameterError, match="from 1 to 1,000,000"):
        Criterion(np.eye(S)[0], uniform, 0)
    with pytest.raises(ParameterError, match="from 1 to 1,000,000"):
        Criterion(np.eye(S)[0], uniform, 10_000_000)
    with pytest.raises(ParameterError, match="from 1 to 1,000,000"):
        policy_value(DenseModel(world()[0]), world()[1], world()[1], 0)
    with pytest.raises(ParameterError, match="whole number from 1 to 1,000,000, not 0"):
        sample_values(posterior, {}, criterion, 0)


@pytest.mark.parametrize("horizon", [10.0, float("nan"), "10"])
def test_a_horizon_is_a_whole_number(horizon: Any) -> None:
    with pytest.raises(ParameterError, match="horizon must be a whole number"):
        Criterion(np.ones(S), np.full(S, 1 / S), horizon)


# Occupancy.


@pytest.mark.parametrize("horizon", [300, 100_000])
def test_occupancy_is_where_the_rule_goes(horizon: int) -> None:
    cycle = np.eye(S)[[[1], [2], [0]]]
    counts = simulated_counts(cycle, 3000, np.random.default_rng(9))
    loop = TransitionPosterior(counts).mean_closed_loop(np.ones((S, 1)))
    criterion = Criterion(np.ones(S), np.eye(S)[0], horizon)
    np.testing.assert_allclose(occupancy(loop, criterion), 1 / 3, atol=0.01)


def test_occupancy_is_of_the_time_before_the_end() -> None:
    loop = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    criterion = Criterion(np.ones(S), np.eye(S)[0], 100, np.array([2]))
    np.testing.assert_allclose(occupancy(loop, criterion), [0.5, 0.5, 0.0])
