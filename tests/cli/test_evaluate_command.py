"""``pastwise evaluate`` and the verdict of ``pastwise learn``."""

import json
from pathlib import Path
from typing import Any

import pytest

import pastwise as pw
from pastwise.evaluation.verdict import DEFAULT_THRESHOLDS
from tests.helpers.command import Shell, shell_of
from tests.helpers.episodes import door_episodes, with_next_states

THERMOSTAT = Path(__file__).parents[2] / "examples" / "thermostat"
LOG = str(THERMOSTAT / "log.csv")
GOAL = str(THERMOSTAT / "goal.toml")
COLUMNS: dict[str, Any] = {"state": "room", "action": "did", "episode": "day", "time": "hour"}
NEXT_STATES = ["--state", "s", "--action", "a", "--next-state", "n"]
SHORT_LOG = "s,a,n\na,x,b\nb,y,a\n"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    """Runs a command."""
    return shell_of(monkeypatch, capsys)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A policy for the thermostat by TL, which leaves every action some probability."""
    path = tmp_path_factory.mktemp("policy") / "policy.safetensors"
    pw.TransferLearner(pw.Goal.from_toml(GOAL), method="TL").fit(LOG, **COLUMNS).save(path)
    return str(path)


def test_evaluate_json(policy: str, shell: Shell) -> None:
    options = ["--samples", "200", "--horizon", "12", "--importance", "--json"]
    shown = shell("evaluate", policy, LOG, *options)
    assert shown.code == 0
    content: dict[str, Any] = json.loads(shown.out)
    assert set(content["values"]["new"]) == {"mean", "low", "high", "level"}
    assert set(content["differences"]) == {"to_logged", "to_random"}
    assert content["verdict"] == {"logged": "better", "random": "better"}
    assert content["alarm"]["raised"] is False
    deciding = content["comparisons"]["logged"]["deciding"]
    assert deciding["level"] == DEFAULT_THRESHOLDS.deciding_level
    assert content["margin"] == pytest.approx(0.01)
    assert content["objections"] == []
    assert content["samples"] == content["samples_requested"] == 200
    assert content["support"]["records"] == 440
    assert set(content["alternatives"]) == {"TL_foresight", "FPD_learn"}
    assert content["alternatives"]["TL_foresight"]["reference"] == "TL_foresight"
    estimates = content["estimates"]
    assert estimates["doubly robust"]["mean"] > estimates["logged"]["mean"]
    assert all("Relies on" in estimate["assumption"] for estimate in estimates.values())
    robust = estimates["doubly robust"]
    assert robust["usable"] is False
    assert "effective episodes, fewer than 10" in robust["why_not"]
    assert robust["folds"] == 5
    gain = robust["mean"] - estimates["logged"]["mean"]
    assert robust["difference"]["mean"] == pytest.approx(gain)
    assert robust["in_sample"] > robust["mean"]


def test_a_log_may_be_said_to_be_held_out(policy: str, shell: Shell) -> None:
    options = ["--samples", "100", "--horizon", "12", "--importance", "--json"]
    own = json.loads(shell("evaluate", policy, LOG, *options).out)
    held_out = json.loads(shell("evaluate", policy, LOG, *options, "--held-out").out)
    assert set(own["in_sample"]) == {"new", "TL_foresight", "FPD_learn"}
    assert set(held_out["in_sample"]) == {"FPD_learn"}
    assert held_out["values"]["new"] == own["in_sample"]["new"]
    assert "rule and behaviour" in own["estimates"]["importance sampling"]["assumption"]
    assert "rule and behaviour" not in held_out["estimates"]["importance sampling"]["assumption"]


def test_evaluate_as_text(policy: str, shell: Shell) -> None:
    shown = shell("evaluate", policy, LOG, "--samples", "100", "--importance")
    assert shown.code == 0
    assert "better than what was done" in shown.out
    assert "doubly robust" in shown.out
    assert "(unusable)" in shown.out
    assert "fewer than 10" in shown.out
    assert "learned and judged on the same episodes" in shown.out
    assert "\nAlternatives by the log: TL_foresight 0." in shown.out


def test_a_usable_estimate_is_not_marked(policy: str, shell: Shell) -> None:
    options = ["--samples", "50", "--importance", "--horizon", "4"]
    shown = shell("evaluate", policy, LOG, *options)
    assert "doubly robust" in shown.out
    assert "minus logged" in shown.out
    assert "unusable" not in shown.out
    assert "New policy minus others: mean and " in shown.out
    assert "Differences of at most 0.01 do not count (margin: 1 % of the range" in shown.out
    assert "Alarm not raised: the expected difference to acting at random" in shown.out


def test_a_margin_decides_what_matters(policy: str, shell: Shell) -> None:
    options = ["--samples", "100", "--margin", "0.5"]
    shown = shell("evaluate", policy, LOG, *options)
    assert shown.code == 1
    assert "is within 0.5 of what was done" in shown.out
    assert "Differences of at most 0.5 do not count (margin: as requested)." in shown.out


def test_an_unfair_comparison_is_not_better(tmp_path: Path, shell: Shell) -> None:
    """The next state is the action, so by the log the rule reaches what is preferred at once."""
    log = tmp_path / "log.csv"
    records = ["b,a,a", "b,b,b", "a,b,b", "a,a,a", "b,b,b"] * 30
    log.write_text("\n".join(["s,a,n", *records]) + "\n")
    policy = str(tmp_path / "policy.safetensors")
    shown = shell("learn", str(log), *NEXT_STATES, "--prefer", "a", "-o", policy, "--json")
    verdict = json.loads(shown.out)["verdict"]
    assert verdict["logged"] == "cannot tell"
    assert [each["code"] for each in verdict["objections"]] == ["action-determines-outcome"]
    assert "better by the log than what was done" in verdict["sentence"]

    shown = shell("evaluate", policy, str(log), "--samples", "100")
    assert shown.code == 1
    assert "but this is not a fair comparison: the next state depends" in shown.out
    assert "Not a fair comparison (action-determines-outcome): the next state" in shown.out
    (row,) = [line for line in shown.out.splitlines() if "cannot tell" in line and "logged" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells[-2:] == ["cannot tell", "better"]
    shown = shell("evaluate", policy, str(log), "--samples", "100", "--json")
    assert shown.code == 1
    content = json.loads(shown.out)
    assert content["comparisons"]["logged"]["by_the_log"] == "better"
    assert content["verdict"] == {"logged": "cannot tell", "random": "cannot tell"}


def test_evaluate_shows_the_support_in_a_table_of_its_own(policy: str, shell: Shell) -> None:
    shown = shell("evaluate", policy, LOG, "--samples", "100")
    values, support = shown.out.split("What the new policy rests on")
    assert "optimum" in values
    assert "similarity" not in values
    rows = [line.strip("│ ").split("│") for line in support.splitlines() if "│" in line]
    cells = {name.strip(): number.strip() for name, number in rows}
    assert cells["records of the log"] == "440"
    assert cells["their total similarity to the goal"] == "179"
    assert cells["its decisions that the log has at least 5 times"] == "100 %"
    assert cells["states that it visits and the log never left"] == "0"


def test_not_better_is_exit_code_one(tmp_path: Path, shell: Shell) -> None:
    log = tmp_path / "log.csv"
    log.write_text(SHORT_LOG)
    policy = str(tmp_path / "p.safetensors")
    assert shell("learn", str(log), *NEXT_STATES, "--prefer", "a", "-o", policy).code == 0
    assert shell("evaluate", policy, str(log), "--samples", "100").code == 1


def test_the_episodes_of_the_log_may_object(tmp_path: Path, shell: Shell) -> None:
    """Ten patients with one drug each: by the log the new drug is better."""
    lines = ["patient,day,state,drug"]
    for patient in range(10):
        has_new = patient % 2 == 0
        for day in range(30):
            is_well = day % 5 < (4 if has_new else 1)
            state = "well" if is_well else "ill"
            lines.append(f"{patient},{day},{state},{'new' if has_new else 'old'}")
    log = tmp_path / "log.csv"
    log.write_text("\n".join(lines) + "\n")
    policy = str(tmp_path / "policy.safetensors")
    columns = ["--state", "state", "--action", "drug", "--episode", "patient", "--time", "day"]
    shown = shell("learn", str(log), *columns, "--prefer", "well", "-o", policy)
    assert shown.code == 0
    assert "each of the 10 episodes has one action on all its records" in shown.out
    shown = shell("evaluate", policy, str(log), "--samples", "100", "--json")
    assert shown.code == 1
    content = json.loads(shown.out)
    assert content["unit"] == "10 episodes, 290 records"
    assert [each["code"] for each in content["objections"]] == ["action-constant"]
    assert content["comparisons"]["logged"]["by_the_log"] == "better"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--horizon", "0"], "horizon"),
        (["--samples", "0"], "samples"),
        (["--margin", "-0.1"], "--margin must be a finite number that is not negative"),
        (["--margin", "nan"], "--margin must be a finite number that is not negative"),
        (["--margin", "inf"], "--margin must be a finite number that is not negative"),
        (["--margin", "much"], "--margin"),
        (["--propensity", "hour"], "--propensity has no effect without --importance"),
        (["--importance", "--propensity", "hour"], "hour"),
        (["--importance", "--propensity", "nothing"], "nothing"),
    ],
)
def test_bad_options_are_refused(
    policy: str, options: list[str], message: str, shell: Shell
) -> None:
    shown = shell("evaluate", policy, LOG, "--samples", "20", *options)
    assert shown.code == 2
    assert shown.err.startswith("pastwise: ")
    assert message in shown.err


def test_other_labels_are_refused(policy: str, tmp_path: Path, shell: Shell) -> None:
    other = tmp_path / "other.csv"
    other.write_text("day,hour,room,did\n1,1,freezing,heat\n1,2,cold,heat\n1,3,cold,heat\n")
    shown = shell("evaluate", policy, str(other))
    assert shown.code == 2
    assert "other labels than the policy" in shown.err


def test_importance_sampling_needs_episodes(tmp_path: Path, shell: Shell) -> None:
    log = tmp_path / "log.csv"
    log.write_text(SHORT_LOG)
    policy = str(tmp_path / "p.safetensors")
    assert shell("learn", str(log), *NEXT_STATES, "--prefer", "a", "-o", policy).code == 0
    shown = shell("evaluate", policy, str(log), "--samples", "9", "--importance")
    assert shown.code == 2
    assert "episode" in shown.err


def test_a_log_with_next_states_and_episodes_is_weighted(tmp_path: Path, shell: Shell) -> None:
    """One set of columns counts, learns and evaluates; a broken chain is a warning on stderr."""
    log = str(tmp_path / "log.csv")
    counts = str(tmp_path / "counts.safetensors")
    policy = str(tmp_path / "policy.safetensors")
    columns = [*NEXT_STATES, "--episode", "e", "--time", "t"]
    columns += ["--terminal", "win", "--terminal", "lose"]
    options = ["--samples", "50", "--importance", "--json"]

    # Whole episodes.
    rows = list(zip(*with_next_states(door_episodes()).values(), strict=True))
    lines = ["e,t,s,a,n", *(",".join(map(str, row)) for row in rows)]
    Path(log).write_text("\n".join(lines) + "\n")
    shown = shell("validate", log, *columns, "--json")
    codes = [finding["code"] for finding in json.loads(shown.out)["findings"]]
    assert codes == ["no-effect"]  # the chain is whole; who gets in does not depend on the action
    assert shell("count", log, *columns, "-o", counts).code == 0
    assert shell("learn", counts, "--prefer", "win", "-o", policy).code == 0
    shown = shell("evaluate", policy, log, *options)
    assert shown.err == ""
    won = sum(row[-1] == "win" for row in rows) / 300
    assert json.loads(shown.out)["estimates"]["logged"]["mean"] == pytest.approx(won)

    # An episode that breaks.
    Path(log).write_text("e,t,s,a,n\n0,0,door,push,room\n0,1,door,knock,lose\n1,0,door,push,win\n")
    shown = shell("validate", log, *columns)
    assert shown.code == 1
    assert "broken-chain" in shown.out
    shown = shell("evaluate", policy, log, *options)
    assert shown.err.startswith(
        "warning: 1 record in another state than the one before in the episode led to"
    )
    assert shown.err.count("\n") == 1
    assert json.loads(shown.out)["estimates"]["logged"]["mean"] == pytest.approx(1 / 3)


def test_learn_ends_with_the_verdict_unless_it_is_switched_off(shell: Shell) -> None:
    columns = []
    for name, column in COLUMNS.items():
        columns += [f"--{name}", column]
    learn = ["learn", LOG, *columns, "--goal", GOAL]
    shown = shell(*learn)
    assert shown.code == 0
    assert "better than what was done" in shown.out
    shown = shell(*learn, "--no-verdict")
    assert shown.code == 0
    assert "better than" not in shown.out
    shown = shell(*learn, "--json")
    assert shown.code == 0
    assert json.loads(shown.out)["verdict"]["logged"] == "better"
    shown = shell(*learn, "--json", "--margin", "0.4")
    assert json.loads(shown.out)["verdict"]["logged"] == "cannot tell"
    shown = shell(*learn, "--margin", "-1")
    assert shown.code == 2
    assert "--margin must be a finite number" in shown.err


def test_learn_gives_no_verdict_on_many_states(tmp_path: Path, shell: Shell) -> None:
    large = tmp_path / "large.csv"
    large.write_text("s,a,n\n" + "".join(f"s{i},x,s{i + 1}\n" for i in range(400)))
    shown = shell("learn", str(large), *NEXT_STATES, "--prefer", "s9")
    assert shown.code == 0
    assert "No verdict on so many states (401)" in shown.out


def test_evaluate_by_other_goals(policy: str, shell: Shell, tmp_path: Path) -> None:
    cold = tmp_path / "cold.toml"
    cold.write_text('prefer = ["cold", "cool"]\n')
    goals = ["--by", f"comfort={GOAL}", "--by", f"cold={cold}"]

    # The policy's own goal decides the exit code.
    shown = shell("evaluate", policy, LOG, *goals, "--samples", "100", "--json")
    assert shown.code == 0
    content = json.loads(shown.out)
    by_goal = content.pop("by_goal")
    assert list(by_goal) == ["comfort", "cold"]
    own = by_goal["comfort"]
    same = ["sentence", "comparisons", "verdict", "alarm", "objections", "margin", "support"]
    assert {key: own[key] for key in same} == {key: content[key] for key in same}
    assert own["by_goal"] == own["alternatives"] == {}, "other methods learn for the own goal"
    assert by_goal["cold"]["verdict"]["random"] == "worse"

    text = shell("evaluate", policy, LOG, *goals, "--samples", "100").out
    assert f"By the goal cold: {by_goal['cold']['sentence']}" in text


def test_goals_to_judge_by_are_checked(policy: str, shell: Shell, tmp_path: Path) -> None:
    far = tmp_path / "far.toml"
    far.write_text('prefer = "tropical"\n')
    for goals, message in (
        ([f"far={far}"], "goal 'far': prefer: unknown label 'tropical'"),
        ([f"one={GOAL}", f"one={GOAL}"], "--by is given twice for 'one'"),
        (["one=missing.toml"], "no such file: missing.toml"),
        ([GOAL], "--by takes two parts"),
    ):
        options = [part for goal in goals for part in ("--by", goal)]
        shown = shell("evaluate", policy, LOG, *options, "--samples", "40")
        assert shown.code == 2
        assert message in shown.err


def test_the_horizon_is_the_usual_length_of_an_episode(policy: str, shell: Shell) -> None:
    shown = shell("evaluate", policy, LOG, "--samples", "40", "--json")
    assert json.loads(shown.out)["horizon"] == 11
