"""How much a log flatters the rule learned from it, and how far its records are dependent."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

import pastwise as pw
from pastwise._numerics.arrays import FloatArray, IntArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.episodes import random_folds
from pastwise.data.space import Space
from pastwise.evaluation.criterion import Criterion
from pastwise.evaluation.cross_fit import (
    LearnWithout,
    design_effect,
    optimism,
    pearson_statistic,
    split_in_two,
)
from pastwise.models.hierarchy import DEFAULT_ASSUMPTIONS
from tests.helpers.oracles import random_rows, simulated_counts


def folds_of(
    fold: IntArray, s: IntArray, a: IntArray, n: IntArray, sizes: tuple[int, int], folds: int = 10
) -> TransitionCounts:
    """Records in the folds that each belongs to."""
    num_states, num_actions = sizes
    ones = np.ones(len(fold))
    return TransitionCounts.from_groups(
        Space.of_size(num_states),
        Space.of_size(num_actions),
        (fold, s, a, n),
        (ones.astype(np.int64), ones, ones),
        shape=(folds,),
    )


# Dependence.


def test_the_expected_statistic_is_the_mean_over_all_ways_to_fill_the_folds() -> None:
    """Six records of one row, three next states, three folds of unequal sizes."""
    fold = np.array([0, 0, 0, 1, 1, 2])
    zeros = np.zeros(6, dtype=np.int64)
    statistics = []
    for order in sorted(set(permutations([0, 0, 1, 1, 1, 2]))):
        folds = folds_of(fold, zeros, zeros, np.array(order), (3, 1), 3)
        statistic, expected = pearson_statistic(folds)
        statistics.append(statistic)
        assert expected == pytest.approx(4 * 6 / 5)
    assert np.mean(statistics) == pytest.approx(4 * 6 / 5)


def test_the_statistic_is_that_of_scipy() -> None:
    rng = np.random.default_rng(0)
    s = rng.integers(2, size=400)
    fold = rng.integers(10, size=400)
    n = rng.integers(3, size=400)
    folds = folds_of(fold, s, np.zeros_like(s), n, (3, 1))
    expected = 0.0
    for state in range(2):
        table = np.zeros((10, 3))
        np.add.at(table, (fold[s == state], n[s == state]), 1)
        expected += chi2_contingency(table).statistic
    assert pearson_statistic(folds)[0] == pytest.approx(expected)


def clustered_folds(cluster: int) -> TransitionCounts:
    """Episodes that each repeat one transition so many times: 2,000 in 20 rows of 4 next states."""
    rng = np.random.default_rng(1)
    s, a, n = (rng.integers(size, size=2000) for size in (10, 2, 4))
    episode = np.repeat(np.arange(2000), cluster)
    return folds_of(episode % 10, s[episode], a[episode], n[episode], (10, 2))


@pytest.mark.parametrize("cluster", [3, 12])
def test_the_design_effect_is_the_size_of_episodes_that_repeat_themselves(cluster: int) -> None:
    """540 degrees of freedom: the standard error is 6 %."""
    assert design_effect(clustered_folds(cluster)) == pytest.approx(cluster, rel=0.25)


def test_independent_records_have_no_design_effect() -> None:
    assert 1.0 <= design_effect(clustered_folds(1)) < 1.2


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_a_short_log_shows_no_dependence_by_chance(number: int) -> None:
    """Even if each fold has a next state of its own."""
    few = np.arange(number)
    folds = folds_of(few, np.zeros_like(few), np.zeros_like(few), few, (5, 1))
    assert 1.0 <= design_effect(folds) < 1.3


# Halves.


def test_halves_are_disjoint_and_complete() -> None:
    rng = np.random.default_rng(2)
    counts = simulated_counts(random_rows(rng, 4, 2, 4), 500, rng).ending_in(np.array([3]))
    first, second = split_in_two(random_folds(counts))
    assert first + second == counts
    assert 0.4 < first.num_records / counts.num_records < 0.6


def test_each_fold_is_in_one_half_and_neighbours_are_not_kept_apart_throughout() -> None:
    """Episodes that take turns, such as patients of two clinics, are in both halves."""
    fold = np.arange(10)
    folds = folds_of(fold, np.zeros_like(fold), np.zeros_like(fold), fold, (10, 1))
    halves = [set(half.next_state.tolist()) for half in split_in_two(folds)]
    assert halves[0] | halves[1] == set(range(10))
    assert [len(half) for half in halves] == [5, 5]
    for half in halves:
        odd = sum(number % 2 for number in half)
        assert odd in (2, 3)


# Optimism.

S, A = 4, 3
CRITERION = Criterion(np.eye(S)[0], np.full(S, 1 / S), 20)


def best_by_the_log(counts: TransitionCounts) -> FloatArray:
    """In each state the action that led to state 0 most often: [S, A]."""
    records = counts.by_state_action(counts.weight)
    to_first = counts.where(counts.next_state == 0)
    share = to_first.by_state_action(to_first.weight) / np.maximum(records, 1)
    return np.asarray(np.eye(A)[share.argmax(axis=-1)])


def null_log(seed: int, number: int = 300) -> TransitionCounts:
    """A log of a system whose actions do nothing."""
    rng = np.random.default_rng(seed)
    transition = np.repeat(random_rows(rng, S, 1, S), A, axis=1)
    return simulated_counts(transition, number, rng)


def found_optimism(
    counts: TransitionCounts, learn_without: LearnWithout, **options: Any
) -> FloatArray:
    halves = split_in_two(random_folds(counts))
    result = optimism(
        halves,
        {"rule": learn_without},
        CRITERION,
        options.pop("samples", 100),
        design_effect=1.0,
        assumptions=DEFAULT_ASSUMPTIONS,
        **options,
    )
    return result["rule"]


def test_a_log_does_not_flatter_a_rule_that_it_did_not_choose() -> None:
    rule = random_rows(np.random.default_rng(3), S, A)
    np.testing.assert_array_equal(found_optimism(null_log(0), lambda part: rule), 0)


def test_a_log_flatters_the_rule_that_it_chose() -> None:
    """Where actions do nothing, all that a rule seems to gain is optimism."""
    means = []
    for seed in range(8):
        counts = null_log(seed)

        def learn_without(part: TransitionCounts, whole: TransitionCounts = counts) -> FloatArray:
            return best_by_the_log(whole.without(part))

        means.append(found_optimism(counts, learn_without).mean())
    assert np.mean(means) > 0.01
    assert sum(mean > 0 for mean in means) >= 7


def test_optimism_does_not_depend_on_the_number_of_threads() -> None:
    counts = null_log(1)
    found = [
        found_optimism(
            counts, lambda part: best_by_the_log(counts.without(part)), samples=500, threads=threads
        )
        for threads in (1, 3)
    ]
    np.testing.assert_array_equal(found[0], found[1])


def test_halves_that_were_interrupted_at_different_times_are_of_use() -> None:
    answers = iter([True])
    counts = null_log(1)
    found = found_optimism(
        counts,
        lambda part: best_by_the_log(counts.without(part)),
        samples=500,
        should_stop=lambda: next(answers, False),
    )
    assert 0 < len(found) < 500
    assert np.isfinite(found).all()


# What a user gets.

NULL_COLUMNS: dict[str, Any] = {"state": "s", "action": "a", "next_state": "n"}


def null_table(seed: int, number: int = 300) -> dict[str, list[int]]:
    """Records of a system whose actions do nothing."""
    rng = np.random.default_rng(seed)
    chain = random_rows(rng, S, S)
    s = rng.integers(S, size=number)
    n = (chain[s].cumsum(axis=-1) < rng.random(number)[:, None]).sum(axis=-1)
    return {"s": s.tolist(), "a": rng.integers(A, size=number).tolist(), "n": n.tolist()}


@pytest.fixture(scope="module")
def learner() -> pw.TransferLearner:
    return pw.TransferLearner(pw.Goal(prefer={0: 1})).fit(null_table(0), **NULL_COLUMNS)


def test_gains_where_actions_do_nothing_are_corrected() -> None:
    """Mean over eight logs: a gain in sample that is mostly gone after cross-fitting."""
    in_sample = []
    cross_fitted = []
    for seed in range(8):
        found = pw.TransferLearner(pw.Goal(prefer={0: 1})).fit(null_table(seed), **NULL_COLUMNS)
        result = found.evaluate(samples=200, horizon=20)
        logged = result.values["logged"].mean
        in_sample.append(result.in_sample["new"].mean - logged)
        cross_fitted.append(result.values["new"].mean - logged)
        assert result.verdict["logged"] != "better"
    assert np.mean(in_sample) > 0.005
    assert np.mean(cross_fitted) < 0.6 * np.mean(in_sample)


def test_the_in_sample_value_is_next_to_the_cross_fitted_one(learner: pw.TransferLearner) -> None:
    result = learner.evaluate(samples=100)
    learned = {"new", "TL", "FPD_learn"}
    assert set(result.in_sample) == learned
    assert result.in_sample["new"] != result.values["new"]
    assert set(result.to_dict()["in_sample"]) == learned
    frame = result.to_frame("polars")
    assert frame["quantity"].to_list().count("in-sample value") == 3


def test_a_rule_is_not_cross_fitted_on_another_log(learner: pw.TransferLearner) -> None:
    result = learner.evaluate(null_table(1), samples=100)
    assert "new" not in result.in_sample
    assert "FPD_learn" in result.in_sample, "that rule is learned from the log it is judged on"


def test_records_that_were_held_out_may_look_as_if_learned_from(
    learner: pw.TransferLearner,
) -> None:
    """Counts do not say whether records are the same; the user does."""
    held_out = {name: column[:100] for name, column in null_table(0).items()}
    assert "new" in learner.evaluate(held_out, samples=50).in_sample
    result = learner.evaluate(held_out, samples=50, learned_from_log=False)
    assert "new" not in result.in_sample
    goals = {"other": pw.Goal(prefer={1: 1})}
    by_goal = learner.evaluate_goals(goals, held_out, samples=50, learned_from_log=False)
    assert "new" not in by_goal["other"].in_sample


def test_results_do_not_depend_on_the_number_of_threads(learner: pw.TransferLearner) -> None:
    one = learner.evaluate(samples=500, threads=1)
    three = learner.evaluate(samples=500, threads=3)
    assert one == three


def test_a_stopped_evaluation_keeps_what_there_is(learner: pw.TransferLearner) -> None:
    stopped = learner.evaluate(samples=5000, should_stop=lambda: True)
    assert 0 < stopped.samples < 5000
    assert stopped.samples_requested == 5000
    assert "new" in stopped.in_sample
    assert f"Only {stopped.samples} of 5000 samples were taken" in stopped.sentence


def test_an_interrupted_evaluation_is_cross_fitted(learner: pw.TransferLearner) -> None:
    def impatient(done: int) -> None:
        raise KeyboardInterrupt

    result = learner.evaluate(samples=5000, on_step=impatient)
    assert 0 < result.samples < 5000
    assert "new" in result.in_sample


@pytest.mark.filterwarnings("ignore:the log has a single transition")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_log_too_short_to_be_halved_is_evaluated(number: int) -> None:
    table = {name: column[:number] for name, column in null_table(0).items()}
    goal = pw.Goal(prefer={table["n"][0]: 1})
    found = pw.TransferLearner(goal).fit(table, **NULL_COLUMNS)
    result = found.evaluate(samples=100)
    assert result.verdict["logged"] == "cannot tell"
