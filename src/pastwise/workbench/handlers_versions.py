"""Handlers of the files of a version: what it is, for people."""

from __future__ import annotations

import asyncio

from pastwise.policy.card import PolicyCard
from pastwise.policy.learner import TransferLearner
from pastwise.policy.summary import quick_verdict
from pastwise.report.card import card_markdown
from pastwise.service.calls import Answer, Call
from pastwise.service.handlers_policies import version_row
from pastwise.service.store.rows import VersionRow
from pastwise.service.versions import ServedVersion
from pastwise.workbench.handlers_drafts import report_of

MARKDOWN = "text/markdown"
GOAL = "application/json"


async def version_report(call: Call) -> Answer:
    """The report of a version, for the person who signs it off."""
    row = await version_row(call)
    return await report_of(await _learner(row), _title(row))


async def version_card(call: Call) -> Answer:
    """The policy card of a version."""
    row = await version_row(call)
    learner = await _learner(row)

    def written() -> bytes:
        found = PolicyCard.of(learner, quick_verdict(learner), title=_title(row))
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


def _title(row: VersionRow) -> str:
    return row.note or f"{row.policy}, version {row.version}"


def _attachment(row: VersionRow, name: str) -> tuple[tuple[bytes, bytes], ...]:
    """The header by which a browser saves a file."""
    text = f'attachment; filename="{row.policy}-{row.version}-{name}"'
    return ((b"content-disposition", text.encode()),)
