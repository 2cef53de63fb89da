"""The closed loop: its probability, its trajectories, and Algorithm 1 from beginning to end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.sparse import csr_array

from pastwise import Space
from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise._numerics.streams import Random, Streams
from pastwise.data.records import Trajectory
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods.base import AnyMethod
from pastwise.methods.baselines import Rand, Scripted
from pastwise.methods.tl import TL
from pastwise.methods.tl_explore import TLExplore
from pastwise.models.base import TransitionModel
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from pastwise.models.sparse import SparseModel
from pastwise.simulation.loop import FiniteSystem, run
from pastwise.theory.closed_loop import log_probability
from pastwise.theory.exploration import EpsilonGreedy
from tests.helpers.oracles import (
    Record,
    World,
    counts_of,
    log_of,
    random_log,
    random_rows,
    small_loop,
    trajectories,
)

S, A, H = 2, 3, 3


# Probability of trajectories


def test_trajectories_occur_as_often_as_their_probability_says() -> None:
    """The system of a Markov decision process under a policy, simulated 50 000 times.

    By Hoeffding's inequality and the union over the 432 trajectories, a right loop fails with
    probability below 1e-9; the seed is fixed.

    Paper: Definition 1 [MDP], Definition 2 [def:closed_loop_descr], Eq. (1) [eq:closed-loop_beh].
    """
    transition, initial, policy = small_loop(S, A, H, seed=4)
    runs = 50_000
    many = FiniteSystem(DenseModel(np.broadcast_to(transition, (runs, S, A, S))), initial)
    seen = run(many, Scripted(policy), H, np.random.default_rng(4))
    possible = [
        (
            path,
            np.exp(log_probability(DenseModel(transition), initial, policy, Trajectory(*path))),
        )
        for start in range(S)
        for path in zip(*trajectories(S, A, H, start), strict=True)
    ]
    tolerance = np.sqrt(np.log(2 * len(possible) / 1e-9) / (2 * runs))
    for (states, actions), probability in possible:
        same = (seen.states == states).all(axis=-1) & (seen.actions == actions).all(axis=-1)
        assert abs(same.mean() - probability) < tolerance
        assert probability > 0 or not same.any()
    assert tolerance < 0.02


# Algorithm 1


def sampled(probabilities: list[float], uniform: float) -> int:
    reached = 0.0
    for index, probability in enumerate(probabilities):
        reached += probability
        if uniform < reached:
            return index
    raise AssertionError("the probabilities do not sum to one")


def algorithm_1(
    transition: FloatArray,
    ideal: FloatArray,
    past: list[Record],
    num_steps: int,
    uniforms: list[Iterator[float]],
    epsilon: float,
    q: float,
    m: int,
) -> tuple[list[int], list[int], set[str]]:
    """Algorithm 1 of the paper line by line, recomputing everything at each epoch.

    States, actions, and the names of the branches taken. Each epoch has its own coin, even where
    it is not tossed.
    """
    S, A, _ = ideal.shape
    world, choice, coins = uniforms
    sigma_max, nu = float(ideal.max()), float(ideal.min()) / S
    data, branches = list(past), set()
    states, actions = [sampled([1 / S] * S, next(world))], []
    for _ in range(num_steps):
        state, xi = states[-1], next(coins)
        omega = [float(ideal[s, a, n]) / sigma_max for s, a, n in data]
        total = sum(w for w, (s, _, _) in zip(omega, data, strict=True) if s == state) + S * A * nu
        learned = [
            (
                sum(w for w, (s, b, _) in zip(omega, data, strict=True) if (s, b) == (state, a))
                + S * nu
            )
            / total
            for a in range(A)
        ]
        if sum(omega[-m:]) / m < q:
            branch = "explore" if xi < epsilon else "exploit by the coin"
        else:
            branch = "exploit by the gate"
        action = sampled([1 / A] * A if branch == "explore" else learned, next(choice))
        next_state = sampled(transition[state, action].tolist(), next(world))
        data.append((state, action, next_state))
        branches.add(branch)
        states.append(next_state)
        actions.append(action)
    return states, actions, branches


@pytest.mark.parametrize("seed", range(5))
def test_closed_loop_of_tl_with_exploration_is_algorithm_1(seed: int) -> None:
    """Fed with the same uniform numbers, both give the same trajectory, and every branch is taken.

    Paper: Algorithm 1 [alg:alg_exploration], with Eq. (4) [eq:similarity_norm] and Eq. (10)
    [eq:estimated_dec_rule].
    """
    rng, S, A, steps = np.random.default_rng(seed), 3, 4, 150
    transition, wanted, wanted_rule = (
        random_rows(rng, S, A, S),
        np.array([0.9, 0.08, 0.02]),
        random_rows(rng, S, A),
    )
    log = random_log(rng, S, A, 20)
    uniforms = [
        iter(child.random(steps + 1).tolist()) for child in np.random.default_rng(seed).spawn(3)
    ]
    past: list[Record] = list(zip(*(field.tolist() for field in log), strict=True))
    ideal = wanted_rule[..., None] * wanted
    states, actions, branches = algorithm_1(
        transition, ideal, past, steps, uniforms, epsilon=0.3, q=0.2, m=10
    )
    assert branches == {"explore", "exploit by the coin", "exploit by the gate"}

    found = run(
        FiniteSystem(DenseModel(transition)),
        TLExplore(threshold=0.2, window=10, explore=EpsilonGreedy(0.3)),
        steps,
        np.random.default_rng(seed),
        ideal=IdealModel.of(wanted, wanted_rule),
        counts=counts_of(log, S, A),
        recent=log,
    )
    assert found.states.tolist() == states
    assert found.actions.tolist() == actions


# Running


class Ring:
    """Four places in a circle; the action says how far to go. A system without a model."""

    states, actions, shape = Space(["north", "east", "south", "west"]), Space(["stay", "step"]), ()

    def reset(self, rng: Random) -> IntArray:
        return np.array(3)

    def step(self, state: IntArray, action: IntArray, rng: Random) -> IntArray:
        return np.asarray((state + action) % 4)


def test_any_system_will_do() -> None:
    """A script that steps twice and then stays."""
    rules = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    policy = np.broadcast_to(rules[:, None], (3, 4, 2))
    found = run(Ring(), Scripted(policy), 7, np.random.default_rng(0))
    assert found.actions.tolist() == [1, 1, 0, 1, 1, 0, 1]
    assert found.states.tolist() == [3, 0, 1, 1, 2, 3, 3, 0]


def test_trajectory_is_a_log_of_records() -> None:
    trajectory = Trajectory(np.array([[3, 0, 1], [2, 2, 2]]), np.array([[1, 1], [0, 0]]))
    state, action, next_state = trajectory.transitions
    assert state.tolist() == [[3, 0], [2, 2]]
    assert action.tolist() == [[1, 1], [0, 0]]
    assert next_state.tolist() == [[0, 1], [2, 2]]


def test_trajectory_is_read_only() -> None:
    found = run(Ring(), Rand(), 3, np.random.default_rng(0))
    for array in (found.states, found.actions):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_system_samples_the_same_however_its_model_is_stored() -> None:
    rng = np.random.default_rng(5)
    learned = LearnedModel(counts_of(random_log(rng, 3, 4, 40), 3, 4), 0.2)
    tensor = np.array([[learned.row(np.array(s), np.array(a)) for a in range(4)] for s in range(3)])
    models: list[TransitionModel] = [
        DenseModel(tensor),
        SparseModel(csr_array(tensor.reshape(12, 3)), 4),
        learned,
    ]
    dense, *others = (
        run(FiniteSystem(model), Rand(), 50, np.random.default_rng(5)) for model in models
    )
    for other in others:
        np.testing.assert_array_equal(other.states, dense.states)
        np.testing.assert_array_equal(other.actions, dense.actions)


def test_methods_compared_on_the_same_numbers_meet_the_same_world() -> None:
    """Where actions have no influence the states are the same; `Streams` can be used again."""
    rng, world = np.random.default_rng(6), World.random(6)
    indifferent = FiniteSystem(DenseModel(np.repeat(random_rows(rng, 3, 3, 1, 3), 4, axis=2)))
    streams = Streams(np.random.SeedSequence(6).spawn(3))
    methods: list[AnyMethod] = [
        Rand(),
        TL(),
        TLExplore(),
        Rand(),
    ]
    first, *others = [
        run(
            indifferent,
            method,
            30,
            streams,
            ideal=world.ideal,
            counts=world.counts,
            recent=world.log,
        )
        for method in methods
    ]
    for other in others:
        np.testing.assert_array_equal(other.states, first.states)
    np.testing.assert_array_equal(others[-1].actions, first.actions)
    assert (others[0].actions != first.actions).any()


def test_run_does_not_depend_on_the_number_of_runs_next_to_it() -> None:
    seeds, world = np.random.SeedSequence(7).spawn(5), World.random(7, runs=5)
    method = TLExplore()
    five = run(
        world.system,
        method,
        30,
        Streams(seeds),
        ideal=world.ideal,
        counts=world.counts,
        recent=world.log,
    )
    two = FiniteSystem(DenseModel(world.transition[3:]))
    log = type(world.log)(*(field[3:] for field in world.log))
    found = run(
        two,
        method,
        30,
        Streams(seeds[3:]),
        ideal=world.ideal,
        counts=counts_of(log, 3, 4),
        recent=log,
    )
    np.testing.assert_array_equal(found.states, five.states[3:])
    np.testing.assert_array_equal(found.actions, five.actions[3:])


def test_past_log_is_empty_by_default() -> None:
    world = World.random(8).alone(0)
    nothing = counts_of(log_of([]), 3, 4)
    given = run(world.system, TL(), 20, np.random.default_rng(8), ideal=world.ideal, counts=nothing)
    absent = run(world.system, TL(), 20, np.random.default_rng(8), ideal=world.ideal)
    np.testing.assert_array_equal(absent.states, given.states)


def test_initial_state_is_uniform_by_default() -> None:
    model = DenseModel(np.full((3, 4, 1, 4), 0.25))
    np.testing.assert_array_equal(FiniteSystem(model).initial, np.full((3, 4), 0.25))
    certain = FiniteSystem(model, np.eye(4)[[2, 0, 3]])
    assert certain.reset(np.random.default_rng(9)).tolist() == [2, 0, 3]


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([0.5, 0.4], r"initial sums to 0.9"),
        ([1.5, -0.5], r"initial\[1\] is -0.5"),
        ([0.5, 0.3, 0.2], "shape"),
    ],
)
def test_bad_initial_distribution_is_refused(initial: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FiniteSystem(DenseModel(np.full((2, 1, 2), 0.5)), initial)


@pytest.mark.parametrize("num_steps", [0, -1])
def test_run_without_steps_is_refused(num_steps: int) -> None:
    with pytest.raises(ParameterError, match=f"num_steps must be at least 1, not {num_steps}"):
        run(Ring(), Rand(), num_steps, np.random.default_rng(0))


def test_streams_of_another_number_of_runs_are_refused() -> None:
    world = World.random(10)
    with pytest.raises(ValueError, match="these are 2 streams"):
        run(world.system, Rand(), 3, Streams(np.random.SeedSequence(0).spawn(2)))
