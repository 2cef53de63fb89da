"""Partitions and conditions as expressions of a query, so that they run where the data are.

A tree becomes one expression, nested when/then (SQL's ``CASE``), with the number of the leaf as its
value. Features are first brought to the form that the tree compares: numbers as 64-bit floating
point, not-a-number as missing, categories as text. That is a projection of its own, so an engine
does it once for each row, not once for each question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

import narwhals.stable.v2 as nw

from pastwise.data.partition import Feature, Kind, Partition, Split
from pastwise.errors import LogError

Schema = Mapping[str, nw.dtypes.DType]
"""Types of the columns of a table."""

Numeric = Callable[[str, Schema, str], nw.Expr]


def leaf_number(partition: Partition, values: Sequence[str]) -> nw.Expr:
    """The number of the leaf, from 1 on; null where a row has none.

    Parameters
    ----------
    values : names of columns
        For each feature, the column that holds its values as `feature_value` makes them.
    """
    columns = [nw.col(name) for name in values]
    number = _subtree(partition, columns, 0 if partition.splits else -1)
    required = [place for place in partition.used if not partition.features[place].may_be_missing]
    if not required:
        return number
    is_absent = reduce(or_, [columns[place].is_null() for place in required])
    return nw.when(~is_absent).then(number)


def _subtree(partition: Partition, columns: Sequence[nw.Expr], node: int) -> nw.Expr:
    """The number of the leaf below a node."""
    if node < 0:
        return nw.lit(-node)
    split = partition.splits[node]
    yes = _subtree(partition, columns, split.yes)
    no = _subtree(partition, columns, split.no)
    return nw.when(_answer(split, columns[split.feature])).then(yes).otherwise(no)


def _answer(split: Split, value: nw.Expr) -> nw.Expr:
    """The answer to a question; null, which counts as no, where the value is missing."""
    if split.is_missing:
        return value.is_null()
    if split.below is not None:
        return value < split.below
    among = list(split.among or ())
    if all(isinstance(each, bool) for each in among):
        return reduce(or_, [value if each else ~value for each in among])
    return value.is_in(among)


# Values.


def kind_of(name: str, dtype: nw.dtypes.DType) -> Kind:
    """Which kind of feature a column holds."""
    if dtype == nw.Boolean:
        return "boolean"
    if dtype.is_numeric() or is_date(dtype):
        return "number"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "category"
    raise LogError(
        f"the feature {name!r} holds {dtype}; a feature is a number, a date, a boolean or text"
    )


def feature_value(feature: Feature, name: str, schema: Schema, numeric: Numeric) -> nw.Expr:
    """A column in the form that the tree compares.

    Parameters
    ----------
    name : str
        The column; it may be that of the next value of the feature.
    numeric : function
        Makes a number of a column, as `query.numeric` does.
    """
    dtype = schema[name]
    column = nw.col(name)
    if feature.kind == "number":
        return numeric(name, schema, "feature")
    if feature.kind == "boolean":
        if dtype == nw.Boolean:
            return column
        raise LogError(f"the feature {name!r} must hold true and false, not {dtype}")
    if dtype == nw.String:
        return column
    if dtype in (nw.Categorical, nw.Enum) or dtype.is_integer():
        return column.cast(nw.String)
    raise LogError(f"the feature {name!r} must hold text, not {dtype}")


def is_date(dtype: nw.dtypes.DType) -> bool:
    """Whether a column holds dates. DuckDB's finest moments have no type in narwhals."""
    return dtype in (nw.Date, nw.Datetime, nw.Unknown)
