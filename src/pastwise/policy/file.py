"""Learners and counts from files: what was written before, distrusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.goals.goal import Goal
from pastwise.logs.columns import Columns
from pastwise.policy import artefact
from pastwise.policy.learner import SIMILARITIES, TransferLearner


def load(path: str | Path) -> TransferLearner:
    """The learner that `TransferLearner.save` wrote; a damaged or foreign file is an error that says what is wrong."""
    tensors, content = artefact.read(path)
    if "rule" not in tensors and "goal" not in content:
        raise ValueError(f"{path} holds counts, not a policy; pastwise learn makes one of them")
    with _distrusted(path):
        counts = artefact.unpack_counts(tensors, content)
        settings = content["settings"]
        shape = (len(counts.states), len(counts.actions))
        artefact.require(
            "rule" in tensors and tensors["rule"].shape == shape,
            "the rule is missing or of a wrong shape",
        )
        artefact.require(
            settings["similarity"] in SIMILARITIES, f"unknown similarity {settings['similarity']!r}"
        )
        past = {
            artefact.as_label(task): Goal.from_dict(goal) for task, goal in content["past_goals"]
        }
        learner = TransferLearner(
            Goal.from_dict(content["goal"]),
            agent=content.get("method", "TL"),
            prior_count=settings["prior_count"],
            similarity=SIMILARITIES[settings["similarity"]],
            past_goals=past or None,
            on_unseen=settings["on_unseen"],
        )
        columns = None if content["columns"] is None else Columns.from_dict(content["columns"])
        learner._learn(counts, columns, (), None)
        _check_rule(tensors["rule"], learner.rule_.probabilities)
    return learner


@contextmanager
def _distrusted(path: str | Path) -> Iterator[None]:
    """Whatever goes wrong with the content of a file is damage, and told as such."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{path} is damaged: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _check_rule(stored: Any, learned: FloatArray) -> None:
    artefact.require(stored.dtype == np.float64, f"the rule is of type {stored.dtype}")
    artefact.require(
        np.isfinite(stored).all() and (stored >= 0).all(),
        "the rule has values that are no probabilities",
    )
    artefact.require(np.allclose(stored.sum(axis=-1), 1), "the rule is not normalised")
    artefact.require(
        np.allclose(stored, learned), "the rule does not follow from the counts and the goal"
    )


def save_counts(counts: TransitionCounts, path: str | Path, columns: Columns | None = None) -> None:
    """Write counts to a safetensors file, with the columns that they were read by."""
    tensors, content = artefact.pack_counts(counts)
    artefact.write(
        path, tensors, {**content, "columns": None if columns is None else columns.to_dict()}
    )


def load_counts(path: str | Path) -> tuple[TransitionCounts, Columns | None]:
    """Counts, and the columns that they were read by, from a file of `save_counts` or of a policy."""
    tensors, content = artefact.read(path)
    with _distrusted(path):
        counts = artefact.unpack_counts(tensors, content)
        columns = None if content["columns"] is None else Columns.from_dict(content["columns"])
    return counts, columns


def merge_counts(paths: Sequence[str | Path]) -> tuple[TransitionCounts, Columns | None]:
    """The counts of several files together, in any order; they must have been counted alike."""
    (total, columns), *others = (load_counts(path) for path in paths)
    for path, (counts, other) in zip(paths[1:], others, strict=True):
        if other != columns:
            raise ValueError(
                f"{path} was counted by other columns or bins than {paths[0]}; count both alike"
            )
        total = total + counts
    return total, columns
