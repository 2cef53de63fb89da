"""Partitions as expressions of a query, so that they run where the data are.

A tree becomes one expression, nested when/then (SQL's ``CASE``), with the number of the leaf as its
value. Features are first brought to the form that the tree compares: numbers as 64-bit floating
point, categories as text. That is a projection of its own, so an engine does it once for each row,
not once for each question. Not-a-number is missing; like null, it is below no threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_

import narwhals.stable.v2 as nw

from pastwise.data.partition import Feature, Kind, Partition, Split
from pastwise.data.space import TRUTH
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
    number = _subtree(partition, values, 0 if partition.splits else -1)
    is_absent = []
    for place in partition.used:
        feature = partition.features[place]
        if not feature.may_be_missing:
            is_absent.append(is_missing(feature, nw.col(values[place])))
    return nw.when(~reduce(or_, is_absent)).then(number) if is_absent else number


def _subtree(partition: Partition, values: Sequence[str], node: int) -> nw.Expr:
    """The number of the leaf below a node."""
    if node < 0:
        return nw.lit(-node)
    split = partition.splits[node]
    feature = partition.features[split.feature]
    answer = _answer(split, feature, nw.col(values[split.feature]))
    yes = _subtree(partition, values, split.yes)
    no = _subtree(partition, values, split.no)
    return nw.when(answer).then(yes).otherwise(no)


def is_missing(feature: Feature, value: nw.Expr) -> nw.Expr:
    """Whether a value is missing."""
    if feature.kind != "number":
        return value.is_null()
    return value.is_null() | value.is_nan()


def _answer(split: Split, feature: Feature, value: nw.Expr) -> nw.Expr:
    """The answer to a question; null, which counts as no, where the value is missing."""
    if split.is_missing:
        return is_missing(feature, value)
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
    if is_text(dtype):
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
        is_plain = dtype == nw.Float64
        return column if is_plain else numeric(name, schema, "feature")
    if feature.kind == "boolean":
        if dtype == nw.Boolean:
            return column
        if is_text(dtype):
            return _chosen(_is_word(column, "true"), True, _is_word(column, "false"), False)
        raise LogError(f"the feature {name!r} must hold true and false, not {dtype}")
    if dtype == nw.Boolean:
        yes, no = (feature.words.get(word, word) for word in TRUTH)
        return _chosen(column, yes, ~column, no)
    if is_text(dtype) or dtype.is_integer():
        text = column if dtype == nw.String else column.cast(nw.String)
        for word, category in feature.words.items():
            text = nw.when(_is_word(text, word)).then(nw.lit(category)).otherwise(text)
        return text
    raise LogError(f"the feature {name!r} must hold text, not {dtype}")


def no_truth(name: str) -> nw.Expr:
    """Condition for text that neither is missing nor says true or false."""
    column = nw.col(name)
    return ~(column.is_null() | _is_word(column, "true") | _is_word(column, "false"))


def is_text(dtype: nw.dtypes.DType) -> bool:
    """Whether a column holds text."""
    return dtype in (nw.String, nw.Categorical, nw.Enum)


def _is_word(column: nw.Expr, word: str) -> nw.Expr:
    """Whether a text is a word in lower or upper case."""
    return column.cast(nw.String).str.to_lowercase() == word


def _chosen(one: nw.Expr, then_one: str | bool, two: nw.Expr, then_two: str | bool) -> nw.Expr:
    """One of two values; missing where neither condition holds."""
    return nw.when(one).then(nw.lit(then_one)).otherwise(nw.when(two).then(nw.lit(then_two)))


def is_date(dtype: nw.dtypes.DType) -> bool:
    """Whether a column holds dates or moments."""
    return dtype in (nw.Date, nw.Datetime)
