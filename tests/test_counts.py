"""TransitionCounts: counting, the monoid of counts, and what it refuses."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import Record, counts_of, counts_of_list, log_of, random_log, records
from pastwise import Space, TransitionCounts, Transitions

S, A = 3, 2
STATES, ACTIONS = Space.of_size(S), Space.of_size(A)

logs = records(S, A)


def as_dict(counts: TransitionCounts) -> dict[Record, tuple[int, float, float]]:
    """Records, weight and squared weight of each distinct transition."""
    transitions = zip(counts.state.tolist(), counts.action.tolist(), counts.next_state.tolist(), strict=True)
    columns = zip(counts.records.tolist(), counts.weight.tolist(), counts.weight_squared.tolist(), strict=True)
    return dict(zip(transitions, columns, strict=True))


@given(logs)
def test_counts_are_those_of_a_plain_counter(log: list[Record]) -> None:
    counts = counts_of_list(log, S, A)
    assert as_dict(counts) == {record: (n, n, n) for record, n in Counter(log).items()}
    assert counts.num_records == len(log)
    assert (np.diff(counts.key) > 0).all()


@given(logs.flatmap(lambda log: st.tuples(st.just(log), st.permutations(log))))
def test_order_of_the_log_does_not_matter(logs: tuple[list[Record], list[Record]]) -> None:
    one, other = logs
    assert as_dict(counts_of_list(one, S, A)) == as_dict(counts_of_list(other, S, A))


def test_weights_are_summed_and_so_are_their_squares() -> None:
    log, weight = [(0, 1, 2), (2, 0, 0), (0, 1, 2)], [0.5, 2.0, 0.25]
    assert as_dict(counts_of_list(log, S, A, weight)) == {
        (0, 1, 2): (2, Fraction(3, 4), Fraction(5, 16)),
        (2, 0, 0): (1, 2, 4),
    }


@given(logs, logs)
def test_sum_is_the_count_of_the_joined_logs(one: list[Record], other: list[Record]) -> None:
    together = counts_of_list(one, S, A) + counts_of_list(other, S, A)
    assert as_dict(together) == as_dict(counts_of_list(one + other, S, A))


@given(logs, logs, logs)
def test_counts_are_a_commutative_monoid(one: list[Record], two: list[Record], three: list[Record]) -> None:
    """The weights are multiples of 1/4, for which float addition is exact."""
    a, b, c = (counts_of_list(log, S, A, weight) for log, weight in ((one, 0.25), (two, 1.0), (three, 2.5)))
    nothing = TransitionCounts.empty(STATES, ACTIONS)
    assert as_dict(a + b) == as_dict(b + a)
    assert as_dict((a + b) + c) == as_dict(a + (b + c))
    assert as_dict(a + nothing) == as_dict(nothing + a) == as_dict(a)


def test_leading_axes_are_logs_counted_apart() -> None:
    log = random_log(np.random.default_rng(1), S, A, 2, 4, 25)
    together = counts_of(log, S, A)
    assert together.shape == (2, 4)
    assert together.num_records == 2 * 4 * 25
    by_state_action = together.by_state_action(together.weight)
    for run in np.ndindex(2, 4):
        alone = counts_of(Transitions(*(field[run] for field in log)), S, A)
        np.testing.assert_array_equal(by_state_action[run], alone.by_state_action(alone.weight))
        in_run = together.key // (S * A * S) == np.ravel_multi_index(run, (2, 4))
        np.testing.assert_array_equal(together.key[in_run] % (S * A * S), alone.key)
        np.testing.assert_array_equal(together.records[in_run], alone.records)
        np.testing.assert_array_equal(together.state[in_run], alone.state)


def test_marginal_over_next_states() -> None:
    counts = counts_of_list([(0, 1, 2), (0, 1, 0), (2, 0, 0), (0, 1, 2)], S, A)
    np.testing.assert_array_equal(counts.by_state_action(counts.weight), [[0, 3], [0, 0], [1, 0]])


def test_scale_multiplies_weights_but_not_records() -> None:
    counts = counts_of_list([(0, 1, 2), (0, 1, 2), (2, 0, 0)], S, A)
    scaled = counts.scale(np.array([0.5, 3.0]))
    assert as_dict(scaled) == {(0, 1, 2): (2, 1.0, 0.5), (2, 0, 0): (1, 3.0, 9.0)}


def test_empty_counts_of_several_logs() -> None:
    nothing = TransitionCounts.empty(STATES, ACTIONS, (4,))
    assert nothing.num_records == 0
    np.testing.assert_array_equal(nothing.by_state_action(nothing.weight), np.zeros((4, S, A)))


@pytest.mark.parametrize(("number", "expected"), [(2, [7, 8]), (3, [6, 7, 8]), (9, [6, 7, 8]), (0, [])])
def test_last_records_of_a_log(number: int, expected: list[int]) -> None:
    log = Transitions(np.array([[6, 7, 8]]), np.array([[16, 17, 18]]), np.array([[26, 27, 28]]))
    state, action, next_state = log.last(number)
    np.testing.assert_array_equal(state, [expected])
    np.testing.assert_array_equal(action - 10, [expected])
    np.testing.assert_array_equal(next_state - 20, [expected])


@pytest.mark.parametrize("name", ["key", "records", "weight", "weight_squared", "row", "state", "action", "next_state"])
def test_arrays_are_read_only(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(counts_of_list([(0, 1, 2)], S, A), name)[0] = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state": [0, 3]}, r"state\[1\] is 3; indices run from 0 to 2"),
        ({"action": [0, 2]}, r"action\[1\] is 2; indices run from 0 to 1"),
        ({"next_state": [-1, 0]}, r"next_state\[0\] is -1; indices run from 0 to 2"),
        ({"state": [0.0, 1.0]}, "state must hold integer indices, not float64"),
        ({"action": [True, False]}, "action must hold integer indices, not bool"),
        ({"action": [0]}, r"differ in shape: \(2,\), \(1,\), \(2,\)"),
        ({"state": 0, "action": 0, "next_state": 0}, "shape"),
        ({"weight": [1.0, 0.0]}, r"weight\[1\] is 0.0; weights must be finite and positive"),
        ({"weight": [-1.0, 1.0]}, r"weight\[0\] is -1.0"),
        ({"weight": np.nan}, r"weight\[0\] is nan"),
        ({"weight": np.inf}, r"weight\[0\] is inf"),
        ({"weight": [1.0, 1.0, 1.0]}, "shape"),
    ],
)
def test_bad_records_are_refused_and_located(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"state": [0, 1], "action": [0, 1], "next_state": [2, 0], "states": STATES}
    with pytest.raises(ValueError, match=message):
        TransitionCounts.from_records(**(good | {"actions": ACTIONS} | change))


def test_counts_of_different_leading_axes_cannot_be_added() -> None:
    with pytest.raises(ValueError, match="different leading axes"):
        TransitionCounts.empty(STATES, ACTIONS) + TransitionCounts.empty(STATES, ACTIONS, (1,))


def test_log_given_as_transitions_or_as_records_counts_the_same() -> None:
    log = log_of([(0, 1, 2), (2, 0, 0), (0, 1, 2)])
    by_records = TransitionCounts.from_records(log.state, log.action, log.next_state, STATES, ACTIONS)
    assert as_dict(TransitionCounts.from_transitions(log, STATES, ACTIONS)) == as_dict(by_records)


def test_equal_counts_are_equal() -> None:
    one, two = (TransitionCounts.from_records([0, 1], [0, 0], [1, 1], STATES, ACTIONS) for _ in range(2))
    assert one == two
    assert one != one + two
    assert one != "counts"
