"""Projects as pages get them: in a list, and in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pastwise.service.types import JobView, Page, ProgressView
from pastwise.workbench.projects import Project, etag_of
from pastwise.workbench.types import (
    DeployedView,
    DraftSummary,
    FindingSummary,
    JobSummary,
    ProjectSummary,
    ProjectView,
    Word,
)
from pastwise.workbench.types_log import GuessView
from pastwise.workbench.types_preview import VerdictView

if TYPE_CHECKING:
    from pastwise.workbench.app import Workbench

NO_GUESS = GuessView([], [], [], None, None, 0.0, "The log is not at hand.")


def project_list(bench: Workbench, cursor: str | None, limit: int) -> Page[ProjectSummary]:
    """The logs, those changed last first."""
    found = bench.projects.all()
    ids = [project.id for project in found]
    start = ids.index(cursor) + 1 if cursor in ids else 0
    shown = found[start : start + limit]
    items = [_summary(bench, project) for project in shown]
    has_more = start + len(items) < len(found)
    return Page(items, items[-1].id if has_more else None)


def project_view(bench: Workbench, found: Project) -> ProjectView:
    """A project as pages get it."""
    drafts = [
        DraftSummary(
            id=draft.id,
            name=draft.name,
            goal=draft.goal,
            sentence=draft.sentence,
            method=draft.method,
            counts=draft.counts,
            changed=draft.changed,
            deployed=draft.deployed,
        )
        for draft in bench.projects.drafts(found.id)
    ]
    return ProjectView(
        id=found.id,
        name=found.name,
        kind=found.kind,
        bytes=found.bytes,
        rows=found.rows,
        sampled=found.sampled,
        source=found.source.place,
        columns=found.columns,
        guess=found.guess or NO_GUESS,
        mapping=found.mapping,
        counts=found.counts,
        order=found.order,
        validation=found.validation,
        drafts=drafts,
        policies=found.policies,
        changed=found.changed,
        etag=etag_of(found),
    )


def _summary(bench: Workbench, found: Project) -> ProjectSummary:
    """A project in a list."""
    drafts = bench.projects.drafts(found.id)
    last = max(drafts, key=lambda draft: draft.changed, default=None)
    verdicts = [] if last is None else last.verdicts
    by_own_goal = [each for each in verdicts if each.goal is None]
    verdict = by_own_goal[-1] if by_own_goal else None
    validation = found.validation
    findings = [] if validation is None else validation.findings
    return ProjectSummary(
        id=found.id,
        name=found.name,
        kind=found.kind,
        rows=found.rows,
        states=found.num_states,
        actions=found.num_actions,
        counts=found.counts,
        goal=None if last is None else last.sentence,
        verdict=None if verdict is None else verdict.verdict,
        gain=None if verdict is None else verdict.difference,
        deployed=_deployed(bench, found.policies),
        changed=max([found.changed, *(draft.changed for draft in drafts)]),
        findings=[FindingSummary(each.code, each.severity, each.message) for each in findings],
        origin=found.source.kind,
        drafts=len(drafts),
        jobs=[_job(job) for job in bench.jobs_of(found.id)],
    )


def _job(job: JobView) -> JobSummary:
    """A job under way in one line."""
    progress = job.progress or ProgressView(0)
    so_far: Word | None = None
    if job.kind == "verdict" and job.partial is not None:
        verdict = msgspec.convert(job.partial, VerdictView)
        so_far = "cannot tell" if verdict.overruled_by else verdict.verdict["logged"]
    return JobSummary(job.id, job.kind, progress.done, progress.of, so_far)


def _deployed(bench: Workbench, policies: list[str]) -> DeployedView | None:
    """The policy of a log that needs the first look: with an alarm, live, or the newest."""
    served = {view.name: view for view in bench.engine.policies()}
    views = [served[name] for name in policies if name in served]
    if not views:
        return None
    view = max(views, key=lambda each: (each.alarm, each.settings.mode == "live", each.created))
    return DeployedView(view.name, view.settings.mode, view.alarm, view.settings.version)
