"""Spaces: the labels of states, actions or tasks, and their indices.

Users speak of labels; arrays have indices. A `Space` is the only place that knows both. A label is
text, a number or a boolean; in a product space it is a tuple of these, one for each field. Outside
Python a label is known by its *key*: text as it is, anything else as JSON, so that the key of a
product label is a JSON array.

One value may be written in several ways: pandas writes a boolean of a CSV file as ``True`` and JSON
as ``true``, and midnight as a date. Such labels have one *spelling*, so that a label of one table
is found in another. Labels of one and the same table stay apart, however they are spelled.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cached_property, partial
from itertools import islice, pairwise
from math import inf, isfinite
from typing import cast

import numpy as np

from pastwise._numerics.arrays import IntArray
from pastwise.errors import LabelError, ParameterError, UnknownLabelError

Label = Hashable

Keys = str | tuple[str, ...]
"""The key of a label or, of a tuple, the key of each part."""

Orders = tuple[tuple[Label, ...], ...]
"""For each field of a space, its values in the order of their categories; or nothing."""

NUMBER = r"(-?(?:inf|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))"
INTERVAL = re.compile(rf"[\[(]{NUMBER}, |>=? {NUMBER}$|(<=? ){NUMBER}$")
"""The text of an interval, such as ``[0, 10)``, ``>= 20`` or ``< 0``, or its beginning. Labels of
intervals are sorted by their lower end."""

TRUTH = ("true", "false")
"""The words for booleans; a table may have them in upper case."""

WHOLE_FRACTION = re.compile(r"-?\d+\.0", re.ASCII)
"""The text of a floating-point number that is whole, such as ``1.0``."""

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d*?)0*)?([+-]\d\d:\d\d)?")
"""The text of a moment: date, time of day, fraction of a second, and offset from UTC."""


def intervals(edges: Sequence[float]) -> list[str]:
    """Labels of the intervals between ascending edges; the last one includes its upper edge.

    >>> intervals([0, 0.5, float("inf")])
    ['[0, 0.5)', '[0.5, inf]']
    """
    shown = [shortest_text(edge) for edge in edges]
    labels = [f"[{low}, {high})" for low, high in pairwise(shown)]
    labels[-1] = f"[{shown[-2]}, {shown[-1]}]"
    return labels


def shortest_text(number: float) -> str:
    """The number in its short form where that is exact, otherwise in full."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


def key_of(label: Label) -> str:
    """A label as text: its name in JSON files, in TOML files and on the command line.

    >>> key_of("cold"), key_of(5), key_of(("cold", True))
    ('cold', '5', '["cold", true]')
    """
    if isinstance(label, str):
        return label
    if type(label) is int:
        return str(label)
    return json.dumps(label, ensure_ascii=False, default=_plain_or_text)


def spelling_of(key: str) -> str:
    """The one spelling of a key that tables write in several ways: a boolean, number or moment.

    Whole numbers are fractions where a table has missing values next to them. A boolean or a number
    may come after the name of its column, as the outcomes of one-shot decisions have it.

    >>> spelling_of("True"), spelling_of("cured 1.0"), spelling_of("2024-01-02 00:00:00")
    ('true', 'cured 1', '2024-01-02')
    """
    name, blank, word = key.rpartition(" ")
    if word.lower() in TRUTH:
        return name + blank + word.lower()
    if WHOLE_FRACTION.fullmatch(word):
        return key.removesuffix(".0")
    moment = MOMENT.fullmatch(key)
    if moment is None:
        return key
    day, time, fraction, offset = moment.groups(default="")
    if time == "00:00:00" and not fraction and not offset:
        return day
    return f"{day}T{time}{'.' if fraction else ''}{fraction}{offset}"


def words_among(labels: Iterable[Label]) -> dict[str, str]:
    """For the words true and false, the key of the label that says so, if it is only one.

    >>> words_among(["True", "False", "unknown"]), words_among(["True", "true"])
    ({'true': 'True', 'false': 'False'}, {})
    """
    spelled: dict[str, list[str]] = {word: [] for word in TRUTH}
    for key in map(key_of, labels):
        if key.lower() in spelled:
            spelled[key.lower()].append(key)
    return {word: found[0] for word, found in spelled.items() if len(found) == 1}


def _plain_or_text(value: object) -> object:
    """What JSON shows of a value that it does not know."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def checked_label(label: object) -> Label:
    """A label as a plain value: text, a finite number, a boolean, or a tuple of these."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(checked_label(part) for part in label)
    if isinstance(label, str):
        require_unicode(label)
        return label
    if isinstance(label, int):
        return label
    if isinstance(label, float) and isfinite(label):
        return label
    raise _no_label(label)


def _no_label(label: object) -> LabelError:
    return LabelError(
        f"{label!r} is no label: a label is text, a finite number, a boolean, or a tuple of these"
    )


def require_unicode(text: str) -> None:
    """Refuse text with half a surrogate pair, which is no character and cannot be written."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LabelError(
            f"{text!r} has half of a surrogate pair, which is no character; replace it"
        ) from None


def sort_key(label: Label) -> tuple[object, ...]:
    """Order of labels.

    Numbers sort by value, intervals by their lower end, other text alphabetically, and tuples
    field by field.
    """
    if isinstance(label, tuple):
        return ("tuple", *(sort_key(part) for part in label))
    if isinstance(label, str):
        interval = INTERVAL.match(label)
        if interval:
            return ("interval", _lower_end(interval), label)
        return ("text", label)
    if isinstance(label, bool):
        return ("boolean", label)
    return ("number", label)


def sort_key_of(orders: Orders) -> Callable[[Label], tuple[object, ...]]:
    """Order of labels whose fields have these orders; values without a place in them go last."""
    if not any(orders):
        return sort_key
    ranks = [{value: rank for rank, value in enumerate(order)} for order in orders]

    def key_of_part(part: Label, rank_of: dict[Label, int]) -> tuple[object, ...]:
        rank = rank_of.get(part)
        return (1, *sort_key(part)) if rank is None else (0, rank)

    def key(label: Label) -> tuple[object, ...]:
        if len(ranks) == 1:
            return key_of_part(label, ranks[0])
        parts = cast(tuple[Label, ...], label)
        return tuple(key_of_part(part, each) for part, each in zip(parts, ranks, strict=True))

    return key


def _lower_end(interval: re.Match[str]) -> float:
    """The lower end of an interval that `INTERVAL` matched."""
    has_no_lower_end = interval[3] is not None
    return -inf if has_no_lower_end else float(interval[1] or interval[2])


@dataclass(frozen=True)
class Space:
    """A finite set of labels in a fixed order.

    Attributes
    ----------
    labels : sequence
        The labels; the index of each is its position.
    fields : tuple of str
        Names of the parts of a label. A product space has several fields, and each of its labels
        is a tuple with one part for each field.
    orders : tuple of tuples
        For each field, or for the label itself, its values in the order of the categories that the
        log states; an empty one where it states none. It decides how labels are sorted when spaces
        are united.

    Examples
    --------
    >>> weather = Space(("cold", "warm"))
    >>> weather.index("warm"), len(weather)
    (1, 2)
    >>> Space.of_size(3).labels
    range(0, 3)
    """

    labels: Sequence[Label]
    fields: tuple[str, ...] = ()
    orders: Orders = dataclass_field(default=(), compare=False)

    def __post_init__(self) -> None:
        if len(self.labels) == 0:
            raise ParameterError("a space needs at least one label")
        if isinstance(self.labels, range):
            return
        object.__setattr__(self, "labels", tuple(self.labels))

        # Labels that are their own indices need no dictionary, however many there are.
        if all(type(label) is int and label == index for index, label in enumerate(self.labels)):
            object.__setattr__(self, "labels", range(len(self.labels)))
            return

        if len(_distinct_labels(self.labels)) != len(self.labels):
            repeated = next(
                label for index, label in enumerate(self.labels) if self._index[label] != index
            )
            raise LabelError(f"label {repeated!r} occurs twice; the labels of a space must differ")
        if self.is_product:
            for label in self.labels:
                if not isinstance(label, tuple) or len(label) != len(self.fields):
                    raise LabelError(
                        f"label {label!r} must be a tuple with one part for each of the fields "
                        f"{', '.join(self.fields)}"
                    )

    @classmethod
    def of_size(cls, size: int) -> Space:
        """The labels 0, ..., size - 1, each its own index."""
        return cls(range(size))

    @classmethod
    def sorted(
        cls, labels: Iterable[Label], fields: tuple[str, ...] = (), orders: Orders = ()
    ) -> Space:
        """The distinct labels, sorted by ``orders`` where they have a place, else by `sort_key`."""
        key = sort_key_of(orders)
        return cls(sorted(_distinct_labels(list(labels)), key=key), fields, orders)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_product(self) -> bool:
        """Whether labels are tuples of several fields."""
        return len(self.fields) > 1

    @cached_property
    def _index(self) -> dict[Label, int]:
        return {label: index for index, label in enumerate(self.labels)}

    @cached_property
    def _index_by_keys(self) -> dict[Keys, int]:
        """Index of each label by its key and, of a tuple, by the keys of its parts."""
        places: dict[Keys, int] = {key_of(label): i for i, label in enumerate(self.labels)}
        for index, label in enumerate(self.labels):
            if isinstance(label, tuple):
                places[_keys_of(label)] = index
        return places

    @cached_property
    def _index_by_spelling(self) -> dict[Keys, int | None]:
        """Index of the label with each spelling; None where several labels have it."""
        if isinstance(self.labels, range):
            return {}
        places: dict[Keys, int | None] = {}
        for index, label in enumerate(self.labels):
            spelling = _spelling_of(label)
            places[spelling] = None if spelling in places else index
        return places

    def __contains__(self, label: Label) -> bool:
        return self._find_label(label) is not None

    def has(self, label: Label) -> bool:
        """Whether this is a label, or the key of one."""
        return self.find(label) is not None

    def find(self, label: Label) -> int | None:
        """Index of a label, or of the label with this key; None if there is none.

        Every part of a tuple may be given by its key. A label is also found by another spelling of
        it, unless several labels have that.
        """
        index = self._find_label(label)
        if index is None:
            index = self._find_key(key_of(label))
        if index is None and not isinstance(self.labels, range):
            index = self._index_by_keys.get(_keys_of(label))
            if index is None:
                index = self._index_by_spelling.get(_spelling_of(label))
        return index

    def index(self, label: Label) -> int:
        """Index of a label, or of the label with this key.

        Raises
        ------
        UnknownLabelError
            If there is none; its message names the nearest known label.
        """
        index = self.find(label)
        if index is None:
            raise UnknownLabelError(label, partial(nearest_keys, label, self.labels))
        return index

    def indices(self, labels: Iterable[Label]) -> IntArray:
        """Indices of many labels."""
        if isinstance(labels, range) and self.labels[: len(labels)] == labels:
            return np.arange(len(labels), dtype=np.int64)
        return np.array([self.index(label) for label in labels], dtype=np.int64)

    def _find_label(self, label: Label) -> int | None:
        if isinstance(self.labels, range):
            return _find_number(label, len(self.labels))
        try:
            return self._index.get(label)
        except TypeError:
            raise _no_label(label) from None

    def _find_key(self, key: str) -> int | None:
        if not isinstance(self.labels, range):
            return self._index_by_keys.get(key)
        # Longer numbers are unknown; int() would refuse very long ones.
        if not key.isdecimal() or len(key) > len(str(len(self))):
            return None
        number = int(key)
        is_known = number < len(self) and key_of(number) == key
        return number if is_known else None

    def field(self, name: str) -> tuple[Space, IntArray]:
        """The values of one field, and the index of each label's value: [len(self)]."""
        if name not in self.fields:
            known = ", ".join(self.fields) or "none"
            raise ParameterError(f"the space has no field {name!r}; its fields are {known}")
        values: Sequence[Label] = self.labels
        position = self.fields.index(name)
        if self.is_product:
            values = [label[position] for label in self.labels]  # type: ignore[index]
        order = self.orders[position : position + 1]
        space = Space.sorted(values, orders=order)
        return space, space.indices(values)

    @cached_property
    def coordinates(self) -> IntArray:
        """The place of each label in the order of each field's values: [len(self), fields].

        Without fields, it is the index of the label: [len(self), 1].
        """
        if not self.is_product:
            return np.arange(len(self))[:, None]
        return np.stack([self.field(name)[1] for name in self.fields], axis=1)

    def union(self, other: Space) -> Space:
        """The labels of both.

        This is the larger space, in its order, if it has all labels of the other; otherwise all
        labels, sorted. A label that is text in one space and a number or boolean in the other,
        such as ``"1"`` and ``1``, is one label with one key: the text. So are two spellings of one
        value, unless one of the spaces tells them apart. If a third space does so, the result
        depends on the order in which the three are united.
        """
        if self.fields != other.fields:
            raise ParameterError(
                f"spaces with the fields {self.fields} and {other.fields} cannot be united"
            )
        orders = _united_orders(self.orders, other.orders)
        may_have_twins = self._may_have_twins(other)
        for space, less in ((self, other), (other, self)):
            is_plain = not (may_have_twins and space._ambiguous)
            if space.orders == orders and is_plain and space._includes(less):
                return space
        if may_have_twins:
            return self._united_by_spelling(other, orders)
        return Space.sorted([*self.labels, *other.labels], self.fields, orders)

    def _includes(self, other: Space) -> bool:
        """Whether every label of the other space is one of this space."""
        if isinstance(self.labels, range) and isinstance(other.labels, range):
            return len(other) <= len(self)
        return all(label in self for label in other.labels)

    @cached_property
    def _forms(self) -> list[set[bool | None]]:
        """For each field, the forms that its values have; see `_form_of`."""
        if isinstance(self.labels, range):
            return [{False}]
        if not self.is_product:
            return [set(map(_form_of, self.labels))]
        labels = cast(Sequence[tuple[Label, ...]], self.labels)
        return [set(map(_form_of, values)) for values in zip(*labels, strict=True)]

    def _may_have_twins(self, other: Space) -> bool:
        """Whether a label of one space may be written in another way in the other."""
        both = [one | two for one, two in zip(self._forms, other._forms, strict=True)]
        return any(None in forms or len(forms) > 1 for forms in both)

    @cached_property
    def _ambiguous(self) -> set[Keys]:
        """The spellings that several labels have."""
        return {spelling for spelling, i in self._index_by_spelling.items() if i is None}

    def _united_by_spelling(self, other: Space, orders: Orders) -> Space:
        """The union in which labels of one spelling are one, of one key where that is ambiguous."""
        ambiguous = self._ambiguous | other._ambiguous
        united: dict[Keys, Label] = {}
        for label in [*self.labels, *other.labels]:
            spelling = _spelling_of(label)
            keys = _keys_of(label) if spelling in ambiguous else spelling
            united[keys] = _preferred(united.get(keys, label), label)

        labels = [*united.values()]
        for space in (self, other):
            is_whole = len(space) == len(labels) and all(label in space for label in labels)
            if is_whole and space.orders == orders:
                return space
        return Space.sorted(labels, self.fields, orders)


def _united_orders(one: Orders, two: Orders) -> Orders:
    """The orders of two spaces together; none for a field whose two orders contradict each other.

    >>> _united_orders((("low", "high"),), (("low", "mid", "high"),))
    (('low', 'mid', 'high'),)
    """
    if one == two or not two:
        return one
    if not one:
        return two
    united = []
    for first, second in zip(one, two, strict=True):
        shorter, longer = sorted((first, second), key=len)
        known = set(shorter)
        agrees = tuple(label for label in longer if label in known) == shorter
        united.append(longer if agrees else ())
    return tuple(united) if any(united) else ()


def _keys_of(label: Label) -> Keys:
    """The key of a label or, of a tuple, the key of each part."""
    if isinstance(label, tuple):
        return tuple(key_of(part) for part in label)
    return key_of(label)


def _spelling_of(label: Label) -> Keys:
    """The spelling of a label or, of a tuple, the spelling of each part."""
    keys = _keys_of(label)
    return spelling_of(keys) if isinstance(keys, str) else tuple(map(spelling_of, keys))


def _form_of(part: Label) -> bool | None:
    """Whether a part of a label is text; None if other texts may be the same label."""
    if isinstance(part, tuple):
        return None
    if isinstance(part, str):
        return True if spelling_of(part) == part else None
    return False


def _preferred(one: Label, two: Label) -> Label:
    """Of two labels with one spelling: text before other values, and the usual spelling first."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return tuple(_preferred(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, str) and isinstance(two, str):
        return min(one, two, key=lambda text: (spelling_of(text) != text, text))
    return two if isinstance(two, str) else one


def _distinct_labels(labels: Sequence[Label]) -> set[Label]:
    """The set of the labels; one that cannot be in a set is refused."""
    try:
        return set(labels)
    except TypeError:
        for label in labels:
            try:
                hash(label)
            except TypeError:
                raise _no_label(label) from None
        raise


def _find_number(label: Label, size: int) -> int | None:
    """Index of a label among 0, ..., size - 1: any number that equals one of them has its index.

    ``label in range(size)`` would compare anything but an ``int`` with every element.
    """
    if type(label) is int:
        return label if 0 <= label < size else None
    if isinstance(label, (str, tuple)):
        return None
    try:
        number = int(label)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    is_known = number == label and 0 <= number < size
    return number if is_known else None


def labels_of_one_type(labels: Sequence[Label]) -> Sequence[Label]:
    """Labels, or their keys, as a column of a table, which has one type.

    Labels stay what they are if all are text, all booleans, all integers of 64 bits, or all
    floating-point numbers. Integers among floating-point numbers become such, where that is exact.
    Otherwise all labels become text.

    >>> labels_of_one_type([1, "a", True]), labels_of_one_type([1, 0.5])
    (['1', 'a', 'true'], [1.0, 0.5])
    """
    types = set(map(type, labels))
    if isinstance(labels, range) or types in ({str}, {bool}, {float}):
        return labels
    if types == {int}:
        numbers = cast(Sequence[int], labels)
        if all(-(2**63) <= number < 2**63 for number in numbers):
            return numbers
    if types == {int, float}:
        doubles = [float(number) for number in cast(Sequence[float], labels)]
        if doubles == list(labels):
            return doubles
    return [key_of(label) for label in labels]


def nearest_keys(
    label: Label, known: Sequence[Label], *, most: int = 3, most_compared: int = 10_000
) -> list[str]:
    """Keys of the known labels that are spelled most like this one, the nearest first.

    Parameters
    ----------
    label : label
        An unknown label.
    known : sequence of labels
        The labels to compare it with.
    most : int
        How many keys are returned at most. Three are read at a glance.
    most_compared : int
        How many of the known labels are compared, the first ones. The default takes about a tenth
        of a second.
    """
    keys = [key_of(candidate) for candidate in islice(known, most_compared)]
    return difflib.get_close_matches(key_of(label), keys, n=most)


def nearest_key(label: Label, known: Sequence[Label], *, most_compared: int = 10_000) -> str | None:
    """The first of `nearest_keys`; None if no known label is similar."""
    nearest = nearest_keys(label, known, most=1, most_compared=most_compared)
    return nearest[0] if nearest else None
