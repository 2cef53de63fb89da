"""The engine on PostgreSQL, whose reads take their time: other requests come in between."""

from __future__ import annotations

import asyncio

import pytest

from pastwise.service.problems import Problem
from pastwise.service.types import DecideRequest, OutcomeRequest, SettingsPatch
from tests.helpers.engines import ROOM, Bench, opened, room_engine
from tests.helpers.postgres import PostgresServer

pytestmark = pytest.mark.anyio


async def report(bench: Bench, decision_id: str, next_state: str) -> str:
    """The status of an outcome, or the slug of its problem."""
    request = OutcomeRequest(next_state=next_state)
    try:
        view, replayed = await bench.engine.outcome(decision_id, request, "tok")
    except Problem as problem:
        return problem.slug
    return "again" if replayed else view.status


async def test_requests_at_the_same_time_are_decided_and_learned_once(
    postgres: PostgresServer,
) -> None:
    url = postgres.url()
    async with room_engine(url, options={"snapshot_every": 20}) as bench:
        # Each key three times at once.
        request = DecideRequest(state="cold")
        keys = [str(number % 10) for number in range(30)]
        calls = [bench.engine.decide(ROOM, request, "tok", key) for key in keys]
        answers = await asyncio.gather(*calls)
        ids = {view.decision_id for view, _ in answers}
        assert len(ids) == 10
        assert sum(replayed for _, replayed in answers) == 20

        # Each outcome twice, another one, and a sweep at once.
        bench.clock.pass_seconds(60)
        reports = [report(bench, each, to) for each in ids for to in ("mild", "mild", "warm")]
        statuses, swept = await asyncio.gather(asyncio.gather(*reports), bench.engine.sweep())
        assert sorted(statuses) == ["again"] * 10 + ["learned"] * 10 + ["outcome-conflict"] * 10
        assert swept == 0
        assert bench.engine.policy(ROOM).evidence == 10

        # What nobody reports is missing.
        forgotten = await bench.decide("mild")
        bench.clock.pass_seconds(61)
        late, swept = await asyncio.gather(
            report(bench, forgotten.decision_id, "mild"), bench.engine.sweep()
        )
        assert late == "late"
        assert swept in (0, 1)
        assert (await bench.engine.replay(ROOM)).equal
        rule = await bench.rule()

    async with opened(url, bench.clock) as again:
        assert await again.rule() == rule
        assert again.engine.policy(ROOM).evidence == 10


async def test_who_takes_over_has_the_last_settings(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url()
    async with opened(url) as second:
        # The second process reads the policies; then the first changes one, and ends.
        async with room_engine(url, clock=second.clock) as first:
            read_before = second.engine.store.policies()
            etag = first.engine.policy(ROOM).etag
            change = SettingsPatch(outcome_due_s=7.0)
            await first.engine.change_settings(ROOM, change, "tester", etag)
        monkeypatch.setattr(second.engine.store, "policies", lambda: read_before)

        # The server frees the lock when it notices the end.
        while not second.engine.policies():
            await second.engine.sweep()
        assert second.engine.policy(ROOM).settings.outcome_due_s == 7.0
