"""Tests of what the engine does when a commit fails: it refuses, reloads, and goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pastwise.service.problems import Problem
from pastwise.service.types import DecideRequest
from tests.helpers.engines import ROOM, Bench, opened, refused, room_engine

pytestmark = pytest.mark.anyio


@contextmanager
def unwritable(folder: Path, *tables: str) -> Iterator[None]:
    """Let the database refuse every row of some tables."""
    with closing(sqlite3.connect(folder / "service.sqlite", isolation_level=None)) as database:
        for table in tables:
            refuse = "begin select raise(abort, 'out of order'); end"
            database.execute(f"create trigger broken_{table} before insert on {table} {refuse}")
        yield
        for table in tables:
            database.execute(f"drop trigger broken_{table}")


async def recovered(bench: Bench) -> None:
    """Wait until the engine serves again."""
    while not all(bench.engine.checks().values()):
        await asyncio.sleep(0.01)


async def test_after_a_failed_commit_it_reloads_and_serves_again(tmp_path: Path) -> None:
    async with room_engine(tmp_path, options={"retry_after": 0.01}) as bench:
        decision = await bench.decide("cold")
        await bench.outcome(decision, "warm")
        rule = await bench.rule()
        still_open = await bench.decide("mild")

        # Nothing is decided on top of what failed.
        with unwritable(tmp_path, "outcome", "audit"):
            with refused("store-unavailable"):
                await bench.outcome(still_open)
            with refused("store-unavailable"):
                await bench.decide("cold")
            assert not bench.engine.checks()["store"]
            assert await bench.engine.sweep() == 0

        # Nothing of it was learned.
        await recovered(bench)
        assert await bench.rule() == rule
        assert bench.status(still_open) == "open"
        assert (await bench.outcome(still_open)).evidence == 2
        assert (await bench.engine.replay(ROOM)).equal
        assert bench.engine.store.audit().items[0].what == "store recovered"


async def test_everybody_who_waits_for_a_failed_commit_is_refused(tmp_path: Path) -> None:
    async with room_engine(tmp_path, options={"retry_after": 0.01}) as bench:
        with unwritable(tmp_path, "decision", "audit"):
            calls = [bench.decide("cold", key=str(number % 5)) for number in range(20)]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in results} == {Problem}
        await recovered(bench)
        assert bench.kinds() == []

        # The same keys are free.
        assert (await bench.decide("cold", key="0")).decision_id


async def test_it_tries_until_the_store_can_be_written(tmp_path: Path) -> None:
    async with room_engine(tmp_path, options={"retry_after": 0.01}) as bench:
        with unwritable(tmp_path, "decision", "audit"):
            with refused("store-unavailable"):
                await bench.decide("cold")
            await asyncio.sleep(0.1)
            assert not bench.engine.checks()["store"]
        await recovered(bench)
        assert (await bench.decide("cold")).decision_id


async def test_a_failing_engine_can_be_stopped_and_started(tmp_path: Path) -> None:
    async with room_engine(tmp_path, options={"retry_after": 60.0}) as bench:
        first = await bench.decide("cold")
        with unwritable(tmp_path, "decision", "audit"), refused("store-unavailable"):
            await bench.decide("cold")
    async with opened(tmp_path, bench.clock) as again:
        assert (await again.outcome(first)).status == "learned"


async def test_what_is_under_way_is_finished_before_it_stops(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        request = DecideRequest(state="cold")
        calls = [bench.engine.decide(ROOM, request, "tok", None) for _ in range(50)]
        tasks = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)
    decisions = [(await task)[0] for task in tasks]
    async with opened(tmp_path, bench.clock) as again:
        assert {again.status(each) for each in decisions} == {"open"}
