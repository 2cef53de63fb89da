"""Datasets of Minari: counted, and written from logs of environments.

Minari stores episodes in the environment's own form. A `Coding` turns them into states and actions,
as it does for an environment.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np

from pastwise._numerics.arrays import BoolArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.errors import FileError, LogError, MissingDependencyError, ParameterError
from pastwise.simulation.coding import BoxBins, Coding, Ends
from pastwise.simulation.gymnasium import EpisodeLog

MAKE_TABLE = (
    "make a table with a row for each step, and count that by count_transitions, whose bins= cut "
    "states and actions"
)
"""What to do about a dataset whose observations or actions are not supported."""


def _require_minari() -> Any:
    """The package, if it and the libraries that it stores datasets with are installed."""
    try:
        import h5py  # noqa: F401
        import minari
        import PIL  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"datasets need Minari; install it: pip install 'minari[hdf5]' pillow ({error})"
        ) from None
    return minari


def counts_of(
    dataset: Any,
    bins: BoxBins | None = None,
    *,
    fields: Sequence[str] | None = None,
    ends: Ends | None = None,
) -> TransitionCounts:
    """Count the transitions of a dataset of Minari.

    States in which episodes terminated are terminal. The last state of an episode that was only
    truncated is not.

    Parameters
    ----------
    dataset : minari.MinariDataset or str
        A dataset, or the id of one on this machine; nothing is downloaded.
    bins, fields, ends : optional
        How observations become states; see `pastwise.simulation.gymnasium.GymSystem`.
    """
    minari = _require_minari()
    opened = _load(minari, dataset) if isinstance(dataset, str) else dataset
    if not isinstance(opened, minari.MinariDataset):
        raise ParameterError(
            f"give a dataset of Minari, or the id of one, not {type(dataset).__name__}"
        )
    coding = Coding.of(
        opened.observation_space, opened.action_space, bins, fields, ends, MAKE_TABLE
    )
    records = [_records_of(coding, episode) for episode in opened.iterate_episodes()]
    if not records:
        raise LogError(f"the dataset {opened.id!r} has no episodes")
    state = np.concatenate([episode.state for episode in records])
    action = np.concatenate([episode.action for episode in records])
    next_state = np.concatenate([episode.next_state for episode in records])
    terminated = np.concatenate([episode.terminated for episode in records])
    counts = TransitionCounts.from_records(state, action, next_state, coding.states, coding.actions)
    return counts.ending_in(coding.ended(state, next_state, terminated))


def _load(minari: Any, name: str) -> Any:
    try:
        return minari.load_dataset(name)
    except FileNotFoundError:
        known = ", ".join(minari.list_local_datasets()) or "none"
        raise FileError(
            f"there is no dataset {name!r} on this machine (there are: {known}); "
            f"download it first: minari download {name}"
        ) from None


class _Records(NamedTuple):
    """The steps of an episode, by index: each [steps]."""

    state: IntArray
    action: IntArray
    next_state: IntArray
    terminated: BoolArray


def _records_of(coding: Coding, episode: Any) -> _Records:
    """The steps of an episode of Minari."""
    visited = coding.state(episode.observations)
    action = coding.action(episode.actions)
    terminated = np.asarray(episode.terminations, dtype=bool)
    if not len(visited) - 1 == len(action) == len(terminated):
        raise LogError(
            f"episode {episode.id} of the dataset has {len(visited)} observations, {len(action)} "
            f"actions and {len(terminated)} terminations; an episode has one observation more than "
            "it has steps"
        )
    next_state = visited[1:].copy()
    for step in np.flatnonzero(terminated).tolist():
        next_state[step] = coding.end(int(next_state[step]), float(episode.rewards[step]))
    return _Records(visited[:-1], action, next_state, terminated)


def to_minari(log: EpisodeLog, dataset_id: str, **details: Any) -> Any:
    """Write a log of an environment as a dataset of Minari, in the environment's own form.

    Minari stores it in the folder that the variable MINARI_DATASETS_PATH names.

    Parameters
    ----------
    log : EpisodeLog
        A log from `collect`.
    dataset_id : str
        ``name-v0`` or ``namespace/name-v0``; one that exists is an error.
    details
        ``author``, ``author_email``, ``code_permalink``, ``algorithm_name``, ``description`` and so
        on; see ``minari.create_dataset_from_buffers``.

    Returns
    -------
    minari.MinariDataset
    """
    minari = _require_minari()
    from minari.dataset.minari_dataset import DATASET_ID_RE
    from minari.storage.datasets_root_dir import get_dataset_path

    # The name must be valid and new.
    match = DATASET_ID_RE.fullmatch(dataset_id)
    if not match or match["version"] is None:
        raise ParameterError(
            f"{dataset_id!r} is not the id of a dataset, such as name-v0 or namespace/name-v0"
        )
    path = get_dataset_path(dataset_id)
    if path.exists():
        raise FileError(
            f"the dataset {dataset_id!r} exists already in {path}; choose another name or version"
        )

    options = {
        "observation_space": log.coding.observation_space,
        "action_space": log.coding.action_space,
        **_environment_of(log),
        **details,
    }
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`\w+` is set to None|env_spec is None", UserWarning)
            return minari.create_dataset_from_buffers(dataset_id, _buffers(log), **options)
    except BaseException:
        rmtree(path, ignore_errors=True)  # Minari would leave half a dataset
        raise


def _buffers(log: EpisodeLog) -> list[Any]:
    """The episodes in the form from which Minari writes them."""
    from minari.data_collector.episode_buffer import EpisodeBuffer

    coding = log.coding
    starts = np.flatnonzero(log.time == 0)
    steps_of_each = np.split(np.arange(len(log.time)), starts[1:])
    buffers = []
    for observations, steps in zip(log.observations, steps_of_each, strict=True):
        actions = [coding.act(action) for action in log.action[steps].tolist()]
        terminated = log.terminated[steps]
        truncated = np.zeros_like(terminated)
        truncated[-1] = not terminated[-1]
        buffer = EpisodeBuffer(
            observations=_stacked(coding.observation_space, list(observations)),
            actions=_stacked(coding.action_space, actions),
            rewards=log.reward[steps].tolist(),
            terminations=terminated.tolist(),
            truncations=truncated.tolist(),
        )
        buffers.append(buffer)
    return buffers


def _environment_of(log: EpisodeLog) -> dict[str, Any]:
    """The environment's specification, where it can be written down."""
    try:
        log.spec.to_json()
    except (AttributeError, ValueError, TypeError):
        return {}
    return {"env": log.spec}


def _stacked(space: Any, elements: list[Any]) -> Any:
    """Elements of a space as Minari stores them: an array, or for a Tuple a tuple of arrays."""
    from gymnasium import spaces

    if isinstance(space, spaces.Tuple):
        parts = []
        for place, part in enumerate(space.spaces):
            parts.append(_stacked(part, [element[place] for element in elements]))
        return tuple(parts)
    return np.asarray(elements, dtype=space.dtype)
