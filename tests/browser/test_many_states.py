"""Many states: few rows in the page, however many there are, and all of them within reach."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.helpers.browser import Visitor

MOST_ROWS = 60


@pytest.mark.parametrize("states", [1_000, 100_000])
def test_a_long_list_has_few_rows_and_is_searched_and_walked(reader: Visitor, states: int) -> None:
    goal = quote(json.dumps({"prefer": {"s000010": 1, "s000500": 1}}))
    page = reader.open(f"#/chain{states}/policy?g={goal}")
    grid = page.locator("[data-states=list] [role=grid], [data-states=list][role=grid]").first
    expect(grid).to_be_visible(timeout=30_000)
    expect(grid).to_have_attribute("aria-rowcount", str(states + 1))
    rows = grid.locator("[role=row][aria-rowindex]")
    assert rows.count() < MOST_ROWS

    # Scrolling keeps few rows, and their indices are right.
    frames = page.evaluate(
        """async (grid) => {
            const inner = [grid, ...grid.querySelectorAll('*')];
            const scroller = inner.find((each) => each.scrollHeight > each.clientHeight + 100);
            const start = performance.now();
            let frames = 0;
            while (performance.now() - start < 300) {
                scroller.scrollTop += 240;
                await new Promise(requestAnimationFrame);
                frames += 1;
            }
            return [frames, scroller.scrollTop];
        }""",
        grid.element_handle(),
    )
    assert frames[1] > 200
    page.wait_for_timeout(100)
    assert rows.count() < MOST_ROWS
    indices = [int(row.get_attribute("aria-rowindex") or 0) for row in rows.all()]
    assert indices == sorted(indices)
    assert indices[-1] > 5

    # Keys reach the last row and the one before it.
    grid.focus()
    page.keyboard.press("End")
    chosen = grid.locator("[role=row][aria-selected=true]")
    expect(chosen).to_have_attribute("aria-rowindex", str(states + 1))
    page.keyboard.press("ArrowUp")
    expect(chosen).to_have_attribute("aria-rowindex", str(states))

    # A search finds one of all states.
    page.get_by_role("searchbox", name="Find a state").fill("s000777")
    expect(rows.filter(has_text="s000777")).to_have_count(1)
    page.get_by_role("searchbox", name="Find a state").fill("")
    expect(grid).to_have_attribute("aria-rowcount", str(states + 1))


def test_a_narrow_list_cuts_no_column(reader: Visitor) -> None:
    """A phone with a scrollbar that takes room: the narrowest place of the list."""
    goal = quote(json.dumps({"prefer": {"s000010": 1}}))
    page = reader.open(f"#/chain400/policy?g={goal}", (390, 800))
    grid = page.locator("[data-states=list] [role=grid], [data-states=list][role=grid]").first
    expect(grid.get_by_role("columnheader", name="change")).to_be_visible()
    cut = grid.evaluate(
        """(grid) => [...grid.querySelectorAll('.line')]
            .filter((line) => line.scrollWidth > line.clientWidth).length"""
    )
    assert cut == 0
