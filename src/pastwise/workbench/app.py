"""The workbench as a service: the decision service, with projects, previews and a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pastwise.service.app import Service
from pastwise.service.calls import Call, Operation
from pastwise.service.core import wall_clock_ms
from pastwise.service.journal import Journal
from pastwise.service.openapi import openapi_document
from pastwise.service.problems import Problem
from pastwise.service.settings import ServerSettings
from pastwise.service.tokens import Holder
from pastwise.service.types import JobKind, JobView
from pastwise.workbench.counts import Cache, Counted
from pastwise.workbench.evidence import RowsBehind
from pastwise.workbench.preview import Previews, warm_up
from pastwise.workbench.projects import Projects
from pastwise.workbench.reader import Reader
from pastwise.workbench.session import Sessions
from pastwise.workbench.types_drafts import RunningVerdict

Result = TypeVar("Result")


class Workbench(Service):
    """The parts of a running workbench.

    Parameters
    ----------
    settings : ServerSettings
        Those of the service.
    root : Path
        Folder that paths of logs must lie in.
    """

    projects: Projects
    tasks = "pastwise.workbench.tasks"

    def __init__(
        self,
        settings: ServerSettings,
        root: Path,
        journal: Journal | None = None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        from pastwise.workbench.routes import ALL_OPERATIONS

        self.operations: Sequence[Operation] = ALL_OPERATIONS
        super().__init__(settings, journal, clock)
        self.root = root.resolve()
        self.opened: str | None = None
        self.sessions = Sessions(settings.data / "sessions")
        self.previews = Previews()
        self.reader = Reader()
        self.turns = Turns()
        self.rows_behind = RowsBehind()
        self._warming: asyncio.Task[None] | None = None
        self._project_of_job: dict[str, str] = {}
        self.judging: dict[str, tuple[str, RunningVerdict]] = {}
        self._counted: Cache[Counted] = Cache(most=4)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="preview")
        self._judging = ThreadPoolExecutor(1, thread_name_prefix="verdict")

    def described(self) -> dict[str, Any]:
        """The OpenAPI document, with the results of jobs."""
        from pastwise.workbench.routes import RESULTS

        return openapi_document(self.operations, RESULTS)

    async def start(self) -> None:
        """Read the projects, and start the service."""
        self.projects = await asyncio.to_thread(Projects, self.settings.data / "projects")
        await super().start()
        self._warming = asyncio.create_task(self._warm_up())

    async def _warm_up(self) -> None:
        """Prepare what the first log and the first verdict would have to wait for."""
        with suppress(Problem):  # who opens a log gets the reason
            await self.reader.ask("ready")
        await asyncio.to_thread(warm_up)

    async def stop(self) -> None:
        """Stop everything; what is still being prepared is of no use any more."""
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait([self._warming])
        await self.reader.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._judging.shutdown(wait=False, cancel_futures=True)
        await super().stop()

    def holder(self, call: Call) -> Holder:
        """Who calls: the person at the browser, by the cookie, or a program, by its token."""
        if b"authorization" not in call.headers:
            holder = self.sessions.holder(call)
            if holder is not None:
                return holder
        return super().holder(call)

    async def compute(self, function: Callable[[], Result]) -> Result:
        """Do something that takes milliseconds in the one thread for it."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    async def judge(self, function: Callable[[], Result]) -> Result:
        """Compute a verdict in the one thread for it: with 100 states it takes seconds."""
        return await asyncio.get_running_loop().run_in_executor(self._judging, function)

    def submit(self, kind: JobKind, arguments: dict[str, object], who: str, project_id: str) -> str:
        """Start a job about a project, and return its id."""
        job_id = self.jobs.submit(kind, arguments, who)
        self._project_of_job[job_id] = project_id
        return job_id

    def jobs_of(self, project_id: str) -> list[JobView]:
        """Jobs about a project that are under way."""
        return [
            job
            for job in self.jobs.views()
            if job.finished is None and self._project_of_job.get(job.id) == project_id
        ]

    def counted(self, counts_id: str) -> Counted:
        """Counts, loaded if they are not in memory; in a thread."""
        path = self.projects.counts_file(counts_id)
        return self._counted.get(counts_id, lambda: Counted(counts_id, path))


@dataclass
class Turn:
    """A request that waits for its turn."""

    is_superseded: bool = False


class Turns:
    """One request at a time for each session; of those that wait, the newest.

    A page that moves on does not want the answers to what it asked before.
    """

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[str, Turn] = {}

    async def take(self, who: str, work: Callable[[], Any]) -> Any:
        """Await the work when it is this request's turn; a newer request takes its place."""
        lock = self._locks.setdefault(who, asyncio.Lock())
        turn = Turn()
        if lock.locked():
            older = self._waiting.get(who)
            if older is not None:
                older.is_superseded = True
            self._waiting[who] = turn
        async with lock:
            if self._waiting.get(who) is turn:
                del self._waiting[who]
            if turn.is_superseded:
                raise Problem("superseded", "A newer preview was requested in the meantime.")
            return await work()
