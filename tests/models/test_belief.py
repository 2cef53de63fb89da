"""The posterior of the transitions: mean and variance of functions of the next state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.records import Transitions
from pastwise.data.space import Space
from pastwise.models.belief import Belief, DenseBelief, SparseBelief, belief_from
from pastwise.models.hierarchy import DENSE_STATES
from tests.helpers.oracles import Record, counts_of, counts_of_list, log_of, random_log
from tests.helpers.posteriors import LiteralPrior, table_of, weighted_counts

S, A = 4, 3


def literal_moments(concentration: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance, around the mean, of values [S, A, S] under the normalised rows."""
    rows = concentration / concentration.sum(axis=-1, keepdims=True)
    mean = (rows * values).sum(axis=-1)
    return mean, (rows * (values - mean[..., None]) ** 2).sum(axis=-1)


def literal_concentration(counts: TransitionCounts) -> FloatArray:
    """Counts + mass * mean of the prior."""
    table = table_of(counts)
    prior = LiteralPrior.of(table)
    return np.asarray(table + prior.mass * prior.mean[:, None])


KINDS: dict[str, Callable[[TransitionCounts], Belief]] = {
    "dense": DenseBelief,
    "sparse": SparseBelief,
}

LOGS = {
    "weighted": weighted_counts(6, A, 60),
    "sparse": weighted_counts(12, A, 15),
    "empty": TransitionCounts.empty(Space.of_size(5), Space.of_size(A)),
    "one state, one action": counts_of_list([(0, 0, 0)] * 3, 1, 1),
    "one state, nothing seen": counts_of_list([], 1, 2),
    "one record": counts_of_list([(1, 2, 0)], 3, 3, 0.3),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """How a belief is stored."""
    return str(request.param)


@pytest.fixture(params=LOGS)
def counts(request: pytest.FixtureRequest) -> TransitionCounts:
    """A log without leading axes."""
    return LOGS[request.param]


def belief_and_truth(kind: str, counts: TransitionCounts) -> tuple[Belief, FloatArray]:
    return KINDS[kind](counts), literal_concentration(counts)


def check(belief: Belief, concentration: FloatArray) -> None:
    """Weight and moments, for values of every shape that is allowed."""
    num_states, num_actions, _ = concentration.shape
    rng = np.random.default_rng(11)
    np.testing.assert_allclose(belief.weight, concentration.sum(axis=-1), rtol=1e-9)
    values = np.asarray(rng.normal(size=num_states))
    for ours, theirs in zip(
        belief.moments(values), literal_moments(concentration, values[None, None]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)
    for lines in {1, num_states}:
        for columns in {1, num_actions}:
            table = rng.normal(size=(lines, columns, num_states))
            expected = literal_moments(concentration, table)
            for ours, theirs in zip(belief.moments_each(table), expected, strict=True):
                assert ours.shape == (num_states, num_actions)
                np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-12)


def test_moments_are_those_of_a_dense_tensor(kind: str, counts: TransitionCounts) -> None:
    check(*belief_and_truth(kind, counts))


def test_equal_values_have_no_variance(kind: str, counts: TransitionCounts) -> None:
    belief, _ = belief_and_truth(kind, counts)
    mean, variance = belief.moments(np.full(len(counts.states), 0.7))
    np.testing.assert_allclose(mean, 0.7)
    assert (variance >= 0).all()
    np.testing.assert_allclose(variance, 0, atol=1e-14)


def added(counts: TransitionCounts, log_: Sequence[Record]) -> TransitionCounts:
    return counts + TransitionCounts.from_records(*log_of(log_), counts.states, counts.actions)


NEW: list[Record] = [(5, 0, 3), (0, 2, 0), (0, 2, 0), (2, 1, 5)]


def test_sparse_belief_after_new_records_is_that_of_the_longer_log() -> None:
    """Whether or not it was used in between; the prior is inferred anew."""
    counts = LOGS["weighted"]
    used = SparseBelief(counts)
    unused = SparseBelief(counts)
    for number, (s, a, n) in enumerate(NEW, 1):
        for belief in (used, unused):
            belief.observe(np.array(s), np.array(a), np.array(n))
        check(used, literal_concentration(added(counts, NEW[:number])))
    check(unused, literal_concentration(added(counts, NEW)))
    np.testing.assert_array_equal(used.weight, unused.weight)


@pytest.mark.parametrize("first_use", ["weight", "moments", "moments_each"])
def test_any_first_use_of_a_sparse_belief_counts_new_records(first_use: str) -> None:
    counts = LOGS["weighted"]
    belief = SparseBelief(counts)
    for s, a, n in NEW:
        belief.observe(np.array(s), np.array(a), np.array(n))
    concentration = literal_concentration(added(counts, NEW))
    values = np.arange(6.0)
    if first_use == "weight":
        np.testing.assert_allclose(belief.weight, concentration.sum(axis=-1))
        return
    if first_use == "moments":
        ours = belief.moments(values)
    else:
        ours = belief.moments_each(values[None, None])
    np.testing.assert_allclose(ours, literal_moments(concentration, values[None, None]), rtol=1e-8)


def test_dense_belief_after_new_records_has_them_added_to_its_concentrations() -> None:
    counts = LOGS["weighted"]
    belief = DenseBelief(counts)
    concentration = literal_concentration(counts)
    for s, a, n in NEW:
        belief.observe(np.array(s), np.array(a), np.array(n))
        concentration[s, a, n] += 1
        check(belief, concentration)


def test_beliefs_that_start_on_the_same_log_are_independent(kind: str) -> None:
    counts = LOGS["weighted"]
    one = KINDS[kind](counts)
    other = KINDS[kind](counts)
    for s, a, n in NEW:
        one.observe(np.array(s), np.array(a), np.array(n))
    check(other, literal_concentration(counts))


def test_dense_belief_of_a_batch_is_that_of_each_log_alone() -> None:
    """Two leading axes; before and after each log got a record of its own."""
    rng = np.random.default_rng(4)
    log_ = random_log(rng, S, A, 2, 3, 20)
    new = random_log(rng, S, A, 2, 3)
    together = DenseBelief(counts_of(log_, S, A))
    values = rng.normal(size=(2, 3, S))
    table = rng.normal(size=(S, A, S))
    for observed in (False, True):
        if observed:
            together.observe(*new)
        moments = (*together.moments(values), *together.moments_each(table))
        for i in np.ndindex(2, 3):
            alone = DenseBelief(counts_of(Transitions(*(field[i] for field in log_)), S, A))
            if observed:
                alone.observe(*(field[i] for field in new))
            np.testing.assert_allclose(together.weight[i], alone.weight, rtol=1e-12)
            expected = (*alone.moments(values[i]), *alone.moments_each(table))
            for ours, theirs in zip(moments, expected, strict=True):
                np.testing.assert_allclose(ours[i], theirs, rtol=1e-10, atol=1e-13)


def test_untried_action_has_the_mean_of_what_followed_the_state_if_rows_are_related(
    kind: str,
) -> None:
    """Two actions lead from each of 20 states to the next but one; a third was never tried."""
    log_: list[Record] = [(s, a, (s + 2) % 20) for s in range(20) for a in range(2)] * 10
    belief = KINDS[kind](counts_of_list(log_, 20, 3))
    mean, _ = belief.moments(np.eye(20)[2])
    assert mean[0, 2] > 0.9


def test_untried_action_may_lead_anywhere_if_rows_are_unrelated(kind: str) -> None:
    """Both actions of a state lead for certain to states of their own."""
    rng = np.random.default_rng(3)
    target = np.stack([rng.permutation(20), rng.permutation(20)], axis=1)
    log_: list[Record] = [(s, a, int(target[s, a])) for s in range(20) for a in range(2)] * 10
    belief = KINDS[kind](counts_of_list(log_, 20, 3))
    mean, _ = belief.moments(np.eye(20)[target[0, 0]])
    assert mean[0, 2] == pytest.approx(1 / 20, abs=0.01)


def test_large_systems_are_sparse_and_small_ones_and_batches_dense() -> None:
    spaces = [(Space.of_size(n), Space.of_size(2)) for n in (DENSE_STATES, DENSE_STATES + 1)]
    assert isinstance(belief_from(TransitionCounts.empty(*spaces[0])), DenseBelief)
    assert isinstance(belief_from(TransitionCounts.empty(*spaces[1])), SparseBelief)
    assert isinstance(belief_from(TransitionCounts.empty(*spaces[1], (2,))), DenseBelief)


def test_large_system_needs_no_tensor() -> None:
    """20,000 states: a tensor would take 6.4 GB."""
    log_ = random_log(np.random.default_rng(5), 20_000, 2, 30_000)
    belief = belief_from(counts_of(log_, 20_000, 2))
    mean, variance = belief.moments(np.linspace(0, 1, 20_000))
    assert mean.shape == variance.shape == (20_000, 2)
    assert ((mean > 0) & (mean < 1)).all()
