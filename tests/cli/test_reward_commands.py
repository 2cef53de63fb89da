"""Rewards and one-shot decisions on the command line."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.helpers.command import Shell, shell_of

BANDIT = ("--state", "user", "--action", "ad", "--reward", "click")


@pytest.fixture
def shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Shell:
    """A shell in a folder with a log of clicks: users u click on x, users v on y."""
    monkeypatch.chdir(tmp_path)
    rng = Random(0)
    lines = ["user,ad,click,p,who,t"]
    for i in range(600):
        user = rng.choice("uv")
        ad = rng.choice("xy")
        rate = 0.6 if (user, ad) in (("u", "x"), ("v", "y")) else 0.2
        lines.append(f"{user},{ad},{int(rng.random() < rate)},0.5,{i % 7},{i}")
    Path("log.csv").write_text("\n".join(lines))
    return shell_of(monkeypatch, capsys)


def test_learn_and_evaluate_a_bandit_log(shell: Shell) -> None:
    learned = shell(
        "learn",
        "log.csv",
        *BANDIT,
        "--propensity",
        "p",
        "--maximise",
        "reward",
        "-o",
        "p.safetensors",
    )
    assert learned.code == 0
    assert "maximise the reward" in learned.out
    assert "mean reward of a decision" in learned.out

    judged = shell(
        "evaluate", "p.safetensors", "log.csv", "--samples", "200", "--importance", "--json"
    )
    assert judged.code == 0
    result = judged.json
    assert result["measure"] == "mean reward of a decision"
    assert 0.5 < result["values"]["new"]["mean"] < 0.7
    estimate = result["estimates"]["importance sampling"]
    assert estimate["usable"]
    assert 0.5 < estimate["mean"] < 0.7


def test_count_merge_and_retarget(shell: Shell) -> None:
    assert shell("count", "log.csv", *BANDIT, "-o", "one.safetensors").code == 0
    assert shell("count", "log.csv", *BANDIT, "-o", "two.safetensors").code == 0
    assert shell("merge", "one.safetensors", "two.safetensors", "-o", "both.safetensors").code == 0
    learned = shell("learn", "both.safetensors", "--prefer", "1", "-o", "p.safetensors")
    assert learned.code == 0
    again = shell("retarget", "p.safetensors", "--maximise", "reward", "-o", "q.safetensors")
    assert again.code == 0
    assert "maximise the reward" in again.out


def test_an_outcome(shell: Shell) -> None:
    named = ("--state", "user", "--action", "ad", "--outcome", "click")
    assert shell("validate", "log.csv", *named).code == 0
    assert shell("learn", "log.csv", *named, "--prefer", "1").code == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--reward", "ad", "--maximise", "reward"), "must hold numbers"),
        (("--reward", "clicks", "--maximise", "reward"), "no column"),
        (("--outcome", "click", "--maximise", "reward"), "the log has none"),
        (("--outcome", "click", "--episode", "who", "--prefer", "1"), "no episode"),
        (("--outcome", "click", "--next-state", "ad", "--prefer", "1"), "no next_state"),
        (("--reward", "click", "--maximise", "reward", "--prefer", "1"), "prefer and maximise"),
        (("--reward", "click", "--maximise", "profit"), "reward"),
        (("--reward", "click"), "--maximise reward"),
    ],
)
def test_bad_input(shell: Shell, options: tuple[str, ...], problem: str) -> None:
    shown = shell("learn", "log.csv", "--state", "user", "--action", "who", *options)
    assert shown.code == 2
    assert problem in shown.err
