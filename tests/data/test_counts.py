"""TransitionCounts: counting, the monoid of counts, and what it refuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import Space, TransitionCounts
from pastwise.data.counts import Decay
from pastwise.data.records import Transitions
from pastwise.errors import ParameterError, UnknownLabelError
from tests.helpers.oracles import Record, counts_of, counts_of_list, log_of, random_log, records

S = 3
A = 2
STATES = Space.of_size(S)
ACTIONS = Space.of_size(A)

logs = records(S, A)


def as_dict(counts: TransitionCounts) -> dict[Record, tuple[int, float, float]]:
    """Records, weight and squared weight of each distinct transition."""
    transitions = zip(
        counts.state.tolist(), counts.action.tolist(), counts.next_state.tolist(), strict=True
    )
    columns = zip(
        counts.records.tolist(), counts.weight.tolist(), counts.weight_squared.tolist(), strict=True
    )
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
    log = [(0, 1, 2), (2, 0, 0), (0, 1, 2)]
    assert as_dict(counts_of_list(log, S, A, weight=[0.5, 2.0, 0.25])) == {
        (0, 1, 2): (2, Fraction(3, 4), Fraction(5, 16)),
        (2, 0, 0): (1, 2, 4),
    }


@given(logs, logs)
def test_sum_is_the_count_of_the_joined_logs(one: list[Record], other: list[Record]) -> None:
    together = counts_of_list(one, S, A) + counts_of_list(other, S, A)
    assert as_dict(together) == as_dict(counts_of_list(one + other, S, A))


@given(logs, logs, logs)
def test_counts_are_a_commutative_monoid(
    one: list[Record], two: list[Record], three: list[Record]
) -> None:
    """The weights are multiples of 1/4, for which float addition is exact."""
    a = counts_of_list(one, S, A, 0.25)
    b = counts_of_list(two, S, A, 1.0)
    c = counts_of_list(three, S, A, 2.5)
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


def test_sum_over_each_log() -> None:
    log = random_log(np.random.default_rng(2), S, A, 2, 4, 25)
    counts = counts_of(log, S, A)
    np.testing.assert_array_equal(counts.sum_by_system(counts.records), np.full((2, 4), 25))
    for run in np.ndindex(2, 4):
        in_state_1 = (log.state[run] == 1).sum()
        found = counts.sum_by_system(counts.weight * (counts.state == 1))
        assert found[run] == in_state_1


def test_sum_over_a_single_log_is_a_number() -> None:
    counts = counts_of_list([(0, 1, 2), (0, 1, 2), (2, 0, 0)], S, A)
    assert counts.sum_by_system([0.5, 2.0]) == 2.5
    assert counts.sum_by_system(counts.weight).shape == ()


def test_evenly_weighted_counts_have_the_effective_number_of_records() -> None:
    """(sum w)^2 / sum w^2 in each of the logs; an empty log stays empty."""
    state = np.array([[0, 0, 1], [2, 2, 2]])
    action = np.zeros((2, 3), dtype=np.int64)
    weight = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]])
    counts = TransitionCounts.from_records(state, action, state, STATES, ACTIONS, weight)
    even = counts.evenly_weighted()
    np.testing.assert_allclose(even.sum_by_system(even.weight), [36 / 14, 3])
    np.testing.assert_allclose(even.weight[:2], np.array([3.0, 3.0]) * 6 / 14)
    assert TransitionCounts.empty(STATES, ACTIONS).evenly_weighted().num_records == 0


def test_scale_multiplies_weights_but_not_records() -> None:
    counts = counts_of_list([(0, 1, 2), (0, 1, 2), (2, 0, 0)], S, A)
    scaled = counts.scale(np.array([0.5, 3.0]))
    assert as_dict(scaled) == {(0, 1, 2): (2, 1.0, 0.5), (2, 0, 0): (1, 3.0, 9.0)}


def test_empty_counts_of_several_logs() -> None:
    nothing = TransitionCounts.empty(STATES, ACTIONS, (4,))
    assert nothing.num_records == 0
    np.testing.assert_array_equal(nothing.by_state_action(nothing.weight), np.zeros((4, S, A)))


@pytest.mark.parametrize(
    "name", ["key", "records", "weight", "weight_squared", "row", "state", "action", "next_state"]
)
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
    good: dict[str, Any] = {
        "state": [0, 1],
        "action": [0, 1],
        "next_state": [2, 0],
        "states": STATES,
    }
    with pytest.raises(ParameterError, match=message):
        TransitionCounts.from_records(**(good | {"actions": ACTIONS} | change))


def test_counts_of_different_leading_axes_cannot_be_added() -> None:
    with pytest.raises(ParameterError, match="different leading axes"):
        TransitionCounts.empty(STATES, ACTIONS) + TransitionCounts.empty(STATES, ACTIONS, (1,))


def test_log_given_as_transitions_or_as_records_counts_the_same() -> None:
    log = log_of([(0, 1, 2), (2, 0, 0), (0, 1, 2)])
    by_records = TransitionCounts.from_records(
        log.state, log.action, log.next_state, STATES, ACTIONS
    )
    assert as_dict(TransitionCounts.from_transitions(log, STATES, ACTIONS)) == as_dict(by_records)


def test_equal_counts_are_equal() -> None:
    one = TransitionCounts.from_records([0, 1], [0, 0], [1, 1], STATES, ACTIONS)
    two = TransitionCounts.from_records([0, 1], [0, 0], [1, 1], STATES, ACTIONS)
    assert one == two
    assert one != one + two
    assert one != "counts"


# Logs of different labels


Labelled = tuple[str, str, str]

words = st.sampled_from("abcd")
labelled_logs = st.lists(st.tuples(words, st.sampled_from("xyz"), words), min_size=1, max_size=12)


def counted(log: Sequence[Labelled], weight: Sequence[float] | float = 1.0) -> TransitionCounts:
    """Counts over the labels that occur."""
    state, action, next_state = zip(*log, strict=True)
    states = Space.sorted([*state, *next_state])
    actions = Space.sorted(action)
    return TransitionCounts.from_records(
        states.indices(state),
        actions.indices(action),
        states.indices(next_state),
        states,
        actions,
        weight,
    )


def by_label(counts: TransitionCounts) -> dict[tuple[Any, ...], tuple[int, float, float]]:
    """Records, weight and squared weight by the labels of each distinct transition.

    The task comes first if there is one.
    """
    spaces = [counts.states, counts.actions, counts.states]
    indices = [counts.state, counts.action, counts.next_state]
    if counts.tasks is not None:
        spaces.insert(0, counts.tasks)
        indices.insert(0, counts.batch)
    labels = []
    for space, index in zip(spaces, indices, strict=True):
        labels.append([space.labels[i] for i in index])
    keys = zip(*labels, strict=True)
    columns = zip(
        counts.records.tolist(), counts.weight.tolist(), counts.weight_squared.tolist(), strict=True
    )
    return dict(zip(keys, columns, strict=True))


@given(labelled_logs, labelled_logs, labelled_logs)
def test_sum_of_logs_of_different_labels_is_the_count_of_all(
    one: list[Labelled], two: list[Labelled], three: list[Labelled]
) -> None:
    a = counted(one)
    b = counted(two)
    c = counted(three)
    assert a + b == b + a == counted(one + two)
    assert (a + b) + c == a + (b + c) == counted(one + two + three)
    assert by_label(a + b) == {record: (n, n, n) for record, n in Counter(one + two).items()}


@given(labelled_logs)
def test_nothing_over_other_labels_adds_only_these(log: list[Labelled]) -> None:
    counts = counted(log)
    assert counts + TransitionCounts.empty(counts.states, counts.actions) == counts
    more = counts + TransitionCounts.empty(Space(["a", "e"]), Space(["w"]))
    assert by_label(more) == by_label(counts)
    assert more.states.labels == tuple(sorted({*counts.states.labels, "a", "e"}, key=str))


@given(labelled_logs)
def test_relabelling_changes_the_indices_alone(log: list[Labelled]) -> None:
    counts = counted(log)
    wider = counts.relabelled(Space("zdcba"), Space("wzyx"))
    assert by_label(wider) == by_label(counts)
    assert (np.diff(wider.key) > 0).all()
    assert counts.relabelled(counts.states, counts.actions) is counts


def test_relabelling_needs_every_label() -> None:
    with pytest.raises(UnknownLabelError, match="unknown label 'b'"):
        counted([("a", "x", "b")]).relabelled(Space("a"), Space("x"))


def test_logs_of_different_fields_cannot_be_added() -> None:
    counts = counted([("a", "x", "b")])
    with pytest.raises(ParameterError, match="cannot be united"):
        counts + replace(counts, states=Space("ab", ("room",)))


@given(labelled_logs)
def test_some_of_the_distinct_transitions(log: list[Labelled]) -> None:
    counts = counted(log)
    for state in counts.states.labels:
        some = counts.where(counts.state == counts.states.index(state))
        assert by_label(some) == {r: (n, n, n) for r, n in Counter(log).items() if r[0] == state}
        assert some.states == counts.states


def test_further_records_by_key() -> None:
    counts = counts_of_list([(0, 1, 2)], S, A)
    known_key = int(counts.key[0])
    more = counts.plus({known_key: (2, 0.5, 0.125), 0: (1, 2.0, 4.0)})
    assert as_dict(more) == {(0, 1, 2): (3, 1.5, 1.125), (0, 0, 0): (1, 2.0, 4.0)}
    assert counts.plus({}) is counts


# Terminal states


def test_terminal_states_are_united_by_label() -> None:
    one = replace(counted([("b", "x", "d")]), terminal=np.array([1]))
    other = replace(counted([("c", "x", "a"), ("c", "x", "d")]), terminal=np.array([0, 2]))
    both = one + other
    assert [both.states.labels[i] for i in both.terminal] == ["a", "d"]
    assert both == other + one
    assert (one + one).terminal.tolist() == [1]
    assert one != counted([("b", "x", "d")])
    assert one.where(one.state == 1).terminal.tolist() == [1]


def test_records_that_leave_a_terminal_state_are_of_no_account() -> None:
    counts = counted([("a", "x", "b"), ("b", "x", "a"), ("b", "x", "c")])
    ended = counts.ending_in(np.array([2, 1, 1]))
    assert ended.terminal.tolist() == [1, 2]
    assert by_label(ended) == {("a", "x", "b"): (1, 1, 1)}


# Tasks


TasksLog = list[tuple[str, str, str, str]]

task_logs = st.lists(
    st.tuples(st.sampled_from("nop"), words, st.sampled_from("xy"), words), min_size=1, max_size=12
)


def counted_by_task(log: TasksLog) -> TransitionCounts:
    task, state, action, next_state = zip(*log, strict=True)
    tasks = Space.sorted(task, ("task",))
    states = Space.sorted([*state, *next_state])
    actions = Space.sorted(action)
    index = (
        tasks.indices(task),
        states.indices(state),
        actions.indices(action),
        states.indices(next_state),
    )
    ones = np.ones(len(log))
    sums = (ones.astype(np.int64), ones, ones)
    return TransitionCounts.from_groups(states, actions, index, sums, tasks)


@given(task_logs, task_logs)
def test_tasks_are_counted_apart_and_together(one: TasksLog, other: TasksLog) -> None:
    counts = counted_by_task(one)
    assert counts.tasks is not None
    assert by_label(counts) == {record: (n, n, n) for record, n in Counter(one).items()}
    assert counts.total() == counted([(s, a, n) for _, s, a, n in one])
    for task, part in zip(counts.tasks.labels, counts.split(), strict=True):
        assert part.tasks is None
        assert by_label(part) == {r[1:]: (n, n, n) for r, n in Counter(one).items() if r[0] == task}
    assert counts + counted_by_task(other) == counted_by_task(one + other)


def test_total_of_a_single_log_is_itself() -> None:
    counts = counted([("a", "x", "b")])
    assert counts.total() is counts


def test_counts_with_tasks_and_without_cannot_be_added() -> None:
    with pytest.raises(ParameterError, match="with tasks and without"):
        counted_by_task([("n", "a", "x", "b")]) + counted([("a", "x", "b")])


def test_relabelling_keeps_the_tasks() -> None:
    counts = counted_by_task([("n", "a", "x", "b"), ("o", "b", "x", "b")])
    wider = counts.relabelled(Space("abc"), Space("xy"))
    assert wider.tasks == counts.tasks
    assert by_label(wider) == by_label(counts)


# Decay


def test_weights_halve_with_every_half_life() -> None:
    counts = replace(counted([("a", "x", "b")] * 3), decay=Decay(as_of=10.0, half_life=4.0))
    later = counts.as_of(18.0)
    assert by_label(later) == {("a", "x", "b"): (3, 0.75, 3 / 16)}
    assert later.decay == Decay(18.0, 4.0)
    assert counts.as_of(10.0) == counts


def test_sum_is_as_of_the_later_date_whichever_comes_first() -> None:
    old = replace(counted([("a", "x", "b")]), decay=Decay(0.0, 1.0))
    new = replace(counted([("a", "x", "b"), ("b", "x", "b")]), decay=Decay(2.0, 1.0))
    assert old + new == new + old
    assert (old + new).decay == Decay(2.0, 1.0)
    assert by_label(old + new) == {
        ("a", "x", "b"): (2, 1.25, 1.0625),
        ("b", "x", "b"): (1, 1.0, 1.0),
    }


@given(st.lists(st.tuples(labelled_logs, st.integers(0, 8)), min_size=3, max_size=3))
def test_decaying_counts_are_a_commutative_monoid(dated: list[tuple[list[Labelled], int]]) -> None:
    """Whole numbers of half-lives: float arithmetic is exact."""
    a, b, c = (replace(counted(log), decay=Decay(date, 1.0)) for log, date in dated)
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)


def test_far_dates_do_not_overflow() -> None:
    counts = counted([("a", "x", "b")])
    old = replace(counts, decay=Decay(0.0, 86400.0))
    new = replace(counts, decay=Decay(1.7e9, 86400.0))
    assert by_label(old + new) == {("a", "x", "b"): (2, 1.0, 1.0)}


@pytest.mark.parametrize("other", [None, Decay(0.0, 2.0)])
def test_weights_that_fall_differently_cannot_be_added(other: Decay | None) -> None:
    counts = counted([("a", "x", "b")])
    with pytest.raises(ParameterError, match="fall differently with age"):
        replace(counts, decay=Decay(0.0, 1.0)) + replace(counts, decay=other)


def test_counts_that_do_not_fall_with_age_are_as_of_no_date() -> None:
    with pytest.raises(ParameterError, match="do not fall with age"):
        counted([("a", "x", "b")]).as_of(3.0)


@pytest.mark.parametrize(
    ("as_of", "half_life"),
    [
        (0.0, 0.0),
        (0.0, -1.0),
        (0.0, np.inf),
        (0.0, np.nan),
        (np.inf, 1.0),
        (np.nan, 1.0),
        ("a", 1.0),
    ],
)
def test_decay_that_makes_no_sense_is_refused(as_of: Any, half_life: float) -> None:
    with pytest.raises(ParameterError, match="a decay needs a date and a positive half-life"):
        Decay(as_of, half_life)


# Fewer records.


@given(logs, logs)
def test_without_takes_away_what_was_added(log: list[Record], more: list[Record]) -> None:
    both = counts_of_list(log + more, S, A)
    other = counts_of_list(more, S, A)
    assert both.contains(other)
    assert both.without(other) == counts_of_list(log, S, A)


@given(logs, logs)
def test_without_is_the_difference_of_plain_counters(
    log: list[Record], other: list[Record]
) -> None:
    found = counts_of_list(log, S, A).without(counts_of_list(other, S, A))
    expected = Counter(log) - Counter(other)
    assert as_dict(found) == {record: (n, n, n) for record, n in expected.items()}


@given(logs, logs)
def test_contains_compares_numbers_of_records(log: list[Record], other: list[Record]) -> None:
    found = counts_of_list(log, S, A).contains(counts_of_list(other, S, A))
    assert found == (Counter(other) <= Counter(log))


def test_without_takes_mean_weights_away() -> None:
    counts = counts_of_list([(0, 1, 2)] * 4, S, A, weight=[1.0, 1.0, 2.0, 4.0])
    found = counts.without(counts_of_list([(0, 1, 2)], S, A))
    assert as_dict(found) == {(0, 1, 2): (3, 6.0, 16.5)}
