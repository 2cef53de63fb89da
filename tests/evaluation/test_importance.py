"""Off-policy estimates from episodes.

They are exact on whole populations of episodes, equal to literal implementations on random ones,
and right on average on simulated logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import lcm
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from pastwise import Space, TransitionCounts
from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.records import Episodes
from pastwise.errors import ParameterError
from pastwise.evaluation.importance import (
    Bootstrap,
    behaviour,
    doubly_robust,
    logged_value,
    weighted_importance,
)
from pastwise.evaluation.result import Estimate
from pastwise.evaluation.values import policy_value
from pastwise.models.dense import DenseModel
from pastwise.models.learned import LearnedModel
from tests.helpers.oracles import random_rows, seeds

S, A = 3, 2
FEW = Bootstrap(resamples=20)
"""Resamples where the interval is not looked at."""

Step = tuple[int, int, int]


def episodes_of(walks: list[list[Step]], propensity: FloatArray | None = None) -> Episodes:
    state, action, next_state = np.array([step for walk in walks for step in walk]).T
    episode = np.repeat(np.arange(len(walks)), [len(walk) for walk in walks])
    step = np.concatenate([np.arange(len(walk)) for walk in walks])
    return Episodes(state, action, next_state, episode, step, propensity)


@dataclass(frozen=True)
class Case:
    """Random episodes of different lengths, and an unrelated rule, utility and model."""

    walks: list[list[Step]]
    episodes: Episodes
    rule: FloatArray
    utility: FloatArray
    model: FloatArray
    horizon: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = np.random.default_rng(draw(seeds))
    horizon = draw(st.integers(1, 7))
    walks = []
    for _ in range(draw(st.integers(1, 6))):
        path = rng.integers(S, size=rng.integers(2, 7))
        walks.append([(int(s), int(rng.integers(A)), int(n)) for s, n in pairwise(path)])
    known = 1 - rng.random(sum(map(len, walks))) if draw(st.booleans()) else None
    rule = random_rows(rng, S, A)
    if draw(st.booleans()):
        rule[0] = [1, 0]
    return Case(
        walks,
        episodes_of(walks, known),
        rule,
        rng.normal(size=S),
        random_rows(rng, S, A, S),
        horizon,
    )


# Literal implementations.


def literal_weights(case: Case) -> list[list[float]]:
    """Weight of every episode up to every step, by the definition.

    An episode that ended keeps its last weight.
    """
    took = [step[:2] for walk in case.walks for step in walk]
    known = case.episodes.propensity
    record = 0
    weights = []
    for walk in case.walks:
        weight = 1.0
        along = []
        for s, a, _ in walk:
            if known is None:
                logged = took.count((s, a)) / sum(t[0] == s for t in took)
            else:
                logged = float(known[record])
            weight = weight * float(case.rule[s, a]) / logged
            record += 1
            along.append(weight)
        weights.append((along + [along[-1]] * case.horizon)[: case.horizon])
    return weights


def literal_importance(case: Case) -> float | None:
    total = 0.0
    weights = literal_weights(case)
    for t in range(min(case.horizon, max(map(len, case.walks)))):
        normaliser = sum(w[t] for w in weights)
        if normaliser == 0:
            return None
        for walk, w in zip(case.walks, weights, strict=True):
            if t < len(walk):
                total += w[t] / normaliser * float(case.utility[walk[t][2]])
    return total


def literal_doubly_robust(case: Case) -> float | None:
    """Thomas and Brunskill (2016), Eq. (5).

    The weighted utilities minus w_t Q(s_t, a_t) - w_{t-1} V(s_t).
    """
    horizon = min(case.horizon, max(map(len, case.walks)))

    # How often an episode ended on arriving in each state.
    num_arrived = [0] * S
    num_ended = [0] * S
    for walk in case.walks:
        for t, (_, _, n) in enumerate(walk[: horizon - 1]):
            num_arrived[n] += 1
            num_ended[n] += t + 1 == len(walk)
    over = [num_ended[s] / max(1, num_arrived[s]) for s in range(S)]

    def v(t: int, s: int) -> float:
        return sum(float(case.rule[s, a]) * q(t, s, a) for a in range(A))

    def q(t: int, s: int, a: int) -> float:
        total = 0.0
        for n in range(S):
            later = (1 - over[n]) * v(t + 1, n) if t + 1 < horizon else 0.0
            total += float(case.model[s, a, n]) * (float(case.utility[n]) + later)
        return total

    result = literal_importance(case)
    if result is None:
        return None
    weights = literal_weights(case)
    for t in range(horizon):
        now = [w[t] for w in weights]
        before = [w[t - 1] if t else 1.0 for w in weights]
        for i, walk in enumerate(case.walks):
            if t < len(walk):
                s, a, _ = walk[t]
                result -= now[i] / sum(now) * q(t, s, a) - before[i] / sum(before) * v(t, s)
    return result


@given(cases())
def test_weighted_importance_is_its_definition(case: Case) -> None:
    found = weighted_importance(case.episodes, case.rule, case.utility, case.horizon, bootstrap=FEW)
    expected = literal_importance(case)
    if expected is None:
        assert np.isnan(found.mean)
        assert (found.low, found.high) == (-np.inf, np.inf)
    else:
        assert found.mean == pytest.approx(expected, rel=1e-9, abs=1e-9)
        final = [w[min(case.horizon, max(map(len, case.walks))) - 1] for w in literal_weights(case)]
        assert found.effective_episodes == pytest.approx(
            sum(final) ** 2 / sum(w * w for w in final)
        )


@given(cases())
@settings(max_examples=40)
def test_doubly_robust_is_its_definition(case: Case) -> None:
    case = replace(case, horizon=min(case.horizon, 4))
    model = DenseModel(case.model)
    found = doubly_robust(
        case.episodes, case.rule, case.utility, case.horizon, model, bootstrap=FEW
    )
    expected = literal_doubly_robust(case)
    assert (
        np.isnan(found.mean)
        if expected is None
        else found.mean == pytest.approx(expected, rel=1e-9, abs=1e-9)
    )


@given(cases())
def test_the_rule_that_was_followed_gets_the_plain_mean(case: Case) -> None:
    episodes = replace(case.episodes, propensity=None)
    counts = np.zeros((S, A))
    np.add.at(counts, (episodes.state, episodes.action), 1)
    followed = np.where(counts.sum(axis=1, keepdims=True) > 0, counts, 1.0)
    rule = followed / followed.sum(axis=1, keepdims=True)
    found = weighted_importance(episodes, rule, case.utility, case.horizon)
    plain = logged_value(episodes, case.utility, case.horizon)
    assert (found.mean, found.low, found.high) == (plain.mean, plain.low, plain.high)
    assert found.effective_episodes == plain.effective_episodes == len(case.walks)
    totals = [
        sum(Fraction(float(case.utility[n])) for _, _, n in walk[: case.horizon])
        for walk in case.walks
    ]
    assert plain.mean == pytest.approx(float(sum(totals) / len(totals)))


# Whole populations: every possible episode, as often as it is likely; averages are expectations.

END = 2
"""The state in which an episode ends."""

HORIZON = 3
WORLD = [
    [[Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], [Fraction(0), Fraction(1), Fraction(0)]],
    [[Fraction(1, 4), Fraction(3, 4), Fraction(0)], [Fraction(1, 2), Fraction(0), Fraction(1, 2)]],
]
PAST = [[Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 2), Fraction(1, 2)]]
RULE = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(0), Fraction(1)]]
UTILITY = [Fraction(1), Fraction(-2), Fraction(5)]


def all_walks(
    rule: list[list[Fraction]], state: int, left: int
) -> Iterator[tuple[list[Step], Fraction]]:
    """Every episode from a state, with its probability."""
    if state == END or left == 0:
        yield [], Fraction(1)
        return
    for action, following in product(range(2), range(3)):
        probability = rule[state][action] * WORLD[state][action][following]
        if probability:
            for rest, chance in all_walks(rule, following, left - 1):
                yield [(state, action, following), *rest], probability * chance


def population(horizon: int = HORIZON) -> Episodes:
    walks = list(all_walks(PAST, 0, horizon))
    scale = lcm(*(chance.denominator for _, chance in walks))
    return episodes_of([walk for walk, chance in walks for _ in range(int(chance * scale))])


def exact_value(horizon: int = HORIZON) -> float:
    return float(
        sum(
            chance * sum(UTILITY[n] for _, _, n in walk)
            for walk, chance in all_walks(RULE, 0, horizon)
        )
    )


def as_floats(table: Any, fill: list[Any]) -> FloatArray:
    """The table with a row for the end."""
    return np.array([*table, fill]).astype(float)


RULE_FLOAT = as_floats(RULE, [1, 0])
UTILITY_FLOAT = np.array(UTILITY).astype(float)
TRUE_MODEL = DenseModel(as_floats(WORLD, [[0, 0, 1]] * 2))
WRONG_MODEL = DenseModel(random_rows(np.random.default_rng(5), 3, 2, 3))


@pytest.mark.parametrize("horizon", [1, 2, 3, 9])
def test_a_whole_population_gives_the_expectation(horizon: int) -> None:
    """Episodes end after one, two or three steps; the horizon may be shorter or longer."""
    episodes = population()
    expected = exact_value(min(horizon, HORIZON))
    found = weighted_importance(episodes, RULE_FLOAT, UTILITY_FLOAT, horizon, bootstrap=FEW)
    assert found.mean == pytest.approx(expected, rel=1e-12)
    wrong = doubly_robust(episodes, RULE_FLOAT, UTILITY_FLOAT, horizon, WRONG_MODEL, bootstrap=FEW)
    assert wrong.mean == pytest.approx(expected, rel=1e-12)


def test_doubly_robust_needs_only_one_of_weights_and_model_to_be_right() -> None:
    episodes = population()
    misled = replace(episodes, propensity=np.where(episodes.action == 0, 0.9, 0.3))
    assert weighted_importance(misled, RULE_FLOAT, UTILITY_FLOAT, HORIZON).mean != pytest.approx(
        exact_value(), rel=1e-2
    )
    found = doubly_robust(misled, RULE_FLOAT, UTILITY_FLOAT, HORIZON, TRUE_MODEL)
    assert found.mean == pytest.approx(exact_value(), rel=1e-12)
    assert "either" in found.assumption


def test_behaviour_is_estimated_from_the_log_unless_it_is_logged() -> None:
    episodes = population()
    expected = as_floats(PAST, [1, 0])[episodes.state, episodes.action]
    np.testing.assert_allclose(behaviour(episodes), expected, rtol=1e-12)
    known = np.full(len(episodes.state), 0.25)
    assert behaviour(replace(episodes, propensity=known)).tolist() == known.tolist()


# Simulated logs.


@dataclass(frozen=True)
class World:
    transition: FloatArray
    past: FloatArray
    rule: FloatArray
    utility: FloatArray
    horizon: int

    @classmethod
    def random(
        cls, seed: int, num_states: int = 4, num_actions: int = 3, horizon: int = 4
    ) -> World:
        rng = np.random.default_rng(seed)
        past = (random_rows(rng, num_states, num_actions) + 1) / (1 + num_actions)
        rule = random_rows(rng, num_states, num_actions)
        return cls(
            random_rows(rng, num_states, num_actions, num_states),
            past,
            rule,
            rng.random(num_states),
            horizon,
        )

    @property
    def value(self) -> float:
        """From state 0."""
        model = DenseModel(self.transition)
        return float(policy_value(model, self.rule, model.expect(self.utility), self.horizon)[0])

    def simulate(self, number: int, rng: np.random.Generator, *, known: bool) -> Episodes:
        state = np.zeros(number, dtype=np.int64)
        columns: list[tuple[IntArray, IntArray, IntArray]] = []
        for _ in range(self.horizon):
            action = (rng.random((number, 1)) > self.past[state].cumsum(axis=1)[:, :-1]).sum(axis=1)
            rows = self.transition[state, action].cumsum(axis=1)[:, :-1]
            following = (rng.random((number, 1)) > rows).sum(axis=1)
            columns.append((state, action, following))
            state = following
        s, a, n = (np.stack(column, axis=1).ravel() for column in zip(*columns, strict=True))
        episode, step = np.divmod(np.arange(len(s)), self.horizon)
        return Episodes(s, a, n, episode, step, self.past[s, a] if known else None)


def learned(episodes: Episodes, num_states: int, num_actions: int) -> LearnedModel:
    spaces = Space.of_size(num_states), Space.of_size(num_actions)
    counts = TransitionCounts.from_records(
        episodes.state, episodes.action, episodes.next_state, *spaces
    )
    return LearnedModel(counts, 0.1)


@pytest.mark.parametrize("known", [True, False])
def test_large_logs_converge_to_the_value(known: bool) -> None:
    """Within 4.9 standard errors, inferred from the interval.

    The error probability is below 1e-4 for all four estimates.
    """
    world = World.random(7)
    episodes = world.simulate(20_000, np.random.default_rng(8), known=known)
    model = learned(episodes, 4, 3)
    for found in (
        weighted_importance(
            episodes, world.rule, world.utility, world.horizon, bootstrap=Bootstrap(resamples=400)
        ),
        doubly_robust(
            episodes,
            world.rule,
            world.utility,
            world.horizon,
            model,
            bootstrap=Bootstrap(resamples=400),
        ),
    ):
        error = (found.high - found.low) / (2 * 1.645)
        assert abs(found.mean - world.value) < 4.9 * error
        assert error < 0.02


def test_intervals_cover() -> None:
    """With known propensities the 90 % interval covers between 0.86 and 0.94; 400 logs.

    Counts beyond the bounds would come about with probability 1e-4 at either end. Intervals with an
    estimated behaviour are wider than they need be, so only the lower bound holds for them.
    """
    world = World.random(3)
    logs = 400
    bootstrap = Bootstrap(resamples=200)
    hits = {"known": 0, "estimated": 0, "doubly robust": 0}
    for rng in np.random.default_rng(11).spawn(logs):
        episodes = world.simulate(300, rng, known=True)
        without = replace(episodes, propensity=None)
        model = DenseModel(world.transition)
        judged = (world.rule, world.utility, world.horizon)
        estimates: dict[str, Estimate] = {
            "known": weighted_importance(episodes, *judged, rng=rng, bootstrap=bootstrap),
            "estimated": weighted_importance(without, *judged, rng=rng, bootstrap=bootstrap),
            "doubly robust": doubly_robust(episodes, *judged, model, rng=rng, bootstrap=bootstrap),
        }
        for name, found in estimates.items():
            hits[name] += found.covers(world.value)
    least = binom.ppf(1e-4, logs, 0.86)
    most = binom.isf(1e-4, logs, 0.94)
    assert least <= hits["known"] <= most
    assert least <= hits["doubly robust"] <= most
    assert least <= hits["estimated"]


def test_the_interval_of_the_mean_of_many_is_the_normal_one() -> None:
    """To 8 %: three times the error of a percentile of 4000 resamples."""
    utility = np.random.default_rng(6).random(500)
    episodes = episodes_of([[(0, 0, n)] for n in range(500)])
    found = logged_value(episodes, utility, 1, bootstrap=Bootstrap(resamples=4000))
    half = norm.ppf(0.95) * utility.std() / np.sqrt(500)
    mean = utility.mean()
    np.testing.assert_allclose([found.high - mean, mean - found.low], half, rtol=0.08)


def test_a_true_deterministic_model_leaves_nothing_to_chance() -> None:
    rng = np.random.default_rng(2)
    transition = np.eye(5)[rng.integers(5, size=(5, 3))]
    world = replace(World.random(1, 5, 3, horizon=6), transition=transition)
    episodes = world.simulate(50, rng, known=False)
    found = doubly_robust(episodes, world.rule, world.utility, 6, DenseModel(transition))
    np.testing.assert_allclose([found.mean, found.low, found.high], world.value, rtol=1e-12)


# What an estimate says about itself.


def test_decisions_without_overlap_are_reported() -> None:
    episodes = episodes_of([[(0, 0, 1), (1, 0, 0)], [(0, 1, 1)], [(0, 0, 0)]])
    rule = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    found = weighted_importance(episodes, rule, np.ones(3), 2)
    assert found.without_overlap == pytest.approx(0.75 / 4)
    assert logged_value(episodes, np.ones(3), 2).without_overlap == 0.0
    assert "estimated from the log" in found.assumption
    known = replace(episodes, propensity=np.full(4, 0.5))
    assert "as logged" in weighted_importance(known, rule, np.ones(3), 2).assumption


def test_a_rule_that_no_episode_follows_gets_no_number() -> None:
    episodes = episodes_of([[(0, 0, 1)], [(0, 0, 0)], [(0, 0, 0)]])
    found = weighted_importance(episodes, np.array([[0.0, 1.0], [0.5, 0.5]]), np.ones(2), 1)
    assert np.isnan(found.mean)
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert found.effective_episodes == 0.0
    assert found.without_overlap == 1.0


def test_one_episode_has_no_spread_so_its_interval_is_the_whole_line() -> None:
    found = logged_value(episodes_of([[(0, 0, 1)]]), np.ones(2), 5)
    assert (found.mean, found.low, found.high) == (1.0, -np.inf, np.inf)


def test_undefined_resamples_count_against_either_end() -> None:
    """Two of six episodes follow the rule: every eleventh resample ((4/6)^6) holds neither."""
    episodes = episodes_of([[(0, 0, 0)]] * 4 + [[(0, 1, 0)]] * 2)
    found = weighted_importance(episodes, np.array([[0.0, 1.0]]), np.ones(1), 1)
    assert (found.mean, found.low, found.high) == (1.0, -np.inf, np.inf)


def test_long_products_neither_overflow_nor_vanish() -> None:
    walks = [[(0, 1, 0)] * 500, [(0, 1, 0)] * 500, [(0, 0, 0)] * 500]
    episodes = episodes_of(walks, np.full(1500, 1e-3))
    found = weighted_importance(episodes, np.array([[0.5, 0.5]]), np.ones(1), 1000)
    assert found.mean == pytest.approx(500)
    assert found.effective_episodes == pytest.approx(3)


def test_the_same_seed_gives_the_same_interval() -> None:
    world = World.random(4)
    episodes = world.simulate(30, np.random.default_rng(0), known=False)

    def estimate(seed: int) -> Estimate:
        rng = np.random.default_rng(seed)
        return weighted_importance(episodes, world.rule, world.utility, 4, rng=rng)

    assert estimate(1) == estimate(1)
    assert estimate(2).mean == estimate(1).mean
    assert estimate(2).low != estimate(1).low


# Bad input.

GOOD = episodes_of([[(0, 0, 1), (1, 1, 2)], [(2, 0, 0)]], np.array([0.5, 1.0, 0.1]))


@pytest.mark.parametrize("value", [0.0, -0.1, 1.5, np.nan])
def test_bad_propensities_are_named(value: float) -> None:
    with pytest.raises(
        ValueError, match=r"record 1 \(episode 0, step 1\) has the propensity .* lies in \(0, 1\]"
    ):
        replace(GOOD, propensity=np.array([0.5, value, 0.1]))


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("episode", [0, 0, 2], "record 2 .* out of order"),
        ("episode", [1, 1, 2], "record 0 .* out of order"),
        ("step", [0, 2, 0], "record 1 .* out of order"),
        ("step", [0, 1, 1], "record 2 .* out of order"),
        ("state", [0, 2, 2], "record 1 .* does not start where the record before it led to"),
        ("action", [0, -1, 0], "record 1 .* negative action"),
        ("action", [0, 1], r"one length: .*action \(2,\)"),
    ],
)
def test_bad_episodes_are_named(field: str, values: list[int], message: str) -> None:
    changed: dict[str, Any] = {field: np.array(values)}
    with pytest.raises(ValueError, match=message):
        replace(GOOD, **changed)


def test_no_episodes_is_an_error() -> None:
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(ValueError, match="there are no episodes"):
        Episodes(none, none, none, none, none)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "from 1 to 1,000,000"),
        ({"utility": np.array([0.0, np.inf, 0.0])}, "one finite number for each state"),
        ({"utility": np.ones(2)}, "state 2; the utility has 2 states"),
        ({"rule": np.ones((3, 1))}, r"rule of shape \(3, 1\) does not fit 3 states and action 1"),
        ({"rule": np.ones((3, 2))}, "sums to 2"),
        ({"rule": np.full((4, 2), 0.5)}, r"utility of shape \(3,\) does not fit \(4, 2, 4\)"),
        ({"rule": np.full((2, 2), 0.5)}, r"rule of shape \(2, 2\) does not fit 3 states"),
        (
            {"model": DenseModel(np.full((3, 4, 3), 1 / 3))},
            r"does not fit a model of shape \(3, 4\)",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    fitting: dict[str, Any] = {
        "episodes": GOOD,
        "rule": np.full((3, 2), 0.5),
        "utility": np.ones(3),
        "horizon": 2,
        "model": TRUE_MODEL,
    }
    with pytest.raises(ValueError, match=message):
        doubly_robust(**(fitting | changes))


def test_a_bootstrap_needs_resamples() -> None:
    with pytest.raises(ParameterError, match="at least one resample is needed, not 0"):
        Bootstrap(resamples=0)


@pytest.mark.parametrize("shape", [(3, 2, 3), (3, 2, 1), (1, 2, 1)])
def test_a_utility_may_depend_on_the_whole_transition(shape: tuple[int, ...]) -> None:
    """The logged rule scores as logged; a utility of next states may be given in either shape."""
    episodes = replace(GOOD, propensity=None)
    table = np.random.default_rng(3).random(shape)
    rule = np.full((3, 2), 1e-300)
    np.add.at(rule, (episodes.state, episodes.action), 1.0)
    rule /= rule.sum(axis=-1, keepdims=True)
    full = np.broadcast_to(table, (3, 2, 3))
    earned = full[episodes.state, episodes.action, episodes.next_state]
    mean = earned.sum() / episodes.number
    assert logged_value(episodes, table, 9).mean == pytest.approx(mean)
    assert weighted_importance(episodes, rule, table, 9).mean == pytest.approx(mean)
    by_state = np.array([1.0, -2.0, 0.5])
    by_transition = np.broadcast_to(by_state, (3, 2, 3))
    for estimate in (weighted_importance, partial(doubly_robust, model=TRUE_MODEL)):
        expected = estimate(episodes, rule, by_state, 9).mean
        assert estimate(episodes, rule, by_transition, 9).mean == pytest.approx(expected)
