"""Sparse models: bad input, entries given twice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import ParameterError
from pastwise.models.sparse import SparseModel


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
    with pytest.raises(ParameterError, match=message):
        SparseModel(csr_array(np.array(matrix)), num_actions)


def test_sparse_model_adds_up_entries_given_twice_and_drops_zeros() -> None:
    entries = coo_array(
        ([0.25, 0.25, 0.5, 0.0, 1.0], ([0, 0, 0, 1, 1], [1, 1, 0, 0, 1])), shape=(2, 2)
    )
    model = SparseModel(entries, 1)
    np.testing.assert_array_equal(model.row(np.array(0), np.array(0)), [0.5, 0.5])
    np.testing.assert_array_equal(model.expect(np.array([-np.inf, 1.0])), [[-np.inf], [1.0]])
