"""Parquet files of text are counted by codes, with the result of an engine on the same table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pastwise as pw
from pastwise.errors import LogError, ParameterError
from pastwise.logs import parquet as codes
from pastwise.logs.columns import Columns

NAMES: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}


def table(records: int, states: int, actions: int, seed: int = 0, missing: float = 0.0) -> pa.Table:
    """Records of text, some of them missing."""
    rng = np.random.default_rng(seed)

    def column(size: int) -> pa.Array:
        values = [f"é{i}" for i in rng.integers(size, size=records)]
        return pa.array(values, pa.string(), mask=rng.random(records) < missing)

    return pa.table({"s": column(states), "a": column(actions), "n": column(states)})


def both(path: Any, whole: pa.Table, **options: Any) -> list[tuple[pw.TransitionCounts, list[str]]]:
    """Counts and warnings of the files and of the table."""
    found = []
    for log in (path, whole):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            counts = pw.count_transitions(log, **NAMES, **options)
        found.append((counts, sorted(str(warning.message) for warning in caught)))
    return found


def is_coded(paths: list[Path], **names: str) -> bool:
    return codes.tally([str(path) for path in paths], Columns.of(**(NAMES | names))) is not None


@pytest.mark.parametrize(("states", "actions"), [(3, 2), (20, 40), (300, 5)])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_files_of_different_dictionaries_are_one_log(
    tmp_path: Path, states: int, actions: int, missing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "BATCH", 100)
    parts = [table(250, max(1, states // (3 - i)), actions, i, missing) for i in range(3)]
    paths = [tmp_path / f"{i}.parquet" for i in range(3)]
    for i, (part, path) in enumerate(zip(parts, paths, strict=True)):
        pq.write_table(part, path, row_group_size=90, use_dictionary=i != 1)
    assert is_coded(paths)
    coded, grouped = both(str(tmp_path / "*.parquet"), pa.concat_tables(parts))
    assert coded == grouped
    assert any("left out" in warning for warning in coded[1]) == (missing > 0)


def test_terminal_states_and_labels_that_occur_in_bad_records_only(tmp_path: Path) -> None:
    log = pa.table(
        {"s": ["x", "y", "z", None], "a": ["u", "u", None, "v"], "n": ["y", "y", "x", "x"]}
    )
    pq.write_table(log, tmp_path / "log.parquet")
    coded, grouped = both(tmp_path / "log.parquet", log, terminal="y")
    assert coded == grouped
    assert coded[0].states.labels == ("x", "y")
    assert coded[0].actions.labels == ("u",)


def test_one_column_may_serve_twice(tmp_path: Path) -> None:
    log = table(50, 4, 3)
    pq.write_table(log, tmp_path / "log.parquet")
    with pytest.raises(ParameterError, match="named twice"):
        pw.count_transitions(tmp_path / "log.parquet", "s", "a", "s")


def test_too_many_transitions_for_an_array_go_to_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = table(500, 30, 3)
    pq.write_table(log, tmp_path / "log.parquet")
    monkeypatch.setattr(codes, "MOST_CELLS", 16 * 16 * 16)
    assert not is_coded([tmp_path / "log.parquet"])
    coded, grouped = both(tmp_path / "log.parquet", log)
    assert coded == grouped


def test_what_is_not_text_goes_to_the_engine(tmp_path: Path) -> None:
    log = pa.table({"s": [1, 2], "a": ["x", "y"], "n": [2, 1]})
    dotted = table(20, 2, 2).rename_columns(["s.s", "a", "n"])
    pq.write_table(log, tmp_path / "numbers.parquet")
    pq.write_table(dotted, tmp_path / "dotted.parquet")
    assert not is_coded([tmp_path / "numbers.parquet"])
    assert not is_coded([tmp_path / "dotted.parquet"], state="s.s")
    assert pw.count_transitions(tmp_path / "numbers.parquet", **NAMES).states.labels == (1, 2)
    assert pw.count_transitions(tmp_path / "dotted.parquet", "s.s", "a", "n").num_records == 20


def test_errors_are_the_engines(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(LogError, match=r"log\.parquet: cannot be read"):
        pw.count_transitions(str(path), **NAMES)
    pq.write_table(table(3, 2, 2).rename_columns(["s", "a", "nn"]), path)
    with pytest.raises(LogError, match="no column 'n'; did you mean 'nn'"):
        pw.count_transitions(path, **NAMES)
    pq.write_table(table(0, 2, 2), path)
    with pytest.raises(LogError, match="the log has no records"):
        pw.count_transitions(path, **NAMES)
    pq.write_table(table(5, 2, 2, missing=1.0), path)
    with pytest.raises(LogError, match="no usable transition: 5 records without state left out"):
        pw.count_transitions(path, **NAMES)


def test_text_that_is_not_utf8_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    text = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe", b"ok"]).buffers())
    pq.write_table(
        pa.table({"s": text, "a": ["x", "x"], "n": ["y", "y"]}), tmp_path / "bad.parquet"
    )
    with pytest.raises(LogError, match=r"bad\.parquet: cannot be read"):
        pw.count_transitions(str(tmp_path / "bad.parquet"), **NAMES)


def test_a_very_long_log_is_counted_in_wider_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts have 32 bits until there are more records than that can hold."""
    whole, path = table(1000, 5, 3), tmp_path / "log.parquet"
    pq.write_table(whole, path)
    tallies = {}
    for most in (10**9, 500):
        monkeypatch.setattr(codes, "MOST_RECORDS", most)
        monkeypatch.setattr(codes, "BATCH", 100)
        tallies[most] = codes.tally([str(path)], Columns.of(**NAMES))
    short, long = (tally.counts for tally in tallies.values() if tally)
    assert (short.dtype, long.dtype) == (np.int32, np.int64)
    np.testing.assert_array_equal(short, long)
    assert pw.count_transitions(str(path), **NAMES).records.dtype == np.int64
