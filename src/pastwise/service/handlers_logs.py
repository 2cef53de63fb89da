"""Handlers of uploaded logs.

An upload is a file under a random name; what is known about it is in a small JSON file next to it.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from pastwise.service import uploads
from pastwise.service.calls import (
    Answer,
    Call,
    Operation,
)
from pastwise.service.problems import Problem
from pastwise.service.queries import (
    PageQuery,
    UploadQuery,
)
from pastwise.service.types import (
    LogView,
    Page,
)
from pastwise.service.views import time_text

LOG_KINDS = frozenset({"parquet", "csv", "json", "counts"})
"""Kinds of uploads that something can be learned from."""


async def upload_log(call: Call) -> Answer:
    """Receive a log; it is read by jobs only."""
    query = call.query(UploadQuery)
    service = call.service
    limit = service.settings.limits.upload
    length = call.content_length()
    chunks = call.chunks(limit, "--max-upload")
    upload = await uploads.receive(chunks, service.uploads, limit, length)
    if upload.kind not in LOG_KINDS:
        await uploads.remove(service.uploads, upload.id)
        raise Problem(
            "unsupported-kind",
            "This is a policy file; add it to a policy with POST /v1/policies/{policy}/versions.",
        )
    view = LogView(
        id=upload.id,
        name=query.name,
        kind=upload.kind,
        bytes=upload.bytes,
        sha256=upload.sha256,
        at=time_text(service.clock()),
    )
    try:
        await asyncio.to_thread(_write, service.uploads, view)
    except OSError:
        await uploads.remove(service.uploads, upload.id)
        raise
    return Answer(view, 201, ((b"location", f"/v1/logs/{upload.id}".encode()),))


async def logs(call: Call) -> Answer:
    """The uploaded logs by id."""
    query = call.query(PageQuery)
    folder = call.service.uploads
    after = query.cursor or ""

    def look_up() -> Page[LogView]:
        found = sorted(path.stem for path in folder.glob("up_*.json"))
        ids = [log_id for log_id in found if log_id > after and uploads.stored(folder, log_id)]
        items = [_read(folder, log_id) for log_id in ids[: query.limit]]
        has_more = len(ids) > len(items)
        return Page(items, items[-1].id if has_more else None)

    return Answer(await asyncio.to_thread(look_up))


async def log(call: Call) -> Answer:
    """One uploaded log."""
    folder = call.service.uploads
    log_id = call.params["id"]
    require_log(folder, log_id)
    return Answer(await asyncio.to_thread(_read, folder, log_id))


async def delete_log(call: Call) -> Answer:
    """Delete an uploaded log; jobs that read it fail."""
    folder = call.service.uploads
    log_id = call.params["id"]
    require_log(folder, log_id)
    await uploads.remove(folder, log_id)
    _note(folder, log_id).unlink(missing_ok=True)
    return Answer(b"", 204)


def require_log(folder: Path, log_id: str) -> Path:
    """The file of an uploaded log."""
    path = uploads.stored(folder, log_id)
    if path is None or not _note(folder, log_id).is_file():
        raise Problem("not-found", f"There is no log {log_id[:50]!r}.")
    return path


def _note(folder: Path, log_id: str) -> Path:
    """Where it is written what an upload is."""
    return folder / f"{log_id}.json"


def _write(folder: Path, view: LogView) -> None:
    """Write down what an upload is; there is never a part of that."""
    note = _note(folder, view.id)
    unfinished = note.with_suffix(".part")
    try:
        with unfinished.open("wb") as file:
            file.write(msgspec.json.encode(view))
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(note)
    finally:
        unfinished.unlink(missing_ok=True)


def _read(folder: Path, log_id: str) -> LogView:
    return msgspec.json.decode(_note(folder, log_id).read_bytes(), type=LogView)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/logs",
        upload_log,
        "Upload a log: CSV, Parquet or JSON lines.",
        role="edit",
        rate="write",
        body="upload",
        query=UploadQuery,
        answer=LogView,
        status=201,
        is_policy_bound=False,
        problems=("too-large", "unsupported-kind", "length-mismatch", "disk-full"),
    ),
    Operation(
        "GET",
        "/v1/logs",
        logs,
        "List uploaded logs.",
        query=PageQuery,
        answer=Page[LogView],
        is_policy_bound=False,
    ),
    Operation(
        "GET",
        "/v1/logs/{id}",
        log,
        "Look up an uploaded log.",
        answer=LogView,
        is_policy_bound=False,
    ),
    Operation(
        "DELETE",
        "/v1/logs/{id}",
        delete_log,
        "Delete an uploaded log.",
        role="edit",
        rate="write",
        status=204,
        is_policy_bound=False,
    ),
)
