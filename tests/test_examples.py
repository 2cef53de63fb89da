"""The examples run from end to end and print what their text says."""

import csv
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


POLICY_FIGURES = {"policy.png", "before_after.png", "similarity.png"}


def run_example(name: str, folder: Path, figures: set[str]) -> str:
    """What an example prints; its figures go into the folder."""
    command = [sys.executable, str(EXAMPLES / name / "run.py"), str(folder)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    assert {path.name for path in folder.iterdir()} == figures
    return shown.stdout


def test_the_thermostat_heats_a_cool_room_and_never_a_hot_one(tmp_path: Path) -> None:
    printed = run_example("thermostat", tmp_path, POLICY_FIGURES)
    assert "never heat in hot" in printed
    rows = {
        line.split()[0]: line.split()[1:]
        for line in printed.splitlines()
        if line.split()[1:2] and line[0] in "ch"
    }
    assert float(rows["hot"][0]) == 0.0
    assert float(rows["cold"][0]) > 0.9


def test_the_bundled_log_is_what_its_script_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location(
        "generate", EXAMPLES / "thermostat" / "generate.py"
    )
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    monkeypatch.setattr(generate, "__file__", str(tmp_path / "generate.py"))
    generate.main()
    assert (tmp_path / "log.csv").read_text() == (EXAMPLES / "thermostat" / "log.csv").read_text()


@pytest.fixture(scope="module")
def migraine(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the migraine example prints."""
    folder = tmp_path_factory.mktemp("migraine")
    return run_example("migraine", folder, {*POLICY_FIGURES, "values.png"})


def test_the_migraine_diary_is_read_as_its_authors_describe_it(migraine: str) -> None:
    assert "4152 diary days of 133 people" in migraine
    assert "1 record with the episode and time of another" in migraine
    assert "133 episodes, 3,862 records" in migraine
    cells = [line.split() for line in migraine.splitlines() if line.startswith(("yes ", "no "))]
    for column in (2, 3):
        for state in ("yes", "no"):
            assert sum(float(row[column]) for row in cells if row[0] == state) == pytest.approx(
                1, abs=2e-3
            )


def test_the_migraine_diary_compares_people_and_not_decisions(migraine: str) -> None:
    real, by_burden, by_chance = migraine.split("new rule minus what was done")[1:]
    for part in (real, by_burden):
        assert "by the log:  better" in part
        assert "objections:  action-constant" in part
        assert "verdict:     cannot tell" in part
    assert "not a fair comparison: each of the 133 episodes has one action" in real
    assert "The exit code of pastwise evaluate is 1." in real

    # Without an effect and without a reason to object, the interval contains zero.
    assert "objections:  none" in by_chance
    low, high = by_chance.splitlines()[0].removeprefix(": ").split(" to ")
    assert float(low) <= 0 <= float(high)


def test_small_classes_help_the_weakest_children_most(tmp_path: Path) -> None:
    printed = run_example("class_sizes", tmp_path, {"values.png"})
    gains = [float(text) for text in re.findall(r"small minus regular ([+-][\d.]+)%", printed)]
    groups = printed.split("\n\n")[1]
    weakest = groups.splitlines()[:4]
    assert "lunch == free" in weakest[0]
    assert weakest[3].split()[0] == "small"
    assert float(weakest[3].split()[-1]) > 0.9
    assert max(gains[:2]) == max(gains)
    assert "regular+aide" in printed.split("cannot be distinguished from none")[1].splitlines()[0]
    assert "is better than what was done" in printed


def test_the_wages_of_other_men_judge_the_rule(tmp_path: Path) -> None:
    printed = run_example("wages", tmp_path, {"values.png"})
    assert "learned by TL_foresight from 1,904 records of 272 episodes" in printed
    assert "By the other 273: cannot tell" in printed


def test_no_effect_is_claimed_for_a_drug_without_one(tmp_path: Path) -> None:
    printed = run_example("liver", tmp_path, {"values.png"})
    assert "learned by TL_foresight from 290 records" in printed
    assert "cannot be distinguished from none" in printed
    assert "not distinguishable from what was done" in printed


def test_the_log_has_words_for_labels() -> None:
    with (EXAMPLES / "thermostat" / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["did"] for row in rows} == {"heat", "idle", "vent"}
