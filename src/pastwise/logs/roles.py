"""Which columns of a log probably hold the state, the action, the episode and the time.

Names and content are scored, and the scores add up:

- A next state has the name of another column and a mark, such as ``next_room``, or holds the value
  that the other column has in the next row.
- An episode repeats in neighbouring rows. A time increases within it and names its records: no two
  of them have the same. Both are chosen together, so a ``day`` may be either.
- States and actions have few different values that change within episodes. What follows depends on
  the action: the information that the action has about the next state, given the state, decides
  between columns whose names say nothing.

The weights below were chosen on the thermostat of the examples and on synthetic logs with made-up
names; the tests use other tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pastwise._numerics.arrays import BoolArray, FloatArray, IntArray
from pastwise.logs.values import Values

WORDS = {
    "episode": "episode ep id case patient subject user session trajectory traj run person "
    "customer trip nr individual participant machine device game rollout stay student pupil "
    "household firm client member player animal unit sequence key concept:name pid sid uid",
    "time": "time t date timestamp datetime step hour day year month week minute second period "
    "epoch visit when round wave quarter seq turn tick at moment trial occasion",
    "state": "state s status obs observation room level condition stage symptom health phase mode "
    "position location cell grade situation context severity temperature temp "
    "mood pain activity response score",
    "action": "action act a did do decision treatment treat trt drug dose medication med therapy "
    "intervention control choice arm offer ad command move order assigned assignment resource "
    "given prescribed treated operator price channel did_what u",
    "next": "next then following after new subsequent successor later n",
    "outcome": "outcome result reward response success click clicked converted conversion died "
    "survived alive recovered",
    "none": "rownames rowname row index unnamed propensity probability prob weight done reward "
    "return comment note notes",
}
"""Words in names of columns, by role; ``none`` are those of columns with other roles."""

WORDS_OF_ROLE = {role: frozenset(words.split()) for role, words in WORDS.items()}

NAMED = 1.5
"""Score of a name that is a word of the role; a part of the name has two thirds of it."""

MOST_CANDIDATES = 8
"""Columns that are compared in pairs for a role: those with the best scores of their own."""

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


@dataclass(frozen=True)
class Order:
    """Columns of episode and time, and which rows follow each other by them.

    Attributes
    ----------
    score : float
    before, after : [pairs]
        Rows that follow each other within an episode.
    margin : float
        How far the score is ahead of that of the next best columns.
    """

    episode: Values | None
    time: Values | None
    score: float
    before: IntArray
    after: IntArray
    margin: float


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
    neighbours = _neighbours(blocks)

    # Pairs of a column and its next values, then the order of records.
    pair = _next_state(usable, neighbours)
    taken = [] if pair is None else [pair.state, pair.next_state]
    order = _order(_without(usable, taken), neighbours, blocks)
    taken += [column for column in (order.episode, order.time) if column is not None]
    counters = [column for column in usable if _is_counter(column, neighbours)]
    others = _without(usable, [*taken, *counters])

    # States and actions.
    decision = _decision(others, order, pair)
    return _guess_of(decision, order, pair)


def _without(columns: Iterable[Values], taken: Sequence[Values]) -> list[Values]:
    names = {column.name for column in taken}
    return [column for column in columns if column.name not in names]


def _neighbours(blocks: Sequence[int]) -> IntArray:
    """Rows whose next row belongs to the same block."""
    rows = np.arange(sum(blocks))
    ends = np.cumsum(blocks) - 1
    return np.setdiff1d(rows, ends)


# Names.


def words_of(name: str) -> list[str]:
    """The words that a name consists of, in lower case.

    >>> words_of("nextRoom_2"), words_of("case:concept:name")
    (['next', 'room', '2'], ['case', 'concept', 'name'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    spaced = re.sub(r"(?<=[A-Za-z])(?=\d)", " ", spaced)
    return [word.lower() for word in re.split(r"[^0-9A-Za-z']+", spaced) if word]


def name_score(name: str, role: str) -> float:
    """How much a name speaks for a role."""
    known = WORDS_OF_ROLE[role]
    words = words_of(name)
    if name.lower() in known or (len(words) == 1 and words[0] in known):
        return NAMED
    long_words = [word for word in words if len(word) > 1]
    if any(word in known for word in long_words):
        return NAMED * 2 / 3
    # Words that are written together, such as patientid and timestamps.
    joined = "".join(words)
    long_known = [word for word in known if len(word) >= 4]
    if any(joined.startswith(word) or joined.endswith(word) for word in long_known):
        return NAMED / 2
    if role == "episode" and joined.endswith("id"):
        return NAMED * 2 / 3
    return 0.0


# The next state.


@dataclass(frozen=True)
class NextState:
    """A column and the one that holds its next values."""

    state: Values
    next_state: Values
    score: float
    reason: str


def _next_state(columns: Sequence[Values], neighbours: IntArray) -> NextState | None:
    """The pair of columns that are most likely a state and the next one."""
    found = []
    for candidate in columns:
        if candidate.kind == "time" or candidate.distinct < 2:
            continue
        mark = name_score(candidate.name, "next") > 0 or candidate.name.endswith(("'", "_"))
        for column in columns:
            if column is candidate or column.kind != candidate.kind or column.distinct < 2:
                continue
            if _is_counter(column, neighbours):
                continue
            scored = _score_next(column, candidate, mark, neighbours)
            if scored is not None:
                found.append(scored)
    return max(found, key=lambda each: each.score, default=None)


def _score_next(
    column: Values, candidate: Values, is_marked: bool, neighbours: IntArray
) -> NextState | None:
    """How likely a column holds the next values of another; None if it is not."""
    shared = _shared_values(column, candidate)
    if shared < 0.5:
        return None
    names = set(words_of(column.name))
    rest = [word for word in words_of(candidate.name) if word not in WORDS_OF_ROLE["next"]]
    has_same_name = is_marked and bool(names) and set(rest) == names
    followed = _followed_share(column, candidate, neighbours)
    chance = _chance_share(column)
    is_followed = followed > 0.5 + 0.5 * chance and column.distinct > 1
    changes = float(np.mean(_texts_differ(column, candidate)))
    if changes == 0:
        return None
    score = shared + 2.0 * has_same_name + 0.5 * is_marked + 1.5 * is_followed
    if not (has_same_name or (is_marked and shared > 0.8) or (is_followed and shared > 0.8)):
        return None
    if is_followed and not is_marked and name_score(candidate.name, "state") > 0:
        score -= 1.0
    reason = f"{candidate.name} has the values of {column.name}"
    if is_followed:
        reason += " in the next row"
    return NextState(column, candidate, score, reason)


def _shared_values(first: Values, second: Values) -> float:
    """Share of the different values of the column with fewer that both have."""
    one = set(first.labels)
    other = set(second.labels)
    return len(one & other) / max(min(len(one), len(other)), 1)


def _common_codes(first: Values, second: Values) -> tuple[IntArray, IntArray]:
    """Codes of two columns by which equal texts are equal; -1 and -2 for missing values."""
    places = {label: place for place, label in enumerate(first.labels)}
    mapped = [places.get(label, len(places) + i) for i, label in enumerate(second.labels)]
    second_codes = np.array([*mapped, -2], dtype=np.int64)[second.codes]
    return first.codes, second_codes


def _texts_differ(first: Values, second: Values) -> BoolArray:
    one, other = _common_codes(first, second)
    return np.asarray(one != other)


def _followed_share(column: Values, candidate: Values, neighbours: IntArray) -> float:
    """Share of rows in which the candidate has the column's value of the next row."""
    if not len(neighbours):
        return 0.0
    one, other = _common_codes(column, candidate)
    return float(np.mean(one[neighbours + 1] == other[neighbours]))


def _chance_share(column: Values) -> float:
    """Probability that two rows have the same value."""
    known = column.codes[column.codes >= 0]
    if not len(known):
        return 1.0
    shares = np.bincount(known) / len(known)
    return float(np.sum(shares**2))


# Episode and time.


def _order(columns: Sequence[Values], neighbours: IntArray, blocks: Sequence[int]) -> Order:
    """The columns of episode and time, of all pairs the best."""
    num_rows = sum(blocks)
    episodes = _best(columns, lambda each: _episode_score(each, num_rows, neighbours))
    times = _best(columns, lambda each: _time_score(each, num_rows, neighbours))
    scored: list[tuple[float, Values | None, Values]] = []
    for time, own_time in times:
        alone = _series_score(time, neighbours)
        if alone is not None:
            scored.append((alone + own_time, None, time))
        for episode, own_episode in episodes:
            if episode.name == time.name:
                continue
            together = _pair_score(episode, time)
            if together is not None:
                scored.append((together + own_episode + own_time, episode, time))
    scored.sort(key=lambda each: -each[0])
    none = np.empty(0, dtype=np.int64)
    if not scored or scored[0][0] < 2.0:
        return Order(None, None, 0.0, none, none, 0.0)
    score, episode_column, time_column = scored[0]
    runner_up = scored[1][0] if len(scored) > 1 else 0.0
    before, after = _following(episode_column, time_column)
    return Order(episode_column, time_column, score, before, after, score - runner_up)


def _best(
    columns: Sequence[Values], score: Callable[[Values], float | None]
) -> list[tuple[Values, float]]:
    """The columns with the best scores; those without one are left out."""
    scored = [(column, score(column)) for column in columns]
    known = [(column, number) for column, number in scored if number is not None]
    known.sort(key=lambda each: -each[1])
    return known[:MOST_CANDIDATES]


def _episode_score(column: Values, num_rows: int, neighbours: IntArray) -> float | None:
    """How much a column looks like an episode by itself; None if it cannot be one."""
    has_fractions = column.kind == "number" and not column.is_whole
    is_repeated = 1 < column.distinct <= 0.7 * num_rows
    if has_fractions or column.kind == "boolean" or not is_repeated:
        return None
    # Rows of an episode are often neighbours: no more changes than there are episodes.
    same = np.mean(column.codes[neighbours] == column.codes[neighbours + 1])
    most = 1 - column.distinct / num_rows
    runs = float(same) / most
    score = name_score(column.name, "episode") + min(runs, 1.0)
    is_id = column.distinct >= 10 and (column.is_whole or column.kind == "text")
    score += 0.3 * is_id
    score -= name_score(column.name, "none")
    score -= name_score(column.name, "action") / 2
    if np.mean(column.is_missing) > 0.1:
        score -= 1.0
    return score


def _time_score(column: Values, num_rows: int, neighbours: IntArray) -> float | None:
    """How much a column looks like a time by itself; None if it cannot be one."""
    if column.numbers is None or column.kind == "boolean" or column.distinct < 2:
        return None
    score = name_score(column.name, "time") + 1.0 * (column.kind == "time")
    score -= name_score(column.name, "none")
    if column.kind == "number" and not column.is_whole:
        score -= 0.5
    if np.mean(column.is_missing) > 0.1:
        score -= 1.0
    return score


def _is_counter(column: Values, neighbours: IntArray) -> bool:
    """Whether a column numbers the rows."""
    if column.numbers is None or not len(neighbours):
        return False
    steps = column.numbers[neighbours + 1] - column.numbers[neighbours]
    return bool(column.distinct > 0.99 * len(column.codes) and np.mean(steps == 1) > 0.95)


def _series_score(time: Values, neighbours: IntArray) -> float | None:
    """How much a time looks like that of a single series; None if it repeats."""
    if time.distinct < 0.99 * len(time.codes) or time.numbers is None:
        return None
    steps = time.numbers[neighbours + 1] - time.numbers[neighbours]
    return float(np.mean(steps > 0)) if len(steps) else 0.0


def _pair_score(episode: Values, time: Values) -> float | None:
    """How much two columns look like episode and time; None if times repeat in episodes."""
    assert time.numbers is not None
    known = (episode.codes >= 0) & (time.codes >= 0)
    if np.mean(known) < 0.5:
        return None
    keys = episode.codes[known] * np.int64(time.distinct + 1) + time.codes[known]
    unique = len(np.unique(keys)) / len(keys)
    if unique < 0.95:
        return None

    # Within episodes, in the order of rows: does the time increase, and by equal steps?
    order = np.argsort(episode.codes[known], kind="stable")
    codes = episode.codes[known][order]
    numbers = time.numbers[known][order]
    is_same = codes[1:] == codes[:-1]
    steps = (numbers[1:] - numbers[:-1])[is_same]
    if len(steps) < 0.2 * len(codes):
        return None
    is_sorted = float(np.mean(steps > 0))
    most_common = np.unique(steps, return_counts=True)[1].max() / len(steps)
    is_regular = float(most_common) if is_sorted > 0.9 else 0.0
    return 20 * (unique - 0.95) + is_sorted + 0.5 * is_regular


def _following(episode: Values | None, time: Values | None) -> tuple[IntArray, IntArray]:
    """Rows that follow each other within an episode in the order of time."""
    assert time is not None
    assert time.numbers is not None
    codes = np.zeros(len(time.codes), dtype=np.int64) if episode is None else episode.codes
    order = np.lexsort((time.numbers, codes))
    order = order[(codes[order] >= 0) & np.isfinite(time.numbers[order])]
    is_same = codes[order][1:] == codes[order][:-1]
    return order[:-1][is_same], order[1:][is_same]


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
        states = _best(columns, lambda each: _state_score(each, num_rows, order))
    actions = _best(columns, lambda each: _action_score(each, num_rows, order))

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
        named = _best(others, lambda each: _outcome_score(each))
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


def _information(state: Values, action: Values, before: IntArray, then: IntArray) -> float:
    """Share of what is open about the next state that the action decides, given the state.

    The mutual information is lowered by its mean under independence, so noise has none. An action
    that alone determines the next state records it, and has none either.
    """
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

    # The mean under independence, to first order: degrees of freedom over twice the records.
    num_then = len(np.unique(then))
    pairs = len(np.unique(_joint(now, did)))
    freedom = (pairs - len(np.unique(now))) * (num_then - 1)
    return float(max(gain - freedom / (2 * len(then)), 0.0) / entropy)


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
