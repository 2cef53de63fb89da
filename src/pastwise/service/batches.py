"""Several decisions in one transaction, under one idempotency key.

The first decision of a batch is stored under the key of the batch, so that one look-up finds out
whether the batch was made; the others under the key and their place. The digest of each is that of
the whole batch, followed by its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from pastwise.service.changes import Caller, Change
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem
from pastwise.service.types import DecideRequest, DecisionView

DIGEST_BYTES = 16
"""Length of the digest of a request: 128 bits do not collide by chance."""

PLACE_BYTES = 4

MARK = "\x1f"
"""Between the key of a batch and the place of an item: no key of a client has it."""


def digest_of(request: DecideRequest | Sequence[DecideRequest]) -> bytes:
    """Digest of a request, equal only for equal requests."""
    return blake2b(msgspec.json.encode(request), digest_size=DIGEST_BYTES).digest()


def place_in(digest: bytes) -> int:
    """The place in its batch of the decision that has a digest."""
    return int.from_bytes(digest[DIGEST_BYTES:], "little")


def item_key(key: str, place: int) -> str:
    """The key of an item that is not the first decision of its batch."""
    return f"{key}{MARK}{place}"


def decide_batch(
    policy: ServedPolicy,
    requests: Sequence[DecideRequest],
    token: str,
    key: str | None,
    now: int,
) -> Change[list[DecisionView | Problem]]:
    """Decide each request that is not refused."""
    policy.deciding_version()
    whole: Change[list[DecisionView | Problem]] = Change([], [])
    digest = None if key is None else digest_of(requests)
    for place, request in enumerate(requests):
        caller = Caller(token)
        if key is not None and digest is not None:
            is_first = not whole.writes
            own_key = key if is_first else item_key(key, place)
            own_digest = digest + place.to_bytes(PLACE_BYTES, "little")
            caller = Caller(token, own_key, own_digest)
        try:
            change = policy.decide(request, caller, now)
        except Problem as problem:
            whole.answer.append(problem)
            continue
        whole.writes += change.writes
        whole.answer.append(change.answer)
        whole.news += change.news
    return whole
