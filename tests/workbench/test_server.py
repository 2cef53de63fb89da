"""The command, the process and the page, as a person starts them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import pastwise as pw
from pastwise.errors import ParameterError
from pastwise.workbench.server import OpenWorkbench
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT


@contextmanager
def session(address: str) -> Iterator[httpx.Client]:
    """A client with the cookie that the key of an address opens."""
    base, _, key = address.partition("/#key=")
    with httpx.Client(base_url=base) as client:
        answer = client.post("/v1/session", json={"key": key})
        assert answer.status_code == 201, answer.text
        yield client


def test_the_command_opens_a_log_and_ends_quietly(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes(THERMOSTAT.read_bytes())
    command = [sys.executable, "-m", "pastwise", "workbench", str(log), "--port=0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            line = process.stdout.readline().decode()
            assert line.startswith("Workbench: http://127.0.0.1:")
            with session(line.split()[1]) as client:
                view = client.get("/v1/session").json()
                assert view["project"] == "log"
                assert view["root"] == str(tmp_path)
                assert client.get("/v1/projects/log").json()["rows"] == 480
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout.read() == b""
        assert process.stderr.read() == b""
    assert (tmp_path / ".pastwise" / "journal.jsonl").exists()
    assert (tmp_path / ".pastwise").stat().st_mode & 0o077 == 0


def test_a_missing_log_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pastwise", "workbench", str(tmp_path / "no.csv"), "--port=0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert "There is no file" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_learner_opens_the_same_page(tmp_path: Path) -> None:
    learner = pw.TransferLearner(COMFORT, method="TL").fit(THERMOSTAT, columns=COLUMNS)
    opened = OpenWorkbench(learner, name="Rooms", data=tmp_path, port=0, browser=False)
    try:
        assert opened.url in repr(opened)
        with session(opened.url) as client:
            assert client.get("/v1/session").json()["project"] == "rooms"
            project = client.get("/v1/projects/rooms").json()
            draft = project["drafts"][0]
            assert draft["goal"] == COMFORT
            body = {"goal": draft["goal"], "method": draft["method"]}
            address = f"/v1/counts/{project['counts']}/preview"
            rule = client.post(address, json=body).json()["rule"]
            expected = list(learner.rule_["cool"].values())
            place = rule["states"].index("cool")
            assert rule["p"][place] == pytest.approx(expected, abs=1e-9)
        port = int(opened.url.split("/")[2].partition(":")[2])
        with pytest.raises(ParameterError, match="cannot listen"):
            OpenWorkbench(learner, name="B", data=tmp_path / "b", port=port, browser=False)
    finally:
        opened.close()
    assert "closed" in repr(opened)
