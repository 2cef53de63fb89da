"""The process of one job: ``python -m pastwise.service.worker``.

The first line of stdin is a `Spec`. Each line of stdout is a `Message`; what libraries print goes
to stderr. A second line, or the end of stdin, which comes when the service dies, requests a stop:
the job then returns what it has, or is killed.

The process has a low priority, and limits of its own: a job must not delay a decision.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from pastwise.errors import PastwiseError
from pastwise.service.problems import Problem, problem_of
from pastwise.service.types import ProgressView

MEBIBYTE = 2**20

SPILL = "spill"
"""Folder, in that of the job, for what does not fit into memory."""


TASKS_OF_SERVICE = "pastwise.service.tasks"


class Limits(Struct):
    """What the process may use.

    Attributes
    ----------
    memory_mb : int
        Memory in MiB, without libraries. An evaluation of 3,000 states, the largest, takes less.
    file_mb : int
        Largest file in MiB that it may write.
    seconds : float
        Time of the processor. The service stops a job by the clock; this limit holds without it.
    grace : float
        Seconds from the request to stop until the process ends itself.
    niceness : int
        How far the process yields to others, from 0 to 19. At 19 it hardly runs while others
        need the processor, so it delays no decision, and takes long on a busy machine.
    """

    memory_mb: int = 2048
    file_mb: int = 8192
    seconds: float = 660.0
    grace: float = 5.0
    niceness: int = 19


class Spec(Struct):
    """What the service requests.

    The job may write into ``folder``; ``tasks`` is the module with a mapping ``TASKS`` that has its
    kind.
    """

    kind: str
    folder: str
    arguments: dict[str, object]
    limits: Limits
    tasks: str = TASKS_OF_SERVICE


class Message(Struct, omit_defaults=True):
    """What the process reports; one member is set."""

    progress: ProgressView | None = None
    partial: dict[str, object] | None = None
    result: dict[str, object] | None = None
    problem: dict[str, object] | None = None


class Reports:
    """The process's end of the conversation; a `tasks.Control`.

    Parameters
    ----------
    output : binary stream
        Where messages go.
    folder : path
        Where files of the job go.
    interval : float
        Least seconds between two reports of progress; people see no more than a few a second.
    """

    def __init__(self, output: BinaryIO, folder: Path, *, interval: float = 0.2) -> None:
        self.folder = folder
        self._output = output
        self._interval = interval
        self._last = -interval
        self._stop = threading.Event()

    def progress(self, done: int, of: int | None = None) -> None:
        """Say how far the job is."""
        now = time.monotonic()
        if now - self._last >= self._interval or done == of:
            self._last = now
            self.send(Message(progress=ProgressView(done, of)))

    def partial(self, result: dict[str, object]) -> None:
        """Say what is known already."""
        self.send(Message(partial=result))

    def should_stop(self) -> bool:
        """Whether to come to an end with what there is."""
        return self._stop.is_set()

    def send(self, message: Message) -> None:
        """Write a message."""
        self._output.write(msgspec.json.encode(message, enc_hook=plain) + b"\n")
        self._output.flush()

    def watch(self, stdin: BinaryIO, grace: float) -> None:
        """Wait, in a thread, for the request to stop; end the process if it takes too long."""

        def wait() -> None:
            stdin.readline()
            self._stop.set()
            time.sleep(grace)
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Do one job."""
    output = own_stdout()
    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=Spec)
    yield_to_others(spec.limits.niceness)
    limit(spec.limits)
    reports = Reports(output, Path(spec.folder))
    reports.watch(sys.stdin.buffer, spec.limits.grace)
    reports.send(last_message(spec, reports))
    # Threads that still compute must not hold the process.
    sys.stderr.flush()
    os._exit(0)


def last_message(spec: Spec, reports: Reports) -> Message:
    """Do a job; returns its result, or the problem that it ended with."""
    try:
        kind, task = import_module(spec.tasks).TASKS[spec.kind]
        return Message(result=task(msgspec.convert(spec.arguments, kind), reports))
    except MemoryError:
        memory = f"the job needs more than {spec.limits.memory_mb:,} MiB of memory"
        problem = Problem("job-out-of-memory", memory)
    except Exception as error:
        if not isinstance(error, (PastwiseError, Problem)):
            traceback.print_exc()
        problem = problem_of(error)
    return Message(problem=msgspec.to_builtins(problem.to_dict()))


def own_stdout() -> BinaryIO:
    """Stdout for messages only; what anybody prints goes to stderr from now on."""
    own = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(own, "wb")


def yield_to_others(niceness: int) -> None:
    """Lower the priority of this process and of its session; leave a core to decisions."""
    with suppress(OSError):
        os.nice(niceness)
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(niceness))
    if niceness and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[1:] or cores)


def limit(limits: Limits) -> None:
    """Set the limits of the process, where the system has them."""
    memory = limits.memory_mb * MEBIBYTE
    file = limits.file_mb * MEBIBYTE
    seconds = int(limits.seconds) + 1
    _lower(resource.RLIMIT_DATA, memory)
    _lower(resource.RLIMIT_FSIZE, file)
    _lower(resource.RLIMIT_CPU, seconds)
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind: int, value: int) -> None:
    """Lower a limit; one that is lower already stays."""
    _, most = resource.getrlimit(kind)
    if most != resource.RLIM_INFINITY:
        value = min(value, most)
    with suppress(ValueError, OSError):
        resource.setrlimit(kind, (value, value))


def plain(value: object) -> object:
    """A value of NumPy as one of Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} cannot be sent")


if __name__ == "__main__":
    main()
