"""Files appear whole or not at all, and errors say what cannot be written."""

from __future__ import annotations

import csv
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from pastwise import _files
from pastwise._files import replacing, require_regular_file, staged, write_columns
from pastwise.errors import FileError
from tests.helpers.disk import full_disk


def contents(folder: Path) -> dict[str, str]:
    """The files of a folder, hidden ones too."""
    return {path.name: path.read_text() for path in folder.iterdir()}


# One file


def test_file_takes_its_place_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
        assert temporary.parent == tmp_path
    assert contents(tmp_path) == {"file": "new"}


def test_file_has_the_usual_permissions(tmp_path: Path) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    with replacing(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "file").stat().st_mode == usual.stat().st_mode


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with replacing(tmp_path / "link") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_error_leaves_the_file_as_it_was(tmp_path: Path, error: BaseException) -> None:
    (tmp_path / "file").write_text("old")

    def fail() -> None:
        with replacing(tmp_path / "file") as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(type(error)):
        fail()
    assert contents(tmp_path) == {"file": "old"}


def test_full_disk_is_named_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")

    def fill() -> None:
        with replacing(tmp_path / "file") as temporary:
            temporary.write_text("x" * 1000)

    with full_disk(4), pytest.raises(FileError, match="file cannot be written: File too large"):
        fill()
    assert contents(tmp_path) == {"file": "old"}


def enter(path: Path) -> None:
    with replacing(path):
        raise AssertionError("nothing can be written here")


def test_target_that_cannot_be_replaced_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder; name a file"):
        enter(tmp_path)
    with pytest.raises(FileError, match=r"missing/file: no such folder: .*missing"):
        enter(tmp_path / "missing" / "file")
    with pytest.raises(FileError, match="is not a regular file"):
        enter(Path("/dev/null"))
    with pytest.raises(FileError, match="/sys/file cannot be written"):
        enter(Path("/sys/file"))


def test_read_only_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions do not bind root, so that the answer of the system is replaced."""
    (tmp_path / "file").touch()
    monkeypatch.setattr("os.access", lambda *_, **__: False)
    with pytest.raises(FileError, match="file is read-only; name another file"):
        enter(tmp_path / "file")


def test_check_sees_the_old_file_and_may_refuse_to_replace_it(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("old")

    def refuse(path: Path) -> None:
        assert path.read_text() == "old"
        raise FileError("not this one")

    def write() -> None:
        with replacing(target, check=refuse) as temporary:
            temporary.write_text("new")

    with pytest.raises(FileError, match="not this one"):
        write()
    assert contents(tmp_path) == {"file": "old"}


def test_file_and_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []

    def fsync(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr("os.fsync", fsync)
    with replacing(tmp_path / "file") as temporary:
        temporary.write_text("new")
    assert flushed == [temporary.name, tmp_path.name]
    flushed.clear()
    stage(tmp_path)
    assert flushed == [tmp_path.name]


# What killed processes leave


def dead_process() -> int:
    """Number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def leave(folder: Path, process: int, *, age: float, machine: str | None = None) -> Path:
    """A temporary file of a process, as old as stated in seconds."""
    path = folder / f".pastwise-{machine or _files._machine()}-{process}-0123abcd"
    path.write_text("half")
    then = path.stat().st_mtime - age
    os.utime(path, (then, then))
    return path


def write(folder: Path) -> None:
    with replacing(folder / "file") as temporary:
        temporary.write_text("new")


@pytest.mark.parametrize("write", [write, lambda folder: stage(folder)])
def test_old_temporary_files_of_dead_processes_are_removed(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    dead = dead_process()
    old_file = leave(tmp_path, dead, age=2 * _files.DAY)
    old_folder = tmp_path / f"{old_file.name}f"
    old_folder.mkdir()
    leave(old_folder, dead, age=2 * _files.DAY)
    os.utime(old_folder, (0, 0))
    write(tmp_path)
    assert not old_file.exists()
    assert not old_folder.exists()


def test_other_temporary_files_stay(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("recent", "alive", "elsewhere", "foreign")]
    for folder in folders:
        folder.mkdir()
    dead = dead_process()
    recent = leave(folders[0], dead, age=_files.DAY / 2)
    alive = leave(folders[1], os.getpid(), age=2 * _files.DAY)
    elsewhere = leave(folders[2], dead, age=2 * _files.DAY, machine="00000000")
    foreign = folders[3] / ".pastwise-notes"
    foreign.touch()
    os.utime(foreign, (0, 0))
    for folder in folders:
        write(folder)
    for kept in (recent, alive, elsewhere, foreign):
        assert kept.exists()


def test_killed_process_leaves_a_file_that_is_recognised(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pastwise._files import replacing\n"
        "with replacing(sys.argv[1]): os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, tmp_path / "file"], check=False)
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    os.utime(left, (0, 0))
    write(tmp_path)
    assert contents(tmp_path) == {"file": "new"}


# What may be read


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    require_regular_file(tmp_path / "file")
    require_regular_file(str(tmp_path / "link"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="pipe is a pipe, a device or a socket, not a regular file"):
        require_regular_file(tmp_path / "pipe")
    with pytest.raises(FileError, match="/dev/zero is a pipe, a device"):
        require_regular_file("/dev/zero")
    with pytest.raises(FileError, match="is a folder; name a file"):
        require_regular_file(tmp_path)
    with pytest.raises(FileError, match=r"no such file: .*missing"):
        require_regular_file(tmp_path / "missing")


# Several files


def test_staged_files_move_in_together(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with staged(out) as folder:
        (folder / "x").write_text("new")
        assert not (out / "x").exists()
    assert [path.name for path in out.iterdir()] == ["x"]


def test_staged_failure_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")

    def fail(folder: Path) -> None:
        with staged(folder) as stage:
            (stage / "x").write_text("new")
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail(tmp_path)
    with pytest.raises(RuntimeError, match="no"):
        fail(tmp_path / "new" / "deep")
    assert contents(tmp_path) == {"x": "old"}


def test_staged_removes_owned_files_that_are_not_written_again(tmp_path: Path) -> None:
    for name in ("old", "other"):
        (tmp_path / name).touch()
    with staged(tmp_path, owned=["old", "x"]) as folder:
        (folder / "x").touch()
    assert sorted(contents(tmp_path)) == ["other", "x"]


def test_staged_file_does_not_replace_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()

    def put() -> None:
        with staged(tmp_path) as stage:
            (stage / "a").touch()
            (stage / "x").touch()

    with pytest.raises(FileError, match="is a folder"):
        put()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_staged_failure_leaves_what_others_wrote_meanwhile(tmp_path: Path) -> None:
    new = tmp_path / "new"

    def fail() -> None:
        with staged(new):
            (new / "theirs").touch()
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert [path.name for path in new.iterdir()] == ["theirs"]


def interrupt_after(calls: int) -> None:
    """Ctrl-C where the next function is called after so many more calls."""
    left = calls

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal left
        left -= event in ("call", "c_call")
        if left < 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(count)


def test_staged_leaves_nothing_behind_if_ctrl_c_comes_at_any_moment_before_the_work(
    tmp_path: Path,
) -> None:
    moments = 0
    while moments < 1000:
        try:
            interrupt_after(moments)
            with staged(tmp_path / "new" / "deep"):
                sys.setprofile(None)
                break
        except KeyboardInterrupt:
            moments += 1
        finally:
            sys.setprofile(None)
        assert list(tmp_path.iterdir()) == []
    assert 20 < moments < 1000


def stage(folder: Path, error: BaseException | None = None) -> None:
    with staged(folder) as temporary:
        if error is not None:
            raise error
        (temporary / "x").write_text("x" * 1000)


def test_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match="file cannot be written: File exists"):
        stage(tmp_path / "file")
    with pytest.raises(FileError, match="file/deep cannot be written: Not a directory"):
        stage(tmp_path / "file" / "deep")
    with full_disk(4), pytest.raises(FileError, match="new cannot be written: File too large"):
        stage(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        FileNotFoundError(errno.ENOENT, "No such file", "/elsewhere/log.csv"),
        FileError("log.csv cannot be read"),
    ],
)
def test_errors_of_the_work_itself_pass_unchanged(tmp_path: Path, error: OSError) -> None:
    with pytest.raises(OSError, match=r"\w") as caught:
        stage(tmp_path, error)
    assert caught.value is error


# Tables


def test_columns_as_csv(tmp_path: Path) -> None:
    write_columns(tmp_path / "t.csv", {"a": [1 / 3, 2], "b, c": ["x", 'say "hi"']})
    expected = f'a,"b, c"\n{1 / 3},x\n2,"say ""hi"""\n'
    assert (tmp_path / "t.csv").read_text() == expected


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter"):
        write_columns(tmp_path / "t.csv", {"a": [1, 2], "b": [1]})


def test_text_that_spreadsheets_would_run_is_quoted(tmp_path: Path) -> None:
    labels = [
        "=1+1",
        "+x",
        "-x",
        "@x",
        "\tx",
        "\rx",
        "\nx",
        "'x",
        "\uff1dx",
        "a=b",
        "-5",
        "+1.5e-3",
        "",
    ]
    write_columns(tmp_path / "t.csv", {"=a": labels, "n": [-1.5] * len(labels)})
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=a", "n"]
    assert {row[1] for row in rows} == {"-1.5"}
    cells = [row[0] for row in rows]
    assert cells[:9] == ["'" + label for label in labels[:9]]
    assert cells[9:] == labels[9:]
