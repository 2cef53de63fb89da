"""The site builds without a warning, its links resolve, and it loads nothing from elsewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[2]

QUICK = ["-D", "toc_object_entries=0", "-D", "autodoc_preserve_defaults=0"]
"""Without functions in the sidebar and defaults as they are written: a third of the time."""


class Page(HTMLParser):
    """Links, anchors and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag links to, loads and names."""
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and "href" in values:
            self.loaded.append(values["href"])
        elif tag in ("script", "img", "iframe") and "src" in values:
            self.loaded.append(values["src"])


def test_site_builds_and_its_links_resolve(tmp_path: Path) -> None:
    site = tmp_path / "site"
    trees = tmp_path / "trees"
    command = [sys.executable, "-m", "sphinx", "-q", "--keep-going", *QUICK, "-d", str(trees)]
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(site)], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""

    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    assert _broken(pages) == []
    assert _from_elsewhere(pages) == []


def _broken(pages: dict[Path, Page]) -> list[str]:
    """Links to pages, files and headings that do not exist."""
    broken = []
    for path, page in pages.items():
        for link in page.links:
            target = urlsplit(link)
            if target.scheme or target.netloc:
                continue
            file = (path.parent / unquote(target.path)).resolve() if target.path else path
            heading = unquote(target.fragment)
            lost = bool(heading) and file in pages and heading not in pages[file].anchors
            if lost or not file.exists():
                broken.append(f"{path.name}: {link}")
    return broken


def _from_elsewhere(pages: dict[Path, Page]) -> list[str]:
    """Scripts, styles, fonts and pictures that a page would fetch from another host."""
    return [
        f"{path.name}: {url}"
        for path, page in pages.items()
        for url in page.loaded
        if re.match(r"(https?:)?//", url)
    ]
