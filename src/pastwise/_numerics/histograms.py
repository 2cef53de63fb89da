"""Sums of several columns by bin and group, for searching the best split of many rows.

A histogram has the shape ``[F, B, G, 2 + D]``: for each of F features, B bins of its values and G
groups of rows, the number of rows, their total weight, and the weighted sums of D columns.
"""

from __future__ import annotations

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.compilation import compiled


@compiled
def histogram(
    rows: IntArray,
    codes: IntArray,
    group: IntArray,
    weight: FloatArray,
    columns: FloatArray,
    sums: FloatArray,
) -> None:
    """Add rows to a histogram.

    Parameters
    ----------
    rows : [n]
        Which rows to add.
    codes : [N, F]
        Bin of each value.
    group : [N]
    weight : [N]
    columns : [N, D]
    sums : [F, B, G, 2 + D]
        The histogram.
    """
    F = codes.shape[1]
    D = columns.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        g = group[row]
        w = weight[row]
        for f in range(F):
            cell = sums[f, codes[row, f], g]
            cell[0] += 1.0
            cell[1] += w
            for d in range(D):
                cell[2 + d] += w * columns[row, d]


@compiled
def _explained(sums: FloatArray, shrinkage: float, contrast_weight: float) -> float:
    """What the means of groups explain, from the groups' weighted sums [G, 2 + D].

    It is what the mean of all rows explains and, ``contrast_weight`` times, what the differences
    of the groups' means from it add.
    """
    num_groups, width = sums.shape
    total = np.zeros(width)
    apart = 0.0
    for g in range(num_groups):
        squared = 0.0
        for d in range(2, width):
            squared += sums[g, d] ** 2
        for d in range(1, width):
            total[d] += sums[g, d]
        weight = sums[g, 1] + shrinkage
        if weight > 0.0:
            apart += squared / weight

    together = 0.0
    weight = total[1] + shrinkage
    if weight > 0.0:
        for d in range(2, width):
            together += total[d] ** 2 / weight
    return together + contrast_weight * (apart - together)


@compiled
def split_gains(
    sums: FloatArray,
    least_rows: float,
    shrinkage: float,
    contrast_weight: float,
    gains: FloatArray,
) -> None:
    r"""How much each split between consecutive bins reduces the squared error.

    Every group has means of its own on either side, so a split gains
    :math:`\sum_g \|S_g^-\|^2 / n_g^- + \|S_g^+\|^2 / n_g^+ - \|S_g\|^2 / n_g` with the weighted
    sums S and the total weights n of the two sides and of both.

    Parameters
    ----------
    sums : [B, G, 2 + D]
        The histogram of one feature.
    least_rows : float
        Rows that each side needs.
    shrinkage : float
        Added to every n: groups with few rows count for less.
    contrast_weight : float
        How often differences between groups count, where their common mean counts once. The
        formula above has 1.
    gains : [B]
        Entry b is the gain of a split between the bins up to b and the others; -inf where a side
        has too few rows.
    """
    B = len(sums)
    total = sums.sum(axis=0)
    rows = total[:, 0].sum()
    before = _explained(total, shrinkage, contrast_weight)
    left = np.zeros_like(total)
    for b in range(B):
        left += sums[b]
        left_rows = left[:, 0].sum()
        gains[b] = -np.inf
        if left_rows >= least_rows and rows - left_rows >= least_rows:
            right = total - left
            after = _explained(left, shrinkage, contrast_weight)
            after += _explained(right, shrinkage, contrast_weight)
            gains[b] = after - before
