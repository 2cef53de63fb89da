"""What the rule of each state rests on, by label."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pastwise import Space
from pastwise.policy.support import Support, SupportOfState
from pastwise.theory.learning import StateSupport


def support_of(similarity: list[float]) -> Support:
    n = len(similarity)
    arrays = StateSupport(
        np.arange(1.0, n + 1), np.array(similarity), np.full(n, 1.5), np.full(n, 0.25)
    )
    return Support(Space([f"s{i}" for i in range(n)]), arrays)


def test_support_by_label() -> None:
    support = support_of([0.5, 3.0])
    assert support["s1"] == SupportOfState(2, 3.0, effective=1.5, prior_share=0.25)
    assert isinstance(support["s1"].records, int)
    assert list(support) == ["s0", "s1"]
    assert len(support) == 2
    with pytest.raises(ValueError, match="unknown label"):
        support["s7"]


def test_support_as_plain_values() -> None:
    support = support_of([0.5, 3.0])
    first = {"records": 1, "similarity": 0.5, "effective": 1.5, "prior_share": 0.25}
    second = {"records": 2, "similarity": 3.0, "effective": 1.5, "prior_share": 0.25}
    assert support["s0"].to_dict() == first
    assert support.to_dict() == {"s0": first, "s1": second}
    assert support.to_dict(first=1) == {"s0": first}


def test_support_as_a_frame() -> None:
    frame = support_of([0.5, 3.0]).to_frame("pyarrow")
    assert frame.to_pydict() == {
        "state": ["s0", "s1"],
        "records": [1, 2],
        "similarity": [0.5, 3.0],
        "effective": [1.5, 1.5],
        "prior_share": [0.25, 0.25],
    }


def test_no_field_hides_the_support() -> None:
    states = Space((("red", 1), ("blue", 2)), ("records", "hour"))
    columns = Support(states, support_of([0.5, 3.0]).arrays).to_frame("pyarrow").to_pydict()
    assert columns["state records"] == ["red", "blue"]
    assert columns["records"] == [1, 2]


def test_terminal_states_need_no_support() -> None:
    (few,) = replace(support_of([0.9, 1.0, 0.0]), terminal=np.array([2])).warnings()
    assert "1 of 3 states" in few
    assert few.endswith("s0")
    assert replace(support_of([0.0, 1.0]), terminal=np.array([0, 1])).warnings() == []


def test_weak_states_are_named() -> None:
    assert support_of([1.0, 7.0]).warnings() == []
    (few,) = support_of([0.9, 1.0, 0.0]).warnings()
    assert "2 of 3 states" in few
    assert few.endswith("s0, s2")
    (many,) = support_of([0.0] * 7).warnings()
    assert "7 of 7 states" in many
    assert many.endswith("s3, s4, ...")
