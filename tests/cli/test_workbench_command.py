"""`pastwise workbench` where it cannot start: one line, and exit code 2."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from pastwise.workbench.pages import Pages
from tests.helpers.command import Shell, shell_of

BAD_INPUT = 2


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Commands on a machine that has the page."""
    monkeypatch.setattr(Pages, "is_built", True)
    return shell_of(monkeypatch, capsys)


def test_a_port_in_use_is_named(shell: Shell, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        shown = shell("workbench", "--port", str(port), "--root", str(tmp_path), "--no-browser")
    assert shown.code == BAD_INPUT
    assert f"cannot listen on 127.0.0.1:{port}" in shown.err
    assert "another port, such as 0" in shown.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("")
    options = ("--port", "0", "--root", str(tmp_path), "--no-browser")
    for data in (file, file / "inside"):
        shown = shell("workbench", *options, "--data", str(data))
        assert shown.code == BAD_INPUT
        assert f"cannot save in {data}" in shown.err
        assert "another folder" in shown.err


def test_a_missing_page_says_how_to_build_it(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pages, "is_built", False)
    shown = shell("workbench", "--port", "0", "--root", str(tmp_path), "--no-browser")
    assert shown.code == BAD_INPUT
    assert "make frontend" in shown.err


def test_a_missing_extra_says_how_to_install_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    shown = shell("workbench", "--no-browser")
    assert shown.code == BAD_INPUT
    assert "pip install 'pastwise[workbench]'" in shown.err


def test_a_missing_log_and_one_outside_the_root_are_named(shell: Shell, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    outside = tmp_path / "log.csv"
    outside.write_text("state,action\n")
    options = ("--port", "0", "--root", str(root), "--no-browser")
    missing = shell("workbench", str(root / "no.csv"), *options)
    assert missing.code == BAD_INPUT
    assert "no.csv" in missing.err
    refused = shell("workbench", str(outside), *options)
    assert refused.code == BAD_INPUT
    assert "log.csv" in refused.err
    assert missing.out == refused.out == ""
