"""What a rule advises in each state, for tables: the best action, the runner-up, the support.

A rule of forty actions has forty columns, which nobody reads. What a reader wants of a state is the
most probable action, how probable it is, what comes second, and how often that was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, group_sum
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import EpisodeSummary
from pastwise.data.space import Label, Space, key_of

WEAK = 1.0
"""A rule that rests on less total similarity than one perfectly similar record is weak."""

ALMOST_EQUAL = 1e-9
"""Probabilities that differ by less are equal, up to rounding."""


@dataclass(frozen=True, eq=False)
class Basis:
    """What a rule was learned from, as far as tables show it.

    Attributes
    ----------
    counts : TransitionCounts
        All tasks as one log.
    episodes : EpisodeSummary, optional
        What is known of the log's episodes.
    by_similarity : bool
        Whether the similarity of records carries the rule, as with TL.
    values : [1 or S, A], optional
        Value of each action, where the method plans: it says which action comes second where the
        first has all of the probability.
    allowed : [1 or S, A], optional
        Which actions the goal allows.
    """

    counts: TransitionCounts
    episodes: EpisodeSummary | None = None
    by_similarity: bool = True
    values: FloatArray | None = None
    allowed: BoolArray | None = None

    def forbidden_at(self, state: int) -> list[int]:
        """Actions that the goal forbids in a state."""
        if self.allowed is None:
            return []
        allowed = self.allowed[state if len(self.allowed) > 1 else 0]
        forbidden: list[int] = np.flatnonzero(~allowed).tolist()
        return forbidden

    def values_at(self, state: int) -> FloatArray | None:
        """Values of the actions in a state, where they are known: [A]."""
        if self.values is None:
            return None
        return np.asarray(self.values[state if len(self.values) > 1 else 0])


@dataclass(frozen=True)
class Advice:
    """What a rule advises in one state, and what that rests on.

    Attributes
    ----------
    state, action : labels
        The state, and the most probable action there; the first of several.
    probability : float
        Probability of that action.
    num_best : int
        Number of actions that have this probability.
    runner_up : label, optional
        The second most probable action; among those of probability 0, the one of the highest value.
        None where neither says which one comes second.
    runner_up_probability : float
    similarity : float
        Total similarity of the records of the state.
    is_end : bool
        Whether episodes end in the state, so that nothing is decided there.
    is_weak : bool
        Whether the advice rests on too little.
    records, records_with_action : int, optional
        Number of records of the state, and of those with the action; None where not known.
    episodes, episodes_with_action : int, optional
        Number of episodes that they come from; None where the log has none.
    """

    state: Label
    action: Label
    probability: float
    num_best: int
    runner_up: Label | None
    runner_up_probability: float
    similarity: float
    is_end: bool
    is_weak: bool
    records: int | None = None
    records_with_action: int | None = None
    episodes: int | None = None
    episodes_with_action: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values; labels by their keys."""
        runner_up = None if self.runner_up is None else key_of(self.runner_up)
        return {
            "state": key_of(self.state),
            "action": key_of(self.action),
            "probability": self.probability,
            "num_best": self.num_best,
            "runner_up": runner_up,
            "runner_up_probability": self.runner_up_probability,
            "similarity": self.similarity,
            "is_end": self.is_end,
            "is_weak": self.is_weak,
            "records": self.records,
            "records_with_action": self.records_with_action,
            "episodes": self.episodes,
            "episodes_with_action": self.episodes_with_action,
        }


def most_visited(num_states: int, basis: Basis | None, first: int | None = None) -> list[int]:
    """Indices of the states by number of records, the most visited first.

    Where nothing is known of the records, the states are in their own order; where episodes end in
    a state, it comes after those in which something is decided.
    """
    if basis is None:
        return list(range(num_states))[:first]
    records = _departures(basis.counts)
    order = np.argsort(-records, kind="stable")
    is_end = np.isin(order, basis.counts.terminal)
    by_visits: list[int] = np.concatenate([order[~is_end], order[is_end]]).tolist()
    return by_visits[:first]


def _departures(counts: TransitionCounts) -> FloatArray:
    """Number of records that leave each state: [S]."""
    return group_sum(counts.state, counts.records, len(counts.states))


def advice_at(
    state: int,
    states: Space,
    actions: Space,
    row: FloatArray,
    similarity: float,
    basis: Basis | None,
) -> Advice:
    """What a rule advises in one state.

    Parameters
    ----------
    state : int
        Its index.
    row : [A]
        The rule of the state.
    similarity : float
        Total similarity that the rule of the state rests on.
    """
    best = int(row.argmax())
    num_best = int((row >= row[best] - ALMOST_EQUAL).sum())
    second = _second(row, best, None if basis is None else basis.values_at(state))

    # Records and episodes of the state, and of the best action there.
    records = None
    records_with_action = None
    episodes = None
    episodes_with_action = None
    is_end = False
    is_weak = similarity < WEAK
    if basis is not None:
        first, end = np.searchsorted(basis.counts.state, [state, state + 1])
        records_of_state = basis.counts.records[first:end]
        records = int(records_of_state.sum())
        has_action = basis.counts.action[first:end] == best
        records_with_action = int(records_of_state[has_action].sum())
        is_end = state in basis.counts.terminal
        is_weak = not is_end and (is_weak if basis.by_similarity else records == 0)
        visits = None if basis.episodes is None else basis.episodes.visits
        if visits is not None:
            episodes = int(visits.by_state[state])
            episodes_with_action = int(visits.of_state(state)[best])

    return Advice(
        state=states.labels[state],
        action=actions.labels[best],
        probability=float(row[best]),
        num_best=num_best,
        runner_up=None if second is None else actions.labels[second],
        runner_up_probability=0.0 if second is None else float(row[second]),
        similarity=similarity,
        is_end=is_end,
        is_weak=is_weak,
        records=records,
        records_with_action=records_with_action,
        episodes=episodes,
        episodes_with_action=episodes_with_action,
    )


def _second(row: FloatArray, best: int, values: FloatArray | None) -> int | None:
    """The action that comes second, by probability and then by value; None if neither says so."""
    others = row.copy()
    others[best] = 0.0
    if others.any():
        return int(others.argmax())
    if values is None or len(row) < 2:
        return None
    others = np.where(np.isfinite(values), values, -np.inf)
    others[best] = -np.inf
    second = int(others.argmax())
    return second if np.isfinite(others[second]) else None
