"""Exact values of long runs, and the best rule for them."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from pastwise.studies.families import FAMILIES
from pastwise.studies.long_run import long_run_values, optimal_rule
from pastwise.studies.synthetic import System

FEW = ("dirichlet", "treatment", "hidden type", "river swim", "maze")


def random_rules(system: System, number: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = (number, system.num_states)
    return rng.dirichlet(np.ones(system.num_actions), size=shape)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("epochs", [1, 2, 7, 100])
def test_doubling_equals_epoch_by_epoch(name: str, epochs: int) -> None:
    system = FAMILIES[name].system(1)
    rules = random_rules(system, 3)
    one_by_one = replace(system, lengths=(1, epochs))
    expected = [one_by_one.value(rule) for rule in rules]
    np.testing.assert_allclose(long_run_values(system, rules, epochs), expected, atol=1e-12)


@pytest.mark.parametrize("has_ends", [False, True])
def test_no_rule_is_better_than_the_optimal_one(has_ends: bool) -> None:
    """Four states and two actions: all sixteen rules can be tried."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        system = System.of(
            rng.dirichlet(np.full(4, 0.5), size=(4, 2)),
            np.array([0.0, 0.0, 0.0, 1.0]),
            terminal=(2, 3) if has_ends else (),
        )
        rules = np.stack([np.eye(2)[list(actions)] for actions in product(range(2), repeat=4)])
        best = long_run_values(system, rules).max()
        found = long_run_values(system, optimal_rule(system)[None])[0]
        assert found == pytest.approx(best, abs=2e-3)
        assert found <= best + 1e-12


@pytest.mark.parametrize("name", FEW)
def test_the_optimal_rule_is_better_than_random_ones(name: str) -> None:
    system = FAMILIES[name].system(0)
    best = long_run_values(system, optimal_rule(system)[None])[0]
    assert best > long_run_values(system, random_rules(system, 20)).max()


def test_a_rule_that_never_ends_has_no_value() -> None:
    stay_or_end = np.zeros((2, 2, 2))
    stay_or_end[0, 0, 0] = 1.0
    stay_or_end[0, 1, 1] = 1.0
    system = System.of(stay_or_end, np.array([0.0, 1.0]), terminal=(1,))
    stay, end, half = np.eye(2)[[0, 0]], np.eye(2)[[1, 1]], np.full((2, 2), 0.5)
    values = long_run_values(system, np.stack([stay, end, half]))
    np.testing.assert_allclose(values, [0, 1, 1])
    assert optimal_rule(system)[0, 1] == 1
