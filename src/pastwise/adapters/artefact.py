"""The artefact: tensors and JSON in one safetensors file; written beside and renamed, distrusted when read."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
"""Version of the artefact's form. A newer one than this is refused."""

Tensors = dict[str, NDArray[Any]]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when all went well; otherwise what was there stays."""
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"{target} is a folder; name a file")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        beside.chmod(0o666 & ~umask)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def write(path: str | Path, tensors: Tensors, content: Mapping[str, Any]) -> None:
    """Write tensors and JSON content."""
    from safetensors.numpy import save_file

    metadata = {"pastwise": json.dumps({"format": FORMAT, **content}, ensure_ascii=False, allow_nan=False)}
    with replacing(path) as beside:
        save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, beside, metadata)


def read(path: str | Path) -> tuple[Tensors, dict[str, Any]]:
    """Tensors and JSON content; whatever is not such a file is an error that says so."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise ValueError(f"no such file: {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        content = json.loads(metadata["pastwise"])
        version = content["format"]
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"{path} is not a policy of pastwise, or is damaged: {error}") from None
    if not isinstance(version, int) or version > FORMAT:
        raise ValueError(f"{path} has format {version}; this version of pastwise reads up to {FORMAT}: upgrade it")
    return tensors, content


class Damaged(ValueError):
    """Something in an artefact cannot be."""


def require(condition: object, what: str) -> None:
    """Refuse an artefact of which something does not hold."""
    if not condition:
        raise Damaged(what)
