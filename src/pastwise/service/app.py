"""The service as a whole: its parts, its start and stop, and the care for both.

`Service` opens the store, starts the engine, and looks after them once a second. `make_app` puts
the gate in front of the addresses of `routes`.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Literal, ParamSpec, TypeVar

from pastwise.errors import FileError
from pastwise.service import uploads
from pastwise.service.calls import Call, Operation
from pastwise.service.core import wall_clock_ms
from pastwise.service.engine import Engine
from pastwise.service.gate import Gate
from pastwise.service.jobs import Jobs
from pastwise.service.journal import Journal
from pastwise.service.metrics import Metrics
from pastwise.service.openapi import openapi_document
from pastwise.service.problems import Problem
from pastwise.service.rates import Rates
from pastwise.service.routes import OPERATIONS
from pastwise.service.settings import ServerSettings
from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from pastwise.service.store.locking import FolderLock
from pastwise.service.store.rows import UseToken
from pastwise.service.stream import Stream
from pastwise.service.tokens import Holder, Tokens, read_token_file
from pastwise.service.types import HealthView
from pastwise.service.worker import TASKS_OF_SERVICE

RETENTION_SECONDS = 3600
"""Seconds between two looks for decisions that are too old; they are kept for days."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Service:
    """The parts of a running service.

    Parameters
    ----------
    settings : ServerSettings
    journal : Journal, optional
        Writes to stderr by default.
    clock : callable
        Milliseconds since 1970.
    """

    store: Store
    engine: Engine
    tokens: Tokens
    jobs: Jobs
    operations: Sequence[Operation] = OPERATIONS
    tasks: str = TASKS_OF_SERVICE
    """Module with the functions of jobs."""

    def __init__(
        self,
        settings: ServerSettings,
        journal: Journal | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.journal = Journal(log_data=settings.log_data) if journal is None else journal
        self.metrics = Metrics()
        self.stream = Stream()
        self.rates = Rates(settings.rates)
        self.openapi = self.described()
        self.state: Literal["starting", "ready", "stopping"] = "starting"
        self.uploads = settings.data / "uploads"
        self.store_address = settings.store_address
        self._lock: FolderLock | None = None
        self._care: asyncio.Task[None] | None = None
        self._is_swept = True
        self._swept_at = time.monotonic()
        self._background: set[asyncio.Task[None]] = set()

    def described(self) -> dict[str, Any]:
        """The OpenAPI document of all operations."""
        return openapi_document(self.operations)

    def holder(self, call: Call) -> Holder:
        """Who calls, by the token of the request."""
        return self.tokens.holder(call.headers.get(b"authorization"))

    # Start and stop

    async def start(self) -> None:
        """Open the store, replay what is in it, and begin to serve."""
        began = time.monotonic()
        folder = self.settings.data
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot make the folder {folder}: {error.strerror}") from error
        with ExitStack() as undone:
            # SQLite's store locks the folder itself; jobs and uploads need that with any store.
            if self.settings.database is not None:
                self._lock = FolderLock(folder)
                undone.callback(self._lock.release)
            self.store = await asyncio.to_thread(open_store, self.store_address)
            try:
                await self._start_parts()
            except BaseException:
                await asyncio.to_thread(self.store.close)
                raise
            undone.pop_all()
        self.state = "ready"
        self._swept_at = time.monotonic()
        self._care = asyncio.create_task(self._look_after())
        policies = len(self.engine.policies())
        seconds = round(time.monotonic() - began, 3)
        self.journal.event("info", "started", policies=policies, seconds=seconds)

    async def _start_parts(self) -> None:
        """Start everything that needs the store."""
        folder = self.settings.data
        uploads.remove_partial(self.uploads)
        token_file = self.settings.token_file or folder / "admin.token"
        administrators = read_token_file(token_file)
        if token_file.stat().st_mode & 0o077:
            self.journal.event(
                "warning",
                "token-file-shared",
                note=f"other users of this machine may read {token_file}; run chmod 600 on it",
            )
        self.tokens = Tokens(self.store.tokens, administrators, self.clock)
        await asyncio.to_thread(self.tokens.refresh)
        self.jobs = await asyncio.to_thread(
            Jobs,
            folder / "jobs",
            self.settings.workers,
            niceness=self.settings.worker_niceness,
            journal=self.journal,
            tasks=self.tasks,
        )
        self.engine = Engine(self.store, self.clock, self.metrics, self._publish)
        await self.engine.start()

    def begin_to_stop(self) -> None:
        """Refuse new requests, and end streams; requests under way go on."""
        self.state = "stopping"
        self.stream.close()

    async def stop_jobs(self) -> None:
        """Stop jobs, and with them the streams of those who follow one."""
        if self._care is not None:
            await self.jobs.close()

    async def stop(self) -> None:
        """Stop what runs in the background, take a last snapshot, and close the store."""
        self.begin_to_stop()
        if self._care is None:
            return
        self._care.cancel()
        with suppress(asyncio.CancelledError):
            await self._care
        await self.stop_jobs()
        if self._background:
            await asyncio.wait(self._background, timeout=1.0)
        with suppress(Problem):  # a time of use is not needed for anything
            await self._note_use()
        await self.engine.stop()
        if self._lock is not None:
            self._lock.release()
        self.journal.event("info", "stopped")

    def require_ready(self) -> None:
        """Refuse requests before the start and after the stop."""
        if self.state != "ready":
            raise Problem(self.state, headers={"Retry-After": "1"})

    def _publish(self, policy: str, kind: str, body: Mapping[str, object]) -> None:
        """Show what happened to those who follow; write it down where that was requested."""
        self.stream.publish(policy, kind, body)
        if self.settings.log_data:
            self.journal.event("info", kind, **{**body, "policy": policy})

    def in_background(self, work: Coroutine[None, None, None]) -> None:
        """Do something that no request waits for; a failure goes to the journal."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.journal.event("error", "background", error=type(error).__name__, detail=str(error))

    # Care

    async def _look_after(self) -> None:
        """Once a second: close windows of outcomes; less often: read the tokens again."""
        beat = 0
        while True:
            await asyncio.sleep(1.0)
            beat += 1
            try:
                await self.engine.sweep()
                if beat % 5 == 0:
                    await self.refresh_tokens()
                if beat % 60 == 0:
                    await self._note_use()
                if beat % RETENTION_SECONDS == 60:
                    self.in_background(self.retain())
                self._is_swept = True
                self._swept_at = time.monotonic()
            except Exception as error:  # the store may be away for a while
                self._is_swept = False
                self.journal.event(
                    "error", "sweep-failed", error=type(error).__name__, detail=str(error)
                )

    async def retain(self) -> None:
        """Move decisions that are too old to files, and forget old contexts."""
        for view in self.engine.policies():
            retained = await asyncio.to_thread(
                self.store.retain,
                view.name,
                self.settings.data / "archive",
                now=self.clock(),
                retention_days=view.settings.retention_days,
                context_days=view.settings.context_days,
            )
            if retained.decisions or retained.contexts:
                self.journal.event(
                    "info",
                    "retention",
                    policy=view.name,
                    decisions=retained.decisions,
                    contexts=retained.contexts,
                    files=[file.name for file in retained.files],
                )

    async def refresh_tokens(self) -> None:
        """Read the tokens of the store again, and forget the rates of deleted ones."""
        await asyncio.to_thread(self.tokens.refresh)
        self.rates.forget(self.tokens.ids())

    async def _note_use(self) -> None:
        """Store when tokens were used last."""
        used = self.tokens.used
        self.tokens.used = {}
        if used:
            writes = [UseToken(at, token_id) for token_id, at in used.items()]
            await self.engine.write(writes)

    # Looking at it

    async def read(
        self,
        function: Callable[Parameters, Result],
        *args: Parameters.args,
        **kwargs: Parameters.kwargs,
    ) -> Result:
        """Look something up in the store: at once where that is quick, else in a thread."""
        if self.store.reads_are_quick:
            return function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)

    def health(
        self, least_free: float = 0.05, slowest_commit: float = 5.0, slowest_sweep: float = 15.0
    ) -> HealthView:
        """Whether decisions can be made.

        Parameters
        ----------
        least_free : float
            Share of the disk that must be free; a day of decisions needs less.
        slowest_commit : float
            Seconds that a commit may take; clients wait for it.
        slowest_sweep : float
            Seconds since the last look at the store, which is due each second and takes three slow
            commits at most.
        """
        if self.state != "ready":
            return HealthView(self.state)
        usage = shutil.disk_usage(self.settings.data)
        is_waiting = self.store.waiting() > 0
        now = time.monotonic()
        since_commit = now - self.store.last_commit()
        since_sweep = now - self._swept_at
        checks = {
            **self.engine.checks(),
            "disk": usage.free >= least_free * usage.total,
            "commits": not is_waiting or since_commit < slowest_commit,
            "sweep": self._is_swept and since_sweep < slowest_sweep,
        }
        return HealthView("ok" if all(checks.values()) else "failing", checks)

    async def rendered_metrics(self) -> str:
        """All metrics as text."""
        metrics = self.metrics
        states = Counter(view.state for view in self.jobs.views())

        def look_up() -> str:
            for file, size in self.store.sizes().items():
                metrics.store_bytes.set(size, file=file)
            metrics.outcomes_open.forget()
            for view in self.engine.policies():
                number = self.store.open_decisions(view.name)
                metrics.outcomes_open.set(number, policy=view.name)
            metrics.jobs.forget()
            for state, number in states.items():
                metrics.jobs.set(number, state=state)
            return metrics.render()

        return await asyncio.to_thread(look_up)


def make_app(service: Service) -> Gate:
    """The service as an ASGI application."""
    return Gate(service, service.operations)
