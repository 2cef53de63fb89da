"""Server-Sent Events: what happens to a policy, as it happens.

Each policy has a ring of its latest events. A reader is only a position in that ring, so a slow
reader costs nothing: when the ring has moved past it, it gets an ``event: gap`` with the number of
events that it missed, and goes on with those that are there. The same holds for a reader that
comes back with a ``Last-Event-ID`` that is too old, or from before the service was restarted.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import NamedTuple

import msgspec

RETRY = b"retry: 2000\n\n"
"""First frame: a browser that loses the connection comes back after two seconds."""

HEARTBEAT = b": heartbeat\n\n"
"""A comment, so that proxies and clients know that the connection lives."""


class Event(NamedTuple):
    """Something that happened."""

    number: int
    kind: str
    body: Mapping[str, object]


class Channel:
    """The latest events of one policy, numbered from 1, and a signal for those that follow."""

    def __init__(self, capacity: int) -> None:
        self.events: deque[Event] = deque(maxlen=capacity)
        self.last = 0
        self.changed = asyncio.Event()

    def append(self, kind: str, body: Mapping[str, object]) -> None:
        """Add an event and wake who waits."""
        self.last += 1
        self.events.append(Event(self.last, kind, body))
        self.changed.set()

    @property
    def oldest(self) -> int:
        """Number of the oldest event that is kept, or of the first one to come."""
        return self.events[0].number if self.events else self.last + 1

    def after(self, number: int) -> list[Event]:
        """The kept events after one, oldest first. Takes as many steps as there are."""
        found = []
        for event in reversed(self.events):
            if event.number <= number:
                break
            found.append(event)
        found.reverse()
        return found


class Stream:
    """Publishes events to any number of readers. All calls are made on the event loop.

    Parameters
    ----------
    capacity : int
        Events kept for each policy; a reader may be so many behind. A thousand are two seconds of
        a busy service, and about a megabyte.
    heartbeat : float
        Seconds without an event after which a comment is sent; proxies commonly drop connections
        that are silent for 30 seconds.
    pace : float
        Least seconds between two batches to one reader: a reader of a busy policy wakes ten times
        a second, not a thousand times.
    """

    def __init__(self, capacity: int = 1000, *, heartbeat: float = 15.0, pace: float = 0.1) -> None:
        self.capacity = capacity
        self.heartbeat = heartbeat
        self.pace = pace
        self.readers = 0
        self._channels: dict[str, Channel] = {}
        self._is_closed = False
        # Numbers begin again with each start of the service; its time makes them different.
        self._start = format(time.time_ns(), "x")

    def publish(self, policy: str, kind: str, body: Mapping[str, object]) -> None:
        """Make an event known to the readers of a policy."""
        channel = self._channels.get(policy)
        if channel is None:
            channel = self._channels[policy] = Channel(self.capacity)
        channel.append(kind, body)

    async def events(
        self, policy: str, last_event_id: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Frames for one reader: events from now on, or after the last one that it has seen.

        Parameters
        ----------
        last_event_id : str, optional
            The ``id`` of a frame, as browsers send it when they connect again.
        """
        channel = self._channels.setdefault(policy, Channel(self.capacity))
        self.readers += 1
        try:
            position = channel.last
            yield RETRY
            if last_event_id is not None:
                known = self._number(last_event_id, channel)
                if known is None:
                    position = channel.oldest - 1
                    yield self._gap(position, None)
                else:
                    position = known
            while not self._is_closed:
                if position < channel.oldest - 1:
                    missed = channel.oldest - 1 - position
                    position = channel.oldest - 1
                    yield self._gap(position, missed)
                found = channel.after(position)
                if found:
                    position = found[-1].number
                    yield b"".join(self._frame(event) for event in found)
                    await asyncio.sleep(self.pace)
                elif not await self._change(channel):
                    yield HEARTBEAT
        finally:
            self.readers -= 1

    async def _change(self, channel: Channel) -> bool:
        """Wait for an event; False if none came until the next heartbeat is due."""
        channel.changed.clear()
        try:
            await asyncio.wait_for(channel.changed.wait(), self.heartbeat)
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """End all readers."""
        self._is_closed = True
        for channel in self._channels.values():
            channel.changed.set()

    def _number(self, last_event_id: str, channel: Channel) -> int | None:
        """The number in an id; None if it is not of this run of the service."""
        start, _, digits = last_event_id.partition("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) < 20
        if start != self._start or not is_number:
            return None
        number = int(digits)
        return number if number <= channel.last else None

    def _frame(self, event: Event) -> bytes:
        body = msgspec.json.encode(event.body)
        name = f"id: {self._start}-{event.number}\nevent: {event.kind}\ndata: "
        return name.encode() + body + b"\n\n"

    def _gap(self, position: int, missed: int | None) -> bytes:
        """What a reader gets in place of events that are no longer kept."""
        return self._frame(Event(position, "gap", {"missed": missed}))
