"""The process that reads logs: started once, kept warm, killed if it takes too long.

``python -m pastwise.workbench.reader`` takes one request a line on stdin and answers each with one
line on stdout. Logs come from anywhere, so DuckDB runs in this process only, locked down to the one
file that a request names, and the process has limits of its own. The event loop never waits: a
thread does.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from typing import IO, Any, cast

import msgspec
from msgspec import Struct

from pastwise.errors import PastwiseError
from pastwise.service.problems import Problem, ProblemPart, problem_of
from pastwise.service.processes import THREADS, kill
from pastwise.service.worker import Limits, limit, own_stdout, plain

LONGEST_LINE = 2**26
"""Bytes of one answer; 500 rows of a thousand columns have fewer."""

NO_TIME_LIMIT = 10.0**9
"""Seconds of the processor: the process lives as long as the workbench, each request is timed."""


class Question(Struct):
    """A request: the name of a function of `readings`, and its arguments."""

    task: str
    arguments: dict[str, Any]


class Reply(Struct, omit_defaults=True):
    """An answer; one member is set."""

    result: dict[str, Any] | None = None
    problem: dict[str, Any] | None = None


class Reader:
    """Asks the process, one request at a time.

    Parameters
    ----------
    seconds : float
        Time for one request: a page that waits longer has lost its reader.
    counting_seconds : float
        Time for counting a whole log. Ten million rows of CSV take a fraction of it, also on a busy
        machine.
    memory_mb : int
        Memory of the process, in MiB.
    """

    def __init__(
        self, *, seconds: float = 60.0, counting_seconds: float = 600.0, memory_mb: int = 2048
    ) -> None:
        self._seconds = seconds
        self._counting_seconds = counting_seconds
        self._limits = Limits(memory_mb=memory_mb, seconds=NO_TIME_LIMIT)
        self._turn = asyncio.Lock()

        # No process starts after the end: the lock orders the two, which happen in threads.
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    async def ask(self, task: str, **arguments: object) -> dict[str, Any]:
        """What a function of `readings` returns.

        Raises
        ------
        Problem
            The library's, with the pointer that it has; ``job-over-time`` and ``job-died``.
        """
        async with self._turn:
            reply = await asyncio.to_thread(self._ask, Question(task, arguments))
        if reply.problem is not None:
            raise _problem_from(reply.problem)
        return reply.result or {}

    async def close(self) -> None:
        """End the process."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                _end(self._process)

    def _ask(self, question: Question) -> Reply:
        """Send a request and wait for its answer; a process that takes too long is killed."""
        process = self._started()
        is_over_time = threading.Event()

        def end() -> None:
            is_over_time.set()
            kill(process)

        seconds = self._counting_seconds if question.task == "use" else self._seconds
        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            stdin = cast(IO[bytes], process.stdin)
            stdin.write(msgspec.json.encode(question) + b"\n")
            stdin.flush()
            line = cast(IO[bytes], process.stdout).readline(LONGEST_LINE)
            return msgspec.json.decode(line, type=Reply)
        except (OSError, ValueError, msgspec.MsgspecError):
            _end(process)
            self._process = None
        finally:
            timer.cancel()
        if is_over_time.is_set():
            problem = Problem(
                "job-over-time", f"Reading the log took longer than {seconds:g} seconds."
            )
        else:
            problem = Problem("job-died", "The process that reads logs ended; try again.")
        return Reply(problem=problem.to_dict())

    def _started(self) -> subprocess.Popen[bytes]:
        """The process; a new one if there is none."""
        with self._lock:
            if self._is_closed:
                raise Problem("stopping")
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "pastwise.workbench.reader"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **dict.fromkeys(THREADS, "1")},
                    start_new_session=True,
                )
                stdin = cast(IO[bytes], self._process.stdin)
                stdin.write(msgspec.json.encode(self._limits) + b"\n")
            return self._process


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and close its pipes."""
    kill(process)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            cast(IO[bytes], pipe).close()


def _problem_from(members: dict[str, Any]) -> Problem:
    """A problem that another process sent."""
    slug = members["type"].removeprefix("/problems/")
    parts = [msgspec.convert(part, ProblemPart) for part in members.get("errors", ())]
    return Problem(slug, members.get("detail", ""), errors=parts, title=members["title"])


# In the process.


def main() -> None:
    """Answer requests until stdin ends."""
    output = own_stdout()
    requests = sys.stdin.buffer
    limit(msgspec.json.decode(requests.readline(), type=Limits))
    for line in iter(requests.readline, b""):
        reply = answer(msgspec.json.decode(line, type=Question))
        output.write(msgspec.json.encode(reply, enc_hook=plain) + b"\n")
        output.flush()


def answer(question: Question) -> Reply:
    """Answer one request."""
    from pastwise.workbench.readings import READINGS

    try:
        result = READINGS[question.task](**question.arguments)
        return Reply(result=msgspec.to_builtins(result, enc_hook=plain, str_keys=True))
    except MemoryError:
        problem = Problem("job-out-of-memory", "Reading the log needs too much memory.")
    except Exception as error:
        if not isinstance(error, (PastwiseError, Problem)):
            traceback.print_exc()
        problem = problem_of(error)
    return Reply(problem=msgspec.to_builtins(problem.to_dict()))


if __name__ == "__main__":
    main()
