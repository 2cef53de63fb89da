"""LiveCounts: records added one by one are records counted at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pastwise import Space, TransitionCounts
from pastwise.data.live_counts import LiveCounts
from pastwise.errors import ParameterError
from tests.helpers.oracles import Record, counts_of_list, records

S = 3
A = 2
STATES = Space.of_size(S)
ACTIONS = Space.of_size(A)

logs = records(S, A)


@given(logs, logs, st.sampled_from([0.25, 1.0, 3.0]))
def test_records_added_one_by_one_are_records_counted_at_once(
    before: list[Record], after: list[Record], weight: float
) -> None:
    base = counts_of_list(before, S, A)
    live = LiveCounts(base)
    for number, record in enumerate(after, start=1):
        live.add(*record, weight)
        at_once = base + counts_of_list(after[:number], S, A, weight)
        assert live.counts() == at_once
        row = at_once.where((at_once.state == record[0]) & (at_once.action == record[1]))
        assert live.row(*record[:2]) == row
    assert live.counts() == base + counts_of_list(after, S, A, weight)
    assert base == counts_of_list(before, S, A)


def test_rows_of_an_empty_log_are_empty() -> None:
    live = LiveCounts(TransitionCounts.empty(STATES, ACTIONS))
    assert live.row(1, 1) == live.counts() == TransitionCounts.empty(STATES, ACTIONS)


@pytest.mark.parametrize("weight", [1e200, 1.2e154])
def test_weight_that_overflows_is_refused_and_leaves_the_counts_as_they_were(weight: float) -> None:
    live = LiveCounts(TransitionCounts.empty(STATES, ACTIONS))
    live.add(0, 0, 1, 1e154)
    before = live.counts()
    with pytest.raises(ParameterError, match="too large for a number; use smaller weights"):
        live.add(1, 1, 1, weight)
    assert live.counts() == before
