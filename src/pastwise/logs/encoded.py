"""Logs to which an encoder gives states, before they are counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from pastwise.logs.columns import Columns, require_columns
from pastwise.logs.encoders import NEXT_STATE, STATE, KMeans, matrix_of
from pastwise.logs.sources import log_errors, open_table


def encoded(table: Any, columns: Columns) -> tuple[Any, Columns]:
    """The log in memory, with the states that the encoder gives, and the columns.

    Without an encoder, or with states in the log already, both are as they were. An encoder of ours
    that has not learned yet learns from the log.
    """
    encoding = columns.encoding
    if encoding is None or _has_states(table):
        return table, columns
    source = columns.before_encoding
    with log_errors(table):
        frame = open_table(table, source)
        require_columns(source, list(frame.collect_schema()))
        names = list(dict.fromkeys(source.all))
        rows = frame.select(*names).collect(backend="pyarrow").to_native()

    parts = {STATE: encoding.features, NEXT_STATE: encoding.next_features}
    for name, features in parts.items():
        if not features:
            continue
        values = matrix_of([rows.column(each).to_pylist() for each in features], features)
        if isinstance(encoding.encoder, KMeans) and not encoding.encoder.is_fitted:
            encoding = replace(encoding, encoder=encoding.encoder.fitted(values))
        rows = rows.append_column(name, pa.array(encoding.labels_of(values)))
    return rows, replace(columns, encoding=encoding)


def _has_states(table: Any) -> bool:
    return isinstance(table, pa.Table) and STATE in table.column_names
