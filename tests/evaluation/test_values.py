"""Values of policies: exact for known models, uncertain from a log."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from pastwise import DenseModel, IdealModel, Space, TransitionCounts, design, mdp_optimum
from pastwise._numerics.arrays import FloatArray
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import (
    divergence_cost,
    occupancy,
    policy_value,
    rule_values,
    sample_values,
    value_until_absorption,
)
from pastwise.methods.baselines import behaviour_rule
from pastwise.models.samples import (
    DenseDraws,
    DrawnModels,
    PriorGrid,
    SparseDraws,
    TransitionPosterior,
    bases_of,
)
from tests.helpers.oracles import random_rows

S, A = 3, 2


def world(seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A transition tensor, a rule and a score."""
    rng = np.random.default_rng(seed)
    return random_rows(rng, S, A, S), random_rows(rng, S, A), rng.random(S)


def enumerated_value(
    transition: FloatArray, rule: FloatArray, score: FloatArray, start: int, horizon: int
) -> float:
    """Expected total score by listing every trajectory."""
    total = 0.0
    for path in product(range(A), range(S), repeat=horizon):
        state, probability, gained = start, 1.0, 0.0
        for action, following in zip(path[::2], path[1::2], strict=True):
            probability *= rule[state, action] * transition[state, action, following]
            gained += score[following]
            state = following
        total += probability * gained
    return total


def test_value_of_a_policy_is_that_of_all_its_trajectories() -> None:
    transition, rule, score = world()
    model = DenseModel(transition)
    value = policy_value(model, rule, model.expect(score), 3)
    np.testing.assert_allclose(
        value, [enumerated_value(transition, rule, score, s, 3) for s in range(S)]
    )


def test_policies_are_evaluated_together_as_alone() -> None:
    transition, _, score = world()
    model, rules = DenseModel(transition), random_rows(np.random.default_rng(1), 4, S, A)
    together = policy_value(model, rules, model.expect(score), 5)
    np.testing.assert_allclose(
        together, [policy_value(model, rule, model.expect(score), 5) for rule in rules]
    )


def test_the_divergence_of_the_optimal_policy_is_what_design_promises() -> None:
    """Paper: Eq. (2) [eq:closed-loop_factoris] and Theorem 1 [th:solution_FPD]."""
    transition, _, _ = world()
    model, ideal = DenseModel(transition), IdealModel.of([0.7, 0.2, 0.1], rule=[0.4, 0.6])
    plan = design(model, ideal, 1)
    rule = plan.policy[0]
    cost = policy_value(model, rule, divergence_cost(model, ideal, rule), 1)
    np.testing.assert_allclose(cost, -plan.log_gamma[0])


def test_rule_with_zeros_has_a_finite_divergence() -> None:
    transition, _, _ = world()
    ideal = IdealModel.of([0.7, 0.2, 0.1], num_actions=A)
    cost = divergence_cost(DenseModel(transition), ideal, np.eye(A)[[0, 1, 0]])
    assert np.isfinite(cost).all()


def test_value_until_absorption_of_the_gamblers_ruin() -> None:
    """With stakes 0..4 and a fair coin the chance to end at 4 is stake / 4, the length stake * (4 - stake)."""
    loop = np.zeros((5, 5))
    loop[0, 0] = loop[4, 4] = 1
    for stake in (1, 2, 3):
        loop[stake, [stake - 1, stake + 1]] = 0.5
    rewards = np.stack([loop @ np.eye(5)[4], np.ones(5)])
    wins, length = value_until_absorption(loop, rewards, np.array([0, 4]))
    np.testing.assert_allclose(wins, [0, 0.25, 0.5, 0.75, 0])
    with pytest.raises(ValueError, match="no absorbing state is ever reached"):
        value_until_absorption(np.eye(5), rewards, np.array([0]))
    np.testing.assert_allclose(length, [0, 3, 4, 3, 0])


@pytest.mark.parametrize("horizon", [1, 7, 100])
def test_values_on_drawn_models_are_those_of_the_recursion(horizon: int) -> None:
    transition, _, score = world()
    model, rules = DenseModel(transition), random_rows(np.random.default_rng(1), 4, S, A)
    initial = np.array([0.2, 0.3, 0.5])
    criterion = Criterion(score, initial, horizon)
    exact = policy_value(model, rules, model.expect(score), horizon) @ initial / horizon
    best = mdp_optimum(model, score, horizon).value[0] @ initial / horizon
    np.testing.assert_allclose(
        rule_values(DenseDraws(transition[None]), rules, criterion)[0], [*exact, best], atol=2e-5
    )


@pytest.mark.parametrize("shape", [(S, A, S), (S, A, 1), (1, A, 1)])
def test_a_score_may_depend_on_the_whole_transition(shape: tuple[int, ...]) -> None:
    transition, _, _ = world()
    rng = np.random.default_rng(2)
    score, rules, initial = rng.random(shape), random_rows(rng, 4, S, A), np.array([0.2, 0.3, 0.5])
    model, reward = DenseModel(transition), (transition * score).sum(axis=-1)
    exact = policy_value(model, rules, reward, 50) @ initial / 50
    best = mdp_optimum(model, np.broadcast_to(score, (S, A, S)), 50).value[0] @ initial / 50
    criterion = Criterion(score, initial, 50)
    values = rule_values(DenseDraws(transition[None]), rules, criterion)[0]
    np.testing.assert_allclose(values, [*exact, best], atol=2e-5)


def test_an_episode_scores_until_it_ends() -> None:
    """What is earned on arriving at an end counts once; a negative score too."""
    transition, rule, score = world()
    ends = np.array([2])
    transition = transition.copy()
    transition[2] = np.eye(S)[2]
    criterion = Criterion(score - 0.4, np.eye(S)[1], 4, ends)
    loop = np.einsum("sa,san->sn", rule, transition)
    worth = np.zeros(S)
    for _ in range(4):
        worth = loop @ (score - 0.4 + worth)
        worth[ends] = 0.0
    value, best = rule_values(DenseDraws(transition[None]), rule[None], criterion)[0]
    assert value == pytest.approx(worth[1])
    assert best >= value


def test_values_scale_with_the_unit_of_the_score() -> None:
    transition, rule, score = world()
    small, large = (
        rule_values(
            DenseDraws(transition[None]), rule[None], Criterion(score * unit, np.eye(S)[1], 300)
        )
        for unit in (1e-6, 1e6)
    )
    np.testing.assert_allclose(small * 1e12, large)


def test_slow_systems_are_followed_far_enough() -> None:
    """Change rates of 1e-6: over 10,000 epochs a mean that still grows is not taken for settled."""
    slow = np.array([[[1 - 1e-6, 1e-6]], [[2e-6, 1 - 2e-6]]])
    criterion = Criterion(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 10_000)
    value = rule_values(DenseDraws(slow[None]), np.ones((1, 2, 1)), criterion)[0, 0]
    epochs = np.arange(1, 10_001)
    assert value == pytest.approx(((1 - (1 - 3e-6) ** epochs) / 3).mean(), abs=2e-5)


def test_the_optimum_takes_allowed_actions_only() -> None:
    transition, _, score = world()
    only = np.eye(A, dtype=bool)[:1]
    criterion = Criterion(score, np.eye(S)[1], 50, allowed=only)
    rule = np.broadcast_to(only.astype(float), (1, S, A))
    value, best = rule_values(DenseDraws(transition[None]), rule, criterion)[0]
    assert best == pytest.approx(value)


def test_a_periodic_loop_never_settles_and_is_followed_to_the_end() -> None:
    swap = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    criterion = Criterion(np.array([1.0, 0.0]), np.array([1.0, 0.0]), 100)
    value = rule_values(DenseDraws(swap[None]), np.ones((1, 2, 1)), criterion)[0, 0]
    assert value == pytest.approx(0.5)


# Draws


def counts_of(transition: FloatArray, number: int, rng: np.random.Generator) -> TransitionCounts:
    """Counts of transitions from states and actions drawn uniformly."""
    states, actions = transition.shape[0], transition.shape[1]
    s, a = rng.integers(states, size=number), rng.integers(actions, size=number)
    n = (transition[s, a].cumsum(axis=-1) < rng.random(number)[:, None]).sum(axis=-1)
    return TransitionCounts.from_records(s, a, n, Space.of_size(states), Space.of_size(actions))


def test_dense_draws_have_the_moments_of_the_dirichlet_posterior() -> None:
    """20,000 draws; 6 standard errors of a mean, 8 % of a variance: error probabilities below 1e-8 each."""
    counts = counts_of(world()[0], 30, np.random.default_rng(2))
    posterior = TransitionPosterior(counts, background=0.5)
    rng = np.random.default_rng(3)
    drawn = np.concatenate([posterior.draw(200, rng).transition for _ in range(100)])  # type: ignore[attr-defined]
    V = np.bincount(counts.key, counts.weight, S * A * S).reshape(S, A, S) + 0.5
    total = V.sum(axis=-1, keepdims=True)
    mean, variance = V / total, V * (total - V) / (total**2 * (total + 1))
    assert (np.abs(drawn.mean(axis=0) - mean) < 6 * np.sqrt(variance / len(drawn))).all()
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.08)


def test_the_unseen_mass_of_a_sparse_draw_is_split_at_random() -> None:
    """Of 100 states 5 records were seen: the spread of an expectation is near the exact one, far above an even split's.

    2,000 draws: the standard deviation is known to 2 %, and one atom of the unseen gives the exact one.
    """
    states = 100
    seen = np.array([3, 14, 15, 92, 65])
    zeros = np.zeros(5, dtype=np.int64)
    counts = TransitionCounts.from_records(
        zeros, zeros, seen, Space.of_size(states), Space.of_size(1)
    )
    posterior, rng, values = (
        TransitionPosterior(counts, background=0.02),
        np.random.default_rng(0),
        np.arange(states) / 100,
    )
    sparse = [posterior.draw(1, rng).expect(values)[0, 0, 0] for _ in range(2000)]
    V = np.full(states, 0.02)
    V[seen] += 1
    exact = rng.dirichlet(V, size=20_000) @ values
    share = rng.beta(0.02 * 95, 5.1, size=20_000)
    even = share * values.mean() + (1 - share) * (
        rng.dirichlet(V[seen], size=20_000) @ values[seen]
    )
    assert np.mean(sparse) == pytest.approx(exact.mean(), abs=0.006)
    assert np.std(sparse) == pytest.approx(exact.std(), rel=0.08)
    assert np.std(even) < 0.9 * exact.std()


def rows_of(draws: DrawnModels, states: int) -> FloatArray:
    """The tensor of each drawn model, column by column: [n, S, A, S]."""
    return np.stack([draws.expect(column) for column in np.eye(states)], axis=-1)


def test_models_drawn_together_are_told_apart() -> None:
    """Each block of a batch is a distribution of its own, and has its own expectation."""
    states, rng = 40, np.random.default_rng(5)
    posterior = TransitionPosterior(counts_of(random_rows(rng, states, A, states), 300, rng))
    draws = posterior.draw(7, rng)
    assert isinstance(draws, SparseDraws)
    rows = rows_of(draws, states)
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    assert len({row.tobytes() for row in rows}) == 7
    table, worth = rng.random((states, A, states)), rng.random((7, states, 4))
    rules, allowed = random_rows(rng, 3, states, A), rng.random((states, A)) < 0.8
    rules[0], allowed[:, 0] = np.eye(A)[0], True
    now = np.einsum("dsan,san->dsa", rows, table)
    after = now[..., None] + np.einsum("dsan,dnp->dsap", rows, worth)
    best = np.where(allowed, after[..., -1], -np.inf).max(axis=-1, keepdims=True)
    before = np.concatenate([np.einsum("psa,dsap->dsp", rules, after[..., :-1]), best], axis=-1)
    for each in (draws, DenseDraws(rows)):
        np.testing.assert_allclose(each.expect(table), now)
        np.testing.assert_allclose(each.backup(now, rules, allowed)(worth), before)
    with pytest.raises(ValueError, match="at most 4 rules at once, not 5"):
        draws.backup(now, random_rows(rng, 5, states, A), allowed)


def test_a_prior_of_the_states_own_records_is_spread_as_its_table_says() -> None:
    """Rows that were never seen follow the base alone: their mean over many draws is its line."""
    states, rng = 40, np.random.default_rng(11)
    counts = counts_of(random_rows(rng, states, A, states), 300, rng)
    *_, pooled = bases_of(counts)
    posterior = TransitionPosterior(counts)
    posterior.prior = PriorGrid(np.array([3.0]), [pooled], np.ones(1))
    draws = [rows_of(posterior.draw(20, rng), states) for _ in range(100)]
    np.testing.assert_allclose(draws[0].sum(axis=-1), 1)
    unseen = np.argwhere(counts.by_state_action(counts.weight) == 0)
    for s, a in unseen[:5]:
        drawn = np.concatenate([each[:, s, a] for each in draws])
        error = np.sqrt(pooled.table[s] * (1 - pooled.table[s]) / (1 + 3) / len(drawn))
        assert (np.abs(drawn.mean(axis=0) - pooled.table[s]) < 6 * error + 1e-12).all()


@pytest.mark.parametrize("states", [4, 40])
def test_terminal_states_are_never_left_in_a_draw(states: int) -> None:
    rng = np.random.default_rng(6)
    counts = counts_of(random_rows(rng, states, A, states), 200, rng).ending_in(np.array([1, 3]))
    posterior = TransitionPosterior(counts)
    rule = np.full((states, A), 1 / A)
    drawn = rows_of(posterior.draw(1, rng), states)[0].mean(axis=1)
    for loop in (drawn, posterior.mean_closed_loop(rule)):
        np.testing.assert_allclose(loop[[1, 3]], np.eye(states)[[1, 3]])
        np.testing.assert_allclose(loop.sum(axis=-1), 1)


def test_the_prior_follows_the_rows() -> None:
    """Rows that are nearly alike ask for a heavy prior, rows of a single successor for a light one."""
    rng = np.random.default_rng(7)
    alike = np.full((S, A, S), 1 / S)
    single = np.eye(S)[rng.integers(S, size=(S, A))]
    means = []
    for transition in (alike, single):
        grid = PriorGrid.of(counts_of(transition, 300, rng))
        assert grid.probability.sum() == pytest.approx(1)
        means.append(grid.mean()[0])
    assert means[0] > 10 * means[1]


def test_samples_depend_on_the_seed_and_not_on_the_rules() -> None:
    counts, criterion = (
        counts_of(world()[0], 50, np.random.default_rng(8)),
        Criterion(np.eye(S)[0], np.full(S, 1 / S), 10),
    )
    rules = {"one": np.full((S, A), 0.5), "two": behaviour_rule(counts)}
    posterior = TransitionPosterior(counts)
    both, alone = (
        sample_values(posterior, rules, criterion, 300),
        sample_values(posterior, {"two": rules["two"]}, criterion, 300),
    )
    np.testing.assert_allclose(both["two"], alone["two"], rtol=1e-12)
    np.testing.assert_array_equal(both["optimum"], alone["optimum"])
    assert (sample_values(posterior, rules, criterion, 300, seed=1)["one"] != both["one"]).any()
    assert (both["optimum"] >= both["two"] - 2e-5).all()
    np.testing.assert_array_equal(
        sample_values(posterior, rules, criterion, 100)["one"], both["one"][:100]
    )
    for threads in (1, 3):
        np.testing.assert_array_equal(
            sample_values(posterior, rules, criterion, 300, threads=threads).values, both.values
        )


def test_ctrl_c_keeps_what_was_drawn() -> None:
    counts, criterion = (
        counts_of(world()[0], 50, np.random.default_rng(8)),
        Criterion(np.eye(S)[0], np.full(S, 1 / S), 10),
    )
    steps: list[int] = []

    def impatient(done: int) -> None:
        steps.append(done)
        if len(steps) == 2:
            raise KeyboardInterrupt

    samples = sample_values(
        TransitionPosterior(counts),
        {"any": np.full((S, A), 0.5)},
        criterion,
        1000,
        on_step=impatient,
    )
    assert (len(samples.values), samples.requested) == (400, 1000)


def test_bad_horizon_and_draws_are_refused() -> None:
    counts = counts_of(world()[0], 50, np.random.default_rng(8))
    with pytest.raises(ValueError, match="the horizon must be at least 1, not 0"):
        Criterion(np.eye(S)[0], np.full(S, 1 / S), 0)
    with pytest.raises(ValueError, match="the horizon can be at most 1,000,000, not 10,000,000"):
        Criterion(np.eye(S)[0], np.full(S, 1 / S), 10_000_000)
    with pytest.raises(ValueError, match="the horizon must be at least 1, not 0"):
        policy_value(DenseModel(world()[0]), world()[1], world()[1], 0)
    with pytest.raises(
        ValueError, match="the number of samples must be a whole number from 1 to 1,000,000, not 0"
    ):
        sample_values(
            TransitionPosterior(counts), {}, Criterion(np.eye(S)[0], np.full(S, 1 / S)), 0
        )


@pytest.mark.parametrize("horizon", [300, 100_000])
def test_occupancy_is_where_the_rule_goes(horizon: int) -> None:
    cycle = np.eye(S)[[[1], [2], [0]]]
    counts = counts_of(cycle, 3000, np.random.default_rng(9))
    loop = TransitionPosterior(counts).mean_closed_loop(np.ones((S, 1)))
    criterion = Criterion(np.ones(S), np.eye(S)[0], horizon)
    np.testing.assert_allclose(occupancy(loop, criterion), 1 / 3, atol=0.01)


def test_occupancy_is_of_the_time_before_the_end() -> None:
    loop = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    criterion = Criterion(np.ones(S), np.eye(S)[0], 100, np.array([2]))
    visits = occupancy(loop, criterion)
    np.testing.assert_allclose(visits, [0.5, 0.5, 0.0])


# Calibration


def test_unweighted_posteriors_are_calibrated() -> None:
    """Simulation-based calibration: ranks of p(next | s, a), of p(a | s) and of the log-likelihood are uniform.

    2,000 simulations, 19 posterior draws each, 20 ranks; chi-squared with 19 degrees of freedom exceeds its 1 - 1e-6
    quantile with probability 1e-6 for each of the three.
    """
    rng = np.random.default_rng(11)
    simulations, draws, states, actions = 2000, 19, 3, 2
    ranks = np.zeros((3, draws + 1))
    for _ in range(simulations):
        transition = rng.dirichlet(np.ones(states), size=(states, actions))
        rule = rng.dirichlet(np.ones(actions), size=states)
        s = rng.integers(states, size=12)
        a = (rule[s].cumsum(axis=-1) < rng.random(12)[:, None]).sum(axis=-1)
        n = (transition[s, a].cumsum(axis=-1) < rng.random(12)[:, None]).sum(axis=-1)
        counts = TransitionCounts.from_records(
            s, a, n, Space.of_size(states), Space.of_size(actions)
        )
        drawn = TransitionPosterior(counts, background=1.0).draw(draws, rng).transition  # type: ignore[attr-defined]
        done = counts.by_state_action(counts.weight)
        rules = rng.gamma(done + 1, size=(draws, states, actions))
        rules /= rules.sum(axis=-1, keepdims=True)
        likelihood = np.log(drawn[:, s, a, n]).sum(axis=-1)
        truth = np.log(transition[s, a, n]).sum()
        ranks[0, int((drawn[:, 0, 0, 0] < transition[0, 0, 0]).sum())] += 1
        ranks[1, int((rules[:, 0, 0] < rule[0, 0]).sum())] += 1
        ranks[2, int((likelihood < truth).sum())] += 1
    expected = simulations / (draws + 1)
    statistic = ((ranks - expected) ** 2 / expected).sum(axis=-1)
    assert (statistic < chi2.isf(1e-6, draws)).all(), statistic


def test_the_best_policy_may_turn_to_a_slower_way_late() -> None:
    """Staying earns 0.9 at once and for ever, going earns 1 after five steps: settled steps do not tell."""
    S = 6
    transition = np.zeros((S, 2, S))
    transition[0, 0, 0] = 1
    transition[np.arange(S - 1), 1, np.arange(1, S)] = 1
    transition[np.arange(1, S - 1), 0, np.arange(2, S)] = 1
    transition[S - 1, :, S - 1] = 1
    score = np.r_[0.9, np.zeros(S - 2), 1.0]
    stay = np.broadcast_to(np.eye(2)[0], (S, 2))
    criterion = Criterion(score, np.eye(S)[0], 100)
    value, best = rule_values(DenseDraws(transition[None]), stay[None], criterion)[0]
    assert value == pytest.approx(0.9)
    assert best == pytest.approx(mdp_optimum(DenseModel(transition), score, 100).value[0, 0] / 100)
    assert best > 0.95


@pytest.mark.parametrize("horizon", [10.0, float("nan"), "10"])
def test_a_horizon_is_a_whole_number(horizon: Any) -> None:
    with pytest.raises(ValueError, match="the horizon must be a whole number"):
        Criterion(np.ones(S), np.full(S, 1 / S), horizon)
