"""Where a rule goes, by the frequencies of a log."""

from __future__ import annotations

import numpy as np

import pastwise as pw
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.visits import expected_visits


def test_many_states_are_visited_as_few_are() -> None:
    rng = np.random.default_rng(0)
    states = pw.Space.of_size(40)
    actions = pw.Space.of_size(3)
    state = rng.integers(0, 30, 500)
    action = rng.integers(0, 3, 500)
    next_state = rng.integers(0, 40, 500)
    log = pw.TransitionCounts.from_records(state, action, next_state, states, actions)
    learner = pw.TransferLearner({"prefer": {3: 1}}, method="TL").fit_counts(log)
    rule = learner.rule_.probabilities
    criterion = Criterion.of(
        learner.fitted_.goal, log, episodes=None, allowed=learner.ideal_.allowed
    )

    few = expected_visits(rule, log, criterion)
    many = expected_visits(rule, log, criterion, dense_up_to=10)
    np.testing.assert_allclose(many, few, rtol=1e-12)
    np.testing.assert_allclose(few.sum(), 1)
    assert few[30:].sum() > 0.5, "states that the log never left are not left"
