"""TL: the rule learned from similar records, and its fast rows for a running loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import TL
from pastwise.methods.base import RECORDS, PlannedRows
from pastwise.theory.learning import gather_evidence, learned_rule, prior_concentration
from pastwise.theory.similarity import Similarity, normalised_similarity, plain_similarity
from tests.helpers.methods import observe_all, rules_everywhere
from tests.helpers.oracles import World, counts_of_list, random_rows

ALONE = World.random().alone(0)


def test_rule_is_learned_from_all_that_was_seen() -> None:
    """From past log and own experience in the same way, in any portions.

    Paper: Eq. (10) [eq:estimated_dec_rule].
    """
    ideal = IdealModel.of([0.9, 0.07, 0.03], num_actions=4)
    method = TL()
    expected = learned_rule(gather_evidence(ALONE.counts, ideal), prior_concentration(ideal))
    memory = method.start(ALONE.counts, ideal)
    np.testing.assert_allclose(rules_everywhere(method, memory), expected)
    for known in (0, 15, 29):
        before = Transitions(*(field[:known] for field in ALONE.log))
        after = Transitions(*(field[known:] for field in ALONE.log))
        counts = TransitionCounts.from_transitions(before, Space.of_size(3), Space.of_size(4))
        memory = method.start(counts, ideal)
        observe_all(method, memory, after)
        np.testing.assert_allclose(rules_everywhere(method, memory), expected)
        np.testing.assert_allclose(method.plan(memory).rule, expected)


def test_prior_and_similarity_are_the_users() -> None:
    """One record of weight 3 by the user's similarity, and a prior of 2 for each action: 5 to 2."""
    ideal = IdealModel.of([0.5, 0.5], num_actions=2)
    method = TL(prior_count=1.0, similarity=lambda *record: np.array(3.0))
    memory = method.start(counts_of_list([(0, 1, 0)], 2, 2), ideal)
    np.testing.assert_allclose(
        rules_everywhere(method, memory, 2), [[2 / 7, 5 / 7], [1 / 2, 1 / 2]]
    )
    plan = method.plan(memory)
    np.testing.assert_allclose(plan.parts[RECORDS], [[0, 3], [0, 0]])
    np.testing.assert_allclose(plan.parts["prior"], [[2, 2]])


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf])
def test_similarity_that_is_no_weight_is_refused(bad: float) -> None:
    ideal = IdealModel.of([0.5, 0.5], num_actions=2)
    method = TL(similarity=lambda *record: np.array([1.0, bad]))
    log = counts_of_list([(0, 1, 0), (1, 1, 0)], 2, 2)
    with pytest.raises(ParameterError, match=f"finite and not negative, not {bad:g}"):
        method.start(log, ideal)


def test_prior_may_differ_between_transitions() -> None:
    ideal = IdealModel.of([0.5, 0.5], num_actions=2)
    table = np.arange(1.0, 9.0).reshape(2, 2, 2)
    method = TL(prior_count=table)
    memory = method.start(counts_of_list([], 2, 2), ideal)
    np.testing.assert_allclose(
        rules_everywhere(method, memory, 2), [[3 / 10, 7 / 10], [11 / 26, 15 / 26]]
    )


@pytest.mark.parametrize("prior_count", [0.0, -1.0, np.nan])
def test_prior_that_is_not_positive_is_refused(prior_count: float) -> None:
    message = f"prior_count is {prior_count}; prior counts must be positive"
    with pytest.raises(ParameterError, match=message):
        TL(prior_count)
    table = np.full((2, 2, 2), 1.0)
    table[1, 0, 1] = prior_count
    with pytest.raises(ParameterError, match=r"prior_count\[1, 0, 1\] is"):
        TL(table)


# In a running loop.

ALLOWED = np.array(
    [[True, True, True, False], [False, True, True, True], [True, True, False, True]]
)


def goals() -> dict[str, IdealModel]:
    """Goals that factorise into a wish for next states and one for actions, and others."""
    rng = np.random.default_rng(3)
    return {
        "next states": IdealModel.of([0.9, 0.07, 0.03], num_actions=4),
        "actions everywhere": IdealModel.of([0.9, 0.07, 0.03], random_rows(rng, 4)),
        "actions by state": IdealModel.of([0.9, 0.07, 0.03], random_rows(rng, 3, 4)),
        "allowed": IdealModel.of([0.9, 0.07, 0.03], num_actions=4, allowed=ALLOWED),
        "everything": IdealModel.of(random_rows(rng, 3, 4, 3), random_rows(rng, 3, 4)),
        "reward": IdealModel.from_reward(rng.normal(size=(3, 4, 3)), 0.5, allowed=ALLOWED),
        "reward of actions": IdealModel.from_reward(rng.normal(size=(3, 4, 1)), 0.5),
    }


def normalised(row: list[float]) -> FloatArray:
    return np.array(row) / sum(row)


@pytest.mark.parametrize("similarity", [normalised_similarity, plain_similarity])
@pytest.mark.parametrize("goal", goals())
def test_live_rows_are_those_of_the_contract(goal: str, similarity: Similarity) -> None:
    """The fast way and the general one give the same rules, record after record."""
    ideal = goals()[goal]
    method = TL(similarity=similarity)
    plan = method.plan(method.start(ALONE.counts, ideal))
    fast = method.live_rows(plan, ideal)
    general = PlannedRows(method, plan, ALONE.counts, ideal, np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for _ in range(25):
        state, action, next_state = (int(rng.integers(size)) for size in (3, 4, 3))
        for rows in (fast, general):
            rows.observe(state, action, next_state)
        for each in range(3):
            np.testing.assert_allclose(
                normalised(fast[each]), normalised(general[each]), rtol=1e-12, atol=1e-15
            )


def test_live_rows_leave_the_plan_as_it_is() -> None:
    ideal = goals()["next states"]
    method = TL()
    plan = method.plan(method.start(ALONE.counts, ideal))
    before: dict[str, Any] = {name: part.copy() for name, part in plan.parts.items()}
    rows = method.live_rows(plan, ideal)
    rows.observe(0, 0, 0)
    for name, part in before.items():
        np.testing.assert_array_equal(plan.parts[name], part)
