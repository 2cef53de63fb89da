"""Threads for compiled loops, which release the interpreter; a lock for values that change.

Not ``concurrent.futures``: the interpreter joins an executor's threads at exit, so that Ctrl-C
would wait for them, and it refuses new tasks from threads that outlive the main one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from queue import SimpleQueue
from threading import RLock, Thread
from types import TracebackType
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
Task = Callable[[], None]

CORES = os.cpu_count() or 1
"""Threads that can run at a time."""


class Lock:
    """A re-entrant lock that can be copied, or sent to a process, with what it protects.

    The copy is a new lock that nobody holds.
    """

    def __init__(self) -> None:
        self._lock = RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[Any, ...]]:
        return Lock, ()


def _work(tasks: SimpleQueue[Task]) -> None:
    """Do one task after another, for ever."""
    while True:
        task = tasks.get()
        task()


@cache
def _tasks() -> SimpleQueue[Task]:
    """The queue of a pool of daemon threads, which is started on first use."""
    tasks: SimpleQueue[Task] = SimpleQueue()
    for _ in range(CORES):
        Thread(target=_work, args=(tasks,), daemon=True).start()
    return tasks


if hasattr(os, "register_at_fork"):
    # A forked process has none of the threads: it starts its own.
    os.register_at_fork(after_in_child=_tasks.cache_clear)


def map_in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Results of a function for each item, in order; in threads if there are several items.

    The function must not call `map_in_threads` itself. The first error is raised.
    """
    if len(items) == 1:
        return [function(items[0])]
    done: SimpleQueue[Exception | None] = SimpleQueue()
    results: dict[int, Result] = {}

    def call(place: int) -> None:
        try:
            results[place] = function(items[place])
            done.put(None)
        except Exception as error:
            done.put(error)

    for place in range(len(items)):
        _tasks().put(partial(call, place))
    for _ in items:
        error = done.get()
        if error is not None:
            raise error
    return [results[place] for place in range(len(items))]
