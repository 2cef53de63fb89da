"""Handlers of projects and of counts."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from pastwise.service import uploads
from pastwise.service.calls import Answer, Call
from pastwise.service.problems import Problem, ProblemPart
from pastwise.service.queries import PageQuery
from pastwise.service.views import time_text
from pastwise.workbench.app import Workbench
from pastwise.workbench.opening import open_project
from pastwise.workbench.projects import Project, etag_of, log_file, new_id
from pastwise.workbench.types import CountsView, OrderRequest, OrderView, ProjectRequest
from pastwise.workbench.types_log import (
    DryRunQuery,
    Mapping,
    MappingView,
    RowsQuery,
    RowsView,
    ValidationView,
)
from pastwise.workbench.views import project_list, project_view


def bench_of(call: Call) -> Workbench:
    """The workbench that a request is for."""
    return cast(Workbench, call.service)


# Projects


async def projects(call: Call) -> Answer:
    """The logs, those changed last first."""
    query = call.query(PageQuery)
    return Answer(project_list(bench_of(call), query.cursor, query.limit))


async def create_project(call: Call, body: ProjectRequest) -> Answer:
    """Open a log; one that is open already is not opened again."""
    bench = bench_of(call)
    project, is_new = await open_project(bench, body)
    location = (b"location", f"/v1/projects/{project.id}".encode())
    return Answer(project_view(bench, project), 201 if is_new else 200, (location, _etag(project)))


async def project(call: Call) -> Answer:
    """One log."""
    bench = bench_of(call)
    found = bench.projects.project(call.params["id"])
    return Answer(project_view(bench, found), 200, (_etag(found),))


async def delete_project(call: Call) -> Answer:
    """Forget a log, with its counts and drafts; the file itself stays, unless it was uploaded."""
    bench = bench_of(call)
    found = bench.projects.project(call.params["id"])
    await asyncio.to_thread(bench.projects.remove, found.id)
    if found.source.kind == "upload":
        await uploads.remove(bench.uploads, found.source.place)
    return Answer(b"", 204)


async def rows(call: Call) -> Answer:
    """Rows of a log, with the next state of each."""
    query = call.query(RowsQuery)
    bench = bench_of(call)
    found = bench.projects.project(call.params["id"])
    if not _has_table(found):
        return Answer(RowsView([], [], [], query.offset, 0))
    mapping = found.mapping if query.mapping is None else _mapping_of(query.mapping)
    result = await bench.reader.ask(
        "rows",
        file=log_file(found),
        columns=None if mapping is None else arguments_of(mapping),
        offset=query.offset,
        limit=query.limit,
    )
    members = {"then": [], "of": found.rows, **result, "offset": query.offset}
    return Answer(msgspec.convert(members, RowsView))


def _mapping_of(text: str) -> Mapping:
    """A mapping in a query."""
    try:
        return msgspec.json.decode(text, type=Mapping)
    except msgspec.MsgspecError as error:
        detail = f"The mapping cannot be read: {error}"
        part = ProblemPart("?mapping", "invalid-value", detail)
        raise Problem("invalid-value", detail, errors=[part]) from None


async def map_columns(call: Call, body: Mapping) -> Answer:
    """Read a log by a mapping and count it; a dry run reads the beginning of a long one."""
    query = call.query(DryRunQuery)
    bench = bench_of(call)
    found = bench.projects.project(call.params["id"])
    if not _has_table(found):
        raise Problem("nothing-to-learn", "This project has counts and no table to read.")
    counts_id = new_id("cnt")
    task: dict[str, object] = {"file": log_file(found), "columns": arguments_of(body)}
    try:
        if query.dry_run:
            result = await bench.reader.ask("try_out", **task, first=query.first)
            return Answer(MappingView(None, msgspec.convert(result, ValidationView)))
        target = bench.projects.folder(found.id) / f"{counts_id}.safetensors"
        result = await bench.reader.ask("use", **task, save_to=str(target))
    except Problem as problem:
        raise _with_pointers(problem, body) from None
    validation = msgspec.convert(result, ValidationView)

    # An order that was chosen before stays as far as it names what there is.
    changed = bench.projects.change(
        found,
        bench.clock(),
        mapping=body,
        counts=counts_id,
        validation=validation,
        num_states=len(validation.states),
        num_actions=len(validation.actions),
    )
    await asyncio.to_thread(_remove_unused_counts, bench, changed)
    return Answer(MappingView(counts_id, validation), 201, (_etag(changed),))


def _remove_unused_counts(bench: Workbench, found: Project) -> None:
    """Remove the counts of earlier mappings that no draft rests on."""
    used = {found.counts, *(draft.counts for draft in bench.projects.drafts(found.id))}
    for path in bench.projects.folder(found.id).glob("cnt_*.safetensors"):
        if path.stem not in used:
            path.unlink(missing_ok=True)


def arguments_of(mapping: Mapping) -> dict[str, Any]:
    """Arguments of `Columns.of`."""
    arguments: dict[str, Any] = msgspec.to_builtins(mapping)
    return {name: value for name, value in arguments.items() if value not in (None, [], {})}


def _with_pointers(problem: Problem, mapping: Mapping) -> Problem:
    """A problem about a column, with a pointer to the member that names it."""
    if problem.slug != "unknown-column":
        return problem
    content = msgspec.to_builtins(mapping)
    for name, value in content.items():
        given = value if isinstance(value, list) else [value]
        for place, column in enumerate(given):
            if isinstance(column, str) and f"column {column!r};" in problem.detail:
                pointer = f"/{name}/{place}" if isinstance(value, list) else f"/{name}"
                near = problem.errors[0].near if problem.errors else ()
                problem.errors = [ProblemPart(pointer, problem.slug, problem.detail, near)]
                return problem
    return problem


async def set_order(call: Call, body: OrderRequest) -> Answer:
    """Choose the order in which states and actions are shown."""
    bench = bench_of(call)
    found = bench.projects.project(call.params["id"])
    order = OrderView(body.states, body.actions)
    changed = bench.projects.change(found, bench.clock(), order=order)
    return Answer(order, 200, (_etag(changed),))


def _has_table(found: Project) -> bool:
    return bool(found.source.file) and found.kind != "counts"


# Counts


async def counts(call: Call) -> Answer:
    """Counts with all that a page needs to compute TL's rule."""
    return Answer(await counts_view(bench_of(call), call.params["id"]))


async def counts_view(bench: Workbench, counts_id: str) -> CountsView:
    """Counts as pages get them."""
    found = bench.projects.of_counts(counts_id)
    is_current = found.counts == counts_id
    mapping = found.mapping if is_current else None
    return await bench.compute(
        lambda: bench.counted(counts_id).view(found.id, mapping, found.order)
    )


def _etag(found: Project) -> tuple[bytes, bytes]:
    return (b"etag", f'"{etag_of(found)}"'.encode())


def now_text(bench: Workbench) -> str:
    """The time, as it is stored."""
    return time_text(bench.clock())
