"""Learning a partition of raw columns from a log.

    log --sample, in its engine--> values --bins--> codes --grow--> cuts --> Partition

A bounded sample leaves the engine; its size does not depend on that of the log. The values of each
feature become codes of bins between candidate thresholds, quantiles of the sample that are rounded
to short numbers. Conditions of the goal are candidates as they are, and the first cuts of the tree
decide them, so no leaf straddles a condition. `models.state_tree` makes the other cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, inf, log10
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.data.conditions import (
    Condition,
    about,
    as_condition,
    incomparable,
    parse_condition,
)
from pastwise.data.partition import ROOT, Feature, Partition, Split, TreeBuilder
from pastwise.data.space import Label, Space
from pastwise.errors import ConditionError, LogError, ParameterError, PastwiseError
from pastwise.goals.goal import Goal
from pastwise.logs.columns import Columns, require_columns
from pastwise.logs.decode import as_numpy, numbers_of
from pastwise.logs.expressions import feature_value, is_date, is_missing, kind_of
from pastwise.logs.query import numeric, sampled
from pastwise.logs.sources import ROW
from pastwise.models.state_tree import Axis, Cut, GrowthOptions, Rows, grow, leaves_by

MOST_CATEGORIES = 1000
"""A feature with more categories than this is free text or an identifier."""

MOST_ACTIONS = 16
"""Actions with means of their own when a tree is grown; rarer ones share theirs."""

LEAST_UNITS = 10
"""Episodes that a log needs for its leaves to be chosen by episodes; otherwise by records."""


def with_partition(frame: nw.LazyFrame[Any], columns: Columns, goal: Goal | None = None) -> Columns:
    """The columns with a partition of their features, learned from the log unless it is known."""
    if not columns.features or columns.partition is not None:
        return columns
    partition = learn_partition(frame, columns, goal)
    terminal = _terminal_leaves(columns.terminal, partition)
    return replace(columns, partition=partition, terminal=terminal)


def _terminal_leaves(terminal: Sequence[Label], partition: Partition) -> tuple[Label, ...]:
    """Terminal states, with the leaves that satisfy a condition in place of the condition."""
    regions = partition.regions()
    known = [feature.name for feature in partition.features]
    labels: dict[Label, None] = {}
    for given in terminal:
        if given in regions:
            labels[given] = None
            continue
        try:
            condition = parse_condition(str(given))
        except ConditionError as error:
            raise ParameterError(f"terminal: no state, and no condition: {error}") from None
        for name in condition.columns:
            if name not in known:
                raise ParameterError(
                    f"terminal: {given}: {name!r} is none of the features, which are "
                    f"{', '.join(known)}"
                )
        problem = incomparable(condition, regions.values())
        if problem is not None:
            raise ParameterError(f"terminal: {given}: {problem}")
        for label, region in regions.items():
            if condition.decide(region):
                labels[label] = None
    return tuple(labels)


def _conditions_of(goal: Goal | None, columns: Columns) -> list[Condition]:
    """The conditions that a goal and the terminal states are stated by."""
    conditions = []
    for label in columns.terminal:
        condition = as_condition(label)
        if condition is not None:
            conditions.append(condition)
    if goal is not None:
        conditions += goal.conditions()
    return about(conditions, columns.features)


def learn_partition(
    frame: nw.LazyFrame[Any],
    columns: Columns,
    goal: Goal | None = None,
    *,
    sample_rows: int = 100_000,
    num_thresholds: int = 64,
    seed: int = 0,
) -> Partition:
    """Learn a partition of the features of a log.

    Parameters
    ----------
    frame : lazy frame
        The log, as `open_table` returns it.
    columns : Columns
        With features.
    goal : Goal, optional
        What is wanted. Every leaf decides its conditions, and leaves differ in how far they serve
        it. Conditions on other columns than the features are ignored.
    sample_rows : int
        How many records to learn from, about.
    num_thresholds : int
        Candidate thresholds of each feature.
    seed : int
        Which sample to take.
    """
    schema = frame.collect_schema()
    require_columns(columns, [name for name in schema if name != ROW])
    conditions = _conditions_of(goal, columns)
    features = _described(frame, columns, conditions)
    query = sampled(frame, columns, features, sample_rows, seed=seed)
    table = query.collect(backend="pyarrow").to_native()
    if not len(table):
        raise LogError("the log has no usable transition: no record is followed by another")

    # The conditions come first; bins have their thresholds.
    first = Partition(tuple(features)).cut_for(conditions)
    if len(first) > columns.max_states:
        raise ParameterError(
            f"the goal's conditions alone need {len(first)} states, more than max_states, which is "
            f"{columns.max_states}: raise it, or name fewer conditions"
        )
    scales = []
    for place, feature in enumerate(features):
        values = _values_of(table, feature, f"state value {place}")
        scales.append(Scale.of(feature, values, _edges_in(first, place), num_thresholds))
    first_cuts = FirstCuts.of(first, scales)

    # Grow the tree below them.
    rows = _rows_of(table, columns, scales)
    options = GrowthOptions(max_leaves=columns.max_states)
    if goal is not None and not goal.maximise and not columns.is_one_shot:
        terminal = _conditions_of(None, columns)
        rows = _with_utility(rows, first_cuts, terminal, goal, options.discount)
    if rows.unit.max() + 1 < LEAST_UNITS:
        rows = replace(rows, unit=np.arange(len(rows)))
        options = replace(options, min_units=1)
    cuts = grow(rows, first_cuts.cuts, options)
    return replace(_partition_of(features, scales, cuts), num_records=len(rows))


# Features.


def _described(
    frame: nw.LazyFrame[Any], columns: Columns, conditions: Sequence[Condition]
) -> list[Feature]:
    """The features with their kinds, categories, and whether they are ever missing."""
    schema = frame.collect_schema()
    features = []
    for name in columns.features:
        dtype = schema[name]
        features.append(Feature(name, kind_of(name, dtype), is_date=is_date(dtype)))

    # Missing values of all features in one query.
    sums = {}
    for place, feature in enumerate(features):
        for column in _columns_of(columns, place):
            value = feature_value(feature, column, schema, numeric)
            sums[column] = is_missing(feature, value).cast(nw.Int64).sum()
    missing = frame.select(**sums).collect(backend="pyarrow").to_native().to_pylist()[0]

    described = []
    for place, feature in enumerate(features):
        names = _columns_of(columns, place)
        may_be_missing = any(missing[column] for column in names)
        categories: tuple[str | bool, ...] = ()
        if feature.kind == "category":
            categories = _categories(frame, feature, names, conditions)
        described.append(replace(feature, categories=categories, may_be_missing=may_be_missing))
    return described


def _columns_of(columns: Columns, place: int) -> list[str]:
    """The columns that hold the values of a feature."""
    names = [columns.features[place]]
    if columns.next_features:
        names.append(columns.next_features[place])
    return names


def _categories(
    frame: nw.LazyFrame[Any],
    feature: Feature,
    names: Sequence[str],
    conditions: Sequence[Condition],
) -> tuple[str, ...]:
    """The categories of a feature: in their own order if they have one, otherwise sorted."""
    schema = frame.collect_schema()
    found: set[str] = set()
    for name in names:
        value = feature_value(feature, name, schema, numeric).alias("value")
        distinct = frame.select(value).unique().head(MOST_CATEGORIES + 2)
        rows = distinct.collect(backend="pyarrow").to_native().column("value").to_pylist()
        found.update(row for row in rows if row is not None)
    if len(found) > MOST_CATEGORIES:
        raise LogError(
            f"the feature {feature.name!r} has more than {MOST_CATEGORIES:,} different values: it "
            "looks like free text or an identifier. Group its values, or leave it out"
        )

    # Categories that only the goal names are known, too.
    for condition in conditions:
        for atom in condition.atoms():
            if atom.column == feature.name:
                found.update(each for each in atom.literals if isinstance(each, str))
    dtype = schema[feature.name]
    declared = tuple(dtype.categories) if isinstance(dtype, nw.Enum) else ()
    return (*declared, *sorted(found - set(declared)))


@dataclass(frozen=True, eq=False)
class Scale:
    """The bins of one feature.

    Attributes
    ----------
    feature : Feature
    edges : [thresholds]
        Candidate thresholds of a number, ascending.
    is_ordered : bool
    """

    feature: Feature
    edges: FloatArray
    is_ordered: bool

    @classmethod
    def of(
        cls, feature: Feature, values: FloatArray | IntArray, exact: Sequence[float], number: int
    ) -> Scale:
        """The bins between candidate thresholds, with exact ones among them."""
        if feature.kind != "number":
            return cls(feature, np.empty(0), is_ordered=feature.kind == "boolean")
        thresholds = _thresholds(values, number)
        edges = np.union1d(thresholds, np.array(exact, dtype=np.float64))
        return cls(feature, edges + 0.0, True)  # no negative zero

    @property
    def axis(self) -> Axis:
        """The bins, as a tree is grown on them."""
        number = len(self.edges) + 1
        if self.feature.kind != "number":
            number = len(self.feature.categories)
        return Axis(number, self.feature.may_be_missing, self.is_ordered)

    def codes(self, values: FloatArray | IntArray) -> IntArray:
        """The code of each value: [N]."""
        if self.feature.kind != "number":
            codes = values.astype(np.int64)
            return np.where(codes < 0, self.axis.num_bins, codes)
        codes = np.searchsorted(self.edges, values, side="right")
        return np.where(np.isnan(values), self.axis.num_bins, codes)

    def answers(self, question: Split) -> BoolArray:
        """The answer to a question for each code."""
        yes = np.zeros(self.axis.num_codes, dtype=bool)
        if question.is_missing:
            yes[self.axis.num_bins :] = True
        elif question.below is not None:
            yes[: int(np.searchsorted(self.edges, question.below)) + 1] = True
        else:
            for code, category in enumerate(self.feature.categories):
                yes[code] = category in (question.among or ())
        return yes

    def question(self, yes: BoolArray, feature: int) -> Split:
        """The question with these answers, on the feature at this place."""
        codes = np.flatnonzero(yes)
        if codes[0] == self.axis.num_bins:
            return Split(feature, 0, 0, is_missing=True)
        if self.feature.kind == "number":
            return Split(feature, 0, 0, below=float(self.edges[codes[-1]]))
        among = tuple(self.feature.categories[code] for code in codes.tolist())
        return Split(feature, 0, 0, among=among)


def _thresholds(values: FloatArray | IntArray, number: int) -> FloatArray:
    """Quantiles of the values, rounded to short numbers that are still fine on their scale."""
    finite = np.sort(values[np.isfinite(values)])
    distinct = np.unique(finite)
    if len(distinct) < 2:
        return np.empty(0)

    # Where to cut: between different values if they are few, otherwise at quantiles.
    if len(distinct) <= number + 1:
        above = distinct[1:]
        below = distinct[:-1]
    else:
        places = np.linspace(0, len(finite), number + 2)[1:-1].astype(np.int64)
        above = np.setdiff1d(finite[places], distinct[:1])
        below = distinct[np.searchsorted(distinct, above) - 1]
    if (distinct == np.floor(distinct)).all():
        return np.asarray(above, dtype=np.float64)  # whole numbers are short already

    # Round where that is fine enough; otherwise go between the neighbours.
    spread = above[-1] - above[0] if len(above) > 1 else above[0] - below[0]
    thresholds = set()
    digits = 2 - floor(log10(spread)) if 0 < spread < inf else 0
    for low, high in zip(below.tolist(), above.tolist(), strict=True):
        rounded = round(high, digits)
        is_between = low < rounded <= high
        if len(distinct) <= number + 1 and not is_between:
            rounded = _short_between(low, high)
        thresholds.add(rounded)
    return np.array(sorted(thresholds))


def _short_between(low: float, high: float) -> float:
    """A short number above the first and up to the second."""
    middle = low / 2 + high / 2
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if low < rounded <= high:
            return rounded
    return high


# Conditions.


@dataclass(frozen=True, eq=False)
class FirstCuts:
    """The cuts that make the leaves of a partition.

    Attributes
    ----------
    partition : Partition
    cuts : sequence of Cut
    leaf : [leaves]
        For each leaf that the cuts make, that of the partition.
    """

    partition: Partition
    cuts: Sequence[Cut]
    leaf: IntArray

    @classmethod
    def of(cls, partition: Partition, scales: Sequence[Scale]) -> FirstCuts:
        """The cuts of a partition whose thresholds are edges of the scales."""
        cuts: list[Cut] = []
        leaf = np.zeros(len(partition), dtype=np.int64)
        waiting = [(0, 0)] if partition.splits else []
        while waiting:
            node, number = waiting.pop()
            split = partition.splits[node]
            new = len(cuts) + 1
            cuts.append(Cut(number, split.feature, scales[split.feature].answers(split), new))
            for child, number_of_child in ((split.no, new), (split.yes, number)):
                if child >= 0:
                    waiting.append((child, number_of_child))
                else:
                    leaf[number_of_child] = -1 - child
        return cls(partition, cuts, leaf)


def _edges_in(partition: Partition, place: int) -> list[float]:
    """The thresholds of one feature in a partition."""
    edges = []
    for split in partition.splits:
        if split.feature == place and split.below is not None:
            edges.append(split.below)
    return edges


# Rows.


def _values_of(table: pa.Table, feature: Feature, name: str) -> FloatArray | IntArray:
    """A column of the sample, encoded: [N]."""
    if feature.kind == "number":
        return numbers_of(table, name)
    return feature.encode(table.column(name).to_pylist())


def _rows_of(table: pa.Table, columns: Columns, scales: Sequence[Scale]) -> Rows:
    """The sample, as a tree is grown on it, in an order that depends on nothing but its rows."""
    codes = _codes_of(table, scales, "state")
    next_codes, next_axes = _what_followed(table, scales, columns)
    action = _actions_of(table, columns)
    weight = np.ones(len(table))
    for name in ("count", "weight"):
        if name in table.column_names:
            weight = weight * np.nan_to_num(numbers_of(table, name))
    usable = (action >= 0) & (weight > 0)
    utility = None
    if columns.reward:
        utility = numbers_of(table, "reward")
        usable &= np.isfinite(utility)
    if not usable.any():
        raise LogError("the log has no usable transition: no record has an action")

    # Rows with equal keys are interchangeable.
    keys = [*codes.T, *next_codes.T, action, weight]
    if utility is not None:
        keys.append(utility)
    unit = None
    if columns.episode:
        unit = _ranks(table.column("episode"))
        keys.append(unit)
    order = np.lexsort(keys)
    order = order[usable[order]]
    return Rows(
        axes=[scale.axis for scale in scales],
        next_axes=next_axes,
        codes=np.ascontiguousarray(codes[order]),
        next_codes=np.ascontiguousarray(next_codes[order]),
        action=action[order],
        weight=weight[order],
        unit=np.arange(len(order)) if unit is None else _scrambled(unit)[order],
        utility=None if utility is None else utility[order],
        is_one_shot=columns.is_one_shot,
    )


def _codes_of(table: pa.Table, scales: Sequence[Scale], part: str) -> IntArray:
    """The codes of all features: [N, F]."""
    codes = []
    for place, scale in enumerate(scales):
        values = _values_of(table, scale.feature, f"{part} value {place}")
        codes.append(scale.codes(values))
    return np.stack(codes, axis=-1)


def _what_followed(
    table: pa.Table, scales: Sequence[Scale], columns: Columns
) -> tuple[IntArray, list[Axis]]:
    """The codes of the next features, or of the outcome, and their axes."""
    if not columns.is_one_shot:
        return _codes_of(table, scales, "next"), [scale.axis for scale in scales]
    if columns.outcome:
        outcome, axis = _outcomes_of(table)
        return outcome[:, None], [axis]
    return np.empty((len(table), 0), dtype=np.int64), []


def _outcomes_of(table: pa.Table) -> tuple[IntArray, Axis]:
    """The code of each record's outcome, with numbers in bins."""
    column = table.column("outcome")
    dtype = column.type
    is_number = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
    if is_number or pa.types.is_decimal(dtype):
        values = numbers_of(table, "outcome")
        scale = Scale.of(Feature("outcome", "number", may_be_missing=True), values, [], 10)
        return scale.codes(values), scale.axis
    ranks = _ranks(column)
    number = int(ranks.max()) + 1
    return np.where(ranks < 0, number, ranks), Axis(number, has_missing=True, is_ordered=False)


def _with_utility(
    rows: Rows, first: FirstCuts, terminal: Sequence[Condition], goal: Goal, discount: float
) -> Rows:
    """The rows with what the goal gives for each, if that depends on the features alone.

    Otherwise they keep the log's reward, if it has one.
    """
    partition = first.partition
    states = Space(partition.labels)
    try:
        resolved = goal.resolved(lambda: dict(partition.regions().items()), states)
        score = resolved.score(states, Space.of_size(rows.num_actions))
    except PastwiseError:
        return rows  # it is about something else than the features
    if score.size != len(states):
        return rows

    # Where episodes end.
    regions = partition.regions().values()
    is_terminal = np.zeros(len(states), dtype=bool)
    for condition in terminal:
        is_terminal |= np.array([condition.decide(region) is True for region in regions])
    score = score.reshape(-1)
    leaf = first.leaf[leaves_by(first.cuts, rows.codes)]
    next_leaf = first.leaf[leaves_by(first.cuts, rows.next_codes)]

    # A goal that wants other states as well goes on in a terminal one.
    final_value = np.zeros(len(states))
    if score[~is_terminal].any():
        final_value = score / (1 - discount)
    rows = replace(
        rows,
        utility=score[next_leaf],
        ends=is_terminal[next_leaf],
        final_value=final_value[next_leaf],
    )
    return rows.where(~is_terminal[leaf])


def _actions_of(table: pa.Table, columns: Columns) -> IntArray:
    """The index of each record's action, -1 where it is missing; rare ones share the last."""
    ranks = []
    for place in range(len(columns.action)):
        ranks.append(_ranks(table.column(f"action {place}")))
    stacked = np.stack(ranks)
    is_missing = (stacked < 0).any(axis=0)
    _, action, numbers = np.unique(stacked, axis=1, return_inverse=True, return_counts=True)
    action = action.ravel()
    numbers = numbers - np.bincount(action[is_missing], minlength=len(numbers))
    by_frequency = np.argsort(-numbers, kind="stable")
    index = np.empty(len(numbers), dtype=np.int64)
    index[by_frequency] = np.minimum(np.arange(len(numbers)), MOST_ACTIONS - 1)
    return np.where(is_missing, -1, index[action])


def _ranks(column: pa.ChunkedArray) -> IntArray:
    """The rank of each value among those that occur, -1 where it is missing: [N]."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    order = pa.compute.sort_indices(encoded.dictionary)
    rank = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
    rank[as_numpy(pa.chunked_array([order])).astype(np.int64)] = np.arange(len(order))
    rank[-1] = -1
    places = encoded.indices.fill_null(len(order))
    indices: IntArray = as_numpy(pa.chunked_array([places])).astype(np.int64)
    return rank[indices]


def _scrambled(unit: IntArray) -> IntArray:
    """Ranks of episodes in an order that has nothing to do with their names."""
    number = int(unit.max()) + 1
    return np.random.default_rng(0).permutation(number)[unit]


# The partition.


def _partition_of(
    features: Sequence[Feature], scales: Sequence[Scale], cuts: Sequence[Cut]
) -> Partition:
    """The tree that the cuts make; nodes and leaves are numbered from left to right."""
    # What came of each side of a cut: a later cut, or nothing.
    children: dict[int, int] = {}
    slot_of_leaf: dict[int, int] = {}
    for number, cut in enumerate(cuts):
        if cut.leaf in slot_of_leaf:
            children[slot_of_leaf[cut.leaf]] = number
        slot_of_leaf[cut.leaf] = 2 * number
        slot_of_leaf[cut.new_leaf] = 2 * number + 1

    builder = TreeBuilder()
    waiting: list[tuple[int | None, int]] = [(0 if cuts else None, ROOT)]
    while waiting:
        made, slot = waiting.pop()
        if made is None:
            builder.add_leaf(slot)
            continue
        cut = cuts[made]
        question = scales[cut.feature].question(cut.yes, cut.feature)
        index = builder.add_split(question, slot)
        waiting.append((children.get(2 * made + 1), 2 * index + 1))
        waiting.append((children.get(2 * made), 2 * index))
    return Partition(tuple(features), builder.splits())
