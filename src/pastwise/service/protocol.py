"""HTTP as uvicorn and httptools read it, with limits for the head of a request.

httptools takes heads of any length, at any speed, and before anybody has shown a token.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_BYTES = 65_536
"""Bytes of the request line and of all headers; clients of the service send less than 1,000."""

MOST_SECONDS = 30.0
"""Time for a head to arrive; clients send it in one packet."""


class GuardedProtocol(HttpToolsProtocol):
    """A connection that is closed if the head of a request is too long or too slow."""

    _is_in_head = False
    _head_bytes = 0
    _too_slow: asyncio.TimerHandle | None = None

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is there."""
        self._is_in_head = False
        if self._too_slow is not None:
            self._stop_timer()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; count it while the head is not complete."""
        super().data_received(data)
        if not self._is_in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_BYTES:
            self.send_400_response(f"The head of a request has at most {MOST_BYTES} bytes.")
        elif self._too_slow is None:
            self._too_slow = self.loop.call_later(MOST_SECONDS, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will arrive."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._too_slow is not None:
            self._too_slow.cancel()
            self._too_slow = None
