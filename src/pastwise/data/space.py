"""Spaces: the labels of states or actions and their indices. The only place that knows both.

A label is text, a number or a boolean; in a product space, a tuple of these, one for each field. Outside Python a
label is known by its *key*: text as it is, anything else as JSON, so a product label is a JSON array.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from pastwise._numerics.arrays import IntArray

Label = Hashable

INTERVAL = re.compile(r"\[(-?(?:inf|[\d.]+(?:e[+-]?\d+)?)), ")
"""How the text of an interval begins; its lower end is what it sorts by."""


MOST_COMPARED = 10_000
"""Labels among which the nearest to an unknown one is looked for."""


def intervals(edges: Sequence[float]) -> list[str]:
    """Labels of the intervals between ascending edges; the last has its upper edge.

    >>> intervals([0, 0.5, float("inf")])
    ['[0, 0.5)', '[0.5, inf]']
    """
    shown = [f"{edge:g}" if float(f"{edge:g}") == edge else repr(edge) for edge in edges]
    return [
        *(f"[{low}, {high})" for low, high in pairwise(shown[:-1])),
        f"[{shown[-2]}, {shown[-1]}]",
    ]


def key_of(label: Label) -> str:
    """A label as text: what JSON files, TOML files and the command line call it.

    >>> key_of("cold"), key_of(5), key_of(("cold", True))
    ('cold', '5', '["cold", true]')
    """
    if isinstance(label, str):
        return label
    if type(label) is int:
        return str(label)
    return json.dumps(
        label,
        ensure_ascii=False,
        default=lambda x: x.item() if isinstance(x, np.generic) else repr(x),
    )


def checked_label(label: Any) -> Label:
    """A label as a plain value: text, a finite number, a boolean, or a tuple of these."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return tuple(checked_label(part) for part in label)
    if isinstance(label, (str, int)) or (isinstance(label, float) and isfinite(label)):
        return label
    raise ValueError(
        f"{label!r} is no label: a label is text, a finite number, a boolean, or a tuple of these"
    )


def sort_key(label: Label) -> Any:
    """Sorts numbers by value, intervals by their lower end, other text by its letters, tuples field by field."""
    if isinstance(label, tuple):
        return tuple(sort_key(part) for part in label)
    if isinstance(label, str):
        interval = INTERVAL.match(label)
        return ("interval", float(interval[1]), label) if interval else ("text", label)
    return ("boolean" if isinstance(label, bool) else "number", label)


@dataclass(frozen=True)
class Space:
    """A finite set of labels in a fixed order.

    Attributes
    ----------
    labels : sequence
        The labels; the index of each is its place.
    fields : tuple of str
        Names of what a label tells. In a product space there are several, and a label is a tuple of as many parts.

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

    def __post_init__(self) -> None:
        if len(self.labels) == 0:
            raise ValueError("a space needs at least one label")
        if isinstance(self.labels, range):
            return
        object.__setattr__(self, "labels", tuple(self.labels))
        if all(type(label) is int and label == index for index, label in enumerate(self.labels)):
            object.__setattr__(self, "labels", range(len(self.labels)))
        if len(self._index) != len(self.labels):
            repeated = next(x for i, x in enumerate(self.labels) if self._index[x] != i)
            raise ValueError(f"label {repeated!r} occurs twice; the labels of a space must differ")
        if self.is_product:
            for label in self.labels:
                if not isinstance(label, tuple) or len(label) != len(self.fields):
                    raise ValueError(
                        f"label {label!r} does not tell the fields {', '.join(self.fields)}"
                    )

    @classmethod
    def of_size(cls, size: int) -> Space:
        """The labels 0, ..., size - 1, each its own index."""
        return cls(range(size))

    @classmethod
    def sorted(cls, labels: Iterable[Label], fields: tuple[str, ...] = ()) -> Space:
        """The distinct labels in their order."""
        return cls(sorted(set(labels), key=sort_key), fields)

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
    def _by_key(self) -> dict[str, int]:
        return {key_of(label): index for index, label in enumerate(self.labels)}

    def __contains__(self, label: object) -> bool:
        return label in self.labels if isinstance(self.labels, range) else label in self._index

    def has(self, label: Label) -> bool:
        """Whether this is a label, or the key of one."""
        return label in self or self._of_key(key_of(label)) is not None

    def _of_key(self, key: str) -> int | None:
        """Index of the label with a key, if there is one."""
        if not isinstance(self.labels, range):
            return self._by_key.get(key)
        plain = key.isdecimal() and len(key) <= len(str(len(self))) and key_of(int(key)) == key
        return int(key) if plain and int(key) < len(self) else None

    def index(self, label: Label) -> int:
        """Index of a label, or of its key; an unknown one is an error that names the nearest known."""
        if isinstance(self.labels, range) and label in self.labels:
            return self.labels.index(label)  # type: ignore[arg-type]
        if not isinstance(self.labels, range) and label in self._index:
            return self._index[label]
        key = key_of(label)
        if (index := self._of_key(key)) is not None:
            return index
        near = difflib.get_close_matches(
            key, [key_of(known) for known in self.labels[:MOST_COMPARED]], n=1
        )
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown label {label!r}{hint}")

    def indices(self, labels: Iterable[Label]) -> IntArray:
        """Indices of many labels."""
        return np.array([self.index(label) for label in labels], dtype=np.int64)

    def field(self, name: str) -> tuple[Space, IntArray]:
        """The values of one field, and for each label the index of its value: [len(self)]."""
        place = self.fields.index(name)
        values = [label[place] for label in self.labels] if self.is_product else self.labels  # type: ignore[index]
        space = Space.sorted(values)
        return space, space.indices(values)

    def union(self, other: Space) -> Space:
        """The labels of both: the larger space if it holds the other, otherwise all of them in their order."""
        if self.fields != other.fields:
            raise ValueError(f"fields {self.fields} and {other.fields} cannot be united")
        if all(label in self for label in other.labels):
            return self
        if all(label in other for label in self.labels):
            return other
        return Space.sorted([*self.labels, *other.labels], self.fields)
