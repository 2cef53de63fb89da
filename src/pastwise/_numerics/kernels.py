"""Compiled loops, where NumPy would hold the interpreter or pass over memory many times.

They release the interpreter's lock, so threads run them side by side. Importing this module compiles nothing; a kernel
is compiled on its first call and kept on disk. Import it where it is needed, not at the top: numba takes a while.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.threads import Result

LANES = 5
"""Functions whose expectations are taken side by side, each in a scalar of its own: only those stay in registers."""


def compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    """The kernel as machine code, kept on disk where there is a place for it.

    Division is NumPy's: Python's would look for zeros, and loops that may fail do not become vector instructions. A
    product and a sum may be one instruction; nothing else is reordered.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        return cast(Callable[..., Result], numba.njit(**options, cache=True)(kernel))
    except RuntimeError:  # no folder can be written
        return cast(Callable[..., Result], numba.njit(**options)(kernel))


@compiled
def expect_rows(
    first: IntArray, column: IntArray, probability: FloatArray, values: FloatArray, out: FloatArray
) -> None:
    """Expectations of five functions under each row of n matrices: values [n, columns, 5] -> out [n, rows, 5].

    The matrices are sparse: rows begin at ``first [rows + 1]``, their entries are ``column, probability [n, entries]``.
    """
    for n in range(len(out)):
        i = first[0]
        for row in range(out.shape[1]):
            a = b = c = d = e = 0.0
            while i < first[row + 1]:
                p, at = probability[n, i], column[n, i]
                a += p * values[n, at, 0]
                b += p * values[n, at, 1]
                c += p * values[n, at, 2]
                d += p * values[n, at, 3]
                e += p * values[n, at, 4]
                i += 1
            here = out[n, row]
            here[0], here[1], here[2], here[3], here[4] = a, b, c, d, e


@compiled
def backup(
    first: IntArray,
    column: IntArray,
    probability: FloatArray,
    now: FloatArray,
    weight: FloatArray,
    barred: FloatArray,
    values: FloatArray,
    out: FloatArray,
) -> None:
    """One epoch of four rules and of the best action, on n models: values after it [n, columns, 5] -> before it.

    Parameters
    ----------
    first, column, probability
        Sparse matrices [n, S * A, columns], as in `expect_rows`.
    now : [n, S, A]
        What a decision earns at once.
    weight : [S, A, 4]
        The rules.
    barred : [S, A]
        -inf for the actions that the best may not take, 0 for the others.
    out : [n, S, 5]
    """
    number, S, A = now.shape
    for n in range(number):
        i = first[0]
        for s in range(S):
            w = x = y = z = 0.0
            best = -np.inf
            for action in range(A):
                a = b = c = d = e = now[n, s, action]
                while i < first[s * A + action + 1]:
                    p, at = probability[n, i], column[n, i]
                    a += p * values[n, at, 0]
                    b += p * values[n, at, 1]
                    c += p * values[n, at, 2]
                    d += p * values[n, at, 3]
                    e += p * values[n, at, 4]
                    i += 1
                w += weight[s, action, 0] * a
                x += weight[s, action, 1] * b
                y += weight[s, action, 2] * c
                z += weight[s, action, 3] * d
                best = max(best, e + barred[s, action])
            here = out[n, s]
            here[0], here[1], here[2], here[3], here[4] = w, x, y, z, best


AT_ONCE = 1024
"""Numbers of a batch that go through the same loops together: so many that vector instructions pay, and few enough
for the first cache."""

LN_2 = math.log(2.0)
LN_2_PARTS = 0.6931471803691238, 1.9082149292705877e-10
"""ln 2 in two parts: a whole number up to 2^20 times the first is exact."""

TAYLOR = tuple(1 / math.factorial(n) for n in range(14))

HALF_ROOT = 0x3FE6A09E667F3BCD
"""The bits of the square root of a half."""


@compiled
def _exp(x: float) -> float:
    """exp(x) of a number that is not positive, to the last bit or the one before it.

    Made of arithmetic alone, so that a loop of it becomes vector instructions; numba's own is called number by number.
    """
    x = max(x, -746.0)  # below it is zero
    k = np.floor(x * (1 / LN_2) + 0.5)  # exp(x) = 2^k exp(r), |r| <= ln(2) / 2
    r = (x - k * LN_2_PARTS[0]) - k * LN_2_PARTS[1]
    series = 0.0
    for n in range(13, 1, -1):
        series = series * r + TAYLOR[n]
    half = (
        np.int64(k) >> 1
    )  # 2^k may be too small for a normal number; the product of its halves rounds well
    return float(
        (series * r * r + r + 1.0) * _power_of_two(half) * _power_of_two(np.int64(k) - half)
    )


@compiled
def _power_of_two(k: int) -> float:
    return float(np.int64((k + 1023) << 52).view(np.float64))  # the bits of the exponent


@compiled
def _log(x: float) -> float:
    """Ln x of a normal number, likewise."""
    bits = np.float64(x).view(np.int64)
    k = (bits - HALF_ROOT) >> 52
    m = np.int64(bits - (k << 52)).view(np.float64)  # ln x = k ln 2 + ln m, and m is near one
    s = (m - 1.0) / (m + 1.0)
    series = 0.0
    for n in range(21, 1, -2):
        series = series * s * s + 1 / n
    return float(k * LN_2 + 2.0 * (s + s * s * s * series))


@compiled
def _take_peaks(rows: FloatArray, peak: FloatArray) -> None:
    """Take the largest off each row [n, A] and put it into peak [n]; nothing is taken where all are -inf."""
    for s in range(len(rows)):
        row = rows[s]
        most = row[0]
        for a in range(1, len(row)):
            most = max(most, row[a])
        peak[s] = most
        off = most if most > -np.inf else 0.0
        for a in range(len(row)):
            row[a] -= off


@compiled
def _take_sums(rows: FloatArray, total: FloatArray, divide: bool) -> bool:
    """Put the sum of each row [n, A] into total [n], one if it is zero, and divide by it; whether none is zero."""
    positive = True
    for s in range(len(rows)):
        row, each = rows[s], 0.0
        for a in range(len(row)):
            each += row[a]
        if each == 0.0:
            positive, each = False, 1.0
        total[s] = each
        if divide:
            share = 1.0 / each
            for a in range(len(row)):
                row[a] *= share
    return positive


@compiled
def settle(
    now: FloatArray, rule: FloatArray, log_gamma: FloatArray, wanted: bool, states: tuple[int, int]
) -> bool:
    """From E[ln gamma(next state)] to the rule, in place, and to ln gamma; whether gamma has no zero.

    Parameters
    ----------
    now : [batch, S * A]
        What else counts for an action, ln ideal.rule - alpha.
    rule : [batch, S * A]
        Left undivided if it is not wanted.
    log_gamma : [batch, S]
    states : tuple of int
        Range of the batch * S states that is worked on.

    Paper: gamma and the rule in Theorem 1 [th:solution_FPD].
    """
    A, (start, stop) = rule.shape[1] // log_gamma.shape[1], states
    rows, gamma = rule.reshape(-1, A)[start:stop], log_gamma.reshape(-1)[start:stop]
    flat, also = (
        rows.reshape(-1),
        now.reshape(-1)[start * A : stop * A],
    )  # long loops become vector instructions
    for i in range(len(flat)):
        flat[i] += also[i]
    _take_peaks(rows, gamma)
    for i in range(len(flat)):
        flat[i] = _exp(flat[i])
    total = np.empty(len(gamma))
    feasible = _take_sums(rows, total, wanted)
    for s in range(len(gamma)):
        gamma[s] += _log(total[s])
    return feasible


@compiled
def _even_share(
    unseen: FloatArray, first: int, values: FloatArray, out: FloatArray, b: int, rows: Any
) -> None:
    """The part of E[values] that comes from the weight of every next state, for a range of rows of element b."""
    everywhere = 0.0
    for value in values[b]:
        everywhere += value
    for row in range(*rows):
        weight = unseen[first + row]
        out[b, row] = weight * everywhere if weight > 0 else 0.0


@compiled
def expect(
    first: IntArray,
    column: IntArray,
    entry: FloatArray,
    unseen: FloatArray | None,
    total: FloatArray | None,
    values: FloatArray,
    out: FloatArray,
    batch: tuple[int, int],
    states: tuple[int, int],
) -> None:
    """E[values(next state) | state, action] for a range of the batch and of the states.

    Parameters
    ----------
    first, column, entry
        Sparse rows (system, state, action): where each begins, next states, and weights of them.
    unseen, total : [systems * S * A], or None
        Weight of every next state beside the entries; what all weights add up to. Without them, 0 and 1.
    values : [batch, S]
    out : [batch, S * A]

    Systems are repeated along the batch: element b is of system b % systems.
    """
    S, rows, one = (
        values.shape[1],
        out.shape[1],
        np.uint64(1),
    )  # signed indices may count from the end: slow loops
    begin, end = np.uint64(states[0] * (rows // S)), np.uint64(states[1] * (rows // S))
    for b in range(batch[0], batch[1]):
        shift = np.uint64(b % ((len(first) - 1) // rows) * rows)
        if unseen is None:
            out[b, begin:end] = 0.0
        else:
            _even_share(unseen, shift, values, out, b, (begin, end))
        i = np.uint64(first[shift + begin])
        for row in range(begin, end):
            stop = np.uint64(first[shift + row + one])
            if i < stop:
                mean = out[b, row]
                while i < stop:
                    mean += entry[i] * values[b, np.uint32(column[i])]
                    i += one
                out[b, row] = mean
        if total is not None:
            for row in range(begin, end):
                out[b, row] /= total[shift + row]


@compiled
def plan(
    first: IntArray,
    column: IntArray,
    entry: FloatArray,
    unseen: FloatArray | None,
    total: FloatArray | None,
    now: FloatArray,
    policy: FloatArray,
    log_gamma: FloatArray,
    epochs: tuple[int, int],
    part: tuple[tuple[int, int], tuple[int, int]],
) -> bool:
    """Design backward over a range of epochs, for a range of the batch and of the states, on a model as in `expect`.

    Returns whether gamma has no zero.

    Parameters
    ----------
    now : [1 or H, batch, S * A]
        ln ideal.rule - alpha.
    policy : [kept, batch, S * A]
        Rules of the first epochs; one that is not kept gives way to the one before it.
    log_gamma : [H + 1, batch, S]
    part
        The ranges of the batch and of the states.
    """
    kept, horizon, (batch, states) = len(policy), len(log_gamma) - 1, part
    S, rows = log_gamma.shape[2], policy.shape[2]
    together = max(1, AT_ONCE // rows) if states[1] - states[0] == S else 1
    feasible = True
    for low in range(batch[0], batch[1], together):
        high = min(low + together, batch[1])
        start, stop = low * S + states[0], (high - 1) * S + states[1]
        for epoch in range(epochs[1] - 1, epochs[0] - 1, -1):
            rule = policy[min(epoch, kept - 1)]
            if epoch + 1 == horizon:
                rule.reshape(-1, rows // S)[start:stop] = 0.0  # ln gamma at the end
            else:
                expect(
                    first,
                    column,
                    entry,
                    unseen,
                    total,
                    log_gamma[epoch + 1],
                    rule,
                    (low, high),
                    states,
                )
            also, gamma = now[min(epoch, len(now) - 1)], log_gamma[epoch]
            feasible &= settle(also, rule, gamma, epoch < kept, (start, stop))
    return feasible


@compiled
def _require_within(indices: IntArray, number: int) -> None:
    """Refuse indices that nothing is at, before memory is touched."""
    for index in indices:
        if index < 0 or index >= number:
            raise IndexError("a state, an action or a next state is out of range")


@compiled
def spread(
    first: IntArray, column: IntArray, entry: FloatArray, rows: IntArray, columns: int
) -> FloatArray:
    """Some of the sparse rows, as tables: [n] -> [n, columns]."""
    _require_within(rows, len(first) - 1)
    out = np.zeros((len(rows), columns))
    for i in range(len(rows)):
        for at in range(first[rows[i]], first[rows[i] + 1]):
            out[i, column[at]] = entry[at]
    return out


@compiled
def _find(first: IntArray, column: IntArray, row: int, wanted: int) -> int:
    """Place of a column among the entries, or where it would go."""
    return int(first[row] + np.searchsorted(column[first[row] : first[row + 1]], wanted))


@compiled
def tally(
    first: IntArray,
    count: FloatArray,
    unseen: FloatArray,
    columns: int,
    rows: IntArray,
    total: FloatArray,
    negentropy: FloatArray,
) -> None:
    """Sum of the weights w of all columns, and of p ln p over their shares p, for some rows of counts.

    Parameters
    ----------
    first, count
        Sparse rows of counts.
    unseen : [all rows]
        Weight of every column beside its count.
    rows : [n]
    total, negentropy : [all rows]
        What is worked out: sum of w, and sum of p ln p = (sum of w ln w) / total - ln total.
    """
    light, of_light = 0.0, 0.0  # a weight, and w ln w of it; the same in most rows
    for r in rows:
        if unseen[r] != light:
            light = unseen[r]
            of_light = light * np.log(light) if light > 0 else 0.0
        weight, xlogx = columns * light, (columns - first[r + 1] + first[r]) * of_light
        for i in range(first[r], first[r + 1]):
            w = count[i] + light
            weight += count[i]
            xlogx += w * np.log(w) if w > 0 else 0.0
        total[r] = weight
        negentropy[r] = xlogx / weight - np.log(weight)


@compiled
def _count(
    first: IntArray,
    column: IntArray,
    entry: FloatArray,
    left: FloatArray,
    row: IntArray,
    next_state: IntArray,
) -> IntArray:
    """Count a record in each of the given rows [n], where the transition has an entry; the places of those without.

    Rows without a weight in ``left`` end an episode: they stay as they are.
    """
    new = np.empty(len(row), dtype=np.int64)
    number = 0
    for i in range(len(row)):
        r = row[i]
        if left[r] > 0:
            at = _find(first, column, r, next_state[i])
            if at < first[r + 1] and column[at] == next_state[i]:
                entry[at] += 1.0
            else:
                new[number] = i
                number += 1
    return new[:number]


@compiled
def _insert(
    first: IntArray, column: IntArray, entry: FloatArray, row: IntArray, next_state: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """The sparse rows with one more entry, of one, in each of the given rows, which ascend."""
    number = len(column) + len(row)
    starts, columns, entries = first.copy(), np.empty(number, dtype=column.dtype), np.empty(number)
    done = 0
    for i in range(len(row)):
        at = _find(first, column, row[i], next_state[i])
        columns[done + i : at + i], entries[done + i : at + i] = column[done:at], entry[done:at]
        columns[at + i], entries[at + i] = next_state[i], 1.0
        starts[row[i] + 1 : row[i + 1] + 1 if i + 1 < len(row) else len(first)] += i + 1
        done = at
    columns[done + len(row) :], entries[done + len(row) :] = column[done:], entry[done:]
    return starts, columns, entries


@compiled
def observe(
    first: IntArray,
    column: IntArray,
    count: FloatArray,
    unseen: FloatArray,
    columns: int,
    row: IntArray,
    next_state: IntArray,
    total: FloatArray,
    negentropy: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Count one more record in each of the given rows, which ascend, and `tally` them: the sparse rows after that."""
    _require_within(row, len(unseen))
    _require_within(next_state, columns)
    new = _count(first, column, count, unseen, row, next_state)
    if len(new):
        first, column, count = _insert(first, column, count, row[new], next_state[new])
    tally(first, count, unseen, columns, row, total, negentropy)
    return first, column, count
