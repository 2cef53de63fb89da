"""Goals that maximise the log's reward: what is learned, judged and estimated, in its unit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pastwise import Goal, Space, TransferLearner, TransitionCounts, load
from pastwise.data.episodes import random_folds
from pastwise.errors import GoalError
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.cross_fit import reward_design_effect
from pastwise.evaluation.importance import DOUBLY_ROBUST, IMPORTANCE, LOGGED

BANDIT: dict[str, Any] = {"state": "user", "action": "ad", "reward": "click", "propensity": "p"}
PANEL: dict[str, Any] = {
    "state": "s",
    "action": "a",
    "episode": "e",
    "time": "t",
    "reward": "r",
}
MAXIMISE = Goal(maximise="reward")


def bandit(rates: np.ndarray, number: int, seed: int = 0) -> dict[str, list[Any]]:
    """Clicks with known rates [users, ads]; the first ad is shown to half of the users."""
    rng = np.random.default_rng(seed)
    num_users, num_ads = rates.shape
    shares = np.full(num_ads, 0.5 / (num_ads - 1))
    shares[0] = 0.5
    user = rng.integers(num_users, size=number)
    ad = rng.choice(num_ads, size=number, p=shares)
    return {
        "user": [f"user {i}" for i in user],
        "ad": [f"ad {i}" for i in ad],
        "click": (rng.random(number) < rates[user, ad]).astype(int).tolist(),
        "p": shares[ad].tolist(),
    }


def panel(effect: float, person: float = 0.0, seed: int = 0, people: int = 60) -> dict[str, Any]:
    """Ten steps of each person; action s % 2 adds ``effect`` to the reward in state s."""
    rng = np.random.default_rng(seed)
    own = person * rng.normal(size=people)
    state = rng.integers(3, size=people)
    rows: dict[str, list[Any]] = {name: [] for name in "etsar"}
    for step in range(10):
        action = rng.integers(2, size=people)
        reward = 0.5 * state + effect * (action == state % 2) + own + rng.normal(size=people)
        columns = (range(people), [step] * people, state, action, reward)
        for name, values in zip("etsar", columns, strict=True):
            rows[name] += np.asarray(values).tolist()
        moves = rng.random(people) < 0.5
        state = np.where(moves, rng.integers(3, size=people), state)
    return rows


RATES = np.array([[0.1, 0.3, 0.1], [0.3, 0.1, 0.2]])


@pytest.fixture(scope="module")
def clicks() -> TransferLearner:
    return TransferLearner(MAXIMISE).fit(bandit(RATES, 3000), **BANDIT)


def test_the_best_action_of_each_context_is_learned(clicks: TransferLearner) -> None:
    best = {user: max(clicks.rule(user).items(), key=lambda item: item[1])[0] for user in USERS}
    assert best == {"user 0": "ad 1", "user 1": "ad 0"}


USERS = ("user 0", "user 1")


def test_the_evaluation_is_in_the_unit_of_the_reward(clicks: TransferLearner) -> None:
    evaluation = clicks.evaluate(samples=300, alternatives=())
    assert evaluation.measure == "mean reward of a decision"
    assert evaluation.horizon == 1
    assert evaluation.verdict["logged"] == "better"
    truth = 0.3
    logged = (RATES @ [0.5, 0.25, 0.25]).mean()
    assert evaluation.values["new"].low < truth < evaluation.values["new"].high
    assert evaluation.values["logged"].low < logged < evaluation.values["logged"].high


def test_a_goal_that_maximises_survives_a_file(clicks: TransferLearner, tmp_path: Any) -> None:
    path = tmp_path / "policy.safetensors"
    clicks.save(path)
    again = load(path)
    assert again.goal == MAXIMISE
    assert again.rule_ == clicks.rule_
    assert again.counts_ == clicks.counts_
    options: dict[str, Any] = {"samples": 100, "alternatives": ()}
    assert again.evaluate(**options).values == clicks.evaluate(**options).values


def test_importance_sampling_by_hand(clicks: TransferLearner) -> None:
    """Self-normalised: the mean reward of the rule's own decisions, weighted by 1 / propensity."""
    log = bandit(RATES, 500, seed=7)
    rule = np.zeros((len(clicks.counts_.states), 3))
    rule[:, 1] = 0.8
    rule[:, 2] = 0.2
    estimates = clicks.estimates(log, horizon=1, rule=rule)
    number = np.array([int(ad[-1]) for ad in log["ad"]])
    weight = np.array([0.0, 0.8, 0.2])[number] / np.array(log["p"])
    click = np.array(log["click"])
    assert estimates[LOGGED].mean == pytest.approx(click.mean())
    assert estimates[IMPORTANCE].mean == pytest.approx((weight * click).sum() / weight.sum())
    assert estimates[DOUBLY_ROBUST].mean == pytest.approx(0.2, abs=0.06)
    assert estimates[IMPORTANCE].usable


def test_estimates_use_the_rewards_of_the_episodes() -> None:
    log = panel(effect=1.0)
    learner = TransferLearner(MAXIMISE).fit(log, **PANEL)
    estimates = learner.estimates(log, horizon=1)
    at_start = [r for r, t in zip(log["r"], log["t"], strict=True) if t == 0]
    assert estimates[LOGGED].mean == pytest.approx(np.mean(at_start))


# Actions without an effect.


@pytest.mark.parametrize("seed", range(4))
def test_no_gain_is_claimed_where_actions_have_no_effect(seed: int) -> None:
    log = bandit(np.full((2, 3), 0.2), 800, seed)
    learner = TransferLearner(MAXIMISE).fit(log, **BANDIT)
    evaluation = learner.evaluate(samples=200, alternatives=())
    assert evaluation.verdict["logged"] == "cannot tell"


@pytest.mark.parametrize("seed", range(3))
def test_no_gain_is_claimed_where_people_differ_and_actions_do_not(seed: int) -> None:
    learner = TransferLearner(MAXIMISE).fit(panel(effect=0.0, person=1.0, seed=seed), **PANEL)
    evaluation = learner.evaluate(samples=200, alternatives=())
    assert evaluation.verdict["logged"] == "cannot tell"


# Decisions that follow each other.


def test_a_reward_of_state_and_action_is_maximised() -> None:
    """Optimal: action s % 2. States are visited equally often: 0.5 + 1 in each step."""
    learner = TransferLearner(MAXIMISE).fit(panel(effect=1.0, people=100), **PANEL)
    chosen = [max(learner.rule(s).items(), key=lambda item: item[1])[0] for s in range(3)]
    assert chosen == [0, 1, 0]
    evaluation = learner.evaluate(samples=300, alternatives=())
    assert evaluation.measure == "mean reward"
    assert evaluation.verdict["logged"] == "better"
    assert evaluation.values["new"].low < 1.5 < evaluation.values["new"].high
    assert evaluation.values["logged"].low < 1.0 < evaluation.values["logged"].high


def test_what_is_unknown_of_mean_rewards_widens_intervals() -> None:
    """The same transitions with noisy rewards leave more open than with exact ones."""
    exact = panel(effect=1.0)
    for i, (state, action) in enumerate(zip(exact["s"], exact["a"], strict=True)):
        exact["r"][i] = 0.5 * state + float(action == state % 2)
    noisy = panel(effect=1.0)
    widths = []
    for log in (exact, noisy):
        learner = TransferLearner(MAXIMISE).fit(log, **PANEL)
        value = learner.evaluate(samples=300, alternatives=()).values["new"]
        widths.append(value.high - value.low)
    assert widths[1] > 1.5 * widths[0]


def test_observing_rewards_changes_what_is_wanted() -> None:
    table: dict[str, list[Any]] = {"c": ["u"] * 40, "a": ["x", "y"] * 20, "r": [1.0, 0.0] * 20}
    learner = TransferLearner(MAXIMISE, method="TL").fit(table, state="c", action="a", reward="r")
    before = learner.rule("u")["y"]
    for _ in range(80):
        learner.observe("u", "y", reward=1)
    assert learner.rule("u")["y"] > before
    table = {"c": ["u"] * 120, "a": [*table["a"], *["y"] * 80], "r": [*table["r"], *[1.0] * 80]}
    refitted = TransferLearner(MAXIMISE, method="TL").fit(table, state="c", action="a", reward="r")
    assert learner.rule("u") == pytest.approx(refitted.rule("u"))


def test_dependence_within_episodes_shows_in_rewards() -> None:
    rng = np.random.default_rng(0)
    zeros = np.zeros(400, dtype=np.int64)
    states = Space.of_size(1)
    independent = TransitionCounts.from_records(
        zeros, zeros, zeros, states, states, reward=rng.normal(size=400)
    )
    assert reward_design_effect(random_folds(independent)) == pytest.approx(1, abs=0.5)
    by_fold = rng.normal(size=(10, 1)) + rng.normal(size=(10, 40))
    index = np.zeros((10, 40), dtype=np.int64)
    dependent = TransitionCounts.from_records(index, index, index, states, states, reward=by_fold)
    assert reward_design_effect(dependent) > 5


# Bad input.


def test_one_episode_is_enough() -> None:
    """One of the halves of its log, which rules are learned and judged on, has no records."""
    learner = TransferLearner(MAXIMISE).fit(panel(effect=1.0, people=1), **PANEL)
    found = learner.evaluate(samples=200, seed=1)
    interval = found.values["new"]
    assert np.isfinite([interval.low, interval.high]).all()


def test_a_log_without_rewards_cannot_be_maximised() -> None:
    log = {"s": ["u", "v"], "a": ["x", "y"], "n": ["v", "u"]}
    with pytest.raises(GoalError, match="reward="):
        TransferLearner(MAXIMISE).fit(log, state="s", action="a", next_state="n")
    counts = TransitionCounts.from_records([0], [0], [0], Space.of_size(1), Space.of_size(1))
    with pytest.raises(GoalError, match="the log has none"):
        Criterion.of(MAXIMISE, counts)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"maximise": "profit"}, "maximise takes 'reward'"),
        ({"maximise": "reward", "prefer": "a"}, "prefer and maximise"),
        ({"maximise": "reward", "prefer_actions": "a"}, "do not go together"),
    ],
)
def test_goals_that_contradict_themselves_are_refused(
    options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(GoalError, match=problem):
        Goal(**options)


def test_the_unit_of_the_reward_does_not_change_the_rule() -> None:
    log = panel(effect=0.3)
    in_cents = {**log, "r": [100 * reward for reward in log["r"]]}
    rules = []
    for each in (log, in_cents):
        learner = TransferLearner(MAXIMISE, method="TL").fit(each, **PANEL)
        rules.append(learner.rule_.probabilities)
    assert rules[0] == pytest.approx(rules[1])


@pytest.mark.parametrize("method", ["TL", "FPD_learn", "TL_foresight"])
def test_rounding_of_equal_rewards_prefers_nothing(method: str) -> None:
    """Means of 0.1 over 3 and over 7 records differ in the last digit."""
    log: dict[str, list[Any]] = {"s": [], "a": [], "then": []}
    for number, (state, action, following) in enumerate(product("gh", "xy", "ghe"), start=3):
        for name, value in zip(log, (state, action, following), strict=True):
            log[name] += [value] * number
    reward = [0.1] * len(log["s"])
    columns: dict[str, Any] = {
        "state": "s",
        "action": "a",
        "next_state": "then",
        "terminal": ["e"],
    }
    stated = TransferLearner(Goal(reward=dict.fromkeys("ghe", 0.1)), method=method)
    found = TransferLearner(MAXIMISE, method=method)
    found.fit({**log, "r": reward}, reward="r", **columns)
    expected = stated.fit(log, **columns).rule_.probabilities
    assert found.rule_.probabilities == pytest.approx(expected, abs=1e-3)
