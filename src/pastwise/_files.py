"""Files are written beside their place and renamed, so that no reader ever meets half of one."""

from __future__ import annotations

import csv
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def staged(directory: Path, owned: Iterable[str] = ()) -> Iterator[Path]:
    """A folder to write into; at the end its files move into ``directory``, after an error or Ctrl-C none does.

    Files of the ``owned`` names that were there before and were not written again go: they would belie the new ones.

    ``directory`` is made where it does not exist, at once, so that a place that cannot be written to is known before
    the work. If the work fails, every folder that was made for it goes.
    """
    made = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pastwise-", dir=directory) as stage:
            yield Path(stage)
            written = set()
            files = sorted(Path(stage).iterdir())
            for file in files:
                if (directory / file.name).is_dir():
                    raise ValueError(
                        f"{directory / file.name} is a folder; a file of that name is to be written"
                    )
            for file in files:
                file.replace(directory / file.name)
                written.add(file.name)
            for name in set(owned) - written:
                (directory / name).unlink(missing_ok=True)
    except BaseException:
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                shutil.rmtree(folder)
        raise


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when all went well; otherwise what was there stays."""
    target = Path(path).resolve()
    if target.is_dir():
        raise ValueError(f"{path} is a folder; name a file")
    if not target.parent.is_dir():
        raise ValueError(f"{path}: no such folder: {Path(path).parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file")
    if target.exists() and not os.access(target, os.W_OK, effective_ids=True):
        raise ValueError(f"{path} is read-only")
    handle, name = tempfile.mkstemp(prefix=".pastwise-", dir=target.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """The same of columns, of one length each."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
