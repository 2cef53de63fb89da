"""A workbench on a fitted learner: for notebooks and scripts, in a thread of their process."""

from __future__ import annotations

import tempfile
import threading
import webbrowser
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pastwise.errors import MissingDependencyError, PastwiseError, ServiceError

try:
    from pastwise.service.journal import Journal
    from pastwise.service.server import DrainingServer, run, server_of
    from pastwise.service.settings import ServerSettings
    from pastwise.workbench.app import Workbench
    from pastwise.workbench.opening import add_learner
    from pastwise.workbench.server import (
        SAMPLE_ABOVE,
        Site,
        address_of,
        prepared,
    )
except ImportError as error:
    raise MissingDependencyError(
        f"the workbench needs {error.name}: pip install 'pastwise[workbench]'"
    ) from None

if TYPE_CHECKING:
    from pastwise.policy.learner import TransferLearner


class OpenWorkbench:
    """A workbench on what a learner has learned; `TransferLearner.workbench` opens one.

    It runs until `close`, or until the process ends. As a context manager it closes at the end of
    the block. Notebooks show it as a link.

    Parameters
    ----------
    learner : TransferLearner
        Fitted. Its policy is the first that the page shows.
    name, data, port, browser
        As of `TransferLearner.workbench`.
    """

    def __init__(
        self,
        learner: TransferLearner,
        *,
        name: str = "learner",
        data: Path | None = None,
        port: int = 0,
        browser: bool = True,
    ) -> None:
        self.name = name
        self._folder = None
        if data is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="pastwise-", ignore_cleanup_errors=True
            )
            data = Path(self._folder.name)

        # A port that is taken, and a folder that cannot be written, are errors of this call.
        settings, listening, notes = prepared(ServerSettings(data=data, port=port))
        journal = Journal(notes, sample_above=SAMPLE_ABOVE)
        self._bench = Workbench(settings, Path.cwd(), journal)
        self._server: DrainingServer = server_of(self._bench, Site(self._bench))
        is_ready = threading.Event()
        errors: list[BaseException] = []

        def started() -> None:
            project = add_learner(self._bench, learner, name)
            self._bench.opened = project.id
            is_ready.set()

        def work() -> None:
            try:
                with notes:
                    run(self._server, listening, started)
            except BaseException as error:
                errors.append(error)
            finally:
                is_ready.set()

        self._thread = threading.Thread(target=work, name="pastwise workbench", daemon=True)
        self._thread.start()
        is_ready.wait()
        if errors:
            self.close()
            if isinstance(errors[0], PastwiseError):
                raise errors[0]
            raise ServiceError(f"the workbench cannot start: {errors[0]}")
        if browser:
            webbrowser.open(self.address)

    @property
    def is_open(self) -> bool:
        """Whether the page can be reached."""
        return self._thread.is_alive()

    @property
    def address(self) -> str:
        """An address of the page, with a new key each time: each opens one browser."""
        return address_of(self._bench)

    def wait(self) -> None:
        """Wait until somebody presses Ctrl-C, then close: for scripts, which would end."""
        try:
            self._thread.join()
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def close(self) -> None:
        """Stop the workbench. What was saved on the page is gone with a temporary folder."""
        self._server.should_exit = True
        self._thread.join()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self.is_open:
            return f"Workbench on {self.name!r}, closed"
        return f"Workbench on {self.name!r}: {self.address}"

    def _repr_html_(self) -> str:
        name = escape(self.name)
        if not self.is_open:
            return f"<p>Workbench on <b>{name}</b>, closed</p>"
        link = f'<a href="{self.address}" target="_blank" rel="noopener">Open the workbench</a>'
        return f"<p>{link} on <b>{name}</b>, at {self._bench.settings.url}</p>"
