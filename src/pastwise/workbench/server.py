"""The process of a workbench: the service and the page on one socket of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from starlette.types import Receive, Scope, Send

from pastwise._files import private_files
from pastwise.errors import FileError, ParameterError
from pastwise.service.app import make_app
from pastwise.service.journal import Journal
from pastwise.service.problems import Problem
from pastwise.service.server import bound_socket, run, server_of
from pastwise.service.settings import ServerSettings
from pastwise.workbench.app import Workbench
from pastwise.workbench.opening import open_project
from pastwise.workbench.pages import Pages
from pastwise.workbench.types import ProjectRequest

OTHER_PORT = "port, such as 0 for any that is free"
"""What to do where the port is in use."""

SAMPLE_ABOVE = 10
"""Requests a second that the journal has; a person who moves a slider makes sixty."""


class Site:
    """The page and the service as one ASGI application.

    The page is public: it is in everybody's copy of pastwise. All data are behind the service's
    gate.
    """

    def __init__(self, bench: Workbench, pages: Pages | None = None) -> None:
        self._pages = pages or Pages()
        self._service = make_app(bench)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if is_reading and self._pages.has(scope["path"]):
            await self._pages(scope, receive, send)
        else:
            await self._service(scope, receive, send)


def serve(
    data: Path,
    root: Path,
    log: Path | None = None,
    *,
    port: int = 8765,
    worker_niceness: int = 10,
    on_ready: Callable[[str], None],
) -> int:
    """Run a workbench until it is stopped; returns the exit code.

    Parameters
    ----------
    data : path
        Folder of projects and of the store.
    root : path
        Folder that paths of logs must lie in.
    log : path, optional
        A log to open.
    worker_niceness : int
        How far jobs yield to other programs; 10 as in the service.
    on_ready : callable
        Called with the address, which has the key of the session.
    """
    settings = ServerSettings(data=data, port=port, worker_niceness=worker_niceness)
    settings, listening, notes = prepared(settings)
    bench = Workbench(settings, root, Journal(notes, sample_above=SAMPLE_ABOVE))

    async def started() -> None:
        if log is not None:
            try:
                project, _ = await open_project(bench, ProjectRequest(path=str(log.absolute())))
            except Problem as problem:
                raise ParameterError(problem.detail or problem.title) from None
            bench.opened = project.id
        on_ready(address_of(bench))

    with notes, private_files():
        run(server_of(bench, Site(bench)), listening, started)
    return 0


def address_of(bench: Workbench) -> str:
    """The address that opens a session, once."""
    return f"{bench.settings.url}/#key={bench.sessions.new_key()}"


def prepared(settings: ServerSettings) -> tuple[ServerSettings, socket.socket, TextIO]:
    """Settings with their port, its socket, and the journal.

    The socket comes first: where a port is taken, no folder is made.
    """
    listening = bound_socket(settings, OTHER_PORT)
    try:
        notes = _opened_journal(settings.data)
    except FileError:
        listening.close()
        raise
    return replace(settings, port=listening.getsockname()[1]), listening, notes


def _opened_journal(data: Path) -> TextIO:
    """The journal, in the folder of the data: the terminal has the address and nothing else."""
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return (data / "journal.jsonl").open("a", encoding="utf-8")
    except OSError as error:
        raise FileError(
            f"the workbench cannot save in {data} ({error.strerror}); choose another folder"
        ) from None
