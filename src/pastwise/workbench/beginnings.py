"""The first rows of a long log, as a file of their own.

A page that tries out columns wants an answer at once, and ten million rows take seconds. The
beginning of a log is written to a file of the same name and kind, and read like any other.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def beginning_of(file: str, rows: int, folder: Path) -> str | None:
    """A file with the first rows of a log.

    Parameters
    ----------
    rows : int
        At most so many.
    folder : Path
        Where the file is written.

    Returns
    -------
    str or None
        None where the log has no more rows, is of another kind than Parquet and CSV, or cannot be
        read: whoever reads it whole gets the reason.
    """
    path = Path(file)
    target = folder / path.name
    with suppress(OSError, pa.ArrowException):
        if path.suffix.lower() == ".parquet":
            return _of_parquet(path, rows, target)
        if path.suffix.lower() in (".csv", ".tsv", ".txt"):
            return _of_text(path, rows, target)
    return None


def _of_parquet(path: Path, rows: int, target: Path) -> str | None:
    with pq.ParquetFile(path) as source:
        if source.metadata.num_rows <= rows:
            return None
        missing = rows
        with pq.ParquetWriter(target, source.schema_arrow) as writer:
            for batch in source.iter_batches(batch_size=min(rows, 65_536)):
                writer.write_batch(batch.slice(0, missing))
                missing -= min(missing, batch.num_rows)
                if missing == 0:
                    break
    return str(target)


def _of_text(path: Path, rows: int, target: Path) -> str | None:
    """The lines of a table with a header; a line break between quotes ends no row."""
    with path.open("rb") as source, target.open("wb") as unfinished:
        num_quotes = 0
        for line in islice(source, rows + 1):
            unfinished.write(line)
            num_quotes += line.count(b'"')
        while num_quotes % 2 and (line := source.readline()):
            unfinished.write(line)
            num_quotes += line.count(b'"')
        is_whole = not source.read(1)
    return None if is_whole else str(target)
