"""Uploads: whole files of known kinds, or nothing."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import stat
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file

import pastwise
from pastwise.service.problems import Problem
from pastwise.service.uploads import (
    BLOCK,
    HEAD,
    SYNCED,
    Upload,
    receive,
    remove,
    remove_partial,
    stored,
)
from tests.helpers.disk import full_disk

CSV = b"state,action,then\ncold,heat,warm\nwarm,idle,cold\n"
COLUMNS = {"state": "state", "action": "action", "next_state": "then"}


async def chunks_of(content: bytes | Iterable[bytes], size: int = 60_000) -> AsyncIterator[bytes]:
    if isinstance(content, bytes):
        content = [content[i : i + size] for i in range(0, len(content), size)]
    for chunk in content:
        yield chunk


def upload(
    content: bytes, folder: Path, limit: int = 2**31, announced: int | None = None
) -> Upload:
    return asyncio.run(receive(chunks_of(content), folder, limit, announced))


def refused(
    content: bytes, folder: Path, limit: int = 2**31, announced: int | None = None
) -> Problem:
    """The problem of an upload that leaves nothing behind."""
    with pytest.raises(Problem) as caught:
        upload(content, folder, limit, announced)
    assert not folder.exists() or not list(folder.iterdir())
    return caught.value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


def parquet_file(path: Path) -> bytes:
    pq.write_table(pa.table({"state": ["cold"], "action": ["heat"], "then": ["warm"]}), path)
    return path.read_bytes()


def policy_file(path: Path) -> bytes:
    log = {"state": ["cold", "warm"] * 9, "action": ["heat", "idle"] * 9, "then": ["warm"] * 18}
    learner = pastwise.TransferLearner(pastwise.Goal(prefer={"warm": 1.0}))
    learner.fit(log, COLUMNS).save(path)
    return path.read_bytes()


def test_a_file_arrives_as_it_was_sent(folder: Path) -> None:
    content = b"state,action\n" + np.random.default_rng(1).bytes(3 * BLOCK).hex().encode()
    found = upload(content, folder, announced=len(content))
    assert found.path.read_bytes() == content
    assert found.bytes == len(content)
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert found.kind == "csv"
    assert stored(folder, found.id) == found.path


def test_a_large_file_is_flushed_on_the_way(folder: Path) -> None:
    content = b"state,action\n" * (SYNCED // 10)
    found = upload(content, folder)
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert found.path.stat().st_size == len(content)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        upload(CSV, tmp_path / "file" / "uploads")


def test_nobody_else_can_read_it(folder: Path) -> None:
    found = upload(CSV, folder)
    assert stat.S_IMODE(found.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_kinds_are_found_in_the_content(folder: Path, tmp_path: Path) -> None:
    policy = policy_file(tmp_path / "policy")
    counts, columns = pastwise.load_counts(tmp_path / "policy")
    pastwise.save_counts(counts, tmp_path / "counts", columns)
    contents = {
        "csv": CSV,
        "json": b'\xef\xbb\xbf{"state": "cold", "action": "heat"}\n',
        "parquet": parquet_file(tmp_path / "log"),
        "policy": policy,
        "counts": (tmp_path / "counts").read_bytes(),
    }
    assert {kind: upload(content, folder).kind for kind, content in contents.items()} == {
        kind: kind for kind in contents
    }


def test_a_log_that_arrived_can_be_read(folder: Path, tmp_path: Path) -> None:
    line = b'{"state": "cold", "action": "heat", "then": "warm"}\n'
    for content, rows in ((CSV, 2), (parquet_file(tmp_path / "log"), 1), (3 * line, 3)):
        path = upload(content, folder).path
        assert pastwise.validate_log(path, COLUMNS).rows == rows


def mistakes() -> dict[str, tuple[bytes, str]]:
    """Files that people send, and what the answer names."""
    return {
        "log.csv.gz": (gzip.compress(CSV), "gzip"),
        "bomb.gz": (gzip.compress(bytes(10_000_000)), "gzip"),
        "log.zip": (b"PK\x03\x04" + bytes(100), "zip archive"),
        "log.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "Excel"),
        "letter.pdf": (b"%PDF-1.7\n", "PDF"),
        "page.html": (b"<!doctype html>", "HTML"),
        "array.json": (b'[{"state": 1}]', "JSON array"),
        "nul.csv": (b"state,action\ncold\0,heat\n", "NUL bytes"),
        "utf-16.csv": ("state,action\n".encode("utf-16"), "UTF-16"),
        "latin-1.csv": ("état,action\n".encode("latin-1"), "UTF-8 (byte 1)"),
        "blank.csv": (b" \n\n  \n", "white space"),
        "cut.parquet": (b"PAR1" + bytes(100), "cut short"),
        "short.parquet": (b"PAR1PAR1", "cut short"),
        "random.bin": (np.random.default_rng(3).bytes(500), "text"),
        "cut.safetensors": ((1000).to_bytes(8, "little") + b'{"a": 1', "cut short"),
        "damaged.safetensors": ((9).to_bytes(8, "little") + b'{"a": nul', "damaged"),
        "database.db": (b"SQLite format 3\x00" + bytes(84), "SQLite"),
    }


@pytest.mark.parametrize("name", mistakes())
def test_other_files_are_refused_with_advice(folder: Path, name: str) -> None:
    content, named = mistakes()[name]
    problem = refused(content, folder)
    assert (problem.slug, problem.status) == ("unsupported-kind", 415)
    assert named in problem.detail


def test_a_foreign_safetensors_file_is_refused(folder: Path, tmp_path: Path) -> None:
    save_file({"rule": np.ones(3)}, tmp_path / "model")
    problem = refused((tmp_path / "model").read_bytes(), folder)
    assert problem.slug == "unsupported-kind"
    assert "not one of pastwise" in problem.detail


def test_a_character_may_straddle_what_is_looked_at(folder: Path) -> None:
    content = b"a" * (HEAD - 1) + "é,b\n".encode() * 10
    found = upload(content, folder)
    assert found.kind == "csv"
    asyncio.run(remove(folder, found.id))
    assert refused(b"abc" + "é".encode()[:1], folder).slug == "unsupported-kind"


def test_an_empty_file_is_refused(folder: Path) -> None:
    problem = refused(b"", folder)
    assert (problem.slug, problem.status) == ("malformed", 400)


def test_the_limit_holds_before_and_while_reading(folder: Path) -> None:
    assert upload(CSV, folder, limit=len(CSV)).bytes == len(CSV)
    asyncio.run(remove(folder, next(folder.iterdir()).stem))
    for announced in (None, len(CSV)):
        problem = refused(CSV, folder, limit=len(CSV) - 1, announced=announced)
        assert (problem.slug, problem.status) == ("too-large", 413)
        assert problem.extra == {"limit": len(CSV) - 1, "option": "--max-upload"}
        assert "--max-upload" in problem.detail


def test_an_endless_upload_ends_at_the_limit(folder: Path) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 65536
            yield bytes(65536)

    with pytest.raises(Problem, match="at most"):
        asyncio.run(receive(endless(), folder, 10 * BLOCK))
    assert taken <= 10 * BLOCK + 65536
    assert not list(folder.iterdir())


@pytest.mark.parametrize("announced", [0, 1, len(CSV) - 1, len(CSV) + 1, 10**9])
def test_a_lying_content_length_is_refused(folder: Path, announced: int) -> None:
    problem = refused(CSV, folder, announced=announced)
    assert (problem.slug, problem.status) == ("length-mismatch", 400)
    assert str(announced) in problem.detail


def test_a_full_disk_is_said_and_leaves_nothing(folder: Path) -> None:
    with full_disk(BLOCK):
        problem = refused(b"a,b\n" * BLOCK, folder)
    assert (problem.slug, problem.status) == ("disk-full", 507)


def test_a_client_that_goes_away_leaves_nothing(folder: Path) -> None:
    async def vanishing() -> AsyncIterator[bytes]:
        yield bytes(2 * BLOCK)
        raise ConnectionResetError("gone")

    with pytest.raises(ConnectionResetError):
        asyncio.run(receive(vanishing(), folder, 2**31, None))
    assert not list(folder.iterdir())


def test_a_cancelled_upload_leaves_nothing(folder: Path) -> None:
    async def body() -> None:
        started = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            while True:
                yield bytes(BLOCK)
                started.set()

        task = asyncio.ensure_future(receive(slow(), folder, 2**31, None))
        await started.wait()
        assert [path.suffix for path in folder.iterdir()] == [".part"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(body())
    assert not list(folder.iterdir())


def test_many_uploads_at_once_do_not_mix(folder: Path) -> None:
    contents = [f"column {i}\n".encode() * 50_000 for i in range(8)]

    async def body() -> list[Upload]:
        return await asyncio.gather(
            *[receive(chunks_of(each), folder, 2**31, None) for each in contents]
        )

    found = asyncio.run(body())
    assert [each.path.read_bytes() for each in found] == contents


@pytest.mark.parametrize("name", ["../secret", "up_x", "", "/etc/passwd", "up_" + "0" * 24 + "/.."])
def test_an_id_is_never_a_path(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.csv").write_bytes(CSV)
    folder.mkdir()
    assert stored(folder, name) is None
    assert asyncio.run(remove(folder, name)) is False
    assert (tmp_path / "secret.csv").exists()


def test_a_link_in_the_folder_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_bytes(CSV)
    folder.mkdir()
    name = "up_" + "0" * 24
    (folder / f"{name}.csv").symlink_to(tmp_path / "secret.csv")
    assert stored(folder, name) is None


def test_what_a_killed_service_left_is_removed(folder: Path) -> None:
    kept = upload(CSV, folder)
    (folder / "up_abc.part").write_bytes(b"half")
    assert remove_partial(folder) == 1
    assert list(folder.iterdir()) == [kept.path]
    assert asyncio.run(remove(folder, kept.id)) is True
    assert not list(folder.iterdir())
