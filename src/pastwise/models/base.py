"""Transition models: what the design needs to know of a system, however it is stored.

Three models stand behind one protocol. A *dense* one is the tensor p(next_state | state, action). A *sparse* one
keeps its non-zeros. A *learned* one is the mean of a Dirichlet posterior, (count + background) / total: sparse counts
plus a constant, so the dense tensor is never needed. ``-inf`` is a legal value everywhere; ``0 * (-inf)`` counts as
0.
"""

from __future__ import annotations

from typing import Protocol

from pastwise._numerics.arrays import (
    FloatArray,
    IntArray,
)


class TransitionModel(Protocol):
    """What the design needs to know of a system, however it is stored."""

    @property
    def num_states(self) -> int:
        """S."""
        ...

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """Leading axes: independent systems."""
        ...

    @property
    def negentropy(self) -> FloatArray:
        """Sum of p ln p over next states: [*shape, S, A]; the same for every goal."""
        ...

    def plan(self, now: FloatArray, policy: FloatArray, log_gamma: FloatArray) -> None:
        """Fill in the rules [kept, batch, S * A] of the first epochs, and ln gamma [H + 1, batch, S], from the end on.

        Theorem 1, given ``now``, ln ideal.rule - alpha: [1 or H, batch, S * A]. The batch is of as many goals, or of
        each system, or of systems within goals.
        """
        ...

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        ...

    def expect_each(self, values: FloatArray) -> FloatArray:
        """The same for values that depend on state and action too: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        ...

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        ...
