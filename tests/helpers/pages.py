"""Code blocks of a Markdown page, run in order as a reader would type them.

    python pages.py PAGE [--update]

runs the blocks of one page in a temporary folder with a copy of ``examples``. ``python`` blocks
share one namespace; ``sh`` blocks go to bash, where ``pastwise`` is this interpreter's; a ``toml``
block whose first line is a comment with a file name is written to that file. An ``output`` block is
what the block before it prints; ``...`` stands for any text. With ``--update`` the page gets the
outputs of this run.

Comments before a block change how it runs: ``<!-- not run: REASON -->`` leaves it out,
``<!-- exit code: N -->`` expects that code of a shell block, and ``<!-- background: WHAT -->`` runs
it until the page ends. Services on port 8765 get a free port instead.
"""

import doctest
import io
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pastwise

EXAMPLES = Path(__file__).parents[2] / "examples"

FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|exit code|background): (?P<value>[^\n]+) -->\n+)?"
    r"^```(?P<language>[^\n`]*)\n(?P<code>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
PORT = "8765"
"""The port of services on pages."""

FILE = re.compile(r"# ([\w.-]+\.toml)\n")


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes
    ----------
    line : int
        Line of the page on which the code begins.
    not_run : str or None
        Reason why the block is not run.
    exit_code : int
        What a shell block exits with.
    is_background : bool
        Whether a shell block runs until the page ends.
    output : str or None
        What the block prints, where the page shows it.
    """

    language: str
    code: str
    line: int
    not_run: str | None = None
    exit_code: int = 0
    is_background: bool = False
    output: str | None = None


def blocks_of(text: str) -> list[Block]:
    """Blocks of a page in order; an output belongs to the block before it."""
    blocks: list[Block] = []
    for found in FENCE.finditer(text):
        language = found["language"]
        code = found["code"]
        if language == "output":
            previous = blocks.pop()
            block = Block(**{**vars(previous), "output": code})
        else:
            line = text.count("\n", 0, found.start("code")) + 1
            not_run = found["value"] if found["mark"] == "not run" else None
            exit_code = int(found["value"]) if found["mark"] == "exit code" else 0
            block = Block(language, code, line, not_run, exit_code, found["mark"] == "background")
        blocks.append(block)
    return blocks


def run_page(page: Path, update: bool = False) -> None:
    """Run the blocks of a page; the first that fails raises."""
    with ExitStack() as background:
        _run_blocks(page, update, background)


def _run_blocks(page: Path, update: bool, background: ExitStack) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    text = page.read_text(encoding="utf-8")
    port = _free_port()
    for block in blocks_of(text):
        if block.not_run:
            continue
        place = f"{page}, line {block.line}"
        printed = None
        code = block.code.replace(PORT, port)
        if block.is_background:
            background.enter_context(_running(code))
        elif block.language == "python":
            printed = _run_python(code, block.line, place, namespace)
        elif block.language == "sh":
            printed = _run_shell(code, block.exit_code, place)
        elif block.language == "toml":
            _write_file(block)
        if printed is None or block.output is None:
            continue
        printed = printed.replace(port, PORT)
        if not update:
            _compare(printed, block.output, place)
        elif not _equal(printed, block.output):
            old = f"{block.code}```\n\n```output\n{block.output}```"
            text = text.replace(old, f"{block.code}```\n\n```output\n{_tidy(printed)}```")
            page.write_text(text, encoding="utf-8")


def _run_python(code: str, line: int, place: str, namespace: dict[str, Any]) -> str:
    """Run Python code; return what it prints."""
    compiled = compile("\n" * (line - 1) + code, place, "exec")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compiled, namespace)
    return printed.getvalue()


def _run_shell(code: str, exit_code: int, place: str) -> str:
    """Run shell commands; return what they print to stdout."""
    done = subprocess.run(
        _shell(code),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **_environment()},
    )
    if done.returncode != exit_code:
        raise AssertionError(f"{place}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def _running(code: str) -> Iterator[None]:
    """Shell commands in the background, with all that they start."""
    process = subprocess.Popen(
        _shell(code),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_environment()},
        start_new_session=True,
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _shell(code: str) -> list[str]:
    return ["bash", "-eu", "-o", "pipefail", "-c", _pastwise_function() + code]


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def _environment() -> dict[str, str]:
    """Plain output of a fixed width, from the package that the Python blocks import as well."""
    package = Path(pastwise.__file__).parent
    plain = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    return {**plain, "PYTHONPATH": str(package.parent)}


def _pastwise_function() -> str:
    """A shell function that calls this interpreter's command line."""
    return f'pastwise() {{ "{sys.executable}" -m pastwise "$@"; }}\n'


def _write_file(block: Block) -> None:
    name = FILE.match(block.code)
    if name:
        Path(name[1]).write_text(block.code, encoding="utf-8")


def _compare(printed: str, expected: str, place: str) -> None:
    if not _equal(printed, expected):
        raise AssertionError(f"{place} prints\n{_tidy(printed)}\nand the page says\n{expected}")


def _equal(printed: str, expected: str) -> bool:
    checker = doctest.OutputChecker()
    return checker.check_output(_tidy(expected), _tidy(printed), doctest.ELLIPSIS)


def _tidy(text: str) -> str:
    """The text without spaces at the ends of lines and without empty lines at its own ends."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    # A warning that the page does not show would puzzle its reader.
    warnings.filterwarnings("error", module="pastwise")
    page = Path(sys.argv[1]).resolve()
    with TemporaryDirectory() as folder, chdir(folder):
        shutil.copytree(EXAMPLES, "examples")
        os.environ["MINARI_DATASETS_PATH"] = folder
        run_page(page, update="--update" in sys.argv[2:])
