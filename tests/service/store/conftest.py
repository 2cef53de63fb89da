"""Every test of a store runs on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pastwise.service.store import open_store
from pastwise.service.store.base import Store


@pytest.fixture(params=["sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be."""
    return str(tmp_path / "data")


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    """An empty store."""
    opened = open_store(place)
    yield opened
    opened.close()
