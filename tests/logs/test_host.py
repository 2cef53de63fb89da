"""Reading a log changes nothing in the process that reads it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

from pastwise import Columns, count_transitions, validate_log

LOG = "s,a,n,w,note\ncold,heat,mild,1,{note}\nmild,wait,mild,2.5,short\n"


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program whose argument is the path of a log."""
    path = folder / "log.csv"
    path.write_text(LOG.format(note="long"))
    command = [sys.executable, "-c", program, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_limit_of_the_csv_module_stays(tmp_path: Path) -> None:
    """A field may be longer than the limit of Python's csv module, which stays as it is."""
    path = tmp_path / "log.csv"
    path.write_text(LOG.format(note="a very long story " * 20_000))
    before = csv.field_size_limit(123_456)
    try:
        count_transitions(path, "s", "a", "n", weight="w")
        validate_log(path, Columns.of("s", "a", "n"))
        assert csv.field_size_limit() == 123_456
    finally:
        csv.field_size_limit(before)


def test_narwhals_works_until_the_process_ends(tmp_path: Path) -> None:
    """Functions that the host registered before run after those of a library."""
    program = (
        "import atexit\n"
        "def last():\n"
        "    import narwhals, polars\n"
        "    frame = narwhals.from_native(polars.DataFrame({'x': [1, 2]}))\n"
        "    print(frame.select(narwhals.col('x').sum()).item())\n"
        "atexit.register(last)\n"
        "import pastwise, sys\n"
        "pastwise.count_transitions(sys.argv[1], 's', 'a', 'n')\n"
    )
    done = run(program, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_process_ends_silently_after_a_bad_log(tmp_path: Path) -> None:
    """DuckDB's binding lists objects that outlive it on stderr; none of ours may."""
    program = (
        "import numpy, pastwise, pastwise.errors, sys\n"
        "try:\n"
        "    pastwise.count_transitions(sys.argv[1], 's', 'nothing', 'n')\n"
        "except pastwise.errors.LogError as error:\n"
        "    print(error)\n"
    )
    done = run(program, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the log has no column 'nothing'" in done.stdout
