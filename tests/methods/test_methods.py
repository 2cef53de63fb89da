"""Every way from a log to a rule, as a user reaches it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pastwise.methods.planned import METHODS, plan_rule

import pastwise as pw
from tests.helpers.command import call

LOG = {
    "room": ["cold", "cold", "mild", "mild", "hot", "hot", "cold", "mild"] * 10,
    "did": ["heat", "wait", "wait", "heat", "cool", "wait", "heat", "wait"] * 10,
    "then": ["mild", "cold", "mild", "hot", "mild", "hot", "cold", "mild"] * 10,
}
COLUMNS = {"state": "room", "action": "did", "next_state": "then"}
MILD = pw.Goal(prefer={"mild": 1})


def learner(agent: str, goal: pw.Goal = MILD) -> pw.TransferLearner:
    return pw.TransferLearner(goal, agent=agent).fit(LOG, **COLUMNS)


@pytest.mark.parametrize("agent", METHODS)
def test_every_method_finds_the_way_to_the_goal(agent: str) -> None:
    rule = learner(agent).rule_
    np.testing.assert_allclose(rule.probabilities.sum(axis=-1), 1)
    assert [max(rule[state], key=rule[state].__getitem__) for state in ("cold", "mild", "hot")] == [
        "heat",
        "wait",
        "cool",
    ]


@pytest.mark.parametrize("agent", METHODS)
def test_forbidden_actions_are_never_taken(agent: str) -> None:
    goal = pw.Goal(prefer={"mild": 1}, forbid=[("cold", "heat")])
    assert learner(agent, goal).rule_["cold"]["heat"] == 0


@pytest.mark.parametrize("agent", METHODS)
def test_a_policy_is_kept_with_its_method(agent: str, tmp_path: Path) -> None:
    found = learner(agent)
    found.save(tmp_path / "policy.safetensors")
    again = pw.load(tmp_path / "policy.safetensors")
    assert again.agent == agent
    np.testing.assert_allclose(again.rule_.probabilities, found.rule_.probabilities, rtol=1e-12)
    assert again.retarget(pw.Goal(prefer={"hot": 1})).agent == agent


@pytest.mark.parametrize("agent", METHODS)
def test_an_update_is_the_same_as_learning_again(agent: str) -> None:
    found = learner(agent)
    before = found.rule("cold")
    for _ in range(30):
        found.update("cold", "wait", "mild")
    more = {
        name: [*values, *[new] * 30]
        for (name, values), new in zip(LOG.items(), ("cold", "wait", "mild"), strict=True)
    }
    again = pw.TransferLearner(MILD, agent=agent).fit(more, **COLUMNS)
    np.testing.assert_allclose(found.rule_.probabilities, again.rule_.probabilities, rtol=1e-12)
    assert found.rule("cold")["wait"] > before["wait"]


def test_a_planner_waits_for_enough_records_to_answer_anew() -> None:
    many = pw.TransferLearner(MILD, agent="TL_foresight").fit(
        {k: v * 5 for k, v in LOG.items()}, **COLUMNS
    )
    before = many.rule("cold")
    for _ in range(4):
        many.update("cold", "cool", "mild")
    assert many.rule("cold") == before, "4 new records of 400 are not more than 1 %"
    for _ in range(60):
        many.update("cold", "cool", "mild")
    assert many.rule("cold")["cool"] > 0.99 > 0.01 > before["cool"]


@pytest.mark.parametrize("agent", METHODS)
def test_reasons_of_every_method(agent: str) -> None:
    found = learner(agent)
    explanation = found.explain("cold")
    for action, reason in explanation.actions.items():
        assert reason.probability == pytest.approx(found.rule_["cold"][action])
        assert (
            sum(e.records for e in reason.evidence)
            == {"heat": 20, "wait": 10, "cool": 0}[str(action)]
        )
    content = json.loads(json.dumps(explanation.to_dict()))
    assert content["method"] == agent
    if agent.startswith("TL") and agent != "TL_foresight":
        for each in content["actions"].values():
            shares = each["prior"] + sum(e["share"] for e in each["evidence"])
            assert shares == pytest.approx(each["probability"])
    else:
        heat = content["actions"]["heat"]
        assert list(heat) == ["probability", "value", "doubt", "example", "evidence"]
        assert {e["next_state"]: e["share"] for e in heat["evidence"]} == {"mild": 0.5, "cold": 0.5}
        assert heat["value"] > content["actions"]["wait"]["value"]
        assert "rests on 10 records that led to mild" in str(explanation)
        assert "rests on no record" in str(explanation)


@pytest.mark.parametrize("agent", ["FPD_learn", "TL_foresight"])
def test_what_is_not_allowed_has_no_value(agent: str) -> None:
    found = learner(agent, pw.Goal(prefer={"mild": 1}, forbid=[("cold", "heat")])).explain(
        "cold", "heat"
    )
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["actions"]["heat"]["value"] is None
    assert "not allowed by the goal" in str(found)


def test_prior_counts_are_used_or_refused() -> None:
    def with_prior(agent: str) -> pw.TransferLearner:
        return pw.TransferLearner(MILD, agent=agent, prior_count=5.0).fit(LOG, **COLUMNS)

    for agent in ("TL", "TL_explore", "FPD_learn"):
        assert not np.allclose(
            with_prior(agent).rule_.probabilities, learner(agent).rule_.probabilities
        )
    with pytest.raises(ValueError, match="TL_foresight reads its prior from the log"):
        with_prior("TL_foresight")


def test_foresight_does_not_wait_for_ever_where_the_past_did() -> None:
    """A corridor 1, 2, 3 to the goal 4, in which the past mostly waited; once, in 1, it jumped to its ruin."""
    log: dict[str, list[Any]] = {"s": [1], "a": ["jump"], "n": [0]}
    for cell in (1, 2, 3):
        log["s"] += [cell] * 1000
        log["a"] += ["wait"] * 800 + ["right"] * 200
        log["n"] += [cell] * 800 + [cell + 1] * 200
    goal = pw.Goal(prefer={4: 1})
    found = pw.TransferLearner(goal, agent="TL_foresight").fit(
        log, state="s", action="a", next_state="n", terminal=[0, 4]
    )
    assert all(found.rule(cell)["right"] > 0.99 for cell in (1, 2, 3))


def test_preferred_actions_do_not_put_off_the_end() -> None:
    """To go right leads to the goal and is preferred; to dither earns nothing."""
    rng = np.random.default_rng(0)
    cell = rng.integers(1, 6, size=2000)
    way = rng.integers(3, size=2000)
    then = cell + np.array([-1, 1, 0])[way]
    log = {
        "s": cell.tolist(),
        "a": np.array(["left", "right", "stay"])[way].tolist(),
        "n": then.tolist(),
    }
    goal = pw.Goal(prefer={6: 1}, prefer_actions={"right": 1.0, "stay": 0.5})
    found = pw.TransferLearner(goal, agent="TL_foresight").fit(
        log, state="s", action="a", next_state="n", terminal=[0, 6]
    )
    assert all(found.rule(c)["right"] > 0.99 for c in range(1, 6))


def test_exploration_is_for_want_of_good_data() -> None:
    """Where most records serve the goal, TL_explore is TL; where few do, 30 % of its rule is uniform."""
    np.testing.assert_allclose(
        learner("TL_explore").rule_.probabilities, learner("TL").rule_.probabilities
    )
    hot = pw.Goal(prefer={"hot": 1})
    mixed = 0.7 * learner("TL", hot).rule_.probabilities + 0.3 / 3
    np.testing.assert_allclose(learner("TL_explore", hot).rule_.probabilities, mixed)


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(
        ValueError, match="unknown agent 'SARSA'; known are TL, TL_explore, FPD_learn, TL_foresight"
    ):
        learner("SARSA")
    counts = pw.count_transitions(LOG, state="room", action="did", next_state="then")
    with pytest.raises(ValueError, match="unknown method"):
        plan_rule("SARSA", counts, MILD.on(counts.states, counts.actions), pw.normalised_similarity)


def test_the_command_line_reaches_every_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.csv"
    rows = zip(*LOG.values(), strict=True)
    log.write_text("\n".join(["room,did,then", *(",".join(row) for row in rows)]) + "\n")
    columns = ["--state", "room", "--action", "did", "--next-state", "then", "--prefer", "mild"]
    policy, other = str(tmp_path / "policy.safetensors"), str(tmp_path / "other.safetensors")
    for method in METHODS:
        assert (
            call(
                monkeypatch, "learn", str(log), *columns, "--method", method, "-o", policy, "--json"
            )
            == 0
        )
        content = json.loads(capsys.readouterr().out)
        assert content["method"] == method
        assert content["policy"]["cold"]["heat"] > content["policy"]["cold"]["wait"]
        assert call(monkeypatch, "explain", policy, "cold", "--json") == 0
        assert json.loads(capsys.readouterr().out)["method"] == method
        assert (
            call(
                monkeypatch,
                "retarget",
                policy,
                "--prefer",
                "hot",
                "--method",
                "TL_foresight",
                "-o",
                other,
            )
            == 0
        )
        assert pw.load(other).agent == "TL_foresight"
        assert call(monkeypatch, "evaluate", policy, str(log), "--samples", "50") in (0, 1)
        capsys.readouterr()
    assert call(monkeypatch, "learn", str(log), *columns, "--method", "SARSA") == 2
    assert "unknown agent 'SARSA'" in capsys.readouterr().err
