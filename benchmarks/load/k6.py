"""Requests at a fixed rate, whether or not the server keeps up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.load.usage import processor_seconds

SCRIPT = Path(__file__).with_name("decide.js")


@dataclass(frozen=True)
class Running:
    """A server to load; ``kind`` is what the script calls it."""

    url: str
    process: int
    token: str = ""
    kind: str = "predict"


class Measured(NamedTuple):
    """Milliseconds of all requests, and of decisions alone; processor time of a request in µs."""

    median: float
    p99: float
    p999: float
    decide_p99: float
    processor: float
    answered: int
    failed: int
    not_sent: int


def load(server: Running, rate: int, seconds: int, connections: int = 32) -> Measured:
    """Send requests at a fixed rate.

    Parameters
    ----------
    connections : int
        Connections at the start; up to four times as many if answers are slow. Requests for which
        none is free are not sent.
    """
    used = processor_seconds(server.process)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        settings = {
            "URL": server.url,
            "TOKEN": server.token,
            "KIND": server.kind,
            "RATE": str(rate),
            "SECONDS": str(seconds),
            "CONNECTIONS": str(connections),
            "RUN": os.urandom(8).hex(),
            "RESULT": str(result),
        }
        program = Path(sys.executable).with_name("k6")
        subprocess.run(
            [program, "run", "--quiet", "--no-usage-report", "--log-output=none", SCRIPT],
            env={**os.environ, **settings},
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=seconds + 60,
        )
        metrics = json.loads(result.read_text())
    return _measured(metrics, processor_seconds(server.process) - used)


def _measured(metrics: Mapping[str, Mapping[str, Mapping[str, float]]], used: float) -> Measured:
    times = metrics["http_req_duration"]["values"]

    def count(name: str) -> int:
        return int(metrics[name]["values"]["count"]) if name in metrics else 0

    return Measured(
        median=times["med"],
        p99=times["p(99)"],
        p999=times["p(99.9)"],
        decide_p99=metrics["decide"]["values"]["p(99)"],
        processor=used / times["count"] * 1e6,
        answered=int(times["count"]),
        failed=count("failed"),
        not_sent=2 * count("dropped_iterations"),
    )
