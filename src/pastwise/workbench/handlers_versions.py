"""Handlers of the files of a version: what it is, for people."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from pastwise.goals.goal import Goal
from pastwise.logs.findings import Finding
from pastwise.methods.registry import text_of
from pastwise.policy.card import PolicyCard
from pastwise.policy.learner import TransferLearner
from pastwise.report.card import card_markdown
from pastwise.service.calls import Answer, Call
from pastwise.service.handlers_policies import version_row
from pastwise.service.store.rows import VersionRow
from pastwise.service.versions import ServedVersion
from pastwise.workbench.app import Workbench
from pastwise.workbench.handlers_drafts import (
    findings_of,
    report_of,
    stored_evaluation,
    verdict_of,
)
from pastwise.workbench.handlers_projects import bench_of
from pastwise.workbench.projects import Draft

MARKDOWN = "text/markdown"
GOAL = "application/json"


async def version_report(call: Call) -> Answer:
    """The report of a version, for the person who signs it off."""
    bench = bench_of(call)
    row = await version_row(call)
    learner = await _learner(row)
    evaluation, findings = _known_of(bench, row, learner)
    return await report_of(learner, _title(row), evaluation, findings)


async def version_card(call: Call) -> Answer:
    """The policy card of a version."""
    bench = bench_of(call)
    row = await version_row(call)
    learner = await _learner(row)
    evaluation, findings = _known_of(bench, row, learner)

    def written() -> bytes:
        verdict = verdict_of(learner, evaluation)
        found = PolicyCard.of(learner, verdict, title=_title(row), findings=findings)
        return card_markdown(found).encode()

    body = await asyncio.to_thread(written)
    return Answer(body, 200, _attachment(row, "card.md"), f"{MARKDOWN}; charset=utf-8".encode())


async def version_goal(call: Call) -> Answer:
    """The goal of a version."""
    row = await version_row(call)
    learner = await _learner(row)
    return Answer(learner.goal.to_dict(), 200, _attachment(row, "goal.json"))


async def _learner(row: VersionRow) -> TransferLearner:
    """The policy of a version, as it was added."""
    version = await asyncio.to_thread(ServedVersion.load, row)
    return version.learner


def _draft_of(bench: Workbench, row: VersionRow, learner: TransferLearner) -> Draft | None:
    """The draft that a version was made of, if it is still the same policy."""
    place = f"{row.policy}@{row.version}"
    for project in bench.projects.all():
        for draft in bench.projects.drafts(project.id):
            is_same = draft.method == text_of(learner.method_)
            is_same = is_same and Goal.from_dict(draft.goal) == learner.goal
            if place in draft.deployed and is_same:
                return draft
    return None


def _known_of(
    bench: Workbench, row: VersionRow, learner: TransferLearner
) -> tuple[dict[str, Any] | None, list[Finding] | None]:
    """The evaluation and the findings of the draft that a version was made of."""
    draft = _draft_of(bench, row, learner)
    if draft is None:
        return None, None
    return stored_evaluation(bench, draft), findings_of(bench, draft)


def _title(row: VersionRow) -> str:
    """Policy and version, with what was noted; the job that learned it is of no interest here."""
    note = re.sub(r"\s*\(learned by \w+\)$", "", row.note)
    title = f"{row.policy}, version {row.version}"
    return f"{title}: {note}" if note else title


def _attachment(row: VersionRow, name: str) -> tuple[tuple[bytes, bytes], ...]:
    """The header by which a browser saves a file."""
    text = f'attachment; filename="{row.policy}-{row.version}-{name}"'
    return ((b"content-disposition", text.encode()),)
