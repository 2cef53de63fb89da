"""Records of a log in their order, by index: as transitions, as episodes, as a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pastwise._numerics.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    entries,
    frozen,
    where_first,
)
from pastwise.errors import LogError, ParameterError


class Transitions(NamedTuple):
    """Records in their order; each field is [..., records], leading axes are independent logs."""

    state: IntArray
    action: IntArray
    next_state: IntArray

    def last(self, number: int) -> Transitions:
        """The last ``number`` records, or all where there are fewer."""
        num_records = self.state.shape[-1]
        start = max(0, num_records - number)
        return Transitions(
            self.state[..., start:], self.action[..., start:], self.next_state[..., start:]
        )


@dataclass(frozen=True, eq=False)
class Episodes:
    """N records of E episodes, sorted by episode and step.

    Attributes
    ----------
    state, action, next_state : [N]
        Indices. The next state of a record is the state of the following one in its episode.
    episode : [N]
        0, ..., E - 1, ascending.
    step : [N]
        0, 1, ... in each episode.
    propensity : [N], optional
        Probability with which the logged action was taken, in (0, 1].
    unit : [N], optional
        What each record was sampled with, such as the person or the day of the log, where that was
        split into several episodes. By default every episode is a unit of its own.
    reward : [N], optional
        Reward of each record, where the log has rewards.

    Examples
    --------
    >>> episodes = Episodes(
    ...     state=np.array([0, 1, 0]),
    ...     action=np.array([1, 1, 0]),
    ...     next_state=np.array([1, 0, 0]),
    ...     episode=np.array([0, 0, 1]),
    ...     step=np.array([0, 1, 0]),
    ... )
    >>> episodes.number, episodes.length.tolist()
    (2, [2, 1])
    """

    state: IntArray
    action: IntArray
    next_state: IntArray
    episode: IntArray
    step: IntArray
    propensity: FloatArray | None = None
    unit: IntArray | None = None
    reward: FloatArray | None = None

    def __post_init__(self) -> None:
        # Columns: of one length, not empty, without negative indices.
        columns = {name: values for name, values in vars(self).items() if values is not None}
        shapes = {values.shape for values in columns.values()}
        if len(shapes) > 1 or self.state.ndim != 1:
            given = ", ".join(f"{name} {values.shape}" for name, values in columns.items())
            raise ParameterError(f"the columns of episodes must be of one length: {given}")
        if len(self.state) == 0:
            raise LogError("there are no episodes: the log has no usable record")
        for name, values in columns.items():
            object.__setattr__(self, name, frozen(values))
            if name not in ("propensity", "reward"):
                self._refuse(values < 0, f"has a negative {name}")

        # Order: each episode counts its steps from 0, each record starts where the last one led.
        episode_change = np.diff(self.episode, prepend=-1)
        continues = episode_change == 0
        expected_step = np.where(continues, np.roll(self.step, 1) + 1, 0)
        is_out_of_order = (episode_change < 0) | (episode_change > 1) | (self.step != expected_step)
        self._refuse(is_out_of_order, "is out of order: sort by episode and step")
        is_broken = continues & (np.roll(self.next_state, 1) != self.state)
        self._refuse(is_broken, "does not start where the record before it led to")
        if self.unit is not None:
            is_mixed = continues & (np.roll(self.unit, 1) != self.unit)
            self._refuse(is_mixed, "is of another unit than the record before it")

        # Propensities are probabilities of actions that were taken.
        if self.propensity is not None:
            is_bad = ~((self.propensity > 0) & (self.propensity <= 1))
            value = self.propensity[is_bad.argmax()]
            self._refuse(
                is_bad,
                f"has the propensity {value}; "
                "the probability of an action that was taken lies in (0, 1]",
            )

    def _refuse(self, is_bad: BoolArray, reason: str) -> None:
        """Raise an error that names the first bad record, if there is one."""
        if is_bad.any():
            (record,) = where_first(is_bad)
            episode = self.episode[record]
            step = self.step[record]
            raise LogError(f"record {record} (episode {episode}, step {step}) {reason}")

    @property
    def number(self) -> int:
        """Number of episodes, E."""
        return int(self.episode[-1]) + 1

    @property
    def length(self) -> IntArray:
        """Number of records of each episode: [E]."""
        return np.bincount(self.episode)

    @property
    def unit_of_episode(self) -> IntArray:
        """Unit of each episode, numbered from 0 without gaps: [E]."""
        if self.unit is None:
            return np.arange(self.number)
        _, unit = np.unique(self.unit[self.step == 0], return_inverse=True)
        return np.asarray(unit)

    def where(self, chosen: BoolArray) -> Episodes:
        """Some of the episodes, by a mask [E]; they are numbered anew."""
        is_kept = chosen[self.episode]
        number = np.cumsum(chosen) - 1
        return Episodes(
            state=self.state[is_kept],
            action=self.action[is_kept],
            next_state=self.next_state[is_kept],
            episode=number[self.episode[is_kept]],
            step=self.step[is_kept],
            propensity=None if self.propensity is None else self.propensity[is_kept],
            unit=None if self.unit is None else self.unit[is_kept],
            reward=None if self.reward is None else self.reward[is_kept],
        )

    def scores(self, score: FloatArray) -> FloatArray:
        """Score of each record: [S], or broadcastable to [S, A, S], -> [N]."""
        if score.ndim == 1:
            return np.asarray(score[self.next_state])
        return entries(score, self.state, self.action, self.next_state)

    def gains(self, score: FloatArray) -> FloatArray:
        """Reward of each record, where the episodes have rewards; otherwise its score: [N]."""
        return self.scores(score) if self.reward is None else self.reward

    def table(self, values: FloatArray, horizon: int) -> FloatArray:
        """Values of the first ``horizon`` steps: [N] -> [E, horizon]; 0 after an episode's end."""
        table = np.zeros((self.number, horizon))
        is_kept = self.step < horizon
        table[self.episode[is_kept], self.step[is_kept]] = values[is_kept]
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
