"""The course of outcomes in a few dozen points."""

from __future__ import annotations

import msgspec
import pytest

from pastwise.service.trace import FIRST_SIZE, MOST, Trace


def traced(outcomes: int) -> Trace:
    """Outcomes one second after another; the evidence is their number so far."""
    trace = Trace()
    for number in range(outcomes):
        is_full = trace.add(number % 3, number % 2, 1000 * number)
        if is_full:
            trace.close(float(number + 1))
    return trace


@pytest.mark.parametrize("outcomes", [1, FIRST_SIZE, FIRST_SIZE + 1, 12_345])
def test_all_outcomes_are_there_in_few_batches(outcomes: int) -> None:
    trace = traced(outcomes)
    batches = trace.batches
    assert len(batches) <= MOST
    assert sum(batch.outcomes for batch in batches) == outcomes
    assert sum(sum(batch.rows.values()) for batch in batches) == outcomes
    assert sum(batch.observed for batch in batches) == outcomes // 2
    assert batches[0].since == 0
    assert batches[-1].until == 1000 * (outcomes - 1)
    assert all(batch.outcomes == trace.size for batch in batches[:-1])


def test_a_batch_has_the_evidence_after_its_last_outcome() -> None:
    trace = traced(10 * MOST * FIRST_SIZE)
    for batch in trace.batches[:-1]:
        assert batch.evidence == batch.until / 1000 + 1


def test_an_outcome_that_the_goal_cannot_judge_counts_and_has_no_utility() -> None:
    trace = Trace()
    trace.add(0, None, 5)
    trace.add(0, 1.0, 6)
    (batch,) = trace.batches
    assert (batch.outcomes, batch.observed, batch.rows) == (2, 1.0, {0: 1})


def test_it_goes_on_from_what_was_stored() -> None:
    trace = traced(1234)
    stored = msgspec.msgpack.encode(trace)
    assert msgspec.msgpack.decode(stored, type=Trace) == trace
