"""Policy files read and written without the library: to look into them, and to forge them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import safe_open

from pastwise.policy.file import FORMAT

Tensors = dict[str, NDArray[Any]]


def parts(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """The tensors and the JSON content of a file."""
    tensors = safetensors.numpy.load_file(path)
    content = json.loads(tensors.pop("content").tobytes())
    return tensors, content


def header_of(path: Path) -> dict[str, Any]:
    """The JSON in the metadata of a file."""
    with safe_open(path, framework="numpy") as file:
        header: dict[str, Any] = json.loads(file.metadata()["pastwise"])
    return header


def digest(tensors: Tensors, number: Any = FORMAT) -> str:
    """The checksum of a file of a format, written down a second time."""
    text = b"" if number in (3, 4) else f"format {number}\n".encode()
    for name, tensor in sorted(tensors.items()):
        text += f"{name} {tensor.dtype.str} {tensor.shape}\n".encode() + tensor.tobytes()
    return hashlib.sha256(text).hexdigest()


def as_tensor(content: Any) -> Tensors:
    """The content, given as JSON text or plain values, as a tensor of bytes."""
    text = content
    if not isinstance(content, bytes):
        text = json.dumps(content).encode()
    return {"content": np.frombuffer(text, dtype=np.uint8)}


def forge(path: Path, tensors: Tensors, content: Any) -> None:
    """Write a file with this content and a right checksum."""
    everything = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    everything |= as_tensor(content)
    forge_header(path, everything, {"format": FORMAT, "sha256": digest(everything)})


def forge_header(path: Path, tensors: Tensors, header: dict[str, Any] | str) -> None:
    """Write a file with these tensors, and with any metadata."""
    text = header if isinstance(header, str) else json.dumps(header)
    safetensors.numpy.save_file(tensors, path, {"pastwise": text})
