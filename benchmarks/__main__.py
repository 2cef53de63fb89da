"""Run the benchmark suite and write its report: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from benchmarks import report
from benchmarks.harness import Scale, Section

JOBS = (
    "counting",
    "features",
    "retarget",
    "dense_fpd",
    "sparse_fpd",
    "online",
    "paper_study",
    "startup",
    "evaluation",
    "known_optima",
    "large_systems",
    "foresight",
    "service",
    "service_crash",
    "workbench",
)
"""Modules with a function ``measure(scale) -> sections``."""

LONG = ("foresight", "service", "service_crash", "workbench")
"""Those that are run only with ``--full``, or when they are named."""

REPORT = Path(__file__).parent / "REPORT.md"


def main() -> None:
    """Measure, then write the report or, where only some jobs were asked for, print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--full", action="store_const", dest="scale", const="full", help="the large sizes as well"
    )
    size.add_argument(
        "--quick",
        action="store_const",
        dest="scale",
        const="quick",
        help="small sizes: shows only that it runs",
    )
    parser.add_argument(
        "--only", nargs="+", choices=JOBS, metavar="JOB", help=f"some of: {', '.join(JOBS)}"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="where to write the report, REPORT.md by default; a report of some jobs or of quick "
        "sizes is printed instead",
    )
    given = parser.parse_args()
    scale, sections, begin = Scale(given.scale or "default"), [], time.perf_counter()
    for job in given.only or [job for job in JOBS if job not in LONG or scale.name == "full"]:
        started = time.perf_counter()
        measure: Callable[[Scale], list[Section]] = import_module(f"benchmarks.{job}").measure
        sections += measure(scale)
        print(f"{job}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    minutes = (time.perf_counter() - begin) / 60
    path = given.output or (None if given.only or scale.name == "quick" else REPORT)
    if path is None:
        print(report.page(sections, scale, minutes))
    else:
        report.write(sections, scale, minutes, path)


if __name__ == "__main__":
    main()
