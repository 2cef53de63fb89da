"""One contract for all decision makers, and then what each of them is to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pastwise import Agent, Space, TransitionCounts
from pastwise._numerics.arrays import FloatArray, sample
from pastwise._numerics.streams import Streams
from pastwise.data.records import Transitions
from pastwise.errors import InfeasibleError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.baselines import Clone, Rand, Scripted
from pastwise.methods.fpd import FPD
from pastwise.methods.fpd_learn import FPDLearn
from pastwise.methods.tl import TL
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.simulation.loop import run
from pastwise.theory.exploration import EpsilonGreedy, Gate
from pastwise.theory.fpd import design
from pastwise.theory.learning import gather_evidence, learned_rule, prior_concentration
from tests.helpers.oracles import World, counts_of_list, random_rows

HORIZON = 4
WORLD = World.random()
RUNS = np.arange(3)


def scripted(world: World) -> Scripted:
    """Five rules, of which none takes a forbidden action."""
    rules = random_rows(np.random.default_rng(1), 5, 3, 4) * world.ideal.allowed
    return Scripted(rules / rules.sum(axis=-1, keepdims=True))


AGENTS: dict[str, Callable[[World], Agent]] = {
    "Rand": lambda world: Rand(world.ideal),
    "Clone": lambda world: Clone(world.ideal),
    "Scripted": scripted,
    "TL": lambda world: TL(world.ideal),
    "TLExplore": lambda world: TLExplore(TL(world.ideal)),
    "FPDLearn": lambda world: FPDLearn(world.ideal, HORIZON),
    "FPDLearn replayed": lambda world: FPDLearn(world.ideal, HORIZON, replay=True),
    "FPD": lambda world: FPD(world.model, world.ideal, HORIZON),
    "FPD replayed": lambda world: FPD(world.model, world.ideal, HORIZON, replay=True),
}


@pytest.fixture(params=AGENTS)
def make(request: pytest.FixtureRequest) -> Callable[[World], Agent]:
    """Each kind of agent."""
    return AGENTS[request.param]


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def rules_along_a_run(agent: Agent, world: World, memory: Any, steps: int) -> FloatArray:
    """The rules by which an agent acts, [steps, runs, A], in a world that goes on from state 0."""
    system, coins, rules, state = (
        world.system,
        rng(),
        [],
        np.zeros(world.system.shape, dtype=np.int64),
    )
    for _ in range(steps):
        rules.append(agent.rule(memory, state, coins))
        action = sample(rules[-1], coins.random(system.shape))
        next_state = system.step(state, action, coins)
        agent.observe(memory, state, action, next_state)
        state = next_state
    return np.stack(rules)


# The contract


def test_rules_are_distributions_over_the_allowed_actions(make: Callable[[World], Agent]) -> None:
    """In each state, before and after observing; the past log took forbidden actions."""
    agent = make(WORLD)
    memory = agent.start(WORLD.counts, WORLD.log)
    for t in range(12):
        state = (RUNS + t) % 3
        rule = agent.rule(memory, state, rng())
        assert rule.shape == (3, 4)
        assert (rule >= 0).all()
        np.testing.assert_allclose(rule.sum(axis=-1), 1)
        np.testing.assert_array_equal(rule[~WORLD.ideal.allowed[state]], 0)
        agent.observe(memory, state, sample(rule, np.full(3, 0.7)), RUNS)


def test_forbidden_action_that_someone_took_is_not_learned(make: Callable[[World], Agent]) -> None:
    """Whether it is in the past log or seen while acting."""
    agent = make(WORLD)
    memory = agent.start(WORLD.counts, WORLD.log)
    forbidden = np.argmin(WORLD.ideal.allowed, axis=-1)
    for state in range(3):
        agent.observe(
            memory, np.full(3, state), np.full(3, forbidden[state]), np.zeros(3, dtype=np.int64)
        )
        rule = agent.rule(memory, np.full(3, state), rng())
        np.testing.assert_array_equal(rule[:, forbidden[state]], 0)


def test_memories_of_one_agent_are_independent(make: Callable[[World], Agent]) -> None:
    agent = make(WORLD)
    fresh = rules_along_a_run(agent, WORLD, agent.start(WORLD.counts, WORLD.log), 10)
    used, other = agent.start(WORLD.counts, WORLD.log), agent.start(WORLD.counts, WORLD.log)
    rules_along_a_run(agent, WORLD, used, 7)
    np.testing.assert_array_equal(rules_along_a_run(agent, WORLD, other, 10), fresh)


def test_asking_twice_changes_nothing(make: Callable[[World], Agent]) -> None:
    agent = make(WORLD)
    memory = agent.start(WORLD.counts, WORLD.log)
    for _ in range(3):
        first = agent.rule(memory, RUNS, rng())
        np.testing.assert_array_equal(agent.rule(memory, RUNS, rng()), first)
        agent.observe(memory, RUNS, RUNS, RUNS)


def test_same_seed_gives_the_same_trajectory(make: Callable[[World], Agent]) -> None:
    first, second = (
        run(WORLD.system, make(WORLD), 15, rng(), WORLD.counts, WORLD.log) for _ in range(2)
    )
    np.testing.assert_array_equal(first.states, second.states)
    np.testing.assert_array_equal(first.actions, second.actions)


def test_batch_of_runs_is_each_run_alone(make: Callable[[World], Agent]) -> None:
    """With `Streams` for the batch and its own generator for each run."""
    together = run(
        WORLD.system,
        make(WORLD),
        25,
        Streams(np.random.SeedSequence(3).spawn(3)),
        WORLD.counts,
        WORLD.log,
    )
    for i, seed in enumerate(np.random.SeedSequence(3).spawn(3)):
        world = WORLD.alone(i)
        alone = run(
            world.system, make(world), 25, np.random.default_rng(seed), world.counts, world.log
        )
        np.testing.assert_array_equal(together.states[i], alone.states)
        np.testing.assert_array_equal(together.actions[i], alone.actions)


def test_agent_can_start_without_any_log(make: Callable[[World], Agent]) -> None:
    agent = make(WORLD)
    nothing = TransitionCounts.empty(Space.of_size(3), Space.of_size(4), (3,))
    rules = rules_along_a_run(agent, WORLD, agent.start(nothing), 10)
    np.testing.assert_allclose(rules.sum(axis=-1), 1)


def test_several_observations_between_two_decisions_are_all_learned(
    make: Callable[[World], Agent],
) -> None:
    """A memory that was asked for a rule before gives, after them, the rule of one that was not.

    Those who follow a script move on in it; both memories have moved on equally far.
    """
    agent = make(WORLD)
    asked, not_asked = agent.start(WORLD.counts, WORLD.log), agent.start(WORLD.counts, WORLD.log)
    agent.rule(asked, RUNS, rng())
    for memory in (asked, not_asked):
        for _ in range(HORIZON + 1):
            agent.observe(memory, RUNS, np.ones(3, dtype=np.int64), np.zeros(3, dtype=np.int64))
    np.testing.assert_allclose(agent.rule(asked, RUNS, rng()), agent.rule(not_asked, RUNS, rng()))


# Each agent


STATES = np.arange(3)
ALONE = WORLD.alone(0)


def rules_everywhere(agent: Agent, memory: Any) -> FloatArray:
    """The rule in every state of a single run: [S, A]."""
    return np.stack([agent.rule(memory, np.array(s), rng()) for s in STATES])


def observed(agent: Agent, memory: Any, log: Transitions) -> Any:
    for record in zip(*log, strict=True):
        agent.observe(memory, *(np.array(index) for index in record))
    return memory


def test_rand_takes_every_allowed_action_alike() -> None:
    agent = Rand(ALONE.ideal)
    np.testing.assert_array_equal(
        rules_everywhere(agent, agent.start(ALONE.counts)), ALONE.ideal.allowed / 3
    )


def test_clone_does_what_the_log_did() -> None:
    """State 0: three of five allowed records; state 1: only a forbidden one; state 2: never seen."""
    log = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 2), (0, 2, 0), (0, 3, 0), (1, 0, 1)]
    agent = Clone(ALONE.ideal)
    expected = [[0.6, 0.2, 0.2, 0], [0, 1 / 3, 1 / 3, 1 / 3], [1 / 3, 1 / 3, 0, 1 / 3]]
    np.testing.assert_allclose(
        rules_everywhere(agent, agent.start(counts_of_list(log, 3, 4))), expected
    )


def test_script_is_followed_in_turn_and_begun_again() -> None:
    agent = scripted(ALONE)
    memory = agent.start(ALONE.counts)
    for t in range(12):
        np.testing.assert_array_equal(rules_everywhere(agent, memory), agent.policy[t % 5])
        agent.observe(memory, np.array(0), np.array(0), np.array(0))


def test_tl_acts_by_the_rule_learned_from_all_it_has_seen() -> None:
    """Past log and own experience alike, in whatever portions.

    Paper: Eq. (10) [eq:estimated_dec_rule].
    """
    ideal, spaces = (
        IdealModel.of([0.9, 0.07, 0.03], num_actions=4),
        (Space.of_size(3), Space.of_size(4)),
    )
    agent = TL(ideal)
    expected = learned_rule(gather_evidence(ALONE.counts, ideal), prior_concentration(ideal))
    np.testing.assert_allclose(rules_everywhere(agent, agent.start(ALONE.counts)), expected)
    for known in (0, 15, 29):
        before, after = (
            Transitions(*(f[part] for f in ALONE.log)) for part in (slice(known), slice(known, 30))
        )
        memory = observed(
            agent, agent.start(TransitionCounts.from_transitions(before, *spaces)), after
        )
        np.testing.assert_allclose(rules_everywhere(agent, memory), expected)


def test_tl_takes_a_prior_and_a_similarity() -> None:
    """One record of weight 3 by the caller's similarity, and a prior of 2 for each action: 5 to 2."""
    agent = TL(
        IdealModel.of([0.5, 0.5], num_actions=2),
        prior_count=1.0,
        similarity=lambda *record: np.array(3.0),
    )
    memory = agent.start(counts_of_list([(0, 1, 0)], 2, 2))
    np.testing.assert_allclose(agent.rule(memory, np.array(0), rng()), [2 / 7, 5 / 7])
    np.testing.assert_allclose(agent.rule(memory, np.array(1), rng()), [1 / 2, 1 / 2])


def test_tl_explores_only_when_told_to() -> None:
    """Open gate and epsilon 1: uniform over the allowed. Epsilon 0, or the gate closed: as TL.

    Paper: Algorithm 1 [alg:alg_exploration].
    """
    learner = TL(ALONE.ideal)
    as_tl = rules_everywhere(learner, learner.start(ALONE.counts))
    settings: list[tuple[Gate, EpsilonGreedy, FloatArray]] = [
        (Gate(threshold=1.0), EpsilonGreedy(1.0), ALONE.ideal.allowed / 3),
        (Gate(threshold=1.0), EpsilonGreedy(0.0), as_tl),
        (Gate(threshold=0.0), EpsilonGreedy(1.0), as_tl),
    ]
    for gate, explore, expected in settings:
        agent = TLExplore(learner, gate, explore)
        np.testing.assert_allclose(
            rules_everywhere(agent, agent.start(ALONE.counts, ALONE.log)), expected
        )


def test_gate_of_tl_starts_on_the_last_records_of_the_log_and_follows_the_new_ones() -> None:
    """Two records that serve the goal close the gate; one that does not opens it; without `recent` it is open."""
    ideal = IdealModel.of([0.99, 0.01], num_actions=2)
    agent = TLExplore(TL(ideal), Gate(threshold=0.6, window=2), EpsilonGreedy(1.0))
    log = Transitions(np.array([0, 0, 1]), np.array([1, 1, 1]), np.array([1, 0, 0]))
    counts = TransitionCounts.from_transitions(log, Space.of_size(2), Space.of_size(2))
    memory = agent.start(counts, log)
    state, other = np.array(0), np.array(1)
    assert agent.rule(memory, state, rng())[1] > 0.9
    agent.observe(memory, state, other, other)
    np.testing.assert_array_equal(agent.rule(memory, state, rng()), [0.5, 0.5])
    np.testing.assert_array_equal(agent.rule(agent.start(counts), state, rng()), [0.5, 0.5])


def test_fpd_replans_at_every_epoch_or_replays_its_horizon() -> None:
    """Paper: Theorem 1 [th:solution_FPD]."""
    plan = design(ALONE.model, ALONE.ideal, HORIZON)
    for replay in (False, True):
        agent = FPD(ALONE.model, ALONE.ideal, HORIZON, replay)
        memory = agent.start(ALONE.counts)
        for t in range(2 * HORIZON + 1):
            expected = plan.policy[t % HORIZON if replay else 0]
            np.testing.assert_allclose(rules_everywhere(agent, memory), expected)
            agent.observe(memory, np.array(0), np.array(0), np.array(0))


@pytest.mark.parametrize("prior_count", [None, 0.5])
@pytest.mark.parametrize("replay", [False, True])
def test_fpd_learn_designs_on_the_model_learned_so_far(
    replay: bool, prior_count: float | None
) -> None:
    """At every epoch, or each time that a horizon has been followed to its end; nu_0 is TL's by default.

    Paper: FPD_learn in Section IV, Theorem 1 [th:solution_FPD].
    """
    agent = FPDLearn(ALONE.ideal, HORIZON, prior_count, replay)
    background = float(np.exp(ALONE.ideal.log_floor)) / 3 if prior_count is None else prior_count
    memory, more = agent.start(ALONE.counts), World.random(seed=9).alone(1).log
    for t in range(2 * HORIZON + 2):
        known = t - t % HORIZON if replay else t
        seen = TransitionCounts.from_transitions(
            Transitions(*(field[:known] for field in more)), Space.of_size(3), Space.of_size(4)
        )
        plan = design(LearnedModel(ALONE.counts + seen, background), ALONE.ideal, HORIZON)
        np.testing.assert_allclose(
            rules_everywhere(agent, memory), plan.policy[t % HORIZON if replay else 0], rtol=1e-9
        )
        agent.observe(memory, more.state[t], more.action[t], more.next_state[t])


def test_goal_made_from_a_reward_serves_every_agent(make: Callable[[World], Agent]) -> None:
    """It is no distribution, but the rules are."""
    reward = IdealModel.from_reward([1.0, 0.0, 0.0], 0.1, num_actions=4)
    world = World(WORLD.transition, reward, WORLD.log)
    agent = make(world)
    rules = rules_along_a_run(agent, world, agent.start(world.counts, world.log), 10)
    np.testing.assert_allclose(rules.sum(axis=-1), 1)


# What cannot be done


def test_fpd_in_a_state_without_a_feasible_action_names_it() -> None:
    """Only when its rule is asked for."""
    model = DenseModel([[[1.0, 0.0]], [[0.0, 1.0]]])
    agent = FPD(model, IdealModel.of([1.0, 0.0], num_actions=1))
    memory = agent.start(counts_of_list([], 2, 1))
    np.testing.assert_array_equal(agent.rule(memory, np.array(0), rng()), [1.0])
    with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
        agent.rule(memory, np.array(1), rng())


def test_fpd_learn_in_a_state_whose_allowed_actions_the_goal_rules_out_names_it() -> None:
    ideal = IdealModel.of(
        [0.5, 0.5], [[0.5, 0.5], [1.0, 0.0]], allowed=[[True, True], [False, True]]
    )
    agent = FPDLearn(ideal, horizon=1)
    memory = agent.start(counts_of_list([], 2, 2))
    np.testing.assert_allclose(agent.rule(memory, np.array(0), rng()), [0.5, 0.5])
    with pytest.raises(InfeasibleError, match="state 1 has no feasible action"):
        agent.rule(memory, np.array(1), rng())


def test_fpd_learn_refuses_a_goal_that_rules_out_next_states() -> None:
    agent = FPDLearn(IdealModel.of([1.0, 0.0], num_actions=2))
    with pytest.raises(ValueError, match="give them a floor"):
        agent.rule(agent.start(counts_of_list([], 2, 2)), np.array(0), rng())


@pytest.mark.parametrize("replay", [False, True])
def test_horizon_of_zero_is_refused(replay: bool) -> None:
    with pytest.raises(ValueError, match="the horizon must be at least 1, not 0"):
        FPD(ALONE.model, ALONE.ideal, 0, replay)
    with pytest.raises(ValueError, match="the horizon must be at least 1, not 0"):
        FPDLearn(ALONE.ideal, 0, replay=replay)


@pytest.mark.parametrize("prior_count", [0.0, -1.0, np.nan])
def test_prior_that_is_not_positive_is_refused(prior_count: float) -> None:
    with pytest.raises(
        ValueError, match=f"prior_count is {prior_count}; prior counts must be finite and positive"
    ):
        TL(ALONE.ideal, prior_count)
    with pytest.raises(
        ValueError, match=f"prior_count is {prior_count}; prior counts must be finite and positive"
    ):
        FPDLearn(ALONE.ideal, prior_count=prior_count)


def test_agent_for_a_goal_of_another_size_than_the_log_is_refused() -> None:
    larger = IdealModel.of(np.full(4, 0.25), num_actions=4)
    for agent in (Rand(larger), Clone(larger), TL(larger), FPDLearn(larger)):
        with pytest.raises(
            ValueError, match="the goal is over 4 states and 4 actions, the log over 3 states"
        ):
            agent.start(ALONE.counts)
    scripts = Scripted(np.full((1, 4, 4), 0.25)), FPD(DenseModel(np.full((4, 4, 4), 0.25)), larger)
    for script in scripts:
        with pytest.raises(
            ValueError,
            match=r"the policy is over \(4, 4\) states and actions, the system has \(3, ",
        ):
            script.start(ALONE.counts)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.full((1, 3, 4), -1.0), r"policy\[0, 0, 0\] is -1.0"),
        (np.full((1, 3, 4), 0.3), r"policy\[0, 0\] sums to 1.2"),
        (np.full((3, 4), 0.25), r"policy.*shape"),
    ],
)
def test_script_that_is_no_policy_is_refused(policy: FloatArray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Scripted(policy)
