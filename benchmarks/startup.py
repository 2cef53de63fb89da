"""Start-up time: the import, and the help of the command line.

Each is a fresh interpreter; what it is compared with is one that imports NumPy and a part of SciPy,
without which nothing here can be done. The package loads its names when they are first asked for,
so the learner is timed as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.harness import Contender, Scale, Section, about


def output_of(*command: str) -> str:
    """What a successful command prints; Python keeps its byte code, as it does for users."""
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment
    ).stdout


def require_words(results: Mapping[str, str]) -> None:
    """Each did what it was asked for: imports say nothing, help says how to use it."""
    for name, said in results.items():
        if ("Usage:" in said) != name.endswith("--help"):
            raise AssertionError(f"{name} said {said!r}")


def measure(scale: Scale) -> list[Section]:
    """The start-up job of the suite."""
    section = Section("Start-up", about(__doc__))
    script = str(Path(sys.executable).with_name("pastwise"))
    contenders = [
        Contender("import pastwise", partial(output_of, sys.executable, "-c", "import pastwise")),
        Contender(
            "import its learner",
            partial(output_of, sys.executable, "-c", "from pastwise import TransferLearner"),
        ),
        Contender("pastwise --help", partial(output_of, script, "--help")),
        Contender(
            "import numpy, scipy.special",
            partial(output_of, sys.executable, "-c", "import numpy, scipy.special"),
        ),
    ]
    times = section.compare(
        "a fresh process", contenders, require_words, rounds=scale.pick(3, 21, 51)
    )
    for name in ("import pastwise", "pastwise --help"):
        ratio = times.ratio(name, "import numpy, scipy.special")
        section.summarise(f"{name}: time relative to importing NumPy and SciPy", ratio)
    return [section]
