"""Planning on a posterior: values of rules, the best rule, and stays by how long they last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.stats import dirichlet

from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.goals.goal import Goal
from pastwise.goals.ideal import IdealModel
from pastwise.goals.utility import Utility
from pastwise.methods import TLForesight
from pastwise.models.belief import Belief
from pastwise.policy.learner import TransferLearner
from pastwise.theory import planning
from pastwise.theory.planning import Task, _lasting_stay
from tests.helpers.oracles import counts_of, counts_of_list, random_ideal, random_log, random_rows
from tests.helpers.posteriors import batch_of, table_of

S, A = 4, 3
DISCOUNT = 0.9


def random_counts(seed: int, ends: Sequence[int] = (), number: int = 40) -> TransitionCounts:
    """A random log that does not leave terminal states."""
    rng = np.random.default_rng(seed)
    log_ = random_log(rng, S, A, number)
    is_kept = ~np.isin(log_.state, list(ends))
    kept = type(log_)(*(field[is_kept] for field in log_))
    return counts_of(kept, S, A).ending_in(np.array(ends, dtype=np.int64))


def task_of(
    ideal: IdealModel, counts: TransitionCounts, discount: float = DISCOUNT
) -> tuple[Task, Utility]:
    utility = Utility.of(ideal, counts.terminal)
    allowed = np.broadcast_to(ideal.allowed, (ideal.num_states, ideal.num_actions))
    uniform = allowed / allowed.sum(axis=-1, keepdims=True)
    return Task(Belief(counts), utility, uniform, discount), utility


def mean_rows(belief: Belief) -> FloatArray:
    """[S, A, S] of a single system."""
    columns = [belief.mean(row[None])[0] for row in np.eye(belief.num_states)]
    return np.stack(columns, axis=-1)


def lasting_rows(belief: Belief, discount: float) -> FloatArray:
    """Mean rows whose chance of staying lasts as long as the posterior expects, by integration."""
    rows = mean_rows(belief)
    staying = belief.staying()[0]
    for s, a in np.ndindex(rows.shape[:2]):
        p = lasting_stay(float(staying[s, a]), float(belief.weight[0, s, a]), discount)
        others = np.delete(np.arange(len(rows)), s)
        rows[s, a, others] *= (1 - p) / rows[s, a, others].sum()
        rows[s, a, s] = p
    return rows


def lasting_stay(a: float, weight: float, discount: float) -> float:
    """Chance p of staying with 1 / (1 - g p) = E[1 / (1 - g q)], q ~ Beta(a, weight - a)."""
    b = weight - a

    def density(q: mpmath.mpf) -> mpmath.mpf:
        return q ** (a - 1) * (1 - q) ** (b - 1) / (1 - discount * q)

    integral = mpmath.quad(density, [0, 0.001, 0.5, 0.999, 1]) / mpmath.beta(a, b)
    return float((1 - 1 / integral) / discount)


def literal_value(
    rows: FloatArray,
    utility: Utility,
    rule: FloatArray,
    discount: float,
    terminal: Sequence[int],
    epochs: int = 2000,
) -> FloatArray:
    """Discounted value of a rule, epoch by epoch: [S]."""
    num_states, num_actions, _ = rows.shape
    value = np.zeros(num_states)
    full = np.empty(rows.shape)
    for s, a, n in np.ndindex(rows.shape):
        full[s, a, n] = utility.of_transitions(s, a, n)
    for _ in range(epochs):
        following = np.zeros(num_states)
        for s in range(num_states):
            if s in terminal:
                place = list(terminal).index(s)
                following[s] = utility.after_end[place] + discount * value[s]
                continue
            for a in range(num_actions):
                following[s] += rule[s, a] * (rows[s, a] @ (full[s, a] + discount * value))
        value = following
    return value


def rules_of(seed: int, num_states: int = S, num_actions: int = A) -> FloatArray:
    return random_rows(np.random.default_rng(seed), num_states, num_actions)


GOALS = {
    "states": IdealModel.of([0.6, 0.25, 0.1, 0.05], num_actions=A),
    "everything": random_ideal(np.random.default_rng(1), S, A),
    "states and actions": IdealModel.of([0.6, 0.25, 0.1, 0.05], [0.5, 0.3, 0.2]),
    "reward of state and action": IdealModel.from_reward(
        np.random.default_rng(2).normal(size=(S, A))[..., None], 1.0
    ),
    "costs": IdealModel.from_reward([-0.5, -1.0, -0.2, -0.7], 1.0, num_actions=A),
    "reward of all": IdealModel.from_reward(np.random.default_rng(3).normal(size=(S, A, S)), 1.0),
}


# Values.


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("ends", [(), (1,), (0, 3)])
def test_value_of_a_rule_is_that_of_epoch_by_epoch(name: str, ends: tuple[int, ...]) -> None:
    """Where nothing but the end pays, on rows whose stays last as expected."""
    counts = random_counts(0, ends)
    task, utility = task_of(GOALS[name], counts)
    rows = mean_rows(task.belief)
    if name == "costs" and ends:
        rows = lasting_rows(task.belief, DISCOUNT)
    rule = rules_of(4)
    value = task.value_of(rule[None])[0]
    expected = literal_value(rows, utility, rule, DISCOUNT, ends, 250)
    np.testing.assert_allclose(value, expected, atol=1e-6)

    # Values of actions, one epoch further.
    for a in range(A):
        following = np.zeros(S)
        for s in range(S):
            for n in range(S):
                now = float(utility.of_transitions(s, a, n))
                following[s] += rows[s, a, n] * (now + DISCOUNT * value[n])
        np.testing.assert_allclose(task.action_values(value[None])[0, :, a], following, atol=1e-6)


def test_extra_is_collected_by_each_action() -> None:
    task, _ = task_of(GOALS["states"], random_counts(0))
    rule = rules_of(4)[None]
    extra = np.random.default_rng(0).normal(size=(1, S, A))
    loop = task.belief.closed_loop(rule)[0]
    gained = np.linalg.solve(np.eye(S) - DISCOUNT * loop, (rule * extra).sum(axis=-1)[0])
    difference = task.value_of(rule, extra) - task.value_of(rule)
    np.testing.assert_allclose(difference[0], gained, atol=1e-9)


@pytest.mark.parametrize("ends", [(), (1,)])
def test_length_is_the_discounted_number_of_epochs(ends: tuple[int, ...]) -> None:
    counts = random_counts(0, ends)
    task, utility = task_of(GOALS["costs"], counts)
    rule = rules_of(4)
    value, length = task.value_and_length(rule[None])
    np.testing.assert_allclose(value, task.value_of(rule[None]))
    rows = lasting_rows(task.belief, DISCOUNT) if ends else mean_rows(task.belief)
    epochs = Utility.one_per_epoch(S, utility.terminal)
    expected = literal_value(rows, epochs, rule, DISCOUNT, ends, 250)
    np.testing.assert_allclose(length[0], expected, atol=1e-6)


def test_unit_and_origin_are_the_goals_own() -> None:
    """A mean over epochs from the least to the largest score, or a total until the end."""
    counts = random_counts(0)
    goal = Goal(reward={0: 5.0, 1: -1.0})
    ideal = goal.on(Space.of_size(S), Space.of_size(A))
    task, _ = task_of(ideal, counts, 0.99)
    rule = rules_of(4)
    value = task.origin + task.unit * task.value_of(rule[None])[0]
    loop = task.belief.closed_loop(rule[None])[0]
    score = np.array([5.0, -1.0, 0.0, 0.0])
    expected = 0.01 * np.linalg.solve(np.eye(S) - 0.99 * loop, loop @ score)
    np.testing.assert_allclose(value, expected, atol=1e-9)

    # An episode's total.
    score = np.array([0.0, -1.0, 5.0, 0.0])
    ideal = Goal(reward={1: -1.0, 2: 5.0}).on(Space.of_size(S), Space.of_size(A))
    task, _ = task_of(ideal, random_counts(0, (2,)), 0.99)
    value = task.origin + task.unit * task.value_of(rule[None])[0]
    rows = lasting_rows(task.belief, 0.99)
    loop = (rule[..., None] * rows).sum(axis=1)
    loop[2] = 0.0
    expected = np.linalg.solve(np.eye(S) - 0.99 * loop, loop @ score)
    np.testing.assert_allclose(value, expected, atol=1e-6)


# The best rule.


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("ends", [(), (1,)])
def test_best_value_is_that_of_the_best_of_all_rules(name: str, ends: tuple[int, ...]) -> None:
    """Each of 81 deterministic rules."""
    task, _ = task_of(GOALS[name], random_counts(5, ends))
    best = np.full(S, -np.inf)
    for actions in product(range(A), repeat=S):
        best = np.maximum(best, task.value_of(np.eye(A)[list(actions)][None])[0])
    np.testing.assert_allclose(task.best_value()[0], best, atol=1e-6)


def test_best_rule_takes_no_forbidden_action() -> None:
    allowed = np.ones((S, A), dtype=bool)
    allowed[:, 0] = False
    allowed[2, 2] = False
    ideal = IdealModel.of([0.6, 0.25, 0.1, 0.05], num_actions=A, allowed=allowed)
    task, _ = task_of(ideal, random_counts(5))
    best = np.full(S, -np.inf)
    for actions in product((1, 2), (1, 2), (1,), (1, 2)):
        best = np.maximum(best, task.value_of(np.eye(A)[list(actions)][None])[0])
    np.testing.assert_allclose(task.best_value()[0], best, atol=1e-9)


def test_best_value_is_found_where_each_improvement_shows_but_one_state() -> None:
    """A corridor of 80 states, from which action 1 leads back to the start for a small reward.

    In the second log there is nothing to see; the optimum is a fixed point of value iteration.
    """
    size = 80
    log_ = [(s, 0, (s + 1) % size) for s in range(size)] * 200
    log_ += [(s, 1, 0) for s in range(size)] * 200
    reward = np.zeros((size, 2, 1))
    reward[-1, 0] = 1.0
    reward[:, 1] = 0.001
    counts = batch_of([log_, []], size, 2)
    task, _ = task_of(IdealModel.from_reward(reward, 1.0), counts, 0.999)
    value = task.best_value()
    action_values = task.action_values(value)
    np.testing.assert_allclose(action_values.max(axis=-1), value, rtol=1e-8)
    assert (action_values[0].argmax(axis=-1) == 0).all()
    alone, _ = task_of(IdealModel.from_reward(reward, 1.0), counts_of_list([], size, 2), 0.999)
    np.testing.assert_allclose(value[1], alone.best_value()[0], atol=1e-9)


@pytest.mark.parametrize("ends", [(), (1,)])
def test_large_systems_have_the_values_of_a_direct_solution(
    ends: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    counts = counts_of(random_log(rng, 50, A, 400), 50, A)
    counts = counts.ending_in(np.array(ends, dtype=np.int64))
    ideal = IdealModel.from_reward(rng.random(50), 1.0, num_actions=A)
    rule = rules_of(4, 50)[None]
    direct, _ = task_of(ideal, counts, 0.99)
    monkeypatch.setattr(planning, "SOLVE_DIRECTLY_UP_TO", 10)
    iterated, _ = task_of(ideal, counts, 0.99)
    np.testing.assert_allclose(iterated.value_of(rule), direct.value_of(rule), rtol=1e-4)
    pairs = zip(iterated.value_and_length(rule), direct.value_and_length(rule), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    found = iterated.best_value()
    monkeypatch.undo()
    np.testing.assert_allclose(found, direct.best_value(), rtol=1e-4)


@pytest.mark.parametrize("ends", [(), (1,)])
def test_batch_is_each_log_alone(ends: tuple[int, ...]) -> None:
    """Logs of different lengths."""
    rng = np.random.default_rng(7)
    logs = []
    for number in (30, 0, 200):
        columns = random_log(rng, S, A, number)
        records = zip(*(column.tolist() for column in columns), strict=True)
        logs.append([record for record in records if record[0] not in ends])
    terminal: IntArray = np.array(ends, dtype=np.int64)
    together, _ = task_of(GOALS["states"], batch_of(logs, S, A).ending_in(terminal))
    rule = rules_of(4)
    rules = np.tile(rule, (3, 1, 1))
    best = together.best_value()
    for i, log_ in enumerate(logs):
        counts = counts_of_list(log_, S, A).ending_in(terminal)
        alone, _ = task_of(GOALS["states"], counts)
        expected = alone.best_value()
        np.testing.assert_allclose(best[i], expected[0], atol=1e-9)
        np.testing.assert_allclose(
            together.value_of(rules)[i], alone.value_of(rule[None])[0], atol=1e-9
        )
        np.testing.assert_allclose(
            together.row_values(best).deviation[i],
            alone.row_values(expected).deviation[0],
            atol=1e-9,
        )


def test_a_single_state_and_action() -> None:
    task, _ = task_of(IdealModel.of([1.0], num_actions=1), counts_of_list([(0, 0, 0)], 1, 1))
    np.testing.assert_allclose(task.best_value(), [[0]], atol=1e-12)


# Uncertainty.


def test_deviation_is_that_of_the_mean_of_a_dirichlet_row() -> None:
    """Values v of the next state under Dirichlet rows have the variance v' covariance v."""
    counts = random_counts(6)
    task, utility = task_of(GOALS["states"], counts)
    value = np.random.default_rng(0).normal(size=S)
    target = utility.next_state_part[0, 0] + DISCOUNT * value
    rows = mean_rows(task.belief)
    found = task.row_values(value[None]).deviation[0]
    for s, a in np.ndindex(S, A):
        covariance = dirichlet.cov(rows[s, a] * task.belief.weight[0, s, a])
        assert found[s, a] == pytest.approx(np.sqrt(target @ covariance @ target), rel=1e-6)


def test_what_records_show_is_their_mean() -> None:
    counts = random_counts(6)
    task, utility = task_of(GOALS["states and actions"], counts)
    value = np.random.default_rng(0).normal(size=S)
    rows = task.row_values(value[None])
    table = table_of(counts)
    for s, a in np.ndindex(S, A):
        if table[s, a].sum() == 0:
            continue
        total = 0.0
        for n in range(S):
            now = float(utility.of_transitions(s, a, n))
            total += table[s, a, n] * (now + DISCOUNT * value[n])
        assert rows.shown[0, s, a] == pytest.approx(total / table[s, a].sum())
    assert (rows.noise > 0).all()
    assert (rows.prior_deviation > 0).all()


# Stays.


@pytest.mark.parametrize("discount", [0.5, 0.99, 0.999])
def test_stays_last_as_long_as_the_posterior_expects(discount: float) -> None:
    """1 / (1 - g p) = 2F1(1, a; a + b; g), by mpmath; the other next states keep their shares."""
    counts = counts_of_list(
        [(0, 0, 0)] * 6 + [(0, 1, 0), (0, 1, 1)] + [(1, 0, 1)] * 40 + [(1, 1, 2)] * 3, 3, 2
    ).ending_in(np.array([2]))
    task, utility = task_of(IdealModel.of([0.01, 0.01, 0.98], num_actions=2), counts, discount)
    assert utility.stops_at_end
    staying = task.belief.staying()[0]
    rows = mean_rows(task.belief)
    now = float(utility.next_state_part[0, 0, 2])
    zero = np.zeros((1, 3))
    reached = task.action_values(zero)[0] / now
    for s, a in np.ndindex(2, 2):
        weight = float(task.belief.weight[0, s, a])
        epochs = mpmath.hyp2f1(1, float(staying[s, a]), weight, discount)
        stay = float((1 - 1 / epochs) / discount)
        expected = (1 - stay) * rows[s, a, 2] / (1 - rows[s, a, s])
        assert reached[s, a] == pytest.approx(expected, rel=1e-6)
        assert stay > rows[s, a, s]


def test_a_row_that_was_only_seen_to_stay_may_stay_for_ever() -> None:
    """After five records that stay, against five of which one left: ten times as long or more."""
    counts = counts_of_list([(0, 0, 0)] * 5 + [(0, 1, 0)] * 4 + [(0, 1, 1)], 2, 2)
    counts = counts.ending_in(np.array([1]))
    task, _ = task_of(IdealModel.of([0.01, 0.99], num_actions=2), counts, 0.999)
    lengths = []
    for a in range(2):
        rule = np.tile(np.eye(2)[a], (1, 2, 1))
        lengths.append(float(task.value_and_length(rule)[1][0, 0]))
    assert lengths[0] > 10 * lengths[1]


def epochs_by_series(stays: float, leaves: float, discount: float) -> float:
    """E[1 / (1 - g p)] with p ~ Beta(stays, leaves): the sum of g^k E[p^k], term by term."""
    k = np.arange(40_000)
    factors = np.log(discount * (stays + k) / (stays + leaves + k))
    return float(1 + np.exp(np.cumsum(factors)).sum())


@pytest.mark.parametrize("discount", [0.999, 0.9, 1e-3])
@pytest.mark.parametrize("stays", [1e-6, 0.3, 1.7, 40.0, 1234.5, 1e5])
@pytest.mark.parametrize("leaves", [0.02, 1.0, 2.0, 7.3, 300.0, 1e5])
def test_a_stay_lasts_as_long_as_the_posterior_expects(
    stays: float, leaves: float, discount: float
) -> None:
    total = np.array([stays + leaves])
    chance = _lasting_stay(np.array([stays]), total, discount)
    expected = epochs_by_series(stays, leaves, discount)
    np.testing.assert_allclose(1 / (1 - discount * chance), [expected], rtol=1e-7)


def test_without_a_future_the_mean_chance_counts() -> None:
    stays = np.array([0.5, 30.0, 500.0])
    total = np.array([1.0, 31.5, 507.0])
    np.testing.assert_allclose(_lasting_stay(stays, total, discount=0.0), stays / total)


def test_an_action_that_needs_patience_is_not_taken_for_one_that_never_leaves() -> None:
    slow = [("x", "slow", "x")] * 1000 + [("x", "slow", "win")] * 4
    gamble = [("x", "gamble", "win")] * 20 + [("x", "gamble", "lose")] * 80
    state, action, next_state = zip(*slow, *gamble, strict=True)
    learner = TransferLearner(Goal(prefer="win")).fit(
        {"state": state, "action": action, "next": next_state},
        state="state",
        action="action",
        next_state="next",
        terminal=["lose", "win"],
    )
    # Sooner or later it wins; by the chance of 4 in 1,004 after 251 epochs.
    assert learner.rule("x")["slow"] > 0.99
    assert 0.7 < learner.explain("x").actions["slow"].parts["value"] < 0.85


def test_a_policy_that_does_not_look_ahead_takes_the_best_next_step() -> None:
    rows = {"state": ["x"] * 20, "action": ["a", "b"] * 10, "next": ["win", "lose"] * 10}
    learner = TransferLearner(Goal(prefer="win"), method=TLForesight(discount=0.0))
    learner.fit(rows, state="state", action="action", next_state="next", terminal=["lose", "win"])
    assert learner.rule("x")["a"] > 0.99
