"""Screens look as they do in the documentation, in both themes, within a tolerance."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.helpers.browser import THEMES, Bench, Visitor, visiting
from tests.helpers.pictures import FOLDER, SCREENS, distance, pictured_bench, take

TOLERANCE = 0.03
"""Mean difference: another theme makes 0.6 and more, a card that is missing about 0.05."""


@pytest.fixture(scope="module")
def pictured(browser: Browser) -> Iterator[Bench]:
    """The workbench of the pictures."""
    with pictured_bench() as running:
        yield running


@pytest.fixture
def photographer(browser: Browser, pictured: Bench) -> Iterator[Visitor]:
    """A visitor of it."""
    yield from visiting(browser, pictured)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_looks_as_in_the_documentation(photographer: Visitor, screen: str) -> None:
    page = photographer.new_page()
    for theme in THEMES:
        with Image.open(FOLDER / f"{screen}-{theme}.webp") as shown:
            expected = shown.convert("RGB")
        assert distance(take(photographer, page, screen, theme), expected) < TOLERANCE, theme
