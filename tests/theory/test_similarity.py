"""How well past transitions, and whole past tasks, serve the current goal."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.goals.ideal import IdealModel
from pastwise.theory.learning import gather_evidence
from pastwise.theory.similarity import (
    kl_divergence,
    normalised_similarity,
    plain_similarity,
    task_weight,
    weigh_tasks,
)
from tests.helpers.oracles import (
    counts_of,
    joint,
    random_ideal,
    random_log,
    random_rows,
    seeds,
    silent_log,
    sizes,
)

S = 3
A = 2

FULL = np.indices((S, A, S))
GOAL = IdealModel.of([0.5, 0.3, 0.2], [[0.6, 0.4], [0.1, 0.9], [0.5, 0.5]])


def full_joint(ideal: IdealModel) -> FloatArray:
    rule = np.broadcast_to(ideal.rule, (ideal.num_states, ideal.num_actions))
    return joint(np.broadcast_to(ideal.transition, (*rule.shape, ideal.num_states)), rule)


@pytest.mark.parametrize(
    ("transition", "expected"),
    [((0, 0, 0), 0.30), ((0, 1, 2), 0.08), ((1, 1, 0), 0.45), ((1, 0, 1), 0.03)],
)
def test_similarity_is_the_ideal_probability_of_the_transition(
    transition: tuple[int, int, int], expected: float
) -> None:
    """Hand-computed; the most preferred transition is (1, 1, 0), with 0.9 * 0.5.

    Paper: Definition 5 [def:similarity], Eq. (3) [eq:similarity].
    Paper: Definition 6 [def:similarity_norm], Eq. (4) [eq:similarity_norm].
    """
    assert plain_similarity(GOAL, *transition) == pytest.approx(expected)
    assert normalised_similarity(GOAL, *transition) == pytest.approx(expected / 0.45)


@given(seeds, sizes, sizes)
def test_normalised_similarity_is_relative_to_the_most_preferred_transition(
    seed: int, S: int, A: int
) -> None:
    """Paper: Definition 6 [def:similarity_norm], Eq. (4) [eq:similarity_norm]."""
    ideal = random_ideal(np.random.default_rng(seed), S, A)
    full = np.indices((S, A, S))
    table = full_joint(ideal)
    np.testing.assert_allclose(plain_similarity(ideal, *full), table)
    np.testing.assert_allclose(normalised_similarity(ideal, *full), table / table.max())
    assert normalised_similarity(ideal, *full).max() == 1


def test_similarity_of_what_the_goal_rules_out_is_zero() -> None:
    ideal = IdealModel.of([1.0, 0.0, 0.0], [0.0, 1.0])
    np.testing.assert_array_equal(normalised_similarity(ideal, *FULL) > 0, full_joint(ideal) > 0)


def test_forbidding_an_action_does_not_shift_the_similarity_of_others() -> None:
    masked = IdealModel.of(
        GOAL.transition, GOAL.rule, allowed=[[True, True], [True, False], [True, True]]
    )
    np.testing.assert_allclose(
        normalised_similarity(masked, *FULL), normalised_similarity(GOAL, *FULL)
    )


def test_similarity_to_several_goals_at_once() -> None:
    rng = np.random.default_rng(0)
    transition = random_rows(rng, 5, S, A, S)
    rule = random_rows(rng, S, A)
    together = normalised_similarity(IdealModel.of(transition, rule), *FULL)
    alone = [normalised_similarity(IdealModel.of(goal, rule), *FULL) for goal in transition]
    np.testing.assert_allclose(together, alone)


# Known goals of past tasks


def dense_divergence(past: IdealModel, ideal: IdealModel) -> FloatArray:
    """D(past(. | s) || ideal(. | s)) over the full tables, term by term."""
    p = full_joint(past)
    q = full_joint(ideal)
    wanted = p > 0
    ratio = silent_log(np.where(wanted, p, 1)) - silent_log(np.where(wanted, q, 1))
    return np.asarray((p * ratio).sum(axis=(1, 2)))


@given(seeds, sizes, sizes)
def test_divergence_of_goals_that_depend_on_state_and_action(seed: int, S: int, A: int) -> None:
    rng = np.random.default_rng(seed)
    past = random_ideal(rng, S, A)
    ideal = random_ideal(rng, S, A)
    np.testing.assert_allclose(
        kl_divergence(past, ideal), dense_divergence(past, ideal), atol=1e-12
    )
    np.testing.assert_allclose(task_weight(past, ideal), np.exp(-dense_divergence(past, ideal)))


def test_divergence_of_goals_kept_in_smaller_shapes() -> None:
    rng = np.random.default_rng(2)
    past = IdealModel.of(random_rows(rng, S), random_rows(rng, A))
    for ideal in (
        GOAL,
        IdealModel.of(random_rows(rng, S), num_actions=A),
        IdealModel.of(random_rows(rng, 1, A, S)),
    ):
        np.testing.assert_allclose(
            kl_divergence(past, ideal), dense_divergence(past, ideal)[: len(ideal.log_rule)]
        )


def test_divergence_is_infinite_where_the_past_wanted_what_is_ruled_out_and_only_there() -> None:
    """In state 0 the past never took the action whose outcome is ruled out; in state 1 it did."""
    past = IdealModel.of([0.5, 0.5], [[1.0, 0.0], [0.5, 0.5]])
    ideal = IdealModel.of([[[0.5, 0.5], [1.0, 0.0]]] * 2, [0.5, 0.5])
    np.testing.assert_allclose(kl_divergence(past, ideal), [np.log(2), np.inf])
    np.testing.assert_allclose(task_weight(past, ideal), [0.5, 0])


@given(seeds)
def test_same_goal_has_no_divergence_and_full_weight(seed: int) -> None:
    ideal = random_ideal(np.random.default_rng(seed), S, A)
    np.testing.assert_array_equal(kl_divergence(ideal, ideal), np.zeros(S))
    np.testing.assert_array_equal(task_weight(ideal, ideal), np.ones(S))


def test_divergence_is_never_negative_although_its_rounding_may_be() -> None:
    rng = np.random.default_rng(6)
    rows = random_rows(rng, 200, 50)
    nudged = rows * (1 + 1e-15 * rng.normal(size=rows.shape))
    pairs = zip(rows, nudged, strict=True)
    assert all(
        kl_divergence(IdealModel.of(p, [1.0]), IdealModel.of(q, [1.0])) >= 0 for p, q in pairs
    )


def test_caller_may_bring_another_divergence() -> None:
    """Total variation, which no goal has from itself and which is at most one."""

    def total_variation(past: IdealModel, ideal: IdealModel) -> FloatArray:
        return np.asarray(np.abs(full_joint(past) - full_joint(ideal)).sum(axis=(1, 2)) / 2)

    past = IdealModel.of([1.0, 0.0, 0.0], GOAL.rule)
    np.testing.assert_allclose(task_weight(past, GOAL, total_variation), np.exp([-0.5, -0.5, -0.5]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, -0.1, 0.0], "the divergence in state 1 is -0.1; a divergence is never negative"),
        ([0.0, 0.0, np.nan], "the divergence in state 2 is nan"),
        (-1.0, "the divergence in state 0 is -1.0"),
    ],
)
def test_divergence_that_is_none_is_refused(values: list[float] | float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        task_weight(GOAL, GOAL, lambda past, ideal: np.array(values))


@pytest.mark.parametrize("reward_first", [True, False])
def test_divergence_of_a_reward_is_refused(reward_first: bool) -> None:
    pair = [IdealModel.from_reward([0.0, 1.0, 0.0], 1.0, num_actions=A), GOAL]
    past, ideal = pair if reward_first else pair[::-1]
    with pytest.raises(ValueError, match="made from a reward"):
        kl_divergence(past, ideal)


def test_weighed_tasks_are_one_log_whose_records_weigh_by_task_and_similarity() -> None:
    """Against a sum over the plain list of records."""
    rng = np.random.default_rng(7)
    logs = [random_log(rng, S, A, 40) for _ in range(3)]
    goals = [random_ideal(rng, S, A) for _ in range(3)]
    merged = weigh_tasks(
        ((counts_of(log, S, A), goal) for log, goal in zip(logs, goals, strict=True)), GOAL
    )
    evidence: dict[tuple[int, int], float] = defaultdict(float)
    for log, goal in zip(logs, goals, strict=True):
        weight = np.exp(-dense_divergence(goal, GOAL))
        for s, a, n in zip(*log, strict=True):
            evidence[s, a] += weight[s] * full_joint(GOAL)[s, a, n] / 0.45
    expected = [[evidence[s, a] for a in range(A)] for s in range(S)]
    np.testing.assert_allclose(gather_evidence(merged, GOAL), expected)
    assert merged.num_records == 120


def test_no_past_task_is_refused() -> None:
    with pytest.raises(ValueError, match="no past task was given"):
        weigh_tasks([], GOAL)


def test_goals_and_tasks_of_different_sizes_are_refused() -> None:
    two = IdealModel.of([0.5, 0.5], num_actions=2)
    three = IdealModel.of([0.2, 0.3, 0.5], num_actions=2)
    with pytest.raises(ValueError, match="cannot be compared"):
        kl_divergence(two, three)
    one = TransitionCounts.empty(Space(("a", "b")), Space(("x", "y")))
    other = TransitionCounts.empty(Space(("b", "a")), Space(("x", "y")))
    with pytest.raises(ValueError, match="over different labels"):
        weigh_tasks([(one, two), (other, two)], two)
    with pytest.raises(ValueError, match="a task is not"):
        weigh_tasks([(one, two)], three)
