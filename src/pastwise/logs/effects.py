r"""Findings on the counts of a log: what its actions do, and what its labels are.

Two of those on actions rest on a statistic.

*The action determines the next state.* Predict each next state by the most frequent one of its
action. If that removes nearly all errors of predicting the most frequent next state of the log
(Goodman and Kruskal's :math:`\lambda`), the action seems to record the outcome.

*An effect that cannot be distinguished from none.* Within each state the next states of an action
are compared with those of all other actions there, by Pearson's statistic of a table of two rows,

.. math::  X^2 = \frac{n^2}{m (n - m)} \Bigl( \sum_k \frac{x_k^2}{t_k} - \frac{m^2}{n} \Bigr)

where :math:`x_k` of the action's :math:`m` records and :math:`t_k` of the state's :math:`n` records
lead to next state :math:`k`. If actions are exchangeable within states,
:math:`X^2 (n - 1) / n` has the expectation :math:`K - 1` exactly, with :math:`K` next states; the
sum over states is compared with the chi-squared distribution of as many degrees of freedom.
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from pastwise._numerics.arrays import FloatArray, IntArray, distinct, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Label, Space, key_of
from pastwise.errors import shortened
from pastwise.logs.columns import Columns
from pastwise.logs.findings import Finding, counted, finding_of

NUM_NAMED = 5
"""Actions or columns that a message names."""


def findings_on_counts(counts: TransitionCounts, columns: Columns) -> list[Finding]:
    """What the owner of a log should know about its labels and about its actions."""
    pooled = counts.total()
    return [
        *_findings_on_numbers(pooled.states, columns.state, columns, pooled.num_records),
        *_findings_on_numbers(pooled.actions, columns.action, columns, pooled.num_records),
        *_one_action(pooled),
        *_action_is_outcome(pooled),
        *_without_effect(pooled),
    ]


def named(names: list[str], most: int = NUM_NAMED, length: int = 60) -> str:
    """The first names of a list, each of bounded length."""
    shown = ", ".join(shortened(name, length) for name in names[:most])
    return f"{shown}, ..." if len(names) > most else shown


# Labels.


def _findings_on_numbers(
    space: Space, names: tuple[str, ...], columns: Columns, records: int
) -> list[Finding]:
    """Columns of numbers that need bins."""
    findings = []
    for name, number in continuous_columns(space, names, columns, records).items():
        different = f"{number:,} different numbers"
        findings.append(finding_of("continuous-column", records, column=name, different=different))
    return findings


def continuous_columns(
    space: Space,
    names: tuple[str, ...],
    columns: Columns,
    records: int,
    *,
    max_share: float = 0.1,
    min_labels: int = 30,
    min_whole: int = 100,
) -> dict[str, int]:
    """Columns of numbers that have hardly fewer values than records, and no bins.

    Each with the number of its different values.

    Parameters
    ----------
    max_share : float
        Number of different values, as a share of the records: with more than a tenth, a value has
        fewer than ten records on average, and they are split among the actions.
    min_labels, min_whole : int
        Fewer values, and fewer whole numbers, are labels: a small log has few records of each of
        them, but bins would not help.
    """
    if len(space) <= max(min_labels, max_share * records):
        return {}
    found = {}
    for place, name in enumerate(names):
        if name in columns.bins:
            continue
        labels = {label[place] if isinstance(label, tuple) else label for label in space.labels}
        if len(labels) <= max(min_labels, max_share * records):
            continue
        numbers = [_as_number(label) for label in labels]
        if any(number is None for number in numbers):
            continue
        is_whole = all(number is not None and number.is_integer() for number in numbers)
        if is_whole and len(labels) < min_whole:
            continue
        found[name] = len(labels)
    return found


def _as_number(label: Label) -> float | None:
    """A label as a number, also if it is text; None if it is none."""
    if isinstance(label, bool) or not isinstance(label, (str, int, float)):
        return None
    try:
        return float(label)
    except ValueError:
        return None


# Actions.


def _one_action(counts: TransitionCounts, *, min_repeated: float = 20) -> list[Finding]:
    """Whether no state has records of several actions.

    Parameters
    ----------
    min_repeated : float
        Records of states that have others: with fewer, the same action each time may be chance. If
        one decision of seven differed from the usual one, 20 would show it with 95 %.
    """
    A = len(counts.actions)
    pair, _ = distinct(counts.state * A + counts.action, len(counts.states) * A)
    num_states = len(np.unique(pair // A))
    if counts.num_records - num_states < min_repeated or len(pair) > num_states:
        return []
    return [finding_of("one-action", int(counts.num_records))]


def _action_is_outcome(
    counts: TransitionCounts, *, min_explained: float = 0.95, min_records: int = 10
) -> list[Finding]:
    """Whether the action determines the next state.

    Parameters
    ----------
    min_explained : float
        Share of the errors of prediction that knowing the action removes. With 0.95, a few records
        that were typed in wrongly do not hide it.
    min_records : int
        Records of an action that is well seen.
    """
    S = len(counts.states)
    total = counts.num_records
    if total == 0:
        return []

    # Records by action and next state, and the most frequent next state of each action.
    pair, place = distinct(counts.action * S + counts.next_state, len(counts.actions) * S)
    records = group_sum(place, counts.records, len(pair))
    action = pair // S
    order = np.lexsort((-records, action))
    is_first = np.diff(action[order], prepend=-1) > 0
    most_frequent = order[is_first]

    # Errors that knowing the action removes.
    by_next_state = group_sum(counts.next_state, counts.records, S)
    errors_without = total - by_next_state.max()
    errors_with = total - records[most_frequent].sum()
    if errors_without == 0 or 1 - errors_with / errors_without < min_explained:
        return []

    # Two well seen actions, each taken in several states, that lead to different next states.
    outcomes = set()
    for index in most_frequent.tolist():
        is_taken = counts.action == action[index]
        is_well_seen = counts.records[is_taken].sum() >= min_records
        if is_well_seen and len(np.unique(counts.state[is_taken])) > 1:
            outcomes.add(int(pair[index] % S))
    if len(outcomes) < 2:
        return []
    share = f"{100 * (1 - errors_with / total):.3g} %"
    return [finding_of("action-is-outcome", total, share=share)]


def _without_effect(counts: TransitionCounts, *, level: float = 0.05) -> list[Finding]:
    """Actions without an effect; ``level`` is that of `actions_without_effect`."""
    found, records = actions_without_effect(counts, level=level)
    if not len(found):
        return []
    names = [key_of(counts.actions.labels[index]) for index in found.tolist()]
    return [
        finding_of(
            "no-effect",
            int(records.sum()),
            actions=counted(len(names), "action"),
            names=named(names),
            level=f"{100 * level:g} %",
        )
    ]


def actions_without_effect(
    counts: TransitionCounts, *, level: float = 0.05, min_records: int = 100
) -> tuple[IntArray, FloatArray]:
    """Actions whose next states do not differ from those of other actions in the same states.

    Parameters
    ----------
    level : float
        Probability with which the test finds a difference where there is none; the usual one.
    min_records : int
        Records that an action needs, in states in which others were taken as well: a hundred show
        a difference of 0.15 between two probabilities in two of three cases. With fewer, hardly
        any effect could be distinguished from none.

    Returns
    -------
    actions : array of int
    records : array of float
        Records of each of them, in states where it can be compared.
    """
    p_values, records = effect_test(counts)
    found = np.flatnonzero((records >= min_records) & (p_values > level))
    return found, records[found]


def effect_test(counts: TransitionCounts) -> tuple[FloatArray, FloatArray]:
    """Whether the next states of each action differ from those of the others in the same states.

    Returns
    -------
    p_values : [A]
        Probability of differences as large as those of the log if there are none; 1 for an action
        that cannot be compared.
    records : [A]
        Records of the action in states where it can be compared.
    """
    S = len(counts.states)
    A = len(counts.actions)
    number = counts.records.astype(np.float64)

    # Records of each state, of each state with its next states, and of each state and action.
    of_state = group_sum(counts.state, number, S)
    pair, target = distinct(counts.state * S + counts.next_state, S * S)
    of_target = group_sum(target, number, len(pair))
    num_targets = np.bincount(pair // S, minlength=S)
    row, place = distinct(counts.state * A + counts.action, S * A)
    of_row = group_sum(place, number, len(row))
    squares = group_sum(place, number**2 / of_target[target], len(row))

    # The statistic of each state and action that can be compared with others.
    state = row // A
    action = row % A
    n = of_state[state]
    comparable = (of_row < n) & (num_targets[state] > 1)
    state, action, n = state[comparable], action[comparable], n[comparable]
    m = of_row[comparable]
    statistic = n * (n - 1) / (m * (n - m)) * (squares[comparable] - m**2 / n)

    # Sums over states.
    total = group_sum(action, statistic, A)
    freedom = group_sum(action, (num_targets[state] - 1).astype(np.float64), A)
    p_values = np.ones(A)
    is_tested = freedom > 0
    p_values[is_tested] = chdtrc(freedom[is_tested], total[is_tested])
    return p_values, group_sum(action, m, A)
