"""A Monte-Carlo study's tasks, done by one process or several; what is done is kept, so that a study can be resumed.

Tasks do not depend on each other: each has its own seeds. They are the same, and their results come in the same order,
whatever the number of processes. A result is made of plain values, and travels and is kept as JSON, so that one out of
another process or out of a file equals one that was just computed, to the last bit.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIG_BLOCK, SIG_SETMASK, SIGINT, pthread_sigmask
from threading import Thread
from typing import Any

from pastwise import __version__
from pastwise._files import replacing

Task = Callable[[], Any]
"""A part of a study: it returns plain values. Over several processes it must be one that can be sent to another."""

Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""From a title and a number of steps to the function that is told of steps just done."""


def _unseen(title: str, steps: int) -> AbstractContextManager[Callable[[int], None]]:
    return nullcontext(lambda done: None)


@dataclass
class Work:
    """How the tasks of a study are done.

    Attributes
    ----------
    jobs : int
        Number of processes; 1 is this one.
    beside : Path, optional
        Folder in which results are kept until the study is complete. Absent: they are not.
    progress : Progress
        Shows how far the work is; nothing by default.
    tell : function of a line of text
        Is told what was found done; nobody by default.
    done, total : int
        Tasks of the study that are done, and all.
    """

    jobs: int = 1
    beside: Path | None = None
    progress: Progress = _unseen
    tell: Callable[[str], None] = lambda text: None
    done: int = field(default=0, init=False)
    total: int = field(default=0, init=False)
    _kept: Path | None = field(default=None, init=False)

    def do(self, title: str, tasks: Sequence[Task], settings: Mapping[str, Any]) -> list[Any]:
        """Results of all tasks, in their order.

        Parameters
        ----------
        settings : plain values
            What the results depend on. Results that were kept under others are not used.
        """
        self._kept = (
            self.beside
            and self.beside / _digest(json.dumps([__version__, settings], sort_keys=True))[:16]
        )
        texts = _read_all(self._kept, len(tasks)) if self._kept else {}
        self.done, self.total = len(texts), len(tasks)
        if self._kept and texts:
            self.tell(
                f"{self.done} of {self.total} parts were done before; to start anew, delete {self._kept}"
            )
        with self.progress(title, self.total) as advance, _folder(self._kept):

            def finish(index: int, text: str) -> None:
                texts[index] = text
                if self._kept:
                    _write(self._kept / f"{index}.json", text)
                self.done += 1
                advance(1)

            advance(self.done)
            left = [index for index in range(self.total) if index not in texts]
            if min(self.jobs, len(left)) > 1:
                _over_processes(self.jobs, tasks, left, finish)
            else:
                for index in left:
                    finish(index, _text(tasks[index]))
        return [json.loads(texts[index]) for index in range(self.total)]

    def state(self) -> str:
        """How far an interrupted study is, and how it is resumed; nothing where no task is done."""
        if not (self._kept and self.done):
            return ""
        return f"{self.done} of {self.total} parts are done and kept; the same command goes on from there"

    def forget(self) -> None:
        """Delete what was kept: the study is complete."""
        if self._kept:
            shutil.rmtree(self._kept, ignore_errors=True)
            _remove_if_empty(self._kept.parent)


def _text(task: Task) -> str:
    return json.dumps(task())


# Over processes.

SPAWN = get_context("spawn")
"""New processes begin anew: a fork of one with threads may lock up."""

SINGLE_THREAD = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""Where linear algebra looks for its number of threads: one for each process is enough."""


def _over_processes(
    jobs: int, tasks: Sequence[Task], left: Sequence[int], finish: Callable[[int, str], None]
) -> None:
    """Do the tasks that are left over several processes; ``finish`` is told of each as it is done."""
    lifeline, held = SPAWN.Pipe(duplex=False)
    with (
        lifeline,
        held,
        ProcessPoolExecutor(min(jobs, len(left)), SPAWN, _begin, (tasks, lifeline)) as pool,
    ):
        try:
            futures = {}
            for index in left:
                with _starting():
                    futures[pool.submit(_do, index)] = index
            for future in as_completed(futures):
                finish(futures[future], future.result())
        except BrokenProcessPool:
            raise ChildProcessError(
                "a process of the study came to a sudden end, perhaps for want of memory: run the same command again, "
                "with fewer --jobs, to go on from what is done"
            ) from None
        except BaseException:
            held.close()  # nobody waits for tasks that are half done
            raise


@contextmanager
def _starting() -> Iterator[None]:
    """Processes that are started here never hear Ctrl-C, and have one thread for linear algebra.

    What a process blocks is blocked in those that it starts, from their first moment. A Ctrl-C of this moment comes
    after it.
    """
    resource_tracker.ensure_running()  # its own start would lift the block
    new = [name for name in SINGLE_THREAD if name not in os.environ]
    before = pthread_sigmask(SIG_BLOCK, {SIGINT})
    try:
        os.environ.update(dict.fromkeys(new, "1"))
        yield
    finally:
        for name in new:
            del os.environ[name]
        pthread_sigmask(SIG_SETMASK, before)


_tasks: Sequence[Task] = ()
"""In a process that was started: the study's tasks, sent once rather than with every call."""


def _begin(tasks: Sequence[Task], lifeline: Connection) -> None:
    """In a new process: take the tasks, and watch the lifeline."""
    global _tasks
    _tasks = tasks
    Thread(target=_live_by, args=(lifeline,), daemon=True).start()


def _live_by(lifeline: Connection) -> None:
    """End this process once nobody holds the other end: the study was interrupted, or its process is gone."""
    lifeline.poll(None)
    os._exit(1)


def _do(index: int) -> str:
    return _text(_tasks[index])


# On disk.


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@contextmanager
def _folder(path: Path | None) -> Iterator[None]:
    """Make a folder, at once, so that a place that cannot be written to is known before the work; an empty one goes."""
    if path is None:
        yield
        return
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        _remove_if_empty(path)
        _remove_if_empty(path.parent)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _write(file: Path, text: str) -> None:
    """Keep a result, its checksum in the line before it."""
    file.parent.mkdir(
        parents=True, exist_ok=True
    )  # the same study, run twice at a time, may just have deleted it
    with replacing(file) as beside:
        beside.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")


def _read_all(folder: Path, number: int) -> dict[int, str]:
    """The results that are there and whole, by task."""
    found = ((index, _read(folder / f"{index}.json")) for index in range(number))
    return {index: text for index, text in found if text is not None}


def _read(file: Path) -> str | None:
    try:
        checksum, text = file.read_text(encoding="utf-8").split("\n", 1)
    except (OSError, ValueError):
        return None
    return text if checksum == _digest(text) else None
