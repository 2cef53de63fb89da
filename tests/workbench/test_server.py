"""The command, the process and the page, as a person starts them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.helpers.workbenches import THERMOSTAT, needs_page, session


@needs_page
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


@needs_page
def test_a_missing_log_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pastwise", "workbench", str(tmp_path / "no.csv"), "--port=0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert "There is no file" in ended.stderr
    assert "Traceback" not in ended.stderr
