"""Machine code on disk: used when it is whole, compiled again when it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = """
from numba.core import event
from pastwise._numerics.vector_math import exp

compilations = []

class Listener(event.Listener):
    def on_start(self, event):
        compilations.append(event)
    def on_end(self, event):
        pass

with event.install_listener("numba:compile", Listener()):
    value = exp(-1.0)
print(value, "compiled" if compilations else "from disk")
"""


def call(folder: Path) -> str:
    """What a process prints that calls a loop, with its machine code in a folder."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with machine code, as a first process leaves it."""
    folder = tmp_path_factory.mktemp("machine code")
    value = call(folder)
    assert value.endswith(" compiled")
    return folder


def test_machine_code_is_kept(kept: Path) -> None:
    assert call(kept) == "0.36787944117144233 from disk"


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
    kept: Path, kind: str, damage: Callable[[Path], object]
) -> None:
    for path in files(kept, kind):
        damage(path)
    assert call(kept) == "0.36787944117144233 compiled"
    assert call(kept) == "0.36787944117144233 from disk"


def test_files_that_cannot_be_replaced_do_no_harm(kept: Path) -> None:
    for path in [*files(kept, "nbi"), *files(kept, "nbc")]:
        path.unlink()
        path.mkdir()
    assert call(kept) == "0.36787944117144233 compiled"
