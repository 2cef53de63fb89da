"""Jobs: work that takes longer than a request, each in a process of its own.

A job is queued, starts when a worker is free, and ends as done, stopped or failed. A thread reads
what its process reports and passes it on to the event loop, which alone changes the job. Stopping
is a request first, so that the job can return what it has; after a grace period the process is
killed.

Each job has a folder with its ``job.json`` and the files that it made. A job does not survive the
service: what was queued or running when the service ended is failed at the next start.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from pastwise.service.journal import Journal
from pastwise.service.problems import Problem
from pastwise.service.processes import STDERR, End, kill, run_process, say_stop
from pastwise.service.stream import HEARTBEAT
from pastwise.service.types import JobKind, JobState, JobView
from pastwise.service.worker import SPILL, TASKS_OF_SERVICE, Limits, Message, Spec

FINISHED = ("done", "stopped", "failed")


class Job:
    """A job as the event loop knows it."""

    def __init__(self, view: JobView, spec: Spec | None, folder: Path) -> None:
        self.view = view
        self.spec = spec
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.is_stopping = False
        self.is_over_time = False
        self.timers: list[asyncio.TimerHandle] = []
        self.changes = 0
        self.changed = asyncio.Event()

    @property
    def is_finished(self) -> bool:
        """Whether nothing will change any more."""
        return self.view.state in FINISHED

    def change(self, **members: object) -> None:
        """Replace members of the view, and wake who waits."""
        self.view = msgspec.structs.replace(self.view, **members)
        self.changes += 1
        self.changed.set()
        self.changed = asyncio.Event()


class Jobs:
    """Runs jobs. All methods are called on the event loop.

    Parameters
    ----------
    folder : path
        Where jobs have their folders.
    workers : int
        Processes at a time. They have a low priority, so this bounds memory, not delay.
    waiting : int
        Jobs that may be queued; more are refused, since nobody waits for an hour.
    time_limit : float
        Seconds after which a job is stopped.
    grace : float
        Seconds between the request to stop and the kill.
    kept : int
        Finished jobs that are kept, with their files; older ones are removed.
    niceness : int
        How far processes yield to others, see `Limits`.
    limits : Limits, optional
        All that a process may use, instead of what follows from the parameters above.
    journal : Journal, optional
        Where jobs that die are logged.
    tasks : str
        Module with the functions of jobs, as a mapping ``TASKS``.
    """

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        waiting: int = 8,
        time_limit: float = 600.0,
        *,
        grace: float = 5.0,
        kept: int = 100,
        niceness: int = 19,
        limits: Limits | None = None,
        journal: Journal | None = None,
        tasks: str = TASKS_OF_SERVICE,
    ) -> None:
        self._tasks = tasks
        self._folder = folder
        self._workers = workers
        self._waiting = waiting
        self._time_limit = time_limit
        self._grace = grace
        self._kept = kept
        self._limits = limits or Limits(seconds=time_limit + 60, grace=grace, niceness=niceness)
        self._journal = journal
        self._queue: deque[Job] = deque()
        self._running: list[Job] = []
        self._is_closed = False
        self._jobs = {job.view.id: job for job in _stored_jobs(folder)}

    # What clients request.

    def submit(self, kind: JobKind, arguments: Mapping[str, object], who: str) -> str:
        """Queue a job and return its id.

        Parameters
        ----------
        kind : str
            One of those of `tasks.TASKS`, which says what arguments each takes.

        Raises
        ------
        Problem
            ``too-many-jobs`` if the queue is full, ``stopping`` if the service is.
        """
        if self._is_closed:
            raise Problem("stopping", "the service takes no more jobs")
        if len(self._running) >= self._workers and len(self._queue) >= self._waiting:
            raise Problem(
                "too-many-jobs",
                f"{len(self._running)} jobs run and {len(self._queue)} wait; try again later",
                headers={"Retry-After": "10"},
            )
        job_id = f"job_{secrets.token_hex(12)}"
        view = JobView(job_id, kind, "queued", who, _now())
        folder = self._folder / job_id
        spec = Spec(kind, str(folder), dict(arguments), self._limits, self._tasks)
        job = Job(view, spec, folder)
        self._jobs[job_id] = job
        self._queue.append(job)
        self._start_next()
        return job_id

    def view(self, job_id: str) -> JobView:
        """A job as it is now."""
        return self._job(job_id).view

    def views(self) -> list[JobView]:
        """All jobs, the newest first."""
        return [job.view for job in reversed(self._jobs.values())]

    def file(self, job_id: str) -> Path | None:
        """The file that a job made; None if there is none, or not yet."""
        job = self._job(job_id)
        name = (job.view.result or {}).get("file")
        path = job.folder / str(name)
        return path if name is not None and path.is_file() else None

    def stop(self, job_id: str) -> JobView:
        """Stop a job, which keeps what it has. A finished job stays as it is."""
        job = self._job(job_id)
        if not job.is_finished and not job.is_stopping:
            self._request_stop(job, self._grace)
        return job.view

    async def wait(self, job_id: str, seconds: float) -> JobView:
        """Wait until a job has finished, at most so long, and return it as it is then."""
        job = self._job(job_id)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not job.is_finished:
                    await job.changed.wait()
        return job.view

    async def events(
        self, job_id: str, *, heartbeat: float = 15.0, pace: float = 0.2
    ) -> AsyncGenerator[bytes, None]:
        """Server-Sent Events: the job each time it has changed, until it has finished.

        Parameters
        ----------
        heartbeat : float
            Seconds without a change after which a comment is sent.
        pace : float
            Least seconds between two events; what changes in between is sent as one.
        """
        job = self._job(job_id)
        while True:
            seen = job.changes
            view = job.view
            body = msgspec.json.encode(view)
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (seen, view.state.encode(), body)
            if view.state in FINISHED:
                return
            await asyncio.sleep(pace)
            while job.changes == seen:
                try:
                    await asyncio.wait_for(job.changed.wait(), heartbeat)
                except TimeoutError:
                    yield HEARTBEAT

    async def close(self, *, grace: float = 2.0) -> None:
        """Stop all jobs and wait for their processes to end.

        Parameters
        ----------
        grace : float
            Seconds that they have; short, because the service has to end in time.
        """
        self._is_closed = True
        unfinished = [job for job in self._jobs.values() if not job.is_finished]
        for job in unfinished:
            self._request_stop(job, grace)
        for job in unfinished:
            while not job.is_finished:
                await job.changed.wait()

    def _job(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job is None:
            raise Problem("not-found", "no job has this id; old ones are removed")
        return job

    # From queued to finished.

    def _start_next(self) -> None:
        """Start queued jobs while a worker is free."""
        while self._queue and len(self._running) < self._workers:
            job = self._queue.popleft()
            self._running.append(job)
            job.change(state="running")
            timer = asyncio.get_running_loop().call_later(
                self._time_limit, self._stop_over_time, job
            )
            job.timers.append(timer)
            self._start_process(job)

    def _start_process(self, job: Job) -> None:
        """Start a thread that starts the process and passes on what it reports."""
        loop = asyncio.get_running_loop()

        def call(function: Callable[..., None], *arguments: object) -> None:
            # There may be no loop any more when a process ends.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(function, job, *arguments)

        def run(spec: Spec) -> None:
            _prepare(job.folder, job.view)
            end = run_process(
                spec,
                on_start=partial(call, self._started),
                on_message=partial(call, self._received),
            )
            call(self._ended, end)

        threading.Thread(target=run, args=(job.spec,), name=job.view.id, daemon=True).start()

    def _request_stop(self, job: Job, grace: float) -> None:
        """Request that a job stops; kill its process after a while."""
        job.is_stopping = True
        if job in self._queue:
            self._queue.remove(job)
            self._finish(job, state="stopped")
            return
        if job.process is not None:
            say_stop(job.process)
        job.timers.append(asyncio.get_running_loop().call_later(grace, self._kill, job))

    def _stop_over_time(self, job: Job) -> None:
        if not job.is_stopping:
            job.is_over_time = True
            self._request_stop(job, self._grace)

    def _kill(self, job: Job) -> None:
        if job.process is not None:
            kill(job.process)

    def _started(self, job: Job, process: subprocess.Popen[bytes]) -> None:
        """Note the process of a job."""
        job.process = process
        if job.is_stopping:
            say_stop(process)

    def _received(self, job: Job, message: Message) -> None:
        """Note what a process reported."""
        members = {name: getattr(message, name) for name in message.__struct_fields__}
        job.change(**{name: value for name, value in members.items() if value is not None})

    def _ended(self, job: Job, end: End) -> None:
        """Note that a process has ended."""
        self._running.remove(job)
        view = job.view
        if job.is_over_time:
            detail = f"the job was stopped after {self._time_limit:,.0f} seconds; `partial` is kept"
            problem = Problem("job-over-time", detail).to_dict()
            self._finish(job, "failed", problem, partial=view.result or view.partial, result=None)
        elif job.is_stopping:
            self._finish(job, "stopped")
        elif view.problem is not None:
            self._log(job, end)
            self._finish(job, "failed", view.problem)
        elif view.result is not None:
            self._finish(job, "done")
        else:
            self._log(job, end)
            self._finish(job, "failed", Problem("job-died", end.explanation).to_dict())
        self._start_next()

    def _log(self, job: Job, end: End) -> None:
        """Log a job that died or has a bug; what users can fix is in the job itself."""
        if self._journal is not None and end.last_words:
            members = {"job": job.view.id, "kind": job.view.kind, "stderr": end.last_words}
            self._journal.event("error", "job", code=end.code, **members)

    def _finish(
        self,
        job: Job,
        state: JobState,
        problem: dict[str, object] | None = None,
        **members: object,
    ) -> None:
        """Nothing changes any more."""
        for timer in job.timers:
            timer.cancel()
        job.spec = None
        job.process = None
        job.change(state=state, problem=problem, finished=_now(), **members)
        forgotten = self._forget_oldest()
        threading.Thread(target=_tidy, args=(job.folder, job.view, forgotten)).start()

    def _forget_oldest(self) -> list[Path]:
        """Forget the oldest finished jobs above the number that is kept; return their folders."""
        finished = [job for job in self._jobs.values() if job.is_finished]
        oldest = finished[: max(0, len(finished) - self._kept)]
        for job in oldest:
            del self._jobs[job.view.id]
        return [job.folder for job in oldest]


# Files.


def _stored_jobs(folder: Path) -> list[Job]:
    """The jobs of earlier runs of the service, in order; what had not finished has failed."""
    jobs = []
    for path in folder.glob("job_*/job.json"):
        try:
            view = msgspec.json.decode(path.read_bytes(), type=JobView)
        except (OSError, msgspec.MsgspecError):
            shutil.rmtree(path.parent, ignore_errors=True)
            continue
        job = Job(view, None, path.parent)
        if not job.is_finished:
            problem = Problem("job-died", "the service was restarted; submit the job again")
            job.change(state="failed", problem=problem.to_dict(), finished=_now())
            _store(job.folder, job.view)
        jobs.append(job)
    return sorted(jobs, key=lambda job: job.view.created)


def _prepare(folder: Path, view: JobView) -> None:
    """Make the folder of a job; a failure shows when its process needs the folder."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True)
    _store(folder, view)


def _store(folder: Path, view: JobView) -> None:
    """Write what is known of a job."""
    unfinished = folder / "job.json.part"
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(view))
        unfinished.rename(folder / "job.json")


def _tidy(folder: Path, view: JobView, forgotten: list[Path]) -> None:
    """Write a finished job, remove what only its process needed, and the folders of old jobs."""
    if folder.is_dir():
        shutil.rmtree(folder / SPILL, ignore_errors=True)
        with suppress(OSError):
            (folder / STDERR).unlink(missing_ok=True)
        _store(folder, view)
    for old in forgotten:
        shutil.rmtree(old, ignore_errors=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
