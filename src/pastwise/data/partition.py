"""Partition: a decision tree over raw columns whose leaves are the states.

Every inner node asks one question about one feature: is it below a threshold, is it one of some
categories, or is it missing? The first two are answered *no* where the value is missing. A leaf is
a state; its label is the conjunction of the answers that lead to it, such as ``lactate >= 2.3 and
map < 65``. Thresholds are short in labels, and exact in the tree.

A row has no leaf if it misses a feature of the tree that no record missed when the tree was grown:
nothing is known about such rows. A category that the tree has never seen is in none of its sets.

The tree is plain data. It is applied here in Python; `logs.expressions` compiles it to an
expression that runs where the data are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import inf, isfinite, isnan, nextafter
from typing import Any, Literal

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.data.conditions import (
    Comparison,
    Condition,
    about,
    column_text,
    literal_text,
)
from pastwise.data.regions import (
    Categories,
    Interval,
    Missing,
    Region,
    Values,
    is_missing,
    seconds_of,
)
from pastwise.data.space import key_of, words_among
from pastwise.errors import LabelError, ParameterError

Kind = Literal["number", "boolean", "category"]

KINDS = ("number", "boolean", "category")

NO_LEAF = -1
"""Leaf of a row that misses a value which was never missing when the tree was grown."""

MISSING_CODE = -1
UNSEEN_CODE = -2


@dataclass(frozen=True)
class Feature:
    """A raw column that the tree may ask about.

    Attributes
    ----------
    name : str
    kind : "number", "boolean" or "category"
        Dates are numbers: seconds since 1970.
    categories : tuple
        The known categories of a feature that is not a number, in their order.
    may_be_missing : bool
        Whether a value was missing in the log that the tree was grown on.
    is_date : bool
        Whether the numbers are dates, which labels show as such.
    """

    name: str
    kind: Kind
    categories: tuple[str | bool, ...] = ()
    may_be_missing: bool = False
    is_date: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"feature {self.name!r}: no kind {self.kind!r}")
        if self.kind == "boolean":
            object.__setattr__(self, "categories", (False, True))

    @cached_property
    def words(self) -> Mapping[str, str]:
        """For the words true and false, the category that tables spell so, if it is only one."""
        return words_among(self.categories)

    def value_of(self, given: object) -> float | str | bool | None:
        """A value of a row in the form that the tree compares; None if it is missing."""
        if type(given) is float and self.kind == "number":
            return None if isnan(given) else given
        if is_missing(given):
            return None
        if isinstance(given, np.generic):
            given = given.item()
        if self.kind == "number":
            return _number(self.name, given, self.is_date)
        if self.kind == "boolean":
            return _truth(self.name, given)
        text = key_of(given)
        if not isinstance(given, (str, int)) and text not in self.categories:
            raise LabelError(
                f"{self.name!r} is {given!r}, which is not text, as its categories are"
            )
        return self.words.get(text.lower(), text)

    def encode(self, values: Sequence[object] | np.ndarray[Any, Any]) -> FloatArray | IntArray:
        """Values as the tree compares them: numbers with NaN, or codes of categories: [N].

        A missing category has the code -1, an unknown one -2.
        """
        if self.kind == "number":
            if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
                return values.astype(np.float64)
            numbers = [self.value_of(value) for value in values]
            return np.array(numbers, dtype=np.float64)  # None becomes NaN
        places: dict[object, int] = {}
        for code, category in enumerate(self.categories):
            places[category] = code
        places[None] = MISSING_CODE
        codes = [places.get(self.value_of(value), UNSEEN_CODE) for value in values]
        return np.array(codes, dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        content: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.kind == "category":
            content["categories"] = list(self.categories)
        content["may_be_missing"] = self.may_be_missing
        if self.is_date:
            content["is_date"] = True
        return content


@dataclass(frozen=True)
class Split:
    """An inner node: a question about one feature, and where the answers lead.

    Exactly one of ``below``, ``among`` and ``is_missing`` is set.

    Attributes
    ----------
    feature : int
        Place of the feature.
    yes, no : int
        The next node; ``-1 - leaf`` for a leaf.
    below : float, optional
        Is the value below this threshold?
    among : tuple, optional
        Is the value one of these categories?
    is_missing : bool
        Is the value missing?
    """

    feature: int
    yes: int
    no: int
    below: float | None = None
    among: tuple[str | bool, ...] | None = None
    is_missing: bool = False

    def __post_init__(self) -> None:
        questions = (self.below is not None, self.among is not None, self.is_missing)
        if sum(questions) != 1:
            raise ParameterError("a split asks exactly one question")

    def holds(self, value: float | str | bool | None) -> bool:
        """The answer for one value."""
        if value is None:
            return self.is_missing
        if self.below is not None:
            return value < self.below  # type: ignore[operator]
        return self.among is not None and value in self.among

    def to_dict(self, name: str) -> dict[str, Any]:
        """Plain values by name, for JSON, which has no infinity."""
        content: dict[str, Any] = {"feature": name}
        if self.below is not None:
            content["below"] = self.below if isfinite(self.below) else str(self.below)
        elif self.among is not None:
            content["among"] = list(self.among)
        else:
            content["is_missing"] = True
        return {**content, "yes": self.yes, "no": self.no}


@dataclass(frozen=True)
class Restriction:
    """What the path to a leaf says about one feature.

    Attributes
    ----------
    low, high : float
        A number is at least ``low`` and below ``high``.
    categories : tuple, optional
        The known categories that are left; None for a number.
    excluded : frozenset
        The known categories that are not left.
    takes_unseen : bool
        Whether a category that the tree does not know can be here.
    missing : "no", "only" or "too"
        Whether the value is there, is missing, or may be either.
    is_date : bool
        Whether the numbers are dates.
    """

    low: float = -inf
    high: float = inf
    categories: tuple[str | bool, ...] | None = None
    excluded: frozenset[str | bool] = frozenset()
    takes_unseen: bool = True
    missing: Literal["no", "only", "too"] = "no"
    is_date: bool = False

    @classmethod
    def none(cls, feature: Feature) -> Restriction:
        """No restriction."""
        missing: Literal["no", "too"] = "too" if feature.may_be_missing else "no"
        if feature.kind == "number":
            return cls(missing=missing, is_date=feature.is_date)
        takes_unseen = feature.kind == "category"
        return cls(categories=feature.categories, takes_unseen=takes_unseen, missing=missing)

    def after(self, split: Split, answer: bool) -> Restriction:
        """What is known after one more answer."""
        if split.is_missing:
            return replace(self, missing="only" if answer else "no")
        known = replace(self, missing="no") if answer else self
        if split.below is not None:
            if answer:
                return replace(known, high=min(self.high, split.below))
            return replace(known, low=max(self.low, split.below))
        among = split.among or ()
        categories = self.categories or ()
        left = tuple(each for each in categories if (each in among) == answer)
        return replace(
            known,
            categories=left,
            excluded=self.excluded | (set(categories) - set(left)),
            takes_unseen=self.takes_unseen and not answer,
        )

    @property
    def _has_no_value(self) -> bool:
        """Whether no value that is there can be here."""
        if self.categories is None:
            return self.low >= self.high
        return not self.categories and not self.takes_unseen

    @property
    def values(self) -> Values:
        """The values that are left."""
        or_missing = self.missing == "too"
        if self.missing == "only" or (or_missing and self._has_no_value):
            return Missing()
        if self.categories is None:
            return Interval(self.low, self.high, or_missing=or_missing, is_date=self.is_date)
        if self.takes_unseen:
            return Categories(self.excluded, is_complement=True, or_missing=or_missing)
        return Categories(frozenset(self.categories), or_missing=or_missing)


@dataclass(frozen=True)
class Partition:
    """A tree over raw columns; its leaves are states.

    Attributes
    ----------
    features : tuple of Feature
    splits : tuple of Split
        The inner nodes; the first is the root. A tree of one leaf has none.
    num_records : int, optional
        How many records of a log the tree was learned from.

    Examples
    --------
    >>> lactate = Feature("lactate", "number")
    >>> ward = Feature("ward", "category", ("icu", "general"))
    >>> splits = (Split(0, -1, 1, below=2.3), Split(1, -2, -3, among=("icu",)))
    >>> partition = Partition((lactate, ward), splits)
    >>> partition.labels
    ('lactate < 2.3', 'lactate >= 2.3 and ward == icu', 'lactate >= 2.3 and ward != icu')
    >>> partition.leaf_of({"lactate": 4.1, "ward": "general"})
    2
    """

    features: tuple[Feature, ...]
    splits: tuple[Split, ...] = ()
    num_records: int | None = None

    def __post_init__(self) -> None:
        names = [feature.name for feature in self.features]
        if len(set(names)) != len(names):
            raise ParameterError("a partition names a feature twice")
        self._check_tree()

    def _check_tree(self) -> None:
        """Refuse nodes that do not form one tree with consecutive leaves."""
        children: list[int] = []
        for index, split in enumerate(self.splits):
            if not 0 <= split.feature < len(self.features):
                raise ParameterError(f"split {index} asks about a feature that is not there")
            self._check_question(split)
            for child in (split.yes, split.no):
                if 0 <= child <= index:
                    raise ParameterError(f"split {index} leads back to split {child}")
                children.append(child)
        inner = sorted(child for child in children if child >= 0)
        leaves = sorted(-1 - child for child in children if child < 0)
        if inner != list(range(1, len(self.splits))):
            raise ParameterError("the splits of a partition must form one tree")
        if self.splits and leaves != list(range(len(self.splits) + 1)):
            raise ParameterError("the leaves of a partition must be numbered from 0 on")

    def _check_question(self, split: Split) -> None:
        feature = self.features[split.feature]
        if split.below is not None and (feature.kind != "number" or isnan(split.below)):
            raise ParameterError(f"feature {feature.name!r} cannot be below {split.below!r}")
        if split.among is not None and feature.kind == "number":
            raise ParameterError(f"feature {feature.name!r} is a number and has no categories")

    def __len__(self) -> int:
        return self.num_leaves

    @property
    def num_leaves(self) -> int:
        """Number of leaves."""
        return len(self.splits) + 1

    @cached_property
    def used(self) -> tuple[int, ...]:
        """Places of the features that the tree asks about, ascending."""
        return tuple(sorted({split.feature for split in self.splits}))

    # Applying the tree.

    def leaf_of(self, row: Mapping[str, object]) -> int:
        """The leaf of one row, by column; `NO_LEAF` if a value is missing that never was."""
        values: list[float | str | bool | None] = [None] * len(self.features)
        for place in self.used:
            feature = self.features[place]
            if feature.name not in row:
                raise LabelError(
                    f"the row has no column {feature.name!r}; give None where it is missing"
                )
            value = feature.value_of(row[feature.name])
            if value is None and not feature.may_be_missing:
                return NO_LEAF
            values[place] = value
        splits = self.splits
        node = 0 if splits else -1
        while node >= 0:
            split = splits[node]
            node = split.yes if split.holds(values[split.feature]) else split.no
        return -1 - node

    def has_new_category(self, row: Mapping[str, object]) -> bool:
        """Whether a row has an unknown category of a feature that the tree asks about."""
        for place in self.used:
            feature = self.features[place]
            if feature.kind != "category":
                continue
            value = feature.value_of(row[feature.name])
            if value is not None and value not in feature.categories:
                return True
        return False

    def absent_in(self, row: Mapping[str, object]) -> str:
        """The first feature for which a row has no leaf: it is missing and never was before."""
        for place in self.used:
            feature = self.features[place]
            if not feature.may_be_missing and feature.value_of(row[feature.name]) is None:
                return feature.name
        raise ParameterError("the row has a leaf")

    def leaves_of(self, columns: Mapping[str, Sequence[object] | np.ndarray[Any, Any]]) -> IntArray:
        """The leaf of every row of columns of equal length: [N]; `NO_LEAF` where there is none."""
        encoded: dict[int, FloatArray | IntArray] = {}
        for place in self.used:
            feature = self.features[place]
            encoded[place] = feature.encode(columns[feature.name])
        size = len(next(iter(columns.values()))) if columns else 0
        return self.leaves_of_codes(encoded, size)

    def leaves_of_codes(self, encoded: Mapping[int, FloatArray | IntArray], size: int) -> IntArray:
        """The leaf of every row of columns that `Feature.encode` made, by place: [size]."""
        leaf = np.full(size, NO_LEAF, dtype=np.int64)
        rows = np.arange(size)
        for place in self.used:
            if not self.features[place].may_be_missing:
                rows = rows[~_missing_in(encoded[place][rows])]
        waiting = [(0 if self.splits else -1, rows)]
        while waiting:
            node, rows = waiting.pop()
            if node < 0:
                leaf[rows] = -1 - node
                continue
            split = self.splits[node]
            answer = self._answers(split, encoded[split.feature][rows])
            waiting.append((split.yes, rows[answer]))
            waiting.append((split.no, rows[~answer]))
        return leaf

    def _answers(self, split: Split, values: FloatArray | IntArray) -> BoolArray:
        """The answers for encoded values: [N]."""
        if split.is_missing:
            return _missing_in(values)
        if split.below is not None:
            return np.asarray(values < split.below)
        categories = self.features[split.feature].categories
        codes = [code for code, each in enumerate(categories) if each in (split.among or ())]
        return np.isin(values, codes)

    # What the leaves mean.

    @cached_property
    def restrictions(self) -> tuple[Mapping[int, Restriction], ...]:
        """For each leaf, what its path says about each feature that it asks about."""
        found: list[Mapping[int, Restriction]] = [{} for _ in range(self.num_leaves)]
        waiting: list[tuple[int, dict[int, Restriction]]] = [(0 if self.splits else -1, {})]
        while waiting:
            node, path = waiting.pop()
            if node < 0:
                found[-1 - node] = path
                continue
            split = self.splits[node]
            feature = self.features[split.feature]
            before = path.get(split.feature, Restriction.none(feature))
            for child, answer in ((split.yes, True), (split.no, False)):
                waiting.append((child, {**path, split.feature: before.after(split, answer)}))
        return tuple(found)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each leaf: a readable conjunction, unique."""
        shown = self._shown_thresholds()
        labels = []
        for restrictions in self.restrictions:
            parts = []
            for place in sorted(restrictions):
                text = _text_of(self.features[place], restrictions[place], shown[place])
                if text:
                    parts.append(text)
            labels.append(" and ".join(parts) or "any")
        return _made_unique(labels)

    def regions(self) -> dict[str, Region]:
        """What each label means: the values that every feature may have there."""
        leaves = zip(self.labels, self.restrictions, strict=True)
        return {label: self._region(restrictions) for label, restrictions in leaves}

    def _region(self, restrictions: Mapping[int, Restriction]) -> Region:
        """The values that every feature may have under these restrictions."""
        region = {}
        for place, feature in enumerate(self.features):
            known = restrictions.get(place, Restriction.none(feature))
            region[feature.name] = known.values
        return region

    def _shown_thresholds(self) -> list[Callable[[float], str]]:
        """For each feature, how its thresholds are written: 4 digits, more where they need them.

        Dates are written in full.
        """
        shown: list[Callable[[float], str]] = []
        for place, feature in enumerate(self.features):
            if feature.is_date:
                shown.append(_date_text)
                continue
            thresholds = {
                split.below
                for split in self.splits
                if split.feature == place and split.below is not None
            }
            digits = 4
            while digits < 17 and len({f"{t:.{digits}g}" for t in thresholds}) < len(thresholds):
                digits += 1
            shown.append(f"{{:.{digits}g}}".format)
        return shown

    # Conditions.

    def cut_for(self, conditions: Iterable[Condition]) -> Partition:
        """The partition with leaves cut so that each decides every condition.

        Comparisons of other columns than the features are ignored.

        >>> from pastwise.data.conditions import parse_condition
        >>> partition = Partition((Feature("wage", "number"),))
        >>> partition.cut_for([parse_condition("wage >= 2")]).labels
        ('wage < 2', 'wage >= 2')
        """
        places = {feature.name: place for place, feature in enumerate(self.features)}
        stated = about(conditions, places)

        # Rebuild the tree from left to right, and cut each leaf as long as that is needed.
        builder = TreeBuilder()
        waiting: list[tuple[int, dict[int, Restriction], int]] = []
        waiting.append((0 if self.splits else -1, {}, ROOT))
        while waiting:
            node, path, slot = waiting.pop()
            if node >= 0:
                question = self.splits[node]
                children = (question.yes, question.no)
            else:
                region = self._region(path)
                undecided = [atom for each in stated for atom in each.undecided(region)]
                if not undecided:
                    builder.add_leaf(slot)
                    continue
                place = places[undecided[0].column]
                known = path.get(place, Restriction.none(self.features[place]))
                question = _question_on(undecided[0], place, self.features[place], known)
                children = (-1, -1)
            known = path.get(question.feature, Restriction.none(self.features[question.feature]))
            index = builder.add_split(question, slot)
            for child, answer in ((children[1], False), (children[0], True)):
                after = {**path, question.feature: known.after(question, answer)}
                waiting.append((child, after, 2 * index + (not answer)))
        return Partition(self.features, builder.splits(), self.num_records)

    # JSON.

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name, for JSON."""
        names = [feature.name for feature in self.features]
        return {
            "features": [feature.to_dict() for feature in self.features],
            "splits": [split.to_dict(names[split.feature]) for split in self.splits],
            "num_records": self.num_records,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Partition:
        """The partition that `to_dict` described; anything else is refused."""
        try:
            features = []
            for entry in content["features"]:
                categories = tuple(entry.get("categories", ()))
                if not all(isinstance(category, str) for category in categories):
                    raise ParameterError("categories are text")
                missing = bool(entry["may_be_missing"])
                is_date = bool(entry.get("is_date", False))
                name = str(entry["name"])
                features.append(Feature(name, entry["kind"], categories, missing, is_date))
            places = {feature.name: place for place, feature in enumerate(features)}
            splits = []
            for entry in content["splits"]:
                among = entry.get("among")
                below = entry.get("below")
                splits.append(
                    Split(
                        feature=places[entry["feature"]],
                        yes=int(entry["yes"]),
                        no=int(entry["no"]),
                        below=None if below is None else float(below),
                        among=None if among is None else tuple(among),
                        is_missing=bool(entry.get("is_missing", False)),
                    )
                )
            num_records = content.get("num_records")
            if num_records is not None:
                num_records = int(num_records)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ParameterError(f"not a partition: {error}") from None
        return cls(tuple(features), tuple(splits), num_records)


# Values of a row.


def _number(name: str, value: object, is_date: bool) -> float | None:
    """A value as a number; a date in seconds since 1970, as text only where dates are expected."""
    if is_date or not isinstance(value, str):
        moment = seconds_of(value)
        if moment is not None:
            return moment
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return inf if value > 0 else -inf  # type: ignore[operator]
    except (TypeError, ValueError):
        kind = "neither a date nor a number" if is_date else "no number"
        raise LabelError(f"{name!r} is {value!r}, which is {kind}") from None
    return None if isnan(number) else number


def _truth(name: str, value: object) -> bool:
    """A value as a truth value: also 0 and 1, and the words true and false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise LabelError(f"{name!r} is {value!r}, which is neither true nor false")


def _missing_in(values: FloatArray | IntArray) -> BoolArray:
    """Which encoded values are missing: [N]."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.asarray(values == MISSING_CODE)


# Building a tree.

ROOT = -1
"""Where the first node of a tree goes."""


class TreeBuilder:
    """Numbers nodes and leaves in the order in which they are added.

    A slot says where a node goes: ``2 * split`` after a yes, ``2 * split + 1`` after a no.
    """

    def __init__(self) -> None:
        self._questions: list[Split] = []
        self._children: list[list[int]] = []
        self._num_leaves = 0

    def add_split(self, question: Split, slot: int) -> int:
        """Add an inner node with this question, and return its number."""
        index = len(self._questions)
        self._questions.append(question)
        self._children.append([0, 0])
        self._put(slot, index)
        return index

    def add_leaf(self, slot: int) -> None:
        """Add a leaf."""
        self._put(slot, -1 - self._num_leaves)
        self._num_leaves += 1

    def _put(self, slot: int, child: int) -> None:
        if slot != ROOT:
            parent, side = divmod(slot, 2)
            self._children[parent][side] = child

    def splits(self) -> tuple[Split, ...]:
        """The inner nodes of the whole tree."""
        nodes = zip(self._questions, self._children, strict=True)
        return tuple(replace(question, yes=yes, no=no) for question, (yes, no) in nodes)


def _question_on(comparison: Comparison, place: int, feature: Feature, known: Restriction) -> Split:
    """The next question on the way to decide a comparison."""
    if known.missing == "too":
        return Split(place, 0, 0, is_missing=True)
    if feature.kind == "number":
        numbers = Interval(is_date=feature.is_date)
        for threshold in comparison.cuts(numbers):
            if known.low < threshold < known.high:
                return Split(place, 0, 0, below=threshold)
    else:
        left = known.categories or ()
        positive = comparison.positive
        among = tuple(each for each in left if positive.holds({comparison.column: each}))
        if among and (len(among) < len(left) or known.takes_unseen):
            return Split(place, 0, 0, among=among)
    raise ParameterError(
        f"the condition {str(comparison)!r} cannot be decided by the values of {feature.name!r}"
    )


# Meaning of leaves.


def _text_of(feature: Feature, restriction: Restriction, shown: Callable[[float], str]) -> str:
    """A restriction as a condition states it; empty if there is none."""
    name = column_text(feature.name)
    if restriction.missing == "only":
        return f"{name} is missing"
    if restriction.categories is None:
        text = _text_of_interval(name, restriction, shown)
    else:
        text = _text_of_categories(name, feature, restriction)
    if restriction.missing == "too" and text:
        return f"({text} or {name} is missing)"
    if restriction.missing == "no" and feature.may_be_missing and not text:
        return f"{name} is not missing"
    return text


def _text_of_interval(name: str, interval: Restriction, shown: Callable[[float], str]) -> str:
    """``lactate >= 2.3``, ``2.3 <= lactate < 4``, or empty."""
    has_low = interval.low > -inf
    has_high = interval.high < inf
    low_sign, low = _bound(interval.low, shown, ">=", ">")
    high_sign, high = _bound(interval.high, shown, "<", "<=")
    if has_low and has_high:
        mirrored = "<=" if low_sign == ">=" else "<"
        return f"{low} {mirrored} {name} {high_sign} {high}"
    if has_low:
        return f"{name} {low_sign} {low}"
    return f"{name} {high_sign} {high}" if has_high else ""


def _bound(
    threshold: float, shown: Callable[[float], str], sign: str, sign_before: str
) -> tuple[str, str]:
    """The sign and number of a bound; the number just before the threshold if that is short."""
    before = nextafter(threshold, -inf)
    if isfinite(threshold) and len(repr(before)) < len(repr(threshold)):
        return sign_before, shown(before)
    return sign, shown(threshold)


def _date_text(seconds: float) -> str:
    """Seconds since 1970 as a date in quotes, with a time of day where it is not midnight."""
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds:.17g}"
    text = moment.isoformat().removesuffix("T00:00:00").removesuffix(":00")
    return f"'{text}'"


def _text_of_categories(name: str, feature: Feature, restriction: Restriction) -> str:
    """``ward == icu``, ``ward not in (icu, general)``, or empty."""
    left = restriction.categories or ()
    is_complement = restriction.takes_unseen
    named = [each for each in feature.categories if (each in left) != is_complement]
    is_whole = not restriction.excluded and is_complement == (feature.kind == "category")
    if is_whole or not named:
        return ""
    words = [literal_text(each) for each in named]
    if len(words) == 1:
        return f"{name} {'!=' if is_complement else '=='} {words[0]}"
    return f"{name} {'not in' if is_complement else 'in'} ({', '.join(words)})"


def _made_unique(labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, numbered where several would be equal."""
    seen: dict[str, int] = {}
    unique = []
    for label in labels:
        number = seen.get(label, 0) + 1
        seen[label] = number
        unique.append(label if number == 1 else f"{label} ({number})")
    return tuple(unique)
