"""Worker processes as the service sees them: start, messages, request to stop, kill, end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple, cast

import msgspec

from pastwise.service.worker import Message, Spec

LONGEST_MESSAGE = 2**24
"""Bytes of one message of a worker. The evaluation of 3,000 states, the largest result, has one
megabyte."""

STDERR = "stderr.txt"
"""File for what the process prints."""

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables that make a worker compute in one thread; the other cores answer requests."""

Process = subprocess.Popen[bytes]


class End(NamedTuple):
    """How a process ended: its exit code, and the end of what it printed."""

    code: int
    last_words: str

    @property
    def explanation(self) -> str:
        """What to say if there was no result."""
        if self.code < 0:
            name = signal.Signals(-self.code).name
            return f"the process of the job was killed ({name}); it may have run out of memory"
        return f"the process of the job ended with code {self.code}"


def run_process(
    spec: Spec, on_start: Callable[[Process], None], on_message: Callable[[Message], None]
) -> End:
    """Do a job in a process of its own; returns when that has ended.

    Parameters
    ----------
    spec : Spec
        The job. Its folder exists.
    on_start, on_message : callables
        Called in this thread with the process, and with each message.
    """
    try:
        with (Path(spec.folder) / STDERR).open("w+b") as errors:
            code = _run(spec, errors, on_start, on_message)
            return End(code, _end_of(errors))
    except OSError as error:
        return End(1, f"the process of the job cannot be started: {error}")


def _run(
    spec: Spec,
    errors: IO[bytes],
    on_start: Callable[[Process], None],
    on_message: Callable[[Message], None],
) -> int:
    """Start a process, and read its messages; returns its exit code."""
    # In a session of its own, which the worker gives the lowest priority: the kernel may share
    # processors among sessions first, and what a job uses must not count as the service's share.
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pastwise.service.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={**os.environ, **dict.fromkeys(THREADS, "1")},
        start_new_session=True,
    )
    with process, suppress(OSError, ValueError, msgspec.MsgspecError):
        stdin = cast(IO[bytes], process.stdin)
        stdin.write(msgspec.json.encode(spec) + b"\n")
        stdin.flush()
        on_start(process)
        stdout = cast(IO[bytes], process.stdout)
        for line in iter(lambda: stdout.readline(LONGEST_MESSAGE), b""):
            on_message(msgspec.json.decode(line, type=Message))
    return process.returncode


def say_stop(process: Process) -> None:
    """Request that a process stops. Its stdin holds more than this one line, so nothing waits."""
    with suppress(OSError, ValueError):
        stdin = cast(IO[bytes], process.stdin)
        stdin.write(b"stop\n")
        stdin.flush()


def kill(process: Process) -> None:
    """End a process, and all that it has started, at once."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _end_of(errors: IO[bytes], *, most: int = 4000) -> str:
    """The last bytes of a file, as text."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - most))
    return errors.read().decode("utf-8", errors="replace")
