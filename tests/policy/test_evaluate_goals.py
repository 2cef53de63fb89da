"""One rule judged by several goals."""

from pathlib import Path

import numpy as np
import pytest

from pastwise import Goal, TransferLearner
from pastwise.errors import GoalError
from pastwise.models.hierarchy import Assumptions

LOG = Path(__file__).parents[2] / "examples" / "thermostat" / "log.csv"
COMFORT = Goal(prefer={"comfortable": 1.0, "warm": 0.5}, forbid=[("hot", "heat")])
SAVING = Goal(prefer_actions=["idle", "vent"])


@pytest.fixture(scope="module")
def learner() -> TransferLearner:
    """A policy for comfort."""
    return TransferLearner(COMFORT).fit(LOG, state="room", action="did", episode="day", time="hour")


def test_by_its_own_goal_a_rule_is_judged_as_by_evaluate(learner: TransferLearner) -> None:
    results = learner.evaluate_goals({"comfort": COMFORT, "saving": SAVING}, samples=60, seed=3)
    assert list(results) == ["comfort", "saving"]
    assert results["comfort"] == learner.evaluate(samples=60, seed=3, alternatives=())


def test_a_rule_may_be_better_by_one_goal_and_worse_by_another(learner: TransferLearner) -> None:
    cold = Goal(prefer=["cold", "cool"])
    results = learner.evaluate_goals({"comfort": COMFORT, "cold": cold}, samples=100)
    assert results["comfort"].verdict["random"] == "better"
    assert results["cold"].verdict["random"] == "worse"
    assert results["cold"].alarm


def test_shares_of_time_by_opposite_goals_add_up_to_one(learner: TransferLearner) -> None:
    # A goal and its opposite on the same models: no lean, which depends on the goal.
    high = Goal(prefer=["warm", "hot"])
    low = Goal(prefer=["cold", "cool", "comfortable"])
    rules = {"airing": _always("vent", learner)}
    results = learner.evaluate_goals(
        {"high": high, "low": low},
        samples=60,
        rules=rules,
        assumptions=Assumptions(lean_mean=0, lean_deviation=0),
    )
    for name in ("new", "logged", "random", "airing"):
        total = results["high"].values[name].mean + results["low"].values[name].mean
        assert total == pytest.approx(1, abs=1e-4)
        assert results["high"].visits[name] == results["low"].visits[name]


def test_other_rules_are_compared_by_every_goal(learner: TransferLearner) -> None:
    rules = {"airing": _always("vent", learner), "heating": _always("heat", learner)}
    goals = {"comfort": COMFORT, "saving": SAVING}
    results = learner.evaluate_goals(goals, samples=60, rules=rules)
    for result in results.values():
        assert set(result.comparisons) == {"logged", "random", "airing", "heating"}
    assert results["saving"].values["airing"].mean == pytest.approx(1)
    assert results["saving"].values["heating"].mean == pytest.approx(0)


def test_progress_counts_the_samples_of_all_goals(learner: TransferLearner) -> None:
    steps: list[int] = []
    goals = {"comfort": COMFORT, "saving": SAVING}
    learner.evaluate_goals(goals, samples=60, on_step=steps.append)
    assert sum(steps) == 120


def test_what_was_stopped_is_the_last_result(learner: TransferLearner) -> None:
    goals = {"comfort": COMFORT, "saving": SAVING}
    results = learner.evaluate_goals(goals, samples=1000, should_stop=lambda: True)
    assert list(results) == ["comfort"]
    assert 0 < results["comfort"].samples < 1000


def test_a_goal_that_does_not_fit_the_log_is_named(learner: TransferLearner) -> None:
    with pytest.raises(GoalError, match="goal 'far': prefer: unknown label 'tropical'"):
        learner.evaluate_goals({"comfort": COMFORT, "far": Goal(prefer="tropical")})


def _always(action: str, learner: TransferLearner) -> np.ndarray:
    """The rule that takes one action in every state: [S, A]."""
    counts = learner.counts_
    rule = np.zeros((len(counts.states), len(counts.actions)))
    rule[:, counts.actions.index(action)] = 1.0
    return rule
