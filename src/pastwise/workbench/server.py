"""The process of a workbench: the service and the page on one socket of this machine."""

from __future__ import annotations

import tempfile
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from starlette.types import Receive, Scope, Send

from pastwise._files import private_files
from pastwise.errors import ParameterError, PastwiseError, ServiceError
from pastwise.service.app import make_app
from pastwise.service.journal import Journal
from pastwise.service.problems import Problem
from pastwise.service.server import DrainingServer, bound_socket, run, server_of
from pastwise.service.settings import ServerSettings
from pastwise.workbench.app import Workbench
from pastwise.workbench.opening import add_learner, open_project
from pastwise.workbench.pages import Pages
from pastwise.workbench.types import ProjectRequest

if TYPE_CHECKING:
    from pastwise.policy.learner import TransferLearner


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
    on_ready : callable
        Called with the address, which has the key of the session.
    """
    settings = ServerSettings(data=data, port=port)
    listening = bound_socket(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    notes = _opened_journal(data)
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


def _opened_journal(data: Path) -> TextIO:
    """The journal, in the folder of the data: the terminal has the address and nothing else."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    return (data / "journal.jsonl").open("a", encoding="utf-8")


class OpenWorkbench:
    """A workbench that runs in a thread of this process, on what a learner has learned.

    Attributes
    ----------
    url : str
        The address of the page; it opens once.
    """

    def __init__(
        self, learner: TransferLearner, *, name: str, data: Path | None, port: int, browser: bool
    ) -> None:
        self._folder = None
        if data is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="pastwise-", ignore_cleanup_errors=True
            )
            data = Path(self._folder.name)
        settings = ServerSettings(data=data, port=port)
        listening = bound_socket(settings)
        settings = replace(settings, port=listening.getsockname()[1])
        self.url = ""
        notes = _opened_journal(data)
        journal = Journal(notes, sample_above=SAMPLE_ABOVE)
        self._bench = Workbench(settings, Path.cwd(), journal)
        self._server: DrainingServer = server_of(self._bench, Site(self._bench))
        self._is_ready = threading.Event()
        self._error: BaseException | None = None

        def started() -> None:
            project = add_learner(self._bench, learner, name)
            self._bench.opened = project.id
            self.url = address_of(self._bench)
            self._is_ready.set()

        def work() -> None:
            try:
                with notes:
                    run(self._server, listening, started)
            except BaseException as error:
                self._error = error
            finally:
                self._is_ready.set()

        self._thread = threading.Thread(target=work, name="pastwise workbench", daemon=True)
        self._thread.start()
        self._is_ready.wait()
        if isinstance(self._error, PastwiseError):
            raise self._error
        if self._error is not None:
            raise ServiceError(f"the workbench cannot start: {self._error}")
        if browser:
            webbrowser.open(self.url)

    def close(self) -> None:
        """Stop the workbench."""
        self._server.should_exit = True
        self._thread.join()
        if self._folder is not None:
            self._folder.cleanup()

    def __repr__(self) -> str:
        state = "open at" if self._thread.is_alive() else "closed; it was at"
        return f"Workbench, {state} {self.url}"
