"""Learned and judged on different records: how much a log flatters the rule learned from it.

A rule is chosen for what looked good in its log, and chance made some of that look good. Two halves
of the log, split by episode, show how much: a rule is learned on each half, and its gain over what
was done is judged on the half that it was learned from and on the other. The first minus the
second, meaned over the halves, is the *optimism* of rules learned from half of the records. It
falls with the number of records, so a rule learned from all of them has half of it, and

    value = value on models of the whole log - optimism / 2,

sample by sample: what the halves leave uncertain widens the interval of the value.

The *design effect* says how much less records that depend on each other carry than as many
independent ones. With independent records, the next states of a row are distributed over the folds
of a log as by chance. Pearson's statistic of that table has a known expectation; how much larger it
is, over all rows, is the design effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from pastwise._numerics.arrays import FloatArray, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.values import posterior_of, sample_values
from pastwise.models.hierarchy import Assumptions

LearnWithout = Callable[[TransitionCounts], FloatArray]
"""From a part of the log to the rule that is learned from all the rest: [S, A]."""


def split_in_two(folds: TransitionCounts) -> tuple[TransitionCounts, TransitionCounts]:
    """Two halves of a log, from its folds: one here, two there, two here and so on.

    Not every other one: where episodes take turns, as patients with two drugs may do, the halves
    would not have the same actions.
    """
    parts = list(enumerate(folds.split()))
    first = [part for number, part in parts if number % 4 in (0, 3)]
    second = [part for number, part in parts if number % 4 in (1, 2)]
    return _sum(first), _sum(second)


def _sum(parts: list[TransitionCounts]) -> TransitionCounts:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def always() -> bool:
    """A ``should_stop`` that ends a sampling after its first batch."""
    return True


def optimism(
    halves: tuple[TransitionCounts, TransitionCounts],
    learned: Mapping[str, LearnWithout],
    criterion: Criterion,
    samples: int,
    *,
    design_effect: float,
    assumptions: Assumptions,
    seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> dict[str, FloatArray]:
    """How much the halves of a log flatter the rules learned from them: name -> [samples].

    There are fewer samples if the sampling was interrupted.

    Parameters
    ----------
    learned : name -> function
        How each rule is learned.
    should_stop : function
        Called after each batch; True ends the sampling.
    """
    # Rules learned on each half, judged on models of both.
    rules = {}
    for number, other_half in enumerate(reversed(halves)):
        for name, learn_without in learned.items():
            rules[f"{name} {number}"] = learn_without(other_half)
    on_halves = []
    for number, half in enumerate(halves):
        own_seed = seed + 1 + number  # another than that of the whole log
        own_criterion = criterion.on(half)
        posterior = posterior_of(
            half,
            own_criterion,
            seed=own_seed,
            design_effect=design_effect,
            assumptions=assumptions,
        )
        values = sample_values(
            posterior,
            rules,
            own_criterion,
            samples,
            seed=own_seed,
            should_stop=should_stop,
            threads=threads,
            with_references=False,
        )
        on_halves.append(values)
        if values.number < values.requested:
            should_stop = always

    # On the half learned from, minus on the other half; the value of what was done cancels.
    result = {}
    for name in learned:
        on_first = on_halves[0][f"{name} 0"] - on_halves[0][f"{name} 1"]
        on_second = on_halves[1][f"{name} 1"] - on_halves[1][f"{name} 0"]
        number_of_both = min(len(on_first), len(on_second))
        result[name] = (on_first[:number_of_both] + on_second[:number_of_both]) / 2
    return result


def design_effect(folds: TransitionCounts, *, prior_freedom: float = 20.0) -> float:
    """How many dependent records carry as much as one independent record; at least 1.

    Parameters
    ----------
    folds : TransitionCounts of shape (folds,)
    prior_freedom : float
        Degrees of freedom of a table of independent records that is added to those of the log, so
        that a short log does not show dependence by chance: with 20, the statistic varies by a
        third of its expectation.
    """
    statistic, expected = pearson_statistic(folds)
    ratio = (statistic + prior_freedom) / (expected + prior_freedom)
    return max(1.0, ratio)


def reward_design_effect(folds: TransitionCounts, *, prior_freedom: float = 20.0) -> float:
    """The same for rewards: how much more their means differ between folds than by chance.

    Parameters
    ----------
    folds : TransitionCounts of shape (folds,)
        With rewards.
    prior_freedom : float
        See `design_effect`.
    """
    sums = folds.reward_sums
    if sums is None:
        return 1.0

    # Sums of each state and action, in each fold and in all.
    num_rows = len(folds.states) * len(folds.actions)
    num_cells = num_rows * folds.shape[0]
    weight = group_sum(folds.row, folds.weight, num_cells).reshape(-1, num_rows)
    reward = group_sum(folds.row, sums[0], num_cells).reshape(-1, num_rows)
    squared = float(sums[1].sum())
    is_seen = weight > 0
    of_folds = float((reward[is_seen] ** 2 / weight[is_seen]).sum())
    total_weight = weight.sum(axis=0)
    total_reward = reward.sum(axis=0)
    is_taken = total_weight > 0
    of_rows = float((total_reward[is_taken] ** 2 / total_weight[is_taken]).sum())

    # Squared differences between folds, in units of those within folds.
    freedom = float((np.maximum(is_seen.sum(axis=0) - 1, 0)).sum())
    freedom_within = float(folds.records.sum() - is_seen.sum())
    within = squared - of_folds
    if freedom_within < 1 or within <= 1e-12 * squared:
        return 1.0
    statistic = (of_folds - of_rows) / (within / freedom_within)
    return max(1.0, (statistic + prior_freedom) / (freedom + prior_freedom))


def pearson_statistic(folds: TransitionCounts) -> tuple[float, float]:
    """Pearson's statistic of folds and next states, summed over all rows; and its expectation.

    The expectation is that of independent records, exact for any number of them.
    """
    rows_per_fold = len(folds.states) * len(folds.actions)
    num_next = len(folds.states)
    row = folds.row % rows_per_fold
    records = folds.records.astype(np.float64)

    # Sums over the table of each row: of folds, of next states, and of both.
    fold_total = group_sum(folds.row, records, rows_per_fold * folds.shape[0])
    pair, place = np.unique(row * num_next + folds.next_state, return_inverse=True)
    next_total = group_sum(place, records, len(pair))
    total = group_sum(row, records, rows_per_fold)

    # Pearson's statistic of each row, and its expectation: freedom * N / (N - 1).
    of_cell = records**2 / (fold_total[folds.row] * next_total[place])
    statistic = total * (group_sum(row, of_cell, rows_per_fold) - 1)
    num_folds = (fold_total.reshape(folds.shape[0], rows_per_fold) > 0).sum(axis=0)
    num_ways = np.bincount(pair // num_next, minlength=rows_per_fold)
    freedom = (num_folds - 1) * (num_ways - 1)
    is_table = freedom > 0
    expected = freedom[is_table] * total[is_table] / (total[is_table] - 1)
    return float(statistic[is_table].sum()), float(expected.sum())
