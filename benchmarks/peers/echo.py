"""The limit of an HTTP service in Python: Starlette that returns the body it was sent."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def predict(request: Request) -> Response:
    """The body, unread."""
    return Response(await request.body(), media_type="application/json")


app = Starlette(routes=[Route("/predict", predict, methods=["POST"])])
