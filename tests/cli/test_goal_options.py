"""Goals on the command line: conditions, weights, and what bad ones say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pastwise.data.bins import Bins
from pastwise.policy.learner import load
from tests.helpers.command import Shell, shell_of

ROWS = [("1.0", "train", "2.5"), ("2.5", "strike", "1.2"), ("3.5", "train", "4.5")]
ROWS += [("1.2", "train", "3.5"), ("4.5", "strike", "2.5")]
COLUMNS = ["--state", "wage", "--action", "did", "--next-state", "then"]


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(tmp_path)
    lines = ["wage,did,then", *(",".join(row) for row in ROWS)]
    Path("log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return shell_of(monkeypatch, capsys)


def learn(shell: Shell, *goal: str, bins: str | None = "wage=0,2,4,6") -> None:
    arguments = ["learn", "log.csv", *COLUMNS, *goal, "--no-verdict", "-o", "policy.safetensors"]
    if bins is not None:
        arguments += ["--bins", bins]
    shown = shell(*arguments)
    assert shown.code == 0, shown.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--prefer", "wage >= 2"], "be where wage >= 2"),
        (
            ["--prefer", "wage >= 4=3", "--prefer", "wage<2"],
            "be where wage >= 4 (weight 3) or where wage<2 (weight 1)",
        ),
        (["--prefer", "wage != 9"], "be where wage != 9"),
        (
            ["--prefer", "wage >= 2", "--forbid", "wage < 2:strike"],
            "be where wage >= 2; never strike where wage < 2",
        ),
    ],
)
def test_conditions_as_options(shell: Shell, options: list[str], sentence: str) -> None:
    learn(shell, *options)
    assert load("policy.safetensors").goal.describe() == sentence


def test_forbidden_by_condition(shell: Shell) -> None:
    learn(shell, "--prefer", "wage >= 2", "--forbid", "wage < 2:strike")
    learner = load("policy.safetensors")
    first, *others = learner.counts_.states.labels
    assert learner.rule_[first]["strike"] == 0
    assert all(learner.rule_[state]["strike"] > 0 for state in others)


def test_labels_of_a_file_are_text_that_spells_numbers(shell: Shell) -> None:
    learn(shell, "--prefer", "wage >= 2", bins=None)
    score = load("policy.safetensors").ideal_.score
    assert score is not None
    assert score.tolist() == [0, 0, 1, 1, 1]


def test_a_goal_file_with_conditions(shell: Shell) -> None:
    Path("goal.toml").write_text(
        'forbid = [["wage < 2", "strike"]]\n[prefer]\n"wage >= 2" = 1.0\n', encoding="utf-8"
    )
    learn(shell, "--goal", "goal.toml")
    in_file = load("policy.safetensors")
    learn(shell, "--prefer", "wage >= 2", "--forbid", "wage < 2:strike")
    by_options = load("policy.safetensors")
    for state in in_file.counts_.states.labels:
        assert in_file.rule_[state] == by_options.rule_[state]


def test_retarget_with_and_without_the_log(shell: Shell) -> None:
    learn(shell, "--prefer", "wage >= 2")
    target = ["retarget", "policy.safetensors", "--prefer", "wage >= 3", "-o", "new.safetensors"]
    shown = shell(*target)
    assert shown.code == 2
    assert "both sides of wage >= 3" in shown.err
    assert "--log" in shown.err
    assert not Path("new.safetensors").exists()

    assert shell(*target, "--log", "log.csv").code == 0
    columns = load("new.safetensors").columns_
    assert columns is not None
    bins = columns.bins["wage"]
    assert isinstance(bins, Bins)
    assert 3.0 in bins.edges


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--prefer", "wage >="], "prefer: expected a number or text, found the end"),
        (["--prefer", "wage >= 2 and"], "expected a column, found the end"),
        (["--prefer", "(wage >= 2"], "to close the parenthesis"),
        (["--prefer", "salary >= 2"], "nothing of a column 'salary'"),
        (["--prefer", "wage >= 9"], "no state of the log has wage >= 9"),
        (["--prefer", "wage = 2"], "== compares"),
        (["--prefer", "wage >= 2=much"], "'much' is no number"),
        (["--prefer", "wage >= 2=-1"], "a weight must be positive"),
        (["--prefer", "[0, 2]"], "did you mean '[0, 2)'"),
        (["--prefer", "rich"], "`pastwise states` lists the labels"),
        (["--prefer", "wage >= 2", "--forbid", "wage < x y:strike"], "forbid: expected 'and'"),
        (["--prefer", "wage >= 2", "--forbid", "wage < 2"], "two parts with ':'"),
    ],
)
def test_bad_conditions(shell: Shell, options: list[str], message: str) -> None:
    shown = shell("learn", "log.csv", *COLUMNS, "--bins", "wage=0,2,4,6", *options)
    assert shown.code == 2
    assert message in shown.err
    assert shown.out == ""


def test_a_mark_shows_the_place(shell: Shell) -> None:
    shown = shell("learn", "log.csv", *COLUMNS, "--prefer", "wage >= 2 2")
    assert shown.err.splitlines()[1:] == ["  wage >= 2 2", "            ^"]
