"""Random numbers and ids of decisions.

The number that a decision is sampled with is a keyed hash of its place in the history of the
policy: `uniform` has no state that could be lost, and gives the same number on every machine.
"""

from __future__ import annotations

import os
from hashlib import blake2b

SEED_BYTES = 32
"""Length of a seed: 256 bits, so that it cannot be guessed from the decisions that it made."""


def new_seed() -> bytes:
    """A seed from the operating system."""
    return os.urandom(SEED_BYTES)


def uniform(seed: bytes, seq: int) -> float:
    """A number from [0, 1) for the event ``seq`` of a policy, a multiple of 2 to the -53.

    >>> uniform(b"seed", 1) == uniform(b"seed", 1)
    True

    Parameters
    ----------
    seed : bytes
        Of the version: 1 to 64 bytes.
    seq : int
        Place in the history, from 0 to 2**64 - 1.
    """
    digest = blake2b(seq.to_bytes(8, "little"), key=seed, digest_size=8).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def uuid7(milliseconds: int) -> str:
    """A UUID of version 7 (RFC 9562): the time in milliseconds since 1970, then 74 random bits."""
    random_bits = int.from_bytes(os.urandom(10), "little")
    time = (milliseconds & (1 << 48) - 1) << 80
    version = 7 << 76
    upper = (random_bits >> 62 & 0xFFF) << 64
    variant = 2 << 62
    lower = random_bits & (1 << 62) - 1
    digits = f"{time | version | upper | variant | lower:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
