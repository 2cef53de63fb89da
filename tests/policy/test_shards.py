"""Counts of parts of a log, made apart and put together."""

import json
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pastwise as pw
from pastwise.errors import LogError
from pastwise.logs.columns import Columns
from pastwise.logs.read import read_log
from tests.helpers.command import call

RECORD = st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.sampled_from("abcd"))
COLUMNS = Columns.of("s", "a", "n")


def counted(records: list[tuple[str, str, str]]) -> pw.TransitionCounts:
    table = dict(zip("san", map(list, zip(*records, strict=True)), strict=True))
    return read_log(table, COLUMNS).counts  # without the warning of a log with a single transition


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(RECORD, min_size=1, max_size=6), min_size=1, max_size=3))
def test_counts_of_parts_are_those_of_the_whole_in_any_order(
    parts: list[list[tuple[str, str, str]]],
) -> None:
    whole = counted([record for part in parts for record in part])
    with TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.safetensors" for i in range(len(parts))]
        for part, file in zip(parts, files, strict=True):
            pw.save_counts(counted(part), file, COLUMNS)
        for order in permutations(files):
            counts, columns = pw.merge_counts(order)
            assert counts == whole
            assert columns == COLUMNS


def write(path: Path, records: list[tuple[str, str, str]]) -> str:
    path.write_text("s,a,n\n" + "".join(",".join(record) + "\n" for record in records))
    return str(path)


def test_count_merge_and_learn_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    halves = [[("a", "x", "b")] * 3 + [("b", "y", "a")], [("a", "y", "a")] * 2 + [("c", "x", "b")]]
    files = [str(tmp_path / f"part{i}.safetensors") for i in range(2)]
    columns = ["--state", "s", "--action", "a", "--next-state", "n"]
    for i, half in enumerate(halves):
        log = write(tmp_path / f"{i}.csv", half)
        assert call(monkeypatch, "count", log, *columns, "-o", files[i], "--json") == 0
        assert json.loads(capsys.readouterr().out)["records"] == len(half)
    merged, policy, direct = (
        str(tmp_path / f"{name}.safetensors") for name in ("all", "policy", "direct")
    )
    assert call(monkeypatch, "merge", *files, "-o", merged) == 0
    assert "7 records, 4 transitions, 3 states, 2 actions" in capsys.readouterr().out
    assert call(monkeypatch, "learn", merged, "--prefer", "b", "-o", policy, "--no-verdict") == 0
    whole = write(tmp_path / "whole.csv", halves[0] + halves[1])
    assert (
        call(monkeypatch, "learn", whole, *columns, "--prefer", "b", "-o", direct, "--no-verdict")
        == 0
    )
    one, two = pw.load(policy), pw.load(direct)
    np.testing.assert_array_equal(one.rule_.probabilities, two.rule_.probabilities)
    assert one.update(whole).counts_.num_records == 14, "the columns are remembered"


def test_what_was_counted_otherwise_is_not_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path / "log.csv", [("a", "x", "b")])
    one, two, out = (str(tmp_path / f"{name}.safetensors") for name in ("one", "two", "out"))
    columns = ("--state", "s", "--action", "a", "--next-state", "n")
    other_columns = ("--state", "n", "--action", "a", "--next-state", "s")
    assert call(monkeypatch, "count", log, *columns, "-o", one) == 0
    assert call(monkeypatch, "count", log, *other_columns, "-o", two) == 0
    capsys.readouterr()
    assert call(monkeypatch, "merge", one, two, "-o", out) == 2
    message = capsys.readouterr().err
    assert "was counted by other columns or bins" in message
    assert "they differ in state, next_state" in message
    assert not Path(out).exists()
    assert call(monkeypatch, "explain", one, "a") == 2
    assert "holds counts, not a policy" in capsys.readouterr().err
    assert call(monkeypatch, "learn", one, "--state", "s", "--prefer", "b") == 2
    assert "leave out --state" in capsys.readouterr().err
    assert call(monkeypatch, "learn", log, "--prefer", "b", "--state", "s") == 2
    assert "Missing option '--action'" in capsys.readouterr().err
    assert call(monkeypatch, "merge", log, "-o", out) == 2
    assert "not a file of pastwise" in capsys.readouterr().err


ONE_SHOT = ("--state", "s", "--action", "a")


def count_parts(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    header: str,
    parts: list[list[str]],
    *options: str,
) -> list[str]:
    files = []
    for i, rows in enumerate(parts):
        log = folder / f"{i}.csv"
        log.write_text("\n".join([header, *rows]) + "\n")
        files.append(str(folder / f"{i}.safetensors"))
        assert call(monkeypatch, "count", str(log), *ONE_SHOT, *options, "-o", files[-1]) == 0
    return files


@pytest.mark.parametrize(
    "parts",
    [
        [["x,p,good", "x,q,bad", "y,p,bad"], ["x,p,good", "x,q,x", "y,p,bad"]],
        [["x,p,good", "x,q,bad", "y,p,bad"], ["good,p,bad", "good,q,bad", "y,p,bad"]],
    ],
    ids=["within a part", "between the parts"],
)
def test_outcomes_that_are_states_in_one_part_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[list[str]]
) -> None:
    options = ("--outcome", "o")
    files = count_parts(tmp_path, monkeypatch, "s,a,o", parts, *options)
    (tmp_path / "whole").mkdir()
    rows = [row for part in parts for row in part]
    (whole,) = count_parts(tmp_path / "whole", monkeypatch, "s,a,o", [rows], *options)
    expected, expected_columns = pw.load_counts(whole)
    for order in permutations(files):
        counts, columns = pw.merge_counts(order)
        assert columns == expected_columns
        assert set(counts.states.labels) == set(expected.states.labels)
        assert counts.relabelled(expected.states, expected.actions) == expected


def test_update_refuses_a_log_whose_states_are_outcomes() -> None:
    names: dict[str, Any] = {"state": "s", "action": "a", "outcome": "o"}
    log = {"s": ["x", "x", "y"], "a": ["p", "q", "p"], "o": ["good", "bad", "bad"]}
    learner = pw.TransferLearner(pw.Goal(prefer="good")).fit(log, **names)
    with pytest.raises(LogError, match="a value of the outcome 'o' is a state as well"):
        learner.update({**log, "s": ["good", "good", "y"], "o": ["bad", "bad", "bad"]})
    assert learner.counts_.num_records == 3


def test_parts_with_bins_of_their_own_are_merged_with_the_edges_that_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    parts = [[f"x,{action},{rng.normal():.2f}" for action in "pq" * 50] for _ in range(2)]
    options = ("--reward", "r")
    files = count_parts(tmp_path, monkeypatch, "s,a,r", parts, *options)
    merged = str(tmp_path / "merged.safetensors")
    capsys.readouterr()
    assert call(monkeypatch, "merge", *files, "-o", merged) == 2
    message = capsys.readouterr().err
    assert "the bins of 'r' differ" in message

    bins = message.split("--bins ")[1].split()[0]
    files = count_parts(tmp_path, monkeypatch, "s,a,r", parts, *options, "--bins", bins)
    assert call(monkeypatch, "merge", *files, "-o", merged) == 0
    counts, _ = pw.load_counts(merged)
    assert counts.num_records == 200
