"""Columns: which columns of a table hold what, and how their values become labels."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property
from inspect import signature
from math import inf
from numbers import Integral
from typing import Any, Literal, cast

from pastwise.data.bins import Bins
from pastwise.data.conditions import Condition
from pastwise.data.partition import Partition
from pastwise.data.regions import Missing, Point, Region, label_regions
from pastwise.data.space import Label, Space
from pastwise.errors import LogError, ParameterError, UnknownColumnError, listed, shown
from pastwise.logs.encoders import NEXT_STATE, STATE, Encoder, Encoding, is_encoder

UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
"""Units of time, in seconds."""

MOST_BINS = 1000
"""Largest number of bins of equal frequency: each edge is a quantile of its own in the query."""

Name = str | int
"""A column. A number names a column of an array, or of a data frame that has such names."""

Names = Name | Sequence[Name]
"""One column, or several."""

Span = float | str | timedelta
"""A length of time: a number in the unit of the column or, for dates, a text such as ``"36h"``."""

AUTO = "auto"
"""In place of bins: a number of them that suits the records; see `pastwise.logs.quantiles`."""

ALL_NUMBERS = "*"
"""In place of a column with bins: all state columns that hold many different numbers."""

GivenBins = Mapping[Any, Sequence[float] | int | str | Bins] | Literal["auto"]
"""Bins as people write them: edges, a number of bins or ``"auto"`` by column, or ``"auto"``."""

FEATURES = "features"
"""Name of the field of a state that a partition of raw columns gives."""

MAX_STATES = 200
"""How many states a partition has at most, unless a user says otherwise."""


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
    bins : mapping from column to `Bins`, to a number of bins of equal frequency, or to ``"auto"``
        Numeric columns of the state or action that are cut into intervals. `of` takes edges, too:
        ``[10, 20]`` cuts into below 10, from 10 to 20, and from 20 on. ``"auto"`` chooses the
        number of bins by the number of records; in place of the mapping it stands for all state
        columns that hold many different numbers.
    text_labels : bool
        Whether the labels of a CSV file are text even where they look like numbers.
    propensity : str, optional
        Probability with which the logged action was taken; for importance sampling only.
    reward : str, optional
        Numeric column, or a boolean one: the reward of each record's action. A goal may maximise
        it. Without a next state, an episode, a time and an outcome, decisions are one-shot, and
        the values of the reward are their outcomes; bins of equal frequency, where it has many.
    outcome : str, optional
        For one-shot decisions, without a next state and an episode: what came of the action. Every
        outcome is a terminal state.
    prefixed_outcome : bool, optional
        Whether the labels of outcomes begin with the name of their column. By default where one of
        them is a label of a state as well; decided when the log is read.
    features : tuple of str
        Raw columns, of numbers, dates, booleans or categories, in place of or next to those of the
        state. A partition of them is learned, and its leaves are states.
    next_features : tuple of str
        Columns of the next values of the features, in the same order. Without them and without
        next-state columns, the next record has them.
    max_states : int
        How many leaves the partition has at most.
    partition : Partition, optional
        The partition, once it is learned.
    encoding : Encoding, optional
        An object that gives rows their states, in place of a partition. `of` takes it as the state.
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
    bins: Mapping[str, Bins | int | str] = field(default_factory=dict)
    text_labels: bool = True
    propensity: str | None = None
    reward: str | None = None
    outcome: str | None = None
    prefixed_outcome: bool | None = None
    features: tuple[str, ...] = ()
    next_features: tuple[str, ...] = ()
    max_states: int = MAX_STATES
    partition: Partition | None = None
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        if not (self.state or self.features) or not self.action:
            raise ParameterError(
                "a log needs a state column, or columns of features, and an action column"
            )
        self._check_next_state()
        self._check_features()
        if (self.age is None) != (self.half_life is None):
            raise ParameterError("age and half_life go together: give both or neither")
        self._check_names()
        self._check_bins()
        repeated = [name for name in self.labels if self.labels.count(name) > 1]
        if repeated:
            raise ParameterError(f"the column {repeated[0]!r} is named twice")

    def _check_next_state(self) -> None:
        if self.is_one_shot:
            self._check_one_shot()
            return
        if not self.has_next and not self.time:
            raise ParameterError(
                "name the next_state column, or episode and time: then the next record has it; "
                "or, for one-shot decisions, the column of the outcome or of the reward"
            )
        if self.has_next and len(self.next_state) != len(self.state):
            raise ParameterError(
                f"next_state needs as many columns as state: {len(self.state)}, "
                f"not {len(self.next_state)}"
            )
        if self.has_next and self.max_gap is not None:
            raise ParameterError("max_gap has no effect with next_state; drop one of them")

    def _check_one_shot(self) -> None:
        """Refuse what only decisions that follow each other have."""
        for entry in ("next_state", "next_features", "episode", "time", "max_gap", "terminal"):
            if getattr(self, entry):
                raise ParameterError(
                    f"an outcome is for one-shot decisions, which have no {entry}; drop one of them"
                )

    def _check_features(self) -> None:
        if self.has_next and len(self.next_features) != len(self.features):
            raise ParameterError(
                f"next_features needs as many columns as features: {len(self.features)}, "
                f"not {len(self.next_features)}"
            )
        if self.features and FEATURES in self.state:
            raise ParameterError(
                f"a state column cannot be named {FEATURES!r} next to features; rename it"
            )
        if isinstance(self.max_states, bool) or not isinstance(self.max_states, int):
            raise ParameterError(f"max_states must be a whole number, not {self.max_states!r}")
        if self.max_states < 2:
            raise ParameterError(f"max_states must be at least 2, not {self.max_states}")
        names = (*self.features, *self.next_features)
        repeated = [name for name in names if names.count(name) > 1 or name in self.labels]
        if repeated:
            raise ParameterError(f"the column {repeated[0]!r} is named twice")
        if self.partition is None:
            return
        known = tuple(feature.name for feature in self.partition.features)
        if known != self.features:
            raise ParameterError(
                f"the partition is one of {listed(known)}, not of {listed(self.features)}"
            )

    def _check_names(self) -> None:
        for entry in (
            "episode",
            "time",
            "count",
            "weight",
            "task",
            "age",
            "propensity",
            "reward",
            "outcome",
        ):
            if getattr(self, entry) == "":
                raise ParameterError(f"{entry} is an empty name; name a column or leave it out")

    def _check_bins(self) -> None:
        for name, given in self.bins.items():
            if isinstance(given, bool) or not (given == AUTO or isinstance(given, (Bins, int))):
                raise ParameterError(
                    f"bins: {name!r} takes edges, a number of bins or 'auto', not {given!r}"
                )
            if isinstance(given, int) and given > MOST_BINS:
                raise ParameterError(
                    f"bins: {name!r} takes at most {MOST_BINS:,} bins of equal frequency; "
                    "give fewer, or edges"
                )
            is_known = name in self.state or name in self.action
            is_outcome = self.is_one_shot and name in (self.outcome, self.reward)
            is_for_all = (name, given) == (ALL_NUMBERS, AUTO)
            if not is_known and not is_outcome and not is_for_all:
                raise ParameterError(f"bins: {name!r} is not a state or action column")

    @classmethod
    def of(
        cls,
        state: Names | Encoder = (),
        action: Names = (),
        next_state: Names | None = None,
        *,
        features: Names = (),
        next_features: Names = (),
        max_states: int = MAX_STATES,
        episode: Name | None = None,
        time: Name | None = None,
        max_gap: Span | None = None,
        terminal: Label | Sequence[Label] = (),
        count: Name | None = None,
        weight: Name | None = None,
        task: Name | None = None,
        age: Name | None = None,
        half_life: Span | None = None,
        bins: GivenBins | None = None,
        text_labels: bool = True,
        propensity: Name | None = None,
        reward: Name | None = None,
        outcome: Name | None = None,
    ) -> Columns:
        """Columns from what people write: one name or several, one label or several, any span."""
        encoding = None
        if is_encoder(state):
            encoding = Encoding(state, _names(features), _names(next_features))
            state_names: tuple[str, ...] = (STATE,)
            next_state = NEXT_STATE if next_features else None
            features = ()
            next_features = ()
        else:
            state_names = _names(cast(Names, state))
        return cls(
            encoding=encoding,
            state=state_names,
            action=_names(action),
            next_state=() if next_state is None else _names(next_state),
            episode=_name_or_none(episode),
            time=_name_or_none(time),
            max_gap=_checked_span("max_gap", max_gap),
            terminal=_labels(terminal),
            count=_name_or_none(count),
            weight=_name_or_none(weight),
            task=_name_or_none(task),
            age=_name_or_none(age),
            half_life=_checked_span("half_life", half_life),
            bins=_checked_bins(bins),
            text_labels=text_labels,
            propensity=_name_or_none(propensity),
            reward=_name_or_none(reward),
            outcome=_name_or_none(outcome),
            features=_names(features),
            next_features=_names(next_features),
            max_states=max_states,
        )

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Columns:
        """The columns that `to_dict` described."""
        plain = {name: _tuples(value) for name, value in content.items()}
        bins = {}
        for name, given in plain["bins"].items():
            is_plain = isinstance(given, (int, str))
            bins[name] = given if is_plain else Bins.from_dict(given)
        partition = content.get("partition")
        if partition is not None:
            plain["partition"] = Partition.from_dict(partition)
        encoding = content.get("encoding")
        if encoding is not None:
            plain["encoding"] = Encoding.from_dict(encoding)
        return cls(**{**plain, "bins": bins})

    def to_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        bins = {}
        for name, given in self.bins.items():
            bins[name] = given.to_dict() if isinstance(given, Bins) else given
        plain = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        if self.partition is not None:
            plain["partition"] = self.partition.to_dict()
        if self.encoding is not None:
            plain["encoding"] = self.encoding.to_dict()
        return {**plain, "bins": bins}

    @property
    def before_encoding(self) -> Columns:
        """The columns of a log to which an encoder has not yet given states."""
        if self.encoding is None:
            return self
        return replace(
            self,
            state=(),
            next_state=(),
            features=self.encoding.features,
            next_features=self.encoding.next_features,
            encoding=None,
            terminal=(),
        )

    @property
    def has_next(self) -> bool:
        """Whether columns hold the next state; otherwise the next record has it."""
        return bool(self.next_state or self.next_features)

    @property
    def state_fields(self) -> tuple[str, ...]:
        """The fields of a state: its columns, and the leaf of the partition of its features."""
        return (*self.state, FEATURES) if self.features else self.state

    @property
    def state_codes(self) -> Mapping[str, Bins | int | str | Partition]:
        """The fields of a state that a query numbers, with what the numbers mean."""
        if self.partition is None:
            return self.bins
        return {**self.bins, FEATURES: self.partition}

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The columns that a row needs for its state to be known."""
        if self.encoding is not None:
            return self.encoding.features
        if self.partition is None:
            return self.state
        used = [self.partition.features[place].name for place in self.partition.used]
        return (*self.state, *used)

    @property
    def is_one_shot(self) -> bool:
        """Whether decisions do not follow each other: each has an outcome, or just a reward."""
        if self.outcome is not None:
            return True
        has_order = self.has_next or self.episode or self.time
        return self.reward is not None and not has_order

    @property
    def is_chained(self) -> bool:
        """Whether the next state of a record is the state of the next record."""
        return not self.has_next and not self.is_one_shot

    @property
    def is_series(self) -> bool:
        """Whether all records are one episode: they have a time, and no episode."""
        return self.is_chained and self.episode is None

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns whose values are labels."""
        names = (*self.state, *self.action, *self.next_state)
        if self.outcome:
            names = (*names, self.outcome)
        return (*names, self.task) if self.task else names

    @property
    def compared(self) -> tuple[str, ...]:
        """Columns whose values are only compared: labels without bins, and the episode."""
        binned = set(self.bins)
        if ALL_NUMBERS in binned:
            binned.update(self.state)
        if self.reward:
            binned.add(self.reward)  # an outcome that is the reward as well is a number
        for name, next_name in zip(self.state, self.next_state, strict=False):
            if name in binned:
                binned.add(next_name)
        names = tuple(name for name in self.labels if name not in binned)
        return (*names, self.episode) if self.episode else names

    @property
    def text(self) -> tuple[str, ...]:
        """Columns of a CSV file that are read as text: those that are only compared."""
        episode = (self.episode,) if self.episode else ()
        names = self.compared if self.text_labels else episode
        return (*names, *self._categories)

    @property
    def _categories(self) -> tuple[str, ...]:
        """Features that the partition knows as text; some of their values may look like numbers."""
        if self.partition is None:
            return ()
        kinds = [feature.kind for feature in self.partition.features]
        names: list[str] = []
        for columns in (self.features, self.next_features):
            named = zip(columns, kinds, strict=False)
            names += [name for name, kind in named if kind == "category"]
        return tuple(names)

    @property
    def all(self) -> tuple[str, ...]:
        """Every column that is read."""
        others = (
            self.episode,
            self.time,
            self.count,
            self.weight,
            self.age,
            self.propensity,
            self.reward,
        )
        raw = (*self.features, *self.next_features)
        return (*self.labels, *raw, *(name for name in others if name))

    def regions(self, states: Space) -> dict[Label, Region]:
        """What each state means in terms of the state columns and of the features."""
        bins = {name: each for name, each in self.bins.items() if isinstance(each, Bins)}
        if self.outcome is None:
            regions = label_regions(states, self.state_fields, bins)
            return {label: self._with_leaf(region) for label, region in regions.items()}

        # States of one-shot decisions are contexts, which have no outcome, and outcomes.
        regions = {}
        no_features = dict.fromkeys(self.features, Missing())
        mark = f"{self.outcome} " if self.prefixed_outcome else ""
        for label in states.labels:
            has_mark = isinstance(label, str) and label.startswith(mark)
            value = label
            if mark and isinstance(label, str):
                value = _of_key(label[len(mark) :])
            outcome = label_regions(Space((value,)), (self.outcome,), bins)[value]
            is_outcome = bool(mark) and has_mark
            if self.features and not self.state:
                is_outcome = label not in self._leaf_regions
            if is_outcome:
                regions[label] = {**no_features, **outcome}
                continue
            fields = self.state_fields if isinstance(label, tuple) else ()
            context = label_regions(Space((label,), fields), self.state_fields, bins)[label]
            context = self._with_leaf(context)
            is_either = not mark and not self.features and not isinstance(label, tuple)
            regions[label] = {**context, **outcome} if is_either else context
        return regions

    def _with_leaf(self, region: Region) -> Region:
        """A region with the values of features in place of the label of their leaf."""
        leaf = region.get(FEATURES)
        if self.partition is None or not isinstance(leaf, Point):
            return region
        others = {name: values for name, values in region.items() if name != FEATURES}
        return {**others, **self._leaf_regions.get(leaf.value, {})}

    @cached_property
    def _leaf_regions(self) -> Mapping[Label, Region]:
        return {} if self.partition is None else dict(self.partition.regions().items())

    def cut_for(self, conditions: Iterable[Condition]) -> Columns:
        """The columns with bins that are cut wherever a condition compares with a number.

        Leaves of a partition are cut as well. Columns that are not binned stay as they are, and so
        do numbers of bins, whose edges are known once the log is read.
        """
        conditions = list(conditions)
        bins = dict(self.bins)
        for condition in conditions:
            for comparison in condition.atoms():
                given = bins.get(comparison.column)
                if comparison.column in self.state and isinstance(given, Bins):
                    bins[comparison.column] = given.cut_at(comparison.cuts())
        partition = self.partition
        if partition is not None:
            partition = partition.cut_for(conditions)
        return replace(self, bins=bins, partition=partition)


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
        parts = [part.strip() for part in name.split(",")]
        if len(parts) > 1 and known.issuperset(parts):
            raise LogError(
                f"the log has no column {shown(name)}; did you mean the columns {parts}? Give "
                "them as a list, or as one option each"
            )
        near = difflib.get_close_matches(name, present[:most_compared], n=3, cutoff=0.5)
        if near:
            hint = f"did you mean {' or '.join(shown(other) for other in near)}?"
        else:
            hint = f"it has {listed(present)}"
        raise UnknownColumnError(f"the log has no column {shown(name)}; {hint}", name, near)


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


def as_columns(columns: Columns | Mapping[str, Any]) -> Columns:
    """Columns as they are, or those that a mapping of the arguments of `Columns.of` names."""
    if isinstance(columns, Columns):
        return columns
    known = list(signature(Columns.of).parameters)
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise ParameterError(f"columns: there is no {shown(unknown[0])}; it has {listed(known)}")
    return Columns.of(**columns)


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
    except TypeError:
        message = f"{name} is a number or a text such as '36h', not {shown(span)}"
        raise ParameterError(message) from None
    except OverflowError:
        number = inf
    except ValueError:
        try:
            seconds(span)
        except ParameterError as error:
            raise ParameterError(f"{name}: {error}") from None
        return str(span)
    if not 0 < number < inf:
        raise ParameterError(f"{name} must be positive and finite, not {shown(span)}")
    return number


def _checked_bins(given: GivenBins | None) -> dict[str, Bins | int | str]:
    """Bins by column, from what people write."""
    if given is None:
        return {}
    if given == AUTO:
        return {ALL_NUMBERS: AUTO}
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"bins takes a mapping from columns to edges, a number of bins or 'auto'; got {given!r}"
        )
    return {_name(name): _bins_of_column(_name(name), each) for name, each in given.items()}


def _bins_of_column(name: str, given: Sequence[float] | int | str | Bins) -> Bins | int | str:
    """Edges as bins, or a number of bins, or ``"auto"``."""
    if isinstance(given, Bins) or given == AUTO:
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 2:
            raise ParameterError(f"bins: {name!r} needs at least two bins, not {given}")
        return given
    try:
        edges = [float(edge) for edge in given]  # type: ignore[union-attr]
    except (TypeError, ValueError):
        raise ParameterError(
            f"bins: {name!r} takes edges, a number of bins or 'auto', not {given!r}"
        ) from None
    try:
        return Bins.of(edges)
    except ParameterError as error:
        raise ParameterError(f"bins: {name!r}: {error}") from None


def _of_key(key: str) -> Label:
    """The number or truth value with this key; any other key is the label itself."""
    try:
        value = json.loads(key)
    except ValueError:
        return key
    return value if isinstance(value, (int, float)) else key


def _names(names: Names) -> tuple[str, ...]:
    """One name or several; numbers, as data frames and arrays may have, become text."""
    if isinstance(names, (str, Integral)):
        return (_name(names),)
    if isinstance(names, Mapping) or not isinstance(names, Iterable):
        raise ParameterError(
            f"columns are given by a name or a list of names, not by {type(names).__name__}"
        )
    return tuple(_name(name) for name in names)


def _name(name: str | int) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, Integral) and not isinstance(name, bool):
        return str(name)
    raise ParameterError(f"a column is named by text or a whole number, not by {name!r}")


def _name_or_none(name: str | int | None) -> str | None:
    return None if name is None else _name(name)


def _labels(given: Any) -> tuple[Label, ...]:
    """One label or several. A tuple is one label of a product space, except the empty one."""
    if isinstance(given, (list, set, frozenset)):
        return tuple(given)
    return () if given == () else (given,)


def _tuples(value: Any) -> Any:
    """A value that was read from JSON, with tuples in place of lists."""
    if isinstance(value, list):
        return tuple(_tuples(inner) for inner in value)
    if isinstance(value, Mapping):
        return {name: _tuples(inner) for name, inner in value.items()}
    return value
