"""Code and tests cite every numbered item of the paper, and the page of equations is current."""

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GENERATOR: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generators" / "equations.py"))

ITEMS = {(item.name, item.label) for item in GENERATOR["ITEMS"]}


def cited(folder: Path, *, by_functions: bool = False) -> set[tuple[str, str]]:
    """Pairs of name and label cited in a folder, by anything or by functions and classes alone."""
    found = GENERATOR["citations"](folder)
    return {(each.name, each.label) for each in found if each.owner or not by_functions}


def test_every_item_of_the_paper_is_cited_by_a_function_and_by_a_test() -> None:
    assert ITEMS - cited(GENERATOR["THEORY"], by_functions=True) == set()
    assert ITEMS - cited(GENERATOR["TESTS"], by_functions=True) == set()


def test_no_item_is_cited_by_a_wrong_number_or_label() -> None:
    assert cited(ROOT / "src") | cited(ROOT / "tests") <= ITEMS


def test_theory_is_the_only_home_of_citations() -> None:
    package = ROOT / "src" / "pastwise"
    others = [path for path in package.rglob("*.py") if path.parent.name != "theory"]
    assert [path for path in others if "Paper:" in path.read_text(encoding="utf-8")] == []


def test_page_of_equations_is_current() -> None:
    """Run ``python docs/generators/equations.py`` after a change of citations."""
    page: Path = GENERATOR["PAGE"]
    assert page.read_text(encoding="utf-8") == GENERATOR["render"]()
