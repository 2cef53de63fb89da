"""Compiled recursions over the epochs of sampled models, one model after another.

The values of given rules need each rule's *closed loop* alone, p(next_state | state) under the
rule, which is much smaller than the model. The best policy of a model needs every action in every
epoch. Both recursions stop early, each model on its own, once what one more epoch adds to the value
of each state, the *step*, has settled: the last step then stands for all that are left.

Import this module where it is needed, not at the top of a module: numba takes a while to import.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.compilation import compiled
from pastwise.models.samples import Epochs

LANES = 4
"""Rules that are followed together. Each has a scalar of its own in the loops, since only scalars
stay in registers; `_follow_loop` is written for four."""


class Models(NamedTuple):
    """Sparse models; `samples.SparseSamples` describes them.

    Attributes
    ----------
    first : [S * A + 1]
    column, probability : [n, entries]
    line_first : [n, 2 * S + 1]
    line_column, lines : [n, c]
    common : [S]
    """

    first: IntArray
    column: IntArray
    probability: FloatArray
    line_first: IntArray
    line_column: IntArray
    lines: FloatArray
    common: FloatArray


class Loop(NamedTuple):
    """Closed loops of four rules in one model, as sparse matrices of one pattern.

    Attributes
    ----------
    first : [S + 1]
        Where the row of each state begins.
    column : [entries]
        Next states; S stands for elsewhere.
    probability : [entries, 4]
    reward : [S, 4]
        Expected reward of an epoch.
    """

    first: IntArray
    column: IntArray
    probability: FloatArray
    reward: FloatArray


@compiled
def _close_state(
    models: Models, i: int, s: int, rule: FloatArray, row: FloatArray, of_lines: FloatArray
) -> None:
    """Add p(next_state | s) under four rules [A, 4] to ``row`` [S + 1, 4].

    ``of_lines`` [2, 4] is overwritten: the share of each line.
    """
    S = len(models.common)
    A = len(rule)
    of_lines[:] = 0.0
    for a in range(A):
        for e in range(models.first[s * A + a], models.first[s * A + a + 1]):
            p = models.probability[i, e]
            to = models.column[i, e]
            if to <= S:
                for lane in range(LANES):
                    row[to, lane] += rule[a, lane] * p
            else:
                is_leaning = (to - S - 1) // S
                for lane in range(LANES):
                    of_lines[is_leaning, lane] += rule[a, lane] * p

    for is_leaning in range(2):
        if not of_lines[is_leaning].any():
            continue
        line = s + is_leaning * S
        for j in range(models.line_first[i, line], models.line_first[i, line + 1]):
            p = models.lines[i, j]
            to = models.line_column[i, j]
            for lane in range(LANES):
                row[to, lane] += of_lines[is_leaning, lane] * p


@compiled
def _close_loop(models: Models, i: int, rule: FloatArray, reward: FloatArray, loop: Loop) -> None:
    """The closed loops of four rules [S, A, 4] in model i, with rewards [S, A] of decisions."""
    S = len(models.common)
    row = np.zeros((S + 1, LANES))
    of_lines = np.empty((2, LANES))
    end = 0
    for s in range(S):
        loop.first[s] = end
        _close_state(models, i, s, rule[s], row, of_lines)

        # What is not zero, and the reward.
        for to in range(S + 1):
            if row[to, 0] + row[to, 1] + row[to, 2] + row[to, 3] > 0:
                loop.column[end] = to
                for lane in range(LANES):
                    loop.probability[end, lane] = row[to, lane]
                    row[to, lane] = 0.0
                end += 1
        for lane in range(LANES):
            loop.reward[s, lane] = 0.0
            for a in range(rule.shape[1]):
                loop.reward[s, lane] += rule[s, a, lane] * reward[s, a]
    loop.first[S] = end


@compiled
def _follow_loop(loop: Loop, goes_on: FloatArray, value: FloatArray, before: FloatArray) -> None:
    """Values [S + 1, 4] of four rules one epoch earlier; that of elsewhere is left alone."""
    for s in range(len(goes_on)):
        v_0 = loop.reward[s, 0]
        v_1 = loop.reward[s, 1]
        v_2 = loop.reward[s, 2]
        v_3 = loop.reward[s, 3]
        for j in range(loop.first[s], loop.first[s + 1]):
            to = loop.column[j]
            v_0 += loop.probability[j, 0] * value[to, 0]
            v_1 += loop.probability[j, 1] * value[to, 1]
            v_2 += loop.probability[j, 2] * value[to, 2]
            v_3 += loop.probability[j, 3] * value[to, 3]
        before[s, 0] = goes_on[s] * v_0
        before[s, 1] = goes_on[s] * v_1
        before[s, 2] = goes_on[s] * v_2
        before[s, 3] = goes_on[s] * v_3


@compiled
def _take_step(value: FloatArray, before: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """One epoch back: ``step`` [S, 4] becomes before - value, and ``value`` becomes ``before``.

    The largest change of each rule's step is written to ``change`` [4].
    """
    change[:] = 0.0
    for s in range(len(step)):
        for lane in range(LANES):
            new_step = before[s, lane] - value[s, lane]
            change[lane] = max(change[lane], abs(new_step - step[s, lane]))
            step[s, lane] = new_step
            value[s, lane] = before[s, lane]


@compiled
def _loop_values(loop: Loop, common: FloatArray, epochs: Epochs, out: FloatArray) -> None:
    """Total reward of four rules over all epochs from each state, written to ``out`` [S, 4].

    Under a rule each change of the step is an expectation of the change before it, so it never
    grows: that bounds the error of an early stop. Each rule has its own, so that its value does not
    depend on the rules next to it.
    """
    S = len(common)
    value = np.zeros((S + 1, LANES))
    before = np.zeros((S + 1, LANES))
    step = np.full((S, LANES), np.inf)
    change = np.empty(LANES)
    is_done = np.zeros(LANES, np.bool_)
    for epoch in range(epochs.number):
        for lane in range(LANES):
            value[S, lane] = 0.0
            for s in range(S):
                value[S, lane] += common[s] * value[s, lane]
        _follow_loop(loop, epochs.goes_on, value, before)
        _take_step(value, before, step, change)
        left = epochs.number - epoch - 1
        for lane in range(LANES):
            error = change[lane] * left * (left + 1) / 2
            if not is_done[lane] and (left == 0 or error <= epochs.max_error):
                out[:, lane] = value[:S, lane] + left * step[:, lane]
                is_done[lane] = True
        if is_done.all():
            break


@compiled
def rule_values(
    models: Models, rules: FloatArray, reward: FloatArray, epochs: Epochs, out: FloatArray
) -> None:
    """Total reward of four rules over all epochs, on n models.

    Parameters
    ----------
    rules : [1 or n, S, A, 4]
        Probabilities of the actions, the same on all models or on each its own.
    reward : [n, S, A]
        Expected reward of each decision.
    out : [n, S, 4]
        Written to.
    """
    number, S, _ = reward.shape
    most = min(models.lines.shape[1] // 2 + len(models.first) + models.first[-1], S * (S + 1))
    loop = Loop(
        np.empty(S + 1, np.int64),
        np.empty(most, np.uint64),
        np.empty((most, LANES)),
        np.empty((S, LANES)),
    )
    for i in range(number):
        _close_loop(models, i, rules[min(i, len(rules) - 1)], reward[i], loop)
        _loop_values(loop, models.common, epochs, out[i])


@compiled
def _expect_rows(
    first: IntArray, column: IntArray, probability: FloatArray, value: FloatArray, out: FloatArray
) -> None:
    """Mean of values under each sparse row of one model: [columns] -> [rows]."""
    # Unsigned indices: signed ones may count from the end, and testing for that slows the loop.
    e = np.uint64(first[0])
    for row in range(len(out)):
        stop = np.uint64(first[row + 1])
        mean = 0.0
        while e < stop:
            mean += probability[e] * value[np.uint64(column[e])]
            e += np.uint64(1)
        out[row] = mean


@compiled
def _by_column(models: Models, i: int, value: FloatArray) -> None:
    """Values [S + 1 + 2 S] of elsewhere and of the lines, from those of the next states."""
    S = len(models.common)
    elsewhere = 0.0
    for s in range(S):
        elsewhere += models.common[s] * value[s]
    value[S] = elsewhere
    of_lines = value[S + 1 :]
    _expect_rows(models.line_first[i], models.line_column[i], models.lines[i], value, of_lines)


@compiled
def expect(models: Models, values: FloatArray, out: FloatArray) -> None:
    """E[values | state, action] in n models, of a function of the next state: [n, S * A].

    ``values`` is [1, S], the same for all models, or [n, S].
    """
    num_values, S = values.shape
    value = np.empty(S + 1 + 2 * S)
    for i in range(len(out)):
        value[:S] = values[min(i, num_values - 1)]
        _by_column(models, i, value)
        _expect_rows(models.first, models.column[i], models.probability[i], value, out[i])


@compiled
def _best_epoch(
    models: Models,
    i: int,
    reward: FloatArray,
    penalty: FloatArray,
    value: FloatArray,
    q: FloatArray,
    before: FloatArray,
) -> None:
    """Values [S] of the best action in the epoch before one of values [S + 1 + 2 S].

    ``q`` [S * A] is overwritten.
    """
    S, A = reward.shape
    _by_column(models, i, value)
    _expect_rows(models.first, models.column[i], models.probability[i], value, q)
    for s in range(S):
        best = -np.inf
        for a in range(A):
            best = max(best, reward[s, a] + penalty[s, a] + q[s * A + a])
        before[s] = best


@compiled
def best_values(
    models: Models, reward: FloatArray, penalty: FloatArray, epochs: Epochs, out: FloatArray
) -> None:
    """Largest total reward over all epochs, on n models.

    The best policy may turn to another way at any time; all that is known of its later steps is
    that they lie between the smallest and the largest of any state.

    Parameters
    ----------
    reward : [n, S, A]
        Expected reward of each decision.
    penalty : [S, A]
        -inf for actions that are not allowed, 0 for the others.
    out : [n, S]
        Written to.
    """
    _, S, A = reward.shape
    value = np.empty(S + 1 + 2 * S)
    q = np.empty(S * A)
    ends = epochs.goes_on.min() == 0
    for i in range(len(reward)):
        value[:S] = 0.0
        for epoch in range(epochs.number):
            _best_epoch(models, i, reward[i], penalty, value, q, out[i])
            out[i] *= epochs.goes_on
            step = out[i] - value[:S]
            value[:S] = out[i]

            # An ended episode adds nothing.
            low = min(step.min(), 0.0) if ends else step.min()
            high = max(step.max(), 0.0) if ends else step.max()
            left = epochs.number - epoch - 1
            if left and (high - low) * left <= epochs.max_error:
                out[i] += left * step
                break
