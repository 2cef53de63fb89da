"""The thread that commits."""

import threading

from pastwise.service.store.rows import Write
from pastwise.service.store.writer import Writer


def test_what_is_being_committed_waits_too() -> None:
    began = threading.Event()
    may_end = threading.Event()

    def commit(writes: list[Write]) -> None:
        began.set()
        may_end.wait(30)

    writer = Writer(commit)
    future = writer.submit([])
    assert began.wait(30)
    assert writer.waiting() == 1
    may_end.set()
    future.result(30)
    writer.close()
    assert writer.waiting() == 0
