"""Datasets of Minari: counted, and written from logs of environments.

Minari keeps episodes in the environment's own form; they become states and actions as those of an environment do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from shutil import rmtree
from typing import Any

import numpy as np

from pastwise.data.counts import TransitionCounts
from pastwise.simulation.coding import Bins, Coding, Ends
from pastwise.simulation.gymnasium import EpisodeLog

MAKE_TABLE = "make a table with a row for each step, and count that by count_transitions, whose bins= cut states and actions"
"""What to do about a dataset whose observations or actions are not taken."""


def _minari() -> Any:
    """The package, if it and what it stores datasets with are installed."""
    try:
        import h5py  # noqa: F401
        import minari
        import PIL  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"datasets need Minari: pip install 'pastwise[minari]' ({error})"
        ) from None
    return minari


def counts_of(
    dataset: Any,
    bins: Bins | None = None,
    *,
    fields: Sequence[str] | None = None,
    ends: Ends | None = None,
) -> TransitionCounts:
    """Count the transitions of a dataset of Minari.

    The states in which episodes terminated are terminal; where an episode was only truncated its last state is not.

    Parameters
    ----------
    dataset : minari.MinariDataset or str
        A dataset, or the id of one on this machine; nothing is downloaded.
    bins, fields, ends : optional
        How observations become states; see `pastwise.simulation.gymnasium.GymSystem`.
    """
    minari = _minari()
    opened = _load(minari, dataset) if isinstance(dataset, str) else dataset
    if not isinstance(opened, minari.MinariDataset):
        raise ValueError(
            f"a dataset of Minari is needed, or the id of one, not {type(dataset).__name__}"
        )
    coding = Coding.of(
        opened.observation_space, opened.action_space, bins, fields, ends, MAKE_TABLE
    )
    records = [_records(coding, episode) for episode in opened.iterate_episodes()]
    if not records:
        raise ValueError(f"the dataset {opened.id!r} has no episodes")
    state, action, next_state, terminated = (
        np.concatenate(column) for column in zip(*records, strict=True)
    )
    counts = TransitionCounts.from_records(state, action, next_state, coding.states, coding.actions)
    return counts.ending_in(coding.ended(state, next_state, terminated))


def _load(minari: Any, name: str) -> Any:
    try:
        return minari.load_dataset(name)
    except FileNotFoundError:
        known = ", ".join(minari.list_local_datasets()) or "none"
        raise ValueError(
            f"there is no dataset {name!r} on this machine (there are: {known}); "
            f"download it first: minari download {name}"
        ) from None


def _records(coding: Coding, episode: Any) -> tuple[Any, Any, Any, Any]:
    """State, action, next state and termination of each step of an episode, by index."""
    seen, action = coding.state(episode.observations), coding.action(episode.actions)
    terminated = np.asarray(episode.terminations, dtype=bool)
    if not len(seen) - 1 == len(action) == len(terminated):
        raise ValueError(
            f"episode {episode.id} of the dataset has {len(seen)} observations, {len(action)} actions and "
            f"{len(terminated)} terminations; an episode has one observation more than it has steps"
        )
    next_state = seen[1:].copy()
    for step in np.flatnonzero(terminated).tolist():
        next_state[step] = coding.end(int(next_state[step]), float(episode.rewards[step]))
    return seen[:-1], action, next_state, terminated


def to_minari(log: EpisodeLog, dataset_id: str, **details: Any) -> Any:
    """Write a log of an environment as a dataset of Minari, in the environment's own form.

    It is kept where Minari keeps its datasets, which the variable MINARI_DATASETS_PATH says.

    Parameters
    ----------
    log : EpisodeLog
        What `collect` gave.
    dataset_id : str
        ``name-v0`` or ``namespace/name-v0``; one that exists is an error.
    details
        ``author``, ``author_email``, ``code_permalink``, ``algorithm_name``, ``description`` and so on; see
        ``minari.create_dataset_from_buffers``.

    Returns
    -------
    minari.MinariDataset
    """
    minari = _minari()
    from minari.dataset.minari_dataset import DATASET_ID_RE
    from minari.storage.datasets_root_dir import get_dataset_path

    found = DATASET_ID_RE.fullmatch(dataset_id)
    if not found or found["version"] is None:
        raise ValueError(
            f"{dataset_id!r} is no id of a dataset: it looks like name-v0 or namespace/name-v0"
        )
    path = get_dataset_path(dataset_id)
    if path.exists():
        raise ValueError(
            f"there is a dataset {dataset_id!r} in {path} already; choose another name or version"
        )
    spaces = {
        "observation_space": log.coding.observation_space,
        "action_space": log.coding.action_space,
    }
    options = {**spaces, **_source(log), **details}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"`\w+` is set to None|env_spec is None", UserWarning)
            return minari.create_dataset_from_buffers(dataset_id, _buffers(log), **options)
    except BaseException:
        rmtree(path, ignore_errors=True)  # Minari leaves what it began
        raise


def _buffers(log: EpisodeLog) -> list[Any]:
    """The episodes in the form that Minari writes them from."""
    from minari.data_collector.episode_buffer import EpisodeBuffer

    coding, buffers = log.coding, []
    starts = np.flatnonzero(log.time == 0)
    for observations, mine in zip(
        log.observations, np.split(np.arange(len(log.time)), starts[1:]), strict=True
    ):
        terminated = log.terminated[mine]
        truncated = np.zeros_like(terminated)
        truncated[-1] = not terminated[-1]
        buffers.append(
            EpisodeBuffer(
                observations=_stacked(coding.observation_space, list(observations)),
                actions=_stacked(
                    coding.action_space,
                    [coding.act(action) for action in log.action[mine].tolist()],
                ),
                rewards=log.reward[mine].tolist(),
                terminations=terminated.tolist(),
                truncations=truncated.tolist(),
            )
        )
    return buffers


def _source(log: EpisodeLog) -> dict[str, Any]:
    """What the environment can be made of again, where that can be written down."""
    try:
        log.spec.to_json()
    except (AttributeError, ValueError, TypeError):
        return {}
    return {"env": log.spec}


def _stacked(space: Any, elements: list[Any]) -> Any:
    """Elements of a space as Minari keeps them: one array, or for those of a Tuple a tuple of arrays."""
    from gymnasium import spaces

    if isinstance(space, spaces.Tuple):
        return tuple(
            _stacked(part, [element[i] for element in elements])
            for i, part in enumerate(space.spaces)
        )
    return np.asarray(elements, dtype=space.dtype)
