"""Spaces: the labels of states or actions and their indices. The only place that knows both."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pastwise.numerics import IntArray

Label = Hashable


@dataclass(frozen=True)
class Space:
    """A finite set of labels in a fixed order.

    Examples
    --------
    >>> weather = Space(("cold", "warm"))
    >>> weather.index("warm"), len(weather)
    (1, 2)
    >>> Space.of_size(3).labels
    range(0, 3)
    """

    labels: Sequence[Label]

    def __post_init__(self) -> None:
        if len(self.labels) == 0:
            raise ValueError("a space needs at least one label")
        if not isinstance(self.labels, range):
            object.__setattr__(self, "labels", tuple(self.labels))
            if len(self._index) != len(self.labels):
                repeated = next(x for i, x in enumerate(self.labels) if self._index[x] != i)
                raise ValueError(f"label {repeated!r} occurs twice; the labels of a space must differ")

    @classmethod
    def of_size(cls, size: int) -> Space:
        """The labels 0, ..., size - 1, each its own index."""
        return cls(range(size))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def _index(self) -> dict[Label, int]:
        return {label: index for index, label in enumerate(self.labels)}

    def index(self, label: Label) -> int:
        """Index of one label; an unknown one is an error that names the nearest known."""
        try:
            return self._index[label]
        except KeyError:
            near = difflib.get_close_matches(str(label), [str(known) for known in self.labels], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"unknown label {label!r}{hint}") from None

    def indices(self, labels: Iterable[Label]) -> IntArray:
        """Indices of many labels."""
        return np.array([self.index(label) for label in labels], dtype=np.int64)
