"""Environments as systems and logs, compared with gymnasium's tables and with a plain loop."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from pastwise import Goal, Rule, Space, TransferLearner, TransitionCounts
from pastwise.data.space import Label
from pastwise.errors import MissingDependencyError
from pastwise.logs.episodes import read_episodes
from pastwise.methods.baselines import Rand
from pastwise.methods.tl import TL
from pastwise.simulation.coding import MAX_STATES, BoxBins
from pastwise.simulation.gymnasium import GymSystem, collect, policy_of
from pastwise.simulation.loop import run

Choice = Callable[[Label, np.random.Generator], Label]

BLACKJACK: Any = {
    "lost": lambda state, reward: reward < 0,
    "drawn": lambda state, reward: reward == 0,
    "won": lambda state, reward: reward > 0,
}


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_choice(number: int) -> Choice:
    return lambda state, rng: int(rng.integers(number))


class Walk(gymnasium.Env[Any, Any]):
    """Ends after some steps; observations and actions of any space, sampled from it."""

    def __init__(self, observation_space: Any, action_space: Any, steps: int = 3) -> None:
        self.observation_space, self.action_space, self.steps = (
            observation_space,
            action_space,
            steps,
        )
        self.taken: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.observation_space.seed(seed)
        self.left = self.steps
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        self.taken.append(action)
        self.left -= 1
        return self.observation_space.sample(), 1.0, self.left == 0, False, {}


# Logs


def test_a_log_holds_what_a_plain_loop_sees() -> None:
    """The same seeds and actions, step by step."""
    log = collect("FrozenLake-v1", random_choice(4), 50, generator(1))
    world, choice = generator(1).spawn(2)
    env: Any = gymnasium.make("FrozenLake-v1")
    rows: list[tuple[Any, ...]] = []
    for episode in range(50):
        state, _ = env.reset(seed=int(world.random(()) * 2**31))
        ended, time = False, 0
        while not ended:
            action = int(choice.integers(4))
            next_state, reward, terminated, truncated, _ = env.step(action)
            rows.append((episode, time, state, action, next_state, reward, terminated))
            state, time, ended = next_state, time + 1, terminated or truncated
    assert list(zip(*log.table.values(), strict=True)) == rows
    assert list(log.table) == [
        "episode",
        "time",
        "state",
        "action",
        "next_state",
        "reward",
        "terminated",
    ]
    assert Counter((s, a, n) for _, _, s, a, n, _, _ in rows) == Counter(
        {
            (s, a, n): r
            for s, a, n, r in zip(
                *(
                    x.tolist()
                    for x in (
                        log.counts.state,
                        log.counts.action,
                        log.counts.next_state,
                        log.counts.records,
                    )
                ),
                strict=True,
            )
        }
    )
    assert log.returns.tolist() == [sum(row[5] for row in rows if row[0] == e) for e in range(50)]
    assert log.mean_return == log.returns.mean()
    assert repr(log) == f"EpisodeLog(50 episodes, {len(rows)} records)"


def test_the_same_numbers_give_the_same_log() -> None:
    one, two, other = (
        collect("Taxi-v4", random_choice(6), 3, generator(seed)) for seed in (0, 0, 1)
    )
    assert one.table == two.table
    assert one.table != other.table


def test_terminal_states_are_those_of_the_lake() -> None:
    """Holes and goal, by the map; they are where the environment terminates."""
    env: Any = gymnasium.make("FrozenLake-v1", is_slippery=False)
    letters = env.unwrapped.desc.ravel().tolist()
    log = collect(env, random_choice(4), 1000, generator())
    assert log.counts.terminal.tolist() == [
        i for i, letter in enumerate(letters) if letter in (b"H", b"G")
    ]
    assert log.success() == log.mean_return
    assert log.success(lambda state, reward: state != 15) == pytest.approx(
        log.terminated.sum() / 1000 - log.success()
    )


def test_a_truncated_episode_has_no_terminal_state() -> None:
    """Taxi gives up after 200 steps: nothing ended there."""
    log = collect("Taxi-v4", lambda state, rng: 0, 4, generator())
    assert np.bincount(log.episode).tolist() == [200] * 4
    assert not log.terminated.any()
    assert log.counts.terminal.tolist() == []
    assert log.success(lambda state, reward: True) == 0
    assert log.mean_return == -200


def test_an_episode_is_cut_off_after_the_most_steps() -> None:
    """CliffWalking itself never gives up."""
    log = collect("CliffWalking-v1", lambda state, rng: 0, 2, generator(), max_steps=7)
    assert np.bincount(log.episode).tolist() == [7, 7]
    assert log.time.tolist() == [*range(7)] * 2
    assert log.counts.terminal.tolist() == []


def test_the_table_and_the_counts_teach_the_same_rule() -> None:
    log = collect("FrozenLake-v1", random_choice(4), 500, generator())
    goal = Goal(prefer={15: 1})
    by_counts = TransferLearner(goal, method=TL(prior_count=1e-6)).fit(log.counts)
    by_table = TransferLearner(goal, method=TL(prior_count=1e-6)).fit(
        log.table, columns=log.columns
    )
    assert by_table.counts_.relabelled(log.states, log.actions) == log.counts
    assert by_table.counts_ + log.counts == log.counts + log.counts
    for state in by_table.rule_:
        assert by_table.rule_[state] == pytest.approx(by_counts.rule_[state])


def test_the_table_has_the_episodes() -> None:
    log = collect("FrozenLake-v1", random_choice(4), 50, generator())
    episodes = read_episodes(log.table, log.columns, log.states, log.actions)
    for name in ("state", "action", "next_state", "episode", "step", "unit_of_episode"):
        np.testing.assert_array_equal(getattr(episodes, name), getattr(log.episodes, name))
    assert episodes.propensity is None
    assert log.episodes.propensity is None


def test_episodes_are_chains() -> None:
    log = collect("Taxi-v4", random_choice(6), 3, generator())
    episodes = log.episodes
    assert episodes.number == 3
    assert episodes.length.tolist() == np.bincount(log.episode).tolist()


# Rules as policies


def walking_rule() -> Rule:
    """The way over the lake that is not slippery, as a rule."""
    way = {0: 1, 4: 1, 8: 2, 9: 1, 13: 2, 14: 2}
    probabilities = np.full((16, 4), 0.25)
    for state, action in way.items():
        probabilities[state] = np.eye(4)[action]
    return Rule(Space.of_size(16), Space.of_size(4), probabilities, np.ones(16))


def test_a_rule_is_followed() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    log = collect(env, walking_rule(), 5, generator())
    assert log.success() == 1
    assert log.table["state"] == [0, 4, 8, 9, 13, 14] * 5


def test_a_rule_of_text_labels_is_followed() -> None:
    """As it comes from a CSV file."""
    rule = walking_rule()
    labels = Space([str(s) for s in range(16)]), Space([str(a) for a in range(4)])
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    assert (
        collect(env, Rule(*labels, rule.probabilities, rule.similarity), 1, generator()).success()
        == 1
    )


def test_a_rule_drives_the_environment_itself() -> None:
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    act = policy_of(walking_rule(), env, generator())
    observation, _ = env.reset(seed=0)
    ended, reward = False, 0.0
    while not ended:
        action = act(observation)
        assert env.action_space.contains(action)
        observation, reward, ended, _, _ = env.step(action)  # type: ignore[assignment]
    assert reward == 1


def test_learned_from_a_log_the_rule_ends_better_than_the_log() -> None:
    """Blackjack: the goal is the end, which the observation does not show."""
    system = GymSystem("Blackjack-v1", fields=("mine", "dealer", "ace"), ends=BLACKJACK)
    log = collect(system, random_choice(2), 6000, generator())
    learner = TransferLearner(Goal(targets={"end": {"won": 1.0}})).fit(log.counts)
    learned = collect(system, learner.rule_, 1000, generator(1))
    assert learned.success() > log.success() + 0.05
    assert learned.mean_return > log.mean_return + 0.1


# Fields, bins and ends


def test_ends_have_names_and_are_never_left() -> None:
    system = GymSystem("Blackjack-v1", fields=("mine", "dealer", "ace"), ends=BLACKJACK)
    log = collect(system, random_choice(2), 300, generator())
    assert log.states.fields == ("mine", "dealer", "ace", "end")
    assert len(log.states) == 32 * 11 * 2 * 4
    names = {-1.0: "lost", 0.0: "drawn", 1.0: "won"}
    table = log.table
    for reward, end, terminated in zip(
        table["reward"], table["next_end"], table["terminated"], strict=True
    ):
        assert end == (names[reward] if terminated else "going on")
    assert set(table["end"]) == {"going on"}
    seen = sorted(
        {log.states.labels[i] for i in log.next_state[log.terminated].tolist()},
        key=log.states.index,
    )
    assert [log.states.labels[i] for i in log.counts.terminal.tolist()] == seen
    assert log.counts.num_records == len(log.state)


def test_an_end_that_the_observation_does_not_tell_is_an_error_that_says_what_to_do() -> None:
    log = collect("Blackjack-v1", random_choice(2), 300, generator())
    assert log.mean_return < 0
    with pytest.raises(
        ValueError, match=r"episodes ended in the state \(.*and also went on .* Name the ends"
    ):
        _ = log.counts


def test_an_episode_that_begins_where_others_end_is_such_an_error() -> None:
    log = collect(
        Walk(spaces.Discrete(1), spaces.Discrete(1), steps=1), lambda state, rng: 0, 2, generator()
    )
    with pytest.raises(ValueError, match="ended in the state 0 and also went on from it, 2 times"):
        _ = log.counts
    system = GymSystem(
        Walk(spaces.Discrete(1), spaces.Discrete(1), steps=1),
        ends={"over": lambda state, reward: True},
    )
    counts = collect(system, lambda state, rng: 0, 2, generator()).counts
    assert [counts.states.labels[i] for i in counts.terminal] == [(0, "over")]


def test_a_number_of_bins_cuts_evenly_between_the_bounds() -> None:
    """MountainCar's bounds are of single precision; its observations may lie on them."""
    system = GymSystem("MountainCar-v0", bins=[3, 2], fields=("place", "speed"))
    places, speeds = ["[-1.2, -0.6)", "[-0.6, 0)", "[0, 0.6]"], ["[-0.07, 0)", "[0, 0.07]"]
    assert list(system.states.labels) == [(place, speed) for place in places for speed in speeds]
    bounds: Any = system.env.observation_space
    seen = (bounds.low, bounds.high, *np.array([[-0.6, 0], [0, 0]], dtype=np.float32))
    states = [int(system.coding.state(observation)) for observation in seen]
    assert [system.states.labels[i] for i in states] == [
        (places[0], speeds[0]),
        (places[2], speeds[1]),
        (places[0], speeds[1]),  # the single -0.6 lies below
        (places[2], speeds[1]),
    ]
    assert len(GymSystem("MountainCar-v0", bins=4).states) == 16


@pytest.mark.filterwarnings("ignore:no state has records of several actions")
def test_edges_cut_as_those_of_tables_do() -> None:
    edges = [-np.inf, -0.5, 0.0, 0.5, np.inf]
    log = collect(
        "CartPole-v1", random_choice(2), 30, generator(), bins=[[-5, 5], edges, [-1, 0, 1], edges]
    )
    shown = {"velocity": list(log.table["state_1"])}
    raw = [observation[1] for episode in log.observations for observation in episode[:-1]]
    learner = TransferLearner(Goal(prefer={"[0, 0.5)": 1})).fit(
        {"x": raw, "did": [0] * len(raw), "then": raw},
        state="x",
        action="did",
        next_state="then",
        bins={"x": edges},
    )
    records = dict(
        zip(learner.counts_.states.labels, learner.counts_.records.tolist(), strict=True)
    )
    assert Counter(shown["velocity"]) == records


@pytest.mark.parametrize(
    ("observation_space", "action_space", "fields", "label", "action"),
    [
        (spaces.Discrete(3, start=5), spaces.Discrete(2, start=-1), ("state",), 5, -1),
        (
            spaces.MultiDiscrete([2, 3], start=[1, 0]),
            spaces.Discrete(2),
            ("state_0", "state_1"),
            (1, 0),
            0,
        ),
        (
            spaces.MultiBinary(2),
            spaces.MultiDiscrete([2, 2]),
            ("state_0", "state_1"),
            (0, 0),
            (0, 0),
        ),
        (
            spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary([1, 2])]),
            spaces.Tuple([spaces.Discrete(2, start=3), spaces.Tuple([spaces.MultiBinary(1)])]),
            ("state_0", "state_1", "state_2"),
            (0, 0, 0),
            (3, 0),
        ),
        (
            spaces.MultiDiscrete(np.array([[2], [2]])),
            spaces.MultiDiscrete([3]),
            ("state_0", "state_1"),
            (0, 0),
            0,
        ),
    ],
)
def test_every_finite_space_becomes_labels_and_back(
    observation_space: Any, action_space: Any, fields: tuple[str, ...], label: Label, action: Label
) -> None:
    env = Walk(observation_space, action_space, steps=50)
    system = GymSystem(env, ends={"ended": lambda state, reward: True})
    labels = system.actions.labels
    assert labels[0] == action
    assert system.states.fields == (*fields, "end")
    assert system.states.labels[0] == (
        *(label if isinstance(label, tuple) else (label,)),
        "going on",
    )
    log = collect(system, lambda state, rng: labels[int(rng.integers(len(labels)))], 4, generator())
    labels_of_log: Any = log.states.labels
    going_on = {i for i, label in enumerate(labels_of_log) if label[-1] == "going on"}
    assert set(log.state.tolist()) == going_on
    assert [int(system.coding.action(taken)) for taken in env.taken] == log.action.tolist()
    assert all(action_space.contains(taken) for taken in env.taken)


def test_an_action_may_be_an_array() -> None:
    env = Walk(spaces.Discrete(2), spaces.MultiDiscrete([2, 3]), steps=2)
    log = collect(env, lambda state, rng: np.array([1, 2]), 1, generator())  # type: ignore[arg-type, return-value]
    assert log.table["action_0"] == [1, 1]
    assert log.table["action_1"] == [2, 2]


# As a system


def test_run_stays_in_the_terminal_state() -> None:
    """Until then each step is one that the environment's own table allows."""
    env: Any = gymnasium.make("FrozenLake-v1")
    system = GymSystem(env)
    trajectory = run(system, Rand(), 90, generator(3))
    states, actions = trajectory.states.tolist(), trajectory.actions.tolist()
    end = states.index(states[-1])
    assert system.terminated
    assert system.ended
    assert system.terminal.tolist() == [states[-1]]
    assert 0 < end < 90
    assert states[end:] == [states[-1]] * (91 - end)
    for (state, next_state), action in zip(pairwise(states[: end + 1]), actions[:end], strict=True):
        assert next_state in {outcome[1] for outcome in env.unwrapped.P[state][action]}


def test_run_is_the_same_for_the_same_numbers() -> None:
    system = GymSystem("CliffWalking-v1")
    one, two = (run(system, Rand(), 30, generator(5)) for _ in range(2))
    assert one.states.tolist() == two.states.tolist()


def test_a_truncated_episode_cannot_go_on() -> None:
    system = GymSystem(gymnasium.make("CliffWalking-v1", max_episode_steps=5))
    with pytest.raises(ValueError, match=r"cut off \(truncated\).* call reset"):
        run(system, Rand(), 6, generator())
    assert system.truncated
    assert system.ended
    assert not system.terminated
    assert system.terminal.tolist() == []
    system.reset(generator())
    assert not system.ended


def test_a_system_is_where_it_is() -> None:
    system = GymSystem("FrozenLake-v1")
    zero = np.asarray(0)
    with pytest.raises(ValueError, match="call reset first"):
        system.step(zero, zero, generator())
    system.reset(generator())
    with pytest.raises(ValueError, match="is in the state 0 and cannot be set to 7"):
        system.step(np.asarray(7), zero, generator())


# Refusals


CONTINUOUS = spaces.Box(-1, 1, (2,))


@pytest.mark.parametrize(
    ("observation_space", "action_space", "bins", "message"),
    [
        (spaces.Discrete(2), CONTINUOUS, None, r"actions are continuous \(Box\).*DiscretizeAction"),
        (
            spaces.Discrete(MAX_STATES + 1),
            spaces.Discrete(2),
            None,
            "there are 1,000,001 states, and at most 1,000,000",
        ),
        (
            spaces.Discrete(2),
            spaces.MultiDiscrete([2000, 2000]),
            None,
            "there are 4,000,000 actions",
        ),
        (
            CONTINUOUS,
            spaces.Discrete(2),
            None,
            "observations are continuous in 2 dimensions: say how to cut them, by bins=",
        ),
        (CONTINUOUS, spaces.Discrete(2), 1001, "1,002,001 states.*fewer bins"),
        (
            CONTINUOUS,
            spaces.Discrete(2),
            [3],
            "2 continuous dimensions need as many entries, not 1",
        ),
        (CONTINUOUS, spaces.Discrete(2), [3, 0], "state_1 needs at least one bin, not 0"),
        (
            CONTINUOUS,
            spaces.Discrete(2),
            [3, [0]],
            "state_1 needs at least two edges in ascending order",
        ),
        (
            CONTINUOUS,
            spaces.Discrete(2),
            [3, [1, 0]],
            "state_1 needs at least two edges in ascending order",
        ),
        (CONTINUOUS, spaces.Discrete(2), [3, "many"], "edges or a number of bins"),
        (CONTINUOUS, spaces.Discrete(2), 2.5, "2 continuous dimensions need as many"),
        (CONTINUOUS, spaces.Discrete(2), [3, ["low", "high"]], "edges of state_1 are numbers"),
        (
            spaces.Box(-np.inf, np.inf, (1,)),
            spaces.Discrete(2),
            3,
            "state runs from -inf to inf.*give its edges",
        ),
        (
            spaces.Box(-3e38, 3e38, (1,)),
            spaces.Discrete(2),
            3,
            "state runs from -3e.38 to 3e.38.*give its edges",
        ),
        (spaces.Discrete(2), spaces.Discrete(2), 3, "bins are for continuous observations"),
        (
            spaces.Dict({"a": spaces.Discrete(2)}),
            spaces.Discrete(2),
            None,
            "observations of the space Dict",
        ),
        (spaces.Discrete(2), spaces.Text(3), None, "actions of the space Text are not supported"),
    ],
)
def test_a_space_that_does_not_fit_is_an_error_that_says_what_to_do(
    observation_space: Any, action_space: Any, bins: BoxBins | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        GymSystem(Walk(observation_space, action_space), bins)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("a",), "an observation has 3 fields, which need as many names"),
        ("abc", "need as many names"),
        (("a", "b", "a"), "'a' is reserved or occurs twice"),
        (("a", "b", "reward"), "'reward' is reserved"),
        (("a", "action", "b"), "'action' is reserved"),
        (("a", "end", "b"), "'end' is reserved"),
    ],
)
def test_names_of_fields_must_fit(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GymSystem("Blackjack-v1", fields=fields, ends=BLACKJACK)


def test_ends_must_fit() -> None:
    with pytest.raises(ValueError, match="'going on' is reserved"):
        GymSystem("Blackjack-v1", ends={"going on": lambda state, reward: True})
    system = GymSystem("Blackjack-v1", ends={"won": lambda state, reward: reward > 0})
    with pytest.raises(
        ValueError, match=r"none of won holds for the end in \(\d+, \d+, \d\) with reward -1"
    ):
        collect(system, random_choice(2), 20, generator())


def test_an_observation_outside_of_its_bins_is_named() -> None:
    with pytest.raises(
        ValueError,
        match=r"state_1 is .* outside its bins, which run from -0\.001 to 0\.001; widen",
    ):
        collect("MountainCar-v0", random_choice(3), 1, generator(), bins=[3, [-0.001, 0.001]])
    system = GymSystem("Taxi-v4")
    with pytest.raises(ValueError, match=r"state is 1.5: not in its space"):
        system.coding.state(1.5)
    with pytest.raises(ValueError, match="state is 500: not in its space"):
        system.coding.state(500)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (lambda state, rng: 4, "an action that the environment does not have: unknown label 4"),
        (lambda state, rng: None, "None is no label"),
        (
            TransferLearner(Goal(prefer={15: 1})),
            r"a rule such as learner\.rule_; not TransferLearner",
        ),
    ],
)
def test_a_policy_that_does_not_fit_is_named(policy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        collect("FrozenLake-v1", policy, 1, generator())


def test_what_is_no_environment_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'FrozenLike-v1' cannot be made: .*doesn't exist"):
        GymSystem("FrozenLike-v1")
    with pytest.raises(
        ValueError, match="give an environment of gymnasium, or the id of one, not Discrete"
    ):
        GymSystem(spaces.Discrete(2))
    with pytest.raises(ValueError, match="episodes must be at least 1, not 0"):
        collect("FrozenLake-v1", random_choice(4), 0, generator())
    with pytest.raises(ValueError, match="max_steps must be at least 1, not 0"):
        collect("FrozenLake-v1", random_choice(4), 1, generator(), max_steps=0)
    with pytest.raises(ValueError, match="has its bins already"):
        collect(GymSystem("MountainCar-v0", bins=3), random_choice(3), 1, generator(), bins=3)


def test_without_gymnasium_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingDependencyError, match=r"pip install gymnasium"):
        GymSystem("FrozenLake-v1")


def test_counts_of_several_logs_add_up() -> None:
    one, two = (
        collect("FrozenLake-v1", random_choice(4), 20, generator(seed)).counts for seed in (0, 1)
    )
    both: TransitionCounts = one + two
    assert both.num_records == one.num_records + two.num_records
    assert both.states == one.states


class Over(Walk):
    """Over as soon as it is reset: it takes no step."""

    def step(self, action: Any) -> Any:
        raise AssertionError("cannot step a finished episode")


def test_an_environment_that_is_over_at_reset_is_refused() -> None:
    env = Over(spaces.Discrete(2), spaces.Discrete(2), steps=1)
    with pytest.raises(
        ValueError, match="fails in the first step after reset: cannot step a finished episode"
    ):
        collect(env, lambda state, rng: 0, 3, generator())


def test_images_are_too_many_states_to_count() -> None:
    image = Walk(spaces.Box(0, 255, (84, 84), np.uint8), spaces.Discrete(2), steps=1)
    with pytest.raises(
        ValueError,
        match=r"there are about 10\^\d+ states, and at most 1,000,000 are supported",
    ):
        GymSystem(image, bins=20)
