"""Columns: which columns of a table hold what, and how their values become labels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from itertools import pairwise
from math import isfinite
from typing import Any

from pastwise.data.space import Label

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}

Names = str | Sequence[str]
Span = float | str | timedelta
"""A length of time: a number, in the unit of the column, or for dates a number with a unit, such as ``"36h"``."""

Edges = tuple[float, ...]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what.

    Parameters
    ----------
    state, action : str or several
        Columns of the state and of the action; several make a product space over the combinations that occur.
    next_state : str or several, optional
        Columns of the next state, as many as of the state. Without them the next state is that of the next record of
        the same ``episode`` in the order of ``time``.
    episode, time : str, optional
        Which episode a record belongs to, and its place there. Beside next-state columns they change no count: they
        put records in the order that importance sampling needs.
    max_gap : number or text, optional
        Records further apart than this do not follow each other; without next-state columns only.
    terminal : labels
        States in which an episode ends.
    count, weight : str, optional
        How many records a row stands for; how much each of them weighs.
    task : str, optional
        Which past task a record belongs to.
    age, half_life : str; number or text, optional
        A date or number, and the span over which a record loses half of its weight.
    bins : columns with edges, or with a number of bins of equal frequency
        Numeric columns of the state or action that are cut into intervals.
    text_labels : bool
        Whether the labels of a CSV file are text, even where they look like numbers.
    propensity : str, optional
        Probability with which the logged action was taken; for importance sampling only.
    """

    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...] = ()
    episode: str | None = None
    time: str | None = None
    max_gap: float | str | None = None
    terminal: tuple[Label, ...] = ()
    count: str | None = None
    weight: str | None = None
    task: str | None = None
    age: str | None = None
    half_life: float | str | None = None
    bins: Mapping[str, Edges | int] = field(default_factory=dict)
    text_labels: bool = True
    propensity: str | None = None

    def __post_init__(self) -> None:
        if not self.state or not self.action:
            raise ValueError("a log needs a state column and an action column")
        if not self.next_state and not (self.episode and self.time):
            raise ValueError(
                "give the next state's column, or episode and time to tell it from the next record"
            )
        if self.next_state and len(self.next_state) != len(self.state):
            raise ValueError(
                f"{len(self.state)} state columns need as many next-state columns, not {len(self.next_state)}"
            )
        if self.max_gap is not None and self.next_state:
            raise ValueError(
                "max_gap is for next states that are told from the next record; here a column tells them: leave out "
                "max_gap, or the next state's column"
            )
        if (self.age is None) != (self.half_life is None):
            raise ValueError("age and half_life go together")
        self._check_bins()
        repeated = [name for name in self.labels if self.labels.count(name) > 1]
        if repeated:
            raise ValueError(f"the column {repeated[0]!r} is named twice")

    def _check_bins(self) -> None:
        for name, edges in self.bins.items():
            if not isinstance(edges, int) and not (
                isinstance(edges, tuple) and all(map(_is_number, edges))
            ):
                raise ValueError(f"bins: {name!r} takes edges or a number of bins, not {edges!r}")
            if name not in (*self.state, *self.action):
                raise ValueError(f"bins: {name!r} is no state or action column")

    @classmethod
    def of(
        cls,
        state: Names,
        action: Names,
        next_state: Names | None = None,
        *,
        terminal: Label | Sequence[Label] = (),
        bins: Mapping[str, Sequence[float] | int] | None = None,
        max_gap: Span | None = None,
        half_life: Span | None = None,
        **others: Any,
    ) -> Columns:
        """Columns from what people write: a name or several, a label or several, spans of time."""
        return cls(
            _names(state),
            _names(action),
            _names(next_state or ()),
            terminal=tuple(terminal)
            if isinstance(terminal, (list, set, frozenset))
            else _labels(terminal),
            bins={name: _edges(name, given) for name, given in (bins or {}).items()},
            max_gap=_span("max_gap", max_gap),
            half_life=_span("half_life", half_life),
            **others,
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Columns:
        """The columns that `to_dict` gave."""
        plain = {name: _tuples(value) for name, value in content.items()}
        edges = {
            name: given if isinstance(given, int) else _edges(name, given)
            for name, given in plain["bins"].items()
        }
        return cls(**{**plain, "bins": edges})

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name; infinite edges as text, which JSON can hold."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        bins = {
            n: e if isinstance(e, int) else [x if isfinite(x) else str(x) for x in e]
            for n, e in self.bins.items()
        }
        return {**plain, "bins": bins}

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns whose values are labels."""
        given = (*self.state, *self.action, *self.next_state)
        return (*given, self.task) if self.task else given

    @property
    def text(self) -> tuple[str, ...]:
        """Columns of a CSV file that are read as text, whatever they look like: the labels that have no bins."""
        binned = {
            name
            for pair in zip(self.state, self.next_state, strict=False)
            for name in pair
            if pair[0] in self.bins
        }
        labels = (
            tuple(name for name in self.labels if name not in self.bins and name not in binned)
            * self.text_labels
        )
        return (*labels, self.episode) if self.episode else labels

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read."""
        rest = (self.episode, self.time, self.count, self.weight, self.age, self.propensity)
        return (*self.labels, *(name for name in rest if name))


def seconds(span: float | str) -> float:
    """A span with a unit, in seconds.

    >>> seconds("36h"), seconds("2d")
    (129600.0, 172800.0)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", str(span))
    if not match or match[2] not in UNITS:
        raise ValueError(
            f"a span between dates needs a unit, as in 36h or 30d ({', '.join(UNITS)}); got {span!r}"
        )
    length = float(match[1]) * UNITS[match[2]]
    if not length > 0:
        raise ValueError(f"a span must be positive, not {span}")
    return length


def _span(name: str, span: Span | None) -> float | str | None:
    if span is None:
        return None
    if isinstance(span, timedelta):
        if not span > timedelta(0):
            raise ValueError(f"{name} must be positive, not {span}")
        span = f"{span.total_seconds():f}s"
    try:
        number = float(span)
    except ValueError:
        try:
            seconds(span)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return str(span)
    if not 0 < number < float("inf"):
        raise ValueError(f"{name} must be positive, not {span}")
    return number


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _labels(terminal: Any) -> tuple[Label, ...]:
    return terminal if terminal == () else (terminal,)


def _edges(name: str, given: Sequence[float] | int) -> Edges | int:
    if isinstance(given, int):
        if given < 1:
            raise ValueError(f"bins: {name!r} needs at least one bin, not {given}")
        return given
    try:
        edges = tuple(float(edge) for edge in given)
    except (TypeError, ValueError):
        raise ValueError(f"bins: {name!r} takes edges or a number of bins, not {given!r}") from None
    if len(edges) < 2 or any(not low < high for low, high in pairwise(edges)):
        raise ValueError(
            f"bins: the edges of {name!r} must be at least two, ascending; got {list(edges)}"
        )
    return edges


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(inner) for inner in value)
    if isinstance(value, Mapping):
        return {name: _tuples(inner) for name, inner in value.items()}
    return value
