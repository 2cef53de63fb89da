"""A goal as something to be collected: how much each transition is wanted, and what comes after an end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.goals.ideal import IdealModel

FORBIDDEN = float(np.log(1e-5))
"""How far below the least wanted next state a forbidden one lies, as ln ideal."""


@dataclass(frozen=True, eq=False)
class Desire:
    """How much a transition is wanted: ln ideal, scaled to a range of 1, as a part of the next state and of the action.

    Attributes
    ----------
    following : [1 or S, 1 or A, S]
        Of the next state: from 0 to 1, or with the zero of a reward where episodes end.
    doing : [1 or S, A]
        Of the action: 0 for the best.
    ends : [number]
        Terminal states.
    after : [number]
        What an epoch after each of these ends is worth. Nothing, where a reward is collected or only ends are wanted;
        otherwise as much as being there.
    """

    following: FloatArray
    doing: FloatArray
    ends: IntArray
    after: FloatArray

    @classmethod
    def of(cls, ideal: IdealModel, ends: IntArray) -> Desire:
        """From an ideal without leading axes."""
        if ideal.log_transition.ndim > 3 or ideal.log_rule.ndim > 2:
            raise ValueError("TL_foresight takes one goal at a time")
        following, doing = _from_best(ideal.log_transition), ideal.log_rule
        if ideal.normalised:
            doing = _from_best(*np.broadcast_arrays(ideal.log_rule, ideal.allowed))
        scale = -(following.min() + doing.min())
        if scale == 0:  # everything is wanted alike
            return cls(np.zeros(following.shape), np.zeros(doing.shape), ends, np.zeros(len(ends)))
        wanted = np.flatnonzero((following > following.min()).any(axis=(0, 1)))
        zero = scale if not len(ends) else -following.min() if ideal.normalised else ideal.log_scale
        following = (following + zero) / scale
        until_end = not ideal.normalised or bool(np.isin(wanted, ends).all())
        after = np.zeros(len(ends)) if until_end else following[..., ends].max(axis=(0, 1))
        return cls(following, doing / scale, ends, after)

    def of_log(self, counts: TransitionCounts) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Mean desire of the records, half a record added either way; their number; whether any served: [...] each."""
        s, a = counts.state, counts.action
        lines, columns = (
            np.minimum(i, n - 1) for i, n in zip((s, a), self.following.shape[:2], strict=True)
        )
        wanted = (
            self.following[lines, columns, counts.next_state]
            + self.doing[np.minimum(s, len(self.doing) - 1), a]
        )
        least = self.following.min() + self.doing.min()
        systems, columns_of = (
            int(np.prod(counts.shape)),
            (counts.weight * wanted, counts.weight, wanted > least),
        )
        total, number, served = (
            group_sum(counts.batch, v, systems).reshape(counts.shape) for v in columns_of
        )
        return (total + 0.5) / (number + 1), number, served > 0


def _from_best(log_values: FloatArray, allowed: BoolArray | bool = True) -> FloatArray:
    """Logarithms less the largest; zero is `FORBIDDEN` below the least, and what is not allowed is the least."""
    possible = ~np.isneginf(log_values)
    below = np.where(possible, log_values, 0.0) - log_values[possible & allowed].max()
    below = np.where(possible, below, below[possible & allowed].min() + FORBIDDEN)
    return np.asarray(np.where(allowed, below, below[np.broadcast_to(allowed, below.shape)].min()))
