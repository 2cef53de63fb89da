"""Rate limits: one token bucket per token of the service and kind of request.

A bucket holds at most ``burst`` requests and gains ``per_second`` of them each second. The headers
follow the IETF draft "RateLimit header fields for HTTP".
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pastwise.errors import ParameterError
from pastwise.service.problems import Problem


class Rate(NamedTuple):
    """A sustained rate, and how many requests may come at once."""

    per_second: float
    burst: int


class Bucket:
    """The requests that a token may still make."""

    __slots__ = ("filled_at", "level")

    def __init__(self, level: float, filled_at: float) -> None:
        self.level = level
        self.filled_at = filled_at


class Rates:
    """All buckets; their number is bounded by that of tokens.

    Parameters
    ----------
    rates : mapping
        Rate of each kind of request.
    clock : callable
        Seconds that never go back.
    """

    def __init__(
        self, rates: Mapping[str, Rate], clock: Callable[[], float] = time.monotonic
    ) -> None:
        for kind, rate in rates.items():
            if not (rate.per_second > 0 and rate.burst >= 1):
                raise ParameterError(
                    f"the rate of {kind} must be above 0, with a burst of 1 or more"
                )
        self._rates = dict(rates)
        self._clock = clock
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._policies = {kind: _policy(kind, rate) for kind, rate in rates.items()}

    def take(
        self, token: str, kind: str, cost: int = 1, taken: int = 0
    ) -> tuple[tuple[bytes, bytes], ...]:
        """Take requests out of a bucket; returns the headers that say what is left.

        Parameters
        ----------
        cost : int
            How many to take.
        taken : int
            How many were taken just now, as a part of the same cost.

        Raises
        ------
        Problem
            ``rate-limited``, if there is not enough left. A cost above the burst needs a full
            bucket, and leaves it empty for longer.
        """
        rate = self._rates[kind]
        now = self._clock()
        bucket = self._buckets.get((token, kind))
        if bucket is None:
            bucket = self._buckets[token, kind] = Bucket(rate.burst, now)

        # Fill the bucket for the time that has passed.
        level = bucket.level + (now - bucket.filled_at) * rate.per_second
        bucket.level = min(level, rate.burst)
        bucket.filled_at = now

        needed = min(taken + cost, rate.burst) - taken
        if bucket.level < needed:
            raise self._refusal(kind, rate, (needed - bucket.level) / rate.per_second)
        bucket.level -= cost
        left = max(0, int(bucket.level))
        return self._policies[kind], (b"ratelimit", b'"%b";r=%d' % (kind.encode(), left))

    def forget(self, tokens: set[str]) -> None:
        """Drop the buckets of tokens other than these."""
        for token, kind in list(self._buckets):
            if token not in tokens:
                del self._buckets[token, kind]

    def _refusal(self, kind: str, rate: Rate, wait: float) -> Problem:
        seconds = max(1, math.ceil(wait))
        detail = (
            f"At most {rate.per_second:g} {kind} requests a second and {rate.burst} at once for "
            f"each token. Repeat in {seconds} s."
        )
        headers = {
            "Retry-After": str(seconds),
            "RateLimit-Policy": self._policies[kind][1].decode(),
            "RateLimit": f'"{kind}";r=0;t={seconds}',
        }
        return Problem("rate-limited", detail, headers=headers)


def _policy(kind: str, rate: Rate) -> tuple[bytes, bytes]:
    """Header that states a rate: a quota of ``q`` requests per window of ``w`` seconds."""
    window = max(1, math.ceil(rate.burst / rate.per_second))
    return b"ratelimit-policy", f'"{kind}";q={rate.burst};w={window}'.encode()
