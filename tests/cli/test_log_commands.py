"""From a log to a policy on the command line; bad input leaves every file as it was."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pastwise import Columns, Goal, TransferLearner, load
from pastwise.cli.main import cli
from pastwise.data.bins import Bins
from pastwise.methods import TL, TLForesight
from pastwise.policy import file
from pastwise.report.terminal import progress
from tests.helpers.command import Shell, shell_of
from tests.helpers.disk import full_disk

LOG = """\
room,did,then
cold,heat,mild
cold,heat,warm
cold,wait,cold
cold,wait,cold
mild,wait,mild
mild,heat,warm
warm,wait,mild
"""
COLUMNS = ["--state", "room", "--action", "did", "--next-state", "then"]
LEARN = ["learn", "log.csv", *COLUMNS]
TL_PARAM = ["--method", "TL", "--param"]
COMMANDS = ["validate", "learn", "explain", "retarget", "update", "export"]


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """``pastwise ARGUMENTS`` in a folder that holds log.csv."""
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text(LOG)
    return shell_of(monkeypatch, capsys)


@pytest.fixture
def policy(shell: Shell) -> str:
    """A policy of log.csv for the goal to be in mild."""
    learner = TransferLearner(Goal(prefer={"mild": 1}), on_unseen="refuse")
    learner.fit("log.csv", state="room", action="did", next_state="then").save("policy.safetensors")
    return "policy.safetensors"


def files() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def refused(shell: Shell, *arguments: str, because: str = "") -> None:
    """One line that says why, exit code 2, and every file as it was."""
    before = files()
    shown = shell(*arguments)
    assert shown.err.startswith("pastwise: ")
    assert shown.err.count("\n") == 1
    assert because in shown.err
    assert (shown.code, shown.out) == (2, "")
    assert files() == before


def write(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return name


def learned(
    shell: Shell, *options: str, log: str = "log.csv", columns: list[str] | None = None
) -> Any:
    """The JSON of ``learn`` with these options."""
    shown = shell("learn", log, *(COLUMNS if columns is None else columns), *options, "--json")
    assert (shown.code, shown.err) == (0, "")
    return shown.json


def policy_of(goal: Goal, log: Any = "log.csv", **options: Any) -> dict[str, dict[str, float]]:
    """The policy that the library learns."""
    columns = options or {"state": "room", "action": "did", "next_state": "then"}
    return TransferLearner(goal).fit(log, **columns).rule_.to_dict()


# learn


def test_learn_gives_policy_and_support_unrounded(shell: Shell) -> None:
    """By hand: mild, cold and warm have similarities 1, 1/2, 1/2; an action has a prior of 3/8."""
    content = learned(shell, "--prefer", "mild", "--floor", "0.25", *TL_PARAM, "prior_count=0.125")
    assert list(content)[:6] == [
        "states",
        "actions",
        "goal",
        "policy",
        "support",
        "warnings",
    ]
    assert content["states"] == ["cold", "mild", "warm"]
    assert content["actions"] == ["heat", "wait"]
    assert content["policy"]["cold"] == pytest.approx(
        {"heat": 1.875 / 3.25, "wait": 1.375 / 3.25}, rel=1e-14
    )
    assert content["policy"]["warm"] == pytest.approx(
        {"heat": 0.375 / 1.75, "wait": 1.375 / 1.75}, rel=1e-14
    )
    assert content["support"]["cold"] == pytest.approx(
        {
            "records": 4,
            "similarity": 2.5,
            "effective": 2.5**2 / (1 + 3 / 4),
            "prior_share": 0.75 / 3.25,
        },
        rel=1e-14,
    )
    assert content["warnings"] == []
    method = TL(prior_count=0.125)
    learner = TransferLearner(Goal(prefer={"mild": 1}, floor=0.25), method=method)
    learner.fit("log.csv", state="room", action="did", next_state="then")
    assert content["policy"] == learner.rule_.to_dict()
    assert content["support"] == learner.support().to_dict()


def test_learn_shows_a_table_and_warns_on_stderr(shell: Shell) -> None:
    by_tl = ["--method", "TL", "-o", "policy.safetensors"]
    shown = shell(*LEARN, "--prefer", "cold", *by_tl)
    assert shown.code == 0
    for word in ("be in cold", "heat", "wait", "warm", "0.500", "policy.safetensors"):
        assert word in shown.out
    assert shown.err.startswith("warning: ")
    assert "mild, warm" in shown.err
    learner = TransferLearner(Goal(prefer={"cold": 1}), method="TL")
    learner.fit("log.csv", state="room", action="did", next_state="then")
    assert load("policy.safetensors").rule_.to_dict() == learner.rule_.to_dict()


def test_learn_shows_the_alternatives_in_one_line(shell: Shell) -> None:
    shown = shell(*LEARN, "--prefer", "mild")
    (line,) = [line for line in shown.out.splitlines() if line.startswith("Alternatives")]
    names = ["TL", "FPD_learn", "what was done", "acting at random"]
    numbers = [float(line.split(f" {name} ")[1].rstrip(".").split(",")[0]) for name in names]
    verdict = learned(shell, "--prefer", "mild")["verdict"]
    assert line == verdict["alternatives_in_words"]
    keys = ["TL", "FPD_learn", "logged", "random"]
    assert [verdict["values"][key] for key in keys] == pytest.approx(numbers, abs=5e-4)
    assert set(verdict["alternatives"]) == {"TL", "FPD_learn"}


def test_warnings_are_in_the_json(shell: Shell) -> None:
    write("log.csv", *LOG.split(), "cold,,mild", "cold,heat,")
    content = learned(shell, "--prefer", "cold", "--method", "TL")
    assert len(content["warnings"]) == 3
    assert ["action" in w for w in content["warnings"]] == [True, False, False]
    assert "mild, warm" in content["warnings"][-1]


def test_a_policy_that_is_kept_is_the_one_that_is_shown(shell: Shell) -> None:
    content = learned(shell, "--prefer", "mild", "-o", "policy.safetensors")
    assert load("policy.safetensors").rule_.to_dict() == content["policy"]
    assert sorted(files()) == ["log.csv", "policy.safetensors"]


def test_preferences_have_weights_and_forbidden_actions_no_probability(shell: Shell) -> None:
    options = ["--prefer", "mild", "--prefer", "warm=0.5", "--floor", "0.01"]
    content = learned(shell, *options, "--forbid", "cold:wait", "--forbid", "warm:heat")
    goal = Goal(
        prefer={"mild": 1, "warm": 0.5}, floor=0.01, forbid=(("cold", "wait"), ("warm", "heat"))
    )
    assert content["policy"] == policy_of(goal)
    assert content["policy"]["cold"] == {"heat": 1.0, "wait": 0.0}
    everywhere = learned(shell, *options, "--forbid", ":heat")["policy"]
    assert all(row == {"heat": 0.0, "wait": 1.0} for row in everywhere.values())


def test_a_goal_from_a_file(shell: Shell) -> None:
    goal = write(
        "goal.toml",
        "floor = 0.01",
        'forbid = [{state = "cold", action = "wait"}]',
        "[prefer]",
        "mild = 2",
        "warm = 1",
    )
    content = learned(shell, "--goal", goal)
    assert content["policy"] == policy_of(
        Goal(prefer={"mild": 2, "warm": 1}, floor=0.01, forbid=(("cold", "wait"),))
    )


def test_labels_with_marks_work_from_the_file(shell: Shell) -> None:
    write("log.csv", "room,did,then", "t=1,go:up,t=2", "t=2,go:down,t=1", "t=2,go:up,t=2")
    goal = write("goal.toml", 'forbid = [["t=2", "go:down"]]', "[prefer]", '"t=2" = 1')
    content = learned(shell, "--goal", goal)
    assert content["states"] == ["t=1", "t=2"]
    assert content["policy"]["t=2"] == {"go:down": 0.0, "go:up": 1.0}
    assert learned(shell, "--prefer", "t=2=1")["policy"]["t=1"]["go:up"] > 0.99


@pytest.mark.parametrize(
    "options",
    [["--prefer", "t=x"], ["--prefer", "t=2"], ["--prefer", "t=2=1", "--forbid", "t=2:go:down"]],
)
def test_labels_with_marks_are_refused_with_a_hint(shell: Shell, options: list[str]) -> None:
    write("log.csv", "room,did,then", "t=1,go:up,t=2", "t=2,go:down,t=1", "t=2,go:up,t=2")
    refused(shell, *LEARN, *options, because="file")


def test_product_states_have_json_arrays_for_keys(shell: Shell) -> None:
    log = write(
        "rooms.csv",
        "room,window,did,lamp,room2,window2",
        "cold,open,shut,on,cold,shut",
        "cold,shut,heat,on,warm,shut",
        "warm,shut,wait,off,warm,shut",
    )
    columns = ["--state", "room", "--state", "window", "--action", "did", "--action", "lamp"]
    columns += ["--next-state", "room2", "--next-state", "window2"]
    content = learned(
        shell, "--prefer", '["warm", "shut"]', "-o", "p.safetensors", log=log, columns=columns
    )
    assert content["states"] == ['["cold", "open"]', '["cold", "shut"]', '["warm", "shut"]']
    assert content["actions"] == ['["heat", "on"]', '["shut", "on"]', '["wait", "off"]']
    assert content["policy"]['["cold", "shut"]']['["heat", "on"]'] > 0.99
    explained = shell(
        "explain", "p.safetensors", '["cold", "shut"]', '["heat", "on"]', "--json"
    ).json
    assert explained["state"] == '["cold", "shut"]'
    assert explained["actions"]['["heat", "on"]']["evidence"][0]["next_state"] == '["warm", "shut"]'
    goal = write("goal.toml", "[targets.room]", "warm = 1", "[targets.window]", "shut = 1")
    by_targets = learned(shell, "--goal", goal, log=log, columns=columns)
    assert by_targets["policy"]['["cold", "shut"]']['["heat", "on"]'] > 0.99


def temperatures() -> tuple[str, list[str]]:
    log = write("temps.csv", "temp,did,then", "1,heat,5", "5,heat,7", "7,wait,1", "30,wait,5")
    return log, ["--state", "temp", "--action", "did", "--next-state", "then"]


def test_bins_by_edges(shell: Shell) -> None:
    log, columns = temperatures()
    content = learned(shell, "--prefer", "[6, 20)", "--bins", "temp=6,20", log=log, columns=columns)
    assert content["states"] == ["< 6", "[6, 20)", ">= 20"]
    assert {state: row["records"] for state, row in content["support"].items()} == {
        "< 6": 2,
        "[6, 20)": 1,
        ">= 20": 1,
    }
    content = learned(shell, "--prefer", "< 6", "--bins", "temp=6,", log=log, columns=columns)
    assert content["states"] == ["< 6", ">= 6"]


def test_bins_by_quantiles(shell: Shell) -> None:
    log, columns = temperatures()
    content = learned(shell, "--prefer", "< 6", "--bins", "temp=2", log=log, columns=columns)
    assert content["states"] == ["< 6", ">= 6"]  # the median of 1, 5, 7 and 30 is 6


@pytest.mark.parametrize("bins", ["temp=auto", "temp=-inf,6,inf"])
def test_bins_are_kept(shell: Shell, bins: str) -> None:
    log, columns = temperatures()
    options = ["--prefer", "< 6", "--bins", bins, "-o", "policy.safetensors"]
    content = learned(shell, *options, log=log, columns=columns)
    assert content["states"] == ["< 6", ">= 6"]
    assert load("policy.safetensors").rule_.to_dict() == content["policy"]


def test_episodes_and_times_tell_the_next_state(shell: Shell) -> None:
    log = write(
        "days.csv",
        "day,hour,room,did",
        *("1,1,cold,heat", "1,2,mild,wait", "1,4,mild,wait", "2,9,cold,wait", "2,10,cold,heat"),
    )
    columns = ["--state", "room", "--action", "did", "--episode", "day", "--time", "hour"]
    options = ["--prefer", "mild", "--method", "TL"]
    content = learned(shell, *options, log=log, columns=columns)
    assert [row["records"] for row in content["support"].values()] == [2, 1]
    assert content["warnings"] == []
    content = learned(shell, *options, "--max-gap", "1", log=log, columns=columns)
    assert [row["records"] for row in content["support"].values()] == [2, 0]
    assert "max_gap" in content["warnings"][0]


def test_episodes_next_to_next_states_change_nothing_that_is_learned(shell: Shell) -> None:
    rows = [f"{line},{i // 3},{i % 3}" for i, line in enumerate(LOG.split()[1:])]
    log = write("steps.csv", "room,did,then,episode,step", *rows)
    plain = learned(shell, "--prefer", "mild")
    plain.pop("verdict")
    for order in (
        ["--episode", "episode", "--time", "step"],
        ["--episode", "episode"],
        ["--time", "step"],
    ):
        found = learned(shell, "--prefer", "mild", *order, log=log)
        verdict = found.pop("verdict")
        for support in found["support"].values():
            assert support.pop("episodes", None) is None or "--episode" in order
        assert found == plain
        assert ("episodes" in verdict["sentence"]) == ("--episode" in order)


def test_gaps_between_dates_have_units(shell: Shell) -> None:
    log = write(
        "days.csv",
        "who,when,room,did",
        *("a,2024-01-01,cold,heat", "a,2024-01-02,mild,wait", "a,2024-01-09,mild,wait"),
    )
    columns = [
        "--state",
        "room",
        "--action",
        "did",
        "--episode",
        "who",
        "--time",
        "when",
        "--prefer",
        "mild",
    ]
    assert (
        learned(shell, "--max-gap", "36h", log=log, columns=columns)["support"]["mild"]["records"]
        == 0
    )
    assert (
        learned(shell, "--max-gap", "7d", log=log, columns=columns)["support"]["mild"]["records"]
        == 1
    )
    refused(shell, "learn", log, *columns, "--max-gap", "7", because="unit")
    refused(shell, "learn", log, *columns, "--max-gap", "7 moons", because="unit")


def test_terminal_states_end_an_episode(shell: Shell) -> None:
    write("log.csv", *LOG.split(), "mild,wait,done", "done,wait,cold")
    content = learned(shell, "--prefer", "mild", "--terminal", "done", "-o", "policy.safetensors")
    assert content["support"]["done"]["records"] == 0
    assert "terminal" in content["warnings"][0]
    counts = load("policy.safetensors").counts_
    assert [counts.states.labels[i] for i in counts.terminal] == ["done"]
    refused(shell, *LEARN, "--prefer", "mild", "--terminal", "don", because="did you mean 'done'")


def test_counts_weights_and_ages(shell: Shell) -> None:
    """The weight of a record is 2, and halves every ten days; each row stands for three records."""
    log = write(
        "sums.csv",
        "room,did,then,n,w,age,on",
        *(
            "cold,heat,mild,3,2,0,2024-01-01",
            "cold,wait,mild,3,2,10,2024-01-11",
            "mild,wait,mild,3,2,10,2024-01-11",
        ),
    )

    def similarity(*options: str) -> list[float]:
        content = learned(shell, "--prefer", "mild", *options, log=log)
        assert {row["records"] for row in content["support"].values()} <= {6, 3, 2, 1}
        return [row["similarity"] for row in content["support"].values()]

    assert similarity() == [2, 1]
    assert similarity("--count", "n") == [6, 3]
    assert similarity("--weight", "w") == [4, 2]
    assert similarity("--count", "n", "--weight", "w") == [12, 6]
    assert similarity("--age", "age", "--half-life", "10") == pytest.approx([1.5, 1])
    assert similarity("--age", "on", "--half-life", "10d", "--count", "n") == pytest.approx(
        [4.5, 3]
    )


def test_tasks_with_known_goals(shell: Shell) -> None:
    """D = 0.7 ln 8 between goals that have 0.8 and 0.1, 0.1 the other way round."""
    rows = LOG.split()
    log = write(
        "tasks.csv", rows[0] + ",task", *(f"{row},{'ab'[i % 2]}" for i, row in enumerate(rows[1:]))
    )
    past = write("past.toml", "floor = 0.1", 'prefer = "warm"')
    options = ["--prefer", "mild", "--floor", "0.1", "--task", "task", "-o", "policy.safetensors"]
    content = learned(shell, *options, "--past-goal", f"a={past}", log=log)
    heat = shell("explain", "policy.safetensors", "cold", "heat", "--json").json["actions"]["heat"]
    assert {e["next_state"]: e["similarity"] for e in heat["evidence"]} == pytest.approx(
        {"mild": 8**-0.7, "warm": 1 / 8}
    )
    assert learned(shell, *options, log=log)["policy"] != content["policy"]
    refused(shell, "learn", log, *COLUMNS, *options, "--past-goal", f"c={past}", because="'c'")
    refused(shell, "learn", log, *COLUMNS, *options, "--past-goal", "a", because="--past-goal")
    refused(
        shell,
        "learn",
        log,
        *COLUMNS,
        *options,
        "--past-goal",
        "a=nowhere.toml",
        because="nowhere.toml",
    )
    refused(
        shell,
        "learn",
        log,
        *COLUMNS,
        *options,
        *["--past-goal", f"a={past}"] * 2,
        because="twice for 'a'",
    )
    refused(shell, *LEARN, "--prefer", "mild", "--past-goal", f"a={past}", because="task")


def test_tasks_that_are_numbers_are_named_by_their_text(shell: Shell) -> None:
    table = pa.table(
        {
            "room": ["cold", "mild"],
            "did": ["heat", "wait"],
            "then": ["mild", "cold"],
            "task": [1, 2],
        }
    )
    pq.write_table(table, "log.parquet")
    past = write("past.toml", 'prefer = "cold"')
    content = learned(
        shell, "--prefer", "mild", "--task", "task", "--past-goal", f"1={past}", log="log.parquet"
    )
    assert content["support"]["cold"]["similarity"] < 1e-3


def test_labels_are_text_unless_typed(shell: Shell) -> None:
    log, columns = temperatures()
    assert learned(shell, "--prefer", "5", log=log, columns=columns)["states"] == [
        "1",
        "30",
        "5",
        "7",
    ]
    options = ["--prefer", "5", "--typed-labels", "-o", "policy.safetensors"]
    content = learned(shell, *options, log=log, columns=columns)
    assert content["states"] == ["1", "5", "7", "30"]
    assert list(load("policy.safetensors").counts_.states.labels) == [1, 5, 7, 30]
    assert shell("explain", "policy.safetensors", "30", "--json").json["state"] == "30"


def test_a_negative_number_is_a_label_too(shell: Shell) -> None:
    log = write("numbers.csv", "room,did,then", "-1,go,2", "2,go,-1")
    learned(shell, "--prefer", "-1", "--typed-labels", "-o", "policy.safetensors", log=log)
    assert shell("explain", "policy.safetensors", "-1", "--json").json["state"] == "-1"
    assert shell("explain", "policy.safetensors", "--json", "--", "-1", "go").json["state"] == "-1"
    refused(shell, "explain", "policy.safetensors", "-1", "--foo", because="'--foo'")
    refused(shell, "explain", "policy.safetensors", "-1", "go", "--foo", because="--foo")


def test_plots_are_three_pictures(shell: Shell) -> None:
    learned(shell, "--prefer", "mild", "--plots", "new/figures")
    assert sorted(files()) == [
        "log.csv",
        *(f"new/figures/{n}.png" for n in ("before_after", "policy", "similarity")),
    ]


def test_labels_of_any_script(shell: Shell) -> None:
    write("log.csv", "room,did,then", "寒い,暖房,快適", "žlutá,🔥,快適")
    content = learned(shell, "--prefer", "快適", "-o", "policy.safetensors", "--plots", "figures")
    assert content["states"] == ["žlutá", "寒い", "快適"]
    assert shell("explain", "policy.safetensors", "žlutá", "🔥", "--json").json["state"] == "žlutá"


@pytest.mark.parametrize("label", ["[cold]", "[/cold]", "[b]cold[/b]"])
def test_brackets_in_labels_are_no_markup(shell: Shell, label: str) -> None:
    write("log.csv", "room,did,then", f"{label},heat,mild")
    shown = shell(*LEARN, "--prefer", "mild")
    assert shown.code == 0
    assert label in shown.out


def test_a_log_of_one_row_works_with_a_warning(shell: Shell) -> None:
    for row in ("cold,heat,mild", "mild,wait,mild", "mild,wait,cold"):
        write("log.csv", "room,did,then", row)
        assert learned(shell, "--prefer", "mild")["warnings"] != [], row


# explain


def test_explain_accounts_for_every_probability(shell: Shell, policy: str) -> None:
    """With TL, the shares of the records and of the prior add up to the probability."""
    learner = load(policy).retarget(Goal(prefer={"mild": 1}), "TL")
    learner.save(policy)
    rows = learner.rule_.to_dict()
    for state, row in rows.items():
        content = shell("explain", policy, state, "--json").json
        assert list(content) == ["state", "method", "measure", "horizon", "actions"]
        assert content["state"] == state
        assert content["method"] == "TL"
        reasons = content["actions"]
        probabilities = {action: reason["probability"] for action, reason in reasons.items()}
        assert probabilities == pytest.approx(row)
        for reason in reasons.values():
            assert list(reason)[:4] == ["probability", "is_allowed", "parts", "adds_up"]
            assert list(reason)[4:] == ["evidence", "value"]
            assert list(reason["parts"]) == ["records", "prior"]
            parts = math.fsum(reason["parts"].values())
            assert parts == pytest.approx(reason["probability"], rel=1e-14)
            for each in reason["evidence"]:
                assert list(each) == ["next_state", "records", "similarity", "share"]
            shares = math.fsum(each["share"] for each in reason["evidence"])
            assert shares == pytest.approx(reason["parts"]["records"], rel=1e-14)


def test_explain_one_action(shell: Shell, policy: str) -> None:
    content = shell("explain", policy, "cold", "heat", "--json").json
    assert list(content["actions"]) == ["heat"]
    assert [(e["next_state"], e["records"]) for e in content["actions"]["heat"]["evidence"]] == [
        ("mild", 1),
        ("warm", 1),
    ]
    shown = shell("explain", policy, "cold", "wait")
    assert (shown.code, shown.err) == (0, "")
    assert "2 records" in shown.out
    assert "to cold" in shown.out
    assert "heat" not in shown.out


def test_explain_names_the_nearest_label(shell: Shell, policy: str) -> None:
    refused(shell, "explain", policy, "col", because="did you mean 'cold'")
    refused(shell, "explain", policy, "cold", "haet", because="did you mean 'heat'")
    refused(shell, "explain", policy, because="STATE")


# retarget, update, export


def test_retarget_is_learning_anew(shell: Shell, policy: str) -> None:
    content = shell("retarget", policy, "--prefer", "cold", "-o", "cold.safetensors", "--json").json
    assert content["policy"] == learned(shell, "--prefer", "cold")["policy"]
    assert load("cold.safetensors").rule_.to_dict() == content["policy"]
    goal = write("goal.toml", 'prefer = ["warm"]')
    shown = shell("retarget", policy, "--goal", goal, "-o", policy)
    assert shown.code == 0
    assert "be in warm" in shown.out
    assert load(policy).rule_.to_dict() == policy_of(Goal(prefer={"warm": 1}))


def test_skill_of_the_past_is_that_for_one_goal(shell: Shell) -> None:
    learned(shell, "--prefer", "warm", "--param", "past_skill=1", "-o", "skilled.safetensors")
    assert load("skilled.safetensors").method_ == TLForesight(past_skill=1)
    shell("retarget", "skilled.safetensors", "--prefer", "cold", "-o", "cold.safetensors")
    assert load("cold.safetensors").method_ == TLForesight()


def test_retarget_needs_a_goal_and_a_place(shell: Shell, policy: str) -> None:
    refused(shell, "retarget", policy, "-o", "new.safetensors", because="--prefer")
    refused(shell, "retarget", policy, "--prefer", "cold", because="--output")
    refused(shell, "retarget", policy, "--prefer", "hot", "-o", policy, because="'hot'")
    refused(
        shell,
        "retarget",
        "nowhere",
        "--prefer",
        "cold",
        "-o",
        "new",
        because="no such file: nowhere",
    )


def test_update_is_learning_from_both(shell: Shell, policy: str) -> None:
    """Also with labels that are new; the columns need not be repeated."""
    rows = ["cold,heat,mild", "hot,air,mild", "hot,heat,hot"]
    write(
        "new.csv",
        "then,did,room,more",
        *(",".join([*reversed(row.split(",")), "x"]) for row in rows),
    )
    content = shell("update", policy, "new.csv", "-o", "new.safetensors", "--json").json
    write("both.csv", *LOG.split(), *rows)
    both = learned(shell, "--prefer", "mild", log="both.csv")
    for part in ("states", "actions", "policy", "support", "warnings"):
        assert content[part] == both[part]
    assert load("new.safetensors").rule_.to_dict() == content["policy"]
    assert shell("update", policy, "new.csv", "-o", policy).code == 0
    assert files()[policy] == files()["new.safetensors"]


def test_update_knows_the_bins(shell: Shell) -> None:
    log, columns = temperatures()
    learned(
        shell,
        "--prefer",
        "< 6",
        "--method",
        "TL",
        "--bins",
        "temp=2",
        "-o",
        "p.safetensors",
        log=log,
        columns=columns,
    )
    write("new.csv", "temp,did,then", "2,heat,29", "99,heat,1")
    content = shell("update", "p.safetensors", "new.csv", "-o", "p.safetensors", "--json").json
    assert content["states"] == ["< 6", ">= 6"]
    assert content["support"]["< 6"]["records"] == 3
    assert content["support"][">= 6"]["records"] == 3
    assert content["warnings"] == []


def test_update_reads_a_log_that_lacks_the_terminal_state(shell: Shell) -> None:
    write("log.csv", *LOG.split(), "warm,wait,done")
    learned(shell, "--prefer", "mild", "--terminal", "done", "-o", "policy.safetensors")
    write("new.csv", "room,did,then", "cold,heat,mild")
    content = shell(
        "update", "policy.safetensors", "new.csv", "-o", "policy.safetensors", "--json"
    ).json
    assert content["support"]["cold"]["records"] == 5


def test_update_refuses_what_it_cannot_use(shell: Shell, policy: str) -> None:
    TransferLearner(Goal(prefer={"mild": 1})).fit(load(policy).counts_).save("counts.safetensors")
    refused(shell, "update", "counts.safetensors", "log.csv", "-o", policy, because="columns")
    refused(shell, "update", policy, "nowhere.csv", "-o", policy, because="nowhere.csv")
    refused(
        shell,
        "update",
        policy,
        write("other.csv", "rooms,did,then", "a,b,c"),
        "-o",
        policy,
        because="'rooms'",
    )
    refused(shell, "update", policy, "log.csv", because="--output")


def test_export_as_a_table_or_by_keys(shell: Shell, policy: str) -> None:
    rule = load(policy).rule_
    for name in ("rule.parquet", "rule.csv", "rule.json"):
        shown = shell("export", policy, "-o", name)
        assert (shown.code, shown.out) == (0, "")
        assert name in shown.err
    assert pq.read_table("rule.parquet").to_pydict() == rule.columns()
    with Path("rule.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["state"], row["action"], float(row["probability"])) for row in rows] == list(
        zip(*list(rule.columns().values())[:3], strict=True)
    )
    assert json.loads(Path("rule.json").read_text(encoding="utf-8")) == rule.to_dict()


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("p.sql", b"-- A policy learned by pastwise"),
        ("p.py", b'"""A policy learned by pastwise'),
        ("p.xlsx", b"PK"),
        ("p.onnx", b"\x08\x08"),
    ],
)
def test_export_for_places_without_pastwise(
    shell: Shell, policy: str, name: str, begin: bytes
) -> None:
    shown = shell("export", policy, "-o", name)
    assert (shown.code, shown.out, shown.err) == (0, "", f"The policy is in {name}\n")
    assert Path(name).read_bytes().startswith(begin)


def test_export_by_format_and_for_a_table(shell: Shell, policy: str) -> None:
    shell("export", policy, "--format", "json", "-o", "p.json")
    assert json.loads(Path("p.json").read_text())["format"] == "pastwise policy 1"
    shell("export", policy, "--format", "sql", "--table", "wards", "-o", "query.txt")
    assert Path("query.txt").read_text().endswith('FROM "wards"\n')


def test_export_refuses_other_kinds_of_files(shell: Shell, policy: str) -> None:
    refused(shell, "export", policy, "-o", "rule.txt", because=".parquet, .csv or .json")
    refused(shell, "export", policy, "-o", "p.xyz", because=".sql, .xlsx, .onnx, .py, and its rule")
    refused(shell, "export", policy, "-o", "missing/rule.csv", because="missing")
    refused(shell, "export", "log.csv", "-o", "rule.csv", because="log.csv")


# validate


def test_a_clean_log_has_no_findings(shell: Shell) -> None:
    shown = shell("validate", "log.csv", *COLUMNS, "--json")
    assert (shown.code, shown.err) == (0, "")
    assert shown.json == {"rows": 7, "transitions": 6, "states": 3, "actions": 2, "findings": []}
    shown = shell("validate", "log.csv", *COLUMNS)
    assert (shown.code, shown.err) == (0, "")
    assert "7 rows" in shown.out


def test_findings_have_codes_examples_and_remedies(shell: Shell) -> None:
    write("log.csv", *LOG.split(), "cold,,mild", "mild,wait,[dead]")
    shown = shell("validate", "log.csv", *COLUMNS, "--json")
    assert (shown.code, shown.err) == (1, "")
    content = shown.json
    assert {key: content[key] for key in ("rows", "transitions", "states", "actions")} == {
        "rows": 9,
        "transitions": 7,
        "states": 4,
        "actions": 2,
    }
    by_code = {finding["code"]: finding for finding in content["findings"]}
    assert set(by_code) == {"missing-action", "dead-end"}
    for finding in content["findings"]:
        members = {"code", "message", "rows", "examples", "fix", "severity", "remedies"}
        assert set(finding) == members
        assert finding["rows"] == 1
        assert finding["message"]
        assert finding["fix"]
    assert by_code["missing-action"]["examples"] == [
        {"row": 8, "room": "cold", "did": None, "then": "mild"}
    ]
    assert by_code["dead-end"]["examples"] == [{"state": "[dead]"}]
    shown = shell("validate", "log.csv", *COLUMNS)
    assert (shown.code, shown.err) == (1, "")
    for word in ("9 rows", "missing-action", "dead-end", "[dead]", "room=cold"):
        assert word in shown.out


def test_an_unusable_log_is_bad_input(shell: Shell) -> None:
    write("log.csv", "room,did,then", ",heat,mild")
    refused(shell, "validate", "log.csv", *COLUMNS, because="no usable transition")
    refused(shell, "validate", "log.csv", "--state", "room", "--action", "did", because="episode")


# Options.


def test_every_command_and_option_has_its_help(shell: Shell) -> None:
    assert set(COMMANDS) <= set(cli.commands)
    for name, command in cli.commands.items():
        shown = shell(name, "--help")
        assert (shown.code, shown.err) == (0, "")
        assert f"pastwise {name} [OPTIONS]" in shown.out
        assert command.help
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, (name, option.name)


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ([], "--prefer"),
        (["--forbid", "cold:heat"], "--prefer"),
        (["--goal", "goal.toml", "--prefer", "mild"], "not both"),
        (["--goal", "goal.toml", "--floor", "0.1"], "not both"),
        (["--goal", "goal.toml", "--forbid", "cold:heat"], "not both"),
        (["--goal", "nowhere.toml"], "nowhere.toml"),
        (["--goal", "."], "is a folder"),
        (["--goal", ""], "empty"),
        (["--goal", "log.csv"], "TOML"),
        (["--goal", "typo.toml"], "did you mean 'prefer'"),
        (["--goal", "sums.toml"], "sums to"),
        (["--goal", "empty.toml"], "empty goal"),
        (["--prefer", "midl"], "did you mean 'mild'"),
        (["--prefer", "mild=much"], "'much' is no number"),
        (["--prefer", "mild="], "--prefer"),
        (["--prefer", "mild=-1"], "positive"),
        (["--prefer", "mild=nan"], "finite"),
        (["--prefer", "mild", "--floor", "0.9"], "floor"),
        (["--prefer", "mild", "--floor", "-1"], "floor"),
        (["--prefer", "mild", "--floor", "nan"], "floor"),
        (["--prefer", "mild", "--floor", "little"], "little"),
        (["--prefer", "mild", "--forbid", "heat"], "--forbid"),
        (["--prefer", "mild", "--forbid", "cold:"], "--forbid"),
        (["--prefer", "mild", "--forbid", "cold:haet"], "did you mean 'heat'"),
        (
            ["--prefer", "mild", "--forbid", "cold:heat", "--forbid", ":wait"],
            "'cold' without any action",
        ),
        (["--prefer", "mild", *TL_PARAM, "prior_count=0"], "positive"),
        (["--prefer", "mild", *TL_PARAM, "prior_count=-1"], "positive"),
        (["--prefer", "mild", *TL_PARAM, "prior_count=nan"], "positive"),
        (["--prefer", "mild", "--param", "prior_count"], "--param takes two parts"),
        (["--prefer", "mild", "--param", "prior_count=much"], "number, true or false"),
        (["--prefer", "mild", *TL_PARAM, "prior=1"], "TL has no hyper-parameter 'prior'"),
        (["--prefer", "mild", *TL_PARAM, "similarity=1"], "similarity must be a function"),
        (
            ["--prefer", "mild", "--param", "prior_count=1", "--param", "prior_count=2"],
            "--param is given twice for 'prior_count'",
        ),
        (["--prefer", "mild", "--method", "tl"], "choose one of TL, "),
        (["--prefer", "mild", "--bins", "room"], "--bins"),
        (["--prefer", "mild", "--bins", "room=a,b"], "--bins"),
        (["--prefer", "mild", "--bins", "room="], "--bins"),
        (["--prefer", "mild", "--bins", "room=inf"], "--bins"),
        (["--prefer", "mild", "--bins", "room=nan"], "--bins"),
        (["--prefer", "mild", "--bins", "room=2.5"], "--bins"),
        (["--prefer", "mild", "--bins", "room=0,nan"], "--bins"),
        (["--prefer", "mild", "--bins", "2"], "--bins"),
        (
            ["--prefer", "mild", "--bins", "room=2", "--bins", "room=1,2"],
            "--bins is given twice for 'room'",
        ),
        (["--prefer", "mild", "--prefer", "mild=2"], "--prefer is given twice for 'mild'"),
        (["--prefer", "mild", "--bins", "room=0"], "bin"),
        (["--prefer", "mild", "--bins", "room=3,2,1"], "ascending"),
        (["--prefer", "mild", "--bins", "roof=1,2"], "'roof'"),
        (["--prefer", "mild", "--bins", "room=1,2"], "'room'"),
        (["--prefer", "mild", "--age", "room"], "half"),
        (["--prefer", "mild", "--half-life", "3"], "age"),
        (["--prefer", "mild", "--age", "room", "--half-life", "3"], "'room'"),
        (["--prefer", "mild", "--age", "room", "--half-life", "0d"], "half"),
        (["--prefer", "mild", "--age", "room", "--half-life", "-1"], "half"),
        (["--prefer", "mild", "--max-gap", "3"], "max"),
        (["--prefer", "mild", "--episode", "roof"], "'roof'"),
        (
            ["--prefer", "mild", "--episode", "room", "--time", "did"],
            "'did' must hold numbers or dates",
        ),
        (
            ["--prefer", "mild", "--episode", "room", "--time", "did", "--max-gap", "3"],
            "max_gap has no effect with next_state",
        ),
        (["--prefer", "mild", "--count", "room"], "'room'"),
        (["--prefer", "mild", "--weight", "weigth"], "'weigth'"),
        (["--prefer", "mild", "--next-state", "room"], "next_state"),
        (["--prefer", "mild", "extra"], "extra"),
        (["--prefer", "mild", "--nonsense"], "--nonsense"),
    ],
)
def test_wrong_options_are_bad_input(shell: Shell, options: list[str], because: str) -> None:
    write("goal.toml", 'prefer = "mild"')
    write("typo.toml", 'perfer = "mild"')
    write("sums.toml", "[table]", "cold = 0.5", "mild = 0.6")
    write("empty.toml")
    write("policy.safetensors", "old")
    refused(
        shell, *LEARN, *options, "-o", "policy.safetensors", "--plots", "figures", because=because
    )
    assert not Path("figures").exists()


# Bad input loses nothing.


def binary(name: str, content: bytes) -> None:
    Path(name).write_bytes(content)


def parquet(name: str, **columns: Any) -> None:
    pq.write_table(pa.table(columns), name)


NAN, INF = math.nan, math.inf
BAD_LOGS: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "missing column": ("log.csv", lambda name: write(name, "rom,did,then", "a,b,c"), "'rom'"),
    "no similar column": (
        "log.csv",
        lambda name: write(name, "x,did,then", "a,b,c"),
        "x, did, then",
    ),
    "column twice": (
        "log.csv",
        lambda name: write(name, "room,room,did,then", "a,a,b,c"),
        "'room'",
    ),
    "empty": ("log.csv", lambda name: binary(name, b""), "empty"),
    "empty Parquet": ("log.parquet", lambda name: binary(name, b""), "log.parquet"),
    "empty JSON": ("log.jsonl", lambda name: binary(name, b""), "log"),
    "header only": ("log.csv", lambda name: write(name, "room,did,then"), "no records"),
    "folder": ("folder", lambda name: Path(name).mkdir(), "is a folder"),
    "no such file": ("log.csv", lambda name: Path(name).unlink(), "no such file"),
    "another kind": ("log.docx", lambda name: binary(name, b"PK"), "kind"),
    "damaged sheet": ("log.xlsx", lambda name: binary(name, b"PK"), "not an Excel file"),
    "garbage": (
        "log.csv",
        lambda name: binary(name, np.random.default_rng(0).bytes(5000)),
        "log.csv",
    ),
    "garbage below a header": (
        "log.csv",
        lambda name: binary(name, b"room,did,then\n" + np.random.default_rng(1).bytes(5000)),
        "log.csv",
    ),
    "zeros": ("log.csv", lambda name: binary(name, b"\0" * 100), "not a text file"),
    "garbage as Parquet": ("log.parquet", lambda name: binary(name, b"PAR1 no"), "log.parquet"),
    "garbage as JSON": ("log.jsonl", lambda name: binary(name, b"{no}"), "log.jsonl"),
    "a short row": (
        "log.csv",
        lambda name: write(name, "room,did,then", "cold,heat,mild", "cold,heat"),
        "3",
    ),
    "a long row": (
        "log.csv",
        lambda name: write(name, "room,did,then", "cold,heat,mild,warm"),
        "2",
    ),
    "undefined states": (
        "log.parquet",
        lambda name: parquet(name, room=[NAN], did=["a"], then=[1.0]),
        "undefined",
    ),
    "infinite states": (
        "log.parquet",
        lambda name: parquet(name, room=[1.0], did=["a"], then=[INF]),
        "infinite",
    ),
    "missing states": (
        "log.parquet",
        lambda name: parquet(name, room=pa.array([None], pa.string()), did=["a"], then=["mild"]),
        "without",
    ),
    "states of lists": (
        "log.parquet",
        lambda name: parquet(name, room=[["a"]], did=["a"], then=[["a"]]),
        "'room'",
    ),
    "mixed types": (
        "log.jsonl",
        lambda name: write(
            name,
            '{"room": "mild", "did": "heat", "then": "mild"}',
            '{"room": 5, "did": "heat", "then": "mild"}',
        ),
        "type",
    ),
    "state and next state of different types": (
        "log.parquet",
        lambda name: parquet(name, room=["mild"], did=["a"], then=[1.5]),
        "different types",
    ),
}


@pytest.mark.parametrize("case", BAD_LOGS)
def test_a_bad_log_is_reported_in_one_line(shell: Shell, policy: str, case: str) -> None:
    name, make, because = BAD_LOGS[case]
    make(name)
    options = ["--prefer", "mild", "-o", policy, "--plots", "figures"]
    refused(shell, "learn", name, *COLUMNS, *options, because=because)
    refused(shell, "validate", name, *COLUMNS, because=because)
    refused(shell, "update", policy, name, "-o", policy, because=because)
    assert not Path("figures").exists()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("weight", "-1"),
        ("weight", "0"),
        ("weight", "nan"),
        ("weight", "inf"),
        ("weight", ""),
        ("weight", "heavy"),
        ("count", "-1"),
        ("count", "1.5"),
        ("count", "nan"),
        ("count", ""),
        ("count", "many"),
        ("task", ""),
    ],
)
def test_bad_weights_counts_and_tasks_are_reported_in_one_line(
    shell: Shell, policy: str, column: str, value: str
) -> None:
    write("log.csv", f"room,did,then,{column}", "cold,heat,mild,1", f"cold,wait,mild,{value}")
    refused(
        shell,
        *LEARN,
        f"--{column}",
        column,
        "--prefer",
        "mild",
        "-o",
        policy,
        because=f"'{column}'",
    )


def test_free_text_is_no_state(shell: Shell, policy: str) -> None:
    """Three million different notes, and one label more."""
    query = "select 'note ' || range as room, 'wait' as did, 'mild' as then from range(3000001)"
    duckdb.sql(f"copy ({query}) to 'notes.parquet'")
    refused(
        shell,
        "learn",
        "notes.parquet",
        *COLUMNS,
        "--prefer",
        "mild",
        "-o",
        policy,
        because="free text",
    )


def test_states_that_are_no_labels_are_left_out_with_a_warning(shell: Shell) -> None:
    parquet(
        "log.parquet",
        room=[1.0, NAN, INF, None, 2.0],
        did=["a"] * 5,
        then=[2.0, 1.0, 1.0, 1.0, 1.0],
    )
    content = learned(shell, "--prefer", "2.0", "--method", "TL", log="log.parquet")
    assert content["states"] == ["1.0", "2.0"]
    assert sum(row["records"] for row in content["support"].values()) == 2
    assert len(content["warnings"]) == 3


BAD_PLACES = [
    ("missing/new.safetensors", "missing"),
    (".", "folder"),
    ("/sys/new.safetensors", "/sys"),
]


@pytest.mark.parametrize(("place", "because"), BAD_PLACES)
def test_a_target_that_cannot_be_written_is_reported_in_one_line(
    shell: Shell, policy: str, place: str, because: str
) -> None:
    refused(shell, *LEARN, "--prefer", "mild", "-o", place, because=because)
    refused(shell, "retarget", policy, "--prefer", "cold", "-o", place, because=because)
    refused(shell, "update", policy, "log.csv", "-o", place, because=because)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["count", "log.csv", *COLUMNS], "log.csv"),
        (["count", "*.csv", *COLUMNS], "log.csv"),
        (["count", "log.csv", *COLUMNS], "link.csv"),
        ([*LEARN, "--prefer", "warm"], "./log.csv"),
        ([*LEARN, "--goal", "goal.toml"], "goal.toml"),
        (["learn", "policy.safetensors", "--prefer", "warm"], "policy.safetensors"),
        (["retarget", "policy.safetensors", "--goal", "goal.toml"], "goal.toml"),
        (["retarget", "policy.safetensors", "--prefer", "mild", "--log", "log.csv"], "log.csv"),
        (["update", "policy.safetensors", "log.csv"], "log.csv"),
        (["decide", "policy.safetensors", "log.csv"], "log.csv"),
        (["decide", "policy.safetensors", "log.csv"], "policy.safetensors"),
        (["export", "policy.safetensors", "--format", "sql"], "policy.safetensors"),
        (["card", "policy.safetensors"], "policy.safetensors"),
    ],
)
def test_no_output_replaces_what_is_read(
    shell: Shell, policy: str, command: list[str], output: str
) -> None:
    Path("goal.toml").write_text('prefer = "warm"\n')
    Path("link.csv").symlink_to("log.csv")
    refused(shell, *command, "-o", output, because="is read here as well; name another file")


def test_a_policy_is_updated_in_place(shell: Shell, policy: str) -> None:
    before = load(policy).counts_
    assert shell("update", policy, "log.csv", "-o", policy).code == 0
    assert load(policy).counts_.num_records == 2 * before.num_records
    assert shell("retarget", policy, "--prefer", "mild", "-o", policy).code == 0
    assert load(policy).goal == Goal(prefer="mild")


def test_an_empty_path_is_no_place(shell: Shell, policy: str) -> None:
    refused(shell, *LEARN, "--prefer", "mild", "-o", "", because="empty")
    refused(shell, *LEARN, "--prefer", "mild", "--plots", "", because="empty")
    refused(shell, "export", policy, "-o", "", because="empty")
    refused(shell, "reproduce", "--out", "", because="empty")


def test_figures_and_policy_go_into_one_new_folder(shell: Shell) -> None:
    learned(shell, "--prefer", "mild", "--plots", "new", "-o", "new/policy.safetensors")
    assert len(files()) == 5


def test_no_figures_without_the_policy(shell: Shell) -> None:
    refused(
        shell, *LEARN, "--prefer", "mild", "--plots", "figures", "-o", "missing/policy.safetensors"
    )


def test_no_policy_without_the_figures(shell: Shell) -> None:
    refused(
        shell,
        *LEARN,
        "--prefer",
        "mild",
        "--plots",
        "log.csv",
        "-o",
        "policy.safetensors",
        because="log.csv",
    )


def test_the_message_names_the_requested_file(shell: Shell) -> None:
    """And not the temporary file next to it."""
    refused(
        shell,
        *LEARN,
        "--prefer",
        "mild",
        "-o",
        "missing/policy.safetensors",
        because="missing/policy.safetensors:",
    )


@pytest.mark.parametrize("command", ["explain", "retarget", "update", "export"])
def test_a_damaged_policy_is_reported_in_one_line(shell: Shell, policy: str, command: str) -> None:
    content = Path(policy).read_bytes()
    arguments = {
        "explain": ["bad.safetensors", "cold"],
        "retarget": ["bad.safetensors", "--prefer", "cold", "-o", policy],
        "update": ["bad.safetensors", "log.csv", "-o", policy],
        "export": ["bad.safetensors", "-o", "rule.csv"],
    }[command]
    for bad in (b"", content[:-1], content[:100], b"\xff" * 8 + content[8:], b"garbage"):
        binary("bad.safetensors", bad)
        refused(shell, command, *arguments, because="bad.safetensors")
    Path("bad.safetensors").unlink()
    refused(shell, command, *arguments, because="no such file: bad.safetensors")
    Path("bad.safetensors").mkdir()
    refused(shell, command, *arguments, because="bad.safetensors")


@pytest.mark.parametrize("size", [0, 100])
def test_a_full_disk_is_reported_in_one_line(shell: Shell, policy: str, size: int) -> None:
    with full_disk(size):
        refused(shell, "retarget", policy, "--prefer", "cold", "-o", policy, because="large")
    write("rule.csv", "old")
    with full_disk(4):
        refused(shell, "export", policy, "-o", "rule.csv", because="large")


def test_ctrl_c_while_writing_loses_nothing(
    shell: Shell, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file, "save_file", interrupt)
    before = files()
    shown = shell("retarget", policy, "--prefer", "cold", "-o", policy)
    assert (shown.code, shown.out, shown.err.strip()) == (130, "", "pastwise: interrupted")
    assert files() == before


# As a process.


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pastwise", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_process_keeps_data_and_the_rest_apart(shell: Shell) -> None:
    """And says nothing at its end, such as of leaks."""
    done = process(*LEARN, "--prefer", "mild", "-o", "policy.safetensors", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["policy"] == policy_of(Goal(prefer={"mild": 1}))
    done = process("explain", "policy.safetensors", "cold", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["state"] == "cold"
    done = process("validate", "log.csv", *COLUMNS, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == 7
    done = process(*LEARN, "--prefer", "cold", "--method", "TL")
    assert done.returncode == 0
    assert "be in cold" in done.stdout
    assert [line[:9] for line in done.stderr.splitlines()] == ["warning: "]


def test_a_process_reports_bad_input_in_one_line(shell: Shell) -> None:
    for arguments in (
        ["learn", "nowhere.csv", *COLUMNS, "--prefer", "mild"],
        ["learn"],
        ["explain", "log.csv", "cold"],
    ):
        done = process(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("pastwise: ")
        assert done.stderr.count("\n") == 1


def test_without_a_command_there_is_help(shell: Shell) -> None:
    shown = shell()
    assert shown.code == 2
    assert all(name in shown.err for name in COMMANDS)


def test_a_terminal_shows_that_something_happens(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pseudo-terminal takes the place of stderr."""
    terminal, end = os.openpty()
    shown = bytearray()

    def watch() -> None:
        with contextlib.suppress(OSError):  # the other end was closed
            while chunk := os.read(terminal, 10_000):
                shown.extend(chunk)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with os.fdopen(end, "w") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        content = learned(shell, "--prefer", "mild")
        with progress("Simulating", 3) as advance:
            advance(3)
    watcher.join()
    os.close(terminal)
    assert b"Reading" in shown
    assert b"Simulating" in shown
    assert content["policy"] == policy_of(Goal(prefer={"mild": 1}))


def test_columns_say_the_same_in_both_worlds(shell: Shell) -> None:
    """What the options say is kept with the policy."""
    log, columns = temperatures()
    options = [
        "--prefer",
        "< 6",
        "--bins",
        "temp=6,40",
        "--terminal",
        "[6, 40)",
        "--typed-labels",
    ]
    assert shell("learn", log, *columns, *options, "-o", "p.safetensors").code == 0
    assert load("p.safetensors").columns_ == Columns(
        ("temp",),
        ("did",),
        ("then",),
        terminal=("[6, 40)",),
        bins={"temp": Bins((6.0, 40.0))},
        text_labels=False,
    )


def test_files_of_counts_and_policies_are_known_by_their_content(shell: Shell) -> None:
    """A name without .safetensors is as good."""
    learned(shell, "--prefer", "mild", "-o", "policy.st")
    counted_by_name = shell("states", "log.csv", *COLUMNS, "--json").json
    assert shell("states", "policy.st", "--json").json == counted_by_name
    again = shell("learn", "policy.st", "--prefer", "mild", "-o", "again.st", "--json")
    assert again.code == 0
    assert again.json["states"] == ["cold", "mild", "warm"]
