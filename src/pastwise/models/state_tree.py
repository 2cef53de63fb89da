r"""Growing a tree whose leaves are states: what matters is what follows, not the features alone.

Rows are records of a log, with the values of their features as codes of bins. Each row has
*targets* :math:`y`, which describe what followed it. Within a leaf every action has means of its
own, so the squared error of a tree with leaves :math:`\ell` is

.. math::

    \sum_i w_i \, \lVert y_i - \bar y_{\ell(i), a_i} \rVert^2 .

Leaves are split one at a time, always the one, and at the place, that reduces the error most.
Differences between the actions of a leaf count more than what follows all of them, because
decisions rest on them. The number of leaves is the one that predicts rows of *other* units
(episodes) best, or the smallest that is within one standard error of it.

Where a goal gives each row a utility, the main target is the value of what followed,

.. math::

    y_i = u_i + \gamma \max_a Q(\ell(s'_i), a),

fitted Q iteration with one tree per round: the values Q of the last trees are the targets of the
next. A partition that tells values apart keeps optimal decisions optimal (Li, Walsh and Littman,
2006). The next features are targets as well, with a weight of their own: they show where the log
has few records, which values learned from it do not.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray

MOST_CATEGORY_TARGETS = 8
"""Categories of one feature that are targets, the most frequent ones."""

PRIOR_RECORDS = 5.0
"""Records of the leaf's mean that the value of each action begins with."""

MOST_SWEEPS = 1000
"""Sweeps of value iteration; with the default discount it settles in fewer."""


@dataclass(frozen=True, eq=False)
class Axis:
    """One feature, cut into bins.

    Attributes
    ----------
    num_bins : int
        Number of codes of values that are there.
    has_missing : bool
        Whether the code ``num_bins`` stands for a missing value.
    is_ordered : bool
        Whether the codes have an order; those of other categories are ordered by what follows.
    """

    num_bins: int
    has_missing: bool
    is_ordered: bool

    @property
    def num_codes(self) -> int:
        """Number of codes, with that of a missing value."""
        return self.num_bins + self.has_missing


@dataclass(frozen=True, eq=False)
class Rows:
    """Records of a log, as a tree is grown on them.

    Attributes
    ----------
    axes : sequence of Axis, one for each of F features
    codes : [N, F]
        The features of each record.
    next_axes : sequence of Axis
        Those of the features again; or one for the outcome of one-shot decisions, or none.
    next_codes : [N, number of next axes]
        What followed each record.
    action : [N]
        Index of the action.
    weight : [N]
    unit : [N]
        Index of the episode, or of the record where there are none.
    utility : [N], optional
        What the goal gives for the record.
    ends : [N], optional
        Whether the episode ended in a terminal state with this record.
    final_value : [N], optional
        The value of what comes after the end.
    is_one_shot : bool
        Whether decisions do not follow each other.
    """

    axes: Sequence[Axis]
    codes: IntArray
    next_axes: Sequence[Axis]
    next_codes: IntArray
    action: IntArray
    weight: FloatArray
    unit: IntArray
    utility: FloatArray | None = None
    ends: BoolArray | None = None
    final_value: FloatArray | None = None
    is_one_shot: bool = False

    def where(self, is_kept: BoolArray) -> Rows:
        """Some of the rows."""
        if is_kept.all():
            return self
        kept = {}
        for entry in ("codes", "next_codes", "action", "weight", "unit"):
            kept[entry] = getattr(self, entry)[is_kept]
        for entry in ("utility", "ends", "final_value"):
            values = getattr(self, entry)
            kept[entry] = None if values is None else values[is_kept]
        return replace(self, **kept)

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def num_actions(self) -> int:
        """Number of actions."""
        return int(self.action.max()) + 1


@dataclass(frozen=True, eq=False)
class Cut:
    """One step of growing: a leaf becomes two.

    Attributes
    ----------
    leaf : int
        The leaf that is cut; rows for which the answer is yes stay in it.
    feature : int
    yes : [codes]
        For each code of the feature, the answer.
    new_leaf : int
        The leaf of the others.
    """

    leaf: int
    feature: int
    yes: BoolArray
    new_leaf: int


def leaves_by(cuts: Sequence[Cut], codes: IntArray) -> IntArray:
    """The leaf of each row of codes [N, F] after these cuts: [N]."""
    leaf = np.zeros(len(codes), dtype=np.int64)
    for cut in cuts:
        rows = np.flatnonzero(leaf == cut.leaf)
        is_yes = cut.yes[codes[rows, cut.feature]]
        leaf[rows[~is_yes]] = cut.new_leaf
    return leaf


@dataclass(frozen=True)
class GrowthOptions:
    """How a tree is grown.

    Parameters
    ----------
    max_leaves : int
    min_records, min_units : int
        Records and episodes that every leaf has at least. 20 records give each of a few actions
        some; 5 episodes keep a leaf from describing one of them.
    shrinkage : float
        Prior weight of each action's mean; one record.
    num_folds : int
        Parts of the log for choosing the number of leaves.
    standard_errors : float
        How much worse than the best a smaller tree may predict.
    rounds : int
        Rounds of fitted Q iteration.
    discount : float
        Value of a utility one step later; the default looks about 100 steps ahead.
    memory : int
        Over how many of the last rounds values are averaged.
    features_weight : float
        Weight of all next features together, where that of the value is 1. A log need not show
        what the value depends on: with random actions, no cart runs off its track. Leaves that
        differ in all features let a planner see where the log has few records.
    contrast_weight : float
        How often differences between actions count, where what follows any action counts once.
        Decisions rest on the differences, which are small next to the rest: with 1, a tree spends
        its leaves on features that matter after any action. Both weights were chosen on logs of
        four worlds (``benchmarks/raw_worlds.py``).
    """

    max_leaves: int = 200
    min_records: int = 20
    min_units: int = 5
    shrinkage: float = 1.0
    num_folds: int = 5
    standard_errors: float = 1.0
    rounds: int = 8
    discount: float = 0.99
    memory: int = 4
    features_weight: float = 10.0
    contrast_weight: float = 10.0


def grow(rows: Rows, first_cuts: Sequence[Cut], options: GrowthOptions) -> list[Cut]:
    """The cuts of a tree for these rows, beginning with those that are given."""
    targets = _next_features(rows)
    if rows.utility is not None and np.ptp(rows.utility) > 0:
        targets = _values(rows, targets, first_cuts, options)
    if not targets.shape[1]:
        return list(first_cuts)
    number = _number_of_leaves(rows, targets, first_cuts, options)
    return _grown(rows, targets, first_cuts, replace(options, max_leaves=number))


# Growing by squared error.


def _grown(
    rows: Rows,
    targets: FloatArray,
    first_cuts: Sequence[Cut],
    options: GrowthOptions,
    among: IntArray | None = None,
) -> list[Cut]:
    """Cut the leaf that gains most until there are enough leaves, or none can be cut.

    Parameters
    ----------
    targets : [N, D]
    among : [n], optional
        The rows to learn from; all by default.
    """
    cuts = list(first_cuts)
    leaf = leaves_by(cuts, rows.codes)
    if among is None:
        among = np.arange(len(rows))
    num_leaves = len(cuts) + 1
    members = [among[leaf[among] == each] for each in range(num_leaves)]

    # Leaves by the gain of their best cut; the number breaks ties.
    waiting: list[tuple[float, int]] = []
    best_cuts: dict[int, tuple[int, BoolArray]] = {}

    def consider(number: int) -> None:
        found = _best_cut(rows, targets, members[number], options)
        if found is not None:
            gain, feature, yes = found
            best_cuts[number] = (feature, yes)
            heapq.heappush(waiting, (-gain, number))

    for number in range(num_leaves):
        consider(number)
    while waiting and num_leaves < options.max_leaves:
        _, number = heapq.heappop(waiting)
        feature, yes = best_cuts[number]
        inside = members[number]
        is_yes = yes[rows.codes[inside, feature]]
        cuts.append(Cut(number, feature, yes, num_leaves))
        members[number] = inside[is_yes]
        members.append(inside[~is_yes])
        consider(number)
        consider(num_leaves)
        num_leaves += 1
    return cuts


def _best_cut(
    rows: Rows, targets: FloatArray, inside: IntArray, options: GrowthOptions
) -> tuple[float, int, BoolArray] | None:
    """The gain, the feature and the answers of the best cut of some rows, if there is one."""
    from pastwise._numerics.histograms import histogram, split_gains

    if len(inside) < 2 * options.min_records:
        return None
    most_codes = max(axis.num_codes for axis in rows.axes)
    shape = (len(rows.axes), most_codes, rows.num_actions, 2 + targets.shape[1])
    sums = np.zeros(shape)
    histogram(inside, rows.codes, rows.action, rows.weight, targets, sums)

    # The gains of all cuts.
    found: list[tuple[float, int, BoolArray]] = []
    for feature, axis in enumerate(rows.axes):
        order = _order_of_codes(axis, sums[feature])
        gains = np.empty(axis.num_codes)
        by_code = np.ascontiguousarray(sums[feature, order])
        least = float(options.min_records)
        split_gains(by_code, least, options.shrinkage, options.contrast_weight, gains)
        for place in np.argsort(-gains, kind="stable")[:3].tolist():
            if gains[place] > 0:
                found.append((float(gains[place]), feature, _answers(axis, order, place)))
    found.sort(key=lambda each: (-each[0], each[1]))

    # The best that leaves enough episodes on both sides.
    for gain, feature, yes in found:
        is_yes = yes[rows.codes[inside, feature]]
        units = rows.unit[inside]
        if _has_units(units[is_yes], options) and _has_units(units[~is_yes], options):
            return gain, feature, yes
    return None


def _order_of_codes(axis: Axis, sums: FloatArray) -> IntArray:
    """Codes in the order in which they are cut: [codes]; a missing value comes last."""
    order = np.arange(axis.num_codes)
    if axis.is_ordered:
        return order
    # By the mean of the first target.
    by_code = sums[: axis.num_bins].sum(axis=1)
    means = by_code[:, 2] / np.maximum(by_code[:, 1], 1e-300)
    order[: axis.num_bins] = np.argsort(means, kind="stable")
    return order


def _answers(axis: Axis, order: IntArray, place: int) -> BoolArray:
    """The answers of a cut after a place in the order: [codes]."""
    yes = np.zeros(axis.num_codes, dtype=bool)
    yes[order[: place + 1]] = True
    separates_missing = axis.has_missing and place == axis.num_bins - 1
    return ~yes if separates_missing else yes


def _has_units(units: IntArray, options: GrowthOptions) -> bool:
    """Whether rows come from enough episodes."""
    # Most leaves show it in their first rows.
    if len(np.unique(units[: 10 * options.min_units])) >= options.min_units:
        return True
    return len(np.unique(units)) >= options.min_units


# Targets.


def _next_features(rows: Rows) -> FloatArray:
    """What followed each record, on scales of variance one around the means of actions: [N, D].

    Numbers by their rank, which outliers do not move; categories by whether each occurs. A feature
    that hardly ever changes weighs less: nobody needs a tree to predict it.
    """
    columns: list[FloatArray | BoolArray] = []
    weights: list[float] = []
    for feature, axis in enumerate(rows.next_axes):
        following = rows.next_codes[:, feature]
        num_before = len(columns)
        if axis.is_ordered:
            is_there = following < axis.num_bins
            middle = (axis.num_bins - 1) / 2
            columns.append(np.where(is_there, following, middle))
        else:
            frequency = np.bincount(following, minlength=axis.num_bins)[: axis.num_bins]
            for code in np.argsort(-frequency, kind="stable")[:MOST_CATEGORY_TARGETS].tolist():
                columns.append(following == code)
        if axis.has_missing:
            columns.append(following == axis.num_bins)
        weight = 1.0
        if not rows.is_one_shot:
            changes = float(np.mean(following != rows.codes[:, feature]))
            weight = min(1.0, changes / FULL_CHANGES)
        weights += [weight] * (len(columns) - num_before)
    if not columns:
        return np.empty((len(rows), 0))
    standardised = _standardised(rows, np.stack(columns, axis=-1).astype(np.float64))
    return np.asarray(standardised * np.sqrt(weights))


FULL_CHANGES = 0.1
"""Share of the records in which a feature changes its bin, from which on it counts in full."""


def _standardised(rows: Rows, columns: FloatArray) -> FloatArray:
    """Columns around the means of actions, divided by their standard deviation: [N, D]."""
    totals = np.bincount(rows.action, rows.weight, minlength=rows.num_actions)
    result = np.empty_like(columns)
    for d in range(columns.shape[1]):
        sums = np.bincount(rows.action, rows.weight * columns[:, d], minlength=rows.num_actions)
        means = sums / np.maximum(totals, 1e-300)
        centred = columns[:, d] - means[rows.action]
        variance = np.average(centred**2, weights=rows.weight)
        result[:, d] = centred / np.sqrt(variance) if variance > 0 else 0.0
    return result


def _values(
    rows: Rows, next_features: FloatArray, first_cuts: Sequence[Cut], options: GrowthOptions
) -> FloatArray:
    """The value of what followed each record, by fitted Q iteration, and what it was: [N, D]."""
    assert rows.utility is not None
    utility = rows.utility
    if rows.is_one_shot:
        return _standardised(rows, utility[:, None])
    targets = np.concatenate([_standardised(rows, utility[:, None]), next_features], axis=1)
    history: list[FloatArray] = []
    for _ in range(options.rounds):
        cuts = _grown(rows, targets, first_cuts, options)
        next_leaf = leaves_by(cuts, rows.next_codes)
        values = _leaf_values(rows, leaves_by(cuts, rows.codes), next_leaf, len(cuts) + 1, options)
        history.append(_after(rows, values[next_leaf]))
        following = np.mean(history[-options.memory :], axis=0)
        value = utility + options.discount * following
        targets = _standardised(rows, value[:, None])
    share = np.sqrt(options.features_weight / max(next_features.shape[1], 1))
    return np.concatenate([targets, share * next_features], axis=1)


def _after(rows: Rows, values: FloatArray) -> FloatArray:
    """Values of what followed [N], with those after the end where an episode ended."""
    if rows.ends is None or rows.final_value is None:
        return values
    return np.where(rows.ends, rows.final_value, values)


def _leaf_values(
    rows: Rows, leaf: IntArray, next_leaf: IntArray, num_leaves: int, options: GrowthOptions
) -> FloatArray:
    """The value of acting best from each leaf on: [leaves]."""
    from scipy import sparse

    assert rows.utility is not None
    A = rows.num_actions
    pair = leaf * A + rows.action
    goes_on = rows.weight
    utility = rows.utility
    if rows.ends is not None and rows.final_value is not None:
        goes_on = np.where(rows.ends, 0.0, rows.weight)
        utility = utility + options.discount * np.where(rows.ends, rows.final_value, 0.0)
    shape = (num_leaves * A, num_leaves)
    following = sparse.csr_array((goes_on, (pair, next_leaf)), shape=shape)
    collected = np.bincount(pair, rows.weight * utility, minlength=num_leaves * A)
    weight = np.bincount(pair, rows.weight, minlength=num_leaves * A).reshape(num_leaves, A)
    in_leaf = np.maximum(weight.sum(axis=1), 1e-300)

    # Actions with few records are near the mean of their leaf.
    prior = PRIOR_RECORDS
    value = np.zeros(num_leaves)
    for _ in range(MOST_SWEEPS):
        total = (collected + options.discount * (following @ value)).reshape(num_leaves, A)
        mean = total.sum(axis=1) / in_leaf
        q = (total + prior * mean[:, None]) / (weight + prior)
        after = q.max(axis=1)
        change = np.abs(after - value).max()
        value = after
        if change < 1e-6 * max(1.0, np.abs(value).max()):
            break
    return value


# The number of leaves.


def _number_of_leaves(
    rows: Rows, targets: FloatArray, first_cuts: Sequence[Cut], options: GrowthOptions
) -> int:
    """The number of leaves that predicts other units best, or the smallest nearly as good."""
    least = len(first_cuts) + 1
    fold = _folds(rows.unit, options.num_folds)
    if fold.max() < 1:
        return options.max_leaves
    paths = []
    for each in range(int(fold.max()) + 1):
        learned_from = np.flatnonzero(fold != each)
        judged_by = np.flatnonzero(fold == each)
        cuts = _grown(rows, targets, first_cuts, options, learned_from)
        paths.append(_errors(rows, targets, cuts, least, learned_from, judged_by, options))

    # A path that ended early stays at its last error.
    longest = max(len(path) for path in paths)
    padded = [np.pad(path, (0, longest - len(path)), mode="edge") for path in paths]
    errors = np.stack(padded)
    mean = errors.mean(axis=0)
    best = int(mean.argmin())
    excess = errors - errors[:, [best]]
    spread = excess.std(axis=0, ddof=1) / np.sqrt(len(errors))
    is_near = mean <= mean[best] + options.standard_errors * spread
    return least + int(np.flatnonzero(is_near)[0])


def _folds(unit: IntArray, number: int) -> IntArray:
    """The fold of each row; units are dealt out in turn by their index, which is shuffled."""
    return unit % min(number, int(unit.max()) + 1)


def _errors(
    rows: Rows,
    targets: FloatArray,
    cuts: Sequence[Cut],
    least: int,
    learned_from: IntArray,
    judged_by: IntArray,
    options: GrowthOptions,
) -> FloatArray:
    """Mean squared error on other rows after each cut, from the first ``least`` leaves on."""
    first = cuts[: least - 1]
    leaf = leaves_by(first, rows.codes)
    weight = rows.weight[judged_by]

    def squared_errors(number: int) -> float:
        """Sum of the squared errors in one leaf."""
        learned = learned_from[leaf[learned_from] == number]
        judged = judged_by[leaf[judged_by] == number]
        common, by_action = _shrunk_means(rows, targets, learned, options)
        weight = rows.weight[judged][:, None]
        of_common = float((weight * (targets[judged] - common) ** 2).sum())
        of_actions = float((weight * (targets[judged] - by_action[rows.action[judged]]) ** 2).sum())
        return of_common - options.contrast_weight * (of_common - of_actions)

    in_leaf = {number: squared_errors(number) for number in range(least)}
    total = sum(in_leaf.values())
    errors = [total]
    for cut in cuts[least - 1 :]:
        inside = np.flatnonzero(leaf == cut.leaf)
        is_yes = cut.yes[rows.codes[inside, cut.feature]]
        leaf[inside[~is_yes]] = cut.new_leaf
        total -= in_leaf[cut.leaf]
        for number in (cut.leaf, cut.new_leaf):
            in_leaf[number] = squared_errors(number)
            total += in_leaf[number]
        errors.append(total)
    return np.asarray(np.array(errors) / weight.sum())


def _shrunk_means(
    rows: Rows, targets: FloatArray, learned: IntArray, options: GrowthOptions
) -> tuple[FloatArray, FloatArray]:
    """Means of the targets, of all rows and by action, shrunk towards 0: [D], [A, D]."""
    action = rows.action[learned]
    weight = rows.weight[learned]
    total = np.bincount(action, weight, minlength=rows.num_actions)
    sums = np.empty((rows.num_actions, targets.shape[1]))
    for d in range(targets.shape[1]):
        values = weight * targets[learned, d]
        sums[:, d] = np.bincount(action, values, minlength=rows.num_actions)
    common = sums.sum(axis=0) / (total.sum() + options.shrinkage)
    return common, sums / (total + options.shrinkage)[:, None]
