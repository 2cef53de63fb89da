"""The hierarchical posterior of a log: against integrals, at its limits, and on odd logs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln

from pastwise._numerics.arrays import FloatArray, IntArray, normalise
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.errors import ParameterError
from pastwise.models.hierarchy import (
    Assumptions,
    ChainSupport,
    TransitionPosterior,
    displaced_as_others,
    moved,
    neighbourhoods,
)
from pastwise.models.samples import DenseSamples, SparseSamples
from tests.helpers.oracles import counts_of_list, random_rows, simulated_counts

PLAIN = Assumptions(
    record_share=1.0,
    lean_mean=0.0,
    lean_deviation=0.0,
    smallest_mass_factor=1.0,
    shares=(0.0,),
)
"""Whole records, chains that do not lean, and no moves."""

WITH_MOVES = replace(PLAIN, shares=Assumptions().shares)


def sampled_means(
    posterior: TransitionPosterior, values: FloatArray, number: int, seed: int = 0
) -> FloatArray:
    """E[values | state, action] of sampled models: [number, S, A]."""
    rng = np.random.default_rng(seed)
    batches = -(-number // posterior.batch_size)
    parts = [posterior.sample(posterior.batch_size, rng).expect(values) for _ in range(batches)]
    return np.concatenate(parts)[:number]


def tensors(posterior: TransitionPosterior, number: int, seed: int = 0) -> FloatArray:
    """Sampled models, one column after another: [number, S, A, S]."""
    next_states = np.eye(posterior.num_states)
    columns = [sampled_means(posterior, column, number, seed) for column in next_states]
    return np.stack(columns, axis=-1)


# Against integrals.


def log_likelihood_of_row(row: IntArray, mass: float, chain: FloatArray) -> FloatArray:
    """Dirichlet-multinomial, for one order of the records."""
    of_states = gammaln(row + mass * chain) - gammaln(mass * chain)
    return np.asarray(gammaln(mass) - gammaln(mass + row.sum()) + of_states.sum())


def mean_by_integrals(
    table: FloatArray, bases: FloatArray, pulls: tuple[float, ...], mass: float
) -> FloatArray:
    """Posterior mean of the rows of two states, by an integral over each chain: [S, A, S].

    Rows of at most two records are led by their base, two to one on average, not by the chain.

    Parameters
    ----------
    table : [2, A, 2]
    bases : [B, 2, 2]
    """
    num_actions = table.shape[1]
    log_evidence = []
    means = []
    for pull in pulls:
        for base in bases:
            total = 0.0
            mean = np.zeros((2, num_actions))
            for s in range(2):
                a, b = pull * base[s]

                def density(p: float, s: int = s, a: float = a, b: float = b) -> float:
                    """Of the chain's first entry and the log of the state, over exp(-20)."""
                    chain = np.array([p, 1 - p])
                    result = (a - 1) * np.log(p) + (b - 1) * np.log1p(-p) - betaln(a, b)
                    for row in table[s]:
                        result += log_likelihood_of_row(row, mass, chain)
                    return float(np.exp(result + 20))

                evidence = quad(density, 0, 1, limit=400)[0]
                of_chain = quad(lambda p, f=density: p * f(p), 0, 1, limit=400)[0] / evidence
                records = table[s].sum(axis=-1)
                of_rare = of_chain / 3 + 2 * base[s, 0] / 3
                start = np.where(records > 2, of_chain, of_rare)
                mean[s] = (table[s, :, 0] + mass * start) / (records + mass)
                total += np.log(evidence)
            log_evidence.append(total)
            means.append(mean)
    weight = normalise(np.exp(np.array(log_evidence) - max(log_evidence)))
    first = np.tensordot(weight, np.array(means), axes=1)
    return np.stack([first, 1 - first], axis=-1)


@pytest.mark.parametrize("mass", [0.7, 6.0, 80.0])
def test_mean_rows_are_those_of_an_integral_over_the_chains(mass: float) -> None:
    """Two states, three actions, one of them never taken; base and pull are inferred.

    A mean of 4,000 samples has a standard error below 0.005.
    """
    table = np.array([[[7, 2], [1, 3], [0, 0]], [[0, 6], [2, 9], [1, 1]]])
    place = np.argwhere(table)
    records = np.repeat(place, table[tuple(place.T)], axis=0)
    counts = counts_of_list(records.tolist(), 2, 3)
    assumptions = replace(PLAIN, masses=(mass,), pulls=(1.0, 4.0))
    bases = ChainSupport.of(counts, assumptions).bases.reshape(-1, 2, 2)
    expected = mean_by_integrals(table, bases, (1.0, 4.0), mass)
    posterior = TransitionPosterior(counts, assumptions=assumptions, kept=4000)
    np.testing.assert_allclose(tensors(posterior, 4000).mean(axis=0), expected, atol=0.02)


def test_without_mass_rows_are_dirichlets_of_their_own_records() -> None:
    """6,000 samples; 6 standard errors of a mean, 15 % of a standard deviation."""
    rng = np.random.default_rng(1)
    counts = simulated_counts(random_rows(rng, 3, 2, 3), 150, rng)
    posterior = TransitionPosterior(counts, assumptions=replace(PLAIN, masses=(1e-4,)))
    table = np.bincount(counts.key, counts.weight, 18).reshape(3, 2, 3)
    total = table.sum(axis=-1, keepdims=True)
    mean = table / total
    deviation = np.sqrt(mean * (1 - mean) / (total + 1))
    sampled = tensors(posterior, 6000)
    error = 6 * deviation / np.sqrt(6000) + 1e-3
    assert (np.abs(sampled.mean(axis=0) - mean) < error).all()
    np.testing.assert_allclose(sampled.std(axis=0), deviation, rtol=0.15, atol=0.003)


def test_with_a_huge_mass_all_actions_lead_to_the_same() -> None:
    rng = np.random.default_rng(2)
    counts = simulated_counts(random_rows(rng, 3, 2, 3), 60, rng)
    posterior = TransitionPosterior(counts, assumptions=replace(PLAIN, masses=(1e8,)))
    rows = tensors(posterior, 200)
    np.testing.assert_allclose(rows[:, :, 0], rows[:, :, 1], atol=1e-2)
    assert rows.std(axis=0).max() > 0.03, "what follows a state is still uncertain"


def test_records_that_depend_on_each_other_count_less() -> None:
    """Four dependent records carry as much as one: twice the standard deviation."""
    rng = np.random.default_rng(3)
    counts = simulated_counts(random_rows(rng, 3, 2, 3), 2000, rng)
    values = np.array([0.0, 0.5, 1.0])
    alone = sampled_means(TransitionPosterior(counts, assumptions=PLAIN), values, 2000)
    posterior = TransitionPosterior(counts, assumptions=PLAIN, design_effect=4.0)
    dependent = sampled_means(posterior, values, 2000)
    ratio = dependent.std(axis=0).mean() / alone.std(axis=0).mean()
    assert 1.6 < ratio < 2.4


# Rows that look the same.


def difference_of_actions(transition: FloatArray, assumptions: Assumptions) -> float:
    """Mean standard deviation of the difference in value between two actions."""
    counts = simulated_counts(transition, 6000, np.random.default_rng(5))
    posterior = TransitionPosterior(counts, assumptions=assumptions)
    means = sampled_means(posterior, np.linspace(0, 1, len(transition)), 600)
    return float((means[..., 1] - means[..., 0]).std(axis=0).mean())


def test_rows_that_look_the_same_collapse() -> None:
    """In a system without effects little remains of the differences of unrelated rows.

    In one with effects nearly all of it does.
    """
    rng = np.random.default_rng(4)
    without_effect = np.repeat(random_rows(rng, 10, 1, 10), 3, axis=1)
    with_effect = random_rows(rng, 10, 3, 10)
    unrelated = replace(PLAIN, masses=(0.3,))
    for_null = difference_of_actions(without_effect, PLAIN)
    assert for_null < 0.6 * difference_of_actions(without_effect, unrelated)
    for_effects = difference_of_actions(with_effect, PLAIN)
    assert for_effects > 0.8 * difference_of_actions(with_effect, unrelated)


# The lean.


def log_of_a_careful_expert(number: int) -> TransitionCounts:
    """In four states, three actions that lead to state 0; rarely others, which lead to state 3."""
    rng = np.random.default_rng(6)
    transition = np.zeros((4, 6, 4))
    transition[:, :3] = [0.7, 0.1, 0.1, 0.1]
    transition[:, 3:] = [0.1, 0.1, 0.1, 0.7]
    s = rng.integers(4, size=number)
    is_rare = rng.random(number) < 0.03
    a = np.where(is_rare, rng.integers(3, 5, size=number), rng.integers(3, size=number))
    n = (transition[s, a].cumsum(axis=-1) < rng.random(number)[:, None]).sum(axis=-1)
    return TransitionCounts.from_records(s, a, n, Space.of_size(4), Space.of_size(6))


def test_actions_that_an_expert_avoids_are_taken_to_be_bad() -> None:
    """The last action was never taken; the other rare ones led to the bad state."""
    counts = log_of_a_careful_expert(1500)
    value = np.array([1.0, 0.5, 0.5, 0.0])
    assumptions = replace(PLAIN, lean_deviation=0.6)
    careful = sampled_means(TransitionPosterior(counts, value, assumptions=assumptions), value, 600)
    plain = sampled_means(TransitionPosterior(counts, assumptions=PLAIN), value, 600)
    assert careful[..., 5].mean() < plain[..., 5].mean() - 0.05
    assert careful[..., :3].mean() == pytest.approx(plain[..., :3].mean(), abs=0.02)


@pytest.mark.parametrize(("scale", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e9)])
def test_the_unit_of_the_value_does_not_matter(scale: float, shift: float) -> None:
    counts = log_of_a_careful_expert(300)
    value = np.array([1.0, 0.5, 0.5, 0.0])
    plain = sampled_means(TransitionPosterior(counts, value), value, 100)
    scaled = sampled_means(TransitionPosterior(counts, scale * value + shift), value, 100)
    np.testing.assert_allclose(scaled, plain, atol=1e-5)


# Moves.


def steps_on_a_line(S: int, slip: float = 0.2) -> FloatArray:
    """Actions that step down and up a line; a step may fail, and the ends hold: [S, 2, S]."""
    transition = np.zeros((S, 2, S))
    for s in range(S):
        transition[s, 0, max(s - 1, 0)] += 1 - slip
        transition[s, 1, min(s + 1, S - 1)] += 1 - slip
        transition[s, :, s] += slip
    return transition


def log_without_rows(
    transition: FloatArray, number: int, unseen: list[tuple[int, int]], order: IntArray
) -> TransitionCounts:
    """Records of all rows but some, evenly; ``order`` [S] renames the states."""
    rng = np.random.default_rng(11)
    S, A, _ = transition.shape
    rows = [row for row in np.ndindex(S, A) if row not in unseen]
    records = []
    for s, a in rows * number:
        n = rng.choice(S, p=transition[s, a])
        records.append((int(order[s]), a, int(order[n])))
    return counts_of_list(records, S, A)


UNSEEN = [(4, 0), (7, 1)]
"""Rows of a line of twelve states without any record."""


def test_what_an_action_does_elsewhere_is_carried_over() -> None:
    """In two states an action was never taken; it steps there as it does in the others."""
    S = 12
    counts = log_without_rows(steps_on_a_line(S), 6, UNSEEN, np.arange(S))
    posterior = TransitionPosterior(counts, assumptions=WITH_MOVES)
    rows = tensors(posterior, 600).mean(axis=0)
    assert rows[4, 0, 3] > 0.5
    assert rows[7, 1, 8] > 0.45
    without = tensors(TransitionPosterior(counts, assumptions=PLAIN), 600).mean(axis=0)
    assert without[4, 0, 3] < 0.4, "the chain of a state knows the other action alone"
    assert posterior.mean_share.mean() > 0.6
    np.testing.assert_allclose(posterior.mean_moves.sum(axis=-1), 1)
    assert posterior.mean_moves[0, S - 1 - 1] > 0.6
    assert posterior.mean_moves[1, S - 1 + 1] > 0.6


@pytest.mark.parametrize("dense_up_to", [32, 0])
def test_whether_moves_hold_where_they_were_not_tried_is_uncertain_for_all_rows_together(
    dense_up_to: int,
) -> None:
    """Else the errors of many such rows would average out; rows with records know better."""
    S = 12
    counts = log_without_rows(steps_on_a_line(S), 6, UNSEEN, np.arange(S))
    only_moves = replace(WITH_MOVES, shares=(0.999, 1.0), share_weights=(0.5, 0.5))
    large_masses = replace(only_moves, masses=(1000.0,))
    posterior = TransitionPosterior(counts, assumptions=large_masses, dense_up_to=dense_up_to)
    rows = tensors(posterior, 600)
    unseen = np.corrcoef(rows[:, 4, 0, 3], rows[:, 7, 1, 8])[0, 1]
    assert unseen > 0.7
    assert rows[:, 4, 0, 3].std() > 2 * rows[:, 5, 0, 4].std()


def test_where_the_order_of_states_means_nothing_moves_have_no_say() -> None:
    """The same line with its states in random order: no larger errors than without moves."""
    S = 12
    order = np.random.default_rng(12).permutation(S)
    counts = log_without_rows(steps_on_a_line(S), 6, UNSEEN, order)
    truth = np.zeros((S, 2, S))
    truth[np.ix_(order, np.arange(2), order)] = steps_on_a_line(S)
    error = {}
    for name, assumptions in (("with", WITH_MOVES), ("without", PLAIN)):
        rows = tensors(TransitionPosterior(counts, assumptions=assumptions), 600).mean(axis=0)
        error[name] = np.abs(rows - truth).sum(axis=-1).mean()
    assert error["with"] < error["without"] + 0.03


def test_a_move_beyond_the_last_state_stays() -> None:
    """From each of three states, by displacements from -2 to 2."""
    rows = moved(np.array([0.1, 0.2, 0.3, 0.25, 0.15]))
    expected = [[0.6, 0.25, 0.15], [0.2, 0.55, 0.25], [0.1, 0.2, 0.7]]
    np.testing.assert_allclose(rows, expected)


def test_a_state_may_be_displaced_as_others_are() -> None:
    """Others move on by one in 3 of 4 records and by two in 1; the state's own do not count."""
    pooled = np.zeros((4, 4))
    pooled[0, [1, 2]] = [3, 1]
    pooled[1, 0] = 5
    by_others = displaced_as_others(pooled)
    np.testing.assert_allclose(by_others[1], [0, 0, 0.75, 0.25])
    np.testing.assert_allclose(by_others[3], [0, 0, 5 / 9, 4 / 9])
    np.testing.assert_allclose(by_others.sum(axis=-1), 1)


@pytest.mark.parametrize("number", [1, 20])
def test_dense_and_sparse_samples_of_moves_agree(number: int) -> None:
    """As below; the log of one record of each row leaves most to the moves."""
    S = 12
    counts = log_without_rows(steps_on_a_line(S), number, UNSEEN, np.arange(S))
    values = np.random.default_rng(13).random(S)
    dense = sampled_means(TransitionPosterior(counts, assumptions=WITH_MOVES), values, 3000)
    posterior = TransitionPosterior(counts, assumptions=WITH_MOVES, dense_up_to=0)
    sparse = sampled_means(posterior, values, 3000)
    np.testing.assert_allclose(sparse.mean(axis=0), dense.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(sparse.std(axis=0), dense.std(axis=0), rtol=0.25, atol=0.01)


def test_large_systems_have_no_moves() -> None:
    counts = counts_of_list([(s, 0, s + 1) for s in range(159)], 160, 2)
    assert TransitionPosterior(counts).mean_share.max() == 0
    small = counts_of_list([(s, 0, s + 1) for s in range(39)], 40, 2)
    assert TransitionPosterior(small).mean_share.mean() > 0.3


# Dense and sparse samples.


@pytest.mark.parametrize("number", [30, 1000])
def test_dense_and_sparse_samples_agree(number: int) -> None:
    """Means within 0.03, standard deviations within a fifth: 3,000 samples, and 3 of 5 atoms."""
    rng = np.random.default_rng(7)
    counts = simulated_counts(random_rows(rng, 6, 2, 6), number, rng)
    values = rng.random(6)
    dense = TransitionPosterior(counts, assumptions=PLAIN)
    sparse = TransitionPosterior(counts, assumptions=PLAIN, dense_up_to=0)
    assert isinstance(dense.sample(1, rng), DenseSamples)
    assert isinstance(sparse.sample(1, rng), SparseSamples)
    of_dense = sampled_means(dense, values, 3000)
    of_sparse = sampled_means(sparse, values, 3000)
    np.testing.assert_allclose(of_sparse.mean(axis=0), of_dense.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(of_sparse.std(axis=0), of_dense.std(axis=0), rtol=0.2)


# Odd logs.

ODD_LOGS = {
    "a single record": counts_of_list([(0, 0, 1)], 3, 2),
    "no record": counts_of_list([], 3, 2),
    "one action": counts_of_list([(0, 0, 1), (1, 0, 2), (2, 0, 0)] * 4, 3, 1),
    "one state": counts_of_list([(0, 0, 0), (0, 1, 0)] * 3, 1, 2),
    "states never left": counts_of_list([(0, 0, 1), (0, 1, 2)] * 5, 4, 2),
    "weights that are not whole": counts_of_list(
        [(0, 0, 1), (0, 1, 2), (1, 0, 0)], 3, 2, weight=[0.2, 7.6, 1.5]
    ),
    "ends": counts_of_list([(0, 0, 1), (0, 1, 2)] * 5, 3, 2).ending_in(np.array([1, 2])),
    "one transition, many times": counts_of_list([(0, 0, 1)], 3, 2, weight=50_000.0),
}


@pytest.mark.parametrize("dense_up_to", [32, 0])
@pytest.mark.parametrize("name", ODD_LOGS)
def test_any_log_has_a_posterior(name: str, dense_up_to: int) -> None:
    """Its rows are distributions, and terminal states are never left."""
    counts = ODD_LOGS[name]
    S = len(counts.states)
    A = len(counts.actions)
    value = np.linspace(0, 1, S)
    posterior = TransitionPosterior(counts, value, dense_up_to=dense_up_to)
    rows = tensors(posterior, 50)
    assert rows.shape == (50, S, A, S)
    assert (rows >= 0).all()
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    loop = posterior.mean_closed_loop(np.full((S, A), 1 / A))
    np.testing.assert_allclose(loop.sum(axis=-1), 1)
    for end in counts.terminal:
        np.testing.assert_array_equal(rows[:, end, :, end], 1)
        assert loop[end, end] == 1


def test_weights_count_as_records() -> None:
    """A transition of weight 6 is one of six records."""
    once = counts_of_list([(0, 0, 1), (0, 1, 2), (1, 0, 0)], 3, 2, weight=[6.0, 2.0, 3.0])
    repeated = counts_of_list([(0, 0, 1)] * 6 + [(0, 1, 2)] * 2 + [(1, 0, 0)] * 3, 3, 2)
    values = np.array([0.0, 0.3, 1.0])
    by_weight = sampled_means(TransitionPosterior(once), values, 100)
    by_records = sampled_means(TransitionPosterior(repeated), values, 100)
    np.testing.assert_array_equal(by_weight, by_records)


@pytest.fixture(scope="module")
def sparse_log() -> TransitionCounts:
    """Two hundred states in a circle, each leading one or two states on."""
    rng = np.random.default_rng(8)
    s = rng.integers(200, size=1500)
    a = rng.integers(2, size=1500)
    n = (s + 1 + (rng.random(1500) < np.where(a == 0, 0.2, 0.7))) % 200
    return TransitionCounts.from_records(s, a, n, Space.of_size(200), Space.of_size(2))


def test_large_systems_list_neighbours_and_leave_the_rest_elsewhere(
    sparse_log: TransitionCounts,
) -> None:
    support = ChainSupport.of(sparse_log, Assumptions(neighbours=10))
    assert (support.column == 200).sum() == 200, "one entry for elsewhere in each chain"
    assert np.diff(support.first).max() < 20
    for base in support.bases:
        np.testing.assert_allclose(support.sum_by_state(base), 1)
    posterior = TransitionPosterior(sparse_log, assumptions=Assumptions(neighbours=10))
    rng = np.random.default_rng(0)
    models = posterior.sample(2, rng)
    np.testing.assert_allclose(models.expect(np.ones(200)), 1)
    np.testing.assert_allclose(models.expect(np.ones((200, 2, 200))), 1)
    loop = posterior.mean_closed_loop(np.full((200, 2), 0.5))
    np.testing.assert_allclose(loop.sum(axis=-1), 1)


def test_how_many_neighbours_are_listed_hardly_matters(sparse_log: TransitionCounts) -> None:
    """Values of next states are probabilities to be within three states ahead."""
    values = np.zeros(200)
    values[[11, 12, 13]] = 1.0
    of_ten = []
    for assumptions in (Assumptions(neighbours=20), Assumptions(list_all_up_to=200)):
        posterior = TransitionPosterior(sparse_log, assumptions=assumptions)
        of_ten.append(sampled_means(posterior, values, 200)[:, 10].mean(axis=0))
    np.testing.assert_allclose(of_ten[0], of_ten[1], atol=0.08)
    assert (of_ten[0] > 0.6).all()


# Base measures and behaviour.


def test_neighbours_lead_where_those_lead_that_lead_to_them() -> None:
    """State 1 is entered from 0 alone, which leads to 1 and 2: 1 may lead there, to 0, or stay."""
    pooled = np.zeros((4, 4))
    pooled[0, [1, 2]] = [3, 1]
    near = neighbourhoods(pooled, np.array([], dtype=np.int64))
    np.testing.assert_allclose(near.sum(axis=-1), 1)
    expected = 0.5 * np.array([0, 0.75, 0.25, 0]) + 0.5 * np.array([0.5, 0.5, 0, 0])
    np.testing.assert_allclose(near[1], expected)


def test_a_state_ends_episodes_as_often_as_its_neighbours() -> None:
    """State 1 is entered from 0, which ends in 3 after one record of four."""
    pooled = np.zeros((4, 4))
    pooled[0, [1, 3]] = [3, 1]
    near = neighbourhoods(pooled, np.array([3]))
    np.testing.assert_allclose(near.sum(axis=-1), 1)
    assert near[1, 3] == pytest.approx(0.25)


def test_behaviour_is_a_dirichlet_of_the_decisions() -> None:
    """5,000 samples; 6 standard errors."""
    counts = counts_of_list([(0, 0, 1)] * 6 + [(0, 1, 1)] * 2, 2, 2)
    rules = TransitionPosterior(counts).sample_behaviour(5000, np.random.default_rng(9))
    np.testing.assert_allclose(rules.sum(axis=-1), 1)
    deviation = np.sqrt(0.75 * 0.25 / 9)
    assert abs(rules[:, 0, 0].mean() - 0.75) < 6 * deviation / np.sqrt(5000)
    assert rules[:, 0, 0].std() == pytest.approx(deviation, rel=0.1)
    assert rules[:, 1, 0].mean() == pytest.approx(0.5, abs=0.03), "nothing was decided there"


# Settings.


def test_samples_depend_on_the_seed_alone() -> None:
    rng = np.random.default_rng(10)
    counts = simulated_counts(random_rows(rng, 3, 2, 3), 50, rng)
    values = np.array([0.0, 0.5, 1.0])
    one = sampled_means(TransitionPosterior(counts, seed=1), values, 20)
    same = sampled_means(TransitionPosterior(counts, seed=1), values, 20)
    other = sampled_means(TransitionPosterior(counts, seed=2), values, 20)
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"record_share": 0.0}, "record_share must be above 0 and at most 1, not 0"),
        ({"record_share": float("nan")}, "record_share must be above 0"),
        ({"masses": ()}, "masses must be positive numbers, at least one"),
        ({"pulls": (1.0, -1.0)}, "pulls must be positive numbers"),
        ({"lean_deviation": -1.0}, "lean_deviation must be a number from 0 to 100"),
        ({"far_share": 1.5}, "far_share must be a number from 0 to 1"),
        ({"smallest_mass_factor": 0.0}, "smallest_mass_factor must be a number from"),
        ({"largest_rarity": -1.0}, "largest_rarity must be a number from 0 to 100"),
        ({"shares": (0.0, 1.5)}, "shares must be numbers from 0 to 1"),
        ({"shares": (0.0, 1.0)}, "3 share_weights for 2 shares"),
        ({"share_weights": (0.5, 0.5, -1.0)}, "share_weights must be positive numbers"),
        ({"move_pull": 0.0}, "move_pull must be a number from"),
        ({"move_spread": 0.0}, "move_spread must be a number from"),
    ],
)
def test_impossible_assumptions_are_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Assumptions(**setting)  # type: ignore[arg-type]
