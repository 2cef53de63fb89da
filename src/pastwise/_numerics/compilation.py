"""How compiled loops are compiled, and where their machine code is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

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
    kept_on_disk = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"}, cache=True)
    not_kept = numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})
    try:
        machine_code = kept_on_disk(function)
    except RuntimeError:  # numba found no folder that it can write to
        machine_code = not_kept(function)
    return cast(Callable[..., Result], machine_code)
