"""When to explore, and how.

Exploration is for want of good data, and the similarities of the last records tell: while their mean over a window is
below a threshold the gate is open, and the uniform rule is used with probability epsilon.

Paper: Section III-C, Algorithm 1 [alg:alg_exploration].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pastwise.numerics import BoolArray, FloatArray


class Window:
    """The similarities of the last ``size`` records: memory of the gate, one window for each batch element."""

    def __init__(self, size: int, recent: FloatArray) -> None:
        """Start on the similarities of past records, oldest first: [..., records]."""
        recent = recent[..., max(0, recent.shape[-1] - size) :]
        self._filled = recent.shape[-1]
        self._next = self._filled % size
        self._values = np.zeros((*recent.shape[:-1], size))
        self._values[..., : self._filled] = recent

    def push(self, similarity: FloatArray) -> None:
        """Take in the newest record; the oldest leaves."""
        size = self._values.shape[-1]
        self._values[..., self._next] = similarity
        self._next = (self._next + 1) % size
        self._filled = min(self._filled + 1, size)

    def mean(self) -> FloatArray:
        """Mean similarity [...]; zero where there is no record."""
        return np.asarray(self._values.sum(axis=-1) / max(self._filled, 1))


@dataclass(frozen=True)
class Gate:
    """Open while the last ``window`` records served the goal, on average, less than ``threshold``.

    Paper: the outer condition of Algorithm 1 [alg:alg_exploration], with q = threshold and m = window.
    """

    threshold: float = 0.4
    window: int = 10

    def __post_init__(self) -> None:
        if self.window < 1:
            raise ValueError(f"the window must hold at least one record, not {self.window}")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"the threshold must lie in [0, 1], not {self.threshold}")

    def start(self, recent: FloatArray) -> Window:
        """Memory that starts on the similarities of the past log's last records: [..., records]."""
        return Window(self.window, recent)

    def is_open(self, window: Window) -> BoolArray:
        """Whether to explore: [...]. Without any record it is open."""
        return np.asarray(window.mean() < self.threshold)


@dataclass(frozen=True)
class EpsilonGreedy:
    """With probability epsilon act by the uniform rule, otherwise by the learned one.

    Paper: the inner condition of Algorithm 1 [alg:alg_exploration].
    """

    epsilon: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], not {self.epsilon}")

    def __call__(self, learned: FloatArray, uniform: FloatArray, explore: BoolArray, coin: FloatArray) -> FloatArray:
        """Rows [..., A] to act by; ``explore`` and ``coin`` (uniform numbers) are [...]."""
        toss = explore & (coin < self.epsilon)
        return np.where(toss[..., None], uniform, learned)
