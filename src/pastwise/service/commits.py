"""From the event loop to the store and back: changes under way, and who waits for them.

The store completes its futures in its writer thread, many at once after a group commit. `Commits`
collects them and wakes the event loop once for all. A `Ticket` reserves a place, such as the id of
a decision or an idempotency key, until its change is committed: those who come to the same place
in the meantime wait. Tasks that are cancelled while they wait leave the change on its way.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import NamedTuple

from pastwise.service.store.base import Store
from pastwise.service.store.rows import Write


class Ticket:
    """A change that is planned, or under way to the store.

    As a context it gives its places back if planning fails.
    """

    def __init__(self, commits: Commits, places: frozenset[Hashable] = frozenset()) -> None:
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

    def finish(self, error: BaseException | None) -> None:
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


class _Done(NamedTuple):
    """A change that the store has finished with."""

    ticket: Ticket
    error: BaseException | None
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

    def __init__(self, store: Store, on_failure: Callable[[BaseException], BaseException]) -> None:
        self._store = store
        self._on_failure = on_failure
        self._loop = asyncio.get_running_loop()
        self._done: deque[_Done] = deque()
        self._is_waking = False
        self._under_way = 0
        self.tickets: dict[Hashable, Ticket] = {}
        self.idle = asyncio.Event()
        self.idle.set()

    async def reserve(self, place: Hashable) -> Ticket:
        """A place, when all changes that came to it before are committed."""
        while place in self.tickets:
            await self.tickets[place].wait()
        return self.reserve_free((place,))

    def reserve_free(self, places: Iterable[Hashable]) -> Ticket:
        """Those of some places that nobody has reserved."""
        free = frozenset(place for place in places if place not in self.tickets)
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
        waiter = ticket.wait()
        self._under_way += 1
        self.idle.clear()
        submitted = self._store.submit(writes)
        submitted.add_done_callback(lambda future: self._finished(future, ticket, then))
        return waiter

    def _finished(
        self, future: Future[None], ticket: Ticket, then: Callable[[], None] | None
    ) -> None:
        """In the writer's thread: hand a finished change back, and wake the loop unless it is."""
        self._done.append(_Done(ticket, future.exception(), then))
        if not self._is_waking:
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        """In the event loop: finish everything that was handed back."""
        self._is_waking = False  # first, so that nothing is handed back unnoticed
        while self._done:
            ticket, error, then = self._done.popleft()
            self._under_way -= 1
            if error is not None:
                error = self._on_failure(error)
            elif then is not None:
                then()
            ticket.finish(error)
        if not self._under_way:
            self.idle.set()
