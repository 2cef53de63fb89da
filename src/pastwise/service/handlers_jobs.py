"""Handlers of jobs: work in processes of its own, which never delays a decision."""

from __future__ import annotations

import asyncio
import re

from starlette.responses import FileResponse, Response, StreamingResponse

from pastwise.service.calls import (
    OCTETS,
    POLICY,
    Answer,
    Call,
    Headers,
    Operation,
)
from pastwise.service.handlers_decisions import parsed_time
from pastwise.service.handlers_logs import require_log
from pastwise.service.problems import Problem
from pastwise.service.queries import (
    PageQuery,
    PeriodQuery,
)
from pastwise.service.types import (
    EvaluationRequest,
    JobKind,
    JobView,
    LearnRequest,
    Page,
    ReplayRequest,
    SummaryRequest,
)

EVENT_STREAM = "text/event-stream"
PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv"

LONGEST_WAIT = 60.0
"""Seconds that a request may wait for a job; proxies commonly give up then."""

LONGEST_JOB = 86_400.0
"""Seconds after which a job has ended in any case."""

_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])")


# Starting jobs


async def replay(call: Call, body: ReplayRequest) -> Answer:
    """Replay all events of a policy, and compare."""
    view = call.service.engine.policy(call.params["policy"])
    arguments = {**(await _version(call, view.settings.version)), "to_seq": body.to_seq}
    return await started(call, "replay", arguments)


async def evaluate(call: Call, body: EvaluationRequest) -> Answer:
    """Evaluate a version on the decisions that were made, or on an uploaded log."""
    arguments: dict[str, object] = {
        "version": await _version(call, body.version),
        "samples": body.samples,
        "horizon": body.horizon,
        "seed": body.seed,
    }
    if body.log is None:
        arguments["decisions"] = _decisions(call)
    else:
        arguments["log"] = str(require_log(call.service.uploads, body.log))
    return await started(call, "evaluate", arguments)


async def summarise(call: Call, body: SummaryRequest) -> Answer:
    """Describe an uploaded log."""
    path = require_log(call.service.uploads, call.params["id"])
    return await started(call, "summarise", {"log": str(path), "columns": body.columns})


async def learn(call: Call, body: LearnRequest) -> Answer:
    """Learn a new version from a version and the outcomes since; it is not in use yet."""
    since = parsed_time(body.since, "/since")
    until = parsed_time(body.until, "/until")
    arguments = {
        "version": await _version(call, body.version),
        "decisions": _decisions(call, since, until),
    }
    job_id = call.service.jobs.submit("learn", arguments, call.who)
    call.service.in_background(_add_learned(call, job_id, body.note))
    return await progress(call, job_id)


async def _add_learned(call: Call, job_id: str, note: str) -> None:
    """Add the policy file of a job as the next version, as soon as it is there."""
    service = call.service
    view = await service.jobs.wait(job_id, LONGEST_JOB)
    path = service.jobs.file(job_id)
    if view.state != "done" or path is None:
        return
    artefact = await asyncio.to_thread(path.read_bytes)
    name = call.params["policy"]
    note = f"{note} (learned by {job_id})".strip()
    await service.engine.add_version(name, artefact, None, note, call.who)


async def _version(call: Call, number: int | None) -> dict[str, object]:
    """A version of the policy, for a job; the one in use by default."""
    view = call.service.engine.policy(call.params["policy"])
    number = view.settings.version if number is None else number
    if number is None:
        raise Problem("no-version", f"The policy {view.name!r} has no version yet.")
    if await call.service.read(call.service.store.version, view.name, number) is None:
        raise Problem("not-found", f"The policy {view.name!r} has no version {number}.")
    return {"store": call.service.store_address, "policy": view.name, "version": number}


def _decisions(call: Call, since: int | None = None, until: int | None = None) -> dict[str, object]:
    """Decisions of the policy, for a job."""
    name = call.service.engine.policy(call.params["policy"]).name
    return {
        "store": call.service.store_address,
        "policy": name,
        "since": since,
        "until": until,
    }


async def started(call: Call, kind: JobKind, arguments: dict[str, object]) -> Answer:
    """Submit a job."""
    return await progress(call, call.service.jobs.submit(kind, arguments, call.who))


async def progress(call: Call, job_id: str) -> Answer:
    """A job that was submitted; its result if the client waits and it is done by then."""
    seconds = _preferred_wait(call)
    view = await call.service.jobs.wait(job_id, seconds or 0.0)
    headers: Headers = ((b"location", f"/v1/jobs/{job_id}".encode()),)
    if seconds is not None:
        headers = (*headers, (b"preference-applied", b"wait=%d" % seconds))
    return Answer(view, 202 if view.finished is None else 200, headers)


def _preferred_wait(call: Call) -> float | None:
    """Seconds that the client prefers to wait (RFC 7240)."""
    found = _WAIT.search(call.header(b"prefer") or "")
    return None if found is None else min(float(found[1]), LONGEST_WAIT)


# Exports


async def decisions_parquet(call: Call) -> Answer | Response:
    """Decisions as a log that `pastwise learn` reads."""
    return await _export(call, "parquet", PARQUET)


async def decisions_csv(call: Call) -> Answer | Response:
    """Decisions as a table for a spreadsheet; no cell of it is a formula."""
    return await _export(call, "csv", CSV)


async def _export(call: Call, kind: str, media_type: str) -> Answer | Response:
    """Export decisions in a job; one that takes too long is answered as a job."""
    query = call.query(PeriodQuery)
    since = parsed_time(query.since, "?since")
    until = parsed_time(query.until, "?until")
    arguments = {"decisions": _decisions(call, since, until), "format": kind}
    jobs = call.service.jobs
    job_id = jobs.submit("export", arguments, call.who)
    view = await jobs.wait(job_id, LONGEST_WAIT)
    if view.problem is not None:
        raise _failure(view.problem)
    path = jobs.file(job_id)
    if path is None:
        return Answer(view, 202, ((b"location", f"/v1/jobs/{job_id}".encode()),))
    name = f"{call.params['policy']}-{path.name}"
    return FileResponse(path, media_type=media_type, filename=name)


def _failure(problem: dict[str, object]) -> Problem:
    """The problem of a job as the one of the request that waited for it."""
    slug = str(problem["type"]).rpartition("/")[2]
    return Problem(slug, str(problem.get("detail", "")))


# Looking at jobs


async def jobs(call: Call) -> Answer:
    """Jobs, the newest first; a token that is bound to policies sees its own."""
    query = call.query(PageQuery)
    views = [view for view in call.service.jobs.views() if _is_visible(call, view)]
    ids = [view.id for view in views]
    start = ids.index(query.cursor) + 1 if query.cursor in ids else 0
    items = views[start : start + query.limit]
    has_more = start + len(items) < len(views)
    return Answer(Page(items, items[-1].id if has_more else None))


async def job(call: Call) -> Answer:
    """A job, with what it has found so far."""
    view = _visible(call)
    seconds = _preferred_wait(call)
    if seconds is not None:
        view = await call.service.jobs.wait(view.id, seconds)
    return Answer(view)


async def job_events(call: Call) -> Response:
    """A job each time it has changed."""
    frames = call.service.jobs.events(_visible(call).id)
    return StreamingResponse(call.while_admitted(frames), media_type=EVENT_STREAM)


async def job_file(call: Call) -> Response:
    """The file that a job made."""
    view = _visible(call)
    path = call.service.jobs.file(view.id)
    if path is None:
        raise Problem("not-found", f"The job {view.id} has no file, or not yet.")
    return FileResponse(path, filename=path.name)


async def stop_job(call: Call) -> Answer:
    """Stop a job; what it has found so far is kept."""
    return Answer(call.service.jobs.stop(_visible(call).id))


def _visible(call: Call) -> JobView:
    """The job that the address names."""
    view = call.service.jobs.view(call.params["id"])
    if not _is_visible(call, view):
        raise Problem("not-found", "No job has this id.")
    return view


def _is_visible(call: Call, view: JobView) -> bool:
    return call.holder.policies is None or view.who == call.who


OPERATIONS = (
    Operation(
        "GET",
        f"{POLICY}/decisions.parquet",
        decisions_parquet,
        "Export decisions as a log that `pastwise learn` reads.",
        query=PeriodQuery,
        answer=PARQUET,
        later=JobView,
        problems=("too-many-jobs", "job-over-time", "job-died", "disk-full"),
    ),
    Operation(
        "GET",
        f"{POLICY}/decisions.csv",
        decisions_csv,
        "Export decisions as a table for a spreadsheet.",
        query=PeriodQuery,
        answer=CSV,
        later=JobView,
        problems=("too-many-jobs", "job-over-time", "job-died", "disk-full"),
    ),
    Operation(
        "POST",
        f"{POLICY}/replay",
        replay,
        "Start a job: replay all events and compare.",
        role="edit",
        rate="write",
        body=ReplayRequest,
        answer=JobView,
        status=202,
        problems=("too-many-jobs", "no-version"),
    ),
    Operation(
        "POST",
        f"{POLICY}/evaluations",
        evaluate,
        "Start a job: evaluate a version on its decisions or on an uploaded log.",
        role="edit",
        rate="write",
        body=EvaluationRequest,
        answer=JobView,
        status=202,
        problems=("too-many-jobs", "no-version", "nothing-to-learn"),
    ),
    Operation(
        "POST",
        f"{POLICY}/learn",
        learn,
        "Start a job: learn a new version from the outcomes since.",
        role="deploy",
        rate="write",
        body=LearnRequest,
        answer=JobView,
        status=202,
        problems=("too-many-jobs", "no-version", "nothing-to-learn"),
    ),
    Operation(
        "GET",
        "/v1/jobs",
        jobs,
        "List jobs, the newest first.",
        query=PageQuery,
        answer=Page[JobView],
    ),
    Operation("GET", "/v1/jobs/{id}", job, "Look up a job.", answer=JobView),
    Operation(
        "GET",
        "/v1/jobs/{id}/file",
        job_file,
        "Download the file that a job made.",
        answer=OCTETS,
    ),
    Operation(
        "GET",
        "/v1/jobs/{id}/events",
        job_events,
        "Follow a job, as Server-Sent Events.",
        answer=EVENT_STREAM,
    ),
    Operation(
        "DELETE",
        "/v1/jobs/{id}",
        stop_job,
        "Stop a job; what it has found so far is kept.",
        role="edit",
        rate="write",
        answer=JobView,
    ),
    Operation(
        "POST",
        "/v1/logs/{id}/summaries",
        summarise,
        "Start a job: describe the columns of an uploaded log, or read it as to learn from it.",
        role="edit",
        rate="write",
        body=SummaryRequest,
        answer=JobView,
        status=202,
        is_policy_bound=False,
        problems=("too-many-jobs",),
    ),
)
