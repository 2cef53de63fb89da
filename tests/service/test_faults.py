"""Faults of the machine: damaged files, a full disk, a clock set back, a database that dies."""

from __future__ import annotations

import mmap
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from pastwise.errors import ServiceError
from pastwise.service.engine import Engine
from tests.helpers.crash import DATABASE, Load, Stored, require_durable, stored_in
from tests.helpers.disk import has_small_disks, seen_from_outside, small_disk
from tests.helpers.engines import ROOM, Bench, Clock, opened, room_engine
from tests.helpers.postgres import PostgresServer, require_postgres
from tests.helpers.server import POLICY, Server, deploy, write_policy

Happened = list[tuple[int, str, str | None]]


def happened(engine: Engine) -> Happened:
    """All that is stored of the policy, in order."""
    return [(item.seq, item.kind, item.decision) for item in engine.store.history(ROOM)]


async def busy(bench: Bench, steps: int = 40) -> None:
    """Decide and report, each in a transaction of its own."""
    for _ in range(steps):
        decision = await bench.decide("cold")
        await bench.outcome(decision, "mild")


# Damaged files.


def cut(content: bytes, rng: random.Random) -> bytes:
    """The beginning of a file."""
    return content[: rng.randrange(len(content))]


def with_another_bit(content: bytes, rng: random.Random) -> bytes:
    """A file with one bit flipped."""
    damaged = bytearray(content)
    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


@pytest.mark.anyio
@pytest.mark.parametrize("damage", [cut, with_another_bit])
async def test_a_damaged_log_is_read_up_to_the_damage(
    tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    # Files of a store that was not closed: as after a crash.
    folder = tmp_path / "data"
    crashed = tmp_path / "crashed"
    async with room_engine(folder) as bench:
        await busy(bench)
        before = happened(bench.engine)
        crashed.mkdir()
        for file in folder.glob(f"{DATABASE}*"):
            shutil.copy(file, crashed)
    log = f"{DATABASE}-wal"
    content = (crashed / log).read_bytes()

    rng = random.Random(0)
    lengths = set()
    for number in range(10):
        damaged = tmp_path / str(number)
        shutil.copytree(crashed, damaged)
        (damaged / f"{DATABASE}-shm").unlink(missing_ok=True)
        (damaged / log).write_bytes(damage(content, rng))

        # What is left is a prefix, and the service goes on from there.
        async with opened(damaged) as bench:
            after = happened(bench.engine)
            assert after == before[: len(after)]
            lengths.add(len(after))
            if bench.engine.policies() and bench.engine.policy(ROOM).settings.version:
                assert (await bench.engine.replay(ROOM)).equal
                await bench.decide("cold")
                assert bench.engine.policy(ROOM).seq == len(after) + 1
    assert len(lengths) > 3


# Time.


@pytest.mark.anyio
async def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path) -> None:
    clock = Clock()
    async with room_engine(tmp_path, clock=clock, outcome_due_s=60.0) as bench:
        first = await bench.decide("cold")
        clock.pass_seconds(-3600)
        second = await bench.decide("cold")
        third = await bench.decide("cold")
        assert (await bench.outcome(second)).status == "learned"
        assert await bench.engine.sweep() == 0
        before = happened(bench.engine)

    # After a restart with the same clock, everything is where it was.
    async with opened(tmp_path, clock) as bench:
        assert happened(bench.engine) == before
        assert (await bench.engine.replay(ROOM)).equal
        assert (await bench.outcome(first)).status == "learned"

        # Its own time is up for the third, by the clock that it was made by.
        clock.pass_seconds(61)
        assert await bench.engine.sweep() == 1
        assert bench.status(third) == "missing"
        assert len({first.decision_id, second.decision_id, third.decision_id}) == 3


# Processes.


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server with a live policy."""
    with Server(tmp_path / "data") as running:
        with running.client() as client:
            deploy(client, write_policy(tmp_path / "policy.safetensors"))
        yield running


def test_a_second_process_on_one_folder_is_refused(server: Server, tmp_path: Path) -> None:
    second = Server(server.folder)
    second.journal = tmp_path / "second.journal"
    half = server.folder / "uploads" / "up_0.part"
    half.parent.mkdir(exist_ok=True)
    half.write_bytes(b"an upload of the first process")
    second.launch()
    assert second.wait() == 2
    assert f"in use by process {server.process.pid}" in second.said()
    assert half.exists()
    with server.client(retries=0) as client:
        client.decide(POLICY, "cool")


def test_sigterm_under_load_ends_in_order(server: Server) -> None:
    with Load(server.url, server.token) as load:
        time.sleep(0.5)
        assert server.stop() == 0
        require_durable(load, stored_in(server.folder))
        acknowledged = len(load.decisions)
        server.start()
        wait_until(lambda: len(load.decisions) > acknowledged)
    require_durable(load, stored_in(server.folder))


def test_a_full_disk_stops_decisions_until_there_is_space(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    if not has_small_disks(folder):
        pytest.skip("a small disk needs user namespaces, or root")
    with Server(folder, prefix=small_disk(folder, "6m")) as server:
        with server.client() as client:
            deploy(client, write_policy(tmp_path / "policy.safetensors"))
        disk = seen_from_outside(folder, server.process.pid)
        ballast = disk / "ballast"

        # There is room for an upload, and none for the note on it.
        require_uploads(server, 201)
        ballast.write_bytes(bytes(shutil.disk_usage(disk).free - mmap.PAGESIZE))
        require_uploads(server, 507)
        ballast.unlink()
        ballast.write_bytes(bytes(shutil.disk_usage(disk).free - 400_000))

        with Load(server.url, server.token) as load:
            wait_until(lambda: not server.is_ready())
            refusal = first_refusal(server)
            assert (refusal.status, refusal.slug) == (507, "disk-full")
            acknowledged = len(load.decisions)
            ballast.unlink()
            wait_until(lambda: len(load.decisions) > acknowledged)
        require_durable(load, stored_in(disk))
        assert server.is_ready()
        require_equal_replay(server)


# PostgreSQL.


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    """A database server of its own, since the test kills it."""
    running = PostgresServer(require_postgres())
    yield running
    running.remove()


def test_a_database_that_dies_under_load_loses_nothing(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url()
    with Server(tmp_path / "data", "--database", url) as server:
        with server.client() as client:
            deploy(client, write_policy(tmp_path / "policy.safetensors"))
        with Load(server.url, server.token) as load:
            wait_until(lambda: len(load.outcomes) > 20)
            postgres.kill()
            wait_until(lambda: not server.is_ready())
            acknowledged = len(load.decisions)
            postgres.start()
            wait_until(lambda: len(load.decisions) > acknowledged)

        with psycopg.connect(url) as connection:
            stored = Stored.read(lambda sql: connection.execute(sql.encode()).fetchall())
        require_durable(load, stored)
        require_equal_replay(server)

        # A service that nobody uses notices, too, and still ends in order.
        postgres.kill()
        wait_until(lambda: not server.is_ready())
        assert server.stop() == 0
        postgres.start()


def test_a_database_that_hangs_is_noticed_and_holds_up_no_stop(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url()
    with Server(tmp_path / "data", "--database", url) as server:
        with server.client() as client:
            deploy(client, write_policy(tmp_path / "policy.safetensors"))
        with Load(server.url, server.token, clients=1) as load:
            wait_until(lambda: len(load.outcomes) > 0)
            postgres.freeze()
            try:
                wait_until(lambda: not server.is_ready())
                assert server.stop() == 0
            finally:
                postgres.thaw()

            # Who waited for an answer repeats the request; nothing is lost and nothing is twice.
            acknowledged = len(load.decisions)
            server.start()
            wait_until(lambda: len(load.decisions) > acknowledged)

        with psycopg.connect(url) as connection:
            stored = Stored.read(lambda sql: connection.execute(sql.encode()).fetchall())
        require_durable(load, stored)


def test_a_standby_takes_over_from_a_leader_that_is_killed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = postgres.url()
    leader = Server(tmp_path / "leader", "--database", url, "--public-url", "http://one.example")
    standby = Server(tmp_path / "standby", "--database", url)
    with leader, standby:
        with leader.client() as client:
            deploy(client, write_policy(tmp_path / "policy.safetensors"))
        with Load(leader.url, leader.token) as load:
            wait_until(lambda: standby_refuses(standby))
            wait_until(lambda: len(load.outcomes) > 20)
            leader.kill()

            # The standby goes on where the leader was.
            with standby.client(retries=12) as client:
                decision = client.decide(POLICY, "cool")
                client.outcome(decision.decision_id, "warm")
            standby.stop()
            leader.start()

        with psycopg.connect(url) as connection:
            stored = Stored.read(lambda sql: connection.execute(sql.encode()).fetchall())
        require_durable(load, stored)
        assert stored.outcomes[decision.decision_id].next_state == "warm"
        require_equal_replay(leader)


# Helpers.


def standby_refuses(standby: Server) -> bool:
    """Whether a standby knows the policy, and names who leads it."""
    try:
        with standby.client(retries=0) as client:
            client.decide(POLICY, "cool")
    except ServiceError as error:
        return error.members.get("leader") == "http://one.example"
    return False


def wait_until(is_true: Callable[[], bool], patience: float = 60.0) -> None:
    """Wait for something that must happen."""
    until = time.monotonic() + patience
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.02)


def require_uploads(server: Server, status: int) -> None:
    """Upload a log, which gets this status; one log is listed and stored then."""
    headers = {"Authorization": f"Bearer {server.token}"}
    url = f"{server.url}/v1/logs"
    answer = httpx.post(url, content=b"a,b\n1,2\n", headers=headers)
    assert answer.status_code == status
    assert len(httpx.get(url, headers=headers).json()["items"]) == 1
    disk = seen_from_outside(server.folder, server.process.pid)
    assert len(list((disk / "uploads").iterdir())) == 2


def first_refusal(server: Server) -> ServiceError:
    """What the service says when it does not decide any more."""
    with server.client(retries=0) as client:
        for _ in range(100_000):
            try:
                client.decide(POLICY, "cool")
            except ServiceError as error:
                return error
    raise AssertionError("the service decides and decides")


def require_equal_replay(server: Server) -> None:
    """The stored events lead from the policy file to the decisions that were made."""
    with server.client() as client:
        job = client.finished(client.replay(POLICY).id)
    assert job.result is not None, job.problem
    assert job.result["equal"] is True
