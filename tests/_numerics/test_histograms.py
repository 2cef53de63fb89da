"""Gains of splits against squared errors that are summed row by row."""

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.histograms import histogram, split_gains


def squared_error(columns: FloatArray, group: IntArray, contrast_weight: float) -> float:
    """Error of the common mean, less the weighted part that the groups' own means take away."""
    common = ((columns - columns.mean(axis=0)) ** 2).sum()
    own = 0.0
    for g in np.unique(group):
        rows = columns[group == g]
        own += ((rows - rows.mean(axis=0)) ** 2).sum()
    return float(common - contrast_weight * (common - own))


@pytest.mark.parametrize("contrast_weight", [1.0, 10.0])
def test_a_gain_is_the_squared_error_that_a_split_takes_away(contrast_weight: float) -> None:
    rng = np.random.default_rng(0)
    num_rows = 80
    codes = rng.integers(5, size=(num_rows, 2))
    group = rng.integers(3, size=num_rows)
    columns = rng.normal(size=(num_rows, 2)) + codes[:, :1] * group[:, None]
    sums = np.zeros((2, 5, 3, 4))
    histogram(np.arange(num_rows), codes, group, np.ones(num_rows), columns, sums)

    gains = np.empty(5)
    split_gains(sums[0], 10.0, 0.0, contrast_weight, gains)
    before = squared_error(columns, group, contrast_weight)
    for code in range(5):
        is_left = codes[:, 0] <= code
        if min(is_left.sum(), (~is_left).sum()) < 10:
            assert gains[code] == -np.inf
            continue
        after = squared_error(columns[is_left], group[is_left], contrast_weight)
        after += squared_error(columns[~is_left], group[~is_left], contrast_weight)
        assert gains[code] == pytest.approx(before - after)
