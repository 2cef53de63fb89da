"""The study of statements: truth, rates and files, on small runs."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pastwise.errors import ParameterError
from pastwise.evaluation.verdict import Verdict
from pastwise.report.study_figures import coverage_plot
from pastwise.studies.calibration import (
    RECORDS,
    Calibration,
    Case,
    Outcome,
    Rates,
    Stated,
    calibrate,
    learning_methods,
    run_case,
)
from pastwise.studies.summary import share_interval
from pastwise.studies.synthetic import PASTS
from tests.helpers.command import Shell, shell_of

SMALL = ["null", "treatment", "hidden type"]


@pytest.fixture(scope="module")
def study() -> Calibration:
    return calibrate(SMALL, systems=7, samples=40)


# Truth.


@pytest.mark.parametrize("past", PASTS)
def test_the_truth_of_null_systems_is_no_difference(past: str) -> None:
    outcome = run_case(Case("null", 1, past, 250, "TL"), samples=40)
    assert outcome.gain("logged") == pytest.approx(0, abs=1e-12)
    assert outcome.gain("random") == pytest.approx(0, abs=1e-12)
    assert outcome.is_equal("logged")
    assert outcome.is_harmless


def test_a_rule_equals_itself() -> None:
    outcome = run_case(Case("treatment", 0, "own", 250, "FPD_learn"), samples=40)
    assert outcome.stated["new"].truth == outcome.stated["logged"].truth
    assert outcome.stated["new"].truth > outcome.stated["random"].truth


def test_long_logs_of_random_actions_bring_the_truth() -> None:
    """10,000 records, one system: all five means are within 0.05 of the truth."""
    outcome = run_case(Case("dirichlet", 0, "random", 10_000, "TL_foresight"), samples=100)
    for stated in outcome.stated.values():
        assert stated.mean == pytest.approx(stated.truth, abs=0.05)
    assert outcome.stated["to_random"].truth == pytest.approx(
        outcome.stated["new"].truth - outcome.stated["random"].truth
    )
    assert outcome.gain("random") > 0


@pytest.mark.parametrize("method", learning_methods())
@pytest.mark.parametrize("past", ["expert", "mixed", "own"])
def test_every_method_meets_short_logs_of_many_states(method: str, past: str) -> None:
    """Most states and some actions are not in the log."""
    outcome = run_case(Case("garnet", 0, past, 60, method), samples=40)
    assert outcome.num_states > 60
    for name in ("new", "logged", "random"):
        assert 0 <= outcome.stated[name].truth <= 1
    assert 0 <= outcome.outside <= 1
    assert (outcome.outside > 0.05) == (past != "own")


def test_starts_from_the_log_change_statements_and_truth() -> None:
    """In a queue that starts empty, the log's starts are known; in a grid they are not."""
    case = Case("open gridworld", 2, "random", 60, "TL")
    given = run_case(case, samples=40)
    inferred = run_case(case, samples=40, starts="log")
    assert given.stated["new"].truth != inferred.stated["new"].truth
    assert given.stated["new"].mean != inferred.stated["new"].mean
    queue = Case("queue", 0, "random", 60, "TL")
    of_queue = [run_case(queue, samples=40, starts=starts) for starts in ("given", "log")]
    assert of_queue[0].stated["new"].truth == of_queue[1].stated["new"].truth


# Design.


def test_pasts_lengths_and_methods_are_balanced(study: Calibration) -> None:
    design = replace(study.design, systems=28)
    cases = [design.case("null", index) for index in range(28)]
    for name, levels in (
        ("past", PASTS),
        ("records", RECORDS),
        ("method", learning_methods()),
    ):
        values = [getattr(case, name) for case in cases]
        assert {values.count(level) for level in levels} == {28 // len(levels)}


def test_a_study_follows_from_its_seed(study: Calibration) -> None:
    again = calibrate(SMALL, systems=7, samples=40)
    assert again == study
    more = calibrate(["null"], systems=8, samples=40)
    assert more.outcomes[:7] == study.outcomes[:7]
    other = calibrate(["null"], systems=2, samples=40, seed=1)
    assert other.outcomes != study.outcomes[:2]


def test_an_unknown_family_is_refused() -> None:
    with pytest.raises(ParameterError, match="unknown family 'nul'"):
        calibrate(["nul"], systems=1)


# Rates.


def test_an_interval_without_width_covers_a_truth_that_differs_by_rounding() -> None:
    assert Stated(1.0, 1.0, 1.0, 1.0 - 1e-7).covers
    assert Stated(1.0, 1.0, 1.0, 1.0 + 1e-15).covers
    assert not Stated(1.0, 1.0, 1.0, 1.0 - 1e-4).covers
    assert not Stated(0.5, 0.4, 0.6, 0.601).covers


def outcome_with(
    gain: float, verdict: Verdict, alarm: bool = False, records: int = 1000, low: float = 0.0
) -> Outcome:
    """Rule, random and logged by hand: random and logged have the same value."""
    value = Stated(0.5, low, 1.0, 0.5)
    difference = Stated(0.0, low, 1.0, gain)
    return Outcome(
        case=Case("dense", 0, "random", records, "TL"),
        num_states=3,
        num_actions=2,
        stated={
            "new": value,
            "logged": value,
            "random": value,
            "to_logged": difference,
            "to_random": difference,
        },
        verdict={"logged": "cannot tell", "random": verdict},
        alarm=alarm,
    )


def test_rates_by_hand() -> None:
    rates = Rates.of(
        [
            outcome_with(0.2, "better"),
            outcome_with(0.2, "cannot tell", alarm=True),
            outcome_with(0.2, "better", records=250),
            outcome_with(0.05, "worse"),
            outcome_with(0.0, "better"),
            outcome_with(0.0, "worse"),
            outcome_with(0.0, "cannot tell", low=0.6),
            outcome_with(-0.05, "worse", alarm=True),
            outcome_with(-0.05, "better"),
            outcome_with(-0.01, "cannot tell", alarm=True),
        ]
    ).to_dict()
    assert rates["evaluations"] == 10
    assert rates["cover_new"] == 0.9
    assert rates["cover_to_random"] == 0.6
    assert rates["width_new"] == pytest.approx(0.94)
    assert rates["decided_random"] == 0.7
    assert rates["decided_logged"] == 0
    assert rates["wrong_random"] == 0.2
    assert rates["equal_random"] == 3
    assert rates["false_random"] == pytest.approx(2 / 3)
    assert rates["false_better_random"] == pytest.approx(1 / 3)
    assert rates["clear_gains_random"] == 2
    assert rates["found_random"] == 0.5
    assert rates["found_logged"] == 0
    assert (rates["harmful"], rates["caught"]) == (2, 0.5)
    assert (rates["harmless"], rates["false_alarms"]) == (7, 1 / 7)
    assert rates["objected"] == 0


def test_no_case_no_rate() -> None:
    rates = Rates.of([outcome_with(0.05, "better")]).to_dict()
    assert rates["caught"] is None
    assert rates["found_random"] is None
    assert rates["false_logged"] is None


def test_objections_are_counted() -> None:
    objected = replace(outcome_with(0.05, "cannot tell"), objections=("little-support",))
    rates = Rates.of([objected, outcome_with(0.05, "better")])
    assert rates.to_dict()["objected"] == 0.5


def test_rates_are_pooled_over_everything_else(study: Calibration) -> None:
    for by, number in (("family", 3), ("past", 7), ("records", 4), ("method", 4), ("actions", 2)):
        pooled = study.pooled(by)
        assert len(pooled) == number
        assert sum(rates.evaluations for rates in pooled.values()) == 21
    without_effect = study.pooled("actions")["without effect"]
    assert without_effect == study.pooled("family")["null"]
    assert without_effect.false["random"].of == 7


def test_an_outcome_survives_its_plain_values(study: Calibration) -> None:
    outcome = study.outcomes[0]
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome


# Files.


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return shell_of(monkeypatch, capsys)


def test_study_from_the_command_line(tmp_path: Path, shell: Shell) -> None:
    options = ["--family", "null", "--family", "queue", "--systems", "2", "--samples", "40"]
    shown = shell("study", "calibration", *options, "--out", str(tmp_path), "--json")
    assert shown.code == 0
    assert shown.json["settings"]["families"] == ["null", "queue"]
    rows = {(row["by"], row["level"]): row for row in shown.json["rows"]}
    assert rows["all", "all"]["evaluations"] == 4
    assert rows["family", "queue"]["evaluations"] == 2

    suffixes = ("csv", "json", "md", "png", "pdf")
    assert {path.name for path in tmp_path.iterdir()} == {
        *(f"calibration.{suffix}" for suffix in suffixes),
        "evaluations.csv",
    }
    with (tmp_path / "evaluations.csv").open() as file:
        evaluations = list(csv.DictReader(file))
    assert [row["family"] for row in evaluations] == ["null", "null", "queue", "queue"]
    assert float(evaluations[0]["to_random_truth"]) == pytest.approx(0, abs=1e-12)

    shown = shell("study", "calibration", *options, "--out", str(tmp_path))
    assert shown.code == 0
    assert "| queue | 2 |" in shown.out
    assert "| queue | chosen | A queue" in shown.out


def test_the_command_line_names_the_families(tmp_path: Path, shell: Shell) -> None:
    shown = shell("study", "calibration", "--family", "nul", "--out", str(tmp_path / "out"))
    assert shown.code == 2
    assert "unknown family 'nul'" in shown.err
    assert "near null" in shown.err


def test_the_figure_has_a_line_for_each_family() -> None:
    shares = {"null": share_interval(9, 10), "queue": share_interval(10, 10)}
    figure = coverage_plot({"new rule": shares, "random": shares}, 0.9)
    first, second = figure.axes
    assert [label.get_text() for label in first.get_yticklabels()] == ["null", "queue"]
    assert second.get_title() == "random"
    assert first.get_ylim()[0] > first.get_ylim()[1]


def test_the_interval_of_a_share_holds() -> None:
    """Exact coverage of Wilson's 95 % interval for a share of 0.9 of 100, by the binomial."""
    from scipy.stats import binom

    numbers = np.arange(101)
    covers = [share_interval(int(number), 100).covers(0.9) for number in numbers]
    assert binom.pmf(numbers, 100, 0.9)[covers].sum() == pytest.approx(0.95, abs=0.03)
