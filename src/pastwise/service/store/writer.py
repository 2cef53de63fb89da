"""Group commit: one thread takes everything that waits into one transaction.

While a transaction is written to disk, more requests arrive; they make up the next one. So a commit
is shared by as many writes as came in the meantime, and nobody waits longer than for two of them.

After an error the thread refuses all writes, until it is resumed: the caller's memory is ahead of
the disk then, and a later write must not be stored without the ones before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, NamedTuple, TypeVar

from pastwise.errors import StoreError
from pastwise.service.store.rows import Write

Result = TypeVar("Result")


class _Submission(NamedTuple):
    writes: Sequence[Write]
    future: Future[None]


class _Call(NamedTuple):
    function: Callable[[], Any]
    future: Future[Any]
    resumes: bool


class _End(NamedTuple):
    pass


class Writer:
    """A thread that commits writes in the order of their submission.

    Parameters
    ----------
    commit : callable
        Commits writes in one transaction, or raises a `StoreError` and leaves nothing of them.
    most : int
        Writes of one transaction, at most. The default takes about 20 ms, which bounds how long
        a write waits for others.

    Attributes
    ----------
    on_commit : callable or None
        Called by the thread after each commit with the number of writes and the seconds it took;
        it must not raise.
    last_commit : float
        When a commit last began or ended, on the monotonic clock: while writes wait, the time since
        then is how long they have waited, at least.
    """

    def __init__(self, commit: Callable[[list[Write]], None], *, most: int = 2000) -> None:
        self.on_commit: Callable[[int, float], None] | None = None
        self.last_commit = time.monotonic()
        self._commit = commit
        self._most = most
        self._queue: SimpleQueue[_Submission | _Call | _End] = SimpleQueue()
        self._error: StoreError | None = None
        self._committing = 0
        self._closed = False
        self._lock = Lock()
        self._thread = Thread(target=self._run, name="pastwise-writer", daemon=True)
        self._thread.start()

    def submit(self, writes: Sequence[Write]) -> Future[None]:
        """Commit writes after all that were submitted before."""
        future: Future[None] = Future()
        self._put(_Submission(writes, future), future)
        return future

    def call(self, function: Callable[[], Result], *, resumes: bool = False) -> Future[Result]:
        """Run a function on the thread, between transactions.

        Parameters
        ----------
        resumes : bool
            If the function returns, later writes are taken again after an error.
        """
        future: Future[Result] = Future()
        self._put(_Call(function, future, resumes), future)
        return future

    def waiting(self) -> int:
        """How many submissions wait, those in the transaction under way included."""
        return self._queue.qsize() + self._committing

    def close(self) -> None:
        """Commit what waits and end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(_End())
        self._thread.join()

    def _put(self, item: _Submission | _Call, future: Future[Any]) -> None:
        future.set_running_or_notify_cancel()  # what is submitted cannot be cancelled

        # The lock keeps anything from being queued after the end, where nobody would answer it.
        with self._lock:
            if not self._closed:
                self._queue.put(item)
                return
        future.set_exception(StoreError("the store is closed"))

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if isinstance(item, _Submission):
                following = self._commit_waiting(item)
                if following is None:
                    continue
                item = following
            if isinstance(item, _End):
                return
            self._run_call(item)

    def _commit_waiting(self, first: _Submission) -> _Call | _End | None:
        """Commit all that waits; returns what came after it, if that is not a submission."""
        # Everything that waits, up to a call.
        submissions = [first]
        writes = list(first.writes)
        following: _Submission | _Call | _End | None = None
        while len(writes) < self._most:
            try:
                following = self._queue.get_nowait()
            except Empty:
                break
            if not isinstance(following, _Submission):
                break
            submissions.append(following)
            writes.extend(following.writes)

        # One transaction for all of it.
        self._committing = len(submissions)
        if self._error is None:
            self._transact(writes)
        self._committing = 0
        for submission in submissions:
            if self._error is None:
                submission.future.set_result(None)
            else:
                submission.future.set_exception(_copied(self._error))
        return None if isinstance(following, _Submission) else following

    def _transact(self, writes: list[Write]) -> None:
        begin = time.monotonic()
        self.last_commit = begin
        try:
            self._commit(writes)
        except StoreError as error:
            self._error = error
            return
        except Exception as error:
            # A bug, or a value that cannot be stored: the thread must outlive it.
            self._error = StoreError(f"a write failed: {type(error).__name__}: {error}")
            return
        self.last_commit = time.monotonic()
        if self.on_commit is not None:
            self.on_commit(len(writes), self.last_commit - begin)

    def _run_call(self, call: _Call) -> None:
        try:
            result = call.function()
        except BaseException as error:
            call.future.set_exception(error)
            return
        if call.resumes:
            self._error = None
        call.future.set_result(result)


def _copied(error: StoreError) -> StoreError:
    """An error for one waiter: a shared one would collect the tracebacks of all."""
    copy = StoreError(*error.args, full=error.full)
    copy.__cause__ = error.__cause__
    return copy
