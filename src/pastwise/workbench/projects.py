"""Projects: the logs that a workbench knows, each a folder with small JSON files.

    projects/ID/project.json          the log, its columns, its mapping
    projects/ID/cnt_....safetensors   counts, one file for each mapping that was used
    projects/ID/dft_....json          drafts: saved policies

A file is written to a temporary name and renamed, so a crash leaves the old one or the new one.
Everything but counts is held in memory. All methods are quick; changes go through `change`, on the
event loop, one at a time.
"""

from __future__ import annotations

import re
import secrets
import shutil
import unicodedata
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from pastwise._files import replacing
from pastwise.service.problems import Problem
from pastwise.service.views import time_text
from pastwise.workbench.sources import Source
from pastwise.workbench.types import GoalContent, OrderView
from pastwise.workbench.types_drafts import (
    KeptVerdict,
)
from pastwise.workbench.types_log import ColumnView, GuessView, Mapping, ValidationView

ID = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
PROJECT = "project.json"


class Project(Struct, kw_only=True):
    """A log as it is stored; see `types.ProjectView`.

    Attributes
    ----------
    modified : int
        When the file was changed last, in nanoseconds since 1970.
    revision : int
        Number of the last change.
    """

    id: str
    name: str
    kind: str
    bytes: int
    source: Source
    modified: int = 0
    rows: int | None = None
    sampled: int | None = None
    columns: list[ColumnView] = []
    guess: GuessView | None = None
    mapping: Mapping | None = None
    counts: str | None = None
    order: OrderView | None = None
    validation: ValidationView | None = None
    num_states: int | None = None
    num_actions: int | None = None
    policies: list[str] = []
    created: str
    changed: str
    revision: int = 1


class Draft(Struct, kw_only=True):
    """A saved policy as it is stored; see `types.DraftView`."""

    id: str
    project: str
    counts: str
    name: str
    goal: GoalContent
    sentence: str
    method: str
    note: str = ""
    verdicts: list[KeptVerdict] = []
    deployed: list[str] = []
    created: str
    changed: str
    revision: int = 1


Stored = TypeVar("Stored", Project, Draft)


class Projects:
    """All projects of a folder.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._projects: dict[str, Project] = {}
        self._drafts: dict[str, Draft] = {}
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(folder.glob(f"*/{PROJECT}")):
            project = _read(path, Project)
            if project is not None and project.id == path.parent.name:
                self._projects[project.id] = project
        for path in sorted(folder.glob("*/dft_*.json")):
            draft = _read(path, Draft)
            if draft is not None and draft.project in self._projects:
                self._drafts[draft.id] = draft

    # Projects

    def all(self) -> list[Project]:
        """All projects, those changed last first."""
        return sorted(self._projects.values(), key=lambda each: each.changed, reverse=True)

    def project(self, project_id: str) -> Project:
        """The project of an id."""
        found = self._projects.get(project_id)
        if found is None:
            raise Problem("not-found", f"There is no log {project_id[:100]!r}.")
        return found

    def of_source(self, source: Source) -> Project | None:
        """The project that was made of a source before."""
        known = (each for each in self._projects.values() if each.source == source)
        return next(known, None)

    def of_counts(self, counts_id: str) -> Project:
        """The project whose folder has these counts."""
        for project in self._projects.values():
            is_current = project.counts == counts_id
            if is_current or any(each.counts == counts_id for each in self.drafts(project.id)):
                return project
        raise Problem("not-found", f"There are no counts {counts_id[:100]!r}.")

    def folder(self, project_id: str) -> Path:
        """Folder of a project."""
        return self._folder / project_id

    def counts_file(self, counts_id: str) -> Path:
        """File of counts."""
        return self.folder(self.of_counts(counts_id).id) / f"{counts_id}.safetensors"

    def new_folder(self, name: str) -> str:
        """Make a folder for a new project and return its id, which resembles the name."""
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:40].strip("-") or "log"
        number = 1
        while True:
            project_id = base if number == 1 else f"{base}-{number}"
            try:
                self.folder(project_id).mkdir(mode=0o700)
            except FileExistsError:
                number += 1
            else:
                return project_id

    def add(self, project: Project) -> Project:
        """Store a new project."""
        self._write(project)
        self._projects[project.id] = project
        return project

    def change(self, stored: Stored, now: int, **members: Any) -> Stored:
        """Store a project or draft with other members."""
        changed = msgspec.structs.replace(
            stored, **members, changed=time_text(now), revision=stored.revision + 1
        )
        self._write(changed)
        if isinstance(changed, Project):
            self._projects[changed.id] = changed
        else:
            self._drafts[changed.id] = changed
        return changed

    def remove(self, project_id: str) -> None:
        """Forget a project, its counts and its drafts. The log itself stays."""
        project = self.project(project_id)
        for draft in self.drafts(project.id):
            del self._drafts[draft.id]
        del self._projects[project.id]
        shutil.rmtree(self.folder(project.id), ignore_errors=True)

    # Drafts

    def drafts(self, project_id: str) -> list[Draft]:
        """Drafts of a project, in the order in which they were made."""
        found = [each for each in self._drafts.values() if each.project == project_id]
        return sorted(found, key=lambda each: (each.created, each.id))

    def draft(self, draft_id: str) -> Draft:
        """The draft of an id."""
        found = self._drafts.get(draft_id)
        if found is None:
            detail = f"There is no saved policy {draft_id[:100]!r}; it may have been deleted."
            raise Problem("not-found", detail)
        return found

    def add_draft(self, draft: Draft) -> Draft:
        """Store a new draft."""
        self._write(draft)
        self._drafts[draft.id] = draft
        return draft

    def remove_draft(self, draft_id: str) -> None:
        """Forget a draft."""
        draft = self.draft(draft_id)
        self._place(draft).unlink(missing_ok=True)
        del self._drafts[draft.id]

    # Files

    def _place(self, stored: Project | Draft) -> Path:
        if isinstance(stored, Project):
            return self.folder(stored.id) / PROJECT
        return self.folder(stored.project) / f"{stored.id}.json"

    def _write(self, stored: Project | Draft) -> None:
        with replacing(self._place(stored)) as unfinished:
            unfinished.write_bytes(msgspec.json.encode(stored))


def log_file(project: Project) -> str:
    """The file of a log, which must be as it was when the log was opened."""
    file = Path(project.source.file)
    try:
        found = file.stat()
    except OSError:
        detail = f"The file {file} is not there any more. Put it back, or open another one."
        raise Problem("nothing-to-learn", detail) from None
    if (found.st_size, found.st_mtime_ns) != (project.bytes, project.modified):
        detail = f"The file {file} has changed since it was read. Open it again."
        raise Problem("nothing-to-learn", detail)
    return str(file)


def etag_of(stored: Project | Draft) -> str:
    """Changes with every change."""
    return f"{stored.id}-{stored.revision}"


def new_id(kind: str) -> str:
    """A random id that begins with its kind."""
    return f"{kind}_{secrets.token_hex(8)}"


def _read(path: Path, kind: type[Stored]) -> Stored | None:
    """What is in a file; None if it is damaged, such as by hand."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
