"""Learned models: the posterior mean, records added one by one, terminal states."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import InfeasibleError, ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.theory.fpd import design as fpd
from tests.helpers.oracles import (
    counts_of,
    counts_of_list,
    posterior_mean,
    random_log,
)

A = 3
FEW, MANY = 4, 12
"""Numbers of states; a learned model stores many in another way than few."""

BACKGROUND = 0.125
RUNS = (2, 3)


@pytest.fixture(params=[FEW, MANY])
def num_states(request: pytest.FixtureRequest) -> int:
    """The number of states."""
    return int(request.param)


def six_logs(num_states: int) -> TransitionCounts:
    """Logs of six systems: [*RUNS]."""
    return counts_of(random_log(np.random.default_rng(4), num_states, A, *RUNS, 30), num_states, A)


def test_learned_model_is_the_mean_of_its_posterior_in_fractions() -> None:
    """Paper: FPD_learn, "Bayesian estimation was applied to learn the transition model"."""
    log = [(0, 0, 1), (0, 0, 1), (0, 0, 0), (1, 1, 0)]
    model = LearnedModel(counts_of_list(log, 2, 2), background=0.25)
    for s, a in np.ndindex(2, 2):
        total = sum(record[:2] == (s, a) for record in log) + 2 * Fraction(1, 4)
        expected = [(log.count((s, a, n)) + Fraction(1, 4)) / total for n in range(2)]
        assert model.row(np.array(s), np.array(a)).tolist() == [float(p) for p in expected]


def test_weights_of_the_log_are_its_counts() -> None:
    light = LearnedModel(counts_of_list([(0, 0, 1)], 2, 1, 0.5), background=0.5)
    np.testing.assert_allclose(light.row(np.array(0), np.array(0)), [1 / 3, 2 / 3])


def test_learned_model_of_nothing_is_uniform(num_states: int) -> None:
    S = num_states
    model = LearnedModel(TransitionCounts.empty(Space.of_size(S), Space.of_size(A), (2,)), 1e-6)
    np.testing.assert_allclose(
        model.row(np.array([0, 3]), np.array([1, 2])), np.full((2, S), 1 / S)
    )
    np.testing.assert_allclose(model.negentropy, np.full((2, S, A), -np.log(S)))


def test_model_that_goes_on_learning_is_one_built_at_once(num_states: int) -> None:
    """Each of six systems observes its own records, old and new ones, starting from its own log."""
    S = num_states
    more = random_log(np.random.default_rng(7), S, A, *RUNS, 40)
    model = LearnedModel(six_logs(S), BACKGROUND)
    for t in range(40):
        model.observe(more.state[..., t], more.action[..., t], more.next_state[..., t])
        model.expect(np.ones(S))
    at_once = LearnedModel(six_logs(S) + counts_of(more, S, A), BACKGROUND)
    values = np.random.default_rng(8).normal(size=S)
    np.testing.assert_allclose(model.expect(values), at_once.expect(values), rtol=1e-11)
    np.testing.assert_allclose(model.negentropy, at_once.negentropy, rtol=1e-11)
    for t in range(40):
        where = more.state[..., t], more.action[..., t]
        np.testing.assert_allclose(model.row(*where), at_once.row(*where), rtol=1e-14)


def test_learning_does_not_change_the_counts_it_started_from() -> None:
    counts = counts_of_list([(0, 0, 1)], 2, 1)
    LearnedModel(counts, 1.0).observe(np.array(0), np.array(0), np.array(1))
    assert counts.weight.tolist() == [1.0]


@pytest.mark.parametrize("background", [0.0, -1.0, np.nan, np.inf])
def test_bad_background_is_refused(background: float) -> None:
    message = f"the background count must be positive, not {background}"
    with pytest.raises(ParameterError, match=message):
        LearnedModel(counts_of_list([(0, 0, 0)], 2, 1), background)


@pytest.mark.parametrize("ideal_shape", [(FEW,), (FEW, A, FEW)])
def test_learned_model_refuses_goals_that_rule_out_next_states(
    ideal_shape: tuple[int, ...],
) -> None:
    model = LearnedModel(TransitionCounts.empty(Space.of_size(FEW), Space.of_size(A)), BACKGROUND)
    ideal = IdealModel.of(np.broadcast_to([0.5, 0.0, 0.5, 0.0], ideal_shape), num_actions=A)
    message = r"rules out next states \[1, 3\] .* give them a floor instead, such as 1e-5"
    with pytest.raises(InfeasibleError, match=message):
        fpd(model, ideal, 3)


def test_next_states_that_the_goal_rules_out_are_named_by_their_labels() -> None:
    states = Space(("cold", "hot", "mild"))
    model = LearnedModel(TransitionCounts.empty(states, Space.of_size(A)), BACKGROUND)
    ideal = IdealModel.of([0.5, 0.0, 0.5], num_actions=A)
    with pytest.raises(InfeasibleError, match=r"rules out next states \['hot'\]"):
        fpd(model, ideal, 3)


def test_a_state_without_a_feasible_action_is_named_by_learned_models() -> None:
    """Small and larger models name the state itself, not those that follow from it."""
    for S in (3, 12):
        allowed = np.ones((S, 2), dtype=bool)
        allowed[1] = [False, True]
        rule = np.full((S, 2), 0.5)
        rule[1] = [1.0, 0.0]
        ideal = IdealModel.of(np.full(S, 1 / S), rule, allowed=allowed)
        counts = TransitionCounts.from_records(
            [0, 1, 2], [0, 1, 0], [1, 2, 0], Space.of_size(S), Space.of_size(2)
        )
        with pytest.raises(InfeasibleError, match=r"rules out next states \[1\]"):
            fpd(LearnedModel(counts, 0.1), ideal, 5)


@pytest.mark.parametrize("states", [4, 12])
@pytest.mark.parametrize(
    "record", [(99, 0, 0), (0, 99, 0), (0, 0, 99), (0, 0, -1), (-1, 0, 0), (0, 0, 1.5), (0.5, 0, 0)]
)
def test_records_out_of_range_are_refused(states: int, record: tuple[Any, Any, Any]) -> None:
    model = LearnedModel(TransitionCounts.empty(Space.of_size(states), Space.of_size(2)), 0.5)
    with pytest.raises(IndexError):
        model.observe(*(np.asarray(index) for index in record))
    assert model.row(np.array(0), np.array(0)).tolist() == [1 / states] * states


def test_one_next_state_is_for_all_systems_and_two_are_for_two() -> None:
    five = LearnedModel(TransitionCounts.empty(Space.of_size(9), Space.of_size(2), (5,)), 0.5)
    zeros = np.zeros(5, dtype=np.int64)
    five.observe(zeros, zeros, np.array(1))
    np.testing.assert_allclose(five.row(zeros, zeros)[:, 1], 1.5 / 5.5)
    with pytest.raises(ParameterError, match="does not fit"):
        five.observe(zeros, zeros, np.array([1, 2]))
    one = LearnedModel(TransitionCounts.empty(Space.of_size(9), Space.of_size(2)), 0.5)
    with pytest.raises(ParameterError, match="does not fit"):
        one.observe(np.array([2, 0]), np.array([0, 1]), np.array([1, 1]))


# Terminal states


ENDS = np.array([1, 3])


def past_with_ends(num_states: int, *shape: int) -> TransitionCounts:
    """A log in which episodes end, and a few records that leave an end nevertheless."""
    log = random_log(np.random.default_rng(9), num_states, A, *shape, 60)
    return replace(counts_of(log, num_states, A), terminal=ENDS)


def absorbing_mean(counts: TransitionCounts) -> FloatArray:
    """The mean of the posterior as a tensor, with terminal states that lead to themselves."""
    mean = posterior_mean(counts, BACKGROUND)
    mean[..., counts.terminal, :, :] = np.eye(len(counts.states))[counts.terminal][:, None]
    return mean


def assert_is_model(model: LearnedModel, mean: FloatArray) -> None:
    """Row by row, and in every expectation."""
    dense = DenseModel(mean)
    rng = np.random.default_rng(10)
    S = mean.shape[-1]
    for s, a in np.ndindex(S, A):
        where = np.full(mean.shape[:-3], s), np.full(mean.shape[:-3], a)
        np.testing.assert_allclose(model.row(*where), mean[..., s, a, :], rtol=1e-12)
    np.testing.assert_allclose(model.negentropy, dense.negentropy, atol=1e-12)
    for goals in ((), (5, *mean.shape[:-3])):
        values = rng.normal(size=(*goals, S))
        np.testing.assert_allclose(model.expect(values), dense.expect(values), atol=1e-12)
    table = rng.normal(size=(S, A, S))
    np.testing.assert_allclose(model.expect_each(table), dense.expect_each(table), atol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,), RUNS])
def test_terminal_states_lead_to_themselves(num_states: int, shape: tuple[int, ...]) -> None:
    counts = past_with_ends(num_states, *shape)
    model = LearnedModel(counts, BACKGROUND)
    assert_is_model(model, absorbing_mean(counts))
    assert (model.negentropy[..., ENDS, :] == 0).all()


def test_terminal_state_without_any_record_leads_to_itself(num_states: int) -> None:
    nothing = TransitionCounts.empty(Space.of_size(num_states), Space.of_size(A))
    counts = replace(nothing, terminal=np.array([0]))
    assert_is_model(LearnedModel(counts, BACKGROUND), absorbing_mean(counts))


@pytest.mark.parametrize("left", [False, True])
def test_model_with_terminal_states_goes_on_learning(num_states: int, left: bool) -> None:
    """Records that leave a terminal state do not count, as in a model built at once."""
    S = num_states
    before = past_with_ends(S, *RUNS)
    more = random_log(np.random.default_rng(11), S, A, *RUNS, 40)
    if not left:
        more = more._replace(state=np.where(np.isin(more.state, ENDS), 0, more.state))
    model = LearnedModel(before, BACKGROUND)
    for t in range(40):
        model.observe(more.state[..., t], more.action[..., t], more.next_state[..., t])
    assert_is_model(model, absorbing_mean(before + counts_of(more, S, A)))


def test_design_knows_that_terminal_states_are_final(num_states: int) -> None:
    """Paper: Theorem 1 [th:solution_FPD], on a model in which an episode may end.

    State 0 may end well (1) or badly (3). Without terminal states the design expects the same from
    both, since nothing was seen to follow them.
    """
    S = num_states
    log = [(0, 0, 1), (0, 1, 3), (0, 2, 0)] * 5
    counts = counts_of_list(log, S, A)
    ended = replace(counts, terminal=ENDS)
    wanted = np.full(S, 0.05 / (S - 1))
    wanted[1] = 0.95
    ideal = IdealModel.of(wanted, num_actions=A)
    found = fpd(LearnedModel(ended, BACKGROUND), ideal, 10)
    expected = fpd(DenseModel(absorbing_mean(ended)), ideal, 10)
    np.testing.assert_allclose(found.policy, expected.policy, rtol=1e-11)
    np.testing.assert_allclose(found.log_gamma, expected.log_gamma, rtol=1e-11)
    np.testing.assert_allclose(found.policy[:, ENDS], 1 / A)
    for state, probability in ((1, wanted[1]), (3, wanted[3])):
        np.testing.assert_allclose(found.log_gamma[0, state], 10 * np.log(probability), rtol=1e-12)
    unended = fpd(LearnedModel(counts, BACKGROUND), ideal, 10)
    assert found.log_gamma[0, 1] > unended.log_gamma[0, 1]
    assert found.log_gamma[0, 3] < unended.log_gamma[0, 3]
    assert found.policy[0, 0, 0] > unended.policy[0, 0, 0]


def test_a_world_of_ends_needs_no_feasible_action_elsewhere() -> None:
    """Terminal states lead nowhere else: one without a feasible action concerns only itself."""
    ideal = IdealModel.of(
        np.full(3, 1 / 3),
        [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]],
        allowed=[[False, True]] + [[True] * 2] * 2,
    )
    ends = TransitionCounts.empty(Space.of_size(3), Space.of_size(2)).ending_in(np.arange(3))
    policy = fpd(LearnedModel(ends, 0.1), ideal, 4).policy
    np.testing.assert_allclose(policy, np.broadcast_to([[0, 0], [0.5, 0.5], [0.5, 0.5]], (4, 3, 2)))
