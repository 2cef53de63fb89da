"""A learned policy in a running loop: decide and learn, one record at a time.

Labels are looked up in plain dictionaries and rules are plain lists of numbers, so a decision with
TL takes about half a microsecond, however long the log and however many the states; raw values take
a few (`logs.rows`). What a record changes is the method's business (`methods.base.LiveRows`). A
record with a new label makes the spaces larger, and the method starts again on all records.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from pastwise._numerics.checks import require_whole_number
from pastwise._numerics.threads import Lock
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.live_counts import require_reward
from pastwise.data.space import Label, Space, checked_label
from pastwise.errors import LogWarning, ParameterError, UnknownLabelError
from pastwise.logs.columns import Columns
from pastwise.logs.outcomes import follows
from pastwise.logs.rows import Row, is_row
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
        self._refuse = policy.settings.on_unseen == "refuse"
        require_whole_number("epochs", epochs, 0, MAX_EPOCHS)
        self._epochs = epochs

        # Sources of random numbers: for decisions, and for methods that explore.
        if seed is not None:
            require_whole_number("the seed", seed, 0, 2**128)
        deciding, self._exploring = np.random.default_rng(seed).spawn(2)
        self._uniform = _uniform_numbers(deciding)

        # What was observed before the labels last changed and is not taken yet.
        self._earlier: TransitionCounts | None = None
        self._taken: TransitionCounts | None = None
        self._start(policy, counts)

    def _start(self, policy: PolicyState, counts: TransitionCounts) -> None:
        """Begin with a policy, whose labels stay as they are until a new one is observed."""
        self._policy = policy
        self._counts = counts
        self._rows = _live_rows(policy, self._epochs, self._exploring)

        # Indices of the labels that the loop has used; `observe` keeps its own dictionary of
        # states that records may leave, which terminal states are not.
        self._actions = counts.actions.labels
        self._state_index: dict[Label, int] = {}
        self._origin_index: dict[Label, int] = {}
        self._action_index: dict[Label, int] = {}

        self._num_states = len(counts.states)
        self._num_actions = len(counts.actions)

        # Number of records since the last `take`, by flat index of the transition; and the sums of
        # their rewards and of the squares of these.
        columns = policy.columns
        self._is_one_shot = columns is not None and columns.is_one_shot
        self._has_rewards = counts.has_rewards
        self._seen: dict[int, int] = {}
        self._earned: dict[int, tuple[float, float]] = {}

    def decide(self, state: Label | Row) -> Label:
        """Sample an action from the rule of a state.

        Parameters
        ----------
        state : label, raw value or row
            A label; a raw value, where the state is a bin of one column; or the values of the
            state's columns by name, such as ``{"lactate": 1.9, "ward": "A"}``.

        Raises
        ------
        UnknownLabelError
            If no state matches, unless the learner has ``on_unseen="prior"``: then the prior
            answers, with an `UnseenStateWarning`.
        """
        index = None
        if not isinstance(state, dict):  # a row has no index of its own
            try:
                index = self._state_index.get(state)
            except TypeError:  # another kind of row, or no label
                index = None
        row = self._row(state) if index is None else self._rows[index]
        left = next(self._uniform) * sum(row)
        for action, weight in zip(self._actions, row, strict=True):
            left -= weight
            if left < 0:
                return action
        return self._actions[row.index(max(row))]  # only rounding leads here

    def observe(
        self,
        state: Label | Row,
        action: Label,
        next_state: Label | Row | None = None,
        *,
        reward: float | None = None,
    ) -> None:
        """Learn from one record; states may be raw values or rows, as for `decide`.

        A record that leaves a terminal state is left out, with a warning. So is a record with a
        value that can be in no state, since it is missing or outside the bins. A new label is
        learned: the method then starts again on all records, which takes as long as learning did.

        Parameters
        ----------
        state, action, next_state
            The next state of a one-shot decision is its outcome; leave it out where that is the
            reward.
        reward : float, optional
            Reward of the record. Needed if the log has rewards, and only then. A goal that
            maximises the reward goes on with the mean rewards that it was learned with, until the
            learner takes in what was observed.
        """
        if self._has_rewards or self._is_one_shot or reward is not None or next_state is None:
            require_reward(reward, self._has_rewards)
            states = self._counts.states
            next_state = follows(self._policy.columns, states, next_state, reward)
        try:
            s = self._origin_index[state]
            a = self._action_index[action]
            n = self._state_index[next_state]
        except (KeyError, TypeError):
            found = self._look_up(state, action, next_state, reward)
            if found is None:
                return
            s, a, n = found
        self._rows.observe(s, a, n)
        key = (s * self._num_actions + a) * self._num_states + n
        self._seen[key] = self._seen.get(key, 0) + 1
        if reward is not None:
            earned, squared = self._earned.get(key, (0.0, 0.0))
            self._earned[key] = (earned + reward, squared + reward * reward)

    def rule(self, state: Label | Row) -> dict[Label, float]:
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
        recent = self._recent()
        observed = recent if self._earlier is None else self._earlier + recent
        self._taken = recent if self._taken is None else self._taken + recent
        self._earlier = None
        self._seen = {}
        self._earned = {}
        return replace(observed, decay=decay)

    def _recent(self) -> TransitionCounts:
        """Counts of what was observed since labels last changed, or since the last `take`."""
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
        rewards = None
        if self._has_rewards:
            earned = np.array(list(self._earned.values())).reshape(-1, 2)
            rewards = (earned[:, 0], earned[:, 1])
        observed = TransitionCounts.from_groups(
            states, actions, index, sums, decay=self._counts.decay, rewards=rewards
        )
        return observed.ending_in(self._counts.terminal) if self._is_one_shot else observed

    def _row(self, state: Label | Row) -> list[float]:
        """Numbers proportional to the rule of a state: [A]."""
        index = known_index(self._policy.reader, state, refuse=self._refuse, stacklevel=4)
        if index is None:
            prior: list[float] = self._policy.fallback_rule.tolist()
            return prior
        self._remember(state, index)
        return self._rows[index]

    def _remember(self, state: Label | Row, index: int) -> None:
        """Remember the index of a label; raw values would be too many."""
        if not is_row(state) and self._counts.states.has(state):
            self._state_index[state] = index

    def _look_up(
        self, state: Label | Row, action: Label, next_state: Label | Row, reward: float | None
    ) -> tuple[int, int, int] | None:
        """Indices of a record that the loop has not used so; None if nothing more is to be done."""
        reader = self._policy.reader
        try:
            origin = checked_label(reader.label(state))
            destination = checked_label(reader.label(next_state))
        except UnknownLabelError as error:
            warnings.warn(f"a record was left out: {error}", LogWarning, stacklevel=3)
            return None
        action = checked_label(action)

        # A terminal state is not left.
        s = self._counts.states.find(origin)
        if s is not None and s in self._counts.terminal:
            message = f"a record that leaves the terminal state {origin!r} was left out"
            warnings.warn(message, LogWarning, stacklevel=3)
            return None

        # New labels change everything.
        a = self._counts.actions.find(action)
        n = self._counts.states.find(destination)
        if s is None or a is None or n is None:
            self._grow(origin, action, destination, reward)
            return None

        # Known labels are found at once the next time.
        if not is_row(state) and self._counts.states.has(state):
            self._origin_index[state] = s
        self._remember(next_state, n)
        self._action_index[action] = a
        return s, a, n

    def _grow(self, state: Label, action: Label, next_state: Label, reward: float | None) -> None:
        """Learn a record of which some labels are new: from all records, over all labels."""
        record = one_record(
            state, action, next_state, self._counts, 1.0, reward, self._policy.columns
        )
        new = self._recent() + replace(record, decay=self._counts.decay)
        counts = self._counts + new if self._taken is None else self._counts + self._taken + new
        policy = replace(
            self._policy,
            log=counts,
            known_plan=None,
            episodes=None,
            _lock=Lock(),
            _memory=None,
            _observed=0,
        )
        self._earlier = new if self._earlier is None else self._earlier + new
        self._taken = None
        self._start(policy, counts)


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


def one_record(
    state: Label,
    action: Label,
    next_state: Label,
    counts: TransitionCounts,
    weight: float,
    reward: float | None = None,
    columns: Columns | None = None,
) -> TransitionCounts:
    """Counts of a single record of which some labels are new; the others keep their spelling.

    A new outcome of a one-shot decision is a terminal state.
    """
    state = _known_spelling(counts.states, state)
    action = _known_spelling(counts.actions, action)
    next_state = _known_spelling(counts.states, next_state)
    states = Space.sorted({state, next_state}, counts.states.fields)
    actions = Space((action,), counts.actions.fields)
    record = TransitionCounts.from_records(
        states.indices([state]), [0], states.indices([next_state]), states, actions, weight, reward
    )
    if columns is not None and columns.is_one_shot:
        return record.ending_in(states.indices([next_state]))
    return record


def _known_spelling(space: Space, label: Label) -> Label:
    """The label as the space has it, where it was given by its key."""
    return space.labels[space.index(label)] if space.has(label) else label


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
