"""Fixtures of the tests of the service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.postgres import PostgresServer, require_postgres


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on the event loop that the service runs on."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; whoever kills it starts it again."""
    server = PostgresServer(require_postgres())
    yield server
    server.remove()
