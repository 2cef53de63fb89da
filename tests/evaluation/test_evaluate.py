"""The verdict on a learned rule, as a user gets it."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

import pastwise as pw
from pastwise.evaluation.evaluate import evaluate_rule
from pastwise.evaluation.result import Evaluation
from pastwise.report.figures import value_plot
from pastwise.theory.learning import rule_interval
from tests.helpers.command import call

THERMOSTAT = Path(__file__).parents[2] / "examples" / "thermostat"
COLUMNS = {"state": "room", "action": "did", "episode": "day", "time": "hour"}


@pytest.fixture(scope="module")
def learner() -> pw.TransferLearner:
    goal = pw.Goal.from_toml(THERMOSTAT / "goal.toml")
    return pw.TransferLearner(goal).fit(THERMOSTAT / "log.csv", **COLUMNS)


@pytest.fixture(scope="module")
def evaluation(learner: pw.TransferLearner) -> Evaluation:
    return learner.evaluate(samples=400)


def test_a_good_rule_is_told_to_be_better(evaluation: Evaluation) -> None:
    assert evaluation.verdict == {"logged": "better", "random": "better"}
    assert not evaluation.alarm
    assert evaluation.sentence.startswith("The new rule (share of time as wanted 0.5")
    assert "better than what was done" in evaluation.sentence
    for value in (*evaluation.values.values(), *evaluation.differences.values()):
        assert value.low <= value.mean <= value.high
    assert list(evaluation.values) == ["new", "logged", "random", "FPD_learn", "optimum"]


def test_a_harmful_rule_raises_the_alarm(learner: pw.TransferLearner) -> None:
    """Airing at all times keeps the building cold."""
    own = learner.rule_
    airing = replace(own, probabilities=np.eye(3)[np.full(5, 2)])
    result = evaluate_rule(
        airing.probabilities, learner.support().arrays, learner.goal, learner.counts_, samples=300
    )
    assert result.alarm
    assert result.verdict == {"logged": "worse", "random": "worse"}
    assert "Warning" in result.sentence


def test_a_log_that_supports_nothing_cannot_tell() -> None:
    log = {"s": ["a", "b"], "a": ["x", "y"], "n": ["b", "c"]}
    found = pw.TransferLearner(pw.Goal(prefer={"c": 1})).fit(
        log, state="s", action="a", next_state="n"
    )
    result = found.evaluate(samples=400)
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    width = result.values["new"].high - result.values["new"].low
    assert width > 0.3
    assert result.support.states_by_extrapolation == ("c",)


def test_ending_well_is_what_counts_where_the_wanted_state_is_terminal() -> None:
    rng = np.random.default_rng(1)
    did = rng.choice(["good", "bad"], size=400)
    then = np.where(rng.random(400) < np.where(did == "good", 0.8, 0.3), "well", "ill")
    log = {"s": ["start"] * 400, "a": did.tolist(), "n": then.tolist()}
    found = pw.TransferLearner(pw.Goal(prefer={"well": 1})).fit(
        log, state="s", action="a", next_state="n", terminal=["well", "ill"]
    )
    result = found.evaluate(samples=300, horizon=20)
    assert result.measure == "chance of ending well"
    assert result.values["logged"].mean == pytest.approx(np.mean(then == "well"), abs=0.03)
    assert result.values["optimum"].mean == pytest.approx(0.8, abs=0.06)
    assert result.verdict["logged"] == "better"


def doors() -> dict[str, list[Any]]:
    """Episodes that all start at a door; one in ten gets into a room, stays long, and wins."""
    rng = np.random.default_rng(2)
    rows = []
    for episode in range(300):
        path = ["door", *["room"] * 8, "win"] if rng.random() < 0.1 else ["door", "lose"]
        rows += [(episode, t, state, rng.choice(["knock", "push"])) for t, state in enumerate(path)]
    return dict(zip(("e", "t", "s", "a"), map(list, zip(*rows, strict=True)), strict=True))


def test_episodes_start_where_the_log_starts() -> None:
    log = doors()
    columns = {
        "state": "s",
        "action": "a",
        "episode": "e",
        "time": "t",
        "terminal": ["win", "lose"],
    }
    found = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(log, **columns)
    result = found.evaluate(samples=200)
    won = log["s"].count("win") / 300
    assert result.values["logged"].mean == pytest.approx(won, abs=0.01)
    assert result.support.visits_well_seen > 0.95, "what comes after the end is no visit"
    weighed = replace(result, estimates=found.estimates(log, 100))
    assert weighed.estimates["logged"].mean == pytest.approx(won)
    assert weighed.to_frame("polars")["quantity"].to_list().count("estimate") == 3


def told(log: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The same episodes with the next state in a column; an end is no record."""
    rows = list(zip(*log.values(), strict=True))
    steps = [(*row, later[2]) for row, later in pairwise(rows) if row[0] == later[0]]
    return dict(zip((*log, "n"), map(list, zip(*steps, strict=True)), strict=True))


def test_next_states_in_a_column_or_in_the_next_record_tell_the_same() -> None:
    columns = {
        "state": "s",
        "action": "a",
        "episode": "e",
        "time": "t",
        "terminal": ["win", "lose"],
    }
    plain = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(log := doors(), **columns)
    other = pw.TransferLearner(pw.Goal(prefer={"win": 1})).fit(told(log), next_state="n", **columns)
    assert other.counts_ == plain.counts_
    one, two = plain.evaluate(samples=100), other.evaluate(samples=100)
    assert one.values == two.values
    expected = plain.estimates(log, 100)
    assert other.estimates(told(log), 100) == expected
    assert expected["importance sampling"].effective_episodes > 30


def test_episodes_in_which_records_are_missing_are_taken_in_pieces_with_a_warning() -> None:
    log = {
        "e": [1, 1, 1, 2, 2],
        "t": [1, 2, 4, 1, 2],
        "s": list("aabaa"),
        "a": list("xyxxy"),
        "n": list("aaaab"),
    }
    columns = {"state": "s", "action": "a", "next_state": "n", "episode": "e", "time": "t"}
    found = pw.TransferLearner(pw.Goal(prefer={"b": 1})).fit(log, **columns)
    with pytest.warns(
        pw.LogWarning, match="1 record in another state than the one before"
    ) as caught:
        estimates = found.estimates(log, 10)
    assert {warning.filename for warning in caught} == {__file__}
    assert estimates["logged"].mean == pytest.approx(1 / 3)


def test_a_reward_is_summed_until_the_end() -> None:
    """Each step costs 1 and the win earns 10: the measure is the total, and the arrival at an end counts once."""
    columns = {
        "state": "s",
        "action": "a",
        "episode": "e",
        "time": "t",
        "terminal": ["win", "lose"],
    }
    log = doors()
    found = pw.TransferLearner(pw.Goal(reward={"win": 10.0, "room": -1.0, "lose": -2.0})).fit(
        log, **columns
    )
    result = found.evaluate(samples=200)
    assert result.measure == "total reward of an episode"
    total = 10.0 * log["s"].count("win") - log["s"].count("room") - 2.0 * log["s"].count("lose")
    assert result.values["logged"].mean == pytest.approx(total / 300, abs=0.1)


@pytest.mark.parametrize("weight", [1e-3, 100.0])
def test_the_unit_of_the_weights_does_not_matter(weight: float) -> None:
    log = {**doors(), "w": [weight] * len(doors()["s"])}
    columns = {"state": "s", "action": "a", "episode": "e", "time": "t"}
    goal = pw.Goal(prefer={"win": 1})
    plain = pw.TransferLearner(goal).fit(log, **columns).evaluate(samples=50)
    weighed = pw.TransferLearner(goal).fit(log, weight="w", **columns).evaluate(samples=50)
    assert weighed.values["logged"].low == pytest.approx(plain.values["logged"].low, rel=1e-6)


def test_a_log_to_evaluate_on_may_be_a_file(
    learner: pw.TransferLearner, evaluation: Evaluation
) -> None:
    assert learner.evaluate(THERMOSTAT / "log.csv", samples=400).values == evaluation.values


def test_small_values_are_shown_with_enough_digits(learner: pw.TransferLearner) -> None:
    tiny = learner.retarget(
        pw.Goal(reward={"warm": 1e-6, "hot": -1e-6}, temperature=1e-6)
    ).evaluate(samples=50)
    assert "0.000;" not in tiny.sentence


def test_few_draws_give_no_verdict_and_say_so(learner: pw.TransferLearner) -> None:
    result = learner.evaluate(samples=1)
    assert result.verdict == {"logged": "cannot tell", "random": "cannot tell"}
    assert "Fewer than 40 samples give no verdict" in result.sentence


def test_evaluation_is_shown_in_every_form(evaluation: Evaluation) -> None:
    assert json.loads(json.dumps(evaluation.to_dict()))["alarm"] is False
    frame = evaluation.to_frame("polars")
    assert frame["of"].to_list() == [*evaluation.values, "to_logged", "to_random"]
    assert frame["quantity"].to_list() == ["value"] * 5 + ["difference"] * 2
    assert "<table>" in evaluation._repr_html_()
    labels = [label.get_text() for label in value_plot(evaluation).axes[0].get_yticklabels()]
    assert labels == list(evaluation.values)


def test_fewer_draws_than_asked_are_told(learner: pw.TransferLearner) -> None:
    def impatient(done: int) -> None:
        raise KeyboardInterrupt

    result = learner.evaluate(samples=5000, on_step=impatient)
    assert f"Only {result.samples} of 5000 samples were taken" in result.sentence


def test_bad_input_is_refused(learner: pw.TransferLearner) -> None:
    other = pw.TransitionCounts.from_records(
        [0], [0], [0], pw.Space(("elsewhere",)), pw.Space(("heat",))
    )
    with pytest.raises(
        ValueError, match="the log has other labels than the policy: unknown label 'elsewhere'"
    ):
        learner.evaluate(other)
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        learner.evaluate(horizon=0)
    with pytest.raises(ValueError, match="number of samples must be a whole number"):
        learner.evaluate(samples=0)
    with pytest.raises(ValueError, match="background count must be positive, not -1"):
        learner.evaluate(background=-1)
    with pytest.raises(ValueError, match="initial"):
        learner.evaluate(initial={"cold": 0.4})
    many = pw.TransitionCounts.from_records(
        [0], [0], [0], pw.Space.of_size(5000), pw.Space.of_size(2)
    )
    with pytest.raises(ValueError, match=r"at most 3,000 states \(got 5,000\)"):
        pw.TransferLearner(pw.Goal(prefer={0: 1})).fit(many).evaluate()


def test_a_goal_with_hard_zeros_goes_without_fpd_learn(learner: pw.TransferLearner) -> None:
    result = learner.retarget(pw.Goal(table={"comfortable": 1.0})).evaluate(samples=50)
    assert "FPD_learn" not in result.values


@pytest.mark.parametrize(
    "goal",
    [
        pw.Goal(reward={"warm": 2.0, "hot": -1.0}),
        pw.Goal(table={"warm": 0.5, "cool": 0.25, "cold": 0.25}),
        pw.Goal(targets={"room": {"warm": 1.0}}),
    ],
)
def test_every_goal_over_states_has_a_score(learner: pw.TransferLearner, goal: pw.Goal) -> None:
    result = learner.retarget(goal).evaluate(samples=50)
    assert result.values["optimum"].mean >= result.values["random"].mean


@pytest.mark.parametrize(
    "goal",
    [
        pw.Goal(prefer_actions={"idle": 1}),
        pw.Goal(reward={"cold": {"heat": 1.0, "idle": {"cold": -1.0}}}),
        pw.Goal(reward={state: {"idle": 1.0} for state in ("cold", "cool", "warm", "hot")}),
    ],
)
def test_a_goal_over_actions_is_evaluated_too(learner: pw.TransferLearner, goal: pw.Goal) -> None:
    result = learner.retarget(goal).evaluate(samples=50)
    assert result.measure == ("mean reward" if goal.reward else "mean utility of a step")
    assert result.values["optimum"].mean >= result.values["random"].mean
    if not goal.reward:
        assert result.values["random"].mean == pytest.approx(1 / len(learner.counts_.actions))
        assert result.values["optimum"].mean == pytest.approx(1)


def test_intervals_of_the_rule_are_those_of_the_beta_marginals(learner: pw.TransferLearner) -> None:
    low, high = learner.rule_intervals()
    evidence, prior = learner._fitted.evidence, learner._fitted.prior
    V = evidence + prior
    rest = V.sum(axis=-1, keepdims=True) - V
    inner = (V > 0) & (rest > 0)
    np.testing.assert_allclose(
        low[inner], beta.ppf(0.05, V[inner], rest[inner]), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_allclose(
        high[inner], beta.ppf(0.95, V[inner], rest[inner]), rtol=1e-6, atol=1e-12
    )
    hot, heat = 3, 0
    assert (low[hot, heat], high[hot, heat]) == (0.0, 0.0)


def test_the_only_action_is_certain() -> None:
    low, high = rule_interval(np.array([[2.0]]), np.array([[1.0]]))
    assert (low.item(), high.item()) == (1.0, 1.0)


# On the command line


@pytest.fixture
def policy(learner: pw.TransferLearner, tmp_path: Path) -> str:
    learner.save(tmp_path / "policy.safetensors")
    return str(tmp_path / "policy.safetensors")


def evaluated(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    return content


def test_evaluate_json(
    policy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(THERMOSTAT / "log.csv")
    options = ["--draws", "200", "--horizon", "12", "--importance", "--json"]
    assert call(monkeypatch, "evaluate", policy, log, *options) == 0
    content = evaluated(capsys)
    assert set(content["values"]["new"]) == {"mean", "low", "high", "level"}
    assert set(content["differences"]) == {"to_logged", "to_random"}
    assert content["verdict"] == {"logged": "better", "random": "better"}
    assert content["alarm"] is False
    assert content["support"]["records"] == 440
    estimates = content["estimates"]
    assert estimates["doubly robust"]["mean"] > estimates["logged"]["mean"]
    assert all("Relies on" in estimate["assumption"] for estimate in estimates.values())


def test_evaluate_in_words(
    policy: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        call(
            monkeypatch,
            "evaluate",
            policy,
            str(THERMOSTAT / "log.csv"),
            "--draws",
            "100",
            "--importance",
        )
        == 0
    )
    shown = capsys.readouterr().out
    assert "better than what was done" in shown
    assert "doubly robust" in shown


def test_not_better_is_exit_code_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.csv"
    log.write_text("s,a,n\na,x,b\nb,y,a\n")
    learn = [
        "learn",
        str(log),
        "--state",
        "s",
        "--action",
        "a",
        "--next-state",
        "n",
        "--prefer",
        "a",
    ]
    policy = str(tmp_path / "p.safetensors")
    assert call(monkeypatch, *learn, "-o", policy) == 0
    assert call(monkeypatch, "evaluate", policy, str(log), "--draws", "100") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--horizon", "0"], "horizon"),
        (["--draws", "0"], "samples"),
        (["--propensity", "hour"], "hour"),
        (["--propensity", "nothing"], "nothing"),
    ],
)
def test_bad_options_are_refused(
    policy: str,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        call(
            monkeypatch, "evaluate", policy, str(THERMOSTAT / "log.csv"), "--draws", "20", *options
        )
        == 2
    )
    shown = capsys.readouterr().err
    assert shown.startswith("pastwise: ")
    assert message in shown


def test_other_labels_and_logs_without_episodes_are_refused(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("day,hour,room,did\n1,1,freezing,heat\n1,2,cold,heat\n1,3,cold,heat\n")
    assert call(monkeypatch, "evaluate", policy, str(other)) == 2
    assert "other labels than the policy" in capsys.readouterr().err
    log = tmp_path / "log.csv"
    log.write_text("s,a,n\na,x,b\nb,y,a\n")
    learn = [
        "learn",
        str(log),
        "--state",
        "s",
        "--action",
        "a",
        "--next-state",
        "n",
        "--prefer",
        "a",
    ]
    assert call(monkeypatch, *learn, "-o", str(tmp_path / "p.safetensors")) == 0
    capsys.readouterr()
    assert (
        call(
            monkeypatch,
            "evaluate",
            str(tmp_path / "p.safetensors"),
            str(log),
            "--draws",
            "9",
            "--importance",
        )
        == 2
    )
    assert "episode" in capsys.readouterr().err


def test_a_log_with_next_states_and_episodes_is_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted, learned from and evaluated with one set of columns; a broken chain is told on stderr."""
    log, counts, policy = (
        str(tmp_path / name) for name in ("log.csv", "counts.safetensors", "policy.safetensors")
    )
    rows = list(zip(*told(doors()).values(), strict=True))
    columns = [
        "--state",
        "s",
        "--action",
        "a",
        "--next-state",
        "n",
        "--episode",
        "e",
        "--time",
        "t",
    ]
    columns += ["--terminal", "win", "--terminal", "lose"]
    Path(log).write_text("e,t,s,a,n\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    assert call(monkeypatch, "validate", log, *columns) == 0
    assert call(monkeypatch, "count", log, *columns, "-o", counts) == 0
    assert call(monkeypatch, "learn", counts, "--prefer", "win", "-o", policy) == 0
    options = ["--draws", "50", "--importance", "--json"]
    capsys.readouterr()
    call(monkeypatch, "evaluate", policy, log, *options)
    shown = capsys.readouterr()
    assert shown.err == ""
    won = sum(row[-1] == "win" for row in rows) / 300
    assert json.loads(shown.out)["estimates"]["logged"]["mean"] == pytest.approx(won)
    Path(log).write_text("e,t,s,a,n\n0,0,door,push,room\n0,1,door,knock,lose\n1,0,door,push,win\n")
    capsys.readouterr()
    assert call(monkeypatch, "validate", log, *columns) == 1
    assert "broken-chain" in capsys.readouterr().out
    call(monkeypatch, "evaluate", policy, log, *options)
    shown = capsys.readouterr()
    assert shown.err.startswith(
        "warning: 1 record in another state than the one before in the episode led to"
    )
    assert shown.err.count("\n") == 1
    assert json.loads(shown.out)["estimates"]["logged"]["mean"] == pytest.approx(1 / 3)


def test_learn_tells_the_verdict_unless_asked_not_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = [x for name, column in COLUMNS.items() for x in (f"--{name}", column)]
    learn = [
        "learn",
        str(THERMOSTAT / "log.csv"),
        *options,
        "--goal",
        str(THERMOSTAT / "goal.toml"),
    ]
    assert call(monkeypatch, *learn) == 0
    assert "better than what was done" in capsys.readouterr().out
    assert call(monkeypatch, *learn, "--no-verdict") == 0
    assert "better than" not in capsys.readouterr().out
    assert call(monkeypatch, *learn, "--json") == 0
    assert evaluated(capsys)["verdict"]["logged"] == "better"
    large = tmp_path / "large.csv"
    large.write_text("s,a,n\n" + "".join(f"s{i},x,s{i + 1}\n" for i in range(400)))
    assert (
        call(
            monkeypatch,
            "learn",
            str(large),
            "--state",
            "s",
            "--action",
            "a",
            "--next-state",
            "n",
            "--prefer",
            "s9",
        )
        == 0
    )
    assert "No verdict on so many states (401)" in capsys.readouterr().out


def test_study_calibration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--systems", "1", "--draws", "40", "--out", str(tmp_path)]
    assert call(monkeypatch, "study", "calibration", *options, "--json") == 0
    content = evaluated(capsys)
    assert len(content["rows"]) == 4 * 2 * 3 * 3
    assert {"past", "num_records", "cover_new", "wrong_to_random", "alarm"} <= set(
        content["rows"][0]
    )
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "calibration.csv",
        "calibration.json",
        "calibration.md",
        "calibration.png",
        "calibration.pdf",
    }
    assert call(monkeypatch, "study", "calibration", *options) == 0
    assert "| unaware | 60 |" in capsys.readouterr().out


def test_actions_are_judged_until_the_end() -> None:
    """What would be done after the end is of no interest."""
    log = {"s": ["x"] * 200, "a": ["u", "v"] * 100, "n": ["end"] * 200}
    learner = pw.TransferLearner(pw.Goal(prefer_actions={"u": 1}))
    learner.fit(log, state="s", action="a", next_state="n", terminal="end")
    result = learner.evaluate(samples=50)
    assert result.measure == "total utility of an episode"
    assert result.values["new"].mean == pytest.approx(1, abs=1e-3)
    assert result.values["logged"].mean == pytest.approx(0.5, abs=0.01)


def test_what_is_left_out_of_the_log_is_told() -> None:
    log = {"room": ["cold", None, "cool"], "did": ["heat"] * 3, "then": ["cool", "cool", "warm"]}
    fitted = pw.TransferLearner(pw.Goal(prefer="warm"))
    fitted.fit(
        {"room": ["cold", "cool", "warm"], "did": ["heat"] * 3, "then": ["cool", "warm", "warm"]},
        state="room",
        action="did",
        next_state="then",
    )
    with pytest.warns(pw.LogWarning, match="1 record without state left out") as caught:
        fitted.evaluate(log, samples=50)
    assert {warning.filename for warning in caught} == {__file__}
