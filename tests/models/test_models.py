"""Transition models: however a model is stored, the numbers are the same."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from pastwise import Space, TransitionCounts
from pastwise._numerics.arrays import FloatArray
from pastwise.data.records import Transitions
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.models.sparse import SparseModel
from pastwise.theory.fpd import design as fpd
from pastwise.theory.fpd import mdp_optimum
from tests.helpers.oracles import counts_of, counts_of_list, random_log, random_rows

A = 3
FEW, MANY = 4, 12
"""Numbers of states; a learned model stores many in another way than few."""

BACKGROUND = 0.125


def sparse(transition: FloatArray) -> SparseModel:
    return SparseModel(csr_array(transition.reshape(-1, transition.shape[-1])), transition.shape[1])


def posterior_mean(counts: TransitionCounts, background: float = BACKGROUND) -> FloatArray:
    """(count + background) / total, as a dense tensor."""
    table = np.full(
        (*counts.shape, len(counts.states), len(counts.actions), len(counts.states)), background
    )
    table.reshape(-1)[counts.key] += counts.weight
    return np.asarray(table / table.sum(axis=-1, keepdims=True))


def past(num_states: int) -> Transitions:
    return random_log(np.random.default_rng(0), num_states, A, 50)


def learned(num_states: int) -> LearnedModel:
    return LearnedModel(counts_of(past(num_states), num_states, A), BACKGROUND)


def learned_slowly(num_states: int) -> LearnedModel:
    """Record by record, with a question in between so that nothing stale is kept."""
    model = LearnedModel(
        TransitionCounts.empty(Space.of_size(num_states), Space.of_size(A)), BACKGROUND
    )
    for s, a, n in zip(*past(num_states), strict=True):
        model.observe(s, a, n)
        model.expect(np.ones(num_states))
    return model


def tensor(num_states: int) -> FloatArray:
    return posterior_mean(counts_of(past(num_states), num_states, A))


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
    rng, S = np.random.default_rng(3), len(mean)
    for ideal in (
        IdealModel.of(random_rows(rng, S), random_rows(rng, S, A)),
        IdealModel.of(random_rows(rng, S, A, S), random_rows(rng, A)),
        IdealModel.of(random_rows(rng, 5, 1, 1, S), num_actions=A),
    ):
        found, expected = fpd(model, ideal, 6), fpd(DenseModel(mean), ideal, 6)
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


# Leading axes


RUNS = (2, 3)


def past_of_batch(num_states: int) -> TransitionCounts:
    return counts_of(random_log(np.random.default_rng(4), num_states, A, *RUNS, 30), num_states, A)


@pytest.fixture
def means(num_states: int) -> FloatArray:
    """Six systems as tensors: [*RUNS, S, A, S]."""
    return posterior_mean(past_of_batch(num_states))


@pytest.fixture(params=["dense", "learned"])
def batch(request: pytest.FixtureRequest, num_states: int, means: FloatArray) -> TransitionModel:
    """The six systems as one model."""
    return (
        DenseModel(means)
        if request.param == "dense"
        else LearnedModel(past_of_batch(num_states), BACKGROUND)
    )


@pytest.mark.parametrize("goals", [(), RUNS, (1, 1), (5, *RUNS), (5, 1, 1)])
def test_batch_of_models_is_each_of_them_alone(
    batch: TransitionModel, means: FloatArray, goals: tuple[int, ...]
) -> None:
    """Values that are shared by the systems, that differ between them, and several goals for each."""
    rng, S = np.random.default_rng(5), means.shape[-1]
    values, tables = rng.normal(size=(*goals, S)), rng.normal(size=(*goals, S, A, S))
    full = np.broadcast_shapes(goals, RUNS)
    found, found_each = batch.expect(values), batch.expect_each(tables)
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
    state, action = rng.integers(len(means[0, 0]), size=RUNS), rng.integers(A, size=RUNS)
    expected = [
        [means[i, j, state[i, j], action[i, j]] for j in range(RUNS[1])] for i in range(RUNS[0])
    ]
    np.testing.assert_allclose(batch.row(state, action), expected)


# Learned models


def test_learned_model_is_the_mean_of_its_posterior_in_fractions() -> None:
    """Paper: FPD_learn, "Bayesian estimation was applied to learn the transition model"."""
    log = [(0, 0, 1), (0, 0, 1), (0, 0, 0), (1, 1, 0)]
    model = LearnedModel(counts_of_list(log, 2, 2), background=0.25)
    for s, a in np.ndindex(2, 2):
        total = sum(record[:2] == (s, a) for record in log) + 2 * Fraction(1, 4)
        expected = [(log.count((s, a, n)) + Fraction(1, 4)) / total for n in range(2)]
        assert model.row(np.array(s), np.array(a)).tolist() == [float(p) for p in expected]


def test_weights_of_the_log_are_its_counts() -> None:
    light = LearnedModel(counts_of_list([(0, 0, 1)], 2, 1, 0.5), background=0.5)
    np.testing.assert_allclose(light.row(np.array(0), np.array(0)), [1 / 3, 2 / 3])


def test_learned_model_of_nothing_is_uniform(num_states: int) -> None:
    S = num_states
    model = LearnedModel(TransitionCounts.empty(Space.of_size(S), Space.of_size(A), (2,)), 1e-6)
    np.testing.assert_allclose(
        model.row(np.array([0, 3]), np.array([1, 2])), np.full((2, S), 1 / S)
    )
    np.testing.assert_allclose(model.negentropy, np.full((2, S, A), -np.log(S)))


def test_model_that_goes_on_learning_is_one_built_at_once(num_states: int) -> None:
    """Each of six systems observes its own records, old and new ones, starting from its own log."""
    S = num_states
    more = random_log(np.random.default_rng(7), S, A, *RUNS, 40)
    model = LearnedModel(past_of_batch(S), BACKGROUND)
    for t in range(40):
        model.observe(more.state[..., t], more.action[..., t], more.next_state[..., t])
        model.expect(np.ones(S))
    at_once = LearnedModel(past_of_batch(S) + counts_of(more, S, A), BACKGROUND)
    values = np.random.default_rng(8).normal(size=S)
    np.testing.assert_allclose(model.expect(values), at_once.expect(values), rtol=1e-11)
    np.testing.assert_allclose(model.negentropy, at_once.negentropy, rtol=1e-11)
    for t in range(40):
        where = more.state[..., t], more.action[..., t]
        np.testing.assert_allclose(model.row(*where), at_once.row(*where), rtol=1e-14)


def test_learning_does_not_change_the_counts_it_started_from() -> None:
    counts = counts_of_list([(0, 0, 1)], 2, 1)
    LearnedModel(counts, 1.0).observe(np.array(0), np.array(0), np.array(1))
    assert counts.weight.tolist() == [1.0]


@pytest.mark.parametrize("ideal_shape", [(FEW,), (FEW, A, FEW)])
def test_learned_model_refuses_goals_that_rule_out_next_states(
    ideal_shape: tuple[int, ...],
) -> None:
    wanted = np.broadcast_to([0.5, 0.0, 0.5, 0.0], ideal_shape)
    with pytest.raises(
        ValueError,
        match=r"rules out next states \[1, 3\] .* give them a floor instead, such as 1e-5",
    ):
        fpd(learned(FEW), IdealModel.of(wanted, num_actions=A), 3)


# Terminal states


ENDS = np.array([1, 3])


def past_with_ends(num_states: int, *shape: int) -> TransitionCounts:
    """A log in which episodes end, and a few records that leave an end all the same."""
    log = random_log(np.random.default_rng(9), num_states, A, *shape, 60)
    return replace(counts_of(log, num_states, A), terminal=ENDS)


def absorbing_mean(counts: TransitionCounts) -> FloatArray:
    """The mean of the posterior as a tensor, with terminal states that lead to themselves."""
    mean = posterior_mean(counts)
    mean[..., counts.terminal, :, :] = np.eye(len(counts.states))[counts.terminal][:, None]
    return mean


def assert_is_model(model: LearnedModel, mean: FloatArray) -> None:
    """Row by row, and in every expectation."""
    dense, rng, S = DenseModel(mean), np.random.default_rng(10), mean.shape[-1]
    for s, a in np.ndindex(S, A):
        where = np.full(mean.shape[:-3], s), np.full(mean.shape[:-3], a)
        np.testing.assert_allclose(model.row(*where), mean[..., s, a, :], rtol=1e-12)
    np.testing.assert_allclose(model.negentropy, dense.negentropy, atol=1e-12)
    for goals in ((), (5, *mean.shape[:-3])):
        values = rng.normal(size=(*goals, S))
        np.testing.assert_allclose(model.expect(values), dense.expect(values), atol=1e-12)
    table = rng.normal(size=(S, A, S))
    np.testing.assert_allclose(model.expect_each(table), dense.expect_each(table), atol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,), RUNS])
def test_terminal_states_lead_to_themselves(num_states: int, shape: tuple[int, ...]) -> None:
    counts = past_with_ends(num_states, *shape)
    model = LearnedModel(counts, BACKGROUND)
    assert_is_model(model, absorbing_mean(counts))
    assert (model.negentropy[..., ENDS, :] == 0).all()


def test_terminal_state_without_any_record_leads_to_itself(num_states: int) -> None:
    nothing = TransitionCounts.empty(Space.of_size(num_states), Space.of_size(A))
    counts = replace(nothing, terminal=np.array([0]))
    assert_is_model(LearnedModel(counts, BACKGROUND), absorbing_mean(counts))


@pytest.mark.parametrize("left", [False, True])
def test_model_with_terminal_states_goes_on_learning(num_states: int, left: bool) -> None:
    """Records that leave a terminal state are of no account, as in a model built at once."""
    S = num_states
    before, more = past_with_ends(S, *RUNS), random_log(np.random.default_rng(11), S, A, *RUNS, 40)
    if not left:
        more = more._replace(state=np.where(np.isin(more.state, ENDS), 0, more.state))
    model = LearnedModel(before, BACKGROUND)
    for t in range(40):
        model.observe(more.state[..., t], more.action[..., t], more.next_state[..., t])
    assert_is_model(model, absorbing_mean(before + counts_of(more, S, A)))


def test_design_believes_that_what_is_over_is_over(num_states: int) -> None:
    """Paper: Theorem 1 [th:solution_FPD], on a model in which an episode may end.

    State 0 may be ended well (1) or badly (3). Without terminal states the design thinks that whatever follows is the
    same, since nothing was seen to follow.
    """
    S = num_states
    log = [(0, 0, 1), (0, 1, 3), (0, 2, 0)] * 5
    counts = counts_of_list(log, S, A)
    ended = replace(counts, terminal=ENDS)
    wanted = np.full(S, 0.05 / (S - 1))
    wanted[1] = 0.95
    ideal = IdealModel.of(wanted, num_actions=A)
    found = fpd(LearnedModel(ended, BACKGROUND), ideal, 10)
    expected = fpd(DenseModel(absorbing_mean(ended)), ideal, 10)
    np.testing.assert_allclose(found.policy, expected.policy, rtol=1e-11)
    np.testing.assert_allclose(found.log_gamma, expected.log_gamma, rtol=1e-11)
    np.testing.assert_allclose(found.policy[:, ENDS], 1 / A)
    for state, probability in ((1, wanted[1]), (3, wanted[3])):
        np.testing.assert_allclose(found.log_gamma[0, state], 10 * np.log(probability), rtol=1e-12)
    unended = fpd(LearnedModel(counts, BACKGROUND), ideal, 10)
    assert found.log_gamma[0, 1] > unended.log_gamma[0, 1]
    assert found.log_gamma[0, 3] < unended.log_gamma[0, 3]
    assert found.policy[0, 0, 0] > unended.policy[0, 0, 0]


# Bad input


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (np.full((2, 2), 0.5), r"\[..., state, action, next_state\]; got shape \(2, 2\)"),
        (np.full((3, 1, 2), 0.5), r"got shape \(3, 1, 2\)"),
        ([[[0.5, 0.5]], [[0.5, 0.4]]], r"transition\[1, 0\] sums to 0.9"),
        ([[[0.5, 0.5]], [[1.5, -0.5]]], r"transition\[1, 0, 1\] is -0.5"),
        ([[[0.5, np.nan]], [[0.5, 0.5]]], r"transition\[0, 0, 1\] is nan"),
    ],
)
def test_bad_dense_model_is_refused_and_located(transition: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DenseModel(transition)


@pytest.mark.parametrize(
    ("matrix", "num_actions", "message"),
    [
        (np.eye(4), 2, r"\[S \* A, S\]; shape \(4, 4\) does not fit A = 2"),
        ([[0.5, 0.5], [0.5, 0.4]], 1, r"row\[1\] sums to 0.9"),
        ([[1.0, 0.0], [0.0, 0.0]], 1, r"row\[1\] sums to 0.0"),
        ([[0.5, 0.5], [1.5, -0.5]], 1, "is -0.5; probabilities must be finite and not negative"),
        ([[0.5, 0.5], [np.nan, 0.5]], 1, "is nan"),
    ],
)
def test_bad_sparse_model_is_refused(matrix: FloatArray, num_actions: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SparseModel(csr_array(np.array(matrix)), num_actions)


def test_sparse_model_adds_up_entries_given_twice_and_drops_zeros() -> None:
    entries = coo_array(
        ([0.25, 0.25, 0.5, 0.0, 1.0], ([0, 0, 0, 1, 1], [1, 1, 0, 0, 1])), shape=(2, 2)
    )
    model = SparseModel(entries, 1)
    np.testing.assert_array_equal(model.row(np.array(0), np.array(0)), [0.5, 0.5])
    np.testing.assert_array_equal(model.expect(np.array([-np.inf, 1.0])), [[-np.inf], [1.0]])


@pytest.mark.parametrize("background", [0.0, -1.0, np.nan, np.inf])
def test_bad_background_is_refused(background: float) -> None:
    with pytest.raises(
        ValueError, match=f"the background count must be positive, not {background}"
    ):
        LearnedModel(counts_of_list([(0, 0, 0)], 2, 1), background)


def test_single_precision_is_kept_and_near() -> None:
    """Half the memory; a design of ten epochs differs by about 1e-7 of its range in each."""
    rng = np.random.default_rng(0)
    transition = random_rows(rng, 50, 3, 50)
    model, single = DenseModel(transition), DenseModel(transition.astype(np.float32))
    assert single.transition.dtype == np.float32
    ideal = IdealModel.of(np.r_[0.5, np.full(49, 0.5 / 49)], num_actions=3)
    exact, near = fpd(model, ideal, 10), fpd(single, ideal, 10)
    assert near.policy.dtype == near.log_gamma.dtype == np.float64
    np.testing.assert_allclose(near.log_gamma, exact.log_gamma, atol=1e-6 * np.ptp(exact.log_gamma))
    np.testing.assert_allclose(near.policy, exact.policy, atol=1e-6)
    values = rng.normal(size=(2, 50)) + 1000
    np.testing.assert_allclose(single.expect(values), model.expect(values), atol=1e-5)
    impossible = np.r_[-np.inf, values[0, 1:]]
    assert np.isneginf(single.expect(impossible)).all()


def test_blocks_of_a_large_sparse_model_are_worked_on_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A design by several threads is the one by a single block."""
    rng = np.random.default_rng(1)
    S = 40
    some = (
        random_rows(rng, S * A, S) * (rng.random((S * A, S)) < 0.3)
        + np.eye(S)[np.arange(S * A) // A]
    )
    matrix = csr_array(some / some.sum(axis=1, keepdims=True))
    key = np.unique(rng.integers(S * A * S, size=900))
    ones = np.ones(len(key))
    counts = TransitionCounts(
        Space.of_size(S), Space.of_size(A), key, ones.astype(np.int64), ones, ones
    )
    ideal = IdealModel.of(np.r_[0.5, np.full(S - 1, 0.5 / (S - 1))], num_actions=A)
    whole = [fpd(model, ideal, 5) for model in (SparseModel(matrix, A), LearnedModel(counts, 0.1))]
    monkeypatch.setattr("pastwise.models.rows.ENTRIES_PER_BLOCK", 100)
    cut: list[TransitionModel] = [SparseModel(matrix, A), LearnedModel(counts, 0.1)]
    for model, expected in zip(cut, whole, strict=True):
        found = fpd(model, ideal, 5)
        np.testing.assert_array_equal(found.policy, expected.policy)
        np.testing.assert_array_equal(found.log_gamma, expected.log_gamma)


def test_a_batch_is_divided_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Designs for several systems and goals are those by a single thread."""
    rng = np.random.default_rng(2)
    model = DenseModel(random_rows(rng, 7, FEW, A, FEW))
    ideal = IdealModel.of(random_rows(rng, 3, 1, 1, 1, FEW), num_actions=A)
    expected = fpd(model, ideal, 5)
    monkeypatch.setattr("pastwise.models.rows.WORK_PER_THREAD", 100)
    monkeypatch.setattr("pastwise.models.rows.CORES", 4)
    found = fpd(model, ideal, 5)
    assert found.policy.shape == (3, 7, 5, FEW, A)
    np.testing.assert_array_equal(found.policy, expected.policy)
    np.testing.assert_array_equal(found.log_gamma, expected.log_gamma)


def test_a_large_tensor_is_read_to_and_fro(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever end it begins at, a product is the same, and so is a design."""
    rng = np.random.default_rng(5)
    transition, values = random_rows(rng, 50, A, 50), rng.normal(size=50)
    ideal = IdealModel.of(random_rows(rng, 50), num_actions=A)
    whole = DenseModel(transition)
    monkeypatch.setattr("pastwise.models.dense.BLOCK_BYTES", 10_000)
    cut = DenseModel(transition)
    for _ in range(3):
        np.testing.assert_allclose(cut.expect(values), whole.expect(values), rtol=1e-12)
    np.testing.assert_allclose(fpd(cut, ideal, 6).policy, fpd(whole, ideal, 6).policy, rtol=1e-12)


def test_single_precision_tells_what_is_never_reached_from_what_is_rare() -> None:
    """An ideal with zeros forbids by probabilities of any size, and by none that is zero."""
    rng = np.random.default_rng(3)
    transition = random_rows(rng, 50, 3, 50)
    transition[:, :2, 0] = 0.0
    transition[:, 2, 0] = 1e-9
    transition /= transition.sum(axis=-1, keepdims=True)
    ideal = IdealModel.of(np.r_[0.0, np.full(49, 1 / 49)], num_actions=3)
    exact, near = (
        fpd(DenseModel(transition.astype(kind)), ideal, 5) for kind in (np.float64, np.float32)
    )
    np.testing.assert_allclose(near.policy, exact.policy, atol=1e-5)
    assert (near.policy[..., 2] == 0).all()


def test_systems_come_after_goals() -> None:
    rng = np.random.default_rng(4)
    transition, goals = random_rows(rng, 2, FEW, A, FEW), random_rows(rng, 3, FEW)
    systems, ideal = (
        DenseModel(transition),
        IdealModel.of(goals[:, None, None, None, :], num_actions=A),
    )
    together = fpd(systems, ideal, 4).policy
    for g, goal in enumerate(goals):
        for n, rows in enumerate(transition):
            alone = fpd(DenseModel(rows), IdealModel.of(goal, num_actions=A), 4).policy
            np.testing.assert_allclose(together[g, n], alone)
    with pytest.raises(ValueError, match="put the axes of goals before those of systems"):
        fpd(
            DenseModel(transition[:, None]),
            IdealModel.of(goals[:, None, None, :], num_actions=A),
            4,
        )
    empty = TransitionCounts.empty(Space.of_size(MANY), Space.of_size(A), (2, 1))
    with pytest.raises(ValueError, match="put the axes of goals before those of systems"):
        LearnedModel(empty, BACKGROUND).expect(rng.random((3, MANY)))


def test_a_state_without_a_feasible_action_is_named_by_learned_models() -> None:
    """Small and larger models refuse alike, and name the state that is to blame, not those that follow from it."""
    for S in (3, 12):
        allowed, rule = np.ones((S, 2), dtype=bool), np.full((S, 2), 0.5)
        allowed[1], rule[1] = [False, True], [1.0, 0.0]
        ideal = IdealModel.of(np.full(S, 1 / S), rule, allowed=allowed)
        counts = TransitionCounts.from_records(
            [0, 1, 2], [0, 1, 0], [1, 2, 0], Space.of_size(S), Space.of_size(2)
        )
        with pytest.raises(ValueError, match=r"rules out next states \[1\]"):
            fpd(LearnedModel(counts, 0.1), ideal, 5)


def test_a_world_of_ends_needs_no_feasible_action_elsewhere() -> None:
    """Terminal states lead nowhere else, so that one without a feasible action concerns only itself."""
    ideal = IdealModel.of(
        np.full(3, 1 / 3),
        [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]],
        allowed=[[False, True]] + [[True] * 2] * 2,
    )
    ends = TransitionCounts.empty(Space.of_size(3), Space.of_size(2)).ending_in(np.arange(3))
    policy = fpd(LearnedModel(ends, 0.1), ideal, 4).policy
    np.testing.assert_allclose(policy, np.broadcast_to([[0, 0], [0.5, 0.5], [0.5, 0.5]], (4, 3, 2)))


@pytest.mark.parametrize("states", [4, 12])
@pytest.mark.parametrize(
    "record", [(99, 0, 0), (0, 99, 0), (0, 0, 99), (0, 0, -1), (-1, 0, 0), (0, 0, 1.5), (0.5, 0, 0)]
)
def test_records_of_nowhere_are_refused(states: int, record: tuple[Any, Any, Any]) -> None:
    model = LearnedModel(TransitionCounts.empty(Space.of_size(states), Space.of_size(2)), 0.5)
    with pytest.raises(IndexError):
        model.observe(*(np.asarray(index) for index in record))
    assert model.row(np.array(0), np.array(0)).tolist() == [1 / states] * states


def test_rows_of_nowhere_are_refused() -> None:
    sparse = SparseModel(csr_array(np.full((18, 9), 1 / 9)), 2)
    learned = LearnedModel(TransitionCounts.empty(Space.of_size(9), Space.of_size(2)), 0.5)
    for model in (sparse, learned):
        with pytest.raises(IndexError):
            model.row(np.array(9), np.array(0))
    many = SparseModel(csr_array(np.eye(300)[np.arange(600) // 2]), 2)
    assert many.row(np.uint8(200), np.uint8(1))[200] == 1  # type: ignore[arg-type]


def test_one_next_state_is_for_all_systems_and_two_are_for_two() -> None:
    five = LearnedModel(TransitionCounts.empty(Space.of_size(9), Space.of_size(2), (5,)), 0.5)
    zeros = np.zeros(5, dtype=np.int64)
    five.observe(zeros, zeros, np.array(1))
    np.testing.assert_allclose(five.row(zeros, zeros)[:, 1], 1.5 / 5.5)
    with pytest.raises(ValueError, match="does not fit"):
        five.observe(zeros, zeros, np.array([1, 2]))
    one = LearnedModel(TransitionCounts.empty(Space.of_size(9), Space.of_size(2)), 0.5)
    with pytest.raises(ValueError, match="does not fit"):
        one.observe(np.array([2, 0]), np.array([0, 1]), np.array([1, 1]))


def test_memory_order_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    model, goals = (
        DenseModel(random_rows(rng, FEW, A, FEW)),
        random_rows(rng, FEW, A, 4, FEW).transpose(2, 0, 1, 3),
    )
    rules = np.asfortranarray(random_rows(rng, 4, FEW, A))
    systems = DenseModel(np.moveaxis(random_rows(rng, FEW, A, 5, FEW), 2, 0))
    wanted = random_rows(rng, FEW, A, FEW)
    cases = [
        (model, IdealModel.of(goals), IdealModel.of(goals.copy())),
        (model, IdealModel.of(wanted, rules), IdealModel.of(wanted, rules.copy())),
        (systems, IdealModel.of(wanted), IdealModel.of(wanted)),
    ]
    for strange, ideal, plain in cases:
        usual = DenseModel(np.ascontiguousarray(strange.transition))
        np.testing.assert_allclose(
            fpd(strange, ideal, 3).policy, fpd(usual, plain, 3).policy, rtol=1e-12
        )


@pytest.mark.parametrize("states", [4, 31, 40])
def test_single_precision_stays_near_over_long_horizons(states: int) -> None:
    """The error is some 1e-7 of the range of ln gamma for each epoch, and does not pile up."""
    rng, horizon = np.random.default_rng(states), 300
    transition = random_rows(rng, states, 2, states)
    ideal = IdealModel.of(np.r_[1 - 1e-6, np.full(states - 1, 1e-6 / (states - 1))], num_actions=2)
    exact, near = (
        fpd(DenseModel(transition.astype(kind)), ideal, horizon)
        for kind in (np.float64, np.float32)
    )
    spread = np.ptp(exact.log_gamma[0] - exact.log_gamma[0].max())
    assert np.abs(near.log_gamma - exact.log_gamma).max() <= 3e-7 * horizon * max(
        spread, np.ptp(ideal.log_transition)
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


def test_no_systems_have_no_designs() -> None:
    for S in (4, 40):
        ideal = IdealModel.of(np.full(S, 1 / S), num_actions=A)
        assert fpd(DenseModel(np.empty((0, S, A, S))), ideal, 3).policy.shape == (0, 3, S, A)


def test_designs_are_made_while_the_interpreter_ends() -> None:
    """A thread may outlive the main one."""
    code = """if True:
        import threading, time
        import numpy as np
        import pastwise as pw
        import pastwise.models.rows as rows
        rows.WORK_PER_THREAD, rows.CORES = 100, 2
        tensor = np.random.default_rng(0).dirichlet(np.ones(5), (20, 5, 2))
        run = lambda: pw.design(pw.DenseModel(tensor), pw.IdealModel.of(np.full(5, 0.2), num_actions=2), 3)
        run()
        threading.Thread(target=lambda: (threading.main_thread().join(), time.sleep(0.2), run(), print("done"))).start()
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("done\n", "")
