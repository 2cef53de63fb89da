"""The values of a column for a first look: their kind, their text, and their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.logs.files import DECIMAL_COMMA, moment_type

Kind = Literal["text", "number", "time", "boolean"]
"""What the values of a column are."""


@dataclass(frozen=True)
class Values:
    """The values of a column in some rows.

    Attributes
    ----------
    codes : [rows]
        Place of each value among the different ones, in the order of their first occurrence; -1
        for a missing value.
    labels : list of str
        The different values as text.
    numbers : [rows], optional
        Numbers, or seconds since 1970; nan where they are missing. None for text.
    """

    name: str
    kind: Kind
    codes: IntArray
    labels: list[str]
    numbers: FloatArray | None

    @property
    def is_missing(self) -> BoolArray:
        """Rows without a value: [rows]."""
        return self.codes < 0

    @property
    def distinct(self) -> int:
        """Number of different values."""
        return len(self.labels)

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        if self.kind != "number" or self.numbers is None:
            return False
        known = self.numbers[np.isfinite(self.numbers)]
        return len(known) > 0 and bool(np.all(known % 1 == 0))


def values_of(name: str, column: pa.ChunkedArray) -> Values:
    """The values of a column of Arrow; texts that all look like numbers or dates are those."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = column.combine_chunks()
    if not (_is_text(column.type) or _is_plain(column.type)):
        texts = [None if value is None else str(value) for value in column.to_pylist()]
        encoded = pa.array(texts, pa.string())

    # Not-a-number is missing.
    if pa.types.is_floating(encoded.type):
        encoded = pc.if_else(pc.is_nan(encoded), pa.scalar(None, encoded.type), encoded)
    dictionary = encoded.dictionary_encode()
    codes = pc.fill_null(dictionary.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    different = dictionary.dictionary
    kind, of_label = _numbers_of(different)
    numbers = None
    if of_label is not None:
        numbers = np.append(of_label, np.nan)[codes]
    return Values(name, kind, codes, _texts(different), numbers)


def _is_text(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or dtype == pa.string_view()
    )


def _is_plain(dtype: pa.DataType) -> bool:
    """Whether values are numbers, booleans, dates or moments."""
    is_number = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
    is_moment = pa.types.is_date(dtype) or pa.types.is_timestamp(dtype)
    return bool(is_number or is_moment or pa.types.is_boolean(dtype) or pa.types.is_decimal(dtype))


def _numbers_of(different: pa.Array) -> tuple[Kind, FloatArray | None]:
    """The kind of a column, and its different values as numbers."""
    dtype = different.type
    if pa.types.is_boolean(dtype):
        return "boolean", _floats(different.cast(pa.int8()))
    if pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
        moments = different.cast(pa.timestamp("us", getattr(dtype, "tz", None)), safe=False)
        return "time", _floats(moments.cast(pa.int64())) / 1e6
    if not _is_text(dtype):
        return "number", _floats(different.cast(pa.float64(), safe=False))
    return _numbers_of_texts(different)


def _numbers_of_texts(different: pa.Array) -> tuple[Kind, FloatArray | None]:
    """The kind that all texts look like."""
    texts = [text.strip() for text in different.to_pylist()]
    if not texts:
        return "text", None
    if {text.lower() for text in texts} <= {"true", "false"}:
        return "boolean", np.array([text.lower() == "true" for text in texts], dtype=np.float64)
    if all(DECIMAL_COMMA.fullmatch(text) for text in texts):
        texts = [text.replace(",", ".") for text in texts]
    try:
        return "number", np.array([float(text) for text in texts])
    except ValueError:
        pass
    if moment_type(texts) is None:
        return "text", None
    return "time", np.array([_seconds(text) for text in texts])


def _seconds(text: str) -> float:
    """A moment in seconds since 1970; one without a time zone is taken as UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _floats(numbers: pa.Array) -> FloatArray:
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _texts(different: pa.Array) -> list[str]:
    """Values as a page shows them: a boolean as in JSON, a whole number without a fraction."""
    if _is_text(different.type):
        return list(different.to_pylist())
    if pa.types.is_boolean(different.type):
        return ["true" if value else "false" for value in different.to_pylist()]
    texts = []
    for value in different.to_pylist():
        is_moment = hasattr(value, "isoformat")
        texts.append(value.isoformat() if is_moment else str(value))
    return texts
