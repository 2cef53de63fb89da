"""Links between the files of the repository, as one reads them without building the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "benchmarks").rglob("*.md"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_links_lead_to_files(file: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text(encoding="utf-8")):
        assert (file.parent / target).exists(), target
