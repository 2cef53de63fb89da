"""Previews against the library's own calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pastwise as pw
from pastwise.methods.baselines import behaviour_rule
from tests.helpers.services import slug_of
from tests.helpers.workbenches import COLUMNS, COMFORT, THERMOSTAT, InProcessBench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBench]:
    with InProcessBench(tmp_path_factory.mktemp("bench")) as bench:
        yield bench


@pytest.fixture(scope="module")
def counts(bench: InProcessBench) -> str:
    return bench.counted()


def learned(goal: dict[str, Any], method: str = "TL") -> pw.TransferLearner:
    return pw.TransferLearner(goal, method=method).fit(THERMOSTAT, columns=COLUMNS)


def preview(bench: InProcessBench, counts: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = bench.call("POST", f"/v1/counts/{counts}/preview", body)
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


@pytest.mark.parametrize("method", ["TL", "TL_foresight", "FPD_learn"])
def test_the_rule_is_that_of_the_library(bench: InProcessBench, counts: str, method: str) -> None:
    goal = {**COMFORT, "forbid": [["hot", "heat"], [None, "vent"]]}
    found = preview(bench, counts, {"goal": goal, "method": method})
    learner = learned(goal, method)
    assert found["method"] == method
    assert found["rule"]["states"] == list(learner.counts_.states.labels)
    assert found["rule"]["of"] == 5
    np.testing.assert_allclose(found["rule"]["p"], learner.rule_.probabilities, atol=1e-9)
    done = behaviour_rule(learner.counts_)
    np.testing.assert_allclose(found["behaviour"]["p"], done, atol=1e-9)
    np.testing.assert_allclose(np.sum(found["rule"]["p"], axis=1), 1, atol=1e-9)

    # What is forbidden is exactly zero.
    forbidden = {tuple(pair) for pair in found["forbidden"]}
    states = found["rule"]["states"]
    actions = found["rule"]["actions"]
    assert forbidden == {
        (states.index("hot"), actions.index("heat")),
        *((i, actions.index("vent")) for i in range(5)),
    }
    assert all(found["rule"]["p"][i][j] == 0 for i, j in forbidden)
    support = learner.support().arrays
    np.testing.assert_allclose(found["support"]["similarity"], support.similarity, atol=1e-9)
    assert found["support"]["records"] == support.records.astype(int).tolist()


def test_hyper_parameters_of_a_method(bench: InProcessBench, counts: str) -> None:
    method = "TL(prior_count=5)"
    found = preview(bench, counts, {"goal": COMFORT, "method": method})
    assert found["method"] == method
    rule = learned(COMFORT, method).rule_.probabilities
    np.testing.assert_allclose(found["rule"]["p"], rule, atol=1e-9)
    assert np.abs(rule - learned(COMFORT).rule_.probabilities).max() > 0.01


@pytest.mark.parametrize("method", ["SARSA", "TL(prior_count=5", "TL(prior=5)", "FPD"])
def test_a_method_that_is_none_is_a_problem(
    bench: InProcessBench, counts: str, method: str
) -> None:
    body = {"goal": COMFORT, "method": method}
    answer = bench.call("POST", f"/v1/counts/{counts}/preview", body)
    assert slug_of(answer) == "invalid-value"
    assert answer.json()["errors"][0]["pointer"] == "/method"


def test_how_much_a_policy_depends_on_who_left_the_log(bench: InProcessBench, counts: str) -> None:
    def past(method: str) -> Any:
        want = {"past": True}
        return preview(bench, counts, {"goal": COMFORT, "method": method, "want": want})["past"]

    dependence = learned(COMFORT, "TL_foresight").past_dependence()
    assert dependence is not None
    assert past("TL_foresight") == {
        "skilled": pytest.approx(dependence.skilled),
        "opposed": pytest.approx(dependence.opposed),
        "matters": dependence.matters,
    }
    assert past("TL_foresight(past_skill=1)") is None
    assert past("TL") is None


def test_states_can_be_chosen_and_sorted(bench: InProcessBench, counts: str) -> None:
    want: dict[str, Any] = {"rule": {"states": ["warm", "cold"]}}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})
    rule = learned(COMFORT).rule_
    assert found["rule"]["states"] == ["warm", "cold"]
    np.testing.assert_allclose(found["rule"]["p"], [rule.row("warm"), rule.row("cold")], atol=1e-9)

    want = {"rule": {"first": 2, "sort": "visits"}, "visits": True}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})
    after = found["visits"]["after"]
    assert len(after) == 2
    assert after[0] >= after[1]
    want["rule"] = {}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})
    assert sum(found["visits"]["after"]) == pytest.approx(1)
    assert sum(found["visits"]["before"]) == pytest.approx(1)
    assert sorted(found["visits"]["after"])[-2:] == sorted(after)


def test_time_goes_where_an_evaluation_says(bench: InProcessBench, counts: str) -> None:
    found = preview(bench, counts, {"goal": COMFORT, "want": {"visits": True}})
    visits = learned(COMFORT).evaluate(samples=40).visits
    states = found["rule"]["states"]
    expected = [visits["new"][state] for state in states]
    np.testing.assert_allclose(found["visits"]["after"], expected, atol=0.05)
    expected = [visits["logged"][state] for state in states]
    np.testing.assert_allclose(found["visits"]["before"], expected, atol=0.05)


def test_an_overview_has_a_line_on_every_state(bench: InProcessBench, counts: str) -> None:
    want = {"overview": True, "visits": True, "ideal": False}
    whole = preview(bench, counts, {"goal": COMFORT, "want": want})
    page = preview(bench, counts, {"goal": COMFORT, "want": {**want, "rule": {"first": 1}}})
    overview = page["overview"]
    assert len(page["rule"]["states"]) == 1
    assert page["ideal"] is None
    assert overview == whole["overview"], "it does not depend on what is shown"

    rule = np.array(whole["rule"]["p"])
    done = np.array(whole["behaviour"]["p"])
    assert overview["does"] == rule.argmax(axis=1).tolist()
    assert overview["did"] == done.argmax(axis=1).tolist()
    np.testing.assert_allclose(overview["chance"], rule.max(axis=1), atol=1e-8)
    np.testing.assert_allclose(overview["change"], np.abs(rule - done).sum(axis=1) / 2, atol=1e-8)
    np.testing.assert_allclose(overview["visits"], whole["visits"]["after"], atol=1e-8)
    learner = learned(COMFORT)
    for place, state in enumerate(whole["rule"]["states"]):
        action = whole["rule"]["actions"][overview["does"][place]]
        assert overview["seen"][place] == learner.explain(state).actions[action].records


def test_reasons_add_up(bench: InProcessBench, counts: str) -> None:
    want = {"explain": ["cool", "heat"]}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})
    explanation = found["explain"]
    expected = learned(COMFORT).explain("cool", "heat")
    reason = explanation["actions"]["heat"]
    carried = sum(each["share"] for each in reason["evidence"]) + reason["parts"]["prior"]
    assert carried == pytest.approx(reason["probability"])
    assert reason["probability"] == pytest.approx(expected.actions["heat"].probability)
    assert explanation["sentence"] == str(expected)
    assert set(explanation["actions"]) == {"heat", "idle", "vent"}
    assert reason["low"] < reason["probability"] < reason["high"]


def test_a_verdict_is_that_of_an_evaluation(bench: InProcessBench, counts: str) -> None:
    want = {"verdict": {"samples": 200}}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})["verdict"]
    expected = learned(COMFORT).evaluate(samples=200, alternatives=()).to_dict()
    assert found["verdict"] == expected["verdict"]
    for name, interval in expected["differences"].items():
        assert found["differences"][name] == pytest.approx(interval)
    assert found["samples"] == 200
    assert found["overruled_by"] == []


def test_another_goal_can_judge(bench: InProcessBench, counts: str) -> None:
    cold = {"prefer": {"cold": 1}}
    want = {"verdict": {"samples": 200, "judge": cold}}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})["verdict"]
    expected = learned(COMFORT).evaluate_goals({"cold": pw.Goal.of(cold)}, samples=200)["cold"]
    assert found["verdict"] == expected.verdict
    assert found["verdict"]["logged"] == "worse"
    assert found["values"]["new"]["mean"] == pytest.approx(expected.values["new"].mean)
    want = {"verdict": {"samples": 200, "judge": {"prefer": {"cosy": 1}}}}
    answer = bench.call("POST", f"/v1/counts/{counts}/preview", {"goal": COMFORT, "want": want})
    assert answer.json()["errors"][0]["pointer"].startswith("/want/verdict/judge")


def test_a_verdict_can_include_alternatives(bench: InProcessBench, counts: str) -> None:
    want = {"verdict": {"samples": 40, "alternatives": True}}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})["verdict"]
    assert set(found["alternatives"]) == {"TL_foresight", "FPD_learn"}
    assert found["support"]["episodes"] == 40


def test_ranges_are_those_of_the_reasons(bench: InProcessBench, counts: str) -> None:
    want: dict[str, Any] = {"ranges": True, "explain": ["cool", "heat"]}
    found = preview(bench, counts, {"goal": COMFORT, "want": want})
    state = found["rule"]["states"].index("cool")
    for place, action in enumerate(found["rule"]["actions"]):
        reason = found["explain"]["actions"][action]
        assert found["ranges"]["low"][state][place] == pytest.approx(reason["low"])
        assert found["ranges"]["high"][state][place] == pytest.approx(reason["high"])
    body = {"goal": COMFORT, "method": "FPD_learn", "want": {"ranges": True}}
    assert preview(bench, counts, body)["ranges"] is None


def test_equal_goals_have_equal_keys(bench: InProcessBench, counts: str) -> None:
    first = preview(bench, counts, {"goal": {"prefer": {"warm": 1, "cool": 2}}})
    same = preview(bench, counts, {"goal": {"prefer": {"cool": 2, "warm": 1}}})
    other = preview(bench, counts, {"goal": {"prefer": {"cool": 1, "warm": 1}}})
    assert first["key"] == same["key"]
    assert first["key"] != other["key"]
    assert first["sentence"] == "be in warm (weight 1) or cool (weight 2)"


def test_weak_states_are_named(bench: InProcessBench, counts: str) -> None:
    found = preview(bench, counts, {"goal": {"prefer": "cold"}})
    similarity = learned({"prefer": "cold"}).support().arrays.similarity
    assert found["weak"] == np.flatnonzero(similarity < 1).tolist()


@pytest.mark.parametrize(
    ("goal", "slug", "pointer"),
    [
        ({"prefer": {"cosy": 1}}, "unknown-label", "/goal/prefer"),
        ({"prefer": {"warm": 1}, "floor": 0.9}, "impossible-goal", "/goal/prefer"),
        ({"prefer": {"warm": -1}}, "impossible-goal", "/goal/prefer"),
        ({"prefer": {"warm": 1}, "forbid": [["warm", "fly"]]}, "unknown-label", "/goal/forbid"),
        ({"wish": 1}, "impossible-goal", "/goal/wish"),
        ({}, "impossible-goal", "/goal"),
        ({"prefer": {"warm": 1}, "floor": "low"}, "impossible-goal", "/goal/floor"),
        (
            {"prefer": {"warm": 1}, "forbid": [[None, "heat"], [None, "idle"], [None, "vent"]]},
            "impossible-goal",
            "/goal/forbid",
        ),
    ],
)
def test_what_is_wrong_with_a_goal_is_pointed_at(
    bench: InProcessBench, counts: str, goal: dict[str, Any], slug: str, pointer: str
) -> None:
    answer = bench.call("POST", f"/v1/counts/{counts}/preview", {"goal": goal})
    assert slug_of(answer) == slug
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_other_bad_requests_are_pointed_at(bench: InProcessBench, counts: str) -> None:
    address = f"/v1/counts/{counts}/preview"
    answer = bench.call("POST", address, {"goal": COMFORT, "method": "magic"})
    assert slug_of(answer) == "invalid-value"
    assert answer.json()["errors"][0]["pointer"] == "/method"
    want = {"rule": {"states": ["warm", "wram"]}}
    answer = bench.call("POST", address, {"goal": COMFORT, "want": want})
    assert slug_of(answer) == "unknown-label"
    assert answer.json()["errors"][0] == {
        "pointer": "/want/rule/states/1",
        "code": "unknown-label",
        "detail": "unknown label 'wram'; did you mean 'warm'?",
        "near": ["warm"],
    }
    assert slug_of(bench.call("POST", "/v1/counts/cnt_0/preview", {"goal": COMFORT})) == "not-found"


def test_counts_have_what_a_page_needs(bench: InProcessBench, counts: str) -> None:
    view = bench.call("GET", f"/v1/counts/{counts}").json()
    learner = learned(COMFORT)
    assert [state["key"] for state in view["states"]] == list(learner.counts_.states.labels)
    assert sum(each[3] for each in view["transitions"]) == view["records"] == 440

    # TL's rule, from what the page has: similarity of each record, and a prior.
    ideal = np.array(preview(bench, counts, {"goal": COMFORT})["ideal"])
    evidence = np.full((5, 3), ideal.min() / 3)
    for state, action, following, _, weight, _ in view["transitions"]:
        evidence[state, action] += weight * ideal[following] / ideal.max()
    rule = evidence / evidence.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(rule, learner.rule_.probabilities, atol=1e-9)


def test_an_order_is_kept(bench: InProcessBench) -> None:
    counts = bench.counted()
    project = bench.call("GET", f"/v1/counts/{counts}").json()["project"]
    order = {"states": ["cold", "cool", "comfortable", "warm"], "actions": ["vent", "heat"]}
    assert bench.call("PUT", f"/v1/projects/{project}/order", order).status_code == 200
    view = bench.call("GET", f"/v1/counts/{counts}").json()
    assert [each["key"] for each in view["states"]] == [*order["states"], "hot"]
    assert view["actions"] == ["vent", "heat", "idle"]
    found = preview(bench, counts, {"goal": COMFORT})
    assert found["rule"]["states"] == [*order["states"], "hot"]
    rule = learned(COMFORT).rule_
    assert found["rule"]["p"][1][1] == pytest.approx(rule["cool"]["heat"], abs=1e-9)
    wanted = {"comfortable": 2, "warm": 3}
    assert all(found["ideal"][place] > 0.1 for place in wanted.values())


def test_labels_that_are_numbers_are_shown_by_size(bench: InProcessBench) -> None:
    steps = range(60)
    log = {
        "run": [0] * len(steps),
        "step": list(steps),
        "level": [("2", "10", "-1")[step % 3] for step in steps],
        "dose": [("1", "20", "3")[step // 2 % 3] for step in steps],
    }
    columns = {"state": ["level"], "action": ["dose"], "episode": "run", "time": "step"}
    view = bench.call("GET", f"/v1/counts/{bench.counted(columns, log)}").json()
    assert [each["key"] for each in view["states"]] == ["-1", "2", "10"]
    assert view["actions"] == ["1", "3", "20"]
