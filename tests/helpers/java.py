"""Java, without which Spark does not run."""

import os
import shutil
from pathlib import Path

import pytest

QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for short programs: a query of a few rows is over before better code pays off."""


def has_java() -> bool:
    """Whether there is Java where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin") if home else None) is not None


needs_java = pytest.mark.skipif(
    not has_java(),
    reason="there is no Java, which Spark needs: install Java 17 or later, or set JAVA_HOME",
)
