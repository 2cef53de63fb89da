"""HTTP as uvicorn and httptools read it, with limits for those who have not shown a token yet.

httptools takes heads of any length, at any speed. A connection that sends nothing, a head that does
not end, and a body that goes on after it was answered would each hold a file descriptor for ever.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES = 65_536
"""Bytes of the request line and of all headers; clients of the service send less than 1,000."""

MOST_SECONDS = 30.0
"""Time for a head to arrive, and for the rest of a body that nobody reads; clients send each in one
packet."""


class GuardedProtocol(HttpToolsProtocol):
    """A connection that is closed if a request is too long or too slow before it is looked at.

    A timer runs while the service waits for the client: from the connection to the end of the first
    head, from the beginning of each later head to its end, and from an answer to the end of the
    body that it did not wait for. Bodies that are read have limits of their own.
    """

    _is_in_head = False
    _head_bytes = 0
    _too_slow: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody connects, who should say what for."""
        super().connection_made(transport)
        self._start_timer()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._is_in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is there with its body."""
        self._stop_timer()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request is answered, perhaps without its body."""
        if self.cycle.response_complete and self.cycle.more_body:
            self._start_timer()
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; count it while the head is not complete."""
        super().data_received(data)
        if not self._is_in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_BYTES:
            self.send_400_response(f"The head of a request has at most {MOST_BYTES} bytes.")
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will arrive."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        """Close the connection after a while; a timer that runs already is kept."""
        if self._too_slow is None:
            self._too_slow = self.loop.call_later(MOST_SECONDS, self.transport.close)

    def _stop_timer(self) -> None:
        if self._too_slow is not None:
            self._too_slow.cancel()
            self._too_slow = None
