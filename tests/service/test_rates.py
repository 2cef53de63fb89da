"""Token buckets against what they promise."""

from __future__ import annotations

import re

import pytest

from pastwise.errors import ParameterError
from pastwise.service.problems import Problem
from pastwise.service.rates import Rate, Rates


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def taken(rates: Rates, attempts: int, token: str = "a", kind: str = "read") -> int:
    """How many of so many requests got through."""
    passed = 0
    for _ in range(attempts):
        try:
            rates.take(token, kind)
        except Problem:
            continue
        passed += 1
    return passed


def test_burst_then_the_rate() -> None:
    clock = Clock()
    rates = Rates({"read": Rate(5.0, 10)}, clock)
    assert taken(rates, 50) == 10
    clock.now += 1.0
    assert taken(rates, 50) == 5
    clock.now += 100.0
    assert taken(rates, 50) == 10


def test_tokens_and_kinds_have_buckets_of_their_own() -> None:
    rates = Rates({"read": Rate(1.0, 2), "write": Rate(1.0, 3)}, Clock())
    assert taken(rates, 9, "a", "read") == 2
    assert taken(rates, 9, "b", "read") == 2
    assert taken(rates, 9, "a", "write") == 3
    rates.forget({"b"})
    assert taken(rates, 9, "a", "read") == 2
    assert taken(rates, 9, "b", "read") == 0


def test_refusal_says_when_to_come_back() -> None:
    clock = Clock()
    rates = Rates({"read": Rate(0.5, 1)}, clock)
    rates.take("a", "read")
    with pytest.raises(Problem) as refused:
        rates.take("a", "read")
    headers = refused.value.headers
    assert headers["Retry-After"] == "2"
    assert headers["RateLimit-Policy"] == '"read";q=1;w=2'
    assert headers["RateLimit"] == '"read";r=0;t=2'
    clock.now += float(headers["Retry-After"])
    rates.take("a", "read")


def test_what_is_left_is_in_the_headers() -> None:
    rates = Rates({"read": Rate(1.0, 10)}, Clock())
    left = []
    for _ in range(3):
        headers = dict(rates.take("a", "read"))
        match = re.fullmatch(rb'"read";r=(\d+)', headers[b"ratelimit"])
        assert match is not None
        left.append(int(match[1]))
    assert left == [9, 8, 7]


def test_a_large_cost_is_paid_back_before_the_next() -> None:
    clock = Clock()
    rates = Rates({"decide": Rate(10.0, 20)}, clock)
    rates.take("a", "decide", 50)
    assert taken(rates, 5, kind="decide") == 0
    clock.now += 3.0
    assert taken(rates, 5, kind="decide") == 0
    clock.now += 0.2
    assert taken(rates, 5, kind="decide") == 2


def test_rates_must_be_positive() -> None:
    with pytest.raises(ParameterError, match="decide"):
        Rates({"decide": Rate(0.0, 10)})
