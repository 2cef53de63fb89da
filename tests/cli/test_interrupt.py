"""Ctrl-C at any moment is one line and exit code 130: real processes, real signals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTING = """
import os, runpy, signal, sys
moment = int(sys.argv.pop(1))
sys.argv[0] = "pastwise"
imports = 0

def interrupt(event, arguments):
    # Count the imports since the program guards itself, and press Ctrl-C at one of them.
    global imports
    if event == "import" and "pastwise._interrupt" in sys.modules:
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            imports += 1
            if imports == moment:
                os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(interrupt)
runpy.run_module("pastwise", run_name="__main__", alter_sys=True)
"""
"""A program that runs pastwise and presses Ctrl-C at the import of a given number."""

INTERRUPTING_LATER = """
import os, runpy, signal, sys, threading, time
delay = float(sys.argv.pop(1))
sys.argv[0] = "pastwise"

def press():
    while not hasattr(sys.modules.get("duckdb"), "connect"):
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=press, daemon=True).start()
runpy.run_module("pastwise", run_name="__main__", alter_sys=True)
"""
"""A program that runs pastwise and presses Ctrl-C some seconds after DuckDB was loaded."""

COLUMNS = ["--state", "room", "--action", "did", "--next-state", "then"]


def assert_interrupted(process: subprocess.CompletedProcess[str]) -> None:
    assert process.returncode == 130, process.stderr
    assert process.stdout == ""
    assert process.stderr.strip() == "pastwise: interrupted"


@pytest.mark.parametrize("moment", [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610])
def test_ctrl_c_while_starting(moment: int, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("room,did,then\ncold,heat,mild\n")
    command = [sys.executable, "-c", INTERRUPTING, str(moment), "validate", "log.csv", *COLUMNS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert_interrupted(done)


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log whose next states take a second to find."""
    path = tmp_path_factory.mktemp("large") / "log.csv"
    with path.open("w") as file:
        file.write("room,did,day,hour\n")
        file.writelines(f"room {i % 5000},heat,{i // 100},{i % 100}\n" for i in range(3_000_000))
    return path


@pytest.mark.parametrize("delay", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
def test_ctrl_c_during_a_query(delay: float, large_log: Path, tmp_path: Path) -> None:
    """The signal comes some time after DuckDB was loaded, most likely while it reads."""
    columns = ["--state", "room", "--action", "did", "--episode", "day", "--time", "hour"]
    arguments = ["validate", str(large_log), *columns]
    command = [sys.executable, "-c", INTERRUPTING_LATER, str(delay), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert_interrupted(done)
    assert not list(tmp_path.iterdir())


def test_a_program_that_cannot_start_is_a_bug() -> None:
    """Exit code 1 would mean findings."""
    broken = (
        "import runpy, sys\n"
        "sys.modules['click'] = None\n"
        "runpy.run_module('pastwise', run_name='__main__', alter_sys=True)\n"
    )
    command = [sys.executable, "-c", broken]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "import of click halted" in done.stderr
