"""Machine code on disk: used when it is whole, compiled again when it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
import numba
from numba.core import event

numba.njit(lambda number: -number)(1.0)
compilations = []

class Listener(event.Listener):
    def on_start(self, event):
        compilations.append(event)
    def on_end(self, event):
        pass

for line in sys.stdin:
    process = os.fork()
    if process == 0:
        from pastwise._numerics.vector_math import exp
        with event.install_listener("numba:compile", Listener()):
            value = exp(-1.0)
        print(value, "compiled" if compilations else "from disk", flush=True)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    if status:
        print("ended with status", status, flush=True)
"""
"""For each line, a new process that calls a loop. numba gets ready once, which takes longest."""

Call = Callable[[], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("machine code")


@pytest.fixture(scope="module")
def call(folder: Path) -> Iterator[Call]:
    """What a new process prints that calls a loop, with its machine code in the folder."""
    server = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def start_one() -> str:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("call\n")
        server.stdin.flush()
        return server.stdout.readline().strip()

    with server:
        yield start_one


def files(folder: Path, kind: str) -> list[Path]:
    found = sorted(folder.rglob(f"*.{kind}"))
    assert found
    return found


def flip(path: Path, place: float) -> None:
    content = bytearray(path.read_bytes())
    content[int(place * (len(content) - 1))] ^= 4
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.fixture(scope="module")
def kept(folder: Path, call: Call) -> Path:
    """The folder with machine code, as a first process leaves it."""
    assert call().endswith(" compiled")
    return folder


@pytest.mark.usefixtures("kept")
def test_machine_code_is_kept(call: Call) -> None:
    assert call() == "0.36787944117144233 from disk"


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"garbage" * 100),
        truncate,
        lambda path: flip(path, 0.0),
        lambda path: flip(path, 0.5),
        lambda path: flip(path, 0.9),
        lambda path: flip(path, 1.0),
        lambda path: path.unlink(),
    ],
)
def test_damaged_machine_code_is_compiled_again(
    kept: Path, call: Call, kind: str, damage: Callable[[Path], object]
) -> None:
    for path in files(kept, kind):
        damage(path)
    assert call() == "0.36787944117144233 compiled"
    assert call() == "0.36787944117144233 from disk"


def test_files_that_cannot_be_replaced_do_no_harm(kept: Path, call: Call) -> None:
    for path in [*files(kept, "nbi"), *files(kept, "nbc")]:
        path.unlink()
        path.mkdir()
    assert call() == "0.36787944117144233 compiled"
