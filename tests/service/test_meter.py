"""Tests of what the engine counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pastwise.service.metrics import Metrics
from pastwise.service.types import DecideRequest
from tests.helpers.engines import ROOM, refused, room_engine

pytestmark = pytest.mark.anyio


def lines(metrics: Metrics, *names: str) -> set[str]:
    """The lines of some metrics, without their explanations."""
    return {line for line in metrics.render().splitlines() if line.startswith(names)}


async def test_decisions_and_outcomes_are_counted_once(tmp_path: Path) -> None:
    metrics = Metrics()
    async with room_engine(tmp_path, options={"metrics": metrics}, on_unseen="prior") as bench:
        first = await bench.decide("cold", key="k")
        await bench.decide("cold", key="k")
        await bench.decide("arctic")
        await bench.decide("cold", dry_run=True)
        requests = [DecideRequest(state="cold")] * 3
        await bench.engine.decide_many(ROOM, requests, "tok", None)
        bench.clock.pass_seconds(5)
        await bench.outcome(first)
        await bench.outcome(first)
        bench.clock.pass_seconds(60)
        await bench.engine.sweep()

        names = ("pastwise_decisions_total", "pastwise_outcomes_total", "pastwise_weak")
        assert lines(metrics, *names) == {
            'pastwise_decisions_total{policy="thermostat",version="1",mode="live"} 5',
            'pastwise_outcomes_total{policy="thermostat",status="learned"} 1',
            'pastwise_outcomes_total{policy="thermostat",status="missing"} 4',
            'pastwise_weak_decisions_total{policy="thermostat"} 1',
        }
        unknown = 'pastwise_unknown_states_total{policy="thermostat"} 1'
        assert lines(metrics, "pastwise_unknown") == {unknown}
        repeated = 'pastwise_idempotent_replays_total{policy="thermostat"} 1'
        assert lines(metrics, "pastwise_idempotent") == {repeated}
        assert "pastwise_outcome_lag_seconds_sum 5" in metrics.render()
        assert "pastwise_decision_seconds_count 3" in metrics.render()
        assert lines(metrics, "pastwise_commit_batch_count") != {"pastwise_commit_batch_count 0"}


async def test_states_that_are_not_known_are_counted(tmp_path: Path) -> None:
    metrics = Metrics()
    async with room_engine(tmp_path, options={"metrics": metrics}) as bench:
        with refused("unknown-label"):
            await bench.decide("arctic")
        with refused("unknown-label"):
            await bench.decide("cold", allowed=["hope"])
        requests = [DecideRequest(state="arctic"), DecideRequest(state="cold")]
        await bench.engine.decide_many(ROOM, requests, "tok", None)
        unknown = 'pastwise_unknown_states_total{policy="thermostat"} 2'
        assert lines(metrics, "pastwise_unknown") == {unknown}
