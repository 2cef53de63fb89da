"""What a method does in every state, for tests of methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from pastwise._numerics.arrays import FloatArray
from pastwise.data.records import Transitions
from pastwise.methods.base import AnyMethod


def rules_everywhere(method: AnyMethod, memory: Any, num_states: int = 3) -> FloatArray:
    """The rule to act by in every state of a single run: [S, A]."""
    coins = np.random.default_rng(5)
    return np.stack([method.rule(memory, np.array(state), coins) for state in range(num_states)])


def observe_all(method: AnyMethod, memory: Any, log: Transitions) -> None:
    """Let a method observe a log of a single run, record by record."""
    for state, action, next_state in zip(*log, strict=True):
        method.observe(memory, np.array(state), np.array(action), np.array(next_state))
