"""A whole workbench in this process, called through its page's session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from pastwise.logs.read import read_log
from pastwise.service.journal import Journal
from pastwise.workbench.app import Workbench
from pastwise.workbench.pages import Pages
from pastwise.workbench.projects import Project, new_id
from pastwise.workbench.readings import columns_of, save_base
from pastwise.workbench.server import Site
from pastwise.workbench.sources import SAMPLES, Source
from pastwise.workbench.types_log import Mapping
from tests.helpers.services import InProcess

THERMOSTAT = SAMPLES / "thermostat.csv"
COLUMNS = {"state": ["room"], "action": ["did"], "episode": "day", "time": "hour"}
COMFORT: dict[str, Any] = {"prefer": {"comfortable": 1, "warm": 0.5}}
"""A goal for the thermostat."""


needs_page = pytest.mark.skipif(
    not Pages().is_built, reason="the page is not built: run make frontend, which needs Node"
)


class InProcessBench(InProcess):
    """A running workbench; its root is the folder ``root`` in the given one."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        super().__init__(folder / "data", **changes)
        self.root = folder / "root"
        self.root.mkdir(exist_ok=True)
        settings = self.service.settings
        self.bench = Workbench(
            settings, self.root, Journal(self.journal, sample_above=10**9), self.clock
        )
        self.service = self.bench
        self.app = Site(self.bench)

    def counted(
        self,
        columns: dict[str, Any] | None = None,
        table: Any = THERMOSTAT,
        file: Path | None = None,
    ) -> str:
        """Id of the counts of a project; jobs can read its log only if the file is named."""
        columns = columns or COLUMNS
        project_id = self.bench.projects.new_folder("room")
        counts_id = new_id("cnt")
        path = self.bench.projects.folder(project_id) / f"{counts_id}.safetensors"
        save_base(read_log(table, columns_of(columns)), str(path))
        found = None if file is None else file.stat()
        self.bench.projects.add(
            Project(
                id=project_id,
                name="room",
                kind="csv",
                bytes=0 if found is None else found.st_size,
                modified=0 if found is None else found.st_mtime_ns,
                source=Source("path", "test", "" if file is None else str(file)),
                mapping=None if file is None else msgspec.convert(columns, Mapping),
                counts=counts_id,
                created="2026-11-01T00:00:00Z",
                changed="2026-11-01T00:00:00Z",
            )
        )
        return counts_id

    def draft(self, counts_id: str, goal: Any = None, **members: Any) -> dict[str, Any]:
        """A saved policy."""
        body = {"name": "comfort", "goal": goal or COMFORT, **members}
        answer = self.call("POST", f"/v1/counts/{counts_id}/drafts", body)
        assert answer.status_code == 201, answer.text
        draft: dict[str, Any] = answer.json()
        return draft


@contextmanager
def session(address: str) -> Iterator[httpx.Client]:
    """A client with the cookie that the key of an address opens."""
    base, _, key = address.partition("/#key=")
    with httpx.Client(base_url=base) as client:
        answer = client.post("/v1/session", json={"key": key})
        assert answer.status_code == 201, answer.text
        yield client
