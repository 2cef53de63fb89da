"""Who erred? Bad input is one line and exit code 2; anything unexpected is reported as a bug."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pastwise import Goal, TransferLearner
from pastwise.logs import validate
from pastwise.policy.file import save_counts
from tests.helpers.command import Shell, Shown, shell_of
from tests.helpers.disk import full_disk

LOG = "room,did,then\ncold,heat,mild\ncold,wait,cold\nmild,wait,mild\nmild,heat,warm\n"
COLUMNS = ["--state", "room", "--action", "did", "--next-state", "then"]
UNREADABLE = "/proc/self/mem"
"""A file that can be opened but not read, even by root: its first page does not exist."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind, good and bad; no test of this module changes any of them."""
    folder = tmp_path_factory.mktemp("inputs")
    learner = TransferLearner(Goal(prefer="mild"))
    (folder / "log.csv").write_text(LOG)
    learner.fit(str(folder / "log.csv"), state="room", action="did", next_state="then")
    learner.save(folder / "policy.safetensors")
    save_counts(learner.counts_, folder / "counts.safetensors", learner.columns_)
    policy = (folder / "policy.safetensors").read_bytes()
    (folder / "damaged.safetensors").write_bytes(policy[:-1])
    (folder / "goal.toml").write_text('prefer = "mild"\n')
    (folder / "malformed.toml").write_text("prefer = \n")
    (folder / "other.csv").write_text("place,did,then\na,b,c\n")
    (folder / "labels.csv").write_text("room,did,then\nicy,dig,cold\n")
    (folder / "folder").mkdir()
    (folder / "folder" / "inner").write_text("")
    for suffix in ("csv", "parquet", "jsonl", "toml", "safetensors"):
        (folder / f"empty.{suffix}").touch()
        (folder / f"unreadable.{suffix}").symlink_to(UNREADABLE)
    return folder


@pytest.fixture
def shell(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(folder)
    return shell_of(monkeypatch, capsys)


def names_and_sizes(folder: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_size for path in folder.rglob("*")}


def require_bad_input(shown: Shown, because: str) -> None:
    """One line that says why, and exit code 2."""
    assert shown.code == 2, shown.err
    assert shown.out == ""
    assert shown.err.startswith("pastwise: ")
    assert shown.err.count("\n") == 1
    assert because in shown.err


LOGS = {
    "": "the path is empty",
    "missing.csv": "no such file: missing.csv",
    "missing-*.csv": "no such file: missing-*.csv",
    "folder": "is a folder",
    "unreadable.csv": "unreadable.csv",
    "unreadable.parquet": "unreadable.parquet",
    "unreadable.jsonl": "unreadable.jsonl",
    "empty.csv": "empty.csv is empty",
    "empty.parquet": "empty.parquet",
    "empty.jsonl": "empty.jsonl",
    "other.csv": "no column 'room'",
    "goal.toml": "unknown kind of file",
}
"""Logs that cannot be read by the columns above, and part of the message."""

POLICIES = {
    "missing.safetensors": "no such file: missing.safetensors",
    "folder": "is a folder",
    "unreadable.safetensors": "unreadable.safetensors",
    "empty.safetensors": "empty.safetensors",
    "damaged.safetensors": "damaged.safetensors",
    "log.csv": "log.csv is not a file of pastwise",
    "counts.safetensors": "holds counts, not a policy",
}

GOALS = {
    "missing.toml": "no such file: missing.toml",
    "folder": "is a folder",
    "unreadable.toml": "unreadable.toml cannot be read",
    "empty.toml": "empty goal",
    "malformed.toml": "malformed.toml is not a TOML file",
    "log.csv": "log.csv is not a TOML file",
}

TARGETS = {
    "missing/new.SUFFIX": "no such folder: missing",
    "folder": "is a folder",
    "/sys/new.SUFFIX": "/sys/new.SUFFIX cannot be written",
    "/dev/null": "is not a regular file",
}


@pytest.mark.parametrize(("log", "because"), LOGS.items())
@pytest.mark.parametrize(
    "command",
    [
        "validate LOG COLUMNS",
        "count LOG COLUMNS -o new.safetensors",
        "learn LOG COLUMNS --prefer mild -o new.safetensors",
        "evaluate policy.safetensors LOG",
        "evaluate policy.safetensors LOG --importance --propensity did",
        "update policy.safetensors LOG -o new.safetensors",
    ],
)
def test_a_log_that_cannot_be_read(shell: Shell, command: str, log: str, because: str) -> None:
    require_bad_input(shell(*arguments_of(command, LOG=log)), because)


@pytest.mark.parametrize(("policy", "because"), POLICIES.items())
@pytest.mark.parametrize(
    "command",
    [
        "evaluate POLICY log.csv",
        "explain POLICY cold",
        "retarget POLICY --prefer cold -o new.safetensors",
        "update POLICY log.csv -o new.safetensors",
        "export POLICY -o rule.csv",
        "export POLICY -o policy.sql",
        "decide POLICY log.csv",
    ],
)
def test_a_policy_that_cannot_be_read(
    shell: Shell, command: str, policy: str, because: str
) -> None:
    require_bad_input(shell(*arguments_of(command, POLICY=policy)), because)


@pytest.mark.parametrize(
    "counts", ["missing.safetensors", "empty.safetensors", "damaged.safetensors"]
)
@pytest.mark.parametrize(
    "command",
    [
        "learn COUNTS --prefer mild",
        "merge counts.safetensors COUNTS -o new.safetensors",
        "evaluate policy.safetensors COUNTS",
    ],
)
def test_counts_that_cannot_be_read(shell: Shell, command: str, counts: str) -> None:
    require_bad_input(shell(*arguments_of(command, COUNTS=counts)), counts)


@pytest.mark.parametrize(("goal", "because"), GOALS.items())
@pytest.mark.parametrize(
    "command",
    [
        "learn log.csv COLUMNS --goal GOAL",
        "learn log.csv COLUMNS --prefer mild --past-goal a=GOAL",
        "retarget policy.safetensors --goal GOAL -o new.safetensors",
    ],
)
def test_a_goal_that_cannot_be_read(shell: Shell, command: str, goal: str, because: str) -> None:
    require_bad_input(shell(*arguments_of(command, GOAL=goal)), because)


@pytest.mark.parametrize(("target", "because"), TARGETS.items())
@pytest.mark.parametrize(
    "command",
    [
        "count log.csv COLUMNS -o TARGET",
        "merge counts.safetensors counts.safetensors -o TARGET",
        "learn log.csv COLUMNS --prefer mild -o TARGET",
        "retarget policy.safetensors --prefer cold -o TARGET",
        "update policy.safetensors log.csv -o TARGET",
        "export policy.safetensors -o TARGET",
    ],
)
def test_a_file_that_cannot_be_written(
    shell: Shell, folder: Path, command: str, target: str, because: str
) -> None:
    suffix = "safetensors"
    if command.startswith("export"):
        suffix = "csv"
        if "SUFFIX" not in target:  # the suffix of a table is checked first
            because = ".parquet, .csv or .json"
    before = names_and_sizes(folder)
    place = target.replace("SUFFIX", suffix)
    shown = shell(*arguments_of(command, TARGET=place))
    require_bad_input(shown, because.replace("SUFFIX", suffix))
    assert names_and_sizes(folder) == before


@pytest.mark.parametrize("target", ["log.csv", "log.csv/figures", "/sys/figures"])
def test_figures_that_cannot_be_written(shell: Shell, target: str) -> None:
    options = ["--prefer", "mild", "--plots", target]
    require_bad_input(shell("learn", "log.csv", *COLUMNS, *options), target)


@pytest.mark.parametrize("name", ["new.safetensors", "rule.csv", "rule.json", "rule.parquet"])
def test_a_full_disk(shell: Shell, folder: Path, name: str) -> None:
    command = ["retarget", "policy.safetensors", "--prefer", "cold"]
    if name.startswith("rule"):
        command = ["export", "policy.safetensors"]
    before = names_and_sizes(folder)
    with full_disk(4):
        shown = shell(*command, "-o", name)
    require_bad_input(shown, f"{name} cannot be written")
    assert names_and_sizes(folder) == before


@pytest.mark.parametrize(
    ("command", "because"),
    [
        ("explain policy.safetensors icy", "unknown label 'icy'"),
        ("explain policy.safetensors cold dig", "unknown label 'dig'"),
        ("retarget policy.safetensors --prefer icy -o new.safetensors", "unknown label 'icy'"),
        ("learn log.csv COLUMNS --prefer icy", "unknown label 'icy'"),
        ("learn log.csv COLUMNS --prefer mild --terminal icy", "'icy'"),
        ("learn log.csv COLUMNS --prefer mild --forbid cold:dig", "unknown label 'dig'"),
        ("evaluate policy.safetensors labels.csv", "other labels than the policy"),
        ("evaluate policy.safetensors log.csv --importance", "episode"),
        ("evaluate policy.safetensors counts.safetensors --importance", "holds counts"),
        ("learn counts.safetensors --state room --prefer mild", "leave out --state"),
        ("learn counts.safetensors --feature room --prefer mild", "leave out --feature\n"),
        ("evaluate policy.safetensors log.csv --horizon 0", "horizon"),
        ("evaluate policy.safetensors log.csv --seed -1", "--seed"),
        ("validate log.csv --state room", "--action"),
        ("validate log.csv --state room --action did", "episode"),
        ("learn log.csv COLUMNS --prefer mild --method magic", "magic"),
        ("retarget policy.safetensors --prefer mild --method magic -o new.safetensors", "magic"),
        ("card policy.safetensors -o new.md --margin nan", "--margin must be a finite number"),
        ("export policy.safetensors -o rule.txt", ".parquet, .csv or .json"),
        ("merge", "PARTS"),
        ("magic", "magic"),
        ("reproduce --out log.csv --runs 1", "log.csv"),
        ("study calibration --out log.csv --systems 1", "log.csv"),
    ],
)
def test_labels_and_options_that_do_not_fit(shell: Shell, command: str, because: str) -> None:
    require_bad_input(shell(*arguments_of(command)), because)


def arguments_of(command: str, **replacements: str) -> list[str]:
    """The words of a command, with placeholders replaced."""
    arguments: list[str] = []
    for word in command.split():
        if word == "COLUMNS":
            arguments += COLUMNS
            continue
        for placeholder, replacement in replacements.items():
            word = word.replace(placeholder, replacement)
        arguments.append(word)
    return arguments


def test_output_that_cannot_be_written(folder: Path) -> None:
    """The output goes to a device that is always full."""
    command = [sys.executable, "-m", "pastwise", "explain", "policy.safetensors", "cold"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "pastwise: the output cannot be written: No space left on device\n"


# Bugs


@pytest.fixture
def bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something unexpected in the middle of a command."""

    def fail(*arguments: object) -> None:
        raise ValueError("shapes do not match")

    monkeypatch.setattr(validate, "validate_log", fail)


@pytest.mark.usefixtures("bug")
def test_a_bug_says_so_and_how_to_report_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PASTWISE_DEBUG", raising=False)
    shown = shell("validate", "log.csv", *COLUMNS)
    assert shown.code == 70
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert "bug in pastwise" in lines[0]
    assert "ValueError: shapes do not match" in lines[0]
    command = "pastwise validate log.csv --state room --action did --next-state then"
    assert f"- the command: {command}" in lines
    assert f"pastwise {version('pastwise')}" in shown.err
    assert "PASTWISE_DEBUG=1" in lines[-1]
    assert "Traceback" not in shown.err


@pytest.mark.usefixtures("bug")
def test_a_bug_has_a_traceback_for_who_wants_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASTWISE_DEBUG", "1")
    shown = shell("validate", "log.csv", *COLUMNS)
    assert shown.code == 70
    assert "Traceback (most recent call last):" in shown.err
    assert f'File "{os.path.realpath(__file__)}"' in shown.err
