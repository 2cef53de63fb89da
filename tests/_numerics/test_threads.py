"""Threads: order and errors."""

from __future__ import annotations

import pytest

from pastwise._numerics.threads import map_in_threads


def test_threads_return_results_in_order_and_pass_on_errors() -> None:
    assert map_in_threads(lambda x: x**2, range(20)) == [x**2 for x in range(20)]
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda x: 1 // x, [1, 0, 2])
    assert map_in_threads(lambda x: x + 1, [1]) == [2]
