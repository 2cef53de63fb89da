"""The first rows of long logs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pastwise.workbench.beginnings import beginning_of


@pytest.mark.parametrize("rows", [1, 70, 130, 199])
def test_the_first_rows_of_parquet(tmp_path: Path, rows: int) -> None:
    table = pa.table({"room": [f"r{i % 7}" for i in range(200)], "hour": range(200)})
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, row_group_size=64)
    folder = tmp_path / "first"
    folder.mkdir()
    part = beginning_of(str(path), rows, folder)
    assert part == str(folder / "log.parquet")
    assert pq.read_table(part).equals(table.slice(0, rows))
    assert beginning_of(str(path), 200, folder) is None


def test_the_first_rows_of_text_with_line_breaks_in_it(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text('room,note\ncold,"so\ncold"\nwarm,"a ""good"" day"\nhot,\n')
    folder = tmp_path / "first"
    folder.mkdir()
    part = beginning_of(str(path), 1, folder)
    assert part is not None
    assert Path(part).read_text() == 'room,note\ncold,"so\ncold"\n'
    assert beginning_of(str(path), 5, folder) is None


def test_other_files_have_no_beginning(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    (tmp_path / "log.parquet").write_bytes(b"no parquet")
    assert beginning_of(str(tmp_path / "log.jsonl"), 1, tmp_path) is None
    assert beginning_of(str(tmp_path / "log.parquet"), 1, tmp_path) is None
    assert beginning_of(str(tmp_path / "missing.csv"), 1, tmp_path) is None
