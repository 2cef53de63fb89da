"""From the store back to memory: the newest snapshot, and everything that happened since.

A replay does every decision of a history again and compares action, propensity and evidence; after
an event that a snapshot was made at, it compares the hash of the state. Any difference is a
`ReplayError` that names the policy and the event.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from pastwise.errors import PastwiseError, ReplayError
from pastwise.service.changes import LATE, LEARNED
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem
from pastwise.service.store.base import Store
from pastwise.service.store.rows import DecisionRow, HistoryItem, PolicyRow, SnapshotRow
from pastwise.service.types import ReplayView, RuleView
from pastwise.service.versions import ServedVersion
from pastwise.service.views import settings_of

ADVICE = (
    "Nothing is served from a history that cannot be reproduced: use the version of pastwise and "
    "the machine that wrote it, or restore a backup"
)
"""What to do about a difference."""

STEP = 10_000
"""Number of events between reports of progress: about ten a second."""


class Restored(NamedTuple):
    """A version with all that it has learned.

    Attributes
    ----------
    version : ServedVersion
    snapshot_seq : int
        The event of its newest snapshot, or 0.
    alarmed : bool
        Whether what came after that snapshot raised the alarm.
    """

    version: ServedVersion
    snapshot_seq: int
    alarmed: bool


def load_policy(store: Store, row: PolicyRow, snapshot_every: int) -> ServedPolicy:
    """A policy as it was when its last event was committed."""
    number = settings_of(row.settings).version
    seq = store.last_seq(row.policy)
    if number is None:
        return ServedPolicy(row, None, seq, seq, snapshot_every)
    restored = restore_version(store, row.policy, number)
    return ServedPolicy(row, restored.version, seq, restored.snapshot_seq, snapshot_every)


def load_version(store: Store, policy: str, number: int) -> ServedVersion:
    """A version as it was before its first decision."""
    row = store.version(policy, number)
    if row is None:
        raise ReplayError(f"policy {policy!r}: the store has no version {number}")
    try:
        return ServedVersion.load(row)
    except PastwiseError as error:
        raise ReplayError(
            f"policy {policy!r}, version {number}: {error}. Restore a backup of the store"
        ) from error


def restore_version(store: Store, policy: str, number: int) -> Restored:
    """A version with all that it has learned and seen: its newest snapshot and what came after."""
    version = load_version(store, policy, number)
    version.watch()
    snapshot = store.newest_snapshot(policy, number)
    seq = 0
    if snapshot is not None:
        seq = snapshot.seq
        version.restore(snapshot.artefact)
        compare_snapshot(version, snapshot)
    alarmed = False
    for item in store.history(policy, after_seq=seq, version=number):
        alarmed |= apply(policy, version, item)
    return Restored(version, seq, alarmed)


def rule_of(store: Store, decision: DecisionRow) -> RuleView:
    """The rule that a decision was sampled from, with what its version had learned by then."""
    policy = decision.policy
    version = load_version(store, policy, decision.version)
    snapshots = store.snapshots(policy, decision.version)
    earlier = [snapshot for snapshot in snapshots if snapshot.seq < decision.seq]
    seq = 0
    if earlier:
        seq = earlier[-1].seq
        version.restore(earlier[-1].artefact)
    history = store.history(
        policy, after_seq=seq, to_seq=decision.seq - 1, version=decision.version
    )
    for item in history:
        if item.version == decision.version and _was_learned(item):
            _learn(policy, version, item)
    if version.evidence != decision.evidence:
        raise Problem(
            "gone", "what the version had learned by then was removed after its retention"
        )

    situation = version.stored_situation(decision.state)
    allowed = None if decision.allowed is None else json.loads(decision.allowed)
    return RuleView(
        policy=policy,
        policy_version=version.number,
        evidence=version.evidence,
        state=decision.state,
        rule=version.rule(situation, allowed, decision.floor),
        support=situation.support,
    )


def apply(policy: str, version: ServedVersion, item: HistoryItem) -> bool:
    """Do again what happened, and compare; whether it raised the alarm.

    What concerns another version changes nothing.
    """
    if item.kind in ("settings", "version"):
        version.settings_changed(json.loads(item.body or "{}"))
        return False
    if item.version != version.number:
        return False
    if item.kind == "decision":
        _decide_again(policy, version, item)
        return False
    if _was_learned(item):
        _learn_again(policy, version, item)
    if item.kind != "outcome" or item.status == LATE or item.mode != "live":
        return False
    return version.observed(
        item.state or "", item.action or "", item.next_state or "", item.reward, item.at
    )


def _decide_again(policy: str, version: ServedVersion, item: HistoryItem) -> None:
    """Decide as the decision of an item did, and compare."""
    if item.evidence != version.evidence:
        found = f"the version has learned {version.evidence} records, not {item.evidence}"
        raise _difference(policy, item, found)
    allowed = None if item.allowed is None else json.loads(item.allowed)
    try:
        situation = version.stored_situation(item.state or "")
        chosen = version.choose(situation, item.seq, allowed, item.floor or 0.0)
    except PastwiseError as error:
        raise _difference(policy, item, f"it cannot be made again: {error}") from error
    if chosen.action != item.action or chosen.propensity != item.propensity:
        found = f"{chosen.action!r} with probability {chosen.propensity!r} now"
        stored = f"{item.action!r} with probability {item.propensity!r} in the store"
        raise _difference(policy, item, f"{found}, {stored}")
    version.decided(situation, chosen, item.mode or "")


def _learn_again(policy: str, version: ServedVersion, item: HistoryItem) -> None:
    """Learn the record of an item, and compare."""
    _learn(policy, version, item)
    if item.kind == "outcome" and item.evidence != version.evidence:
        found = f"the version has learned {version.evidence} records, not {item.evidence}"
        raise _difference(policy, item, found)


def _learn(policy: str, version: ServedVersion, item: HistoryItem) -> None:
    """Learn the record of an item."""
    if item.state is None or item.action is None or item.next_state is None:
        raise _difference(policy, item, "its decision is not in the store")
    try:
        version.learn(item.state, item.action, item.next_state, item.reward)
    except PastwiseError as error:
        raise _difference(policy, item, f"the record cannot be learned: {error}") from error


def _was_learned(item: HistoryItem) -> bool:
    """Whether an item is a record that was learned, at once or after its window closed."""
    if item.kind == "outcome":
        return item.status == LEARNED
    return item.kind == "learn" and json.loads(item.body or "{}").get("status") == LEARNED


def compare_snapshot(version: ServedVersion, snapshot: SnapshotRow) -> None:
    """Refuse a state that is not the one that a snapshot was made of."""
    found = version.state_hash()
    if found != snapshot.hash:
        raise ReplayError(
            f"policy {snapshot.policy!r}, version {snapshot.version}, event {snapshot.seq:,}: the "
            f"hash of the state is {found.hex()}, that of the snapshot {snapshot.hash.hex()}. "
            f"{ADVICE}"
        )


def _difference(policy: str, item: HistoryItem, found: str) -> ReplayError:
    """The error for an item that comes out otherwise."""
    what = item.kind if item.decision is None else f"{item.kind} {item.decision}"
    return ReplayError(f"policy {policy!r}, event {item.seq:,} ({what}): {found}. {ADVICE}")


class Replay:
    """A replay of a policy's whole history, from the policy files of its versions.

    Where retention removed the beginning, each version starts from its oldest snapshot.

    Attributes
    ----------
    events : int
        Number of events so far.
    versions : dict from numbers to ServedVersion
        The versions that were met so far.
    """

    def __init__(self, store: Store, policy: str) -> None:
        self.events = 0
        self.versions: dict[int, ServedVersion] = {}
        self._store = store
        self._policy = policy

        # Snapshots to compare with, and those to begin with where the beginning is gone.
        has_removals = bool(store.removals(policy))
        self._snapshots: dict[int, list[SnapshotRow]] = {}
        self._first: dict[int, SnapshotRow] = {}
        for row in store.versions(policy):
            for snapshot in store.snapshots(policy, row.version):
                self._snapshots.setdefault(snapshot.seq, []).append(snapshot)
                if has_removals:
                    self._first.setdefault(row.version, snapshot)

    def run(self, to_seq: int | None = None, on_step: Callable[[int], None] | None = None) -> None:
        """Replay up to an event; to the last one by default.

        Parameters
        ----------
        on_step : callable, optional
            Called with the number of events every now and then.
        """
        for item in self._store.history(self._policy, to_seq=to_seq):
            if item.version is not None:
                version = self.version(item.version)
                first = self._first.get(item.version)
                if first is None or item.seq > first.seq:
                    apply(self._policy, version, item)
            for snapshot in self._snapshots.get(item.seq, ()):
                compare_snapshot(self.version(snapshot.version), snapshot)
            self.events += 1
            if on_step is not None and self.events % STEP == 0:
                on_step(self.events)

    def version(self, number: int) -> ServedVersion:
        """A version as it is after the events so far."""
        version = self.versions.get(number)
        if version is None:
            version = load_version(self._store, self._policy, number)
            if number in self._first:
                version.restore(self._first[number].artefact)
            self.versions[number] = version
        return version


def replay(
    store: Store,
    policy: str,
    version: int | None,
    to_seq: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> ReplayView:
    """Replay a history, and say whether everything came out as it is stored.

    Parameters
    ----------
    version : int, optional
        The version whose state is hashed at the end.
    """
    begin = perf_counter()
    history = Replay(store, policy)
    difference = None
    try:
        history.run(to_seq, on_step)
    except ReplayError as error:
        difference = str(error)
    state_hash = "" if version is None else history.version(version).state_hash().hex()
    return ReplayView(
        events=history.events,
        state_hash=state_hash,
        equal=difference is None,
        seconds=perf_counter() - begin,
        difference=difference,
    )
