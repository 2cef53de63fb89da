"""One served policy: its settings, the version in use, and its decisions.

Each change is planned and applied in memory at once, by plain functions that touch neither store
nor network: they take the rows that they need and return a `Change`, the writes for the store and
the answer for the caller. The caller (`engine`) submits the writes before it plans anything else,
so the order in memory is the order on disk, and sends the answer after the commit. A request that
is refused raises a `Problem` and changes nothing. What happens to a decision after it was made is
in `outcomes`.

Decisions, outcomes and events of a policy share one numbering, ``seq``.
"""

from __future__ import annotations

import json

import msgspec

from pastwise.service.changes import LATE, Caller, Change, News, json_text, pointing_to
from pastwise.service.monitor import PolicyMonitor
from pastwise.service.problems import Problem, ProblemPart
from pastwise.service.randomness import uuid7
from pastwise.service.store.rows import (
    OPEN,
    AuditRow,
    DecisionRow,
    EventRow,
    Insert,
    OutcomeRow,
    PolicyRow,
    Replace,
    SnapshotRow,
    VersionRow,
    Write,
)
from pastwise.service.types import (
    DecideRequest,
    DecisionView,
    PolicySettings,
    PolicyView,
    RuleView,
    StateValue,
    VersionView,
)
from pastwise.service.versions import ServedVersion, Situation
from pastwise.service.views import decision_view, settings_of, settings_text, time_text

UNSEEN_ACTION = "action:"
"""What the setting `on_unseen` begins with where it names an action."""


class ServedPolicy:
    """A policy in memory.

    Parameters
    ----------
    row : PolicyRow
    version : ServedVersion, optional
        The version in use, with what it has learned.
    seq : int
        Number of the last event.
    snapshot_seq : int
        Number of the event that the last snapshot was made after.
    snapshot_every : int
        Number of events between snapshots; see `Engine`.
    """

    def __init__(
        self,
        row: PolicyRow,
        version: ServedVersion | None,
        seq: int,
        snapshot_seq: int,
        snapshot_every: int,
    ) -> None:
        self.row = row
        self.name = row.policy
        self.settings = settings_of(row.settings)
        self.version = version
        self.seq = seq
        self._snapshot_seq = snapshot_seq
        self._snapshot_every = snapshot_every

    @property
    def etag(self) -> str:
        """Revision of the settings."""
        return str(self.row.etag)

    @property
    def evidence(self) -> int:
        """Number of records that the version in use has learned."""
        return 0 if self.version is None else self.version.evidence

    @property
    def monitor(self) -> PolicyMonitor | None:
        """What watches the version in use."""
        return None if self.version is None else self.version.monitor

    def view(self) -> PolicyView:
        """The policy as it is served now."""
        return PolicyView(
            name=self.name,
            settings=self.settings,
            etag=self.etag,
            created=time_text(self.row.created),
            seq=self.seq,
            evidence=self.evidence,
            learns=self.version is not None and self.version.learns,
            alarm=self.monitor is not None and self.monitor.alarm,
        )

    # Decisions.

    def decide(self, request: DecideRequest, caller: Caller, now: int) -> Change[DecisionView]:
        """Decide; a dry run answers what would be decided, and changes nothing."""
        version = self.deciding_version()
        allowed = self._allowed(version, request)
        situation = self._situation(version, request.state)
        if not situation.is_known:
            allowed = self._allowed_unseen(version, allowed)

        seq = self.seq + 1
        floor = self.settings.floor
        with pointing_to("/state" if allowed is None else "/allowed"):
            chosen = version.choose(situation, seq, allowed, floor)
        features = request.state if isinstance(request.state, dict) else None
        row = DecisionRow(
            policy=self.name,
            seq=seq,
            id="" if request.dry_run else uuid7(now),
            version=version.number,
            evidence=version.evidence,
            state=situation.key,
            features=json_text(features),
            action=chosen.action,
            propensity=chosen.propensity,
            allowed=json_text(allowed),
            floor=floor,
            mode=self.settings.mode,
            episode=request.episode,
            context=json_text(request.context),
            token=caller.token,
            key=caller.key,
            digest=caller.digest,
            at=now,
            due=now + round(self.settings.outcome_due_s * 1000),
            status=OPEN,
            taken=None,
            taken_by=None,
        )
        view = decision_view(row, situation.support)
        if request.dry_run:
            return Change([], view)

        self.seq = seq
        version.decided(situation, chosen, row.mode)
        body = {
            "decision_id": row.id,
            "seq": seq,
            "policy_version": row.version,
            "mode": row.mode,
            "state": row.state,
            "action": row.action,
            "propensity": row.propensity,
            "weak": situation.support.weak,
            "unseen": not situation.is_known,
        }
        return Change([Insert(row), *self.due_snapshot()], view, [News("decision", body)])

    def deciding_version(self) -> ServedVersion:
        """The version in use, unless the policy does not decide at all."""
        if self.settings.mode == "paused":
            raise Problem("paused", f"the policy {self.name!r} is paused")
        return self._version_in_use()

    def _version_in_use(self) -> ServedVersion:
        if self.version is None:
            raise Problem("no-version", f"the policy {self.name!r} has no version in use")
        return self.version

    def _allowed(self, version: ServedVersion, request: DecideRequest) -> list[str] | None:
        """Keys of the actions that are possible; None for all."""
        if request.allowed is None:
            return None
        keys = []
        for place, action in enumerate(request.allowed):
            with pointing_to(f"/allowed/{place}"):
                keys.append(version.action_key(action))
        return keys

    def _situation(self, version: ServedVersion, state: StateValue) -> Situation:
        """Where a decision is requested, unless it is not possible there."""
        with pointing_to("/state"):
            situation = version.situation(state)
            if not situation.is_known and self.settings.on_unseen == "refuse":
                version.require_known(state)
        if situation.is_terminal:
            detail = f"episodes end in {situation.key!r}, so there is nothing to decide"
            part = ProblemPart("/state", "after-terminal", detail)
            raise Problem("after-terminal", detail, errors=[part])
        return situation

    def _allowed_unseen(
        self, version: ServedVersion, allowed: list[str] | None
    ) -> list[str] | None:
        """The possible actions in a state that the log lacks: a fixed action is the only one."""
        on_unseen = self.settings.on_unseen
        if not on_unseen.startswith(UNSEEN_ACTION):
            return allowed
        with pointing_to("/state"):
            action = version.action_key(on_unseen.removeprefix(UNSEEN_ACTION))
        if allowed is not None and action not in allowed:
            detail = f"the log lacks this state; on_unseen says {action!r}, which is not allowed"
            part = ProblemPart("/allowed", "invalid-value", detail)
            raise Problem("invalid-value", detail, errors=[part])
        return [action]

    def rule(self, state: StateValue) -> RuleView:
        """What would be decided in a state."""
        version = self._version_in_use()
        situation = self._situation(version, state)
        allowed = None
        if not situation.is_known:
            allowed = self._allowed_unseen(version, None)
        with pointing_to("/state"):
            rule = version.rule(situation, allowed, self.settings.floor)
        return RuleView(
            policy=self.name,
            policy_version=version.number,
            evidence=version.evidence,
            state=situation.key,
            rule=rule,
            support=situation.support,
        )

    # Records.

    def learns_from(self, decision: DecisionRow) -> bool:
        """Whether the outcome of a decision is learned now.

        Versions do not learn from each other's decisions, and nobody acted on a decision that was
        made in shadow.
        """
        version = self.version
        is_in_use = version is not None and version.learns and version.number == decision.version
        was_done = decision.mode == "live" and self.settings.mode != "shadow"
        return is_in_use and was_done and self.settings.learn

    def learn(self, state: str, action: str, next_state: str, reward: float | None) -> None:
        """Let the version in use learn from a record."""
        self._version_in_use().learn(state, action, next_state, reward)

    def observed(self, decision: DecisionRow, outcome: OutcomeRow, action: str) -> Change[None]:
        """Let the monitor see an outcome; an alarm may switch to shadow.

        Parameters
        ----------
        action : str
            The action that was done.
        """
        version = self.version
        is_in_use = version is not None and version.number == decision.version
        is_seen = decision.mode == "live" and outcome.status != LATE
        if version is None or not (is_in_use and is_seen) or outcome.next_state is None:
            return Change([], None)
        raised = version.observed(
            decision.state, action, outcome.next_state, outcome.reward, outcome.at
        )
        return self._alarmed(outcome.at) if raised else Change([], None)

    def _alarmed(self, now: int) -> Change[None]:
        """Keep an alarm of the monitor, and do what the settings say about it."""
        body = {"policy_version": self.settings.version}
        event = self.event("alarm", None, body, now)
        change = Change([Insert(event)], None, [News("alarm", {**body, "seq": event.seq})])
        if self.settings.on_alarm == "shadow" and self.settings.mode == "live":
            settings = msgspec.structs.replace(self.settings, mode="shadow")
            switch = self.change_settings(settings, self.version, "monitor", now, "alarm")
            change.writes += switch.writes
            change.news += switch.news
        return change

    def next_seq(self) -> int:
        """The number of the next event, which happens now."""
        self.seq += 1
        return self.seq

    def event(self, kind: str, decision: str | None, body: object, now: int) -> EventRow:
        """An event, which happens now."""
        return EventRow(self.name, self.next_seq(), kind, decision, json.dumps(body), now)

    # Settings and versions.

    def change_settings(
        self,
        settings: PolicySettings,
        version: ServedVersion | None,
        who: str,
        now: int,
        what: str = "settings",
        reason: str = "",
        alarmed: bool = False,
    ) -> Change[PolicyView]:
        """Serve with other settings.

        Parameters
        ----------
        settings : PolicySettings
        version : ServedVersion, optional
            The version that the settings name, with what it has learned.
        who, what, reason : str
            For the audit trail.
        alarmed : bool
            Whether the alarm of the version was raised while another one was in use.
        """
        before, after = _differences(self.settings, settings)
        if not after:
            return Change([], self.view())
        if version is not None:
            _require_possible(settings, version)

        # Both versions see the change; the outgoing one is kept, to be continued some day.
        for each in (self.version, version):
            if each is not None:
                each.settings_changed(after)
        writes: list[Write] = []
        if settings.version != self.settings.version:
            event = self.event("version", None, {"from": before["version"], **after}, now)
            writes.append(Insert(event))
            writes += self.snapshot()
            self.version = version
        else:
            writes.append(Insert(self.event("settings", None, after, now)))

        self.settings = settings
        self.row = self.row._replace(settings=settings_text(settings), etag=self.row.etag + 1)
        writes.append(Replace(self.row))
        note = {**after, "reason": reason} if reason else after
        audit = AuditRow(0, now, who, what, self.name, json_text(before), json_text(note))
        writes.append(Insert(audit))
        kind = "version" if "version" in after else "settings"
        news = [News(kind, after)]

        # An alarm that nobody has heard of.
        if alarmed:
            alarm = self._alarmed(now)
            writes += alarm.writes
            news += alarm.news
        return Change(writes, self.view(), news)

    def add_version(
        self, row: VersionRow, version: ServedVersion, view: VersionView, now: int
    ) -> Change[VersionView]:
        """Keep a new version; put the first one to use."""
        after = {"version": row.version, "sha256": row.sha256, "note": row.note}
        audit = AuditRow(0, now, row.who, "add version", self.name, None, json_text(after))
        change = Change([Insert(row), Insert(audit)], view, [News("version", after)])
        if self.version is None:
            settings = msgspec.structs.replace(self.settings, version=row.version)
            use = self.change_settings(settings, version, row.who, now)
            change.writes += use.writes
        return change

    # Snapshots.

    def due_snapshot(self) -> list[Write]:
        """A snapshot, if there were enough events since the last one."""
        if self.seq - self._snapshot_seq < self._snapshot_every:
            return []
        return self.snapshot()

    def snapshot(self) -> list[Write]:
        """A snapshot of the version in use, unless nothing happened since the last one."""
        version = self.version
        if version is None or self.seq == self._snapshot_seq:
            return []
        self._snapshot_seq = self.seq
        row = SnapshotRow(
            self.name, version.number, self.seq, version.state_hash(), version.snapshot()
        )
        return [Insert(row)]


def _differences(
    old: PolicySettings, new: PolicySettings
) -> tuple[dict[str, object], dict[str, object]]:
    """The settings that differ: as they were, and as they are."""
    before = msgspec.to_builtins(old)
    after = msgspec.to_builtins(new)
    changed = [name for name in after if before[name] != after[name]]
    return {name: before[name] for name in changed}, {name: after[name] for name in changed}


def _require_possible(settings: PolicySettings, version: ServedVersion) -> None:
    """Refuse settings that a version cannot be served with."""
    if settings.floor * version.num_actions > 1:
        detail = (
            f"a floor of {settings.floor:g} for each of {version.num_actions} actions is more "
            f"than 1; at most {1 / version.num_actions:.3g} is possible"
        )
        part = ProblemPart("/floor", "invalid-value", detail)
        raise Problem("invalid-value", detail, errors=[part])
    if settings.on_unseen.startswith(UNSEEN_ACTION):
        with pointing_to("/on_unseen"):
            version.action_key(settings.on_unseen.removeprefix(UNSEEN_ACTION))
