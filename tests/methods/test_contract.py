"""One contract for every method: all that is registered is tested here, and so is the rest.

The first half works on indices, in three small random systems. The second half goes by labels,
through the learner, as a user meets a method.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pastwise as pw
from pastwise._numerics.arrays import FloatArray, IntArray, sample
from pastwise._numerics.streams import Streams
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.ideal import IdealModel
from pastwise.methods import (
    FPD,
    FPDLearn,
    Plan,
    Scripted,
    TLExplore,
    TLForesight,
    create,
    entries,
    names,
)
from pastwise.methods.base import (
    BORROWED,
    DEVIATION,
    EPOCHS,
    EXAMPLE,
    VALUE,
    AnyMethod,
)
from pastwise.methods.registry import from_settings, to_settings
from pastwise.simulation.loop import run
from pastwise.theory.exploration import UCB, PosteriorSampling
from tests.helpers.oracles import World, random_rows

HORIZON = 4
RUNS = np.arange(3)
WORLD = World.random()

Make = Callable[[World], AnyMethod]


def scripted(world: World) -> Scripted:
    """Five rules, none of which takes a forbidden action."""
    rules = random_rows(np.random.default_rng(1), 5, 3, 4) * world.ideal.allowed
    return Scripted(rules / rules.sum(axis=-1, keepdims=True))


def registered(name: str) -> Make:
    """A registered method with its default hyper-parameters."""
    return lambda world: create(name)


METHODS: dict[str, Make] = {name: registered(name) for name in names()}
"""What learns from a log alone; new methods appear here by being registered."""

VARIANTS: dict[str, Make] = {
    "FPD": lambda world: FPD(world.model, HORIZON),
    "FPD replayed": lambda world: FPD(world.model, HORIZON, replay=True),
    "FPD_learn replayed": lambda world: FPDLearn(HORIZON, replay=True),
    "TL_explore by UCB": lambda world: TLExplore(explore=UCB()),
    "TL_explore by sampling": lambda world: TLExplore(explore=PosteriorSampling()),
    "TL_foresight, exploring": lambda world: TLForesight(epochs=50),
    "scripted": scripted,
}
"""What needs explicit arguments, and other hyper-parameters."""


@pytest.fixture(params=[*METHODS, *VARIANTS])
def make(request: pytest.FixtureRequest) -> Make:
    """Each method."""
    return {**METHODS, **VARIANTS}[request.param]


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def always_current(method: AnyMethod) -> AnyMethod:
    """The method, planning after each record where it may put that off."""
    if any(field.name == "replan" for field in fields(method)):  # type: ignore[arg-type]
        return replace(method, replan=0.0)  # type: ignore[type-var]
    return method


def rules_along_a_run(method: AnyMethod, world: World, memory: Any, steps: int) -> FloatArray:
    """The rules that a method acts by, [steps, runs, A], from state 0 on."""
    system = world.system
    coins = rng()
    rules = []
    state = np.zeros(system.shape, dtype=np.int64)
    for _ in range(steps):
        rule = method.rule(memory, state, coins)
        action = sample(rule, coins.random(system.shape))
        next_state = system.step(state, action, coins)
        method.observe(memory, state, action, next_state)
        rules.append(rule)
        state = next_state
    return np.stack(rules)


def assert_equal_plans(one: Plan, other: Plan, rtol: float = 0.0, atol: float = 0.0) -> None:
    assert list(one.parts) == list(other.parts)
    assert one.adds_up == other.adds_up
    np.testing.assert_allclose(one.rule, other.rule, rtol=rtol, atol=atol)
    for name, part in one.parts.items():
        np.testing.assert_allclose(part, other.parts[name], rtol=rtol, atol=atol, err_msg=name)


def with_record(
    log: Transitions, state: IntArray, action: IntArray, next_state: IntArray
) -> Transitions:
    """The logs [runs, records] with one more record of each run."""
    return Transitions(
        np.append(log.state, state[:, None], axis=-1),
        np.append(log.action, action[:, None], axis=-1),
        np.append(log.next_state, next_state[:, None], axis=-1),
    )


# Rules and plans.


def test_rules_are_distributions_over_the_allowed_actions(make: Make) -> None:
    """In each state, before and after observing; the past log took forbidden actions."""
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    for t in range(12):
        state = (RUNS + t) % 3
        rule = method.rule(memory, state, rng())
        assert rule.shape == (3, 4)
        assert (rule >= 0).all()
        np.testing.assert_allclose(rule.sum(axis=-1), 1)
        np.testing.assert_array_equal(rule[~WORLD.ideal.allowed[state]], 0)
        method.observe(memory, state, sample(rule, np.full(3, 0.7)), RUNS)


def test_rows_of_a_plan_are_distributions_over_the_allowed_actions(make: Make) -> None:
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    for t in range(4):
        rule = method.plan(memory).rule
        assert np.broadcast_to(rule, (3, 3, 4)).shape == (3, 3, 4)
        assert (rule >= 0).all()
        np.testing.assert_allclose(rule.sum(axis=-1), 1)
        forbidden = np.broadcast_to(~WORLD.ideal.allowed, rule.shape)
        np.testing.assert_array_equal(rule[forbidden], 0)
        method.observe(memory, RUNS, (RUNS + t) % 4, RUNS)


def test_forbidden_action_that_someone_took_is_not_learned(make: Make) -> None:
    """Neither from the past log nor while acting."""
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    forbidden = np.argmin(WORLD.ideal.allowed, axis=-1)
    for state in range(3):
        states = np.full(3, state)
        actions = np.full(3, forbidden[state])
        method.observe(memory, states, actions, np.zeros(3, dtype=np.int64))
        rule = method.rule(memory, states, rng())
        np.testing.assert_array_equal(rule[:, forbidden[state]], 0)
        np.testing.assert_array_equal(method.plan(memory).rule[..., state, forbidden[state]], 0)


@pytest.mark.parametrize(
    "name", [*METHODS, *(name for name in VARIANTS if name != "FPD_learn replayed")]
)
def test_mean_of_the_rules_is_the_plans_row(name: str) -> None:
    """Over 3,000 random numbers, within 6 standard errors; without random numbers, exactly.

    The standard deviation of a probability with mean p is at most sqrt(p (1 - p)).

    A replayed FPD_learn follows the rules of one horizon, while its plan begins a new one.
    """
    number = 3000
    method = always_current({**METHODS, **VARIANTS}[name](WORLD))
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    for t in range(3):
        coins = rng()
        plan = np.broadcast_to(method.plan(memory).rule, (3, 3, 4))
        state = (RUNS + t) % 3
        rules = np.stack([method.rule(memory, state, coins) for _ in range(number)])
        expected = plan[RUNS, state]
        difference = np.abs(rules.mean(axis=0) - expected)
        largest_error = 6 * np.sqrt(expected * (1 - expected) / number)
        is_random = np.ptp(rules, axis=0).any()
        assert (difference <= largest_error * is_random + 1e-12).all()
        method.observe(memory, state, (RUNS + t) % 4, RUNS)


def test_plan_of_some_states_is_part_of_the_whole_plan(make: Make) -> None:
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    method.observe(memory, RUNS, RUNS, RUNS)
    whole = method.plan(memory)
    for states in (slice(None), slice(1, 2), slice(0, 2), np.array([2, 0]), np.array([1])):
        assert_equal_plans(method.plan(memory, states), whole.at(states))


def test_parts_make_the_rule(make: Make) -> None:
    """The rule is proportional to their sum, or a larger sum has the larger probability."""
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    for _ in range(3):
        plan = method.plan(memory)
        assert plan.parts
        if plan.is_measured:
            require_measured(plan, explores=getattr(method, EPOCHS, 0) > 0)
            method.observe(memory, RUNS, RUNS, RUNS)
            continue
        index = np.zeros(plan.rule.shape)
        for part in plan.parts.values():
            index = index + part
        if plan.adds_up:
            expected = index / index.sum(axis=-1, keepdims=True)
            np.testing.assert_allclose(plan.rule, expected, rtol=1e-9, atol=1e-15)
        else:
            feasible = np.where(plan.rule > 0, index, -np.inf)
            order = np.argsort(feasible, axis=-1)
            ascending = np.take_along_axis(plan.rule, order, axis=-1)
            assert (np.diff(ascending, axis=-1) >= -1e-12).all()
        method.observe(memory, RUNS, RUNS, RUNS)


def require_measured(plan: Plan, *, explores: bool) -> None:
    """Parts in the goal's unit: possible numbers, and the best value is the most probable."""
    value = np.broadcast_to(plan.parts[VALUE], plan.rule.shape)
    example = np.broadcast_to(plan.parts.get(EXAMPLE, np.zeros((1, 1))), plan.rule.shape)
    assert np.isfinite(value).all()
    assert np.isfinite(example).all()
    assert (plan.parts[DEVIATION] >= 0).all()
    borrowed = plan.parts.get(BORROWED, np.zeros(1))
    assert ((borrowed >= 0) & (borrowed <= 1)).all()
    if not explores:
        index = np.where(plan.rule > 0, value + example, -np.inf)
        chosen = plan.rule.argmax(axis=-1)[..., None]
        of_chosen = np.take_along_axis(index, chosen, axis=-1)[..., 0]
        np.testing.assert_allclose(of_chosen, index.max(axis=-1), atol=1e-9)


def test_plan_does_not_change_with_what_is_observed_later(make: Make) -> None:
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    plan = method.plan(memory)
    rule = plan.rule.copy()
    parts = {name: part.copy() for name, part in plan.parts.items()}
    rules_along_a_run(method, WORLD, memory, 5)
    np.testing.assert_array_equal(plan.rule, rule)
    for name, part in parts.items():
        np.testing.assert_array_equal(plan.parts[name], part)


# Memory.


def test_start_changes_neither_the_log_nor_the_goal(make: Make) -> None:
    """Nor does anything that is done with the memory."""
    counts = WORLD.counts
    log = Transitions(*(field.copy() for field in WORLD.log))
    before = WORLD.counts
    transition = WORLD.ideal.log_transition.copy()
    method = make(WORLD)
    memory = method.start(counts, WORLD.ideal, log)
    rules_along_a_run(method, WORLD, memory, 5)
    method.plan(memory)
    assert counts == before
    for field, original in zip(log, WORLD.log, strict=True):
        np.testing.assert_array_equal(field, original)
    np.testing.assert_array_equal(WORLD.ideal.log_transition, transition)


def test_memories_of_one_method_are_independent(make: Make) -> None:
    method = make(WORLD)
    fresh = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    expected = rules_along_a_run(method, WORLD, fresh, 10)
    used = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    other = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    rules_along_a_run(method, WORLD, used, 7)
    np.testing.assert_array_equal(rules_along_a_run(method, WORLD, other, 10), expected)


def test_asking_changes_nothing(make: Make) -> None:
    """Neither for a rule nor for a plan."""
    method = make(WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    for _ in range(3):
        plan = method.plan(memory)
        rule = method.rule(memory, RUNS, rng())
        np.testing.assert_array_equal(method.rule(memory, RUNS, rng()), rule)
        assert_equal_plans(method.plan(memory), plan)
        method.observe(memory, RUNS, RUNS, RUNS)


def test_several_observations_between_two_decisions_are_all_learned(make: Make) -> None:
    """A memory that was asked before gives, after them, the rule of one that was not.

    Methods that follow a fixed policy move on in it; both memories have moved on equally far.
    """
    method = make(WORLD)
    asked = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    not_asked = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    method.rule(asked, RUNS, rng())
    method.plan(asked)
    for memory in (asked, not_asked):
        for _ in range(HORIZON + 1):
            method.observe(memory, RUNS, np.ones(3, dtype=np.int64), np.zeros(3, dtype=np.int64))
    assert_equal_plans(method.plan(asked), method.plan(not_asked), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(
        method.rule(asked, RUNS, rng()), method.rule(not_asked, RUNS, rng()), atol=1e-12
    )


CLAIMING_EXACT_UPDATES = [
    name for name, make in {**METHODS, **VARIANTS}.items() if make(WORLD).exact_updates
]


@pytest.mark.parametrize("name", CLAIMING_EXACT_UPDATES)
def test_observing_is_starting_on_the_log_with_that_record(name: str) -> None:
    """Up to rounding, where the method says so; the record may be of a forbidden action."""
    method = {**METHODS, **VARIANTS}[name](WORLD)
    memory = method.start(WORLD.counts, WORLD.ideal, WORLD.log)
    log = WORLD.log
    coins = rng()
    for _ in range(10):
        record = [coins.integers(size, size=3) for size in (3, 4, 3)]
        method.observe(memory, *record)
        log = with_record(log, *record)
        world = World(WORLD.transition, WORLD.ideal, log)
        again = method.start(world.counts, world.ideal, log)
        assert_equal_plans(method.plan(memory), method.plan(again), rtol=1e-9, atol=1e-12)


# Batches and runs.


def test_same_seed_gives_the_same_trajectory(make: Make) -> None:
    first, second = (
        run(
            WORLD.system,
            make(WORLD),
            15,
            rng(),
            ideal=WORLD.ideal,
            counts=WORLD.counts,
            recent=WORLD.log,
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.states, second.states)
    np.testing.assert_array_equal(first.actions, second.actions)


def test_batch_of_runs_is_each_run_alone(make: Make) -> None:
    """With `Streams` for the batch, and each run with its own generator."""
    together = run(
        WORLD.system,
        make(WORLD),
        25,
        Streams(np.random.SeedSequence(3).spawn(3)),
        ideal=WORLD.ideal,
        counts=WORLD.counts,
        recent=WORLD.log,
    )
    for i, seed in enumerate(np.random.SeedSequence(3).spawn(3)):
        world = WORLD.alone(i)
        alone = run(
            world.system,
            make(world),
            25,
            np.random.default_rng(seed),
            ideal=world.ideal,
            counts=world.counts,
            recent=world.log,
        )
        np.testing.assert_array_equal(together.states[i], alone.states)
        np.testing.assert_array_equal(together.actions[i], alone.actions)


def test_plan_of_a_batch_is_that_of_each_log_alone(make: Make) -> None:
    method = make(WORLD)
    together = method.plan(method.start(WORLD.counts, WORLD.ideal, WORLD.log))
    rule = np.broadcast_to(together.rule, (3, 3, 4))
    for i in range(3):
        world = WORLD.alone(i)
        alone_method = make(world)
        memory = alone_method.start(world.counts, world.ideal, world.log)
        alone = alone_method.plan(memory)
        np.testing.assert_allclose(rule[i], alone.rule, rtol=1e-9, atol=1e-12)


def test_no_log_is_needed(make: Make) -> None:
    method = make(WORLD)
    nothing = TransitionCounts.empty(Space.of_size(3), Space.of_size(4), (3,))
    memory = method.start(nothing, WORLD.ideal)
    np.testing.assert_allclose(method.plan(memory).rule.sum(axis=-1), 1)
    rules = rules_along_a_run(method, WORLD, memory, 10)
    np.testing.assert_allclose(rules.sum(axis=-1), 1)


def test_goal_made_from_a_reward_serves_every_method(make: Make) -> None:
    """It is no distribution, but the rules are."""
    reward = IdealModel.from_reward([1.0, 0.0, 0.0], 0.1, num_actions=4)
    world = World(WORLD.transition, reward, WORLD.log)
    method = make(world)
    memory = method.start(world.counts, world.ideal, world.log)
    np.testing.assert_allclose(method.plan(memory).rule.sum(axis=-1), 1)
    rules = rules_along_a_run(method, world, memory, 10)
    np.testing.assert_allclose(rules.sum(axis=-1), 1)


def test_goal_or_policy_of_another_size_than_the_log_is_refused(make: Make) -> None:
    larger = IdealModel.of(np.full(4, 0.25), num_actions=4)
    other_log = TransitionCounts.empty(Space.of_size(4), Space.of_size(4), (3,))
    sizes = r"[34] states and 4 actions, the (log over|system has|model) [34]"
    method = make(WORLD)
    with pytest.raises(ValueError, match=sizes):
        method.start(other_log, WORLD.ideal)
    if not isinstance(method, Scripted):
        with pytest.raises(ValueError, match=sizes):
            method.start(WORLD.counts, larger)


# Hyper-parameters.


@pytest.mark.parametrize("name", METHODS)
def test_settings_describe_a_method(name: str) -> None:
    """Plain values that JSON keeps, from which an equal method is made."""
    method = create(name)
    settings = json.loads(json.dumps(to_settings(method), allow_nan=False))
    assert settings["name"] == name
    assert from_settings(settings) == method
    assert list(settings) == ["name", *(field.name for field in fields(method))]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", METHODS)
def test_hyper_parameters_that_are_no_numbers_are_refused(name: str) -> None:
    """When the method is made, not when it is used."""
    method = create(name)
    for field in fields(method):  # type: ignore[arg-type]
        value = getattr(method, field.name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number or field.name == "prior_count":
            for bad in (float("nan"), float("inf"), -1.0):
                with pytest.raises(ParameterError, match=str(bad)):
                    create(name, **{field.name: bad})


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_values(name: str) -> None:
    """Frozen, and equal if their hyper-parameters are."""
    method = create(name)
    assert method == create(name)
    assert hash(method) == hash(create(name))
    with pytest.raises(AttributeError):
        method.horizon = 3  # type: ignore[attr-defined]
    entry = entries()[name]
    assert entry.summary
    assert method.name == name


# As a user meets it.

LOG = {
    "room": ["cold", "cold", "mild", "mild", "hot", "hot", "cold", "mild"] * 10,
    "did": ["heat", "wait", "wait", "heat", "cool", "wait", "heat", "wait"] * 10,
    "then": ["mild", "cold", "mild", "hot", "mild", "hot", "cold", "mild"] * 10,
}
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "next_state": "then"}
ROOMS = ("cold", "hot", "mild")
MILD = pw.Goal(prefer={"mild": 1})
SAFE = pw.Goal(prefer={"mild": 1}, forbid=[("cold", "heat"), (None, "cool")])


def learner(method: str, goal: pw.Goal = MILD) -> pw.TransferLearner:
    return pw.TransferLearner(goal, method=method).fit(LOG, **COLUMNS)


def with_records(*records: tuple[str, str, str]) -> dict[str, list[str]]:
    """The log with more records."""
    columns = zip(*records, strict=True)
    return {
        name: [*values, *more] for (name, values), more in zip(LOG.items(), columns, strict=True)
    }


@pytest.mark.parametrize("name", METHODS)
def test_the_way_to_the_goal_is_found(name: str) -> None:
    """A reference does not look for it, but has a rule as well."""
    rule = learner(name).rule_
    np.testing.assert_allclose(rule.probabilities.sum(axis=-1), 1)
    if not entries()[name].is_reference:
        best = {state: max(rule[state], key=rule[state].__getitem__) for state in ROOMS}
        assert best == {"cold": "heat", "mild": "wait", "hot": "cool"}


@pytest.mark.parametrize("name", METHODS)
def test_forbidden_actions_are_never_taken(name: str) -> None:
    found = learner(name, SAFE)
    live = found.live(seed=0)
    assert found.rule_["cold"] == {"cool": 0, "heat": 0, "wait": 1}
    assert {live.decide("cold") for _ in range(50)} == {"wait"}
    live.observe("cold", "heat", "mild")
    assert {live.decide("cold") for _ in range(50)} == {"wait"}


@pytest.mark.parametrize("name", METHODS)
def test_an_observation_is_the_same_as_learning_again(name: str) -> None:
    """For one record, and for many; somebody may look in between, or not."""
    looked = learner(name)
    not_looked = learner(name)
    records = [("cold", "wait", "mild")] * 30
    for i, record in enumerate(records):
        looked.observe(*record)
        not_looked.observe(*record)
        if i in (0, 1, 29):
            again = pw.TransferLearner(MILD, method=name)
            again.fit(with_records(*records[: i + 1]), **COLUMNS)
            found = looked.rule_.probabilities
            np.testing.assert_allclose(found, again.rule_.probabilities, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(
        not_looked.rule_.probabilities, looked.rule_.probabilities, rtol=1e-12, atol=1e-15
    )
    if not entries()[name].is_reference:
        assert looked.rule("cold")["wait"] > learner(name).rule("cold")["wait"]


@pytest.mark.parametrize("name", METHODS)
def test_the_rule_of_a_state_is_a_row_of_the_rule(name: str) -> None:
    """Also after a single record, and for a method that plans rarely while acting."""
    found = learner(name)
    for _ in range(3):
        found.observe("cold", "wait", "mild")
        assert {state: found.rule(state) for state in ROOMS} == dict(found.rule_)


@pytest.mark.parametrize("name", METHODS)
def test_every_probability_is_explained(name: str) -> None:
    found = learner(name)
    explanation = found.explain("cold")
    records = {"heat": 20, "wait": 10, "cool": 0}
    for action, reason in explanation.actions.items():
        assert reason.probability == pytest.approx(found.rule_["cold"][action], rel=1e-12)
        assert reason.parts
        assert found.explain("cold", action).actions == {action: reason}
        if reason.adds_up:
            assert sum(reason.parts.values()) == pytest.approx(reason.probability, abs=1e-12)
        if reason.evidence:
            assert sum(each.records for each in reason.evidence) == records[str(action)]
            shares = sum(each.share for each in reason.evidence)
            expected = reason.parts["records"] if reason.adds_up else 1.0
            assert shares == pytest.approx(expected)
        else:
            assert "records" not in reason.parts or reason.parts["records"] == 0
    content = json.loads(json.dumps(explanation.to_dict(), allow_nan=False))
    assert content["method"] == name
    assert list(content["actions"]["heat"]["parts"]) == list(explanation.actions["heat"].parts)
    first_line = str(explanation).splitlines()[0]
    assert first_line.startswith(f"In cold, by {name}")
    assert first_line.endswith(":")


@pytest.mark.parametrize("name", METHODS)
def test_what_is_not_allowed_is_explained(name: str) -> None:
    """By zeros, or by no numbers; never by numbers that JSON does not have."""
    reason = learner(name, SAFE).explain("cold", "heat").actions["heat"]
    assert not reason.is_allowed
    assert reason.probability == 0
    assert all(part == 0 for part in reason.parts.values())
    assert "not allowed by the goal" in "\n".join(reason.lines())
    json.dumps(reason.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_policy_learns_nothing_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule, explanation, support and a running loop come from the file alone."""
    path = tmp_path / "policy.safetensors"
    found = learner(name, SAFE)
    found.save(path)

    def fail(*arguments: Any) -> None:
        raise AssertionError("the method starts again")

    monkeypatch.setattr(entries()[name].make, "start", fail)
    loaded = pw.load(path)
    assert loaded.method_ == found.method_
    assert dict(loaded.rule_) == dict(found.rule_)
    np.testing.assert_array_equal(loaded.rule_.similarity, found.rule_.similarity)
    assert loaded.support().to_dict() == found.support().to_dict()
    live = loaded.live(seed=1)
    for state in ROOMS:
        assert loaded.rule(state) == found.rule(state)
        assert loaded.explain(state) == found.explain(state)
        assert live.rule(state) == pytest.approx(found.rule(state), abs=1e-12)
        assert live.decide(state) in found.rule(state)
    with pytest.raises(AssertionError, match="starts again"):
        pw.load(path).retarget(MILD)


@pytest.mark.parametrize("name", METHODS)
def test_a_loaded_policy_goes_on_learning(name: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    found = learner(name)
    found.save(path)
    loaded = pw.load(path)
    for one in (found, loaded):
        one.observe("cold", "wait", "mild")
    np.testing.assert_allclose(
        loaded.rule_.probabilities, found.rule_.probabilities, rtol=1e-12, atol=1e-15
    )
    assert loaded.retarget(pw.Goal(prefer={"hot": 1})).method_ == found.method_


@pytest.mark.parametrize("name", METHODS)
def test_a_running_loop(name: str) -> None:
    """It decides by the plan, learns, and hands over what it observed, once."""
    found = learner(name)
    live = found.live(seed=2)
    for state in ROOMS:
        assert live.rule(state) == pytest.approx(found.rule(state), abs=1e-12)
    state = "cold"
    followed = {"heat": "mild", "wait": "cold", "cool": "cold"}
    for _ in range(20):
        action = live.decide(state)
        next_state = followed[str(action)]
        live.observe(state, action, next_state)
        assert sum(live.rule(state).values()) == pytest.approx(1)
        state = next_state
    before = found.counts_.num_records
    found.merge(live.take())
    assert found.counts_.num_records == before + 20
    assert live.take().num_records == 0


@pytest.mark.parametrize("name", METHODS)
def test_a_running_loop_repeats_itself(name: str) -> None:
    """With the same seed, whether or not somebody asks for the rule in between."""
    found = learner(name)
    silent = found.live(seed=3)
    asked = found.live(seed=3)
    for live in (silent, asked):
        live.observe("mild", "heat", "hot")
    decisions = []
    for _ in range(30):
        asked.rule("mild")
        decisions.append((silent.decide("mild"), asked.decide("mild")))
    assert all(one == other for one, other in decisions)
