"""Every registered method is reached from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pastwise as pw
from pastwise.methods import entries, names
from tests.helpers.command import call

LOG = {
    "room": ["cold", "cold", "mild", "mild", "hot", "hot", "cold", "mild"] * 10,
    "did": ["heat", "wait", "wait", "heat", "cool", "wait", "heat", "wait"] * 10,
    "then": ["mild", "cold", "mild", "hot", "mild", "hot", "cold", "mild"] * 10,
}
COLUMNS = ("--state", "room", "--action", "did", "--next-state", "then", "--prefer", "mild")


@pytest.fixture
def log(tmp_path: Path) -> str:
    """The log as a CSV file."""
    rows = zip(*LOG.values(), strict=True)
    lines = ["room,did,then", *(",".join(row) for row in rows)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.mark.parametrize("method", names())
def test_method_learns_explains_retargets_and_is_evaluated(
    method: str,
    log: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    policy = str(tmp_path / "policy.safetensors")
    other = str(tmp_path / "other.safetensors")
    learn = ("learn", log, *COLUMNS, "--method", method, "-o", policy, "--json")
    assert call(monkeypatch, *learn) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["method"] == method
    if not entries()[method].is_reference:
        assert content["policy"]["cold"]["heat"] > content["policy"]["cold"]["wait"]

    assert call(monkeypatch, "explain", policy, "cold", "--json") == 0
    assert json.loads(capsys.readouterr().out)["method"] == method

    retarget = ("retarget", policy, "--prefer", "hot", "--method", "TL_foresight", "-o", other)
    assert call(monkeypatch, *retarget) == 0
    assert pw.load(other).method_.name == "TL_foresight"

    assert call(monkeypatch, "evaluate", policy, log) in (0, 1)


def test_unknown_method_is_refused(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "learn", log, *COLUMNS, "--method", "SARSA") == 2
    message = capsys.readouterr().err
    assert "SARSA" in message
    assert "TL_foresight" in message, "the choices are named"
