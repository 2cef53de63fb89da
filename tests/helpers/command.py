"""The command line, called in this process."""

import sys

import pytest

from pastwise.cli.main import main


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Exit code of ``pastwise ARGUMENTS`` in this process."""
    monkeypatch.setattr(sys, "argv", ["pastwise", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)
