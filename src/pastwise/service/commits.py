"""From the event loop to the store and back: changes under way, and who waits for them.

Everything that is planned in one turn of the event loop goes to the store together, and a commit
wakes the loop once for all who wait for it. A `Ticket` reserves a place, such as the id of
a decision or an idempotency key, until its change is committed: those who come to the same place
in the meantime wait. Tasks that are cancelled while they wait leave the change on its way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple

from pastwise.errors import StoreError
from pastwise.service.store.base import Store
from pastwise.service.store.rows import Write


class Ticket:
    """A change that is planned, or under way to the store.

    As a context it gives its places back if planning fails.
    """

    def __init__(self, commits: Commits, places: Collection[Hashable] = ()) -> None:
        self._commits = commits
        self.places = places
        self._waiters: list[asyncio.Future[None]] = []

    def __enter__(self) -> Ticket:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self.finish(None)

    def wait(self) -> asyncio.Future[None]:
        """Done when the change is committed; fails if it is not."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    def finish(self, error: Exception | None) -> None:
        """Give back the places, and wake those who wait."""
        for place in self.places:
            self._commits.tickets.pop(place, None)
        for waiter in self._waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


class _Submission(NamedTuple):
    """A change on its way."""

    writes: Sequence[Write]
    ticket: Ticket
    then: Callable[[], None] | None


class Commits:
    """Changes under way to a store.

    Parameters
    ----------
    store : Store
    on_failure : callable
        Called in the event loop with the error of a commit; those who wait get what it returns.

    Attributes
    ----------
    tickets : dict
        Tickets by the places that they reserve.
    idle : Event
        Set while nothing is under way.
    """

    def __init__(self, store: Store, on_failure: Callable[[Exception], Exception]) -> None:
        self._store = store
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._next: list[_Submission] = []
        self._done: deque[tuple[list[_Submission], Exception | None]] = deque()
        self._is_waking = False
        self._under_way = 0
        self.tickets: dict[Hashable, Ticket] = {}
        self.idle = asyncio.Event()
        self.idle.set()

    async def reserve(self, place: Hashable) -> Ticket:
        """A place, when all changes that came to it before are committed."""
        while place in self.tickets:
            await self.tickets[place].wait()
        ticket = Ticket(self, (place,))
        self.tickets[place] = ticket
        return ticket

    def reserve_free(self, places: Iterable[Hashable]) -> Ticket:
        """Those of some places that nobody has reserved."""
        free = {place for place in places if place not in self.tickets}
        ticket = Ticket(self, free)
        for place in free:
            self.tickets[place] = ticket
        return ticket

    def submit(
        self,
        writes: Sequence[Write],
        ticket: Ticket | None = None,
        then: Callable[[], None] | None = None,
    ) -> asyncio.Future[None]:
        """Commit writes; the future is done after their commit.

        Parameters
        ----------
        then : callable, optional
            Called in the event loop after the commit, whether or not anybody still waits.
        """
        if ticket is None:
            ticket = Ticket(self)
        if not self._next:
            self._loop.call_soon(self._submit_next)
        self._next.append(_Submission(writes, ticket, then))
        self._under_way += 1
        self.idle.clear()
        return ticket.wait()

    def _submit_next(self) -> None:
        """Hand everything that came in one turn of the loop to the store."""
        submissions = self._next
        self._next = []
        writes = [write for submission in submissions for write in submission.writes]
        future = self._store.submit(writes)
        future.add_done_callback(lambda done: self._finished(submissions, done))

    def _finished(self, submissions: list[_Submission], done: Future[None]) -> None:
        """In the writer's thread: hand finished changes back, and wake the loop unless it is."""
        failure = done.exception()
        if failure is not None and not isinstance(failure, Exception):
            failure = StoreError(f"the writer was interrupted: {failure!r}")
        self._done.append((submissions, failure))
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        """In the event loop: finish everything that was handed back."""
        self._is_waking = False  # first, so that nothing is handed back unnoticed
        while self._done:
            submissions, failure = self._done.popleft()
            self._under_way -= len(submissions)
            for submission in submissions:
                if failure is not None:
                    submission.ticket.finish(self._on_failure(failure))
                    continue
                if submission.then is not None:
                    submission.then()
                submission.ticket.finish(None)
        if not self._under_way:
            self.idle.set()
