"""Transition models sampled from the posterior of a log: layout and expectations."""

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.models.hierarchy import TransitionPosterior
from pastwise.models.samples import DenseSamples, Epochs, SampledModels, SparseSamples
from tests.helpers.oracles import random_rows, simulated_counts

A = 2


def rows_of(models: SampledModels, num_states: int) -> FloatArray:
    """The tensor of each sampled model, column by column: [n, S, A, S]."""
    return np.stack([models.expect(column) for column in np.eye(num_states)], axis=-1)


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
    rules = random_rows(rng, 3, states, A)
    own_rules = random_rows(rng, 7, 3, states, A)
    allowed = rng.random((states, A)) < 0.8
    allowed[:, 0] = True
    now = np.einsum("dsan,san->dsa", rows, table)
    two_epochs = Epochs(2, np.ones(states))

    # Two epochs of rules, the same on all models or of each model's own; and the best.
    expected = []
    for each_rules in (np.broadcast_to(rules, own_rules.shape), own_rules):
        last = np.einsum("dpsa,dsa->dsp", each_rules, now)
        after = now[..., None] + np.einsum("dsan,dnp->dsap", rows, last)
        expected.append(np.einsum("dpsa,dsap->dsp", each_rules, after))
    last = np.where(allowed, now, -np.inf).max(axis=-1)
    after = now + np.einsum("dsan,dn->dsa", rows, last)
    best = np.where(allowed, after, -np.inf).max(axis=-1)
    for each in (models, DenseSamples(rows)):
        np.testing.assert_allclose(each.expect(table), now)
        found = each.rule_values(now, rules[None], two_epochs)
        np.testing.assert_allclose(found, expected[0])
        np.testing.assert_allclose(each.rule_values(now, own_rules, two_epochs), expected[1])
        np.testing.assert_allclose(each.best_values(now, allowed, two_epochs), best)


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
    which = Epochs(epochs, np.ones(STATES))
    of_rules = models.rule_values(reward, rules[None], which)
    best = models.best_values(reward, allowed, which)
    return np.concatenate([of_rules, best[..., None]], axis=-1)


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
