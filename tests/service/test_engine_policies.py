"""Tests of settings and versions: who changes what, and what stays."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pastwise.service.types import PolicySettings, SettingsPatch
from tests.helpers.engines import ROOM, Bench, opened, refused, room_engine, room_file

pytestmark = pytest.mark.anyio


def audits(bench: Bench) -> list[tuple[str, str, Any, Any]]:
    """The audit trail, the oldest first: who, what, before and after."""
    rows = reversed(bench.engine.store.audit().items)
    return [
        (row.who, row.what, json.loads(row.before or "null"), json.loads(row.after or "null"))
        for row in rows
    ]


async def second_version(bench: Bench) -> None:
    """Add another version, and use it."""
    await bench.engine.add_version(ROOM, room_file(seed=1), b"other", "", "tester")
    await bench.change(version=2)


# Policies and settings.


async def test_a_policy_has_a_name_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as bench:
        made = await bench.engine.create_policy(ROOM, PolicySettings(), "tester")
        with refused("name-taken"):
            await bench.engine.create_policy(ROOM, PolicySettings(), "tester")
        with refused("no-version"):
            await bench.engine.create_policy("other", PolicySettings(version=1), "tester")

        assert bench.engine.policies() == [made]
        assert (made.settings.mode, made.settings.version, made.seq) == ("shadow", None, 0)


async def test_settings_change_only_for_those_who_have_seen_them(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        seen = bench.engine.policy(ROOM)
        patch = SettingsPatch(mode="shadow", floor=0.1)
        changed = await bench.engine.change_settings(ROOM, patch, "ann", f'"{seen.etag}"')
        with refused("stale"):
            await bench.engine.change_settings(ROOM, SettingsPatch(floor=0.2), "bob", seen.etag)

        assert (changed.settings.mode, changed.settings.floor) == ("shadow", 0.1)
        assert changed.etag != seen.etag
        assert bench.engine.policy(ROOM) == changed


async def test_settings_survive_a_restart(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        await bench.change(mode="shadow", outcome_due_s=7.0, on_unseen="action:idle")
        before = bench.engine.policy(ROOM)
    async with opened(tmp_path) as bench:
        assert bench.engine.policy(ROOM) == before


async def test_of_two_changes_at_once_one_is_stale(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        etag = bench.engine.policy(ROOM).etag
        changes = [SettingsPatch(floor=floor) for floor in (0.1, 0.2)]
        calls = [bench.engine.change_settings(ROOM, each, "ann", etag) for each in changes]
        results = await asyncio.gather(*calls, return_exceptions=True)

        assert [isinstance(each, Exception) for each in results] == [False, True]
        assert bench.engine.policy(ROOM).settings.floor == 0.1


async def test_settings_that_change_nothing_leave_no_trace(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        before = bench.engine.policy(ROOM)
        await bench.change(mode="live")
        assert bench.engine.policy(ROOM) == before
        assert bench.kinds() == []


@pytest.mark.parametrize(
    ("settings", "slug"),
    [
        ({"version": 7}, "not-found"),
        ({"floor": 0.5}, "invalid-value"),
        ({"on_unseen": "action:hope"}, "unknown-label"),
    ],
)
async def test_settings_that_cannot_be_served_are_refused(
    tmp_path: Path, settings: dict[str, Any], slug: str
) -> None:
    async with room_engine(tmp_path) as bench:
        before = bench.engine.policy(ROOM)
        with refused(slug):
            await bench.change(**settings)
        assert bench.engine.policy(ROOM) == before
        assert (await bench.decide("cold")).policy_version == 1


async def test_every_change_is_audited(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        await bench.change(mode="shadow")
        await second_version(bench)
        await bench.engine.rollback(ROOM, 1, "ann", "it was worse")
        trail = audits(bench)

        assert [(who, what) for who, what, _, _ in trail] == [
            ("tester", "create policy"),
            ("tester", "add version"),
            ("tester", "settings"),
            ("tester", "settings"),
            ("tester", "add version"),
            ("tester", "settings"),
            ("ann", "rollback"),
        ]
        assert trail[3][2:] == ({"mode": "live"}, {"mode": "shadow"})
        assert trail[6][2:] == ({"version": 2}, {"version": 1, "reason": "it was worse"})


# Versions.


async def test_versions_are_numbered_and_never_change(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        view = await bench.engine.add_version(
            ROOM, room_file(seed=1), None, "better", "ann", ["alarm"]
        )
        row = bench.engine.store.version(ROOM, 2)

        assert (view.version, view.note, view.who, view.despite) == (2, "better", "ann", ["alarm"])
        assert row is not None
        assert row.artefact == room_file(seed=1)
        assert len(row.seed) == 32
        assert bench.engine.policy(ROOM).settings.version == 1


async def test_a_damaged_policy_file_is_refused(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        damaged = bytearray(room_file())
        damaged[-1] ^= 1
        for artefact in (b"", b"nonsense", bytes(damaged)):
            with refused("policy-file-refused") as raised:
                await bench.engine.add_version(ROOM, artefact, None, "", "tester")
            assert "the policy file" in raised.value.detail
            assert str(tmp_path.anchor + "tmp") not in raised.value.detail
        assert len(bench.engine.store.versions(ROOM)) == 1


async def test_a_rollback_continues_what_the_version_had_learned(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        for _ in range(5):
            await bench.outcome(await bench.decide("cold"), "warm")
        rule = await bench.rule()

        # Another version learns for a while.
        await second_version(bench)
        for _ in range(3):
            await bench.outcome(await bench.decide("cold"), "cold")
        assert bench.engine.policy(ROOM).evidence == 3
        other_rule = await bench.rule()

        # Back, and there again.
        view = await bench.engine.rollback(ROOM, 1, "ann")
        assert (view.settings.version, view.evidence) == (1, 5)
        assert await bench.rule() == rule
        await bench.outcome(await bench.decide("cold"), "warm")
        assert bench.engine.policy(ROOM).evidence == 6
        await bench.engine.rollback(ROOM, 2, "ann")
        assert await bench.rule() == other_rule
        assert (await bench.engine.replay(ROOM)).equal

    async with opened(tmp_path, bench.clock) as again:
        assert await again.rule() == other_rule
        await again.engine.rollback(ROOM, 1, "ann")
        assert again.engine.policy(ROOM).evidence == 6


async def test_decisions_go_on_while_a_version_is_changed(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        await bench.engine.add_version(ROOM, room_file(seed=1), b"other", "", "tester")

        async def decide_all() -> list[int]:
            return [(await bench.decide("cold")).policy_version for _ in range(200)]

        versions, _ = await asyncio.gather(decide_all(), bench.change(version=2))
        versions.append((await bench.decide("cold")).policy_version)

        assert versions == sorted(versions)
        assert versions[-1] == 2
        assert (await bench.engine.replay(ROOM)).equal


async def test_a_change_keeps_its_reason(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        await bench.change(mode="shadow")
        await bench.change(mode="live", reason="despite alarm: a trial")
        last = ("tester", "settings", {"mode": "shadow"})

        assert audits(bench)[-1] == (*last, {"mode": "live", "reason": "despite alarm: a trial"})
        assert bench.engine.policy(ROOM).settings.mode == "live"
