"""Several processes or threads learn at the same time: nothing that one of them learned is lost."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pastwise as pw
from pastwise.errors import ConflictError, FileError
from pastwise.policy.file import checksum_of, load_counts, merge_files, save_counts

LOG = {
    "room": ["cold", "cold", "mild", "warm"],
    "did": ["heat", "wait", "wait", "heat"],
    "then": ["mild", "cold", "warm", "mild"],
}
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "next_state": "then"}
GOAL = pw.Goal(prefer={"mild": 1})


def learner() -> pw.TransferLearner:
    return pw.TransferLearner(GOAL).fit(LOG, **COLUMNS)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.safetensors"
    learner().save(path)
    return path


# One file, several processes


def test_updates_by_several_processes_are_kept_or_refused(policy: Path) -> None:
    """Each process that ends with 0 has its record in the file; the others say why not."""
    number = 3
    log = policy.parent / "log.csv"
    log.write_text("room,did,then\ncold,heat,mild\n")
    command = [sys.executable, "-m", "pastwise", "update", str(policy), str(log), "-o", str(policy)]
    started = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    kept = 0
    for process in started:
        _, errors = process.communicate(timeout=120)
        if process.returncode == 0:
            kept += 1
        else:
            assert process.returncode == 2
            assert "was changed by somebody else since it was read; nothing was written" in errors
    assert kept >= 1
    assert pw.load(policy).counts_.num_records == len(LOG["room"]) + kept
    assert {path.name for path in policy.parent.iterdir()} == {policy.name, log.name}


PROGRAM = """
import sys
import pastwise as pw
from pastwise.errors import ConflictError

path, number = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(number)):
    while True:
        learner = pw.load(path).observe("cold", "heat", "mild")
        try:
            learner.save(path)
            break
        except ConflictError:
            pass
"""


def test_processes_that_try_again_lose_nothing(policy: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, policy, "20"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.communicate("go\n", timeout=300)
        assert process.returncode == 0
    assert pw.load(policy).counts_.num_records == len(LOG["room"]) + 60


# One file, several learners


def change_by_observing(path: Path) -> None:
    pw.load(path).observe("cold", "heat", "mild").save(path)


def change_by_retargeting(path: Path) -> None:
    pw.load(path).retarget(pw.Goal(prefer="warm")).save(path)


def change_by_damage(path: Path) -> None:
    path.write_text("something else")


@pytest.mark.parametrize("change", [change_by_observing, change_by_retargeting, change_by_damage])
@pytest.mark.parametrize(
    "learn",
    [
        lambda learner: learner,
        lambda learner: learner.observe("cold", "heat", "mild"),
        lambda learner: learner.observe("new", "heat", "mild"),
        lambda learner: learner.update(LOG),
        lambda learner: learner.merge(learner.counts_),
        lambda learner: learner.retarget(pw.Goal(prefer="cold")),
        copy.deepcopy,
    ],
)
def test_file_that_was_changed_meanwhile_is_not_replaced(
    policy: Path,
    learn: Callable[[pw.TransferLearner], pw.TransferLearner],
    change: Callable[[Path], None],
) -> None:
    mine = learn(pw.load(policy))
    change(policy)
    theirs = policy.read_bytes()
    with pytest.raises(ConflictError, match=r"policy\.safetensors was changed by somebody else"):
        mine.save(policy)
    assert policy.read_bytes() == theirs
    mine.save(policy.parent / "other.safetensors")


def test_own_file_is_replaced_as_often_as_wanted(policy: Path, tmp_path: Path) -> None:
    mine = pw.load(policy)
    for _ in range(3):
        mine.observe("cold", "heat", "mild").save(policy)
        mine.save(tmp_path / "copy.safetensors")
    link = tmp_path / "link.safetensors"
    link.symlink_to(policy)
    mine.save(link)
    change_by_observing(policy)
    with pytest.raises(ConflictError):
        mine.save(link)


def test_new_learner_replaces_any_file(policy: Path) -> None:
    change_by_observing(policy)
    learner().save(policy)
    loaded = pw.load(policy)
    change_by_observing(policy)
    loaded.fit(LOG, **COLUMNS).save(policy)


def test_file_that_is_gone_is_written_again(policy: Path) -> None:
    mine = pw.load(policy)
    policy.unlink()
    mine.save(policy)
    assert pw.load(policy).counts_ == mine.counts_


def test_conflict_is_an_error_of_files() -> None:
    assert issubclass(ConflictError, FileError)


# Counts


def test_merged_counts_do_not_replace_a_file_that_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tmp_path / "one.safetensors"
    two = tmp_path / "two.safetensors"
    counts = learner().counts_
    save_counts(counts, one)
    save_counts(counts, two)
    assert merge_files([one, two], one).num_records == 8
    assert load_counts(one)[0].num_records == 8

    real_merge = pw.policy.file.merge_counts

    def merge_while_another_does(paths: Any) -> Any:
        merged = real_merge(paths)
        save_counts(counts + counts + counts, one)
        return merged

    monkeypatch.setattr(pw.policy.file, "merge_counts", merge_while_another_does)
    with pytest.raises(ConflictError):
        merge_files([one, two], one)
    assert load_counts(one)[0].num_records == 12


def test_checksum_of_what_is_no_file_of_ours_is_none(tmp_path: Path) -> None:
    assert checksum_of(tmp_path / "missing") is None
    (tmp_path / "text").write_text("text")
    assert checksum_of(tmp_path / "text") is None


# One learner, several threads


def in_threads(number: int, work: Callable[[int], object]) -> None:
    """Call a function in several threads, which start together; their errors are raised."""
    errors: list[BaseException] = []
    barrier = threading.Barrier(number)

    def run(index: int) -> None:
        barrier.wait()
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.fixture
def frequent_switches() -> Any:
    """Threads take turns as often as possible, so that what is not protected breaks."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize("method", ["TL", "FPD_learn"])
def test_threads_lose_no_records(method: str) -> None:
    shared = pw.TransferLearner(GOAL, method=method).fit(LOG, **COLUMNS)
    one_log = learner().counts_
    each = 30

    def work(index: int) -> None:
        for step in range(each):
            if index == 0:
                shared.merge(one_log)
            elif index == 1:
                shared.observe("cold", "heat", f"new {step}")
            elif index == 2:
                shared.rule("cold")
                _ = shared.counts_
            else:
                shared.observe("cold", "heat", "mild")
                shared.rule("mild")

    in_threads(6, work)
    assert shared.counts_.num_records == 4 + each * (4 + 1 + 3)

    # The rule is that of all records.
    again = pw.TransferLearner(GOAL, method=method).fit(shared.counts_)
    assert shared.rule("cold") == pytest.approx(again.rule("cold"), rel=1e-9)


@pytest.mark.usefixtures("frequent_switches")
def test_threads_that_update_lose_no_log() -> None:
    shared = learner()
    in_threads(4, lambda _: [shared.update(LOG) for _ in range(5)])
    assert shared.counts_.num_records == 4 * (1 + 4 * 5)


def test_copy_of_a_learner_learns_on_its_own() -> None:
    one = learner()
    two = copy.deepcopy(one)
    two.observe("cold", "heat", "mild")
    assert one.counts_.num_records == 4
    assert two.counts_.num_records == 5
