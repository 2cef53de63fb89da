"""A sample of the rows of any table, with all of its columns, for a first look.

Neighbouring rows stay together: a sample is made of blocks of rows that are spread evenly over the
table, because the order of rows shows which column is an episode, and which is a time. Engines
without an order of rows give the first rows that they have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import pyarrow as pa
import pyarrow.parquet as pq

from pastwise.errors import LogError
from pastwise.logs.files import is_files, open_every_column, parquet_files
from pastwise.logs.sources import ROW, log_errors, named_columns, narwhals_frame
from pastwise.logs.sql import engine_errors, identifier

NUM_BLOCKS = 10
"""Blocks of a sample: they show the beginning, the end and what lies between."""


@dataclass(frozen=True)
class Sample:
    """Some rows of a table, or all.

    Attributes
    ----------
    table : pyarrow.Table
        The rows, with all columns; those of CSV and JSON files are text.
    rows : int
        Rows of the whole table.
    blocks : tuple of int
        Number of neighbouring rows in each block, in the order of the table.
    """

    table: pa.Table
    rows: int
    blocks: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows."""
        return bool(self.table.num_rows == self.rows)

    @property
    def sentence(self) -> str:
        """Which rows these are."""
        if self.is_whole:
            return f"all {self.rows:,} rows"
        sampled = f"{self.table.num_rows:,} of {self.rows:,} rows"
        if len(self.blocks) == 1:
            return f"the first {sampled}"
        return f"{sampled}, in {len(self.blocks)} blocks that are spread evenly"


def sample_of(table: Any, num_rows: int) -> Sample:
    """At most about ``num_rows`` rows of a table of any kind that `read_log` takes."""
    paths = parquet_files(table)
    if paths:
        return _of_parquet(paths, num_rows)
    if is_files(table):
        with log_errors(table):
            return _of_relation(open_every_column(table), num_rows)
    table = named_columns(table)
    if isinstance(table, Mapping):
        return _of_columns(dict(table), num_rows)
    frame = narwhals_frame(table)
    if isinstance(frame, nw.LazyFrame):
        with engine_errors("the log"):
            return _of_engine(frame, num_rows)
    starts, length = _spread(len(frame), num_rows)
    tables = [_arrow_of_frame(frame[start : start + length]) for start in starts]
    return _joined(tables, len(frame))


def block_of(table: Any, offset: int, num_rows: int) -> tuple[pa.Table, int] | None:
    """Neighbouring rows of a table, and how many it has; None if its rows have no order."""
    if is_files(table):
        relation = open_every_column(table)
        rows = relation.aggregate("count(*)").fetchall()[0][0]
        return relation.limit(num_rows, offset).to_arrow_table(), rows
    table = named_columns(table)
    if isinstance(table, Mapping):
        rows = _num_rows(table)
        return _block_of_columns(table, offset, num_rows), rows
    frame = narwhals_frame(table)
    if isinstance(frame, nw.LazyFrame):
        return None
    return _arrow_of_frame(frame[offset : offset + num_rows]), len(frame)


def _spread(rows: int, num_rows: int) -> tuple[list[int], int]:
    """First rows of blocks that are spread evenly, and their length."""
    if rows <= num_rows:
        return [0], rows
    num_blocks = min(NUM_BLOCKS, num_rows)
    length = num_rows // num_blocks
    last_start = rows - length
    starts = [place * last_start // max(num_blocks - 1, 1) for place in range(num_blocks)]
    return starts, length


def _joined(tables: Sequence[pa.Table], rows: int) -> Sample:
    blocks = tuple(table.num_rows for table in tables)
    joined = pa.concat_tables(tables, promote_options="permissive")
    return Sample(joined, rows, blocks)


# Files.


def _of_parquet(paths: list[str], num_rows: int) -> Sample:
    """Blocks from the beginnings of row groups, so that the others are not even read."""
    groups: list[tuple[str, int, int]] = []
    for path in paths:
        try:
            metadata = pq.read_metadata(path)
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())
            raise LogError(f"{path}: cannot be read: {reason}") from None
        for place in range(metadata.num_row_groups):
            groups.append((path, place, metadata.row_group(place).num_rows))
    rows = sum(size for _, _, size in groups)
    if not groups:
        return Sample(pq.read_schema(paths[0]).empty_table(), 0, (0,))
    if rows <= num_rows:
        return _joined([pq.read_table(path, partitioning=None) for path in paths], rows)

    # Row groups that are spread evenly, and as many rows of each as are needed in all.
    num_blocks = min(NUM_BLOCKS, len(groups))
    places = [place * (len(groups) - 1) // max(num_blocks - 1, 1) for place in range(num_blocks)]
    length = max(num_rows // num_blocks, 1)
    tables = []
    for place in dict.fromkeys(places):
        path, group, _ = groups[place]
        tables.append(_beginning(path, group, length))
    return _joined(tables, rows)


def _beginning(path: str, group: int, num_rows: int) -> pa.Table:
    """The first rows of a row group."""
    with pq.ParquetFile(path) as file:
        batches = file.iter_batches(batch_size=num_rows, row_groups=[group])
        try:
            return pa.Table.from_batches([next(batches)])
        finally:
            batches.close()


def _of_relation(relation: duckdb.DuckDBPyRelation, num_rows: int) -> Sample:
    """Blocks of a table that DuckDB reads in order: one pass to count, one for the rows."""
    rows = relation.aggregate("count(*)").fetchall()[0][0]
    starts, length = _spread(rows, num_rows)
    if len(starts) == 1:
        return _joined([relation.limit(num_rows).to_arrow_table()], rows)
    numbered = relation.project(f"*, row_number() over () - 1 as {identifier(ROW)}")
    ranges = [f"{identifier(ROW)} between {start} and {start + length - 1}" for start in starts]
    table = numbered.filter(" or ".join(ranges)).to_arrow_table().sort_by(ROW)
    return Sample(table.drop_columns([ROW]), rows, (length,) * len(starts))


# Tables in memory and in engines.


def _of_columns(columns: Mapping[str, Any], num_rows: int) -> Sample:
    """Blocks of a mapping of columns."""
    rows = _num_rows(columns)
    starts, length = _spread(rows, num_rows)
    return _joined([_block_of_columns(columns, start, length) for start in starts], rows)


def _num_rows(columns: Mapping[str, Any]) -> int:
    lengths = {len(values) for values in columns.values()}
    if len(lengths) > 1:
        raise LogError("the columns of the log differ in length")
    return lengths.pop() if lengths else 0


def _block_of_columns(columns: Mapping[str, Any], start: int, length: int) -> pa.Table:
    block = {name: _arrow_of(values[start : start + length]) for name, values in columns.items()}
    return pa.table(block)


def _arrow_of_frame(frame: nw.DataFrame[Any]) -> pa.Table:
    """A data frame with columns of any type."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        try:
            values = column.to_arrow()
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError):
            values = _arrow_of(column.to_list())
        # Intervals of pandas are text, as they are when a log is read.
        dtype = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        is_extension = isinstance(dtype, pa.BaseExtensionType)
        columns[name] = _texts_of(column.to_list()) if is_extension else values
    return pa.table(columns)


def _arrow_of(values: Any) -> pa.Array:
    """Values of a column; as text where they have several types."""
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return _texts_of(values)


def _texts_of(values: Any) -> pa.Array:
    texts = [None if value is None or value != value else str(value) for value in values]
    return pa.array(texts, pa.string())


def _of_engine(frame: nw.LazyFrame[Any], num_rows: int) -> Sample:
    """The first rows that an engine has, and the number of all."""
    counted = frame.select(rows=nw.len()).collect(backend="pyarrow").to_native()
    rows = int(counted.column("rows").to_pylist()[0])
    first = frame.head(num_rows).collect(backend="pyarrow").to_native()
    return Sample(first, rows, (first.num_rows,))
