"""Transition models: however a model is stored, the numbers are the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.sparse import csr_array

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.models.sparse import SparseModel
from pastwise.theory.fpd import design as fpd
from pastwise.theory.fpd import mdp_optimum
from tests.helpers.oracles import (
    counts_of,
    posterior_mean,
    random_log,
    random_rows,
)

A = 3
FEW, MANY = 4, 12
"""Numbers of states; a learned model stores many in another way than few."""

BACKGROUND = 0.125


def sparse(transition: FloatArray) -> SparseModel:
    return SparseModel(csr_array(transition.reshape(-1, transition.shape[-1])), transition.shape[1])


def past(num_states: int) -> Transitions:
    return random_log(np.random.default_rng(0), num_states, A, 50)


def learned(num_states: int) -> LearnedModel:
    return LearnedModel(counts_of(past(num_states), num_states, A), BACKGROUND)


def learned_slowly(num_states: int) -> LearnedModel:
    """Record by record, and used in between, so that nothing stale is kept."""
    model = LearnedModel(
        TransitionCounts.empty(Space.of_size(num_states), Space.of_size(A)), BACKGROUND
    )
    for s, a, n in zip(*past(num_states), strict=True):
        model.observe(s, a, n)
        model.expect(np.ones(num_states))
    return model


def tensor(num_states: int) -> FloatArray:
    return posterior_mean(counts_of(past(num_states), num_states, A), BACKGROUND)


MODELS: dict[str, Callable[[int], TransitionModel]] = {
    "dense": lambda num_states: DenseModel(tensor(num_states)),
    "sparse": lambda num_states: sparse(tensor(num_states)),
    "learned": learned,
    "learned record by record": learned_slowly,
}


@pytest.fixture(params=[FEW, MANY])
def num_states(request: pytest.FixtureRequest) -> int:
    """The number of states."""
    return int(request.param)


@pytest.fixture
def mean(num_states: int) -> FloatArray:
    """The model that is stored in each way, as a tensor."""
    return tensor(num_states)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, num_states: int) -> TransitionModel:
    """The same model, stored in each way."""
    return MODELS[request.param](num_states)


def test_sizes(model: TransitionModel, num_states: int) -> None:
    assert (model.num_states, model.num_actions, model.shape) == (num_states, A, ())


def test_rows(model: TransitionModel, mean: FloatArray) -> None:
    rows = [[model.row(np.array(s), np.array(a)) for a in range(A)] for s in range(len(mean))]
    np.testing.assert_allclose(rows, mean, rtol=1e-13)


def test_negentropy(model: TransitionModel, mean: FloatArray) -> None:
    np.testing.assert_allclose(model.negentropy, (mean * np.log(mean)).sum(axis=-1), rtol=1e-12)


@pytest.mark.parametrize("goals", [(), (1,), (5,), (2, 3)])
def test_expectation_of_values_of_the_next_state(
    model: TransitionModel, mean: FloatArray, goals: tuple[int, ...]
) -> None:
    values = np.random.default_rng(1).normal(size=(*goals, len(mean)))
    np.testing.assert_allclose(
        model.expect(values), np.einsum("san,...n->...sa", mean, values), atol=1e-13
    )


@pytest.mark.parametrize("goals", [(), (5,), (2, 3)])
@pytest.mark.parametrize("by_action", [False, True])
@pytest.mark.parametrize("by_state", [False, True])
def test_expectation_of_values_that_depend_on_state_and_action(
    model: TransitionModel,
    mean: FloatArray,
    by_state: bool,
    by_action: bool,
    goals: tuple[int, ...],
) -> None:
    S = len(mean)
    values = np.random.default_rng(2).normal(
        size=(*goals, S if by_state else 1, A if by_action else 1, S)
    )
    expected = (mean * values).sum(axis=-1)
    np.testing.assert_allclose(
        np.broadcast_to(model.expect_each(values), expected.shape), expected, atol=1e-13
    )


def test_design_does_not_depend_on_the_storage(model: TransitionModel, mean: FloatArray) -> None:
    """Paper: Theorem 1 [th:solution_FPD]."""
    rng = np.random.default_rng(3)
    S = len(mean)
    for ideal in (
        IdealModel.of(random_rows(rng, S), random_rows(rng, S, A)),
        IdealModel.of(random_rows(rng, S, A, S), random_rows(rng, A)),
        IdealModel.of(random_rows(rng, 5, 1, 1, S), num_actions=A),
    ):
        found = fpd(model, ideal, 6)
        expected = fpd(DenseModel(mean), ideal, 6)
        np.testing.assert_allclose(found.policy, expected.policy, rtol=1e-11)
        np.testing.assert_allclose(found.log_gamma, expected.log_gamma, rtol=1e-11)


@pytest.mark.parametrize("make", [DenseModel, sparse])
def test_impossible_values_count_only_where_they_may_be_met(
    make: Callable[[FloatArray], TransitionModel],
) -> None:
    """0 * (-inf) is 0, and so is 0 ln 0."""
    model = make(np.array([[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75]]]))
    expected = [[-np.inf, 4.0], [-np.inf, -np.inf]]
    np.testing.assert_array_equal(model.expect(np.array([-np.inf, 4.0])), expected)
    np.testing.assert_array_equal(model.expect_each(np.array([[[-np.inf, 4.0]]])), expected)
    np.testing.assert_array_equal(
        model.expect(np.array([[-np.inf, 4.0], [1.0, 1.0]])), [expected, np.ones((2, 2))]
    )
    np.testing.assert_allclose(
        model.negentropy,
        [[-np.log(2), 0], [0, 0.25 * np.log(0.25) + 0.75 * np.log(0.75)]],
        atol=1e-15,
    )


def test_values_are_numbers_of_any_kind_for_every_next_state() -> None:
    rng = np.random.default_rng(1)
    S = 40
    transition = random_rows(rng, S, A, S)
    models: list[TransitionModel] = [
        DenseModel(transition),
        SparseModel(csr_array(transition.reshape(-1, S)), A),
    ]
    for model in models:
        exact = transition @ np.arange(S)
        np.testing.assert_allclose(model.expect(np.arange(S)), exact, rtol=1e-12)  # type: ignore[arg-type]
        np.testing.assert_allclose(mdp_optimum(model, [5.0], 3).value[0], 15.0)
        with pytest.raises(ValueError, match="broadcast"):
            model.expect(np.zeros(2 * S))


def test_rows_out_of_range_are_refused() -> None:
    sparse = SparseModel(csr_array(np.full((18, 9), 1 / 9)), 2)
    learned = LearnedModel(TransitionCounts.empty(Space.of_size(9), Space.of_size(2)), 0.5)
    for model in (sparse, learned):
        with pytest.raises(IndexError):
            model.row(np.array(9), np.array(0))
    many = SparseModel(csr_array(np.eye(300)[np.arange(600) // 2]), 2)
    assert many.row(np.uint8(200), np.uint8(1))[200] == 1  # type: ignore[arg-type]


# Leading axes


RUNS = (2, 3)


def past_of_batch(num_states: int) -> TransitionCounts:
    return counts_of(random_log(np.random.default_rng(4), num_states, A, *RUNS, 30), num_states, A)


@pytest.fixture
def means(num_states: int) -> FloatArray:
    """Six systems as tensors: [*RUNS, S, A, S]."""
    return posterior_mean(past_of_batch(num_states), BACKGROUND)


@pytest.fixture(params=["dense", "learned"])
def batch(request: pytest.FixtureRequest, num_states: int, means: FloatArray) -> TransitionModel:
    """The six systems as one model."""
    if request.param == "dense":
        return DenseModel(means)
    return LearnedModel(past_of_batch(num_states), BACKGROUND)


@pytest.mark.parametrize("goals", [(), RUNS, (1, 1), (5, *RUNS), (5, 1, 1)])
def test_batch_of_models_is_each_of_them_alone(
    batch: TransitionModel, means: FloatArray, goals: tuple[int, ...]
) -> None:
    """Values shared by the systems or different between them, and several goals for each."""
    rng = np.random.default_rng(5)
    S = means.shape[-1]
    values = rng.normal(size=(*goals, S))
    tables = rng.normal(size=(*goals, S, A, S))
    full = np.broadcast_shapes(goals, RUNS)
    found = batch.expect(values)
    found_each = batch.expect_each(tables)
    for run in np.ndindex(RUNS):
        alone = DenseModel(means[run])
        np.testing.assert_allclose(batch.negentropy[run], alone.negentropy)
        mine = np.broadcast_to(values, (*full, S))[..., *run, :]
        np.testing.assert_allclose(found[..., *run, :, :], alone.expect(mine), atol=1e-13)
        my_table = np.broadcast_to(tables, (*full, S, A, S))[..., *run, :, :, :]
        np.testing.assert_allclose(
            found_each[..., *run, :, :], alone.expect_each(my_table), atol=1e-13
        )


def test_rows_of_a_batch_are_picked_in_each_system(
    batch: TransitionModel, means: FloatArray
) -> None:
    rng = np.random.default_rng(6)
    state = rng.integers(len(means[0, 0]), size=RUNS)
    action = rng.integers(A, size=RUNS)
    rows = batch.row(state, action)
    for run in np.ndindex(RUNS):
        np.testing.assert_allclose(rows[run], means[run][state[run], action[run]])
