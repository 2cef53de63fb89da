"""Watching a version: counts, forecasts, frequencies of actions, and what is stored."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy.stats import chisquare, poisson

from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.goals.goal import Goal
from pastwise.service.monitor import DAY, Period, PolicyMonitor, rule_check
from pastwise.service.store.rows import DayRow

STATES = ("cold", "mild")
ACTIONS = ("heat", "wait")
WARMS = {("cold", "heat"): 0.8, ("cold", "wait"): 0.1, ("mild", "heat"): 0.9, ("mild", "wait"): 0.5}
"""Probability of being mild next."""

NOON = 20_000 * DAY + DAY // 2


def log(number: int = 400, seed: int = 0) -> TransitionCounts:
    rng = np.random.default_rng(seed)
    s = rng.integers(2, size=number)
    a = rng.integers(2, size=number)
    chance = np.array([[WARMS[state, action] for action in ACTIONS] for state in STATES])
    n = rng.random(number) < chance[s, a]
    return TransitionCounts.from_records(s, a, n.astype(int), Space(STATES), Space(ACTIONS))


def monitor(**settings: float) -> PolicyMonitor:
    return PolicyMonitor(log(), Goal(prefer="mild"), **settings)  # type: ignore[arg-type]


def run(
    watched: PolicyMonitor,
    number: int,
    *,
    seed: int = 1,
    at: int = NOON,
    step: int = 1000,
    warms: dict[tuple[str, str], float] = WARMS,
) -> int | None:
    """Decisions by a fixed rule with their outcomes; the number of the one that alarms."""
    rng = np.random.default_rng(seed)
    state = "cold"
    alarmed = None
    for i in range(number):
        rule = {"heat": 0.7, "wait": 0.3} if state == "cold" else {"heat": 0.1, "wait": 0.9}
        action = "heat" if rng.random() < rule["heat"] else "wait"
        watched.decided(state, action, rule, "live", False)
        following = STATES[int(rng.random() < warms[state, action])]
        if watched.observed(state, action, following, None, at + i * step):
            alarmed = i
        state = following
    return alarmed


ALWAYS = Period(0, 2 * NOON)


# The goal.


def test_days_compare_outcomes_with_the_forecast() -> None:
    watched = monitor()
    run(watched, 200)
    run(watched, 100, seed=2, at=NOON + DAY)
    rows = [
        DayRow(20_000 * DAY, "heat", 120, 110, 4, 5, 1, 0),
        DayRow(20_000 * DAY, "wait", 80, 80, 0, 0, 0, 0),
    ]
    view = watched.view("room", 3, rows, ALWAYS)
    assert view.measure == "share of time as wanted"
    first, second = view.days
    assert (first.day, second.day) == ("2024-10-04", "2024-10-05")
    assert [entry.action for entry in first.actions] == ["heat", "wait"]
    assert first.actions[0].missing == 5
    assert second.actions == []
    assert first.wanted is not None
    assert second.wanted is not None
    assert (first.wanted.outcomes, second.wanted.outcomes) == (200, 100)
    assert first.wanted.low < first.wanted.predicted < first.wanted.high


def test_intervals_hold_as_often_as_stated() -> None:
    """Days of 50 outcomes in rooms whose log has 40 records.

    Of 300 days 90 % should be inside. If days were independent, fewer than 255 would have a
    probability below 0.005.
    """
    inside = 0
    for seed in range(60):
        watched = PolicyMonitor(log(40, seed), Goal(prefer="mild"))
        for day in range(5):
            run(watched, 50, seed=100 * seed + day, at=NOON + day * DAY)
        for day_view in watched.view("room", 1, [], ALWAYS).days:
            wanted = day_view.wanted
            assert wanted is not None
            inside += wanted.low <= wanted.observed <= wanted.high
    assert inside >= 255


def test_a_worse_world_is_outside_the_interval() -> None:
    watched = monitor()
    run(watched, 300, warms=dict.fromkeys(WARMS, 0.2))
    wanted = watched.view("room", 1, [], ALWAYS).days[0].wanted
    assert wanted is not None
    assert wanted.observed < wanted.low


# The world.


def test_alarm_is_raised_once_and_names_the_row() -> None:
    watched = monitor()
    assert run(watched, 500) is None
    alarmed = run(watched, 500, seed=5, at=NOON + DAY, warms={**WARMS, ("cold", "heat"): 0.1})
    assert alarmed is not None
    change = watched.view("room", 1, [], ALWAYS).change
    assert change.alarm
    assert change.evidence >= np.log10(change.run_length)
    assert (change.rows[0].state, change.rows[0].action) == ("cold", "heat")
    assert change.since is not None
    assert change.since.startswith("2024-10-05")


def test_the_test_starts_again_after_a_time_in_shadow() -> None:
    watched = monitor()
    run(watched, 500, warms=dict.fromkeys(WARMS, 0.05))
    assert watched.alarm
    watched.decided("cold", "heat", {"heat": 1.0}, "live", False)
    assert watched.alarm
    watched.decided("cold", "heat", {"heat": 1.0}, "shadow", False)
    assert watched.alarm
    watched.decided("cold", "heat", {"heat": 1.0}, "live", False)
    assert not watched.alarm
    assert watched.view("room", 1, [], ALWAYS).change.outcomes == 0


def test_unknown_labels_are_no_evidence() -> None:
    watched = monitor()
    assert not watched.observed("hot", "heat", "mild", None, NOON)
    assert not watched.observed("cold", "vent", "mild", None, NOON)
    assert not watched.observed("cold", "heat", "hot", None, NOON)
    view = watched.view("room", 1, [], ALWAYS)
    assert view.change.outcomes == 0
    assert view.days == []


# The rule.


def test_decisions_that_follow_the_rule_pass() -> None:
    watched = monitor()
    run(watched, 2_000)
    check = watched.view("room", 1, [], ALWAYS).rule
    assert check.degrees == 2
    assert check.p_value > 0.01
    assert sum(entry.observed for entry in check.actions) == 2_000
    assert sum(entry.expected for entry in check.actions) == pytest.approx(2_000)


def test_chi_square_is_that_of_scipy() -> None:
    check = rule_check({"s": {"a": (40, 30.0), "b": (20, 30.0)}, "t": {"a": (7, 7.0)}})
    reference = chisquare([40, 20], [30, 30])
    assert check.chi_square == pytest.approx(reference.statistic)
    assert check.degrees == 1
    assert check.p_value == pytest.approx(2 * reference.pvalue)


def test_rare_actions_are_compared_together() -> None:
    check = rule_check({"s": {"a": (95, 99.9), "b": (5, 0.1)}, "t": {"a": (3, 2.9), "b": (0, 0.1)}})
    assert check.rare_observed == 8
    assert check.rare_expected == pytest.approx(3.1)
    assert check.degrees == 1
    assert check.p_value == pytest.approx(2 * poisson.sf(7, 3.1))


def test_stated_probability_of_a_false_difference_holds() -> None:
    """Rules that differ in every decision: p <= 0.05 in at most 5 % of the runs, on average.

    With 300 runs, more than 26 would have a probability below 0.005 if it were 5 %.
    """
    rng = np.random.default_rng(3)
    small = 0
    for _ in range(300):
        frequencies: dict[str, dict[str, tuple[int, float]]] = {"s": {}}
        chances = rng.dirichlet((0.5, 0.5, 0.5), size=60)
        chosen = [int(rng.choice(3, p=row)) for row in chances]
        for action in range(3):
            observed = sum(choice == action for choice in chosen)
            frequencies["s"][str(action)] = (observed, float(chances[:, action].sum()))
        small += rule_check(frequencies).p_value <= 0.05
    assert small <= 26


def test_weak_decisions_are_counted() -> None:
    watched = monitor()
    watched.decided("cold", "heat", {"heat": 1.0}, "shadow", True)
    watched.decided("cold", "heat", {"heat": 1.0}, "shadow", False)
    view = watched.view("room", 1, [], ALWAYS)
    assert (view.decisions, view.weak_decisions) == (2, 1)


# Storing and answering.


def test_snapshot_continues_to_the_last_bit() -> None:
    watched = monitor()
    run(watched, 300)
    other = monitor()
    other.restore(watched.snapshot())
    run(watched, 300, seed=7, at=NOON + 3600_000)
    run(other, 300, seed=7, at=NOON + 3600_000)
    assert other.snapshot() == watched.snapshot()
    views = [m.view("room", 1, [], ALWAYS) for m in (watched, other)]
    assert views[0] == views[1]
    assert msgspec.json.decode(msgspec.json.encode(views[0]), type=type(views[0])) == views[0]


def test_strange_snapshots_are_refused() -> None:
    with pytest.raises(ParameterError, match="no snapshot of a monitor"):
        monitor().restore(b"?")
    other = PolicyMonitor(log(seed=9), Goal(prefer="mild"))
    with pytest.raises(ParameterError, match="another log"):
        monitor().restore(other.snapshot())


def test_only_so_many_days_are_kept() -> None:
    watched = monitor(most_days=3)
    for day in range(5):
        run(watched, 5, at=NOON + day * DAY)
    days = [day.day for day in watched.view("room", 1, [], ALWAYS).days]
    assert days == ["2024-10-06", "2024-10-07", "2024-10-08"]


def test_periods() -> None:
    assert Period.of(None, None, NOON) == (NOON + 1 - 30 * DAY, NOON + 1)
    assert Period.of(5, 9, NOON) == (5, 9)
    with pytest.raises(ParameterError, match="empty"):
        Period.of(9, 9, NOON)
    with pytest.raises(ParameterError, match="at most 1,000"):
        Period.of(0, NOON, NOON)
