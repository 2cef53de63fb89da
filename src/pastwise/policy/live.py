"""A learned policy in a running loop: decide and learn, one record at a time.

Deciding is `policy.deciding`. What a record changes is the method's business
(`methods.base.LiveRows`). A record with a new label makes the spaces larger, and the method starts
again on all records. All that a loop has and its learner has not fits into a `Snapshot`.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import replace
from hashlib import blake2b

import numpy as np

from pastwise._numerics.uniform import UniformNumbers, generator_in
from pastwise.data.counts import TransitionCounts
from pastwise.data.live_counts import require_reward
from pastwise.data.space import Label, checked_label
from pastwise.errors import LogWarning, ParameterError, PolicyFileError, UnknownLabelError
from pastwise.logs.outcomes import follows
from pastwise.logs.rows import Row
from pastwise.methods.base import FixedRows, PlannedRows, StoredRows
from pastwise.policy.base import Base
from pastwise.policy.deciding import DecidingPolicy
from pastwise.policy.packing import blaming
from pastwise.policy.records import counts_of, dated, one_record
from pastwise.policy.snapshot import WHAT, Snapshot
from pastwise.policy.state import PolicyState


class LivePolicy(DecidingPolicy):
    """A policy that decides and learns in a loop; made by `TransferLearner.live`.

    What it observes is kept as counts, not in the learner: ``learner.merge(live.take())`` moves
    them over.

    It is for one thread at a time, and locks nothing: give it to one owner, such as an event loop,
    or put a lock of your own around every call.

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

    def __init__(
        self,
        policy: PolicyState,
        seed: int | None = None,
        epochs: int = 0,
        fixed: bool = False,
    ) -> None:
        self._revision = 0

        # What was observed before the labels last changed and is not taken yet; what is taken.
        self._earlier: TransitionCounts | None = None
        self._taken: TransitionCounts | None = None
        super().__init__(policy, seed, epochs, fixed)

    def _start(self, base: Base) -> None:
        """Begin with labels that stay as they are until a new one is observed."""
        super()._start(base)
        self._num_states = len(base.counts.states)
        self._num_actions = len(base.counts.actions)

        # Indices of the states that records leave, which terminal states are not.
        self._origin_index: dict[Label, int] = {}

        # Number of records since the last `take`, by flat index of the transition; and the sums of
        # their rewards and of the squares of these.
        columns = base.policy.columns
        self._is_one_shot = columns is not None and columns.is_one_shot
        self._has_rewards = base.counts.has_rewards
        self._may_have_reward = self._has_rewards or self._is_one_shot
        self._seen: defaultdict[int, int] = defaultdict(int)
        self._earned: dict[int, tuple[float, float]] = {}

    # Learning.

    @property
    def learns(self) -> bool:
        """Whether it learns from each record at once, by rows of its method's own.

        Not if it is fixed. Other methods plan again from time to time: they learn as well, but
        what they know cannot be stored in a `snapshot`.
        """
        return not isinstance(self._rows, (FixedRows, PlannedRows))

    @property
    def revision(self) -> int:
        """Number of records observed since the start."""
        return self._revision

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
        if self._may_have_reward or reward is not None or next_state is None:
            require_reward(reward, self._has_rewards)
            states = self._counts.states
            next_state = follows(self._policy.columns, states, next_state, reward)
        try:
            s = self._origin_index[state]
            a = self._action_index[action]
            n = self._arrival_index[next_state]
        except (KeyError, TypeError):
            found = self._look_up(state, action, next_state, reward)
            if found is None:
                return
            s, a, n = found
        self._rows.observe(s, a, n)
        key = (s * self._num_actions + a) * self._num_states + n
        self._seen[key] += 1
        self._revision += 1
        if reward is not None:
            earned, squared = self._earned.get(key, (0.0, 0.0))
            self._earned[key] = (earned + reward, squared + reward * reward)

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
        self._seen = defaultdict(int)
        self._earned = {}
        return replace(observed, decay=decay)

    def _recent(self) -> TransitionCounts:
        """Counts of what was observed since labels last changed, or since the last `take`."""
        observed = counts_of(self._seen, self._earned, self._counts)
        return observed.ending_in(self._counts.terminal) if self._is_one_shot else observed

    def _look_up(
        self, state: Label | Row, action: Label, next_state: Label | Row, reward: float | None
    ) -> tuple[int, int, int] | None:
        """Indices of a record that the loop has not used so; None if nothing more is to be done."""
        try:
            origin = checked_label(self._policy.reader.label(state))
            destination = self._policy.label_of_next(next_state)
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
        if self._is_label(state):
            self._origin_index[state] = s
        if self._is_label(next_state):
            self._arrival_index[next_state] = n
        self._action_index[action] = a
        return s, a, n

    def _grow(self, state: Label, action: Label, next_state: Label, reward: float | None) -> None:
        """Learn a record of which some labels are new: from all records, over all labels.

        A fixed policy keeps the record, and stays as it is. An error, such as a floor that so many
        states do not leave room for, changes nothing.
        """
        record = one_record(
            state, action, next_state, self._counts, 1.0, reward, self._policy.columns
        )
        new = replace(record, decay=self._counts.decay)
        if self._base.is_fixed:
            self._revision += 1
            self._earlier = new if self._earlier is None else self._earlier + new
            return

        # All records up to this one, in one log.
        new = self._recent() + new
        counts = self._counts + new if self._taken is None else self._counts + self._taken + new
        base = self._base.over(counts)
        self._revision += 1
        self._earlier = new if self._earlier is None else self._earlier + new
        self._taken = None
        self._start(base)

    # Storing.

    def snapshot(self) -> bytes:
        """All that it has learned and counted since the start, as bytes for `restore`.

        Raises
        ------
        ParameterError
            If the method plans again from time to time: what it knows then cannot be stored.
        """
        state, row = self._stored_rows("snapshot").changed()
        has_grown = self._base is not self._first
        earned = np.array(list(self._earned.values()), dtype=np.float64)
        return Snapshot(
            policy=self._first.fingerprint,
            is_fixed=self._first.is_fixed,
            revision=self._revision,
            deciding=self._numbers.state,
            exploring=self._exploring.bit_generator.state,
            state=state,
            row=row,
            seen=np.array(list(self._seen), dtype=np.int64),
            records=np.array(list(self._seen.values()), dtype=np.int64),
            earned=earned.reshape(-1, 2),
            earlier=self._earlier,
            taken=self._taken,
            grown=self._counts if has_grown else None,
            plan=self._base.plan if has_grown else None,
        ).to_bytes()

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot, exactly as the loop that it was taken from would.

        Parameters
        ----------
        snapshot : bytes
            From `snapshot`, of a loop with the same policy.

        Raises
        ------
        PolicyFileError
            If it is damaged, or was taken from a loop of another policy. Nothing has changed then.
        """
        self._stored_rows("snapshot")
        stored = Snapshot.from_bytes(snapshot)
        base = self._first
        if stored.policy != base.fingerprint:
            raise PolicyFileError(
                f"{WHAT} is of another policy; restore it into a loop of the policy file that it "
                "was taken from"
            )
        if stored.is_fixed != base.is_fixed:
            raise PolicyFileError(
                f"{WHAT} was taken with fixed={stored.is_fixed}; make the loop with live(fixed=...)"
            )

        # All that can be wrong is found before anything changes.
        with blaming(WHAT):
            if stored.grown is not None:
                base = base.over(stored.grown, stored.plan)
            stored.require_fits(base.counts)
            numbers = UniformNumbers.restored(stored.deciding)
            exploring = generator_in(stored.exploring)

        self._numbers = numbers
        self._uniform = iter(numbers)
        self._exploring = exploring
        self._start(base)
        self._stored_rows("snapshot").restore(stored.state, stored.row)
        self._revision = stored.revision
        self._earlier = stored.earlier
        self._taken = stored.taken
        keys = stored.seen.tolist()
        self._seen.update(zip(keys, stored.records.tolist(), strict=True))
        if self._has_rewards:
            earned = map(tuple, stored.earned.tolist())
            self._earned.update(zip(keys, earned, strict=True))

    def state_hash(self) -> bytes:
        """A hash of all that decisions depend on except random numbers: 16 bytes.

        The same records in the same order lead to the same hash, whatever was decided or looked at
        in between.
        """
        state, row = self._stored_rows("state_hash").changed()
        digest = blake2b(self._base.fingerprint.encode(), digest_size=16)
        digest.update(state.astype("<i8").tobytes())
        digest.update(row.astype("<f8").tobytes())
        return digest.digest()

    def _stored_rows(self, what: str) -> StoredRows:
        """The rows, if they can be stored."""
        if isinstance(self._rows, StoredRows):
            return self._rows
        name = self._policy.settings.method.name
        raise ParameterError(
            f"no {what} of a loop with {name}: this method plans again while it runs. "
            "Use live(fixed=True), or the method TL"
        )
