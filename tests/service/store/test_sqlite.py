"""SQLite in its folder: one process, damage, a full disk, and copies."""

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pastwise.errors import FileError
from pastwise.service.store import open_store
from pastwise.service.store.base import Store
from pastwise.service.store.rows import Insert
from pastwise.service.store.sqlite import SqliteStore
from tests.helpers.disk import full_disk, has_small_disks, small_disk
from tests.helpers.service_rows import POLICY, decision

WRITE_AND_DIE = """
import os, sys
from pathlib import Path
from pastwise.service.store import open_store
from pastwise.service.store.rows import Insert
from tests.helpers.service_rows import decision

store = open_store(Path(sys.argv[1]))
for seq in range(1, int(sys.argv[2]) + 1):
    store.submit([Insert(decision(seq))]).result()
os.kill(os.getpid(), 9)
"""

HOLD = """
import sys
from pathlib import Path
from pastwise.service.store import open_store

store = open_store(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""

FILL_THE_DISK = """
import sys
from pathlib import Path
from pastwise.errors import StoreError
from pastwise.service.store import open_store
from pastwise.service.store.rows import Insert
from tests.helpers.service_rows import POLICY, decision

def seqs():
    return [item.seq for item in store.history(POLICY)]

ballast = Path(sys.argv[1]) / "ballast"
ballast.write_bytes(b"x" * 900_000)
store = open_store(Path(sys.argv[1]) / "data")

# Until the disk is full.
acknowledged = 0
try:
    while True:
        store.submit([Insert(decision(acknowledged + 1, context="x" * 1000))]).result()
        acknowledged += 1
except StoreError as error:
    assert error.full, error
assert acknowledged > 10

# Reading works, writing does not.
assert seqs() == list(range(1, acknowledged + 1))
try:
    store.submit([Insert(decision(acknowledged + 1))]).result()
    raise AssertionError("written on a full disk")
except StoreError as error:
    assert "no space left" in str(error)

# Space is freed.
ballast.unlink()
store.resume()
store.submit([Insert(decision(acknowledged + 1))]).result()
store.close()
store = open_store(Path(sys.argv[1]) / "data")
assert seqs() == list(range(1, acknowledged + 2))
store.close()
print("stopped and went on")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def seqs(store: Store) -> list[int]:
    return [item.seq for item in store.history(POLICY)]


def write_and_die(folder: Path, number: int) -> None:
    """A process stores decisions, one commit for each, and is killed."""
    command = [sys.executable, "-c", WRITE_AND_DIE, str(folder), str(number)]
    assert subprocess.run(command).returncode == -9


def test_a_second_process_is_refused_with_the_number_of_the_first(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        with pytest.raises(FileError, match=rf"in use by process {holder.pid}\b"):
            open_store(folder)
        holder.communicate("")
    open_store(folder).close()


def test_the_folder_of_a_killed_process_is_free(folder: Path) -> None:
    write_and_die(folder, 3)
    store = open_store(folder)
    assert seqs(store) == [1, 2, 3]
    store.close()


def test_a_failed_start_leaves_no_lock(folder: Path) -> None:
    folder.mkdir()
    (folder / "service.sqlite").write_bytes(
        b"not a database, but long enough to be read as one" * 99
    )
    for _ in range(2):
        with pytest.raises(FileError, match="not a database"):
            open_store(folder)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("damage", ["truncated", "bit flipped"])
def test_a_damaged_log_loses_only_its_end(folder: Path, damage: str, share: float) -> None:
    write_and_die(folder, 60)
    log = folder / "service.sqlite-wal"
    content = bytearray(log.read_bytes())
    place = int(share * len(content))
    if damage == "truncated":
        del content[place:]
    else:
        content[place] ^= 1
    log.write_bytes(content)

    store = open_store(folder)
    stored = seqs(store)
    assert stored == list(range(1, len(stored) + 1))
    assert len(stored) < 60

    # It goes on from there.
    store.submit([Insert(decision(len(stored) + 1))]).result()
    assert len(seqs(store)) == len(stored) + 1
    store.close()


def stored(folder: Path, number: int = 2000) -> Path:
    """A store that was closed in good order."""
    store = open_store(folder)
    store.submit([Insert(decision(seq)) for seq in range(1, number + 1)]).result()
    store.close()
    return folder / "service.sqlite"


def test_a_truncated_database_is_refused(folder: Path) -> None:
    path = stored(folder)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(FileError, match="damaged"):
        open_store(folder)


def test_a_database_with_overwritten_pages_is_refused(folder: Path) -> None:
    path = stored(folder)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    with pytest.raises(FileError, match=r"damaged.*[Rr]estore a backup"):
        open_store(folder)


def test_large_databases_are_checked_after_a_stop_that_was_not_clean(folder: Path) -> None:
    path = stored(folder)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    SqliteStore(folder, checked_bytes=1000).close()
    (folder / "service.sqlite-wal").write_bytes(b"left behind")
    with pytest.raises(FileError, match="damaged"):
        SqliteStore(folder, checked_bytes=1000)


def test_databases_of_others_are_refused(folder: Path) -> None:
    folder.mkdir()
    other = sqlite3.connect(folder / "service.sqlite")
    other.execute("create table precious (x)")
    other.close()
    with pytest.raises(FileError, match="another program"):
        open_store(folder)


def test_a_newer_schema_is_refused(folder: Path) -> None:
    path = stored(folder, 1)
    newer = sqlite3.connect(path)
    newer.execute("pragma user_version = 99")
    newer.close()
    with pytest.raises(FileError, match="newer version of pastwise"):
        open_store(folder)


def test_a_clean_stop_leaves_one_file_of_data(folder: Path) -> None:
    stored(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["service.lock", "service.sqlite"]


def test_the_log_stays_small_while_much_is_written(folder: Path) -> None:
    store = open_store(folder)
    for first in range(1, 25_000, 1000):
        rows = [Insert(decision(seq, context="x" * 1000)) for seq in range(first, first + 1000)]
        store.submit(rows).result()
    sizes = store.sizes()
    assert sizes["service.sqlite"] > 24 * 2**20
    assert sizes["service.sqlite-wal"] < 24 * 2**20
    store.close()


def test_a_backup_is_a_whole_store_of_one_moment(folder: Path, tmp_path: Path) -> None:
    store = open_store(folder)
    store.submit([Insert(decision(seq)) for seq in range(1, 500)]).result()
    pending = [store.submit([Insert(decision(seq))]) for seq in range(500, 800)]
    reader = open_store(folder, read_only=True)
    reader.backup(tmp_path / "copy.sqlite")
    reader.close()
    for future in pending:
        future.result()
    store.close()

    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copy(tmp_path / "copy.sqlite", restored / "service.sqlite")
    again = open_store(restored)
    copied = seqs(again)
    assert copied == list(range(1, len(copied) + 1))
    assert len(copied) >= 499
    again.close()


def test_a_backup_overwrites_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.sqlite").write_text("precious")
    store = open_store(folder)
    with pytest.raises(FileError, match="exists"):
        store.backup(tmp_path / "copy.sqlite")
    store.close()


def test_a_backup_that_finds_no_space_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    store = open_store(folder)
    store.submit([Insert(decision(seq)) for seq in range(1, 500)]).result()
    with full_disk(50_000), pytest.raises(FileError, match=r"copy\.sqlite cannot be written"):
        store.backup(tmp_path / "copy.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    store.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"file/data cannot be made"):
        open_store(tmp_path / "file" / "data")


def test_a_folder_that_cannot_be_locked_is_named(folder: Path) -> None:
    (folder / "service.lock").mkdir(parents=True)
    with pytest.raises(FileError, match=r"service\.lock cannot be written"):
        open_store(folder)


def test_a_full_disk_stops_writing_until_there_is_space(tmp_path: Path) -> None:
    if not has_small_disks(tmp_path):
        pytest.skip("this machine does not allow a small disk of one's own")
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [*small_disk(disk, "2m"), sys.executable, "-c", FILL_THE_DISK, str(disk)]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == "stopped and went on\n"
