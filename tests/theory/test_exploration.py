"""The gate of Algorithm 1, and the coin behind it."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise._numerics.arrays import FloatArray, normalise
from pastwise.theory.exploration import (
    UCB,
    EpsilonGreedy,
    Explorer,
    Gate,
    Here,
    PosteriorSampling,
)

similarities = st.lists(st.integers(0, 8).map(lambda eighths: eighths / 8), max_size=12)


@given(
    similarities,
    similarities,
    st.integers(1, 5),
    st.integers(0, 8).map(lambda eighths: eighths / 8),
)
def test_gate_is_open_while_the_mean_of_the_last_similarities_is_below_the_threshold(
    past: list[float], new: list[float], size: int, threshold: float
) -> None:
    """Against a plain queue; similarities in eighths are summed exactly.

    Paper: Algorithm 1 [alg:alg_exploration], its outer condition.
    """
    gate = Gate(threshold, size)
    queue = deque(past, maxlen=size)
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
    rng = np.random.default_rng(0)
    gate = Gate(threshold=0.5, window=3)
    past = rng.uniform(size=(2, 4, 5))
    new = rng.uniform(size=(20, 2, 4))
    together = gate.start(past)
    alone = {run: gate.start(past[run]) for run in np.ndindex(2, 4)}
    seen = set()
    for similarity in new:
        together.push(similarity)
        for run, window in alone.items():
            window.push(similarity[run])
        is_open = gate.is_open(together)
        np.testing.assert_array_equal(
            is_open, np.array([gate.is_open(w) for w in alone.values()]).reshape(2, 4)
        )
        seen |= set(is_open.ravel().tolist())
    assert seen == {True, False}


class Coins:
    """Random numbers that are known."""

    def __init__(self, *numbers: Any) -> None:
        self.numbers = list(numbers)

    def random(self, size: tuple[int, ...]) -> FloatArray:
        return np.broadcast_to(np.asarray(self.numbers.pop(0), dtype=float), size)

    def spawn(self, number: int) -> list[Coins]:
        raise AssertionError("nothing is spawned")


def here(evidence: Any, records: Any, uniform: Any) -> Here:
    evidence = np.asarray(evidence, dtype=float)
    return Here(
        normalise(evidence), np.asarray(uniform), evidence, np.asarray(records, dtype=float)
    )


def test_uniform_rule_is_used_with_a_coin_below_epsilon() -> None:
    """Paper: Algorithm 1 [alg:alg_exploration], its inner condition."""
    place = here([[0.9, 0.1]] * 3, [[1, 1]] * 3, [[0.5, 0.5]] * 3)
    rule = EpsilonGreedy(0.3)(place, Coins([0.29, 0.3, 0.99]))
    np.testing.assert_array_equal(rule, [[0.5, 0.5], [0.9, 0.1], [0.9, 0.1]])


@pytest.mark.parametrize(("epsilon", "explores"), [(0.0, False), (1.0, True)])
def test_never_and_always(epsilon: float, explores: bool) -> None:
    rule = EpsilonGreedy(epsilon)(here([0.9, 0.1], [1, 1], [0.5, 0.5]), Coins(0.0))
    np.testing.assert_array_equal(rule, [0.5, 0.5] if explores else [0.9, 0.1])


def test_ucb_takes_the_untried_first_and_then_the_largest_bound() -> None:
    coins = Coins()
    third = [1 / 3] * 3
    np.testing.assert_array_equal(UCB()(here([5, 1, 0.1], [9, 3, 0], third), coins), [0, 0, 1])
    np.testing.assert_array_equal(
        UCB()(here([0.1, 1, 0.1], [0, 3, 0], third), coins), [0.5, 0, 0.5]
    )
    np.testing.assert_array_equal(UCB(width=0)(here([5, 3, 1], [9, 4, 9], third), coins), [0, 1, 0])
    bounds = [5 / 9 + 2 * np.sqrt(np.log(20) / 9), 1 / 2 + 2 * np.sqrt(np.log(20) / 2)]
    assert bounds[1] > bounds[0]
    np.testing.assert_array_equal(UCB(width=2)(here([5, 1, 5], [9, 2, 9], third), coins), [0, 1, 0])
    np.testing.assert_array_equal(
        UCB()(here([5, 1, 0], [9, 3, 0], [0.5, 0.5, 0.0]), coins), [1, 0, 0]
    )


def test_posterior_sampling_samples_the_dirichlet_posterior() -> None:
    """20,000 samples: means and variances within 6 standard errors."""
    rng = np.random.default_rng(0)
    V = np.array([2.0, 0.5, 1.0])
    place = here(
        np.broadcast_to(V, (20_000, 3)), np.zeros((20_000, 3)), np.full((20_000, 3), 1 / 3)
    )
    sampled = PosteriorSampling()(place, rng)
    mean = V / V.sum()
    variance = mean * (1 - mean) / (V.sum() + 1)
    np.testing.assert_allclose(sampled.sum(axis=-1), 1)
    assert (np.abs(sampled.mean(axis=0) - mean) < 6 * np.sqrt(variance / 20_000)).all()
    np.testing.assert_allclose(sampled.var(axis=0), variance, rtol=0.1)


def test_posterior_sampling_of_next_to_nothing_and_of_the_forbidden() -> None:
    tiny = PosteriorSampling()(here([1e-300, 1e-300], [0, 0], [0.5, 0.5]), Coins(0.5, 0.5))
    np.testing.assert_array_equal(tiny, [0.5, 0.5])
    rule = PosteriorSampling()(
        here([3.0, 0.0, 1.0], [3, 0, 1], [0.5, 0.0, 0.5]), Coins(0.4, 0.9, 0.7)
    )
    assert rule[1] == 0
    assert rule.sum() == pytest.approx(1)


@pytest.mark.parametrize("explore", [EpsilonGreedy(), UCB(), PosteriorSampling()])
def test_expected_rule_is_the_mean_over_random_numbers(explore: Explorer) -> None:
    """20,000 samples: every mean lies within 6 standard errors, or is the same number."""
    number = 20_000
    place = here([2.0, 0.5, 0.0, 1.0], [3, 2, 0, 2], [1 / 3, 1 / 3, 0.0, 1 / 3])
    copies = Here(
        learned=np.broadcast_to(place.learned, (number, 4)),
        uniform=np.broadcast_to(place.uniform, (number, 4)),
        evidence=np.broadcast_to(place.evidence, (number, 4)),
        records=np.broadcast_to(place.records, (number, 4)),
    )
    rules = explore(copies, np.random.default_rng(0))
    standard_error = rules.std(axis=0) / np.sqrt(number)
    difference = np.abs(rules.mean(axis=0) - explore.expected_rule(place))
    assert (difference <= 6 * standard_error + 1e-12).all()


def test_defaults_are_those_of_the_paper() -> None:
    """Paper: Section IV-A, epsilon = 0.3, q = 0.4 and m = 10."""
    assert EpsilonGreedy() == EpsilonGreedy(epsilon=0.3)
    assert Gate() == Gate(threshold=0.4, window=10)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (Gate, {"window": 0}, "the window must be a whole number from 1 to 1,000,000, not 0"),
        (Gate, {"window": 2.5}, "the window must be a whole number from 1 to 1,000,000, not 2.5"),
        (Gate, {"threshold": -0.1}, r"the threshold must be a number from 0 to 1, not -0.1"),
        (Gate, {"threshold": 1.1}, r"the threshold must be a number from 0 to 1, not 1.1"),
        (Gate, {"threshold": np.nan}, r"the threshold must be a number from 0 to 1, not nan"),
        (EpsilonGreedy, {"epsilon": -0.1}, r"epsilon must be a number from 0 to 1, not -0.1"),
        (EpsilonGreedy, {"epsilon": 1.1}, r"epsilon must be a number from 0 to 1, not 1.1"),
        (UCB, {"width": -1.0}, "the width must be a number from 0"),
        (UCB, {"width": np.inf}, "the width must be a number from 0"),
        (EpsilonGreedy, {"epsilon": np.nan}, r"epsilon must be a number from 0 to 1, not nan"),
    ],
)
def test_bad_settings_are_refused(make: Any, arguments: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)
