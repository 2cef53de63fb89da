"""How compiled loops are compiled, and where their machine code is kept.

numba keeps machine code on disk and trusts what it finds there: a damaged file is an error on every
later call, or wrong numbers, or the end of the process. Here each file ends with a checksum, which
numba's reader ignores. What is damaged, or cannot be read or written, counts as not there: the loop
is compiled again, and the file is replaced where possible.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

Result = TypeVar("Result")


def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
    """Compile a loop to machine code on its first call, and keep the code on disk.

    - ``nogil``: the loop releases the interpreter's lock, so that threads run in parallel.
    - ``error_model="numpy"``: x / 0 is inf. Python's division tests for zero, and a loop that may
      raise does not become vector instructions.
    - ``fastmath={"contract"}``: a product and a sum may become one instruction. Nothing else is
      reordered.

    numba notices changes of the file that a loop is in, not of the files that it calls into: touch
    `kernels` after changing `vector_math`.
    """
    compile_loop = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})
    machine_code: Any = compile_loop(function)
    # Without a folder that numba can write to, or in a numba of another make, nothing is kept.
    with suppress(RuntimeError, AttributeError, TypeError):
        machine_code._cache = _CheckedCache(function)
    return cast(Callable[..., Result], machine_code)


class _CheckedCache(FunctionCache):
    """numba's files of one loop; a file that is damaged is as good as none."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The machine code for these types of arguments, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for these types of arguments, if possible."""
        with suppress(Exception):
            super().save_overload(sig, data)


class _CheckedFiles(IndexDataCacheFile):
    """An index and files of machine code, each of which ends with the SHA-256 of the rest."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        buffer = BytesIO()
        yield buffer
        content = buffer.getvalue()
        with super()._open_for_write(filepath) as file:
            file.write(content + hashlib.sha256(content).digest())

    def _load_index(self) -> dict[Any, str]:
        if not _is_whole(Path(self._index_path)):
            return {}
        index: dict[Any, str] = super()._load_index()
        return index

    def _load_data(self, name: str) -> Any:
        path = Path(self._data_path(name))
        if not _is_whole(path):
            raise OSError(f"{path} is damaged")  # numba compiles then
        return super()._load_data(name)


def _is_whole(path: Path) -> bool:
    """Whether a file is there and ends with the checksum of the rest."""
    try:
        content = path.read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return hashlib.sha256(content[:-size]).digest() == content[-size:]
