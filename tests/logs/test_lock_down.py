"""A log of somebody else is read without reaching anything else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import pastwise
from pastwise.errors import LogError
from pastwise.logs.sql import EngineLimits, connect, locked_down

COLUMNS = {"state": "state", "action": "action", "next_state": "then"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "my [log].csv"
    rows = [f"s{i % 7},a{i % 2},s{i * 3 % 7}" for i in range(200)]
    path.write_text("\n".join(["state,action,then", *rows]) + "\n")
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_the_named_file_is_read_as_ever(log: Path, kind: str) -> None:
    path = log.with_suffix(f".{kind}")
    if kind != "csv":
        table = duckdb.read_csv(str(log).replace("[", "[[]"))
        text = table.to_df()
        if kind == "parquet":
            text.to_parquet(path)
        else:
            text.to_json(path, orient="records", lines=True)
    free = pastwise.validate_log(path, COLUMNS)
    with locked_down(EngineLimits((path,))):
        assert pastwise.validate_log(path, COLUMNS) == free


@pytest.mark.parametrize(
    "query",
    [
        "from read_csv('{other}')",
        "from read_text('/etc/hostname')",
        "from glob('{folder}/*')",
        "copy (select 1) to '{folder}/new.csv'",
        "attach '{folder}/new.db'",
        "from read_csv('https://example.org/log.csv')",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '64GiB'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "create persistent secret s (type s3)",
    ],
)
def test_nothing_else_is_reached(log: Path, tmp_path: Path, query: str) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with locked_down(EngineLimits((log,))):
        connection = connect()
    with pytest.raises(duckdb.Error):
        connection.execute(query.format(other=other, folder=tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my [log].csv", "other.csv"]


def test_another_file_is_an_error_that_names_it(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(log.read_text())
    with locked_down(EngineLimits((log,))), pytest.raises(LogError, match=r"other\.csv"):
        pastwise.validate_log(other, COLUMNS)


def test_memory_is_bounded(tmp_path: Path) -> None:
    with locked_down(EngineLimits((), memory_mb=32)):
        connection = connect()
    with pytest.raises(duckdb.OutOfMemoryException):
        connection.execute("select list(range) from range(20_000_000)")


def test_the_limits_end_with_their_context(log: Path, tmp_path: Path) -> None:
    with locked_down(EngineLimits(())):
        pass
    assert pastwise.validate_log(log, COLUMNS).rows == 200
