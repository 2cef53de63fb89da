"""pastwise look: what it prints can be copied, and works."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.helpers.command import Shell, shell_of

THERMOSTAT = str(Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv")


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(monkeypatch, capsys)


def test_the_printed_command_learns(shell: Shell) -> None:
    shown = shell("look", THERMOSTAT)
    assert shown.code == 0
    command = shown.out[shown.out.index("pastwise learn") :].replace("STATE", "comfortable")
    words = shlex.split(command)
    assert shell(*words[1:], "--no-verdict").code == 0


def test_as_json(shell: Shell) -> None:
    found = shell("look", THERMOSTAT, "--json").json
    assert [column["name"] for column in found["columns"]] == ["day", "hour", "room", "did"]
    assert found["guess"]["episode"] == "day"


def test_a_file_that_is_missing(shell: Shell) -> None:
    shown = shell("look", "missing.csv")
    assert shown.code == 2
    assert "missing.csv" in shown.err
