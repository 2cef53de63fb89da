"""Files appear whole or not at all.

A file is first written under a temporary name in the folder where it belongs, and then renamed.
Renaming within a folder is atomic, so no reader ever sees half a file, and an error on the way
leaves what was there before. File and folder are flushed to disk, so that a power cut does not
undo the renaming. What the user can do something about (a full disk, a missing folder, no
permission) is a `FileError`.

A process that is killed leaves its temporary file behind. The name says whose it is; the next one
that writes into the folder removes it when it is a day old and its process is gone.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from uuid import uuid4

from pastwise.errors import FileError

PREFIX = ".pastwise-"
"""How names of temporary files and folders begin; machine, process and random characters follow."""

TEMPORARY_NAME = re.compile(rf"{re.escape(PREFIX)}([0-9a-f]{{8}})-(\d+)-\w+")

DAY = 24 * 60 * 60.0
"""Age in seconds from which temporary files of dead processes are removed: none takes so long to
write, and whoever looks into an accident finds them until then."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Errors of a write that found the disk full, or a quota or size limit reached."""


def require_regular_file(path: str | Path) -> None:
    """Refuse to read what is no file of bytes: reading a pipe or a device may never end.

    Raises
    ------
    FileError
        If there is no such file, if it is a folder, a pipe, a device or a socket, or if it may
        not be read.
    """
    file = Path(path)
    try:
        exists = file.exists()
        if exists and file.is_file():
            file.open("rb").close()
            return
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
    if not exists:
        raise FileError(f"no such file: {path}")
    if file.is_dir():
        raise FileError(f"{path} is a folder; name a file")
    raise FileError(
        f"{path} is a pipe, a device or a socket, not a regular file; copy its content into a file"
    )


@contextmanager
def private_files() -> Iterator[None]:
    """Let only the user read the files and folders that this process makes."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def replacing(path: str | Path, *, check: Callable[[Path], None] | None = None) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of ``path`` if all goes well.

    Parameters
    ----------
    path : path
        The file to write. Its folder must exist.
    check : callable, optional
        Called with the file that is about to be replaced, and raises an error if it must not be.
        No other process replaces a file of that folder meanwhile.

    Raises
    ------
    FileError
        If ``path`` cannot be written; it is then as it was before.
    """
    target = Path(path).resolve()
    _require_writable(path, target)
    _remove_remains(target.parent)
    temporary = target.parent / f"{_temporary_prefix()}{uuid4().hex}"
    try:
        # A new file has the permissions that the user's umask leaves; some writers narrow them.
        temporary.touch(exist_ok=False)
        usual_permissions = temporary.stat().st_mode
        yield temporary
        temporary.chmod(usual_permissions)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        with _locked(target.parent):
            if check is not None:
                check(target)
            temporary.replace(target)
        _flush_folder(target.parent)
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
def _locked(folder: Path) -> Iterator[None]:
    """Exclude other processes and threads that replace files of a folder.

    The lock is advisory and on the folder itself, so nothing is left behind. On a file system
    without locks there is none.
    """
    try:
        lock = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _flush_folder(folder: Path) -> None:
    """Write the names of a folder's files to disk, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@cache
def _machine() -> str:
    """The machine's name, shortened: a process number has a meaning on one machine only."""
    return hashlib.sha256(os.uname().nodename.encode()).hexdigest()[:8]


def _temporary_prefix() -> str:
    return f"{PREFIX}{_machine()}-{os.getpid()}-"


@cache
def _remove_remains(folder: Path) -> None:
    """Remove what killed processes of this machine left in a folder; once per process."""
    now = time.time()
    with suppress(OSError):
        for path in folder.iterdir():
            name = TEMPORARY_NAME.fullmatch(path.name)
            if name is None or name[1] != _machine() or _is_alive(int(name[2])):
                continue
            if now - path.lstat().st_mtime < DAY:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


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
    stage = directory / f"{_temporary_prefix()}{uuid4().hex}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _remove_remains(directory.resolve())
        try:
            stage.mkdir(mode=0o700)
            yield stage
            _move_files(stage, directory, owned)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
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
    _flush_folder(directory)


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


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Spreadsheets take a cell that begins with one of these, or a full-width form, for a formula."""

PLAIN_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def write_columns(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    """Write a CSV file of the named columns, which must be of one length.

    Text that a spreadsheet would run as a formula gets an apostrophe in front; see `safe_cell`.
    """
    rows = zip(*columns.values(), strict=True)
    safe_rows(path, chain([list(columns)], rows))


def safe_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file of rows, the names of the columns first, with cells made safe."""
    with path.open("w", newline="", encoding="utf-8") as file:
        plain = csv.writer(file, lineterminator="\n")
        quoting = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
        for row in rows:
            cells = [safe_cell(value) for value in row]
            # Python's writer does not quote a carriage return, which readers take for a new line.
            has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells)
            writer = quoting if has_return else plain
            writer.writerow(cells)


def safe_cell(value: object) -> object:
    """A cell of a CSV file that no spreadsheet takes for a formula.

    Text that begins like a formula gets an apostrophe in front, and so does text that begins with
    an apostrophe: removing one apostrophe always gives the text back. Numbers, also as text, stay
    as they are.

    >>> safe_cell("=1+1"), safe_cell("'tis"), safe_cell("-5"), safe_cell(-5), safe_cell("a=b")
    ("'=1+1", "''tis", '-5', -5, 'a=b')
    """
    if not isinstance(value, str) or not value.startswith((*FORMULA_STARTS, "'")):
        return value
    if PLAIN_NUMBER.fullmatch(value):
        return value
    return f"'{value}"
