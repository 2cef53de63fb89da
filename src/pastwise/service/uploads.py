"""Uploads: a stream of bytes becomes a file under a random name, or nothing.

Bytes go to ``NAME.part`` and are counted while they arrive; the file gets its final name when the
last byte is there, its length is as announced, and its content is of a known kind. Hashing and
writing happen in a thread, a quarter of a megabyte at a time, so that the event loop goes on.

The kind is found in the content; what the client calls it does not count. Compressed files are
refused, so there is nothing to decompress here: a few kilobytes cannot become gigabytes.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from pastwise._files import NO_ROOM
from pastwise.service.problems import Problem

BLOCK = 2**18
"""Bytes that are hashed and written at once: large enough that the thread costs little, small
enough that little is lost when a client goes away."""

SYNCED = 2**23
"""Bytes after which the file is flushed. A disk that has gigabytes to write at once makes the
commits of decisions wait."""

HEAD = 2**16
"""Bytes from which the kind is found."""

LONGEST_HEADER = 2**24
"""Bytes of the header of a safetensors file that are parsed; ours have about a kilobyte."""

ENDINGS = {
    "parquet": ".parquet",
    "csv": ".csv",
    "json": ".jsonl",
    "policy": ".safetensors",
    "counts": ".safetensors",
}
"""Kinds of uploads, and how their names end; readers of logs go by that."""

REFUSED = {
    b"\x1f\x8b": "a gzip file; decompress it first",
    b"PK\x03\x04": "a zip archive or an Excel file; extract it, or save the sheet as CSV",
    b"PK\x05\x06": "an empty zip archive",
    b"\x28\xb5\x2f\xfd": "a Zstandard file; decompress it first",
    b"BZh": "a bzip2 file; decompress it first",
    b"\xfd7zXZ\x00": "an xz file; decompress it first",
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive; extract it first",
    b"%PDF": "a PDF document; save the table as CSV",
    b"SQLite format 3\x00": "an SQLite database; export the table as CSV or Parquet",
    b"\xd0\xcf\x11\xe0": "an old Excel file; save the sheet as CSV",
    b"ARROW1": "an Arrow file; write it as Parquet",
    codecs.BOM_UTF16_LE: "text in UTF-16; save it as UTF-8",
    codecs.BOM_UTF16_BE: "text in UTF-16; save it as UTF-8",
}
"""Beginnings of files that people send by mistake, and what to do about each."""

NAME = re.compile(r"up_[0-9a-f]{24}")

Result = TypeVar("Result")


class Upload(NamedTuple):
    """A file that has arrived.

    Attributes
    ----------
    id : str
        Random; also the name of the file, before its ending.
    kind : str
        A key of `ENDINGS`.
    """

    id: str
    path: Path
    bytes: int
    sha256: str
    kind: str


async def receive(
    chunks: AsyncIterator[bytes],
    folder: Path,
    limit: int = 2**31,
    content_length: int | None = None,
    *,
    option: str = "--max-upload",
    rest: float = 3.0,
) -> Upload:
    """Store the bytes of a request as a file; nothing stays if that fails.

    Parameters
    ----------
    chunks : stream
        The body. If it ends by an exception, as when the client goes away, that is passed on.
    folder : path
        Made, readable by its owner only, if it does not exist.
    limit : int
        Largest number of bytes; 2 GiB are about 40 million records of a log as CSV.
    content_length : int, optional
        The number that the request announced.
    option : str
        The option of the command line that sets the limit.
    rest : float
        Seconds of rest for each second of hashing and writing, so that a fast client leaves the
        processor to decisions; on a busy machine a block takes longer, and so does its rest.
        Chosen by the delay of the event loop next to an upload, which 1 made longer; without rest
        an upload is about three times as fast.

    Raises
    ------
    Problem
        ``too-large``, ``length-mismatch``, ``malformed`` (no bytes), ``unsupported-kind``,
        ``disk-full``
    """
    if content_length is not None and content_length > limit:
        raise _too_large(limit, option)
    file = _PartialFile(folder)
    try:
        waiting = bytearray()
        async for chunk in chunks:
            waiting += chunk
            arrived = file.size + len(waiting)
            if arrived > limit:
                raise _too_large(limit, option)
            if content_length is not None and arrived > content_length:
                raise _length_mismatch(content_length, f"{arrived} or more")
            if len(waiting) >= BLOCK:
                begin = time.perf_counter()
                await _in_thread(file.append, bytes(waiting))
                waiting.clear()
                await asyncio.sleep(rest * (time.perf_counter() - begin))
        await _in_thread(file.append, bytes(waiting))
        if content_length is not None and file.size != content_length:
            raise _length_mismatch(content_length, str(file.size))
        return await _in_thread(file.finish)
    finally:
        # The thread finishes this even if the request is cancelled once more.
        await asyncio.shield(asyncio.to_thread(file.discard))


def stored(folder: Path, upload_id: str) -> Path | None:
    """The file of an upload; None if there is none. An id is never a path."""
    if not NAME.fullmatch(upload_id):
        return None
    for ending in sorted(set(ENDINGS.values())):
        path = folder / f"{upload_id}{ending}"
        if path.is_file() and not path.is_symlink():
            return path
    return None


async def remove(folder: Path, upload_id: str) -> bool:
    """Remove an upload; False if there is none. In a thread: large files take a while."""
    path = stored(folder, upload_id)
    if path is None:
        return False
    await asyncio.to_thread(path.unlink, missing_ok=True)
    return True


def remove_partial(folder: Path) -> int:
    """Remove what a killed service left behind, and return the number of files.

    Call it at the start, when nothing is being received.
    """
    removed = 0
    for path in folder.glob("up_*.part"):
        path.unlink(missing_ok=True)
        removed += 1
    return removed


class _PartialFile:
    """A file that is being received. Its methods run in threads, one at a time."""

    def __init__(self, folder: Path) -> None:
        self.id = f"up_{secrets.token_hex(12)}"
        self.size = 0
        self._folder = folder
        self._path = folder / f"{self.id}.part"
        self._digest = hashlib.sha256()
        self._unsynced = 0
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._is_discarded = False

    def append(self, data: bytes) -> None:
        """Write bytes at the end; the file is made by the first call."""
        with self._lock:
            if self._is_discarded:
                return
            if self._descriptor is None:
                self._descriptor = self._open()
            view = memoryview(data)
            while view:
                written = os.write(self._descriptor, view)
                view = view[written:]
            self._digest.update(data)
            self.size += len(data)
            self._unsynced += len(data)
            if self._unsynced >= SYNCED:
                os.fdatasync(self._descriptor)
                self._unsynced = 0

    def _open(self) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        return os.open(self._path, flags, 0o600)

    def finish(self) -> Upload:
        """Give the file its name, if its content is of a known kind."""
        with self._lock:
            if self._descriptor is None:
                raise Problem("stopping", "the upload was cancelled")
            kind = _kind(self._descriptor, self.size)
            os.fsync(self._descriptor)
            target = self._folder / f"{self.id}{ENDINGS[kind]}"
            self._path.rename(target)
            return Upload(self.id, target, self.size, self._digest.hexdigest(), kind)

    def discard(self) -> None:
        """Close the file, and remove it unless it is finished."""
        with self._lock:
            self._is_discarded = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


async def _in_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Run a function in a thread; a full disk is a problem that says so."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise Problem("disk-full", "the disk is full; the upload was removed") from None
        raise


# Kinds of content.


def _kind(descriptor: int, size: int) -> str:
    """The kind of a file by its content.

    Raises
    ------
    Problem
        ``malformed`` if it is empty, ``unsupported-kind`` otherwise.
    """
    if size == 0:
        raise Problem("malformed", "the upload is empty: no byte arrived")
    head = os.pread(descriptor, HEAD, 0)
    for beginning, what in REFUSED.items():
        if head.startswith(beginning):
            raise _unsupported(f"this is {what}")
    if head.startswith(b"PAR1"):
        if size < 12 or os.pread(descriptor, 4, size - 4) != b"PAR1":
            raise _unsupported("this Parquet file is cut short; send it again")
        return "parquet"
    header = _safetensors_header(descriptor, head, size)
    if header is not None:
        return _kind_of_safetensors(header)
    return _kind_of_text(head, is_whole=size <= HEAD)


def _safetensors_header(descriptor: int, head: bytes, size: int) -> bytes | None:
    """The JSON at the beginning of a safetensors file; None for any other file."""
    length = int.from_bytes(head[:8], "little")
    is_possible = len(head) > 9 and head[8:9] == b"{" and 2 <= length <= LONGEST_HEADER
    if not is_possible:
        return None
    if length + 8 > size:
        raise _unsupported("this safetensors file is cut short; send it again")
    return os.pread(descriptor, length, 8)


def _kind_of_safetensors(header: bytes) -> str:
    """Whether a safetensors file is a policy or counts; a policy has a rule."""
    try:
        tensors = json.loads(header)
    except (ValueError, RecursionError):
        raise _unsupported("the header of this safetensors file is damaged") from None
    metadata = tensors.get("__metadata__")
    if not isinstance(metadata, dict) or "pastwise" not in metadata:
        raise _unsupported("this safetensors file is not one of pastwise")
    return "policy" if "rule" in tensors else "counts"


def _kind_of_text(head: bytes, is_whole: bool) -> str:
    """Whether text is CSV or JSON lines."""
    if b"\x00" in head:
        raise _unsupported("this is no text: it has NUL bytes; send CSV in UTF-8, or Parquet")
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    try:
        text = decoder.decode(head, final=is_whole)
    except UnicodeDecodeError as error:
        raise _unsupported(
            f"this is no text in UTF-8 (byte {error.start + 1}); save it as UTF-8, or as Parquet"
        ) from None
    beginning = text.lstrip()
    if not beginning:
        raise _unsupported("this text begins with nothing but white space")
    if beginning.startswith("["):
        raise _unsupported("this is a JSON array; write one object per line (JSON lines)")
    if beginning.startswith("<"):
        raise _unsupported("this is HTML or XML; send CSV, JSON lines or Parquet")
    return "json" if beginning.startswith("{") else "csv"


def _unsupported(detail: str) -> Problem:
    return Problem("unsupported-kind", detail)


def _too_large(limit: int, option: str) -> Problem:
    detail = f"an upload has at most {limit:,} bytes; start the service with {option} for more"
    return Problem("too-large", detail, extra={"limit": limit, "option": option})


def _length_mismatch(announced: int, arrived: str) -> Problem:
    detail = f"Content-Length announced {announced} bytes, and {arrived} arrived; send it again"
    return Problem("length-mismatch", detail)
