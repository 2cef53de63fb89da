"""The process of a workbench: the service and the page on one socket of this machine."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from pastwise.service.app import make_app
from pastwise.workbench.app import Workbench
from pastwise.workbench.pages import Pages


class Site:
    """The page and the service as one ASGI application.

    The page is public: it is in everybody's copy of pastwise. All data are behind the service's
    gate.
    """

    def __init__(self, bench: Workbench, pages: Pages | None = None) -> None:
        self._pages = pages or Pages()
        self._service: ASGIApp = make_app(bench)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_reading = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if is_reading and self._pages.has(scope["path"]):
            await self._pages(scope, receive, send)
        else:
            await self._service(scope, receive, send)
