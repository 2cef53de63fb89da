"""The artefact: tensors and JSON in one safetensors file; written beside and renamed, distrusted when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pastwise._files import replacing
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label, Space, checked_label

FORMAT = 2
"""Newest version of the artefact's form; a newer one is refused. In 1 the JSON is in the header, in 2 a tensor."""


MOST_IN_HEADER = 40_000_000
"""Bytes of JSON up to which it goes into the header, which may take 100 MB with its quotes escaped."""


CONTENT = "content"
"""Name of the tensor that holds the JSON, where there is one."""


Tensors = dict[str, NDArray[Any]]


def write(path: str | Path, tensors: Tensors, content: Mapping[str, Any]) -> None:
    """Write tensors and JSON content."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    text = json.dumps({"format": 1, **content}, ensure_ascii=False, allow_nan=False).encode()
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    if len(text) > MOST_IN_HEADER:
        tensors[CONTENT], text = (
            np.frombuffer(text, dtype=np.uint8),
            json.dumps({"format": FORMAT}).encode(),
        )
    with replacing(path) as beside:
        try:
            save_file(tensors, beside, {"pastwise": text.decode()})
        except SafetensorError as error:
            raise OSError(f"{path} cannot be written: {error}") from None


def read(path: str | Path) -> tuple[Tensors, dict[str, Any]]:
    """Tensors and JSON content; whatever is not such a file is an error that says so."""
    from safetensors import SafetensorError, safe_open

    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder, not a policy file")
    if not Path(path).exists():
        raise ValueError(f"no such file: {path}")
    Path(path).open("rb").close()  # an unreadable one is told as such
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        content = json.loads(metadata["pastwise"])
        version = content["format"]
        if version == FORMAT:
            content = {**json.loads(tensors.pop(CONTENT).tobytes())}
    except KeyError as error:
        raise ValueError(f"{path} is not a policy of pastwise: it has no {error}") from None
    except (SafetensorError, TypeError, ValueError, OSError, RecursionError) as error:
        raise ValueError(f"{path} is not a policy of pastwise, or is damaged: {error}") from None
    if type(version) is not int or version < 1:
        raise ValueError(f"{path} is damaged: format {version!r}")
    if version > FORMAT:
        raise ValueError(
            f"{path} has format {version}; this version of pastwise reads up to {FORMAT}: upgrade it"
        )
    return tensors, content


class Damaged(ValueError):
    """Something in an artefact cannot be."""


def require(condition: object, what: str) -> None:
    """Refuse an artefact of which something does not hold."""
    if not condition:
        raise Damaged(what)


MOST_LABELS = 10**9


COUNTS = ("key", "records", "weight", "weight_squared", "terminal")


def pack_counts(counts: TransitionCounts) -> tuple[Tensors, dict[str, Any]]:
    """Counts as tensors and JSON content."""
    tensors = {name: getattr(counts, name) for name in COUNTS}
    content = {
        "states": _pack_space(counts.states),
        "actions": _pack_space(counts.actions),
        "tasks": None if counts.tasks is None else _pack_space(counts.tasks),
        "decay": None if counts.decay is None else vars(counts.decay),
    }
    return tensors, content


def unpack_counts(tensors: Tensors, content: Mapping[str, Any]) -> TransitionCounts:
    """The counts that `pack_counts` packed; what cannot be is refused."""
    for name in COUNTS:
        require(name in tensors, f"{name} is missing")
    states, actions = _unpack_space(content["states"]), _unpack_space(content["actions"])
    tasks = None if content["tasks"] is None else _unpack_space(content["tasks"])
    key, terminal = tensors["key"], tensors["terminal"]
    size = len(states) * len(actions) * len(states) * (1 if tasks is None else len(tasks))
    for name in COUNTS:
        wanted = np.float64 if name.startswith("weight") else np.int64
        require(
            tensors[name].dtype == wanted,
            f"{name} is of type {tensors[name].dtype}, not {np.dtype(wanted)}",
        )
    for name in ("key", "records", "weight", "weight_squared"):
        tensor = tensors[name]
        require(
            tensor.shape == key.shape and tensor.ndim == 1,
            f"{name} has the wrong shape {tensor.shape}",
        )
        require(
            np.isfinite(tensor).all() and (tensor >= 0).all(),
            f"{name} has negative or undefined values",
        )
    require(
        (np.diff(key) > 0).all() and (key < size).all(),
        "the keys of the transitions are out of order",
    )
    inside = (terminal >= 0).all() and (terminal < len(states)).all()
    require(terminal.ndim == 1 and inside and (np.diff(terminal) > 0).all(), "bad terminal states")
    decay = None if content["decay"] is None else Decay(**content["decay"])
    columns = (key, tensors["records"], tensors["weight"], tensors["weight_squared"])
    return TransitionCounts(
        states, actions, *columns, () if tasks is None else (len(tasks),), tasks, terminal, decay
    )


def _pack_space(space: Space) -> dict[str, Any]:
    labels: Any = {"range": len(space)} if isinstance(space.labels, range) else list(space.labels)
    return {"labels": labels, "fields": list(space.fields)}


def _unpack_space(content: Mapping[str, Any]) -> Space:
    labels = content["labels"]
    require(
        all(isinstance(name, str) for name in content["fields"]), "names of fields are not text"
    )
    if isinstance(labels, Mapping):
        require(
            type(labels["range"]) is int and 0 < labels["range"] <= MOST_LABELS,
            "an impossible number of labels",
        )
        return Space(range(labels["range"]), tuple(content["fields"]))
    return Space([as_label(label) for label in labels], tuple(content["fields"]))


def as_label(value: Any) -> Label:
    """A label out of JSON, where a product label is a list."""
    return checked_label(tuple(value) if isinstance(value, list) else value)
