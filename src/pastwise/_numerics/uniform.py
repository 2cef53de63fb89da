"""Random numbers of a loop: quick, and with a state that can be stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from operator import length_hint
from typing import Any

import numpy as np


class UniformNumbers:
    """Numbers from [0, 1), generated in blocks: one at a time would cost ten times as much.

    Parameters
    ----------
    rng : Generator
        Used by nobody else.
    block : int
        Numbers in a block. By default, the costs of a block are shared by so many that they do not
        count.
    """

    def __init__(self, rng: np.random.Generator, block: int = 1024) -> None:
        self._rng = rng
        self._size = block
        self._fill()

    def _fill(self) -> None:
        self._before = self._rng.bit_generator.state
        self._block = iter(self._rng.random(self._size).tolist())

    def __iter__(self) -> Iterator[float]:
        """The numbers from here on; only the latest iterator may be used."""
        while True:
            yield from self._block
            self._fill()

    @property
    def state(self) -> dict[str, Any]:
        """Where the sequence is: the generator before the block, and how much of it is used."""
        return {"generator": self._before, "used": self._size - length_hint(self._block)}

    @classmethod
    def restored(cls, state: Mapping[str, Any], block: int = 1024) -> UniformNumbers:
        """Numbers that go on from a state."""
        numbers = cls(generator_in(state["generator"]), block)
        used = state["used"]
        if type(used) is not int or not 0 <= used <= block:
            raise ValueError("an impossible state of random numbers")
        for _ in islice(numbers._block, used):
            pass
        return numbers


def generator_in(state: Mapping[str, Any]) -> np.random.Generator:
    """A generator of numpy's default kind in a given state of its bits."""
    rng = np.random.default_rng(0)
    rng.bit_generator.state = state
    return rng
