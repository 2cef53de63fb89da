"""Tests of restarts and replays: the same history gives the same state, to the last bit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from pastwise.errors import ReplayError
from pastwise.service import outcomes
from pastwise.service.changes import Caller
from pastwise.service.policy import ServedPolicy
from pastwise.service.replay import Replay, load_policy, replay, rule_of
from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from pastwise.service.store.retention import retain
from pastwise.service.store.rows import Insert, PolicyRow, VersionRow
from pastwise.service.types import DecideRequest, OutcomeRequest, PolicySettings
from pastwise.service.versions import ServedVersion
from pastwise.service.views import settings_of, settings_text, version_view
from tests.helpers.engines import ROOM, STATES, opened, refused, room_engine, room_file

NOW = 1_800_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    store = open_store(tmp_path / "data")
    yield store
    store.close()


class Loop:
    """A policy without an engine: each change is committed at once."""

    def __init__(self, store: Store, snapshot_every: int = 100_000, **settings: object) -> None:
        self.store = store
        text = settings_text(PolicySettings(**{"mode": "live", **settings}))  # type: ignore[arg-type]
        row = PolicyRow(ROOM, text, 1, NOW)
        self.policy = ServedPolicy(row, None, 0, 0, snapshot_every)
        store.submit([Insert(row)]).result()
        self.add_version(0)

    def add_version(self, seed: int) -> None:
        """A version from another log."""
        number = len(self.store.versions(ROOM)) + 1
        row = VersionRow(ROOM, number, "", room_file(seed=seed), b"seed", "", "[]", "me", NOW)
        version = ServedVersion.load(row)
        change = self.policy.add_version(row, version, version_view(row), NOW)
        self.store.submit(change.writes).result()

    def use(self, version: ServedVersion) -> None:
        """Switch to a version."""
        settings = settings_of(self.policy.row.settings)
        changed = PolicySettings(mode=settings.mode, version=version.number)
        self.store.submit(self.policy.change_settings(changed, version, "me", NOW).writes).result()

    def step(self, state: str, next_state: str | None) -> None:
        """A decision, and its outcome if there is one."""
        change = self.policy.decide(DecideRequest(state=state), Caller("tok"), NOW)
        self.store.submit(change.writes).result()
        if next_state is None:
            return
        decision = self.store.decision(change.answer.decision_id)
        assert decision is not None
        assert self.policy.version is not None
        request = OutcomeRequest(next_state=next_state)
        report = outcomes.report(
            self.policy, decision, None, self.policy.version, request, "tok", NOW
        )
        self.store.submit(report.writes).result()

    def steps(self, number: int, seed: int = 0) -> list[tuple[int, bytes]]:
        """Random steps; the number of the last event and the state after each."""
        rng = np.random.default_rng(seed)
        found = []
        for _ in range(number):
            next_state = str(rng.choice(STATES)) if rng.random() < 0.8 else None
            self.step(str(rng.choice(STATES[:3])), next_state)
            assert self.policy.version is not None
            found.append((self.policy.seq, self.policy.version.state_hash()))
        return found

    def reloaded(self) -> ServedPolicy:
        """The policy as it is stored."""
        row = self.store.policy(ROOM)
        assert row is not None
        return load_policy(self.store, row, 100_000)


@pytest.mark.parametrize("snapshot_every", [100_000, 7])
def test_a_replay_is_equal_to_the_last_bit_after_any_prefix(
    store: Store, snapshot_every: int
) -> None:
    loop = Loop(store, snapshot_every)
    for seq, state_hash in loop.steps(40):
        history = Replay(store, ROOM)
        history.run(seq)

        assert history.events == seq
        assert history.version(1).state_hash() == state_hash


@pytest.mark.parametrize("snapshot_every", [100_000, 7])
def test_a_restart_continues_to_the_last_bit(store: Store, snapshot_every: int) -> None:
    loop = Loop(store, snapshot_every)
    loop.steps(40)
    again = loop.reloaded()

    assert again.version is not None
    assert loop.policy.version is not None
    assert again.version.state_hash() == loop.policy.version.state_hash()
    assert again.view() == loop.policy.view()
    for state in STATES[:3]:
        assert again.rule(state) == loop.policy.rule(state)
        dry = DecideRequest(state=state, dry_run=True)
        one = again.decide(dry, Caller("tok"), NOW).answer
        two = loop.policy.decide(dry, Caller("tok"), NOW).answer
        assert one == two
    assert bool(store.newest_snapshot(ROOM, 1)) == (snapshot_every == 7)


def test_snapshots_are_made_after_as_many_events_as_requested(store: Store) -> None:
    loop = Loop(store, snapshot_every=10)
    loop.steps(40)
    numbers = [snapshot.seq for snapshot in store.snapshots(ROOM, 1)]

    assert numbers == list(range(10, loop.policy.seq + 1, 10))


def test_a_replay_follows_changes_of_versions(store: Store) -> None:
    loop = Loop(store)
    loop.steps(10, seed=1)
    first = loop.policy.version
    assert first is not None
    loop.add_version(5)
    second_row = store.version(ROOM, 2)
    assert second_row is not None
    second = ServedVersion.load(second_row)
    loop.use(second)
    loop.steps(10, seed=2)
    loop.use(first)
    loop.steps(10, seed=3)
    history = Replay(store, ROOM)
    history.run()

    assert history.version(1).state_hash() == first.state_hash()
    assert history.version(2).state_hash() == second.state_hash()
    assert replay(store, ROOM, 1).equal
    assert store.newest_snapshot(ROOM, 2) is not None


def test_a_replay_reports_its_progress(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pastwise.service.replay.STEP", 10)
    loop = Loop(store)
    loop.steps(20)
    steps: list[int] = []
    view = replay(store, ROOM, 1, on_step=steps.append)

    assert steps == list(range(10, loop.policy.seq + 1, 10))
    assert view.events == loop.policy.seq


# Differences.

TAMPERED = [
    ("update decision set propensity = propensity + 1e-16 where seq = ?", "probability"),
    ("update decision set action = 'vent', propensity = 0.5 where seq = ?", "'vent'"),
    ("update decision set evidence = evidence + 1 where seq = ?", "records"),
    ("update decision set state = 'nowhere' where seq = ?", "probability"),
    ("update decision set allowed = '[\"nothing\"]' where seq = ?", "cannot be made again"),
]


def tamper(folder: Path, sql: str, *parameters: object) -> None:
    """Change the database behind the store's back."""
    with closing(sqlite3.connect(folder / "service.sqlite")) as database:
        assert database.execute(sql, parameters).rowcount == 1
        database.commit()


@pytest.mark.parametrize(("sql", "found"), TAMPERED)
def test_a_decision_that_comes_out_otherwise_stops_the_start(
    store: Store, tmp_path: Path, sql: str, found: str
) -> None:
    loop = Loop(store)
    for state in ("cold", "mild", "cold"):
        loop.step(state, "warm")
    tamper(tmp_path / "data", sql, 4)
    with pytest.raises(ReplayError, match=f"policy 'thermostat', event 4 .*{found}"):
        loop.reloaded()

    view = replay(store, ROOM, 1)
    assert not view.equal
    assert view.events == 3
    assert view.difference is not None
    assert "event 4 " in view.difference


def test_another_outcome_shows_in_what_was_decided_afterwards(store: Store, tmp_path: Path) -> None:
    loop = Loop(store)
    for _ in range(3):
        loop.step("cold", "warm")
    tamper(tmp_path / "data", "update outcome set next_state = 'cold' where seq = ?", 5)

    # The outcome 5 followed the decision 4; the next decision in the state is 6.
    with pytest.raises(ReplayError, match="event 6 "):
        loop.reloaded()


def test_an_outcome_that_is_gone_stops_the_start(store: Store, tmp_path: Path) -> None:
    loop = Loop(store)
    for _ in range(3):
        loop.step("cold", "warm")
    tamper(tmp_path / "data", "delete from outcome where seq = ?", 3)
    with pytest.raises(ReplayError, match=r"event 4 .*records"):
        loop.reloaded()


def test_a_snapshot_that_does_not_fit_stops_the_start(store: Store, tmp_path: Path) -> None:
    loop = Loop(store, snapshot_every=5)
    loop.steps(20)
    newest = store.newest_snapshot(ROOM, 1)
    assert newest is not None
    sql = "update snapshot set hash = x'00' where seq = ?"
    tamper(tmp_path / "data", sql, newest.seq)

    with pytest.raises(ReplayError, match=f"policy 'thermostat', version 1, event {newest.seq}"):
        loop.reloaded()
    assert not replay(store, ROOM, 1).equal


def test_a_damaged_policy_file_is_named(store: Store, tmp_path: Path) -> None:
    loop = Loop(store)
    loop.step("cold", "warm")
    sql = "update version set artefact = x'00' where version = ?"
    tamper(tmp_path / "data", sql, 1)
    with pytest.raises(ReplayError, match="policy 'thermostat', version 1: the policy file"):
        loop.reloaded()


@pytest.mark.anyio
@pytest.mark.parametrize("version", [1, 2])
async def test_snapshots_of_two_versions_at_one_event_are_compared(
    tmp_path: Path, version: int
) -> None:
    async with room_engine(tmp_path) as bench:
        await bench.outcome(await bench.decide("cold"))
        await bench.engine.add_version(ROOM, room_file(seed=1), b"other", "", "tester")
        await bench.change(version=2)
    async with opened(tmp_path):
        pass  # the end makes a snapshot of the second version, too
    sql = "update snapshot set hash = x'00' where seq = 4 and version = ?"
    tamper(tmp_path, sql, version)
    with closing(open_store(tmp_path)) as store:
        view = replay(store, ROOM, 1)

    assert not view.equal
    assert f"version {version}, event 4" in str(view.difference)


@pytest.mark.anyio
async def test_an_engine_does_not_start_on_a_history_that_differs(tmp_path: Path) -> None:
    async with room_engine(tmp_path) as bench:
        await bench.decide("cold")
    tamper(tmp_path, "update decision set propensity = 0.5 where seq = ?", 2)
    tamper(tmp_path, "delete from snapshot where seq = ?", 2)
    with pytest.raises(ReplayError, match="event 2 "):
        async with opened(tmp_path):
            pass


# Retention.


def test_a_replay_starts_where_retention_left_off(store: Store, tmp_path: Path) -> None:
    loop = Loop(store, snapshot_every=10)
    loop.steps(30)
    day = 24 * 3600 * 1000
    kept = retain(store, ROOM, tmp_path / "old", now=NOW + 2 * day, retention_days=1.0)  # type: ignore[arg-type]
    loop.steps(5)
    view = replay(store, ROOM, 1)

    assert kept.decisions > 0
    assert view.equal
    assert loop.policy.version is not None
    assert view.state_hash == loop.policy.version.state_hash().hex()
    assert loop.reloaded().rule("cold") == loop.policy.rule("cold")


def test_the_rule_of_a_decision_is_gone_with_what_was_learned_before(
    store: Store, tmp_path: Path
) -> None:
    loop = Loop(store)
    for _ in range(6):
        loop.step("cold", "warm")
    store.submit(loop.policy.snapshot()).result()
    loop.step("cold", "warm")
    day = 24 * 3600 * 1000
    with closing(sqlite3.connect(tmp_path / "data" / "service.sqlite")) as database:
        database.execute("update decision set at = at - ? where seq <= 6", [3 * day])
        database.commit()
    kept = retain(store, ROOM, tmp_path / "old", now=NOW, retention_days=1.0)  # type: ignore[arg-type]
    decisions = [item.decision for item in store.history(ROOM) if item.kind == "decision"]
    assert kept.decisions + len(decisions) == 7

    for decision_id in decisions[:-1]:
        decision = store.decision(str(decision_id))
        assert decision is not None
        with refused("gone"):
            rule_of(store, decision)
    decision = store.decision(str(decisions[-1]))
    assert decision is not None
    assert rule_of(store, decision).rule[decision.action] == decision.propensity


@pytest.mark.anyio
@pytest.mark.parametrize("snapshot_every", [3, 1000])
async def test_the_rule_of_a_decision_is_the_one_it_was_sampled_from(
    tmp_path: Path, snapshot_every: int
) -> None:
    options = {"snapshot_every": snapshot_every}
    async with room_engine(tmp_path, options=options, floor=0.05) as bench:
        rules = []
        for next_state in ("warm", "mild", "cold", "warm"):
            rule = await bench.rule("cold")
            decision = await bench.decide("cold")
            rules.append((decision, rule))
            await bench.outcome(decision, next_state)

        for decision, rule in rules:
            found = await bench.engine.rule_of_decision(decision.decision_id)
            assert found.rule == rule
            assert found.rule[decision.action] == decision.propensity
            assert found.evidence == decision.evidence
        assert rules[0][1] != rules[-1][1]
