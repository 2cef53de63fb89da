"""`pastwise decide`: decisions for rows of raw values."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import pastwise as pw
from tests.helpers.command import Shell, shell_of

ROWS = "x,name\n0.5,Ann\n1.5,Bob\n"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(monkeypatch, capsys)


@pytest.fixture(autouse=True)
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pw.TransferLearner:
    monkeypatch.chdir(tmp_path)
    log = {"x": [0.5, 1.5, 0.2], "a": ["up", "down", "up"], "n": [1.5, 0.5, 1.0]}
    learner = pw.TransferLearner(pw.Goal(prefer=">= 1"), method="TL")
    learner.fit(log, state="x", action="a", next_state="n", bins={"x": [1]})
    learner.save("p.safetensors")
    Path("rows.csv").write_text(ROWS)
    return learner


def test_rows_of_a_file_get_the_learners_decisions(
    shell: Shell, policy: pw.TransferLearner
) -> None:
    shown = shell("decide", "p.safetensors", "rows.csv", "--json")
    assert shown.code == 0
    assert shown.err == ""
    assert shown.json == policy.decisions([0.5, 1.5]).to_dict()
    table = shell("decide", "p.safetensors", "rows.csv").out
    assert "extrapolation" in table
    assert "up" in table


def test_rows_come_from_stdin(
    shell: Shell, policy: pw.TransferLearner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(ROWS.encode())))
    shown = shell("decide", "p.safetensors", "-", "--json")
    assert shown.json == policy.decisions([0.5, 1.5]).to_dict()


def test_decisions_go_to_a_file(shell: Shell, policy: pw.TransferLearner) -> None:
    shown = shell("decide", "p.safetensors", "rows.csv", "--output", "out.csv")
    assert (shown.code, shown.out) == (0, "")
    assert pd.read_csv("out.csv").to_dict("list") == policy.decisions([0.5, 1.5]).columns()


def test_a_row_without_a_state_is_an_error_or_marked(shell: Shell) -> None:
    Path("rows.csv").write_text("x,name\n0.5,Ann\n,Bob\n")
    refused = shell("decide", "p.safetensors", "rows.csv")
    assert refused.code == 2
    assert "row 2, the column 'x'" in refused.err
    assert "--on-unseen prior answers with the prior" in " ".join(refused.err.split())
    shown = shell("decide", "p.safetensors", "rows.csv", "--on-unseen", "prior", "--json")
    assert shown.code == 0
    assert "the prior answers" in shown.err
    assert [row["is_extrapolation"] for row in shown.json["decisions"]] == [False, True]
