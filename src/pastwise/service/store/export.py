"""Decisions as Parquet files.

A *log* holds the records that `pastwise learn` takes as they are: what was really done, and what
followed. So decisions without an outcome are left out, and those in shadow mode, unless somebody
reported what was done. Where an action was taken by somebody else, it is the record's action, and
there is no propensity; `pastwise evaluate --importance` estimates propensities of such a log from
the log, if none are named. A decision without an episode is an episode of its own.

An *archive* holds all columns of chosen decisions. It may be read as a log, too: what is not known
is missing, so that such records are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pastwise._files import replacing
from pastwise.service.store.reading import Reads

if TYPE_CHECKING:
    import pyarrow as pa


class Field(NamedTuple):
    """A column of the file: its name, its type, and its value in SQL."""

    name: str
    type: str
    sql: str


WAS_DONE = "(d.mode <> 'shadow' or d.taken is not null)"
"""Whether it is known what was done: in shadow mode, only if somebody reported it."""

WAS_CHOSEN = "(d.mode <> 'shadow' and d.taken is null)"
"""Whether what was done is what the service decided."""

LOG = (
    Field("state", "string", "d.state"),
    Field("action", "string", f"case when {WAS_DONE} then coalesce(d.taken, d.action) end"),
    Field("next_state", "string", "o.next_state"),
    Field("episode", "string", "coalesce(d.episode, d.id)"),
    Field("time", "time", "d.at"),
    Field("propensity", "double", f"case when {WAS_CHOSEN} then d.propensity end"),
    Field("reward", "double", "o.reward"),
    Field("decision_id", "string", "d.id"),
    Field("status", "string", "d.status"),
)

ARCHIVE = (
    *LOG,
    Field("seq", "int64", "d.seq"),
    Field("version", "int64", "d.version"),
    Field("evidence", "int64", "d.evidence"),
    Field("features", "string", "d.features"),
    Field("decided_action", "string", "d.action"),
    Field("decided_propensity", "double", "d.propensity"),
    Field("allowed", "string", "d.allowed"),
    Field("floor", "double", "d.floor"),
    Field("mode", "string", "d.mode"),
    Field("context", "string", "d.context"),
    Field("token", "string", "d.token"),
    Field("key", "string", "d.key"),
    Field("due", "time", "d.due"),
    Field("taken_by", "string", "d.taken_by"),
    Field("outcome_seq", "int64", "o.seq"),
    Field("outcome_status", "string", "o.status"),
    Field("outcome_token", "string", "o.token"),
    Field("outcome_at", "time", "o.at"),
    Field("outcome_reported_at", "time", "o.reported_at"),
)

IS_RECORD = f"{WAS_DONE} and (o.next_state is not null or o.reward is not null)"


def export_parquet(
    store: Reads,
    policy: str,
    path: str | Path,
    *,
    since: int | None = None,
    until: int | None = None,
) -> int:
    """Write the decisions of a policy as a log; returns the number of records.

    Parameters
    ----------
    since, until : int, optional
        Only decisions that were made from ``since`` on, and before ``until``.
    """
    conditions = [IS_RECORD]
    parameters: list[Any] = []
    if since is not None:
        conditions.append("d.at >= ?")
        parameters.append(since)
    if until is not None:
        conditions.append("d.at < ?")
        parameters.append(until)
    sql = _selection(LOG, " and ".join(conditions))

    def pages() -> Iterator[list[Any]]:
        end = store.last_seq(policy)
        for start in range(0, end, store.page):
            stop = min(start + store.page, end)
            yield store.rows(sql, policy, start, stop, *parameters)

    return _write(path, LOG, pages())


def archive_parquet(store: Reads, policy: str, path: str | Path, numbers: list[int]) -> int:
    """Write all columns of some decisions; returns their number.

    Parameters
    ----------
    numbers : list of int
        The decisions by ``seq``, in order.
    """

    def pages() -> Iterator[list[Any]]:
        for first in range(0, len(numbers), MANY):
            chosen = numbers[first : first + MANY]
            marks = ", ".join("?" for _ in chosen)
            sql = _selection(ARCHIVE, f"d.seq in ({marks})")
            yield store.rows(sql, policy, chosen[0] - 1, chosen[-1], *chosen)

    return _write(path, ARCHIVE, pages())


MANY = 500
"""Parameters of one query; databases limit them."""


def _selection(fields: Iterable[Field], condition: str) -> str:
    values = ", ".join(field.sql for field in fields)
    return (
        f"select {values} from decision d left join outcome o on o.decision = d.id"
        f" where d.policy = ? and d.seq > ? and d.seq <= ? and {condition} order by d.seq"
    )


def _write(path: str | Path, fields: tuple[Field, ...], pages: Iterable[list[Any]]) -> int:
    """Write pages of rows to a file, which appears when it is complete."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types: dict[str, pa.DataType] = {
        "string": pa.string(),
        "double": pa.float64(),
        "int64": pa.int64(),
        "time": pa.timestamp("ms", tz="UTC"),
    }
    schema = pa.schema([(field.name, types[field.type]) for field in fields])
    number = 0
    with (
        replacing(path) as unfinished,
        pq.ParquetWriter(unfinished, schema, compression="zstd") as writer,
    ):
        for rows in pages:
            if rows:
                columns = zip(*rows, strict=True)
                arrays = [
                    pa.array(column, type=kind)
                    for column, kind in zip(columns, schema.types, strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
                number += len(rows)
    return number
