"""One version of a policy in memory: a policy file, a seed, and what was learned since.

Outside of this file labels are known by their keys: text that is stored and sent. The state of a
version is a function of its policy file and of the ordered records that it learned; the random
number of a decision follows from the seed and from the decision's place in the history
(`randomness.uniform`). So the same history leads to the same decisions, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from pastwise.data.live_counts import MAX_REWARD, require_reward
from pastwise.data.space import Label, Space, checked_label, key_of
from pastwise.errors import LabelError, PastwiseError, PolicyFileError, UnknownLabelError
from pastwise.logs.outcomes import follows
from pastwise.policy.advice import WEAK
from pastwise.policy.choice import conditioned
from pastwise.policy.learner import TransferLearner, load
from pastwise.policy.live import LivePolicy
from pastwise.service.keys import label_of
from pastwise.service.monitor import PolicyMonitor
from pastwise.service.randomness import uniform
from pastwise.service.store.rows import VersionRow
from pastwise.service.types import StateValue, SupportView, Value

NOTHING = SupportView(records=0, similarity=0.0, weak=True)
"""Support of a state that the log does not have."""

UNSEEN = ""
"""What the monitor counts decisions in states under that the log lacks."""


class Situation(NamedTuple):
    """A state in which a decision is requested.

    Attributes
    ----------
    key : str
    support : SupportView
        What the rule of the state rests on in the log of the version.
    is_known : bool
        Whether the log of the version has the state.
    is_terminal : bool
        Whether episodes end there.
    """

    key: str
    support: SupportView
    is_known: bool = True
    is_terminal: bool = False


class Chosen(NamedTuple):
    """An action by its key, its probability, and the rule that it was sampled from."""

    action: str
    propensity: float
    rule: dict[str, float]


class ServedVersion:
    """A version that decides and learns; for one thread at a time.

    Attributes
    ----------
    number : int
    sha256 : str
        Checksum of the policy file.
    learner : TransferLearner
        As it was in the file.
    live : LivePolicy
        With what was learned since; the rule is fixed where the method does not learn record by
        record.
    monitor : PolicyMonitor, optional
        Watches decisions and outcomes, after a call of `watch`.
    """

    def __init__(self, number: int, sha256: str, seed: bytes, learner: TransferLearner) -> None:
        self.number = number
        self.sha256 = sha256
        self.learner = learner
        self.live = _live_policy(learner)
        self._seed = seed

        # Labels, and their keys.
        policy = learner.fitted_
        counts = policy.counts()
        self._states = counts.states
        self._actions = counts.actions
        _require_distinct_keys(self._states, "states")
        _require_distinct_keys(self._actions, "actions")
        self._columns = policy.columns
        self._reader = policy.reader
        self._has_rewards = counts.has_rewards
        self._terminal = frozenset(counts.terminal.tolist())
        self._outcomes = frozenset(policy.outcomes)
        self._prior: list[float] = policy.fallback_rule.tolist()
        self._action_keys = [key_of(label) for label in self._actions.labels]

        # What the rules rest on, and the situations that were met, by key.
        support = learner.support().arrays
        by_similarity = learner.rests_on_similarity_
        self._records = support.records
        self._similarity = support.similarity
        self._is_weak = support.similarity < WEAK if by_similarity else support.records == 0
        self._met: dict[str, Situation] = {}

        self.monitor: PolicyMonitor | None = None

    @classmethod
    def load(cls, row: VersionRow) -> ServedVersion:
        """The version as it was before its first decision.

        Raises
        ------
        PolicyFileError
            If the artefact is not a policy file, or is of a kind that cannot be served.
        """
        with TemporaryDirectory() as folder:
            path = Path(folder) / "policy.safetensors"
            path.write_bytes(row.artefact)
            try:
                learner = load(path)
                return cls(row.version, row.sha256, row.seed, learner)
            except PastwiseError as error:
                message = str(error).replace(str(path), "the policy file")
                raise PolicyFileError(message) from error

    @property
    def learns(self) -> bool:
        """Whether it learns record by record."""
        return self.live.learns

    @property
    def evidence(self) -> int:
        """Number of records that it has learned since its first decision."""
        return self.live.revision

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return len(self._actions)

    # Labels.

    def situation(self, state: StateValue) -> Situation:
        """The state of a label, of a raw value or of a row.

        Raises
        ------
        LabelError
            If a column is missing, or a value can be that of no state.
        """
        if isinstance(state, str):
            met = self._met.get(state)
            if met is not None:
                return met
        index = self._reader.find(state)
        if index is None:
            label = self._label_or_raw(state)
            index = self._find_deciding(label)
            if index is None:
                return Situation(key_of(label), NOTHING, is_known=False)
        key = key_of(self._states.labels[index])
        support = SupportView(
            records=int(self._records[index]),
            similarity=float(self._similarity[index]),
            weak=bool(self._is_weak[index]),
        )
        met = Situation(key, support, is_terminal=index in self._terminal)
        self._met[key] = met
        return met

    def stored_situation(self, key: str) -> Situation:
        """The state that the store knows by a key."""
        if not self.has_state(key):
            return Situation(key, NOTHING, is_known=False)
        return self.situation(key)

    def require_known(self, state: StateValue) -> None:
        """An `UnknownLabelError`, with the nearest labels, for a state that the log lacks."""
        self._reader.index(state)

    def _label_or_raw(self, state: StateValue) -> Label:
        """The label of a state, known or new; the raw value as JSON where it has no label."""
        try:
            return self._label(state)
        except UnknownLabelError:
            return msgspec.json.encode(state).decode()

    def _label(self, value: object) -> Label:
        """The label of a value, known or new; a key stands for the label that has it."""
        if isinstance(value, str) and self._states.is_product:
            label = label_of(self._states, value)
            return self._reader.label(value if label is None else label)
        return self._reader.label(value)

    def action_key(self, action: Value, *, may_be_new: bool = False) -> str:
        """The key of an action; an `UnknownLabelError` for a new one, unless it may be new."""
        index = self._actions.find(action)
        if index is None and may_be_new:
            return key_of(checked_label(action))
        return key_of(self._actions.labels[self._actions.index(action)])

    def has_state(self, key: str) -> bool:
        """Whether there is a state with this key, and no mere outcome."""
        return self._find_deciding(key) is not None

    def _find_deciding(self, label: Label) -> int | None:
        """Index of a state; None for an outcome, whose label a row can have as well."""
        index = self._states.find(label)
        return None if index in self._outcomes else index

    def has_action(self, key: str) -> bool:
        """Whether there is an action with this key."""
        return self._actions.find(key) is not None

    def next_key(self, next_state: StateValue | None, reward: float | None) -> tuple[str, bool]:
        """The key of what followed a decision, and whether the log has that state.

        Raises
        ------
        LabelError, ParameterError
            If a value can be that of no state, or what followed is missing.
        """
        following = follows(self._columns, self._states, next_state, reward)
        index = self._find_next(following)
        if index is None:
            return key_of(self._label_of_next(following)), False
        self._require_outcome(index, reward)
        return key_of(self._states.labels[index]), True

    def require_reward(self, reward: float | None) -> None:
        """A `ParameterError` if a reward is missing, or too much."""
        require_reward(reward, self._has_rewards)

    def _require_outcome(self, index: int, reward: float | None) -> None:
        """Refuse what cannot follow a one-shot decision: a state, or another reward's outcome."""
        columns = self._columns
        if columns is None or columns.outcome is None:
            return
        key = key_of(self._states.labels[index])
        if index not in self._terminal:
            raise LabelError(f"{key!r} is a state in which is decided, no outcome")
        if columns.outcome != columns.reward:
            return
        earned = self._find_next(follows(columns, self._states, None, reward))
        if earned is not None and earned != index:
            raise LabelError(
                f"the outcome is the reward, which is {reward!r} and not {key!r}; "
                "leave out next_state"
            )

    def require_known_next(self, next_state: StateValue | None, reward: float | None) -> None:
        """An `UnknownLabelError`, with the nearest labels, for a next state that the log lacks."""
        following = follows(self._columns, self._states, next_state, reward)
        if self._find_next(following) is None:
            self._states.index(self._label_of_next(following))

    def _label_of_next(self, following: object) -> Label:
        """The label of an outcome as it is, or of a state as it is decided in."""
        return checked_label(following) if self._outcomes else self._label(following)

    def _find_next(self, following: object) -> int | None:
        """Index of a next state; None if the log lacks it."""
        try:
            return self._states.find(self._label_of_next(following))
        except UnknownLabelError:
            return None

    # Decisions and records.

    def choose(
        self, situation: Situation, seq: int, allowed: Sequence[str] | None, floor: float
    ) -> Chosen:
        """The action of the event ``seq``.

        Parameters
        ----------
        allowed : keys of actions, optional
            Those that are possible now; all of them by default.
        floor : float
            Smallest probability of each action that is possible and not forbidden.
        """
        rule = self.rule(situation, allowed, floor)
        left = uniform(self._seed, seq)
        for action, probability in rule.items():
            left -= probability
            if left < 0:
                return Chosen(action, probability, rule)
        likeliest = max(rule, key=rule.__getitem__)  # only rounding leads here
        return Chosen(likeliest, rule[likeliest], rule)

    def rule(
        self, situation: Situation, allowed: Sequence[str] | None, floor: float
    ) -> dict[str, float]:
        """The probability of each action by its key: what `choose` samples from."""
        if not situation.is_known:
            return self._unseen_rule(allowed, floor)
        rule = self.live.rule(situation.key, allowed=allowed, floor=floor)
        return dict(zip(self._action_keys, rule.values(), strict=True))

    def _unseen_rule(self, allowed: Sequence[str] | None, floor: float) -> dict[str, float]:
        """The rule of a state that the log lacks: the prior, among what is possible."""
        keys = self._action_keys
        possible = [
            index
            for index, key in enumerate(keys)
            if self._prior[index] > 0 and (allowed is None or key in allowed)
        ]
        rule = conditioned(self._prior, possible, floor)
        return dict(zip(keys, rule, strict=True))

    def learn(self, state: str, action: str, next_state: str, reward: float | None) -> None:
        """Learn from one record, given by keys.

        Rules do not depend on how large a reward is, so the history of a store may have larger
        ones than `require_reward` lets in.
        """
        if reward is not None:
            reward = max(-MAX_REWARD, min(reward, MAX_REWARD))
        self.live.observe(state, action, next_state, reward=reward)

    # Watching.

    def watch(self) -> None:
        """Watch decisions and outcomes from now on."""
        policy = self.learner.fitted_
        self.monitor = PolicyMonitor(policy.counts(), policy.goal)

    def decided(self, situation: Situation, chosen: Chosen, mode: str) -> None:
        """Let the monitor see a decision. States that the log lacks are one to it."""
        if self.monitor is not None:
            state = situation.key if situation.is_known else UNSEEN
            weak = situation.support.weak
            self.monitor.decided(state, chosen.action, chosen.rule, mode, weak)

    def settings_changed(self, after: Mapping[str, object]) -> None:
        """Let the monitor see that settings of the policy were changed to these."""
        if self.monitor is not None and after.get("mode") == "shadow":
            self.monitor.went_shadow()

    def observed(
        self, state: str, action: str, next_state: str, reward: float | None, at: int
    ) -> bool:
        """Let the monitor see the outcome of a live decision; whether it raised the alarm."""
        if self.monitor is None or not self.has_state(state):
            return False
        return self.monitor.observed(state, action, next_state, reward, at)

    # Snapshots.

    def snapshot(self) -> bytes:
        """All that was learned since the first decision, and what the monitor has seen."""
        seen = b"" if self.monitor is None else self.monitor.snapshot()
        return msgspec.msgpack.encode(_Snapshot(self.live.snapshot(), seen))

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot of this version."""
        kept = msgspec.msgpack.decode(snapshot, type=_Snapshot)
        self.live.restore(kept.learned)
        if self.monitor is not None and kept.seen:
            self.monitor.restore(kept.seen)

    def state_hash(self) -> bytes:
        """Hash of all that decisions depend on."""
        return self.live.state_hash()


class _Snapshot(msgspec.Struct, array_like=True):
    """What a snapshot consists of."""

    learned: bytes
    seen: bytes


def _live_policy(learner: TransferLearner) -> LivePolicy:
    """The policy of a file, learning record by record where its method does."""
    live = learner.live(seed=0)
    return live if live.learns else learner.live(seed=0, fixed=True)


def _require_distinct_keys(space: Space, name: str) -> None:
    """Refuse labels with the same key, which the store could not keep apart."""
    if isinstance(space.labels, range):
        return
    numbers = Counter(key_of(label) for label in space.labels)
    twin, number = numbers.most_common(1)[0]
    if number > 1:
        raise PolicyFileError(
            f"two {name} have the key {twin!r}, so a decision service cannot keep them apart; "
            "spell the labels of the log as text"
        )
