"""The command line, called in this process."""

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from pastwise.cli.main import main


class Shown(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The data on stdout; there is nothing else on it."""
        assert self.out.count("\n") == 1
        return json.loads(self.out)


Shell = Callable[..., Shown]
"""Runs ``pastwise ARGUMENTS``."""


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit code of ``pastwise ARGUMENTS`` in this process."""
    monkeypatch.setattr(sys, "argv", ["pastwise", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def shell_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """A function that runs commands in this process and returns what they show."""

    def run(*arguments: str) -> Shown:
        capsys.readouterr()
        code = call(monkeypatch, *arguments)
        captured = capsys.readouterr()
        return Shown(code, captured.out, captured.err)

    return run
