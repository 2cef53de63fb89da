"""``--method`` and ``--param``: the registry knows the choices, their help and their checks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from pastwise import Goal, TransferLearner, load
from pastwise.methods import (
    DEFAULT,
    TL,
    FPDLearn,
    Rand,
    TLExplore,
    entries,
    names,
    register,
    registry,
)
from tests.helpers.command import Shell, shell_of

LOG = "room,did,then\ncold,heat,mild\ncold,wait,cold\nmild,wait,mild\nmild,heat,warm\n"
LEARN = ["learn", "log.csv", "--state", "room", "--action", "did", "--next-state", "then"]
LEARN += ["--prefer", "mild", "--no-verdict"]
RETARGET = ["retarget", "policy.safetensors", "--prefer", "cold", "-o", "other.safetensors"]


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A folder with log.csv and a policy that has a prior count of 3."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    learner = TransferLearner(Goal(prefer="mild"), method=TL(prior_count=3))
    learner.fit("log.csv", state="room", action="did", next_state="then")
    learner.save("policy.safetensors")
    return shell_of(monkeypatch, capsys)


@pytest.mark.parametrize("name", names())
def test_every_registered_method_learns(shell: Shell, name: str) -> None:
    shown = shell(*LEARN, "--method", name, "--json")
    assert shown.code == 0
    assert shown.json["method"] == name
    learner = TransferLearner(Goal(prefer="mild"), method=name)
    learner.fit("log.csv", state="room", action="did", next_state="then")
    assert shown.json["policy"] == learner.rule_.to_dict()


@pytest.mark.parametrize("name", names())
def test_a_policy_of_every_method_is_explained_retargeted_and_evaluated(
    shell: Shell, name: str
) -> None:
    assert shell(*LEARN, "--method", name, "-o", "policy.safetensors").code == 0
    assert shell("explain", "policy.safetensors", "cold", "--json").json["method"] == name
    assert shell("evaluate", "policy.safetensors", "log.csv").code in (0, 1)
    assert shell(*RETARGET, "--method", "TL_foresight").code == 0
    assert load("other.safetensors").method_.name == "TL_foresight"
    assert shell("explain", "other.safetensors", "cold", "--json").json["method"] == "TL_foresight"


@pytest.mark.parametrize("command", ["learn", "retarget"])
def test_help_lists_the_methods_with_their_summaries(shell: Shell, command: str) -> None:
    text = " ".join(shell(command, "--help").out.split())
    assert f"--method [{'|'.join(names())}]" in text
    for name in names():
        default = "(default) " if name == DEFAULT else ""
        assert f"{name} {default}{entries()[name].summary}" in text


def test_a_new_method_is_a_choice_at_once(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_ENTRIES", dict(entries()))

    @register(colour="#123456")
    @dataclass(frozen=True)
    class Coin(Rand):
        """Toss a coin."""

        name = "coin"

    assert "coin Toss a coin." in " ".join(shell("learn", "--help").out.split())
    shown = shell(*LEARN, "--method", "coin", "--json")
    assert shown.json["policy"]["cold"] == {"heat": 0.5, "wait": 0.5}


def test_hyper_parameters_are_numbers_and_truth_values(shell: Shell) -> None:
    options = ["--param", "horizon=3", "--param", "prior_count=0.5", "--param", "replay=True"]
    assert shell(*LEARN, "--method", "FPD_learn", *options, "-o", "p.safetensors").code == 0
    assert load("p.safetensors").method_ == FPDLearn(horizon=3, prior_count=0.5, replay=True)


def test_retarget_keeps_the_hyper_parameters(shell: Shell) -> None:
    assert shell(*RETARGET).code == 0
    assert load("other.safetensors").method_ == TL(prior_count=3)


def test_retarget_replaces_some_hyper_parameters(shell: Shell) -> None:
    assert shell(*RETARGET, "--param", "prior_count=5").code == 0
    assert load("other.safetensors").method_ == TL(prior_count=5)


def test_retarget_by_another_method_starts_from_its_defaults(shell: Shell) -> None:
    assert shell(*RETARGET, "--method", "TL_explore", "--param", "window=5").code == 0
    assert load("other.safetensors").method_ == TLExplore(window=5)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "0", "2.5", "true", "1e400"])
@pytest.mark.parametrize("name", names())
def test_no_value_of_a_hyper_parameter_looks_like_a_bug(
    shell: Shell, name: str, value: str
) -> None:
    """A value is accepted, or refused with its name in the message."""
    for field in fields(entries()[name].make):  # type: ignore[arg-type]
        shown = shell(*LEARN, "--method", name, "--param", f"{field.name}={value}")
        assert shown.code in (0, 2), shown.err
        if shown.code == 2:
            assert field.name in shown.err


@pytest.mark.parametrize(
    ("options", "because"),
    [
        (
            ["--method", "TL", "--param", "prior_count=true"],
            "prior_count must not be true or false",
        ),
        (["--method", "FPD_learn", "--param", "replay=1"], "replay must be true or false"),
        (["--method", "FPD_learn", "--param", "horizon=2.5"], "horizon must be a whole number"),
        (["--method", "TL_explore", "--param", "window=1000000000000"], "the window must be"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(
    shell: Shell, options: list[str], because: str
) -> None:
    shown = shell(*LEARN, *options)
    assert shown.code == 2
    assert shown.err.startswith(f"pastwise: {because}")


def test_the_general_help_does_not_load_the_methods() -> None:
    check = (
        "import sys\n"
        "from pastwise.cli.main import cli\n"
        "cli.main(['--help'], prog_name='pastwise', standalone_mode=False)\n"
        "print([name for name in ('numpy', 'rich', 'pastwise.methods') if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines()[-1] == "[]"
