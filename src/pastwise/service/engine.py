"""The engine of the service: every request that decides, learns or changes a policy.

All of it runs on one event loop. A request looks up what it needs in the store, is planned and
applied in memory (`policy`, `outcomes`), submitted to the store, and answered after its commit.
Planning and submitting have no pause in between, so memory, numbering and store agree in order.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from time import perf_counter
from uuid import UUID

import msgspec

from pastwise.errors import PastwiseError
from pastwise.service import outcomes
from pastwise.service.batches import DIGEST_BYTES, decide_batch, digest_of, item_key, place_in
from pastwise.service.changes import CANCELLED, MISSING, Caller, Change, pointing_to
from pastwise.service.core import Core
from pastwise.service.monitor import MonitorView, Period
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem
from pastwise.service.randomness import new_seed
from pastwise.service.replay import replay, restore_version
from pastwise.service.store.rows import (
    OPEN,
    WAITING,
    AuditRow,
    DecisionRow,
    Insert,
    OutcomeRow,
    PolicyRow,
    VersionRow,
)
from pastwise.service.types import (
    DecideRequest,
    DecisionDetail,
    DecisionView,
    OutcomeRequest,
    OutcomeView,
    PolicySettings,
    PolicyView,
    ReplayView,
    RuleView,
    SettingsPatch,
    StateValue,
    TakenRequest,
    VersionView,
)
from pastwise.service.versions import ServedVersion
from pastwise.service.views import decision_detail, decision_view, settings_text, version_view


class Engine(Core):
    """Serves the policies of a store; see `Core` for its parameters."""

    # Looking up.

    def policies(self) -> list[PolicyView]:
        """All policies that this process serves, by name."""
        return [self._policies[name].view() for name in sorted(self._policies)]

    def policy(self, name: str) -> PolicyView:
        """One policy."""
        return self._serving(name).view()

    async def rule(self, name: str, state: StateValue) -> RuleView:
        """What a policy would decide in a state; nothing is decided."""
        return self._serving(name).rule(state)

    # Decisions.

    async def decide(
        self, name: str, request: DecideRequest, token: str, key: str | None
    ) -> tuple[DecisionView, bool]:
        """A decision, and whether it was made before for the same idempotency key."""
        begin = perf_counter()
        if key is None or request.dry_run:
            policy = self._serving(name)
            change = self._plan_decision(policy, request, Caller(token))
            view = await self._commit(policy, change)
            self._meter.answered(perf_counter() - begin)
            return view, False

        with await self._commits.reserve((name, token, key)) as ticket:
            self._serving(name)
            earlier = await self._read(self.store.decision_by_key, name, token, key)
            digest = digest_of(request)
            if earlier is not None:
                if earlier.digest != digest:
                    raise _key_reused(earlier)
                view = await self._made_before(earlier)
                ticket.finish(None)
                self._meter.repeated(name)
                return view, True
            policy = self._serving(name)
            change = self._plan_decision(policy, request, Caller(token, key, digest))
        view = await self._commit(policy, change, ticket)
        self._meter.answered(perf_counter() - begin)
        return view, False

    def _plan_decision(
        self, policy: ServedPolicy, request: DecideRequest, caller: Caller
    ) -> Change[DecisionView]:
        """Decide in memory; count states that are not known."""
        try:
            return policy.decide(request, caller, self._clock())
        except Problem as problem:
            if problem.slug == "unknown-label":
                self._meter.not_known(policy.name)
            raise

    async def _made_before(self, row: DecisionRow) -> DecisionView:
        """The answer that a decision was given before."""
        version = await self._labels_of(row.policy, row.version)
        return decision_view(row, version.stored_situation(row.state).support)

    async def decide_many(
        self, name: str, requests: Sequence[DecideRequest], token: str, key: str | None
    ) -> list[DecisionView | Problem]:
        """Decisions in one transaction; an item that is refused does not stop the others."""
        if key is None:
            policy = self._serving(name)
            change = decide_batch(policy, requests, token, None, self._clock())
            return await self._commit(policy, change)

        with await self._commits.reserve((name, token, key)) as ticket:
            self._serving(name)
            first = await self._read(self.store.decision_by_key, name, token, key)
            if first is not None:
                answers = await self._batch_made_before(first, requests, token, key)
                ticket.finish(None)
                self._meter.repeated(name)
                return answers
            policy = self._serving(name)
            change = decide_batch(policy, requests, token, key, self._clock())
        return await self._commit(policy, change, ticket)

    async def _batch_made_before(
        self, first: DecisionRow, requests: Sequence[DecideRequest], token: str, key: str
    ) -> list[DecisionView | Problem]:
        """The answers of a batch that was made; items that were refused are checked once more."""
        digest = digest_of(requests)
        if first.digest is None or first.digest[:DIGEST_BYTES] != digest:
            raise _key_reused(first)
        answers: list[DecisionView | Problem] = []
        for place, request in enumerate(requests):
            row: DecisionRow | None = first
            if place != place_in(first.digest):
                own_key = item_key(key, place)
                row = await self._read(self.store.decision_by_key, first.policy, token, own_key)
            if row is not None:
                answers.append(await self._made_before(row))
            else:
                answers.append(self._refused_before(first.policy, request))
        return answers

    def _refused_before(self, name: str, request: DecideRequest) -> DecisionView | Problem:
        """The problem of an item that was refused; what it would be now if it no longer were."""
        dry = msgspec.structs.replace(request, dry_run=True)
        try:
            return self._serving(name).decide(dry, Caller(""), self._clock()).answer
        except Problem as problem:
            return problem

    # What follows a decision.

    async def outcome(
        self, decision_id: str, request: OutcomeRequest, token: str
    ) -> tuple[OutcomeView, bool]:
        """Take in what followed a decision; also whether the same was reported before."""
        with await self._commits.reserve(decision_id) as ticket:
            decision = await self._decision(decision_id)
            first = await self._outcome_of(decision)
            labels = await self._labels_of(decision.policy, decision.version)
            policy = self._serving(decision.policy)
            now = self._clock()
            change = outcomes.report(policy, decision, first, labels, request, token, now)
        answer = await self._commit(policy, change, ticket)
        if isinstance(answer, Problem):
            raise answer
        return answer

    async def taken(self, decision_id: str, request: TakenRequest, who: str) -> DecisionDetail:
        """Somebody did something else than was decided."""
        with await self._commits.reserve(decision_id) as ticket:
            decision = await self._decision(decision_id)
            labels = await self._labels_of(decision.policy, decision.version)
            policy = self._serving(decision.policy)
            change = outcomes.take(policy, decision, labels, request, who, self._clock())
        return await self._commit(policy, change, ticket)

    async def cancel(self, decision_id: str, who: str) -> DecisionDetail:
        """Nothing was done; no outcome is expected."""
        with await self._commits.reserve(decision_id) as ticket:
            decision = await self._decision(decision_id)
            policy = self._serving(decision.policy)
            change = outcomes.cancel(policy, decision, who, self._clock())
        return await self._commit(policy, change, ticket)

    async def decision(self, decision_id: str) -> DecisionDetail:
        """All that is stored of a decision."""
        decision = await self._decision(decision_id)
        return decision_detail(decision, await self._outcome_of(decision))

    async def _decision(self, decision_id: str) -> DecisionRow:
        """A decision that was committed."""
        self._require_ready()
        decision = await self._read(self.store.decision, decision_id)
        if decision is None:
            raise await self._read(self._not_found, decision_id)
        return decision

    def _not_found(self, decision_id: str) -> Problem:
        """The problem with an id: retention took the decision, or there never was one."""
        try:
            made_at = UUID(decision_id).int >> 80
        except ValueError:
            return Problem("not-found", "this is not the id of a decision")
        for name in self._policies:
            removals = self.store.removals(name)
            if removals and made_at < removals[-1].before:
                return Problem(
                    "gone", f"the decision {decision_id} was removed after its retention"
                )
        return Problem("not-found", f"there is no decision {decision_id}")

    async def _outcome_of(self, decision: DecisionRow) -> OutcomeRow | None:
        """The outcome of a decision, if one was reported."""
        if decision.status in (OPEN, CANCELLED, MISSING):
            return None
        return await self._read(self.store.outcome_of, decision.id)

    async def sweep(self) -> int:
        """Close decisions whose window has closed; returns how many.

        Those that somebody reports on at this moment are left to the next sweep.
        """
        if self._refusal is not None:
            return 0
        if not self.store.reads_are_quick:  # other processes may use it as well
            await self._take_over()
        number = 0
        for name in list(self._policies):
            number += await self._sweep(name)
            monitor = self._serving(name).monitor
            if monitor is not None:
                self._meter.watched(name, monitor)
        return number

    async def _sweep(self, name: str) -> int:
        """Close the decisions of one policy, the earliest first."""
        number = 0
        while True:
            due = await self._read(self.store.due, name, self._clock(), self._most_due)
            with self._commits.reserve_free(decision.id for decision in due) as ticket:
                pairs = []
                for row in due:
                    if row.id not in ticket.places:
                        continue
                    decision = await self._decision(row.id)
                    if decision.status in (OPEN, WAITING):
                        pairs.append((decision, await self._outcome_of(decision)))
                policy = self._serving(name)
                change = outcomes.close_due(policy, pairs, self._clock())
            number += await self._commit(policy, change, ticket)
            if len(due) < self._most_due:
                return number

    # Policies.

    async def create_policy(self, name: str, settings: PolicySettings, who: str) -> PolicyView:
        """A new policy, without a version."""
        self._require_ready()
        if settings.version is not None:
            raise Problem("no-version", "a new policy has no version yet; leave out version")
        with await self._commits.reserve(("policy", name)) as ticket:
            if await self._read(self.store.policy, name) is not None:
                raise Problem("name-taken", f"there is a policy {name!r} already")
            if not await asyncio.to_thread(self.store.lead, name):
                raise Problem("not-leader", f"another process makes the policy {name!r}")
            now = self._clock()
            text = settings_text(settings)
            row = PolicyRow(name, text, 1, now)
            policy = ServedPolicy(row, None, 0, 0, self._snapshot_every)
            audit = AuditRow(0, now, who, "create policy", name, None, text)

        def serve() -> None:
            self._policies[name] = policy

        await self._commits.submit([Insert(row), Insert(audit)], ticket, serve)
        return policy.view()

    async def change_settings(
        self, name: str, changes: SettingsPatch, who: str, if_match: str
    ) -> PolicyView:
        """Other settings, among them the mode and the version in use.

        Parameters
        ----------
        if_match : str
            The etag of the settings that the caller has seen, with or without quotation marks.
        """
        with await self._commits.reserve(("policy", name)) as ticket:
            _require_current(self._serving(name), if_match)
            settings = _patched(self._serving(name).settings, changes)
            version = await self._version_for(name, settings)
            policy = self._serving(name)
            change = policy.change_settings(settings, version, who, self._clock())
        return await self._commit(policy, change, ticket)

    async def rollback(self, name: str, to: int, who: str, reason: str = "") -> PolicyView:
        """Back to another version, which continues from what it had learned."""
        with await self._commits.reserve(("policy", name)) as ticket:
            settings = msgspec.structs.replace(self._serving(name).settings, version=to)
            version = await self._version_for(name, settings)
            policy = self._serving(name)
            now = self._clock()
            change = policy.change_settings(settings, version, who, now, "rollback", reason)
        return await self._commit(policy, change, ticket)

    async def _version_for(self, name: str, settings: PolicySettings) -> ServedVersion | None:
        """The version that settings name, with all that it has learned."""
        number = settings.version
        in_use = self._serving(name).version
        if number is None or (in_use is not None and in_use.number == number):
            return in_use
        if await self._read(self.store.version, name, number) is None:
            detail = f"the policy {name!r} has no version {number}"
            raise Problem("not-found", detail)
        restored = await asyncio.to_thread(restore_version, self.store, name, number)
        return restored.version

    async def add_version(
        self,
        name: str,
        artefact: bytes,
        seed: bytes | None,
        note: str,
        who: str,
        despite: Sequence[str] = (),
    ) -> VersionView:
        """A new version from the bytes of a policy file; the first one is put to use at once.

        Parameters
        ----------
        seed : bytes, optional
            1 to 64 bytes that the random numbers of decisions follow from; by default from the
            operating system.
        despite : sequence of str
            What the one who deploys it has seen and accepted, such as ``"alarm"``.
        """
        with await self._commits.reserve(("policy", name)) as ticket:
            self._serving(name)
            now = self._clock()
            versions = await self._read(self.store.versions, name)
            row = VersionRow(
                policy=name,
                version=1 + max((row.version for row in versions), default=0),
                sha256=hashlib.sha256(artefact).hexdigest(),
                artefact=artefact,
                seed=new_seed() if seed is None else seed,
                note=note,
                despite=json.dumps(list(despite)),
                who=who,
                at=now,
            )
            version = await asyncio.to_thread(_loaded, row)
            view = version_view(row)
            policy = self._serving(name)
            change = policy.add_version(row, version, view, now)
        return await self._commit(policy, change, ticket)

    # Watching and proof.

    async def monitor(self, name: str, start: int | None, end: int | None) -> MonitorView:
        """What there is to see of a policy in a period, in milliseconds since 1970."""
        self._serving(name)
        with pointing_to(""):
            period = Period.of(start, end, self._clock())
        days = await asyncio.to_thread(self.store.daily, name, period.start, period.end)
        policy = self._serving(name)
        monitor = policy.monitor
        if monitor is None or policy.settings.version is None:
            raise Problem("no-version", f"the policy {name!r} has no version in use")
        return monitor.view(name, policy.settings.version, days, period)

    async def replay(
        self,
        name: str,
        to_seq: int | None = None,
        on_step: Callable[[int], None] | None = None,
    ) -> ReplayView:
        """Do the whole history again in a thread, and compare; see `replay.replay`."""
        policy = self._serving(name)
        number = policy.settings.version
        seq = policy.seq if to_seq is None else to_seq
        await self._commits.idle.wait()
        return await asyncio.to_thread(replay, self.store, name, number, seq, on_step)


def _key_reused(row: DecisionRow) -> Problem:
    return Problem(
        "idempotency-key-reused",
        f"the key was used for another request, which led to the decision {row.id}",
    )


def _require_current(policy: ServedPolicy, if_match: str) -> None:
    """Refuse a change of settings that somebody else has changed in between."""
    if if_match.strip() != "*" and if_match.strip().strip('"') != policy.etag:
        detail = f"the settings of {policy.name!r} were changed; their ETag is {policy.etag!r}"
        raise Problem("stale", detail)


def _patched(settings: PolicySettings, changes: SettingsPatch) -> PolicySettings:
    """Settings with some changed."""
    fields = msgspec.structs.asdict(changes)
    given = {name: value for name, value in fields.items() if value is not msgspec.UNSET}
    return msgspec.structs.replace(settings, **given)


def _loaded(row: VersionRow) -> ServedVersion:
    """A version to serve, or the problem with its policy file."""
    try:
        version = ServedVersion.load(row)
        version.watch()
        return version
    except PastwiseError as error:
        raise Problem("policy-file-refused", str(error)) from error
