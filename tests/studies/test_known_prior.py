"""The paper's study with methods that know how its systems are sampled."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise.data.counts import TransitionCounts
from pastwise.models.belief import Belief
from pastwise.models.prior import RowPrior
from pastwise.studies.known_prior import (
    KNOWN_PRIOR,
    POSTERIOR_SAMPLING,
    KnownPrior,
    KnownPriorStudy,
    PosteriorSampling,
    mass_of_rows,
)
from pastwise.studies.paper import PASTS, collect, dirichlet_rows, uniform_rows
from pastwise.theory.closed_loop import ideal_preferring
from tests.helpers.oracles import counts_of_list

LOG = [(0, 0, 1), (0, 0, 1), (0, 1, 2), (1, 2, 0), (2, 3, 2)]


def log() -> TransitionCounts:
    return counts_of_list(LOG, 3, 4)


def test_mass_is_that_of_the_distribution_of_rows() -> None:
    """Dirichlet(1, 1, 1) has mass 3; normalised uniform numbers are closer to the middle."""
    assert mass_of_rows(dirichlet_rows, 3) == pytest.approx(3, rel=0.02)
    assert mass_of_rows(dirichlet_rows, 10) == pytest.approx(10, rel=0.02)

    rows = uniform_rows(np.random.default_rng(1).random((100_000, 3)))
    mass = mass_of_rows(uniform_rows, 3)
    assert mass > 3
    assert rows.var() == pytest.approx(2 / 9 / (mass + 1), rel=0.02)


def test_mean_rows_are_those_of_the_known_prior() -> None:
    """(records + mass / S) / (number + mass), in each row, also after new records."""
    method = KnownPrior(mass=6.0)
    memory = method.start(log(), ideal_preferring((0,), 3, 4))
    for _ in range(20):
        method.observe(memory, np.array(1), np.array(2), np.array(2))
    method.plan(memory)

    table = np.zeros((3, 4, 3))
    for record in [*LOG, *[(1, 2, 2)] * 20]:
        table[record] += 1
    expected = (table + 2) / (table.sum(axis=-1, keepdims=True) + 6)
    for state in range(3):
        mean = memory.belief.mean(np.eye(3)[state][None])[0]
        np.testing.assert_allclose(mean, expected[..., state])


def test_a_given_prior_is_kept_when_records_are_added() -> None:
    prior = RowPrior(np.full(1, 2.5), np.full(1, 3.0), np.full((1, 3), 1 / 3))
    belief = Belief(log(), prior)
    for _ in range(30):
        belief.observe(np.array(0), np.array(0), np.array(0))
    belief.refresh()
    np.testing.assert_array_equal(belief.mass, 2.5)
    assert belief.records[0, 0, 0] == 32


def test_sampled_models_follow_the_posterior() -> None:
    """With many records of each row, the sampled rule is the best one; with none, it varies."""
    certain = [(s, a, a % 3) for s in range(3) for a in range(4)] * 200
    ideal = ideal_preferring((1,), 3, 4)
    method = PosteriorSampling(mass=3.0, every=1)
    rng = np.random.default_rng(0)
    state = np.array(0)

    memory = method.start(counts_of_list(certain, 3, 4), ideal)
    np.testing.assert_array_equal(method.rule(memory, state, rng), [0, 1, 0, 0])

    memory = method.start(counts_of_list([], 3, 4), ideal)
    chosen = [int(method.rule(memory, state, rng).argmax()) for _ in range(60)]
    assert set(chosen) == {0, 1, 2, 3}


def test_both_take_part_in_the_study_and_stay_below_the_optimum() -> None:
    methods = (KNOWN_PRIOR, POSTERIOR_SAMPLING, "Rand", "optimum")
    gains = collect(KnownPriorStudy(runs=40, methods=methods))
    for past in PASTS:
        for method in (KNOWN_PRIOR, POSTERIOR_SAMPLING):
            assert gains[past, "Rand"].mean() < gains[past, method].mean()
            assert gains[past, method].mean() < gains[past, "optimum"].mean()
