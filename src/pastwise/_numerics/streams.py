"""Random numbers for a batch of runs, each with a generator of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.errors import ParameterError


class Random(Protocol):
    """A source of random numbers: ``numpy.random.Generator`` or `Streams`."""

    def random(self, size: tuple[int, ...], /) -> FloatArray:
        """Uniform numbers from [0, 1) in the given shape."""

    def spawn(self, n_children: int, /) -> Sequence[Random]:
        """Independent sources."""


class _Tape:
    """The uniform numbers of a batch of streams, generated when they are first read and kept."""

    BLOCK = 128
    """Numbers generated at a time; enough that the cost of a call does not matter."""

    def __init__(self, seeds: Sequence[np.random.SeedSequence]) -> None:
        self.seeds = seeds
        self.children: list[_Tape] = []
        self._blocks: list[FloatArray] = []

    @cached_property
    def _generators(self) -> list[np.random.Generator]:
        return [np.random.default_rng(seed) for seed in self.seeds]

    def read(self, position: int) -> FloatArray:
        """Number ``position`` of every stream: [runs]."""
        block, row = divmod(position, self.BLOCK)
        while block >= len(self._blocks):
            columns = [generator.random(self.BLOCK) for generator in self._generators]
            self._blocks.append(np.stack(columns, axis=1))
        return np.asarray(self._blocks[block][row])

    def child(self, index: int) -> _Tape:
        """The tape of child ``index`` of every stream."""
        for new in range(len(self.children), index + 1):
            seeds = [_child_seed(seed, new) for seed in self.seeds]
            self.children.append(_Tape(seeds))
        return self.children[index]


def _child_seed(seed: np.random.SeedSequence, index: int) -> np.random.SeedSequence:
    """The seed that ``seed.spawn`` gives its child number ``index``."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, index))


class Streams:
    """One random stream for each run of a batch, read in step.

    Run *i* gets the same numbers for any number of runs next to it. ``spawn`` returns the same
    children, from their beginning, each time it is called: loops that are given the same
    ``Streams`` share their random numbers, so that differences between them are paired.

    Examples
    --------
    >>> seeds = np.random.SeedSequence(10).spawn(3)
    >>> three, two = Streams(seeds), Streams(seeds[:2])
    >>> bool((three.random((3,))[:2] == two.random((2,))).all())
    True
    """

    def __init__(self, seeds: Sequence[np.random.SeedSequence]) -> None:
        self._tape = _Tape(seeds)
        self._position = 0

    def __len__(self) -> int:
        return len(self._tape.seeds)

    def random(self, size: tuple[int, ...], /) -> FloatArray:
        """The next number of every stream: [runs]."""
        if size != (len(self),):
            raise ParameterError(
                f"these are {len(self)} streams; a batch of shape {size} was requested"
            )
        numbers = self._tape.read(self._position)
        self._position += 1
        return numbers

    def spawn(self, n_children: int, /) -> list[Streams]:
        """Children number 0 to n - 1 of every stream, from their beginning."""
        return [self._reader(self._tape.child(index)) for index in range(n_children)]

    @staticmethod
    def _reader(tape: _Tape) -> Streams:
        """Streams that read a tape from its beginning."""
        streams = Streams.__new__(Streams)
        streams._tape = tape
        streams._position = 0
        return streams
