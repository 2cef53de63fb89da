"""Labels of decisions as jobs meet them: keys, which may be those of no label at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from pastwise.data.space import Label, Space, checked_label


class KnownKeys(NamedTuple):
    """Which keys of states and of actions are of use."""

    has_state: Callable[[str], bool]
    has_action: Callable[[str], bool]


def leave_out(path: Path, known: KnownKeys) -> int:
    """Remove decisions with labels that are of no use from a file; returns their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    has_label = {
        "state": cache(known.has_state),
        "action": cache(known.has_action),
        "next_state": cache(known.has_state),
    }
    left_out = 0
    part = path.with_suffix(".part")
    with pq.ParquetFile(path) as source, pq.ParquetWriter(part, source.schema_arrow) as target:
        for batch in source.iter_batches():
            rows = zip(*(batch.column(name).to_pylist() for name in has_label), strict=True)
            is_used = [
                all(has(key) for has, key in zip(has_label.values(), row, strict=True))
                for row in rows
            ]
            left_out += len(is_used) - sum(is_used)
            target.write_batch(batch.filter(pa.array(is_used, pa.bool_())))
    part.replace(path)
    return left_out


def as_in(own: Space, keys: Space) -> Space:
    """The labels of a policy that have these keys; a new key becomes a new label."""
    labels = [label_of(own, str(key)) for key in keys.labels]
    return Space([label for label in labels if label is not None], own.fields)


def label_of(own: Space, key: str) -> Label | None:
    """The label that has a key, known or new; None where no label can have it.

    A decision may have been requested in a state that is none: a value was missing, or it was one
    value where the states have several.
    """
    index = own.find(key)
    if index is not None:
        return own.labels[index]
    if not own.is_product:
        return checked_label(key)
    try:
        parts = msgspec.json.decode(key)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(parts, list) or len(parts) != len(own.fields):
        return None
    return checked_label(tuple(parts))
