"""Policies and counts as files: tensors and JSON in one safetensors file.

A file is written to a temporary name and renamed, and distrusted when it is read. Its layout:

- tensors ``key``, ``records``, ``weight``, ``weight_squared`` [distinct] and ``terminal``: the
  counts;
- for a policy, the tensors ``rule`` [S, A] and ``part:NAME`` [1 or S, A]: the plan;
- the tensor ``content``: JSON with labels, columns and settings, as bytes;
- metadata ``pastwise``: JSON with the format's number and a SHA-256 of everything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pastwise._files import replacing
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.space import Label, Space, checked_label
from pastwise.errors import FileError, ParameterError, PolicyFileError
from pastwise.goals.goal import Goal
from pastwise.logs.columns import Columns
from pastwise.methods.base import Plan
from pastwise.methods.registry import from_settings, to_settings
from pastwise.policy.state import PolicyState, Settings
from pastwise.theory.similarity import kl_divergence

FORMAT = 3
"""Number of the layout above; files of another number are refused."""

CONTENT = "content"
COUNTS = ("key", "records", "weight", "weight_squared")
PART = "part:"

MAX_LABELS = 10**9

Tensors = dict[str, NDArray[Any]]
Content = dict[str, Any]


# Policies.


def save_policy(policy: PolicyState, path: str | Path) -> None:
    """Write all that was learned; what was there before survives if that fails."""
    settings = policy.settings
    if settings.divergence is not kl_divergence:
        raise ParameterError("only a learner with the library's own divergence can be saved")
    method = to_settings(settings.method)
    plan = policy.plan()
    tensors, content = _pack_counts(policy.counts(), policy.columns)
    tensors["rule"] = plan.rule
    for name, part in plan.parts.items():
        tensors[PART + name] = part
    past_goals = settings.past_goals or {}
    content |= {
        "goal": settings.goal.to_dict(),
        "past_goals": [[task, goal.to_dict()] for task, goal in past_goals.items()],
        "method": method,
        "on_unseen": settings.on_unseen,
        "parts": list(plan.parts),
        "adds_up": plan.adds_up,
    }
    _write(path, tensors, content)


def load_policy(path: str | Path) -> PolicyState:
    """What `save_policy` wrote; a damaged or foreign file is an error that says what is wrong."""
    tensors, content = _read(path)
    if "goal" not in content:
        raise PolicyFileError(
            f"{path} holds counts, not a policy; pastwise learn makes a policy of them"
        )
    with _blaming(path):
        counts, columns = _unpack_counts(tensors, content)
        past_goals = {as_label(task): Goal.from_dict(goal) for task, goal in content["past_goals"]}
        settings = Settings(
            goal=Goal.from_dict(content["goal"]),
            method=from_settings(content["method"]),
            past_goals=past_goals or None,
            divergence=kl_divergence,
            on_unseen=content["on_unseen"],
        )
        plan = _unpack_plan(tensors, content, counts)
        policy = PolicyState(settings, counts, columns, known_plan=plan)
        policy.require_goals_fit()
    return policy


def _unpack_plan(tensors: Tensors, content: Content, counts: TransitionCounts) -> Plan:
    """The stored plan; what cannot be one is refused."""
    sizes = (len(counts.states), len(counts.actions))
    rule = _tensor(tensors, "rule", np.float64)
    _require(rule.shape == sizes, "the rule has the wrong shape")
    _require(np.isfinite(rule).all() and (rule >= 0).all(), "the rule has impossible values")
    _require(np.allclose(rule.sum(axis=-1), 1), "the rule is not normalised")
    parts = {}
    for name in content["parts"]:
        part = _tensor(tensors, PART + name, np.float64)
        fits = part.ndim == 2 and part.shape[0] in (1, sizes[0]) and part.shape[1] == sizes[1]
        _require(fits, f"part {name!r} of the plan has the wrong shape")
        _require(not np.isnan(part).any(), f"part {name!r} of the plan has impossible values")
        parts[name] = part
    return Plan(rule, parts, bool(content["adds_up"]))


# Counts.


def save_counts(counts: TransitionCounts, path: str | Path, columns: Columns | None = None) -> None:
    """Write counts, with the columns that they were read by."""
    tensors, content = _pack_counts(counts, columns)
    _write(path, tensors, content)


def load_counts(path: str | Path) -> tuple[TransitionCounts, Columns | None]:
    """Counts, and the columns that they were read by, from a file of counts or of a policy."""
    tensors, content = _read(path)
    with _blaming(path):
        return _unpack_counts(tensors, content)


def merge_counts(paths: Sequence[str | Path]) -> tuple[TransitionCounts, Columns | None]:
    """The counts of several files together, in any order; they must be counted the same way."""
    total, columns = load_counts(paths[0])
    for path in paths[1:]:
        counts, other_columns = load_counts(path)
        if other_columns != columns:
            raise ParameterError(
                f"{path} was counted by other columns or bins than {paths[0]}; "
                "count both in the same way"
            )
        total = total + counts
    return total, columns


def _pack_counts(counts: TransitionCounts, columns: Columns | None) -> tuple[Tensors, Content]:
    tensors: Tensors = {
        "key": counts.key,
        "records": counts.records,
        "weight": counts.weight,
        "weight_squared": counts.weight_squared,
        "terminal": counts.terminal,
    }
    content: Content = {
        "states": _pack_space(counts.states),
        "actions": _pack_space(counts.actions),
        "tasks": None if counts.tasks is None else _pack_space(counts.tasks),
        "decay": None if counts.decay is None else asdict(counts.decay),
        "columns": None if columns is None else columns.to_dict(),
    }
    return tensors, content


def _unpack_counts(tensors: Tensors, content: Content) -> tuple[TransitionCounts, Columns | None]:
    """The counts that `_pack_counts` packed; what cannot be is refused."""
    states = _unpack_space(content["states"])
    actions = _unpack_space(content["actions"])
    tasks = None if content["tasks"] is None else _unpack_space(content["tasks"])
    shape = () if tasks is None else (len(tasks),)

    # Sums of each distinct transition: one length, finite, not negative.
    key = _tensor(tensors, "key", np.int64)
    records = _tensor(tensors, "records", np.int64)
    weight = _tensor(tensors, "weight", np.float64)
    weight_squared = _tensor(tensors, "weight_squared", np.float64)
    for name, tensor in zip(COUNTS, (key, records, weight, weight_squared), strict=True):
        _require(
            tensor.ndim == 1 and tensor.shape == key.shape,
            f"{name} has the wrong shape {tensor.shape}",
        )
        is_possible = np.isfinite(tensor).all() and (tensor >= 0).all()
        _require(is_possible, f"{name} has negative or undefined values")

    # Keys ascend within the space of all transitions.
    size = prod((*shape, len(states), len(actions), len(states)))
    is_ascending = (np.diff(key) > 0).all() and (key < size).all()
    _require(is_ascending, "the keys of the transitions are out of order")

    # So do terminal states.
    terminal = _tensor(tensors, "terminal", np.int64)
    _require(terminal.ndim == 1, "bad terminal states")
    is_inside = (terminal >= 0).all() and (terminal < len(states)).all()
    _require(is_inside and (np.diff(terminal) > 0).all(), "bad terminal states")

    counts = TransitionCounts(
        states=states,
        actions=actions,
        key=key,
        records=records,
        weight=weight,
        weight_squared=weight_squared,
        shape=shape,
        tasks=tasks,
        terminal=terminal,
        decay=None if content["decay"] is None else Decay(**content["decay"]),
    )
    columns = None if content["columns"] is None else Columns.from_dict(content["columns"])
    return counts, columns


def _pack_space(space: Space) -> Content:
    if isinstance(space.labels, range):
        labels: Any = {"range": len(space)}
    else:
        labels = list(space.labels)
    return {"labels": labels, "fields": list(space.fields)}


def _unpack_space(content: Mapping[str, Any]) -> Space:
    labels = content["labels"]
    fields = tuple(content["fields"])
    _require(all(isinstance(name, str) for name in fields), "names of fields are not text")
    if not isinstance(labels, Mapping):
        return Space([as_label(label) for label in labels], fields)
    number = labels["range"]
    is_possible = type(number) is int and 0 < number <= MAX_LABELS
    _require(is_possible, "an impossible number of labels")
    return Space(range(number), fields)


def as_label(value: Any) -> Label:
    """A label out of JSON, where a product label is a list."""
    return checked_label(tuple(value) if isinstance(value, list) else value)


# The file itself.


def _write(path: str | Path, tensors: Tensors, content: Content) -> None:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    tensors[CONTENT] = np.frombuffer(text, dtype=np.uint8)
    header = {"format": FORMAT, "sha256": _digest(tensors)}
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, {"pastwise": json.dumps(header)})
        except SafetensorError as error:
            raise FileError(f"{path} cannot be written: {error}") from None


def _read(path: str | Path) -> tuple[Tensors, Content]:
    """Tensors and JSON content; anything but such a file is an error that says so."""
    _require_readable(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(metadata["pastwise"])
        number = header["format"]
    except KeyError as error:
        raise PolicyFileError(f"{path} is not a file of pastwise: it has no {error}") from None
    except (SafetensorError, TypeError, ValueError, OSError, RecursionError) as error:
        raise PolicyFileError(f"{path} is not a file of pastwise, or is damaged: {error}") from None
    if number != FORMAT:
        raise PolicyFileError(
            f"{path} has format {number!r}; this version of pastwise reads format {FORMAT}. "
            "Learn again, or use the version that wrote it"
        )
    if CONTENT not in tensors or header.get("sha256") != _digest(tensors):
        raise PolicyFileError(f"{path} is damaged: its checksum does not match its content")
    with _blaming(path):
        content: Content = json.loads(tensors.pop(CONTENT).tobytes())
        _require(isinstance(content, dict), "its content is not a JSON object")
    return tensors, content


def _require_readable(path: str | Path) -> None:
    if Path(path).is_dir():
        raise FileError(f"{path} is a folder, not a file of pastwise")
    if not Path(path).exists():
        raise FileError(f"no such file: {path}")
    try:
        Path(path).open("rb").close()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None


def _digest(tensors: Tensors) -> str:
    """SHA-256 of names, types, shapes and values of all tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        if tensor.size:
            digest.update(np.ascontiguousarray(tensor).data.cast("B"))
    return digest.hexdigest()


def _tensor(tensors: Tensors, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    _require(name in tensors, f"{name} is missing")
    tensor = tensors[name]
    expected = np.dtype(dtype)
    _require(tensor.dtype == expected, f"{name} is of type {tensor.dtype}, not {expected}")
    return tensor


def _require(condition: object, problem: str) -> None:
    """Refuse a file of which something does not hold."""
    if not condition:
        raise PolicyFileError(problem)


@contextmanager
def _blaming(path: str | Path) -> Iterator[None]:
    """Problems with the content of a file are damage to the file, and are reported as such."""
    try:
        yield
    except KeyError as error:
        raise PolicyFileError(f"{path} is damaged: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise PolicyFileError(f"{path} is damaged: {error}") from None
