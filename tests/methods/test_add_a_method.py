"""The page "Add a method": its file is all that a new method needs.

The file goes into a copy of the package. Then the page's commands find the method on the command
line, in the contract test and in the studies.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.pages import Block, blocks_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "add-a-method.md"
FILE = Path("src", "pastwise", "methods", "greedy.py")


def commands() -> list[Block]:
    """The shell blocks of the page, which need its file in the package."""
    blocks = blocks_of(PAGE.read_text(encoding="utf-8"))
    return [block for block in blocks if block.language == "sh"]


def contents(folder: Path) -> dict[Path, bytes]:
    """The sources of a folder."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.py")}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of package, tests and examples in which the page's file is the only addition.

    Machine code that was compiled before is copied with the sources, and stays valid.
    """
    folder = tmp_path_factory.mktemp("clone")
    for name in ("src", "tests", "examples"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    file = next(b for b in blocks_of(PAGE.read_text(encoding="utf-8")) if b.language == "python")
    (folder / FILE).write_text(file.code, encoding="utf-8")
    return folder


def run(clone: Path, block: Block) -> str:
    """Run a shell block of the page in the copy; return what it prints."""
    names = ("pastwise", "-m pastwise"), ("python", "")
    functions = "".join(f'{name}() {{ "{sys.executable}" {how} "$@"; }}\n' for name, how in names)
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", functions + block.code],
        cwd=clone,
        env={**os.environ, **plain, "PYTHONPATH": str(clone / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_page_says_where_its_file_goes() -> None:
    assert f"`{FILE.as_posix()}`" in PAGE.read_text(encoding="utf-8")
    assert not (ROOT / FILE).exists()


def test_command_line_learns_with_it(clone: Path) -> None:
    """It is listed with its summary, and the page shows the policy."""
    learn = commands()[0]
    assert learn.output is not None
    printed = run(clone, learn).splitlines()
    assert [line.rstrip() for line in printed if line] == learn.output.splitlines()


def test_contract_test_runs_over_it(clone: Path) -> None:
    printed = run(clone, commands()[1])
    assert "passed" in printed
    assert "failed" not in printed
    assert int(printed.split(" passed")[0].split()[-1]) > 20


def test_studies_run_it(clone: Path) -> None:
    results = json.loads(run(clone, commands()[2]))
    assert "greedy" in results["settings"]["methods"]
    assert "greedy" in {row["method"] for row in results["rows"]}


def test_no_other_file_is_touched(clone: Path) -> None:
    """Neither by the addition nor by the commands."""
    for name in ("src", "tests", "examples"):
        added = set(contents(clone / name).items()) - set(contents(ROOT / name).items())
        expected = {FILE.relative_to("src")} if name == "src" else set()
        assert {path for path, _ in added} == expected
