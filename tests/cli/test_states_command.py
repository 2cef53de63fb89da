"""``pastwise states`` lists the labels that goals may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pastwise import Goal, TransferLearner
from tests.helpers.command import Shell, shell_of

LOG = """\
who,day,room,did
a,1,cold,heat
a,2,mild,wait
a,3,mild,wait
b,1,cold,heat
b,2,mild,wait
b,3,done,wait
c,1,mild,wait
c,2,mild,wait
"""
COLUMNS = ["--state", "room", "--action", "did", "--episode", "who", "--time", "day"]


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    return shell_of(monkeypatch, capsys)


def visit(
    state: str, records: int, entered: int, episodes: int | None, terminal: bool
) -> dict[str, object]:
    return {
        "state": state,
        "records": records,
        "entered": entered,
        "episodes": episodes,
        "terminal": terminal,
    }


EXPECTED = [
    visit("mild", 3, 4, 3, False),
    visit("cold", 2, 0, 2, False),
    visit("done", 0, 1, 0, True),
]


def test_states_of_a_log_of_a_policy_and_of_counts(shell: Shell) -> None:
    shown = shell("states", "log.csv", *COLUMNS, "--terminal", "done", "--json")
    assert shown.json == {"fields": ["room"], "states": EXPECTED}

    learner = TransferLearner(Goal(prefer={"mild": 1}))
    options = {"state": "room", "action": "did", "episode": "who", "time": "day"}
    learner.fit("log.csv", {**options, "terminal": "done"})
    learner.save("policy.safetensors")
    assert shell("states", "policy.safetensors", "--json").json["states"] == EXPECTED

    shell("count", "log.csv", *COLUMNS, "-o", "counts.safetensors")
    counted = shell("states", "counts.safetensors", "--json").json["states"]
    assert counted[0] == visit("mild", 3, 4, None, False)


def test_table_lists_every_state(shell: Shell) -> None:
    rows = [f"x,{i},state number {i},go" for i in range(60)]
    Path("many.csv").write_text("\n".join(["who,day,room,did", *rows]) + "\n")
    shown = shell("states", "many.csv", *COLUMNS).out
    assert all(f"state number {i} " in shown for i in range(60))
    assert "episodes" in shown


def test_columns_are_for_logs_only(shell: Shell) -> None:
    shell("count", "log.csv", *COLUMNS, "-o", "counts.safetensors")
    shown = shell("states", "counts.safetensors", "--state", "room")
    assert (shown.code, "leave out --state" in shown.err) == (2, True)
    shown = shell("states", "log.csv")
    assert (shown.code, "Missing option '--state'" in shown.err) == (2, True)


def test_unknown_label_names_the_command(shell: Shell) -> None:
    shown = shell("learn", "log.csv", *COLUMNS, "--prefer", "mold")
    assert shown.code == 2
    assert "did you mean 'mild' or 'cold'?" in shown.err
    assert "pastwise states" in shown.err
