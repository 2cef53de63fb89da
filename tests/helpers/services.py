"""A whole service in this process, on an event loop in a thread, called through its gate."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from starlette.types import ASGIApp

from pastwise.service.app import Service, make_app
from pastwise.service.journal import Journal
from pastwise.service.rates import Rate
from pastwise.service.settings import ServerSettings
from tests.helpers.engines import Clock, room_file

Result = TypeVar("Result")

ROOM = "room"
"""Name of the policy that `InProcess.with_policy` makes."""

QUICK = {kind: Rate(1e6, 10**6) for kind in ("decide", "outcome", "write", "read")}
"""Rates that no test reaches."""


class InProcess:
    """A running service.

    Parameters
    ----------
    folder : Path
        Its data.
    changes
        Settings other than the defaults.
    """

    def __init__(self, folder: Path, **changes: Any) -> None:
        defaults = ServerSettings(data=folder, port=80, rates=QUICK, worker_niceness=0)
        settings = replace(defaults, **changes)
        self.clock = Clock()
        self.journal = io.StringIO()
        journal = Journal(self.journal, log_data=settings.log_data, sample_above=10**9)
        self.service = Service(settings, journal, self.clock)
        self.app: ASGIApp = make_app(self.service)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.run(self.service.start())
        except BaseException:
            self._end()
            raise
        self.admin = (self.service.settings.data / "admin.token").read_text().strip()
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self.service.stop())
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Awaitable[Result]) -> Result:
        """The result of something that runs on the service's event loop."""

        async def done() -> Result:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(60)

    def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        *,
        token: str | None = "",
        headers: Mapping[str, str] | None = None,
        content: Any = None,
        host: str = "127.0.0.1:8765",
    ) -> httpx.Response:
        """Send a request, by default as the administrator; ``token=None`` sends none."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.admin}"

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
                return await client.request(
                    method, path, json=json, headers=sent, content=content, timeout=30
                )

        return self.run(send())

    def with_policy(self, name: str = ROOM, **settings: Any) -> Self:
        """Make a policy with one version, live by default."""
        settings = {"mode": "live", **settings}
        assert self.call("PUT", f"/v1/policies/{name}", settings).status_code == 201
        answer = self.call("POST", f"/v1/policies/{name}/versions", content=room_file())
        assert answer.status_code == 201, answer.text
        return self

    def decide(self, state: str = "cold", policy: str = ROOM, **members: Any) -> dict[str, Any]:
        """A decision."""
        answer = self.call("POST", f"/v1/policies/{policy}/decide", {"state": state, **members})
        assert answer.status_code == 201, answer.text
        decision: dict[str, Any] = answer.json()
        return decision

    def token(self, *roles: str, **members: Any) -> str:
        """A new token with these roles."""
        answer = self.call("POST", "/v1/tokens", {"name": "test", "roles": roles, **members})
        assert answer.status_code == 201, answer.text
        secret: str = answer.json()["token"]
        return secret


def slug_of(answer: httpx.Response) -> str:
    """Slug of the problem that was answered."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body["status"] == answer.status_code
    slug: str = body["type"].removeprefix("/problems/")
    return slug
