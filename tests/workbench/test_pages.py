"""The files of the page: their headers, their weight, and the wheel that ships them."""

import asyncio
import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import httpx
import pytest

from pastwise.workbench.pages import STATIC, Pages
from tests.helpers.workbenches import needs_page

ROOT = Path(__file__).parents[2]
BUDGET = 120 * 1024
"""Bytes of script and style that a browser loads, gzipped."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small page, with a file next to it that nobody may see."""
    page = tmp_path / "static"
    (page / "assets").mkdir(parents=True)
    script = b"export const answer = 42;" * 40
    (page / "index.html").write_text("<!doctype html><title>page</title>")
    (page / "assets" / "index-abc.js").write_bytes(script)
    (page / "assets" / "index-abc.js.gz").write_bytes(gzip.compress(script))
    (page / "assets" / "index-abc.js.br").write_bytes(b"not really brotli")
    (page / "assets" / "font.woff2").write_bytes(b"font")
    (tmp_path / "secret.txt").write_text("secret")
    return page


def ask(folder: Path, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    """The answer of the page that was built into a folder."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app=Pages(folder))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            client.headers["accept-encoding"] = "identity"
            return await client.request(method, path, headers=given)

    return asyncio.run(request())


def test_types_come_from_a_fixed_table(folder: Path) -> None:
    types = {
        "/": "text/html; charset=utf-8",
        "/index.html": "text/html; charset=utf-8",
        "/assets/index-abc.js": "text/javascript; charset=utf-8",
        "/assets/font.woff2": "font/woff2",
    }
    for path, expected in types.items():
        answer = ask(folder, path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == expected


def test_names_with_a_hash_are_kept_and_the_page_is_checked_again(folder: Path) -> None:
    assert "immutable" in ask(folder, "/assets/index-abc.js").headers["cache-control"]
    page = ask(folder, "/")
    assert page.headers["cache-control"] == "no-cache"

    # The page itself costs nothing if it is still the same.
    again = ask(folder, "/", if_none_match=page.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")


def test_compressed_files_are_sent_to_those_who_read_them(folder: Path) -> None:
    pages = Pages(folder)
    plain = pages.find("/assets/index-abc.js")
    gzipped = pages.find("/assets/index-abc.js", "gzip;q=0.8, deflate")
    best = pages.find("/assets/index-abc.js", "gzip, br")
    assert "content-encoding" not in plain.headers
    assert gzipped.headers["content-encoding"] == "gzip"
    assert gzip.decompress(gzipped.body) == plain.body
    assert best.headers["content-encoding"] == "br"


def test_everything_is_sent_with_a_strict_policy(folder: Path) -> None:
    for path in ("/", "/assets/index-abc.js", "/nowhere"):
        headers = ask(folder, path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "//secret.txt",
        "/secret.txt",
        "/assets",
        "/assets/index-abc.js.gz",
        "/index.html/",
        "",
    ],
)
def test_nothing_else_can_be_reached(folder: Path, path: str) -> None:
    assert Pages(folder).find(path).status == 404


def test_head_sends_the_length_and_no_body(folder: Path) -> None:
    answer = ask(folder, "/", "HEAD")
    assert answer.content == b""
    assert int(answer.headers["content-length"]) == len(ask(folder, "/").content)


def test_a_page_that_was_not_built_says_what_to_do(tmp_path: Path) -> None:
    pages = Pages(tmp_path / "nothing")
    assert not pages.is_built
    assert pages.has("/")
    answer = pages.find("/")
    assert answer.status == 503
    assert b"make frontend" in answer.body


@needs_page
def test_script_and_style_of_every_screen_stay_within_their_budget() -> None:
    """A screen loads the script and style of the page, and a script of its own."""
    page = (STATIC / "index.html").read_text()
    assets = [*STATIC.glob("assets/*.js"), *STATIC.glob("assets/*.css")]
    sizes = {file.name: len(gzip.compress(file.read_bytes(), 9)) for file in assets}
    first = {name: size for name, size in sizes.items() if name in page}
    later = {name: size for name, size in sizes.items() if name not in page}
    assert len(first) == 2
    assert sum(first.values()) + max(later.values()) <= BUDGET, sizes


@needs_page
def test_the_page_loads_nothing_from_elsewhere_and_has_nothing_inline() -> None:
    page = (STATIC / "index.html").read_text()
    assert "http" not in page.replace("xmlns='http://www.w3.org/2000/svg'", "")
    assert "<style" not in page
    assert "style=" not in page
    assert page.count("<script") == page.count('<script type="module" crossorigin src="./assets/')
    for style in STATIC.glob("assets/*.css"):
        text = style.read_text()
        assert "url(data:" not in text
        assert "//" not in text.replace("/*", "").replace("*/", "")


@needs_page
def test_the_licences_of_fonts_and_code_are_shipped() -> None:
    fonts = {file.name.split("-")[0] for file in STATIC.glob("assets/*.woff2")}
    licences = {file.stem.split("-")[0] for file in (STATIC / "licences").glob("*.txt")}
    assert licences == {*fonts, "svelte", "clsx", "esm"}


def test_the_lock_file_records_no_registry() -> None:
    lock = json.loads((ROOT / "frontend" / "package-lock.json").read_text())
    assert lock["packages"]
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]


def build_wheel(root: Path, output: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """All that a wheel is made of, with little code and no page."""
    root = tmp_path / "clone"
    package = root / "src" / "pastwise"
    (package / "workbench").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (root / ".gitignore").write_text("src/pastwise/workbench/static/\n")
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root / name)
    return root


def test_a_wheel_without_the_page_is_refused(clone: Path, tmp_path: Path) -> None:
    refused = build_wheel(clone, tmp_path / "dist")
    assert refused.returncode != 0
    assert "make frontend" in refused.stderr

    # Unless whoever builds it wants none.
    done = build_wheel(clone, tmp_path / "dist", PASTWISE_WITHOUT_PAGE="1")
    assert done.returncode == 0, done.stderr


def test_a_wheel_has_the_page_although_git_ignores_it(clone: Path, tmp_path: Path) -> None:
    static = clone / "src" / "pastwise" / "workbench" / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>")
    (static / "assets" / "index-abc.js.br").write_bytes(b"script")

    done = build_wheel(clone, tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    [wheel] = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        names = content.namelist()
    assert "pastwise/workbench/static/index.html" in names
    assert "pastwise/workbench/static/assets/index-abc.js.br" in names
