"""Threads for compiled loops, which release the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

Item = TypeVar("Item")


Result = TypeVar("Result")


CORES = os.cpu_count() or 1
"""Threads that can run at a time."""


def _serve(tasks: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        tasks.get()()


@cache
def _tasks() -> SimpleQueue[Callable[[], None]]:
    """What there is to do for some threads, which end with the program: nobody waits for them, even after Ctrl-C."""
    tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
    for _ in range(CORES):
        Thread(target=_serve, args=(tasks,), daemon=True).start()
    return tasks


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_tasks.cache_clear)  # threads are not forked


def side_by_side(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Results of a function, which must not do the same, for each item: in threads where there are several."""
    if len(items) == 1:
        return [function(items[0])]
    done: SimpleQueue[Exception | None] = SimpleQueue()
    results: dict[int, Result] = {}

    def do(place: int) -> None:
        try:
            results[place] = function(items[place])
            done.put(None)
        except Exception as error:
            done.put(error)

    for place in range(len(items)):
        _tasks().put(partial(do, place))
    for _ in items:
        if (error := done.get()) is not None:
            raise error
    return [results[place] for place in range(len(items))]
