"""TL_explore: Algorithm 1, and what its plan expects of it."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

import pastwise as pw
from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import TL, TLExplore
from pastwise.theory.exploration import UCB, EpsilonGreedy
from tests.helpers.methods import rules_everywhere
from tests.helpers.oracles import World

ALONE = World.random().alone(0)


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_explores_only_with_an_open_gate_and_a_coin_below_epsilon() -> None:
    """Open gate and epsilon 1: uniform over the allowed. Epsilon 0, or the gate closed: as TL.

    Paper: Algorithm 1 [alg:alg_exploration].
    """
    as_tl = rules_everywhere(TL(), TL().start(ALONE.counts, ALONE.ideal))
    uniform = ALONE.ideal.allowed / 3
    cases: list[tuple[float, float, FloatArray]] = [
        (1.0, 1.0, uniform),
        (1.0, 0.0, as_tl),
        (0.0, 1.0, as_tl),
    ]
    for threshold, epsilon, expected in cases:
        method = TLExplore(threshold=threshold, explore=EpsilonGreedy(epsilon))
        memory = method.start(ALONE.counts, ALONE.ideal, ALONE.log)
        np.testing.assert_allclose(rules_everywhere(method, memory), expected)
        np.testing.assert_allclose(method.plan(memory).rule, expected)


def test_loop_is_algorithm_1() -> None:
    """Against the algorithm on plain numbers, with the coins that the method sees.

    Paper: Algorithm 1 [alg:alg_exploration].
    """
    ideal = IdealModel.of([0.8, 0.15, 0.05], num_actions=4)
    threshold, size, epsilon = 0.5, 4, 0.4
    method = TLExplore(threshold=threshold, window=size, explore=EpsilonGreedy(epsilon))
    memory = method.start(ALONE.counts, ideal, ALONE.log)
    similarity = {0: 1.0, 1: 0.15 / 0.8, 2: 0.05 / 0.8}
    window = deque((similarity[int(n)] for n in ALONE.log.next_state), maxlen=size)
    evidence = np.full((3, 4), 0.05 / 4 / 3 * 3)
    for s, a, n in zip(*ALONE.log, strict=True):
        evidence[s, a] += similarity[int(n)]

    coins = np.random.default_rng(1)
    same_coins = np.random.default_rng(1)
    world = np.random.default_rng(2)
    seen = set()
    for _ in range(200):
        s, a, n = (int(world.integers(number)) for number in (3, 4, 3))
        coin = same_coins.random()
        explores = sum(window) / size < threshold and coin < epsilon
        expected = np.full(4, 0.25) if explores else evidence[s] / evidence[s].sum()
        np.testing.assert_allclose(method.rule(memory, np.array(s), coins), expected)
        method.observe(memory, np.array(s), np.array(a), np.array(n))
        evidence[s, a] += similarity[n]
        window.append(similarity[n])
        seen.add(explores)
    assert seen == {True, False}


def test_gate_starts_on_the_last_records_and_follows_the_new_ones() -> None:
    """Two records that serve the goal close it; one that does not opens it."""
    ideal = IdealModel.of([0.99, 0.01], num_actions=2)
    method = TLExplore(threshold=0.6, window=2, explore=EpsilonGreedy(1.0))
    log = Transitions(np.array([0, 0, 1]), np.array([1, 1, 1]), np.array([1, 0, 0]))
    counts = TransitionCounts.from_transitions(log, Space.of_size(2), Space.of_size(2))
    memory = method.start(counts, ideal, log)
    state = np.array(0)
    other = np.array(1)
    assert method.rule(memory, state, rng())[1] > 0.9
    method.observe(memory, state, other, other)
    np.testing.assert_array_equal(method.rule(memory, state, rng()), [0.5, 0.5])


@pytest.mark.parametrize(("threshold", "is_open"), [(0.66, False), (0.68, True)])
def test_gate_starts_on_the_mean_similarity_where_no_order_is_known(
    threshold: float, is_open: bool
) -> None:
    """Two of three records serve the goal: the mean similarity is 2/3 + 1/3 of 1/99."""
    ideal = IdealModel.of([0.99, 0.01], num_actions=2)
    method = TLExplore(threshold=threshold, window=2, explore=EpsilonGreedy(1.0))
    counts = counts_of_three()
    rule = method.rule(method.start(counts, ideal), np.array(0), rng())
    assert (rule.tolist() == [0.5, 0.5]) == is_open


def counts_of_three() -> TransitionCounts:
    return TransitionCounts.from_records(
        [0, 0, 1], [1, 1, 1], [1, 0, 0], Space.of_size(2), Space.of_size(2)
    )


def test_forbidden_actions_never_close_the_gate() -> None:
    """Records of them serve no goal, in whichever way they come."""
    allowed = np.array([[True, False]])
    ideal = IdealModel.of([0.99, 0.01], num_actions=2, allowed=allowed)
    method = TLExplore()
    zero = np.zeros(20, dtype=np.int64)
    log = Transitions(zero, zero + 1, zero)
    counts = TransitionCounts.from_transitions(log, Space.of_size(2), Space.of_size(2))
    by_counts = method.start(counts, ideal)
    by_order = method.start(counts, ideal, log)
    observed = method.start(counts, ideal, log)
    for _ in range(method.window):
        method.observe(observed, np.array(0), np.array(1), np.array(0))
    for memory in (by_counts, by_order, observed):
        assert memory.window.mean() == 0


def test_gate_without_any_log_is_open() -> None:
    ideal = IdealModel.of([0.99, 0.01], num_actions=2)
    method = TLExplore(explore=EpsilonGreedy(1.0))
    nothing = TransitionCounts.empty(Space.of_size(2), Space.of_size(2))
    memory = method.start(nothing, ideal)
    state = np.array(0)
    method.observe(memory, state, state, state)
    assert method.rule(memory, state, rng())[0] > 0.9, "its one record serves the goal"
    fresh = method.start(nothing, ideal)
    np.testing.assert_array_equal(method.rule(fresh, state, rng()), [0.5, 0.5])


def test_runs_of_a_batch_have_their_own_gates() -> None:
    """Paper: Algorithm 1 [alg:alg_exploration], its outer condition."""
    ideal = IdealModel.of([0.98, 0.02], num_actions=2)
    state = np.array([[0, 0], [1, 1]])
    action = np.zeros((2, 2), dtype=np.int64)
    records = (state, action, state)
    counts = TransitionCounts.from_records(*records, Space.of_size(2), Space.of_size(2))
    method = TLExplore(threshold=0.5, window=2, explore=UCB())
    memory = method.start(counts, ideal, Transitions(*records))
    rule = method.rule(memory, np.array([0, 1]), rng())
    assert rule[0, 0] > 0.99, "the first run's records serve the goal: its gate is closed"
    np.testing.assert_array_equal(rule[1], [0, 1])
    np.testing.assert_array_equal(method.plan(memory).rule[1, 1], [0, 1])
    method.observe(memory, np.array([0, 1]), np.array([0, 1]), np.array([0, 1]))
    np.testing.assert_array_equal(memory.records[1], [[0, 0], [2, 1]])


def test_plan_names_what_exploration_adds_and_takes() -> None:
    """Three tenths of the rule are uniform; what some actions get, others lose."""
    method = TLExplore(threshold=1.0)
    memory = method.start(ALONE.counts, ALONE.ideal, ALONE.log)
    plan = method.plan(memory)
    learned = TL().plan(TL().start(ALONE.counts, ALONE.ideal))
    np.testing.assert_allclose(plan.rule, 0.7 * learned.rule + 0.1 * ALONE.ideal.allowed)
    assert list(plan.parts) == ["records", "prior", "exploration"]
    np.testing.assert_allclose(plan.parts["exploration"].sum(axis=-1), 0, atol=1e-12)
    for name in ("records", "prior"):
        np.testing.assert_array_equal(plan.parts[name], learned.parts[name])


def test_exploration_is_for_lack_of_useful_data() -> None:
    """Where most records serve the goal it is TL; where few do, 30 % of the rule is uniform."""
    log = {
        "room": ["cold", "cold", "mild", "mild", "hot", "hot", "cold", "mild"] * 10,
        "did": ["heat", "wait", "wait", "heat", "cool", "wait", "heat", "wait"] * 10,
        "then": ["mild", "cold", "mild", "hot", "mild", "hot", "cold", "mild"] * 10,
    }

    def probabilities(method: str, goal: pw.Goal) -> FloatArray:
        learner = pw.TransferLearner(goal, method=method)
        return learner.fit(log, state="room", action="did", next_state="then").rule_.probabilities

    mild = pw.Goal(prefer={"mild": 1})
    hot = pw.Goal(prefer={"hot": 1})
    np.testing.assert_allclose(probabilities("TL_explore", mild), probabilities("TL", mild))
    mixed = 0.7 * probabilities("TL", hot) + 0.3 / 3
    np.testing.assert_allclose(probabilities("TL_explore", hot), mixed)


@pytest.mark.parametrize(
    ("hyper_parameters", "message"),
    [
        ({"threshold": 1.1}, r"the threshold must be a number from 0 to 1, not 1.1"),
        ({"window": 0}, "the window must be a whole number from 1 to 1,000,000, not 0"),
        ({"prior_count": 0.0}, "prior counts must be positive"),
        ({"similarity": "cosine"}, "similarity must be a function"),
        ({"explore": "greedy"}, "explore must be an Explorer"),
        ({"explore": EpsilonGreedy}, "explore must be an Explorer"),
    ],
)
def test_bad_hyper_parameters_are_refused(
    hyper_parameters: dict[str, object], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        TLExplore(**hyper_parameters)  # type: ignore[arg-type]
