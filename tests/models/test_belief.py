"""The posterior of the transitions: expectations, closed loops, and new records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pastwise._numerics.arrays import FloatArray
from pastwise.data.counts import TransitionCounts
from pastwise.data.space import Space
from pastwise.models import prior as prior_module
from pastwise.models.belief import Belief
from pastwise.models.prior import RowPrior
from tests.helpers.oracles import Record, counts_of, counts_of_list, log_of, random_log, random_rows
from tests.helpers.posteriors import (
    batch_of,
    literal_concentration,
    literal_prior_mean,
    table_of,
    weighted_counts,
)

A = 3


LOGS = {
    "weighted": weighted_counts(6, A, 60),
    "sparse": weighted_counts(12, A, 15),
    "empty": TransitionCounts.empty(Space.of_size(5), Space.of_size(A)),
    "one state, one action": counts_of_list([(0, 0, 0)] * 3, 1, 1),
    "one state, nothing seen": counts_of_list([], 1, 2),
    "one record": counts_of_list([(1, 2, 0)], 3, 3, 0.3),
    "line": counts_of_list([(s, a, s + a) for s in range(7) for a in range(2)], 8, 2),
    "fields": TransitionCounts.from_records(
        *random_log(np.random.default_rng(8), 7, A, 30),
        Space([(0, 5), (0, 6), (1, 5), (1, 7), (2, 5), (2, 6), (2, 7)], ("row", "column")),
        Space.of_size(A),
    ),
}


@pytest.fixture(params=LOGS)
def counts(request: pytest.FixtureRequest) -> TransitionCounts:
    """A log without leading axes."""
    return LOGS[request.param]


def check(belief: Belief, concentration: FloatArray) -> None:
    """Every expectation of a belief of one system, against its concentrations [S, A, S]."""
    num_states, num_actions, _ = concentration.shape
    rng = np.random.default_rng(11)
    weight = concentration.sum(axis=-1, keepdims=True)
    rows = concentration / weight
    np.testing.assert_allclose(belief.weight[0, ..., None], weight, rtol=1e-9)

    # Means of values by next state, and of tables.
    values = np.asarray(rng.normal(size=num_states))
    np.testing.assert_allclose(belief.mean(values[None])[0], rows @ values, atol=1e-9)
    table = rng.normal(size=concentration.shape)
    expected = (rows * table).sum(axis=-1)
    np.testing.assert_allclose(belief.mean(table[None])[0], expected, atol=1e-9)

    # Staying, and the closed loop.
    staying = np.empty((num_states, num_actions))
    for s in range(num_states):
        staying[s] = concentration[s, :, s]
    np.testing.assert_allclose(belief.staying()[0], staying, atol=1e-9)
    rule = random_rows(rng, num_states, num_actions)
    expected = (rule[..., None] * rows).sum(axis=1)
    np.testing.assert_allclose(belief.closed_loop(rule[None])[0], expected, atol=1e-9)


def test_expectations_are_those_of_a_dense_tensor(counts: TransitionCounts) -> None:
    check(Belief(counts), literal_concentration(counts, RowPrior.of(counts)))


def test_records_and_prior_make_the_mean(counts: TransitionCounts) -> None:
    belief = Belief(counts)
    values = np.random.default_rng(0).normal(size=(1, len(counts.states)))
    table = table_of(counts)
    np.testing.assert_allclose(belief.of_records(values)[0], table @ values[0], atol=1e-9)
    np.testing.assert_allclose(belief.records[0], table.sum(axis=-1), atol=1e-9)
    of_prior = literal_concentration(counts, RowPrior.of(counts)) - table
    of_prior = of_prior / of_prior.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(belief.of_prior(values)[0], of_prior @ values[0], atol=1e-9)


def test_mean_rows_are_distributions_with_nothing_impossible(counts: TransitionCounts) -> None:
    belief = Belief(counts)
    num_states = len(counts.states)
    rows = np.stack([belief.mean(row[None])[0] for row in np.eye(num_states)], axis=-1)
    np.testing.assert_allclose(rows.sum(axis=-1), 1)
    assert (rows > 0).all()


# What rows borrow from each other.


def test_untried_action_has_the_mean_of_what_followed_the_state_if_rows_are_related() -> None:
    """Two actions lead from each of 20 states to three of its own; a third was never tried."""
    rng = np.random.default_rng(3)
    log_: list[Record] = []
    targets = np.stack([rng.choice(20, 3, replace=False) for _ in range(20)])
    for s, a in np.ndindex(20, 2):
        log_ += [(s, a, n) for n in targets[s].tolist()] * 5
    near = np.zeros((1, 20))
    near[0, targets[0]] = 1.0
    mean = Belief(counts_of_list(log_, 20, 3)).mean(near)[0]
    assert mean[0, 2] > 0.6
    assert mean[0, 2] > 2 * mean[1:, 2].mean()


def test_untried_action_may_lead_anywhere_if_rows_are_unrelated() -> None:
    """Both actions of a state lead for certain to states of their own."""
    rng = np.random.default_rng(3)
    target = np.stack([rng.permutation(20), rng.permutation(20)], axis=1)
    log_: list[Record] = [(s, a, int(target[s, a])) for s in range(20) for a in range(2)] * 10
    belief = Belief(counts_of_list(log_, 20, 3))
    largest = max(float(belief.mean(row[None])[0, 0, 2]) for row in np.eye(20))
    assert largest < 0.2


def test_untried_action_does_as_in_other_states_if_states_are_in_order() -> None:
    """A step up and a step down in each state of a line, but never up from state 10."""
    log_: list[Record] = []
    for s in range(1, 19):
        if s != 10:
            log_ += [(s, 1, s + 1)] * 3
        log_ += [(s, 0, s - 1)] * 3
    belief = Belief(counts_of_list(log_, 20, 2))
    assert belief.mean(np.eye(20)[None, 11])[0, 10, 1] > 0.5


def test_action_that_was_never_taken_moves_as_any_action_does() -> None:
    """Steps down and up in each state of a line; nobody ever took the third action."""
    log_: list[Record] = []
    for s in range(1, 19):
        log_ += [(s, 0, s - 1), (s, 1, s + 1)] * 3
    mean = Belief(counts_of_list(log_, 20, 3)).mean(np.eye(20)[None, 9] + np.eye(20)[None, 11])
    assert mean[0, 10, 2] > 0.8


def test_a_move_out_of_the_range_of_states_stays() -> None:
    """Always a step up, in every state but the last, which has no records."""
    log_: list[Record] = [(s, 0, s + 1) for s in range(9)] * 3
    belief = Belief(counts_of_list(log_, 10, 1))
    assert belief.mean(np.eye(10)[None, 9])[0, 9, 0] > 0.5


def test_logs_of_too_many_moves_leave_them_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the pool of moves had no share."""
    counts = LOGS["line"]
    prior = RowPrior.of(counts)
    without = replace(prior, shares=prior.shares * [1, 1, 0])
    monkeypatch.setattr(prior_module, "MOST_MOVES", 3)
    check(Belief(counts, prior), literal_concentration(counts, without))
    without = RowPrior.of(counts)
    check(
        Belief(counts),
        literal_concentration(counts, replace(without, shares=without.shares * [1, 1, 0])),
    )


# Batches.


def random_list(rng: np.random.Generator, size: int, number: int) -> list[Record]:
    columns = random_log(rng, size, A, number)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_batch_is_each_log_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of different lengths; what is too many moves for one of them is not for the others."""
    rng = np.random.default_rng(4)
    logs = [random_list(rng, 5, number) for number in (20, 0, 300, 3)]
    monkeypatch.setattr(prior_module, "MOST_MOVES", 100)
    counts = batch_of(logs, 5, A)
    together = Belief(counts)
    assert (together.num_systems, together.num_states, together.num_actions) == (4, 5, A)
    values = rng.normal(size=(4, 5))
    table = rng.normal(size=(4, 5, A, 5))
    rule = random_rows(rng, 4, 5, A)
    for i, log_ in enumerate(logs):
        alone = Belief(counts_of_list(log_, 5, A))
        pairs = [
            (together.weight, alone.weight),
            (together.mean(values), alone.mean(values[i : i + 1])),
            (together.mean(table), alone.mean(table[i : i + 1])),
            (together.staying(), alone.staying()),
            (together.closed_loop(rule), alone.closed_loop(rule[i : i + 1])),
        ]
        for ours, theirs in pairs:
            np.testing.assert_allclose(ours[i], theirs[0], rtol=1e-9, atol=1e-12)


def test_batch_that_observes_is_each_log_alone() -> None:
    """Two leading axes; each log gets records of its own."""
    rng = np.random.default_rng(5)
    log_ = random_log(rng, 4, A, 2, 3, 20)
    together = Belief(counts_of(log_, 4, A))
    new = random_log(rng, 4, A, 9, 2, 3)
    for state, action, next_state in zip(*new, strict=True):
        together.observe(state, action, next_state)
        together.refresh()
    values = rng.normal(size=(6, 4))
    mean = together.mean(values)
    for system, i in enumerate(np.ndindex(2, 3)):
        alone = Belief(counts_of(type(log_)(*(field[i] for field in log_)), 4, A))
        for t in range(9):
            alone.observe(*(field[(t, *i)] for field in new))
            alone.refresh()
        expected = alone.mean(values[system : system + 1])[0]
        np.testing.assert_allclose(mean[system], expected, rtol=1e-9)


# New records.

NEW: list[Record] = [(5, 0, 3), (0, 2, 0), (0, 2, 0), (2, 1, 5)]


def added(counts: TransitionCounts, log_: Sequence[Record]) -> TransitionCounts:
    return counts + TransitionCounts.from_records(*log_of(log_), counts.states, counts.actions)


def observe(belief: Belief, log_: Sequence[Record]) -> None:
    for s, a, n in log_:
        belief.observe(np.array(s), np.array(a), np.array(n))


def test_a_few_new_records_count_in_rows_chains_and_pools() -> None:
    """Under the numbers of the prior as they were; used in between or not."""
    counts = LOGS["weighted"]
    prior = RowPrior.of(counts)
    belief = Belief(counts)
    for number in range(1, len(NEW) + 1):
        observe(belief, NEW[number - 1 : number])
        belief.refresh()
        check(belief, literal_concentration(added(counts, NEW[:number]), prior))
    at_once = Belief(counts)
    observe(at_once, NEW)
    at_once.refresh()
    np.testing.assert_allclose(at_once.weight, belief.weight)


def test_after_many_new_records_the_posterior_is_nearly_that_of_the_longer_log() -> None:
    """The prior's numbers follow the log."""
    counts = LOGS["one record"]
    log_ = random_list(np.random.default_rng(1), 3, 400)
    belief = Belief(counts)
    for record in log_:
        observe(belief, [record])
        belief.refresh()
    other = Belief(added(counts, log_))
    values = np.array([[0.0, 1.0, 3.0]])
    np.testing.assert_allclose(belief.mean(values), other.mean(values), atol=0.05)
    assert np.abs(np.log(belief.mass / other.mass)).max() < 1.5


def test_new_records_wait_for_a_refresh() -> None:
    belief = Belief(LOGS["weighted"])
    before = belief.weight.copy()
    observe(belief, NEW)
    np.testing.assert_array_equal(belief.weight, before)
    belief.refresh()
    assert belief.records.sum() == pytest.approx(LOGS["weighted"].weight.sum() + len(NEW))


def test_beliefs_that_start_on_the_same_log_are_independent() -> None:
    counts = LOGS["weighted"]
    one = Belief(counts)
    other = Belief(counts)
    observe(one, NEW)
    one.refresh()
    check(other, literal_concentration(counts, RowPrior.of(counts)))


# Sizes.


def test_states_that_end_an_episode_are_not_open() -> None:
    counts = LOGS["weighted"].ending_in(np.array([1, 4]))
    assert Belief(counts).is_open.tolist() == [True, False, True, True, False, True]


def test_large_system_needs_no_tensor() -> None:
    """30,000 states: a tensor would take 14 GB, and even a closed loop is refused."""
    log_ = random_log(np.random.default_rng(5), 30_000, 2, 30_000)
    belief = Belief(counts_of(log_, 30_000, 2))
    mean = belief.mean(np.linspace(0, 1, 30_000)[None])
    assert mean.shape == (1, 30_000, 2)
    assert ((mean > 0) & (mean < 1)).all()
    with pytest.raises(ValueError, match="join states into fewer"):
        belief.closed_loop(np.full((1, 30_000, 2), 0.5))


@pytest.mark.parametrize("number", [0, 5, 60])
def test_prior_of_a_row_is_that_of_the_other_rows(number: int) -> None:
    S = 4
    counts = weighted_counts(S, A, number)
    prior = RowPrior.of(counts)
    expected = literal_prior_mean(
        table_of(counts),
        float(prior.mass[0]),
        float(prior.pull[0]),
        prior.shares[0].tolist(),
        without_own_row=True,
    )
    belief = Belief(counts)
    for state, action in np.ndindex(S, A):
        row = belief.prior_row(state, action)
        dense = row.anywhere + row.entered * belief.entered[0]
        np.add.at(dense, row.next_state, row.probability)
        np.testing.assert_allclose(dense, expected[state, action], rtol=1e-9, atol=1e-12)
