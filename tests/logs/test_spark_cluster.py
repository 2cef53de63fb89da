"""A Spark cluster of two executors, one of them killed on the way: the counts stay exact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.java import QUICK_START, needs_java

pytestmark = needs_java

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "spark_cluster.py"


def test_killed_executor_changes_no_count() -> None:
    """The benchmark on a small log; it has a session of its own, and so a process."""
    command = [sys.executable, str(BENCHMARK), "--rows", "300000", "--killed", "--json"]
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": QUICK_START}
    shown = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert shown.returncode == 0, shown.stderr
    runs = json.loads(shown.stdout)
    assert [run["name"] for run in runs] == ["next state, killed", "episode, time, killed"]
    for run in runs:
        assert run["is_exact"]
        assert run["executors_lost"] == 1
        assert run["tasks_lost"] > 0
        assert run["brought_back"] < 100 * run["transitions"]
