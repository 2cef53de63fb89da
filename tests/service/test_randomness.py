"""Tests of the random numbers and ids of decisions."""

from __future__ import annotations

import hashlib
import struct
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise.service.randomness import new_seed, uniform, uuid7


@given(st.binary(min_size=1, max_size=64), st.integers(0, 2**64 - 1))
def test_a_number_is_the_first_53_bits_of_the_hash(seed: bytes, seq: int) -> None:
    digest = hashlib.blake2b(struct.pack("<Q", seq), key=seed, digest_size=8).digest()
    (number,) = struct.unpack("<Q", digest)

    assert uniform(seed, seq) == (number // 2048) / 2**53
    assert 0 <= uniform(seed, seq) < 1


def test_numbers_are_uniform_and_independent_of_their_neighbours() -> None:
    numbers = np.array([uniform(b"a seed", seq) for seq in range(20_000)])
    pairs, _, _ = np.histogram2d(numbers[:-1], numbers[1:], bins=10, range=[[0, 1], [0, 1]])
    expected = pairs.sum() / 100
    chi_square = ((pairs - expected) ** 2 / expected).sum()

    # The 1 - 1e-6 quantile of chi-square with 90 degrees of freedom is 168.7.
    assert chi_square < 169


def test_another_seed_gives_other_numbers() -> None:
    one = [uniform(b"one", seq) for seq in range(100)]
    two = [uniform(b"two", seq) for seq in range(100)]

    assert not set(one) & set(two)
    assert new_seed() != new_seed()


@pytest.mark.parametrize("milliseconds", [0, 1, 1_700_000_000_123, 2**48 - 1])
def test_an_id_states_its_time_version_and_variant(milliseconds: int) -> None:
    found = UUID(uuid7(milliseconds))

    assert found.version == 7
    assert found.variant == "specified in RFC 4122"
    assert found.int >> 80 == milliseconds


def test_ids_differ_and_later_ones_sort_after_earlier_ones() -> None:
    early = {uuid7(1_000) for _ in range(1_000)}
    late = {uuid7(1_001) for _ in range(1_000)}

    assert len(early) == len(late) == 1_000
    assert max(early) < min(late)
