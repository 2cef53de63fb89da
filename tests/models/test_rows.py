"""Rows of transition models: blocks, threads, batches."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.models.sparse import SparseModel
from pastwise.theory.fpd import design as fpd
from tests.helpers.oracles import (
    random_rows,
)

A = 3
FEW, MANY = 4, 12
BACKGROUND = 0.125


def test_blocks_of_a_large_sparse_model_give_the_same_design(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A design by several threads equals the one by a single block."""
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
    """Designs for several systems and goals equal those by a single thread."""
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


def test_systems_come_after_goals() -> None:
    rng = np.random.default_rng(4)
    transition = random_rows(rng, 2, FEW, A, FEW)
    goals = random_rows(rng, 3, FEW)
    ideal = IdealModel.of(goals[:, None, None, None, :], num_actions=A)
    together = fpd(DenseModel(transition), ideal, 4).policy
    for g, goal in enumerate(goals):
        for n, rows in enumerate(transition):
            alone = fpd(DenseModel(rows), IdealModel.of(goal, num_actions=A), 4).policy
            np.testing.assert_allclose(together[g, n], alone)


def test_goals_after_systems_are_refused() -> None:
    rng = np.random.default_rng(4)
    message = "put the axes of goals before those of systems"
    systems = DenseModel(random_rows(rng, 2, 1, FEW, A, FEW))
    ideal = IdealModel.of(random_rows(rng, 3, 1, 1, FEW), num_actions=A)
    with pytest.raises(ParameterError, match=message):
        fpd(systems, ideal, 4)
    empty = TransitionCounts.empty(Space.of_size(MANY), Space.of_size(A), (2, 1))
    with pytest.raises(ParameterError, match=message):
        LearnedModel(empty, BACKGROUND).expect(rng.random((3, MANY)))


def test_designs_are_made_while_the_interpreter_ends() -> None:
    """A thread may outlive the main one."""
    code = """if True:
        import threading, time
        import numpy as np
        import pastwise.models.rows as rows
        from pastwise.goals.ideal import IdealModel
        from pastwise.models.dense import DenseModel
        from pastwise.theory.fpd import design

        rows.WORK_PER_THREAD = 100
        rows.CORES = 2
        model = DenseModel(np.random.default_rng(0).dirichlet(np.ones(5), (20, 5, 2)))
        ideal = IdealModel.of(np.full(5, 0.2), num_actions=2)

        def late():
            threading.main_thread().join()
            time.sleep(0.2)
            design(model, ideal, 3)
            print("done")

        design(model, ideal, 3)
        threading.Thread(target=late).start()
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "done\n"
    assert found.stderr == ""
