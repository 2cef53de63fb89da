"""The core of the engine: policies in memory, changes on their way to the store, and recovery.

If a commit fails, memory is ahead of the store; if the session that writes is lost, so are the
policies that it led. The core then refuses everything, reloads all policies from the store as soon
as it can be written again, and goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from pastwise.errors import StoreError
from pastwise.service.changes import Change
from pastwise.service.commits import Commits, Ticket
from pastwise.service.meter import Meter
from pastwise.service.metrics import Metrics
from pastwise.service.policy import ServedPolicy
from pastwise.service.problems import Problem, problem_of
from pastwise.service.replay import load_policy, load_version
from pastwise.service.store.base import Store
from pastwise.service.store.rows import AuditRow, Insert, PolicyRow, Write
from pastwise.service.versions import ServedVersion

Answer = TypeVar("Answer")
Found = TypeVar("Found")

Publish = Callable[[str, str, Mapping[str, object]], None]
"""Called with a policy, a kind of news and its body, after the commit."""


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Refusal(NamedTuple):
    """Why nothing is served now.

    Each caller gets a problem of its own: one for all would collect their tracebacks.
    """

    slug: str
    detail: str = ""


class Core:
    """The policies of a store, in memory.

    Parameters
    ----------
    store : Store
    clock : callable
        Milliseconds since 1970.
    metrics : Metrics, optional
        Where to count; nobody reads them by default.
    publish : callable, optional
        Gets the news of all policies.
    snapshot_every : int
        Number of events between snapshots of a policy. The default is replayed in a second.
    most_due : int
        Number of decisions that a sweep closes in one transaction, so that other requests wait
        for milliseconds at most.
    most_labels : int
        Number of versions out of use that are kept in memory for their labels; outcomes of their
        decisions come in for as long as a window is open, so a few are enough.
    retry_after : float
        Seconds between attempts to write again after a commit failed.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], int] = wall_clock_ms,
        metrics: Metrics | None = None,
        publish: Publish | None = None,
        *,
        snapshot_every: int = 100_000,
        most_due: int = 500,
        most_labels: int = 4,
        retry_after: float = 1.0,
    ) -> None:
        self.store = store
        self._clock = clock
        self._meter = Meter(Metrics() if metrics is None else metrics)
        self._publish = publish
        store.on_commit = self._meter.committed
        self._snapshot_every = snapshot_every
        self._most_due = most_due
        self._most_labels = most_labels
        self._retry_after = retry_after

        self._policies: dict[str, ServedPolicy] = {}
        self._led_elsewhere: dict[str, PolicyRow] = {}
        self._labels: dict[tuple[str, int], ServedVersion] = {}
        self._commits = Commits(store, self._store_failed)
        self._refusal: Refusal | None = Refusal("starting")
        self._recovery: asyncio.Task[None] | None = None

    # Starting and stopping.

    async def start(self) -> None:
        """Load all policies.

        Raises
        ------
        ReplayError
            If a history does not come out as it is stored; it names the policy and the event.
        """
        await self._load_all()
        self._refusal = None

    async def stop(self) -> None:
        """Refuse new requests, finish those under way, make last snapshots, close the store."""
        was_serving = self._refusal is None
        self._refusal = Refusal("stopping")
        if self._recovery is not None:
            self._recovery.cancel()
        await self._commits.idle.wait()
        if was_serving:
            writes = [write for policy in self._policies.values() for write in policy.snapshot()]
            if writes:
                with suppress(Problem):  # without them, the next start takes longer
                    await self._commits.submit(writes)
        await asyncio.to_thread(self.store.close)

    async def _load_all(self) -> None:
        """Read all policies from the store; those that another process leads are only listed."""
        rows = await asyncio.to_thread(self.store.policies)
        policies = {}
        led_elsewhere = {}
        for row in rows:
            policy = await asyncio.to_thread(self._load, row)
            if policy is None:
                led_elsewhere[row.policy] = row
            else:
                policies[row.policy] = policy
        self._policies = policies
        self._led_elsewhere = led_elsewhere

    async def _take_over(self) -> None:
        """Serve policies that another process made, or no longer leads."""
        for row in await asyncio.to_thread(self.store.policies):
            if row.policy in self._policies:
                continue
            policy = await self._leading(self._load, row)
            if policy is None:
                self._led_elsewhere[row.policy] = row
            elif self._refusal is None:
                self._policies.setdefault(row.policy, policy)
                self._led_elsewhere.pop(row.policy, None)

    def _load(self, row: PolicyRow) -> ServedPolicy | None:
        """A policy as it is stored; None if another process leads it."""
        if not self.store.lead(row.policy):
            return None
        # Until now another process may have changed the settings.
        row = self.store.policy(row.policy) or row
        begin = time.perf_counter()
        policy = load_policy(self.store, row, self._snapshot_every)
        self._meter.loaded(row.policy, time.perf_counter() - begin)
        return policy

    async def _leading(self, work: Callable[..., Found], *arguments: object) -> Found:
        """Do something in a thread that may begin to lead a policy."""
        try:
            return await asyncio.to_thread(work, *arguments)
        except StoreError as error:
            raise self._store_failed(error) from error

    def _store_failed(self, error: Exception) -> Problem:
        """Refuse everything until memory and store agree again."""
        problem = problem_of(error)
        if self._refusal is None:
            self._refusal = Refusal(problem.slug, problem.detail)
            self._recovery = asyncio.create_task(self._recover())
        return problem

    async def _recover(self) -> None:
        """Reload everything when the store can be written again."""
        while True:
            await self._commits.idle.wait()
            try:
                await asyncio.to_thread(self.store.resume)
                now = self._clock()
                audit = AuditRow(0, now, "service", "store recovered", "", None, None)
                await self._commits.submit([Insert(audit)])
                await self._load_all()
            except Exception as error:  # nothing may end the attempts
                problem = problem_of(error)
                self._refusal = Refusal(problem.slug, problem.detail)
                await asyncio.sleep(self._retry_after)
            else:
                self._refusal = None
                return

    def checks(self) -> dict[str, bool]:
        """What readiness depends on, by name."""
        is_loaded = self._refusal is None
        return {"store": is_loaded, "replay": is_loaded}

    # Looking up.

    def _require_ready(self) -> None:
        """Refuse while starting, failing or stopping."""
        if self._refusal is not None:
            raise Problem(self._refusal.slug, self._refusal.detail)

    def _serving(self, name: str) -> ServedPolicy:
        """A policy that is ready to change. Nothing may be awaited between this and `_commit`."""
        self._require_ready()
        policy = self._policies.get(name)
        if policy is None:
            if name in self._led_elsewhere:
                detail = f"another process serves the policy {name!r}"
                raise Problem("not-leader", detail, extra={"policy": name})
            raise Problem("not-found", f"there is no policy {name!r}")
        return policy

    async def _read(self, look_up: Callable[..., Found], *arguments: object) -> Found:
        """Look something up in the store, in a thread where that may take long."""
        if self.store.reads_are_quick:
            return look_up(*arguments)
        return await asyncio.to_thread(look_up, *arguments)

    async def _labels_of(self, name: str, number: int) -> ServedVersion:
        """A version that knows its labels and support, whether or not it is in use."""
        in_use = self._serving(name).version
        if in_use is not None and in_use.number == number:
            return in_use
        place = (name, number)
        version = self._labels.get(place)
        if version is None:
            version = await asyncio.to_thread(load_version, self.store, name, number)
            while len(self._labels) >= self._most_labels:
                self._labels.pop(next(iter(self._labels)))
            self._labels[place] = version
        return version

    # Changing.

    async def write(self, writes: Sequence[Write]) -> None:
        """Commit what concerns no policy, such as tokens."""
        self._require_ready()
        await self._commits.submit(writes)

    async def _commit(
        self, policy: ServedPolicy, change: Change[Answer], ticket: Ticket | None = None
    ) -> Answer:
        """The answer of a change, after its commit."""
        if not change.writes:
            if ticket is not None:
                ticket.finish(None)
        else:
            await self._commits.submit(
                change.writes, ticket, lambda: self._spread(policy.name, change)
            )
        return change.answer

    def _spread(self, name: str, change: Change[Answer]) -> None:
        """Count and publish the news of a change that is committed."""
        for news in change.news:
            self._meter.happened(name, news)
            if self._publish is not None:
                self._publish(name, news.kind, news.body)
