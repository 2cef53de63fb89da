"""A mean with its interval."""

from math import inf, nan

import numpy as np
import pytest

from pastwise._numerics.interval import Interval


def test_samples_give_mean_and_central_quantiles() -> None:
    interval = Interval.of_samples(np.arange(101.0) ** 2, level=0.8)
    assert interval.mean == pytest.approx(100 * 201 / 6)
    assert interval.low == pytest.approx(100.0)
    assert interval.high == pytest.approx(8100.0)
    assert interval.level == 0.8


@pytest.mark.parametrize(("value", "inside"), [(0.45, True), (0.48, True), (0.5, False)])
def test_an_interval_covers_its_bounds(value: float, inside: bool) -> None:
    assert Interval(0.46, 0.45, 0.48, 0.9).covers(value) == inside


def test_the_plain_form_has_none_for_what_is_no_number() -> None:
    plain = Interval(nan, -inf, inf, 0.9).to_dict()
    assert plain == {"mean": None, "low": None, "high": None, "level": 0.9}
