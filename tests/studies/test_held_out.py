"""What held-out episodes say about a rule, and the study that compares."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pastwise.errors import ParameterError
from pastwise.studies.held_out import (
    HeldOutStudy,
    held_out_study,
    measure_on_other_log,
    measure_on_panel,
    split_rows,
)
from pastwise.studies.real_data import RealLog, open_bandit
from tests.helpers.open_bandit import write_wheel

WHICH = {"low": {"stay": 0.25, "try": 0.75}, "high": {"stay": 1.0, "try": 0.0}}
RISE = {("low", "stay"): 0.2, ("low", "try"): 0.6, ("high", "stay"): 0.7, ("high", "try"): 0.5}


def panel(num_people: int, steps: int = 3, seed: int = 0) -> RealLog:
    """People who start low and stay or try, with equal probability."""
    rng = np.random.default_rng(seed)
    columns: dict[str, list[str]] = {"state": [], "action": [], "next_state": []}
    for _ in range(num_people):
        state = "low"
        for _ in range(steps):
            action = "try" if rng.random() < 0.5 else "stay"
            next_state = "high" if rng.random() < RISE[state, action] else "low"
            columns["state"].append(state)
            columns["action"].append(action)
            columns["next_state"].append(next_state)
            state = next_state
    return RealLog(
        name="panel",
        unit="people",
        step="years",
        state=np.array(columns["state"]),
        action=np.array(columns["action"]),
        next_state=np.array(columns["next_state"]),
        episode=np.repeat(np.arange(num_people), steps),
        time=np.tile(np.arange(steps), num_people),
        wanted=("high",),
    )


def by_enumeration(log: RealLog, steps: int) -> float:
    """Value of the rule on the log's frequencies, summed over all paths from the state low."""
    columns = (log.state.tolist(), log.action.tolist(), log.next_state.tolist())
    records = list(zip(*columns, strict=True))

    def frequency(state: str, action: str, next_state: str) -> float:
        taken = [record for record in records if record[:2] == (state, action)]
        followed = [record for record in taken if record[2] == next_state]
        return len(followed) / len(taken)

    value = 0.0
    for path in product(product(("stay", "try"), ("low", "high")), repeat=steps):
        probability = 1.0
        state = "low"
        visits = 0
        for action, next_state in path:
            probability *= WHICH[state][action] * frequency(state, action, next_state)
            visits += next_state == "high"
            state = next_state
        value += probability * visits / steps
    return value


def test_a_panel_gives_the_value_of_a_rule_on_its_frequencies() -> None:
    log = panel(60)
    measured = measure_on_panel(WHICH, log, 50, np.random.default_rng(0), prior_people=1e-12)
    assert measured["rule"].value == pytest.approx(by_enumeration(log, 3))
    assert measured["logged"].value == pytest.approx(log.utility.mean())
    difference = measured["rule"].value - measured["logged"].value
    assert measured["difference"].value == pytest.approx(difference)


def test_errors_of_a_panel_are_those_of_other_panels() -> None:
    rng = np.random.default_rng(0)
    values = []
    errors = []
    for seed in range(60):
        measured = measure_on_panel(WHICH, panel(100, seed=seed), 100, rng)
        values.append([measured[name].value for name in ("rule", "logged", "difference")])
        errors.append([measured[name].error for name in ("rule", "logged", "difference")])
    ratio = np.mean(errors, axis=0) / np.std(values, axis=0, ddof=1)
    assert (ratio > 0.7).all()
    assert (ratio < 1.4).all()


def test_people_count_as_wholes() -> None:
    """Ten times the records of the same people say no more; ten times the people do."""
    log = panel(400)
    few = panel(40)
    repeated = replace(
        few,
        state=np.tile(few.state, 10),
        action=np.tile(few.action, 10),
        next_state=np.tile(few.next_state, 10),
        episode=np.tile(few.episode, 10),  # the same person, again and again
        time=np.arange(len(few.time) * 10),
    )
    rng = np.random.default_rng(0)
    many_error = measure_on_panel(WHICH, log, 200, rng)["logged"].error
    repeated_error = measure_on_panel(WHICH, repeated, 200, rng)["logged"].error
    assert repeated_error > 2 * many_error


def test_a_single_observation_leaves_much_open() -> None:
    """One person who tried, with success: its value is no certainty."""
    log = panel(60)
    action = np.full(len(log.action), "stay")
    action[np.flatnonzero(log.next_state == "high")[0]] = "try"
    once = replace(log, action=action)
    always = {state: {"try": 1.0} for state in ("low", "high")}
    measured = measure_on_panel(always, once, 200, np.random.default_rng(0))
    assert measured["rule"].value < 0.9
    assert measured["rule"].error > 0.1


def test_an_action_that_nobody_held_out_took_is_like_any_other() -> None:
    log = panel(60)
    rule = {state: {"leave": 1.0} for state in ("low", "high")}
    only_state = replace(log, action=np.full(len(log.action), "stay"))
    expected = measure_on_panel(
        {state: {"stay": 1.0} for state in ("low", "high")}, only_state, 2, np.random.default_rng(0)
    )
    measured = measure_on_panel(rule, log, 2, np.random.default_rng(0))
    assert measured["rule"].value == pytest.approx(expected["rule"].value)


def test_under_a_uniform_policy_the_records_of_the_rule_are_averaged(tmp_path: Path) -> None:
    random, bts = open_bandit(write_wheel(tmp_path / "obp.whl"))
    rule = {"position 1": {"article 2": 1.0}, "position 2": {"article 0": 1.0}}
    pairs = zip(random.state.tolist(), random.action.tolist(), strict=True)
    chosen = np.array(
        [pair in {("position 1", "article 2"), ("position 2", "article 0")} for pair in pairs]
    )
    measured = measure_on_other_log(rule, bts, random)
    clicks = random.utility[chosen]
    assert measured["rule"].value == pytest.approx(clicks.mean())
    assert measured["rule"].error >= np.std(clicks) / np.sqrt(len(clicks)) * 0.999
    assert measured["logged"].value == pytest.approx(bts.utility.mean())
    assert measured["difference"].error > measured["rule"].error


def test_propensities_correct_for_what_the_other_policy_preferred(tmp_path: Path) -> None:
    """Acting uniformly, measured on the log of a policy that does not."""
    random, bts = open_bandit(write_wheel(tmp_path / "obp.whl", records=20_000))
    uniform = {
        state: dict.fromkeys(["article 0", "article 1", "article 2"], 1 / 3)
        for state in ("position 1", "position 2")
    }
    measured = measure_on_other_log(uniform, random, bts)
    assert measured["rule"].value == pytest.approx(0.2, abs=4 * measured["rule"].error)
    assert abs(bts.utility.mean() - 0.2) > 4 * measured["rule"].error


def test_a_rule_without_overlap_is_not_measured(tmp_path: Path) -> None:
    random, bts = open_bandit(write_wheel(tmp_path / "obp.whl"))
    assert list(measure_on_other_log({"position 1": {"none": 1.0}}, bts, random)) == ["logged"]
    with pytest.raises(ParameterError, match="no propensities"):
        measure_on_other_log({"low": {"stay": 1.0}}, panel(4), panel(4))


def test_the_study_summarises_its_splits(tmp_path: Path) -> None:
    logs = [panel(40), open_bandit(write_wheel(tmp_path / "obp.whl"))[0]]
    study = HeldOutStudy(splits=3, samples=40, resamples=20, methods=("TL", "FPD_learn"))
    result = held_out_study(logs, study)
    assert len(result.rows) == 2 * 3 * 2
    assert [(row.data, row.method) for row in result.summaries] == [
        ("panel", "TL"),
        ("panel", "FPD_learn"),
        ("Open Bandit, random", "TL"),
        ("Open Bandit, random", "FPD_learn"),
    ]
    for summary in result.summaries:
        own = [
            row
            for row in result.rows
            if (row["data"], row["method"]) == (summary.data, summary.method)
        ]
        for name, agreement in summary.agreement.items():
            assert agreement.stated == pytest.approx(np.mean([row[name] for row in own]))
            assert agreement.rate == pytest.approx(np.mean([row[f"{name}_agrees"] for row in own]))
        false = [row["verdict_without_effect"] != "cannot tell" for row in own]
        assert summary.false_verdicts == pytest.approx(np.mean(false))
        assert summary.false_by_the_log >= summary.false_verdicts
        assert summary.objected == np.mean([row["objections"] != "" for row in own])
        assert 0 <= summary.better + summary.worse <= 1

    # Results are plain values, in three files.
    result.write(tmp_path)
    assert json.loads((tmp_path / "held-out.json").read_text()) == json.loads(
        json.dumps(result.to_dict())
    )
    assert len((tmp_path / "held-out.csv").read_text().splitlines()) == 1 + len(result.rows)
    page = (tmp_path / "held-out.md").read_text()
    assert page.count("what was done |") == 2  # once for each data set
    assert "panel: 40 people, 120 years." in page


def test_a_split_depends_on_the_seed_and_its_number_alone() -> None:
    log = panel(40)
    study = HeldOutStudy(splits=2, samples=40, resamples=20, methods=("TL",))
    assert split_rows(log, study, 1) == split_rows(log, study, 1)
    assert split_rows(log, study, 1) != split_rows(log, study, 0)
    assert split_rows(log, study, 1) != split_rows(log, replace(study, seed=1), 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"splits": 0}, "at least one split"),
        ({"resamples": 1}, "two resamples"),
        ({"train_share": 1.0}, "both parts need episodes"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        HeldOutStudy(**settings)  # type: ignore[arg-type]
