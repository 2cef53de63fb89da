"""Policies and counts as files: tensors and JSON in one safetensors file.

A file is written to a temporary name and renamed, and distrusted when it is read: the checksum
must match, and the counts must be those of a possible log. What could not be read back is not
written. The checksum is also the file's version: `save_policy` replaces the file that the policy
was read from only if nobody else has replaced it since. Its layout:

- tensors ``key``, ``records``, ``weight``, ``weight_squared`` [distinct] and ``terminal``: the
  counts; for a log with rewards, also ``reward`` and ``reward_squared`` [distinct];
- for a policy, the tensors ``rule`` [S, A] and ``part:NAME`` [1 or S, A]: the plan;
- for the policy of a log with episodes, the tensors ``starts`` [S], ``by_action`` [A] and
  ``fold:NAME`` with the names of the counts: what counts forget about episodes; and, except in
  files of earlier versions, ``visits:by_state`` [S], ``visits:pair`` and ``visits:by_pair`` [P];
- the tensor ``content``: JSON with labels, columns and settings, as bytes;
- metadata ``pastwise``: JSON with the format's number and a SHA-256 of that and everything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pastwise._files import replacing, require_regular_file
from pastwise.data.counts import KEY_LIMIT, Decay, RewardSums, TransitionCounts
from pastwise.data.episodes import NUM_FOLDS, EpisodeSummary, EpisodeVisits
from pastwise.data.space import Label, Space, checked_label
from pastwise.data.visits import StateVisits
from pastwise.errors import ConflictError, FileError, ParameterError, PolicyFileError
from pastwise.goals.goal import Goal
from pastwise.logs.columns import Columns
from pastwise.methods.base import Plan
from pastwise.methods.registry import from_settings, to_settings
from pastwise.policy.state import PolicyState, Settings
from pastwise.theory.similarity import kl_divergence

FORMAT = 5
"""Number of the layout above, as it is written."""

READABLE = (3, 4, FORMAT)
"""Numbers of the layouts that are read; others are refused. Format 3 has no episodes, and neither
3 nor 4 has rewards."""

CONTENT = "content"
PART = "part:"
FOLD = "fold:"
VISITS = "visits:"

TYPES = ("I64", "F64", "U8")
"""Types of numbers that our files have, as safetensors names them."""

EPISODE_NUMBERS = ("number", "records", "shortest", "median", "longest", "varied", "several")
"""Numbers of an `EpisodeSummary` that are stored in the content."""

VISIT_NUMBERS = ("by_state", "pair", "by_pair")
"""Numbers of `EpisodeVisits` that are stored as tensors."""

UNSEEN_LABELS = 10**6
"""Labels 0, ..., n - 1 are stored as n, which costs nothing; a forged n would cost gigabytes. So n
is at most this, or the number of numbers in the file's arrays, if that is larger: labels that occur
in a log always pass."""

UNSEEN_TASKS = 1000
"""The same for tasks, each of which becomes a log of its own."""

Tensors = dict[str, NDArray[Any]]
Content = dict[str, Any]


# Policies.


def save_policy(policy: PolicyState, path: str | Path) -> None:
    """Write all that was learned; what was there before survives if that fails.

    Raises
    ------
    ConflictError
        If the policy was read from this file, or written to it, and the file is another one now.
    """
    settings = policy.settings
    if settings.divergence is not kl_divergence:
        raise ParameterError("only a learner with the library's own divergence can be saved")
    method = to_settings(settings.method)
    counts, plan = policy.counts_and_plan()
    _require_plan(plan, (len(counts.states), len(counts.actions)))
    tensors, content = _pack_counts(counts, policy.columns)
    tensors["rule"] = np.asarray(plan.rule, dtype=np.float64)
    for name, part in plan.parts.items():
        tensors[PART + name] = np.asarray(part, dtype=np.float64)
    episode_tensors, content["episodes"] = _pack_episodes(policy.episodes)
    tensors |= episode_tensors
    _require_justified_labels(counts, tensors)
    past_goals = settings.past_goals or {}
    content |= {
        "goal": settings.goal.to_dict(),
        "past_goals": [[checked_label(task), goal.to_dict()] for task, goal in past_goals.items()],
        "method": method,
        "on_unseen": settings.on_unseen,
        "parts": list(plan.parts),
        "adds_up": plan.adds_up,
    }
    version = Path(path).resolve()
    checksum = _write(path, tensors, content, replaces=policy.versions.get(version))
    policy.versions[version] = checksum


def load_policy(path: str | Path) -> PolicyState:
    """What `save_policy` wrote; a damaged or foreign file is an error that says what is wrong."""
    tensors, content, checksum = _read(path)
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
        policy = PolicyState(
            settings,
            counts,
            columns,
            known_plan=plan,
            versions={Path(path).resolve(): checksum},
            episodes=_unpack_episodes(tensors, content, counts),
        )
        policy.require_goals_fit()
    return policy


def _unpack_plan(tensors: Tensors, content: Content, counts: TransitionCounts) -> Plan:
    """The stored plan; what cannot be one is refused."""
    rule = _tensor(tensors, "rule", np.float64)
    parts = {name: _tensor(tensors, PART + name, np.float64) for name in content["parts"]}
    plan = Plan(rule, parts, bool(content["adds_up"]))
    _require_plan(plan, (len(counts.states), len(counts.actions)))
    return plan


def _require_plan(plan: Plan, sizes: tuple[int, int]) -> None:
    """Refuse what is no plan of this number of states and actions."""
    rule = plan.rule
    _require(rule.shape == sizes, "the rule has the wrong shape")
    _require(np.isfinite(rule).all() and (rule >= 0).all(), "the rule has impossible values")
    _require(np.allclose(rule.sum(axis=-1), 1), "the rule is not normalised")
    for name, part in plan.parts.items():
        fits = part.ndim == 2 and part.shape[0] in (1, sizes[0]) and part.shape[1] == sizes[1]
        _require(fits, f"part {name!r} of the plan has the wrong shape")
        _require(not np.isnan(part).any(), f"part {name!r} of the plan has impossible values")


def _pack_episodes(episodes: EpisodeSummary | None) -> tuple[Tensors, Content | None]:
    if episodes is None:
        return {}, None
    episodes.require_possible()
    folds = episodes.folds
    tensors: Tensors = {
        "starts": np.asarray(episodes.starts, dtype=np.int64),
        "by_action": np.asarray(episodes.by_action, dtype=np.int64),
        FOLD + "key": np.asarray(folds.key, dtype=np.int64),
        FOLD + "records": np.asarray(folds.records, dtype=np.int64),
        FOLD + "weight": np.asarray(folds.weight, dtype=np.float64),
        FOLD + "weight_squared": np.asarray(folds.weight_squared, dtype=np.float64),
        **_pack_rewards(folds, FOLD),
    }
    if episodes.visits is not None:
        for name in VISIT_NUMBERS:
            tensors[VISITS + name] = np.asarray(getattr(episodes.visits, name), dtype=np.int64)
    numbers = {name: getattr(episodes, name) for name in EPISODE_NUMBERS}
    decay = None if folds.decay is None else asdict(folds.decay)
    return tensors, {**numbers, "unit": episodes.unit, "decay": decay}


def _unpack_episodes(
    tensors: Tensors, content: Content, counts: TransitionCounts
) -> EpisodeSummary | None:
    """The summary that `_pack_episodes` packed; what cannot be is refused."""
    stored = content.get("episodes")
    if stored is None:
        return None
    folds = TransitionCounts(
        states=counts.states,
        actions=counts.actions,
        key=_tensor(tensors, FOLD + "key", np.int64),
        records=_tensor(tensors, FOLD + "records", np.int64),
        weight=_tensor(tensors, FOLD + "weight", np.float64),
        weight_squared=_tensor(tensors, FOLD + "weight_squared", np.float64),
        shape=(NUM_FOLDS,),
        terminal=counts.terminal,
        decay=None if stored["decay"] is None else Decay(**stored["decay"]),
        **_unpack_rewards(tensors, FOLD),
    )
    _require(folds.has_rewards == counts.has_rewards, "rewards of the counts or folds are missing")
    numbers = {name: stored[name] for name in EPISODE_NUMBERS}
    are_whole = all(type(number) is int for number in numbers.values())
    _require(are_whole, "a number of the episodes is not whole")
    unit = stored["unit"]
    _require(unit is None or isinstance(unit, str), "the name of the episodes is not text")
    episodes = EpisodeSummary(
        **numbers,
        starts=_tensor(tensors, "starts", np.int64),
        by_action=_tensor(tensors, "by_action", np.int64),
        folds=folds,
        unit=unit,
        visits=_unpack_visits(tensors, len(counts.actions)),
    )
    episodes.require_possible()
    episodes.require_part_of(counts)
    return episodes


def _unpack_visits(tensors: Tensors, num_actions: int) -> EpisodeVisits | None:
    """The visits of the episodes; files of earlier versions have none."""
    if not any(name.startswith(VISITS) for name in tensors):
        return None
    numbers = {name: _tensor(tensors, VISITS + name, np.int64) for name in VISIT_NUMBERS}
    return EpisodeVisits(**numbers, num_actions=num_actions)


# Counts.


def save_counts(
    counts: TransitionCounts,
    path: str | Path,
    columns: Columns | None = None,
    *,
    replaces: str | None = None,
) -> None:
    """Write counts, with the columns that they were read by.

    Parameters
    ----------
    counts : TransitionCounts
    path : path
    columns : Columns, optional
    replaces : str, optional
        Checksum of the file that is to be replaced, see `checksum_of`; a `ConflictError` says that
        there is another one by now.
    """
    tensors, content = _pack_counts(counts, columns)
    _require_justified_labels(counts, tensors)
    _write(path, tensors, content, replaces=replaces)


def load_counts(path: str | Path) -> tuple[TransitionCounts, Columns | None]:
    """Counts, and the columns that they were read by, from a file of counts or of a policy."""
    tensors, content, _ = _read(path)
    with _blaming(path):
        return _unpack_counts(tensors, content)


def load_visits(path: str | Path) -> StateVisits:
    """The states of a file of counts or of a policy; the latter may know their episodes."""
    tensors, content, _ = _read(path)
    with _blaming(path):
        counts, _ = _unpack_counts(tensors, content)
        episodes = None
        if "goal" in content:
            episodes = _unpack_episodes(tensors, content, counts)
        return StateVisits.of(counts, episodes)


def merge_counts(paths: Sequence[str | Path]) -> tuple[TransitionCounts, Columns | None]:
    """The counts of several files together, in any order; they must be counted the same way."""
    if not paths:
        raise ParameterError("no file of counts was given")
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


def merge_files(paths: Sequence[str | Path], output: str | Path) -> TransitionCounts:
    """Write the counts of several files together; ``output`` may be one of them.

    Raises
    ------
    ConflictError
        If ``output`` is one of the files, and was changed since it was read.
    """
    target = Path(output).resolve()
    is_replaced = any(Path(path).resolve() == target for path in paths)
    replaces = checksum_of(output) if is_replaced else None
    counts, columns = merge_counts(paths)
    save_counts(counts, output, columns, replaces=replaces)
    return counts


def _pack_counts(counts: TransitionCounts, columns: Columns | None) -> tuple[Tensors, Content]:
    counts.require_possible()
    tensors: Tensors = {
        "key": np.asarray(counts.key, dtype=np.int64),
        "records": np.asarray(counts.records, dtype=np.int64),
        "weight": np.asarray(counts.weight, dtype=np.float64),
        "weight_squared": np.asarray(counts.weight_squared, dtype=np.float64),
        "terminal": np.asarray(counts.terminal, dtype=np.int64),
        **_pack_rewards(counts),
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
    counts = TransitionCounts(
        states=states,
        actions=actions,
        key=_tensor(tensors, "key", np.int64),
        records=_tensor(tensors, "records", np.int64),
        weight=_tensor(tensors, "weight", np.float64),
        weight_squared=_tensor(tensors, "weight_squared", np.float64),
        shape=() if tasks is None else (len(tasks),),
        tasks=tasks,
        terminal=_tensor(tensors, "terminal", np.int64),
        decay=None if content["decay"] is None else Decay(**content["decay"]),
        **_unpack_rewards(tensors),
    )
    _require_justified_labels(counts, tensors)
    counts.require_possible()
    columns = None if content["columns"] is None else Columns.from_dict(content["columns"])
    return counts, columns


def _pack_rewards(counts: TransitionCounts, prefix: str = "") -> Tensors:
    """The sums of rewards, where the counts have any."""
    if counts.reward_sums is None:
        return {}
    reward, reward_squared = counts.reward_sums
    return {
        prefix + "reward": np.asarray(reward, dtype=np.float64),
        prefix + "reward_squared": np.asarray(reward_squared, dtype=np.float64),
    }


def _unpack_rewards(tensors: Tensors, prefix: str = "") -> RewardSums:
    """What `_pack_rewards` packed."""
    if prefix + "reward" not in tensors and prefix + "reward_squared" not in tensors:
        return {}
    return {
        "reward": _tensor(tensors, prefix + "reward", np.float64),
        "reward_squared": _tensor(tensors, prefix + "reward_squared", np.float64),
    }


def _require_justified_labels(counts: TransitionCounts, tensors: Tensors) -> None:
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


def _pack_space(space: Space) -> Content:
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


def _unpack_space(content: Mapping[str, Any]) -> Space:
    labels = content["labels"]
    fields = tuple(content["fields"])
    _require(all(isinstance(name, str) for name in fields), "names of fields are not text")
    given = content.get("orders", ())
    orders = tuple(tuple(as_label(label) for label in order) for order in given)
    _require(len(orders) in (0, max(1, len(fields))), "an order for each field, or none")
    if not isinstance(labels, Mapping):
        return Space([as_label(label) for label in labels], fields, orders)
    number = labels["range"]
    is_possible = type(number) is int and 0 < number < KEY_LIMIT
    _require(is_possible, "an impossible number of labels")
    return Space(range(number), fields, orders)


def as_label(value: Any) -> Label:
    """A label out of JSON, where a product label is a list."""
    if isinstance(value, list):
        return tuple(as_label(part) for part in value)
    return checked_label(value)


# The file itself.


def _write(
    path: str | Path, tensors: Tensors, content: Content, *, replaces: str | None = None
) -> str:
    """Write a file and return its checksum.

    With ``replaces``, the file that is there must still have that checksum.
    """
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    tensors[CONTENT] = np.frombuffer(_encoded(content), dtype=np.uint8)
    checksum = _digest(tensors, FORMAT)
    header = {"format": FORMAT, "sha256": checksum}

    def require_unchanged(target: Path) -> None:
        if replaces is not None and target.exists() and checksum_of(target) != replaces:
            raise ConflictError(
                f"{path} was changed by somebody else since it was read; nothing was written. "
                "Read it again and repeat what you did, or write to another file"
            )

    with replacing(path, check=require_unchanged) as temporary:
        try:
            save_file(tensors, temporary, {"pastwise": json.dumps(header)})
        except SafetensorError as error:
            raise FileError(f"{path} cannot be written: {error}") from None
    return checksum


def checksum_of(path: str | Path) -> str | None:
    """The checksum that a file states: its version. None if there is no such file of pastwise."""
    try:
        require_regular_file(path)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
        checksum = json.loads(metadata["pastwise"])["sha256"]
    except (KeyError, SafetensorError, TypeError, ValueError, OSError, RecursionError):
        return None
    return checksum if isinstance(checksum, str) else None


def _read(path: str | Path) -> tuple[Tensors, Content, str]:
    """Tensors, JSON content and checksum; anything but such a file is an error that says so."""
    require_regular_file(path)
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata["pastwise"])
            number = header["format"]
            names = list(file.keys())
            types = {name: file.get_slice(name).get_dtype() for name in names}
            foreign = [kind for kind in types.values() if kind not in TYPES]
            _require(not foreign, f"it has numbers of type {', '.join(foreign[:3])}")
            tensors = {name: file.get_tensor(name) for name in names}
    except KeyError as error:
        raise PolicyFileError(f"{path} is not a file of pastwise: it has no {error}") from None
    except (SafetensorError, TypeError, ValueError, OSError, RecursionError) as error:
        raise PolicyFileError(f"{path} is not a file of pastwise, or is damaged: {error}") from None
    if number not in READABLE:
        older = ", ".join(str(readable) for readable in READABLE[:-1])
        known = f"{older} and {READABLE[-1]}"
        raise PolicyFileError(
            f"{path} has format {number!r}; this version of pastwise reads formats {known}. "
            "Learn again, or use the version that wrote it"
        )
    checksum = header.get("sha256")
    if CONTENT not in tensors or checksum != _digest(tensors, number):
        raise PolicyFileError(f"{path} is damaged: its checksum does not match its content")
    with _blaming(path):
        content = _decoded(tensors.pop(CONTENT).tobytes())
    return tensors, content, checksum


def _encoded(content: Content) -> bytes:
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


def _decoded(text: bytes) -> Content:
    """The content of JSON text, if it could be written again."""
    content = json.loads(text, parse_float=_finite, parse_constant=_finite)
    _require(isinstance(content, dict), "its content is not a JSON object")
    if rb"\u" in text:  # the only way to half of a surrogate pair
        _encoded(content)
    return dict(content)


def _finite(text: str) -> float:
    """A number of JSON text; infinities and NaN, which Python's reader lets pass, are refused."""
    number = float(text)
    _require(isfinite(number), f"{text} is no finite number")
    return number


def _digest(tensors: Tensors, number: int) -> str:
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
