"""Dense models: bad input, single precision, blocks of a large tensor."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.models.dense import DenseModel
from pastwise.theory.fpd import design as fpd
from tests.helpers.oracles import (
    random_rows,
)

A = 3
FEW = 4


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
    with pytest.raises(ParameterError, match=message):
        DenseModel(transition)


def test_single_precision_is_kept_and_near() -> None:
    """Half the memory; a design of ten epochs differs by about 1e-7 of its range in each."""
    rng = np.random.default_rng(0)
    transition = random_rows(rng, 50, 3, 50)
    model = DenseModel(transition)
    single = DenseModel(transition.astype(np.float32))
    assert single.transition.dtype == np.float32
    ideal = IdealModel.of(np.r_[0.5, np.full(49, 0.5 / 49)], num_actions=3)
    exact = fpd(model, ideal, 10)
    near = fpd(single, ideal, 10)
    assert near.policy.dtype == near.log_gamma.dtype == np.float64
    np.testing.assert_allclose(near.log_gamma, exact.log_gamma, atol=1e-6 * np.ptp(exact.log_gamma))
    np.testing.assert_allclose(near.policy, exact.policy, atol=1e-6)
    values = rng.normal(size=(2, 50)) + 1000
    np.testing.assert_allclose(single.expect(values), model.expect(values), atol=1e-5)
    impossible = np.r_[-np.inf, values[0, 1:]]
    assert np.isneginf(single.expect(impossible)).all()


def test_single_precision_distinguishes_zero_from_small_probabilities() -> None:
    """An ideal with zeros forbids by probabilities of any size, and by none that is zero."""
    rng = np.random.default_rng(3)
    transition = random_rows(rng, 50, 3, 50)
    transition[:, :2, 0] = 0.0
    transition[:, 2, 0] = 1e-9
    transition /= transition.sum(axis=-1, keepdims=True)
    ideal = IdealModel.of(np.r_[0.0, np.full(49, 1 / 49)], num_actions=3)
    exact = fpd(DenseModel(transition), ideal, 5)
    near = fpd(DenseModel(transition.astype(np.float32)), ideal, 5)
    np.testing.assert_allclose(near.policy, exact.policy, atol=1e-5)
    assert (near.policy[..., 2] == 0).all()


@pytest.mark.parametrize("states", [4, 31, 40])
def test_single_precision_stays_near_over_long_horizons(states: int) -> None:
    """The error is some 1e-7 of the range of ln gamma for each epoch, and does not pile up."""
    rng = np.random.default_rng(states)
    horizon = 300
    transition = random_rows(rng, states, 2, states)
    ideal = IdealModel.of(np.r_[1 - 1e-6, np.full(states - 1, 1e-6 / (states - 1))], num_actions=2)
    exact = fpd(DenseModel(transition), ideal, horizon)
    near = fpd(DenseModel(transition.astype(np.float32)), ideal, horizon)
    spread = np.ptp(exact.log_gamma[0] - exact.log_gamma[0].max())
    assert np.abs(near.log_gamma - exact.log_gamma).max() <= 3e-7 * horizon * max(
        spread, np.ptp(ideal.log_transition)
    )


def test_a_large_tensor_is_read_to_and_fro(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever end it begins at, a product is the same, and so is a design."""
    rng = np.random.default_rng(5)
    transition = random_rows(rng, 50, A, 50)
    values = rng.normal(size=50)
    ideal = IdealModel.of(random_rows(rng, 50), num_actions=A)
    whole = DenseModel(transition)
    monkeypatch.setattr("pastwise.models.dense.BLOCK_BYTES", 10_000)
    cut = DenseModel(transition)
    for _ in range(3):
        np.testing.assert_allclose(cut.expect(values), whole.expect(values), rtol=1e-12)
    np.testing.assert_allclose(fpd(cut, ideal, 6).policy, fpd(whole, ideal, 6).policy, rtol=1e-12)


def test_memory_order_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    model = DenseModel(random_rows(rng, FEW, A, FEW))
    goals = random_rows(rng, FEW, A, 4, FEW).transpose(2, 0, 1, 3)
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


def test_no_systems_have_no_designs() -> None:
    for S in (4, 40):
        ideal = IdealModel.of(np.full(S, 1 / S), num_actions=A)
        assert fpd(DenseModel(np.empty((0, S, A, S))), ideal, 3).policy.shape == (0, 3, S, A)
