"""Columns: which columns of a table hold what, and how their values become labels."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from itertools import pairwise
from math import isfinite
from typing import Any

from pastwise.data.conditions import Condition
from pastwise.data.regions import Region, label_regions
from pastwise.data.space import Label, Space
from pastwise.errors import LogError, ParameterError, listed, shown

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
"""Units of time, in seconds."""

MOST_BINS = 1000
"""Largest number of bins of equal frequency: each edge is a quantile of its own in the query."""

Names = str | Sequence[str]
"""One column, or several."""

Span = float | str | timedelta
"""A length of time: a number in the unit of the column or, for dates, a text such as ``"36h"``."""

Edges = tuple[float, ...]
"""Edges of bins, ascending."""


@dataclass(frozen=True)
class Columns:
    """Which columns of a table hold what.

    `Columns.of` builds one from looser input, such as a single name in place of a tuple.

    Parameters
    ----------
    state, action : tuple of str
        Columns of the state and of the action. Several columns make a product space over the
        combinations that occur.
    next_state : tuple of str
        Columns of the next state, as many as of the state. Without them, the next state is the
        state of the next record of the same ``episode`` in the order of ``time``.
    episode, time : str, optional
        The episode of a record, and its place in the episode. With next-state columns they change
        no count; they give the order that importance sampling needs.
    max_gap : number or text, optional
        Records further apart in time than this do not follow each other. Only without next-state
        columns.
    terminal : tuple of labels
        States in which an episode ends.
    count, weight : str, optional
        How many records a row stands for, and the weight of each of them.
    task : str, optional
        The past task that a record belongs to.
    age, half_life : str; number or text, optional
        A column of dates or numbers, and the span over which a record loses half of its weight.
    bins : mapping from column to edges, or to a number of bins of equal frequency
        Numeric columns of the state or action that are cut into intervals.
    text_labels : bool
        Whether the labels of a CSV file are text even where they look like numbers.
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
            raise ParameterError("a log needs a state column and an action column")
        self._check_next_state()
        if (self.age is None) != (self.half_life is None):
            raise ParameterError("age and half_life go together: give both or neither")
        self._check_names()
        self._check_bins()
        repeated = [name for name in self.labels if self.labels.count(name) > 1]
        if repeated:
            raise ParameterError(f"the column {repeated[0]!r} is named twice")

    def _check_next_state(self) -> None:
        if not self.next_state and not (self.episode and self.time):
            raise ParameterError(
                "name the next_state column, or episode and time: then the next record has it"
            )
        if self.next_state and len(self.next_state) != len(self.state):
            raise ParameterError(
                f"next_state needs as many columns as state: {len(self.state)}, "
                f"not {len(self.next_state)}"
            )
        if self.next_state and self.max_gap is not None:
            raise ParameterError("max_gap has no effect with next_state; drop one of them")

    def _check_names(self) -> None:
        for entry in ("episode", "time", "count", "weight", "task", "age", "propensity"):
            if getattr(self, entry) == "":
                raise ParameterError(f"{entry} is an empty name; name a column or leave it out")

    def _check_bins(self) -> None:
        for name, edges in self.bins.items():
            if isinstance(edges, int) and edges > MOST_BINS:
                raise ParameterError(
                    f"bins: {name!r} takes at most {MOST_BINS:,} bins of equal frequency; "
                    "give fewer, or edges"
                )
            is_number = isinstance(edges, int)
            is_edges = isinstance(edges, tuple) and all(_is_number(edge) for edge in edges)
            if not is_number and not is_edges:
                raise ParameterError(
                    f"bins: {name!r} takes edges or a number of bins, not {edges!r}"
                )
            if name not in self.state and name not in self.action:
                raise ParameterError(f"bins: {name!r} is not a state or action column")

    @classmethod
    def of(
        cls,
        state: Names,
        action: Names,
        next_state: Names | None = None,
        *,
        episode: str | None = None,
        time: str | None = None,
        max_gap: Span | None = None,
        terminal: Label | Sequence[Label] = (),
        count: str | None = None,
        weight: str | None = None,
        task: str | None = None,
        age: str | None = None,
        half_life: Span | None = None,
        bins: Mapping[str, Sequence[float] | int] | None = None,
        text_labels: bool = True,
        propensity: str | None = None,
    ) -> Columns:
        """Columns from what people write: one name or several, one label or several, any span."""
        return cls(
            state=_names(state),
            action=_names(action),
            next_state=_names(next_state or ()),
            episode=episode,
            time=time,
            max_gap=_checked_span("max_gap", max_gap),
            terminal=_labels(terminal),
            count=count,
            weight=weight,
            task=task,
            age=age,
            half_life=_checked_span("half_life", half_life),
            bins={name: _checked_bins(name, given) for name, given in (bins or {}).items()},
            text_labels=text_labels,
            propensity=propensity,
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Columns:
        """The columns that `to_dict` described."""
        plain = {name: _tuples(value) for name, value in content.items()}
        bins = {}
        for name, given in plain["bins"].items():
            bins[name] = given if isinstance(given, int) else _checked_bins(name, given)
        return cls(**{**plain, "bins": bins})

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name. Infinite edges become text, because JSON has no infinity."""
        bins: dict[str, int | list[float | str]] = {}
        for name, edges in self.bins.items():
            if isinstance(edges, int):
                bins[name] = edges
            else:
                bins[name] = [edge if isfinite(edge) else str(edge) for edge in edges]
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {**plain, "bins": bins}

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns whose values are labels."""
        names = (*self.state, *self.action, *self.next_state)
        return (*names, self.task) if self.task else names

    @property
    def text(self) -> tuple[str, ...]:
        """Columns of a CSV file that are read as text: labels without bins, and the episode."""
        binned = set(self.bins)
        for name, next_name in zip(self.state, self.next_state, strict=False):
            if name in self.bins:
                binned.add(next_name)
        names: list[str] = []
        if self.text_labels:
            names = [name for name in self.labels if name not in binned]
        if self.episode:
            names.append(self.episode)
        return tuple(names)

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read."""
        others = (self.episode, self.time, self.count, self.weight, self.age, self.propensity)
        return (*self.labels, *(name for name in others if name))

    def regions(self, states: Space) -> dict[Label, Region]:
        """What each state means in terms of the state columns."""
        edges = {name: cuts for name, cuts in self.bins.items() if isinstance(cuts, tuple)}
        return label_regions(states, self.state, edges)

    def cut_for(self, conditions: Iterable[Condition]) -> Columns:
        """The columns with bins that are cut wherever a condition compares with a number.

        Columns that are not binned stay as they are, and so do numbers of bins, whose edges are
        known once the log is read.
        """
        bins = dict(self.bins)
        for condition in conditions:
            for comparison in condition.atoms():
                edges = bins.get(comparison.column)
                if comparison.column in self.state and isinstance(edges, tuple):
                    bins[comparison.column] = _with_cuts(edges, comparison.cuts())
        return replace(self, bins=bins)


def _with_cuts(edges: Edges, cuts: Iterable[float]) -> Edges:
    """Edges with those cuts that lie between the outermost of them."""
    inside = [cut for cut in cuts if edges[0] < cut < edges[-1]]
    return tuple(sorted({*edges, *inside}))


def require_columns(
    columns: Columns, present: Sequence[str], *, most_compared: int = 10_000
) -> None:
    """Refuse a name that is not a column of the log, and name the nearest that are.

    Parameters
    ----------
    most_compared : int
        How many of the names that there are may be compared and listed, the first ones. The default
        takes about a tenth of a second.
    """
    known = set(present)
    for name in columns.all:
        if name == "*":
            raise LogError("a column named '*' means all columns to an engine; rename it")
        if name in known:
            continue
        near = difflib.get_close_matches(name, present[:most_compared], n=3, cutoff=0.5)
        if near:
            hint = f"did you mean {' or '.join(shown(other) for other in near)}?"
        else:
            hint = f"it has {listed(present)}"
        raise LogError(f"the log has no column {shown(name)}; {hint}")


def seconds(span: float | str) -> float:
    """A span with a unit, in seconds.

    >>> seconds("36h"), seconds("2d")
    (129600.0, 172800.0)
    """
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]+)\s*", str(span))
    if not match or match[2] not in UNITS:
        raise ParameterError(
            f"a span between dates needs a unit, as in 36h or 30d ({', '.join(UNITS)}); "
            f"got {span!r}"
        )
    length = float(match[1]) * UNITS[match[2]]
    if not length > 0:
        raise ParameterError(f"a span must be positive, not {span}")
    return length


def _checked_span(name: str, span: Span | None) -> float | str | None:
    """A span as a number, or as text with a unit."""
    if span is None:
        return None
    if isinstance(span, timedelta):
        if not span > timedelta(0):
            raise ParameterError(f"{name} must be positive, not {span}")
        return f"{span.total_seconds():f}s"
    try:
        number = float(span)
    except ValueError:
        try:
            seconds(span)
        except ParameterError as error:
            raise ParameterError(f"{name}: {error}") from None
        return str(span)
    if not 0 < number < float("inf"):
        raise ParameterError(f"{name} must be positive and finite, not {span}")
    return number


def _checked_bins(name: str, given: Sequence[float] | int) -> Edges | int:
    """A number of bins, or ascending edges."""
    if isinstance(given, int):
        if given < 1:
            raise ParameterError(f"bins: {name!r} needs at least one bin, not {given}")
        return given
    try:
        edges = tuple(float(edge) for edge in given)
    except (TypeError, ValueError):
        raise ParameterError(
            f"bins: {name!r} takes edges or a number of bins, not {given!r}"
        ) from None
    ascending = all(low < high for low, high in pairwise(edges))
    if len(edges) < 2 or not ascending:
        raise ParameterError(
            f"bins: {name!r} needs at least two edges in ascending order, not {list(edges)}"
        )
    return edges


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _labels(given: Any) -> tuple[Label, ...]:
    """One label or several. A tuple is one label of a product space, except the empty one."""
    if isinstance(given, (list, set, frozenset)):
        return tuple(given)
    return () if given == () else (given,)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _tuples(value: Any) -> Any:
    """A value that was read from JSON, with tuples in place of lists."""
    if isinstance(value, list):
        return tuple(_tuples(inner) for inner in value)
    if isinstance(value, Mapping):
        return {name: _tuples(inner) for name, inner in value.items()}
    return value
