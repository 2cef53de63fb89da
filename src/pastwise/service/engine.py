"""The engine of the service: every request that decides, learns or changes a policy.

All of it runs on one event loop. A request looks up what it needs in the store, is planned and
applied in memory (`policy`, `outcomes`), submitted to the store, and answered after its commit.
Planning and submitting have no pause in between, so memory, numbering and store agree in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import perf_counter
from uuid import UUID

import msgspec

from pastwise.service import outcomes
from pastwise.service.batches import DIGEST_BYTES, decide_batch, digest_of, item_key, place_in
from pastwise.service.changes import CANCELLED, MISSING, Caller, Change, pointing_to
from pastwise.service.deployment import Deployment
from pastwise.service.monitor import AnswerTime, MonitorView, Period
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem
from pastwise.service.replay import replay, rule_of
from pastwise.service.store.rows import (
    OPEN,
    WAITING,
    DecisionRow,
    OutcomeRow,
)
from pastwise.service.types import (
    DecideRequest,
    DecisionDetail,
    DecisionView,
    OutcomeRequest,
    OutcomeView,
    PolicyView,
    ReplayView,
    RuleView,
    StateValue,
    TakenRequest,
)
from pastwise.service.views import decision_detail, decision_view


class Engine(Deployment):
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
        """Decide in memory; count what is refused."""
        try:
            return policy.decide(request, caller, self._clock())
        except Problem as problem:
            self._meter.refused(policy.name, problem)
            raise

    def _plan_batch(
        self,
        policy: ServedPolicy,
        requests: Sequence[DecideRequest],
        token: str,
        key: str | None,
    ) -> Change[list[DecisionView | Problem]]:
        """The same for several requests."""
        change = decide_batch(policy, requests, token, key, self._clock())
        for answer in change.answer:
            if isinstance(answer, Problem):
                self._meter.refused(policy.name, answer)
        return change

    async def _made_before(self, row: DecisionRow) -> DecisionView:
        """The answer that a decision was given before."""
        version = await self._labels_of(row.policy, row.version)
        return decision_view(row, version.stored_situation(row.state).support)

    async def decide_many(
        self, name: str, requests: Sequence[DecideRequest], token: str, key: str | None
    ) -> tuple[list[DecisionView | Problem], bool]:
        """Decisions in one transaction, and whether they were made before for the same key.

        An item that is refused does not stop the others.
        """
        if key is None:
            policy = self._serving(name)
            change = self._plan_batch(policy, requests, token, None)
            return await self._commit(policy, change), False

        with await self._commits.reserve((name, token, key)) as ticket:
            self._serving(name)
            first = await self._read(self.store.decision_by_key, name, token, key)
            if first is not None:
                answers = await self._batch_made_before(first, requests, token, key)
                ticket.finish(None)
                self._meter.repeated(name)
                return answers, True
            policy = self._serving(name)
            change = self._plan_batch(policy, requests, token, key)
        return await self._commit(policy, change, ticket), False

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
                answers.append(self._not_stored(first.policy, request))
        return answers

    def _not_stored(self, name: str, request: DecideRequest) -> DecisionView | Problem:
        """The answer of an item that was refused, and still is not decided; or of a dry run."""
        dry = msgspec.structs.replace(request, dry_run=True)
        try:
            answer = self._serving(name).decide(dry, Caller(""), self._clock()).answer
        except Problem as problem:
            return problem
        if request.dry_run:
            return answer
        return Problem("refused-before", "the item was refused when its batch was decided")

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
        conflicts = await self._read(self.store.conflicts, decision_id)
        return decision_detail(decision, await self._outcome_of(decision), conflicts)

    async def rule_of_decision(self, decision_id: str) -> RuleView:
        """The rule that a decision was sampled from, as it was then."""
        decision = await self._decision(decision_id)
        return await asyncio.to_thread(rule_of, self.store, decision)

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
            if any(made_at < removal.before for removal in self.store.removals(name)):
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
            if len(due) < self._most_due or not pairs:
                return number

    # Watching and proof.

    async def monitor(
        self, name: str, start: int | None, end: int | None, rows: int = 10
    ) -> MonitorView:
        """What there is to see of a policy in a period, in milliseconds since 1970.

        Parameters
        ----------
        rows : int
            How many rows with evidence of a change to list.
        """
        self._serving(name)
        with pointing_to(""):
            period = Period.of(start, end, self._clock())
        days = await asyncio.to_thread(self.store.daily, name, period.start, period.end)
        policy = self._serving(name)
        monitor = policy.monitor
        if monitor is None or policy.settings.version is None:
            raise Problem("no-version", f"the policy {name!r} has no version in use")
        return monitor.view(name, policy.settings.version, days, period, first=rows)

    def answer_time(self) -> AnswerTime | None:
        """How long decisions took since the start; None before the first one."""
        return self._meter.answer_time()

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
        await self._commits.submit([])  # everything before it is committed then
        return await asyncio.to_thread(replay, self.store, name, number, seq, on_step)


def _key_reused(row: DecisionRow) -> Problem:
    return Problem(
        "idempotency-key-reused",
        f"the key was used for another request, which led to the decision {row.id}",
    )
