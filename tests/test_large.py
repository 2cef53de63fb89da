"""Very large systems: what must work on them, and what is refused before memory runs out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pastwise as pw
from pastwise import TransferLearner, TransitionCounts
from pastwise.beliefs import believe
from pastwise.draws import TransitionPosterior
from pastwise.evaluation import policy_value
from pastwise.goal import Goal
from pastwise.ideal import IdealModel
from pastwise.importance import action_values
from pastwise.numerics import LARGEST_TABLE, require_memory
from pastwise.spaces import Space

MANY, A = 10**6, 8


def huge() -> TransitionCounts:
    """Three records in a million states."""
    return TransitionCounts.from_records([0, 1, 5], [0, 1, 7], [1, 5, 0], Space.of_size(MANY), Space.of_size(A))


def model() -> pw.LearnedModel:
    return pw.LearnedModel(huge(), 1e-6)


def wide(*shape: int) -> Any:
    """An array that takes no memory."""
    return np.broadcast_to(0.0, shape)


def ideal(*shape: int) -> IdealModel:
    """An ideal whose transition model depends on what the shape says, and takes no memory."""
    return IdealModel(np.broadcast_to(-np.log(MANY), shape), np.full((1, A), -np.log(A)), np.ones((1, A), dtype=bool))


BY_ALL = Goal(reward={0: {0: {1: 1.0}}})
NEXT = Goal(prefer={1: 1})

TOO_LARGE: dict[str, tuple[Callable[[], Any], str]] = {
    "reward by all three": (lambda: TransferLearner(BY_ALL).fit(huge()), "give numbers by next state alone"),
    "its score": (lambda: BY_ALL.score(Space.of_size(MANY), Space.of_size(A)), "give numbers by next state alone"),
    "table by state and action": (
        lambda: Goal(table={0: {0: {1: 1.0}}}).on(Space.of_size(MANY), Space.of_size(A)),
        "give numbers by next state alone",
    ),
    "even table": (lambda: Goal(table={0: {0: 1e-6}}).on(Space.of_size(MANY), Space.of_size(A)), "by next state alone"),
    "retarget": (lambda: TransferLearner(NEXT).fit(huge()).retarget(BY_ALL), "give numbers by next state alone"),
    "past goal": (
        lambda: TransferLearner(NEXT, past_goals={0: BY_ALL}).fit(
            replace(huge(), shape=(1,), tasks=Space((0,)))
        ),
        "give numbers by next state alone",
    ),
    "divergence": (
        lambda: pw.kl_divergence(ideal(MANY, 1, MANY), ideal(1, A, MANY)),
        "compare goals over next states",
    ),
    "posterior": (lambda: pw.concentration(huge(), np.ones(3), 1.0), "gather_evidence"),
    "drawn models": (lambda: TransitionPosterior(huge()), "join states into fewer"),
    "belief of several logs": (lambda: believe(replace(huge(), shape=(1,))), "one by one"),
    "rules of many epochs": (lambda: pw.design(model(), NEXT.on(*spaces()), 1000), "first_rule gives the first alone"),
    "optimum of many epochs": (lambda: pw.mdp_optimum(model(), np.zeros(MANY), 1000), "shorten the horizon"),
    "values of many steps": (
        lambda: action_values(model(), wide(MANY, A), np.zeros(MANY), np.ones(MANY), 1000),
        "shorten the horizon",
    ),
    "evaluation": (lambda: TransferLearner(NEXT).fit(huge()).evaluate(), "too many to evaluate"),
}


def spaces() -> tuple[Space, Space]:
    return Space.of_size(MANY), Space.of_size(A)


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_needs_a_table_too_large_is_refused_with_something_to_do_instead(name: str) -> None:
    ask, instead = TOO_LARGE[name]
    with pytest.raises(ValueError, match=instead):
        ask()


def test_refusal_tells_the_size() -> None:
    with pytest.raises(ValueError, match=r"needs a table of 1,000,000 x 8 x 1,000,000 = 8e\+12 numbers \(64,000 GB\); "):
        TransferLearner(BY_ALL).fit(huge())


def test_largest_table_is_not_refused() -> None:
    require_memory("this", (LARGEST_TABLE // 8,), "nothing")
    with pytest.raises(ValueError, match="this needs a table"):
        require_memory("this", (LARGEST_TABLE // 8 + 1,), "nothing")
