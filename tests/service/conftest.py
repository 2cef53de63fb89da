"""Fixtures of the tests of the service."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on the event loop that the service runs on."""
    return "asyncio"
