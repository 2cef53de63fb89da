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

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from pastwise._files import replacing, require_regular_file
from pastwise.data.bins import Bins
from pastwise.data.counts import Decay, TransitionCounts
from pastwise.data.episodes import NUM_FOLDS, EpisodeSummary, EpisodeVisits
from pastwise.data.space import checked_label
from pastwise.data.visits import StateVisits
from pastwise.errors import (
    ConflictError,
    FileError,
    ParameterError,
    PolicyFileError,
    listed,
    shown,
)
from pastwise.goals.goal import Goal
from pastwise.logs.columns import Columns
from pastwise.logs.outcomes import named_alike
from pastwise.methods.registry import entries, from_settings, to_settings
from pastwise.policy.packing import (
    CONTENT,
    Content,
    Tensors,
    as_label,
    blaming,
    decoded,
    digest_of,
    encoded,
    pack_counts,
    pack_plan,
    pack_rewards,
    require,
    require_justified_labels,
    tensor_of,
    unpack_counts,
    unpack_plan,
    unpack_rewards,
)
from pastwise.policy.state import PolicyState, Settings
from pastwise.theory.similarity import kl_divergence

FORMAT = 5
"""Number of the layout above, as it is written."""

READABLE = (3, 4, FORMAT)
"""Numbers of the layouts that are read; others are refused. Format 3 has no episodes, and neither
3 nor 4 has rewards."""

FOLD = "fold:"
VISITS = "visits:"

TYPES = ("I64", "F64", "U8")
"""Types of numbers that our files have, as safetensors names them."""

EPISODE_NUMBERS = ("number", "records", "shortest", "median", "longest", "varied", "several")
"""Numbers of an `EpisodeSummary` that are stored in the content."""

VISIT_NUMBERS = ("by_state", "pair", "by_pair")
"""Numbers of `EpisodeVisits` that are stored as tensors."""


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
    tensors, content = pack_counts(counts, policy.columns)
    plan_tensors, plan_content = pack_plan(plan, (len(counts.states), len(counts.actions)))
    episode_tensors, content["episodes"] = _pack_episodes(policy.episodes)
    tensors |= plan_tensors | episode_tensors
    require_justified_labels(counts, tensors)
    past_goals = settings.past_goals or {}
    content |= {
        "goal": settings.goal.to_dict(),
        "past_goals": [[checked_label(task), goal.to_dict()] for task, goal in past_goals.items()],
        "method": method,
        "on_unseen": settings.on_unseen,
        **plan_content,
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
    with blaming(path):
        method = content["method"]["name"]
        is_installed = method in entries()
    if not is_installed:
        raise PolicyFileError(
            f"{path} was learned by the method {shown(method)}, which is not installed; "
            "install the package that has it, or import the module that registers it"
        )
    with blaming(path):
        counts, columns = unpack_counts(tensors, content)
        past_goals = {as_label(task): Goal.from_dict(goal) for task, goal in content["past_goals"]}
        settings = Settings(
            goal=Goal.from_dict(content["goal"]),
            method=from_settings(content["method"]),
            past_goals=past_goals or None,
            divergence=kl_divergence,
            on_unseen=content["on_unseen"],
        )
        plan = unpack_plan(tensors, content, counts)
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
        **pack_rewards(folds, FOLD),
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
        key=tensor_of(tensors, FOLD + "key", np.int64),
        records=tensor_of(tensors, FOLD + "records", np.int64),
        weight=tensor_of(tensors, FOLD + "weight", np.float64),
        weight_squared=tensor_of(tensors, FOLD + "weight_squared", np.float64),
        shape=(NUM_FOLDS,),
        terminal=counts.terminal,
        decay=None if stored["decay"] is None else Decay(**stored["decay"]),
        **unpack_rewards(tensors, FOLD),
    )
    require(folds.has_rewards == counts.has_rewards, "rewards of the counts or folds are missing")
    numbers = {name: stored[name] for name in EPISODE_NUMBERS}
    are_whole = all(type(number) is int for number in numbers.values())
    require(are_whole, "a number of the episodes is not whole")
    unit = stored["unit"]
    require(unit is None or isinstance(unit, str), "the name of the episodes is not text")
    episodes = EpisodeSummary(
        **numbers,
        starts=tensor_of(tensors, "starts", np.int64),
        by_action=tensor_of(tensors, "by_action", np.int64),
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
    numbers = {name: tensor_of(tensors, VISITS + name, np.int64) for name in VISIT_NUMBERS}
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
    tensors, content = pack_counts(counts, columns)
    require_justified_labels(counts, tensors)
    _write(path, tensors, content, replaces=replaces)


def load_counts(path: str | Path) -> tuple[TransitionCounts, Columns | None]:
    """Counts, and the columns that they were read by, from a file of counts or of a policy."""
    tensors, content, _ = _read(path)
    with blaming(path):
        return unpack_counts(tensors, content)


def load_visits(path: str | Path) -> StateVisits:
    """The states of a file of counts or of a policy; the latter may know their episodes."""
    tensors, content, _ = _read(path)
    with blaming(path):
        counts, _ = unpack_counts(tensors, content)
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
        difference = _difference(columns, other_columns)
        if difference:
            raise ParameterError(
                f"{path} was counted by other columns or bins than {paths[0]}: {difference}"
            )
        if columns is not None and other_columns is not None and columns.outcome:
            one = (total, columns)
            (total, columns), (counts, _) = named_alike(one, (counts, other_columns))
        total = total + counts
    return total, columns


COUNT_AGAIN = "count both in the same way"
"""What to do about counts that cannot be added."""


def _difference(one: Columns | None, two: Columns | None) -> str | None:
    """How the columns of two files of counts differ, and what to do; None if they are the same."""
    if one is None or two is None:
        return None if one is two else f"only one of them names its columns; {COUNT_AGAIN}"
    names = [entry.name for entry in fields(Columns) if entry.name != "prefixed_outcome"]
    different = [name for name in names if getattr(one, name) != getattr(two, name)]
    if not different:
        return None
    if different != ["bins"]:
        return f"they differ in {listed(different)}; {COUNT_AGAIN}"

    # Bins of equal frequency have edges of their own in every part.
    bins = {**one.bins, **two.bins}
    column = next(name for name in bins if one.bins.get(name) != two.bins.get(name))
    known = one.bins.get(column, bins[column])
    edges = "..."
    if isinstance(known, Bins) and known.is_open:
        edges = ",".join(map(repr, known.edges))
    return (
        f"the bins of {column!r} differ; count both with the same edges, such as "
        f"--bins {column}={edges}"
    )


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


# The file itself.


def _write(
    path: str | Path, tensors: Tensors, content: Content, *, replaces: str | None = None
) -> str:
    """Write a file and return its checksum.

    With ``replaces``, the file that is there must still have that checksum.
    """
    tensors = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    tensors[CONTENT] = np.frombuffer(encoded(content), dtype=np.uint8)
    checksum = digest_of(tensors, FORMAT)
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
            require(not foreign, f"it has numbers of type {', '.join(foreign[:3])}")
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
    if CONTENT not in tensors or checksum != digest_of(tensors, number):
        raise PolicyFileError(f"{path} is damaged: its checksum does not match its content")
    with blaming(path):
        content = decoded(tensors.pop(CONTENT).tobytes())
    return tensors, content, checksum
