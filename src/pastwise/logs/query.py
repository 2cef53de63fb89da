"""The one query that a log is read by.

The log is grouped by state, action, next state and what became of the record. Missing and out-of-range values are
groups too, so that what is left out is counted in the same pass. Where the log has no next-state column, the next
state is that of the next record of the same episode, by a window. Missing states are dropped only after that, so that
a gap breaks the chain instead of bridging it. Where it has one, episode and moment go along and no window is needed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite, log
from typing import TYPE_CHECKING, Any

from pastwise.data.counts import Decay
from pastwise.logs.columns import Columns, Edges, seconds

if TYPE_CHECKING:
    import narwhals as nw

FOLLOWED, LAST, FAR, SAME_TIME, NO_EPISODE, NO_TIME, NO_AGE = range(7)
"""What became of a record: it has a next state, or it has none because of this."""

UNORDERED = ("episode", "moment")
"""Parts of a record that do not decide in which order records of the same time are taken; all others do."""


def prepare(
    frame: nw.LazyFrame[Any],
    columns: Columns,
    as_of: float | None = None,
    *,
    raw: Sequence[str] = (),
    ties: bool = True,
) -> tuple[nw.LazyFrame[Any], Columns, Decay | None]:
    """The frame with the parts that it is grouped by and the numbers that are summed; the columns with all bins known.

    Every part has a name of its own: ``state 0``, ``action 0``, ``next 0``, ``status`` and so on. The ``raw`` columns
    go along. Without ``ties`` records of the same time come in any order: faster, and for logs that have none.
    """
    schema = frame.collect_schema()
    _require_columns(columns, list(schema))
    columns = _with_edges(frame, columns, schema)
    decay = _decay(frame, columns, schema, as_of)
    return _prepared(frame, columns, schema, decay, raw, ties), columns, decay


def _require_columns(columns: Columns, present: list[str]) -> None:
    for name in columns.all:
        if name not in present:
            near = difflib.get_close_matches(name, present, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(repr(n) for n in near)}?"
                if near
                else f"it has {', '.join(present)}"
            )
            raise ValueError(f"the log has no column {name!r}; {hint}")


def _numeric(name: str, schema: Mapping[str, nw.dtypes.DType], what: str) -> nw.Expr:
    """The column as a number: itself, or a date in seconds since 1970. Not-a-number is missing."""
    import narwhals as nw

    column, dtype = nw.col(name), schema[name]
    if dtype.is_numeric():
        value = column.cast(nw.Float64)
        return nw.when(~value.is_nan()).then(value) if dtype.is_float() else value
    if not _is_date(dtype):
        raise ValueError(f"the {what} column {name!r} must hold numbers or dates, not {dtype}")
    moment = column.cast(nw.Datetime).dt
    years, day = moment.year().cast(nw.Int64) - 1, moment.ordinal_day().cast(nw.Int64)
    days = years * 365 + years // 4 - years // 100 + years // 400 + day - 719163
    hour, minute, second = (
        part.cast(nw.Int64) for part in (moment.hour(), moment.minute(), moment.second())
    )
    clock = hour * 3600 + minute * 60 + second
    micro = (
        moment.microsecond().cast(nw.Int64) + 1_000_000
    ) % 1_000_000  # some engines' are negative before 1970
    return (days * 86400 + clock).cast(nw.Float64) + micro.cast(nw.Float64) / 1e6


def _is_date(dtype: nw.dtypes.DType) -> bool:
    """Whether a column holds dates; DuckDB's finest moments have no type in narwhals."""
    import narwhals as nw

    return dtype in (nw.Date, nw.Datetime, nw.Unknown)


def _span(span: float | str, name: str, schema: Mapping[str, nw.dtypes.DType]) -> float:
    """A span in the unit that `_numeric` gives the column."""
    if _is_date(schema[name]):
        try:
            return seconds(span)
        except ValueError as error:
            raise ValueError(f"the column {name!r}: {error}") from None
    if isinstance(span, str):
        raise ValueError(
            f"the column {name!r} holds numbers, not dates: give the span {span!r} as a number"
        )
    return span


def _with_edges(frame: nw.LazyFrame[Any], columns: Columns, schema: Mapping[str, Any]) -> Columns:
    """The columns with quantiles of the log in place of numbers of bins."""
    wanted = {name: number for name, number in columns.bins.items() if isinstance(number, int)}
    if not wanted:
        return columns
    steps = {
        f"{name} {i}": (name, i / number)
        for name, number in wanted.items()
        for i in range(number + 1)
    }
    quantiles = [
        _numeric(name, schema, "binned").quantile(share, interpolation="linear").alias(alias)
        for alias, (name, share) in steps.items()
    ]
    row = frame.select(*quantiles).collect(backend="pyarrow").to_native().to_pylist()[0]
    bins: dict[str, Edges | int] = dict(columns.bins)
    for name in wanted:
        edges = sorted(
            {
                row[alias]
                for alias, (owner, _) in steps.items()
                if owner == name and row[alias] is not None
            }
        )
        if len(edges) < 2:
            raise ValueError(f"bins: {name!r} has too few different values for quantiles")
        bins[name] = tuple(edges)
    return replace(columns, bins=bins)


def _decay(
    frame: nw.LazyFrame[Any], columns: Columns, schema: Mapping[str, Any], as_of: float | None
) -> Decay | None:
    if columns.age is None or columns.half_life is None:
        return None
    age = _numeric(columns.age, schema, "age")
    half_life = _span(columns.half_life, columns.age, schema)
    if as_of is None:
        latest = frame.select(latest=age.max()).collect(backend="pyarrow").to_native()
        as_of = latest.column("latest").to_pylist()[0]
        if as_of is None or not isfinite(as_of):
            raise ValueError(f"the age column {columns.age!r} has no value, or an infinite one")
    if not isfinite(as_of):
        raise ValueError(f"as_of must be finite, not {as_of}")
    return Decay(as_of, half_life)


def _prepared(
    frame: nw.LazyFrame[Any],
    columns: Columns,
    schema: Mapping[str, Any],
    decay: Decay | None,
    raw: Sequence[str],
    ties: bool,
) -> nw.LazyFrame[Any]:
    import narwhals as nw

    def label(name: str, like: str) -> nw.Expr:
        edges = columns.bins.get(like)
        return (
            _bin(_numeric(name, schema, "binned"), edges)
            if isinstance(edges, tuple)
            else nw.col(name)
        )

    parts = {f"state {i}": label(name, name) for i, name in enumerate(columns.state)}
    parts |= {f"action {i}": label(name, name) for i, name in enumerate(columns.action)}
    pairs = zip(columns.next_state, columns.state, strict=False)
    parts |= {f"next {i}": label(name, like) for i, (name, like) in enumerate(pairs)}
    if columns.task:
        parts["task"] = nw.col(columns.task)
    if columns.episode and columns.time:
        episode = nw.col(columns.episode)
        if schema[columns.episode].is_float():
            episode = nw.when(~episode.is_nan()).then(episode)
        parts |= {"episode": episode, "moment": _numeric(columns.time, schema, "time")}
    if columns.count:
        parts["count"] = _numeric(columns.count, schema, "count")
    if columns.weight:
        parts["weight"] = _numeric(columns.weight, schema, "weight")
    if columns.age and decay:
        since = _numeric(columns.age, schema, "age") - decay.as_of
        parts["fallen"] = (since * (log(2) / decay.half_life)).exp()
    frame = frame.select(**parts, **{f"raw {name}": nw.col(name) for name in raw})
    status = nw.lit(FOLLOWED)
    if not columns.next_state:
        limit = (
            None if columns.max_gap is None else _span(columns.max_gap, str(columns.time), schema)
        )
        nexts = {f"next {i}": f"state {i}" for i in range(len(columns.state))}
        frame, status = followed(
            frame, nexts, [name for name in parts if ties and name not in UNORDERED], limit
        )
    if columns.age:
        status = nw.when(nw.col("fallen").is_null()).then(nw.lit(NO_AGE)).otherwise(status)
    return frame.with_columns(status=status)


def _bin(value: nw.Expr, edges: Edges) -> nw.Expr:
    """Number of the interval, from 1 on; 0 below the first edge, one too many above the last, which is included."""
    import narwhals as nw

    low = [(value >= edge).cast(nw.Int64) for edge in edges[:-1]]
    return sum(low[1:], start=low[0]) + (value > edges[-1]).cast(nw.Int64)


def followed(
    frame: nw.LazyFrame[Any],
    wanted: Mapping[str, str],
    order: Sequence[str],
    max_gap: float | None = None,
) -> tuple[nw.LazyFrame[Any], nw.Expr]:
    """The frame with wanted parts of the next record of the episode, by new name, and what became of each record.

    Records without a time stand apart, so that they come between no others. Records of the same time are taken in the
    order of their labels, so that the result does not depend on the order of rows.
    """
    import narwhals as nw

    frame = frame.with_columns(timeless=nw.col("moment").is_null())

    def following(name: str) -> nw.Expr:
        return nw.col(name).shift(-1).over("episode", "timeless", order_by=["moment", *order])

    nexts = {name: following(part) for name, part in wanted.items()}
    frame = _leading(frame.with_columns(**nexts, gap=following("moment") - nw.col("moment")))
    status = nw.when(nw.col("gap") <= 0).then(nw.lit(SAME_TIME)).otherwise(nw.lit(FOLLOWED))
    if max_gap is not None:
        status = nw.when(nw.col("gap") > max_gap).then(nw.lit(FAR)).otherwise(status)
    status = nw.when(nw.col("gap").is_null()).then(nw.lit(LAST)).otherwise(status)
    status = nw.when(nw.col("timeless")).then(nw.lit(NO_TIME)).otherwise(status)
    return frame, nw.when(nw.col("episode").is_null()).then(nw.lit(NO_EPISODE)).otherwise(status)


def _leading(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """The frame, in Ibis with LEAD(x, 1) where narwhals asks for LAG(x, -1), which some engines refuse."""
    import narwhals as nw

    if not frame.implementation.is_ibis():
        return frame
    from ibis.expr.operations import Lag, Lead, Literal

    table = frame.to_native().op()
    back = [
        lag for lag in table.find(Lag) if isinstance(lag.offset, Literal) and lag.offset.value == -1
    ]
    leads = {lag: Lead(lag.arg, 1, lag.default) for lag in back}
    ahead: nw.LazyFrame[Any] = nw.from_native(table.replace(leads).to_expr())
    return ahead


def grouped(
    prepared: nw.LazyFrame[Any], columns: Columns, decay: Decay | None
) -> nw.LazyFrame[Any]:
    """The groups of what `prepare` gave: all that leaves the engine."""
    return prepared.group_by([*labels(columns), "status"]).agg(*_sums(columns, decay))


def labels(columns: Columns) -> list[str]:
    """The parts that tell of what kind a record is; with what became of it, what records are grouped by."""
    names = [f"state {i}" for i in range(len(columns.state))] + [
        f"action {i}" for i in range(len(columns.action))
    ]
    names += [f"next {i}" for i in range(len(columns.state))]
    return names + (["task"] if columns.task else [])


def _sums(columns: Columns, decay: Decay | None) -> list[nw.Expr]:
    """Rows, records, weights and their squares, and what is needed to tell bad ones."""
    import narwhals as nw

    count, weight = nw.col("count"), nw.col("weight")
    wanted = [nw.len().alias("rows")]
    if not columns.next_state:
        wanted.append(
            ((nw.col("gap") <= 0) | nw.col("gap").is_nan()).cast(nw.Int64).sum().alias("ties")
        )
    factors: list[nw.Expr] = []
    if columns.count:
        wanted += [
            count.sum().alias("records"),
            count.min().alias("least count"),
            (count % 1).max().alias("odd count"),
        ]
        wanted.append(count.is_null().cast(nw.Int64).sum().alias("no count"))
    if columns.weight:
        wanted += [
            weight.min().alias("least weight"),
            weight.is_null().cast(nw.Int64).sum().alias("no weight"),
        ]
        factors.append(weight)
    if decay:
        factors.append(nw.col("fallen"))
    if factors:
        each = factors[0] * factors[1] if len(factors) > 1 else factors[0]
        times = count if columns.count else nw.lit(1.0)
        wanted += [
            (times * each).sum().alias("sum of weights"),
            (times * each * each).sum().alias("sum of squares"),
        ]
    return wanted
