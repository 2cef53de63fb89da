"""Learners from files: what `TransferLearner.save` wrote, distrusted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pastwise.adapters import artefact
from pastwise.adapters.columns import Columns
from pastwise.goal import Goal
from pastwise.learner import SIMILARITIES, TransferLearner
from pastwise.numerics import FloatArray


def load(path: str | Path) -> TransferLearner:
    """The learner that `TransferLearner.save` wrote; a damaged or foreign file is an error that says what is wrong."""
    tensors, content = artefact.read(path)
    try:
        counts = artefact.unpack_counts(tensors, content)
        settings = content["settings"]
        shape = (len(counts.states), len(counts.actions))
        artefact.require(
            "rule" in tensors and tensors["rule"].shape == shape, "the rule is missing or of a wrong shape"
        )
        artefact.require(settings["similarity"] in SIMILARITIES, f"unknown similarity {settings['similarity']!r}")
        past = {artefact.as_label(task): Goal.from_dict(goal) for task, goal in content["past_goals"]}
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
    except KeyError as error:
        raise ValueError(f"{path} is damaged: {error} is missing") from None
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return learner


def _check_rule(stored: Any, learned: FloatArray) -> None:
    artefact.require(stored.dtype == np.float64, f"the rule is of type {stored.dtype}")
    artefact.require(np.isfinite(stored).all() and (stored >= 0).all(), "the rule has values that are no probabilities")
    artefact.require(np.allclose(stored.sum(axis=-1), 1), "the rule is not normalised")
    artefact.require(np.allclose(stored, learned), "the rule does not follow from the counts and the goal")
