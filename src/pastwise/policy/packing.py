"""Counts, plans and JSON as tensors, and back: what files of policies and snapshots are made of.

What is read is distrusted: `unpack_counts` refuses counts of an impossible log, `decoded` refuses
JSON that could not have been written, and `blaming` reports any problem as damage.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pastwise.data.counts import KEY_LIMIT, Decay, RewardSums, TransitionCounts
from pastwise.data.space import Label, Space, checked_label
from pastwise.errors import ParameterError, PolicyFileError
from pastwise.logs.columns import Columns
from pastwise.methods.base import Plan

CONTENT = "content"
"""Name of the tensor that holds JSON as bytes."""

RULE = "rule"
PART = "part:"
"""Names of the tensors of a plan: its rule, and how the names of its parts begin."""

UNSEEN_LABELS = 10**6
"""Labels 0, ..., n - 1 are stored as n, which costs nothing; a forged n would cost gigabytes. So n
is at most this, or the number of numbers in the file's arrays, if that is larger: labels that occur
in a log always pass."""

UNSEEN_TASKS = 1000
"""The same for tasks, each of which becomes a log of its own."""

Tensors = dict[str, NDArray[Any]]
Content = dict[str, Any]


# Counts.


def pack_counts(counts: TransitionCounts, columns: Columns | None) -> tuple[Tensors, Content]:
    """Counts, with the columns that they were read by."""
    counts.require_possible()
    tensors: Tensors = {
        "key": np.asarray(counts.key, dtype=np.int64),
        "records": np.asarray(counts.records, dtype=np.int64),
        "weight": np.asarray(counts.weight, dtype=np.float64),
        "weight_squared": np.asarray(counts.weight_squared, dtype=np.float64),
        "terminal": np.asarray(counts.terminal, dtype=np.int64),
        **pack_rewards(counts),
    }
    content: Content = {
        "states": pack_space(counts.states),
        "actions": pack_space(counts.actions),
        "tasks": None if counts.tasks is None else pack_space(counts.tasks),
        "decay": None if counts.decay is None else asdict(counts.decay),
        "columns": None if columns is None else columns.to_dict(),
    }
    return tensors, content


def unpack_counts(tensors: Tensors, content: Content) -> tuple[TransitionCounts, Columns | None]:
    """The counts that `pack_counts` packed; what cannot be is refused."""
    states = unpack_space(content["states"])
    actions = unpack_space(content["actions"])
    tasks = None if content["tasks"] is None else unpack_space(content["tasks"])
    counts = TransitionCounts(
        states=states,
        actions=actions,
        key=tensor_of(tensors, "key", np.int64),
        records=tensor_of(tensors, "records", np.int64),
        weight=tensor_of(tensors, "weight", np.float64),
        weight_squared=tensor_of(tensors, "weight_squared", np.float64),
        shape=() if tasks is None else (len(tasks),),
        tasks=tasks,
        terminal=tensor_of(tensors, "terminal", np.int64),
        decay=None if content["decay"] is None else Decay(**content["decay"]),
        **unpack_rewards(tensors),
    )
    require_justified_labels(counts, tensors)
    counts.require_possible()
    columns = None if content["columns"] is None else Columns.from_dict(content["columns"])
    return counts, columns


def pack_rewards(counts: TransitionCounts, prefix: str = "") -> Tensors:
    """The sums of rewards, where the counts have any."""
    if counts.reward_sums is None:
        return {}
    reward, reward_squared = counts.reward_sums
    return {
        prefix + "reward": np.asarray(reward, dtype=np.float64),
        prefix + "reward_squared": np.asarray(reward_squared, dtype=np.float64),
    }


def unpack_rewards(tensors: Tensors, prefix: str = "") -> RewardSums:
    """What `pack_rewards` packed."""
    if prefix + "reward" not in tensors and prefix + "reward_squared" not in tensors:
        return {}
    return {
        "reward": tensor_of(tensors, prefix + "reward", np.float64),
        "reward_squared": tensor_of(tensors, prefix + "reward_squared", np.float64),
    }


def require_justified_labels(counts: TransitionCounts, tensors: Tensors) -> None:
    """Refuse ranges of labels that the file's numbers do not justify; see `UNSEEN_LABELS`."""
    num_numbers = sum(tensor.size for name, tensor in tensors.items() if name != CONTENT)
    limits = {
        "states": (counts.states, max(UNSEEN_LABELS, num_numbers)),
        "actions": (counts.actions, max(UNSEEN_LABELS, num_numbers)),
        "tasks": (counts.tasks, max(UNSEEN_TASKS, num_numbers)),
    }
    for name, (space, limit) in limits.items():
        if space is not None and isinstance(space.labels, range) and len(space) > limit:
            raise ParameterError(
                f"{len(space):,} {name} for {len(counts.key):,} distinct transitions; "
                f"at most {limit:,} are kept. Leave out those that never occur"
            )


def pack_space(space: Space) -> Content:
    """Labels, fields and orders of a space."""
    if isinstance(space.labels, range):
        labels: Any = {"range": len(space)}
    else:
        labels = [_storable(label) for label in space.labels]
    content = {"labels": labels, "fields": list(space.fields)}
    if space.orders:
        content["orders"] = [[_storable(label) for label in order] for order in space.orders]
    return content


def _storable(label: Label) -> Label:
    """A label that JSON holds; text is checked when it is encoded."""
    return label if type(label) is str else checked_label(label)


def unpack_space(content: Mapping[str, Any]) -> Space:
    """The space that `pack_space` packed."""
    labels = content["labels"]
    fields = tuple(content["fields"])
    require(all(isinstance(name, str) for name in fields), "names of fields are not text")
    given = content.get("orders", ())
    orders = tuple(tuple(as_label(label) for label in order) for order in given)
    require(len(orders) in (0, max(1, len(fields))), "an order for each field, or none")
    if not isinstance(labels, Mapping):
        return Space([as_label(label) for label in labels], fields, orders)
    number = labels["range"]
    is_possible = type(number) is int and 0 < number < KEY_LIMIT
    require(is_possible, "an impossible number of labels")
    return Space(range(number), fields, orders)


def as_label(value: Any) -> Label:
    """A label out of JSON, where a product label is a list."""
    if isinstance(value, list):
        return tuple(as_label(part) for part in value)
    return checked_label(value)


# Plans.


def pack_plan(plan: Plan, sizes: tuple[int, int]) -> tuple[Tensors, Content]:
    """The rule and its parts, for a number of states and of actions."""
    require_plan(plan, sizes)
    tensors = {RULE: np.asarray(plan.rule, dtype=np.float64)}
    for name, part in plan.parts.items():
        tensors[PART + name] = np.asarray(part, dtype=np.float64)
    return tensors, {"parts": list(plan.parts), "adds_up": plan.adds_up}


def unpack_plan(tensors: Tensors, content: Content, counts: TransitionCounts) -> Plan:
    """The stored plan; what cannot be one is refused."""
    rule = tensor_of(tensors, RULE, np.float64)
    parts = {name: tensor_of(tensors, PART + name, np.float64) for name in content["parts"]}
    plan = Plan(rule, parts, bool(content["adds_up"]))
    require_plan(plan, (len(counts.states), len(counts.actions)))
    return plan


def require_plan(plan: Plan, sizes: tuple[int, int]) -> None:
    """Refuse what is no plan of this number of states and actions."""
    rule = plan.rule
    require(rule.shape == sizes, "the rule has the wrong shape")
    require(np.isfinite(rule).all() and (rule >= 0).all(), "the rule has impossible values")
    require(np.allclose(rule.sum(axis=-1), 1), "the rule is not normalised")
    for name, part in plan.parts.items():
        fits = part.ndim == 2 and part.shape[0] in (1, sizes[0]) and part.shape[1] == sizes[1]
        require(fits, f"part {name!r} of the plan has the wrong shape")
        require(not np.isnan(part).any(), f"part {name!r} of the plan has impossible values")


# JSON and checksums.


def encoded(content: Content) -> bytes:
    """The content as JSON; what JSON cannot hold is refused."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        text = error.object[max(0, error.start - 20) : error.end + 20]
        raise ParameterError(
            f"a label or the name of a column has half of a surrogate pair, near {text!r}; "
            "replace it"
        ) from None
    except (TypeError, ValueError) as error:
        raise ParameterError(f"a label or a setting cannot be written: {error}") from None


def decoded(text: bytes) -> Content:
    """The content of JSON text, if it could be written again."""
    content = json.loads(text, parse_float=_finite, parse_constant=_finite)
    require(isinstance(content, dict), "its content is not a JSON object")
    if rb"\u" in text:  # the only way to half of a surrogate pair
        encoded(content)
    return dict(content)


def _finite(text: str) -> float:
    """A number of JSON text; infinities and NaN, which Python's reader lets pass, are refused."""
    number = float(text)
    require(isfinite(number), f"{text} is no finite number")
    return number


def digest_of(tensors: Tensors, number: int) -> str:
    """SHA-256 of names, types, shapes and values of all tensors, and of the format's number.

    Formats 3 and 4 left out their number. One changed bit makes a 4 of a 5, so it has to count.
    """
    digest = hashlib.sha256()
    if number >= 5:
        digest.update(f"format {number}\n".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}\n".encode())
        if tensor.size:
            digest.update(np.ascontiguousarray(tensor).data.cast("B"))
    return digest.hexdigest()


def tensor_of(tensors: Tensors, name: str, dtype: type[np.generic]) -> NDArray[Any]:
    """A tensor, which must be there and of the right type."""
    require(name in tensors, f"{name} is missing")
    tensor = tensors[name]
    expected = np.dtype(dtype)
    require(tensor.dtype == expected, f"{name} is of type {tensor.dtype}, not {expected}")
    return tensor


def require(condition: object, problem: str) -> None:
    """Refuse a file of which something does not hold."""
    if not condition:
        raise PolicyFileError(problem)


@contextmanager
def blaming(path: str | Path) -> Iterator[None]:
    """Problems with the content of a file are damage to the file, and are reported as such."""
    try:
        yield
    except KeyError as error:
        raise PolicyFileError(f"{path} is damaged: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise PolicyFileError(f"{path} is damaged: {error}") from None
