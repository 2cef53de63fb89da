"""Studies over several processes: the same results, and nothing lost by Ctrl-C."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pastwise.errors import FileError, WorkerError
from pastwise.studies import paper
from pastwise.studies.calibration import calibrate
from pastwise.studies.gridworlds import gridworlds
from pastwise.studies.icu import icu_settings, icu_study, survival_online
from pastwise.studies.runner import Part, Runner
from pastwise.studies.transfer import survey, survey_parts
from tests.helpers.command import call

# Any number of processes.


def tables(out: Path) -> dict[str, bytes]:
    """What a study wrote, but for the date in a PDF."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.suffix != ".pdf"}


@pytest.mark.parametrize(
    ("command", "jobs"),
    [
        ("reproduce --runs 5 --skip-timing", "3"),
        ("study calibration --family null --family treatment --systems 2 --samples 40", "2"),
        ("study gridworlds --quick --seeds 1", "2"),
    ],
)
def test_a_study_writes_the_same_whatever_the_number_of_processes(
    command: str,
    jobs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(paper, "BLOCK_SIZE", 2)
    monkeypatch.chdir(tmp_path)
    printed = []
    for number in ("1", jobs):
        options = ["--jobs", number, "--out", number, "--json"]
        assert call(monkeypatch, *command.split(), *options) == 0
        printed.append(capsys.readouterr())
    one, other = printed
    assert other.out == one.out
    assert one.err == other.err == ""
    assert tables(Path(jobs)) == tables(Path("1"))
    assert {path.name for path in tmp_path.iterdir()} == {"1", jobs}


def test_icu_sepsis_is_the_same_whatever_the_number_of_processes() -> None:
    parts: list[Part[Any]] = [
        *survey_parts(icu_settings((20,))[:1], 1, 3),
        partial(survival_online, "TL", 10, 3),
    ]
    one = Runner(1).run("Learning", parts, {})
    other = Runner(2).run("Learning", parts, {})
    assert one == other


def numbers(index: int) -> dict[str, Any]:
    return {"index": index, "third": index / 3, "undefined": math.nan, "process": os.getpid()}


@pytest.mark.parametrize("jobs", [1, 2, 9])
def test_results_come_in_the_order_of_the_parts(jobs: int) -> None:
    found = Runner(jobs).run("Counting", [partial(numbers, index) for index in range(3)], {})
    assert [(part["index"], part["third"]) for part in found] == [
        (index, index / 3) for index in range(3)
    ]
    assert all(math.isnan(part["undefined"]) for part in found)
    assert ({part["process"] for part in found} == {os.getpid()}) == (jobs == 1)


def refuse(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_in_a_task_is_the_error_of_the_study(jobs: int, tmp_path: Path) -> None:
    parts: list[Part[Any]] = [partial(numbers, 0), partial(refuse, "no such thing")]
    with pytest.raises(ValueError, match=r"^no such thing$"):
        Runner(jobs, tmp_path / "kept").run("Failing", parts, {})


def test_a_worker_that_dies_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    parts: list[Part[Any]] = [partial(numbers, 0), partial(os._exit, 1)]
    with pytest.raises(WorkerError, match=r"worker died.*fewer --jobs"):
        Runner(2, tmp_path / "kept").run("Dying", parts, {})


# What is done is kept.


def do(
    folder: Path, settings: dict[str, Any], number: int = 3
) -> tuple[list[int], list[str], Runner]:
    """Which of the parts were done just now, the messages, and the runner."""
    done: list[int] = []

    def note(index: int) -> float:
        done.append(index)
        return index / 3

    messages: list[str] = []
    runner = Runner(1, folder, notify=messages.append)
    assert runner.run("Noting", [partial(note, index) for index in range(number)], settings) == [
        0,
        1 / 3,
        2 / 3,
    ]
    return done, messages, runner


def test_what_was_done_is_not_done_again(tmp_path: Path) -> None:
    assert do(tmp_path / "kept", {"seed": 1})[:2] == ([0, 1, 2], [])
    done, (line,), _ = do(tmp_path / "kept", {"seed": 1})
    assert done == []
    assert line.startswith("3 of 3 parts were done before")


def test_what_was_done_under_other_settings_is_not_used_and_not_lost(tmp_path: Path) -> None:
    do(tmp_path / "kept", {"seed": 1})
    done, messages, other = do(tmp_path / "kept", {"seed": 2})
    assert (done, messages) == ([0, 1, 2], [])
    other.discard()
    done, _, runner = do(tmp_path / "kept", {"seed": 1})
    assert done == []
    runner.discard()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe", b"0.1", b"0" * 64 + b"\n0.1"])
def test_a_damaged_part_is_done_again(damage: bytes, tmp_path: Path) -> None:
    do(tmp_path / "kept", {})
    (file,) = tmp_path.rglob("1.json")
    file.write_bytes(damage)
    done, (line,), _ = do(tmp_path / "kept", {})
    assert done == [1]
    assert line.startswith("2 of 3")
    assert do(tmp_path / "kept", {})[0] == []


def _small_calibration(runner: Runner, **options: Any) -> object:
    small: dict[str, Any] = {"families": ["null"], "systems": 1, "samples": 40}
    return calibrate(**{**small, **options}, runner=runner)


def test_every_option_tells_a_study_from_others(tmp_path: Path) -> None:
    """Each study is cut after its first part; none finds a part of another."""

    @contextmanager
    def cut(title: str, steps: int) -> Iterator[Callable[[int], None]]:
        def advance(done: int) -> None:
            if done:
                raise KeyboardInterrupt

        yield advance

    base, lakes, wards = paper.PaperStudy(runs=2), gridworlds((5,))[:1], icu_settings((5,))
    studies: list[Callable[[Runner], object]] = [
        *(
            partial(paper.collect, paper.PaperStudy(**{"runs": 2} | options))
            for options in (
                {},
                {"runs": 3},
                {"seed": 1},
                {"sample_rows": paper.dirichlet_rows},
                {"replay": True},
            )
        ),
        partial(paper.collect, paper.PaperStudy(runs=2, methods=base.methods[:2])),
        *(
            partial(_small_calibration, **options)
            for options in (
                {},
                {"systems": 2},
                {"samples": 41},
                {"seed": 1},
                {"families": ["dense"]},
                {"pasts": ["random"]},
                {"records": [60]},
                {"methods": ["TL"]},
                {"starts": "log"},
            )
        ),
        *(partial(survey, "lakes", lakes, *options) for options in ((1, 0), (2, 0), (1, 1))),
        partial(survey, "lakes", gridworlds((6,))[:1], 1, 0),
        *(
            partial(icu_study, wards, *options)
            for options in ((1, 10, 0), (2, 10, 0), (1, 11, 0), (1, 10, 1))
        ),
    ]
    for study in studies:
        with pytest.raises(KeyboardInterrupt):
            study(Runner(1, tmp_path, cut, notify=pytest.fail))
    assert len(list(tmp_path.iterdir())) == len(studies)


def test_a_place_that_cannot_be_written_to_is_known_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(FileError, match=r"kept, which is .* cannot be made: Not a directory"):
        Runner(1, tmp_path / "kept").run("Nothing", [partial(refuse, "this was begun")], {})


# Ctrl-C.


def start(*arguments: str) -> subprocess.Popen[str]:
    """A process in a group of its own, as a shell would start it."""
    command = [sys.executable, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for(pattern: str, folder: Path, process: subprocess.Popen[str]) -> None:
    while not list(folder.rglob(pattern)):
        assert process.poll() is None
        time.sleep(0.01)


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """The study that the next test cuts, done at a stretch."""
    return calibrate(["null", "treatment"], systems=10, samples=40).to_dict()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_study_cut_by_ctrl_c_goes_on(
    jobs: str,
    whole: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C reaches all processes of the group.

    Both pipes come to their end, which shows that none is left.
    """
    out = tmp_path / "out"
    families = ["--family", "null", "--family", "treatment"]
    command = ["study", "calibration", *families, "--systems", "10", "--samples", "40", "--json"]
    out.mkdir()
    (out / "calibration.md").write_text("mine")
    process = start("-m", "pastwise", *command, "--jobs", jobs, "--out", str(out))
    wait_for("*.json", tmp_path / "out.partial", process)
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate()
    assert (process.returncode, stdout) == (130, "")
    assert stderr.strip().startswith("pastwise: interrupted: ")
    assert stderr.endswith(" of 4 parts are done and kept; the same command goes on from there\n")
    assert stderr.strip().count("\n") == 0
    assert [path.name for path in out.iterdir()] == ["calibration.md"]
    assert (out / "calibration.md").read_text() == "mine"
    kept = len(list((tmp_path / "out.partial").rglob("*.json")))

    assert call(monkeypatch, *command, "--out", str(out)) == 0
    resumed = capsys.readouterr()
    assert resumed.err.startswith(f"{kept} of 4 parts were done before")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert resumed.out == json.dumps(whole) + "\n"
    assert (out / "calibration.json").read_text() == json.dumps(whole, indent=1) + "\n"


SLEEPERS = """
import json, sys, time
from functools import partial
from pathlib import Path
from pastwise.studies.runner import Runner
try:
    sleepers = [partial(time.sleep, 10**6)] * 3
    Runner(3, Path("kept")).run("Sleeping", [partial(json.loads, "1"), *sleepers], {})
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_study(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in the middle of a part ends with the process that started it."""
    monkeypatch.chdir(tmp_path)
    process = start("-c", SLEEPERS)
    wait_for("0.json", tmp_path, process)
    process.send_signal(how)
    _, stderr = process.communicate()
    assert process.returncode == (1 if how == signal.SIGINT else -how)
    assert "Traceback" not in stderr
    (kept,) = tmp_path.rglob("*.json")
    assert json.loads(kept.read_text().splitlines()[1]) == 1
