"""Bins of equal frequency: their edges are quantiles of the log.

``bins="auto"`` chooses how many. With :math:`n` values and :math:`d` columns that are cut so, each
gets as many bins as leave `RECORDS_PER_BIN` records for each combination of bins, on average:
:math:`(n / 50)^{1/d}`, at least `FEWEST` and at most `MOST`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw

from pastwise.data.bins import Bins
from pastwise.errors import LogError
from pastwise.logs.columns import ALL_NUMBERS, AUTO, Columns

RECORDS_PER_BIN = 50
"""With 50 records, the standard error of a probability is at most 0.07."""

FEWEST = 2
MOST = 10
"""Limits of the number of bins that ``"auto"`` chooses. Ten are deciles: few enough to read."""


class Spread(NamedTuple):
    """What a query found about the finite values of a column."""

    number: int
    different: int
    low: float | None
    high: float | None


def with_quantiles(
    frame: nw.LazyFrame[Any], columns: Columns, values: Mapping[str, nw.Expr]
) -> Columns:
    """The columns with edges at the log's quantiles in place of numbers of bins.

    Parameters
    ----------
    values : mapping
        For each column whose bins are to be found, its values as numbers.
    """
    if not values and ALL_NUMBERS not in columns.bins:
        return columns
    finite = {name: nw.when(value.is_finite()).then(value) for name, value in values.items()}
    spreads = _spreads(frame, finite) if finite else {}
    numbers = _numbers_of_bins(columns, spreads)
    edges = _edges(frame, finite, numbers, spreads)
    kept = {name: given for name, given in columns.bins.items() if name != ALL_NUMBERS}
    return replace(columns, bins={**kept, **{name: Bins.of(each) for name, each in edges.items()}})


def _spreads(frame: nw.LazyFrame[Any], values: Mapping[str, nw.Expr]) -> dict[str, Spread]:
    """Number, number of different ones, and range of the values of each column."""
    wanted = []
    for i, value in enumerate(values.values()):
        wanted.append(value.count().alias(f"number {i}"))
        wanted.append(value.n_unique().alias(f"different {i}"))
        wanted.append(value.min().alias(f"low {i}"))
        wanted.append(value.max().alias(f"high {i}"))
    row = collected(frame.select(*wanted))[0]
    spreads = {}
    for i, name in enumerate(values):
        found = (row[f"{part} {i}"] for part in Spread._fields)
        spreads[name] = Spread(*found)
    return spreads


def _numbers_of_bins(columns: Columns, spreads: Mapping[str, Spread]) -> dict[str, int]:
    """How many bins each column gets."""
    numbers = {}
    automatic = []
    for name in spreads:
        given = columns.bins.get(name)
        if isinstance(given, int):
            numbers[name] = given
        else:
            automatic.append(name)
    if not automatic:
        return numbers

    # A column that was not named is cut only if it has more values than bins.
    num_bins = _automatic(spreads, automatic)
    is_named = {name: columns.bins.get(name) == AUTO for name in automatic}
    kept = [name for name in automatic if is_named[name] or spreads[name].different > MOST]
    if kept != automatic:
        num_bins = _automatic(spreads, kept) if kept else FEWEST
    return {**numbers, **dict.fromkeys(kept, num_bins)}


def _automatic(spreads: Mapping[str, Spread], names: list[str]) -> int:
    """How many bins suit the records, by the rule of the module's docstring."""
    records = min(spreads[name].number for name in names)
    # The root of a whole power may be rounded down to just below a whole number.
    suitable = int((records / RECORDS_PER_BIN) ** (1 / len(names)) + 1e-9)
    return max(FEWEST, min(MOST, suitable))


def _edges(
    frame: nw.LazyFrame[Any],
    values: Mapping[str, nw.Expr],
    numbers: Mapping[str, int],
    spreads: Mapping[str, Spread],
) -> dict[str, tuple[float, ...]]:
    """Edges of the bins of each column: quantiles above its lowest value."""
    if not numbers:
        return {}
    for name in numbers:
        low = spreads[name].low
        if low is None or low == spreads[name].high:
            raise LogError(f"bins: {name!r} has too few different values for quantiles")

    # All quantiles, and the second lowest value, in one query.
    wanted: list[nw.Expr] = []
    for i, (name, number) in enumerate(numbers.items()):
        value = values[name]
        above = nw.when(value > nw.lit(spreads[name].low)).then(value)
        wanted.append(above.min().alias(f"second {i}"))
        for j in range(1, number):
            quantile = value.quantile(j / number, interpolation="linear")
            wanted.append(quantile.alias(f"quantile {i} {j}"))
    row = collected(frame.select(*wanted))[0]

    # Where most values are the lowest one, the others have a bin of their own.
    edges = {}
    for i, (name, number) in enumerate(numbers.items()):
        quantiles = {row[f"quantile {i} {j}"] for j in range(1, number)}
        useful = {edge for edge in quantiles if isfinite(edge) and edge > spreads[name].low}
        edges[name] = tuple(sorted(useful or {row[f"second {i}"]}))
    return edges


def collected(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    """The rows of a small result."""
    rows: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return rows
