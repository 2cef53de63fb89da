"""Transition models sampled from the posterior of a log: moments, layout, prior, calibration."""

import numpy as np
import pytest
from scipy.stats import chi2

from pastwise import Space, TransitionCounts
from pastwise._numerics.arrays import FloatArray
from pastwise.models.prior import PriorGrid, same_state_base
from pastwise.models.samples import (
    DenseSamples,
    SampledModels,
    SparseSamples,
    TransitionPosterior,
)
from tests.helpers.oracles import random_rows, simulated_counts

S, A = 3, 2


def rows_of(models: SampledModels, num_states: int) -> FloatArray:
    """The tensor of each sampled model, column by column: [n, S, A, S]."""
    return np.stack([models.expect(column) for column in np.eye(num_states)], axis=-1)


def dense_samples(
    posterior: TransitionPosterior, number: int, rng: np.random.Generator
) -> FloatArray:
    """Sampled tensors [number, S, A, S] of a system with few states."""
    models = posterior.sample(number, rng)
    assert isinstance(models, DenseSamples)
    return models.transition


def test_dense_samples_have_the_moments_of_the_dirichlet_posterior() -> None:
    """20,000 samples; 6 standard errors of a mean, 8 % of a variance.

    The error probabilities are below 1e-8 each.
    """
    transition = random_rows(np.random.default_rng(0), S, A, S)
    counts = simulated_counts(transition, 30, np.random.default_rng(2))
    posterior = TransitionPosterior(counts, background=0.5)
    rng = np.random.default_rng(3)
    samples = np.concatenate([dense_samples(posterior, 200, rng) for _ in range(100)])
    V = np.bincount(counts.key, counts.weight, S * A * S).reshape(S, A, S) + 0.5
    total = V.sum(axis=-1, keepdims=True)
    mean = V / total
    variance = V * (total - V) / (total**2 * (total + 1))
    assert (np.abs(samples.mean(axis=0) - mean) < 6 * np.sqrt(variance / len(samples))).all()
    np.testing.assert_allclose(samples.var(axis=0), variance, rtol=0.08)


def test_the_unseen_mass_of_a_sparse_sample_is_split_at_random() -> None:
    """Five records in 100 states: an expectation has the exact spread, far above an even split's.

    2,000 samples: the standard deviation is known to 2 %, and one atom of the unseen mass gives the
    exact one.
    """
    states = 100
    seen = np.array([3, 14, 15, 92, 65])
    zeros = np.zeros(5, dtype=np.int64)
    counts = TransitionCounts.from_records(
        zeros, zeros, seen, Space.of_size(states), Space.of_size(1)
    )
    posterior = TransitionPosterior(counts, background=0.02)
    rng = np.random.default_rng(0)
    values = np.arange(states) / 100
    sparse = [posterior.sample(1, rng).expect(values)[0, 0, 0] for _ in range(2000)]
    V = np.full(states, 0.02)
    V[seen] += 1
    exact = rng.dirichlet(V, size=20_000) @ values
    share = rng.beta(0.02 * 95, 5.1, size=20_000)
    of_seen = rng.dirichlet(V[seen], size=20_000) @ values[seen]
    even = share * values.mean() + (1 - share) * of_seen
    assert np.mean(sparse) == pytest.approx(exact.mean(), abs=0.006)
    assert np.std(sparse) == pytest.approx(exact.std(), rel=0.08)
    assert np.std(even) < 0.9 * exact.std()


def test_models_sampled_together_are_kept_apart() -> None:
    """Each model of a batch is a distribution of its own, with its own expectations."""
    states = 40
    rng = np.random.default_rng(5)
    counts = simulated_counts(random_rows(rng, states, A, states), 300, rng)
    models = TransitionPosterior(counts).sample(7, rng)
    assert isinstance(models, SparseSamples)
    rows = rows_of(models, states)
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    assert len({row.tobytes() for row in rows}) == 7

    table = rng.random((states, A, states))
    value = rng.random((7, states, 4))
    rules = random_rows(rng, 3, states, A)
    allowed = rng.random((states, A)) < 0.8
    rules[0] = np.eye(A)[0]
    allowed[:, 0] = True
    now = np.einsum("dsan,san->dsa", rows, table)
    after = now[..., None] + np.einsum("dsan,dnp->dsap", rows, value)
    best = np.where(allowed, after[..., -1], -np.inf).max(axis=-1, keepdims=True)
    before = np.concatenate([np.einsum("psa,dsap->dsp", rules, after[..., :-1]), best], axis=-1)
    for each in (models, DenseSamples(rows)):
        np.testing.assert_allclose(each.expect(table), now)
        np.testing.assert_allclose(each.backup(now, rules, allowed)(value), before)


def test_a_prior_of_the_states_own_records_is_spread_as_its_table_says() -> None:
    """Rows that were never seen follow the base alone: their mean over many samples is its line."""
    states = 40
    rng = np.random.default_rng(11)
    counts = simulated_counts(random_rows(rng, states, A, states), 300, rng)
    pooled = same_state_base(counts)
    posterior = TransitionPosterior(counts)
    posterior.prior = PriorGrid(np.array([3.0]), [pooled], np.ones(1))
    batches = [rows_of(posterior.sample(20, rng), states) for _ in range(100)]
    np.testing.assert_allclose(batches[0].sum(axis=-1), 1)
    unseen = np.argwhere(counts.by_state_action(counts.weight) == 0)
    for s, a in unseen[:5]:
        samples = np.concatenate([batch[:, s, a] for batch in batches])
        error = np.sqrt(pooled.table[s] * (1 - pooled.table[s]) / (1 + 3) / len(samples))
        assert (np.abs(samples.mean(axis=0) - pooled.table[s]) < 6 * error + 1e-12).all()


@pytest.mark.parametrize("states", [4, 40])
def test_terminal_states_are_never_left_in_a_sample(states: int) -> None:
    rng = np.random.default_rng(6)
    counts = simulated_counts(random_rows(rng, states, A, states), 200, rng)
    posterior = TransitionPosterior(counts.ending_in(np.array([1, 3])))
    rule = np.full((states, A), 1 / A)
    sampled = rows_of(posterior.sample(1, rng), states)[0].mean(axis=1)
    for loop in (sampled, posterior.mean_closed_loop(rule)):
        np.testing.assert_allclose(loop[[1, 3]], np.eye(states)[[1, 3]])
        np.testing.assert_allclose(loop.sum(axis=-1), 1)


def test_the_prior_follows_the_rows() -> None:
    """Nearly equal rows imply a heavy prior, rows of a single successor a light one."""
    rng = np.random.default_rng(7)
    equal = np.full((S, A, S), 1 / S)
    single = np.eye(S)[rng.integers(S, size=(S, A))]
    means = []
    for transition in (equal, single):
        grid = PriorGrid.of(simulated_counts(transition, 300, rng))
        assert grid.probability.sum() == pytest.approx(1)
        means.append(grid.mean()[0])
    assert means[0] > 10 * means[1]


def test_unweighted_posteriors_are_calibrated() -> None:
    """Simulation-based calibration: three ranks are uniform.

    They are those of p(next | s, a), of p(a | s) and of the log-likelihood. 2,000 simulations, 19
    posterior samples each, 20 ranks; chi-squared with 19 degrees of freedom exceeds its 1 - 1e-6
    quantile with probability 1e-6 for each of the three.
    """
    rng = np.random.default_rng(11)
    simulations = 2000
    samples = 19
    states = 3
    actions = 2
    ranks = np.zeros((3, samples + 1))
    for _ in range(simulations):
        # A system and a rule from the prior, and a log of them.
        transition = rng.dirichlet(np.ones(states), size=(states, actions))
        rule = rng.dirichlet(np.ones(actions), size=states)
        s = rng.integers(states, size=12)
        a = (rule[s].cumsum(axis=-1) < rng.random(12)[:, None]).sum(axis=-1)
        n = (transition[s, a].cumsum(axis=-1) < rng.random(12)[:, None]).sum(axis=-1)
        counts = TransitionCounts.from_records(
            s, a, n, Space.of_size(states), Space.of_size(actions)
        )

        # Samples of both from the posterior.
        models = dense_samples(TransitionPosterior(counts, background=1.0), samples, rng)
        logged = counts.by_state_action(counts.weight)
        rules = rng.gamma(logged + 1, size=(samples, states, actions))
        rules /= rules.sum(axis=-1, keepdims=True)

        # Ranks of the truth among them.
        likelihood = np.log(models[:, s, a, n]).sum(axis=-1)
        true_likelihood = np.log(transition[s, a, n]).sum()
        ranks[0, int((models[:, 0, 0, 0] < transition[0, 0, 0]).sum())] += 1
        ranks[1, int((rules[:, 0, 0] < rule[0, 0]).sum())] += 1
        ranks[2, int((likelihood < true_likelihood).sum())] += 1
    expected = simulations / (samples + 1)
    statistic = ((ranks - expected) ** 2 / expected).sum(axis=-1)
    assert (statistic < chi2.isf(1e-6, samples)).all(), statistic


# Sparse samples against dense ones

STATES = 40
NUMBER = 5


@pytest.fixture(scope="module")
def sparse() -> SparseSamples:
    """Some models of a system of more states than dense samples are made for."""
    rng = np.random.default_rng(0)
    counts = simulated_counts(random_rows(rng, STATES, A, STATES), 300, rng)
    models = TransitionPosterior(counts).sample(NUMBER, rng)
    assert isinstance(models, SparseSamples)
    return models


@pytest.fixture(scope="module")
def dense(sparse: SparseSamples) -> DenseSamples:
    """The same models as a tensor, column by column."""
    columns = [sparse.expect(column) for column in np.eye(STATES)]
    return DenseSamples(np.stack(columns, axis=-1))


def values_after(
    models: SampledModels, reward: FloatArray, rules: FloatArray, epochs: int = 4
) -> FloatArray:
    """Values [n, S, P + 1] after some epochs; one action is allowed in state 0, all elsewhere."""
    allowed = np.ones((STATES, A), dtype=bool)
    allowed[0, 1:] = False
    backup = models.backup(reward, rules, allowed)
    value = np.zeros((NUMBER, STATES, len(rules) + 1))
    for _ in range(epochs):
        value = backup(value)
    return value


@pytest.mark.parametrize("number", [0, 1, 4, 5, 8, 11])
def test_any_number_of_rules_is_evaluated_together(
    sparse: SparseSamples, dense: DenseSamples, number: int
) -> None:
    """In groups of lanes, against the dense path."""
    rng = np.random.default_rng(number)
    reward = rng.normal(size=(NUMBER, STATES, A))
    rules = random_rows(rng, number, STATES, A)
    found = values_after(sparse, reward, rules)
    assert found.shape == (NUMBER, STATES, number + 1)
    np.testing.assert_allclose(found, values_after(dense, reward, rules), rtol=1e-10, atol=1e-12)


def test_values_of_a_rule_do_not_depend_on_the_rules_next_to_it(sparse: SparseSamples) -> None:
    """To the last bit, whichever group and lane it is in; nor does the best of each model."""
    rng = np.random.default_rng(1)
    reward = rng.normal(size=(NUMBER, STATES, A))
    rules = random_rows(rng, 11, STATES, A)
    together = values_after(sparse, reward, rules)
    for place, rule in enumerate(rules):
        alone = values_after(sparse, reward, rule[None])
        np.testing.assert_array_equal(together[..., place], alone[..., 0])
        np.testing.assert_array_equal(together[..., -1], alone[..., -1])


@pytest.mark.parametrize(
    "shape", [(STATES,), (1, 1, STATES), (1, A, STATES), (STATES, A, 1), (STATES, A, STATES)]
)
def test_expectations_are_those_of_the_tensor(
    sparse: SparseSamples, dense: DenseSamples, shape: tuple[int, ...]
) -> None:
    values = np.random.default_rng(2).normal(size=shape)
    np.testing.assert_allclose(sparse.expect(values), dense.expect(values), rtol=1e-10, atol=1e-12)
