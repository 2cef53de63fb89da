"""The gate of Algorithm 1, and the coin behind it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import EpsilonGreedy, Gate

similarities = st.lists(st.integers(0, 8).map(lambda eighths: eighths / 8), max_size=12)


@given(similarities, similarities, st.integers(1, 5), st.integers(0, 8).map(lambda eighths: eighths / 8))
def test_gate_is_open_while_the_mean_of_the_last_similarities_is_below_the_threshold(
    past: list[float], new: list[float], size: int, threshold: float
) -> None:
    """Against a plain queue; similarities in eighths are summed exactly.

    Paper: Algorithm 1 [alg:alg_exploration], its outer condition.
    """
    gate, queue = Gate(threshold, size), deque(past, maxlen=size)
    window = gate.start(np.array(past))

    def expected() -> bool:
        return sum(queue) < threshold * max(len(queue), 1)

    assert gate.is_open(window) == expected()
    for similarity in new:
        window.push(np.array(similarity))
        queue.append(similarity)
        assert gate.is_open(window) == expected()


def test_gate_at_the_threshold_itself_is_closed() -> None:
    gate = Gate(threshold=0.5, window=2)
    assert not gate.is_open(gate.start(np.array([0.25, 0.75])))
    assert gate.is_open(gate.start(np.array([0.25, 0.74])))


def test_gate_without_any_record_is_open() -> None:
    gate = Gate()
    assert gate.is_open(gate.start(np.empty(0)))


def test_gates_of_a_batch_are_those_of_each_run_alone() -> None:
    rng, gate = np.random.default_rng(0), Gate(threshold=0.5, window=3)
    past, new = rng.uniform(size=(2, 4, 5)), rng.uniform(size=(20, 2, 4))
    together, alone = gate.start(past), {run: gate.start(past[run]) for run in np.ndindex(2, 4)}
    seen = set()
    for similarity in new:
        together.push(similarity)
        for run, window in alone.items():
            window.push(similarity[run])
        is_open = gate.is_open(together)
        np.testing.assert_array_equal(is_open, np.array([gate.is_open(w) for w in alone.values()]).reshape(2, 4))
        seen |= set(is_open.ravel().tolist())
    assert seen == {True, False}


def test_uniform_rule_is_used_only_with_open_gate_and_a_coin_below_epsilon() -> None:
    """Paper: Algorithm 1 [alg:alg_exploration], its inner condition."""
    learned, uniform = np.array([[0.9, 0.1]] * 5), np.array([[0.5, 0.5]] * 5)
    is_open, coin = np.array([True, True, True, False, False]), np.array([0.29, 0.3, 0.99, 0.0, 0.99])
    rule = EpsilonGreedy(0.3)(learned, uniform, is_open, coin)
    np.testing.assert_array_equal(rule, [uniform[0], *learned[1:]])


@pytest.mark.parametrize(("epsilon", "explores"), [(0.0, False), (1.0, True)])
def test_never_and_always(epsilon: float, explores: bool) -> None:
    rule = EpsilonGreedy(epsilon)(np.array([0.9, 0.1]), np.array([0.5, 0.5]), np.array(True), np.array(0.0))
    np.testing.assert_array_equal(rule, [0.5, 0.5] if explores else [0.9, 0.1])


def test_defaults_are_those_of_the_paper() -> None:
    """Paper: Section IV-A, epsilon = 0.3, q = 0.4 and m = 10."""
    assert EpsilonGreedy() == EpsilonGreedy(epsilon=0.3)
    assert Gate() == Gate(threshold=0.4, window=10)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (Gate, {"window": 0}, "the window must hold at least one record, not 0"),
        (Gate, {"threshold": -0.1}, r"the threshold must lie in \[0, 1\], not -0.1"),
        (Gate, {"threshold": 1.1}, r"the threshold must lie in \[0, 1\], not 1.1"),
        (Gate, {"threshold": np.nan}, r"the threshold must lie in \[0, 1\], not nan"),
        (EpsilonGreedy, {"epsilon": -0.1}, r"epsilon must lie in \[0, 1\], not -0.1"),
        (EpsilonGreedy, {"epsilon": 1.1}, r"epsilon must lie in \[0, 1\], not 1.1"),
        (EpsilonGreedy, {"epsilon": np.nan}, r"epsilon must lie in \[0, 1\], not nan"),
    ],
)
def test_bad_settings_are_refused(make: Any, arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)
