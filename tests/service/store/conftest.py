"""Every test of a store runs on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from tests.helpers.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be."""
    if request.param == "sqlite":
        return str(tmp_path / "data")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url()


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """An empty store."""
    opened = open_store(place)
    yield opened
    opened.close()
