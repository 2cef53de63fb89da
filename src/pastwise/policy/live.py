"""A learned policy in a running loop: decide and learn, one record at a time.

Labels are looked up in plain dictionaries and rules are plain lists of numbers, so a decision with
TL takes about half a microsecond, however long the log and however many the states. What a record
changes is the method's business (`methods.base.LiveRows`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pastwise._numerics.checks import require_whole_number
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label
from pastwise.errors import LogWarning, ParameterError, UnknownLabelError
from pastwise.methods.base import LiveRows, PlannedRows, acting_for
from pastwise.policy.rule import known_index
from pastwise.policy.state import PolicyState

MAX_EPOCHS = 2**62
"""Most epochs; there is hardly more time."""


def _uniform_numbers(rng: np.random.Generator, block: int = 1024) -> Iterator[float]:
    """Numbers from [0, 1), generated in blocks: one at a time would cost ten times as much."""
    while True:
        yield from rng.random(block).tolist()


class LivePolicy:
    """A policy that decides and learns in a loop; made by `TransferLearner.live`.

    What it observes is kept as counts, not in the learner: ``learner.merge(live.take())`` moves
    them over. It is for one thread.

    Examples
    --------
    >>> import pastwise as pw
    >>> log = {"room": ["cold", "cold", "mild"], "did": ["heat", "wait", "wait"],
    ...        "then": ["mild", "cold", "mild"]}
    >>> learner = pw.TransferLearner(pw.Goal(prefer="mild"))
    >>> live = learner.fit(log, state="room", action="did", next_state="then").live(seed=1)
    >>> live.decide("cold")
    'heat'
    >>> live.observe("cold", "heat", "mild")
    >>> live.take().num_records
    1
    """

    def __init__(self, policy: PolicyState, seed: int | None = None, epochs: int = 0) -> None:
        counts = policy.counts()
        if counts.tasks is not None:
            raise ParameterError(
                "a log of several tasks cannot be extended record by record; merge counts instead"
            )
        self._policy = policy
        self._counts = counts
        self._refuse = policy.settings.on_unseen == "refuse"

        # Sources of random numbers: for decisions, and for methods that explore.
        if seed is not None:
            require_whole_number("the seed", seed, 0, 2**128)
        deciding, self._exploring = np.random.default_rng(seed).spawn(2)
        self._uniform = _uniform_numbers(deciding)
        require_whole_number("epochs", epochs, 0, MAX_EPOCHS)
        self._rows = _live_rows(policy, epochs, self._exploring)

        # Indices of the labels that the loop has used; `observe` keeps its own dictionary of
        # states that records may leave, which terminal states are not.
        self._actions = counts.actions.labels
        self._state_index: dict[Label, int] = {}
        self._origin_index: dict[Label, int] = {}
        self._action_index: dict[Label, int] = {}

        self._num_states = len(counts.states)
        self._num_actions = len(counts.actions)

        # Number of records since the last `take`, by flat index of the transition.
        self._seen: dict[int, int] = {}

    def decide(self, state: Label) -> Label:
        """Sample an action from the rule of a state."""
        try:
            index = self._state_index.get(state)
        except TypeError:  # no label
            index = None
        row = self._row(state) if index is None else self._rows[index]
        left = next(self._uniform) * sum(row)
        for action, weight in zip(self._actions, row, strict=True):
            left -= weight
            if left < 0:
                return action
        return self._actions[row.index(max(row))]  # only rounding leads here

    def observe(self, state: Label, action: Label, next_state: Label) -> None:
        """Learn from one record of known labels.

        A record that leaves a terminal state is left out, with a warning.
        """
        try:
            s = self._origin_index[state]
            a = self._action_index[action]
            n = self._state_index[next_state]
        except (KeyError, TypeError):
            s, a, n = self._look_up(state, action, next_state)
            if s in self._counts.terminal:
                message = f"a record that leaves the terminal state {state!r} was left out"
                warnings.warn(message, LogWarning, stacklevel=2)
                return
            self._origin_index[state] = s
        self._rows.observe(s, a, n)
        key = (s * self._num_actions + a) * self._num_states + n
        self._seen[key] = self._seen.get(key, 0) + 1

    def rule(self, state: Label) -> dict[Label, float]:
        """The rule that the next decision in a state is sampled from; asking changes nothing."""
        random_state = self._exploring.bit_generator.state
        row = self._row(state)
        self._exploring.bit_generator.state = random_state
        total = sum(row)
        return {action: weight / total for action, weight in zip(self._actions, row, strict=True)}

    def take(self, *, date: float | None = None) -> TransitionCounts:
        """Counts of what was observed since the last call, over the learner's labels.

        Parameters
        ----------
        date : float, optional
            When it was observed, in the unit of the age column or, for dates, in seconds since
            1970. Needed if weights fall with age, and only then.
        """
        decay = dated(self._counts.decay, date)
        states = self._counts.states
        actions = self._counts.actions
        key = np.array(list(self._seen), dtype=np.int64)
        records = np.array(list(self._seen.values()), dtype=np.int64)
        weight = records.astype(np.float64)
        row = key // len(states)
        index = (
            np.zeros_like(key),
            row // len(actions),
            row % len(actions),
            key % len(states),
        )
        sums = (records, weight, weight)
        self._seen = {}
        return TransitionCounts.from_groups(states, actions, index, sums, decay=decay)

    def _row(self, state: Label) -> list[float]:
        """Numbers proportional to the rule of a state: [A]."""
        index = known_index(self._counts.states, state, refuse=self._refuse, stacklevel=4)
        if index is None:
            prior: list[float] = self._policy.fallback_rule.tolist()
            return prior
        self._state_index[state] = index
        return self._rows[index]

    def _look_up(self, state: Label, action: Label, next_state: Label) -> tuple[int, int, int]:
        """Indices of labels, or of their keys, that the loop has not used so."""
        try:
            s = self._counts.states.index(state)
            a = self._counts.actions.index(action)
            n = self._counts.states.index(next_state)
        except UnknownLabelError as error:
            error.advice = "TransferLearner.observe learns new labels"
            raise
        self._state_index[next_state] = n
        self._action_index[action] = a
        return s, a, n


def dated(decay: Decay | None, date: float | None) -> Decay | None:
    """The decay of a log with the date of new records, which it needs, if there is one."""
    if decay is None:
        if date is not None:
            raise ParameterError("the weights of this log do not fall with age; leave out the date")
        return None
    if date is None:
        raise ParameterError(
            "the weights of this log fall with age, so a new record needs its date=, in the unit "
            "of the age column or, for dates, in seconds since 1970"
        )
    return replace(decay, as_of=date)


def _live_rows(policy: PolicyState, epochs: int, rng: np.random.Generator) -> LiveRows:
    """The method's own rows for a loop, where it has them, or its plan.

    A method that knows how many epochs there are to act in plans anew with that number.
    """
    method = policy.settings.method
    acting = acting_for(method, epochs)
    if epochs and acting is not method:
        return PlannedRows(acting, None, policy.counts_to_learn_from(), policy.ideal, rng)
    own_rows = getattr(method, "live_rows", None)
    if own_rows is not None:
        rows: LiveRows = own_rows(policy.plan(), policy.ideal)
        return rows
    return PlannedRows(method, policy.plan(), policy.counts_to_learn_from(), policy.ideal, rng)
