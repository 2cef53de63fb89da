"""The one query that reads a log.

`prepare` gives every record its parts: the fields of state, action and next state, and a `Status`
that says whether it has a next state. `grouped` then sums the records that agree in all of them.
Missing and out-of-range values are groups too, so the same pass counts what is left out.

Where the log has no next-state column, a window takes the next state from the next record of the
same episode. Records without a state are dropped only after that, so a gap breaks the chain instead
of bridging it. Where the log has one, no window is needed.

Where the log has an episode column, every record also gets the fold of its episode and whether it
is the episode's first (`with_folds`), and `grouped` sums each fold apart. Small queries follow for
the lengths and actions of episodes (`grouped_lengths`), and for the number of episodes that visit
each state and take each action there (`grouped_visits`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import reduce
from math import isfinite, log
from operator import and_, or_
from typing import Any

import narwhals.stable.v2 as nw

from pastwise._numerics.arrays import IntArray
from pastwise.data.bins import Bins
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.episodes import NUM_FOLDS
from pastwise.data.partition import Feature, Partition
from pastwise.data.space import Space
from pastwise.errors import LogError, ParameterError, shown
from pastwise.logs.columns import ALL_NUMBERS, Columns, require_columns, seconds
from pastwise.logs.expressions import (
    feature_value,
    is_date,
    is_text,
    leaf_number,
    no_truth,
)
from pastwise.logs.quantiles import collected, with_quantiles
from pastwise.logs.sources import ROW

Schema = Mapping[str, nw.dtypes.DType]
"""Types of the columns of a table."""


class Status(IntEnum):
    """Whether a record has a next state and, if not, why."""

    FOLLOWED = 0
    LAST = 1
    TOO_LATE = 2
    SAME_TIME = 3
    NO_EPISODE = 4
    NO_TIME = 5
    NO_AGE = 6
    NO_REWARD = 7

    @property
    def literal(self) -> nw.Expr:
        """The status as a plain number of a query."""
        return nw.lit(self.value)

    @property
    def holds(self) -> nw.Expr:
        """Condition for records of this status."""
        return nw.col("status") == self.value


def prepare(
    frame: nw.LazyFrame[Any],
    columns: Columns,
    as_of: float | None = None,
    *,
    raw: Sequence[str] = (),
    ties: bool = True,
    chained: bool = True,
) -> tuple[nw.LazyFrame[Any], Columns, Decay | None]:
    """The parts of every record, the columns with all edges of bins known, and the decay.

    Every part is a column: ``state 0``, ``action 0``, ``next 0``, ``status`` and so on.

    Parameters
    ----------
    as_of : float, optional
        The date that weights refer to; the latest of the log by default.
    raw : names of columns
        Kept under their name after ``raw``.
    ties : bool
        Whether several records of an episode may have the same time. If so, their labels decide
        their order. Sorting by time alone is faster.
    chained : bool
        Whether to look for the next record of each; without, all seem to be followed.
    """
    schema = frame.collect_schema()
    require_columns(columns, [name for name in schema if name != ROW])
    columns = _with_outcome(frame, columns, schema)
    columns = with_quantiles(frame, columns, _values_to_cut(columns, schema))
    decay = _decay_of(frame, columns, schema, as_of)

    # Select the parts of each record.
    parts = {
        **_label_parts(columns, schema),
        **_order_parts(columns, schema),
        **_number_parts(columns, schema, decay),
    }
    raw_parts = {f"raw {name}": nw.col(name) for name in raw}
    if columns.features:
        frame, leaves = _with_features(frame, columns, schema)
        parts = {**parts, **leaves}
    frame = frame.select(**parts, **raw_parts)

    # Find the next state and the status of each record.
    status = Status.FOLLOWED.literal
    if columns.is_chained and chained:
        next_parts = {f"next {i}": f"state {i}" for i in range(len(columns.state_fields))}
        order = [name for name in parts if name not in ("episode", "instant")] if ties else []
        is_late = None
        max_gap = _max_gap(columns, schema)
        if max_gap is not None and columns.time:
            is_late = time_to_next(schema[columns.time]) > max_gap
        frame, status = with_following(frame, next_parts, order, is_late)
    if columns.age:
        ageless = nw.col("decayed").is_null()
        status = nw.when(ageless).then(Status.NO_AGE.literal).otherwise(status)
    frame = frame.with_columns(status=status)
    if columns.reward:
        # The last record of an episode may lack a reward: it is no transition.
        is_rewardless = Status.FOLLOWED.holds & nw.col("reward").is_null()
        status = nw.when(is_rewardless).then(Status.NO_REWARD.literal).otherwise(nw.col("status"))
        frame = frame.with_columns(status=status)
    return frame, columns, decay


def sampled(
    frame: nw.LazyFrame[Any],
    columns: Columns,
    features: Sequence[Feature],
    num_rows: int,
    *,
    seed: int,
    least_episodes: int = 100,
) -> nw.LazyFrame[Any]:
    """Records that are followed, with the values of their features and of those that follow.

    Where there are more than ``num_rows``, whole episodes are sampled, or records if that would
    leave fewer than ``least_episodes``. Ranks decide, not places, so the sample does not depend on
    the order of rows, nor on the engine.
    """
    schema = frame.collect_schema()
    parts = feature_parts(features, columns.features, schema, "state value")
    if columns.next_features:
        parts |= feature_parts(features, columns.next_features, schema, "next value")
    labels = _label_parts(columns, schema)
    parts |= {name: part for name, part in labels.items() if name.startswith("action")}
    if columns.outcome:
        parts["outcome"] = labels["next 0"]
    parts |= {**_order_parts(columns, schema), **_number_parts(columns, schema, None)}
    frame = frame.select(**parts)

    # Sample episodes, before a window has to sort them.
    sizes = {"rows": nw.len()}
    if columns.episode:
        sizes["episodes"] = nw.col("episode").n_unique()
    size = collected(frame.select(**sizes))[0]
    share = num_rows / max(size["rows"], 1)
    by_episode = share * (size.get("episodes") or 0) >= least_episodes
    if share < 1 and by_episode:
        frame = _sample_of_episodes(frame, share, seed)

    # The next values and the status, as in `prepare`.
    status = Status.FOLLOWED.literal
    if columns.is_chained:
        next_parts = {f"next value {i}": f"state value {i}" for i in range(len(features))}
        order = [name for name in parts if name not in ("episode", "instant")]
        is_late = None
        max_gap = _max_gap(columns, schema)
        if max_gap is not None and columns.time:
            is_late = time_to_next(schema[columns.time]) > max_gap
        frame, status = with_following(frame, next_parts, order, is_late)
    frame = frame.with_columns(status=status).filter(Status.FOLLOWED.holds)

    if share < 1 and not by_episode:
        frame = _sample_of_records(frame, num_rows, seed)
    return frame


def _is_sampled(rank: nw.Expr, share: float, seed: int) -> nw.Expr:
    """Whether a rank is in the sample: multiples of the golden ratio spread evenly over [0, 1)."""
    place = (rank * 2654435769 + seed * 40503) % 2**32
    return place < int(share * 2**32)


def _sample_of_episodes(frame: nw.LazyFrame[Any], share: float, seed: int) -> nw.LazyFrame[Any]:
    episodes = frame.filter(~nw.col("episode").is_null()).group_by("episode").agg(one=nw.len())
    episodes = episodes.with_columns(one=(nw.col("one") > 0).cast(nw.Int64))
    rank = nw.col("one").cum_sum().over(order_by="episode")
    episodes = episodes.with_columns(rank=rank).filter(_is_sampled(nw.col("rank"), share, seed))
    return frame.join(episodes.select("episode"), on="episode", how="inner")


def _sample_of_records(frame: nw.LazyFrame[Any], num_rows: int, seed: int) -> nw.LazyFrame[Any]:
    """A sample of records, by their values; by their ranks where few values occur.

    Ranks need all records sorted. A number that values determine, and that looks random, does not.
    """
    schema = frame.collect_schema()
    mixed = nw.lit(0.0)
    for place, name in enumerate(schema.names()):
        if schema[name].is_numeric():
            # The fractional part of a large multiple; powers of the golden ratio are irrational.
            number = nw.col(name).cast(nw.Float64)
            multiple = number * (1e4 * 1.618033988749895 ** (1 + (place + seed) % 8))
            fraction = multiple - multiple.floor()
            is_usual = (fraction >= 0) & (fraction < 1)
            mixed = mixed + nw.when(is_usual).then(fraction).otherwise(0.0)
    frame = frame.with_columns(mixed=mixed)
    rows = collected(frame.select(rows=nw.len()))[0]["rows"]
    share = num_rows / max(rows, 1)
    if share >= 1:
        return frame
    is_low = nw.col("mixed") - nw.col("mixed").floor() < share
    sample = frame.filter(is_low)
    found = collected(sample.select(rows=nw.len()))[0]["rows"]
    if num_rows / 2 <= found <= 2 * num_rows:
        return sample
    frame = frame.with_columns(one=nw.col("status") * 0 + 1)
    rank = nw.col("one").cast(nw.Int64).cum_sum().over(order_by=sorted(schema.names()))
    return frame.with_columns(rank=rank).filter(_is_sampled(nw.col("rank"), share, seed))


def grouped(
    prepared: nw.LazyFrame[Any], columns: Columns, decay: Decay | None, *, episodes: bool = True
) -> nw.LazyFrame[Any]:
    """The groups of what `prepare` returned: all that leaves the engine.

    Without ``episodes``, the folds of episodes are not summed.
    """
    sums = _sums(columns, decay)
    if columns.episode and episodes:
        prepared = with_folds(prepared, columns)
        sums += _fold_sums(columns, decay)
    return prepared.group_by([*label_names(columns), "status"]).agg(*sums)


def label_names(columns: Columns) -> list[str]:
    """The parts that hold labels. Records that agree in them, and in their status, are a group."""
    names = [f"state {i}" for i in range(len(columns.state_fields))]
    names += [f"action {i}" for i in range(len(columns.action))]
    names += next_names(columns)
    if columns.task:
        names.append("task")
    return names


def next_names(columns: Columns) -> list[str]:
    """The parts that hold the next state, or the outcome."""
    num_fields = 1 if columns.outcome else len(columns.state_fields)
    return [f"next {i}" for i in range(num_fields)]


# Columns of a log.


def numeric(name: str, schema: Schema, role: str) -> nw.Expr:
    """A column as a number: itself, or a date in seconds since 1970. Not-a-number is missing."""
    dtype = schema[name]
    if dtype.is_numeric():
        value = nw.col(name).cast(nw.Float64)
        return nw.when(~value.is_nan()).then(value) if dtype.is_float() else value
    _require_date(name, dtype, role)
    return _seconds_since_1970(nw.col(name))


def _amount(name: str, schema: Schema, role: str, advice: str = "") -> nw.Expr:
    """A column of numbers that are summed; dates are none. Not-a-number is missing."""
    dtype = schema[name]
    if not dtype.is_numeric():
        raise LogError(f"the {role} column {name!r} must hold numbers, not {dtype}{advice}")
    return numeric(name, schema, role)


def _reward(name: str, schema: Schema) -> nw.Expr:
    """A column of rewards as numbers; booleans are 0 and 1. Not-a-number is missing."""
    if schema[name] == nw.Boolean:
        return nw.col(name).cast(nw.Int64).cast(nw.Float64)
    advice = "; if its values are labels, name it as the outcome"
    return _amount(name, schema, "reward", advice)


def _require_date(name: str, dtype: nw.dtypes.DType, role: str) -> None:
    """Refuse a column that holds neither numbers nor dates."""
    if is_date(dtype):
        return
    problem = f"the {role} column {name!r} must hold numbers or dates, not {dtype}"
    if dtype == nw.String and role in ("time", "age"):
        problem += (
            ": write dates as 2024-05-31 or 2024-05-31T13:00, or convert the column first, as by "
            "pandas.to_datetime or polars' str.to_datetime"
        )
    raise LogError(problem)


def _instant(name: str, schema: Schema) -> nw.Expr:
    """The column of time as it is, to compare exactly. Not-a-number is missing.

    Floating point would not tell nanoseconds, or whole numbers above 2^53, from each other.
    """
    dtype = schema[name]
    if dtype.is_float():
        return numeric(name, schema, "time")
    if not dtype.is_numeric():
        _require_date(name, dtype, "time")
    return nw.col(name)


def time_to_next(dtype: nw.dtypes.DType) -> nw.Expr:
    """Time from each record to the next: in seconds for dates, otherwise in the column's unit."""
    now = nw.col("instant")
    later = nw.col("next instant")
    if not dtype.is_numeric():
        seconds_between = _whole_seconds(later) - _whole_seconds(now)
        microseconds_between = _microseconds(later) - _microseconds(now)
        whole = seconds_between.cast(nw.Float64)
        return whole + microseconds_between.cast(nw.Float64) / 1e6

    # The difference of whole numbers is exact, unless it is too large for them.
    rounded = later.cast(nw.Float64) - now.cast(nw.Float64)
    if not dtype.is_signed_integer():
        return (later - now).cast(nw.Float64) if dtype.is_integer() else rounded
    exact = (later.cast(nw.Int64) - now.cast(nw.Int64)).cast(nw.Float64)
    return nw.when(rounded < 2.0**53).then(exact).otherwise(rounded)


def _seconds_since_1970(column: nw.Expr) -> nw.Expr:
    """A column of dates or moments in seconds since 1970."""
    whole = _whole_seconds(column).cast(nw.Float64)
    return whole + _microseconds(column).cast(nw.Float64) / 1e6


def _whole_seconds(column: nw.Expr) -> nw.Expr:
    """Whole seconds since 1970, by operations that every engine has."""
    moment = column.cast(nw.Datetime).dt

    # Days: those of the years that have passed, by the rule of leap years, and of this year.
    years = moment.year().cast(nw.Int64) - 1
    day = moment.ordinal_day().cast(nw.Int64)
    days = years * 365 + years // 4 - years // 100 + years // 400 + day - 719163

    # The time of day.
    hours = moment.hour().cast(nw.Int64)
    minutes = moment.minute().cast(nw.Int64)
    whole_seconds = moment.second().cast(nw.Int64)
    return days * 86400 + hours * 3600 + minutes * 60 + whole_seconds


def _microseconds(column: nw.Expr) -> nw.Expr:
    """Microseconds after the last whole second; those of some engines are negative before 1970."""
    fraction = column.cast(nw.Datetime).dt.microsecond().cast(nw.Int64)
    return (fraction + 1_000_000) % 1_000_000


def _length(span: float | str, name: str, schema: Schema) -> float:
    """A span in the unit that `numeric` gives the column."""
    if is_date(schema[name]):
        try:
            return seconds(span)
        except ParameterError as error:
            raise ParameterError(f"the column {name!r}: {error}") from None
    if isinstance(span, str):
        raise ParameterError(
            f"the column {name!r} holds numbers, not dates: give the span {span!r} as a number"
        )
    return span


def _max_gap(columns: Columns, schema: Schema) -> float | None:
    if columns.max_gap is None or columns.time is None:
        return None
    return _length(columns.max_gap, columns.time, schema)


def _values_to_cut(columns: Columns, schema: Schema) -> dict[str, nw.Expr]:
    """The values of the columns whose bins are still to be found."""
    names = []
    for name, given in columns.bins.items():
        if name == ALL_NUMBERS:
            numbers = (each for each in columns.state if schema[each].is_numeric())
            names += [each for each in numbers if each not in columns.bins]
        elif not isinstance(given, Bins):
            names.append(name)
    return {name: numeric(name, schema, "binned") for name in names}


def _with_outcome(
    frame: nw.LazyFrame[Any],
    columns: Columns,
    schema: Schema,
    *,
    most_values: int = 20,
    num_bins: int = 10,
) -> Columns:
    """The columns with the reward as the outcome, where one-shot decisions have nothing else.

    Parameters
    ----------
    most_values : int
        Different values of a reward up to which each is an outcome: counts, ratings and grades
        have fewer.
    num_bins : int
        Bins of equal frequency of a reward with more values. Deciles show a distribution, and each
        still has a tenth of the records.
    """
    if not columns.is_one_shot or columns.outcome is not None or columns.reward is None:
        return columns
    name = columns.reward
    bins = dict(columns.bins)
    if name not in bins:
        values = frame.select(value=_reward(name, schema)).group_by("value").agg(rows=nw.len())
        if len(collected(values.head(most_values + 1))) > most_values:
            bins[name] = num_bins
    return replace(columns, outcome=name, bins=bins)


def _decay_of(
    frame: nw.LazyFrame[Any], columns: Columns, schema: Schema, as_of: float | None
) -> Decay | None:
    """How weights fall with age, if they do."""
    if columns.age is None or columns.half_life is None:
        return None
    age = numeric(columns.age, schema, "age")
    half_life = _length(columns.half_life, columns.age, schema)
    if as_of is None:
        as_of = collected(frame.select(latest=age.max()))[0]["latest"]
        if as_of is None or not isfinite(as_of):
            raise LogError(f"the age column {columns.age!r} has no value, or an infinite one")
    if not isfinite(as_of):
        raise ParameterError(f"as_of must be finite, not {as_of}")
    return Decay(as_of, half_life)


# Parts of a record.


def _label_parts(columns: Columns, schema: Schema) -> dict[str, nw.Expr]:
    """Fields of state, action and next state, and the task: labels, or numbers of bins."""

    def label(name: str, binned_as: str) -> nw.Expr:
        bins = columns.bins.get(binned_as)
        if isinstance(bins, Bins):
            return _bin_of(numeric(name, schema, "binned"), bins)
        return nw.col(name)

    parts = {}
    for i, name in enumerate(columns.state):
        parts[f"state {i}"] = label(name, name)
    for i, name in enumerate(columns.action):
        parts[f"action {i}"] = label(name, name)
    for i, name in enumerate(columns.next_state):
        parts[f"next {i}"] = label(name, columns.state[i])
    if columns.outcome:
        parts["next 0"] = label(columns.outcome, columns.outcome)
    if columns.task:
        parts["task"] = nw.col(columns.task)
    return parts


def _with_features(
    frame: nw.LazyFrame[Any], columns: Columns, schema: Schema
) -> tuple[nw.LazyFrame[Any], dict[str, nw.Expr]]:
    """The frame with the values of features as the partition compares them, and its leaves."""
    partition = columns.partition
    if partition is None:
        raise ParameterError("the partition of the features is not known yet")
    place = len(columns.state)
    values: dict[str, nw.Expr] = {}
    leaves: dict[str, nw.Expr] = {}
    for part, names in (("state", columns.features), ("next", columns.next_features)):
        if not names:
            continue
        for feature, name in zip(partition.features, names, strict=True):
            if feature.kind == "boolean" and is_text(schema[name]):
                _require_truth(frame, name)
        prefix = f"{part} value"
        parts = feature_parts(partition.features, names, schema, prefix)
        used = [f"{prefix} {i}" for i in partition.used]
        values.update({name: parts[name] for name in used})
        leaves[f"{part} {place}"] = leaf_number(partition, list(parts))
    if values:
        frame = frame.with_columns(**values)
    return frame, leaves


def _require_truth(frame: nw.LazyFrame[Any], name: str) -> None:
    """Refuse a column of text, in place of booleans, with other words than true and false."""
    others = collected(frame.filter(no_truth(name)).select(word=nw.col(name)).head(1))
    if others:
        raise LogError(
            f"the feature {name!r} must hold true and false, not {shown(others[0]['word'])}"
        )


def feature_parts(
    features: Sequence[Feature], names: Sequence[str], schema: Schema, prefix: str
) -> dict[str, nw.Expr]:
    """The values of features, as a partition compares them, by ``prefix`` and place."""
    parts = {}
    for i, (feature, name) in enumerate(zip(features, names, strict=True)):
        parts[f"{prefix} {i}"] = feature_value(feature, name, schema, numeric)
    return parts


def _bin_of(value: nw.Expr, bins: Bins) -> nw.Expr:
    """Number of the bin, from 1 on.

    Where bins are closed, it is 0 below the first edge, and one more than there are bins above the
    last edge, which belongs to the last bin.
    """
    if bins.is_open:
        return _number_reached(value, bins.edges) + 1
    reached = _number_reached(value, bins.edges[:-1])
    return reached + (value > bins.edges[-1]).cast(nw.Int64)


def _number_reached(value: nw.Expr, edges: Sequence[float]) -> nw.Expr:
    """How many of the edges a value reaches.

    By halves, because engines go through an expression recursively: a sum of a thousand terms, one
    after the other, would be too deep for them.
    """
    if len(edges) == 1:
        return (value >= edges[0]).cast(nw.Int64)
    middle = len(edges) // 2
    return _number_reached(value, edges[:middle]) + _number_reached(value, edges[middle:])


def _order_parts(columns: Columns, schema: Schema) -> dict[str, nw.Expr]:
    """Episode, and instant where the log has both. A series is one episode."""
    if columns.is_series and columns.time:
        return {"episode": nw.lit(0), "instant": _instant(columns.time, schema)}
    if not columns.episode:
        return {}
    episode = nw.col(columns.episode)
    if schema[columns.episode].is_float():
        episode = nw.when(~episode.is_nan()).then(episode)
    if not columns.time:
        return {"episode": episode}
    return {"episode": episode, "instant": _instant(columns.time, schema)}


def _number_parts(columns: Columns, schema: Schema, decay: Decay | None) -> dict[str, nw.Expr]:
    """Count, weight, and what is left of the weight at the record's age."""
    parts = {}
    if columns.count:
        parts["count"] = _amount(columns.count, schema, "count")
    if columns.weight:
        parts["weight"] = _amount(columns.weight, schema, "weight")
    if columns.age and decay:
        since = numeric(columns.age, schema, "age") - decay.as_of
        parts["decayed"] = (since * (log(2) / decay.half_life)).exp()
    if columns.reward:
        parts["reward"] = _reward(columns.reward, schema)
    return parts


# The next record of the episode.


def with_following(
    frame: nw.LazyFrame[Any],
    next_parts: Mapping[str, str],
    order: Sequence[str],
    is_late: nw.Expr | None = None,
) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    """The frame with parts of the next record of the episode, and the status of each record.

    Records without a time form a window of their own, so they come between no others. Records of
    the same time are sorted by ``order``, so the result does not depend on the order of rows.

    Parameters
    ----------
    next_parts : mapping
        From the name of a new column to the part of the next record that it takes.
    order : names of parts
        What decides the order of records of the same time.
    is_late : condition, optional
        Whether the next record comes too late to follow this one.
    """
    frame = frame.with_columns(timeless=nw.col("instant").is_null())

    def following(part: str) -> nw.Expr:
        return nw.col(part).shift(-1).over("episode", "timeless", order_by=["instant", *order])

    # Parts of the next record, and its time.
    nexts = {name: following(part) for name, part in next_parts.items()}
    nexts["next instant"] = following("instant")
    frame = _with_lead(frame.with_columns(**nexts))

    # The status; later conditions go before earlier ones.
    status = nw.when(_is_tie()).then(Status.SAME_TIME.literal).otherwise(Status.FOLLOWED.literal)
    if is_late is not None:
        status = nw.when(is_late).then(Status.TOO_LATE.literal).otherwise(status)
    is_last = nw.col("next instant").is_null()
    status = nw.when(is_last).then(Status.LAST.literal).otherwise(status)
    status = nw.when(nw.col("timeless")).then(Status.NO_TIME.literal).otherwise(status)
    no_episode = nw.col("episode").is_null()
    status = nw.when(no_episode).then(Status.NO_EPISODE.literal).otherwise(status)
    return frame, status


def _is_tie() -> nw.Expr:
    """Whether the next record of the episode has the same time."""
    return nw.col("next instant") <= nw.col("instant")


def _with_lead(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The frame with LEAD(x, 1) where narwhals writes LAG(x, -1), which some engines refuse.

    Only Ibis needs this.
    """
    if not frame.implementation.is_ibis():
        return frame
    from ibis.expr.operations import Lag, Lead, Literal

    table = frame.to_native().op()
    leads = {}
    for lag in table.find(Lag):
        if isinstance(lag.offset, Literal) and lag.offset.value == -1:
            leads[lag] = Lead(lag.arg, 1, lag.default)
    rewritten: nw.LazyFrame[Any] = nw.from_native(table.replace(leads).to_expr())
    return rewritten


# Sums over the records of a group.


def _sums(columns: Columns, decay: Decay | None) -> list[nw.Expr]:
    """Rows, records, weights, squared weights, and what reveals bad counts and weights."""
    sums = [nw.len().alias("rows")]
    if columns.is_chained:
        sums.append(_is_tie().cast(nw.Int64).sum().alias("ties"))

    count = nw.col("count")
    if columns.count:
        sums.append(count.sum().alias("records"))
        sums.append(count.min().alias("least count"))
        sums.append((count % 1).max().alias("odd count"))
        sums.append(count.is_null().cast(nw.Int64).sum().alias("no count"))

    weight = nw.col("weight")
    if columns.weight:
        sums.append(weight.min().alias("least weight"))
        sums.append(weight.is_null().cast(nw.Int64).sum().alias("no weight"))

    each = _weight_of_record(columns, decay)
    if each is not None:
        times = count if columns.count else nw.lit(1.0)
        sums.append((times * each).sum().alias("sum of weights"))
        sums.append((times * each * each).sum().alias("sum of squares"))
    if columns.reward:
        reward = nw.col("reward")
        weighted = _weighted(columns, decay, reward)
        sums.append(weighted.sum().alias("sum of rewards"))
        sums.append((weighted * reward).sum().alias("sum of squared rewards"))
    return sums


def _weighted(columns: Columns, decay: Decay | None, values: nw.Expr) -> nw.Expr:
    """Values of records, times the number and the weight of the records."""
    each = _weight_of_record(columns, decay)
    if columns.count:
        values = nw.col("count") * values
    return values if each is None else each * values


def _weight_of_record(columns: Columns, decay: Decay | None) -> nw.Expr | None:
    """The weight of each record, the product of its own weight and the decay; None if it is 1."""
    if columns.weight and decay:
        return nw.col("weight") * nw.col("decayed")
    if columns.weight:
        return nw.col("weight")
    if decay:
        return nw.col("decayed")
    return None


# Episodes.


def with_folds(prepared: nw.LazyFrame[Any], columns: Columns) -> nw.LazyFrame[Any]:
    """The records with the ``fold`` of their episode and, if there is a time, ``is first``.

    The fold is the rank of the episode among all that the log has, modulo `NUM_FOLDS`. A record
    without an episode has none.
    """
    known = prepared.filter(~nw.col("episode").is_null())
    beginning = nw.col("instant").min() if columns.time else nw.len()
    episodes = known.group_by("episode").agg(beginning.alias("beginning"))
    episodes = episodes.with_columns(one=(~nw.col("episode").is_null()).cast(nw.Int64))
    rank = nw.col("one").cum_sum().over(order_by="episode") - 1
    episodes = episodes.with_columns(fold=rank % NUM_FOLDS)
    if not columns.time:
        return prepared.join(episodes.select("episode", "fold"), on="episode", how="left")
    known_episodes = episodes.select("episode", "fold", "beginning")
    joined = prepared.join(known_episodes, on="episode", how="left")
    is_first = nw.col("instant") == nw.col("beginning")
    if columns.count:
        is_first = is_first & (nw.col("count") > 0)
    return joined.with_columns(is_first.cast(nw.Int64).alias("is first"))


def _fold_sums(columns: Columns, decay: Decay | None) -> list[nw.Expr]:
    """Number of episodes that begin, and the sums of each fold.

    A column for each fold costs less than a group for each: labels need not be read ten times.
    """
    sums = []
    if columns.time:
        sums.append(nw.col("is first").sum().alias("starts"))
    each = _weight_of_record(columns, decay)
    times = nw.col("count") if columns.count else nw.lit(1.0)
    for fold in range(NUM_FOLDS):
        is_inside = nw.col("fold") == fold
        if columns.count:
            records = nw.when(is_inside).then(nw.col("count")).sum()
        else:
            records = nw.when(is_inside).then(nw.lit(1)).count()
        sums.append(records.alias(f"records of {fold}"))
        if each is not None:
            weight = nw.when(is_inside).then(times * each).sum()
            squares = nw.when(is_inside).then(times * each * each).sum()
            sums.append(weight.alias(f"weights of {fold}"))
            sums.append(squares.alias(f"squares of {fold}"))
        if columns.reward:
            reward = nw.col("reward")
            weighted = _weighted(columns, decay, reward)
            rewards = nw.when(is_inside).then(weighted).sum()
            squared = nw.when(is_inside).then(weighted * reward).sum()
            sums.append(rewards.alias(f"rewards of {fold}"))
            sums.append(squared.alias(f"squared rewards of {fold}"))
    return sums


def grouped_lengths(
    prepared: nw.LazyFrame[Any], columns: Columns, usable: nw.Expr | None
) -> nw.LazyFrame[Any]:
    """Numbers of episodes by action, length and number of different actions.

    An episode with three actions is in three groups, so dividing by the number of its actions gives
    the number of episodes of a length.

    Parameters
    ----------
    prepared
        What `prepare` returned; with ``chained=False`` if ``usable`` is None.
    usable : condition, optional
        Which records count. Without one, all but the last of each episode.
    """
    actions = [f"action {i}" for i in range(len(columns.action))]
    known = prepared.filter(~nw.col("episode").is_null())

    # Records of each action of an episode.
    if usable is not None:
        records = nw.col("count").sum() if columns.count else nw.len()
        by_action = known.filter(usable).group_by(["episode", *actions])
        parts = by_action.agg(records.alias("records"))
    else:
        by_action = known.group_by(["episode", *actions])
        parts = by_action.agg(nw.len().alias("records"), nw.col("instant").max().alias("latest"))
        parts = parts.with_columns(end=nw.col("latest").max().over("episode"))
        is_last = (nw.col("latest") == nw.col("end")).cast(nw.Int64)
        parts = parts.with_columns(records=nw.col("records") - is_last)

    # Length of each episode, and number of its actions.
    parts = parts.filter(nw.col("records") > 0)
    parts = parts.with_columns(
        length=nw.col("records").sum().over("episode"),
        varieties=nw.col("records").count().over("episode"),
    )
    return parts.group_by([*actions, "length", "varieties"]).agg(episodes=nw.len())


def grouped_visits(
    prepared: nw.LazyFrame[Any], columns: Columns, names: Sequence[str], usable: nw.Expr | None
) -> nw.LazyFrame[Any]:
    """Numbers of episodes by the named parts, such as those of state and action.

    Two plain groupings: a window over the groups of all episodes would take three times as long.

    Parameters
    ----------
    prepared, usable
        As in `grouped_lengths`.
    names : names of parts
        What to count the episodes by.
    """
    known = prepared.filter(~nw.col("episode").is_null())
    if usable is None:
        ends = known.group_by("episode").agg(nw.col("instant").max().alias("end"))
        known = known.join(ends, on="episode", how="left")
        usable = nw.col("instant") < nw.col("end")
    elif columns.count:
        usable = usable & (nw.col("count") > 0)
    visits = known.filter(usable).group_by(["episode", *names]).agg(nw.len().alias("records"))
    return visits.group_by(list(names)).agg(nw.len().alias("episodes"))


def grouped_starts(
    prepared: nw.LazyFrame[Any], columns: Columns, usable: nw.Expr
) -> nw.LazyFrame[Any]:
    """Numbers of episodes by the states that they leave more often than they enter.

    For a log with next states and without a time: where a path begins, if it does not end there.
    """
    known = prepared.filter(usable & ~nw.col("episode").is_null())
    schema = known.collect_schema()
    times = nw.col("count") if columns.count else nw.lit(1)
    states = [f"state {i}" for i in range(len(columns.state_fields))]

    # One row for each state that is left, and one for each that is entered.
    left = known.select("episode", *states, change=times)
    next_states = {}
    for i, state in enumerate(states):
        entered_state = nw.col(f"next {i}")
        if schema[f"next {i}"] != schema[state]:
            entered_state = entered_state.cast(schema[state])
        next_states[state] = entered_state
    entered = known.select("episode", **next_states, change=-times)

    balance = nw.concat([left, entered]).group_by(["episode", *states])
    starts = balance.agg(nw.col("change").sum().alias("change")).filter(nw.col("change") > 0)
    return starts.group_by(states).agg(episodes=nw.len())


def bad_labels(columns: Columns, schema: Schema) -> dict[str, list[nw.Expr]]:
    """Conditions for records with a bad label, by the code of the finding on them."""
    parts = {
        "state": ("state", columns.state_fields),
        "action": ("action", columns.action),
    }
    if columns.outcome:
        parts["outcome"] = ("next", (columns.outcome,))
    else:
        parts["next-state"] = ("next", columns.state_fields)
    conditions: dict[str, list[nw.Expr]] = {}
    for part, (prefix, names) in parts.items():
        missing = []
        not_finite = []
        out_of_range = []
        for i, name in enumerate(names):
            field = f"{prefix} {i}"
            bins = columns.bins.get(name)
            missing.append(nw.col(field).is_null())
            if schema[field].is_float():
                not_finite.append(~nw.col(field).is_finite())
            if isinstance(bins, Bins) and not bins.is_open:
                out_of_range.append((nw.col(field) == 0) | (nw.col(field) > len(bins)))
        conditions[f"missing-{part}"] = missing
        if not_finite:
            conditions[f"not-finite-{part}"] = not_finite
        if out_of_range:
            conditions[f"out-of-range-{part}"] = out_of_range
    return conditions


def leaves_terminal(columns: Columns, counts: TransitionCounts) -> nw.Expr:
    """Condition for records that leave one of the terminal states of the counts."""
    codes = [columns.state_codes.get(name) for name in columns.state_fields]
    return has_label("state", counts.states, counts.terminal, codes)


def has_label(
    part: str,
    space: Space,
    indices: IntArray,
    codes: Sequence[object],
) -> nw.Expr:
    """Condition for records in which a part has one of some labels.

    Parameters
    ----------
    part : str
        "state", "action" or "next".
    indices : array of int
        Places of the labels in the space; at least one.
    codes : sequence
        For each field of the part its bins or its partition, if the query numbers it.
    """
    is_label: list[nw.Expr] = []
    for index in indices.tolist():
        label: Any = space.labels[index]
        fields = label if space.is_product else (label,)
        equals: list[nw.Expr] = []
        for i, value in enumerate(fields):
            meaning = codes[i]
            if isinstance(meaning, (Bins, Partition)):
                value = meaning.labels.index(value) + 1
            equals.append(nw.col(f"{part} {i}") == value)
        is_label.append(reduce(and_, equals))
    return reduce(or_, is_label)
