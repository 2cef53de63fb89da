"""Records of a log in their order, by index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray, frozen, where_first


class Transitions(NamedTuple):
    """Records in their order; each field is [..., records], the leading axes being independent logs."""

    state: IntArray
    action: IntArray
    next_state: IntArray

    def last(self, number: int) -> Transitions:
        """The last ``number`` records, or all where there are fewer."""
        start = max(0, self.state.shape[-1] - number)
        return Transitions(*(field[..., start:] for field in self))


@dataclass(frozen=True, eq=False)
class Episodes:
    """Records of episodes, sorted by episode and step: each field is [N].

    Attributes
    ----------
    state, action, next_state
        Indices; the next state of a record is the state of the next one of its episode.
    episode
        0, ..., E - 1, ascending.
    step
        0, 1, ... in each episode.
    propensity, optional
        Probability with which the logged action was taken, in (0, 1].

    Examples
    --------
    >>> walk = np.array([0, 1, 0])
    >>> episodes = Episodes(walk, np.array([1, 1, 0]), np.array([1, 0, 0]), np.array([0, 0, 1]), np.array([0, 1, 0]))
    >>> episodes.number, episodes.length.tolist()
    (2, [2, 1])
    """

    state: IntArray
    action: IntArray
    next_state: IntArray
    episode: IntArray
    step: IntArray
    propensity: FloatArray | None = None

    def __post_init__(self) -> None:
        columns = {name: values for name, values in vars(self).items() if values is not None}
        shapes = {values.shape for values in columns.values()}
        if len(shapes) > 1 or len(next(iter(shapes))) != 1:
            given = ", ".join(f"{name} {values.shape}" for name, values in columns.items())
            raise ValueError(f"the columns of episodes must be of one length: {given}")
        if len(self.state) == 0:
            raise ValueError("there are no episodes")
        for name, values in columns.items():
            object.__setattr__(self, name, frozen(values))
            if name != "propensity":
                self._refuse(values < 0, f"has a negative {name}")
        starts = np.diff(self.episode, prepend=-1)
        expected = np.where(starts == 0, np.roll(self.step, 1) + 1, 0)
        self._refuse(
            (starts < 0) | (starts > 1) | (self.step != expected),
            "is out of order: sort by episode and step",
        )
        broken = (starts == 0) & (np.roll(self.next_state, 1) != self.state)
        self._refuse(broken, "does not start where the record before it led to")
        if self.propensity is not None:
            bad = ~((self.propensity > 0) & (self.propensity <= 1))
            value = self.propensity[bad.argmax()]
            self._refuse(
                bad,
                f"has the propensity {value}; a probability that an action was taken lies in (0, 1]",
            )

    def _refuse(self, bad: BoolArray, why: str) -> None:
        if bad.any():
            (record,) = where_first(bad)
            raise ValueError(
                f"record {record} (episode {self.episode[record]}, step {self.step[record]}) {why}"
            )

    def scores(self, score: FloatArray) -> FloatArray:
        """Score of each record: [S], or broadcastable to [S, A, S], -> [N]."""
        if score.ndim == 1:
            return np.asarray(score[self.next_state])
        index = (self.state, self.action, self.next_state)
        return np.asarray(
            score[tuple(np.minimum(i, n - 1) for i, n in zip(index, score.shape, strict=True))]
        )

    @property
    def number(self) -> int:
        """E."""
        return int(self.episode[-1]) + 1

    @property
    def length(self) -> IntArray:
        """Number of records of each episode: [E]."""
        return np.bincount(self.episode)

    def table(self, values: FloatArray, horizon: int) -> FloatArray:
        """The values of the first ``horizon`` steps: [N] -> [E, horizon]; zero after an episode's end."""
        table, kept = np.zeros((self.number, horizon)), self.step < horizon
        table[self.episode[kept], self.step[kept]] = values[kept]
        return table


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States s_0, ..., s_N [..., N + 1] and the actions between them [..., N]."""

    states: IntArray
    actions: IntArray

    @property
    def transitions(self) -> Transitions:
        """The trajectory as records: fields [..., N]."""
        return Transitions(self.states[..., :-1], self.actions, self.states[..., 1:])
