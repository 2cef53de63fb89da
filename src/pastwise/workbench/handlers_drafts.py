"""Handlers of previews, of drafts, and of the jobs that judge them."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from pastwise.errors import PastwiseError
from pastwise.goals.goal import Goal
from pastwise.logs.findings import Finding
from pastwise.methods.base import for_another_goal
from pastwise.methods.registry import create, text_of
from pastwise.policy.card import PolicyCard
from pastwise.policy.learner import TransferLearner
from pastwise.policy.summary import QuickVerdict, quick_verdict, stored_verdict
from pastwise.report.card import card_html
from pastwise.service import handlers_jobs as on_jobs
from pastwise.service import handlers_policies as on_policies
from pastwise.service.calls import OCTETS, Answer, Call, decoded
from pastwise.service.problems import Problem, problem_of
from pastwise.workbench.app import Workbench
from pastwise.workbench.handlers_projects import arguments_of, bench_of, now_text
from pastwise.workbench.preview import explained, goal_problem
from pastwise.workbench.projects import Draft, etag_of, log_file, new_id
from pastwise.workbench.types import SAMPLES, GoalContent
from pastwise.workbench.types_drafts import (
    ComparisonRequest,
    DraftEvaluationRequest,
    DraftPatch,
    DraftRequest,
    DraftVersionRequest,
    DraftView,
    ExplainQuery,
    KeptVerdict,
    ProbeRequest,
    RunningVerdict,
)
from pastwise.workbench.types_preview import (
    ObjectionView,
    PreviewRequest,
    PreviewView,
    Wanted,
)

HTML = "text/html"

_VERSION = msgspec.json.Decoder(DraftVersionRequest)


# The preview


async def preview(call: Call, body: PreviewRequest) -> Answer:
    """A policy for a goal; nothing is stored."""
    bench = bench_of(call)
    counts_id = call.params["id"]
    found = bench.projects.of_counts(counts_id)

    want = body.want

    def work() -> PreviewView:
        counted = bench.counted(counts_id)
        return bench.previews.preview(counted, body, found.order, found.validation)

    # Verdicts and reading a log may take long: previews of other goals do not wait for them.
    who = call.holder.id
    is_long = want.verdict is not None or want.past
    compute = bench.judge if is_long else bench.compute
    view = await bench.turns.take(f"{who} {_subject(want)}", lambda: compute(work))
    if view.explain is not None and want.rows:
        await bench.rows_behind.add_to(view.explain, bench, counts_id, want.rows, who)
    return Answer(await bench.compute(lambda: msgspec.json.encode(view)))


def _subject(want: Wanted) -> str:
    """What a preview is about: parts of a page that show different things all get their answers."""
    if want.rows:
        return "rows"
    if want.explain is not None:
        return "reasons"
    if want.verdict is not None:
        return "verdict"
    if want.past:
        return "past"
    return "policy" if want.rule.states is None else "states"


# Drafts


async def create_draft(call: Call, body: DraftRequest) -> Answer:
    """Save a policy."""
    bench = bench_of(call)
    counts_id = call.params["id"]
    found = bench.projects.of_counts(counts_id)
    learner = await _learned(bench, counts_id, body.goal, body.method)
    now = now_text(bench)
    draft = bench.projects.add_draft(
        Draft(
            id=new_id("dft"),
            project=found.id,
            counts=counts_id,
            name=body.name,
            goal=body.goal,
            sentence=learner.goal.describe(),
            method=text_of(learner.method_),
            note=body.note,
            created=now,
            changed=now,
        )
    )
    return _answer(bench, draft, 201)


async def draft(call: Call) -> Answer:
    """A saved policy."""
    return _answer(bench_of(call), _draft(call))


async def change_draft(call: Call, body: DraftPatch) -> Answer:
    """Change a saved policy."""
    bench = bench_of(call)
    found = _matching(call)
    members = {
        name: getattr(body, name)
        for name in body.__struct_fields__
        if getattr(body, name) is not UNSET
    }

    # Another goal or method is another policy: nothing was found out about it or made of it.
    if "goal" in members or "method" in members:
        goal = members.get("goal", found.goal)
        method = members.get("method", _method_for(goal, found))
        learner = await _learned(bench, found.counts, goal, method)
        members["method"] = text_of(learner.method_)
        members["sentence"] = learner.goal.describe()
        found = _matching(call)
        wanted = msgspec.structs.replace(found, goal=goal, method=members["method"])
        if not is_same_policy(found, wanted):
            members["verdicts"] = []
            members["deployed"] = []
    return _answer(bench, bench.projects.change(found, bench.clock(), **members))


def is_same_policy(one: Draft, two: Draft) -> bool:
    """Whether two drafts, or one draft at two times, have the same goal and method."""
    return (one.goal, one.method) == (two.goal, two.method)


def _method_for(goal: GoalContent, found: Draft) -> str:
    """The method of a draft, for this goal; what is known of the past was known of its own goal."""
    if goal == found.goal:
        return found.method
    return text_of(for_another_goal(create(found.method)))


async def delete_draft(call: Call) -> Answer:
    """Forget a saved policy; versions that were made of it stay."""
    bench_of(call).projects.remove_draft(_matching(call).id)
    return Answer(b"", 204)


def _draft(call: Call) -> Draft:
    return bench_of(call).projects.draft(call.params["id"])


def _matching(call: Call) -> Draft:
    """The draft, if it is still the one that the client has read."""
    found = _draft(call)
    etag = etag_of(found)
    if call.if_match(etag) != etag:
        raise Problem("stale", "The draft was changed in between; read it again.")
    return found


def _answer(bench: Workbench, found: Draft, status: int = 200) -> Answer:
    names = [name for name in DraftView.__struct_fields__ if name not in ("etag", "running")]
    members = {name: getattr(found, name) for name in names}
    running = [each for draft_id, each in bench.judging.values() if draft_id == found.id]
    etag = etag_of(found)
    headers: list[tuple[bytes, bytes]] = [(b"etag", f'"{etag}"'.encode())]
    if status == 201:
        headers.append((b"location", f"/v1/drafts/{found.id}".encode()))
    view = DraftView(**members, running=running, etag=etag)
    return Answer(view, status, tuple(headers))


async def _learned(
    bench: Workbench, counts_id: str, goal: GoalContent, method: str
) -> TransferLearner:
    """The policy for a goal."""
    return await bench.compute(
        lambda: bench.previews.learner(bench.counted(counts_id), goal, method)
    )


async def explain(call: Call) -> Answer:
    """Why the actions of a state have their probabilities, with rows of the log behind them."""
    query = call.query(ExplainQuery)
    bench = bench_of(call)
    found = _draft(call)
    learner = await _learned(bench, found.counts, found.goal, found.method)
    view = await bench.compute(lambda: explained(learner, query.state, query.action))
    await bench.rows_behind.add_to(view, bench, found.counts, query.rows, call.holder.id)
    return Answer(view)


# Files


async def draft_report(call: Call) -> Answer:
    """The report of a policy, for the person who signs it off."""
    bench = bench_of(call)
    found = _draft(call)
    learner = await _learned(bench, found.counts, found.goal, found.method)
    evaluation = stored_evaluation(bench, found)
    return await report_of(learner, found.name, evaluation, findings_of(bench, found))


async def report_of(
    learner: TransferLearner,
    title: str,
    evaluation: dict[str, Any] | None = None,
    findings: list[Finding] | None = None,
) -> Answer:
    """The report of a policy as a page.

    Parameters
    ----------
    evaluation : dict, optional
        A stored one; by default one is made.
    findings : list, optional
        What was odd in the log, where it is known.
    """

    def written() -> bytes:
        verdict = verdict_of(learner, evaluation)
        checksum = learner.checksum_ or _checksum(learner)
        card = PolicyCard.of(learner, verdict, title=title, checksum=checksum, findings=findings)
        return card_html(card).encode()

    body = await asyncio.to_thread(written)
    headers = ((b"content-security-policy", _policy_of_page(body)),)
    return Answer(body, 200, headers, b"text/html; charset=utf-8")


def verdict_of(learner: TransferLearner, evaluation: dict[str, Any] | None) -> QuickVerdict:
    """The verdict of a stored evaluation, or of one like those of the screens."""
    if evaluation is None:
        return quick_verdict(learner, samples=SAMPLES)
    return stored_verdict(evaluation)


def findings_of(bench: Workbench, found: Draft) -> list[Finding] | None:
    """What was odd in the log of a draft, if its counts are still those of the log."""
    project = bench.projects.project(found.project)
    if project.validation is None or project.counts != found.counts:
        return None
    views = project.validation.findings
    return [
        Finding(each.code, each.message, each.rows, each.fix, severity=each.severity)
        for each in views
    ]


def _checksum(learner: TransferLearner) -> str:
    """Checksum of the policy file."""
    with tempfile.TemporaryDirectory(prefix="pastwise-") as folder:
        learner.save(Path(folder) / "policy.safetensors")
    return learner.checksum_


def stored_evaluation(bench: Workbench, found: Draft) -> dict[str, Any] | None:
    """The newest evaluation of a draft by its own goal, where its job is still at hand."""
    for kept in reversed(found.verdicts):
        if kept.judge == found.sentence:
            try:
                return bench.jobs.view(kept.job).result
            except Problem:  # forgotten in the meantime
                return None
    return None


def _policy_of_page(body: bytes) -> bytes:
    """A content security policy that allows the styles of a page, by their hashes, and no more."""
    styles = re.findall(rb"<style[^>]*>(.*?)</style>", body, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(style).digest()) for style in styles]
    allowed = b" ".join(b"'sha256-%s'" % each for each in hashes) or b"'none'"
    return b"default-src 'none'; style-src %s; img-src data:; base-uri 'none'; sandbox" % allowed


async def draft_artefact(call: Call) -> Response:
    """The policy file of a draft."""
    found = _draft(call)
    body = await _artefact(bench_of(call), found)
    name = "".join(each if each.isalnum() and each.isascii() else "-" for each in found.name)
    headers = {"content-disposition": f'attachment; filename="{name[:60]}.safetensors"'}
    return Response(body, media_type=OCTETS, headers=headers)


async def _artefact(bench: Workbench, found: Draft) -> bytes:
    """What `TransferLearner.save` writes."""
    learner = await _learned(bench, found.counts, found.goal, found.method)

    def saved() -> bytes:
        with tempfile.TemporaryDirectory(prefix="pastwise-") as folder:
            path = Path(folder) / "policy.safetensors"
            learner.save(path)
            return path.read_bytes()

    return await asyncio.to_thread(saved)


async def add_version_of_draft(call: Call) -> Answer:
    """Add a policy file, or a draft, as the next version of a policy."""
    kind = (call.header(b"content-type") or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return await on_policies.add_version(call)
    bench = bench_of(call)
    limits = bench.settings.limits
    body = decoded(_VERSION, await call.read_json(limits.body, limits.body_seconds))
    found = bench.projects.draft(body.draft)
    name = bench.engine.policy(call.params["policy"]).name
    artefact = await _artefact(bench, found)
    note = body.note or found.name
    view = await bench.engine.add_version(name, artefact, None, note, call.who, tuple(body.despite))
    call.version = view.version

    # The draft may have become another policy in the meantime.
    draft = bench.projects.draft(body.draft)
    if is_same_policy(draft, found):
        deployed = [*draft.deployed, f"{name}@{view.version}"]
        bench.projects.change(draft, bench.clock(), deployed=deployed)
    project = bench.projects.project(found.project)
    if name not in project.policies:
        bench.projects.change(project, bench.clock(), policies=[*project.policies, name])
    location = f"/v1/policies/{name}/versions/{view.version}".encode()
    return Answer(view, 201, ((b"location", location),))


# Jobs


async def evaluate_draft(call: Call, body: DraftEvaluationRequest) -> Answer:
    """Start a job: whether a draft is better than what was done."""
    bench = bench_of(call)
    found = _draft(call)
    project = bench.projects.project(found.project)
    if body.judge is not None:
        _require_goal(body.judge, "/judge")
    arguments: dict[str, Any] = {
        "policy": _policy(bench, found),
        "judge": body.judge,
        "horizon": body.horizon,
        "samples": body.samples,
        "seed": body.seed,
        "blocking": _blocking(bench, found),
        "log": None,
    }
    if body.importance:
        if not project.source.file or project.counts != found.counts:
            raise Problem("nothing-to-learn", "Second opinions need the log, which is not at hand.")
        arguments["log"] = log_file(project)
    job_id = bench.submit("verdict", arguments, call.who, found.project)
    judge = found.sentence if body.judge is None else Goal.from_dict(body.judge).describe()
    bench.judging[job_id] = (found.id, RunningVerdict(job_id, body.judge))
    bench.in_background(_keep_verdict(bench, found, job_id, judge, body.judge))
    return await on_jobs.progress(call, job_id)


async def _keep_verdict(
    bench: Workbench, judged: Draft, job_id: str, judge: str, goal: GoalContent | None
) -> None:
    """Add the verdict of a job to those of its draft; too few samples give none."""
    view = await bench.jobs.wait(job_id, on_jobs.LONGEST_JOB)
    del bench.judging[job_id]
    result: Any = view.result
    if result is None or view.problem is not None:
        return
    if result["samples"] < result["thresholds"]["min_samples"]:
        return
    try:
        found = bench.projects.draft(judged.id)
    except Problem:  # deleted in the meantime
        return
    if not is_same_policy(found, judged):
        return
    against = result["comparisons"]["logged"]
    deciding = against["deciding"]
    kept = KeptVerdict(
        job=job_id,
        at=now_text(bench),
        verdict="cannot tell" if result["overruled_by"] else against["verdict"],
        difference=(deciding["low"], deciding["high"]) if deciding["low"] is not None else None,
        alarm=result["alarm"]["raised"],
        samples=result["samples"],
        judge=judge,
        goal=goal,
        level=deciding["level"],
        overruled=bool(result["overruled_by"]),
        objections=msgspec.convert(result["objections"], list[ObjectionView]),
    )
    bench.projects.change(found, bench.clock(), verdicts=[*found.verdicts, kept])


async def compare(call: Call, body: ComparisonRequest) -> Answer:
    """Start a job: judge drafts of one log by goals."""
    bench = bench_of(call)
    drafts = [bench.projects.draft(draft_id) for draft_id in dict.fromkeys(body.drafts)]
    if len({found.counts for found in drafts}) > 1:
        raise Problem(
            "invalid-value",
            "The drafts rest on different counts; save them again on the current mapping.",
        )
    for place, goal in enumerate(body.goals):
        _require_goal(goal, f"/goals/{place}")
    goals = body.goals or _distinct([found.goal for found in drafts])
    arguments = {
        "policies": {found.id: _policy(bench, found) for found in drafts},
        "goals": goals,
        "samples": body.samples,
        "seed": body.seed,
        "blocking": _blocking(bench, drafts[0]),
    }
    job_id = bench.submit("comparison", arguments, call.who, drafts[0].project)
    return await on_jobs.progress(call, job_id)


async def probe(call: Call, body: ProbeRequest) -> Answer:
    """Start a job: ask again with more columns in the state."""
    bench = bench_of(call)
    project = bench.projects.project(call.params["id"])
    if not project.source.file or project.mapping is None or project.counts is None:
        raise Problem("nothing-to-learn", "Choose the columns of the log first.")
    _require_goal(body.goal, "/goal")
    arguments = {
        "log": log_file(project),
        "counts": str(bench.projects.counts_file(project.counts)),
        "columns": arguments_of(project.mapping),
        "added": body.columns,
        "bins": body.bins,
        "goal": body.goal,
        "method": body.method,
        "samples": body.samples,
    }
    job_id = bench.submit("probe", arguments, call.who, project.id)
    return await on_jobs.progress(call, job_id)


def _policy(bench: Workbench, found: Draft) -> dict[str, Any]:
    """A draft for a job."""
    path = str(bench.projects.counts_file(found.counts))
    return {"counts": path, "goal": found.goal, "method": found.method}


def _blocking(bench: Workbench, found: Draft) -> list[str]:
    """Codes of findings that overrule a verdict."""
    project = bench.projects.project(found.project)
    if project.validation is None or project.counts != found.counts:
        return []
    findings = project.validation.findings
    return [each.code for each in findings if each.severity == "blocks-verdict"]


def _require_goal(goal: GoalContent, pointer: str) -> None:
    """Refuse what is no goal, before a job is started."""
    try:
        Goal.from_dict(goal)
    except PastwiseError as error:
        raise goal_problem(error, pointer) from None
    except (TypeError, ValueError) as error:
        raise problem_of(error, pointer) from None


def _distinct(goals: list[GoalContent]) -> list[GoalContent]:
    """Goals, each once."""
    by_text = {msgspec.json.encode(goal, order="sorted"): goal for goal in goals}
    return list(by_text.values())
