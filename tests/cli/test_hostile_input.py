"""Hostile labels and arguments: nothing reaches the terminal, and errors stay short."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.command import Shell, shell_of

CLEAR = "\x1b[2J\x1b]0;owned\x07"
"""Clears the screen, renames the window, and rings."""

HOSTILE = [CLEAR, "\x9b2J", "\x7f", "\u202egnp.exe", "a\rb", "two\nlines"]
COLUMNS = ["--state", "room", "--action", "did", "--next-state", "then"]
FORBIDDEN = {*"\x1b\x07\x9b\x7f\u202e\r"}


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(tmp_path)
    with Path("log.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["room", "did", "then"])
        for label in HOSTILE:
            writer.writerow([f"cold{label}", f"heat{label}", f"mild{label}"])
            writer.writerow([f"mild{label}", f"wait{label}", ""])
    return shell_of(monkeypatch, capsys)


def test_labels_do_nothing_to_a_terminal(shell: Shell) -> None:
    preferred = f"mild{CLEAR}"
    learned = shell("learn", "log.csv", *COLUMNS, "--prefer", preferred, "-o", "p.safetensors")
    assert learned.code == 0, learned.err
    explained = shell("explain", "p.safetensors", f"cold{CLEAR}")
    validated = shell("validate", "log.csv", *COLUMNS)
    unknown = shell("explain", "p.safetensors", f"icy{CLEAR}")
    option = shell("validate", "log.csv", f"--{CLEAR}")
    file = shell("validate", f"{CLEAR}.csv", *COLUMNS)
    for shown in (learned, explained, validated, unknown, option, file):
        assert not FORBIDDEN & {*shown.out, *shown.err}
    for shown in (learned, explained):
        assert "\\x1b[2J" in shown.out
    for shown in (unknown, option, file):
        assert shown.code == 2
        assert shown.err.count("\n") == 1


def test_json_has_labels_as_they_are(shell: Shell) -> None:
    preferred = f"mild{CLEAR}"
    shown = shell("learn", "log.csv", *COLUMNS, "--prefer", preferred, "--json")
    assert set(shown.json["policy"]) >= {f"cold{label}" for label in HOSTILE}


def test_output_that_cannot_show_a_label(tmp_path: Path) -> None:
    """A terminal without Unicode, and a name that is no text."""
    (tmp_path / "log.csv").write_text("room,did,then\nkühl,heat,冷\n", encoding="utf-8")
    command = [sys.executable, "-m", "pastwise", "learn", "log.csv", *COLUMNS, "--prefer", "冷"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for option in ([], ["--json"], [b"-o", b"\xff.safetensors"]):
        done = subprocess.run(
            [*command, *option], cwd=tmp_path, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr


LONG = "9" * 400


@pytest.mark.parametrize(
    "arguments",
    [
        ["--age", "", "--half-life", "30d"],
        ["--age", ""],
        ["--episode", "", "--time", ""],
        ["--task", ""],
        ["--weight", ""],
        ["--count", ""],
        ["--bins", f"room={LONG}"],
        ["--bins", f"room={LONG},{LONG}9"],
        ["--bins", "room=1001"],
        ["--max-gap", LONG],
        ["--state", LONG * 1000],
    ],
)
def test_odd_columns_are_refused(shell: Shell, arguments: list[str]) -> None:
    shown = shell("validate", "log.csv", *COLUMNS, *arguments)
    assert shown.code == 2, shown.err
    assert shown.err.count("\n") == 1
    assert len(shown.err) < 3000


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "--runs", LONG],
        ["reproduce", "--runs", "99999999999999999999"],
        ["reproduce", "--jobs", LONG],
        ["study", "calibration", "--systems", LONG],
        ["study", "calibration", "--samples", LONG],
        ["study", "icu-sepsis", "--patients", LONG],
        ["study", "gridworlds", "--seeds", LONG],
        ["evaluate", "p.safetensors", "log.csv", "--samples", LONG],
        ["evaluate", "p.safetensors", "log.csv", "--horizon", LONG],
        ["learn", "log.csv", *COLUMNS, "--prefer", f"mild={LONG}"],
        ["learn", "log.csv", *COLUMNS, "--prefer", "mild", "--param", f"prior_count={LONG}"],
        ["learn", "log.csv", *COLUMNS, "--prefer", "mild" * 200_000],
    ],
)
def test_odd_numbers_are_refused(shell: Shell, tmp_path: Path, arguments: list[str]) -> None:
    shown = shell(*arguments)
    assert shown.code == 2, shown.err
    assert shown.err.count("\n") == 1
    assert len(shown.err) < 3000
    assert [path.name for path in tmp_path.iterdir()] == ["log.csv"]
