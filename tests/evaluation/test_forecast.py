"""What a log predicts for outcomes: means and standard deviations of their utility."""

from __future__ import annotations

import numpy as np
import pytest

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.evaluation.forecast import OutcomeForecast
from pastwise.goals.goal import Goal
from pastwise.models.prior import RowPrior
from tests.helpers.posteriors import literal_concentration, weighted_counts

S, A = 4, 3


def test_row_is_that_of_the_dirichlet_posterior() -> None:
    """Compared with samples of the posterior row and of outcomes of it."""
    counts = weighted_counts(S, A)
    forecast = OutcomeForecast(Goal(prefer={0: 1.0, 2: 0.5}), counts)
    utility = np.array([1.0, 0.0, 0.5, 0.0])
    log = counts.evenly_weighted()
    prior = RowPrior.of(log)
    concentration = literal_concentration(log, prior, without_own_row=True)
    rng = np.random.default_rng(0)
    for s, a in [(0, 0), (1, 2), (3, 1)]:
        rows = rng.dirichlet(concentration[s, a], size=200_000)
        row_means = rows @ utility
        row_variances = rows @ utility**2 - row_means**2
        found = forecast.row(s, a)
        assert found.mean == pytest.approx(row_means.mean(), abs=0.005)
        assert found.shared == pytest.approx(row_means.var(), rel=0.05)
        total = row_means.var() + row_variances.mean()
        assert found.variance == pytest.approx(total, rel=0.05)


def test_utility_follows_the_goal() -> None:
    counts = weighted_counts(S, A)
    by_state = OutcomeForecast(Goal(prefer={0: 2.0, 2: 1.0}), counts)
    assert [by_state.utility(1, 0, n) for n in range(S)] == [1.0, 0.0, 0.5, 0.0]
    assert by_state.bounds == (0.0, 1.0)
    assert by_state.measure == "share of time as wanted"
    by_action = OutcomeForecast(Goal(prefer_actions={1: 1.0}), counts)
    assert [by_action.utility(1, a, 0) for a in range(A)] == [0.0, 1.0, 0.0]
    assert by_action.row(2, 1).mean == pytest.approx(1.0)
    assert by_action.row(2, 1).variance == pytest.approx(0.0, abs=1e-12)


def test_rewards_of_the_log() -> None:
    rng = np.random.default_rng(1)
    n = 400
    states = Space.of_size(2)
    actions = Space.of_size(2)
    action = rng.integers(2, size=n)
    reward = action + rng.normal(0, 0.5, n)
    counts = TransitionCounts.from_records(
        rng.integers(2, size=n), action, rng.integers(2, size=n), states, actions, reward=reward
    )
    forecast = OutcomeForecast(Goal(maximise="reward"), counts)
    assert forecast.measure == "mean reward"
    assert forecast.utility(0, 1, 0, 0.7) == 0.7
    assert forecast.utility(0, 1, 0) is None
    assert forecast.row(0, 1).mean == pytest.approx(1.0, abs=0.15)
    assert forecast.row(0, 0).mean == pytest.approx(0.0, abs=0.15)
    assert forecast.row(0, 0).variance >= 0.25
