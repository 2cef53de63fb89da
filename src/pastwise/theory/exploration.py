"""Exploration: when to deviate from the learned rule, and how.

Exploration compensates for a lack of useful data, and the similarities of the last records show
it. In each epoch, with the learned rule at hand,

    if mean of the last `window` similarities < `threshold`:     (the gate is open)
        with probability `epsilon`: use the uniform rule
        otherwise:                  use the learned rule
    else:
        use the learned rule
    act, observe the next state, compute the similarity of the new record.

`Gate` and its memory `Window` are the outer condition, `EpsilonGreedy` is the inner one. `UCB` and
`PosteriorSampling` are other ways to explore while the gate is open. The loop around them is the
method TL_explore (package `methods`).

Paper: Algorithm 1 [alg:alg_exploration].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import gammaincinv

from pastwise._numerics.arrays import BoolArray, FloatArray, normalise
from pastwise._numerics.checks import require_number, require_whole_number
from pastwise._numerics.streams import Random


class Window:
    """Similarities of the last ``size`` records: the memory of a gate, one for each system."""

    def __init__(self, size: int, recent: FloatArray) -> None:
        """Start with the similarities of past records, oldest first: [..., records]."""
        start = max(0, recent.shape[-1] - size)
        recent = recent[..., start:]
        self._filled = recent.shape[-1]
        self._next = self._filled % size
        self._values = np.zeros((*recent.shape[:-1], size))
        self._values[..., : self._filled] = recent

    def push(self, similarity: FloatArray) -> None:
        """Add the newest record [...]; the oldest leaves."""
        size = self._values.shape[-1]
        self._values[..., self._next] = similarity
        self._next = (self._next + 1) % size
        self._filled = min(self._filled + 1, size)

    def mean(self) -> FloatArray:
        """Mean similarity [...]; zero without records."""
        return np.asarray(self._values.sum(axis=-1) / max(self._filled, 1))


@dataclass(frozen=True)
class Gate:
    """Open while the mean similarity of the last records is below a threshold.

    Paper: the outer condition of Algorithm 1 [alg:alg_exploration], with q = ``threshold`` and
    m = ``window``.

    Parameters
    ----------
    threshold : float
        In [0, 1]; 0.4 is the value of the paper's experiments.
    window : int
        Number of records; 10 is the value of the paper's experiments.
    """

    threshold: float = 0.4
    window: int = 10

    def __post_init__(self) -> None:
        require_whole_number("the window", self.window, 1, 1_000_000)
        require_number("the threshold", self.threshold, 0, 1)

    def start(self, recent: FloatArray) -> Window:
        """Memory that starts with the similarities of the log's last records: [..., records]."""
        return Window(self.window, recent)

    def is_open(self, window: Window) -> BoolArray:
        """Whether to explore: [...]. Without any record, the gate is open."""
        return np.asarray(window.mean() < self.threshold)


@dataclass(frozen=True, eq=False)
class Here:
    """What is known about the current state of each system.

    Attributes
    ----------
    learned, uniform : [..., A]
        The learned rule, and the rule that gives every allowed action the same probability.
    evidence : [..., A]
        Total similarity of the records of each action, including the prior.
    records : [..., A]
        Number of records of each action.
    """

    learned: FloatArray
    uniform: FloatArray
    evidence: FloatArray
    records: FloatArray


class Explorer(Protocol):
    """A way to act while the gate is open."""

    def expected_rule(self, here: Here) -> FloatArray:
        """The mean, over the explorer's random numbers, of the rule to act by: [..., A]."""
        ...

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]."""
        ...


@dataclass(frozen=True)
class EpsilonGreedy:
    """Use the uniform rule with probability epsilon, and otherwise the learned rule.

    Paper: the inner condition of Algorithm 1 [alg:alg_exploration].

    Parameters
    ----------
    epsilon : float
        In [0, 1]; 0.3 is the value of the paper's experiments.
    """

    epsilon: float = 0.3

    def __post_init__(self) -> None:
        require_number("epsilon", self.epsilon, 0, 1)

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]."""
        explores = rng.random(here.learned.shape[:-1]) < self.epsilon
        return np.where(explores[..., None], here.uniform, here.learned)

    def expected_rule(self, here: Here) -> FloatArray:
        """The mixture of both rules: [..., A]."""
        return (1 - self.epsilon) * here.learned + self.epsilon * here.uniform


@dataclass(frozen=True)
class UCB:
    """Take the action with the largest upper confidence bound of its mean similarity.

    The bound is mean + width * sqrt(ln (records of the state) / records of the action). An action
    without records comes first.

    Parameters
    ----------
    width : float
        At least 0; 0.5 is the largest standard deviation that a similarity in [0, 1] can have.
    """

    width: float = 0.5

    def __post_init__(self) -> None:
        require_number("the width", self.width, 0, 1e12)

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]; equals share it."""
        return self._rule(here)

    def _rule(self, here: Here) -> FloatArray:
        tried = here.records > 0
        records = np.where(tried, here.records, 1.0)
        state_records = np.maximum(here.records.sum(axis=-1, keepdims=True), 1.0)
        margin = self.width * np.sqrt(np.log(state_records) / records)
        bound = np.where(tried, here.evidence / records + margin, np.inf)

        # The best of the allowed actions.
        bound = np.where(here.uniform > 0, bound, -np.inf)
        best = bound == bound.max(axis=-1, keepdims=True)
        return normalise(best.astype(np.float64))

    def expected_rule(self, here: Here) -> FloatArray:
        """The rule itself, for nothing in it is random: [..., A]."""
        return self._rule(here)


@dataclass(frozen=True)
class PosteriorSampling:
    """Act by a rule sampled from the Dirichlet posterior of the learned rule."""

    def __call__(self, here: Here, rng: Random) -> FloatArray:
        """The rule to act by: [..., A]."""
        columns = [rng.random(here.learned.shape[:-1]) for _ in range(here.learned.shape[-1])]
        has_evidence = here.evidence > 0
        shape = np.where(has_evidence, here.evidence, 1.0)
        gamma = gammaincinv(shape, np.stack(columns, axis=-1))
        sampled = np.where(has_evidence, gamma, 0.0)
        empty = sampled.sum(axis=-1, keepdims=True) == 0  # all underflowed: so little is known
        return normalise(np.where(empty, here.learned, sampled))

    def expected_rule(self, here: Here) -> FloatArray:
        """The mean of the Dirichlet posterior, the learned rule: [..., A]."""
        return here.learned
