"""Run the parts of a study, in one process or several, and keep what is done.

A *part* is a function without arguments that returns plain values. Parts do not depend on each
other, each has its own seeds, and results come in the order of the parts: they are the same for any
number of processes. A result travels and is kept as JSON text, so one that comes from another
process or from a file equals one that was just computed, to the last bit.

`concurrent.futures` shares the parts among processes. Two things around it are our own: the
lifeline (`_end_with`) and the blocked Ctrl-C (`_quiet_start`), each with its reason; and the kept
parts, since a cache such as `joblib.Memory` would key them by serialised arguments instead of
by settings.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from threading import Thread
from typing import Any, TypeVar

from pastwise import __version__
from pastwise._files import replacing
from pastwise.errors import FileError, WorkerError

Result = TypeVar("Result")

Part = Callable[[], Result]
"""One part of a study. With several processes it must be picklable."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""From a title and a number of steps to the function that is called with steps just done."""


def _no_progress(title: str, steps: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda done: None)


def _no_message(text: str) -> None:
    pass


@dataclass
class Runner:
    """Runs the parts of a study.

    Parameters
    ----------
    jobs : int
        Number of processes; 1 is this one.
    partial_folder : Path, optional
        Folder that keeps the results of finished parts until `discard`. Absent: nothing is kept.
    progress : Progress
        Shows how far the study is; nothing by default.
    notify : function of a line of text
        Receives a message about parts found finished; ignored by default.

    Attributes
    ----------
    done, total : int
        Parts of the study that are finished, and all.
    """

    jobs: int = 1
    partial_folder: Path | None = None
    progress: Progress = _no_progress
    notify: Callable[[str], None] = _no_message
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _kept: _KeptParts | None = field(default=None, init=False)

    def run(
        self, title: str, parts: Sequence[Part[Result]], settings: Mapping[str, Any]
    ) -> list[Result]:
        """Results of all parts, in their order.

        Parameters
        ----------
        title : str
            Shown with the progress.
        settings : plain values
            What the results depend on. Results kept under other settings are not used.
        """
        # Find what an interrupted run left.
        texts: dict[int, str] = {}
        if self.partial_folder is not None:
            self._kept = _KeptParts.of(self.partial_folder, settings)
            texts = self._kept.read(len(parts))
        self.done = len(texts)
        self.total = len(parts)
        if self._kept is not None and texts:
            self.notify(
                f"{self.done} of {self.total} parts were done before; "
                f"to start anew, delete {self._kept.folder}"
            )

        # Run the rest.
        remaining = [index for index in range(self.total) if index not in texts]
        folder = nullcontext() if self._kept is None else self._kept.opened()
        results = closing(_results(parts, remaining, self.jobs))
        with self.progress(title, self.total) as advance, folder, results as finished:
            advance(self.done)
            for index, text in finished:
                texts[index] = text
                if self._kept is not None:
                    self._kept.write(index, text)
                self.done += 1
                advance(1)
        return [json.loads(texts[index]) for index in range(self.total)]

    def status(self) -> str:
        """How far an interrupted study is and how to resume it; empty if nothing is kept."""
        if self._kept is None:
            return ""
        # An interrupt may come between the writing of a part and its count, so look at the files.
        num_kept = len(self._kept.read(self.total))
        if num_kept == 0:
            return ""
        return (
            f"{num_kept} of {self.total} parts are done and kept; "
            "the same command goes on from there"
        )

    def discard(self) -> None:
        """Delete the kept parts: the study is complete."""
        if self._kept is not None:
            self._kept.delete()


def _results(
    parts: Sequence[Part[Any]], remaining: Sequence[int], jobs: int
) -> Generator[tuple[int, str], None, None]:
    """Index and result of each remaining part, as they finish."""
    jobs = min(jobs, len(remaining))
    if jobs > 1:
        yield from _results_of_processes(parts, remaining, jobs)
        return
    for index in remaining:
        yield index, json.dumps(parts[index]())


# Several processes.

SPAWN = get_context("spawn")
"""New processes start from scratch: a fork of a process with threads may lock up."""

SINGLE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Where linear algebra looks for its number of threads: one per process is enough."""


def _results_of_processes(
    parts: Sequence[Part[Any]], remaining: Sequence[int], jobs: int
) -> Generator[tuple[int, str], None, None]:
    """Index and result of each remaining part, as the processes finish them."""
    lifeline, held_end = SPAWN.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, SPAWN, _start_worker, (parts, lifeline))
    with lifeline, held_end, pool:
        try:
            # The pool starts its processes while parts are submitted.
            indices = {}
            for index in remaining:
                with _quiet_start():
                    future = pool.submit(_run_part, index)
                indices[future] = index
            for future in as_completed(indices):
                yield indices[future], future.result()
        except BrokenProcessPool:
            raise WorkerError(
                "A worker died (out of memory?). Rerun with fewer --jobs; finished parts are kept."
            ) from None
        except BaseException:
            held_end.close()  # end the workers now: the pool would wait for unfinished parts
            raise


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Processes started in here never receive Ctrl-C, and use one thread for linear algebra.

    Home-made: a pool's initializer runs too late. Ctrl-C reaches a new process while it still
    imports, and would print a traceback; a signal that its parent blocks is blocked from its start.
    """
    resource_tracker.ensure_running()  # its own start would lift the block
    added = [name for name in SINGLE_THREAD if name not in os.environ]
    mask_before = pthread_sigmask(SIG_BLOCK, {SIGINT})
    try:
        os.environ.update(dict.fromkeys(added, "1"))
        yield
    finally:
        for name in added:
            del os.environ[name]
        pthread_sigmask(SIG_SETMASK, mask_before)


_parts: Sequence[Part[Any]] = ()
"""In a worker: the study's parts, sent once rather than with every call."""


def _start_worker(parts: Sequence[Part[Any]], lifeline: Connection) -> None:
    """In a new process: take the parts, and watch the lifeline."""
    global _parts
    _parts = parts
    Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    """End this process once nobody holds the other end of the lifeline.

    Home-made: neither `concurrent.futures` nor `joblib` ends a worker in the middle of a part when
    the study is interrupted or its process is killed. The system closes a dead process's pipes.
    """
    lifeline.poll(None)
    os._exit(1)


def _run_part(index: int) -> str:
    return json.dumps(_parts[index]())


# Kept parts.


@dataclass(frozen=True)
class _KeptParts:
    """Results of finished parts in a folder: ``0.json``, ``1.json``, ...

    The first line of a file is the checksum of the rest.
    """

    folder: Path

    @classmethod
    def of(cls, parent: Path, settings: Mapping[str, Any]) -> _KeptParts:
        """The parts of a study with these settings."""
        identity = json.dumps([__version__, settings], sort_keys=True)
        return cls(parent / _checksum(identity)[:16])

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Create the folder before any work, so that a place we cannot write to fails early.

        A folder that is still empty at the end is removed.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"{self.folder.parent}, which is to keep finished parts, cannot be made: "
                f"{error.strerror}; write the results to another folder"
            ) from error
        try:
            yield
        finally:
            _remove_if_empty(self.folder)
            _remove_if_empty(self.folder.parent)

    def read(self, number: int) -> dict[int, str]:
        """The results that are there and undamaged, by the index of the part."""
        texts = {}
        for index in range(number):
            text = self._read_one(index)
            if text is not None:
                texts[index] = text
        return texts

    def _read_one(self, index: int) -> str | None:
        try:
            content = (self.folder / f"{index}.json").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None
        checksum, _, text = content.partition("\n")
        return text if checksum == _checksum(text) else None

    def write(self, index: int, text: str) -> None:
        """Keep a result."""
        # The same study, run twice at a time, may just have deleted the folder.
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.folder / f"{index}.json") as file:
            file.write_text(f"{_checksum(text)}\n{text}", encoding="utf-8")

    def delete(self) -> None:
        """Delete all of them."""
        shutil.rmtree(self.folder, ignore_errors=True)
        _remove_if_empty(self.folder.parent)


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
