"""When to explore, and how.

Exploration is for want of good data, and the similarities of the last records tell: while their mean over a window is
below a threshold the gate is open. Then, in the paper, the uniform rule is used with probability epsilon; `UCB` and
`PosteriorSampling` are other ways to explore.

Paper: Section III-C, Algorithm 1 [alg:alg_exploration].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaincinv

from pastwise._numerics.arrays import BoolArray, FloatArray, normalise
from pastwise._numerics.streams import Random


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


@dataclass(frozen=True, eq=False)
class Here:
    """What is known of the current states when it is time to explore.

    Attributes
    ----------
    learned, uniform : [..., A]
        The learned rule, and every allowed action alike.
    evidence, records : [..., A]
        Total similarity, with the prior's, and number of the records of each action.
    """

    learned: FloatArray
    uniform: FloatArray
    evidence: FloatArray
    records: FloatArray


class Explorer(Protocol):
    """A way to act while the gate is open."""

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]."""
        ...


@dataclass(frozen=True)
class EpsilonGreedy:
    """With probability epsilon act by the uniform rule, otherwise by the learned one.

    Paper: the inner condition of Algorithm 1 [alg:alg_exploration].
    """

    epsilon: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], not {self.epsilon}")

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]."""
        toss = rng.random(here.learned.shape[:-1]) < self.epsilon
        return np.where(toss[..., None], here.uniform, here.learned)


@dataclass(frozen=True)
class UCB:
    """Take the action of the largest mean similarity plus ``width * sqrt(ln records of the state / records)``.

    An action that was never tried comes first.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        if not self.width >= 0:
            raise ValueError(f"the width must be at least 0, not {self.width}")

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]; equals share it."""
        tried = here.records > 0
        records = np.where(tried, here.records, 1.0)
        known = np.log(np.maximum(here.records.sum(axis=-1, keepdims=True), 1.0))
        bound = np.where(
            tried, here.evidence / records + self.width * np.sqrt(known / records), np.inf
        )
        bound = np.where(here.uniform > 0, bound, -np.inf)
        return normalise((bound == bound.max(axis=-1, keepdims=True)).astype(np.float64))


@dataclass(frozen=True)
class PosteriorSampling:
    """Act by a rule drawn from the Dirichlet posterior of the learned one."""

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]."""
        columns = [rng.random(here.learned.shape[:-1]) for _ in range(here.learned.shape[-1])]
        gamma = gammaincinv(
            np.where(here.evidence > 0, here.evidence, 1.0), np.stack(columns, axis=-1)
        )
        drawn = np.where(here.evidence > 0, gamma, 0.0)
        empty = drawn.sum(axis=-1, keepdims=True) == 0  # all underflowed: so little is known
        return normalise(np.where(empty, here.learned, drawn))
