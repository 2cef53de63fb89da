"""Files appear whole or not at all.

A file is first written under a temporary name in the folder where it belongs, and then renamed.
Renaming within a folder is atomic, so no reader ever sees half a file, and an error on the way
leaves what was there before. What the user can do something about (a full disk, a missing folder,
no permission) is a `FileError`.
"""

from __future__ import annotations

import csv
import errno
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from pastwise.errors import FileError

PREFIX = ".pastwise-"
"""How names of temporary files and folders begin."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a write that found the disk full, or a quota or size limit reached."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of ``path`` if all goes well.

    Parameters
    ----------
    path : path
        The file to write. Its folder must exist.

    Raises
    ------
    FileError
        If ``path`` cannot be written; it is then as it was before.
    """
    target = Path(path).resolve()
    _require_writable(path, target)
    temporary = target.parent / f"{PREFIX}{uuid4().hex}"
    try:
        # A new file has the permissions that the user's umask leaves; some writers narrow them.
        temporary.touch(exist_ok=False)
        usual_permissions = temporary.stat().st_mode
        yield temporary
        temporary.chmod(usual_permissions)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except FileError:
        raise
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _require_writable(path: str | Path, target: Path) -> None:
    """Refuse a target that cannot be replaced, before the work of writing it."""
    if target.is_dir():
        raise FileError(f"{path} is a folder; name a file")
    if not target.parent.is_dir():
        raise FileError(f"{path}: no such folder: {Path(path).parent}")
    if not target.exists():
        return
    if not target.is_file():
        raise FileError(f"{path} is not a regular file; name another file")
    if not os.access(target, os.W_OK, effective_ids=True):
        raise FileError(f"{path} is read-only; name another file or change its permissions")


@contextmanager
def staged(directory: Path, owned: Iterable[str] = ()) -> Iterator[Path]:
    """A temporary folder to write files into; they move into ``directory`` if all goes well.

    After an error or Ctrl-C no file moves, and the folders made for this work are removed.

    Parameters
    ----------
    directory : path
        Where the files belong. It is made at once if it does not exist, so that a place that
        cannot be written to is known before the work.
    owned : names of files
        Files of these names that are in ``directory`` and are not written again are removed,
        because they would contradict the new ones.

    Raises
    ------
    FileError
        If ``directory`` cannot be written to.
    """
    missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=directory) as stage:
            yield Path(stage)
            _move_files(Path(stage), directory, owned)
    except BaseException as error:
        _remove_empty(missing)
        if isinstance(error, OSError) and _is_about(error, directory):
            raise _cannot_write(directory, error) from error
        raise


def _move_files(stage: Path, directory: Path, owned: Iterable[str]) -> None:
    """Move all files of ``stage`` into ``directory``; remove other files that are owned."""
    files = sorted(stage.iterdir())
    for file in files:
        target = directory / file.name
        if target.is_dir():
            raise FileError(f"{target} is a folder, and a file of that name is to be written")
    for file in files:
        file.replace(directory / file.name)

    written = {file.name for file in files}
    for name in set(owned) - written:
        (directory / name).unlink(missing_ok=True)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of the folders that exist and are empty; innermost folders come first."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _is_about(error: OSError, directory: Path) -> bool:
    """Whether an error comes from writing into a folder, and not from the work around it."""
    if isinstance(error, FileError):
        return False
    if error.filename is None:
        return error.errno in NO_ROOM
    folder = directory.absolute()
    place = Path(os.fsdecode(error.filename)).absolute()
    return place == folder or place in folder.parents or folder in place.parents


def _cannot_write(path: str | Path, error: OSError) -> FileError:
    return FileError(f"{path} cannot be written: {error.strerror or error}")


def write_columns(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    """Write a CSV file of the named columns, which must be of one length."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
