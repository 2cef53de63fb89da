"""Learners that know the family of a system, or the numbers of its prior."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from pastwise.data.records import Transitions
from pastwise.studies.families import FAMILIES
from pastwise.studies.known_family import (
    KNOWN_FAMILY,
    KNOWN_PASTS,
    KNOWN_PRIOR,
    KnownNumbers,
    Population,
    known_family_scores,
    systems_of_size,
    with_actions_permuted,
)
from pastwise.studies.long_run import long_run_values
from pastwise.studies.planner_tasks import Place, counts_of, ideal_of, past_rules
from pastwise.studies.synthetic import System, simulate


def forests(number: int) -> list[tuple[int, System]]:
    return list(islice(systems_of_size("forest", 4, 3, seed=0), number))


def test_systems_have_the_size_and_are_those_of_the_family() -> None:
    for index, system in forests(3):
        assert (system.num_states, system.num_actions) == (4, 3)
        expected = FAMILIES["forest"].system(0, index)
        np.testing.assert_array_equal(system.mean_transition, expected.mean_transition)


def test_permuted_actions_are_the_same_rows_in_another_order() -> None:
    _, system = forests(1)[0]
    permuted = with_actions_permuted(system, np.random.default_rng(1))
    for state in range(4):
        rows = {tuple(row) for row in system.mean_transition[state]}
        assert {tuple(row) for row in permuted.mean_transition[state]} == rows


def test_posterior_means_what_it_says() -> None:
    """If each of the systems and pasts is as probable as the others, the probability of the true
    one is on average what the posterior expects of it: the sum of its squares.
    """
    found = forests(20)
    population = Population.of([system for _, system in found])
    differences = []
    of_truth = []
    for number, (index, system) in enumerate(found):
        for past in KNOWN_PASTS:
            for seed in range(4):
                rng = np.random.default_rng((index, seed))
                log = simulate(system, past_rules(system, past, rng), 60, rng)
                first = Transitions(log.state[:60], log.action[:60], log.next_state[:60])
                posterior = population.posterior(counts_of(first, system), KNOWN_PASTS)
                assert posterior.sum() == pytest.approx(1)
                of_truth.append(posterior[number])
                differences.append(posterior[number] - (posterior**2).sum())
    error = np.std(differences) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 4 * error
    assert np.mean(of_truth) > 2 / 20


def test_best_rule_of_one_system_is_the_best_rule() -> None:
    systems = [system for _, system in forests(3)]
    population = Population.of(systems)
    rule = population.best_rule(np.eye(3)[1])
    value = long_run_values(systems[1], rule[None])[0]
    assert value == pytest.approx(population.optimum[1], abs=1e-3)


def door(opens: int) -> System:
    """One of two actions leaves a room for the goal, where an episode ends; the other stays."""
    transition = np.zeros((2, 2, 2))
    transition[0, :, 0] = 1.0
    transition[0, opens] = [0.0, 1.0]
    return System.of(transition, np.array([0.0, 1.0]), terminal=(1,), lengths=(50, 50))


def test_best_rule_for_two_doors_tries_both() -> None:
    """Either action alone never leaves one of the rooms; half of each leaves both."""
    population = Population.of([door(0), door(1)])
    population = replace(population, random=np.zeros(2))  # which open the door sooner or later
    rule = population.best_rule(np.full(2, 0.5))
    np.testing.assert_allclose(rule[0], 0.5, atol=0.06)


def test_systems_with_different_scores_are_refused() -> None:
    rng = np.random.default_rng(3)
    one, other = (FAMILIES["two queues"].build(rng) for _ in range(2))
    with pytest.raises(ValueError, match="systems of one size differ in their score"):
        Population.of([one, other])


def test_log_that_no_system_can_have_left_is_refused() -> None:
    population = Population.of([door(0)])
    stayed = Transitions(*(np.zeros(1, dtype=np.int64) for _ in range(3)))
    impossible = counts_of(stayed, door(0))
    with pytest.raises(ValueError, match="no system of the population can have left this log"):
        population.posterior(impossible, KNOWN_PASTS)


def test_known_numbers_are_kept() -> None:
    index, system = forests(1)[0]
    method = KnownNumbers.of(system)
    log = Place("forest", index, seed=0).log(system, "random", 40)
    memory = method.start(counts_of(log, system), ideal_of(system))
    assert method.prior is not None
    belief = memory.belief
    np.testing.assert_array_equal(belief.mass[belief.records == 0], method.prior.mass[0])


def test_who_knows_the_family_gains_more_than_who_does_not() -> None:
    """With four seeds it was by 0.29 to 0.65 of what there is to gain."""
    scores = known_family_scores(
        "forest", 4, 3, others=("TL_foresight",), records=(10,), systems=2, population=60
    )
    assert scores.mean(KNOWN_FAMILY) > scores.mean("TL_foresight")
    assert scores.mean(KNOWN_FAMILY) <= 1
    assert scores.mean(KNOWN_PRIOR) <= 1
