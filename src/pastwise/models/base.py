"""Transition models: what a design needs to know of a system, independent of how it is stored.

Three models implement one protocol. A *dense* one is the tensor p(next_state | state, action). A
*sparse* one keeps its non-zeros. A *learned* one is the mean of a Dirichlet posterior,
(count + background) / total: sparse counts plus a constant, so the dense tensor is never needed.
``-inf`` is a legal value everywhere; ``0 * (-inf)`` counts as 0.
"""

from __future__ import annotations

from typing import Protocol

from pastwise._numerics.arrays import FloatArray, IntArray


class TransitionModel(Protocol):
    """Expectations of functions of the next state, and the negentropy of each row."""

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
        """Run the backward recursion of Theorem 1 and write its results in place.

        The batch consists of goals, of systems, or of systems within goals.

        Parameters
        ----------
        now : [1 or H, batch, S * A]
            ln ideal.rule - alpha.
        policy : [kept, batch, S * A]
            Rules of the first epochs. Written to.
        log_gamma : [H + 1, batch, S]
            Written to.
        """
        ...

    def expect(self, values: FloatArray) -> FloatArray:
        """E[values(next_state) | state, action]: [..., S] -> [..., S, A]."""
        ...

    def expect_each(self, values: FloatArray) -> FloatArray:
        """E[values(state, action, next_state)]: [..., 1 or S, 1 or A, S] -> [..., S, A]."""
        ...

    def row(self, state: IntArray, action: IntArray) -> FloatArray:
        """p(. | state, action) for one state and action in each system: [*shape, S]."""
        ...
