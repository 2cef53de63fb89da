"""The service's journal: one line of JSON for each event, on stderr.

A line is at most `LONGEST_LINE` bytes of ASCII, so that the kernel writes it whole, and it is left
out where writing would have to wait: a stuck reader of stderr never delays a decision. The next
line says how many were left out. What cannot be written, to a closed or full stderr, is dropped.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from datetime import UTC, datetime
from typing import TextIO

from pastwise.errors import shortened

LONGEST_LINE = 4096
"""Bytes of a line. POSIX lets a pipe mix longer writes with those of other processes."""

LONGEST_TEXT = 1500
"""Characters of a member; two long members fit into a line."""

DATA = frozenset(
    {"state", "next_state", "action", "allowed", "label", "labels", "features", "context"}
    | {"episode", "reward", "detail"}
)
"""Members that may hold data of users: left out, unless the journal was made to log data."""


class Journal:
    """Writes events as lines of JSON.

    Parameters
    ----------
    stream : text stream
        Where lines go.
    log_data : bool
        Whether members of `DATA` are logged.
    sample_above : int
        Requests logged in a second; of those above only failures of the service (status 500 and
        up) are. A hundred lines a second can be kept for weeks; a busy service makes thousands.
    """

    def __init__(
        self, stream: TextIO | None = None, log_data: bool = False, sample_above: int = 100
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._log_data = log_data
        self._sample_above = sample_above
        self._lock = threading.Lock()
        self._second = 0
        self._in_second = 0
        self._left_out = 0
        self._descriptor = _descriptor(self._stream)

    def request(
        self,
        request_id: str,
        method: str,
        route: str,
        status: int,
        seconds: float,
        policy: str | None = None,
        version: int | None = None,
        decision_id: str | None = None,
    ) -> None:
        """Log an answered request."""
        now = datetime.now(UTC)
        if status < 500 and not self._is_sampled(int(now.timestamp())):
            return
        members = {
            "request_id": request_id,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 3),
            "policy": policy,
            "version": version,
            "decision_id": decision_id,
        }
        level = "error" if status >= 500 else "info"
        self._log(now, level, "request", members)

    def event(self, level: str, event: str, **members: object) -> None:
        """Log anything else that happened; level is debug, info, warning or error.

        Members that are None are left out, and those of `DATA` unless data are logged.
        """
        self._log(datetime.now(UTC), level, event, members)

    def _is_sampled(self, second: int) -> bool:
        """Whether a request of this second is logged."""
        with self._lock:
            if second != self._second:
                self._second = second
                self._in_second = 0
            self._in_second += 1
            is_sampled = self._in_second <= self._sample_above
            if not is_sampled:
                self._left_out += 1
            return is_sampled

    def _log(self, now: datetime, level: str, event: str, members: dict[str, object]) -> None:
        time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, object] = {"time": time, "level": level, "event": event}
        for name, value in members.items():
            is_hidden = name in DATA and not self._log_data
            if value is not None and not is_hidden and name not in line:
                line[name] = _plain(value)
        with self._lock:
            if self._left_out:
                line["left_out"] = self._left_out
            is_written = self._write(_encoded(line))
            self._left_out = 0 if is_written else self._left_out + 1

    def _write(self, line: str) -> bool:
        """Write a line if that is possible without waiting."""
        try:
            if self._descriptor is None:
                self._stream.write(line)
                return True
            poll = select.poll()
            poll.register(self._descriptor, select.POLLOUT)
            if not any(ready & select.POLLOUT for _, ready in poll.poll(0)):
                return False
            os.write(self._descriptor, line.encode("ascii"))
            return True
        except (OSError, ValueError):  # stderr is full or closed
            return False


def _descriptor(stream: TextIO) -> int | None:
    """The file descriptor of a stream; None for one in memory."""
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None


def _plain(value: object) -> object:
    """A value that JSON can hold; text of bounded length."""
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    if isinstance(value, str):
        return shortened(value, LONGEST_TEXT)
    try:
        text = json.dumps(value, default=str, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return shortened(str(value), LONGEST_TEXT)
    return json.loads(text) if len(text) <= LONGEST_TEXT else shortened(text, LONGEST_TEXT)


def _encoded(line: dict[str, object]) -> str:
    """A line of ASCII; every control character is escaped, that of deletion too."""
    text = json.dumps(line, default=str)
    if len(text) >= LONGEST_LINE:
        kept = {
            name: line[name] for name in ("time", "level", "event", "request_id") if name in line
        }
        text = json.dumps({**kept, "shortened": True}, default=str)[: LONGEST_LINE - 1]
    return text.replace("\x7f", "\\u007f") + "\n"
