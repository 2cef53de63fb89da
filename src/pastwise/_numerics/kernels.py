"""Compiled loops, where NumPy would hold the interpreter or pass over memory many times.

They work on sparse rows (``first``, ``column``, ``value``): row r has the columns
``column[first[r] : first[r + 1]]``, ascending, and their values. `expect`, `softmax_rule` and
`plan` run the backward recursion of fully probabilistic design; `tally` and `observe` keep a
learned model up to date.

Loops release the interpreter's lock, so threads run them in parallel. Importing this module
compiles nothing; a loop is compiled on its first call and kept on disk. Import it where it is
needed, not at the top of a module: numba takes a while to import.
"""

from __future__ import annotations

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.compilation import compiled
from pastwise._numerics.vector_math import exp, log

CACHE_BLOCK = 1024
"""Numbers of a batch that go through the same loops together: enough for vector instructions to
pay, and few enough for the first cache."""


# Design


@compiled
def _subtract_maxima(rows: FloatArray, maximum: FloatArray) -> None:
    """Subtract from each row [n, A] its maximum, which goes into maximum [n].

    Rows that are -inf throughout stay as they are.
    """
    for s in range(len(rows)):
        row = rows[s]
        largest = row[0]
        for a in range(1, len(row)):
            largest = max(largest, row[a])
        maximum[s] = largest
        shift = largest if largest > -np.inf else 0.0
        for a in range(len(row)):
            row[a] -= shift


@compiled
def _sum_rows(rows: FloatArray, total: FloatArray, divide: bool) -> bool:
    """Put the sum of each row [n, A] into total [n], or one where it is zero.

    With ``divide`` the rows are divided by it. Returns whether no sum is zero.
    """
    all_positive = True
    for s in range(len(rows)):
        row = rows[s]
        row_sum = 0.0
        for a in range(len(row)):
            row_sum += row[a]
        if row_sum == 0.0:
            all_positive = False
            row_sum = 1.0
        total[s] = row_sum
        if divide:
            factor = 1.0 / row_sum
            for a in range(len(row)):
                row[a] *= factor
    return all_positive


@compiled
def softmax_rule(
    now: FloatArray,
    rule: FloatArray,
    log_gamma: FloatArray,
    divide: bool,
    states: tuple[int, int],
) -> bool:
    """From E[ln gamma(next state)] to ln gamma and the rule: the last step of Theorem 1.

    The rule is softmax(now + E[ln gamma]) over the actions, ln gamma the logarithm of its
    denominator. Returns whether gamma is positive everywhere.

    Parameters
    ----------
    now : [batch, S * A]
        ln ideal.rule - alpha.
    rule : [batch, S * A]
        E[ln gamma(next state)]; overwritten with the rule.
    log_gamma : [batch, S]
        Written to.
    divide : bool
        Whether the rule is needed. Otherwise its rows are left undivided.
    states : tuple of int
        Range of the batch * S states to work on.
    """
    # Views of the range of states; in flat form, since long loops become vector instructions.
    A = rule.shape[1] // log_gamma.shape[1]
    start, stop = states
    rows = rule.reshape(-1, A)[start:stop]
    gamma = log_gamma.reshape(-1)[start:stop]
    flat_rows = rows.reshape(-1)
    flat_now = now.reshape(-1)[start * A : stop * A]

    # Softmax, with the maximum taken out so that exp does not overflow.
    for i in range(len(flat_rows)):
        flat_rows[i] += flat_now[i]
    _subtract_maxima(rows, gamma)
    for i in range(len(flat_rows)):
        flat_rows[i] = exp(flat_rows[i])
    total = np.empty(len(gamma))
    feasible = _sum_rows(rows, total, divide)

    # ln gamma = maximum + ln of the sum.
    for s in range(len(gamma)):
        gamma[s] += log(total[s])
    return feasible


@compiled
def _expect_background(
    background: FloatArray,
    shift: int,
    values: FloatArray,
    out: FloatArray,
    b: int,
    rows: tuple[int, int],
) -> None:
    """Write background * sum of values into a range of rows of out[b].

    A background of zero gives zero, also where the sum is infinite. ``shift`` is the place of the
    system's first row in background.
    """
    value_sum = 0.0
    for value in values[b]:
        value_sum += value
    for row in range(*rows):
        weight = background[shift + row]
        out[b, row] = weight * value_sum if weight > 0 else 0.0


@compiled
def expect(
    first: IntArray,
    column: IntArray,
    weight: FloatArray,
    background: FloatArray | None,
    total: FloatArray | None,
    values: FloatArray,
    out: FloatArray,
    batch: tuple[int, int],
    states: tuple[int, int],
) -> None:
    """E[values(next state) | state, action] for a range of the batch and of the states.

    p(next state | state, action) is (weight + background) / total.

    Parameters
    ----------
    first, column, weight
        Sparse rows (system, state, action); columns are the next states.
    background, total : [systems * S * A], or None
        Weight of every next state in addition to the entries; sum of all weights. If None, 0 and 1.
    values : [batch, S]
        Element b of the batch belongs to system b % systems.
    out : [batch, S * A]
        Written to.
    batch, states : tuple of int
        Ranges to work on.
    """
    # Unsigned indices: signed ones may count from the end, and testing for that slows the loops.
    S = values.shape[1]
    num_rows = out.shape[1]
    one = np.uint64(1)
    begin = np.uint64(states[0] * (num_rows // S))
    end = np.uint64(states[1] * (num_rows // S))
    for b in range(batch[0], batch[1]):
        shift = np.uint64(b % ((len(first) - 1) // num_rows) * num_rows)

        # The background's part.
        if background is None:
            out[b, begin:end] = 0.0
        else:
            _expect_background(background, shift, values, out, b, (begin, end))

        # The entries' part.
        i = np.uint64(first[shift + begin])
        for row in range(begin, end):
            stop = np.uint64(first[shift + row + one])
            if i < stop:
                mean = out[b, row]
                while i < stop:
                    mean += weight[i] * values[b, np.uint32(column[i])]
                    i += one
                out[b, row] = mean

        # From weights to probabilities.
        if total is not None:
            for row in range(begin, end):
                out[b, row] /= total[shift + row]


@compiled
def plan(
    first: IntArray,
    column: IntArray,
    weight: FloatArray,
    background: FloatArray | None,
    total: FloatArray | None,
    now: FloatArray,
    policy: FloatArray,
    log_gamma: FloatArray,
    epochs: tuple[int, int],
    part: tuple[tuple[int, int], tuple[int, int]],
) -> bool:
    """Design backward over a range of epochs, for a range of the batch and of the states.

    Returns whether gamma is positive everywhere.

    Parameters
    ----------
    first, column, weight, background, total
        The model, as in `expect`.
    now : [1 or H, batch, S * A]
        ln ideal.rule - alpha.
    policy : [kept, batch, S * A]
        Rules of the first epochs. Later ones go into the last place and are overwritten.
    log_gamma : [H + 1, batch, S]
        Written to, but for the last, which stands for zero.
    epochs : tuple of int
        Range of epochs.
    part : (batch, states)
        Ranges of the batch and of the states.
    """
    kept = len(policy)
    horizon = len(log_gamma) - 1
    batch, states = part
    S = log_gamma.shape[2]
    num_rows = policy.shape[2]

    # All epochs of a few elements of the batch, then of the next few: they stay in the cache.
    together = max(1, CACHE_BLOCK // num_rows) if states[1] - states[0] == S else 1
    feasible = True
    for low in range(batch[0], batch[1], together):
        high = min(low + together, batch[1])
        start = low * S + states[0]
        stop = (high - 1) * S + states[1]
        for epoch in range(epochs[1] - 1, epochs[0] - 1, -1):
            # E[ln gamma(next state)], which is zero at the end.
            rule = policy[min(epoch, kept - 1)]
            if epoch + 1 == horizon:
                rule.reshape(-1, num_rows // S)[start:stop] = 0.0
            else:
                after = log_gamma[epoch + 1]
                elements = (low, high)
                expect(first, column, weight, background, total, after, rule, elements, states)

            # The rule and ln gamma of the epoch.
            now_here = now[min(epoch, len(now) - 1)]
            gamma = log_gamma[epoch]
            feasible &= softmax_rule(now_here, rule, gamma, epoch < kept, (start, stop))
    return feasible


# Learned models


@compiled
def _require_within(indices: IntArray, number: int) -> None:
    """Refuse indices outside 0, ..., number - 1 before memory is touched."""
    for index in indices:
        if index < 0 or index >= number:
            raise IndexError("a state, an action or a next state is out of range")


@compiled
def spread(
    first: IntArray, column: IntArray, value: FloatArray, rows: IntArray, columns: int
) -> FloatArray:
    """Some of the sparse rows in dense form: rows [n] -> [n, columns]."""
    _require_within(rows, len(first) - 1)
    out = np.zeros((len(rows), columns))
    for i in range(len(rows)):
        for at in range(first[rows[i]], first[rows[i] + 1]):
            out[i, column[at]] = value[at]
    return out


@compiled
def _find(first: IntArray, column: IntArray, row: int, wanted: int) -> int:
    """Place of a column among the entries of a row, or where it would be inserted."""
    return int(first[row] + np.searchsorted(column[first[row] : first[row + 1]], wanted))


@compiled
def tally(
    first: IntArray,
    count: FloatArray,
    background: FloatArray,
    columns: int,
    rows: IntArray,
    total: FloatArray,
    negentropy: FloatArray,
) -> None:
    """Total and negentropy of some rows of counts with a background.

    With the weights w = count + background of all columns, and p = w / total,

        total = sum of w,    negentropy = sum of p ln p = (sum of w ln w) / total - ln total.

    Parameters
    ----------
    first, count
        Sparse rows of counts.
    background : [all rows]
        Weight of every column in addition to its count.
    rows : [n]
    total, negentropy : [all rows]
        Written to, at ``rows``.
    """
    # Most rows have the same background: w ln w of it is computed when it changes.
    unseen = 0.0
    unseen_xlogx = 0.0
    for row in rows:
        if background[row] != unseen:
            unseen = background[row]
            unseen_xlogx = unseen * np.log(unseen) if unseen > 0 else 0.0

        # Columns without an entry, then those with one.
        weight_sum = columns * unseen
        xlogx_sum = (columns - first[row + 1] + first[row]) * unseen_xlogx
        for i in range(first[row], first[row + 1]):
            w = count[i] + unseen
            weight_sum += count[i]
            xlogx_sum += w * np.log(w) if w > 0 else 0.0
        total[row] = weight_sum
        negentropy[row] = xlogx_sum / weight_sum - np.log(weight_sum)


@compiled
def _count(
    first: IntArray,
    column: IntArray,
    count: FloatArray,
    background: FloatArray,
    row: IntArray,
    next_state: IntArray,
) -> IntArray:
    """Count one record in each of the given rows [n] whose transition has an entry.

    Returns the places, among the n, of the records that need a new entry. Rows without a background
    are of terminal states: their records are ignored.
    """
    new = np.empty(len(row), dtype=np.int64)
    number = 0
    for i in range(len(row)):
        r = row[i]
        if background[r] > 0:
            at = _find(first, column, r, next_state[i])
            if at < first[r + 1] and column[at] == next_state[i]:
                count[at] += 1.0
            else:
                new[number] = i
                number += 1
    return new[:number]


@compiled
def _insert(
    first: IntArray, column: IntArray, count: FloatArray, row: IntArray, next_state: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """The sparse rows with one more entry, a count of one, in each of the given ascending rows."""
    number = len(column) + len(row)
    new_first = first.copy()
    new_column = np.empty(number, dtype=column.dtype)
    new_count = np.empty(number)
    done = 0
    for i in range(len(row)):
        # Entries between the last insertion and this one move by the i inserted so far.
        at = _find(first, column, row[i], next_state[i])
        new_column[done + i : at + i] = column[done:at]
        new_count[done + i : at + i] = count[done:at]
        done = at

        # The new entry.
        new_column[at + i] = next_state[i]
        new_count[at + i] = 1.0

        # Rows up to that of the next insertion begin i + 1 entries later.
        until = row[i + 1] + 1 if i + 1 < len(row) else len(first)
        new_first[row[i] + 1 : until] += i + 1

    # Entries after the last insertion.
    new_column[done + len(row) :] = column[done:]
    new_count[done + len(row) :] = count[done:]
    return new_first, new_column, new_count


@compiled
def observe(
    first: IntArray,
    column: IntArray,
    count: FloatArray,
    background: FloatArray,
    columns: int,
    row: IntArray,
    next_state: IntArray,
    total: FloatArray,
    negentropy: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Count one more record in each of the given ascending rows [n], and `tally` them.

    Returns the sparse rows after that: new arrays where entries were inserted.
    """
    _require_within(row, len(background))
    _require_within(next_state, columns)
    new = _count(first, column, count, background, row, next_state)
    if len(new):
        first, column, count = _insert(first, column, count, row[new], next_state[new])
    tally(first, count, background, columns, row, total, negentropy)
    return first, column, count
