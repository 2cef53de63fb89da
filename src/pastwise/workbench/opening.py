"""Opening a log: from a path, a sample, an upload or a learner to a project."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pastwise.data.space import Label, key_of
from pastwise.goals.goal import Goal
from pastwise.methods.registry import create, text_of
from pastwise.service.problems import Problem
from pastwise.service.views import time_text
from pastwise.workbench.projects import Draft, Project, new_id
from pastwise.workbench.sources import Source, below, kind_of, uploaded, write_sample
from pastwise.workbench.types import GoalContent, ProjectRequest
from pastwise.workbench.types_log import ColumnView, GuessView

if TYPE_CHECKING:
    from pastwise.policy.learner import TransferLearner
    from pastwise.workbench.app import Workbench


async def open_project(bench: Workbench, request: ProjectRequest) -> tuple[Project, bool]:
    """The project of a log, and whether it is new.

    A path that was opened before gives the same project again. If the file has changed since, it
    is looked at again, and its counts are no longer those of the log.
    """
    given = [request.path, request.sample, request.log]
    if sum(each is not None for each in given) != 1:
        raise Problem("invalid-value", "Give one of path, sample and log.")
    if request.path is not None:
        path = await asyncio.to_thread(below, bench.root, request.path)
        return await _opened(bench, Source("path", str(path), str(path)), path, request.name)
    if request.log is not None:
        path = uploaded(bench.uploads, request.log)
        return await _opened(bench, Source("upload", request.log, str(path)), path, request.name)

    # A sample is written next to the projects, once.
    sample = request.sample
    assert sample is not None
    path = bench.settings.data / "samples" / f"{sample}.csv"
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        await asyncio.to_thread(write_sample, sample, path)
    return await _opened(bench, Source("sample", sample, str(path)), path, request.name)


async def _opened(
    bench: Workbench, source: Source, path: Path, name: str | None
) -> tuple[Project, bool]:
    """A project for a file, and whether it is new."""
    found = path.stat()
    known = bench.projects.of_source(source)
    if known is not None and (known.bytes, known.modified) == (found.st_size, found.st_mtime_ns):
        return known, False

    # Read the file; one that cannot be read changes nothing.
    kind = kind_of(path)
    project_id = bench.projects.new_folder(name or path.stem) if known is None else known.id
    try:
        if kind == "counts":
            content = await _adopted(bench, project_id, path)
        else:
            content = await _looked_at(bench, path)
    except BaseException:
        if known is None:
            shutil.rmtree(bench.projects.folder(project_id), ignore_errors=True)
        raise
    content |= {"bytes": found.st_size, "modified": found.st_mtime_ns}

    if known is not None:
        return bench.projects.change(known, bench.clock(), validation=None, **content), False
    now = time_text(bench.clock())
    project = Project(
        id=project_id,
        name=name or path.name,
        kind=kind,
        source=source,
        created=now,
        changed=now,
        **content,
    )
    return bench.projects.add(project), True


async def _looked_at(bench: Workbench, path: Path) -> dict[str, Any]:
    """What a project knows of a log that is not counted yet."""
    looked = await bench.reader.ask("look", file=str(path))
    return {
        "columns": msgspec.convert(looked["columns"], list[ColumnView]),
        "guess": msgspec.convert(looked["guess"], GuessView),
        "rows": looked["rows"],
        "sampled": looked["sampled"],
        "counts": None,
        "num_states": None,
        "num_actions": None,
    }


async def _adopted(bench: Workbench, project_id: str, path: Path) -> dict[str, Any]:
    """What a project knows of a file of counts, which are copied to its folder."""
    counts_id = new_id("cnt")
    target = bench.projects.folder(project_id) / f"{counts_id}.safetensors"
    adopted = await bench.reader.ask("adopt", file=str(path), save_to=str(target))
    return {
        "counts": counts_id,
        "rows": adopted["records"],
        "num_states": adopted["states"],
        "num_actions": adopted["actions"],
    }


def add_learner(bench: Workbench, learner: TransferLearner, name: str) -> Project:
    """A project of what a learner has learned, with its policy as a draft."""
    from pastwise.workbench.readings import no_preference

    # A page asks for methods by their texts.
    method = text_of(learner.method_)
    create(method)

    now = time_text(bench.clock())
    project_id = bench.projects.new_folder(name)
    counts_id = new_id("cnt")
    base = learner.retarget(no_preference(learner.counts_), "TL")
    base.save(bench.projects.folder(project_id) / f"{counts_id}.safetensors")
    project = Project(
        id=project_id,
        name=name,
        kind="counts",
        bytes=0,
        source=Source("learner", "a fitted learner", ""),
        rows=learner.counts_.num_records,
        counts=counts_id,
        num_states=len(learner.counts_.states),
        num_actions=len(learner.counts_.actions),
        created=now,
        changed=now,
    )
    draft = Draft(
        id=new_id("dft"),
        project=project_id,
        counts=counts_id,
        name=name,
        goal=plain_goal(learner.goal),
        sentence=learner.goal.describe(),
        method=method,
        created=now,
        changed=now,
    )
    bench.projects.add(project)
    bench.projects.add_draft(draft)
    return project


def plain_goal(goal: Goal) -> GoalContent:
    """A goal as pages write it: weights by the keys of labels."""
    content: GoalContent = goal.to_dict()
    for part in ("prefer", "prefer_actions"):
        if part in content:
            content[part] = _by_key(getattr(goal, part))
    if goal.targets:
        content["targets"] = {name: _by_key(wanted) for name, wanted in goal.targets.items()}
    if goal.forbid:
        content["forbid"] = [
            [None if state is None else key_of(state), key_of(action)]
            for state, action in goal.forbid
        ]
    return content


def _by_key(weights: Mapping[Label, float]) -> dict[str, float]:
    return {key_of(label): weight for label, weight in weights.items()}
