"""Tests of what the engine lets its monitor see, and of what an alarm does."""

from __future__ import annotations

from pathlib import Path

import pytest

from pastwise.service.monitor import MonitorView
from tests.helpers.engines import ROOM, Bench, opened, refused, room_engine, room_file

pytestmark = pytest.mark.anyio


async def view(bench: Bench) -> MonitorView:
    """What there is to see."""
    return await bench.engine.monitor(ROOM, None, None)


async def report_cold(bench: Bench, most: int = 400) -> int:
    """Report that a room is cold after anything, until it alarms; how often it was."""
    for number in range(1, most + 1):
        await bench.outcome(await bench.decide("mild"), "cold")
        if bench.engine.policy(ROOM).alarm:
            return number
    raise AssertionError(f"no alarm after {most} outcomes")


async def test_an_alarm_switches_to_shadow_and_is_kept(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        await report_cold(bench)
        policy = bench.engine.policy(ROOM)
        audit = bench.engine.store.audit().items[0]

        assert policy.settings.mode == "shadow"
        assert bench.kinds()[-3:] == ["outcome", "alarm", "settings"]
        assert [kind for _, kind, _ in bench.news[-3:]] == ["outcome", "alarm", "settings"]
        assert (audit.who, audit.what) == ("monitor", "alarm")
        assert (await bench.decide("mild")).mode == "shadow"
        seen = await view(bench)
        assert seen.change.alarm
        assert {row.state for row in seen.change.rows} == {"mild"}
        assert (await bench.engine.replay(ROOM)).equal


async def test_the_test_starts_again_without_a_decision_in_shadow(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        for count in (1, 2):
            await report_cold(bench)
            await bench.change(mode="live")
            assert bench.kinds().count("alarm") == count
            await bench.decide("mild")
            assert not bench.engine.policy(ROOM).alarm
        before = await view(bench)
        bench.engine.store.close()  # as if it were killed: no last snapshot

    async with opened(tmp_path, bench.clock) as again:
        assert await view(again) == before


async def test_an_alarm_changes_nothing_where_the_settings_say_so(tmp_path: Path) -> None:
    async with room_engine(tmp_path, on_alarm="none") as bench:
        await report_cold(bench)
        await bench.outcome(await bench.decide("mild"), "cold")

        assert bench.engine.policy(ROOM).settings.mode == "live"
        assert bench.kinds().count("alarm") == 1


async def test_outcomes_as_in_the_log_raise_no_alarm(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        for _ in range(40):
            for next_state in ("cold", "mild", "mild", "warm", "off"):
                await bench.outcome(await bench.decide("cold"), next_state)
        seen = await view(bench)

        assert not seen.change.alarm
        assert seen.decisions == seen.change.outcomes == 200
        assert seen.rule.p_value > 1e-4


async def test_only_outcomes_of_live_decisions_in_time_are_watched(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        live = await bench.decide("cold")
        late = await bench.decide("cold")
        await bench.outcome(live)
        await bench.change(mode="shadow")
        await bench.outcome(await bench.decide("cold"))
        bench.clock.pass_seconds(61)
        await bench.outcome(late)
        seen = await view(bench)

        assert (seen.decisions, seen.change.outcomes) == (3, 1)
        (day,) = seen.days
        assert sum(row.decisions for row in day.actions) == 3
        assert sum(row.late for row in day.actions) == 1


@pytest.mark.parametrize("snapshot_every", [3, 1000])
async def test_a_restart_sees_the_same(tmp_path: Path, snapshot_every: int) -> None:
    options = {"snapshot_every": snapshot_every}
    async with room_engine(tmp_path, options=options, on_unseen="prior") as bench:
        for state in ("cold", "mild", "arctic", "cold"):
            await bench.outcome(await bench.decide(state), "warm")
        before = await view(bench)
        bench.engine.store.close()  # as if it were killed: no last snapshot

    async with opened(tmp_path, bench.clock) as again:
        assert await view(again) == before


async def test_another_version_is_watched_on_its_own(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        with_first = await bench.decide("cold")
        await bench.engine.add_version(ROOM, room_file(seed=1), b"other", "", "tester")
        await bench.change(version=2)
        await bench.decide("cold")
        await bench.outcome(with_first)
        second = await view(bench)
        await bench.engine.rollback(ROOM, 1, "tester")
        first = await view(bench)

        assert (second.policy_version, second.decisions, second.change.outcomes) == (2, 1, 0)
        assert (first.policy_version, first.decisions, first.change.outcomes) == (1, 1, 1)


@pytest.mark.parametrize("on_alarm", ["shadow", "none"])
async def test_an_alarm_of_a_version_that_is_not_in_use_is_raised_when_it_is_again(
    tmp_path: Path, on_alarm: str
) -> None:
    async with room_engine(tmp_path, on_alarm=on_alarm) as bench:
        decisions = [await bench.decide("mild") for _ in range(150)]
        await bench.engine.add_version(ROOM, room_file(seed=1), b"other", "", "tester")
        await bench.change(version=2)
        for decision in decisions:
            await bench.outcome(decision, "cold")
        assert bench.kinds().count("alarm") == 0
        back = await bench.engine.rollback(ROOM, 1, "tester")

        # It has the consequence that the settings name, once.
        is_shadow = on_alarm == "shadow"
        assert back.alarm
        assert back.settings.mode == ("shadow" if is_shadow else "live")
        last = ["version", "alarm", "settings"] if is_shadow else ["version", "alarm"]
        assert bench.kinds()[-len(last) :] == last
        assert [kind for _, kind, _ in bench.news[-len(last) :]] == last
        await bench.change(version=2)
        await bench.change(version=1, mode="live")
        assert bench.kinds().count("alarm") == 1
        assert (await bench.engine.replay(ROOM)).equal
    async with opened(tmp_path, bench.clock) as again:
        assert again.engine.policy(ROOM).settings.mode == "live"
        assert again.engine.policy(ROOM).alarm


async def test_there_is_nothing_to_see_without_a_version_or_a_period(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        with refused("invalid-value"):
            await bench.engine.monitor(ROOM, 2000, 1000)
        with refused("not-found"):
            await bench.engine.monitor("other", None, None)


async def test_the_course_of_the_outcomes_is_there_in_batches(tmp_path: Path) -> None:
    async with room_engine(tmp_path, on_alarm="none") as bench:
        for _ in range(50):
            bench.clock.pass_seconds(1)
            await bench.outcome(await bench.decide("mild"), "cold")
        seen = await view(bench)

        assert [batch.outcomes for batch in seen.batches] == [20, 20, 10]
        evidence = [batch.evidence for batch in seen.batches]
        assert evidence == sorted(evidence)
        assert evidence[-1] == seen.change.evidence
        # All of it was on one day, whose mean is that of the batches.
        (day,) = seen.days
        assert day.wanted is not None
        total = sum(
            batch.wanted.observed * batch.outcomes for batch in seen.batches if batch.wanted
        )
        assert total / 50 == pytest.approx(day.wanted.observed)
        predicted = sum(b.wanted.predicted * b.outcomes for b in seen.batches if b.wanted)
        assert predicted / 50 == pytest.approx(day.wanted.predicted)


async def test_a_batch_is_predicted_as_a_day_is(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        for next_state in ("cold", "mild", "warm", "mild"):
            await bench.outcome(await bench.decide("cold"), next_state)
        seen = await view(bench)

        (day,) = seen.days
        (batch,) = seen.batches
        assert day.wanted is not None
        assert batch.wanted is not None
        for name in ("outcomes", "observed", "predicted", "low", "high"):
            assert getattr(batch.wanted, name) == pytest.approx(getattr(day.wanted, name))


async def test_a_changed_row_has_what_followed_in_the_log_and_lately(tmp_path: Path) -> None:
    async with room_engine(tmp_path, on_alarm="none") as bench:
        for _ in range(200):
            await bench.outcome(await bench.decide("mild"), "cold")
        seen = await bench.engine.monitor(ROOM, None, None, rows=1)

        (row,) = seen.change.rows
        assert row.lately == pytest.approx({"cold": 1.0})
        assert set(row.log) - {"cold"}
