"""Compiled loops, where NumPy would hold the interpreter or pass over memory many times.

They release the interpreter's lock, so threads run them side by side. Importing this module compiles nothing; a kernel
is compiled on its first call and kept on disk. Import it where it is needed, not at the top: numba takes a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from pastwise.numerics import FloatArray, IntArray

Result = TypeVar("Result")

LANES = 5
"""Functions whose expectations are taken side by side, each in a scalar of its own: only those stay in registers."""


def compiled(kernel: Callable[..., Result]) -> Callable[..., Result]:
    """The kernel as machine code, kept on disk where there is a place for it."""
    options: dict[str, Any] = {"nogil": True}
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


@compiled
def _take_peak(row: FloatArray) -> float:
    """Take the largest off a row [A], and return it; nothing is taken where all are -inf."""
    most = -np.inf
    for value in row:
        most = max(most, value)
    if most == -np.inf:
        return 0.0
    for a in range(len(row)):
        row[a] -= most
    return most


@compiled
def prefer(
    first: IntArray,
    column: IntArray,
    entry: FloatArray,
    unseen: FloatArray,
    total: FloatArray,
    now: FloatArray,
    values: FloatArray,
    rule: FloatArray,
    peak: FloatArray,
    start: int,
) -> bool:
    """Preference of each action, now + E[values(next_state)], less the largest in its state, into ``rule``.

    False if what has a weight everywhere has -inf somewhere: there is no such preference.

    Parameters
    ----------
    first, column, entry
        Sparse rows (system, state, action): where each begins, next states, and weights of them.
    unseen, total : [systems, S, A]
        Weight of every next state beside the entries; what all weights add up to.
    now, rule : [batch, states, A]
    values : [batch, S]
    peak : [batch, states]
        What is taken off: the largest preference, or 0 where all are -inf.
    start : int
        The first of the states.

    Systems are repeated along the batch: element b is of system b % systems.
    """
    systems, S, A = total.shape
    possible = True
    for b in range(len(rule)):
        system = b % systems
        everywhere = 0.0
        for value in values[b]:
            everywhere += value
        for s in range(rule.shape[1]):
            for a in range(A):
                row = (system * S + start + s) * A + a
                begin, number = first[row], first[row + 1] - first[row]
                entries, columns = entry[begin : begin + number], column[begin : begin + number]
                mean = 0.0
                if unseen[system, start + s, a] > 0:
                    mean = unseen[system, start + s, a] * everywhere
                    possible &= everywhere > -np.inf
                for i in range(number):
                    mean += entries[i] * values[b, np.uint32(columns[i])]
                rule[b, s, a] = now[b, s, a] + mean / total[system, start + s, a]
            peak[b, s] = _take_peak(rule[b, s])
    return possible


@compiled
def times(
    first: IntArray, column: IntArray, entry: FloatArray, systems: int, values: FloatArray, out: FloatArray, start: int
) -> None:
    """Sum of entry * values(next_state) over rows as in `prefer`: values [batch, S] -> out [batch, states, A]."""
    batch, states, A = out.shape
    S = values.shape[1]
    for b in range(batch):
        for s in range(states):
            for a in range(A):
                row = (b % systems * S + start + s) * A + a
                begin, number = first[row], first[row + 1] - first[row]
                entries, columns = entry[begin : begin + number], column[begin : begin + number]
                total = 0.0
                for i in range(number):
                    total += entries[i] * values[b, np.uint32(columns[i])]
                out[b, s, a] = total


@compiled
def centre(rule: FloatArray, peak: FloatArray) -> None:
    """Take off preferences [batch, states, A] the largest in each state, or 0 where all are -inf: peak [batch, S]."""
    for b in range(rule.shape[0]):
        for s in range(rule.shape[1]):
            peak[b, s] = _take_peak(rule[b, s])


@compiled
def settle(rule: FloatArray, peak: FloatArray) -> None:
    """From exp(preference - peak) to distributions in place; peak [batch, states] becomes ln of the sum of exp."""
    for b in range(rule.shape[0]):
        for s in range(rule.shape[1]):
            total = 0.0
            for a in range(rule.shape[2]):
                total += rule[b, s, a]
            peak[b, s] += np.log(total) if total > 0 else -np.inf
            for a in range(rule.shape[2]):
                rule[b, s, a] /= total if total > 0 else 1.0
