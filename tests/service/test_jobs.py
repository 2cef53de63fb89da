"""Jobs in real processes: queue, progress, stop, limits, restart."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pastwise
from pastwise.service.jobs import Jobs
from pastwise.service.journal import Journal
from pastwise.service.problems import Problem
from pastwise.service.store import open_store
from pastwise.service.store.rows import Insert, VersionRow
from pastwise.service.stream import HEARTBEAT
from pastwise.service.types import JobView
from pastwise.service.worker import Limits
from tests.helpers.service_rows import POLICY, START

LONG = 60.0
"""Seconds that no test should need; a busy machine may."""


def run(folder: Path, body: Callable[[Jobs], Awaitable[None]], **options: Any) -> None:
    """Run a body with jobs that are closed afterwards."""

    async def whole() -> None:
        jobs = Jobs(folder, **{"niceness": 0, **options})
        try:
            await asyncio.wait_for(body(jobs), 2 * LONG)
        finally:
            await jobs.close()

    asyncio.run(whole())


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """Arguments of a quick job and of one that takes minutes."""
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "log.csv").write_text("state,action\n" + "cold,heat\nwarm,wait\n" * 5)

    # A policy of many states, and another log of the same.
    first, second = (_random_log(seed) for seed in range(2))
    pq.write_table(second, folder / "log.parquet")
    learner = pastwise.TransferLearner(pastwise.Goal(prefer={"7": 1.0}), method="TL")
    learner.fit(first, state="s", action="a", next_state="n").save(folder / "policy")
    store = open_store(folder / "store")
    artefact = (folder / "policy").read_bytes()
    row = VersionRow(POLICY, 1, "", artefact, bytes(16), "", "[]", "me", START)
    store.submit([Insert(row)]).result()
    store.close()
    version = {"store": str(folder / "store"), "policy": POLICY, "version": 1}
    return {
        "quick": {"log": str(folder / "log.csv")},
        "long": {
            "version": version,
            "log": str(folder / "log.parquet"),
            "samples": 1_000_000,
            "preview": 10_000,
        },
    }


def _random_log(seed: int, size: int = 3000) -> pa.Table:
    """Records of 30 states, each of which occurs."""
    rng = np.random.default_rng(seed)
    states = rng.permutation(np.arange(size) % 30).astype(str)
    actions = rng.choice(["x", "y", "z"], size)
    following = rng.permutation(np.arange(size) % 30).astype(str)
    return pa.table({"s": states, "a": actions, "n": following})


def test_a_job_is_done_in_a_process_of_its_own(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.submit("summarise", inputs["quick"], "me")
        assert jobs.view(job).state in ("queued", "running")
        view = await jobs.wait(job, LONG)
        assert (view.state, view.problem, view.who) == ("done", None, "me")
        assert view.result is not None
        assert view.result["rows"] == 10
        assert view.finished is not None
        assert view.finished >= view.created
        assert [each.id for each in jobs.views()] == [job]
        events = [chunk async for chunk in jobs.events(job)]
        assert len(events) == 1
        assert events[0].startswith(b"id: ")
        assert b"\nevent: done\n" in events[0]

        # What the user did wrong is the job's problem.
        missing = jobs.submit("summarise", {"log": str(tmp_path / "none.csv")}, "me")
        view = await jobs.wait(missing, LONG)
        assert view.state == "failed"
        assert view.problem is not None
        assert view.problem["status"] in (422, 503)

    run(tmp_path, body)


def test_a_long_job_reports_and_keeps_what_it_has_when_stopped(
    tmp_path: Path, inputs: dict[str, Any]
) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.submit("evaluate", inputs["long"], "me")
        events = jobs.events(job, pace=0.0)
        view = await _read(events)
        while view.partial is None:
            view = await _read(events)
        assert view.state == "running"
        assert view.partial["samples"] == 100
        assert view.progress is not None
        assert view.progress.of == 1_000_000

        # It yields by as much as was said, in a session of its own.
        pid = await _pid(jobs, job)
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert b"pastwise.service.worker" in _command(Path(f"/proc/{pid}"))
        assert os.getpriority(os.PRIO_PROCESS, pid) == own + 1
        assert os.getsid(pid) == pid

        jobs.stop(job)
        jobs.stop(job)
        view = await jobs.wait(job, LONG)
        assert (view.state, view.problem) == ("stopped", None)
        assert view.result is not None
        assert 0 < int(str(view.result["samples"])) < 1_000_000
        rest = [chunk async for chunk in events]
        assert b"event: stopped" in rest[-1]
        assert jobs.stop(job) == view

    run(tmp_path, body, grace=LONG, niceness=1)


async def _read(events: AsyncIterator[bytes]) -> JobView:
    """The job in the next event."""
    async for chunk in events:
        if chunk != HEARTBEAT:
            return msgspec.json.decode(chunk.split(b"data: ")[1], type=JobView)
    raise AssertionError("there is no other event")


def _command(process: Path) -> bytes:
    """The command line of a process; nothing if it has ended."""
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_a_queue_is_bounded_and_in_order(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        first = jobs.submit("evaluate", inputs["long"], "me")
        second = jobs.submit("summarise", inputs["quick"], "me")
        third = jobs.submit("summarise", inputs["quick"], "me")
        with pytest.raises(Problem) as caught:
            jobs.submit("summarise", inputs["quick"], "me")
        assert (caught.value.slug, caught.value.status) == ("too-many-jobs", 429)
        assert "Retry-After" in caught.value.headers
        assert [each.state for each in jobs.views()] == ["queued", "queued", "running"]

        # A queued job is stopped at once; the others move up.
        assert jobs.stop(second).state == "stopped"
        jobs.stop(first)
        assert (await jobs.wait(third, LONG)).state == "done"
        assert jobs.view(first).state == "stopped"

    run(tmp_path, body, workers=1, waiting=2, grace=0.1)


def test_a_job_that_takes_too_long_fails_and_keeps_its_partial_result(
    tmp_path: Path, inputs: dict[str, Any]
) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.submit("evaluate", inputs["long"], "me")
        view = await jobs.wait(job, LONG)
        assert view.state == "failed"
        assert view.problem is not None
        assert view.problem["type"] == "/problems/job-over-time"
        assert view.result is None

    run(tmp_path, body, time_limit=0.5, grace=0.5)


def test_a_job_that_does_not_stop_is_killed(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.submit("evaluate", inputs["long"], "me")
        pid = await _pid(jobs, job)
        os.kill(pid, signal.SIGSTOP)
        jobs.stop(job)
        view = await jobs.wait(job, LONG)
        assert view.state == "stopped"
        assert not Path(f"/proc/{pid}").exists()

    run(tmp_path, body, grace=0.1)


async def _pid(jobs: Jobs, job_id: str) -> int:
    """The process of a job, once there is one."""
    async with asyncio.timeout(LONG):
        while True:
            process = jobs._jobs[job_id].process
            if process is not None:
                return process.pid
            await asyncio.sleep(0.01)


def test_a_process_that_dies_is_a_failed_job(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.submit("evaluate", inputs["long"], "me")
        os.kill(await _pid(jobs, job), signal.SIGKILL)
        view = await jobs.wait(job, LONG)
        assert view.state == "failed"
        assert view.problem is not None
        assert view.problem["type"] == "/problems/job-died"
        assert "SIGKILL" in str(view.problem["detail"])

    run(tmp_path, body)


def test_a_bug_is_in_the_journal_and_not_in_the_job(tmp_path: Path) -> None:
    stream = io.StringIO()

    async def body(jobs: Jobs) -> None:
        job = jobs.submit("summarise", {"unknown": "secret"}, "me")
        view = await jobs.wait(job, LONG)
        assert view.state == "failed"
        assert view.problem is not None
        assert view.problem["type"] == "/problems/bug"
        assert "detail" not in view.problem
        line = json.loads(stream.getvalue())
        assert line["job"] == job
        assert "ValidationError" in line["stderr"]

    run(tmp_path, body, journal=Journal(stream))


def test_memory_is_bounded(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        view = await jobs.wait(jobs.submit("evaluate", inputs["long"], "me"), LONG)
        assert view.state == "failed"
        assert view.problem is not None
        assert view.problem["type"] in ("/problems/job-out-of-memory", "/problems/job-died")

    run(tmp_path, body, limits=Limits(memory_mb=60, niceness=0))


SERVICE = """
import asyncio, json, os, signal, sys
from pathlib import Path
from pastwise.service.jobs import Jobs

async def main():
    folder, inputs = Path(sys.argv[1]), json.loads(sys.argv[2])
    jobs = Jobs(folder, grace=0.2, niceness=0)
    done = jobs.submit("summarise", inputs["quick"], "me")
    await jobs.wait(done, 60)
    running = jobs.submit("evaluate", inputs["long"], "me")
    while jobs._jobs[running].process is None:
        await asyncio.sleep(0.01)
    print(json.dumps([done, running, jobs._jobs[running].process.pid]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_a_killed_service_leaves_no_process_and_says_so_at_the_next_start(
    tmp_path: Path, inputs: dict[str, Any]
) -> None:
    (tmp_path / "job_damaged").mkdir()
    (tmp_path / "job_damaged" / "job.json").write_text("{")
    command = [sys.executable, "-c", SERVICE, str(tmp_path), json.dumps(inputs)]
    killed = subprocess.run(command, capture_output=True, check=False, timeout=LONG)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done, running, pid = json.loads(killed.stdout)

    async def after(jobs: Jobs) -> None:
        assert [view.id for view in jobs.views()] == [running, done]
        assert jobs.view(done).state == "done"
        assert jobs.view(done).result is not None
        view = jobs.view(running)
        assert view.state == "failed"
        assert view.problem is not None
        assert "restarted" in str(view.problem["detail"])
        async with asyncio.timeout(LONG):
            while _command(Path(f"/proc/{pid}")):
                await asyncio.sleep(0.01)

    run(tmp_path, after)
    assert not (tmp_path / "job_damaged").exists()


def test_old_jobs_are_forgotten_with_their_files(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        first = jobs.submit("summarise", inputs["quick"], "me")
        await jobs.wait(first, LONG)
        second = jobs.submit("summarise", inputs["quick"], "me")
        await jobs.wait(second, LONG)
        with pytest.raises(Problem, match="no job has this id"):
            jobs.view(first)
        async with asyncio.timeout(LONG):
            while [path.name for path in tmp_path.iterdir()] != [second]:
                await asyncio.sleep(0.01)

    run(tmp_path, body, kept=1)


def test_close_ends_everything(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body() -> None:
        jobs = Jobs(tmp_path, workers=1, niceness=0)
        running = jobs.submit("evaluate", inputs["long"], "me")
        queued = jobs.submit("evaluate", inputs["long"], "me")
        pid = await _pid(jobs, running)
        await jobs.close(grace=0.1)
        assert jobs.view(running).state == "stopped"
        assert jobs.view(queued).state == "stopped"
        assert not Path(f"/proc/{pid}").exists()
        with pytest.raises(Problem, match="no more jobs"):
            jobs.submit("summarise", inputs["quick"], "me")

    asyncio.run(asyncio.wait_for(body(), LONG))


def test_a_job_without_a_folder_fails(tmp_path: Path, inputs: dict[str, Any]) -> None:
    (tmp_path / "jobs").write_text("a file")

    async def body(jobs: Jobs) -> None:
        view = await jobs.wait(jobs.submit("summarise", inputs["quick"], "me"), LONG)
        assert view.state == "failed"
        assert view.problem is not None
        assert "code 1" in str(view.problem["detail"])

    run(tmp_path / "jobs", body)


def test_a_silent_job_sends_heartbeats(tmp_path: Path, inputs: dict[str, Any]) -> None:
    async def body(jobs: Jobs) -> None:
        job = jobs.submit("summarise", inputs["quick"], "me")
        assert jobs.file(job) is None
        events = [chunk async for chunk in jobs.events(job, heartbeat=0.01, pace=0.0)]
        assert HEARTBEAT in events
        assert b"event: done" in events[-1]

    run(tmp_path, body)


def test_unknown_jobs_are_problems(tmp_path: Path) -> None:
    async def body(jobs: Jobs) -> None:
        for look in (jobs.view, jobs.stop, jobs.file):
            with pytest.raises(Problem) as caught:
                look("job_none")
            assert caught.value.slug == "not-found"

    run(tmp_path, body)
