"""The process: a socket, uvicorn, and signals.

The socket is open before the store is read, so that health checks are answered from the beginning;
everything else is answered with `starting` until the replay is done. SIGTERM and Ctrl-C stop the
listening, let requests under way finish, take a last snapshot, and end the process with code 0.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from pastwise._files import private_files
from pastwise.errors import ParameterError
from pastwise.service.app import Service, make_app
from pastwise.service.journal import Journal
from pastwise.service.protocol import GuardedProtocol
from pastwise.service.settings import ServerSettings

KEEP_ALIVE = 65
"""Seconds that an idle connection stays open: longer than common proxies keep theirs, so that the
proxy closes first and no request gets lost."""


def serve(settings: ServerSettings) -> int:
    """Run the service until it is stopped; returns the exit code."""
    if not settings.is_local and settings.token_file is None:
        raise ParameterError(
            f"other machines can reach {settings.host}: name the administrators' tokens with "
            "--token-file, or listen on 127.0.0.1"
        )
    listening = bound_socket(settings)
    settings = replace(settings, port=listening.getsockname()[1])
    service = Service(settings)
    if not settings.is_local:
        service.journal.event(
            "warning",
            "no-tls",
            note="tokens travel in plain text: put a proxy with TLS in front of the service",
        )

    def started() -> None:
        # What is in memory now stays: the garbage collector need not look at it again.
        gc.collect()
        gc.freeze()
        print(
            f"pastwise serve: listening on {settings.url} (data in {settings.data})",
            file=sys.stderr,
            flush=True,
        )

    with private_files():
        run(server_of(service, make_app(service)), listening, started)
    return 0


def server_of(service: Service, app: ASGIApp) -> DrainingServer:
    """A server of an application."""
    _redirect_logs(service.journal)
    config = uvicorn.Config(
        app,
        loop="auto",
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=round(service.settings.drain_seconds) + 1,
    )
    return DrainingServer(config, service)


def run(server: DrainingServer, listening: socket.socket, started: Callable[[], object]) -> None:
    """Serve until the server is stopped.

    Parameters
    ----------
    started : callable
        Called when the service is ready; what it returns is awaited, if that is possible.
    """
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_run(server, listening, started))
    finally:
        server.stopped()


async def _run(
    server: DrainingServer, listening: socket.socket, started: Callable[[], object]
) -> None:
    """Start the service while the socket is served already, and stop it after that."""
    service = server.service
    starting = asyncio.create_task(_start(server, started))
    try:
        await server.serve(sockets=[listening])
        if not starting.done():
            starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
    finally:
        await service.stop()


async def _start(server: DrainingServer, started: Callable[[], object]) -> None:
    """Start the service and say so; a failure ends the process."""
    try:
        await server.service.start()
        done = started()
        if inspect.isawaitable(done):
            await done
    except BaseException:
        server.should_exit = True
        raise


class DrainingServer(uvicorn.Server):
    """A server that ends with code 0 after a signal, and lets the service know first."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self.service = service
        self._deadline: threading.Timer | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop. A store that hangs does not hold up the end of the process."""
        super().handle_exit(sig, frame)
        if self._deadline is None:
            self._deadline = threading.Timer(self.service.settings.stop_seconds, self._give_up)
            self._deadline.daemon = True
            self._deadline.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and wait for requests under way."""
        self.service.begin_to_stop()
        await self.service.stop_jobs()
        loop = asyncio.get_running_loop()
        loop.call_later(self.service.settings.drain_seconds, self._cut_off)
        await super().shutdown(sockets)

    def stopped(self) -> None:
        """All is done; nothing has to be ended by force."""
        if self._deadline is not None:
            self._deadline.cancel()

    def _cut_off(self) -> None:
        """Close all connections: a lost answer lets clients repeat, one of uvicorn's would not."""
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

    def _give_up(self) -> None:
        """End the process; everything that was acknowledged is stored."""
        self.service.journal.event(
            "error", "stop-forced", note="the store does not answer; there is no last snapshot"
        )
        os._exit(0)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take SIGTERM and SIGINT as requests to stop; uvicorn would raise them again later."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread can listen to signals
            return
        signals = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def bound_socket(
    settings: ServerSettings, choice: str = "address or port with --listen"
) -> socket.socket:
    """The socket to listen on; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise ParameterError(
            f"cannot listen on {settings.host}:{settings.port} ({error.strerror}); choose another "
            f"{choice}"
        ) from None
    listening.set_inheritable(False)
    return listening


class _JournalHandler(logging.Handler):
    """Writes what uvicorn logs to the journal."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        self._journal.event(record.levelname.lower(), "server", note=record.getMessage())


def _redirect_logs(journal: Journal) -> None:
    """Let uvicorn write to the journal instead of stderr."""
    logger = logging.getLogger("uvicorn.error")
    logger.handlers = [_JournalHandler(journal)]
    logger.propagate = False
