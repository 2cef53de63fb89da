"""A folder has one process that writes."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from pastwise.errors import FileError

FILE = "service.lock"


class FolderLock:
    """A lock on a folder, held until `release` or the end of the process.

    The lock is the operating system's, so a process that is killed leaves none behind. The file
    holds the number of the process, for the message that another one shows.

    Raises
    ------
    FileError
        If another process holds the lock.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, 20).decode("ascii", "replace").strip()
            os.close(self._file)
            raise FileError(
                f"{folder} is in use by process {holder or 'of unknown number'}: stop that service,"
                " or take another folder"
            ) from None
        with suppress(OSError):  # on a full disk there is a lock without a number
            os.truncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have the folder."""
        os.close(self._file)
