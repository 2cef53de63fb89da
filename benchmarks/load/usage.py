"""Processor and memory of other processes, as Linux counts them."""

from __future__ import annotations

import os
from pathlib import Path


def processor_seconds(process: int) -> float:
    """Processor time of a process and of those that it has started."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for each in (process, *children(process)):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def children(process: int) -> list[int]:
    """Processes that a process has started, and those that they have."""
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            found += [child, *children(child)]
    return found


def resident(process: int) -> float:
    """Bytes of memory that a process holds now."""
    status = Path(f"/proc/{process}/status").read_text()
    return float(status.split("VmRSS:")[1].split()[0]) * 1024
