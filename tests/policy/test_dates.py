"""Weights that fall with age: a record that comes later weighs by its own date."""

from __future__ import annotations

from typing import Any

import pytest

import pastwise as pw
from pastwise.errors import ParameterError

LOG: dict[str, list[Any]] = {
    "room": ["cold", "cold", "mild"],
    "did": ["heat", "wait", "wait"],
    "then": ["mild", "cold", "mild"],
    "day": [0.0, 2.0, 4.0],
}
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "next_state": "then"}
AGE: dict[str, Any] = {"age": "day", "half_life": 2.0}
GOAL = pw.Goal(prefer={"mild": 1})


def learner() -> pw.TransferLearner:
    return pw.TransferLearner(GOAL).fit(LOG, **COLUMNS, **AGE)


def longer(state: str, action: str, next_state: str, day: float) -> pw.TransferLearner:
    """A learner that had the record in its log from the beginning."""
    record: dict[str, Any] = {"room": state, "did": action, "then": next_state, "day": day}
    log = {name: [*values, record[name]] for name, values in LOG.items()}
    return pw.TransferLearner(GOAL).fit(log, **COLUMNS, **AGE)


@pytest.mark.parametrize("day", [-3.0, 1.0, 4.0, 5.0, 44.0])
@pytest.mark.parametrize("next_state", ["mild", "new"])
def test_record_weighs_by_its_own_date(day: float, next_state: str) -> None:
    observed = learner().observe("cold", "heat", next_state, date=day)
    expected = longer("cold", "heat", next_state, day)
    assert observed.counts_.decay == expected.counts_.decay
    assert observed.counts_.records.tolist() == expected.counts_.records.tolist()
    assert observed.counts_.weight == pytest.approx(expected.counts_.weight, rel=1e-12)
    assert observed.rule("cold") == pytest.approx(expected.rule("cold"), rel=1e-9)


@pytest.mark.parametrize("day", [1.0, 4.0, 44.0])
def test_what_a_live_policy_observed_weighs_by_its_own_date(day: float) -> None:
    learned = learner()
    live = learned.live(seed=1)
    live.observe("cold", "heat", "mild")
    learned.merge(live.take(date=day))
    expected = longer("cold", "heat", "mild", day).counts_
    assert learned.counts_.weight == pytest.approx(expected.weight, rel=1e-12)


def test_fresh_record_keeps_its_weight_when_a_later_log_comes() -> None:
    """Dated at the end of the old log, it would weigh 2^-20."""
    learned = learner().observe("cold", "heat", "mild", date=44.0)
    learned.update({name: [values[-1]] for name, values in (LOG | {"day": [44.0]}).items()})
    counts = learned.counts_
    (heat,) = counts.where(counts.action == 0).weight.tolist()
    assert heat == pytest.approx(1 + 2.0**-22)


def test_date_is_needed_where_weights_fall_with_age() -> None:
    learned = learner()
    before = learned.counts_
    with pytest.raises(ParameterError, match="a new record needs its date="):
        learned.observe("cold", "heat", "mild")
    with pytest.raises(ParameterError, match="needs a date"):
        learned.observe("cold", "heat", "mild", date=float("nan"))
    live = learned.live(seed=1)
    live.observe("cold", "heat", "mild")
    with pytest.raises(ParameterError, match="a new record needs its date="):
        live.take()
    assert live.take(date=5.0).num_records == 1
    assert learned.counts_ == before


def test_date_is_refused_where_weights_do_not_fall_with_age() -> None:
    learned = pw.TransferLearner(GOAL).fit(LOG, **COLUMNS)
    with pytest.raises(ParameterError, match="leave out the date"):
        learned.observe("cold", "heat", "mild", date=5.0)
    with pytest.raises(ParameterError, match="leave out the date"):
        learned.live(seed=1).take(date=5.0)


def test_date_before_all_others_does_not_overflow() -> None:
    with pytest.raises(ParameterError, match="weights become infinite"):
        learner().counts_.as_of(-1e6)
